"""Squared Euclidean distances: product form on centred points, direct form where tiny distances matter.

The product form |x|^2 + |y|^2 - 2 <x, y> runs at the speed of a matrix product; its absolute error is about
eps * (|x|^2 + |y|^2), so points are centred first. The direct form sums squared differences: a few times slower, with
a small relative error however close two points are.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

HIGHEST = lax.Precision.HIGHEST


def center_of(Y: jax.Array) -> jax.Array:
    """Return about the mean of the rows, (1, d), as the first row and a step: any point among them serves as a centre.

    The step is rounded to half its digits. The product sum * (1 / n) behind a mean may be fused into the subtraction
    that follows, with another rounding in one place than in the next, and copies would differ. A mean itself rounded
    so would lie outside of points that are far from the origin for their spread. Distances do not depend on the
    centre, hence no gradient.
    """
    info = jnp.finfo(Y.dtype)
    Y = lax.stop_gradient(Y)
    step = jnp.mean(Y - Y[:1], axis=0, keepdims=True)
    return Y[:1] + lax.reduce_precision(step, info.nexp, info.nmant // 2 + 1)


def squared_distances(X: jax.Array, Y: jax.Array, scale: jax.Array, coincident: jax.Array | None = None) -> jax.Array:
    """Return (|x_i - y_j|^2 / scale^2)_ij, shape (n, m), by the product form, clipped at zero.

    Both sides are centred near the mean of Y, so that rows of X may come in blocks without changing the centre.
    `coincident`, a boolean (n, m), marks pairs that are one and the same point: they get an exact zero, or NaN where
    that point is not finite or the scale is zero or NaN.
    """
    nothing = (jnp.sum(0 * X, axis=1) / scale)[:, None]
    center = center_of(Y)
    X, Y = (X - center) / scale, (Y - center) / scale
    cross = jnp.matmul(X, Y.T, precision=HIGHEST)
    squares = jnp.sum(X * X, axis=1)[:, None] + jnp.sum(Y * Y, axis=1)[None, :] - 2 * cross
    squares = jnp.maximum(squares, 0)
    return squares if coincident is None else jnp.where(coincident, nothing, squares)


def squared_distances_direct(X: jax.Array, Y: jax.Array, scale: jax.Array) -> jax.Array:
    """Return (|x_i - y_j|^2 / scale^2)_ij, shape (n, m), as sums of squared differences; 0 where x_i is y_j."""
    differences = (X[:, None, :] - Y[None, :, :]) / scale
    return jnp.sum(differences * differences, axis=-1)


def safe_sqrt(s: jax.Array) -> jax.Array:
    """Return sqrt(s) with the derivative at s = 0 set to zero instead of infinity."""
    positive = s > 0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, s, 1)), s * 0)
