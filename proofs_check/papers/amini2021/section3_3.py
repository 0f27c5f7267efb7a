"""amini2021, Section 3.3: Proposition 2 with the steps of its proof, (30) and Corollary 1; Theorem D."""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
)
from proofs_check.papers.amini2021 import laws
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.shared import grid, listed, parametrized


def two_clusters(
    m: int, p: float, q: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return what may be drawn from two clusters of m signs, 1 with chances p and q, and the kernel y z: b = d_0 = 1.

    That is the means (a, 1) and (1, c) of the signs, and the logs of their chances (a, c).
    """
    count = np.arange(m + 1)
    means = 2 * count / m - 1
    logs = (stats.binom.logpmf(count, m, chance) for chance in (p, q))
    return means[:, None], means[None, :], np.add.outer(*logs)


def block_means(y: Any, z: Any) -> tuple[Any, Any, Any]:
    """Return Psi_11, Psi_12 and Psi_22 from the means of signs; as the kernel is -1 or 1, v^2 = 1 - Psi^2."""
    return y**2, y * z, z**2


def separation_and_variance(y: Any, z: Any) -> tuple[Any, Any]:
    """Return gamma^2 and vbar^2 for clusters of equal size."""
    first, mixed, second = block_means(y, z)
    gamma2 = ((first - mixed) ** 2 + (second - mixed) ** 2) / 2
    return gamma2, 1 - (first**2 + 2 * mixed**2 + second**2) / 4


def _signs(
    p: float, q: float, *sizes: int, far: Sequence[float] = (1.68, 2.0)
) -> tuple[Setting, ...]:
    return grid(
        "signs, p={p:g}, q={q:g}, n_k={m}, t={t:g}",
        shapes="m",
        p=[p],
        q=[q],
        m=sizes,
        t=far,
    )


def _empirical_pairs() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, sides: float = 2.0) -> tuple[float, float]:
        """The distribution functions of pairs differ by twice the Kolmogorov distance of one sample at most."""
        m, log = setting.shapes["m"], setting.numbers["log"]
        return float(
            stats.kstwo.logsf(math.sqrt((math.log(sides) + log) / (2 * m)), m)
        ), -log

    settings = grid(
        "n_k={m}, delta=e^-{log:g}", shapes="m", m=(5, 100, 2000), log=(2.0, 8.0)
    )
    return Check(
        corrected=Form(probability(), settings),
        controls=(
            Control(
                "one side for two", probability(sides=1.0), settings[2:], "wrong factor"
            ),
        ),
    )


def _proposition_2() -> Check:
    @parametrized(Exact)
    def probability(
        setting: Setting, as_printed: bool = True, power: float = 0.0
    ) -> tuple[float, float]:
        m, n = setting.shapes["m"], setting.numbers
        given = {
            "bound": 1.0,
            "smallest": m,
            "num_clusters": 2,
            "t": n["t"],
            "as_printed": as_printed,
        }
        means, variances = (
            concentration.block_means(**given),
            concentration.block_variances(**given),
        )
        first, second, logs = two_clusters(m, n["p"], n["q"])
        outside = np.zeros((), bool)
        for psi, true in zip(
            block_means(first, second),
            block_means(2 * n["p"] - 1, 2 * n["q"] - 1),
            strict=True,
        ):
            outside = outside | (np.abs(psi - true) > m**power * means.value)
            outside = outside | (np.abs(psi**2 - true**2) > m**power * variances.value)
        return laws.log_sum(logs, outside), math.log(1 - means.probability)

    settings = _signs(0.854, 0.854, 20, 400)
    return Check(
        printed=Form(probability(), settings),
        corrected=Form(probability(as_printed=False), settings),
        controls=(
            Control(
                "1 / n_k for the root", probability(power=-0.5), settings, "wrong power"
            ),
        ),
    )


def _mean_of_signs(
    formula: Callable[..., Bound],
    *others: str,
    name: str,
    factor: float,
    tried: Sequence[tuple[int, float]],
) -> Check:
    """Return the check for a mean of n signs, at n and t as `tried`: h = (y + z) / 2, or h = y for two samples.

    `others` names the size of the second sample, which is that of the first, where there is one.
    """

    @parametrized(Exact)
    def probability(
        setting: Setting, factor: float = 1.0, as_printed: bool = False
    ) -> tuple[float, float]:
        n, far = setting.shapes["n"], setting.numbers["t"]
        right = formula(
            bound=1.0,
            num_points=n,
            **dict.fromkeys(others, n),
            t=far,
            as_printed=as_printed,
        )
        count = np.arange(n + 1)
        outside = np.abs(2 * count / n - 1) > factor * right.value
        return laws.log_sum(stats.binom.logpmf(count, n, 0.5), outside), math.log(
            1 - right.probability
        )

    settings = tuple(
        Setting(f"{name}={n}, t={far:g}", numbers={"t": far}, shapes={"n": n})
        for n, far in tried
    )
    return Check(
        printed=Form(probability(as_printed=True), settings),
        corrected=Form(probability(), settings),
        controls=(
            Control(
                f"{factor} of the deviation",
                probability(factor=factor),
                settings[-1:],
                "wrong factor",
            ),
        ),
    )


def _one_sample() -> Check:
    tried = ((4, 0.86), (20, 0.9), (400, 1.0), (400, 4.0))
    return _mean_of_signs(
        concentration.u_statistic,
        name="h = (y + z) / 2, signs, n",
        factor=0.6,
        tried=tried,
    )


def _two_samples() -> Check:
    formula = concentration.two_sample_statistic
    tried = ((2, 0.99), (3, 1.2), (20, 1.0), (400, 4.0))
    return _mean_of_signs(
        formula, "num_others", name="h = y, signs, n=m", factor=0.9, tried=tried
    )


def _bias() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, formula: Callable[[float], float]) -> np.ndarray:
        """The bias of Psi_kk, in units of the corrected one."""
        m, p = setting.shapes["m"], setting.numbers["p"]
        count = np.arange(m + 1)
        mean, true = (
            stats.binom.pmf(count, m, p) @ block_means(2 * count / m - 1, 0.0)[0],
            (2 * p - 1) ** 2,
        )
        return np.array([(mean - true) * m / (1 - true) - formula(m)])

    settings = grid("signs, p={p:g}, n_k={m}", shapes="m", m=(2, 50), p=(0.5, 0.9))
    one_less = residual(formula=lambda m: m / (m - 1))
    return Check(
        printed=Form(residual(formula=lambda m: 0.0), settings),
        corrected=Form(residual(formula=lambda m: 1.0), settings),
        controls=(
            Control("1 / (n_k - 1) for 1 / n_k", one_less, settings, "n for n - 1"),
        ),
    )


def _display() -> Check:
    @parametrized(Exact)
    def probability(
        setting: Setting, allowed: Callable[[float], float]
    ) -> tuple[float, float]:
        """Two points of equally likely values, h = 1 where they agree and -1 elsewhere: Psi is 0 or 1."""
        far, agree = setting.numbers["t"], 1 / setting.numbers["values"]
        outside = [abs(psi - (2 * agree - 1)) > allowed(far) for psi in (0.0, 1.0)]
        return laws.log_of((1 - agree) * outside[0] + agree * outside[1]), math.log(
            2
        ) - far**2

    many, few = (
        Setting(
            f"two points, {values:,} values, t={far:g}",
            numbers={"t": far, "values": values},
        )
        for values, far in ((10_000, 0.99), (13, 0.84))
    )
    unbiased = probability(allowed=lambda far: far)
    return Check(
        printed=Form(
            probability(allowed=lambda far: far / 2 * math.sqrt(8 / 2)), (many,)
        ),
        corrected=Form(
            probability(allowed=lambda far: far / 2 * math.sqrt(4) + 2 / 2), (few,)
        ),
        controls=(Control("without the bias", unbiased, (many,), "term left out"),),
    )


def _eq30() -> Check:
    @parametrized(Exact)
    def probability(
        setting: Setting, as_printed: bool = True, factor: float = 1.0
    ) -> tuple[float, float]:
        m, n = setting.shapes["m"], setting.numbers
        gamma2, vbar2 = separation_and_variance(2 * n["p"] - 1, 2 * n["q"] - 1)
        given = {
            "bound": 1.0,
            "min_share": 0.5,
            "num_points": 2 * m,
            "num_clusters": 2,
            "t": n["t"],
        }
        low = concentration.empirical_separation(
            gamma2=gamma2, **given, as_printed=as_printed
        )
        high = concentration.empirical_variance(
            vbar2=vbar2, **given, as_printed=as_printed
        )
        *means, logs = two_clusters(m, n["p"], n["q"])
        separation, variance = separation_and_variance(*means)
        outside = gamma2 - separation > factor * (gamma2 - low.value)
        outside = outside | (variance - vbar2 > factor * (high.value - vbar2))
        return laws.log_sum(logs, outside), math.log(1 - low.probability)

    settings, further = _signs(0.933, 0.067, 400), _signs(0.933, 0.067, 400, far=(4.0,))
    return Check(
        printed=Form(probability(), settings),
        corrected=Form(probability(as_printed=False), settings),
        controls=(
            Control(
                "a seventh of both", probability(factor=1 / 7), further, "wrong factor"
            ),
        ),
    )


def _corollary_1() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """Theorem 3 at the worst empirical parameters that (30) allows, in units of the corrected bound.

        With what is printed in both the theorem says less than the corollary: the constant is lost on the way.
        """
        b, far, share, n = 1.0, 2.5, 0.5, setting.numbers["n"]
        gamma2, vbar2 = setting.numbers["gamma2"], 1e-9
        model: dict[str, Any] = {
            "num_clusters": 2,
            "lipschitz": 1.0,
            "noise": 1.0,
            "op_norm": 1.0,
        }
        model |= {"dim": setting.numbers["dim"], "num_points": n, "t": far}
        lost = far * b**2 / math.sqrt(share * n)
        least, most = gamma2 - 24 * lost, vbar2 + 9 * lost
        empirical = {"gamma2": least, "gamma_tilde2": share * least, "vbar2": most}
        theorem = functools.partial(
            concentration.misclassification, **model, **empirical
        )
        population = {
            "gamma2": gamma2,
            "gamma_tilde2": share * gamma2,
            "vbar2": vbar2,
            "bound": b,
            "min_share": share,
        }
        corollary = functools.partial(
            concentration.misclassification_population, **model, **population
        )
        right, printed = corollary(), corollary(as_printed=True)
        unit, less = (
            float(right.value),
            Bound(printed.value / right.value, 1.0, printed.valid, printed.source),
        )
        claimed = Bound(factor, 1.0, right.valid, right.source)
        return [
            (float(theorem().value) / unit, claimed),
            laws.at_least(theorem(as_printed=True).value / unit, less),
        ]

    settings = listed(
        "gamma2={gamma2:g}, n={n:g}, d={dim:g}",
        "gamma2 n dim",
        ((0.2, 1e12, 1e9), (0.5, 1e11, 1e6)),
    )
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("a fourth of it", sides(factor=0.25), settings, "wrong factor"),
        ),
    )
