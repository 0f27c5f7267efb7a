"""The Nystrom map: coordinates of the projection onto the span of landmarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._blocks import sum_by_blocks
from jaxkern._distances import safe_sqrt
from jaxkern._types import ArrayLike, Float
from jaxkern._weights import number, present
from jaxkern.features._projection import Projection
from jaxkern.gram import _gram, _product
from jaxkern.kernels import Kernel, KernelLike, psd_kernel
from jaxkern.linalg import eigen_rows
from jaxkern.pytrees import pytree

_BLOCK = 1024


@pytree
class Nystrom(Projection):
    """The map of `nystrom`: `phi(X)` for points, `phi.embed(f)` for functions of the RKHS.

    `embed(f)` holds the coordinates of f in an orthonormal system e_1, e_2, ... of the span of the landmarks'
    sections, so phi(x) = embed(K_x) and |f|^2 - |embed(f)|^2 is the squared distance of f from that span.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : (n, dim) points X_1, ..., X_n.
    projection : (num_features, n), the matrix Lambda^{-1/2} V^T; rows of dropped directions are zero.
    eigenvalues : (num_features,), the largest ones of the Gram matrix of the landmarks, descending; zero if dropped.
    rank : scalar int32 in [0, num_features], the number of directions kept. The features after these are zero.
    trace_residual : scalar, the sum over points x of K(x, x) - |phi(x)|^2, which is tr(K - Khat) for their Gram matrix
        and its approximation: over the points that were passed to `nystrom`, or over the landmarks.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    eigenvalues: jax.Array
    rank: jax.Array
    trace_residual: jax.Array


def nystrom(
    kernel: KernelLike,
    landmarks: Float[ArrayLike, "n dim"],
    *,
    rank: int | None = None,
    X: Float[ArrayLike, "N dim"] | None = None,
    weights: Float[ArrayLike, " n"] | None = None,
    X_weights: Float[ArrayLike, " N"] | None = None,
) -> Nystrom:
    """Fit the Nystrom map phi(x) = Lambda^{-1/2} V^T k(x), k(x) = (K(x, X_1), ..., K(x, X_n)).

    K = V Lambda V^T is the Gram matrix of the landmarks X_1, ..., X_n, or its `rank` largest eigenpairs. Inner products
    <phi(x), phi(y)> = k(x)^T K^+ k(y) are those of the projections of K_x and K_y onto the span of the landmarks'
    sections, or onto its leading directions: |phi(x)|^2 <= K(x, x) always, and with all directions
    <phi(x), phi(y)> = K(x, y) where x or y is a landmark. With weights w, W = diag(w), it is W^{1/2} K W^{1/2} that is
    decomposed: the span is that of the landmarks that exist, and which directions lead depends on the weights.

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    landmarks : (n, dim) points, usually a uniform subsample of the data; they may repeat.
    rank : number of features, in [1, n]; by default n.
    X : (N, dim) points over which the trace residual is taken, in one pass; by default the landmarks.
    weights : (n,) non-negative weights in the dtype of the landmarks, of any positive sum; a row of weight 0 does not
        exist, whatever it holds. By default all are 1.
    X_weights : (N,) the same for the rows of X, each of which counts so many times in the trace residual.

    Returns
    -------
    Nystrom, a callable PyTree. Directions with eigenvalue at most eps(dtype) * sqrt(n) * the largest are rounding:
    their features are zero, and its field `rank` counts the others.

    Notes
    -----
    O(n^3) time and O(n^2) memory to fit, beyond the n^2 kernel evaluations; mapping N points takes N n num_features
    multiply-adds and N n kernel evaluations. A single feature is an eigenvector's, so its sign is arbitrary; inner
    products of features are not. Source: williams2001; kpotufe2020, Section 5.2, where k-means of these features stands
    for kernel k-means.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> nystrom(Gaussian(1.0), X[:20], rank=8)(X).shape
    (100, 8)
    """
    kernel = psd_kernel(kernel)
    landmarks = checks.matrix("landmarks", landmarks)
    num_landmarks = landmarks.shape[0]
    if rank is None:
        rank = num_landmarks
    rank = checks.count(
        "rank", rank, maximum=num_landmarks, limit="the number of landmarks"
    )
    if X is not None:
        X = checks.matrix("X", X, dim=landmarks.shape[1])
        checks.same_dtype("X", X, "landmarks", landmarks)
    if X is None and X_weights is not None:
        raise ValueError(
            "X_weights are those of the rows of X, and X is None; pass weights for the landmarks"
        )
    X_weights = checks.weights(X_weights, "X", X, name="X_weights")
    weights = checks.weights(weights, "landmarks", landmarks)
    return _nystrom(kernel, landmarks, weights, X, X_weights, num_features=rank)


@partial(jax.jit, static_argnames="num_features")
def _nystrom(
    kernel: Kernel,
    landmarks: Any,
    weights: Any,
    X: Any,
    X_weights: Any,
    *,
    num_features: int,
) -> Nystrom:
    if weights is None:
        K = _gram(kernel, landmarks)
        projection, eigenvalues = eigen_rows(K, num_features, power=-0.5)
    else:
        landmarks, root = present(landmarks, weights), safe_sqrt(weights)
        K = root[:, None] * _gram(kernel, landmarks) * root[None, :]
        projection, eigenvalues = eigen_rows(
            K, num_features, power=-0.5, size=number(weights)
        )
        projection = projection * root[None, :]
    if X is None:
        residual = jnp.trace(K) - jnp.sum(eigenvalues)
    else:
        residual = _trace_residual(kernel, landmarks, projection, X, X_weights)
    rank = jnp.sum(eigenvalues > 0, dtype=jnp.int32)
    return Nystrom(
        kernel, landmarks, projection, eigenvalues, rank, jnp.maximum(residual, 0)
    )


def _trace_residual(
    kernel: Kernel, landmarks: Any, projection: Any, X: jax.Array, weights: Any = None
) -> jax.Array:
    """Return the sum over the rows of X of K(x, x) - |phi(x)|^2, block by block."""
    X, weights = (
        (X, jnp.ones(X.shape[:1], X.dtype))
        if weights is None
        else (present(X, weights), weights)
    )

    def term(phi: Any, points: jax.Array, counted: jax.Array) -> jax.Array:
        kernel, landmarks, projection = phi
        features = _product(kernel, points, landmarks, projection.T)
        left = kernel._diagonal(points) - jnp.sum(features * features, axis=1)
        return jnp.sum(counted * left)

    return sum_by_blocks(
        term, (kernel, landmarks, projection), X, weights, block_size=_BLOCK
    )
