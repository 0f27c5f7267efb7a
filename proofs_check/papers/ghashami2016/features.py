"""ghashami2016, how well random features reproduce a Gram matrix: Lemma 3.1, and what the paper does not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Claim, Control, Expectation, Form, Setting, Statement, Tail, Trial
from proofs_check.papers.ghashami2016 import trials as t

PAPER = "ghashami2016"
SHIFTED, PAIRED = {"size": 256, "paired": 0}, {"size": 128, "paired": 1}

_PAIRED_VARIANCE = (
    r"$v\ge\tfrac12+\tfrac12K(2u)-K(u)^2$ for all differences $u$: $v=\tfrac12$ for the Gaussian kernel, $1$ for "
    "every kernel."
)

Log = Callable[[float, int], float]
"""The logarithm that a bound has at delta and n."""


def _all_points(delta: float, n: int) -> float:
    return math.log(2 * n / delta)


def _two_sided(delta: float, n: int) -> float:
    return math.log(2 / delta)


def _places(
    clouds: Sequence[t.Cloud], deltas: Sequence[float], shapes: dict[str, int], p: float, q: float, log: Log
) -> tuple[Setting, ...]:
    """Return settings with the eps at which eps^2 size = (p + q eps) log(delta, n): the bound fails with delta.

    Theorem A, whose error depends on tau = log(1 / delta) and not on eps, takes p = q = 0.
    """
    size, settings = shapes["size"], []
    for cloud in clouds:
        for delta in deltas:
            L = log(delta, cloud.num_points)
            eps = (q * L + math.sqrt((q * L) ** 2 + 4 * size * p * L)) / (2 * size)
            label = f"{'t' if shapes['paired'] else 'm'}={size}, delta={delta:g}" + (f", eps={eps:.3g}" if eps else "")
            numbers = {"eps": eps, "tau": math.log(1 / delta), "scale": 1}
            settings.append(cloud.setting(label, numbers, shapes))
    return tuple(settings)


def _of(formula: Callable[..., Bound], size: str, *names: str, **options: Any) -> Callable[[Setting], Bound]:
    """Return the bound of a setting: its size under the name `size`, and numbers of the setting by name."""
    numbers = {"num_points": "n", "eps": "eps", "tau": "tau"}

    def bound(setting: Setting) -> Bound:
        words = {name: setting.numbers[numbers[name]] for name in names}
        return formula(**{size: setting.shapes["size"]}, **words, **options)

    return bound


def badly_scaled(statement: Statement, places: Sequence[Setting], size: float) -> tuple[Control, ...]:
    """Return controls with sqrt(1 / m) for sqrt(2 / m), that is with half of Z Z', and without 1 / sqrt(m), m = `size`.

    The trial multiplies Z Z' by `numbers["scale"]`.
    """
    halved = controls.changed(places, "halved", numbers={"scale": 0.5})
    unscaled = controls.changed(places, "not divided", numbers={"scale": size})
    return (
        Control("features without the root of two", statement, halved, "wrong factor"),
        Control("features without 1/sqrt(m)", statement, unscaled, "missing normalisation"),
    )


def lem3_1(clouds: Sequence[t.Cloud], deltas: Sequence[float]) -> Claim:
    """Return Lemma 3.1."""
    printed = _places(clouds, deltas, SHIFTED, 9, 8, _all_points)
    corrected = _places(clouds, deltas, SHIFTED, 2, 4 / 3, _all_points)
    names = ("num_features", "eps", "num_points")
    bound = _of(bounds.gram_spectral_shifted, *names)
    return Claim(
        id="ghashami2016:lem3.1",
        paper=PAPER,
        where="Lemma 3.1",
        kind="tail bound",
        tex=r"\|G-\hat G\|_2\le\epsilon n\text{ w.p. }1-\delta,\ m=\tfrac{9+8\epsilon}{\epsilon^2}\ln\tfrac{2n}\delta",
        hypotheses="A shift-invariant kernel with $K(x,x)=1$, $n$ points fixed before $m$ independent shifted "
        "features are drawn. Tried with the Gaussian kernel, at $m=256$ and $n=32$ or a table's rows.",
        because="True. Without two triangle inequalities, and with the constants of matrix Bernstein, 2 + 4 eps / 3 "
        "takes the place of 9 + 8 eps.",
        printed=Form(
            Tail(t.spectral_error, _of(bounds.gram_spectral_shifted, *names, as_printed=True)), printed, "certified"
        ),
        corrected=Form(
            Tail(t.spectral_error, bound),
            corrected,
            "certified",
            r"m=\tfrac{2+4\epsilon/3}{\epsilon^2}\ln\tfrac{2n}\delta",
        ),
        controls=badly_scaled(Tail(t.spectral_error, bound), corrected[:1], SHIFTED["size"]),
    )


def ours(clouds: Sequence[t.Cloud], deltas: Sequence[float]) -> list[Claim]:
    """Return the claims that the paper does not have."""
    v = _variance(clouds)
    return [
        _own_tail(
            "gram-spectral",
            "Lemma 3.1 for paired features (ours)",
            r"\|G-\hat G\|_2\le\epsilon n\text{ w.p. }1-\delta,\ "
            r"t=\tfrac{1/2+2\epsilon/3}{\epsilon^2}\ln\tfrac{2n}\delta",
            "A pair has |z|^2 = 1 / t where a shifted cosine has 2 / m at most, and about half of the features do.",
            t.spectral_error,
            _of(bounds.gram_spectral_paired, "num_frequencies", "eps", "num_points"),
            _places(clouds, deltas, PAIRED, 1 / 2, 2 / 3, _all_points),
            "A shift-invariant kernel with $K(x,x)=1$, $n$ points fixed before $t$ independent pairs are drawn, "
            r"$\epsilon>0$.",
        ),
        _own_tail(
            "gram-spectral-all-n",
            "Theorem C (ours)",
            r"\|G-\hat G\|_2\le\epsilon n\text{ w.p. }1-\delta,\ "
            r"t=\tfrac{1/2+2\epsilon/3}{\epsilon^2}\ln\tfrac{40}\delta",
            "The variance has an intrinsic dimension of at most 5, whatever n.",
            t.spectral_error,
            _of(bounds.gram_spectral_paired_all_n, "num_frequencies", "eps"),
            _places(clouds, deltas, PAIRED, 1 / 2, 2 / 3, lambda delta, n: math.log(40 / delta)),
            "A shift-invariant kernel with $K(x,x)=1$, any number of points, fixed before $t$ independent pairs are "
            r"drawn, $\epsilon\ge\tfrac1{2\sqrt t}+\tfrac1{3t}$.",
        ),
        _own_tail(
            "gram-frobenius",
            "Theorem A, shifted features (ours)",
            r"\|G-\hat G\|_F\le n\,\frac{\sqrt v+2\sqrt{\ln(1/\delta)}}{\sqrt m}\text{ w.p. }1-\delta",
            "The second moment is known exactly, and McDiarmid's inequality does the rest: no logarithm of n, and no "
            "net for all directions.",
            t.frobenius_error,
            _of(bounds.gram_frobenius_shifted, "num_features", "tau", variance=v),
            _places(clouds, deltas, SHIFTED, 0, 0, _two_sided),
            r"A shift-invariant kernel with $K(x,x)=1$, points fixed before the draw, $0<\delta<1$, and "
            r"$v\ge1+\tfrac12K(2u)-K(u)^2$ for all differences $u$: $v=1$ for the Gaussian kernel, $\tfrac32$ for "
            "every kernel.",
        ),
        _own_tail(
            "gram-frobenius-paired",
            "Theorem A, paired features (ours)",
            r"\|G-\hat G\|_F\le n\,\frac{\sqrt v+\sqrt{\ln(1/\delta)}}{\sqrt t}\text{ w.p. }1-\delta",
            "As for shifted features; changing one pair of t moves Z Z' by half of what changing one cosine of t does.",
            t.frobenius_error,
            _of(bounds.gram_frobenius_paired, "num_frequencies", "tau", variance=v / 2),
            _places(clouds, deltas, PAIRED, 0, 0, _two_sided),
            r"A shift-invariant kernel with $K(x,x)=1$, points fixed before the draw, $0<\delta<1$, and "
            + _PAIRED_VARIANCE,
        ),
        _own_tail(
            "gram-frobenius-bernstein",
            "Theorem B (ours)",
            r"\|G-\hat G\|_F\le\epsilon n\text{ w.p. }1-\delta,\ "
            r"t=\tfrac{2v+2\sqrt2\epsilon/3}{\epsilon^2}\ln\tfrac2\delta",
            "Bernstein's inequality in the space of matrices; the better one for small delta.",
            t.frobenius_error,
            _of(bounds.gram_frobenius_paired_bernstein, "num_frequencies", "eps", variance=v / 2),
            _places(clouds, deltas, PAIRED, v, 2 * math.sqrt(2) / 3, _two_sided),
            r"A shift-invariant kernel with $K(x,x)=1$, points fixed before the draw, $\epsilon>0$, and "
            + _PAIRED_VARIANCE,
        ),
        _own_tail(
            "quadratic-form-paired",
            "Theorem 3.1 for paired features (ours)",
            r"\bigl|x^{\top}(G-\hat G)x\bigr|\le\epsilon n\text{ w.p. }1-\delta,\ "
            r"t=\tfrac1{2\epsilon^2}\ln\tfrac2\delta",
            "The exponent that is printed for m shifted features holds for t pairs, whose terms lie in [0, n].",
            t.form_error,
            _of(bounds.quadratic_form_paired, "num_frequencies", "eps"),
            _places(clouds, deltas, PAIRED, 1 / 2, 0, _two_sided),
            r"A shift-invariant kernel with $K(x,x)=1$; points and a unit vector $x\in\mathbb R^n$, fixed before $t$ "
            r"independent pairs are drawn; $\epsilon>0$. Tried for $x=(1,\dots,1)/\sqrt n$.",
        ),
        _second_moment(clouds),
    ]


def _variance(clouds: Sequence[t.Cloud]) -> float:
    """Return v of Theorem A for shifted features, and twice that for paired ones: 1, or 2 where K is not Gaussian."""
    return 1.0 if all(isinstance(cloud.kernel, kernels.Gaussian) for cloud in clouds) else 2.0


def _own_tail(
    name: str,
    where: str,
    tex: str,
    because: str,
    trial: Trial,
    bound: Callable[[Setting], Bound],
    places: tuple[Setting, ...],
    hypotheses: str,
) -> Claim:
    return Claim(
        id=f"jaxkern:{name}",
        paper=PAPER,
        where=where,
        kind="tail bound",
        tex=tex,
        hypotheses=hypotheses,
        because=because,
        corrected=Form(Tail(trial, bound), places, "certified"),
        controls=badly_scaled(Tail(trial, bound), places[:1], places[0].shapes["size"]),
    )


def _second_moment(clouds: Sequence[t.Cloud]) -> Claim:
    places = []
    for cloud in clouds:
        for paired in (0, 1):
            double = float(jnp.mean(gram(cloud.kernel, 2 * cloud.population["points"])))
            square = float(jnp.mean(cloud.population["gram"] ** 2))
            target = ((1 + double) / 2 if paired else 1 + double / 2) - square
            if target > 1e-3:  # pairs reproduce the Gram matrix of copies of a point exactly
                numbers, shapes = {"scale": 1, "target": target / 8}, {"size": 8, "paired": paired}
                places.append(cloud.setting("t=8" if paired else "m=8", numbers, shapes))

    def target_of(setting: Setting) -> float:
        return setting.numbers["target"]

    statement = Expectation(t.frobenius_square, target_of, target_of)
    swapped = controls.changed(
        places[-1:], "gamma", population=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])}
    )
    return Claim(
        id="jaxkern:gram-frobenius-identity",
        paper=PAPER,
        where="proof of Theorem A (ours)",
        kind="expectation",
        tex=r"\mathbb E\|G-\hat G\|_F^2=\tfrac1m\Bigl(n^2+\tfrac12\sum_{ij}K(2(x_i-x_j))-\|G\|_F^2\Bigr),\ "
        r"\text{and }\tfrac1t\Bigl(\tfrac12n^2+\tfrac12\sum_{ij}K(2(x_i-x_j))-\|G\|_F^2\Bigr)\text{ for pairs}",
        hypotheses="A shift-invariant kernel with $K(x,x)=1$, points fixed before the draw of independent features. "
        "Tried with 8 of them; copies of a point, which pairs reproduce exactly, are left to shifted features.",
        because="The sum of the variances of all entries: cos^2 has the mean (1 + K(2 d)) / 2, and the shifts add 1/2.",
        corrected=Form(statement, tuple(places), "certified"),
        controls=(
            *badly_scaled(statement, places[:1], 8),
            Control("one feature repeated 8 times", statement, controls.one_draw(places[:1], "size"), "reused key"),
            Control("gamma for the lengthscale", statement, swapped, "swapped constants"),
        ),
    )
