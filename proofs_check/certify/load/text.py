"""Files of text, such as .csv: what separates the cells, whether there is a header, and the rows as text."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from proofs_check.certify.load.cells import MISSING
from proofs_check.certify.load.columns import Columns, Options, choose
from proofs_check.engine.reading import NO_NUMBERS, DataError, listed, one_line, plain

SUFFIXES = (".csv", ".tsv", ".txt")
_SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ","}
_BLOCK = 2**23  # bytes of text at once, and so the length of the longest row
_VALUE = re.compile(r"[+-]?\.?\d[\d.,:/ %eE+-]*")  # a number or a date
_NO_NAMES = MISSING | {"true", "false", "yes", "no"}


def is_text(path: Path) -> bool:
    """Return whether a file is one of text, by its name."""
    return path.name.lower().removesuffix(".gz").endswith(SUFFIXES)


def open_text(path: Path) -> Any:
    """Open a file of text, which may be compressed."""
    return gzip.open(path) if path.suffix.lower() == ".gz" else path.open("rb")


def read_text(
    where: str, file: BinaryIO, options: Options
) -> tuple[Columns, Iterator[Any]]:
    """Return the columns of a file, and the rows in batches of Arrow, for which the file must stay open."""
    start = file.read(_BLOCK)
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(
            f"{where}: is not plain text in UTF-8; in pandas, read_csv(..., encoding='latin-1') reads other "
            "files, and to_csv writes UTF-8"
        )
    if not text.strip():
        raise DataError(f"{where}: {NO_NUMBERS}")
    mark = options.separator or _separator(where, text)
    mark = _SEPARATORS.get(mark, mark)
    rows, skipped = _rows(text, mark, 1)
    if not rows:
        raise DataError(f"{where}: a cell has no end; is a quotation mark missing?")
    cells = [cell.strip() for cell in rows[0]]
    header = None
    if _is_header(where, cells, options.header):
        # The name that pandas gives to a column without one.
        header = [cell or f"Unnamed: {i}" for i, cell in enumerate(cells)]
    columns = choose(where, len(cells), header, options)
    file.seek(0)
    return columns, _batches(columns, file, mark, skipped if header else 0)


def _batches(
    columns: Columns, file: BinaryIO, mark: str, skipped: int
) -> Iterator[Any]:
    """Yield the columns that are needed in batches of Arrow, all cells as text."""
    import pyarrow as arrow
    from pyarrow import csv as reader

    names = columns.names
    try:
        yield from reader.open_csv(
            file,
            reader.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                column_names=names,
                skip_rows_after_names=skipped,
            ),
            reader.ParseOptions(
                delimiter=mark,
                newlines_in_values=True,
                # Rows of white space are no rows.
                invalid_row_handler=lambda row: "error" if row.text.strip() else "skip",
            ),
            reader.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.string()),
                include_columns=[*columns.chosen, *columns.labelled],
            ),
        )
    except arrow.ArrowInvalid as error:
        raise DataError(
            f"{columns.where}: {one_line(error)}; is a quotation mark missing, or is another mark the separator "
            "(--separator)? Cells with decimal commas are separated by semicolons or quoted"
        ) from None


def _is_header(where: str, cells: list[str], header: str | None) -> bool:
    """Return whether the first line is a header: it is if no cell is a value, and some cell is a name."""
    if header is not None:
        return header == "yes"
    # What pandas writes if columns have no names: an empty cell for the index, and numbers.
    if len(cells) > 2 and cells == ["", *map(str, range(len(cells) - 1))]:
        return True
    values = [cell for cell in cells if _VALUE.fullmatch(cell)]
    if values or _NO_NAMES.issuperset(map(str.lower, cells)):
        raise DataError(
            f"{where}: the first line holds {listed(map(plain, values or cells))}: is it a header or a row? "
            "pass --header yes or --header no (header='no')"
        )
    return True


def _separator(where: str, text: str) -> str:
    """Return the first mark with which the first two rows have as many cells, and more than one."""
    for mark in "\t;, ":
        widths = [len(cells) for cells in _rows(text, mark, 2)[0]]
        if widths and widths[0] == widths[-1] > 1:
            break
    else:
        return ","
    if mark == " ":
        raise DataError(
            f"{where}: cells are separated by spaces; in pandas, read_csv(..., sep=r'\\s+') reads them, "
            "and to_csv writes commas"
        )
    return mark


def _rows(text: str, mark: str, count: int) -> tuple[list[list[str]], int]:
    """Return the first rows that are not blank, and how many rows these are with blank ones."""
    # No other characters end a line: str.splitlines() would split at a form feed.
    lines = io.StringIO(text, newline="")
    rows: list[list[str]] = []
    total = 0
    with contextlib.suppress(csv.Error):  # a cell without end
        for cells in csv.reader(lines, delimiter=mark):
            total += 1
            if len(cells) > 1 or "".join(cells).strip():
                rows.append(cells)
            if len(rows) == count:
                break
    return rows, total
