"""Parts of the floor: what no method can leave out, at the best speed of the libraries that are installed.

Everything is done in pieces that a cache holds, by as many threads as the cases have, with the data read from memory
once. NumPy runs one piece a thread with BLAS at one thread, or OpenBLAS spreads over the threads by itself.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax import lax

from benchmarks._case import Part
from benchmarks._numpy import PIECE, by_pieces, one_blas_thread

HIGHEST = lax.Precision.HIGHEST


def product(name: str, rows: int, inner: int, columns: int) -> Part:
    """Return (rows, inner) times (inner, columns). Pieces of the result are overwritten: storing it is another part."""
    A, B, whole = _factors(rows, inner, columns)
    X, Y = jnp.asarray(A), jnp.asarray(B)
    step = max(min(PIECE // columns, rows), 1)

    def piece(rows: slice) -> None:
        np.matmul(A[rows], B)

    return Part(
        f"product {name}",
        {
            "numpy pieces": lambda: by_pieces(piece, A.shape[0], step),
            "numpy": lambda: np.matmul(A, B, out=whole),
            "xla": lambda: _matmul(X, Y),
        },
    )


def elementwise(name: str, entries: int) -> Part:
    """Return a function of NumPy, "exp" or "cos", of this many entries, in place in the cache."""
    numpy_function = getattr(np, name)
    count = -(-entries // PIECE)
    values = np.linspace(-1, 0, min(entries, PIECE), dtype=np.float32)
    X = jnp.asarray(np.resize(values, min(entries, 4 * PIECE)))
    turns = -(-entries // X.size)

    def piece(rows: slice) -> None:
        out = np.empty_like(values)
        for _ in range(rows.start, rows.stop):
            numpy_function(values, out=out)

    return Part(
        name,
        {
            "numpy pieces": lambda: by_pieces(piece, count, max(count // 16, 1)),
            "xla": lambda: _repeated(X, turns, name=name),
        },
    )


def store(rows: int, columns: int) -> Part:
    """Return a write of so many numbers to memory that is new, as that of a result is."""

    def fresh() -> np.ndarray:
        out = np.empty((rows, columns), np.float32)
        by_pieces(lambda piece: out[piece].fill(1), rows, max(PIECE // columns, 1))
        return out

    return Part(
        "store",
        {"numpy pieces": fresh, "xla": lambda: _full((rows, columns), np.float32(1))},
    )


def decomposition(size: int, count: int) -> Part:
    """Return `count` eigen-decompositions of symmetric matrices of this size, one after the other."""
    G = np.random.default_rng(0).standard_normal((size, 2 * size)).astype(np.float32)
    A = G @ G.T
    X = jnp.asarray(A)

    def each(function: Any) -> None:
        for _ in range(count):
            function(A)

    def alone(function: Any) -> None:
        with one_blas_thread():
            each(function)

    lapack = partial(scipy.linalg.eigh, driver="evd", check_finite=False)
    return Part(
        "decompositions",
        {
            "numpy": lambda: each(np.linalg.eigh),
            "numpy, one thread": lambda: alone(np.linalg.eigh),
            "scipy": lambda: each(lapack),
            "xla": lambda: each(lambda _: jax.block_until_ready(_eigh(X))),
        },
    )


def small_products(name: str, rows: int, inner: int, columns: int, count: int) -> Part:
    """Return `count` products of small matrices, one after the other."""
    A, B, out = _factors(rows, inner, columns)
    X, Y = jnp.asarray(A), jnp.asarray(B)

    def numpy_products() -> None:
        for _ in range(count):
            np.matmul(A, B, out=out)

    def xla_products() -> None:
        for _ in range(count):
            _matmul(X, Y).block_until_ready()

    return Part(f"products {name}", {"numpy": numpy_products, "xla": xla_products})


def _factors(
    rows: int, inner: int, columns: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return two matrices and room for their product."""
    rng = np.random.default_rng(0)
    A, B = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((rows, inner), (inner, columns))
    )
    return A, B, np.empty((rows, columns), np.float32)


_matmul = jax.jit(partial(jnp.matmul, precision=HIGHEST))
_eigh = jax.jit(jnp.linalg.eigh)
_full = jax.jit(jnp.full, static_argnums=0)


@partial(jax.jit, static_argnames="name")
def _repeated(X: jax.Array, turns: jax.Array, *, name: str) -> jax.Array:
    """Apply a function over and over, exp to minus the last values: these stay where it is no special case."""
    sign = -1 if name == "exp" else 1
    return lax.fori_loop(0, turns, lambda _, Y: getattr(jnp, name)(sign * Y), X)
