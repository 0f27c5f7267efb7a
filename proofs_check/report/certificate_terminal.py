"""A certificate as a table for a terminal, with what to use and how sure that is below it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from proofs_check.engine.reading import listed
from proofs_check.report import certificate_words as words
from proofs_check.report import console
from proofs_check.report.text import Json, number

_COLUMNS = (
    "map",
    "status",
    "features",
    "median error",
    "draws failed",
    "s per million rows",
)
_COLOURS = {
    "certified": "green",
    "not certified": "red",
    "out of time": "yellow",
    "not for this goal": "magenta",
}


def show(
    document: Json, *, files: Sequence[Path] = (), file: TextIO | None = None
) -> None:
    """Print a certificate to `file` (standard output): maps, what to use, notes on the table, and `files`.

    The table is coloured where rich is installed, and plain text otherwise.
    """
    lines = [*_closing(document), *(f"Written: {path}" for path in files)]
    if document["commands"]["load"]:
        lines.append(
            "Load the map: " + "; ".join(document["commands"]["load"].splitlines())
        )
    columns, rows = _COLUMNS, [_row(entry) for entry in document["maps"]]
    if "prediction" in document:
        columns, rows = words.prediction_columns(document), words.predicted(document)
    console.show(
        columns,
        [[_line(cell) or "-" for cell in row] for row in rows],
        [_line(line) for line in lines],
        numeric=columns[1 if "prediction" in document else 2 :],
        colours={"status": _COLOURS},
        file=sys.stdout if file is None else file,
    )


def _row(entry: Json) -> list[str]:
    failed = (
        f"{number(entry['failures'])} of {number(entry['draws'])}"
        if entry["draws"]
        else ""
    )
    median = (entry["error"] or {}).get("median")
    features, error, seconds = map(
        _figure, (entry["num_features"], median, entry["seconds_per_million"])
    )
    name = entry["map"] + (" (recommended)" if entry["recommended"] else "")
    return [name, entry["status"], features, error, failed, seconds]


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _closing(document: Json) -> list[str]:
    lines = [words.headline(document), *words.sentences(document)]
    if document["map"] is None:
        lines += [
            f"- {status}: {names}: {why}"
            for status, names, why in words.uncertified(document)
        ]
    else:
        lines.append(f"Draw it with {words.sizes_of(document['sizes'])}.")
    for name, features, error, accuracy, seconds, _ in words.compared(document):
        right = (
            ""
            if accuracy is None
            else f", {words.percent(accuracy)} right on rows held out"
        )
        cost = f"{number(seconds)} s per million rows"
        lines.append(
            f"- {name}: {number(features)} numbers a row, error {number(error)}{right}, {cost}"
        )
    lines += [f"- {reason}" for reason in words.reasons(document)]
    lines.append(f"Columns used: {listed(document['data']['columns'])}.")
    return lines + [f"Note: {note}" for note in document["data"]["notes"]]


def _line(text: str) -> str:
    """Return text of the document without what could move the cursor, change colours, or turn the direction."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
