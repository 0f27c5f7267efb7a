"""A law on ten points that barely has property (33), and K = x + y for its points: what steps of Section 4 rest on."""

import dataclasses
import functools
import itertools
from collections.abc import Callable

import numpy as np

from jaxkern.bounds import Bound

_HALF = np.array([0.62, 0.90, 1.15, 1.42, 1.72])
_SHARES = np.array([28, 25, 22, 15, 10]) / 200
ATOMS = np.concatenate([-_HALF[::-1], _HALF])
MASSES = np.concatenate([_SHARES[::-1], _SHARES])
"""A centred law with property (33) for c = 1, though not for c = 1.01."""

UNIT = {"lipschitz": 1.0, "omega": 1.0, "scale": 1.0}
"""The constants of K = x + y with noise of one coordinate of this law, or a standard normal one."""


def has_property_33(c: float) -> bool:
    """Tell whether the law has property (33): P(A) <= exp(-c (E d(W, A))^2) for all of its 1023 sets."""
    count = len(ATOMS)
    numbers = np.arange(1, 2**count)
    sets = (numbers[:, None] >> np.arange(count)) & 1
    gaps = np.abs(ATOMS[:, None] - ATOMS)
    distances = np.min(np.where(sets[:, None, :] == 1, gaps, np.inf), axis=2)
    away = distances @ MASSES
    claimed = np.exp(-c * away**2) * (1 + 1e-12)
    return bool(np.all(sets @ MASSES <= claimed))


def sum_errors(num_points: int) -> tuple[float, float]:
    """Return E |K - E K|_F^2 and E |K - E K|_F for K = x + y, by the sum over all points that there may be."""
    choices = np.array(list(itertools.product(range(len(ATOMS)), repeat=num_points)))
    w = ATOMS[choices]
    chances = np.prod(MASSES[choices], axis=1)
    totals = np.sum(w, axis=1)
    norms = np.sqrt(2 * num_points * np.sum(w**2, axis=1) + 2 * totals**2)
    return float(chances @ norms**2), float(chances @ norms)


def bound_under_33(formula: Callable[..., Bound], **sizes: float) -> Bound:
    """Return a bound under property (33) for this law and c = 1; it is valid only if the law has the property."""
    right = formula(**UNIT, c=1.0, **sizes)
    return dataclasses.replace(
        right, valid=bool(right.valid) and _has_property_for_one()
    )


@functools.cache
def _has_property_for_one() -> bool:
    return has_property_33(1.0)
