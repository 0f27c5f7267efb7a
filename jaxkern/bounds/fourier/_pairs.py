"""All pairs of n points: chen2016, sections 1.1, 3 and 4.1."""

import dataclasses
import math
from functools import partial
from typing import Any

import jax.numpy as jnp
import jax.scipy.special
import numpy as np
import scipy  # its parts load when they are used first

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    formula,
    is_other,
    one_at_a_time,
    surely,
    xp,
)
from jaxkern.bounds.fourier._pair import fails, inside, log_chernoff

SMALLEST = 1e-4
"""Differences of nearly equal numbers lose too many digits for smaller relative errors."""

_TERMS = 1024
"""Of the sum over a negative binomial number; they cover 24 standard deviations, and the rest is bounded."""


@formula
def kernel_values(*, eps: Real, num_frequencies: Real, num_points: Real) -> Bound:
    """Bound max |K(x, y) - Khat(x, y)| over all pairs of n points by eps: `kernel_value` and a union bound.

    Parameters
    ----------
    eps, num_frequencies, num_points : error, t frequencies and n points.

    Returns
    -------
    Bound with probability 1 - n (n - 1) exp(-t eps^2 / 2), valid for eps > 0.

    Source: chen2016, Section 1.1 (which names no constant), made explicit; claim chen2016:sec1.1-points.
    """
    log_failure = xp.log(num_points * (num_points - 1)) - num_frequencies * eps**2 / 2
    return fails(eps, log_failure, eps > 0, "chen2016, Section 1.1 (explicit)")


@formula
def kernel_values_shifted(*, eps: Real, num_features: Real, num_points: Real) -> Bound:
    """Bound max |K(x, y) - Khat(x, y)| over n points by eps for shifted features, a point with itself included.

    Parameters
    ----------
    eps, num_features, num_points : error, m features and n points.

    Returns
    -------
    Bound with probability 1 - n (n + 1) exp(-m eps^2 / 8), valid for eps > 0.

    Source: ghashami2016, Section 1.1 (which names no constant), made explicit; claim ghashami2016:features-entries.
    """
    log_failure = xp.log(num_points * (num_points + 1)) - num_features * eps**2 / 8
    return fails(
        eps,
        log_failure,
        eps > 0,
        "ghashami2016, Section 1.1 (random features, n points)",
    )


@formula
def success_limit(*, eps: Real, num_frequencies: Real, num_points: Real) -> Bound:
    """Bound the probability that |Dhat / D - 1| <= eps holds for all pairs of the worst n points: a lower bound on t.

    Let n / 2 pairs of points have orthogonal differences, and let the set shrink to a point. The n / 2 ratios become
    independent chi2_t / t, so they all succeed with probability (1 - p)^(n / 2) in the limit, where p is the exact
    probability that chi2_t / t leaves [(1 - eps)^2, (1 + eps)^2]. The other pairs can only lower it. It needs at least
    n / 2 dimensions.

    Parameters
    ----------
    eps, num_frequencies, num_points : relative error, t frequencies and n points.

    Returns
    -------
    Bound whose value the probability of success does not exceed; deterministic, valid for 0 < eps < 1 and n >= 2.

    Source: chen2016, Theorem 3.1 (which names no constant), made explicit; claim chen2016:thm3.1.
    """
    half = num_frequencies / 2
    within = (
        1
        - _upper_gamma(half, half * (1 + eps) ** 2)
        - _lower_gamma(half, half * (1 - eps) ** 2)
    )
    valid = (eps > 0) & (eps < 1) & (num_points >= 2)
    valid = valid & (
        num_frequencies < math.inf
    )  # where the gamma functions are not known
    return surely(
        xp.exp(num_points / 2 * xp.log(xp.maximum(within, 1e-30))),
        valid,
        "chen2016, Theorem 3.1 (explicit)",
    )


@formula
@one_at_a_time
def simplex_success_limit(
    *, eps: Real, num_frequencies: Real, num_points: Real
) -> Bound:
    """Bound the probability that |Dhat / D - 1| <= eps for all pairs of a regular simplex that shrinks to a point.

    With N = n (n - 1) / 2, p the probability that chi2_t / t leaves [(1 - eps)^2, (1 + eps)^2], and p2 that two pairs
    with a point in common both do, some pair fails with probability at least
    N p / (1 + (n - 2) (n - 3) p / 2 + 2 (n - 2) p2 / p) in the limit. It needs n - 1 dimensions, and asks for about
    twice as many frequencies as `success_limit`, to first order those that `relative_distances` says are enough.

    Parameters
    ----------
    eps, num_frequencies, num_points : relative error, t frequencies and n points.

    Returns
    -------
    Bound whose value the probability of success does not exceed; deterministic, valid for 0 < eps < 1 and n >= 2.

    Notes
    -----
    p2 is a sum over a negative binomial number, of 1,024 terms: exact up to t = 8,000, from above beyond.

    Source: Theorem G of docs/theory/chen2016.md; claim jaxkern:simplex-success.
    """
    half, error, n = (
        xp.minimum(xp.maximum(num_frequencies / 2, 0.5), 1e15),
        inside(eps),
        num_points,
    )
    p = xp.maximum(_outside(half, half, error, 1.0), 1e-30)
    both = xp.minimum(_both_outside(half, error) / p, 1.0)
    value = 1 - n * (n - 1) / 2 * p / (
        1 + (n - 2) * (n - 3) / 2 * p + 2 * (n - 2) * both
    )
    valid = (eps > 0) & (eps < 1) & (num_points >= 2) & (num_frequencies < math.inf)
    return surely(value, valid, "jaxkern, Theorem G of chen2016")


def _outside(above: Any, below: Any, eps: Real, unit: float, half: Any = None) -> Any:
    """Return P(unit chi2 >= t (1 + eps)^2) + P(unit chi2 <= t (1 - eps)^2) for chi2 of 2 above and 2 below degrees."""
    half = above if half is None else half
    return _upper_gamma(above, half * (1 + eps) ** 2 / unit) + _lower_gamma(
        below, half * (1 - eps) ** 2 / unit
    )


def _both_outside(half: Real, eps: Real) -> Any:
    """Return the probability that two pairs with a point in common leave [(1 - eps)^2, (1 + eps)^2], from above.

    It is the mean of q^2 over a negative binomial J, and q the probability that 3/4 chi2 of t + 2 J degrees does.
    """
    given = [v.dtype for v in (half, eps) if isinstance(v, jax.Array)]
    in_jax = bool(given)
    wide = next((d for d in given if d.itemsize > 2), jnp.float32)
    dtype = wide if in_jax else float
    xnp = jnp if in_jax else np
    exp = np.frompyfunc(xp.exp, 1, 1) if is_other(half) else xnp.exp
    if in_jax:
        half, eps = (jnp.asarray(v, dtype) for v in (half, eps))
    spread = xp.sqrt(half) * (2 / 3)
    step = xp.floor(24 * spread / (_TERMS - 1)) + 1
    first = xp.maximum(xp.floor(half / 3 - 12 * spread), 0.0)
    low = first + step * xnp.arange(_TERMS, dtype=dtype)
    high = low + step - 1

    log_gamma = partial(gamma, "gammaln")

    def weight(j: Any) -> Any:
        logs = log_gamma(half + j) - log_gamma(half) - log_gamma(j + 1)
        return exp(logs + half * xp.log(exact(0.75, half)) - j * xp.log(exact(4, half)))

    # Weights rise up to the mode and fall from there on. Those before and after are below a geometric series.
    largest = weight(xnp.clip(xp.floor((half - 4) / 3) + 1, low, high))
    total = step * xnp.sum(
        largest * _outside(half + high, half + low, eps, 0.75, half) ** 2
    )
    after = xp.maximum((half + high[-1]) / (high[-1] + 1), 1.0) / 4
    before = 4 * first / xp.maximum(half + first - 1, 0.5)
    total = (
        total
        + weight(high[-1]) * after / (1 - after)
        + weight(low[0]) * before / (1 - before)
    )
    if in_jax:
        return total.astype(given[0])
    return total if is_other(half) else float(total)


@formula
def relative_distances_closed_form(
    *, eps: Real, num_frequencies: Real, num_points: Real
) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs by eps, for t >= log(2 N / delta) / (eps^2 (1 - eps / 2)^2).

    N is the number of pairs. `relative_distances` is sharper, and `relative_distances_sharp` more so.

    Parameters
    ----------
    eps, num_frequencies, num_points : relative error, t frequencies and n points.

    Returns
    -------
    Bound with probability 1 - 2 N exp(-t eps^2 (1 - eps / 2)^2), valid for 0 < eps < 1.

    Source: chen2016, Theorem 4.1 (which names no constant), made explicit; Theorem B of docs/theory/chen2016.md.
    `relative_distances` implies it, which the claim chen2016:thm4.1 checks.
    """
    log_failure = xp.log(exact(2, eps)) - num_frequencies * (eps * (1 - eps / 2)) ** 2
    return _all_pairs(
        eps, num_points, log_failure, "chen2016, Theorem 4.1 (explicit, closed form)"
    )


@formula
def relative_distances(*, eps: Real, num_frequencies: Real, num_points: Real) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs of n points by eps, by Chernoff's bound for chi2_t / t.

    With u = (1 + eps)^2 and v = (1 - eps)^2 a pair fails with probability at most exp(-t (u - 1 - log u) / 2) +
    exp(-t (v - 1 - log v) / 2), whatever its distance and dimension.

    Parameters
    ----------
    eps, num_frequencies, num_points : relative error, t frequencies and n points.

    Returns
    -------
    Bound, valid for 0 < eps < 1.

    Source: chen2016, Theorem 4.1 (which names no constant), made explicit; Theorem B of docs/theory/chen2016.md;
    claim chen2016:thm4.1.
    """
    log_failure = log_chernoff(num_frequencies, (1 + eps) ** 2, (1 - eps) ** 2)
    return _all_pairs(eps, num_points, log_failure, "chen2016, Theorem 4.1 (explicit)")


@formula
def relative_distances_sharp(
    *, eps: Real, num_frequencies: Real, num_points: Real
) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs of n points by eps, at a loss of about a factor e to chi2_t / t.

    A convex order bounds the tails of Z = Dhat^2 / D^2 by those means of Y = chi2_t / t: for every c < u,
    P(Z >= u) <= E(Y - c)_+ / (u - c), and for every c > v, P(Z <= v) <= E(c - Y)_+ / (c - v). Here u = (1 + eps)^2,
    v = (1 - eps)^2, and c is where the exponent of Y has fallen by one, at u - 2 u / (t (u - 1)) and
    v + 2 v / (t (1 - v)). The means are incomplete gamma functions. In float32 they lose digits when t is large; for
    sizes pass Python floats.

    Parameters
    ----------
    eps, num_frequencies, num_points : relative error, t frequencies and n points.

    Returns
    -------
    Bound, valid for 1e-4 <= eps < 1; rounding would matter below.

    Source: Theorem B of docs/theory/chen2016.md; claims jaxkern:relative-distances and
    jaxkern:relative-distances-pair.
    """
    log_failure = xp.log(stop_loss(eps, num_frequencies))
    bound = _all_pairs(eps, num_points, log_failure, "jaxkern, Theorem B of chen2016")
    return dataclasses.replace(bound, valid=bound.valid & (eps >= SMALLEST))


def stop_loss(eps: Real, t: Real) -> Any:
    """Return the two bounds of `relative_distances_sharp` for one pair, added up."""
    half, error = t / 2, inside(eps)
    u, v = (1 + error) ** 2, (1 - error) ** 2
    c = xp.maximum(u - 2 * u / (t * (u - 1)), 0.0)
    above = (_upper_gamma(half + 1, half * c) - c * _upper_gamma(half, half * c)) / (
        u - c
    )
    c = v + 2 * v / (t * (1 - v))
    return above + (
        c * _lower_gamma(half, half * c) - _lower_gamma(half + 1, half * c)
    ) / (c - v)


def _all_pairs(eps: Real, num_points: Real, log_failure: Real, source: str) -> Bound:
    """Return the bound eps with the failure probability of a pair times the number of pairs."""
    valid = (eps > 0) & (eps < 1) & (num_points >= 1)
    return fails(
        eps, xp.log(num_points * (num_points - 1) / 2) + log_failure, valid, source
    )


def gamma(name: str, *given: Real) -> Any:
    """Return a function of scipy.special, in the arithmetic of its arguments."""
    if any(isinstance(v, np.ndarray) and v.dtype.hasobject for v in given):
        return np.frompyfunc(partial(gamma, name), len(given), 1)(*given)
    like = next(filter(is_other, given), None)
    if like is not None:
        return _gamma_of_other(name, *(exact(v, like) for v in given))
    if any(isinstance(v, jax.Array) for v in given):
        return getattr(jax.scipy.special, name)(*given)
    found = getattr(scipy.special, name)(*given)
    return found if isinstance(given[0], np.ndarray) else float(found)


def _gamma_of_other(name: str, shape: Any, *given: Any) -> Any:
    if not hasattr(shape, "context"):
        return getattr(shape, name)(*given)
    context = shape.context
    if name == "gammaln":
        return context.loggamma(shape)
    limits = (0, *given) if name == "gammainc" else given
    return context.gammainc(shape, *limits, regularized=True)


_lower_gamma, _upper_gamma = partial(gamma, "gammainc"), partial(gamma, "gammaincc")
"""The regularised incomplete gamma function, and 1 minus it, accurate where that is small."""
