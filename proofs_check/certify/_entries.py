"""What is known of one map: by draws, by a statement, or why nothing is."""

import dataclasses
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proofs_check.certify._clock import Clock
from proofs_check.certify._model import LARGEST_SAMPLE, Demand, Family, Outcome, Probe
from proofs_check.certify._trials import Trials

GROWTH = {"distance": 2.0, "spectral": 2.0, "clustering": 3.0, "separation": 2.0}
"""How the time of a trial grows with its rows, as a power."""
MOST_ROWS = {"distance": LARGEST_SAMPLE, "spectral": LARGEST_SAMPLE, "clustering": 2_000, "separation": 4_000}
"""The most rows that a trial looks at."""
MEASURED_DRAWS = 20
"""Draws that measure the size of a statement."""


@dataclass(frozen=True)
class Entry:
    """What is known of one map.

    Attributes
    ----------
    family : the map.
    status : "certified", "not certified", "out of time" or "not for this goal".
    words : why, in plain sentences.
    size : the certified size, None where there is none.
    basis : "draws", or "this data" or "worst case" for a size that a statement gives.
    sample : rows of a trial, None for all.
    outcome : of the search on which the size rests, or of the one that failed.
    probes : all draws of this map, the earlier ones perhaps on fewer rows.
    demand : the smallest size that a statement demands, if any does.
    """

    family: Family
    status: str
    words: str
    size: int | None = None
    basis: str | None = None
    sample: int | None = None
    outcome: Outcome | None = None
    probes: tuple[Probe, ...] = ()
    demand: Demand | None = None

    @property
    def for_all_rows(self) -> bool:
        """Tell whether the size is certified, and for all rows."""
        return self.size is not None and self.sample is None

    @property
    def known_size(self) -> int:
        """Return the size of an entry that has one."""
        assert self.size is not None
        return self.size


def least_demands(demands: Sequence[Demand]) -> dict[str, Demand]:
    """Return the smallest demand of each map that has one."""
    least: dict[str, Demand] = {}
    for demand in demands:
        if demand.size is not None and (demand.map not in least or demand.size < (least[demand.map].size or 0)):
            least[demand.map] = demand
    return least


def searched(
    family: Family, outcome: Outcome, sample: int | None, demand: Demand | None, before: Entry | None = None
) -> Entry:
    """Return the entry of a search; `before` is that of an earlier one, on samples of this size or smaller ones."""
    probes = (*(before.probes if before else ()), *outcome.probes)
    tried = max((probe.size for probe in probes), default=None)
    if outcome.size is not None:
        last = [probe for probe in outcome.probes if probe.certifying and probe.size == outcome.size][-1]
        status, words = "certified", f"{last.failures} of {last.draws} fresh draws failed"
    elif outcome.stopped == "out of time":
        status, words = "out of time", "the time ended before draws could certify a size"
        words += f"; {family.unit} {tried:,} was the largest tried" if tried else ""
    else:
        status = "not certified"
        words = f"even {family.unit} {family.largest if tried is None else tried:,} fails too often"
    basis = None if outcome.size is None else "draws"
    return Entry(family, status, words, outcome.size, basis, sample, outcome, probes, demand)


def by_a_statement(entry: Entry) -> Entry | None:
    """Return the entry at the size that a statement certifies for all rows, None where there is none to draw."""
    demand = entry.demand
    if demand is None or demand.size is None or demand.size > entry.family.largest:
        return None
    basis, words = "worst case" if demand.worst_case else "this data", f"by {demand.source}"
    return dataclasses.replace(entry, status="certified", words=words, size=demand.size, basis=basis, sample=None)


def or_by_a_statement(trials: Trials, entry: Entry, sample: int | None, eps: float, clock: Clock) -> Entry:
    """Return the entry, with the size that a statement demands where draws certified none, measured by a few draws."""
    demand = entry.demand
    if entry.size is not None or demand is None or demand.size is None:
        return entry
    stated = by_a_statement(entry)
    if stated is None:
        asked = f"{demand.source} asks for {demand.size:,}, beyond the {entry.family.largest:,} at which trials end"
        return dataclasses.replace(entry, words=f"{entry.words}; {asked}")
    stated = measured(trials, stated, sample, eps, clock)
    return dataclasses.replace(stated, words=f"{stated.words}; {entry.words}")


def measured(
    trials: Trials, stated: Entry, sample: int | None, eps: float, clock: Clock, most: int = MEASURED_DRAWS
) -> Entry:
    """Return the entry of a statement, which is about exact numbers, with draws at its size; refused if one fails."""
    family, size, demand = stated.family, stated.known_size, stated.demand
    assert demand is not None
    trial = trials.trial(family, sample)
    errors: list[float] = []
    start = time.monotonic()
    takes = trials.expected(family, size, sample or trials.table.rows, GROWTH[trials.goal.name])
    while len(errors) < most and clock.left > takes:
        errors.append(trial(size, "measured", len(errors)))
        if (time.monotonic() - start) / len(errors) > 0.1 * clock.left:
            break
    if not errors:
        words = f"{stated.words}, but the time ended before a draw could be measured"
        return dataclasses.replace(stated, status="out of time", words=words, size=None, basis=None, demand=None)
    values = np.asarray(errors, float)
    probe = Probe(size, values, int(np.sum(~(values <= eps))), False, time.monotonic() - start)
    probes = (*stated.probes, probe)
    if not probe.failures:
        return dataclasses.replace(stated, probes=probes)
    words = f"{demand.source}, which is about exact numbers, gives {family.unit} {size:,}, but "
    words += f"{probe.failures} of {probe.draws} draws in {trials.dtype} failed"
    return Entry(family, "not certified", words, outcome=stated.outcome, probes=probes)
