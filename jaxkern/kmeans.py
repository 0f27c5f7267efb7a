"""k-means: k-means++ seeding, greedy or plain, Lloyd iterations, restarts.

Points are centred once, because the product form |c|^2 - 2 <x, c> of squared distances loses the digits that a common
offset takes; it serves only to find the nearest centre, and only where its rounding is far below the distance to it.
Where a distance itself counts (seeding, the objective) it is summed over direct differences. Rows go through in blocks,
so that nothing is larger than N x d or k x block.

All of it also runs with the rows divided over the devices of a mesh (`scale.kmeans`): what depends on rows of other
devices goes through `_Share`, which does nothing on one device.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._distances import FEW, coordinate_sums, everywhere, product_rounding
from jaxkern.draws import invert
from jaxkern.pytrees import pytree

__all__ = ["KMeansResult", "kmeans"]

_BLOCK_ELEMENTS = 2**18  # of the k x block scores: 1 MB in float32, which a core's cache holds


@pytree
class KMeansResult:
    """A partition of N points, of weights w_i (1 unless given), into k clusters.

    Attributes
    ----------
    labels : (N,) int32 in [0, k), the nearest centre of each point.
    centers : (k, d), in the dtype of the points.
    objective : scalar, sum_i w_i |x_i - centers[labels_i]|^2 for the fields above.
    converged : scalar bool, whether the last iteration moved the centres by no more than the tolerance.
    iterations : scalar int32, how many Lloyd iterations the returned restart took.
    """

    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array
    iterations: jax.Array


def kmeans(
    key: jax.Array,
    X: Any,
    num_clusters: int,
    *,
    weights: Any = None,
    num_restarts: int = 1,
    max_iterations: int = 300,
    tolerance: Any = 1e-4,
    num_candidates: int | None = None,
    block_size: int | None = None,
) -> KMeansResult:
    """Cluster points around `num_clusters` centres, to a local minimum of the sum of squared distances.

    min over c_1, ..., c_k of sum_i w_i min_j |x_i - c_j|^2. k-means++ seeding, then Lloyd iterations until the
    centres move by sum_j |c_j' - c_j|^2 <= tolerance * (mean variance of a coordinate), as in scikit-learn; labels that
    no longer change move nothing. A cluster that loses all points starts again at the point farthest from its centre
    (several of them at different points); where fewer than `num_clusters` points are distinct, some stay empty. A point
    of weight 2 counts as two copies; one of weight 0 has no influence and gets the label of its nearest centre, so that
    data sets of different sizes, filled up with rows of weight 0, can go through one vmap.

    key : a typed random key. Restart r uses `fold_in(key, r)`, so more restarts never give a worse objective.
    X : (N, d), float32 or float64, N >= num_clusters.
    num_clusters : k, a Python int in [1, N].
    weights : (N,) at least 0, in the dtype of X; by default all 1. Where one is negative, or their sum is not positive
        and finite, the objective is not finite and `converged` is False; NumPy arrays are refused.
    num_restarts : independent seedings, at least 1; the one with the smallest objective is returned.
    max_iterations : Lloyd iterations of each restart, at least 1.
    tolerance : at least 0; 0 goes on until the centres stand still.
    num_candidates : how many points are drawn for each seed, of which the best is taken, at least 1; by default
        2 + log k, rounded down (greedy k-means++). 1 is k-means++ as published, with its guarantee in expectation.
    block_size : rows whose distances to all centres are held at once; by default as many as fit a cache.

    Returns a `KMeansResult`: labels (N,), centers (k, d), objective, converged, iterations. NaN or infinite points give
    an objective that is not finite, and `converged` False.
    Raises ValueError for a bad key, rank, dtype, size, count or negative tolerance, naming the argument.
    Cost: O(N d k) time for each iteration and O(N d k num_candidates) for each seeding; O(N (d + num_candidates) +
    block_size k) memory.
    Source: Lloyd (1982), Arthur and Vassilvitskii (2007).

    >>> import jax, jax.numpy as jnp
    >>> kmeans(jax.random.key(0), jnp.arange(6.0)[:, None], 2).centers.shape
    (2, 1)
    """
    key = checks.key(key)
    X = checks.matrix("X", X)
    weights = checks.weights(weights, "X", X)
    sizes, max_iterations = _sizes(
        X.shape[0], X.shape[0], num_clusters, num_restarts, max_iterations, tolerance, num_candidates, block_size
    )
    return _kmeans(key, X, weights, max_iterations, checks.scalar("tolerance", tolerance, X.dtype), **sizes)


def _sizes(
    num_points: int,
    num_rows: int,
    num_clusters: Any,
    num_restarts: Any,
    max_iterations: Any,
    tolerance: Any,
    num_candidates: Any,
    block_size: Any,
) -> tuple[dict[str, int], int]:
    """Return the static sizes of `_kmeans` for points of which a device has `num_rows`, and max_iterations, checked."""
    num_clusters = checks.count("num_clusters", num_clusters, maximum=num_points, limit="the number of points")
    num_restarts = checks.count("num_restarts", num_restarts)
    max_iterations = checks.count("max_iterations", max_iterations)
    if checks.is_static(tolerance) and not tolerance >= 0:
        raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
    if num_candidates is None:
        num_candidates = 2 + int(math.log(num_clusters))
    num_candidates = checks.count("num_candidates", num_candidates)
    if block_size is None:
        block_size = max(_BLOCK_ELEMENTS // num_clusters, 128)
        # Equal blocks: the last one would otherwise be padded by up to a whole block.
        block_size = -(-num_rows // -(-num_rows // block_size))
    sizes = {
        "num_clusters": num_clusters,
        "num_restarts": num_restarts,
        "num_candidates": num_candidates,
        "block_size": min(checks.count("block_size", block_size), num_rows),
    }
    return sizes, max_iterations


class _Share(NamedTuple):
    """The rows that a program sees: all N of them, or those of one device along an axis of a mesh.

    Every device then holds equally many rows, a multiple of `table_width(N)`, in the order of the devices; after the
    N points come rows that are none. All devices run the same program, with equal centres.
    """

    num_points: int
    axis: str | None = None

    def sum(self, values: jax.Array) -> jax.Array:
        """Add up what the devices have."""
        return values if self.axis is None else lax.psum(values, self.axis)

    def max(self, values: jax.Array) -> jax.Array:
        """Return the largest of what the devices have."""
        return values if self.axis is None else lax.pmax(values, self.axis)

    def all(self, flags: jax.Array) -> jax.Array:
        """Tell whether all flags of all devices are set."""
        return flags.all() if self.axis is None else lax.pmin(flags.all().astype(jnp.int32), self.axis) > 0

    def gather(self, values: jax.Array) -> jax.Array:
        """Return the rows of all devices."""
        return values if self.axis is None else lax.all_gather(values, self.axis, tiled=True)

    def count(self, num_rows: int) -> Any:
        """Return how many of the first `num_rows` rows here are points."""
        if self.axis is None:
            return self.num_points
        return jnp.clip(self.num_points - lax.axis_index(self.axis) * num_rows, 0, num_rows)

    def points(self, rows: jax.Array) -> jax.Array:
        """Return the rows with zeros in place of those that are no points."""
        if self.axis is None:
            return rows
        inside = lax.iota(jnp.int32, rows.shape[0]) < self.count(rows.shape[0])
        return jnp.where(inside.reshape(-1, *(1,) * (rows.ndim - 1)), rows, 0)

    def local(self, index: jax.Array, num_rows: int) -> jax.Array:
        """Return where row `index` of all is among the rows here: at `num_rows`, outside, if another device has it."""
        if self.axis is None:
            return index
        at = index - lax.axis_index(self.axis) * num_rows
        return jnp.where((at >= 0) & (at < num_rows), at, num_rows)

    def take(self, rows: jax.Array, index: jax.Array) -> jax.Array:
        """Return rows[index], whoever has them."""
        if self.axis is None:
            return rows[index]
        return lax.psum(rows.at[self.local(index, rows.shape[0])].get(mode="fill", fill_value=0), self.axis)


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts", "num_candidates", "block_size", "share"))
def _kmeans(
    key: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    max_iterations: Any,
    tolerance: jax.Array,
    *,
    num_clusters: int,
    num_restarts: int,
    num_candidates: int,
    block_size: int,
    share: _Share | None = None,
) -> KMeansResult:
    share = _Share(X.shape[0]) if share is None else share
    # Parts of the total, in which neither the mean nor the spread can overflow.
    part = None if weights is None else (weights / checks.mass(weights, lambda w: share.sum(w.sum())))[:, None]

    def average(rows: jax.Array) -> jax.Array:
        if part is None:
            return share.sum(rows.sum(axis=0, keepdims=True)) / share.num_points
        return share.sum((part * rows).sum(axis=0, keepdims=True))

    mean = average(X)
    centred = share.points(X - mean)
    spread = average(centred * centred).mean()
    blocks = _Blocks.cut(centred, weights, block_size, share)

    def restart(number: jax.Array) -> KMeansResult:
        seeds = _plus_plus(jax.random.fold_in(key, number), X, weights, num_clusters, num_candidates, share)
        centers, converged, iterations = _lloyd(blocks, share.take(X, seeds) - mean, max_iterations, tolerance * spread)
        labels = _partition(blocks, centers)[0][: X.shape[0]]
        centers = centers + mean
        distances = share.points(_row_norms(X - centers[labels]))
        objective = share.sum((distances if weights is None else weights * distances).sum())
        return KMeansResult(labels, centers, objective, converged & jnp.isfinite(objective), iterations)

    def better(best: KMeansResult, number: jax.Array) -> tuple[KMeansResult, None]:
        other = restart(number)
        return jax.tree.map(partial(jnp.where, other.objective < best.objective), other, best), None

    if num_restarts == 1:
        return restart(jnp.array(0, jnp.uint32))
    nothing = KMeansResult(
        labels=jnp.zeros(X.shape[0], jnp.int32),
        centers=jnp.full((num_clusters, X.shape[1]), jnp.nan, X.dtype),
        objective=jnp.array(jnp.inf, X.dtype),
        converged=jnp.array(False),
        iterations=jnp.array(0, jnp.int32),
    )
    return lax.scan(better, nothing, lax.iota(jnp.uint32, num_restarts))[0]


class _Blocks(NamedTuple):
    """The points (b, B, d), zero rows at the end, and what each counts (b, B); None where all of them count once."""

    rows: jax.Array
    weights: jax.Array | None
    num_points: Any
    share: _Share

    @staticmethod
    def cut(X: jax.Array, weights: jax.Array | None, block_size: int, share: _Share | None = None) -> _Blocks:
        share = _Share(X.shape[0]) if share is None else share
        num_points = share.count(X.shape[0])
        padding = -X.shape[0] % block_size
        if padding:
            X = jnp.concatenate([X, jnp.zeros((padding, X.shape[1]), X.dtype)])
            weights = weights if weights is None else jnp.concatenate([weights, jnp.zeros(padding, weights.dtype)])
        weights = weights if weights is None else weights.reshape(-1, block_size)
        return _Blocks(X.reshape(-1, block_size, X.shape[1]), weights, num_points, share)

    @property
    def padded(self) -> jax.Array:
        """Which rows are none of the points, (b, B)."""
        shape = self.rows.shape[:2]
        return (lax.iota(jnp.int32, shape[0] * shape[1]) >= self.num_points).reshape(shape)


def _row_norms(rows: jax.Array) -> jax.Array:
    """Return the squared Euclidean norm of every row."""
    return (rows * rows).sum(axis=1)


def _lloyd(
    blocks: _Blocks, centers: jax.Array, max_iterations: Any, threshold: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Alternate between nearest centres and means; return the centres, if they stopped, and after how many steps."""

    def unfinished(state: tuple[jax.Array, jax.Array, jax.Array, jax.Array]) -> jax.Array:
        return ~state[2] & (state[3] < max_iterations)

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array, jax.Array],
    ) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
        centers, old_labels, _, iteration = state
        labels, sums, counts = _partition(blocks, centers)
        sums, counts = blocks.share.sum(sums), blocks.share.sum(counts)
        empty = (counts == 0)[:, None]
        means = jnp.where(empty, centers, sums / jnp.where(empty, 1, counts[:, None]))
        means = lax.cond(empty.any(), lambda: _reseed(blocks, centers, labels, means, empty[:, 0]), lambda: means)
        # Labels that repeat give the same means, but not always to the last bit: compilers fuse and reorder.
        repeats = blocks.share.all(labels == old_labels) & ~(empty & (means != centers)).any()
        # Not "<=": where points are NaN there is nothing to wait for.
        return means, labels, repeats | ~(_row_norms(means - centers).sum() > threshold), iteration + 1

    labels = jnp.full(blocks.rows.shape[0] * blocks.rows.shape[1], -1, jnp.int32)
    state = lax.while_loop(unfinished, step, (centers, labels, jnp.array(False), jnp.array(0, jnp.int32)))
    return state[0], state[2], state[3]


def _partition(blocks: _Blocks, centers: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return every row's nearest centre, and the weighted sum and the weight of the rows of every cluster.

    Rows that are none of the points get the label k, which no sum contains.
    """
    num_clusters, dtype = centers.shape[0], centers.dtype
    lengths = _row_norms(centers)[:, None]

    def one_block(
        totals: tuple[jax.Array, jax.Array], block: tuple[jax.Array, jax.Array | None, jax.Array]
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        rows, weights, padded = block
        labels = jnp.where(padded, num_clusters, lax.argmin(_scores(centers, lengths, rows, padded), 0, jnp.int32))
        # Scattered sums are the faster ones on a CPU; elsewhere they are slow, and depend on the order of threads.
        sums = lax.platform_dependent(
            rows if weights is None else weights[:, None] * rows,
            labels,
            cpu=partial(_scattered_sums, num_clusters=num_clusters),
            default=partial(_matmul_sums, num_clusters=num_clusters),
        )
        ones = jnp.ones(labels.shape, jnp.int32) if weights is None else weights
        counts = jax.ops.segment_sum(ones, labels, num_clusters)
        return (totals[0] + sums, totals[1] + counts), labels

    zero = jnp.zeros(centers.shape, dtype), jnp.zeros(num_clusters, jnp.int32 if blocks.weights is None else dtype)
    (sums, counts), labels = lax.scan(one_block, zero, (blocks.rows, blocks.weights, blocks.padded))
    return labels.reshape(-1), sums, counts.astype(dtype)


def _scores(centers: jax.Array, lengths: jax.Array, rows: jax.Array, padded: jax.Array) -> jax.Array:
    """Return (k, B) numbers whose order in a column is that of the distances of a row to the centres.

    Squared distances less the squared norm of the row, by a product, unless rounding may be more than a hundredth of
    the squared distance to the nearest centre: clusters far apart for their size. By direct differences then.
    """
    direct = partial(coordinate_sums, jnp.square, centers, rows, jnp.ones((), rows.dtype))
    if rows.shape[1] <= FEW:
        return direct()
    scores = lengths - 2 * jnp.matmul(centers, rows.T, precision=lax.Precision.HIGHEST)
    sizes = _row_norms(rows)
    error = product_rounding(sizes, jnp.max(lengths), rows.shape[1])
    fine = jnp.all(padded | (100 * error <= jnp.min(scores, axis=0) + sizes))
    return lax.cond(everywhere(fine), lambda: scores, direct)


def _scattered_sums(rows: jax.Array, labels: jax.Array, *, num_clusters: int) -> jax.Array:
    return jax.ops.segment_sum(rows, labels, num_clusters)


def _matmul_sums(rows: jax.Array, labels: jax.Array, *, num_clusters: int) -> jax.Array:
    members = (labels[None, :] == lax.iota(jnp.int32, num_clusters)[:, None]).astype(rows.dtype)
    return jnp.matmul(members, rows, precision=lax.Precision.HIGHEST)


def _reseed(blocks: _Blocks, centers: jax.Array, labels: jax.Array, means: jax.Array, empty: jax.Array) -> jax.Array:
    """Move the e-th empty cluster's centre to the e-th farthest point, unless that one stands on its centre already.

    A mean of equal points differs from them by rounding. Were that distance to count, two clusters could take the same
    points from each other for ever; so a distance below sqrt(N) eps |x| is none.
    """
    rows = blocks.rows.reshape(-1, blocks.rows.shape[2])
    own = centers.at[labels].get(mode="clip")
    counted = ~blocks.padded if blocks.weights is None else blocks.weights > 0
    distances = jnp.where(counted.reshape(-1), _row_norms(rows - own), -1)
    # Which of two almost equally far points comes first does not matter, and float64 top_k is slow.
    farthest = lax.top_k(distances.astype(jnp.float32), min(centers.shape[0], rows.shape[0]))[1]
    far, distances = blocks.share.gather(rows[farthest]), blocks.share.gather(distances[farthest])
    order = lax.top_k(distances.astype(jnp.float32), centers.shape[0])[1]
    chosen = order[jnp.maximum(jnp.cumsum(empty) - 1, 0)]
    largest = blocks.share.max(_row_norms(rows).max())
    rounding = blocks.share.num_points * float(jnp.finfo(rows.dtype).eps) ** 2 * largest
    return jnp.where((empty & (distances[chosen] > rounding))[:, None], far[chosen], means)


def _plus_plus(
    key: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    num_seeds: int,
    num_candidates: int,
    share: _Share | None = None,
) -> jax.Array:
    """Choose `num_seeds` rows of X by k-means++ and return their indices, (num_seeds,) int32, all different.

    The first is drawn by weight. Each further one is the best, for the sum over points of weight times squared distance
    to the nearest seed, of `num_candidates` drawn with probability proportional to that product. Distances are direct
    differences, so copies of a seed are at distance exactly 0 and never drawn; when no other points are left, the rest
    are drawn by weight from the rows not chosen yet, and last come those of weight 0. O(N d num_seeds num_candidates)
    time, O(N (d + num_candidates)) memory.

    X : (N, d) floating with N >= num_seeds; weights : (N,) or None. The key is consumed.
    """
    num_rows = X.shape[0]
    share = _Share(num_rows) if share is None else share

    def distances(points: jax.Array) -> jax.Array:
        """Return the squared distances (N, L) to L points: one pass over X for all of them."""
        gaps = X[:, None, :] - points[None, :, :]
        return (gaps * gaps).sum(axis=-1)

    def weighed(values: jax.Array) -> jax.Array:
        return values if weights is None else weights.reshape(-1, *(1,) * (values.ndim - 1)) * values

    def choose(state: tuple[jax.Array, jax.Array], number: jax.Array) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        nearest, free = state
        gains = weighed(nearest)
        total = share.sum(gains.sum())
        # Not finite before the first seed, and zero when all that is left are copies.
        told = (total > 0) & jnp.isfinite(total)
        rest = weighed(free)
        rest = rest if weights is None else jnp.where(share.sum(rest.sum()) > 0, rest, free)
        candidates = _draw(jax.random.fold_in(key, number), jnp.where(told, gains, rest), num_candidates, share)
        left = jnp.minimum(nearest[:, None], distances(share.take(X, candidates)))
        chosen = jnp.where(told, lax.argmin(share.sum(weighed(left).sum(axis=0)), 0, jnp.int32), 0)
        best = candidates[chosen]
        return (left[:, chosen], free.at[share.local(best, num_rows)].set(0)), best

    nothing = share.points(jnp.full(num_rows, jnp.inf, X.dtype)), share.points(jnp.ones(num_rows, X.dtype))
    return lax.scan(choose, nothing, lax.iota(jnp.uint32, num_seeds))[1]


def _draw(key: jax.Array, weights: jax.Array, num_draws: int, share: _Share | None = None) -> jax.Array:
    """Draw indices with probability proportional to weights (N,): first a row of a square table, then an entry of it.

    One uniform float32 number has too few values to choose among millions of points.
    """
    share = _Share(weights.shape[0]) if share is None else share
    width = table_width(share.num_points)
    table = jnp.pad(weights, (0, -weights.shape[0] % width)).reshape(-1, width)
    uniform = jax.random.uniform(key, (num_draws, 2), weights.dtype)
    rows = jax.vmap(invert, (None, 0))(share.gather(table.sum(axis=1)), uniform[:, 0])
    return rows * width + jax.vmap(invert)(share.take(table, rows), uniform[:, 1])


def table_width(num_points: int) -> int:
    """Return the width of the square table of `_draw`."""
    return math.isqrt(num_points - 1) + 1
