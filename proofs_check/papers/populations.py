"""Finite-support populations: every population quantity is a finite sum, so every bound is computed exactly.

A population is p atoms with feature rows Phi (p, r), K = Phi Phi' on the atoms, and probabilities w, in coordinates in
which Sigma = Phi' diag(w) Phi is diagonal. The sample enters a statistic only through the multinomial counts of the
atoms: n = 10^12 costs as much as n = 10^2. Given the sample, the sketch is d Gaussian draws with covariance Sigma_n^3.
The claims `jaxkern:shortcut-*` compare both with the literal construction.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import kernels, measures
from jaxkern.gram import gram
from proofs_check.claim import USERS

MOST_ROWS = 2_000
ATOMS = 32


@dataclass(frozen=True, eq=False)
class Population:
    """Atoms with probabilities, a kernel on them, and what follows exactly.

    Attributes
    ----------
    name : short name for reports.
    kernel : the kernel; `points` (p, d) are the atoms.
    weights : (p,) probabilities.
    features : (p, r) rows Phi with K = Phi Phi' on the atoms and Phi' diag(weights) Phi = diag(eigenvalues).
    eigenvalues : (r,) of Sigma, descending.
    note : what was done to get here, printed in the report.
    """

    name: str
    kernel: Any
    points: np.ndarray
    weights: np.ndarray
    features: np.ndarray
    eigenvalues: np.ndarray
    note: str = ""

    @cached_property
    def kappa(self) -> float:
        """The largest K(x, x) over the atoms."""
        return float(np.max(np.sum(self.features**2, axis=1)))

    @property
    def op_norm(self) -> float:
        """|Sigma|_op."""
        return float(self.eigenvalues[0])

    @property
    def trace(self) -> float:
        """Tr Sigma."""
        return float(np.sum(self.eigenvalues))

    @property
    def hs_norm(self) -> float:
        """|Sigma|_HS."""
        return math.sqrt(float(np.sum(self.eigenvalues**2)))

    @property
    def trace3(self) -> float:
        """Tr Sigma^3."""
        return float(np.sum(self.eigenvalues**3))

    @property
    def rank(self) -> float:
        """The effective rank s = tr Sigma / |Sigma|."""
        return self.trace / self.op_norm

    @property
    def rank3(self) -> float:
        """The effective rank of Sigma^3."""
        return self.trace3 / self.op_norm**3

    @property
    def quantities(self) -> dict[str, float]:
        """The quantities that bounds name."""
        names = ("kappa", "op_norm", "trace", "trace3", "hs_norm")
        return {name: getattr(self, name) for name in names}

    @cached_property
    def arrays(self) -> dict[str, jax.Array]:
        """What trials need, as a PyTree of device arrays of the default float dtype.

        `features` Phi, `weights` w, the `eigenvalues` of Sigma, the entrywise `squares` of K = Phi Phi', and a unit
        vector `f` of the feature space that mixes all eigenvectors of Sigma.
        """
        f = 1.0 / np.arange(1.0, len(self.eigenvalues) + 1)
        arrays = {
            "features": self.features,
            "weights": self.weights,
            "eigenvalues": self.eigenvalues,
            "squares": (self.features @ self.features.T) ** 2,
            "f": f / np.linalg.norm(f),
        }
        dtype = jax.dtypes.canonicalize_dtype(float)
        return {name: jnp.asarray(value, dtype) for name, value in arrays.items()}


def _features(
    K: np.ndarray, weights: np.ndarray, columns: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return feature rows (p, r) with K = Phi Phi', and the r eigenvalues of Sigma, which is diagonal for them.

    By default r is the rank of K in float64; a fixed number of columns is filled up with zeros.
    """
    ascending, vectors = np.linalg.eigh(K)
    values = ascending[::-1]
    cutoff = np.finfo(float).eps * len(K) * values[0]
    rank = max(1, int(np.sum(values > cutoff)))
    spectrum = np.zeros(columns or rank)
    spectrum[:rank] = values[:rank]
    features = vectors[:, ::-1][:, : len(spectrum)] * np.sqrt(spectrum)
    if np.all(weights == weights[0]):
        return features, spectrum * weights[0]
    return diagonal(features, weights)


def diagonal(
    features: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return feature rows rotated, which leaves K as it is, so that Sigma is diagonal, and its eigenvalues."""
    eigenvalues, rotation = np.linalg.eigh(features.T @ (weights[:, None] * features))
    return features @ rotation[:, ::-1], np.maximum(eigenvalues[::-1], 0.0)


def _population(name: str, kernel: Any, points: Any, weights: Any) -> Population:
    points = np.asarray(points, float)
    weights = np.asarray(weights, float)
    shares = weights / weights.sum()
    K = np.asarray(gram(kernel, jnp.asarray(points)), float)
    features, eigenvalues = _features(K, shares, len(points))
    return Population(name, kernel, points, shares, features, eigenvalues)


def synthetic() -> Sequence[Population]:
    """Return five populations of 32 atoms: smooth, orthogonal, rank one, with a rare atom, and skewed in the plane.

    They share their shapes, so that one compiled trial serves them all.
    """
    grid = jax.jit(measures.gaussian_grid, static_argnums=0)(ATOMS)
    line = np.arange(float(ATOMS))[:, None]
    normal = np.random.default_rng(7).standard_normal((ATOMS, 2))
    plane = normal * [3.0, 0.5] + [100.0, -40.0]
    plane[:4] += 8.0
    rare = np.full(ATOMS, (1 - 1 / 400) / (ATOMS - 1))
    rare[0] = 1 / 400
    # At a thousandth of the spacing the Gaussian kernel is the indicator of equality, to the last bit.
    indicator = kernels.Gaussian(1e-3)
    return (
        _population("gauss grid", kernels.Gaussian(1.0), grid.points, grid.weights),
        _population("orthogonal atoms", indicator, line, np.ones(ATOMS)),
        _population(
            "constant kernel",
            kernels.Polynomial(1, 1.0, 1e6),
            np.zeros((ATOMS, 1)),
            np.ones(ATOMS),
        ),
        _population("rare atom", indicator, line, rare),
        _population(
            "skewed plane",
            2.0 * kernels.Matern32(1.5),
            plane,
            np.arange(1.0, ATOMS + 1),
        ),
    )


def from_rows(
    X: np.ndarray, lengthscale: float | None = None, *, seed: int = 0
) -> Population:
    """Return the population whose atoms are the rows of a table, with equal weights and a Gaussian kernel.

    Beyond 2,000 rows a random subset is taken. The lengthscale is the 25th percentile of the distances divided by
    sqrt(2), which is kpotufe2020's choice in our convention, unless given.

    Parameters
    ----------
    X : (rows, columns) finite numbers.
    lengthscale : positive, in the units of the data.
    seed : of the random subset.

    Raises
    ------
    ValueError
        If fewer than two rows differ, or the lengthscale comes out as zero.
    """
    X = np.asarray(X, float)
    subset = f"all {len(X):,} rows"
    if len(X) > MOST_ROWS:
        subset = (
            f"a random subset of {MOST_ROWS:,} of the {len(X):,} rows (seed {seed})"
        )
        rows = np.random.default_rng(seed).choice(len(X), MOST_ROWS, replace=False)
        X = X[np.sort(rows)]
    origin = "as given"
    if lengthscale is None:
        origin = "the 25th percentile of the distances over sqrt(2)"
        quarter = kernels.quantile_lengthscale(jnp.asarray(X), 0.25)
        lengthscale = float(quarter) / math.sqrt(2.0)
        if not lengthscale > 0:
            raise ValueError(
                "a quarter of the pairs of rows coincide, so the default lengthscale is 0; pass --lengthscale"
            )
    note = f"{subset}; lengthscale {lengthscale:.6g}, {origin}"
    kernel = kernels.Gaussian(lengthscale)
    K = np.asarray(gram(kernel, jnp.asarray(X)), float)
    weights = np.full(len(X), 1 / len(X))
    features, eigenvalues = _features(K, weights)
    return Population(USERS, kernel, X, weights, features, eigenvalues, note)
