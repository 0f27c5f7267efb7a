"""Results that do not depend on a factor of the kernel, or follow it by a power, for factors far from 1 in float32."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import audit, clustering, features, learn, metrics
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian, Polynomial
from jaxkern.rkhs import Covariance

KEY = jax.random.key(0)
N = 160
"""Enough rows for ARPACK, which takes 3 components of 150 rows or more."""


@pytest.fixture
def blobs():
    """Three groups of rows, of which a Gaussian kernel of lengthscale 1 tells the groups apart."""
    rng = np.random.default_rng(5)
    labels = np.arange(N) % 3
    centers = np.array([[0, 0], [4, 0], [0, 4]])
    return np.float32(centers[labels] + rng.normal(size=(N, 2))), labels


def spectral(kernel, X, *, matrix_free):
    result = clustering.kernel_spectral(KEY, kernel, X, 3, matrix_free=matrix_free)
    return result.labels, result.predict(X), result.converged


def kmeans(kernel, X):
    result = clustering.kernel_kmeans(KEY, kernel, X, 3, num_landmarks=40)
    return result.labels, result.predict(X), result.converged


def norms(kernel, X):
    error = audit.spectral_error(
        KEY, features.nystrom(kernel, X[:20]), kernel, X, num_steps=3, num_probes=2
    )
    covariance = Covariance(kernel, X[:20])
    K = gram(kernel, X[:20])
    frobenius = metrics.frobenius_error(K, 0 * K)
    return error.lower, error.upper, covariance.hs_norm(), frobenius


def products(make, kernel, X):
    """Inner products: signs of features are arbitrary."""
    Z = make(kernel, X[:150])(X[150:])
    return Z @ Z.T


nystrom = partial(features.nystrom, rank=5)
kernel_pca = partial(features.kernel_pca, num_components=3)
FUNCTIONS = {
    "eigengap": (0, lambda k, X: learn.eigengap(k, X, num_components=3)),
    "effective rank": (0, lambda k, X: Covariance(k, X[:20]).effective_rank(1.5)),
    "spectral": (0, partial(spectral, matrix_free=False)),
    "spectral without the matrix": (0, partial(spectral, matrix_free=True)),
    "kernel k-means": (0, kmeans),
    "norms": (1, norms),
    "nystrom": (1, partial(products, nystrom)),
    "kernel_pca": (1, partial(products, kernel_pca)),
}


@pytest.mark.parametrize("factor", [1e-30, 1e25])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_follow_a_factor_of_the_kernel(name, factor, blobs):
    power, function = FUNCTIONS[name]
    X, _ = blobs
    expected = function(Gaussian(1.0), X)
    results = function(Gaussian(1.0) * np.float32(factor), X)
    for a, b in zip(jax.tree.leaves(results), jax.tree.leaves(expected), strict=True):
        a, b = np.float64(a) / np.float32(factor) ** power, np.float64(b)
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize("factor", [1e-30, 1e25])
@pytest.mark.parametrize("make", [nystrom, kernel_pca], ids=["nystrom", "kernel_pca"])
def test_slopes_follow_a_factor_of_the_kernel(make, factor, blobs, x64):
    """Beside differences in float64, whose error is of the order of the square of the step."""
    X = blobs[0][::8]

    def total(lengthscale, factor, X):
        factor = jnp.asarray(factor, X.dtype)
        Z = make(Gaussian(lengthscale) * factor, X[:12])(X[12:])
        return jnp.sum(
            (Z @ Z.T) / factor * jnp.arange(1.0, 9.0, dtype=X.dtype)[:, None]
        )

    slope = jax.grad(total)(np.float32(1), np.float32(factor), X)
    ends = [total(np.float64(1 + h), 1.0, np.float64(X)) for h in (-1e-4, 1e-4)]
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / 2e-4, rtol=2e-4)


def test_alignment_of_values_whose_squares_overflow(blobs):
    """Beside the definition in NumPy and float64: columns near 1,500 have values of 1e20, with squares of 1e40."""
    X, labels = blobs
    X = X[:60] * 100 + 1500
    labels = labels[:60]
    K = (np.float64(X) @ np.float64(X).T) ** 3
    H = np.eye(60) - 1 / 60
    K, Y = H @ K @ H, H @ np.eye(3)[labels]
    exact = np.sum(K * (Y @ Y.T)) / np.linalg.norm(K) / np.linalg.norm(Y @ Y.T)
    weights = np.full(60, 1e-25, "float32")
    assert exact > 0.1
    for given in (None, weights, 1 / weights):
        value = learn.alignment(Polynomial(3), X, labels, num_labels=3, weights=given)
        np.testing.assert_allclose(value, exact, rtol=1e-4)
