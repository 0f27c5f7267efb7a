"""What a planner returns, and the search for the smallest size that a statement certifies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from jaxkern import checks
from jaxkern.bounds import Bound

LARGEST = 2**53
"""Sizes beyond this are refused: they are not whole numbers in float64 any more."""

ANY_NUMBER = 1e300
"""Stands for a number of points that is not known: no statement that depends on it helps."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes, and the statement that certifies them.

    Attributes
    ----------
    source : names the statement, as in `Bound`.
    probability : that with which the target is met, at least 1 - delta.
    proved : False where a size rests on a numerical minimum, which none does at present.
    num_frequencies, num_features, num_landmarks, sketch_size : the sizes, None where they do not apply.
    map_bytes, feature_bytes, sketch_bytes, total_bytes : what `memory` counts.
    """

    source: str
    probability: float = 1.0
    proved: bool = True
    num_frequencies: int | None = None
    num_features: int | None = None
    num_landmarks: int | None = None
    sketch_size: int | None = None
    map_bytes: int | None = None
    feature_bytes: int | None = None
    sketch_bytes: int | None = None
    total_bytes: int | None = None


def smallest_size(certificate: Callable[[int], Bound], delta: float) -> int | None:
    """Return a size that is certified while the size below is not: doubling, then bisection.

    Parameters
    ----------
    certificate : a function of a size, such as `lambda m: bounds.fourier.gram_spectral(num_frequencies=m, ...)`.
    delta : failure probability; a size is certified where the bound is valid with probability at least 1 - delta.

    Returns
    -------
    The size, the smallest one where certificates hold from some size on; None if it would exceed 2^53.
    """
    high = 1
    while not certifies(certificate(high), delta):
        high *= 2
        if high > LARGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (
            (low, middle) if certifies(certificate(middle), delta) else (middle, high)
        )
    return high


def smallest(
    certificates: Sequence[Callable[[int], Bound]], delta: float
) -> tuple[int, Bound]:
    """Return the smallest whole number at which one of the certificates holds, and the bound that says so."""
    sizes = [
        (size, certificate(size))
        for certificate in certificates
        if (size := smallest_size(certificate, delta))
    ]
    if not sizes:
        raise ValueError(
            f"eps and delta must be larger: no size below 2^53 is certified, got delta={delta:g}"
        )
    return min(sizes, key=lambda pair: pair[0])


def certifies(bound: Bound, delta: float) -> bool:
    return bool(bound.valid) and bound.probability >= 1 - delta


def static_positive(name: str, value: Any) -> Any:
    """Return a static positive number, or raise."""
    if not checks.is_static(value):
        raise ValueError(f"{name} must be a positive number, got {value!r}")
    return checks.positive(name, value)


def nonnegative(name: str, value: Any) -> np.ndarray:
    """Return a vector of finite numbers that are at least 0, or raise."""
    try:
        array = np.asarray(value, float)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a vector of numbers, got {value!r}") from None
    if array.ndim != 1 or not np.all((array >= 0) & np.isfinite(array)):
        raise ValueError(
            f"{name} must be a vector of finite numbers that are at least 0, got {value!r}"
        )
    return array
