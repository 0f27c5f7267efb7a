"""ghashami2016, Section 3.1.1: the error of random features in all directions; Lemma 3.1, Theorems A, B and C."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy import stats

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import (
    Check,
    Control,
    Exact,
    Expectation,
    Form,
    Inequality,
    Setting,
    Tail,
    Trial,
)
from proofs_check.papers.ghashami2016 import clouds, trials
from proofs_check.papers.ghashami2016.setup import (
    PAIRED,
    SHIFTED,
    Inputs,
    OfSetting,
    badly_scaled,
)
from proofs_check.papers.shared import (
    Exceeds,
    Grids,
    always,
    bound_of,
    check_of,
    op_norm,
    rng_of,
    wrong,
)


def matrix_bernstein(*, n: Any, d: Any, q: Any, t: Any, linear: float = 2.0) -> Bound:
    """Return 2 n exp(-t^2 / (3 sigma^2 + 2 R t)) for n diagonal entries, sums of d centred coins with mean q."""
    variance = d * q * (1 - q)
    largest = max(q, 1 - q)
    failure = 2 * n * np.exp(-(t**2) / (3 * variance + linear * largest * t))
    source = "ghashami2016, Section 3.1.1 (matrix Bernstein)"
    return Bound(t, 1 - failure, t >= 0, source, exponent=-np.log(failure))


def coins_beyond(d: float, q: float, t: float) -> tuple[int, int]:
    """Return the numbers of d coins, at most and at least, that are off their mean d q by t.

    Off by 1e-9 less counts, too: q is rounded, and d q is to be a whole number.
    """
    return math.floor(d * q - t + 1e-9), math.ceil(d * q + t - 1e-9)


def _coins_tail(t: float, n: float, d: float, q: float) -> float:
    """Return log P(|sum of d centred coins| >= t in one of n independent entries)."""
    low, high = coins_beyond(d, q, t)
    coins = stats.binom(d, q)
    one_entry = np.logaddexp(coins.logsf(high - 1), coins.logcdf(low))
    return math.log(-math.expm1(n * math.log1p(-math.exp(one_entry))))


def bernstein(grids: Grids) -> Check:
    exceeds = Exceeds(_coins_tail, matrix_bernstein)
    shorter = Exceeds(_coins_tail, partial(matrix_bernstein, linear=0.0))
    variance_alone = wrong("without 2 R t", "term left out", shorter)
    return check_of(Exact, grids["coins"], variance_alone, printed=exceeds)


def _in_all_directions(as_printed: bool) -> OfSetting:
    return bound_of(
        bounds.gram_spectral_shifted,
        num_features="size",
        num_points="n",
        as_printed=as_printed,
    )


def lem3_1(inputs: Inputs) -> Check:
    printed = _in_all_directions(as_printed=True)
    corrected = _certified(
        trials.spectral_error, _in_all_directions(as_printed=False), inputs, SHIFTED
    )
    tail = Tail(trials.spectral_error, printed)
    form = Form(tail, inputs.features(SHIFTED, printed))
    return replace(corrected, printed=form)


def _certified(
    trial: Trial,
    bound: OfSetting,
    inputs: Inputs,
    shapes: dict[str, int],
    has_eps: bool = True,
) -> Check:
    """Return the check of a bound, where it fails with probability delta if its error is eps."""
    tail = Tail(trial, bound)
    settings = inputs.features(shapes, bound if has_eps else None)
    return Check(
        corrected=Form(tail, settings),
        controls=badly_scaled(tail, settings[:1], shapes["size"]),
    )


def _moments(key: Array, data: Any, energy: float = 2.0) -> list[tuple[float, Bound]]:
    """Return m |E_i| / n and, over n^2 / m^2, E E_i^2 against `energy` n G - G^2 and against 3."""
    X = np.asarray(data["points"], np.float64)
    G = np.asarray(data["gram"], np.float64)
    rng = rng_of(key)
    n, dim = X.shape
    # |z|^2 z_b z_c has the mean n G_bc + sum_a K(2 x_a - x_b - x_c) / 2 for one feature, and K is Gaussian.
    offsets = 2 * X[:, None, None] - X[:, None] - X
    more = np.sum(np.exp(-np.sum(offsets**2, axis=-1) / 2), axis=0)
    squared = G @ G / n**2
    second = G / n + more / (2 * n**2) - squared
    projections = rng.standard_normal((100, dim)) @ X.T
    cosines = np.cos(projections + rng.uniform(0, 2 * np.pi, (100, 1)))
    norms = [op_norm(G - 2 * np.outer(c, c)) / n for c in cosines]
    above = np.linalg.eigvalsh(second - energy * G / n + squared)[-1]
    source = "ghashami2016, proof of Lemma 3.1"
    return [
        (float(above), always(0.0, source)),
        (op_norm(second), always(3.0, source)),
        (max(norms), always(4.0, source)),
    ]


def lem3_1_proof() -> Check:
    settings = [cloud.setting("in the proof") for cloud in clouds.clouds(None)]
    half = wrong("n for 2 n", "wrong factor", energy=1.0)
    return check_of(Inequality, settings, half, printed=_moments)


def gram_spectral(inputs: Inputs) -> Check:
    bound = bound_of(
        bounds.gram_spectral_paired, num_frequencies="size", num_points="n"
    )
    return _certified(trials.spectral_error, bound, inputs, PAIRED)


def gram_spectral_all_n(inputs: Inputs) -> Check:
    bound = bound_of(bounds.gram_spectral_paired_all_n, num_frequencies="size")
    return _certified(trials.spectral_error, bound, inputs, PAIRED)


def _variance(inputs: Inputs) -> float:
    """Return v of Theorem A for shifted features, and twice that for paired ones: 1, or 2 if K is not Gaussian."""
    gaussian = all(isinstance(c.kernel, kernels.Gaussian) for c in inputs.clouds)
    return 1.0 if gaussian else 2.0


def gram_frobenius(inputs: Inputs) -> Check:
    bound = bound_of(
        bounds.gram_frobenius_shifted, num_features="size", variance=_variance(inputs)
    )
    return _certified(trials.frobenius_error, bound, inputs, SHIFTED, has_eps=False)


def gram_frobenius_paired(inputs: Inputs) -> Check:
    formula = partial(bounds.gram_frobenius_paired, variance=_variance(inputs) / 2)
    bound = bound_of(formula, num_frequencies="size")
    return _certified(trials.frobenius_error, bound, inputs, PAIRED, has_eps=False)


def gram_frobenius_bernstein(inputs: Inputs) -> Check:
    variance = _variance(inputs) / 2
    formula = partial(bounds.gram_frobenius_paired_bernstein, variance=variance)
    bound = bound_of(formula, num_frequencies="size")
    return _certified(trials.frobenius_error, bound, inputs, PAIRED)


def _mean_square(setting: Setting) -> float:
    return setting.numbers["target"]


def _variance_of_square(setting: Setting) -> float:
    """G - Ghat is a mean of m matrices of mean square V n^2 and norm at most sqrt(5) n: 2 V^2 / m^2 + 5 V / m^3."""
    mean = setting.numbers["target"]
    return 2 * mean**2 + 5 * mean / setting.shapes["size"] ** 2


def gram_frobenius_identity(inputs: Inputs) -> Check:
    settings = []
    for cloud in inputs.clouds:
        doubled = float(jnp.mean(gram(cloud.kernel, 2 * cloud.data["points"])))
        square = float(jnp.mean(cloud.data["gram"] ** 2))
        for paired in (0, 1):
            target = ((1 + doubled) / 2 if paired else 1 + doubled / 2) - square
            # Pairs reproduce the Gram matrix of copies of a point exactly.
            if target > 1e-3:
                numbers = {"scale": 1, "target": target / 8}
                shapes = {"size": 8, "paired": paired}
                label = "t=8" if paired else "m=8"
                settings.append(cloud.setting(label, numbers, shapes))
    mean = Expectation(
        trials.frobenius_square, _mean_square, _mean_square, moment=_variance_of_square
    )
    repeated = controls.one_draw(settings[:1], "size")
    swapped = controls.changed(
        settings[-1:],
        "gamma",
        data=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])},
    )
    return Check(
        corrected=Form(mean, tuple(settings)),
        controls=(
            *badly_scaled(mean, settings[:1], 8),
            Control("one feature repeated 8 times", mean, repeated, "reused key"),
            Control("gamma for the lengthscale", mean, swapped, "swapped constants"),
        ),
    )
