"""k-means++ seeding, greedy or plain."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._weights import order, positions
from jaxkern.draws import invert
from jaxkern.kmeans._lloyd import Blocks, even
from jaxkern.kmeans._share import Share, table_width

_State = tuple[jax.Array, jax.Array, jax.Array]

_TILE = 5000  # columns; powers of two would take the same places of a cache
_TERMS = 64
"""Coordinates whose squares are written out in one pass over the tiles; more are a loop."""


def plus_plus(
    key: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    num_seeds: int,
    num_candidates: int,
    share: Share | None = None,
    tiles: jax.Array | None = None,
) -> jax.Array:
    """Choose `num_seeds` rows of X by k-means++ and return their indices, (num_seeds,) int32, all different.

    The first is drawn by weight. Each further one is the best, for the sum over points of weight times squared distance
    to the nearest seed, of `num_candidates` drawn with probability proportional to that product. Distances are direct
    differences, so copies of a seed are at distance exactly 0 and never drawn; when no other points are left, the rest
    are drawn by weight from the rows not chosen yet. Where fewer rows than `num_seeds` have a positive weight, all of
    them come first, and then one of them again. O(N d num_seeds num_candidates) time and
    O(N (d + num_candidates)) memory.

    X : (N, d) floating with N >= num_seeds, finite where the weight is 0; weights : (N,) or None. The key is consumed.
    tiles : (b, d, B), whose columns are the rows of X, wherever their origin is, and then others; cut here by default.
    """
    num_rows, dim = X.shape
    share = Share(num_rows) if share is None else share
    table = None if weights is None else _Table.of(weights, share)

    # Sums over the coordinates of columns are those of vectors of points; compilers leave sums along rows scalar.
    tiles = (
        Blocks.cut(X, None, even(num_rows, _TILE)).columns if tiles is None else tiles
    )
    size = tiles.shape[2]

    def cut(values: jax.Array) -> jax.Array:
        return jnp.pad(values, (0, -num_rows % size)).reshape(-1, size)

    def take(index: jax.Array) -> jax.Array:
        at = share.local(index, num_rows)
        return share.sum(
            tiles.at[at // size, :, at % size].get(mode="fill", fill_value=0)
        )

    def distances(points: jax.Array) -> jax.Array:
        """Return the squared distances (b, L, B) to L points: one pass over the tiles for all of them."""

        def some(first: Any, count: int) -> jax.Array:
            x, y = (
                lax.dynamic_slice_in_dim(a, first, count, 1) for a in (tiles, points)
            )
            return sum(
                jnp.square(x[:, None, k] - y[None, :, k, None]) for k in range(count)
            )  # type: ignore[return-value]

        head = (dim - 1) % _TERMS + 1
        sums = some(0, head)
        if head == dim:
            return sums
        return lax.fori_loop(
            0,
            (dim - 1) // _TERMS,
            lambda i, total: total + some(head + _TERMS * i, _TERMS),
            sums,
        )

    def weighed(values: jax.Array) -> jax.Array:
        return (
            values
            if weights is None
            else cut(weights).reshape(-1, *(1,) * (values.ndim - 2), size) * values
        )

    def choose(state: _State, number: jax.Array) -> tuple[_State, jax.Array]:
        # Not carried as `nearest`: compilers would compute these distances once more instead of reading them.
        left, chosen, free = state
        nearest = left[:, chosen]
        gains = weighed(nearest)
        total = share.sum(gains.sum())
        # Not finite before the first seed, and zero when all that is left are copies.
        told = (total > 0) & jnp.isfinite(total)
        odds = jnp.where(told, gains.reshape(-1)[:num_rows], free)
        candidates = _draw(
            jax.random.fold_in(key, number), odds, num_candidates, share, table
        )
        left = jnp.minimum(nearest[:, None], distances(take(candidates)))
        chosen = jnp.where(
            told, lax.argmin(share.sum(weighed(left).sum(axis=(0, 2))), 0, jnp.int32), 0
        )
        best = candidates[chosen]
        return (left, chosen, free.at[share.local(best, num_rows)].set(0)), best

    free = share.points(jnp.ones(num_rows, X.dtype))
    far = jnp.broadcast_to(
        cut(jnp.where(free > 0, jnp.inf, free))[:, None],
        (len(tiles), num_candidates, size),
    )
    nothing = far, jnp.array(0, jnp.int32), free if weights is None else weights
    return lax.scan(choose, nothing, lax.iota(jnp.uint32, num_seeds))[1]


class _Table(NamedTuple):
    """A square table of the rows of positive weight, in their order: as wide as if there were no others.

    `row` (N,) is where a row stands, `place` (W, W) which row stands there; -1 where there is none.
    """

    row: jax.Array
    place: jax.Array

    @staticmethod
    def of(weights: jax.Array, share: Share) -> _Table:
        every = share.gather(weights)
        side = lax.iota(jnp.int32, table_width(share.num_points))
        count = jnp.sum(every > 0, dtype=jnp.int32)
        width = jnp.sum(side * side < count, dtype=jnp.int32)
        number = side[:, None] * width + side[None, :]
        inside = (side[None, :] < width) & (number < count)
        place = jnp.where(inside, order(every)[jnp.where(inside, number, 0)], -1)
        return _Table(
            share.rows(positions(every) // jnp.maximum(width, 1), weights.shape[0]),
            place,
        )


def _draw(
    key: jax.Array,
    weights: jax.Array,
    num_draws: int,
    share: Share | None = None,
    table: _Table | None = None,
) -> jax.Array:
    """Draw indices with probability proportional to weights (N,): first a row of a square table, then an entry of it.

    One uniform float32 number has too few values to choose among millions of points.
    """
    share = Share(weights.shape[0]) if share is None else share
    width = table_width(share.num_points)
    uniform = jax.random.uniform(key, (num_draws, 2), weights.dtype)
    if table is not None:
        sums = share.sum(jax.ops.segment_sum(weights, table.row, width))
        places = table.place[jax.vmap(invert, (None, 0))(sums, uniform[:, 0])]
        entries = jnp.where(places < 0, 0, share.take(weights, places))
        return jax.vmap(lambda own, *entry: own[invert(*entry)])(
            places, entries, uniform[:, 1]
        )
    rows_of = jnp.pad(weights, (0, -weights.shape[0] % width)).reshape(-1, width)
    rows = jax.vmap(invert, (None, 0))(share.gather(rows_of.sum(axis=1)), uniform[:, 0])
    return rows * width + jax.vmap(invert)(share.take(rows_of, rows), uniform[:, 1])
