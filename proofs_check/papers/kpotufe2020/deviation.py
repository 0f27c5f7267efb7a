"""What the claims on the deviation of the empirical covariance for every n share: where they are tried, the control."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jaxkern.bounds import Bound
from proofs_check import controls
from proofs_check.claim import Control, Form, Setting, Tail
from proofs_check.papers.kpotufe2020 import trials
from proofs_check.papers.kpotufe2020.places import Scope, lemma_n, rough, times


def for_every_n(scope: Scope, bound: Callable[[Setting], Bound]) -> dict[str, Any]:
    """Return the corrected form and the controls of a bound on |Sigma_n - Sigma|_HS: n = 1, and large n."""
    # A constant kernel never deviates, and its bound is the second term alone: no control there.
    large = times(1e6, lemma_n)
    faster = controls.scaled(bound, lambda s: s.numbers["n"] ** -0.5)
    return {
        "corrected": Form(
            Tail(trials.covariance_deviation, bound), scope.at(lambda p, tau: 1.0) + scope.at(large), "certified"
        ),
        "controls": (
            Control(
                "a bound that falls like 1/n",
                Tail(trials.covariance_deviation, faster),
                scope.at(large, people=rough(scope)),
                "wrong power",
            ),
        ),
    }
