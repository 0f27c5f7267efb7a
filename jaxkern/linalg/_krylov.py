"""A few eigenpairs of a symmetric matrix that is given by its products: block Krylov spaces with restarts.

Only products, eigen-decompositions of small matrices and orthonormalisation by them are used, which every platform has.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._types import Array, DTypeLike, Float
from jaxkern.draws import normal_rows
from jaxkern.linalg._dense import eigh, matmul

BLOCKS = 4
"""Blocks of the Krylov basis. More make a restart dearer and fewer waste products; 3 to 6 differ little."""

Priority = Callable[[jax.Array], jax.Array]


class Eigenpairs(NamedTuple):
    """Leading eigenpairs of a symmetric matrix A, (n, n).

    Attributes
    ----------
    values : (k,), in the order asked for.
    vectors : (n, k), orthonormal columns.
    residuals : (k,), the norms |A v - value v|, from a product of A made for them. Some eigenvalue of A is no farther
        from the value than this, and it bounds the angle of v to an eigenspace once divided by the gap.
    converged : scalar bool, whether every residual is at most twice the tolerance times the largest |value| found.
    num_products : scalar int32, the number of vectors that A was applied to.
    """

    values: jax.Array
    vectors: jax.Array
    residuals: jax.Array
    converged: jax.Array
    num_products: jax.Array


def start_block(
    num_rows: int, num_values: int, dtype: DTypeLike, *, extra: int = 6
) -> Float[Array, "num_rows width"]:
    """Return the start (num_rows, width) that the package uses: normal draws of one fixed key.

    What converges does not depend on it, so results stay deterministic and no caller needs a key. The width exceeds
    num_values by a quarter and by `extra` at least.
    """
    key = jax.random.key(20200, impl="threefry2x32")
    return normal_rows(key, num_rows, num_values + max(extra, num_values // 4), dtype)


def largest_eigenpairs(
    product: Callable[[jax.Array], jax.Array],
    start: Float[Array, "n width"],
    *,
    num_values: int,
    max_restarts: int = 100,
    tolerance: float | None = None,
) -> Eigenpairs:
    """Return the algebraically largest eigenvalues of a symmetric A, descending, and their eigenvectors.

    Block Krylov spaces with full orthogonalisation, restarted with the best Ritz vectors. A cluster of up to `width`
    equal eigenvalues is found whole, and so are all eigenvectors of a matrix of low rank.

    Parameters
    ----------
    product : V -> A V for V (n, width); symmetric up to rounding, and never asked for anything but products.
    start : (n, width) of full rank, width >= num_values, with a component in every eigenvector asked for: draws, as
        those of `start_block`. A width a little above num_values speeds up convergence.
    num_values : k, in [1, min(n, width)].
    max_restarts : at least 1; each takes 3 width products.
    tolerance : residuals are to be at most this times |A|; 20 eps(dtype) by default, a little above what rounding
        allows.

    Returns
    -------
    Eigenpairs. Where `converged` is False the pairs are the best ones found, and `residuals` says how good they are.

    Notes
    -----
    Memory O(n width), beyond that of the product. Where n <= 4 width, A is formed by n products and decomposed. To be
    called inside `jit`; it maps over stacked matrices. Not for derivatives: `leading_eigh` has them.
    """
    return eigenpairs(product, start, num_values, max_restarts, tolerance, signed)


def largest_modulus_eigenpairs(
    product: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    *,
    num_values: int,
    max_restarts: int = 100,
    tolerance: float | None = None,
) -> Eigenpairs:
    """Return the eigenvalues of a symmetric A that are largest in modulus, in that order, and their eigenvectors.

    As `largest_eigenpairs`, for either end of the spectrum. The order of two eigenvalues of equal modulus and opposite
    sign is that of their rounding.
    """
    return eigenpairs(product, start, num_values, max_restarts, tolerance, jnp.abs)


def signed(values: jax.Array) -> jax.Array:
    """Return the values: the priority of those that are largest with their sign."""
    return values


def eigenpairs(
    product: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    num_values: int,
    max_restarts: int,
    tolerance: float | None,
    priority: Priority,
) -> Eigenpairs:
    start = checks.matrix("start", start)
    n, width = start.shape
    num_values = checks.count(
        "num_values",
        num_values,
        maximum=min(n, width),
        limit="the rows and columns of start",
    )
    max_restarts = checks.count("max_restarts", max_restarts)
    if tolerance is None:
        tolerance = 20 * float(jnp.finfo(start.dtype).eps)
    if n <= BLOCKS * width:
        A = product(jnp.eye(n, dtype=start.dtype))
        X, AX, num_products = (
            jnp.eye(n, dtype=start.dtype),
            A,
            jnp.asarray(n, jnp.int32),
        )
        values, vectors, images, size = _ritz(X, AX, num_values, priority)
    else:
        X, size, restarts = _krylov(
            product, start, num_values, max_restarts, tolerance, priority
        )
        values, vectors, images, _ = _ritz(X, product(X), num_values, priority)
        num_products = width + (BLOCKS - 1) * width * restarts + num_values
    residuals = _residuals(values, vectors, images, size)
    converged = jnp.all(residuals <= 2 * tolerance)
    return Eigenpairs(values, vectors, residuals * size, converged, num_products)


class _State(NamedTuple):
    """Ritz vectors (n, width) and their images, which of them have converged, and how the iteration stands."""

    X: jax.Array
    AX: jax.Array
    finished: jax.Array
    size: jax.Array
    restarts: jax.Array
    done: jax.Array


def _krylov(
    product: Callable[[jax.Array], jax.Array],
    start: jax.Array,
    num_values: int,
    max_restarts: int,
    tolerance: float,
    priority: Priority,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return Ritz vectors (n, num_values), the largest modulus of a Ritz value, and the number of restarts."""
    n, width = start.shape

    def cycle(state: _State) -> _State:
        Q, AQ, last = state.X, state.AX, state.AX
        for _ in range(1, BLOCKS):
            # What A does to the last block, less its part in Q, is the residual. A direction that A leaves by less than
            # the tolerance is finished; to follow its rounding would bring in vectors that are not, with Ritz values
            # that cannot be told from those wanted.
            block = _orthonormal(last, Q, tolerance * jnp.max(_lengths(AQ)))
            last = product(block)
            Q, AQ = (
                jnp.concatenate([Q, block], axis=1),
                jnp.concatenate([AQ, last], axis=1),
            )
        held = jnp.pad(state.finished, (0, (BLOCKS - 1) * width))
        values, X, AX, size = _ritz(Q, AQ, width, priority, held, tolerance)
        residuals = _residuals(values, X, AX, size)
        finished = residuals <= tolerance
        # What is not a number will not become one.
        done = jnp.all(finished[:num_values]) | ~jnp.isfinite(jnp.sum(residuals))
        return _State(X, AX, finished, size, state.restarts + 1, done)

    none, zero = jnp.zeros((width,), bool), jnp.zeros((), start.dtype)
    first = _orthonormal(start, jnp.zeros((n, 1), start.dtype), zero)
    state = _State(
        first, product(first), none, zero, jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    )
    state = lax.while_loop(
        lambda state: ~state.done & (state.restarts < max_restarts), cycle, state
    )
    return state.X[:, :num_values], state.size, state.restarts


def _orthonormal(W: jax.Array, Q: jax.Array, floor: jax.Array) -> jax.Array:
    """Return orthonormal columns that span what W has outside the columns of Q; the missing ones are zero.

    Columns shorter than `floor` outside of Q are left out. Twice: the first pass loses digits to cancellation, in the
    projection and in the Gram matrix of W, and the second starts from nearly orthonormal columns. What then falls below
    half its length was rounding.
    """
    W = W - matmul(Q, matmul(Q.T, W))
    lengths = _lengths(W)
    W = jnp.where(lengths > floor, W / jnp.where(lengths > 0, lengths, 1), 0)
    W = _whitened(W, 100 * W.shape[1] * float(jnp.finfo(W.dtype).eps))
    W = W - matmul(Q, matmul(Q.T, W))
    W = _whitened(W, 0.25)
    return matmul(W, _towards_orthonormal(W))


def _lengths(W: jax.Array) -> jax.Array:
    """Return the lengths (1, width) of the columns, without overflow."""
    largest = jnp.max(jnp.abs(W), axis=0, keepdims=True)
    scaled = W / jnp.where(largest > 0, largest, 1)
    return largest * jnp.sqrt(jnp.sum(scaled * scaled, axis=0, keepdims=True))


def _towards_orthonormal(X: jax.Array) -> jax.Array:
    """Return C for which the columns of X C are orthonormal to rounding where those of X nearly are, or are zero."""
    return 1.5 * jnp.eye(X.shape[1], dtype=X.dtype) - 0.5 * matmul(X.T, X)


def _whitened(W: jax.Array, floor: float) -> jax.Array:
    """Return W U Lambda^{-1/2}, W' W = U Lambda U', with zeros where an eigenvalue is at most `floor`."""
    values, vectors = eigh(matmul(W.T, W))
    kept = values > floor
    return matmul(
        W, vectors * jnp.where(kept, lax.rsqrt(jnp.where(kept, values, 1)), 0)[None, :]
    )


def _ritz(
    Q: jax.Array,
    AQ: jax.Array,
    num_values: int,
    priority: Priority,
    finished: jax.Array | None = None,
    tolerance: float = 0.0,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return the leading Ritz values, their vectors X and A X, and the largest modulus of a Ritz value.

    Columns of Q are orthonormal or zero. Those marked `finished` are Ritz vectors up to the tolerance and stay as they
    are: in a cluster of equal eigenvalues wider than the block, rounding would mix them with vectors that are not. They
    are also preferred where Ritz values differ by less than the tolerance.
    """
    num_columns = Q.shape[1]
    finished = jnp.zeros((num_columns,), bool) if finished is None else finished
    missing = jnp.sum(Q * Q, axis=0) < 0.5
    T = matmul(Q.T, AQ)
    T = (T + T.T) / 2
    # What is set aside couples with nothing, and is moved below every Ritz value, to be the last.
    aside = missing | finished
    alone = jnp.diagonal(T)
    bound = jnp.max(jnp.sum(jnp.abs(T), axis=1))
    rest = jnp.where(aside[:, None] | aside[None, :], 0, T)
    values, vectors = eigh(
        rest + jnp.diag(jnp.where(aside, jnp.where(bound > 0, -2 * bound, -1), 0))
    )
    mixed = jnp.arange(num_columns) < jnp.sum(~aside)
    size = jnp.maximum(
        jnp.max(jnp.where(mixed, jnp.abs(values), 0)),
        jnp.max(jnp.where(finished, jnp.abs(alone), 0)),
    )
    kept = jnp.where(finished, priority(alone) + tolerance * size, -jnp.inf)
    order = jnp.argsort(
        -jnp.concatenate([jnp.where(mixed, priority(values), -jnp.inf), kept])
    )[:num_values]
    turn = jnp.concatenate([vectors, jnp.eye(num_columns, dtype=T.dtype)], axis=1)[
        :, order
    ]
    X, AX = matmul(Q, turn), matmul(AQ, turn)
    # The rounding of one restart after another would add up.
    back = _towards_orthonormal(X)
    return (
        jnp.concatenate([values, alone])[order],
        matmul(X, back),
        matmul(AX, back),
        size,
    )


def _residuals(
    values: jax.Array, X: jax.Array, AX: jax.Array, size: jax.Array
) -> jax.Array:
    """Return |A x - value x| / size for each column."""
    return _lengths(AX - X * values[None, :])[0] / jnp.where(size > 0, size, 1)
