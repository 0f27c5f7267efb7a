"""What the data are like to a theorem: spectrum, effective dimensions, diameter and the distances of all pairs."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
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
from proofs_check.certify._model import Facts
from proofs_check.certify._table import rows_for

Take = Callable[[np.ndarray], Any]

MOST_ROWS = 100_000
"""Beyond, pairs are not counted: they are 5e9 here."""
KEPT = 500
"""Eigenvalues that are handed on."""
CELLS = 2**24
"""Numbers of a wide table that are looked at, by so many at least, before the next look at the clock."""
_BLOCK = 8192
_TILE = 2048
_OCTAVE = 16
_LOW, _HIGH = 2.0**-9, 36.0
"""Squared distances between which bins are narrow. Outside, the exponents of Theorem F of chen2016 are constant."""
_LEFT_OUT = 255
_LOOK = 0.1
"""Share of the time after which it is known whether it will do."""


def facts(
    key: Any,
    take: Take,
    rows: int,
    dim: int,
    kernel: Any,
    lengthscale: float,
    *,
    sample: int = 2000,
    dtype: Any,
    seconds: float = 60.0,
) -> Facts:
    """Measure a table.

    Parameters
    ----------
    key : typed random key, for the sample behind the spectrum.
    take : indices (s,) -> rows (s, dim) of the table, in float64.
    rows, dim : size of the table, at least one row.
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
    kind = np.dtype(dtype)
    started = time.monotonic()

    def spectrum(count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        points = np.asarray(take(rows_for(jax.random.clone(key), rows, count)), np.float64)
        with jax.enable_x64(True):
            K = np.asarray(gram(kernel, points))
        return points, K, np.maximum(scipy.linalg.eigvalsh(K / len(points))[::-1], 0)

    points, K, values = spectrum(affordable(spectrum, min(sample, rows), seconds / 3, growth=3.0))
    center, until = np.mean(points, axis=0), started + seconds
    diameter = _diameter(take, rows, center, until)
    squared, pairs, words = _pairs(take, rows, dim, kernel, float(lengthscale), kind, center, until)
    top = float(values[0])
    return Facts(
        rows=rows,
        dim=dim,
        kernel=kernel,
        lengthscale=float(lengthscale),
        sampled=len(points),
        kappa=_kappa(kernel, K),
        op_norm=top,
        trace=float(values.sum()),
        trace3=float((values**3).sum()),
        hs_norm=float(np.sqrt((values**2).sum())),
        eigenvalues=values[:KEPT],
        diameter=diameter / float(lengthscale),
        squared_distances=squared,
        pairs=pairs,
        effective_dimension=_dimensions(values),
        decay={**_decay(values, kind), "pairs": words},
    )


def affordable(step: Callable[[int], Any], most: int, seconds: float, *, growth: float = 2.0) -> int:
    """Return how many rows, at most `most`, a step can have in so many seconds, by the time that it takes for a few.

    That grows as a power of the rows. The step is done twice with 256 rows, as it compiles at first, and where these
    are quick, with 1,024. With no time left, or no more rows, it is not tried. 256 rows at least are returned.
    """
    until, count = time.monotonic() + seconds, 256
    if most <= count or seconds <= 0:
        return min(most, count)
    while True:
        for _ in range(2):
            start = time.monotonic()
            if start >= until:
                return count
            step(count)
            spent = max(time.monotonic() - start, 1e-6)
        can = int(count * max(seconds / spent, 1.0) ** (1 / growth))
        if count == 1024 or min(can, most) < 4 * count:
            return min(can, most)
        count = 1024


def edges() -> np.ndarray:
    """Return the lower edges of the bins of squared distances: 0, then 16 an octave from 2^-9 to 36."""
    count = _code(np.float32(_HIGH)) - _code(np.float32(_LOW)) + 1
    steps = np.arange(count)
    return np.concatenate([[0.0], _LOW * 2.0 ** (steps // _OCTAVE) * (1 + steps % _OCTAVE / _OCTAVE)])


# ----------------------------------------------------------------------------------------------------------- spectrum


def _kappa(kernel: Any, K: np.ndarray) -> float:
    """Return sup K(x, x), over the sample where the kernel is unbounded."""
    found = float(kernels.kappa(kernel))
    return found if math.isfinite(found) else float(np.max(np.diag(K)))


def _dimensions(values: np.ndarray) -> dict[str, float]:
    """Return effective dimensions by name; 0 where the kernel is zero."""
    top = float(values[0])
    if top <= 0:
        return {}
    ratios = values / top
    found = {"trace / op_norm": ratios.sum(), "trace3 / op_norm^3": (ratios**3).sum()}
    for share in (0.1, 0.01, 0.001):
        found[f"sum l / (l + {share:g} op_norm)"] = (ratios / (ratios + share)).sum()
    return {name: float(value) for name, value in found.items()}


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


# ---------------------------------------------------------------------------------------------------------- distances


def _diameter(take: Take, rows: int, center: np.ndarray, until: float) -> float:
    """Return an upper bound of the largest distance: by the distances to a centre, and by the bounding box."""
    low, high, radius = np.full(len(center), np.inf), np.full(len(center), -np.inf), 0.0
    try:
        for _, block in _blocks(take, rows, len(center), until):
            low, high = np.minimum(low, block.min(axis=0)), np.maximum(high, block.max(axis=0))
            radius = max(radius, float(np.sum((block - center) ** 2, axis=1).max()))
    except TimeoutError:
        return math.inf
    return min(2 * math.sqrt(radius), float(np.linalg.norm(high - low))) * (1 + 1e-9)


def _pairs(
    take: Take, rows: int, dim: int, kernel: Any, lengthscale: float, kind: np.dtype, center: np.ndarray, until: float
) -> tuple[np.ndarray, np.ndarray, str]:
    """Return the bins of squared distances, the pairs in each, and a sentence about them."""
    total = rows * (rows - 1) // 2
    worst = np.array([0.0]), np.array([float(total)])
    if not isinstance(kernel, kernels.Gaussian):
        return *worst, "distances were not counted: the statement that uses them is about the Gaussian kernel."
    if rows > MOST_ROWS:
        return *worst, f"distances were not counted: {total:,} pairs of more than {MOST_ROWS:,} rows are too many."
    late = *worst, f"distances were not counted: {total:,} pairs would take longer than there was time."
    exact = np.empty((rows, dim))
    try:
        for start, block in _blocks(take, rows, dim, until):
            exact[start : start + len(block)] = block
    except TimeoutError:
        return late
    coincident = _coincident(exact)
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


def _coincident(points: np.ndarray) -> int:
    """Return the number of pairs of equal rows.

    Rows are sorted by a hash and then compared with their neighbours, so that a collision can hide a pair, which is
    then counted as a near one, and never makes one up.
    """
    words: np.ndarray = (points + np.zeros((), points.dtype)).view(np.uint32)  # -0 becomes 0
    hashes = np.zeros(len(words), np.uint64)
    for column in words.T:
        hashes = (hashes ^ column) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(29)
    order = np.argsort(hashes, kind="stable")
    same = hashes[order[1:]] == hashes[order[:-1]]
    same[same] = np.all(words[order[1:][same]] == words[order[:-1][same]], axis=1)
    copies = np.diff(np.flatnonzero(np.concatenate([[True], ~same, [True]])))
    return int(np.sum(copies * (copies - 1) // 2))


def _counted(points: np.ndarray, seconds: float) -> np.ndarray | None:
    """Return the pairs in each bin, (bins,) int64, or None where it would take longer."""
    rows, dim = points.shape
    size = min(_TILE, rows, max(CELLS // dim, 256))
    tiles = -(-rows // size)
    # What product form and rounding of the points may do to |x - y|^2, in units of |x|^2 + |y|^2: a pair may be counted
    # in a lower bin than its own, never in a higher one.
    slack = (dim + 8) * float(np.finfo(points.dtype).eps)
    padded = jnp.asarray(np.concatenate([points, np.zeros((tiles * size - rows, dim), points.dtype)]))
    held = padded.reshape(tiles, size, dim)
    counts = np.zeros(_LEFT_OUT + 1, np.int64)
    waiting: Any = None
    order = [(i, j) for i in range(tiles) for j in range(i, tiles)]
    started = time.monotonic()
    for done, (i, j) in enumerate(order):
        if seconds <= 0:
            return None
        codes = _codes(held, i, j, rows, slack)
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
def _codes(held: jax.Array, i: Any, j: Any, rows: int, slack: float) -> jax.Array:
    """Return the bins of the pairs of two tiles, (size, size) uint8; pairs that are counted elsewhere are left out."""
    X, Y = held[i], held[j]
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


def _blocks(take: Take, rows: int, dim: int, until: float) -> Iterator[tuple[int, np.ndarray]]:
    """Yield all rows in float64, each block with the number of its first row. Raises TimeoutError."""
    size = min(_BLOCK, max(CELLS // dim, 1))
    for start in range(0, rows, size):
        if time.monotonic() > until:
            raise TimeoutError
        yield start, np.asarray(take(np.arange(start, min(start + size, rows))), np.float64)


def without_pairs(found: Facts) -> bool:
    """Tell whether the histogram says nothing of these data."""
    return not np.any(found.pairs[found.squared_distances > 0] > 0)
