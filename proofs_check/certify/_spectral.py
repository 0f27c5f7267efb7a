"""The goal "spectral": the kernel matrix shall survive, to an error in spectral norm relative to n sup K(x, x).

Few points take all eigenvalues of A = K - Khat, K the kernel matrix and Khat that of the features. For more, A is known
by its products with a random block G (n, r) of standard normals alone, and its norm is bounded by what follows.

docs/certificates.md has the bound: with probability `slack` at most over G, |A| exceeds the x at which p_0(x)^2 + ...
+ p_k(x)^2 reaches |G|_F^2 / q, on either side, q the `slack`-quantile of chi-square with r degrees of freedom. The p_j
are orthonormal polynomials, whose recurrence is that of the Lanczos process on A, started at G, in the inner product
tr(U' V) of n x r matrices. One event makes the bounds for all k hold, so steps may stop as soon as the bound and the
largest Ritz value are close; k ends where Chebyshev's polynomials make the factor 1.05 whatever the spectrum.
"""

import math
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy import special
from scipy.linalg import eigh_tridiagonal

from jaxkern import checks
from jaxkern.draws import normal_rows
from jaxkern.features import as_map
from jaxkern.gram import gram, gram_matmul
from jaxkern.kernels import kappa, psd_kernel
from jaxkern.landmarks import pivoted_cholesky
from jaxkern.linalg import matmul, operator_norm
from proofs_check.certify._model import Goal
from proofs_check.certify._rows import compiled, embed, rows_of

_EXACT = 128
"""Points up to which all eigenvalues are computed, in float64; beyond, they take longer than the bound."""
_HELD_BYTES = 2**30
"""The kernel matrix is kept in memory up to this size, and computed again in every product beyond it."""
_ROWS = 1024
_FACTORED = 1024
"""Points beyond which a factor saves more than it takes."""
_LEFT = 0.005
"""Share of eps that a factor may leave of the kernel matrix, at most; elsewhere the matrix is used."""
_PROBES = 8
_LOOSENESS = 1.05
_CLOSE = 1.005
_STEPS = 4


@dataclass(frozen=True, eq=False)
class Matrix:
    """Points and their kernel matrix.

    Attributes
    ----------
    points : (n, dim) float64.
    blocks : the same as maps get them, in equal blocks of at most 1,024 rows, filled with copies of the last point.
    kernel_matrix : (n or more, n) of the float64 points, None where it is not held; rows beyond n are filling. Beyond
        128 points it is rounded to the dtype of maps.
    factor, left : F (n, rank) that stands for the kernel matrix, and a bound of |K - F F'|_2; None and 0 without one.
    """

    points: np.ndarray
    blocks: tuple[jax.Array, ...]
    kernel_matrix: jax.Array | None
    factor: jax.Array | None = None
    left: float = 0.0


@dataclass(frozen=True)
class Spectral(Goal):
    """The error of a map is |K - Khat|_2 / (n sup K(x, x)), or an upper bound of it that is at most 5 % larger.

    Up to 128 points it is the error itself. Beyond, it is a bound that holds for every map and all points but with
    probability `slack` over the key of `error`, up to rounding: a caller that accepts failures with probability delta
    over the draw of the map leaves `slack` of it to the bound. It is within 0.5 % of a lower bound and twice what a
    factor leaves, or, where the spectrum of the error is so flat that this takes too long, within 5 % of the error.

    Attributes
    ----------
    kernel : positive semidefinite, with a finite sup K(x, x) that is known.
    eps : the error that will be asked for, in (0, 1); nothing here depends on it.
    slack : probability in (0, 1) that a reported error is too small.
    once : probability in (0, 1) that the bound of what a factor leaves is too small, for all errors together.

    Notes
    -----
    For s points and F features: `prepare` takes s^2 kernel values in float64 and holds them up to 1 GiB. `error` takes
    4 to 28 products of K and of the features with 8 columns, bound by memory; where K is not held, as many times s^2
    kernel values instead, and with a factor one product of it and the features. Its own rounding is of the order of
    eps(dtype), and part of the bound.
    """

    kernel: Any
    eps: float
    slack: float = 1e-6
    once: float = 1e-9

    rank = 512
    """Rows behind a factor of the kernel matrix."""
    name = "spectral"
    words = (
        "the spectral norm of the error of the kernel matrix, relative to n sup K(x, x)"
    )

    def __post_init__(self) -> None:
        """Check what can be checked without points."""
        object.__setattr__(self, "kernel", psd_kernel(self.kernel))
        object.__setattr__(self, "eps", checks.open_unit("eps", self.eps))
        for name in ("slack", "once"):
            object.__setattr__(self, name, checks.open_unit(name, getattr(self, name)))
        if not 0 < float(kappa(self.kernel)) < math.inf:
            raise ValueError(
                f"kernel must have a finite and positive sup K(x, x), got {type(self.kernel).__name__}"
            )

    def refuses(self, map_name: str) -> str:
        """Return why a map is not meant to keep the kernel matrix, "" for all others."""
        if map_name == "kernel_jl":
            return "Its inner products are those of the kernel weighted by Sigma^3, another matrix than K."
        return ""

    def prepare(
        self, _key: Any, points: Any, _labels: np.ndarray | None = None
    ) -> Matrix:
        """Compute the kernel matrix of points (s, dim) or `Rows` where it can be held; key and labels play no part.

        Raises ValueError if points are not a floating matrix.
        """
        rows = rows_of(points)
        n, dim = rows.points.shape
        dtype = jnp.dtype("float64") if n <= _EXACT else rows.inputs.dtype
        matrix, number = None, -(-n // _ROWS)
        fill = (0, -n % number), (0, 0)
        if n * n * dtype.itemsize <= _HELD_BYTES:
            with jax.enable_x64(True):
                filled = np.pad(rows.points, fill, mode="edge").reshape(number, -1, dim)
                matrix = _kernel_matrix(self.kernel, filled, rows.points, dtype=dtype)
        blocks = np.pad(rows.inputs, fill, mode="edge").reshape(number, -1, dim)
        return Matrix(rows.points, tuple(map(jnp.asarray, blocks)), matrix)

    def lasting(self, key: Any, prepared: Matrix) -> Matrix:
        """Return the same for many errors: with a factor of low rank, where one leaves little of the kernel matrix.

        The factor is that of the Nystrom map of rows chosen by pivots, in float64. What it leaves is bounded as the
        error of a map is, once, and added to all errors. A draw then takes one product of the factor and the features.
        """
        n, dtype = len(prepared.points), prepared.blocks[0].dtype
        if n <= _FACTORED:
            return prepared
        key_rows, key_bound = jax.random.split(checks.key(key))
        scale = n * float(kappa(self.kernel))
        with jax.enable_x64(True):
            points = jnp.asarray(prepared.points)
            chosen = pivoted_cholesky(
                key_rows, self.kernel, points, num_landmarks=min(self.rank, n // 2)
            )
            factor, squares = (
                np.asarray(part) for part in _factor(self.kernel, points, chosen)
            )
        kept = jnp.asarray(factor[:, squares > 0.1 * _LEFT * self.eps * scale], dtype)
        left = self._norm(
            key_bound, kept, prepared, self.once, _LEFT * self.eps * scale
        )[1]
        if not left <= _LEFT * self.eps * scale:
            return prepared
        return replace(prepared, kernel_matrix=None, factor=kept, left=left)

    def error(self, key: Any, phi: Any, prepared: Matrix) -> float:
        """Return the error, or a bound of it; NaN where features are not numbers."""
        return self.bounds(key, phi, prepared)[1]

    def bounds(self, key: Any, phi: Any, prepared: Matrix) -> tuple[float, float]:
        """Return a lower bound, false with probability `once` at most, and that of the class.

        Up to 128 points both are the error, and without a factor the lower one always holds.
        """
        key = checks.key(key)
        points = prepared.points
        n = points.shape[0]
        scale = n * float(kappa(self.kernel))
        phi = as_map(phi)
        Z = _joined(tuple(embed(phi, block) for block in prepared.blocks), n)
        if n <= _EXACT:
            with jax.enable_x64(True):
                norm = float(_norm(Z, prepared.kernel_matrix)) / scale
            return norm, norm
        if prepared.factor is not None:
            exact, Z = _within(prepared.factor, Z)
            prepared = replace(prepared, kernel_matrix=exact)
        lower, upper = self._norm(key, Z, prepared, self.slack)
        return max(lower - prepared.left, 0.0) / scale, (upper + prepared.left) / scale

    def _norm(
        self,
        key: Any,
        Z: jax.Array,
        prepared: Matrix,
        slack: float,
        enough: float = 0.0,
    ) -> tuple[float, float]:
        """Return bounds of |K - Z Z'|, of which the upper one is too small with probability `slack`.

        They are as close as the class says, unless one of them is on its side of `enough`.
        """
        n = len(Z)
        points, K = prepared.points, prepared.kernel_matrix
        quantile = 2 * float(special.gammaincinv(_PROBES / 2, slack))
        most = math.ceil(
            math.acosh(math.sqrt(n * _PROBES / quantile)) / math.acosh(_LOOSENESS)
        )
        most += -most % _STEPS
        basis, mass = _start(key, n, Z.dtype, most)
        diagonal: list[float] = []
        beside: list[float] = []
        lower = upper = math.nan
        for first in range(0, most, _STEPS):
            with jax.enable_x64(True):
                basis, steps = _lanczos(
                    self.kernel, Z, points, K, basis, first, num_steps=_STEPS
                )
            for part, entries in zip(
                (diagonal, beside), np.asarray(steps, float), strict=True
            ):
                part.extend(entries)
            lower, upper = _bounds(
                np.asarray(diagonal), np.asarray(beside), float(mass) / quantile
            )
            if not upper > _CLOSE * lower or upper <= enough or lower > enough > 0:
                break
        # Of K, once, and of products; in a basis of both (`_within`) also of the features in it: at most 11 were seen.
        roundings = 4 if prepared.factor is None else 64
        rounding = (
            roundings
            * float(jnp.finfo(Z.dtype).eps)
            * len(points)
            * float(kappa(self.kernel))
        )
        return max(lower - rounding, 0.0), upper + rounding


@partial(compiled, static_argnames="dtype")
def _kernel_matrix(
    kernel: Any, blocks: jax.Array, points: jax.Array, *, dtype: Any
) -> jax.Array:
    """Return K for all rows of all blocks: block by block, so that nothing else of its size is ever held."""
    return lax.map(
        lambda block: gram(kernel, block, points).astype(dtype), blocks
    ).reshape(-1, points.shape[0])


@compiled
def _factor(
    kernel: Any, points: jax.Array, chosen: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return features with the span of some rows, (n, rank), in orthogonal columns, and the squares of their norms."""
    values, vectors = jnp.linalg.eigh(gram(kernel, chosen))
    kept = values > 1e-10 * values[-1]
    weights = jnp.where(kept, 1 / jnp.sqrt(jnp.where(kept, values, 1)), 0)
    images = matmul(gram(kernel, points, chosen), vectors * weights[None, :])
    squares, turned = jnp.linalg.eigh(matmul(images.T, images))
    return matmul(images, turned), squares


@compiled
def _within(factor: jax.Array, Z: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return F F' and the features in an orthonormal basis of both; the columns of F are orthogonal.

    What is not in the span of F has the Gram matrix Z' Z less that of what is, so that one product with F serves all
    steps.
    """
    sizes = jnp.linalg.norm(factor, axis=0)
    along = matmul(Z.T, factor).T / sizes[:, None]
    squares, turned = jnp.linalg.eigh(matmul(Z.T, Z) - matmul(along.T, along))
    beside = jnp.sqrt(jnp.maximum(squares, 0))[:, None] * turned.T
    exact = jnp.diag(jnp.concatenate([sizes * sizes, jnp.zeros_like(squares)]))
    return exact, jnp.concatenate([along, beside])


@partial(compiled, static_argnums=1)
def _joined(images: tuple[jax.Array, ...], n: int) -> jax.Array:
    return jnp.concatenate(images)[:n]


@compiled
def _norm(Z: jax.Array, kernel_matrix: jax.Array) -> jax.Array:
    Z = Z.astype(kernel_matrix.dtype)
    difference = kernel_matrix[: Z.shape[0]] - matmul(Z, Z.T)
    return operator_norm((difference + difference.T) / 2)


@partial(compiled, static_argnums=(1, 2, 3))
def _start(
    key: jax.Array, n: int, dtype: Any, most: int
) -> tuple[jax.Array, jax.Array]:
    """Return room for the blocks of all steps, (most + 1, n r), the first of which is G / |G|_F, and |G|_F^2."""
    start = normal_rows(key, _PROBES, n, dtype).T.reshape(-1)
    mass = jnp.sum(start * start)
    return jnp.zeros((most + 1, start.size), dtype).at[0].set(
        start / jnp.sqrt(mass)
    ), mass


@partial(compiled, static_argnames="num_steps")
def _lanczos(
    kernel: Any,
    Z: jax.Array,
    points: jax.Array | None,
    kernel_matrix: jax.Array | None,
    basis: jax.Array,
    first: jax.Array,
    *,
    num_steps: int,
) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """Take a few steps of the Lanczos process; return the new blocks, and the coefficients of these steps.

    All blocks so far are projected out, twice: without that rounding would bring back eigenvalues already found.
    """
    n = Z.shape[0]

    def apply(V: jax.Array) -> jax.Array:
        if kernel_matrix is not None:
            exact = matmul(kernel_matrix, V)[:n]
        else:
            assert points is not None
            exact = gram_matmul(kernel, points, None, V.astype(points.dtype)).astype(
                V.dtype
            )
        return exact - matmul(Z, matmul(V.T, Z).T)  # V' Z, as Z' V would copy Z

    def step(
        basis: jax.Array, j: jax.Array
    ) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        image = apply(basis[j].reshape(n, _PROBES)).reshape(-1)
        along = matmul(basis, image[:, None])
        image = image - matmul(along.T, basis)[0]
        image = image - matmul(matmul(basis, image[:, None]).T, basis)[0]
        size = jnp.linalg.norm(image)
        basis = basis.at[j + 1].set(image / jnp.where(size > 0, size, 1))
        return basis, (along[j, 0], size)

    return lax.scan(step, basis, first + jnp.arange(num_steps))


def _bounds(
    diagonal: np.ndarray, beside: np.ndarray, most: float
) -> tuple[float, float]:
    """Return the largest Ritz value in size, and the largest |x| at which the p_j(x)^2 sum to at most `most` >= 1.

    `diagonal` and `beside` are those of x p_j = beside_j p_{j+1} + diagonal_j p_j + beside_{j-1} p_{j-1}.
    """
    if not (np.isfinite(diagonal).all() and np.isfinite(beside).all()):
        return math.nan, math.nan
    if not beside.all():  # the measure has no more points than that many polynomials: Ritz values are eigenvalues
        count = int(np.argmin(beside != 0)) + 1
        diagonal, beside = diagonal[:count], beside[:count]
    ritz = eigh_tridiagonal(diagonal, beside[:-1], eigvals_only=True)
    lower = float(np.max(np.abs(ritz)))
    if lower == 0 or beside[-1] == 0:
        return lower, lower

    def total(x: float) -> float:
        before, now, result = 0.0, 1.0, 1.0
        for j, size in enumerate(beside):
            before, now = (
                now,
                ((x - diagonal[j]) * now - (beside[j - 1] * before if j else 0.0))
                / size,
            )
            result += now * now
            if result > most:
                break
        return result

    upper = lower
    for end, outward in ((ritz[-1], 1.0), (ritz[0], -1.0)):
        inside, gap = 0.0, 1e-3 * lower
        while total(end + outward * gap) <= most:
            inside, gap = gap, 2 * gap
        for _ in range(30):
            middle = (inside + gap) / 2
            inside, gap = (
                (middle, gap)
                if total(end + outward * middle) <= most
                else (inside, middle)
            )
        upper = max(upper, abs(float(end + outward * gap)))
    return lower, upper
