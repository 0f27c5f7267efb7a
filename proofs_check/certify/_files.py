"""Read columns of a `.npy`, `.npz`, `.csv` or `.parquet` file, or of a DataFrame.

Like `proofs_check.engine.reading`, it trusts no file, and every error is one line.
"""

import contextlib
import csv
import math
from codecs import getincrementaldecoder
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from proofs_check.certify._cells import WRITTEN, gathered, is_text, parsed
from proofs_check.certify._columns import (
    Columns,
    Wanted,
    check_width,
    choose,
    labelled,
    numbered,
    select,
)
from proofs_check.engine.reading import (
    NO_NUMBERS,
    DataError,
    check_unpacked,
    is_missing,
    is_npz,
    map_npy,
    npz_names,
    one_line,
    place,
    plain,
    read_npz,
    reading,
)  # fmt: skip

_DELIMITERS = ",;\t"
_BLOCK = 2**23  # bytes of text at once, and so the length of the longest row
_NUMBERS_AT_ONCE = 2**22
_OLDEST_ARROW = 16


def read_columns(
    path: str | Path, wanted: Wanted, *, until: float = math.inf
) -> Columns:
    """Return columns of a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    The arguments are those of `open_table`, where a name comes first that looks like a number, and arrays and files
    without a header have the names x1, x2, ... An array of `.npy` is mapped, not read; numbers of a `.csv` or
    `.parquet` file that would take more than a quarter of the memory go to a file without a name in the folder for
    temporary files (TMPDIR), and are mapped from there.

    Raises DataError for everything that is wrong with the file or with what is asked of it.
    """
    path = Path(path)
    kinds = {
        ".npy": ".npy",
        ".npz": ".npz (with X)",
        ".csv": ".csv",
        ".parquet": ".parquet",
    }
    with reading(path, kinds):
        suffix = path.suffix.lower()
        if suffix == ".csv":
            return _csv_columns(path, wanted, until)
        if suffix == ".parquet":
            return _parquet_columns(path, wanted, until)
        with path.open("rb") as file:
            if not is_npz(file):
                return select(place(path), map_npy(path, file), wanted)
            X, labels = read_npz(path, file, "X"), wanted.labels
            others = [name for name in npz_names(path, file) if name != "X"]
            if labels is None and "y" in others:
                return _with_y(path, file, select(place(path), X, wanted), len(X))
            if labels is None or labels not in others:
                return select(place(path), X, wanted)
            chosen = select(place(path), X, replace(wanted, labels=None))
            return labelled(
                place(path), chosen, read_npz(path, file, labels), labels, len(X)
            )


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
    return replace(
        columns, notes=(*columns.notes, f"The array y is not used as labels: {why}.")
    )


# Files and DataFrames


@contextlib.contextmanager
def _arrow(where: str, what: str) -> Iterator[None]:
    """Turn whatever Arrow makes of what is not its own, such as text that is no UTF-8, into one line."""
    try:
        import pyarrow
    except ImportError:
        raise DataError(
            f"{where}: {what} needs pyarrow: python3 -m pip install 'jaxkern-verified[check]'"
        ) from None
    if (
        int(pyarrow.__version__.partition(".")[0]) < _OLDEST_ARROW
    ):  # those before 14.0.1 run code of the file
        raise DataError(
            f"{where}: {what} needs pyarrow {_OLDEST_ARROW} or newer, not {pyarrow.__version__}"
        )
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:
        why = one_line(error)
        if "straddl" in why:
            raise DataError(
                f"{where}: a row is longer than {_BLOCK:,} bytes; is a quotation mark missing?"
            ) from None
        if "UTF8" in why:
            raise DataError(f"{where}: is not text in UTF-8") from None
        raise DataError(f"{where}: cannot be read as {what} ({why})") from None


def _csv_columns(path: Path, wanted: Wanted, until: float) -> Columns:
    where = place(path)
    with _arrow(where, ".csv"), path.open("rb") as file:
        first, skipped, delimiter = _first_row(where, file)
        header = not (
            all(map(is_missing, first))
            or {parsed(cell)[1] for cell in first} & {"numbers", *WRITTEN}
        )
        names = (
            [cell.strip() or f"x{i}" for i, cell in enumerate(first, 1)]
            if header
            else numbered(len(first))
        )
        wrong: list[str] = []

        def batches(read: Sequence[int]) -> Iterator[tuple[int, dict[int, Any]]]:
            import pyarrow as arrow
            from pyarrow import csv as reader

            def unfit(row: Any) -> str:
                if not row.text.strip():
                    return "skip"
                counts = f"has {row.actual_columns} column(s) and the first row has {row.expected_columns}"
                wrong.append(f"{where}: row {row.number} {counts}")
                return "error"

            held = [str(i) for i in range(len(first))]
            before = {"skip_rows": skipped, "skip_rows_after_names": int(header)}
            types = {
                "column_types": dict.fromkeys(held, arrow.string()),
                "include_columns": [held[i] for i in read],
            }
            file.seek(0)
            stream = reader.open_csv(
                file,
                reader.ReadOptions(
                    use_threads=False, block_size=_BLOCK, column_names=held, **before
                ),
                reader.ParseOptions(
                    delimiter=delimiter,
                    newlines_in_values=True,
                    invalid_row_handler=unfit,
                ),
                reader.ConvertOptions(**types),
            )
            for batch in stream:
                yield len(batch), dict(zip(read, batch.columns, strict=True))

        try:
            return gathered(where, names, batches, wanted, until)
        except DataError as error:
            hint = (
                "; the file has no header"
                if not header and "there is no column" in str(error)
                else ""
            )
            raise DataError(f"{error}{hint}") from None
        except Exception:
            if wrong:
                raise DataError(wrong[0]) from None
            raise


def _first_row(where: str, file: BinaryIO) -> tuple[list[str], int, str]:
    """Return the cells of the first row that is not blank, how many lines are before it, and what separates cells."""
    raw = file.read(_BLOCK)
    try:
        head = getincrementaldecoder("utf-8-sig")().decode(raw)
    except UnicodeDecodeError:
        raise DataError(f"{where}: is not text in UTF-8") from None
    if "\0" in head:
        raise DataError(f"{where}: holds a NUL character, so it is no plain text")
    lines = head.splitlines(keepends=True)
    skipped = next((i for i, line in enumerate(lines) if line.strip()), len(lines))
    if skipped == len(lines):
        raise DataError(f"{where}: {NO_NUMBERS}")
    if len(raw) == _BLOCK and skipped == len(lines) - 1:
        raise DataError(f"{where}: a row is longer than {_BLOCK:,} bytes")
    delimiter = max(_DELIMITERS, key=lines[skipped].count)
    check_width(where, lines[skipped].count(delimiter) + 1)
    cells = next(csv.reader(lines[skipped:], delimiter=delimiter))
    check_width(where, len(cells))
    return cells, skipped, delimiter


def _parquet_columns(path: Path, wanted: Wanted, until: float) -> Columns:
    where = place(path)
    with _arrow(where, ".parquet"):
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        with parquet.ParquetFile(path) as file:
            schema, metadata, length = (
                file.schema_arrow,
                file.metadata,
                path.stat().st_size,
            )
            names, kinds, total = (
                schema.names,
                [field.type for field in schema],
                metadata.num_rows,
            )
            choice = choose(where, names, wanted)
            label, count = (
                choice.label,
                total if wanted.rows is None else min(wanted.rows, total),
            )
            declared = sum(
                metadata.row_group(i).total_byte_size
                for i in range(metadata.num_row_groups)
            )
            check_unpacked(
                where,
                max(declared, 8 * count * len(choice.chosen)),
                length,
                in_parts=True,
            )
            nested = {i for i, kind in enumerate(kinds) if arrow.types.is_nested(kind)}
            if label in nested:
                raise DataError(
                    f"{where}: the labels {names[label]!r} are {plain(kinds[label])}, not one a row"
                )
            if nested and len(set(names)) < len(names):
                raise DataError(
                    f"{where}: has columns of one name, and nested ones; give each a name of its own"
                )
        # Text stays in dictionaries: a long one that all rows share would otherwise be copied for every row.
        texts = [name for name, kind in zip(names, kinds, strict=True) if is_text(kind)]
        with parquet.ParquetFile(path, read_dictionary=texts) as file:
            read = partial(_batches, file)
            return gathered(
                where, names, read, wanted, until, total=total, unread=nested
            )


def _batches(file: Any, wanted: Sequence[int]) -> Iterator[tuple[int, dict[int, Any]]]:
    """Yield the number of rows and the wanted columns of each batch."""
    names = file.schema_arrow.names
    twice = len(set(names)) < len(
        names
    )  # two columns of one name can only be told apart where all are read
    size = max(
        1, min(2**16, _NUMBERS_AT_ONCE // max(1, len(names if twice else wanted)))
    )
    for batch in file.iter_batches(
        batch_size=size, columns=None if twice else [names[i] for i in wanted]
    ):
        at = (
            (lambda i: i)
            if twice
            else (lambda i: batch.schema.get_field_index(names[i]))  # noqa: B023
        )
        yield len(batch), {i: batch.column(at(i)) for i in wanted}


def read_frame(where: str, frame: Any, wanted: Wanted) -> Columns:
    """Return columns of a DataFrame of pandas or polars, or a table of Arrow. Raises DataError."""
    with _arrow(where, "a DataFrame"):
        import narwhals
        import pyarrow as arrow

        held = narwhals.from_native(frame, eager_only=True)
        names = list(held.columns)

        def column(name: Any) -> Any:
            cells = held.get_column(name)
            try:
                found = cells.to_arrow()
            except (
                arrow.ArrowInvalid,
                arrow.ArrowTypeError,
            ):  # objects of several types
                every = cells.to_list()
                found = arrow.array(
                    [
                        None if cell is None or cell != cell else str(cell)
                        for cell in every
                    ]
                )
            return (
                found.combine_chunks()
                if isinstance(found, arrow.ChunkedArray)
                else found
            )

        def batches(read: Sequence[int]) -> Iterator[tuple[int, dict[int, Any]]]:
            columns = {i: column(names[i]) for i in read}
            for start in range(
                0, len(held), size := max(1, _NUMBERS_AT_ONCE // max(1, len(read)))
            ):
                part = {i: cells.slice(start, size) for i, cells in columns.items()}
                yield min(size, len(held) - start), part

        return gathered(
            where, [str(name) for name in names], batches, wanted, total=len(held)
        )
