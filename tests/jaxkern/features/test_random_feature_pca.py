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
    mean = centered * Z.mean(axis=0)
    allowed = tolerance(data.X)
    assert_allclose(pca.mean, mean, rtol=0, atol=allowed)
    variances = np.linalg.svd(Z - mean, compute_uv=False)[:COUNT] ** 2 / len(Z)
    assert_allclose(pca.eigenvalues, variances, rtol=0, atol=allowed)
    total = ((Z - mean) ** 2).sum() / len(Z)
    assert_allclose(pca.total_variance, total, rtol=allowed)
    # The total is divided by, and may be as small as a rounding.
    ratio = pca.explained_variance_ratio
    assert_allclose(ratio, variances / total, rtol=0, atol=allowed / total)
    rank = int(pca.rank)
    assert rank <= pca.num_features == COUNT
    exists = np.diag(np.arange(COUNT) < rank)
    B = np.float64(pca.basis)
    # The axis of a small eigenvalue is turned by rounding.
    turned = allowed / min(1, variances[rank - 1])
    assert_allclose(B.T @ B, exists, rtol=0, atol=turned)
    scores = (Z - mean) @ B
    covariance = scores.T @ scores / len(Z)
    assert_allclose(covariance, np.diag(pca.eigenvalues), rtol=0, atol=turned)
    expected = (np.float64(phi(data.Y)) - mean) @ B
    assert_allclose(pca(data.Y), expected, rtol=0, atol=allowed)


@pytest.mark.parametrize("centered", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
def test_directions_that_are_rounding_are_dropped(shape, centered):
    """All points are the same, or all but one: that makes a direction for each, and one fewer if centred."""
    X = house.data(shape=shape).X
    points = np.tile(X[:1], (len(X), 1))
    for directions in (1, 2):
        _, pca = fit(points, centered)
        rank = directions - centered
        assert int(pca.rank) == rank
        assert np.isfinite(pca.explained_variance_ratio).all()
        for columns in (pca(points), pca.basis, pca.eigenvalues[None]):
            used = np.asarray(columns).any(axis=0)
            assert used[:rank].all() and not used[rank:].any()
        # From now on one point is apart.
        points[0] = X[1]


@pytest.mark.parametrize("centered", [True, False])
def test_with_the_identity_it_is_kernel_pca_of_the_linear_kernel(centered):
    """A plain function is part of the tree structure. Further components of the linear kernel do not exist."""
    data = house.data()
    X = data.X
    pca = random_feature_pca(jnp.asarray, X, num_components=3, centered=centered)
    exact = kernel_pca(Linear(), X, num_components=len(X), centered=centered)
    expected = np.asarray(exact(data.Y))
    assert int(exact.rank) == 3 and exact.definite
    assert not expected[:, 3:].any()
    Z = up_to_sign(pca(data.Y), expected[:, :3])
    # The covariance has entries as large as the squares of the points.
    allowed = tolerance(X) * float(np.abs(X).max()) ** 2
    assert_allclose(Z, expected[:, :3], atol=allowed)
    assert len(jax.tree.leaves(pca)) == 5


def test_equal_points_have_no_variance_to_divide_by():
    """The mean of ones is not rounded."""
    ones = np.ones_like(house.data().X)
    pca = random_feature_pca(jnp.asarray, ones, num_components=3)
    assert float(pca.total_variance) == 0
    assert not np.asarray(pca.explained_variance_ratio).any()
