"""One pair of points, and all pairs of n points: chen2016, sections 2 to 4."""

from __future__ import annotations

import math
from typing import Any

import jax.scipy.special
import scipy  # its parts load when they are used first

from jaxkern.bounds._bound import Bound, certain, formula, namespace

FARTHEST = math.sqrt(2 - 2 * math.exp(-0.5))
"""The kernel distance at distance 1: D(r) >= .887 r for r <= 1."""

SMALLEST = 1e-4
"""Differences of nearly equal numbers lose too many digits for smaller relative errors."""


# ------------------------------------------------------------------------------------------- one pair: chen2016, 2-4


@formula
def kernel_value(*, eps: Any, num_frequencies: Any, as_printed: bool = False) -> Bound:
    """Bound |K(x, y) - Khat(x, y)| by eps for one pair, with probability 1 - 2 exp(-t eps^2 / 2).

    As printed the terms are said to lie in [-2, 2], which gives 1 - 2 exp(-t eps^2 / 8); they lie in [-1, 1].

    Returns
    -------
    Bound, valid for eps > 0; as printed, for 0 < eps < 1/2.

    Source: chen2016, Corollary 2.2; claim chen2016:cor2.2.
    """
    np = namespace(eps, num_frequencies)
    if as_printed:
        probability = 1 - 2 * np.exp(-num_frequencies * eps**2 / 8)
        return Bound(eps, probability, np.logical_and(eps > 0, eps < 0.5), "chen2016, Corollary 2.2 (printed)")
    probability = 1 - 2 * np.exp(-num_frequencies * eps**2 / 2)
    return Bound(eps, probability, eps > 0, "chen2016, Corollary 2.2 (range corrected)")


@formula
def far_distance(*, eps: Any, num_frequencies: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound |Dhat / D - 1| by eps for one pair at distance >= 1: an additive error of K is a relative one of D.

    As printed the proof asks for |K - Khat| <= eps / 4, whose probability is `kernel_value(eps=eps / 4)` as printed.
    Corrected: |Dhat^2 / D^2 - 1| <= eps follows from |K - Khat| <= (1 - exp(-1/2)) eps.

    Returns
    -------
    Bound, valid for distance >= 1 and 0 < eps < 1; as printed, for 0 < eps < 1/10.

    Source: chen2016, Lemma 2.2; claim chen2016:lem2.2.
    """
    np = namespace(eps, num_frequencies, distance)
    if as_printed:
        valid = np.logical_and(np.logical_and(eps > 0, eps < 0.1), distance >= 1)
        return Bound(eps, 1 - 2 * np.exp(-num_frequencies * eps**2 / 128), valid, "chen2016, Lemma 2.2 (printed)")
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), distance >= 1)
    probability = 1 - 2 * np.exp(-num_frequencies * (FARTHEST**2 / 2 * eps) ** 2 / 2)
    return Bound(eps, probability, valid, "chen2016, Lemma 2.2 (constants corrected)")


@formula
def distance_lower(*, distance: Any, as_printed: bool = False) -> Bound:
    """Bound D from *below* by .887 times the distance, sqrt(2 - 2 / sqrt(e)) exactly; as printed by .86 times it.

    Returns
    -------
    Bound whose value D is at least; deterministic, valid for distance <= 1.

    Source: chen2016, (2); claim chen2016:eq2.
    """
    factor, note = (0.86, " (printed)") if as_printed else (FARTHEST, " (sharp)")
    value = factor * distance
    return Bound(value, certain(value), distance <= 1, "chen2016, (2)" + note)


@formula
def squared_distance_lower(*, eps: Any, distance: Any) -> Bound:
    """Bound D^2 from *below* by (1 - eps) distance^2.

    Returns
    -------
    Bound whose value D^2 is at least; deterministic, valid for distance <= 2 sqrt(eps).

    Source: chen2016, (3); claim chen2016:eq3.
    """
    np = namespace(eps, distance)
    value = (1 - eps) * distance**2
    return Bound(value, certain(value), distance <= 2 * np.sqrt(eps), "chen2016, (3)")


@formula
def ratio_upper(*, second_moment: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound Dhat^2 / D^2 by S2 / (1 - r^2 / 4), S2 the mean of w^2 over the frequencies along x - y, r the distance.

    As printed the denominator is 1 - r^2 / 2, and all |w| r <= 1 is assumed; the assumption is not needed.

    Returns
    -------
    Bound, deterministic, valid for distance < 2; as printed, for distance <= 1.

    Source: chen2016, (4), left; claim chen2016:eq4.
    """
    if as_printed:
        value = second_moment / (1 - distance**2 / 2)
        return Bound(value, certain(value), distance <= 1, "chen2016, (4), left (printed)")
    value = second_moment / (1 - distance**2 / 4)
    return Bound(value, certain(value), distance < 2, "chen2016, (4), left (sharper)")


@formula
def ratio_lower(*, second_moment: Any, fourth_moment: Any, distance: Any) -> Bound:
    """Bound Dhat^2 / D^2 from *below* by S2 - r^2 S4 / 12, S2 and S4 the means of w^2 and w^4 along x - y.

    Returns
    -------
    Bound whose value the ratio is at least; deterministic, valid at every distance.

    Source: chen2016, (4), right; claim chen2016:eq4.
    """
    value = second_moment - distance**2 / 12 * fourth_moment
    return Bound(value, certain(value), distance >= 0, "chen2016, (4), right")


@formula
def chi_square_mean(*, eps: Any, num_frequencies: Any, as_printed: bool = False) -> Bound:
    """Bound |chi2_t / t - 1| by eps, by the exact exponents of the two tails.

    The probability is 1 - exp(-t (eps - log(1 + eps)) / 2) - exp(-t (-eps - log(1 - eps)) / 2). As printed:
    1 - 2 exp(-t eps^2 / 8), which holds and is two to six times too pessimistic in t.

    Returns
    -------
    Bound, valid for 0 < eps < 1.

    Source: chen2016, Lemma 3.2; claim chen2016:lem3.2.
    """
    np = namespace(eps, num_frequencies)
    valid = np.logical_and(eps > 0, eps < 1)
    if as_printed:
        return Bound(eps, 1 - 2 * np.exp(-num_frequencies * eps**2 / 8), valid, "chen2016, Lemma 3.2 (printed)")
    failure = _chernoff(np, num_frequencies, 1 + eps, 1 - eps)
    return Bound(eps, 1 - failure, valid, "chen2016, Lemma 3.2 (exact exponents)")


@formula
def success_limit(*, eps: Any, num_frequencies: Any, num_points: Any) -> Bound:
    """Bound the probability that |Dhat / D - 1| <= eps holds for all pairs of the worst n points: a lower bound on t.

    Let n / 2 pairs of points have orthogonal differences, and let the set shrink to a point. The n / 2 ratios become
    independent chi2_t / t, so the probability of success tends to (1 - p)^(n / 2), where p is the exact probability
    that chi2_t / t leaves [(1 - eps)^2, (1 + eps)^2]. It needs at least n / 2 dimensions.

    Returns
    -------
    Bound whose value the probability of success does not exceed; deterministic, valid for 0 < eps < 1 and n >= 2.

    Source: chen2016, Theorem 3.1 (which names no constant), made explicit; claim chen2016:thm3.1.
    """
    np = namespace(eps, num_frequencies, num_points)
    lower, upper = _gammas(np)
    half = num_frequencies / 2
    inside = 1 - upper(half, half * (1 + eps) ** 2) - lower(half, half * (1 - eps) ** 2)
    value = np.exp(num_points / 2 * np.log(np.maximum(inside, 1e-30)))
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), num_points >= 2)
    valid = np.logical_and(valid, num_frequencies < math.inf)  # where the gamma functions are not known
    return Bound(value, certain(value), valid, "chen2016, Theorem 3.1 (explicit)")


@formula
def log_mgf(*, s: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound log E exp(s (X - E X)) for X = 1 - cos(w r): the logarithm for E X chi2_1, -log(1 - 2 s mu) / 2 - s mu.

    Here mu = E X = 1 - exp(-r^2 / 2). As printed: s^2 r^4 / 4, which is false: as r tends to 0
    with s r^2 = y fixed the left side tends to -log(1 - y) / 2 - y / 2 = y^2 / 4 + y^3 / 6 + ...

    Returns
    -------
    Bound, deterministic, valid for every real s < 1 / (2 mu); as printed for 0 <= s < 1 / (2 r^2) and r <= 1.

    Source: chen2016, Lemma 4.1; Theorem A of docs/theory/chen2016.md; claims chen2016:lem4.1 and jaxkern:convex-order.
    """
    np = namespace(s, distance)
    if as_printed:
        valid = np.logical_and(np.logical_and(s >= 0, 2 * s * distance**2 < 1), distance <= 1)
        value = s**2 * distance**4 / 4
        return Bound(value, certain(value), valid, "chen2016, Lemma 4.1 (printed)")
    half = s * (1 - np.exp(-(distance**2) / 2))
    value = -np.log(np.maximum(1 - 2 * half, 1e-30)) / 2 - half
    return Bound(value, certain(value), 2 * half < 1, "chen2016, Lemma 4.1 (corrected)")


@formula
def sub_exponential(*, eps: Any, mean: Any, p: Any, q: Any, num_frequencies: Any) -> Bound:
    """Bound the relative deviation of a mean of t copies by eps, given log M(s) <= s^2 p / 2 for |s| <= 1 / q.

    The probability is 1 - 2 exp(-t min(eps^2 mean^2 / (2 p), eps mean / (2 q))). The paper asks for the hypothesis on
    0 <= s <= 1 / q only; then only the upper tail, without the factor 2, follows.

    Returns
    -------
    Bound, valid for eps, p and q > 0.

    Source: chen2016, (5); claim chen2016:eq5.
    """
    np = namespace(eps, mean, p, q, num_frequencies)
    exponent = np.minimum((eps * mean) ** 2 / (2 * p), eps * mean / (2 * q))
    valid = np.logical_and(eps > 0, np.logical_and(p > 0, q > 0))
    return Bound(eps, 1 - 2 * np.exp(-num_frequencies * exponent), valid, "chen2016, (5)")


@formula
def near_distance(*, eps: Any, num_frequencies: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound |Dhat / D - 1| by eps for one pair: `relative_distances` for two points, at any distance.

    As printed, for distance <= 1, the proof has 1 - 2 exp(-t eps^2 D^4 / (6 distance^4)). The statement holds, though
    the proof rests on Lemma 4.1, which does not.

    Returns
    -------
    Bound, valid for 0 < eps < 1; as printed for distance <= 1 as well.

    Source: chen2016, Lemma 4.2; claim chen2016:lem4.2.
    """
    np = namespace(eps, num_frequencies, distance)
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), distance > 0)
    if as_printed:
        squared = 2 - 2 * np.exp(-(distance**2) / 2)
        failure = 2 * np.exp(-num_frequencies * eps**2 * (squared / distance**2) ** 2 / 6)
        return Bound(eps, 1 - failure, np.logical_and(valid, distance <= 1), "chen2016, Lemma 4.2 (printed)")
    failure = _chernoff(np, num_frequencies, (1 + eps) ** 2, (1 - eps) ** 2)
    return Bound(eps, 1 - failure, valid, "chen2016, Lemma 4.2 (exact exponents)")


# -------------------------------------------------------------------------------------- all pairs of n points: 4.1


@formula
def relative_distances_closed_form(*, eps: Any, num_frequencies: Any, num_points: Any) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs by eps, for t >= log(2 N / delta) / (eps^2 (1 - eps / 2)^2).

    N is the number of pairs. `relative_distances` is sharper, and `relative_distances_sharp` more so.

    Returns
    -------
    Bound with probability 1 - 2 N exp(-t eps^2 (1 - eps / 2)^2), valid for 0 < eps < 1.

    Source: chen2016, Theorem 4.1 (which names no constant), made explicit; Theorem B of docs/theory/chen2016.md.
    `relative_distances` implies it, which the claim chen2016:thm4.1 checks.
    """
    np = namespace(eps, num_frequencies, num_points)
    failure = 2 * np.exp(-num_frequencies * (eps * (1 - eps / 2)) ** 2)
    return _all_pairs(np, eps, num_points, failure, "chen2016, Theorem 4.1 (explicit, closed form)")


@formula
def relative_distances(*, eps: Any, num_frequencies: Any, num_points: Any) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs of n points by eps, by Chernoff's bound for chi2_t / t.

    With u = (1 + eps)^2 and v = (1 - eps)^2 a pair fails with probability at most exp(-t (u - 1 - log u) / 2) +
    exp(-t (v - 1 - log v) / 2), whatever its distance and dimension.

    Returns
    -------
    Bound, valid for 0 < eps < 1.

    Source: chen2016, Theorem 4.1 (which names no constant), made explicit; Theorem B of docs/theory/chen2016.md;
    claim chen2016:thm4.1.
    """
    np = namespace(eps, num_frequencies, num_points)
    failure = _chernoff(np, num_frequencies, (1 + eps) ** 2, (1 - eps) ** 2)
    return _all_pairs(np, eps, num_points, failure, "chen2016, Theorem 4.1 (explicit)")


@formula
def relative_distances_sharp(*, eps: Any, num_frequencies: Any, num_points: Any) -> Bound:
    """Bound max |Dhat / D - 1| over all pairs of n points by eps, at a loss of about a factor e to chi2_t / t.

    A convex order bounds the tails of Z = Dhat^2 / D^2 by those means of Y = chi2_t / t: for every c < u,
    P(Z >= u) <= E(Y - c)_+ / (u - c), and for every c > v, P(Z <= v) <= E(c - Y)_+ / (c - v). Here u = (1 + eps)^2,
    v = (1 - eps)^2, and c is where the exponent of Y has fallen by one, at u - 2 u / (t (u - 1)) and
    v + 2 v / (t (1 - v)). The means are incomplete gamma functions. In float32 they lose digits when t is large; for
    sizes pass Python floats.

    Returns
    -------
    Bound, valid for 1e-4 <= eps < 1; rounding would matter below.

    Source: Theorem B of docs/theory/chen2016.md; claims jaxkern:relative-distances and
    jaxkern:relative-distances-pair.
    """
    np = namespace(eps, num_frequencies, num_points)
    failure = stop_loss(np, eps, num_frequencies)
    bound = _all_pairs(np, eps, num_points, failure, "jaxkern, Theorem B of chen2016")
    return Bound(bound.value, bound.probability, np.logical_and(bound.valid, eps >= SMALLEST), bound.source)


# ------------------------------------------------------------------------------------------------------------ shared


def _chernoff(np: Any, t: Any, u: Any, v: Any) -> Any:
    """Return Chernoff's bound of P(chi2_t / t >= u) + P(chi2_t / t <= v), for v < 1 < u; the second is 0 for v <= 0."""
    u, v = np.maximum(u, 1e-30), np.maximum(v, 1e-30)
    return np.exp(-t * (u - 1 - np.log(u)) / 2) + np.exp(-t * (v - 1 - np.log(v)) / 2)


def stop_loss(np: Any, eps: Any, t: Any) -> Any:
    """Return the two bounds of `relative_distances_sharp` for one pair, added up."""
    lower, upper = _gammas(np)
    half, error = t / 2, inside(np, eps)
    u, v = (1 + error) ** 2, (1 - error) ** 2
    c = np.maximum(u - 2 * u / (t * (u - 1)), 0.0)
    above = (upper(half + 1, half * c) - c * upper(half, half * c)) / (u - c)
    c = v + 2 * v / (t * (1 - v))
    return above + (c * lower(half, half * c) - lower(half + 1, half * c)) / (c - v)


def _all_pairs(np: Any, eps: Any, num_points: Any, failure: Any, source: str) -> Bound:
    """Return the bound eps with the failure probability of a pair times the number of pairs."""
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), num_points >= 1)
    return Bound(eps, 1 - num_points * (num_points - 1) / 2 * failure, valid, source)


def _gammas(np: Any) -> tuple[Any, Any]:
    """Return the regularised lower and upper incomplete gamma functions, in the arithmetic of `np`."""
    if np is jax.numpy:
        return jax.scipy.special.gammainc, jax.scipy.special.gammaincc
    return (
        lambda a, x: float(scipy.special.gammainc(a, x)),
        lambda a, x: float(scipy.special.gammaincc(a, x)),
    )


def inside(np: Any, eps: Any, most: float = 1.0) -> Any:
    """Return eps moved into (0, most), where formulas are defined; `valid` says where it was."""
    return np.minimum(np.maximum(eps, 1e-6), most - 1e-6)
