"""All pairs of points whose distances are known: the rates of Chernoff's bound at each distance, by quadrature."""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern._types import ArrayLike, Float
from jaxkern.bounds._bound import Bound, Real, formula
from jaxkern.bounds._bound import xp as scalar
from jaxkern.bounds.fourier._pair import inside
from jaxkern.bounds.fourier._pairs import SMALLEST, stop_loss

_NODES = 1024
"""Equispaced on the circle, for an error of the quadrature below exp(-60) within the two limits that follow."""

_TILT = 128.0
"""Largest |s| in E exp(s X). Every s gives a true bound, so that nothing is lost but sharpness."""

_NEAREST, _FARTHEST = 0.05**2, 6.0**2
"""Squared distances between which rates are computed. Below, chi-square is as good; beyond, nothing changes."""

_STEPS = 6
"""Newton's, for s, from its value for chi-square; after four the rate is constant to rounding."""


@formula
def relative_distances_given(
    *, eps: Real, num_frequencies: Real, squared_distances: Float[ArrayLike, " b"], pairs: Float[ArrayLike, " b"]
) -> Bound:
    """Bound max |Dhat / D - 1| by eps over pairs of points, pairs[i] of which are at least so far apart.

    squared_distances holds |x - y|^2 / lengthscale^2, or anything smaller, such as the lower edges of the bins of a
    histogram; pairs of coincident points have no error and may be left out. A pair at distance r fails with
    probability at most exp(-t I+) + exp(-t I-), where I+ and I- are the exponents of Chernoff's bound for the mean of
    t copies of X / E X, X = 1 - cos(r w), at (1 + eps)^2 and (1 - eps)^2. They grow with r, from those of chi-square
    at r = 0 to more than twice as much. Where `relative_distances_sharp` says more of a pair, that is taken, so that
    nothing is lost against it.

    Parameters
    ----------
    eps, num_frequencies : scalars, as in `relative_distances_sharp`.
    squared_distances, pairs : (b,) arrays, at least 0. Pass NumPy arrays for float64; in float32 the allowance for
        rounding costs some per cent of the frequencies.

    Returns
    -------
    Bound, valid for 1e-4 <= eps < 1.

    Notes
    -----
    Time and memory about 20,000 numbers a distance: gather many of them in bins first, as `jaxkern.plan.fourier` does.

    Source: Theorems E and F of docs/theory/chen2016.md; claims jaxkern:far-convex-order,
    jaxkern:relative-distances-given and jaxkern:relative-distances-given-pair.
    """
    dtype = next((v.dtype for v in (squared_distances, pairs, eps, num_frequencies) if isinstance(v, jax.Array)), None)
    xp: ModuleType = np if dtype is None else jnp
    squared, counts = (xp.asarray(v, dtype or float) for v in (squared_distances, pairs))
    if squared.ndim != 1 or squared.shape != counts.shape:
        raise ValueError(
            f"squared_distances and pairs must be vectors of one size, got shapes {squared.shape} and {counts.shape}"
        )
    rates = _rates(xp, inside(eps), squared)
    return _bound(xp, eps, num_frequencies, squared, counts, rates)


def certificate(
    eps: float, squared_distances: Float[ArrayLike, " b"], pairs: Float[ArrayLike, " b"]
) -> Callable[[int], Bound]:
    """Return `relative_distances_given` as a function of num_frequencies, with the rates computed once."""
    squared, counts = (np.asarray(v, float) for v in (squared_distances, pairs))
    rates = _rates(np, inside(eps), squared)
    return lambda size: _bound(np, eps, float(size), squared, counts, rates)


def _bound(
    xp: ModuleType, eps: Real, num_frequencies: Real, squared: Any, counts: Any, rates: tuple[Any, Any]
) -> Bound:
    sharp = stop_loss(eps, num_frequencies)
    failure = xp.minimum(sharp, sum(xp.exp(-num_frequencies * rate) for rate in rates))
    total = xp.sum(counts * failure)
    valid = (eps >= SMALLEST) & (eps < 1) & xp.all((squared >= 0) & (counts >= 0))
    if xp is np:
        total, valid = float(total), bool(valid)
    return Bound(eps, 1 - total, valid, "jaxkern, Theorem F of chen2016", exponent=-scalar.log(total))


def _rates(xp: ModuleType, eps: Real, squared: Any) -> tuple[Any, Any]:
    """Return I+ and I- at every squared distance, (b,) each, from below.

    X = 1 - cos(phi) with phi = r w on the circle, where its density, the wrapped normal one, is a sum of positive
    terms: E exp(s X) is a sum of positive terms without cancellation, at every s.
    """
    dtype = squared.dtype
    angle = 2 * math.pi / _NODES * np.arange(_NODES // 2 + 1)[None]
    turns = 2 * math.pi * np.arange(-10, 11)[:, None, None]
    halved = np.where((angle == 0) | (angle == angle[0, -1]), 1.0, 2.0)  # both halves of the circle at once
    X, logs, wound = (
        xp.asarray(v, dtype) for v in (1 - np.cos(angle), np.log(halved / _NODES), (angle[None] + turns) ** 2 / 2)
    )
    square = xp.clip(squared, _NEAREST, _FARTHEST)[:, None]
    weights = _log_sum(xp, -wound / square[None], 0)[0][0] + logs + xp.log(2 * math.pi / square) / 2
    mean = -xp.expm1(-square / 2)
    tiny = float(xp.finfo(dtype).eps)
    rates = []
    for ratio, sign in (((1 + eps) ** 2, 1.0), ((1 - eps) ** 2, -1.0)):
        chi_square = (ratio - 1 - xp.log(ratio)) / 2
        best, s = 0 * mean, xp.abs(1 - 1 / ratio) / (2 * mean)
        for _ in range(_STEPS):
            s = xp.clip(s if xp is np else jax.lax.stop_gradient(s), 0.0, _TILT)
            total, tilted = _log_sum(xp, sign * s * (X - mean * ratio) + weights, 1)
            # The relative error of a sum of positive terms with exponents of at most 2 s.
            best = xp.minimum(best, total + tiny * (_NODES + 128 * s))
            first = xp.sum(tilted * X, axis=1, keepdims=True)
            spread = xp.sum(tilted * (X - first) ** 2, axis=1, keepdims=True)
            s = s - sign * (first - mean * ratio) / xp.maximum(spread, tiny)
        rate = xp.where(squared < _NEAREST, 0.0, -best[:, 0])
        rates.append(xp.maximum(rate, chi_square))
    return rates[0], rates[1]


def _log_sum(xp: ModuleType, exponents: Any, axis: int) -> tuple[Any, Any]:
    """Return the logarithm of a sum of exponentials along an axis, which is kept, and the shares of the terms."""
    highest = xp.max(exponents, axis=axis, keepdims=True)
    terms = xp.exp(exponents - highest)
    total = xp.sum(terms, axis=axis, keepdims=True)
    return highest + xp.log(total), terms / total
