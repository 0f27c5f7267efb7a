"""k-means by seeding, Lloyd iterations and restarts: the result, the public function and its program."""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import ArrayLike, Float, Int, PRNGKeyArray
from jaxkern._weights import mass
from jaxkern.kmeans._lloyd import Blocks, even, lloyd, partition, row_norms
from jaxkern.kmeans._seeding import plus_plus
from jaxkern.kmeans._share import Share
from jaxkern.linalg._dense import scale_of
from jaxkern.pytrees import pytree

_BLOCK_ELEMENTS = {"cpu": 2**18, "gpu": 2**26, "tpu": 2**26}
"""Numbers of the points and scores of a block: in float32 1 MB, which a core's cache holds, or 256 MB."""
_TOLERANCE = 1e-4


@pytree
class KMeansResult:
    """A partition of N points, of weights w_i (1 unless given), into k clusters.

    Attributes
    ----------
    labels : (N,) int32 in [0, k), the nearest centre of each point; -1 where its weight is 0.
    centers : (k, d), in the dtype of the points; infinite beyond `num_used`.
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
    key: PRNGKeyArray,
    X: Float[ArrayLike, "N d"],
    num_clusters: int,
    *,
    weights: Float[ArrayLike, " N"] | None = None,
    num_restarts: int = 1,
    max_iterations: int = 300,
    tolerance: Float[ArrayLike, ""] = 1e-4,
    num_candidates: int | None = None,
    block_size: int | None = None,
    num_used: Int[ArrayLike, ""] | None = None,
) -> KMeansResult:
    """Cluster points around `num_clusters` centres, to a local minimum of the sum of squared distances.

    min over c_1, ..., c_k of sum_i w_i min_j |x_i - c_j|^2. k-means++ seeding, then Lloyd iterations until the
    centres move by sum_j |c_j' - c_j|^2 <= tolerance * (mean variance of a coordinate), as in scikit-learn; labels that
    no longer change move nothing. A cluster that loses all points starts again at the point farthest from its centre
    (several of them at different points); where fewer than `num_clusters` points are distinct, some stay empty. A point
    of weight 2 counts as two copies.

    Parameters
    ----------
    key : a typed random key. Restart r uses `fold_in(key, r)`, so more restarts never give a worse objective.
    X : (N, d) points, float32 or float64, N >= num_clusters.
    num_clusters : k, a Python int in [1, N].
    weights : (N,) non-negative weights in the dtype of X, of any positive sum; a row of weight 0 does not exist,
        whatever it holds. By default all are 1. NumPy weights that are negative, not finite or all zero raise
        ValueError; with others that are, the objective is not finite and `converged` is False.
    num_restarts : independent seedings, at least 1; the one with the smallest objective is returned.
    max_iterations : Lloyd iterations of each restart, at least 1.
    tolerance : at least 0; 0 goes on until the centres stand still.
    num_candidates : how many points are drawn for each seed, of which the best is taken, at least 1; by default
        2 + log k, rounded down (greedy k-means++). 1 is k-means++ as published, with its guarantee in expectation.
    block_size : rows whose distances to all centres are held at once; by default as many as fit a cache of a CPU;
        on an accelerator all of them up to 2^26 numbers.
    num_used : how many of the clusters there are, in [1, k], by default all. It may be traced, so that data sets that
        are mapped together have numbers of their own; what is out of range then gives `converged` False.

    Returns
    -------
    KMeansResult. NaN or infinite points give an objective that is not finite, and `converged` False.

    Notes
    -----
    O(N d k) time for each iteration and O(N d k num_candidates) for each seeding; O(N (d + num_candidates) + block_size
    k) memory. Source: Lloyd (1982), Arthur and Vassilvitskii (2007).

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> kmeans(jax.random.key(0), jnp.arange(6.0)[:, None], 2).centers.shape
    (2, 1)
    """
    key = checks.key(key)
    X = checks.matrix("X", X)
    weights = checks.weights(weights, "X", X)
    sizes, max_iterations = arguments(
        X.shape[0],
        X.shape,
        num_clusters,
        num_restarts,
        max_iterations,
        tolerance,
        num_candidates,
        block_size,
    )
    used = checks.traced_count(
        "num_used", num_used, maximum=sizes.num_clusters, limit="num_clusters"
    )
    tolerance = checks.scalar("tolerance", tolerance, X.dtype)
    return _kmeans(key, X, weights, max_iterations, tolerance, used, sizes=sizes)


def partition_of(
    key: jax.Array,
    rows: jax.Array,
    weights: jax.Array | None,
    num_clusters: int,
    num_restarts: int,
    used: jax.Array | None = None,
) -> KMeansResult:
    """Cluster rows inside a program whose arguments are valid, with the defaults of `kmeans`.

    Squared distances of rows of any scale stay in the range of the dtype, except for the objective.
    """
    sizes, max_iterations = arguments(
        rows.shape[0], rows.shape, num_clusters, num_restarts
    )
    tolerance = checks.scalar("tolerance", _TOLERANCE, rows.dtype)
    scale = scale_of(rows)
    found = _kmeans(
        key, rows / scale, weights, max_iterations, tolerance, used, sizes=sizes
    )
    return dataclasses.replace(
        found,
        centers=scale * found.centers,
        objective=scale * (scale * found.objective),
    )


class Sizes(NamedTuple):
    """What a program is compiled for, beside the shapes of the points."""

    num_clusters: int
    num_restarts: int
    num_candidates: int
    block_size: int


def arguments(
    num_points: int,
    shape: tuple[int, ...],
    num_clusters: Any,
    num_restarts: Any,
    max_iterations: Any = 300,
    tolerance: Any = _TOLERANCE,
    num_candidates: Any = None,
    block_size: Any = None,
) -> tuple[Sizes, int]:
    """Return the sizes, for points of which a device has those of a shape, and max_iterations, validated."""
    num_clusters = checks.count(
        "num_clusters", num_clusters, maximum=num_points, limit="the number of points"
    )
    num_restarts = checks.count("num_restarts", num_restarts)
    max_iterations = checks.count("max_iterations", max_iterations)
    if checks.is_static(tolerance) and not tolerance >= 0:
        raise ValueError(f"tolerance must be at least 0, got {tolerance!r}")
    if num_candidates is None:
        num_candidates = 2 + int(math.log(num_clusters))
    num_candidates = checks.count("num_candidates", num_candidates)
    if block_size is None:
        elements = _BLOCK_ELEMENTS.get(jax.default_backend(), _BLOCK_ELEMENTS["cpu"])
        block_size = even(shape[0], max(elements // (shape[1] + num_clusters), 128))
    block_size = min(checks.count("block_size", block_size), shape[0])
    return Sizes(num_clusters, num_restarts, num_candidates, block_size), max_iterations


def existing(X: jax.Array, weights: jax.Array | None, share: Share) -> jax.Array:
    """Return the points, with the heaviest in place of those of weight 0."""
    if weights is None:
        return X
    some = lax.stop_gradient(share.take(X, jnp.argmax(share.gather(weights))))
    return jnp.where((weights > 0)[:, None], X, some[None, :])


class Points(NamedTuple):
    """The points of one clustering as seeding and Lloyd iterations want them: as given, and centred, in blocks."""

    X: jax.Array
    weights: jax.Array | None
    used: jax.Array | None
    mean: jax.Array
    spread: jax.Array
    blocks: Blocks

    @staticmethod
    def of(
        X: jax.Array,
        weights: jax.Array | None,
        used: jax.Array | None,
        sizes: Sizes,
        share: Share,
    ) -> Points:
        part = None
        if weights is not None:
            # Parts of the total, in which neither the mean nor the spread can overflow.
            part = (weights / mass(weights, lambda w: share.sum(w.sum())))[:, None]
        X = existing(X, weights, share)

        def average(rows: jax.Array) -> jax.Array:
            if part is None:
                return share.sum(rows.sum(axis=0, keepdims=True)) / share.num_points
            return share.sum((part * rows).sum(axis=0, keepdims=True))

        mean = average(X)
        centred = share.points(X - mean)
        unused = (
            None if used is None else lax.iota(jnp.int32, sizes.num_clusters) >= used
        )
        blocks = Blocks.cut(centred, weights, sizes.block_size, share)._replace(
            unused=unused
        )
        return Points(X, weights, used, mean, average(centred * centred).mean(), blocks)

    def seeds(self, key: jax.Array, sizes: Sizes) -> jax.Array:
        """Return the centres to begin from, as many as there are clusters, centred."""
        share = self.blocks.share
        numbers = sizes.num_clusters, sizes.num_candidates
        chosen = plus_plus(
            key, self.X, self.weights, *numbers, share, self.blocks.columns
        )
        return share.take(self.X, chosen) - self.mean

    def result(
        self, centers: jax.Array, converged: jax.Array, iterations: jax.Array
    ) -> KMeansResult:
        """Return what belongs to centred centres."""
        X, weights, used, share = self.X, self.weights, self.used, self.blocks.share
        labels = partition(self.blocks, centers)[0][: X.shape[0]]
        centers = centers + self.mean
        distances = share.points(row_norms(X - centers[labels]))
        labels = labels if weights is None else jnp.where(weights > 0, labels, -1)
        objective = share.sum(
            (distances if weights is None else weights * distances).sum()
        )
        if used is not None and self.blocks.unused is not None:
            centers = jnp.where(self.blocks.unused[:, None], jnp.inf, centers)
            converged &= (used > 0) & (used <= centers.shape[0])
        return KMeansResult(
            labels, centers, objective, converged & jnp.isfinite(objective), iterations
        )


@partial(jax.jit, static_argnames=("sizes", "share"))
def _kmeans(
    key: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    max_iterations: Any,
    tolerance: jax.Array,
    used: jax.Array | None = None,
    *,
    sizes: Sizes,
    share: Share | None = None,
) -> KMeansResult:
    share = Share(X.shape[0]) if share is None else share
    points = Points.of(X, weights, used, sizes, share)

    def restart(number: jax.Array) -> KMeansResult:
        seeds = points.seeds(jax.random.fold_in(key, number), sizes)
        return points.result(
            *lloyd(points.blocks, seeds, max_iterations, tolerance * points.spread)
        )

    def better(best: KMeansResult, number: jax.Array) -> tuple[KMeansResult, None]:
        other = restart(number)
        return jax.tree.map(
            partial(jnp.where, other.objective < best.objective), other, best
        ), None

    if sizes.num_restarts == 1:
        return restart(jnp.array(0, jnp.uint32))
    nothing = KMeansResult(
        labels=jnp.zeros(X.shape[0], jnp.int32),
        centers=jnp.full((sizes.num_clusters, X.shape[1]), jnp.nan, X.dtype),
        objective=jnp.array(jnp.inf, X.dtype),
        converged=jnp.array(False),
        iterations=jnp.array(0, jnp.int32),
    )
    return lax.scan(better, nothing, lax.iota(jnp.uint32, sizes.num_restarts))[0]
