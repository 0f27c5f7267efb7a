"""Kernels of x - y with K(x, x) = 1: radial ones, and products over coordinates."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import coordinate_sums, rounding, safe_sqrt, squared_distances, squared_distances_direct
from jaxkern._types import ArrayLike, Float
from jaxkern.kernels._base import Kernel, Pair
from jaxkern.kernels._profiles import erlang_tail, matern32, matern52
from jaxkern.pytrees import pytree


class _Stationary(Kernel):
    """A kernel with K(x, x) = 1 that depends on x - y and a lengthscale."""

    lengthscale: Any
    kappa: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        checks.positive("lengthscale", self.lengthscale)

    def _scale(self, dtype: Any) -> jax.Array:
        return checks.scalar("lengthscale", self.lengthscale, dtype)

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        one = jnp.ones((), x.dtype)
        return Pair(one, jnp.zeros((), x.dtype), self._gap((x - y) / self._scale(x.dtype)))

    @abc.abstractmethod
    def _gap(self, u: jax.Array) -> jax.Array:
        """Return 1 - K for a scaled difference u = (x - y) / lengthscale of shape (d,)."""


class _Radial(_Stationary):
    """A kernel profile(|x - y|^2 / lengthscale^2)."""

    _slope: ClassVar[float | None]
    """A bound of the derivative of the profile; None where it behaves like a square root at zero: tiny distances need
    the direct form."""

    @staticmethod
    @abc.abstractmethod
    def _profile(s: jax.Array) -> jax.Array:
        """Return the kernel as a function of the scaled squared distance."""

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        u = (x - y) / self._scale(x.dtype)
        return self._profile(jnp.sum(u * u))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        scale = self._scale(X.dtype)
        if self._slope is None:
            return self._profile(squared_distances_direct(X, Y, scale))
        return squared_distances(X, Y, scale, self._slope, self._profile)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return rounding(X, Y, self._scale(X.dtype), self._slope)


@pytree
class Gaussian(_Radial):
    """K(x, y) = exp(-|x - y|^2 / (2 lengthscale^2)).

    Parameters
    ----------
    lengthscale : positive scalar, in the units of the data. 1-Lipschitz constant exp(-1/2) / lengthscale.
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = 0.5

    @classmethod
    def from_gamma(cls, gamma: Float[ArrayLike, ""]) -> Gaussian:
        """Return exp(-gamma |x - y|^2), scikit-learn's convention: lengthscale = 1 / sqrt(2 gamma)."""
        return cls(_inverse_root(checks.positive("gamma", checks.real("gamma", gamma)), 2.0))

    @classmethod
    def from_width(cls, width: Float[ArrayLike, ""]) -> Gaussian:
        """Return exp(-|x - y|^2 / width^2), the convention of kpotufe2020: lengthscale = width / sqrt(2)."""
        return cls(checks.positive("width", checks.real("width", width)) / math.sqrt(2.0))

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return jnp.exp(-s / 2)

    def _gap(self, u: jax.Array) -> jax.Array:
        return -jnp.expm1(-jnp.sum(u * u) / 2)

    def lipschitz(self, dim: int | None) -> Any:
        return math.exp(-0.5) / self.lengthscale


@pytree
class Exponential(_Radial):
    """K(x, y) = exp(-|x - y| / lengthscale), the Matern kernel of order 1/2 (Euclidean norm).

    Its gradient at coincident points does not exist; zero, the symmetric choice, is returned.

    Parameters
    ----------
    lengthscale : positive scalar.
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = None

    @classmethod
    def from_gamma(cls, gamma: Float[ArrayLike, ""]) -> Exponential:
        """Return exp(-gamma |x - y|): lengthscale = 1 / gamma."""
        return cls(1 / checks.positive("gamma", checks.real("gamma", gamma)))

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return jnp.exp(-safe_sqrt(s))

    def _gap(self, u: jax.Array) -> jax.Array:
        return -jnp.expm1(-_norm(u))

    def lipschitz(self, dim: int | None) -> Any:
        return 1 / self.lengthscale


@pytree
class Matern32(_Radial):
    """K(x, y) = (1 + a) exp(-a), a = sqrt(3) |x - y| / lengthscale.

    Parameters
    ----------
    lengthscale : positive scalar.
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = 1.5

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return matern32(3 * s)

    def _gap(self, u: jax.Array) -> jax.Array:
        return erlang_tail(math.sqrt(3.0) * _norm(u), 2)

    def lipschitz(self, dim: int | None) -> Any:
        return math.sqrt(3.0) * math.exp(-1.0) / self.lengthscale


@pytree
class Matern52(_Radial):
    """K(x, y) = (1 + a + a^2 / 3) exp(-a), a = sqrt(5) |x - y| / lengthscale.

    Parameters
    ----------
    lengthscale : positive scalar.
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = 5 / 6

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return matern52(5 * s)

    def _gap(self, u: jax.Array) -> jax.Array:
        a = math.sqrt(5.0) * _norm(u)
        return erlang_tail(a, 3) + a * a / 6 * jnp.exp(-a)

    def lipschitz(self, dim: int | None) -> Any:
        # The slope a (1 + a) exp(-a) / 3 is largest at the golden ratio.
        a = (1 + math.sqrt(5.0)) / 2
        return math.sqrt(5.0) * a * (1 + a) * math.exp(-a) / 3 / self.lengthscale


class _Coordinatewise(_Stationary):
    """A kernel that is a product over coordinates."""

    @staticmethod
    @abc.abstractmethod
    def _term(u: jax.Array) -> jax.Array:
        """Return what a scaled difference of one coordinate adds to -log K."""

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.exp(-jnp.sum(self._term((x - y) / self._scale(x.dtype))))

    def _gap(self, u: jax.Array) -> jax.Array:
        return -jnp.expm1(-jnp.sum(self._term(u)))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return jnp.exp(-coordinate_sums(self._term, X, Y, self._scale(X.dtype)))

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return rounding(X, Y, self._scale(X.dtype), None)


@pytree
class Laplacian(_Coordinatewise):
    """K(x, y) = exp(-|x - y|_1 / lengthscale), the product form of scikit-learn's laplacian_kernel.

    Parameters
    ----------
    lengthscale : positive scalar.
    """

    lengthscale: Any

    @classmethod
    def from_gamma(cls, gamma: Float[ArrayLike, ""]) -> Laplacian:
        """Return exp(-gamma |x - y|_1), scikit-learn's convention: lengthscale = 1 / gamma."""
        return cls(1 / checks.positive("gamma", checks.real("gamma", gamma)))

    @staticmethod
    def _term(u: jax.Array) -> jax.Array:
        return jnp.abs(u)

    def lipschitz(self, dim: int | None) -> Any:
        return math.sqrt(_needs_dim("Laplacian", dim)) / self.lengthscale


@pytree
class Cauchy(_Coordinatewise):
    """K(x, y) = prod_j 1 / (1 + (x_j - y_j)^2 / lengthscale^2).

    Parameters
    ----------
    lengthscale : positive scalar.
    """

    lengthscale: Any

    @staticmethod
    def _term(u: jax.Array) -> jax.Array:
        return jnp.log1p(u * u)

    def lipschitz(self, dim: int | None) -> Any:
        # On the diagonal of R^d the gradient is sqrt(d) 2 t / (1 + t^2)^(d + 1), largest at t^2 = 1 / (2 d + 1).
        d = _needs_dim("Cauchy", dim)
        t2 = 1 / (2 * d + 1)
        return 2 * math.sqrt(d * t2) / (1 + t2) ** (d + 1) / self.lengthscale


def _norm(u: jax.Array) -> jax.Array:
    return safe_sqrt(jnp.sum(u * u))


def _needs_dim(name: str, dim: int | None) -> int:
    if dim is None:
        raise ValueError(f"dim is needed for the Lipschitz constant of {name}; pass lipschitz(kernel, dim=d)")
    return dim


def _inverse_root(value: Any, factor: float) -> Any:
    return 1 / (math.sqrt(factor) * value**0.5)
