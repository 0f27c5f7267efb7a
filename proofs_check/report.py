"""What a run found, for a terminal and as strict JSON, and how far it is."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from proofs_check.claim import Claim, Verdict
from proofs_check.run import ClaimResult, rejected
from proofs_check.runner import Progress

SCHEMA = 1
NO_RICH = "(plain text: install jaxkern-verified[check] for the coloured table)"
COLUMNS = ("claim", "where", "form", "verdict", "expected", "slack", "trials", "controls", "seconds")
COLOURS = {
    "identity": "green",
    "certified": "green",
    "calibrated": "green",
    "consistent": "cyan",
    "refuted": "red",
    "vacuous": "magenta",
    "not testable": "yellow",
}
_NUMERIC = {"slack", "trials", "controls", "seconds"}
_SECONDS_BETWEEN_LINES = 5.0


@dataclass(frozen=True)
class About:
    """What a run was asked for: everything its numbers depend on. `note` says what was done to the user's data."""

    profile: str
    seed: int
    family_alpha: float
    dtype: str
    note: str = ""


def terminal(results: Sequence[ClaimResult], about: About, *, file: TextIO | None = None) -> None:
    """Print the table of verdicts and, below it, the reason of each that a reader will ask about.

    A coloured table where rich is installed, plain text otherwise; no colours where `file` (standard output) is not
    a terminal.
    """
    file = sys.stdout if file is None else file
    rows = [row for result in results for row in _rows(result)]
    lines = [line for result in results for line in _explanations(result)]
    closing = _closing(results, about)
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print("\n".join([NO_RICH, *_plain(rows), "", *lines, *([""] if lines else []), *closing]), file=file)
        return
    # A pipe has no width; text that a person or grep will read must not be cut at 80 columns.
    console = Console(file=file, width=None if file.isatty() else 200)
    table = Table()
    for name in COLUMNS:
        table.add_column(name, justify="right" if name in _NUMERIC else "left")
    for row in rows:
        table.add_row(*(Text(cell, COLOURS.get(cell, "") if i == 3 else "") for i, cell in enumerate(row)))
    console.print(table)
    for line in (*lines, *closing):
        console.print(Text(line), soft_wrap=True)


def as_json(
    results: Sequence[ClaimResult], about: About, *, run: Mapping[str, Any], complete: bool = True
) -> dict[str, Any]:
    """Return the report as strict JSON: NaN is null, infinities are the strings "inf" and "-inf".

    Two runs with equal settings agree in everything but the key `run`, which holds the entries of the argument and
    the seconds that each claim took. `complete` is False where the run was interrupted.
    """
    claims = [
        {
            **describe(result.claim),
            "as_expected": result.as_expected,
            "notes": result.notes,
            "forms": [
                {
                    "form": name,
                    "expected": form.expect,
                    "as_expected": name not in result.unexpected,
                    "seed": about.seed,
                    **_verdict(verdict),
                }
                for name, form, verdict in result.forms
            ],
            "controls": [
                {"name": name, "rejected": rejected(verdict), "seed": about.seed, **_verdict(verdict)}
                for name, verdict in result.controls
            ],
        }
        for result in results
    ]
    report = {
        "schema": SCHEMA,
        "profile": about.profile,
        "seed": about.seed,
        "dtype": about.dtype,
        "family_alpha": about.family_alpha,
        "note": about.note,
        "complete": complete,
        "as_expected": all(result.as_expected for result in results),
        "claims": claims,
        "run": {**run, "seconds": {result.claim.id: result.seconds for result in results}},
    }
    strict: dict[str, Any] = _strict(report)
    return strict


def write_json(path: Path, report: Mapping[str, Any]) -> None:
    """Write a report in one step: a reader never finds half a file."""
    aside = path.with_suffix(".tmp")
    aside.write_text(json.dumps(report, indent=1, allow_nan=False, ensure_ascii=False) + "\n", encoding="utf-8")
    os.replace(aside, path)


def describe(claim: Claim) -> dict[str, Any]:
    """Return what `list --json` says of a claim."""
    return {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "kind": claim.kind,
        "statement": claim.tex,
        "expected_printed": None if claim.printed is None else claim.printed.expect,
        "expected_corrected": None if claim.corrected is None else claim.corrected.expect,
        "because": claim.because,
    }


@contextlib.contextmanager
def progress(file: TextIO | None = None) -> Iterator[Progress]:
    """Give a callback (done, total): a bar on a terminal, a line every few seconds elsewhere."""
    file = sys.stderr if file is None else file
    start = last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _SECONDS_BETWEEN_LINES:
            last = now
            left = (now - start) * (total - done) / max(done, 1)
            print(f"proofs-check: {done} of {total} trials, about {left:.0f} s left", file=file, flush=True)

    try:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar
    except ImportError:
        yield line
        return
    if not file.isatty():
        yield line
        return
    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(file=file), transient=True) as bar:
        task = bar.add_task("trials", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _rows(result: ClaimResult) -> list[tuple[str, ...]]:
    claim = result.claim
    controls = f"{sum(rejected(verdict) for _, verdict in result.controls)}/{len(result.controls)}"
    return [
        (
            claim.id,
            claim.where,
            name,
            verdict.status,
            form.expect,
            "-" if math.isnan(verdict.slack) else f"{verdict.slack:.3g}",
            str(_trials(verdict)),
            controls,
            f"{result.seconds:.1f}",
        )
        for name, form, verdict in result.forms
    ]


def _explanations(result: ClaimResult) -> list[str]:
    lines = []
    for name, form, verdict in result.forms:
        if name in result.unexpected or verdict.status in ("refuted", "vacuous", "not testable"):
            extra = f" (expected {form.expect})" if verdict.status != form.expect else ""
            lines.append(f"{result.claim.id} {name}, {verdict.status}{extra}: {verdict.because}")
    lines += [f"{result.claim.id}: {note}" for note in result.notes]
    if lines and result.claim.because:
        lines.append(f"{result.claim.id}: {result.claim.because}")
    if not result.as_expected:
        lines.append(f"{result.claim.id}: NOT AS EXPECTED")
    return lines


def _closing(results: Sequence[ClaimResult], about: About) -> list[str]:
    wrong = [result.claim.id for result in results if not result.as_expected]
    head = "not as expected: " + ", ".join(wrong) if wrong else "all as expected"
    lines = [
        f"{len(results)} claim(s), {head}.",
        f"A true statement is refuted with probability at most {about.family_alpha:g} in the whole run. "
        f"Profile {about.profile}, seed {about.seed}, {about.dtype}.",
    ]
    return [*lines, about.note] if about.note else lines


def _plain(rows: Sequence[tuple[str, ...]]) -> list[str]:
    table = [COLUMNS, *rows]
    widths = [max(len(row[i]) for row in table) for i in range(len(COLUMNS))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]


def _trials(verdict: Verdict) -> int:
    return sum(evidence.trials for evidence in verdict.evidence)


def _verdict(verdict: Verdict) -> dict[str, Any]:
    return {
        "status": verdict.status,
        "because": verdict.because,
        "alpha": verdict.alpha,
        "slack": verdict.slack,
        "trials": _trials(verdict),
        "facts": verdict.facts,
        "evidence": [{"setting": e.setting, "trials": e.trials, "facts": e.facts} for e in verdict.evidence],
    }


def _strict(value: Any) -> Any:
    """Return `value` in the types of strict JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _strict(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_strict(entry) for entry in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return None if math.isnan(value) else float(value) if math.isfinite(value) else str(float(value))
    if hasattr(value, "dtype"):  # NumPy and JAX
        return _strict(np.asarray(value).tolist())
    return str(value)
