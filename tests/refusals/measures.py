"""What `jaxkern.measures` refuses."""

import house
import numpy as np

from jaxkern import measures
from jaxkern.kernels import Gaussian, Matern32

X = np.ones((3, 2), np.float32)
ONES = X[:, 0]


def mean_gaussian_kernel():
    arguments = {"means": X, "noise": 1.0, "lengthscale": 1.0}
    return measures.mean_gaussian_kernel, arguments


def mean_kernel():
    arguments = {"kernel": Gaussian(1.0), "means": X, "noise": 1.0}
    return measures.mean_kernel, arguments


def mean_kernel_between():
    arguments = {"kernel": Gaussian(1.0), "U": X, "V": X, "noise": 1.0}
    return measures.mean_kernel_between, arguments


def log_sphere_mgf():
    return measures.log_sphere_mgf, {"u": X, "dim": 2}


def sphere_mgf():
    return measures.sphere_mgf, {"u": X, "dim": 2}


def sample():
    return measures.Discrete(X, ONES).sample, {"key": house.key(), "num_points": 1}


def sample_of_two_weights():
    law = measures.Discrete(X, ONES[:2])
    return law.sample, {"key": house.key(), "num_points": 1}


def gaussian_grid():
    return measures.gaussian_grid, {"num_points": 5}


def gaussian_spectrum():
    return measures.gaussian_spectrum, {"lengthscale": 1.0, "std": 1.0}


def eigenvalues():
    return measures.GaussianSpectrum(ONES, ONES).eigenvalues, {"num": 1}


REFUSED = [
    (mean_gaussian_kernel, {"noise": -ONES}, "noise must be non-negative"),
    (
        mean_gaussian_kernel,
        {"noise": X[0]},
        r"noise must have shape \(\) or \(3,\), one number .* got \(2,\)",
    ),
    (mean_gaussian_kernel, {"lengthscale": 0.0}, "lengthscale must be positive"),
    (
        mean_gaussian_kernel,
        {"noise": measures.DiagonalNoise(ONES)},
        r"variances must have shape \(2,\) or \(3, 2\)",
    ),
    (
        mean_gaussian_kernel,
        {"noise": measures.GeneralNoise(X.T)},
        r"covariances must have shape \(2, 2\)",
    ),
    (
        mean_kernel,
        {"kernel": Gaussian(1.0) + 2.0 * Matern32(1.0)},
        "kernel must be Gaussian, .*, got Matern32",
    ),
    (mean_kernel_between, {"noise": ONES}, "other_noise must be given"),
    (
        mean_kernel_between,
        {"other_noise": measures.RadialNoise(1.0)},
        "other_noise must be of the kind of noise, IsotropicNoise, got RadialNoise",
    ),
    (mean_kernel_between, {"V": X[:, :1]}, "V must have 2 columns"),
    (sphere_mgf, {"dim": 0}, "dim must be at least 1"),
    (log_sphere_mgf, {"u": np.arange(3)}, "u must have dtype float32 or float64"),
    (sample, {"num_points": 0}, "num_points must be at least 1"),
    (sample_of_two_weights, {}, r"weights must have shape \(3,\), got \(2,\)"),
    (gaussian_grid, {"num_points": 1}, "num_points must be at least 2"),
    (gaussian_grid, {"width": 0.0}, "width must be positive"),
    (gaussian_grid, {"std": 0.0}, "std must be positive"),
    (gaussian_spectrum, {"lengthscale": 0}, "lengthscale must be positive"),
    (gaussian_spectrum, {"std": X}, r"std must have shape \(d,\)"),
    (eigenvalues, {"num": 0}, "num must be at least 1"),
]
