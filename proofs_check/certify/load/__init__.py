"""Read a user's table: the columns that are coordinates, the labels, and what was left out and why."""

from proofs_check.certify.load.opening import from_array, open_table
from proofs_check.certify.load.table import Table, moments_of, rows_for
from proofs_check.engine.reading import DataError

__all__ = [
    "DataError",
    "Table",
    "from_array",
    "moments_of",
    "open_table",
    "rows_for",
]
