"""Randomly pivoted Cholesky: landmarks each of which is drawn by what the ones before it leave."""

from __future__ import annotations

from functools import partial
from typing import Any, overload

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern.draws import _waits
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.landmarks._choices import _checked, _rows, _set_alone
from jaxkern.linalg import HIGHEST
from jaxkern.pytrees import pytree

_GROUP = 256


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
        raise ValueError(
            f"max_landmarks must be given with a tolerance, and not without, got {max_landmarks!r}"
        )
    if tolerance is None:
        key, X, weights, num_landmarks = _checked(key, X, weights, num_landmarks)
        X, weights, count = _set_alone(X, weights)
        pivots, _, residual = _pivots(
            key, kernel, X, weights, num_landmarks=num_landmarks
        )
        return _rows(X, pivots, residual, count)
    key, X, weights, max_landmarks = _checked(
        key, X, weights, max_landmarks, "max_landmarks"
    )
    tolerance = checks.scalar(
        "tolerance", checks.fraction("tolerance", tolerance), X.dtype
    )
    return _pivots_to(key, kernel, X, weights, tolerance, max_landmarks=max_landmarks)


@partial(jax.jit, static_argnames="num_landmarks")
def _pivots(
    key: jax.Array,
    kernel: Kernel,
    X: jax.Array,
    weights: jax.Array | None = None,
    *,
    num_landmarks: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the indices of the pivots, (num_landmarks,) int32, the factor of K, (N, num_landmarks), and what is left.

    What is left, (N,), is the residual diagonal, or NaN where a kernel value was not finite.
    """
    pivots, factor, residual, _ = _pivoting(
        key, *lax.stop_gradient((kernel, X, weights)), num_landmarks, None
    )
    return pivots, factor, residual


@partial(jax.jit, static_argnames="max_landmarks")
def _pivots_to(
    key: jax.Array,
    kernel: Kernel,
    X: jax.Array,
    weights: Any,
    tolerance: jax.Array,
    *,
    max_landmarks: int,
) -> Pivots:
    X, weights, _ = _set_alone(X, weights)
    shares = jnp.ones(X.shape[0], X.dtype) if weights is None else weights
    trace = jnp.sum(shares * kernel._diagonal(X))
    known = 10 * jnp.finfo(X.dtype).eps * lax.stop_gradient(trace)
    least = jnp.where(
        tolerance * trace >= known, tolerance * trace, -1
    )  # or it is never reached

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
    return Pivots(
        landmarks, used, count, left, trace, left <= least, nothing | (left <= known)
    )


def _rounding(diagonal: jax.Array) -> jax.Array:
    """Return what is nothing of a residual diagonal."""
    return 10 * jnp.finfo(diagonal.dtype).eps * jnp.max(diagonal)


def _pivoting(
    key: jax.Array,
    kernel: Kernel,
    X: jax.Array,
    weights: Any,
    num_landmarks: int,
    enough: Any,
) -> tuple[jax.Array, ...]:
    """Return pivots, the factor of K, the residual diagonal, and how many pivots there are.

    Each pivot is drawn by the residual diagonal that the ones before it leave. Columns are taken by blocks: rows are
    proposed by the diagonal before a block, and one is a pivot with the odds to which its residual has fallen since.
    `enough` tells of a diagonal that no more are needed; None where so many are asked for.
    """
    diagonal, size = kernel._diagonal(X), X.shape[0]
    nothing, block, panel = (
        _rounding(diagonal),
        min(64, max(8, num_landmarks // 8)),
        min(128, num_landmarks),
    )
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

        columns = lax.fori_loop(
            0, (count + panel - 1) // panel, less, _gram(kernel, X, X[rows])
        )
        own, drawn = columns[rows], odds[rows] > 0
        asked = jax.random.uniform(key_odds, (block,), X.dtype) * residual[rows]
        residual = residual.at[rows].set(
            jnp.where(drawn, jnp.diag(own), residual[rows])
        )

        def judge(i: jax.Array, so_far: Any) -> Any:
            own, L, taken = so_far
            pivot = own[i, i]
            room = count + jnp.sum(taken, dtype=jnp.int32) < num_landmarks
            fine = drawn[i] & (pivot > nothing) & (asked[i] < pivot) & room
            column = jnp.where(fine, own[:, i] / jnp.sqrt(jnp.where(fine, pivot, 1)), 0)
            own = own - column[:, None] * column[None, :]
            own = jnp.where(
                jnp.diag(fine & (rows == rows[i])), 0, own
            )  # a row is taken once
            return own, L.at[:, i].set(column), taken.at[i].set(fine)

        start = own, jnp.zeros((block, block), X.dtype), jnp.zeros(block, bool)
        _, L, taken = lax.fori_loop(0, block, judge, start)
        order = jnp.argsort(~taken, stable=True)
        taken = taken[order]
        L = jnp.where(
            taken[:, None] & taken[None, :],
            L[order][:, order],
            jnp.eye(block, dtype=X.dtype),
        )
        new = lax.linalg.triangular_solve(
            L, columns[:, order], left_side=False, lower=True, transpose_a=True
        )
        new = jnp.where(taken[None, :], new, 0)
        if enough is not None:
            falling = jnp.maximum(residual[:, None] - jnp.cumsum(new * new, axis=1), 0)
            taken &= lax.iota(jnp.int32, block) <= jnp.sum(
                jnp.cumprod(~enough(falling)), dtype=jnp.int32
            )
            new = jnp.where(taken[None, :], new, 0)
        found = jnp.where(taken, rows[order], size)
        residual = (
            jnp.maximum(residual - jnp.sum(new * new, axis=1), 0)
            .at[found]
            .set(0, mode="drop")
        )
        factor = lax.dynamic_update_slice_in_dim(factor, new, count, 1)
        pivots = lax.dynamic_update_slice_in_dim(pivots, found, count, 0)
        return (
            pivots,
            factor,
            residual,
            count + jnp.sum(taken, dtype=jnp.int32),
            step + 1,
        )

    width, zero = num_landmarks + max(block, panel), jnp.zeros((), jnp.int32)
    start = (
        jnp.zeros(num_landmarks + block, jnp.int32),
        jnp.zeros((size, width), X.dtype),
        diagonal,
        zero,
        zero,
    )
    pivots, factor, residual, count, _ = lax.while_loop(unfinished, take, start)
    # What is left is nothing, and the rest is drawn by weight.
    place, factor = lax.iota(jnp.int32, num_landmarks), factor[:, :num_landmarks]
    free = jnp.log(
        shares.at[jnp.where(place < count, pivots[:num_landmarks], size)].set(
            0, mode="drop"
        )
    )
    key_rest, key_digits = (jax.random.fold_in(key, 2**32 - k) for k in (1, 2))
    uniform = jax.random.uniform(key_rest, (size,), jnp.float32)
    noise = -jnp.log(_waits(uniform, key_digits))
    rest = lax.top_k(free.astype(jnp.float32) + noise, num_landmarks)[1]
    pivots = jnp.where(
        place < count, pivots[:num_landmarks], rest[jnp.maximum(place - count, 0)]
    )
    count = (
        jnp.maximum(count, 1)
        if enough is not None
        else jnp.full_like(count, num_landmarks)
    )
    return pivots, factor, residual + 0 * jnp.sum(factor, axis=1), count


def _drawn(key: jax.Array, odds: jax.Array, num_draws: int) -> jax.Array:
    """Return independent draws of indices, int32, with such odds; any where all are zero.

    By a cumulative sum over groups, and one within a group: in float32 one over millions would lose small odds.
    """
    groups = jnp.pad(odds, (0, -odds.shape[0] % _GROUP)).reshape(-1, _GROUP)
    u, sums = (
        jax.random.uniform(key, (2, num_draws), odds.dtype),
        jnp.cumsum(jnp.sum(groups, axis=1)),
    )
    group = jnp.minimum(
        jnp.searchsorted(sums, u[0] * sums[-1], side="right"), len(sums) - 1
    ).astype(jnp.int32)
    within = jnp.cumsum(groups[group], axis=1)
    place = jnp.sum(within <= (u[1] * within[:, -1])[:, None], axis=1, dtype=jnp.int32)
    return jnp.minimum(group * _GROUP + place, odds.shape[0] - 1)
