"""chen2016, sections 1 to 3: one pair of points, very small distances, and the lower bound.

One pair of points has a law that is computed exactly (`_chen2016_trials.pair_cdf`), so statements about a pair are
decided without sampling. `docs/theory/chen2016.md` derives every correction.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Expectation, Form, Identity, Inequality, Rate, Setting
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope
from proofs_check.papers.shared import always

FACTOR = "wrong factor"
SWAPPED = "swapped constants"


def _shifted_mean(scope: Scope) -> Check:
    def residual(**options: Any) -> Identity:
        return Identity(functools.partial(sides.shifted_mean, **options))

    return Check(
        printed=Form(residual(factor=1 / math.sqrt(2)), scope.pairs),
        corrected=Form(residual(), scope.pairs),
        controls=(
            Control("no random shift", residual(shifted=False), scope.pairs, "wrong law"),
            Control("gamma for the lengthscale", residual(drawn=controls.gamma_for_lengthscale), scope.pairs, SWAPPED),
        ),
    )


def _lemma_2_1(scope: Scope) -> Check:
    def residual(**options: Any) -> Identity:
        return Identity(functools.partial(sides.paired_mean, **options))

    return Check(
        printed=Form(residual(), scope.pairs),
        controls=(
            Control("frequencies of twice the variance", residual(scale=math.sqrt(2)), scope.pairs, FACTOR),
            Control("gamma for the lengthscale", residual(drawn=controls.gamma_for_lengthscale), scope.pairs, SWAPPED),
            Control("without 1/sqrt(t)", residual(normalised=False), scope.pairs, "missing normalisation"),
        ),
    )


def _corollary_2_1(scope: Scope) -> Check:
    def target(setting: Setting) -> float:
        return setting.numbers["K"]

    statement = Expectation(trials.inner_product, target, lambda s: 1.0)
    doubled = controls.changed(scope.pairs, "twice as far", population=lambda p: {**p, "pair": 2 * p["pair"]})
    swapped = controls.changed(
        scope.pairs, "gamma", population=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])}
    )
    return Check(
        printed=Form(statement, scope.pairs),
        controls=(
            Control("points twice as far apart", statement, doubled, FACTOR),
            Control("gamma for the lengthscale", statement, swapped, SWAPPED),
        ),
    )


def _corollary_2_2(scope: Scope) -> Check:
    def bound(*, r: float, eps: float, t: float, as_printed: bool = False) -> Bound:
        return fourier.kernel_value(eps=eps, num_frequencies=t, as_printed=as_printed)

    def interval(n: places.Numbers) -> tuple[float, float]:
        mu = -math.expm1(-(n["r"] ** 2) / 2)  # K - Khat = mu (Dhat^2 / D^2 - 1)
        return 1 - n["eps"] / mu, 1 + n["eps"] / mu

    printed = functools.partial(bound, as_printed=True)
    distances = places.distances(scope.data, (0.5, 1.0, 3.0, 10.0), 0.5, 12.0)
    return Check(
        printed=Form(places.pair(printed, interval), places.at(printed, distances, (0.1, 0.3), scope.deltas)),
        corrected=Form(places.pair(bound, interval), places.at(bound, distances, (0.1, 0.3), scope.deltas)),
        controls=(
            Control(
                "Hoeffding's exponent for terms in an interval of length 1",
                places.pair(bound, interval, times=4),
                places.at(bound, (3.0,), (0.1, 0.3), scope.deltas),
                FACTOR,
            ),
        ),
    )


def _lemma_2_2(scope: Scope) -> Check:
    def bound(*, r: float, eps: float, t: float, as_printed: bool = False) -> Bound:
        return fourier.far_distance(eps=eps, num_frequencies=t, distance=r, as_printed=as_printed)

    def inverse(n: places.Numbers) -> tuple[float, float]:
        return (1 + n["eps"]) ** -2, (1 - n["eps"]) ** -2

    printed = functools.partial(bound, as_printed=True)
    distances = places.distances(scope.data, (1.0, 2.0, 6.0), 1.0, 12.0)
    settings = places.at(bound, distances, (0.1, 0.3), scope.deltas)
    return Check(
        printed=Form(places.pair(printed, inverse), places.at(printed, distances, (0.09,), scope.deltas)),
        corrected=Form(places.pair(bound, places.relative), settings),
        controls=(
            Control(
                "a fortieth of the frequencies",
                places.pair(bound, places.relative, times=40),
                places.fewer(places.at(bound, (1.0,), (0.05, 0.1), scope.deltas), 40),
                FACTOR,
            ),
        ),
    )


def _eq2() -> Check:
    def half_precision(r: np.ndarray) -> np.ndarray:
        return np.sqrt(2 - 2 * controls.in_half(np.exp(-(r**2) / 2)))

    def holds(
        lower: Callable[[float], Bound], distances: Callable[[np.ndarray], np.ndarray] = sides.distances_of
    ) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = np.asarray(setting.population)
            D = distances(r)
            return [sides.above(d, lower(float(x))) for d, x in zip(D, r, strict=True)] + [
                sides.at_most_one(d / x, "chen2016, (2), right") for d, x in zip(D, r, strict=True)
            ]

        return Inequality(both)

    def sharp(x: float) -> Bound:
        return fourier.distance_lower(distance=x)

    settings = (
        Setting("distances from 1e-4 to 1", np.concatenate([np.geomspace(1e-4, 1, 200), np.linspace(0.5, 1, 200)])),
    )
    # Below about .02 the kernel value would be rounded to 1, and the distance to 0.
    larger = (Setting("distances from .05 to 1", np.geomspace(0.05, 1, 200)),)
    return Check(
        printed=Form(holds(lambda x: fourier.distance_lower(distance=x, as_printed=True)), settings),
        corrected=Form(holds(sharp), settings),
        controls=(
            Control("the constant .89", holds(lambda x: always(0.89 * x, "the constant .89")), settings, FACTOR),
            Control("K in float16", holds(sharp, half_precision), larger, "low precision"),
        ),
    )


def _eq3() -> Check:
    def holds(lower: Callable[..., Bound]) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key, setting
            eps = np.repeat(np.geomspace(1e-3, 0.99, 40), 10)
            r = 2 * np.sqrt(eps) * np.tile(np.linspace(0.1, 1 - 1e-9, 10), 40)
            D = sides.distances_of(r)
            return [
                sides.above(d**2, lower(eps=float(e), distance=float(x))) for d, e, x in zip(D, eps, r, strict=True)
            ]

        return Inequality(both)

    def quarter(*, eps: float, distance: float) -> Bound:
        return always((1 - eps / 4) * distance**2, "1 - eps / 4")

    settings = (Setting("eps from .001 to .99, distances up to 2 sqrt(eps)"),)
    return Check(
        printed=Form(holds(fourier.squared_distance_lower), settings),
        controls=(Control("a quarter of the error", holds(quarter), settings, FACTOR),),
    )


def _eq4() -> Check:
    def holds(**options: Any) -> Inequality:
        return Inequality(functools.partial(sides.taylor_sides, **options))

    settings = tuple(Setting(f"{t} frequencies", shapes={"t": t}) for t in (1, 5))
    return Check(
        printed=Form(holds(as_printed=True), settings),
        corrected=Form(holds(as_printed=False), settings),
        controls=(Control("half of the fourth-order term", holds(as_printed=False, fourth=0.5), settings, FACTOR),),
    )


def _lemma_3_1() -> Check:
    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}, shapes={"rows": 20}) for r in (0.02, 0.04, 0.08, 0.16, 0.32))
    return Check(
        printed=Form(Rate(trials.distance_to_the_limit, "r", 2.0, 0.15), settings),
        controls=(Control("the limit 1", Rate(trials.distance_to_one, "r", 2.0, 0.15), settings, "wrong operator"),),
    )


def _lemma_3_2(scope: Scope) -> Check:
    def bound(*, r: float, eps: float, t: float, as_printed: bool = False) -> Bound:
        return fourier.chi_square_mean(eps=eps, num_frequencies=t, as_printed=as_printed)

    def statement(of: places.PairBound, times: float = 1.0) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            t, eps = setting.numbers["t"], setting.numbers["eps"]
            claimed = 1 - of(r=0.0, eps=eps, t=times * t).probability
            return places.chi_square_outside(t, 1 - eps, 1 + eps), math.log(claimed)

        return Exact(probability)

    printed = functools.partial(bound, as_printed=True)
    errors = (0.1, 0.5, 0.9)
    return Check(
        printed=Form(statement(printed), places.at(printed, (0.0,), errors, scope.deltas)),
        corrected=Form(statement(bound), places.at(bound, (0.0,), errors, scope.deltas)),
        controls=(
            Control(
                "half of the frequencies",
                statement(bound, times=2),
                places.at(bound, (0.0,), errors, scope.deltas),
                FACTOR,
            ),
        ),
    )


def _lemma_3_3_proof() -> Check:
    def statement(limit: Callable[[float, float], float]) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            t, delta = setting.numbers["t"], setting.numbers["delta"]
            one = math.log(2) + stats.norm.logsf(limit(t, delta))
            return math.log(-math.expm1(t * math.log1p(-math.exp(one)))), math.log(delta)

        return Exact(probability)

    settings = []
    for delta in (0.1, 1e-2, 1e-4, 1e-8):
        for eps in (0.1, 0.5):
            t = math.ceil(8 / eps**2 * math.log(2 / delta))
            settings.append(Setting(f"eps={eps:g}, delta={delta:g}, t={t}", numbers={"t": float(t), "delta": delta}))
    return Check(
        printed=Form(statement(lambda t, delta: math.sqrt(math.log(1 / delta))), tuple(settings)),
        corrected=Form(statement(lambda t, delta: math.sqrt(2 * math.log(2 * t / delta))), tuple(settings)),
        controls=(
            Control(
                "no union over the frequencies",
                statement(lambda t, delta: math.sqrt(2 * math.log(2 / delta))),
                tuple(settings),
                "term left out",
            ),
        ),
    )


def _theorem_3_1(scope: Scope) -> Check:
    def on_a_line(setting: Setting) -> tuple[float, float]:
        """On a shrinking line all ratios tend to the same chi2_t / t, whatever n is."""
        t, eps = setting.numbers["t"], setting.numbers["eps"]
        inside = stats.chi2.cdf(t * (1 + eps) ** 2, t) - stats.chi2.cdf(t * (1 - eps) ** 2, t)
        return math.log(inside), math.log(0.5)

    def orthogonal(setting: Setting) -> tuple[float, float]:
        n, eps, t = (setting.numbers[k] for k in ("n", "eps", "t"))
        success = fourier.success_limit(eps=eps, num_frequencies=t, num_points=n).value
        return math.log(max(success, 1e-300)), math.log(0.5)

    def sized(c: float) -> tuple[Setting, ...]:
        settings = []
        for n in (1e2, 1e3, 1e4, 1e6, 1e9, 1e12) if scope.full else (1e2, 1e4, 1e9):
            for eps in (0.05, 0.2, 0.5):
                t = math.floor(c * math.log(n) / eps**2)
                name = f"{n:g} points in {n / 2:g} dimensions, eps={eps:g}, t={t}"
                settings.append(Setting(name, numbers={"n": n, "eps": eps, "t": float(t)}))
        return tuple(settings)

    line = []
    for c in (0.1, 0.01, 0.001):  # t < c ln n / eps^2
        n = 1.01 * 30 * 0.1**2 / c
        line.append(Setting(f"exp({n:.3g}) points on a line, eps=0.1, t=30, c={c:g}", numbers={"t": 30.0, "eps": 0.1}))
    return Check(
        printed=Form(Exact(on_a_line), tuple(line)),
        corrected=Form(Exact(orthogonal), sized(0.6)),
        controls=(Control("the same for t <= ln n / eps^2", Exact(orthogonal), sized(1.0), FACTOR),),
    )
