"""chen2016, section 1: the kernel distance, its exact embedding, additive errors, and what unit vectors give.

Constants that the section leaves in O(.) are proved in `docs/theory/chen2016.md`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from jaxkern._spectral import HIGHEST, eigh
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Calibrated, Claim, Control, Exact, Form, Identity, Inequality, Setting, Tail, Undecided
from proofs_check.papers import flops
from proofs_check.papers.chen2016 import places, sides, trials


def distances() -> list[Claim]:
    """Return the claims of the introduction before section 1.1."""
    return [_metric(), _embedding(), _johnson_lindenstrauss(), _cost()]


def features_of(
    pairs: tuple[Setting, ...], people: Sequence[places.PointSet], deltas: tuple[float, ...]
) -> list[Claim]:
    """Return the claims of sections 1.1 and 1.2 but for the mean of the map with a tilde."""
    return [
        _variance(pairs),
        _all_points(people, deltas),
        _additive_ball(deltas),
        _unit_vectors(pairs),
        _gram_error(),
        _minimum(deltas),
    ]


def ours(pairs: tuple[Setting, ...]) -> list[Claim]:
    """Return the claim on the variances of both maps."""
    return [_both_variances(pairs)]


# ------------------------------------------------------------------------------------------------------------ distances


def _points(n: int, spacing: float) -> np.ndarray:
    """Return n points in three dimensions whose typical distance is about two spacings."""
    return spacing * np.random.default_rng(3).standard_normal((n, 3))


def _metric() -> Claim:
    def holds(power: int) -> Inequality:
        def triangles(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            X = places.real(setting.population)
            D = sides.all_distances(X) ** power
            i, j, k = (a.ravel() for a in np.meshgrid(*[np.arange(len(X))] * 3, indexing="ij"))
            keep = (i < k) & (j != i) & (j != k)
            left, right = D[i, k][keep], (D[i, j] + D[j, k])[keep]
            return [sides.at_most_one(a / b, "triangle inequality") for a, b in zip(left, right, strict=True)]

        return Inequality(triangles)

    line = np.linspace(0, 1, 8)[:, None] @ np.eye(1, 3)
    settings = (
        Setting("a cloud of 10 points", _points(10, 1.0)),
        Setting("a small cloud", _points(10, 0.05)),
        Setting("8 points on a line", line),
    )
    return Claim(
        id="chen2016:sec1-metric",
        paper=places.PAPER,
        where="Section 1, the kernel distance",
        kind="deterministic inequality",
        tex=r"D_K(x,y)=\sqrt{K(x,x)+K(y,y)-2K(x,y)}\text{ is a metric}",
        hypotheses="The Gaussian kernel and any points. Tried at all triples of three sets.",
        because="True: it is a distance of points of a Hilbert space, and distinct points have distinct images. "
        "What is checked is the triangle inequality.",
        printed=Form(holds(1), settings, "consistent"),
        controls=(Control("the squared distance", holds(2), settings, "wrong power"),),
    )


def _factor(X: jax.Array) -> jax.Array:
    """Return F with F F' = K: the exact embedding of n points into n dimensions."""
    values, vectors = eigh(gram(kernels.Gaussian(1.0), X))
    return vectors * jnp.sqrt(jnp.maximum(values, 0))[None]


def _embedding() -> Claim:
    def residual(dropped: int) -> Identity:
        def distances_of_images(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            X = places.real(setting.population)
            F = np.asarray(_factor(X), float)[:, : len(X) - dropped]
            D = sides.all_distances(X)
            first, second = np.triu_indices(len(X), 1)
            images = np.linalg.norm(F[first] - F[second], axis=1)
            return sides.as_residual(images / D[first, second] - 1)

        return Identity(distances_of_images)

    settings = tuple(Setting(f"{n} points", _points(n, 1.0)) for n in (3, 8))
    return Claim(
        id="chen2016:sec1-embedding",
        paper=places.PAPER,
        where="Section 1; remark after Theorem 3.1",
        kind="identity",
        tex=r"\Phi(X)\text{ spans at most }n\text{ dimensions: }G=FF^\top,\ F\in\mathbb R^{n\times n},\ "
        r"\|F_i-F_j\|=D_K(x_i,x_j)",
        hypotheses="The Gaussian kernel and any $n$ points. Tried at 3 and 8 points.",
        because="True: the rows of a factor of the Gram matrix are the images, up to an isometry.",
        printed=Form(residual(0), settings, "identity"),
        controls=(Control("one dimension less", residual(1), settings, "n for n - 1"),),
    )


def _johnson_lindenstrauss() -> Claim:
    n, delta = 16, places.DELTA
    X = places.real(_points(n, 1.0))
    F = _factor(X)
    first, second = np.triu_indices(n, 1)
    gaps = F[first] - F[second]
    units = gaps / jnp.linalg.norm(gaps, axis=1, keepdims=True)

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.relative_distances(eps=s["eps"], num_frequencies=s["m"], num_points=s["n"])

    settings = []
    for eps in (0.2, 0.4):
        m = places.fewest(lambda t, e=eps: fourier.relative_distances(eps=e, num_frequencies=t, num_points=n), delta)  # type: ignore[misc]
        numbers = {"eps": eps, "m": float(m), "n": float(n)}
        settings.append(Setting(f"eps={eps:g}, m={m}", {"units": units}, numbers, {"rows": m}))
    statement = Tail(trials.projection_error, bound)
    half = controls.changed(settings[:1], "half of the dimensions", shapes={"part": 2})
    return Claim(
        id="chen2016:sec1-jl",
        paper=places.PAPER,
        where="Section 1, the Johnson-Lindenstrauss lemma",
        kind="tail bound",
        tex=r"m=O(\varepsilon^{-2}\ln\tfrac n\delta):\ G=FF^\top\text{ and a random projection of }F\text{ keep all "
        r"}D_K\text{ within }1\pm\varepsilon\text{ w.p. }1-\delta",
        hypotheses="The Gaussian kernel, any $n$ points, a Gaussian projection, independent of the points. Tried on 16 "
        r"points, $\delta=.05$.",
        because="True, with constants: the squared ratio of a pair is exactly chi2_m / m, so the bound is that of "
        "Theorem B with m in the place of t. Fourier features with t frequencies are no worse than m = t projections.",
        printed=Form(
            Undecided("An order of growth without constants. The corrected form names them."), (), "not testable"
        ),
        corrected=Form(
            statement,
            tuple(settings),
            "certified",
            r"\tbinom n2\bigl(e^{-m(u-1-\ln u)/2}+e^{-m(v-1-\ln v)/2}\bigr)\le\delta",
        ),
        controls=(Control("half of the dimensions", statement, half, "wrong factor"),),
    )


def _cost() -> Claim:
    def residual(per_frequency: int) -> Identity:
        def spent(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            n, d, t = (setting.shapes[name] for name in ("n", "d", "t"))
            dtype = jnp.result_type(float)
            X, w = jax.ShapeDtypeStruct((n, d), dtype), jax.ShapeDtypeStruct((t, d), dtype)
            kernel = kernels.Gaussian(1.0)
            lifted = flops.multiply_adds(lambda X, w: features.PairedFourier(kernel, w)(X), X, w)
            numbers = math.prod(jax.eval_shape(lambda X, w: features.PairedFourier(kernel, w)(X), X, w).shape)
            whole = flops.multiply_adds(lambda X: gram(kernel, X), X)
            return np.array([lifted / (n * d * t * per_frequency) - 1, numbers / (2 * n * t) - 1, whole / n**2 / d - 1])

        return Identity(spent)

    settings = tuple(
        Setting(f"n={n}, d={d}, t={t}", shapes={"n": n, "d": d, "t": t})
        for n, d, t in ((1000, 10, 50), (20_000, 256, 800))
    )
    return Claim(
        id="chen2016:sec1-cost",
        paper=places.PAPER,
        where="Section 1, the bottleneck",
        kind="cost",
        tex=r"G\text{ takes }n^2\text{ numbers}\;(n^2d\text{ multiply-adds}),\ \hat\phi(X)\text{ takes }nm",
        hypotheses=r"$n$ points in dimension $d$, $t=m/2$ frequencies; what is counted are the products of the "
        "library's programs, before anything is executed. The eigendecomposition is taken to be cubic, not counted.",
        because="True: n^2 d multiply-adds for the Gram matrix, n d t for the 2 n t numbers of the features.",
        printed=Form(residual(1), settings, "identity"),
        controls=(Control("two products a frequency", residual(2), settings, "wrong cost"),),
    )


# ------------------------------------------------------------------------------------------------------------- features


def _variance(pairs: tuple[Setting, ...]) -> Claim:
    def holds(distance: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            paired, shifted = sides.variances(key, setting, distance=distance)
            return [sides.at_most_one(paired / shifted, "the variance of the map with a tilde")]

        return Inequality(both)

    close = tuple(s for s in pairs if s.numbers["K"] > 0.5)
    if not close:  # of a table without close rows
        close = places.pairs_of(None)[:2]
    return Claim(
        id="chen2016:sec1.1-variance",
        paper=places.PAPER,
        where="Section 1.1, the two maps compared",
        kind="deterministic inequality",
        tex=r"\operatorname{Var}\langle\hat\phi(x),\hat\phi(y)\rangle\le"
        r"\operatorname{Var}\langle\tilde\phi(x),\tilde\phi(y)\rangle\text{ for the same }m",
        hypotheses=r"The Gaussian kernel, any $x$ and $y$, $\tilde\phi$ with the factor $\sqrt{2/m}$. Tried at three "
        "pairs of points, with variances by quadrature.",
        because="True, of inner products: (1 - K^2)^2 / m against ((1 - K^2)^2 + 1) / (2 m). Of squared distances it "
        "is the other way round for K > sqrt(2) - 1: jaxkern:feature-variances.",
        printed=Form(holds(distance=False), pairs, "consistent"),
        controls=(Control("the squared distances of close points", holds(distance=True), close, "wrong operator"),),
    )


def _both_variances(pairs: tuple[Setting, ...]) -> Claim:
    def residual(closed: Callable[[float], tuple[float, float]]) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            K = setting.numbers["K"]
            found = np.asarray(sides.variances(key, setting, distance=True)) / (2 - 2 * K) ** 2
            return sides.as_residual(found / np.asarray(closed(K)) - 1)

        return Identity(relative)

    def both(K: float) -> tuple[float, float]:
        return (1 + K) ** 2, 0.5 + 0.75 * (1 + K) ** 2

    def swapped(K: float) -> tuple[float, float]:
        paired, shifted = both(K)
        return shifted, paired

    return Claim(
        id="jaxkern:feature-variances",
        paper=places.PAPER,
        where="Section 1.1, Figure 2 (ours)",
        kind="identity",
        tex=r"\frac{m\operatorname{Var}\|\hat\phi(x)-\hat\phi(y)\|^2}{D_K^4}=(1+K)^2,\qquad "
        r"\frac{m\operatorname{Var}\|\tilde\phi(x)-\tilde\phi(y)\|^2}{D_K^4}=\tfrac12+\tfrac34(1+K)^2",
        hypotheses=r"The Gaussian kernel, any $x\ne y$, $m$ features: $m/2$ frequencies for $\hat\phi$, $m$ for "
        r"$\tilde\phi$ with the factor $\sqrt{2/m}$. Tried at three pairs of points, with expectations by quadrature.",
        because="E cos^2 = (1 + K^4) / 2 and E cos = K. Shifted features are better where K > sqrt(2) - 1, that is for "
        "distances below 1.33, by up to 4 to 3.5; paired ones beyond, by up to 1.25. The step in the paper's Figure 2 "
        "is the fall of (1 + K) / sqrt(8 t) by a factor 2.",
        corrected=Form(residual(both), pairs, "identity"),
        controls=(Control("the two maps exchanged", residual(swapped), pairs, "swapped constants"),),
    )


def _all_points(people: Sequence[places.PointSet], deltas: tuple[float, ...]) -> Claim:
    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        failure = s["n"] * (s["n"] - 1) * math.exp(-s["t"] * s["eps"] ** 2 / 2)
        return Bound(s["eps"], 1 - failure, failure < 1, "chen2016, Section 1.1 (explicit)")

    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        return Bound(math.sqrt(math.log(s["n"] / s["delta"]) / s["t"]), 1 - s["delta"], True, "chen2016, Section 1.1")

    def at(sets: Sequence[places.PointSet]) -> tuple[Setting, ...]:
        settings = []
        for name, n, arrays in sets:
            for delta in deltas:
                t = math.ceil(2 / 0.3**2 * math.log(n * (n - 1) / delta) + 1e-9)
                numbers = {"eps": 0.3, "t": float(t), "n": float(n), "delta": delta}
                settings.append(Setting(f"{name}, delta={delta:g}, t={t}", arrays, numbers, {"rows": t}))
        return tuple(settings)

    settings = at(people)
    # Not on a table, whose rows may be so close that no number of frequencies is too small.
    few = controls.changed(at(places.point_sets(None))[-1:], "a sixteenth of the frequencies", shapes={"part": 16})
    return Claim(
        id="chen2016:sec1.1-points",
        paper=places.PAPER,
        where="Section 1.1, the second bound",
        kind="tail bound",
        tex=r"\max_{x,y\in X}|\langle\hat\phi(x),\hat\phi(y)\rangle-K(x,y)|\le C\sqrt{\tfrac{\ln(n/\delta)}t}"
        r"\text{ w.p. }1-\delta",
        hypotheses=r"The Gaussian kernel, $n$ points fixed before the draw, $0<\varepsilon$, $0<\delta<1$. Tried on "
        "three sets of 16 points, or on at most 24 rows of a table.",
        because="True, with C = 2: Hoeffding's inequality for terms in [-1, 1] and a union bound. No C < 1 can do: the "
        "cosines of one far pair have variance 1/2, so that the tail of their mean is about exp(-t eps^2).",
        printed=Form(Calibrated(trials.kernel_error, shape, 1.0, 2.0), settings, "calibrated"),
        corrected=Form(
            Tail(trials.kernel_error, bound),
            settings,
            "certified",
            r"t\ge\tfrac2{\varepsilon^2}\ln\tfrac{n(n-1)}\delta",
        ),
        controls=(Control("a sixteenth of the frequencies", Tail(trials.kernel_error, bound), few, "wrong factor"),),
    )


def additive_ball(*, eps: float, num_frequencies: float, dim: int, diameter: float, tau: float) -> Bound:
    """Bound sup |Khat - K| over all differences of at most `diameter` by eps: Theorem D of the derivations."""
    b = (math.sqrt(dim) + math.sqrt(2 * tau)) / math.sqrt(num_frequencies)
    failure = math.inf
    for share in np.linspace(0.05, 0.95, 37):
        spacing = eps * (1 - share) / (1 + b + math.exp(-0.5))
        points = dim * math.log1p(2 * diameter / spacing)
        failure = min(failure, 2 * math.exp(min(points - num_frequencies * (share * eps) ** 2 / 2, 700.0)))
    failure += math.exp(-tau)
    return Bound(eps, max(1 - failure, 0.0), failure < 1, "jaxkern, Theorem D of chen2016")


def _additive_ball(deltas: tuple[float, ...]) -> Claim:
    def one_feature(setting: Setting) -> tuple[float, float]:
        """A single frequency w has cos(<w, Delta>) = -1 somewhere in the ball if |w| M >= pi, where K > .99."""
        s = setting.numbers
        return float(stats.chi2.logsf((math.pi / s["M"]) ** 2, s["d"])), math.log(s["delta"])

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return additive_ball(
            eps=s["eps"], num_frequencies=s["t"], dim=int(s["d"]), diameter=s["M"], tau=math.log(2 / s["delta"])
        )

    def one_pair(setting: Setting) -> Bound:
        return Bound(setting.numbers["eps"], 1 - setting.numbers["delta"], True, "Hoeffding for one pair")

    def place(dim: int, diameter: float, eps: float, delta: float, t: int) -> Setting:
        numbers = {"d": float(dim), "M": diameter, "eps": eps, "t": float(t), "delta": delta}
        name = f"d={dim}, M={diameter:g}, eps={eps:g}, delta={delta:g}, t={t}"
        return Setting(name, ball_population(dim, diameter), numbers, {"rows": t})

    printed = []
    for M in (1e-2, 1e-3):
        d = math.ceil(2 * (math.pi / M) ** 2)
        numbers = {"M": M, "d": float(d), "delta": 0.05}
        printed.append(Setting(f"M={M:g}, d={d}, delta=0.05: a negative number of features", numbers=numbers))
    corrected = []
    for dim, diameter in ((1, 5.0), (2, 3.0)):
        for delta in deltas:
            options = {"eps": 0.3, "dim": dim, "diameter": diameter, "tau": math.log(2 / delta)}
            t = places.fewest(lambda t, o=options: additive_ball(num_frequencies=t, **o), delta)  # type: ignore[misc]
            corrected.append(place(dim, diameter, 0.3, delta, t))
    single = math.ceil(2 / 0.3**2 * math.log(2 / 0.05))
    return Claim(
        id="chen2016:sec1.1-ball",
        paper=places.PAPER,
        where="Section 1.1, the third bound",
        kind="tail bound",
        tex=r"m=O\bigl(\tfrac d{\varepsilon^2}\ln\tfrac{\mathcal M}\delta\bigr)\ \Rightarrow\ "
        r"|\langle\hat\phi(x),\hat\phi(y)\rangle-K(x,y)|\le\varepsilon\text{ for all }x,y\in X\text{ w.p. }1-\delta,\ "
        r"\mathcal M=\max\|x-y\|/\sigma",
        hypotheses=r"The Gaussian kernel, any $\mathcal M>0$, $0<\varepsilon<1$, $0<\delta<1$. The corrected form has "
        r"any $\varepsilon_1<\varepsilon$ and $\tau>0$, $b=(\sqrt d+\sqrt{2\tau})/\sqrt t$; it is tried in one and two "
        "dimensions, on a grid of differences.",
        because="For M < delta the logarithm is negative, so that one frequency would do; in d >= 2 (pi / M)^2 "
        "dimensions a single one nearly always has cos = -1 somewhere in the ball, where K > .99. With "
        "ln(1 + M / eps), and ln(1 / delta) added, it is a net argument with every constant.",
        printed=Form(Exact(one_feature), tuple(printed), "refuted"),
        corrected=Form(
            Tail(trials.kernel_error_over_ball, bound),
            tuple(corrected),
            "certified",
            r"\text{w.p. }1-e^{-\tau}-2(1+\tfrac{2\mathcal M}\xi)^de^{-t\varepsilon_1^2/2},\ "
            r"\xi=\tfrac{\varepsilon-\varepsilon_1}{1+b+e^{-1/2}}",
        ),
        controls=(
            Control(
                "the frequencies of a single pair, in 20 dimensions",
                Tail(trials.kernel_error_over_ball, one_pair),
                (place(20, 6.0, 0.3, 0.05, single),),
                "term left out",
            ),
        ),
    )


def ball_population(dim: int, diameter: float) -> dict[str, jax.Array]:
    """Return directions over a half sphere (the axes and 200 more, but for a line) and 32 radii up to the diameter."""
    more = np.random.default_rng(4).standard_normal((200, dim))
    directions = np.eye(1) if dim == 1 else np.concatenate([np.eye(dim), more])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return {"directions": places.real(directions), "radii": places.real(diameter * np.linspace(1 / 32, 1, 32))}


def _unit_vectors(pairs: tuple[Setting, ...]) -> Claim:
    def residual(shifted: bool) -> Identity:
        def relations(key: jax.Array, setting: Setting) -> np.ndarray:
            kernel, pair = setting.population["kernel"], setting.population["pair"]
            draw = features.shifted_fourier if shifted else features.paired_fourier
            phi = draw(key, kernel, pair.shape[1], num_frequencies=setting.shapes["rows"], dtype=pair.dtype)
            x, y = phi(pair)
            inner = float(jnp.vdot(x, y, precision=HIGHEST))
            squared, K = float(jnp.sum((x - y) ** 2)), setting.numbers["K"]
            lengths = [float(jnp.sum(v**2)) - 1 for v in (x, y)]
            return sides.as_residual(
                [*lengths, abs(K - inner) - abs(2 - 2 * K - squared) / 2, squared - (2 - 2 * inner)]
            )

        return Identity(relations)

    return Claim(
        id="chen2016:sec1.2-unit",
        paper=places.PAPER,
        where="Section 1.2, unit vectors",
        kind="identity",
        tex=r"\|\hat\phi(x)\|=1,\ D_{\hat K}^2=2-2\hat K=\|\hat\phi(x)-\hat\phi(y)\|^2,\ "
        r"|K-\hat K|=\tfrac12|D_K^2-D_{\hat K}^2|",
        hypotheses="The Gaussian kernel, any $x$ and $y$, any frequencies. Tried at three pairs of points, with 16.",
        because="True: cos^2 + sin^2 = 1. Shifted features have no unit norm, and for them the relation fails.",
        printed=Form(residual(shifted=False), pairs, "identity"),
        controls=(Control("shifted features", residual(shifted=True), pairs, "wrong operator"),),
    )


def _gram_error() -> Claim:
    def holds(share: float) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            X, kernel = places.real(setting.population), kernels.Gaussian(1.0)
            phi = features.paired_fourier(key, kernel, X.shape[1], num_frequencies=10, dtype=X.dtype)
            Z = np.asarray(phi(X), float)
            E = np.asarray(gram(kernel, X), float) - Z @ Z.T
            D = sides.all_distances(X)
            images = np.sum((Z[:, None] - Z[None]) ** 2, axis=2)
            right = share / 2 * np.sum(np.abs(D**2 - images))
            norms = (np.sum(np.abs(E)), np.max(np.sum(np.abs(E), axis=0)), np.sum(np.abs(np.linalg.eigvalsh(E))))
            return [sides.at_most_one(norm / right, "chen2016, Section 1.2") for norm in norms]

        return Inequality(both)

    settings = (Setting("12 points", _points(12, 1.0)),)
    return Claim(
        id="chen2016:sec1.2-gram",
        paper=places.PAPER,
        where="Section 1.2, the error of the Gram matrix",
        kind="deterministic inequality",
        tex=r"\|G-\hat G\|_1\le\tfrac12\sum_{x,y\in X}|D_K(x,y)^2-D_{\hat K}(x,y)^2|",
        hypotheses="The Gaussian kernel, any points and frequencies, a sum over ordered pairs. Tried on 12 points.",
        because="True in each meaning of the norm: the sum of the entries, where it is an equality, the largest column "
        "and the sum of the singular values. Over unordered pairs the factor 1/2 is 1.",
        printed=Form(holds(1.0), settings, "consistent"),
        controls=(Control("a sum over unordered pairs", holds(0.5), settings, "wrong factor"),),
    )


def _minimum(deltas: tuple[float, ...]) -> Claim:
    angles = np.arange(24) * 2 * math.pi / 24
    curve = 0.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    training = np.concatenate([[[0.0, 0.0]], 0.45 * np.random.default_rng(2).uniform(-0.7, 0.7, (7, 2))])
    differences = places.real(training[:, None] - curve[None])
    population = {"differences": differences, "squared": jnp.sum(differences**2, axis=2)}

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.ball(eps=s["eps"], num_frequencies=s["t"], dim=2, diameter=1.0, tau=s["tau"])

    settings = []
    for delta in deltas:
        tau = math.log(6 / delta)
        t = places.fewest(
            lambda t, tau=tau: fourier.ball(eps=0.3, num_frequencies=t, dim=2, diameter=1.0, tau=tau),  # type: ignore[misc]
            delta,
        )
        numbers = {"eps": 0.3, "t": float(t), "tau": tau}
        settings.append(Setting(f"d=2, eps=0.3, delta={delta:g}, t={t}", population, numbers, {"rows": t}))
    statement = Tail(trials.minimum_error, bound)
    return Claim(
        id="chen2016:sec1.2-minimum",
        paper=places.PAPER,
        where="Section 1.2, the distance to an object",
        kind="tail bound",
        tex=r"\min_{y\in U}D_K(x,y)\text{ is preserved as }\min_{y\in U}\|\hat\phi(x)-\hat\phi(y)\|"
        r"\text{ for all }x\in S",
        hypotheses=r"The Gaussian kernel, $U$ and $S$ in a ball, as many frequencies as Theorem C asks "
        "for (radius 1/2, so that distances are at most 1). Tried for a circle and eight points in the plane.",
        because="True, with the hat that is missing over the phi of the display: a minimum of ratios within 1 +- eps "
        "is within 1 +- eps. How many frequencies it takes is named by Theorem C alone.",
        printed=Form(
            Undecided(
                "It says approximately, and for an unnamed number of features. The corrected form takes that of "
                "Theorem C."
            ),
            (),
            "not testable",
        ),
        corrected=Form(statement, tuple(settings), "certified", r"\text{within }1\pm\varepsilon"),
        controls=(Control("one frequency, repeated", statement, controls.one_draw(settings[:1]), "reused key"),),
    )
