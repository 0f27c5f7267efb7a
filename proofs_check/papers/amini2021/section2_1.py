"""amini2021, Section 2.1: Lipschitz kernels up to Remark 1; Theorem A."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from scipy import special, stats

from jaxkern import kernels, problems
from jaxkern.bounds import Bound, concentration
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Inequality,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.amini2021 import laws, trials
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.amini2021.setup import Inputs, around, clipped, per_point
from proofs_check.papers.shared import (
    always,
    grid,
    lines,
    listed,
    parametrized,
    real,
    rng_of,
)


def _jointly() -> Check:
    def sides(factor: float, *, back: bool) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Quotients of differences: over |x - x'| + |y - y'|, or `back` over the norm of the pair."""
            rng = rng_of(key)
            pairs = []
            for _ in range(500):
                x, y, move = rng.standard_normal((3, 2))
                for step in (np.concatenate([move, move]), rng.standard_normal(4)):
                    a, b = np.concatenate([x, y]), np.concatenate([x, y]) + step
                    if setting.name == "x + y":
                        change = abs(step[0] + step[2])
                    else:
                        change = abs(float(np.linalg.norm(a) - np.linalg.norm(b)))
                    apart = float(np.linalg.norm(step[:2]) + np.linalg.norm(step[2:]))
                    over = float(np.linalg.norm(step)) if back else apart
                    pairs.append((change / over, factor))
            if back and setting.name == "x + y":
                pairs.append(
                    (2 / math.sqrt(2), factor)
                )  # a common step along the first axis
            return lines(pairs, "amini2021, after (2)")

        return Inequality(check)

    joint, both = (Setting("|(x, y)|"),), (Setting("|(x, y)|"), Setting("x + y"))
    return Check(
        printed=Form(sides(1.0, back=False), joint),
        corrected=Form(sides(math.sqrt(2), back=True), both),
        controls=(
            Control("1.4 for sqrt(2)", sides(1.4, back=True), both[1:], "wrong factor"),
        ),
    )


@jax.jit
def _values(kernel: Any, X: jax.Array, Y: jax.Array) -> jax.Array:
    return jax.vmap(kernel)(X, Y)


def _lipschitz_kernels() -> Check:
    def sides(factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            kernel, dim = setting.data["kernel"], setting.shapes["dim"]
            x1, x2, first, second = np.array(
                jax.random.normal(key, (4, 300, dim)), np.float64
            )
            steps = 10.0 ** np.random.default_rng(1).uniform(-1, 0.5, (300, 1))
            y1, y2 = (
                x1 + steps * first,
                x2 + np.where(np.arange(300) % 2, 1, 0)[:, None] * steps * second,
            )
            x1[::2] = (
                x2[::2] + np.linspace(0, 3, 150)[:, None] * np.eye(dim)[0]
            )  # in a line, where f is steepest too
            y1[::2] = x1[::2] + 0.002 * np.eye(dim)[0]
            apart = np.sum(np.linalg.norm([x1 - y1, x2 - y2], axis=2), axis=0)
            change = _values(kernel, real(x1), real(x2)) - _values(
                kernel, real(y1), real(y2)
            )
            change = np.abs(np.asarray(change, np.float64))
            constant = factor * float(kernels.lipschitz(kernel, dim))
            return lines(
                ((quotient, constant) for quotient in change / apart), "amini2021, (3)"
            )

        return Inequality(check)

    built_in = (kernels.Distance(), kernels.Gaussian(0.7), kernels.Exponential(0.5))
    settings = tuple(
        Setting(f"{type(k).__name__}, d=3", {"kernel": k}, shapes={"dim": 3})
        for k in built_in
    )
    return Check(
        printed=Form(sides(1.0), settings),
        controls=(
            Control("0.995 of the constant", sides(0.995), settings, "wrong factor"),
        ),
    )


def _definition_2b() -> Check:
    @parametrized(Inequality)
    def slopes(setting: Setting, constant: float) -> Pairs:
        z = np.linspace(-4, 4, 801)
        u, numbers = stats.norm.cdf(z), setting.numbers
        if "e" in numbers:  # density 1 / (4 e) within e of a and of -a
            e, a = numbers["e"], math.sqrt(1 - numbers["e"] ** 2 / 3)
            quantiles, omega = (
                np.where(u < 0.5, -a - e + 4 * e * u, a - 3 * e + 4 * e * u),
                4 * e,
            )
        else:  # density (1 + slope y) / (1 + slope / 2) on [0, 1], at least 1 / omega
            slope = numbers["slope"]
            mass, omega = (1 + slope / 2) * u, 1 + slope / 2
            quantiles = 2 * mass / (1 + np.sqrt(1 + 2 * slope * mass))
        quotients = np.diff(quantiles) / np.diff(z) / omega
        return lines(
            ((s, constant) for s in quotients),
            "amini2021, proof of Theorem 1, class (b)",
        )

    gaps = grid("uniform near -1 and 1, e={e:g}", e=(0.1, 0.01))
    ramps = grid("ramp of slope {slope:g}", slope=(0.0, 2.0, 20.0))
    return Check(
        printed=Form(slopes(constant=1.0), gaps),
        corrected=Form(slopes(constant=1 / math.sqrt(2 * math.pi)), ramps),
        controls=(
            Control(
                "0.39 for 1 / sqrt(2 pi)", slopes(constant=0.39), ramps, "wrong factor"
            ),
        ),
    )


def _without_t(bound: Callable[[Setting], Bound]) -> Callable[[Setting], Bound]:
    """Return a bound without its term in t, with its probability."""

    def right(setting: Setting) -> Bound:
        still = bound(
            dataclasses.replace(setting, numbers={**setting.numbers, "t": 0.0})
        )
        return Bound(still.value, bound(setting).probability, True, "without t")

    return right


def _class_lc(inputs: Inputs) -> Check:
    models = (
        trials.sums("Gaussian"),
        trials.sums("class (a), softplus", problems.SoftplusImageLaw()),
        trials.sums("class (b), uniform", problems.RampLaw(0.0)),
        trials.sums("class (b), ramp", problems.RampLaw()),
        trials.sums("class (c), skewed", problems.SkewedLaw()),
    )
    bound = per_point(concentration.lipschitz_kernel, mean_scale="mean_scale")
    tail, first = Tail(trials.gram_error, bound), around(models[:1], inputs.deltas[:1])
    reused = tuple(
        Setting(s.name, s.data, {**s.numbers, "reused": 1.0})
        for s in around(models[:1], (0.01,))
    )
    return Check(
        corrected=Form(tail, around(models, inputs.deltas)),
        controls=(
            Control(
                "without the term in t",
                Tail(trials.gram_error, _without_t(bound)),
                first,
                "term left out",
            ),
            Control("one draw of the noise for all points", tail, reused, "reused key"),
        ),
    )


def _theorem_1(inputs: Inputs) -> Check:
    def gap(c: float, e: float) -> Setting:
        numbers = {
            "lipschitz": 1.0,
            "omega": 4 * e,
            "scale": 1.0,
            "n": 32.0,
            "c": c,
            "e": e,
        }
        numbers["t"] = math.sqrt(math.log(20) / c)
        return Setting(f"W within {e:g} of -1 or 1, c={c:g}", None, numbers, {"n": 32})

    def rooted(setting: Setting) -> Bound:
        """The mean of the order of sqrt(n) instead of n."""
        right, n = bound(setting), setting.numbers["n"]
        lost = 2 * setting.numbers["omega"] * (1 - n**-0.5) * math.sqrt(2)
        return Bound(right.value - lost, right.probability, right.valid, right.source)

    formula = concentration.lipschitz_kernel
    bound = per_point(formula, as_printed=True)
    models = (
        trials.sums("x + y, Gaussian"),
        trials.sums("x + y, ramp", problems.RampLaw()),
    )
    settings = around(models, inputs.deltas, operator=True)
    printed = Tail(trials.gap_error, per_point(formula, c="c", as_printed=True))
    return Check(
        printed=Form(printed, (gap(0.5, 0.01), gap(0.01, 0.003), gap(1e-4, 1e-4))),
        corrected=Form(Tail(trials.gram_error, bound), settings),
        controls=(
            Control(
                "sqrt(n) for n",
                Tail(trials.gram_error, rooted),
                settings[:1],
                "wrong power",
            ),
        ),
    )


def _distance_kernel(inputs: Inputs) -> Check:
    n = trials.POINTS
    close_and_far = np.random.default_rng(21).standard_normal((n, n)) * (
        np.arange(n) < 3
    )
    close_and_far *= np.repeat([0.0, 0.3, 3.0], n // 3)[:, None]
    levels = np.repeat([0.2, 0.5, 1.0], n // 3)
    far = trials.distances(
        "distances, two far centres", trials.two_centres(n, n, 50.0), 1.0, 3
    )  # nearly attains it
    models = (
        trials.distances("distances, three levels of noise", close_and_far, levels, 3),
        *inputs.models,
        far,
    )
    bound = per_point(concentration.distance_kernel, mean_scale="mean_scale")
    tail, settings = Tail(trials.gram_error, bound), around(models, inputs.deltas)
    return Check(
        corrected=Form(tail, settings),
        controls=(controls.part_of(0.74, tail, settings),),
    )


def _known_variance(inputs: Inputs) -> Check:
    @functools.cache
    def total(model: trials.Model) -> float:
        means, d = model.means, model.means.shape[1]
        given = {
            "noise_variance": 2 * float(model.variances[0, 0]),
            "lengthscale": float(model.kernel.lengthscale),
        }
        squared = np.sum((means[:, None] - means) ** 2, axis=2)[
            ~np.eye(len(means), dtype=bool)
        ]
        distinct, counts = np.unique(squared, return_counts=True)
        variance = concentration.gaussian_pair_variance
        return float(
            counts
            @ [
                variance(squared_distance=float(x), dim=d, **given).value
                for x in distinct
            ]
        )

    def settings(deltas: Sequence[float]) -> tuple[Setting, ...]:
        return tuple(
            dataclasses.replace(
                s, numbers={**s.numbers, "total_variance": total(s.data)}
            )
            for s in around(inputs.models, deltas)
        )

    bound = per_point(concentration.distance_kernel_from_variance)
    tail, first = Tail(trials.gram_error, bound), settings(inputs.deltas[:1])
    still = Tail(trials.gram_error, _without_t(bound))
    return Check(
        corrected=Form(tail, settings(inputs.deltas)),
        controls=(
            Control("without the term in t", still, first, "term left out"),
            controls.part_of(0.75, tail, first),
        ),
    )


def _variance_lc() -> Check:
    @parametrized(Inequality)
    def sides(factor: float = 1.0, *, off_by_one: bool = False) -> Pairs:
        pair = laws.rescaled(concentration.pair_variance_lc(**laws.UNIT), factor)
        diagonal = laws.rescaled(
            concentration.diagonal_variance_lc(**laws.UNIT), factor
        )
        pairs = [(2.0, pair), (4.0, diagonal)]  # K = x + y, W ~ N(0, 1)
        for n in (1, 2, 30):
            mean = concentration.frobenius_mean_lc(**laws.UNIT, num_points=n)
            square = mean.value**2 * (n / (n + 1) if off_by_one else 1)
            pairs.append(
                (2.0 * n * (n + 1) / n**2, always(factor * square / n**2, mean.source))
            )
        for tau in (0.5, 1.0, 3.0):  # the Gaussian kernel, in units of L^2
            for squared in (0.0, 1.0, 9.0):
                given = {
                    "squared_distance": squared,
                    "noise_variance": 2.0,
                    "lengthscale": tau,
                    "dim": 2,
                }
                variance = concentration.gaussian_pair_variance(**given).value
                pairs.append((variance / trials.lipschitz_gaussian(tau) ** 2, pair))
        return pairs

    settings = (Setting("standard normal noise"),)
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("0.98 of it", sides(factor=0.98), settings, "wrong factor"),
            Control("n for n + 1", sides(off_by_one=True), settings, "n for n - 1"),
        ),
    )


def _concentrated_data() -> Check:
    @parametrized(Exact)
    def probability(
        setting: Setting, as_printed: bool = False, mean: bool = True
    ) -> tuple[float, float]:
        """|K - E K|_F^2 = 2 n (2 a^2 + q), K = x + y, with a standard normal a and a chi-square q of n - 1 degrees."""
        n, far = setting.shapes["n"], setting.numbers["t"]
        given = {**laws.UNIT, "num_points": n, "c": 0.5}
        right = concentration.concentrated_data(**given, t=far, as_printed=as_printed)
        lost = (
            0.0
            if mean
            else concentration.concentrated_data(
                **given, t=0.0, as_printed=as_printed
            ).value
        )
        a = np.linspace(-12, 12, 20_001)
        beyond = stats.chi2.sf((right.value - lost) ** 2 / (2 * n) - 2 * a**2, n - 1)
        return laws.log_of(float(stats.norm.pdf(a) @ beyond * (a[1] - a[0]))), math.log(
            1 - right.probability
        )

    settings = grid(
        "normal points, c=1/2, K=x+y, n={n}, t={t:g}",
        shapes="n",
        n=(2, 4),
        t=(0.1, 0.3, 1.5),
    )
    return Check(
        printed=Form(probability(as_printed=True), settings),
        corrected=Form(probability(), settings),
        controls=(
            Control(
                "without the mean", probability(mean=False), settings, "term left out"
            ),
        ),
    )


def _proposition_1() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, factor: float = 1.0) -> tuple[float, float]:
        """X is -2, 0 or 2 with probabilities 1/4, 1/2, 1/4 and s = L = 1: K - E K = h h' - I / 2."""
        n = setting.shapes["n"]
        lower = concentration.lower_limit(lipschitz=1.0, scale=1.0, num_points=n)
        count = np.arange(n + 1)
        below = stats.binom.pmf(count, n, 0.5) @ (
            np.maximum(count - 0.5, 0.5) <= factor * lower.value
        )
        return laws.log_of(float(below)), math.log(1 - lower.probability)

    settings = grid("n={n}", shapes="n", n=(8, 16, 32, 64))
    return Check(
        printed=Form(probability(), settings),
        controls=(
            Control(
                "n / 2 for n / 8", probability(factor=4.0), settings, "wrong factor"
            ),
        ),
    )


def _points() -> Check:
    settings = clipped(16, 32, 64, 128, 256)

    def grows(exponent: float) -> Rate:
        return Rate(
            trials.clipped_norm, "n", exponent, 0.05, moment=trials.clipped_moment
        )

    return Check(
        printed=Form(grows(1.0), settings),
        controls=(Control("the exponent 0.9", grows(0.9), settings, "wrong power"),),
    )


def _any_share() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, power: float = 1.0) -> tuple[float, float]:
        """X is -2, 0 or 2 and s = L = 1: |K - E K| is the larger of N - p and p, N ~ Bin(n, p)."""
        n, p = setting.shapes["n"], setting.numbers["p"]
        count = np.arange(n + 1)
        below = np.maximum(count - p, p) <= n * p**power / 4
        return laws.log_of(float(stats.binom.pmf(count, n, p) @ below)), -n * p**2 / 2

    rows = [
        (p, times * math.ceil(4 / p)) for p in (0.05, 0.3, 0.5, 1.0) for times in (1, 4)
    ]
    settings = listed("P(|X| > s)={p:g}, n={n}", "p n", rows, shapes="n")
    return Check(
        corrected=Form(probability(), settings),
        controls=(
            Control("1 for p", probability(power=0.0), settings[:1], "wrong power"),
        ),
    )


def _eq6() -> Check:
    def left(n: int) -> float:
        return laws.sum_errors(n)[0] / n**2

    formula = concentration.frobenius_mean_square
    smaller = laws.under_33(left, formula, 0.5 / (1 + math.log(2)))
    one = laws.ten_points(1)
    return Check(
        printed=Form(
            laws.under_33(left, functools.partial(formula, as_printed=True)), one
        ),
        corrected=Form(laws.under_33(left, formula), laws.ten_points(1, 2, 3)),
        controls=(
            Control(
                "1 / c for 2 (1 + ln 2) / c",
                smaller,
                laws.ten_points(1, 3),
                "wrong factor",
            ),
            Control(
                "1 for 1 + 1 / n", laws.under_33(left, formula, 0.5), one, "n for n - 1"
            ),
        ),
    )


def mean_norm(dim: int, variance: float, offset: float) -> float:
    """Return E |Z| for Z ~ N(m, variance I) in R^dim, |m| = offset."""
    ratio = math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    return float(
        math.sqrt(2 * variance)
        * ratio
        * special.hyp1f1(-0.5, dim / 2, -(offset**2) / (2 * variance))
    )


def _eq7() -> Check:
    constant = 100.0

    def printed(setting: Setting) -> Pairs:
        """K = |x - y|, equal means, Sigma = I / d: E (K - tr Sigma)^2 against C (tr Sigma^2 + C1 |Sigma|)."""
        d = setting.shapes["d"]
        return [
            (
                2 - 2 * mean_norm(d, 2 / d, 0.0) + 1,
                always(constant * (1 + constant) / d, "amini2021, (7)"),
            )
        ]

    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """E (|X - Y| - a)^2 = 2 a (a - E |X - Y|), a^2 = |m|^2 + 2 tr Sigma, in units of the bound."""
        d, offset = setting.shapes["d"], setting.numbers["offset"]
        a2 = offset**2 + 2 * d
        a = math.sqrt(a2)
        left = 2 * a * (a - mean_norm(d, 2.0, offset))
        sharp = 2 * a * 2 / (a + math.sqrt(a2 - 2))
        source = "amini2021, (7), corrected"
        return [(left / sharp, always(factor, source)), (sharp / 4, always(1, source))]

    rows = [*itertools.product((1, 10, 400), (0.0, 3.0)), (3, 30.0)]
    settings = listed(
        "d={d}, means at distance {offset:g}", "d offset", rows, shapes="d"
    )
    return Check(
        printed=Form(
            Inequality(printed),
            (Setting("|x - y|, Sigma = I / d, d=10^6", shapes={"d": 10**6}),),
        ),
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "nine tenths of it", sides(factor=0.9), settings[-1:], "wrong factor"
            ),
        ),
    )
