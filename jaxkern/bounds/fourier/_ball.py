"""All points of a ball, and the fewest dimensions that any map needs: chen2016, sections 5 and 6."""

from __future__ import annotations

import math
from typing import Any

from jaxkern.bounds._bound import Bound, certain, formula, namespace
from jaxkern.bounds.fourier._pairs import FARTHEST, SMALLEST, inside

_MOST = 60.0
"""Exponents are cut here: a failure probability of exp(60) says no more than one of exp(600), and does not overflow."""


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

    Source: chen2016, Lemma 5.1; claim chen2016:lem5.1.
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

    Source: chen2016, Corollary 5.1, corrected; claim chen2016:cor5.1.
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

    Source: chen2016, Lemma 5.2, Corollary 5.2 and Theorem 5.1 (which name no constants), made explicit; claim
    chen2016:thm5.1.
    """
    np = namespace(eps, num_frequencies, dim, diameter, tau, inner, shell)
    b = (np.sqrt(dim) + np.sqrt(2 * np.maximum(tau, 0.0))) / np.sqrt(num_frequencies)
    longest = np.sqrt(dim) + np.sqrt(2 * np.maximum(tau + np.log(num_frequencies), 0.0))
    error = inside(np, eps)
    share = inside(np, inner)
    near = np.minimum(b, error * (1 - 1e-9))
    upper = 4 * (1 - ((1 + near) / (1 + error)) ** 2)
    lower = 12 * (1 - ((1 - error) / (1 - near)) ** 2) / longest**2
    start = np.sqrt(np.minimum(upper, lower))
    mesh = FARTHEST * (1 - share) * error / (2 + share * error + b)
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
    valid = np.logical_and(np.logical_and(eps >= SMALLEST, eps < 1), np.logical_and(b < eps, tau > 0))
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

    Source: chen2016, Lemma 6.1 (which names no constant, and does not ask for unit norm), made explicit; claim
    chen2016:lem6.1.
    """
    np = namespace(eps, dim, radius)
    error = inside(np, eps, 0.25)
    log_n = dim * np.log(np.maximum(radius / np.sqrt(2 * np.log(1 / error)), 1e-30))
    value = 1.0
    for k in range(1, 33):
        power = np.minimum(log_n, -2 * k * np.log(2 * error))  # n / (1 + n x) >= min(n, 1 / x) / 2
        value = np.maximum(value, k / math.e * np.exp((power - math.log(2.0)) / k) - k + 1)
    valid = np.logical_and(np.logical_and(eps > 0, eps < 0.25), log_n >= 0)
    return Bound(value, certain(value), valid, "chen2016, Lemma 6.1 (explicit)")
