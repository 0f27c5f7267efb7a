"""A run on disk: what it was asked for, and every finished block of trials, so that it can be resumed.

A run writes two files into its folder before the first trial, and the report after the last one:

manifest.json      everything that the numbers depend on: options, the digest of the user's data and of the program,
                   versions. It is created, never replaced: a second run into the same folder fails here.
checkpoint.sqlite  one row for each finished block. SQLite commits a block as a whole or not at all, and holds a lock
                   while the run is alive, which the system drops even after `kill -9`.

The numbers of a block depend on nothing but seed and names, so a resumed run takes the blocks that are there, computes
the others, and ends with the report of a run that was never interrupted. Each row carries a checksum of its contents,
and the database the digest of its manifest; what does not fit is an error, and nothing is written then.

Nothing here imports jax.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.document import ReportError, read_json
from proofs_check.usage import StorageError

MANIFEST = "manifest.json"
CHECKPOINT = "checkpoint.sqlite"
SCHEMA = 1
SECONDS_BETWEEN_SYNCS = 30.0

# Blocks have a kilobyte each and are written once and read once, in order: large pages waste little of it, and no index
# is needed.
_TABLES = """
CREATE TABLE about (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE blocks (label TEXT NOT NULL, start INTEGER NOT NULL, dtype TEXT NOT NULL, shape TEXT NOT NULL,
                     data BLOB NOT NULL, checksum INTEGER NOT NULL);
"""
_SCHEMA = {(statement.split()[2], statement.strip()) for statement in _TABLES.split(";") if statement.strip()}
_PAGE = 16384
_SUPER_JOURNAL = bytes.fromhex("d9d505f920a163d7")  # the end of a journal that names a second file
_DTYPES = frozenset({"<f4", "<f8", "<i4", "<i8", "|b1"})


class CheckpointError(Exception):
    """A checkpoint is missing, in use, not of this run, or damaged; the message is one line."""


def create(folder: Path, manifest: Mapping[str, Any]) -> Checkpoint:
    """Write the manifest of a new run into a folder, and return its empty checkpoint, locked.

    Raises CheckpointError where the folder already belongs to a run, StorageError where it cannot be written to.
    """
    text = json.dumps({"schema": SCHEMA, **manifest}, indent=1, allow_nan=False) + "\n"
    path = folder / MANIFEST
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise CheckpointError(f"{folder} already belongs to a run; choose a new folder, or resume it") from None
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise StorageError(f"{folder} cannot be written to ({error.strerror})") from None
    connection = sqlite3.connect(folder / CHECKPOINT, timeout=0.0, check_same_thread=False)
    try:
        connection.execute(f"PRAGMA page_size = {_PAGE}")
        _begin(connection, folder)
        for _, statement in sorted(_SCHEMA):
            connection.execute(statement)
        connection.execute("INSERT INTO about VALUES ('manifest', ?)", (_digest(text.encode()),))
        connection.execute("INSERT INTO about VALUES ('resumed', '0')")
        connection.commit()
    except sqlite3.Error as error:
        raise StorageError(f"{folder} cannot be written to ({error})") from None
    return Checkpoint(folder, connection, {})


def read_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a folder; CheckpointError where there is none that this version can read."""
    path = folder / MANIFEST
    if not folder.is_dir():
        raise CheckpointError(f"{folder} is no folder; give the folder of a run")
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no {MANIFEST}; give the folder of a run")
    try:
        manifest = read_json(path)
    except ReportError as error:
        raise CheckpointError(str(error)) from None
    version = manifest.get("schema") if isinstance(manifest, dict) else None
    if version != SCHEMA or isinstance(version, bool):
        raise CheckpointError(f"{path} is no manifest of schema version {SCHEMA}")
    return dict(manifest)


def resume(folder: Path) -> Checkpoint:
    """Return the checkpoint of a run with all its finished blocks, checked and locked.

    Raises CheckpointError where another run holds it, where it belongs to another manifest, or where it is damaged;
    it is left as it is then.
    """
    path = folder / CHECKPOINT
    if not path.is_file():
        raise CheckpointError(f"{folder} holds no {CHECKPOINT}, so its run cannot be resumed")
    damaged = CheckpointError(f"{path} is damaged or cut short, and is left as it is; start a new run")
    _check_before_opening(path, damaged)
    connection = sqlite3.connect(path, timeout=0.0, check_same_thread=False)
    try:
        connection.execute("PRAGMA trusted_schema = OFF")
        _begin(connection, folder)
        _check_schema(connection)
        if connection.execute("PRAGMA integrity_check").fetchone() != ("ok",):
            raise damaged
        about = dict(connection.execute("SELECT key, value FROM about"))
        if about.get("manifest") != _digest((folder / MANIFEST).read_bytes()):
            raise CheckpointError(f"{path} does not belong to the {MANIFEST} beside it; both are left as they are")
        blocks = _read_blocks(connection)
        resumed = int(about["resumed"]) + 1
        connection.execute("UPDATE about SET value = ? WHERE key = 'resumed'", (str(resumed),))
        connection.commit()
    except (sqlite3.Error, ValueError, TypeError, KeyError, OverflowError, RecursionError) as error:
        connection.close()
        if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
            raise StorageError(f"{folder} cannot be written to ({error})") from None
        raise damaged from None
    except CheckpointError:
        connection.close()
        raise
    return Checkpoint(folder, connection, blocks, resumed)


@dataclass
class Checkpoint:
    """The blocks of a run: `take` what is there, `keep` what is new.

    `label` names a sample, `start` the first of its trials that a block holds; `resumed` says how often the run was
    taken up again. A checkpoint without a folder, `Checkpoint()`, keeps nothing.
    """

    folder: Path | None = None
    _connection: sqlite3.Connection | None = None
    _blocks: dict[tuple[str, int], np.ndarray] = field(default_factory=dict)
    resumed: int = 0
    _synced: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, label: str, start: int) -> np.ndarray | None:
        """Return a finished block, None where there is none; it is handed out once."""
        return self._blocks.pop((label, start), None)

    def keep(self, label: str, start: int, values: np.ndarray) -> None:
        """Write a finished block; StorageError where that fails, and then every block before it is kept.

        A block outlives the end of the process at once, and a failure of the machine after half a minute at most.
        """
        data = np.ascontiguousarray(values)
        if data.dtype.str not in _DTYPES:
            raise TypeError(f"a block of dtype {data.dtype} cannot be kept")
        row = (label, start, data.dtype.str, json.dumps(values.shape), data.tobytes())
        with self._lock:
            if self._connection is None:  # it keeps nothing, or the run has ended
                return
            try:
                sync = time.monotonic() - self._synced > SECONDS_BETWEEN_SYNCS
                if sync:
                    self._connection.execute("PRAGMA synchronous = FULL")
                with self._connection:
                    self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", (*row, _checksum(row)))
                if sync:
                    self._connection.execute("PRAGMA synchronous = OFF")
                    self._synced = time.monotonic()
            except sqlite3.Error as error:
                kept = "all finished blocks are kept"
                raise StorageError(f"{self.folder} cannot be written to ({error}); {kept}") from None

    def close(self) -> None:
        """Let another process resume the run."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def digest_of(paths: Iterator[Path] | list[Path]) -> str:
    """Return one digest of the contents of files, in the order given."""
    found = hashlib.sha256()
    for path in paths:
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()


def digest_of_program() -> str:
    """Return the digest of the Python files of both packages: another program may draw other numbers."""
    import jaxkern

    roots = [Path(__file__).parent, Path(str(jaxkern.__file__)).parent]
    return digest_of([path for root in roots for path in sorted(root.rglob("*.py"))])


def _begin(connection: sqlite3.Connection, folder: Path) -> None:
    """Lock the database until the connection is closed."""
    try:
        # A rollback journal undoes a half-written block whatever kills the process. Waiting for the disk each time
        # would take longer than the trials; `Checkpoint.keep` does it now and then.
        connection.execute("PRAGMA synchronous = OFF")
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise CheckpointError(f"another run is writing into {folder}") from None
        raise


def _check_before_opening(path: Path, damaged: CheckpointError) -> None:
    """Refuse a file, or a journal beside it, that SQLite would do more with than read or undo a block."""
    with path.open("rb") as file:
        head = file.read(20)
    # Not files of other programs, nor those with a log of writes, which SQLite would apply.
    if head[:16] != b"SQLite format 3\0" or head[16:] != _PAGE.to_bytes(2, "big") + b"\1\1":
        raise damaged
    journal, log = (path.with_name(f"{path.name}-{kind}") for kind in ("journal", "wal"))
    if log.exists():
        raise damaged
    if journal.exists():
        if not journal.is_file():
            raise damaged
        # It may name a file of many journals, anywhere, which SQLite deletes. A run has one database.
        with journal.open("rb") as file:
            file.seek(-min(len(_SUPER_JOURNAL), journal.stat().st_size), os.SEEK_END)
            if file.read() == _SUPER_JOURNAL:
                raise damaged


def _check_schema(connection: sqlite3.Connection) -> None:
    """Refuse views, triggers and whatever else would be run by reading and writing rows."""
    found = set(connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    if found != _SCHEMA:
        raise ValueError("the tables are not those of a checkpoint")


def _read_blocks(connection: sqlite3.Connection) -> dict[tuple[str, int], np.ndarray]:
    blocks = {}
    for *row, checksum in connection.execute("SELECT label, start, dtype, shape, data, checksum FROM blocks"):
        label, start, dtype, shape, data = row
        if checksum != _checksum(tuple(row)) or dtype not in _DTYPES:
            raise ValueError(f"the checksum of a block of {label} is wrong")
        sizes = json.loads(shape)
        if not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError(f"a block of {label} has no shape")
        blocks[label, start] = np.frombuffer(data, dtype).reshape(sizes).copy()
    return blocks


def _checksum(row: tuple[str, int, str, str, bytes]) -> int:
    label, start, dtype, shape, data = row
    return zlib.crc32(data, zlib.crc32(json.dumps([label, start, dtype, shape]).encode()))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
