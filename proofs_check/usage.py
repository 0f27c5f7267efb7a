"""What all commands share: the name, exit statuses, the errors that lead to them, and types of arguments."""

import argparse
import difflib
import math
import os
import re
from collections.abc import Collection, Iterable
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
        """Raise a UsageError, with what a mistyped value, option or command may have meant."""
        below = [
            parser
            for action in self._actions
            for parser in getattr(action, "_name_parser_map", {}).items()
        ]
        known = {
            name
            for parser in (self, *(p for _, p in below))
            for name in parser._option_string_actions
        }
        chosen = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        unknown = re.search(r"unrecognized arguments: ([^\s=]+)", message)
        close: list[str] = []
        if chosen:
            close = difflib.get_close_matches(
                chosen[1], re.findall(r"[\w.-]+", chosen[2]), n=1
            )
        elif unknown:
            close = difflib.get_close_matches(
                unknown[1], [*known, *(name for name, _ in below)], n=1
            )
        raise UsageError(f"{message}{meant(close)} (try {self.prog} --help)")


def meant(close: Collection[str]) -> str:
    """Return "; did you mean a, b?", nothing where there is none."""
    return f"; did you mean {', '.join(close)}?" if close else ""


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
        raise argparse.ArgumentTypeError(
            f"must be a whole number from 0 to {2**32 - 1}, got {text[:30]!r}"
        )
    return int(text)


def check_file(
    option: str,
    path: Path,
    *,
    overwrite: bool = False,
    inputs: Iterable[Path] = (),
    named: bool = False,
) -> None:
    """Raise UsageError where an option names a file that cannot be written without loss.

    That is one in no folder, a folder, one of the `inputs`, also by a link, or one that exists, but for `overwrite`;
    and, where its ending names the format, one without.
    """
    if not path.absolute().parent.is_dir():
        raise UsageError(
            f"{option} {path}: there is no folder {path.parent}; make it first"
        )
    if path.is_dir():
        raise UsageError(f"{option} {path} is a folder; name a file")
    if named and not path.suffix:
        raise UsageError(
            f"{option} {path} has no ending that names its format, such as .svg"
        )
    if path.exists() and any(
        other.exists() and path.samefile(other) for other in inputs
    ):
        raise UsageError(
            f"{option} {path} is read by this command; choose another file"
        )
    if os.path.lexists(path) and not overwrite:
        raise UsageError(
            f"{option} {path} exists; choose a new file, or pass --overwrite"
        )
