"""A certificate for a terminal: what was asked, what to use, how sure that is, the table of maps, and commands."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from proofs_check.certify import words
from proofs_check.engine.reading import plain
from proofs_check.report import console

COLOURS = {
    "certified": "green",
    "not certified": "red",
    "out of time": "yellow",
    "not for this goal": "magenta",
}
LONGEST = 10_000
"""Characters of a line."""


def show(certificate: Any, files: Sequence[Path] = ()) -> None:
    """Print a certificate, and the names of files that were written."""
    commands = certificate.commands
    below = [f"Note: {note}" for note in certificate.data.notes]
    below += [f"Written: {path}" for path in files]
    if commands.again is not None:
        below.append(f"Again: {commands.again}")
    if commands.load is not None:
        # On one line, which Python takes, too.
        below.append("Load: " + "; ".join(commands.load.splitlines()))
    for line in words.summary(certificate):
        print(plain(line, LONGEST))
    columns, rows = words.table(certificate)
    cells = [[plain(cell) for cell in row] for row in rows]
    lines = [plain(line, LONGEST) for line in below]
    console.show(
        columns,
        cells,
        lines,
        numeric=columns[2:],
        colours={"status": COLOURS},
        file=sys.stdout,
    )
