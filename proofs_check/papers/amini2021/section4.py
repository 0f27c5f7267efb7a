"""amini2021, Section 4: concentration, and what the proofs for Lipschitz kernels rest on; Theorem A."""

import dataclasses
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Inequality,
    Rate,
    Setting,
)
from proofs_check.papers.amini2021 import trials
from proofs_check.papers.amini2021.expectations import mean_chi
from proofs_check.papers.amini2021.setup import (
    GRAM_TAIL,
    KAPPA,
    PROVED,
    Inputs,
    Pairs,
    around,
    form_shape,
    inner_products,
    log_of,
    per_point,
    rescaled,
    with_form,
)
from proofs_check.papers.amini2021.ten_points import (
    ATOMS,
    MASSES,
    bound_under_33,
    sum_errors,
)
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    Grids,
    check_of,
    exceeds,
    real,
    rng_of,
    share_of,
    wrong,
)


def gaussian_tail(k: int, t: float, kappa: float = 0.5) -> tuple[float, float]:
    """A coordinate, for k = 0, or the norm in R^k exceeds its mean by t."""
    tail = stats.chi.logsf(mean_chi(k) + t, k) if k else stats.norm.logsf(t)
    return float(tail), -kappa * t**2


def thm4(grids: Grids) -> Check:
    return check_of(
        Exact,
        grids["coordinate"] + grids["norm"],
        wrong("the exponent t^2", "wrong factor", kappa=1.0),
        printed=gaussian_tail,
    )


def truncated_tail(
    low: float, high: float, t: float, kappa: float = 0.5
) -> tuple[float, float]:
    """A normal variable between low and high exceeds its mean by t."""
    law = stats.truncnorm(low, high)
    return float(law.logsf(law.mean() + t)), -kappa * t**2


def thm5(grids: Grids) -> Check:
    smaller = wrong("the exponent t^2", "wrong factor", kappa=1.0)
    return check_of(Exact, grids["corrected"], smaller, corrected=truncated_tail)


Moves = Callable[[jax.Array], list[tuple[np.ndarray, np.ndarray]]]
"""What makes points X and others X' that they move to."""


def displacements(
    key: jax.Array, data: Any, formula: Callable[..., Bound], factor: float = 1.0
) -> Pairs:
    """|K(X) - K(X')|_F against a bound, divided by sqrt(n) |X - X'|_F."""
    pairs = []
    for X, Y in data["pairs"](key):
        displacement = float(np.linalg.norm(X - Y))
        unit = math.sqrt(len(X)) * displacement
        change = gram(data["kernel"], real(X)) - gram(data["kernel"], real(Y))
        left = float(np.linalg.norm(np.asarray(change, np.float64))) / unit
        right = formula(
            lipschitz=data["lipschitz"], num_points=len(X), displacement=displacement
        )
        pairs.append((left, rescaled(right, factor / unit)))
    return pairs


def _clouds(data: Population | None) -> Moves:
    rows = None if data is None else data.points[:16]

    def pairs(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
        rng = rng_of(key)
        X = rng.standard_normal((16, 2)) if rows is None else rows
        unit = float(np.std(X))
        moves = [unit * s * rng.standard_normal(X.shape) for s in (0.3, 1.0, 10.0)]
        moves.append(unit * np.eye(1, X.shape[1]))  # a common shift
        return [(X, X + move) for move in moves]

    return pairs


def _moving(name: str, kernel: Any, lipschitz: float, pairs: Moves) -> Setting:
    return Setting(name, {"kernel": kernel, "lipschitz": lipschitz, "pairs": pairs})


def lem1(inputs: Inputs) -> Check:
    tau = 1.0 if inputs.data is None else float(inputs.data.kernel.lengthscale)
    clouds = _clouds(inputs.data)
    sums = kernels.as_kernel(trials.first_coordinates)
    slope = trials.lipschitz_gaussian(tau)
    settings = (
        _moving("x + y", sums, 1.0, clouds),
        _moving("distances", kernels.Distance(), 1.0, clouds),
        _moving("Gaussian", kernels.Gaussian(tau), slope, clouds),
    )
    holds = partial(displacements, formula=concentration.gram_displacement)
    smaller = wrong("0.98 of it", "wrong factor", settings=settings[:1], factor=0.98)
    return check_of(Inequality, settings, smaller, printed=holds)


def stretch(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
    """Two points at 0 and two at 1, which move apart: the constant is attained."""
    X = np.array([[0.0], [0.0], [1.0], [1.0]])
    return [(X, 2 * X - 0.5)]


def lem1_distance() -> Check:
    settings = (
        _moving("two and two points on a line", kernels.Distance(), 1.0, stretch),
        _moving("points in the plane", kernels.Distance(), 1.0, _clouds(None)),
    )
    holds = partial(displacements, formula=concentration.gram_displacement_distance)
    smaller = wrong("0.98 of it", "wrong factor", settings=settings[:1], factor=0.98)
    return check_of(Inequality, settings, smaller, corrected=holds)


def prop3(inputs: Inputs) -> Check:
    n = trials.POINTS
    # |w 1' + 1 w'| = sqrt(n) |w| + |1'w|
    mean = math.sqrt(n) * mean_chi(n) + math.sqrt(2 * n / math.pi)
    deviation = per_point(concentration.deviation)

    def bound(setting: Setting, factor: float = 1.0) -> Bound:
        """V / n is at most E V / n, which is known, and a multiple of the deviation."""
        right = deviation(setting)
        return dataclasses.replace(right, value=mean / n + factor * right.value)

    models = (trials.sums("x + y, Gaussian"),)
    settings = around(models, inputs.deltas, operator=True)
    first = settings[:1]
    name = "1 / sqrt(n) for sqrt(n)"
    smaller = wrong(name, "wrong power", settings=first, factor=1 / n)
    part = controls.part_of(0.69, GRAM_TAIL(bound), first)
    return check_of(GRAM_TAIL, settings, smaller, part, printed=bound)


def prop3_norm(grids: Grids) -> Check:
    settings = grids["both"]
    grows = partial(Rate, size="n", moment=trials.clipped_moment)
    norm = grows(trials.clipped_norm, exponent=0.5)
    deviation = grows(trials.clipped_deviation, exponent=0.5)
    wrong = grows(trials.clipped_deviation, exponent=0.9)
    return Check(
        printed=Form(norm, settings),
        corrected=Form(deviation, settings),
        controls=(Control("n^0.9 for the deviation", wrong, settings, "wrong power"),),
    )


def mean_error(n: int, as_printed: bool = False, factor: float = 1.0) -> Pairs:
    """E |K - E K|_F for K = x + y and n of the ten points."""
    formula = partial(concentration.frobenius_mean, as_printed=as_printed)
    right = bound_under_33(formula, num_points=n)
    _, norm = sum_errors(n)
    return [(norm, rescaled(right, factor))]


def prop4(grids: Grids) -> Check:
    first = grids["printed"]
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("n for n + 1", "n for n - 1", settings=first, factor=2**-0.5),
        printed=partial(mean_error, as_printed=True),
        corrected=mean_error,
        printed_settings=first,
    )


def entry_variance(
    formula: Callable[..., Bound], multiple: int, factor: float = 1.0
) -> Pairs:
    """For K = x + y and the ten points the variance of an entry is a multiple of that of W."""
    variance = multiple * float(MASSES @ ATOMS**2)
    return [(variance, rescaled(bound_under_33(formula), factor))]


def lem2(grids: Grids) -> Check:
    formula = concentration.pair_variance
    variance = partial(entry_variance, multiple=2, formula=formula)
    # The law leaves room for a pair, up to 2 var W = 2.4.
    share = 1 / (1 + math.log(2))
    return check_of(
        Inequality,
        grids["both"],
        wrong("2 for 2 (1 + ln 2)", "wrong factor", factor=share),
        printed=partial(variance, formula=partial(formula, as_printed=True)),
        corrected=variance,
    )


def lem2_diagonal(grids: Grids) -> Check:
    formula = concentration.diagonal_variance
    variance = partial(entry_variance, multiple=4, formula=formula)
    return check_of(
        Inequality,
        grids["both"],
        wrong(
            "the constant of a pair",
            "wrong factor",
            formula=concentration.pair_variance,
        ),
        printed=partial(variance, formula=partial(formula, as_printed=True)),
        corrected=variance,
    )


def unit_vector_form(*, d: float, size: float, tau: float) -> Bound:
    """Return the bound of |z'(K - E K) z| for standard deviations 1 and |M z| = |M| = size."""
    return concentration.quadratic_form_gaussian(
        scale=1.0, frobenius=d**0.5, mean_norm=size, tau=tau
    )


def unit_vector_tail(value: float, d: int, size: float) -> float:
    """log P(| |X z|^2 - E |X z|^2 | > value), X z ~ N(M z, I) with |M z| = size."""
    law = stats.ncx2(d, size**2) if size else stats.chi2(d)
    mean = d + size**2
    return log_of(float(law.sf(mean + value) + law.cdf(mean - value)))


def _unit_vector_shape(setting: Setting) -> Bound:
    numbers = setting.numbers
    spread = numbers["dim"] + (numbers["mean_norm"] / KAPPA) ** 2
    return form_shape(setting, spread, 1.0)


def lem3(inputs: Inputs, grids: Grids) -> Check:
    n = 12
    z = np.full(n, n**-0.5)
    weights = np.outer(z, z)
    forms = []
    for norm in (0.0, 10.0):
        model = inner_products(n, 16, norm)
        for delta in inputs.deltas:
            forms.append(with_form(model, weights, math.log(4 / delta), delta))
    drawn = tuple(forms)
    shape = partial(Calibrated, trials.form_error, _unit_vector_shape, 0.0)
    tenth = shape(PROVED / 10)
    smaller = Control("a tenth of the constant", tenth, drawn, "wrong factor")
    part = share_of(0.5, unit_vector_form)
    statement = exceeds(unit_vector_tail)
    check = check_of(
        statement,
        grids["corrected"],
        smaller,
        wrong("half of the deviation", "wrong factor", part),
        corrected=unit_vector_form,
    )
    return dataclasses.replace(check, printed=Form(shape(PROVED), drawn))
