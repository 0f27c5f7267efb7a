"""The right-hand side of what holds always."""

from __future__ import annotations

from typing import Any

from jaxkern.bounds import Bound


def always(value: Any, source: str) -> Bound:
    """Return a bound that is claimed to hold always."""
    return Bound(float(value), 1.0, True, source)
