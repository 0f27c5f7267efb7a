"""All draws of a search so far, their errors, and the work that they took."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from proofs_check.certify._model import Probe

Trial = Callable[[int, int, int], float]
Report = Callable[[int, int, int, int], Any]
Work = Callable[[int, bool], float]
"""(size, whether it is the first of the size) -> the work of a draw, in a unit of the caller's."""

SEARCH = 0
"""Stage of the draws that search; attempts to certify are stages 1, 2, ..."""
_LEAST = 1 / 64
"""Ratios of an error to eps below this, or above its inverse, count as that."""


class OutOfTime(Exception):
    """No certificate can be had with the work, or in the time, that is left."""


class Draws:
    """All draws so far, and the only place that draws.

    `errors` and `failures` are by (size, stage), in the order of the first draw.
    """

    def __init__(
        self, trial: Trial, eps: float, work: Work, most: float, report: Report | None
    ) -> None:
        self._eps = eps
        self.errors: dict[tuple[int, int], list[float]] = {}
        self.failures: dict[tuple[int, int], int] = {}
        self._trial, self._work, self._report = trial, work, report
        self._left = most
        self._logs: dict[int, list[float]] = {}

    def left(self) -> float:
        """Return the work that is left."""
        return self._left

    def cost(self, size: int) -> float:
        """Return the work of a draw."""
        return self._work(size, False)

    def draw(self, size: int, stage: int) -> bool:
        """Return whether a fresh draw fails. Raises OutOfTime where it would take more than what is left."""
        takes = self._work(size, size not in self._logs)
        if self._left <= 0 or takes > self._left:
            raise OutOfTime
        at = size, stage
        error = float(self._trial(size, stage, len(self.errors.get(at, ()))))
        self._left -= takes
        failed = not error <= self._eps
        self.errors.setdefault(at, []).append(error)
        ratio = math.inf if math.isnan(error) else error / self._eps
        self._logs.setdefault(size, []).append(
            math.log(min(max(ratio, _LEAST), 1 / _LEAST))
        )
        self.failures[at] = self.failures.get(at, 0) + failed
        if self._report is not None:
            self._report(size, stage, len(self.errors[at]), self.failures[at])
        return failed

    def logs(self, size: int) -> np.ndarray:
        """Return log(error / eps) of all draws of a size, cut at those of _LEAST and 1 / _LEAST; NaN counts as inf."""
        return np.asarray(self._logs.get(size, ()), np.float64)

    def probes(self) -> tuple[Probe, ...]:
        """Return what was drawn: one probe a size for the search, and one an attempt."""
        return tuple(
            Probe(at[0], np.asarray(errors), self.failures[at], at[1] != SEARCH)
            for at, errors in self.errors.items()
        )
