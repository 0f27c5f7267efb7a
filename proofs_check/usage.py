"""The name of the command, its exit statuses, and the error of a user who asks for what cannot be done."""

from __future__ import annotations

PROG = "proofs-check"
AS_EXPECTED, NOT_AS_EXPECTED, BAD_USAGE, NOT_WRITTEN, INTERRUPTED = 0, 1, 2, 3, 130


class UsageError(Exception):
    """What the user asked for cannot be done; the message is one line."""
