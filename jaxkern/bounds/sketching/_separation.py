"""What Kernel JL keeps of a separation: kpotufe2020, (10) to (12), and the example announced after Example 1."""

import dataclasses

from jaxkern.bounds._bound import Bound, Real, formula, xp
from jaxkern.bounds.sketching._inner_products import (
    inner_products_every_n,
    relative_norms,
)


@formula
def separation_shortfall(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    d: Real,
    tau: Real,
    eigenvalue: Real,
    epsilon: Real,
    num_points: Real,
    eta: Real,
) -> Bound:
    """Bound lambda_k^3 Delta - inf |V^T S (f - g)|^2 over f, g in two sets of features whose distances^2 are >= Delta.

    It is 4 kappa (epsilon lambda_k^3 + e), e the value of `inner_products_every_n`: what Kernel JL may lose of a
    separation. The paper has 2 kappa epsilon lambda_k^3, which is false (claim kpotufe2020:eq10).

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau : as in `inner_products_all_d`.
    eigenvalue, epsilon, eta : lambda_k, and the two numbers with which Assumption 1 holds.
    num_points : draws from the law whose features the two sets are.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau) - num_points eta, valid for tau > 0, n >= 1, d >= 1 and 0 <= epsilon <= 1.

    Source: kpotufe2020, (10), corrected; docs/theory/kpotufe2020.md.
    """
    kept = inner_products_every_n(
        kappa=kappa,
        op_norm=op_norm,
        trace=trace,
        trace3=trace3,
        hs_norm=hs_norm,
        n=n,
        d=d,
        tau=tau,
    )
    value = 4 * kappa * (epsilon * eigenvalue**3 + kept.value)
    return Bound(
        value,
        kept.probability - num_points * eta,
        kept.valid & (epsilon >= 0) & (epsilon <= 1),
        "kpotufe2020, (10) (corrected)",
        exponent=-xp.log(xp.exp(kept.log_failure) + num_points * eta),
    )


@formula
def largest_stretch(
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
    """Bound sup |V^T S h|^2 over unit h by lambda_1^3 + e, e the value of `inner_products_every_n`.

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau : as in `inner_products_all_d`.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > 0, n >= 1 and d >= 1.

    Source: kpotufe2020, (11), corrected; claim kpotufe2020:eq11.
    """
    kept = inner_products_every_n(
        kappa=kappa,
        op_norm=op_norm,
        trace=trace,
        trace3=trace3,
        hs_norm=hs_norm,
        n=n,
        d=d,
        tau=tau,
    )
    return dataclasses.replace(
        kept, value=op_norm**3 + kept.value, source="kpotufe2020, (11) (corrected)"
    )


@formula
def mean_separation_shortfall(
    *,
    kappa: Real,
    op_norm: Real,
    trace: Real,
    trace3: Real,
    hs_norm: Real,
    n: Real,
    d: Real,
    tau: Real,
    sigma: Real,
    weight: Real,
    mean_gap: Real,
) -> Bound:
    """Bound lambda_1^3 |mu_1 - mu_2|^2 - |V^T S (mu_1 - mu_2)|^2 for a mixture of two laws whose features are centred.

    It is lambda_1^3 sigma / (pi_1 pi_2) + e |mu_1 - mu_2|^2, e the value of `inner_products_every_n`. The paper does
    not ask for E K(., X) = 0, without which it is false (claim kpotufe2020:eq12).

    Parameters
    ----------
    kappa, op_norm, trace, trace3, hs_norm, n, d, tau : as in `inner_products_all_d`.
    sigma : the largest eigenvalue of the covariances of the two components.
    weight, mean_gap : pi_1 = 1 - pi_2 in (0, 1), and |mu_1 - mu_2|^2.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > 0, n >= 1, d >= 1 and 0 < weight < 1.

    Source: kpotufe2020, (12), corrected; docs/theory/kpotufe2020.md.
    """
    kept = inner_products_every_n(
        kappa=kappa,
        op_norm=op_norm,
        trace=trace,
        trace3=trace3,
        hs_norm=hs_norm,
        n=n,
        d=d,
        tau=tau,
    )
    value = op_norm**3 * sigma / (weight * (1 - weight)) + kept.value * mean_gap
    valid = kept.valid & (weight > 0) & (weight < 1)
    return dataclasses.replace(
        kept, value=value, valid=valid, source="kpotufe2020, (12) (corrected)"
    )


@formula
def relative_separation(
    *,
    num_pairs: Real,
    d: Real,
    tau: Real,
    kappa: Real,
    op_norm: Real,
    eigenvalue: Real,
    epsilon: Real,
    squared_diameter: Real,
    squared_distance: Real,
) -> Bound:
    """Bound the larger squared diameter over the squared distance, of the images of two sets of features.

    (1 + u) / (1 - u) (S / lambda_k)^3 D / (Delta - 4 epsilon kappa), u the value of `relative_norms`: a separation that
    does not depend on the scale of the kernel grows by (S / lambda_k)^3 at most, given the landmarks.

    Parameters
    ----------
    num_pairs, d, tau : pairs of features, rows of the sketch, and exponent of the failure probability.
    kappa, op_norm, eigenvalue : sup K(x, x), S and lambda_k.
    epsilon : of Assumption 1, which both sets meet.
    squared_diameter, squared_distance : D, the larger of the sets', and Delta, of one set from the other.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for u < 1 and Delta > 4 epsilon kappa.

    Source: Proposition K of docs/theory/kpotufe2020.md; claim jaxkern:scale-free.
    """
    norms = relative_norms(num_functions=num_pairs, d=d, tau=tau)
    u, room = norms.value, squared_distance - 4 * epsilon * kappa
    value = (1 + u) / (1 - u) * (op_norm / eigenvalue) ** 3 * squared_diameter / room
    valid = norms.valid & (u < 1) & (room > 0) & (op_norm <= kappa * (1 + 1e-9))
    return Bound(
        value,
        norms.probability,
        valid,
        "jaxkern, Proposition K",
        exponent=norms.exponent,
    )
