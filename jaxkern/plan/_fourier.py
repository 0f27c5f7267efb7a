"""Plans of paired Fourier features, whose kernel distances have a relative error."""

import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from jaxkern import checks, kernels
from jaxkern._types import ArrayLike, Float
from jaxkern.bounds import Bound
from jaxkern.bounds import fourier as bounds
from jaxkern.bounds.fourier import _ball, _given
from jaxkern.kernels import KernelLike
from jaxkern.plan import _matern
from jaxkern.plan._plan import Plan, nonnegative, smallest, static_positive

_EDGES = np.concatenate([[0.0], np.geomspace(0.05**2, 6.0**2, 255)])
"""Squared distances to which larger ones are lowered where there are many; the bound changes between them only."""


def fourier(
    eps: float,
    delta: float,
    *,
    num_points: int | None = None,
    dim: int | None = None,
    diameter: float | None = None,
    squared_distances: Float[ArrayLike, " b"] | None = None,
    pairs: Float[ArrayLike, " b"] | None = None,
    kernel: KernelLike | None = None,
) -> Plan:
    """Plan paired Fourier features that keep kernel distances, of the Gaussian kernel by default, to a relative error.

    With probability at least 1 - delta over the draw, |Dhat / D - 1| <= eps, where D is the kernel distance and Dhat
    the distance of the features: for all pairs of any `num_points` points of any dimension; for *all* points of
    R^dim at distance <= diameter; for pairs of known distances; or, when several are given, by the cheapest of them.
    Coincident points have no error.

    Parameters
    ----------
    eps : relative error, in (0, 1).
    delta : failure probability, in (0, 1).
    num_points : number of points, fixed before the draw.
    dim, diameter : dimension of the points, and their largest distance in units of the lengthscale; both or neither.
    squared_distances, pairs : (b,) arrays, both or neither: pairs[i] pairs of points are at a squared distance of at
        least squared_distances[i], over the squared lengthscale, as in a histogram with its lower edges.
    kernel : a `kernels.Gaussian`, or None for it; with dim and diameter alone also `kernels.Matern32` or `Matern52`.
        For `Exponential` and `Laplacian` no number of frequencies is enough, and others are refused as well.

    Returns
    -------
    Plan with num_frequencies, and num_features = 2 num_frequencies.

    Notes
    -----
    The plan is for `features.paired_fourier`; `shifted_fourier` and `orthogonal_fourier` are not covered. For a tight
    cluster of n = 100 or 1,000 orthonormal points, eps in {.1, .2, .3} and delta = .05, it is at most 1.12 times the
    smallest number that simulation finds. What is bounded is Dhat / D, within [1 - eps, 1 + eps]; D / Dhat is then
    within [1 / (1 + eps), 1 / (1 - eps)]. Source: chen2016, Theorems 4.1 and 5.1; Theorems B, F, H, M and N of
    docs/theory/chen2016.md.

    Examples
    --------
    >>> from jaxkern import plan
    >>> chosen = plan.fourier(0.2, 0.05, num_points=1000)
    >>> chosen.num_features == 2 * chosen.num_frequencies
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    gaussian = kernel is None or isinstance(kernel, kernels.Gaussian)
    if not gaussian:
        _matern.refuse(kernel, num_points is None and pairs is None)
    if (dim is None) != (diameter is None):
        raise ValueError(
            f"dim and diameter must be given together, got dim={dim!r} and diameter={diameter!r}"
        )
    if (squared_distances is None) != (pairs is None):
        raise ValueError(
            "squared_distances and pairs must be given together, got one of them"
        )
    if num_points is None and dim is None and pairs is None:
        raise ValueError(
            "num_points must be given, or dim and diameter, or squared_distances and pairs; got none"
        )
    certificates: list[Callable[[int], Bound]] = []
    if num_points is not None:
        n = float(checks.count("num_points", num_points))
        statements = [bounds.relative_distances_closed_form]
        if eps >= 1e-4:  # below, rounding would decide
            statements += [bounds.relative_distances, bounds.relative_distances_sharp]

        def of(statement: Callable[..., Bound]) -> Callable[[int], Bound]:
            return lambda t: statement(eps=eps, num_frequencies=t, num_points=n)

        certificates += map(of, statements)
    if dim is not None:
        d = checks.count("dim", dim)
        static_positive("diameter", diameter)
        ball = (
            _ball_certificate
            if gaussian
            else functools.partial(_matern.ball_certificate, kernel)
        )
        certificates.append(ball(eps, delta, d, float(diameter)))  # type: ignore[arg-type]
    if pairs is not None:
        certificates.append(
            _given.certificate(eps, *_histogram(squared_distances, pairs, None)[:2])
        )
    size, bound = smallest(certificates, delta)
    return Plan(
        bound.source, bound.probability, num_frequencies=size, num_features=2 * size
    )


def kernel_values(
    eps: float,
    delta: float,
    *,
    squared_distances: Float[ArrayLike, " b"],
    pairs: Float[ArrayLike, " b"],
    farthest: Float[ArrayLike, " b"] | None = None,
) -> Plan:
    """Plan paired Fourier features of the Gaussian kernel that keep its values to an error, at known distances.

    With probability at least 1 - delta over the draw, |Khat - K| <= eps for all pairs. Near pairs have nearly no error:
    at distances of a tenth of a lengthscale 7 frequencies do for eps = .01 and delta = .05, 1,808 at half of one,
    where Hoeffding's inequality asks for 73,778.

    Parameters
    ----------
    eps : error of a kernel value, in (0, 1).
    delta : failure probability, in (0, 1).
    squared_distances, pairs : (b,) arrays: pairs[i] pairs of points are at a squared distance of squared_distances[i],
        over the squared lengthscale, as in a histogram.
    farthest : (b,) array, or None where distances are known: they are between squared_distances and this.

    Returns
    -------
    Plan with num_frequencies, and num_features = 2 num_frequencies.

    Notes
    -----
    The plan is for `features.paired_fourier`. Source: Theorem F of docs/theory/chen2016.md, of kernel values; claim
    jaxkern:kernel-values-given.

    Examples
    --------
    >>> from jaxkern import plan
    >>> plan.kernel_values(0.01, 0.05, squared_distances=[0.01], pairs=[1.0]).num_frequencies < 10
    True
    """
    eps, delta = checks.open_unit("eps", eps), checks.open_unit("delta", delta)
    squared, counts, upper = _histogram(squared_distances, pairs, farthest)
    bins = {"squared_distances": squared, "pairs": counts, "farthest": upper}
    size, bound = smallest(
        [lambda t: bounds.kernel_values_given(eps=eps, num_frequencies=t, **bins)],
        delta,
    )
    return Plan(
        bound.source, bound.probability, num_frequencies=size, num_features=2 * size
    )


def _ball_certificate(
    eps: float, delta: float, dim: int, diameter: float
) -> Callable[[int], Bound]:
    """Return the best of `bounds.fourier.ball` over its free parameters, on a fixed grid."""
    pairs = itertools.product([1.1, 1.25, 1.5], [0.1, 0.15])
    shells = [
        (pair, _ball.shells_of(np, float, eps, diameter, *pair)) for pair in pairs
    ]
    tau = -math.log(0.05 * delta)

    def best(size: int) -> Bound:
        tried = (
            _ball.of_shells(
                found, eps, float(size), float(dim), diameter, tau, near, *pair
            )
            for pair, found in shells
            for near in [0.02, 0.05, 0.1, 0.15, 0.2]
        )
        return max(tried, key=lambda bound: (bound.valid, bound.probability))

    return best


def _histogram(
    squared_distances: Any, pairs: Any, farthest: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lower edges, counts and upper edges of the bins that are not empty, gathered where there are many."""
    given = dict(squared_distances=squared_distances, pairs=pairs)
    given |= {} if farthest is None else {"farthest": farthest}
    squared, counts, *rest = (nonnegative(name, value) for name, value in given.items())
    upper = rest[0] if rest else squared
    for name, values in (("pairs", counts), ("farthest", upper)):
        if squared.shape != values.shape:
            raise ValueError(
                f"{name} must have the shape of squared_distances, {squared.shape}, got {values.shape}"
            )
    if np.any(upper < squared):
        raise ValueError(
            "farthest must be at least squared_distances, got a smaller one"
        )
    if squared.size > len(_EDGES):
        bins = np.searchsorted(_EDGES, squared, side="right") - 1
        gathered = np.zeros(len(_EDGES))
        np.maximum.at(gathered, bins, np.where(counts > 0, upper, 0.0))
        squared, counts, upper = (
            _EDGES,
            np.bincount(bins, counts, len(_EDGES)),
            gathered,
        )
    some = counts > 0
    return squared[some], counts[some], upper[some]
