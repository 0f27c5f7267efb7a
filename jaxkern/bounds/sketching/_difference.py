"""Kernel JL and the random projection, compared for one function: kpotufe2020, (9) and Theorem 2."""

import math

from jaxkern.bounds._bound import Bound, Real, formula, note_of, xp
from jaxkern.bounds.sketching._covariance import enough, fails


@formula
def weak_difference_given(*, energy: Real, d: Real, tau: Real, as_printed: bool = False) -> Bound:
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
    *, kappa: Real, op_norm: Real, trace: Real, n: Real, d: Real, tau: Real, as_printed: bool = False
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
        value = 16 * xp.sqrt(2 * tau) * xp.maximum(op_norm**1.5, op_norm**1.25) / xp.sqrt(d)
        valid = (tau > 0) & (n >= kappa * trace / op_norm * tau * xp.maximum(32 / op_norm, 1.0))
        return fails(value, 4, tau, valid, "kpotufe2020, Theorem 2 (printed)")
    value = 3 * xp.sqrt(2 * tau) * op_norm**1.5 / xp.sqrt(d)
    valid = enough(kappa, op_norm, trace, n, tau, 32.0)
    return fails(value, 3, tau, valid, "kpotufe2020, Theorem 2 (scaled)")


@formula
def weak_difference_coupled(*, kappa: Real, op_norm: Real, trace: Real, n: Real, d: Real, tau: Real) -> Bound:
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
    value = 12 * math.sqrt(2.0) * tau * op_norm * xp.sqrt(kappa * trace / op_norm / (n * d))
    valid = enough(kappa, op_norm, trace, n, tau, 32.0)
    return fails(value, 3, tau, valid, "kpotufe2020, Theorem 2 (coupled)")
