"""The smallest size of a map that fresh draws certify: a search that may be wrong, a certificate that may not.

A *draw* is a fresh map of some size. It fails if its error is not at most eps, so also if it is NaN. A size is good
if a draw fails with a probability of at most delta. Nothing is assumed about how that depends on the size.

*The search.* Sizes lie on a grid with steps of 2^(1/8). From the start the size is doubled until one passes a short
look, a few draws. Then the steps between that size and the last one that did not pass are halved. Such a search is
optimistic: it stops where luck was good. So its draws count for nothing.

*The judgement.* The chosen size is judged by fresh draws, with evidence that is valid at every look
(`engine.sequential`). If it fails, the size two steps up is judged with draws of its own.

*The level.* The k-th judgement (k = 0, 1, ...) has the level alpha (1 - s) s^k, s = `LATER`. Which size that is, and
whether there is such a judgement at all, may depend on all draws before it. Given those draws, a size that is not good
is certified with a probability of at most that level. The levels add up to alpha. The upper limit of the failure
probability comes from the same evidence, and is false with a probability of at most alpha as well.
"""

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from proofs_check.engine import limits, sequential

# Numbers in the comments are of 60 simulated searches each, with errors that are lognormal or lognormal with a
# Gumbel tail, of a spread of 5, 15 and 40 %.
STEPS = 8
"""Sizes in a doubling. With 4, sizes are up to 19 % larger than necessary; 16 take more draws, and gain 4 % at most."""
LOOK = 16
"""Draws of a short look. With 12, a search takes 5 to 10 % more draws, since more sizes that are judged fail."""
MARGIN = 2.5
"""A size passes if log eps is so many standard deviations above the mean of the log errors. With 2, skewed errors
take 3.4 judgements in place of 2.4; with 3, sizes are up to 40 % larger."""
LATER = 0.25
"""Share of the level that is left after each judgement. With 0.5, the first one takes a tenth more draws."""
PATIENCE = 3
"""A judgement takes at most so many times the draws that certify if none fails. With 2, sizes are 10 % larger."""
UP = 2
"""Steps up after a judgement that failed. With 1, skewed errors take 30 % more draws; with 4, sizes are 15 % larger."""
_SMALLEST_RATIO = 1 / 64

Trial = Callable[[int, int, int], float]
"""(size, stage, number) -> the error of a fresh draw. Its randomness is independent for different arguments."""
Report = Callable[[int, int, int], None]
"""Called after every draw with the size, and the draws and failures at this size and stage."""


class OutOfTime(Exception):
    """The deadline came before the next draw."""


@dataclass(frozen=True)
class Probe:
    """Draws of a map at one size; `stage` is 0 for a short look, and k for the k-th judgement."""

    size: int
    stage: int
    errors: list[float]
    failures: int


@dataclass(frozen=True)
class Outcome:
    """What a short look or a judgement found.

    Attributes
    ----------
    size : the size to judge, or the certified size; None without one.
    upper : upper limit of the failure probability at that size; 1 if it is not certified.
    alpha : the level of all judgements together.
    stopped : "" if there is a size, "too large" if even the largest one fails, "out of time"; the caller may say "too
        dear".
    probes : all draws.
    """

    size: int | None
    upper: float
    alpha: float
    stopped: str
    probes: list[Probe]


class Draws:
    """All draws of a search so far, and the only place that draws."""

    def __init__(self, trial: Trial, eps: float, report: Report | None = None) -> None:
        """Begin without a draw."""
        self.eps = eps
        self.trial = trial
        self.report = report
        self.errors: dict[tuple[int, int], list[float]] = {}
        self.failures: Counter[tuple[int, int]] = Counter()

    def draw(self, size: int, stage: int) -> int:
        """Draw once, and return how many draws of this size and stage have failed."""
        at = (size, stage)
        # Before the list is made: the trial may raise, and a probe has one error at least.
        error = float(self.trial(size, stage, len(self.errors.get(at, ()))))
        errors = self.errors.setdefault(at, [])
        errors.append(error)
        self.failures[at] += not error <= self.eps
        if self.report is not None:
            self.report(size, len(errors), self.failures[at])
        return self.failures[at]

    def probes(self) -> list[Probe]:
        """Return all draws by size and stage, in the order of the first draw."""
        return [
            Probe(size, stage, errors, self.failures[size, stage])
            for (size, stage), errors in self.errors.items()
        ]


def look(
    trial: Trial,
    sizes: list[int],
    *,
    start: int,
    eps: float,
    report: Report | None = None,
) -> Outcome:
    """Return the smallest of the ascending sizes that passes a short look, as far as few draws can find it.

    It is the size to judge. The search begins at the first size that is at least `start`. `OutOfTime`, raised by the
    trial, ends it; other exceptions pass through.
    """
    draws = Draws(trial, eps, report)
    last = len(sizes) - 1
    first = min(int(np.searchsorted(sizes, start)), last)
    try:
        index = _candidate(draws, sizes, first)
    except OutOfTime:
        return Outcome(None, 1.0, 0.0, "out of time", draws.probes())
    if index is None:
        return Outcome(None, 1.0, 0.0, "too large", draws.probes())
    return Outcome(sizes[index], 1.0, 0.0, "", draws.probes())


def certify_from(
    trial: Trial,
    sizes: list[int],
    size: int,
    *,
    eps: float,
    delta: float,
    alpha: float,
    report: Report | None = None,
) -> Outcome:
    """Return the first of the sizes, from `size` on and in steps up, that is certified at the level alpha.

    The result holds with confidence 1 - alpha, whatever the errors are like and however the size was chosen, if the
    choice does not depend on the draws of stages above 0. `OutOfTime` ends it as it ends `look`.
    """
    draws = Draws(trial, eps, report)
    stage = 1
    level = alpha * (1 - LATER)
    left = [larger for larger in sizes if larger >= size]
    try:
        while left:
            upper = judge(draws, left[0], stage, delta, level)
            if upper is not None:
                return Outcome(left[0], upper, alpha, "", draws.probes())
            # The last size is always judged.
            left = left[UP:] or left[1:][-1:]
            stage += 1
            level *= LATER
    except OutOfTime:
        return Outcome(None, 1.0, alpha, "out of time", draws.probes())
    return Outcome(None, 1.0, alpha, "too large", draws.probes())


def grid(smallest: int, largest: int) -> list[int]:
    """Return both ends, and the whole numbers next to largest * 2^(-k / STEPS) between them, ascending."""
    count = math.floor(STEPS * math.log2(largest / smallest))
    inner = np.rint(largest * 2.0 ** (-np.arange(count + 1) / STEPS)).astype(int)
    return sorted({smallest, largest, *np.clip(inner, smallest, largest).tolist()})


def judge(
    draws: Draws, size: int, stage: int, delta: float, alpha: float
) -> float | None:
    """Return an upper limit of the failure probability that is at most delta, or None if the size is given up."""
    rule = rule_of(delta, alpha)
    for number, certified in enumerate(rule.certified, 1):
        failures = draws.draw(size, stage)
        if failures <= certified:
            upper = sequential.binomial_limits(failures, number, alpha)[1]
            return min(float(upper), delta)
        if failures > rule.tolerated[number - 1]:
            break
    return None


@dataclass(frozen=True)
class Rule:
    """When a judgement ends: after n draws with at most certified[n - 1] failures, or with more than tolerated[n - 1].

    The evidence is valid whenever the draws end, so giving up costs some good sizes, and no truth.
    """

    certified: list[int]
    tolerated: list[int]


@lru_cache(maxsize=64)
def rule_of(delta: float, alpha: float) -> Rule:
    """Return the rule of a judgement at the level alpha."""
    counts = np.arange(1, PATIENCE * fewest_draws(delta, alpha) + 1)
    certified = sequential.largest_certified(counts, delta, alpha)
    # A good size seldom has more failures than delta allows on average, and comes back as a larger one. The last
    # number is what the last draw may still certify.
    tolerated = np.minimum(np.maximum(delta * counts, 1).astype(int), certified[-1])
    return Rule(certified.tolist(), tolerated.tolist())


def fewest_draws(delta: float, alpha: float) -> int:
    """Return how many draws certify a size if none of them fails."""
    limits.open_unit(delta=delta, alpha=alpha)
    low, high = 0, 1
    while sequential.largest_certified(high, delta, alpha) < 0:
        low, high = high, 2 * high
    counts = np.arange(low, high + 1)
    return int(
        counts[np.argmax(sequential.largest_certified(counts, delta, alpha) >= 0)]
    )


def _candidate(draws: Draws, sizes: list[int], start: int) -> int | None:
    """Return the index of the size to judge, or None if even the largest one does not pass."""
    last = len(sizes) - 1
    low = -1
    high = start
    while not _passes(draws, sizes[high]):
        if high == last:
            return None
        low = high
        high = min(high + STEPS, last)
    while high - low > 1:
        middle = (low + high) // 2
        if _passes(draws, sizes[middle]):
            high = middle
        else:
            low = middle
    return high


def _passes(draws: Draws, size: int) -> bool:
    """Return whether no draw of a short look fails, and eps lies well above the errors."""
    for _ in range(LOOK):
        if draws.draw(size, stage=0):
            return False
    ratios = np.array(draws.errors[size, 0]) / draws.eps
    # Errors of 0 have no logarithm.
    logs = np.log(np.maximum(ratios, _SMALLEST_RATIO))
    return bool(logs.mean() + MARGIN * logs.std(ddof=1) <= 0)
