"""Kernel JL and the random projection, compared for one function: kpotufe2020, (9), Theorems 2 and 3."""

from jaxkern.bounds._bound import (
    Bound,
    Real,
    exact,
    fails,
    formula,
    note_of,
    surely,
    xp,
)
from jaxkern.bounds.sketching._covariance import enough


@formula
def weak_difference_given(
    *, energy: Real, d: Real, tau: Real, as_printed: bool = False
) -> Bound:
    """Bound |<alpha, V^T S f> - <alpha, Theta f>| given the sample, for unit alpha, by sqrt(2 tau energy / d).

    V and Theta are independent. As printed the probability is 1 - 2 exp(-tau), which holds.

    Parameters
    ----------
    energy, d, tau : <f, (Sigma^3 + Sigma_n^3) f>, rows, and exponent of the failure probability.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0 and d >= 1.

    Source: kpotufe2020, (9); claim kpotufe2020:eq9.
    """
    value = xp.sqrt(2 * tau * energy / d)
    source = "kpotufe2020, (9)" + note_of(as_printed, "sharper")
    return fails(value, 2 if as_printed else 1, tau, (tau > 0) & (d >= 1), source)


@formula
def weak_difference(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    n: Real,
    d: Real,
    tau: Real,
    as_printed: bool = False,
) -> Bound:
    """Bound |<alpha, V^T S f> - <alpha, Theta f>| for fixed unit alpha and f and *independent* V and Theta.

    As printed: 16 sqrt(2 tau) max(S^(3/2), S^(5/4)) / sqrt(d) for n >= kappa s tau max(32 / S, 1). The inequality holds
    but is not covariant under scaling of the kernel; the default is 3 sqrt(2 tau) S^(3/2) / sqrt(d) for
    n >= 32 kappa s tau / S. Neither says that the two operators are close: both sides are of the size of either
    operator, and replacing Theta by zero makes the difference smaller. `weak_difference_coupled` does.

    Parameters
    ----------
    kappa, op_norm, trace : sup K(x, x), S = |Sigma|_op, tr Sigma.
    n, d, tau, as_printed : landmarks, rows of the sketch, exponent of the failure probability, and whether as printed.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau), or 1 - 4 exp(-tau) as printed.

    Source: kpotufe2020, Theorem 2; claim kpotufe2020:thm2.
    """
    if as_printed:
        value = (
            16 * xp.sqrt(2 * tau) * xp.maximum(op_norm**1.5, op_norm**1.25) / xp.sqrt(d)
        )
        valid = (tau > 0) & (
            n >= kappa * trace / op_norm * tau * xp.maximum(32 / op_norm, 1.0)
        )
        return fails(value, 4, tau, valid, "kpotufe2020, Theorem 2 (printed)")
    value = 3 * xp.sqrt(2 * tau) * op_norm**1.5 / xp.sqrt(d)
    valid = enough(kappa, op_norm, trace, n, tau, 32.0)
    return fails(value, 3, tau, valid, "kpotufe2020, Theorem 2 (scaled)")


@formula
def weak_difference_coupled(
    *, kappa: Real, op_norm: Real, trace: Real, n: Real, d: Real, tau: Real
) -> Bound:
    """Bound |<alpha, V^T S f> - <alpha, Theta f>| for unit alpha and f when both operators share their Gaussians.

    With v_i = Sigma^(3/2) g_i and S* vhat_i / n = Sigma_n^(3/2) g_i the difference is at most
    12 sqrt(2) tau S sqrt(kappa s / (n d)): it vanishes as n grows, for every d.

    Parameters
    ----------
    kappa, op_norm, trace, n, d, tau : as in `weak_difference`.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau), valid for n >= 32 kappa s tau / S.

    Source: Theorem D of docs/theory/kpotufe2020.md, what Theorem 2 means to say; claim kpotufe2020:thm2, corrected.
    """
    value = (
        12
        * xp.sqrt(exact(2.0, tau))
        * tau
        * op_norm
        * xp.sqrt(kappa * trace / op_norm / (n * d))
    )
    valid = enough(kappa, op_norm, trace, n, tau, 32.0)
    return fails(value, 3, tau, valid, "kpotufe2020, Theorem 2 (coupled)")


@formula
def law_distance(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    hs_norm: Real,
    energy: Real,
    n: Real,
    d: Real,
) -> Bound:
    """Bound the Wasserstein-2 distance between the laws of V^T S f and Theta f, for a unit f: it is of the order 1 / n.

    With v = kappa tr Sigma - |Sigma|_HS^2, E = <f, Sigma^3 f> and w = 3 v^2 / n^2 + (kappa^2 + |Sigma|_HS^2) v / n^3 it
    is E^(-1/2) (3 S^2 (kappa - S) / n + kappa^2 S / n^2) + 18.9 kappa^4 E^(-3/2) sqrt((d + 2) w).

    Parameters
    ----------
    kappa, op_norm, trace, hs_norm : sup K(x, x), S = |Sigma|_op, tr Sigma and |Sigma|_HS.
    energy : E.
    n, d : landmarks, and rows of the sketch.

    Returns
    -------
    Bound with probability 1, valid for n >= 1, d >= 1 and energy > 0.

    Source: Theorem G of docs/theory/kpotufe2020.md, Theorem 3 with a rate; claim kpotufe2020:thm3, corrected.
    """
    bias = 3 * op_norm**2 * (kappa - op_norm) / n + kappa**2 * op_norm / n**2
    variance = xp.maximum(kappa * trace - hs_norm**2, 0.0)
    fourth = 3 * variance**2 / n**2 + (kappa**2 + hs_norm**2) * variance / n**3
    value = (bias + 18.9 * kappa**4 * xp.sqrt((d + 2) * fourth) / energy) / xp.sqrt(
        energy
    )
    return surely(value, (n >= 1) & (d >= 1) & (energy > 0), "jaxkern, Theorem G")
