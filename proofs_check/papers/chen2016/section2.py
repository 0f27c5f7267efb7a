"""chen2016, Section 2: unbiased features, the additive error of one pair, and the relative error of a far pair.

One pair of points has a law that is computed exactly (`laws.pair_cdf`), so statements about a pair are decided without
sampling, and by tilted sampling where the probability is tiny. `docs/theory/chen2016.md` derives every correction.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Setting,
)
from proofs_check.papers.chen2016 import laws, setup, trials
from proofs_check.papers.shared import LOG2, claimed, grid, parametrized


def _lemma_2_1(inputs: setup.Inputs) -> Check:
    residual = parametrized(Identity)(laws.paired_mean)
    gamma = residual(drawn=controls.gamma_for_lengthscale)
    return Check(
        printed=Form(residual(), inputs.pairs),
        controls=(
            Control(
                "frequencies one per cent longer",
                residual(scale=1.01),
                inputs.pairs,
                "wrong factor",
            ),
            Control(
                "gamma for the lengthscale", gamma, inputs.pairs, "swapped constants"
            ),
            Control(
                "without 1/sqrt(t)",
                residual(normalised=False),
                inputs.pairs,
                "missing normalisation",
            ),
        ),
    )


def _lemma_2_1_proof() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, power: int) -> np.ndarray:
        r = setting.numbers["r"]
        z = np.linspace(-14, 14, 2001)
        weights = np.exp(-(z**2) / 2) * (z[1] - z[0])
        g, slope = weights @ np.cos(z * r), -weights @ (z * np.sin(z * r))
        return np.array(
            [
                slope / (-(r**power) * g) - 1,
                np.sum(weights) / math.sqrt(2 * math.pi) - 1,
            ]
        )

    settings = grid("r={r:g}", r=(0.3, 1.5, 3.0))
    return Check(
        printed=Form(residual(1), settings),
        controls=(Control("r squared", residual(2), settings, "wrong power"),),
    )


def _corollary_2_1(inputs: setup.Inputs) -> Check:
    def moment(setting: Setting) -> float:
        """Exact: cos<w, x - y> has the variance (1 + K^4) / 2 - K^2."""
        return (1 - setting.numbers["K"] ** 2) ** 2 / 2 / setting.shapes["rows"]

    statement = Expectation(
        trials.inner_product,
        lambda s: s.numbers["K"],
        lambda s: 1 - s.numbers["K"],
        precision=0.02,
        moment=moment,
    )
    # As many frequencies as show one per cent of the lengthscale.
    pairs = tuple(
        dataclasses.replace(s, name=f"{s.name}, t=256", shapes={"rows": 256})
        for s in inputs.pairs
    )
    # At the distance 1; at 0.3 it moves the mean by less than is allowed for rounding in float32.
    farther = controls.changed(
        pairs[:2][-1:],
        "one per cent farther",
        data=lambda p: {**p, "pair": 1.01 * p["pair"]},
    )
    swapped = controls.changed(
        pairs[:1],
        "gamma",
        data=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])},
    )
    return Check(
        printed=Form(statement, pairs),
        controls=(
            Control(
                "points one per cent farther apart", statement, farther, "wrong factor"
            ),
            Control(
                "gamma for the lengthscale", statement, swapped, "swapped constants"
            ),
        ),
    )


def _log_outside(n: setup.Numbers) -> float:
    """Return the log of the chance of |Khat - K| > eps for a Gaussian pair at distance r."""
    mu = -math.expm1(-(n["r"] ** 2) / 2)  # K - Khat = mu (Dhat^2 / D^2 - 1)
    return laws.log_outside(n["r"], int(n["t"]), 1 - n["eps"] / mu, 1 + n["eps"] / mu)


@parametrized(Exact)
def _additive(
    setting: Setting, bounds: Callable[..., list[Bound]], times: float = 1.0
) -> tuple[float, float]:
    """Return the statement that |Khat - K| > eps is no likelier than the bounds of `times` t frequencies say.

    Of a Gaussian pair at distance r; without r, of a kernel and points for which a cosine is 1 or -1, with equal
    chances.
    """
    n, t = setting.numbers, setting.numbers["t"]
    log_claimed = setup.log_failure(
        setting, bounds(eps=n["eps"], num_frequencies=times * t)
    )
    if "r" not in n:
        return LOG2 + float(
            stats.binom.logsf(math.ceil(t * (1 + n["eps"]) / 2 - 1e-6) - 1, t, 0.5)
        ), log_claimed
    return _log_outside(n), log_claimed


def _corrected(**options: float) -> list[Bound]:
    return [
        fourier.kernel_value(**options),
        fourier.kernel_values(num_points=2, **options),
    ]


def _signs(*logs: float) -> tuple[Setting, ...]:
    """Return settings in which the cosines are signs, with the t at which Hoeffding's bound is e^-log."""
    settings = []
    for eps, log in itertools.product((0.01, 0.1), logs):
        t = 2.0 * math.ceil((log + LOG2) / eps**2)
        settings.append(
            Setting(
                f"signs, eps={eps:g}, delta=e^-{log:g}, t={t:g}",
                numbers={"eps": eps, "t": t},
            )
        )
    return tuple(settings)


def _gaussian(
    bound: Callable[..., Any], distances: Sequence[float], deltas: Sequence[float]
) -> tuple[Setting, ...]:
    def at(*, distance: float, **options: float) -> Bound:
        return bound(**options)

    return setup.pair_settings(at, distances, (0.1, 0.3), deltas)


def _corollary_2_2(inputs: setup.Inputs) -> Check:
    printed = functools.partial(fourier.kernel_value, as_printed=True)
    distances = inputs.distances((3.0, 10.0), 0.5, 12.0)
    settings = _gaussian(fourier.kernel_value, distances, inputs.deltas)
    half = _gaussian(fourier.kernel_value, (3.0,), inputs.deltas)
    return Check(
        printed=Form(
            _additive(lambda **n: [printed(**n)]),
            _gaussian(printed, distances, inputs.deltas),
        ),
        corrected=Form(_additive(_corrected), (*_signs(3.0), *settings)),
        controls=(
            Control(
                "half of the frequencies",
                _additive(_corrected, times=3),
                half,
                "wrong factor",
            ),
        ),
    )


def _corollary_2_2_rare(inputs: setup.Inputs) -> Check:
    printed = functools.partial(fourier.kernel_value, as_printed=True)
    tiny = _gaussian(printed, (3.0,), [math.exp(-log) for log in (10, 20)])
    deep = _signs(600.0)
    more = _additive(_corrected, times=1.01)
    return Check(
        printed=Form(_additive(lambda **n: [printed(**n)]), tiny),
        corrected=Form(_additive(_corrected), (*_signs(*inputs.logs), *deep)),
        controls=(
            Control(
                "a hundredth more frequencies than there are",
                more,
                deep,
                "wrong factor",
            ),
        ),
    )


def _of_distance(
    *, distance: float, nearest: float = 1.0, farthest: float = 1.0, **options: float
) -> Bound:
    """Return the bound for a pair at a distance that is known to be within these multiples of it."""
    within = ([(factor * distance) ** 2] for factor in (nearest, farthest))
    return fourier.kernel_values_given(
        **dict(zip(("squared_distances", "farthest"), within, strict=True)),
        pairs=[1.0],
        **options,
    )


def _kernel_values_given(inputs: setup.Inputs) -> Check:
    @parametrized(Exact)
    def statement(
        setting: Setting, times: float = 1.0, **limits: float
    ) -> tuple[float, float]:
        n = setting.numbers
        right = _of_distance(
            distance=n["r"], eps=n["eps"], num_frequencies=times * n["t"], **limits
        )
        return _log_outside(n), claimed(right, setting)

    distances, middle = inputs.distances((0.3, 1.0, 2.5), 0.02, 12.0), (1.0,)
    deltas = (1e-2, 1e-4, 1e-6) if inputs.full else (1e-2, 1e-4)
    settings, few = (
        setup.pair_settings(_of_distance, r, (0.03, 0.1), deltas)
        for r in (distances, middle)
    )
    return Check(
        corrected=Form(statement(nearest=0.9, farthest=1.1), settings),
        controls=(
            Control(
                "half of the frequencies", statement(times=2.0), few, "wrong factor"
            ),
            Control(
                "taken for half as far",
                statement(nearest=0.5, farthest=0.5),
                few,
                "wrong factor",
            ),
        ),
    )


def _lemma_2_2(inputs: setup.Inputs) -> Check:
    def inverse(n: setup.Numbers) -> tuple[float, float]:
        return (1 + n["eps"]) ** -2, (1 - n["eps"]) ** -2

    bound = fourier.far_distance
    printed = functools.partial(bound, as_printed=True)
    distances = inputs.distances((1.0, 2.0, 6.0), 1.0, 12.0)
    # At distance 1 the exponent is a twentieth of the true one.
    whole = setup.pair_settings(bound, (1.0,), (0.05, 0.1), (1e-8,))
    fewer = tuple(
        Setting(
            f"{s.name} over 24", None, {**s.numbers, "t": float(s.numbers["t"] // 24)}
        )
        for s in whole
    )
    control = setup.pair_tail(bound, setup.relative, times=24)
    few = setup.pair_settings(printed, distances, (0.09,), inputs.deltas)
    settings = setup.pair_settings(bound, distances, (0.1, 0.3), inputs.deltas)
    return Check(
        printed=Form(setup.pair_tail(printed, inverse), few),
        corrected=Form(setup.pair_tail(bound, setup.relative), settings),
        controls=(Control("one of 24 frequencies", control, fewer, "wrong factor"),),
    )


def _lemma_2_2_proof() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, nearest: float) -> list[Any]:
        """Return D / Dhat - 1 and 1 - D / Dhat over eps where K and Khat differ by eps / 4, the most allowed."""
        eps = setting.numbers["eps"]
        squared = -2 * np.expm1(-(np.linspace(nearest, 6, 100) ** 2) / 2)
        ratios = np.sqrt([squared / (squared + sign * eps / 2) for sign in (1, -1)])
        return setup.all_at_most_one(
            np.abs(ratios - 1).ravel() / eps, "chen2016, Lemma 2.2"
        )

    settings = grid("eps={eps:g}", eps=(0.001, 0.05, 0.0999))
    return Check(
        printed=Form(holds(1.0), settings),
        controls=(
            Control(
                "distances from a third of sigma on",
                holds(1 / 3),
                settings,
                "hypothesis broken",
            ),
        ),
    )
