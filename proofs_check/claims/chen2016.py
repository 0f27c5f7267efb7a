"""Claims of chen2016."""

from __future__ import annotations

from proofs_check.claim import Claim
from proofs_check.populations import Population


def claims(data: Population | None = None, *, full: bool = False) -> list[Claim]:
    """Return the claims, in order."""
    del data, full
    return []
