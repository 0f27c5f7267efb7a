"""What is known of every map: each is searched in turn, and the cheapest one that is certified is recommended."""

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from proofs_check.certify.certificate import Errors, MapRow, Point, Search
from proofs_check.certify.errors import median_interval, quantiles
from proofs_check.certify.guarantee import guarantee
from proofs_check.certify.maps import Family, cost, limited
from proofs_check.certify.request import Request
from proofs_check.certify.rounding import Rounding
from proofs_check.certify.search import (
    Outcome,
    OutOfTime,
    Probe,
    certify_from,
    grid,
    look,
)
from proofs_check.certify.theory import Demand, least
from proofs_check.certify.trials import Trials
from proofs_check.engine import files
from proofs_check.engine.documents import DocumentError, read_json
from proofs_check.usage import StorageError

NOMINAL = 128
"""Maps are searched in the order of their costs at this size. Another order would recommend the same map, later."""
START = 16
"""The size at which the search of every map begins; it may go either way."""
DEAR = 2.0
"""A map is searched as long as it costs at most so many times as much as the cheapest one. With 1, the table of maps
would hold one row; with 4, a search takes about twice as long."""


class Candidates:
    """The search of all maps, one after the other, from the one that costs least per feature on.

    `demanded` are the sizes of statements, `say` is called with a line after every draw, and `finished` names the file
    that keeps the draws of finished maps.
    """

    def __init__(
        self,
        trials: Trials,
        request: Request,
        demanded: list[Demand],
        say: Callable[[str], None],
        finished: tuple[Path, str] | None,
    ) -> None:
        """Begin without a draw."""
        self.trials = trials
        self.request = request
        self.say = say
        self.store = _Store(finished)
        self.least = least(demanded)
        self.out_of_time = False
        self.stated: dict[str, Probe] = {}

    def rows(self, chosen: Mapping[str, Family]) -> list[MapRow]:
        """Return what is known of every map, in the order of the library; one row at most is recommended."""
        dim = self.trials.table.dim
        limit = self.request.features_at_most
        open_maps = []
        rows: dict[str, list[MapRow]] = {}
        for name, family in chosen.items():
            refusal = self.trials.goal.refuses(name)
            usable = family if limit is None else limited(family, limit)
            if refusal:
                rows[name] = [MapRow(name, "not for this goal", refusal)]
            elif usable.largest < 1:
                words = f"it has more than {limit} features"
                rows[name] = [MapRow(name, "not certified", words)]
            else:
                open_maps.append(usable)
        open_maps.sort(key=lambda family: cost(family, NOMINAL, dim))
        for family in open_maps:
            self._draw_stated(family)
        looks = self._look(open_maps)
        # The cheapest first: dearer maps need not be judged.
        open_maps.sort(key=lambda family: self._cost(family, looks[family.name].size))
        outcomes = self._judge(open_maps, looks)
        for family in open_maps:
            rows[family.name] = self._described(family, outcomes[family.name])
        ordered = [row for name in chosen for row in rows[name]]
        return _recommended(ordered)

    def guarantee(self, best: MapRow, rounding: Rounding) -> str:
        """Return what the recommended row promises."""
        demand = self.least.get(best.map)
        source = "" if demand is None else demand.source
        return guarantee(self.request, self.trials, best, source, rounding)

    def ended(self) -> Search:
        """Return whether the search ended before the deadline."""
        return ended(not self.out_of_time, self.request.time)

    def _draw_stated(self, family: Family) -> None:
        """Draw once what a statement gives: it is about exact numbers, and a draw is not."""
        demand = self.least.get(family.name)
        if demand is None or demand.size is None or demand.size > family.largest:
            return
        try:
            error = self.trials.trial(family)(demand.size, "stated", 0)
        except OutOfTime:
            self.out_of_time = True
            return
        failures = int(not error <= self.request.eps)
        self.stated[family.name] = Probe(demand.size, 0, [error], failures)

    def _look(self, families: list[Family]) -> dict[str, Outcome]:
        """Return the size of each map to judge."""
        outcomes: dict[str, Outcome] = {}
        lowest = math.inf
        for number, family in enumerate(families, 1):
            sizes = self._sizes(family, lowest)
            outcome = Outcome(None, 1.0, 0.0, "too dear", [])
            if sizes:
                run = partial(
                    look,
                    self.trials.trial(family),
                    sizes,
                    start=START,
                    eps=self.request.eps,
                    report=self._report(f"look {number} of {len(families)}", family),
                )
                outcome = self._finished("look", family, sizes, run)
            lowest = min(lowest, self._cost(family, outcome.size))
            outcomes[family.name] = outcome
        return outcomes

    def _judge(
        self, families: list[Family], looks: Mapping[str, Outcome]
    ) -> dict[str, Outcome]:
        """Return what fresh draws say of each map, with the draws of both stages."""
        error_rate = 1 - self.request.confidence - self.trials.goal.once
        outcomes: dict[str, Outcome] = {}
        lowest = math.inf
        for number, family in enumerate(families, 1):
            outcome = looks[family.name]
            sizes = self._sizes(family, lowest)
            if outcome.size is not None and outcome.size not in sizes:
                outcome = replace(outcome, size=None, stopped="too dear")
            if outcome.size is not None:
                run = partial(
                    certify_from,
                    self.trials.trial(family),
                    sizes,
                    outcome.size,
                    eps=self.request.eps,
                    delta=self.request.delta - self.trials.goal.slack,
                    alpha=error_rate / len(families),
                    report=self._report(f"map {number} of {len(families)}", family),
                )
                judged = self._finished("judge", family, sizes, run)
                outcome = replace(judged, probes=[*outcome.probes, *judged.probes])
            lowest = min(lowest, self._cost(family, outcome.size))
            outcomes[family.name] = outcome
        return outcomes

    def _finished(
        self, step: str, family: Family, sizes: list[int], run: Callable[[], Outcome]
    ) -> Outcome:
        """Return the outcome of a step for a map, from the store if it is there."""
        outcome = self.store.get(step, family.name)
        if outcome is None:
            outcome = run()
            if outcome.stopped == "too large" and sizes[-1] < self._largest(family):
                outcome = replace(outcome, stopped="too dear")
            self.out_of_time |= outcome.stopped == "out of time"
            self.store.put(step, family.name, outcome)
        return outcome

    def _largest(self, family: Family) -> int:
        """Return the largest size to try: no more than a valid statement demands."""
        probe = self.stated.get(family.name)
        if probe is None or probe.failures:
            return family.largest
        return probe.size

    def _sizes(self, family: Family, lowest: float) -> list[int]:
        """Return the sizes to try, of which none is much dearer than the cheapest map."""
        sizes = grid(1, self._largest(family))
        return [size for size in sizes if self._cost(family, size) <= DEAR * lowest]

    def _cost(self, family: Family, size: int | None) -> float:
        """Return the cost of a map, infinite without a size."""
        if size is None:
            return math.inf
        return cost(family, size, self.trials.table.dim)

    def _report(self, which: str, family: Family) -> Callable[[int, int, int], None]:
        def report(size: int, count: int, failures: int) -> None:
            self.say(
                f"{which}: {family.name}, {family.unit} {size:,}, {count} draw(s), {failures} failure(s)"
            )

        return report

    def _described(self, family: Family, outcome: Outcome) -> list[MapRow]:
        """Return the row of a search, and the row of a statement if it says more."""
        rows = [self._by_draws(family, outcome)]
        probe = self.stated.get(family.name)
        sampled = self.trials.sample_rows is not None
        if probe is None:
            return rows
        if probe.failures:
            words = f"{rows[0].words}; {self._refuted(family, probe)}"
            return [replace(rows[0], words=words)]
        if outcome.size is None:
            return [self._by_statement(family, probe, rows[0].curve)]
        if sampled:
            rows.append(self._by_statement(family, probe, []))
        return rows

    def _by_draws(self, family: Family, outcome: Outcome) -> MapRow:
        curve = [_point(family, probe) for probe in _ascending(outcome.probes)]
        if outcome.size is None:
            tried = max((probe.size for probe in outcome.probes), default=0)
            words = {
                "too large": f"even {family.unit} {tried:,} fails too often",
                "too dear": f"it would cost more than {DEAR:g} times as much as the cheapest map",
                "out of time": "the deadline came before draws could certify a size",
            }[outcome.stopped]
            late = outcome.stopped == "out of time"
            status = "out of time" if late else "not certified"
            return MapRow(family.name, status, words, curve=curve)
        last = max(outcome.probes, key=lambda probe: probe.stage)
        sample = self.trials.sample_rows
        return replace(
            self._sized(family, outcome.size),
            words=f"{last.failures} of {len(last.errors)} fresh draws failed",
            basis="draws",
            scope="all rows" if sample is None else "samples",
            points_per_draw=sample or self.trials.table.rows,
            draws=len(last.errors),
            failures=last.failures,
            rate_upper=outcome.upper,
            alpha=outcome.alpha,
            error=_errors(last.errors),
            curve=curve,
        )

    def _by_statement(self, family: Family, probe: Probe, curve: list[Point]) -> MapRow:
        demand = self.least[family.name]
        return replace(
            self._sized(family, probe.size),
            words=f"by {demand.source}",
            basis="worst case" if demand.worst_case else "this data",
            scope="all rows",
            points_per_draw=None,
            curve=[*curve, _point(family, probe)],
        )

    def _sized(self, family: Family, size: int) -> MapRow:
        return MapRow(
            family.name,
            "certified",
            "",
            sizes=family.sizes(size),
            num_features=family.num_features(size),
            cost=cost(family, size, self.trials.table.dim),
        )

    def _refuted(self, family: Family, probe: Probe) -> str:
        source = self.least[family.name].source
        return (
            f"{source}, which is about exact numbers, gives {family.unit} {probe.size:,}, but a draw in "
            f"{self.trials.dtype} failed"
        )


def ended(finished: bool, minutes: float) -> Search:
    """Return whether a search ended before the deadline, in words as well."""
    if finished:
        return Search(True, "The search ended before the deadline.")
    words = f"The deadline of {minutes:g} minutes came before all maps were searched."
    return Search(False, words)


class _Store:
    """The outcomes of finished maps, in a file of JSON beside the certificate, under a text that names the request."""

    def __init__(self, place: tuple[Path, str] | None) -> None:
        self.place = place
        self.outcomes: dict[str, Any] = {}
        if place is None:
            return
        path, digest = place
        with suppress(DocumentError):
            document = read_json(path)
            if isinstance(document, dict) and document.get("request") == digest:
                self.outcomes = document["maps"]

    def get(self, step: str, name: str) -> Outcome | None:
        """Return the outcome of a step for a map, None if it is not there."""
        record = self.outcomes.get(f"{step} {name}")
        if record is None:
            return None
        probes = [
            Probe(
                size,
                stage,
                [math.nan if error is None else error for error in errors],
                failures,
            )
            for size, stage, errors, failures in record["probes"]
        ]
        return Outcome(**{**record, "probes": probes})

    def put(self, step: str, name: str, outcome: Outcome) -> None:
        """Keep an outcome, unless the deadline ended the step."""
        if outcome.stopped == "out of time":
            return
        record = dataclasses.asdict(outcome)
        record["probes"] = [
            # JSON has no infinity and no NaN, which fail alike.
            (
                p.size,
                p.stage,
                [e if math.isfinite(e) else None for e in p.errors],
                p.failures,
            )
            for p in outcome.probes
        ]
        self.outcomes[f"{step} {name}"] = record
        if self.place is not None:
            path, digest = self.place
            text = json.dumps({"request": digest, "maps": self.outcomes})
            # A full disk costs what the file would have saved, and nothing else.
            with suppress(StorageError):
                files.write(path, text)


def _recommended(rows: list[MapRow]) -> list[MapRow]:
    """Return the rows with the cheapest certified one marked; what draws certify goes before what theorems do."""
    certified = [row for row in rows if row.cost is not None]
    if not certified:
        return rows
    best = min(
        certified, key=lambda row: (row.basis != "draws", row.cost, row.num_features)
    )
    return [replace(row, recommended=row is best) for row in rows]


def _ascending(probes: list[Probe]) -> list[Probe]:
    return sorted(probes, key=lambda probe: (probe.size, probe.stage))


def _point(family: Family, probe: Probe) -> Point:
    low, median, high = (_finite(x) for x in quantiles(probe.errors))
    return Point(
        size=probe.size,
        num_features=family.num_features(probe.size),
        draws=len(probe.errors),
        failures=probe.failures,
        low=low,
        median=median,
        high=high,
        certifying=probe.stage > 0,
    )


def _errors(errors: list[float]) -> Errors:
    low, high = median_interval(errors)
    _, median, _ = quantiles(errors)
    return Errors(_finite(median), _finite(low), _finite(high), _finite(max(errors)))


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
