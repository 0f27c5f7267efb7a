"""JSON documents that proofs_check writes and reads again: strict, in one step, and compared with their shape.

Reports, certificates and the manifests of runs are such documents. Nothing here imports jax.
"""

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from proofs_check.engine import files
from proofs_check.engine.reading import one_line, place

_LONGEST = 2**25  # bytes; a report of all claims has less than a tenth of it


class DocumentError(Exception):
    """A file is no document that can be read; the message is one line."""


def write_json(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document in one step: a reader never finds half a file. Raises StorageError."""
    files.write(
        path, json.dumps(document, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    )


def load(
    path: Path, kind: str, key: str, known: int, check: Callable[[Any], str]
) -> dict[str, Any]:
    """Return the document of a kind that a file holds: its version is under `key`, and `check` finds faults in it.

    Raises DocumentError, in one line, where it holds none of the version that is known, or one with a fault.
    """
    document = read_json(path)
    version = document.get(key) if isinstance(document, dict) else None
    if version is None:
        raise DocumentError(
            f"{place(path)} is no {kind} of proofs_check: it has no schema version"
        )
    if version != known or isinstance(version, bool):
        raise DocumentError(
            f"{place(path)} has schema version {str(version)[:30]!r}, and this program reads version {known}"
        )
    fault = check(document)
    if fault:
        raise DocumentError(
            f"{place(path)} is not a {kind} of schema version {known}: {fault}"
        )
    return dict(document)


def read_json(path: Path) -> Any:
    """Return what a file of JSON holds: in UTF-8, without NaN, of bounded size.

    Raises DocumentError, in one line, for every other file. A pipe is not waited for.
    """
    where = place(path)
    try:
        if path.exists() and not path.is_file():
            raise DocumentError(f"{where} is no regular file")
        with path.open("rb") as file:
            content = file.read(_LONGEST + 1)
    except OSError as error:
        raise DocumentError(f"{where} cannot be read ({error.strerror})") from None
    if len(content) > _LONGEST:
        raise DocumentError(
            f"{where} is longer than {_LONGEST:,} bytes, so it is not from this program"
        )
    try:
        return json.loads(
            content.decode("utf-8"), parse_constant=_no_constant, parse_int=_whole
        )
    except (
        json.JSONDecodeError,
        UnicodeDecodeError,
        RecursionError,
    ):  # cut short, or brackets without end
        raise DocumentError(f"{where} is not JSON; was it cut short?") from None
    except ValueError as error:  # NaN, or a number of thousands of digits
        raise DocumentError(
            f"{where} is not JSON as this program writes it ({one_line(error)})"
        ) from None


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not JSON")


def _whole(text: str) -> int:
    if len(text) > 300:  # more than a float can be
        raise ValueError(f"a whole number of {len(text)} digits")
    return int(text)


def strict(value: Any) -> Any:
    """Return `value` in the types of strict JSON."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): strict(entry) for name, entry in value.items()}
    if isinstance(value, list | tuple):
        return [strict(entry) for entry in value]
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return (
            None
            if math.isnan(value)
            else float(value)
            if math.isfinite(value)
            else str(float(value))
        )
    if hasattr(value, "dtype"):  # NumPy and JAX
        return strict(np.asarray(value).tolist())
    return str(value)


def fault_of(value: Any, shape: Any, where: str) -> str:
    """Return the first thing in which a value differs from a shape, "" where there is none; `where` is its name.

    A shape is a dictionary for an object with at least these keys, a list for a list of such entries, a set for one of
    several texts, a function for what passes it as a test, otherwise a type.
    """
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return f"{where} is not an object"
        missing = [f"{where}.{key} is missing" for key in shape if key not in value]
        faults = (
            fault_of(value[key], inner, f"{where}.{key}")
            for key, inner in shape.items()
        )
        return missing[0] if missing else next(filter(None, faults), "")
    if isinstance(shape, list):
        if not isinstance(value, list):
            return f"{where} is not a list"
        return next(
            filter(
                None,
                (
                    fault_of(entry, shape[0], f"{where}[{i}]")
                    for i, entry in enumerate(value)
                ),
            ),
            "",
        )
    if isinstance(shape, frozenset):
        fits = isinstance(value, str) and value in shape
    elif isinstance(shape, FunctionType):
        fits = shape(value)
    else:  # True is an int in Python, and no number in JSON
        fits = isinstance(value, shape) and not (
            shape is int and isinstance(value, bool)
        )
    return "" if fits else f"{where} is {str(value)[:30]!r}"
