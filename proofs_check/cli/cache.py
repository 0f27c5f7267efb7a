"""Compiled programs kept between runs: compiling them takes most of a quick run.

JAX keeps them and finds them again. This module chooses the folder, sees to it that nobody else can write there, and
bounds its size. A compiled program is code, so whoever can write to the folder can run code as the user.
"""

import hashlib
import os
import platform
import stat
import sys
import zlib
from pathlib import Path

from proofs_check.usage import PROG, UsageError

LARGEST = 2**28
"""Bytes that may be kept; the programs of all quick runs are a tenth of it."""

_ON, _FOLDER = "JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR"
_FALSE = ("n", "no", "f", "false", "off", "0")
_KINDS = (
    "model name",
    "flags",
    "vendor_id",
    "CPU implementer",
    "CPU part",
    "CPU variant",
    "Features",
    "isa",
    "cpu",
)


class _Refused(Exception):
    """The folder is not safe, or cannot be used; the message says why."""


def prepare(asked: Path | None = None, *, off: bool = False) -> Path | None:
    """Set the variables from which JAX takes its compilation cache. Once JAX is imported, nothing is changed.

    Without a folder that was `asked` for it is the user's own one, unless the variables of JAX that name a folder or
    turn the cache off are set; then nothing is changed either. Where the own folder is refused, one line says why.
    Returns the folder that was set, if one was. Raises UsageError where the one asked for is refused.
    """
    if "jax" in sys.modules:  # whose process it is decides
        return None
    if off:
        os.environ[_ON] = "false"
        return None
    if asked is None and (
        os.environ.get(_FOLDER) or os.environ.get(_ON, "").lower() in _FALSE
    ):
        return None
    try:
        folder = own_folder() if asked is None else asked.absolute()
        programs = _private(folder / machine())
        prune(programs.parent)
    except (_Refused, OSError) as error:
        reason = (
            f"{error.filename}: {error.strerror}"
            if isinstance(error, OSError)
            else str(error)
        )
        if asked is not None:
            raise UsageError(f"--cache {asked} cannot be used: {reason}") from None
        print(
            f"{PROG}: compiled programs are not kept ({reason}); --no-cache for no such line",
            file=sys.stderr,
        )
        return None
    os.environ[_ON], os.environ[_FOLDER] = "true", str(programs)
    # By default JAX keeps only what takes a second to compile, which on a CPU is next to nothing.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    # Files of XLA's own beside the programs: not bounded, and not needed where whole programs are kept.
    os.environ.setdefault("JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES", "none")
    return programs


def own_folder() -> Path:
    """Return the folder of the user, by the rules of freedesktop.org."""
    named = os.environ.get("XDG_CACHE_HOME", "")
    try:
        parent = Path(named) if os.path.isabs(named) else Path.home() / ".cache"
    except RuntimeError:
        raise _Refused("there is no home folder") from None
    return parent / "jaxkern" / "compiled"


def machine() -> str:
    """Return a name for the processor: programs for another one may not run, be slow, or round in another way.

    The features of the processor and the versions of JAX and XLA are in the names that JAX gives its files, too.
    """
    try:
        lines = (
            Path("/proc/cpuinfo")
            .read_text(encoding="utf-8", errors="replace")
            .splitlines()
        )
        told = sorted(
            {line for line in lines if line.partition(":")[0].strip() in _KINDS}
        )
    except OSError:
        told = [platform.processor(), platform.node()]
    told += [platform.machine(), str(os.cpu_count())]
    return "xla-" + hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]


def _private(path: Path) -> Path:
    """Return a folder that is this user's alone, made if need be, without links on its way.

    Nobody else may own a folder above it or write to one, or the folder could be exchanged; where the sticky bit is
    set, as in /tmp, only owners can do that.
    """
    if not hasattr(os, "geteuid"):
        raise _Refused("this system does not tell who can write to a folder")
    path, user = Path(os.path.realpath(path)), os.geteuid()
    for missing in reversed(
        [each for each in (path, *path.parents) if not each.exists()]
    ):
        missing.mkdir(mode=0o700, exist_ok=True)
    for each in (path, *path.parents):
        status = each.lstat()
        mode = status.st_mode
        if not stat.S_ISDIR(mode):
            raise _Refused(f"{each} is no folder")
        if status.st_uid != user and (each == path or status.st_uid != 0):
            raise _Refused(f"{each} belongs to another user")
        if each == path and mode & 0o077:  # the files in it may be those of a group
            raise _Refused(f"others can look into {each}; remove it")
        if mode & 0o022 and not mode & stat.S_ISVTX:
            raise _Refused(f"others can write to {each}; chmod go-w {each}")
    return path


def prune(folder: Path, largest: int = LARGEST) -> None:
    """Remove damaged programs and, beyond `largest` bytes in all, those unused for longest, until half is left.

    JAX bounds its cache only where a further package is installed, and does not write a damaged program anew.
    """
    checked = folder / "checked"
    since = checked.stat().st_mtime if checked.exists() else 0.0
    kept, all_seen = [], True
    for path in folder.glob("xla-*/*-cache"):
        try:
            status = path.stat()
            # To read an old one would make it look used.
            if status.st_mtime >= since and _damaged(path.read_bytes()):
                path.unlink()
            else:
                kept.append(
                    (max(status.st_atime, status.st_mtime), status.st_size, path)
                )
        except FileNotFoundError:  # another run has removed it
            continue
        except OSError:
            all_seen = False
    if all_seen:
        checked.touch()
    total = sum(size for _, size, _ in kept)
    if total <= largest:
        return
    for _, size, path in sorted(kept):
        path.unlink(missing_ok=True)
        total -= size
        if total <= largest // 2:
            return


def _damaged(data: bytes) -> bool:
    """Return whether a file is empty or, where zlib packed it, does not unpack: a full disk leaves such ones."""
    try:
        return not data or (data[:1] == b"\x78" and not zlib.decompress(data))
    except zlib.error:
        return True
