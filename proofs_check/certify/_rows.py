"""Rows of a table twice, in float64 as the kernel sees them and in the map's precision as a map gets them; features.

Errors of maps are measured against the kernel of the first, so that what rounding does to the second counts as well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxlib.version import __version__ as _jaxlib

from jaxkern import checks
from jaxkern.pytrees import pytree

_COLUMNS = 64, 256
"""Features are filled up to powers of two between these, or to multiples of the larger one: neighbouring sizes share
programs."""
_OPTIONS = {
    "xla_backend_optimization_level": 1,
    "xla_llvm_disable_expensive_passes": False,
}
_OPTIONS |= (
    {"xla_cpu_use_fusion_emitters": False} if _jaxlib.startswith("0.10.") else {}
)
compiled = partial(jax.jit, compiler_options=_OPTIONS)
"""`jax.jit` for programs that run for seconds in all: they compile in half the time or less, and run as fast."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Points (s, dim) in float64, and inputs for maps in their precision: scale * points + mean, rounded."""

    points: np.ndarray
    inputs: np.ndarray
    mean: Any = 0.0
    scale: Any = 1.0

    def at(self, chosen: np.ndarray) -> Rows:
        """Return some of the rows, by number."""
        return Rows(self.points[chosen], self.inputs[chosen], self.mean, self.scale)

    def moved(self, factor: float = 1.0) -> np.ndarray:
        """Return the points after a relative change of factor * eps(dtype) in every number of the inputs."""
        limits = np.finfo(self.inputs.dtype)
        raw = self.points * self.scale + self.mean
        return (
            self.points
            + factor
            * (raw * float(limits.eps) + np.copysign(float(limits.tiny), raw))
            / self.scale
        )


def rows_of(points: Any) -> Rows:
    """Return `Rows` as they are, and points as both sides of them. Raises ValueError if not a floating matrix."""
    if isinstance(points, Rows):
        return points
    given = checks.matrix("points", points)
    return Rows(np.asarray(points, np.float64), np.asarray(given))


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the different rows in the order of their first appearance, and how often each appears."""
    rows = np.ascontiguousarray(rows + 0)  # the negative zero is zero
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]


def features(phi: Any, points: jax.Array) -> jax.Array:
    """Return the features of points, (n, num_features), with columns of zeros up to 64, 128 or a multiple of 256."""
    return padded(phi(points), jnp.pad)


def padded(Z: Any, pad: Callable[..., Any] = np.pad) -> Any:
    """Return a matrix with columns of zeros up to 64, 128 or a multiple of 256."""
    step = min(max(1 << (Z.shape[1] - 1).bit_length(), _COLUMNS[0]), _COLUMNS[1])
    return pad(Z, ((0, 0), (0, -Z.shape[1] % step)))


embed = compiled(features)


@pytree
class First:
    """The map of the first `kept` frequencies of a larger one, each with a feature or two; zeros stand for the rest."""

    feature_map: Any
    kept: Any

    @property
    def num_features(self) -> int:
        """Number of features, zeros included."""
        return self.feature_map.num_features  # type: ignore[no-any-return]

    def __call__(self, X: jax.Array) -> jax.Array:
        """Return the features, as many as the larger map has, at the scale of the smaller one."""
        Z, total = self.feature_map(X), self.feature_map.num_frequencies
        scale = jnp.sqrt(total / jnp.asarray(self.kept, Z.dtype))
        return jnp.where(
            (jnp.arange(Z.shape[1]) % total < self.kept)[None, :], Z * scale, 0
        )


def ranged(Z: jax.Array) -> jax.Array:
    """Return the features over the power of two at their largest entry, which rounds nothing.

    What Kernel JL keeps may be too small for its square.
    """
    exponent = jnp.frexp(jnp.max(jnp.abs(Z)))[1]
    return jnp.ldexp(Z, -exponent)


def scaled(Z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the features at a scale of 1 less their mean, and the mean squared length before that is taken off."""
    Z = ranged(Z)
    return Z - jnp.mean(Z, axis=0, keepdims=True), jnp.mean((Z * Z).sum(axis=1))
