"""Lloyd iterations: nearest centres and means in turns, in blocks of rows that a cache holds."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._distances import FEW, coordinate_sums, everywhere
from jaxkern.kmeans._share import Share

_OTHERS = 10
"""Roundings of a score beyond those of its sums, and of centred points."""
_FEW_SUMS = 20
"""Clusters whose sums a product gives sooner than a scatter on a CPU, too."""


class Blocks(NamedTuple):
    """The points (b, d, B), zeros at the end, and what each counts (b, B); None where all of them count once.

    A point is a column: its product with the centres is faster than that of a row, and so are direct differences.
    `sizes` (b, B) are their squared norms, which every iteration asks for. `unused` (k,) are centres that no point
    joins.
    """

    columns: jax.Array
    sizes: jax.Array
    weights: jax.Array | None
    num_points: Any
    share: Share
    unused: jax.Array | None = None

    @staticmethod
    def cut(
        X: jax.Array,
        weights: jax.Array | None,
        block_size: int,
        share: Share | None = None,
    ) -> Blocks:
        share = Share(X.shape[0]) if share is None else share
        num_points = share.count(X.shape[0])
        padding = -X.shape[0] % block_size
        if padding:
            X = jnp.concatenate([X, jnp.zeros((padding, X.shape[1]), X.dtype)])
            weights = (
                weights
                if weights is None
                else jnp.concatenate([weights, jnp.zeros(padding, weights.dtype)])
            )
        weights = weights if weights is None else weights.reshape(-1, block_size)
        columns = jnp.swapaxes(X.reshape(-1, block_size, X.shape[1]), 1, 2)
        return Blocks(
            columns, row_norms(X).reshape(-1, block_size), weights, num_points, share
        )

    @property
    def padded(self) -> jax.Array:
        """Which rows are none of the points, (b, B)."""
        return (lax.iota(jnp.int32, self.sizes.size) >= self.num_points).reshape(
            self.sizes.shape
        )


def even(num_rows: int, size: int) -> int:
    """Return at most `size` rows, in equal blocks: the last one would otherwise be padded by up to a whole block."""
    return -(-num_rows // -(-num_rows // size))


def row_norms(rows: jax.Array) -> jax.Array:
    """Return the squared Euclidean norm of every row."""
    return (rows * rows).sum(axis=1)


class LloydState(NamedTuple):
    """Where Lloyd iterations are: centres (k, d), labels (b B,) of the ones before them, -1 at first."""

    centers: jax.Array
    labels: jax.Array
    stands: jax.Array
    iterations: jax.Array

    @staticmethod
    def begin(blocks: Blocks, centers: jax.Array) -> LloydState:
        labels = jnp.full(blocks.sizes.size, -1, jnp.int32)
        return LloydState(centers, labels, jnp.array(False), jnp.array(0, jnp.int32))


def lloyd(
    blocks: Blocks, centers: jax.Array, max_iterations: Any, threshold: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Alternate between nearest centres and means; return the centres, if they stopped, and after how many steps."""
    state = iterate(
        blocks, LloydState.begin(blocks, centers), max_iterations, threshold
    )
    return state.centers, state.stands, state.iterations


def iterate(
    blocks: Blocks, begin: LloydState, max_iterations: Any, threshold: jax.Array
) -> LloydState:
    """Go on until the centres stand still, or so many iterations are done in all."""

    def unfinished(state: LloydState) -> jax.Array:
        return ~state.stands & (state.iterations < max_iterations)

    def step(state: LloydState) -> LloydState:
        centers, old_labels, _, iteration = state
        labels, sums, counts = partition(blocks, centers)
        sums, counts = blocks.share.sum(sums), blocks.share.sum(counts)
        empty = (counts == 0)[:, None]
        means = jnp.where(empty, centers, sums / jnp.where(empty, 1, counts[:, None]))
        empty = empty if blocks.unused is None else empty & ~blocks.unused[:, None]
        full = everywhere(
            ~empty.any()
        )  # of a whole batch: else every member would look for its farthest points
        means = lax.cond(
            full,
            lambda: means,
            lambda: _reseed(blocks, centers, labels, means, empty[:, 0]),
        )
        # Labels that repeat give the same means, but not always to the last bit: compilers fuse and reorder.
        repeats = (
            blocks.share.all(labels == old_labels) & ~(empty & (means != centers)).any()
        )
        # Not "<=": where points are NaN there is nothing to wait for.
        return LloydState(
            means,
            labels,
            repeats | ~(row_norms(means - centers).sum() > threshold),
            iteration + 1,
        )

    return lax.while_loop(unfinished, step, begin)


def partition(
    blocks: Blocks, centers: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return every point's nearest centre, and the weighted sum and the weight of the points of every cluster.

    Columns that are none of the points get the label k, which no sum contains.
    """
    num_clusters, dtype = centers.shape[0], centers.dtype
    lengths = row_norms(centers)[:, None]

    def one_block(
        totals: tuple[jax.Array, jax.Array],
        block: tuple[jax.Array, jax.Array, jax.Array | None, jax.Array],
    ) -> tuple[tuple[jax.Array, jax.Array], jax.Array]:
        columns, sizes, weights, padded = block
        labels = jnp.where(
            padded,
            num_clusters,
            _nearest(centers, lengths, columns, sizes, padded, blocks.unused),
        )
        # On a CPU weights are scattered sooner, and beyond a few clusters points are, too; elsewhere scattered sums are
        # slow, and depend on the order of threads.
        sums, counts = lax.platform_dependent(
            columns if weights is None else weights[None, :] * columns,
            jnp.ones(labels.shape, jnp.int32) if weights is None else weights,
            labels,
            cpu=partial(
                _mixed_sums if num_clusters <= _FEW_SUMS else _scattered_sums,
                num_clusters=num_clusters,
            ),
            default=partial(_matmul_sums, num_clusters=num_clusters),
        )
        return (totals[0] + sums, totals[1] + counts), labels

    zero = (
        jnp.zeros(centers.shape, dtype),
        jnp.zeros(num_clusters, jnp.int32 if blocks.weights is None else dtype),
    )
    (sums, counts), labels = lax.scan(
        one_block, zero, (blocks.columns, blocks.sizes, blocks.weights, blocks.padded)
    )
    return labels.reshape(-1), sums, counts.astype(dtype)


def _nearest(
    centers: jax.Array,
    lengths: jax.Array,
    columns: jax.Array,
    sizes: jax.Array,
    padded: jax.Array,
    unused: jax.Array | None = None,
) -> jax.Array:
    """Return the nearest centre of every column, (B,); the last one for columns that are NaN.

    By a product, unless its rounding may be more than a hundredth of the squared distance to the nearest centre:
    clusters far apart for their size. By direct differences then.
    """

    def first(scores: jax.Array, least: jax.Array) -> jax.Array:
        # An `argmin` down the columns takes four times as long as both reductions.
        numbers = lax.iota(jnp.int32, scores.shape[0])[:, None]
        return jnp.min(
            jnp.where(scores == least[None, :], numbers, scores.shape[0] - 1), axis=0
        )

    def without(scores: jax.Array) -> jax.Array:
        return scores if unused is None else jnp.where(unused[:, None], jnp.inf, scores)

    def direct() -> jax.Array:
        squares = without(
            coordinate_sums(jnp.square, centers, columns.T, jnp.ones((), columns.dtype))
        )
        return first(squares, jnp.min(squares, axis=0))

    if columns.shape[0] <= FEW:
        return direct()
    # Squared distances less the squared norm of the point.
    scores = without(
        lengths - 2 * jnp.matmul(centers, columns, precision=lax.Precision.HIGHEST)
    )
    least = jnp.min(scores, axis=0)
    # Sums of d terms in any order have up to d roundings; (|x| + |c|)^2 is more than all that is added.
    roundings = (columns.shape[0] + _OTHERS) * float(jnp.finfo(columns.dtype).eps) / 2
    error = roundings * (jnp.sqrt(sizes) + jnp.sqrt(jnp.max(lengths))) ** 2
    fine = jnp.all(padded | (100 * error <= least + sizes))
    return lax.cond(everywhere(fine), lambda: first(scores, least), direct)


def _scattered_sums(
    columns: jax.Array, weights: jax.Array, labels: jax.Array, *, num_clusters: int
) -> Any:
    return jax.ops.segment_sum(columns.T, labels, num_clusters), jax.ops.segment_sum(
        weights, labels, num_clusters
    )


def _matmul_sums(
    columns: jax.Array, weights: jax.Array, labels: jax.Array, *, num_clusters: int
) -> Any:
    members = labels[None, :] == lax.iota(jnp.int32, num_clusters)[:, None]
    sums = jnp.matmul(
        members.astype(columns.dtype), columns.T, precision=lax.Precision.HIGHEST
    )
    return sums, jnp.where(members, weights[None, :], 0).sum(
        axis=1, dtype=weights.dtype
    )


def _mixed_sums(
    columns: jax.Array, weights: jax.Array, labels: jax.Array, *, num_clusters: int
) -> Any:
    members = labels[:, None] == lax.iota(jnp.int32, num_clusters)[None, :]
    # In a batch the transposed product takes up to 18 times as long, and XLA would take it if nothing were between.
    sums = jnp.matmul(
        columns, members.astype(columns.dtype), precision=lax.Precision.HIGHEST
    )
    return lax.optimization_barrier(sums).T, jax.ops.segment_sum(
        weights, labels, num_clusters
    )


def _reseed(
    blocks: Blocks,
    centers: jax.Array,
    labels: jax.Array,
    means: jax.Array,
    empty: jax.Array,
) -> jax.Array:
    """Move the e-th empty cluster's centre to the e-th farthest point, unless that one stands on its centre already.

    A mean of equal points differs from them by rounding. Were that distance to count, two clusters could take the same
    points from each other for ever; so a distance below sqrt(N) eps |x| is none.
    """
    rows = jnp.swapaxes(blocks.columns, 1, 2).reshape(-1, blocks.columns.shape[1])
    own = centers.at[labels].get(mode="clip")
    counted = ~blocks.padded if blocks.weights is None else blocks.weights > 0
    distances = jnp.where(counted.reshape(-1), row_norms(rows - own), -1)
    # Which of two almost equally far points comes first does not matter, and float64 top_k is slow.
    farthest = lax.top_k(
        distances.astype(jnp.float32), min(centers.shape[0], rows.shape[0])
    )[1]
    far, distances = (
        blocks.share.gather(rows[farthest]),
        blocks.share.gather(distances[farthest]),
    )
    order = lax.top_k(distances.astype(jnp.float32), centers.shape[0])[1]
    chosen = order[jnp.maximum(jnp.cumsum(empty) - 1, 0)]
    largest = blocks.share.max(row_norms(rows).max())
    count: Any = blocks.share.num_points
    if blocks.weights is not None:
        count = blocks.share.sum(counted.sum()).astype(rows.dtype)
    rounding = count * float(jnp.finfo(rows.dtype).eps) ** 2 * largest
    return jnp.where(
        (empty & (distances[chosen] > rounding))[:, None], far[chosen], means
    )
