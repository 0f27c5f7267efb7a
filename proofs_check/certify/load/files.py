"""Read columns of a file, of a DataFrame or of a matrix.

Like `proofs_check.engine.reading`, it trusts no file, and every error is one line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from proofs_check.certify.load import text
from proofs_check.certify.load.cells import column_of, is_text
from proofs_check.certify.load.columns import Columns, Options, choose
from proofs_check.certify.load.labels import label_column, label_vector
from proofs_check.certify.load.table import View
from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    check_matrix,
    is_npz,
    listed,
    map_npy,
    memory,
    npz_names,
    one_line,
    place,
    read_npz,
    reading,
)

_KINDS = (*text.SUFFIXES, ".parquet", ".npy", ".npz")
_PART = 0.25  # of the memory, for the cells of a table
_ROWS_AT_ONCE = 2**12  # of parquet, so that those of a very wide table are not too many


def read_file(path: Path, options: Options) -> Columns:
    """Return columns of a file.

    An array of `.npy` is mapped, not read. Raises DataError for everything that is wrong with the file or with the
    options, and for cells of other files that take more than a quarter of the memory.
    """
    where = place(path)
    suffix = path.suffix.lower()
    kinds = {known: known for known in _KINDS}
    if text.is_text(path):
        kinds[".gz"] = ".csv.gz"
    with reading(path, kinds), _arrow(where, suffix):
        if text.is_text(path):
            with text.open_text(path) as file:
                columns, batches = text.read_text(where, file, options)
                return _from_arrow(columns, _collected(where, batches))
        if options.separator or options.header:
            raise DataError(f"{where}: separator and header are for files of text")
        if suffix == ".parquet":
            return _read_parquet(path, options)
        with path.open("rb") as file:
            if is_npz(file):
                return _read_npz(path, file, options)
            return read_matrix(where, map_npy(path, file), options)


def read_matrix(
    where: str, array: np.ndarray, options: Options, names: Sequence[str] | None = None
) -> Columns:
    """Return columns of a matrix, whose names are x1, x2, ... by default; `where` begins every message."""
    check_matrix(where, array.dtype, array.shape)
    width = array.shape[1]
    if names is not None and len(names) != width:
        raise DataError(
            f"{where}: has {width} column(s), but {len(names)} name(s) were given"
        )
    columns = choose(where, width, names, options)
    is_chosen = [name in columns.chosen for name in columns.names]
    columns.view = View(array, np.flatnonzero(is_chosen))
    columns.used = [columns.names[i] for i in columns.view.columns]
    for name in columns.labelled:
        label_vector(columns, name, array[:, columns.names.index(name)])
    return columns


def read_frame(where: str, frame: Any, options: Options) -> Columns:
    """Return columns of a DataFrame of pandas or polars, or a table of Arrow. Raises DataError."""
    with _arrow(where, "a DataFrame"):
        import narwhals
        import pyarrow as arrow

        frame = narwhals.from_native(frame, eager_only=True)
        header = [str(name) for name in frame.columns]
        columns = choose(where, len(header), header, options)
        cells = {}
        for name, series in zip(columns.names, frame.iter_columns(), strict=True):
            if name not in columns.chosen.union(columns.labelled):
                continue
            try:
                cells[name] = series.to_arrow()
            except (arrow.ArrowInvalid, arrow.ArrowTypeError):  # of several types
                cells[name] = series.cast(narwhals.String).to_arrow()
        return _from_arrow(columns, arrow.table(cells))


def _read_npz(path: Path, file: BinaryIO, options: Options) -> Columns:
    where = place(path)
    X = read_npz(path, file, "X")
    name = options.labels or "y"
    if name == "X" or name not in npz_names(path, file):
        return read_matrix(where, X, options)
    columns = read_matrix(where, X, replace(options, labels=None))
    try:
        label_vector(columns, name, read_npz(path, file, name))
    except ValueError as error:
        if options.labels is not None:
            raise
        # Nobody asked for y, so what is wrong with it is only noted.
        columns.notes.append(f"The array y is not used as labels: {error}.")
    return columns


def _read_parquet(path: Path, options: Options) -> Columns:
    import pyarrow.parquet as parquet

    where = place(path)
    schema = parquet.read_schema(path)
    columns = choose(where, len(schema), schema.names, options)
    # Text stays in dictionaries: a long one that all rows share would otherwise be copied for every row.
    texts = [column.name for column in schema if is_text(column.type)]
    needed = columns.chosen.union(columns.labelled)
    places = {name: i for i, name in enumerate(columns.names) if name in needed}
    header = [schema.names[i] for i in places.values()]
    with parquet.ParquetFile(path, read_dictionary=texts) as file:
        table = _collected(where, file.iter_batches(_ROWS_AT_ONCE, columns=header))
    return _from_arrow(columns, table.select(header).rename_columns([*places]))


@contextlib.contextmanager
def _arrow(where: str, kind: str) -> Iterator[None]:
    """Turn whatever Arrow makes of what is not its own, such as text that is no UTF-8, into one line."""
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"{where}: cannot be read as {kind} ({one_line(error)})"
        ) from None


def _collected(where: str, batches: Iterator[Any]) -> Any:
    """Return batches as one table of Arrow. Raises DataError if it takes too much memory, as text or as numbers."""
    import pyarrow as arrow

    parts = []
    size = 0
    for batch in batches:
        parts.append(batch)
        size += max(batch.nbytes, 8 * batch.num_rows * batch.num_columns)
        if size > _PART * memory():
            raise DataError(
                f"{where}: takes more than a quarter of the memory; save it as .npy, which is read piece by piece"
            )
    if not parts:
        raise DataError(f"{where}: {NO_NUMBERS}")
    return arrow.Table.from_batches(parts)


def _from_arrow(columns: Columns, table: Any) -> Columns:
    """Return the columns with their cells from a table of Arrow."""
    options = columns.options
    check_matrix(columns.where, np.dtype(float), (len(table), 1))
    for name in columns.labelled:
        label_column(columns, table[name])
    numbers: dict[str, Any] = {}
    truths = []
    for name in columns.names:
        if name not in columns.chosen:
            continue
        column = column_of(table[name], options.decimal, options.missing_words)
        if column.values and options.one_hot:
            columns.categories[name] = column.values
            for k, part in enumerate(columns.parts(name)):
                is_value = column.codes == k
                numbers[part] = np.where(column.codes < 0, np.nan, is_value)
            continue
        if column.values:
            columns.few.append(name)
        if column.reason:
            columns.left_out[name] = column.reason
        else:
            numbers[name] = column.numbers
        if column.fault:
            columns.faults[name] = column.fault
        if column.truths:
            truths.append(name)
    if truths:
        note = f"True and yes are 1, false and no are 0: {listed(truths)}."
        columns.notes.append(note)
    columns.names = [part for name in columns.names for part in columns.parts(name)]
    if len({*columns.names}) < len(columns.names):
        raise DataError(
            f"{columns.where}: one-hot columns have the names of other columns; rename some"
        )
    columns.used = [*numbers]
    array = np.reshape([*numbers.values()], (-1, len(table))).T
    columns.view = View(array, np.arange(len(numbers)))
    return columns
