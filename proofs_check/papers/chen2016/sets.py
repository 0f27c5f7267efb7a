"""chen2016, section 4, and what is ours in its place: one pair at every distance, and all pairs of a set of points."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import Calibrated, Claim, Control, Exact, Form, Inequality, Law, Setting, Tail
from proofs_check.papers.chen2016 import later_steps as steps
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import always


def claims(data: Population | None, people: Sequence[places.PointSet], deltas: tuple[float, ...]) -> list[Claim]:
    """Return the claims of section 4, in the paper's order."""
    return [
        _lemma_4_1(),
        steps.lemma_4_1_taylor(),
        steps.lemma_4_1_proof(),
        _eq5(),
        _lemma_4_2(data, deltas),
        steps.lemma_4_2_mean(),
        steps.lemma_4_2_proof(),
        _theorem_4_1(data, people, deltas),
    ]


def ours(data: Population | None, people: Sequence[places.PointSet], *, full: bool) -> list[Claim]:
    """Return the claims of Theorems A and B."""
    return [_pair_law(), _convex_order(data), _one_pair(data, full), _all_pairs(data, people, full)]


def _lemma_4_1() -> Claim:
    def holds(bound: Callable[..., Bound], slopes: Callable[[float], Sequence[float]]) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = setting.numbers["r"]
            return [sides.below(sides.log_mgf(s, r), bound(s=s, distance=r)) for s in slopes(r)]

        return Inequality(both)

    def printed_slopes(r: float) -> list[float]:
        return [y / r**2 for y in (0.05, 0.2, 0.4, 0.499)]

    def slopes(r: float) -> list[float]:
        return [y / (-2 * math.expm1(-(r**2) / 2)) for y in (-50.0, -3.0, -0.3, 0.1, 0.5, 0.9)]

    def variance_only(*, s: float, distance: float) -> Bound:
        return always((s * math.expm1(-(distance**2) / 2)) ** 2, "s^2 mu^2")

    small = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.01, 0.1, 1.0))
    all_ = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.01, 0.1, 1.0, 2.0, 6.0))
    return Claim(
        id="chen2016:lem4.1",
        paper=places.PAPER,
        where="Lemma 4.1",
        kind="deterministic inequality",
        tex=r"\ln\mathbb E\,e^{s(X-\mathbb EX)}\le\tfrac14s^2\|\Delta\|^4,\ X=1-\cos(\omega\|\Delta\|),\ "
        r"0\le s<\tfrac1{2\|\Delta\|^2}",
        hypotheses=r"$\omega\sim N(0,1)$, $0\le\|\Delta\|\le1$ and $0\le s<1/(2\|\Delta\|^2)$. The corrected form "
        r"holds for every length and every real $s<1/(2\mu)$, and is tried for lengths up to 6.",
        because="At s r^2 = .499 and r near 0 the left side is .0960 and the right side .0623: the proof turns "
        "exp(+s w^2 r^2 / 2) into exp(-s w^2 r^2 / 2). Theorem A puts chi-square in its place, for s of either sign.",
        printed=Form(holds(functools.partial(fourier.log_mgf, as_printed=True), printed_slopes), small, "refuted"),
        corrected=Form(
            holds(fourier.log_mgf, slopes),
            all_,
            "consistent",
            r"-\tfrac12\ln(1-2s\mu)-s\mu,\ \mu=\mathbb EX,\ s<\tfrac1{2\mu}",
        ),
        controls=(Control("the variance of chi-square alone", holds(variance_only, slopes), all_, "term left out"),),
    )


def _eq5() -> Claim:
    def statement(share: float = 1.0) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            n = setting.numbers
            right = fourier.sub_exponential(eps=n["eps"], mean=1.0, p=share * n["p"], q=n["q"], num_frequencies=n["t"])
            # 1 - probability would lose all digits of so small a number.
            exponent = min(n["eps"] ** 2 / (2 * share * n["p"]), n["eps"] / (2 * n["q"]))
            if not right.valid:
                raise ValueError(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
            return places.chi_square_outside(n["t"], 1 - n["eps"], 1 + n["eps"]), math.log(2) - n["t"] * exponent

        return Exact(probability)

    def place(t: float, eps: float, p: float, q: float) -> Setting:
        return Setting(f"t={t:g}, eps={eps:g}, p={p:.4g}, q={q:g}", numbers={"t": t, "eps": eps, "p": p, "q": q})

    # Of chi2_1 - 1 the log-mgf is -log(1 - 2 s) / 2 - s, which over s^2 increases in s: p by its value at s = 1 / q.
    both = {q: 2 * q**2 * (-math.log1p(-2 / q) / 2 - 1 / q) for q in (3.0, 4.0, 8.0)}
    one_sided = tuple(place(t, 0.5, 2.0, 0.01) for t in (400.0, 1000.0))
    two_sided = tuple(place(t, eps, both[q], q) for q in both for t, eps in ((50.0, 0.5), (400.0, 0.25), (4000.0, 0.1)))
    return Claim(
        id="chen2016:eq5",
        paper=places.PAPER,
        where="(5)",
        kind="tail bound",
        tex=r"\ln M(s)\le\tfrac{s^2p}2\ (0\le s\le\tfrac1q)\ \Rightarrow\ "
        r"P(|\bar X_t-\mathbb EX|\ge\varepsilon\mathbb EX)"
        r"\le2\exp\bigl(-t\min(\tfrac{\varepsilon^2(\mathbb EX)^2}{2p},\tfrac{\varepsilon\mathbb EX}{2q})\bigr)",
        hypotheses=r"Independent copies of $X$ with $\mathbb EX>0$, $\ln M(s)\le s^2p/2$ for $0\le s\le1/q$, $M$ the "
        r"moment generating function of $X-\mathbb EX$; the corrected form needs it for $|s|\le1/q$. Tried for "
        r"$2-\chi^2_1$ as printed, and for $\chi^2_1$ as corrected.",
        because="A bound of the moment generating function for s >= 0 says nothing of the lower tail. For "
        "X = 2 - chi2_1 it holds with p = 2 for every s >= 0, and at eps = .5 the tail is 3.4e-10 for 2.8e-11 "
        "(t = 400) and 1.0e-22 for 1.4e-27 (t = 1000). With |s| <= 1 / q the display is right.",
        printed=Form(statement(), one_sided, "refuted"),
        corrected=Form(statement(), two_sided, "certified", r"\ln M(s)\le\tfrac{s^2p}2\text{ for }|s|\le\tfrac1q"),
        controls=(Control("half of p", statement(0.5), two_sided, "wrong factor"),),
    )


def _lemma_4_2(data: Population | None, deltas: tuple[float, ...]) -> Claim:
    def bound(*, r: float, eps: float, t: float, as_printed: bool = False) -> Bound:
        return fourier.near_distance(eps=eps, num_frequencies=t, distance=r, as_printed=as_printed)

    printed = functools.partial(bound, as_printed=True)
    near = places.distances(data, (1e-3, 0.3, 1.0), 1e-6, 1.0)
    settings = places.at(bound, places.distances(data, (1e-3, 0.3, 1.0, 3.0), 1e-6, 12.0), (0.1, 0.3), deltas)
    return Claim(
        id="chen2016:lem4.2",
        paper=places.PAPER,
        where="Lemma 4.2",
        kind="tail bound",
        tex=r"\|x-y\|\le\sigma\ \Rightarrow\ \frac{D_{\hat K}}{D_K}\in[1-\varepsilon,1+\varepsilon]"
        r"\text{ w.p. }1-\delta,\ t=\tfrac6{\varepsilon^2}\tfrac{\|\Delta\|^4}{D_K^4}\ln\tfrac2\delta",
        hypotheses=r"The Gaussian kernel; $x$ and $y$ with $\|x-y\|\le\sigma$, fixed before the draw; "
        r"$0<\varepsilon<1$, $0<\delta<1$. The corrected form holds at every distance. Tried at $\varepsilon=.1$ and "
        "$.3$.",
        because="True, though the proof rests on Lemma 4.1 and (5), which are not. Theorem A gives the exponents of "
        "chi-square, at every distance, and asks for at most a sixth of the frequencies.",
        printed=Form(places.pair(printed, places.relative), places.at(printed, near, (0.1, 0.3), deltas), "certified"),
        corrected=Form(
            places.pair(bound, places.relative),
            settings,
            "certified",
            r"e^{-t(u-1-\ln u)/2}+e^{-t(v-1-\ln v)/2}\le\delta,\ u=(1+\varepsilon)^2,\ v=(1-\varepsilon)^2",
        ),
        controls=(
            Control(
                "half of the frequencies",
                places.pair(bound, places.relative, times=2),
                places.at(bound, (1e-3, 0.3), (0.1, 0.3), deltas),
                "wrong factor",
            ),
        ),
    )


def _theorem_4_1(data: Population | None, people: Sequence[places.PointSet], deltas: tuple[float, ...]) -> Claim:
    bound = _of_all_pairs(fourier.relative_distances)
    settings = _all_pairs_at(fourier.relative_distances, people, deltas, 0.25)

    def shape(setting: Setting) -> Bound:
        n, t = setting.numbers["n"], setting.numbers["t"]
        return Bound(math.sqrt(math.log(n) / t), 1 - 1 / n, n >= 2, "chen2016, Theorem 4.1 (shape)")

    return Claim(
        id="chen2016:thm4.1",
        paper=places.PAPER,
        where="Theorem 4.1",
        kind="tail bound",
        tex=r"\max_{x,y\in X}\Bigl|\frac{D_{\hat K}(x,y)}{D_K(x,y)}-1\Bigr|\le C\sqrt{\tfrac{\ln n}t}"
        r"\text{ w.p. }1-\tfrac1n",
        hypotheses="The Gaussian kernel and any $n$ points of any dimension, fixed before the frequencies are drawn. "
        "Tried on three sets of 16 points, or on at most 24 rows of a table.",
        because="The constant is not named. C = sqrt(6) is proved by Theorem B, for every n and t, and no C < sqrt(2) "
        "can do, by n / 2 orthogonal pairs. With the size that Theorem B asks for, it holds with every delta.",
        printed=Form(Calibrated(trials.largest_error, shape, math.sqrt(2), math.sqrt(6)), settings, "calibrated"),
        corrected=Form(
            Tail(trials.largest_error, bound),
            settings,
            "certified",
            r"\le\varepsilon\text{ w.p. }1-\delta,\ "
            r"\tbinom n2\bigl(e^{-t(u-1-\ln u)/2}+e^{-t(v-1-\ln v)/2}\bigr)\le\delta",
        ),
        controls=(_fewer_frequencies(bound, settings[0], data),),
    )


def _pair_law() -> Claim:
    r, t = 2.0, 16
    settings = []
    for dim in (1, 5):
        unit = np.arange(1.0, dim + 1) / np.linalg.norm(np.arange(1.0, dim + 1))
        pair = np.stack([0.7 * r * unit, -0.3 * r * unit])
        settings.append(Setting(f"r=2, t=16, d={dim}", {"pair": places.real(pair)}, {"r": r}, {"rows": t}))
    statement = Law(trials.squared_ratio, functools.partial(trials.interpolated_cdf, r, t))
    return Claim(
        id="jaxkern:fourier-pair-law",
        paper=places.PAPER,
        where="how pairs are decided (ours)",
        kind="law",
        tex=r"\frac{\|\hat\phi(x)-\hat\phi(y)\|^2}{D_K(x,y)^2}\sim\frac1t\sum_{i=1}^t\frac{1-\cos(r"
        r"\omega_i)}{1-e^{-r^2/2}}",
        hypotheses=r"The Gaussian kernel and two points, fixed before the draw. Tried at $r=\|x-y\|/\sigma=2$ with "
        "$t=16$.",
        because="The library's features of two points have the law that is computed by quadrature, which is what lets "
        "statements about a pair be decided without sampling.",
        corrected=Form(statement, tuple(settings), "certified"),
        controls=(
            Control(
                "the law of a vanishing distance",
                Law(trials.squared_ratio, lambda x: stats.chi2.cdf(t * np.asarray(x), t)),
                tuple(settings),
                "wrong law",
            ),
            Control("one frequency repeated 16 times", statement, controls.one_draw(settings[:1]), "reused key"),
        ),
    )


def _convex_order(data: Population | None) -> Claim:
    levels = (0.05, 0.3, 0.8, 1.0, 1.5, 2.5, 5.0, 9.0)

    def holds(degrees: int) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = setting.numbers["r"]
            most = 2 / -math.expm1(-(r**2) / 2)  # of Y: beyond, its stop-loss mean is 0
            found = [(sides.stop_loss(c, r), sides.chi_square_stop_loss(c, degrees)) for c in levels if c < most]
            return [sides.at_most_one(left / right, "jaxkern, Theorem A of chen2016") for left, right in found]

        return Inequality(both)

    distances = places.distances(data, (0.05, 0.3, 1.0, 2.0, 3.5, 8.0), 0.02, 12.0)
    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in distances)
    small = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.05, 0.3))
    return Claim(
        id="jaxkern:convex-order",
        paper=places.PAPER,
        where="Theorem A (ours)",
        kind="deterministic inequality",
        tex=r"\frac{1-\cos(r\omega)}{1-e^{-r^2/2}}\le_{cx}\chi^2_1\ \Rightarrow\ \frac{D_{\hat K}^2}{D_K^2}\le_{cx}"
        r"\frac{\chi^2_t}t\text{ at every distance}",
        hypotheses=r"The Gaussian kernel, $\omega\sim N(0,1)$ and any distance $r>0$, in units of the lengthscale. "
        "Tried at eight levels $c$ of each distance.",
        because="Two variables of equal mean are in convex order where all stop-loss means E(Y - c)_+ are; those of a "
        "pair are computed by quadrature, those of chi-square are incomplete gamma functions.",
        corrected=Form(holds(1), settings, "consistent", r"\mathbb E(Y-c)_+\le\mathbb E(\chi^2_1-c)_+"),
        controls=(Control("chi-square of two frequencies, halved", holds(2), small, "wrong law"),),
    )


def _one_pair(data: Population | None, full: bool) -> Claim:
    def bound(*, r: float, eps: float, t: float) -> Bound:
        return fourier.relative_distances_sharp(eps=eps, num_frequencies=t, num_points=2)

    def third(*, r: float, eps: float, t: float) -> Bound:
        b = bound(r=r, eps=eps, t=t)
        return Bound(b.value, 1 - (1 - b.probability) / 3, b.valid, b.source)

    errors, deltas = (0.1, 0.3), (1e-2, 1e-3, 1e-4, 1e-6) if full else (1e-2, 1e-4)
    distances = places.distances(data, (1e-3, 0.5, 1.0, 3.0), 1e-6, 12.0)
    return Claim(
        id="jaxkern:relative-distances-pair",
        paper=places.PAPER,
        where="Theorem B, one pair (ours)",
        kind="tail bound",
        tex=r"\Pr\Bigl(\Bigl|\frac{D_{\hat K}}{D_K}-1\Bigr|>\varepsilon\Bigr)\le\frac{\mathbb E(Y-c)_+}{u-c}"
        r"+\frac{\mathbb E(c'-Y)_+}{c'-v},\ Y=\tfrac{\chi_t^2}t",
        hypotheses="The Gaussian kernel, two points of any dimension and at any distance, fixed before the draw, "
        r"$10^{-4}\le\varepsilon<1$, $0\le c<u=(1+\varepsilon)^2$ and $c'>v=(1-\varepsilon)^2$. Tried at "
        r"$\varepsilon=.1$ and $.3$.",
        because="Theorem A bounds the tails of the ratio by means of chi-square; at small distances at most a "
        "factor e is lost, so that a third of it is too little.",
        corrected=Form(places.pair(bound, places.relative), places.at(bound, distances, errors, deltas), "certified"),
        controls=(
            Control(
                "a third of the probability",
                places.pair(third, places.relative),
                places.at(bound, (1e-3,), errors, deltas),
                "wrong factor",
            ),
        ),
    )


def _all_pairs(data: Population | None, people: Sequence[places.PointSet], full: bool) -> Claim:
    sharp = fourier.relative_distances_sharp
    bound = _of_all_pairs(sharp)
    # The bound is within a factor 3 of the truth for n points: few trials tell the two apart only where delta is large.
    settings = _all_pairs_at(sharp, people, (0.5,), 0.2) + (_all_pairs_at(sharp, people, (0.5,), 0.4) if full else ())
    return Claim(
        id="jaxkern:relative-distances",
        paper=places.PAPER,
        where="Theorem B, all pairs (ours)",
        kind="tail bound",
        tex=r"\max_{x,y\in X}\Bigl|\frac{D_{\hat K}(x,y)}{D_K(x,y)}-1\Bigr|\le\varepsilon\text{ w.p. }"
        r"1-\tbinom n2(p_++p_-)",
        hypotheses="The Gaussian kernel, any $n$ points of any dimension, fixed before the draw, and "
        r"$10^{-4}\le\varepsilon<1$. Tried on three sets of 16 points, or on at most 24 rows of a table.",
        because="The sizes that `jaxkern.plan.fourier` gives: Theorem B for one pair, added over the pairs, which "
        "loses a factor near 3. `jaxkern:relative-distances-pair` is the same for small delta.",
        corrected=Form(Tail(trials.largest_error, bound), settings, "certified"),
        controls=(_fewer_frequencies(bound, settings[0], data),),
    )


def _fewer_frequencies(bound: Callable[[Setting], Bound], setting: Setting, data: Population | None) -> Control:
    """Return the control of a bound for all pairs; the distances of a table may be too large for a half to show."""
    name, part = ("half of the frequencies", 2) if data is None else ("one frequency", setting.shapes["rows"])
    fewer = controls.changed((setting,), name, shapes={"part": part})
    return Control(name, Tail(trials.largest_error_of_part, bound), fewer, "wrong factor")


def _all_pairs_at(
    bound: Callable[..., Bound], people: Sequence[places.PointSet], deltas: tuple[float, ...], eps: float
) -> tuple[Setting, ...]:
    settings = []
    for name, n, arrays in people:
        for delta in deltas:
            t = places.fewest(lambda t, n=n: bound(eps=eps, num_frequencies=t, num_points=n), delta)  # type: ignore[misc]
            label = f"{name}, eps={eps:g}, delta={delta:g}, t={t}"
            numbers = {"eps": eps, "t": float(t), "n": float(n)}
            settings.append(Setting(label, arrays, numbers, {"rows": t}))
    return tuple(settings)


def _of_all_pairs(bound: Callable[..., Bound]) -> Callable[[Setting], Bound]:
    def evaluate(setting: Setting) -> Bound:
        n = setting.numbers
        return bound(eps=n["eps"], num_frequencies=n["t"], num_points=n["n"])

    return evaluate
