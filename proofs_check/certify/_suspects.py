"""Columns that a careful person would not use as coordinates: numbers of rows, ids, dates, what is to be predicted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from proofs_check.certify._table import Moments, View

_IDS = {
    "id",
    "ids",
    "key",
    "index",
    "idx",
    "uuid",
    "guid",
    "identifier",
    "serial",
    "rowid",
    "rownum",
    "row",
}
_TARGETS = {
    "target",
    "targets",
    "label",
    "labels",
    "class",
    "classes",
    "outcome",
    "response",
    "species",
    "diagnosis",
}
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[^\W_A-Z]+")
_UNNAMED = re.compile(r"unnamed: ?\d+|__index_level_\d+__|level_0", re.IGNORECASE)
_GENERATED = re.compile(r"x\d+")
_FEWEST = 10  # rows from which on 1, 2, 3, ... is no coincidence


@dataclass(frozen=True)
class Suspects:
    """Positions of columns that count the rows and have no name of their own, of ids, dates and targets."""

    counts: list[int]
    ids: list[int]
    dates: list[int]
    targets: list[int]


def suspects(
    view: View, moments: Moments, names: Sequence[str], asked: set[int]
) -> Suspects:
    """Return which columns are not to be used without a word, but for those that somebody has asked for.

    An id is a column of different whole numbers whose name says so, or the rows counted from 0 or 1; a target has the
    name of one. A single column stays as it is. Reads the columns in question again, 16 bytes a row.
    """
    found = Suspects([], [], [], [])
    lowered = {name.casefold() for name in names}
    for i, name in enumerate(names):
        if i in asked or view.dim == 1:
            continue
        words = [word.casefold() for word in _WORDS.findall(name)]
        if (words and words[-1] in _TARGETS) or (
            name.casefold() == "y" and "x" not in lowered
        ):
            found.targets.append(i)
            continue
        low, high = moments.low[i], moments.high[i]
        named = bool(words) and words[-1] in _IDS
        unnamed = _UNNAMED.fullmatch(name) is not None
        counting = low in (0, 1) and high - low == view.rows - 1 >= _FEWEST - 1
        dated = 19000101 <= low <= high <= 21001231
        if not (named or unnamed or counting or dated):
            continue
        cells = np.concatenate(
            [block[0] for block in view.restricted(np.array([i])).transposed()]
        )
        cells = cells[np.isfinite(cells)]
        if not len(cells) or not np.array_equal(cells, np.floor(cells)):
            continue
        counting &= np.array_equal(cells, np.arange(low, low + len(cells)))
        if dated and np.all(
            (cells % 10000 // 100 <= 12)
            & (cells % 10000 >= 101)
            & (cells % 100 >= 1)
            & (cells % 100 <= 31)
        ):
            found.dates.append(i)
        elif counting or ((named or unnamed) and len(np.unique(cells)) == len(cells)):
            (
                found.counts
                if unnamed or (counting and _GENERATED.fullmatch(name))
                else found.ids
            ).append(i)
    return found
