"""Kernel JL: Gaussian sketching of a kernel matrix as a random projection of the RKHS (kpotufe2020)."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern._distances import safe_sqrt
from jaxkern._types import ArrayLike, Float, PRNGKeyArray
from jaxkern._weights import mass, positions, present
from jaxkern.draws import normal_rows
from jaxkern.features._projection import OffsetProjection
from jaxkern.gram import _center, _gram
from jaxkern.kernels import Kernel, KernelLike, as_kernel
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree, static


@pytree
class KernelJL(OffsetProjection):
    """The map of `kernel_jl`: `phi(X)` for points, `phi.embed(f)` = V^T S f for functions of the RKHS.

    E <embed(f), embed(g)> = <f, Sigma_n^3 g>. Uncentred, phi(x) = embed(K_x); centred, Sigma_n is the centred operator
    and phi(x) = embed(K_x - mu_n), mu_n the mean of the sections K_{X_i}.

    Attributes
    ----------
    kernel : the kernel.
    landmarks : (n, dim) points X_1, ..., X_n.
    projection : (num_features, n), the matrix V^T = Z K / (n sqrt(n d)), or Z H K H / (n sqrt(n d)) when centred.
    offset : (num_features,), what is subtracted from every image; zero unless centred.
    centered : static.
    """

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array
    offset: jax.Array
    centered: bool = static(default=False)


def kernel_jl(
    key: PRNGKeyArray,
    kernel: KernelLike,
    landmarks: Float[ArrayLike, "n dim"],
    *,
    num_features: int,
    centered: bool = False,
    weights: Float[ArrayLike, " n"] | None = None,
) -> KernelJL:
    """Draw the Kernel JL map phi(x) = Z K k(x) / (n sqrt(n d)), k(x) = (K(x, X_1), ..., K(x, X_n)).

    Z is d x n with independent standard normal entries and K the Gram matrix of the landmarks X_1, ..., X_n. Given the
    landmarks, E <phi(x), phi(y)> = <K_x, Sigma_n^3 K_y>: the map is a random projection of the RKHS that preserves the
    Sigma^3-weighted inner product. Centred, phi(x) = Z H K H (k(x) - K 1/n) / (n sqrt(n d)), H = I - 11'/n. With
    weights, Sigma_n is the weighted covariance: phi(x) = Z P^{1/2} K P k(x) / sqrt(d), P = diag(w) / sum(w).

    Parameters
    ----------
    key : typed random key. Rows of Z depend on the key and their index alone, so a wider map repeats the directions of
        a narrower one, scaled by the ratio of sqrt(d).
    kernel : a kernel, or a function of two points.
    landmarks : (n, dim) points, usually a uniform subsample of the data.
    num_features : d, at least 1.
    centered : static; whether features are centred at the mean over the landmarks.
    weights : (n,) non-negative weights in the dtype of the landmarks, of any positive sum; a row of weight 0 does not
        exist, whatever it holds. By default all are 1.

    Returns
    -------
    KernelJL, a callable PyTree.

    Notes
    -----
    d n^2 multiply-adds beyond the n^2 kernel evaluations and d n normal draws (no eigen-decomposition, no inverse);
    mapping N points takes N d n more. Memory O(n^2 + d n) to draw, O(d n) to keep. Source: kpotufe2020, (1), (5) and
    Theorem 1; claims kpotufe2020:eq1, :normalisation, :cost.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> phi = kernel_jl(jax.random.key(1), Gaussian(1.0), X[:20], num_features=8)
    >>> phi(X).shape
    (100, 8)
    """
    key = checks.key(key)
    landmarks = checks.matrix("landmarks", landmarks)
    num_features = checks.count("num_features", num_features)
    weights = checks.weights(weights, "landmarks", landmarks)
    return _kernel_jl(
        key,
        as_kernel(kernel),
        landmarks,
        weights,
        num_features,
        checks.flag("centered", centered),
    )


@partial(jax.jit, static_argnums=(4, 5))
def _kernel_jl(
    key: jax.Array,
    kernel: Kernel,
    landmarks: jax.Array,
    weights: Any,
    d: int,
    centered: bool,
) -> KernelJL:
    landmarks, n = (
        landmarks if weights is None else present(landmarks, weights),
        landmarks.shape[0],
    )
    K, Z = _gram(kernel, landmarks), normal_rows(key, d, n, landmarks.dtype)
    C = _center(K, weights) if centered else K
    if weights is None:
        # One factor 1/n goes with K, so that float32 keeps its range for large n.
        projection, mean = matmul(Z, C / n) / (n * d) ** 0.5, jnp.mean(K, axis=1)
    else:
        shares = weights / mass(weights)
        Z = Z[:, positions(weights)] * safe_sqrt(shares)[None, :]
        projection, mean = matmul(Z, C * shares[None, :]) / d**0.5, matmul(K, shares)
    offset = matmul(projection, mean if centered else jnp.zeros_like(mean))
    return KernelJL(kernel, landmarks, projection, offset, centered)
