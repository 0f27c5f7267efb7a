"""What `jaxkern.audit` refuses."""

import jax
import numpy as np

from jaxkern import audit
from jaxkern.kernels import Distance, Gaussian

X = np.zeros((5, 2), np.float32)
MAP = {"phi": len, "kernel": Gaussian(1.0), "X": X}


def distance_error():
    return audit.distance_error, MAP | {"Y": X}


def sampled_distance_error():
    return audit.sampled_distance_error, MAP | {"key": jax.random.key(0)}


def spectral_error():
    arguments = MAP | {"key": jax.random.key(0), "num_probes": 2}
    return audit.spectral_error, arguments


def exceeding():
    errors = audit.DistanceError(X[0, 0], X[0, 0], np.int32(5), np.True_)
    return errors.exceeding, {"delta": 0.1}


REFUSED = [
    (distance_error, {"kernel": Distance()}, "kernel must be positive semidefinite"),
    (distance_error, {"Y": X[:3]}, "Y must have"),
    (sampled_distance_error, {"num_pairs": 0}, "num_pairs must be at least 1, got 0"),
    (sampled_distance_error, {"X": X[:1]}, "X must have"),
    (spectral_error, {"num_steps": 0}, "num_steps must be at least 1, got 0"),
    (spectral_error, {"num_probes": 6}, "num_probes must be at most 5"),
    (spectral_error, {"probability": 1.0}, "probability must be"),
    (spectral_error, {"block_size": 0}, "block_size must be at least 1, got 0"),
    (exceeding, {"delta": 0.0}, "delta must be"),
]
