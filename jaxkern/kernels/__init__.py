"""Kernels as callable PyTrees: one pair of points in, one number out.

Every kernel holds one word of bandwidth, `lengthscale`: a number, or an array with one for each column (ARD). It knows
its Gram tile by a fast route and, for a pair, the *gap* (K(x, x) + K(y, y)) / 2 - K(x, y) without cancellation, from
which the kernel distance follows. Kernels are closed under `+`, `*` and scaling by a non-negative number. A user's own
two-argument function works wherever a kernel does.
"""

from jaxkern.kernels._bandwidth import (
    quantile_lengthscale,
    sampled_quantile_lengthscale,
)
from jaxkern.kernels._base import (
    FromFunction,
    Kernel,
    KernelLike,
    Product,
    Scaled,
    Sum,
    as_kernel,
    kappa,
    lipschitz,
    psd_kernel,
)
from jaxkern.kernels._inner import Distance, Linear, Polynomial
from jaxkern.kernels._stationary import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern32,
    Matern52,
)

__all__ = [
    "Cauchy", "Distance", "Exponential", "FromFunction", "Gaussian", "Kernel", "KernelLike", "Laplacian", "Linear",
    "Matern32", "Matern52", "Polynomial", "Product", "Scaled", "Sum", "as_kernel", "kappa", "lipschitz", "psd_kernel",
    "quantile_lengthscale", "sampled_quantile_lengthscale",
]  # fmt: skip
