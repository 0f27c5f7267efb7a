"""Random draws that several modules share."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["invert", "normal_rows", "numbered", "pairs", "weighted_pairs"]


def normal_rows(key: jax.Array, num_rows: int, num_cols: int, dtype: Any) -> jax.Array:
    """Return a standard normal (num_rows, num_cols) matrix: row i depends on the key and i alone."""
    return jax.vmap(lambda k: jax.random.normal(k, (num_cols,), dtype))(
        numbered(key, num_rows)
    )


def numbered(key: jax.Array, count: int) -> jax.Array:
    """Return keys (count,): number i depends on the key and i alone."""
    return jax.vmap(jax.random.fold_in, (None, 0))(
        key, jnp.arange(count, dtype=jnp.uint32)
    )


def pairs(
    key: jax.Array, num_points: Any, num_pairs: int
) -> tuple[jax.Array, jax.Array]:
    """Return independent pairs of different indices below num_points, all equally likely: two (num_pairs,) vectors."""
    key_first, key_second = jax.random.split(key)
    i = jax.random.randint(key_first, (num_pairs,), 0, num_points, jnp.int32)
    j = jax.random.randint(key_second, (num_pairs,), 0, num_points - 1, jnp.int32)
    return i, j + (j >= i).astype(jnp.int32)


def weighted_pairs(
    key: jax.Array, weights: jax.Array, num_pairs: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return pairs of rows (num_pairs,), with odds proportional to how often they count, and whether there is one.

    Rows i and j count w_i w_j times, and w_i (w_i - 1) / 2 pairs are those of row i and its own copies. With whole
    numbers they are those of `pairs` for the set in which every row is repeated so often; others are rounded to 2^-30
    of their sum. What the first of a pair takes, at most 1, is cut out of the line before the second is drawn.
    """
    whole = (weights == jnp.round(weights)).all() & (weights.sum() < 2.0**31)

    def counts(masses: jax.Array, total: jax.Array) -> jax.Array:
        # In units of a power of two near the sum: in whatever order that is added up, the integers are the same.
        unit = jnp.where(
            whole, 2.0**30, lax.reduce_precision(total, jnp.finfo(total.dtype).nexp, 0)
        )
        return jnp.round(masses / unit * 2.0**30).astype(jnp.int32)

    def place(key: jax.Array, end: jax.Array) -> jax.Array:
        # `randint` prefers small numbers where the end is not far below 2^32.
        end = jnp.broadcast_to(end, (num_pairs,))
        bits = jax.random.bits(
            jax.random.fold_in(key, num_pairs), end.shape, jnp.uint32
        )
        scaled = lax.mulhi(bits, end.astype(jnp.uint32)).astype(jnp.int32)
        return jnp.where(
            whole, jax.random.randint(key, end.shape, 0, end, jnp.int32), scaled
        )

    own, taken = (
        counts(masses, weights.sum()) for masses in (weights, jnp.minimum(weights, 1))
    )
    ends = jnp.cumsum(own)
    left = ends[-1] - taken
    most = jnp.max(jnp.where(weights > 0, left, 0))
    odds = weights * (left.astype(weights.dtype) / most.astype(weights.dtype))
    firsts, keys = jnp.cumsum(counts(odds, odds.sum())), jax.random.split(key)
    i = jnp.searchsorted(firsts, place(keys[0], firsts[-1]), side="right")
    second = place(keys[1], left[i])
    second += jnp.where(second >= ends[i] - own[i], taken[i], 0)
    return i, jnp.searchsorted(ends, second, side="right"), most > 0


def _waits(uniform: jax.Array, key: jax.Array) -> jax.Array:
    """Return independent exponential numbers, (n,), with all digits also close to zero and far out.

    They fall as the float32 numbers `uniform`, (n,), rise. Those alone are multiples of 2^-23: among 8 million rows,
    the first of many light ones would never come before 1e-7, and a heavy row would be drawn in its place.
    """
    digits = jax.random.uniform(key, uniform.shape, jnp.float32)
    low = uniform + digits * 2.0**-23
    high = (1 - uniform) - digits * 2.0**-23
    return jnp.where(uniform < 0.5, -jnp.log(low), -jnp.log1p(-high))


def invert(weights: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return for every uniform number the first index at which the cumulative weight reaches 1 - uniform of its total.

    Parallel sums need not be monotone, and may move where a weight is zero: no such index may be drawn.
    """
    positive = weights > 0
    cumulative = lax.cummax(jnp.where(positive, jnp.cumsum(weights), 0))
    level = cumulative[-1] * (1 - uniform)
    # At level zero every index would do, and the first one that may be drawn is meant.
    return jnp.where(
        level > 0,
        jnp.searchsorted(cumulative, level),
        lax.argmax(positive, 0, jnp.int32),
    )
