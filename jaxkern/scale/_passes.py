"""Points in storage, read in passes over chunks of rows, and samples of them that are kept on the host.

What is drawn for a row depends on the key and its number, and a chunk is computed on one device: no draw depends on how
many rows are read at once, or on the devices.
"""

import collections
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from jaxkern._blocks import by_blocks
from jaxkern.scale import _mesh
from jaxkern.scale._embed import host_matrix

_READ_BYTES = 2**24
_CHUNK_BYTES, _CHUNK_ROWS = 2**26, (2**8, 2**13)
"""Of points and of what a step makes of them; a chunk has between so many rows."""
_CACHED_ROWS = 2**10
"""Rows that are looked at together."""
_LAST = 1e200
"""Factor of the clocks of rows without odds: they ring after all others."""


class Chunk(NamedTuple):
    """Rows of a pass: the number of the first one, their weights, what a step makes of each, and numbers in [0, 1)."""

    start: int
    rows: np.ndarray
    weights: np.ndarray
    values: np.ndarray
    units: np.ndarray


class Points:
    """Points that are read in passes, the share of this process alone. Rows of weight 0 have no number."""

    def __init__(
        self,
        X: Any,
        weights: Any,
        least: int,
        width: int,
        block_size: Any,
        sharding: Any,
        tell: Any,
    ) -> None:
        """Say of how many rows at least, and how many numbers a step makes of each."""
        self.X, self._least, self._width, self._block_size, self._tell = (
            X,
            least,
            width,
            block_size,
            tell,
        )
        self.weights = (
            None if weights is None else np.asarray(weights)
        )  # a mapped file stays one
        self._devices = tuple(_mesh.local_mesh(sharding).devices.flat)
        self.is_array = hasattr(X, "shape")
        self.many = _mesh.spans_processes(sharding)
        if self.is_array:
            host_matrix("X", X)
        elif self.many:
            raise ValueError("X must be an array, not blocks, where processes share it")
        elif not callable(X) and (
            not isinstance(X, Iterable) or isinstance(X, Iterator | str | bytes)
        ):
            raise ValueError(
                f"X must be an array, a list, or a function that returns an iterator, got {type(X).__name__}"
            )
        length = (
            X.shape[0]
            if self.is_array
            else None
            if self.weights is None
            else self.weights.size
        )
        if self.weights is not None and self.weights.shape != (length,):
            raise ValueError(
                f"weights must have shape ({length},), got {self.weights.shape}"
            )
        if self.weights is not None and (
            self.weights.dtype.kind != "f" or not self.weights.any()
        ):
            raise ValueError(
                f"weights must be floating and not all zero, got {self.weights.dtype}"
            )
        own = slice(0, 0) if length is None else slice(0, length)
        self._own = _mesh.local_rows(own.stop, sharding) if self.many else own
        # Numbers, of all processes and of this one, of rows that exist; None as long as nothing tells.
        self.num_rows = None if length is None else self._existing(own)
        self._begin = self._existing(slice(0, self._own.start))
        self._count = None if length is None else self._existing(self._own)
        self._suffices()

    def _existing(self, rows: slice) -> int:
        """Return how many rows have a positive weight."""
        if self.weights is None:
            return rows.stop - rows.start
        count = 0
        for start in range(rows.start, rows.stop, _READ_BYTES):
            some = self.weights[start : min(start + _READ_BYTES, rows.stop)]
            for number in start + np.flatnonzero(~(some >= 0) | ~np.isfinite(some)):
                raise ValueError(
                    f"weights must be non-negative and finite; that of row {number} is not"
                )
            count += int(np.count_nonzero(some))
        return count

    def _suffices(self) -> None:
        if self.num_rows is not None:
            checks.count(
                "num_landmarks",
                self._least,
                maximum=self.num_rows,
                limit="the number of points",
            )

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows of an array without weights by their numbers, and read no others."""
        rows = np.concatenate(
            [np.asarray(self.X[number : number + 1]) for number in numbers.tolist()]
        )
        self._refuse(numbers[~np.isfinite(rows).all(axis=1)])
        return rows

    def sweep(
        self, key: jax.Array, values: Callable[..., jax.Array], *given: Any
    ) -> Iterator[Chunk]:
        """Yield all rows with values(rows, *given), chunk by chunk."""
        there = [jax.device_put(given, device) for device in self._devices]
        waiting: collections.deque[tuple[Any, ...]] = collections.deque()
        done = 0

        def end(
            start: int, rows: np.ndarray, weights: np.ndarray, size: int, result: Any
        ) -> Chunk:
            nonlocal done
            found, fine = (np.asarray(part)[: len(rows)] for part in result)
            self._refuse(start + np.flatnonzero(~fine))
            done += len(rows)
            if self._tell.listened:
                self._tell(done, self._count if self.is_array else None)
            units = generator(key, start // size).random(size)[start % size :][
                : len(rows)
            ]
            return Chunk(start, rows, weights, found.astype(float), units)

        for turn, (start, rows, weights, size) in enumerate(self._chunks()):
            which = turn % len(there)
            full = (
                np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge")
                if len(rows) < size
                else rows
            )
            placed = jax.device_put(full, self._devices[which])
            waiting.append(
                (start, rows, weights, size, _step(there[which], placed, values=values))
            )
            if len(waiting) > len(there):
                yield end(*waiting.popleft())
        while waiting:
            yield end(*waiting.popleft())
        if self._count not in (None, done):
            raise ValueError(
                f"X must have the same rows in every pass, got {self._count} and then {done}"
            )
        self._count, self.num_rows = done, self.num_rows if self.is_array else done
        self._suffices()

    def _refuse(self, numbers: np.ndarray) -> None:
        for number in (
            numbers if self.weights is None else np.flatnonzero(self.weights)[numbers]
        ):
            raise ValueError(
                f"X must be finite, and kernel values and distances with it; row {number} is not"
            )

    def _chunks(self) -> Iterator[tuple[int, np.ndarray, np.ndarray, int]]:
        """Yield the number of the first row, the rows, their weights and the size of chunks.

        They begin at multiples of the size.
        """
        start, held, missing, size, at = self._begin, [], 0, 0, self._own.start
        first = None
        for block in self._blocks():
            host_matrix("each block of X", block)
            kind = block.shape[1], np.dtype(block.dtype)
            if first is None:
                most = _CHUNK_BYTES // ((kind[0] + self._width) * kind[1].itemsize)
                first, size = (
                    kind,
                    1 << (int(np.clip(most, *_CHUNK_ROWS)).bit_length() - 1),
                )
                missing = size - start % size
            if kind != first:
                raise ValueError(
                    f"blocks of X must have the columns and the dtype of the first, {first}, got {kind}"
                )
            some = np.ones(block.shape[0])
            if self.weights is not None:
                some, at = self.weights[at : at + block.shape[0]], at + block.shape[0]
                if len(some) < block.shape[0]:
                    raise ValueError(
                        f"weights must be one for each row of X, got {self.weights.size} for more rows"
                    )
                block, some = np.asarray(block)[some > 0], some[some > 0]
            while block.shape[0]:
                # A copy, since the chunk is still looked at when whoever yields blocks fills the next one.
                held.append((np.array(block[:missing]), some[:missing]))
                block, some, missing = (
                    block[missing:],
                    some[missing:],
                    missing - len(held[-1][0]),
                )
                if not missing:
                    rows, weights = map(np.concatenate, zip(*held, strict=True))
                    yield start, rows, weights, size
                    start, held, missing = start + len(rows), [], size
        if held:
            rows, weights = map(np.concatenate, zip(*held, strict=True))
            yield start, rows, weights, size

    def _blocks(self) -> Iterator[Any]:
        if not self.is_array:
            yield from self.X() if callable(self.X) else self.X
            return
        size = self._block_size or max(
            _READ_BYTES // (self.X.shape[1] * np.dtype(self.X.dtype).itemsize), 1
        )
        for start in range(self._own.start, self._own.stop, size):
            yield self.X[start : min(start + size, self._own.stop)]


@partial(jax.jit, static_argnames="values")
def _step(
    given: Any, rows: jax.Array, *, values: Callable[..., jax.Array]
) -> tuple[jax.Array, jax.Array]:
    found = by_blocks(
        lambda given, rows: values(rows, *given)[:, None],
        given,
        rows,
        block_size=_CACHED_ROWS,
    )[:, 0]
    return found, jnp.isfinite(rows).all(axis=1) & jnp.isfinite(found)


def generator(key: jax.Array, *numbers: int) -> np.random.Generator:
    """Return what draws on the host, by a key and numbers."""
    return np.random.default_rng(
        [*np.asarray(jax.random.key_data(key)).ravel().tolist(), *numbers]
    )


Kept = tuple[np.ndarray, ...]
"""Of rows that were drawn the times, numbers, odds and weights, and the rows."""


class Draw:
    """The rows of a pass whose clocks ring first: draws one after the other, where these are exponential."""

    def __init__(self, size: int, taken: np.ndarray | None = None) -> None:
        """Draw up to `size` rows, without those of the numbers `taken`."""
        self._size, self._taken, self._limit = (
            size,
            np.zeros(0, np.int64) if taken is None else taken,
            math.inf,
        )
        self._held, self._total = list[np.ndarray](), 0.0

    def take(
        self, chunk: Chunk, odds: np.ndarray, clocks: np.ndarray | None = None
    ) -> None:
        """Look at rows with such odds; a clock, exponential if none is given, runs as fast as its row has odds."""
        clocks = -np.log1p(-chunk.units) if clocks is None else clocks
        times = np.where(odds > 0, clocks / np.where(odds > 0, odds, 1), _LAST * clocks)
        taken = (
            self._taken[
                (self._taken >= chunk.start) & (self._taken < chunk.start + len(odds))
            ]
            - chunk.start
        )
        times[taken] = math.inf
        self._total += float(odds.sum() - odds[taken].sum())
        early = np.flatnonzero(times < self._limit)
        if early.size or not self._held:
            new = (
                times[early],
                chunk.start + early,
                odds[early],
                chunk.weights[early],
                chunk.rows[early],
            )
            self._held = (
                [np.concatenate(pair) for pair in zip(self._held, new, strict=True)]
                if self._held
                else [*new]
            )
            if len(self._held[0]) > 2 * self._size:
                self._first()

    def _first(self) -> None:
        order = np.lexsort((self._held[1], self._held[0]))[: self._size]
        self._held = [part[order] for part in self._held]
        if len(order) == self._size:
            self._limit = self._held[0][-1]

    def end(self, points: Points) -> tuple[Kept, float]:
        """Return the rows kept, of all processes by their times, and the sum of the odds of all that were not taken."""
        if points.many:
            blank = np.zeros((self._size, points.X.shape[1]), np.dtype(points.X.dtype))
            zero = np.zeros(self._size)
            filled = zero + math.inf, zero.astype(int), zero, zero.copy(), blank
            if self._held:
                self._first()
                for into, part in zip(filled, self._held, strict=True):
                    into[: len(part)] = part
            every = [np.concatenate(part) for part in exchange(*filled)]
            self._held = [part[np.isfinite(every[0])] for part in every]
        self._first()
        return tuple(self._held), float(added(points, self._total))


def exchange(*arrays: Any) -> list[np.ndarray]:
    """Return the arrays of all processes, stacked; their bytes are sent, since JAX would round float64."""
    arrays = tuple(map(np.asarray, arrays))
    sent = _mesh.gather([np.frombuffer(array.tobytes(), np.uint8) for array in arrays])
    return [
        np.frombuffer(np.asarray(part).tobytes(), array.dtype).reshape(-1, *array.shape)
        for part, array in zip(sent, arrays, strict=True)
    ]


def added(points: Points, value: Any) -> np.ndarray:
    """Return the sum over all processes."""
    return exchange(value)[0].sum(axis=0) if points.many else np.asarray(value)
