"""Cells of a table, in columns of Arrow that come batch by batch, as numbers in memory or in a file without a name."""

import contextlib
import math
import mmap
import re
import tempfile
from array import array as numbers_array
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from proofs_check.certify._columns import Columns, Wanted, choose, classified, shortened
from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    as_number,
    check_matrix,
    is_missing,
    look,
    memory,
    plain,
)

WRITTEN = ("truths", "percents", "thousands")
"""What numbers may be written as, other than plainly."""
_PART = 0.25  # of the memory, for the numbers of a table; more goes to a file
_MISSING = [
    "",
    "na",
    "n/a",
    "nan",
    "null",
    "NA",
    "N/A",
    "NaN",
    "NULL",
]  # as most files write it
_TRUTH = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")
_DATE = re.compile(
    r"(\d{4}([-/.])\d{1,2}\2\d{1,2}|\d{1,2}([-/.])\d{1,2}\3(\d{4}|\d{2}))([T ].*)?"
)


def gathered(
    where: str,
    names: Sequence[str],
    batches: Callable[[Sequence[int]], Iterator[tuple[int, dict[int, Any]]]],
    wanted: Wanted,
    until: float = math.inf,
    *,
    total: int | None = None,
    unread: Collection[int] = (),
) -> Columns:
    """Return the columns of a table that comes in batches: every cell as a number or NaN, and what was text.

    `batches` takes numbers of columns and yields the rows of a batch and these columns of it; `total` rows are to come,
    if that is known, and columns in `unread` hold no number and are not asked for.
    """
    choice = choose(where, names, wanted)
    chosen, label, rows = (
        choice.chosen,
        choice.label,
        math.inf if wanted.rows is None else wanted.rows,
    )
    held = {i: Cells() for i in chosen if i not in unread}
    codes, classes, numbers = numbers_array("q"), dict[str, int](), Numbers()
    count, more = 0, False
    for size, cells in batches(sorted({*held, *([] if label is None else [label])})):
        look(where, until)
        part = int(min(size, rows - count))
        block = np.full((part, len(chosen)), np.nan)
        for position, i in enumerate(chosen):
            if i in held:
                block[:, position] = held[i].numbers(cells[i].slice(0, part))
        numbers.add(block)
        if label is not None:
            codes.frombytes(_codes(cells[label].slice(0, part), classes).tobytes())
        count, more = count + part, part < size
        if more:
            break
    notes: tuple[str, ...] = (
        (f"Only the first {count:,} rows are used.",) if more else ()
    )
    if total is not None:
        notes = shortened(wanted.rows, total)
        if not notes and count != total:
            raise DataError(f"{where}: declares {total:,} rows and holds {count:,}")
    if not count:
        raise DataError(f"{where}: {NO_NUMBERS}")
    array = numbers.matrix(count, len(chosen))
    check_matrix(where, array.dtype, array.shape)
    found = dict(
        zip(choice.chosen_names, (held.get(i, Cells()) for i in chosen), strict=True)
    )
    table = Columns(
        array, tuple(range(len(chosen))), tuple(found), choice,
        texts={i: cells.text() for i, cells in enumerate(found.values()) if cells.text()[0]},
        written={kind: [name for name, cells in found.items() if kind in cells.kinds] for kind in WRITTEN},
        dates=frozenset(name for name, cells in found.items() if [*cells.kinds] == ["dates"]),
        notes=choice.notes + notes,
    )  # fmt: skip
    return (
        table
        if label is None
        else classified(table, list(classes), np.asarray(codes), choice.names[label])
    )


class Numbers:
    """Rows of numbers, in memory or, beyond a part of it, in a file."""

    def __init__(self) -> None:
        self.held = numbers_array("d")  # text takes far more memory than its numbers
        self.file: Any = None

    def add(self, block: np.ndarray) -> None:
        if self.file is None and 8 * (len(self.held) + block.size) > _PART * memory():
            self.file = tempfile.TemporaryFile()  # noqa: SIM115, it is closed when it is mapped
            self.file.write(self.held)
            self.held = numbers_array("d")
        if self.file is None:
            self.held.frombytes(block.tobytes())
        else:
            self.file.write(block)

    def matrix(self, rows: int, width: int) -> np.ndarray:
        held: Any = self.held
        if self.file is not None:
            self.file.flush()
            with self.file as file:
                held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(held, np.float64).reshape(rows, width)


class Cells:
    """What the cells of a column are written as: kind -> how many, and the first text or date."""

    def __init__(self) -> None:
        self.kinds: dict[str, int] = {}
        self.example = ""

    def text(self) -> tuple[int, str]:
        return self.kinds.get("text", 0) + self.kinds.get("dates", 0), self.example

    def numbers(self, cells: Any) -> np.ndarray:
        """Return a column of Arrow as float64, NaN where a cell holds no number."""
        import pyarrow as arrow
        import pyarrow.compute as compute

        types, kind = arrow.types, cells.type
        if (
            (types.is_primitive(kind) and not types.is_temporal(kind))
            or types.is_decimal(kind)
            or types.is_null(kind)
        ):
            self._note("truths" if types.is_boolean(kind) else "", len(cells))
            return np.asarray(
                cells.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
            )
        if is_text(kind):
            trimmed = compute.utf8_trim_whitespace(cells)
            missing = compute.is_in(trimmed, value_set=arrow.array(_MISSING, kind))
            cells = compute.if_else(missing, arrow.scalar(None, kind), trimmed)
            with contextlib.suppress(
                arrow.ArrowInvalid
            ):  # most columns are all numbers: no need to look at each cell
                return np.asarray(
                    cells.cast(arrow.float64()).to_numpy(zero_copy_only=False)
                )
        elif not types.is_dictionary(kind):
            example = next((str(cell.as_py()) for cell in cells if cell.is_valid), "")
            self._note(
                "dates" if types.is_temporal(kind) else "text",
                len(cells) - cells.null_count,
                example,
            )
            return np.full(len(cells), np.nan)
        distinct, index = _encoded(cells)
        values = np.full(
            len(distinct) + 1, np.nan
        )  # the last for a cell without a value
        for i, times in zip(*np.unique(index, return_counts=True), strict=True):
            cell = "" if i < 0 else str(distinct[int(i)].as_py())
            values[i], written = parsed(cell)
            self._note(written, int(times), cell)
        return values[index]

    def _note(self, kind: str, count: int, example: str = "") -> None:
        if count and kind:
            self.kinds[kind] = self.kinds.get(kind, 0) + count
            if kind in ("text", "dates"):
                self.example = self.example or plain(example.strip(), 30)


def parsed(cell: str) -> tuple[float, str]:
    """Return the number in a cell of text, NaN where there is none, and what it is written as, "" for a plain one."""
    text = cell.strip()
    if is_missing(text):
        return math.nan, ""
    if (truth := _TRUTH.get(text.lower())) is not None:
        return truth, "truths"
    bare = text.removesuffix("%").rstrip()
    grouped = _THOUSANDS.fullmatch(bare) is not None
    number = as_number(bare.replace(",", "") if grouped else bare)
    if number is None:
        return math.nan, "dates" if _DATE.fullmatch(text) else "text"
    if bare != text:
        return number / 100, "percents"
    return number, "thousands" if grouped else "numbers"


def is_text(kind: Any) -> bool:
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def _encoded(cells: Any) -> tuple[Any, np.ndarray]:
    """Return the distinct cells of a column, and the number of each cell among them, -1 for none."""
    held = cells if hasattr(cells, "dictionary") else cells.dictionary_encode()
    return held.dictionary, held.indices.fill_null(-1).to_numpy(
        zero_copy_only=False
    ).astype(np.int64)


def _codes(cells: Any, classes: dict[str, int]) -> np.ndarray:
    """Return the class of every cell, and enter the new ones; text is decoded once for each distinct cell."""
    distinct, index = _encoded(cells)
    used, index = np.unique(index, return_inverse=True)
    values = (None if i < 0 else distinct[int(i)].as_py() for i in used)
    numbers = [
        classes.setdefault("" if value is None else str(value).strip(), len(classes))
        for value in values
    ]
    return np.array(numbers, np.int64)[index]
