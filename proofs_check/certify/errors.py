"""Quantiles of the errors of some draws, and the interval of their median. NaN counts as infinite."""

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats


def quantiles(errors: Sequence[float]) -> tuple[float, float, float]:
    """Return the 5 %, 50 % and 95 % points of the errors; each is one of them."""
    low, median, high = np.quantile(
        _ascending(errors), (0.05, 0.5, 0.95), method="inverted_cdf"
    )
    return float(low), float(median), float(high)


def median_interval(
    errors: Sequence[float], level: float = 0.95
) -> tuple[float, float]:
    """Return two of the errors that hold the median between them, with probability `level` for every law of them.

    The errors are independent draws of one law. The k-th smallest exceeds the median with probability at most
    P(Binomial(n, 1/2) < k), and k is the largest for which that is below (1 - level) / 2; so from above. (-inf, inf)
    for fewer than 6 errors at 0.95.
    """
    values = _ascending(errors)
    count = int(stats.binom.ppf((1 - level) / 2, len(values), 0.5))
    if count == 0:
        return -math.inf, math.inf
    return float(values[count - 1]), float(values[len(values) - count])


def _ascending(errors: Sequence[float]) -> np.ndarray:
    return np.sort(
        np.nan_to_num(np.asarray(errors, np.float64), nan=np.inf, posinf=np.inf)
    )
