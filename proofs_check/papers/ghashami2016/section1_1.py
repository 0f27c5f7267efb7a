"""ghashami2016, Section 1.1: what it quotes of Frequent Directions, of Nystrom and of random features.

With Theorem H, which has the two bounds of Nystrom in one.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.bounds import Bound, streaming
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Expectation,
    Form,
    Inequality,
    Rate,
    Setting,
    Tail,
)
from proofs_check.papers.ghashami2016 import algorithm1, clouds, trials
from proofs_check.papers.ghashami2016.setup import Inputs, badly_scaled
from proofs_check.papers.shared import bound_of, grid, lines, parametrized


def _sketch_fact() -> Check:
    @parametrized(Inequality)
    def loses(
        setting: Setting, shrink_at: Callable[[int], int]
    ) -> list[tuple[float, Bound]]:
        """Return the check of |A'A - B'B|_2 <= eps |A|_F^2 for the sketch that shrinks at shrink_at(l)."""
        A, size = setting.data["rows"], setting.shapes["l"]
        B, _ = algorithm1.algorithm_1(A, size, shrink_at=shrink_at(size))
        energy = float(np.sum(A**2))
        right = streaming.frequent_directions(
            residual_energy=1.0, sketch_size=size, rank=0
        )
        return [(float(np.linalg.norm(A.T @ A - B.T @ B, 2)) / energy, right)]

    settings = tuple(
        Setting(f"{name}, l={size}, eps={2 / size:g}", {"rows": A}, shapes={"l": size})
        for size in (8, 16)
        for name, A in (
            ("orthonormal rows twice", algorithm1.pairs_of_rows(size)),
            ("decaying", algorithm1.decaying()),
        )
    )
    return Check(
        printed=Form(loses(lambda size: size // 2), settings),
        controls=(
            Control(
                "the largest one subtracted",
                loses(lambda size: 1),
                settings,
                "wrong operator",
            ),
        ),
    )


def _nystrom_at(
    cloud: clouds.Cloud, size: int, rank: int, spectral: bool, delta: float
) -> Setting:
    gram = cloud.data["gram"]
    tail = jnp.asarray(clouds.tails(cloud, rank)[0 if spectral else 1], gram.dtype)
    norm = "spectral" if spectral else "Frobenius"
    return Setting(
        f"{cloud.name}, n={cloud.num_points}, c={size}, k={rank}, {norm} norm, delta={delta:g}",
        {**cloud.data, "tail": tail},
        {
            "delta": delta,
            "tau": math.log(1 / delta),
            "from": float(cloud.num_points),
            "scale": 1.0,
        },
        {"size": size, "rank": rank, "spectral": int(spectral)},
    )


def _nystrom_settings(spectral: bool, delta: float, size: int) -> tuple[Setting, ...]:
    tried = (
        clouds.clusters(32, 32),
        clouds.clusters(60, 4),
        clouds.clouds(None, 64)[2],
    )
    return tuple(_nystrom_at(cloud, size, 2, spectral, delta) for cloud in tried)


def _first_half(statement: Tail, settings: Sequence[Setting]) -> Control:
    half = {"from": settings[0].numbers["from"] / 2}
    changed = controls.changed(settings[:1], "of the first half", numbers=half)
    return Control("landmarks from the first half", statement, changed, "wrong law")


def _nystrom_spectral(inputs: Inputs) -> Check:
    return _nystrom_fact(True, inputs.deltas)


def _nystrom_frobenius(inputs: Inputs) -> Check:
    return _nystrom_fact(False, inputs.deltas)


def _nystrom_fact(spectral: bool, deltas: Sequence[float]) -> Check:
    def shape(setting: Setting) -> Bound:
        delta, c, k = (
            setting.numbers["delta"],
            setting.shapes["size"],
            setting.shapes["rank"],
        )
        value = ((1 if spectral else k) * math.log(1 / delta) / c) ** power
        return Bound(
            value,
            1 - delta,
            k <= c and delta <= math.exp(-1),
            "ghashami2016, Section 1.1 (Nystrom)",
        )

    power, upper = (1 / 2, 4.0) if spectral else (1 / 4, 2.0)
    settings = tuple(
        setting
        for delta in deltas
        for setting in _nystrom_settings(spectral, delta, 30)
    )
    statement = Calibrated(trials.nystrom_excess, shape, 0.0, upper)
    name = "n times the error, of 8 landmarks that often miss a cluster"
    wrong = controls.changed(
        settings[1:2], "not divided by n", numbers={"scale": 64.0}, shapes={"size": 8}
    )
    return Check(
        printed=Form(statement, settings),
        controls=(Control(name, statement, wrong, "missing normalisation"),),
    )


def _nystrom_best_rank(inputs: Inputs) -> Check:
    bound = bound_of(streaming.nystrom_best_rank, num_landmarks="size")
    tail = Tail(trials.nystrom_excess, bound, lambda setting: 1.0)
    # A sample that has more points of the smaller cluster takes that for the first direction.
    cloud, size = clouds.clusters(36, 28), 150
    settings = tuple(
        _nystrom_at(cloud, size, 1, flag, delta)
        for delta in inputs.deltas
        for flag in (True, False)
    )
    return Check(
        corrected=Form(tail, settings),
        controls=(_first_half(tail, _nystrom_settings(True, inputs.deltas[0], size)),),
    )


def _nystrom_coherence(inputs: Inputs) -> Check:
    cloud, rank, eps, white = clouds.clusters(64, 64), 2, 0.5, 0.9
    coherence = clouds.coherence(cloud, rank)
    # White noise in the kernel, which keeps the eigenvectors: what landmarks miss is then of the size of the bound.
    gram = (1 - white) * cloud.data["gram"] + white * jnp.eye(cloud.num_points)
    noisy = {"gram": gram, "tail": (1 - white) * clouds.tails(cloud, rank)[0] + white}

    def at(delta: float, full: bool) -> Setting:
        size = math.ceil(2 * coherence * rank * math.log(rank / delta) / eps**2)
        setting = _nystrom_at(cloud, size, rank, True, delta)
        name = setting.name + (", full rank" if full else "")
        data = {**setting.data, **noisy}
        return Setting(
            name, data, setting.numbers, {"size": size, "rank": size if full else rank}
        )

    exact = {
        "eps": eps,
        "coherence": coherence,
        "rank": rank,
        "num_points": cloud.num_points,
    }
    tail = Tail(
        trials.nystrom_ratio,
        bound_of(streaming.nystrom_coherence, num_landmarks="size", **exact),
    )
    full = tuple(at(delta, True) for delta in inputs.deltas)
    return Check(
        printed=Form(tail, tuple(at(delta, False) for delta in inputs.deltas)),
        corrected=Form(tail, full),
        controls=(_first_half(tail, full),),
    )


def _features_mean() -> Check:
    def two_points(
        kernel: Any, r: float, K: float, scale: float = 1.0, label: str = ""
    ) -> Setting:
        """Return points at distance r with K(x, y) = K, away from the origin."""
        points = jnp.asarray(
            [[0.3, -0.2], [0.3 + 0.6 * r, -0.2 + 0.8 * r]], jnp.result_type(float)
        )
        name = f"two points at {r:g}, {type(kernel).__name__}{label}"
        data = {"kernel": kernel, "points": points}
        return Setting(name, data, {"scale": scale, "K": K}, {"size": 256})

    def moment(setting: Setting) -> float:
        """The variance is (1 + K(2 u) / 2 - K(u)^2) / m, at most 3 / (2 m)."""
        return 1.5 / setting.shapes["size"]

    mean = Expectation(
        trials.inner_product,
        lambda s: s.numbers["K"],
        lambda s: 1.0,
        0.01,
        moment=moment,
    )
    gaussian, near = kernels.Gaussian(1.0), math.exp(-1 / 2)
    laplacian = two_points(kernels.Laplacian(1.0), 1.0, math.exp(-0.6 - 0.8))
    settings = (
        two_points(gaussian, 1.0, near),
        two_points(gaussian, 3.0, math.exp(-9 / 2)),
        laplacian,
    )
    swapped = controls.changed(
        settings[:1], "gamma", data=lambda p: {**p, "kernel": kernels.Gaussian(0.5)}
    )
    return Check(
        printed=Form(
            mean, (two_points(gaussian, 1.0, near / (2 * math.pi), label=" density"),)
        ),
        corrected=Form(mean, settings),
        controls=(
            Control(
                "0.96 of the product",
                mean,
                (two_points(gaussian, 1.0, near, 0.96),),
                "wrong factor",
            ),
            Control("gamma for the lengthscale", mean, swapped, "swapped constants"),
        ),
    )


def _features_entries(inputs: Inputs) -> Check:
    size = 1024

    def shape(setting: Setting) -> Bound:
        n, delta = setting.numbers["n"], setting.numbers["delta"]
        dim = setting.data["points"].shape[1]
        value = math.sqrt(dim * math.log(n / delta) / size)
        return Bound(
            value,
            1 - delta,
            n >= 1 and delta <= 0.5,
            "ghashami2016, Section 1.1 (random features)",
        )

    def bound(setting: Setting) -> Bound:
        n, delta = setting.numbers["n"], setting.numbers["delta"]
        value = math.sqrt(8 * math.log(n * (n + 1) / delta) / size)
        return Bound(
            value,
            1 - delta,
            n >= 1,
            "ghashami2016, Section 1.1 (random features, n points)",
        )

    settings = tuple(
        cloud.setting(
            f"m={size}, delta={delta:g}",
            {"delta": delta, "scale": 1},
            {"size": size, "paired": 0},
        )
        for cloud in inputs.clouds
        for delta in inputs.deltas
    )
    return Check(
        printed=Form(Calibrated(trials.entry_error, shape, 0.0, 4.0), settings),
        corrected=Form(Tail(trials.entry_error, bound), settings),
        controls=badly_scaled(Tail(trials.entry_error, bound), settings[:1], size),
    )


def _rnca_mean() -> Check:
    def falls(exponent: float) -> Rate:
        """The error is |mean cos U_i| of m features: its mean square is 1 / (2 m)."""
        return Rate(
            trials.copies_error,
            "m",
            exponent,
            moment=lambda setting: 0.5 / setting.numbers["m"],
        )

    sizes = (16.0, 64.0, 256.0, 1024.0, 4096.0)
    settings = grid("copies of a point, m={m:g}", shapes="most", m=sizes, most=[4096])

    @parametrized(Inequality)
    def at_most(setting: Setting, square: float) -> list[tuple[float, Bound]]:
        """Return sqrt(m) times the mean, an integral of the exact tail."""
        m = setting.numbers["m"]
        levels = np.linspace(0, 6 / math.sqrt(m), 31)
        mean = float(
            np.trapezoid([trials.copies_tail(m, eps) for eps in levels], levels)
        )
        return lines(
            [(math.sqrt(m) * mean, math.sqrt(square))],
            "jaxkern, Theorem A of ghashami2016",
        )

    return Check(
        printed=Form(falls(-1.0), settings),
        corrected=Form(at_most(1.5), settings),
        controls=(
            Control("a sixth of the square", at_most(0.25), settings, "wrong factor"),
        ),
    )
