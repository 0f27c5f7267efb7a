"""A table of points: its rows in blocks or by number, without loading all of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from jaxkern import checks
from proofs_check.certify._view import View, slices
from proofs_check.engine.reading import DataError


@dataclass(frozen=True, eq=False)
class Table:
    """A table of points, which stays where it is: in memory, or in a mapped file that must not change meanwhile.

    Attributes
    ----------
    source : name of the file without folders, or what the caller called the array.
    rows, dim : how many points, and columns that are used.
    names : names of the columns that are used.
    labels : (rows,) int32, an index into `label_names`; None without labels.
    label_names : names of the classes.
    standardized : whether `take` and `blocks` subtract `mean` and divide by `scale`.
    mean, scale : (dim,) float64; zeros and ones where it is not standardised. The scale is the standard deviation with
        divisor `rows`.
    duplicate_rows : how many rows equal an earlier row, in the columns that are used and as float64.
    notes : sentences on what was left out and what looks wrong.
    left_out : name of a column -> why it is not used.
    """

    source: str
    rows: int
    dim: int
    names: tuple[str, ...]
    labels: np.ndarray | None
    label_names: tuple[str, ...]
    standardized: bool
    mean: np.ndarray
    scale: np.ndarray
    duplicate_rows: int
    notes: list[str]
    left_out: dict[str, str]
    _view: View = field(repr=False)
    _largest: float = field(repr=False)

    def take(self, indices: Any, dtype: Any, *, raw: bool = False) -> np.ndarray:
        """Return rows in the order of `indices`, which may repeat, as an array (len(indices), dim).

        Rows are read in ascending order, and no others. Values are standardised in float64 before the cast, or with
        `raw` not at all. Raises ValueError for an index that does not exist, or DataError where a value does not fit
        into `dtype`.
        """
        indices = np.asarray(indices)
        if indices.ndim != 1 or (len(indices) and indices.dtype.kind not in "iu"):
            raise ValueError(f"indices must be a vector of whole numbers, got shape {indices.shape}, {indices.dtype}")
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.rows:
            raise ValueError(f"indices must lie within 0 and {self.rows - 1}, got {indices.min()} to {indices.max()}")
        order = np.argsort(indices, kind="stable")
        out = np.empty((len(indices), self.dim), self._checked_dtype(dtype, raw))
        for part in slices(len(indices), self.dim):
            block = self._view.rows_at(indices[order[part]])
            out[order[part]] = block if raw else self._finished(block)
        return out

    def blocks(self, size: int, dtype: Any) -> Iterator[np.ndarray]:
        """Yield all rows in order, in arrays (size, dim), of which the last may be shorter."""
        if size < 1:
            raise ValueError(f"size must be at least 1, got {size}")
        kind = self._checked_dtype(dtype)
        for start in range(0, self.rows, size):
            out = np.empty((min(size, self.rows - start), self.dim), kind)
            for part in slices(len(out), self.dim):
                out[part] = self._finished(self._view.rows_from(start + part.start, start + part.stop))
            yield out

    def fits(self, dtype: Any) -> bool:
        """Tell whether every value of the table is in the range of a dtype."""
        return self._largest <= float(np.finfo(dtype).max)

    def _finished(self, block: np.ndarray) -> np.ndarray:
        return (block.astype(np.float64) - self.mean) / self.scale if self.standardized else block

    def _checked_dtype(self, dtype: Any, raw: bool = False) -> np.dtype:
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        if (raw or not self.standardized) and not self.fits(kind):
            raise DataError(
                f"{self.source}: values up to {self._largest:.3g} do not fit into {kind}; "
                + ("use float64" if self.standardized else "standardise the columns or use float64")
            )
        return kind


def rows_for(key: Any, num_rows: int, count: int) -> np.ndarray:
    """Return `count` of the indices 0 ... num_rows - 1, uniform without replacement, ascending, as int64.

    They are a function of the typed key and the two numbers, for one version of NumPy. O(count) time and memory where
    count is below num_rows / 50, at most O(num_rows). Raises ValueError.
    """
    entropy = np.asarray(jax.random.key_data(checks.key(key))).ravel().tolist()
    count = checks.count("count", count, maximum=num_rows, limit="the number of rows")
    if count == num_rows:
        return np.arange(num_rows)
    rng = np.random.default_rng(np.random.SeedSequence(entropy))
    return np.sort(rng.choice(num_rows, count, replace=False, shuffle=False))
