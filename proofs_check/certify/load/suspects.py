"""Columns that a careful person would not use as coordinates: numbers of rows, ids, dates, what is to be predicted."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from proofs_check.certify.load.table import View

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


def suspect_name(name: str, names: Sequence[str]) -> str:
    """Return why the name of a column is suspect among others, or ""."""
    last = _last_word(name)
    if last in _TARGETS or (name in ("y", "Y") and not {"x", "X"} & {*names}):
        return "the name of a target, for --labels or --target"
    if _UNNAMED.fullmatch(name):
        return "has no name"
    return "the name of an id" if last in _IDS else ""


def suspect_cells(name: str, column: View, low: float, high: float) -> str:
    """Return why a column of whole numbers is suspect, or "". Its cells are read only if its name or limits are."""
    rows = column.num_rows
    is_key = _last_word(name) in _KEYS
    if is_key or (low in (0, 1) and high - low == rows - 1 >= _FEWEST - 1):
        cells = np.concatenate([*column.transposed()], axis=1)[0]
        if is_key and np.diff(np.sort(cells)).all():
            return "the name of an id"
        if np.all(np.diff(cells) == 1):
            return "counts the rows"
    return "dates as numbers" if 19000101 <= low <= high <= 21001231 else ""


def _last_word(name: str) -> str:
    words = _WORDS.findall(name)
    return words[-1].casefold() if words else ""
