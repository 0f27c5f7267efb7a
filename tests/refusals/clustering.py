"""What `jaxkern.clustering` refuses."""

import jax
import numpy as np

from jaxkern import clustering
from jaxkern.kernels import Distance, Gaussian

X = np.zeros((4, 2), np.float32)
EYE = np.eye(4, dtype=np.float32)


def arguments(**others):
    return {"key": jax.random.key(0), "num_clusters": 2, **others}


def kernel_spectral():
    return clustering.kernel_spectral, arguments(kernel=Gaussian(1.0), X=X)


def kernel_kmeans():
    return clustering.kernel_kmeans, arguments(kernel=Gaussian(1.0), X=X)


def spectral_from_gram():
    return clustering.spectral_from_gram, arguments(K=EYE)


def predict():
    parts = [np.zeros(4, np.int32), X[:2], X[0, 0], np.bool_(True), X[0], EYE[:2]]
    partition = clustering.SpectralPartition(*parts)
    return clustering.SpectralPartition.predict, {"self": partition, "values": EYE}


REFUSED = [
    (
        kernel_spectral,
        {"num_clusters": 5},
        "num_clusters must be at most 4 .the number of points., got 5",
    ),
    (kernel_spectral, {"X": X[0]}, "X must have"),
    (kernel_spectral, {"num_restarts": 0}, "num_restarts must be at least 1"),
    (kernel_spectral, {"matrix_free": 1}, "matrix_free must be True or False"),
    (kernel_spectral, {"num_used": 3}, "num_used must be at most 2 .num_clusters."),
    (kernel_kmeans, {"num_used": X[0, 0]}, "num_used must be"),
    (kernel_kmeans, {"num_clusters": 0}, "num_clusters must be at least 1, got 0"),
    (kernel_kmeans, {"num_landmarks": 5}, "num_landmarks must be at most 4"),
    (kernel_kmeans, {"num_landmarks": 2, "rank": 3}, "rank must be at most 2"),
    (kernel_kmeans, {"kernel": Distance()}, "kernel must be positive semidefinite"),
    (spectral_from_gram, {"K": X}, "K must be a square matrix"),
    (spectral_from_gram, {"num_clusters": 5}, "num_clusters must be at most 4"),
    (predict, {"values": X}, "values must have 4 columns"),
]
