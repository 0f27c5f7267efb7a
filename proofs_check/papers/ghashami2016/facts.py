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
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Expectation,
    Form,
    Inequality,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.features import badly_scaled
from proofs_check.papers.ghashami2016.places import Scope
from proofs_check.papers.shared import always

PAPER = "ghashami2016"

Sides = Callable[[jax.Array, Setting], list[tuple[float, Bound]]]


# ------------------------------------------------------------------------------------------------- Frequent Directions


def _sketch_fact() -> Check:
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
    return Check(
        printed=Form(Inequality(sides(lambda size: size // 2)), places),
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


def _nystrom_spectral(scope: Scope) -> Check:
    return _nystrom_fact(True, scope.deltas)


def _nystrom_frobenius(scope: Scope) -> Check:
    return _nystrom_fact(False, scope.deltas)


def _nystrom_fact(spectral: bool, deltas: Sequence[float]) -> Check:
    places = tuple(place for delta in deltas for place in _nystrom_places(spectral, delta, 30))
    power, upper = (1 / 2, 4.0) if spectral else (1 / 4, 2.0)

    def shape(setting: Setting) -> Bound:
        delta, c, k = setting.numbers["delta"], setting.shapes["size"], setting.shapes["rank"]
        value = ((1 if spectral else k) * math.log(1 / delta) / c) ** power
        return Bound(value, 1 - delta, k <= c and delta <= math.exp(-1), "ghashami2016, Section 1.1 (Nystrom)")

    statement = Calibrated(t.nystrom_excess, shape, 0.0, upper)
    return Check(
        printed=Form(statement, places),
        controls=(
            Control(
                "n times the error, of 8 landmarks that often miss a cluster",
                statement,
                controls.changed(places[1:2], "not divided by n", numbers={"scale": 64.0}, shapes={"size": 8}),
                "missing normalisation",
            ),
        ),
    )


def _nystrom_best_rank(scope: Scope) -> Check:
    def bound(setting: Setting) -> Bound:
        delta, c = setting.numbers["delta"], setting.shapes["size"]
        value = 2 * (1 + math.sqrt(math.log(1 / delta))) / math.sqrt(c)
        return Bound(value, 1 - delta, setting.shapes["rank"] <= c, "jaxkern, Theorem H of ghashami2016")

    statement = Tail(t.nystrom_excess, bound, lambda setting: 1.0)
    places = tuple(
        place for delta in scope.deltas for spectral in (True, False) for place in _nystrom_places(spectral, delta, 150)
    )
    return Check(
        corrected=Form(statement, places),
        controls=(Control("landmarks from the first half", statement, _first_half(places), "wrong law"),),
    )


def _nystrom_coherence(scope: Scope) -> Check:
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
    full = tuple(place(delta, True) for delta in scope.deltas)
    return Check(
        printed=Form(statement, tuple(place(delta, False) for delta in scope.deltas)),
        corrected=Form(statement, full),
        controls=(Control("landmarks from the first half", statement, _first_half(full), "wrong law"),),
    )


def _nystrom_mean() -> Check:
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
    return Check(
        corrected=Form(Inequality(sides(first=False)), places),
        controls=(Control("the first points as landmarks", Inequality(sides(first=True)), places, "wrong law"),),
    )


# ----------------------------------------------------------------------------------------------------- random features


def _pair(scale: float) -> tuple[Setting, ...]:
    """Return two points at distance 1, away from the origin."""
    dtype = jnp.result_type(float)
    points = jnp.asarray([[0.3, -0.2], [0.9, 0.6]], dtype)
    return (Setting("two points", {"kernel": kernels.Gaussian(1.0), "points": points}, {"scale": scale}, {"size": 8}),)


def _features_mean() -> Check:
    def target(setting: Setting) -> float:
        del setting
        return math.exp(-1 / 2)

    statement = Expectation(t.inner_product, target, lambda setting: 1.0, limits=lambda setting: (-2.0, 2.0))
    places = _pair(1.0)
    swapped = controls.changed(places, "gamma", population=lambda p: {**p, "kernel": kernels.Gaussian(0.5)})
    return Check(
        printed=Form(statement, places),
        controls=(
            Control("features without the root of two", statement, _pair(0.5), "wrong factor"),
            Control("gamma for the lengthscale", statement, swapped, "swapped constants"),
        ),
    )


def _features_squares() -> Check:
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
    return Check(
        printed=Form(Inequality(sides(2.0)), places),
        controls=(Control("1 / m", Inequality(sides(1.0)), places, "wrong factor"),),
    )


def _features_entries(scope: Scope) -> Check:
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
        for cloud in scope.clouds
        for delta in scope.deltas
    )
    return Check(
        printed=Form(Calibrated(t.entry_error, shape, 0.0, 4.0), places),
        corrected=Form(Tail(t.entry_error, bound), places),
        controls=badly_scaled(Tail(t.entry_error, bound), places[:1], size),
    )


def _rnca_mean() -> Check:
    places = tuple(
        Setting(f"copies of a point, m={m}", numbers={"m": float(m)}, shapes={"most": 4096})
        for m in (16, 64, 256, 1024, 4096)
    )
    return Check(
        printed=Form(Rate(t.copies_error, "m", -1.0), places),
        corrected=Form(Rate(t.copies_error, "m", -0.5), places),
        controls=(Control("m^(-1/4)", Rate(t.copies_error, "m", -0.25), places, "wrong power"),),
    )


def _rnca_markov() -> Check:
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
    return Check(
        printed=Form(Exact(probability), tenfold),
        corrected=Form(Exact(probability), enough),
        controls=(
            Control(
                "a thirtieth of that", Exact(probability), places(lambda eps: 0.05 / (delta * eps**2)), "wrong factor"
            ),
        ),
    )


# -------------------------------------------------------------------------------------- the inequalities of Section 3


def _bernstein() -> Check:
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
    return Check(
        printed=Form(Exact(probability(2.0)), places),
        controls=(Control("without 2 R t", Exact(probability(0.0)), places, "term left out"),),
    )


def _hoeffding() -> Check:
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
    return Check(
        printed=Form(Exact(probability(2.0)), small),
        corrected=Form(Exact(probability(2.0)), small + used),
        controls=(Control("4 for 2 in the exponent", Exact(probability(4.0)), used[2:], "wrong factor"),),
    )
