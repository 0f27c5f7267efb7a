r"""Right-hand sides of kpotufe2020 (Kernel JL), as printed and as corrected.

Words: op_norm = |Sigma|_op = S, trace = tr Sigma, trace3 = tr Sigma^3, hs_norm = |Sigma|_HS, kappa = sup K(x, x),
n = number of landmarks, d = number of sketch rows, and tau sets the failure probability. Effective ranks are
s = trace / S and s3 = trace3 / S^3. Python floats give exact float64; arrays and tracers give `jax.numpy`.

The paper leaves the constant of its d-term open. Here it has the value `KOLTCHINSKII_LOUNICI` = 5.92, proved in
docs/theory/kpotufe2020.md (Theorem A there), where the corrections are derived too.
"""

from __future__ import annotations

import math
from typing import Any

from jaxkern.bounds._bound import Bound, formula, namespace

__all__ = [
    "KOLTCHINSKII_LOUNICI",
    "KOLTCHINSKII_LOUNICI_LOWER",
    "conditional_sketch",
    "covariance_deviation",
    "covariance_deviation_bernstein",
    "covariance_deviation_sharp",
    "cube_deviation",
    "cube_trace",
    "hilbert_mean",
    "inner_products",
    "inner_products_all_d",
    "inner_products_every_n",
    "largest_stretch",
    "mean_separation_shortfall",
    "projected_inner_products",
    "projected_inner_products_all_d",
    "relative_norms",
    "separation_shortfall",
    "weak_difference",
    "weak_difference_coupled",
]

KOLTCHINSKII_LOUNICI = 5.92
"""A value of the universal constant for Gaussian covariance operators (kpotufe2020, Theorem C.1): Theorem A."""

KOLTCHINSKII_LOUNICI_LOWER = 3.505
"""No smaller universal constant works: P(chi2_n / n >= 1 + u) > exp(-n) for u - log(1 + u) < 2 and n large."""

_SLACK = 0.51
"""Bounds (sqrt(n) - E|h|) + E(E|h| - |h|)_+ for a standard normal h in R^n, every n >= 1."""


@formula
def covariance_deviation(*, kappa: Any, trace: Any, n: Any, tau: Any) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by 4 sqrt(2 kappa tr(Sigma) tau / n).

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 8 kappa tau / (9 tr Sigma) and tau > 0.

    Source: kpotufe2020, Lemma B.2; claim kpotufe2020:lemB.2.
    """
    np = namespace(kappa, trace, n, tau)
    value = 4 * np.sqrt(2 * kappa * trace * tau / n)
    valid = np.logical_and(tau > 0, n >= 8 * kappa * tau / (9 * trace))
    return Bound(value, 1 - 2 * np.exp(-tau), valid, "kpotufe2020, Lemma B.2")


@formula
def covariance_deviation_bernstein(*, kappa: Any, trace: Any, n: Any, tau: Any) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by sqrt(2 kappa tr(Sigma) tau / n) + 4 kappa tau / n, for every n >= 1.

    It is what Bernstein's inequality gives before it is simplified to Lemma B.2: never larger under the condition of
    that lemma, and up to four times smaller.

    Source: kpotufe2020, Theorem C.2 with B = 2 kappa and theta^2 = kappa tr Sigma; claim jaxkern:lemB.2-bernstein.
    """
    np = namespace(kappa, trace, n, tau)
    value = np.sqrt(2 * kappa * trace * tau / n) + 4 * kappa * tau / n
    valid = np.logical_and(tau > 0, n >= 1)
    return Bound(value, 1 - 2 * np.exp(-tau), valid, "jaxkern, from kpotufe2020, Theorem C.2")


@formula
def hilbert_mean(*, theta: Any, scale: Any, n: Any, tau: Any, as_printed: bool = False) -> Bound:
    """Bound |(xi_1 + ... + xi_n) / n| by sqrt(2 theta^2 tau / n) + B tau / n, xi_i in a Hilbert space (B is `scale`).

    The xi_i are independent copies of a centred xi with E |xi|^m <= (m! / 2) theta^2 B^(m - 2) for every m >= 2; for
    |xi| <= M and E |xi|^2 <= theta^2 that is B = M / 3. The paper prints 2 B tau / n, which is larger, and asks for
    m > 2 only, which is not enough (claim kpotufe2020:thmC.2).

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 1 and tau > 0.

    Source: kpotufe2020, Theorem C.2; Proposition H of docs/theory/kpotufe2020.md.
    """
    np = namespace(theta, scale, n, tau)
    value = np.sqrt(2 * theta * theta * tau / n) + (2 if as_printed else 1) * scale * tau / n
    valid = np.logical_and(tau > 0, n >= 1)
    return Bound(value, 1 - 2 * np.exp(-tau), valid, "kpotufe2020, Theorem C.2" + (" (printed)" if as_printed else ""))


@formula
def covariance_deviation_sharp(*, kappa: Any, trace: Any, hs_norm: Any, n: Any, tau: Any) -> Bound:
    """Bound |Sigma_n - Sigma|_HS by sqrt(2 (kappa tr Sigma - h^2) tau / n) + sqrt(kappa^2 + h^2) tau / (3 n).

    Here h = |Sigma|_HS. Never larger than `covariance_deviation_bernstein`; its second term is at least eight times
    smaller.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 1 and tau > 0.

    Source: Proposition H of docs/theory/kpotufe2020.md; claim jaxkern:lemB.2-sharp.
    """
    np = namespace(kappa, trace, hs_norm, n, tau)
    valid = np.logical_and(tau > 0, n >= 1)
    value = _sharp(kappa, trace, hs_norm, n, tau)
    return Bound(value, 1 - 2 * np.exp(-tau), valid, "jaxkern, Proposition H")


@formula
def cube_deviation(*, kappa: Any, op_norm: Any, trace: Any, n: Any, tau: Any) -> Bound:
    """Bound |Sigma_n^3 - Sigma^3|_op by 28 S^2 sqrt(2 kappa tr(Sigma) tau / n).

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for n >= 32 kappa s tau / S and tau > 0.

    Source: kpotufe2020, (7) (which prints Sigma_n^3 - Sigma_n^3); claim kpotufe2020:eq7.
    """
    np = namespace(kappa, op_norm, trace, n, tau)
    value = 28 * op_norm**2 * np.sqrt(2 * kappa * trace * tau / n)
    return Bound(value, 1 - 2 * np.exp(-tau), _enough(kappa, op_norm, trace, n, tau, 32.0), "kpotufe2020, (7)")


@formula
def cube_trace(
    *, kappa: Any, op_norm: Any, trace: Any, trace3: Any, hs_norm: Any, n: Any, tau: Any, as_printed: bool = False
) -> Bound:
    """Bound tr Sigma_n^3 by tr Sigma^3 + 28 S |Sigma|_HS sqrt(2 kappa tr(Sigma) tau / n).

    As printed the last term has |Sigma|_HS^2 for S |Sigma|_HS, which is never smaller.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), on the same event as `cube_deviation`; valid for n >= 32 kappa s tau / S.

    Source: kpotufe2020, (8); claim kpotufe2020:eq8.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, tau)
    factor = hs_norm * (hs_norm if as_printed else op_norm)
    value = trace3 + 28 * factor * np.sqrt(2 * kappa * trace * tau / n)
    source = "kpotufe2020, (8)" + (" (printed)" if as_printed else "")
    return Bound(value, 1 - 2 * np.exp(-tau), _enough(kappa, op_norm, trace, n, tau, 32.0), source)


@formula
def projected_inner_products(
    *, op_norm: Any, trace3: Any, d: Any, tau: Any, constant: Any = KOLTCHINSKII_LOUNICI
) -> Bound:
    """Bound |Theta* Theta - Sigma^3|_op by C S^3 (sqrt(s3) + sqrt(tau)) / sqrt(d).

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau >= 1 and d >= max(s3, tau). `constant=1` gives its shape.

    Source: kpotufe2020, Proposition 1, with its constant made explicit; claim kpotufe2020:prop1.
    """
    np = namespace(op_norm, trace3, d, tau, constant)
    rank = trace3 / op_norm**3
    value = constant * op_norm**3 * (np.sqrt(rank) + np.sqrt(tau)) / np.sqrt(d)
    valid = np.logical_and(tau >= 1, d >= np.maximum(rank, tau))
    return Bound(value, 1 - np.exp(-tau), valid, "kpotufe2020, Proposition 1")


@formula
def projected_inner_products_all_d(*, op_norm: Any, trace3: Any, d: Any, tau: Any) -> Bound:
    """Bound |Theta* Theta - Sigma^3|_op by S^3 (2 D + D^2), D = (sqrt(s3) + .51 + sqrt(2 tau)) / sqrt(d), for all d.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for every d >= 1 and tau > 0.

    Source: Theorem A of docs/theory/kpotufe2020.md; claim jaxkern:prop1-explicit.
    """
    np = namespace(op_norm, trace3, d, tau)
    deviation = (np.sqrt(trace3 / op_norm**3) + _SLACK + np.sqrt(2 * tau)) / np.sqrt(d)
    value = op_norm**3 * (2 * deviation + deviation**2)
    return Bound(value, 1 - 2 * np.exp(-tau), tau > 0, "jaxkern, Theorem A")


@formula
def conditional_sketch(*, op_norm3: Any, trace3: Any, d: Any, tau: Any, constant: Any = KOLTCHINSKII_LOUNICI) -> Bound:
    """Bound |S* V V^T S - Sigma_n^3|_op given the sample by C (sqrt(t o / d) + o sqrt(tau / d)).

    Here o = |Sigma_n^3|_op and t = tr Sigma_n^3 are those of the sample.

    Returns
    -------
    Bound with probability 1 - exp(-tau) given the sample, valid for tau >= 1 and d >= max(t / o, tau).

    Source: kpotufe2020, Lemma B.3, with its constant made explicit; claim kpotufe2020:lemB.3.
    """
    np = namespace(op_norm3, trace3, d, tau, constant)
    value = constant * (np.sqrt(trace3 * op_norm3 / d) + op_norm3 * np.sqrt(tau / d))
    valid = np.logical_and(tau >= 1, d >= np.maximum(trace3 / op_norm3, tau))
    return Bound(value, 1 - np.exp(-tau), valid, "kpotufe2020, Lemma B.3")


@formula
def inner_products(
    *,
    kappa: Any,
    op_norm: Any,
    trace: Any,
    trace3: Any,
    n: Any,
    d: Any,
    tau: Any,
    constant: Any = KOLTCHINSKII_LOUNICI,
    as_printed: bool = False,
) -> Bound:
    """Bound sup |<V^T S g, V^T S f> - <g, Sigma^3 f>| over unit f, g: Kernel JL preserves <., Sigma^3 .>.

    As printed: 3 C S^3 (sqrt(2 s3) + sqrt(tau)) / sqrt(d) + 28 S^(5/2) sqrt(2 kappa s tau / n) with probability
    1 - 5 exp(-tau) for n >= 6272 kappa s^5 tau / S and *every* d; that is false for every constant C when d is small
    (claim kpotufe2020:thm1). Corrected, with better constants: C S^3 (sqrt(3 s3) + 1.5 sqrt(tau)) / sqrt(d) plus the
    same n-term, with probability 1 - 3 exp(-tau), for n >= 6272 kappa s max(1, sqrt(s) / 4) tau / S and
    d >= max(4 s3, tau).

    Returns
    -------
    Bound, with `valid` the hypotheses of the form asked for.

    Source: kpotufe2020, Theorem 1; Theorem B of docs/theory/kpotufe2020.md.
    """
    np = namespace(kappa, op_norm, trace, trace3, n, d, tau, constant)
    rank, rank3 = trace / op_norm, trace3 / op_norm**3
    n_term = 28 * op_norm**2.5 * np.sqrt(2 * kappa * rank * tau / n)
    unit = kappa * tau / op_norm
    if as_printed:
        d_term = 3 * constant * op_norm**3 * (np.sqrt(2 * rank3) + np.sqrt(tau)) / np.sqrt(d)
        valid = np.logical_and(tau >= 1, n >= 6272 * rank**5 * unit)
        return Bound(d_term + n_term, 1 - 5 * np.exp(-tau), valid, "kpotufe2020, Theorem 1 (printed)")
    d_term = constant * op_norm**3 * (np.sqrt(3 * rank3) + 1.5 * np.sqrt(tau)) / np.sqrt(d)
    enough_n = n >= 6272 * rank * np.maximum(1.0, np.sqrt(rank) / 4) * unit
    enough_d = d >= np.maximum(4 * rank3, tau)
    valid = np.logical_and(np.logical_and(tau >= 1, enough_n), enough_d)
    return Bound(d_term + n_term, 1 - 3 * np.exp(-tau), valid, "kpotufe2020, Theorem 1 (corrected)")


@formula
def inner_products_all_d(
    *, kappa: Any, op_norm: Any, trace: Any, trace3: Any, hs_norm: Any, n: Any, d: Any, tau: Any
) -> Bound:
    """Bound the quantity of `inner_products` for every d >= 1 and far fewer landmarks, all constants explicit.

    With D' = 28 S^2 sqrt(2 kappa tr(Sigma) tau / n), o^2 = S^3 + D', t = tr Sigma^3 + D' |Sigma|_HS / S and
    D = (sqrt(t) + o (.51 + sqrt(2 tau))) / sqrt(d), the bound is 2 o D + D^2 + D'.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for n >= 32 kappa s tau / S and every d >= 1.

    Source: Theorem C of docs/theory/kpotufe2020.md; claim jaxkern:thm1-all-d.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    n_term = 28 * op_norm**2 * np.sqrt(2 * kappa * trace * tau / n)
    root = np.sqrt(op_norm**3 + n_term)
    total = np.sqrt(trace3 + n_term * hs_norm / op_norm)
    deviation = (total + root * (_SLACK + np.sqrt(2 * tau))) / np.sqrt(d)
    value = 2 * root * deviation + deviation**2 + n_term
    return Bound(value, 1 - 4 * np.exp(-tau), _enough(kappa, op_norm, trace, n, tau, 32.0), "jaxkern, Theorem C")


@formula
def inner_products_every_n(
    *, kappa: Any, op_norm: Any, trace: Any, trace3: Any, hs_norm: Any, n: Any, d: Any, tau: Any
) -> Bound:
    """Bound the quantity of `inner_products` for every n >= 1 and every d >= 1, all constants explicit.

    With x the value of `covariance_deviation_sharp`, e = x^3 + 3 x^2 S + 3 x S^2, o^2 = S^3 + e,
    t = tr Sigma^3 + x^3 + 3 x^2 S + 3 x S |Sigma|_HS and D = (sqrt(t) + o (.51 + sqrt(2 tau))) / sqrt(d), the bound is
    2 o D + D^2 + e.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > 0, n >= 1 and d >= 1.

    Source: Theorem E of docs/theory/kpotufe2020.md; claim jaxkern:thm1-every-n.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    value = _every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    return Bound(value, 1 - 4 * np.exp(-tau), _some(n, d, tau), "jaxkern, Theorem E")


@formula
def separation_shortfall(
    *,
    kappa: Any,
    op_norm: Any,
    trace: Any,
    trace3: Any,
    hs_norm: Any,
    n: Any,
    d: Any,
    tau: Any,
    eigenvalue: Any,
    epsilon: Any,
    num_points: Any,
    eta: Any,
) -> Bound:
    """Bound lambda_k^3 Delta - inf |V^T S (f - g)|^2 over f, g in two sets of features whose distances^2 are >= Delta.

    It is 4 kappa (epsilon lambda_k^3 + e), e the value of `inner_products_every_n`: what Kernel JL may lose of a
    separation. `eigenvalue` is lambda_k; Assumption 1 holds with epsilon and eta; both sets are features of the same
    `num_points` draws from the law. The paper has 2 kappa epsilon lambda_k^3, which is false (claim kpotufe2020:eq10).

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau) - num_points eta, valid for tau > 0, n >= 1, d >= 1 and 0 <= epsilon <= 1.

    Source: kpotufe2020, (10), corrected; docs/theory/kpotufe2020.md.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau, eigenvalue, epsilon, num_points, eta)
    e = _every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    valid = np.logical_and(_some(n, d, tau), np.logical_and(epsilon >= 0, epsilon <= 1))
    probability = 1 - 4 * np.exp(-tau) - num_points * eta
    return Bound(4 * kappa * (epsilon * eigenvalue**3 + e), probability, valid, "kpotufe2020, (10) (corrected)")


@formula
def largest_stretch(
    *, kappa: Any, op_norm: Any, trace: Any, trace3: Any, hs_norm: Any, n: Any, d: Any, tau: Any
) -> Bound:
    """Bound sup |V^T S h|^2 over unit h by lambda_1^3 + e, e the value of `inner_products_every_n`.

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > 0, n >= 1 and d >= 1.

    Source: kpotufe2020, (11), corrected; claim kpotufe2020:eq11.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    value = op_norm**3 + _every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    return Bound(value, 1 - 4 * np.exp(-tau), _some(n, d, tau), "kpotufe2020, (11) (corrected)")


@formula
def mean_separation_shortfall(
    *,
    kappa: Any,
    op_norm: Any,
    trace: Any,
    trace3: Any,
    hs_norm: Any,
    n: Any,
    d: Any,
    tau: Any,
    sigma: Any,
    weight: Any,
    mean_gap: Any,
) -> Bound:
    """Bound lambda_1^3 |mu_1 - mu_2|^2 - |V^T S (mu_1 - mu_2)|^2 for a mixture of two laws whose features are centred.

    It is lambda_1^3 sigma / (pi_1 pi_2) + e |mu_1 - mu_2|^2, e the value of `inner_products_every_n`; `sigma` is the
    largest eigenvalue of the components' covariances, `weight` is pi_1 = 1 - pi_2 and `mean_gap` |mu_1 - mu_2|^2. The
    paper does not ask for E K(., X) = 0, without which it is false (claim kpotufe2020:eq12).

    Returns
    -------
    Bound with probability 1 - 4 exp(-tau), valid for tau > 0, n >= 1, d >= 1 and 0 < weight < 1.

    Source: kpotufe2020, (12), corrected; docs/theory/kpotufe2020.md.
    """
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau, sigma, weight, mean_gap)
    e = _every_n(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    value = op_norm**3 * sigma / (weight * (1 - weight)) + e * mean_gap
    valid = np.logical_and(_some(n, d, tau), np.logical_and(weight > 0, weight < 1))
    return Bound(value, 1 - 4 * np.exp(-tau), valid, "kpotufe2020, (12) (corrected)")


@formula
def relative_norms(*, num_functions: Any, d: Any, tau: Any) -> Bound:
    """Bound | |V^T S f|^2 / <f, Sigma_n^3 f> - 1 | over finitely many f by 2 sqrt(x / d) + 2 x / d.

    Here x = log(num_functions) + tau. A Johnson-Lindenstrauss lemma in the usual, relative form, given the landmarks:
    the functions may depend on them, not on Z. No property of the kernel enters, and functions with
    <f, Sigma_n^3 f> = 0 are mapped to 0.

    Returns
    -------
    Bound with probability 1 - 2 exp(-tau), valid for tau > 0, d >= 1 and num_functions >= 1.

    Source: Proposition J of docs/theory/kpotufe2020.md; claim jaxkern:relative.
    """
    np = namespace(num_functions, d, tau)
    x = np.log(num_functions) + tau
    valid = np.logical_and(tau > 0, np.logical_and(d >= 1, num_functions >= 1))
    return Bound(2 * np.sqrt(x / d) + 2 * x / d, 1 - 2 * np.exp(-tau), valid, "jaxkern, Proposition J")


@formula
def weak_difference(
    *, kappa: Any, op_norm: Any, trace: Any, n: Any, d: Any, tau: Any, as_printed: bool = False
) -> Bound:
    """Bound |<alpha, V^T S f> - <alpha, Theta f>| for fixed unit alpha and f and *independent* V and Theta.

    As printed: 16 sqrt(2 tau) max(S^(3/2), S^(5/4)) / sqrt(d) for n >= kappa s tau max(32 / S, 1). The inequality holds
    but is not covariant under scaling of the kernel; the default is 3 sqrt(2 tau) S^(3/2) / sqrt(d) for
    n >= 32 kappa s tau / S. Neither says that the two operators are close: both sides are of the size of either
    operator, and replacing Theta by zero makes the difference smaller. `weak_difference_coupled` does.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau), or 1 - 4 exp(-tau) as printed.

    Source: kpotufe2020, Theorem 2; claim kpotufe2020:thm2.
    """
    np = namespace(kappa, op_norm, trace, n, d, tau)
    if as_printed:
        value = 16 * np.sqrt(2 * tau) * np.maximum(op_norm**1.5, op_norm**1.25) / np.sqrt(d)
        enough = n >= kappa * trace / op_norm * tau * np.maximum(32 / op_norm, 1.0)
        valid = np.logical_and(tau > 0, enough)
        return Bound(value, 1 - 4 * np.exp(-tau), valid, "kpotufe2020, Theorem 2 (printed)")
    value = 3 * np.sqrt(2 * tau) * op_norm**1.5 / np.sqrt(d)
    valid = _enough(kappa, op_norm, trace, n, tau, 32.0)
    return Bound(value, 1 - 3 * np.exp(-tau), valid, "kpotufe2020, Theorem 2 (scaled)")


@formula
def weak_difference_coupled(*, kappa: Any, op_norm: Any, trace: Any, n: Any, d: Any, tau: Any) -> Bound:
    """Bound |<alpha, V^T S f> - <alpha, Theta f>| for unit alpha and f when both operators share their Gaussians.

    With v_i = Sigma^(3/2) g_i and S* vhat_i / n = Sigma_n^(3/2) g_i the difference is at most
    12 sqrt(2) tau S sqrt(kappa s / (n d)): it vanishes as n grows, for every d.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau), valid for n >= 32 kappa s tau / S.

    Source: Theorem D of docs/theory/kpotufe2020.md, what Theorem 2 means to say; claim kpotufe2020:thm2, corrected.
    """
    np = namespace(kappa, op_norm, trace, n, d, tau)
    value = 12 * math.sqrt(2.0) * tau * op_norm * np.sqrt(kappa * trace / op_norm / (n * d))
    valid = _enough(kappa, op_norm, trace, n, tau, 32.0)
    return Bound(value, 1 - 3 * np.exp(-tau), valid, "kpotufe2020, Theorem 2 (coupled)")


def _sharp(kappa: Any, trace: Any, hs_norm: Any, n: Any, tau: Any) -> Any:
    """Return the bound of `covariance_deviation_sharp`."""
    np = namespace(kappa, trace, hs_norm, n, tau)
    variance = np.maximum(kappa * trace - hs_norm**2, 0.0)
    return np.sqrt(2 * variance * tau / n) + np.sqrt(kappa**2 + hs_norm**2) * tau / (3 * n)


def _every_n(kappa: Any, op_norm: Any, trace: Any, trace3: Any, hs_norm: Any, n: Any, d: Any, tau: Any) -> Any:
    """Return the bound of `inner_products_every_n`."""
    np = namespace(kappa, op_norm, trace, trace3, hs_norm, n, d, tau)
    x = _sharp(kappa, trace, hs_norm, n, tau)
    rest = x**3 + 3 * x**2 * op_norm
    n_term = rest + 3 * x * op_norm**2
    root = np.sqrt(op_norm**3 + n_term)
    total = np.sqrt(trace3 + rest + 3 * x * op_norm * hs_norm)
    deviation = (total + root * (_SLACK + np.sqrt(2 * tau))) / np.sqrt(d)
    return 2 * root * deviation + deviation**2 + n_term


def _some(n: Any, d: Any, tau: Any) -> Any:
    """Return whether tau > 0, n >= 1 and d >= 1."""
    np = namespace(n, d, tau)
    return np.logical_and(tau > 0, np.logical_and(n >= 1, d >= 1))


def _enough(kappa: Any, op_norm: Any, trace: Any, n: Any, tau: Any, factor: float) -> Any:
    """Return whether tau > 0 and n >= factor kappa s tau / S, with room for the rounding of a size computed from it."""
    np = namespace(kappa, op_norm, trace, n, tau)
    return np.logical_and(tau > 0, n >= factor * kappa * trace * tau / op_norm**2 * (1 - 1e-12))
