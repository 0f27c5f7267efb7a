"""Pairs of points at known distances: the rates of Chernoff's bound at each distance, by quadrature."""

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern._types import ArrayLike, Float
from jaxkern.bounds._bound import Bound, Real, floats_only, formula, one_at_a_time
from jaxkern.bounds._bound import xp as scalar
from jaxkern.bounds.fourier._pair import inside
from jaxkern.bounds.fourier._pairs import SMALLEST, stop_loss

_NODES = 1024
"""Equispaced on the circle, for an error of the quadrature below exp(-60) within the two limits that follow."""

_TILT = 128.0
"""Largest |s| in E exp(s X). Every s gives a true bound, so that nothing is lost but sharpness."""

_NEAREST, _FARTHEST = 0.05**2, 6.0**2
"""Squared distances between which rates are computed. Below, chi-square is as good; beyond, nothing changes."""

_LEAST = 1e-12
"""Takes the place of ratios of 0 and less, and of E X for coincident points."""

_NEVER = 1e30
"""An exponent for what cannot happen, finite so that its derivatives are numbers."""

_STEPS = 6
"""Newton's, for s, from its value for chi-square; after four the rate is constant to rounding."""


@formula
@floats_only
@one_at_a_time
def relative_distances_given(
    *,
    eps: Real,
    num_frequencies: Real,
    squared_distances: Float[ArrayLike, " b"],
    pairs: Float[ArrayLike, " b"],
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
    xp, (squared, counts) = _vectors(
        eps, num_frequencies, squared_distances=squared_distances, pairs=pairs
    )
    return _bound(
        xp, eps, num_frequencies, squared, counts, _relative_rates(xp, eps, squared)
    )


@formula
@floats_only
@one_at_a_time
def kernel_values_given(
    *,
    eps: Real,
    num_frequencies: Real,
    squared_distances: Float[ArrayLike, " b"],
    pairs: Float[ArrayLike, " b"],
    farthest: Float[ArrayLike, " b"] | None = None,
) -> Bound:
    """Bound max |Khat - K| by eps over pairs of points, pairs[i] of which are within known limits of their distance.

    With mu = 1 - K(x, y), Khat - K = mu (1 - Dhat^2 / D^2). A pair whose squared distance is between
    squared_distances[i] and farthest[i] fails with probability at most exp(-t I+) + exp(-t I-), where I+ and I- are the
    exponents of `relative_distances_given` at the smaller distance, at 1 + eps / mu and 1 - eps / mu with mu at the
    larger one. For near pairs that is far below `kernel_values`: about 2 exp(-t (eps / mu)^2 / 4).

    Parameters
    ----------
    eps, num_frequencies : error, and t frequencies.
    squared_distances, farthest : (b,) limits of |x - y|^2 / lengthscale^2, such as the edges of the bins of a
        histogram; without `farthest` the distances are known.
    pairs : (b,) numbers of pairs, at least 0.

    Returns
    -------
    Bound, valid for 1e-4 <= eps and squared_distances <= farthest.

    Source: Theorem F of docs/theory/chen2016.md, of kernel values; claim
    jaxkern:kernel-values-given.
    """
    upper = squared_distances if farthest is None else farthest
    vectors = dict(squared_distances=squared_distances, pairs=pairs, farthest=upper)
    xp, (squared, counts, upper) = _vectors(eps, num_frequencies, **vectors)
    error = inside(eps, math.inf) / xp.maximum(
        -xp.expm1(-xp.maximum(upper, squared) / 2), _LEAST
    )
    rates = [rate for rate, *_ in tails(xp, (1 + error, 1 - error), squared)]
    total = xp.sum(counts * sum(xp.exp(-num_frequencies * rate) for rate in rates))
    valid = (eps >= SMALLEST) & xp.all(
        (squared >= 0) & (counts >= 0) & (upper >= squared)
    )
    return _of_total(
        xp, eps, total, valid, "jaxkern, Theorem F of chen2016, kernel values"
    )


def certificate(
    eps: float, squared_distances: Float[ArrayLike, " b"], pairs: Float[ArrayLike, " b"]
) -> Callable[[int], Bound]:
    """Return `relative_distances_given` as a function of num_frequencies, with the rates computed once."""
    squared, counts = (np.asarray(v, float) for v in (squared_distances, pairs))
    rates = _relative_rates(np, eps, squared)
    return lambda size: _bound(np, eps, float(size), squared, counts, rates)


def _bound(
    xp: ModuleType,
    eps: Real,
    num_frequencies: Real,
    squared: Any,
    counts: Any,
    rates: tuple[Any, Any],
) -> Bound:
    sharp = stop_loss(eps, num_frequencies)
    failure = xp.minimum(sharp, sum(xp.exp(-num_frequencies * rate) for rate in rates))
    total = xp.sum(counts * failure)
    valid = (eps >= SMALLEST) & (eps < 1) & xp.all((squared >= 0) & (counts >= 0))
    return _of_total(xp, eps, total, valid, "jaxkern, Theorem F of chen2016")


def _of_total(xp: ModuleType, eps: Real, total: Any, valid: Any, source: str) -> Bound:
    if xp is np:
        total, valid = float(total), bool(valid)
    return Bound(eps, 1 - total, valid, source, exponent=-scalar.log(total))


def _vectors(*scalars: Real, **vectors: Any) -> tuple[ModuleType, list[Any]]:
    """Return the module of the arithmetic, and the vectors in it, which have one size."""
    dtype = next(
        (v.dtype for v in (*vectors.values(), *scalars) if isinstance(v, jax.Array)),
        None,
    )
    xp: ModuleType = np if dtype is None else jnp
    arrays = [xp.asarray(v, dtype or float) for v in vectors.values()]
    if any(v.ndim != 1 or v.shape != arrays[0].shape for v in arrays):
        names, shapes = (
            " and ".join(words) for words in (vectors, [str(v.shape) for v in arrays])
        )
        raise ValueError(f"{names} must be vectors of one size, got shapes {shapes}")
    return xp, arrays


def _relative_rates(xp: ModuleType, eps: Real, squared: Any) -> tuple[Any, Any]:
    """Return I+ and I- of a relative error of distances at every squared distance, (b,) each."""
    error = inside(eps)
    above, below = tails(xp, ((1 + error) ** 2, (1 - error) ** 2), squared)
    return above[0], below[0]


def tails(
    xp: ModuleType, ratios: tuple[Any, Any], squared: Any
) -> list[tuple[Any, Any, Any]]:
    """Return for a ratio above 1 and one below, numbers or (b,), what Chernoff's bound has at every squared distance.

    That is its exponent I from below; a tilt s >= 0; and the exponent for that s, the logarithm of E exp(-+s Z) less
    that of exp(-+s ratio), Z = X / E X: (b,) each.

    X = 1 - cos(phi) with phi = r w on the circle, where its density, the wrapped normal one, is a sum of positive
    terms: E exp(s X) is a sum of positive terms without cancellation, at every s.
    """
    dtype = squared.dtype
    angle = 2 * math.pi / _NODES * np.arange(_NODES // 2 + 1)[None]
    turns = 2 * math.pi * np.arange(-10, 11)[:, None, None]
    halved = np.where(
        (angle == 0) | (angle == angle[0, -1]), 1.0, 2.0
    )  # both halves of the circle at once
    exact = 1 - np.cos(angle), np.log(halved / _NODES), (angle[None] + turns) ** 2 / 2
    X, logs, wound = (xp.asarray(v, dtype) for v in exact)
    square = xp.clip(squared, _NEAREST, _FARTHEST)[:, None]
    weights = (
        _log_sum(xp, -wound / square[None], 0)[0][0]
        + logs
        + xp.log(2 * math.pi / square) / 2
    )
    mean = -xp.expm1(-square / 2)
    tiny = float(xp.finfo(dtype).eps)
    found = []
    for given, sign in zip(ratios, (1.0, -1.0), strict=True):
        ratio = xp.maximum(
            xp.broadcast_to(xp.asarray(given, dtype), squared.shape)[:, None], _LEAST
        )
        chi_square = (ratio - 1 - xp.log(ratio)) / 2
        best, s = 0 * mean, xp.abs(1 - 1 / ratio) / (2 * mean)
        for _ in range(_STEPS):
            tilt = xp.clip(s, 0.0, _TILT)
            s = tilt if xp is np else jax.lax.stop_gradient(tilt)
            total, tilted = _log_sum(xp, sign * s * (X - mean * ratio) + weights, 1)
            # The relative error of a sum of positive terms with exponents of at most 2 s.
            total = total + tiny * (_NODES + 128 * s)
            best = xp.minimum(best, total)
            first = xp.sum(tilted * X, axis=1, keepdims=True)
            spread = xp.sum(tilted * (X - first) ** 2, axis=1, keepdims=True)
            s = s - sign * (first - mean * ratio) / xp.maximum(spread, tiny)
        near = (squared < _NEAREST)[:, None]
        fallback = near | (-total < chi_square)
        of_tilt = xp.where(fallback, chi_square, -total)
        tilt = xp.where(fallback, xp.abs(1 - 1 / ratio) / 2, tilt * mean)
        rate = xp.maximum(xp.where(near, 0.0, -best), chi_square)
        never = xp.asarray(given, dtype) <= 0  # no mean of X is below 0
        found.append((xp.where(never, _NEVER, rate[:, 0]), tilt[:, 0], of_tilt[:, 0]))
    return found


def _log_sum(xp: ModuleType, exponents: Any, axis: int) -> tuple[Any, Any]:
    """Return the logarithm of a sum of exponentials along an axis, which is kept, and the shares of the terms."""
    highest = xp.max(exponents, axis=axis, keepdims=True)
    terms = xp.exp(exponents - highest)
    total = xp.sum(terms, axis=axis, keepdims=True)
    return highest + xp.log(total), terms / total
