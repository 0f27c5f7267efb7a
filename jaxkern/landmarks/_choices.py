"""Ways to choose landmarks from all of the data."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import order, present
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.kmeans._seeding import plus_plus
from jaxkern.linalg import HIGHEST
from jaxkern.pytrees import pytree

_GROUP = 256


def uniform(
    key: PRNGKeyArray, X: Float[ArrayLike, "N d"], *, num_landmarks: int, weights: Float[ArrayLike, " N"] | None = None
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X, drawn uniformly without replacement and in random order.

    With weights the rows are drawn one after the other with odds proportional to them, among those that are left.

    Parameters
    ----------
    key : typed random key.
    X : (N, d) points.
    num_landmarks : n, in [1, N].
    weights : (N,) non-negative weights in the dtype of X, of any positive sum; a row of weight 0 does not exist,
        whatever it holds. By default all are 1. NumPy weights that are negative, not finite or all zero raise
        ValueError; with others that are, all landmarks are NaN.

    Returns
    -------
    (n, d) array of the dtype of X. Rows are different rows of X; they are equal where X repeats a point. Those after
    the last row that exists are NaN.

    Notes
    -----
    Time O(N log n + n d), memory O(N): the rows with the n largest of N uniform numbers u, or log(u) / weight where
    weights differ. N stays below 2^31.

    Examples
    --------
    >>> import jax
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> uniform(jax.random.key(1), X, num_landmarks=5).shape
    (5, 3)
    """
    key, X, weights, num_landmarks = _checked(key, X, weights, num_landmarks)
    return _uniform(key, X, weights, num_landmarks=num_landmarks)


def _checked(
    key: Any, X: Any, weights: Any, num_landmarks: Any, name: str = "num_landmarks"
) -> tuple[jax.Array, jax.Array, Any, int]:
    key, X = checks.key(key), checks.matrix("X", X)
    count = checks.count(name, num_landmarks, maximum=X.shape[0], limit="the number of points")
    return key, X, checks.weights(weights, "X", X), count


@partial(jax.jit, static_argnames="num_landmarks")
def _uniform(key: jax.Array, X: jax.Array, weights: jax.Array | None, *, num_landmarks: int) -> jax.Array:
    X, weights, count = _set_alone(X, weights)
    return _rows(X, _uniform_indices(key, count, num_landmarks, weights), jnp.zeros(()), count)


def _set_alone(X: jax.Array, weights: Any) -> tuple[jax.Array, jax.Array | None, Any]:
    """Return points and weights with the rows that exist first, and how many these are: draws go by the position."""
    if weights is None:
        return X, None, X.shape[0]
    at = order(weights)
    return present(X, weights)[at], weights[at], jnp.sum(weights > 0, dtype=jnp.int32)


def _uniform_indices(key: jax.Array, num_points: Any, num_draws: int, weights: jax.Array | None = None) -> jax.Array:
    """Return `num_draws` different indices below `num_points`, by weight; what follows the last of them is none."""
    key_draws, key_start = jax.random.split(key)
    # float32 whatever the data: top_k is slow on other types. Its 2^23 values tie among millions of points, and ties
    # go to the smaller position; counted from a random start, no index is favoured by that.
    draws = jax.random.uniform(key_draws, (num_points if weights is None else len(weights),), jnp.float32)
    start = jax.random.randint(key_start, (), 0, num_points, jnp.int32)

    def turned(place: jax.Array) -> jax.Array:
        """Return place + start, modulo num_points, without an overflow."""
        return jnp.where(place < num_points - start, place + start, place - (num_points - start))

    if weights is not None:
        place = lax.iota(jnp.int32, len(weights))
        own = (weights / jnp.max(weights))[turned(place)].astype(jnp.float32)
        some = (place < num_points) & (own > 0)
        # Exponential clocks, the first to ring comes first; where the weights are equal they ring in the order of u.
        clocks = jnp.log(draws + 2.0**-24) / jnp.where(some, own, 1)
        draws = jnp.where(some, jnp.where((~some | (own == 1)).all(), draws, clocks), -jnp.inf)
    return turned(lax.top_k(draws, num_draws)[1])


def kmeans_plus_plus(
    key: PRNGKeyArray,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int,
    num_candidates: int | None = 1,
    weights: Float[ArrayLike, " N"] | None = None,
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X that k-means++ seeding chooses: spread out, and close to the data.

    The first row is uniform, each further one is drawn with probability proportional to the squared distance to the
    nearest row chosen so far; both by weight.

    Parameters
    ----------
    key, X, num_landmarks, weights : as in `uniform`.
    num_candidates : candidates of which the best is taken in every step; 1 is the plain method, None 2 + log n.

    Returns
    -------
    (n, d) array: different rows of X, equal ones only when no others are left; NaN after the last row that exists, and
    everywhere if X is not finite.

    Notes
    -----
    Time O(N d n num_candidates), memory O(N d). Source: Arthur and Vassilvitskii (2007).
    """
    key, X, weights, num_landmarks = _checked(key, X, weights, num_landmarks)
    if num_candidates is None:
        num_candidates = 2 + int(math.log(num_landmarks))
    num_candidates = checks.count("num_candidates", num_candidates)
    return _kmeans_plus_plus(key, X, weights, num_landmarks=num_landmarks, num_candidates=num_candidates)


@partial(jax.jit, static_argnames=("num_landmarks", "num_candidates"))
def _kmeans_plus_plus(
    key: jax.Array, X: jax.Array, weights: jax.Array | None, *, num_landmarks: int, num_candidates: int
) -> jax.Array:
    X, weights, count = _set_alone(X, weights)
    return _rows(X, plus_plus(key, X, weights, num_landmarks, num_candidates), X, count)


def _rows(X: jax.Array, chosen: jax.Array, numbers: jax.Array, count: Any) -> jax.Array:
    """Return the chosen rows; NaN where the numbers that chose them are not finite, and after the first `count`."""
    fine = jnp.isfinite(numbers).all() & (lax.iota(jnp.int32, len(chosen)) < count)
    return jnp.where(fine[:, None], X[chosen], jnp.nan)


@pytree
class Pivots:
    """As many landmarks as a tolerance asks for, at most max_landmarks: what `pivoted_cholesky` returns with one.

    Attributes
    ----------
    landmarks : (max_landmarks, d) rows of X in the order chosen; NaN from `num_landmarks` on.
    weights : (max_landmarks,), 1 for a landmark and 0 for a place that is not used: `features.nystrom(kernel,
        found.landmarks, weights=found.weights)`. Outside of `jit` also `found.landmarks[: found.num_landmarks]`.
    num_landmarks : scalar int32, how many there are, at least 1.
    trace_residual : scalar, the sum over rows of weight (K(x, x) - |P K_x|^2), without a derivative: a loop as long as
        the data say has none. That of `features.nystrom` of the landmarks with `X=X` has one.
    trace : scalar, the sum over rows of weight K(x, x).
    reached : scalar bool, whether trace_residual <= tolerance trace; never for a tolerance below 10 eps(dtype).
    exhausted : scalar bool, whether what is left is rounding: residuals of at most 10 eps max K(x, x), or their trace
        at most 10 eps trace. No more landmarks are taken then, whether or not the tolerance is reached.
    """

    landmarks: jax.Array
    weights: jax.Array
    num_landmarks: jax.Array
    trace_residual: jax.Array
    trace: jax.Array
    reached: jax.Array
    exhausted: jax.Array


@overload
def pivoted_cholesky(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int,
    weights: Float[ArrayLike, " N"] | None = None,
) -> Float[Array, "n d"]: ...


@overload
def pivoted_cholesky(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "N d"],
    *,
    tolerance: Float[ArrayLike, ""],
    max_landmarks: int,
    weights: Float[ArrayLike, " N"] | None = None,
) -> Pivots: ...


def pivoted_cholesky(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int | None = None,
    tolerance: Float[ArrayLike, ""] | None = None,
    max_landmarks: int | None = None,
    weights: Float[ArrayLike, " N"] | None = None,
) -> Float[Array, "n d"] | Pivots:
    """Return rows of X chosen by randomly pivoted Cholesky, so many or until a tolerance is reached.

    What the others explain is not taken again: each row is drawn with probability proportional to its weight and its
    residual K(x, x) - |P K_x|^2, P the projection onto the sections of the rows chosen so far. The expected trace of
    the residual is within a factor 1 + eps of the best of rank r once n is r / eps + r log(1 / (eps eta)), eta the
    relative residual of rank r; `plan.pivoted_cholesky` knows this.

    Parameters
    ----------
    key, X, weights : as in `uniform`.
    kernel : a positive semidefinite kernel, or a function of two points.
    num_landmarks : n, in [1, N].
    tolerance : in the place of `num_landmarks`, in [0, 1]: it stops as soon as tr(K - Khat) <= tolerance tr(K), of the
        matrices whose rows and columns are scaled by the roots of the weights. It may be traced.
    max_landmarks : with a tolerance, the most landmarks that are taken, in [1, N].

    Returns
    -------
    (n, d) array: different rows of X, in the order chosen. Once nothing is left to explain (residuals of at most
    10 eps max K(x, x)), further rows are drawn by weight from the rest. NaN after the last row that exists, and
    everywhere if a kernel value is not finite. With a tolerance `Pivots`, whose landmarks are the first of these.

    Raises
    ------
    ValueError
        If both or none of `num_landmarks` and `tolerance` are given, or `max_landmarks` without the latter.

    Notes
    -----
    O(N n) kernel evaluations, O(N n^2) time in matrix products, by blocks of up to 64 rows of which some are rejected,
    and O(N n) memory; with a tolerance n is the number of landmarks that are taken, memory is O(N max_landmarks), and
    one program serves all tolerances. Sources: Chen, Epperly, Tropp and Webber (2025), and Epperly, Tropp and Webber
    (2024) for the rejection; claim jaxkern:pivoted-cholesky.
    """
    kernel = psd_kernel(kernel)
    if (num_landmarks is None) == (tolerance is None):
        given = "none of them" if tolerance is None else "both"
        raise ValueError(f"num_landmarks or tolerance must be given, got {given}")
    if (max_landmarks is None) != (tolerance is None):
        raise ValueError(f"max_landmarks must be given with a tolerance, and not without, got {max_landmarks!r}")
    if tolerance is None:
        key, X, weights, num_landmarks = _checked(key, X, weights, num_landmarks)
        X, weights, count = _set_alone(X, weights)
        pivots, _, residual = _pivots(key, kernel, X, weights, num_landmarks=num_landmarks)
        return _rows(X, pivots, residual, count)
    key, X, weights, max_landmarks = _checked(key, X, weights, max_landmarks, "max_landmarks")
    tolerance = checks.scalar("tolerance", checks.fraction("tolerance", tolerance), X.dtype)
    return _pivots_to(key, kernel, X, weights, tolerance, max_landmarks=max_landmarks)


@partial(jax.jit, static_argnames="num_landmarks")
def _pivots(
    key: jax.Array, kernel: Kernel, X: jax.Array, weights: jax.Array | None = None, *, num_landmarks: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the indices of the pivots, (num_landmarks,) int32, the factor of K, (N, num_landmarks), and what is left.

    What is left, (N,), is the residual diagonal, or NaN where a kernel value was not finite.
    """
    pivots, factor, residual, _ = _pivoting(key, *lax.stop_gradient((kernel, X, weights)), num_landmarks, None)
    return pivots, factor, residual


@partial(jax.jit, static_argnames="max_landmarks")
def _pivots_to(
    key: jax.Array, kernel: Kernel, X: jax.Array, weights: Any, tolerance: jax.Array, *, max_landmarks: int
) -> Pivots:
    X, weights, _ = _set_alone(X, weights)
    shares = jnp.ones(X.shape[0], X.dtype) if weights is None else weights
    trace = jnp.sum(shares * kernel._diagonal(X))
    known = 10 * jnp.finfo(X.dtype).eps * lax.stop_gradient(trace)
    least = jnp.where(tolerance * trace >= known, tolerance * trace, -1)  # or it is never reached

    def enough(residual: jax.Array) -> jax.Array:
        """Tell of residuals, (N, ...), whether their trace is small enough, or rounding alone."""
        left = jnp.tensordot(shares, residual, 1, precision=HIGHEST)
        return left <= jnp.maximum(least, known)

    given = lax.stop_gradient((kernel, X, weights))
    pivots, _, residual, count = _pivoting(key, *given, max_landmarks, enough)
    left = jnp.sum(lax.stop_gradient(shares) * residual)
    nothing = ~(residual > _rounding(kernel._diagonal(X))).any()
    used = (lax.iota(jnp.int32, max_landmarks) < count).astype(X.dtype)
    landmarks = _rows(X, pivots, residual, count)
    return Pivots(landmarks, used, count, left, trace, left <= least, nothing | (left <= known))


def _rounding(diagonal: jax.Array) -> jax.Array:
    """Return what is nothing of a residual diagonal."""
    return 10 * jnp.finfo(diagonal.dtype).eps * jnp.max(diagonal)


def _pivoting(
    key: jax.Array, kernel: Kernel, X: jax.Array, weights: Any, num_landmarks: int, enough: Any
) -> tuple[jax.Array, ...]:
    """Return pivots, the factor of K, the residual diagonal, and how many pivots there are.

    Each pivot is drawn by the residual diagonal that the ones before it leave. Columns are taken by blocks: rows are
    proposed by the diagonal before a block, and one is a pivot with the odds to which its residual has fallen since.
    `enough` tells of a diagonal that no more are needed; None where so many are asked for.
    """
    diagonal, size = kernel._diagonal(X), X.shape[0]
    nothing, block, panel = _rounding(diagonal), min(64, max(8, num_landmarks // 8)), min(128, num_landmarks)
    shares = jnp.ones(size, X.dtype) if weights is None else weights

    def odds_of(residual: jax.Array) -> jax.Array:
        return jnp.where(residual > nothing, shares * residual, 0)

    def unfinished(state: Any) -> jax.Array:
        _, _, residual, count, _ = state
        total = jnp.sum(odds_of(residual))  # NaN where a kernel value is not finite
        more = (count < num_landmarks) & (total > 0) & (total < jnp.inf)
        return more if enough is None else more & ((count == 0) | ~enough(residual))

    def take(state: Any) -> Any:
        pivots, factor, residual, count, step = state
        key_rows, key_odds = jax.random.split(jax.random.fold_in(key, step))
        odds = odds_of(residual)
        rows = _drawn(key_rows, odds, block)

        def less(i: jax.Array, columns: jax.Array) -> jax.Array:
            some = lax.dynamic_slice_in_dim(factor, i * panel, panel, 1)
            return columns - jnp.matmul(some, some[rows].T, precision=HIGHEST)

        columns = lax.fori_loop(0, (count + panel - 1) // panel, less, _gram(kernel, X, X[rows]))
        own, drawn = columns[rows], odds[rows] > 0
        asked = jax.random.uniform(key_odds, (block,), X.dtype) * residual[rows]
        residual = residual.at[rows].set(jnp.where(drawn, jnp.diag(own), residual[rows]))

        def judge(i: jax.Array, so_far: Any) -> Any:
            own, L, taken = so_far
            pivot = own[i, i]
            fine = (
                drawn[i]
                & (pivot > nothing)
                & (asked[i] < pivot)
                & (count + jnp.sum(taken, dtype=jnp.int32) < num_landmarks)
            )
            column = jnp.where(fine, own[:, i] / jnp.sqrt(jnp.where(fine, pivot, 1)), 0)
            own = own - column[:, None] * column[None, :]
            own = jnp.where(jnp.diag(fine & (rows == rows[i])), 0, own)  # a row is taken once
            return own, L.at[:, i].set(column), taken.at[i].set(fine)

        start = own, jnp.zeros((block, block), X.dtype), jnp.zeros(block, bool)
        _, L, taken = lax.fori_loop(0, block, judge, start)
        order = jnp.argsort(~taken, stable=True)
        taken = taken[order]
        L = jnp.where(taken[:, None] & taken[None, :], L[order][:, order], jnp.eye(block, dtype=X.dtype))
        new = lax.linalg.triangular_solve(L, columns[:, order], left_side=False, lower=True, transpose_a=True)
        new = jnp.where(taken[None, :], new, 0)
        if enough is not None:
            falling = jnp.maximum(residual[:, None] - jnp.cumsum(new * new, axis=1), 0)
            taken &= lax.iota(jnp.int32, block) <= jnp.sum(jnp.cumprod(~enough(falling)), dtype=jnp.int32)
            new = jnp.where(taken[None, :], new, 0)
        found = jnp.where(taken, rows[order], size)
        residual = jnp.maximum(residual - jnp.sum(new * new, axis=1), 0).at[found].set(0, mode="drop")
        factor = lax.dynamic_update_slice_in_dim(factor, new, count, 1)
        pivots = lax.dynamic_update_slice_in_dim(pivots, found, count, 0)
        return pivots, factor, residual, count + jnp.sum(taken, dtype=jnp.int32), step + 1

    width, zero = num_landmarks + max(block, panel), jnp.zeros((), jnp.int32)
    start = jnp.zeros(num_landmarks + block, jnp.int32), jnp.zeros((size, width), X.dtype), diagonal, zero, zero
    pivots, factor, residual, count, _ = lax.while_loop(unfinished, take, start)
    # What is left is nothing, and the rest is drawn by weight.
    place, factor = lax.iota(jnp.int32, num_landmarks), factor[:, :num_landmarks]
    free = jnp.log(shares.at[jnp.where(place < count, pivots[:num_landmarks], size)].set(0, mode="drop"))
    noise = jax.random.gumbel(jax.random.fold_in(key, 2**32 - 1), free.shape, X.dtype)
    rest = lax.top_k((free + noise).astype(jnp.float32), num_landmarks)[1]
    pivots = jnp.where(place < count, pivots[:num_landmarks], rest[jnp.maximum(place - count, 0)])
    count = jnp.maximum(count, 1) if enough is not None else jnp.full_like(count, num_landmarks)
    return pivots, factor, residual + 0 * jnp.sum(factor, axis=1), count


def _drawn(key: jax.Array, odds: jax.Array, num_draws: int) -> jax.Array:
    """Return independent draws of indices, int32, with such odds; any where all are zero.

    By a cumulative sum over groups, and one within a group: in float32 one over millions would lose small odds.
    """
    groups = jnp.pad(odds, (0, -odds.shape[0] % _GROUP)).reshape(-1, _GROUP)
    u, sums = jax.random.uniform(key, (2, num_draws), odds.dtype), jnp.cumsum(jnp.sum(groups, axis=1))
    group = jnp.minimum(jnp.searchsorted(sums, u[0] * sums[-1], side="right"), len(sums) - 1).astype(jnp.int32)
    within = jnp.cumsum(groups[group], axis=1)
    place = jnp.sum(within <= (u[1] * within[:, -1])[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(group * _GROUP + place, odds.shape[0] - 1)


def leverage(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int,
    regularization: Float[ArrayLike, ""] | None = None,
    num_pilots: int | None = None,
    weights: Float[ArrayLike, " N"] | None = None,
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X drawn without replacement by ridge leverage scores.

    The score of x_i is (K (K + lambda I)^{-1})_ii = min over w of |K_{x_i} - sum_j w_j K_{x_j}|^2 / lambda + |w|^2: how
    badly the other points explain it. With a pilot sample of rows, w is confined to them, which gives upper bounds of
    the scores at a fraction of the cost: (K(x, x) - k(x)^T (K_pp + lambda I)^{-1} k(x)) / lambda. The odds of a row of
    weight w are those of w copies together; in a pilot sample a row counts as one copy at most.

    Parameters
    ----------
    key, X, num_landmarks, weights : as in `uniform`.
    kernel : a positive semidefinite kernel, or a function of two points.
    regularization : lambda > 0, in the units of the kernel (of K, not of K / N); by default tr K / n (copies included),
        for which the scores sum to at most n. What is below the rounding of K, 4 eps(dtype) p max K(x, x) for p pilots,
        is raised to that.
    num_pilots : size of the pilot sample, drawn as by `uniform`, in [1, N]; by default min(N, 4 n). With N the scores
        are exact.

    Returns
    -------
    (n, d) array: different rows of X. NaN after the last row that exists, and everywhere if a score is not finite.

    Notes
    -----
    O(N p d + N p^2) time and O(N p) memory for p pilots. Source: Alaoui and Mahoney (2015), Musco and Musco (2017).
    """
    kernel = psd_kernel(kernel)
    key, X, weights, num_landmarks = _checked(key, X, weights, num_landmarks)
    num_pilots = min(X.shape[0], 4 * num_landmarks) if num_pilots is None else num_pilots
    num_pilots = checks.count("num_pilots", num_pilots, maximum=X.shape[0], limit="the number of points")
    if regularization is not None:
        regularization = checks.scalar("regularization", checks.positive("regularization", regularization), X.dtype)
    return _leverage(key, kernel, X, weights, regularization, num_landmarks=num_landmarks, num_pilots=num_pilots)


@partial(jax.jit, static_argnames=("num_landmarks", "num_pilots"))
def _leverage(
    key: jax.Array,
    kernel: Kernel,
    X: jax.Array,
    weights: jax.Array | None,
    regularization: jax.Array | None,
    *,
    num_landmarks: int,
    num_pilots: int,
) -> jax.Array:
    key_pilots, key_draws = jax.random.split(key)
    X, weights, count = _set_alone(X, weights)
    first = _uniform_indices(key_pilots, count, num_pilots, weights)
    diagonal = kernel._diagonal(X)
    if regularization is None:
        regularization = jnp.sum(diagonal if weights is None else weights * diagonal) / num_landmarks
    roots = None
    if weights is not None:
        counted = jnp.where(num_pilots < count, jnp.minimum(weights[first], 1), weights[first])
        roots = jnp.sqrt(jnp.where(lax.iota(jnp.int32, num_pilots) < count, counted, 0))
    scores = _scores(kernel, X, X[first], diagonal, regularization, roots)
    odds = scores if weights is None else weights * scores
    # Successive draws without replacement with these odds are the largest log odds with Gumbel noise.
    noise = jax.random.gumbel(key_draws, scores.shape, X.dtype)
    return _rows(X, lax.top_k((jnp.log(odds) + noise).astype(jnp.float32), num_landmarks)[1], scores, count)


def _scores(
    kernel: Kernel,
    X: jax.Array,
    pilots: jax.Array,
    diagonal: jax.Array,
    regularization: jax.Array,
    roots: jax.Array | None = None,
) -> jax.Array:
    """Return upper bounds of the ridge leverage scores, exact where every row is a pilot; roots of pilots' weights."""
    K, cross = _gram(kernel, pilots), _gram(kernel, pilots, X)
    count: Any = pilots.shape[0]
    if roots is not None:
        K, cross = roots[:, None] * K * roots[None, :], roots[:, None] * cross
        count = jnp.sum(roots > 0).astype(X.dtype)
    # A smaller ridge than the rounding of K would leave nothing to factorise where points repeat.
    least = 4 * count * jnp.finfo(X.dtype).eps * jnp.max(jnp.diagonal(K))
    least, regularization = (jnp.where(each == 0, 1, each) for each in (least, regularization))  # where K is zero
    ridge = K + jnp.maximum(regularization, least) * jnp.eye(pilots.shape[0], dtype=X.dtype)
    half = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(ridge), cross, lower=True)
    # At least what rounding leaves of K(x, x), so that every row keeps some odds.
    floor = jnp.finfo(X.dtype).eps * diagonal
    return jnp.maximum(diagonal - jnp.sum(half * half, axis=0), floor) / regularization
