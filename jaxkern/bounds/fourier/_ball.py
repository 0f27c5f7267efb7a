"""All points of a ball, and the fewest dimensions that any map needs: chen2016, sections 5 and 6."""

import math
from typing import Any

import numpy as np

from jaxkern.bounds._bound import Bound, Real, certain, formula, xp
from jaxkern.bounds.fourier._pair import FARTHEST, fails, inside
from jaxkern.bounds.fourier._pairs import SMALLEST

_MOST = 60.0
"""Exponents are cut here: a failure probability of exp(60) says no more than one of exp(600), and does not overflow."""

_SHARES = np.linspace(0.05, 0.95, 37).tolist()
"""Of the error that a net may have, tried in turn."""


@formula
def gradient(
    *, frequency_energy: Real, distance: Real, dim: Real, num_frequencies: Real, as_printed: bool = False
) -> Bound:
    """Bound |grad Dhat^2| by (2 / t) sum |w_i|^2 times the distance.

    As printed sqrt(dim) sum |w_i|^2 times the distance: the factor 2 / t is missing, which makes it false for
    t sqrt(dim) < 2.

    Parameters
    ----------
    frequency_energy, num_frequencies : sum |w_i|^2, and t frequencies.
    distance, dim : |x - y|, and the dimension of the points, which counts only as printed.
    as_printed : take the statement as printed. Static.

    Returns
    -------
    Bound, deterministic, valid at every distance.

    Source: chen2016, Lemma 5.1; claim chen2016:lem5.1.
    """
    if as_printed:
        value = xp.sqrt(dim) * frequency_energy * distance
        return Bound(value, certain(value), distance >= 0, "chen2016, Lemma 5.1 (printed)")
    value = 2 / num_frequencies * frequency_energy * distance
    return Bound(value, certain(value), distance >= 0, "chen2016, Lemma 5.1 (corrected)")


@formula
def lipschitz_squared(*, radius: Real, dim: Real, num_frequencies: Real, tau: Real) -> Bound:
    """Bound the Lipschitz constant of Dhat^2 over differences of length <= radius by 2 radius |A|, A = sum w w' / t.

    And |A| <= (1 + (sqrt(dim) + sqrt(2 tau)) / sqrt(t))^2. The paper has O(radius t sqrt(dim) log n), from
    |w_i|^2 = O(log n), with n the size of a net, so that log n >= dim; this has neither the factor t nor the logarithm.

    Parameters
    ----------
    radius, dim : largest length of a difference, and dimension of the points.
    num_frequencies, tau : t frequencies, and exponent of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau), valid for tau > 0.

    Source: chen2016, Corollary 5.1, corrected; claim chen2016:cor5.1.
    """
    root = 1 + (xp.sqrt(dim) + xp.sqrt(2 * tau)) / xp.sqrt(num_frequencies)
    return fails(2 * radius * root**2, -tau, tau > 0, "chen2016, Corollary 5.1 (corrected)")


@formula
def ball(
    *,
    eps: Real,
    num_frequencies: Real,
    dim: Real,
    diameter: Real,
    tau: Real = 5.0,
    inner: Real = 0.85,
    shell: Real = 1.5,
) -> Bound:
    """Bound |Dhat / D - 1| by eps for *all* points of R^dim at distance <= diameter, uncountably many.

    Near zero the extreme eigenvalues of A = sum w w' / t decide; elsewhere a net of differences on which the error is
    inner * eps, joined by |Dhat(a) - Dhat(b)| <= sqrt|A| |a - b|. Every value of tau, inner and shell gives a true
    statement, and `jaxkern.plan.fourier` looks for good ones. The formula is in Theorem C of docs/theory/chen2016.md.

    Parameters
    ----------
    eps, num_frequencies, dim, diameter : relative error, t frequencies, dimension, and largest distance.
    tau, inner, shell : free. A share of the failure probability, the share in (0, 1) of the error that the net has, and
        the ratio > 1 of radii of neighbouring shells.

    Returns
    -------
    Bound with probability 1 - 3 exp(-tau) - (two tails) * (size of the net), valid for 1e-4 <= eps < 1 and
    (sqrt(dim) + sqrt(2 tau)) / sqrt(t) < eps.

    Source: chen2016, Lemma 5.2, Corollary 5.2 and Theorem 5.1 (which name no constants), made explicit; claim
    chen2016:thm5.1.
    """
    b, longest = _extremes(dim, num_frequencies, tau)
    error = inside(eps)
    share = inside(inner)
    start = _near(eps, b, longest)
    mesh = FARTHEST * (1 - share) * error / (2 + share * error + b)
    outer_net = dim * xp.log(1 + 2 * xp.maximum(diameter, 1.0) / mesh)
    ratio = xp.maximum(shell, 1 + 1e-6)
    shells = xp.log(xp.maximum(xp.minimum(diameter, 1.0) / start, 1.0)) / xp.log(ratio) + 1
    inner_net = dim * xp.log(1 + 2 * ratio / mesh) + xp.log(shells)
    e = share * error
    failure = 3 * xp.exp(-tau)
    for x in ((1 + e) ** 2, (1 - e) ** 2):
        exponent = num_frequencies * (x - 1 - xp.log(x)) / 2
        failure = failure + xp.exp(xp.minimum(outer_net - exponent, _MOST))
        failure = failure + xp.exp(xp.minimum(inner_net - exponent, _MOST))
    valid = (eps >= SMALLEST) & (eps < 1) & (b < eps) & (tau > 0)
    valid = valid & (inner > 0) & (inner < 1) & (shell > 1)
    return fails(eps, xp.log(failure), valid, "chen2016, Theorem 5.1 (explicit)")


@formula
def vanishing_ball(*, eps: Real, num_frequencies: Real, dim: Real, tau: Real) -> Bound:
    """Bound from *below* the largest radius at which |Dhat / D - 1| <= eps for all differences within it.

    The part of `ball` near zero: the extreme eigenvalues of A = sum w w' / t decide, and no net is needed.

    Parameters
    ----------
    eps, num_frequencies, dim, tau : relative error, t frequencies, dimension, and exponent of the failure probability.

    Returns
    -------
    Bound whose value the radius is at least, with probability 1 - 3 exp(-tau); valid for tau > 0 and
    (sqrt(dim) + sqrt(2 tau)) / sqrt(t) < eps < 1.

    Source: chen2016, Lemma 5.2 (which defines no radius), made explicit in docs/theory/chen2016.md; claim
    chen2016:lem5.2.
    """
    b, longest = _extremes(dim, num_frequencies, tau)
    valid = (b < eps) & (eps < 1) & (tau > 0) & (num_frequencies < math.inf)
    return fails(_near(eps, b, longest), math.log(3) - tau, valid, "jaxkern, Lemma 5.2 of chen2016")


@formula
def ball_additive(*, eps: Real, num_frequencies: Real, dim: Real, diameter: Real, tau: Real) -> Bound:
    """Bound |Khat - K| by eps for *all* differences of R^dim of length <= diameter, by a net of the best mesh.

    Parameters
    ----------
    eps, num_frequencies, dim, diameter : error, t frequencies, dimension, and largest distance.
    tau : free, a share of the failure probability.

    Returns
    -------
    Bound with probability 1 - exp(-tau) - 2 (size of the net) exp(-t (share eps)^2 / 2), valid for eps, tau and
    diameter > 0.

    Source: Theorem D of docs/theory/chen2016.md; claim chen2016:sec1.1-ball.
    """
    b = (xp.sqrt(dim) + xp.sqrt(2 * tau)) / xp.sqrt(num_frequencies)
    net = math.inf
    for share in _SHARES:
        mesh = eps * (1 - share) / (1 + b + math.exp(-0.5))
        points = dim * xp.log1p(2 * diameter / mesh)
        net = xp.minimum(net, 2 * xp.exp(xp.minimum(points - num_frequencies * (share * eps) ** 2 / 2, _MOST)))
    valid = (eps > 0) & (tau > 0) & (diameter > 0)
    return fails(eps, xp.log(net + xp.exp(-tau)), valid, "jaxkern, Theorem D of chen2016")


@formula
def dimension_limit(*, eps: Real, dim: Real, radius: Real) -> Bound:
    """Bound from *below* the dimension of any unit-norm map h with |K(x, y) - <h(x), h(y)>| <= eps on a ball.

    With n = (radius / sqrt(2 log(1 / eps)))^dim, the size of a packing, it is the largest over k = 1, ..., 32 of
    (k / e) (min(n, (2 eps)^(-2 k)) / 2)^(1 / k) - k + 1, from the rank of the k-th Hadamard power of the Gram matrix.

    Parameters
    ----------
    eps, dim, radius : error, dimension of the ball, and its radius.

    Returns
    -------
    Bound whose value the dimension is at least; deterministic, valid for 0 < eps < 1/4 and n >= 1.

    Source: chen2016, Lemma 6.1 (which names no constant, and does not ask for unit norm), made explicit; claim
    chen2016:lem6.1.
    """
    error = inside(eps, 0.25)
    log_n = dim * xp.log(xp.maximum(radius / xp.sqrt(2 * xp.log(1 / error)), 1e-30))
    value = 1.0
    for k in range(1, 33):
        power = xp.minimum(log_n, -2 * k * xp.log(2 * error))  # n / (1 + n x) >= min(n, 1 / x) / 2
        value = xp.maximum(value, k / math.e * xp.exp((power - math.log(2.0)) / k) - k + 1)
    valid = (eps > 0) & (eps < 0.25) & (log_n >= 0)
    return Bound(value, certain(value), valid, "chen2016, Lemma 6.1 (explicit)")


def _extremes(dim: Real, t: Real, tau: Real) -> tuple[Any, Any]:
    """Return how far |A|^(1/2) may be from 1, and the length of the longest frequency."""
    b = (xp.sqrt(dim) + xp.sqrt(2 * xp.maximum(tau, 0.0))) / xp.sqrt(t)
    return b, xp.sqrt(dim) + xp.sqrt(2 * xp.maximum(tau + xp.log(t), 0.0))


def _near(eps: Real, b: Real, longest: Real) -> Any:
    """Return the radius up to which those two keep Dhat / D within eps of 1."""
    error = inside(eps)
    near = xp.minimum(b, error * (1 - 1e-9))
    upper = 4 * (1 - ((1 + near) / (1 + error)) ** 2)
    lower = 12 * (1 - ((1 - error) / (1 - near)) ** 2) / longest**2
    return xp.sqrt(xp.minimum(upper, lower))
