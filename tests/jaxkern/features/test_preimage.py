"""Pre-images of kernel PCA features, residuals of reconstruction, and explained variance."""

import dataclasses

import numpy as np
import pytest
from support.numerics import literal_gram

from jaxkern import features, kernels

N, DIM, COMPONENTS = 30, 2, 6
KERNEL = kernels.Gaussian(1.0)


def points(rng, dtype="float64"):
    return rng.normal(size=(N, DIM)).astype(dtype)


def distances(x, X, c):
    """Return the squared distances of sections at x from combinations of those at X, by columns of coefficients."""
    c = np.asarray(c)
    return (
        1
        - 2 * (c * literal_gram(X, x, 1.0)).sum(0)
        + (c * (literal_gram(X, X, 1.0) @ c)).sum(0)
    )


@pytest.mark.parametrize(("centered", "normalized"), [(True, True), (False, False)])
def test_coefficients_are_those_of_the_projection(centered, normalized, x64, rng):
    X = points(rng)
    phi = features.kernel_pca(
        KERNEL, X, num_components=COMPONENTS, centered=centered, normalized=normalized
    )
    gap = distances(X, X, phi.coefficients(phi(X)))
    np.testing.assert_allclose(phi.reconstruction_residual(X), gap, atol=1e-10)
    mean = float(phi.total_variance) - np.asarray(phi.explained_variance).sum()
    assert gap.mean() == pytest.approx(mean, rel=1e-9)


def test_all_components_leave_no_residual_at_the_landmarks_and_some_elsewhere(
    dtype, rng
):
    X = points(rng, dtype)
    phi = features.kernel_pca(kernels.Matern32(1.0), X, num_components=N)
    tolerance = 100 * N * float(np.finfo(dtype).eps)
    assert np.asarray(phi.reconstruction_residual(X)).max() <= tolerance
    assert (
        np.asarray(phi.reconstruction_residual(X + np.asarray(0.5, dtype))).min()
        > tolerance
    )


def test_explained_variance_is_that_of_the_features(x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=COMPONENTS)
    np.testing.assert_allclose(
        phi.explained_variance, np.var(np.asarray(phi(X)), axis=0), rtol=1e-10
    )
    whole = features.kernel_pca(KERNEL, X, num_components=N)
    assert np.asarray(whole.explained_variance_ratio).sum() == pytest.approx(
        1, rel=1e-10
    )


@pytest.mark.parametrize(
    "normalized", [pytest.param(True, marks=pytest.mark.slow), False]
)
def test_points_are_found_again_from_all_their_features(normalized, dtype, rng):
    """With every component f_z is the section of the landmark itself, whose pre-image is the landmark."""
    X = np.asarray(
        np.random.default_rng(0).permutation(np.arange(-7.0, 8.0))[:, None], dtype
    )
    phi = features.kernel_pca(KERNEL, X, num_components=14, normalized=normalized)
    found = features.preimage(phi, phi(X))
    np.testing.assert_allclose(
        found.points, X, atol=2e3 * float(np.finfo(dtype).eps) ** 0.5
    )
    assert all(found.converged.tolist()) and np.asarray(
        found.residual
    ).max() < 1e3 * float(np.finfo(dtype).eps)


def test_preimages_are_local_minima_and_the_residual_is_the_distance(x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=COMPONENTS)
    Z = np.asarray(phi(X))[:5]
    found = features.preimage(phi, Z, num_steps=500)
    where, residual, c = (
        np.asarray(found.points),
        np.asarray(found.residual),
        phi.coefficients(Z),
    )
    np.testing.assert_allclose(residual, distances(where, X, c), atol=1e-12)
    assert all(found.converged.tolist())
    for way in ([1e-3, 0.0], [0.0, 1e-3], [-1e-3, 0.0], [0.0, -1e-3]):
        assert (distances(where + np.asarray(way), X, c) >= residual - 1e-12).all()
    # Never worse than the landmark it starts from.
    assert (residual <= distances(X[:5], X, c) + 1e-12).all()


def test_what_does_not_fit_is_named(x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=COMPONENTS)
    Z = np.asarray(phi(X))
    with pytest.raises(ValueError, match="Gaussian"):
        features.preimage(dataclasses.replace(phi, kernel=kernels.Matern32(1.0)), Z)
    with pytest.raises(ValueError, match="Z"):
        features.preimage(phi, Z[:, :2])
    with pytest.raises(ValueError, match="num_steps"):
        features.preimage(phi, Z, num_steps=0)
    with pytest.raises(ValueError, match="X"):
        phi.reconstruction_residual(X[:, :1])
