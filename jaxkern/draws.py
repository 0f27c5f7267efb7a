"""Random draws that several modules share."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

__all__ = ["invert", "normal_rows", "numbered", "pairs", "weighted_pairs"]


def normal_rows(key: jax.Array, num_rows: int, num_cols: int, dtype: Any) -> jax.Array:
    """Return a standard normal (num_rows, num_cols) matrix: row i depends on the key and i alone."""
    return jax.vmap(lambda k: jax.random.normal(k, (num_cols,), dtype))(numbered(key, num_rows))


def numbered(key: jax.Array, count: int) -> jax.Array:
    """Return keys (count,): number i depends on the key and i alone."""
    return jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(count, dtype=jnp.uint32))


def pairs(key: jax.Array, num_points: Any, num_pairs: int) -> tuple[jax.Array, jax.Array]:
    """Return independent pairs of different indices below num_points, all equally likely: two (num_pairs,) vectors."""
    key_first, key_second = jax.random.split(key)
    i = jax.random.randint(key_first, (num_pairs,), 0, num_points, jnp.int32)
    j = jax.random.randint(key_second, (num_pairs,), 0, num_points - 1, jnp.int32)
    return i, j + (j >= i).astype(jnp.int32)


def weighted_pairs(key: jax.Array, weights: jax.Array, num_pairs: int) -> tuple[jax.Array, jax.Array]:
    """Return independent pairs of indices (num_pairs,), with odds proportional to products of the weights.

    Of whole weights those of `pairs` for the set in which every row is repeated so often; of others, a row may also
    meet itself.
    """
    whole = (weights == jnp.round(weights)).all() & (weights.sum() < 2.0**31)
    ends = jnp.cumsum(jnp.where(whole, weights, 0).astype(jnp.int32))
    copies = (jnp.searchsorted(ends, each, side="right") for each in pairs(key, ends[-1], num_pairs))
    keys = jax.random.split(jax.random.fold_in(key, num_pairs))
    others = (invert(weights, jax.random.uniform(each, (num_pairs,), weights.dtype)) for each in keys)
    i, j = (jnp.where(whole, *each) for each in zip(copies, others, strict=True))
    return i, j


def invert(weights: jax.Array, uniform: jax.Array) -> jax.Array:
    """Return for every uniform number the first index at which the cumulative weight reaches 1 - uniform of its total.

    Parallel sums need not be monotone, and may move where a weight is zero: no such index may be drawn.
    """
    positive = weights > 0
    cumulative = lax.cummax(jnp.where(positive, jnp.cumsum(weights), 0))
    level = cumulative[-1] * (1 - uniform)
    # At level zero every index would do, and the first one that may be drawn is meant.
    return jnp.where(level > 0, jnp.searchsorted(cumulative, level), lax.argmax(positive, 0, jnp.int32))
