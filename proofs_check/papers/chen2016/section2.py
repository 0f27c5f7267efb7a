"""chen2016, Section 2: unbiased features, the additive error of one pair, and the relative error of a far pair.

One pair of points has a law that is computed exactly (`cosines.pair_cdf`), so statements about a pair are decided
without sampling, and by tilted sampling where the probability is tiny. `docs/theory/chen2016.md` derives every
correction.
"""

import dataclasses
from functools import partial
from itertools import product
from math import ceil, exp, pi, sqrt
from typing import Any

import numpy as np
from numpy import ndarray
from scipy import stats

from jaxkern.bounds import Bound, fourier
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
from proofs_check.controls import changed, gamma_for_lengthscale
from proofs_check.papers.chen2016 import cosines
from proofs_check.papers.chen2016.cosines import log_outside, paired_mean
from proofs_check.papers.chen2016.setup import (
    Inputs,
    Settings,
    Sides,
    all_at_most_one,
    exceeds_in_floats,
    pair_setting,
    pair_settings,
    relative_tail,
    squared_distance,
    strongest,
    times,
)
from proofs_check.papers.chen2016.trials import inner_product
from proofs_check.papers.shared import LOG2, Exceeds, Grids, check_of, exceeds, wrong


def lem2_1(inputs: Inputs) -> Check:
    return check_of(
        Identity,
        inputs.pairs,
        wrong("frequencies one per cent longer", "wrong factor", scale=1.01),
        wrong(
            "gamma for the lengthscale",
            "swapped constants",
            drawn=gamma_for_lengthscale,
        ),
        wrong("without 1/sqrt(t)", "missing normalisation", normalised=False),
        printed=paired_mean,
    )


def _slope_of_transform(r: float, power: int = 1) -> ndarray:
    """Return the errors of g' = -r g for the Fourier transform g of the normal density, and of its mass."""
    z = np.linspace(-14, 14, 2001)
    weights = np.exp(-(z**2) / 2) * (z[1] - z[0])
    g = weights @ np.cos(z * r)
    slope = -weights @ (z * np.sin(z * r))
    mass = np.sum(weights) / sqrt(2 * pi)
    return np.array([slope / (-(r**power) * g) - 1, mass - 1])


def lem2_1_proof(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["printed"],
        wrong("r squared", "wrong power", power=2),
        printed=_slope_of_transform,
    )


def _cosine_variance(setting: Setting) -> float:
    """Return the variance of the estimate, exactly: cos<w, x - y> has (1 + K^4) / 2 - K^2."""
    return (1 - setting.numbers["K"] ** 2) ** 2 / 2 / setting.shapes["rows"]


def _farther(data: Any) -> Any:
    return {**data, "pair": 1.01 * data["pair"]}


def _with_gamma(data: Any) -> Any:
    return {**data, "kernel": gamma_for_lengthscale(data["kernel"])}


def cor2_1(inputs: Inputs) -> Check:
    statement = Expectation(
        inner_product,
        lambda s: s.numbers["K"],
        lambda s: 1 - s.numbers["K"],
        precision=0.02,
        moment=_cosine_variance,
    )
    # As many frequencies as show one per cent of the lengthscale.
    pairs = []
    for s in inputs.pairs:
        name = f"{s.name}, t=256"
        pairs.append(dataclasses.replace(s, name=name, shapes={"rows": 256}))
    # At the distance 1; at 0.3 it moves the mean by less than is allowed for rounding in float32.
    second = pairs[:2][-1:]
    farther = changed(second, "one per cent farther", data=_farther)
    gamma = changed(pairs[:1], "gamma", data=_with_gamma)
    return Check(
        printed=Form(statement, tuple(pairs)),
        controls=(
            Control(
                "points one per cent farther apart", statement, farther, "wrong factor"
            ),
            Control("gamma for the lengthscale", statement, gamma, "swapped constants"),
        ),
    )


def _value_tail(value: float, distance: float, num_frequencies: float) -> float:
    """Return log P(|Khat - K| > value) for a Gaussian pair: K - Khat = mu (Dhat^2 / D^2 - 1)."""
    error = value / cosines.mean(distance)
    return log_outside(distance, int(num_frequencies), 1 - error, 1 + error)


def _additive_tail(value: float, setting: Setting) -> float:
    """Return log P(|Khat - K| > value) for a Gaussian pair, or for signs, where there is no distance.

    Of signs, a cosine is 1 or -1 with equal chances, as there are kernels and points for which it is.
    """
    t = setting.numbers["num_frequencies"]
    if "distance" in setting.numbers:
        return _value_tail(value, setting.numbers["distance"], t)
    heads = ceil(t * (1 + value) / 2 - 1e-6)
    return LOG2 + float(stats.binom.logsf(heads - 1, t, 0.5))


def _signs(*logs: float) -> Settings:
    """Return settings in which the cosines are signs, with the t at which Hoeffding's bound is e^-log."""
    settings = []
    for eps, log in product((0.01, 0.1), logs):
        t = 2.0 * ceil((log + LOG2) / eps**2)
        name = f"signs, eps={eps:g}, delta=e^-{log:g}, t={t:g}"
        settings.append(Setting(name, numbers={"eps": eps, "num_frequencies": t}))
    return settings


PRINTED_VALUE = partial(fourier.kernel_value, as_printed=True)
BOTH_VALUES = strongest(
    fourier.kernel_value, partial(fourier.kernel_values, num_points=2)
)
"""Of two points the bound for n points says the same."""


def cor2_2(inputs: Inputs) -> Check:
    errors = (0.1, 0.3)
    distances = inputs.distances((3.0, 10.0), 0.5, 12.0)
    settings = pair_settings(fourier.kernel_value, distances, errors, inputs.deltas)
    few = pair_settings(fourier.kernel_value, (3.0,), errors, inputs.deltas)
    near = pair_settings(PRINTED_VALUE, distances, errors, inputs.deltas)
    return check_of(
        exceeds_in_floats(_additive_tail),
        (*_signs(3.0), *settings),
        wrong(
            "half of the frequencies",
            "wrong factor",
            times(3, BOTH_VALUES),
            settings=few,
        ),
        printed=PRINTED_VALUE,
        printed_settings=near,
        corrected=BOTH_VALUES,
    )


def cor2_2_rare(inputs: Inputs) -> Check:
    rare = [exp(-log) for log in (10, 20)]
    deep = _signs(600.0)
    return check_of(
        exceeds_in_floats(_additive_tail),
        (*_signs(*inputs.logs), *deep),
        wrong(
            "a hundredth more frequencies than there are",
            "wrong factor",
            times(1.01, BOTH_VALUES),
            settings=deep,
        ),
        printed=PRINTED_VALUE,
        printed_settings=pair_settings(PRINTED_VALUE, (3.0,), (0.1, 0.3), rare),
        corrected=BOTH_VALUES,
    )


def _within_limits(
    *,
    distance: float,
    eps: float,
    num_frequencies: float,
    nearest: float = 1.0,
    farthest: float = 1.0,
) -> Bound:
    """Return the bound for a pair at a distance that is known to be within these multiples of it."""
    return fourier.kernel_values_given(
        eps=eps,
        num_frequencies=num_frequencies,
        squared_distances=np.array([(nearest * distance) ** 2]),
        farthest=np.array([(farthest * distance) ** 2]),
        pairs=np.ones(1),
    )


def kernel_values_given(inputs: Inputs) -> Check:
    deltas = (1e-2, 1e-4, 1e-6) if inputs.full else (1e-2, 1e-4)
    distances = inputs.distances((0.3, 1.0, 2.5), 0.02, 12.0)
    middle = pair_settings(_within_limits, (1.0,), (0.03, 0.1), deltas)
    nearer = partial(_within_limits, nearest=0.5, farthest=0.5)
    return check_of(
        exceeds_in_floats(_value_tail),
        pair_settings(_within_limits, distances, (0.03, 0.1), deltas),
        wrong(
            "half of the frequencies",
            "wrong factor",
            times(2, _within_limits),
            settings=middle,
        ),
        wrong("taken for half as far", "wrong factor", nearer, settings=middle),
        corrected=partial(_within_limits, nearest=0.9, farthest=1.1),
    )


def _inverse_tail(value: float, distance: float, num_frequencies: float) -> float:
    """Return log P(|D / Dhat - 1| > value) of a pair."""
    t = int(num_frequencies)
    return log_outside(distance, t, (1 + value) ** -2, (1 - value) ** -2)


def lem2_2(inputs: Inputs) -> Check:
    bound = fourier.far_distance
    printed = partial(bound, as_printed=True)
    distances = inputs.distances((1.0, 2.0, 6.0), 1.0, 12.0)
    # At distance 1 the exponent is a twentieth of the true one.
    fewer = []
    for s in pair_settings(bound, (1.0,), (0.05, 0.1), (1e-8,)):
        name = f"{s.name} over 24"
        t = int(s.numbers["num_frequencies"]) // 24
        fewer.append(pair_setting(name, 1.0, s.numbers["eps"], t))
    near = pair_settings(printed, distances, (0.09,), inputs.deltas)
    settings = pair_settings(bound, distances, (0.1, 0.3), inputs.deltas)
    statement = exceeds(relative_tail)
    return Check(
        printed=Form(Exact(Exceeds(_inverse_tail, printed)), tuple(near)),
        corrected=Form(statement(bound), tuple(settings)),
        controls=(
            Control(
                "one of 24 frequencies",
                statement(times(24, bound)),
                tuple(fewer),
                "wrong factor",
            ),
        ),
    )


def _errors_of_inverse(eps: float, nearest: float = 1.0) -> Sides:
    """Return D / Dhat - 1 and 1 - D / Dhat over eps where K and Khat differ by eps / 4, the most allowed."""
    squared = squared_distance(np.linspace(nearest, 6, 100))
    signs = np.array([[1], [-1]])
    ratios = np.sqrt(squared / (squared + signs * eps / 2))
    errors = np.abs(ratios - 1).ravel()
    return all_at_most_one(errors / eps, "chen2016, Lemma 2.2")


def lem2_2_proof(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["printed"],
        wrong("distances from a third of sigma on", "hypothesis broken", nearest=1 / 3),
        printed=_errors_of_inverse,
    )
