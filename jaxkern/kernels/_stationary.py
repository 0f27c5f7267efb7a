"""Kernels of x - y with K(x, x) = 1: radial ones, and products over coordinates."""

from __future__ import annotations

import abc
import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._distances import (
    coordinate_sums,
    rounding,
    safe_sqrt,
    squared_distances,
    squared_distances_direct,
)
from jaxkern._types import ArrayLike, Float
from jaxkern.kernels._base import Kernel, Pair
from jaxkern.kernels._profiles import erlang_tail, matern32, matern52
from jaxkern.pytrees import pytree


class _Stationary(Kernel):
    """A kernel with K(x, x) = 1 that depends on (x - y) / lengthscale, a scalar or one number for each column."""

    lengthscale: Any
    kappa: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        checks.positive("lengthscale", self.lengthscale)
        if isinstance(self.lengthscale, list | tuple):
            kind = type(self.lengthscale).__name__
            raise ValueError(
                f"lengthscale must be a number or an array, one for each column, got a {kind}"
            )

    def _scale(self, X: jax.Array) -> jax.Array:
        """Return the lengthscale in the dtype of points (..., d), of shape () or (d,)."""
        return checks.scalar(
            "lengthscale", self.lengthscale, X.dtype, columns=X.shape[-1]
        )

    def _columns(self, dim: int | None) -> jax.Array | None:
        """Return the lengthscales of the columns, or None where all share one."""
        if not getattr(self.lengthscale, "ndim", 0):
            return None
        scales = checks.as_array("lengthscale", self.lengthscale)
        return checks.scalar(
            "lengthscale",
            scales,
            scales.dtype,
            columns=scales.shape[0] if dim is None else dim,
        )

    def _pair(self, x: jax.Array, y: jax.Array) -> Pair:
        one = jnp.ones((), x.dtype)
        return Pair(one, jnp.zeros((), x.dtype), self._gap((x - y) / self._scale(x)))

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
        u = (x - y) / self._scale(x)
        return self._profile(jnp.sum(u * u))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        scale = self._scale(X)
        if self._slope is None:
            return self._profile(squared_distances_direct(X, Y, scale))
        return squared_distances(X, Y, scale, self._slope, self._profile)

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return rounding(X, Y, self._scale(X), self._slope)

    def _shortest(self, dim: int | None) -> Any:
        """Return the lengthscale, the smallest one of several."""
        scales = self._columns(dim)
        return self.lengthscale if scales is None else jnp.min(scales)


@pytree
class Gaussian(_Radial):
    """K(x, y) = exp(-|x - y|^2 / (2 lengthscale^2)).

    Parameters
    ----------
    lengthscale : positive scalar, in the units of the data, or an array (d,), one for each column; x and y are divided
        by it. 1-Lipschitz constant exp(-1/2) / lengthscale, of the smallest one.
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = 0.5

    @classmethod
    def from_gamma(cls, gamma: Float[ArrayLike, ""]) -> Gaussian:
        """Return exp(-gamma |x - y|^2), scikit-learn's convention: lengthscale = 1 / sqrt(2 gamma)."""
        return cls(
            1
            / (
                math.sqrt(2.0)
                * checks.positive("gamma", checks.real("gamma", gamma)) ** 0.5
            )
        )

    @classmethod
    def from_width(cls, width: Float[ArrayLike, ""]) -> Gaussian:
        """Return exp(-|x - y|^2 / width^2), the convention of kpotufe2020: lengthscale = width / sqrt(2)."""
        return cls(
            checks.positive("width", checks.real("width", width)) / math.sqrt(2.0)
        )

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return jnp.exp(-s / 2)

    def _gap(self, u: jax.Array) -> jax.Array:
        return -jnp.expm1(-jnp.sum(u * u) / 2)

    def lipschitz(self, dim: int | None) -> Any:
        return math.exp(-0.5) / self._shortest(dim)


@pytree
class Exponential(_Radial):
    """K(x, y) = exp(-|x - y| / lengthscale), the Matern kernel of order 1/2 (Euclidean norm).

    Its gradient at coincident points does not exist; zero, the symmetric choice, is returned.

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each column (ARD).
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
        return 1 / self._shortest(dim)


@pytree
class Matern32(_Radial):
    """K(x, y) = (1 + a) exp(-a), a = sqrt(3) |x - y| / lengthscale.

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each column (ARD).
    """

    lengthscale: Any
    _slope: ClassVar[float | None] = 1.5

    @staticmethod
    def _profile(s: jax.Array) -> jax.Array:
        return matern32(3 * s)

    def _gap(self, u: jax.Array) -> jax.Array:
        return erlang_tail(math.sqrt(3.0) * _norm(u), 2)

    def lipschitz(self, dim: int | None) -> Any:
        return math.sqrt(3.0) * math.exp(-1.0) / self._shortest(dim)


@pytree
class Matern52(_Radial):
    """K(x, y) = (1 + a + a^2 / 3) exp(-a), a = sqrt(5) |x - y| / lengthscale.

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each column (ARD).
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
        return math.sqrt(5.0) * a * (1 + a) * math.exp(-a) / 3 / self._shortest(dim)


class _Coordinatewise(_Stationary):
    """A kernel that is a product over coordinates."""

    @staticmethod
    @abc.abstractmethod
    def _term(u: jax.Array) -> jax.Array:
        """Return what a scaled difference of one coordinate adds to -log K."""

    def evaluate(self, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.exp(-jnp.sum(self._term((x - y) / self._scale(x))))

    def _gap(self, u: jax.Array) -> jax.Array:
        return -jnp.expm1(-jnp.sum(self._term(u)))

    def _tile(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return jnp.exp(-coordinate_sums(self._term, X, Y, self._scale(X)))

    def _rounding(self, X: jax.Array, Y: jax.Array) -> jax.Array:
        return rounding(X, Y, self._scale(X), None)


@pytree
class Laplacian(_Coordinatewise):
    """K(x, y) = exp(-|x - y|_1 / lengthscale), the product form of scikit-learn's laplacian_kernel.

    Where the points share a coordinate its derivative in that coordinate does not exist; zero, the symmetric choice, is
    returned.

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each column (ARD).
    """

    lengthscale: Any

    @classmethod
    def from_gamma(cls, gamma: Float[ArrayLike, ""]) -> Laplacian:
        """Return exp(-gamma |x - y|_1), scikit-learn's convention: lengthscale = 1 / gamma."""
        return cls(1 / checks.positive("gamma", checks.real("gamma", gamma)))

    @staticmethod
    def _term(u: jax.Array) -> jax.Array:
        return _magnitude(u)

    def lipschitz(self, dim: int | None) -> Any:
        scales = self._columns(dim)
        if scales is not None:
            shortest = jnp.min(scales)
            return jnp.sqrt(jnp.sum((shortest / scales) ** 2)) / shortest
        return math.sqrt(_needs_dim("Laplacian", dim)) / self.lengthscale


@pytree
class Cauchy(_Coordinatewise):
    """K(x, y) = prod_j 1 / (1 + (x_j - y_j)^2 / lengthscale^2).

    Parameters
    ----------
    lengthscale : positive scalar, or an array (d,), one for each column (ARD).
    """

    lengthscale: Any

    @staticmethod
    def _term(u: jax.Array) -> jax.Array:
        return jnp.log1p(u * u)

    def lipschitz(self, dim: int | None) -> Any:
        scales = self._columns(dim)
        if scales is not None:
            return _steepest(scales)
        # On the diagonal of R^d the gradient is sqrt(d) 2 t / (1 + t^2)^(d + 1), largest at t^2 = 1 / (2 d + 1).
        d = _needs_dim("Cauchy", dim)
        t2 = 1 / (2 * d + 1)
        return 2 * math.sqrt(d * t2) / (1 + t2) ** (d + 1) / self.lengthscale


def _steepest(scales: jax.Array) -> jax.Array:
    """Return the largest slope of prod_j 1 / (1 + (t_j / scale_j)^2).

    With p_j for a factor and a_j = 1 / scale_j^2 it is 2 prod_j p_j sqrt(S), S = sum_j a_j p_j (1 - p_j). Where it is
    largest 2 S = a_j p_j (2 p_j - 1) or p_j = 1, and S is between 3/16 and 1/2 of the largest a_j. The right side falls
    in S, and errors of S count by their square.
    """
    shortest = jnp.min(scales)
    a = (shortest / scales) ** 2

    def factors(S: jax.Array) -> jax.Array:
        return jnp.minimum((1 + jnp.sqrt(1 + 16 * S / a)) / 4, 1)

    def raised(S: jax.Array, step: jax.Array) -> tuple[jax.Array, None]:
        p = factors(S + step)
        return jnp.where(jnp.sum(a * p * (1 - p)) > S + step, S + step, S), None

    steps = jnp.asarray(0.5 ** np.arange(2, 32), a.dtype)
    p = lax.stop_gradient(
        factors(lax.scan(raised, jnp.asarray(3 / 16, a.dtype), steps)[0])
    )
    return 2 * jnp.prod(p) * jnp.sqrt(jnp.sum(a * p * (1 - p))) / shortest


@jax.custom_jvp
def _magnitude(u: jax.Array) -> jax.Array:
    """Return |u|, whose derivative at 0 is 0: that of `jnp.abs` is 1 there."""
    return jnp.abs(u)


_magnitude.defjvps(lambda tangent, _, u: jnp.sign(u) * tangent)


def _norm(u: jax.Array) -> jax.Array:
    return safe_sqrt(jnp.sum(u * u))


def _needs_dim(name: str, dim: int | None) -> int:
    if dim is None:
        raise ValueError(
            f"dim is needed for the Lipschitz constant of {name}; pass lipschitz(kernel, dim=d)"
        )
    return dim
