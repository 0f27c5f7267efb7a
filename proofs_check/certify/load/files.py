"""Read columns of a file, or of a DataFrame.

Like `proofs_check.engine.reading`, it trusts no file, and every error is one line.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from proofs_check.certify.load import text
from proofs_check.certify.load.cells import column_of, distinct, is_text
from proofs_check.certify.load.columns import (
    Columns,
    Wanted,
    choose,
    classified,
    labelled,
    select,
    shortened,
)
from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    check_matrix,
    is_npz,
    look,
    map_npy,
    memory,
    npz_names,
    one_line,
    place,
    plain,
    read_npz,
    reading,
)

_PART = 0.25  # of the memory, for the cells of a table
_NUMBERS_AT_ONCE = 2**22
_OLDEST_ARROW = 16


def read_columns(
    path: str | Path, wanted: Wanted, *, until: float = math.inf
) -> Columns:
    """Return columns of a file. The arguments are those of `open_table`.

    An array of `.npy` is mapped, not read. Raises DataError for everything that is wrong with the file or with what is
    asked of it, and for cells of other files that take more than a quarter of the memory.
    """
    path = Path(path)
    where = place(path)
    kinds = {".npy": ".npy", ".npz": ".npz (with X)"}
    kinds |= {suffix: suffix for suffix in text.SUFFIXES}
    if text.is_text(path):
        kinds[".gz"] = ".csv.gz"
    kinds[".parquet"] = ".parquet"
    with reading(path, kinds):
        text.check(wanted, path)
        if path.suffix.lower() == ".parquet":
            with _arrow(where, ".parquet"):
                return _parquet_columns(path, wanted, until)
        if path.suffix.lower() not in (".npy", ".npz"):
            with _arrow(where, path.suffix), text.open_text(path) as file:
                return _text_columns(path, file, wanted, until)
        with path.open("rb") as file:
            if is_npz(file):
                return _npz_columns(path, file, wanted)
            return select(where, map_npy(path, file), wanted)


def _npz_columns(path: Path, file: BinaryIO, wanted: Wanted) -> Columns:
    where, name = place(path), wanted.labels
    X = read_npz(path, file, "X")
    vectors = [other for other in npz_names(path, file) if other != "X"]
    if name is None and "y" in vectors:
        name = "y"
    if name is None or name not in vectors:
        return select(where, X, wanted)
    columns = select(where, X, replace(wanted, labels=None))
    try:
        return labelled(where, columns, read_npz(path, file, name), name, len(X))
    except DataError as error:
        if wanted.labels is not None:
            raise
        # Nobody asked for y, so what is wrong with it is only noted.
        note = f"The array y is not used as labels: {error}."
        return replace(columns, notes=(*columns.notes, note))


# Columns of Arrow


@contextlib.contextmanager
def _arrow(where: str, what: str) -> Iterator[None]:
    """Turn whatever Arrow makes of what is not its own, such as text that is no UTF-8, into one line."""
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            f"{where}: {what} needs pyarrow: python3 -m pip install 'jaxkern-verified[check]'"
        ) from None
    # Versions before 14.0.1 run code of the file.
    if int(pyarrow.__version__.partition(".")[0]) < _OLDEST_ARROW:
        raise DataError(
            f"{where}: {what} needs pyarrow {_OLDEST_ARROW} or newer, not {pyarrow.__version__}"
        )
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:
        raise DataError(
            f"{where}: cannot be read as {what} ({one_line(error)})"
        ) from None


def _text_columns(path: Path, file: BinaryIO, wanted: Wanted, until: float) -> Columns:
    where = place(path)
    head = text.read_head(path, file, wanted)

    def read(columns: Sequence[int]) -> tuple[Any, tuple[str, ...]]:
        batches = text.batches(path, file, head, columns)
        table, more = _collected(where, batches, wanted.rows, until)
        for i in columns:
            if not text.is_value(head.names[i]):
                text.check_guess(path, head, head.names[i], table[str(i)])
        count = len(table)
        return table, (f"Only the first {count:,} rows are used.",) if more else ()

    return _from_arrow(where, head.names, read, wanted, head.notes)


def _parquet_columns(path: Path, wanted: Wanted, until: float) -> Columns:
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    where = place(path)
    with parquet.ParquetFile(path) as file:
        schema, metadata = file.schema_arrow, file.metadata
    names = schema.names
    if len(set(names)) < len(names):
        raise DataError(
            f"{where}: several columns have the same name; rename them in pandas"
        )
    choice = choose(where, names, wanted)
    total = metadata.num_rows
    count = total if wanted.rows is None else min(wanted.rows, total)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    declared = sum(group.total_byte_size for group in groups)
    if wanted.rows is None:
        _check_size(where, max(declared, 8 * count * len(choice.chosen)))
    # Text stays in dictionaries: a long one that all rows share would otherwise be copied for every row.
    texts = [field.name for field in schema if is_text(field.type)]

    def read(columns: Sequence[int]) -> tuple[Any, tuple[str, ...]]:
        size = max(1, min(2**16, _NUMBERS_AT_ONCE // max(1, len(columns))))
        chosen = [names[i] for i in columns]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            batches = (
                arrow.RecordBatch.from_arrays(
                    [batch[name] for name in chosen], [str(i) for i in columns]
                )
                for batch in file.iter_batches(batch_size=size, columns=chosen)
            )
            table, _ = _collected(where, batches, wanted.rows, until)
        if len(table) != count:
            raise DataError(
                f"{where}: declares {count:,} rows and holds {len(table):,}"
            )
        return table, shortened(wanted.rows, total)

    return _from_arrow(where, names, read, wanted)


def read_frame(where: str, frame: Any, wanted: Wanted) -> Columns:
    """Return columns of a DataFrame of pandas or polars, or a table of Arrow. Raises DataError."""
    with _arrow(where, "a DataFrame"):
        import narwhals
        import pyarrow as arrow

        held = narwhals.from_native(frame, eager_only=True)
        names = list(held.columns)

        def column(i: int) -> Any:
            cells = held.get_column(names[i])[: wanted.rows]
            try:
                return cells.to_arrow()
            except (arrow.ArrowInvalid, arrow.ArrowTypeError):
                # Objects of several types, among which NaN is missing.
                objects = cells.to_list()
                return arrow.array(
                    [None if cell != cell else str(cell) for cell in objects]
                )

        def read(columns: Sequence[int]) -> tuple[Any, tuple[str, ...]]:
            table = arrow.table({str(i): column(i) for i in columns})
            return table, shortened(wanted.rows, len(held))

        return _from_arrow(where, [str(name) for name in names], read, wanted)


def _from_arrow(
    where: str,
    names: Sequence[str],
    read: Callable[[Sequence[int]], tuple[Any, tuple[str, ...]]],
    wanted: Wanted,
    notes: tuple[str, ...] = (),
) -> Columns:
    """Return columns of a table of Arrow.

    `read` takes numbers of columns, and returns these columns, whose names are the numbers as text, and notes.
    """
    import pyarrow as arrow

    choice = choose(where, names, wanted)
    label = choice.label
    numbers = {*choice.chosen, *(() if label is None else (label,))}
    table, more_notes = read(sorted(numbers))
    if not len(table):
        raise DataError(f"{where}: {NO_NUMBERS}")
    array = np.full((len(table), len(choice.chosen)), np.nan)
    check_matrix(where, array.dtype, array.shape)
    cells = []
    for position, i in enumerate(choice.chosen):
        column = column_of(table[str(i)], wanted.decimal, wanted.missing_words)
        if column.numbers is not None:
            array[:, position] = column.numbers
        cells.append(replace(column, numbers=None))
    columns = Columns(
        array,
        choice,
        tuple(cells),
        notes=(*choice.notes, *notes, *more_notes),
    )
    if label is None:
        return columns
    labels = table[str(label)]
    if arrow.types.is_nested(labels.type):
        raise DataError(
            f"{where}: the labels {choice.names[label]!r} are {plain(labels.type)}, not one a row"
        )
    dictionary, codes = distinct(labels)
    # The last one stands for cells without a value, of which the code is -1.
    labels = [str(value.as_py()) for value in dictionary] + [""]
    used, codes = np.unique(codes % len(labels), return_inverse=True)
    return classified(
        columns,
        [labels[i] for i in used],
        codes,
        choice.names[label],
        wanted.missing_words,
    )


def _collected(
    where: str, batches: Iterator[Any], rows: int | None, until: float
) -> tuple[Any, bool]:
    """Return the first rows as one table of Arrow, and whether there are more."""
    import pyarrow as arrow

    parts: list[Any] = []
    left = math.inf if rows is None else rows
    size = 0
    for batch in batches:
        look(where, until)
        parts.append(batch.slice(0, int(min(left, len(batch)))))
        left -= len(batch)
        size += batch.nbytes
        _check_size(where, size)
        if left < 0:
            break
    return arrow.Table.from_batches(parts), left < 0


def _check_size(where: str, size: int) -> None:
    """Raise DataError if a table takes a large part of the memory."""
    if size > _PART * memory():
        raise DataError(
            f"{where}: takes more than a quarter of the memory; save it as .npy, which is read "
            "piece by piece, or pass --rows"
        )
