"""Columns of a user's table as they are, with names, text and missing cells, which are left to the caller to judge."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np

from proofs_check.engine.reading import (
    DataError,
    as_number,
    check_matrix,
    is_missing,
    listed,
    plain,
)

_MOST_COLUMNS = 100_000


@dataclass(frozen=True)
class Columns:
    """Columns of a table as they were read: nothing repaired, and nothing left out for what it holds.

    Attributes
    ----------
    array : (rows, width), of a real dtype, maybe mapped from a file. Cells that hold no number are NaN.
    used : the columns of `array` that were chosen, in this order.
    names : names of the chosen columns, distinct.
    choice : which columns of the file they are.
    texts : position among the chosen columns -> number of cells with text or dates, and the first of them.
    written : what numbers were written as, such as "percents" -> names of the columns.
    dates : names of the chosen columns whose cells are all dates.
    classes : (rows,) int32, an index into `class_names`, -1 for a missing label; None without labels.
    class_names : names of the classes, numbers in ascending order or text in alphabetical order.
    label : name of the column of labels, "" without one.
    notes : sentences about what was read.
    """

    array: np.ndarray
    used: tuple[int, ...]
    names: tuple[str, ...]
    choice: Choice
    texts: dict[int, tuple[int, str]] = field(default_factory=dict)
    written: dict[str, list[str]] = field(default_factory=dict)
    dates: frozenset[str] = frozenset()
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
    chosen = Columns(
        array[: wanted.rows], choice.chosen, choice.chosen_names, choice, notes=notes
    )
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


def _distinct_names(names: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Return names that are plain and distinct, and a sentence if some were not distinct."""
    called = [plain(name) for name in names]
    taken, seen, times = set(called), set(), Counter[str]()
    twice = []
    for i, name in enumerate(called):
        if name in seen:
            twice.append(name)
            while called[i] in taken:
                times[name] += 1
                called[i] = f"{name} ({times[name] + 1})"
            taken.add(called[i])
        seen.add(called[i])
    if not twice:
        return called, ()
    return called, (
        f"Several columns have the same name; the later ones are numbered: {listed(dict.fromkeys(twice))}.",
    )


def choose(where: str, held: Sequence[str], wanted: Wanted) -> Choice:
    """Return which columns of those that a table holds are its coordinates, in the order of the table."""
    check_width(where, len(held))
    names, notes = _distinct_names(held)
    places = {name: i for i, name in enumerate(names)}

    def found(asked: Sequence[str]) -> list[list[int]]:
        return [_positions(where, str(name), places) for name in asked]

    def single(name: str | None, what: str) -> int | None:
        if name is None:
            return None
        at, *others = _positions(where, str(name), places)
        if others:
            raise DataError(
                f"{where}: {plain(name)!r} names several columns, and the {what} one"
            )
        return at

    label, target = (
        single(wanted.labels, "labels are"),
        single(wanted.target, "target is"),
    )
    excluded, kept = (
        list(chain(*found(names))) for names in (wanted.exclude, wanted.keep)
    )
    parts = [[*range(len(names))]] if wanted.columns is None else found(wanted.columns)
    chosen = list(chain(*parts))
    if len(set(chosen)) < len(chosen):
        again = next(names[i] for i, times in Counter(chosen).items() if times > 1)
        raise DataError(f"{where}: column {again!r} is chosen twice")
    left_out = {i: "is excluded" for i in excluded} | {
        i: "is to be predicted" for i in (target,) if i is not None
    }
    left_out |= {i: "holds the labels" for i in (label,) if i is not None}
    if lost := sorted(left_out.keys() & set(kept)):
        raise DataError(
            f"{where}: column {names[lost[0]]!r} cannot be kept, since it {left_out[lost[0]]}"
        )
    chosen = sorted({*chosen, *kept} - left_out.keys())
    if not chosen and names:
        raise DataError(f"{where}: no column is chosen")
    asked = (
        set()
        if wanted.columns is None
        else {part[0] for part in parts if len(part) == 1}
    )
    return Choice(
        tuple(names), tuple(chosen), label, frozenset(asked.union(kept)),
        {names[i]: why for i, why in sorted(left_out.items())}, notes,
    )  # fmt: skip


def _positions(where: str, text: str, places: dict[str, int]) -> list[int]:
    """Return the columns that a name, a number or a range of numbers stands for."""
    text = text.strip()
    if text in places:
        return [places[text]]
    first, dash, last = (part.strip() for part in text.partition("-"))
    if all(
        part.isascii() and part.isdigit() and len(part) < 10
        for part in (first, *([last] if dash else []))
    ):
        low, high = int(first), int(last if dash else first)
        if not 1 <= low <= high <= len(places):
            raise DataError(
                f"{where}: there is no column {plain(text)}; columns are numbered from 1 to {len(places)}"
            )
        return list(range(low - 1, high))
    raise DataError(
        f"{where}: there is no column named {plain(text)!r}; the columns are {listed(places)}"
    )


# Labels


def classified(
    columns: Columns, cells: Sequence[str], codes: np.ndarray, name: str
) -> Columns:
    """Return the columns with classes, whose distinct cells are `cells` and whose rows are `codes` of them."""
    values: list[Any] = [_class(cell) for cell in cells]
    missing = [
        is_missing(c) or (isinstance(v, float) and not math.isfinite(v))
        for c, v in zip(cells, values, strict=True)
    ]
    if any(
        isinstance(value, str) and not gone
        for value, gone in zip(values, missing, strict=True)
    ):
        values = [cell.strip() for cell in cells]
    distinct = sorted(
        {value for value, gone in zip(values, missing, strict=True) if not gone}
    )
    order = {value: i for i, value in enumerate(distinct)}
    index = np.array(
        [
            -1 if gone else order[value]
            for value, gone in zip(values, missing, strict=True)
        ],
        np.int32,
    )
    return replace(
        columns,
        classes=index[codes],
        class_names=tuple(map(plain, distinct)),
        label=name,
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
