"""The certificate: a recommended map, what is known of every other one, and the document that says so."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxkern import io
from proofs_check.certify import _document, _page
from proofs_check.certify._model import EXACT, Demand, Facts, Family, Hypothesis, Rounding
from proofs_check.certify._plan import MOST_ROWS, Clock, Entry, by_a_statement, measured
from proofs_check.certify._search import median_interval, quantiles
from proofs_check.certify._theory import rounding_share
from proofs_check.certify._trials import Trials

MISSED = 0.01
"""The chance that a sample holds none of the pairs of a map with too many bad ones."""
MOST_DETAIL_ROWS = 2_000


@dataclass(frozen=True)
class Certificate:
    """What `certify` found.

    Attributes
    ----------
    document : all of it, as in certificate.json (docs/certificate_schema.md).
    map, sizes : the recommended map and its sizes; None and {} where no map could be certified.
    """

    document: dict[str, Any]
    _trials: Trials = field(repr=False)
    _entry: Entry | None = field(repr=False)
    _key: Any = field(repr=False)

    def __getattr__(self, name: str) -> Any:
        """Return what the document holds under a name, such as `eps` or `guarantee`."""
        try:
            return self.__dict__["document"][name]
        except KeyError:
            raise AttributeError(name) from None

    def draw(self, key: Any = None) -> Any:
        """Return the recommended map, for points as they are in the table: a callable PyTree.

        `key` is a typed random key, by default that of the certificate, whose map `save` keeps. Raises ValueError where
        no map was certified.
        """
        if self._entry is None or self._entry.size is None:
            raise ValueError("no map was certified, so there is none to draw; the document says why")
        key = jax.random.clone(self._key) if key is None else key
        return self._trials.draw(self._entry.family, self._entry.size, key)

    def save(self, path: str | Path) -> None:
        """Write the recommended map to a file, for `jaxkern.io.load`. Raises as `draw` and `io.save` do."""
        io.save(path, self.draw())

    def write(self, folder: str | Path) -> None:
        """Write certificate.html and then certificate.json into a folder that exists, each in one step.

        Raises OSError where it cannot.
        """
        from proofs_check.engine import files

        folder = Path(folder)
        files.write(folder / "certificate.html", _page.render(self.document))
        _document.write(folder / "certificate.json", self.document)

    def fails(self, key: Any, *, draws: int = 200) -> tuple[int, int]:
        """Return (failures, draws) of as many fresh draws of the recommended map, measured as the certificate says.

        That is on the samples that its guarantee is about, and otherwise on all rows, or on a sample of as many as a
        trial can look at. Raises ValueError where no map was certified.
        """
        entry = self._entry
        if entry is None or entry.size is None:
            raise ValueError("no map was certified, so there is none to draw; the document says why")
        mine = self._trials
        most = MOST_ROWS[mine.goal.name]
        sample = entry.sample or (most if mine.table.rows > most else None)
        trial = Trials(key, mine.table, mine.kernel, mine.goal, mine.dtype).trial(entry.family, sample)
        errors = [trial(entry.size, "again", number) for number in range(draws)]
        return sum(not error <= self.document["eps"] for error in errors), draws


def recommended(
    trials: Trials, entries: Sequence[Entry], eps: float, clock: Clock
) -> tuple[Entry | None, float | None, dict[str, float | None]]:
    """Return the entry to recommend, its seconds per million points, and those of every certified map.

    A guarantee for all rows goes before one for samples, then time per point decides; where there was no time to
    measure it, it is None, and features decide. Where a statement about all rows goes first for a map that draws
    certified on samples, one draw at its size is measured before.
    """
    ready = [entry for entry in entries if entry.size is not None]
    seconds = {entry.family.name: trials.cost(entry.family, entry.size, clock.left) for entry in ready if entry.size}
    costs = [(entry, seconds[entry.family.name]) for entry in ready]
    for entry in entries:
        stated = None if entry.for_all_rows else by_a_statement(entry)
        if stated is not None and stated.size is not None:
            costs.append((stated, trials.cost(stated.family, stated.size, clock.left)))

    def order(pair: tuple[Entry, float | None]) -> tuple[bool, bool, float]:
        entry, cost = pair
        features = entry.family.num_features(entry.size)  # type: ignore[arg-type]
        return not entry.for_all_rows, cost is None, features if cost is None else cost

    for entry, cost in sorted(costs, key=order):
        best = entry
        if entry.basis != "draws" and entry not in ready:
            sample = next(other.sample for other in entries if other.family is entry.family)
            best = measured(trials, entry, sample, eps, Clock(clock.left), most=1)
        if best.size is not None:
            return best, cost, seconds
    return None, None, seconds


def theory(demands: Sequence[Demand], families: dict[str, Family]) -> list[dict[str, Any]]:
    """Return what the statements demand, as JSON."""
    found = []
    for demand in demands:
        family = families.get(demand.map)
        known = family is not None and demand.size is not None
        found.append(
            {
                "map": demand.map,
                "sizes": family.sizes(demand.size) if known else None,  # type: ignore[union-attr, arg-type]
                "num_features": family.num_features(demand.size) if known else None,  # type: ignore[union-attr, arg-type]
                "source": demand.source,
                "words": demand.words,
                "worst_case": demand.worst_case,
            }
        )
    return found


def described(trials: Trials, entry: Entry, seconds: float | None, clock: Clock) -> dict[str, Any]:
    """Return what was found for one map, as JSON."""
    family, outcome = entry.family, entry.outcome
    itemsize = np.dtype(trials.dtype).itemsize
    drawn = outcome.probes if entry.basis == "draws" and outcome is not None else entry.probes[-1:]
    chosen = [probe for probe in drawn if probe.size == entry.size]
    errors = np.concatenate([probe.errors for probe in chosen]) if chosen else np.empty(0)
    attempts = [probe for probe in chosen if probe.certifying] if entry.basis == "draws" else []
    certifying = attempts[-1:]  # the one that succeeded
    known = entry.size is not None
    width = family.num_features(entry.size) if known else None  # type: ignore[arg-type]
    return {
        "map": family.name,
        "status": entry.status,
        "words": entry.words,
        "sizes": family.sizes(entry.size) if known else None,  # type: ignore[arg-type]
        "num_features": width,
        "basis": entry.basis,
        "scope": None if not known else "all rows" if entry.sample is None else "samples",
        "points_per_draw": trials.table.rows if entry.sample is None else entry.sample,
        "draws": certifying[0].draws if certifying else 0,
        "failures": certifying[0].failures if certifying else 0,
        "rate_upper": outcome.upper if outcome is not None and certifying else None,
        "alpha": outcome.alpha if outcome is not None else 0.0,
        "error": _errors(errors),
        "seconds_per_million": seconds,
        "map_bytes": trials.map_bytes(family, entry.size) if known else None,  # type: ignore[arg-type]
        "feature_bytes_per_million": None if width is None else 1_000_000 * width * itemsize,
        "curve": _curve(trials, entry, clock),
    }


def _errors(errors: np.ndarray) -> dict[str, float] | None:
    if not len(errors) or not np.isfinite(errors).all():
        return None
    low, high = median_interval(errors)
    if not math.isfinite(low):  # too few draws
        return None
    return {"median": float(np.median(errors)), "low": low, "high": high, "largest": float(errors.max())}


def _curve(trials: Trials, entry: Entry, clock: Clock) -> list[dict[str, Any]]:
    """Return the errors at every size that was tried, with the time per point."""
    probes = [probe for probe in entry.probes if probe.draws and np.isfinite(probe.errors).all()]
    times = _times(trials, entry.family, sorted({probe.size for probe in probes}), clock)
    points = []
    for probe in sorted(probes, key=lambda probe: (probe.size, probe.certifying)):
        low, median, high = quantiles(probe)
        points.append(
            {
                "size": probe.size,
                "num_features": entry.family.num_features(probe.size),
                "draws": probe.draws,
                "failures": probe.failures,
                "low": low,
                "median": median,
                "high": high,
                "seconds_per_million": times[probe.size],
                "certifying": probe.certifying,
            }
        )
    return points


def _times(trials: Trials, family: Family, sizes: Sequence[int], clock: Clock) -> dict[int, float | None]:
    """Return the seconds per million points at every size: measured at three, and between them on straight lines.

    The lines are those through the logarithms of sizes and times. Where no time is left, sizes that were measured
    before serve, and there are none where none was.
    """
    for size in (sizes[0], sizes[len(sizes) // 2], sizes[-1]) if sizes else ():
        trials.cost(family, size, clock.left)
    measured = trials.costs(family)
    if not measured:
        return dict.fromkeys(sizes)
    known = sorted(measured)
    between = np.exp(np.interp(np.log(sizes), np.log(known), np.log([measured[size] for size in known])))
    return dict(zip(sizes, between.tolist(), strict=True))


def guarantee(
    trials: Trials, entry: Entry, eps: float, delta: float, confidence: float, rounding: Rounding = EXACT
) -> str:
    """Return what the certificate promises, in a few sentences."""
    goal, dtype = trials.goal.name, trials.dtype
    over = f"With probability at least {1 - delta:g} over the draw of the map"
    units = ", standardised in float64" if trials.table.standardized else ""
    kept = (
        f"the error is at most {eps:g}. The error is {trials.goal.words}, against the kernel of the rows as they were "
        f"read{units}; what {dtype} rounds of them and of the map is part of it."
    )
    drawn = f"Shown by fresh draws, with confidence {confidence:g}."
    if entry.basis in ("worst case", "this data"):
        kind = ", for every table of this kind" if entry.basis == "worst case" else ""
        share = rounding_share(rounding, goal, entry.family.name)
        kept += f" Rounding may take {share:.2g} of it, and the rest is by a theorem{kind}." if share else ""
        close = f" Pairs at a kernel distance below {rounding.closest:.2g} are left out: it may change them more."
        kept += close if rounding.closest else ""
        return f"{over}, for all rows of this table, {kept} Source: {entry.demand.source}."  # type: ignore[union-attr]
    if entry.sample is None:
        return f"{over}, for all rows of this table, {kept} {drawn}"
    said = (
        f"{over} and of a sample of {entry.sample:,} rows, drawn independently from the table, {kept} {drawn} "
        "This is about samples, and weaker than a guarantee for all rows"
    )
    if goal != "distance":
        return said + "."
    # Half as many independent pairs: none of them is bad with probability (1 - q)^(s / 2), q the share of bad pairs.
    share = -math.expm1(math.log(MISSED) / (entry.sample // 2))
    return (
        f"{said}: with probability at least {1 - delta / (1 - MISSED):.4g} over the map alone, at most "
        f"{100 * share:.2g} % of all pairs are off by more."
    )


def reasons(
    best: Entry, mine: float | None, entries: Sequence[Entry], seconds: Mapping[str, float | None]
) -> list[str]:
    """Return why this map and this size, in plain sentences."""
    family, size = best.family, best.size
    assert size is not None
    found = (
        []
        if mine is None
        else [f"{family.name} maps a million points in {mine:.3g} s here, with {family.num_features(size):,} features."]
    )
    for entry in entries:
        if entry is best or entry.size is None:
            continue
        other = seconds[entry.family.name]
        if other is None or mine is None:
            continue
        name = f"{entry.family.name} with {entry.family.num_features(entry.size):,} features"
        if best.for_all_rows and not entry.for_all_rows:
            cheaper = f", and {mine / other:.2g} times as fast" if other < mine else ""
            found.append(f"{name} is certified for samples of {entry.sample:,} rows only{cheaper}.")
        else:
            found.append(f"{name} takes {other / mine:.2g} times as long.")
    demand = best.demand
    if demand is not None and best.basis == "draws" and demand.size:
        found.append(
            f"The draws certify {family.unit} {size:,}, {demand.size / size:.2g} times fewer than {demand.source} asks."
        )
    elif demand is None:
        found.append(f"No statement gives a size of {family.name} for this goal on these data: draws alone certify it.")
    return found


def spectrum(facts: Facts) -> dict[str, Any]:
    """Return the spectrum of the Gram matrix, as JSON."""
    return {
        "points": facts.sampled,
        "eigenvalues": [float(value) for value in facts.eigenvalues[:200]],
        "effective_dimension": {name: float(value) for name, value in facts.effective_dimension.items()},
        "decay": dict(facts.decay),
    }


def hypotheses(found: Sequence[Hypothesis]) -> list[dict[str, Any]]:
    """Return the hypotheses of the statements, as JSON."""
    return [dataclasses.asdict(hypothesis) for hypothesis in found]
