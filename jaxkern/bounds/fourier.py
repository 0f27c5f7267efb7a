r"""Right-hand sides of chen2016 and of the random-feature part of ghashami2016, as printed and as corrected.

Words: num_frequencies = t frequencies, each of which gives a cosine and a sine (`features.paired_fourier`);
num_features = m cosines with random shifts (`features.shifted_fourier`, the map of ghashami2016). Distances are in
units of the lengthscale. D is the kernel distance, Dhat the distance of the features, K the kernel and Khat the inner
product of the features, G and Ghat their Gram matrices over num_points = n points, of which there are
n (n - 1) / 2 pairs. In most statements the value is the error asked for, and the probability follows from the sizes.

Everything about relative errors rests on one theorem (Theorem A of docs/theory/chen2016.md): for the Gaussian kernel
Dhat^2 / D^2 is below chi2_t / t in the convex order, at every distance. Python floats give exact float64; arrays and
tracers give `jax.numpy`.
"""

from __future__ import annotations

import math
from typing import Any

import jax.scipy.special
import scipy.special

from jaxkern.bounds._bound import Bound, certain, formula, namespace, note_of

__all__ = [
    "ball",
    "chi_square_mean",
    "dimension_limit",
    "distance_lower",
    "far_distance",
    "gradient",
    "gram_frobenius_paired",
    "gram_frobenius_paired_bernstein",
    "gram_frobenius_shifted",
    "gram_spectral_paired",
    "gram_spectral_paired_all_n",
    "gram_spectral_shifted",
    "kernel_value",
    "lipschitz_squared",
    "log_mgf",
    "near_distance",
    "quadratic_form_paired",
    "quadratic_form_shifted",
    "ratio_lower",
    "ratio_upper",
    "relative_distances",
    "relative_distances_closed_form",
    "relative_distances_sharp",
    "squared_distance_lower",
    "sub_exponential",
    "success_limit",
]

_FARTHEST = math.sqrt(2 - 2 * math.exp(-0.5))
"""The kernel distance at distance 1: D(r) >= .887 r for r <= 1."""

_SMALLEST = 1e-4
"""Differences of nearly equal numbers lose too many digits for smaller relative errors."""

_MOST = 60.0
"""Exponents are cut here: a failure probability of exp(60) says no more than one of exp(600), and does not overflow."""


# ------------------------------------------------------------------------------------------- one pair: chen2016, 2-4


@formula
def kernel_value(*, eps: Any, num_frequencies: Any, as_printed: bool = False) -> Bound:
    """Bound |K(x, y) - Khat(x, y)| by eps for one pair, with probability 1 - 2 exp(-t eps^2 / 2).

    As printed the terms are said to lie in [-2, 2], which gives 1 - 2 exp(-t eps^2 / 8); they lie in [-1, 1].

    Returns
    -------
    Bound, valid for eps > 0; as printed, for 0 < eps < 1/2.

    Source: chen2016, Corollary 2.2.
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

    Source: chen2016, Lemma 2.2.
    """
    np = namespace(eps, num_frequencies, distance)
    if as_printed:
        valid = np.logical_and(np.logical_and(eps > 0, eps < 0.1), distance >= 1)
        return Bound(eps, 1 - 2 * np.exp(-num_frequencies * eps**2 / 128), valid, "chen2016, Lemma 2.2 (printed)")
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), distance >= 1)
    probability = 1 - 2 * np.exp(-num_frequencies * (_FARTHEST**2 / 2 * eps) ** 2 / 2)
    return Bound(eps, probability, valid, "chen2016, Lemma 2.2 (constants corrected)")


@formula
def distance_lower(*, distance: Any, as_printed: bool = False) -> Bound:
    """Bound D from *below* by .887 times the distance, sqrt(2 - 2 / sqrt(e)) exactly; as printed by .86 times it.

    Returns
    -------
    Bound whose value D is at least; deterministic, valid for distance <= 1.

    Source: chen2016, (2).
    """
    factor, note = (0.86, " (printed)") if as_printed else (_FARTHEST, " (sharp)")
    return Bound(factor * distance, certain(factor * distance), distance <= 1, "chen2016, (2)" + note)


@formula
def squared_distance_lower(*, eps: Any, distance: Any) -> Bound:
    """Bound D^2 from *below* by (1 - eps) distance^2.

    Returns
    -------
    Bound whose value D^2 is at least; deterministic, valid for distance <= 2 sqrt(eps).

    Source: chen2016, (3).
    """
    np = namespace(eps, distance)
    return Bound(
        (1 - eps) * distance**2, certain((1 - eps) * distance**2), distance <= 2 * np.sqrt(eps), "chen2016, (3)"
    )


@formula
def ratio_upper(*, second_moment: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound Dhat^2 / D^2 by S2 / (1 - r^2 / 4), S2 the mean of w^2 over the frequencies along x - y, r the distance.

    As printed the denominator is 1 - r^2 / 2, and all |w| r <= 1 is assumed; the assumption is not needed.

    Returns
    -------
    Bound, deterministic, valid for distance < 2; as printed, for distance <= 1.

    Source: chen2016, (4), left.
    """
    if as_printed:
        value = second_moment / (1 - distance**2 / 2)
        return Bound(value, certain(value), distance <= 1, "chen2016, (4), left (printed)")
    return Bound(
        second_moment / (1 - distance**2 / 4),
        certain(second_moment / (1 - distance**2 / 4)),
        distance < 2,
        "chen2016, (4), left (sharper)",
    )


@formula
def ratio_lower(*, second_moment: Any, fourth_moment: Any, distance: Any) -> Bound:
    """Bound Dhat^2 / D^2 from *below* by S2 - r^2 S4 / 12, S2 and S4 the means of w^2 and w^4 along x - y.

    Returns
    -------
    Bound whose value the ratio is at least; deterministic, valid at every distance.

    Source: chen2016, (4), right.
    """
    return Bound(
        second_moment - distance**2 / 12 * fourth_moment,
        certain(second_moment - distance**2 / 12 * fourth_moment),
        distance >= 0,
        "chen2016, (4), right",
    )


@formula
def chi_square_mean(*, eps: Any, num_frequencies: Any, as_printed: bool = False) -> Bound:
    """Bound |chi2_t / t - 1| by eps, by the exact exponents of the two tails.

    The probability is 1 - exp(-t (eps - log(1 + eps)) / 2) - exp(-t (-eps - log(1 - eps)) / 2). As printed:
    1 - 2 exp(-t eps^2 / 8), which holds and is two to six times too pessimistic in t.

    Returns
    -------
    Bound, valid for 0 < eps < 1.

    Source: chen2016, Lemma 3.2.
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

    Source: chen2016, Theorem 3.1 (which names no constant), made explicit.
    """
    np = namespace(eps, num_frequencies, num_points)
    lower, upper = _gammas(np)
    half = num_frequencies / 2
    inside = 1 - upper(half, half * (1 + eps) ** 2) - lower(half, half * (1 - eps) ** 2)
    value = np.exp(num_points / 2 * np.log(np.maximum(inside, 1e-30)))
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), num_points >= 2)
    return Bound(value, certain(value), valid, "chen2016, Theorem 3.1 (explicit)")


@formula
def log_mgf(*, s: Any, distance: Any, as_printed: bool = False) -> Bound:
    """Bound log E exp(s (X - E X)) for X = 1 - cos(w r): the logarithm for E X chi2_1, -log(1 - 2 s mu) / 2 - s mu.

    Here mu = E X = 1 - exp(-r^2 / 2). As printed: s^2 r^4 / 4, which is false: as r tends to 0
    with s r^2 = y fixed the left side tends to -log(1 - y) / 2 - y / 2 = y^2 / 4 + y^3 / 6 + ...

    Returns
    -------
    Bound, deterministic, valid for every real s < 1 / (2 mu); as printed for 0 <= s < 1 / (2 r^2) and r <= 1.

    Source: chen2016, Lemma 4.1; Theorem A of docs/theory/chen2016.md.
    """
    np = namespace(s, distance)
    if as_printed:
        valid = np.logical_and(np.logical_and(s >= 0, 2 * s * distance**2 < 1), distance <= 1)
        return Bound(s**2 * distance**4 / 4, certain(s**2 * distance**4 / 4), valid, "chen2016, Lemma 4.1 (printed)")
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

    Source: chen2016, (5).
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

    Source: chen2016, Lemma 4.2.
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

    Source: chen2016, Theorem 4.1 (which names no constant), made explicit; Theorem B of docs/theory/chen2016.md.
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

    Source: Theorem B of docs/theory/chen2016.md.
    """
    np = namespace(eps, num_frequencies, num_points)
    lower, upper = _gammas(np)
    half, inside = num_frequencies / 2, _inside(np, eps)
    u, v = (1 + inside) ** 2, (1 - inside) ** 2
    c = np.maximum(u - 2 * u / (num_frequencies * (u - 1)), 0.0)
    above = (upper(half + 1, half * c) - c * upper(half, half * c)) / (u - c)
    c = v + 2 * v / (num_frequencies * (1 - v))
    below = (c * lower(half, half * c) - lower(half + 1, half * c)) / (c - v)
    bound = _all_pairs(np, eps, num_points, above + below, "jaxkern, Theorem B of chen2016")
    return Bound(bound.value, bound.probability, np.logical_and(bound.valid, eps >= _SMALLEST), bound.source)


# ------------------------------------------------------------------------------- all points of a ball: chen2016, 5-6


@formula
def gradient(
    *, frequency_energy: Any, distance: Any, dim: Any, num_frequencies: Any, as_printed: bool = False
) -> Bound:
    """Bound |grad Dhat^2| by (2 / t) sum |w_i|^2 times the distance; frequency_energy is sum |w_i|^2.

    As printed sqrt(dim) sum |w_i|^2 times the distance: the factor 2 / t is missing, which makes it false for
    t sqrt(dim) < 2.

    Returns
    -------
    Bound, deterministic, valid at every distance.

    Source: chen2016, Lemma 5.1.
    """
    np = namespace(frequency_energy, distance, dim, num_frequencies)
    if as_printed:
        value = np.sqrt(dim) * frequency_energy * distance
        return Bound(value, certain(value), distance >= 0, "chen2016, Lemma 5.1 (printed)")
    value = 2 / num_frequencies * frequency_energy * distance
    return Bound(value, certain(value), distance >= 0, "chen2016, Lemma 5.1 (corrected)")


@formula
def lipschitz_squared(*, radius: Any, dim: Any, num_frequencies: Any, tau: Any) -> Bound:
    """Bound the Lipschitz constant of Dhat^2 over differences of length <= radius by 2 radius |A|, A = sum w w' / t.

    And |A| <= (1 + (sqrt(dim) + sqrt(2 tau)) / sqrt(t))^2. The paper has O(radius t sqrt(dim) log n), from
    |w_i|^2 = O(log n), which is false in high dimensions.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: chen2016, Corollary 5.1, corrected.
    """
    np = namespace(radius, dim, num_frequencies, tau)
    root = 1 + (np.sqrt(dim) + np.sqrt(2 * tau)) / np.sqrt(num_frequencies)
    return Bound(2 * radius * root**2, 1 - np.exp(-tau), tau > 0, "chen2016, Corollary 5.1 (corrected)")


@formula
def ball(
    *,
    eps: Any,
    num_frequencies: Any,
    dim: Any,
    diameter: Any,
    tau: Any = 5.0,
    inner: Any = 0.85,
    shell: Any = 1.5,
) -> Bound:
    """Bound |Dhat / D - 1| by eps for *all* points of R^dim at distance <= diameter, uncountably many.

    Near zero the extreme eigenvalues of A = sum w w' / t decide; elsewhere a net of differences on which the error is
    inner * eps, joined by |Dhat(a) - Dhat(b)| <= sqrt|A| |a - b|. tau, inner (in (0, 1)) and shell (> 1, the ratio of
    radii of neighbouring shells) are free: every value gives a true statement, and `jaxkern.plan.fourier` looks for
    good ones. The formula is in Theorem C of docs/theory/chen2016.md.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau) - (two tails) * (size of the net), valid for 1e-4 <= eps < 1 and
    (sqrt(dim) + sqrt(2 tau)) / sqrt(t) < eps.

    Source: chen2016, Lemma 5.2, Corollary 5.2 and Theorem 5.1 (which name no constants), made explicit.
    """
    np = namespace(eps, num_frequencies, dim, diameter, tau, inner, shell)
    b = (np.sqrt(dim) + np.sqrt(2 * np.maximum(tau, 0.0))) / np.sqrt(num_frequencies)
    longest = np.sqrt(dim) + np.sqrt(2 * np.maximum(tau + np.log(num_frequencies), 0.0))
    error = _inside(np, eps)
    share = _inside(np, inner)
    near = np.minimum(b, error * (1 - 1e-9))
    upper = 4 * (1 - ((1 + near) / (1 + error)) ** 2)
    lower = 12 * (1 - ((1 - error) / (1 - near)) ** 2) / longest**2
    start = np.sqrt(np.minimum(upper, lower))
    mesh = _FARTHEST * (1 - share) * error / (2 + share * error + b)
    outer_net = dim * np.log(1 + 2 * np.maximum(diameter, 1.0) / mesh)
    ratio = np.maximum(shell, 1 + 1e-6)
    shells = np.log(np.maximum(np.minimum(diameter, 1.0) / start, 1.0)) / np.log(ratio) + 1
    inner_net = dim * np.log(1 + 2 * ratio / mesh) + np.log(shells)
    e = share * error
    failure = 3 * np.exp(-tau)
    for x in ((1 + e) ** 2, (1 - e) ** 2):
        exponent = num_frequencies * (x - 1 - np.log(x)) / 2
        failure = failure + np.exp(np.minimum(outer_net - exponent, _MOST))
        failure = failure + np.exp(np.minimum(inner_net - exponent, _MOST))
    valid = np.logical_and(np.logical_and(eps >= _SMALLEST, eps < 1), np.logical_and(b < eps, tau > 0))
    valid = np.logical_and(valid, np.logical_and(np.logical_and(inner > 0, inner < 1), shell > 1))
    return Bound(eps, 1 - failure, valid, "chen2016, Theorem 5.1 (explicit)")


@formula
def dimension_limit(*, eps: Any, dim: Any, radius: Any) -> Bound:
    """Bound from *below* the dimension of any unit-norm map h with |K(x, y) - <h(x), h(y)>| <= eps on a ball.

    With n = (radius / sqrt(2 log(1 / eps)))^dim, the size of a packing, it is the largest over k = 1, ..., 32 of
    (k / e) (min(n, (2 eps)^(-2 k)) / 2)^(1 / k) - k + 1, from the rank of the k-th Hadamard power of the Gram matrix.

    Returns
    -------
    Bound whose value the dimension is at least; deterministic, valid for 0 < eps < 1/4 and n >= 1.

    Source: chen2016, Lemma 6.1 (which names no constant, and does not ask for unit norm), made explicit.
    """
    np = namespace(eps, dim, radius)
    error = _inside(np, eps, 0.25)
    log_n = dim * np.log(np.maximum(radius / np.sqrt(2 * np.log(1 / error)), 1e-30))
    value = 1.0
    for k in range(1, 33):
        power = np.minimum(log_n, -2 * k * np.log(2 * error))  # n / (1 + n x) >= min(n, 1 / x) / 2
        value = np.maximum(value, k / math.e * np.exp(np.minimum((power - math.log(2.0)) / k, _MOST)) - k + 1)
    valid = np.logical_and(np.logical_and(eps > 0, eps < 0.25), log_n >= 0)
    return Bound(value, certain(value), valid, "chen2016, Lemma 6.1 (explicit)")


# ------------------------------------------------------------------------------------- Gram matrices: ghashami2016, 3


@formula
def gram_spectral_shifted(*, eps: Any, num_features: Any, num_points: Any, as_printed: bool = False) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for shifted features: matrix Bernstein, 2 n exp(-eps^2 m / (2 + 4 eps / 3)).

    As printed the exponent is eps^2 m / (9 + 8 eps), from a weaker inequality and two triangle inequalities.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Lemma 3.1.
    """
    np = namespace(eps, num_features, num_points)
    scale = 9 + 8 * eps if as_printed else 2 + 4 * eps / 3
    failure = 2 * num_points * np.exp(-(eps**2) * num_features / scale)
    return Bound(eps, 1 - failure, eps > 0, "ghashami2016, Lemma 3.1" + note_of(as_printed, "constants corrected"))


@formula
def gram_spectral_paired(*, eps: Any, num_frequencies: Any, num_points: Any) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for paired features: 2 n exp(-eps^2 t / (1/2 + 2 eps / 3)).

    At equal numbers of features, m = 2 t, this is about half of what shifted features need.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Lemma 3.1, for paired features; docs/theory/ghashami2016.md.
    """
    np = namespace(eps, num_frequencies, num_points)
    failure = 2 * num_points * np.exp(-(eps**2) * num_frequencies / (0.5 + 2 * eps / 3))
    return Bound(eps, 1 - failure, eps > 0, "ghashami2016, Lemma 3.1 (paired features)")


@formula
def gram_spectral_paired_all_n(*, eps: Any, num_frequencies: Any) -> Bound:
    """Bound |G - Ghat|_2 / n by eps for paired features, whatever n: 40 exp(-eps^2 t / (1/2 + 2 eps / 3)).

    The intrinsic dimension of the variance, at most 5, replaces n.

    Returns
    -------
    Bound, valid for eps >= 1 / (2 sqrt(t)) + 1 / (3 t) and every shift-invariant kernel with K(x, x) = 1.

    Source: Theorem C of docs/theory/ghashami2016.md.
    """
    np = namespace(eps, num_frequencies)
    failure = 40 * np.exp(-(eps**2) * num_frequencies / (0.5 + 2 * eps / 3))
    valid = eps >= 1 / (2 * np.sqrt(num_frequencies)) + 1 / (3 * num_frequencies)
    return Bound(eps, 1 - failure, valid, "jaxkern, Theorem C of ghashami2016")


@formula
def gram_frobenius_shifted(*, num_features: Any, tau: Any, variance: Any = 1.5) -> Bound:
    """Bound |G - Ghat|_F / n for shifted features by (sqrt(variance) + 2 sqrt(tau)) / sqrt(m), whatever n.

    Equivalently m = (sqrt(1.5) + 2 sqrt(log(1 / delta)))^2 / eps^2 features give an error of eps n. variance is the
    largest of 1 + K(2 d) / 2 - K(d)^2 over differences d: at most 3/2 for every kernel, 1 for the Gaussian one.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: Theorem A of docs/theory/ghashami2016.md.
    """
    np = namespace(num_features, tau, variance)
    value = (np.sqrt(variance) + 2 * np.sqrt(tau)) / np.sqrt(num_features)
    return Bound(value, 1 - np.exp(-tau), tau > 0, "jaxkern, Theorem A of ghashami2016")


@formula
def gram_frobenius_paired(*, num_frequencies: Any, tau: Any, variance: Any = 1.0) -> Bound:
    """Bound |G - Ghat|_F / n for paired features by (sqrt(variance) + sqrt(tau)) / sqrt(t), whatever n.

    variance is the largest of (1 + K(2 d)) / 2 - K(d)^2 over differences d: at most 1 for every kernel, 1/2 for the
    Gaussian and every other kernel with K(2 d) <= 2 K(d)^2.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: Theorem A of docs/theory/ghashami2016.md.
    """
    np = namespace(num_frequencies, tau, variance)
    value = (np.sqrt(variance) + np.sqrt(tau)) / np.sqrt(num_frequencies)
    return Bound(value, 1 - np.exp(-tau), tau > 0, "jaxkern, Theorem A of ghashami2016 (paired features)")


@formula
def gram_frobenius_paired_bernstein(*, eps: Any, num_frequencies: Any, variance: Any = 1.0) -> Bound:
    """Bound |G - Ghat|_F / n by eps for paired features, whatever n: 2 exp(-eps^2 t / (2 v + 2 sqrt(2) eps / 3)).

    v is the `variance` of `gram_frobenius_paired`. The smaller of the two bounds for small failure probabilities.

    Returns
    -------
    Bound, valid for eps > 0.

    Source: Theorem B of docs/theory/ghashami2016.md.
    """
    np = namespace(eps, num_frequencies, variance)
    failure = 2 * np.exp(-(eps**2) * num_frequencies / (2 * variance + 2 * math.sqrt(2.0) * eps / 3))
    return Bound(eps, 1 - failure, eps > 0, "jaxkern, Theorem B of ghashami2016")


@formula
def quadratic_form_shifted(*, eps: Any, num_features: Any, as_printed: bool = False) -> Bound:
    """Bound |x' (G - Ghat) x| / n by eps for one unit vector x and shifted features: 2 exp(-eps^2 m / 2).

    As printed 2 exp(-2 eps^2 m), a factor 4 too much in the exponent, and false.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Theorem 3.1.
    """
    np = namespace(eps, num_features)
    factor = 2 if as_printed else 0.5
    probability = 1 - 2 * np.exp(-factor * eps**2 * num_features)
    return Bound(eps, probability, eps > 0, "ghashami2016, Theorem 3.1" + note_of(as_printed, "corrected"))


@formula
def quadratic_form_paired(*, eps: Any, num_frequencies: Any) -> Bound:
    """Bound |x' (G - Ghat) x| / n by eps for one unit vector x and paired features: 2 exp(-2 eps^2 t).

    The exponent printed for m shifted features holds for t pairs of them.

    Returns
    -------
    Bound, valid for eps > 0 and every shift-invariant kernel with K(x, x) = 1.

    Source: ghashami2016, Theorem 3.1, for paired features; docs/theory/ghashami2016.md.
    """
    np = namespace(eps, num_frequencies)
    probability = 1 - 2 * np.exp(-2 * eps**2 * num_frequencies)
    return Bound(eps, probability, eps > 0, "ghashami2016, Theorem 3.1 (paired features)")


# ------------------------------------------------------------------------------------------------------------ shared


def _chernoff(np: Any, t: Any, u: Any, v: Any) -> Any:
    """Return Chernoff's bound of P(chi2_t / t >= u) + P(chi2_t / t <= v), for v < 1 < u; the second is 0 for v <= 0."""
    u, v = np.maximum(u, 1e-30), np.maximum(v, 1e-30)
    return np.exp(-t * (u - 1 - np.log(u)) / 2) + np.exp(-t * (v - 1 - np.log(v)) / 2)


def _all_pairs(np: Any, eps: Any, num_points: Any, failure: Any, source: str) -> Bound:
    """Return the bound eps with the failure probability of a pair times the number of pairs."""
    valid = np.logical_and(np.logical_and(eps > 0, eps < 1), num_points >= 1)
    return Bound(eps, 1 - num_points * (num_points - 1) / 2 * failure, valid, source)


def _gammas(np: Any) -> tuple[Any, Any]:
    """Return the regularised lower and upper incomplete gamma functions, in the arithmetic of `np`."""
    if np is not namespace(0.0):
        return jax.scipy.special.gammainc, jax.scipy.special.gammaincc
    return (
        lambda a, x: float(scipy.special.gammainc(a, x)),
        lambda a, x: float(scipy.special.gammaincc(a, x)),
    )


def _inside(np: Any, eps: Any, most: float = 1.0) -> Any:
    """Return eps moved into (0, most), where formulas are defined; `valid` says where it was."""
    return np.minimum(np.maximum(eps, 1e-6), most - 1e-6)
