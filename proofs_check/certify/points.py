"""Rows of a table twice: in float64 as the kernel sees them, and in the precision of maps as a map gets them.

The errors of maps are measured against the kernel of the first, so that they contain what rounding does to the second.
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
from jaxkern.features import as_map
from jaxkern.gram import kernel_distance

# Rows that a map is given at once, at most. Programs hold the features of a block several times.
_BLOCK = 1024
# Rows of a block are a multiple of this. Samples have different numbers of distinct rows; each would be a compile.
_ROUND = 64
# Features are filled up with zeros to a power of two between these, or a multiple of the larger one. With a program for
# each number of features, a search would compile one at every size.
_COLUMNS = 64, 256
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

    def rounding(self, kernel: Any, factor: float = 1.0) -> np.ndarray:
        """Return how far rounding may move the features of each row, (s,), as a length in the kernel's space.

        `factor` is how many times all numbers of the inputs, and the features, are rounded.
        """
        limits = np.finfo(self.inputs.dtype)
        raw = self.points * self.scale + self.mean
        # Without the tiny number, what float32 cannot hold, such as 1e-50, would not seem to move.
        change = raw * float(limits.eps) + np.copysign(float(limits.tiny), raw)
        moved = self.points + factor * change / self.scale
        lengths = partial(_moves, kernel, factor * float(limits.eps))
        with jax.enable_x64(True):
            return by_blocks(lengths, self.points, moved)


def rows_of(points: Any) -> Rows:
    """Return `Rows` as they are, and points as both sides of them. Raises ValueError if not a floating matrix."""
    if isinstance(points, Rows):
        return points
    inputs = np.asarray(checks.matrix("points", points))
    return Rows(inputs.astype(np.float64), inputs)


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the different rows in the order of their first appearance, and how often each appears."""
    rows = np.ascontiguousarray(rows + 0)  # the negative zero is zero
    as_bytes = np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))
    _, first, counts = np.unique(
        rows.view(as_bytes).ravel(), return_index=True, return_counts=True
    )
    order = np.argsort(first)
    return first[order], counts[order]


def in_blocks(rows: np.ndarray) -> np.ndarray:
    """Return rows (n, dim) as equal blocks (number, side, dim); copies of the last row fill the last block."""
    count = len(rows)
    number = -(-count // _BLOCK)
    side = _ROUND * -(-count // (_ROUND * number))
    filled = np.pad(rows, ((0, number * side - count), (0, 0)), mode="edge")
    return filled.reshape(number, side, -1)


def by_blocks(function: Callable[..., Any], *arrays: np.ndarray) -> np.ndarray:
    """Return what a function makes of the rows of some arrays (n, ...), block by block."""
    if not len(arrays[0]):
        return np.zeros(0)
    blocks = zip(*map(in_blocks, arrays), strict=True)
    parts = [np.asarray(function(*block)) for block in blocks]
    return np.concatenate(parts)[: len(arrays[0])]


def mapped(phi: Any, inputs: np.ndarray) -> np.ndarray:
    """Return the features (n, m) of inputs (n, dim) in the precision of the map, filled up with columns of zeros."""
    return by_blocks(partial(embed, as_map(phi)), inputs)


@compiled
def embed(phi: Any, points: jax.Array) -> jax.Array:
    """Return the features of points, with as many columns of zeros as `padding` says."""
    Z = phi(points)
    return jnp.pad(Z, ((0, 0), (0, padding(Z.shape[1]))))


def padding(num_features: int) -> int:
    """Return how many columns of zeros fill features up to 64, 128 or a multiple of 256."""
    smallest, largest = _COLUMNS
    power = 1 << (num_features - 1).bit_length()
    return -num_features % min(max(power, smallest), largest)


@compiled
def _moves(kernel: Any, relative: Any, X: jax.Array, moved: jax.Array) -> jax.Array:
    """Return |K_x - K_y| for the rows x of X and y of `moved`, and `relative` times the length of K_x."""
    lengths = jnp.sqrt(jax.vmap(lambda x: kernel(x, x))(X))
    return kernel_distance(kernel, X, moved) + relative * lengths
