"""chen2016, Section 1.1: the two feature maps compared, and additive errors for n points and for a ball.

Constants that the section leaves in O(.) are proved in `docs/theory/chen2016.md`.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from jaxkern.bounds import Bound, fourier
from proofs_check import controls
from proofs_check.claim import (
    Calibrated,
    Check,
    Control,
    Form,
    Identity,
    Inequality,
    Setting,
    Tail,
)
from proofs_check.papers.chen2016 import laws, trials
from proofs_check.papers.chen2016.setup import DELTA, Inputs, PointSet, ball, fewest
from proofs_check.papers.shared import as_residual, at_most_one, bound_of, parametrized


def _shifted_features(inputs: Inputs) -> Check:
    residual = parametrized(Identity)(laws.shifted_mean)
    gamma = residual(drawn=controls.gamma_for_lengthscale)
    return Check(
        printed=Form(residual(factor=1 / math.sqrt(2)), inputs.pairs),
        corrected=Form(residual(), inputs.pairs),
        controls=(
            Control(
                "no random shift", residual(shifted=False), inputs.pairs, "wrong law"
            ),
            Control(
                "gamma for the lengthscale", gamma, inputs.pairs, "swapped constants"
            ),
        ),
    )


def _all_points(inputs: Inputs) -> Check:
    bound = bound_of(fourier.kernel_values, num_frequencies="t", num_points="n")

    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        return Bound(
            math.sqrt(math.log(s["n"] / s["delta"]) / s["t"]),
            1 - s["delta"],
            True,
            "chen2016, Section 1.1",
        )

    def of(sets: Sequence[PointSet]) -> tuple[Setting, ...]:
        settings = []
        for name, n, arrays in sets:
            for delta in inputs.deltas:
                t = math.ceil(2 / 0.3**2 * math.log(n * (n - 1) / delta) + 1e-9)
                numbers = {"eps": 0.3, "t": float(t), "n": float(n), "delta": delta}
                settings.append(
                    Setting(
                        f"{name}, delta={delta:g}, t={t}", arrays, numbers, {"rows": t}
                    )
                )
        return tuple(settings)

    settings = of(
        inputs.point_sets[-2:]
    )  # not the points that shrink, whose kernel values are all 1
    # Not on a table, whose rows may be so close that no number of frequencies is too small.
    few = controls.changed(
        of(Inputs().point_sets)[-1:],
        "a sixteenth of the frequencies",
        shapes={"part": 16},
    )
    return Check(
        printed=Form(Calibrated(trials.kernel_error, shape, 1.0, 2.0), settings),
        corrected=Form(Tail(trials.kernel_error, bound), settings),
        controls=(
            Control(
                "a sixteenth of the frequencies",
                Tail(trials.kernel_error, bound),
                few,
                "wrong factor",
            ),
        ),
    )


def _differences(dim: int, diameter: float) -> dict[str, jax.Array]:
    """Return directions over a half sphere (the axes and 200 more, but for a line) and 32 radii up to the diameter."""
    more = np.random.default_rng(4).standard_normal((200, dim))
    directions = np.eye(1) if dim == 1 else np.concatenate([np.eye(dim), more])
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    return ball(directions, diameter * np.linspace(1 / 32, 1, 32))


def _additive_ball(inputs: Inputs) -> Check:
    def shape(setting: Setting) -> Bound:
        s = setting.numbers
        value = math.sqrt(s["d"] * math.log(s["M"] / s["delta"]) / s["t"])
        return Bound(value, 1 - s["delta"], s["M"] >= 1, "chen2016, Section 1.1, shape")

    def one_pair(setting: Setting) -> Bound:
        return Bound(
            setting.numbers["eps"],
            1 - setting.numbers["delta"],
            True,
            "Hoeffding for one pair",
        )

    def over(dim: int, diameter: float, delta: float, t: int) -> Setting:
        numbers = {
            "d": float(dim),
            "M": diameter,
            "eps": 0.3,
            "t": float(t),
            "tau": math.log(2 / delta),
        }
        name = f"d={dim}, M={diameter:g}, eps=0.3, delta={delta:g}, t={t}"
        return Setting(
            name, _differences(dim, diameter), {**numbers, "delta": delta}, {"rows": t}
        )

    asked = tuple(
        over(1, size, delta, 100) for size in (1.0, 5.0) for delta in inputs.deltas
    )
    corrected = []
    for dim, diameter in ((1, 5.0), (2, 3.0)):
        for delta in inputs.deltas:
            options = {
                "eps": 0.3,
                "dim": dim,
                "diameter": diameter,
                "tau": math.log(2 / delta),
            }
            t = fewest(functools.partial(fourier.ball_additive, **options), delta)
            corrected.append(over(dim, diameter, delta, t))
    wide = (over(20, 6.0, DELTA, math.ceil(2 / 0.3**2 * math.log(2 / DELTA))),)
    single = Tail(trials.kernel_error_over_ball, one_pair)
    bound = bound_of(fourier.ball_additive, num_frequencies="t", dim="d", diameter="M")
    return Check(
        printed=Form(
            Calibrated(trials.kernel_error_over_ball, shape, 1.0, 17.0), asked
        ),
        corrected=Form(Tail(trials.kernel_error_over_ball, bound), tuple(corrected)),
        controls=(
            Control(
                "the frequencies of a single pair, in 20 dimensions",
                single,
                wide,
                "term left out",
            ),
        ),
    )


def _variance(inputs: Inputs) -> Check:
    def holds(distance: bool) -> Inequality:
        def both(key: jax.Array, setting: Setting) -> list[Any]:
            paired, shifted = laws.variances(key, setting, distance=distance)
            return [
                at_most_one(paired / shifted, "the variance of the map with a tilde")
            ]

        return Inequality(both)

    # A table may have no close rows.
    close = tuple(s for s in inputs.pairs if s.numbers["K"] > 0.5) or Inputs().pairs[:2]
    return Check(
        printed=Form(holds(distance=False), inputs.pairs),
        controls=(
            Control(
                "the squared distances of close points",
                holds(distance=True),
                close,
                "wrong operator",
            ),
        ),
    )


def _both_variances(inputs: Inputs) -> Check:
    def residual(closed: Callable[[float], tuple[float, float]]) -> Identity:
        def relative(key: jax.Array, setting: Setting) -> np.ndarray:
            K = setting.numbers["K"]
            variances = (
                np.asarray(laws.variances(key, setting, distance=True))
                / (2 - 2 * K) ** 2
            )
            return as_residual(variances / np.asarray(closed(K)) - 1)

        return Identity(relative)

    def both(K: float) -> tuple[float, float]:
        return (1 + K) ** 2, 0.5 + 0.75 * (1 + K) ** 2

    swapped = residual(lambda K: both(K)[::-1])
    return Check(
        corrected=Form(residual(both), inputs.pairs),
        controls=(
            Control(
                "the two maps exchanged", swapped, inputs.pairs, "swapped constants"
            ),
        ),
    )
