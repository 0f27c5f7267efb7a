"""Certificates for a user's own data: which map, how many features, what error, with what confidence."""

from proofs_check.certify._certificate import Certificate
from proofs_check.certify._certify import certify
from proofs_check.certify._prediction import split
from proofs_check.certify._request import Request
from proofs_check.certify.load.opening import from_array, open_table
from proofs_check.certify.load.table import Table, rows_for

__all__ = [
    "Certificate",
    "Request",
    "Table",
    "certify",
    "from_array",
    "open_table",
    "rows_for",
    "split",
]
