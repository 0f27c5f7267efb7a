"""Pre-images of kernel PCA features, residuals of reconstruction, and explained variance."""

import functools

import house
import numpy as np
import pytest
from support.numerics import literal_gram

from jaxkern import features

pytestmark = pytest.mark.optimised

STEPS = 500
"""So many that every point converges."""
close = functools.partial(np.testing.assert_allclose, rtol=0)


def fit(X, num_components=house.FEATURES, **options):
    return features.kernel_pca(
        house.KERNEL, X, num_components=num_components, **options
    )


def distances(x, X, coefficients):
    """Return the squared distances of sections at x from combinations of those at X, by columns of coefficients."""
    weights = np.asarray(coefficients)
    values = literal_gram(X, x, house.LENGTHSCALE)
    images = literal_gram(X, X, house.LENGTHSCALE) @ weights
    return 1 - 2 * (weights * values).sum(axis=0) + (weights * images).sum(axis=0)


@pytest.mark.float64
@pytest.mark.parametrize("options", [{}, {"centered": False, "normalized": False}])
def test_coefficients_are_those_of_the_projection(options):
    X = house.data().X
    phi = fit(X, **options)
    Z = phi(X)
    residual = phi.reconstruction_residual(X)
    gap = distances(X, X, phi.coefficients(Z))
    close(residual, gap, atol=1e-10)
    explained = np.asarray(phi.explained_variance)
    total = float(phi.total_variance)
    assert gap.mean() == pytest.approx(total - explained.sum(), rel=1e-9)
    # Uncentred eigenvalues are second moments, not variances.
    if phi.centered:
        close(explained, np.var(np.asarray(Z), axis=0), atol=1e-10)


@pytest.mark.float64
def test_all_components_explain_all_and_points_are_found_again_from_them():
    """The function of a landmark's features is its section, whose pre-image is the landmark."""
    data = house.data(shape=house.ODD)
    X = data.X
    phi = fit(X, num_components=len(X) - 1, normalized=False)
    slack = 1e3 * house.eps()
    close(np.sum(phi.explained_variance_ratio), 1, atol=slack)
    close(phi.reconstruction_residual(X), 0, atol=slack)
    # Other points are not in the span of five sections.
    assert np.asarray(phi.reconstruction_residual(data.Y)).min() > slack
    images = features.preimage(phi, phi(X))
    # A residual of eps is a distance of its root.
    close(images.points, X, atol=100 * house.eps() ** 0.5)
    close(images.residual, 0, atol=slack)
    assert np.asarray(images.converged).all()


@pytest.mark.float64
def test_preimages_are_local_minima_and_the_residual_is_the_distance():
    X = house.data().X
    phi = fit(X)
    Z = phi(X)
    images = features.preimage(phi, Z, num_steps=STEPS)
    points = np.asarray(images.points)
    residual = np.asarray(images.residual)
    coefficients = phi.coefficients(Z)
    close(residual, distances(points, X, coefficients), atol=1e-12)
    assert np.asarray(images.converged).all()
    # Far above the rounding of a residual at this curvature, far below a lengthscale.
    step = 1e-3 * np.eye(X.shape[1])
    for direction in np.concatenate([step, -step]):
        moved = distances(points + direction, X, coefficients)
        assert (moved >= residual - 1e-12).all()
    # It starts from a landmark, and no step is taken that leads further away.
    assert (residual <= distances(X, X, coefficients) + 1e-12).all()


def test_points_that_still_move_have_not_converged():
    """In float32, which has a limit of its own."""
    X = house.data().X
    phi = fit(X)
    images = features.preimage(phi, phi(X), num_steps=1)
    assert not np.asarray(images.converged).all()
