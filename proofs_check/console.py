"""A table and lines below it for a terminal: coloured where rich is installed, plain text otherwise."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TextIO

NO_RICH = "(plain text: install jaxkern-verified[check] for the coloured table)"


def show(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    lines: Sequence[str],
    *,
    numeric: Collection[str],
    colours: Mapping[str, Mapping[str, str]],
    file: TextIO,
) -> None:
    """Print a table with these columns, and lines below it.

    The columns in `numeric` stand to the right; `colours` has, by column, the colours of its words. There are none
    where `file` is not a terminal.
    """
    try:
        from rich.console import Console
        from rich.table import Table
        from rich.text import Text
    except ImportError:
        print("\n".join([NO_RICH, *_plain([columns, *rows]), "", *lines]), file=file)
        return
    # A pipe has no width; text that a person or grep will read must not be cut at 80 columns.
    console = Console(file=file, width=None if file.isatty() else 200)
    table = Table()
    for name in columns:
        table.add_column(name, justify="right" if name in numeric else "left")
    for row in rows:
        cells = zip(columns, row, strict=True)
        table.add_row(*(Text(cell, colours.get(name, {}).get(cell, "")) for name, cell in cells))
    console.print(table)
    for line in lines:
        console.print(Text(line), soft_wrap=True)


def _plain(table: Sequence[Sequence[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
