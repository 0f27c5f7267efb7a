"""What all commands share: the name, exit statuses, the errors that lead to them, and types of arguments."""

import argparse
import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import NoReturn

PROG = "proofs-check"
AS_EXPECTED, NOT_AS_EXPECTED, BAD_USAGE, NOT_WRITTEN, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(Exception):
    """What the user asked for cannot be done; the message is one line."""


class StorageError(OSError):
    """A file could not be written, on a full disk for example; the message is one line."""


class Parser(argparse.ArgumentParser):
    """A parser that raises instead of leaving."""

    def error(self, message: str) -> NoReturn:
        """Raise a UsageError."""
        raise UsageError(f"{message} (try {self.prog} --help)")


def number(text: str) -> float:
    """Return the number in an argument, NaN where there is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def positive(text: str) -> float:
    """Return a positive number, as the type of an argument."""
    value = number(text)
    if not (value > 0 and math.isfinite(value)):
        raise argparse.ArgumentTypeError(f"must be a positive number, got {text!r}")
    return value


def whole(text: str) -> int:
    """Return a whole number below 2^32, such as a seed, as the type of an argument."""
    if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < 2**32):
        raise argparse.ArgumentTypeError(f"must be a whole number from 0 to {2**32 - 1}, got {text[:30]!r}")
    return int(text)


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
