"""amini2021: the constants of Lipschitz kernels, of class LC, of concentrated laws and of Lemma 1; no sampling."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, concentration
from jaxkern.gram import gram
from proofs_check.claim import Check, Control, Exact, Form, Inequality, Setting
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t
from proofs_check.papers.amini2021.exact import Pairs
from proofs_check.papers.amini2021.places import Scope
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always

PAPER = "amini2021"

Formula = Callable[..., Bound]


# ------------------------------------------------------------------------------------------------- Lipschitz constants


@jax.jit
def _values(kernel: Any, X: jax.Array, Y: jax.Array) -> jax.Array:
    return jax.vmap(kernel)(X, Y)


def _lipschitz_kernels() -> Check:
    built_in = (kernels.Distance(), kernels.Gaussian(0.7), kernels.Exponential(0.5))
    settings = tuple(Setting(f"{type(k).__name__}, d=3", {"kernel": k}, shapes={"dim": 3}) for k in built_in)

    def sides(factor: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            kernel, dim = setting.population["kernel"], setting.shapes["dim"]
            x1, x2, first, second = np.asarray(jax.random.normal(key, (4, 300, dim)), np.float64)
            steps = 10.0 ** np.random.default_rng(1).uniform(-1, 0.5, (300, 1))
            y1, y2 = x1 + steps * first, x2 + np.where(np.arange(300) % 2, 1, 0)[:, None] * steps * second
            apart = np.sum(np.linalg.norm([x1 - y1, x2 - y2], axis=2), axis=0)
            change = _values(kernel, t.real(x1), t.real(x2)) - _values(kernel, t.real(y1), t.real(y2))
            change = np.abs(np.asarray(change, np.float64))
            right = always(factor * float(kernels.lipschitz(kernel, dim)), "amini2021, (3)")
            return [(float(c / d), right) for c, d in zip(change, apart, strict=True)]

        return Inequality(check)

    return Check(
        printed=Form(sides(1.0), settings),
        controls=(Control("half of the constant", sides(0.5), settings, kind="wrong factor"),),
    )


def _gaussian_lipschitz() -> Check:
    settings = tuple(Setting(f"tau={tau:g}", numbers={"tau": tau}) for tau in (0.3, 1.7))

    def sides(constant: Callable[[float], float], dtype: type[np.floating] = np.float64) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            tau = setting.numbers["tau"]
            r, h = tau * np.linspace(0.01, 5, 500), 1e-3 * tau  # 499 steps of .01 tau, one of which is at tau
            before, after = (np.exp(-(x**2) / (2 * tau**2)).astype(dtype).astype(float) for x in (r - h, r + h))
            steepest = np.abs(before - after) / (2 * h)
            right = always(tau * constant(tau), "amini2021, Example 1")
            return [(float(tau * s), right) for s in steepest]

        return Inequality(check)

    def bound(as_printed: bool) -> Callable[[float], float]:
        return lambda tau: concentration.gaussian_lipschitz(lengthscale=tau, as_printed=as_printed).value

    return Check(
        printed=Form(sides(bound(True)), settings),
        corrected=Form(sides(bound(False)), settings),
        controls=(
            Control("0.6 for exp(-1/2)", sides(lambda tau: 0.6 / tau), settings, kind="wrong factor"),
            Control(
                "tau taken for gamma in exp(-gamma r^2)",
                sides(lambda tau: bound(False)((2 * tau) ** -0.5)),
                settings,
                kind="swapped constants",
            ),
            Control("the kernel in float16", sides(bound(False), np.float16), settings, kind="low precision"),
        ),
    )


def _definition_2b() -> Check:
    def gap(e: float) -> Setting:
        return Setting(f"uniform near -1 and 1, e={e:g}", numbers={"e": e})

    ramps = tuple(Setting(f"ramp of slope {slope:g}", numbers={"slope": slope}) for slope in (0.0, 2.0, 20.0))

    def sides(constant: float) -> Inequality:
        def check(key: jax.Array, setting: Setting) -> Pairs:
            del key
            z = np.linspace(-4, 4, 801)
            u, numbers = stats.norm.cdf(z), setting.numbers
            if "e" in numbers:  # density 1 / (4 e) within e of a and of -a
                e, a = numbers["e"], math.sqrt(1 - numbers["e"] ** 2 / 3)
                quantiles, omega = np.where(u < 0.5, -a - e + 4 * e * u, a - 3 * e + 4 * e * u), 4 * e
            else:  # density (1 + slope y) / (1 + slope / 2) on [0, 1], at least 1 / omega
                slope = numbers["slope"]
                mass, omega = (1 + slope / 2) * u, 1 + slope / 2
                quantiles = 2 * mass / (1 + np.sqrt(1 + 2 * slope * mass))
            slopes = np.diff(quantiles) / np.diff(z) / omega
            return [(float(s), always(constant, "amini2021, proof of Theorem 1, class (b)")) for s in slopes]

        return Inequality(check)

    return Check(
        printed=Form(sides(1.0), (gap(0.1), gap(0.01))),
        corrected=Form(sides(1 / math.sqrt(2 * math.pi)), ramps),
        controls=(Control("a third for 1 / sqrt(2 pi)", sides(1 / 3), ramps, kind="wrong factor"),),
    )


# ------------------------------------------------------------------------------------------ concentration of functions


def _gaussian_concentration() -> Check:
    def probability(kappa: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            k, s = setting.shapes["k"], setting.numbers["t"]
            tail = stats.norm.logsf(s) if k == 0 else stats.chi.logsf(exact.mean_chi(k) + s, k)
            return float(tail), -kappa * s**2

        return Exact(check)

    settings = tuple(
        Setting(f"{'a coordinate' if k == 0 else f'|w| in R^{k}'}, t={s:g}", numbers={"t": s}, shapes={"k": k})
        for k in (0, 1, 10)
        for s in (0.5, 2.0, 5.0)
    )
    return Check(
        printed=Form(probability(0.5), settings),
        controls=(Control("the exponent t^2", probability(1.0), settings, kind="wrong factor"),),
    )


def _log_concave() -> Check:
    def probability(kappa: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            low, high, s = (setting.numbers[name] for name in ("low", "high", "t"))
            law = stats.truncnorm(low, high)
            return float(law.logsf(law.mean() + s)), -kappa * s**2

        return Exact(check)

    settings = tuple(
        Setting(f"normal between {low:g} and {high:g}, t={s:g}", numbers={"low": low, "high": high, "t": s})
        for low, high in ((-1.0, math.inf), (0.0, math.inf), (-1.0, 2.0))
        for s in (0.2, 1.0, 5.0)
    )
    return Check(
        corrected=Form(probability(0.5), settings),
        controls=(Control("the exponent t^2", probability(1.0), settings, kind="wrong factor"),),
    )


# ----------------------------------------------------------------------------------------------------------- Lemma 1


def _displacements(formula: Formula, factor: float = 1.0) -> Inequality:
    """Return the check of |K(X) - K(X')|_F against a bound, divided by sqrt(n) |X - X'|_F."""

    def check(key: jax.Array, setting: Setting) -> Pairs:
        kernel, constant = setting.population["kernel"], setting.population["lipschitz"]
        pairs = []
        for X, Y in setting.population["pairs"](key):
            unit = math.sqrt(len(X)) * float(np.linalg.norm(X - Y))
            change = np.asarray(gram(kernel, t.real(X)) - gram(kernel, t.real(Y)), np.float64)
            right = formula(lipschitz=constant, num_points=len(X), displacement=float(np.linalg.norm(X - Y)))
            pairs.append((float(np.linalg.norm(change)) / unit, exact.rescaled(right, factor / unit)))
        return pairs

    return Inequality(check)


def _clouds(data: Population | None) -> Callable[[jax.Array], list[tuple[np.ndarray, np.ndarray]]]:
    rows = None if data is None else data.points[:16]

    def pairs(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)))
        X = rng.standard_normal((16, 2)) if rows is None else rows
        unit = float(np.std(X))
        found = [(X, X + unit * scale * rng.standard_normal(X.shape)) for scale in (0.3, 1.0, 10.0)]
        return [*found, (X, X + unit * np.eye(1, X.shape[1]))]  # and a common shift

    return pairs


def _lemma_1(scope: Scope) -> Check:
    tau = 1.0 if scope.data is None else float(scope.data.kernel.lengthscale)
    built_in = {"x + y": (kernels.as_kernel(t.first_coordinates), 1.0), "distances": (kernels.Distance(), 1.0)}
    built_in["Gaussian"] = (kernels.Gaussian(tau), t.lipschitz_gaussian(tau))
    clouds = _clouds(scope.data)
    places = tuple(
        Setting(name, {"kernel": kernel, "lipschitz": constant, "pairs": clouds})
        for name, (kernel, constant) in built_in.items()
    )
    return Check(
        printed=Form(_displacements(concentration.gram_displacement), places),
        controls=(
            Control(
                "sqrt(n) for 2 sqrt(n)",
                _displacements(concentration.gram_displacement, 0.5),
                places[:1],
                kind="wrong factor",
            ),
        ),
    )


def _displacement_distance() -> Check:
    def stretch(key: jax.Array) -> list[tuple[np.ndarray, np.ndarray]]:
        """Two points at 0 and two at 1, which move apart: the constant is attained."""
        X = np.array([[0.0], [0.0], [1.0], [1.0]])
        return [(X, 2 * X - 0.5)]

    places = tuple(
        Setting(name, {"kernel": kernels.Distance(), "lipschitz": 1.0, "pairs": pairs})
        for name, pairs in (("two and two points on a line", stretch), ("points in the plane", _clouds(None)))
    )
    formula = concentration.gram_displacement_distance
    return Check(
        corrected=Form(_displacements(formula), places),
        controls=(
            Control("sqrt(n) for sqrt(2 n)", _displacements(formula, 0.5**0.5), places[:1], kind="wrong factor"),
        ),
    )
