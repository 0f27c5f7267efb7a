"""One pair of points: chen2016, sections 2 to 4."""

from typing import Any

from jaxkern.bounds._bound import Bound, Real, exact, formula, surely, xp


@formula
def kernel_value(
    *, eps: Real, num_frequencies: Real, as_printed: bool = False
) -> Bound:
    """Bound |K(x, y) - Khat(x, y)| by eps for one pair, with probability 1 - 2 exp(-t eps^2 / 2).

    As printed the terms are said to lie in [-2, 2], which gives 1 - 2 exp(-t eps^2 / 8); they lie in [-1, 1].

    Parameters
    ----------
    eps, num_frequencies, as_printed : error, t frequencies, and whether as printed.

    Returns
    -------
    Bound, valid for eps > 0; as printed, for 0 < eps < 1/2.

    Source: chen2016, Corollary 2.2; claim chen2016:cor2.2.
    """
    if as_printed:
        log_failure = xp.log(exact(2, eps)) - num_frequencies * eps**2 / 8
        return fails(
            eps,
            log_failure,
            (eps > 0) & (eps < 0.5),
            "chen2016, Corollary 2.2 (printed)",
        )
    return fails(
        eps,
        xp.log(exact(2, eps)) - num_frequencies * eps**2 / 2,
        eps > 0,
        "chen2016, Corollary 2.2 (range corrected)",
    )


@formula
def far_distance(
    *, eps: Real, num_frequencies: Real, distance: Real, as_printed: bool = False
) -> Bound:
    """Bound |Dhat / D - 1| by eps for one pair at distance >= 1: an additive error of K is a relative one of D.

    As printed the proof asks for |K - Khat| <= eps / 4, whose probability is `kernel_value(eps=eps / 4)` as printed.
    Corrected: |Dhat^2 / D^2 - 1| <= eps follows from |K - Khat| <= (1 - exp(-1/2)) eps.

    Parameters
    ----------
    eps, num_frequencies, distance, as_printed : relative error, t frequencies, |x - y|, and whether as printed.

    Returns
    -------
    Bound, valid for distance >= 1 and 0 < eps < 1; as printed, for 0 < eps < 1/10.

    Source: chen2016, Lemma 2.2; claim chen2016:lem2.2.
    """
    if as_printed:
        valid = (eps > 0) & (eps < 0.1) & (distance >= 1)
        return fails(
            eps,
            xp.log(exact(2, eps)) - num_frequencies * eps**2 / 128,
            valid,
            "chen2016, Lemma 2.2 (printed)",
        )
    valid = (eps > 0) & (eps < 1) & (distance >= 1)
    log_failure = (
        xp.log(exact(2, eps))
        - num_frequencies * (_farthest(eps) ** 2 / 2 * eps) ** 2 / 2
    )
    return fails(eps, log_failure, valid, "chen2016, Lemma 2.2 (constants corrected)")


@formula
def distance_lower(*, distance: Real, as_printed: bool = False) -> Bound:
    """Bound D from *below* by .887 times the distance, sqrt(2 - 2 / sqrt(e)) exactly; as printed by .86 times it.

    Parameters
    ----------
    distance, as_printed : |x - y|, and whether as printed.

    Returns
    -------
    Bound whose value D is at least; deterministic, valid for distance <= 1.

    Source: chen2016, (2); claim chen2016:eq2.
    """
    factor = 0.86 if as_printed else _farthest(distance)
    source = "chen2016, (2)" + (" (printed)" if as_printed else " (sharp)")
    return surely(factor * distance, distance <= 1, source)


@formula
def squared_distance_lower(*, eps: Real, distance: Real) -> Bound:
    """Bound D^2 from *below* by (1 - eps) distance^2.

    Parameters
    ----------
    eps, distance : relative loss, and |x - y|.

    Returns
    -------
    Bound whose value D^2 is at least; deterministic, valid for distance <= 2 sqrt(eps).

    Source: chen2016, (3); claim chen2016:eq3.
    """
    return surely(
        (1 - eps) * distance**2, distance <= 2 * xp.sqrt(eps), "chen2016, (3)"
    )


@formula
def ratio_upper(
    *, second_moment: Real, distance: Real, as_printed: bool = False
) -> Bound:
    """Bound Dhat^2 / D^2 by S2 / (1 - r^2 / 4).

    As printed the denominator is 1 - r^2 / 2, and all |w| r <= 1 is assumed; the assumption is not needed.

    Parameters
    ----------
    second_moment, distance : S2, the mean of w^2 over the frequencies along x - y, and r = |x - y|.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, deterministic, valid for distance < 2; as printed, for distance <= 1.

    Source: chen2016, (4), left; claim chen2016:eq4.
    """
    if as_printed:
        return surely(
            second_moment / (1 - distance**2 / 2),
            distance <= 1,
            "chen2016, (4), left (printed)",
        )
    return surely(
        second_moment / (1 - distance**2 / 4),
        distance < 2,
        "chen2016, (4), left (sharper)",
    )


@formula
def ratio_lower(*, second_moment: Real, fourth_moment: Real, distance: Real) -> Bound:
    """Bound Dhat^2 / D^2 from *below* by S2 - r^2 S4 / 12.

    Parameters
    ----------
    second_moment, fourth_moment, distance : S2 and S4, the means of w^2 and w^4 along x - y, and r = |x - y|.

    Returns
    -------
    Bound whose value the ratio is at least; deterministic, valid at every distance.

    Source: chen2016, (4), right; claim chen2016:eq4.
    """
    return surely(
        second_moment - distance**2 / 12 * fourth_moment,
        distance >= 0,
        "chen2016, (4), right",
    )


@formula
def chi_square_mean(
    *, eps: Real, num_frequencies: Real, as_printed: bool = False
) -> Bound:
    """Bound |chi2_t / t - 1| by eps, by the exact exponents of the two tails.

    The probability is 1 - exp(-t (eps - log(1 + eps)) / 2) - exp(-t (-eps - log(1 - eps)) / 2). As printed:
    1 - 2 exp(-t eps^2 / 8), which holds and is two to six times too pessimistic in t.

    Parameters
    ----------
    eps, num_frequencies, as_printed : error, t frequencies, and whether as printed.

    Returns
    -------
    Bound, valid for 0 < eps < 1.

    Source: chen2016, Lemma 3.2; claim chen2016:lem3.2.
    """
    valid = (eps > 0) & (eps < 1)
    if as_printed:
        return fails(
            eps,
            xp.log(exact(2, eps)) - num_frequencies * eps**2 / 8,
            valid,
            "chen2016, Lemma 3.2 (printed)",
        )
    log_failure = log_chernoff(num_frequencies, 1 + eps, 1 - eps)
    return fails(eps, log_failure, valid, "chen2016, Lemma 3.2 (exact exponents)")


@formula
def log_mgf(*, s: Real, distance: Real, as_printed: bool = False) -> Bound:
    """Bound log E exp(s (X - E X)) for X = 1 - cos(w r): the logarithm for E X chi2_1, -log(1 - 2 s mu) / 2 - s mu.

    Here mu = E X = 1 - exp(-r^2 / 2). As printed: s^2 r^4 / 4, which is false: as r tends to 0
    with s r^2 = y fixed the left side tends to -log(1 - y) / 2 - y / 2 = y^2 / 4 + y^3 / 6 + ...

    Parameters
    ----------
    s, distance, as_printed : argument of the moment generating function, r = |x - y|, and whether as printed.

    Returns
    -------
    Bound, deterministic, valid for every real s < 1 / (2 mu); as printed for 0 <= s < 1 / (2 r^2) and r <= 1.

    Source: chen2016, Lemma 4.1; Theorem A of docs/theory/chen2016.md; claims chen2016:lem4.1 and jaxkern:convex-order.
    """
    if as_printed:
        valid = (s >= 0) & (2 * s * distance**2 < 1) & (distance <= 1)
        return surely(s**2 * distance**4 / 4, valid, "chen2016, Lemma 4.1 (printed)")
    half = s * (1 - xp.exp(-(distance**2) / 2))
    return surely(
        -xp.log(xp.maximum(1 - 2 * half, 1e-30)) / 2 - half,
        2 * half < 1,
        "chen2016, Lemma 4.1 (corrected)",
    )


@formula
def sub_exponential(
    *, eps: Real, mean: Real, p: Real, q: Real, num_frequencies: Real
) -> Bound:
    """Bound the relative deviation of a mean of t copies by eps, given log M(s) <= s^2 p / 2 for |s| <= 1 / q.

    The probability is 1 - 2 exp(-t min(eps^2 mean^2 / (2 p), eps mean / (2 q))). The paper asks for the hypothesis on
    0 <= s <= 1 / q only; then only the upper tail, without the factor 2, follows.

    Parameters
    ----------
    eps, num_frequencies : relative deviation, and t copies.
    mean, p, q : of one copy: its mean, and the constants of its hypothesis.

    Returns
    -------
    Bound, valid for eps, p and q > 0.

    Source: chen2016, (5); claim chen2016:eq5.
    """
    exponent = xp.minimum((eps * mean) ** 2 / (2 * p), eps * mean / (2 * q))
    valid = (eps > 0) & (p > 0) & (q > 0)
    return fails(
        eps, xp.log(exact(2, eps)) - num_frequencies * exponent, valid, "chen2016, (5)"
    )


@formula
def near_distance(
    *, eps: Real, num_frequencies: Real, distance: Real, as_printed: bool = False
) -> Bound:
    """Bound |Dhat / D - 1| by eps for one pair: `relative_distances` for two points, at any distance.

    As printed, for distance <= 1, the proof has 1 - 2 exp(-t eps^2 D^4 / (6 distance^4)). The statement holds, though
    the proof rests on Lemma 4.1, which does not.

    Parameters
    ----------
    eps, num_frequencies, distance, as_printed : relative error, t frequencies, |x - y|, and whether as printed.

    Returns
    -------
    Bound, valid for 0 < eps < 1; as printed for distance <= 1 as well.

    Source: chen2016, Lemma 4.2; claim chen2016:lem4.2.
    """
    valid = (eps > 0) & (eps < 1) & (distance > 0)
    if as_printed:
        squared = 2 - 2 * xp.exp(-(distance**2) / 2)
        log_failure = (
            xp.log(exact(2, eps))
            - num_frequencies * eps**2 * (squared / distance**2) ** 2 / 6
        )
        return fails(
            eps, log_failure, valid & (distance <= 1), "chen2016, Lemma 4.2 (printed)"
        )
    log_failure = log_chernoff(num_frequencies, (1 + eps) ** 2, (1 - eps) ** 2)
    return fails(eps, log_failure, valid, "chen2016, Lemma 4.2 (exact exponents)")


@formula
def segment(*, num_frequencies: Real, distance: Real, tau: Real) -> Bound:
    """Bound |Dhat^2 / D^2 - 1| by sqrt(12 tau / t) at every point of the segment from x to y at once.

    Both sides of (4) are monotone along the segment, so that its two ends decide.

    Parameters
    ----------
    num_frequencies, distance, tau : t frequencies, |x - y|, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > log 4 and distance^2 <= value / tau^2 < 1 / tau^2.

    Source: chen2016, Lemma 3.3, with its constants in docs/theory/chen2016.md; claim chen2016:lem3.3.
    """
    value = xp.sqrt(12 * tau / num_frequencies)
    log_four = xp.log(exact(4, tau))
    valid = (value < 1) & (distance**2 <= value / tau**2) & (tau > log_four)
    return fails(value, log_four - tau, valid, "jaxkern, Lemma 3.3 of chen2016")


def fails(value: Real, log_failure: Real, valid: Any, source: str) -> Bound:
    """Return a bound that fails with probability at most exp(log_failure)."""
    return Bound(value, 1 - xp.exp(log_failure), valid, source, exponent=-log_failure)


def _farthest(like: Real) -> Any:
    """Return the kernel distance at distance 1, in the arithmetic of a number: D(r) >= .887 r for r <= 1."""
    return xp.sqrt(2 - 2 * xp.exp(exact(-0.5, like)))


def log_chernoff(t: Real, u: Real, v: Real) -> Any:
    """Return the log of Chernoff's bound of P(chi2_t / t >= u) + P(chi2_t / t <= v), for v < 1 < u.

    The second is next to nothing for v <= 0.
    """
    u, v = xp.maximum(u, 1e-30), xp.maximum(v, 1e-30)
    above, below = -t * (u - 1 - xp.log(u)) / 2, -t * (v - 1 - xp.log(v)) / 2
    larger = xp.maximum(
        xp.maximum(above, below), -1e30
    )  # a difference of infinities is no number
    return larger + xp.log(xp.exp(above - larger) + xp.exp(below - larger))


def inside(eps: Real, most: float = 1.0) -> Any:
    """Return eps moved into (0, most), where formulas are defined; `valid` says where it was."""
    return xp.minimum(xp.maximum(eps, 1e-6), most - 1e-6)
