"""chen2016, Section 2: unbiased features, the additive error of one pair, and the relative error of a far pair.

One pair of points has a law that is computed exactly (`laws.pair_cdf`), so statements about a pair are decided without
sampling, and by tilted sampling where the probability is tiny. `docs/theory/chen2016.md` derives every correction.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import Check, Control, Expectation, Form, Identity, Inequality, Rare, Setting
from proofs_check.engine import tilting
from proofs_check.papers.chen2016 import laws, places, trials
from proofs_check.papers.shared import COPIES, LOG2, tail_of_mean

MANY_COPIES = 384


def _lemma_2_1(scope: places.Scope) -> Check:
    def residual(**options: Any) -> Identity:
        return Identity(functools.partial(laws.paired_mean, **options))

    gamma = residual(drawn=controls.gamma_for_lengthscale)
    return Check(
        printed=Form(residual(), scope.pairs),
        controls=(
            Control("frequencies of twice the variance", residual(scale=math.sqrt(2)), scope.pairs, "wrong factor"),
            Control("gamma for the lengthscale", gamma, scope.pairs, "swapped constants"),
            Control("without 1/sqrt(t)", residual(normalised=False), scope.pairs, "missing normalisation"),
        ),
    )


def _lemma_2_1_proof() -> Check:
    def residual(power: int) -> Identity:
        def equations(setting: Setting) -> np.ndarray:
            r = setting.numbers["r"]
            z = np.linspace(-14, 14, 2001)
            weights = np.exp(-(z**2) / 2) * (z[1] - z[0])
            g, slope = weights @ np.cos(z * r), -weights @ (z * np.sin(z * r))
            return np.array([slope / (-(r**power) * g) - 1, np.sum(weights) / math.sqrt(2 * math.pi) - 1])

        return Identity(equations)

    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.3, 1.5, 3.0))
    return Check(
        printed=Form(residual(1), settings), controls=(Control("r squared", residual(2), settings, "wrong power"),)
    )


def _corollary_2_1(scope: places.Scope) -> Check:
    statement = Expectation(trials.inner_product, lambda s: s.numbers["K"], lambda s: 1.0)
    doubled = controls.changed(scope.pairs, "twice as far", data=lambda p: {**p, "pair": 2 * p["pair"]})
    swapped = controls.changed(
        scope.pairs, "gamma", data=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])}
    )
    return Check(
        printed=Form(statement, scope.pairs),
        controls=(
            Control("points twice as far apart", statement, doubled, "wrong factor"),
            Control("gamma for the lengthscale", statement, swapped, "swapped constants"),
        ),
    )


def _corollary_2_2(scope: places.Scope) -> Check:
    def bound(*, distance: float, as_printed: bool = False, **options: float) -> Bound:
        return fourier.kernel_value(**options, as_printed=as_printed)

    def interval(n: places.Numbers) -> tuple[float, float]:
        mu = -math.expm1(-(n["r"] ** 2) / 2)  # K - Khat = mu (Dhat^2 / D^2 - 1)
        return 1 - n["eps"] / mu, 1 + n["eps"] / mu

    printed, errors = functools.partial(bound, as_printed=True), (0.1, 0.3)
    distances = scope.distances((0.5, 1.0, 3.0, 10.0), 0.5, 12.0)
    return Check(
        printed=Form(
            places.pair_tail(printed, interval), places.pair_settings(printed, distances, errors, scope.deltas)
        ),
        corrected=Form(places.pair_tail(bound, interval), places.pair_settings(bound, distances, errors, scope.deltas)),
        controls=(
            Control(
                "Hoeffding's exponent for terms in an interval of length 1",
                places.pair_tail(bound, interval, times=4),
                places.pair_settings(bound, (3.0,), errors, scope.deltas),
                "wrong factor",
            ),
        ),
    )


def _kernel_values(
    distances: Sequence[float], logs: Sequence[float], rate: Callable[[float], float], copies: int = COPIES
) -> tuple[Setting, ...]:
    """Return settings for |Khat - K| >= eps, with the eps at which 2 exp(-t rate(r) eps^2) is e^-log."""
    settings = []
    for r in distances:
        law = tilting.FourierPair(r)
        for log in logs:
            eps = math.sqrt((log + LOG2) / (copies * rate(r)))
            name = f"r={r:g}, eps={eps:.3g}, delta=e^-{log:g}, t={copies}"
            numbers = {"r": r, "eps": eps, "t": float(copies)}
            below, above = 1 - eps / law.mu, 1 + eps / law.mu
            settings.append(tilting.sums(name, law, copies=copies, above=above, below=below, numbers=numbers))
    return tuple(settings)


def _log_sub_gaussian(rate: Callable[[float], float], hypotheses: Callable[..., Bound] | None = None) -> Rare:
    """Return the statement that |Khat - K| >= eps has probability at most 2 exp(-t rate(r) eps^2)."""

    def log_claimed(setting: Setting) -> float:
        eps, t = setting.numbers["eps"], setting.numbers["t"]
        if hypotheses is not None:
            places.valid(hypotheses(eps=eps, num_frequencies=t), setting)
        return LOG2 - t * eps**2 * rate(setting.numbers["r"])

    return tail_of_mean(log_claimed)


def _corollary_2_2_rare(scope: places.Scope) -> Check:
    corrected = _kernel_values((1.0, 3.0), [log for log in scope.logs if log <= 40], lambda r: 1 / 2)
    printed = functools.partial(fourier.kernel_value, as_printed=True)
    return Check(
        printed=Form(
            _log_sub_gaussian(lambda r: 1 / 8, printed),
            _kernel_values((1.0, 3.0), (10.0,), lambda r: 1 / 8, MANY_COPIES),
        ),
        corrected=Form(_log_sub_gaussian(lambda r: 1 / 2, fourier.kernel_value), corrected),
        controls=(
            Control(
                "Hoeffding's exponent for terms in an interval of length 1",
                _log_sub_gaussian(lambda r: 2.0, fourier.kernel_value),
                corrected[len(corrected) // 2 :],
                "wrong factor",
            ),
        ),
    )


def _kernel_value_near(scope: places.Scope) -> Check:
    def rate(r: float) -> float:
        return 1 / (-2 * math.expm1(-(r**2)))

    def own_variance(r: float) -> float:
        return 1 / math.expm1(-(r**2)) ** 2  # 1 / (2 Var cos(r g))

    return Check(
        corrected=Form(_log_sub_gaussian(rate), _kernel_values((0.3, 2.0), scope.logs, rate)),
        controls=(
            Control(
                "the variance of the cosine for the bound of the bracket",
                _log_sub_gaussian(own_variance),
                _kernel_values((0.3,), scope.logs, own_variance),
                "wrong factor",
            ),
        ),
    )


def _lemma_2_2(scope: places.Scope) -> Check:
    def inverse(n: places.Numbers) -> tuple[float, float]:
        return (1 + n["eps"]) ** -2, (1 - n["eps"]) ** -2

    bound = fourier.far_distance
    printed = functools.partial(bound, as_printed=True)
    distances = scope.distances((1.0, 2.0, 6.0), 1.0, 12.0)
    fewer = tuple(
        Setting(f"{s.name} over 40", numbers={**s.numbers, "t": float(s.numbers["t"] // 40)})
        for s in places.pair_settings(bound, (1.0,), (0.05, 0.1), scope.deltas)
    )
    control = places.pair_tail(bound, places.relative, times=40)
    return Check(
        printed=Form(
            places.pair_tail(printed, inverse), places.pair_settings(printed, distances, (0.09,), scope.deltas)
        ),
        corrected=Form(
            places.pair_tail(bound, places.relative), places.pair_settings(bound, distances, (0.1, 0.3), scope.deltas)
        ),
        controls=(Control("a fortieth of the frequencies", control, fewer, "wrong factor"),),
    )


def _lemma_2_2_proof() -> Check:
    def holds(nearest: float) -> Inequality:
        def worst(setting: Setting) -> list[Any]:
            """Return D / Dhat - 1 and 1 - D / Dhat over eps where K and Khat differ by eps / 4, the most allowed."""
            eps = setting.numbers["eps"]
            squared = -2 * np.expm1(-(np.linspace(nearest, 6, 100) ** 2) / 2)
            ratios = np.sqrt([squared / (squared + sign * eps / 2) for sign in (1, -1)])
            return places.all_at_most_one(np.abs(ratios - 1).ravel() / eps, "chen2016, Lemma 2.2")

        return Inequality(worst)

    settings = tuple(Setting(f"eps={eps:g}", numbers={"eps": eps}) for eps in (0.001, 0.05, 0.0999))
    return Check(
        printed=Form(holds(1.0), settings),
        controls=(Control("distances from a third of sigma on", holds(1 / 3), settings, "hypothesis broken"),),
    )
