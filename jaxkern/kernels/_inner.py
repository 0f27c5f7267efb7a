"""Kernels of the inner product, and the distance kernel: unbounded, with a diagonal that is not constant."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import HIGHEST, safe_sqrt, squared_distances_direct
from jaxkern.kernels._base import Kernel, Pair, product
from jaxkern.pytrees import pytree, static


@pytree
class Linear(Kernel):
    """K(x, y) = <x, y>."""

    kappa: ClassVar[float] = math.inf

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.sum(x * y)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        d = x - y
        return Pair(
            jnp.sum(x * x + y * y) / 2, jnp.sum(d * (x + y)) / 2, jnp.sum(d * d) / 2
        )

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return jnp.matmul(X, Y.T, precision=HIGHEST)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return X.shape[1] * _half_eps(X)

    def lipschitz(self, dim: int | None) -> float:
        return math.inf


@pytree
class Polynomial(Kernel):
    """K(x, y) = (<x, y> / lengthscale^2 + offset)^degree.

    Parameters
    ----------
    degree : whole number >= 1, static.
    offset : non-negative scalar. A negative one would not be positive semidefinite.
    lengthscale : positive scalar.
    """

    degree: int = static(default=2)
    offset: Any = 1.0
    lengthscale: Any = 1.0
    kappa: ClassVar[float] = math.inf

    def __post_init__(self) -> None:
        checks.count("degree", self.degree)
        checks.positive("lengthscale", self.lengthscale)
        checks.non_negative("offset", self.offset)

    def _base(self, dtype: Any) -> tuple[jax.Array, jax.Array]:
        return checks.scalar("lengthscale", self.lengthscale, dtype), checks.scalar(
            "offset", self.offset, dtype
        )

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        scale, offset = self._base(x.dtype)
        return (jnp.sum(x / scale * (y / scale)) + offset) ** self.degree

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        scale, offset = self._base(x.dtype)
        # Points are subtracted before they are scaled: rounding would not cancel.
        mean, half, gap = (value / scale / scale for value in Linear()._pair(x, y))
        base = Pair(mean + offset, half, gap)
        result = base
        for _ in range(self.degree - 1):
            result = product(result, base)
        return result

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        scale, offset = self._base(X.dtype)
        return (
            jnp.matmul(X / scale, (Y / scale).T, precision=HIGHEST) + offset
        ) ** self.degree

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        # |<x, y>| + offset is at most the root of the product of the same for (x, x) and (y, y).
        return jnp.expm1(self.degree * (X.shape[1] + 4) * _half_eps(X))

    def lipschitz(self, dim: int | None) -> float:
        return math.inf


@pytree
class Distance(Kernel):
    """K(x, y) = |x - y|: symmetric and 1-Lipschitz, not positive semidefinite (amini2021, the distance kernel)."""

    psd: ClassVar[bool] = False
    kappa: ClassVar[float] = 0.0

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return safe_sqrt(jnp.sum((x - y) ** 2))

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        raise ValueError(
            "kernel must be positive semidefinite to have a kernel distance, got Distance"
        )

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return safe_sqrt(squared_distances_direct(X, Y, jnp.ones((), X.dtype)))

    def lipschitz(self, dim: int | None) -> float:
        return 1.0


def _half_eps(X: jax.Array) -> jax.Array:
    return jnp.asarray(jnp.finfo(X.dtype).eps / 2, X.dtype)
