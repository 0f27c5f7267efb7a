"""Time functions in turns, and compare their times round by round."""

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
from scipy import stats

from benchmarks._case import Run, Work

PAUSE = 0.05
"""Seconds between calls: threads of OpenBLAS and OpenMP spin after their work, which would slow whoever comes next."""

AWAKE = 0.1
"""Seconds of calls of which the last counts: threads that have slept wake on one core, and share it at first."""

LEVEL = 0.95

REPEATED = 0.15
"""How far from their median the times of a peer may be: otherwise no ratio is published."""


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios and an interval for the median of their law, with its exact coverage."""

    median: float
    low: float
    high: float
    coverage: float


def paired_ratio(numerators: Sequence[float], denominators: Sequence[float]) -> Ratio:
    """Compare two functions over rounds: order statistics of the ratios bound their median, whatever their law is.

    The k-th smallest of n and the k-th largest enclose the median with probability 1 - 2 P(Bin(n, 1/2) < k); k is the
    largest that gives 95 %, or 1 where fewer than 6 rounds give less.
    """
    ratios = sorted(float(a / b) for a, b in zip(numerators, denominators, strict=True))
    n = len(ratios)
    k = max(int(stats.binom.ppf((1 - LEVEL) / 2, n, 0.5)), 1)
    coverage = 1 - 2 * float(stats.binom.cdf(k - 1, n, 0.5))
    return Ratio(
        statistics.median(ratios), ratios[k - 1], ratios[n - k], max(coverage, 0.0)
    )


def repeats(times: Sequence[float]) -> bool:
    """Tell whether the middle half of the times is within 15 % of their median."""
    ordered, quarter = sorted(times), len(times) // 4
    low, high = ordered[quarter], ordered[-1 - quarter]
    return max(
        high - statistics.median(times), statistics.median(times) - low
    ) <= REPEATED * statistics.median(times)


class Compilations:
    """What XLA has compiled in this process since it was made: how many programs, and the seconds they took."""

    _TIMED = (
        "/jax/core/compile/jaxpr_to_mlir_module_duration",
        "/jax/core/compile/backend_compile_duration",
    )

    def __init__(self) -> None:
        """Listen from now on."""
        self.count, self.seconds = 0, 0.0
        jax.monitoring.register_event_duration_secs_listener(self._hear)

    def _hear(self, event: str, duration_secs: float, **_: Any) -> None:
        if event in self._TIMED:
            self.seconds += duration_secs
            self.count += event == self._TIMED[1]


COMPILATIONS = Compilations()


def timed(function: Run, *, first: bool = False) -> tuple[float, Any]:
    """Return the seconds that a call takes until its result is there, and the result: of several if it is short."""
    time.sleep(PAUSE)
    begun = time.perf_counter()
    while True:
        start = time.perf_counter()
        result = jax.block_until_ready(function())
        now = time.perf_counter()
        if first or now - begun >= AWAKE:
            return now - start, result
        del result


@dataclass(frozen=True)
class Times:
    """The times of a case, in seconds by round; `first` and `compiling` are of the first call of ours.

    `recompiled` counts programs compiled while ours was timed: it should be none. `floor` maps part -> library ->
    times.
    """

    first: float
    compiling: float
    recompiled: int
    ours: list[float]
    peers: dict[str, list[float]]
    floor: dict[str, dict[str, list[float]]]
    checked: dict[str, float]

    def best(self) -> dict[str, str]:
        """Return the fastest library of each part of the floor, by its median."""
        return {
            part: min(
                (statistics.median(times), name) for name, times in libraries.items()
            )[1]
            for part, libraries in self.floor.items()
        }

    def floor_times(self) -> list[float]:
        """Return the time of the floor in each round: the sum over its parts, each by its fastest library."""
        chosen = [self.floor[part][library] for part, library in self.best().items()]
        return [sum(times) for times in zip(*chosen, strict=True)]


def measure(work: Work, rounds: int) -> Times:
    """Warm everything up, check that the work is the same, then time it in turns.

    The order rotates from round to round, so that nobody always follows the same neighbour.
    Raises Disagreement as the check does.
    """
    seconds, programs = COMPILATIONS.seconds, COMPILATIONS.count
    first, result = timed(work.ours, first=True)
    compiling = COMPILATIONS.seconds - seconds
    ours = work.keep(result)
    del result
    peers = {
        name: work.keep(timed(function)[1]) for name, function in work.peers.items()
    }
    checked = {name: float(value) for name, value in work.check(ours, peers).items()}
    del ours, peers
    floor: dict[str, dict[str, list[float]]] = {
        part.name: {name: [] for name in part.libraries} for part in work.floor
    }
    for part in work.floor:
        for function in part.libraries.values():
            timed(function)

    own: list[float] = []
    theirs: dict[str, list[float]] = {name: [] for name in work.peers}
    turns = [(work.ours, own)]
    turns += [(function, theirs[name]) for name, function in work.peers.items()]
    turns += [
        (function, floor[part.name][name])
        for part in work.floor
        for name, function in part.libraries.items()
    ]
    recompiled = 0
    for turn in range(rounds):
        start = turn % len(turns)
        for function, times in turns[start:] + turns[:start]:
            programs = COMPILATIONS.count
            times.append(timed(function)[0])
            if times is own:
                recompiled += COMPILATIONS.count - programs
    return Times(first, compiling, recompiled, own, theirs, floor, checked)


@dataclass(frozen=True)
class Exponent:
    """The slope of log values over log sizes by least squares, and its 95 % interval under normal errors."""

    slope: float
    low: float
    high: float


def exponent(sizes: Sequence[float], values: Sequence[float]) -> Exponent | None:
    """Return the exponent of growth; None where a value is not positive, or there are fewer than three."""
    import numpy as np

    if len(sizes) < 3 or min(values) <= 0:
        return None
    fit = stats.linregress(np.log(sizes), np.log(values))
    half = float(stats.t.ppf((1 + LEVEL) / 2, len(sizes) - 2) * fit.stderr)
    return Exponent(float(fit.slope), float(fit.slope) - half, float(fit.slope) + half)
