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
    N n kernel evaluations, O(N n^2) time and O(N n) memory; with a tolerance O(N n max_landmarks) time for the n
    landmarks that are taken, O(N max_landmarks) memory, and one program for all tolerances. Source: Chen, Epperly,
    Tropp and Webber (2025); claim jaxkern:pivoted-cholesky.
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
        pivots, factor = _pivots(key, kernel, X, weights, num_landmarks=num_landmarks)
        return _rows(X, pivots, factor, count)
    key, X, weights, max_landmarks = _checked(key, X, weights, max_landmarks, "max_landmarks")
    tolerance = checks.scalar("tolerance", checks.fraction("tolerance", tolerance), X.dtype)
    return _pivots_to(key, kernel, X, weights, tolerance, max_landmarks=max_landmarks)


@partial(jax.jit, static_argnames="num_landmarks")
def _pivots(
    key: jax.Array, kernel: Kernel, X: jax.Array, weights: jax.Array | None = None, *, num_landmarks: int
) -> tuple[jax.Array, jax.Array]:
    """Return the indices of the pivots, (num_landmarks,) int32, and the factor of K, (N, num_landmarks)."""
    init, _, choose = _pivoting(key, kernel, X, weights, num_landmarks)
    (factor, _, _), pivots = lax.scan(choose, init, lax.iota(jnp.uint32, num_landmarks))
    return pivots, factor


@partial(jax.jit, static_argnames="max_landmarks")
def _pivots_to(
    key: jax.Array, kernel: Kernel, X: jax.Array, weights: Any, tolerance: jax.Array, *, max_landmarks: int
) -> Pivots:
    X, weights, _ = _set_alone(X, weights)
    shares = jnp.ones(X.shape[0], X.dtype) if weights is None else weights
    trace = jnp.sum(shares * kernel._diagonal(X))
    init, odds_of, choose = _pivoting(key, *lax.stop_gradient((kernel, X, weights)), max_landmarks)
    shares, whole = lax.stop_gradient((shares, trace))
    known = 10 * jnp.finfo(X.dtype).eps * whole

    def left(state: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
        """Return the trace of the residual, whether it is small enough, and whether it is rounding alone."""
        residual = jnp.sum(shares * state[1])
        exhausted = ~(odds_of(state) > 0).any() | (residual <= known)
        return residual, jnp.maximum(residual, known) <= tolerance * whole, exhausted

    def unfinished(loop: Any) -> jax.Array:
        state, _, step = loop
        _, reached, exhausted = left(state)
        return (step == 0) | ((step < max_landmarks) & ~reached & ~exhausted)

    def take(loop: Any) -> Any:
        state, pivots, step = loop
        state, pivot = choose(state, step.astype(jnp.uint32))
        return state, pivots.at[step].set(pivot), step + 1

    start = init, jnp.zeros(max_landmarks, jnp.int32), jnp.zeros((), jnp.int32)
    state, pivots, count = lax.while_loop(unfinished, take, start)
    residual, reached, exhausted = left(state)
    landmarks = _rows(X, pivots, state[0], count)
    used = (lax.iota(jnp.int32, max_landmarks) < count).astype(X.dtype)
    return Pivots(landmarks, used, count, residual, trace, reached, exhausted)


def _pivoting(key: jax.Array, kernel: Kernel, X: jax.Array, weights: jax.Array | None, num_landmarks: int) -> Any:
    """Return the state before any pivot, the odds of the next one, and the step that draws it.

    A state is the factor of K, (N, num_landmarks), the residual diagonal and which rows are free.
    """
    diagonal = kernel._diagonal(X)
    nothing = 10 * jnp.finfo(X.dtype).eps * jnp.max(diagonal)

    def weighed(odds: jax.Array) -> jax.Array:
        return odds if weights is None else odds * weights

    def odds_of(state: Any) -> jax.Array:
        _, residual, free = state
        return weighed(jnp.where(free & (residual > nothing), residual, 0))

    def choose(state: Any, step: jax.Array) -> tuple[Any, jax.Array]:
        factor, residual, free = state
        odds = odds_of(state)
        exhausted = ~(odds > 0).any()
        scores = jnp.log(jnp.where(exhausted, weighed(free.astype(X.dtype)), odds))
        # The largest of independent Gumbel variables shifted by log weights is an exact draw, without a cumulative sum.
        noise = jax.random.gumbel(jax.random.fold_in(key, step), scores.shape, X.dtype)
        pivot = lax.argmax(scores + noise, 0, jnp.int32)
        column = _gram(kernel, X, X[pivot][None, :])[:, 0]
        column = column - jnp.matmul(factor, factor[pivot], precision=HIGHEST)
        # 0, or NaN where a value on the diagonal is: then nothing seems to be left, at any pivot.
        scale = jnp.where(exhausted, 0 * nothing, 1 / jnp.sqrt(jnp.where(exhausted, 1, residual[pivot])))
        column = column * scale
        factor = factor.at[:, step].set(column)
        residual = jnp.maximum(residual - column * column, 0).at[pivot].set(0)
        return (factor, residual, free.at[pivot].set(False)), pivot

    return (jnp.zeros((X.shape[0], num_landmarks), X.dtype), diagonal, jnp.ones(X.shape[0], bool)), odds_of, choose


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
