"""Passes over the rows of an array that stays where it is: blocks, moments, complete rows and duplicates."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from proofs_check.engine.reading import look

CELLS = 2**20
"""Cells of a block: what is read at once takes a few times 8 MiB."""
HASHED_ROWS = 2**24
"""Rows whose hashes are in memory at once, 128 MiB."""


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
        return self.array[at] if self.columns is None else self.array[at[:, None], self.columns]

    def transposed(self) -> Iterator[np.ndarray]:
        """Yield all rows in blocks (dim, size) of float64, copies that may be overwritten."""
        for part in slices(self.rows, self.dim):
            look("the table", self.until)
            with np.errstate(over="ignore"):  # what does not fit into float64 counts as infinite
                yield np.array(self.rows_from(part.start, part.stop).T, np.float64, order="C")

    def restricted(self, positions: np.ndarray) -> View:
        """Return the view of some of its columns, by position."""
        if len(positions) == self.dim:
            return self
        return replace(self, columns=positions if self.columns is None else self.columns[positions])


@dataclass(frozen=True)
class Moments:
    """Each column: how many cells are NaN and infinite, and, without such cells, mean, deviation and range."""

    nan: np.ndarray
    infinite: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def of(self, positions: np.ndarray) -> Moments:
        return Moments(*(getattr(self, name)[positions] for name in self.__dataclass_fields__))


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
    rows = 0
    with np.errstate(invalid="ignore", over="ignore"):
        for block in view.transposed():
            size = block.shape[1]
            np.minimum(low, block.min(axis=1), out=low)  # NaN stays
            np.maximum(high, block.max(axis=1), out=high)
            for i in np.flatnonzero(~np.isfinite(block.sum(axis=1))):  # or a sum that overflows
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
        squares = np.maximum(squares, (high - low) ** 2 / 2)  # at least that of the two ends, were it not for rounding
    return Moments(nan, infinite, mean, np.sqrt(squares / rows), low, high)


def complete_rows(view: View, classes: np.ndarray | None) -> np.ndarray:
    """Return the rows without NaN and infinite cells, and with a label."""
    whole = np.concatenate([np.isfinite(block).all(axis=0) for block in view.transposed()])
    return np.flatnonzero(whole if classes is None else whole & (classes >= 0))


def duplicates(view: View) -> int:
    """Return how many rows equal an earlier row, by 64-bit hashes of their float64 entries.

    Of n different rows some two have the same hash with probability about n**2 / 2**65, 3e-6 for ten million; rows that
    differ in one entry never have. Tables of more than `HASHED_ROWS` rows are read several times, each time for one
    part of the hashes, which bounds the memory.
    """
    parts = -(-view.rows // HASHED_ROWS)
    distinct = 0
    for part in range(parts):
        hashes = [hashes_of(block) for block in view.transposed()] if parts == 1 else []
        for block in view.transposed() if parts > 1 else ():
            every = hashes_of(block)
            hashes.append(every[every % np.uint64(parts) == part])
        held = np.concatenate(hashes)
        hashes.clear()
        held.sort()
        distinct += min(len(held), 1) + int(np.count_nonzero(held[1:] != held[:-1]))
    return view.rows - distinct


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
