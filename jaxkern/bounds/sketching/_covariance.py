"""The covariance of a sample: kpotufe2020, (7), (8), Lemma B.2, and Theorems C.1 and C.2."""

import math
from typing import Any

from jaxkern import checks
from jaxkern.bounds._bound import Bound, Real, fails, formula, xp

KOLTCHINSKII_LOUNICI = 4.376
"""A value of the universal constant for Gaussian covariance operators (kpotufe2020, Theorem C.1): Theorem A."""

KOLTCHINSKII_LOUNICI_TRACE = 3.51
"""The same where the effective rank is tr Sigma / |Sigma|, as in kpotufe2020's own statements: Theorem A."""

KOLTCHINSKII_LOUNICI_LOWER = 3.505
"""No smaller universal constant works: P(chi2_n / n >= 1 + u) > exp(-n) for u - log(1 + u) < 2 and n large."""

_LEAST_RANK = 2 / math.pi * (1 - 1e-9)
"""No Gaussian law has a smaller effective rank: E |X| >= E |<X, u>| = sqrt(2 |Sigma| / pi) for the leading u."""


@formula
def gaussian_covariance(
    *,
    op_norm: Real,
    rank: Real,
    n: Real,
    tau: Real,
    constant: Real = KOLTCHINSKII_LOUNICI,
) -> Bound:
    """Bound |Sigma_hat - Sigma|_op for n draws from N(0, Sigma) by C |Sigma| (sqrt(r) + sqrt(tau)) / sqrt(n).

    Parameters
    ----------
    op_norm, rank : |Sigma|, and r = (E |X|)^2 / |Sigma|, at most tr Sigma / |Sigma|.
    n, tau : draws, and exponent of the failure probability.
    constant : C, which the paper does not name; 1 gives the shape of the bound.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau >= 1, n >= max(r, tau) and r >= 2 / pi.

    Source: kpotufe2020, Theorem C.1, with its constant made explicit; claim kpotufe2020:thmC.1.
    """
    value = constant * op_norm * (xp.sqrt(rank) + xp.sqrt(tau)) / xp.sqrt(n)
    valid = (tau >= 1) & (n >= xp.maximum(rank, tau)) & (rank >= _LEAST_RANK)
    return fails(value, 1, tau, valid, "kpotufe2020, Theorem C.1")


@formula
def hilbert_mean(
    *, theta: Real, scale: Real, n: Real, tau: Real, as_printed: bool = False
) -> Bound:
    """Bound |(xi_1 + ... + xi_n) / n| by sqrt(2 theta^2 tau / n) + B tau / n, xi_i in a Hilbert space (B is `scale`).

    The xi_i are independent copies of a centred xi with E |xi|^m <= (m! / 2) theta^2 B^(m - 2) for every m >= 2; for
    |xi| <= M and E |xi|^2 <= theta^2 that is B = M / 3. The paper prints 2 B tau / n, which is larger, and asks for
    m > 2 only, which is not enough (claim kpotufe2020:thmC.2).

    Parameters
    ----------
    theta, scale : theta^2 bounds E |xi|^2; B.
    n, tau, as_printed : copies, exponent of the failure probability, and whether as printed.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 1 and tau > 0.

    Source: kpotufe2020, Theorem C.2; Proposition H of docs/theory/kpotufe2020.md.
    """
    value = (
        xp.sqrt(2 * theta * theta * tau / n)
        + (2 if as_printed else 1) * scale * tau / n
    )
    valid = (tau > 0) & (n >= 1)
    return fails(
        value,
        2,
        tau,
        valid,
        "kpotufe2020, Theorem C.2" + (" (printed)" if as_printed else ""),
    )


@formula
def covariance_deviation(*, kappa: Real, trace: Real, n: Real, tau: Real) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by 4 sqrt(2 kappa tr(Sigma) tau / n).

    Parameters
    ----------
    kappa, trace, n, tau : sup K(x, x), tr Sigma, landmarks, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 8 kappa tau / (9 tr Sigma) and tau > 0.

    Source: kpotufe2020, Lemma B.2; claim kpotufe2020:lemB.2.
    """
    value = 4 * xp.sqrt(2 * kappa * trace * tau / n)
    valid = (tau > 0) & (n >= 8 * kappa * tau / (9 * trace))
    return fails(value, 2, tau, valid, "kpotufe2020, Lemma B.2")


@formula
def covariance_deviation_bernstein(
    *, kappa: Real, trace: Real, n: Real, tau: Real
) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by sqrt(2 kappa tr(Sigma) tau / n) + 4 kappa tau / n, for every n >= 1.

    It is what Bernstein's inequality gives before it is simplified to Lemma B.2: never larger under the condition of
    that lemma, and up to four times smaller.

    Parameters
    ----------
    kappa, trace, n, tau : as in `covariance_deviation`.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 1 and tau > 0.

    Source: kpotufe2020, Theorem C.2 with B = 2 kappa and theta^2 = kappa tr Sigma; claim jaxkern:lemB.2-bernstein.
    """
    value = xp.sqrt(2 * kappa * trace * tau / n) + 4 * kappa * tau / n
    valid = (tau > 0) & (n >= 1)
    return fails(value, 2, tau, valid, "jaxkern, from kpotufe2020, Theorem C.2")


@formula
def covariance_deviation_sharp(
    *, kappa: Real, trace: Real, hs_norm: Real, n: Real, tau: Real
) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by sqrt(2 (kappa tr Sigma - h^2) tau / n) + sqrt(kappa^2 + h^2) tau / (3 n).

    Never larger than `covariance_deviation_bernstein`; its second term is at least eight times smaller.

    Parameters
    ----------
    kappa, trace, n, tau : as in `covariance_deviation`.
    hs_norm : h = |Sigma|_HS.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 1 and tau > 0.

    Source: Proposition H of docs/theory/kpotufe2020.md; claim jaxkern:lemB.2-sharp.
    """
    valid = (tau > 0) & (n >= 1)
    value = sharp(kappa, trace, hs_norm, n, tau)
    return fails(value, 2, tau, valid, "jaxkern, Proposition H")


@formula
def covariance_deviation_operator(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    hs_norm: Real,
    n: Real,
    tau: Real,
    centered: bool = False,
) -> Bound:
    """Bound |Sigma_n - Sigma|_op by sqrt(2 v y / n) + kappa y / (3 n), whose dimension enters by its logarithm.

    Here S = |Sigma|, h = |Sigma|_HS, v = S (kappa - S) and y = max(tau + log((kappa tr Sigma - h^2) / v), 1.26). About
    the mean of the sample it is the larger one of this and of the same with S for kappa in the last term, plus
    (sqrt(2 tr Sigma tau / n) + sqrt(kappa) tau / (3 n))^2.

    Parameters
    ----------
    kappa, op_norm, trace, hs_norm : sup K(x, x), |Sigma|, tr Sigma and |Sigma|_HS.
    n, tau : landmarks, and exponent of the failure probability.
    centered : whether about the mean of the sample, and the four quantities those of K_x - E K_X. Static.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), centred 1 - 4 exp(-tau), valid for n >= 1 and tau > 0.

    Source: Proposition F of docs/theory/kpotufe2020.md; claim jaxkern:lemB.2-operator.
    """
    above, below = one_sided(kappa, op_norm, trace, hs_norm, n, tau)
    valid = (tau > 0) & (n >= 1)
    if checks.flag("centered", centered):
        value = xp.maximum(above, below + mean_square(kappa, trace, n, tau))
        return fails(value, 4, tau, valid, "jaxkern, Proposition F, centred")
    return fails(above, 2, tau, valid, "jaxkern, Proposition F")


@formula
def cube_deviation(
    *, kappa: Real, op_norm: Real, trace: Real, n: Real, tau: Real
) -> Bound:
    """Bound |Sigma_n^3 - Sigma^3|_op by 28 S^2 sqrt(2 kappa tr(Sigma) tau / n).

    Parameters
    ----------
    kappa, op_norm, trace : sup K(x, x), S = |Sigma|_op, tr Sigma.
    n, tau : landmarks, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 32 kappa s tau / S and tau > 0.

    Source: kpotufe2020, (7) (which prints Sigma_n^3 - Sigma_n^3); claim kpotufe2020:eq7.
    """
    value = 28 * op_norm**2 * xp.sqrt(2 * kappa * trace * tau / n)
    return fails(
        value, 2, tau, enough(kappa, op_norm, trace, n, tau, 32.0), "kpotufe2020, (7)"
    )


@formula
def cube_trace(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    tau: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound tr Sigma_n^3 by tr Sigma^3 + 28 S |Sigma|_HS sqrt(2 kappa tr(Sigma) tau / n).

    As printed the last term has |Sigma|_HS^2 for S |Sigma|_HS, which is never smaller.

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm : sup K(x, x), S = |Sigma|_op, tr Sigma, tr Sigma^3 and |Sigma|_HS.
    n, tau, as_printed : landmarks, exponent of the failure probability, and whether as printed.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), on the same event as `cube_deviation`; valid for n >= 32 kappa s tau / S.

    Source: kpotufe2020, (8); claim kpotufe2020:eq8.
    """
    factor = hs_norm * (hs_norm if as_printed else op_norm)
    value = trace3 + 28 * factor * xp.sqrt(2 * kappa * trace * tau / n)
    source = "kpotufe2020, (8)" + (" (printed)" if as_printed else "")
    return fails(value, 2, tau, enough(kappa, op_norm, trace, n, tau, 32.0), source)


def sharp(kappa: Real, trace: Real, hs_norm: Real, n: Real, tau: Real) -> Any:
    """Return the bound of `covariance_deviation_sharp`."""
    variance = xp.maximum(kappa * trace - hs_norm**2, 0.0)
    return xp.sqrt(2 * variance * tau / n) + xp.sqrt(kappa**2 + hs_norm**2) * tau / (
        3 * n
    )


def one_sided(
    kappa: Real, op_norm: Real, trace: Real, hs_norm: Real, n: Real, tau: Real
) -> tuple[Any, Any]:
    """Return what the largest eigenvalues of Sigma_n - Sigma and of its negative are at most, by Proposition F."""
    variance = xp.maximum(
        op_norm * (kappa - op_norm), 1e-15 * kappa * op_norm
    )  # a larger one does as well
    dimension = xp.maximum((kappa * trace - hs_norm**2) / variance, 1.0)
    y = xp.maximum(tau + xp.log(dimension), 1.26)
    root = xp.sqrt(2 * variance * y / n)
    return root + kappa * y / (3 * n), root + op_norm * y / (3 * n)


def mean_square(kappa: Real, trace: Real, n: Real, tau: Real) -> Any:
    """Return what |mu_n - mu|^2 is at most with probability 1 - 2 exp(-tau), for centred features."""
    return (xp.sqrt(2 * trace * tau / n) + xp.sqrt(kappa) * tau / (3 * n)) ** 2


def enough(
    kappa: Real, op_norm: Real, trace: Real, n: Real, tau: Real, factor: float
) -> Any:
    """Return whether tau > 0 and n >= factor kappa s tau / S, with room for the rounding of a size computed from it."""
    return (tau > 0) & (n >= factor * kappa * trace * tau / op_norm**2 * (1 - 1e-12))
