"""The error of a fitted map on given points, measured without an n x n matrix and with its confidence stated."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import scipy  # its parts load when they are used first
from jax import lax

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import ArrayLike, FeatureMap, Float, PRNGKeyArray
from jaxkern._weights import mass, number, positions, present
from jaxkern.draws import normal_rows, pairs, weighted_pairs
from jaxkern.gram import _product, kernel_distance
from jaxkern.kernels import Kernel, KernelLike, as_kernel
from jaxkern.linalg import eigvalsh, matmul
from jaxkern.linalg._dense import norm
from jaxkern.pytrees import pytree, static

__all__ = [
    "DistanceError",
    "SpectralError",
    "distance_error",
    "sampled_distance_error",
    "spectral_error",
]

_pairs = jax.jit(pairs, static_argnums=(1, 2))
_weighted_pairs = jax.jit(weighted_pairs, static_argnums=2)


@pytree
class DistanceError:
    """Relative errors | |phi(x) - phi(y)| / |K_x - K_y| - 1 | over pairs of points.

    Attributes
    ----------
    largest, mean : scalars, over the pairs whose kernel distance is not zero; zero where there is none. The mean is
        weighted if the pairs are.
    counted : scalar int32, the number of these pairs, or the sum of their weights rounded down.
    finite : scalar bool, whether every error is a finite number.
    """

    largest: jax.Array
    mean: jax.Array
    counted: jax.Array
    finite: jax.Array

    def exceeding(self, delta: float) -> jax.Array:
        """Return a bound on the fraction of all pairs whose error exceeds `largest`, with confidence 1 - delta.

        It holds for pairs that were sampled independently: were the fraction p larger than 1 - delta^(1/m), all of m
        pairs would miss it with probability (1 - p)^m < delta.
        """
        checks.open_unit("delta", delta)
        return -jnp.expm1(
            jnp.log(delta) / jnp.maximum(self.counted, 1).astype(self.largest.dtype)
        )


def distance_error(
    phi: FeatureMap,
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    Y: Float[ArrayLike, "n dim"],
    *,
    weights: Float[ArrayLike, " n"] | None = None,
) -> DistanceError:
    """Return the relative errors of the distances |phi(x_i) - phi(y_i)| of a map, pair by pair.

    Parameters
    ----------
    phi : a fitted feature map, (n, dim) -> (n, num_features).
    kernel : the kernel that it approximates, positive semidefinite.
    X, Y : (n, dim) points of one dtype; row i of X is paired with row i of Y.
    weights : (n,) non-negative weights of the pairs in the dtype of X, of any positive sum; a pair of weight 0 does not
        exist, whatever it holds. By default all are 1. NumPy weights that are negative, not finite or all zero raise
        ValueError; with others that are, the result is NaN and `finite` False.

    Notes
    -----
    Time and memory those of phi on 2 n points. In the sense of chen2016, whose relative errors these are.
    """
    if weights is not None:
        X, Y = checks.matrix("X", X), checks.matrix("Y", Y)
        own: Any = checks.weights(checks.weights(weights, "X", X), "Y", Y)
        X, Y, weights = present(X, own), present(Y, own), own
    distances = kernel_distance(kernel, X, Y)
    return _distance_error(phi, distances, jnp.asarray(X), jnp.asarray(Y), weights)


def sampled_distance_error(
    key: PRNGKeyArray,
    phi: FeatureMap,
    kernel: KernelLike,
    X: Float[ArrayLike, "N dim"],
    *,
    num_pairs: int = 10_000,
    weights: Float[ArrayLike, " N"] | None = None,
) -> DistanceError:
    """Return the relative errors of the distances of a map over random pairs of different rows of X.

    Pairs are independent, so `exceeding(delta)` bounds the fraction of all pairs that are worse than the worst one
    seen.

    Parameters
    ----------
    key : typed random key.
    phi, kernel : as in `distance_error`.
    X : (N, dim) points, N >= 2.
    num_pairs : at least 1.
    weights : (N,) weights of the rows, as in `distance_error`. The odds of a pair are the product of its weights; where
        all are whole, pairs are drawn as from the set in which rows are repeated.

    Notes
    -----
    O(num_pairs (dim + num_features)) memory.
    """
    key = checks.key(key)
    X = checks.matrix("X", X, min_rows=2)
    weights = checks.weights(weights, "X", X)
    num_pairs = checks.count("num_pairs", num_pairs)
    if weights is None:
        i, j = _pairs(key, X.shape[0], num_pairs)
    else:
        X, (i, j, _) = present(X, weights), _weighted_pairs(key, weights, num_pairs)
    return distance_error(
        phi, kernel, *(jnp.take(X, index, axis=0, mode="clip") for index in (i, j))
    )


@jax.jit
def _distance_error(
    phi: Any,
    distances: jax.Array,
    X: jax.Array,
    Y: jax.Array,
    weights: jax.Array | None,
) -> DistanceError:
    difference = phi(X) - phi(Y)
    mapped = safe_sqrt(jnp.sum(difference * difference, axis=1))
    apart = distances != 0  # also where it is not a number
    errors = jnp.where(apart, jnp.abs(mapped / jnp.where(apart, distances, 1) - 1), 0)
    if weights is None:
        counted = jnp.sum(apart, dtype=jnp.int32)
        mean = jnp.sum(errors) / jnp.maximum(counted, 1).astype(errors.dtype)
    else:
        errors = jnp.where(weights > 0, errors, 0) + 0 * mass(weights)
        counted = jnp.sum(jnp.where(apart, weights, 0))
        mean = jnp.sum(weights * errors) / jnp.where(counted == 0, 1, counted)
    return DistanceError(
        jnp.max(errors), mean, counted.astype(jnp.int32), jnp.isfinite(errors).all()
    )


@pytree
class SpectralError:
    """An interval for |K - Khat|_2 / n, K the Gram matrix of n points and Khat that of their features.

    Attributes
    ----------
    lower : scalar; the error is at least this, always.
    upper : scalar; the error is at most this, with the stated probability over the random probes.
        Both allow for rounding, of K by `gram.rounding` and of products by six times what is typical of their sums.
        Features are taken as the map computes them, and so is K where it is a user's function.
    probability : static.
    """

    lower: jax.Array
    upper: jax.Array
    probability: float = static(default=0.99)


def spectral_error(
    key: PRNGKeyArray,
    phi: FeatureMap,
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    *,
    num_steps: int = 8,
    num_probes: int = 8,
    probability: float = 0.99,
    block_size: int | None = None,
    weights: Float[ArrayLike, " n"] | None = None,
) -> SpectralError:
    """Bound |K - phi(X) phi(X)^T|_2 / n from both sides, by block power steps on Gaussian probes.

    For A = K - Khat, probes G (n, r) and k steps: |A^k G|_F^2 >= |A|^(2k) |v^T G|^2, v the leading eigenvector, and
    |v^T G|^2 is chi-square with r degrees of freedom exactly. So |A| <= (|A^k G|_F^2 / q)^(1 / (2k)) with probability
    1 - delta, q the delta-quantile of chi-square. The lower bound is the largest Ritz value over the span of A^k G.

    Parameters
    ----------
    key : typed random key.
    phi : a fitted feature map.
    kernel : the kernel that it approximates.
    X : (n, dim) points.
    num_steps : k, at least 1; the ratio of the two bounds falls like (n r)^(1 / (2k)) at worst.
    num_probes : r, at least 1, at most n.
    probability : 1 - delta, in (0, 1).
    block_size : as in `gram_matmul`.
    weights : (n,) weights of the rows, as in `distance_error`; of what are no weights both bounds are NaN.

    Returns
    -------
    SpectralError, an interval for what `metrics.spectral_error` computes of two matrices, with the same weights.

    Notes
    -----
    O(k n^2 (dim + r)) time; memory O(n (num_features + r)): no n x n matrix is held.

    Examples
    --------
    >>> import jax
    >>> from jaxkern import features
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> phi = features.nystrom(Gaussian(1.0), X[:20])
    >>> error = spectral_error(jax.random.key(1), phi, Gaussian(1.0), X)
    >>> bool(0 < error.lower < error.upper)
    True
    """
    key = checks.key(key)
    X = checks.matrix("X", X)
    weights = checks.weights(weights, "X", X)
    num_steps = checks.count("num_steps", num_steps)
    num_probes = checks.count(
        "num_probes", num_probes, maximum=X.shape[0], limit="the number of points"
    )
    checks.open_unit("probability", probability)
    block_size = None if block_size is None else checks.count("block_size", block_size)
    quantile = 2 * float(scipy.special.gammaincinv(num_probes / 2, 1 - probability))
    sizes = num_steps, num_probes, block_size
    lower, upper = _spectral_error(
        key, phi, as_kernel(kernel), X, weights, quantile, *sizes
    )
    return SpectralError(lower, upper, float(probability))


@partial(jax.jit, static_argnames=("num_steps", "num_probes", "block_size"))
def _spectral_error(
    key: jax.Array,
    phi: Any,
    kernel: Any,
    X: jax.Array,
    weights: jax.Array | None,
    quantile: Any,
    num_steps: int,
    num_probes: int,
    block_size: int | None,
) -> tuple[jax.Array, jax.Array]:
    size: Any = X.shape[0]
    roots = None
    if weights is not None:
        size, X, roots = mass(weights), present(X, weights), jnp.sqrt(weights)[:, None]
    Z = phi(X)

    def product(V: jax.Array) -> jax.Array:
        return _product(kernel, X, X, V, block_size) - matmul(Z, matmul(Z.T, V))

    def apply(V: jax.Array) -> jax.Array:
        return product(V) if roots is None else roots * product(roots * V)

    def step(
        state: tuple[jax.Array, jax.Array], _: Any
    ) -> tuple[tuple[jax.Array, jax.Array], None]:
        V, log_size = state
        image = apply(V)
        size = norm(image)
        scaled = image / jnp.where(size > 0, size, 1)
        return (
            scaled,
            log_size + jnp.log(jnp.where(size > 0, size, jnp.finfo(size.dtype).tiny)),
        ), None

    probes = normal_rows(key, num_probes, X.shape[0], X.dtype).T
    if weights is not None:
        probes = jnp.where((weights > 0)[:, None], probes[positions(weights)], 0)
    start = jnp.linalg.norm(probes)
    (V, log_size), _ = lax.scan(
        step, (probes / start, jnp.log(start)), None, length=num_steps
    )
    upper = jnp.exp(
        (log_size - jnp.log(jnp.asarray(quantile, X.dtype)) / 2) / num_steps
    )
    basis = jnp.linalg.qr(V)[0]
    ritz = matmul(basis.T, apply(basis))
    lower = jnp.max(jnp.abs(eigvalsh((ritz + ritz.T) / 2)))
    # Rounding may push the lower bound above the upper one when both are tight.
    lower, upper = lower / size, jnp.maximum(upper, lower) / size
    allowed = _rounding(kernel, X, Z, weights)
    return jnp.maximum(lower - allowed, 0), upper + allowed


def _rounding(
    kernel: Kernel, X: jax.Array, Z: jax.Array, weights: jax.Array | None
) -> jax.Array:
    """Return a bound of |A - A'| / n for the matrix A of products and what rounding makes of it."""
    count: Any = X.shape[0]
    if weights is None:
        size, squares = jnp.mean(jnp.abs(kernel._diagonal(X))), jnp.sum(Z * Z) / count
    else:
        share, count = weights / mass(weights), number(weights)
        size, squares = (
            jnp.sum(share * jnp.abs(kernel._diagonal(X))),
            jnp.sum(share[:, None] * Z * Z),
        )
    try:
        values = kernel._rounding(X, X)
    except ValueError:  # not known
        values = jnp.zeros((), X.dtype)
    return values * size + 3 * jnp.finfo(X.dtype).eps * count**0.5 * (size + squares)
