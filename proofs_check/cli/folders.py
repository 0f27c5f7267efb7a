"""Where commands write to: a new folder, or an empty one that was asked for; and files that nothing is lost by."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from proofs_check.cli.usage import PROG, StorageError, UsageError
from proofs_check.engine.checkpoint import MANIFEST, has_begun


def now() -> str:
    """Return the time as a name that sorts."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def check(path: Path) -> None:
    """Raise UsageError where a folder that was asked for is a file, belongs to a run, or is not empty."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--output {path} is a file")
    try:
        if (path / MANIFEST).exists():
            raise UsageError(f"--output {path} already belongs to a run; choose a new folder, or: {PROG} resume {path}")
        if path.exists() and has_begun(path):
            raise UsageError(f"--output {path} is not empty; choose a new folder")
    except OSError as error:
        raise UsageError(f"--output {path} cannot be used ({error.strerror})") from None


def check_file(
    option: str, path: Path, *, overwrite: bool = False, inputs: Iterable[Path] = (), named: bool = False
) -> None:
    """Raise UsageError where an option names a file that cannot be written without loss.

    That is one in no folder, a folder, one of the `inputs`, also by a link, or one that exists, but for `overwrite`;
    and, where its ending names the format, one without.
    """
    if not path.absolute().parent.is_dir():
        raise UsageError(f"{option} {path}: there is no folder {path.parent}; make it first")
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; name a file")
    if named and not path.suffix:
        raise UsageError(f"{option} {path} has no ending that names its format, such as .svg")
    if path.exists() and any(other.exists() and path.samefile(other) for other in inputs):
        raise UsageError(f"{option} {path} is read by this command; choose another file")
    if os.path.lexists(path) and not overwrite:
        raise UsageError(f"{option} {path} exists; choose a new file, or pass --overwrite")


def make(path: Path | None, root: str, began: str, seed: int) -> Path:
    """Make a folder before anything is computed: the one asked for, or a new one under `root`."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
            return path
        for attempt in range(1, 1000):
            path = Path(root, f"{began}-{seed}" + (f"-{attempt}" if attempt > 1 else ""))
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
        raise UsageError(f"cannot make a new folder under {path.parent if path else path}")
    except OSError as error:
        kind = StorageError if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO) else UsageError
        raise kind(f"cannot make the folder {path} ({error.strerror})") from None
