"""Ways to choose landmarks: the few points of a data set that stand for all of it."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import _checks

__all__ = ["uniform"]


def uniform(key: Any, X: Any, *, num_landmarks: int) -> jax.Array:
    """Return `num_landmarks` rows of X, drawn uniformly without replacement and in random order.

    Parameters
    ----------
    key : typed random key.
    X : (N, d) points.
    num_landmarks : n, in [1, N].

    Returns
    -------
    (n, d) array of the dtype of X. Rows are different rows of X; they are equal where X repeats a point.

    Raises
    ------
    ValueError
        If the key is old-style, X is not a floating matrix with at least one row, or num_landmarks is not in [1, N].

    Notes
    -----
    Time O(N log n + n d), memory O(N): the rows with the n largest of N uniform numbers. N stays below 2^31.

    Examples
    --------
    >>> import jax
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> uniform(jax.random.key(1), X, num_landmarks=5).shape
    (5, 3)
    """
    key = _checks.key(key)
    X = _checks.matrix("X", X)
    num_landmarks = _checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
    return _uniform(key, X, num_landmarks=num_landmarks)


@partial(jax.jit, static_argnames="num_landmarks")
def _uniform(key: jax.Array, X: jax.Array, *, num_landmarks: int) -> jax.Array:
    return X[_uniform_indices(key, X.shape[0], num_landmarks)]


def _uniform_indices(key: jax.Array, num_points: int, num_draws: int) -> jax.Array:
    """Return `num_draws` different indices below `num_points`."""
    key_draws, key_start = jax.random.split(key)
    # float32 whatever the data: top_k is slow on other types. Its 2^23 values tie among millions of points, and ties
    # go to the smaller position; counted from a random start, no index is favoured by that.
    draws = jax.random.uniform(key_draws, (num_points,), jnp.float32)
    start = jax.random.randint(key_start, (), 0, num_points, jnp.int32)
    chosen = lax.top_k(draws, num_draws)[1]
    # chosen + start, modulo num_points, without an overflow
    return jnp.where(chosen < num_points - start, chosen + start, chosen - (num_points - start))
