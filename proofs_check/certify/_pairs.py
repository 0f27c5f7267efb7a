"""The distances of all pairs of rows, counted in bins that a bound for these data can use."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import kernels
from jaxkern.linalg import matmul
from proofs_check.certify._clock import CELLS
from proofs_check.certify._rows import distinct
from proofs_check.certify._table import Table

MOST_ROWS = 100_000
"""Pairs of more rows are not counted: they are 5e9 here."""
_BLOCK = 8192
_TILE = 2048
_OCTAVE = 16
_LOW, _HIGH = 2.0**-9, 36.0
"""Squared distances between which bins are narrow. Outside, the exponents of Theorem F of chen2016 are constant."""
_LEFT_OUT = 255
_LOOK = 0.1
"""Share of the time after which it is judged whether all of it will be enough."""


def edges() -> np.ndarray:
    """Return the lower edges of the bins of squared distances: 0, then 16 an octave from 2^-9 to 36."""
    count = _code(np.float32(_HIGH)) - _code(np.float32(_LOW)) + 1
    steps = np.arange(count)
    return np.concatenate([[0.0], _LOW * 2.0 ** (steps // _OCTAVE) * (1 + steps % _OCTAVE / _OCTAVE)])


def counted_pairs(
    table: Table, kernel: Any, lengthscale: float, kind: np.dtype, center: np.ndarray, until: float
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the lower edges of bins of squared distances, the pairs in each, and a sentence about them."""
    rows, dim = table.rows, table.dim
    total = rows * (rows - 1) // 2
    worst = np.array([0.0]), np.array([float(total)])
    if not isinstance(kernel, kernels.Gaussian):
        return *worst, "distances were not counted: the statement that uses them is about the Gaussian kernel."
    if rows > MOST_ROWS:
        return *worst, f"distances were not counted: {total:,} pairs of more than {MOST_ROWS:,} rows are too many."
    late = *worst, f"distances were not counted: {total:,} pairs would take longer than there was time."
    exact = np.empty((rows, dim))
    try:
        for start, block in blocks(table, until):
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
    counts[0] -= coincident  # copies have a computed distance of at most rounding, and all of that is subtracted
    left_out = f"; {coincident:,} at distance zero are left out" if coincident else ""
    return edges(), counts.astype(float), f"the distances of all {total:,} pairs were counted{left_out}."


def _counted(points: np.ndarray, seconds: float) -> np.ndarray | None:
    """Return the pairs in each bin, (bins,) int64, or None where it would take longer."""
    rows, dim = points.shape
    size = min(_TILE, rows, max(CELLS // dim, 256))
    tiles = -(-rows // size)
    # What product form and rounding of the points may do to |x - y|^2, in units of |x|^2 + |y|^2: a pair may be counted
    # in a lower bin than its own, never in a higher one.
    slack = (dim + 8) * float(np.finfo(points.dtype).eps)
    padded = jnp.asarray(np.concatenate([points, np.zeros((tiles * size - rows, dim), points.dtype)]))
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
        elif spent > seconds or (spent > _LOOK * seconds and spent / (done - 1) * (len(order) - 1) > seconds):
            return None
    counts += np.bincount(np.asarray(waiting).ravel(), minlength=_LEFT_OUT + 1)
    return counts[: len(edges())]


@partial(jax.jit, static_argnames=("rows", "slack"))
def _codes(blocks: jax.Array, i: Any, j: Any, rows: int, slack: float) -> jax.Array:
    """Return the bins of the pairs of two tiles, (size, size) uint8; pairs that are counted elsewhere are left out."""
    X, Y = blocks[i], blocks[j]
    size = X.shape[0]
    kind = X.dtype
    sums = jnp.sum(X * X, axis=1)[:, None] + jnp.sum(Y * Y, axis=1)[None, :]
    squares = (sums - 2 * matmul(X, Y.T)) * (1 - 4 * float(jnp.finfo(kind).eps)) - slack * sums
    integer = jnp.uint32 if kind == jnp.float32 else jnp.uint64
    shift = jnp.finfo(kind).nmant - int(math.log2(_OCTAVE))
    code = (lax.bitcast_convert_type(jnp.maximum(squares, _LOW / 2), integer) >> shift).astype(jnp.int32)
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


def blocks(table: Table, until: float) -> Iterator[tuple[int, np.ndarray]]:
    """Yield all rows in float64, each block with the number of its first row. Raises TimeoutError."""
    size = min(_BLOCK, max(CELLS // table.dim, 1))
    for start in range(0, table.rows, size):
        if time.monotonic() > until:
            raise TimeoutError
        yield start, table.take(np.arange(start, min(start + size, table.rows)), "float64")
