"""What `jaxkern.learn` refuses."""

import numpy as np

from jaxkern import learn
from jaxkern.kernels import Gaussian, Linear

X = np.zeros((4, 2), np.float32)


def fit_lengthscale():
    arguments = {"kernel": Gaussian(1.0), "X": X, "objective": len}
    return learn.fit_lengthscale, arguments


def eigengap():
    return learn.eigengap, {"kernel": Gaussian(1.0), "X": X, "num_components": 2}


def alignment():
    arguments = {"labels": np.zeros(4, np.int32), "num_labels": 2}
    return learn.alignment, {"kernel": Gaussian(1.0), "X": X} | arguments


REFUSED = [
    (fit_lengthscale, {"kernel": Linear()}, "kernel must have a lengthscale to learn"),
    (fit_lengthscale, {"num_steps": 0}, "num_steps must be at least 1, got 0"),
    (fit_lengthscale, {"learning_rate": 0.0}, "learning_rate must be positive"),
    (fit_lengthscale, {"learning_rate": X[0]}, "learning_rate must be a"),
    (fit_lengthscale, {"factor": 1.0}, "factor must be a number above 1, got 1.0"),
    (fit_lengthscale, {"factor": X[0]}, "factor must be a number above 1"),
    (eigengap, {"num_components": 4}, "num_components must be at most 3"),
    (alignment, {"labels": np.zeros(3, np.int32)}, r"labels must have shape \(4,\)"),
    (alignment, {"labels": X[:, 0]}, "labels must hold integer labels"),
    (alignment, {"num_labels": 0}, "num_labels must be at least 1"),
]
