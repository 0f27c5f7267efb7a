"""Files of text, such as .csv: what separates the cells, whether there is a header, and the rows as text."""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from proofs_check.certify.load.cells import MISSING
from proofs_check.certify.load.columns import Wanted, check_width, numbered
from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    listed,
    one_line,
    place,
    plain,
)

SUFFIXES = (".csv", ".tsv", ".txt")
SEPARATORS = {"tab": "\t", "semicolon": ";", "comma": ","}
"""In the order in which they are looked for."""
_BLOCK = 2**23  # bytes of text at once, and so the length of the longest row
_TRUTH = {"true", "false", "yes", "no"}
_DATE = re.compile(
    r"[+-]?\d[\d.,:/ %+-]*"
)  # or a number that is written in another way


def check(wanted: Wanted, path: Path) -> None:
    """Raise DataError for an option that is not known, or for one of a file of text with another file."""
    known = {
        "separator": (None, *SEPARATORS),
        "header": (None, "yes", "no"),
        "decimal": (".", ","),
    }
    for name, values in known.items():
        value = getattr(wanted, name)
        if value not in values:
            words = ", ".join(repr(word) for word in values if word)
            raise DataError(f"{name} must be one of {words}, got {plain(value)!r}")
        if value != values[0] and not is_text(path):
            raise DataError(f"{place(path)}: {name} is for {', '.join(SUFFIXES)} only")


@dataclass(frozen=True)
class Head:
    """The first line: names of the columns, and where the rows begin."""

    names: list[str]
    separator: str
    offset: int
    """In bytes."""
    guess: list[str]
    """Cells that look like values, if the first line was taken for a header all the same."""

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence if it is not certain that the first line is a header."""
        if not self.guess:
            return ()
        return (
            f"The first line is taken for a header, and {listed(self.guess)} for names "
            "(--header no: for a row).",
        )


def is_text(path: Path) -> bool:
    """Return whether a file is one of text, by its name."""
    name = path.name.lower().removesuffix(".gz")
    return name.endswith(SUFFIXES)


def open_text(path: Path) -> BinaryIO:
    """Open a file of text, which may be compressed."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path)  # type: ignore[return-value]
    return path.open("rb")


def read_head(path: Path, file: BinaryIO, wanted: Wanted) -> Head:
    """Read the first line. Raises DataError if it may be a header or a row."""
    where = place(path)
    raw = file.read(_BLOCK)
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(raw)
    except UnicodeDecodeError:
        raise DataError(_encoded(where)) from None
    if "\0" in text:
        raise DataError(
            f"{where}: holds a NUL character, so it is no plain text in UTF-8"
        )
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    if not text.strip():
        raise DataError(f"{where}: {NO_NUMBERS}")
    separator = _separator(where, text, wanted)
    rows, start, end = _rows(text, separator, 1)
    if not rows:
        raise DataError(_long(where))
    cells = [cell.strip() for cell in rows[0]]
    check_width(where, len(cells))
    header, guess = _is_header(where, cells, wanted.header)
    if header and len(raw) < _BLOCK and not text[end:].strip():
        raise DataError(f"{where}: {NO_NUMBERS}")
    names = numbered(len(cells))
    if header:
        # The name that pandas gives to a column without one.
        names = [cell or f"Unnamed: {i}" for i, cell in enumerate(cells)]
    before = text[: end if header else start]
    offset = len((mark + before).encode())
    return Head(names, separator, offset, guess)


def batches(
    path: Path, file: BinaryIO, head: Head, columns: Sequence[int]
) -> Iterator[Any]:
    """Yield columns of the rows in batches of Arrow, all cells as text."""
    import pyarrow as arrow
    from pyarrow import csv as reader

    where = place(path)

    def skip_blank(row: Any) -> str:
        return "error" if row.text.strip() else "skip"

    names = [str(i) for i in range(len(head.names))]
    file.seek(head.offset)
    try:
        yield from reader.open_csv(
            file,
            reader.ReadOptions(
                use_threads=False, block_size=_BLOCK, column_names=names
            ),
            reader.ParseOptions(
                delimiter=head.separator,
                newlines_in_values=True,
                invalid_row_handler=skip_blank,
            ),
            reader.ConvertOptions(
                column_types=dict.fromkeys(names, arrow.string()),
                include_columns=[names[i] for i in columns],
            ),
        )
    except arrow.ArrowInvalid as error:
        why = one_line(error)
        if "Expected" in why:
            raise DataError(
                f"{where}: {why}; cells with decimal commas are separated by semicolons or quoted, and --separator "
                "says what separates others"
            ) from None
        if "straddl" in why:
            raise DataError(_long(where)) from None
        if "UTF8" in why:
            raise DataError(_encoded(where)) from None
        raise


def check_guess(path: Path, head: Head, name: str, cells: Any) -> None:
    """Raise DataError if a name of the header is a cell of its column: the header may be a row."""
    import pyarrow.compute as compute

    if head.guess and compute.any(compute.equal(cells, name)).as_py():
        raise DataError(_ask(place(path), [*head.guess, name]))


def is_value(cell: str) -> bool:
    """Return whether a cell of the first line is rather a number or a date than a name."""
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return _DATE.fullmatch(cell) is not None


def _is_header(
    where: str, cells: list[str], header: str | None
) -> tuple[bool, list[str]]:
    """Return whether the first line is a header, and which of its cells look like values."""
    if header is not None:
        return header == "yes", []
    values = [cell for cell in cells if is_value(cell)]
    words = [cell for cell in cells if cell.lower() in MISSING | _TRUTH]
    counted = ["", *(str(i) for i in range(len(cells) - 1))]
    if cells == counted and len(cells) > 2:  # pandas, if columns have no names
        return True, []
    only_values = len(values) + len(words) == len(cells)
    if only_values or not all(map(str.isdigit, values)):
        raise DataError(_ask(where, values or words))
    return True, values


def _separator(where: str, text: str, wanted: Wanted) -> str:
    """Return the separator: the first one for which the first two rows have as many cells, and more than one."""
    if wanted.separator is not None:
        return SEPARATORS[wanted.separator]
    line = text.lstrip().partition("\n")[0]
    check_width(where, max(line.count(mark) + 1 for mark in SEPARATORS.values()))
    wide = []
    for mark in (*SEPARATORS.values(), " "):
        rows = _rows(text, mark, 2)[0] or [[]]
        if len(rows[0]) > 1:
            wide.append(mark)
        if len(rows[0]) == len(rows[-1]) > 1:
            break
    else:
        return wide[0] if wide else ","
    if mark == " ":
        raise DataError(
            f"{where}: cells are separated by spaces; in pandas, read_csv(..., sep=r'\\s+') reads them, "
            "and to_csv writes commas"
        )
    return mark


def _rows(text: str, separator: str, count: int) -> tuple[list[list[str]], int, int]:
    """Return the first rows that are not blank, and where the last of them starts and ends."""
    # No other characters end a line: str.splitlines() would split at a form feed.
    lines = io.StringIO(text, newline="")
    rows: list[list[str]] = []
    start = end = 0
    with contextlib.suppress(csv.Error):  # a cell without end
        for cells in csv.reader(lines, delimiter=separator):
            if "".join(cells).strip() or len(cells) > 1:
                rows.append(cells)
                start = end
            end = lines.tell()
            if len(rows) == count:
                break
    return rows, start, end


def _ask(where: str, cells: Sequence[str]) -> str:
    return (
        f"{where}: the first line holds {listed(map(plain, cells))}: is it a header or a row? "
        "pass --header yes or --header no"
    )


def _encoded(where: str) -> str:
    return (
        f"{where}: is not text in UTF-8; in pandas, read_csv(..., encoding='latin-1') reads other "
        "files, and to_csv writes UTF-8"
    )


def _long(where: str) -> str:
    return f"{where}: a row is longer than {_BLOCK:,} bytes, or a cell has no end; is a quotation mark missing?"
