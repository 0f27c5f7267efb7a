"""Where commands write to: a new folder, or an empty one that was asked for."""

import errno
from datetime import UTC, datetime
from pathlib import Path

from proofs_check.engine.checkpoint import MANIFEST, has_begun
from proofs_check.usage import PROG, StorageError, UsageError


def now() -> str:
    """Return the time as a name that sorts."""
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def check(path: Path) -> None:
    """Raise UsageError where a folder that was asked for is a file, belongs to a run, or is not empty."""
    if path.exists() and not path.is_dir():
        raise UsageError(f"--output {path} is a file")
    try:
        if (path / MANIFEST).exists():
            raise UsageError(
                f"--output {path} already belongs to a run; choose a new folder, or: {PROG} resume {path}"
            )
        if path.exists() and has_begun(path):
            raise UsageError(f"--output {path} is not empty; choose a new folder")
    except OSError as error:
        raise UsageError(f"--output {path} cannot be used ({error.strerror})") from None


def make(path: Path | None, root: str, began: str, seed: int) -> Path:
    """Make a folder before anything is computed: the one asked for, or a new one under `root`."""
    try:
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)
            return path
        for attempt in range(1, 1000):
            path = Path(
                root, f"{began}-{seed}" + (f"-{attempt}" if attempt > 1 else "")
            )
            try:
                path.mkdir(parents=True)
            except FileExistsError:
                continue
            return path
        raise UsageError(
            f"cannot make a new folder under {path.parent if path else path}"
        )
    except OSError as error:
        kind = (
            StorageError
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO)
            else UsageError
        )
        raise kind(f"cannot make the folder {path} ({error.strerror})") from None
