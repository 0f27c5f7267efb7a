"""One attempt to certify a size: when it succeeds, when it is given up, and the draws in between."""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import stats

from proofs_check.certify._draws import Draws, OutOfTime
from proofs_check.engine import sequential

PATIENCE = 2.5
"""An attempt takes at most this many times the draws that certify where none fails; four times as many where no larger
size is left."""
HOPELESS = 0.1
"""An attempt is given up where it would succeed with a smaller probability than this, given its draws and `PRIOR`."""
PRIOR = (0.5, 2.0)
"""Beta prior of the failure probability, the second parameter divided by delta: its mean is about delta / 4."""
_LOOKS = 250
"""Looks of an attempt before it may end, about; one after every draw where it needs fewer draws."""


@dataclass(frozen=True)
class Plan:
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
def plan_of(delta: float, alpha: float, *, patient: bool) -> Plan:
    low, high = 0, 1
    while sequential.largest_certified(high, delta, alpha) < 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (middle, high)
            if sequential.largest_certified(middle, delta, alpha) < 0
            else (low, middle)
        )
    block = math.ceil(high / _LOOKS)
    looks = block * np.arange(
        1, math.ceil(PATIENCE * (4 if patient else 1) * high / block) + 1
    )
    certified = sequential.largest_certified(looks, delta, alpha)
    last = int(certified[-1])
    hopeless = np.minimum(sequential.smallest_refuted(looks, delta, alpha), last + 1)
    for count in range(0 if patient else last, 0, -1):
        more = np.arange(last - count + 1)[:, None]
        clean = np.maximum(looks - count, 0)
        law = stats.betabinom.pmf(
            more, looks[-1] - looks, PRIOR[0] + count, PRIOR[1] / delta + clean
        )
        hopeless = np.where(
            law.sum(0) < HOPELESS, np.minimum(hopeless, count), hopeless
        )
    first = looks[np.searchsorted(certified, np.arange(last + 1))]
    return Plan(
        looks.tolist(),
        certified.tolist(),
        np.maximum(hopeless, certified + 1).tolist(),
        first.tolist(),
    )


def attempt(
    draws: Draws, size: int, stage: int, delta: float, alpha: float, *, patient: bool
) -> float | None:
    """Return an upper limit of the failure probability that is at most delta, None where the attempt fails."""
    plan = plan_of(delta, alpha, patient=patient)
    failures = drawn = 0
    for look, certified, hopeless in zip(
        plan.looks, plan.certified, plan.hopeless, strict=True
    ):
        while drawn < look:
            # What is certified last says how many more draws there must be; more failures than that end at the look.
            needed = plan.first[min(failures, len(plan.first) - 1)] - drawn
            if needed * draws.cost(size) > draws.left():
                raise OutOfTime
            failures += draws.draw(size, stage)
            drawn += 1
        if failures <= certified:
            return min(
                float(sequential.binomial_limits(failures, drawn, alpha)[1]), delta
            )
        if failures >= hopeless:
            break
    return None
