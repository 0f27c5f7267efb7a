"""Certificates for a user's own data: which map, how many features, what error, with what confidence."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofs_check.certify.certificate import Certificate
    from proofs_check.certify.goals.prediction import split
    from proofs_check.certify.load import Table, from_array, open_table, rows_for
    from proofs_check.certify.pipeline import certify
    from proofs_check.certify.request import Request

_HOMES = {
    "Certificate": "certificate",
    "Request": "request",
    "Table": "load",
    "certify": "pipeline",
    "from_array": "load",
    "open_table": "load",
    "rows_for": "load",
    "split": "goals.prediction",
}

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


def __getattr__(name: str) -> Any:
    """Import JAX at the first use only: `proofs-check certify --help` answers without it, and sets its variables."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
