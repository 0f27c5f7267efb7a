"""Measures on points: finite-support ones, the Gaussian one, noise, and the mean kernels that noise leaves.

Noise models carry the covariances of X_i = mu_i + sqrt(Sigma_i) W_i; for Gaussian W_i the mean of the kernel matrix
is known in closed form, or as a one-dimensional integral.
"""

from jaxkern.measures._discrete import Discrete, gaussian_grid
from jaxkern.measures._mean_kernel import (
    mean_gaussian_kernel,
    mean_kernel,
    mean_kernel_between,
)
from jaxkern.measures._noise import (
    DiagonalNoise,
    GeneralNoise,
    IsotropicNoise,
    RadialNoise,
)
from jaxkern.measures._spectrum import GaussianSpectrum, gaussian_spectrum
from jaxkern.measures._sphere import log_sphere_mgf, sphere_mgf

__all__ = [
    "DiagonalNoise", "Discrete", "GaussianSpectrum", "GeneralNoise", "IsotropicNoise", "RadialNoise", "gaussian_grid",
    "gaussian_spectrum", "log_sphere_mgf", "mean_gaussian_kernel", "mean_kernel", "mean_kernel_between", "sphere_mgf",
]  # fmt: skip
