"""The goal "distance": the kernel distances of all pairs of points are kept, up to a relative error.

Distances in the kernel's space and of features come from products, |x|^2 + |y|^2 - 2 <x, y> in float64, for all pairs
that are far enough apart. Of near ones these products know too few digits, and differences take their place. The
kernel says before any map is drawn which pairs these are.

Equal rows are one point: their pairs have no relative error.
"""

import math
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxkern.gram import gram, kernel_distance, rounding
from proofs_check.certify.goals import Goal
from proofs_check.certify.points import (
    by_blocks,
    compiled,
    distinct,
    in_blocks,
    mapped,
    rows_of,
)

# Rows of a tile of products of features: 512 x 3,000 numbers are 12 MB. Smaller tiles make products slower by a fifth;
# one tile for all rows would take as much memory as all distances.
_SIDE = 512
# Kernel distances come from products if their squares are 200 / eps times as large as the rounding of products, so that
# the error of a map moves by at most 1 % of eps. With 0, errors of pairs that are 1e-8 apart are wrong by a factor.
_KERNEL_ROUNDING = 200.0
# The same for features. Their products in float64 were off by 2.2e-15 (|x|^2 + |y|^2) at most for up to 40,000
# features, so that errors move by 0.1 % of eps, or by 1 % if features are ten times as long as the kernel says.
_FEATURE_ROUNDING = 2e-12


@dataclass(frozen=True, eq=False)
class Pairs:
    """The different ones of some points, and their distances in the kernel's space.

    Attributes
    ----------
    inputs : (n, dim), as maps get them.
    inverse : (n, n), 1 over the squared distances of points i < j. NaN elsewhere, and for pairs that are near.
    near : (number, 2) points of the near pairs at a positive distance.
    near_squared : (number,) their squared distances.
    unresolved : pairs so close that rounding of their coordinates and features alone may change the distance of
        features by more than eps times the distance. They count with the error that comes out.
    rounding : the largest share of the distance of a pair by which the same rounding may change it.
    """

    inputs: np.ndarray
    inverse: np.ndarray
    near: np.ndarray
    near_squared: np.ndarray
    unresolved: int
    rounding: float


@dataclass(frozen=True)
class Distance(Goal):
    """The error of a map is max over pairs of | |phi(x) - phi(y)| / |K_x - K_y| - 1 |.

    Attributes
    ----------
    kernel : positive semidefinite, with a rounding that `jaxkern.gram.rounding` knows.
    eps : the error that will be asked for, in (0, 1): it says how exactly errors have to be computed. An error near eps
        is right to about 1 % of eps, and a larger one to about 1 % of itself, for pairs that are not `unresolved`.

    Notes
    -----
    For s points: `prepare` takes s^2 kernel values in float64, and some 50 s^2 bytes, of which 8 s^2 stay. `error`
    takes s^2 num_features / 2 multiply-adds. A near pair takes as long as about a hundred others.
    """

    kernel: Any
    eps: float

    name = "distance"
    words = "the largest relative error of the kernel distance over all pairs of points that differ"
    # 300 draws of 512 paired frequencies take 60 s on two cores for 3,000 rows. With 20,000, as many would take 45
    # minutes and 3 GB; with 1,000, more tables than necessary would get a guarantee about samples only.
    most_rows = 3_000
    # A sample is prepared for every draw, which doubles what a draw takes: also 60 s. With fewer rows the guarantee
    # says less of all pairs, see docs/certificates.md.
    sample_rows = 2_000

    def refuses(self, map_name: str) -> str:
        """Return why a map is not meant to keep kernel distances, "" for all others; centred maps keep them too."""
        if map_name == "kernel_jl":
            return (
                "It preserves the Sigma^3-weighted inner product, not the kernel distance; "
                "distances shrink by as much as the data vary little in their direction."
            )
        return ""

    def prepare(
        self, _key: Any, points: Any, _labels: np.ndarray | None = None
    ) -> Pairs:
        """Return the kernel distances of points (s, dim) or `Rows`. The key and the labels are not used.

        Raises ValueError if points are not a floating matrix of finite numbers.
        """
        rows = rows_of(points)
        if not np.isfinite(rows.points).all():
            raise ValueError("points must be finite")
        first, counts = distinct(rows.points)
        rows = rows.at(first)
        squared, by_product = self._products(rows.points)

        def distance(pairs: np.ndarray) -> jax.Array:
            i, j = pairs.T
            return kernel_distance(self.kernel, rows.points[i], rows.points[j])

        near = np.argwhere(np.triu(~by_product, 1))
        with jax.enable_x64(True):
            near_squared = by_blocks(distance, near) ** 2
        squared[tuple(near.T)] = near_squared
        with np.errstate(divide="ignore"):
            inverse = np.where(by_product, 1 / squared, np.nan)
        apart = np.triu(squared > 0, 1)
        reach = rows.rounding(self.kernel)
        shares = (reach[:, None] + reach)[apart] / np.sqrt(squared[apart])
        weights = np.outer(counts, counts)[apart]
        positive = near_squared > 0
        return Pairs(
            rows.inputs,
            inverse,
            near[positive],
            near_squared[positive],
            unresolved=int(weights[shares > self.eps].sum()),
            rounding=float(shares.max(initial=0.0)),
        )

    def error(self, _key: Any, phi: Any, prepared: Pairs) -> float:
        """Return the largest relative error; NaN if features are not finite. The key is not used."""
        Z = mapped(phi, prepared.inputs).astype(np.float64)
        # NaN and infinity, and what overflows if it is squared: below, NaN stands for pairs that do not count.
        if not np.abs(Z).max() < 1e150:
            return math.nan
        Z = Z[:, Z.any(axis=0)]
        # Without the mean, products have to tell differences from common lengths of any size.
        centred = Z - Z.mean(axis=0)
        lengths = np.einsum("ij,ij->i", centred, centred)
        error = 0.0
        for start in range(0, len(Z), _SIDE):
            block = slice(start, start + _SIDE)
            ratios = centred[block] @ centred[start:].T
            ratios *= -2
            ratios += lengths[block, None]
            ratios += lengths[start:]
            ratios *= prepared.inverse[block, start:]
            error = max(error, _worst(ratios))

        def square(pairs: np.ndarray) -> np.ndarray:
            i, j = pairs.T
            differences = Z[i] - Z[j]
            return np.einsum("ij,ij->i", differences, differences)

        squares = by_blocks(square, prepared.near)
        return max(error, _worst(squares / prepared.near_squared))

    def _products(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return squared distances (n, n) by products, and for which pairs i < j of points these serve."""
        size, dim = points.shape
        # Samples have different numbers of distinct rows; without the filling each would be a compile.
        filled = in_blocks(points).reshape(-1, dim)
        with jax.enable_x64(True):
            squared, lengths, error = _by_product(self.kernel, filled)
        squared = np.array(squared[:size, :size])
        lengths = np.asarray(lengths)[:size]
        share = (_KERNEL_ROUNDING * float(error) + _FEATURE_ROUNDING) / self.eps
        serves = squared >= share * (lengths[:, None] + lengths)
        return squared, np.triu(serves, 1)


def _worst(ratios: np.ndarray) -> float:
    """Return the largest | sqrt(ratio) - 1 |. Pairs with NaN do not count."""
    largest = np.fmax.reduce(ratios, axis=None, initial=1.0)
    smallest = np.fmin.reduce(ratios, axis=None, initial=1.0)
    # Rounding may have made a square a little less than zero.
    return float(max(math.sqrt(largest) - 1, 1 - math.sqrt(max(smallest, 0.0))))


@compiled
def _by_product(kernel: Any, X: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return squared distances (n, n), the K(x, x), and the rounding of values relative to these."""
    lengths = jax.vmap(lambda x: kernel(x, x))(X)
    squared = lengths[:, None] + lengths[None, :] - 2 * gram(kernel, X)
    return squared, lengths, rounding(kernel, X)
