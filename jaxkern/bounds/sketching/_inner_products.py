"""Inner products that Kernel JL keeps: kpotufe2020, Proposition 1, Lemma B.3 and Theorem 1."""

from typing import Any

from jaxkern import checks
from jaxkern.bounds._bound import Bound, Real, fails, formula, xp
from jaxkern.bounds.sketching._covariance import (
    KOLTCHINSKII_LOUNICI_TRACE,
    enough,
    mean_square,
    one_sided,
    sharp,
)

_SLACK = 0.51
"""Bounds (sqrt(n) - E|h|) + E(E|h| - |h|)_+ for a standard normal h in R^n, every n >= 1."""


@formula
def projected_inner_products(
    *,
    op_norm: Real,
    trace3: Real,
    d: Real,
    tau: Real,
    constant: Real = KOLTCHINSKII_LOUNICI_TRACE,
) -> Bound:
    """Bound |Theta* Theta - Sigma^3|_op by C S^3 (sqrt(s3) + sqrt(tau)) / sqrt(d).

    Parameters
    ----------
    op_norm, trace3 : S = |Sigma|_op and tr Sigma^3.
    d, tau : rows of the projection, and exponent of the failure probability.
    constant : C, which the paper does not name; 1 gives the shape of the bound.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau >= 1 and d >= max(s3, tau).

    Source: kpotufe2020, Proposition 1, with its constant made explicit; claim kpotufe2020:prop1.
    """
    rank = trace3 / op_norm**3
    value = constant * op_norm**3 * (xp.sqrt(rank) + xp.sqrt(tau)) / xp.sqrt(d)
    valid = (tau >= 1) & (d >= xp.maximum(rank, tau))
    return fails(value, 1, tau, valid, "kpotufe2020, Proposition 1")


@formula
def projected_inner_products_all_d(
    *, op_norm: Real, trace3: Real, d: Real, tau: Real
) -> Bound:
    """Bound |Theta* Theta - Sigma^3|_op by S^3 (2 D + D^2), D = (sqrt(s3) + .51 + sqrt(2 tau)) / sqrt(d), for all d.

    Parameters
    ----------
    op_norm, trace3, d, tau : as in `projected_inner_products`.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for every d >= 1 and tau > 0.

    Source: Theorem A of docs/theory/kpotufe2020.md; claim jaxkern:prop1-explicit.
    """
    deviation = (xp.sqrt(trace3 / op_norm**3) + _SLACK + xp.sqrt(2 * tau)) / xp.sqrt(d)
    value = op_norm**3 * (2 * deviation + deviation**2)
    return fails(value, 2, tau, tau > 0, "jaxkern, Theorem A")


@formula
def conditional_sketch(
    *,
    op_norm3: Real,
    trace3: Real,
    d: Real,
    tau: Real,
    constant: Real = KOLTCHINSKII_LOUNICI_TRACE,
) -> Bound:
    """Bound |S* V V^T S - Sigma_n^3|_op given the sample by C (sqrt(t o / d) + o sqrt(tau / d)).

    Parameters
    ----------
    op_norm3, trace3 : o = |Sigma_n^3|_op and t = tr Sigma_n^3, of the sample.
    d, tau : rows of the sketch, and exponent of the failure probability.
    constant : C, which the paper does not name; 1 gives the shape of the bound.

    Returns
    -------
    Bound with probability 1 - exp(-tau) given the sample, valid for tau >= 1 and d >= max(t / o, tau).

    Source: kpotufe2020, Lemma B.3, with its constant made explicit; claim kpotufe2020:lemB.3.
    """
    value = constant * (xp.sqrt(trace3 * op_norm3 / d) + op_norm3 * xp.sqrt(tau / d))
    valid = (tau >= 1) & (d >= xp.maximum(trace3 / op_norm3, tau))
    return fails(value, 1, tau, valid, "kpotufe2020, Lemma B.3")


@formula
def inner_products(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    n: Real,
    d: Real,
    tau: Real,
    constant: Real = KOLTCHINSKII_LOUNICI_TRACE,
    as_printed: bool = False,
) -> Bound:
    """Bound sup |<V^T S g, V^T S f> - <g, Sigma^3 f>| over unit f, g: Kernel JL preserves <., Sigma^3 .>.

    As printed: 3 C S^3 (sqrt(2 s3) + sqrt(tau)) / sqrt(d) + 28 S^(5/2) sqrt(2 kappa s tau / n) with probability
    1 - 5 exp(-tau) for n >= 6272 kappa s^5 tau / S and *every* d; that is false for every constant C when d is small
    (claim kpotufe2020:thm1). Corrected, with better constants: C S^3 (sqrt(3 s3) + 1.5 sqrt(tau)) / sqrt(d) plus the
    same n-term, with probability 1 - 3 exp(-tau), for n >= 6272 kappa s max(1, sqrt(s) / 4) tau / S and
    d >= max(4 s3, tau).

    Parameters
    ----------
    kappa, op_norm, trace, trace3 : sup K(x, x), S = |Sigma|_op, tr Sigma and tr Sigma^3.
    n, d, tau : landmarks, rows of the sketch, and exponent of the failure probability.
    constant : C, which the paper does not name; 1 gives the shape of the bound.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, with `valid` the hypotheses of the form asked for.

    Source: kpotufe2020, Theorem 1; Theorem B of docs/theory/kpotufe2020.md.
    """
    rank, rank3 = trace / op_norm, trace3 / op_norm**3
    n_term = 28 * op_norm**2.5 * xp.sqrt(2 * kappa * rank * tau / n)
    unit = kappa * tau / op_norm
    if as_printed:
        d_term = (
            3 * constant * op_norm**3 * (xp.sqrt(2 * rank3) + xp.sqrt(tau)) / xp.sqrt(d)
        )
        valid = (tau >= 1) & (n >= 6272 * rank**5 * unit)
        return fails(d_term + n_term, 5, tau, valid, "kpotufe2020, Theorem 1 (printed)")
    d_term = (
        constant * op_norm**3 * (xp.sqrt(3 * rank3) + 1.5 * xp.sqrt(tau)) / xp.sqrt(d)
    )
    enough_n = n >= 6272 * rank * xp.maximum(1.0, xp.sqrt(rank) / 4) * unit
    enough_d = d >= xp.maximum(4 * rank3, tau)
    valid = (tau >= 1) & enough_n & enough_d
    return fails(d_term + n_term, 3, tau, valid, "kpotufe2020, Theorem 1 (corrected)")


@formula
def inner_products_all_d(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    d: Real,
    tau: Real,
) -> Bound:
    """Bound the quantity of `inner_products` for every d >= 1 and far fewer landmarks, all constants explicit.

    With D' = 28 S^2 sqrt(2 kappa tr(Sigma) tau / n), o^2 = S^3 + D', t = tr Sigma^3 + D' |Sigma|_HS / S and
    D = (sqrt(t) + o (.51 + sqrt(2 tau))) / sqrt(d), the bound is 2 o D + D^2 + D'.

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm : sup K(x, x), S = |Sigma|_op, tr Sigma, tr Sigma^3 and |Sigma|_HS.
    n, d, tau : landmarks, rows of the sketch, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for n >= 32 kappa s tau / S and every d >= 1.

    Source: Theorem C of docs/theory/kpotufe2020.md; claim jaxkern:thm1-all-d.
    """
    n_term = 28 * op_norm**2 * xp.sqrt(2 * kappa * trace * tau / n)
    root = xp.sqrt(op_norm**3 + n_term)
    total = xp.sqrt(trace3 + n_term * hs_norm / op_norm)
    deviation = (total + root * (_SLACK + xp.sqrt(2 * tau))) / xp.sqrt(d)
    value = 2 * root * deviation + deviation**2 + n_term
    return fails(
        value, 4, tau, enough(kappa, op_norm, trace, n, tau, 32.0), "jaxkern, Theorem C"
    )


@formula
def inner_products_every_n(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    d: Real,
    tau: Real,
    centered: bool = False,
) -> Bound:
    """Bound the quantity of `inner_products` for every n >= 1 and every d >= 1, all constants explicit.

    With x the value of `covariance_deviation_sharp`, e = x^3 + 3 x^2 S + 3 x S^2, o^2 = S^3 + e,
    t = tr Sigma^3 + x^3 + 3 x^2 S + 3 x S |Sigma|_HS and D = (sqrt(t) + o (.51 + sqrt(2 tau))) / sqrt(d), the bound is
    2 o D + D^2 + e. For the centred sketch, in e alone, x + m^2 stands for x, where m bounds the error of the mean.

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau : as in `inner_products_all_d`.
    centered : whether the sketch is centred, and the five quantities those of K_x - E K_X and its covariance. Static.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), centred 1 - 6 exp(-tau), valid for tau > 0, n >= 1 and d >= 1.

    Source: Theorem E of docs/theory/kpotufe2020.md; claims jaxkern:thm1-every-n and jaxkern:thm1-centred.
    """
    x = sharp(kappa, trace, hs_norm, n, tau)
    apart, times, source = x, 4, "jaxkern, Theorem E"
    if checks.flag("centered", centered):
        apart, times, source = (
            x + mean_square(kappa, trace, n, tau),
            6,
            "jaxkern, Theorem E, centred",
        )
    value = _sketched(op_norm, trace3, hs_norm, d, tau, x, x, apart)
    return fails(value, times, tau, some(n, d, tau), source)


@formula
def inner_products_intrinsic(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    d: Real,
    tau: Real,
    centered: bool = False,
) -> Bound:
    """Bound the quantity of `inner_products` for every n >= 1 and d >= 1, with log s where Theorem E has s.

    With x the value of `covariance_deviation_sharp`, x' the smaller one of it and of `covariance_deviation_operator`,
    o = (S + x')^(3/2), t = tr Sigma^3 + 3 x S |Sigma|_HS + (3 S + x') x^2 and D = (sqrt(t) + o (.51 + sqrt(2 tau))) /
    sqrt(d), the bound is 2 o D + D^2 + (S + x')^3 - S^3. It takes fewer landmarks than `inner_products_every_n` unless
    s is near 1.

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau, centered : as in `inner_products_every_n`.

    Returns
    -------
    Bound with probability 1 - 6 exp(-tau), centred 1 - 8 exp(-tau), valid for tau > 0, n >= 1 and d >= 1.

    Source: Theorem F of docs/theory/kpotufe2020.md; claims jaxkern:thm1-operator and jaxkern:thm1-operator-centred.
    """
    frobenius = sharp(kappa, trace, hs_norm, n, tau)
    sides = one_sided(kappa, op_norm, trace, hs_norm, n, tau)
    above, below = (xp.minimum(side, frobenius) for side in sides)
    apart, times, source = above, 6, "jaxkern, Theorem F"
    if checks.flag("centered", centered):
        apart = xp.maximum(above, below + mean_square(kappa, trace, n, tau))
        times, source = 8, "jaxkern, Theorem F, centred"
    value = _sketched(op_norm, trace3, hs_norm, d, tau, above, frobenius, apart)
    return fails(value, times, tau, some(n, d, tau), source)


@formula
def relative_norms(*, num_functions: Real, d: Real, tau: Real) -> Bound:
    """Bound | |V^T S f|^2 / <f, Sigma_n^3 f> - 1 | over finitely many f by the u > 0 with u - log(1 + u) = 2 x / d.

    Here x = log(num_functions) + tau; u is less than 2 sqrt(x / d) + 2 x / d. A Johnson-Lindenstrauss lemma in the
    usual, relative form, given the landmarks: the functions may depend on them, not on Z. No property of the kernel
    enters, and functions with <f, Sigma_n^3 f> = 0 are mapped to 0. `plan.kernel_jl` has the law of chi2_d itself.

    Parameters
    ----------
    num_functions, d, tau : functions f, rows of the sketch, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for tau > 0, d >= 1 and num_functions >= 1.

    Source: Proposition J of docs/theory/kpotufe2020.md; claim jaxkern:relative.
    """
    x = xp.log(num_functions) + tau
    valid = (tau > 0) & (d >= 1) & (num_functions >= 1)
    return fails(_cramer(2 * x / d), 2, tau, valid, "jaxkern, Proposition J")


def _cramer(y: Any) -> Any:
    """Return u > 0 with u - log(1 + u) = y, by Newton's steps, which stay above it: the left side is convex in u."""
    u = xp.sqrt(2 * y) + y
    for _ in range(5):
        u = u - (u - xp.log1p(u) - y) * (1 + u) / u
    return u


def _sketched(
    op_norm: Real,
    trace3: Real,
    hs_norm: Real,
    d: Real,
    tau: Real,
    above: Real,
    frobenius: Real,
    apart: Real,
) -> Any:
    """Return the bound that follows from a covariance within `apart` of S, and below one that is within the others.

    That one exceeds Sigma by `above` at most and has the Hilbert-Schmidt distance `frobenius` from it at most.
    """
    root = xp.sqrt((op_norm + above) ** 3)
    total = xp.sqrt(
        trace3
        + 3 * frobenius * op_norm * hs_norm
        + (3 * op_norm + above) * frobenius**2
    )
    deviation = (total + root * (_SLACK + xp.sqrt(2 * tau))) / xp.sqrt(d)
    n_term = apart**3 + 3 * apart**2 * op_norm + 3 * apart * op_norm**2
    return 2 * root * deviation + deviation**2 + n_term


def some(n: Real, d: Real, tau: Real) -> Any:
    """Return whether tau > 0, n >= 1 and d >= 1."""
    return (tau > 0) & (n >= 1) & (d >= 1)
