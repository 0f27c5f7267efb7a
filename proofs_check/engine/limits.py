"""Exact binomial limits, and the numbers of trials that two stated error rates ask for."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special, stats


def binomial_limits(violations: int, trials: int, alpha: float) -> tuple[float, float]:
    """Return the exact (Clopper-Pearson) limits of a probability, each one-sided at level `alpha`.

    `0 <= violations <= trials` and `0 < alpha < 1`, or ValueError. Without trials the limits are (0, 1).
    """
    open_unit(alpha=alpha)
    if not 0 <= violations <= trials:
        raise ValueError(
            f"violations must lie in [0, trials], got {violations} of {trials}"
        )
    lower = (
        float(special.betaincinv(violations, trials - violations + 1, alpha))
        if violations > 0
        else 0.0
    )
    upper = (
        float(special.betainccinv(violations + 1, trials - violations, alpha))
        if violations < trials
        else 1.0
    )
    return lower, upper


def certifiable(trials: int, alpha: float) -> float:
    """Return the smallest delta that `trials` trials without a violation certify at level `alpha`."""
    open_unit(alpha=alpha)
    return -math.expm1(math.log(alpha) / trials) if trials > 0 else 1.0


def detectable(trials: int, delta: float, alpha: float, power: float = 0.99) -> float:
    """Return the smallest violation rate that is refuted with probability `power`, inf where none is."""
    open_unit(alpha=alpha, power=power)
    count = int(smallest_refuted(trials, delta, alpha))
    return (
        float(special.betaincinv(count, trials - count + 1, power))
        if count <= trials
        else math.inf
    )


@lru_cache(maxsize=4096)
def trials_needed(
    delta: float,
    alpha: float,
    *,
    beta: float = 0.01,
    good: float = 0.25,
    bad: float = 2.0,
) -> int:
    """Return the smallest fixed number of trials that decides whether a violation probability is at most `delta`.

    A true rate of `good * delta` is certified, and one of `min(bad * delta, (1 + delta) / 2)` is refuted, each at level
    `alpha` and each with probability at least `1 - beta`. All of delta, alpha, beta and good lie in (0, 1), bad > 1.
    Power is not monotone in the number of trials, but it falls only where a critical count moves, so the
    smallest number is one of those at which a count becomes critical or gains its power; these are all compared.
    """
    open_unit(delta=delta, alpha=alpha, beta=beta, good=good)
    if not bad > 1:
        raise ValueError(f"bad must exceed 1, got {bad!r}")
    low_rate, high_rate = good * delta, min(bad * delta, (1 + delta) / 2)

    def decides(trials: Any) -> Any:
        certified = stats.binom.cdf(
            largest_certified(trials, delta, alpha), trials, low_rate
        )
        refuted = stats.binom.sf(
            smallest_refuted(trials, delta, alpha) - 1, trials, high_rate
        )
        return (certified >= 1 - beta) & (refuted >= 1 - beta)

    most = 1
    while not decides(most):
        most *= 2
    kept = np.arange(largest_certified(most, delta, alpha) + 1)
    becomes_critical = _first(
        lambda n: stats.binom.cdf(kept, n, delta) <= alpha, kept.size, most
    )
    counts = np.arange(1, smallest_refuted(most, delta, alpha) + 1)
    no_longer_refutes = _first(
        lambda n: stats.binom.sf(counts - 2, n, delta) >= alpha, counts.size, most
    )
    gains_power = _first(
        lambda n: stats.binom.sf(counts - 1, n, high_rate) >= 1 - beta,
        counts.size,
        most,
    )
    candidates = np.concatenate(
        [becomes_critical, np.maximum(no_longer_refutes, gains_power), [most]]
    )
    candidates = np.unique(candidates[candidates <= most])
    return int(candidates[decides(candidates)][0])


def open_unit(**values: float) -> None:
    """Raise ValueError where a named number does not lie strictly between 0 and 1."""
    for name, value in values.items():
        if not 0 < value < 1:
            raise ValueError(f"{name} must lie strictly between 0 and 1, got {value!r}")


def largest_certified(trials: Any, delta: float, alpha: float) -> Any:
    """Return the largest count whose upper limit is at most delta, -1 where there is none."""
    count = stats.binom.ppf(alpha, trials, delta).astype(np.int64)
    for _ in range(2):
        count = count - (stats.binom.cdf(count, trials, delta) > alpha)
    return count


def smallest_refuted(trials: Any, delta: float, alpha: float) -> Any:
    """Return the smallest count whose lower limit exceeds delta, trials + 1 where there is none."""
    count = stats.binom.isf(alpha, trials, delta).astype(np.int64)
    for _ in range(2):
        count = count + (stats.binom.sf(count - 1, trials, delta) >= alpha)
    return count


def _first(holds: Callable[[np.ndarray], Any], size: int, most: int) -> np.ndarray:
    """Return, entry by entry, the smallest n in [1, most] at which a monotone condition holds, else most + 1."""
    low, high = np.ones(size, np.int64), np.full(size, most + 1, np.int64)
    while np.any(low < high):
        middle = (low + high) // 2
        held = holds(middle)
        low, high = np.where(held, low, middle + 1), np.where(held, middle, high)
    return low
