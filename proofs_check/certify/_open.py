"""Open a user's table: what is wrong with it in plain words, and what is left out of it."""

import math
import operator
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.certify._columns import Columns, Wanted, labelled, select
from proofs_check.certify._files import read_columns, read_frame
from proofs_check.certify._suspects import Suspects, suspects
from proofs_check.certify._table import (
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
_SINGLE = np.finfo(np.float32)
_WRITTEN = {
    "truths": "True and false are 1 and 0",
    "percents": "Percentages are fractions of 1, 0.05 for 5%",
    "thousands": "Commas between thousands are left out of numbers",
}
_RESOLUTION = (
    0.01  # of a standard deviation: coarser rounding hides what tells rows apart
)


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
    until: float = math.inf,
) -> Table:
    """Return the table in a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    Parameters
    ----------
    path : the file, which may be larger than memory where it is no `.npz`.
    columns : which columns to use: names, numbers from 1, or ranges of numbers such as "5-8"; None: all.
    labels : name or number of a column of classes, which is not used as a coordinate, or name of a vector in `.npz`;
        None: the vector y of a `.npz` file that has one.
    target : name or number of a column that is to be predicted, which is left out.
    exclude : columns to leave out, as in `columns`.
    keep : columns to use although they look like an id, a target or a copy of another one, as in `columns`.
    rows : how many rows to use, from the first; None: all.
    standardize : whether to subtract its mean from each column, and to divide it by its standard deviation.
    missing : "error", or "drop" to leave out rows in which a used column or the label holds no number.
    until : when reading is given up with a DataError, by the monotonic clock.

    Raises
    ------
    DataError
        In one line, if the file or what is asked of it is not sound.

    Notes
    -----
    Cells such as "5%", "1,234" and "true" are the numbers .05, 1234 and 1. Columns of text or dates, constant ones,
    later copies of a column, and those without a name that count the rows are left out. A named column that looks like
    an id or a target is an error, unless `columns` names it or `keep` has it. Everything that is left out, converted or
    looks wrong is in `left_out` and `notes`. Columns stay in the order of the file.

    Two passes over the data, or four where cells are missing; a few times 8 MiB of memory and 16 bytes a row, beyond
    the data themselves where the file is no `.npy`: those take a quarter of the memory, or are in a file without a name
    in the folder for temporary files.
    """
    _check(rows, missing)
    wanted = Wanted(columns, labels, target, exclude, keep, rows)
    wording = Wording(place(path), python=False)
    return _judged(
        plain(Path(path).name),
        read_columns(path, wanted, until=until),
        wording,
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
        if value is None:
            return name if self.python else f"--{name}"
        if self.python:
            return f"{name}={value!r}"
        text = (
            value
            if isinstance(value, str)
            else ",".join(value)
            if value is not True
            else ""
        )
        return f"--{name}" + (f" {shlex.quote(text)}" if text else "")


def _judged(
    source: str,
    columns: Columns,
    wording: Wording,
    standardize: bool,
    missing: str,
    until: float = math.inf,
) -> Table:
    """Return the table of some columns, less what holds no number or says nothing, or raise DataError."""
    notes, left_out, choice = (
        list(columns.notes),
        dict(columns.choice.left_out),
        columns.choice,
    )
    every = columns.used == tuple(range(columns.array.shape[1]))
    view = View(
        columns.array, None if every else np.array(columns.used, np.int64), until=until
    )
    moments, view_rows = moments_of(view), view.rows
    names = np.array(columns.names, object)
    texts = [columns.texts.get(i, (0, "")) for i in range(view.dim)]

    def leave_out(which: Any, reasons: Iterable[str], since: str) -> None:
        if len(gone := names[which]):
            left_out.update(zip(gone, reasons, strict=True))
            notes.append(
                f"{_columns_are(gone)} left out, since {since}: {listed(gone)}."
            )

    holes = moments.nan + moments.infinite
    empty = holes == view.rows
    dates = np.array([name in columns.dates for name in names])
    if empty.all():
        why = {
            names[i]: _why_empty(texts[i][1], dates[i]) for i in range(view.dim)
        } | left_out
        raise DataError(f"{wording.where}: no column holds a number; {_reasons(why)}")
    at = np.flatnonzero(empty & ~dates)
    leave_out(at, (_why_empty(texts[i][1]) for i in at), "no cell there is a number")
    at = np.flatnonzero(empty & dates)
    leave_out(at, (_why_empty(texts[i][1], True) for i in at), "all cells are dates")
    notes += [
        f"{_WRITTEN[kind]}: {listed(held)}."
        for kind, held in columns.written.items()
        if held
    ]
    asked = {i for i, number in enumerate(choice.chosen) if number in choice.asked}
    odd = suspects(
        view, moments, columns.names, asked | set(np.flatnonzero(empty).tolist())
    )
    _refuse(odd, columns, wording)
    leave_out(
        odd.dates,
        ("holds dates as numbers" for _ in odd.dates),
        "all cells are dates as numbers",
    )
    leave_out(
        odd.counts,
        ("counts the rows" for _ in odd.counts),
        "the cells only count the rows",
    )
    empty[[*odd.dates, *odd.counts]] = True
    used = np.flatnonzero(~empty)
    lost_labels = 0 if columns.classes is None else int(np.sum(columns.classes < 0))
    if holes[used].any() or lost_labels:
        where = [
            _holes(names[i], texts[i], int(moments.nan[i]), int(moments.infinite[i]))
            for i in used
            if holes[i]
        ]
        if lost_labels:
            where.append(f"'{columns.label}' (the labels): {lost_labels:,} missing")
        chosen = complete_rows(view.restricted(used), columns.classes)
        notes.append(_dropped(wording, view.rows, len(chosen), where, missing))
        view = replace(view, chosen=chosen)
        moments = moments_of(view)
    constant = ~empty & (moments.low == moments.high)
    used = np.flatnonzero(~empty & ~constant)
    if not len(used):
        raise DataError(f"{wording.where}: all rows are equal")
    leave_out(
        constant,
        (f"holds one value, {value:.6g}" for value in moments.low[constant]),
        "all cells are equal",
    )
    again = copies(view.restricted(used), moments.of(used))
    copied = {
        int(used[i]): names[used[j]]
        for i, j in again.items()
        if int(used[i]) not in asked
    }
    leave_out(
        list(copied),
        (f"equals '{first}'" for first in copied.values()),
        "the cells equal those of an earlier column",
    )
    used = np.array([i for i in used if i not in copied])
    held, numeric = (
        [choice.chosen[i] for i in which]
        for which in (used, np.flatnonzero(holes < view_rows))
    )
    view, moments, names = view.restricted(used), moments.of(used), names[used]
    largest = np.maximum(np.abs(moments.low), np.abs(moments.high))
    unfit = extreme(moments.low, moments.high)
    if unfit.any():
        i = int(np.flatnonzero(unfit)[0])
        raise DataError(
            f"{wording.where}: column '{names[i]}' holds values from {moments.low[i]:.3g} to {moments.high[i]:.3g}, "
            f"whose squares are out of range; change its unit, or choose others with {wording.flag('columns')}"
        )
    classes, class_names = _classes(columns, view)
    if len(class_names) > max(20, view.rows // 20):
        notes.append(
            f"The labels '{columns.label}' hold {len(class_names):,} different values in {view.rows:,} rows: "
            "are they classes?"
        )
    if not standardize:
        notes += _units(names, moments, largest, wording)
    notes += _outliers(names, moments, view)
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
        left_out=left_out,
        columns=choice.names,
        layouts=tuple(
            dict.fromkeys(
                (tuple(held), tuple(numeric), tuple(range(len(choice.names))))
            )
        ),
        _view=view,
        _largest=float(largest.max()),
    )


def _refuse(odd: Suspects, columns: Columns, wording: Wording) -> None:
    """Raise DataError where a column has to be named by the user."""
    at = [*odd.ids, *odd.targets]
    if not at:
        return
    # Names that the command line would take apart are shown as numbers.
    names = {
        i: columns.names[i]
        if "," not in columns.names[i]
        else str(columns.choice.chosen[i] + 1)
        for i in at
    }
    ids, targets = ([names[i] for i in which] for which in (odd.ids, odd.targets))
    looks = [f"{listed(ids)} like numbers of rows"] if ids else []
    looks += [f"{listed(targets)} like what is to be predicted"] if targets else []
    ways = [wording.flag("exclude", ids)] if ids else []
    if targets:
        others = "" if len(targets) == 1 else " (a column each)"
        ways.append(
            f"{wording.flag('labels', targets[0])} for classes or {wording.flag('target', targets[0])}{others}"
        )
    raise DataError(
        f"{wording.where}: {'columns look' if len(at) > 1 else 'a column looks'} as if it were no coordinate, "
        f"{' and '.join(looks)}; pass {' and '.join(ways)}, or {wording.flag('keep', [*names.values()])} to use "
        f"{'them' if len(at) > 1 else 'it'} all the same"
    )


def _dropped(
    wording: Wording, rows: int, complete: int, where: list[str], missing: str
) -> str:
    """Return the note that incomplete rows are left out. Raises DataError where nobody asked for that."""
    count = f"{rows - complete:,} of {rows:,} rows"
    more = f"; and {len(where) - 8:,} more columns" if len(where) > 8 else ""
    listing = f"{'; '.join(where[:8])}{more}"
    if missing == "error":
        raise DataError(
            f"{wording.where}: {count} hold no number in some column ({listing}); "
            f"pass {wording.flag('missing', 'drop')} to leave out those rows, or choose others with "
            f"{wording.flag('columns')}"
        )
    if complete < 2:
        raise DataError(
            f"{wording.where}: only {complete} of {rows:,} rows hold a number in every column ({listing}); "
            f"choose others with {wording.flag('columns')}"
        )
    return (
        f"{count} are left out, since they hold no number in some column ({listing})."
    )


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


def _columns_are(names: Sequence[str]) -> str:
    return "1 column is" if len(names) == 1 else f"{len(names):,} columns are"


def _why_empty(example: str, dates: bool = False) -> str:
    return (
        f"holds {'dates' if dates else 'text'}, such as '{example}'"
        if example
        else "holds no number"
    )


def _reasons(left_out: dict[str, str]) -> str:
    return "; ".join(f"'{name}' {why}" for name, why in list(left_out.items())[:3])


def _holes(name: str, text: tuple[int, str], nan: int, infinite: int) -> str:
    count, example = text
    kinds = [f"{nan - count:,} missing"] if nan > count else []
    kinds += [f"{count:,} with text such as '{example}'"] if count else []
    kinds += [f"{infinite:,} infinite"] if infinite else []
    return f"'{name}': {', '.join(kinds)}"


def _units(
    names: np.ndarray, moments: Moments, largest: np.ndarray, wording: Wording
) -> list[str]:
    """Return what columns that are not standardised do to distances, and to single precision."""
    sentences = []
    wide, narrow = int(np.argmax(moments.deviation)), int(np.argmin(moments.deviation))
    ratio = moments.deviation[wide] / moments.deviation[narrow]
    if ratio > _SCALES:
        sentences.append(
            f"The standard deviation of column '{names[wide]}' ({moments.deviation[wide]:.3g}) is {ratio:,.4g} times "
            f"that of '{names[narrow]}' ({moments.deviation[narrow]:.3g}), so that distances hardly see the latter; "
            f"{wording.flag('standardize', True)} gives every column the same."
        )
    over = largest > float(_SINGLE.max) ** 0.5
    if over.any():
        sentences.append(
            f"The values of {listed(names[over])} are so large (up to {largest.max():.3g}) that they or their squares "
            f"overflow in single precision; pass "
            f"{wording.flag('standardize', True)} or {wording.flag('dtype', 'float64')}."
        )
    lost = ~over & (float(_SINGLE.eps) * largest > _RESOLUTION * moments.deviation)
    if lost.any():
        sentences.append(
            f"The values of {listed(names[lost])} are so large, compared with their standard deviations, that single "
            f"precision rounds away what tells rows apart; pass "
            f"{wording.flag('standardize', True)} or {wording.flag('dtype', 'float64')}."
        )
    return sentences


def _outliers(names: np.ndarray, moments: Moments, view: View) -> list[str]:
    """Return a sentence on entries far from the mean; columns whose range has none are not read again."""
    limit = _OUTLIER * moments.deviation
    far = np.flatnonzero(
        np.maximum(moments.high - moments.mean, moments.mean - moments.low) > limit
    )
    if not len(far):
        return []
    counts = np.zeros(len(far), np.int64)
    for block in view.restricted(far).transposed():
        counts += np.count_nonzero(
            np.abs(block - moments.mean[far, None]) > limit[far, None], axis=1
        )
    counted = [
        f"{count:,} in '{name}'" for name, count in zip(names[far], counts, strict=True)
    ]
    more = (
        f" and more in {len(counted) - 8:,} other columns" if len(counted) > 8 else ""
    )
    return [
        f"{counts.sum():,} entries lie more than {_OUTLIER:g} standard deviations from the mean of their column: "
        f"{', '.join(counted[:8])}{more}."
    ]
