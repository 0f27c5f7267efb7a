"""A run on disk: what it was asked for, and every finished block of trials, so that it can be resumed.

A run writes two files into its folder before the first trial, and the report after the last one:

checkpoint.records  one line for each finished block, in a file that the run locks while it is alive; the system drops
                    the lock even after `kill -9`.
manifest.json       everything that the numbers depend on: options, the digest of the user's data and of the program,
                    versions, settings of JAX. It is written when the checkpoint is on the disk, and never replaced:
                    with it the run has begun, and without it the folder is free.

The numbers of a block depend on nothing but seed and names, so a resumed run takes the blocks that are there, computes
the others, and ends with the report of a run that was never interrupted. Each line is a CRC-32 and what it is of, in
JSON: the first one holds the digest of the manifest. A line speaks for itself, so one that a failure of the machine has
damaged costs its own block, and no other.

Nothing here imports jax.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.engine import files
from proofs_check.engine.documents import DocumentError, read_json
from proofs_check.usage import StorageError

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.records"
SCHEMA = 2
SECONDS_BETWEEN_SYNCS = 30.0

_LONGEST = 2**26  # bytes of a line; blocks have about a kilobyte
_DTYPES = frozenset({"<f4", "<f8", "<i4", "<i8", "|b1"})


class CheckpointError(Exception):
    """A checkpoint is missing, in use, not of this run, or damaged; the message is one line."""


def create(folder: Path, manifest: Mapping[str, Any]) -> Checkpoint:
    """Write the manifest of a new run into a folder, and return its empty checkpoint, locked.

    Raises CheckpointError where the folder already belongs to a run, StorageError where it cannot be written to.
    """
    text = json.dumps({"schema": SCHEMA, **manifest}, indent=1, allow_nan=False) + "\n"
    handle = _open(folder)
    try:
        if (folder / MANIFEST).exists():
            raise CheckpointError(
                f"{folder} already belongs to a run; choose a new folder, or resume it"
            )
        with files.failing(folder / CHECKPOINT):
            files.cut(handle, 0)
            files.append(handle, _line(["run", _digest(text.encode())]))
            files.sync(handle)
            files.sync_folder(folder)
            files.clear(folder)
        files.write(folder / MANIFEST, text)
    except BaseException:
        os.close(handle)
        raise
    return Checkpoint(folder, handle)


def has_begun(folder: Path) -> bool:
    """Tell whether a folder holds a run, or anything else that a new run must not touch.

    The files of a run that was ended before it had begun do not count: a checkpoint of one line at most.
    """
    names = set(folder.iterdir()) - set(files.leftovers(folder))
    first = folder / CHECKPOINT
    return not names <= {first} or (
        first in names and first.lstat().st_size > len(_line(["run", _digest(b"")]))
    )


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; CheckpointError where there is none that this version can read."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; give the folder of a run")
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no {MANIFEST}; give the folder of a run")
    try:
        manifest = read_json(path)
    except DocumentError as error:
        raise CheckpointError(str(error)) from None
    version = manifest.get("schema") if isinstance(manifest, dict) else None
    if version != SCHEMA or isinstance(version, bool):
        raise CheckpointError(f"{path} is no manifest of schema version {SCHEMA}")
    return dict(manifest)


def resume(folder: Path) -> Checkpoint:
    """Return the checkpoint of a run with all its finished blocks, checked and locked.

    Raises CheckpointError where another run holds it, where it belongs to another manifest, or where it is damaged in
    its first line; it is left as it is then. StorageError where it cannot be written to.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise CheckpointError(
            f"{folder} holds no {CHECKPOINT}, so its run cannot be resumed"
        )
    handle = _open(folder)
    try:
        lines = _lines(handle)
        head, end = next(lines, (None, 0))
        if not isinstance(head, list) or head[:1] != ["run"]:
            raise CheckpointError(
                f"{path} is damaged or cut short, and is left as it is; start a new run"
            )
        if head != ["run", _digest((folder / MANIFEST).read_bytes())]:
            raise CheckpointError(
                f"{path} does not belong to the {MANIFEST} beside it; both are left as they are"
            )
        blocks = Checkpoint(folder, handle, resumed=1)
        for record, end in lines:  # noqa: B007 (the last one is where whole lines end)
            if record == ["resumed"]:
                blocks.resumed += 1
            elif not blocks._put(record):
                blocks.damaged += 1
        with files.failing(path):
            files.cut(handle, end)
            files.append(handle, _line(["resumed"]))
            files.sync(handle)
            files.clear(folder)
    except BaseException:
        os.close(handle)
        raise
    return blocks


@dataclass
class Checkpoint:
    """The blocks of a run: `take` what is there, `keep` what is new.

    `label` names a sample, `start` the first of its trials that a block holds; `resumed` says how often the run was
    taken up again, `damaged` how many lines could not be used. A checkpoint without a folder, `Checkpoint()`, keeps
    nothing.
    """

    folder: Path | None = None
    _handle: int | None = None
    _blocks: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    resumed: int = 0
    damaged: int = 0
    _synced: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _failed: StorageError | None = None

    def take(self, label: str, start: int) -> np.ndarray | None:
        """Return a finished block, None where there is none; it is handed out once."""
        return self._blocks.pop((label, start), None)

    def keep(self, label: str, start: int, values: np.ndarray) -> None:
        """Write a finished block; StorageError where that fails, and then every block before it is kept.

        A block outlives the end of the process at once. A failure of the machine may take those of the last half minute
        before the last one, and that one.
        """
        data = np.ascontiguousarray(values)
        text = base64.b64encode(data.tobytes()).decode()
        line = _line([label, start, data.dtype.str, values.shape, text])
        if data.dtype.str not in _DTYPES or len(line) > _LONGEST:
            raise TypeError(
                f"a block of {data.nbytes} bytes of dtype {data.dtype} cannot be kept"
            )
        with self._lock:
            if (
                self._handle is None or self.folder is None
            ):  # it keeps nothing, or the run has ended
                return
            if self._failed is not None:  # nothing may follow a line that was cut short
                raise self._failed
            try:
                with files.failing(self.folder / CHECKPOINT):
                    files.append(self._handle, line)
                    if time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS:
                        files.sync(self._handle)
                        self._synced = time.monotonic()
            except StorageError as error:
                self._failed = StorageError(f"{error}; all finished blocks are kept")
                raise self._failed from None

    def close(self) -> None:
        """Let another process resume the run."""
        with self._lock:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _put(self, record: Any) -> bool:
        """Take a block from what a line says, or return False."""
        try:
            label, start, dtype, shape, text = record
            known = isinstance(label, str) and type(start) is int and dtype in _DTYPES
            if not (known and all(type(size) is int and size >= 0 for size in shape)):
                return False
            values = np.frombuffer(
                base64.b64decode(text, validate=True), dtype
            ).reshape(shape)
        except (ValueError, TypeError, OverflowError):
            return False
        self._blocks[label, start] = values.copy()
        return True


def digest_of(paths: Iterator[Path] | list[Path]) -> str:
    """Return one digest of the contents of files, in the order given."""
    digest = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def digest_of_program() -> str:
    """Return the digest of the Python files of both packages: another program may draw other numbers."""
    import jaxkern

    roots = [Path(__file__).parents[1], Path(str(jaxkern.__file__)).parent]
    return digest_of([path for root in roots for path in sorted(root.rglob("*.py"))])


def _open(folder: Path) -> int:
    """Open the checkpoint of a folder for this process alone."""
    with files.failing(folder / CHECKPOINT):
        handle = files.open_locked(folder / CHECKPOINT)
    if handle is None:
        raise CheckpointError(f"another run is writing into {folder}")
    return handle


def _line(record: Any) -> bytes:
    text = json.dumps(record, separators=(",", ":")).encode()
    return b"%08x %s\n" % (zlib.crc32(text), text)


def _lines(handle: int) -> Iterator[tuple[Any, int]]:
    """Yield what each line says, None where it is damaged, and where it ends. A last one without an end is left out."""
    end = 0
    with open(handle, "rb", closefd=False) as file:
        while line := file.readline(_LONGEST):
            if len(line) < _LONGEST and not line.endswith(b"\n"):
                return
            end += len(line)
            checksum, _, text = line.rstrip(b"\n").partition(b" ")
            try:
                yield (
                    (
                        json.loads(text)
                        if checksum == b"%08x" % zlib.crc32(text)
                        else None
                    ),
                    end,
                )
            except (ValueError, RecursionError):  # no line of ours
                yield None, end


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
