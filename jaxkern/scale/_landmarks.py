"""Landmarks of points in storage: samples of a few passes are kept on the host, and the rest is done on these alone."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern import landmarks as in_memory
from jaxkern._distances import squared_distances
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray, Sharding
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.landmarks._choices import _left_over, _ridge_root
from jaxkern.scale._passes import Draw, Kept, Points, added, exchange, generator
from jaxkern.scale._resume import Report, Teller

_TILE = 2**8
"""Candidates that are looked at together."""
_PASSES = 10
_ROUNDS, _LEAST = 5, 64
"""Rounds of k-means||, and the least number of candidates that a round asks for."""
_PER_PIVOT = 10
"""Candidates that a pass keeps for each landmark."""
_PILOTS = 2
"""Pilots for each landmark."""


def landmarks(
    key: PRNGKeyArray,
    X: Any,
    *,
    num_landmarks: int,
    method: str = "uniform",
    kernel: KernelLike | None = None,
    weights: Float[ArrayLike, " N"] | None = None,
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
    weights : (N,) non-negative weights, not all zero, in an array or a mapped file; a row of weight w counts as w
        copies, and one of weight 0 does not exist, whatever it holds. With them "uniform" reads all rows.
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
        pass, weights are not such weights, method or sharding is of another kind, or kernel is missing.
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
    points = Points(
        X,
        weights,
        count,
        width * max(count, _LEAST),
        block_size,
        sharding,
        Teller("landmarks", report),
    )
    return jnp.asarray(choose(points, key, count, *kernels))


def _some(points: Points, key: jax.Array, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of rows drawn by weight without replacement, and the rows."""
    if points.is_array and points.weights is None and points.num_rows is not None:
        numbers = generator(key).choice(
            points.num_rows, count, replace=False
        )  # in memory O(count)
        return numbers, points.at(numbers)
    draw = Draw(count)
    for chunk in points.sweep(key, _even):
        draw.take(chunk, chunk.weights)
    (_, numbers, _, _, chosen), _ = draw.end(points)
    return numbers, chosen


def _even(rows: jax.Array) -> jax.Array:
    return jnp.ones(rows.shape[0], rows.dtype)


def _nearest(
    rows: jax.Array, tiles: jax.Array, number: jax.Array, scale: jax.Array, *, part: int
) -> jax.Array:
    """Return (|x - y| / scale)^2, or which y, for the nearest candidate in the first tiles (tiles, _TILE, d)."""

    def look(
        i: jax.Array, best: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        # Products where their rounding is below a hundredth of the scale: that of the mean squared distance.
        squares = squared_distances(tiles[i], rows, scale, slope=1e-3)
        least = jnp.min(squares, axis=0)
        # An `argmin` takes longer than all the rest.
        which = jnp.min(jnp.where(squares == least[None, :], places, _TILE), axis=0)
        return jnp.minimum(least, best[0]), jnp.where(
            least < best[0], which + i * _TILE, best[1]
        )

    places = lax.iota(jnp.int32, _TILE)[:, None]
    nothing = (
        jnp.full(rows.shape[0], jnp.inf, rows.dtype),
        jnp.zeros(rows.shape[0], jnp.int32),
    )
    return lax.fori_loop(0, number, look, nothing)[part]


_gaps, _labels = partial(_nearest, part=0), partial(_nearest, part=1)


def _scalable(points: Points, key: jax.Array, count: int) -> np.ndarray:
    size, fewest = max(count, _LEAST), -(-count // _ROUNDS)
    numbers, first = _some(points, jax.random.fold_in(key, 0), 1)
    # Filled up with copies of the first one: then one program serves all rounds.
    tiles = np.repeat(first, -(-(1 + _ROUNDS * 2 * size) // _TILE) * _TILE, axis=0)
    scale = np.ones((), first.dtype)

    def given() -> tuple[Any, ...]:
        return (
            tiles.reshape(-1, _TILE, tiles.shape[1]),
            np.int32(-(-len(numbers) // _TILE)),
            scale,
        )

    for turn in range(1, _ROUNDS + 1):
        draw, mass = Draw(2 * size, numbers), 0.0
        for chunk in points.sweep(jax.random.fold_in(key, turn), _gaps, *given()):
            draw.take(chunk, chunk.weights * chunk.values, chunk.units)
            mass += float(chunk.weights.sum())
        (times, new, _, _, rows), cost = draw.end(points)
        mass = float(added(points, mass))
        # In other words: a uniform number u <= size * odds / cost.
        among = max(int((times * cost <= size).sum()), fewest) if cost > 0 else fewest
        tiles[len(numbers) : len(numbers) + len(rows[:among])] = rows[:among]
        numbers = np.concatenate([numbers, new[:among]])
        scale = scale * np.sqrt(cost / mass).astype(scale.dtype) if cost > 0 else scale
    counts = np.zeros(len(tiles))
    for chunk in points.sweep(jax.random.fold_in(key, 0), _labels, *given()):
        counts += np.bincount(
            chunk.values.astype(np.int64), chunk.weights, minlength=len(tiles)
        )
    counts = added(points, counts)
    # A candidate that is a copy of another one has no rows, but may be needed.
    least = np.where(np.arange(len(tiles)) < len(numbers), counts[counts > 0].min(), 0)
    weights = np.maximum(counts, least).astype(tiles.dtype)
    key = jax.random.fold_in(key, _ROUNDS + 1)
    return np.asarray(
        in_memory.kmeans_plus_plus(
            key, tiles, num_landmarks=count, num_candidates=None, weights=weights
        )
    )


def _diagonal(rows: jax.Array, kernel: Kernel) -> jax.Array:
    return kernel._diagonal(rows)


def _left(
    rows: jax.Array,
    kernel: Kernel,
    chosen: jax.Array,
    root: jax.Array,
    roots: jax.Array,
    nothing: jax.Array,
) -> jax.Array:
    """Return what chosen rows leave of K(x, x); 0 where that is at most `nothing`."""
    left = _left_over(kernel, rows, chosen, root, roots)
    return jnp.where(left > nothing, left, 0 * left)


def _leverage(points: Points, key: jax.Array, count: int, kernel: Kernel) -> np.ndarray:
    draw, trace = Draw(_PILOTS * count), 0.0
    for chunk in points.sweep(jax.random.fold_in(key, 0), _diagonal, kernel):
        draw.take(chunk, chunk.weights)
        trace += float((chunk.weights * chunk.values).sum())
    (*_, shares, pilots), _ = draw.end(points)
    counted = shares if len(pilots) == points.num_rows else np.minimum(shares, 1)
    ridge, roots = (
        np.asarray(added(points, trace) / count, pilots.dtype),
        np.sqrt(counted).astype(pilots.dtype),
    )
    root = _ridge_root(
        _gram(kernel, jnp.asarray(pilots)), jnp.asarray(ridge), jnp.asarray(roots)
    )
    draw, nothing = Draw(count), np.zeros((), pilots.dtype)
    for chunk in points.sweep(
        jax.random.fold_in(key, 1),
        _left,
        kernel,
        pilots,
        np.asarray(root),
        roots,
        nothing,
    ):
        draw.take(chunk, chunk.weights * chunk.values)
    return draw.end(points)[0][-1]


def _pivoted(points: Points, key: jax.Array, count: int, kernel: Kernel) -> np.ndarray:
    size, most, numbers, root = (
        _PER_PIVOT * count,
        0.0,
        np.zeros(0, np.int64),
        np.eye(count),
    )
    given: tuple[Any, ...] = ()
    for turn in range(_PASSES):
        key_rows, key_pivots = jax.random.split(jax.random.fold_in(key, turn))
        draw = Draw(size, numbers)
        for chunk in points.sweep(
            key_rows, _left if turn else _diagonal, kernel, *given
        ):
            draw.take(chunk, chunk.weights * chunk.values)
            most = most if turn else max(most, float(chunk.values.max()))
        kept, total = draw.end(points)
        if not turn:
            most, pivots = (
                float(exchange(most)[0].max()) if points.many else most,
                kept[-1][:0],
            )
        nothing = 10 * np.finfo(pivots.dtype).eps * most
        chosen = _accepted(
            key_pivots,
            kernel,
            kept,
            total,
            size,
            pivots,
            root,
            nothing,
            turn == _PASSES - 1,
        )
        numbers, pivots = (
            np.concatenate([numbers, kept[1][chosen]]),
            np.concatenate([pivots, kept[-1][chosen]]),
        )
        if len(pivots) == count:
            break
        given = *_padded(pivots, root), np.asarray(nothing, pivots.dtype)
    return pivots


def _padded(pivots: np.ndarray, root: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return pivots and their factor, both filled up to a power of two, and which they are: few programs serve all."""
    count, size = len(pivots), 1 << (len(pivots) - 1).bit_length()
    filled = np.concatenate([pivots, np.repeat(pivots[:1], size - count, axis=0)])
    factor = np.eye(size, dtype=pivots.dtype)
    factor[:count, :count] = root[:count, :count]
    return filled, factor, (np.arange(size) < count).astype(pivots.dtype)


def _accepted(
    key: jax.Array,
    kernel: Kernel,
    kept: Kept,
    total: float,
    size: int,
    pivots: np.ndarray,
    root: np.ndarray,
    nothing: float,
    is_last: bool,
) -> list[int]:
    """Return which of the rows kept are the next pivots, in float64, and write their rows of the Cholesky factor.

    Rows come one after the other: one that has not come yet with its odds at the start of the pass, of which all rows
    have the `total`, and one that has with its residual now. The former is the next of those kept, and a pivot with
    probability residual now / odds; the latter is one. Behind the last of the `size` rows kept nothing is known of the
    next new one, unless no other row has odds.
    """
    _, _, odds, shares, rows = kept
    there = jnp.asarray(rows)
    done, count = len(pivots), len(root)
    factor = np.zeros((len(rows), count))
    if done:
        cross = np.asarray(_gram(kernel, jnp.asarray(pivots), there), np.float64)
        factor[:, :done] = np.linalg.solve(root[:done, :done], cross).T
    left = np.asarray(kernel._diagonal(there), np.float64) - np.square(factor).sum(
        axis=1
    )
    left = np.where(left > nothing, np.minimum(left, odds / shares), 0)
    live, beyond = (
        int((odds > 0).sum()),
        max(total - odds.sum(), 0) if len(rows) == size else 0,
    )
    unseen = beyond + np.append(np.cumsum(odds[::-1])[::-1], 0)
    exhausted, rng, seen, chosen = not left.any(), generator(key), 0, list[int]()

    def accept(row: int) -> None:
        at = done + len(chosen)
        column = np.asarray(
            _gram(kernel, there, jnp.asarray(rows[row : row + 1])), np.float64
        )[:, 0]
        column = (column - factor @ factor[row]) / math.sqrt(left[row])
        root[at, :at], root[at, at] = factor[row, :at], column[row]
        factor[:, at] = column
        left[:] = np.where(left - column * column > nothing, left - column * column, 0)
        left[row] = 0
        chosen.append(row)

    while done + len(chosen) < count:
        again = (shares * left)[:seen]
        if rng.random() * (again.sum() + unseen[seen]) < again.sum():
            accept(int(rng.choice(seen, p=again / again.sum())))
        elif seen == live:
            break
        else:
            seen += 1
            if rng.random() * odds[seen - 1] < shares[seen - 1] * left[seen - 1]:
                accept(seen - 1)
    while is_last and done + len(chosen) < count and left.any():
        accept(int(rng.choice(len(left), p=shares * left / (shares @ left))))
    if is_last or exhausted:  # rows without odds come as those of a uniform draw
        chosen += np.delete(np.arange(len(rows)), chosen)[
            : count - done - len(chosen)
        ].tolist()
    return chosen


_METHODS: dict[str, tuple[Callable[..., np.ndarray], bool, int]] = {
    "uniform": (lambda *given: _some(*given)[1], False, 0),
    "kmeans||": (_scalable, False, 2 * _ROUNDS),
    "pivoted_cholesky": (_pivoted, True, 1),
    "leverage": (_leverage, True, _PILOTS),
}
"""How each chooses, whether it asks for a kernel, and how many columns a step has for each landmark."""
