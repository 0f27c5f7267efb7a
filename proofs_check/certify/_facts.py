"""What the data are like to a theorem: spectrum, effective dimensions, diameter and the distances of all pairs."""

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax

from jaxkern import kernels
from jaxkern.gram import gram
from jaxkern.linalg import matmul
from proofs_check.certify import _work
from proofs_check.certify._clock import CELLS, affordable
from proofs_check.certify._model import Facts
from proofs_check.certify._rows import compiled, distinct
from proofs_check.certify.load.table import Table, rows_for

MOST_EIGENVALUES = 500
"""Eigenvalues that are handed on."""
MOST_ROWS = 100_000
"""Pairs of more rows are not counted: they are 5e9 here."""
_BLOCK = 8192
_TILE = 2048
_OCTAVE = 16
_LOW, _HIGH = 2.0**-9, 36.0
"""Squared distances between which bins are narrow. Outside, the exponents of Theorem F of chen2016 are constant."""
_LEFT_OUT = 255
_LATE = "would have taken longer than there was time"
_LOOK = 0.1
"""Share of the time after which it is judged whether all of it will be enough."""


def facts(
    key: Any,
    table: Table,
    kernel: Any,
    lengthscale: float,
    *,
    sample: int = 2000,
    dtype: Any,
    seconds: float = 60.0,
) -> Facts:
    """Measure a table; the spectrum is that of `sample` rows at most, which `key` draws.

    `dtype` is that of the products that count pairs, of points less their mean; the rest is in float64. A third of
    `seconds` at most is for the spectrum, of a smaller sample where need be. Where the diameter takes longer, it
    is infinite, and where counting the pairs does, or beyond `MOST_ROWS` rows, all of them stand in the lowest bin,
    which is true of any data, and decay["pairs"] says so. decay["words"] is a sentence about the eigenvalues; where a
    fit was possible, the rates in i^-power and exp(-exponential i) stand there with their R^2.

    O(sample^2 dim + sample^3) and one pass over the rows; counting is O(rows^2 dim / 2), and memory O(rows dim).
    """
    kind, until = np.dtype(dtype), time.monotonic() + seconds

    def spectrum(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = table.take(
            rows_for(jax.random.clone(key), table.rows, count), "float64"
        )
        with jax.enable_x64(True):
            K = np.asarray(gram(kernel, points))
        return points, K, np.maximum(scipy.linalg.eigvalsh(K / len(points))[::-1], 0)

    # A ninth of the time by the model, and a third by the clock: what others do on this machine decides nothing.
    planned = min(
        sample, table.rows, max(int((seconds / 9 / _work.EIGEN) ** (1 / 3)), 256)
    )
    points, K, values = spectrum(affordable(spectrum, planned, seconds / 3, growth=3.0))
    center = np.mean(points, axis=0)
    diameter = _diameter(table, center, until)
    counting = table.rows**2 / 2 * (table.dim * _work.MULTIPLY + _work.COSINE)
    squared, pairs, words = _counted_pairs(
        table,
        kernel,
        float(lengthscale),
        kind,
        center,
        until if counting <= seconds / 3 else None,
    )
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
        complete=len(points) == planned
        and math.isfinite(diameter)
        and _LATE not in words,
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
    dimensions = {
        "trace / op_norm": ratios.sum(),
        "trace3 / op_norm^3": (ratios**3).sum(),
    }
    for share in (0.1, 0.01, 0.001):
        dimensions[f"sum l / (l + {share:g} op_norm)"] = (
            ratios / (ratios + share)
        ).sum()
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
    (power, power_r2), (rate, rate_r2) = (
        _slope(np.log(index), logs),
        _slope(index, logs),
    )
    one, other = (
        f"i^-{power:.2g} (R^2 {power_r2:.3f})",
        f"exp(-{rate:.2g} i) (R^2 {rate_r2:.3f})",
    )
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
    return -slope, (
        1 - float(np.sum((y - slope * x) ** 2)) / total if total > 0 else 1.0
    )


def _diameter(table: Table, center: np.ndarray, until: float) -> float:
    """Return an upper bound of the largest distance: by the distances to a centre, and by the bounding box."""
    low, high, radius = np.full(len(center), np.inf), np.full(len(center), -np.inf), 0.0
    try:
        for _, block in _blocks(table, until):
            low, high = (
                np.minimum(low, block.min(axis=0)),
                np.maximum(high, block.max(axis=0)),
            )
            radius = max(radius, float(np.sum((block - center) ** 2, axis=1).max()))
    except TimeoutError:
        return math.inf
    return min(2 * math.sqrt(radius), float(np.linalg.norm(high - low))) * (1 + 1e-9)


# The distances of all pairs


def edges() -> np.ndarray:
    """Return the lower edges of the bins of squared distances: 0, then 16 an octave from 2^-9 to 36."""
    count = _code(np.float32(_HIGH)) - _code(np.float32(_LOW)) + 1
    steps = np.arange(count)
    return np.concatenate(
        [[0.0], _LOW * 2.0 ** (steps // _OCTAVE) * (1 + steps % _OCTAVE / _OCTAVE)]
    )


def _counted_pairs(
    table: Table,
    kernel: Any,
    lengthscale: float,
    kind: np.dtype,
    center: np.ndarray,
    until: float | None,
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the lower edges of bins of squared distances, the pairs in each, and a sentence about them."""
    rows, dim = table.rows, table.dim
    total = rows * (rows - 1) // 2
    worst = np.array([0.0]), np.array([float(total)])
    if not isinstance(kernel, kernels.Gaussian):
        return (
            *worst,
            "distances were not counted: the statement that uses them is about the Gaussian kernel.",
        )
    if rows > MOST_ROWS:
        return (
            *worst,
            f"distances were not counted: {total:,} pairs of more than {MOST_ROWS:,} rows are too many.",
        )
    if until is None:
        return (
            *worst,
            f"distances were not counted: {total:,} pairs would take longer than there is time.",
        )
    late = *worst, f"distances were not counted: {total:,} pairs {_LATE}."
    exact = np.empty((rows, dim))
    try:
        for start, block in _blocks(table, until):
            exact[start : start + len(block)] = block
    except TimeoutError:
        return late
    copies = distinct(exact)[1]
    coincident = int(np.sum(copies * (copies - 1) // 2))
    points = np.empty((rows, dim), kind)
    for start in range(0, rows, _BLOCK):
        part = slice(start, start + _BLOCK)
        points[part] = (exact[part] - center) / lengthscale
    counts = _counted(points, until - time.monotonic())
    if counts is None:
        return late
    counts[0] -= (
        coincident  # copies have a computed distance of at most rounding, and all of that is subtracted
    )
    left_out = f"; {coincident:,} at distance zero are left out" if coincident else ""
    return (
        edges(),
        counts.astype(float),
        f"the distances of all {total:,} pairs were counted{left_out}.",
    )


def _counted(points: np.ndarray, seconds: float) -> np.ndarray | None:
    """Return the pairs in each bin, (bins,) int64, or None where it would take longer."""
    rows, dim = points.shape
    size = min(_TILE, rows, max(CELLS // dim, 256))
    tiles = -(-rows // size)
    # What product form and rounding of the points may do to |x - y|^2, in units of |x|^2 + |y|^2: a pair may be counted
    # in a lower bin than its own, never in a higher one.
    slack = (dim + 8) * float(np.finfo(points.dtype).eps)
    padded = jnp.asarray(
        np.concatenate([points, np.zeros((tiles * size - rows, dim), points.dtype)])
    )
    padded = padded.reshape(tiles, size, dim)
    counts = np.zeros(_LEFT_OUT + 1, np.int64)
    waiting: Any = None
    order = [(i, j) for i in range(tiles) for j in range(i, tiles)]
    started = time.monotonic()
    for done, (i, j) in enumerate(order):
        if seconds <= 0:
            return None
        codes = _codes(padded, i, j, rows, slack)
        if waiting is not None:  # counted on the host while the next tile is computed
            counts += np.bincount(np.asarray(waiting).ravel(), minlength=_LEFT_OUT + 1)
        waiting = codes
        spent = time.monotonic() - started
        if done == 1:
            started = time.monotonic()  # the first tile compiles
        elif spent > seconds or (
            spent > _LOOK * seconds and spent / (done - 1) * (len(order) - 1) > seconds
        ):
            return None
    counts += np.bincount(np.asarray(waiting).ravel(), minlength=_LEFT_OUT + 1)
    return counts[: len(edges())]


@partial(compiled, static_argnames=("rows", "slack"))
def _codes(blocks: jax.Array, i: Any, j: Any, rows: int, slack: float) -> jax.Array:
    """Return the bins of the pairs of two tiles, (size, size) uint8; pairs that are counted elsewhere are left out."""
    X, Y = blocks[i], blocks[j]
    size = X.shape[0]
    kind = X.dtype
    sums = jnp.sum(X * X, axis=1)[:, None] + jnp.sum(Y * Y, axis=1)[None, :]
    squares = (sums - 2 * matmul(X, Y.T)) * (
        1 - 4 * float(jnp.finfo(kind).eps)
    ) - slack * sums
    integer = jnp.uint32 if kind == jnp.float32 else jnp.uint64
    shift = jnp.finfo(kind).nmant - int(math.log2(_OCTAVE))
    code = (
        lax.bitcast_convert_type(jnp.maximum(squares, _LOW / 2), integer) >> shift
    ).astype(jnp.int32)
    first = _code(np.asarray(_LOW, kind))
    bins = jnp.clip(code - first + 1, 0, len(edges()) - 1)
    a, b = (k * size + jnp.arange(size, dtype=jnp.int32) for k in (i, j))
    counted = (a[:, None] < b[None, :]) & (b[None, :] < rows)
    return jnp.where(counted, bins, _LEFT_OUT).astype(jnp.uint8)


def _code(value: np.ndarray | np.floating) -> int:
    """Return the bits of a number down to the fourth of its mantissa, as an integer: equal steps within an octave."""
    kind = value.dtype
    integer = np.uint32 if kind == np.float32 else np.uint64
    return int(value.view(integer)) >> (np.finfo(kind).nmant - int(math.log2(_OCTAVE)))


def _blocks(table: Table, until: float) -> Iterator[tuple[int, np.ndarray]]:
    """Yield all rows in float64, each block with the number of its first row. Raises TimeoutError."""
    size = min(_BLOCK, max(CELLS // table.dim, 1))
    for start in range(0, table.rows, size):
        if time.monotonic() > until:
            raise TimeoutError
        yield (
            start,
            table.take(np.arange(start, min(start + size, table.rows)), "float64"),
        )
