"""Read arrays of a user's file, or say in one line what is wrong with it.

Data of papers are read with this, and tables by `proofs_check.certify`. Files are not trusted: pickles are never
loaded, sizes that a file declares are compared with its length before memory is taken, and names and text from files
reach messages as `plain` text.
"""

import contextlib
import io
import math
import os
import unicodedata
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

NO_NUMBERS = "is empty, it holds no row of numbers"

_LONGEST_HEADER = 2**16  # bytes of a .npy header, which is a few hundred
_FINE_BYTES = 2**28  # in memory: never refused below
_MOST_EXPANSION = 1000  # bytes in memory for one of the file


class DataError(ValueError):
    """The file holds no data that can be used. The message is one line, for the person who passed the file."""


def extreme(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Tell of each column whether squares of its values or of their differences come near the limits of float64."""
    near = (low < high) & (high / 2 - low / 2 < 1e-100 / 2)  # halves do not overflow
    return near | (np.maximum(abs(low), abs(high)) > 1e100)


# Words


def plain(text: object, longest: int = 100) -> str:
    """Return text from outside as one short line: control characters replaced, and at most `longest` characters."""
    short = str(text)[: longest + 1]
    clean = "".join(
        "\ufffd" if unicodedata.category(c)[0] == "C" or c in "\u2028\u2029" else c
        for c in short
    )
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def listed(names: Iterable[str]) -> str:
    """Return names in quotes, and how many more there are after the first ones."""
    return joined(f"'{name}'" for name in names)


def joined(parts: Iterable[str], longest: int = 8) -> str:
    """Return parts of a sentence, and how many more there are after the first ones."""
    parts = list(parts)
    more = f" and {len(parts) - longest:,} more" if len(parts) > longest else ""
    return ", ".join(parts[:longest]) + more


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
            raise DataError(
                f"{where}: unknown kind of file {plain(suffix)!r}; use {', '.join(others)} or {last}"
            )
        if path.is_dir():
            raise DataError(f"{where}: is a folder, not a file")
        if not path.exists():
            raise DataError(f"{where}: no such file")
        if not path.is_file():  # a pipe would be waited for, and a device may never end
            raise DataError(f"{where}: is no regular file")
        if path.stat().st_size == 0:
            raise DataError(
                f"{where}: {NO_NUMBERS if suffix == '.csv' else 'is empty'}"
            )
        yield
    except OSError as error:
        raise DataError(
            f"{where}: cannot be read ({error.strerror or one_line(error)})"
        ) from None
    except MemoryError:
        hint = (
            ""
            if suffix == ".npy"
            else "; save it as .npy, which is read piece by piece"
        )
        raise DataError(f"{where}: does not fit into memory{hint}") from None


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
        raise DataError(
            f"{where}: holds an array of shape {shape}, not (rows, columns)"
        )
    if shape[0] < 2:
        raise DataError(f"{where}: holds {shape[0]} row(s), and at least 2 are needed")


def check_unpacked(where: str, declared: int, length: int) -> None:
    """Refuse what would unpack to far more than the file is long, or than the machine has, before it takes memory."""
    most = min(_MOST_EXPANSION * length, memory())
    if declared > max(_FINE_BYTES, most):
        raise DataError(
            f"{where}: declares {declared:,} bytes of numbers in a file of {length:,} bytes, which is not unpacked; "
            "save it as .npy, which is read piece by piece"
        )


def memory() -> int:
    """Return the bytes of memory that this process may take, or a size that none has if the system does not tell.

    That is the memory of the machine, or less in a container or under a limit of address space.
    """
    try:
        page = os.sysconf("SC_PAGE_SIZE")
        sizes = [page * os.sysconf("SC_PHYS_PAGES")]
    except (AttributeError, ValueError, OSError):
        return 2**48
    with contextlib.suppress(OSError, ValueError):  # "max" is no number
        sizes.append(int(Path("/sys/fs/cgroup/memory.max").read_text()))
    with contextlib.suppress(ImportError, OSError):
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            used = page * int(Path("/proc/self/statm").read_text().split()[0])
            sizes.append(limit - used)
    return min(sizes)


# Arrays


def is_npz(file: BinaryIO) -> bool:
    """Return whether a file is an archive, by its first bytes, whatever its name."""
    start = file.read(2)
    file.seek(0)
    return start == b"PK"


def map_npy(path: Path, file: BinaryIO) -> np.ndarray:
    """Return the array of a .npy file, which stays in the file."""
    with _parsing(path):
        dtype, shape, fortran = _npy_header(path, file, "")
        offset, length = file.tell(), path.stat().st_size
        entries = math.prod(shape)
        _check_held(place(path), entries * dtype.itemsize, length - offset)
        if not entries:
            return np.empty(shape, dtype)
        order: Any = "F" if fortran else "C"
        return np.asarray(np.memmap(path, dtype, "r", offset, shape, order))


def read_npz(path: Path, file: BinaryIO, name: str) -> np.ndarray:
    """Return an array of a .npz file."""
    with _parsing(path):
        names = npz_names(path, file)
        if name not in names:
            held = plain(", ".join(names)) or "nothing"
            raise DataError(
                f"{place(path)}: holds no array named {name}, but {held}; save with np.savez(file, X=...)"
            )
        if names.count(name) > 1:
            raise DataError(
                f"{place(path)}: holds {names.count(name)} arrays named {name}; save with np.savez again"
            )
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
                _check_held(
                    place(path),
                    math.prod(shape) * dtype.itemsize,
                    member.file_size - entry.tell(),
                )
            with archive.open(member) as entry:
                return np.lib.format.read_array(entry, allow_pickle=False)


def npz_names(path: Path, file: BinaryIO) -> list[str]:
    """Return the names of the arrays of a .npz file."""
    with _parsing(path), zipfile.ZipFile(file) as archive:
        return [name.removesuffix(".npy") for name in archive.namelist()]


def _npy_header(
    path: Path, file: Any, name: str
) -> tuple[np.dtype, tuple[int, ...], bool]:
    """Return dtype, shape and order that an array of NumPy declares."""
    start = file.read(6)
    file.seek(0)
    if start != b"\x93NUMPY":
        raise DataError(
            f"{place(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)"
        )
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0), (3, 0)):
        raise ValueError(f"its format has the version {version}")
    old = version == (1, 0)
    size = file.read(2 if old else 4)
    length = int.from_bytes(size, "little")
    if length > _LONGEST_HEADER:  # NumPy would read it before it looks at its length
        raise DataError(f"{place(path)}: declares a header of {length:,} bytes{name}")
    read = (
        np.lib.format.read_array_header_1_0
        if old
        else np.lib.format.read_array_header_2_0
    )
    try:
        shape, fortran, dtype = read(io.BytesIO(size + file.read(length)))
    except MemoryError:  # of Python's parser, whose stack is short
        raise DataError(
            f"{place(path)}: declares a header that is nested too deeply{name}"
        ) from None
    if dtype.hasobject:
        raise DataError(
            f"{place(path)}: holds no plain array of numbers{name} (pickled objects are not loaded)"
        )
    if any(isinstance(size, bool) or size < 0 for size in shape):
        raise DataError(f"{place(path)}: declares the shape {plain(shape)}{name}")
    return dtype, shape, fortran


def _check_held(where: str, declared: int, held: int) -> None:
    if declared > held:
        raise DataError(
            f"{where}: is cut off; it declares {declared:,} bytes of numbers and holds {held:,}"
        )


@contextlib.contextmanager
def _parsing(path: Path) -> Iterator[None]:
    try:
        yield
    except (DataError, MemoryError, OSError):
        raise
    except Exception as error:  # whatever NumPy, zipfile and the decompressors make of files that are not theirs
        raise DataError(
            f"{place(path)}: cannot be read as {path.suffix} ({one_line(error)})"
        ) from None


# Text


def as_number(cell: str) -> float | None:
    """Return the number in a cell, maybe NaN or infinite, or None where there is none."""
    try:
        return None if "_" in cell else float(cell)  # Python reads 1_000 as a number
    except ValueError:
        return None
