"""Ways to choose landmarks from all of the data."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._programs import inlined
from jaxkern._types import Array, ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import order, present
from jaxkern.draws import _waits
from jaxkern.gram import _gram
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.kmeans._seeding import plus_plus


def uniform(
    key: PRNGKeyArray,
    X: Float[ArrayLike, "N d"],
    *,
    num_landmarks: int,
    weights: Float[ArrayLike, " N"] | None = None,
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
    count = checks.count(
        name, num_landmarks, maximum=X.shape[0], limit="the number of points"
    )
    return key, X, checks.weights(weights, "X", X), count


@partial(jax.jit, static_argnames="num_landmarks")
def _uniform(
    key: jax.Array, X: jax.Array, weights: jax.Array | None, *, num_landmarks: int
) -> jax.Array:
    X, weights, count = _set_alone(X, weights)
    return _rows(
        X, _uniform_indices(key, count, num_landmarks, weights), jnp.zeros(()), count
    )


def _set_alone(X: jax.Array, weights: Any) -> tuple[jax.Array, jax.Array | None, Any]:
    """Return points and weights with the rows that exist first, and how many these are: draws go by the position."""
    if weights is None:
        return X, None, X.shape[0]
    at = order(weights)
    return present(X, weights)[at], weights[at], jnp.sum(weights > 0, dtype=jnp.int32)


def _uniform_indices(
    key: jax.Array, num_points: Any, num_draws: int, weights: jax.Array | None = None
) -> jax.Array:
    """Return `num_draws` different indices below `num_points`, by weight; what follows the last of them is none."""
    key_draws, key_start, key_digits = jax.random.split(key, 3)
    # float32 whatever the data: top_k is slow on other types. Its 2^23 values tie among millions of points, and ties
    # go to the smaller position; counted from a random start, no index is favoured by that.
    start = jax.random.randint(key_start, (), 0, num_points, jnp.int32)

    def turned(place: jax.Array) -> jax.Array:
        """Return place + start, modulo num_points, without an overflow."""
        return jnp.where(
            place < num_points - start, place + start, place - (num_points - start)
        )

    if weights is None:
        draws = jax.random.uniform(key_draws, (num_points,), jnp.float32)
    else:
        place = lax.iota(jnp.int32, len(weights))
        own = (weights / jnp.max(weights))[turned(place)].astype(jnp.float32)
        some = (place < num_points) & (own > 0)
        # Exponential clocks, the first to ring comes first; if the weights are equal they ring in the order that draws
        # without weights have, and which is that of ties among float32 numbers.
        uniform = jax.random.uniform(key_draws, (len(weights),), jnp.float32)
        clocks = -_waits(uniform, key_digits) / jnp.where(some, own, 1)
        equal = (~some | (own == 1)).all()
        draws = jnp.where(some, jnp.where(equal, uniform, clocks), -jnp.inf)
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
    return _kmeans_plus_plus(
        key, X, weights, num_landmarks=num_landmarks, num_candidates=num_candidates
    )


@partial(jax.jit, static_argnames=("num_landmarks", "num_candidates"))
def _kmeans_plus_plus(
    key: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    *,
    num_landmarks: int,
    num_candidates: int,
) -> jax.Array:
    X, weights, count = _set_alone(X, weights)
    return _rows(X, plus_plus(key, X, weights, num_landmarks, num_candidates), X, count)


@inlined
def _rows(X: jax.Array, chosen: jax.Array, numbers: jax.Array, count: Any) -> jax.Array:
    """Return the chosen rows; NaN where the numbers that chose them are not finite, and after the first `count`."""
    fine = jnp.isfinite(numbers).all() & (lax.iota(jnp.int32, len(chosen)) < count)
    return jnp.where(fine[:, None], X[chosen], jnp.nan)


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
    num_pilots = (
        min(X.shape[0], 4 * num_landmarks) if num_pilots is None else num_pilots
    )
    num_pilots = checks.count(
        "num_pilots", num_pilots, maximum=X.shape[0], limit="the number of points"
    )
    if regularization is not None:
        regularization = checks.scalar(
            "regularization", checks.positive("regularization", regularization), X.dtype
        )
    return _leverage(
        key,
        kernel,
        X,
        weights,
        regularization,
        num_landmarks=num_landmarks,
        num_pilots=num_pilots,
    )


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
    key_pilots, key_draws, key_digits = jax.random.split(key, 3)
    X, weights, count = _set_alone(X, weights)
    first = _uniform_indices(key_pilots, count, num_pilots, weights)
    diagonal = kernel._diagonal(X)
    if regularization is None:
        regularization = (
            jnp.sum(diagonal if weights is None else weights * diagonal) / num_landmarks
        )
    roots = None
    if weights is not None:
        counted = jnp.where(
            num_pilots < count, jnp.minimum(weights[first], 1), weights[first]
        )
        roots = jnp.sqrt(jnp.where(lax.iota(jnp.int32, num_pilots) < count, counted, 0))
    scores = _scores(kernel, X, X[first], diagonal, regularization, roots)
    odds = scores if weights is None else weights * scores
    # Successive draws without replacement with these odds are the largest log odds with Gumbel noise.
    uniform = jax.random.uniform(key_draws, scores.shape, jnp.float32)
    noise = -jnp.log(_waits(uniform, key_digits))
    return _rows(
        X,
        lax.top_k(jnp.log(odds).astype(jnp.float32) + noise, num_landmarks)[1],
        scores,
        count,
    )


def _scores(
    kernel: Kernel,
    X: jax.Array,
    pilots: jax.Array,
    diagonal: jax.Array,
    regularization: jax.Array,
    roots: jax.Array | None = None,
) -> jax.Array:
    """Return upper bounds of the ridge leverage scores, exact where every row is a pilot; roots of pilots' weights."""
    root = _ridge_root(_gram(kernel, pilots), regularization, roots)
    # At least what rounding leaves of K(x, x), so that every row keeps some odds.
    floor = jnp.finfo(X.dtype).eps * diagonal
    return (
        jnp.maximum(_left_over(kernel, X, pilots, root, roots), floor) / regularization
    )


@inlined
def _ridge_root(
    K: jax.Array, regularization: jax.Array, roots: jax.Array | None
) -> jax.Array:
    """Return the Cholesky factor of a Gram matrix with a ridge, (p, p); roots of the weights of its points."""
    count: Any = len(K)
    if roots is not None:
        K, count = (
            roots[:, None] * K * roots[None, :],
            jnp.sum(roots > 0).astype(K.dtype),
        )
    # A smaller ridge than the rounding of K would leave nothing to factorise where points repeat.
    least = 4 * count * jnp.finfo(K.dtype).eps * jnp.max(jnp.diagonal(K))
    least, regularization = (
        jnp.where(each == 0, 1, each) for each in (least, regularization)
    )  # where K is zero
    return jnp.linalg.cholesky(
        K + jnp.maximum(regularization, least) * jnp.eye(len(K), dtype=K.dtype)
    )


def _left_over(
    kernel: Kernel,
    X: jax.Array,
    chosen: jax.Array,
    root: jax.Array,
    roots: jax.Array | None,
) -> jax.Array:
    """Return what chosen points leave of K(x, x), by the Cholesky factor of their Gram matrix, perhaps with a ridge."""
    cross = _gram(kernel, chosen, X)
    half = jax.scipy.linalg.solve_triangular(
        root, cross if roots is None else roots[:, None] * cross, lower=True
    )
    return kernel._diagonal(X) - jnp.sum(half * half, axis=0)
