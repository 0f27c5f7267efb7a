"""What the data are like to a theorem: the spectrum, a diameter and the distances of all pairs."""

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import scipy.linalg

from jaxkern import kernels
from jaxkern.gram import gram
from proofs_check.certify.load.table import Table, rows_for, slices
from proofs_check.certify.points import distinct

SAMPLE = 2_000
"""Rows behind the spectrum, at most: an eigendecomposition of as many takes a second or two."""
MOST_ROWS = 20_000
"""Pairs of more rows are not counted: 2e8 pairs take about 10 s on two cores, and the time grows with the square."""
MOST_CELLS = 2**25
"""Rows times columns of a table whose pairs are counted, at most: copies of the points take four times 256 MiB."""
EDGES = (np.arange(241) / 40) ** 2
"""Lower edges of the bins of squared distances: steps of 1/40 lengthscale, up to 6. Theorem F says the same beyond."""
_TILE = 256


@dataclass(frozen=True)
class Facts:
    """What the data are like to a theorem, in units of the kernel.

    Attributes
    ----------
    rows, dim : size of the table.
    kernel : a `jaxkern.kernels` kernel.
    eigenvalues : of K / n, descending, for n rows: all of the table, or a uniform sample.
    diameter : an upper bound of the largest distance of two rows, over the lengthscale.
    pairs : the number of pairs of distinct rows in each bin of `EDGES`, by their squared distance over the squared
        lengthscale. A pair may be in a lower bin than its own, never in a higher one. None if they were not counted.
    """

    rows: int
    dim: int
    kernel: Any
    eigenvalues: np.ndarray
    diameter: float
    pairs: np.ndarray | None


@np.errstate(over="ignore", invalid="ignore")
def facts(key: Any, table: Table, kernel: Any, lengthscale: float) -> Facts:
    """Return what a table is like to a theorem, all in float64.

    The spectrum is that of at most `SAMPLE` rows, which `key` draws. The diameter is a bound for all rows. Distances
    are counted for the Gaussian kernel and tables of at most `MOST_ROWS` rows and `MOST_CELLS` numbers.

    O(SAMPLE^2 dim + SAMPLE^3), one pass over the rows for the diameter, and O(rows^2 dim / 2) if pairs are counted.
    """
    points = sample_of(key, table)
    values = eigenvalues_of(kernel, points)
    center = points.mean(axis=0)
    pairs = None
    small = table.rows <= MOST_ROWS and table.rows * table.dim <= MOST_CELLS
    if small and isinstance(kernel, kernels.Gaussian):
        points = table.take(np.arange(table.rows), "float64")
        # Copies of a row have equal features: their pairs have no error, and fail together with any other row.
        points = points[distinct(points)[0]]
        pairs = _counts((points - center) / lengthscale)
    diameter = _diameter(table, center) / lengthscale
    return Facts(table.rows, table.dim, kernel, values, diameter, pairs)


def sample_of(key: Any, table: Table) -> np.ndarray:
    """Return the rows behind the spectrum, at most `SAMPLE`, which `key` draws."""
    rows = rows_for(key, table.rows, min(table.rows, SAMPLE))
    return table.take(rows, "float64")


def eigenvalues_of(kernel: Any, points: np.ndarray) -> np.ndarray:
    """Return the eigenvalues of K / n, descending."""
    with jax.enable_x64(True):
        sigma = np.asarray(gram(kernel, points)) / len(points)
    # Rounding makes the smallest eigenvalues negative.
    return np.maximum(scipy.linalg.eigvalsh(sigma)[::-1], 0)


def _diameter(table: Table, center: np.ndarray) -> float:
    """Return an upper bound of the diameter, twice the radius; it is at most twice as long for a mean of rows."""
    radius = 0.0
    for part in slices(table.rows, table.dim):
        block = table.take(np.arange(part.start, part.stop), "float64")
        radius = max(radius, float(np.linalg.norm(block - center, axis=1).max()))
    # Each norm is off by at most (dim + 2) eps: 1e-9 is more than that up to four million columns.
    return 2 * radius * (1 + 1e-9)


def _counts(points: np.ndarray) -> np.ndarray:
    """Return how many pairs of rows are in each bin of `EDGES`, (bins,) int64.

    Rounding changes a computed |x - y|^2 by less than (dim + 8) eps (|x|^2 + |y|^2): dim for the product and the
    squared norms together, at most 4 for centring and scaling, and 3 for the sums. As much is subtracted, so that no
    pair is counted in a higher bin than its own. A lower bin is safe: near pairs err more (Theorem E of chen2016.md).
    """
    rows, dim = points.shape
    norms = np.einsum("ij,ij->i", points, points)
    slack = (dim + 8) * np.finfo(float).eps
    limits = np.append(EDGES, np.inf)
    counts = np.zeros(len(EDGES), np.int64)
    for start in range(0, rows, _TILE):
        tile = points[start : start + _TILE]
        sums = norms[start : start + _TILE, None] + norms[None, start:]
        squares = sums - 2 * (tile @ points[start:].T) - slack * sums
        # Row i of the tile is row i of the rest: pairs above the diagonal are those not counted yet.
        squares = squares[np.triu(np.ones(squares.shape, bool), 1)]
        # An overflow gives NaN, which `fmax` drops: a histogram would lose the pair.
        counts += np.histogram(np.fmax(squares, 0), limits)[0]
    return counts
