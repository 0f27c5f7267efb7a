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
FEW = 20
"""Text of at most so many different values may be categories."""
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity|nan)$"
_ODD = r"^[+-]?\d[\d.,']* ?%$|^[+-]?[\d.']*,[\d.,']*([eE][+-]?\d+)?$"  # 5% or 1,234
_TRUTHS = (["false", "true"], ["no", "yes"])


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Attributes
    ----------
    numbers : (rows,) float64, NaN for a missing cell; None for a column that holds no numbers.
    reason : what it holds instead, such as "text, such as 'red'"; "" for numbers.
    fault : what must be changed in the file, if most cells are numbers and some are not; "" for other columns.
    categories : whether it is text of few values.
    truths : whether the numbers stand for words, such as yes and no.
    rounded : whether whole numbers are so large that they are rounded.
    """

    numbers: np.ndarray | None = None
    reason: str = ""
    fault: str = ""
    categories: bool = False
    truths: bool = False
    rounded: bool = False


def column_of(cells: Any, decimal: str = ".", missing: Sequence[str] = ()) -> Column:
    """Return a chunked array of Arrow as a column.

    A column of text is one of numbers if every cell is a number or missing. With `decimal` "," a point is no part of
    a number. `missing` are words for missing cells beside the usual ones.
    """
    import pyarrow as arrow
    from pyarrow import types

    kind = cells.type
    if types.is_boolean(kind):
        return Column(_numbers(cells), truths=True)
    if types.is_integer(kind):
        numbers = _numbers(cells)
        return Column(numbers, rounded=_beyond(numbers))
    if types.is_floating(kind) or types.is_decimal(kind) or types.is_null(kind):
        return Column(_numbers(cells))
    if types.is_temporal(kind):
        return Column(reason=f"dates, such as '{_first(cells)}'")
    if not (types.is_dictionary(kind) or is_text(kind)):
        return Column(reason=plain(kind))
    words = arrow.array({*MISSING, *(word.lower() for word in missing)}, arrow.string())
    if not types.is_dictionary(kind):
        try:
            return _plain(cells, decimal, words)
        except arrow.ArrowInvalid:  # some cell is no number
            pass
    return _text(*distinct(cells), decimal, words)


def is_text(kind: Any) -> bool:
    """Return whether a type of Arrow is text."""
    from pyarrow import types

    return types.is_string(kind) or types.is_large_string(kind)


def distinct(cells: Any) -> tuple[Any, np.ndarray]:
    """Return the different cells of a column, and for every row the number of its cell among them, -1 for none."""
    import pyarrow as arrow

    if not arrow.types.is_dictionary(cells.type):
        cells = cells.dictionary_encode()
    cells = cells.unify_dictionaries().combine_chunks()
    # Indices may be unsigned.
    codes = cells.indices.cast(arrow.int64()).fill_null(-1)
    return cells.dictionary, codes.to_numpy(zero_copy_only=False)


def _numbers(cells: Any) -> np.ndarray:
    import pyarrow as arrow

    return np.asarray(cells.cast(arrow.float64(), safe=False))


def _plain(cells: Any, decimal: str, missing: Any) -> Column:
    """Return a column of text whose cells are numbers. Raises ArrowInvalid if some are not."""
    import pyarrow.compute as compute

    text, is_missing = _trimmed(cells, missing)
    present = compute.if_else(is_missing, None, _pointed(text, decimal))
    if present.null_count == len(present):
        return Column(reason="no number")
    numbers = _numbers(present)
    return Column(numbers, rounded=_beyond(numbers) and _holds_long(text))


def _text(dictionary: Any, codes: np.ndarray, decimal: str, missing: Any) -> Column:
    """Return a column of text, of which `dictionary` holds the different cells."""
    import pyarrow as arrow
    import pyarrow.compute as compute

    try:
        words = dictionary.cast(arrow.large_string())
    except arrow.ArrowNotImplementedError:  # such as intervals
        words = arrow.array(map(str, dictionary.to_pylist()), arrow.large_string())
    text, is_missing = _trimmed(words, missing)
    times = np.bincount(codes[codes >= 0], minlength=len(words))
    present = ~_mask(is_missing) & (times > 0)
    pointed = _pointed(text, decimal)
    is_number = present & _mask(_matches(pointed, _NUMBER))
    is_odd = present & ~is_number & _mask(_matches(text, f"{_ODD}|{_NUMBER}"))
    total = times[present].sum()

    def example(which: np.ndarray) -> str:
        rows = np.append(which, False)[codes]
        return plain(text[int(codes[np.argmax(rows)])].as_py(), 30)

    if not total:
        return Column(reason="no number")
    if times[is_number].sum() == total:
        numbers = _numbers(compute.if_else(arrow.array(is_number), pointed, None))
        numbers = np.append(numbers, np.nan)[codes]
        return Column(numbers, rounded=_beyond(numbers) and _holds_long(text))
    for pair in _TRUTHS:
        values = compute.index_in(
            compute.utf8_lower(text), arrow.array(pair, text.type)
        )
        if sorted(set(values.to_numpy(zero_copy_only=False)[present])) == [0, 1]:
            numbers = np.append(_numbers(values), np.nan)
            numbers[:-1][~present] = np.nan
            return Column(numbers[codes], truths=True)
    if 2 * times[is_number | is_odd].sum() > total:
        if is_odd.any():
            odd = example(is_odd)
            comma = decimal == "." and "%" not in odd
            written = "with commas, such as" if comma else "that are written as"
            return Column(fault=f"holds numbers {written} '{odd}'")
        others = present & ~is_number
        return Column(
            fault=f"holds {times[others].sum():,} cells of text among {total:,}, such as '{example(others)}'"
        )
    few = np.count_nonzero(present) <= FEW
    return Column(reason=f"text, such as '{example(present)}'", categories=bool(few))


def _trimmed(words: Any, missing: Any) -> tuple[Any, Any]:
    """Return words without white space around them, and which of them stand for a missing cell."""
    import pyarrow.compute as compute

    text = compute.utf8_trim_whitespace(words)
    lowered = compute.utf8_lower(text)
    return text, compute.is_in(lowered, value_set=missing.cast(lowered.type))


def _pointed(text: Any, decimal: str) -> Any:
    """Return text with decimal points. Points that are no decimal points become what is no part of a number."""
    import pyarrow.compute as compute

    if decimal == ".":
        return text
    return compute.replace_substring(
        compute.replace_substring(text, ".", "_"), ",", "."
    )


def _matches(text: Any, pattern: str) -> Any:
    import pyarrow.compute as compute

    return compute.match_substring_regex(text, pattern)


def _mask(matches: Any) -> np.ndarray:
    return np.asarray(matches.fill_null(False).to_numpy(zero_copy_only=False), bool)


def _beyond(numbers: np.ndarray) -> bool:
    return bool(np.any(np.abs(numbers) >= LARGEST_WHOLE))


def _holds_long(text: Any) -> bool:
    """Return whether some cell is a whole number of more digits than a double holds."""
    import pyarrow.compute as compute

    return bool(compute.any(_matches(text, r"^[+-]?\d{16,}$")).as_py())


def _first(cells: Any) -> str:
    present = cells.drop_null()
    return plain(present[0].as_py(), 30) if len(present) else "nothing"
