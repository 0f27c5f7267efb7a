"""amini2021: laws and expectations in closed form or by quadrature, in float64 on the host."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special

from jaxkern.bounds import Bound
from proofs_check.claim import Inequality, Setting
from proofs_check.papers.shared import parametrized

Pairs = list[tuple[float, Bound]]


def at_least(value: Any, lower: Bound) -> tuple[float, Bound]:
    """Return the two sides of: the value is at least what the bound says."""
    return float(lower.value), dataclasses.replace(lower, value=float(value))


def log_of(probability: float) -> float:
    """Return the logarithm of a probability, minus infinity of zero."""
    return math.log(probability) if probability > 0 else -math.inf


def log_sum(logs: np.ndarray, where: Any) -> float:
    """Return the logarithm of the probability of an event from the logs of chances, minus infinity of none."""
    return float(special.logsumexp(logs[where])) if np.any(where) else -math.inf


def rescaled(right: Bound, factor: float) -> Bound:
    """Return a bound times a number."""
    return dataclasses.replace(right, value=right.value * factor)


_HALF, _SHARES = (
    np.array([0.62, 0.90, 1.15, 1.42, 1.72]),
    np.array([28, 25, 22, 15, 10]) / 200,
)
ATOMS, MASSES = (
    np.concatenate([-_HALF[::-1], _HALF]),
    np.concatenate([_SHARES[::-1], _SHARES]),
)
"""A centred law with property (33) for c = 1, though not for c = 1.01."""


def has_property_33(c: float) -> bool:
    """Tell whether the law on ten points has property (33): P(A) <= exp(-c (E d(W, A))^2) for all of its 1023 sets."""
    sets = (np.arange(1, 2 ** len(ATOMS))[:, None] >> np.arange(len(ATOMS))) & 1
    gaps = np.abs(ATOMS[:, None] - ATOMS)
    away = np.min(np.where(sets[:, None, :] == 1, gaps, np.inf), axis=2) @ MASSES
    return bool(np.all(sets @ MASSES <= np.exp(-c * away**2) * (1 + 1e-12)))


def sum_norms(num_points: int) -> tuple[np.ndarray, np.ndarray]:
    """Return all values of |K - E K|_F for K = x + y and points of that law, and before them their chances."""
    choices = np.array(list(itertools.product(range(len(ATOMS)), repeat=num_points)))
    w, chances = ATOMS[choices], np.prod(MASSES[choices], axis=1)
    return chances, np.sqrt(
        2 * num_points * np.sum(w**2, axis=1) + 2 * np.sum(w, axis=1) ** 2
    )


def sum_errors(num_points: int) -> tuple[float, float]:
    """Return E |K - E K|_F^2 and E |K - E K|_F for the same."""
    chances, norms = sum_norms(num_points)
    return float(chances @ norms**2), float(chances @ norms)


UNIT = {"lipschitz": 1.0, "omega": 1.0, "scale": 1.0}
"""The constants of K = x + y with noise of one coordinate of this law, or a standard normal one."""


def ten_points(*counts: int) -> tuple[Setting, ...]:
    """Return settings with n points of that law; without counts, one that names no n."""
    name = "ten points, c=1, K=x+y"
    return tuple(Setting(f"{name}, n={n}", shapes={"n": n}) for n in counts) or (
        Setting(name),
    )


@parametrized(Inequality)
def under_33(
    setting: Setting,
    left: Callable[[int], float],
    formula: Callable[..., Bound],
    factor: float = 1.0,
) -> Pairs:
    """Return the check of a quantity of n points of that law, in units of n, against a bound for c = 1."""
    n = setting.shapes.get("n", 1)
    size = {"num_points": n} if "n" in setting.shapes else {}
    right = rescaled(formula(**UNIT, **size, c=1.0), factor)
    return [
        (
            left(n),
            dataclasses.replace(
                right, valid=bool(right.valid) and has_property_33(1.0)
            ),
        )
    ]


@functools.cache
def gauss_hermite(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights with sum p f(w) = E f(W), W ~ N(0, 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    return nodes, weights / weights.sum()


def mean_of_gaussian(offset: np.ndarray, variance: float, lengthscale: float) -> float:
    """Return E exp(-|offset + N(0, variance I)|^2 / (2 lengthscale^2)), a product of one-dimensional quadratures."""
    nodes, weights = gauss_hermite(80)
    values = np.exp(
        -((offset[:, None] + math.sqrt(variance) * nodes) ** 2) / (2 * lengthscale**2)
    )
    return float(np.prod(values @ weights))


def mean_of_plane(kernel: str, m: np.ndarray, C: np.ndarray) -> float:
    """Return the mean of |Z| or, for "Gaussian", of exp(-|Z|^2 / 2), Z ~ N(m, C) in the plane.

    |Z| is pi / 2 times the mean of |u'Z| over all directions u, and u'Z is normal; the trapezoidal rule of a periodic
    function has only rounding errors. The other one is a product of two quadratures along the eigenvectors of C.
    """
    if kernel == "Gaussian":
        values, vectors = np.linalg.eigh(C)
        return math.prod(
            mean_of_gaussian(x[None], v, 1.0)
            for x, v in zip(m @ vectors, values, strict=True)
        )
    angles = np.linspace(0, np.pi, 512, endpoint=False)
    u = np.stack([np.cos(angles), np.sin(angles)])
    mean, sd = m @ u, np.sqrt(np.einsum("ik,ij,jk->k", u, C, u))
    folded = sd * np.sqrt(2 / np.pi) * np.exp(
        -((mean / sd) ** 2) / 2
    ) + mean * special.erf(mean / sd / np.sqrt(2))
    return float(np.pi / 2 * np.mean(folded))


def mean_chi(num: int) -> float:
    """Return E |w| for w ~ N(0, I) in R^num."""
    return math.sqrt(2) * math.exp(math.lgamma((num + 1) / 2) - math.lgamma(num / 2))


def psi(u: float, dim: int) -> float:
    """Return E exp(u a), a the inner product of two uniform directions."""
    return float(special.hyp0f1(dim / 2, u**2 / 4))


def cosines(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights for the law of a, whose density is proportional to (1 - a^2)^((dim - 3) / 2)."""
    nodes, weights = (
        special.roots_gegenbauer(200, (dim - 2) / 2)
        if dim > 2
        else special.roots_chebyt(200)
    )
    return nodes, weights / weights.sum()


def still_kernel(a: Any, radius: float, other: float, lengthscale: float) -> Any:
    """Return the Gaussian kernel of two points at these distances from the origin, a the cosine of the angle."""
    return np.exp(
        -(radius**2 + other**2 - 2 * a * radius * other) / (2 * lengthscale**2)
    )


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
    lambdas = 1 + np.abs(a), 1 - np.abs(a)
    s1, s2 = (1 + noise**2 * x / (lengthscale**2 * dim) for x in lambdas)
    first = lambdas[0] / (2 * s1) * (radius - sign * other) ** 2
    second = lambdas[1] / (2 * s2) * (radius + sign * other) ** 2
    return np.exp(-(first + second) / (2 * lengthscale**2)) / np.sqrt(s1 * s2)


def radial_quadrature(
    a: float, radius: float, other: float, noise: float, lengthscale: float, dim: int
) -> float:
    """Return the same mean by Gauss-Hermite quadrature over the two noises."""
    nodes, weights = gauss_hermite(80)
    x, y = (
        radius + noise / math.sqrt(dim) * nodes[:, None],
        other + noise / math.sqrt(dim) * nodes,
    )
    return float(
        weights
        @ np.exp(-(x**2 + y**2 - 2 * a * x * y) / (2 * lengthscale**2))
        @ weights
    )
