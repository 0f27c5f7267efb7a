"""amini2021: the inner product kernel, quadratic forms, and sub-exponential tails (Sections 2.2 and A.3)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Calibrated, Check, Control, Exact, Form, Inequality, Setting, Tail
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.amini2021.places import Scope
from proofs_check.papers.shared import always

PAPER = "amini2021"

KAPPA = math.sqrt(8 / 3)
"""The sub-Gaussian norm of N(0, 1), the smallest kappa with E exp(X^2 / kappa^2) <= 2."""

PROVED = (2 * math.sqrt(2 * KAPPA**2) + 2) / KAPPA**2
"""1 / c for Gaussian coordinates: v <= 2 kappa^2 scale^4 eta in `quadratic_form_gaussian`."""


def _means(num_points: int, dim: int, norm: float) -> np.ndarray:
    """Return (n, d) means of rank 2 and the given operator norm."""
    rng = np.random.default_rng(31)
    M = rng.standard_normal((num_points, 2)) @ rng.standard_normal((2, dim))
    return norm * M / np.linalg.norm(M, 2)


def _model(num_points: int, dim: int, norm: float, width: int | None = None) -> t.Model:
    """Return points N(mu_i, I) in R^dim with the inner product kernel, as rows of `width` numbers."""
    means = _means(num_points, dim, norm) @ np.eye(dim, width or dim)
    variances = t.isotropic(means, math.sqrt(dim), dim)
    return t.Model(f"d={dim}, |M|={norm:g}", kernels.Linear(), math.inf, means, variances)


# ---------------------------------------------------------------------------------------------------------- Theorem 2


def _theorem_2(scope: Scope) -> Check:
    n = 384
    c1 = math.log(4 / 0.3) / math.log(n)  # 4 n^-c1 = 0.3
    signs = (Setting(f"random signs, n=d={n}", None, {"u": 0.0}, {"n": n, "steps": 32}),)

    def printed(setting: Setting) -> Bound:
        words = {"kappa": 1 / math.sqrt(math.log(2)), "scale": 1, "mean_norm": 0, "dim": n, "num_points": n, "c2": 1.0}
        right = concentration.inner_product_kernel(**words, u=setting.numbers["u"], c1=c1, as_printed=True)
        return exact.rescaled(right, 1 / n)

    def bound(setting: Setting) -> Bound:
        given = {name: setting.numbers[name] for name in ("scale", "mean_norm", "mean_rank", "dim", "u")}
        right = concentration.inner_product_gaussian(**given, num_points=setting.numbers["n"])
        return t.per_point(right, setting)

    def places(*cases: tuple[int, float]) -> tuple[Setting, ...]:
        return tuple(
            _model(t.POINTS, dim, norm, 64).setting(
                f"delta={delta:g}",
                {
                    "dim": float(dim),
                    "mean_norm": norm,
                    "mean_rank": 2.0 * (norm > 0),
                    "u": math.sqrt(2 * math.log(3 / delta)),
                    "operator": 1.0,
                },
            )
            for dim, norm in cases
            for delta in scope.deltas
        )

    def forgotten(setting: Setting) -> Bound:
        return bound(Setting("", numbers={**setting.numbers, "mean_norm": 0.0}))

    return Check(
        printed=Form(Tail(t.signs_norm, printed), signs),
        corrected=Form(Tail(t.gram_error, bound), places((16, 0.0), (16, 20.0), (64, 40.0))),
        controls=(
            Control("without the means", Tail(t.gram_error, forgotten), places((64, 40.0)), kind="term left out"),
        ),
    )


def _limit() -> Check:
    def sides(limit: Callable[[np.ndarray, np.ndarray], float]) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            n, d, rank = (setting.shapes[name] for name in ("n", "d", "rank"))
            rng = np.random.default_rng(rank)
            W = rng.standard_normal((d, n))
            M = rng.standard_normal((d, rank)) @ rng.standard_normal((rank, n))
            M /= np.linalg.norm(M, 2)
            pairs = []
            for s in (0.03, 0.01):
                X = M / s + s * W
                E = X.T @ X - M.T @ M / s**2 - d * s**2 * np.eye(n)
                left = abs(float(np.linalg.norm(E, 2)) - limit(M, W))
                right = s**2 * float(np.linalg.norm(W.T @ W - d * np.eye(n), 2))
                pairs.append((left, always(right, "amini2021, Section 2.2, the limit")))
            return pairs

        return Inequality(check)

    places = tuple(Setting(f"rank {rank}, n=40, d=3", shapes={"n": 40, "d": 3, "rank": rank}) for rank in (1, 3))
    return Check(
        printed=Form(sides(lambda M, W: 2 * float(np.linalg.norm(M.T @ W, 2))), places),
        corrected=Form(sides(lambda M, W: float(np.linalg.norm(M.T @ W + W.T @ M, 2))), places),
        controls=(
            Control("|M'W|", sides(lambda M, W: float(np.linalg.norm(M.T @ W, 2))), places, kind="wrong factor"),
        ),
    )


def _log_below(n: int, level: float) -> float:
    """Return log P(|y| + |y_1| < level) for y ~ N(0, I) in R^n: the norm |b y' + y b'| for b = e_1."""
    a = np.linspace(0, level / 2, 20_001)
    values = 2 * stats.norm.pdf(a) * stats.chi2.cdf((level - a) ** 2 - a**2, n - 1)
    return exact.log_of(float(np.trapezoid(values, a)))


def _lower() -> Check:
    def probability(factor: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            n, u = setting.shapes["n"], setting.numbers["u"]
            right = concentration.inner_product_lower(mean_norm=1.0, mean_rank=1, num_points=n, u=u)
            return _log_below(n, factor * (right.value + u) - u), math.log(1 - right.probability)

        return Exact(check)

    def printed(setting: Setting) -> tuple[float, float]:
        n = setting.shapes["n"]
        return _log_below(n, math.sqrt(2 * n)), math.log(0.5)

    places = tuple(
        Setting(f"rank one, n={n}, u={u:g}", numbers={"u": u}, shapes={"n": n}) for n in (10, 1000) for u in (1.0, 2.5)
    )
    return Check(
        printed=Form(Exact(printed), (Setting("rank one, n=1000", shapes={"n": 1000}),)),
        corrected=Form(probability(1.0), places),
        controls=(Control("sqrt(2) times the root", probability(math.sqrt(2)), places, kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------------------ quadratic forms


def _with_form(model: t.Model, A: np.ndarray, tau: float, delta: float) -> Setting:
    S, means = (A + A.T) / 2, model.means
    numbers = {
        "tau": tau,
        "dim": float(means.shape[1]),
        "frobenius": float(np.linalg.norm(S)),
        "op_norm": float(np.linalg.norm(S, 2)),
    }
    numbers["mean_frobenius"] = float(np.linalg.norm(means.T @ S))
    numbers["mean_norm"] = float(np.linalg.norm(means, 2))
    setting = model.setting(f"delta={delta:g}", numbers)
    population = t.OnUse(lambda: {**model.population, "A": t.real(A)})
    return Setting(setting.name, population, setting.numbers, setting.shapes)


def _shape(spread: Callable[[Any], float], size: Callable[[Any], float]) -> Callable[[Setting], Bound]:
    """Return kappa^2 max(sqrt(spread tau), size tau), with probability 1 - 4 exp(-tau)."""

    def shape(setting: Setting) -> Bound:
        n, tau = setting.numbers, setting.numbers["tau"]
        value = KAPPA**2 * max(math.sqrt(spread(n) * tau), size(n) * tau)
        return Bound(value, 1 - 4 * math.exp(-tau), True, "amini2021, a quadratic form, shape")

    return shape


def _lemma_3(scope: Scope) -> Check:
    n = 12
    z = np.full(n, n**-0.5)
    models = (_model(n, 16, 0.0), _model(n, 16, 10.0))
    places = tuple(
        _with_form(model, np.outer(z, z), math.log(4 / delta), delta) for model in models for delta in scope.deltas
    )
    shape = _shape(lambda n: n["dim"] + (n["mean_norm"] / KAPPA) ** 2, lambda n: 1.0)

    def probability(factor: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            d, size, tau = setting.shapes["d"], setting.numbers["size"], setting.numbers["tau"]
            right = concentration.quadratic_form_gaussian(scale=1.0, frobenius=math.sqrt(d), mean_norm=size, tau=tau)
            # X z ~ N(M z, I) with |M z| = |M|
            law, mean, far = stats.ncx2(d, size**2) if size else stats.chi2(d), d + size**2, factor * right.value
            return exact.log_of(float(law.sf(mean + far) + law.cdf(mean - far))), math.log(1 - right.probability)

        return Exact(check)

    exactly = tuple(
        Setting(f"d={d}, |M z|={size:g}, tau={tau:g}", numbers={"size": size, "tau": tau}, shapes={"d": d})
        for d in (1, 16, 400)
        for size in (0.0, 10.0)
        for tau in (1.0, 4.0, 12.0)
    )
    return Check(
        printed=Form(Calibrated(t.form_error, shape, 0.0, PROVED), places),
        corrected=Form(probability(1.0), exactly),
        controls=(
            Control(
                "a tenth of the constant",
                Calibrated(t.form_error, shape, 0.0, PROVED / 10),
                places,
                kind="wrong factor",
            ),
            Control("half of the deviation", probability(0.5), exactly, kind="wrong factor"),
        ),
    )


def _theorem_6(scope: Scope) -> Check:
    n, d = 12, 16
    rng = np.random.default_rng(6)
    matrices = rng.standard_normal((n, n)), np.outer(np.arange(1.0, n + 1), np.ones(n)) / n
    models = (_model(n, d, 0.0), _model(n, d, 10.0))

    def places(level: float, **numbers: float) -> tuple[Setting, ...]:
        return tuple(
            Setting(f"A {name}, {s.name}", s.population, {**s.numbers, **numbers}, s.shapes)
            for model in models
            for name, A in zip(("random", "rank one"), matrices, strict=True)
            for delta in scope.deltas
            for s in (_with_form(model, A, math.log(level / delta), delta),)
        )

    def bound(setting: Setting) -> Bound:
        names = ("scale", "frobenius", "mean_frobenius", "op_norm", "dim", "tau")
        return concentration.hanson_wright_gaussian(**{name: setting.numbers[name] for name in names})

    shape = _shape(
        lambda n: n["dim"] * n["frobenius"] ** 2 + (n["mean_frobenius"] / KAPPA) ** 2, lambda n: n["op_norm"]
    )
    unnamed, named = places(4), places(2)
    return Check(
        printed=Form(Calibrated(t.form_error, shape, 0.0, PROVED), unnamed),
        corrected=Form(Tail(t.form_error, bound), named),
        controls=(
            Control(
                "a tenth of the constant",
                Calibrated(t.form_error, shape, 0.0, PROVED / 10),
                unnamed,
                kind="wrong factor",
            ),
            Control(
                "a quarter of it",
                Tail(t.form_error, lambda setting: exact.rescaled(bound(setting), 0.25)),
                named[: len(scope.deltas)],
                kind="wrong factor",
            ),
            Control(
                "one draw of the noise for all points",
                Tail(t.form_error, bound),
                places(2, reused=1.0)[-len(scope.deltas) :],
                kind="reused key",
            ),
        ),
    )


def _lemma_5() -> Check:
    v, alpha = math.sqrt(8 * (math.log(2) - 0.5)), 2.0

    def probability(power: float, *, as_printed: bool) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """X + 1 has the exponential law: log E exp(s X) = -s - log(1 - s), and v is best for |s| <= 1/2."""
            far = setting.numbers["t"]
            s = np.linspace(-0.5, 0.5, 1001)
            if not np.all(-s - np.log1p(-s) <= (s * v) ** 2 / 2 + 1e-12):
                raise ValueError("v is too small for the exponential law")
            found = math.exp(-1 - far) + max(0.0, -math.expm1(far - 1))
            right = concentration.sub_exponential(t=far, v=v, alpha=alpha, as_printed=as_printed)
            return math.log(found), math.log(2) + power * math.log((1 - right.probability) / 2)

        return Exact(check)

    places = tuple(Setting(f"exponential law, t={far:g}", numbers={"t": far}) for far in (0.5, 1.0, 2.0, 4.0, 8.0))
    return Check(
        printed=Form(probability(1.0, as_printed=True), places),
        corrected=Form(probability(1.0, as_printed=False), places),
        controls=(
            Control("three times the exponent", probability(3.0, as_printed=False), places, kind="wrong factor"),
        ),
    )


# ---------------------------------------------------------------------------------------------------------------- ours


def _any_covariance(scope: Scope) -> Check:
    n, d, width = t.POINTS, 12, 64
    sd = np.random.default_rng(7).uniform(0.2, 0.7, (n, d)) @ np.eye(d, width)
    models = tuple(
        t.Model(
            f"unequal variances, d={d}, |M|={norm:g}",
            kernels.Linear(),
            math.inf,
            _means(n, d, norm) @ np.eye(d, width),
            sd**2,
        )
        for norm in (0.0, 20.0)
    )
    size = float(np.sqrt(np.sum(sd**4, axis=1)).max())

    def bound(net: float) -> Callable[[Setting], Bound]:
        def right(setting: Setting) -> Bound:
            given = {name: setting.numbers[name] for name in ("scale", "mean_norm", "tau")}
            found = concentration.inner_product_gaussian_any(**given, frobenius=size, num_points=net * n)
            return t.per_point(found, setting)

        return right

    places = tuple(
        model.setting(f"delta={delta:g}", {"mean_norm": norm, "tau": math.log(2 / delta), "operator": 1.0})
        for model, norm in zip(models, (0.0, 20.0), strict=True)
        for delta in scope.deltas
    )
    return Check(
        corrected=Form(Tail(t.gram_error, bound(1.0)), places),
        # Of the sphere of one dimension, next to none: for no point there is no bound.
        controls=(Control("without the net", Tail(t.gram_error, bound(1 / n)), places, kind="term left out"),),
    )
