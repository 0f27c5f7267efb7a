"""ghashami2016, Section 3.1.1: the error of random features in all directions; Lemma 3.1, Theorems A, B and C."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
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
    all_points,
    badly_scaled,
    two_sided,
)
from proofs_check.papers.shared import (
    bound_of,
    lines,
    listed,
    op_norm,
    parametrized,
    rng_of,
)


def _bernstein() -> Check:
    @parametrized(Exact)
    def holds(setting: Setting, linear: float) -> tuple[float, float]:
        """Return the check with `linear` R t in the place of 2 R t, for diagonal matrices of centred coins."""
        d, n, q, x = (setting.numbers[name] for name in ("d", "n", "q", "t"))
        # |sum of d centred coins| >= t, in one of n independent setup.
        one = stats.binom(d, q)
        low, high = math.floor(d * q - x + 1e-9), math.ceil(d * q + x - 1e-9)
        tail = np.logaddexp(
            one.logsf(high - 1), one.logcdf(low) if low >= 0 else -math.inf
        )
        log_any = (
            math.log(-math.expm1(n * math.log1p(-math.exp(tail))))
            if tail > -30
            else math.log(n) + tail
        )
        variance, largest = d * q * (1 - q), max(q, 1 - q)
        return float(log_any), math.log(2 * n) - x**2 / (
            3 * variance + linear * largest * x
        )

    sums = ((400, 0.5, 40), (400, 0.5, 80), (1000, 0.001, 15), (1000, 0.01, 30))
    rows = [(n, *each) for n in (1, 16) for each in sums]
    settings = listed("n={n}, {d} coins of {q:g}, t={t:g}", "n d q t", rows)
    return Check(
        printed=Form(holds(2.0), settings),
        controls=(Control("without 2 R t", holds(0.0), settings, "term left out"),),
    )


def _lem3_1(inputs: Inputs) -> Check:
    def tail(as_printed: bool) -> Tail:
        names = {"num_features": "size", "num_points": "n"}
        return Tail(
            trials.spectral_error,
            bound_of(bounds.gram_spectral_shifted, **names, as_printed=as_printed),
        )

    corrected = inputs.features(SHIFTED, 2, 4 / 3, all_points)
    return Check(
        printed=Form(tail(as_printed=True), inputs.features(SHIFTED, 9, 8, all_points)),
        corrected=Form(tail(as_printed=False), corrected),
        controls=badly_scaled(tail(as_printed=False), corrected[:1], SHIFTED["size"]),
    )


def _lem3_1_proof() -> Check:
    @parametrized(Inequality)
    def steps(
        key: jax.Array, setting: Setting, energy: float
    ) -> list[tuple[float, Bound]]:
        """Return m |E_i| / n and, over n^2 / m^2, E E_i^2 against `energy` n G - G^2 and against 3."""
        X, G, rng = (
            *(
                np.asarray(setting.data[name], np.float64)
                for name in ("points", "gram")
            ),
            rng_of(key),
        )
        n = len(X)
        # |z|^2 z_b z_c has the mean n G_bc + sum_a K(2 x_a - x_b - x_c) / 2 for one feature, and K is Gaussian.
        more = sum(
            np.exp(-np.sum((2 * x - X[:, None] - X[None]) ** 2, axis=-1) / 2) for x in X
        )
        second = G / n + more / (2 * n**2) - G @ G / n**2
        drawn = np.cos(
            rng.standard_normal((100, X.shape[1])) @ X.T
            + rng.uniform(0, 2 * np.pi, (100, 1))
        )
        norms = [op_norm(G - 2 * np.outer(c, c)) / n for c in drawn]
        above = np.linalg.eigvalsh(second - energy * G / n + G @ G / n**2)[-1]
        return lines(
            [(above, 0.0), (op_norm(second), 3.0), (max(norms), 4.0)],
            "ghashami2016, proof of Lemma 3.1",
        )

    settings = tuple(
        cloud.setting("in the proof", {}, {}) for cloud in clouds.clouds(None)
    )
    return Check(
        printed=Form(steps(2.0), settings),
        controls=(Control("n for 2 n", steps(1.0), settings, "wrong factor"),),
    )


def _ours(
    trial: Trial, bound: Callable[[Setting], Bound], settings: tuple[Setting, ...]
) -> Check:
    tail = Tail(trial, bound)
    return Check(
        corrected=Form(tail, settings),
        controls=badly_scaled(tail, settings[:1], settings[0].shapes["size"]),
    )


def _gram_spectral(inputs: Inputs) -> Check:
    bound = bound_of(
        bounds.gram_spectral_paired, num_frequencies="size", num_points="n"
    )
    return _ours(
        trials.spectral_error, bound, inputs.features(PAIRED, 1 / 2, 2 / 3, all_points)
    )


def _gram_spectral_all_n(inputs: Inputs) -> Check:
    bound = bound_of(bounds.gram_spectral_paired_all_n, num_frequencies="size")
    settings = inputs.features(
        PAIRED, 1 / 2, 2 / 3, lambda delta, n: math.log(40 / delta)
    )
    return _ours(trials.spectral_error, bound, settings)


def _variance(inputs: Inputs) -> float:
    """Return v of Theorem A for shifted features, and twice that for paired ones: 1, or 2 where K is not Gaussian."""
    return (
        1.0
        if all(isinstance(cloud.kernel, kernels.Gaussian) for cloud in inputs.clouds)
        else 2.0
    )


def _gram_frobenius(inputs: Inputs) -> Check:
    bound = bound_of(
        bounds.gram_frobenius_shifted, num_features="size", variance=_variance(inputs)
    )
    return _ours(
        trials.frobenius_error, bound, inputs.features(SHIFTED, 0, 0, two_sided)
    )


def _gram_frobenius_paired(inputs: Inputs) -> Check:
    bound = bound_of(
        bounds.gram_frobenius_paired,
        num_frequencies="size",
        variance=_variance(inputs) / 2,
    )
    return _ours(
        trials.frobenius_error, bound, inputs.features(PAIRED, 0, 0, two_sided)
    )


def _gram_frobenius_bernstein(inputs: Inputs) -> Check:
    v = _variance(inputs)
    bound = bound_of(
        bounds.gram_frobenius_paired_bernstein, num_frequencies="size", variance=v / 2
    )
    return _ours(
        trials.frobenius_error,
        bound,
        inputs.features(PAIRED, v, 2 * math.sqrt(2) / 3, two_sided),
    )


def _second_moment(inputs: Inputs) -> Check:
    settings = []
    for cloud in inputs.clouds:
        for paired in (0, 1):
            double = float(jnp.mean(gram(cloud.kernel, 2 * cloud.data["points"])))
            square = float(jnp.mean(cloud.data["gram"] ** 2))
            target = ((1 + double) / 2 if paired else 1 + double / 2) - square
            if (
                target > 1e-3
            ):  # pairs reproduce the Gram matrix of copies of a point exactly
                numbers, shapes = (
                    {"scale": 1, "target": target / 8},
                    {"size": 8, "paired": paired},
                )
                settings.append(
                    cloud.setting("t=8" if paired else "m=8", numbers, shapes)
                )

    def target_of(setting: Setting) -> float:
        return setting.numbers["target"]

    def moment(setting: Setting) -> float:
        """G - Ghat is a mean of m matrices of mean square V n^2 and norm at most sqrt(5) n: 2 V^2 / m^2 + 5 V / m^3."""
        m, V = (
            setting.shapes["size"],
            setting.shapes["size"] * setting.numbers["target"],
        )
        return 2 * (V / m) ** 2 + 5 * V / m**3

    mean = Expectation(trials.frobenius_square, target_of, target_of, moment=moment)
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
