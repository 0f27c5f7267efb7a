"""What the statements of ghashami2016 are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from proofs_check.papers import shared
from proofs_check.papers.ghashami2016 import trials


@dataclass(frozen=True, eq=False)
class Scope(shared.Scope):
    """Clouds of points, streams of them, and failure probabilities.

    On a user's table, what is said of all Gram matrices and all streams of features is tried on its rows; the
    counterexamples, and what is about a number rather than about points, stay as they are.
    """

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (0.05, 0.02) if self.full else (0.05,)

    @cached_property
    def clouds(self) -> tuple[trials.Cloud, ...]:
        """32 points of each kind."""
        return trials.clouds(self.data)

    @cached_property
    def streams(self) -> tuple[trials.Cloud, ...]:
        """96 points of each kind, in the order in which a stream brings them."""
        return trials.clouds(self.data, 96)
