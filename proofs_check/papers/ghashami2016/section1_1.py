"""ghashami2016, Section 1.1: what it quotes of Frequent Directions, of Nystrom and of random features.

With Theorem H, which has the two bounds of Nystrom in one.
"""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxkern import kernels
from jaxkern.bounds import Bound, fourier, streaming
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
from proofs_check.papers.shared import (
    Grids,
    always,
    bound_of,
    check_of,
    op_norm,
    wrong,
)

Pairs = list[tuple[float, Bound]]


def _sketch_error(data: Any, l: int, shrink_at: int | None = None) -> Pairs:  # noqa: E741, the paper's letter
    """Compare |A'A - B'B|_2 with eps |A|_F^2, both over |A|_F^2."""
    A = data["rows"]
    B, _ = algorithm1.algorithm_1(A, l, shrink_at=shrink_at)
    right = streaming.frequent_directions(residual_energy=1.0, sketch_size=l, rank=0)
    return [(op_norm(A.T @ A - B.T @ B) / float(np.sum(A**2)), right)]


def frequent_directions() -> Check:
    streams = []
    for size in (8, 16):
        twice = algorithm1.pairs_of_rows(size)
        streams.append(algorithm1.stream("orthonormal rows twice", twice, size))
        streams.append(algorithm1.stream("decaying", algorithm1.decaying(), size))
    settings = [
        replace(setting, name=f"{setting.name}, eps={2 / setting.shapes['l']:g}")
        for setting in streams
    ]
    largest = wrong("the largest one subtracted", "wrong operator", shrink_at=1)
    return check_of(Inequality, settings, largest, printed=_sketch_error)


def _nystrom_at(
    cloud: clouds.Cloud, size: int, rank: int, spectral: bool, delta: float
) -> Setting:
    """Return a setting of Nystrom with `size` landmarks cut to a rank, in the spectral or the Frobenius norm."""
    norm = "spectral" if spectral else "Frobenius"
    sizes = f"n={cloud.num_points}, c={size}, k={rank}"
    numbers = {
        "delta": delta,
        "tau": math.log(1 / delta),
        "from": float(cloud.num_points),
        "scale": 1.0,
    }
    return Setting(
        f"{cloud.name}, {sizes}, {norm} norm, delta={delta:g}",
        cloud.with_tail(rank, spectral),
        numbers,
        {"size": size, "rank": rank, "spectral": int(spectral)},
    )


def _three_clouds(spectral: bool, delta: float, size: int) -> list[Setting]:
    tried = (
        clouds.clusters(32, 32),
        clouds.clusters(60, 4),
        clouds.clouds(None, 64)[2],
    )
    return [_nystrom_at(cloud, size, 2, spectral, delta) for cloud in tried]


def _first_half(statement: Tail, setting: Setting) -> Control:
    half = {"from": setting.numbers["from"] / 2}
    changed = controls.changed([setting], "of the first half", numbers=half)
    return Control("landmarks from the first half", statement, changed, "wrong law")


def _quoted(*, delta: float, size: float, rank: float, spectral: float) -> Bound:
    """Return (log(1 / delta) / c)^(1/2) or, in the Frobenius norm, (k log(1 / delta) / c)^(1/4)."""
    log = math.log(1 / delta)
    value = math.sqrt(log / size) if spectral else (rank * log / size) ** (1 / 4)
    valid = rank <= size and delta <= math.exp(-1)
    return Bound(value, 1 - delta, valid, "ghashami2016, Section 1.1 (Nystrom)")


def _cut_to_rank(inputs: Inputs, spectral: bool, upper: float) -> Check:
    settings = []
    for delta in inputs.deltas:
        settings += _three_clouds(spectral, delta, 30)
    statement = Calibrated(trials.nystrom_excess, bound_of(_quoted), 0.0, upper)
    name = "n times the error, of 8 landmarks that often miss a cluster"
    wrong = controls.changed(
        settings[1:2], "not divided by n", numbers={"scale": 64.0}, shapes={"size": 8}
    )
    return Check(
        printed=Form(statement, tuple(settings)),
        controls=(Control(name, statement, wrong, "missing normalisation"),),
    )


def nystrom_spectral(inputs: Inputs) -> Check:
    return _cut_to_rank(inputs, spectral=True, upper=4.0)


def nystrom_frobenius(inputs: Inputs) -> Check:
    return _cut_to_rank(inputs, spectral=False, upper=2.0)


def nystrom_best_rank(inputs: Inputs) -> Check:
    bound = bound_of(streaming.nystrom_best_rank, num_landmarks="size")
    tail = Tail(trials.nystrom_excess, bound, lambda setting: 1.0)
    # A sample that has more points of the smaller cluster takes that for the first direction.
    cloud = clouds.clusters(36, 28)
    size = 150
    settings = tuple(
        _nystrom_at(cloud, size, 1, spectral, delta)
        for delta in inputs.deltas
        for spectral in (True, False)
    )
    first = _three_clouds(True, inputs.deltas[0], size)[0]
    return Check(corrected=Form(tail, settings), controls=(_first_half(tail, first),))


def nystrom_coherence(inputs: Inputs) -> Check:
    cloud = clouds.clusters(64, 64)
    rank = 2
    exact = {
        "eps": 0.5,
        "coherence": clouds.coherence(cloud, rank),
        "rank": rank,
        "num_points": cloud.num_points,
    }
    # White noise in the kernel, which keeps the eigenvectors: what landmarks miss is then of the size of the bound.
    white = 0.9
    gram = (1 - white) * cloud.data["gram"] + white * jnp.eye(cloud.num_points)
    tail_of_G = (1 - white) * clouds.tails(cloud, rank)[0] + white
    data = {**cloud.data, "gram": gram, "tail": tail_of_G}
    settings = []
    full_rank: list[Setting] = []
    for delta in inputs.deltas:
        least = 2 * exact["coherence"] * rank * math.log(rank / delta)
        size = math.ceil(least / exact["eps"] ** 2)
        at_rank = _nystrom_at(cloud, size, rank, True, delta)
        shapes = {"size": size, "rank": rank}
        setting = replace(at_rank, data=data, shapes=shapes)
        settings.append(setting)
        full_rank += controls.changed([setting], "full rank", shapes={"rank": size})
    formula = partial(streaming.nystrom_coherence, **exact)
    bound = bound_of(formula, num_landmarks="size")
    tail = Tail(trials.nystrom_ratio, bound)
    return Check(
        printed=Form(tail, tuple(settings)),
        corrected=Form(tail, tuple(full_rank)),
        controls=(_first_half(tail, full_rank[0]),),
    )


def _two_points(
    kernel: Any, r: float, K: float, scale: float = 1.0, label: str = ""
) -> Setting:
    """Return points at distance r with K(x, y) = K, away from the origin."""
    second = [0.3 + 0.6 * r, -0.2 + 0.8 * r]
    points = jnp.asarray([[0.3, -0.2], second], jnp.result_type(float))
    name = f"two points at {r:g}, {type(kernel).__name__}{label}"
    data = {"kernel": kernel, "points": points}
    return Setting(name, data, {"scale": scale, "K": K}, {"size": 256})


def features_mean() -> Check:
    mean = Expectation(
        trials.inner_product,
        target=lambda setting: setting.numbers["K"],
        scale=lambda setting: 1.0,
        precision=0.01,
        # The variance is (1 + K(2 u) / 2 - K(u)^2) / m, at most 3 / (2 m).
        moment=lambda setting: 1.5 / setting.shapes["size"],
    )
    gaussian = kernels.Gaussian(1.0)
    near = math.exp(-1 / 2)
    laplacian = _two_points(kernels.Laplacian(1.0), 1.0, math.exp(-0.6 - 0.8))
    settings = (
        _two_points(gaussian, 1.0, near),
        _two_points(gaussian, 3.0, math.exp(-9 / 2)),
        laplacian,
    )
    density = _two_points(gaussian, 1.0, near / (2 * math.pi), label=" density")
    less = _two_points(gaussian, 1.0, near, 0.96)
    swapped = controls.changed(
        settings[:1], "gamma", data=lambda p: {**p, "kernel": kernels.Gaussian(0.5)}
    )
    return Check(
        printed=Form(mean, (density,)),
        corrected=Form(mean, settings),
        controls=(
            Control("0.96 of the product", mean, (less,), "wrong factor"),
            Control("gamma for the lengthscale", mean, swapped, "swapped constants"),
        ),
    )


def _all_entries(*, n: float, delta: float, size: float) -> Bound:
    """Return the error of all entries of a Gram matrix that is exceeded with probability delta at most."""
    eps = math.sqrt(8 * math.log(n * (n + 1) / delta) / size)
    return fourier.kernel_values_shifted(eps=eps, num_features=size, num_points=n)


def _entries_in_dimension(setting: Setting) -> Bound:
    """Return the root of d log(n / delta) / m."""
    n = setting.numbers["n"]
    delta = setting.numbers["delta"]
    dim = setting.data["points"].shape[1]
    value = math.sqrt(dim * math.log(n / delta) / setting.shapes["size"])
    source = "ghashami2016, Section 1.1 (random features)"
    return Bound(value, 1 - delta, n >= 1 and delta <= 0.5, source)


def features_entries(inputs: Inputs) -> Check:
    size = 1024
    shapes = {"size": size, "paired": 0}
    settings = []
    for cloud in inputs.clouds:
        for delta in inputs.deltas:
            numbers = {"delta": delta, "scale": 1}
            label = f"m={size}, delta={delta:g}"
            settings.append(cloud.setting(label, numbers, shapes))
    calibrated = Calibrated(trials.entry_error, _entries_in_dimension, 0.0, 4.0)
    tail = Tail(trials.entry_error, bound_of(_all_entries))
    return Check(
        printed=Form(calibrated, tuple(settings)),
        corrected=Form(tail, tuple(settings)),
        controls=badly_scaled(tail, settings[:1], size),
    )


def _mean_of_copies(m: float, square: float = 1.5) -> Pairs:
    """Compare sqrt(m) times the mean error, an integral of the exact tail, with the root of a mean square."""
    levels = np.linspace(0, 6 / math.sqrt(m), 31)
    chances = [trials.copies_tail(m, eps) for eps in levels]
    mean = float(np.trapezoid(chances, levels))
    right = always(math.sqrt(square), "jaxkern, Theorem A of ghashami2016")
    return [(math.sqrt(m) * mean, right)]


def rnca_mean(grids: Grids) -> Check:
    settings = grids["copies"]
    rate = Rate(
        trials.copies_error,
        "m",
        exponent=-1.0,
        # The error is |mean cos U_i| of m features: its mean square is 1 / (2 m).
        moment=lambda setting: 0.5 / setting.numbers["m"],
    )
    sixth = Inequality(partial(_mean_of_copies, square=0.25))
    return Check(
        printed=Form(rate, settings),
        corrected=Form(Inequality(_mean_of_copies), settings),
        controls=(Control("a sixth of the square", sixth, settings, "wrong factor"),),
    )
