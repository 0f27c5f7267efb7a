"""What statements share: plans, the smallest size that a bound certifies, and what rounding leaves of eps."""

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from jaxkern.bounds import Bound, sketching
from jaxkern.plan import smallest_size
from proofs_check.certify._maps import FOURIER, LANDMARKS_A_FEATURE
from proofs_check.certify._model import Demand, Facts, Rounding

NYSTROM = "Theorem G of docs/theory/ghashami2016.md"
T = TypeVar("T")
LARGEST = 2**53
"""From here on a float64 does not tell a size from the next one."""


def planned(make: Callable[[], T]) -> tuple[T | None, str]:
    """Return what a planner returns, or None and why there is no plan."""
    try:
        return make(), ""
    except ValueError as error:
        return None, str(error)


def smallest(
    statement: Callable[[int], Bound], eps: float, delta: float
) -> tuple[int, str]:
    """Return the smallest size for which a statement gives an error of at most eps, and its source."""

    def judged(size: int) -> Bound:
        bound = statement(size)
        # exp(-log(1 / delta)) may round to the other side of delta.
        return Bound(
            bound.value,
            bound.probability + 1e-12,
            bound.valid and bound.value <= eps,
            bound.source,
        )

    size = smallest_size(judged, delta)
    return (LARGEST if size is None else size), statement(size or 1).source


def needed_landmarks(facts: Facts, eps: float, delta: float) -> int | None:
    """Return the fewest landmarks n for which Theorem E of kpotufe2020 is at most eps op_norm^3, with d = n / 4."""
    if facts.op_norm <= 0:
        return None
    names = "kappa", "op_norm", "trace", "trace3", "hs_norm"
    moments: dict[str, Any] = {name: getattr(facts, name) for name in names}

    def certificate(n: int) -> Bound:
        d = max(n // LANDMARKS_A_FEATURE, 1)
        bound = sketching.inner_products_every_n(
            **moments, n=n, d=d, tau=math.log(4 / delta) + 1e-12
        )
        return Bound(
            bound.value,
            bound.probability,
            bound.valid and bound.value <= eps * facts.op_norm**3,
            bound.source,
        )

    return smallest_size(certificate, delta)


def share_of_pairs(
    facts: Facts, low: float = 0.0, high: float = math.inf
) -> float | None:
    """Return about the share of the counted pairs at distances within [low, high), or None where none was counted."""
    if not facts.has_pairs:
        return None
    inside = (facts.squared_distances >= low**2) & (facts.squared_distances < high**2)
    return float(np.sum(facts.pairs[inside]) / max(np.sum(facts.pairs), 1.0))


def rounding_share(rounding: Rounding, goal_name: str, name: str) -> float:
    """Return what rounding may add to the error of a map, as far as a statement is about the goal."""
    gram = rounding.gram + (0.0 if name in FOURIER else rounding.eigen)
    return gram if goal_name == "spectral" else rounding.pairs


def lost(name: str, eps: float, share: float, dtype: str) -> Demand | None:
    """Return why no statement holds for a map in some precision, None where rounding leaves something of eps."""
    if share < eps:
        return None
    why = f"Rounding in {dtype} may change these data, or pairs that were not looked at, by all of {eps:.2g}"
    more = "; float64 would leave more" if dtype == "float32" else ""
    return Demand(name, "none", f"Statements are about exact numbers. {why}{more}.")
