"""Quantiles of pairwise distances, the usual choice of a lengthscale: exact over all pairs, or over sampled ones.

Selection by order, without sorting: the bits of a non-negative float grow with its value, so the k-th smallest squared
distance is found digit by digit, from counts alone. Each pass recomputes the distances tile by tile; nothing of size
n x n is held.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import _checks
from jaxkern._distances import squared_distances

Reduce = Callable[[jax.Array, jax.Array], Any]
Combine = Callable[[Any, Any], Any]

_DIGIT = 4
_TILE = 512
_MOST_POINTS = 65_536


def quantile_lengthscale(X: Any, q: Any = 0.5) -> jax.Array:
    """Return the q-quantile of |x_i - x_j| over all pairs i < j, exactly.

    The definition is that of `numpy.quantile` (linear interpolation between order statistics). Use it as
    `Gaussian(quantile_lengthscale(X))` for the median heuristic, or `Gaussian.from_width(...)` in the convention of
    kpotufe2020. It is zero where more than a fraction q of the pairs coincide: check it before dividing by it.

    Parameters
    ----------
    X : (n, d) points, 2 <= n <= 65,536.
    q : in [0, 1].

    Returns
    -------
    () array of the dtype of X; nan if X holds a nan.

    Raises
    ------
    ValueError
        If X is not a floating matrix with 2 to 65,536 rows, or a static q lies outside [0, 1].

    Notes
    -----
    Time: 8 passes (float32) or 16 (float64) over the n (n - 1) / 2 distances; memory O(n d + 512^2).

    Examples
    --------
    >>> import jax
    >>> quantile_lengthscale(jax.random.normal(jax.random.key(0), (100, 3)), 0.25).shape
    ()
    """
    X = _checks.matrix("X", X, min_rows=2)
    if X.shape[0] > _MOST_POINTS:
        raise ValueError(
            f"X must have at most {_MOST_POINTS} rows for the exact quantile, got {X.shape[0]}; "
            "use sampled_quantile_lengthscale"
        )
    return _exact(X, _as_scalar(q, X.dtype))


def sampled_quantile_lengthscale(key: Any, X: Any, q: Any = 0.5, *, num_pairs: int = 100_000) -> jax.Array:
    """Return the q-quantile of |x_i - x_j| over random pairs of different rows, drawn with replacement.

    The quantile level is met to within sqrt(q (1 - q) / num_pairs), one standard error.

    Parameters
    ----------
    key : typed random key.
    X : (n, d) points, n >= 2.
    q : in [0, 1].
    num_pairs : number of pairs, at least 1.

    Returns
    -------
    () array of the dtype of X.

    Raises
    ------
    ValueError
        If X is not a floating matrix with two rows, a static q lies outside [0, 1], the key is old-style, or
        num_pairs < 1.

    Notes
    -----
    Time and memory O(num_pairs d).
    """
    key = _checks.key(key)
    X = _checks.matrix("X", X, min_rows=2)
    return _sampled(key, X, _as_scalar(q, X.dtype), num_pairs=_checks.count("num_pairs", num_pairs))


def _as_scalar(q: Any, dtype: Any) -> jax.Array:
    q = jnp.asarray(_checks.fraction("q", q))
    if q.ndim:
        raise ValueError(f"q must be a scalar, got shape {q.shape}; vmap over several levels")
    return q.astype(dtype)


@jax.jit
def _exact(X: jax.Array, q: jax.Array) -> jax.Array:
    n, dim = X.shape
    tiles = -(-n // _TILE)
    size = -(-n // tiles)
    X = X - jnp.mean(X, axis=0, keepdims=True)
    rows = jnp.pad(X, ((0, tiles * size - n), (0, 0)), mode="edge").reshape(tiles, size, dim)
    first, second = (jnp.asarray(i, jnp.int32) for i in np.triu_indices(tiles))
    one = jnp.ones((), X.dtype)

    def over_pairs(reduce: Reduce, combine: Combine, init: Any) -> Any:
        def step(carry: Any, ij: tuple[jax.Array, jax.Array]) -> tuple[Any, None]:
            i, j = ij
            a, b = i * size + jnp.arange(size), j * size + jnp.arange(size)
            counted = (a[:, None] < b[None, :]) & (b[None, :] < n)
            return combine(carry, reduce(squared_distances(rows[i], rows[j], one), counted)), None

        return lax.scan(step, init, (first, second))[0]

    return _interpolate(*_order_statistics(over_pairs, n * (n - 1) // 2, q))


@partial(jax.jit, static_argnames=("num_pairs",))
def _sampled(key: jax.Array, X: jax.Array, q: jax.Array, *, num_pairs: int) -> jax.Array:
    n = X.shape[0]
    key_first, key_second = jax.random.split(key)
    i = jax.random.randint(key_first, (num_pairs,), 0, n)
    j = jax.random.randint(key_second, (num_pairs,), 0, n - 1)
    differences = X[i] - X[j + (j >= i)]
    squares = jnp.sum(differences * differences, axis=1)

    def over_pairs(reduce: Reduce, combine: Combine, init: Any) -> Any:
        return combine(init, reduce(squares, jnp.ones_like(squares, dtype=bool)))

    return _interpolate(*_order_statistics(over_pairs, num_pairs, q))


def _interpolate(lower: jax.Array, upper: jax.Array, weight: jax.Array) -> jax.Array:
    lower, upper = jnp.sqrt(lower), jnp.sqrt(upper)
    return lower + weight * (upper - lower)


def _order_statistics(over_pairs: Any, total: int, q: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the two order statistics around level q of `total` non-negative values, and the weight of the second.

    `over_pairs(reduce, combine, init)` folds `reduce(values, counted)` over all values.
    """
    dtype = q.dtype
    bits = jnp.finfo(dtype).bits
    integer = jnp.dtype(f"uint{bits}")
    position = q * (total - 1)
    rank = jnp.clip(jnp.floor(position), 0, max(total - 2, 0))
    weight = position - rank
    rank = rank.astype(jnp.int32)

    def as_bits(values: jax.Array) -> jax.Array:
        # Adding zero turns -0.0 into 0.0, the only non-negative value whose bits are out of order.
        return lax.bitcast_convert_type(values + jnp.zeros((), dtype), integer)

    def count_below(thresholds: jax.Array) -> jax.Array:
        """Count the values below each of the thresholds."""

        def reduce(values: jax.Array, counted: jax.Array) -> jax.Array:
            found = as_bits(values)
            return jnp.stack([jnp.sum(counted & (found < t), dtype=jnp.int32) for t in thresholds])

        return over_pairs(reduce, jnp.add, jnp.zeros(thresholds.shape, jnp.int32))

    # Invariant: the wanted value is the smallest one whose bits are at least `prefix` with the digits still to come.
    def digit(step: jax.Array, prefix: jax.Array) -> jax.Array:
        shift = (bits - _DIGIT * (step + 1)).astype(integer)
        thresholds = prefix + (jnp.arange(1, 2**_DIGIT).astype(integer) << shift)
        return prefix + (jnp.sum(count_below(thresholds) <= rank).astype(integer) << shift)

    found = lax.fori_loop(0, bits // _DIGIT, digit, jnp.zeros((), integer))
    lower = lax.bitcast_convert_type(found, dtype)

    def around(values: jax.Array, counted: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Count the values up to the one found, and find the next one above; a nan must show wherever it sits."""
        larger = as_bits(values) > found
        following = jnp.min(jnp.where(counted & larger, values, jnp.inf))
        return jnp.sum(counted & ~larger, dtype=jnp.int32), following, jnp.any(counted & jnp.isnan(values))

    def combine(a: Any, b: Any) -> Any:
        return a[0] + b[0], jnp.minimum(a[1], b[1]), a[2] | b[2]

    init = jnp.zeros((), jnp.int32), jnp.full((), jnp.inf, dtype), jnp.zeros((), bool)
    at_most, following, missing = over_pairs(around, combine, init)
    upper = jnp.where((at_most > rank + 1) | (total == 1), lower, following)
    return jnp.where(missing, jnp.nan, lower), jnp.where(missing, jnp.nan, upper), weight
