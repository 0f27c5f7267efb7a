"""PCA of random features: against ordinary PCA of the features, and kernel PCA if the features are exact."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import up_to_sign

from jaxkern.features import kernel_pca, paired_fourier, random_feature_pca
from jaxkern.kernels import Linear
from jaxkern.linalg import prefers_partial

FREQUENCIES = 4
"""8 features: fewer than the 24 points of the usual shape, and more than the 5 points of the odd one."""
COUNT = house.FEATURES
SHAPES = (house.USUAL, house.ODD)


def fit(X, centered=True, num_frequencies=FREQUENCIES, num_components=COUNT):
    """Return a feature map of the usual kernel and the PCA of its features over X."""
    phi = paired_fourier(
        house.key(),
        house.KERNEL,
        X.shape[1],
        num_frequencies=num_frequencies,
        dtype=house.dtype(),
    )
    pca = random_feature_pca(phi, X, num_components=num_components, centered=centered)
    return phi, pca


def tolerance(X):
    """Return the rounding of a covariance of norm at most 1."""
    return 10 * len(X) * house.eps()


@pytest.mark.parametrize("family", house.FAMILIES)
@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_it_is_textbook_pca_of_the_features(shape, centered, family):
    """Orthonormal axes along which the variances are the leading eigenvalues: they are leading eigenvectors."""
    data = house.data(family, shape)
    phi, pca = fit(data.X, centered)
    Z = np.float64(phi(data.X))
    mean = Z.mean(axis=0) * centered
    variances = np.linalg.svd(Z - mean, compute_uv=False) ** 2 / len(Z)
    values = np.zeros(COUNT)
    values[: min(Z.shape)] = variances[:COUNT]
    rank = int(pca.rank)
    B = np.float64(pca.basis)
    allowed = tolerance(data.X)
    np.testing.assert_allclose(pca.mean, mean, rtol=0, atol=allowed)
    np.testing.assert_allclose(pca.eigenvalues, values, rtol=0, atol=allowed)
    np.testing.assert_allclose(pca.total_variance, variances.sum(), rtol=allowed)
    ratio = np.asarray(pca.explained_variance_ratio)
    np.testing.assert_allclose(ratio * variances.sum(), values, rtol=0, atol=allowed)
    # The axis of a small eigenvalue is turned by rounding, but its length is not.
    exists = np.diag(np.arange(COUNT) < rank)
    off_axis = allowed / min(1, values[rank - 1])
    np.testing.assert_allclose(B.T @ B, exists, rtol=0, atol=off_axis)
    expected = (np.float64(phi(data.Y)) - mean) @ B
    np.testing.assert_allclose(pca(data.Y), expected, rtol=0, atol=allowed)
    scores = (Z - mean) @ B
    covariance = scores.T @ scores / len(Z)
    np.testing.assert_allclose(
        covariance, np.diag(pca.eigenvalues), rtol=0, atol=allowed
    )


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_directions_that_are_rounding_are_dropped(shape, centered):
    """All points are the same, or all but one: that makes a direction for each, and one fewer if centred."""
    X = house.data(shape=shape).X
    same = np.tile(X[:1], (len(X), 1))
    one_apart = np.concatenate([same[1:], X[1:2]])
    for points, directions in ((same, 1), (one_apart, 2)):
        _, pca = fit(points, centered)
        rank = directions - centered
        assert int(pca.rank) == rank
        Z = np.asarray(pca(points))
        assert Z[:, :rank].any(axis=0).all() and not Z[:, rank:].any()
        assert not np.asarray(pca.eigenvalues)[rank:].any()
        assert not np.asarray(pca.basis)[:, rank:].any()
        assert np.isfinite(np.asarray(pca.explained_variance_ratio)).all()


@pytest.mark.float64
def test_few_components_of_many_features_are_those_of_all():
    """The partial solver starts at 150 features and points."""
    X = house.data(shape=(160, 8, 3)).X
    phi, pca = fit(X, num_frequencies=75, num_components=2)
    assert prefers_partial(150, 2)
    Z = np.asarray(phi(X))
    _, singular, axes = np.linalg.svd(Z - Z.mean(axis=0), full_matrices=False)
    variances = singular**2 / len(Z)
    np.testing.assert_allclose(pca.eigenvalues, variances[:2], rtol=1e-11)
    basis = axes[:2].T
    np.testing.assert_allclose(up_to_sign(pca.basis, basis), basis, rtol=0, atol=1e-10)
    np.testing.assert_allclose(pca.total_variance, variances.sum(), rtol=1e-12)


def test_the_identity_as_feature_map_gives_principal_components_of_the_points():
    """A plain function is part of the tree structure. Uncentred, this is kernel PCA of the linear kernel."""
    X = house.data().X
    pca = random_feature_pca(jnp.asarray, X, num_components=3, centered=False)
    exact = kernel_pca(Linear(), X, num_components=len(X), centered=False)
    expected = np.asarray(exact(X))[:, :3]
    allowed = tolerance(X) * float(np.abs(X).max()) ** 2
    np.testing.assert_allclose(up_to_sign(pca(X), expected), expected, atol=allowed)
    assert len(jax.tree.leaves(pca)) == 5
    # The sum of squares of equal points about their mean is zero, and no share of it is a number.
    still = random_feature_pca(jnp.asarray, np.ones_like(X), num_components=3)
    assert int(still.rank) == float(still.total_variance) == 0
    assert not np.asarray(still.explained_variance_ratio).any()


@pytest.mark.float64
@pytest.mark.parametrize("dim", [2, 8])
def test_gradients_match_differences_where_variances_are_equal(dim):
    """A regular pentagon has equal variances. So has its image in 8 dimensions, more than there are points."""
    rng = house.rng()
    angles = 2 * np.pi * np.arange(5) / 5
    corners = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    axes, _ = np.linalg.qr(rng.normal(size=(dim, 2)))
    X = corners @ axes.T
    direction = rng.normal(size=X.shape)
    weights = rng.normal(size=(5, 5))

    def quantities(X):
        pca = random_feature_pca(jnp.asarray, X, num_components=2)
        Z = pca(X)
        return jnp.stack(
            [jnp.sum(weights * (Z @ Z.T)), jnp.sum(pca.explained_variance**2)]
        )

    values_and_slopes = jax.jit(lambda X: (quantities(X), jax.jacrev(quantities)(X)))
    _, slopes = values_and_slopes(X)
    above, _ = values_and_slopes(X + 1e-5 * direction)
    below, _ = values_and_slopes(X - 1e-5 * direction)
    differences = (np.asarray(above) - np.asarray(below)) / 2e-5
    along = (np.asarray(slopes) * direction).sum(axis=(1, 2))
    np.testing.assert_allclose(along, differences, rtol=1e-6, atol=1e-8)
