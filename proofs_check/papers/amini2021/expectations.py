"""Expectations of amini2021 in closed form or by quadrature, in float64 on the host."""

import functools
import math
from typing import Any

import numpy as np
from scipy import special


@functools.cache
def gauss_hermite(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights with sum p f(w) = E f(W), W ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    return nodes, weights / weights.sum()


def mean_of_gaussian(offset: np.ndarray, variance: float, lengthscale: float) -> float:
    """Return E exp(-|offset + N(0, variance I)|^2 / (2 lengthscale^2)), a product of one-dimensional quadratures."""
    nodes, weights = gauss_hermite(80)
    points = offset[:, None] + math.sqrt(variance) * nodes
    values = np.exp(-(points**2) / (2 * lengthscale**2))
    return float(np.prod(values @ weights))


def mean_gaussian_of_plane(m: np.ndarray, C: np.ndarray) -> float:
    """Return E exp(-|Z|^2 / 2) for Z ~ N(m, C) in the plane, by quadratures along the eigenvectors of C."""
    variances, vectors = np.linalg.eigh(C)
    offsets = m @ vectors
    first = mean_of_gaussian(offsets[:1], variances[0], 1.0)
    return first * mean_of_gaussian(offsets[1:], variances[1], 1.0)


def mean_length_of_plane(m: np.ndarray, C: np.ndarray) -> float:
    """Return E |Z| for Z ~ N(m, C) in the plane.

    |Z| is pi / 2 times the mean of |u'Z| over all directions u, and u'Z is normal; the trapezoidal rule of a periodic
    function has only rounding errors.
    """
    angles = np.linspace(0, np.pi, 512, endpoint=False)
    u = np.stack([np.cos(angles), np.sin(angles)])
    mean = m @ u
    sd = np.sqrt(np.einsum("ik,ij,jk->k", u, C, u))
    ratio = mean / sd
    spread = sd * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2)
    folded = spread + mean * special.erf(ratio / np.sqrt(2))
    return float(np.pi / 2 * np.mean(folded))


def mean_chi(num: int) -> float:
    """Return E |w| for w ~ N(0, I) in R^num."""
    log_ratio = math.lgamma((num + 1) / 2) - math.lgamma(num / 2)
    return math.sqrt(2) * math.exp(log_ratio)


def mean_norm(dim: int, variance: float, offset: float) -> float:
    """Return E |Z| for Z ~ N(m, variance I) in R^dim, |m| = offset."""
    confluent = special.hyp1f1(-0.5, dim / 2, -(offset**2) / (2 * variance))
    return float(math.sqrt(variance) * mean_chi(dim) * confluent)


def psi(u: float, dim: int) -> float:
    """Return E exp(u a), a the inner product of two uniform directions."""
    return float(special.hyp0f1(dim / 2, u**2 / 4))


def cosines(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for the law of a, whose density is proportional to (1 - a^2)^((dim - 3) / 2)."""
    if dim > 2:
        nodes, weights = special.roots_gegenbauer(200, (dim - 2) / 2)
    else:
        nodes, weights = special.roots_chebyt(200)
    return nodes, weights / weights.sum()


def still_kernel(a: Any, radius: Any, other: Any, lengthscale: float) -> Any:
    """Return the Gaussian kernel of two points at these distances from the origin, a the cosine of the angle."""
    squared = radius**2 + other**2 - 2 * a * radius * other
    return np.exp(-squared / (2 * lengthscale**2))


def radial_mean(
    a: Any,
    radius: float,
    other: float,
    noise: float,
    lengthscale: float,
    dim: int,
    zero: int = 1,
) -> Any:
    """Return amini2021, (28), to the letter, with sign(0) = `zero`."""
    a = np.asarray(a, np.float64)
    sign = np.where(a == 0, zero, np.sign(a))
    wide = 1 + np.abs(a)
    narrow = 1 - np.abs(a)
    ratio = noise**2 / (lengthscale**2 * dim)
    s1 = 1 + ratio * wide
    s2 = 1 + ratio * narrow
    first = wide / (2 * s1) * (radius - sign * other) ** 2
    second = narrow / (2 * s2) * (radius + sign * other) ** 2
    return np.exp(-(first + second) / (2 * lengthscale**2)) / np.sqrt(s1 * s2)


def radial_quadrature(
    a: float, radius: float, other: float, noise: float, lengthscale: float, dim: int
) -> float:
    """Return the same mean by Gauss-Hermite quadrature over the two noises."""
    nodes, weights = gauss_hermite(80)
    x = radius + noise / math.sqrt(dim) * nodes[:, None]
    y = other + noise / math.sqrt(dim) * nodes
    values = still_kernel(a, x, y, lengthscale)
    return float(weights @ values @ weights)
