"""A table of points, whose rows are read in blocks or by number, and passes over them: moments, duplicates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import numpy as np

from jaxkern import checks, features
from proofs_check.engine.reading import DataError

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
    mean, scale : (dim,) float64; zeros and ones if it is not standardised. The scale is the standard deviation with
        divisor `rows`.
    duplicate_rows : how many rows equal an earlier row, in the columns that are used and as float64.
    notes : sentences on what was left out and what looks wrong.
    left_out : name of a column -> why it is not used.
    columns : names of all columns of the table, in its order; of a one-hot column the names of its parts.
    layouts : numbers of the columns in `columns` that a matrix of points may have: those that are used, all that were
        chosen and hold numbers, and all, if they differ. With one-hot columns only the first.
    categories : name and values of each column of text that became one-hot columns.
    view : the cells.
    largest : the largest magnitude of a cell.
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
    categories: tuple[tuple[str, tuple[str, ...]], ...]
    view: View = field(repr=False)
    largest: float = field(repr=False)

    def take(self, indices: Any, dtype: Any, *, raw: bool = False) -> np.ndarray:
        """Return rows in the order of `indices`, which may repeat, as an array (len(indices), dim).

        Rows are read in ascending order, and no others. Values are standardised in float64 before the cast, or with
        `raw` not at all. Raises ValueError for an index that does not exist, and DataError if a value does not fit
        into `dtype`.
        """
        indices = np.asarray(indices)
        exists = (indices >= 0) & (indices < self.rows) & (indices % 1 == 0)
        if indices.ndim != 1 or not exists.all():
            raise ValueError(
                f"indices must be a vector of whole numbers from 0 to {self.rows - 1}"
            )
        is_scaled = self.standardized and not raw
        if not (self.fits(dtype) or is_scaled):
            raise DataError(
                f"{self.source}: values up to {self.largest:.3g} do not fit into {np.dtype(dtype)}; use float64, or "
                "standardise the columns"
            )
        order = np.argsort(indices, kind="stable")
        points = np.empty((len(indices), self.dim), dtype)
        for part in slices(len(indices), self.dim):
            places = order[part]
            block = self.view.at(indices[places])
            if is_scaled:
                block = (block.astype(np.float64) - self.mean) / self.scale
            points[places] = block
        return points

    def fits(self, dtype: Any) -> bool:
        """Return whether every value of the table is in the range of a float dtype, or raise ValueError."""
        return self.largest <= float(np.finfo(dtype).max)

    def part(self, rows: np.ndarray) -> Table:
        """Return the table of some rows, by number and in that order. Duplicates are not counted again."""
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, rows=len(rows), labels=labels, view=self.view.part(rows))

    def attach(self, phi: Any) -> Any:
        """Return a map of the columns that are used, (..., dim), as one of the rows of the table."""
        return features.TableMap(
            phi, self.columns, self.layouts, self.categories or None
        )


def rows_for(key: Any, num_rows: int, count: int) -> np.ndarray:
    """Return `count` of the indices 0 ... num_rows - 1, uniform without replacement, ascending, as int64.

    They are a function of the typed key and the two numbers, for one version of NumPy. O(count) time and memory if
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
    """Some columns and some rows of an array, by number; rows None: all of them."""

    array: np.ndarray
    columns: np.ndarray
    rows: np.ndarray | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return len(self.array if self.rows is None else self.rows)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Return rows by number, in the dtype of the array."""
        rows = self.part(indices).rows
        # Both at once: of a mapped file with many columns only these cells are read.
        return self.array[np.reshape(rows, (-1, 1)), self.columns]

    def part(self, indices: np.ndarray) -> View:
        """Return the view of some of its rows."""
        rows = indices if self.rows is None else self.rows[indices]
        return replace(self, rows=rows)

    def transposed(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks (dim, size) of float64, copies that may be overwritten."""
        for part in slices(self.num_rows, len(self.columns)):
            if self.rows is None:  # a slice is two times as fast as rows by number
                block = self.array[part][:, self.columns]
            else:
                block = self.at(np.arange(part.start, part.stop))
            # A long double that does not fit into float64 counts as infinite.
            with np.errstate(over="ignore"):
                yield np.array(block.T, np.float64, order="C")

    def only(self, positions: np.ndarray) -> View:
        """Return the view of some of its columns, by position."""
        return replace(self, columns=self.columns[positions])


@dataclass(frozen=True)
class Moments:
    """Each column: cells that are NaN or infinite, and, if there are none, mean, deviation and range.

    `whole` is whether all cells are whole numbers.
    """

    lacking: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray
    whole: np.ndarray

    def only(self, positions: np.ndarray) -> Moments:
        """Return the moments of some of the columns."""
        return Moments(*(values[positions] for values in vars(self).values()))


def slices(rows: int, dim: int) -> Iterator[slice]:
    """Yield slices of the rows of a block each."""
    size = max(1, CELLS // max(1, dim))
    for start in range(0, rows, size):
        yield slice(start, min(start + size, rows))


def moments_of(view: View) -> Moments:
    """Return the moments of each column, by blocks that are centred at their mean and merged.

    The merge is that of T. F. Chan, G. H. Golub and R. J. LeVeque, "Updating formulae and a pairwise algorithm for
    computing sample variances" (1979).
    """
    rows = 0
    zeros = np.zeros(len(view.columns))
    lacking = zeros.astype(np.int64)
    whole = zeros == 0
    low = zeros + np.inf
    high = zeros - np.inf
    mean = zeros.copy()
    squares = zeros.copy()
    with np.errstate(invalid="ignore", over="ignore"):
        for block in view.transposed():
            size = block.shape[1]
            lacking += np.count_nonzero(~np.isfinite(block), axis=1)
            whole &= np.all(block == np.floor(block), axis=1)
            low = np.minimum(low, block.min(axis=1))
            high = np.maximum(high, block.max(axis=1))
            centre = block.mean(axis=1)
            block -= centre[:, None]
            rows += size
            step = centre - mean
            mean += step * (size / rows)
            squares += np.einsum("ij,ij->i", block, block)
            squares += step**2 * (size * (rows - size) / rows)
        # At least the squares of the two ends: rounding of the mean of neighbouring doubles must not make them 0.
        squares = np.maximum(squares, (high - low) ** 2 / 2)
    return Moments(lacking, mean, np.sqrt(squares / rows), low, high, whole)


def repeats(view: View) -> tuple[int, np.ndarray]:
    """Return how many rows equal an earlier row, and for each column the first column that equals it.

    Both are compared by 64-bit hashes: of n different rows some two have the same hash with probability about
    n**2 / 2**65, 3e-6 for ten million.
    """
    rows = []
    columns = [0] * len(view.columns)
    for block in view.transposed():
        block += 0.0  # -0.0 equals 0.0, and has other bits
        rows.append(hashes_of(block))
        for i, cells in enumerate(block):
            columns[i] = hash((columns[i], cells.tobytes()))
    # np.unique without places goes by a table of hashes, and takes a hundred times as long.
    ordered = np.sort(np.concatenate(rows))
    repeated = np.count_nonzero(ordered[1:] == ordered[:-1])
    _, firsts, places = np.unique(columns, return_index=True, return_inverse=True)
    return int(repeated), firsts[places]


def hashes_of(block: np.ndarray) -> np.ndarray:
    """Return a 64-bit hash of each row of a block (dim, rows); each entry is mixed in by a bijection."""
    mixed = np.zeros(block.shape[1], np.uint64)
    for bits in block.view(np.uint64):
        mixed ^= bits
        for factor, shift in ((0xBF58476D1CE4E5B9, 29), (0x94D049BB133111EB, 32)):
            mixed *= np.uint64(factor)  # modulo 2**64
            mixed ^= mixed >> np.uint64(shift)
    return mixed
