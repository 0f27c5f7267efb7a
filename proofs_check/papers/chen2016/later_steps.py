"""chen2016, sections 4 to 6: the steps of its proofs, Lemma 5.2, Corollary 5.2 and Theorem 6.1.

Each function returns one claim; `chen2016.claims` puts them in the paper's order. `docs/theory/chen2016.md` derives
every correction.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import linalg, special, stats

from jaxkern import features, kernels
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Identity, Inequality, Setting, Tail
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope
from proofs_check.papers.shared import always

FACTOR = "wrong factor"
LEFT_OUT = "term left out"
PAPER = places.PAPER

Sides = Callable[[jax.Array, Setting], list[Any]]

# ------------------------------------------------------------------------------------------------------------ section 4


def lemma_4_1_taylor() -> Check:
    """Return the claim on the elementary inequalities in the proof of Lemma 4.1."""

    def holds(low: float, order: int = 2) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key, setting
            x = np.linspace(low, 5, 201)
            series = 1 - x + (x**2 / 2 if order == 2 else 0)
            scale = np.maximum(series, 1)
            exponentials = [
                (float(a / s), always(b / s, "chen2016, proof of Lemma 4.1"))
                for a, b, s in zip(np.exp(-x), series, scale, strict=True)
            ]
            z = np.linspace(-9, 9, 301)
            lower = 1 - z**2 / 2
            cosines = [
                (float(a), always(b, "chen2016, proof of Lemma 4.1"))
                for a, b in zip(np.maximum(lower, -50), np.maximum(np.cos(z), -50), strict=True)
            ]
            y = np.linspace(0, 0.5, 51)
            logarithms = [
                (float(a), always(b, "chen2016, proof of Lemma 4.1"))
                for a, b in zip(y - y**2 / 2, np.log1p(y), strict=True)
            ]
            return [*exponentials, *cosines, *logarithms]

        return Inequality(both)

    settings = (Setting("grids of numbers"),)
    return Check(
        printed=Form(holds(-5.0), settings),
        corrected=Form(holds(0.0), settings),
        controls=(Control("without x^2 / 2", holds(0.0, order=1), settings, LEFT_OUT),),
    )


def lemma_4_1_proof() -> Check:
    """Return the claim on the chain of inequalities in the proof of Lemma 4.1."""

    def holds(sign: float, quartic: bool = True) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            r = setting.numbers["r"]
            found = []
            for y in (0.1, 0.3, 0.499):
                s = y / r**2
                right = (s / 8 * r**4 if quartic else 0.0) - y / 2 - math.log1p(sign * y) / 2
                found.append((sides.log_mgf(s, r), always(right, "chen2016, proof of Lemma 4.1")))
            return found

        return Inequality(both)

    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.01, 0.3, 1.0))
    near = tuple(Setting(f"r={r:g}, no quartic term", numbers={"r": r}) for r in (0.01, 0.3, 1.0))
    return Check(
        printed=Form(holds(1.0), settings),
        corrected=Form(holds(-1.0), settings),
        controls=(Control("half of the logarithm", Inequality(_half_logarithm), near, FACTOR),),
    )


def _half_logarithm(key: jax.Array, setting: Setting) -> list[Any]:
    del key
    r, y = setting.numbers["r"], 0.4
    right = y * r**2 / 8 - y / 2 - math.log1p(-y) / 4
    return [(sides.log_mgf(y / r**2, r), always(right, "half of the logarithm"))]


def lemma_4_2_mean() -> Check:
    """Return the claim on the mean of X in the proof of Lemma 4.2."""

    def residual(factor: float) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            r = setting.numbers["r"]
            w, weights = sides.nodes()
            squared = float(sides.distances_of(np.array([r]))[0]) ** 2
            return sides.as_residual([weights @ (2 * np.sin(r * w / 2) ** 2) / (factor * squared) - 1])

        return Identity(relative)

    settings = tuple(Setting(f"r={r:g}", numbers={"r": r}) for r in (0.1, 0.5, 1.0))
    return Check(
        printed=Form(residual(1.0), settings),
        corrected=Form(residual(0.5), settings),
        controls=(Control("a quarter", residual(0.25), settings, FACTOR),),
    )


def lemma_4_2_proof() -> Check:
    """Return the claim on the last display of the proof of Lemma 4.2."""

    def statement(log_claimed: Callable[[float, float, float], float]) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            s = setting.numbers
            eps, t = s["eps"], s["t"]
            return places.chi_square_outside(t, 1 - eps, 1 + eps), log_claimed(eps, t, s["r"])

        return Exact(probability)

    def printed(eps: float, t: float, r: float) -> float:
        ratio = -math.expm1(-(r**2) / 2) / r**2  # E X / |Delta|^2
        return math.log(2) - min(t * eps**2 * ratio**2, t * eps * ratio / 4)

    def chernoff(eps: float, t: float, r: float) -> float:
        del r
        upper, lower = (eps - math.log1p(eps)) / 2, (-eps - math.log1p(-eps)) / 2
        return float(np.logaddexp(-t * upper, -t * lower))

    def squares(eps: float, t: float, r: float) -> float:
        del r
        return math.log(2) - t * eps**2 / 4

    settings = tuple(
        Setting(f"t={t:g}, eps={eps:g}, |Delta| to 0", numbers={"t": t, "eps": eps, "r": 1e-4})
        for t, eps in ((400.0, 0.5), (1000.0, 0.5), (20_000.0, 0.2))
    )
    return Check(
        printed=Form(statement(printed), settings),
        corrected=Form(statement(chernoff), settings),
        controls=(Control("the exponent of the lower tail for both", statement(squares), settings, "wrong power"),),
    )


# ------------------------------------------------------------------------------------------------------------ section 5


def lemma_5_1_proof() -> Check:
    """Return the claim on the gradient in the proof of Lemma 5.1."""

    def residual(gradient: Callable[[np.ndarray, np.ndarray], float]) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            del key
            w, delta = setting.population
            dtype = jnp.result_type(float)
            found = sides.gradient(jnp.asarray(delta, dtype), jnp.asarray(w, dtype))
            return sides.as_residual([gradient(w, delta) / float(np.linalg.norm(np.asarray(found, float))) - 1])

        return Identity(relative)

    def coordinates(w: np.ndarray, delta: np.ndarray) -> float:
        return float(abs(np.sum(w * np.sin(w @ delta)[:, None])))

    def norm(w: np.ndarray, delta: np.ndarray) -> float:
        return float(np.linalg.norm(2 / len(w) * np.sin(w @ delta) @ w))

    def half(w: np.ndarray, delta: np.ndarray) -> float:
        return norm(w, delta) / 2

    rng = np.random.default_rng(3)
    places_ = (
        Setting("w = (1, -1), t=1", (np.array([[1.0, -1.0]]), np.array([0.4, 0.1]))),
        Setting("random, t=5, d=3", (rng.standard_normal((5, 3)), rng.standard_normal(3))),
    )
    return Check(
        printed=Form(residual(coordinates), places_),
        corrected=Form(residual(norm), places_),
        controls=(Control("half of it", residual(half), places_, FACTOR),),
    )


def corollary_5_1_proof() -> Check:
    """Return the claim on the lengths of the frequencies in the proof of Corollary 5.1."""

    def statement(limit: Callable[[dict[str, float]], float]) -> Exact:
        def probability(setting: Setting) -> tuple[float, float]:
            s = dict(setting.numbers)
            one = float(stats.chi2.logsf(limit(s), s["d"]))
            return math.log(-math.expm1(s["t"] * math.log1p(-math.exp(min(one, -1e-12))))), math.log(s["delta"])

        return Exact(probability)

    def place(d: float, t: float, n: float, constant: float) -> Setting:
        numbers = {"d": d, "t": t, "n": n, "C": constant, "delta": 1 / n}
        return Setting(f"d={d:g}, t={t:g}, n={n:g}, C={constant:g}", numbers=numbers)

    printed = tuple(place(float(math.ceil(2 * c * math.log(100) + 10)), 1.0, 100.0, c) for c in (1.0, 10.0, 1e3))
    settings = tuple(place(d, t, 100.0, 0.0) for d in (1.0, 10.0, 1000.0) for t in (1.0, 100.0))
    return Check(
        printed=Form(statement(lambda s: s["C"] * math.log(s["n"])), printed),
        corrected=Form(
            statement(lambda s: (math.sqrt(s["d"]) + math.sqrt(2 * math.log(s["t"] / s["delta"]))) ** 2), settings
        ),
        controls=(
            Control(
                "no dimension",
                statement(lambda s: 2 * math.log(s["t"] / s["delta"])),
                settings,
                LEFT_OUT,
            ),
        ),
    )


def vanishing_ball(*, eps: float, num_frequencies: float, dim: int, tau: float) -> tuple[float, Bound]:
    """Return the radius up to which |Dhat / D - 1| <= eps with probability 1 - 3 exp(-tau), and that bound.

    It is the part near zero of Theorem C, and needs no net.
    """
    b = (math.sqrt(dim) + math.sqrt(2 * tau)) / math.sqrt(num_frequencies)
    if not b < eps:
        return 0.0, Bound(eps, 0.0, False, "jaxkern, Lemma 5.2 of chen2016")
    longest = math.sqrt(dim) + math.sqrt(2 * (tau + math.log(num_frequencies)))
    upper = 4 * (1 - ((1 + b) / (1 + eps)) ** 2)
    lower = 12 / longest**2 * (1 - ((1 - eps) / (1 - b)) ** 2)
    return math.sqrt(min(upper, lower)), Bound(eps, 1 - 3 * math.exp(-tau), True, "jaxkern, Lemma 5.2 of chen2016")


def lemma_5_2(scope: Scope) -> Check:
    """Return the claim on Lemma 5.2, for a radius and constants of our own."""

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        radius, found = vanishing_ball(eps=s["eps"], num_frequencies=s["t"], dim=int(s["d"]), tau=s["tau"])
        if not s["M"] <= radius:
            raise ValueError(f"the ball of {setting.name!r} is larger than {radius}")
        return found

    def without_dimension(setting: Setting) -> Bound:
        s = setting.numbers
        b = math.sqrt(2 * s["tau"] / s["t"])
        return Bound(b, 1 - 3 * math.exp(-s["tau"]), True, "without sqrt(d)")

    settings = []
    for dim in (1, 2):
        for delta in scope.deltas:
            eps, tau = 0.3, math.log(3 / delta)
            t = math.ceil(2 * (math.sqrt(dim) + math.sqrt(2 * tau)) ** 2 / eps**2)
            radius, _ = vanishing_ball(eps=eps, num_frequencies=t, dim=dim, tau=tau)
            numbers = {"d": float(dim), "M": radius, "eps": eps, "t": float(t), "tau": tau}
            name = f"d={dim}, |Delta| <= {radius:.3g}, eps=0.3, delta={delta:g}, t={t}"
            angles = np.arange(12) * math.pi / 12
            directions = np.eye(1) if dim == 1 else np.stack([np.cos(angles), np.sin(angles)], axis=1)
            population = {
                "directions": places.real(directions),
                "radii": places.real(radius * np.geomspace(1e-2, 1, 32)),
            }
            settings.append(Setting(name, population, numbers, {"rows": t}))
    wide = settings[-1]
    many = controls.changed((wide,), "d=30", population=lambda p: {**p, "directions": places.real(np.eye(30))})
    return Check(
        corrected=Form(Tail(trials.error_over_ball, bound), tuple(settings)),
        controls=(
            Control("the error without sqrt(d)", Tail(trials.error_over_ball, without_dimension), many, LEFT_OUT),
        ),
    )


def eq7() -> Check:
    """Return the claim on (7), and on what takes the place of (6)."""

    def holds(squared: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            """Return the sides for D_K and for Dhat, at random pairs of differences."""
            t, dim = 6, 3
            w = np.asarray(trials.frequencies(key, dim, t, jnp.result_type(float)), float)
            most = math.sqrt(np.linalg.eigvalsh(w.T @ w / t)[-1])
            rng = np.random.default_rng(0)
            found = []
            for scale in (0.01, 0.5, 3.0):
                for _ in range(60):
                    a = scale * rng.standard_normal(dim)
                    b = a + scale * 0.3 * rng.standard_normal(dim)
                    true = [math.sqrt(-2 * math.expm1(-(x @ x) / 2)) for x in (a, b, a - b)]
                    image = [math.sqrt(np.mean(4 * np.sin(w @ x / 2) ** 2)) for x in (a, b, a - b)]
                    for (first, second, gap), longest in ((true, 1.0), (image, most)):
                        power = 2 if squared else 1
                        right = gap**power
                        found.append(sides.at_most_one(abs(first**power - second**power) / right, "chen2016, (7)"))
                        found.append(sides.at_most_one(gap / (longest * np.linalg.norm(a - b)), "chen2016, (7)"))
            return found

        return Inequality(both)

    settings = (Setting("random differences in three dimensions"),)
    return Check(
        printed=Form(holds(squared=False), settings),
        controls=(Control("squared distances", holds(squared=True), settings, "wrong power"),),
    )


def corollary_5_2(scope: Scope) -> Check:
    """Return the claim on Corollary 5.2."""

    def too_few(setting: Setting) -> tuple[float, float]:
        """In the limit of small differences, one dimension: the ratio of squares is chi2_t / t."""
        s = setting.numbers
        return places.chi_square_outside(s["t"], (1 - s["eps"]) ** 2, (1 + s["eps"]) ** 2), s["log_delta"]

    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.ball(eps=s["eps"], num_frequencies=s["t"], dim=int(s["d"]), diameter=1.0, tau=s["tau"])

    def one_pair(setting: Setting) -> Bound:
        s = setting.numbers
        return fourier.near_distance(eps=s["eps"], num_frequencies=s["t"], distance=1.0)

    printed = []
    for constant in (1.0, 10.0, 100.0):
        t = math.ceil(constant * 4 * math.log(2))
        log_delta = -2.0 * t
        name = f"d=1, eps=0.5, C={constant:g}, t={t}, delta=exp({log_delta:g})"
        printed.append(Setting(name, numbers={"t": float(t), "eps": 0.5, "log_delta": log_delta}))
    corrected = []
    for delta in scope.deltas:
        eps, tau = 0.3, math.log(6 / delta)
        t = places.fewest(
            lambda t, tau=tau: fourier.ball(eps=0.3, num_frequencies=t, dim=1, diameter=1.0, tau=tau),  # type: ignore[misc]
            delta,
        )
        numbers = {"d": 1.0, "eps": eps, "t": float(t), "tau": tau}
        population = {"directions": places.real(np.eye(1)), "radii": places.real(np.geomspace(1e-2, 1, 32))}
        corrected.append(Setting(f"d=1, eps=0.3, delta={delta:g}, t={t}", population, numbers, {"rows": t}))
    single = places.fewest(lambda t: fourier.near_distance(eps=0.3, num_frequencies=t, distance=1.0), places.DELTA)
    population = {"directions": places.real(np.eye(8)), "radii": places.real(np.geomspace(1e-2, 1, 32))}
    numbers = {"d": 8.0, "eps": 0.3, "t": float(single), "tau": 1.0}
    eight = (Setting(f"d=8, eps=0.3, t={single}", population, numbers, {"rows": single}),)
    return Check(
        printed=Form(Exact(too_few), tuple(printed)),
        corrected=Form(Tail(trials.error_over_ball, bound), tuple(corrected)),
        controls=(
            Control(
                "the frequencies of a single pair, in 8 dimensions",
                Tail(trials.error_over_ball, one_pair),
                eight,
                LEFT_OUT,
            ),
        ),
    )


# ------------------------------------------------------------------------------------------------------------ section 6


def least_rank(n: int, eps: float, power: float = 2.0) -> int:
    """Return the smallest r with binom(r + k - 1, k) >= n / (1 + (n - 1) eps^(power k)) for k = 1, ..., 32."""
    r = 1
    while any(special.comb(r + k - 1, k) < n / (1 + (n - 1) * eps ** (power * k)) * (1 - 1e-9) for k in range(1, 33)):
        r += 1
    return r


def near_orthogonal(name: str) -> np.ndarray:
    """Return unit vectors, one a row, whose inner products are all small."""
    if name == "simplex":
        values, vectors = np.linalg.eigh(np.eye(13) - 1 / 13)
        return np.asarray(vectors[:, values > 0.5] * math.sqrt(13 / 12))
    if name == "6 lines in 3 dimensions":
        golden = (1 + math.sqrt(5)) / 2
        rows = [np.roll([0, 1, s * golden], k) for k in range(3) for s in (1, -1)]
        return np.array(rows) / math.sqrt(1 + golden**2)
    if name == "28 lines in 7 dimensions":
        return np.array(
            [[3.0 if i in pair else -1.0 for i in range(8)] for pair in itertools.combinations(range(8), 2)]
        ) / (math.sqrt(24))
    return np.concatenate([np.eye(64), linalg.hadamard(64) / 8])


def rank() -> Check:
    """Return the claim on the rank of matrices that are close to the identity."""

    def holds(power: float) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            V = near_orthogonal(setting.name)
            B = V @ V.T
            eps = float(np.max(np.abs(B - np.eye(len(B)))))
            least = least_rank(len(B), eps, power)
            return [sides.at_most_one(least / np.linalg.matrix_rank(B), "jaxkern, the rank of Hadamard powers")]

        return Inequality(both)

    names = ("simplex", "6 lines in 3 dimensions", "28 lines in 7 dimensions", "two bases of 64 dimensions")
    settings = tuple(Setting(name) for name in names)
    return Check(
        corrected=Form(holds(2.0), settings),
        controls=(Control("eps^(3 k) for eps^(2 k)", holds(3.0), settings, "wrong power"),),
    )


def theorem_6_1() -> Check:
    """Return the claim on the step from Lemma 6.1 to Theorem 6.1."""

    def holds(loss: Callable[[float], float], limit: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            n, t = setting.shapes["n"], setting.shapes["t"]
            X = jnp.arange(n, dtype=jnp.result_type(float))[:, None] * setting.numbers["spacing"]
            kernel = kernels.Gaussian(1.0)
            phi = features.paired_fourier(key, kernel, 1, num_frequencies=t, dtype=X.dtype)
            h, K = np.asarray(phi(X), float), np.asarray(gram(kernel, X), float)
            first, second = np.triu_indices(n, 1)
            ratios = sides.all_distances(X)[first, second] / np.linalg.norm(h[first] - h[second], axis=1)
            eps = float(np.max(np.abs(ratios - 1)))
            additive = np.abs(K - h @ h.T)[first, second] / (1 - K[first, second])
            found = [(float(np.max(additive)), always(loss(eps), "chen2016, proof of Theorem 6.1"))]
            error = max(loss(eps), math.exp(-(setting.numbers["spacing"] ** 2) / 2))
            if limit and error < 0.25:
                radius = n * math.sqrt(2 * math.log(1 / error))
                found.append(sides.above(h.shape[1], fourier.dimension_limit(eps=error, dim=1, radius=radius)))
            return found

        return Inequality(both)

    def loss(eps: float) -> float:
        return (2 * eps - eps**2) / (1 - eps) ** 2

    settings = tuple(
        Setting(f"{n} points, t={t}, spacing {spacing:g}", None, {"spacing": spacing}, {"n": n, "t": t})
        for n, t, spacing in ((60, 400, 0.3), (120, 2000, 2.5))
    )
    return Check(
        corrected=Form(Inequality(holds(loss, limit=True).sides), settings),
        controls=(Control("eps for 2 eps", holds(lambda eps: eps, limit=False), settings, FACTOR),),
    )
