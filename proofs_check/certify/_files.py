"""Read columns of a `.npy`, `.npz`, `.csv` or `.parquet` file.

Like `proofs_check.engine.reading`, it trusts no file, and every error is one line.
"""

import contextlib
import itertools
import math
from array import array as numbers_array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from proofs_check.certify._columns import (
    Columns,
    check_width,
    choose,
    classified,
    labelled,
    numbered,
    select,
    shortened,
)
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
    look,
    npz_names,
    one_line,
    place,
    plain,
    read_npy,
    read_npz,
    reading,
)  # fmt: skip

_CELLS_AT_ONCE = 2**17  # of text, which takes far more memory than its numbers
_NUMBERS_AT_ONCE = 2**22
_OLDEST_ARROW = 16


def read_columns(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    rows: int | None = None,
    until: float = math.inf,
) -> Columns:
    """Return columns of a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    The arguments are those of `open_table`, where a name comes first that looks like a number, and arrays and files
    without a header have the names x1, x2, ... An array of `.npy` is mapped, not read; the others are read into memory.

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
            chosen = select(place(path), X, columns, None, rows)
            return labelled(place(path), chosen, read_npz(path, file, labels), labels, len(X))


def _with_y(path: Path, file: BinaryIO, columns: Columns, rows: int) -> Columns:
    """Use y for labels where it can be; nobody asked for it, so what is wrong with it is only noted."""
    try:
        with_y = labelled(place(path), columns, read_npz(path, file, "y"), "y", rows)
    except DataError as error:
        why = str(error).removeprefix(f"{place(path)}: ")
    else:
        if with_y.classes is None or np.all(with_y.classes >= 0):
            return with_y
        why = "some of its entries are missing"
    return replace(columns, notes=(*columns.notes, f"The array y is not used as labels: {why}."))


# Text


def _csv_columns(
    path: Path, columns: Sequence[str] | None, labels: str | None, rows: int | None, until: float
) -> Columns:
    where = place(path)
    lines = csv_rows(path)
    line, first = next(lines, (0, []))
    if not first:
        raise DataError(f"{where}: {NO_NUMBERS}")
    check_width(where, len(first))
    header = is_header(first)
    names = [cell.strip() or f"x{i}" for i, cell in enumerate(first, 1)] if header else numbered(len(first))
    try:
        choice = choose(where, names, columns, labels)
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
    table = choice.of(array, range(len(chosen)), texts, notes)
    if label is None:
        return table
    return classified(table, list(classes), np.frombuffer(codes, np.int64), choice.names[label])


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
            choice = choose(where, schema.names, columns, labels)
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
    table = choice.of(array, range(len(chosen)), texts, shortened(rows, total))
    return table if label is None else classified(table, list(classes), codes, choice.names[label])


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
    cells = ("" if i < 0 else held.dictionary[int(i)].as_py() for i in used)
    numbers = [classes.setdefault("" if cell is None else str(cell).strip(), len(classes)) for cell in cells]
    return np.array(numbers, np.int64)[index]


def _example(cells: Any) -> str:
    return next((plain(cell.as_py(), 30) for cell in cells if cell.is_valid), "")
