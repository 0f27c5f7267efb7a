"""Features of points, filled up with columns of zeros so that maps of neighbouring sizes share compiled programs."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

_COLUMNS, _MANY_COLUMNS = 64, 256


def features(phi: Any, points: jax.Array) -> jax.Array:
    """Return the features of points, filled up with columns of zeros so that neighbouring sizes share programs.

    To the next multiple of 64, or of an eighth of the next power of two where that is more: a quarter too many at most,
    and four programs while sizes double.
    """
    Z = phi(points)
    step = max(_COLUMNS, 1 << max((Z.shape[1] - 1).bit_length() - 3, 0))
    return jnp.pad(Z, ((0, 0), (0, -Z.shape[1] % step)))


@jax.jit
def embed(phi: Any, X: jax.Array) -> jax.Array:
    """Return phi(X), (n, num_features), with columns of zeros up to a multiple of 256."""
    Z = phi(X)
    return jnp.pad(Z, ((0, 0), (0, -Z.shape[1] % _MANY_COLUMNS)))


def ranged(Z: jax.Array) -> jax.Array:
    """Return the features over the power of two at their largest entry, which rounds nothing.

    What Kernel JL keeps may be too small for its square.
    """
    exponent = jnp.frexp(jnp.max(jnp.abs(Z)))[1]
    return jnp.ldexp(Z, -exponent)


def scaled(Z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the features at a scale of 1 less their mean, and the mean squared length before that is taken off."""
    Z = ranged(Z)
    return Z - jnp.mean(Z, axis=0, keepdims=True), jnp.mean((Z * Z).sum(axis=1))
