"""Landmarks of points in storage: passes over chunks of rows, samples kept on the host, and the rest on these alone.

What is drawn for a row depends on the key and its number, and a chunk is computed on one device: no choice depends on
how many rows are read at once, or on the devices.
"""

import collections
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern import landmarks as in_memory
from jaxkern._blocks import by_blocks
from jaxkern._distances import squared_distances
from jaxkern._types import Array, Float, PRNGKeyArray, Sharding
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.scale import _mesh
from jaxkern.scale._embed import host_matrix
from jaxkern.scale._resume import Report, Teller

_READ_BYTES = 2**24
_CHUNK_BYTES, _CHUNK_ROWS = 2**26, (2**8, 2**13)
"""Of points and of what a step makes of them; a chunk has between so many rows."""
_CACHED_ROWS, _TILE = 2**10, 2**8
"""Rows, and candidates, that are looked at together."""
_PASSES = 10
_ROUNDS, _LEAST = 5, 64
"""Rounds of k-means||, and the least number of candidates that a round asks for."""
_PER_PIVOT = 10
"""Candidates that a pass keeps for each landmark."""
_PILOTS = 2
"""Pilots for each landmark."""
_LAST = 1e200
"""Factor of the clocks of rows without odds: they ring after all others."""


def landmarks(
    key: PRNGKeyArray,
    X: Any,
    *,
    num_landmarks: int,
    method: str = "uniform",
    kernel: KernelLike | None = None,
    block_size: int | None = None,
    sharding: Sharding | None = None,
    report: Report | None = None,
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of points that no memory can hold, in at most ten passes over them.

    Methods are those of `jaxkern.landmarks`; what is drawn follows the same law, but for the following.

    - "uniform": without replacement, in random order. Of an array those rows alone are read, or the blocks with them.
    - "kmeans||": each of five rounds makes every row a candidate with probability min(1, l d^2(x) / sum d^2), d the
      distance to the nearest candidate so far and l = max(n, 64), and takes ceil(n / 5) candidates at least, and 2 l at
      most. A last pass counts the rows nearest to each, and greedy k-means++ with these weights chooses among them.
    - "pivoted_cholesky": a pass keeps 10 n rows, drawn one after the other with odds proportional to their residuals,
      and accepts each as a pivot with probability residual now / residual at the start of the pass, until the first
      row that was not kept could have been next. So the law is exactly that of one pivot after the other, for as long
      as passes are left; usually two or three are enough. What is missing after ten is chosen among the rows kept.
    - "leverage": one pass draws 2 n pilots and adds up the trace of K; the next one draws by the upper bounds of the
      ridge leverage scores with lambda = tr K / n.

    Parameters
    ----------
    key : typed random key, the same on every process.
    X : (N, d) points, float32 or float64: a NumPy or JAX array, a memory-mapped file, any object with `shape`, `dtype`
        and slices `X[a:b]`, a list of blocks (n_i, d), or a function without arguments that returns a new iterator of
        the same blocks whenever it is called.
    num_landmarks : n, in [1, N].
    method : one of the names above.
    kernel : a positive semidefinite kernel, or a function of two points; for the last two methods.
    block_size : rows that are read at once; by default as many as make 16 MB. It changes no result.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows, whose devices share the rows; by default one
        device. Over several processes X must be an array that all of them see, and each reads its `local_rows`.
    report : called as report(done, total) on the host after every chunk of rows, with the numbers of rows that this
        process has read in the pass and of all its rows; total is None where X is no array.

    Returns
    -------
    (n, d) array of the dtype of X: different rows of X, equal only where no others are left; the same on every process.

    Raises
    ------
    ValueError
        If X (or a block) is not a floating matrix, a row that is read holds NaN or infinity or has no finite kernel
        value or squared distance (the row is named), X has fewer rows than num_landmarks or other rows in another
        pass, method or sharding is of another kind, or kernel is missing.
    RuntimeError
        If another process has ended.

    Notes
    -----
    Passes: at most 1, 7, 10 and 2. Time of each O(N n d), or O(N n (d + n)) with a kernel. Memory of a block, of a few
    chunks of at most 8,192 rows, and O(n d + n^2), of which pivots take 80 n^2 bytes; none grows with N. Source:
    Bahmani, Moseley, Vattani, Kumar and Vassilvitskii (2012), Algorithm 2; Epperly, Tropp and Webber (2024); Musco and
    Musco (2017).

    Examples
    --------
    >>> import jax
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(1000, 3)).astype(np.float32)
    >>> landmarks(jax.random.key(0), X, num_landmarks=5, method="kmeans||").shape
    (5, 3)
    """
    key, count = checks.key(key), checks.count("num_landmarks", num_landmarks)
    if method not in _METHODS:
        raise ValueError(f"method must be one of {', '.join(_METHODS)}, got {method!r}")
    choose, needs_kernel, width = _METHODS[method]
    if needs_kernel and kernel is None:
        raise ValueError(f"kernel must be given for method {method}, got None")
    if block_size is not None:
        block_size = checks.count("block_size", block_size)
    kernels = [psd_kernel(kernel)] if needs_kernel and kernel is not None else []
    points = _Points(X, width * max(count, _LEAST), block_size, sharding, Teller("landmarks", report))
    points.has(count)
    return jnp.asarray(choose(points, key, count, *kernels))


class _Points:
    """Points that are read in passes, the share of this process alone."""

    def __init__(self, X: Any, width: int, block_size: int | None, sharding: Any, tell: Teller) -> None:
        self.X, self._width, self._block_size, self._tell = X, width, block_size, tell
        self._devices = tuple(_mesh.local_mesh(sharding).devices.flat)
        self.is_array = hasattr(X, "shape")
        self.many = _mesh.spans_processes(sharding)
        self.num_rows: int | None = None
        self._own = slice(0, 0)
        if self.is_array:
            host_matrix("X", X)
            self.num_rows = X.shape[0]
            self._own = _mesh.local_rows(X.shape[0], sharding) if self.many else slice(0, X.shape[0])
        elif self.many:
            raise ValueError("X must be an array, not blocks, where processes share it")
        elif not callable(X) and (not isinstance(X, Iterable) or isinstance(X, Iterator | str | bytes)):
            kind = type(X).__name__
            raise ValueError(
                f"X must be an array, a list of arrays, or a function that returns an iterator, got {kind}"
            )

    def has(self, count: int) -> int:
        """Return the number of rows, or raise where that of the landmarks is more; of blocks a pass has to tell it."""
        if self.num_rows is not None:
            checks.count("num_landmarks", count, maximum=self.num_rows, limit="the number of points")
        return self.num_rows or 0

    def at(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows of an array by their numbers, with no other rows read but those of their blocks."""
        size = 1 if isinstance(self.X, np.ndarray | jax.Array) else self._size(self.X)
        rows = np.empty((len(numbers), self.X.shape[1]), np.dtype(self.X.dtype))
        for block in np.unique(numbers // size).tolist():
            inside = numbers // size == block
            rows[inside] = np.asarray(self.X[block * size : min((block + 1) * size, self.X.shape[0])])[
                numbers[inside] - block * size
            ]
        for number in numbers[~np.isfinite(rows).all(axis=1)]:
            raise _unfit(number)
        return rows

    def sweep(
        self, key: jax.Array, odds: Callable[..., jax.Array], given: Any = ()
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        """Yield of every chunk the number of its first row, its rows, their odds, and numbers in (0, 1)."""
        there = [jax.device_put((key, given), device) for device in self._devices]
        waiting: collections.deque[tuple[Any, ...]] = collections.deque()
        done = 0
        for turn, (start, rows, size) in enumerate(self._chunks()):
            which = turn % len(there)
            full = np.pad(rows, ((0, size - len(rows)), (0, 0)), mode="edge") if len(rows) < size else rows
            placed = jax.device_put(full, self._devices[which])
            waiting.append(
                (start, rows, start % size, _step(*there[which], np.uint32(start // size), placed, odds=odds))
            )
            if len(waiting) > len(there):
                done += len(waiting[0][1])
                yield self._end(done, *waiting.popleft())
        while waiting:
            done += len(waiting[0][1])
            yield self._end(done, *waiting.popleft())
        expected = self._own.stop - self._own.start if self.is_array else self.num_rows
        if expected not in (None, done):
            raise ValueError(f"X must have the same rows in every pass, got {expected} and then {done}")
        self.num_rows = self.num_rows if self.is_array else done

    def _end(
        self, done: int, start: int, rows: np.ndarray, offset: int, result: Any
    ) -> tuple[int, np.ndarray, np.ndarray, np.ndarray]:
        values, bits, fine = map(np.asarray, result)
        for number in np.flatnonzero(~fine[: len(rows)]):
            raise _unfit(start + number)
        if self._tell.listened:
            self._tell(done, self._own.stop - self._own.start if self.is_array else None)
        return start, rows, np.asarray(values[: len(rows)], np.float64), _units(bits[offset : offset + len(rows)])

    def _chunks(self) -> Iterator[tuple[int, np.ndarray, int]]:
        """Yield the number of the first row, the rows and the size of chunks; they begin at multiples of the size."""
        start, held, missing, size = self._own.start, [], 0, 0
        first = None
        for block in self._blocks():
            host_matrix("each block of X", block)
            kind = block.shape[1], np.dtype(block.dtype)
            if first is None:
                first, size = kind, self._chunk_rows(*kind)
                missing = size - start % size
            if kind != first:
                raise ValueError(
                    f"each block of X must have the columns and the dtype of the first, {first}, got {kind}"
                )
            while block.shape[0]:
                # A copy, since the chunk is still looked at when whoever yields blocks fills the next one.
                part, block = np.array(block[:missing]), block[missing:]
                held.append(part)
                missing -= len(part)
                if not missing:
                    yield start, np.concatenate(held) if len(held) > 1 else part, size
                    start, held, missing = start + sum(map(len, held)), [], size
        if held:
            yield start, np.concatenate(held), size

    def _blocks(self) -> Iterator[Any]:
        if not self.is_array:
            yield from self.X() if callable(self.X) else self.X
            return
        size = self._size(self.X)
        for start in range(self._own.start, self._own.stop, size):
            yield self.X[start : min(start + size, self._own.stop)]

    def _size(self, X: Any) -> int:
        return self._block_size or max(_READ_BYTES // (X.shape[1] * np.dtype(X.dtype).itemsize), 1)

    def _chunk_rows(self, dim: int, dtype: Any) -> int:
        least, most = _CHUNK_ROWS
        rows = _CHUNK_BYTES // ((dim + self._width) * dtype.itemsize)
        return 1 << (min(max(rows, least), most).bit_length() - 1)


@partial(jax.jit, static_argnames="odds")
def _step(
    key: jax.Array, given: Any, number: jax.Array, rows: jax.Array, *, odds: Callable[..., jax.Array]
) -> tuple[jax.Array, jax.Array, jax.Array]:
    values = by_blocks(lambda given, rows: odds(rows, *given)[:, None], given, rows, block_size=_CACHED_ROWS)[:, 0]
    bits = jax.random.bits(jax.random.fold_in(key, number), (rows.shape[0], 2), jnp.uint32)
    return values, bits, jnp.isfinite(rows).all(axis=1) & jnp.isfinite(values)


def _unfit(number: Any) -> ValueError:
    return ValueError(f"X must be finite, and kernel values and distances with it; row {number} is not")


def _units(bits: np.ndarray) -> np.ndarray:
    """Return numbers in (0, 1) with 52 binary digits, each from two words: none is 0, and ties are unheard of."""
    high, low = bits.astype(np.uint64).T
    return ((high << np.uint64(20) | low >> np.uint64(12)) + 0.5) * 2.0**-52


def _uniforms(key: jax.Array, count: int, each: int) -> np.ndarray:
    return _units(np.asarray(jax.random.bits(key, (count * each, 2), jnp.uint32))).reshape(count, each)


def _exponential(units: np.ndarray) -> np.ndarray:
    return -np.log1p(-units)


class _Draw:
    """The rows of a pass whose clocks ring first: draws one after the other, where these are exponential."""

    def __init__(self, size: int, taken: np.ndarray | None = None) -> None:
        """Draw up to `size` rows, without those of the numbers `taken`."""
        self._size, self._taken, self._limit = size, np.zeros(0, np.int64) if taken is None else taken, math.inf
        self._held: list[np.ndarray] = []

    def take(self, start: int, rows: np.ndarray, clocks: np.ndarray, odds: Any = 1.0) -> None:
        """Look at the rows from number `start` on; a clock runs as fast as its row has odds."""
        odds = np.broadcast_to(odds, clocks.shape)
        times = np.where(odds > 0, clocks / np.where(odds > 0, odds, 1), _LAST * clocks)
        times[self._taken[(self._taken >= start) & (self._taken < start + len(rows))] - start] = math.inf
        early = np.flatnonzero(times < self._limit)
        if early.size or not self._held:
            new = times[early], start + early, odds[early], rows[early]
            self._held = [np.concatenate(pair) for pair in zip(self._held, new, strict=True)] if self._held else [*new]
            if len(self._held[0]) > 2 * self._size:
                self._first()

    def _first(self) -> None:
        order = np.lexsort((self._held[1], self._held[0]))[: self._size]
        self._held = [part[order] for part in self._held]
        if len(order) == self._size:
            self._limit = self._held[0][-1]

    def end(self, points: _Points) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return times, numbers, odds and rows of all processes, in the order of the times."""
        if points.many:
            blank = np.zeros((self._size, points.X.shape[1]), np.dtype(points.X.dtype))
            filled = np.full(self._size, math.inf), np.zeros(self._size, np.int64), np.zeros(self._size), blank
            if self._held:
                self._first()
                for into, part in zip(filled, self._held, strict=True):
                    into[: len(part)] = part
            every = [np.concatenate(part) for part in _exchange(*filled)]
            self._held = [part[np.isfinite(every[0])] for part in every]
        self._first()
        times, numbers, odds, rows = self._held
        return times, numbers, odds, rows


def _exchange(*arrays: np.ndarray) -> list[np.ndarray]:
    """Return the arrays of all processes, stacked; their bytes are sent, since JAX would round float64."""
    sent = _mesh.gather([np.frombuffer(array.tobytes(), np.uint8) for array in arrays])
    return [
        np.frombuffer(np.asarray(part).tobytes(), array.dtype).reshape(-1, *array.shape)
        for part, array in zip(sent, arrays, strict=True)
    ]


def _added(points: _Points, value: Any) -> np.ndarray:
    """Return the sum over all processes."""
    return _exchange(np.asarray(value))[0].sum(axis=0) if points.many else np.asarray(value)


def _some(points: _Points, key: jax.Array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of rows drawn uniformly without replacement, and the rows."""
    if points.num_rows is not None and points.is_array:
        numbers = _numbers(key, count, points.num_rows)
        return numbers, points.at(numbers)
    draw = _Draw(count)
    for start, rows, _, units in points.sweep(key, _even):
        draw.take(start, rows, units)
    points.has(count)
    return draw.end(points)[1::2]


def _numbers(key: jax.Array, count: int, total: int) -> np.ndarray:
    """Return different whole numbers below `total` in random order; memory O(count)."""
    if total <= 4 * count:
        return np.asarray(jax.random.permutation(key, total)[:count])
    found: Any = np.zeros(0, np.uint64)
    turn = 0
    while len(found) < count:
        bits = np.asarray(jax.random.bits(jax.random.fold_in(key, turn), (2 * count, 2), jnp.uint32)).astype(np.uint64)
        found = np.concatenate([found, (bits[:, 0] << np.uint64(32) | bits[:, 1]) % np.uint64(total)])
        found = found[np.sort(np.unique(found, return_index=True)[1])]
        turn += 1
    return found[:count].astype(np.int64)


def _even(rows: jax.Array) -> jax.Array:
    return jnp.ones(rows.shape[0], rows.dtype)


def _uniform(points: _Points, key: jax.Array, count: int) -> np.ndarray:
    return _some(points, key, count)[1]


def _gaps(rows: jax.Array, tiles: jax.Array, number: jax.Array, scale: jax.Array) -> jax.Array:
    return _nearest(rows, tiles, number, scale)[0]


def _labels(rows: jax.Array, tiles: jax.Array, number: jax.Array, scale: jax.Array) -> jax.Array:
    return _nearest(rows, tiles, number, scale)[1]


def _nearest(rows: jax.Array, tiles: jax.Array, number: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return (|x - y| / scale)^2 and which y for the nearest candidate in the first tiles (tiles, _TILE, d)."""

    def look(i: jax.Array, best: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        # Products where their rounding is below a hundredth of the scale: that of the mean squared distance.
        squares = squared_distances(rows, tiles[i], scale, slope=1e-3)
        least, which = jnp.min(squares, axis=1), lax.argmin(squares, 1, jnp.int32)
        return jnp.minimum(least, best[0]), jnp.where(least < best[0], which + i * _TILE, best[1])

    nothing = jnp.full(rows.shape[0], jnp.inf, rows.dtype), jnp.zeros(rows.shape[0], jnp.int32)
    return lax.fori_loop(0, number, look, nothing)


def _scalable(points: _Points, key: jax.Array, count: int) -> np.ndarray:
    size, fewest = max(count, _LEAST), -(-count // _ROUNDS)
    numbers, first = _some(points, jax.random.fold_in(key, 0), 1)
    # Filled up with copies of the first one: then one program serves all rounds.
    tiles = np.repeat(first, -(-(1 + _ROUNDS * 2 * size) // _TILE) * _TILE, axis=0)
    scale = np.ones((), first.dtype)

    def given() -> tuple[Any, ...]:
        return tiles.reshape(-1, _TILE, tiles.shape[1]), np.int32(-(-len(numbers) // _TILE)), scale

    for turn in range(1, _ROUNDS + 1):
        draw, cost = _Draw(2 * size, numbers), 0.0
        for start, rows, odds, units in points.sweep(jax.random.fold_in(key, turn), _gaps, given()):
            draw.take(start, rows, units, odds)
            cost += float(odds.sum())
        total = points.has(count)
        cost = float(_added(points, cost))
        times, new, _, rows = draw.end(points)
        # In other words: a uniform number u <= size * odds / cost.
        among = max(int((times * cost <= size).sum()), fewest) if cost > 0 else fewest
        tiles[len(numbers) : len(numbers) + len(new[:among])] = rows[:among]
        numbers = np.concatenate([numbers, new[:among]])
        scale = scale * np.sqrt(cost / total).astype(scale.dtype) if cost > 0 else scale
    counts = np.zeros(len(tiles), np.int64)
    for _, _, labels, _ in points.sweep(jax.random.fold_in(key, 0), _labels, given()):
        counts += np.bincount(labels.astype(np.int64), minlength=len(tiles))
    weights = np.maximum(_added(points, counts), np.arange(len(tiles)) < len(numbers)).astype(tiles.dtype)
    key = jax.random.fold_in(key, _ROUNDS + 1)
    return np.asarray(in_memory.kmeans_plus_plus(key, tiles, num_landmarks=count, num_candidates=None, weights=weights))


def _filled(rows: np.ndarray) -> np.ndarray:
    """Return rows filled up with copies of the first to a power of two, so that few programs serve all numbers."""
    padding = (1 << (len(rows) - 1).bit_length()) - len(rows)
    return np.concatenate([rows, np.repeat(rows[:1], padding, axis=0)])


def _diagonal(rows: jax.Array, kernel: Kernel) -> jax.Array:
    return kernel._diagonal(rows)


def _leverage(points: _Points, key: jax.Array, count: int, kernel: Kernel) -> np.ndarray:
    draw, trace = _Draw(_PILOTS * count), 0.0
    for start, rows, diagonal, units in points.sweep(jax.random.fold_in(key, 0), _diagonal, (kernel,)):
        draw.take(start, rows, units)
        trace += float(diagonal.sum())
    points.has(count)
    pilots = draw.end(points)[3]
    K = np.asarray(_gram(kernel, jnp.asarray(pilots)), np.float64)
    least = 4 * len(pilots) * np.finfo(pilots.dtype).eps * K.max()
    ridge = max(float(_added(points, trace)) / count, least) or 1.0
    given = kernel, *_padded(pilots, np.linalg.cholesky(K + ridge * np.eye(len(pilots)))), np.int32(len(pilots))
    draw, nothing = _Draw(count), np.zeros((), pilots.dtype)
    for start, rows, left, units in points.sweep(jax.random.fold_in(key, 1), _left, (*given, nothing)):
        draw.take(start, rows, _exponential(units), left)
    return draw.end(points)[3]


def _left(
    rows: jax.Array, kernel: Kernel, chosen: jax.Array, root: jax.Array, count: jax.Array, nothing: jax.Array
) -> jax.Array:
    """Return what `count` chosen rows leave of K(x, x), by the Cholesky factor of their Gram matrix or of it with a
    ridge; 0 where that is at most `nothing`.
    """
    cross = jnp.where(lax.iota(jnp.int32, len(chosen))[:, None] < count, _gram(kernel, chosen, rows), 0)
    half = jax.scipy.linalg.solve_triangular(root, cross, lower=True)
    left = kernel._diagonal(rows) - jnp.sum(half * half, axis=0)
    return jnp.where(left > nothing, left, 0 * left)


def _pivoted(points: _Points, key: jax.Array, count: int, kernel: Kernel) -> np.ndarray:
    size, most = _PER_PIVOT * count, 0.0
    numbers, pivots, root = np.zeros(0, np.int64), np.zeros((0, 0), np.float32), np.eye(count)
    for turn in range(_PASSES):
        key_rows, key_pivots = jax.random.split(jax.random.fold_in(key, turn))
        draw = _Draw(size, numbers)
        given: tuple[Any, ...] = (kernel,)
        if turn:
            nothing = 10 * np.finfo(pivots.dtype).eps * most
            given = kernel, *_padded(pivots, root), np.int32(len(pivots)), np.asarray(nothing, pivots.dtype)
        for start, rows, left, units in points.sweep(key_rows, _left if turn else _diagonal, given):
            draw.take(start, rows, _exponential(units), left)
            most = most if turn else max(most, float(left.max()))
        points.has(count)
        most = float(_exchange(np.asarray(most))[0].max()) if points.many else most
        kept = draw.end(points)
        pivots = pivots if turn else kept[3][:0]
        chosen = _accepted(key_pivots, kernel, kept, size, pivots, root, most, turn == _PASSES - 1)
        numbers, pivots = np.concatenate([numbers, kept[1][chosen]]), np.concatenate([pivots, kept[3][chosen]])
        if len(pivots) == count:
            break
    return pivots


def _padded(pivots: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return pivots and their factor, both filled up."""
    filled = _filled(pivots)
    factor = np.eye(len(filled), dtype=filled.dtype)
    factor[: len(pivots), : len(pivots)] = root[: len(pivots), : len(pivots)]
    return filled, factor


def _accepted(
    key: jax.Array,
    kernel: Kernel,
    kept: tuple[np.ndarray, ...],
    size: int,
    pivots: np.ndarray,
    root: np.ndarray,
    most: float,
    is_last: bool,
) -> list[int]:
    """Return which of the rows kept are the next pivots, in float64, and write their rows of the Cholesky factor.

    Clocks go on after they have rung: of the rows that were next once, one is next again at the rate of their
    residuals now. A row whose clock rings for the first time is accepted with probability residual now / odds. After
    the last of `size` rings nothing is known, unless there were fewer, and the others have no odds.
    """
    times, _, odds, rows = kept
    there = jnp.asarray(rows)
    done, count = len(pivots), len(root)
    nothing = 10 * np.finfo(rows.dtype).eps * most
    factor = np.zeros((len(rows), count))
    if done:
        cross = np.asarray(_gram(kernel, jnp.asarray(pivots), there), np.float64)
        factor[:, :done] = np.linalg.solve(root[:done, :done], cross).T
    left = np.asarray(kernel._diagonal(there), np.float64) - np.square(factor).sum(axis=1)
    left = np.where(left > nothing, np.minimum(left, odds), 0)
    live, horizon = int((odds > 0).sum()), times[-1] if len(times) == size else math.inf
    exhausted, units = not left.any(), iter(_uniforms(key, len(rows) + count + 1, 3))
    rung, now, chosen = 0, 0.0, list[int]()

    def accept(row: int) -> None:
        at = done + len(chosen)
        column = np.asarray(_gram(kernel, there, jnp.asarray(rows[row : row + 1])), np.float64)[:, 0]
        column = (column - factor @ factor[row]) / math.sqrt(left[row])
        root[at, :at], root[at, at] = factor[row, :at], column[row]
        factor[:, at] = column
        left[:] = np.where(left - column * column > nothing, left - column * column, 0)
        left[row] = 0
        chosen.append(row)

    while done + len(chosen) < count:
        wait, chance, place = next(units)
        rate = left[:rung].sum()
        again = now + _exponential(wait) / rate if rate > 0 else math.inf
        first = times[rung] if rung < live else math.inf
        now = min(first, again)
        if now > horizon or now == math.inf:
            break
        if again < first:
            accept(_drawn(left[:rung], place))
        else:
            rung += 1
            if chance * odds[rung - 1] < left[rung - 1]:
                accept(rung - 1)
    while is_last and done + len(chosen) < count and left.any():
        accept(_drawn(left, next(units)[2]))
    if is_last or exhausted:  # times of rows without odds are those of a uniform draw
        chosen += np.delete(np.arange(len(rows)), chosen)[: count - done - len(chosen)].tolist()
    return chosen


def _drawn(weights: np.ndarray, unit: float) -> int:
    """Return an index drawn by weight."""
    cumulative = np.cumsum(weights)
    return int(np.searchsorted(cumulative, unit * cumulative[-1]))


_METHODS: dict[str, tuple[Callable[..., np.ndarray], bool, int]] = {
    "uniform": (_uniform, False, 0),
    "kmeans||": (_scalable, False, 2 * _ROUNDS),
    "pivoted_cholesky": (_pivoted, True, 1),
    "leverage": (_leverage, True, _PILOTS),
}
"""How each chooses, whether it asks for a kernel, and how many columns a step has for each landmark."""
