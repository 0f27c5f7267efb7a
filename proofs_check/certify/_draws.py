"""All draws of a search so far, their errors and times, and what a draw of another size will take."""

import heapq
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from proofs_check.certify._model import Probe

Trial = Callable[[int, int, int], float]
Report = Callable[[int, int, int, int], Any]

SEARCH = 0
"""Stage of the draws that search; attempts to certify are stages 1, 2, ..."""
_LEAST = 1 / 64
"""Ratios of an error to eps below this, or above its inverse, count as that."""
_SURE = 3
"""A search ends because a size takes too long only after more draws of it than this."""


class OutOfTime(Exception):
    """No certificate can be had in the time that is left."""


class Times:
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


class Draws:
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
        self._times: dict[int, Times] = {}

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
        """Return whether a fresh draw fails. Raises OutOfTime where it would not end in time."""
        start = self._clock()
        left = self._deadline - start
        if left <= 0 or self.longest(size) > left:
            raise OutOfTime
        at = size, stage
        error = float(self._trial(size, stage, len(self.errors.get(at, ()))))
        spent = self._clock() - start
        self._times.setdefault(size, Times()).add(spent)
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
