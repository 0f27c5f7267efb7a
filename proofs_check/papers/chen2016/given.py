"""chen2016, what is ours for distances that are known: Theorems E and F, for one pair and for all pairs of a set."""

from __future__ import annotations

import functools
import math
from typing import Any

import jax
import numpy as np

from jaxkern import plan
from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Inequality, Rare, Setting, Tail
from proofs_check.engine import tilting
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope

EDGES = np.append(0.0, 2.0 ** (np.arange(-16, 9) / 2))
"""Lower edges of the bins in which pairs are counted, by their squared distance."""

LEVELS = (0.05, 0.3, 0.8, 1.0, 1.5, 2.5, 5.0, 9.0)
SLOPES = (-20.0, -1.0, 0.2, 0.4)
COPIES = 128
"""As many as in the other claims on tiny probabilities of pairs, with which the compiled trial is shared."""


def _frequencies(eps: float, delta: float, squared: Any, pairs: Any) -> int:
    """Return the planned number for pairs counted by their squared distances."""
    size = plan.fourier(eps, delta, squared_distances=squared, pairs=pairs).num_frequencies
    assert size is not None
    return size


def _spreads(r: float, *, scaled: bool) -> list[float]:
    """Return means of convex functions of Y = X / E X, or of X: E (Y - c)_+ at all levels, log E exp(s (Y - E Y))."""
    mu = -math.expm1(-(r**2) / 2)
    unit = mu if scaled else 1.0
    stop_loss = [mu / unit * sides.stop_loss(c * unit / mu, r) for c in LEVELS]
    return stop_loss + [sides.log_mgf(s / unit, r) for s in SLOPES]


def _far_convex_order(scope: Scope) -> Check:
    def holds(*, scaled: bool = True, reverse: bool = False) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            near, far = (_spreads(setting.numbers[name], scaled=scaled) for name in ("r", "farther"))
            if reverse:
                near, far = far, near
            source = "jaxkern, Theorem E of chen2016"
            return [sides.at_most_one(b / a, source) for a, b in zip(near, far, strict=True) if a > 0]

        return Inequality(both)

    def place(r: float) -> Setting:
        return Setting(f"r={r:g} and {1.5 * r:g}", numbers={"r": r, "farther": 1.5 * r})

    settings = tuple(map(place, places.distances(scope.data, (0.05, 0.3, 1.0, 2.0, 3.5, 5.0), 0.02, 5.0)))
    middle = tuple(map(place, (0.3, 1.0)))
    return Check(
        corrected=Form(holds(), settings),
        controls=(
            Control("the order reversed", holds(reverse=True), middle, "swapped constants"),
            Control("not divided by the mean", holds(scaled=False), middle, "missing normalisation"),
        ),
    )


def _pair(*, r: float, eps: float, t: float, stretched: float = 1.0) -> Bound:
    squared, one = np.array([(stretched * r) ** 2]), np.ones(1)
    return fourier.relative_distances_given(eps=eps, num_frequencies=t, squared_distances=squared, pairs=one)


def _one_pair(scope: Scope) -> Check:
    def at(distances: list[float], deltas: tuple[float, ...]) -> tuple[Setting, ...]:
        settings = []
        for r in distances:
            for eps in (0.1, 0.3):
                for delta in deltas:
                    t = max(_frequencies(eps, delta, [r**2], [1.0]), 16)  # for fewer the law is not computed
                    numbers = {"r": r, "eps": eps, "t": float(t)}
                    settings.append(Setting(f"r={r:g}, eps={eps:g}, delta={delta:g}, t={t}", numbers=numbers))
        return tuple(settings)

    deltas = (1e-2, 1e-3, 1e-4, 1e-6) if scope.full else (1e-2, 1e-4)
    middle = at([1.0], (1e-4,))
    return Check(
        corrected=Form(
            places.pair(_pair, places.relative), at(places.distances(scope.data, (0.5, 1.0, 3.0), 1e-6, 12.0), deltas)
        ),
        controls=(
            Control("half of the frequencies", places.pair(_pair, places.relative, times=2), middle, "wrong factor"),
            Control("taken as twice as far", _stretched_pair(2.0), middle, "wrong factor"),
        ),
    )


def _stretched_pair(factor: float) -> Exact:
    return places.pair(functools.partial(_pair, stretched=factor), places.relative)


def _of_histogram(setting: Setting, *, times: float = 1.0, stretched: float = 1.0) -> Bound:
    """Return the bound for pairs counted by the lower edges of their squared distances, those times `stretched`^2."""
    n, bins = setting.numbers, np.append(EDGES, np.inf)
    counts = np.histogram(np.asarray(setting.population["squared"], float), bins)[0]
    some = counts > 0
    return fourier.relative_distances_given(
        eps=n["eps"],
        num_frequencies=times * n["t"],
        squared_distances=stretched**2 * EDGES[some],
        pairs=counts[some].astype(float),
    )


def _point_sets() -> list[places.PointSet]:
    """Return three sets of 16 points; the distances of the first two are edges of bins."""
    half, n = 8, 16
    # 1/16 within 8 pairs, a little above sqrt(8) between them.
    apart = np.kron([[1.0], [-1.0]], np.eye(half, n, half) / 32)
    pairs = np.kron([[1.0], [1.0]], 2 * np.eye(half, n)) + apart
    rng = np.random.default_rng(8)
    centers = np.repeat(1.5 * rng.standard_normal((4, 4)), 4, axis=0)
    widths = np.repeat([0.1, 0.3, 0.5, 1.0], 4)[:, None]
    clusters = (centers + widths * rng.standard_normal((n, 4))) @ np.eye(4, n)
    named = {"all at distance sqrt(1/2)": np.eye(n) / 2, "8 near pairs among 112 far ones": pairs}
    named["4 clusters of different widths"] = clusters
    found = []
    for name, X in named.items():
        differences = places.differences_of(X)
        squared = np.sum(differences**2, axis=1)
        found.append((name, n, {"differences": places.real(differences), "squared": places.real(squared)}))
    return found


def _planned(one: places.PointSet, eps: float, delta: float) -> Setting:
    """Return a set of points with as many frequencies as the plan for its distances has."""
    name, n, arrays = one
    squared = np.asarray(arrays["squared"], float)
    counts = np.histogram(squared, np.append(EDGES, np.inf))[0]
    t = _frequencies(eps, delta, EDGES, counts)
    numbers = {"eps": eps, "t": float(t), "n": float(n)}
    return Setting(f"{name}, eps={eps:g}, delta={delta:g}, t={t}", arrays, numbers, {"rows": t})


def _all_pairs(scope: Scope) -> Check:
    # Few trials tell the bound from the truth only where delta is large. The errors make the three plans at delta = .5
    # equal, and equal to that of `jaxkern:relative-distances`, so that all share one compiled trial.
    sets = (
        list(zip(_point_sets(), (0.197, 0.1435, 0.1515), strict=True))
        if scope.data is None
        else [(one, 0.25) for one in scope.people]
    )
    settings = tuple(
        _planned(one, eps, delta) for delta in ((0.5, 0.05) if scope.full else (0.5,)) for one, eps in sets
    )
    sabotaged: tuple[Control, ...]
    if scope.data is None:
        half = Tail(trials.largest_error, functools.partial(_of_histogram, times=2.0))
        farther = Tail(trials.largest_error, functools.partial(_of_histogram, stretched=4.0))
        sabotaged = (
            Control("half of the frequencies", half, settings[1:2], "wrong factor"),
            Control("taken as four times as far", farther, settings[:1], "wrong factor"),
        )
    else:  # the pairs of a table may all be alike, and so far apart that farther is no different
        fewer = controls.changed(settings[:1], "one frequency", shapes={"part": settings[0].shapes["rows"]})
        statement = Tail(trials.largest_error_of_part, _of_histogram)
        sabotaged = (Control("one frequency", statement, fewer, "wrong factor"),)
    return Check(corrected=Form(Tail(trials.largest_error, _of_histogram), settings), controls=sabotaged)


def _one_pair_rare(scope: Scope) -> Check:
    def log_claimed(setting: Setting, *, stretched: float = 1.0) -> float:
        # So many pairs that the bound for all of them is of order 1, and keeps its digits.
        n, log_pairs = setting.numbers, -tilting.log_ceiling(setting)
        squared, pairs = np.array([(stretched * n["r"]) ** 2]), np.array([math.exp(log_pairs)])
        right = fourier.relative_distances_given(
            eps=n["eps"], num_frequencies=n["t"], squared_distances=squared, pairs=pairs
        )
        if not right.valid:
            raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
        return math.log(1 - right.probability) - log_pairs

    def place(r: float, eps: float) -> Setting:
        above, below = (1 + eps) ** 2, (1 - eps) ** 2
        numbers = {"r": r, "eps": eps, "t": float(COPIES)}
        name, law = f"r={r:g}, eps={eps:g}, t={COPIES}", tilting.FourierPair(r)
        return tilting.sums(name, law, copies=COPIES, above=above, below=below, numbers=numbers)

    def statement(stretched: float = 1.0) -> Rare:
        return Rare(tilting.sum_estimate, functools.partial(log_claimed, stretched=stretched), tilting.log_ceiling)

    where = ((1.0, 0.25), (2.5, 0.3), (1.0, 0.4), (2.5, 0.17)) if scope.full else ((1.0, 0.25), (2.5, 0.3))
    settings = tuple(place(r, eps) for r, eps in where)
    return Check(
        corrected=Form(statement(), settings),
        controls=(Control("taken as twice as far", statement(stretched=2.0), settings[:1], "wrong factor"),),
    )
