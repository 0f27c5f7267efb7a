"""chen2016, Section 3.1: how many features small distances need at least.

`docs/theory/chen2016.md` derives every correction.
"""

from functools import partial
from math import floor, inf, isinf, log, sqrt

import numpy as np
from jax import Array
from numpy import ndarray
from numpy.linalg import eigh
from numpy.random import default_rng

from jaxkern.bounds import Bound, fourier
from proofs_check.claim import (
    Check,
    Exact,
    Identity,
    Inequality,
    Setting,
)
from proofs_check.controls import part_of
from proofs_check.papers.chen2016.cosines import versine
from proofs_check.papers.chen2016.setup import (
    Inputs,
    Logs,
    Settings,
    Sides,
    all_at_most_one,
    all_distances,
    differences_of,
    gram_of,
    limit_tail,
    sized,
    tail,
    times,
)
from proofs_check.papers.chen2016.trials import (
    accuracy,
    features_on_host,
    frequencies_on_host,
)
from proofs_check.papers.shared import Grids, as_residual, check_of, real, wrong


def _norm_of_copy(
    key: Array, scale: float, as_printed: bool = False, count: int = 7
) -> ndarray:
    """Return the error of the middle term of the display, with 1 / t for 7 frequencies where it is not printed."""
    t = 7
    w = frequencies_on_host(key, 3, t)
    difference = np.array([0.3, -0.2, 0.7])
    r = np.linalg.norm(difference)
    components = w @ difference / r
    left = sqrt(np.sum((w @ (scale * difference)) ** 2) / count)
    squared = np.sum(components**2) * scale ** (1 if as_printed else 2) * r**2
    middle = sqrt(squared if as_printed else squared / t)
    return as_residual([left / middle - 1])


def sec3_1_norms(grids: Grids) -> Check:
    return check_of(
        Identity,
        grids["both"],
        wrong("without 1 / t", "missing normalisation", count=1),
        printed=partial(_norm_of_copy, as_printed=True, count=1),
        corrected=_norm_of_copy,
    )


def _linear_maps(
    key: Array, t: int, scale: float, share: float = 1.0, other: bool = False
) -> Sides:
    """Return the difference of both embeddings over its bound by (4), at all pairs and for ten draws."""
    points = default_rng(7).standard_normal((10, 4))
    differences = differences_of(points)
    differences /= np.max(np.linalg.norm(differences, axis=1))
    r = np.linalg.norm(differences, axis=1)
    units = (differences / r[:, None]).T
    w = frequencies_on_host(key, 4, 20 * t)
    w = w.reshape(20, t, 4)
    components = w[:10] @ units
    linear = w[10:] @ units if other else components
    images = np.mean(versine(scale * r * components), axis=1)
    images = images / -np.expm1(-((scale * r) ** 2) / 2)
    norm = np.sqrt(np.mean(linear**2, axis=1))
    fourth = np.mean(linear**4, axis=1)
    above = norm / np.sqrt(1 - (scale * r) ** 2 / 4) - norm
    least = norm**2 - (scale * r) ** 2 / 12 * fourth
    below = norm - np.sqrt(np.maximum(least, 0))
    ratios = np.abs(np.sqrt(images) - norm) / (share * np.maximum(above, below))
    return all_at_most_one(ratios.ravel(), "chen2016, (4)")


def lem3_4(grids: Grids) -> Check:
    return check_of(
        Inequality,
        grids["corrected"],
        wrong("other frequencies in the linear map", "wrong operator", other=True),
        wrong("nine tenths of the bound", "wrong factor", share=0.9),
        corrected=_linear_maps,
    )


def _succeeds(num_points: float, eps: float, num_frequencies: float) -> Logs:
    """Return the log-probability of success, and of 1/2.

    On a line, where all ratios tend to one chi2_t / t whatever n is, that of failure.
    """
    if isinf(num_points):
        return limit_tail(eps, num_frequencies), log(0.5)
    success = fourier.success_limit(
        eps=eps, num_frequencies=num_frequencies, num_points=num_points
    )
    return log(max(success.value, 1e-300)), log(0.5)


def _for_half_a_chance(c: float, *, full: bool) -> Settings:
    """Return settings with c ln n / eps^2 frequencies."""
    settings = []
    for n in (1e2, 1e3, 1e4, 1e6) if full else (1e2, 1e3):
        for eps in (0.05, 0.2, 0.5, n**-0.5):
            t = floor(c * log(n) / eps**2)
            name = f"{n:g} points in {n / 2:g} dimensions, eps={eps:g}, t={t}"
            numbers = {"num_points": n, "eps": eps, "num_frequencies": float(t)}
            settings.append(Setting(name, numbers=numbers))
    return settings


def thm3_1(inputs: Inputs) -> Check:
    line = Setting(
        "any number of points on a line, eps=0.1, t=30",
        numbers={"num_points": inf, "num_frequencies": 30.0, "eps": 0.1},
    )
    more = _for_half_a_chance(0.66, full=inputs.full)
    settings = (*_for_half_a_chance(0.6, full=inputs.full), line)
    return check_of(
        Exact,
        settings,
        wrong("the same for t <= .66 ln n / eps^2", "wrong factor", settings=more),
        corrected=_succeeds,
    )


def _simplex_fails(*, eps: float, num_frequencies: float, num_points: float) -> Bound:
    """Return the least that some pair is off by, with the probability of Theorem G."""
    success = fourier.simplex_success_limit(
        eps=eps, num_frequencies=num_frequencies, num_points=num_points
    )
    return Bound(1 / eps, 1 - success.value, True, "jaxkern, Theorem G")


def _union_fails(*, eps: float, num_frequencies: float, num_points: float) -> Bound:
    union = fourier.relative_distances_sharp(
        eps=eps, num_frequencies=num_frequencies, num_points=num_points
    )
    failure = min(1 - union.probability, 0.99)
    return Bound(1 / eps, failure, True, "jaxkern, Theorem G")


def _simplex(n: int, eps: float, t: int) -> Setting:
    data = {"units": real(differences_of(np.eye(n)) / sqrt(2))}
    return sized(f"{n} points, eps={eps:g}, t={t}", data, t, num_points=n, eps=eps)


def simplex_success() -> Check:
    settings = (_simplex(16, 0.2, 60), _simplex(50, 0.3, 45))
    # There the bound is closer to the truth.
    close = (_simplex(16, 0.2, 100), _simplex(50, 0.3, 65))
    return check_of(
        tail(accuracy),
        settings,
        wrong(
            "two thirds of the frequencies",
            "wrong factor",
            times(2 / 3, _simplex_fails),
            settings=close,
        ),
        wrong("the union bound for it", "term left out", _union_fails, settings=close),
        corrected=_simplex_fails,
    )


def _small_copies(
    key: Array, data: ndarray, slack: float, curvature: bool = True
) -> Sides:
    """Return the sides for three maps of a small copy of a set: exact, Fourier features, and the points themselves."""
    r = np.linalg.norm(differences_of(data), axis=1)
    scale = 2 * sqrt(slack) / np.max(r)
    small = real(scale * data)
    D = all_distances(small)[np.triu_indices(len(data), 1)]
    values, vectors = eigh(gram_of(small))
    exact = vectors * np.sqrt(np.maximum(values, 0))
    drawn = features_on_host(key, small, 50)
    lower = sqrt(1 - slack) if curvature else 1.0
    sides = []
    for h in (exact, drawn, np.asarray(small, float)):
        images = np.linalg.norm(differences_of(h), axis=1)
        largest = np.max(images / D - 1)
        smallest = np.max(1 - images / D)
        ratios = images / (scale * r)
        ups = ratios / (1 + largest)
        downs = (1 - smallest) * lower / ratios
        sides += all_at_most_one([*ups, *downs], "jaxkern, small copies")
    return sides


def sec3_1_remark() -> Check:
    cloud = default_rng(1).standard_normal((8, 3))
    settings = []
    for slack in (0.04, 0.2):
        numbers = {"slack": slack}
        name = f"orthonormal points, eps'={slack:g}"
        settings.append(Setting(name, np.eye(6), numbers))
        settings.append(Setting(f"a cloud, eps'={slack:g}", cloud, numbers))
    return check_of(
        Inequality,
        settings,
        wrong("without sqrt(1 - eps')", "term left out", curvature=False),
        part_of(0.95, Inequality(_small_copies), settings),
        corrected=_small_copies,
    )
