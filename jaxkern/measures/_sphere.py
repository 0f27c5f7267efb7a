"""The moment generating function of the inner product of two random directions."""

from fractions import Fraction
from functools import cache, partial

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import ArrayLike, Float

_ORDER = 64
"""Least dimension of the asymptotic series: its terms up to `_TERMS` then leave less than rounding in float64."""
_TERMS = 8


def sphere_mgf(u: Float[ArrayLike, ...], dim: int) -> jax.Array:
    """Return psi_d(u) = E exp(u <theta, theta'>) for independent directions theta, theta' uniform on the unit sphere.

    It is 0F1(; d/2; u^2/4) = Gamma(d/2) (2/u)^(d/2 - 1) I_(d/2 - 1)(u), for every d >= 1: cosh u for d = 1, I_0(u) for
    d = 2, sinh(u)/u for d = 3, and nearly exp(u^2 / (2 d)) for u far below d.

    Parameters
    ----------
    u : array of any shape and sign.
    dim : the dimension d of the space around the sphere, a static number >= 1.

    Returns
    -------
    Array of the shape and dtype of u; infinite where the value exceeds the range of the dtype (`log_sphere_mgf` does
    not). The relative error is a few times eps(dtype) * (1 + log psi).

    Notes
    -----
    Time O(1) per entry. The variances in amini2021, Example 5, are psi_d(2 x) - psi_d(x)^2; the square is missing in
    print, and the variance of <theta, theta'> is 1/d, not 1/(2 d) as in Lemma 6.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> sphere_mgf(jnp.arange(3.0), 100).shape
    (3,)
    """
    return jnp.exp(log_sphere_mgf(u, dim))


def log_sphere_mgf(u: Float[ArrayLike, ...], dim: int) -> jax.Array:
    """Return log E exp(u <theta, theta'>) for independent directions uniform on the unit sphere of R^d.

    The value keeps its relative accuracy as u goes to zero, where it is u^2 / (2 d), and as u grows.

    Parameters
    ----------
    u, dim : as in `sphere_mgf`.

    Notes
    -----
    Uniform asymptotic series of the Bessel function for dimensions above 64, and below them the recurrence
    psi_d = psi_(d+2) + u^2 psi_(d+4) / (d (d + 2)), whose terms are all positive. Time O(1) per entry.
    """
    return _log_sphere_mgf(checks.floating("u", u), dim=checks.count("dim", dim))


@partial(jax.jit, static_argnames=("dim",))
def _log_sphere_mgf(u: jax.Array, *, dim: int) -> jax.Array:
    steps = max(0, -(-(_ORDER - dim) // 2))
    top = dim + 2 * steps

    def down(
        j: jax.Array, state: tuple[jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array]:
        """Go from the dimension d + 2 to d; `ratio` is psi_(d+2) / psi_d."""
        total, ratio = state
        d = (top - 2 - 2 * j).astype(u.dtype)
        step = (u / d) * (u / (d + 2)) * ratio
        return total + jnp.log1p(step), 1 / (1 + step)

    start = (_log_top(u, top / 2 - 1), _ratio_top(u, top / 2 - 1))
    return lax.fori_loop(0, steps, down, start)[0]


def _log_top(u: jax.Array, order: float) -> jax.Array:
    """Return log psi for the order nu = d/2 - 1 by the uniform series, without its value at u = 0, which is zero."""
    z = u / order
    w = z * z / (1 + jnp.sqrt(1 + z * z))  # sqrt(1 + z^2) - 1
    return order * (w - jnp.log1p(w / 2)) - jnp.log1p(w) / 2 + _corrections(w, order)


def _ratio_top(u: jax.Array, order: float) -> jax.Array:
    """Return psi_(d+2) / psi_d for the order nu = d/2 - 1: the difference of two logarithms, taken term by term."""
    low, high = jnp.sqrt(order**2 + u * u), jnp.sqrt((order + 1) ** 2 + u * u)
    leading = (2 * order + 1) / (low + high) - 1
    growth = (1 + (2 * order + 1) / (low + high)) / (
        order + low
    )  # relative growth of order + sqrt(order^2 + u^2)
    powers = order * (jnp.log1p(growth) - jnp.log1p(jnp.asarray(1 / order, u.dtype)))
    powers = powers + jnp.log((order + 1 + high) / (2 * order + 2))
    roots = jnp.log(high / low * (order / (order + 1))) / 2
    w = [u * u / o / (o + s) for o, s in ((order, low), (order + 1, high))]
    return jnp.exp(
        leading
        - powers
        - roots
        + _corrections(w[1], order + 1)
        - _corrections(w[0], order)
    )


def _corrections(w: jax.Array, order: float) -> jax.Array:
    """Return sum_k (D_k(p) - D_k(1)) / nu^k at p = 1/(1 + w); the factor 1 - p keeps small values accurate."""
    p = 1 / (1 + w)
    total = jnp.zeros_like(p)
    for c in reversed(_divided(order)):
        total = total * p + c
    return -total * (w * p)


@cache
def _divided(order: float) -> tuple[float, ...]:
    """Return the coefficients, lowest first, of sum_k (D_k(p) - D_k(1)) / nu^k divided by p - 1."""
    total = [Fraction(0)] * (3 * _TERMS)
    for k, polynomial in enumerate(_log_debye(_TERMS), 1):
        quotient = Fraction(0)
        for power in range(len(polynomial) - 1, 0, -1):
            quotient += polynomial[power]
            total[power - 1] += quotient / Fraction(order) ** k
    return tuple(float(c) for c in total)


@cache
def _log_debye(num: int) -> list[list[Fraction]]:
    """Return polynomials D_1, ..., D_num in p with log sum_k U_k(p) / nu^k = sum_k D_k(p) / nu^k, U_k those of Debye.

    U_(k+1) = p^2 (1 - p^2) U_k' / 2 + int_0^p (1 - 5 t^2) U_k dt / 8, in exact fractions.
    """
    U = [[Fraction(1)]]
    for _ in range(num):
        last, new = U[-1], [Fraction(0)] * (len(U[-1]) + 3)
        for power, c in enumerate(last):
            new[power + 1] += c * (Fraction(power, 2) + Fraction(1, 8 * (power + 1)))
            new[power + 3] -= c * (Fraction(power, 2) + Fraction(5, 8 * (power + 3)))
        U.append(new)
    D: list[list[Fraction]] = []
    for k in range(1, num + 1):
        total = list(U[k])
        for j in range(1, k):
            for a, x in enumerate(D[j - 1]):
                for b, y in enumerate(U[k - j]):
                    total[a + b] -= Fraction(j, k) * x * y
        D.append(total)
    return D
