"""Rows of a table twice: in float64 as the kernel sees them, and in the map's precision as a map gets them.

Errors of maps are measured against the kernel of the first, so that what rounding does to the second counts as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern.gram import kernel_distance


@dataclass(frozen=True, eq=False)
class Rows:
    """Points (s, dim) in float64, and inputs for maps in their precision: scale * points + mean, rounded."""

    points: np.ndarray
    inputs: jax.Array
    mean: Any = 0.0
    scale: Any = 1.0

    def at(self, chosen: np.ndarray) -> Rows:
        """Return some of the rows, by number."""
        return Rows(self.points[chosen], self.inputs[chosen], self.mean, self.scale)

    def moved(self, factor: float = 1.0) -> np.ndarray:
        """Return the points after a relative change of factor * eps(dtype) in every number of the inputs."""
        limits = np.finfo(self.inputs.dtype)
        raw = self.points * self.scale + self.mean
        return self.points + factor * (raw * float(limits.eps) + np.copysign(float(limits.tiny), raw)) / self.scale


def rows_of(points: Any) -> Rows:
    """Return `Rows` as they are, and points as both sides of them. Raises ValueError if not a floating matrix."""
    if isinstance(points, Rows):
        return points
    given = checks.matrix("points", points)
    return Rows(np.asarray(points, np.float64), given)


def rounding_factor(dim: int) -> float:
    """Return by how many roundings of its numbers a point may seem to move, on its way through a map.

    One is the conversion of the point, one that of the frequencies or landmarks; a sum of dim products has an error of
    about sqrt(dim) roundings, and frequencies may be sqrt(2) times as long as they are on average.
    """
    return 2 + 2 * math.sqrt(dim)


def feature_rounding(kernel: Any, blocks: Iterable[Rows]) -> tuple[float, float]:
    """Return the root mean square and the largest rounding of the features of a row, as a length in feature space.

    Features of phases <w, x> that are off by <w, h> are off by |K_x - K_{x + h}| in the mean square over the
    frequencies; so are rows of the kernel matrix, of whatever landmarks.
    """
    squares, count, largest = 0.0, 0, 0.0
    for rows in blocks:
        factor = rounding_factor(rows.points.shape[1])
        relative = factor * float(jnp.finfo(rows.inputs.dtype).eps)
        with jax.enable_x64(True):
            found = np.asarray(_off(kernel, rows.points, rows.moved(factor), relative))
        squares, count = squares + float(found @ found), count + len(found)
        largest = float(np.maximum(largest, found.max()))  # NaN stays
    return math.sqrt(squares / count), largest


@jax.jit
def _off(kernel: Any, X: jax.Array, moved: jax.Array, relative: Any) -> jax.Array:
    return kernel_distance(kernel, X, moved) + relative * jnp.sqrt(jax.vmap(lambda x: kernel(x, x))(X))
