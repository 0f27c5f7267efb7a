"""amini2021: Theorem 1, its special cases and its sharper forms, by sampling (Section 2.1)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from jaxkern import kernels, problems
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Exact, Form, Setting, Tail
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.places import Scope

PAPER = "amini2021"

Formula = Callable[..., Bound]


def _at(
    models: Sequence[t.Model], deltas: Sequence[float], *, operator: bool = False, square: float = 2.0
) -> tuple[Setting, ...]:
    """Return the models, in a norm, with t such that exp(-t^2 / square) = delta."""
    return tuple(
        model.setting(f"delta={delta:g}", {"t": math.sqrt(square * math.log(1 / delta)), "operator": float(operator)})
        for model in models
        for delta in deltas
    )


def _bound(formula: Formula, *words: str, **options: float) -> Callable[[Setting], Bound]:
    """Return a bound divided by n, with the named numbers of the setting besides L, omega, scale, n and t."""

    def right(setting: Setting) -> Bound:
        numbers = setting.numbers
        given = {name: numbers[name] for name in ("lipschitz", "omega", "scale", "t", *words)}
        return t.per_point(formula(**given, num_points=numbers["n"], **options), setting)

    return right


def _no_deviation(bound: Callable[[Setting], Bound], formula: Formula, *words: str) -> Callable[[Setting], Bound]:
    """Return a bound without its term in t, with its probability."""

    def right(setting: Setting) -> Bound:
        still = Setting(setting.name, numbers={**setting.numbers, "t": 0.0})
        return Bound(_bound(formula, *words)(still).value, bound(setting).probability, True, "without t")

    return right


# ---------------------------------------------------------------------------------------------------------- Theorem 1


def _theorem_1(scope: Scope) -> Check:
    def gap(c: float, e: float) -> Setting:
        numbers = {"lipschitz": 1.0, "omega": 4 * e, "scale": 1.0, "n": 32.0, "c": c, "e": e}
        numbers["t"] = math.sqrt(math.log(20) / c)
        return Setting(f"W within {e:g} of -1 or 1, c={c:g}", None, numbers, {"n": 32})

    def rooted(setting: Setting) -> Bound:
        """The mean of the order of sqrt(n) instead of n."""
        right, n = bound(setting), setting.numbers["n"]
        lost = 2 * setting.numbers["omega"] * (1 - n**-0.5) * math.sqrt(2)
        return Bound(right.value - lost, right.probability, right.valid, right.source)

    bound = _bound(concentration.lipschitz_kernel, as_printed=True)
    models = (t.sums("x + y, Gaussian"), t.sums("x + y, ramp", problems.RampLaw()))
    return Check(
        printed=Form(
            Tail(t.gap_error, _bound(concentration.lipschitz_kernel, "c", as_printed=True)),
            (gap(0.5, 0.01), gap(0.01, 0.003), gap(1e-4, 1e-4)),
        ),
        corrected=Form(Tail(t.gram_error, bound), _at(models, scope.deltas, operator=True)),
        controls=(
            Control(
                "sqrt(n) for n",
                Tail(t.gram_error, rooted),
                _at(models[:1], scope.deltas[:1], operator=True),
                kind="wrong power",
            ),
        ),
    )


def _class_lc(scope: Scope) -> Check:
    models = (
        t.sums("Gaussian"),
        t.sums("class (a), softplus", problems.SoftplusImageLaw()),
        t.sums("class (b), uniform", problems.RampLaw(0.0)),
        t.sums("class (b), ramp", problems.RampLaw()),
        t.sums("class (c), skewed", problems.SkewedLaw()),
    )
    formula = concentration.lipschitz_kernel
    bound = _bound(formula, "mean_scale")
    return Check(
        corrected=Form(Tail(t.gram_error, bound), _at(models, scope.deltas)),
        controls=(
            Control(
                "without the term in t",
                Tail(t.gram_error, _no_deviation(bound, formula, "mean_scale")),
                _at(models[:1], scope.deltas[:1]),
                kind="term left out",
            ),
            Control(
                "one draw of the noise for all points",
                Tail(t.gram_error, bound),
                tuple(Setting(s.name, s.population, {**s.numbers, "reused": 1.0}) for s in _at(models[:1], (0.01,))),
                kind="reused key",
            ),
        ),
    )


def _proposition_1() -> Check:
    def probability(factor: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """X is -2, 0 or 2 with probabilities 1/4, 1/2, 1/4 and s = L = 1: K - E K = h h' - I / 2."""
            n = setting.shapes["n"]
            lower = concentration.lower_limit(lipschitz=1.0, scale=1.0, num_points=n)
            count = np.arange(n + 1)
            below = stats.binom.pmf(count, n, 0.5) @ (np.maximum(count - 0.5, 0.5) <= factor * lower.value)
            return exact.log_of(float(below)), math.log(1 - lower.probability)

        return Exact(check)

    settings = tuple(Setting(f"n={n}", shapes={"n": n}) for n in (8, 16, 32, 64))
    return Check(
        printed=Form(probability(1.0), settings),
        controls=(Control("n / 2 for n / 8", probability(4.0), settings, kind="wrong factor"),),
    )


# ---------------------------------------------------------------------------------------------------- special cases


def _gaussian(as_printed: bool, *, power: float = 0.0, square: bool = False) -> Callable[[Setting], Bound]:
    """Return the bound of (10) on |K - E K| / n times d^power, in units of the lengthscale, which L tells.

    With `square` the square of the standard deviation of a coordinate stands for it.
    """

    def right(setting: Setting) -> Bound:
        n, d = setting.numbers, setting.population["means"].shape[1]
        deviation = n["scale"] * n["lipschitz"] * math.exp(0.5)
        found = concentration.gaussian_kernel(
            noise=math.sqrt(d) * (deviation**2 if square else deviation),
            lengthscale=1.0,
            dim=d,
            num_points=n["n"],
            t=n["t"],
            as_printed=as_printed,
        )
        return exact.rescaled(found, d**power)

    return right


def _eq10(scope: Scope) -> Check:
    settings = _at(scope.models, scope.deltas, operator=True, square=1.0)
    return Check(
        printed=Form(Tail(t.gram_error, _gaussian(True)), settings),
        corrected=Form(Tail(t.gram_error, _gaussian(False)), _at(scope.models, scope.deltas, square=1.0)),
        controls=(
            Control(
                "1 / d for 1 / sqrt(d)",
                Tail(t.gram_error, _gaussian(True, power=-0.5)),
                settings[:1],
                kind="wrong power",
            ),
            Control(
                "the variance of a coordinate for its root",
                Tail(t.gram_error, _gaussian(True, square=True)),
                settings[:1],
                kind="swapped constants",
            ),
        ),
    )


def _eq12(scope: Scope) -> Check:
    n = d = t.POINTS
    decay = 1 / np.arange(1.0, d + 1)
    anisotropic = np.tile(decay / d, (n, 1))
    models = (
        t.sums("x + y, |Sigma|=1", variances=decay / d),
        t.Model("distances, |Sigma|=1", kernels.Distance(), 1.0, t.two_centres(n, d, 1.0), anisotropic),
    )

    def bound(as_printed: bool, op_norm: float = 1.0) -> Callable[[Setting], Bound]:
        return lambda setting: concentration.anisotropic_noise(
            lipschitz=1.0, op_norm=op_norm, dim=d, num_points=n, t=setting.numbers["t"], as_printed=as_printed
        )

    settings = _at(models, scope.deltas, operator=True, square=1.0)
    return Check(
        printed=Form(Tail(t.gram_error, bound(True)), settings),
        corrected=Form(Tail(t.gram_error, bound(False)), settings),
        controls=(
            Control(
                "tr Sigma / d for |Sigma|",
                Tail(t.gram_error, bound(False, float(decay.mean()))),
                settings[:1],
                kind="swapped constants",
            ),
        ),
    )


def _distance_kernel(scope: Scope) -> Check:
    n = t.POINTS
    close_and_far = np.random.default_rng(21).standard_normal((n, n)) * (np.arange(n) < 3)
    close_and_far *= np.repeat([0.0, 0.3, 3.0], n // 3)[:, None]
    levels = np.repeat([0.2, 0.5, 1.0], n // 3)
    two = t.distances("distances, two far centres", t.two_centres(n, n, 50.0), 1.0, 3)  # the mean is nearly attained
    models = (t.distances("distances, three levels of noise", close_and_far, levels, 3), *scope.models, two)
    bound = _bound(concentration.distance_kernel, "mean_scale")
    return Check(
        corrected=Form(Tail(t.gram_error, bound), _at(models, scope.deltas)),
        controls=(
            Control(
                "half of it",
                Tail(t.gram_error, lambda setting: exact.rescaled(bound(setting), 0.5)),
                _at((two,), scope.deltas[:1]),
                kind="wrong factor",
            ),
        ),
    )


def _known_variance(scope: Scope) -> Check:
    @functools.cache
    def total(model: t.Model) -> float:
        means, d = model.means, model.means.shape[1]
        words = {"noise_variance": 2 * float(model.variances[0, 0]), "lengthscale": float(model.kernel.lengthscale)}
        squared = np.sum((means[:, None] - means) ** 2, axis=2)[~np.eye(len(means), dtype=bool)]
        distinct, counts = np.unique(squared, return_counts=True)
        values = [
            concentration.gaussian_pair_variance(squared_distance=float(x), dim=d, **words).value for x in distinct
        ]
        return float(counts @ np.array(values))

    def places(deltas: Sequence[float]) -> tuple[Setting, ...]:
        return tuple(
            Setting(s.name, s.population, {**s.numbers, "total_variance": total(model)}, s.shapes)
            for model in scope.models
            for s in _at((model,), deltas)
        )

    formula = concentration.distance_kernel_from_variance
    bound = _bound(formula, "total_variance")
    return Check(
        corrected=Form(Tail(t.gram_error, bound), places(scope.deltas)),
        controls=(
            Control(
                "without the term in t",
                Tail(t.gram_error, _no_deviation(bound, formula, "total_variance")),
                places(scope.deltas[:1]),
                kind="term left out",
            ),
        ),
    )


# ---------------------------------------------------------------------------------------------- Proposition 3


def _proposition_3(scope: Scope) -> Check:
    n = t.POINTS
    mean = math.sqrt(n) * exact.mean_chi(n) + math.sqrt(2 * n / math.pi)  # |w 1' + 1 w'| = sqrt(n) |w| + |1'w|

    def above_mean(factor: float) -> Callable[[Setting], Bound]:
        """Return a bound of V / n: of E V, which is known, and of a multiple of the deviation."""

        def right(setting: Setting) -> Bound:
            found = _bound(concentration.deviation)(setting)
            return Bound(mean / n + factor * found.value, found.probability, found.valid, found.source)

        return right

    settings = _at((t.sums("x + y, Gaussian"),), scope.deltas, operator=True)
    return Check(
        printed=Form(Tail(t.gram_error, above_mean(1.0)), settings),
        controls=(
            Control("1 / sqrt(n) for sqrt(n)", Tail(t.gram_error, above_mean(1 / n)), settings[:1], kind="wrong power"),
        ),
    )
