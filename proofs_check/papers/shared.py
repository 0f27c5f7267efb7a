"""What the papers share: what a run tries their statements on, and the right-hand side of what holds always."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from jaxkern.bounds import Bound
from proofs_check.papers.populations import Population


@dataclass(frozen=True, eq=False)
class Scope:
    """What a run tries statements on: a user's data in the place of synthetic ones, and more settings where `full`."""

    data: Population | None = None
    full: bool = False

    @property
    def logs(self) -> tuple[float, ...]:
        """Minus the logarithms of the tiny probabilities that are tried."""
        return (10.0, 20.0, 40.0, 80.0) if self.full else (10.0, 40.0)


def always(value: Any, source: str) -> Bound:
    """Return a bound that is claimed to hold always."""
    return Bound(float(value), 1.0, True, source)
