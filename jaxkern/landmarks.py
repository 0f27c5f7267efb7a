"""Ways to choose landmarks: the few points of a data set that stand for all of it.

`uniform`, `kmeans_plus_plus`, `pivoted_cholesky` and `leverage` take all of the data and return rows of it;
`reservoir` sees the data once, in batches.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.kmeans._seeding import plus_plus
from jaxkern.linalg import HIGHEST
from jaxkern.pytrees import pytree

__all__ = ["Reservoir", "kmeans_plus_plus", "leverage", "pivoted_cholesky", "reservoir", "uniform"]


def uniform(key: PRNGKeyArray, X: Float[ArrayLike, "N d"], *, num_landmarks: int) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X, drawn uniformly without replacement and in random order.

    Parameters
    ----------
    key : typed random key.
    X : (N, d) points.
    num_landmarks : n, in [1, N].

    Returns
    -------
    (n, d) array of the dtype of X. Rows are different rows of X; they are equal where X repeats a point.

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
    key = checks.key(key)
    X = checks.matrix("X", X)
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
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


def kmeans_plus_plus(
    key: PRNGKeyArray, X: Float[ArrayLike, "N d"], *, num_landmarks: int, num_candidates: int | None = 1
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X that k-means++ seeding chooses: spread out, and close to the data.

    The first row is uniform, each further one is drawn with probability proportional to the squared distance to the
    nearest row chosen so far.

    Parameters
    ----------
    key, X, num_landmarks : as in `uniform`.
    num_candidates : candidates of which the best is taken in every step; 1 is the plain method, None 2 + log n.

    Returns
    -------
    (n, d) array: different rows of X, equal ones only when no others are left. NaN if X is not finite.

    Notes
    -----
    Time O(N d n num_candidates), memory O(N d). Source: Arthur and Vassilvitskii (2007).
    """
    key = checks.key(key)
    X = checks.matrix("X", X)
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
    if num_candidates is None:
        num_candidates = 2 + int(math.log(num_landmarks))
    num_candidates = checks.count("num_candidates", num_candidates)
    return _kmeans_plus_plus(key, X, num_landmarks=num_landmarks, num_candidates=num_candidates)


@partial(jax.jit, static_argnames=("num_landmarks", "num_candidates"))
def _kmeans_plus_plus(key: jax.Array, X: jax.Array, *, num_landmarks: int, num_candidates: int) -> jax.Array:
    return _rows(X, plus_plus(key, X, None, num_landmarks, num_candidates), X)


def _rows(X: jax.Array, chosen: jax.Array, numbers: jax.Array) -> jax.Array:
    """Return the chosen rows; NaN where the numbers that chose them are not finite: any rows look like a choice."""
    return jnp.where(jnp.isfinite(numbers).all(), X[chosen], jnp.nan)


def pivoted_cholesky(
    key: PRNGKeyArray, kernel: KernelLike, X: Float[ArrayLike, "N d"], *, num_landmarks: int
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X chosen by randomly pivoted Cholesky: what the others explain is not taken again.

    Each row is drawn with probability proportional to its residual K(x, x) - |P K_x|^2, P the projection onto the
    sections of the rows chosen so far; the expected trace of the residual is within a factor 1 + eps of the best of
    rank r once n is of the order r / eps + r log(1 / (eps eta)), eta the relative residual of rank r.

    Parameters
    ----------
    key, X, num_landmarks : as in `uniform`.
    kernel : a positive semidefinite kernel, or a function of two points.

    Returns
    -------
    (n, d) array: different rows of X, in the order chosen. Once nothing is left to explain (residuals of at most
    10 eps max K(x, x)), further rows are uniform over the rest. NaN if a kernel value is not finite.

    Notes
    -----
    N n kernel evaluations, O(N n^2) time and O(N n) memory. Source: Chen, Epperly, Tropp and Webber (2025).
    """
    key = checks.key(key)
    kernel = psd_kernel(kernel)
    X = checks.matrix("X", X)
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
    return _rows(X, *_pivots(key, kernel, X, num_landmarks=num_landmarks))


@partial(jax.jit, static_argnames="num_landmarks")
def _pivots(key: jax.Array, kernel: Kernel, X: jax.Array, *, num_landmarks: int) -> tuple[jax.Array, jax.Array]:
    """Return the indices of the pivots, (num_landmarks,) int32, and the factor of K, (N, num_landmarks)."""
    diagonal = kernel._diagonal(X)
    nothing = 10 * jnp.finfo(X.dtype).eps * jnp.max(diagonal)

    def choose(
        state: tuple[jax.Array, jax.Array, jax.Array], step: jax.Array
    ) -> tuple[tuple[jax.Array, jax.Array, jax.Array], jax.Array]:
        factor, residual, free = state
        weights = jnp.where(free & (residual > nothing), residual, 0)
        exhausted = ~(weights > 0).any()
        scores = jnp.log(jnp.where(exhausted, free.astype(X.dtype), weights))
        # The largest of independent Gumbel variables shifted by log weights is an exact draw, without a cumulative sum.
        pivot = lax.argmax(
            scores + jax.random.gumbel(jax.random.fold_in(key, step), scores.shape, X.dtype), 0, jnp.int32
        )
        column = _gram(kernel, X, X[pivot][None, :])[:, 0]
        column = column - jnp.matmul(factor, factor[pivot], precision=HIGHEST)
        # 0, or NaN where a value on the diagonal is: then nothing seems to be left, at any pivot.
        scale = jnp.where(exhausted, 0 * nothing, 1 / jnp.sqrt(jnp.where(exhausted, 1, residual[pivot])))
        column = column * scale
        factor = factor.at[:, step].set(column)
        residual = jnp.maximum(residual - column * column, 0).at[pivot].set(0)
        return (factor, residual, free.at[pivot].set(False)), pivot

    init = jnp.zeros((X.shape[0], num_landmarks), X.dtype), diagonal, jnp.ones(X.shape[0], bool)
    (factor, _, _), pivots = lax.scan(choose, init, lax.iota(jnp.uint32, num_landmarks))
    return pivots, factor


def leverage(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int,
    regularization: Float[ArrayLike, ""] | None = None,
    num_pilots: int | None = None,
) -> Float[Array, "n d"]:
    """Return `num_landmarks` rows of X drawn without replacement by ridge leverage scores.

    The score of x_i is (K (K + lambda I)^{-1})_ii = min over w of |K_{x_i} - sum_j w_j K_{x_j}|^2 / lambda + |w|^2: how
    badly the other points explain it. With a pilot sample of rows, w is confined to them, which gives upper bounds of
    the scores at a fraction of the cost: (K(x, x) - k(x)^T (K_pp + lambda I)^{-1} k(x)) / lambda.

    Parameters
    ----------
    key, X, num_landmarks : as in `uniform`.
    kernel : a positive semidefinite kernel, or a function of two points.
    regularization : lambda > 0, in the units of the kernel (of K, not of K / N); by default tr K / n, for which the
        scores sum to at most n. What is below the rounding of K, 4 eps(dtype) p max K(x, x) for p pilots, is raised to
        that.
    num_pilots : size of the uniform pilot sample, in [1, N]; by default min(N, 4 n). With N the scores are exact.

    Returns
    -------
    (n, d) array: different rows of X. NaN if a score is not finite.

    Notes
    -----
    O(N p d + N p^2) time and O(N p) memory for p pilots. Source: Alaoui and Mahoney (2015), Musco and Musco (2017).
    """
    key = checks.key(key)
    kernel = psd_kernel(kernel)
    X = checks.matrix("X", X)
    size = X.shape[0]
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=size, limit="the number of points")
    if num_pilots is None:
        num_pilots = min(size, 4 * num_landmarks)
    num_pilots = checks.count("num_pilots", num_pilots, maximum=size, limit="the number of points")
    if regularization is not None:
        regularization = checks.scalar("regularization", checks.positive("regularization", regularization), X.dtype)
    return _leverage(key, kernel, X, regularization, num_landmarks=num_landmarks, num_pilots=num_pilots)


@partial(jax.jit, static_argnames=("num_landmarks", "num_pilots"))
def _leverage(
    key: jax.Array,
    kernel: Kernel,
    X: jax.Array,
    regularization: jax.Array | None,
    *,
    num_landmarks: int,
    num_pilots: int,
) -> jax.Array:
    key_pilots, key_draws = jax.random.split(key)
    pilots = X[_uniform_indices(key_pilots, X.shape[0], num_pilots)]
    diagonal = kernel._diagonal(X)
    if regularization is None:
        regularization = jnp.sum(diagonal) / num_landmarks
    scores = _scores(kernel, X, pilots, diagonal, regularization)
    # Successive draws without replacement with these odds are the largest log scores with Gumbel noise.
    noise = jax.random.gumbel(key_draws, scores.shape, X.dtype)
    return _rows(X, lax.top_k((jnp.log(scores) + noise).astype(jnp.float32), num_landmarks)[1], scores)


def _scores(
    kernel: Kernel, X: jax.Array, pilots: jax.Array, diagonal: jax.Array, regularization: jax.Array
) -> jax.Array:
    """Return upper bounds of the ridge leverage scores, (N,), which are exact where every row is a pilot."""
    K = _gram(kernel, pilots)
    # A smaller ridge than the rounding of K would leave nothing to factorise where points repeat.
    least = 4 * pilots.shape[0] * jnp.finfo(X.dtype).eps * jnp.max(jnp.diagonal(K))
    least, regularization = (jnp.where(each == 0, 1, each) for each in (least, regularization))  # where K is zero
    ridge = K + jnp.maximum(regularization, least) * jnp.eye(pilots.shape[0], dtype=X.dtype)
    half = jax.scipy.linalg.solve_triangular(jnp.linalg.cholesky(ridge), _gram(kernel, pilots, X), lower=True)
    # At least what rounding leaves of K(x, x), so that every row keeps some odds.
    floor = jnp.finfo(X.dtype).eps * diagonal
    return jnp.maximum(diagonal - jnp.sum(half * half, axis=0), floor) / regularization


@pytree
class Reservoir:
    """A uniform sample without replacement of the rows of a stream.

    Attributes
    ----------
    points : (num_landmarks, dim), the sample; rows from `seen` on are zero where the stream was shorter.
    priorities : (num_landmarks,) int32, ascending: every row of the stream has a random one, and the lowest stay.
    seen : scalar int32, the number of rows so far.
    key : the key of the stream; row t takes its priority from fold_in(key, t).
    """

    points: jax.Array
    priorities: jax.Array
    seen: jax.Array
    key: jax.Array


class _Init(Protocol):
    def __call__(self, key: Any, dim: int, dtype: Any = ...) -> Reservoir: ...


class ReservoirFunctions(NamedTuple):
    """The pure functions that `reservoir` returns."""

    init: _Init
    update: Callable[[Reservoir, Any], Reservoir]
    merge: Callable[[Reservoir, Reservoir], Reservoir]


def reservoir(*, num_landmarks: int) -> ReservoirFunctions:
    """Return the functions `(init, update, merge)` that keep a uniform sample of a stream, in one pass.

    `init(key, dim, dtype=float32)` returns an empty `Reservoir`; `update(state, rows)` takes rows (b, dim), any b;
    `merge(a, b)` joins the samples of two streams that were started with different keys. However the stream is cut into
    batches, the sample is the same; every subset of num_landmarks rows is equally likely.

    Parameters
    ----------
    num_landmarks : n, at least 1.

    Notes
    -----
    O(b + n) time and memory for a batch, O(n) for the state. A stream has at most 2^31 - 1 rows. It is the sample
    behind the Nystrom baseline of ghashami2016, Section 4.

    Examples
    --------
    >>> import jax
    >>> init, update, _ = reservoir(num_landmarks=5)
    >>> state = update(init(jax.random.key(0), 3), jax.random.normal(jax.random.key(1), (20, 3)))
    >>> state.points.shape
    (5, 3)
    """
    size = checks.count("num_landmarks", num_landmarks)

    def init(key: Any, dim: int, dtype: Any = jnp.float32) -> Reservoir:
        """Return a sample without rows, of points of dimension dim."""
        dim = checks.count("dim", dim)
        last = jnp.iinfo(jnp.int32).max
        zero = jnp.zeros((size, dim), jax.dtypes.canonicalize_dtype(dtype))
        return Reservoir(
            checks.floating("dtype", zero), jnp.full((size,), last, jnp.int32), jnp.int32(0), checks.key(key)
        )

    def update(state: Reservoir, rows: Any) -> Reservoir:
        """Return the sample after rows (b, dim), any b."""
        rows = checks.matrix("rows", rows, dim=state.points.shape[1], min_rows=0)
        return _reservoir_update(state, checks.same_dtype("rows", rows, "the reservoir", state.points))

    def merge(a: Reservoir, b: Reservoir) -> Reservoir:
        """Return the sample of two streams together, which were started with different keys."""
        if a.points.shape != b.points.shape:
            raise ValueError(f"b must have the shape of a, {a.points.shape}, got {b.points.shape}")
        checks.same_dtype("b", b.points, "a", a.points)
        return _reservoir_merge(a, b)

    return ReservoirFunctions(init, update, merge)


@jax.jit
def _reservoir_update(state: Reservoir, rows: jax.Array) -> Reservoir:
    index = state.seen + lax.iota(jnp.int32, rows.shape[0])
    keys = jax.vmap(jax.random.fold_in, (None, 0))(state.key, index.astype(jnp.uint32))
    priorities = jax.vmap(lambda key: jax.random.randint(key, (), 0, jnp.iinfo(jnp.int32).max, jnp.int32))(keys)
    points, lowest = _lowest(state, rows, priorities)
    return Reservoir(points, lowest, state.seen + rows.shape[0], state.key)


@jax.jit
def _reservoir_merge(a: Reservoir, b: Reservoir) -> Reservoir:
    points, lowest = _lowest(a, b.points, b.priorities)
    return Reservoir(points, lowest, a.seen + b.seen, a.key)


def _lowest(state: Reservoir, rows: jax.Array, priorities: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the points with the lowest priorities, the earlier one first where two are equal."""
    every = jnp.concatenate([state.priorities, priorities])
    kept = jnp.argsort(every, stable=True)[: state.points.shape[0]]
    return jnp.concatenate([state.points, rows])[kept], every[kept]
