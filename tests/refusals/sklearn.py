"""What the estimators of `jaxkern.sklearn` refuse; `test_sklearn.py` has a bad value for every parameter."""

import numpy as np

from jaxkern import kernels
from jaxkern import sklearn as estimators

X = np.arange(48, dtype=np.float32).reshape(24, 2)
Y = np.arange(24) % 2
TIES = np.float32([[1, 1]] * 20 + [[0, 1], [2, 3], [4, 5], [6, 7]])


def fitting(estimator, arguments):
    """Return a call that fits an estimator whose parameters are changed by name."""

    def fit(X, y=None, weights=None, **parameters):
        changed = estimator(**parameters)
        if weights is None:
            return changed.fit(X, y)
        return changed.fit(X, y, weights)

    return fit, arguments


def paired_fourier():
    return fitting(estimators.PairedFourier, {"X": X})


def nystrom():
    return fitting(estimators.Nystrom, {"X": X})


def kernel_ridge():
    return fitting(estimators.KernelRidge, {"X": X, "y": Y})


def classifier():
    return fitting(estimators.KernelRidgeClassifier, {"X": X, "y": Y})


def kernel_kmeans():
    return fitting(estimators.KernelKMeans, {"X": X})


def streaming_pca():
    return fitting(estimators.StreamingPCA, {"X": X})


REFUSED = [
    (
        paired_fourier,
        {"lengthscale": 1.0, "gamma": 1.0},
        "lengthscale or gamma, not both",
    ),
    (
        paired_fourier,
        {"kernel": "cauchy", "gamma": 1.0},
        "gamma is for gaussian, laplacian and exponential",
    ),
    (
        paired_fourier,
        {"kernel": kernels.Gaussian(1.0), "gamma": 1.0},
        "lengthscale and gamma are those of the kernel",
    ),
    (paired_fourier, {"X": TIES}, "at least half of all pairs coincide"),
    (nystrom, {"landmarks": X[:, :1]}, "landmarks must have 2 columns"),
    (kernel_ridge, {"y": np.where(Y, np.nan, 1)}, "Input y contains NaN"),
    (kernel_ridge, {"y": Y[1:]}, "inconsistent numbers of samples"),
    (kernel_ridge, {"y": Y * 1e60}, "y must be within the range of float32"),
    (kernel_ridge, {"weights": np.nan}, "sample_weight"),
    (kernel_ridge, {"weights": -1.0}, "sample_weight"),
    (
        kernel_ridge,
        {"weights": np.zeros(24)},
        "Sample weights must contain at least one non-zero",
    ),
    (classifier, {"weights": Y}, "at least 2 classes .* got 1 class: .*1"),
    (kernel_kmeans, {"n_clusters": 25}, "n_clusters must be at most 24"),
    (streaming_pca, {"n_components": 51}, "n_components must be at most 50"),
    (
        streaming_pca,
        {"n_components": 5, "n_frequencies": 2},
        "n_components must be at most 4",
    ),
]
