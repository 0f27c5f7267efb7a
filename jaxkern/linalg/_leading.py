"""A few eigenpairs of a symmetric matrix that is given by its entries, with safe derivatives."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern._distances import everywhere
from jaxkern.linalg._dense import eigh, matmul, power_of, scale_of
from jaxkern.linalg._krylov import BLOCKS, Priority, eigenpairs, signed, start_block

_CACHE = 2**25
"""Bytes of the largest matrix that is taken to stay in a cache between products."""


def leading_eigh(A: jax.Array, *, num_values: int) -> tuple[jax.Array, jax.Array]:
    """Return the largest eigenvalues (num_values,) of a symmetric A (n, n), descending, and eigenvectors as columns.

    The partial solver runs where it is faster, by n and num_values alone, see `prefers_partial`. Where it does not
    converge within 2 n products, a full decomposition follows.

    Derivatives are those of the eigenpairs where eigenvalues are apart. Where some coincide, eigenvectors have none;
    what is returned is right for sums of a function over these eigenvalues and for the projector V V', unless the cut
    divides equal eigenvalues, and finite always. A function of both, V f(Lambda) V', has its right derivative as
    V f(V' A V) V', with `psd_power` for f, say: numerically V' A V is Lambda, but it carries what Lambda alone cannot
    know. The rule decomposes A in full. Second derivatives are right where all eigenvalues are apart.
    """
    return _scaled(A, num_values, signed, None)


def leading_modulus_eigh(
    A: jax.Array, *, num_values: int, tolerance: float | None = None
) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues of a symmetric A (n, n) largest in modulus, in that order, and eigenvectors as columns.

    As `leading_eigh`, also in its derivatives, for a matrix that need not be positive semidefinite. With a `tolerance`
    residuals of up to so many times |A| serve; the error of the eigenvalues is of the order of its square.
    """
    return _scaled(A, num_values, jnp.abs, tolerance)


def host_eigenpairs(
    A: jax.Array, num_values: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return what `leading_eigh` does, by ARPACK; None where A is traced or not on a CPU, and where it does not serve.

    For matrices that a cache holds: beyond, products with one vector are slow. ARPACK may find equal eigenvalues once
    only; so all others must be below the last one found, less their rounding, which a Cholesky factor proves.
    """
    if (
        isinstance(A, jax.core.Tracer)
        or not prefers_partial(A.shape[0], num_values)
        or A.nbytes > _CACHE
    ):
        return None
    if {device.platform for device in A.devices()} != {"cpu"}:
        return None
    from scipy import linalg
    from scipy.sparse.linalg import (
        ArpackError,
        LinearOperator,
        eigsh,
    )  # also the class of what did not converge

    matrix, n = np.asarray(A).T, A.shape[0]  # columns in order, as BLAS wants them
    size, eps = np.abs(matrix).max(), np.finfo(matrix.dtype).eps
    if not 0 < size < np.inf:  # where it is NaN, too
        return None
    # To ARPACK every vector is an eigenvector of a matrix whose entries are far below eps.
    scale = 2.0 ** (int(np.frexp(size)[1]) - 1)
    matrix = matrix / scale
    symv, syrk = linalg.get_blas_funcs(("symv", "syrk"), (matrix,))
    (potrf,) = linalg.get_lapack_funcs(("potrf",), (matrix,))
    product = LinearOperator(
        matrix.shape, lambda v: symv(1, matrix, v.ravel(), lower=1), dtype=matrix.dtype
    )
    start = np.random.default_rng(0).standard_normal(n).astype(matrix.dtype)
    seed = {"rng": 0} if "rng" in inspect.signature(eigsh).parameters else {}
    try:
        values, vectors = eigsh(
            product,
            num_values,
            which="LA",
            v0=start,
            maxiter=n // (2 * num_values),
            **seed,
        )
    except ArpackError:
        return None
    rest = syrk(1, vectors * np.sqrt(np.maximum(values, 0)), beta=-1, c=matrix, lower=1)
    rest.flat[:: n + 1] += values.min() + 100 * eps * np.abs(values).max()
    if potrf(rest, lower=1, overwrite_a=1, clean=0)[1] != 0:
        return None
    order = np.argsort(-values)
    return values[order] * scale, vectors[:, order]


def eigen_rows(
    A: jax.Array,
    num_rows: int,
    *,
    power: float,
    largest: Any = 0.0,
    pairs: Any = None,
    size: Any = None,
) -> tuple[jax.Array, jax.Array]:
    """Return the leading rows of Lambda^power V', (num_rows, n), and of Lambda, (num_rows,), for a PSD A = V Lambda V'.

    Both are zero where the eigenvalue is rounding: at most eps * sqrt(n) * the largest, or eps * n * `largest`, the
    largest entry of what A was computed from. Rounding errors of the n^2 entries are as good as independent, so their
    norm grows like sqrt(n); a cut-off with n would throw away directions that float32 still knows. Where rows of A are
    zero as they do not exist, `size`, a scalar of the dtype, is the number of the others.

    Derivatives are those of the eigenvectors where eigenvalues are apart. Where they coincide an eigenvector has none;
    there the rows R turn as A^power does, so that whatever depends on R' R = A^(2 power) alone, A restricted to the
    leading eigenvectors, has its right derivative. The cost is that of `leading_eigh`, but for `pairs` that are given.
    """
    scale = scale_of(A)
    A, limits = A / scale, (jnp.asarray(largest, A.dtype) / scale, size)
    if pairs is None:
        rows, values = _eigen_rows(A, limits, num_rows, power)
    else:
        rows, values = _rows(pairs[0] / scale, pairs[1], A, limits, power)
    return power_of(scale, power) * rows, scale * values


def prefers_partial(n: int, num_values: int, *, coarse: bool = False) -> bool:
    """Tell whether few eigenpairs of a dense (n, n) matrix come faster from the partial solver: by sizes alone.

    `coarse` where half the digits of the eigenvectors serve. Measured by benchmarks/crossovers.py on Gaussian Gram
    matrices on CPU, one alone and a batch of small ones.
    """
    if coarse:
        return n >= 100 and 30 * num_values <= n
    return n >= 150 and (40 if n >= 400 else 50) * num_values <= n


def dense_restarts(n: int, width: int) -> int:
    """Return the restarts allowed for a dense (n, n) matrix: 2 n products, which cost about a full decomposition."""
    return max(2 * n // ((BLOCKS - 1) * width), 1)


def _scaled(
    A: jax.Array, num_values: int, priority: Priority, tolerance: float | None
) -> tuple[jax.Array, jax.Array]:
    """Return what `_leading` does, whose derivatives divide by products of eigenvalues, of a matrix of any scale."""
    scale = scale_of(A)
    values, vectors = _leading(A / scale, num_values, priority, tolerance)
    return scale * values, vectors


@partial(jax.custom_jvp, nondiff_argnums=(1, 2, 3))
def _leading(
    A: jax.Array, num_values: int, priority: Priority, tolerance: float | None
) -> tuple[jax.Array, jax.Array]:
    n = A.shape[0]
    if not prefers_partial(n, num_values, coarse=tolerance is not None):
        return _dense(A, num_values, priority)
    # Narrower than for products that are dear: with a matrix at hand the work on the basis costs more than they do.
    start = start_block(n, num_values, A.dtype, extra=2 if tolerance is None else 1)
    pairs = eigenpairs(
        lambda V: matmul(A, V),
        start,
        num_values,
        dense_restarts(*start.shape),
        tolerance,
        priority,
    )
    # One choice for a batch, whose branches do not run both. A loop of at most one turn would always run: what does
    # not depend on its state is computed before it.
    settled, found = pairs.converged, (pairs.values, pairs.vectors)

    def either() -> Any:
        return jax.tree.map(
            partial(jnp.where, settled), found, _dense(A, num_values, priority)
        )

    values, vectors = lax.cond(everywhere(settled), lambda: found, either)
    return values, vectors


def _dense(
    A: jax.Array, num_values: int, priority: Priority
) -> tuple[jax.Array, jax.Array]:
    values, vectors = eigh(A)
    if priority is not signed:
        order = jnp.argsort(-priority(values))[:num_values]
        return values[order], vectors[:, order]
    return values[:num_values], vectors[:, :num_values]


@_leading.defjvp
def _leading_jvp(
    num_values: int,
    priority: Priority,
    tolerance: float | None,
    primals: Any,
    tangents: Any,
) -> Any:
    values, vectors, moves = _moves(
        primals[0], tangents[0], num_values, priority, tolerance
    )
    slope = jnp.where(moves.apart, 1 / jnp.where(moves.apart, moves.gap, 1), 0)
    shifts = jnp.sum(matmul(tangents[0], vectors) * vectors, axis=0)
    return (values, vectors), (shifts, matmul(moves.basis, (slope * moves.turned).T))


class _Moves(NamedTuple):
    """How eigenpairs i = 1, ..., k move against all eigenvectors u_1, ..., u_n, the columns of `basis`.

    `gap` (k, n) holds the differences of eigenvalues, `apart` whether it is more than rounding, and `turned` (k, n) the
    entries v_i' dA u_j.
    """

    basis: jax.Array
    gap: jax.Array
    apart: jax.Array
    turned: jax.Array


def _moves(
    A: jax.Array,
    tangent: jax.Array,
    num_values: int,
    priority: Priority,
    tolerance: float | None = None,
) -> tuple[jax.Array, jax.Array, _Moves]:
    """Return the leading eigenpairs and how they move, by a full decomposition.

    The pairs themselves are those that are returned without a derivative, signs included.
    """
    n, eps = A.shape[0], float(jnp.finfo(A.dtype).eps)
    values, vectors = _leading(A, num_values, priority, tolerance)
    every, basis = values, vectors
    partial_solver = prefers_partial(n, num_values, coarse=tolerance is not None)
    if num_values < n and not partial_solver:
        every, basis = _leading(A, n, priority, None)
        values, vectors = every[:num_values], basis[:, :num_values]
    elif num_values < n:
        # The sum makes one decomposition wait for the other: two at a time can block each other's threads on CPU.
        every, basis = _leading(A + 0 * jnp.sum(values), n, priority, None)
    # The same eigenvalue has to have the same rounding on both sides, or it would seem apart from itself.
    own = every[jnp.argmin(jnp.abs(values[:, None] - every[None, :]), axis=1)]
    gap = own[:, None] - every[None, :]
    size = jnp.max(jnp.abs(every))
    # Among the leading ones nothing is lost by taking close eigenvalues for equal, but the second order of the gap:
    # best where that weighs as much as the rounding of the gap. Across the cut the gap is needed wherever it is known.
    close = jnp.sqrt(eps * size) * jnp.sqrt(
        jnp.maximum(jnp.abs(own)[:, None], jnp.abs(every)[None, :])
    )
    rounding = 4 * n**0.5 * eps * size
    apart = jnp.abs(gap) > jnp.where(
        jnp.arange(n)[None, :] < num_values, close, rounding
    )
    tangent = (tangent + tangent.T) / 2
    return (
        values,
        vectors,
        _Moves(basis, gap, apart, matmul(matmul(vectors.T, tangent), basis)),
    )


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _eigen_rows(
    A: jax.Array, scale: Any, num_rows: int, power: float
) -> tuple[jax.Array, jax.Array]:
    return _rows(*_leading(A, num_rows, signed, None), A, scale, power)


def _rows(
    values: jax.Array, vectors: jax.Array, A: jax.Array, scale: Any, power: float
) -> Any:
    values = _without_rounding(values, A, scale)
    return positive_power(values, power)[:, None] * vectors.T, values


@_eigen_rows.defjvp
def _eigen_rows_jvp(num_rows: int, power: float, primals: Any, tangents: Any) -> Any:
    A, scale = primals
    values, vectors, moves = _moves(A, tangents[0], num_rows, signed)
    values = _without_rounding(values, A, scale)
    kept, powers, inside = (
        values > 0,
        positive_power(values, power),
        power * positive_power(values, power - 1),
    )
    slope = jnp.where(
        moves.apart,
        powers[:, None] / jnp.where(moves.apart, moves.gap, 1),
        inside[:, None],
    )
    shifts = jnp.sum(matmul(tangents[0], vectors) * vectors, axis=0)
    turned = jnp.where(kept[:, None], slope * moves.turned, 0)
    return (powers[:, None] * vectors.T, values), (
        matmul(turned, moves.basis.T),
        jnp.where(kept, shifts, 0),
    )


def _without_rounding(values: jax.Array, A: jax.Array, scale: Any) -> jax.Array:
    eps, (largest, size) = float(jnp.finfo(A.dtype).eps), scale
    size = A.shape[0] if size is None else size
    floor = eps * jnp.maximum(size**0.5 * jnp.max(jnp.abs(values)), size * largest)
    return jnp.where(values <= floor, 0, values)  # NaN is no rounding


def positive_power(values: jax.Array, power: float) -> jax.Array:
    """Return values^power where they are positive, zero where they are not, and NaN where they are NaN."""
    positive = values > 0
    return jnp.where(positive, jnp.where(positive, values, 1) ** power, 0 * values)
