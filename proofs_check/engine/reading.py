"""Read a user's file as a float64 matrix, or say in one line what is wrong with it.

`load` takes what is whole and clean. The other public names are what it shares with `proofs_check.certify`, which takes
tables as they are. Files are not trusted: pickles are never loaded, sizes that a file declares are compared with its
length before memory is taken, and names and text from files reach messages as `plain` text.
"""

import contextlib
import csv
import io
import math
import os
import time
import unicodedata
import zipfile
from array import array as numbers_array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import numpy as np

NO_NUMBERS = "is empty, it holds no row of numbers"

_DELIMITERS = ",;\t"
_LONGEST_LINE = 2**24  # characters, of a row as well, which may go over several lines
_LONGEST_HEADER = 2**16  # bytes of a .npy header, which is a few hundred
_FINE_BYTES = 2**28  # in memory: never refused below
_MOST_EXPANSION = 1000  # bytes in memory for one of the file
_MISSING = frozenset({"", "na", "n/a", "nan", "null"})


class DataError(ValueError):
    """The file holds no data that can be used. The message is one line, for the person who passed the file."""


def load(path: str | Path) -> np.ndarray:
    """Return the rows of a file as a float64 array of shape (rows, columns), rows >= 2, columns >= 1.

    `.npy` holds one array, `.npz` holds it under the name X, and `.csv` holds numbers separated by commas, semicolons
    or tabs, with a header (a first row without any number) or without one. Numbers of every real type are converted.
    Raises DataError for a missing or unreadable file, another suffix, text, ragged rows, another rank, NaN or
    infinity, values whose squares are out of range, fewer than two rows, or rows that are all equal. Pickled objects
    are never loaded.
    """
    path = Path(path)
    with reading(path, {".npz": ".npz (with X)", ".npy": ".npy", ".csv": ".csv"}):
        if path.suffix.lower() == ".csv":
            return _checked(path, _csv_matrix(path))
        with path.open("rb") as file:
            array = read_npz(path, file, "X") if is_npz(file) else read_npy(path, file)
        check_unpacked(place(path), 8 * array.size, path.stat().st_size)  # as float64
        return _checked(path, array)


def _checked(path: Path, array: np.ndarray) -> np.ndarray:
    where = place(path)
    check_matrix(where, array.dtype, array.shape)
    with np.errstate(over="ignore"):  # what does not fit into float64 is reported as infinite
        array = np.ascontiguousarray(array, np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.unravel_index(np.argmin(finite), finite.shape)
        raise DataError(
            f"{where}: holds {finite.size - np.count_nonzero(finite)} entries that are NaN or infinite, "
            f"the first in row {row + 1}, column {column + 1} of the data"
        )
    if np.all(array == array[0]):
        raise DataError(f"{where}: all rows are equal")
    low, high = array.min(axis=0), array.max(axis=0)
    if (unfit := extreme(low, high)).any():
        i = int(np.argmax(unfit))
        raise DataError(
            f"{where}: column {i + 1} holds values from {low[i]:.3g} to {high[i]:.3g}, whose squares are out of range; "
            "change its unit"
        )
    return array


def extreme(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell of each column whether squares of its values or of their differences come near the limits of float64."""
    near = (low < high) & (high / 2 - low / 2 < 1e-100 / 2)  # halves do not overflow
    return near | (np.maximum(abs(low), abs(high)) > 1e100)


def _csv_matrix(path: Path) -> np.ndarray:
    values, width = numbers_array("d"), 0  # text takes far more memory than its numbers
    for line, row in csv_rows(path):
        if width or not is_header(row):
            values.extend(_numbers(path, line, row))
        width = len(row)
    if not values:
        raise DataError(f"{place(path)}: {NO_NUMBERS}")
    return np.frombuffer(values, np.float64).reshape(-1, width)


def _numbers(path: Path, line: int, row: Sequence[str]) -> list[float]:
    numbers = []
    for column, cell in enumerate(row, 1):
        number = as_number(cell)
        if number is None:
            found = f"text {plain(cell.strip(), 30)!r}" if cell.strip() else "an empty cell"
            raise DataError(
                f"{place(path)}: line {line}, column {column} holds {found}, not a number; "
                "leave out such rows or columns (certify can, by --columns, --labels and --missing drop)"
            )
        numbers.append(number)
    return numbers


# Words


def plain(text: object, longest: int = 100) -> str:
    """Return text from outside as one short line: control characters replaced, and at most `longest` characters."""
    short = str(text)[: longest + 1]
    clean = "".join("\ufffd" if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" else c for c in short)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def listed(names: Iterable[str], longest: int = 8) -> str:
    """Return names in quotes, and how many more there are after the first ones."""
    every = [f"'{name}'" for name in names]
    more = f" and {len(every) - longest:,} more" if len(every) > longest else ""
    return ", ".join(every[:longest]) + more


def place(path: str | Path) -> str:
    """Return how messages name a file."""
    return plain(path, 1000)


def one_line(error: BaseException) -> str:
    """Return the message of another library as a part of ours."""
    return plain(" ".join(str(error).split()), 120)


# Files that are not trusted


@contextlib.contextmanager
def reading(path: Path, kinds: dict[str, str]) -> Iterator[None]:
    """Refuse what is no readable file of these kinds, and say what is wrong with it in one line."""
    where, suffix = place(path), path.suffix.lower()
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
            raise DataError(f"{where}: {NO_NUMBERS if suffix == '.csv' else 'is empty'}")
        yield
    except OSError as error:
        raise DataError(f"{where}: cannot be read ({error.strerror or one_line(error)})") from None
    except MemoryError:
        hint = "" if suffix == ".npy" else "; save it as .npy, which is read piece by piece"
        raise DataError(f"{where}: does not fit into memory{hint}") from None


def look(where: str, until: float) -> None:
    """Raise DataError where it is later than `until` by the monotonic clock."""
    if time.monotonic() > until:
        raise DataError(f"{where}: the time ended before all of it was read; allow more, or fewer rows")


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


def check_unpacked(where: str, declared: int, length: int) -> None:
    """Refuse what would unpack to far more than the file is long, or than the machine has, before it takes memory."""
    if declared > _FINE_BYTES and declared > min(_MOST_EXPANSION * length, _memory()):
        raise DataError(
            f"{where}: declares {declared:,} bytes of numbers in a file of {length:,} bytes, which is not unpacked; "
            "save it as .npy, which is read piece by piece"
        )


def _memory() -> int:
    """Return the bytes of memory of the machine, or a size that none has where the system does not tell."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 2**48


# Arrays


def is_npz(file: BinaryIO) -> bool:
    """Return whether a file is an archive, by its first bytes, whatever its name."""
    start = file.read(2)
    file.seek(0)
    return start == b"PK"


def read_npy(path: Path, file: BinaryIO, *, mapped: bool = False) -> np.ndarray:
    """Return the array of a .npy file, read or mapped."""
    with _parsing(path):
        dtype, shape, fortran = _npy_header(path, file, "")
        offset, length = file.tell(), path.stat().st_size
        entries = math.prod(shape)
        _check_held(place(path), entries * dtype.itemsize, length - offset)
        if mapped and entries:
            order: Any = "F" if fortran else "C"
            return np.asarray(np.memmap(path, dtype, "r", offset, shape, order))
        if entries * dtype.itemsize > _memory():  # of a file with holes, which takes no room on the disk
            raise MemoryError
        file.seek(0)
        return np.lib.format.read_array(file, allow_pickle=False)


def read_npz(path: Path, file: BinaryIO, name: str) -> np.ndarray:
    """Return an array of a .npz file."""
    with _parsing(path):
        names = npz_names(path, file)
        if name not in names:
            held = plain(", ".join(names)) or "nothing"
            raise DataError(f"{place(path)}: holds no array named {name}, but {held}; save with np.savez(file, X=...)")
        if names.count(name) > 1:
            raise DataError(f"{place(path)}: holds {names.count(name)} arrays named {name}; save with np.savez again")
        with zipfile.ZipFile(file) as archive:
            try:
                member = archive.getinfo(f"{name}.npy")
            except KeyError:
                member = archive.getinfo(name)
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                # Python unpacks those by the block, however large the block may become.
                raise DataError(
                    f"{place(path)}: holds {name} compressed as NumPy does not; save with np.savez_compressed"
                )
            check_unpacked(place(path), member.file_size, path.stat().st_size)
            with archive.open(member) as entry:
                dtype, shape, _ = _npy_header(path, entry, f" as {name}")
                _check_held(place(path), math.prod(shape) * dtype.itemsize, member.file_size - entry.tell())
            with archive.open(member) as entry:
                return np.lib.format.read_array(entry, allow_pickle=False)


def npz_names(path: Path, file: BinaryIO) -> list[str]:
    """Return the names of the arrays of a .npz file."""
    with _parsing(path), zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _npy_header(path: Path, file: Any, name: str) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Return dtype, shape and order that an array of NumPy declares."""
    start = file.read(6)
    file.seek(0)
    if start != b"\x93NUMPY":
        raise DataError(f"{place(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)")
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format has the version {version}")
    old = version == (1, 0)
    size = file.read(2 if old else 4)
    length = int.from_bytes(size, "little")
    if length > _LONGEST_HEADER:  # NumPy would read it before it looks at its length
        raise DataError(f"{place(path)}: declares a header of {length:,} bytes{name}")
    read = np.lib.format.read_array_header_1_0 if old else np.lib.format.read_array_header_2_0
    try:
        shape, fortran, dtype = read(io.BytesIO(size + file.read(length)))
    except MemoryError:  # of Python's parser, whose stack is short
        raise DataError(f"{place(path)}: declares a header that is nested too deeply{name}") from None
    if dtype.hasobject:
        raise DataError(f"{place(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)")
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise DataError(f"{place(path)}: declares the shape {plain(shape)}{name}")
    return dtype, shape, fortran


def _check_held(where: str, declared: int, held: int) -> None:
    if declared > held:
        raise DataError(f"{where}: is cut off; it declares {declared:,} bytes of numbers and holds {held:,}")


@contextlib.contextmanager
def _parsing(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:  # whatever NumPy, zipfile and the decompressors make of files that are not theirs
        raise DataError(f"{place(path)}: cannot be read as {path.suffix} ({one_line(error)})") from None


# Text


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and cells of every row that is not blank, all of the same width; the first may be a header."""
    where = place(path)
    width = first_line = 0
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines, first = _Lines(where, file), ""
            for first in lines:
                lines.held = 0
                if first.strip():
                    break
            file.seek(0)
            lines = _Lines(where, file)
            reader = csv.reader(lines, delimiter=max(_DELIMITERS, key=first.count))
            for row in reader:
                lines.held = 0
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
        raise DataError(f"{where}: cannot be read as .csv ({one_line(error)})") from None


class _Lines:
    """The lines of a file. `held` counts the characters since it was last set to 0, at the beginning of a row."""

    def __init__(self, where: str, file: TextIO) -> None:
        self.where, self.file = where, file
        self.number = self.held = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = self.file.readline(_LONGEST_LINE)
        if not line:
            raise StopIteration
        self.number += 1
        self.held += len(line)
        if self.held >= _LONGEST_LINE:
            raise DataError(f"{self.where}: the row in line {self.number} is longer than {_LONGEST_LINE:,} characters")
        if "\0" in line:
            raise DataError(f"{self.where}: line {self.number} holds a NUL character, so it is no plain text")
        return line


def is_header(row: Sequence[str]) -> bool:
    """Return whether a first row is a header: it holds no number, and is not just missing cells."""
    return all(as_number(cell) is None for cell in row) and not all(is_missing(cell) for cell in row)


def as_number(cell: str) -> float | None:
    """Return the number in a cell, maybe NaN or infinite, or None where there is none."""
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000 as a number
    except ValueError:
        return None


def is_missing(cell: str) -> bool:
    """Return whether a cell is empty, or one of the usual words for that."""
    return cell.strip().lower() in _MISSING
