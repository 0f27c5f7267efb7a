"""chen2016, Section 4: one pair of near points, and all pairs of n points.

`docs/theory/chen2016.md` derives every correction.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

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
from proofs_check.papers.chen2016 import setup, trials
from proofs_check.papers.chen2016.laws import chi_square_outside, log_mgf, nodes
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    LOG2,
    always,
    as_residual,
    bound_of,
    grid,
    lines,
    listed,
    parametrized,
)


def _lemma_4_1() -> Check:
    @parametrized(Inequality)
    def holds(
        setting: Setting,
        bound: Callable[..., Bound],
        slopes: Callable[[float], Sequence[float]],
    ) -> list[Any]:
        r = setting.numbers["r"]
        return [setup.below(log_mgf(s, r), bound(s=s, distance=r)) for s in slopes(r)]

    def printed_slopes(r: float) -> list[float]:
        return [y / r**2 for y in (0.05, 0.2, 0.4, 0.499)]

    def slopes(r: float) -> list[float]:
        return [
            y / (-2 * math.expm1(-(r**2) / 2))
            for y in (-50.0, -3.0, -0.3, 0.1, 0.5, 0.9)
        ]

    def variance_only(*, s: float, distance: float) -> Bound:
        return always((s * math.expm1(-(distance**2) / 2)) ** 2, "s^2 mu^2")

    def smaller(*, s: float, distance: float) -> Bound:
        return always(
            0.99 * fourier.log_mgf(s=s, distance=distance).value, "a hundredth less"
        )

    settings = grid("r={r:g}", r=(0.01, 0.1, 1.0, 2.0, 6.0))
    control = holds(variance_only, slopes)
    return Check(
        printed=Form(
            holds(functools.partial(fourier.log_mgf, as_printed=True), printed_slopes),
            settings[:3],
        ),
        corrected=Form(holds(fourier.log_mgf, slopes), settings),
        controls=(
            Control(
                "the variance of chi-square alone", control, settings, "term left out"
            ),
            Control(
                "a hundredth less", holds(smaller, slopes), settings, "wrong factor"
            ),
        ),
    )


def _lemma_4_1_taylor() -> Check:
    @parametrized(Inequality)
    def holds(low: float, order: int = 2) -> list[Any]:
        x, y, z = (
            np.linspace(low, 5, 201),
            np.linspace(0, 0.5, 51),
            np.linspace(-9, 9, 301),
        )
        series = 1 - x + (x**2 / 2 if order == 2 else 0)
        scale = np.maximum(series, 1)
        left = [np.exp(-x) / scale, np.maximum(1 - z**2 / 2, -50), y - y**2 / 2]
        right = [series / scale, np.maximum(np.cos(z), -50), np.log1p(y)]
        pairs = zip(np.concatenate(left), np.concatenate(right), strict=True)
        return lines(pairs, "chen2016, proof of Lemma 4.1")

    settings = (Setting("grids of numbers"),)
    return Check(
        printed=Form(holds(-5.0), settings),
        corrected=Form(holds(0.0), settings),
        controls=(
            Control("without x^2 / 2", holds(0.0, order=1), settings, "term left out"),
            controls.part_of(0.99, holds(0.0), settings),
        ),
    )


def _lemma_4_1_proof() -> Check:
    @parametrized(Inequality)
    def holds(
        setting: Setting, log_of: Callable[[float], float], shares: Sequence[float]
    ) -> list[Any]:
        r, source = setting.numbers["r"], "chen2016, proof of Lemma 4.1"
        return [
            (log_mgf(y / r**2, r), always(y * r**2 / 8 - y / 2 - log_of(y), source))
            for y in shares
        ]

    settings = grid("r={r:g}", r=(0.01, 0.3, 1.0))
    near = grid("r={r:g}, no quartic term", r=(0.01, 0.3, 1.0))
    half = holds(lambda y: math.log1p(-y) / 4, (0.4,))
    return Check(
        printed=Form(holds(lambda y: math.log1p(y) / 2, (0.1, 0.3, 0.499)), settings),
        corrected=Form(
            holds(lambda y: math.log1p(-y) / 2, (0.1, 0.3, 0.499)), settings
        ),
        controls=(Control("half of the logarithm", half, near, "wrong factor"),),
    )


def _eq5() -> Check:
    @parametrized(Exact)
    def statement(setting: Setting, share: float = 1.0) -> tuple[float, float]:
        eps, p, q, t = (setting.numbers[k] for k in ("eps", "p", "q", "t"))
        bound = fourier.sub_exponential(
            eps=eps, mean=1.0, p=share * p, q=share * q, num_frequencies=t
        )
        return chi_square_outside(t, 1 - eps, 1 + eps), setup.log_failure(
            setting, [bound]
        )

    def setting(t: float, eps: float, p: float, q: float) -> Setting:
        name = f"t={t:g}, eps={eps:.4g}, p={p:.4g}, q={q:g}"
        return Setting(name, numbers={"t": t, "eps": eps, "p": p, "q": q})

    # Of chi2_1 - 1 the log-mgf is -log(1 - 2 s) / 2 - s, which over s^2 increases in s: p by its value at s = 1 / q.
    both = {q: 2 * q**2 * (-math.log1p(-2 / q) / 2 - 1 / q) for q in (8.0, 200.0)}
    one_sided = tuple(setting(t, 0.5, 2.0, 0.01) for t in (400.0, 1000.0))
    sizes = [
        (eps, p, q) for q, p in both.items() for eps in (p / q / 2, p / q, 1.1 * p / q)
    ]
    # As many as make it e^-600. At eps = p / q both exponents are equal, and that of chi-square nearly.
    two_sided = tuple(
        setting(math.ceil(600 / min(eps**2 / (2 * p), eps / (2 * q))), eps, p, q)
        for eps, p, q in sizes
    )
    near = statement(0.99)
    return Check(
        printed=Form(statement(), one_sided),
        corrected=Form(statement(), two_sided),
        controls=(
            Control("a hundredth less of p and of q", near, two_sided, "wrong factor"),
        ),
    )


def _lemma_4_2(inputs: setup.Inputs) -> Check:
    bound = fourier.near_distance
    printed = functools.partial(bound, as_printed=True)
    errors, r = (0.1, 0.3), (1e-3, 0.3, 1.0)
    near = setup.pair_settings(
        printed, inputs.distances(r, 1e-6, 1.0), errors, inputs.deltas
    )
    settings = setup.pair_settings(
        bound, inputs.distances(r, 1e-6, 12.0), errors, inputs.deltas
    )
    half = setup.pair_tail(bound, setup.relative, times=2)
    nearest = setup.pair_settings(bound, r[:2], errors, inputs.deltas)
    return Check(
        printed=Form(setup.pair_tail(printed, setup.relative), near),
        corrected=Form(setup.pair_tail(bound, setup.relative), settings),
        controls=(Control("half of the frequencies", half, nearest, "wrong factor"),),
    )


def _lemma_4_2_rare(inputs: setup.Inputs) -> Check:
    near, eps = (
        functools.partial(fourier.near_distance, distance=1e-4),
        (0.001, 0.1, 0.5),
    )
    printed = functools.partial(near, as_printed=True)

    def all_of_them(**options: float) -> list[Bound]:
        """Of two points the theorem on n points says the same, and its closed form nearly so for small eps."""
        pairs = (fourier.relative_distances, fourier.relative_distances_closed_form)
        return [near(**options), *(bound(num_points=2, **options) for bound in pairs)]

    deep = setup.tiny(near, eps, (600.0,))
    more = setup.chi_square_tail(all_of_them, 1.01)
    one = setup.chi_square_tail(lambda **options: [printed(**options)])
    return Check(
        printed=Form(one, setup.tiny(printed, eps, inputs.logs)),
        corrected=Form(
            setup.chi_square_tail(all_of_them),
            (*setup.tiny(near, eps, inputs.logs), *deep),
        ),
        controls=(
            Control(
                "a hundredth more frequencies than there are",
                more,
                deep,
                "wrong factor",
            ),
        ),
    )


def _lemma_4_2_mean() -> Check:
    @parametrized(Identity)
    def residual(setting: Setting, factor: float) -> np.ndarray:
        r = setting.numbers["r"]
        w, weights = nodes()
        squared = float(setup.distances_of(np.array([r]))[0]) ** 2
        return as_residual(
            [weights @ (2 * np.sin(r * w / 2) ** 2) / (factor * squared) - 1]
        )

    settings = grid("r={r:g}", r=(0.1, 0.5, 1.0))
    return Check(
        printed=Form(residual(1.0), settings),
        corrected=Form(residual(0.5), settings),
        controls=(Control("a quarter", residual(0.25), settings, "wrong factor"),),
    )


def _lemma_4_2_proof() -> Check:
    @parametrized(Exact)
    def statement(
        setting: Setting, log_claimed: Callable[[float, float], float]
    ) -> tuple[float, float]:
        eps, t = (setting.numbers[k] for k in ("eps", "t"))
        return chi_square_outside(t, 1 - eps, 1 + eps), LOG2 - log_claimed(eps, t)

    sizes = ((400.0, 0.5, 1e-4), (1000.0, 0.5, 1e-4), (20_000.0, 0.2, 1e-4))
    settings = listed("t={t:g}, eps={eps:g}, |Delta| to 0", "t eps r", sizes)
    squares = statement(lambda eps, t: t * eps**2 / 4)
    corrected = setup.chi_square_tail(
        lambda **options: [fourier.chi_square_mean(**options)], power=1
    )
    return Check(
        # E X / |Delta|^2 is 1/2 in the limit.
        printed=Form(
            statement(lambda eps, t: min(t * eps**2 / 4, t * eps / 8)), settings
        ),
        corrected=Form(corrected, settings),
        controls=(
            Control(
                "the exponent of the lower tail for both",
                squares,
                settings,
                "wrong power",
            ),
        ),
    )


def all_pairs_settings(
    bound: Callable[..., Bound],
    sets: Sequence[setup.PointSet],
    deltas: tuple[float, ...],
    eps: float,
) -> tuple[Setting, ...]:
    """Return one setting for every set of points and delta, with as many frequencies as the bound asks for."""
    settings = []
    for name, n, arrays in sets:
        for delta in deltas:
            t = setup.fewest(functools.partial(bound, eps=eps, num_points=n), delta)
            numbers = {"eps": eps, "t": float(t), "n": float(n)}
            settings.append(
                Setting(
                    f"{name}, eps={eps:g}, delta={delta:g}, t={t}",
                    arrays,
                    numbers,
                    {"rows": t},
                )
            )
    return tuple(settings)


def fewer_frequencies(
    bound: setup.OfSetting, setting: Setting, data: Population | None
) -> Control:
    """Return the control of a bound for all pairs; the distances of a table may be too large for a half to show."""
    name, part = (
        ("half of the frequencies", 2)
        if data is None
        else ("one frequency", setting.shapes["rows"])
    )
    fewer = controls.changed((setting,), name, shapes={"part": part})
    return Control(
        name, Tail(trials.largest_error_of_part, bound), fewer, "wrong factor"
    )


def _theorem_4_1(inputs: setup.Inputs) -> Check:
    bound = bound_of(fourier.relative_distances, num_frequencies="t", num_points="n")
    tail = Tail(trials.largest_error, bound)
    settings = all_pairs_settings(
        fourier.relative_distances, inputs.point_sets, inputs.deltas, 0.25
    )

    def shape(setting: Setting) -> Bound:
        n, t = setting.numbers["n"], setting.numbers["t"]
        return Bound(
            math.sqrt(math.log(n) / t),
            1 - 1 / n,
            n >= 2,
            "chen2016, Theorem 4.1 (shape)",
        )

    return Check(
        printed=Form(
            Calibrated(trials.largest_error, shape, math.sqrt(6), math.sqrt(6)),
            settings,
        ),
        corrected=Form(tail, settings),
        controls=(
            fewer_frequencies(bound, settings[0], inputs.data),
            controls.part_of(0.78, tail, settings),
        ),
    )
