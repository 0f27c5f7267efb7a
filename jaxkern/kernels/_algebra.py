"""Sums, products and multiples of kernels."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern.kernels._base import Kernel, Pair
from jaxkern.pytrees import pytree


def product(a: Pair, b: Pair) -> Pair:
    """Return what is known of the product of two kernels: no difference of close numbers is taken."""
    mean = a.mean * b.mean + a.half * b.half
    half = a.mean * b.half + a.half * b.mean
    return Pair(mean, half, a.gap * b.mean + (a.mean - a.gap) * b.gap + a.half * b.half)


def _times(factor: Any, constant: Any) -> Any:
    """Return the constant of a scaled kernel: that of the zero kernel is zero, be the other one infinite."""
    return 0.0 if checks.is_static(factor) and factor == 0 else factor * constant


@pytree
class Sum(Kernel):
    """K = first + second."""

    first: Any
    second: Any

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both terms are positive semidefinite."""
        return self.first.psd and self.second.psd

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.first._value(x, y) + self.second._value(x, y)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        a, b = self.first._pair(x, y), self.second._pair(x, y)
        return Pair(a.mean + b.mean, a.half + b.half, a.gap + b.gap)

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.first._tile(X, Y) + self.second._tile(X, Y)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        # sqrt(a b) + sqrt(c d) <= sqrt((a + c) (b + d))
        first, second = self.first._rounding(X, Y), self.second._rounding(X, Y)
        return jnp.maximum(first, second) + jnp.finfo(X.dtype).eps

    @property
    def _kappa(self) -> Any:
        return self.first._kappa + self.second._kappa

    def _lipschitz(self, dim: int | None) -> Any:
        return self.first._lipschitz(dim) + self.second._lipschitz(dim)


@pytree
class Product(Kernel):
    """K = first * second."""

    first: Any
    second: Any

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether both factors are positive semidefinite."""
        return self.first.psd and self.second.psd

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.first._value(x, y) * self.second._value(x, y)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        return product(self.first._pair(x, y), self.second._pair(x, y))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.first._tile(X, Y) * self.second._tile(X, Y)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        first, second = self.first._rounding(X, Y), self.second._rounding(X, Y)
        return first + second + first * second + jnp.finfo(X.dtype).eps

    @property
    def _kappa(self) -> Any:
        return self.first._kappa * self.second._kappa

    def _lipschitz(self, dim: int | None) -> Any:
        # |K| <= kappa for a positive semidefinite kernel; one that is not may be unbounded.
        first, second = (k._kappa if k.psd else math.inf for k in (self.first, self.second))
        return first * self.second._lipschitz(dim) + second * self.first._lipschitz(dim)


@pytree
class Scaled(Kernel):
    """K = factor * kernel, factor >= 0."""

    kernel: Any
    factor: Any

    def __post_init__(self) -> None:
        checks.non_negative("factor", self.factor)

    @property
    def psd(self) -> bool:  # type: ignore[override]
        """Whether the scaled kernel is positive semidefinite."""
        return self.kernel.psd

    def _value(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return self.kernel._value(x, y) * checks.scalar("factor", self.factor, x.dtype)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        factor = checks.scalar("factor", self.factor, x.dtype)
        mean, half, gap = self.kernel._pair(x, y)
        return Pair(factor * mean, factor * half, factor * gap)

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.kernel._tile(X, Y) * checks.scalar("factor", self.factor, X.dtype)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return self.kernel._rounding(X, Y) + jnp.finfo(X.dtype).eps

    @property
    def _kappa(self) -> Any:
        return _times(self.factor, self.kernel._kappa)

    def _lipschitz(self, dim: int | None) -> Any:
        return _times(self.factor, self.kernel._lipschitz(dim))
