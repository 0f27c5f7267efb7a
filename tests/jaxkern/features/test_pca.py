"""Kernel PCA of whatever is drawn, and against scikit-learn, ordinary PCA, and the documented cut-off."""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from numpy.testing import assert_allclose
from sklearn.decomposition import KernelPCA as Peer
from support.drawn import PLAIN, N, drawn
from support.numerics import literal_gram, up_to_sign

from jaxkern import features, rkhs
from jaxkern import sklearn as adapters
from jaxkern.kernels import Linear
from jaxkern.linalg import prefers_partial

COUNT = house.FEATURES
SLACK = 60
"""Rounding of an eigenvalue, over the rounding of a kernel value."""


@jax.jit
def components(kernel, X):
    """Return features of the landmarks and what the maps say, centred and plain, by one program for all cases."""
    results = []
    for centered in (True, False):
        phi = features.kernel_pca(kernel, X, num_components=COUNT, centered=centered)
        result = {
            "Z": phi(X),
            "rank": phi.rank,
            "eigenvalues": phi.eigenvalues,
            "explained": phi.explained_variance,
            "ratio": phi.explained_variance_ratio,
            "total": phi.total_variance,
            "residual": phi.reconstruction_residual(X),
            "definite": phi.definite,
        }
        results.append(result)
    return results


def results_of(case):
    kernel, X, _, _ = case.given()
    return jax.tree.map(np.float64, components(kernel, X))


def check(case, result, centered):
    """Assert all that holds of the result of a case, centred or not."""
    exact = case.exact()
    H = np.eye(N) - centered / N
    C = H @ exact.G[:N, :N] @ H
    values = np.linalg.eigvalsh(C)[::-1]
    rounding = 2 * N * SLACK * exact.spread * exact.size * house.eps()
    estimates = result["eigenvalues"]
    assert np.abs(estimates - values[:COUNT]).max() <= rounding, "eigenvalues"
    # At the landmarks themselves features are not divided by small eigenvalues.
    left = C - result["Z"] @ result["Z"].T
    # Eckart and Young: no matrix of this rank is closer.
    assert np.linalg.norm(left, 2) <= values[COUNT] + rounding, "the best"
    assert np.linalg.eigvalsh(left)[0] >= -rounding, "below K"
    total = np.trace(C) / N
    assert abs(result["total"] - total) <= rounding / N, "the total"
    residual = result["residual"] - np.diag(left)
    assert np.abs(residual).max() <= rounding, "the residual"
    assert result["definite"] == 1


@given(case=drawn())
@example(case=PLAIN)
def test_components_are_the_best_of_their_rank(case):
    centred, plain = results_of(case)
    check(case, centred, True)
    check(case, plain, False)


@pytest.mark.parametrize("size", [1e-12, 1e12])
def test_cut_offs_do_not_depend_on_the_size_of_the_kernel(size):
    case = dataclasses.replace(PLAIN, parts=(size, 0.0, 0.0))
    centred, _ = results_of(case)
    assert centred["rank"] == COUNT
    check(case, centred, True)


def test_wrong_components_are_caught():
    centred, plain = results_of(PLAIN)
    mistakes = (
        ("eigenvalues", {"eigenvalues": centred["explained"]}),
        ("the best", {"Z": plain["Z"]}),
        ("below K", {"Z": 1.1 * centred["Z"]}),
        ("the total", {"total": plain["total"]}),
        ("the residual", {"residual": plain["residual"]}),
    )
    for name, changes in mistakes:
        with pytest.raises(AssertionError, match=name):
            check(PLAIN, centred | changes, True)


@pytest.mark.parametrize("size", [1.0, 0.1])
def test_equal_landmarks_have_no_component(size):
    """The mean of entries of 0.1 is rounded, and of ones it is not: then the total variance is zero."""
    kernel, X, _, _ = dataclasses.replace(PLAIN, parts=(size, 0.0, 0.0)).given()
    result, _ = components(kernel, jnp.full_like(X, 0.3))
    assert int(result["rank"]) == 0
    for name in ("Z", "ratio"):
        assert not np.asarray(result[name]).any()
    assert size < 1 or float(result["total"]) == 0


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
    assert_allclose(up_to_sign(Z, expected), expected, rtol=0, atol=1e-10)
    assert_allclose(phi.eigenvalues, values, rtol=1e-11)
    # Sums over all eigenvalues are known from the trace.
    K = literal_gram(data.X, data.X)
    total = np.trace(K) - K.mean(axis=1).sum()
    ratio = phi.explained_variance_ratio
    assert_allclose(ratio, values / total, rtol=1e-11)
    # The squared distance of a section from its projection, which has these weights on the landmarks.
    weights = np.asarray(phi.coefficients(Z))
    mixed = (literal_gram(data.Y, data.X).T * weights).sum(axis=0)
    distances = 1 - 2 * mixed + (weights * (K @ weights)).sum(axis=0)
    residual = phi.reconstruction_residual(data.Y)
    assert_allclose(residual, distances, rtol=0, atol=1e-10)


@pytest.mark.parametrize("centered", [True, False])
def test_functions_have_coordinates_in_orthonormal_eigenfunctions(centered):
    data = house.data()
    phi = features.kernel_pca(
        house.KERNEL, data.X, num_components=COUNT, centered=centered
    )
    K = literal_gram(data.X, data.X)
    P = np.float64(phi.projection)
    # Through leading eigenvectors with gaps and values of at least 1e-2.
    allowed = 1e3 * N * house.eps()
    assert_allclose(P @ K @ P.T, np.eye(COUNT), atol=allowed)
    offset = np.asarray(phi.offset)
    assert_allclose(offset, centered * P @ K.mean(axis=1), atol=allowed)
    f = rkhs.Function(house.KERNEL, data.Y, data.values)
    expected = data.values.T @ (np.asarray(phi(data.Y)) + offset)
    assert_allclose(phi.embed(f), expected, atol=10 * allowed)


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
        # Centring would add a second direction.
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


PENTAGON = np.exp(2j * np.pi * np.arange(5) / 5)[:, None].view(float)
"""In kernel PCA and in PCA its two leading eigenvalues are equal, which those of no drawn points are."""


def of_kernel_pca(X, centered=True):
    """Return what is smooth where eigenvalues are equal, centred and normalised or neither."""
    data = house.data()
    probe = data.X[:, :2]
    count = 2 if centered else 3
    phi = features.kernel_pca(
        house.KERNEL, X, num_components=count, centered=centered, normalized=centered
    )
    Z = phi(probe)
    # Values at the probe of projected functions would do as well as these numbers.
    projected = phi.coefficients(Z).T @ jnp.exp(X[:, 0])
    return [
        jnp.sum(phi.reconstruction_residual(probe) ** 2),
        jnp.sum(phi.explained_variance**2),
        jnp.sum(phi.explained_variance_ratio),
        jnp.sum(data.values.T @ Z @ Z.T),
        jnp.sum(data.values.T @ projected),
    ]


def of_plain_kernel_pca(X):
    return of_kernel_pca(X, centered=False)


def of_features(X):
    """Return the same of PCA of the points themselves."""
    pca = features.random_feature_pca(jnp.asarray, X, num_components=2)
    Z = pca(X)
    weights = house.data().values[: len(X)]
    return [jnp.sum(weights.T @ Z @ Z.T), jnp.sum(pca.explained_variance**2)]


def of_many_features(X):
    """Return the same of an image in 8 dimensions, more than there are points."""
    axes, _ = np.linalg.qr(house.rng(2).normal(size=(8, 2)))
    return of_features(X @ axes.T)


@pytest.mark.float64
@pytest.mark.parametrize(
    "quantities",
    [
        of_kernel_pca,
        pytest.param(of_plain_kernel_pca, marks=pytest.mark.slow),
        of_features,
        of_many_features,
    ],
)
def test_gradients_match_differences_where_eigenvalues_are_equal(quantities):
    both = jax.jit(lambda X: (quantities(X), jax.jacrev(quantities)(X)))
    # Half the digits: the rounding and the curvature of a difference are as large.
    step = 1e-5 * house.rng().normal(size=PENTAGON.shape)
    _, slopes = both(PENTAGON)
    above, _ = both(PENTAGON + step)
    below, _ = both(PENTAGON - step)
    differences = (np.asarray(above) - np.asarray(below)) / 2
    along = [(np.asarray(slope) * step).sum() for slope in slopes]
    assert_allclose(along, differences, rtol=1e-6, atol=1e-13)
