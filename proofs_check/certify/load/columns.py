"""Which columns of a table are chosen, and the classes of its rows. Cells are left to `_open` to judge."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from proofs_check.certify.load.cells import MISSING, Column
from proofs_check.engine.reading import (
    DataError,
    as_number,
    check_matrix,
    listed,
    plain,
)

_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Columns:
    """Columns of a table as they were read: nothing repaired, and nothing left out for what it holds.

    Attributes
    ----------
    array : (rows, width), of a real dtype, maybe mapped from a file: the chosen columns, or all columns of the table.
        Cells that hold no number are NaN.
    choice : which columns of the table are chosen.
    cells : what each of the chosen columns holds, without the numbers.
    classes : (rows,) int32, an index into `class_names`, -1 for a missing label; None without labels.
    class_names : names of the classes, numbers in ascending order or text in alphabetical order.
    label : name of the column of labels, "" without one.
    notes : sentences about what was read.
    """

    array: np.ndarray
    choice: Choice
    cells: tuple[Column, ...]
    classes: np.ndarray | None = None
    class_names: tuple[str, ...] = ()
    label: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Wanted:
    """What is asked of a table: the arguments of `open_table` of the same names."""

    columns: Sequence[str] | None = None
    labels: str | None = None
    target: str | None = None
    exclude: Sequence[str] = ()
    keep: Sequence[str] = ()
    rows: int | None = None
    separator: str | None = None
    header: str | None = None
    decimal: str = "."
    missing_words: Sequence[str] = ()


def select(
    where: str, array: np.ndarray, wanted: Wanted, names: Sequence[str] | None = None
) -> Columns:
    """Return columns of a matrix; `where` begins every message."""
    check_matrix(where, array.dtype, array.shape)
    width = array.shape[1]
    if names is not None and len(names) != width:
        raise DataError(
            f"{where}: has {width} column(s), but {len(names)} name(s) were given"
        )
    choice = choose(where, numbered(width) if names is None else names, wanted)
    notes = (*choice.notes, *shortened(wanted.rows, len(array)))
    cells = (Column(),) * len(choice.chosen)
    chosen = Columns(array[: wanted.rows], choice, cells, notes=notes)
    if choice.label is None:
        return chosen
    return labelled(
        where, chosen, array[:, choice.label], choice.names[choice.label], len(array)
    )


def labelled(
    where: str, columns: Columns, values: np.ndarray, name: str, rows: int
) -> Columns:
    """Return the columns with a vector of labels for `rows` rows, of which the columns may hold only the first ones."""
    name = plain(name)
    if values.dtype.kind == "O":  # text in a DataFrame
        values = np.array(
            [
                "" if value is None or value != value else value
                for value in values.ravel().tolist()
            ]
        )
    if values.dtype.kind not in "biufUS":
        raise DataError(
            f"{where}: the labels {name!r} have entries of type {values.dtype}, not numbers or text"
        )
    if values.shape not in ((rows,), (rows, 1)):
        raise DataError(
            f"{where}: the labels {name!r} have shape {values.shape}, and X has {rows} row(s)"
        )
    values = values.ravel()[: len(columns.array)]
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    distinct, codes = np.unique(values, return_inverse=True)
    return classified(columns, [str(value) for value in distinct.tolist()], codes, name)


# The choice of columns


@dataclass(frozen=True)
class Choice:
    """Names of all columns of a table, and which are the coordinates.

    Attributes
    ----------
    names : of all columns, distinct.
    chosen : numbers of the columns that are asked for, ascending.
    label : number of the column of classes; None without one.
    asked : numbers of the columns that are asked for by name or number, or with `keep`.
    left_out : name of a column -> why it was not chosen, where somebody said so.
    notes : on the names.
    """

    names: tuple[str, ...]
    chosen: tuple[int, ...]
    label: int | None
    asked: frozenset[int]
    left_out: dict[str, str]
    notes: tuple[str, ...]

    @property
    def chosen_names(self) -> tuple[str, ...]:
        """The names of the chosen columns."""
        return tuple(self.names[i] for i in self.chosen)


def numbered(width: int) -> list[str]:
    return [
        f"x{i}" for i in range(1, min(width, _MOST_COLUMNS) + 1)
    ]  # a declared width may be any number


def check_width(where: str, width: int) -> None:
    if width >= _MOST_COLUMNS:
        raise DataError(
            f"{where}: has {_MOST_COLUMNS:,} columns or more, which is too wide"
        )


def shortened(rows: int | None, total: int) -> tuple[str, ...]:
    return (
        ()
        if rows is None or rows >= total
        else (f"Only the first {rows:,} of {total:,} rows are used.",)
    )


def _distinct_names(held: Sequence[str]) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return plain and distinct names with their numbers, and a sentence if some were not distinct."""
    places: dict[str, int] = {}
    repeated: list[str] = []
    for i, name in enumerate(map(plain, held)):
        if name in places:
            repeated.append(name)
        while name in places:
            name = f"{name} ({i + 1})"
        places[name] = i
    if not repeated:
        return places, ()
    return places, (
        f"Several columns have the same name; the later ones are numbered: {listed(dict.fromkeys(repeated))}.",
    )


def choose(where: str, held: Sequence[str], wanted: Wanted) -> Choice:
    """Return which columns of those that a table holds are its coordinates, in the order of the table."""
    check_width(where, len(held))
    places, notes = _distinct_names(held)
    names = tuple(places)

    def positions(texts: Sequence[str] | None) -> list[list[int]]:
        return [_positions(where, str(text), places) for text in texts or ()]

    left_out = dict.fromkeys(chain(*positions(wanted.exclude)), "is excluded")
    label = None
    for text, why in (
        (wanted.target, "is to be predicted"),
        (wanted.labels, "holds the labels"),
    ):
        if text is None:
            continue
        (label, *others) = positions([text])[0]
        if others:
            raise DataError(
                f"{where}: {plain(text)!r} names several columns, and one column {why}"
            )
        left_out[label] = why
    if wanted.labels is None:
        label = None
    kept = positions(wanted.keep)
    for i in chain(*kept):
        if i in left_out:
            raise DataError(
                f"{where}: column {names[i]!r} cannot be kept, since it {left_out[i]}"
            )
    parts = positions(wanted.columns)
    chosen = {*chain(*parts, *kept)}
    if wanted.columns is None:
        chosen = set(places.values())
    chosen -= left_out.keys()
    if not chosen and names:
        raise DataError(f"{where}: no column is chosen")
    named = [part[0] for part in parts if len(part) == 1]
    return Choice(
        names,
        tuple(sorted(chosen)),
        label,
        frozenset([*named, *chain(*kept)]),
        {names[i]: why for i, why in sorted(left_out.items())},
        notes,
    )


def _positions(where: str, text: str, places: dict[str, int]) -> list[int]:
    """Return the columns that a name, a number or a range of numbers stands for."""
    text = text.strip()
    if text in places:
        return [places[text]]
    numbers = re.fullmatch(r"([0-9]{1,9})(?: *- *([0-9]{1,9}))?", text)
    if numbers is None:
        raise DataError(
            f"{where}: there is no column named {plain(text)!r}; the columns are {listed(places)}"
        )
    low = int(numbers[1])
    high = int(numbers[2] or low)
    if not 1 <= low <= high <= len(places):
        raise DataError(
            f"{where}: there is no column {plain(text)}; columns are numbered from 1 to {len(places)}"
        )
    return list(range(low - 1, high))


# Labels


def classified(
    columns: Columns,
    cells: Sequence[str],
    codes: np.ndarray,
    name: str,
    missing_words: Sequence[str] = (),
) -> Columns:
    """Return the columns with classes, whose distinct cells are `cells` and whose rows are `codes` of them.

    Among numbers the usual words for a missing value are missing labels. Among words they are classes, such as NA for
    Namibia, unless `missing_words` has them.
    """
    words = [cell.strip() for cell in cells]
    missing = {"", *(word.lower() for word in missing_words)}
    present = {word: word for word in words if word.lower() not in missing}
    numbers: dict[str, Any] = {
        word: _class(word) for word in present if word.lower() not in MISSING
    }
    values: dict[str, Any] = present
    if not any(isinstance(number, str) for number in numbers.values()):
        values = {word: n for word, n in numbers.items() if math.isfinite(n)}
    distinct = sorted(set(values.values()))
    order = {value: i for i, value in enumerate(distinct)}
    index = [order[values[word]] if word in values else -1 for word in words]
    odd = [word for word in distinct if str(word).lower() in MISSING]
    notes = [
        f"The label '{word}' is taken for a class (--missing-words {word}: for a missing label)."
        for word in odd
    ]
    return replace(
        columns,
        classes=np.array(index, np.int32)[codes],
        class_names=tuple(map(plain, distinct)),
        label=name,
        notes=(*columns.notes, *notes),
    )


def _class(cell: str) -> int | float | str:
    """Return a label as a number where it is one: "1" and "1.0" are one class."""
    number = as_number(cell)
    if number is None:
        return cell
    try:
        return int(cell)  # whole numbers of any length stay apart
    except ValueError:
        return int(number) if number.is_integer() else number
