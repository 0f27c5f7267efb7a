"""The peers written by hand in NumPy: in place, in pieces that a cache holds, one after the other or by threads."""

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import threadpoolctl

from benchmarks import _machine

PIECE = 2**17
"""Entries of a piece: half a megabyte in float32."""

Rows = Callable[[np.ndarray], np.ndarray]


@functools.cache
def _workers() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(_machine.threads())


@functools.cache
def _controller() -> threadpoolctl.ThreadpoolController:
    return threadpoolctl.ThreadpoolController()


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses the thread that calls it."""
    return _controller().limit(limits=1, user_api="blas")


def by_pieces(piece: Callable[[slice], Any], rows: int, step: int) -> None:
    """Call a function for slices of rows, on all threads."""
    with one_blas_thread():
        list(
            _workers().map(
                lambda start: piece(slice(start, min(start + step, rows))),
                range(0, rows, step),
            )
        )


def mapped(
    rows: Rows, X: np.ndarray, width: int, step: int, *, threaded: bool
) -> np.ndarray:
    """Map the rows of X to `width` numbers each, `step` rows at a time."""
    out = np.empty((X.shape[0], width), X.dtype)

    def piece(where: slice) -> None:
        out[where] = rows(X[where])

    if threaded:
        by_pieces(piece, X.shape[0], step)
    else:
        for start in range(0, X.shape[0], step):
            piece(slice(start, start + step))
    return out


def gaussian_rows(
    landmarks: np.ndarray, lengthscale: float, weights: np.ndarray
) -> Rows:
    """Return x -> weights (exp(-|x - l_1|^2 / (2 lengthscale^2)), ...) for weights (num_features, landmarks)."""
    scale = landmarks.dtype.type(1 / lengthscale**2)
    columns = np.ascontiguousarray((landmarks * scale).T)
    offset = -scale / 2 * np.einsum("ij,ij->i", landmarks, landmarks)
    transposed = np.ascontiguousarray(weights.T)

    def rows(X: np.ndarray) -> np.ndarray:
        K = X @ columns
        K += offset
        K -= (scale / 2 * np.einsum("ij,ij->i", X, X))[:, None]
        np.minimum(K, 0, out=K)
        return np.exp(K, out=K) @ transposed

    return rows


def gaussian_gradient(
    landmarks: np.ndarray, lengthscale: float, weights: np.ndarray
) -> Callable[..., Any]:
    """Return (X, C) -> the gradient of <C, phi(X)> in X and in the lengthscale, phi the map of `gaussian_rows`."""
    scale = landmarks.dtype.type(1 / lengthscale**2)
    squares = np.einsum("ij,ij->i", landmarks, landmarks)

    def one(X: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, float]:
        gaps = X @ landmarks.T
        gaps *= -2
        gaps += squares
        gaps += np.einsum("ij,ij->i", X, X)[:, None]
        np.maximum(gaps, 0, out=gaps)
        G = np.exp(-scale / 2 * gaps)
        G *= C @ weights
        slope = scale * (G @ landmarks - G.sum(axis=1, keepdims=True) * X)
        return slope, float(np.vdot(G, gaps)) * float(scale) / lengthscale

    def gradient(X: np.ndarray, C: np.ndarray) -> tuple[np.ndarray, float]:
        step = max(PIECE // landmarks.shape[0], 1)
        out, slopes = np.empty_like(X), np.zeros(-(-X.shape[0] // step))

        def piece(where: slice) -> None:
            out[where], slopes[where.start // step] = one(X[where], C[where])

        by_pieces(piece, X.shape[0], step)
        return out, slopes.sum()

    return gradient


def paired_rows(frequencies: np.ndarray) -> Rows:
    """Return x -> (cos<w_j, x>, sin<w_j, x>) / sqrt(m) for frequencies w (m, dim)."""
    transposed = np.ascontiguousarray(frequencies.T)
    return lambda X: _paired(X @ transposed)


def _paired(phases: np.ndarray) -> np.ndarray:
    """Return (cos, sin) / sqrt(m) of phases (n, m), side by side."""
    m = phases.shape[1]
    out = np.empty((phases.shape[0], 2 * m), phases.dtype)
    np.cos(phases, out=out[:, :m])
    np.sin(phases, out=out[:, m:])
    out *= phases.dtype.type(m**-0.5)
    return out


def shifted_rows(frequencies: np.ndarray, shifts: np.ndarray) -> Rows:
    """Return x -> sqrt(2 / m) cos(<w_j, x> + b_j)."""
    transposed, m = np.ascontiguousarray(frequencies.T), frequencies.shape[0]

    def rows(X: np.ndarray) -> np.ndarray:
        out = X @ transposed
        out += shifts
        np.cos(out, out=out)
        out *= X.dtype.type((2 / m) ** 0.5)
        return out

    return rows


def fastfood_rows(phi: Any) -> Rows:
    """Return Fastfood with the random numbers of a map of `features.fastfood` at lengthscale `phi.kernel.lengthscale`.

    The Hadamard transform is two small matrix products, as there. Its rows come in another order, so that the numbers
    are those of another draw.
    """
    signs, permutations, gains = (
        np.asarray(a) for a in (phi.signs, phi.permutations, phi.gains)
    )
    lengths = np.asarray(phi.lengths) / signs.dtype.type(phi.kernel.lengthscale)
    size, dim, m = gains.shape[1], signs.shape[1], lengths.shape[0]
    left = 1 << (size.bit_length() - 1) // 2
    first, second = (_hadamard(n).astype(signs.dtype) for n in (left, size // left))

    def transform(X: np.ndarray) -> np.ndarray:
        return np.matmul(first, X.reshape(-1, left, size // left) @ second).reshape(
            -1, size
        )

    def rows(X: np.ndarray) -> np.ndarray:
        phases = np.empty((X.shape[0], gains.shape[0] * size), X.dtype)
        padded = np.zeros((X.shape[0], size), X.dtype)
        for block, (sign, permutation, gain) in enumerate(
            zip(signs, permutations, gains, strict=True)
        ):
            padded[:, :dim] = X * sign
            mixed = np.take(transform(padded), permutation, axis=1)
            mixed *= gain
            phases[:, block * size : (block + 1) * size] = transform(mixed)
        return _paired(phases[:, :m] * lengths)

    return rows


def _hadamard(size: int) -> np.ndarray:
    H: np.ndarray = np.ones((1, 1))
    while H.shape[0] < size:
        H = np.kron(H, [[1, 1], [1, -1]])
    return H


def frequent_directions(rows: np.ndarray, size: int, *, by_gram: bool) -> np.ndarray:
    """Return the sketch (size, dim) of the rows, less their mean: a buffer of twice its size that is shrunk when full.

    By singular values of the buffer, as in textbooks, or by the eigenvalues of its small Gram matrix.
    """
    rows = rows - rows.mean(axis=0)
    buffer, filled = np.zeros((2 * size, rows.shape[1]), rows.dtype), 0
    start = 0
    while start < rows.shape[0]:
        if filled == 2 * size:
            buffer, filled = _shrunk(buffer, size, by_gram), size
        taken = min(2 * size - filled, rows.shape[0] - start)
        buffer[filled : filled + taken] = rows[start : start + taken]
        start, filled = start + taken, filled + taken
    return _shrunk(buffer, size, by_gram)[:size]


def _shrunk(buffer: np.ndarray, size: int, by_gram: bool) -> np.ndarray:
    out = np.zeros_like(buffer)
    if by_gram:
        values, vectors = np.linalg.eigh(buffer @ buffer.T)
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        kept = np.sqrt(
            np.maximum(values[:size] - values[size], 0)
            / np.maximum(values[:size], 1e-30)
        )
        out[:size] = (kept[:, None] * vectors[:, :size].T) @ buffer
    else:
        _, values, vectors = np.linalg.svd(buffer, full_matrices=False)
        out[:size] = (
            np.sqrt(np.maximum(values[:size] ** 2 - values[size] ** 2, 0))[:, None]
            * vectors[:size]
        )
    return out
