"""amini2021: U-statistics and parameters of blocks, empirical against population, by exact laws (Section 3.3)."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021.exact import Pairs

PAPER = "amini2021"


# ---------------------------------------------------------------------------------------------------------- statistics


def _outside(setting: Setting, right: Bound, factor: float, size: int) -> tuple[float, float]:
    """Return log P(|mean of signs| > value) and the log of what is claimed."""
    total = 2 * np.arange(size + 1) - size
    far = stats.binom.pmf(np.arange(size + 1), size, 0.5) @ (np.abs(total) > factor * right.value * size)
    return exact.log_of(float(far)), math.log(1 - right.probability)


def _one_sample() -> Check:
    def probability(factor: float, as_printed: bool = False) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            n, far = setting.shapes["n"], setting.numbers["t"]
            right = concentration.u_statistic(bound=1.0, num_points=n, t=far, as_printed=as_printed)
            return _outside(setting, right, factor, n)

        return Exact(check)

    settings = tuple(
        Setting(f"h = (y + z) / 2, signs, n={n}, t={far:g}", numbers={"t": far}, shapes={"n": n})
        for n in (20, 400)
        for far in (1.0, 2.0, 3.0)
    )
    return Check(
        printed=Form(probability(1.0, True), settings),
        corrected=Form(probability(1.0), settings),
        controls=(Control("half of the deviation", probability(0.5), settings, kind="wrong factor"),),
    )


def _two_samples() -> Check:
    def probability(factor: float, as_printed: bool = False) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            n, far = setting.shapes["n"], setting.numbers["t"]
            right = concentration.two_sample_statistic(
                bound=1.0, num_points=n, num_others=n, t=far, as_printed=as_printed
            )
            return _outside(setting, right, factor, 2 * n)

        return Exact(check)

    settings = tuple(
        Setting(f"h = (y + z) / 2, signs, n=m={n}, t={far:g}", numbers={"t": far}, shapes={"n": n})
        for n in (20, 400)
        for far in (1.0, 2.0, 3.0)
    )
    return Check(
        printed=Form(probability(1.0, True), settings),
        corrected=Form(probability(1.0), settings),
        controls=(Control("a third of the deviation", probability(1 / 3), settings, kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------------------ Proposition 2


@dataclasses.dataclass(frozen=True)
class _Pair:
    """Two clusters of m points y in {0, 1} with chances p and q of a 1, and the kernel 1{y = z}: b = 1, d_0 = 1.

    `first` and `second` are the possible shares of ones, (a, 1) and (1, c), and `chances` (a, c) how often they occur.
    What is left out has a chance below 1e-12.
    """

    first: np.ndarray
    second: np.ndarray
    chances: np.ndarray


def _pair(m: int, p: float, q: float) -> _Pair:
    shares, masses = [], []
    for chance in (p, q):
        spread = 8 * math.sqrt(m * chance * (1 - chance))
        count = np.arange(max(0, math.floor(m * chance - spread)), min(m, math.ceil(m * chance + spread)) + 1)
        shares.append(count / m)
        masses.append(stats.binom.pmf(count, m, chance))
    return _Pair(shares[0][:, None], shares[1][None, :], np.outer(*masses))


def _means(p: Any, q: Any) -> tuple[Any, Any, Any]:
    """Return Psi_11, Psi_12 and Psi_22; as the kernel is 0 or 1, v^2 = Psi - Psi^2."""
    return p**2 + (1 - p) ** 2, p * q + (1 - p) * (1 - q), q**2 + (1 - q) ** 2


def _parameters(p: Any, q: Any) -> tuple[Any, Any]:
    """Return gamma^2 and vbar^2 for clusters of equal size."""
    first, mixed, second = _means(p, q)
    gamma2 = ((first - mixed) ** 2 + (second - mixed) ** 2) / 2
    return gamma2, sum(w * (x - x**2) for w, x in ((0.25, first), (0.5, mixed), (0.25, second)))


def _blocks(m: int, t: float, p: float = 0.9, q: float = 0.2) -> Setting:
    numbers = {"t": t, "p": p, "q": q}
    return Setting(f"1{{y = z}}, p={p:g}, q={q:g}, n_k={m}, t={t:g}", numbers=numbers, shapes={"m": m})


def _proposition_2() -> Check:
    def probability(as_printed: bool, power: float = 0.0) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            m, n = setting.shapes["m"], setting.numbers
            words = {"bound": 1.0, "smallest": m, "num_clusters": 2, "t": n["t"]}
            means = concentration.block_means(**words, as_printed=as_printed)
            variances = concentration.block_variances(**words, as_printed=as_printed)
            place, wrong = _pair(m, n["p"], n["q"]), np.zeros((), bool)
            for found, true in zip(_means(place.first, place.second), _means(n["p"], n["q"]), strict=True):
                wrong = wrong | (np.abs(found - true) > m**power * means.value)
                change = np.abs(found - found**2 - (true - true**2))
                wrong = wrong | (change > m**power * variances.value)
            return exact.log_of(float(np.sum(place.chances * wrong))), math.log(1 - means.probability)

        return Exact(check)

    settings = tuple(_blocks(m, t) for m in (2, 20, 400) for t in (1.7, 2.0))
    return Check(
        printed=Form(probability(True), settings),
        corrected=Form(probability(False), settings),
        controls=(Control("1 / n_k for the root", probability(True, -0.5), settings, kind="wrong power"),),
    )


def _bias() -> Check:
    def residual(formula: Callable[[float, int], float]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            m, p = setting.shapes["m"], setting.numbers["p"]
            count = np.arange(m + 1)
            mean = stats.binom.pmf(count, m, p) @ _means(count / m, 0.0)[0]
            true = _means(p, 0.0)[0]
            return np.array([(mean - true) * m / (1 - true) - formula(true, m)])

        return Identity(check)

    settings = tuple(Setting(f"1{{y = z}}, p={p:g}, n_k={m}", numbers={"p": p}, shapes={"m": m})
                     for m in (2, 50) for p in (0.5, 0.9))  # fmt: skip
    return Check(
        printed=Form(residual(lambda true, m: 0.0), settings),
        corrected=Form(residual(lambda true, m: 1.0), settings),
        controls=(
            Control("1 / (n_k - 1) for 1 / n_k", residual(lambda true, m: m / (m - 1)), settings, kind="n for n - 1"),
        ),
    )


def _display() -> Check:
    values = 10_000

    def probability(allowed: Callable[[float, int], float]) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """Two points of equally likely values, h = 1 where they agree and -1 elsewhere: Psi is 0 or 1."""
            far = setting.numbers["t"]
            true, agree = -1 + 2 / values, 1 / values
            wrong = [abs(found - true) > allowed(far, 2) for found in (0.0, 1.0)]
            return exact.log_of((1 - agree) * wrong[0] + agree * wrong[1]), math.log(2) - far**2

        return Exact(check)

    def biased(far: float, m: int) -> float:
        return far * (m - 1) / m * math.sqrt(4 / (m - 1)) + 2 / m

    settings = (Setting("two points, 10,000 values, t=0.99", numbers={"t": 0.99}),)
    return Check(
        printed=Form(probability(lambda far, m: far * (m - 1) / m * math.sqrt(8 / m)), settings),
        corrected=Form(probability(biased), settings),
        controls=(
            Control(
                "without the bias", probability(lambda far, m: biased(far, m) - 2 / m), settings, kind="term left out"
            ),
        ),
    )


def _eq30() -> Check:
    def probability(as_printed: bool, power: float = 0.0) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            m, n = setting.shapes["m"], setting.numbers
            gamma2, vbar2 = _parameters(n["p"], n["q"])
            words = {"bound": 1.0, "min_share": 0.5, "num_points": 2 * m, "num_clusters": 2, "t": n["t"]}
            low = concentration.empirical_separation(gamma2=gamma2, **words, as_printed=as_printed)
            high = concentration.empirical_variance(vbar2=vbar2, **words, as_printed=as_printed)
            place = _pair(m, n["p"], n["q"])
            found = _parameters(place.first, place.second)
            wrong = gamma2 - found[0] > m**power * (gamma2 - low.value)
            wrong = wrong | (found[1] - vbar2 > m**power * (high.value - vbar2))
            return exact.log_of(float(np.sum(place.chances * wrong))), math.log(1 - low.probability)

        return Exact(check)

    settings = tuple(_blocks(m, t) for m in (20, 400, 20_000) for t in (1.7, 2.0))
    return Check(
        printed=Form(probability(True), settings),
        corrected=Form(probability(False), settings),
        controls=(Control("1 / m for the root", probability(True, -0.5), settings[-2:], kind="wrong power"),),
    )


# -------------------------------------------------------------------------------------------------------- Corollary 1


def _corollary_1() -> Check:
    def sides(as_printed: bool, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Theorem 3 at the worst empirical parameters that (30) allows, in units of the corrected bound."""
            del key
            b, far, share, n = 1.0, 2.5, 0.5, setting.numbers["n"]
            gamma2, vbar2 = setting.numbers["gamma2"], 1e-9
            model: dict[str, Any] = {"num_clusters": 2, "lipschitz": 1.0, "noise": 1.0, "op_norm": 1.0}
            model |= {"dim": setting.numbers["dim"], "num_points": n, "t": far}
            lost = far * b**2 / math.sqrt(share * n)
            least = gamma2 - 24 * lost
            theorem = concentration.misclassification(
                **model, gamma2=least, gamma_tilde2=share * least, vbar2=vbar2 + 9 * lost, as_printed=as_printed
            )
            corollary = functools.partial(
                concentration.misclassification_population,
                **model,
                gamma2=gamma2,
                gamma_tilde2=share * gamma2,
                vbar2=vbar2,
                bound=b,
                min_share=share,
            )
            right, unit = corollary(as_printed=as_printed), float(corollary().value)
            claimed = Bound(factor * right.value / unit, 1.0, right.valid, right.source)
            return [(float(theorem.value) / unit, claimed)]

        return Inequality(check)

    settings = tuple(
        Setting(f"gamma2={gamma2:g}, n={n:g}, d={dim:g}", numbers={"gamma2": gamma2, "n": n, "dim": dim})
        for gamma2, n, dim in ((0.2, 1e12, 1e9), (0.5, 1e11, 1e6))
    )
    return Check(
        printed=Form(sides(True), settings),
        corrected=Form(sides(False), settings),
        controls=(Control("a fourth of it", sides(False, 0.25), settings, kind="wrong factor"),),
    )
