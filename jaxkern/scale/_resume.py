"""What is kept of a run that is cut short, so that it can go on: finished blocks of a file, or the state of a stream.

Of a run whose output is a file, one line of JSON says what the run is, one follows for each finished block, with its
rows and the checksum of its features. The record is locked while its writer lives. A line is written when its block has
reached the file, and is forced to the disk before the next. A last line without an end was cut short; it counts for
nothing. A block whose features in the file do not have their checksum (the file was made anew, say) is not finished.
Every process writes a record of its own and reads those of all, so that any number of processes goes on. The state of a
stream is a file of `jaxkern.io`, replaced as a whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import pathlib
import re
import time
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import io

with contextlib.suppress(ImportError):  # Windows does not have it, and no lock
    import fcntl

_FORMAT = "jaxkern progress 2"

SECONDS = 10.0
"""Between two states that are kept, and between two lines of the log."""
LOG = logging.getLogger("jaxkern.scale")

Report = Callable[[int, int | None], Any]
"""Called with how many rows (or iterations) are finished and how many there are, None where it is not known."""


class Teller:
    """Tells how far a job is: a function of the caller each time, the log at most once in ten seconds."""

    def __init__(self, job: str, report: Report | None) -> None:
        """Say which job it is, and whom to tell."""
        if report is not None and not callable(report):
            raise ValueError(
                f"report must be a function of (finished, all), got {type(report).__name__}"
            )
        self._job, self._report, self._last = job, report, time.monotonic()

    @property
    def listened(self) -> bool:
        """Whether anyone wants to know."""
        return self._report is not None or LOG.isEnabledFor(logging.INFO)

    def __call__(self, done: int, total: int | None) -> None:
        """Tell it."""
        if self._report is not None:
            self._report(done, total)
        if time.monotonic() - self._last >= SECONDS:
            LOG.info(
                "%s: %d of %s, process %d",
                self._job,
                done,
                "?" if total is None else total,
                jax.process_index(),
            )
            self._last = time.monotonic()


class Record:
    """The finished blocks of one run, by their rows; use it in a `with` statement, which closes the file."""

    def __init__(
        self, path: str | os.PathLike[str], run: dict[str, Any], process: int | None
    ) -> None:
        """Open the record of a run, or begin one. ValueError where it is damaged or belongs to another run."""
        self._finished: dict[tuple[int, int], set[int]] = {}
        header = json.loads(
            json.dumps({"format": _FORMAT, **run})
        )  # as it is read again
        own = _of_process(path, process)
        for other in _of_run(path):
            if other != own:
                self._read(other, header, _whole_lines(other.read_bytes()))
        path = own
        self._file = open(path, "r+b" if path.exists() else "x+b")  # noqa: SIM115 (__exit__ closes it)
        try:
            _lock(self._file, path)
            whole = _whole_lines(self._file.read())
            self._read(path, header, whole)
            self._file.seek(len(whole))
            self._file.truncate()
            if not whole:
                self._append(header)
                _sync_folder(path.parent)
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Record:
        """Return itself."""
        return self

    def __exit__(self, *error: Any) -> None:
        """Close the file."""
        self._file.close()

    def left(self, rows: slice, out: Any) -> Iterator[slice]:
        """Yield the ranges of `rows` that are in no finished block, looking at the features of these in turn."""
        at = rows.start
        for (start, stop), checksums in sorted(self._finished.items()):
            if (
                stop > at
                and start < rows.stop
                and _checksum(out[start:stop]) in checksums
            ):
                if start > at:
                    yield slice(at, start)
                at = stop
        if at < rows.stop:
            yield slice(at, rows.stop)

    def add(self, start: int, features: np.ndarray) -> None:
        """Enter a block whose features have reached the disk."""
        self._append([start, start + len(features), _checksum(features)])

    def _append(self, line: Any) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, path: pathlib.Path, header: dict[str, Any], whole: bytes) -> None:
        if not whole:
            return
        try:
            stored, *blocks = map(json.loads, whole.splitlines())
            for start, stop, checksum in blocks:
                self._finished.setdefault((int(start), int(stop)), set()).add(
                    int(checksum)
                )
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"progress {path} is damaged, or is no record of a run; remove it to begin anew"
            ) from error
        _same_run(path, header, stored)


def _lock(file: Any, path: pathlib.Path) -> None:
    """Keep a file from others that write to it, until it is closed or the process ends, however it ends."""
    try:
        if os.name == "posix":
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ValueError(
            f"progress {path} is in use: another process, such as an earlier copy of this job, writes to it; "
            "wait for its end, or end it"
        ) from None


def _of_process(path: str | os.PathLike[str], process: int | None) -> pathlib.Path:
    """Return where process so-and-so of many, None for a single one, keeps what it has."""
    return pathlib.Path(path if process is None else f"{os.fspath(path)}.{process}")


def _of_run(path: str | os.PathLike[str]) -> list[pathlib.Path]:
    """Return what is there of a run, of whatever processes."""
    path = pathlib.Path(path)
    names = re.compile(re.escape(path.name) + r"(\.[0-9]+)?")
    return sorted(
        other for other in path.parent.iterdir() if names.fullmatch(other.name)
    )


def _whole_lines(text: bytes) -> bytes:
    return text[: text.rfind(b"\n") + 1]


def _same_run(path: pathlib.Path, header: dict[str, Any], stored: Any) -> None:
    if not isinstance(stored, dict) or stored.get("format") != header["format"]:
        raise ValueError(
            f"progress {path} is no record of a run; pass the path of one, or of a new file"
        )
    other = [
        key
        for key in sorted(stored.keys() | header.keys())
        if stored.get(key) != header.get(key)
    ]
    if other:
        said = "; ".join(
            f"{key} is {header.get(key)!r}, there {stored.get(key)!r}" for key in other
        )
        raise ValueError(
            f"progress {path} belongs to another run: {said}. Go on as there, or remove it to begin anew"
        )


class State:
    """The last state of a run that was kept, and how far it had come."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        run: dict[str, Any],
        process: int | None = None,
    ) -> None:
        """Say where the state of which run is kept. ValueError where what is there is of another one."""
        self._path, self._run = (
            _of_process(path, process),
            {"format": f"{_FORMAT}, state", **run},
        )
        self._stored: Any = None
        self._last = time.monotonic()
        there = (
            [self._path] if self._path.exists() else _of_run(path)[:1]
        )  # those of all processes say the same
        for other in there:
            stored = io.load(other)
            kept: Any = stored.pop("kept", None) if isinstance(stored, dict) else None
            _same_run(other, self._run, stored if kept else None)
            self._stored = kept if other == self._path else None

    def read(self, begin: Any) -> tuple[int, Any]:
        """Return how far the run had come, and its state then; 0 and `begin` where nothing is kept."""
        return (
            (0, begin)
            if self._stored is None
            else (self._stored["done"], self._stored["state"])
        )

    @property
    def due(self) -> bool:
        """Whether it is time to keep another one."""
        return time.monotonic() - self._last >= SECONDS

    def keep(self, done: int, state: Any) -> None:
        """Replace what is kept."""
        io.save(
            self._path,
            {**self._run, "kept": {"done": done, "state": jax.device_get(state)}},
        )
        self._last = time.monotonic()


def facts(X: Any) -> dict[str, Any]:
    """Return what tells points from others without reading them all."""
    ends = [np.asarray(X[i : i + 1]) for i in (0, X.shape[0] - 1)]
    named = {"shape of X": tuple(X.shape), "first and last row of X": fingerprint(ends)}
    if hasattr(X, "fingerprint"):
        named["fingerprint of X"] = X.fingerprint()
    return named | {"dtype": str(np.dtype(X.dtype))}


def fingerprint(tree: Any) -> str:
    """Return a digest of a PyTree: its structure and every bit of its arrays. Of a function it knows the name alone."""
    leaves, structure = jax.tree.flatten(tree)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(structure)).encode())
    for leaf in leaves:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(
            leaf.dtype, jax.dtypes.prng_key
        ):
            leaf = jax.random.key_data(leaf)
        array = np.asarray(leaf)
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:32]


def _checksum(features: np.ndarray) -> int:
    return zlib.crc32(np.ascontiguousarray(features))


def _sync_folder(folder: pathlib.Path) -> None:
    """Force the name of a new file to the disk, where the system can."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
