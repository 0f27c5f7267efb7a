"""Quantiles of the errors of some draws, and the interval of their median."""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from proofs_check.certify._model import Probe
from proofs_check.engine import limits


def quantiles(probe: Probe) -> tuple[float, float, float]:
    """Return the 5%, 50% and 95% points of the errors, each one of them; NaN counts as inf, and no draws give NaN."""
    if not probe.draws:
        return math.nan, math.nan, math.nan
    low, middle, high = np.quantile(
        _ordered(probe.errors), (0.05, 0.5, 0.95), method="inverted_cdf"
    )
    return float(low), float(middle), float(high)


def median_interval(errors: ArrayLike, level: float = 0.95) -> tuple[float, float]:
    """Return two of the errors that hold the median between them, with probability `level` for every law of them.

    The errors, shape (n,), are independent draws of one law; NaN counts as inf. The k-th smallest exceeds the median
    with probability at most P(Binomial(n, 1/2) < k), k is the largest for which that is below (1 - level) / 2, and so
    from above. (-inf, inf) where there is none: fewer than 6 errors at 0.95. Raises ValueError for levels outside
    (0, 1).
    """
    limits.open_unit(level=level)
    values = _ordered(errors)
    count = (
        int(stats.binom.ppf((1 - level) / 2, values.size, 0.5)) if values.size else 0
    )
    if count == 0:
        return -math.inf, math.inf
    return float(values[count - 1]), float(values[values.size - count])


def summary(errors: np.ndarray) -> dict[str, float] | None:
    """Return median, its interval and the largest of some errors; None where they are too few, or not all finite."""
    if not len(errors) or not np.isfinite(errors).all():
        return None
    low, high = median_interval(errors)
    if not math.isfinite(low):
        return None
    return {
        "median": float(np.median(errors)),
        "low": low,
        "high": high,
        "largest": float(errors.max()),
    }


def finite(value: float) -> float | None:
    """Return a number as JSON has it, None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def _ordered(errors: ArrayLike) -> np.ndarray:
    return np.sort(
        np.nan_to_num(
            np.asarray(errors, np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf
        )
    )
