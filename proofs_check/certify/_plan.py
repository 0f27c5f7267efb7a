"""Which map, at which size, with which guarantee: the order in which the time of a certificate is spent."""

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from proofs_check.certify._clock import CELLS, Clock
from proofs_check.certify._entries import (
    GROWTH,
    MOST_ROWS,
    Entry,
    by_a_statement,
    least_demands,
    or_by_a_statement,
    searched,
)
from proofs_check.certify._model import Demand, Family, Outcome
from proofs_check.certify._request import Request
from proofs_check.certify._search import search
from proofs_check.certify._trials import Trials

Say = Callable[[str], None]

TRIALS = 400
"""Trials of a map that are planned for: those that certify, and a share for the search."""
FIRST_SHARE = 0.4
"""Share of the time for all maps on samples, where all rows come afterwards."""
DRAWING = 0.6
"""Share of the time of a map for its trials; the rest is for compiling one program a size."""
DRAWING_AGAIN = 0.8
"""The same for a map that is tried again near the size that it had."""
LEVELS = (0.8, 0.1, 0.1)
"""Shares of the error rate of a map by round: nearly all maps that are certified are in the first."""
LEAST_SHARE = 4.0
"""Seconds that a map takes to compile before it is drawn, about: where there is not that much for each, the maps that
come first are left out of a round."""
HELD = 5.0
"""Seconds that are held back for a draw at the sizes of statements, or a quarter of the time where that is less."""
NEAR = 3.0
"""A map that ran out of time is tried again where the median of its errors fell below this many eps."""
STALLED = 0.8
"""But not where that at the largest size is still this share of one at a quarter of the size: it should be half."""
WORTH_MORE = 1.5
SEARCHING = 40
"""Draws of a search that begins near its end."""
FEWEST_ROWS = 200
CALIBRATION_ROWS = 1000
LAST = {"distance": ("fastfood", "shifted_fourier", "orthogonal_fourier", "paired_fourier")}
"""Maps that come last, by goal: they are the likely ones, and have the time that others leave."""
LIKELY = ("kernel_jl", "kernel_pca", "nystrom")
"""The likely ones of all other goals."""
UPGRADES = 3
LASTING = 4
"""What lasts for all draws takes as many times as long to prepare as what serves one, about."""


def find(
    trials: Trials, families: Mapping[str, Family], demands: Sequence[Demand], request: Request, clock: Clock, say: Say
) -> list[Entry]:
    """Return one entry a map: certified on samples that the time allows, then the best on larger ones or on all rows.

    All certificates of a call hold together with probability `confidence`: half of what it leaves is shared by the
    maps, half by those that are tried again on more rows.
    """
    hunt = _Hunt(trials, families, demands, request, say)
    whole, held = clock, min(clock.left / 4, HELD) if least_demands(demands) else 0.0
    clock = Clock(whole.left - held)
    sample = hunt.rows_of_a_trial(clock) if hunt.ranges else None
    shared = (1 - request.confidence - getattr(trials.goal, "once", 0.0)) / (1 if sample is None else 2)
    alone = sample is None or hunt.fitting(clock.left) == 1
    first = Clock(clock.left * (1.0 if alone else FIRST_SHARE))
    names = list(hunt.ranges)
    for attempt in range(len(LEVELS) - 1):
        names = hunt.one_round(attempt, names, sample, shared, first)
    if sample is not None:
        hunt.on_more_rows(shared, clock)
    hunt.one_round(len(LEVELS) - 1, names, sample, shared, clock)
    return [
        Entry(family, "not for this goal", hunt.refused[name])
        if name in hunt.refused
        else or_by_a_statement(trials, hunt.entries[name], sample, request.eps, whole)
        for name, family in families.items()
    ]


class _Hunt:
    """The maps that the goal makes sense for, in the order in which they are tried, and what is known of each so far.

    `ranges` holds the sizes of a search by map, `entries` what was found, and `refused` why other maps are not tried.
    """

    def __init__(
        self, trials: Trials, families: Mapping[str, Family], demands: Sequence[Demand], request: Request, say: Say
    ) -> None:
        self._trials, self._families, self._say = trials, families, say
        self._goal = trials.goal.name
        self._eps, self._delta = request.eps, request.delta
        self._least = least_demands(demands)
        self.refused = {name: why for name in families if (why := trials.goal.refuses(name))}
        last = LAST.get(self._goal, LIKELY)
        names = [name for name in families if name not in self.refused]
        names.sort(key=lambda name: last.index(name) if name in last else -1)
        self.ranges = {name: _range(families[name], self._least.get(name)) for name in names}
        self.entries: dict[str, Entry] = {}

    def one_round(
        self, attempt: int, names: Sequence[str], sample: int | None, shared: float, until: Clock
    ) -> list[str]:
        """Search these maps, each in an equal share of what is left; return those that another round may certify.

        Those that are searched share the error rate of the round. How many they are is known before it begins.
        """
        skipped = max(len(names) - self.fitting(until.left), 0)
        alpha = shared * LEVELS[attempt] / max(len(names) - skipped, 1)
        for i, name in enumerate(names):
            share = 0.0 if i < skipped else until.left / (len(names) - i)
            self._enter(name, self._search(name, sample, self.ranges[name], alpha, share, attempt), sample)
        return [name for name in names if _promising(self.entries[name], self._eps)]

    def on_more_rows(self, shared: float, clock: Clock) -> None:
        """Try the fastest maps again on as many rows as the time allows, up to one that is certified on all."""
        tried: set[str] = set()
        for _ in range(UPGRADES):
            upgrade = self._upgrade(tried, shared / UPGRADES, clock)
            if upgrade is None:
                break
            name, rows = upgrade
            sizes = self.entries[name].size or 1, self.ranges[name][1]
            outcome = self._search(name, rows, sizes, shared / UPGRADES, clock.left)
            if outcome.size is None:
                tried.add(name)
                continue
            self._enter(name, outcome, rows)
            if rows is None:
                break

    def fitting(self, seconds: float) -> int:
        """Return how many maps there is time for."""
        return min(max(int(seconds / LEAST_SHARE), 1), len(self.ranges))

    def rows_of_a_trial(self, clock: Clock) -> int | None:
        """Return how many rows a trial can look at in the time that is left, None for all of them."""
        trials, growth = self._trials, GROWTH[self._goal]
        rows, dim = trials.table.rows, trials.table.dim
        most = min(rows, MOST_ROWS[self._goal])
        first = min(most, CALIBRATION_ROWS, max(CELLS // dim, FEWEST_ROWS))
        name = list(self.ranges)[-1]
        while first > FEWEST_ROWS and trials.preparing(first, growth) > clock.left / 4:
            first //= 2
        size = min(max(self.ranges[name][1] // 2, 1), max(CELLS // dim, 1))
        try:
            prepare, error = trials.timed(self._families[name], size, first, clock)
        except TimeoutError:
            return first
        share = FIRST_SHARE * clock.left / math.ceil(self.fitting(clock.left) / 2)  # some leave their time to others
        allowed = max(DRAWING * share / TRIALS, 1e-9)
        self._say(f"a trial on {first:,} rows takes {prepare + error:.3g} s")
        more = (rows / first) ** growth
        if (
            rows <= most
            and hasattr(trials.goal, "lasting")
            and LASTING * prepare * more <= FIRST_SHARE * clock.left / 2
        ):
            try:
                few = min(size, math.ceil(8 / self._eps))
                if trials.timed(self._families[name], few, None, clock)[1] <= allowed / FIRST_SHARE:
                    return None
            except TimeoutError:
                return first
        if rows <= most and error * more <= allowed / FIRST_SHARE and prepare * more <= FIRST_SHARE * clock.left:
            return None  # all rows are prepared once
        return int(min(max(first * (allowed / (prepare + error)) ** (1 / growth), FEWEST_ROWS), most))

    def _search(
        self, name: str, sample: int | None, sizes: tuple[int, int], alpha: float, seconds: float, attempt: int = 0
    ) -> Outcome:
        family = self._families[name]
        where = "all rows" if sample is None else f"samples of {sample:,} rows"

        def report(size: int, _stage: int, draws: int, failures: int) -> None:
            self._say(f"{name} on {where}: {family.unit} {size:,}, {draws} draw(s), {failures} failure(s)")

        return search(
            self._trials.trial(family, sample, attempt),
            smallest=sizes[0],
            largest=sizes[1],
            eps=self._eps,
            delta=self._delta - getattr(self._trials.goal, "slack", 0.0),
            alpha=alpha,
            seconds=seconds,
            start=self._start(family),
            report=report,
        )

    def _start(self, family: Family) -> int:
        """Return the size at which a search begins: near what most tables need, so that few sizes are compiled."""
        if self._goal not in ("distance", "spectral"):
            return family.smallest
        all_pairs = self._goal == "distance" and family.unit == "num_frequencies"
        return math.ceil(8 / self._eps**2 if all_pairs else 2 / self._eps)

    def _enter(self, name: str, outcome: Outcome, sample: int | None) -> None:
        before = self.entries.get(name)
        self.entries[name] = searched(self._families[name], outcome, sample, self._least.get(name), before)

    def _upgrade(self, tried: set[str], alpha: float, clock: Clock) -> tuple[str, int | None] | None:
        """Return the fastest map that can be tried on more rows, and on how many: None for all of them."""

        def cost(entry: Entry) -> float:
            return self._trials.cost(entry.family, entry.known_size, clock.left) or math.inf

        left = {name: entry for name, entry in self.entries.items() if name not in tried}
        costs = {name: cost(entry) for name, entry in left.items() if entry.size is not None}
        stated = filter(None, map(by_a_statement, left.values())) if costs else ()
        limit = min(map(cost, stated), default=math.inf)
        for name in sorted(costs, key=costs.__getitem__):
            rows = self._more_rows(self.entries[name], clock.left, alpha)
            if costs[name] < limit and rows != self.entries[name].sample:
                return name, rows
        return None

    def _more_rows(self, entry: Entry, seconds: float, alpha: float) -> int | None:
        """Return how many rows a trial can look at when one map has the time, None for all of them.

        That is the sample of before where it would not be at least `WORTH_MORE` times as large.
        """
        rows, before = self._trials.table.rows, entry.sample or self._trials.table.rows
        most = min(rows, MOST_ROWS[self._goal])
        last = [probe for probe in entry.probes if probe.certifying][-1]
        needed = 1.3 * math.log(1 / alpha) / self._delta + SEARCHING
        factor = (DRAWING_AGAIN * seconds / (needed * last.seconds / last.draws)) ** (1 / GROWTH[self._goal])
        can = factor * before
        if can >= rows and rows <= most:
            return None
        return before if can < WORTH_MORE * before else int(min(can, most))


def _promising(entry: Entry, eps: float) -> bool:
    """Tell whether more time may certify a map: the time ended, and its errors came near to eps and still fall."""
    if entry.status != "out of time":
        return False
    medians = [(probe.size, float(np.median(probe.errors))) for probe in entry.probes]
    if min((median for _, median in medians), default=0.0) > NEAR * eps:
        return False
    size, last = max(medians, default=(0, 0.0))
    return not any(last >= STALLED * median for other, median in medians if 4 * other <= size)


def _range(family: Family, demand: Demand | None) -> tuple[int, int]:
    """Return the range of sizes of a search: never more than a statement demands."""
    largest = family.largest if demand is None or demand.size is None else min(demand.size, family.largest)
    return family.smallest, max(largest, family.smallest)
