"""Run cases and make a document of them: plain dictionaries, as the JSON file has them."""

import dataclasses
import gc
import statistics
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from benchmarks import (
    _machine,
    _timing,
    checks,
    clustering,
    growth,
    many,
    maps,
    pca,
    storage,
)
from benchmarks._case import Case, Disagreement, Growth
from benchmarks._numpy import one_blas_thread

SCHEMA = 1
REGISTRY: dict[str, Case | Growth] = {
    case.name: case
    for group in (
        growth.GROWTH,
        *(part.CASES for part in (maps, pca, storage, clustering, many, checks)),
    )
    for case in group
}
"""Every case by its name, in the order in which they run: where memory counts while there is little else in it."""


_NO_TARGETS: dict[type, dict[str, Any]] = {
    Case: {"at_least": {}, "at_most": None, "sweep": None},
    Growth: {"exponent": None, "most_bytes": None},
}
"""Targets are for full sizes."""


def document(results: Sequence[dict[str, Any]], *, is_small: bool) -> dict[str, Any]:
    """Return what the JSON file holds."""
    return {
        "schema": SCHEMA,
        "small": is_small,
        **_machine.describe(),
        "cases": list(results),
    }


def run(
    case: Case | Growth, *, is_small: bool, rounds: int | None = None
) -> dict[str, Any]:
    """Run one case; where results disagree, the result says so under `error` and has no times."""
    about = {
        "name": case.name,
        "what": case.what,
        "kind": "growth" if isinstance(case, Growth) else "comparison",
    }
    rounds = rounds or case.rounds
    if is_small:
        case = dataclasses.replace(case, **_NO_TARGETS[type(case)])
    try:
        found = (
            _grow(case, rounds, is_small)
            if isinstance(case, Growth)
            else _compare(case, rounds, is_small)
        )
    except Disagreement as error:
        found = {"error": str(error)}
    gc.collect()
    return about | {"rounds": rounds} | found


def _compare(case: Case, rounds: int, is_small: bool) -> dict[str, Any]:
    work = case.make(is_small)
    with one_blas_thread() if case.one_blas_thread else nullcontext():
        times = _timing.measure(work, rounds)
    peers = {}
    for name, theirs in times.peers.items():
        ratio = _timing.paired_ratio(theirs, times.ours)
        peers[name] = _times(theirs) | {
            "faster": dataclasses.asdict(ratio),
            "repeats": _timing.repeats(theirs),
        }
        if (least := case.at_least.get(name)) is not None:
            peers[name] |= {"target": least, "met": ratio.median >= least}
    found: dict[str, Any] = {
        "items": work.items,
        "unit": work.unit,
        "blas_threads": 1 if case.one_blas_thread else _machine.threads(),
        "first_call_s": times.first,
        "compile_s": times.compiling,
        "recompiled": times.recompiled,
        "ours": _times(times.ours)
        | {"per_second": work.items / statistics.median(times.ours)},
        "peers": peers,
        "floor": None,
        "sweep": case.sweep,
        "checked": times.checked,
    }
    if work.floor:
        floor, best = times.floor_times(), times.best()
        ratio = _timing.paired_ratio(times.ours, floor)
        parts = {
            part: {
                "library": best[part],
                "medians_s": {
                    name: statistics.median(each) for name, each in libs.items()
                },
            }
            for part, libs in times.floor.items()
        }
        found["floor"] = _times(floor) | {
            "parts": parts,
            "over": dataclasses.asdict(ratio),
        }
        if case.at_most is not None:
            found["floor"] |= {
                "target": case.at_most,
                "met": ratio.median <= case.at_most,
            }
    return found


def _times(times: Sequence[float]) -> dict[str, Any]:
    return {"median_s": statistics.median(times), "times_s": list(times)}


def _grow(case: Growth, rounds: int, is_small: bool) -> dict[str, Any]:
    points = []
    for size in case.sizes(is_small):
        with tempfile.TemporaryDirectory(prefix="benchmarks") as folder:
            function = case.prepare(size, is_small, Path(folder))
            first, _ = _timing.timed(function, first=True)
            gc.collect()
            with _machine.peak_memory() as peak:
                _timing.timed(function)
            times = [_timing.timed(function)[0] for _ in range(rounds)]
            del function
        points.append(
            {
                "size": size,
                "first_call_s": first,
                **_times(times),
                "added_bytes": peak.added,
                "bytes": peak.absolute,
            }
        )
        gc.collect()
    sizes = [point["size"] for point in points]
    time = _timing.exponent(sizes, [point["median_s"] for point in points])
    memory = _timing.exponent(sizes, [point["added_bytes"] or 0 for point in points])
    found: dict[str, Any] = {
        "variable": case.variable,
        "points": points,
        "exponent_of_time": time and dataclasses.asdict(time),
        "exponent_of_memory": memory and dataclasses.asdict(memory),
        "targets": {},
    }
    if case.exponent is not None and time is not None:
        low, high = case.exponent
        found["targets"]["exponent_of_time"] = {
            "target": [low, high],
            "met": low <= time.slope <= high,
        }
    most = [point["bytes"] for point in points if point["bytes"] is not None]
    if case.most_bytes is not None and most:
        found["targets"]["bytes"] = {
            "target": case.most_bytes,
            "met": max(most) <= case.most_bytes,
        }
    return found
