"""What is known of one map: by draws, by a statement, or why nothing is."""

import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofs_check.certify import _work
from proofs_check.certify._draws import OutOfTime
from proofs_check.certify._model import Demand, Family, Outcome, Probe

TIE = 1.1
"""Maps that take at most this many times as long as the fastest one count as equal, and the fewest features decide."""


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
        if demand.size is not None and (
            demand.map not in least or demand.size < (least[demand.map].size or 0)
        ):
            least[demand.map] = demand
    return least


def cheapest(entries: Sequence[Entry], dim: int) -> Entry:
    """Return the entry that takes the least time per point; where `TIE` does not tell them apart, the fewest features.

    A guarantee for all rows goes before one for samples, and larger samples before smaller ones.
    """
    most = max(entry.sample or math.inf for entry in entries)
    costs = [
        (_work.seconds_per_million(entry.family, entry.known_size, dim), entry)
        for entry in entries
        if (entry.sample or math.inf) == most
    ]
    limit = TIE * min(cost for cost, _ in costs)
    near = [
        (entry.family.num_features(entry.known_size), cost, entry)
        for cost, entry in costs
        if cost <= limit
    ]
    return min(near, key=lambda one: one[:2])[-1]


def searched(
    family: Family,
    outcome: Outcome,
    sample: int | None,
    demand: Demand | None,
    before: Entry | None = None,
    *,
    cut: bool = False,
) -> Entry:
    """Return the entry of a search; `before` is that of an earlier one, and `cut` whether the clock ended this one."""
    probes = (*(before.probes if before else ()), *outcome.probes)
    tried = max((probe.size for probe in probes), default=None)
    if outcome.size is not None:
        last = [
            probe
            for probe in outcome.probes
            if probe.certifying and probe.size == outcome.size
        ][-1]
        status, words = (
            "certified",
            f"{last.failures} of {last.draws} fresh draws failed",
        )
    elif outcome.stopped == "out of work":
        ended = (
            "the time ended before draws could"
            if cut
            else "as many draws as a step may take did not"
        )
        status, words = (
            "out of time" if cut else "not certified",
            f"{ended} certify a size",
        )
        words += f"; {family.unit} {tried:,} was the largest tried" if tried else ""
    else:
        status = "not certified"
        words = f"even {family.unit} {family.largest if tried is None else tried:,} fails too often"
    basis = None if outcome.size is None else "draws"
    return Entry(
        family, status, words, outcome.size, basis, sample, outcome, probes, demand
    )


def by_a_statement(entry: Entry) -> Entry | None:
    """Return the entry at the size that a statement certifies for all rows, None where there is none to draw."""
    demand = entry.demand
    if demand is None or demand.size is None or demand.size > entry.family.largest:
        return None
    basis, words = (
        "worst case" if demand.worst_case else "this data",
        f"by {demand.source}",
    )
    return dataclasses.replace(
        entry,
        status="certified",
        words=words,
        size=demand.size,
        basis=basis,
        sample=None,
    )


def measured(
    stated: Entry,
    trial: Callable[[int, Any, int], float],
    eps: float,
    draws: int,
    dtype: str,
) -> Entry:
    """Return the entry of a statement, which is about exact numbers, with draws at its size; refused if one fails."""
    family, size, demand = stated.family, stated.known_size, stated.demand
    assert demand is not None
    errors: list[float] = []
    try:
        for number in range(draws):
            errors.append(trial(size, "measured", number))
    except OutOfTime:
        if not errors:
            words = (
                f"{stated.words}, but the time ended before a draw could be measured"
            )
            return dataclasses.replace(
                stated,
                status="out of time",
                words=words,
                size=None,
                basis=None,
                demand=None,
            )
    values = np.asarray(errors, float)
    probe = Probe(size, values, int(np.sum(~(values <= eps))), False)
    if not probe.failures:
        return dataclasses.replace(stated, probes=(*stated.probes, probe))
    words = f"{demand.source}, which is about exact numbers, gives {family.unit} {size:,}, but "
    words += f"{probe.failures} of {probe.draws} draws in {dtype} failed"
    return Entry(family, "not certified", words, probes=(*stated.probes, probe))
