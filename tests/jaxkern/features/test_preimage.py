"""Pre-images of kernel PCA features, residuals of reconstruction, and explained variance."""

import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, kernels, rkhs

N, DIM = 30, 2
KERNEL = kernels.Gaussian(1.0)


def points(rng, dtype=jnp.float64):
    return jnp.asarray(rng.normal(size=(N, DIM)), dtype)


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("centered", [True, False])
def test_coefficients_are_those_of_the_projection(centered, normalized, x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=6, centered=centered, normalized=normalized)
    f = rkhs.Function(KERNEL, X, phi.coefficients(phi(X)))
    gap = rkhs.norm(rkhs.section(KERNEL, X) - f) ** 2
    np.testing.assert_allclose(phi.reconstruction_residual(X), gap, atol=1e-10)
    mean = phi.total_variance - phi.explained_variance.sum()
    assert float(jnp.mean(gap)) == pytest.approx(float(mean), rel=1e-9)


def test_all_components_leave_no_residual_at_the_landmarks_and_some_elsewhere(dtype, rng):
    X = points(rng, dtype)
    phi = features.kernel_pca(kernels.Matern32(1.0), X, num_components=N)
    tolerance = 100 * N * float(jnp.finfo(dtype).eps)
    assert float(jnp.max(phi.reconstruction_residual(X))) <= tolerance
    assert float(jnp.min(phi.reconstruction_residual(X + 0.5))) > tolerance


def test_explained_variance_is_that_of_the_features(x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=4)
    np.testing.assert_allclose(phi.explained_variance, np.var(phi(X), axis=0), rtol=1e-10)
    whole = features.kernel_pca(KERNEL, X, num_components=N)
    assert float(whole.explained_variance_ratio.sum()) == pytest.approx(1, rel=1e-10)


@pytest.mark.parametrize("normalized", [True, False])
def test_points_are_found_again_from_all_their_features(normalized, dtype, rng):
    """With every component f_z is the section of the landmark itself, whose pre-image is the landmark."""
    X = jnp.asarray(np.random.default_rng(0).permutation(np.arange(-7.0, 8.0))[:, None], dtype)
    phi = features.kernel_pca(KERNEL, X, num_components=14, normalized=normalized)
    found = features.preimage(phi, phi(X))
    np.testing.assert_allclose(found.points, X, atol=2e3 * float(jnp.finfo(dtype).eps) ** 0.5)
    assert found.converged.all() and float(found.residual.max()) < 1e3 * float(jnp.finfo(dtype).eps)


def test_preimages_are_local_minima_and_the_residual_is_the_distance(x64, rng):
    X = points(rng)
    phi = features.kernel_pca(KERNEL, X, num_components=3)
    Z = phi(X[:5])
    found = features.preimage(phi, Z, num_steps=500)
    f = rkhs.Function(KERNEL, X, phi.coefficients(Z))

    def distances(x):
        sections = rkhs.section(KERNEL, x)
        return jnp.diagonal(rkhs.inner(sections, sections) - 2 * rkhs.inner(f, sections).T + rkhs.inner(f, f))

    np.testing.assert_allclose(found.residual, distances(found.points), atol=1e-12)
    assert found.converged.all()
    for way in ([1e-3, 0.0], [0.0, 1e-3], [-1e-3, 0.0], [0.0, -1e-3]):
        assert (distances(found.points + jnp.asarray(way)[None, :]) >= found.residual - 1e-12).all()
    # Never worse than the landmark it starts from.
    assert (found.residual <= distances(X[:5]) + 1e-12).all()


def test_what_does_not_fit_is_named(rng):
    X = points(rng, jnp.float32)
    phi = features.kernel_pca(KERNEL, X, num_components=3)
    with pytest.raises(ValueError, match="Gaussian"):
        features.preimage(features.kernel_pca(kernels.Matern32(1.0), X, num_components=3), phi(X))
    with pytest.raises(ValueError, match="Z"):
        features.preimage(phi, phi(X)[:, :2])
    with pytest.raises(ValueError, match="num_steps"):
        features.preimage(phi, phi(X), num_steps=0)
    with pytest.raises(ValueError, match="X"):
        phi.reconstruction_residual(X[:, :1])
