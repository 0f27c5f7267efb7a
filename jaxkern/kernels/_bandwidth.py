"""Quantiles of pairwise distances, the usual choice of a lengthscale: exact over all pairs, or over sampled ones.

Selection by order, without sorting: the bits of a non-negative float grow with its value, so the k-th smallest squared
distance is found digit by digit, from counts alone. Up to 512 points the distances are held and settled bit by bit;
beyond, each pass recomputes them tile by tile, and nothing of size n x n is held. The result is the distance of the
pair that attains it, so that gradients are those of that distance.

With weights pair (i, j) counts w_i w_j times, and w_i (w_i - 1) / 2 pairs are those of row i and its own copies, none
where w_i is below 1. The quantile is then that of the pairs in a line: the distance at the place q (T - h) of their
number T, and towards the next one over the last h pairs at a distance. Here h is 1, or less where pairs count less.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks
from jaxkern._distances import (
    FEW,
    centered,
    everywhere,
    product_form,
    safe_sqrt,
    squared_distances_direct,
)
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import present
from jaxkern.draws import pairs, weighted_pairs

Reduce = Callable[..., Any]
Combine = Callable[[Any, Any], Any]
_Found = tuple[Any, Any, jax.Array, Any]

_DIGIT = 4
_TILE = 512
_NEAR = 1e-2
_MOST_POINTS = 65_536


def quantile_lengthscale(
    X: Float[ArrayLike, "n d"],
    q: Float[ArrayLike, ""] = 0.5,
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the q-quantile of |x_i - x_j| over all pairs i < j, exactly.

    The definition is that of `numpy.quantile` (linear interpolation between order statistics). Use it as
    `Gaussian(quantile_lengthscale(X))` for the median heuristic, or `Gaussian.from_width(...)` in the convention of
    kpotufe2020. It is zero where more than a fraction q of the pairs coincide: check it before dividing by it.

    Parameters
    ----------
    X : (n, d) points, 2 <= n <= 65,536.
    q : in [0, 1].
    weights : (n,) non-negative weights in the dtype of X, of any positive sum; a row of weight 0 does not exist,
        whatever it holds, and copies of a row count as pairs at distance zero. By default all are 1.

    Returns
    -------
    () array of the dtype of X; inf where that distance, or its square, is; nan if X holds a nan, or if no two rows are
    left.

    Notes
    -----
    Time: 11 passes (float32) or 19 (float64) over the n (n - 1) / 2 distances, and one more with weights, or one for
    each bit where n <= 512; memory O(n d + 512^2).

    Examples
    --------
    >>> import jax
    >>> quantile_lengthscale(jax.random.normal(jax.random.key(0), (100, 3)), 0.25).shape
    ()
    """
    X = checks.matrix("X", X, min_rows=2)
    if X.shape[0] > _MOST_POINTS:
        raise ValueError(
            f"X must have at most {_MOST_POINTS} rows for the exact quantile, got {X.shape[0]}; "
            "use sampled_quantile_lengthscale"
        )
    weights = checks.weights(weights, "X", X)
    if weights is None:
        return _exact(X, *_position(q, X.shape[0] * (X.shape[0] - 1) // 2, X.dtype))
    return _weighted(X, weights, _level(q).astype(X.dtype))


def sampled_quantile_lengthscale(
    key: PRNGKeyArray,
    X: Float[ArrayLike, "n d"],
    q: Float[ArrayLike, ""] = 0.5,
    *,
    num_pairs: int = 100_000,
    weights: Float[ArrayLike, " n"] | None = None,
) -> Float[Array, ""]:
    """Return the q-quantile of |x_i - x_j| over random pairs of different rows, drawn with replacement.

    The quantile level is met to within sqrt(q (1 - q) / num_pairs), one standard error.

    Parameters
    ----------
    key : typed random key.
    X : (n, d) points, n >= 2.
    q : in [0, 1].
    num_pairs : number of pairs, at least 1.
    weights : as in `quantile_lengthscale`. With whole numbers the pairs are those of the rows repeated.

    Notes
    -----
    Time and memory O(num_pairs d).
    """
    key = checks.key(key)
    X = checks.matrix("X", X, min_rows=2)
    num_pairs = checks.count("num_pairs", num_pairs)
    weights = checks.weights(weights, "X", X)
    return _sampled(
        key, X, *_position(q, num_pairs, X.dtype), weights, num_pairs=num_pairs
    )


def _position(q: Any, total: int, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Return the rank of the order statistic below level q of `total` values, and the weight of the next one.

    A static q is located in float64; float32 does not tell ranks above 2^24 apart.
    """
    if checks.is_static(checks.fraction("q", q)):
        position = float(q) * (total - 1)
        rank = min(int(position), max(total - 2, 0))
        return jnp.asarray(rank, jnp.int32), jnp.asarray(position - rank, dtype)
    located = _level(q).astype(dtype) * (total - 1)
    below = jnp.clip(jnp.floor(located).astype(jnp.int32), 0, max(total - 2, 0))
    return below, jnp.clip(located - below.astype(dtype), 0, 1)


def _level(q: Any) -> jax.Array:
    level = jnp.asarray(checks.real("q", checks.fraction("q", q)))
    if level.ndim:
        raise ValueError(
            f"q must be a scalar, got shape {level.shape}; vmap over several levels"
        )
    return level


@jax.jit
def _exact(X: jax.Array, rank: jax.Array, weight: jax.Array) -> jax.Array:
    n = X.shape[0]
    return _interpolate(
        X, *_order_statistics(_tiles(X), n * (n - 1) // 2, rank, X.dtype)[:3], weight
    )


@jax.jit
def _weighted(X: jax.Array, weights: jax.Array, q: jax.Array) -> jax.Array:
    # In units of a power of two near the largest weight, so that products stay in the range of the dtype.
    unit = lax.reduce_precision(
        lax.stop_gradient(jnp.max(weights)), jnp.finfo(X.dtype).nexp, 0
    )
    X, weights, one = present(X, weights), weights / unit, 1 / unit
    copies = weights * jnp.maximum(weights - one, 0) / 2

    def over_all(values: jax.Array, copies: jax.Array) -> jax.Array:
        """Return the sum over pairs of the products of values, without a difference of sums."""
        return jnp.sum(values * jnp.pad(jnp.cumsum(values)[:-1], (1, 0))) + jnp.sum(
            copies
        )

    total = over_all(weights, copies)
    share = jnp.minimum(
        one * one, over_all(weights**2, copies**2) / total
    )  # no pair: NaN
    share = jnp.maximum(share, jnp.finfo(X.dtype).tiny)
    return _interpolate(
        X,
        *_order_statistics(
            _tiles(X, weights, copies), 0, q * (total - share), X.dtype, share
        ),
    )


class _Pairs(NamedTuple):
    """A fold over pairs, `over(reduce, combine, init)`, and how many bits of a value a pass over them is to settle."""

    over: Callable[[Reduce, Combine, Any], Any]
    digit: int


def _tiles(X: jax.Array, *masses: jax.Array) -> _Pairs:
    """Return the fold over all pairs that `_order_statistics` asks for; `masses` are the weights, and of copies."""
    n, dim = X.shape
    tiles = -(-n // _TILE)
    size = -(-n // tiles)
    size += size % 2  # rows of one tile go in pairs
    filling = (0, tiles * size - n)
    rows = jnp.pad(lax.stop_gradient(X), (filling, (0, 0)), mode="edge").reshape(
        tiles, size, dim
    )
    first, second = (jnp.asarray(i, jnp.int32) for i in np.triu_indices(tiles))
    masses = tuple(jnp.pad(each, filling).reshape(tiles, size) for each in masses)

    within = jnp.arange(size, dtype=jnp.int32)

    def columns_of(j: Any) -> list[jax.Array]:
        """Return the points of tile j, and their weights if there are any."""
        return [each[j] for each in (rows, *masses[:1])]

    def tile(i: Any, j: Any, columns: list[jax.Array]) -> tuple[jax.Array, ...]:
        a, b = i * size + within, j * size + within
        counted = (a[:, None] < b[None, :]) & (b[None, :] < n)
        mass = counted
        if masses:
            weights, copies = masses
            mass = jnp.where(counted, weights[i][:, None] * columns[1][None, :], 0)
            counted, mass = (
                mass > 0,
                jnp.where(a[:, None] == b[None, :], copies[i][:, None], mass),
            )
        return _squares(rows[i], columns[0], counted), mass, a[:, None], b[None, :]

    def halves(values: jax.Array) -> tuple[jax.Array, jax.Array]:
        return values[: size // 2], values[::-1, ::-1][: size // 2]

    if tiles == 1:
        # Of a row above the diagonal, and behind it the row as far from the end, backwards: no pair is held twice.
        squares, mass, i, j = tile(0, 0, columns_of(0))
        i, (squares, behind), (mass, other) = (
            i[: size // 2],
            *map(halves, (squares, mass)),
        )
        above = i < j
        ends = (jnp.where(above, each, size - 1 - each) for each in (i, j))
        return _held(jnp.where(above, squares, behind), mass + other, *ends)

    def over_pairs(reduce: Reduce, combine: Combine, init: Any) -> Any:
        def step(state: Any, tiles: tuple[jax.Array, ...]) -> tuple[Any, None]:
            carry, columns = state
            i, j, next_j = tiles
            carry = combine(carry, reduce(*tile(i, j, columns)))
            return (carry, columns_of(next_j)), None

        # The columns are part of the state, so that they are an array of their own: on a CPU, XLA would otherwise
        # compute their place within all rows for each entry of a tile, which takes five times as long.
        tiles = (first, second, jnp.roll(second, -1))
        (carry, _), _ = lax.scan(step, (init, columns_of(0)), tiles)
        return carry

    return _Pairs(over_pairs, _DIGIT)


def _held(*pairs: jax.Array) -> _Pairs:
    # Bit by bit: a pass over values that are held takes little more than its comparisons.
    return _Pairs(lambda reduce, combine, init: combine(init, reduce(*pairs)), 1)


@partial(jax.jit, static_argnames=("num_pairs",))
def _sampled(
    key: jax.Array,
    X: jax.Array,
    rank: jax.Array,
    weight: jax.Array,
    weights: jax.Array | None,
    *,
    num_pairs: int,
) -> jax.Array:
    if weights is None:
        i, j = pairs(key, X.shape[0], num_pairs)
    else:
        i, j, some = weighted_pairs(key, weights, num_pairs)
        X = jnp.where(some, present(X, weights), jnp.nan)
    differences = lax.stop_gradient(X[i] - X[j])
    squares = jnp.sum(differences * differences, axis=1)
    every = _held(squares, jnp.ones((), bool), i, j)
    return _interpolate(
        X, *_order_statistics(every, num_pairs, rank, X.dtype)[:3], weight
    )


def _interpolate(
    X: jax.Array,
    lower: tuple[Any, Any],
    upper: tuple[Any, Any],
    missing: jax.Array,
    weight: jax.Array,
) -> jax.Array:
    """Return the interpolated distance of two pairs of rows of X, nan where a distance is missing."""
    short, long = (safe_sqrt(jnp.sum((X[i] - X[j]) ** 2)) for i, j in (lower, upper))
    gap = jnp.where(jnp.isinf(short), 0, long - short)  # both are infinite
    return jnp.where(
        missing,
        jnp.nan,
        short + jnp.where(jnp.isinf(gap) & (weight == 0), 0, weight * gap),
    )


def _squares(X: jax.Array, Y: jax.Array, counted: jax.Array) -> jax.Array:
    """Return squared distances: by products, or directly as soon as one counted pair is close.

    Products have an absolute error of eps (|x|^2 + |y|^2), centred, so that what is kept is accurate to 100 eps, and
    copies are at distance zero.
    """
    one = jnp.ones((), X.dtype)
    if X.shape[1] <= FEW:
        return squared_distances_direct(X, Y, one)
    A, B, first, second = centered(X, Y, one)
    squares = product_form(A, B, first, second)
    apart = jnp.all(~counted | (squares >= _NEAR * (first[:, None] + second[None, :])))
    return lax.cond(
        everywhere(apart), lambda: squares, lambda: squared_distances_direct(X, Y, one)
    )


def _order_statistics(
    every: _Pairs, total: int, rank: jax.Array, dtype: Any, share: Any = None
) -> _Found:
    """Return the pairs with the values number `rank`, from 0, and `rank` + 1 of `total`, and whether one is missing.

    The fold is one of `reduce(values, counted, first, second)` over all values, non-negative ones, which belong to the
    pairs (first, second). With `share` the values have masses in the place of `counted`, the lower one is that up to
    which their sum is above `rank`, and the weight of the upper one is returned, too.
    """
    over_pairs, digit_bits = every
    bits = jnp.finfo(dtype).bits
    integer = jnp.dtype(f"uint{bits}")

    def as_bits(values: jax.Array) -> jax.Array:
        # Adding zero turns -0.0 into 0.0, the only non-negative value whose bits are out of order.
        return lax.bitcast_convert_type(values + jnp.zeros((), dtype), integer)

    def exists(counted: jax.Array) -> jax.Array:
        return counted if share is None else counted > 0

    def tally(counted: jax.Array, chosen: jax.Array) -> jax.Array:
        if share is None:
            return jnp.sum(counted & chosen, dtype=jnp.int32)
        return jnp.sum(jnp.where(chosen, counted, 0))

    def count_below(thresholds: jax.Array) -> jax.Array:
        """Count the values below each of the thresholds."""

        def reduce(values: jax.Array, counted: jax.Array, *_: jax.Array) -> jax.Array:
            own = as_bits(values)
            return jnp.stack([tally(counted, own < t) for t in thresholds])

        return over_pairs(reduce, jnp.add, jnp.zeros(thresholds.shape, rank.dtype))

    def largest_of(values: jax.Array, counted: jax.Array, *_: jax.Array) -> jax.Array:
        return jnp.max(jnp.where(exists(counted), values, 0))

    # Invariant: the wanted value is the smallest one whose bits are at least `prefix` with the digits still to come.
    def digit(step: jax.Array, prefix: jax.Array) -> jax.Array:
        shift = (bits - digit_bits * (step + 1)).astype(integer)
        thresholds = prefix + (jnp.arange(1, 2**digit_bits).astype(integer) << shift)
        return prefix + (
            jnp.sum(count_below(thresholds) <= rank).astype(integer) << shift
        )

    lower_bits = lax.fori_loop(0, bits // digit_bits, digit, jnp.zeros((), integer))
    lower = lax.bitcast_convert_type(lower_bits, dtype)
    if (
        share is not None
    ):  # the sum of all masses is rounded: up to none of the values it may be above the rank
        largest = over_pairs(largest_of, jnp.maximum, jnp.zeros((), dtype))
        lower = jnp.where(lower < largest, lower, largest)
        lower_bits = as_bits(lower)

    def around(
        values: jax.Array, counted: jax.Array, *_: jax.Array
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Count the values up to the lower one, and find the next one above; a nan must show wherever it sits."""
        larger, some = as_bits(values) > lower_bits, exists(counted)
        following = jnp.min(jnp.where(some & larger, values, jnp.inf))
        return tally(counted, ~larger), following, jnp.any(some & jnp.isnan(values))

    def combine(a: Any, b: Any) -> Any:
        return a[0] + b[0], jnp.minimum(a[1], b[1]), a[2] | b[2]

    init = jnp.zeros((), rank.dtype), jnp.full((), jnp.inf, dtype), jnp.zeros((), bool)
    at_most, following, missing = over_pairs(around, combine, init)
    if share is None:
        upper = jnp.where((at_most > rank + 1) | (total == 1), lower, following)
    else:
        upper = jnp.where(lower < largest, following, lower)

    def pair_at(target: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Find the pair whose value is the target; another program may round it differently, so take the nearest."""

        def reduce(
            values: jax.Array, counted: jax.Array, first: jax.Array, second: jax.Array
        ) -> Any:
            gaps = jnp.where(
                values == target, 0, jnp.abs(values - target)
            )  # of infinite ones, too
            gaps = jnp.where(exists(counted), gaps, jnp.inf).ravel()
            # The first that equals the least: XLA takes longer over an `argmin`.
            least, numbers = jnp.min(gaps), lax.iota(jnp.int32, gaps.size)
            best = jnp.min(jnp.where(gaps == least, numbers, gaps.size - 1))
            return least, *(
                jnp.broadcast_to(index, values.shape).ravel()[best]
                for index in (first, second)
            )

        def nearer(a: Any, b: Any) -> Any:
            return jax.tree.map(lambda x, y: jnp.where(b[0] < a[0], y, x), a, b)

        none = (
            jnp.full((), jnp.inf, dtype),
            jnp.zeros((), jnp.int32),
            jnp.zeros((), jnp.int32),
        )
        return over_pairs(reduce, nearer, none)[1:]

    weight = None if share is None else jnp.clip((rank - at_most + share) / share, 0, 1)
    return pair_at(lower), pair_at(upper), missing, weight
