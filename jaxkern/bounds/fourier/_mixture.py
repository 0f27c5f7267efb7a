"""All points of a ball for kernels that are mixtures of Gaussian ones of many scales: Theorem M of chen2016's page."""

from typing import Any

from jaxkern.bounds._bound import Bound, Real, formula, xp
from jaxkern.bounds.fourier._pair import fails, inside
from jaxkern.bounds.fourier._pairs import gamma

_MOST = 60.0


@formula
def ball_matern(
    *,
    eps: Real,
    num_frequencies: Real,
    dim: Real,
    diameter: Real,
    nu: Real,
    correlation: Real,
    truncation: Real,
    scales: Real = 0.02,
    tau: Real = 5.0,
    inner: Real = 0.85,
    shell: Real = 1.5,
) -> Bound:
    """Bound |Dhat / D - 1| by eps for *all* points of R^dim at distance <= diameter, for the Matern kernel of order nu.

    Its frequencies are normal given a scale q, of which 2 nu / q has the law chi2_(2 nu). Given the scales, the bound
    is that of the Gaussian kernel with m = t (1 - scales) E min(q, truncation) / truncation in the place of t. It fails
    where one frequency dominates, so that any t is at least of the order delta^(-1 / (nu - 1)).

    Parameters
    ----------
    eps, num_frequencies, dim, diameter : relative error, t frequencies, dimension, and largest distance.
    nu, correlation : order of the kernel, and its value at the distance 1, one lengthscale.
    truncation, scales : free. What no q exceeds, and the relative error that their means may have.
    tau, inner, shell : free, as in `ball`; tau is for the longest of the normal vectors.

    Returns
    -------
    Bound, valid for nu > 1, 0 < correlation < 1 and eps that is larger than the error of the means of q.

    Source: Theorem M of docs/theory/chen2016.md; claim jaxkern:mixture-ball.
    """
    t, x, Q = num_frequencies, inside(scales), truncation
    rare = gamma("gammainc", nu, nu / Q)
    mean = nu / (nu - 1) * gamma("gammaincc", nu - 1, nu / Q) + Q * rare
    power = xp.minimum(2.0, nu - 0.25)
    log_moment = (
        power * xp.log(nu) + gamma("gammaln", nu - power) - gamma("gammaln", nu)
    )
    variance = Q ** (2 - power) * xp.exp(log_moment) / mean**2 - 1
    most = Q / mean
    means = xp.log((1 + x) ** 2 * most / (2 * x)) / xp.log(1 + x) + 2
    failure = (
        t * rare
        + 2 * means * xp.exp(-t * x**2 / (2 * (variance + most * x / 3)))
        + xp.exp(-tau)
    )

    low, high = xp.sqrt(mean * (nu - 1) / nu * (1 - x) / (1 + x)), 1 + x
    left = xp.minimum((1 + eps) / high - 1, 1 - (1 - eps) / low)
    error = inside(left)
    e = inside(inner) * error
    mesh = (error - e) / 4
    longest = (1 + e) / (1 - mesh)
    shortest = 1 - e - mesh * longest
    distance = low * xp.sqrt((2 - 2 * correlation) / ((1 + x) * mean))
    step = distance * (error - e) / (1 + e + longest)
    square = (xp.sqrt(dim) + xp.sqrt(2 * xp.maximum(tau + xp.log(t), 0.0))) ** 2
    upper, lower = 1 - (longest / (1 + error)) ** 2, 1 - ((1 - error) / shortest) ** 2
    start = xp.sqrt(xp.minimum(4 * upper, 12 * lower / square) / Q)
    ratio = xp.maximum(shell, 1 + 1e-6)
    shells = (
        xp.log(xp.maximum(xp.minimum(diameter, 1.0) / start, 1.0)) / xp.log(ratio) + 1
    )
    nets: tuple[Any, ...] = (
        dim * xp.log(1 + 2 / mesh),
        dim * xp.log(1 + 2 * xp.maximum(diameter, 1.0) / step),
        dim * xp.log(1 + 2 * ratio / step) + xp.log(shells),
    )
    for y in ((1 + e) ** 2, (1 - e) ** 2):
        exponent = t * (1 - x) / most * (y - 1 - xp.log(y)) / 2
        for net in nets:
            failure = failure + xp.exp(xp.minimum(net - exponent, _MOST))
    valid = (
        (eps < 1)
        & (left > 0)
        & (nu > 1)
        & (correlation > 0)
        & (correlation < 1)
        & (diameter > 0)
        & (tau > 0)
    )
    valid = (
        valid
        & (Q > 0)
        & (scales > 0)
        & (scales < 1)
        & (inner > 0)
        & (inner < 1)
        & (shell > 1)
    )
    return fails(eps, xp.log(failure), valid, "jaxkern, Theorem M of chen2016")
