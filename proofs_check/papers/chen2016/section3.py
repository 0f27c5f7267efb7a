"""chen2016, Section 3: very small distances, where the ratio of distances is a mean of squares of normal variables.

`docs/theory/chen2016.md` derives every correction.
"""

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
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers import shared
from proofs_check.papers.chen2016 import setup, trials
from proofs_check.papers.chen2016.laws import chi_square_outside
from proofs_check.papers.shared import (
    LOG2,
    always,
    as_residual,
    at_most_one,
    bound_of,
    parametrized,
    real,
    rng_of,
)


def _display_before_2() -> Check:
    # The usual tolerance, 10^4, is 1.2e-3 in float32, and 0.24 is off by 6e-4.
    @parametrized(Inequality, tolerance=1e3)
    def holds(
        squared: Callable[[np.ndarray], np.ndarray], share: float = 0.25
    ) -> list[Any]:
        r = np.linspace(0.05, 1, 60)
        ratios, source = squared(r) / r**2, "chen2016, before (2)"
        lower = [
            (float(1 - share * x**2), always(ratio, source))
            for ratio, x in zip(ratios, r, strict=True)
        ]
        return [*lower, *setup.all_at_most_one(ratios, source)]

    def library(r: np.ndarray) -> np.ndarray:
        return setup.distances_of(r) ** 2

    settings = (Setting("lengths from .05 to 1"),)
    return Check(
        printed=Form(holds(lambda r: 2 - 2 * np.exp(r**2 / 2)), settings),
        corrected=Form(holds(library), settings),
        controls=(
            Control(
                ".24 for the fourth-order term",
                holds(library, 0.24),
                settings,
                "wrong factor",
            ),
        ),
    )


def _eq2() -> Check:
    def half_precision(r: np.ndarray) -> np.ndarray:
        return np.sqrt(2 - 2 * controls.in_half(np.exp(-(r**2) / 2)))

    @parametrized(Inequality)
    def holds(
        setting: Setting,
        lower: Callable[..., Bound],
        distances: Callable[[np.ndarray], np.ndarray] = setup.distances_of,
    ) -> list[Any]:
        r = np.asarray(setting.data)
        D = distances(r)
        lowers = [
            setup.above(d, lower(distance=float(x))) for d, x in zip(D, r, strict=True)
        ]
        return lowers + setup.all_at_most_one(D / r, "chen2016, (2), right")

    settings = (
        Setting(
            "distances from 1e-4 to 1",
            np.concatenate([np.geomspace(1e-4, 1, 200), np.linspace(0.5, 1, 200)]),
        ),
    )
    # Below about .02 the kernel value would be rounded to 1, and the distance to 0.
    larger = (Setting("distances from .05 to 1", np.geomspace(0.05, 1, 200)),)
    constant = holds(lambda distance: always(0.89 * distance, "the constant .89"))
    return Check(
        printed=Form(
            holds(functools.partial(fourier.distance_lower, as_printed=True)), settings
        ),
        corrected=Form(holds(fourier.distance_lower), settings),
        controls=(
            Control("the constant .89", constant, settings, "wrong factor"),
            Control(
                "K in float16",
                holds(fourier.distance_lower, half_precision),
                larger,
                "low precision",
            ),
        ),
    )


def _eq3() -> Check:
    @parametrized(Inequality)
    def holds(lower: Callable[..., Bound]) -> list[Any]:
        eps = np.repeat(np.geomspace(1e-3, 0.99, 40), 10)
        r = 2 * np.sqrt(eps) * np.tile(np.linspace(0.1, 1 - 1e-9, 10), 40)
        D = setup.distances_of(r)
        return [
            setup.above(d**2, lower(eps=float(e), distance=float(x)))
            for d, e, x in zip(D, eps, r, strict=True)
        ]

    def smaller(*, eps: float, distance: float) -> Bound:
        return always((1 - 0.9 * eps) * distance**2, "1 - .9 eps")

    settings = (Setting("eps from .001 to .99, distances up to 2 sqrt(eps)"),)
    return Check(
        printed=Form(holds(fourier.squared_distance_lower), settings),
        controls=(
            Control(
                "nine tenths of the error", holds(smaller), settings, "wrong factor"
            ),
        ),
    )


def expansions() -> Check:
    """Return the check of the expansions before (4)."""

    def residual(sign: float, halved: bool = True) -> Identity:
        def ratio(key: jax.Array, setting: Setting) -> np.ndarray:
            pair = setting.data
            phi = features.paired_fourier(
                key, kernels.Gaussian(1.0), 2, num_frequencies=8, dtype=pair.dtype
            )
            x, y = phi(pair)
            difference = pair[0] - pair[1]
            r = float(jnp.linalg.norm(difference))
            components = (
                np.asarray(phi.frequencies, float) @ np.asarray(difference, float) / r
            )
            cosines = float(np.mean(np.cos(components * r)))
            computed = float(jnp.sum((x - y) ** 2)) / (-2 * math.expm1(-(r**2) / 2))
            expanded = (
                (1 - cosines) / (-math.expm1(sign * r**2 / 2)) * (1 if halved else 2)
            )
            return as_residual([expanded / computed - 1])

        return Identity(ratio)

    settings = tuple(
        Setting(
            f"r={r:g}", real(np.array([[0.3, 0.1], [0.3 + 0.6 * r, 0.1 - 0.8 * r]]))
        )
        for r in (0.5, 1.0)
    )
    return Check(
        printed=Form(residual(1.0), settings),
        corrected=Form(residual(-1.0), settings),
        controls=(
            Control(
                "a factor 2", residual(-1.0, halved=False), settings, "wrong factor"
            ),
        ),
    )


@jax.jit
def _feature_distances(W: jax.Array, r: jax.Array) -> jax.Array:
    """Return |phi(r_i) - phi(0)| on a line for each row of frequencies W (n, t) and distance r (n,), by the library."""

    def one(w: jax.Array, r: jax.Array) -> jax.Array:
        x, y = features.PairedFourier(kernels.Gaussian(1.0), w[:, None])(
            jnp.stack([jnp.zeros_like(r), r])[:, None]
        )
        return jnp.linalg.norm(x - y)

    return jax.vmap(one)(W, r)


def taylor_sides(
    key: jax.Array, setting: Setting, *, as_printed: bool, fourth: float = 1.0
) -> list[Any]:
    """Return the sides of (4): S2 - r^2 S4 / 12 <= Dhat^2 / D^2 <= S2 / (1 - r^2 / 4), Dhat by the library.

    The frequencies are far larger than Gaussian ones in two of three draws. As printed |w| r <= 1 for all of them.
    """
    t = setting.shapes["t"]
    rng = rng_of(key)
    draws = rng.standard_normal((120, t)) * np.repeat([0.5, 3.0, 10.0], 40)[:, None]
    r = rng.uniform(0.2, 1.0 if as_printed else 1.9, 120)
    if as_printed:
        draws *= np.minimum(1, 0.999 / (r * np.max(np.abs(draws), axis=1)))[:, None]
    W = real(draws)

    ratios = (
        np.asarray(_feature_distances(W, real(r)), float) ** 2
        / setup.distances_of(r) ** 2
    )
    sides = []
    for ratio, w, distance in zip(ratios, np.asarray(W, float), r, strict=True):
        second, fourth_moment = float(np.mean(w**2)), fourth * float(np.mean(w**4))
        upper = fourier.ratio_upper(
            second_moment=second, distance=distance, as_printed=as_printed
        )
        lower = fourier.ratio_lower(
            second_moment=second, fourth_moment=fourth_moment, distance=distance
        )
        sides += [
            setup.below(ratio, upper),
            (
                lower.value / second,
                Bound(ratio / second, 1.0, lower.valid, lower.source),
            ),
        ]
    return sides


def _eq4() -> Check:
    holds, settings = (
        parametrized(Inequality)(taylor_sides),
        shared.grid("{t} frequencies", shapes="t", t=(1, 5)),
    )
    half = holds(as_printed=False, fourth=0.5)
    return Check(
        printed=Form(holds(as_printed=True), settings),
        corrected=Form(holds(as_printed=False), settings),
        controls=(
            Control("half of the fourth-order term", half, settings, "wrong factor"),
        ),
    )


def _lemma_3_1() -> Check:
    t, maps = 20, 100

    def moment(setting: Setting) -> float:
        """Of |x|, at most E x^2; x is a mean of t independent (1 - cos(r w)) / mu - w^2, which have the mean 0."""
        r = setting.numbers["r"]
        K, mu = math.exp(-(r**2) / 2), -math.expm1(-(r**2) / 2)
        return (2 + (1 + K) ** 2 / 2 - 2 * r**2 * K / mu) / t / maps

    def wide(setting: Setting) -> float:
        """Of |Dhat^2 / D^2 - 1|, at most the variance of the ratio."""
        return 2 / t / maps

    def rate(exponent: float, of: Callable[[Setting], float] = moment) -> Rate:
        return Rate(trials.distance_to_the_limit, "r", exponent, 0.15, moment=of)

    settings = shared.grid(
        "r={r:g}",
        shapes="rows maps",
        r=(0.02, 0.04, 0.08, 0.16, 0.32),
        rows=[t],
        maps=[maps],
    )
    one = controls.changed(settings, "1 for the limit", shapes={"limit": 0})
    return Check(
        printed=Form(rate(2.0), settings),
        controls=(
            Control("the limit 1", rate(2.0, wide), one, "wrong operator"),
            Control("the power 1.75", rate(1.75), settings, "wrong power"),
        ),
    )


def _chi_square() -> Check:
    @parametrized(Identity)
    def relative(key: jax.Array, dropped: int = 0) -> np.ndarray:
        """Return the errors of eight sums against those of squares of components of the normal numbers of the key.

        One dropped square of a single sum is lost in float32 at one seed of eight.
        """
        unit = np.arange(1.0, 6) / np.linalg.norm(np.arange(1.0, 6))
        dtype = jnp.result_type(float)
        errors = []
        for draw in jax.random.split(key, 8):
            drawn = np.asarray(trials.frequencies(draw, 5, 20, dtype), float)
            normals = np.asarray(shared.normals(draw, 20, 5, dtype), float)
            total = np.sum((normals[dropped:] @ unit) ** 2)
            errors.append(np.sum((drawn @ unit) ** 2) / total - 1)
        return as_residual(errors)

    settings = (Setting("t=20, d=5"),)
    return Check(
        printed=Form(relative(), settings),
        controls=(
            Control(
                "t - 1 degrees of freedom", relative(dropped=1), settings, "n for n - 1"
            ),
        ),
    )


def _mean_of_squares(bound: Callable[..., Bound], times: float = 1.0) -> Exact:
    return setup.chi_square_tail(lambda **options: [bound(**options)], times, power=1)


def _squares(bound: Callable[..., Bound], *logs: float) -> tuple[Setting, ...]:
    return setup.tiny(bound, (0.1, 0.5, 0.9), logs)


def _lemma_3_2(inputs: setup.Inputs, tiny: bool = False) -> Check:
    logs = inputs.logs if tiny else [-math.log(delta) for delta in inputs.deltas]
    bound = fourier.chi_square_mean
    printed = functools.partial(bound, as_printed=True)
    deep = _squares(bound, 600.0 if tiny else logs[0])
    name, times = (
        ("a hundredth more frequencies than there are", 1.01)
        if tiny
        else ("half of the frequencies", 2.0)
    )
    return Check(
        printed=Form(_mean_of_squares(printed), _squares(printed, *logs)),
        corrected=Form(
            _mean_of_squares(bound), (*_squares(bound, *logs), *deep[: 3 * tiny])
        ),
        controls=(Control(name, _mean_of_squares(bound, times), deep, "wrong factor"),),
    )


def _lemma_3_2_rare(inputs: setup.Inputs) -> Check:
    return _lemma_3_2(inputs, tiny=True)


def _lemma_3_2_proof() -> Check:
    @parametrized(Exact)
    def statement(setting: Setting, root: float) -> tuple[float, float]:
        t, x = setting.numbers["t"], setting.numbers["x"]
        low, high = 1 - root * math.sqrt(x / t), 1 + root * math.sqrt(x / t) + 2 * x / t
        return chi_square_outside(t, max(low, 0.0), high), LOG2 - x

    settings = shared.grid(
        "t={t:g}, x={x:g}", t=(1.0, 10.0, 1000.0, 1e6), x=(1.0, 5.0, 30.0)
    )
    return Check(
        printed=Form(statement(2.0), settings),
        controls=(
            Control(
                "sqrt(2) for 2", statement(math.sqrt(2) * 0.9), settings, "wrong factor"
            ),
        ),
    )


def _lemma_3_3() -> Check:
    scales = real(np.geomspace(0.05, 1, 8))

    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        value = math.sqrt(s["log"] / s["t"])
        near = s["r"] ** 2 <= 2 * value / s["log"] ** 2
        return Bound(value, 1 - 4 * math.exp(-s["log"]), near, "chen2016, Lemma 3.3")

    bound = bound_of(fourier.segment, num_frequencies="t", distance="r", tau="log")

    def setting(delta: float, eps: float) -> Setting:
        log = math.log(1 / delta)
        t = math.ceil(12 * log / eps**2)
        r = 0.999 * math.sqrt(2 * math.sqrt(log / t)) / log
        numbers = {"log": log, "t": float(t), "r": r}
        name = f"eps={eps:g}, delta={delta:g}, t={t}, |Delta|={r:.3g}"
        return Setting(name, {"scales": scales}, numbers, {"rows": t})

    settings = (setting(0.05, 0.4), setting(0.0125, 0.4))
    few = controls.changed(
        settings[1:],
        "a sixteenth of the frequencies",
        shapes={"rows": settings[1].shapes["rows"] // 16},
    )
    return Check(
        printed=Form(
            Calibrated(trials.largest_along, shape, 2.0, math.sqrt(12)), settings
        ),
        corrected=Form(Tail(trials.largest_along, bound), settings),
        controls=(
            Control(
                "a sixteenth of the frequencies",
                Tail(trials.largest_along, bound),
                few,
                "wrong factor",
            ),
        ),
    )


def _lemma_3_3_proof() -> Check:
    @parametrized(Exact)
    def statement(
        setting: Setting, limit: Callable[[float, float], float]
    ) -> tuple[float, float]:
        t, delta = setting.numbers["t"], setting.numbers["delta"]
        one = LOG2 + stats.norm.logsf(limit(t, delta))
        return math.log(-math.expm1(t * math.log1p(-math.exp(one)))), math.log(delta)

    settings = []
    for delta, eps in itertools.product((0.1, 1e-2, 1e-4, 1e-8), (0.1, 0.5)):
        t = math.ceil(8 / eps**2 * math.log(2 / delta))
        settings.append(
            Setting(
                f"eps={eps:g}, delta={delta:g}, t={t}",
                numbers={"t": float(t), "delta": delta},
            )
        )
    no_union = statement(lambda t, delta: math.sqrt(2 * math.log(2 / delta)))
    return Check(
        printed=Form(
            statement(lambda t, delta: math.sqrt(math.log(1 / delta))), tuple(settings)
        ),
        corrected=Form(
            statement(lambda t, delta: math.sqrt(2 * math.log(2 * t / delta))),
            tuple(settings),
        ),
        controls=(
            Control(
                "no union over the frequencies",
                no_union,
                tuple(settings),
                "term left out",
            ),
        ),
    )


def _lemma_3_3_display() -> Check:
    @parametrized(Inequality)
    def holds(setting: Setting, as_printed: bool, power: float = 0.5) -> list[Any]:
        log = math.log(1 / setting.numbers["delta"])
        sides = []
        for eps, share in itertools.product((0.1, 0.9), (0.1, 0.5, 1.0)):
            r = share * math.sqrt(eps) / log
            # All frequencies as large as the truncation allows: w r, or w itself.
            w = math.sqrt(eps / log) / r if as_printed else log**power
            sides.append(
                at_most_one(
                    r**2 / 12 * w**4 / (eps / 12), "chen2016, proof of Lemma 3.3"
                )
            )
        return sides

    settings = shared.grid("delta={delta:g}", delta=(0.1, 1e-3))
    return Check(
        printed=Form(holds(as_printed=True), settings),
        corrected=Form(holds(as_printed=False), settings),
        controls=(
            Control(
                "|w| <= ln(1 / delta)",
                holds(as_printed=False, power=1.0),
                settings,
                "wrong power",
            ),
        ),
    )
