"""Certificates for a user's own data: which map, how many features, what error, with what confidence."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proofs_check.certify._certificate import Certificate
    from proofs_check.certify._certify import certify
    from proofs_check.certify._table import Table, from_array, open_table, rows_for

__all__ = ["Certificate", "Table", "certify", "from_array", "open_table", "rows_for"]

_WHERE = {"Certificate": "_certificate", "certify": "_certify"}


def __getattr__(name: str) -> Any:
    """Import a name when it is used: the command line reads its arguments before JAX is imported."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_WHERE.get(name, '_table')}"), name)
