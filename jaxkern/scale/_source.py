"""Rows on storage: one file, or a folder of shards, which looks like an array that is read where it is sliced."""

from __future__ import annotations

import hashlib
import os
import pathlib
import zlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxkern._types import DTypeLike

_BATCH_BYTES = 2**21
"""What is decoded of a Parquet file at once."""
_OPEN = 64
"""How many ranges of Parquet files that were begun are kept, to be read on."""
_END_BYTES = 2**12
"""Of each end of a shard that its fingerprint knows: of Parquet the end holds the least and largest values."""


def open_rows(
    path: str | os.PathLike[str],
    *,
    columns: Sequence[str] | None = None,
    dtype: DTypeLike | None = None,
) -> Rows:
    """Return the rows of a `.npy` file, a `.parquet` file, or a folder of either, which are read where they are sliced.

    What is returned looks like a matrix, and stands for X in all functions here, and for labels (N, t). A folder is one
    table: its `.npy` or `.parquet` files in the order of their names, so number them with leading zeros; other files
    and folders in it are passed over.

    Parameters
    ----------
    path : a file or folder. A Parquet file is decoded a piece at a time; of a row group no more is held than the pages
        of the file and one piece of 2 MB.
    columns : names of columns of Parquet files, in the order wanted; by default all. Each must hold numbers alone.
    dtype : float32 or float64, to which values are converted as they are read; by default that of the files.

    Returns
    -------
    Rows, an object with `shape` (N, dim), `dtype`, `len`, `X[start:stop]`, which returns a new NumPy array, and
    `fingerprint()`, a digest of the shape, dtype and columns, and of the name, size and both ends (4 kB each) of every
    file. The end of a Parquet file holds the least and largest value of its columns, where its writer put them there.
    It is for one thread. An object of your own that has the same is taken as well.

    Raises
    ------
    ValueError
        If there is no such file, or it is of another kind; if shards differ in their columns or dtype; if a column is
        missing, is none of numbers or holds a null, with the names of the shard and the column; if dtype is another
        one, or None where the values are no float32 or float64. Nulls of files without statistics are found when they
        are read.
    ImportError
        If a Parquet file is opened without pyarrow.

    Notes
    -----
    Opening reads the head of every shard. Reading on where a slice ended costs only what is read; a slice that begins
    inside of a row group decodes that group from its beginning, once. So `stream` keeps one place for each stream.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for i in range(3):
    ...         np.save(f"{folder}/part-{i}.npy", np.ones((10, 2)))
    ...     X = open_rows(folder, dtype="float32")
    ...     X.shape, X[8:12].dtype
    ((30, 2), dtype('float32'))
    """
    path = pathlib.Path(path)
    if path.is_dir():
        files = sorted(
            p for p in path.iterdir() if p.suffix in _KINDS and p.name[0] not in "._"
        )
    else:
        files = [path]
    kinds = {file.suffix for file in files}
    if (
        not files
        or not all(file.is_file() for file in files)
        or not kinds <= _KINDS.keys()
    ):
        raise ValueError(
            f"path must be a .npy or .parquet file, or a folder with some, got {path}"
        )
    if len(kinds) > 1:
        raise ValueError(
            f"path must have shards of one kind, got both .npy and .parquet in {path}"
        )
    names = (
        None
        if columns is None
        else [columns]
        if isinstance(columns, str)
        else list(columns)
    )
    if names is not None and (not names or len(set(names)) < len(names)):
        raise ValueError(
            f"columns must be different names, at least one, got {columns!r}"
        )
    shards = [_KINDS[file.suffix](file, names) for file in files]
    first = shards[0]
    for shard in shards:
        for what in ("columns", "dtype"):
            here, there = getattr(shard, what), getattr(first, what)
            if here != there:
                raise ValueError(
                    f"shard {shard.path} must have the {what} of {first.path}, {there}, got {here}"
                )
    wanted = np.dtype(first.dtype if dtype is None else dtype)
    if wanted not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(
            f"dtype must be float32 or float64, got {wanted}: pass the one to convert {path} to"
        )
    return Rows(shards, wanted)


class Rows:
    """A table (N, dim) of shards, one behind the other; `open_rows` says what it can do."""

    def __init__(self, shards: Sequence[_Npy | _Parquet], dtype: np.dtype[Any]) -> None:
        self._shards, self.dtype = shards, dtype
        self._starts = np.cumsum([0, *(shard.num_rows for shard in shards)])
        self.shape = int(self._starts[-1]), len(shards[0].columns)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice) -> np.ndarray:
        if not isinstance(rows, slice) or rows.step not in (None, 1):
            raise ValueError(
                f"rows on storage are read as X[start:stop], got X[{rows!r}]; X[:] reads all"
            )
        start, stop, _ = rows.indices(self.shape[0])
        out = np.empty((max(stop - start, 0), self.shape[1]), self.dtype)
        at = int(np.searchsorted(self._starts, start, side="right")) - 1
        while start < stop:
            shard, begin = self._shards[at], int(self._starts[at])
            end = min(stop, begin + shard.num_rows)
            if end > start:
                into = out[len(out) - (stop - start) : len(out) - (stop - end)]
                shard.read(start - begin, into)
                start = end
            at += 1
        return out

    def fingerprint(self) -> str:
        digest = hashlib.sha256(
            repr((self.shape, str(self.dtype), self._shards[0].columns)).encode()
        )
        for shard in self._shards:
            size = shard.path.stat().st_size
            with shard.path.open("rb") as file:
                ends = [file.read(_END_BYTES)]
                file.seek(max(size - _END_BYTES, 0))
                ends.append(file.read())
            digest.update(
                repr((shard.path.name, size, *map(zlib.crc32, ends))).encode()
            )
        return digest.hexdigest()[:32]


class _Npy:
    """A matrix in a `.npy` file, which is mapped anew for each slice: thousands of shards need no open file each."""

    def __init__(self, path: pathlib.Path, columns: list[str] | None) -> None:
        if columns is not None:
            raise ValueError(
                f"columns must be None for .npy files, which have no names, got {columns!r}"
            )
        self.path = path
        try:
            array = self._mapped()
        except (ValueError, OSError, EOFError) as error:
            raise ValueError(f"shard {path} cannot be read: {error}") from error
        if array.ndim != 2 or array.shape[1] < 1 or array.dtype.kind not in "fiu":
            raise ValueError(
                f"shard {path} must be a matrix of numbers, got shape {array.shape}, dtype {array.dtype}"
            )
        self.num_rows, self.dtype = array.shape[0], array.dtype
        self.columns = [str(number) for number in range(array.shape[1])]

    def _mapped(self) -> np.ndarray:
        return np.load(self.path, mmap_mode="r")

    def read(self, start: int, out: np.ndarray) -> None:
        out[:] = self._mapped()[start : start + len(out)]


class _Place(NamedTuple):
    """Where the reading of a Parquet file has come to."""

    batches: Iterator[Any]
    rest: Any  # of the last batch


class _Parquet:
    """The numbers in a Parquet file. Slices that follow each other go on in one pass over the file."""

    def __init__(self, path: pathlib.Path, columns: list[str] | None) -> None:
        parquet = _parquet()
        self.path, self._places = path, dict[int, _Place]()
        try:
            with parquet.ParquetFile(path) as file:
                schema, about = file.schema_arrow, file.metadata
        except (
            ValueError,
            OSError,
        ) as error:  # what pyarrow raises for damaged files is either
            raise ValueError(f"shard {path} cannot be read: {error}") from error
        self.columns = list(schema.names) if columns is None else columns
        self.num_rows = int(about.num_rows)
        groups = [about.row_group(i) for i in range(about.num_row_groups)]
        self._group_starts = np.cumsum([0, *(group.num_rows for group in groups)])
        dtypes = []
        for name in self.columns:
            if schema.names.count(name) != 1:
                raise ValueError(
                    f"shard {path} must have one column {name!r}, got {schema.names}"
                )
            try:
                dtypes.append(np.dtype(schema.field(name).type.to_pandas_dtype()))
            except NotImplementedError:
                dtypes.append(np.dtype(object))
            if dtypes[-1].kind not in "fiu":
                raise ValueError(
                    f"shard {path}: column {name!r} must hold numbers, got {schema.field(name).type}"
                )
        if not dtypes:
            raise ValueError(f"shard {path} must have at least one column")
        self.dtype = np.result_type(*dtypes)
        for group in groups:
            for j in range(group.num_columns):
                known = (
                    group.column(j).statistics
                    if group.column(j).path_in_schema in self.columns
                    else None
                )
                if known is not None and known.null_count:
                    self._refuse_nulls(group.column(j).path_in_schema)

    def read(self, start: int, out: np.ndarray) -> None:
        place, done = self._places.pop(start, None) or self._begin(start), 0
        batches, rest = place
        while done < len(out):
            if not rest.num_rows:
                rest = self._next(batches)
            count = min(rest.num_rows, len(out) - done)
            for j, name in enumerate(self.columns):
                values = rest.column(name)
                if values.null_count:
                    self._refuse_nulls(name)
                out[done : done + count, j] = values[:count].to_numpy(
                    zero_copy_only=False
                )
            done, rest = done + count, rest.slice(count)
        if start + done < self.num_rows:
            self._places[start + done] = _Place(batches, rest)
            if len(self._places) > _OPEN:
                del self._places[next(iter(self._places))]

    def _begin(self, start: int) -> _Place:
        """Go to a row, from the beginning of its group."""
        group = int(np.searchsorted(self._group_starts, start, side="right")) - 1
        file = _parquet().ParquetFile(self.path, memory_map=True, pre_buffer=False)
        batches = file.iter_batches(
            max(_BATCH_BYTES // (8 * len(self.columns)), 1),
            row_groups=range(group, len(self._group_starts) - 1),
            columns=self.columns,
        )
        batch, skip = self._next(batches), start - int(self._group_starts[group])
        while batch.num_rows <= skip:
            batch, skip = self._next(batches), skip - batch.num_rows
        return _Place(batches, batch.slice(skip))

    def _next(self, batches: Iterator[Any]) -> Any:
        for batch in batches:
            return batch
        raise ValueError(f"shard {self.path} has fewer rows than when it was opened")

    def _refuse_nulls(self, name: str) -> None:
        raise ValueError(
            f"shard {self.path}: column {name!r} holds nulls; fill or drop them first"
        )


_KINDS: dict[str, type[_Npy] | type[_Parquet]] = {".npy": _Npy, ".parquet": _Parquet}


def _parquet() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow: python3 -m pip install 'jaxkern-verified[check]'"
        ) from error
    return parquet
