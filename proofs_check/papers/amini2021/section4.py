"""amini2021, Section 4: concentration, and what the proofs of Theorems 1 and 2 rest on; Theorem A."""

import functools
import math
from collections.abc import Callable

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
    Tail,
)
from proofs_check.papers.amini2021 import laws, setup, trials
from proofs_check.papers.amini2021.laws import Pairs, ten_points, under_33
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import grid, listed, parametrized, real, rng_of


def _gaussian_concentration() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, kappa: float) -> tuple[float, float]:
        k, s = setting.shapes["k"], setting.numbers["t"]
        tail = (
            stats.norm.logsf(s) if k == 0 else stats.chi.logsf(laws.mean_chi(k) + s, k)
        )
        return float(tail), -kappa * s**2

    settings = tuple(
        Setting(
            f"{'a coordinate' if k == 0 else f'|w| in R^{k}'}, t={s:g}",
            numbers={"t": s},
            shapes={"k": k},
        )
        for k in (0, 1, 10)
        for s in (0.5, 2.0, 5.0)
    )
    return Check(
        printed=Form(probability(kappa=0.5), settings),
        controls=(
            Control(
                "the exponent t^2", probability(kappa=1.0), settings, "wrong factor"
            ),
        ),
    )


def _log_concave() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, kappa: float) -> tuple[float, float]:
        low, high, s = (setting.numbers[name] for name in ("low", "high", "t"))
        law = stats.truncnorm(low, high)
        return float(law.logsf(law.mean() + s)), -kappa * s**2

    rows = [
        (*ends, s)
        for ends in ((-1.0, math.inf), (0.0, math.inf), (-1.0, 2.0))
        for s in (0.2, 1.0, 5.0)
    ]
    settings = listed(
        "normal between {low:g} and {high:g}, t={t:g}", "low high t", rows
    )
    return Check(
        corrected=Form(probability(kappa=0.5), settings),
        controls=(
            Control(
                "the exponent t^2", probability(kappa=1.0), settings, "wrong factor"
            ),
        ),
    )


def _displacements(formula: Callable[..., Bound], factor: float = 1.0) -> Inequality:
    """Return the check of |K(X) - K(X')|_F against a bound, divided by sqrt(n) |X - X'|_F."""

    def check(key: jax.Array, setting: Setting) -> Pairs:
        kernel, constant = setting.data["kernel"], setting.data["lipschitz"]
        pairs = []
        for X, Y in setting.data["pairs"](key):
            unit = math.sqrt(len(X)) * float(np.linalg.norm(X - Y))
            change = np.asarray(
                gram(kernel, real(X)) - gram(kernel, real(Y)), np.float64
            )
            right = formula(
                lipschitz=constant,
                num_points=len(X),
                displacement=float(np.linalg.norm(X - Y)),
            )
            pairs.append(
                (
                    float(np.linalg.norm(change)) / unit,
                    laws.rescaled(right, factor / unit),
                )
            )
        return pairs

    return Inequality(check)


def _clouds(
    data: Population | None,
) -> Callable[[jax.Array], list[tuple[np.ndarray, np.ndarray]]]:
    rows = None if data is None else data.points[:16]

    def pairs(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
        rng = rng_of(key)
        X = rng.standard_normal((16, 2)) if rows is None else rows
        unit = float(np.std(X))
        moved = [
            (X, X + unit * scale * rng.standard_normal(X.shape))
            for scale in (0.3, 1.0, 10.0)
        ]
        return [*moved, (X, X + unit * np.eye(1, X.shape[1]))]  # and a common shift

    return pairs


def _lemma_1(inputs: setup.Inputs) -> Check:
    tau = 1.0 if inputs.data is None else float(inputs.data.kernel.lengthscale)
    built_in = {
        "x + y": (kernels.as_kernel(trials.first_coordinates), 1.0),
        "distances": (kernels.Distance(), 1.0),
    }
    built_in["Gaussian"] = (kernels.Gaussian(tau), trials.lipschitz_gaussian(tau))
    clouds, formula = _clouds(inputs.data), concentration.gram_displacement
    settings = tuple(
        Setting(name, {"kernel": kernel, "lipschitz": constant, "pairs": clouds})
        for name, (kernel, constant) in built_in.items()
    )
    return Check(
        printed=Form(_displacements(formula), settings),
        controls=(
            Control(
                "0.98 of it",
                _displacements(formula, 0.98),
                settings[:1],
                "wrong factor",
            ),
        ),
    )


def _displacement_distance() -> Check:
    def stretch(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
        """Two points at 0 and two at 1, which move apart: the constant is attained."""
        X = np.array([[0.0], [0.0], [1.0], [1.0]])
        return [(X, 2 * X - 0.5)]

    settings = tuple(
        Setting(name, {"kernel": kernels.Distance(), "lipschitz": 1.0, "pairs": pairs})
        for name, pairs in (
            ("two and two points on a line", stretch),
            ("points in the plane", _clouds(None)),
        )
    )
    formula = concentration.gram_displacement_distance
    return Check(
        corrected=Form(_displacements(formula), settings),
        controls=(
            Control(
                "0.98 of it",
                _displacements(formula, 0.98),
                settings[:1],
                "wrong factor",
            ),
        ),
    )


def _proposition_3(inputs: setup.Inputs) -> Check:
    n = trials.POINTS
    mean = math.sqrt(n) * laws.mean_chi(n) + math.sqrt(
        2 * n / math.pi
    )  # |w 1' + 1 w'| = sqrt(n) |w| + |1'w|
    deviation = setup.per_point(concentration.deviation)

    @parametrized(functools.partial(Tail, trials.gram_error))
    def tail(setting: Setting, factor: float) -> Bound:
        """V / n is at most E V / n, which is known, and a multiple of the deviation."""
        right = deviation(setting)
        return Bound(
            mean / n + factor * right.value,
            right.probability,
            right.valid,
            right.source,
        )

    settings = setup.around(
        (trials.sums("x + y, Gaussian"),), inputs.deltas, operator=True
    )
    return Check(
        printed=Form(tail(1.0), settings),
        controls=(
            Control(
                "1 / sqrt(n) for sqrt(n)", tail(1 / n), settings[:1], "wrong power"
            ),
            controls.part_of(0.69, tail(1.0), settings[:1]),
        ),
    )


def _after_proposition_3() -> Check:
    settings, trial = (
        setup.clipped(16, 32, 64, 128, 256, 512),
        trials.clipped_deviation,
    )
    deviation, wrong = (
        Rate(trial, "n", power, moment=trials.clipped_moment) for power in (0.5, 0.9)
    )
    return Check(
        printed=Form(
            Rate(trials.clipped_norm, "n", 0.5, moment=trials.clipped_moment), settings
        ),
        corrected=Form(deviation, settings),
        controls=(Control("n^0.9 for the deviation", wrong, settings, "wrong power"),),
    )


def _proposition_4() -> Check:
    def left(n: int) -> float:
        return laws.sum_errors(n)[1]

    formula, one = concentration.frobenius_mean, ten_points(1)
    return Check(
        printed=Form(under_33(left, functools.partial(formula, as_printed=True)), one),
        corrected=Form(under_33(left, formula), ten_points(1, 2, 3)),
        controls=(
            Control(
                "n for n + 1", under_33(left, formula, 2**-0.5), one, "n for n - 1"
            ),
        ),
    )


def _lemma_2(
    multiple: int,
    formula: Callable[..., Bound],
    control: str,
    wrong: Callable[..., Bound],
) -> Check:
    """For K = x + y the variance of an entry is a multiple of that of W."""
    settings = ten_points()

    def variance(n: int) -> float:
        return multiple * float(laws.MASSES @ laws.ATOMS**2)

    return Check(
        printed=Form(
            under_33(variance, functools.partial(formula, as_printed=True)), settings
        ),
        corrected=Form(under_33(variance, formula), settings),
        controls=(
            Control(control, under_33(variance, wrong), settings, "wrong factor"),
        ),
    )


def _lemma_2_pairs() -> Check:
    def smaller(**given: float) -> Bound:
        return laws.rescaled(
            concentration.pair_variance(**given), 1 / (1 + math.log(2))
        )

    # The law leaves room for a pair, up to 2 var W = 2.4.
    return _lemma_2(2, concentration.pair_variance, "2 for 2 (1 + ln 2)", smaller)


def _lemma_2_diagonal() -> Check:
    return _lemma_2(
        4,
        concentration.diagonal_variance,
        "the constant of a pair",
        concentration.pair_variance,
    )


def _lemma_3(inputs: setup.Inputs) -> Check:
    n = 12
    z = np.full(n, n**-0.5)
    drawn = tuple(
        setup.with_form(
            setup.inner_products(n, 16, norm),
            np.outer(z, z),
            math.log(4 / delta),
            delta,
        )
        for norm in (0.0, 10.0)
        for delta in inputs.deltas
    )
    shape = setup.form_shape(
        lambda n: n["dim"] + (n["mean_norm"] / setup.KAPPA) ** 2, lambda n: 1.0
    )

    @parametrized(Exact)
    def probability(setting: Setting, factor: float = 1.0) -> tuple[float, float]:
        """X z ~ N(M z, I) with |M z| = |M|."""
        d, size, tau = (
            setting.shapes["d"],
            setting.numbers["size"],
            setting.numbers["tau"],
        )
        right = concentration.quadratic_form_gaussian(
            scale=1.0, frobenius=math.sqrt(d), mean_norm=size, tau=tau
        )
        law, mean, far = (
            stats.ncx2(d, size**2) if size else stats.chi2(d),
            d + size**2,
            factor * right.value,
        )
        return laws.log_of(float(law.sf(mean + far) + law.cdf(mean - far))), math.log(
            1 - right.probability
        )

    taus = (1.0, 4.0, 12.0)
    settings = grid(
        "d={d}, |M z|={size:g}, tau={tau:g}",
        shapes="d",
        d=(1, 16, 400),
        size=(0.0, 10.0),
        tau=taus,
    )
    tenth = Calibrated(trials.form_error, shape, 0.0, setup.PROVED / 10)
    return Check(
        printed=Form(Calibrated(trials.form_error, shape, 0.0, setup.PROVED), drawn),
        corrected=Form(probability(), settings),
        controls=(
            Control("a tenth of the constant", tenth, drawn, "wrong factor"),
            Control(
                "half of the deviation",
                probability(factor=0.5),
                settings,
                "wrong factor",
            ),
        ),
    )
