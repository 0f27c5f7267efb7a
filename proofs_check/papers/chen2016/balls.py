"""chen2016, sections 5 to 7: whole balls, the fewest dimensions, and principal components."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from scipy import special, stats

from jaxkern import kernels
from jaxkern.bounds import Bound, fourier
from jaxkern.gram import center, gram
from proofs_check import controls
from proofs_check.claim import Check, Control, Exact, Form, Inequality, Rate, Setting, Tail
from proofs_check.papers.chen2016 import places, sides, trials
from proofs_check.papers.chen2016.places import Scope
from proofs_check.papers.shared import always


def _lemma_5_1() -> Check:
    def bound(setting_t: int, *, as_printed: bool = False) -> Callable[[np.ndarray, float], Bound]:
        def of(w: np.ndarray, distance: float) -> Bound:
            return fourier.gradient(
                frequency_energy=float(np.sum(w**2)),
                distance=distance,
                dim=w.shape[1],
                num_frequencies=setting_t,
                as_printed=as_printed,
            )

        return of

    def without_the_square(w: np.ndarray, distance: float) -> Bound:
        value = 2 * float(np.mean(np.linalg.norm(w, axis=1))) * distance
        return always(value, "|w| for |w|^2")

    def holds(of: Callable[[Setting], Callable[[np.ndarray, float], Bound]]) -> Inequality:
        return Inequality(lambda key, setting: sides.gradient_sides(key, setting, bound=of(setting)))

    settings = tuple(Setting(f"t={t}, d={d}", shapes={"t": t, "dim": d}) for t, d in ((1, 1), (4, 3)))
    return Check(
        printed=Form(holds(lambda s: bound(s.shapes["t"], as_printed=True)), settings),
        corrected=Form(holds(lambda s: bound(s.shapes["t"])), settings),
        controls=(Control("|w| for its square", holds(lambda s: without_the_square), settings, "wrong power"),),
    )


def _corollary_5_1(scope: Scope) -> Check:
    def one_frequency(setting: Setting) -> tuple[float, float]:
        """For t = 1 the Lipschitz constant over |Delta| <= c tends to 2 c |w|^2 as c shrinks."""
        d, n, constant = (setting.numbers[k] for k in ("d", "n", "C"))
        return float(stats.chi2.logsf(constant * math.sqrt(d) * math.log(n) / 2, d)), -math.log(n)

    def bound(setting: Setting) -> Bound:
        n = setting.numbers
        return fourier.lipschitz_squared(
            radius=n["radius"], dim=n["d"], num_frequencies=n["t"], tau=math.log(1 / n["delta"])
        )

    def without_dimension(setting: Setting) -> Bound:
        n = setting.numbers
        return fourier.lipschitz_squared(
            radius=n["radius"], dim=0.0, num_frequencies=n["t"], tau=math.log(1 / n["delta"])
        )

    printed = []
    for constant in (1.0, 10.0, 1000.0):
        d = float(math.ceil((constant * math.log(1000)) ** 2))
        printed.append(Setting(f"t=1, d={d:g}, n=1000, C={constant:g}", numbers={"d": d, "n": 1e3, "C": constant}))
    settings = []
    for t, d in ((40, 1), (100, 20)):
        for delta in scope.deltas:
            numbers = {"t": float(t), "d": float(d), "delta": delta, "radius": 1.0}
            settings.append(Setting(f"t={t}, d={d}, delta={delta:g}", None, numbers, {"rows": t, "dim": d}))
    return Check(
        printed=Form(Exact(one_frequency), tuple(printed)),
        corrected=Form(Tail(trials.lipschitz, bound), tuple(settings)),
        controls=(
            Control(
                "no dimension",
                Tail(trials.lipschitz, without_dimension),
                tuple(settings[len(scope.deltas) :]),
                "term left out",
            ),
        ),
    )


def _ball_population(dim: int, diameter: float) -> dict[str, jax.Array]:
    """Return directions over a half sphere and 32 radii up to the diameter."""
    if dim == 2:
        angles = np.arange(12) * math.pi / 12
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    else:
        directions = np.eye(dim)
    return {"directions": places.real(directions), "radii": places.real(diameter * np.geomspace(1e-2, 1, 32))}


def _theorem_5_1(scope: Scope) -> Check:
    def too_few(setting: Setting) -> tuple[float, float]:
        """One frequency, and differences that shrink to 0; in two dimensions some difference is orthogonal to it."""
        d, eps, delta = (setting.numbers[k] for k in ("d", "eps", "delta"))
        inside = stats.chi2.cdf(1 + eps, 1) - stats.chi2.cdf(1 - eps, 1) if d == 1 else 0.0
        return math.log1p(-inside), math.log(delta)

    def bound(setting: Setting) -> Bound:
        n = setting.numbers
        return fourier.ball(eps=n["eps"], num_frequencies=n["t"], dim=n["d"], diameter=n["M"], tau=n["tau"])

    def one_pair(setting: Setting) -> Bound:
        n = setting.numbers
        return fourier.near_distance(eps=n["eps"], num_frequencies=n["t"], distance=1.0)

    def place(dim: int, diameter: float, eps: float, delta: float, t: int) -> Setting:
        name = f"d={dim}, M={diameter:g}, eps={eps:g}, delta={delta:g}, t={t}"
        numbers = {"d": float(dim), "M": diameter, "eps": eps, "t": float(t), "tau": math.log(6 / delta)}
        return Setting(name, _ball_population(dim, diameter), numbers, {"rows": t})

    printed, corrected = [], []
    for d in (1.0, 2.0):
        size = d / 0.04 * math.log(d * 1e-3 / (0.2 * 0.1))
        name = f"d={d:g}, M=0.001, eps=0.2, delta=0.1: {size:.3g} C frequencies asked for, t=1"
        printed.append(Setting(name, numbers={"d": d, "eps": 0.2, "delta": 0.1}))
    for dim, diameter in ((1, 5.0), (2, 1.0)):
        for delta in scope.deltas:
            eps, shape = 0.3, {"dim": dim, "diameter": diameter, "tau": math.log(6 / delta)}
            t = places.fewest(lambda t, eps=eps, shape=shape: fourier.ball(eps=eps, num_frequencies=t, **shape), delta)  # type: ignore[misc]
            corrected.append(place(dim, diameter, eps, delta, t))
    single = places.fewest(lambda t: fourier.near_distance(eps=0.3, num_frequencies=t, distance=1.0), places.DELTA)
    return Check(
        printed=Form(Exact(too_few), tuple(printed)),
        corrected=Form(Tail(trials.error_over_ball, bound), tuple(corrected)),
        controls=(
            Control(
                "one frequency, repeated",
                Tail(trials.error_over_ball, bound),
                controls.one_draw(corrected[:1]),
                "reused key",
            ),
            Control(
                "the frequencies of a single pair, in 8 dimensions",
                Tail(trials.error_over_ball, one_pair),
                (place(8, 0.1, 0.3, places.DELTA, single),),
                "term left out",
            ),
        ),
    )


def _lemma_6_1() -> Check:
    def limit(key: jax.Array, setting: Setting) -> list[Any]:
        dimension, n, error, spacing = sides.map_dimensions(key, setting)
        eps = max(error, math.exp(-(spacing**2) / 2))
        bound = fourier.dimension_limit(eps=eps, dim=1, radius=n * math.sqrt(2 * math.log(1 / eps)))
        return [sides.above(dimension, bound)]

    def points(key: jax.Array, setting: Setting) -> list[Any]:
        dimension, n, _, _ = sides.map_dimensions(key, setting)
        return [sides.at_most_one(n / dimension, "as many dimensions as points")]

    settings = (
        Setting("exact features of 200 points", None, {"spacing": 3.5}, {"n": 200, "dim": 200}),
        Setting("two bases of 256 dimensions, 512 points", None, {"spacing": 6.0}, {"n": 512, "dim": 256}),
        Setting("Fourier features, t=400, 1000 points", None, {"spacing": 3.0}, {"n": 1000, "t": 400}),
    )
    return Check(
        corrected=Form(Inequality(limit), settings),
        controls=(Control("as many dimensions as points", Inequality(points), settings[1:], "wrong power"),),
    )


def _lemma_6_1_proof() -> Check:
    def grid(key: jax.Array, setting: Setting) -> list[Any]:
        """ln of the claimed number of points, and of the volume that cubes around the points of the grid fill."""
        del key
        d, radius, eps = (setting.numbers[k] for k in ("d", "M", "eps"))
        volume = d / 2 * math.log(math.pi) - special.gammaln(d / 2 + 1)
        most = volume + d * math.log(radius / math.sqrt(2 * math.log(1 / eps)) + math.sqrt(d) / 2)
        claimed = d * math.log(radius / math.log(1 / eps))
        return [(claimed / d, always(most / d, "points of a grid in a ball"))]

    def kept(factor: float) -> Inequality:
        def holds(key: jax.Array, setting: Setting) -> list[Any]:
            del key
            d, ratio = int(setting.numbers["d"]), setting.numbers["ratio"]
            return [sides.at_most_one((factor * ratio) ** d / sides.packing(d, ratio, 0), "points of a packing")]

        return Inequality(holds)

    far = tuple(
        Setting(f"d={d:g}, M={M:g}, eps=0.05", numbers={"d": d, "M": M, "eps": 0.05})
        for d in (100.0, 400.0)
        for M in (1e3, 1e9)
    )
    near = tuple(
        Setting(f"d={d:g}, radius {ratio:g} spacings", numbers={"d": d, "ratio": ratio})
        for d, ratio in ((1.0, 20.0), (2.0, 6.0), (3.0, 3.0))
    )
    return Check(
        printed=Form(Inequality(grid), far),
        corrected=Form(kept(1.0), near),
        controls=(Control("three times as dense", kept(3.0), near, "wrong factor"),),
    )


def _section_7_1() -> Check:
    kept = 2
    X = np.repeat(4 * np.eye(3, 6), 5, axis=0) + 0.5 * np.random.default_rng(8).standard_normal((15, 6))
    points = places.real(X)
    values = np.linalg.eigvalsh(np.asarray(center(gram(kernels.Gaussian(1.0), points)), float))
    residual = float(np.sum(values[:-kept]))
    population = {"points": points}
    settings = tuple(
        Setting(f"t={t}", population, {"t": float(t), "residual": residual}, {"most": 200, "kept": kept})
        for t in (12, 25, 50, 100, 200)
    )

    def rate(exponent: float) -> Rate:
        return Rate(trials.residual_bias, "t", exponent, 0.15)

    return Check(
        printed=Form(rate(-2.0), settings),
        corrected=Form(rate(-1.0), settings),
        controls=(Control("a rate of 1 / sqrt(t), that of noise", rate(-0.5), settings, "wrong power"),),
    )


def _pca_bias(scope: Scope) -> Check:
    if scope.data is None:
        kernel: Any = kernels.Gaussian(1.5)
        X = np.random.default_rng(9).standard_normal((12, 2)) * [2.0, 1.0]
        name = "12 points"
    else:
        kernel, X = scope.data.kernel, places.rows_of(scope.data, 12) * float(scope.data.kernel.lengthscale)
        name = f"{len(X)} rows"
    settings = tuple(
        Setting(f"{name}, t={t}", {"kernel": kernel, "points": places.real(X)}, shapes={"t": t}) for t in (2, 3)
    )
    return Check(
        corrected=Form(Inequality(sides.residual_sides), settings),
        controls=(
            Control(
                "the residual of G outside the subspace of the draw",
                Inequality(functools.partial(sides.residual_sides, of_features=False)),
                settings,
                "wrong operator",
            ),
        ),
    )
