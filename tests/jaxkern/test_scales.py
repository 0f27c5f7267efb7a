"""Results that do not depend on a factor of the kernel, or follow it by a power, for factors far from 1 in float32.

Derivatives follow it by the rules of eigen-decompositions, which are tested with them.
"""

from functools import partial

import house
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose

from jaxkern import audit, clustering, features, learn, metrics
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian, Polynomial
from jaxkern.rkhs import Covariance

N = 160
"""Enough rows for ARPACK, which takes 3 components of 150 rows or more."""
FACTORS = (1e-30, 1e25)


def blobs():
    """Return three groups of rows that a Gaussian kernel of lengthscale 1 tells apart, and their labels."""
    labels = np.arange(N) % 3
    centers = np.array([[0, 0], [4, 0], [0, 4]])
    X = centers[labels] + house.rng(5).normal(size=(N, 2))
    return X.astype(house.dtype()), labels


def clusters(result, X):
    return result.labels, result.predict(X), result.converged


def spectral(kernel, X, *, matrix_free):
    result = clustering.kernel_spectral(
        house.key(), kernel, X, 3, matrix_free=matrix_free
    )
    return clusters(result, X)


def kmeans(kernel, X):
    result = clustering.kernel_kmeans(house.key(), kernel, X, 3, num_landmarks=40)
    return clusters(result, X)


def norms(kernel, X):
    X = X[:24]
    phi = features.nystrom(kernel, X[:8])
    error = audit.spectral_error(house.key(), phi, kernel, X, num_steps=3, num_probes=2)
    K = gram(kernel, X)
    frobenius = metrics.frobenius_error(K, 0 * K)
    return error.lower, error.upper, Covariance(kernel, X).hs_norm(), frobenius


def products(make, kernel, X):
    """Return inner products: signs of features are arbitrary."""
    Z = np.asarray(make(kernel, X[:150])(X[150:]))
    return Z @ Z.T


nystrom = partial(features.nystrom, rank=5)
kernel_pca = partial(features.kernel_pca, num_components=3)
FUNCTIONS = {
    "eigengap": (0, lambda k, X: learn.eigengap(k, X, num_components=3)),
    "effective rank": (0, lambda k, X: Covariance(k, X[:24]).effective_rank(1.5)),
    "spectral": (0, partial(spectral, matrix_free=False)),
    "spectral without the matrix": (0, partial(spectral, matrix_free=True)),
    "kernel k-means": (0, kmeans),
    "norms": (1, norms),
    "nystrom": (1, partial(products, nystrom)),
    "kernel_pca": (1, partial(products, kernel_pca)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_follow_a_factor_of_the_kernel(name):
    power, function = FUNCTIONS[name]
    X, _ = blobs()

    def results(factor):
        kernel = Gaussian(1.0) * house.dtype().type(factor)
        return [np.float64(leaf) for leaf in jax.tree.leaves(function(kernel, X))]

    for factor in FACTORS:
        for result, expected in zip(results(factor), results(1), strict=True):
            result = result / factor**power
            size = np.abs(expected).max()
            assert_allclose(result, expected, rtol=1e-4, atol=1e-4 * size)


def test_alignment_of_values_whose_squares_overflow():
    """Beside the definition in NumPy and float64: columns near 1,500 have values of 1e20, with squares of 1e40."""
    X, labels = blobs()
    X = X[:24] * 100 + 1500
    H = np.eye(24) - 1 / 24
    K = H @ (np.float64(X) @ np.float64(X).T) ** 3 @ H
    Y = H @ np.eye(3)[labels[:24]]
    exact = np.sum(K * (Y @ Y.T)) / np.linalg.norm(K) / np.linalg.norm(Y @ Y.T)
    assert exact > 0.1
    small = np.full(24, 1e-25, X.dtype)
    for weights in (None, small, 1 / small):
        alignment = learn.alignment(
            Polynomial(3), X, labels[:24], num_labels=3, weights=weights
        )
        assert_allclose(alignment, exact, rtol=1e-4)
