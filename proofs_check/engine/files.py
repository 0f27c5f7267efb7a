"""Every file that proofs_check writes: it is there whole and on the disk, or as it was before.

`write` puts a file beside its place, forces it to the disk, renames it and forces the folder to the disk. `append` is
for records that grow, in a file that `open_locked` keeps to one process. Whatever the system refuses is a
`StorageError`, which the command ends with status 3. Nothing here imports jax.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

from proofs_check.engine.reading import place
from proofs_check.usage import StorageError

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
_GROWING = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOFOLLOW", 0)
)
_ASIDE = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
# The calls that can fail, by names of their own, which tests replace: all writing goes through them.
_open, _write, _fsync, _rename, cut, _remove = (
    os.open,
    os.write,
    os.fsync,
    os.replace,
    os.ftruncate,
    os.unlink,
)


def write(path: Path, content: str | bytes) -> None:
    """Write a file in one step. What UTF-8 cannot hold, such as the bytes of an odd file name, is written `\\udc..`.

    Raises StorageError, and then the file is as it was before, or new where only its folder was not forced to the disk.
    """
    if isinstance(content, str):
        content = content.encode("utf-8", "backslashreplace")
    # A new file under a name that nobody can guess: a link that lies in the folder is replaced, and not followed.
    aside = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    with failing(path):
        try:
            handle = _open(aside, _NEW, 0o666)
            try:
                append(handle, content)
                _fsync(handle)
            finally:
                os.close(handle)
            _rename(aside, path)
        except BaseException:
            with contextlib.suppress(OSError):
                _remove(aside)
            raise
        sync_folder(path.parent)


def holds(path: Path, content: str) -> bool:
    """Tell whether a file is what `write` would make of it."""
    whole = content.encode("utf-8", "backslashreplace")
    with contextlib.suppress(OSError):
        return (
            path.is_file()
            and path.stat().st_size == len(whole)
            and path.read_bytes() == whole
        )
    return False


def leftovers(folder: Path) -> list[Path]:
    """Return the files beside their place that processes which were killed have left in a folder."""
    return [path for path in folder.iterdir() if _ASIDE.fullmatch(path.name)]


def clear(folder: Path) -> None:
    """Remove them from a folder that no other process writes into. Raises OSError."""
    for path in leftovers(folder):
        _remove(path)


@contextlib.contextmanager
def failing(path: Path) -> Iterator[None]:
    """Raise what the system refuses as a StorageError that names the file or folder."""
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        raise StorageError(
            f"{place(path)} cannot be written ({error.strerror or error})"
        ) from None


def open_locked(path: Path) -> int | None:
    """Open a file to read and append, made if need be, or return None where another process has it open in this way.

    Closing it, and the end of the process however it comes, opens it for others. Raises OSError.
    """
    handle = _open(path, _GROWING, 0o666)
    try:
        if not stat.S_ISREG(
            os.fstat(handle).st_mode
        ):  # nobody may ever write into a pipe
            raise OSError(errno.EINVAL, "no regular file")
        if sys.platform == "win32":
            os.lseek(
                handle, 2**40, os.SEEK_SET
            )  # a byte that is never reached: what is locked cannot be read there
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
            os.lseek(handle, 0, os.SEEK_SET)
        else:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException as error:
        os.close(handle)
        if isinstance(error, OSError) and error.errno in (errno.EAGAIN, errno.EACCES):
            return None
        raise
    return handle


def append(handle: int, content: bytes) -> None:
    """Write all of `content`, which outlives the process from then on. Raises OSError where a part may be written."""
    left = memoryview(content)
    while left:
        left = left[_write(handle, left) :]


def sync(handle: int) -> None:
    """Wait until what was written is on the disk. Raises OSError."""
    _fsync(handle)


def sync_folder(folder: Path) -> None:
    """Force the names of new files to the disk, where the system can. Raises OSError."""
    if os.name == "posix":
        handle = _open(folder, os.O_RDONLY)
        try:
            _fsync(handle)
        except OSError as error:
            if (
                error.errno != errno.EINVAL
            ):  # some network file systems know no such thing
                raise
        finally:
            os.close(handle)
