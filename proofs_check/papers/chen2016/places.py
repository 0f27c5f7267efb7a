"""Where claims of chen2016 are tried: pairs and sets of points, distances, numbers of frequencies.

On a user's table the statements about points use its rows, with its lengthscale; the others keep their settings.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound
from proofs_check.claim import Exact, Setting
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import trials
from proofs_check.papers.populations import Population

PAPER = "chen2016"
DELTA = 0.05
ROWS = 24

Numbers = Mapping[str, float]
PairBound = Callable[..., Bound]
PointSet = tuple[str, int, dict[str, jax.Array]]
"""Name, number of points, differences of all pairs."""


def rows_of(data: Population, most: int) -> np.ndarray:
    """Return at most so many different rows, centred, in units of the lengthscale."""
    X = np.unique(data.points, axis=0)
    X = X[np.unique(np.linspace(0, len(X) - 1, most).astype(int))]
    return (X - X.mean(axis=0)) / float(data.kernel.lengthscale)


def differences_of(X: np.ndarray) -> np.ndarray:
    """Return x_i - x_j for all pairs i < j, one a row."""
    first, second = np.triu_indices(len(X), 1)
    return X[first] - X[second]


@dataclass(frozen=True, eq=False)
class Scope(shared.Scope):
    """Pairs and sets of points, and failure probabilities; on a user's table, statements about points use its rows."""

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (DELTA, 0.01) if self.full else (DELTA,)

    @cached_property
    def pairs(self) -> tuple[Setting, ...]:
        """Pairs of points."""
        return pairs_of(self.data)

    @cached_property
    def people(self) -> list[PointSet]:
        """Sets of points of one shape."""
        return point_sets(self.data)


def distances(data: Population | None, otherwise: Sequence[float], low: float, high: float) -> list[float]:
    """Return three quantiles of the distances of the data that lie within [low, high], or else other distances."""
    if data is not None:
        found = np.linalg.norm(differences_of(rows_of(data, ROWS)), axis=1)
        found = found[(found >= low) & (found <= high)]
        if len(found):
            return sorted({float(f"{q:.4g}") for q in np.quantile(found, [0.05, 0.5, 0.95], method="nearest")})
    return list(otherwise)


def real(x: Any) -> jax.Array:
    """Return an array of the default float dtype."""
    return jnp.asarray(x, jnp.result_type(float))


def pairs_of(data: Population | None) -> tuple[Setting, ...]:
    """Return pairs of points with their kernel, moved to the origin, which moves neither side of an unbiasedness."""
    lengthscale, name, wanted = 1.5, "a pair", (0.3, 1.0, 2.5)
    directions = np.random.default_rng(5).standard_normal((3, 3))
    differences = directions / np.linalg.norm(directions, axis=1, keepdims=True) * np.array(wanted)[:, None]
    found = distances(data, (), 0.1, 12.0)
    if data is not None and found:
        lengthscale, name, every = float(data.kernel.lengthscale), "rows", differences_of(rows_of(data, ROWS))
        sizes = np.linalg.norm(every, axis=1)
        differences = np.stack([every[np.argmin(np.abs(sizes - r))] for r in found])
    settings = []
    for difference in differences:
        r = float(np.linalg.norm(difference))
        pair = lengthscale * np.stack([0.6 * difference, -0.4 * difference])
        population = {"kernel": kernels.Gaussian(lengthscale), "pair": real(pair)}
        settings.append(Setting(f"{name} at distance {r:.4g}", population, {"K": math.exp(-(r**2) / 2)}, {"rows": 16}))
    return tuple({s.name: s for s in settings}.values())


def point_sets(data: Population | None) -> list[PointSet]:
    """Return sets of points of one shape."""
    if data is not None:
        X = rows_of(data, ROWS)
        return [(f"{len(X)} rows", len(X), _all_differences(X))]
    n = 16
    line = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, n - 1)])[:, None] @ np.eye(1, n)
    cloud = np.random.default_rng(6).standard_normal((n, 3)) @ np.eye(3, n)
    sets = {"orthonormal points, shrunk to 1e-3": 1e-3 * np.eye(n), "a cloud in 3 dimensions": cloud}
    sets["a line, distances 1e-4 to 1e4"] = line
    return [(name, n, _all_differences(X)) for name, X in sets.items()]


def _all_differences(X: np.ndarray) -> dict[str, jax.Array]:
    differences = differences_of(X)
    return {"differences": real(differences), "squared": real(np.sum(differences**2, axis=1))}


def fewest(bound: Callable[[float], Bound], delta: float, least: int = 16) -> int:
    """Return the smallest number of frequencies, at least `least`, whose bound holds with probability 1 - delta."""

    def enough(t: int) -> bool:
        b = bound(float(t))
        return bool(b.valid) and b.probability >= 1 - delta

    high = least
    while not enough(high):
        high *= 2
    low = high // 2 if high > least else least - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def at(
    bound: PairBound, distances: Sequence[float], errors: Sequence[float], deltas: Sequence[float]
) -> tuple[Setting, ...]:
    """Return one setting for every distance, error and delta, with as many frequencies as the bound asks for."""
    settings = []
    for r in distances:
        for eps in errors:
            for delta in deltas:
                t = fewest(lambda t, r=r, eps=eps: bound(r=r, eps=eps, t=t), delta)  # type: ignore[misc]
                name = f"r={r:g}, eps={eps:g}, delta={delta:g}, t={t}"
                settings.append(Setting(name, numbers={"r": r, "eps": eps, "t": float(t)}))
    return tuple(settings)


def fewer(settings: tuple[Setting, ...], times: int) -> tuple[Setting, ...]:
    """Return the settings with so many times fewer frequencies."""
    return tuple(
        Setting(f"{s.name} over {times}", numbers={**s.numbers, "t": float(s.numbers["t"] // times)}) for s in settings
    )


def pair(bound: PairBound, interval: Callable[[Numbers], tuple[float, float]], times: float = 1.0) -> Exact:
    """Return the statement that Dhat^2 / D^2 leaves the interval no more often than the bound of `times` t says."""

    def probability(setting: Setting) -> tuple[float, float]:
        n = setting.numbers
        right = bound(r=n["r"], eps=n["eps"], t=times * n["t"])
        if not right.valid:
            raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
        return trials.log_outside(n["r"], int(n["t"]), *interval(n)), math.log(1 - right.probability)

    return Exact(probability)


def relative(n: Numbers) -> tuple[float, float]:
    """|Dhat / D - 1| <= eps."""
    return (1 - n["eps"]) ** 2, (1 + n["eps"]) ** 2


def chi_square_outside(t: float, low: float, high: float) -> float:
    """Return log P(chi2_t / t outside [low, high])."""
    return float(np.logaddexp(stats.chi2.logsf(t * high, t), stats.chi2.logcdf(t * low, t)))
