"""Columns that a careful person would not use as coordinates: numbers of rows, ids, dates, what is to be predicted."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from proofs_check.certify.load.table import Moments, View

# Last words of a name.
_IDS = {"id", "ids", "uuid", "guid", "identifier", "rowid", "rownum"}
_KEYS = {"key", "index", "idx", "serial", "row"}  # ids if no two cells are equal
_TARGETS = {
    "target", "targets", "label", "labels", "class", "classes", "outcome", "response", "species", "diagnosis",
}  # fmt: skip
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+")
_UNNAMED = re.compile(
    r"unnamed: ?\d+(\.\d+)*|__index_level_\d+__|level_0", re.IGNORECASE
)
_FEWEST = 10  # rows from which on 1, 2, 3, ... is no coincidence


def suspects(
    view: View, moments: Moments, names: Sequence[str], trusted: set[int]
) -> dict[int, str]:
    """Return the columns of numbers that a careful person would not use as coordinates, and why.

    A single column stays as it is.
    """
    reasons: dict[int, str] = {}
    lowered = {name.casefold() for name in names}
    for i, name in enumerate(names):
        if i in trusted or view.dim == 1:
            continue
        words = [word.casefold() for word in _WORDS.findall(name)]
        last = words[-1] if words else ""
        low, high = moments.low[i], moments.high[i]
        if last in _TARGETS or (name.casefold() == "y" and "x" not in lowered):
            reasons[i] = "the name of a target, for --labels or --target"
        elif _UNNAMED.fullmatch(name):
            reasons[i] = "has no name"
        elif last in _IDS:
            reasons[i] = "the name of an id"
        elif not moments.whole[i]:
            continue
        elif last in _KEYS and len(np.unique(_cells(view, i))) == view.rows:
            reasons[i] = "the name of an id"
        elif low in (0, 1) and high - low == view.rows - 1 >= _FEWEST - 1:
            if np.array_equal(_cells(view, i), np.arange(low, high + 1)):
                reasons[i] = "counts the rows"
        elif 19000101 <= low <= high <= 21001231:
            month_and_day = _cells(view, i) % 10_000
            days = month_and_day % 100
            if np.all(
                (month_and_day < 1_300)
                & (month_and_day > 100)
                & (days >= 1)
                & (days <= 31)
            ):
                reasons[i] = "dates as numbers"
    return reasons


def _cells(view: View, i: int) -> np.ndarray:
    column = view.restricted(np.array([i]))
    return np.concatenate([block[0] for block in column.transposed()])
