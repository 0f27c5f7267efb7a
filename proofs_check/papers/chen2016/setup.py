"""Settings of chen2016: pairs and sets of points, distances, numbers of frequencies, and tails that are computed.

On a user's table the statements about points use its rows, with its lengthscale; the others keep their settings.
"""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from math import ceil, exp, pi
from operator import attrgetter
from typing import Any

import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import norm
from numpy.random import default_rng
from scipy import optimize

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.gram import gram, kernel_distance
from proofs_check.claim import Exact, Setting, Tail, Trial
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import cosines
from proofs_check.papers.chen2016.trials import GAUSSIAN
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Exceeds,
    arguments_of,
    bound_of,
    lines,
    real,
)

DELTA = 0.05
ROWS = 24

Formula = Callable[..., Bound]
Make = Callable[..., Any]
"""Makes a statement of a function."""
Settings = Sequence[Setting]
Sides = list[tuple[float, Bound]]
Logs = tuple[float, float]
"""Of a probability, and of what is claimed of it."""
PointSet = tuple[str, int, dict[str, Array]]
"""Name, number of points, differences of all pairs."""


@dataclass(frozen=True, eq=False)
class Inputs(shared.Inputs):
    """Pairs and sets of points, and failure probabilities; on a user's table, statements about points use its rows."""

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (DELTA, 0.01) if self.full else (DELTA,)

    @cached_property
    def pairs(self) -> tuple[Setting, ...]:
        """Pairs of points with their kernel, moved to the origin, which moves neither side of an unbiasedness."""
        name = "a pair"
        lengthscale = 1.5
        directions = default_rng(5).standard_normal((3, 3))
        units = directions / norm(directions, axis=1, keepdims=True)
        differences = units * np.array([[0.3], [1.0], [2.5]])
        quantiles = self.distances((), 0.1, 12.0)
        if self.data is not None and quantiles:
            name = "rows"
            lengthscale = float(self.data.kernel.lengthscale)
            gaps = differences_of(rows_of(self.data, ROWS))
            sizes = norm(gaps, axis=1)
            nearest = [np.argmin(np.abs(sizes - r)) for r in quantiles]
            differences = gaps[nearest]
        settings = {}
        for difference in differences:
            r = float(norm(difference))
            label = f"{name} at distance {r:.4g}"
            pair = real(lengthscale * np.stack([0.6 * difference, -0.4 * difference]))
            data = {"kernel": kernels.Gaussian(lengthscale), "pair": pair}
            numbers = {"K": exp(-(r**2) / 2)}
            settings[label] = Setting(label, data, numbers, {"rows": 16})
        return tuple(settings.values())

    @cached_property
    def point_sets(self) -> list[PointSet]:
        """Sets of points of one shape."""
        if self.data is not None:
            X = rows_of(self.data, ROWS)
            return [point_set(f"{len(X)} rows", X)]
        n = 16
        cloud = default_rng(6).standard_normal((n, 3)) @ np.eye(3, n)
        positions = np.append(0.0, np.geomspace(1e-4, 1e4, n - 1))
        line = positions[:, None] @ np.eye(1, n)
        return [
            point_set("orthonormal points, shrunk to 1e-3", 1e-3 * np.eye(n)),
            point_set("a cloud in 3 dimensions", cloud),
            point_set("a line, distances 1e-4 to 1e4", line),
        ]

    def distances(
        self, otherwise: Sequence[float], low: float, high: float
    ) -> list[float]:
        """Return three quantiles of the distances of the data that lie within [low, high], or else other distances."""
        if self.data is None:
            return list(otherwise)
        r = norm(differences_of(rows_of(self.data, ROWS)), axis=1)
        r = r[(r >= low) & (r <= high)]
        if not len(r):
            return list(otherwise)
        quantiles = np.quantile(r, [0.05, 0.5, 0.95], method="nearest")
        return sorted({float(f"{q:.4g}") for q in quantiles})


def rows_of(data: Population, most: int) -> ndarray:
    """Return at most so many different rows, centred, in units of the lengthscale."""
    X = np.unique(data.points, axis=0)
    X = X[np.unique(np.linspace(0, len(X) - 1, most).astype(int))]
    return (X - X.mean(axis=0)) / float(data.kernel.lengthscale)


def differences_of(X: ndarray) -> ndarray:
    """Return x_i - x_j for all pairs i < j, one a row."""
    first, second = np.triu_indices(len(X), 1)
    return X[first] - X[second]


def pairs_by_difference(differences: ndarray) -> dict[str, Array]:
    """Return what trials need of pairs of points, whose differences are (..., d)."""
    squared = np.sum(differences**2, axis=-1)
    return {"differences": real(differences), "squared": real(squared)}


def point_set(name: str, X: ndarray) -> PointSet:
    """Return a set of points (n, d) with the differences of all its pairs."""
    return name, len(X), pairs_by_difference(differences_of(X))


def cloud(n: int, spacing: float = 1.0) -> ndarray:
    """Return n points in three dimensions whose typical distance is about two spacings."""
    return spacing * default_rng(3).standard_normal((n, 3))


def half_circle() -> ndarray:
    """Return 12 directions of the plane, none opposite to another."""
    angles = np.arange(12) * pi / 12
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def ball(directions: ndarray, radii: ndarray) -> dict[str, Array]:
    """Return differences within a ball, for trials: directions over a half sphere, and radii up to the largest."""
    return {"directions": real(directions), "radii": real(radii)}


def squared_distance(r: Any) -> Any:
    """Return D^2 at a distance r, or at an array of them."""
    return -2 * np.expm1(-(r**2) / 2)


def distances_of(r: ndarray) -> ndarray:
    """Return the kernel distance at each distance r, by the library and in its default precision."""
    points = r[:, None]
    return np.asarray(kernel_distance(GAUSSIAN, real(0 * points), real(points)), float)


def gram_of(X: Array) -> ndarray:
    """Return the Gram matrix of points by the library, in float64."""
    return np.asarray(gram(GAUSSIAN, X), float)


def all_distances(X: Array) -> ndarray:
    """Return the kernel distances (n, n) of points (n, d), by the library."""
    n = len(X)
    points = np.asarray(X)
    first = real(np.repeat(points, n, axis=0))
    second = real(np.tile(points, (n, 1)))
    rows = kernel_distance(GAUSSIAN, first, second)
    return np.asarray(rows, float).reshape(n, n)


def fewest(bound: Formula, delta: float, least: int = 16, **options: Any) -> int:
    """Return the smallest num_frequencies, at least `least`, whose bound holds with probability 1 - delta."""

    def enough(t: int) -> bool:
        b = bound(num_frequencies=float(t), **options)
        return bool(b.valid) and b.probability >= 1 - delta

    high = least
    while not enough(high):
        high *= 2
    low = high // 2 if high > least else least - 1
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def sized(name: str, data: Any, rows: int, **numbers: float) -> Setting:
    """Return a setting with so many frequencies, as a number and as a shape, and other numbers."""
    floats = {key: float(x) for key, x in numbers.items()}
    floats["num_frequencies"] = float(rows)
    return Setting(name, data, floats, {"rows": rows})


def pair_settings(
    bound: Formula,
    distances: Sequence[float],
    errors: Sequence[float],
    deltas: Sequence[float],
) -> Settings:
    """Return one setting for every distance, error and delta, with as many frequencies as the bound asks for."""
    at_any_distance = "distance" not in arguments_of(bound)
    settings = []
    for r, eps, delta in product(distances, errors, deltas):
        at_pair = bound if at_any_distance else partial(bound, distance=r)
        t = fewest(at_pair, delta, eps=eps)
        name = f"r={r:g}, eps={eps:g}, delta={delta:g}, t={t}"
        settings.append(pair_setting(name, r, eps, t))
    return settings


def pair_setting(name: str, r: float, eps: float, t: int) -> Setting:
    """Return the setting of one pair at distance r, with an error and t frequencies."""
    numbers = {"distance": r, "eps": eps, "num_frequencies": float(t)}
    return Setting(name, numbers=numbers)


def tiny(bound: Formula, errors: Sequence[float], logs: Sequence[float]) -> Settings:
    """Return settings for every error and log, with the t at which the failure probability of a bound is e^-log."""

    def excess(t: float, eps: float, log: float) -> float:
        return float(bound(eps=eps, num_frequencies=t).log_failure + log)

    settings = []
    for eps, log in product(errors, logs):
        root = optimize.brentq(excess, 1, 1e10, args=(eps, log))
        t = float(ceil(root))
        name = f"eps={eps:g}, delta=e^-{log:g}, t={t:g}"
        settings.append(Setting(name, numbers={"num_frequencies": t, "eps": eps}))
    return settings


def times(factor: float, formula: Formula) -> Formula:
    """Return a bound for so many times as many frequencies as there are, for controls."""

    @functools.wraps(formula)
    def of_more(*, num_frequencies: float, **options: Any) -> Bound:
        return formula(num_frequencies=factor * num_frequencies, **options)

    return of_more


def strongest(*formulas: Formula) -> Formula:
    """Return the formula that claims the least failure probability among formulas of the same value."""

    def of_all(*, eps: float, num_frequencies: float) -> Bound:
        bounds = [f(eps=eps, num_frequencies=num_frequencies) for f in formulas]
        least = min(bounds, key=attrgetter("log_failure"))
        return replace(least, valid=all(bound.valid for bound in bounds))

    return of_all


def relative_tail(value: float, distance: float, num_frequencies: float) -> float:
    """Return log P(|Dhat / D - 1| > value) of a pair."""
    t = int(num_frequencies)
    return cosines.log_outside(distance, t, (1 - value) ** 2, (1 + value) ** 2)


def limit_tail(value: float, num_frequencies: float) -> float:
    """Return log P(|Dhat / D - 1| > value) as the distance vanishes, to all digits of probabilities of e^-600."""
    low = (1 - value) ** 2
    return cosines.chi_square_outside(num_frequencies, low, (1 + value) ** 2)


def mean_tail(value: float, num_frequencies: float) -> float:
    """Return log P(|chi2_t / t - 1| > value)."""
    return cosines.chi_square_outside(num_frequencies, 1 - value, 1 + value)


def tail(trial: Trial) -> Make:
    """Return what makes the statement that a trial is at most the bound of a formula."""
    return lambda formula: Tail(trial, bound_of(formula))


def exceeds_in_floats(log_tail: Callable[..., float]) -> Make:
    """Return `exceeds` for formulas that are evaluated in floats alone, such as quadratures: they have no balls."""
    # Enclosures take what an `Exceeds` claims from its formula in balls, and what a method claims in floats.
    return lambda formula: Exact(Exceeds(log_tail, formula).__call__)


def all_at_most_one(ratios: Any, source: str) -> Sides:
    """Return the two sides of ratio <= 1 for each ratio."""
    return lines(((ratio, 1.0) for ratio in ratios), source)


def below(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value <= bound, relative to the bound."""
    return float(value) / float(bound.value), Bound(1.0, 1.0, bound.valid, bound.source)


def above(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value >= bound, relative to the value."""
    return float(bound.value) / float(value), Bound(1.0, 1.0, bound.valid, bound.source)
