"""One-dimensional profiles of radial kernels, with derivatives that are exact at zero distance."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern._distances import safe_sqrt


@jax.custom_jvp
def matern32(s: jax.Array) -> jax.Array:
    """Return (1 + a) exp(-a), a = sqrt(s); its derivative in s is -exp(-a) / 2, finite at zero."""
    a = safe_sqrt(s)
    return (1 + a) * jnp.exp(-a)


@matern32.defjvp
def _matern32_jvp(primals: Any, tangents: Any) -> Any:
    (s,), (t,) = primals, tangents
    return matern32(s), -jnp.exp(-safe_sqrt(s)) / 2 * t


@jax.custom_jvp
def matern52(s: jax.Array) -> jax.Array:
    """Return (1 + a + a^2 / 3) exp(-a), a = sqrt(s); its derivative in s is -matern32(s) / 6."""
    a = safe_sqrt(s)
    return (1 + a + s / 3) * jnp.exp(-a)


@matern52.defjvp
def _matern52_jvp(primals: Any, tangents: Any) -> Any:
    (s,), (t,) = primals, tangents
    return matern52(s), -matern32(s) / 6 * t


def erlang_tail(a: jax.Array, shape: int) -> jax.Array:
    """Return 1 - exp(-a) sum_{j < shape} a^j / j! for a >= 0, without cancellation at small a.

    Below one the complementary series, whose terms are all positive, is summed; 20 terms leave less than eps of
    float64.
    """
    small = a < 1
    t = jnp.where(small, a, 0)
    series = jnp.zeros_like(t)
    for j in range(shape + 20, shape - 1, -1):
        series = series * t + 1 / math.factorial(j)
    head = sum(a**j / math.factorial(j) for j in range(1, shape))
    large = -jnp.expm1(-a) - head * jnp.exp(-a)
    return jnp.where(small, jnp.exp(-t) * t**shape * series, large)
