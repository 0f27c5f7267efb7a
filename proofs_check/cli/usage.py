"""The name of the command, its exit statuses, and the errors that lead to them."""

from __future__ import annotations

import argparse
import math

PROG = "proofs-check"
AS_EXPECTED, NOT_AS_EXPECTED, BAD_USAGE, NOT_WRITTEN, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(Exception):
    """What the user asked for cannot be done; the message is one line."""


class StorageError(OSError):
    """A file could not be written, on a full disk for example; the message is one line."""


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
