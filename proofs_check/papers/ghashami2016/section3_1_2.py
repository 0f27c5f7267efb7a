"""ghashami2016, Section 3.1.2: the error of random features in one direction; Theorem 3.1, also at tiny delta."""

import math
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import stats

from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Rare,
    Setting,
    Tail,
)
from proofs_check.engine import tilting
from proofs_check.papers.ghashami2016 import trials
from proofs_check.papers.ghashami2016.clouds import Settings
from proofs_check.papers.ghashami2016.setup import (
    PAIRED,
    Inputs,
    OfSetting,
    at_failure,
    badly_scaled,
)
from proofs_check.papers.shared import (
    COPIES,
    LOG2,
    Exceeds,
    bound_of,
    claimed,
    tail_of_mean,
)


def chernoff_hoeffding(*, r: Any, step: Any, alpha: Any, factor: float = 2.0) -> Bound:
    """Return 2 exp(-2 alpha^2 / (r Delta^2)) for a sum of r terms in [0, Delta]."""
    failure = 2 * np.exp(-factor * alpha**2 / (r * step**2))
    source = "ghashami2016, Section 3.1.2 (Hoeffding)"
    return Bound(alpha, 1 - failure, alpha > 0, source, exponent=-np.log(failure))


def coins_above(r: float, step: float, alpha: float) -> int:
    """Return the largest number of r coins that does not exceed the mean r / 2 by alpha / step; 1e-9 is rounding."""
    return math.floor(r / 2 + alpha / step + 1e-9)


def _coins_tail(alpha: float, r: float, step: float) -> float:
    """Return log P(|M - E M| > alpha) for M = step Bin(r, 1/2)."""
    return LOG2 + float(stats.binom(r, 0.5).logsf(coins_above(r, step, alpha)))


def _coins(r: int, step: float, alpha: float) -> Setting:
    name = f"{r} coins of 0 or {step:.3g}, alpha={alpha:g}"
    return Setting(name, numbers={"r": r, "step": step, "alpha": alpha})


def hoeffding() -> Check:
    small = (_coins(100, 0.02, 0.2), _coins(100, 0.02, 0.4))
    # As in Theorem 3.1: r = m, Delta = 2 n / m and alpha = eps n.
    used = (
        _coins(265, 200 / 265, 10.0),
        _coins(1060, 200 / 1060, 10.0),
        _coins(400, 0.5, 60.0),
    )
    exceeds = Exact(Exceeds(_coins_tail, chernoff_hoeffding))
    doubled = Exact(Exceeds(_coins_tail, partial(chernoff_hoeffding, factor=4.0)))
    return Check(
        printed=Form(exceeds, small),
        corrected=Form(exceeds, small + used),
        controls=(
            Control("4 for 2 in the exponent", doubled, used[2:], "wrong factor"),
        ),
    )


def _deviation(key: Array, population: Any, numbers: Any, *, rows: int) -> Array:
    """| |Phi' x|^2 - |Z' x|^2 | / n for n copies of a point and x = (1, ..., 1) / sqrt(n), by the library.

    That is |1 - |z|^2| for the features z of the point.
    """
    energy = jnp.sum(trials.squares_at_origin(key, rows))
    return jnp.abs(1 - numbers["scale"] * energy)


def _order(*, delta: float, m: float) -> Bound:
    """Return the root of log(1 / delta) / m."""
    value = math.sqrt(math.log(1 / delta) / m)
    return Bound(value, 1 - delta, delta <= 0.5, "ghashami2016, Theorem 3.1")


def thm3_1(inputs: Inputs) -> Check:
    bound = bound_of(bounds.quadratic_form_shifted, num_features="m")
    settings = []
    for eps in (0.1, 0.2) if inputs.full else (0.2,):
        for delta in inputs.deltas:
            numbers = {"eps": eps, "delta": delta, "scale": 1}
            least = at_failure(bound, Setting("", None, numbers), "m", math.log(delta))
            m = math.ceil(least)
            name = f"copies of a point, eps={eps:g}, delta={delta:g}, m={m}"
            settings.append(Setting(name, None, {**numbers, "m": m}, {"rows": m}))
    tail = Tail(_deviation, bound)
    calibrated = Calibrated(_deviation, bound_of(_order), 1.06, 1.56)
    return Check(
        printed=Form(calibrated, tuple(settings)),
        corrected=Form(tail, tuple(settings)),
        controls=badly_scaled(tail, settings[:1], settings[0].numbers["m"]),
    )


def quadratic_form_paired(inputs: Inputs) -> Check:
    bound = bound_of(bounds.quadratic_form_paired, num_frequencies="size")
    tail = Tail(trials.form_error, bound)
    settings = inputs.features(PAIRED, bound)
    return Check(
        corrected=Form(tail, settings),
        controls=badly_scaled(tail, settings[:1], PAIRED["size"]),
    )


def _form_of_copies(*, eps: float, m: float, rate: float = 1.0) -> Bound:
    """Return eps with the failure probability 2 exp(-rate eps^2 m), for copies of a point."""
    exponent = rate * eps**2 * m - LOG2
    source = "jaxkern, after Theorem 3.1 of ghashami2016"
    return Bound(eps, 1 - math.exp(-exponent), eps > 0, source, exponent)


def _rare(bound: OfSetting) -> Rare:
    """Return the statement that a deviation of eps is no more probable than a bound claims."""
    return tail_of_mean(lambda setting: claimed(bound(setting), setting))


def _wrong_rate(rate: float, name: str, settings: Settings) -> Control:
    bound = bound_of(partial(_form_of_copies, rate=rate))
    return Control(name, _rare(bound), settings, "wrong factor")


def _around(name: str, law: Any, centre: float, eps: float) -> Setting:
    """Return the setting in which a mean of copies of a law is off its centre by eps or more."""
    return tilting.sums(
        name,
        law,
        copies=COPIES,
        above=centre + eps,
        below=centre - eps,
        numbers={"eps": eps, "m": float(COPIES)},
    )


def _deviations(inputs: Inputs, bound: OfSetting) -> Settings:
    """Return settings for |mean cos U_i| >= eps, at which the bound fails with each of the tiny probabilities.

    It is the deviation of a quadratic form for copies of a point.
    """
    settings = []
    for log in inputs.logs:
        eps = at_failure(bound, Setting("", numbers={"m": COPIES}), "eps", -log)
        name = f"copies of a point, eps={eps:.3g}, delta=e^-{log:g}, m={COPIES}"
        settings.append(_around(name, tilting.UniformCosine(), 0.0, eps))
    return tuple(settings)


def thm3_1_rare(inputs: Inputs) -> Check:
    formula = bounds.quadratic_form_shifted
    printed = bound_of(formula, num_features="m", as_printed=True)
    corrected = bound_of(formula, num_features="m")
    settings = _deviations(inputs, corrected)
    return Check(
        printed=Form(_rare(printed), _deviations(inputs, printed)),
        corrected=Form(_rare(corrected), settings),
        controls=(_wrong_rate(1.5, "1.5 for 0.823 in the exponent", settings),),
    )


def quadratic_form_shifted() -> Check:
    settings = []
    for p, eps in ((0.75, 0.25), (0.7, 0.5), (0.5335, 0.82)):
        name = f"two points, |s|^2 = n with probability {p:g}, eps={eps:g}, m={COPIES}"
        settings.append(_around(name, tilting.SwitchedCosine(p), p, eps))
    bound = bound_of(bounds.quadratic_form_shifted, num_features="m")
    return Check(
        corrected=Form(_rare(bound), tuple(settings)),
        controls=(_wrong_rate(8 / 9, "8/9 for .823", tuple(settings[-1:])),),
    )


def quadratic_form_copies(inputs: Inputs) -> Check:
    bound = bound_of(_form_of_copies)
    settings = _deviations(inputs, bound)
    smaller = [s for s in settings if s.numbers["eps"] < 0.6]
    name = "one and a half times the exponent"
    return Check(
        corrected=Form(_rare(bound), settings),
        controls=(_wrong_rate(1.5, name, (smaller[-1],)),),
    )
