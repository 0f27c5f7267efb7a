"""amini2021, Section 3.3: Proposition 2 with the steps of its proof, (30) and Corollary 1; Theorem D."""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import laws
from proofs_check.papers.amini2021.laws import Pairs
from proofs_check.papers.shared import parametrized


@dataclasses.dataclass(frozen=True)
class TwoClusters:
    """Two clusters of m points y in {0, 1} with chances p and q of a 1, and the kernel 1{y = z}: b = 1, d_0 = 1.

    `first` and `second` are the possible shares of ones, (a, 1) and (1, c), and `chances` (a, c) how often they occur.
    What is left out has a chance below 1e-12.
    """

    first: np.ndarray
    second: np.ndarray
    chances: np.ndarray


def two_clusters(m: int, p: float, q: float) -> TwoClusters:
    """Return what may be drawn."""
    shares, masses = [], []
    for chance in (p, q):
        spread = 8 * math.sqrt(m * chance * (1 - chance))
        count = np.arange(max(0, math.floor(m * chance - spread)), min(m, math.ceil(m * chance + spread)) + 1)
        shares.append(count / m)
        masses.append(stats.binom.pmf(count, m, chance))
    return TwoClusters(shares[0][:, None], shares[1][None, :], np.outer(*masses))


def block_means(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Return Psi_11, Psi_12 and Psi_22; as the kernel is 0 or 1, v^2 = Psi - Psi^2."""
    return p**2 + (1 - p) ** 2, p * q + (1 - p) * (1 - q), q**2 + (1 - q) ** 2


def separation_and_variance(p: Any, q: Any) -> tuple[Any, Any]:
    """Return gamma^2 and vbar^2 for clusters of equal size."""
    first, mixed, second = block_means(p, q)
    gamma2 = ((first - mixed) ** 2 + (second - mixed) ** 2) / 2
    return gamma2, sum(w * (x - x**2) for w, x in ((0.25, first), (0.5, mixed), (0.25, second)))


def _sizes(*sizes: int, p: float = 0.9, q: float = 0.2) -> tuple[Setting, ...]:
    return tuple(
        Setting(f"1{{y = z}}, p={p:g}, q={q:g}, n_k={m}, t={t:g}", numbers={"t": t, "p": p, "q": q}, shapes={"m": m})
        for m in sizes
        for t in (1.7, 2.0)
    )


def _empirical_pairs() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, sides: float = 2.0) -> tuple[float, float]:
        """The distribution functions of pairs differ by twice the Kolmogorov distance of one sample at most."""
        m, log = setting.shapes["m"], setting.numbers["log"]
        return float(stats.kstwo.logsf(math.sqrt((math.log(sides) + log) / (2 * m)), m)), -log

    settings = tuple(
        Setting(f"n_k={m}, delta=e^-{log:g}", numbers={"log": log}, shapes={"m": m})
        for m in (5, 100, 2000)
        for log in (2.0, 8.0)
    )
    return Check(
        corrected=Form(probability(), settings),
        controls=(Control("one side for two", probability(sides=1.0), settings[2:], "wrong factor"),),
    )


def _proposition_2() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, as_printed: bool = True, power: float = 0.0) -> tuple[float, float]:
        m, n = setting.shapes["m"], setting.numbers
        given = {"bound": 1.0, "smallest": m, "num_clusters": 2, "t": n["t"], "as_printed": as_printed}
        means, variances = concentration.block_means(**given), concentration.block_variances(**given)
        drawn, outside = two_clusters(m, n["p"], n["q"]), np.zeros((), bool)
        for psi, true in zip(block_means(drawn.first, drawn.second), block_means(n["p"], n["q"]), strict=True):
            outside = outside | (np.abs(psi - true) > m**power * means.value)
            outside = outside | (np.abs(psi - psi**2 - (true - true**2)) > m**power * variances.value)
        return laws.log_of(float(np.sum(drawn.chances * outside))), math.log(1 - means.probability)

    settings = _sizes(2, 20, 400)
    return Check(
        printed=Form(probability(), settings),
        corrected=Form(probability(as_printed=False), settings),
        controls=(Control("1 / n_k for the root", probability(power=-0.5), settings, "wrong power"),),
    )


def _mean_of_signs(formula: Callable[..., Bound], *others: str, name: str, factor: float, control: str) -> Check:
    """Return the check for h = (y + z) / 2 and signs, where the statistic is the mean of all of them.

    `others` names the size of the second sample, which is that of the first, where there is one.
    """

    @parametrized(Exact)
    def probability(setting: Setting, factor: float = 1.0, as_printed: bool = False) -> tuple[float, float]:
        n, far = setting.shapes["n"], setting.numbers["t"]
        right = formula(bound=1.0, num_points=n, **dict.fromkeys(others, n), t=far, as_printed=as_printed)
        size = n * (1 + len(others))
        total = 2 * np.arange(size + 1) - size
        outside = stats.binom.pmf(np.arange(size + 1), size, 0.5) @ (np.abs(total) > factor * right.value * size)
        return laws.log_of(float(outside)), math.log(1 - right.probability)

    settings = tuple(
        Setting(f"h = (y + z) / 2, signs, {name}={n}, t={far:g}", numbers={"t": far}, shapes={"n": n})
        for n in (20, 400)
        for far in (1.0, 2.0, 3.0)
    )
    return Check(
        printed=Form(probability(as_printed=True), settings),
        corrected=Form(probability(), settings),
        controls=(Control(control, probability(factor=factor), settings, "wrong factor"),),
    )


def _one_sample() -> Check:
    return _mean_of_signs(concentration.u_statistic, name="n", factor=0.5, control="half of the deviation")


def _two_samples() -> Check:
    formula = concentration.two_sample_statistic
    return _mean_of_signs(formula, "num_others", name="n=m", factor=1 / 3, control="a third of the deviation")


def _bias() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, formula: Callable[[float], float]) -> np.ndarray:
        """The bias of Psi_kk, in units of the corrected one."""
        m, p = setting.shapes["m"], setting.numbers["p"]
        count = np.arange(m + 1)
        mean, true = stats.binom.pmf(count, m, p) @ block_means(count / m, 0.0)[0], block_means(p, 0.0)[0]
        return np.array([(mean - true) * m / (1 - true) - formula(m)])

    settings = tuple(
        Setting(f"1{{y = z}}, p={p:g}, n_k={m}", numbers={"p": p}, shapes={"m": m}) for m in (2, 50) for p in (0.5, 0.9)
    )
    one_less = residual(formula=lambda m: m / (m - 1))
    return Check(
        printed=Form(residual(formula=lambda m: 0.0), settings),
        corrected=Form(residual(formula=lambda m: 1.0), settings),
        controls=(Control("1 / (n_k - 1) for 1 / n_k", one_less, settings, "n for n - 1"),),
    )


def _display() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, allowed: Callable[[float], float]) -> tuple[float, float]:
        """Two points of 10,000 equally likely values, h = 1 where they agree and -1 elsewhere: Psi is 0 or 1."""
        far, agree = setting.numbers["t"], 1e-4
        outside = [abs(psi - (2 * agree - 1)) > allowed(far) for psi in (0.0, 1.0)]
        return laws.log_of((1 - agree) * outside[0] + agree * outside[1]), math.log(2) - far**2

    settings = (Setting("two points, 10,000 values, t=0.99", numbers={"t": 0.99}),)
    unbiased = probability(allowed=lambda far: far)
    return Check(
        printed=Form(probability(allowed=lambda far: far / 2 * math.sqrt(8 / 2)), settings),
        corrected=Form(probability(allowed=lambda far: far / 2 * math.sqrt(4) + 2 / 2), settings),
        controls=(Control("without the bias", unbiased, settings, "term left out"),),
    )


def _eq30() -> Check:
    @parametrized(Exact)
    def probability(setting: Setting, as_printed: bool = True, power: float = 0.0) -> tuple[float, float]:
        m, n = setting.shapes["m"], setting.numbers
        gamma2, vbar2 = separation_and_variance(n["p"], n["q"])
        given = {"bound": 1.0, "min_share": 0.5, "num_points": 2 * m, "num_clusters": 2, "t": n["t"]}
        low = concentration.empirical_separation(gamma2=gamma2, **given, as_printed=as_printed)
        high = concentration.empirical_variance(vbar2=vbar2, **given, as_printed=as_printed)
        drawn = two_clusters(m, n["p"], n["q"])
        separation, variance = separation_and_variance(drawn.first, drawn.second)
        outside = gamma2 - separation > m**power * (gamma2 - low.value)
        outside = outside | (variance - vbar2 > m**power * (high.value - vbar2))
        return laws.log_of(float(np.sum(drawn.chances * outside))), math.log(1 - low.probability)

    settings = _sizes(20, 400, 20_000)
    return Check(
        printed=Form(probability(), settings),
        corrected=Form(probability(as_printed=False), settings),
        controls=(Control("1 / m for the root", probability(power=-0.5), settings[-2:], "wrong power"),),
    )


def _corollary_1() -> Check:
    @parametrized(Inequality)
    def sides(setting: Setting, factor: float = 1.0) -> Pairs:
        """Theorem 3 at the worst empirical parameters that (30) allows, in units of the corrected bound.

        With what is printed in both the theorem says less than the corollary: the constant is lost on the way.
        """
        b, far, share, n = 1.0, 2.5, 0.5, setting.numbers["n"]
        gamma2, vbar2 = setting.numbers["gamma2"], 1e-9
        model: dict[str, Any] = {"num_clusters": 2, "lipschitz": 1.0, "noise": 1.0, "op_norm": 1.0}
        model |= {"dim": setting.numbers["dim"], "num_points": n, "t": far}
        lost = far * b**2 / math.sqrt(share * n)
        least, most = gamma2 - 24 * lost, vbar2 + 9 * lost
        empirical = {"gamma2": least, "gamma_tilde2": share * least, "vbar2": most}
        theorem = functools.partial(concentration.misclassification, **model, **empirical)
        population = {"gamma2": gamma2, "gamma_tilde2": share * gamma2, "vbar2": vbar2, "bound": b, "min_share": share}
        corollary = functools.partial(concentration.misclassification_population, **model, **population)
        right, printed = corollary(), corollary(as_printed=True)
        unit, less = float(right.value), Bound(printed.value / right.value, 1.0, printed.valid, printed.source)
        claimed = Bound(factor, 1.0, right.valid, right.source)
        return [(float(theorem().value) / unit, claimed), laws.at_least(theorem(as_printed=True).value / unit, less)]

    settings = tuple(
        Setting(f"gamma2={gamma2:g}, n={n:g}, d={dim:g}", numbers={"gamma2": gamma2, "n": n, "dim": dim})
        for gamma2, n, dim in ((0.2, 1e12, 1e9), (0.5, 1e11, 1e6))
    )
    return Check(
        corrected=Form(sides(), settings),
        controls=(Control("a fourth of it", sides(factor=0.25), settings, "wrong factor"),),
    )
