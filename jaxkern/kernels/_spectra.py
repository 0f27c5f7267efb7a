"""Spectral laws: the distributions of w with K(x, y) = E cos<w, x - y>, one for each shift-invariant kernel.

By Bochner's theorem such a law is the Fourier transform of the kernel. Every law here is a scale mixture of normals:
w = s z / lengthscale with z standard normal and an independent s > 0. A radial kernel has one s for the whole vector,
so that w is rotation invariant; a product over coordinates has one for each coordinate.

| kernel | s | law of lengthscale * w |
| --- | --- | --- |
| Gaussian | 1 | standard normal |
| Exponential | 1 / |chi_1| | multivariate t with 1 degree of freedom (multivariate Cauchy) |
| Matern32, Matern52 | sqrt(3) / chi_3, sqrt(5) / chi_5 | multivariate t with 3, 5 degrees of freedom |
| Laplacian | 1 / |chi_1| in each coordinate | independent Cauchy |
| Cauchy | chi_2 in each coordinate | independent Laplace: E exp(-t^2 chi_2^2 / 2) = 1 / (1 + t^2) |

The Matern kernel of order nu has the spectral density proportional to (2 nu / lengthscale^2 + |w|^2)^(-nu - dim / 2),
which is that of a multivariate t with 2 nu degrees of freedom and scale 1 / lengthscale.

Of an array of lengthscales, one for each column, each divides its coordinate of w.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxkern.draws import normal_rows
from jaxkern.kernels._base import Kernel, Scaled
from jaxkern.kernels._stationary import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Matern32,
    Matern52,
)


class SpectralLaw(NamedTuple):
    """w = s z, z normal: how s comes from independent normals, and whether a vector has one s or one per coordinate."""

    num_normals: int
    scale: Callable[[jax.Array], jax.Array]
    """From normals (..., num_normals) to s (...)."""
    rotation_invariant: bool

    def frequencies(
        self, key: jax.Array, num_frequencies: int, dim: int, dtype: Any
    ) -> jax.Array:
        """Draw frequencies (num_frequencies, dim) for lengthscale 1: row i depends on the key, dim and i alone."""
        sets = 1 if self.rotation_invariant else dim
        normals = normal_rows(
            key, num_frequencies, dim + sets * self.num_normals, dtype
        )
        mixing = normals[:, dim:].reshape(num_frequencies, sets, self.num_normals)
        return normals[:, :dim] * self.scale(mixing)


def _student(normals: jax.Array) -> jax.Array:
    """Return sqrt(degrees of freedom) / chi.

    A chi below eps has a probability of about eps, and its digits are those of the uniform number behind it: it is
    raised to eps, so that frequencies stay finite.
    """
    return 1 / jnp.maximum(
        _chi(normals) / math.sqrt(normals.shape[-1]), jnp.finfo(normals.dtype).eps
    )


def _chi(normals: jax.Array) -> jax.Array:
    return jnp.sqrt(jnp.sum(normals * normals, axis=-1))


LAWS: dict[type, SpectralLaw] = {
    Gaussian: SpectralLaw(
        0,
        lambda normals: jnp.ones(normals.shape[:-1], normals.dtype),
        rotation_invariant=True,
    ),
    Exponential: SpectralLaw(1, _student, rotation_invariant=True),
    Matern32: SpectralLaw(3, _student, rotation_invariant=True),
    Matern52: SpectralLaw(5, _student, rotation_invariant=True),
    Laplacian: SpectralLaw(1, _student, rotation_invariant=False),
    Cauchy: SpectralLaw(2, _chi, rotation_invariant=False),
}


def unscaled(kernel: Any) -> tuple[Any, list[Any]]:
    """Return the kernel without the constants in front of it, and these."""
    factors = []
    while isinstance(kernel, Scaled):
        factors.append(kernel.factor)
        kernel = kernel.kernel
    return kernel, factors


def spectral_law(kernel: Kernel, *, rotation_invariant: bool = False) -> SpectralLaw:
    """Return the law of the frequencies of a kernel, constants in front of it left out."""
    base, _ = unscaled(kernel)
    law = LAWS.get(type(base))
    if law is None:
        known = ", ".join(sorted(cls.__name__ for cls in LAWS))
        raise ValueError(
            f"kernel must have a known spectral law, got {type(base).__name__}; pass one of {known}, or a positive "
            "multiple of one (features of a sum are those of its terms, side by side)"
        )
    if rotation_invariant and not law.rotation_invariant:
        known = ", ".join(
            sorted(cls.__name__ for cls, law in LAWS.items() if law.rotation_invariant)
        )
        raise ValueError(
            "kernel must have a rotation invariant spectral law for orthogonal features and fastfood, "
            f"got {type(base).__name__}, a product over coordinates; pass one of {known}, or use paired_fourier"
        )
    return law
