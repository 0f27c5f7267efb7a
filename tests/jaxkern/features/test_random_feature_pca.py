"""PCA of random features: against ordinary PCA of the features, and kernel PCA if the features are exact."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.numerics import up_to_sign

from jaxkern.features import kernel_pca, paired_fourier, random_feature_pca
from jaxkern.kernels import Linear

COUNT = house.FEATURES
SHAPES = (house.USUAL, house.ODD)
"""8 features are fewer than the 24 points of the usual shape, and more than the 5 points of the odd one."""


def fit(X, centered):
    """Return a feature map of the usual kernel and the PCA of its features over X."""
    dim = X.shape[1]
    phi = paired_fourier(
        house.key(), house.KERNEL, dim, num_frequencies=4, dtype=house.dtype()
    )
    return phi, random_feature_pca(phi, X, num_components=COUNT, centered=centered)


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
    assert_allclose(pca.mean, mean, rtol=0, atol=allowed)
    assert_allclose(pca.eigenvalues, values, rtol=0, atol=allowed)
    assert_allclose(pca.total_variance, variances.sum(), rtol=allowed)
    ratio = np.asarray(pca.explained_variance_ratio)
    assert_allclose(ratio * variances.sum(), values, rtol=0, atol=allowed)
    # The axis of a small eigenvalue is turned by rounding, but its length is not.
    exists = np.diag(np.arange(COUNT) < rank)
    off_axis = allowed / min(1, values[rank - 1])
    assert_allclose(B.T @ B, exists, rtol=0, atol=off_axis)
    expected = (np.float64(phi(data.Y)) - mean) @ B
    assert_allclose(pca(data.Y), expected, rtol=0, atol=allowed)
    scores = (Z - mean) @ B
    covariance = scores.T @ scores / len(Z)
    assert_allclose(covariance, np.diag(pca.eigenvalues), rtol=0, atol=allowed)


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


def test_the_identity_as_feature_map_gives_principal_components_of_the_points():
    """A plain function is part of the tree structure. Uncentred, this is kernel PCA of the linear kernel."""
    X = house.data().X
    pca = random_feature_pca(jnp.asarray, X, num_components=3, centered=False)
    exact = kernel_pca(Linear(), X, num_components=len(X), centered=False)
    expected = np.asarray(exact(X))[:, :3]
    allowed = tolerance(X) * float(np.abs(X).max()) ** 2
    assert_allclose(up_to_sign(pca(X), expected), expected, atol=allowed)
    assert len(jax.tree.leaves(pca)) == 5
    # The sum of squares of equal points about their mean is zero, and no share of it is a number.
    still = random_feature_pca(jnp.asarray, np.ones_like(X), num_components=3)
    assert int(still.rank) == float(still.total_variance) == 0
    assert not np.asarray(still.explained_variance_ratio).any()
