"""A certificate as a table for a terminal, with the recommendation below it."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from proofs_check.certify._page import basis_of, scope_of, sizes_of
from proofs_check.report import console
from proofs_check.report.html._parts import number

_COLUMNS = ("map", "status", "sizes", "features", "basis", "limit", "median error", "s/million", "MB")
_NUMERIC = {"features", "limit", "median error", "s/million", "MB"}
_COLOURS = {
    "status": {"certified": "green", "not certified": "red", "out of time": "yellow", "not for this goal": "magenta"}
}


def show(document: Mapping[str, Any], *, files: Sequence[Path] = (), file: TextIO | None = None) -> None:
    """Print a certificate to `file` (standard output): a table of maps, what to use and why, what was
    done to the table of points, and where the files are.

    The table is coloured where rich is installed, and plain text otherwise.
    """
    lines = [*_closing(document), *(f"Written: {_line(path)}" for path in files)]
    if document["commands"]["load"]:
        lines.append("Load the map: " + "; ".join(map(_line, document["commands"]["load"].splitlines())))
    console.show(
        _COLUMNS,
        [_row(entry) for entry in document["maps"]],
        lines,
        numeric=_NUMERIC,
        colours=_COLOURS,
        file=sys.stdout if file is None else file,
    )


def _row(entry: Mapping[str, Any]) -> list[str]:
    error, held = entry["error"], entry["map_bytes"]
    figures = (
        entry["rate_upper"],
        None if error is None else error["median"],
        entry["seconds_per_million"],
        None if held is None else held / 1e6,
    )
    words = (entry["map"], entry["status"], sizes_of(entry["sizes"]))
    cells = (*words, _figure(entry["num_features"]), entry["basis"] or "", *map(_figure, figures))
    return [_line(cell) or "-" for cell in cells]


def _figure(value: float | None) -> str:
    return "" if value is None else number(value)


def _closing(document: Mapping[str, Any]) -> list[str]:
    if document["map"] is None:
        lines = [f"No map could be certified for {_line(document['data']['source'])}."]
    else:
        features = "" if document["num_features"] is None else f": {number(document['num_features'])} features"
        lines = [
            f"Use {_line(document['map'])} with {_line(sizes_of(document['sizes']))}{features}.",
            f"Certified by {basis_of(document)}, for {scope_of(document)}." if document["basis"] else "",
        ]
    lines.append(f"Guarantee: {_line(document['guarantee'] or 'none')}")
    lines += [f"- {_line(reason)}" for reason in document["reasons"]]
    lines += [f"Note: {_line(note)}" for note in document["data"]["notes"]]
    return [line for line in lines if line]


def _line(text: object) -> str:
    """Return text of the document without what could move the cursor, change colours, or turn the direction."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in str(text))
