"""A column of Arrow as numbers, or what it holds instead of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from proofs_check.engine.reading import plain

MISSING = frozenset({"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none"})
"""Words for a missing value, in lower case."""
LARGEST_WHOLE = 2**53
"""From here on not every whole number is a double."""
ROUNDED = "holds whole numbers beyond 2^53, which would be rounded (subtract the smallest one in pandas)"
_FEW = 20  # different values of text that may become one-hot columns
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
_NUMERIC = rf"{_NUMBER}|^[+-]?[\d.,']*\d[\d.,']*([eE][+-]?\d+)? ?%?$"  # 5% or 1,234
_LONG = r"^[+-]?\d{16,}$"
_TRUTHS = {"false", "true"}, {"no", "yes"}


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    numbers : (rows,) float64, NaN for a cell that is missing or not a number; None if there is a reason.
    reason : what it holds instead of numbers, such as "text, such as 'red'".
    fault : what must be changed in the file before the column can be used.
    truths : whether the numbers stand for words, such as yes and no.
    values : the different values of text, if they are few, in alphabetical order.
    codes : (rows,) int64, an index into `values`, -1 for a missing cell; None if there are no values.
    """

    numbers: np.ndarray | None = None
    reason: str = ""
    fault: str = ""
    truths: bool = False
    values: tuple[str, ...] = ()
    codes: np.ndarray | None = None


def column_of(cells: Any, decimal: str, missing_words: Sequence[str]) -> Column:
    """Return a chunked array of Arrow as a column.

    A column of text is one of numbers if every cell is a number or missing.
    """
    import pyarrow as arrow
    from pyarrow import types

    kind = cells.type
    if types.is_dictionary(kind):
        kind = kind.value_type
    if is_text(kind):
        return _text(cells, decimal, [*MISSING, *map(str.lower, missing_words)])
    if cells.null_count == len(cells):
        return Column(reason="no number")
    # Types of pandas, such as periods, could be cast to numbers too, and are none.
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if not (is_number or types.is_boolean(kind) or types.is_decimal(kind)):
        return Column(reason="dates" if types.is_temporal(kind) else plain(kind))
    numbers = np.asarray(cells.cast(kind).cast(arrow.float64(), safe=False))
    fault = ROUNDED if types.is_integer(kind) and _is_large(numbers) else ""
    return Column(numbers, fault=fault, truths=types.is_boolean(kind))


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is text."""
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def distinct(cells: Any) -> tuple[Any, np.ndarray]:
    """Return the different cells of a column as an array of Arrow, maybe with None, and the place of every row there.

    A dictionary may have words that no row has: they are left away.
    """
    import pyarrow as arrow

    if not arrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    cells = cells.unify_dictionaries().combine_chunks()
    indices = cells.indices.cast(arrow.int64())  # they may be unsigned
    indices = indices.fill_null(-1).to_numpy(zero_copy_only=False)
    used, codes = np.unique(indices, return_inverse=True)
    return cells.dictionary.take(arrow.array(used, mask=used < 0)), codes


def _text(cells: Any, decimal: str, missing: list[str]) -> Column:
    """Return a column of text. A long text that many rows share is not copied."""
    import pyarrow as arrow

    words, codes = cells, slice(None)
    if arrow.types.is_dictionary(cells.type):
        words, codes = distinct(cells)
    try:
        return _numbers(*_present(words, decimal, missing), codes)
    except arrow.ArrowInvalid:  # some cell is not a number
        words, codes = distinct(cells)
        return _words(*_present(words, decimal, missing), codes)


def _present(words: Any, decimal: str, missing: list[str]) -> tuple[Any, Any]:
    """Return words without white space around them, None for missing ones, and the same with decimal points."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    text = compute.utf8_trim_whitespace(words)
    lowered = compute.utf8_lower(text)
    is_missing = compute.is_in(lowered, value_set=arrow.array(missing, lowered.type))
    text = compute.if_else(is_missing, None, text)
    if decimal == ".":
        return text, text
    # A point is then no part of a number.
    pointed = compute.replace_substring(text, ".", "_")
    return text, compute.replace_substring(pointed, ",", ".")


def _numbers(text: Any, pointed: Any, codes: Any) -> Column:
    """Return words that are numbers or missing as a column. Raises ArrowInvalid if some are not."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    if text.null_count == len(text):
        return Column(reason="no number")
    numbers = np.asarray(pointed.cast(arrow.float64()))
    is_rounded = _is_large(numbers) and compute.any(_matches(text, _LONG)).as_py()
    return Column(numbers[codes], fault=ROUNDED if is_rounded else "")


def _words(text: Any, pointed: Any, codes: np.ndarray) -> Column:
    """Return a column of different words, some of which are not numbers."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    rows = np.bincount(codes)
    is_present = np.asarray(text.is_valid())
    is_word = is_present & ~np.asarray(_matches(pointed, _NUMBER))
    example = f"such as '{plain(text[int(np.argmax(is_word))], 30)}'"
    total = rows[is_present].sum()
    if 2 * rows[np.asarray(_matches(text, _NUMERIC))].sum() > total:
        fault = f"holds {rows[is_word].sum():,} cells that are not numbers among {total:,}, {example}"
        return Column(np.full(len(codes), np.nan), fault=fault)
    reason = f"text, {example}"
    different = text.drop_null().unique()
    if len(different) > _FEW:
        return Column(reason=reason)
    lowered = {*compute.utf8_lower(different).to_pylist()}
    is_truth = lowered in _TRUTHS
    if is_truth:
        text = compute.utf8_lower(text)
    values = sorted(lowered if is_truth else different.to_pylist())
    places = compute.index_in(text, value_set=arrow.array(values, text.type))
    codes = np.asarray(places.fill_null(-1))[codes]
    if is_truth:
        return Column(np.where(codes < 0, np.nan, codes), truths=True)
    # Values that are not plain could not be told apart as names.
    is_plain = values == [plain(value) for value in values]
    return Column(reason=reason, values=tuple(values) if is_plain else (), codes=codes)


def _matches(text: Any, pattern: str) -> Any:
    """Return for every word whether it has a pattern, False for None."""
    import pyarrow.compute as compute

    return compute.match_substring_regex(text, pattern).fill_null(False)


def _is_large(numbers: np.ndarray) -> bool:
    return bool(np.any(np.abs(numbers) >= LARGEST_WHOLE))
