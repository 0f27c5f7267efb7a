"""amini2021: Theorem 1, its special cases and its sharper forms, by sampling (Section 2.1)."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import stats

from jaxkern import kernels, problems
from jaxkern.bounds import Bound, concentration
from proofs_check.claim import Claim, Control, Exact, Form, Setting, Tail
from proofs_check.papers.amini2021 import exact
from proofs_check.papers.amini2021 import trials as t

PAPER = "amini2021"

Formula = Callable[..., Bound]


def claims(models: Sequence[t.Model], deltas: Sequence[float]) -> list[Claim]:
    """Return Theorem 1, Proposition 1, (10), (12) and Proposition 3."""
    return [
        _theorem_1(deltas),
        _proposition_1(),
        _eq10(models, deltas),
        _eq12(deltas),
        _proposition_3(deltas),
    ]


def ours(models: Sequence[t.Model], deltas: Sequence[float]) -> list[Claim]:
    """Return the claims that the paper does not have."""
    return [_class_lc(deltas), _distance_kernel(models, deltas), _known_variance(models, deltas)]


def _at(
    models: Sequence[t.Model], deltas: Sequence[float], *, operator: bool = False, square: float = 2.0
) -> tuple[Setting, ...]:
    """Return the models, in a norm, with t such that exp(-t^2 / square) = delta."""
    return tuple(
        model.setting(f"delta={delta:g}", {"t": math.sqrt(square * math.log(1 / delta)), "operator": float(operator)})
        for model in models
        for delta in deltas
    )


def _bound(formula: Formula, *words: str, **options: float) -> Callable[[Setting], Bound]:
    """Return a bound divided by n, with the named numbers of the setting besides L, omega, scale, n and t."""

    def right(setting: Setting) -> Bound:
        numbers = setting.numbers
        given = {name: numbers[name] for name in ("lipschitz", "omega", "scale", "t", *words)}
        return t.per_point(formula(**given, num_points=numbers["n"], **options), setting)

    return right


def _no_deviation(bound: Callable[[Setting], Bound], formula: Formula, *words: str) -> Callable[[Setting], Bound]:
    """Return a bound without its term in t, with its probability."""

    def right(setting: Setting) -> Bound:
        still = Setting(setting.name, numbers={**setting.numbers, "t": 0.0})
        return Bound(_bound(formula, *words)(still).value, bound(setting).probability, True, "without t")

    return right


# ---------------------------------------------------------------------------------------------------------- Theorem 1


def _theorem_1(deltas: Sequence[float]) -> Claim:
    def gap(c: float, e: float) -> Setting:
        numbers = {"lipschitz": 1.0, "omega": 4 * e, "scale": 1.0, "n": 32.0, "c": c, "e": e}
        numbers["t"] = math.sqrt(math.log(20) / c)
        return Setting(f"W within {e:g} of -1 or 1, c={c:g}", None, numbers, {"n": 32})

    def rooted(setting: Setting) -> Bound:
        """The mean of the order of sqrt(n) instead of n."""
        right, n = bound(setting), setting.numbers["n"]
        lost = 2 * setting.numbers["omega"] * (1 - n**-0.5) * math.sqrt(2)
        return Bound(right.value - lost, right.probability, right.valid, right.source)

    bound = _bound(concentration.lipschitz_kernel, as_printed=True)
    models = (t.sums("x + y, Gaussian"), t.sums("x + y, ramp", problems.RampLaw()))
    return Claim(
        id="amini2021:thm1",
        paper=PAPER,
        where="Theorem 1, (4)",
        kind="tail bound",
        tex=r"\|K-\mathbb EK\|\le2L\omega\sigma_\infty(n/\sqrt c+\sqrt n\,t)\text{ w.p. }1-e^{-ct^2}"
        r"\text{ for a universal }c",
        hypotheses=r"Independent $X_i=\mu_i+\sqrt{\Sigma_i}\,W_i$ in class LC, whose case (b) asks for densities of "
        r"at least $1/\omega$ on the support (corrected: on an interval); an $L$-Lipschitz kernel, $t\ge0$. Tried "
        "with sums of first coordinates, $K=x_1+y_1$, and with laws of (b) and the normal one.",
        because="With a gap in the support of W, which class (b) allows, |K - E K| stays near n while omega is as "
        "small as one likes: false for every c. With an interval it is true, and c = 1/2 serves the whole class.",
        printed=Form(
            Tail(t.gap_error, _bound(concentration.lipschitz_kernel, "c", as_printed=True)),
            (gap(0.5, 0.01), gap(0.01, 0.003), gap(1e-4, 1e-4)),
            "refuted",
        ),
        corrected=Form(
            Tail(t.gram_error, bound),
            _at(models, deltas, operator=True),
            "certified",
            r"c=\tfrac12;\ \text{(b) on an interval}",
        ),
        controls=(
            Control(
                "sqrt(n) for n",
                Tail(t.gram_error, rooted),
                _at(models[:1], deltas[:1], operator=True),
                kind="wrong power",
            ),
        ),
    )


def _class_lc(deltas: Sequence[float]) -> Claim:
    models = (
        t.sums("Gaussian"),
        t.sums("class (a), softplus", problems.SoftplusImageLaw()),
        t.sums("class (b), uniform", problems.RampLaw(0.0)),
        t.sums("class (b), ramp", problems.RampLaw()),
        t.sums("class (c), skewed", problems.SkewedLaw()),
    )
    formula = concentration.lipschitz_kernel
    bound = _bound(formula, "mean_scale")
    return Claim(
        id="jaxkern:thm1-lc",
        paper=PAPER,
        where="Theorem A (ours), part 2",
        kind="tail bound",
        tex=r"\|K-\mathbb EK\|_F\le L\omega\bigl(\bar\sigma\sqrt{2n(n+1)}+2\sigma_\infty"
        r"\sqrt n\,t\bigr)\text{ w.p. }1-e^{-t^2/2}",
        hypotheses=r"Independent $X_i=\mu_i+\sqrt{\Sigma_i}\,W_i$ in class LC, in case (b) with densities on an "
        r"interval; an $L$-Lipschitz kernel, $t\ge0$; $\bar\sigma^2$ is the mean of the $\|\Sigma_i\|$. Tried with "
        r"$K=x_1+y_1$ and $\Sigma_i=I$, one law at a time; in case (b) $\omega/\sqrt{2\pi}$ stands for $\omega$.",
        because="Class LC consists of Lipschitz images of Gaussian vectors; the mean by the Poincare inequality, the "
        "rest by Gaussian concentration. Tried with K = x + y, for which the mean is attained.",
        corrected=Form(Tail(t.gram_error, bound), _at(models, deltas), "certified"),
        controls=(
            Control(
                "without the term in t",
                Tail(t.gram_error, _no_deviation(bound, formula, "mean_scale")),
                _at(models[:1], deltas[:1]),
                kind="term left out",
            ),
            Control(
                "one draw of the noise for all points",
                Tail(t.gram_error, bound),
                tuple(Setting(s.name, s.population, {**s.numbers, "reused": 1.0}) for s in _at(models[:1], (0.01,))),
                kind="reused key",
            ),
        ),
    )


def _proposition_1() -> Claim:
    def probability(factor: float) -> Exact:
        def check(setting: Setting) -> tuple[float, float]:
            """X is -2, 0 or 2 with probabilities 1/4, 1/2, 1/4 and s = L = 1: K - E K = h h' - I / 2."""
            n = setting.shapes["n"]
            lower = concentration.lower_limit(lipschitz=1.0, scale=1.0, num_points=n)
            count = np.arange(n + 1)
            below = stats.binom.pmf(count, n, 0.5) @ (np.maximum(count - 0.5, 0.5) <= factor * lower.value)
            return exact.log_of(float(below)), math.log(1 - lower.probability)

        return Exact(check)

    settings = tuple(Setting(f"n={n}", shapes={"n": n}) for n in (8, 16, 32, 64))
    return Claim(
        id="amini2021:prop1",
        paper=PAPER,
        where="Proposition 1, (5)",
        kind="tail bound",
        tex=r"K(x,y)=h(x)h(y)\ \Rightarrow\ \|K-\mathbb EK\|>\tfrac18L\sigma n\text{ w.p. }1-e^{-n/8},\ n\ge8",
        hypotheses=r"The $X_i$ are independent with one symmetric law on the line, $P(|X_i|>\sigma)=1/2$; $h(x)$ is "
        r"$\sqrt{L/\sigma}$ times $x$ cut to $[-\sigma,\sigma]$, $n\ge8$. Tried with $X_i=-2,0,2$ and $L=\sigma=1$, "
        r"where the law of $\|K-EK\|$ is known.",
        because="True; |h|^2 is a binomial variable for X = -2, 0, 2. So the order n in Theorem 1 is right.",
        printed=Form(probability(1.0), settings, "certified"),
        controls=(Control("n / 2 for n / 8", probability(4.0), settings, kind="wrong factor"),),
    )


# ---------------------------------------------------------------------------------------------------- special cases


def _gaussian(as_printed: bool, *, power: float = 0.0, square: bool = False) -> Callable[[Setting], Bound]:
    """Return the bound of (10) on |K - E K| / n times d^power, in units of the lengthscale, which L tells.

    With `square` the square of the standard deviation of a coordinate stands for it.
    """

    def right(setting: Setting) -> Bound:
        n, d = setting.numbers, setting.population["means"].shape[1]
        deviation = n["scale"] * n["lipschitz"] * math.exp(0.5)
        found = concentration.gaussian_kernel(
            noise=math.sqrt(d) * (deviation**2 if square else deviation),
            lengthscale=1.0,
            dim=d,
            num_points=n["n"],
            t=n["t"],
            as_printed=as_printed,
        )
        return exact.rescaled(found, d**power)

    return right


def _eq10(models: Sequence[t.Model], deltas: Sequence[float]) -> Claim:
    settings = _at(models, deltas, operator=True, square=1.0)
    return Claim(
        id="amini2021:eq10",
        paper=PAPER,
        where="Example 1, (10)",
        kind="tail bound",
        tex=r"\tfrac1n\|K-\mathbb EK\|\le\tfrac4e\,\tfrac\sigma\tau\,\tfrac1{\sqrt d}\bigl(1+\tfrac t{\sqrt n}\bigr)"
        r"\text{ w.p. }1-e^{-t^2}",
        hypotheses=r"$X_i=\mu_i+(\sigma/\sqrt d)\,w_i$ with independent standard normal $w_i$ and any $\mu_i$; the "
        r"Gaussian kernel of bandwidth $\tau$; $t\ge0$.",
        because="True, though derived from a wrong constant L: with the right one Theorem 1 gives 1.716 for 4 / e = "
        "1.472, and distance kernels have less. The sharper bound holds in Frobenius norm.",
        printed=Form(Tail(t.gram_error, _gaussian(True)), settings, "certified"),
        corrected=Form(
            Tail(t.gram_error, _gaussian(False)),
            _at(models, deltas, square=1.0),
            "certified",
            r"\tfrac1n\|K-\mathbb EK\|_F\le\tfrac\sigma\tau(ed)^{-1/2}\bigl(\sqrt{2(1-1/n)}+\tfrac{2t}{\sqrt n}\bigr)",
        ),
        controls=(
            Control(
                "1 / d for 1 / sqrt(d)",
                Tail(t.gram_error, _gaussian(True, power=-0.5)),
                settings[:1],
                kind="wrong power",
            ),
            Control(
                "the variance of a coordinate for its root",
                Tail(t.gram_error, _gaussian(True, square=True)),
                settings[:1],
                kind="swapped constants",
            ),
        ),
    )


def _eq12(deltas: Sequence[float]) -> Claim:
    n = d = t.POINTS
    decay = 1 / np.arange(1.0, d + 1)
    anisotropic = np.tile(decay / d, (n, 1))
    models = (
        t.sums("x + y, |Sigma|=1", variances=decay / d),
        t.Model("distances, |Sigma|=1", kernels.Distance(), 1.0, t.two_centres(n, d, 1.0), anisotropic),
    )

    def bound(as_printed: bool, op_norm: float = 1.0) -> Callable[[Setting], Bound]:
        return lambda setting: concentration.anisotropic_noise(
            lipschitz=1.0, op_norm=op_norm, dim=d, num_points=n, t=setting.numbers["t"], as_printed=as_printed
        )

    settings = _at(models, deltas, operator=True, square=1.0)
    return Claim(
        id="amini2021:eq12",
        paper=PAPER,
        where="(12)",
        kind="tail bound",
        tex=r"\tfrac1n\|K-\mathbb EK\|\le2\sqrt2\,L\sqrt{\|\Sigma\|/d}\,\bigl(1+\tfrac t{"
        r"\sqrt n}\bigr)\text{ w.p. }1-e^{-t^2}",
        hypotheses=r"$X_i=\mu_i+w_i/\sqrt d$ with independent $w_i\sim N(0,\Sigma)$ and any $\mu_i$; an "
        r"$L$-Lipschitz kernel, $t\ge0$. Tried with $K=x_1+y_1$ and $K=\|x-y\|$, and a diagonal $\Sigma$.",
        because="True for every Lipschitz kernel. The Poincare inequality halves its first term.",
        printed=Form(Tail(t.gram_error, bound(True)), settings, "certified"),
        corrected=Form(
            Tail(t.gram_error, bound(False)),
            settings,
            "certified",
            r"\tfrac1n\|K-\mathbb EK\|\le L\sqrt{\|\Sigma\|/d}\,\bigl(\sqrt{2(1+1/n)}+2\sqrt2\,\tfrac t{\sqrt n}\bigr)",
        ),
        controls=(
            Control(
                "tr Sigma / d for |Sigma|",
                Tail(t.gram_error, bound(False, float(decay.mean()))),
                settings[:1],
                kind="swapped constants",
            ),
        ),
    )


def _distance_kernel(models: Sequence[t.Model], deltas: Sequence[float]) -> Claim:
    n = t.POINTS
    close_and_far = np.random.default_rng(21).standard_normal((n, n)) * (np.arange(n) < 3)
    close_and_far *= np.repeat([0.0, 0.3, 3.0], n // 3)[:, None]
    levels = np.repeat([0.2, 0.5, 1.0], n // 3)
    two = t.distances("distances, two far centres", t.two_centres(n, n, 50.0), 1.0, 3)  # the mean is nearly attained
    models = (t.distances("distances, three levels of noise", close_and_far, levels, 3), *models, two)
    bound = _bound(concentration.distance_kernel, "mean_scale")
    return Claim(
        id="jaxkern:distance-kernel",
        paper=PAPER,
        where="Theorem A (ours), part 3",
        kind="tail bound",
        tex=r"\|K-\mathbb EK\|_F\le L\omega\bigl(\bar\sigma\sqrt{2n(n-1)}+\sigma_\infty"
        r"\sqrt{2n}\,t\bigr)\text{ w.p. }1-e^{-t^2/2}",
        hypotheses=r"Independent $X_i=\mu_i+\sqrt{\Sigma_i}\,W_i$ in class LC, in case (b) with densities on an "
        r"interval; $K(x,y)=g(x-y)$ with an even $L$-Lipschitz $g$, $t\ge0$; $\bar\sigma^2$ is the mean of the "
        r"$\|\Sigma_i\|$. Tried with normal $W_i$ alone.",
        because="The diagonal is constant, and a common shift of all points changes nothing.",
        corrected=Form(Tail(t.gram_error, bound), _at(models, deltas), "certified"),
        controls=(
            Control(
                "half of it",
                Tail(t.gram_error, lambda setting: exact.rescaled(bound(setting), 0.5)),
                _at((two,), deltas[:1]),
                kind="wrong factor",
            ),
        ),
    )


def _known_variance(models: Sequence[t.Model], deltas: Sequence[float]) -> Claim:
    @functools.cache
    def total(model: t.Model) -> float:
        means, d = model.means, model.means.shape[1]
        words = {"noise_variance": 2 * float(model.variances[0, 0]), "lengthscale": float(model.kernel.lengthscale)}
        squared = np.sum((means[:, None] - means) ** 2, axis=2)[~np.eye(len(means), dtype=bool)]
        distinct, counts = np.unique(squared, return_counts=True)
        values = [
            concentration.gaussian_pair_variance(squared_distance=float(x), dim=d, **words).value for x in distinct
        ]
        return float(counts @ np.array(values))

    def places(deltas: Sequence[float]) -> tuple[Setting, ...]:
        return tuple(
            Setting(s.name, s.population, {**s.numbers, "total_variance": total(model)}, s.shapes)
            for model in models
            for s in _at((model,), deltas)
        )

    formula = concentration.distance_kernel_from_variance
    bound = _bound(formula, "total_variance")
    return Claim(
        id="jaxkern:distance-kernel-variance",
        paper=PAPER,
        where="Theorem A (ours), part 3 with exact variances",
        kind="tail bound",
        tex=r"\|K-\mathbb EK\|_F\le\Bigl(\sum_{i,j}\operatorname{var}K_{ij}"
        r"\Bigr)^{1/2}+L\omega\sigma_\infty\sqrt{2n}\,t"
        r"\text{ w.p. }1-e^{-t^2/2}",
        hypotheses="As for any distance kernel: independent points of class LC and $K(x,y)=g(x-y)$ with an even "
        r"$L$-Lipschitz $g$, $t\ge0$. Tried with isotropic normal noise and the Gaussian kernel alone, for which "
        "the variances are known.",
        because="The root of the exact second moment bounds the mean; for the Gaussian kernel it is known.",
        corrected=Form(Tail(t.gram_error, bound), places(deltas), "certified"),
        controls=(
            Control(
                "without the term in t",
                Tail(t.gram_error, _no_deviation(bound, formula, "total_variance")),
                places(deltas[:1]),
                kind="term left out",
            ),
        ),
    )


# ---------------------------------------------------------------------------------------------- Proposition 3


def _proposition_3(deltas: Sequence[float]) -> Claim:
    n = t.POINTS
    mean = math.sqrt(n) * exact.mean_chi(n) + math.sqrt(2 * n / math.pi)  # |w 1' + 1 w'| = sqrt(n) |w| + |1'w|

    def above_mean(factor: float) -> Callable[[Setting], Bound]:
        """Return a bound of V / n: of E V, which is known, and of a multiple of the deviation."""

        def right(setting: Setting) -> Bound:
            found = _bound(concentration.deviation)(setting)
            return Bound(mean / n + factor * found.value, found.probability, found.valid, found.source)

        return right

    settings = _at((t.sums("x + y, Gaussian"),), deltas, operator=True)
    return Claim(
        id="amini2021:prop3",
        paper=PAPER,
        where="Proposition 3",
        kind="tail bound",
        tex=r"P(V-\mathbb EV\ge2\sqrt n\,L\sigma_\infty\omega t)\le e^{-ct^2},\ V=\|K-\mathbb EK\|",
        hypotheses=r"All $W_i$ of $X_i=\mu_i+\sqrt{\Sigma_i}\,W_i$ together have property (33) with constant "
        r"$c/\omega^2$; an $L$-Lipschitz kernel, $t\ge0$. Tried with independent normal points, for which $c=1/2$ "
        r"and $\omega=1$, and $K=x_1+y_1$ alone.",
        because="True, from Lemma 1. For K = x + y and Gaussian noise E V is known.",
        printed=Form(Tail(t.gram_error, above_mean(1.0)), settings, "certified"),
        controls=(
            Control("1 / sqrt(n) for sqrt(n)", Tail(t.gram_error, above_mean(1 / n)), settings[:1], kind="wrong power"),
        ),
    )
