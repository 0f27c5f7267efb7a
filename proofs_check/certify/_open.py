"""Open a user's table: what is wrong with it in plain words, and what is left out of it."""

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.certify._columns import Columns, labelled, select
from proofs_check.certify._files import read_columns
from proofs_check.certify._table import Moments, Table, View, complete_rows, duplicates, moments_of
from proofs_check.engine.reading import DataError, extreme, listed, place, plain

_SCALES = 1_000.0  # ratio of two standard deviations beyond which distances hardly see the smaller one
_OUTLIER = 50.0  # standard deviations from the mean
_SINGLE = np.finfo(np.float32)
_RESOLUTION = 0.01  # of a standard deviation: coarser rounding hides what tells rows apart


def open_table(
    path: str | Path,
    *,
    columns: Sequence[str] | None = None,
    labels: str | None = None,
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    until: float = math.inf,
) -> Table:
    """Return the table in a `.npy`, `.npz` (array X), `.csv` or `.parquet` file.

    Parameters
    ----------
    path : the file; a `.npy` file may be larger than memory.
    columns : which columns to use: names, numbers from 1, or ranges of numbers such as "5-8"; None: all.
    labels : name or number of a column of classes, which is not used as a coordinate, or name of a vector in `.npz`;
        None: the vector y of a `.npz` file that has one.
    rows : how many rows to use, from the first; None: all.
    standardize : whether to subtract its mean from each column, and to divide it by its standard deviation.
    missing : "error", or "drop" to leave out rows in which a used column or the label holds no number.
    until : when reading is given up with a DataError, by the monotonic clock.

    Columns with no number at all and constant columns are left out; everything that is left out or looks wrong is in
    `left_out` and `notes`. Two passes over the data, or four where cells are missing; a few times 8 MiB of memory and
    16 bytes a row, beyond the data themselves where the file is no `.npy`. Raises DataError, in one line.
    """
    _check(rows, missing)
    chosen = read_columns(path, columns=columns, labels=labels, rows=rows, until=until)
    wording = _Wording(place(path), "--missing drop", "--columns", "--standardize", "--dtype float64")
    return _judged(plain(Path(path).name), chosen, wording, standardize, missing, until)


def from_array(
    X: Any,
    *,
    columns: Sequence[str] | None = None,
    labels: Any = None,
    names: Sequence[str] | None = None,
    rows: int | None = None,
    standardize: bool = False,
    missing: str = "error",
    source: str = "X",
) -> Table:
    """Return the table in a NumPy or JAX array of real numbers (rows, columns), or in a mapped one, without a copy.

    `labels` is a vector (rows,) of numbers or text, or the name or number of a column; `names` are those of the
    columns, x1, x2, ... by default. The rest is as in `open_table`. Raises ValueError with the same words.
    """
    _check(rows, missing)
    where = plain(source)
    array = np.asarray(X)
    by_name = labels if isinstance(labels, str) else None
    chosen = select(where, array, columns, by_name, rows, names)
    if labels is not None and by_name is None:
        chosen = labelled(where, chosen, np.asarray(labels), "labels", len(array))
    wording = _Wording(where, 'missing="drop"', "columns", "standardize=True", "float64")
    return _judged(where, chosen, wording, standardize, missing)


@dataclass(frozen=True)
class _Wording:
    """How messages begin, and how their reader passes the options that they name."""

    where: str
    drop: str
    columns: str
    standardize: str
    double: str


def _judged(
    source: str, columns: Columns, wording: _Wording, standardize: bool, missing: str, until: float = math.inf
) -> Table:
    """Return the table of some columns, less what holds no number or says nothing, or raise DataError."""
    notes, left_out = list(columns.notes), dict(columns.left_out)
    every = columns.used == tuple(range(columns.array.shape[1]))
    view = View(columns.array, None if every else np.array(columns.used, np.int64), until=until)
    moments = moments_of(view)
    names = np.array(columns.names, object)
    texts = [columns.texts.get(i, (0, "")) for i in range(view.dim)]

    holes = moments.nan + moments.infinite
    empty = holes == view.rows
    left_out |= {names[i]: _why_empty(texts[i][1]) for i in np.flatnonzero(empty)}
    if empty.all():
        raise DataError(f"{wording.where}: no column holds a number; {_reasons(left_out)}")
    if empty.any():
        notes.append(f"{_columns_are(names[empty])} left out, since no cell there is a number: {listed(names[empty])}.")
    used = np.flatnonzero(~empty)
    lost_labels = 0 if columns.classes is None else int(np.sum(columns.classes < 0))
    if holes[used].any() or lost_labels:
        where = [_holes(names[i], texts[i], int(moments.nan[i]), int(moments.infinite[i])) for i in used if holes[i]]
        if lost_labels:
            where.append(f"'{columns.label}' (the labels): {lost_labels:,} missing")
        chosen = complete_rows(view.restricted(used), columns.classes)
        notes.append(_dropped(wording, view.rows, len(chosen), where, missing))
        view = replace(view, chosen=chosen)
        moments = moments_of(view)
    constant = ~empty & (moments.low == moments.high)
    left_out |= {names[i]: f"holds one value, {moments.low[i]:.6g}" for i in np.flatnonzero(constant)}
    used = np.flatnonzero(~empty & ~constant)
    if not len(used):
        raise DataError(f"{wording.where}: all rows are equal")
    if constant.any():
        notes.append(f"{_columns_are(names[constant])} left out, since all cells are equal: {listed(names[constant])}.")
    view, moments, names = view.restricted(used), moments.of(used), names[used]
    largest = np.maximum(np.abs(moments.low), np.abs(moments.high))
    unfit = extreme(moments.low, moments.high)
    if unfit.any():
        i = int(np.flatnonzero(unfit)[0])
        raise DataError(
            f"{wording.where}: column '{names[i]}' holds values from {moments.low[i]:.3g} to {moments.high[i]:.3g}, "
            f"whose squares are out of range; change its unit, or choose others with {wording.columns}"
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
    copies = duplicates(view)
    if copies:
        notes.append(f"{copies:,} of {view.rows:,} rows equal an earlier row.")
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
        duplicate_rows=copies,
        notes=notes,
        left_out=left_out,
        _view=view,
        _largest=float(largest.max()),
    )


def _dropped(wording: _Wording, rows: int, complete: int, where: list[str], missing: str) -> str:
    """Return the note that incomplete rows are left out. Raises DataError where nobody asked for that."""
    count = f"{rows - complete:,} of {rows:,} rows"
    more = f"; and {len(where) - 8:,} more columns" if len(where) > 8 else ""
    listing = f"{'; '.join(where[:8])}{more}"
    if missing == "error":
        raise DataError(
            f"{wording.where}: {count} hold no number in some column ({listing}); "
            f"pass {wording.drop} to leave out those rows, or choose others with {wording.columns}"
        )
    if complete < 2:
        raise DataError(
            f"{wording.where}: only {complete} of {rows:,} rows hold a number in every column ({listing}); "
            f"choose others with {wording.columns}"
        )
    return f"{count} are left out, since they hold no number in some column ({listing})."


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


def _why_empty(example: str) -> str:
    return f"holds text, such as '{example}'" if example else "holds no number"


def _reasons(left_out: dict[str, str]) -> str:
    return "; ".join(f"'{name}' {why}" for name, why in list(left_out.items())[:3])


def _holes(name: str, text: tuple[int, str], nan: int, infinite: int) -> str:
    count, example = text
    kinds = [f"{nan - count:,} missing"] if nan > count else []
    kinds += [f"{count:,} with text such as '{example}'"] if count else []
    kinds += [f"{infinite:,} infinite"] if infinite else []
    return f"'{name}': {', '.join(kinds)}"


def _units(names: np.ndarray, moments: Moments, largest: np.ndarray, wording: _Wording) -> list[str]:
    """Return what columns that are not standardised do to distances, and to single precision."""
    sentences = []
    wide, narrow = int(np.argmax(moments.deviation)), int(np.argmin(moments.deviation))
    ratio = moments.deviation[wide] / moments.deviation[narrow]
    if ratio > _SCALES:
        sentences.append(
            f"The standard deviation of column '{names[wide]}' ({moments.deviation[wide]:.3g}) is {ratio:,.4g} times "
            f"that of '{names[narrow]}' ({moments.deviation[narrow]:.3g}), so that distances hardly see the latter; "
            f"{wording.standardize} gives every column the same."
        )
    over = largest > float(_SINGLE.max) ** 0.5
    if over.any():
        sentences.append(
            f"The values of {listed(names[over])} are so large (up to {largest.max():.3g}) that they or their squares "
            f"overflow in single precision; pass {wording.standardize} or {wording.double}."
        )
    lost = ~over & (float(_SINGLE.eps) * largest > _RESOLUTION * moments.deviation)
    if lost.any():
        sentences.append(
            f"The values of {listed(names[lost])} are so large, compared with their standard deviations, that single "
            f"precision rounds away what tells rows apart; pass {wording.standardize} or {wording.double}."
        )
    return sentences


def _outliers(names: np.ndarray, moments: Moments, view: View) -> list[str]:
    """Return a sentence on entries far from the mean; columns whose range has none are not read again."""
    limit = _OUTLIER * moments.deviation
    far = np.flatnonzero(np.maximum(moments.high - moments.mean, moments.mean - moments.low) > limit)
    if not len(far):
        return []
    counts = np.zeros(len(far), np.int64)
    for block in view.restricted(far).transposed():
        counts += np.count_nonzero(np.abs(block - moments.mean[far, None]) > limit[far, None], axis=1)
    counted = [f"{count:,} in '{name}'" for name, count in zip(names[far], counts, strict=True)]
    more = f" and more in {len(counted) - 8:,} other columns" if len(counted) > 8 else ""
    return [
        f"{counts.sum():,} entries lie more than {_OUTLIER:g} standard deviations from the mean of their column: "
        f"{', '.join(counted[:8])}{more}."
    ]
