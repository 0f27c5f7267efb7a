"""The smallest size of a map that fresh draws certify: a search that may be wrong, a certificate that may not.

A *draw* is a fresh map of some size; it fails where its error is not at most eps, so also where it is not a number. A
size is good where a draw fails with a probability of at most delta. Nothing is assumed of how it depends on the size.

*The level.* Attempt k = 0, 1, ... certifies one size with draws of its own, at the level alpha_k = alpha (1 - s) s^k,
s = `LATER`. Which size that is, and whether there is an attempt at all, may depend on all draws before it. Given those,
the evidence of `engine.sequential` certifies a size that is not good with probability at most alpha_k, and so
does an attempt that may give up early. The levels add up to alpha. The upper limit of the failure probability comes
from the same evidence at the same level and holds at any time, so it is false with probability at most alpha as well.

*Sequential or fixed?* A fixed number of draws is better by 15 % where no draw ever fails. Elsewhere it is no better,
even for the rate for which it was chosen, and the rate is not known. So the evidence is sequential.

*Which size to attempt?* A larger one fails less often and is certified by fewer draws. The search aims at a rate of
`target` * delta, as far as the errors that it saw tell; docs/certificates.md shows what both cost. Errors that are all
equal at a size are bisected.
"""

import math
from functools import lru_cache

import numpy as np
from scipy import special

from proofs_check.certify._attempts import attempt, plan_of
from proofs_check.certify._draws import SEARCH, Draws, OutOfTime, Report, Trial, Work
from proofs_check.certify._model import Outcome
from proofs_check.engine import limits

STEPS_PER_DOUBLING = 8
LATER = 0.25
"""Share of the level that is left to the attempts after each one."""
TARGET = 0.125
"""The search aims at this share of delta as the failure probability, unless it is told another."""
_TOO_SMALL = 0.06
"""A size is dropped when a good one would fail as often with a smaller probability than this; for delta = 0.05, after
two failures in eight draws."""
_TOO_SMALL_AT_THE_END = 1e-3
_FEWEST = 6
_CLEAR = 1.5
"""A size needs no more draws when its errors are this many of their deviations better than needed."""
_WINDOW = 2
_MOST_STEPS = 4
_JUMPS = (2.0, 8.0)


def search(
    trial: Trial,
    *,
    smallest: int,
    largest: int,
    eps: float,
    delta: float,
    alpha: float,
    work: Work = lambda *_: 0.0,
    most: float = math.inf,
    start: int | None = None,
    target: float = TARGET,
    report: Report | None = None,
) -> Outcome:
    """Return the smallest size, as far as few draws can find it, whose failure probability is certified.

    `trial(size, stage, number)` draws a fresh map and returns its error; its randomness is independent for different
    arguments, and no arguments come twice. Sizes are those of `grid`. The search starts at `start`, by default
    `smallest`; a start that is too large costs expensive draws. It aims at a failure probability of `target` * delta.
    `work(size, first)` is what a draw takes, the first of a size perhaps more, and `most` the limit of their sum: no
    draw starts that would exceed it, and nothing that cannot lead to a certificate within it.
    `report(size, stage, draws, failures)` is called after every draw.

    The result is certified with confidence 1 - alpha, whatever the errors are like. "too large" where `largest` fails
    too often or cannot be certified, "out of work" where the limit came first; neither is a statement at a level. What
    a trial raises passes through. Cost: see the module. Raises ValueError for delta outside (0, 1), alpha outside
    (0, 1/2], eps that is not positive, or not 1 <= smallest <= largest.
    """
    _validate(eps, delta, alpha)
    sizes = grid(smallest, largest)
    draws = Draws(trial, eps, work, most, report)
    level = alpha * (1 - LATER)
    hunt = _Sizes(
        draws, sizes, delta, target * delta, plan_of(delta, level, patient=False).fewest
    )
    top = len(sizes) - 1
    try:
        index = hunt.candidate(
            0 if start is None else min(int(np.searchsorted(sizes, start)), top)
        )
        stage = SEARCH + 1
        while index is not None:
            upper = attempt(
                draws, sizes[index], stage, delta, level, patient=index == top
            )
            if upper is not None:
                return Outcome(sizes[index], upper, alpha, "", draws.probes())
            index = hunt.larger(index)
            stage, level = stage + 1, level * LATER
    except OutOfTime:
        return Outcome(None, 1.0, alpha, "out of work", draws.probes())
    return Outcome(None, 1.0, alpha, "too large", draws.probes())


def grid(smallest: int, largest: int) -> tuple[int, ...]:
    """Return `smallest`, `largest` and the whole numbers next to largest * 2^(-k / 8) between them, increasing."""
    if not 1 <= smallest <= largest:
        raise ValueError(
            f"sizes must satisfy 1 <= smallest <= largest, got {smallest} and {largest}"
        )
    steps = np.arange(
        1 + math.floor(STEPS_PER_DOUBLING * math.log2(largest / smallest))
    )
    inner = np.rint(largest * 2.0 ** (-steps / STEPS_PER_DOUBLING)).astype(int)
    return tuple(
        sorted({smallest, largest, *np.clip(inner, smallest, largest).tolist()})
    )


class _Sizes:
    """Proposes sizes to certify, by indices of `sizes`. Nothing here has a level.

    `low` is the largest index that is too small, and `high` a larger one that was not, None where there is none.
    `rate` is the failure probability that is aimed at, and `fewest` the smallest number of draws of an attempt.
    """

    def __init__(
        self,
        draws: Draws,
        sizes: tuple[int, ...],
        delta: float,
        rate: float,
        fewest: int,
    ) -> None:
        self._draws, self._sizes, self._delta, self._rate, self._fewest = (
            draws,
            sizes,
            delta,
            rate,
            fewest,
        )
        self._low = -1
        self._high: int | None = None
        self._top = len(sizes) - 1
        self._quick = min(max(math.ceil(0.4 / delta), _FEWEST), 40)
        self._margin = float(-special.ndtri(rate))
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
            informative = wanted >= middle or middle == high
            if not np.ptp(self._draws.logs(self._sizes[high])):
                index, informative = middle, False
            if index in self._clear or (informative and pooled >= 3 * self._quick):
                return index
            if informative and abs(index - high) <= _WINDOW:
                index = high  # more draws tell as much there, and nothing has to be compiled
            needed = self._fewest * self._draws.cost(self._sizes[high])
            if (
                needed
                <= self._draws.left()
                < needed + self._quick * self._draws.cost(self._sizes[index])
            ):
                return high

    def larger(self, index: int) -> int | None:
        """Return the index after an attempt that failed, None where it was the last one."""
        if index == self._top:
            return None
        self._low = index - 1
        return min(
            max(self._wanted(index)[0], index + 1), index + _MOST_STEPS, self._top
        )

    def _errors(self, index: int) -> list[float]:
        return self._draws.errors.get((self._sizes[index], SEARCH), [])

    def _passes(self, index: int) -> bool:
        """Return whether a size may be good, after a few more draws of it."""
        size = self._sizes[index]
        level = _TOO_SMALL if index < self._top else _TOO_SMALL_AT_THE_END
        for _ in range(self._quick):
            self._draws.draw(size, SEARCH)
            count = len(self._errors(index))
            if self._draws.failures[size, SEARCH] >= max(
                2, _smallest_refuted(count, self._delta, level)
            ):
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
        factor = float(
            np.clip(math.exp(2 * draws.logs(sizes[self._low]).mean()), *_JUMPS)
        )
        least = self._low + 1
        index = max(
            int(np.searchsorted(sizes, factor * sizes[self._low], side="right")) - 1,
            least,
        )
        while self._fewest * draws.cost(sizes[index]) > draws.left():
            if index == least:
                raise OutOfTime
            index = (least + index) // 2
        return index

    def _wanted(self, near: int) -> tuple[int, int]:
        """Return the index that fails with the probability that is aimed at, and the number of draws behind it.

        They are the draws of sizes next to `near` that are not too small, as if errors were size^(-1/2) times a
        lognormal variable; as many of them as that probability allows, rounded up, may be off.
        """
        window = range(
            max(self._low + 1, near - _WINDOW), min(near + _WINDOW, self._top) + 1
        )
        logs = [
            self._draws.logs(self._sizes[i]) + math.log(self._sizes[i]) / 2
            for i in window
        ]
        pooled = np.sort(np.concatenate(logs))
        off = math.ceil(self._rate * pooled.size)
        need = max(
            pooled.mean() + self._margin * pooled.std(),
            pooled[max(pooled.size - 1 - off, 0)],
        )
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
