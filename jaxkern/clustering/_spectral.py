"""Kernel spectral clustering, of a kernel matrix or of points: Algorithm 1 of amini2021."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._types import Array, ArrayLike, Float, Int, PRNGKeyArray
from jaxkern._weights import mass, present
from jaxkern.clustering._labels import FLAT, arguments, nearest
from jaxkern.features._projection import Projection
from jaxkern.gram import _gram, _product
from jaxkern.kernels import KernelLike, as_kernel
from jaxkern.kmeans._kmeans import partition_of
from jaxkern.linalg import (
    largest_modulus_eigenpairs,
    leading_modulus_eigh,
    matmul,
    start_block,
)
from jaxkern.linalg._dense import scale_of
from jaxkern.pytrees import pytree

MOST_DENSE = 5_000
"""Beyond this many points `kernel_spectral` does not hold the Gram matrix."""


@pytree
class SpectralPartition:
    """Clusters found from a kernel matrix: the partition, and how to label rows of further kernel values.

    Attributes
    ----------
    labels : (n,) int32 in [0, num_clusters); -1 where the weight is 0.
    centers : (num_clusters, num_clusters), in the coordinates of the embedding; infinite beyond `num_used`.
    objective : scalar, the k-means objective of the embedded points, weighted if the points are.
    converged : scalar bool, whether the eigenvectors and k-means are final. False wherever a number is not finite, and
        if K does not determine the eigenvectors since all further eigenvalues equal the last one, as for K = I. Where K
        is not held (`matrix_free`) the latter is not looked at.
    eigenvalues : (num_clusters,) of K / n, those of largest modulus, by modulus, descending; 0 beyond `num_used`.
    projection : (num_clusters, n), with `projection @ k` the embedding of a point whose kernel values at the n points
        are k: U' / n for the eigenvectors U, so that the points themselves have the rows of U Lambda. Where n is
        large for num_clusters residuals of half the digits serve for U, which leave the eigenvalues all of theirs.
    """

    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array
    eigenvalues: jax.Array
    projection: jax.Array

    def predict(self, values: Float[ArrayLike, "q n"]) -> Int[Array, " q"]:
        """Return the labels (q,) of points with kernel values (q, n) at the n points that were clustered.

        Values at points of weight 0 do not count. The label is -1 where no distance to a centre is finite, as for NaN.
        Raises ValueError if the shape or dtype of the values is another.
        """
        values = checks.matrix(
            "values", values, dim=self.projection.shape[1], min_rows=0
        )
        checks.same_dtype("values", values, "projection", self.projection)
        values = jnp.where((self.labels < 0)[None, :], 0, values)
        return nearest(matmul(values, self.projection.T), self.centers)


@pytree
class KernelSpectral(Projection):
    """Clusters of `kernel_spectral`, which label new points by `predict(X)` and embed them by calling.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : (n, dim), the points that were clustered; another one of them where the weight is 0.
    projection : (num_clusters, n), as in `SpectralPartition`.
    labels : (n,) int32 in [0, num_clusters), as in `SpectralPartition`, and so are these:
    centers : (num_clusters, num_clusters).
    objective, converged : as there.
    eigenvalues : (num_clusters,), as there.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array
    eigenvalues: jax.Array

    def predict(self, X: Float[ArrayLike, "... dim"]) -> Int[Array, ...]:
        """Return the label of every point, (...,) for X (..., dim): that of the nearest centre of its embedding.

        The label is -1 where no distance to a centre is finite, as for NaN.
        """
        return nearest(self(X), self.centers)


def spectral_from_gram(
    key: PRNGKeyArray,
    K: Float[ArrayLike, "n n"],
    num_clusters: int,
    *,
    weights: Float[ArrayLike, " n"] | None = None,
    num_restarts: int = 10,
    num_used: Int[ArrayLike, ""] | None = None,
) -> SpectralPartition:
    """Cluster n points by their kernel matrix: k-means of the rows of U Lambda, the leading eigenpairs of K / n.

    Leading are the eigenvalues of largest modulus, so K need not be positive semidefinite.

    Parameters
    ----------
    key : a typed random key.
    K : (n, n) kernel values, symmetric; of a matrix that is not, (K + K') / 2 counts.
    num_clusters : R, in [1, n].
    weights : (n,) non-negative weights in the dtype of K, of any positive sum; a row of weight 0 does not exist,
        whatever it and its column hold, and a row of weight 2 counts as two copies. By default all are 1. NumPy weights
        that are negative, not finite or all zero raise ValueError; with others that are, `converged` is False.
    num_restarts : seedings of k-means, of which the best is taken.
    num_used : how many of the R clusters, and of the eigenpairs, there are: as in `kmeans`.

    Returns
    -------
    SpectralPartition, whose `predict` labels further points. NaN in K gives `converged` False.

    Notes
    -----
    O(n^2 R) time for each step of a block iteration, or O(n^3) where R is not small; O(n^2) memory. Source: amini2021,
    Algorithm 1; Theorem 3 bounds its misclassification.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.gram import gram
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (50, 2))
    >>> spectral_from_gram(jax.random.key(1), gram(Gaussian(1.0), X), 3).labels.shape
    (50,)
    """
    key = checks.key(key)
    K = checks.square("K", K)
    num_clusters, weights, used = arguments(num_clusters, weights, num_used, K, "K")
    num_restarts = checks.count("num_restarts", num_restarts)
    return _from_gram(key, K, weights, used, num_clusters, num_restarts)


def kernel_spectral(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    num_clusters: int,
    *,
    weights: Float[ArrayLike, " n"] | None = None,
    num_restarts: int = 10,
    matrix_free: bool | None = None,
    num_used: Int[ArrayLike, ""] | None = None,
) -> KernelSpectral:
    """Cluster points by k-means of the rows of U Lambda, the leading eigenpairs of K(X) / n.

    Leading are the eigenvalues of largest modulus: the kernel need not be positive semidefinite (`kernels.Distance`).

    Parameters
    ----------
    kernel : a kernel, or a function of two points.
    X : (n, dim) points, floating.
    key, num_clusters, weights, num_restarts, num_used : as in `spectral_from_gram`.
    matrix_free : whether to compute products with K in blocks instead of holding K; by default for n > 5,000.

    Returns
    -------
    KernelSpectral, a map to the R coordinates of the embedding, with labels and `predict`. NaN in X, or eigenvectors
    that the iteration did not settle, give `converged` False.

    Notes
    -----
    O(n^2 (dim + R)) time for each step of a block iteration. Memory O(n^2), or O(n R) and a few tiles if matrix-free.
    Source: amini2021, Algorithm 1; Theorem 3 bounds its misclassification.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Distance
    >>> X = jax.random.normal(jax.random.key(0), (50, 2))
    >>> clusters = kernel_spectral(jax.random.key(1), Distance(), X, 3)
    >>> clusters.labels.shape, clusters.predict(X[:4]).shape
    ((50,), (4,))
    """
    key = checks.key(key)
    kernel = as_kernel(kernel)
    X = checks.matrix("X", X)
    num_clusters, weights, used = arguments(num_clusters, weights, num_used, X, "X")
    num_restarts = checks.count("num_restarts", num_restarts)
    if matrix_free is None:
        matrix_free = X.shape[0] > MOST_DENSE
    matrix_free = checks.flag("matrix_free", matrix_free)
    return _spectral(
        key, kernel, X, weights, used, num_clusters, num_restarts, matrix_free
    )


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts"))
def _from_gram(
    key: jax.Array,
    K: jax.Array,
    weights: jax.Array | None,
    used: jax.Array | None,
    num_clusters: int,
    num_restarts: int,
) -> SpectralPartition:
    if weights is not None:
        K = jnp.where((weights > 0)[:, None] & (weights > 0)[None, :], K, 0)
    K = (K + K.T) / 2
    pairs = _used(used, *_dense_pairs(K, weights, num_clusters))
    return SpectralPartition(
        **_clustered(key, matmul(K, pairs[1].T), weights, used, pairs, num_restarts)
    )


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts", "matrix_free"))
def _spectral(
    key: jax.Array,
    kernel: Any,
    X: jax.Array,
    weights: jax.Array | None,
    used: jax.Array | None,
    num_clusters: int,
    num_restarts: int,
    matrix_free: bool,
) -> KernelSpectral:
    X = X if weights is None else present(X, weights)
    if matrix_free:
        pairs = _used(used, *_products_pairs(kernel, X, weights, num_clusters))
        rows = _product(kernel, X, X, pairs[1].T)
    else:
        K = _gram(kernel, X)
        pairs = _used(used, *_dense_pairs(K, weights, num_clusters))
        rows = matmul(K, pairs[1].T)
    return KernelSpectral(
        kernel, X, **_clustered(key, rows, weights, used, pairs, num_restarts)
    )


def _clustered(
    key: jax.Array,
    rows: jax.Array,
    weights: Any,
    used: Any,
    pairs: Any,
    num_restarts: int,
) -> Any:
    """Return the fields that both results have, by the rows of the embedding and the pairs that it comes from."""
    values, projection, settled = pairs
    found = partition_of(key, rows, weights, len(values), num_restarts, used)
    own = {
        "labels": found.labels,
        "centers": found.centers,
        "objective": found.objective,
    }
    return own | {
        "converged": found.converged & settled,
        "eigenvalues": values,
        "projection": projection,
    }


def _dense_pairs(
    K: jax.Array, weights: jax.Array | None, num_clusters: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the eigenvalues (R,), the projection (R, n), and whether they are numbers that K determines.

    It does not where all others are equal to the last one, as for a lengthscale so small that K is the identity. Then
    the sum of the squares of the others is the last one times their sum.

    With weights w of sum W the matrix is D K D / W, D = diag(sqrt(w)): for whole weights its eigenvectors, divided by
    sqrt(w), are those of the matrix in which every point is repeated w times.
    """
    roots, total = _roots(K, weights)
    A = K if weights is None else roots[:, None] * K * roots[None, :]
    values, vectors = leading_modulus_eigh(
        A, num_values=num_clusters, tolerance=_half(K.dtype)
    )
    scale = scale_of(A)  # or the squares of a small K would vanish
    A, scaled = A / scale, values / scale
    others = jnp.trace(A) - jnp.sum(scaled)
    squares = jnp.sum(A * A) - jnp.sum(scaled * scaled)
    is_flat = jnp.abs(squares - scaled[-1] * others) <= FLAT * squares
    # Where nothing but rounding is left, the embedding has all that K has.
    is_flat &= others > _half(K.dtype) * jnp.trace(A)
    settled = jnp.isfinite(values).all() & ~is_flat
    return values / total, (roots[:, None] * vectors).T / total, settled


def _products_pairs(
    kernel: Any, X: jax.Array, weights: jax.Array | None, num_clusters: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the same from blocked products with K, and whether the iteration has converged."""
    roots, total = _roots(X, weights)

    def product(V: jax.Array) -> jax.Array:
        return roots[:, None] * _product(kernel, X, X, roots[:, None] * V) / total

    start = start_block(X.shape[0], num_clusters, X.dtype)
    pairs = largest_modulus_eigenpairs(
        product, start, num_values=num_clusters, tolerance=_half(X.dtype)
    )
    return pairs.values, (roots[:, None] * pairs.vectors).T / total, pairs.converged


def _used(
    used: jax.Array | None, values: jax.Array, projection: jax.Array, settled: jax.Array
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the same with zeros beyond the first `used` pairs."""
    if used is not None:
        kept = jnp.arange(values.shape[0], dtype=jnp.int32) < used
        values, projection = (
            jnp.where(kept, values, 0),
            jnp.where(kept[:, None], projection, 0),
        )
    return values, projection, settled


def _half(dtype: Any) -> float:
    """Return the tolerance of the eigenvectors: half the digits decide labels, and give the eigenvalues all digits."""
    return float(jnp.finfo(dtype).eps) ** 0.5


def _roots(rows: jax.Array, weights: jax.Array | None) -> tuple[jax.Array, jax.Array]:
    """Return the square roots of the weights, (n,), and their sum."""
    if weights is None:
        return jnp.ones(rows.shape[0], rows.dtype), jnp.asarray(
            rows.shape[0], rows.dtype
        )
    return jnp.sqrt(weights), mass(weights)
