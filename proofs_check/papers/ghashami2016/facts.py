"""ghashami2016, what it quotes and builds on: Frequent Directions, Nystrom, random features, two inequalities."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import Calibrated, Claim, Control, Exact, Expectation, Form, Inequality, Rate, Setting, Tail
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.features import badly_scaled
from proofs_check.papers.shared import always

PAPER = "ghashami2016"

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


def claims(clouds: Sequence[t.Cloud], deltas: Sequence[float]) -> list[Claim]:
    """Return the quoted facts in the paper's order: those of Sections 1 and 2, and the inequalities of Section 3."""
    return [
        _sketch_fact(),
        *(_nystrom_fact(spectral, deltas) for spectral in (False, True)),
        _nystrom_coherence(deltas),
        _features_mean(),
        _features_entries(clouds, deltas),
        _rnca_mean(),
        _rnca_markov(),
        _features_squares(),
        _bernstein(),
        _hoeffding(),
    ]


def ours(deltas: Sequence[float]) -> list[Claim]:
    """Return what these facts become with proofs of our own: Theorems H and I of docs/theory/ghashami2016.md."""
    return [_nystrom_best_rank(deltas), _nystrom_mean()]


# ------------------------------------------------------------------------------------------------- Frequent Directions


def _sketch_fact() -> Claim:
    def sides(shrink_at: Callable[[int], int]) -> Sides:
        """Return the check of |A'A - B'B|_2 <= eps |A|_F^2 for the sketch that shrinks at shrink_at(l)."""

        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            A, size = setting.population["rows"], setting.shapes["l"]
            B, _ = t.algorithm_1(A, size, shrink_at=shrink_at(size))
            energy = float(np.sum(A**2))
            right = streaming.frequent_directions(residual_energy=1.0, sketch_size=size, rank=0)
            return [(float(np.linalg.norm(A.T @ A - B.T @ B, 2)) / energy, right)]

        return check

    places = tuple(
        Setting(f"{name}, l={size}, eps={2 / size:g}", {"rows": A}, shapes={"l": size})
        for size in (8, 16)
        for name, A in (("orthonormal rows twice", t.pairs_of_rows(size)), ("decaying", t.decaying()))
    )
    return Claim(
        id="ghashami2016:frequent-directions",
        paper=PAPER,
        where="Section 1.1, matrix sketching",
        kind="inequality",
        tex=r"l=2/\epsilon\ \Rightarrow\ \|A^{\top}A-B^{\top}B\|_2\le\epsilon\|A\|_F^2",
        hypotheses="Any matrix, read row by row, and the sketch that subtracts its squared singular value number "
        "$l/2$, $l$ even. Tried with 96 rows and 24 columns.",
        because="True, and attained: orthonormal rows twice lose 2 |A|_F^2 / l. It is the bound with l / 2, while "
        "Lemma 3.2 takes the one with l for the same sketch. Its time O(n d / eps) is ghashami2016:training with "
        "l = 2 / eps.",
        printed=Form(Inequality(sides(lambda size: size // 2)), places, "consistent"),
        controls=(Control("the largest one subtracted", Inequality(sides(lambda size: 1)), places, "wrong operator"),),
    )


# ------------------------------------------------------------------------------------------------------------- Nystrom


def _nystrom_place(cloud: t.Cloud, size: int, rank: int, spectral: bool, delta: float) -> Setting:
    tails = t.tails(cloud, rank)
    population = {**cloud.population, "tail": jnp.asarray(tails[0 if spectral else 1], cloud.population["gram"].dtype)}
    return Setting(
        f"{cloud.name}, n={cloud.num_points}, c={size}, k={rank}, delta={delta:g}",
        population,
        {"delta": delta, "from": float(cloud.num_points), "scale": 1.0},
        {"size": size, "rank": rank, "spectral": int(spectral)},
    )


def _nystrom_places(spectral: bool, delta: float, size: int) -> tuple[Setting, ...]:
    clouds = (t.clusters(32, 32), t.clusters(60, 4), t.clouds(None, 64)[2])
    return tuple(_nystrom_place(cloud, size, 2, spectral, delta) for cloud in clouds)


def _first_half(places: Sequence[Setting]) -> tuple[Setting, ...]:
    """Return settings whose landmarks are drawn from the first half of the points."""
    return tuple(
        changed
        for place in places[:1]
        for changed in controls.changed((place,), "of the first half", numbers={"from": place.numbers["from"] / 2})
    )


def _nystrom_fact(spectral: bool, deltas: Sequence[float]) -> Claim:
    places = tuple(place for delta in deltas for place in _nystrom_places(spectral, delta, 30))
    norm, power, upper = ("2", 1 / 2, 4.0) if spectral else ("F", 1 / 4, 2.0)

    def shape(setting: Setting) -> Bound:
        delta, c, k = setting.numbers["delta"], setting.shapes["size"], setting.shapes["rank"]
        value = ((1 if spectral else k) * math.log(1 / delta) / c) ** power
        return Bound(value, 1 - delta, k <= c and delta <= math.exp(-1), "ghashami2016, Section 1.1 (Nystrom)")

    statement = Calibrated(t.nystrom_excess, shape, 0.0, upper)
    size = r"O(\epsilon^{-2}\log\tfrac1\delta)" if spectral else r"O(k\epsilon^{-4}\log\tfrac1\delta)"
    return Claim(
        id=f"ghashami2016:nystrom-{'spectral' if spectral else 'frobenius'}",
        paper=PAPER,
        where="Section 1.1, Nystrom",
        kind="tail bound",
        tex=rf"c={size}\ \Rightarrow\ \|G-\bar G_k\|_{norm}\le\|G-G_k\|_{norm}+\epsilon\textstyle\sum_iG_{{ii}}^2"
        r"\text{ w.p. }1-\delta",
        hypotheses=r"$K(x,x)=1$, so that $\sum_iG_{ii}^2=n$ and $p_i=1/n$; $c$ landmarks drawn with replacement, "
        r"$k\le c$, $\delta\le1/e$. The constant is that of $\epsilon$. Tried with the Gaussian kernel, $n=64$, "
        "$c=30$ and $k=2$.",
        because=(
            "True, with a constant of 4 at most for eps, 16 for c: Theorem H. "
            + (
                "The translation to k = n is Theorem G."
                if spectral
                else "Neither k nor the fourth power is needed: the size of the spectral bound is enough here, too."
            )
        ),
        printed=Form(statement, places, "calibrated"),
        controls=(
            Control(
                "n times the error, of 8 landmarks that often miss a cluster",
                statement,
                controls.changed(places[1:2], "not divided by n", numbers={"scale": 64.0}, shapes={"size": 8}),
                "missing normalisation",
            ),
        ),
    )


def _nystrom_best_rank(deltas: Sequence[float]) -> Claim:
    def bound(setting: Setting) -> Bound:
        delta, c = setting.numbers["delta"], setting.shapes["size"]
        value = 2 * (1 + math.sqrt(math.log(1 / delta))) / math.sqrt(c)
        return Bound(value, 1 - delta, setting.shapes["rank"] <= c, "jaxkern, Theorem H of ghashami2016")

    statement = Tail(t.nystrom_excess, bound, lambda setting: 1.0)
    places = tuple(
        place for delta in deltas for spectral in (True, False) for place in _nystrom_places(spectral, delta, 150)
    )
    return Claim(
        id="jaxkern:nystrom-best-rank",
        paper=PAPER,
        where="Theorem H (ours)",
        kind="tail bound",
        tex=r"\|G-\bar G_k\|_\star\le\|G-G_k\|_\star+2\kappa n\,\frac{1+\sqrt{\ln(1/\delta)}}{\sqrt c}"
        r"\text{ w.p. }1-\delta,\ \star\in\{2,F\}",
        hypotheses=r"Any kernel with $K(x,x)\le\kappa$, $c$ landmarks drawn uniformly with replacement, "
        r"$\bar G_k=CW_k^{\dagger}C^{\top}$, $1\le k\le c$. Tried with the Gaussian kernel, $n=64$, $c=150$ and $k=2$.",
        because="The best approximations of Sigma and of the sample's Sigma_c differ by their distance, twice, and "
        "McDiarmid's inequality bounds it in the Hilbert-Schmidt norm: one proof for both norms, without k.",
        corrected=Form(statement, places, "certified"),
        controls=(Control("landmarks from the first half", statement, _first_half(places), "wrong law"),),
    )


def _nystrom_coherence(deltas: Sequence[float]) -> Claim:
    cloud, rank, eps = t.clusters(64, 64), 2, 0.5
    n = cloud.num_points
    coherence = t.coherence(cloud, rank)

    def place(delta: float, full: bool) -> Setting:
        size = math.ceil(2 * coherence * rank * math.log(rank / delta) / eps**2)
        base = _nystrom_place(cloud, size, rank, True, delta)
        shapes = {"size": size, "rank": size if full else rank}
        return Setting(base.name + (", full rank" if full else ""), base.population, base.numbers, shapes)

    def bound(setting: Setting) -> Bound:
        c, delta = setting.shapes["size"], setting.numbers["delta"]
        valid = c * eps**2 >= 2 * coherence * rank * math.log(rank / delta) * (1 - 1e-12) and c <= n
        return Bound(1 + n / ((1 - eps) * c), 1 - delta, valid, "ghashami2016, Section 1.1 (coherence)")

    statement = Tail(t.nystrom_ratio, bound)
    full = tuple(place(delta, True) for delta in deltas)
    return Claim(
        id="ghashami2016:nystrom-coherence",
        paper=PAPER,
        where="Section 1.1, Nystrom",
        kind="tail bound",
        tex=r"c=O\bigl(\mu\tfrac{k\ln(k/\delta)}{\epsilon^2}\bigr)\ \Rightarrow\ "
        r"\|G-\bar G_k\|_2\le\bigl(1+\tfrac n{(1-\epsilon)c}\bigr)\|G-G_k\|_2\text{ w.p. }1-\delta",
        hypotheses=r"$\mu=\tfrac nk\max_i\sum_{j\le k}U_{ij}^2$, the coherence of the leading eigenvectors of $G$; $c$ "
        r"landmarks drawn uniformly without replacement. The constant of $c$ is taken as 2. Tried with $n=128$ points "
        r"in two clusters, $k=2$ and $\epsilon=\tfrac12$.",
        because="Nothing speaks against it. With the constant 2 it is proved for the approximation of full rank, "
        "C W^+ C', which is what is meant by its source; for C W_k^+ C' as printed no proof is known to us.",
        printed=Form(statement, tuple(place(delta, False) for delta in deltas), "certified"),
        corrected=Form(
            statement, full, "certified", r"\bar G=CW^{\dagger}C^{\top},\ c\ge2\mu k\ln(k/\delta)/\epsilon^2"
        ),
        controls=(Control("landmarks from the first half", statement, _first_half(full), "wrong law"),),
    )


def _nystrom_mean() -> Claim:
    def sides(first: bool) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            del key
            G, n = setting.population["gram"], len(setting.population["gram"])
            sizes = range(1, n + 1)
            losses = [t.landmark_loss(G, range(c)) for c in sizes] if first else t.nystrom_mean_squares(G)
            pairs = []
            for c, left in zip(sizes, losses, strict=True):
                value = (1 - float(np.sum(G**2)) / n**2) / c
                pairs.append((left / n**2, always(value, "jaxkern, Theorem I of ghashami2016")))
            return pairs

        return check

    places = t.small_grams()
    return Claim(
        id="jaxkern:nystrom-frobenius-mean",
        paper=PAPER,
        where="Theorem I (ours)",
        kind="inequality",
        tex=r"\mathbb E\|G-CW^{\dagger}C^{\top}\|_F^2\le\frac{n^2-\|G\|_F^2}c"
        r"\le\mathbb E\|G-\hat G\|_F^2\text{ at }m=c",
        hypotheses=r"$K(x,x)=1$, $c$ landmarks drawn uniformly with replacement; $\hat G$ from $m$ shifted features. "
        "Tried by all samples of $c\\le8$ of 8 points, so that the mean is exact.",
        because="The error is at most n times the Hilbert-Schmidt distance of Sigma_c from Sigma, whose mean square is "
        "known exactly. That of shifted features is the same and a term of K(2 (x - y)) more, which is not negative.",
        corrected=Form(Inequality(sides(first=False)), places, "consistent"),
        controls=(Control("the first points as landmarks", Inequality(sides(first=True)), places, "wrong law"),),
    )


# ----------------------------------------------------------------------------------------------------- random features


def _pair(scale: float) -> tuple[Setting, ...]:
    """Return two points at distance 1, away from the origin."""
    dtype = jnp.result_type(float)
    points = jnp.asarray([[0.3, -0.2], [0.9, 0.6]], dtype)
    return (Setting("two points", {"kernel": kernels.Gaussian(1.0), "points": points}, {"scale": scale}, {"size": 8}),)


def _features_mean() -> Claim:
    def target(setting: Setting) -> float:
        del setting
        return math.exp(-1 / 2)

    statement = Expectation(t.inner_product, target, lambda setting: 1.0, limits=lambda setting: (-2.0, 2.0))
    places = _pair(1.0)
    swapped = controls.changed(places, "gamma", population=lambda p: {**p, "kernel": kernels.Gaussian(0.5)})
    return Claim(
        id="ghashami2016:features-mean",
        paper=PAPER,
        where="Section 1.1 and Section 2, feature maps",
        kind="expectation",
        tex=r"\mathbb E\,z(x)^{\top}z(y)=K(x,y)",
        hypotheses=r"A shift-invariant kernel with $K(x,x)=1$, frequencies drawn from its spectral law and shifts from "
        r"$[0,2\pi)$. Tried for two points at distance 1 and 8 features of the Gaussian kernel.",
        because="True: 2 cos(a + c) cos(b + c) has the mean cos(a - b) over c. The kernel that the paper has as its "
        "example is not normalised: with (2 pi)^(-d/2) in front, K(x, x) is not 1, and the features need its root.",
        printed=Form(statement, places, "certified"),
        controls=(
            Control("features without the root of two", statement, _pair(0.5), "wrong factor"),
            Control("gamma for the lengthscale", statement, swapped, "swapped constants"),
        ),
    )


def _features_squares() -> Claim:
    def sides(right: float) -> Sides:
        def check(key: jax.Array, setting: Setting) -> list[tuple[float, Bound]]:
            if setting.population is None:
                Z = t.sign_rows(range(16))
            else:
                Z = np.asarray(t.draw(key, setting.population, 16, 0)(setting.population["points"]), np.float64)
            largest = float(np.max(Z**2)) * Z.shape[1]
            return [(largest, always(right, "ghashami2016, Section 2"))]

        return check

    chosen, drawn = Setting("points chosen after the features, m=64"), t.clouds(None, 32)[2]
    places = (chosen, drawn.setting("m=16", {}, {}))
    return Claim(
        id="ghashami2016:features-squares",
        paper=PAPER,
        where="Section 2, feature maps",
        kind="inequality",
        tex=r"(z(x)_i)^2\le2/m",
        hypotheses="Shifted features of any points.",
        because="True, as cosines are at most 1, and attained by points that are chosen after the features.",
        printed=Form(Inequality(sides(2.0)), places, "consistent"),
        controls=(Control("1 / m", Inequality(sides(1.0)), places, "wrong factor"),),
    )


def _features_entries(clouds: Sequence[t.Cloud], deltas: Sequence[float]) -> Claim:
    size = 1024

    def shape(setting: Setting) -> Bound:
        n, delta = setting.numbers["n"], setting.numbers["delta"]
        dim = setting.population["points"].shape[1]
        value = math.sqrt(dim * math.log(n / delta) / size)
        return Bound(value, 1 - delta, n >= 1 and delta <= 0.5, "ghashami2016, Section 1.1 (random features)")

    def bound(setting: Setting) -> Bound:
        n, delta = setting.numbers["n"], setting.numbers["delta"]
        value = math.sqrt(8 * math.log(n * (n + 1) / delta) / size)
        return Bound(value, 1 - delta, n >= 1, "ghashami2016, Section 1.1 (random features, n points)")

    places = tuple(
        cloud.setting(f"m={size}, delta={delta:g}", {"delta": delta, "scale": 1}, {"size": size, "paired": 0})
        for cloud in clouds
        for delta in deltas
    )
    return Claim(
        id="ghashami2016:features-entries",
        paper=PAPER,
        where="Section 1.1, random features",
        kind="tail bound",
        tex=r"m=O\bigl(\tfrac d{\epsilon^2}\log\tfrac n\delta\bigr)\ \Rightarrow\ |z(x)^{\top}z(y)-K(x,y)|\le\epsilon"
        r"\text{ w.p. }1-\delta",
        hypotheses=r"A shift-invariant kernel with $K(x,x)=1$; all pairs of $n$ points fixed before the draw, "
        r"$\delta\le\tfrac12$. Tried with $m=1024$ and $n=32$ or a table's rows.",
        because="True, with a constant of 16 at most for m: Hoeffding's inequality for terms in [-2, 2], and a union "
        "over n (n + 1) / 2 entries. For n points the dimension is not needed; it is for all points of a ball.",
        printed=Form(Calibrated(t.entry_error, shape, 0.0, 4.0), places, "calibrated"),
        corrected=Form(
            Tail(t.entry_error, bound), places, "certified", r"m=\tfrac8{\epsilon^2}\ln\tfrac{n(n+1)}\delta"
        ),
        controls=badly_scaled(Tail(t.entry_error, bound), places[:1], size),
    )


def _rnca_mean() -> Claim:
    places = tuple(
        Setting(f"copies of a point, m={m}", numbers={"m": float(m)}, shapes={"most": 4096})
        for m in (16, 64, 256, 1024, 4096)
    )
    return Claim(
        id="ghashami2016:rnca-mean",
        paper=PAPER,
        where="Sections 1.1 and 1.2, RNCA",
        kind="rate",
        tex=r"\mathbb E\|G-\hat G\|_2\le\Theta\bigl(\tfrac{n\log n}m\bigr)",
        hypotheses="A shift-invariant kernel with $K(x,x)=1$, $n$ points fixed before the draw of $m$ shifted "
        "features. Tried for copies of one point, where the error over $n$ does not depend on $n$.",
        because="False for large m: of the two terms that matrix Bernstein gives, the one of order n sqrt((log n) / m) "
        "was lost. For copies of a point the mean is near n / sqrt(pi m), so that no constant helps. Theorem A has "
        "n sqrt(1.5 / m) at most, without a logarithm.",
        printed=Form(Rate(t.copies_error, "m", -1.0), places, "refuted"),
        corrected=Form(
            Rate(t.copies_error, "m", -0.5), places, "certified", r"\mathbb E\|G-\hat G\|_2\le n\sqrt{1.5/m}"
        ),
        controls=(Control("m^(-1/4)", Rate(t.copies_error, "m", -0.25), places, "wrong power"),),
    )


def _rnca_markov() -> Claim:
    n, delta = 100, 0.5

    def probability(setting: Setting) -> tuple[float, float]:
        tail = t.copies_tail(setting.numbers["m"], setting.numbers["eps"])
        return math.log(tail), math.log(setting.numbers["delta"])

    def places(formula: Callable[[float], float]) -> tuple[Setting, ...]:
        return tuple(
            Setting(
                f"{n} copies of a point, eps={eps:g}, m={math.ceil(formula(eps))}, delta={delta:g}",
                numbers={"eps": eps, "delta": delta, "m": float(math.ceil(formula(eps)))},
            )
            for eps in (1e-3, 1e-4)
        )

    tenfold, enough = places(lambda eps: 10 * math.log(n) / eps), places(lambda eps: 1.5 / (delta * eps**2))
    return Claim(
        id="ghashami2016:rnca-markov",
        paper=PAPER,
        where="Section 1.2, RNCA",
        kind="tail bound",
        tex=r"m=O\bigl(\tfrac{\log n}\epsilon\bigr)\ \Rightarrow\ \|G-\hat G\|_2\le\epsilon n"
        r"\text{ with constant probability}",
        hypotheses=r"As above; tried with the constant 10, probability $\tfrac12$ and copies of a point, where the "
        "probability is known.",
        because="False, as the mean that it follows from: with C log n / eps features the error of copies of a point "
        "is about eps n / sqrt(2 C eps log n) and more, for every C. Chebyshev's inequality gives 1.5 / (delta eps^2).",
        printed=Form(Exact(probability), tenfold, "refuted"),
        corrected=Form(Exact(probability), enough, "certified", r"m=\tfrac{1.5}{\delta\epsilon^2}"),
        controls=(
            Control(
                "a thirtieth of that", Exact(probability), places(lambda eps: 0.05 / (delta * eps**2)), "wrong factor"
            ),
        ),
    )


# -------------------------------------------------------------------------------------- the inequalities of Section 3


def _bernstein() -> Claim:
    def probability(linear: float) -> Callable[[Setting], tuple[float, float]]:
        """Return the check with `linear` R t in the place of 2 R t, for diagonal matrices of centred coins."""

        def check(setting: Setting) -> tuple[float, float]:
            d, n, q, x = (setting.numbers[name] for name in ("d", "n", "q", "t"))
            # |sum of d centred coins| >= t, in one of n independent places.
            one = stats.binom(d, q)
            low, high = math.floor(d * q - x + 1e-9), math.ceil(d * q + x - 1e-9)
            tail = np.logaddexp(one.logsf(high - 1), one.logcdf(low) if low >= 0 else -math.inf)
            log_any = math.log(-math.expm1(n * math.log1p(-math.exp(tail)))) if tail > -30 else math.log(n) + tail
            variance, largest = d * q * (1 - q), max(q, 1 - q)
            return float(log_any), math.log(2 * n) - x**2 / (3 * variance + linear * largest * x)

        return check

    places = tuple(
        Setting(f"n={n}, {d} coins of {q:g}, t={x:g}", numbers={"d": d, "n": n, "q": q, "t": x})
        for n in (1, 16)
        for d, q, x in ((400, 0.5, 40), (400, 0.5, 80), (1000, 0.001, 15), (1000, 0.01, 30))
    )
    return Claim(
        id="ghashami2016:bernstein",
        paper=PAPER,
        where="Section 3.1.1, matrix Bernstein inequality",
        kind="tail bound",
        tex=r"\Pr\Bigl[\bigl\|\textstyle\sum_iX_i\bigr\|_2\ge t\Bigr]\le2n\exp\frac{-t^2}{3\sigma^2+2Rt}",
        hypotheses=r"Independent centred $X_1,\dots,X_d$ of order $n$ with $\|X_i\|_2\le R$ and variance $\sigma^2$, "
        r"$t\ge0$. Tried for diagonal matrices of independent centred coins, where the probability is known.",
        because="True: the inequality of Tropp has 2 sigma^2 + 2 R t / 3 in the denominator, which is smaller.",
        printed=Form(Exact(probability(2.0)), places, "certified"),
        controls=(Control("without 2 R t", Exact(probability(0.0)), places, "term left out"),),
    )


def _hoeffding() -> Claim:
    def probability(factor: float) -> Callable[[Setting], tuple[float, float]]:
        def check(setting: Setting) -> tuple[float, float]:
            r, step, alpha = (setting.numbers[name] for name in ("r", "step", "alpha"))
            # M = step * Bin(r, 1/2): P(|M - E M| > alpha) = 2 P(Bin > r / 2 + alpha / step).
            above = math.floor(r / 2 + alpha / step + 1e-9)
            log_tail = math.log(2) + float(stats.binom(r, 0.5).logsf(above))
            return log_tail, math.log(2) - factor * alpha**2 / (r * step**2)

        return check

    def place(r: int, step: float, alpha: float) -> Setting:
        name = f"{r} coins of 0 or {step:.3g}, alpha={alpha:g}"
        return Setting(name, numbers={"r": r, "step": step, "alpha": alpha})

    small = (place(100, 0.02, 0.2), place(100, 0.02, 0.4))
    # As in Theorem 3.1: r = m, Delta = 2 n / m and alpha = eps n.
    used = (place(265, 200 / 265, 10.0), place(1060, 200 / 1060, 10.0), place(400, 0.5, 60.0))
    return Claim(
        id="ghashami2016:hoeffding",
        paper=PAPER,
        where="Section 3.1.2, Chernoff-Hoeffding inequality",
        kind="tail bound",
        tex=r"\Pr\bigl[|M-\mathbb E M|>\alpha\bigr]\le2\exp\frac{-2\alpha^2}{r\Delta^2},\ \alpha\in(0,\tfrac12)",
        hypotheses=r"$M$ is a sum of $r$ independent terms in $[0,\Delta]$. Tried for fair coins, where the "
        "probability is known.",
        because="True. It is used with alpha = eps n, which is mostly above 1/2: it holds for every alpha > 0.",
        printed=Form(Exact(probability(2.0)), small, "certified"),
        corrected=Form(Exact(probability(2.0)), small + used, "certified", r"\alpha>0"),
        controls=(Control("4 for 2 in the exponent", Exact(probability(4.0)), used[2:], "wrong factor"),),
    )
