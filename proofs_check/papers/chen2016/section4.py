"""chen2016, Section 4: one pair of near points, and all pairs of n points.

`docs/theory/chen2016.md` derives every correction.
"""

from collections.abc import Callable, Sequence
from functools import partial
from math import ceil, inf, log, log1p, sqrt

import numpy as np
from numpy import ndarray

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
from proofs_check.controls import changed
from proofs_check.papers.chen2016 import cosines
from proofs_check.papers.chen2016.cosines import log_mgf, nodes, versine
from proofs_check.papers.chen2016.setup import (
    Formula,
    Inputs,
    Logs,
    PointSet,
    Sides,
    below,
    distances_of,
    exceeds_in_floats,
    fewest,
    limit_tail,
    mean_tail,
    pair_settings,
    relative_tail,
    sized,
    strongest,
    times,
    tiny,
)
from proofs_check.papers.chen2016.trials import largest_error, largest_error_of_part
from proofs_check.papers.populations import Population
from proofs_check.papers.shared import (
    LOG2,
    Exceeds,
    Grids,
    always,
    as_residual,
    bound_of,
    check_of,
    exceeds,
    lines,
    share_of,
    wrong,
)


def _generating(distance: float, bound: Formula = fourier.log_mgf) -> Sides:
    """Return the log-mgf of X - E X over its bound, for slopes s with 2 s mu from -50 to .9."""
    slopes = np.array([-50.0, -3.0, -0.3, 0.1, 0.5, 0.9]) / (2 * cosines.mean(distance))
    return _over(slopes.tolist(), distance, bound)


def _over(slopes: Sequence[float], distance: float, bound: Formula) -> Sides:
    return [below(log_mgf(s, distance), bound(s=s, distance=distance)) for s in slopes]


def _generating_as_printed(distance: float) -> Sides:
    slopes = [y / distance**2 for y in (0.05, 0.2, 0.4, 0.499)]
    return _over(slopes, distance, partial(fourier.log_mgf, as_printed=True))


def _variance_only(*, s: float, distance: float) -> Bound:
    return always((s * cosines.mean(distance)) ** 2, "s^2 mu^2")


def lem4_1(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["both"],
        wrong(
            "the variance of chi-square alone", "term left out", bound=_variance_only
        ),
        wrong(
            "a hundredth less", "wrong factor", bound=share_of(0.99, fourier.log_mgf)
        ),
        printed=_generating_as_printed,
        printed_settings=grids["both"][:3],
        corrected=_generating,
    )


def _elementary(low: float = 0.0, order: int = 2) -> Sides:
    """Return the sides of exp(-x) <= 1 - x + x^2 / 2, 1 - z^2 / 2 <= cos z, and y - y^2 / 2 <= log(1 + y)."""
    x = np.linspace(low, 5, 201)
    y = np.linspace(0, 0.5, 51)
    z = np.linspace(-9, 9, 301)
    series = 1 - x + (x**2 / 2 if order == 2 else 0)
    scale = np.maximum(series, 1)
    left = [np.exp(-x) / scale, np.maximum(1 - z**2 / 2, -50), y - y**2 / 2]
    right = [series / scale, np.maximum(np.cos(z), -50), np.log1p(y)]
    pairs = zip(np.concatenate(left), np.concatenate(right), strict=True)
    return lines(pairs, "chen2016, proof of Lemma 4.1")


def lem4_1_taylor() -> Check:
    settings = (Setting("grids of numbers"),)
    return check_of(
        Inequality,
        settings,
        wrong("without x^2 / 2", "term left out", order=1),
        controls.part_of(0.99, Inequality(_elementary), settings),
        printed=partial(_elementary, low=-5.0),
        corrected=_elementary,
    )


def _with_quartic(
    r: float,
    sign: int = -1,
    factor: float = 0.5,
    shares: Sequence[float] = (0.1, 0.3, 0.499),
) -> Sides:
    """Return the sides of the proof's bound of the log-mgf at s r^2 = y, with factor log(1 + sign y)."""
    pairs = []
    for y in shares:
        right = y * r**2 / 8 - y / 2 - log1p(sign * y) * factor
        pairs.append((log_mgf(y / r**2, r), right))
    return lines(pairs, "chen2016, proof of Lemma 4.1")


def lem4_1_proof(grids: Grids) -> Check:
    half = partial(_with_quartic, factor=0.25, shares=(0.4,))
    return check_of(
        Inequality,
        grids["both"],
        wrong("half of the logarithm", "wrong factor", half, settings=grids["near"]),
        printed=partial(_with_quartic, sign=1),
        corrected=_with_quartic,
    )


OF_UNIT_MEAN = partial(fourier.sub_exponential, mean=1.0)


def _smaller_constants(
    *, eps: float, p: float, q: float, num_frequencies: float
) -> Bound:
    return OF_UNIT_MEAN(
        eps=eps, p=0.99 * p, q=0.99 * q, num_frequencies=num_frequencies
    )


def _at_constants(t: float, eps: float, p: float, q: float) -> Setting:
    name = f"t={t:g}, eps={eps:.4g}, p={p:.4g}, q={q:g}"
    return Setting(name, numbers={"num_frequencies": t, "eps": eps, "p": p, "q": q})


def eq5() -> Check:
    one_sided = [_at_constants(t, 0.5, 2.0, 0.01) for t in (400.0, 1000.0)]
    two_sided = []
    for q in (8.0, 200.0):
        # Of chi2_1 - 1 the log-mgf is -log(1 - 2 s) / 2 - s, which over s^2 increases in s: p by its
        # value at s = 1 / q.
        p = 2 * q**2 * (-log1p(-2 / q) / 2 - 1 / q)
        for eps in (p / q / 2, p / q, 1.1 * p / q):
            # As many as make it e^-600. At eps = p / q both exponents are equal, and that of chi-square nearly.
            t = ceil(600 / min(eps**2 / (2 * p), eps / (2 * q)))
            two_sided.append(_at_constants(t, eps, p, q))
    return check_of(
        exceeds(mean_tail),
        two_sided,
        wrong("a hundredth less of p and of q", "wrong factor", _smaller_constants),
        printed=OF_UNIT_MEAN,
        printed_settings=one_sided,
        corrected=OF_UNIT_MEAN,
    )


NEAR = fourier.near_distance
PRINTED_NEAR = partial(NEAR, as_printed=True)


def lem4_2(inputs: Inputs) -> Check:
    errors = (0.1, 0.3)
    r = (1e-3, 0.3, 1.0)
    near = inputs.distances(r, 1e-6, 1.0)
    distances = inputs.distances(r, 1e-6, 12.0)
    nearest = pair_settings(NEAR, r[:2], errors, inputs.deltas)
    return check_of(
        exceeds(relative_tail),
        pair_settings(NEAR, distances, errors, inputs.deltas),
        wrong(
            "half of the frequencies", "wrong factor", times(2, NEAR), settings=nearest
        ),
        printed=PRINTED_NEAR,
        printed_settings=pair_settings(PRINTED_NEAR, near, errors, inputs.deltas),
        corrected=NEAR,
    )


PRINTED_LIMIT = partial(PRINTED_NEAR, distance=1e-4)
NEAR_LIMIT = partial(NEAR, distance=1e-4)
LIMITS = strongest(
    NEAR_LIMIT,
    partial(fourier.relative_distances, num_points=2),
    partial(fourier.relative_distances_closed_form, num_points=2),
)
"""Of two points the theorem on n points says the same, and its closed form nearly so for small eps."""


def lem4_2_rare(inputs: Inputs) -> Check:
    errors = (0.001, 0.1, 0.5)
    deep = tiny(NEAR_LIMIT, errors, (600.0,))
    return check_of(
        exceeds_in_floats(limit_tail),
        (*tiny(NEAR_LIMIT, errors, inputs.logs), *deep),
        wrong(
            "a hundredth more frequencies than there are",
            "wrong factor",
            times(1.01, LIMITS),
            settings=deep,
        ),
        printed=PRINTED_LIMIT,
        printed_settings=tiny(PRINTED_LIMIT, errors, inputs.logs),
        corrected=LIMITS,
    )


def _mean_by_nodes(r: float, factor: float = 0.5) -> ndarray:
    w, weights = nodes()
    squared = float(distances_of(np.array([r]))[0]) ** 2
    mean = weights @ versine(r * w)
    return as_residual([mean / (factor * squared) - 1])


def lem4_2_mean(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["both"],
        wrong("a quarter", "wrong factor", factor=0.25),
        printed=partial(_mean_by_nodes, factor=1.0),
        corrected=_mean_by_nodes,
    )


def _by_two_exponents(
    eps: float, num_frequencies: float, quarter: float = 1 / 8
) -> Logs:
    """Return the log-probability that chi2_t / t is off by eps, and what the printed exponents claim.

    E X / |Delta|^2 is 1/2 in the limit.
    """
    exponent = num_frequencies * min(eps**2 / 4, eps * quarter)
    return mean_tail(eps, num_frequencies), LOG2 - exponent


def lem4_2_proof(grids: Grids) -> Check:
    settings = grids["both"]
    squares = Exact(partial(_by_two_exponents, quarter=inf))
    corrected = Exact(Exceeds(mean_tail, fourier.chi_square_mean))
    return Check(
        printed=Form(Exact(_by_two_exponents), settings),
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


def at_points(points: PointSet, eps: float, delta: float, t: int) -> Setting:
    """Return the setting of a set of points with t frequencies."""
    name, n, arrays = points
    label = f"{name}, eps={eps:g}, delta={delta:g}, t={t}"
    return sized(label, arrays, t, eps=eps, num_points=n)


def all_pairs_settings(
    bound: Formula, sets: Sequence[PointSet], deltas: tuple[float, ...], eps: float
) -> tuple[Setting, ...]:
    """Return one setting for every set of points and delta, with as many frequencies as the bound asks for."""
    settings = []
    for points in sets:
        for delta in deltas:
            t = fewest(bound, delta, eps=eps, num_points=points[1])
            settings.append(at_points(points, eps, delta, t))
    return tuple(settings)


def fewer_frequencies(
    bound: Callable[[Setting], Bound], setting: Setting, data: Population | None
) -> Control:
    """Return the control of a bound for all pairs; the distances of a table may be too large for a half to show."""
    name = "half of the frequencies"
    part = 2
    if data is not None:
        name = "one frequency"
        part = setting.shapes["rows"]
    fewer = changed((setting,), name, shapes={"part": part})
    statement = Tail(largest_error_of_part, bound)
    return Control(name, statement, fewer, "wrong factor")


def _all_pairs_shape(*, num_points: float, num_frequencies: float) -> Bound:
    value = sqrt(log(num_points) / num_frequencies)
    source = "chen2016, Theorem 4.1 (shape)"
    return Bound(value, 1 - 1 / num_points, num_points >= 2, source)


def thm4_1(inputs: Inputs) -> Check:
    bound = fourier.relative_distances
    settings = all_pairs_settings(bound, inputs.point_sets, inputs.deltas, 0.25)
    root = sqrt(6)
    shape = Calibrated(largest_error, bound_of(_all_pairs_shape), root, root)
    bounded = Tail(largest_error, bound_of(bound))
    return Check(
        printed=Form(shape, settings),
        corrected=Form(bounded, settings),
        controls=(
            fewer_frequencies(bounded.bound, settings[0], inputs.data),
            controls.part_of(0.78, bounded, settings),
        ),
    )
