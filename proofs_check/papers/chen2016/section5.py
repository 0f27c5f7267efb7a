"""chen2016, Section 5: the gradient of the squared distance, and whole balls of points.

`docs/theory/chen2016.md` derives every correction.
"""

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern import features, kernels
from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Exact,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import setup, trials
from proofs_check.papers.shared import (
    always,
    as_residual,
    at_most_one,
    bound_of,
    parametrized,
    real,
    rng_of,
)

FOR_THE_BALL = bound_of(
    fourier.ball, num_frequencies="t", dim="d", diameter="M", tau="tau"
)
FOR_ONE_PAIR = bound_of(fourier.near_distance, num_frequencies="t", distance=1.0)


@jax.jit
def _gradients(deltas: jax.Array, W: jax.Array) -> jax.Array:
    """Return grad Dhat^2 at deltas (n, d) for frequencies W (n, t, d), by automatic differentiation of the library."""

    def squared(delta: jax.Array, w: jax.Array) -> jax.Array:
        x, y = features.PairedFourier(kernels.Gaussian(1.0), w)(
            jnp.stack([delta, jnp.zeros_like(delta)])
        )
        return jnp.sum((x - y) ** 2)

    return jax.vmap(jax.grad(squared))(deltas, W)


def gradient_sides(key: jax.Array, setting: Setting, *, bound: Any) -> list[Any]:
    """Return the sides of |grad Dhat^2| <= bound at random differences, over the length of the frequencies.

    Features are rounded by eps, and the gradient of the square of their difference by eps |w|. Relative to the bound,
    which vanishes with the difference, that was more than rounding at one seed of 21.
    """
    t, dim = setting.shapes["t"], setting.shapes["dim"]
    key_w, key_delta = jax.random.split(key)
    dtype = jnp.result_type(float)
    W = jax.random.normal(key_w, (100, t, dim), dtype)
    normals = np.asarray(jax.random.normal(key_delta, (100, dim), dtype))
    deltas = real(normals * np.repeat([0.1, 1.0], 50)[:, None])

    slopes = np.linalg.norm(np.asarray(_gradients(deltas, W), float), axis=1)
    draws = zip(slopes, np.asarray(W, float), np.asarray(deltas, float), strict=True)
    sides = []
    for slope, w, delta in draws:
        right = bound(w, float(np.linalg.norm(delta)))
        unit = math.sqrt(np.mean(np.sum(w**2, axis=1)))
        sides.append((slope / unit, always(right.value / unit, right.source)))
    return sides


def _lemma_5_1() -> Check:
    def holds(bound: Callable[[np.ndarray, float], Bound]) -> Inequality:
        return Inequality(
            lambda key, setting: gradient_sides(key, setting, bound=bound)
        )

    def lemma(w: np.ndarray, distance: float, *, as_printed: bool = False) -> Bound:
        energy, (t, dim) = float(np.sum(w**2)), w.shape
        return fourier.gradient(
            frequency_energy=energy,
            distance=distance,
            dim=dim,
            num_frequencies=t,
            as_printed=as_printed,
        )

    def without_the_square(w: np.ndarray, distance: float) -> Bound:
        return always(
            2 * float(np.mean(np.linalg.norm(w, axis=1))) * distance, "|w| for |w|^2"
        )

    settings = shared.listed(
        "t={t}, d={dim}", "t dim", ((1, 1), (4, 3)), shapes="t dim"
    )
    return Check(
        printed=Form(holds(functools.partial(lemma, as_printed=True)), settings),
        corrected=Form(holds(lemma), settings),
        controls=(
            Control(
                "|w| for its square", holds(without_the_square), settings, "wrong power"
            ),
            controls.part_of(0.95, holds(lemma), settings),
        ),
    )


def _lemma_5_1_proof() -> Check:
    @parametrized(Identity)
    def residual(
        setting: Setting, gradient: Callable[[np.ndarray, np.ndarray], float]
    ) -> np.ndarray:
        w, delta = setting.data
        slope = float(
            np.linalg.norm(
                np.asarray(_gradients(real(delta)[None], real(w)[None]), float)
            )
        )
        return as_residual([gradient(w, delta) / slope - 1])

    def coordinates(w: np.ndarray, delta: np.ndarray) -> float:
        return float(abs(np.sum(w * np.sin(w @ delta)[:, None])))

    def norm(w: np.ndarray, delta: np.ndarray) -> float:
        return float(np.linalg.norm(2 / len(w) * np.sin(w @ delta) @ w))

    rng = np.random.default_rng(3)
    settings = (
        Setting("w = (1, -1), t=1", (np.array([[1.0, -1.0]]), np.array([0.4, 0.1]))),
        Setting(
            "random, t=5, d=3", (rng.standard_normal((5, 3)), rng.standard_normal(3))
        ),
    )
    half = residual(lambda w, delta: norm(w, delta) / 2)
    return Check(
        printed=Form(residual(coordinates), settings),
        corrected=Form(residual(norm), settings),
        controls=(Control("half of it", half, settings, "wrong factor"),),
    )


def _corollary_5_1(inputs: setup.Inputs) -> Check:
    def shape(setting: Setting) -> Bound:
        """c t sqrt(d) ln n with n = 1 / delta, the size of a net: ln n >= d."""
        n = setting.numbers
        value = n["radius"] * n["t"] * math.sqrt(n["d"]) * math.log(1 / n["delta"])
        return Bound(
            value,
            1 - n["delta"],
            math.log(1 / n["delta"]) >= n["d"],
            "chen2016, Corollary 5.1, shape",
        )

    @parametrized(functools.partial(Tail, trials.lipschitz))
    def statement(setting: Setting, dimensions: float) -> Bound:
        n = setting.numbers
        dim, tau = dimensions * n["d"], math.log(1 / n["delta"])
        return fourier.lipschitz_squared(
            radius=n["radius"], dim=dim, num_frequencies=n["t"], tau=tau
        )

    settings = []
    for t, d in ((1, 1), (10, 2), (40, 1), (100, 20)):
        for delta in inputs.deltas:
            numbers = {"t": float(t), "d": float(d), "delta": delta, "radius": 1.0}
            settings.append(
                Setting(
                    f"t={t}, d={d}, delta={delta:g}",
                    None,
                    numbers,
                    {"rows": t, "dim": d},
                )
            )
    few, settings = (
        settings[: 2 * len(inputs.deltas)],
        settings[2 * len(inputs.deltas) :],
    )
    many = tuple(settings[len(inputs.deltas) :])
    return Check(
        printed=Form(
            Calibrated(trials.lipschitz, shape, 4.0, 2 * (2 + math.sqrt(2)) ** 2),
            tuple(few),
        ),
        corrected=Form(statement(1.0), tuple(settings)),
        controls=(
            Control("no dimension", statement(0.0), many, "term left out"),
            controls.part_of(0.69, statement(1.0), settings),
        ),
    )


def _corollary_5_1_proof() -> Check:
    @parametrized(Exact)
    def statement(setting: Setting, limit: Callable[..., float]) -> tuple[float, float]:
        s = setting.numbers
        one = float(stats.chi2.logsf(limit(**s), s["d"]))
        return math.log(
            -math.expm1(s["t"] * math.log1p(-math.exp(min(one, -1e-12))))
        ), math.log(s["delta"])

    def setting(d: float, t: float, n: float) -> Setting:
        return Setting(
            f"d={d:g}, t={t:g}, n={n:g}",
            numbers={"d": d, "t": t, "n": n, "delta": 1 / n},
        )

    def union(*, t: float, delta: float, d: float = 0.0, **_: float) -> float:
        return (math.sqrt(d) + math.sqrt(2 * math.log(t / delta))) ** 2

    printed = tuple(
        setting(d, 1.0, math.ceil(math.exp(max(d, 4.0))))
        for d in (1.0, 4.0, 10.0, 100.0)
    )
    settings = tuple(
        setting(d, t, 100.0) for d in (1.0, 10.0, 1000.0) for t in (1.0, 100.0)
    )
    no_dimension = statement(lambda d, **numbers: union(**numbers))
    return Check(
        printed=Form(
            statement(lambda n, **_: (1 + math.sqrt(2)) ** 2 * math.log(n)), printed
        ),
        corrected=Form(statement(union), settings),
        controls=(Control("no dimension", no_dimension, settings, "term left out"),),
    )


def _lemma_5_2(inputs: setup.Inputs) -> Check:
    def bound(setting: Setting) -> Bound:
        s = setting.numbers
        radius = fourier.vanishing_ball(
            eps=s["eps"], num_frequencies=s["t"], dim=s["d"], tau=s["tau"]
        )
        if not s["M"] <= radius.value:
            raise ValueError(
                f"the ball of {setting.name!r} is larger than {radius.value}"
            )
        return Bound(s["eps"], radius.probability, radius.valid, radius.source)

    def without_dimension(setting: Setting) -> Bound:
        s = setting.numbers
        return Bound(
            math.sqrt(2 * s["tau"] / s["t"]),
            1 - 3 * math.exp(-s["tau"]),
            True,
            "without sqrt(d)",
        )

    settings = []
    for dim, directions in ((1, np.eye(1)), (2, setup.half_circle())):
        for delta in inputs.deltas:
            eps, tau = 0.3, math.log(3 / delta)
            t = math.ceil(2 * (math.sqrt(dim) + math.sqrt(2 * tau)) ** 2 / eps**2)
            radius = float(
                fourier.vanishing_ball(
                    eps=eps, num_frequencies=t, dim=dim, tau=tau
                ).value
            )
            numbers = {
                "d": float(dim),
                "M": radius,
                "eps": eps,
                "t": float(t),
                "tau": tau,
            }
            name = f"d={dim}, |Delta| <= {radius:.3g}, eps=0.3, delta={delta:g}, t={t}"
            differences = setup.ball(directions, radius * np.geomspace(1e-2, 1, 32))
            settings.append(Setting(name, differences, numbers, {"rows": t}))
    many = controls.changed(
        settings[-1:], "d=30", data=lambda p: {**p, "directions": real(np.eye(30))}
    )
    control = Tail(trials.error_over_ball, without_dimension)
    return Check(
        corrected=Form(Tail(trials.error_over_ball, bound), tuple(settings)),
        controls=(
            Control("the error without sqrt(d)", control, many, "term left out"),
        ),
    )


def eq7() -> Check:
    """Return the check of (7), and on what takes the place of (6)."""

    def holds(squared: bool) -> Inequality:
        def both(key: jax.Array) -> list[Any]:
            """Return the sides for D_K and for Dhat, at random pairs of differences."""
            t, dim = 6, 3
            w = np.asarray(
                trials.frequencies(key, dim, t, jnp.result_type(float)), float
            )
            most = math.sqrt(np.linalg.eigvalsh(w.T @ w / t)[-1])
            rng, power = np.random.default_rng(0), 2 if squared else 1
            sides = []
            for scale in np.repeat((0.01, 0.5, 3.0), 60):
                a = scale * rng.standard_normal(dim)
                b = a + scale * 0.3 * rng.standard_normal(dim)
                true = [math.sqrt(-2 * math.expm1(-(x @ x) / 2)) for x in (a, b, a - b)]
                image = [
                    math.sqrt(np.mean(4 * np.sin(w @ x / 2) ** 2))
                    for x in (a, b, a - b)
                ]
                for (first, second, gap), longest in ((true, 1.0), (image, most)):
                    sides.append(
                        at_most_one(
                            abs(first**power - second**power) / gap**power,
                            "chen2016, (7)",
                        )
                    )
                    sides.append(
                        at_most_one(
                            gap / (longest * np.linalg.norm(a - b)), "chen2016, (7)"
                        )
                    )
            return sides

        return Inequality(both)

    settings = (Setting("random differences in three dimensions"),)
    return Check(
        printed=Form(holds(squared=False), settings),
        controls=(
            Control("squared distances", holds(squared=True), settings, "wrong power"),
            controls.part_of(0.99, holds(squared=False), settings),
        ),
    )


def _steps() -> Check:
    @parametrized(Inequality)
    def sides(key: jax.Array, setting: Setting, factor: float = 1.0) -> list[Any]:
        """Return the sides of (9) and (10), with the errors of (6) and (8), at pairs of points of a sphere."""
        rng, r = rng_of(key), setting.numbers["r"]
        w = rng.standard_normal((40, 3))
        pairs = rng.standard_normal((1000, 2, 3))
        pairs[:, 1] = pairs[:, 0] + 0.1 * pairs[:, 1]
        phases = r * pairs / np.linalg.norm(pairs, axis=2, keepdims=True) @ w.T
        first, second = np.mean(4 * np.sin(phases / 2) ** 2, axis=2).T / (
            -2 * math.expm1(-(r**2) / 2)
        )
        errors = np.maximum(np.abs(first / second - 1), np.abs(second - 1))
        return setup.all_at_most_one(
            np.abs(np.sqrt(first) - 1) / (factor * errors), "chen2016, (9)"
        )

    settings = shared.grid("|Delta|={r:g}", r=(0.1, 0.001))
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control("0.9 of the errors", sides(factor=0.9), settings, "wrong factor"),
        ),
    )


def _far_differences() -> Check:
    @parametrized(Inequality)
    def worst(key: jax.Array, setting: Setting, gap: float = 1.0) -> list[Any]:
        """Return the largest error over 1 <= |Delta| <= 30, and that of a net plus what lies between, of 30 draws."""

        def error(w: np.ndarray, r: np.ndarray) -> float:
            images = np.mean(4 * np.sin(np.outer(r, w) / 2) ** 2, axis=1)
            return float(
                np.max(np.abs(np.sqrt(images / (-2 * np.expm1(-(r**2) / 2))) - 1))
            )

        spacing, pairs = setting.numbers["spacing"], []
        for w in rng_of(key).standard_normal((30, 50)):
            inner, slope = (
                error(w, np.arange(1, 30 + spacing, spacing)),
                1 + math.sqrt(np.mean(w**2)),
            )
            right = inner + gap * (slope + inner) * spacing / 2 / math.sqrt(
                -2 * math.expm1(-0.5)
            )
            pairs.append(
                (
                    error(w, np.linspace(1, 30, 5001)),
                    always(right, "jaxkern, Theorem C of chen2016"),
                )
            )
        return pairs

    settings = shared.grid("d=1, t=50, spacing {spacing:g}", spacing=(0.5, 0.05))
    return Check(
        corrected=Form(worst(), settings),
        controls=(Control("the net alone", worst(gap=0.0), settings, "term left out"),),
    )


def _curvature() -> Check:
    @parametrized(Inequality)
    def sides(
        key: jax.Array, setting: Setting, share: float = 1.0, kernel: float = 1.0
    ) -> list[Any]:
        """Compare how far F falls below its tangent with what Theorem H allows, both over |y|^2.

        The allowed curvature may vanish or be negative, so neither side is divided by it. There are 20 differences for
        each of 20 draws.
        """
        rng = rng_of(key)
        level = setting.numbers["level"]
        compared = []
        sign = 1.0 if level > 1 else -1.0  # F = Dhat^2 - u D^2, or v D^2 - Dhat^2
        for w in rng.standard_normal((20, 3, 2)):
            largest = np.linalg.eigvalsh(w.T @ w / 3)[-1]
            for x, y in (
                rng.standard_normal((20, 2, 2))
                * np.geomspace(0.05, 3, 20)[:, None, None]
            ):
                y *= 0.3 * np.linalg.norm(x) / np.linalg.norm(y)
                r, (a, b) = np.linalg.norm(x), (x + y, x)
                F = [
                    sign
                    * (
                        np.mean(4 * np.sin(w @ z / 2) ** 2)
                        + 2 * level * np.expm1(-z @ z / 2)
                    )
                    for z in (a, b)
                ]
                slope = sign * (
                    2 / 3 * np.sin(w @ x) @ w - 2 * level * np.exp(-x @ x / 2) * x
                )
                peak = np.clip(math.sqrt(3), 0.7 * r, 1.3 * r)
                far = (peak**2 - 1) * math.exp(-(peak**2) / 2)
                curve = largest + kernel * level * (
                    math.exp(-((0.7 * r) ** 2) / 2) if sign > 0 else far
                )
                fall = (F[1] + slope @ y - F[0]) / (y @ y)
                allowed = curve - (1 - share) * abs(curve)
                compared.append((fall, allowed))
        return shared.lines(compared, "jaxkern, Theorem H of chen2016")

    settings = shared.grid("d=2, t=3, level {level:g}", level=(1.69, 0.49))
    return Check(
        corrected=Form(sides(), settings),
        controls=(
            Control(
                "without the curvature of the kernel",
                sides(kernel=0.0),
                settings[:1],
                "term left out",
            ),
            Control(
                "two thirds of the curvature",
                sides(share=2 / 3),
                settings,
                "wrong factor",
            ),
        ),
    )


def _single() -> int:
    """Return the frequencies that a single pair needs."""
    return setup.fewest(
        functools.partial(fourier.near_distance, eps=0.3, distance=1.0), setup.DELTA
    )


def _ball_setting(name: str, dim: int, diameter: float, t: int, tau: float) -> Setting:
    """Return a ball at eps = .3, by directions over a half sphere and 32 radii up to the diameter."""
    differences = setup.ball(
        setup.half_circle() if dim == 2 else np.eye(dim),
        diameter * np.geomspace(1e-2, 1, 32),
    )
    numbers = {"d": float(dim), "M": diameter, "eps": 0.3, "t": float(t), "tau": tau}
    return Setting(name, differences, numbers, {"rows": t})


def _frequencies_for_the_ball(
    dim: int, diameter: float, delta: float
) -> tuple[int, float]:
    tau = math.log(6 / delta)
    return setup.fewest(
        functools.partial(fourier.ball, eps=0.3, dim=dim, diameter=diameter, tau=tau),
        delta,
    ), tau


def _asked(dim: int, diameter: float, delta: float, log: float) -> Setting:
    """Return a ball with the frequencies of Section 5 for a constant of one: d / eps^2 times a logarithm."""
    t = math.ceil(dim * log / 0.3**2)
    name = f"d={dim}, M={diameter:g}, eps=0.3, delta={delta:g}, as many as are asked for, t={t}"
    setting = _ball_setting(name, dim, diameter, t, 0.0)
    return dataclasses.replace(
        setting, numbers={**setting.numbers, "delta": delta, "log": log}
    )


def _in_units(setting: Setting) -> Bound:
    s = setting.numbers
    return Bound(
        math.sqrt(s["d"] * s["log"] / s["t"]),
        1 - s["delta"],
        s["M"] >= 1,
        "chen2016, Section 5, shape",
    )


def _corollary_5_2(inputs: setup.Inputs) -> Check:
    corrected = []
    for delta in inputs.deltas:
        t, tau = _frequencies_for_the_ball(1, 1.0, delta)
        corrected.append(
            _ball_setting(f"d=1, eps=0.3, delta={delta:g}, t={t}", 1, 1.0, t, tau)
        )
    eight = (_ball_setting(f"d=8, eps=0.3, t={_single()}", 8, 1.0, _single(), 1.0),)
    control = Tail(trials.error_over_ball, FOR_ONE_PAIR)
    asked = tuple(
        _asked(dim, 1.0, delta, math.log(dim / 0.3))
        for dim in (1, 2)
        for delta in inputs.deltas
    )
    return Check(
        printed=Form(
            Calibrated(
                trials.error_over_ball,
                _in_units,
                0.0,
                31 * math.sqrt(1 + math.log2(100)),
            ),
            asked,
        ),
        corrected=Form(Tail(trials.error_over_ball, FOR_THE_BALL), tuple(corrected)),
        controls=(
            Control(
                "the frequencies of a single pair, in 8 dimensions",
                control,
                eight,
                "term left out",
            ),
        ),
    )


def _theorem_5_1(inputs: setup.Inputs) -> Check:
    def over(dim: int, diameter: float, delta: float, t: int, tau: float) -> Setting:
        return _ball_setting(
            f"d={dim}, M={diameter:g}, eps=0.3, delta={delta:g}, t={t}",
            dim,
            diameter,
            t,
            tau,
        )

    asked = tuple(
        _asked(dim, diameter, delta, math.log(dim * diameter / (0.3 * delta)))
        for dim, diameter in ((1, 1.0), (1, 5.0), (2, 10.0))
        for delta in inputs.deltas
    )
    corrected = tuple(
        over(dim, diameter, delta, *_frequencies_for_the_ball(dim, diameter, delta))
        for dim, diameter in ((1, 5.0), (2, 1.0))
        for delta in inputs.deltas
    )
    statement, single = (
        Tail(trials.error_over_ball, bound) for bound in (FOR_THE_BALL, FOR_ONE_PAIR)
    )
    eight = (over(8, 0.1, setup.DELTA, _single(), math.log(6 / setup.DELTA)),)
    return Check(
        printed=Form(Calibrated(trials.error_over_ball, _in_units, 1.0, 31.0), asked),
        corrected=Form(statement, corrected),
        controls=(
            Control(
                "one frequency, repeated",
                statement,
                controls.one_draw(corrected[:1]),
                "reused key",
            ),
            Control(
                "the frequencies of a single pair, in 8 dimensions",
                single,
                eight,
                "term left out",
            ),
        ),
    )
