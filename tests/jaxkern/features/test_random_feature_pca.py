"""PCA of random features: against ordinary PCA of the features, and kernel PCA where the features are exact."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.decomposition import PCA
from support.numerics import eps, up_to_sign

from jaxkern import features
from jaxkern.features import RandomFeaturePCA, kernel_pca, nystrom, paired_fourier, random_feature_pca
from jaxkern.kernels import Gaussian, Linear
from jaxkern.linalg import prefers_partial

N, DIM, COMPONENTS = 30, 3, 4
FEW, MANY = 5, 25
"""Frequencies: 10 features, fewer than points, and 50, more."""
LENGTHSCALE = 1.5


def data(rng, dtype, n=N):
    return jnp.asarray(rng.normal(size=(n, DIM)), dtype)


def draw(m, dtype, **options):
    return paired_fourier(jax.random.key(0), Gaussian(LENGTHSCALE), DIM, num_frequencies=m, dtype=dtype, **options)


def fit(phi, X, **options):
    return random_feature_pca(phi, X, **{"num_components": COMPONENTS} | options)


def tolerance(dtype):
    """Rounding of a covariance of norm below 1, through leading eigenvectors with gaps of at least 1e-2."""
    return 1e2 * N * eps(dtype)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("m", [FEW, MANY])
def test_it_is_textbook_pca_of_the_features(m, centered, dtype, rng):
    X, Y = data(rng, dtype), data(rng, dtype)
    phi = draw(m, dtype)
    pca = fit(phi, X, centered=centered)
    Z = np.float64(phi(X))
    mean = Z.mean(0) if centered else np.zeros(2 * m)
    _, singular, axes = np.linalg.svd(Z - mean, full_matrices=False)
    assert np.diff(singular[: COMPONENTS + 1] ** 2 / N).max() < -1e-3
    expected = (np.float64(phi(Y)) - mean) @ axes[:COMPONENTS].T
    found = pca(Y)
    assert isinstance(pca, RandomFeaturePCA) and pca.centered is centered and pca.num_features == COMPONENTS
    assert found.shape == (N, COMPONENTS) and found.dtype == dtype and int(pca.rank) == COMPONENTS
    np.testing.assert_allclose(up_to_sign(found, expected), expected, rtol=0, atol=10 * tolerance(dtype))
    np.testing.assert_allclose(
        up_to_sign(pca.basis, axes[:COMPONENTS].T), axes[:COMPONENTS].T, atol=10 * tolerance(dtype)
    )
    np.testing.assert_allclose(pca.mean, mean, rtol=0, atol=4 * eps(dtype))
    variances = singular**2 / N
    np.testing.assert_allclose(pca.eigenvalues, variances[:COMPONENTS], rtol=0, atol=N * eps(dtype))
    np.testing.assert_allclose(pca.explained_variance, variances[:COMPONENTS], rtol=0, atol=N * eps(dtype))
    np.testing.assert_allclose(pca.total_variance, variances.sum(), rtol=N * eps(dtype))
    ratio = variances[:COMPONENTS] / variances.sum()
    np.testing.assert_allclose(pca.explained_variance_ratio, ratio, rtol=0, atol=2 * N * eps(dtype))


@pytest.mark.parametrize("m", [210, 240])
def test_few_components_of_many_features_are_those_of_all(m, x64, rng):
    """By the partial solver, 420 features of 440 points and 480 of them."""
    X = data(rng, "float64", 440)
    phi = draw(m, "float64")
    assert prefers_partial(min(440, 2 * m), COMPONENTS)
    pca, Z = fit(phi, X), np.asarray(phi(X))
    _, singular, axes = np.linalg.svd(Z - Z.mean(0), full_matrices=False)
    np.testing.assert_allclose(pca.eigenvalues, singular[:COMPONENTS] ** 2 / 440, rtol=1e-11)
    expected = axes[:COMPONENTS].T
    np.testing.assert_allclose(up_to_sign(pca.basis, expected), expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(pca.total_variance, (singular**2).sum() / 440, rtol=1e-12)


@pytest.mark.parametrize("m", [FEW, MANY])
def test_scikit_learn_finds_the_same_components(m, x64, rng):
    X, Y = data(rng, "float64"), data(rng, "float64")
    phi = draw(m, "float64")
    pca, peer = fit(phi, X), PCA(COMPONENTS, svd_solver="full").fit(np.asarray(phi(X)))
    expected = peer.transform(np.asarray(phi(Y)))
    np.testing.assert_allclose(up_to_sign(pca(Y), expected), expected, rtol=0, atol=1e-11)
    np.testing.assert_allclose(pca.eigenvalues, peer.explained_variance_ * (N - 1) / N, rtol=1e-11)
    np.testing.assert_allclose(pca.explained_variance_ratio, peer.explained_variance_ratio_, rtol=1e-11)


@pytest.mark.parametrize("centered", [True, False])
def test_with_exact_features_it_is_kernel_pca(centered, dtype, rng):
    """Nystrom features with all of X as landmarks have the inner products of the kernel with every point of X."""
    X, Y = data(rng, dtype), data(rng, dtype)
    kernel = Gaussian(LENGTHSCALE)
    exact = kernel_pca(kernel, X, num_components=COMPONENTS, centered=centered)
    pca = fit(nystrom(kernel, X), X, centered=centered)
    # Features of the smallest directions kept have large relative errors, small in absolute terms.
    allowed = 10 * tolerance(dtype)
    np.testing.assert_allclose(N * pca.eigenvalues, exact.eigenvalues, rtol=0, atol=allowed)
    np.testing.assert_allclose(up_to_sign(pca(X), exact(X)), exact(X), rtol=0, atol=allowed)
    np.testing.assert_allclose(up_to_sign(pca(Y), exact(Y)), exact(Y), rtol=0, atol=allowed)


def test_the_identity_as_feature_map_gives_principal_components_of_the_points(dtype, rng):
    """A plain function is part of the tree structure; uncentred and linear, it is the kernel PCA of `Linear`, too."""
    X = data(rng, dtype)
    pca = random_feature_pca(jnp.asarray, X, num_components=DIM, centered=False)
    exact = kernel_pca(Linear(), X, num_components=DIM, centered=False)
    np.testing.assert_allclose(up_to_sign(pca(X), exact(X)), exact(X), rtol=0, atol=10 * tolerance(dtype))
    assert len(jax.tree.leaves(pca)) == 5


@pytest.mark.parametrize("m", [FEW, MANY])
def test_new_features_are_centred_and_uncorrelated_with_orthonormal_axes(m, dtype, rng):
    X = data(rng, dtype)
    pca = fit(draw(m, dtype), X)
    Z, B = np.float64(pca(X)), np.float64(pca.basis)
    np.testing.assert_allclose(Z.mean(0), 0, atol=4 * eps(dtype))
    np.testing.assert_allclose(Z.T @ Z / N, np.diag(pca.eigenvalues), rtol=0, atol=tolerance(dtype))
    np.testing.assert_allclose(B.T @ B, np.eye(COMPONENTS), rtol=0, atol=tolerance(dtype))


@pytest.mark.parametrize("m", [FEW, MANY])
def test_repeated_points_change_neither_axes_nor_variances(m, rng):
    """Both sides of the choice between the two matrices with the same eigenvalues: 30 and 60 points, 50 features."""
    X = data(rng, "float32")
    phi = draw(m, "float32")
    once, twice = fit(phi, X), fit(phi, jnp.concatenate([X, X]))
    np.testing.assert_allclose(twice.eigenvalues, once.eigenvalues, rtol=0, atol=2 * N * eps("float32"))
    np.testing.assert_allclose(up_to_sign(twice.basis, once.basis), once.basis, atol=10 * tolerance("float32"))


# --- rank ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 8])
@pytest.mark.parametrize("centered", [True, False])
def test_directions_that_are_rounding_are_dropped(m, centered, dtype, rng):
    """Five copies of one point and one of another, 2 or 16 features: one direction centred, two uncentred."""
    X = data(rng, dtype, 2)
    X = jnp.concatenate([jnp.tile(X[:1], (5, 1)), X[1:]])
    pca = random_feature_pca(draw(m, dtype), X, num_components=min(6, 2 * m), centered=centered)
    rank = 2 - centered
    assert int(pca.rank) == rank and pca.rank.dtype == jnp.int32
    assert not np.asarray(pca.eigenvalues)[rank:].any() and not np.asarray(pca.basis)[:, rank:].any()
    assert not np.asarray(pca(X))[:, rank:].any() and np.asarray(pca(X))[:, :rank].any(0).all()


@pytest.mark.parametrize("m", [1, 8])
def test_equal_points_have_no_components(m, dtype, rng):
    X = jnp.tile(data(rng, dtype, 1), (6, 1))
    pca = random_feature_pca(draw(m, dtype), X, num_components=2)
    assert int(pca.rank) == 0 and not np.asarray(pca(X)).any()
    assert jnp.isfinite(pca.explained_variance_ratio).all()
    alone = random_feature_pca(draw(m, dtype), X[:1], num_components=1)
    assert int(alone.rank) == 0 and float(alone.total_variance) == 0 and not np.asarray(alone.explained_variance_ratio)


# --- transformations -------------------------------------------------------------------------------------------------


def test_a_thousand_datasets_compile_once_and_equal_the_loop():
    """n = 200, d = 5, each with its key."""
    X = jnp.asarray(np.random.default_rng(1).normal(size=(1000, 200, 5)), jnp.float32)
    traces = []

    def one(key, X):
        traces.append(None)
        phi = paired_fourier(key, Gaussian(LENGTHSCALE), 5, num_frequencies=4)
        pca = random_feature_pca(phi, X, num_components=2)
        return pca.eigenvalues, jnp.abs(pca(X[:3]))

    def keys():
        return jax.random.split(jax.random.key(2), 1000)

    mapped = jax.jit(jax.vmap(one))
    eigenvalues, images = mapped(keys(), X)
    mapped(keys(), X + 1)
    assert len(traces) == 1
    for i in (0, 499, 999):
        alone = one(keys()[i], X[i])
        np.testing.assert_allclose(eigenvalues[i], alone[0], rtol=0, atol=200 * eps("float32"))
        gap = float(alone[0][0] - alone[0][1])
        np.testing.assert_allclose(images[i], alone[1], rtol=0, atol=200 * eps("float32") / min(gap, 1e-2))


def test_leading_axes_are_kept_and_no_rows_give_no_rows(rng):
    X = data(rng, "float32")
    pca = fit(draw(FEW, "float32"), X)
    stacked = pca(X.reshape(5, 6, DIM))
    np.testing.assert_allclose(stacked, pca(X).reshape(5, 6, COMPONENTS), rtol=0, atol=10 * eps("float32"))
    assert pca(X[0]).shape == (COMPONENTS,) and pca(X[:0]).shape == (0, COMPONENTS)


@pytest.mark.parametrize("m", [FEW, MANY])
def test_gradients_through_the_fit_match_differences(m, x64, rng):
    """In the points, the lengthscale and through both of the matrices, of what does not depend on signs."""
    X, direction = data(rng, "float64"), data(rng, "float64")
    target = jnp.asarray(rng.normal(size=(N, N)))

    @jax.jit
    def loss(step):
        phi = paired_fourier(jax.random.key(0), Gaussian(LENGTHSCALE + step), DIM, num_frequencies=m, dtype="float64")
        pca = random_feature_pca(phi, X + step * direction, num_components=COMPONENTS)
        Z = pca(X)
        return (target * (Z @ Z.T)).sum() + pca.explained_variance_ratio[0]

    difference = (loss(1e-5) - loss(-1e-5)) / 2e-5
    assert float(jax.grad(loss)(0.0)) == pytest.approx(float(difference), rel=1e-6)


@pytest.mark.parametrize("dim", [2, 8])
def test_gradients_match_differences_where_variances_are_equal(dim, x64, rng):
    """A regular pentagon, and its image in 8 dimensions, more than there are points."""
    angles = 2 * np.pi * np.arange(5) / 5
    X = jnp.asarray(np.stack([np.cos(angles), np.sin(angles)], axis=1) @ np.linalg.qr(rng.normal(size=(dim, 2)))[0].T)
    direction, weights = jnp.asarray(rng.normal(size=X.shape)), jnp.asarray(rng.normal(size=(5, 5)))

    @jax.jit
    def loss(X):
        pca = random_feature_pca(jnp.asarray, X, num_components=2)
        return jnp.stack([(weights * (pca(X) @ pca(X).T)).sum(), (pca.explained_variance**2).sum()])

    difference = (loss(X + 1e-5 * direction) - loss(X - 1e-5 * direction)) / 2e-5
    found = (jax.jit(jax.jacrev(loss))(X) * direction[None]).sum((1, 2))
    np.testing.assert_allclose(found, difference, rtol=1e-6, atol=1e-8)


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"phi": 3.0}, r"phi must be a feature map, a callable .* got 3\.0"),
        ({"phi": features.PairedFourier}, "phi must be a feature map"),
        ({"phi": lambda X: X[:2]}, r"phi must return one row for each of the 5 rows of X, got shape \(2, 3\)"),
        ({"phi": lambda X: X[:, 0]}, r"phi\(X\) must have rank 2"),
        ({"phi": lambda X: X > 0}, r"phi\(X\) must have dtype float32"),
        ({"X": np.zeros(5, np.float32)}, "X must have rank 2"),
        ({"X": np.zeros((5, 2), np.float32)}, r"X must have shape \(..., 3\), got \(5, 2\)"),
        ({"X": np.zeros((5, 3), np.int32)}, "X must have dtype float32 or float64"),
        ({"X": np.zeros((0, 3), np.float32)}, "X must have at least 1 row"),
        ({"num_components": 0}, "num_components must be at least 1, got 0"),
        ({"num_components": 6}, "num_components must be at most 5 .the number of points and of features., got 6"),
        ({"num_components": 2.0}, "num_components must be a static whole number"),
        ({"centered": 1}, "centered must be True or False, got 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"phi": draw(FEW, "float32"), "X": np.zeros((5, 3), np.float32), "num_components": 2} | changes
    with pytest.raises(ValueError, match=message):
        random_feature_pca(**arguments)


def test_a_map_refuses_other_points(rng, x64):
    X = data(rng, "float32")
    pca = fit(draw(FEW, "float32"), X)
    with pytest.raises(ValueError, match=r"X must have shape \(..., 3\)"):
        pca(X[:, :2])
    with pytest.raises(ValueError, match="X must have the dtype of the fitted map"):
        pca(X.astype("float64"))
    plain = partial(random_feature_pca, num_components=2)(jnp.asarray, X)
    with pytest.raises(ValueError, match="features of X must have the dtype of the fitted map"):
        plain(X.astype("float64"))
    with pytest.raises(ValueError, match=r"features of X must have shape \(..., 3\)"):
        plain(X[:, :2])
