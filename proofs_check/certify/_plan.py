"""Which map, at which size, with which guarantee: the steps of a search, in an order that the request decides.

First what statements give is drawn a few times. Then every map is searched on the first rows of a ladder, the likely
ones first, and the cheapest that are certified are tried again on more rows, up to all of them.
A step ends by evidence, or where its draws have taken as many reference seconds as it may (`_work`). Both follow from
the request and from draws, and no measured time decides anything but how many steps are finished.

*The level.* The shares of `LEVELS` and `_shares` are fixed before the first draw, one for each step that there may be.
What a step does may depend on all draws before it; given those, it certifies a size that is not good with probability
at most its level. So all certificates hold together with probability `confidence`, and those of the steps that were
finished do.
"""

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofs_check.certify import _work
from proofs_check.certify._clock import Clock
from proofs_check.certify._draws import OutOfTime
from proofs_check.certify._entries import (
    Entry,
    by_a_statement,
    cheapest,
    least_demands,
    measured,
    searched,
)
from proofs_check.certify._model import Demand, Family
from proofs_check.certify._request import Request
from proofs_check.certify._search import TARGET, search
from proofs_check.certify._trials import Trials
from proofs_check.usage import StorageError

TRIALS = 400
"""Trials of a map that are planned for: those that certify, and a share for the search."""
FIRST_SHARE = 0.4
"""Share of the time for all maps on the first rows of the ladder."""
LEAST = 15.0
"""Reference seconds that a map may take at least: it compiles a program for most sizes."""
DRAWING = 0.6
"""Share of them for the trials; the rest is for compiling."""
MORE = 4.0
"""A second search of a map may take as many times as much as the first, and one on more rows as what is planned."""
DEAR = 2e-4
"""A search on more rows aims at this share of delta: draws are dear there, and a size that never fails takes fewest.
Largest errors of many pairs have a longer tail than `search` expects: one in 100,000 was rather one in 400."""
LEVELS = (0.6, 0.3, 0.1)
"""Shares of the error rate by round: of the likely maps, of the other ones, and of those that are searched again."""
FIRST_LEVEL = 0.25
"""Share for the first rows of a ladder, where there are more. What remains goes to the dearest draws, see `_shares`."""
CHEAP = 20.0
"""Between the first and the last rows of a ladder, draws have to be so many times cheaper than on the last rows: a
step takes twice as many, and is only worth it where the last one may not end. Then half the price will do."""
SURE = 12.0
"""The last step is expected to end where what is planned takes fewer reference seconds than so many times the limit."""
TRIES = 3
"""Maps that are tried on each of the further numbers of rows, at most."""
NEAR = 3.0
"""A map whose draws ended without evidence is tried again where the median of its errors fell below this many eps."""
STALLED = 0.8
"""But not where that at the largest size is still this share of one at a quarter of the size: it should be half."""
STATED_SHARE = 0.01
"""Share of the time for draws at a size that a statement gives, `MEASURED_DRAWS` at most and one at least."""
MEASURED_DRAWS = 8
LIKELY = {
    "distance": ("paired_fourier", "orthogonal_fourier", "shifted_fourier", "fastfood")
}
"""Maps that come first, by goal."""
ELSE_LIKELY = ("nystrom", "kernel_pca", "kernel_jl", "orthogonal_fourier")
UNKNOWN = 0.5
"""Share of what a step may take that it is expected to take."""


@dataclass(frozen=True)
class Found:
    """What the steps found: an entry a map, and how far the search came.

    `stated` has what statements certify for all rows of maps that draws certify on samples only. `seconds_more` is
    about what the other steps would take, None where no draw tells, and `pace` the seconds of a reference second.
    """

    entries: list[Entry]
    stated: dict[str, Entry]
    done: int
    steps: int
    pace: float
    seconds_more: float | None

    @property
    def finished(self) -> bool:
        """Tell whether all steps were finished."""
        return self.done == self.steps


class _Cut(OutOfTime):
    """The clock ended a step."""


@dataclass
class Hunt:
    """The maps that the goal makes sense for, in the order in which they are tried, and what is known of each so far.

    `journal` keeps every draw under its name, and hands out those that it holds already. `ranges` holds the sizes of a
    search by map, `entries` what was found, `stated` what statements certify, and `ahead` the reference seconds of the
    steps that are planned.
    """

    trials: Trials
    families: Mapping[str, Family]
    demands: Sequence[Demand]
    request: Request
    clock: Clock
    say: Callable[[str], None]
    journal: Any = None

    def __post_init__(self) -> None:
        """Plan the steps."""
        self.goal, self.dim, self.time = (
            self.trials.goal.name,
            self.trials.table.dim,
            60 * self.request.time,
        )
        self.effort = getattr(self.trials.goal, "effort", 1.0)
        self.least = least_demands(self.demands)
        self.likely = LIKELY.get(self.goal, ELSE_LIKELY)
        refuses = self.trials.goal.refuses
        names = [
            name
            for name, one in self.families.items()
            if one.largest >= 1 and not refuses(name)
        ]
        names.sort(
            key=lambda name: (
                self.likely.index(name) if name in self.likely else len(self.likely)
            )
        )
        self.ranges = {
            name: _range(self.families[name], self.least.get(name)) for name in names
        }
        known = (
            by_a_statement(
                Entry(self.families[name], "", "", demand=self.least.get(name))
            )
            for name in names
        )
        self.statements = sorted(filter(None, known), key=self.cost)
        self.entries: dict[str, Entry] = {}
        self.stated: dict[str, Entry] = {}
        self.failed: set[tuple[str, int | None]] = set()
        self.worked = self.real = 0.0
        self.pace: float | None = None
        self.budget = max(FIRST_SHARE * self.time / max(len(names), 1), LEAST)
        self.rows = self.ladder()
        self.done, self.cut = 0, False
        self.ahead = [STATED_SHARE * self.time + _work.COMPILING] * len(self.statements)
        self.ahead += [UNKNOWN * self.budget] * len(names)

    def found(self) -> Found:
        """Return what is known of every map when all steps are finished, or when the time of the clock ends."""
        with contextlib.suppress(_Cut):
            self.what_statements_give()
            for number in range(len(LEVELS)):
                self.a_round(number)
                self.on_more_rows(number)
        certified = self.certified()
        samples = {entry.family.name for entry in certified if not entry.for_all_rows}
        stated = {
            name: one
            for name, one in self.stated.items()
            if one.size is not None and name in samples
        }
        # Where the time ended, so many numbers of rows were not reached by any map; one may do on each.
        for rows in (
            self.rows[1 + max(map(self.place, certified), default=0) :]
            if self.cut
            else []
        ):
            best = cheapest(certified, self.dim) if certified else None
            self.ahead.append(
                TRIALS * self.takes(best.family.name, best.known_size, rows)
                if best
                else 0.0
            )
        pace = self.real / self.worked if self.worked else None
        more = None if pace is None else pace * sum(self.ahead)
        entries = [self.entry(name, family) for name, family in self.families.items()]
        return Found(
            entries, stated, self.done, self.done + len(self.ahead), pace or 1.0, more
        )

    def entry(self, name: str, family: Family) -> Entry:
        """Return what is known of a map; one whose turn did not come is out of time."""
        if why := self.trials.goal.refuses(name):
            return Entry(family, "not for this goal", why)
        if name not in self.ranges:
            return Entry(
                family,
                "not certified",
                f"it has more than {self.request.features_at_most} features",
            )
        late = Entry(
            family,
            "out of time",
            "the time ended before its turn",
            demand=self.least.get(name),
        )
        entry, one = self.entries.get(name, late), self.stated.get(name)
        if entry.size is None and one is not None:
            words, probes = f"{one.words}; {entry.words}", (*entry.probes, *one.probes)
            return dataclasses.replace(
                one, words=words, outcome=entry.outcome, probes=probes
            )
        if (
            entry.size is None
            and (demand := entry.demand) is not None
            and (demand.size or 0) > family.largest
        ):
            asked = f"{demand.source} asks for {demand.size:,}, more than the {family.largest:,} that may be tried"
            return dataclasses.replace(entry, words=f"{entry.words}; {asked}")
        return entry

    def what_statements_give(self) -> None:
        """Draw it a few times, from the cheapest map on: statements are about exact numbers, and draws are not."""
        for entry in self.statements:
            name = entry.family.name
            takes = self.takes(name, entry.known_size, self.rows[0])
            draws = min(max(int(STATED_SHARE * self.time / takes), 1), MEASURED_DRAWS)
            trial = self.trial(name, self.rows[0], 0)
            self.stated[name] = measured(
                entry, trial, self.request.eps, draws, self.trials.dtype
            )
            if self.stated[name].status == "not certified":
                self.least.pop(name)  # draws refute it in this precision
            self.finish()

    def a_round(self, number: int) -> None:
        """Search the likely maps on the first rows, then the others, then those that ended without evidence again."""
        names, attempt = (
            [name for name in self.ranges if (name in self.likely) == (number == 0)],
            0,
        )
        if number == len(LEVELS) - 1:
            names, attempt = (
                [
                    name
                    for name in self.ranges
                    if _promising(self.entries[name], self.request.eps)
                ],
                1,
            )
            self.ahead = [UNKNOWN * self.budget * MORE] * len(names)
        # Every map is in one of the first rounds, and all of them may be in the last.
        first = FIRST_LEVEL if len(self.rows) > 1 else 1.0
        alpha = self.level(
            first, LEVELS[-1] if attempt else 1 - LEVELS[-1], 1 / len(self.ranges)
        )
        for name in names:
            self.seek(
                name,
                self.rows[0],
                self.ranges[name],
                alpha,
                self.budget * MORE**attempt,
                attempt,
            )

    def on_more_rows(self, number: int) -> None:
        """Try the cheapest maps again on more and more rows, while one may be cheaper than what is known there."""
        for place, rows in enumerate(self.rows[1:], 1):
            tried: set[str] = set()
            while len(tried) < TRIES:
                known = [e for e in self.certified() if self.place(e) >= place]
                known += [e for e in self.stated.values() if e.size is not None]
                limit = min(map(self.cost, known), default=math.inf)
                below = [
                    e
                    for e in self.certified()
                    if self.place(e) < place and self.cost(e) < limit
                ]
                below = [
                    e
                    for e in below
                    if e.family.name not in tried
                    and (e.family.name, rows) not in self.failed
                ]
                if not below:
                    break
                name = cheapest(below, self.dim).family.name
                tried.add(name)
                takes = TRIALS * self.takes(name, self.entries[name].known_size, rows)
                self.ahead.insert(0, takes)
                sizes = self.entries[name].known_size, self.ranges[name][1]
                shares = (
                    _shares(len(self.rows) - 1)[-place],
                    _shares(TRIES)[len(tried) - 1],
                )
                alpha = self.level(1 - FIRST_LEVEL, LEVELS[number], *shares)
                self.seek(name, rows, sizes, alpha, MORE * (takes + LEAST))
                if self.place(self.entries[name]) < place:
                    self.failed.add((name, rows))

    # Steps

    def seek(
        self,
        name: str,
        sample: int | None,
        sizes: tuple[int, int],
        alpha: float,
        budget: float,
        attempt: int = 0,
    ) -> None:
        """Search one map for as many reference seconds as it may take, and enter what was found."""
        family, request, fewest = (
            self.families[name],
            self.request,
            sample == self.rows[0],
        )
        where = "all rows" if sample is None else f"samples of {sample:,} rows"

        def report(size: int, _stage: int, draws: int, failures: int) -> None:
            self.say(
                f"step {self.done + 1} of about {self.done + len(self.ahead)}: {name} on {where}, "
                f"{family.unit} {size:,}, {draws} draw(s), {failures} failure(s)"
            )

        outcome = search(
            self.trial(name, sample, attempt),
            smallest=sizes[0],
            largest=sizes[1],
            eps=request.eps,
            delta=request.delta - getattr(self.trials.goal, "slack", 0.0),
            alpha=alpha,
            work=lambda size, first: (
                self.takes(name, size, sample) + _work.COMPILING * first
            ),
            most=budget,
            start=self.start(family) if fewest else self.start_on_more(name, sample),
            target=TARGET if fewest else DEAR,
            report=report,
        )
        before = self.entries.get(name)
        if (
            before is None
            or before.size is None
            or (outcome.size is not None and not self.cut)
        ):
            self.entries[name] = searched(
                family, outcome, sample, self.least.get(name), before, cut=self.cut
            )
        self.finish()

    def trial(
        self, name: str, sample: int | None, attempt: int
    ) -> Callable[[int, Any, int], float]:
        """Return the trials of a step: from the journal, or by a draw that is expected to end before the clock does."""
        draw = self.trials.trial(self.families[name], sample, attempt)
        known: set[int] = set()

        def error(size: int, stage: Any, number: int) -> float:
            takes = self.takes(name, size, sample)
            label = repr((name, sample, attempt, stage, size, self.trials.dtype))
            kept = None if self.journal is None else self.journal.take(label, number)
            if kept is None:
                kept = np.array(
                    [
                        self.drawn(
                            lambda: draw(size, stage, number),
                            takes,
                            size in known,
                            sample,
                        )
                    ]
                )
                self.worked += takes + _work.COMPILING * (size not in known)
                if self.journal is not None:
                    with contextlib.suppress(
                        StorageError
                    ):  # a full disk costs what it would have saved
                        self.journal.keep(label, number, kept)
            known.add(size)
            return float(kept[0])

        return error

    def drawn(
        self, draw: Callable[[], float], takes: float, warm: bool, sample: int | None
    ) -> float:
        """Return the error of a draw. Raises _Cut where it is not expected to end in time, by the pace of others."""
        expected = takes
        if sample is None and not self.trials.is_prepared:
            expected += self.once(self.trials.table.rows)
        if self.pace is None and expected > 1e-3 * self.time and self.clock.left:
            self.pace = self.first_pace()
        if self.clock.left <= (self.pace or 1.0) * expected:
            self.cut = True
            raise _Cut
        start = time.monotonic()
        error = draw()
        real = time.monotonic() - start
        if warm:
            self.pace = (
                real / takes
                if self.pace is None
                else 0.7 * self.pace + 0.3 * real / takes
            )
        self.real += real
        return error

    def first_pace(self) -> float:
        """Return the seconds of a reference second, by a second look at a few rows: the first one compiles."""
        count = min(_work.FEWEST_ROWS, self.trials.table.rows)
        for _ in range(2):
            start = time.monotonic()
            self.trials.look(count)
            spent = time.monotonic() - start
        return spent / _work.preparing(self.goal, count, self.dim)

    def finish(self) -> None:
        """Count a step. Raises _Cut where it was not finished."""
        if self.cut:
            raise _Cut
        self.done += 1
        self.ahead = self.ahead[1:]

    # What steps need

    def level(self, *shares: float) -> float:
        """Return the level of a step that has these shares of the error rate."""
        return (
            1 - self.request.confidence - getattr(self.trials.goal, "once", 0.0)
        ) * math.prod(shares)

    def ladder(self) -> list[int | None]:
        rows = self.trials.table.rows
        if not self.ranges:
            return [
                None
                if rows <= _work.MOST_ROWS[self.goal]
                else _work.MOST_ROWS[self.goal]
            ]
        name = next(iter(self.ranges))
        size = min(self.start(self.families[name]), self.ranges[name][1])

        def takes(count: int) -> float:
            once = self.once(rows) / TRIALS if count == rows else 0.0
            return once + _work.trial(
                self.goal, self.families[name], size, count, self.dim,
                effort=self.effort, ready=count == rows,
            )  # fmt: skip

        steps = _work.ladder(self.goal, rows, takes, DRAWING * self.budget / TRIALS)
        last = self.takes(name, size, steps[-1])
        times = CHEAP if last * TRIALS < SURE * self.time else 2.0
        steps[1:-1] = [
            count
            for count in steps[1:-1]
            if times * self.takes(name, size, count) < last
        ]
        return steps

    def takes(self, name: str, size: int, sample: int | None) -> float:
        rows = self.trials.table.rows if sample is None else sample
        rank = getattr(self.trials.goal, "rank", None) if sample is None else None
        return _work.trial(
            self.goal, self.families[name], size, rows, self.dim,
            rank=rank, effort=self.effort, ready=sample is None,
        )  # fmt: skip

    def once(self, rows: int) -> float:
        """Return the reference seconds of what all draws on all rows share."""
        lasts = hasattr(self.trials.goal, "lasting")
        times = _work.LASTING if lasts else self.effort
        return times * _work.preparing(self.goal, rows, self.dim)

    def cost(self, entry: Entry) -> float:
        return _work.seconds_per_million(entry.family, entry.known_size, self.dim)

    def certified(self) -> list[Entry]:
        return [entry for entry in self.entries.values() if entry.size is not None]

    def place(self, entry: Entry) -> int:
        return self.rows.index(entry.sample)

    def start(self, family: Family) -> int:
        """Return the size at which a search begins: near what most tables need, so that few sizes are compiled."""
        if self.goal not in ("distance", "spectral"):
            return 1
        all_pairs = self.goal == "distance" and family.unit == "num_frequencies"
        return math.ceil(8 / self.request.eps**2 if all_pairs else 2 / self.request.eps)

    def start_on_more(self, name: str, sample: int | None) -> int:
        """Return the size at which a search on more rows begins: what did on fewer, more where pairs are more.

        The largest of m errors of pairs grows like sqrt(log m), and falls like the root of the size.
        """
        entry, rows = self.entries[name], self.trials.table.rows
        if self.goal != "distance":
            return entry.known_size
        return math.ceil(
            entry.known_size * math.log(sample or rows) / math.log(entry.sample or rows)
        )


def _shares(count: int) -> list[float]:
    """Return shares of what may be needed in turns: three quarters of what is left each, and all of it for the last."""
    return [0.75 * 0.25**k for k in range(count - 1)] + [0.25 ** (count - 1)]


def _promising(entry: Entry, eps: float) -> bool:
    """Tell whether more draws may certify a map: its errors came near to eps and still fall."""
    if (
        entry.size is not None
        or entry.outcome is None
        or entry.outcome.stopped != "out of work"
    ):
        return False
    medians = [(probe.size, float(np.median(probe.errors))) for probe in entry.probes]
    if min((median for _, median in medians), default=0.0) > NEAR * eps:
        return False
    size, last = max(medians, default=(0, 0.0))
    return not any(
        last >= STALLED * median for other, median in medians if 4 * other <= size
    )


def _range(family: Family, demand: Demand | None) -> tuple[int, int]:
    """Return the range of sizes of a search: never more than a statement demands."""
    largest = (
        family.largest
        if demand is None or demand.size is None
        else min(demand.size, family.largest)
    )
    return 1, max(largest, 1)
