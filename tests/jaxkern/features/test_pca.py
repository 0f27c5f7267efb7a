"""Kernel PCA of whatever is drawn, and against scikit-learn, ordinary PCA, and the documented cut-off."""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from sklearn.decomposition import KernelPCA as Peer
from support.drawn import PLAIN, N, drawn
from support.numerics import literal_gram, up_to_sign

from jaxkern import features, rkhs
from jaxkern import sklearn as adapters
from jaxkern.kernels import Gaussian, Linear
from jaxkern.linalg import prefers_partial

COUNT = house.FEATURES
SLACK = 60
"""Rounding of an eigenvalue, over the rounding of a kernel value."""


@jax.jit
def components(kernel, X):
    """Return features of the landmarks and what the maps say, centred and plain, by one program for all cases."""
    results = {}
    for name, centered in (("centred", True), ("plain", False)):
        phi = features.kernel_pca(kernel, X, num_components=COUNT, centered=centered)
        results[name] = {
            "Z": phi(X),
            "rank": phi.rank,
            "eigenvalues": phi.eigenvalues,
            "explained": phi.explained_variance,
            "ratio": phi.explained_variance_ratio,
            "total": phi.total_variance,
            "residual": phi.reconstruction_residual(X),
            "definite": phi.definite,
        }
    return results


def results_of(kernel, X):
    return jax.tree.map(np.float64, components(kernel, X))


def faults(case, changes=lambda results: {}):
    """Return the names of the statements that are not true, after changes of the results."""
    kernel, X, _, _ = case.given()
    results = results_of(kernel, X)
    results |= changes(results)
    exact = case.exact()
    K = exact.G[:N, :N]
    H = np.eye(N) - 1 / N
    rounding = 2 * N * SLACK * exact.spread * exact.size * house.eps()
    statements = {}
    for name, matrix in {"centred": H @ K @ H, "plain": K}.items():
        result = results[name]
        values = np.linalg.eigvalsh(matrix)[::-1]
        left = matrix - result["Z"] @ result["Z"].T
        apart = np.abs(result["eigenvalues"] - values[:COUNT]).max()
        total = np.trace(matrix) / N
        residual = result["residual"] - np.diag(left)
        statements |= {
            f"eigenvalues, {name}": apart <= rounding,
            # Eckart and Young: no matrix of this rank is closer.
            f"best of its rank, {name}": np.linalg.norm(left, 2)
            <= values[COUNT] + rounding,
            f"below K, {name}": np.linalg.eigvalsh(left)[0] >= -rounding,
            f"the total, {name}": abs(result["total"] - total) <= rounding / N,
            f"the residual, {name}": np.abs(residual).max() <= rounding,
            f"definite, {name}": result["definite"] == 1,
        }
    return {name for name, is_true in statements.items() if not is_true}


@given(case=drawn())
@example(case=PLAIN)
@example(case=dataclasses.replace(PLAIN, parts=(1e-12, 0.0, 0.0)))
@example(case=dataclasses.replace(PLAIN, parts=(1e12, 0.0, 0.0)))
def test_components_are_the_best_of_their_rank(case):
    """The size of the kernel does not matter: cut-offs are relative."""
    assert not faults(case)


def test_wrong_components_are_caught():
    def changed(**fields):
        def change(results):
            return {"centred": results["centred"] | fields}

        return faults(PLAIN, change)

    plain = results_of(*PLAIN.given()[:2])["plain"]
    uncentred = changed(Z=plain["Z"])
    assert uncentred >= {"best of its rank, centred", "below K, centred"}
    assert changed(eigenvalues=plain["explained"]) == {"eigenvalues, centred"}
    assert changed(residual=plain["residual"]) == {"the residual, centred"}


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_equal_landmarks_have_no_component(size):
    """The mean of entries of 0.1 is rounded, and of ones it is not: then the total variance is zero."""
    kernel, X, _, _ = dataclasses.replace(PLAIN, parts=(size, 0.0, 0.0)).given()
    result = results_of(kernel, jnp.full_like(X, 0.3))["centred"]
    assert result["rank"] == 0
    assert not result["Z"].any() and not result["ratio"].any()
    assert size < 1 or result["total"] == 0


def gram(X, Y):
    return literal_gram(X, Y, house.LENGTHSCALE)


@pytest.mark.float64
@pytest.mark.parametrize(("rows", "normalized"), [(N, False), (150, True)])
def test_new_points_go_where_scikit_learn_sends_them(rows, normalized):
    """With 150 landmarks the partial solver finds the components, and sums do not need the other eigenvalues."""
    data = house.data(shape=(rows, 8, 3))
    count = 3
    assert prefers_partial(rows, count) == (rows > N)
    gamma = 1 / (2 * house.LENGTHSCALE**2)
    peer = Peer(count, kernel="rbf", gamma=gamma, eigen_solver="dense").fit(data.X)
    phi = features.kernel_pca(
        house.KERNEL, data.X, num_components=count, normalized=normalized
    )
    expected = peer.transform(data.Y)
    values = peer.eigenvalues_
    if not normalized:  # unit eigenvectors, as in kpotufe2020
        expected = expected * values**0.5
    Z = phi(data.Y)
    np.testing.assert_allclose(up_to_sign(Z, expected), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(phi.eigenvalues, values, rtol=1e-11)
    K = gram(data.X, data.X)
    total = np.trace(K) - K.mean(axis=1).sum()
    ratio = phi.explained_variance_ratio
    np.testing.assert_allclose(ratio, values / total, rtol=1e-11)
    # The squared distance of a section from its projection, which has these weights on the landmarks.
    weights = np.asarray(phi.coefficients(Z))
    mixed = (gram(data.Y, data.X).T * weights).sum(axis=0)
    distances = 1 - 2 * mixed + (weights * (K @ weights)).sum(axis=0)
    residual = phi.reconstruction_residual(data.Y)
    np.testing.assert_allclose(residual, distances, rtol=0, atol=1e-10)


@pytest.mark.parametrize("centered", [True, False])
def test_functions_have_coordinates_in_orthonormal_eigenfunctions(centered):
    data = house.data()
    phi = features.kernel_pca(
        house.KERNEL, data.X, num_components=COUNT, centered=centered
    )
    K = gram(data.X, data.X)
    P = np.float64(phi.projection)
    H = np.eye(N) - centered / N
    # Through leading eigenvectors with gaps and values of at least 1e-2.
    allowed = 1e3 * N * house.eps()
    np.testing.assert_allclose(P @ K @ P.T, np.eye(COUNT), atol=allowed)
    # They diagonalise the covariance operator.
    images = P @ K @ H @ K @ P.T
    np.testing.assert_allclose(images, np.diag(phi.eigenvalues), atol=allowed)
    offset = np.asarray(phi.offset)
    np.testing.assert_allclose(offset, centered * P @ K.mean(axis=1), atol=allowed)
    f = rkhs.Function(house.KERNEL, data.Y, data.values)
    expected = data.values.T @ (np.asarray(phi(data.Y)) + offset)
    np.testing.assert_allclose(phi.embed(f), expected, atol=10 * allowed)


def test_a_linear_kernel_gives_ordinary_principal_components():
    data = house.data()
    mean = np.float64(data.X).mean(axis=0)
    axes = np.linalg.svd(np.float64(data.X) - mean)[2]
    expected = (np.float64(data.Y) - mean) @ axes.T
    phi = features.kernel_pca(Linear(), data.X, num_components=N)
    Z = np.asarray(phi(data.Y))
    allowed = 10 * N * house.eps() * float(np.abs(data.X).max()) ** 2
    assert int(phi.rank) == 3 and phi.definite
    np.testing.assert_allclose(up_to_sign(Z[:, :3], expected), expected, atol=allowed)
    assert not Z[:, 3:].any()


def test_what_centring_leaves_of_rounding_is_no_component():
    """Points of a line far from the origin: K is 1e4 times larger than H K H, whose rounding is in every direction."""
    far = 1000 + 10 * house.data("rank_one").X
    assert int(features.kernel_pca(Linear(), far, num_components=N).rank) == 1


@pytest.mark.parametrize("name", ["nystrom", "kernel_pca"])
def test_the_cut_off_is_where_it_is_documented(name):
    """K is diagonal, with eigenvalues 1 and one at a multiple of the cut-off: a cut-off 3 times as large is noticed."""
    cut = house.eps() * (N if name == "kernel_pca" else N**0.5)
    for factor, rank in ((0.5, 1), (2.0, 2)):
        landmarks = np.zeros((N, 3), house.dtype())
        landmarks[0, 0] = 1
        landmarks[1, 1] = (factor * cut) ** 0.5
        if name == "nystrom":
            phi = features.nystrom(Linear(), landmarks)
        else:
            phi = features.kernel_pca(
                Linear(), landmarks, num_components=N, centered=False
            )
        assert int(phi.rank) == rank


def sigmoid(x, y):
    return jnp.tanh(jnp.vdot(x, y) / 4 + 1)


@pytest.mark.parametrize(("count", "centered"), [(2, False), (N, True)])
def test_an_indefinite_kernel_is_told(count, centered):
    X = house.data().X
    phi = features.kernel_pca(sigmoid, X, num_components=count, centered=centered)
    assert not phi.definite


def test_the_estimator_refuses_an_indefinite_kernel():
    with pytest.raises(ValueError, match="kernel must be positive semidefinite"):
        adapters.KernelPCA(2, kernel=sigmoid).fit(house.data().X)


def polygon(corners, repeated=1):
    angles = 2 * np.pi * np.arange(corners) / corners
    return np.tile(np.stack([np.cos(angles), np.sin(angles)], axis=1), (repeated, 1))


@pytest.mark.float64
@pytest.mark.parametrize(
    ("landmarks", "num_components", "centered", "normalized"),
    [
        (polygon(5), 2, True, True),
        pytest.param(polygon(6), 3, False, False, marks=pytest.mark.slow),
        pytest.param(polygon(3, 2), 2, True, False, marks=pytest.mark.slow),
    ],
)
def test_gradients_match_differences_on_regular_polygons(
    landmarks, num_components, centered, normalized
):
    """Leading eigenvalues coincide in pairs, which no other shape has, and the number of components divides no pair."""
    rng = house.rng()
    X = rng.normal(size=(3, 2))
    direction = rng.normal(size=landmarks.shape)
    weights = rng.normal(size=(3, 3))
    options = {
        "num_components": num_components,
        "centered": centered,
        "normalized": normalized,
    }

    def quantities(L):
        phi = features.kernel_pca(Gaussian(1.0), L, **options)
        Z = phi(X)
        # The values at X of projected functions would do as well as these numbers.
        projected = phi.coefficients(Z).T @ jnp.exp(L @ X.T)
        return jnp.stack(
            [
                jnp.sum(phi.reconstruction_residual(X) ** 2),
                jnp.sum(phi.explained_variance**2),
                jnp.sum(phi.explained_variance_ratio),
                jnp.sum(weights * (Z @ Z.T)),
                jnp.sum(weights * projected),
            ]
        )

    values_and_slopes = jax.jit(lambda L: (quantities(L), jax.jacrev(quantities)(L)))
    _, slopes = values_and_slopes(landmarks)
    above, _ = values_and_slopes(landmarks + 1e-5 * direction)
    below, _ = values_and_slopes(landmarks - 1e-5 * direction)
    differences = (np.asarray(above) - np.asarray(below)) / 2e-5
    along = (np.asarray(slopes) * direction).sum(axis=(1, 2))
    np.testing.assert_allclose(along, differences, rtol=1e-6, atol=1e-8)
