"""chen2016, section 4, and what is ours in its place: one pair at every distance, and all pairs of a set of points."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Inequality, Law, Setting, Tail
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always


def _lemma_4_1() -> Check:
    def holds(bound: Callable[..., Bound], slopes: Callable[[float], Sequence[float]]) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = setting.numbers["r"]
            return [sides.below(sides.log_mgf(s, r), bound(s=s, distance=r)) for s in slopes(r)]

        return Inequality(both)

    def printed_slopes(r: float) -> list[float]:
        return [y / r**2 for y in (0.05, 0.2, 0.4, 0.499)]

    def slopes(r: float) -> list[float]:
        return [y / (-2 * math.expm1(-(r**2) / 2)) for y in (-50.0, -3.0, -0.3, 0.1, 0.5, 0.9)]

    def variance_only(*, s: float, distance: float) -> Bound:
        return always((s * math.expm1(-(distance**2) / 2)) ** 2, "s^2 mu^2")

    small = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.01, 0.1, 1.0))
    all_ = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.01, 0.1, 1.0, 2.0, 6.0))
    return Check(
        printed=Form(holds(functools.partial(fourier.log_mgf, as_printed=True), printed_slopes), small),
        corrected=Form(holds(fourier.log_mgf, slopes), all_),
        controls=(Control("the variance of chi-square alone", holds(variance_only, slopes), all_, "term left out"),),
    )


def _eq5() -> Check:
    def statement(share: float = 1.0) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            n = setting.numbers
            right = fourier.sub_exponential(eps=n["eps"], mean=1.0, p=share * n["p"], q=n["q"], num_frequencies=n["t"])
            # 1 - probability would lose all digits of so small a number.
            exponent = min(n["eps"] ** 2 / (2 * share * n["p"]), n["eps"] / (2 * n["q"]))
            if not right.valid:
                raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
            return places.chi_square_outside(n["t"], 1 - n["eps"], 1 + n["eps"]), math.log(2) - n["t"] * exponent

        return Exact(probability)

    def place(t: float, eps: float, p: float, q: float) -> Setting:
        return Setting(f"t={t:g}, eps={eps:g}, p={p:.4g}, q={q:g}", numbers={"t": t, "eps": eps, "p": p, "q": q})

    # Of chi2_1 - 1 the log-mgf is -log(1 - 2 s) / 2 - s, which over s^2 increases in s: p by its value at s = 1 / q.
    both = {q: 2 * q**2 * (-math.log1p(-2 / q) / 2 - 1 / q) for q in (3.0, 4.0, 8.0)}
    one_sided = tuple(place(t, 0.5, 2.0, 0.01) for t in (400.0, 1000.0))
    two_sided = tuple(place(t, eps, both[q], q) for q in both for t, eps in ((50.0, 0.5), (400.0, 0.25), (4000.0, 0.1)))
    return Check(
        printed=Form(statement(), one_sided),
        corrected=Form(statement(), two_sided),
        controls=(Control("half of p", statement(0.5), two_sided, "wrong factor"),),
    )


def _lemma_4_2(scope: Scope) -> Check:
    def bound(*, r: float, eps: float, t: float, as_printed: bool = False) -> Bound:
        return fourier.near_distance(eps=eps, num_frequencies=t, distance=r, as_printed=as_printed)

    printed = functools.partial(bound, as_printed=True)
    near = places.distances(scope.data, (1e-3, 0.3, 1.0), 1e-6, 1.0)
    settings = places.at(
        bound, places.distances(scope.data, (1e-3, 0.3, 1.0, 3.0), 1e-6, 12.0), (0.1, 0.3), scope.deltas
    )
    return Check(
        printed=Form(places.pair(printed, places.relative), places.at(printed, near, (0.1, 0.3), scope.deltas)),
        corrected=Form(places.pair(bound, places.relative), settings),
        controls=(
            Control(
                "half of the frequencies",
                places.pair(bound, places.relative, times=2),
                places.at(bound, (1e-3, 0.3), (0.1, 0.3), scope.deltas),
                "wrong factor",
            ),
        ),
    )


def _theorem_4_1(scope: Scope) -> Check:
    bound = _of_all_pairs(fourier.relative_distances)
    settings = _all_pairs_at(fourier.relative_distances, scope.people, scope.deltas, 0.25)

    def shape(setting: Setting) -> Bound:
        n, t = setting.numbers["n"], setting.numbers["t"]
        return Bound(math.sqrt(math.log(n) / t), 1 - 1 / n, n >= 2, "chen2016, Theorem 4.1 (shape)")

    return Check(
        printed=Form(Calibrated(trials.largest_error, shape, math.sqrt(2), math.sqrt(6)), settings),
        corrected=Form(Tail(trials.largest_error, bound), settings),
        controls=(_fewer_frequencies(bound, settings[0], scope.data),),
    )


def _pair_law() -> Check:
    r, t = 2.0, 16
    settings = []
    for dim in (1, 5):
        unit = np.arange(1.0, dim + 1) / np.linalg.norm(np.arange(1.0, dim + 1))
        pair = np.stack([0.7 * r * unit, -0.3 * r * unit])
        settings.append(Setting(f"r=2, t=16, d={dim}", {"pair": places.real(pair)}, {"r": r}, {"rows": t}))
    statement = Law(trials.squared_ratio, functools.partial(trials.interpolated_cdf, r, t))
    return Check(
        corrected=Form(statement, tuple(settings)),
        controls=(
            Control(
                "the law of a vanishing distance",
                Law(trials.squared_ratio, lambda x: stats.chi2.cdf(t * np.asarray(x), t)),
                tuple(settings),
                "wrong law",
            ),
            Control("one frequency repeated 16 times", statement, controls.one_draw(settings[:1]), "reused key"),
        ),
    )


def _convex_order(scope: Scope) -> Check:
    levels = (0.05, 0.3, 0.8, 1.0, 1.5, 2.5, 5.0, 9.0)

    def holds(degrees: int) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = setting.numbers["r"]
            most = 2 / -math.expm1(-(r**2) / 2)  # of Y: beyond, its stop-loss mean is 0
            found = [(sides.stop_loss(c, r), sides.chi_square_stop_loss(c, degrees)) for c in levels if c < most]
            return [sides.at_most_one(left / right, "jaxkern, Theorem A of chen2016") for left, right in found]

        return Inequality(both)

    distances = places.distances(scope.data, (0.05, 0.3, 1.0, 2.0, 3.5, 8.0), 0.02, 12.0)
    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in distances)
    small = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.05, 0.3))
    return Check(
        corrected=Form(holds(1), settings),
        controls=(Control("chi-square of two frequencies, halved", holds(2), small, "wrong law"),),
    )


def _one_pair(scope: Scope) -> Check:
    def bound(*, r: float, eps: float, t: float) -> Bound:
        return fourier.relative_distances_sharp(eps=eps, num_frequencies=t, num_points=2)

    def third(*, r: float, eps: float, t: float) -> Bound:
        b = bound(r=r, eps=eps, t=t)
        return Bound(b.value, 1 - (1 - b.probability) / 3, b.valid, b.source)

    errors, deltas = (0.1, 0.3), (1e-2, 1e-3, 1e-4, 1e-6) if scope.full else (1e-2, 1e-4)
    distances = places.distances(scope.data, (1e-3, 0.5, 1.0, 3.0), 1e-6, 12.0)
    return Check(
        corrected=Form(places.pair(bound, places.relative), places.at(bound, distances, errors, deltas)),
        controls=(
            Control(
                "a third of the probability",
                places.pair(third, places.relative),
                places.at(bound, (1e-3,), errors, deltas),
                "wrong factor",
            ),
        ),
    )


def _all_pairs(scope: Scope) -> Check:
    sharp = fourier.relative_distances_sharp
    bound = _of_all_pairs(sharp)
    # The bound is within a factor 3 of the truth for n points: few trials tell the two apart only where delta is large.
    settings = _all_pairs_at(sharp, scope.people, (0.5,), 0.2) + (
        _all_pairs_at(sharp, scope.people, (0.5,), 0.4) if scope.full else ()
    )
    return Check(
        corrected=Form(Tail(trials.largest_error, bound), settings),
        controls=(_fewer_frequencies(bound, settings[0], scope.data),),
    )


def _fewer_frequencies(bound: Callable[[Setting], Bound], setting: Setting, data: Population | None) -> Control:
    """Return the control of a bound for all pairs; the distances of a table may be too large for a half to show."""
    name, part = ("half of the frequencies", 2) if data is None else ("one frequency", setting.shapes["rows"])
    fewer = controls.changed((setting,), name, shapes={"part": part})
    return Control(name, Tail(trials.largest_error_of_part, bound), fewer, "wrong factor")


def _all_pairs_at(
    bound: Callable[..., Bound], people: Sequence[places.PointSet], deltas: tuple[float, ...], eps: float
) -> tuple[Setting, ...]:
    settings = []
    for name, n, arrays in people:
        for delta in deltas:
            t = places.fewest(lambda t, n=n: bound(eps=eps, num_frequencies=t, num_points=n), delta)  # type: ignore[misc]
            label = f"{name}, eps={eps:g}, delta={delta:g}, t={t}"
            numbers = {"eps": eps, "t": float(t), "n": float(n)}
            settings.append(Setting(label, arrays, numbers, {"rows": t}))
    return tuple(settings)


def _of_all_pairs(bound: Callable[..., Bound]) -> Callable[[Setting], Bound]:
    def evaluate(setting: Setting) -> Bound:
        n = setting.numbers
        return bound(eps=n["eps"], num_frequencies=n["t"], num_points=n["n"])

    return evaluate
