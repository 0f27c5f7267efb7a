"""When a run ends that may stop at each look at the evidence of `sequential`, and how many trials it needs."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy import special, stats

from proofs_check.engine import limits
from proofs_check.engine.limits import open_unit
from proofs_check.engine.sequential import largest_certified, smallest_refuted


@dataclass(frozen=True)
class StoppingLaw:
    """When, and by which verdict, a run ends that stops at the first look that decides.

    Attributes
    ----------
    looks : numbers of trials after which one looks, increasing, shape (k,).
    refuted, certified : probabilities of ending at each look, by each verdict, shape (k,).
    """

    looks: np.ndarray
    refuted: np.ndarray
    certified: np.ndarray

    @property
    def undecided(self) -> float:
        """Return the probability that the last look leaves it open."""
        return max(1.0 - float(self.refuted.sum() + self.certified.sum()), 0.0)

    @property
    def expected_trials(self) -> float:
        """Return the expected number of trials; a run that stays open counts with those of the last look."""
        stopped = self.refuted + self.certified
        return float(stopped @ self.looks) + self.undecided * float(self.looks[-1])

    def quantile(self, level: float) -> float:
        """Return the first look by which the run has ended with probability `level`, inf where there is none."""
        reached = np.flatnonzero(np.cumsum(self.refuted + self.certified) >= level)
        return float(self.looks[reached[0]]) if reached.size else math.inf


def stopping_law(
    rate: float, delta: float, alpha: float, looks: ArrayLike
) -> StoppingLaw:
    """Return the exact law of the end of a run whose trials violate independently with probability `rate`.

    The evidence on either side, each at level `alpha`, is looked at after the numbers of trials `looks`, which are
    positive and increase, or ValueError. Computed by forward recursion over the counts that are still open; steps
    with a probability below 1e-30 are left out. Cost: looks times open counts times violations a step.
    """
    times = np.asarray(looks, np.int64)
    return law_of_ends(
        rate,
        times,
        largest_certified(times, delta, alpha),
        smallest_refuted(times, delta, alpha),
    )


def law_of_ends(
    rate: float, looks: ArrayLike, certified: ArrayLike, refuted: ArrayLike
) -> StoppingLaw:
    """Return the exact law of the end of a run for critical counts of one's own, one of each a look.

    A run whose trials violate independently with probability `rate` ends, certified, at the first look with at most
    `certified` violations, or, refuted, with at least `refuted`; `certified < refuted`. Errors and cost are those of
    `stopping_law`.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1], got {rate!r}")
    times, lasts, firsts = (
        np.asarray(values, np.int64) for values in (looks, certified, refuted)
    )
    if times.ndim != 1 or times.size == 0 or times[0] < 1 or np.any(np.diff(times) < 1):
        raise ValueError(f"looks must be positive and increase, got {looks!r}")
    if not times.shape == lasts.shape == firsts.shape or np.any(lasts >= firsts):
        raise ValueError(
            "certified and refuted must have one count a look, certified below refuted"
        )
    mass, offset = (
        np.ones(1),
        0,
    )  # the probabilities of offset, offset + 1, ... violations, in runs that are open
    ends = np.zeros((2, times.size))
    steps: dict[int, tuple[np.ndarray, int]] = {}
    sizes = np.diff(times, prepend=0)
    for look, (size, last, first) in enumerate(
        zip(sizes.tolist(), lasts.tolist(), firsts.tolist(), strict=True)
    ):
        if size not in steps:
            law = stats.binom.pmf(np.arange(size + 1), size, rate)
            kept = np.flatnonzero(law > 1e-30)
            steps[size] = law[kept[0] : kept[-1] + 1], int(kept[0])
        step, fewest = steps[size]
        mass, offset = np.convolve(mass, step), offset + fewest
        start = min(max(last + 1 - offset, 0), mass.size)
        stop = max(first - offset, start)
        ends[:, look] = mass[stop:].sum(), mass[:start].sum()
        mass, offset = mass[start:stop], offset + start
        if mass.size == 0:
            break
    return StoppingLaw(times, *ends)


@lru_cache(maxsize=1024)
def trials_needed(
    delta: float,
    alpha: float,
    *,
    beta: float = 0.01,
    good: float = 0.25,
    bad: float = 2.0,
    block: int = 1,
) -> int:
    """Return the number of trials by which a run decides, whether a violation probability is at most `delta`.

    As `limits.trials_needed`, for a run that looks after every `block` trials and may stop: by then a true rate of
    `good * delta` has been certified, and one of `min(bad * delta, (1 + delta) / 2)` refuted, each with probability at
    least `1 - beta`. The expected number is `stopping_law(...).expected_trials`, often half of it. Same errors, and
    ValueError where alpha > beta: a run that is ended by the wrong verdict is not decided rightly later.
    """
    if alpha > beta:
        raise ValueError(
            f"alpha must be at most beta, got alpha={alpha!r} and beta={beta!r}"
        )
    if block < 1:
        raise ValueError(f"block must be positive, got {block}")
    low_rate, high_rate = good * delta, min(bad * delta, (1 + delta) / 2)
    most = 2 * limits.trials_needed(delta, alpha, beta=beta, good=good, bad=bad)
    while True:
        looks = np.append(np.arange(block, most, block), most)
        ends = (
            largest_certified(looks, delta, alpha),
            smallest_refuted(looks, delta, alpha),
        )
        certified = np.cumsum(law_of_ends(low_rate, looks, *ends).certified)
        refuted = np.cumsum(law_of_ends(high_rate, looks, *ends).refuted)
        decided = (certified >= 1 - beta) & (refuted >= 1 - beta)
        if decided.any():
            return int(looks[np.argmax(decided)])
        most *= 2


@lru_cache(maxsize=4096)
def detectable_rate(
    trials: int, delta: float, alpha: float, *, power: float = 0.99
) -> float:
    """Return a violation rate that `trials` trials refute with probability `power`, inf where there is none.

    `limits.detectable` is the smallest one for the fixed rule. This is an upper bound of it for every way of looking
    that includes the last trial: what the last look alone refutes with probability power + alpha, alpha for the runs
    that were certified before (so inf where that is 1 or more), by one incomplete beta function.
    """
    open_unit(alpha=alpha, power=power)
    count = int(smallest_refuted(trials, delta, alpha))
    within = count <= trials and power + alpha < 1
    return (
        float(special.betaincinv(count, trials - count + 1, power + alpha))
        if within
        else math.inf
    )
