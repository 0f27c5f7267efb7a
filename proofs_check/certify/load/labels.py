"""The classes of the rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from proofs_check.certify.load.cells import MISSING, distinct
from proofs_check.certify.load.columns import Columns
from proofs_check.engine.reading import DataError, as_number, plain


def label_vector(columns: Columns, name: str, vector: np.ndarray) -> None:
    """Make a vector of numbers or text the labels. Raises ValueError for one of something else."""
    import pyarrow as arrow

    rows = columns.view.num_rows
    if vector.shape not in ((rows,), (rows, 1)):
        raise DataError(
            f"{columns.where}: the labels {name!r} have shape {vector.shape}, and X has {rows} row(s)"
        )
    if vector.dtype.kind == "S":
        vector = vector.astype(str)
    cells = arrow.array(vector.ravel().tolist(), from_pandas=True)
    label_column(columns, arrow.chunked_array([cells]))


def label_column(columns: Columns, cells: Any) -> None:
    """Make a column of Arrow the labels: numbers in ascending order, or words in alphabetical order.

    Among numbers the usual words for a missing value are missing labels. Among words they are classes, such as NA for
    Namibia, unless `missing_words` has them.
    """
    values, codes = distinct(cells)
    words = [_word(value) for value in values.to_pylist()]
    missing = {"", *map(str.lower, columns.options.missing_words)}
    usual = missing | MISSING
    is_numeric = all(as_number(w) is not None for w in words if w.lower() not in usual)
    if is_numeric:
        missing = usual
    classes = {word for word in words if word.lower() not in missing}
    ordered = sorted(classes)
    if is_numeric:  # whole numbers that are one double stay in order
        ordered.sort(key=as_number)
    places = {word: i for i, word in enumerate(ordered)}
    index = [places.get(word, -1) for word in words]
    columns.labels = np.array(index, np.int32)[codes], tuple(map(plain, ordered))


def _word(value: Any) -> str:
    """Return a label as text: "1" and "1.0" are one class, and whole numbers of any length stay apart."""
    word = "" if value is None else str(value).strip()
    number = as_number(word)
    if number is None or not number.is_integer() or word.isdigit():
        return word
    return str(int(number))
