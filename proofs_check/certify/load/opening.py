"""Open a user's table."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.certify.load.columns import Options
from proofs_check.certify.load.files import read_file, read_frame, read_matrix
from proofs_check.certify.load.judge import table_of
from proofs_check.certify.load.labels import label_vector
from proofs_check.certify.load.table import Table
from proofs_check.engine.reading import plain


def open_table(path: str | Path, **options: Any) -> Table:
    """Return the table in a `.csv`, `.tsv`, `.txt`, `.csv.gz`, `.parquet`, `.npy` or `.npz` (array X) file.

    Parameters
    ----------
    path : the file. A `.npy` may be larger than memory.
    options : attributes of `Options` by name: columns, labels, target, exclude, keep, standardize, missing, one_hot,
        separator, header, decimal, missing_words.

    Raises
    ------
    DataError
        In one line, if the file or an option is not sound.

    Notes
    -----
    A column is one of numbers if every cell is a number or missing; a column whose cells are true and false, or yes and
    no, is 1 and 0. Columns of text, dates and lists are left out, and so are constant ones, later copies of a column,
    columns without a name, those that count the rows, and those with the name of an id or a target, unless `columns`
    names them or `keep` has them. Everything that is left out or looks wrong is in `left_out` and `notes`. A column in
    which most cells are numbers and some are not is an error. Columns stay in the order of the file.

    Two passes over the data, or four if cells are missing; a few times 8 MiB of memory and 24 bytes a row beyond the
    data, which take no memory in a `.npy`, and at most three quarters of it while other files are read.
    """
    columns = read_file(Path(path), Options(**options))
    return table_of(plain(Path(path).name), columns)


def from_array(
    X: Any,
    *,
    labels: Any = None,
    names: Sequence[str] | None = None,
    source: str = "X",
    **options: Any,
) -> Table:
    """Return the table in an array of real numbers (rows, columns), or in a DataFrame.

    X is an array of NumPy or JAX, or a mapped one, which is not copied, or a DataFrame of pandas or polars, a table of
    Arrow, or another one that narwhals knows, whose cells are read as those of a file. `labels` is a vector (rows,) of
    numbers or text, or the name or number of a column; `names` are the names of the columns of an array, x1, x2, ... by
    default; a DataFrame has its own. The rest is as in `open_table`. Raises ValueError with the same words.
    """
    where = plain(source)
    name = labels if isinstance(labels, str) else None
    choice = Options(labels=name, **options)
    if hasattr(X, "columns"):
        columns = read_frame(where, X, choice)
    else:
        columns = read_matrix(where, np.asarray(X), choice, names)
    if labels is not None and name is None:
        label_vector(columns, "labels", np.asarray(labels))
    return table_of(where, columns)
