"""chen2016, sections 2 and 3: the steps of its proofs, and Lemmas 3.3 and 3.4.

Each function returns one claim; `chen2016.claims` puts them in the paper's order. `docs/theory/chen2016.md` derives
every correction.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from jaxkern.bounds import Bound
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Law,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.shared import always

FACTOR = "wrong factor"
LEFT_OUT = "term left out"
PAPER = places.PAPER

Sides = Callable[[jax.Array, Setting], list[Any]]

# ------------------------------------------------------------------------------------------------------------ section 2


def lemma_2_1_proof() -> Check:
    """Return the claim on the differential equation in the proof of Lemma 2.1."""

    def residual(power: int) -> Identity:
        def equations(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            r = setting.numbers["r"]
            z = np.linspace(-14, 14, 2001)
            weights = np.exp(-(z**2) / 2) * (z[1] - z[0])
            g, slope = weights @ np.cos(z * r), -weights @ (z * np.sin(z * r))
            return np.array([slope / (-(r**power) * g) - 1, np.sum(weights) / math.sqrt(2 * math.pi) - 1])

        return Identity(equations)

    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.3, 1.5, 3.0))
    return Check(
        printed=Form(residual(1), settings), controls=(Control("r squared", residual(2), settings, "wrong power"),)
    )


def lemma_2_2_proof() -> Check:
    """Return the claim on the step from additive to relative errors in the proof of Lemma 2.2."""

    def holds(nearest: float) -> Inequality:
        def worst(key: jax.Array, setting: Setting) -> list[Any]:
            """Return D / Dhat - 1 and 1 - D / Dhat over eps where K and Khat differ by eps / 4, the most allowed."""
            del key
            eps = setting.numbers["eps"]
            squared = -2 * np.expm1(-(np.linspace(nearest, 6, 100) ** 2) / 2)
            found = []
            for sign in (1, -1):
                ratio = np.sqrt(squared / (squared + sign * eps / 2))
                found += [sides.at_most_one(x / eps, "chen2016, Lemma 2.2") for x in np.abs(ratio - 1)]
            return found

        return Inequality(worst)

    settings = tuple(Setting(f"eps={eps:g}", numbers={"eps": eps}) for eps in (0.001, 0.05, 0.0999))
    return Check(
        printed=Form(holds(1.0), settings),
        controls=(Control("distances from a third of sigma on", holds(1 / 3), settings, "hypothesis broken"),),
    )


# ------------------------------------------------------------------------------------------------------------ section 3


def taylor() -> Check:
    """Return the claim on the display before (2)."""

    def holds(squared: Callable[[np.ndarray], np.ndarray], share: float = 0.25) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key, setting
            r = np.linspace(0.05, 1, 60)
            D = squared(r)
            return [
                pair
                for d, x in zip(D, r, strict=True)
                for pair in (
                    (float(1 - share * x**2), always(d / x**2, "chen2016, before (2)")),
                    sides.at_most_one(d / x**2, "chen2016, before (2)"),
                )
            ]

        return Inequality(both)

    def library(r: np.ndarray) -> np.ndarray:
        return sides.distances_of(r) ** 2

    settings = (Setting("lengths from .05 to 1"),)
    return Check(
        printed=Form(holds(lambda r: 2 - 2 * np.exp(r**2 / 2)), settings),
        corrected=Form(holds(library), settings),
        controls=(Control("half of the fourth-order term", holds(library, 0.125), settings, FACTOR),),
    )


def expansions() -> Check:
    """Return the claim on the expansions before (4)."""

    def residual(sign: float, halved: bool = True) -> Identity:
        def ratio(key: jax.Array, setting: Setting) -> np.ndarray:
            pair = setting.population
            phi = features.paired_fourier(key, kernels.Gaussian(1.0), 2, num_frequencies=8, dtype=pair.dtype)
            x, y = phi(pair)
            difference = pair[0] - pair[1]
            r = float(jnp.linalg.norm(difference))
            components = np.asarray(phi.frequencies, float) @ np.asarray(difference, float) / r
            cosines = float(np.mean(np.cos(components * r)))
            found = float(jnp.sum((x - y) ** 2)) / (-2 * math.expm1(-(r**2) / 2))
            expanded = (1 - cosines) / (-math.expm1(sign * r**2 / 2)) * (1 if halved else 2)
            return sides.as_residual([expanded / found - 1])

        return Identity(ratio)

    settings = tuple(
        Setting(f"r={r:g}", places.real(np.array([[0.3, 0.1], [0.3 + 0.6 * r, 0.1 - 0.8 * r]]))) for r in (0.5, 1.0)
    )
    return Check(
        printed=Form(residual(1.0), settings),
        corrected=Form(residual(-1.0), settings),
        controls=(Control("a factor 2", residual(-1.0, halved=False), settings, FACTOR),),
    )


def chi_square() -> Check:
    """Return the claim on the law of the components of the frequencies."""
    unit = np.arange(1.0, 6) / np.linalg.norm(np.arange(1.0, 6))
    settings = (Setting("t=20, d=5", {"unit": places.real(unit)}, {}, {"rows": 20}),)
    statement = Law(trials.chi_square, functools.partial(stats.chi2.cdf, df=20))
    return Check(
        printed=Form(statement, settings),
        controls=(
            Control(
                "t - 1 degrees of freedom",
                Law(trials.chi_square, functools.partial(stats.chi2.cdf, df=19)),
                settings,
                "n for n - 1",
            ),
        ),
    )


def lemma_3_2_proof() -> Check:
    """Return the claim on the tail bound that the proof of Lemma 3.2 cites."""

    def statement(root: float) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            t, x = setting.numbers["t"], setting.numbers["x"]
            low, high = 1 - root * math.sqrt(x / t), 1 + root * math.sqrt(x / t) + 2 * x / t
            return places.chi_square_outside(t, max(low, 0.0), high), math.log(2) - x

        return Exact(probability)

    settings = tuple(
        Setting(f"t={t:g}, x={x:g}", numbers={"t": t, "x": x})
        for t in (1.0, 10.0, 1000.0, 1e6)
        for x in (1.0, 5.0, 30.0)
    )
    return Check(
        printed=Form(statement(2.0), settings),
        controls=(Control("sqrt(2) for 2", statement(math.sqrt(2) * 0.9), settings, FACTOR),),
    )


def lemma_3_3() -> Check:
    """Return the claim on Lemma 3.3, with the constants 12 and 4."""
    scales = places.real(np.geomspace(0.05, 1, 8))

    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        value = math.sqrt(s["log"] / s["t"])
        return Bound(
            value, 1 - 4 * math.exp(-s["log"]), s["r"] ** 2 <= 2 * value / s["log"] ** 2, "chen2016, Lemma 3.3"
        )

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        eps = math.sqrt(12 * s["log"] / s["t"])
        valid = eps < 1 and s["r"] ** 2 <= eps / s["log"] ** 2 and s["log"] > math.log(4)
        return Bound(eps, 1 - 4 * math.exp(-s["log"]), valid, "jaxkern, Lemma 3.3 of chen2016")

    def place(delta: float, eps: float) -> Setting:
        log = math.log(1 / delta)
        t = math.ceil(12 * log / eps**2)
        r = 0.999 * math.sqrt(2 * math.sqrt(log / t)) / log
        numbers = {"log": log, "t": float(t), "r": r}
        name = f"eps={eps:g}, delta={delta:g}, t={t}, |Delta|={r:.3g}"
        return Setting(name, {"scales": scales}, numbers, {"rows": t})

    settings = (place(0.05, 0.4), place(0.0125, 0.4))
    few = controls.changed(
        settings[1:], "a sixteenth of the frequencies", shapes={"rows": settings[1].shapes["rows"] // 16}
    )
    return Check(
        printed=Form(Calibrated(trials.largest_along, shape, 2.0, math.sqrt(12)), settings),
        corrected=Form(Tail(trials.largest_along, bound), settings),
        controls=(Control("a sixteenth of the frequencies", Tail(trials.largest_along, bound), few, FACTOR),),
    )


def lemma_3_3_display() -> Check:
    """Return the claim on the last display of the proof of Lemma 3.3."""

    def holds(as_printed: bool, power: float = 0.5) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            log = math.log(1 / setting.numbers["delta"])
            found = []
            for eps, share in itertools.product((0.1, 0.9), (0.1, 0.5, 1.0)):
                r = share * math.sqrt(eps) / log
                # All frequencies as large as the truncation allows: w r, or w itself.
                w = math.sqrt(eps / log) / r if as_printed else log**power
                left = r**2 / 12 * w**4
                found.append(sides.at_most_one(left / (eps / 12), "chen2016, proof of Lemma 3.3"))
            return found

        return Inequality(both)

    settings = tuple(Setting(f"delta={delta:g}", numbers={"delta": delta}) for delta in (0.1, 1e-3))
    return Check(
        printed=Form(holds(as_printed=True), settings),
        corrected=Form(holds(as_printed=False), settings),
        controls=(Control("|w| <= ln(1 / delta)", holds(as_printed=False, power=1.0), settings, "wrong power"),),
    )


# ---------------------------------------------------------------------------------------------------------- section 3.1


def norms() -> Check:
    """Return the claim on the norms of the linear map of section 3.1."""

    def residual(as_printed: bool, mean: bool = True) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            """Return the error of each of: the middle term of the display, and the mean of the left one over draws."""
            scale, t = setting.numbers["scale"], 7
            w = np.asarray(trials.frequencies(key, 3, t, jnp.result_type(float)), float)
            difference = np.array([0.3, -0.2, 0.7])
            r = float(np.linalg.norm(difference))
            components = w @ difference / r
            per = t if mean and not as_printed else 1
            left = math.sqrt(np.sum((w @ (scale * difference)) ** 2) / per)
            power = 1 if as_printed else 2
            middle = math.sqrt(np.sum(components**2) * scale**power * r**2 / t ** (not as_printed))
            return sides.as_residual([left / middle - 1])

        return Identity(relative)

    settings = tuple(Setting(f"lambda={scale:g}", numbers={"scale": scale}) for scale in (0.1, 3.0))
    return Check(
        printed=Form(residual(as_printed=True), settings),
        corrected=Form(residual(as_printed=False), settings),
        controls=(Control("without 1 / t", residual(as_printed=False, mean=False), settings, "missing normalisation"),),
    )


def lemma_3_4() -> Check:
    """Return the claim on the linear map in the limit of small distances."""
    X = np.random.default_rng(7).standard_normal((10, 4))
    differences = places.differences_of(X)
    differences /= np.max(np.linalg.norm(differences, axis=1))
    population = {
        "differences": places.real(differences),
        "squared": places.real(np.sum(differences**2, axis=1)),
    }
    settings = tuple(
        Setting(f"lambda={scale:g}", population, {"scale": scale}, {"rows": 20})
        for scale in (0.04, 0.08, 0.16, 0.32, 0.64)
    )
    statement = Rate(trials.distance_to_linear, "scale", 2.0, 0.15)
    return Check(
        corrected=Form(statement, settings),
        controls=(
            Control(
                "other frequencies in the linear map",
                statement,
                controls.changed(settings, "other frequencies", shapes={"same": 0}),
                "wrong operator",
            ),
        ),
    )


def small_copies() -> Check:
    """Return the claim that a lower bound for Euclidean embeddings holds for every map."""

    def holds(curvature: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, slack = setting.population, setting.numbers["slack"]
            first, second = np.triu_indices(len(X), 1)
            r = np.linalg.norm(X[first] - X[second], axis=1)
            scale = 2 * math.sqrt(slack) / np.max(r)
            small = places.real(scale * X)
            kernel = kernels.Gaussian(1.0)
            D = sides.all_distances(small)[first, second]
            values, vectors = np.linalg.eigh(np.asarray(gram(kernel, small), float))
            phi = features.paired_fourier(key, kernel, X.shape[1], num_frequencies=50, dtype=small.dtype)
            lower = math.sqrt(1 - slack) if curvature else 1.0
            found = []
            for h in (
                vectors * np.sqrt(np.maximum(values, 0)),
                np.asarray(phi(small), float),
                np.asarray(small, float),
            ):
                images = np.linalg.norm(h[first] - h[second], axis=1)
                eps_up, eps_down = float(np.max(images / D - 1)), float(np.max(1 - images / D))
                ratios = images / (scale * r)
                found += [(x / (1 + eps_up), always(1.0, "jaxkern, small copies")) for x in ratios]
                found += [((1 - eps_down) * lower / x, always(1.0, "jaxkern, small copies")) for x in ratios]
            return found

        return Inequality(both)

    settings = tuple(
        Setting(f"{name}, eps'={slack:g}", X, {"slack": slack})
        for slack in (0.04, 0.2)
        for name, X in (
            ("orthonormal points", np.eye(6)),
            ("a cloud", np.random.default_rng(1).standard_normal((8, 3))),
        )
    )
    return Check(
        corrected=Form(holds(curvature=True), settings),
        controls=(Control("without sqrt(1 - eps')", holds(curvature=False), settings, LEFT_OUT),),
    )
