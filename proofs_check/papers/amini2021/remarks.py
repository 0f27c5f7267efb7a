"""amini2021: what Sections 1 and 2 assert besides their theorems: remarks, limits, orders, and the cited (7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from scipy import special, stats

from jaxkern.bounds import Bound, concentration
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers.amini2021 import exact, inner
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.amini2021.places import Scope
from proofs_check.papers.shared import always

PAPER = "amini2021"

NOISE, TAU = 1.5, 2.0


def _drawn(key: jax.Array) -> np.random.Generator:
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def _norm(E: np.ndarray) -> float:
    return float(np.linalg.norm(E, 2))


# ----------------------------------------------------------------------------------------------------------- Section 1


def _decomposition() -> Check:
    direction = np.array([0.6, 0.8, 0.0])
    along = np.outer(direction, direction)
    across = np.eye(3) - along
    general = np.array([[2.0, 0.5, 0.3], [0.5, 1.0, -0.4], [0.3, -0.4, 3.0]])

    def uncorrelated(key: jax.Array, setting: Setting) -> np.ndarray:
        """The covariance of the noise along the mean and of what stays with the signal, over |Sigma|."""
        del key
        Sigma = np.asarray(setting.population, np.float64)
        return np.abs(along @ Sigma @ across) / _norm(Sigma)

    def sides(factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Given the signal the noise has the Schur complement as its covariance, which is 1 / (u' Sigma^-1 u)."""
            del key
            Sigma = np.asarray(setting.population, np.float64)
            cross = along @ Sigma @ across
            given = _norm(along @ Sigma @ along - cross @ np.linalg.pinv(across @ Sigma @ across) @ cross.T)
            source = "amini2021, Section 1, the decomposition"
            return [
                (given, always(factor * _norm(along @ Sigma @ along), source)),
                (abs(given - 1 / float(direction @ np.linalg.solve(Sigma, direction))), always(0, source)),
            ]

        return Inequality(check)

    isotropic = (Setting("Sigma = 2 I, d=3", 2.0 * np.eye(3)),)
    anisotropic = (Setting("a general Sigma, d=3", general),)
    return Check(
        printed=Form(Identity(uncorrelated), isotropic),
        corrected=Form(sides(1.0), anisotropic),
        controls=(
            Control("a general Sigma", Identity(uncorrelated), anisotropic, kind="hypothesis broken"),
            Control("three quarters of it", sides(0.75), anisotropic, kind="wrong factor"),
        ),
    )


def _eigenvalues() -> Check:
    def kernel_and_mean(rng: np.random.Generator, name: str) -> tuple[np.ndarray, np.ndarray]:
        n, d, noise = 12, 3, 0.7
        means = rng.standard_normal((n, d))
        X = means + noise / math.sqrt(d) * rng.standard_normal((n, d))
        if name == "x + y":
            W = X - means
            return W[:, :1] + W[:, :1].T, np.zeros((n, n))
        square = np.sum((X[:, None] - X) ** 2, axis=2)
        s2 = 1 + 2 * noise**2 / d
        mean = s2 ** (-d / 2) * np.exp(-np.sum((means[:, None] - means) ** 2, axis=2) / (2 * s2))
        np.fill_diagonal(mean, 1)
        return np.exp(-square / 2), mean

    def sides(pick: Callable[[np.ndarray], float], factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            rng = _drawn(key)
            pairs = []
            for _ in range(20):
                K, mean = kernel_and_mean(rng, setting.name)
                moved = np.linalg.eigvalsh(K) - np.linalg.eigvalsh(mean)
                unit = pick(np.linalg.eigvalsh(K - mean))
                pairs.append((pick(moved) / unit, always(factor, "amini2021, Section 1.1")))
            return pairs

        return Inequality(check)

    def largest(values: np.ndarray) -> float:
        return float(np.max(np.abs(values)))

    def together(values: np.ndarray) -> float:
        return float(np.sqrt(np.sum(values**2)))

    places = (Setting("Gaussian kernel"), Setting("x + y"))
    return Check(
        printed=Form(sides(largest, 1.0), places),
        corrected=Form(sides(together, 1.0), places),
        controls=(Control("nine tenths of it", sides(largest, 0.9), places, kind="wrong factor"),),
    )


def _jointly() -> Check:
    def sides(factor: float, *, back: bool) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """Quotients of differences: over |x - x'| + |y - y'|, or `back` over the norm of the pair."""
            rng = _drawn(key)
            pairs = []
            for _ in range(500):
                x, y, move = rng.standard_normal((3, 2))
                steps = (np.concatenate([move, move]), rng.standard_normal(4))
                for step in steps:
                    a, b = np.concatenate([x, y]), np.concatenate([x, y]) + step
                    if setting.name == "x + y":
                        change = abs(step[0] + step[2])
                    else:
                        change = abs(float(np.linalg.norm(a) - np.linalg.norm(b)))
                    apart = float(np.linalg.norm(step[:2]) + np.linalg.norm(step[2:]))
                    over = float(np.linalg.norm(step)) if back else apart
                    pairs.append((change / over, always(factor, "amini2021, after (2)")))
            step = np.array([1.0, 0.0, 1.0, 0.0])
            if back and setting.name == "x + y":
                pairs.append((2 / float(np.linalg.norm(step)), always(factor, "amini2021, after (2)")))
            return pairs

        return Inequality(check)

    joint, both = (Setting("|(x, y)|"),), (Setting("|(x, y)|"), Setting("x + y"))
    return Check(
        printed=Form(sides(1.0, back=False), joint),
        corrected=Form(sides(math.sqrt(2), back=True), both),
        controls=(Control("1.4 for sqrt(2)", sides(1.4, back=True), both[1:], kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------- Proposition 1, Remark 1


def _any_share() -> Check:
    def probability(power: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """X is -2, 0 or 2 and s = L = 1: |K - E K| is the larger of N - p and p, N ~ Bin(n, p)."""
            n, p = setting.shapes["n"], setting.numbers["p"]
            count = np.arange(n + 1)
            wrong = np.maximum(count - p, p) <= n * p**power / 4
            return exact.log_of(float(stats.binom.pmf(count, n, p) @ wrong)), -n * p**2 / 2

        return Exact(check)

    places = tuple(
        Setting(f"P(|X| > s)={p:g}, n={n}", numbers={"p": p}, shapes={"n": n})
        for p in (0.05, 0.3, 0.5, 1.0)
        for n in (math.ceil(4 / p), 4 * math.ceil(4 / p))
    )
    return Check(
        corrected=Form(probability(1.0), places),
        controls=(Control("1 for p", probability(0.0), places[:1], kind="wrong power"),),
    )


def _mean_norm(dim: int, variance: float, offset: float) -> float:
    """Return E |Z| for Z ~ N(m, variance I) in R^dim, |m| = offset."""
    ratio = math.exp(math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2))
    return float(math.sqrt(2 * variance) * ratio * special.hyp1f1(-0.5, dim / 2, -(offset**2) / (2 * variance)))


def _eq7() -> Check:
    constant = 100.0
    source = "amini2021, (7)"

    def printed(key: jax.Array, setting: Setting) -> Pairs:
        """K = |x - y|, equal means, Sigma = I / d: E (K - tr Sigma)^2 against C (tr Sigma^2 + C1 |Sigma|)."""
        del key
        d = setting.shapes["d"]
        mean = _mean_norm(d, 2 / d, 0.0)
        return [(2 - 2 * mean + 1, always(constant * (1 + constant) / d, source))]

    def sides(factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """E (|X - Y| - a)^2 = 2 a (a - E |X - Y|), a^2 = |m|^2 + 2 tr Sigma, in units of the bound."""
            del key
            d, offset = setting.shapes["d"], setting.numbers["offset"]
            a2 = offset**2 + 2 * d
            a = math.sqrt(a2)
            found = 2 * a * (a - _mean_norm(d, 2.0, offset))
            sharp = 2 * a * 2 / (a + math.sqrt(a2 - 2))
            return [
                (found / sharp, always(factor, source + ", corrected")),
                (sharp / 4, always(1, source + ", corrected")),
            ]

        return Inequality(check)

    far = Setting("d=3, means at distance 30", numbers={"offset": 30.0}, shapes={"d": 3})
    places = (
        *(
            Setting(f"d={d}, means at distance {m:g}", numbers={"offset": m}, shapes={"d": d})
            for d in (1, 10, 400)
            for m in (0.0, 3.0)
        ),
        far,
    )
    return Check(
        printed=Form(Inequality(printed), (Setting("|x - y|, Sigma = I / d, d=10^6", shapes={"d": 10**6}),)),
        corrected=Form(sides(1.0), places),
        controls=(Control("nine tenths of it", sides(0.9), (far,), kind="wrong factor"),),
    )


# ----------------------------------------------------------------------------------------------------------- Example 1


def _limit() -> Check:
    r = np.linspace(0, 12, 601)
    source = "amini2021, Example 1, the limits"

    def kernel(scale: float) -> np.ndarray:
        return np.exp(-(r**2) / (2 * scale**2))

    def sides(target: float, factor: float = 1.0) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|f_(s tau) - f_target| in units of the bound, and s^-d against exp(-sigma^2 / tau^2) in its units."""
            del key
            d = setting.shapes["d"]
            a = NOISE**2 / TAU**2
            right = 2 * a / (math.e * d)
            found = float(np.max(np.abs(kernel(TAU * math.sqrt(1 + 2 * a / d)) - kernel(target))))
            excess = math.expm1(a - d / 2 * math.log1p(2 * a / d))  # s^-d / exp(-a) - 1
            return [
                (found / right, always(factor, source)),
                (excess / math.expm1(a**2 / d), always(factor, source)),
                exact.at_least(excess, always(0, source)),
            ]

        return Inequality(check)

    places = tuple(Setting(f"sigma=1.5, tau=2, d={d}", shapes={"d": d}) for d in (2, 100, 10_000))
    return Check(
        printed=Form(sides(1.0), places[-1:]),
        corrected=Form(sides(TAU), places),
        controls=(Control("nine tenths of both", sides(TAU, 0.9), places[-1:], kind="wrong factor"),),
    )


def _rescaling() -> Check:
    def residual(power: float) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """Deviations of a coordinate of sigma and a bandwidth of tau d^power, against (10)."""
            del key
            d = setting.shapes["d"]
            words: dict[str, Any] = {"dim": d, "num_points": 50, "t": 1.3, "as_printed": True}
            found = concentration.gaussian_kernel(noise=NOISE * math.sqrt(d), lengthscale=TAU * d**power, **words)
            scaled = concentration.gaussian_kernel(noise=NOISE, lengthscale=TAU, **words)
            # The kernels themselves: sqrt(d) times the points and the bandwidth.
            rng = _drawn(jax.random.key(d))
            x, y = rng.standard_normal((2, 5))
            same = -np.sum((x - y) ** 2) / (2 * TAU**2)
            wide = -np.sum((math.sqrt(d) * (x - y)) ** 2) / (2 * (TAU * d**power) ** 2)
            return np.array([found.value / scaled.value - 1, wide / same - 1])

        return Identity(check)

    places = tuple(Setting(f"d={d}", shapes={"d": d}) for d in (4, 1000))
    return Check(
        printed=Form(residual(0.5), places),
        controls=(Control("tau d for tau sqrt(d)", residual(1.0), places, kind="wrong power"),),
    )


# --------------------------------------------------------------------------------------------------------- Section 2.2


def _mean() -> Check:
    def residual(diagonal: Callable[[np.ndarray], float]) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """E K over all 64 choices of signs W (2, 3), against the formula."""
            del setting
            rng = _drawn(key)
            n, d = 3, 2
            M, roots = rng.standard_normal((d, n)), rng.standard_normal((n, d, d))
            total = np.zeros((n, n))
            for number in range(2 ** (n * d)):
                W = 1.0 - 2 * ((number >> np.arange(n * d)) & 1).reshape(n, d)
                X = M + np.einsum("ijk,ik->ji", roots, W)
                total += X.T @ X / 2 ** (n * d)
            formula = np.diag([diagonal(S @ S.T) for S in roots]) + M.T @ M
            return (total - formula) / _norm(total)

        return Identity(check)

    places = (Setting("random signs, n=3, d=2"),)
    return Check(
        printed=Form(residual(lambda Sigma: float(np.trace(Sigma))), places),
        controls=(
            Control("|Sigma_i| for its trace", residual(_norm), places, kind="swapped constants"),
            Control("no diagonal", residual(lambda Sigma: 0.0), places, kind="term left out"),
        ),
    )


def _inner_places(deltas: Sequence[float]) -> tuple[Setting, ...]:
    return tuple(
        inner._model(t.POINTS, dim, norm, 64).setting(
            f"delta={delta:g}", {"dim": float(dim), "mean_norm": norm, "operator": 1.0, "t": delta}
        )
        for dim, norm in ((16, 0.0), (16, 20.0), (64, 40.0))
        for delta in deltas
    )


def _eq14(scope: Scope) -> Check:
    upper = max(4 / inner.KAPPA**2, 6 / inner.KAPPA)
    """From Theorem B with u <= sqrt(n) and rank M <= n."""

    def shape(setting: Setting) -> Bound:
        n, d, size = (setting.numbers[name] for name in ("n", "dim", "mean_norm"))
        value = inner.KAPPA**2 * (n + math.sqrt(n * d)) + inner.KAPPA * math.sqrt(n) * size
        return Bound(value / n, 1 - setting.numbers["t"], True, "amini2021, (14), shape")

    def forgotten(setting: Setting) -> Bound:
        right = shape(Setting("", numbers={**setting.numbers, "mean_norm": 0.0}))
        return exact.rescaled(right, 0.4)

    places = _inner_places(scope.deltas)
    return Check(
        printed=Form(Calibrated(t.gram_error, shape, 0.0, upper), places),
        controls=(
            Control(
                "a tenth of the constant",
                Calibrated(t.gram_error, shape, 0.0, upper / 10),
                places,
                kind="wrong factor",
            ),
            Control(
                "without the means",
                Calibrated(t.gram_error, forgotten, 0.0, 4 / inner.KAPPA**2),
                places[-len(scope.deltas) :],
                kind="term left out",
            ),
        ),
    )


def _example_2() -> Check:
    def residual(power: float) -> Identity:
        def check(key: jax.Array, setting: Setting) -> np.ndarray:
            """The shape of (14) over n, at sigma_inf = sigma / sqrt(d) and kappa = 1, against Example 2."""
            del key
            n, d, size = setting.numbers["n"], setting.numbers["d"], setting.numbers["M"]
            s = NOISE / math.sqrt(d)
            whole = (s**2 * (n + math.sqrt(n * d)) + s * math.sqrt(n) * size) / n
            said = NOISE**2 * (1 / d + (n * d) ** -0.5) + NOISE * (n * d) ** power * size
            return np.array([said / whole - 1])

        return Identity(check)

    places = tuple(
        Setting(f"n={n:g}, d={d:g}, |M|={size:g}", numbers={"n": n, "d": d, "M": size})
        for n, d, size in ((100.0, 10.0, 5.0), (50.0, 2000.0, 30.0))
    )
    return Check(
        printed=Form(residual(-0.5), places),
        controls=(Control("1 / (n d) for its root", residual(-1.0), places, kind="wrong power"),),
    )


def _relative() -> Check:
    def sides(power: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            """|M|^power |K - E K| / |E K| against the limit of its upper bound, which is fixed."""
            rng = _drawn(key)
            n, d = 30, 10
            W, direction = rng.standard_normal((d, n)), np.outer(np.eye(1, d)[0], np.full(n, n**-0.5))
            pairs = []
            for size in (10.0, 100.0, 1000.0):
                M = size * direction
                K, mean = (M + W).T @ (M + W), M.T @ M + d * np.eye(n)
                right = 2 * _norm(W) + _norm(W.T @ W - d * np.eye(n)) / 10
                found = size**power * _norm(K - mean) / _norm(mean)
                pairs.append((found / right, always(1, "amini2021, after (14)")))
            return pairs

        return Inequality(check)

    places = (Setting("rank one, n=30, d=10"),)
    return Check(
        printed=Form(sides(1.0), places), controls=(Control("1 / |M|^2", sides(2.0), places, kind="wrong power"),)
    )


def _centred(scope: Scope) -> Check:
    def setting(dim: int, delta: float) -> Setting:
        return inner._model(t.POINTS, dim, 0.0, 64).setting(
            f"delta={delta:g}",
            {"dim": float(dim), "operator": 1.0, "u": math.sqrt(2 * math.log(3 / delta)), "t": delta},
        )

    places = tuple(setting(dim, delta) for dim in (64, 16) for delta in scope.deltas)

    def shape(place: Setting) -> Bound:
        n, d = place.numbers["n"], place.numbers["dim"]
        return Bound(1 + math.sqrt(d / n), 1 - place.numbers["t"], True, "amini2021, Section 2.2, shape")

    def over(key: jax.Array, population: Any, numbers: t.Numbers) -> jax.Array:
        return 1 / t.gram_error(key, population, numbers)

    def lower(factor: float) -> Callable[[Setting], Bound]:
        def bound(place: Setting) -> Bound:
            n, d, u = (place.numbers[name] for name in ("n", "dim", "u"))
            first = (math.sqrt(d - 0.5) - u) * (math.sqrt(n - 1.5) - u)
            second = (math.sqrt(n + d - 1.5) - u) ** 2 - d
            return Bound(n / (factor * max(first, second)), 1 - place.numbers["t"], True, "amini2021, Section 2.2")

        return bound

    return Check(
        printed=Form(Calibrated(t.gram_error, shape, 0.0, 4.0), places),
        corrected=Form(Tail(over, lower(1.0)), places),
        controls=(
            Control("ten times the lower bound", Tail(over, lower(10.0)), places[:1], kind="wrong factor"),
            Control("a tenth of the constant", Calibrated(t.gram_error, shape, 0.0, 0.4), places, kind="wrong factor"),
        ),
    )
