"""Open a user's table: what is wrong with it in plain words, and what is left out of it."""

from __future__ import annotations

import math
import operator
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.certify.load.cells import LARGEST_WHOLE
from proofs_check.certify.load.columns import Columns, Wanted, labelled, select
from proofs_check.certify.load.files import read_columns, read_frame
from proofs_check.certify.load.suspects import suspects
from proofs_check.certify.load.table import (
    Moments,
    Table,
    View,
    complete_rows,
    copies,
    duplicates,
    moments_of,
)
from proofs_check.engine.reading import DataError, extreme, listed, place, plain

_SCALES = 1_000.0  # ratio of two standard deviations beyond which distances hardly see the smaller one
_OUTLIER = 50.0  # standard deviations from the mean
_MOST_DROPPED = 0.1  # of the rows, that it is advised to drop

_FEW = 12  # different whole numbers that may be categories or times


def open_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    target: str | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    separator: str | None = None,
    header: str | None = None,
    decimal: str = ".",
    missing_words: Sequence[str] = (),
    until: float = math.inf,
) -> Table:
    """Return the table in a `.csv`, `.tsv`, `.txt`, `.csv.gz`, `.parquet`, `.npy` or `.npz` (array X) file.

    Parameters
    ----------
    path : the file. A `.npy` may be larger than memory.
    columns : which columns to use: names, numbers from 1, or ranges of numbers such as "5-8"; None: all.
    labels : name or number of a column of classes, which is not used as a coordinate, or name of a vector in `.npz`;
        None: the vector y of a `.npz` file that has one.
    target : name or number of a column that is to be predicted, which is left out.
    exclude : columns to leave out, as in `columns`.
    keep : columns of numbers to use although they look like an id, a target or a copy of another one, as in `columns`.
    rows : how many rows to use, from the first; None: all.
    standardize : whether to subtract its mean from each column, and to divide it by its standard deviation.
    missing : "error", or "drop" to leave out rows in which a used column or the label holds no number.
    separator : of the cells in a file of text, "comma", "semicolon" or "tab"; None: the one that is in the first line.
    header : whether the first line of a file of text has the names of the columns, "yes" or "no"; None: it has if some
        cell there is a word, and it is an error if none is.
    decimal : the decimal mark in a file of text, "." or ",".
    missing_words : words in a file of text for missing cells, beside empty cells, NA, NaN, null, None and N/A.
    until : when reading is given up with a DataError, by the monotonic clock.

    Raises
    ------
    DataError
        In one line, if the file or what is asked of it is not sound.

    Notes
    -----
    A column is one of numbers if every cell is a number or missing; a column whose cells are true and false, or yes and
    no, is 1 and 0. Columns of text, dates and lists are left out, and so are constant ones, later copies of a column,
    columns without a name, those that count the rows, and those with the name of an id or a target, unless `columns`
    names them or `keep` has them. Everything that is left out or looks wrong is in `left_out` and `notes`. A column in
    which most cells are numbers and some are not is an error. Columns stay in the order of the file.

    Two passes over the data, or four if cells are missing; a few times 8 MiB of memory and 16 bytes a row beyond the
    data, which take no memory in a `.npy`, and at most a quarter of it in other files.
    """
    _check(rows, missing)
    wanted = Wanted(
        columns, labels, target, exclude, keep, rows, separator, header, decimal, missing_words,
    )  # fmt: skip
    return _judged(
        plain(Path(path).name),
        read_columns(path, wanted, until=until),
        Wording(place(path), python=False),
        standardize,
        missing,
        until,
    )


def from_array(
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Any = None,
    target: str | None = None,
    exclude: Sequence[str] = (),
    keep: Sequence[str] = (),
    names: Sequence[str] | None = None,
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    source: str = "X",
) -> Table:
    """Return the table in an array of real numbers (rows, columns), or in a DataFrame.

    X is an array of NumPy or JAX, or a mapped one, which is not copied, or a DataFrame of pandas or polars, a table of
    Arrow, or another one that narwhals knows, whose cells are read as those of a file. `labels` is a vector (rows,) of
    numbers or text, or the name or number of a column; `names` are those of the columns of an array, x1, x2, ... by
    default. The rest is as in `open_table`. Raises ValueError with the same words.
    """
    _check(rows, missing)
    where = plain(source)
    wanted = Wanted(
        columns,
        labels if isinstance(labels, str) else None,
        target,
        exclude,
        keep,
        rows,
    )
    if hasattr(X, "columns"):
        if names is not None:
            raise DataError(
                f"{where}: names are those of an array, and a DataFrame has its own; rename its columns"
            )
        chosen, total = read_frame(where, X, wanted), len(X)
    else:
        array = np.asarray(X)
        chosen, total = (
            select(where, array, wanted, names),
            len(array) if array.ndim else 0,
        )
    if labels is not None and not isinstance(labels, str):
        chosen = labelled(where, chosen, np.asarray(labels), "labels", total)
    return _judged(where, chosen, Wording(where, python=True), standardize, missing)


@dataclass(frozen=True)
class Wording:
    """How messages begin, and whether their reader passes options in Python or on the command line."""

    where: str
    python: bool

    def flag(self, name: str, value: Any = None) -> str:
        """Return how an option is passed, such as --columns or columns=["a"]."""
        option = name if self.python else f"--{name.replace('_', '-')}"
        if value is None:
            return option
        if self.python:
            return f"{name}={value!r}"
        if value is True:
            return option
        text = value if isinstance(value, str) else ",".join(value)
        return f"{option} {shlex.quote(text)}"


def _judged(
    source: str,
    columns: Columns,
    wording: Wording,
    standardize: bool,
    missing: str,
    until: float = math.inf,
) -> Table:
    """Return the table of some columns, less those that are no coordinates, or raise DataError."""
    where, choice = wording.where, columns.choice
    every = len(choice.chosen) == columns.array.shape[1]
    view = View(columns.array, None if every else np.array(choice.chosen), until=until)
    moments, names = moments_of(view), choice.chosen_names
    notes = list(columns.notes)
    asked = {i for i, number in enumerate(choice.chosen) if number in choice.asked}
    holes = moments.nan + moments.infinite
    numeric = np.flatnonzero(holes < view.rows)
    # Position -> why the column is left out.
    reasons = {
        i: cell.reason or "no number"
        for i, cell in enumerate(columns.cells)
        if holes[i] == view.rows and not cell.fault
    }
    reasons |= suspects(view, moments, names, asked | reasons.keys())
    used = _others(view.dim, reasons)
    if not len(used):
        listing = _listing(columns, reasons, wording)
        raise DataError(f"{where}: no column holds numbers to use: {listing}")
    _refuse_faults(columns, view, moments, used, wording)
    lost_labels = 0 if columns.classes is None else int(np.sum(columns.classes < 0))
    if holes[used].any() or lost_labels:
        rows = complete_rows(view.restricted(used), columns.classes)
        notes.append(
            _dropped(columns, moments, used, view.rows, len(rows), wording, missing)
        )
        view = replace(view, chosen=rows)
        moments = moments_of(view)
    for i in used:
        if moments.low[i] == moments.high[i]:
            reasons[int(i)] = f"one value, {moments.low[i]:.6g}"
    used = _others(view.dim, reasons)
    if not len(used):
        raise DataError(f"{where}: all rows are equal")
    for position, first in copies(view.restricted(used), moments.of(used)).items():
        if used[position] not in asked:
            reasons[int(used[position])] = f"equals '{names[used[first]]}'"
    used = _others(view.dim, reasons)
    if reasons:
        notes.append(f"Left out: {_listing(columns, reasons, wording)}")
    truths = [names[i] for i in used if columns.cells[i].truths]
    if truths:
        notes.append(f"True and yes are 1, false and no are 0: {listed(truths)}.")
    layouts = [
        tuple(choice.chosen[i] for i in used),
        tuple(choice.chosen[i] for i in numeric),
        tuple(range(len(choice.names))),
    ]
    view, moments, names = (
        view.restricted(used),
        moments.of(used),
        np.array(names, object)[used],
    )
    largest = np.maximum(np.abs(moments.low), np.abs(moments.high))
    unfit = extreme(moments.low, moments.high)
    if unfit.any():
        i = int(np.flatnonzero(unfit)[0])
        raise DataError(
            f"{where}: column '{names[i]}' holds values from {moments.low[i]:.3g} to {moments.high[i]:.3g}, "
            f"whose squares are out of range; change its unit, or choose others with {wording.flag('columns')}"
        )
    classes, class_names = _classes(columns, view)
    if len(class_names) > max(20, view.rows // 20):
        notes.append(
            f"The labels '{columns.label}' hold {len(class_names):,} different values in {view.rows:,} rows: "
            "are they classes?"
        )
    notes += _few(names, moments, view.rows, wording)
    if not standardize:
        notes += _scales(names, moments, wording)
    notes += _outliers(names, moments)
    repeated = duplicates(view)
    if repeated:
        notes.append(f"{repeated:,} of {view.rows:,} rows equal an earlier row.")
    return Table(
        source=source,
        rows=view.rows,
        dim=view.dim,
        names=tuple(names.tolist()),
        labels=classes,
        label_names=class_names,
        standardized=standardize,
        mean=moments.mean if standardize else np.zeros(view.dim),
        scale=moments.deviation if standardize else np.ones(view.dim),
        duplicate_rows=repeated,
        notes=notes,
        left_out=choice.left_out
        | {choice.chosen_names[i]: why for i, why in sorted(reasons.items())},
        columns=choice.names,
        layouts=tuple(dict.fromkeys(layouts)),
        _view=view,
        _largest=float(largest.max()),
    )


def _others(width: int, left_out: dict[int, str]) -> np.ndarray:
    return np.array([i for i in range(width) if i not in left_out], np.int64)


def _listing(columns: Columns, reasons: dict[int, str], wording: Wording) -> str:
    """Return which columns are left out and why, and how they could be used."""
    names = columns.choice.chosen_names
    listing = _joined([f"'{names[i]}' ({why})" for i, why in sorted(reasons.items())])
    keep = wording.flag("keep", ["NAME"])
    sentence = f"{listing}; {keep} uses a column of numbers all the same."
    few = [
        name for name, cell in zip(names, columns.cells, strict=True) if cell.categories
    ]
    if few:
        sentence += f" Text of few values can be one-hot columns (pandas.get_dummies): {listed(few)}."
    return sentence


def _joined(parts: Sequence[str]) -> str:
    more = f" and {len(parts) - 8:,} more" if len(parts) > 8 else ""
    return ", ".join(parts[:8]) + more


def _refuse_faults(
    columns: Columns, view: View, moments: Moments, used: np.ndarray, wording: Wording
) -> None:
    """Raise DataError for columns that hold numbers and something else, or whole numbers that would be rounded."""
    exact = view.array.dtype.kind in "iu"
    names = columns.choice.chosen_names
    faults = {}
    for i in used:
        beyond = max(-moments.low[i], moments.high[i]) >= LARGEST_WHOLE
        if columns.cells[i].fault:
            faults[i] = columns.cells[i].fault
        elif columns.cells[i].rounded or (exact and beyond):
            faults[i] = (
                "holds whole numbers beyond 2^53, which would be rounded (subtract the smallest one in pandas)"
            )
    if not faults:
        return
    parts = [f"'{names[i]}' {fault}" for i, fault in faults.items()]
    exclude = wording.flag("exclude", _typed(columns, faults))
    hints = [f"leave columns out with {exclude}"]
    said = "; ".join(faults.values())
    if "cells of text" in said and not wording.python:
        hints.append("name words for missing cells with --missing-words")
    if "with commas" in said and not wording.python:
        hints.append("pass --decimal , if these are decimal commas")
    if "holds numbers" in said:
        hints.append("write plain numbers with pandas")
    raise DataError(f"{wording.where}: column {_joined(parts)}; {', or '.join(hints)}")


def _typed(columns: Columns, positions: Iterable[int]) -> list[str]:
    """Return names, or numbers of columns whose names the command line would take apart."""
    names = columns.choice.chosen_names
    return [
        str(columns.choice.chosen[i] + 1) if "," in names[i] else names[i]
        for i in positions
    ]


def _dropped(
    columns: Columns,
    moments: Moments,
    used: np.ndarray,
    rows: int,
    complete: int,
    wording: Wording,
    missing: str,
) -> str:
    """Return the note that incomplete rows are left out. Raises DataError if nobody asked for that."""
    names = columns.choice.chosen_names
    lost = rows - complete
    holes: dict[int, int] = {}
    parts = []
    for i in used:
        counts = {"missing": moments.nan[i], "infinite": moments.infinite[i]}
        kinds = [f"{count:,} {kind}" for kind, count in counts.items() if count]
        if kinds:
            holes[i] = sum(counts.values())
            parts.append(f"'{names[i]}': {' and '.join(kinds)}")
    if columns.classes is not None and np.any(columns.classes < 0):
        unlabelled = np.sum(columns.classes < 0)
        parts.append(f"'{columns.label}' (the labels): {unlabelled:,} missing")
    listing = _joined(parts)
    if missing == "drop" and complete >= 2:
        return f"{lost:,} of {rows:,} rows are left out, since they lack a number ({listing})."
    if lost <= _MOST_DROPPED * rows or not holes:
        advice = f"pass {wording.flag('missing', 'drop')} to leave out those rows"
    else:
        # To drop so many rows would change the table: first the columns that lack most.
        worst = [i for i, count in holes.items() if count > _MOST_DROPPED * rows]
        advice = f"pass {wording.flag('exclude', _typed(columns, worst or holes))}"
    raise DataError(
        f"{wording.where}: {lost:,} of {rows:,} rows lack a number in some column ({listing}); {advice}, "
        "or fill the cells in pandas"
    )


def _few(names: np.ndarray, moments: Moments, rows: int, wording: Wording) -> list[str]:
    """Return a sentence on whole numbers with few values, such as years, whose distances may mean little."""
    span = moments.high - moments.low
    few = moments.whole & (span >= 2) & (span < min(_FEW, rows / 10))
    if not few.any():
        return []
    parts = [
        f"'{name}' ({low:.0f} to {high:.0f})"
        for name, low, high in zip(
            names[few], moments.low[few], moments.high[few], strict=True
        )
    ]
    return [
        f"Whole numbers of few values are coordinates: {_joined(parts)}; "
        f"{wording.flag('exclude')} leaves out years or codes."
    ]


def _classes(columns: Columns, view: View) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Return the labels of the rows that are used, and the names of the classes that occur there."""
    if columns.classes is None or view.chosen is None:
        return columns.classes, columns.class_names
    there, classes = np.unique(columns.classes[view.chosen], return_inverse=True)
    return classes.astype(np.int32), tuple(columns.class_names[i] for i in there)


def _check(rows: int | None, missing: str) -> None:
    if missing not in ("error", "drop"):
        raise DataError(f'missing must be "error" or "drop", got {plain(missing)!r}')
    if rows is not None and operator.index(rows) < 2:
        raise DataError(f"rows must be at least 2, got {rows}")


def _scales(names: np.ndarray, moments: Moments, wording: Wording) -> list[str]:
    """Return a sentence on columns that are not standardised, if their scales are far apart."""
    deviation = moments.deviation
    wide, narrow = np.argmax(deviation), np.argmin(deviation)
    ratio = deviation[wide] / deviation[narrow]
    if ratio <= _SCALES:
        return []
    return [
        f"The standard deviation of column '{names[wide]}' ({deviation[wide]:.3g}) is {ratio:,.4g} times "
        f"that of '{names[narrow]}' ({deviation[narrow]:.3g}), so that distances hardly see the latter; "
        f"{wording.flag('standardize', True)} gives every column the same."
    ]


def _outliers(names: np.ndarray, moments: Moments) -> list[str]:
    """Return a sentence on columns with entries far from the mean."""
    reach = np.maximum(moments.high - moments.mean, moments.mean - moments.low)
    far = reach > _OUTLIER * moments.deviation
    if not far.any():
        return []
    listing = _joined([f"'{name}'" for name in names[far]])
    return [
        f"Entries lie more than {_OUTLIER:g} standard deviations from the mean of their column: {listing}."
    ]
