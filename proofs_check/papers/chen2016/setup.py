"""Where claims of chen2016 are tried: pairs and sets of points, distances, numbers of frequencies.

On a user's table the statements about points use its rows, with its lengthscale; the others keep their settings.
"""

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import numpy as np
from scipy import optimize

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.gram import kernel_distance
from proofs_check.claim import Exact, Setting
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import laws
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import at_most_one, claimed, parametrized, real, valid

DELTA = 0.05
ROWS = 24

Numbers = Mapping[str, float]
OfSetting = Callable[[Setting], Bound]
PointSet = tuple[str, int, dict[str, jax.Array]]
"""Name, number of points, differences of all pairs."""
Interval = Callable[[Numbers], tuple[float, float]]
"""Where Dhat^2 / D^2 is to lie at the numbers of a setting."""


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
        lengthscale, name, wanted = 1.5, "a pair", (0.3, 1.0, 2.5)
        directions = np.random.default_rng(5).standard_normal((3, 3))
        differences = (
            directions
            / np.linalg.norm(directions, axis=1, keepdims=True)
            * np.array(wanted)[:, None]
        )
        quantiles = self.distances((), 0.1, 12.0)
        if self.data is not None and quantiles:
            name, lengthscale = "rows", float(self.data.kernel.lengthscale)
            every = differences_of(rows_of(self.data, ROWS))
            sizes = np.linalg.norm(every, axis=1)
            differences = np.stack(
                [every[np.argmin(np.abs(sizes - r))] for r in quantiles]
            )
        settings = {}
        for difference in differences:
            r = float(np.linalg.norm(difference))
            pair = real(lengthscale * np.stack([0.6 * difference, -0.4 * difference]))
            name_at, numbers = (
                f"{name} at distance {r:.4g}",
                {"K": math.exp(-(r**2) / 2)},
            )
            data = {"kernel": kernels.Gaussian(lengthscale), "pair": pair}
            settings[name_at] = Setting(name_at, data, numbers, {"rows": 16})
        return tuple(settings.values())

    @cached_property
    def point_sets(self) -> list[PointSet]:
        """Sets of points of one shape."""
        if self.data is not None:
            X = rows_of(self.data, ROWS)
            return [(f"{len(X)} rows", len(X), pairs_by_difference(differences_of(X)))]
        n = 16
        line = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, n - 1)])[
            :, None
        ] @ np.eye(1, n)
        cloud = np.random.default_rng(6).standard_normal((n, 3)) @ np.eye(3, n)
        sets = {
            "orthonormal points, shrunk to 1e-3": 1e-3 * np.eye(n),
            "a cloud in 3 dimensions": cloud,
        }
        sets["a line, distances 1e-4 to 1e4"] = line
        return [
            (name, n, pairs_by_difference(differences_of(X)))
            for name, X in sets.items()
        ]

    def distances(
        self, otherwise: Sequence[float], low: float, high: float
    ) -> list[float]:
        """Return three quantiles of the distances of the data that lie within [low, high], or else other distances."""
        if self.data is None:
            return list(otherwise)
        r = np.linalg.norm(differences_of(rows_of(self.data, ROWS)), axis=1)
        r = r[(r >= low) & (r <= high)]
        if not len(r):
            return list(otherwise)
        return sorted(
            {
                float(f"{q:.4g}")
                for q in np.quantile(r, [0.05, 0.5, 0.95], method="nearest")
            }
        )


def rows_of(data: Population, most: int) -> np.ndarray:
    """Return at most so many different rows, centred, in units of the lengthscale."""
    X = np.unique(data.points, axis=0)
    X = X[np.unique(np.linspace(0, len(X) - 1, most).astype(int))]
    return (X - X.mean(axis=0)) / float(data.kernel.lengthscale)


def differences_of(X: np.ndarray) -> np.ndarray:
    """Return x_i - x_j for all pairs i < j, one a row."""
    first, second = np.triu_indices(len(X), 1)
    return X[first] - X[second]


def pairs_by_difference(differences: np.ndarray) -> dict[str, jax.Array]:
    """Return what trials need of pairs of points, whose differences are (..., d)."""
    return {
        "differences": real(differences),
        "squared": real(np.sum(differences**2, axis=-1)),
    }


def cloud(n: int, spacing: float = 1.0) -> np.ndarray:
    """Return n points in three dimensions whose typical distance is about two spacings."""
    return spacing * np.random.default_rng(3).standard_normal((n, 3))


def half_circle() -> np.ndarray:
    """Return 12 directions of the plane, none opposite to another."""
    angles = np.arange(12) * math.pi / 12
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def ball(directions: np.ndarray, radii: np.ndarray) -> dict[str, jax.Array]:
    """Return differences within a ball, for trials: directions over a half sphere, and radii up to the largest."""
    return {"directions": real(directions), "radii": real(radii)}


def distances_of(r: np.ndarray) -> np.ndarray:
    """Return the kernel distance at each distance r, by the library and in its default precision."""
    points = r[:, None]
    return np.asarray(
        kernel_distance(kernels.Gaussian(1.0), real(0 * points), real(points)), float
    )


def all_distances(X: jax.Array) -> np.ndarray:
    """Return the kernel distances (n, n) of points (n, d), by the library."""
    n, points = len(X), np.asarray(X)
    rows = kernel_distance(
        kernels.Gaussian(1.0),
        real(np.repeat(points, n, axis=0)),
        real(np.tile(points, (n, 1))),
    )
    return np.asarray(rows, float).reshape(n, n)


def fewest(bound: Callable[..., Bound], delta: float, least: int = 16) -> int:
    """Return the smallest num_frequencies, at least `least`, whose bound holds with probability 1 - delta."""

    def enough(t: int) -> bool:
        b = bound(num_frequencies=float(t))
        return bool(b.valid) and b.probability >= 1 - delta

    high = least
    while not enough(high):
        high *= 2
    low = high // 2 if high > least else least - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def log_failure(setting: Setting, bounds: Sequence[Bound]) -> float:
    """Return the log of the least failure probability that bounds of one event claim, all by the library."""
    return min(claimed(right, setting) for right in bounds)


def pair_settings(
    bound: Callable[..., Bound],
    distances: Sequence[float],
    errors: Sequence[float],
    deltas: Sequence[float],
) -> tuple[Setting, ...]:
    """Return one setting for every distance, error and delta, with as many frequencies as the bound asks for."""
    settings = []
    for r, eps, delta in itertools.product(distances, errors, deltas):
        t = fewest(functools.partial(bound, distance=r, eps=eps), delta)
        name = f"r={r:g}, eps={eps:g}, delta={delta:g}, t={t}"
        settings.append(Setting(name, numbers={"r": r, "eps": eps, "t": float(t)}))
    return tuple(settings)


@parametrized(Exact)
def pair_tail(
    setting: Setting,
    bound: Callable[..., Bound],
    interval: Interval,
    times: float = 1.0,
) -> tuple[float, float]:
    """Return the statement that Dhat^2 / D^2 leaves the interval no more often than the bound of `times` t says."""
    n = setting.numbers
    right = valid(
        bound(distance=n["r"], eps=n["eps"], num_frequencies=times * n["t"]), setting
    )
    return laws.log_outside(n["r"], int(n["t"]), *interval(n)), math.log1p(
        -right.probability
    )


@parametrized(Exact)
def chi_square_tail(
    setting: Setting,
    bounds: Callable[..., Sequence[Bound]],
    times: float = 1.0,
    *,
    power: int = 2,
) -> tuple[float, float]:
    """Return the statement that chi2_t / t leaves (1 +- eps)^power no more often than the bounds of `times` t say.

    It is the law of Dhat^2 / D^2 in the limit of small distances, and probabilities of e^-600 keep their digits.
    """
    t, eps = setting.numbers["t"], setting.numbers["eps"]
    claimed = log_failure(setting, bounds(eps=eps, num_frequencies=times * t))
    return laws.chi_square_outside(t, (1 - eps) ** power, (1 + eps) ** power), claimed


def tiny(
    bound: Callable[..., Bound], errors: Sequence[float], logs: Sequence[float]
) -> tuple[Setting, ...]:
    """Return settings for every error and log, with the t at which the failure probability of a bound is e^-log."""
    settings = []
    for eps, log in itertools.product(errors, logs):
        root = optimize.brentq(
            lambda t, eps=eps, log=log: (
                bound(eps=eps, num_frequencies=t).log_failure + log
            ),
            1,
            1e10,
        )
        t = float(math.ceil(root))
        settings.append(
            Setting(
                f"eps={eps:g}, delta=e^-{log:g}, t={t:g}", numbers={"t": t, "eps": eps}
            )
        )
    return tuple(settings)


def relative(n: Numbers) -> tuple[float, float]:
    """|Dhat / D - 1| <= eps."""
    return (1 - n["eps"]) ** 2, (1 + n["eps"]) ** 2


def all_at_most_one(ratios: Any, source: str) -> list[tuple[float, Bound]]:
    """Return the two sides of ratio <= 1 for each ratio."""
    return [at_most_one(ratio, source) for ratio in ratios]


def below(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value <= bound, relative to the bound."""
    return float(value) / float(bound.value), Bound(1.0, 1.0, bound.valid, bound.source)


def above(value: Any, bound: Bound) -> tuple[float, Bound]:
    """Return the two sides of value >= bound, relative to the value."""
    return float(bound.value) / float(value), Bound(1.0, 1.0, bound.valid, bound.source)
