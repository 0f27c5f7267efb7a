"""What the statements of amini2021 are tried on."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from proofs_check.papers import shared
from proofs_check.papers.amini2021 import trials


@dataclass(frozen=True, eq=False)
class Scope(shared.Scope):
    """Models with a Gaussian kernel, and failure probabilities.

    On a user's table the statements about Gaussian kernels and about Lemma 1 are tried around its rows; the others,
    which need clusters, special kernels or special laws, stay as they are.
    """

    @property
    def deltas(self) -> tuple[float, ...]:
        """Failure probabilities."""
        return (0.05, 0.01) if self.full else (0.05,)

    @cached_property
    def models(self) -> tuple[trials.Model, ...]:
        """Points with isotropic noise and a Gaussian kernel."""
        return trials.gaussian_models(self.data)
