"""Pre-images: points whose sections are close to given functions of the span of the landmarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import ArrayLike, Float
from jaxkern.features._pca import KernelPCA
from jaxkern.gram import _gram
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul
from jaxkern.pytrees import pytree


@pytree
class PreImage:
    """What `preimage` found.

    Attributes
    ----------
    points : (N, dim).
    residual : (N,), |K_x - f|^2 in the RKHS for each point x and its function f.
    converged : (N,) bool, whether the last step moved the point by at most 1e-3 (float32) or 1e-6 lengthscales.
    """

    points: jax.Array
    residual: jax.Array
    converged: jax.Array


def preimage(
    phi: KernelPCA, Z: Float[ArrayLike, "N num_features"], *, num_steps: int = 200
) -> PreImage:
    """Return points whose kernel PCA features are close to Z: local minima of |K_x - f_z|^2 over x.

    f_z is the function of the span of the components with features z (plus the mean). For the Gaussian kernel a minimum
    is a fixed point of x -> sum_i gamma_i K(x, X_i) X_i / sum_i gamma_i K(x, X_i), which is iterated from the landmark
    at which f_z is largest; a step that does not bring K_x closer to f_z is halved.

    Parameters
    ----------
    phi : the map of `kernel_pca`, with a Gaussian kernel.
    Z : (N, num_features) features.
    num_steps : number of steps, at least 1.

    Returns
    -------
    PreImage. Pre-images need not exist, nor be unique: `residual` says how close one came.

    Notes
    -----
    O(N n (dim + num_features)) time and O(N n) memory a step. Source: mika1998.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import kernel_pca
    >>> X = jax.random.normal(jax.random.key(0), (50, 2))
    >>> phi = kernel_pca(Gaussian(1.0), X, num_components=4)
    >>> preimage(phi, phi(X[:3])).points.shape
    (3, 2)
    """
    if not isinstance(phi, KernelPCA) or not isinstance(phi.kernel, Gaussian):
        name = (
            type(phi.kernel).__name__
            if isinstance(phi, KernelPCA)
            else type(phi).__name__
        )
        raise ValueError(
            f"phi must be a kernel_pca map with a Gaussian kernel, got {name}"
        )
    Z = checks.same_dtype(
        "Z",
        checks.matrix("Z", Z, dim=phi.num_features),
        "the fitted map",
        phi.landmarks,
    )
    return _preimage(phi, Z, checks.count("num_steps", num_steps))


@partial(jax.jit, static_argnums=2)
def _preimage(phi: KernelPCA, Z: jax.Array, num_steps: int) -> PreImage:
    weights = phi.coefficients(Z)  # (n, N)
    landmarks, kernel = phi.landmarks, phi.kernel
    values = matmul(_gram(kernel, landmarks), weights)
    start = landmarks[jnp.argmax(values, axis=0)]
    size = jnp.sum(weights * values, axis=0)

    def closeness(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return f_z(x) for each row and the kernel's rows times the weights, (N, n)."""
        pulls = _gram(kernel, x, landmarks) * weights.T
        return jnp.sum(pulls, axis=1), pulls

    def step(
        state: tuple[jax.Array, jax.Array, jax.Array, jax.Array], _: Any
    ) -> tuple[Any, None]:
        x, value, target, _ = state
        new, pulls = closeness(target)
        better = new >= value
        x, value = jnp.where(better[:, None], target, x), jnp.where(better, new, value)
        total = jnp.where(new > 0, new, 1)
        mean = jnp.where(
            (new > 0)[:, None], matmul(pulls, landmarks) / total[:, None], x
        )
        following = jnp.where(better[:, None], mean, (x + target) / 2)
        moved = jnp.sqrt(jnp.sum((following - x) ** 2, axis=1))
        return (x, value, following, moved), None

    lowest = jnp.full(start.shape[0], -jnp.inf, start.dtype)
    init = start, lowest, start, jnp.full(start.shape[0], jnp.inf, start.dtype)
    (x, value, _, moved), _ = lax.scan(step, init, None, length=num_steps)
    near = (1e-3 if x.dtype == jnp.float32 else 1e-6) * jnp.min(kernel._scale(x))
    residual = jnp.maximum(1 - 2 * value + size, 0)
    # What is not a number moves nothing.
    return PreImage(x, residual, (moved <= near) & jnp.isfinite(residual))
