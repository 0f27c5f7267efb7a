"""ghashami2016, how well random features reproduce a Gram matrix: Lemma 3.1, and what the paper does not have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax.numpy as jnp

from jaxkern import kernels
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from jaxkern.gram import gram
from proofs_check import controls
from proofs_check.claim import Check, Control, Expectation, Form, Setting, Statement, Tail, Trial
from proofs_check.papers.ghashami2016 import trials as t
from proofs_check.papers.ghashami2016.places import Scope

PAPER = "ghashami2016"
SHIFTED, PAIRED = {"size": 256, "paired": 0}, {"size": 128, "paired": 1}

_PAIRED_VARIANCE = (
    r"$v\ge\tfrac12+\tfrac12K(2u)-K(u)^2$ for all differences $u$: $v=\tfrac12$ for the Gaussian kernel, $1$ for "
    "every kernel."
)

Log = Callable[[float, int], float]
"""The logarithm that a bound has at delta and n."""


def _all_points(delta: float, n: int) -> float:
    return math.log(2 * n / delta)


def _two_sided(delta: float, n: int) -> float:
    return math.log(2 / delta)


def _places(
    clouds: Sequence[t.Cloud], deltas: Sequence[float], shapes: dict[str, int], p: float, q: float, log: Log
) -> tuple[Setting, ...]:
    """Return settings with the eps at which eps^2 size = (p + q eps) log(delta, n): the bound fails with delta.

    Theorem A, whose error depends on tau = log(1 / delta) and not on eps, takes p = q = 0.
    """
    size, settings = shapes["size"], []
    for cloud in clouds:
        for delta in deltas:
            L = log(delta, cloud.num_points)
            eps = (q * L + math.sqrt((q * L) ** 2 + 4 * size * p * L)) / (2 * size)
            label = f"{'t' if shapes['paired'] else 'm'}={size}, delta={delta:g}" + (f", eps={eps:.3g}" if eps else "")
            numbers = {"eps": eps, "tau": math.log(1 / delta), "scale": 1}
            settings.append(cloud.setting(label, numbers, shapes))
    return tuple(settings)


def _of(formula: Callable[..., Bound], size: str, *names: str, **options: Any) -> Callable[[Setting], Bound]:
    """Return the bound of a setting: its size under the name `size`, and numbers of the setting by name."""
    numbers = {"num_points": "n", "eps": "eps", "tau": "tau"}

    def bound(setting: Setting) -> Bound:
        words = {name: setting.numbers[numbers[name]] for name in names}
        return formula(**{size: setting.shapes["size"]}, **words, **options)

    return bound


def badly_scaled(statement: Statement, places: Sequence[Setting], size: float) -> tuple[Control, ...]:
    """Return controls with sqrt(1 / m) for sqrt(2 / m), that is with half of Z Z', and without 1 / sqrt(m), m = `size`.

    The trial multiplies Z Z' by `numbers["scale"]`.
    """
    halved = controls.changed(places, "halved", numbers={"scale": 0.5})
    unscaled = controls.changed(places, "not divided", numbers={"scale": size})
    return (
        Control("features without the root of two", statement, halved, "wrong factor"),
        Control("features without 1/sqrt(m)", statement, unscaled, "missing normalisation"),
    )


def lem3_1(scope: Scope) -> Check:
    """Return Lemma 3.1."""
    printed = _places(scope.clouds, scope.deltas, SHIFTED, 9, 8, _all_points)
    corrected = _places(scope.clouds, scope.deltas, SHIFTED, 2, 4 / 3, _all_points)
    names = ("num_features", "eps", "num_points")
    bound = _of(bounds.gram_spectral_shifted, *names)
    return Check(
        printed=Form(Tail(t.spectral_error, _of(bounds.gram_spectral_shifted, *names, as_printed=True)), printed),
        corrected=Form(Tail(t.spectral_error, bound), corrected),
        controls=badly_scaled(Tail(t.spectral_error, bound), corrected[:1], SHIFTED["size"]),
    )


def _variance(clouds: Sequence[t.Cloud]) -> float:
    """Return v of Theorem A for shifted features, and twice that for paired ones: 1, or 2 where K is not Gaussian."""
    return 1.0 if all(isinstance(cloud.kernel, kernels.Gaussian) for cloud in clouds) else 2.0


def _own_tail(trial: Trial, bound: Callable[[Setting], Bound], places: tuple[Setting, ...]) -> Check:
    return Check(
        corrected=Form(Tail(trial, bound), places),
        controls=badly_scaled(Tail(trial, bound), places[:1], places[0].shapes["size"]),
    )


def _gram_spectral(scope: Scope) -> Check:
    bound = _of(bounds.gram_spectral_paired, "num_frequencies", "eps", "num_points")
    return _own_tail(t.spectral_error, bound, _places(scope.clouds, scope.deltas, PAIRED, 1 / 2, 2 / 3, _all_points))


def _gram_spectral_all_n(scope: Scope) -> Check:
    bound = _of(bounds.gram_spectral_paired_all_n, "num_frequencies", "eps")
    places = _places(scope.clouds, scope.deltas, PAIRED, 1 / 2, 2 / 3, lambda delta, n: math.log(40 / delta))
    return _own_tail(t.spectral_error, bound, places)


def _gram_frobenius(scope: Scope) -> Check:
    bound = _of(bounds.gram_frobenius_shifted, "num_features", "tau", variance=_variance(scope.clouds))
    return _own_tail(t.frobenius_error, bound, _places(scope.clouds, scope.deltas, SHIFTED, 0, 0, _two_sided))


def _gram_frobenius_paired(scope: Scope) -> Check:
    bound = _of(bounds.gram_frobenius_paired, "num_frequencies", "tau", variance=_variance(scope.clouds) / 2)
    return _own_tail(t.frobenius_error, bound, _places(scope.clouds, scope.deltas, PAIRED, 0, 0, _two_sided))


def _gram_frobenius_bernstein(scope: Scope) -> Check:
    v = _variance(scope.clouds)
    bound = _of(bounds.gram_frobenius_paired_bernstein, "num_frequencies", "eps", variance=v / 2)
    places = _places(scope.clouds, scope.deltas, PAIRED, v, 2 * math.sqrt(2) / 3, _two_sided)
    return _own_tail(t.frobenius_error, bound, places)


def _quadratic_form_paired(scope: Scope) -> Check:
    bound = _of(bounds.quadratic_form_paired, "num_frequencies", "eps")
    return _own_tail(t.form_error, bound, _places(scope.clouds, scope.deltas, PAIRED, 1 / 2, 0, _two_sided))


def _second_moment(scope: Scope) -> Check:
    places = []
    for cloud in scope.clouds:
        for paired in (0, 1):
            double = float(jnp.mean(gram(cloud.kernel, 2 * cloud.population["points"])))
            square = float(jnp.mean(cloud.population["gram"] ** 2))
            target = ((1 + double) / 2 if paired else 1 + double / 2) - square
            if target > 1e-3:  # pairs reproduce the Gram matrix of copies of a point exactly
                numbers, shapes = {"scale": 1, "target": target / 8}, {"size": 8, "paired": paired}
                places.append(cloud.setting("t=8" if paired else "m=8", numbers, shapes))

    def target_of(setting: Setting) -> float:
        return setting.numbers["target"]

    statement = Expectation(t.frobenius_square, target_of, target_of)
    swapped = controls.changed(
        places[-1:], "gamma", population=lambda p: {**p, "kernel": controls.gamma_for_lengthscale(p["kernel"])}
    )
    return Check(
        corrected=Form(statement, tuple(places)),
        controls=(
            *badly_scaled(statement, places[:1], 8),
            Control("one feature repeated 8 times", statement, controls.one_draw(places[:1], "size"), "reused key"),
            Control("gamma for the lengthscale", statement, swapped, "swapped constants"),
        ),
    )
