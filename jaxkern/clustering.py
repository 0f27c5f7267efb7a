"""Kernel spectral clustering (Algorithm 1 of amini2021) and kernel k-means, with labels for new points.

Both embed the points and run k-means. What they return embeds any point and holds the partition, so that points that
were not clustered get labels too. Data sets of different sizes can share one vmapped call: fill them up with finite
rows of weight 0.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks, landmarks
from jaxkern.features._nystrom import Nystrom, nystrom
from jaxkern.features._projection import Projection
from jaxkern.gram import gram, gram_matmul
from jaxkern.kernels import as_kernel
from jaxkern.kmeans import kmeans
from jaxkern.linalg import largest_modulus_eigenpairs, leading_modulus_eigh, matmul, start_block
from jaxkern.pytrees import pytree

__all__ = [
    "KernelKMeans",
    "KernelSpectral",
    "SpectralPartition",
    "kernel_kmeans",
    "kernel_spectral",
    "spectral_from_gram",
]

MOST_DENSE = 5_000
"""Beyond this many points `kernel_spectral` does not hold the Gram matrix."""

MOST_LANDMARKS = 1_000
"""Up to this many points `kernel_kmeans` is exact; beyond, it takes that many landmarks."""


@pytree
class SpectralPartition:
    """Clusters found from a kernel matrix: the partition, and how to label rows of further kernel values.

    Attributes
    ----------
    labels : (n,) int32 in [0, num_clusters).
    centers : (num_clusters, num_clusters), in the coordinates of the embedding.
    objective : scalar, the k-means objective of the embedded points, weighted if the points are.
    converged : scalar bool, whether the eigenvectors and k-means are final. False wherever a number is not finite.
    eigenvalues : (num_clusters,) of K / n, those of largest modulus, by modulus, descending.
    projection : (num_clusters, n), with `projection @ k` the embedding of a point whose kernel values at the n points
        are k: U' / n for the eigenvectors U, so that the points themselves have the rows of U Lambda.
    """

    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array
    eigenvalues: jax.Array
    projection: jax.Array

    def predict(self, values: Any) -> jax.Array:
        """Return the labels (q,) of points with kernel values (q, n) at the n points that were clustered.

        The label is -1 where no distance to a centre is finite, as for NaN. Raises ValueError if the shape or dtype of
        the values is another.
        """
        values = checks.matrix("values", values, dim=self.projection.shape[1], min_rows=0)
        checks.same_dtype("values", values, "projection", self.projection)
        return _nearest(matmul(values, self.projection.T), self.centers)


@pytree
class KernelSpectral(Projection):
    """Clusters of `kernel_spectral`, which label new points by `predict(X)` and embed them by calling.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : (n, dim), the points that were clustered.
    projection : (num_clusters, n), as in `SpectralPartition`.
    labels : (n,) int32 in [0, num_clusters), as in `SpectralPartition`, and so are these:
    centers : (num_clusters, num_clusters).
    objective, converged, eigenvalues : as there.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array
    eigenvalues: jax.Array

    def predict(self, X: Any) -> jax.Array:
        """Return the label of every point, (...,) for X (..., dim): that of the nearest centre of its embedding.

        The label is -1 where no distance to a centre is finite, as for NaN.
        """
        return _nearest(self(X), self.centers)


@pytree
class KernelKMeans:
    """Clusters of `kernel_kmeans`.

    Attributes
    ----------
    phi : the Nystrom map in whose coordinates the clusters were found.
    labels : (n,) int32 in [0, num_clusters).
    centers : (num_clusters, rank) in the coordinates of phi.
    objective : scalar, sum_i w_i |phi(x_i) - center|^2. The same sum in the space H is at least this, and at most this
        plus max_i w_i times `phi.trace_residual`, which is rounding where the method is exact.
    converged : scalar bool.
    """

    phi: Nystrom
    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array

    def predict(self, X: Any) -> jax.Array:
        """Return the label of every point, (...,) for X (..., dim): that of the nearest centre.

        The label is -1 where no distance to a centre is finite, as for NaN.
        """
        return _nearest(self.phi(X), self.centers)


def spectral_from_gram(
    key: Any, K: Any, num_clusters: int, *, weights: Any = None, num_restarts: int = 10
) -> SpectralPartition:
    """Cluster n points by their kernel matrix: k-means of the rows of U Lambda, the leading eigenpairs of K / n.

    Leading are the eigenvalues of largest modulus, so K need not be positive semidefinite.

    Parameters
    ----------
    key : a typed random key.
    K : (n, n) kernel values, symmetric; of a matrix that is not, (K + K') / 2 counts.
    num_clusters : R, in [1, n].
    weights : (n,) at least 0, in the dtype of K; by default all 1. A point of weight 2 counts as two copies, one of
        weight 0 has no influence and still gets a label; its row and column must be finite.
    num_restarts : seedings of k-means, of which the best is taken.

    Returns
    -------
    SpectralPartition, whose `predict` labels further points. NaN in K gives `converged` False.

    Raises
    ------
    ValueError
        If K is not a square floating matrix, num_clusters is not in [1, n], or key, weights or num_restarts are unfit.

    Notes
    -----
    O(n^2 R) time for each step of a block iteration, or O(n^3) where R is not small; O(n^2) memory.

    References
    ----------
    amini2021, Algorithm 1; Theorem 3 bounds its misclassification.

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
    num_clusters, weights = _arguments(num_clusters, weights, K, "K")
    num_restarts = checks.count("num_restarts", num_restarts)
    return _from_gram(key, K, weights, num_clusters=num_clusters, num_restarts=num_restarts)


def kernel_spectral(
    key: Any,
    kernel: Any,
    X: Any,
    num_clusters: int,
    *,
    weights: Any = None,
    num_restarts: int = 10,
    matrix_free: bool | None = None,
) -> KernelSpectral:
    """Cluster points by k-means of the rows of U Lambda, the leading eigenpairs of K(X) / n.

    Leading are the eigenvalues of largest modulus: the kernel need not be positive semidefinite (`kernels.Distance`).

    Parameters
    ----------
    key : a typed random key.
    kernel : a kernel, or a function of two points.
    X : (n, dim) points, floating.
    num_clusters : R, in [1, n].
    weights : (n,) at least 0, in the dtype of X; by default all 1. A point of weight 2 counts as two copies, one of
        weight 0 has no influence and still gets a label; its row must be finite.
    num_restarts : seedings of k-means, of which the best is taken.
    matrix_free : whether to compute products with K in blocks instead of holding K; by default for n > 5,000.

    Returns
    -------
    KernelSpectral, a map to the R coordinates of the embedding, with labels and `predict`. NaN in X, or eigenvectors
    that the iteration did not settle, give `converged` False.

    Raises
    ------
    ValueError
        If X is not a floating matrix, num_clusters is not in [1, n], or key, weights, num_restarts or matrix_free are
        unfit.

    Notes
    -----
    O(n^2 (dim + R)) time for each step of a block iteration. Memory O(n^2), or O(n R) and a few tiles if matrix-free.

    References
    ----------
    amini2021, Algorithm 1; Theorem 3 bounds its misclassification.

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
    num_clusters, weights = _arguments(num_clusters, weights, X, "X")
    num_restarts = checks.count("num_restarts", num_restarts)
    if matrix_free is None:
        matrix_free = X.shape[0] > MOST_DENSE
    return _spectral(
        key,
        kernel,
        X,
        weights,
        num_clusters=num_clusters,
        num_restarts=num_restarts,
        matrix_free=checks.flag("matrix_free", matrix_free),
    )


def kernel_kmeans(
    key: Any,
    kernel: Any,
    X: Any,
    num_clusters: int,
    *,
    weights: Any = None,
    num_landmarks: int | None = None,
    rank: int | None = None,
    num_restarts: int = 10,
) -> KernelKMeans:
    """Cluster points by k-means in the RKHS: min over partitions and centres of sum_i w_i |K_{x_i} - c_{l_i}|_H^2.

    With all points as landmarks the coordinates of the Nystrom map give all distances exactly; with fewer, drawn
    uniformly, those of the projections onto their span.

    Parameters
    ----------
    key : a typed random key.
    kernel : a positive semidefinite kernel, or a function of two points.
    X : (n, dim) points, floating.
    num_clusters : in [1, n].
    weights : (n,) at least 0, in the dtype of X; by default all 1.
    num_landmarks : in [1, n]; by default all points up to n = 1,000, and 1,000 beyond.
    rank : number of coordinates, in [1, num_landmarks]; by default all of them.
    num_restarts : seedings of k-means, of which the best is taken.

    Returns
    -------
    KernelKMeans, with labels and `predict`. NaN in X gives `converged` False.

    Raises
    ------
    ValueError
        If the kernel is known not to be positive semidefinite, X is not a floating matrix, or a size is out of range.

    Notes
    -----
    O(n m rank + m^3) time for m landmarks beyond k-means in `rank` coordinates, O(n rank + m^2) memory.

    References
    ----------
    kpotufe2020, Section 5.2.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (50, 2))
    >>> kernel_kmeans(jax.random.key(1), Gaussian(1.0), X, 3).labels.shape
    (50,)
    """
    key = checks.key(key)
    X = checks.matrix("X", X)
    num_clusters, weights = _arguments(num_clusters, weights, X, "X")
    if num_landmarks is None:
        num_landmarks = min(X.shape[0], MOST_LANDMARKS)
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
    num_restarts = checks.count("num_restarts", num_restarts)
    key_landmarks, key_clusters = jax.random.split(key)
    everything = num_landmarks == X.shape[0]
    points = X if everything else landmarks.uniform(key_landmarks, X, num_landmarks=num_landmarks)
    phi = nystrom(kernel, points, rank=rank, X=None if everything else X)
    found = kmeans(key_clusters, phi(X), num_clusters, weights=weights, num_restarts=num_restarts)
    return KernelKMeans(phi, found.labels, found.centers, found.objective, found.converged)


def _arguments(num_clusters: Any, weights: Any, rows: jax.Array, name: str) -> tuple[int, jax.Array | None]:
    """Return the number of clusters and the weights, checked against the rows."""
    num_clusters = checks.count("num_clusters", num_clusters, maximum=rows.shape[0], limit="the number of points")
    return num_clusters, checks.weights(weights, name, rows)


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts"))
def _from_gram(
    key: jax.Array, K: jax.Array, weights: jax.Array | None, *, num_clusters: int, num_restarts: int
) -> SpectralPartition:
    K = (K + K.T) / 2
    values, projection, settled = _dense_pairs(K, weights, num_clusters)
    found = kmeans(key, matmul(K, projection.T), num_clusters, weights=weights, num_restarts=num_restarts)
    return SpectralPartition(
        found.labels, found.centers, found.objective, found.converged & settled, values, projection
    )


@partial(jax.jit, static_argnames=("num_clusters", "num_restarts", "matrix_free"))
def _spectral(
    key: jax.Array,
    kernel: Any,
    X: jax.Array,
    weights: jax.Array | None,
    *,
    num_clusters: int,
    num_restarts: int,
    matrix_free: bool,
) -> KernelSpectral:
    if matrix_free:
        values, projection, settled = _products_pairs(kernel, X, weights, num_clusters)
        rows = gram_matmul(kernel, X, None, projection.T)
    else:
        K = gram(kernel, X)
        values, projection, settled = _dense_pairs(K, weights, num_clusters)
        rows = matmul(K, projection.T)
    found = kmeans(key, rows, num_clusters, weights=weights, num_restarts=num_restarts)
    return KernelSpectral(
        kernel,
        X,
        projection,
        found.labels,
        found.centers,
        found.objective,
        found.converged & settled,
        values,
    )


def _dense_pairs(K: jax.Array, weights: jax.Array | None, num_clusters: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the eigenvalues (R,), the projection (R, n), and whether they are numbers.

    With weights w of sum W the matrix is D K D / W, D = diag(sqrt(w)): for whole weights its eigenvectors, divided by
    sqrt(w), are those of the matrix in which every point is repeated w times.
    """
    roots, total = _roots(K, weights)
    values, vectors = leading_modulus_eigh(roots[:, None] * K * roots[None, :] / total, num_values=num_clusters)
    return values, (roots[:, None] * vectors).T / total, jnp.isfinite(values).all()


def _products_pairs(
    kernel: Any, X: jax.Array, weights: jax.Array | None, num_clusters: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return the same from blocked products with K, and whether the iteration has converged."""
    roots, total = _roots(X, weights)

    def product(V: jax.Array) -> jax.Array:
        return roots[:, None] * gram_matmul(kernel, X, None, roots[:, None] * V) / total

    start = start_block(X.shape[0], num_clusters, X.dtype)
    found = largest_modulus_eigenpairs(product, start, num_values=num_clusters)
    return found.values, (roots[:, None] * found.vectors).T / total, found.converged


def _roots(rows: jax.Array, weights: jax.Array | None) -> tuple[jax.Array, jax.Array]:
    """Return the square roots of the weights, (n,), and their sum."""
    if weights is None:
        return jnp.ones(rows.shape[0], rows.dtype), jnp.asarray(rows.shape[0], rows.dtype)
    return jnp.sqrt(weights), checks.mass(weights)


def _nearest(rows: jax.Array, centers: jax.Array) -> jax.Array:
    """Return the index of the centre nearest to each row, (...,) int32, by direct differences; -1 where none is."""
    gaps = rows[..., None, :] - centers.reshape((1,) * (rows.ndim - 1) + centers.shape)
    distances = (gaps * gaps).sum(axis=-1)
    found = jnp.isfinite(distances.min(axis=-1))
    return jnp.where(found, jnp.argmin(distances, axis=-1), -1).astype(jnp.int32)
