"""Plans of paired Fourier features of other kernels than the Gaussian one, for all points of a ball."""

import itertools
import math
from collections.abc import Callable
from typing import Any

import scipy  # its parts load when they are used first

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds

ORDERS = {
    kernels.Matern32: (1.5, (1 + math.sqrt(3)) * math.exp(-math.sqrt(3))),
    kernels.Matern52: (2.5, (8 / 3 + math.sqrt(5)) * math.exp(-math.sqrt(5))),
}
"""Of each Matern kernel: its order, and its value at a distance of one lengthscale."""


def refuse(kernel: Any, ball_only: bool) -> None:
    """Raise where no statement gives a number of frequencies for a kernel that is not Gaussian."""
    name = type(kernel).__name__
    if isinstance(kernel, kernels.Exponential | kernels.Laplacian):
        raise ValueError(
            f"kernel must have frequencies with a finite second moment, got {name}: by Theorem N of "
            "docs/theory/chen2016.md no finite Fourier map keeps its small distances to a relative error; pass "
            "kernels.Gaussian, Matern32 or Matern52 (a map on the rows of a given table can still be certified)"
        )
    if type(kernel) not in ORDERS or not ball_only:
        raise ValueError(
            f"kernel must be kernels.Gaussian, or Matern32 or Matern52 with dim and diameter alone, got {name}; "
            "relative errors of kernel distances are proved for these only"
        )


def ball_certificate(
    kernel: Any, eps: float, delta: float, dim: int, diameter: float
) -> Callable[[int], Bound]:
    """Return the best of `bounds.fourier.ball_matern` over its free parameters, on a fixed grid."""
    nu, correlation = ORDERS[type(kernel)]
    grid = list(
        itertools.product(
            (0.3, 0.6, 0.85), (0.03, 0.07, 0.15), (0.7, 0.8, 0.9), (1.5, 4.0)
        )
    )

    def best(size: int) -> Bound:
        tried = (
            bounds.ball_matern(
                eps=eps, num_frequencies=size, dim=dim, diameter=diameter, nu=nu, correlation=correlation,
                truncation=float(nu / scipy.special.gammaincinv(nu, share * delta / size)), scales=scales * eps,
                tau=math.log(50 / delta), inner=inner, shell=shell,
            )
            for share, scales, inner, shell in grid
        )  # fmt: skip
        return max(tried, key=lambda bound: (bound.valid, bound.probability))

    return best
