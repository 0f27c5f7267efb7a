"""Rows of a table twice: in float64 as the kernel sees them, and in the map's precision as a map gets them.

Errors of maps are measured against the kernel of the first, so that what rounding does to the second counts as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxkern import checks


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


def distinct(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the different rows in the order of their first appearance, and how often each appears."""
    rows = np.ascontiguousarray(rows + 0)  # the negative zero is zero
    whole = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    _, first, counts = np.unique(whole, return_index=True, return_counts=True)
    order = np.argsort(first)
    return first[order], counts[order]
