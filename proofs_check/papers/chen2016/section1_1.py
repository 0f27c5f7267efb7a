"""chen2016, Section 1.1: the two feature maps compared, and additive errors for n points and for a ball.

Constants that the section leaves in O(.) are proved in `docs/theory/chen2016.md`.
"""

from functools import partial
from math import ceil, log, sqrt
from typing import Any

import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import norm
from numpy.random import default_rng

from jaxkern.bounds import Bound, fourier
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
from proofs_check.controls import changed, gamma_for_lengthscale
from proofs_check.papers.chen2016 import cosines
from proofs_check.papers.chen2016.cosines import shifted_mean
from proofs_check.papers.chen2016.setup import (
    DELTA,
    Inputs,
    PointSet,
    Sides,
    all_at_most_one,
    ball,
    fewest,
    sized,
)
from proofs_check.papers.chen2016.trials import kernel_error, kernel_error_over_ball
from proofs_check.papers.shared import (
    as_residual,
    bound_of,
    check_of,
    wrong,
)

EPS = 0.3


def sec1_1(inputs: Inputs) -> Check:
    return check_of(
        Identity,
        inputs.pairs,
        wrong("no random shift", "wrong law", shifted=False),
        wrong(
            "gamma for the lengthscale",
            "swapped constants",
            drawn=gamma_for_lengthscale,
        ),
        printed=partial(shifted_mean, factor=1 / sqrt(2)),
        corrected=shifted_mean,
    )


def _points_shape(*, num_points: float, delta: float, num_frequencies: float) -> Bound:
    value = sqrt(log(num_points / delta) / num_frequencies)
    return Bound(value, 1 - delta, True, "chen2016, Section 1.1")


def _at_points(points: PointSet, delta: float) -> Setting:
    name, n, arrays = points
    t = ceil(2 / EPS**2 * log(n * (n - 1) / delta) + 1e-9)
    label = f"{name}, delta={delta:g}, t={t}"
    return sized(label, arrays, t, eps=EPS, num_points=n, delta=delta)


def sec1_1_points(inputs: Inputs) -> Check:
    # Not the points that shrink, whose kernel values are all 1.
    sets = inputs.point_sets[-2:]
    settings = tuple(_at_points(X, delta) for X in sets for delta in inputs.deltas)
    # Not on a table, whose rows may be so close that no number of frequencies is too small.
    last = _at_points(Inputs().point_sets[-1], inputs.deltas[-1])
    name = "a sixteenth of the frequencies"
    few = changed([last], name, shapes={"part": 16})
    shape = Calibrated(kernel_error, bound_of(_points_shape), 1.0, 2.0)
    bounded = Tail(kernel_error, bound_of(fourier.kernel_values))
    return Check(
        printed=Form(shape, settings),
        corrected=Form(bounded, settings),
        controls=(Control(name, bounded, few, "wrong factor"),),
    )


def _differences(dim: int, diameter: float) -> dict[str, Array]:
    """Return directions over a half sphere (the axes and 200 more, but for a line) and 32 radii up to the diameter."""
    directions = np.eye(dim)
    if dim > 1:
        more = default_rng(4).standard_normal((200, dim))
        directions = np.concatenate([directions, more])
    directions /= norm(directions, axis=1, keepdims=True)
    return ball(directions, diameter * np.linspace(1 / 32, 1, 32))


def _over_ball(dim: int, diameter: float, delta: float, t: int) -> Setting:
    name = f"d={dim}, M={diameter:g}, eps={EPS:g}, delta={delta:g}, t={t}"
    data = _differences(dim, diameter)
    numbers = {"dim": dim, "diameter": diameter, "eps": EPS, "delta": delta}
    tau = log(2 / delta)
    return sized(name, data, t, tau=tau, **numbers)


def _ball_shape(
    *, dim: float, diameter: float, delta: float, num_frequencies: float
) -> Bound:
    value = sqrt(dim * log(diameter / delta) / num_frequencies)
    return Bound(value, 1 - delta, diameter >= 1, "chen2016, Section 1.1, shape")


def _of_one_pair(*, eps: float, delta: float) -> Bound:
    return Bound(eps, 1 - delta, True, "Hoeffding for one pair")


def sec1_1_ball(inputs: Inputs) -> Check:
    few = []
    for diameter in (1.0, 5.0):
        few += [_over_ball(1, diameter, delta, 100) for delta in inputs.deltas]
    corrected = []
    for dim, diameter in ((1, 5.0), (2, 3.0)):
        for delta in inputs.deltas:
            bound = partial(fourier.ball_additive, dim=dim, diameter=diameter)
            t = fewest(bound, delta, eps=EPS, tau=log(2 / delta))
            corrected.append(_over_ball(dim, diameter, delta, t))
    single = ceil(2 / EPS**2 * log(2 / DELTA))
    wide = (_over_ball(20, 6.0, DELTA, single),)
    trial = kernel_error_over_ball
    shape = Calibrated(trial, bound_of(_ball_shape), 1.0, 17.0)
    of_pair = Tail(trial, bound_of(_of_one_pair))
    return Check(
        printed=Form(shape, tuple(few)),
        corrected=Form(Tail(trial, bound_of(fourier.ball_additive)), tuple(corrected)),
        controls=(
            Control(
                "the frequencies of a single pair, in 20 dimensions",
                of_pair,
                wide,
                "term left out",
            ),
        ),
    )


def _paired_over_shifted(key: Array, data: Any, *, distance: bool = False) -> Sides:
    paired, shifted = cosines.variances(key, data, distance=distance)
    return all_at_most_one([paired / shifted], "the variance of the map with a tilde")


def sec1_1_variance(inputs: Inputs) -> Check:
    # A table may have no close rows.
    close = [s for s in inputs.pairs if s.numbers["K"] > 0.5] or Inputs().pairs[:2]
    return check_of(
        Inequality,
        inputs.pairs,
        wrong(
            "the squared distances of close points",
            "wrong operator",
            settings=close,
            distance=True,
        ),
        printed=_paired_over_shifted,
    )


def _closed_variances(
    key: Array, data: Any, K: float, *, swapped: bool = False
) -> ndarray:
    """Return the errors of the closed forms of both variances of Dhat^2 / D^2."""
    variances = np.array(cosines.variances(key, data, distance=True))
    closed = np.array([(1 + K) ** 2, 0.5 + 0.75 * (1 + K) ** 2])
    if swapped:
        closed = closed[::-1]
    return as_residual(variances / (2 - 2 * K) ** 2 / closed - 1)


def feature_variances(inputs: Inputs) -> Check:
    return check_of(
        Identity,
        inputs.pairs,
        wrong("the two maps exchanged", "swapped constants", swapped=True),
        corrected=_closed_variances,
    )
