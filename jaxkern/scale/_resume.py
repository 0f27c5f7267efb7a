"""What is kept of a run that is cut short, so that it can go on: finished blocks of a file, or the state of a stream.

Of a run whose output is a file, one line of JSON says what the run is, one follows for each finished block, with the
checksum of its features. A line is written when its block has reached the file, and is forced to the disk before the
next. A last line without an end was cut short; it counts for nothing. A block whose features in the file do not have
their checksum (the file was made anew, say) is not finished. The state of a stream is a file of `jaxkern.io`, replaced
as a whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import re
import zlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import io

_FORMAT = "jaxkern progress 1"

Report = Callable[[int, int | None], Any]
"""Called with the number of finished rows and of all rows, None where it is not known."""


def checked(report: Report | None) -> Report | None:
    """Raise unless it is a function or None."""
    if report is not None and not callable(report):
        raise ValueError(f"report must be a function of (finished rows, all rows), got {type(report).__name__}")
    return report


class Record:
    """The finished blocks of one run, by their first row; use it in a `with` statement, which closes the file."""

    def __init__(self, path: str | os.PathLike[str], run: dict[str, Any]) -> None:
        """Open the record of a run, or begin one. ValueError where it is damaged or belongs to another run."""
        self._finished: dict[int, int] = {}
        path = pathlib.Path(path)
        header = json.loads(json.dumps({"format": _FORMAT, **run}))  # as it is read again
        self._file = open(path, "r+b" if path.exists() else "x+b")  # noqa: SIM115 (__exit__ closes it)
        try:
            whole = self._file.read()
            whole = whole[: whole.rfind(b"\n") + 1]
            if whole:
                self._read(path, header, whole.splitlines())
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

    def holds(self, start: int, features: np.ndarray) -> bool:
        """Tell whether the block from row `start` on is finished, and these are its features."""
        return self._finished.get(start) == _checksum(features)

    def add(self, start: int, features: np.ndarray) -> None:
        """Enter a block whose features have reached the disk."""
        self._finished[start] = _checksum(features)
        self._append([start, self._finished[start]])

    def _append(self, line: Any) -> None:
        self._file.write(json.dumps(line).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self, path: pathlib.Path, header: dict[str, Any], lines: list[bytes]) -> None:
        try:
            stored, *blocks = map(json.loads, lines)
            self._finished = {int(start): int(checksum) for start, checksum in blocks}
        except (ValueError, TypeError) as error:
            raise ValueError(
                f"progress {path} is damaged, or is no record of a run; remove it to begin anew"
            ) from error
        _same_run(path, header, stored)


def _same_run(path: pathlib.Path, header: dict[str, Any], stored: Any) -> None:
    if not isinstance(stored, dict) or stored.get("format") != header["format"]:
        raise ValueError(f"progress {path} is no record of a run; pass the path of one, or of a new file")
    other = [key for key in sorted(stored.keys() | header.keys()) if stored.get(key) != header.get(key)]
    if other:
        said = "; ".join(f"{key} is {header.get(key)!r}, there {stored.get(key)!r}" for key in other)
        raise ValueError(f"progress {path} belongs to another run: {said}. Remove it to begin anew")


class State:
    """The last state of a stream that was kept, and how far it had come."""

    def __init__(self, path: str | os.PathLike[str], run: dict[str, Any]) -> None:
        """Say where the state of which run is kept."""
        self._path, self._run = pathlib.Path(path), {"format": f"{_FORMAT}, state of a stream", **run}

    def read(self, begin: Any) -> tuple[int, Any]:
        """Return how far the run had come, and its state then; 0 and `begin` where nothing is kept."""
        if not self._path.exists():
            return 0, begin
        stored = io.load(self._path)
        kept: Any = stored.pop("kept", None) if isinstance(stored, dict) else None
        _same_run(self._path, self._run, stored if kept else None)
        return kept["done"], kept["state"]

    def keep(self, done: int, state: Any) -> None:
        """Replace what is kept."""
        io.save(self._path, {**self._run, "kept": {"done": done, "state": jax.device_get(state)}})


def facts(X: Any) -> dict[str, Any]:
    """Return what tells points from others without reading them all."""
    ends = [np.asarray(X[i : i + 1]) for i in (0, X.shape[0] - 1)]
    named = {"shape of X": tuple(X.shape), "first and last row of X": fingerprint(ends)}
    return named | {"dtype": str(np.dtype(X.dtype))}


def fingerprint(tree: Any) -> str:
    """Return a digest of a PyTree: its structure and every bit of its arrays. Of a function it knows the name alone."""
    leaves, structure = jax.tree.flatten(tree)
    digest = hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", str(structure)).encode())
    for leaf in leaves:
        if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
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
