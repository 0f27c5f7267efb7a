"""All points of a ball, and the fewest dimensions that any map needs: chen2016, sections 5 and 6."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its parts load when they are used first

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    floats_only,
    formula,
    one_at_a_time,
    surely,
    xp,
)
from jaxkern.bounds.fourier._given import tails
from jaxkern.bounds.fourier._pair import fails, inside
from jaxkern.bounds.fourier._pairs import SMALLEST

_MOST = 60.0
"""Exponents are cut here: a failure probability of exp(60) says no more than one of exp(600), and does not overflow."""

_SHELLS = 64
"""Between the part near zero and the diameter; those that are not needed count nothing."""

_SHARES = np.linspace(0.05, 0.95, 37).tolist()
"""Of the error that a net may have, tried in turn."""


@formula
def gradient(
    *,
    frequency_energy: Real,
    distance: Real,
    dim: Real,
    num_frequencies: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |grad Dhat^2| by (2 / t) sum |w_i|^2 times the distance.

    As printed sqrt(dim) sum |w_i|^2 times the distance: the factor 2 / t is missing, which makes it false for
    t sqrt(dim) < 2.

    Parameters
    ----------
    frequency_energy, num_frequencies : sum |w_i|^2, and t frequencies.
    distance, dim : |x - y|, and the dimension of the points, which counts only as printed.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, deterministic, valid at every distance.

    Source: chen2016, Lemma 5.1; claim chen2016:lem5.1.
    """
    if as_printed:
        return surely(
            xp.sqrt(dim) * frequency_energy * distance,
            distance >= 0,
            "chen2016, Lemma 5.1 (printed)",
        )
    return surely(
        2 / num_frequencies * frequency_energy * distance,
        distance >= 0,
        "chen2016, Lemma 5.1 (corrected)",
    )


@formula
def lipschitz_squared(
    *, radius: Real, dim: Real, num_frequencies: Real, tau: Real
) -> Bound:
    """Bound the Lipschitz constant of Dhat^2 over differences of length <= radius by 2 radius |A|, A = sum w w' / t.

    And |A| <= (1 + (sqrt(dim) + sqrt(2 tau)) / sqrt(t))^2. The paper has O(radius t sqrt(dim) log n), from
    |w_i|^2 = O(log n), with n the size of a net, so that log n >= dim; this has neither the factor t nor the logarithm.

    Parameters
    ----------
    radius, dim : largest length of a difference, and dimension of the points.
    num_frequencies, tau : t frequencies, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: chen2016, Corollary 5.1, corrected; claim chen2016:cor5.1.
    """
    root = 1 + (xp.sqrt(dim) + xp.sqrt(2 * tau)) / xp.sqrt(num_frequencies)
    return fails(
        2 * radius * root**2, -tau, tau > 0, "chen2016, Corollary 5.1 (corrected)"
    )


@formula
@floats_only
@one_at_a_time
def ball(
    *,
    eps: Real,
    num_frequencies: Real,
    dim: Real,
    diameter: Real,
    tau: Real = 7.0,
    near: Real = 0.1,
    shell: Real = 1.5,
    reach: Real = 0.15,
) -> Bound:
    """Bound |Dhat / D - 1| by eps for *all* points of R^dim at distance <= diameter, uncountably many.

    Where Dhat^2 - (1 + eps)^2 D^2 is largest its gradient vanishes, so that the ratio stays large in a neighbourhood of
    radius about 1 / sqrt(t), and the mean of exp(s Dhat^2 / D^2) over a shell, which is known, bounds the probability.
    Every value of tau, near, shell and reach gives a true statement, and `jaxkern.plan.fourier` looks for good ones.
    The formula is in Theorem H of docs/theory/chen2016.md.

    Parameters
    ----------
    eps, num_frequencies, dim, diameter : relative error, t frequencies, dimension, and largest distance.
    tau, near, shell, reach : free. A share of the failure probability, the share in (0, 1) of the error that is left
        for the curvature near zero, the ratio > 1 of radii of neighbouring shells, and the radius of a neighbourhood
        over that of its shell, in (0, 1/2].

    Returns
    -------
    Bound, valid for 1e-4 <= eps < 1 and diameters up to shell^64 times the radius where the part near zero ends.

    Source: chen2016, Lemma 5.2, Corollary 5.2 and Theorem 5.1 (which name no constants), made explicit; claim
    chen2016:thm5.1.
    """
    given = (eps, num_frequencies, dim, diameter, tau, near, shell, reach)
    jax_dtype = next((v.dtype for v in given if isinstance(v, jax.Array)), None)
    shells = shells_of(
        np if jax_dtype is None else jnp,
        jax_dtype or float,
        eps,
        diameter,
        shell,
        reach,
    )
    return of_shells(
        shells, eps, num_frequencies, dim, diameter, tau, near, shell, reach
    )


def shells_of(
    xnp: Any, dtype: Any, eps: Real, diameter: Real, shell: Real, reach: Real
) -> tuple[Any, ...]:
    """Return the inner and outer radii of shells, the outermost a sphere, and what Chernoff's bound has in each.

    Their radii do not depend on the diameter, so that a larger ball hardly ever needs fewer frequencies.
    """
    logs = xp.log(xp.maximum(shell, 1 + 1e-6))
    powers = xnp.ceil(xnp.log(diameter) / logs) - 1 - xnp.arange(_SHELLS, dtype=dtype)
    inner = xnp.concatenate(
        [xnp.asarray(diameter, dtype)[None], xnp.exp(logs * powers)]
    )
    error = inside(eps)
    found = tails(
        xnp,
        ((1 + error) ** 2, (1 - error) ** 2),
        ((1 - xnp.clip(reach, 1e-6, 0.5)) * inner) ** 2,
    )
    return inner, xnp.concatenate([inner[:1], inner[:-1]]), found


@np.errstate(
    divide="ignore"
)  # where nothing of a neighbourhood is within reach the bound is infinite
def of_shells(
    shells: tuple[Any, ...],
    eps: Real,
    t: Real,
    d: Real,
    diameter: Real,
    tau: Real,
    near: Real,
    shell: Real,
    reach: Real,
) -> Bound:
    """Return `ball` with the shells that belong to its eps, diameter, shell and reach."""
    inner, outer, found = shells
    xnp, special = (
        (np, scipy.special)
        if isinstance(inner, np.ndarray)
        else (jnp, jax.scipy.special)
    )
    error, share = inside(eps), inside(near)
    u, v = (1 + error) ** 2, (1 - error) ** 2
    lowest = v + share * (
        1 - v
    )  # eigenvalues of A are between this and the next but one
    squared = xp.minimum(
        12 / _extremes(d, t, tau)[1] ** 2 * (1 - v / lowest), 4 * share * (1 - 1 / u)
    )
    highest = u * (1 - squared / 4)

    def of_sphere(value: Any, z: Any) -> Any:
        half = (d - 1) / 2
        share = special.gammainc(xnp.maximum(half, 1e-9), z)
        logs = (
            math.log(math.pi) / 2
            - special.gammaln(d / 2)
            + half * xnp.log(z)
            - xnp.log(share)
        )
        return xnp.exp(xnp.minimum(logs - t * (value - 1 - xnp.log(value)) / 2, _MOST))

    failure = xp.exp(-tau) + of_sphere(highest, t * (highest - 1) / 2)
    failure = failure + of_sphere(lowest, t * (1 / lowest - 1) / 2 * (highest - lowest))
    within = xnp.clip(reach, 1e-6, 0.5) * inner
    least, most = inner - within, outer + within
    bump = xnp.minimum(xnp.maximum(least, math.sqrt(3)), most)
    curves = u * xnp.exp(-(least**2) / 2), v * (bump**2 - 1) * xnp.exp(-(bump**2) / 2)
    for curve, (_, tilt, rate) in zip(curves, found, strict=True):
        k = t * tilt * (highest + curve) / (-2 * xnp.expm1(-(least**2) / 2))
        x = xnp.minimum(within, xnp.sqrt((d / 2 + 1) / k))
        volume = d * xnp.log(outer + x) + xnp.log1p(-(((inner - x) / (outer + x)) ** d))
        balls = (
            d / 2 * xnp.log(k)
            - special.gammaln(d / 2 + 1)
            - xnp.log(special.gammainc(d / 2, k * x**2))
        )
        logs = (
            -math.log(2) * (outer > inner).astype(inner.dtype)
            + volume
            + balls
            - t * rate
        )
        failure = failure + xnp.sum(
            xnp.where(outer**2 > squared, xnp.exp(xnp.minimum(logs, _MOST)), 0.0)
        )
    valid = (
        (eps >= SMALLEST)
        & (eps < 1)
        & (tau > 0)
        & (near > 0)
        & (near < 1)
        & (shell > 1)
    )
    valid = valid & (reach > 0) & (reach <= 0.5) & (diameter > 0) & (d >= 1)
    valid = valid & (inner[-1] ** 2 <= squared) & (t < math.inf)
    if xnp is np:
        failure, valid = float(failure), bool(valid)
    return fails(eps, xp.log(failure), valid, "chen2016, Theorem 5.1 (explicit)")


@formula
def vanishing_ball(*, eps: Real, num_frequencies: Real, dim: Real, tau: Real) -> Bound:
    """Bound from *below* the largest radius at which |Dhat / D - 1| <= eps for all differences within it.

    The part of `ball` near zero: the extreme eigenvalues of A = sum w w' / t decide, and no net is needed.

    Parameters
    ----------
    eps, num_frequencies, dim, tau : relative error, t frequencies, dimension, and exponent of the failure probability.

    Returns
    -------
    Bound whose value the radius is at least, with probability 1 - 3 exp(-tau); valid for tau > 0 and
    (sqrt(dim) + sqrt(2 tau)) / sqrt(t) < eps < 1.

    Source: chen2016, Lemma 5.2 (which defines no radius), made explicit in docs/theory/chen2016.md; claim
    chen2016:lem5.2.
    """
    b, longest = _extremes(dim, num_frequencies, tau)
    valid = (b < eps) & (eps < 1) & (tau > 0) & (num_frequencies < math.inf)
    return fails(
        _near(eps, b, longest),
        xp.log(exact(3, tau)) - tau,
        valid,
        "jaxkern, Lemma 5.2 of chen2016",
    )


@formula
def ball_additive(
    *, eps: Real, num_frequencies: Real, dim: Real, diameter: Real, tau: Real
) -> Bound:
    """Bound |Khat - K| by eps for *all* differences of R^dim of length <= diameter, by a net of the best mesh.

    Parameters
    ----------
    eps, num_frequencies, dim, diameter : error, t frequencies, dimension, and largest distance.
    tau : free, a share of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau) - 2 (size of the net) exp(-t (share eps)^2 / 2), valid for eps, tau and
    diameter > 0.

    Source: Theorem D of docs/theory/chen2016.md; claim chen2016:sec1.1-ball.
    """
    b = (xp.sqrt(dim) + xp.sqrt(2 * tau)) / xp.sqrt(num_frequencies)
    net = math.inf
    for share in _SHARES:
        mesh = eps * (1 - share) / (1 + b + xp.exp(exact(-0.5, eps)))
        points = dim * xp.log1p(2 * diameter / mesh)
        net = xp.minimum(
            net,
            2
            * xp.exp(
                xp.minimum(points - num_frequencies * (share * eps) ** 2 / 2, _MOST)
            ),
        )
    valid = (eps > 0) & (tau > 0) & (diameter > 0)
    return fails(
        eps, xp.log(net + xp.exp(-tau)), valid, "jaxkern, Theorem D of chen2016"
    )


@formula
def dimension_limit(*, eps: Real, dim: Real, radius: Real) -> Bound:
    """Bound from *below* the dimension of any unit-norm map h with |K(x, y) - <h(x), h(y)>| <= eps on a ball.

    With n = (radius / sqrt(2 log(1 / eps)))^dim, the size of a packing, it is the largest over k = 1, ..., 32 of
    (k / e) (min(n, (2 eps)^(-2 k)) / 2)^(1 / k) - k + 1, from the rank of the k-th Hadamard power of the Gram matrix.

    Parameters
    ----------
    eps, dim, radius : error, dimension of the ball, and its radius.

    Returns
    -------
    Bound whose value the dimension is at least; deterministic, valid for 0 < eps < 1/4 and n >= 1.

    Source: chen2016, Lemma 6.1 (which names no constant, and does not ask for unit norm), made explicit; claim
    chen2016:lem6.1.
    """
    error = inside(eps, 0.25)
    log_n = dim * xp.log(xp.maximum(radius / xp.sqrt(2 * xp.log(1 / error)), 1e-30))
    euler = xp.exp(exact(1.0, eps))
    log_two = xp.log(exact(2.0, eps))
    value = exact(1.0, eps)
    for k in range(1, 33):
        power = xp.minimum(
            log_n, -2 * k * xp.log(2 * error)
        )  # n / (1 + n x) >= min(n, 1 / x) / 2
        value = xp.maximum(value, k / euler * xp.exp((power - log_two) / k) - k + 1)
    valid = (eps > 0) & (eps < 0.25) & (log_n >= 0)
    return surely(value, valid, "chen2016, Lemma 6.1 (explicit)")


def _extremes(dim: Real, t: Real, tau: Real) -> tuple[Any, Any]:
    """Return how far |A|^(1/2) may be from 1, and the length of the longest frequency."""
    b = (xp.sqrt(dim) + xp.sqrt(2 * xp.maximum(tau, 0.0))) / xp.sqrt(t)
    return b, xp.sqrt(dim) + xp.sqrt(2 * xp.maximum(tau + xp.log(t), 0.0))


def _near(eps: Real, b: Real, longest: Real) -> Any:
    """Return the radius up to which those two keep Dhat / D within eps of 1."""
    error = inside(eps)
    near = xp.minimum(b, error * (1 - 1e-9))
    upper = 4 * (1 - ((1 + near) / (1 + error)) ** 2)
    lower = 12 * (1 - ((1 - error) / (1 - near)) ** 2) / longest**2
    return xp.sqrt(xp.minimum(upper, lower))
