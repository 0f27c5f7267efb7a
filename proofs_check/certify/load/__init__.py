"""Read a user's table: the columns that are coordinates, the labels, and what was left out and why."""

from proofs_check.certify.load.opening import from_array, open_table
from proofs_check.certify.load.table import Table, rows_for

__all__ = ["Table", "from_array", "open_table", "rows_for"]
