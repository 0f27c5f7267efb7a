"""The smallest size of a map that fresh draws certify: a search that may be wrong, a certificate that may not.

A *draw* is a fresh map of some size; it fails where its error is not at most eps, so also where it is not a number. A
size is good where a draw fails with a probability of at most delta. Nothing is assumed of how it depends on the size.

*The level.* Attempt k = 0, 1, ... certifies one size with draws of its own, at the level alpha_k = alpha (1 - s) s^k,
s = `LATER`. Which size that is, and whether there is an attempt at all, may depend on all draws before it. Given those,
the evidence of `engine.sequential` certifies a size that is not good with probability at most alpha_k, and so
does an attempt that may give up early. The levels add up to alpha. The upper limit of the failure probability comes
from the same evidence at the same level and holds at any time, so it is false with probability at most alpha as well.

*Sequential or fixed?* Draws until a size is certified, for delta = 0.05; exact, by `stopping.stopping_law`. The fixed
number is the smallest one with which exact limits certify that rate with probability 0.9; it must be chosen first.

    alpha                        0.001                        0.0001
    true rate                    0    delta/10  delta/4       0    delta/10  delta/4
    sequential, mean             158  219       363           205  287       480
    fixed                        135  220       417           180  312       547

A fixed number is better by 15% where no draw ever fails. Elsewhere it is no better even for the rate that it was chosen
for, and the rate is not known. So the evidence is sequential.

*Which size to attempt?* A larger one fails less often and is certified by fewer draws. The search aims at a rate of
`TARGET` * delta, as far as the errors that it saw tell. With errors eps (m0 / size)^(1/2) exp(s z), z standard normal,
delta = 0.05 and alpha = 0.001, means of 1,000 simulated searches from size 4 on, m0 = 700:

    s                                                    0.05  0.1   0.2   0.3
    certified size over the smallest good one, less 1    10%   20%   39%   58%
    draws                                                249   273   315   359
    of these, draws of the search                        40    38    45    53
    sizes                                                6.6   6.4   7.6   8.9
    attempts                                             1.14  1.17  1.29  1.44

The excess is close to exp(1.7 s) - 1, which is what a rate of delta / 8 in place of delta costs: it is the price of few
draws, and not of the grid. Aiming at 0.3 delta gives 14% for s = 0.1, with a quarter more draws; at 0.06 delta, 25%
with a tenth less. For alpha = 0.0001 the excess is the same, with a quarter more draws. Errors with a heavier tail than
the search believes in cost attempts: 2 where z has the Gumbel law. Errors that are all equal at a size are bisected.
"""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from proofs_check.certify._model import Outcome, Probe
from proofs_check.engine import limits, sequential

Trial = Callable[[int, int, int], float]
Report = Callable[[int, int, int, int], Any]

STEPS_PER_DOUBLING = 8
SEARCH = 0
"""Stage of the draws that search; attempts to certify are stages 1, 2, ..."""
AGAIN = 1_000
"""Stage of `certify_size`."""

LATER = 0.25
"""Share of the level that is left to the attempts after each one."""
TARGET = 0.125
"""The search aims at a failure probability of so many delta."""
PATIENCE = 2.5
"""An attempt takes at most so many times the draws that certify where none fails; four times as many where no larger
size is left."""
HOPELESS = 0.1
"""An attempt is given up where it would succeed with a smaller probability, given its draws and `PRIOR`."""
PRIOR = (0.5, 2.0)
"""Beta prior of the failure probability, the second one over delta: some delta / 4."""

_TOO_SMALL = 0.06
"""A size is left where good ones have so many failures with a smaller probability; for 0.05, two in eight draws."""
_TOO_SMALL_AT_THE_END = 1e-3
_FEWEST = 6
_LOOKS = 250
"""An attempt has about so many looks before it may end, one after every draw where fewer draws are needed."""
_CLEAR = 1.5
"""A size is good without more draws where its errors are so many of their deviations better than needed."""
_LEAST = 1 / 64
"""The search takes error / eps for this where it is below, and for one over this where it is above."""
_WINDOW = 2
_MOST_STEPS = 4
_SURE = 3
"""Draws of a size, after the first, without which no search ends because a size takes too long."""
_JUMPS = (2.0, 8.0)


def search(
    trial: Trial,
    *,
    smallest: int,
    largest: int,
    eps: float,
    delta: float,
    alpha: float,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    start: int | None = None,
    report: Report | None = None,
) -> Outcome:
    """Return the smallest size, as far as few draws can find it, whose failure probability is certified.

    `trial(size, stage, number)` draws a fresh map and returns its error; its randomness is independent for different
    arguments, and no arguments come twice. Sizes are those of `grid`. The search starts at `start`, by default
    `smallest`; a start that is too large costs expensive draws. `seconds` is the limit by `clock`: no draw starts that
    is not expected to end before it, and nothing starts that cannot lead to a certificate by then, by the mean time of
    the draws so far, in proportion to the size, and for a single draw to its cube. The two longest draws of a size do
    not count: the first may compile, and another may have been held up by what else the machine does. `report(size,
    stage, draws, failures)` is called after every draw.

    The result is certified with confidence 1 - alpha, whatever the errors are like. "too large" where `largest` fails
    too often or cannot be certified, "out of time" where the limit came first; neither is a statement at a level. What
    a trial raises passes through. Cost: see the module. Raises ValueError for delta outside (0, 1), alpha outside
    (0, 1/2], eps that is not positive, or not 1 <= smallest <= largest.
    """
    _validate(eps, delta, alpha)
    sizes = grid(smallest, largest)
    draws = _Draws(trial, eps, clock, seconds, report)
    level = alpha * (1 - LATER)
    hunt = _Hunt(draws, sizes, delta, _plan(delta, level, patient=False).fewest)
    top = len(sizes) - 1
    try:
        index = hunt.candidate(0 if start is None else min(int(np.searchsorted(sizes, start)), top))
        stage = SEARCH + 1
        while index is not None:
            upper = _attempt(draws, sizes[index], stage, delta, level, patient=index == top)
            if upper is not None:
                return Outcome(sizes[index], upper, alpha, "", draws.probes())
            index = hunt.larger(index)
            stage, level = stage + 1, level * LATER
    except _OutOfTime:
        return Outcome(None, 1.0, alpha, "out of time", draws.probes())
    return Outcome(None, 1.0, alpha, "too large", draws.probes())


def certify_size(
    trial: Trial,
    size: int,
    *,
    eps: float,
    delta: float,
    alpha: float,
    seconds: float,
    clock: Callable[[], float] = time.monotonic,
    report: Report | None = None,
    stage: int = AGAIN,
) -> Outcome:
    """Return whether one size is certified, by one attempt at level alpha with the draws of a stage.

    Arguments and errors are those of `search`. "too large" where "at most delta" is refuted at level alpha, or can
    no longer be certified by ten times as many draws as certify where none fails. The only probe has the draws;
    `failure_limits` of it is the statement on both sides, also where nothing is certified.
    """
    _validate(eps, delta, alpha)
    draws = _Draws(trial, eps, clock, seconds, report)
    try:
        upper = _attempt(draws, size, stage, delta, alpha, patient=True)
    except _OutOfTime:
        return Outcome(None, 1.0, alpha, "out of time", draws.probes())
    if upper is None:
        return Outcome(None, 1.0, alpha, "too large", draws.probes())
    return Outcome(size, upper, alpha, "", draws.probes())


def grid(smallest: int, largest: int) -> tuple[int, ...]:
    """Return `smallest`, `largest` and the whole numbers next to largest * 2^(-k / 8) between them, increasing."""
    if not 1 <= smallest <= largest:
        raise ValueError(f"sizes must satisfy 1 <= smallest <= largest, got {smallest} and {largest}")
    steps = np.arange(1 + math.floor(STEPS_PER_DOUBLING * math.log2(largest / smallest)))
    inner = np.rint(largest * 2.0 ** (-steps / STEPS_PER_DOUBLING)).astype(int)
    return tuple(sorted({smallest, largest, *np.clip(inner, smallest, largest).tolist()}))


def failure_limits(probe: Probe, alpha: float) -> tuple[float, float]:
    """Return (lower, upper) limits of the failure probability, each at level alpha, for a probe of one attempt."""
    lower, upper = sequential.binomial_limits(probe.failures, probe.draws, alpha)
    return float(lower), float(upper)


def quantiles(probe: Probe) -> tuple[float, float, float]:
    """Return the 5%, 50% and 95% points of the errors, each one of them; NaN counts as inf, and no draws give NaN."""
    if not probe.draws:
        return math.nan, math.nan, math.nan
    low, middle, high = np.quantile(_ordered(probe.errors), (0.05, 0.5, 0.95), method="inverted_cdf")
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
    count = int(stats.binom.ppf((1 - level) / 2, values.size, 0.5)) if values.size else 0
    if count == 0:
        return -math.inf, math.inf
    return float(values[count - 1]), float(values[values.size - count])


class _OutOfTime(Exception):
    """No certificate can be had in the time that is left."""


class _Times:
    """The seconds of the draws of one size: `count` of them."""

    def __init__(self) -> None:
        self.count = 0
        self._longest: list[float] = []
        self._others = 0.0

    def add(self, seconds: float) -> None:
        """Take one more draw in."""
        self.count += 1
        if len(self._longest) < 2:
            heapq.heappush(self._longest, seconds)
        else:
            self._others += heapq.heappushpop(self._longest, seconds)

    def usual(self) -> float:
        """Return the mean without the two longest: the first compiles, and any may be held up; the least of two."""
        return self._others / (self.count - 2) if self.count > 2 else self._longest[0]


class _Draws:
    """All draws so far, their errors and times, and the only place that draws.

    `errors`, `failures` and `seconds` are by (size, stage), in the order of the first draw.
    """

    def __init__(
        self, trial: Trial, eps: float, clock: Callable[[], float], seconds: float, report: Report | None
    ) -> None:
        self._eps = eps
        self.errors: dict[tuple[int, int], list[float]] = {}
        self.failures: dict[tuple[int, int], int] = {}
        self.seconds: dict[tuple[int, int], float] = {}
        self._trial, self._clock, self._report = trial, clock, report
        self._deadline = clock() + seconds
        self._logs: dict[int, list[float]] = {}
        self._times: dict[int, _Times] = {}

    def left(self) -> float:
        """Return the seconds that are left."""
        return self._deadline - self._clock()

    def cost(self, size: int) -> float:
        """Return the seconds that a draw will take, 0 where nothing is known."""
        near = self._nearest(size)
        return self._times[near].usual() * size / near if near else 0.0

    def longest(self, size: int) -> float:
        """Return the seconds that one draw takes at most, if they grow as the cube of the size."""
        near = self._nearest(size)
        return self.cost(size) * max(size / near, 1.0) ** 2 if near else 0.0

    def sure(self, size: int) -> bool:
        """Tell whether the cost of a size rests on draws enough, so that one which was held up does not decide."""
        near = self._nearest(size)
        return near > 0 and self._times[near].count > _SURE

    def _nearest(self, size: int) -> int:
        """Return the nearest size of which there are times, later ones than the first if possible; 0 without any."""
        if size in self._times and self._times[size].count > 1:
            return size
        known = [other for other, times in self._times.items() if times.count > 1] or self._times
        return min(known, key=lambda other: abs(math.log(other / size)), default=0)

    def draw(self, size: int, stage: int) -> bool:
        """Return whether a fresh draw fails. Raises _OutOfTime where it would not end in time."""
        start = self._clock()
        left = self._deadline - start
        if left <= 0 or self.longest(size) > left:
            raise _OutOfTime
        at = size, stage
        error = float(self._trial(size, stage, len(self.errors.get(at, ()))))
        spent = self._clock() - start
        self._times.setdefault(size, _Times()).add(spent)
        failed = not error <= self._eps
        self.errors.setdefault(at, []).append(error)
        ratio = math.inf if math.isnan(error) else error / self._eps
        self._logs.setdefault(size, []).append(math.log(min(max(ratio, _LEAST), 1 / _LEAST)))
        self.failures[at] = self.failures.get(at, 0) + failed
        self.seconds[at] = self.seconds.get(at, 0.0) + spent
        if self._report is not None:
            self._report(size, stage, len(self.errors[at]), self.failures[at])
        return failed

    def logs(self, size: int) -> np.ndarray:
        """Return log(error / eps) of all draws of a size, cut at those of _LEAST and 1 / _LEAST; NaN counts as inf."""
        return np.asarray(self._logs.get(size, ()), np.float64)

    def probes(self) -> tuple[Probe, ...]:
        """Return what was drawn: one probe a size for the search, and one an attempt."""
        return tuple(
            Probe(at[0], np.asarray(errors), self.failures[at], at[1] != SEARCH, self.seconds[at])
            for at, errors in self.errors.items()
        )


@dataclass(frozen=True)
class _Plan:
    """When an attempt ends: after looks[i] draws, with at most certified[i] or at least hopeless[i] failures.

    `first[count]` is the smallest number of draws that certifies with `count` failures, for all counts that occur.
    """

    looks: list[int]
    certified: list[int]
    hopeless: list[int]
    first: list[int]

    @property
    def fewest(self) -> int:
        """Return the draws that certify where none fails."""
        return self.first[0]


@lru_cache(maxsize=64)
def _plan(delta: float, alpha: float, *, patient: bool) -> _Plan:
    low, high = 0, 1
    while sequential.largest_certified(high, delta, alpha) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sequential.largest_certified(middle, delta, alpha) < 0 else (low, middle)
    block = math.ceil(high / _LOOKS)
    looks = block * np.arange(1, math.ceil(PATIENCE * (4 if patient else 1) * high / block) + 1)
    certified = sequential.largest_certified(looks, delta, alpha)
    last = int(certified[-1])
    hopeless = np.minimum(sequential.smallest_refuted(looks, delta, alpha), last + 1)
    for count in range(0 if patient else last, 0, -1):
        more = np.arange(last - count + 1)[:, None]
        clean = np.maximum(looks - count, 0)
        law = stats.betabinom.pmf(more, looks[-1] - looks, PRIOR[0] + count, PRIOR[1] / delta + clean)
        hopeless = np.where(law.sum(0) < HOPELESS, np.minimum(hopeless, count), hopeless)
    first = looks[np.searchsorted(certified, np.arange(last + 1))]
    return _Plan(looks.tolist(), certified.tolist(), np.maximum(hopeless, certified + 1).tolist(), first.tolist())


def _attempt(draws: _Draws, size: int, stage: int, delta: float, alpha: float, *, patient: bool) -> float | None:
    """Return an upper limit of the failure probability that is at most delta, None where the attempt fails."""
    plan = _plan(delta, alpha, patient=patient)
    failures = drawn = 0
    for look, certified, hopeless in zip(plan.looks, plan.certified, plan.hopeless, strict=True):
        while drawn < look:
            # What is certified last says how many more draws there must be; more failures than that end at the look.
            needed = plan.first[min(failures, len(plan.first) - 1)] - drawn
            if needed * draws.cost(size) > draws.left() and draws.sure(size):
                raise _OutOfTime
            failures += draws.draw(size, stage)
            drawn += 1
        if failures <= certified:
            return min(float(sequential.binomial_limits(failures, drawn, alpha)[1]), delta)
        if failures >= hopeless:
            break
    return None


class _Hunt:
    """Proposes sizes to certify, by indices of `sizes`. Nothing here has a level.

    `low` is the largest index that is too small, and `high` a larger one that was not, None where there is none.
    `fewest` is the smallest number of draws of an attempt.
    """

    def __init__(self, draws: _Draws, sizes: tuple[int, ...], delta: float, fewest: int) -> None:
        self._draws, self._sizes, self._delta, self._fewest = draws, sizes, delta, fewest
        self._low = -1
        self._high: int | None = None
        self._top = len(sizes) - 1
        self._quick = min(max(math.ceil(0.4 / delta), _FEWEST), 40)
        self._margin = float(-special.ndtri(TARGET * delta))
        self._clear: set[int] = set()

    def candidate(self, index: int) -> int | None:
        """Return an index to certify, None where even the largest size is too small; `index` is tried first."""
        while True:
            if self._passes(index):
                self._high = index
            else:
                self._low = index
                if index == self._top:
                    return None
                if self._high is not None and self._high <= index:
                    self._high = None
            if self._high is None:
                index = self._jump()
                continue
            high = self._high
            wanted, pooled = self._wanted(high)
            # Down by half of what is left at most, so that errors that tell nothing end in a bisection.
            middle = (self._low + high + 1) // 2
            index = min(max(wanted, middle), high + _MOST_STEPS, self._top)
            told = wanted >= middle or middle == high
            if not np.ptp(self._draws.logs(self._sizes[high])):
                index, told = middle, False
            if index in self._clear or (told and pooled >= 3 * self._quick):
                return index
            if told and abs(index - high) <= _WINDOW:
                index = high  # more draws tell as much there, and nothing has to be compiled
            needed = self._fewest * self._draws.cost(self._sizes[high])
            if needed <= self._draws.left() < needed + self._quick * self._draws.cost(self._sizes[index]):
                return high

    def larger(self, index: int) -> int | None:
        """Return the index after an attempt that failed, None where it was the last one."""
        if index == self._top:
            return None
        self._low = index - 1
        return min(max(self._wanted(index)[0], index + 1), index + _MOST_STEPS, self._top)

    def _errors(self, index: int) -> list[float]:
        return self._draws.errors.get((self._sizes[index], SEARCH), [])

    def _passes(self, index: int) -> bool:
        """Return whether a size may be good, after a few more draws of it."""
        size = self._sizes[index]
        level = _TOO_SMALL if index < self._top else _TOO_SMALL_AT_THE_END
        for _ in range(self._quick):
            self._draws.draw(size, SEARCH)
            count = len(self._errors(index))
            if self._draws.failures[size, SEARCH] >= max(2, _smallest_refuted(count, self._delta, level)):
                return False
            if count >= _FEWEST:
                logs = self._draws.logs(size)
                if -logs.mean() >= (self._margin + _CLEAR) * logs.std(ddof=1):
                    self._clear.add(index)
                    break
        return True

    def _jump(self) -> int:
        """Return an index above `low`, by how far the errors are off, and at which an attempt can be afforded."""
        sizes, draws = self._sizes, self._draws
        factor = float(np.clip(math.exp(2 * draws.logs(sizes[self._low]).mean()), *_JUMPS))
        least = self._low + 1
        index = max(int(np.searchsorted(sizes, factor * sizes[self._low], side="right")) - 1, least)
        while max(self._fewest * draws.cost(sizes[index]), draws.longest(sizes[index])) > draws.left():
            if index > least:
                index = (least + index) // 2
            elif draws.sure(sizes[index]):
                raise _OutOfTime
            else:
                draws.draw(sizes[self._low], SEARCH)
        return index

    def _wanted(self, near: int) -> tuple[int, int]:
        """Return the index that fails with probability TARGET * delta, and the number of draws behind it.

        They are the draws of sizes next to `near` that are not too small, as if errors were size^(-1/2) times a
        lognormal variable; as many of them as that probability allows, rounded up, may be off.
        """
        window = range(max(self._low + 1, near - _WINDOW), min(near + _WINDOW, self._top) + 1)
        logs = [self._draws.logs(self._sizes[i]) + math.log(self._sizes[i]) / 2 for i in window]
        pooled = np.sort(np.concatenate(logs))
        off = math.ceil(TARGET * self._delta * pooled.size)
        need = max(pooled.mean() + self._margin * pooled.std(), pooled[max(pooled.size - 1 - off, 0)])
        return int(np.searchsorted(np.log(self._sizes) / 2, need)), pooled.size


@lru_cache(maxsize=4096)
def _smallest_refuted(trials: int, delta: float, alpha: float) -> int:
    return int(limits.smallest_refuted(trials, delta, alpha))


def _validate(eps: float, delta: float, alpha: float) -> None:
    limits.open_unit(delta=delta, alpha=alpha)
    if alpha > 0.5:
        raise ValueError(f"alpha must be at most 1/2, got {alpha!r}")
    if not eps > 0:
        raise ValueError(f"eps must be positive, got {eps!r}")


def _ordered(errors: ArrayLike) -> np.ndarray:
    return np.sort(np.nan_to_num(np.asarray(errors, np.float64), nan=np.inf, posinf=np.inf, neginf=-np.inf))
