"""Data of the cases, and how results are compared."""

from typing import Any

import numpy as np

KEPT = 500
"""Rows of a result that are compared."""

ROUNDING = 1e-3
"""Largest difference of results over their largest entry, for the same formula in float32."""


def points(rows: int, dim: int, seed: int = 0) -> np.ndarray:
    """Return standard normal points in float32."""
    return np.random.default_rng(seed).standard_normal((rows, dim), dtype=np.float32)


def lengthscale(dim: int) -> float:
    """Return one at which kernel values of standard normal points are neither 0 nor 1."""
    return float(dim**0.5)


def gamma(scale: float) -> float:
    """Return the parameter of scikit-learn."""
    return 1 / (2 * scale**2)


def head(result: Any) -> np.ndarray:
    """Keep the first rows of a result."""
    return np.array(result[:KEPT])


def difference(found: Any, wanted: Any) -> float:
    """Return the largest difference over the largest entry."""
    wanted = np.asarray(wanted, np.float64)
    return float(
        np.max(np.abs(np.asarray(found, np.float64) - wanted)) / np.max(np.abs(wanted))
    )


def exact_gram(X: np.ndarray, Y: np.ndarray, scale: float) -> np.ndarray:
    """Return the Gram matrix of the Gaussian kernel in float64."""
    X, Y = X.astype(np.float64), Y.astype(np.float64)
    gaps = np.sum(X * X, axis=1)[:, None] + np.sum(Y * Y, axis=1)[None, :] - 2 * X @ Y.T
    return np.exp(-np.maximum(gaps, 0) / (2 * scale**2))


def clouds(
    rows: int, dim: int, count: int, spread: float, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return standard normal points around `count` normal centres of this spread, and whose each is."""
    rng = np.random.default_rng(seed)
    centers = spread * rng.standard_normal((count, dim))
    labels = rng.integers(count, size=rows)
    return (centers[labels] + rng.standard_normal((rows, dim))).astype(
        np.float32
    ), labels
