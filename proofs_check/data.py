"""Read a user's data into a float64 matrix, or say in one line what is wrong with the file."""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

_DELIMITERS = ",;\t"


class DataError(ValueError):
    """The file holds no data that can be used. The message is one line, for the person who passed the file."""


def load(path: str | Path) -> np.ndarray:
    """Return the rows of a file as a float64 array of shape (rows, columns), rows >= 2, columns >= 1.

    `.npy` holds one array, `.npz` holds it under the name X, and `.csv` holds numbers separated by commas, semicolons
    or tabs, with a header (a first row without any number) or without one. Numbers of every real type are converted.
    Raises DataError for a missing or unreadable file, another suffix, text, ragged rows, another rank, NaN or
    infinity, fewer than two rows, or rows that are all equal. Pickled objects are never loaded.
    """
    path = Path(path)
    readers = {".npz": _numpy, ".npy": _numpy, ".csv": _csv}
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise DataError(f"{path}: unknown kind of file {suffix!r}; use .npz (with X), .npy or .csv")
    if not path.exists():
        raise DataError(f"{path}: no such file")
    if path.is_dir():
        raise DataError(f"{path}: is a folder, not a file")
    try:
        array = readers[suffix](path)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror or _one_line(error)})") from None
    return _checked(path, array)


def _numpy(path: Path) -> np.ndarray:
    if path.stat().st_size == 0:
        raise DataError(f"{path}: is empty")
    try:
        with path.open("rb") as file:  # not opened by NumPy, which leaves it open where it is broken
            held: Any = np.load(file, allow_pickle=False)
            if not isinstance(held, np.ndarray) and "X" not in held.files:
                names = ", ".join(held.files) or "nothing"
                raise DataError(f"{path}: holds no array named X, but {names}; save with np.savez(file, X=...)")
            array: np.ndarray = held if isinstance(held, np.ndarray) else held["X"]
            return array
    except DataError:
        raise
    except (ValueError, EOFError, zipfile.BadZipFile, KeyError, SyntaxError) as error:
        if "pickle" in str(error).lower():
            raise DataError(f"{path}: holds no plain array of numbers (pickled objects are not loaded)") from None
        raise DataError(f"{path}: cannot be read as {path.suffix} ({_one_line(error)})") from None


def _csv(path: Path) -> np.ndarray:
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            first = next((line for line in lines if line.strip()), "")
            lines.seek(0)
            delimiter = max(_DELIMITERS, key=first.count)
            reader = csv.reader(lines, delimiter=delimiter)
            cells = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except UnicodeDecodeError:
        raise DataError(f"{path}: is not text in UTF-8") from None
    except csv.Error as error:
        raise DataError(f"{path}: cannot be read as .csv ({_one_line(error)})") from None
    if cells and all(_number(cell) is None for cell in cells[0][1]):
        del cells[0]  # a header
    if not cells:
        raise DataError(f"{path}: is empty, it holds no row of numbers")
    width = len(cells[0][1])
    for line, row in cells:
        if len(row) != width:
            raise DataError(f"{path}: line {line} has {len(row)} column(s) and line {cells[0][0]} has {width}")
    return np.array([_numbers(path, line, row) for line, row in cells], np.float64)


def _numbers(path: Path, line: int, row: Sequence[str]) -> list[float]:
    numbers = []
    for column, cell in enumerate(row, 1):
        number = _number(cell)
        if number is None:
            found = f"text {cell.strip()[:30]!r}" if cell.strip() else "an empty cell"
            raise DataError(f"{path}: line {line}, column {column} holds {found}, not a number")
        numbers.append(number)
    return numbers


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000 as a number
    except ValueError:
        return None


def _checked(path: Path, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: holds entries of type {array.dtype}, not real numbers")
    if array.ndim == 1:
        raise DataError(
            f"{path}: holds a vector of shape {array.shape}, not (rows, columns); "
            "save X[:, None] for points in one dimension"
        )
    if array.ndim != 2 or array.shape[1] < 1:
        raise DataError(f"{path}: holds an array of shape {array.shape}, not (rows, columns)")
    if len(array) < 2:
        raise DataError(f"{path}: holds {len(array)} row(s), and at least 2 are needed")
    with np.errstate(over="ignore"):  # what does not fit into float64 is reported as infinite
        array = np.ascontiguousarray(array, np.float64)
    bad = np.argwhere(~np.isfinite(array))
    if len(bad):
        row, column = bad[0] + 1
        raise DataError(
            f"{path}: holds {len(bad)} entries that are NaN or infinite, "
            f"the first in row {row}, column {column} of the data"
        )
    if np.all(array == array[0]):
        raise DataError(f"{path}: all rows are equal")
    return array


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:120]
