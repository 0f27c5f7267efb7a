"""The goal "spectral": the kernel matrix is kept, up to an error in spectral norm relative to n sup K(x, x).

Few points take all eigenvalues of A = K - Khat, K the kernel matrix and Khat that of the features. For more, A is known
by its products with a random block G (n, r) of standard normals alone, and its norm is bounded by what follows.

docs/certificates.md has the bound: with probability `slack` at most over G, |A| exceeds the x at which p_0(x)^2 + ...
+ p_k(x)^2 reaches |G|_F^2 / q, on either side, q the `slack`-quantile of chi-square with r degrees of freedom. The p_j
are orthonormal polynomials, whose recurrence is that of the Lanczos process on A, started at G, in the inner product
tr(U' V) of n x r matrices. One event makes the bounds for all k hold, so steps may stop as soon as the bound and the
largest Ritz value are close; k ends where Chebyshev's polynomials make the factor 1.05 whatever the spectrum.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np
from scipy import special
from scipy.linalg import eigh_tridiagonal

from jaxkern import checks
from jaxkern.gram import gram
from jaxkern.kernels import kappa
from jaxkern.linalg import matmul
from proofs_check.certify.goals import Goal
from proofs_check.certify.points import in_blocks, mapped, rows_of

# Points up to which all eigenvalues are computed, in float64; beyond, they take longer than the bound.
_EXACT = 128
# Points beyond which a factor is sought. Of 4,000 rows it saves nothing, of 10,000 three quarters of a draw.
_FACTORED = 4096
# Columns of a factor, at most, before those that leave little are dropped: 234 stay of 10,000 rows of dimension 20. The
# products that find it grow with this number, 5 s in that case.
_RANK = 512
# Share of eps that a factor may leave of the kernel matrix, at most; otherwise the matrix is used. It is added to every
# error, so that sizes grow by twice that share.
_LEFT = 0.005
# Columns of G. With 4, a bound takes 9.6 steps in place of 8.5 (means for 1,500 rows of dimension 20); with 16, 7.8
# steps that cost twice as much.
_PROBES = 8
# Steps stop when the bound is at most so many times the largest Ritz value, or else the norm. With 1.001 there are 9.6
# steps in place of 8.5; with 1.05 there are 6.6, and errors seem 3 % larger, so that sizes are by 6 %.
_CLOSE = 1.005
_LOOSENESS = 1.05
# Roundings of n kappa that products may add to a bound, with the rounding of K to the dtype of maps. Of a map with all
# rows as landmarks, whose error is 4 of them, a bound without them was off by 1.
_ROUNDINGS = 4


@dataclass(frozen=True, eq=False)
class Matrix:
    """Points and their kernel matrix.

    Attributes
    ----------
    inputs : (n, dim), as maps get them.
    blocks : rows of the kernel matrix of the float64 points, (side, n) each, beyond 128 points rounded to the dtype of
        maps; rows beyond n are filling. Empty with a factor.
    factor, left : F (n, rank) that stands for the kernel matrix, and a bound of |K - F F'|_2; None and 0 without one.
    """

    inputs: np.ndarray
    blocks: tuple[jax.Array, ...]
    factor: np.ndarray | None = None
    left: float = 0.0

    def times(self, V: np.ndarray) -> np.ndarray:
        """Return K V, or F F' V with a factor."""
        if self.factor is not None:
            return self.factor @ (self.factor.T @ V)
        # By XLA: a product of BLAS with few columns takes twice as long.
        parts = [np.asarray(matmul(block, V)) for block in self.blocks]
        return np.concatenate(parts)[: len(V)]


@dataclass(frozen=True)
class Spectral(Goal):
    """The error of a map is |K - Khat|_2 / (n sup K(x, x)), or an upper bound of it that is at most 5 % larger.

    Up to 128 points it is the error itself. Beyond, it is a bound that holds for every map and all points except with
    probability `slack` over the key of `error`, up to rounding: a caller that accepts failures with probability delta
    over the draw of the map leaves `slack` of it to the bound. It is within 0.5 % of a lower bound and twice what a
    factor leaves, or, if the spectrum of the error is so flat that this takes too long, within 5 % of the error.

    Attributes
    ----------
    kernel : positive semidefinite, with a finite sup K(x, x) that is known.
    eps : the error that will be asked for, in (0, 1); it says how much a factor may leave.
    slack : probability in (0, 1) that a reported error is too small.
    once : probability in (0, 1) that the bound of what a factor leaves is too small, for all errors together.

    Notes
    -----
    For s points and F features: `prepare` takes s^2 kernel values in float64 and holds them. `error` takes 4 to 28
    products of K, or of a factor, and of the features with 8 columns, bound by memory. Its own rounding is of the order
    of eps(dtype), and part of the bound.
    """

    kernel: Any
    eps: float
    slack: float = 1e-6
    once: float = 1e-9

    name = "spectral"
    words = (
        "the spectral norm of the error of the kernel matrix, relative to n sup K(x, x)"
    )
    # The kernel matrix takes 400 MB in float32, and 300 draws of 512 paired frequencies 70 s on two cores; for 20,000
    # rows it would take 1.6 GB, or 3.2 GB in float64.
    most_rows = 10_000
    # With the kernel matrix of every sample, 300 draws take 50 s; of 4,000 rows, 3 minutes.
    sample_rows = 2_000

    def refuses(self, map_name: str) -> str:
        """Return why a map is not meant to keep the kernel matrix, "" for all others."""
        if map_name == "kernel_jl":
            return "Its inner products are those of the kernel weighted by Sigma^3, another matrix than K."
        return ""

    def prepare(
        self, _key: Any, points: Any, _labels: np.ndarray | None = None
    ) -> Matrix:
        """Return the kernel matrix of points (s, dim) or `Rows`. The key and the labels are not used.

        Raises ValueError if points are not a floating matrix.
        """
        rows = rows_of(points)
        few = len(rows.points) <= _EXACT
        dtype = np.dtype("float64") if few else rows.inputs.dtype
        # In blocks: all of it in float64 would take three times the memory of the matrix that is held.
        with jax.enable_x64(True):
            blocks = [
                gram(self.kernel, block, rows.points).astype(dtype)
                for block in in_blocks(rows.points)
            ]
        return Matrix(rows.inputs, tuple(blocks))

    def lasting(self, key: Any, prepared: Matrix) -> Matrix:
        """Return the same for many errors: with a factor of low rank, if one leaves little of the kernel matrix.

        It is K on its leading eigenvectors, from two products of K with a random matrix. What it leaves is bounded as
        the error of a map is, once, and added to all errors.
        """
        count = len(prepared.inputs)
        if count <= _FACTORED:
            return prepared
        key_range, key_bound = jax.random.split(checks.key(key))
        limit = _LEFT * self.eps * count * float(kappa(self.kernel))
        start = _normals(key_range, (count, _RANK), prepared.inputs.dtype)
        basis = np.linalg.qr(prepared.times(prepared.times(start)))[0]
        values, vectors = np.linalg.eigh(basis.T @ prepared.times(basis))
        large = values > 0.1 * limit
        factor = (basis @ vectors[:, large]) * np.sqrt(values[large])
        left = self._bound(key_bound, prepared, factor, self.once)
        if not left <= limit:
            return prepared
        return replace(prepared, blocks=(), factor=factor, left=left)

    def error(self, key: Any, phi: Any, prepared: Matrix) -> float:
        """Return the error, or a bound of it; NaN if features are not finite."""
        Z = mapped(phi, prepared.inputs)
        if not np.isfinite(Z).all():
            return math.nan
        if len(Z) <= _EXACT:
            Z = Z.astype(np.float64)
            K = np.concatenate(prepared.blocks)[: len(Z)]
            norm = np.abs(np.linalg.eigvalsh(K - Z @ Z.T)).max()
        else:
            norm = self._bound(key, prepared, Z, self.slack) + prepared.left
        return float(norm) / (len(Z) * float(kappa(self.kernel)))

    def _bound(self, key: Any, prepared: Matrix, Z: np.ndarray, slack: float) -> float:
        """Return an upper bound of |K - Z Z'| that is too small with probability `slack`."""
        start = _normals(checks.key(key), (len(Z), _PROBES), Z.dtype)

        def product(V: np.ndarray) -> np.ndarray:
            return prepared.times(V) - Z @ (Z.T @ V)

        rounding = float(np.finfo(Z.dtype).eps) * len(Z) * float(kappa(self.kernel))
        return norm_bounds(product, start, slack)[1] + _ROUNDINGS * rounding


def _normals(key: Any, shape: tuple[int, int], dtype: Any) -> np.ndarray:
    return np.asarray(jax.random.normal(key, shape, dtype))


def norm_bounds(
    product: Callable[[np.ndarray], np.ndarray], start: np.ndarray, slack: float
) -> tuple[float, float]:
    """Return bounds of |A|_2 for a symmetric A, given by `product(V) = A V`, and standard normals (n, r) to start at.

    The upper one is too small with probability `slack` over the start. They are as close as this module says.
    """
    size, num_probes = start.shape
    quantile = 2 * float(special.gammaincinv(num_probes / 2, slack))
    growth = math.sqrt(size * num_probes / quantile)
    most = math.ceil(math.acosh(growth) / math.acosh(_LOOSENESS))
    length = float(np.linalg.norm(start))
    basis = np.zeros((most + 1, start.size), start.dtype)
    basis[0] = start.ravel() / length
    diagonal = np.zeros(most)
    beside = np.zeros(most)
    lower = upper = math.nan
    for step in range(most):
        image = product(basis[step].reshape(start.shape)).ravel()
        count = step + 1
        earlier = basis[:count]
        along = earlier @ image
        image = image - along @ earlier
        # Twice: without that, rounding would bring back eigenvalues that are already found.
        image -= (earlier @ image) @ earlier
        diagonal[step] = along[step]
        beside[step] = np.linalg.norm(image)
        lower, upper = bounds_of(diagonal[:count], beside[:count], length**2 / quantile)
        # NaN ends the process, and so does a residual of zero, where both are the norm.
        if not upper > _CLOSE * lower:
            break
        basis[count] = image / beside[step]
    return lower, upper


def bounds_of(
    diagonal: np.ndarray, beside: np.ndarray, most: float
) -> tuple[float, float]:
    """Return the largest Ritz value in size, and the largest |x| at which the p_j(x)^2 sum to at most `most` >= 1.

    `diagonal` and `beside` are those of x p_j = beside_j p_{j+1} + diagonal_j p_j + beside_{j-1} p_{j-1}.
    """
    if not (np.isfinite(diagonal).all() and np.isfinite(beside).all()):
        return math.nan, math.nan
    ritz = eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)
    lower = float(np.abs(ritz).max())
    if beside[-1] == 0:
        # The measure has no more points than there are polynomials, and Ritz values are eigenvalues.
        return lower, lower

    def reached(x: float) -> bool:
        previous = 0.0
        current = total = 1.0
        weight = 0.0
        for center, size in zip(diagonal, beside, strict=True):
            following = ((x - center) * current - weight * previous) / size
            previous = current
            current = following
            weight = size
            total += current * current
            if total > most:
                return True
        return False

    upper = lower
    for end, outward in ((ritz[-1], 1.0), (ritz[0], -1.0)):
        inside = 0.0
        outside = max(lower, float(beside[-1]))
        while not reached(end + outward * outside):
            inside = outside
            outside *= 2
        for _ in range(30):
            middle = (inside + outside) / 2
            if reached(end + outward * middle):
                outside = middle
            else:
                inside = middle
        upper = max(upper, abs(float(end + outward * outside)))
    return lower, upper
