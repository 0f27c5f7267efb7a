"""Kernel PCA: against scikit-learn, textbook formulas, ordinary PCA and the Nystrom map."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.decomposition import KernelPCA as Peer
from support.numerics import eps, literal_gram, up_to_sign

from jaxkern import features, rkhs
from jaxkern import sklearn as adapters
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian, Linear
from jaxkern.linalg import prefers_partial

N, n, DIM, COMPONENTS = 40, 12, 3, 4
MANY = 200
"""Landmarks of which a few components come from the partial solver."""
LENGTHSCALE, SLOW = 1.5, pytest.mark.slow


def data(rng, dtype):
    return rng.normal(size=(N, DIM)).astype(dtype), (
        2 * rng.normal(size=(n, DIM))
    ).astype(dtype)


def tolerance(dtype):
    """Rounding of the kernel, n eps, through leading eigenvectors with gaps and values of at least 1e-2."""
    return 1e2 * n * eps(dtype)


def fit(landmarks, **options):
    return features.kernel_pca(
        Gaussian(LENGTHSCALE), landmarks, **{"num_components": COMPONENTS} | options
    )


def test_new_points_go_where_scikit_learn_sends_them(dtype, rng):
    X, L = data(rng, dtype)
    peer = Peer(
        COMPONENTS, kernel="rbf", gamma=1 / (2 * LENGTHSCALE**2), eigen_solver="dense"
    ).fit(np.float64(L))
    phi = fit(L)
    expected = peer.transform(np.float64(X))
    Z = phi(X)
    assert (
        Z.shape == (N, COMPONENTS)
        and Z.dtype == dtype
        and phi.num_features == COMPONENTS == int(phi.rank)
    )
    np.testing.assert_allclose(up_to_sign(Z, expected), expected, atol=tolerance(dtype))
    np.testing.assert_allclose(
        phi.eigenvalues, peer.eigenvalues_, atol=tolerance(dtype)
    )


@pytest.mark.parametrize("normalized", [True, False])
def test_few_components_of_many_landmarks_are_those_of_scikit_learn(
    normalized, x64, rng
):
    """By the partial solver; totals and residuals do not need the other eigenvalues."""
    L, X = rng.normal(size=(MANY, DIM)), rng.normal(size=(N, DIM))
    assert prefers_partial(MANY, COMPONENTS)
    peer = Peer(
        COMPONENTS, kernel="rbf", gamma=1 / (2 * LENGTHSCALE**2), eigen_solver="dense"
    ).fit(np.asarray(L))
    phi = fit(L, normalized=normalized)
    expected = peer.transform(np.asarray(X)) * (
        1 if normalized else peer.eigenvalues_**0.5
    )
    np.testing.assert_allclose(
        up_to_sign(phi(X), expected), expected, rtol=0, atol=1e-10
    )
    np.testing.assert_allclose(phi.eigenvalues, peer.eigenvalues_, rtol=1e-11)
    H = np.eye(MANY) - 1 / MANY
    total = np.trace(H @ literal_gram(L, L, LENGTHSCALE) @ H)
    np.testing.assert_allclose(
        phi.explained_variance_ratio, peer.eigenvalues_ / total, rtol=1e-11
    )
    residual = phi.reconstruction_residual(L)
    assert np.asarray(residual).sum() == pytest.approx(
        total - peer.eigenvalues_.sum(), rel=1e-10
    )


def test_unit_eigenvectors_are_those_of_the_paper(dtype, rng):
    """x goes to sum_i alpha_i K(x, x_i), alpha a unit eigenvector of H K H, up to one translation of all points."""
    X, L = data(rng, dtype)
    H, K, k = (
        np.eye(n) - 1 / n,
        literal_gram(L, L, LENGTHSCALE),
        literal_gram(X, L, LENGTHSCALE),
    )
    alpha = np.linalg.eigh(H @ K @ H)[1][:, ::-1][:, :COMPONENTS]
    Z = fit(L, normalized=False)(X)
    expected = (k - K.mean(1)) @ H @ alpha
    np.testing.assert_allclose(up_to_sign(Z, expected), expected, atol=tolerance(dtype))
    moved = up_to_sign(Z, expected) - k @ alpha
    np.testing.assert_allclose(moved - moved[:1], 0, atol=tolerance(dtype))


def test_a_linear_kernel_gives_ordinary_principal_components(dtype, rng):
    X, L = data(rng, dtype)
    phi = features.kernel_pca(Linear(), L, num_components=n)
    mean = np.float64(L).mean(0)
    axes = np.linalg.svd(np.float64(L) - mean)[2]
    expected = (np.float64(X) - mean) @ axes.T
    size = 10 * n * eps(dtype) * float(np.abs(L).max()) ** 2
    assert int(phi.rank) == DIM
    np.testing.assert_allclose(
        up_to_sign(np.asarray(phi(X))[:, :DIM], expected), expected, atol=size
    )
    assert not np.asarray(phi(X))[:, DIM:].any()


def test_functions_have_coordinates_in_orthonormal_eigenfunctions(dtype, rng):
    X, L = data(rng, dtype)
    kernel = Gaussian(LENGTHSCALE)
    for centered in (True, False):
        phi = fit(L, centered=centered)
        embedded, offset = (
            np.asarray(phi.embed(rkhs.section(kernel, X))),
            np.asarray(phi.offset),
        )
        np.testing.assert_allclose(embedded - offset, phi(X), atol=tolerance(dtype))
        system = rkhs.Function(kernel, L, np.asarray(phi.projection).T)
        np.testing.assert_allclose(
            phi.embed(system), np.eye(COMPONENTS), atol=tolerance(dtype)
        )
        # Eigenfunctions of the covariance operator, with the eigenvalues over n.
        images = rkhs.Covariance(kernel, L, centered=centered).inner(
            system, system, power=1
        )
        np.testing.assert_allclose(
            images, np.diag(np.asarray(phi.eigenvalues)) / n, atol=tolerance(dtype)
        )
        mean = rkhs.Function(kernel, L, np.full(n, centered / n, dtype))
        np.testing.assert_allclose(phi.embed(mean), offset, atol=tolerance(dtype))


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_the_cut_off_does_not_depend_on_the_size_of_the_kernel(size, rng):
    X, L = data(rng, "float32")
    scaled = features.kernel_pca(size * Gaussian(LENGTHSCALE), L, num_components=n)
    plain = fit(L, num_components=n)
    assert int(scaled.rank) == int(plain.rank) == n - 1
    Z, expected = (np.asarray(phi(X))[:, :COMPONENTS] for phi in (scaled, plain))
    Z = Z / size**0.5
    np.testing.assert_allclose(
        up_to_sign(Z, expected), expected, atol=tolerance("float32")
    )


def test_equal_landmarks_have_no_component():
    for rows in (1, n):
        phi = features.kernel_pca(
            0.1 * Gaussian(1.0),
            np.full((rows, DIM), 0.3, np.float32),
            num_components=rows,
        )
        assert (
            int(phi.rank) == 0
            and not np.asarray(phi(np.ones((2, DIM), np.float32))).any()
        )
    alone = fit(np.ones((1, DIM), np.float32), num_components=1)
    assert float(alone.total_variance) == 0 and not np.asarray(
        alone.explained_variance_ratio
    )


def test_what_centring_leaves_of_rounding_is_no_component(rng):
    """Points of a line far from the origin: K is 1e6 times larger than H K H, whose rounding is in every direction."""
    along = np.array([3.0, -1.0, 2.0]) / 14**0.5
    L = np.float32(1000 + 10 * rng.normal(size=(n, 1)) * along)
    assert int(features.kernel_pca(Linear(), L, num_components=n).rank) == 1


def polygon(corners, repeated=1):
    angles = 2 * np.pi * np.arange(corners) / corners
    return np.tile(np.stack([np.cos(angles), np.sin(angles)], axis=1), (repeated, 1))


@pytest.mark.parametrize(
    ("landmarks", "num_components", "centered", "normalized"),
    [
        (polygon(5), 2, True, True),
        pytest.param(polygon(6), 3, False, False, marks=SLOW),
        pytest.param(polygon(3, 2), 2, True, False, marks=SLOW),
    ],
)
def test_gradients_match_differences_on_regular_polygons(
    landmarks, num_components, centered, normalized, rng, x64
):
    """Leading eigenvalues coincide in pairs, and the number of components divides no pair."""
    X, direction, weights = (
        rng.normal(size=(3, 2)),
        rng.normal(size=landmarks.shape),
        rng.normal(size=(3, 3)),
    )

    def projected(phi):
        """Values at X of the projections of its sections, by their weights on the landmarks."""
        return jnp.sum(
            weights * (phi.coefficients(phi(X)).T @ gram(phi.kernel, phi.landmarks, X))
        )

    quantities = {
        "residuals": lambda phi: jnp.sum(phi.reconstruction_residual(X) ** 2),
        "variances": lambda phi: (
            jnp.sum(phi.explained_variance**2) + jnp.sum(phi.explained_variance_ratio)
        ),
        "products": lambda phi: jnp.sum(weights * (phi(X) @ phi(X).T)),
        "projections": projected,
    }

    def loss(L):
        options = {
            "num_components": num_components,
            "centered": centered,
            "normalized": normalized,
        }
        phi = features.kernel_pca(Gaussian(1.0), L, **options)
        return jnp.stack([quantity(phi) for quantity in quantities.values()])

    @jax.jit
    def along(L):
        """Return the quantities and their slopes in the direction, by reverse mode."""
        values, pulled = jax.vjp(loss, L)
        return values, jnp.sum(
            jax.vmap(pulled)(jnp.eye(len(values)))[0] * direction[None], axis=(1, 2)
        )

    K = literal_gram(landmarks, landmarks, 1.0)
    values = np.linalg.eigvalsh(K - K.mean(0) if centered else K)[::-1]
    assert values[num_components - 2] - values[num_components - 1] < 1e-14
    assert values[num_components - 1] - values[num_components] > 1e-2
    step = 1e-5 * direction
    ends = [np.asarray(along(landmarks + sign * step)[0]) for sign in (1, -1)]
    np.testing.assert_allclose(
        along(landmarks)[1], (ends[0] - ends[1]) / 2e-5, rtol=1e-6, atol=1e-8
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kernel": Distance()},
            "kernel must be positive semidefinite to have an RKHS, got Distance",
        ),
        ({"num_components": 0}, "num_components must be at least 1, got 0"),
        (
            {"num_components": 6},
            "num_components must be at most 5 .the number of landmarks., got 6",
        ),
        ({"centered": 1}, "centered must be True or False"),
        ({"normalized": "yes"}, "normalized must be True or False"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {
        "kernel": Gaussian(1.0),
        "landmarks": np.zeros((5, 2), np.float32),
        "num_components": 2,
    } | changes
    with pytest.raises(ValueError, match=message):
        features.kernel_pca(**arguments)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("count", [2, 10, 60])
def test_an_indefinite_kernel_is_told(count, centered, rng):
    X = rng.normal(size=(60, 4)).astype(np.float32)

    def sigmoid(x, y):
        return jnp.tanh(jnp.vdot(x, y) / 4 + 1)

    sizes = {"num_components": count, "centered": centered}
    assert not features.kernel_pca(sigmoid, X, **sizes).definite
    for kernel in (Gaussian(1.0), Gaussian(1e-3), Gaussian(100.0), Linear()):
        assert features.kernel_pca(kernel, X, **sizes).definite
    with pytest.raises(ValueError, match="kernel must be positive semidefinite"):
        adapters.KernelPCA(count, kernel=sigmoid, centered=centered).fit(X)


@pytest.mark.parametrize("name", ["nystrom", "kernel_pca"])
def test_the_cut_off_is_where_it_is_documented(name, dtype):
    """K is diagonal, with eigenvalues 1 and one at a multiple of the cut-off: a cut-off 3 times as large is noticed."""
    n = 16
    cut = eps(dtype) * (n if name == "kernel_pca" else n**0.5)
    for factor in (0.5, 2.0):
        roots = np.sqrt([1.0, factor * cut] + [0.0] * (n - 2))
        landmarks = np.diag(roots).astype(dtype)
        if name == "nystrom":
            phi = features.nystrom(Linear(), landmarks)
        else:
            sizes = {"num_components": n, "centered": False}
            phi = features.kernel_pca(Linear(), landmarks, **sizes)
        assert phi.rank == (2 if factor > 1 else 1)
