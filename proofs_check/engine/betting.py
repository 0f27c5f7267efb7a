"""Limits for means that hold for every law: of bounded variables, by betting, and of a bounded variance, by Catoni.

Source: Waudby-Smith and Ramdas (2024); Catoni, Challenging the empirical mean and empirical variance (2012).
"""

import math

import numpy as np
from numpy.typing import ArrayLike

from proofs_check.engine.limits import open_unit

MOST_BET = 0.5
"""No bet risks more than this part of the capital, unless it is said otherwise."""


def betting_limits(
    sample: ArrayLike,
    alpha: float,
    *,
    low: float = 0.0,
    high: float = 1.0,
    horizon: int | None = None,
    unit: float = 1.0,
    most: float = MOST_BET,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) limits of the mean of bounded variables, each at level `alpha`, by betting against means.

    `sample` has shape (..., n), streams of values in [low, high], each with the same mean given those before it; the
    results have shape (...), the best limits after all n values, and those of every shorter stream hold at the same
    time. `horizon` is the number of values for which to be tightest; by default none is preferred. Where `high` is
    infinite there is a lower limit alone, and `unit`, fixed beforehand, says how far above `low` values are expected.
    `most`, below 1, is the part of the capital that a bet may risk: near 1 for values that hardly vary in a wide range.
    Cost: 106 passes. Raises ValueError for values that are not in [low, high], and for a horizon below 1.

    The capital prod (1 + t_i (x_i - m)), with t_i chosen before x_i and at most c / m, c < 1, stays positive and is a
    supermartingale where the mean is at most m. Each factor falls in m, also where t_i = c / m, so the means that were
    ever refuted are an interval [0, limit]. Source: section 4 of Waudby-Smith and Ramdas (2024); here the two sides
    are separate, each with its own level.
    """
    open_unit(alpha=alpha)
    span = high - low if high < math.inf else unit
    values = _unit(sample, low, high, span)

    def lower(x: np.ndarray) -> np.ndarray:
        bets = _bets(x, alpha, horizon)
        below, above = np.zeros(x.shape[:-1]), np.maximum(np.max(x, -1), 1.0)
        for _ in range(53):
            mean = ((below + above) / 2)[..., None]
            gains = np.log1p(np.minimum(bets, most / mean) * (x - mean))
            refuted = np.max(np.cumsum(gains, -1), -1, initial=0.0) >= -math.log(alpha)
            below, above = (
                np.where(refuted, mean[..., 0], below),
                np.where(refuted, above, mean[..., 0]),
            )
        return below

    least = low + span * lower(values)
    return least, high - span * lower(1 - values) if high < math.inf else np.full_like(
        least, math.inf
    )


def catoni_limits(
    sample: ArrayLike, alpha: float, *, variance: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return (lower, upper) limits of the mean of variables of at most this variance, each at level `alpha`.

    `sample` has shape (..., n), streams of independent values with the same mean; the results have shape (...). The
    limits hold for every such law, after n values that were fixed beforehand, and lie about sqrt(2 variance
    log(1 / alpha) / n) from the mean. Cost: 120 passes. Raises ValueError where the variance is not positive.

    With psi(y) = log(1 + y + y^2 / 2) for y >= 0 and psi(-y) = -psi(y) it is psi(y) <= log(1 + y + y^2 / 2)
    everywhere, so exp(sum psi(s (x_i - m))) has a mean of at most (1 + s^2 variance / 2)^n where m is the true one, and
    exceeds 1 / alpha times that with probability at most alpha (Markov). The sum falls in m.
    """
    open_unit(alpha=alpha)
    values = np.asarray(sample, np.float64)
    if not variance > 0 or values.ndim < 1 or values.shape[-1] < 1:
        raise ValueError(
            f"variance must be positive, and sample a value a stream or more, got variance={variance!r}"
        )
    n, log = values.shape[-1], -math.log(alpha)
    scale = math.sqrt(2 * log / (n * variance))
    threshold = n * math.log1p(scale**2 * variance / 2) + log

    def lower(x: np.ndarray) -> np.ndarray:
        # Below the least value all terms are positive; far enough below, one alone exceeds the threshold.
        above = np.max(x, -1)
        below = np.min(x, -1) - (math.expm1(min(threshold / n, 700.0)) + 1) / scale
        for _ in range(60):
            mean = (below + above) / 2
            y = scale * (x - mean[..., None])
            refuted = (
                np.sum(np.sign(y) * np.log1p(np.abs(y) + y**2 / 2), -1) >= threshold
            )
            below, above = (
                np.where(refuted, mean, below),
                np.where(refuted, above, mean),
            )
        return below

    return lower(values), -lower(-values)


def mean_limits(
    sample: np.ndarray,
    level: float,
    limits: tuple[float, float] | None,
    variance: float | None,
    rounding: float = 0.0,
    unit: float = 1.0,
) -> tuple[float, float]:
    """Return (lower, upper) limits of a mean, each at this level: infinite where nothing is proved of the statistic.

    `unit` is that of `betting_limits`. Raises ValueError where the statistic leaves its limits by more than `rounding`.
    """
    if limits is not None:
        low, high = float(limits[0]), float(limits[1])
        if not np.all((sample >= low - rounding) & (sample <= high + rounding)):
            raise ValueError(
                f"the statistic must lie in its limits [{low:g}, {high:g}], got {sample.min():g} to {sample.max():g}"
            )
        inside = np.clip(sample, low, high)
        lower, upper = betting_limits(
            inside, level, low=low, high=high, horizon=sample.size, unit=unit
        )
    elif variance is not None:
        lower, upper = catoni_limits(sample, level, variance=float(variance))
    else:
        return -math.inf, math.inf
    return float(lower), float(upper)


def _unit(sample: ArrayLike, low: float, high: float, span: float) -> np.ndarray:
    values = np.asarray(sample, np.float64)
    if not -math.inf < low < high or not span > 0:
        raise ValueError(
            f"low must be below high and finite, and the unit positive, got [{low!r}, {high!r}], {span!r}"
        )
    if (
        values.ndim < 1
        or values.shape[-1] < 1
        or not np.all((values >= low) & (values <= high))
    ):
        raise ValueError(
            f"sample must hold at least one value a stream, all in [{low:g}, {high:g}]"
        )
    return (values - low) / span


def _bets(x: np.ndarray, alpha: float, horizon: int | None) -> np.ndarray:
    """Return the bet on each value, from the values before it alone, shape (..., n).

    It would be best for n values of the variance so far, n the horizon or else t log(1 + t) at time t.
    """
    if horizon is not None and horizon < 1:
        raise ValueError(f"horizon must be at least 1, got {horizon}")
    time = np.arange(1, x.shape[-1] + 1)
    mean = (0.5 + np.cumsum(x, -1)) / (time + 1)
    variance = (0.25 + np.cumsum((x - mean) ** 2, -1)) / (time + 1)
    before = np.concatenate([np.full((*x.shape[:-1], 1), 0.25), variance[..., :-1]], -1)
    span = time * np.log1p(time) if horizon is None else horizon
    return np.sqrt(-2 * math.log(alpha) / (before * span))
