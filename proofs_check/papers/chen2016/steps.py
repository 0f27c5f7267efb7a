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
    Claim,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Law,
    Rate,
    Setting,
    Tail,
    Undecided,
)
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.shared import always

FACTOR = "wrong factor"
LEFT_OUT = "term left out"
PAPER = places.PAPER

Sides = Callable[[jax.Array, Setting], list[Any]]

# ------------------------------------------------------------------------------------------------------------ section 2


def lemma_2_1_proof() -> Claim:
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
    return Claim(
        id="chen2016:lem2.1-proof",
        paper=PAPER,
        where="proof of Lemma 2.1",
        kind="identity",
        tex=r"g(r)=\int e^{-z^2/2}\cos(zr)\,dz:\quad g'(r)=-r\,g(r),\ g(0)=\sqrt{2\pi}",
        hypotheses="Any $r>0$. Tried at three, by the trapezoidal rule, which is exact to rounding here.",
        because="True, and the proof is complete.",
        printed=Form(residual(1), settings, "identity"),
        controls=(Control("r squared", residual(2), settings, "wrong power"),),
    )


def lemma_2_2_proof() -> Claim:
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
    return Claim(
        id="chen2016:lem2.2-proof",
        paper=PAPER,
        where="proof of Lemma 2.2",
        kind="deterministic inequality",
        tex=r"\|x-y\|\ge\sigma,\ |K-\hat K|\le\tfrac\varepsilon4\ \Rightarrow\ "
        r"\tfrac{D_K}{D_{\hat K}}\in[1-\varepsilon,1+\varepsilon]",
        hypotheses=r"The Gaussian kernel, $\|x-y\|\ge\sigma$, $0<\varepsilon<\tfrac1{10}$. Tried at 100 distances, "
        r"with "
        "the largest error allowed, of either sign.",
        because="True. The proof bounds the inverse ratio; for eps <= .618 the step back, 1 / sqrt(1 - eps) <= 1 + "
        "eps, "
        "is right. It cites Lemma 2.1 for Corollary 2.2.",
        printed=Form(holds(1.0), settings, "consistent"),
        controls=(Control("distances from a third of sigma on", holds(1 / 3), settings, "hypothesis broken"),),
    )


# ------------------------------------------------------------------------------------------------------------ section 3


def taylor() -> Claim:
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
    return Claim(
        id="chen2016:sec3-taylor",
        paper=PAPER,
        where="Section 3, before (2)",
        kind="deterministic inequality",
        tex=r"\|\Delta\|^2-\tfrac14\|\Delta\|^4\le D_K(\Delta)^2=2-2\exp(\|\Delta\|^2/2)\le\|\Delta\|^2",
        hypotheses=r"$\|\Delta\|\le1$. Nothing is random.",
        because="With the printed sign D^2 is negative. With exp(-|Delta|^2 / 2) it holds for every length. The same "
        "sign is wrong where D_K(Delta) is defined, and in the ratio before (4).",
        printed=Form(holds(lambda r: 2 - 2 * np.exp(r**2 / 2)), settings, "refuted"),
        corrected=Form(holds(library), settings, "consistent", r"D_K(\Delta)^2=2-2\exp(-\|\Delta\|^2/2)"),
        controls=(Control("half of the fourth-order term", holds(library, 0.125), settings, FACTOR),),
    )


def expansions() -> Claim:
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
    return Claim(
        id="chen2016:sec3-expansions",
        paper=PAPER,
        where="Section 3, useful expansions",
        kind="identity",
        tex=r"D_{\hat K}^2=2-\tfrac2t\sum_i\cos(\omega_{i,\Delta}\|\Delta\|),\quad "
        r"\frac{D_{\hat K}^2}{D_K^2}=\frac{1-\frac1t\sum_i\cos(\omega_{i,\Delta}\|\Delta\|)}{1-e^{\|\Delta\|^2/2}}",
        hypotheses=r"Any frequencies, with $\omega_{i,\Delta}=\langle\omega_i,\Delta\rangle/\|\Delta\|$. Tried at two "
        "pairs of points, against the library's features.",
        because="The first is true; the denominator of the second has the wrong sign in the exponent.",
        printed=Form(residual(1.0), settings, "refuted"),
        corrected=Form(residual(-1.0), settings, "identity", r"1-e^{-\|\Delta\|^2/2}"),
        controls=(Control("a factor 2", residual(-1.0, halved=False), settings, FACTOR),),
    )


def chi_square() -> Claim:
    """Return the claim on the law of the components of the frequencies."""
    unit = np.arange(1.0, 6) / np.linalg.norm(np.arange(1.0, 6))
    settings = (Setting("t=20, d=5", {"unit": places.real(unit)}, {}, {"rows": 20}),)
    statement = Law(trials.chi_square, functools.partial(stats.chi2.cdf, df=20))
    return Claim(
        id="chen2016:sec3-chi-square",
        paper=PAPER,
        where="Section 3, after Lemma 3.1",
        kind="law",
        tex=r"\sum_{i=1}^t\omega_{i,\Delta}^2\sim\chi_t^2",
        hypotheses=r"A fixed $\Delta\ne0$ and independent frequencies. Tried with $t=20$ in five dimensions.",
        because="True: components of independent N(0, I) vectors along a fixed direction are independent and normal.",
        printed=Form(statement, settings, "certified"),
        controls=(
            Control(
                "t - 1 degrees of freedom",
                Law(trials.chi_square, functools.partial(stats.chi2.cdf, df=19)),
                settings,
                "n for n - 1",
            ),
        ),
    )


def lemma_3_2_proof() -> Claim:
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
    return Claim(
        id="chen2016:lem3.2-proof",
        paper=PAPER,
        where="proof of Lemma 3.2",
        kind="tail bound",
        tex=r"\Pr[t-2\sqrt{tx}\le\chi_t^2\le t+2\sqrt{tx}+2x]\ge1-2e^{-x}",
        hypotheses="Any $t\\ge1$ and $x>0$. Tried for $t$ up to $10^6$.",
        because="True (Laurent and Massart). In the last line of the proof 2 exp(-ln(2 / delta)) is delta and not "
        "delta / 2, so that delta <= 1/2 is not used.",
        printed=Form(statement(2.0), settings, "certified"),
        controls=(Control("sqrt(2) for 2", statement(math.sqrt(2) * 0.9), settings, FACTOR),),
    )


def lemma_3_3() -> Claim:
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
    return Claim(
        id="chen2016:lem3.3",
        paper=PAPER,
        where="Lemma 3.3",
        kind="tail bound",
        tex=r"\|\Delta\|\le\tfrac{\sqrt\varepsilon}{\ln(1/\delta)},\ t=\Omega(\varepsilon^{-2}\ln\tfrac1\delta)\ "
        r"\Rightarrow\ \tfrac{D_{\hat K}(\lambda\Delta)^2}{D_K(\lambda\Delta)^2}\in[1-\varepsilon,1+\varepsilon]"
        r"\text{ for all }\lambda\in[0,1]\text{ w.p. }1-O(\delta)",
        hypotheses=r"The Gaussian kernel, $0<\varepsilon<1$, $0<\delta<\tfrac12$ and $\|\Delta\|\le\sqrt\varepsilon/"
        r"\ln(1/\delta)$; a fixed $\Delta$. As calibrated, $\varepsilon=C\sqrt{\ln(1/\delta)/t}$, and the radius is "
        r"that "
        "of $C=2$. Tried on a grid of eight scales and in the limit.",
        because="True, though its proof is not: with t = 12 ln(1 / delta) / eps^2 it fails with probability at most "
        "4 delta, because both sides of (4) are monotone in lambda and the fourth moment of the frequencies has a "
        "light enough tail. C < 2 cannot do, by the limit of small lambda.",
        printed=Form(Calibrated(trials.largest_along, shape, 2.0, math.sqrt(12)), settings, "calibrated"),
        corrected=Form(
            Tail(trials.largest_along, bound),
            settings,
            "certified",
            r"t\ge12\,\varepsilon^{-2}\ln\tfrac1\delta:\text{ w.p. }1-4\delta",
        ),
        controls=(Control("a sixteenth of the frequencies", Tail(trials.largest_along, bound), few, FACTOR),),
    )


def lemma_3_3_display() -> Claim:
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
    return Claim(
        id="chen2016:lem3.3-display",
        paper=PAPER,
        where="proof of Lemma 3.3, the display",
        kind="deterministic inequality",
        tex=r"|\omega_{i,\Delta}|\,\|\Delta\|\le\sqrt{\tfrac\varepsilon{\ln(1/\delta)}}\ \Rightarrow\ "
        r"\tfrac{\|\Delta\|^2}{12}\cdot\tfrac1t\sum_i\omega_{i,\Delta}^4\le\tfrac\varepsilon{12}",
        hypotheses=r"$\|\Delta\|\le\sqrt\varepsilon/\ln(1/\delta)$, $0<\varepsilon<1$, $0<\delta<\tfrac12$. Tried with "
        "all frequencies as large as they may be.",
        because="The last step needs |Delta|^2 >= eps / ln(1 / delta)^2, the reverse of the hypothesis: at half of the "
        "radius the left side is 4 times the right one. It holds for |w_i| <= sqrt(ln(1 / delta)), which is what the "
        "truncation is meant to say, and which fails (chen2016:lem3.3-proof).",
        printed=Form(holds(as_printed=True), settings, "refuted"),
        corrected=Form(
            holds(as_printed=False),
            settings,
            "consistent",
            r"|\omega_{i,\Delta}|\le\sqrt{\ln\tfrac1\delta}\ \Rightarrow\ \cdots\le\tfrac\varepsilon{12}",
        ),
        controls=(Control("|w| <= ln(1 / delta)", holds(as_printed=False, power=1.0), settings, "wrong power"),),
    )


# ---------------------------------------------------------------------------------------------------------- section 3.1


def norms() -> Claim:
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
    return Claim(
        id="chen2016:sec3.1-norms",
        paper=PAPER,
        where="Section 3.1, the display",
        kind="identity",
        tex=r"\sqrt{\sum_i|\omega_i\cdot\lambda(x-y)|^2}=\sqrt{\sum_i\omega_{i,x,y}^2\,\lambda\|x-y\|^2}",
        hypotheses=r"Any frequencies, any $x\ne y$ and any $\lambda>0$. Tried at two.",
        because="lambda must be squared, and 1 / t is missing: |g(x) - g(y)|^2 is about t times what it should be near "
        "without it.",
        printed=Form(residual(as_printed=True), settings, "refuted"),
        corrected=Form(
            residual(as_printed=False),
            settings,
            "identity",
            r"\sqrt{\tfrac1t\sum_i|\omega_i\cdot\lambda(x-y)|^2}=\lambda\|x-y\|\sqrt{\tfrac1t\sum_i\omega_{i,x,y}^2}",
        ),
        controls=(Control("without 1 / t", residual(as_printed=False, mean=False), settings, "missing normalisation"),),
    )


def lemma_3_4() -> Claim:
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
    return Claim(
        id="chen2016:lem3.4",
        paper=PAPER,
        where="Lemma 3.4",
        kind="rate",
        tex=r"t\text{ features with }\tfrac{D_{\hat K}}{D_K}\in[1-\varepsilon,1+\varepsilon]\text{ on }X\text{ w.p. "
        r"}1-\delta"
        r"\ \Rightarrow\ \text{a random linear map of }X\text{ into }t\text{ dimensions with the same errors in "
        r"}\ell_2",
        hypotheses=r"A fixed set of points, $t$ frequencies: the set is scaled by $\lambda$. Tried on ten points of "
        "four dimensions with 20 frequencies.",
        because="True: where features keep the distances of all small copies of a set with probability 1 - delta, the "
        "linear map g with t rows keeps those of the set itself with that probability. The check is what the proof "
        "rests on: the two embeddings agree up to O(lambda^2), draw by draw. Existence itself is not computed.",
        printed=Form(
            Undecided("The existence of an embedding. The corrected form is the agreement that its proof rests on."),
            (),
            "not testable",
        ),
        corrected=Form(
            statement,
            settings,
            "certified",
            r"\max_{x,y\in X}\Bigl|\tfrac{D_{\hat K}(\lambda x,\lambda y)}{D_K(\lambda x,\lambda y)}"
            r"-\tfrac{\|g(x)-g(y)\|}{\|x-y\|}\Bigr|=O(\lambda^2),\ g(x)=\tfrac1{\sqrt t}(\omega_i\cdot x)_i",
        ),
        controls=(
            Control(
                "other frequencies in the linear map",
                statement,
                controls.changed(settings, "other frequencies", shapes={"same": 0}),
                "wrong operator",
            ),
        ),
    )


def small_copies() -> Claim:
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
    return Claim(
        id="chen2016:sec3.1-remark",
        paper=PAPER,
        where="Remark after Theorem 3.1",
        kind="lower bound",
        tex=r"\text{the bound for non-linear embeddings into }\ell_2\text{ does not immediately imply one for }D_K",
        hypotheses=r"Any set of points of diameter $R$, any map $h$ with $|\,\|h(x)-h(y)\|/D_K-1|\le\varepsilon$ on "
        r"its copy "
        r"scaled by $\lambda=2\sqrt{\varepsilon'}/R$, $0<\varepsilon'<1$. Tried for an exact embedding, for Fourier "
        "features and for the identity.",
        because="It does: by (3), h / lambda embeds the set itself into Euclidean space with relative errors in "
        "[(1 - eps) sqrt(1 - eps'), 1 + eps]. So any lower bound for such embeddings, linear or not, holds for every "
        "map that keeps kernel distances.",
        printed=Form(
            Undecided(
                "A remark on what another theorem implies. The corrected form is the step that makes it imply the "
                "bound."
            ),
            (),
            "not testable",
        ),
        corrected=Form(
            holds(curvature=True),
            settings,
            "consistent",
            r"(1-\varepsilon)\sqrt{1-\varepsilon'}\le\frac{\|h(\lambda x)-h(\lambda "
            r"y)\|}{\lambda\|x-y\|}\le1+\varepsilon",
        ),
        controls=(Control("without sqrt(1 - eps')", holds(curvature=False), settings, LEFT_OUT),),
    )
