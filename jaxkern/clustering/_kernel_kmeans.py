"""Kernel k-means: k-means in the coordinates of a Nystrom map."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxkern import checks, landmarks
from jaxkern._types import Array, ArrayLike, Float, Int, PRNGKeyArray
from jaxkern._weights import present
from jaxkern.clustering._labels import FLAT, arguments, nearest
from jaxkern.features._nystrom import Nystrom, nystrom
from jaxkern.kernels import KernelLike
from jaxkern.kmeans._kmeans import partition_of
from jaxkern.pytrees import pytree

MOST_LANDMARKS = 1_000
"""Up to this many points `kernel_kmeans` is exact; beyond, it takes that many landmarks."""


@pytree
class KernelKMeans:
    """Clusters of `kernel_kmeans`.

    Attributes
    ----------
    phi : the Nystrom map in whose coordinates the clusters were found.
    labels : (n,) int32 in [0, num_clusters); -1 where the weight is 0.
    centers : (num_clusters, rank) in the coordinates of phi; infinite beyond `num_used`.
    objective : scalar, sum_i w_i |phi(x_i) - center|^2. The same sum in the space H is at least this, and at most this
        plus `phi.trace_residual`, which is rounding where the method is exact.
    converged : scalar bool; False also where all eigenvalues of the landmarks' kernel matrix are equal and more than
        the clusters, as for a lengthscale so small that it is the identity: all partitions are then as good.
    """

    phi: Nystrom
    labels: jax.Array
    centers: jax.Array
    objective: jax.Array
    converged: jax.Array

    def predict(self, X: Float[ArrayLike, "... dim"]) -> Int[Array, ...]:
        """Return the label of every point, (...,) for X (..., dim): that of the nearest centre.

        The label is -1 where no distance to a centre is finite, as for NaN.
        """
        return nearest(self.phi(X), self.centers)


def kernel_kmeans(
    key: PRNGKeyArray,
    kernel: KernelLike,
    X: Float[ArrayLike, "n dim"],
    num_clusters: int,
    *,
    weights: Float[ArrayLike, " n"] | None = None,
    num_landmarks: int | None = None,
    rank: int | None = None,
    num_restarts: int = 10,
    num_used: Int[ArrayLike, ""] | None = None,
) -> KernelKMeans:
    """Cluster points by k-means in the RKHS: min over partitions and centres of sum_i w_i |K_{x_i} - c_{l_i}|_H^2.

    With all points as landmarks the coordinates of the Nystrom map give all distances exactly; with fewer, drawn
    uniformly, those of the projections onto their span.

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    key, X, num_clusters, weights, num_restarts, num_used : as in `kernel_spectral`.
    num_landmarks : in [1, n]; by default all points up to n = 1,000, and 1,000 beyond.
    rank : number of coordinates, in [1, num_landmarks]; by default all of them.

    Returns
    -------
    KernelKMeans, with labels and `predict`. NaN in X gives `converged` False.

    Notes
    -----
    O(n m rank + m^3) time for m landmarks beyond k-means in `rank` coordinates, O(n rank + m^2) memory. Source:
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
    num_clusters, weights, used = arguments(num_clusters, weights, num_used, X, "X")
    if num_landmarks is None:
        num_landmarks = min(X.shape[0], MOST_LANDMARKS)
    num_landmarks = checks.count(
        "num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points"
    )
    num_restarts = checks.count("num_restarts", num_restarts)
    key_landmarks, key_clusters = jax.random.split(key)
    everything = num_landmarks == X.shape[0]
    points, every = X, None
    if not everything:
        points, every = (
            landmarks.uniform(
                key_landmarks, X, num_landmarks=num_landmarks, weights=weights
            ),
            X,
        )
    if weights is None:
        phi = nystrom(kernel, points, rank=rank, X=every)
    else:
        drawn = (
            weights if everything else jnp.isfinite(points).all(axis=1).astype(X.dtype)
        )
        X_weights = None if everything else weights
        phi = nystrom(
            kernel, points, rank=rank, X=every, weights=drawn, X_weights=X_weights
        )
        X = present(X, weights)
    partition = partition_of(
        key_clusters, phi(X), weights, num_clusters, num_restarts, used
    )
    return KernelKMeans(
        phi,
        partition.labels,
        partition.centers,
        partition.objective,
        partition.converged & ~_is_flat(phi.projection, num_clusters),
    )


def _is_flat(projection: jax.Array, num_clusters: int) -> jax.Array:
    """Return whether the landmarks have more than `num_clusters` eigenvalues and all are equal, as those of K = I.

    The rows of the projection are eigenvectors over the roots of the eigenvalues.
    """
    inverses = jnp.sum(projection * projection, axis=1)
    kept = inverses > 0
    least = jnp.min(jnp.where(kept, inverses, jnp.inf))
    are_equal = jnp.max(inverses) <= (1 + FLAT) * least
    return are_equal & (jnp.sum(kept) > num_clusters)
