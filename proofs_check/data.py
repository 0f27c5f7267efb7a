"""Read a user's file: all of it as a float64 matrix, or some columns of a table, or say in one line what is wrong.

`load` takes what is whole and clean. `read_columns` takes tables as they are, with names, text and missing cells, and
leaves it to its caller to judge them. Files are not trusted: pickles are never loaded, sizes that a file declares are
compared with its length before memory is taken, and names and text from files reach messages as `plain` text.
"""

from __future__ import annotations

import contextlib
import csv
import itertools
import math
import unicodedata
import zipfile
from array import array as numbers_array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

_DELIMITERS = ",;\t"
_LONGEST_LINE = 2**24  # characters
_CELLS = 2**17  # of text that are parsed at once
_LARGEST, _LARGEST_RATIO, _ALWAYS_FINE = 2**36, 1000, 2**28  # bytes in memory, and how many times those of the file
_MOST_COLUMNS = 100_000
_MISSING = frozenset({"", "na", "n/a", "nan", "null"})


class DataError(ValueError):
    """The file holds no data that can be used. The message is one line, for the person who passed the file."""


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


def load(path: str | Path) -> np.ndarray:
    """Return the rows of a file as a float64 array of shape (rows, columns), rows >= 2, columns >= 1.

    `.npy` holds one array, `.npz` holds it under the name X, and `.csv` holds numbers separated by commas, semicolons
    or tabs, with a header (a first row without any number) or without one. Numbers of every real type are converted.
    Raises DataError for a missing or unreadable file, another suffix, text, ragged rows, another rank, NaN or
    infinity, fewer than two rows, or rows that are all equal. Pickled objects are never loaded.
    """
    path = Path(path)
    with _reading(path, {".npz": ".npz (with X)", ".npy": ".npy", ".csv": ".csv"}):
        if path.suffix.lower() == ".csv":
            return _checked(path, _matrix(path))
        with path.open("rb") as file:
            return _checked(path, _archived(path, file, "X") if _is_archive(file) else _stored(path, file))


def read_columns(
    path: str | Path, *, columns: Sequence[str] | None = None, labels: str | None = None, rows: int | None = None
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

    Raises DataError for everything that is wrong with the file or with what is asked of it. `.csv` takes about a
    microsecond a cell.
    """
    path = Path(path)
    kinds = {".npy": ".npy", ".npz": ".npz (with X)", ".csv": ".csv", ".parquet": ".parquet"}
    with _reading(path, kinds):
        suffix = path.suffix.lower()
        if suffix == ".csv":
            return _csv_columns(path, columns, labels, rows)
        if suffix == ".parquet":
            return _parquet_columns(path, columns, labels, rows)
        with path.open("rb") as file:
            if not _is_archive(file):
                return select(_where(path), _stored(path, file, mapped=True), columns, labels, rows)
            X = _archived(path, file, "X")
            others = [name for name in _members(file) if name != "X"]
            if labels is None and "y" in others:
                return _with_y(path, file, select(_where(path), X, columns, None, rows), len(X))
            if labels is None or labels not in others:
                return select(_where(path), X, columns, labels, rows)
            found = select(_where(path), X, columns, None, rows)
            return labelled(_where(path), found, _archived(path, file, labels), labels, len(X))


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
    called, notes = _distinct(_numbered(width) if names is None else names)
    chosen, label = _choose(where, called, columns, labels)
    found = Columns(
        array[:rows],
        tuple(chosen),
        tuple(called[i] for i in chosen),
        left_out=_out(called, label),
        notes=notes + _shortened(rows, len(array)),
    )
    if label is None:
        return found
    return labelled(where, found, array[:, label], called[label], len(array))


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


def plain(text: object, longest: int = 100) -> str:
    """Return text from outside as one short line: control characters replaced, and at most `longest` characters."""
    short = str(text)[: longest + 1]
    clean = "".join("\ufffd" if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" else c for c in short)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def _where(path: Path) -> str:
    return plain(path, 1000)


def check_matrix(where: str, dtype: np.dtype, shape: tuple[int, ...]) -> None:
    """Raise DataError unless an array of real numbers is a table of at least two rows and one column."""
    if dtype.kind not in "biuf":
        raise DataError(f"{where}: holds entries of type {dtype}, not real numbers")
    if len(shape) == 1:
        raise DataError(
            f"{where}: holds a vector of shape {shape}, not (rows, columns); "
            "save X[:, None] for points in one dimension"
        )
    if len(shape) != 2 or shape[1] < 1:
        raise DataError(f"{where}: holds an array of shape {shape}, not (rows, columns)")
    if shape[0] < 2:
        raise DataError(f"{where}: holds {shape[0]} row(s), and at least 2 are needed")


@contextlib.contextmanager
def _reading(path: Path, kinds: dict[str, str]) -> Iterator[None]:
    """Refuse what is no readable file of these kinds, and say what is wrong with it in one line."""
    where, suffix = _where(path), path.suffix.lower()
    try:
        if suffix not in kinds:
            *others, last = kinds.values()
            raise DataError(f"{where}: unknown kind of file {plain(suffix)!r}; use {', '.join(others)} or {last}")
        if path.is_dir():
            raise DataError(f"{where}: is a folder, not a file")
        if not path.exists():
            raise DataError(f"{where}: no such file")
        if not path.is_file():  # a pipe would be waited for, and a device may never end
            raise DataError(f"{where}: is no regular file")
        if path.stat().st_size == 0:
            raise DataError(f"{where}: is empty" + (", it holds no row of numbers" if suffix == ".csv" else ""))
        yield
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror or _one_line(error)})") from None
    except MemoryError:
        raise DataError(f"{where}: does not fit into memory; save it as .npy, which is read piece by piece") from None


# Arrays


def _is_archive(file: BinaryIO) -> bool:
    start = file.read(2)
    file.seek(0)
    return start == b"PK"


def _stored(path: Path, file: BinaryIO, *, mapped: bool = False) -> np.ndarray:
    """Return the array of a .npy file, read or mapped."""
    with _parsing(path):
        dtype, shape, fortran = _header(path, file, "")
        offset, length = file.tell(), path.stat().st_size
        entries = math.prod(shape)
        _fits(_where(path), entries * dtype.itemsize, length - offset)
        if mapped and entries:
            order: Any = "F" if fortran else "C"
            return np.asarray(np.memmap(path, dtype, "r", offset, shape, order))
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def _members(file: BinaryIO) -> list[str]:
    with zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _archived(path: Path, file: BinaryIO, name: str) -> np.ndarray:
    """Return an array of a .npz file."""
    with _parsing(path):
        names = _members(file)
        if name not in names:
            held = plain(", ".join(names)) or "nothing"
            raise DataError(f"{_where(path)}: holds no array named {name}, but {held}; save with np.savez(file, X=...)")
        with zipfile.ZipFile(file) as archive:
            try:
                member = archive.getinfo(f"{name}.npy")
            except KeyError:
                member = archive.getinfo(name)
            _plausible(_where(path), member.file_size, path.stat().st_size)
            with archive.open(member) as held_array:
                dtype, shape, _ = _header(path, held_array, f" as {name}")
                _fits(_where(path), math.prod(shape) * dtype.itemsize, member.file_size - held_array.tell())
            with archive.open(member) as held_array:
                return np.lib.format.read_array(held_array, allow_pickle=False)


def _header(path: Path, file: Any, name: str) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Return dtype, shape and order that an array of NumPy declares."""
    start = file.read(6)
    file.seek(0)
    if start != b"\x93NUMPY":
        raise DataError(f"{_where(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)")
    old = np.lib.format.read_magic(file) == (1, 0)
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise DataError(f"{_where(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)")
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise DataError(f"{_where(path)}: declares the shape {plain(shape)}{name}")
    return dtype, shape, fortran


def _fits(where: str, declared: int, held: int) -> None:
    if declared > held:
        raise DataError(f"{where}: is cut off; it declares {declared:,} bytes of numbers and holds {held:,}")


def _plausible(where: str, declared: int, length: int) -> None:
    """Refuse what would unpack to far more than the file is long, before it takes memory."""
    if declared > _LARGEST or (declared > _ALWAYS_FINE and declared > _LARGEST_RATIO * length):
        raise DataError(
            f"{where}: declares {declared:,} bytes of numbers in a file of {length:,} bytes, which is not unpacked; "
            "save it as .npy, which is read piece by piece"
        )


@contextlib.contextmanager
def _parsing(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:  # whatever NumPy, zipfile and the decompressors make of files that are not theirs
        raise DataError(f"{_where(path)}: cannot be read as {path.suffix} ({_one_line(error)})") from None


def _with_y(path: Path, file: BinaryIO, found: Columns, rows: int) -> Columns:
    """Use y for labels where it can be; nobody asked for it, so what is wrong with it is only noted."""
    try:
        with_y = labelled(_where(path), found, _archived(path, file, "y"), "y", rows)
    except DataError as error:
        why = str(error).removeprefix(f"{_where(path)}: ")
    else:
        if with_y.classes is None or np.all(with_y.classes >= 0):
            return with_y
        why = "some of its entries are missing"
    return replace(found, notes=(*found.notes, f"The array y is not used as labels: {why}."))


# Text


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every row that is not blank, all of the same width; the first may be a header."""
    where = _where(path)
    width = first_line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            first = next((line for line in _lines(where, file) if line.strip()), "")
            file.seek(0)
            reader = csv.reader(_lines(where, file), delimiter=max(_DELIMITERS, key=first.count))
            for row in reader:
                if any(cell.strip() for cell in row):
                    line = reader.line_num
                    if not width:
                        width, first_line = len(row), line
                    if len(row) != width:
                        raise DataError(
                            f"{where}: line {line} has {len(row)} column(s) and line {first_line} has {width}"
                        )
                    yield line, row
    except UnicodeDecodeError:
        raise DataError(f"{where}: is not text in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{where}: cannot be read as .csv ({_one_line(error)})") from None


def _lines(where: str, file: Any) -> Iterator[str]:
    for number in itertools.count(1):
        line = file.readline(_LONGEST_LINE)
        if not line:
            return
        if len(line) == _LONGEST_LINE:
            raise DataError(f"{where}: line {number} is longer than {_LONGEST_LINE:,} characters")
        if "\0" in line:
            raise DataError(f"{where}: line {number} holds a NUL character, so it is no plain text")
        yield line


def _is_header(row: Sequence[str]) -> bool:
    return all(_number(cell) is None for cell in row) and not all(_is_missing(cell) for cell in row)


def _matrix(path: Path) -> np.ndarray:
    cells = list(_csv_rows(path))
    if cells and _is_header(cells[0][1]):
        del cells[0]
    if not cells:
        raise DataError(f"{_where(path)}: is empty, it holds no row of numbers")
    return np.array([_numbers(path, line, row) for line, row in cells], np.float64)


def _numbers(path: Path, line: int, row: Sequence[str]) -> list[float]:
    numbers = []
    for column, cell in enumerate(row, 1):
        number = _number(cell)
        if number is None:
            found = f"text {plain(cell.strip(), 30)!r}" if cell.strip() else "an empty cell"
            raise DataError(f"{_where(path)}: line {line}, column {column} holds {found}, not a number")
        numbers.append(number)
    return numbers


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000 as a number
    except ValueError:
        return None


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _csv_columns(path: Path, columns: Sequence[str] | None, labels: str | None, rows: int | None) -> Columns:
    where = _where(path)
    lines = _csv_rows(path)
    line, first = next(lines, (0, []))
    if not first:
        raise DataError(f"{where}: is empty, it holds no row of numbers")
    header = _is_header(first)
    names = [cell.strip() or f"x{i}" for i, cell in enumerate(first, 1)] if header else _numbered(len(first))
    called, notes = _distinct(names)
    try:
        chosen, label = _choose(where, called, columns, labels)
    except DataError as error:
        raise DataError(f"{error}" if header else f"{error}; the file has no header") from None
    body = lines if header else itertools.chain([(line, first)], lines)
    values, codes = numbers_array("d"), numbers_array("q")
    classes: dict[str, int] = {}
    texts: dict[int, tuple[int, str]] = {}
    body = itertools.islice(body, rows)
    while part := [row for _, row in itertools.islice(body, max(1, _CELLS // len(first)))]:
        cells = list(zip(*part, strict=True))
        block = np.empty((len(part), len(chosen)))
        for position, column in enumerate(chosen):
            block[:, position] = _parsed(cells[column], position, texts)
        values.frombytes(block.tobytes())
        if label is not None:
            codes.extend(classes.setdefault(cell.strip(), len(classes)) for cell in cells[label])
    count = len(values) // len(chosen)
    if not count:
        raise DataError(f"{where}: is empty, it holds no row of numbers")
    if count == rows and next(lines, None) is not None:
        notes += (f"Only the first {count:,} rows are used.",)
    array = np.frombuffer(values, np.float64).reshape(count, len(chosen))
    check_matrix(where, array.dtype, array.shape)
    found = _gathered(array, chosen, called, label, texts, notes)
    if label is None:
        return found
    return _classified(found, list(classes), np.frombuffer(codes, np.int64), called[label])


def _parsed(cells: Sequence[str], position: int, texts: dict[int, tuple[int, str]]) -> list[float]:
    """Return the numbers of a column, NaN where a cell holds none, and count its text."""
    with contextlib.suppress(ValueError):
        if "_" not in "".join(cells):
            return [float(cell) for cell in cells]
    numbers = [_number(cell) for cell in cells]
    strange = [cell for cell, number in zip(cells, numbers, strict=True) if number is None and not _is_missing(cell)]
    if strange:
        count, example = texts.get(position, (0, plain(strange[0].strip(), 30)))
        texts[position] = (count + len(strange), example)
    return [math.nan if number is None else number for number in numbers]


# Parquet


def _parquet_columns(path: Path, columns: Sequence[str] | None, labels: str | None, rows: int | None) -> Columns:
    where = _where(path)
    try:
        import pyarrow as arrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise DataError(
            f"{where}: reading .parquet needs pyarrow: python3 -m pip install 'jaxkern-verified[parquet]'"
        ) from None
    try:
        with parquet.ParquetFile(path) as file:
            schema = file.schema_arrow
            called, notes = _distinct(schema.names)
            chosen, label = _choose(where, called, columns, labels)
            total = file.metadata.num_rows
            count = total if rows is None else min(rows, total)
            numeric = [i for i in chosen if _is_numeric(arrow, schema.field(i).type)]
            _plausible(where, 8 * max(count, 0) * len(chosen), path.stat().st_size)
            array = np.full((max(count, 0), len(chosen)), np.nan)
            codes = np.empty(len(array), np.int64)
            classes: dict[str, int] = {}
            start = 0
            wanted = sorted({*numeric, *([] if label is None else [label])})
            for size, cells in _batches(file, wanted) if wanted else ():
                stop = min(start + size, count)
                for i in numeric:
                    held = cells[i].slice(0, stop - start).cast(arrow.float64(), safe=False)
                    array[start:stop, chosen.index(i)] = held.to_numpy(zero_copy_only=False)
                if label is not None:
                    held = cells[label].slice(0, stop - start).to_pylist()
                    texts_of_labels = ("" if value is None else str(value).strip() for value in held)
                    codes[start:stop] = [classes.setdefault(text, len(classes)) for text in texts_of_labels]
                start = stop
                if start == count:
                    break
            if wanted and start != count:
                raise DataError(f"{where}: declares {total:,} rows and holds {start:,}")
            others = [i for i in chosen if i not in numeric]
            _, cells = next(_batches(file, others, batch_size=100), (0, {})) if others else (0, {})
            texts = {chosen.index(i): (count, _example(held)) for i, held in cells.items()}
    except arrow.ArrowException as error:
        raise DataError(f"{where}: cannot be read as .parquet ({_one_line(error)})") from None
    check_matrix(where, array.dtype, array.shape)
    notes += _shortened(rows, total)
    found = _gathered(array, chosen, called, label, texts, notes)
    return found if label is None else _classified(found, list(classes), codes, called[label])


def _is_numeric(arrow: Any, kind: Any) -> bool:
    types = arrow.types
    return any(is_kind(kind) for is_kind in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _batches(file: Any, wanted: Sequence[int], **options: Any) -> Iterator[tuple[int, dict[int, Any]]]:
    """Yield the number of rows and the wanted columns of each batch."""
    names = file.schema_arrow.names
    if len(set(names)) < len(names):  # two columns of one name can only be told apart where all are read
        for batch in file.iter_batches(**options):
            yield len(batch), {i: batch.column(i) for i in wanted}
    else:
        for batch in file.iter_batches(columns=[names[i] for i in wanted], **options):
            yield len(batch), {i: batch.column(batch.schema.get_field_index(names[i])) for i in wanted}


def _example(cells: Any) -> str:
    return next((plain(value, 30) for value in cells.to_pylist() if value is not None), "")


# What all kinds of file share


def _numbered(width: int) -> list[str]:
    return [f"x{i}" for i in range(1, min(width, _MOST_COLUMNS) + 1)]


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


def listed(names: Iterable[str], longest: int = 8) -> str:
    """Return names in quotes, and how many more there are after the first ones."""
    every = [f"'{name}'" for name in names]
    more = f" and {len(every) - longest:,} more" if len(every) > longest else ""
    return ", ".join(every[:longest]) + more


def _choose(
    where: str, names: Sequence[str], columns: Sequence[str] | None, labels: str | None
) -> tuple[list[int], int | None]:
    """Return the chosen columns and the column of labels."""
    if len(names) >= _MOST_COLUMNS:
        raise DataError(f"{where}: has {_MOST_COLUMNS:,} columns or more, which is too wide")
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
    return chosen, label


def _positions(where: str, text: str, places: dict[str, int]) -> list[int]:
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


def _shortened(rows: int | None, total: int) -> tuple[str, ...]:
    return () if rows is None or rows >= total else (f"Only the first {rows:,} of {total:,} rows are used.",)


def _gathered(
    array: np.ndarray,
    chosen: Sequence[int],
    names: Sequence[str],
    label: int | None,
    texts: dict[int, tuple[int, str]],
    notes: tuple[str, ...],
) -> Columns:
    """Return the chosen columns, which are all that was read."""
    used, called = tuple(range(len(chosen))), tuple(names[i] for i in chosen)
    return Columns(array, used, called, texts, left_out=_out(names, label), notes=notes)


def _out(names: Sequence[str], label: int | None) -> dict[str, str]:
    return {} if label is None else {names[label]: "holds the labels"}


def _classified(found: Columns, cells: Sequence[str], codes: np.ndarray, name: str) -> Columns:
    """Return the columns with classes, whose distinct cells are `cells` and whose rows are `codes` of them."""
    values: list[Any] = [_class(cell) for cell in cells]
    missing = [
        _is_missing(c) or (isinstance(v, float) and not math.isfinite(v)) for c, v in zip(cells, values, strict=True)
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
    number = _number(cell)
    if number is None:
        return cell
    try:
        return int(cell)  # whole numbers of any length stay apart
    except ValueError:
        return int(number) if number.is_integer() else number


def _checked(path: Path, array: np.ndarray) -> np.ndarray:
    where = _where(path)
    check_matrix(where, array.dtype, array.shape)
    with np.errstate(over="ignore"):  # what does not fit into float64 is reported as infinite
        array = np.ascontiguousarray(array, np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0] + 1
        raise DataError(
            f"{where}: holds {len(bad)} entries that are NaN or infinite, "
            f"the first in row {row}, column {column} of the data"
        )
    if np.all(array == array[0]):
        raise DataError(f"{where}: all rows are equal")
    return array


def _one_line(error: BaseException) -> str:
    return plain(" ".join(str(error).split()), 120)
