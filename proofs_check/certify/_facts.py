"""What the data are like to a theorem: spectrum, effective dimensions, diameter and the distances of all pairs."""

from __future__ import annotations

import math
import time
from typing import Any

import jax
import numpy as np
import scipy.linalg

from jaxkern import kernels
from jaxkern.gram import gram
from proofs_check.certify._clock import affordable
from proofs_check.certify._model import Facts
from proofs_check.certify._pairs import blocks, counted_pairs
from proofs_check.certify._table import Table, rows_for

MOST_EIGENVALUES = 500
"""Eigenvalues that are handed on."""


def facts(
    key: Any, table: Table, kernel: Any, lengthscale: float, *, sample: int = 2000, dtype: Any, seconds: float = 60.0
) -> Facts:
    """Measure a table.

    Parameters
    ----------
    key : typed random key, for the sample behind the spectrum.
    table : with at least one row.
    kernel, lengthscale : the kernel, and its lengthscale as a number.
    sample : rows behind the spectrum, at most.
    dtype : float32 or float64, of the products that count pairs, of points less their mean. The rest is in float64.
    seconds : for all of it. A third at most is for the spectrum, of a smaller sample where need be; where the diameter
        would take longer, it is infinite, and where counting the pairs would, or beyond `MOST_ROWS` rows, all of them
        stand in the lowest bin, which is true of any data, and decay["pairs"] says so.

    Returns
    -------
    Facts. decay holds "words" and "pairs", sentences; and, where a fit was possible, "power" and "exponential", the
    rates in i^-power and exp(-exponential i), "power_r2" and "exponential_r2", and "indices", how many eigenvalues the
    fits are about.

    Notes
    -----
    O(sample^2 dim + sample^3) and one pass over the rows; counting is O(rows^2 dim / 2), and memory O(rows dim).
    """
    kind, until = np.dtype(dtype), time.monotonic() + seconds

    def spectrum(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = table.take(rows_for(jax.random.clone(key), table.rows, count), "float64")
        with jax.enable_x64(True):
            K = np.asarray(gram(kernel, points))
        return points, K, np.maximum(scipy.linalg.eigvalsh(K / len(points))[::-1], 0)

    points, K, values = spectrum(affordable(spectrum, min(sample, table.rows), seconds / 3, growth=3.0))
    center = np.mean(points, axis=0)
    diameter = _diameter(table, center, until)
    squared, pairs, words = counted_pairs(table, kernel, float(lengthscale), kind, center, until)
    top = float(values[0])
    return Facts(
        rows=table.rows,
        dim=table.dim,
        kernel=kernel,
        lengthscale=float(lengthscale),
        sampled=len(points),
        kappa=_kappa(kernel, K),
        op_norm=top,
        trace=float(values.sum()),
        trace3=float((values**3).sum()),
        hs_norm=float(np.sqrt((values**2).sum())),
        eigenvalues=values[:MOST_EIGENVALUES],
        diameter=diameter / float(lengthscale),
        squared_distances=squared,
        pairs=pairs,
        effective_dimension=_dimensions(values),
        decay={**_decay(values, kind), "pairs": words},
    )


def _kappa(kernel: Any, K: np.ndarray) -> float:
    """Return sup K(x, x), over the sample where the kernel is unbounded."""
    kappa = float(kernels.kappa(kernel))
    return kappa if math.isfinite(kappa) else float(np.max(np.diag(K)))


def _dimensions(values: np.ndarray) -> dict[str, float]:
    """Return effective dimensions by name; 0 where the kernel is zero."""
    top = float(values[0])
    if top <= 0:
        return {}
    ratios = values / top
    dimensions = {"trace / op_norm": ratios.sum(), "trace3 / op_norm^3": (ratios**3).sum()}
    for share in (0.1, 0.01, 0.001):
        dimensions[f"sum l / (l + {share:g} op_norm)"] = (ratios / (ratios + share)).sum()
    return {name: float(value) for name, value in dimensions.items()}


def _decay(values: np.ndarray, kind: np.dtype) -> dict[str, Any]:
    """Return how the eigenvalues fall: least squares of their logarithm against log i and against i.

    Eigenvalues near rounding are left out, and so are three quarters of them: the last ones of a sample are not those
    of the table.
    """
    count = len(values)
    above = values > 8 * count * float(np.finfo(kind).eps) * values[0]
    last = min(int(np.argmin(above)) if not above.all() else count, max(count // 4, 4))
    if last < 4:
        return {"words": "the eigenvalues fall below rounding too soon for a fit."}
    index, logs = np.arange(1, last + 1), np.log(values[:last])
    (power, power_r2), (rate, rate_r2) = _slope(np.log(index), logs), _slope(index, logs)
    one, other = f"i^-{power:.2g} (R^2 {power_r2:.3f})", f"exp(-{rate:.2g} i) (R^2 {rate_r2:.3f})"
    best, rest = (one, other) if power_r2 >= rate_r2 else (other, one)
    return {
        "words": f"eigenvalues 1 to {last} fall about like {best}; {rest} fits less well.",
        "power": power,
        "power_r2": power_r2,
        "exponential": rate,
        "exponential_r2": rate_r2,
        "indices": last,
    }


def _slope(x: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the negative slope of the line through points by least squares, and the share of variance explained."""
    x, y = x - np.mean(x), y - np.mean(y)
    total = float(y @ y)
    slope = float(x @ y) / float(x @ x)
    return -slope, (1 - float(np.sum((y - slope * x) ** 2)) / total if total > 0 else 1.0)


def _diameter(table: Table, center: np.ndarray, until: float) -> float:
    """Return an upper bound of the largest distance: by the distances to a centre, and by the bounding box."""
    low, high, radius = np.full(len(center), np.inf), np.full(len(center), -np.inf), 0.0
    try:
        for _, block in blocks(table, until):
            low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
            radius = max(radius, float(np.sum((block - center) ** 2, axis=1).max()))
    except TimeoutError:
        return math.inf
    return min(2 * math.sqrt(radius), float(np.linalg.norm(high - low))) * (1 + 1e-9)
