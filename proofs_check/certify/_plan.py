"""Which map, at which size, with which guarantee: the order in which the time of a certificate is spent."""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofs_check.certify._facts import CELLS
from proofs_check.certify._model import LARGEST_SAMPLE, Demand, Family, Outcome, Probe
from proofs_check.certify._search import search
from proofs_check.certify._trials import Trials

Say = Callable[[str], None]

TRIALS = 400
"""So many trials of a map are planned for: those that certify, and a share for the search."""
FIRST_SHARE = 0.4
"""Share of the time for all maps on samples, where all rows come afterwards."""
DRAWING = 0.6
"""Share of the time of a map for its trials; the rest is for compiling one program a size."""
DRAWING_AGAIN = 0.8
"""The same for a map that is tried again near the size that it had."""
ROUNDS = 3
WORTH_A_ROUND = 0.1
"""Another round is begun where this share of the time for samples is left."""
NEAR = 3.0
"""A map that ran out of time is tried again where its errors came within so many eps."""
WORTH_MORE = 1.5
SEARCHING = 40
"""Draws of a search that begins near its end."""
FEWEST_ROWS = 200
CALIBRATION_ROWS = 1000
GROWTH = {"distance": 2.0, "spectral": 2.0, "clustering": 3.0, "separation": 2.0}
"""How the time of a trial grows with its rows, as a power."""
MOST_ROWS = {"distance": LARGEST_SAMPLE, "spectral": LARGEST_SAMPLE, "clustering": 2_000, "separation": 4_000}
"""The most rows that a trial looks at."""
LAST = {"distance": ("fastfood", "shifted_fourier", "orthogonal_fourier", "paired_fourier")}
"""Maps that come last, by goal: they are the likely ones, and have the time that others leave."""
LIKELY = ("kernel_jl", "kernel_pca", "nystrom")
"""The likely ones of all other goals."""
UPGRADES = 3
MEASURED_DRAWS = 20


@dataclass(frozen=True)
class Entry:
    """What was found for one map.

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


class Clock:
    """The time that is left of a limit in seconds, from `start` on."""

    def __init__(self, seconds: float, start: float | None = None) -> None:
        self._start = time.monotonic() if start is None else start
        self._seconds = seconds

    @property
    def spent(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self._start

    @property
    def left(self) -> float:
        """Return the seconds to the limit, 0 at least."""
        return max(self._seconds - self.spent, 0.0)


def least_demands(demands: Sequence[Demand]) -> dict[str, Demand]:
    """Return the smallest demand of each map that has one."""
    found: dict[str, Demand] = {}
    for demand in demands:
        if demand.size is not None and (demand.map not in found or demand.size < (found[demand.map].size or 0)):
            found[demand.map] = demand
    return found


def find(
    trials: Trials,
    families: Mapping[str, Family],
    demands: Sequence[Demand],
    *,
    eps: float,
    delta: float,
    confidence: float,
    clock: Clock,
    say: Say,
) -> list[Entry]:
    """Return one entry a map: certified on samples that the time allows, then the best on larger ones or on all rows.

    All certificates of a call hold together with probability `confidence`: half of what it leaves is shared by the
    maps, half by those that are tried again on more rows.
    """
    least = least_demands(demands)
    refused = {name: words for name in families if (words := trials.goal.refuses(name))}
    ranges = {name: _range(families[name], least.get(name)) for name in _in_order(families, trials.goal.name, refused)}
    rest = delta - getattr(trials.goal, "slack", 0.0)
    sample = _sample(trials, families, ranges, clock, say) if ranges else None
    shared = (1 - confidence) / (1 if sample is None else 2)
    first = Clock(clock.left * (1.0 if sample is None else FIRST_SHARE))
    part, open_ones = first.left, list(ranges)
    found: dict[str, Entry] = {}

    def one_round(attempt: int, names: Sequence[str], until: Clock) -> list[str]:
        for i, name in enumerate(names):
            trial = trials.trial(families[name], sample, attempt)
            share, alpha = until.left / (len(names) - i), shared / len(ranges) / ROUNDS
            outcome = _searched(trial, families[name], ranges[name], sample, eps, rest, alpha, share, say)
            found[name] = _entry(families[name], outcome, sample, least.get(name), found.get(name))
        return [name for name in names if _promising(found[name], eps)]

    for attempt in range(ROUNDS - 1):
        open_ones = one_round(attempt, open_ones, first)
        if first.left < WORTH_A_ROUND * part:
            break
    if sample is not None:
        tried: set[str] = set()
        for _ in range(UPGRADES):
            asked = _next(trials, {n: e for n, e in found.items() if n not in tried}, shared / UPGRADES, delta, clock)
            if asked is None:
                break
            name, more = asked
            trial, sizes = trials.trial(families[name], more), (found[name].size or 1, ranges[name][1])
            outcome = _searched(trial, families[name], sizes, more, eps, rest, shared / UPGRADES, clock.left, say)
            if outcome.size is None:
                tried.add(name)
            else:
                found[name] = _entry(families[name], outcome, more, least.get(name), found[name])
                if more is None:
                    break
        one_round(ROUNDS - 1, open_ones, clock)
    entries = []
    for name, family in families.items():
        if name in refused:
            entries.append(Entry(family, "not for this goal", refused[name]))
        else:
            entries.append(_or_by_a_statement(trials, found[name], sample, eps, clock))
    return entries


def by_a_statement(entry: Entry) -> Entry | None:
    """Return the entry at the size that a statement certifies for all rows, None where there is none to draw."""
    demand = entry.demand
    if demand is None or demand.size is None or demand.size > entry.family.largest:
        return None
    basis = "worst case" if demand.worst_case else "this data"
    words = f"by {demand.source}"
    return dataclasses.replace(entry, status="certified", words=words, size=demand.size, basis=basis, sample=None)


def _promising(entry: Entry, eps: float) -> bool:
    """Tell whether more time may certify a map: the time ended, and its errors came near to eps."""
    if entry.status != "out of time":
        return False
    best = min((float(np.median(probe.errors)) for probe in entry.probes), default=0.0)
    return best <= NEAR * eps


def _next(
    trials: Trials, found: Mapping[str, Entry], alpha: float, delta: float, clock: Clock
) -> tuple[str, int | None] | None:
    """Return the fastest map that can be tried on more rows, and on how many: None for all of them."""
    limit, costs = math.inf, {}
    for name, entry in found.items():
        stated = by_a_statement(entry)
        if stated is not None and stated.size is not None:
            limit = min(limit, trials.cost(entry.family, stated.size, clock.left) or math.inf)
        if entry.size is not None:
            costs[name] = trials.cost(entry.family, entry.size, clock.left) or math.inf
    for name in sorted(costs, key=costs.__getitem__):
        more = _more_rows(trials, found[name], clock.left, alpha, delta)
        if costs[name] < limit and more != found[name].sample:
            return name, more
    return None


def _more_rows(trials: Trials, entry: Entry, seconds: float, alpha: float, delta: float) -> int | None:
    """Return how many rows a trial can look at when one map has the time, None for all of them.

    That is the sample of before where it would not be at least `WORTH_MORE` times as large.
    """
    goal, rows, before = trials.goal.name, trials.table.rows, entry.sample or trials.table.rows
    most = min(rows, MOST_ROWS[goal])
    last = [probe for probe in entry.probes if probe.certifying][-1]
    needed = 1.3 * math.log(1 / alpha) / delta + SEARCHING
    factor = (DRAWING_AGAIN * seconds / (needed * last.seconds / last.draws)) ** (1 / GROWTH[goal])
    affordable = factor * before
    if affordable >= rows and rows <= most:
        return None
    return before if affordable < WORTH_MORE * before else int(min(affordable, most))


def _in_order(families: Mapping[str, Family], goal: str, refused: Mapping[str, str]) -> list[str]:
    """Return the maps for a goal in the order in which they are tried."""
    last = LAST.get(goal, LIKELY)
    names = [name for name in families if name not in refused]
    return sorted(names, key=lambda name: last.index(name) if name in last else -1)


def _range(family: Family, demand: Demand | None) -> tuple[int, int]:
    """Return the range of sizes of a search: never more than a statement demands."""
    largest = family.largest if demand is None or demand.size is None else min(demand.size, family.largest)
    return family.smallest, max(largest, family.smallest)


def _sample(
    trials: Trials,
    families: Mapping[str, Family],
    ranges: Mapping[str, tuple[int, int]],
    clock: Clock,
    say: Say,
) -> int | None:
    """Return how many rows a trial can look at in the time that is left, None for all of them."""
    rows, goal = trials.table.rows, trials.goal.name
    most = min(rows, MOST_ROWS[goal])
    dim = trials.table.dim
    first = min(most, CALIBRATION_ROWS, max(CELLS // dim, FEWEST_ROWS))
    name = list(ranges)[-1]
    while first > FEWEST_ROWS and trials.preparing(first, GROWTH[goal]) > clock.left / 4:
        first //= 2
    size = min(max(ranges[name][1] // 2, 1), max(CELLS // dim, 1))
    try:
        prepare, error = trials.timed(families[name], size, first, clock)
    except TimeoutError:
        return first
    share = FIRST_SHARE * clock.left / math.ceil(len(ranges) / 2)  # some leave their time to others
    growth, allowed = GROWTH[goal], max(DRAWING * share / TRIALS, 1e-9)
    say(f"a trial on {first:,} rows takes {prepare + error:.3g} s")
    more = (rows / first) ** growth
    if rows <= most and error * more <= allowed / FIRST_SHARE and prepare * more <= FIRST_SHARE * clock.left:
        return None  # all rows are prepared once
    affordable = first * (allowed / (prepare + error)) ** (1 / growth)
    return int(min(max(affordable, FEWEST_ROWS), most))


def _searched(
    trial: Callable[[int, Any, int], float],
    family: Family,
    sizes: tuple[int, int],
    sample: int | None,
    eps: float,
    delta: float,
    alpha: float,
    seconds: float,
    say: Say,
) -> Outcome:
    where = "all rows" if sample is None else f"samples of {sample:,} rows"

    def report(size: int, stage: Any, draws: int, failures: int) -> None:
        say(f"{family.name} on {where}: {family.unit} {size:,}, {draws} draw(s), {failures} failure(s)")

    return search(
        trial,
        smallest=sizes[0],
        largest=sizes[1],
        eps=eps,
        delta=delta,
        alpha=alpha,
        seconds=seconds,
        report=report,
    )


def _entry(
    family: Family, outcome: Outcome, sample: int | None, demand: Demand | None, before: Entry | None = None
) -> Entry:
    """Return what a search found; `before` is what an earlier one found, on samples of this size or smaller ones."""
    probes = (*(before.probes if before else ()), *outcome.probes)
    tried = max((probe.size for probe in probes), default=None)
    if outcome.size is not None:
        last = [probe for probe in outcome.probes if probe.certifying and probe.size == outcome.size][-1]
        status, words = "certified", f"{last.failures} of {last.draws} fresh draws failed"
    elif outcome.stopped == "out of time":
        status = "out of time"
        words = "the time ended before draws could certify a size" + (
            f"; {family.unit} {tried:,} was the largest tried" if tried else ""
        )
    else:
        status = "not certified"
        words = f"even {family.unit} {family.largest if tried is None else tried:,} fails too often"
    return Entry(
        family=family,
        status=status,
        words=words,
        size=outcome.size,
        basis=None if outcome.size is None else "draws",
        sample=sample,
        outcome=outcome,
        probes=probes,
        demand=demand,
    )


def _or_by_a_statement(trials: Trials, entry: Entry, sample: int | None, eps: float, clock: Clock) -> Entry:
    """Return the entry, with the size that a statement demands where draws certified none, measured by a few draws."""
    demand = entry.demand
    if entry.size is not None or demand is None or demand.size is None:
        return entry
    found = by_a_statement(entry)
    if found is None:
        asked = f"{demand.source} asks for {demand.size:,}, beyond the {entry.family.largest:,} at which trials end"
        return dataclasses.replace(entry, words=f"{entry.words}; {asked}")
    found = measured(trials, found, sample, eps, clock)
    return dataclasses.replace(found, words=f"{found.words}; {entry.words}")


def measured(
    trials: Trials, stated: Entry, sample: int | None, eps: float, clock: Clock, most: int = MEASURED_DRAWS
) -> Entry:
    """Return the entry of a statement, which is about exact numbers, with draws at its size; refused if one fails."""
    assert stated.demand is not None and stated.size is not None
    trial = trials.trial(stated.family, sample)
    errors: list[float] = []
    start = time.monotonic()
    takes = trials.expected(stated.family, stated.size, sample or trials.table.rows, GROWTH[trials.goal.name])
    while len(errors) < most and clock.left > takes:
        errors.append(trial(stated.size, "measured", len(errors)))
        if (time.monotonic() - start) / len(errors) > 0.1 * clock.left:
            break
    if not errors:
        words = f"{stated.words}, but the time ended before a draw could be measured"
        return dataclasses.replace(stated, status="out of time", words=words, size=None, basis=None, demand=None)
    probe = _probe(stated.size, errors, eps, time.monotonic() - start)
    if not probe.failures:
        return dataclasses.replace(stated, probes=(*stated.probes, probe))
    words = f"{stated.demand.source}, which is about exact numbers, gives {stated.family.unit} {stated.size:,}, but "
    words += f"{probe.failures} of {probe.draws} draws in {trials.dtype} failed"
    return Entry(stated.family, "not certified", words, outcome=stated.outcome, probes=(*stated.probes, probe))


def _probe(size: int, errors: Sequence[float], eps: float, seconds: float) -> Probe:
    values = np.asarray(errors, float)
    return Probe(size, values, int(np.sum(~(values <= eps))), False, seconds)
