"""Columns of a user's file as they are, with names, text and missing cells, which are left to the caller to judge.

Like `proofs_check.engine.reading`, it trusts no file, and every error is one line.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from array import array as numbers_array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    as_number,
    check_matrix,
    check_unpacked,
    csv_rows,
    is_header,
    is_missing,
    is_npz,
    listed,
    look,
    npz_names,
    one_line,
    place,
    plain,
    read_npy,
    read_npz,
    reading,
)

__all__ = ["Columns", "labelled", "read_columns", "select"]

_CELLS_AT_ONCE = 2**17  # of text, which takes far more memory than its numbers
_NUMBERS_AT_ONCE = 2**22
_OLDEST_ARROW = 16
_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Columns:
    """Columns of a table as they were read: nothing repaired, and nothing left out for what it holds.

    Attributes
    ----------
    array : (rows, width), of a real dtype, maybe mapped from a file. Cells that hold no number are NaN.
    used : the columns of `array` that were chosen, in this order.
    names : names of the chosen columns, distinct.
    texts : position among the chosen columns -> number of cells with text, and the first such text.
    classes : (rows,) int32, an index into `class_names`, -1 for a missing label; None without labels.
    class_names : names of the classes, numbers in ascending order or text in alphabetical order.
    label : name of the column of labels, "" without one.
    left_out : name of a column -> why it is not among the chosen ones.
    notes : sentences about what was read.
    """

    array: np.ndarray
    used: tuple[int, ...]
    names: tuple[str, ...]
    texts: dict[int, tuple[int, str]] = field(default_factory=dict)
    classes: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    label: str = ""
    left_out: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def read_columns(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    rows: int | None = None,
    until: float = math.inf,
) -> Columns:
    """Return columns of a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    Parameters
    ----------
    path : the file. An array of `.npy` is mapped, not read; the others are read into memory.
    columns : names, numbers from 1, or ranges of numbers such as "5-8"; a name comes first where it looks like a
        number. None: all. Arrays and files without a header have the names x1, x2, ...
    labels : name or number of a column of classes, or name of a vector in `.npz`. None: the vector y of a `.npz` file
        that has one, otherwise no labels. The column of labels is not among the chosen ones.
    rows : how many rows to read, from the first; None: all.
    until : when reading is given up, by the monotonic clock.

    Raises DataError for everything that is wrong with the file or with what is asked of it. `.csv` takes about a
    microsecond a cell.
    """
    path = Path(path)
    kinds = {".npy": ".npy", ".npz": ".npz (with X)", ".csv": ".csv", ".parquet": ".parquet"}
    with reading(path, kinds):
        suffix = path.suffix.lower()
        if suffix == ".csv":
            return _csv_columns(path, columns, labels, rows, until)
        if suffix == ".parquet":
            return _parquet_columns(path, columns, labels, rows, until)
        with path.open("rb") as file:
            if not is_npz(file):
                return select(place(path), read_npy(path, file, mapped=True), columns, labels, rows)
            X = read_npz(path, file, "X")
            others = [name for name in npz_names(path, file) if name != "X"]
            if labels is None and "y" in others:
                return _with_y(path, file, select(place(path), X, columns, None, rows), len(X))
            if labels is None or labels not in others:
                return select(place(path), X, columns, labels, rows)
            found = select(place(path), X, columns, None, rows)
            return labelled(place(path), found, read_npz(path, file, labels), labels, len(X))


def select(
    where: str,
    array: np.ndarray,
    columns: Sequence[str] | None,
    labels: str | None,
    rows: int | None,
    names: Sequence[str] | None = None,
) -> Columns:
    """Return columns of a matrix; `where` begins every message."""
    check_matrix(where, array.dtype, array.shape)
    width = array.shape[1]
    if names is not None and len(names) != width:
        raise DataError(f"{where}: has {width} column(s), but {len(names)} name(s) were given")
    choice = _choose(where, _numbered(width) if names is None else names, columns, labels)
    found = choice.of(array[:rows], choice.chosen, {}, _shortened(rows, len(array)))
    if choice.label is None:
        return found
    return labelled(where, found, array[:, choice.label], choice.names[choice.label], len(array))


def labelled(where: str, found: Columns, values: np.ndarray, name: str, rows: int) -> Columns:
    """Return the columns with a vector of labels for `rows` rows, of which the columns may hold only the first ones."""
    name = plain(name)
    if values.dtype.kind not in "biufUS":
        raise DataError(f"{where}: the labels {name!r} have entries of type {values.dtype}, not numbers or text")
    if values.shape not in ((rows,), (rows, 1)):
        raise DataError(f"{where}: the labels {name!r} have shape {values.shape}, and X has {rows} row(s)")
    values = values.ravel()[: len(found.array)]
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    distinct, codes = np.unique(values, return_inverse=True)
    return _classified(found, [str(value) for value in distinct.tolist()], codes, name)


# Arrays


def _with_y(path: Path, file: BinaryIO, found: Columns, rows: int) -> Columns:
    """Use y for labels where it can be; nobody asked for it, so what is wrong with it is only noted."""
    try:
        with_y = labelled(place(path), found, read_npz(path, file, "y"), "y", rows)
    except DataError as error:
        why = str(error).removeprefix(f"{place(path)}: ")
    else:
        if with_y.classes is None or np.all(with_y.classes >= 0):
            return with_y
        why = "some of its entries are missing"
    return replace(found, notes=(*found.notes, f"The array y is not used as labels: {why}."))


# Text


def _csv_columns(
    path: Path, columns: Sequence[str] | None, labels: str | None, rows: int | None, until: float
) -> Columns:
    where = place(path)
    lines = csv_rows(path)
    line, first = next(lines, (0, []))
    if not first:
        raise DataError(f"{where}: {NO_NUMBERS}")
    _check_width(where, len(first))
    header = is_header(first)
    names = [cell.strip() or f"x{i}" for i, cell in enumerate(first, 1)] if header else _numbered(len(first))
    try:
        choice = _choose(where, names, columns, labels)
    except DataError as error:
        raise DataError(f"{error}" if header else f"{error}; the file has no header") from None
    chosen, label = choice.chosen, choice.label
    body = itertools.islice(lines if header else itertools.chain([(line, first)], lines), rows)
    values, codes = numbers_array("d"), numbers_array("q")
    classes: dict[str, int] = {}
    texts: dict[int, tuple[int, str]] = {}
    while part := [row for _, row in itertools.islice(body, max(1, _CELLS_AT_ONCE // len(first)))]:
        look(where, until)
        cells = list(zip(*part, strict=True))
        block = np.empty((len(part), len(chosen)))
        for position, column in enumerate(chosen):
            block[:, position] = _parsed(cells[column], position, texts)
        values.frombytes(block.tobytes())
        if label is not None:
            codes.extend(classes.setdefault(cell.strip(), len(classes)) for cell in cells[label])
    count = len(values) // len(chosen)
    if not count:
        raise DataError(f"{where}: {NO_NUMBERS}")
    more = count == rows and next(lines, None) is not None
    notes = (f"Only the first {count:,} rows are used.",) if more else ()
    array = np.frombuffer(values, np.float64).reshape(count, len(chosen))
    check_matrix(where, array.dtype, array.shape)
    found = choice.of(array, range(len(chosen)), texts, notes)
    if label is None:
        return found
    return _classified(found, list(classes), np.frombuffer(codes, np.int64), choice.names[label])


def _parsed(cells: Sequence[str], position: int, texts: dict[int, tuple[int, str]]) -> list[float]:
    """Return the numbers of a column, NaN where a cell holds none, and count its text."""
    with contextlib.suppress(ValueError):  # most columns are all numbers, and need no look at each cell
        if "_" not in "".join(cells):
            return [float(cell) for cell in cells]
    numbers = [as_number(cell) for cell in cells]
    strange = [cell for cell, number in zip(cells, numbers, strict=True) if number is None and not is_missing(cell)]
    if strange:
        count, example = texts.get(position, (0, plain(strange[0].strip(), 30)))
        texts[position] = (count + len(strange), example)
    return [math.nan if number is None else number for number in numbers]


# Parquet


def _parquet_columns(
    path: Path, columns: Sequence[str] | None, labels: str | None, rows: int | None, until: float
) -> Columns:
    where = place(path)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(
            f"{where}: reading .parquet needs pyarrow: python3 -m pip install 'jaxkern-verified[parquet]'"
        ) from None
    if int(arrow.__version__.partition(".")[0]) < _OLDEST_ARROW:  # those before 14.0.1 run code of the file
        raise DataError(f"{where}: reading .parquet needs pyarrow {_OLDEST_ARROW} or newer, not {arrow.__version__}")
    try:
        with parquet.ParquetFile(path) as file:
            schema, metadata, length = file.schema_arrow, file.metadata, path.stat().st_size
            choice = _choose(where, schema.names, columns, labels)
            chosen, label = choice.chosen, choice.label
            total = metadata.num_rows  # as declared: a damaged file may say -1
            count = total if rows is None else min(rows, total)
            kinds = [field.type for field in schema]
            numeric = [i for i in chosen if _is_numeric(arrow, kinds[i])]
            check_unpacked(where, 8 * max(count, 0) * len(chosen), length)
            declared = sum(metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups))
            check_unpacked(where, declared, length)
            nested = [i for i, kind in enumerate(kinds) if arrow.types.is_nested(kind)]
            if label in nested:
                raise DataError(f"{where}: the labels {choice.names[label]!r} are {plain(kinds[label])}, not one a row")
            if nested and len(set(schema.names)) < len(schema.names):
                raise DataError(f"{where}: has columns of one name, and nested ones; give each a name of its own")
        # Text stays in dictionaries: a long one that all rows share would otherwise be copied for every row.
        texts_in = [name for name, kind in zip(schema.names, kinds, strict=True) if _is_text(arrow, kind)]
        with parquet.ParquetFile(path, read_dictionary=texts_in) as file:
            array = np.full((max(count, 0), len(chosen)), np.nan)
            codes = np.empty(len(array), np.int64)
            classes: dict[str, int] = {}
            start = 0
            wanted = sorted({*numeric, *([] if label is None else [label])})
            for size, cells in _batches(file, wanted) if wanted else ():
                look(where, until)
                stop = min(start + size, count)
                for i in numeric:
                    held = cells[i].slice(0, stop - start).cast(arrow.float64(), safe=False)
                    array[start:stop, chosen.index(i)] = held.to_numpy(zero_copy_only=False)
                if label is not None:
                    codes[start:stop] = _codes(arrow, cells[label].slice(0, stop - start), classes)
                start = stop
                if start == count:
                    break
            if wanted and start != count:
                raise DataError(f"{where}: declares {total:,} rows and holds {start:,}")
            # An example each, but of lists and the like, of which one row may hold any number.
            others = [i for i in chosen if i not in numeric and i not in nested]
            _, cells = next(_batches(file, others, most=100), (0, {})) if others else (0, {})
            texts = {chosen.index(i): (count, _example(held)) for i, held in cells.items()}
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:  # whatever Arrow makes of a file that is not its own, such as text that is no UTF-8
        raise DataError(f"{where}: cannot be read as .parquet ({one_line(error)})") from None
    check_matrix(where, array.dtype, array.shape)
    found = choice.of(array, range(len(chosen)), texts, _shortened(rows, total))
    return found if label is None else _classified(found, list(classes), codes, choice.names[label])


def _is_numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _is_text(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return any(is_kind(kind) for is_kind in (types.is_string, types.is_large_string, types.is_binary))


def _batches(file: Any, wanted: Sequence[int], most: int = 2**16) -> Iterator[tuple[int, dict[int, Any]]]:
    """Yield the number of rows and the wanted columns of each batch."""
    names = file.schema_arrow.names
    if len(set(names)) < len(names):  # two columns of one name can only be told apart where all are read
        size = max(1, min(most, _NUMBERS_AT_ONCE // len(names)))
        for batch in file.iter_batches(batch_size=size):
            yield len(batch), {i: batch.column(i) for i in wanted}
    else:
        size = max(1, min(most, _NUMBERS_AT_ONCE // len(wanted)))
        for batch in file.iter_batches(batch_size=size, columns=[names[i] for i in wanted]):
            yield len(batch), {i: batch.column(batch.schema.get_field_index(names[i])) for i in wanted}


def _codes(arrow: Any, cells: Any, classes: dict[str, int]) -> np.ndarray:
    """Return the class of every cell, and enter the new ones; text is decoded once for each distinct cell."""
    held = cells if arrow.types.is_dictionary(cells.type) else cells.dictionary_encode()
    used, index = np.unique(held.indices.fill_null(-1).to_numpy(zero_copy_only=False), return_inverse=True)
    words = ("" if i < 0 else held.dictionary[int(i)].as_py() for i in used)
    numbers = [classes.setdefault("" if word is None else str(word).strip(), len(classes)) for word in words]
    return np.array(numbers, np.int64)[index]


def _example(cells: Any) -> str:
    return next((plain(cell.as_py(), 30) for cell in cells if cell.is_valid), "")


# The choice of columns


@dataclass(frozen=True)
class _Choice:
    """Names of all columns of a file, numbers of the chosen ones and of the one with labels, and notes on the names."""

    names: list[str]
    chosen: list[int]
    label: int | None
    notes: tuple[str, ...]

    def of(
        self, array: np.ndarray, used: Sequence[int], texts: dict[int, tuple[int, str]], notes: tuple[str, ...]
    ) -> Columns:
        """Return the chosen columns, which are the columns `used` of an array, as yet without labels."""
        left_out = {} if self.label is None else {self.names[self.label]: "holds the labels"}
        names = tuple(self.names[i] for i in self.chosen)
        return Columns(array, tuple(used), names, texts, left_out=left_out, notes=self.notes + notes)


def _numbered(width: int) -> list[str]:
    return [f"x{i}" for i in range(1, min(width, _MOST_COLUMNS) + 1)]  # a declared width may be any number


def _check_width(where: str, width: int) -> None:
    if width >= _MOST_COLUMNS:
        raise DataError(f"{where}: has {_MOST_COLUMNS:,} columns or more, which is too wide")


def _shortened(rows: int | None, total: int) -> tuple[str, ...]:
    return () if rows is None or rows >= total else (f"Only the first {rows:,} of {total:,} rows are used.",)


def _distinct(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names that are plain and distinct, and a sentence if some were not distinct."""
    called = [plain(name) for name in names]
    taken, seen, times = set(called), set(), Counter[str]()
    twice = []
    for i, name in enumerate(called):
        if name in seen:
            twice.append(name)
            while called[i] in taken:
                times[name] += 1
                called[i] = f"{name} ({times[name] + 1})"
            taken.add(called[i])
        seen.add(called[i])
    if not twice:
        return called, ()
    return called, (
        f"Several columns have the same name; the later ones are numbered: {listed(dict.fromkeys(twice))}.",
    )


def _choose(where: str, held: Sequence[str], columns: Sequence[str] | None, labels: str | None) -> _Choice:
    _check_width(where, len(held))
    names, notes = _distinct(held)
    places = {name: i for i, name in enumerate(names)}
    label = None
    if labels is not None:
        label, *others = _positions(where, str(labels), places)
        if others:
            raise DataError(f"{where}: the labels are one column, and {plain(labels)!r} names several")
    wanted = range(len(names)) if columns is None else [i for c in columns for i in _positions(where, str(c), places)]
    if len(set(wanted)) < len(wanted):
        again = next(names[i] for i, times in Counter(wanted).items() if times > 1)
        raise DataError(f"{where}: column {again!r} is chosen twice")
    chosen = [i for i in wanted if i != label]
    if not chosen and names:
        raise DataError(f"{where}: no column is chosen")
    return _Choice(names, chosen, label, notes)


def _positions(where: str, text: str, places: dict[str, int]) -> list[int]:
    """Return the columns that a name, a number or a range of numbers stands for."""
    text = text.strip()
    if text in places:
        return [places[text]]
    first, dash, last = (part.strip() for part in text.partition("-"))
    if all(part.isascii() and part.isdigit() and len(part) < 10 for part in (first, *([last] if dash else []))):
        low, high = int(first), int(last if dash else first)
        if not 1 <= low <= high <= len(places):
            raise DataError(f"{where}: there is no column {plain(text)}; columns are numbered from 1 to {len(places)}")
        return list(range(low - 1, high))
    raise DataError(f"{where}: there is no column named {plain(text)!r}; the columns are {listed(places)}")


# Labels


def _classified(found: Columns, cells: Sequence[str], codes: np.ndarray, name: str) -> Columns:
    """Return the columns with classes, whose distinct cells are `cells` and whose rows are `codes` of them."""
    values: list[Any] = [_class(cell) for cell in cells]
    missing = [
        is_missing(c) or (isinstance(v, float) and not math.isfinite(v)) for c, v in zip(cells, values, strict=True)
    ]
    there = [value for value, gone in zip(values, missing, strict=True) if not gone]
    if any(isinstance(value, str) for value in there):
        values = [cell.strip() for cell in cells]
        there = [value for value, gone in zip(values, missing, strict=True) if not gone]
    order = {value: i for i, value in enumerate(sorted(set(there)))}
    index = [-1 if gone else order[value] for value, gone in zip(values, missing, strict=True)]
    return replace(
        found, classes=np.array(index, np.int32)[codes], class_names=tuple(plain(value) for value in order), label=name
    )


def _class(cell: str) -> int | float | str:
    """Return a label as a number where it is one: "1" and "1.0" are one class."""
    number = as_number(cell)
    if number is None:
        return cell
    try:
        return int(cell)  # whole numbers of any length stay apart
    except ValueError:
        return int(number) if number.is_integer() else number
