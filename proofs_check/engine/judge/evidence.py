"""What all rules share: bounds that are checked, precision, and the numbers of a sample."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from proofs_check.claim import Evidence, Setting, Verdict

ROUNDING = 1e4
LOOK = 128
"""A sequential run looks at a tail bound after every so many trials."""

RuleName = Literal["fixed", "sequential"]
EPS = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Case:
    """What a rule judges: a statement, a sample for each of its settings, and the error rate that it may spend.

    `eps` is the precision of the statistics, and `rule` says how counts are judged.
    """

    statement: Any
    settings: Sequence[Setting]
    samples: Sequence[np.ndarray]
    alpha: float
    eps: float
    rule: RuleName

    @property
    def level(self) -> float:
        """The share of a setting."""
        return self.alpha / len(self.settings)

    def pairs(self) -> Iterator[tuple[Setting, np.ndarray]]:
        """Return settings and samples side by side."""
        return zip(self.settings, self.samples, strict=True)

    def verdict(
        self,
        status: str,
        because: str,
        evidence: Sequence[Evidence],
        slack: float = math.nan,
        **facts: Any,
    ) -> Verdict:
        """Return a verdict with its evidence, which says how many statistics are not finite."""
        bad = sum(int(e.facts["not_finite"]) for e in evidence)
        if bad:
            because += f" ({bad} statistics are not finite)"
        known = [
            e.facts["slack"]
            for e in evidence
            if not math.isnan(e.facts.get("slack", math.nan))
        ]
        if known:
            facts = {
                "slack_median": float(np.median(known)),
                "slack_largest": max(known),
                **facts,
            }
        least = min(known, default=slack)
        return Verdict(
            status,
            because,
            least,
            self.alpha,
            tuple(evidence),
            {"not_finite": bad, **facts},
        )


class InvalidSetting(ValueError):
    """A setting does not satisfy the hypotheses of the statement that is tried there."""


def checked_bound(
    bound: Callable[[Setting], Any], setting: Setting
) -> tuple[float, float]:
    """Return (value, delta) of a bound at a setting, delta = 1 - probability.

    Raises InvalidSetting where the hypotheses do not hold, ValueError where the bound is not a number.
    """
    return checked(bound(setting), setting)


def checked(right: Any, setting: Setting) -> tuple[float, float]:
    """Return (value, delta) of a bound, with the errors of `checked_bound`."""
    if not bool(right.valid):
        raise InvalidSetting(
            f"the hypotheses of {right.source} do not hold at setting {setting.name!r}"
        )
    value, delta = float(right.value), 1.0 - float(right.probability)
    if math.isnan(value) or math.isnan(delta) or delta < -1e-6:
        raise ValueError(
            f"{right.source} at setting {setting.name!r} must be a number with a probability of at most 1, "
            f"got value {value} and probability {right.probability}"
        )
    return value, max(delta, 0.0)


def at_least(setting: Setting, sample: np.ndarray, fewest: int) -> np.ndarray:
    """Return the statistics of a setting. Raises ValueError where there are fewer than `fewest`."""
    if sample.size < fewest:
        raise ValueError(
            f"at least {fewest} trial(s) are needed at setting {setting.name!r}, got {sample.size}"
        )
    return np.asarray(sample, np.float64).ravel()


def count_not_finite(sample: np.ndarray) -> int:
    """Return how many statistics are not finite."""
    return int(np.count_nonzero(~np.isfinite(sample)))


def nan_to_inf(value: float) -> float:
    """Return a number, infinity where it is none."""
    return math.inf if math.isnan(value) else value


def mean_of(sample: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error, both NaN where a statistic is not finite."""
    if count_not_finite(sample):
        return math.nan, math.nan
    return float(np.mean(sample)), float(np.std(sample, ddof=1)) / math.sqrt(
        sample.size
    )


def upper_quantile(sample: np.ndarray, level: float) -> float:
    """Return the smallest order statistic with at least a fraction `level` at or below it, NaN counting as inf."""
    rank = max(math.ceil(level * sample.size - 1e-9), 1) - 1
    return nan_to_inf(float(np.sort(sample)[rank]))


def ratio(value: float, quantile: float) -> float:
    """Return a bound over the quantile of what it bounds, NaN where that is not positive."""
    return value / quantile if quantile > 0 else math.nan


def constant(sample: np.ndarray) -> bool:
    """Tell whether a statistic took one value alone in several trials, so that it tells nothing of a slack."""
    return sample.size > 1 and bool(np.ptp(sample) == 0)


def ratio_of_logs(claimed: float, found: float) -> float:
    """Return a probability that is claimed over one that was found, from their logs; NaN where nothing was found."""
    return math.exp(min(claimed - found, 700.0)) if found > -math.inf else math.nan


def power(log_of: float) -> str:
    """Return a probability that may be too small to be written out, from its logarithm: as a power of ten."""
    if -9 < log_of < 9 or log_of == -math.inf:
        return f"{math.exp(log_of):.4g}"
    exponent = log_of / math.log(10)
    return f"10^{exponent:.4g}" if abs(exponent) < 1e4 else f"10^{exponent:.0f}"


def log(value: float) -> float:
    """Return the logarithm, minus infinity of zero."""
    return math.log(value) if value > 0 else -math.inf
