"""What weights of rows mean everywhere: 2 counts as if the row stood there twice, 0 as if it did not stand there.

Functions of shares divide by the sum. `checks.weights` looks at what is static, and here is what the entries decide.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern._programs import inlined

__all__ = ["mass", "number", "order", "positions", "present"]


def mass(
    weights: jax.Array, total: Callable[[jax.Array], jax.Array] = jnp.sum
) -> jax.Array:
    """Return the sum of weights, or NaN where one is negative or the sum is not positive and finite."""
    whole = total(jnp.where(weights >= 0, weights, jnp.nan))
    return jnp.where((whole > 0) & jnp.isfinite(whole), whole, jnp.nan)


@inlined
def present(X: jax.Array, weights: jax.Array) -> jax.Array:
    """Return points whose rows of weight zero are copies of another row; all are NaN if the weights are none.

    Whatever stood in such a row, NaN included, then changes no result in which it has weight zero, and no gradient.
    """
    other = lax.stop_gradient(X[jnp.argmax(weights)])
    return jnp.where((weights > 0)[:, None], X, other) + 0 * lax.stop_gradient(
        mass(weights)
    ).astype(X.dtype)


@inlined
def number(weights: jax.Array) -> jax.Array:
    """Return how many rows have a positive weight, a scalar in the dtype of the weights."""
    return jnp.sum(weights > 0, dtype=weights.dtype)


def positions(weights: jax.Array) -> jax.Array:
    """Return for each row how many rows before it have a positive weight, (n,) int32: its number in the set alone."""
    exists = (weights > 0).astype(jnp.int32)
    return jnp.cumsum(exists) - exists


def order(weights: jax.Array) -> jax.Array:
    """Return the indices of the rows, (n,), those of positive weight first: entry i is row i of the set alone."""
    return jnp.argsort(~(weights > 0), stable=True)
