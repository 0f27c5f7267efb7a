"""What is asked of a table, and which of its columns that chooses."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from proofs_check.certify.load.suspects import suspect_name
from proofs_check.certify.load.table import Moments, View
from proofs_check.engine.reading import DataError, joined, listed, plain

_EXCLUDED = "is excluded"
_TARGET = "is to be predicted"
_LABELS = "holds the labels"
BY_OPTION = {_EXCLUDED, _TARGET, _LABELS}
"""Why columns are left out that the user wants to leave out."""
_MOST_COLUMNS = 100_000  # whose names do not fill the memory


@dataclass(frozen=True)
class Options:
    """How a table is read.

    Attributes
    ----------
    columns : which columns to use: names, numbers from 1, or ranges of numbers such as "5-8"; None: all.
    labels : name or number of a column of classes, which is not used as a coordinate, or name of a vector in `.npz`;
        None: the vector y of a `.npz` file that has one.
    target : name or number of a column that is to be predicted, which is left out.
    exclude : columns to leave out, as in `columns`.
    keep : columns of numbers to use although they look like an id, a target or a copy of another one, as in `columns`.
    standardize : whether to subtract its mean from each column, and to divide it by its standard deviation.
    missing : "error", or "drop" to leave out rows in which a used column or the label holds no number.
    one_hot : whether a column of text of at most 20 different values becomes a column of 0 and 1 for each value, such
        as "colour=red", in alphabetical order. A missing cell is missing in all of them.
    separator : of the cells in a file of text, "comma", "semicolon", "tab" or another character; None: the one that is
        in the first line.
    header : whether the first line of a file of text has the names of the columns, "yes" or "no"; None: it has if no
        cell there is a number or a date, and it is an error if some are.
    decimal : the decimal mark in text, "." or ",".
    missing_words : words in text for missing cells, beside empty cells, NA, NaN, null, None and N/A.
    """

    columns: Sequence[str] | None = None
    labels: str | None = None
    target: str | None = None
    exclude: Sequence[str] = ()
    keep: Sequence[str] = ()
    standardize: bool = False
    missing: str = "error"
    one_hot: bool = False
    separator: str | None = None
    header: str | None = None
    decimal: str = "."
    missing_words: Sequence[str] = ()

    def __post_init__(self) -> None:
        """Raise DataError for a word that is none of those to choose from."""
        choices = {
            "missing": ("error", "drop"),
            "header": (None, "yes", "no"),
            "decimal": (".", ","),
        }
        for name, words in choices.items():
            if getattr(self, name) not in words:
                known = " or ".join(repr(word) for word in words if word)
                raise DataError(f"{name} must be {known}, got {getattr(self, name)!r}")


@dataclass
class Columns:
    """Columns of a table while it is read and judged.

    Attributes
    ----------
    where : how messages begin.
    options : what is asked.
    names : of all columns of the table, plain and distinct; of a one-hot column the names of its parts.
    chosen : names of the columns that may be coordinates.
    labelled : name of the column of classes, if there is one.
    trusted : names of columns that are used although their name is suspect.
    left_out : name of a column -> why it is left out.
    notes : sentences about what was read.
    used : names of the columns that are still used.
    view : (rows, len(used)), their cells; NaN if one is missing or not a number.
    moments : of these columns.
    labels : (rows,) int32, an index into the names of the classes that follow, -1 for a missing label; None without.
    faults : name of a column -> what must be changed in the file before it can be used.
    categories : name -> values of each column of text that became one-hot columns.
    few : names of columns of text of few values, which can become one-hot columns.
    """

    where: str
    options: Options
    names: list[str]
    chosen: set[str] = field(default_factory=set)
    labelled: list[str] = field(default_factory=list)
    trusted: set[str] = field(default_factory=set)
    left_out: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    used: list[str] = field(default_factory=list)
    view: View = field(init=False)
    moments: Moments = field(init=False)
    labels: tuple[np.ndarray, tuple[str, ...]] | None = None
    faults: dict[str, str] = field(default_factory=dict)
    categories: dict[str, tuple[str, ...]] = field(default_factory=dict)
    few: list[str] = field(default_factory=list)

    def leave_out(self, reasons: dict[str, str]) -> None:
        """Leave out some of the columns that are used. Raises DataError if none is left."""
        self.left_out |= reasons
        is_used = np.array([name not in reasons for name in self.used], bool)
        self.used = self.among_used(is_used)
        self.view = self.view.only(is_used)
        self.moments = self.moments.only(is_used)
        if not self.used:
            raise DataError(f"{self.where}: no column is left to use: {self.listing()}")

    def doubt(self, reasons: dict[str, str]) -> None:
        """Leave out some of the columns that are used, except for those that are trusted."""
        doubted = {name: reasons[name] for name in reasons.keys() - self.trusted}
        self.leave_out(doubted)

    def among_used(self, mask: np.ndarray) -> list[str]:
        """Return the names of some of the columns that are used."""
        return [self.used[i] for i in np.flatnonzero(mask)]

    def parts(self, name: str) -> list[str]:
        """Return the names of the one-hot columns of a column, or its own name."""
        if name not in self.categories:
            return [name]
        return [f"{name}={value}" for value in self.categories[name]]

    def listing(self, omitted: Set[str] = frozenset()) -> str:
        """Return which columns are left out and why, except for some reasons, and how they could be used."""
        parts = []
        for name in self.names:
            why = self.left_out.get(name)
            if why and why not in omitted:
                parts.append(f"'{name}' ({why})")
        if not parts:
            return ""
        listing = f"{joined(parts)}; --keep NAME (keep=['NAME']) uses a column of numbers all the same"
        if self.few:
            listing += f", and --one-hot (one_hot=True) uses text of few values: {listed(self.few)}"
        return listing


def choose(
    where: str, width: int, header: Sequence[str] | None, options: Options
) -> Columns:
    """Return which of the columns of a table are coordinates; without a header they are named x1, x2, ..."""
    if width >= _MOST_COLUMNS:
        raise DataError(
            f"{where}: has {_MOST_COLUMNS:,} columns or more, which is too wide"
        )
    names: dict[str, None] = {}
    for i, name in enumerate(header or [f"x{i + 1}" for i in range(width)]):
        distinct = plain(name)
        while distinct in names:
            distinct += f" ({i + 1})"
        names[distinct] = None
    columns = Columns(where, options, list(names))
    left_out = dict.fromkeys(_find(columns, options.exclude), _EXCLUDED)
    if options.target is not None:
        left_out |= dict.fromkeys(_find(columns, [options.target]), _TARGET)
    if options.labels is not None:
        columns.labelled = _find(columns, [options.labels])
        left_out |= dict.fromkeys(columns.labelled, _LABELS)
    if len(columns.labelled) > 1:
        raise DataError(f"{where}: one column holds the labels, not {options.labels}")
    columns.trusted = {*_find(columns, options.keep)}
    chosen = {*names} if options.columns is None else {*columns.trusted}
    for text in options.columns or ():
        part = _find(columns, [text])
        chosen.update(part)
        if len(part) == 1:  # who passes a range has not looked at each of its columns
            columns.trusted.update(part)
    chosen -= left_out.keys()
    if len(chosen) > 1:
        for name in chosen - columns.trusted:
            left_out[name] = suspect_name(name, columns.names)
    columns.left_out = {name: why for name, why in left_out.items() if why}
    columns.chosen = chosen - columns.left_out.keys()
    if not columns.chosen:
        raise DataError(f"{where}: no column is left to use: {columns.listing()}")
    return columns


def _find(columns: Columns, texts: Sequence[str]) -> list[str]:
    """Return the columns that names, numbers and ranges of numbers stand for."""
    names = columns.names
    matches: list[str] = []
    for text in texts:
        text = str(text).strip()
        numbers = re.fullmatch(r"([1-9][0-9]{0,8})(?: *- *([0-9]{1,9}))?", text)
        last = int(numbers[2] or numbers[1]) if numbers else 0
        if text in names:
            matches.append(text)
        elif numbers and int(numbers[1]) <= last <= len(names):
            matches += names[int(numbers[1]) - 1 : last]
        else:
            raise DataError(
                f"{columns.where}: there is no column {plain(text)!r}; columns have numbers from 1 to {len(names)}, "
                f"and the names {listed(names)}"
            )
    return matches
