"""chen2016: the law of a mean of cosines, which the ratio of a pair's distances is, and exact expectations over nodes.

Distances are in units of the lengthscale.
"""

import itertools
from collections.abc import Callable
from itertools import pairwise
from math import acos, ceil, expm1, log, pi, sqrt
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, random
from numpy import ndarray
from scipy import special, stats

from jaxkern import features
from jaxkern.linalg import matmul
from proofs_check.papers.shared import real

OfKernel = Callable[[Any], Any]

RESOLUTION = 1e-11
"""Probabilities by quadrature have errors below this, which is added to them."""


def pair_cdf(distance: float, t: int, x: Any) -> ndarray:
    """Return P(Dhat^2 / D^2 <= x) for one pair of points and t >= 16 frequencies, to an absolute error of 1e-11.

    The ratio is the mean of t copies of Y = (1 - cos(r w)) / mu with mean 1. Its characteristic function is a power of
    that of Y, which the trapezoidal rule gives to rounding, and
    P(S <= x) = 1/2 - int_0^oo Im(e^(-ivx) f(v)) / v dv / pi is summed over midpoints.
    """
    x = np.atleast_1d(np.asarray(x, float))
    mu = mean(distance)
    # Where the law of Y is that of chi-square or of a cosine, |f(v)| is at most of the order of v^(-t/2).
    most = 10 ** (30 / t) - 1 + 9 / sqrt(t * min(2.0, 0.5 / mu**2))
    period = 20 * sqrt(2 / t) + 120 / t + 2 * np.max(np.abs(x - 1))
    step = 2 * pi / (t * period)
    v = (np.arange(ceil(most / step)) + 0.5) * step
    # Either of two steps is fine enough for exp(i v Y): by its local frequency, or by its Fourier series in w.
    local = pi / (9 * most * distance**2 / (2 * mu))
    series = 2 * pi / ((most / mu + 20) * distance + 20)
    fine = min(0.1, max(local, series))
    w = (np.arange(ceil(9 / fine)) + 0.5) * fine
    weights = np.exp(-(w**2) / 2)
    copies = versine(distance * w) / mu
    of_one = np.exp(1j * np.outer(v, copies)) @ (weights / weights.sum())
    waves = np.exp(-1j * t * np.outer(x, v))
    integral = np.imag(waves @ (of_one**t / v)) * step
    return np.asarray(0.5 - integral / pi)


def log_outside(distance: float, t: int, low: float, high: float) -> float:
    """Return the log-probability that Dhat^2 / D^2 of one pair of points leaves [low, high]."""
    below, above = pair_cdf(distance, t, [low, high])
    if low <= 0:
        below = 0.0
    return log(max(below, 0.0) + max(1 - above, 0.0) + RESOLUTION)


def chi_square_outside(t: float, low: float, high: float) -> float:
    """Return log P(chi2_t / t outside [low, high])."""
    above = stats.chi2.logsf(t * high, t)
    return float(np.logaddexp(above, stats.chi2.logcdf(t * low, t)))


def mean(r: float) -> float:
    """Return E X for X = 1 - cos(r w), half of the squared kernel distance at r."""
    return -expm1(-(r**2) / 2)


def versine(phase: Any) -> ndarray:
    """Return 1 - cos(phase), without losing digits where the phase is small."""
    return np.asarray(2 * np.sin(phase / 2) ** 2)


def _same(kernel: Any) -> Any:
    return kernel


def nodes() -> tuple[ndarray, ndarray]:
    """Return points and weights with sum p f(w) = E f(w) to rounding, for f(w) = cos(r w) and r <= 20."""
    w = np.linspace(-12, 12, 121)
    weights = np.exp(-(w**2) / 2)
    return w, weights / weights.sum()


@jax.jit
def _along(pair: Array, key: Array, scale: float) -> tuple[Array, Array]:
    """Return frequencies (121, d) whose components along x - y are the nodes, and their weights.

    The components across x - y, which enter no kernel value, are random.
    """
    points, weights = nodes()
    difference = pair[0] - pair[1]
    unit = difference / jnp.linalg.norm(difference)
    across = random.normal(key, (len(points), pair.shape[1]), pair.dtype)
    across = across - jnp.outer(matmul(across, unit), unit)
    along = jnp.outer(jnp.asarray(scale * points, pair.dtype), unit)
    return across + along, jnp.asarray(weights, pair.dtype)


def _error_of_mean(data: Any, weights: Array, products: ndarray) -> ndarray:
    """Return the difference of the mean of products and the kernel value of a pair."""
    value = np.asarray(data["kernel"](*data["pair"]))
    return np.abs(np.asarray(weights) @ products - value)[None]


def paired_mean(
    key: Array,
    data: Any,
    *,
    scale: float = 1.0,
    drawn: OfKernel = _same,
    normalised: bool = True,
) -> ndarray:
    """Return the difference of E <f(x), f(y)> for one pair (cosine, sine) and K(x, y), by the library's map.

    The map is that of the kernel drawn(K); without `normalised` its factor 1/sqrt(t) is taken off.
    """
    w, weights = _along(data["pair"], key, scale)
    phi = features.PairedFourier(drawn(data["kernel"]), w)
    x, y = np.asarray(phi(data["pair"]))
    products = (x * y).reshape(2, -1).sum(axis=0) * len(w)
    if not normalised:
        products = products * len(w)
    return _error_of_mean(data, weights, products)


def shifted_mean(
    key: Array,
    data: Any,
    *,
    factor: float = 1.0,
    shifted: bool = True,
    drawn: OfKernel = _same,
) -> ndarray:
    """Return the difference of E <phi(x), phi(y)> for shifted features times `factor` and K(x, y).

    Four equally spaced shifts have the mean over all shifts exactly. The map is that of the kernel drawn(K).
    """
    w, weights = _along(data["pair"], key, 1.0)
    shifts = real(np.tile(np.arange(4) * pi / 2 * shifted, len(w)))
    frequencies = real(np.repeat(w, 4, axis=0))
    phi = features.ShiftedFourier(drawn(data["kernel"]), frequencies, shifts)
    x, y = factor * np.asarray(phi(data["pair"]))
    products = (x * y).reshape(-1, 4).mean(axis=1) * 4 * len(w)
    return _error_of_mean(data, weights, products)


def variances(key: Array, data: Any, *, distance: bool) -> tuple[float, float]:
    """Return m times the variance for paired and for shifted features of one pair, m the number of features.

    Of the inner product, or of the squared distance. Both are exact: quadrature nodes for the frequencies, and eight
    equally spaced shifts, which have the mean of every trigonometric polynomial of degree below 8.
    """
    kernel = data["kernel"]
    pair = data["pair"]
    w, chances = _along(pair, key, 1.0)
    count = len(w)
    weights = np.asarray(chances, float)
    Z = np.asarray(features.PairedFourier(kernel, w)(pair), float)
    x, y = Z.reshape(2, 2, count) * sqrt(count)
    paired = np.sum((x - y) ** 2 if distance else x * y, axis=0)
    shifts = real(np.tile(np.arange(8) * pi / 4, count))
    phi = features.ShiftedFourier(kernel, real(np.repeat(w, 8, axis=0)), shifts)
    x, y = np.asarray(phi(pair), float) * sqrt(8 * count)
    shifted = (x - y) ** 2 if distance else x * y
    eighths = np.repeat(weights / 8, 8)
    return 2 * _variance(paired, weights), _variance(shifted, eighths)


def _variance(values: ndarray, weights: ndarray) -> float:
    return float(weights @ (values - weights @ values) ** 2)


def log_mgf(s: float, r: float) -> float:
    """Return log E exp(s (X - E X)) for X = 1 - cos(r w), to rounding for s r^2 <= .9."""
    step = min(0.02, 0.1 / r)
    w = np.arange(-40, 40, step)
    total = float(special.logsumexp(s * (versine(r * w) - mean(r)) - w**2 / 2))
    return total + log(step) - log(2 * pi) / 2


def stop_loss(c: float, r: float) -> float:
    """Return E (Y - c)_+ for Y = (1 - cos(r w)) / mu by Gauss-Legendre rules between the kinks, to rounding."""
    mu = mean(r)
    if c * mu >= 2:
        return 0.0
    kink = acos(1 - c * mu)
    abscissas, weights = np.polynomial.legendre.leggauss(60)
    total = 0.0
    for k in itertools.count():  # cos(r w) < 1 - c mu between these two
        left = (2 * pi * k + kink) / r
        right = min((2 * pi * (k + 1) - kink) / r, 14.0)
        if left > 12:
            return total
        edges = np.linspace(left, right, 1 + ceil(right - left))
        for a, b in pairwise(edges):
            w = (a + b) / 2 + (b - a) / 2 * abscissas
            excess = versine(r * w) / mu - c
            integral = float(weights @ (excess * np.exp(-(w**2) / 2)))
            total += (b - a) * integral / sqrt(2 * pi)
    raise AssertionError


def chi_square_stop_loss(c: float, degrees: int) -> float:
    """Return E (Y - c)_+ for Y = chi2 / degrees."""
    half = degrees / 2
    mean_above = special.gammaincc(half + 1, half * c)
    return float(mean_above - c * special.gammaincc(half, half * c))
