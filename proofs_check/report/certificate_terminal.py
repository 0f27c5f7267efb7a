"""A certificate as a table for a terminal, with the recommendation below it."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from proofs_check.report import console
from proofs_check.report.certificate import basis_of, scope_of, sizes_of
from proofs_check.report.text import Json, number

_COLUMNS = ("map", "status", "sizes", "features", "basis", "limit", "median error", "s/million", "MB")
_NUMERIC = {"features", "limit", "median error", "s/million", "MB"}
_COLOURS = {"certified": "green", "not certified": "red", "out of time": "yellow", "not for this goal": "magenta"}


def show(document: Json, *, files: Sequence[Path] = (), file: TextIO | None = None) -> None:
    """Print a certificate to `file` (standard output): maps, what to use and why, notes on the table, and `files`.

    The table is coloured where rich is installed, and plain text otherwise.
    """
    lines = [*_closing(document), *(f"Written: {path}" for path in files)]
    if document["commands"]["load"]:
        lines.append("Load the map: " + "; ".join(document["commands"]["load"].splitlines()))
    console.show(
        _COLUMNS,
        [[_line(cell) or "-" for cell in _row(entry)] for entry in document["maps"]],
        [_line(line) for line in lines],
        numeric=_NUMERIC,
        colours={"status": _COLOURS},
        file=sys.stdout if file is None else file,
    )


def _row(entry: Json) -> list[str]:
    error, size = entry["error"], entry["map_bytes"]
    figures = (
        entry["rate_upper"],
        None if error is None else error["median"],
        entry["seconds_per_million"],
        None if size is None else size / 1e6,
    )
    names = (entry["map"], entry["status"], sizes_of(entry["sizes"]))
    return [*names, _figure(entry["num_features"]), entry["basis"] or "", *map(_figure, figures)]


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _closing(document: Json) -> list[str]:
    if document["map"] is None:
        lines = [f"No map could be certified for {document['data']['source']}."]
    else:
        features = "" if document["num_features"] is None else f": {number(document['num_features'])} features"
        lines = [f"Use {document['map']} with {sizes_of(document['sizes'])}{features}."]
        if document["basis"]:
            lines.append(f"Certified by {basis_of(document)}, for {scope_of(document)}.")
    lines.append(f"Guarantee: {document['guarantee'] or 'none'}")
    lines += [f"- {reason}" for reason in document["reasons"]]
    return lines + [f"Note: {note}" for note in document["data"]["notes"]]


def _line(text: str) -> str:
    """Return text of the document without what could move the cursor, change colours, or turn the direction."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)
