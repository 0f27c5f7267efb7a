"""The Nystrom map: coordinates of the projection onto the span of landmarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import _checks
from jaxkern._pytree import pytree
from jaxkern.features._projection import Projection, eigen_rows, psd_kernel
from jaxkern.gram import gram
from jaxkern.kernels import Kernel

__all__ = ["Nystrom", "nystrom"]


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
    rank : scalar int32, the number of directions kept. The features after these are zero.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    eigenvalues: jax.Array
    rank: jax.Array


def nystrom(kernel: Any, landmarks: Any, *, rank: int | None = None) -> Nystrom:
    """Fit the Nystrom map phi(x) = Lambda^{-1/2} V^T k(x), k(x) = (K(x, X_1), ..., K(x, X_n)).

    K = V Lambda V^T is the Gram matrix of the landmarks X_1, ..., X_n, or its `rank` largest eigenpairs. Inner products
    <phi(x), phi(y)> = k(x)^T K^+ k(y) are those of the projections of K_x and K_y onto the span of the landmarks'
    sections, or onto its leading directions: |phi(x)|^2 <= K(x, x) always, and with all directions
    <phi(x), phi(y)> = K(x, y) where x or y is a landmark.

    Parameters
    ----------
    kernel : a positive semidefinite kernel, or a function of two points.
    landmarks : (n, dim) points, usually a uniform subsample of the data; they may repeat.
    rank : number of features, in [1, n]; by default n.

    Returns
    -------
    Nystrom, a callable PyTree. Directions with eigenvalue at most eps(dtype) * n * the largest are rounding: their
    features are zero, and its field `rank` counts the others.

    Raises
    ------
    ValueError
        If the kernel is known not to be positive semidefinite, landmarks are not a floating matrix with at least one
        row, or rank is not in [1, n].

    Notes
    -----
    O(n^3) time and O(n^2) memory to fit, beyond the n^2 kernel evaluations; mapping N points takes N n num_features
    multiply-adds and N n kernel evaluations. A single feature is an eigenvector's, so its sign is arbitrary; inner
    products of features are not.

    References
    ----------
    williams2001; kpotufe2020, Section 5.2, where k-means of these features stands for kernel k-means.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> nystrom(Gaussian(1.0), X[:20], rank=8)(X).shape
    (100, 8)
    """
    kernel = psd_kernel(kernel)
    landmarks = _checks.matrix("landmarks", landmarks)
    num_landmarks = landmarks.shape[0]
    if rank is None:
        rank = num_landmarks
    rank = _checks.count("rank", rank, maximum=num_landmarks, limit="the number of landmarks")
    return _nystrom(kernel, landmarks, num_features=rank)


@partial(jax.jit, static_argnames="num_features")
def _nystrom(kernel: Kernel, landmarks: jax.Array, *, num_features: int) -> Nystrom:
    projection, eigenvalues = eigen_rows(gram(kernel, landmarks), num_features, power=-0.5)
    return Nystrom(kernel, landmarks, projection, eigenvalues, jnp.sum(eigenvalues > 0, dtype=jnp.int32))
