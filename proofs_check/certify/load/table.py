"""A table of points, whose rows are read in blocks or by number, and passes over them: moments, duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from jaxkern import checks, features
from proofs_check.engine.reading import DataError, look

CELLS = 2**20
"""Cells of a block: what is read at once takes a few times 8 MiB."""


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
    standardized : whether `take` subtracts `mean` and divides by `scale`.
    mean, scale : (dim,) float64; zeros and ones where it is not standardised. The scale is the standard deviation with
        divisor `rows`.
    duplicate_rows : how many rows equal an earlier row, in the columns that are used and as float64.
    notes : sentences on what was left out and what looks wrong.
    left_out : name of a column -> why it is not used.
    columns : names of all columns of the table, in its order.
    layouts : numbers of the columns in `columns` that a matrix of points may have: those that are used, all that were
        chosen and hold numbers, and all, in so far as they differ.
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
    columns: tuple[str, ...]
    layouts: tuple[tuple[int, ...], ...]
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
            raise ValueError(
                f"indices must be a vector of whole numbers, got shape {indices.shape}, {indices.dtype}"
            )
        if len(indices) and not 0 <= indices.min() <= indices.max() < self.rows:
            raise ValueError(
                f"indices must lie within 0 and {self.rows - 1}, got {indices.min()} to {indices.max()}"
            )
        order = np.argsort(indices, kind="stable")
        out = np.empty((len(indices), self.dim), self._checked_dtype(dtype, raw))
        for part in slices(len(indices), self.dim):
            block = self._view.rows_at(indices[order[part]])
            out[order[part]] = block if raw else self._finished(block)
        return out

    def fits(self, dtype: Any) -> bool:
        """Tell whether every value of the table is in the range of a dtype."""
        return self._largest <= float(np.finfo(dtype).max)

    def attach(self, phi: Any) -> Any:
        """Return a map of the columns that are used, (..., dim), as one of the rows of the table."""
        return features.TableMap(phi, self.columns, self.layouts)

    def _finished(self, block: np.ndarray) -> np.ndarray:
        return (
            (block.astype(np.float64) - self.mean) / self.scale
            if self.standardized
            else block
        )

    def _checked_dtype(self, dtype: Any, raw: bool = False) -> np.dtype:
        kind = np.dtype(dtype)
        if kind not in (np.float32, np.float64):
            raise ValueError(f"dtype must be float32 or float64, got {kind}")
        if (raw or not self.standardized) and not self.fits(kind):
            raise DataError(
                f"{self.source}: values up to {self._largest:.3g} do not fit into {kind}; use float64, or "
                "standardise the columns"
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


# Passes over the rows


@dataclass(frozen=True)
class View:
    """Some columns and some rows of an array. `columns` and `chosen` are ascending or any indices; None: all."""

    array: np.ndarray
    columns: np.ndarray | None
    chosen: np.ndarray | None = None
    until: float = math.inf

    @property
    def rows(self) -> int:
        return len(self.array) if self.chosen is None else len(self.chosen)

    @property
    def dim(self) -> int:
        return self.array.shape[1] if self.columns is None else len(self.columns)

    def rows_from(self, start: int, stop: int) -> np.ndarray:
        """Return a range of rows as (stop - start, dim), in the dtype of the array, maybe without a copy."""
        if self.chosen is not None:
            return self.rows_at(np.arange(start, stop))
        block = self.array[start:stop]
        return block if self.columns is None else block[:, self.columns]

    def rows_at(self, indices: np.ndarray) -> np.ndarray:
        """Return rows by number."""
        at = indices if self.chosen is None else self.chosen[indices]
        return (
            self.array[at]
            if self.columns is None
            else self.array[at[:, None], self.columns]
        )

    def transposed(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks (dim, size) of float64, copies that may be overwritten."""
        for part in slices(self.rows, self.dim):
            look("the table", self.until)
            with np.errstate(
                over="ignore"
            ):  # what does not fit into float64 counts as infinite
                yield np.array(
                    self.rows_from(part.start, part.stop).T, np.float64, order="C"
                )

    def restricted(self, positions: np.ndarray) -> View:
        """Return the view of some of its columns, by position."""
        if len(positions) == self.dim:
            return self
        return replace(
            self, columns=positions if self.columns is None else self.columns[positions]
        )


@dataclass(frozen=True)
class Moments:
    """Each column: how many cells are NaN and infinite, and, without such cells, mean, deviation and range.

    `whole` tells whether all cells are whole numbers.
    """

    nan: np.ndarray
    infinite: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    whole: np.ndarray

    def of(self, positions: np.ndarray) -> Moments:
        return Moments(
            *(getattr(self, name)[positions] for name in self.__dataclass_fields__)
        )


def slices(rows: int, dim: int) -> Iterator[slice]:
    size = max(1, CELLS // dim)
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def moments_of(view: View) -> Moments:
    """Return mean and deviation of each column by blocks that are centred at their own mean and merged.

    A column with NaN or infinite cells has no numbers here but their count. The merge is that of T. F. Chan,
    G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for computing sample variances" (1979).
    """
    dim = view.dim
    nan, infinite = np.zeros(dim, np.int64), np.zeros(dim, np.int64)
    mean, squares = np.zeros(dim), np.zeros(dim)
    low, high = np.full(dim, np.inf), np.full(dim, -np.inf)
    whole = np.ones(dim, bool)
    rows = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for block in view.transposed():
            size = block.shape[1]
            whole[whole] = [
                np.array_equal(column, np.floor(column)) for column in block[whole]
            ]
            np.minimum(low, block.min(axis=1), out=low)  # NaN stays
            np.maximum(high, block.max(axis=1), out=high)
            for i in np.flatnonzero(
                ~np.isfinite(block.sum(axis=1))
            ):  # or a sum that overflows
                nan[i] += np.count_nonzero(np.isnan(block[i]))
                infinite[i] += np.count_nonzero(np.isinf(block[i]))
            centre = block.mean(axis=1)
            block -= centre[:, None]
            rest = block.mean(axis=1)  # what rounding left of the mean
            own = np.einsum("ij,ij->i", block, block) - size * rest**2
            step = centre + rest - mean
            rows += size
            mean += step * (size / rows)
            squares += own + step**2 * (size * (rows - size) / rows)
        squares = np.maximum(
            squares, (high - low) ** 2 / 2
        )  # at least that of the two ends, were it not for rounding
    return Moments(nan, infinite, mean, np.sqrt(squares / rows), low, high, whole)


def complete_rows(view: View, classes: np.ndarray | None) -> np.ndarray:
    """Return the rows without NaN and infinite cells, and with a label."""
    whole = np.concatenate(
        [np.isfinite(block).all(axis=0) for block in view.transposed()]
    )
    return np.flatnonzero(whole if classes is None else whole & (classes >= 0))


def copies(view: View, moments: Moments) -> dict[int, int]:
    """Return the position of each column that equals an earlier one, and the position of the first of them.

    Only columns with equal moments are read again, two at a time.
    """
    groups: dict[tuple[float, ...], list[int]] = {}
    equal: dict[int, int] = {}
    for i in range(view.dim):
        group = groups.setdefault(
            (moments.low[i], moments.high[i], moments.mean[i]), []
        )
        for first in group:
            pair = view.restricted(np.array([first, i]))
            if all(np.array_equal(*block) for block in pair.transposed()):
                equal[i] = first
                break
        else:
            group.append(i)
    return equal


def duplicates(view: View) -> int:
    """Return how many rows equal an earlier row, by 64-bit hashes of their float64 entries.

    Of n different rows some two have the same hash with probability about n**2 / 2**65, 3e-6 for ten million; rows that
    differ in one entry never have.
    """
    hashes = np.concatenate([hashes_of(block) for block in view.transposed()])
    hashes.sort()
    return int(np.count_nonzero(hashes[1:] == hashes[:-1]))


def hashes_of(block: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each row of a block (dim, rows); each entry is mixed in by a bijection."""
    block += 0.0  # -0.0 equals 0.0
    mixed = np.zeros(block.shape[1], np.uint64)
    for bits in block.view(np.uint64):
        mixed ^= bits
        for factor, shift in ((0xBF58476D1CE4E5B9, 29), (0x94D049BB133111EB, 32)):
            mixed *= np.uint64(factor)  # modulo 2**64
            mixed ^= mixed >> np.uint64(shift)
    return mixed
