"""Judge the columns of a table: what is left out and why, what is refused, and what looks wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from proofs_check.certify.load.cells import LARGEST_WHOLE, MISSING, ROUNDED
from proofs_check.certify.load.columns import BY_OPTION, Columns
from proofs_check.certify.load.suspects import suspect_cells
from proofs_check.certify.load.table import Table, moments_of, repeats
from proofs_check.engine.reading import DataError, extreme, joined, listed

_SCALES = 1_000.0  # ratio of two standard deviations beyond which distances hardly see the smaller one
_OUTLIER = 50.0  # standard deviations from the mean
_MOST_DROPPED = 0.1  # of the rows, that it is advised to drop
_FEW = 12  # different whole numbers that may be categories or times
_EXCLUDE = "--exclude NAME (exclude=['NAME'])"
_REPAIR = (
    "write plain numbers, pass --decimal , for decimal commas or --missing-words for words for missing cells, "
    f"or leave columns out with {_EXCLUDE}"
)
_DROP = "--missing drop (missing='drop') to leave out these rows"


def table_of(source: str, columns: Columns) -> Table:
    """Return the table of the columns that are coordinates. Raises DataError."""
    columns.moments = moments_of(columns.view)
    rows = columns.view.num_rows
    empty = {*columns.among_used(columns.moments.lacking == rows)}
    columns.leave_out(dict.fromkeys(empty - columns.faults.keys(), "no number"))
    numeric = columns.used
    columns.doubt(_suspects(columns))
    _refuse_faults(columns)
    _drop_rows(columns)
    low = columns.moments.low
    high = columns.moments.high
    is_constant = low == high
    values = [f"one value, {value:.6g}" for value in low[is_constant]]
    columns.leave_out(dict(zip(columns.among_used(is_constant), values, strict=True)))
    duplicate_rows, firsts = repeats(columns.view)
    originals = [columns.used[first] for first in firsts]
    pairs = zip(columns.used, originals, strict=True)
    columns.doubt({name: f"equals '{first}'" for name, first in pairs if name != first})
    moments = columns.moments
    unfit = columns.among_used(extreme(moments.low, moments.high))
    if unfit:
        raise DataError(
            f"{columns.where}: squares of {listed(unfit)} are out of the range of float64; change the unit, or leave "
            f"columns out with {_EXCLUDE}"
        )
    labels = None
    label_names: tuple[str, ...] = ()
    if columns.labels is not None:
        codes, classes = columns.labels
        rows_used = slice(None) if columns.view.rows is None else columns.view.rows
        present, labels = np.unique(codes[rows_used], return_inverse=True)
        labels = labels.astype(np.int32)
        label_names = tuple(classes[i] for i in present)
    rows = columns.view.num_rows
    columns.notes += _remarks(columns, label_names)
    if duplicate_rows:
        note = f"{duplicate_rows:,} of {rows:,} rows equal an earlier row."
        columns.notes.append(note)
    layouts = [columns.used]
    if not columns.categories:
        layouts += [numeric, columns.names]
    numbers = [np.flatnonzero(np.isin(columns.names, layout)) for layout in layouts]
    standardize = columns.options.standardize
    dim = len(columns.used)
    return Table(
        source=source,
        rows=rows,
        dim=dim,
        names=tuple(columns.used),
        labels=labels,
        label_names=label_names,
        standardized=standardize,
        mean=moments.mean if standardize else np.zeros(dim),
        scale=moments.deviation if standardize else np.ones(dim),
        duplicate_rows=duplicate_rows,
        notes=columns.notes,
        left_out=columns.left_out,
        columns=tuple(columns.names),
        layouts=tuple(dict.fromkeys(tuple(part.tolist()) for part in numbers)),
        categories=tuple(columns.categories.items()),
        view=columns.view,
        largest=float(max(-moments.low.min(), moments.high.max())),
    )


def _suspects(columns: Columns) -> dict[str, str]:
    """Return the columns of whole numbers that are no coordinates for what they hold. A single column stays."""
    reasons = {}
    moments = columns.moments
    for i in np.flatnonzero(moments.whole):
        name = columns.used[i]
        column = columns.view.only([i])
        reason = suspect_cells(name, column, moments.low[i], moments.high[i])
        if reason and len(columns.used) > 1:
            reasons[name] = reason
    return reasons


def _refuse_faults(columns: Columns) -> None:
    """Raise DataError for columns that hold numbers and something else, or whole numbers that would be rounded."""
    faults = columns.faults
    if columns.view.array.dtype.kind in "iu":
        largest = np.maximum(-columns.moments.low, columns.moments.high)
        names = columns.among_used(largest >= LARGEST_WHOLE)
        faults = dict.fromkeys(names, ROUNDED)
    parts = [f"'{name}' {faults[name]}" for name in columns.used if name in faults]
    if parts:
        raise DataError(f"{columns.where}: column {joined(parts)}; {_REPAIR}")


def _drop_rows(columns: Columns) -> None:
    """Leave out the rows that lack a number or a label. Raises DataError if nobody asked for that."""
    rows = columns.view.num_rows
    lacking = dict(zip(columns.used, columns.moments.lacking.tolist(), strict=True))
    many = [name for name, count in lacking.items() if count > _MOST_DROPPED * rows]
    is_complete = np.ones(rows, bool)
    if columns.labels is not None:
        is_complete = columns.labels[0] >= 0
        lacking["the labels"] = rows - np.count_nonzero(is_complete)
    listing = joined(f"'{name}': {count:,}" for name, count in lacking.items() if count)
    if not listing:
        return
    finite = [np.isfinite(block).all(axis=0) for block in columns.view.transposed()]
    chosen = np.flatnonzero(is_complete & np.concatenate(finite))
    lost = f"{rows - len(chosen):,} of {rows:,} rows"
    reason = f"lack a finite number or a label ({listing})"
    if columns.options.missing != "drop" or len(chosen) < 2:
        # To drop many rows would change the table: first the columns that lack most.
        advice = (
            f"leave out {listed(many)} with {_EXCLUDE}" if many else f"pass {_DROP}"
        )
        raise DataError(
            f"{columns.where}: {lost} {reason}; {advice}, or fill the cells in pandas"
        )
    columns.notes.append(f"{lost} are left out, since they {reason}.")
    columns.view = columns.view.part(chosen)
    columns.moments = moments_of(columns.view)


def _remarks(columns: Columns, label_names: tuple[str, ...]) -> Iterator[str]:
    """Yield sentences on what looks wrong."""
    listing = columns.listing(BY_OPTION)
    if listing:
        yield f"Left out: {listing}."
    rows = columns.view.num_rows
    moments = columns.moments
    span = moments.high - moments.low
    is_few = moments.whole & (span >= 2) & (span < min(_FEW, rows / 10))
    if is_few.any():
        names = listed(columns.among_used(is_few))
        yield f"Whole numbers of few values are coordinates: {names}; {_EXCLUDE} leaves out years or codes."
    ratio = moments.deviation.max() / moments.deviation.min()
    if ratio > _SCALES and not columns.options.standardize:
        wide = columns.used[np.argmax(moments.deviation)]
        narrow = columns.used[np.argmin(moments.deviation)]
        yield (
            f"The standard deviation of column '{wide}' is {ratio:,.4g} times that of '{narrow}', so that distances "
            "hardly see the latter; --standardize (standardize=True) gives every column the same."
        )
    reach = np.maximum(moments.high - moments.mean, moments.mean - moments.low)
    is_far = reach > _OUTLIER * moments.deviation
    if is_far.any():
        names = listed(columns.among_used(is_far))
        yield f"Entries lie more than {_OUTLIER:g} standard deviations from the mean of their column: {names}."
    if len(label_names) > max(20, rows // 20):
        yield f"The labels hold {len(label_names):,} different values in {rows:,} rows: are they classes?"
    words = [name for name in label_names if name.lower() in MISSING]
    if words:
        yield f"The labels {listed(words)} are taken for classes; --missing-words names words for missing labels."
