"""Algorithm 1 of ghashami2016 to the letter, what it loses, and the rows that it reads."""

import math
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from jax import Array
from scipy import linalg

from jaxkern import features, kernels
from proofs_check.claim import Setting
from proofs_check.papers.ghashami2016.trials import draw
from proofs_check.papers.shared import op_norm


def algorithm_1(
    rows: np.ndarray,
    sketch_size: int,
    *,
    shrink_at: int | None = None,
    last: bool = False,
) -> tuple[np.ndarray, np.ndarray]:
    """Return (B, W) of Algorithm 1 with l = `sketch_size` rows, one row at a time, in float64.

    B (l, m) is decomposed as soon as none of its rows is free, and the square of its singular value number `shrink_at`,
    by default l // 2, is subtracted. W (m, r) has the right singular vectors, with a positive singular value, of the
    last decomposition; `last` decomposes once more what came after it.
    """
    number = sketch_size // 2 if shrink_at is None else shrink_at
    B = np.zeros((sketch_size, rows.shape[1]))
    W = np.zeros((rows.shape[1], 0))
    filled = 0
    fresh = False
    for row in np.asarray(rows, np.float64):
        B[filled] = row
        filled += 1
        fresh = filled < sketch_size
        if fresh:
            continue
        _, s, Vt = np.linalg.svd(B, full_matrices=False)
        W = Vt[s > 1e-9 * s[0]].T
        squares = np.maximum(s**2 - s[number - 1] ** 2, 0)
        squares[squares < 1e-12 * s[0] ** 2] = 0  # rounding must not keep a row
        B = np.zeros_like(B)
        B[: len(s)] = np.sqrt(squares)[:, None] * Vt
        filled = int(np.count_nonzero(squares))
    return B, row_space(B) if last and fresh else W


def row_space(B: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of the span of the rows of B, as columns."""
    _, s, Vt = np.linalg.svd(B, full_matrices=False)
    return Vt[s > 1e-9 * max(s[0], 1e-300)].T


def lost(A: np.ndarray, W: np.ndarray) -> float:
    """|A A' - A W W'A'|_2, which is |A (I - W W')|_2^2."""
    return op_norm(A - A @ W @ W.T) ** 2


def lost_in_lemma_3_2(A: np.ndarray, B: np.ndarray) -> float:
    """The largest |y'A|^2 over unit vectors y with y'A B^+ B = 0."""
    W = row_space(B)
    N = linalg.null_space((A @ W).T, rcond=1e-9) if W.size else np.eye(len(A))
    return op_norm(N.T @ A) ** 2 if N.size else 0.0


def feature_rows(key: Array, data: Mapping[str, Any], size: int) -> np.ndarray:
    """Return Z (n, size) of the library's shifted features of points, in float64."""
    return np.asarray(draw(key, data, size, 0)(data["points"]), np.float64)


def stream(name: str, A: np.ndarray, size: int) -> Setting:
    """Return a setting with the rows of a fixed stream and l = `size`."""
    return Setting(f"{name}, l={size}", {"rows": A}, shapes={"l": size})


def pairs_of_rows(sketch_size: int) -> np.ndarray:
    """Return (96, 24) rows: batches of l / 2 orthonormal ones, each twice. Every shrink at l / 2 loses all it sees."""
    batch = np.repeat(np.eye(24)[: sketch_size // 2], 2, axis=0)
    return np.tile(batch, (96 // sketch_size, 1))


def low_rank(rank: int) -> np.ndarray:
    """Return (96, 24) rows of this rank."""
    rng = np.random.default_rng(3)
    return rng.standard_normal((96, rank)) @ rng.standard_normal((rank, 24))


def decaying() -> np.ndarray:
    """Return (96, 24) rows with an offset and exponentially decaying singular values."""
    normal = np.random.default_rng(4).standard_normal((96, 24))
    return (normal + 0.5) * 0.7 ** np.arange(24)


def heavy() -> np.ndarray:
    """Return (96, 24) rows, every other one along the first axis and longer than the others, which do not have it.

    All shrinks take their whole delta off this direction, so that the sketch loses the sum of them, and no less.
    """
    A = decaying() * (np.arange(24) > 0)
    A[::2] = 3 * np.eye(1, 24)
    return A


def sign_rows(signs: Any) -> np.ndarray:
    """Return 64 shifted Fourier features, all of whose cosines are 1 or -1, of points chosen after the features.

    Row i has the signs of row signs[i] of a Hadamard matrix: |z|^2 = 2, and different rows are orthogonal. The points,
    in dimension 64, solve <w_j, x> + gamma_j = 0 or pi.
    """
    size = 64
    phi = features.shifted_fourier(
        jax.random.key(5), kernels.Gaussian(1.0), size, num_frequencies=size
    )
    W = np.asarray(phi.frequencies, np.float64)
    shifts = np.asarray(phi.shifts, np.float64)
    phases = np.where(linalg.hadamard(size) > 0, 0, math.pi)
    points = np.linalg.solve(W, phases.T - shifts[:, None]).T
    Z = math.sqrt(2 / size) * np.cos(points @ W.T + shifts)
    return Z[np.asarray(signs)]


def doubled_then_elsewhere(sketch_size: int, batches: int) -> np.ndarray:
    """Return which sign rows make the pattern of `pairs_of_rows`, and then l rows in other directions."""
    half = sketch_size // 2
    batch = np.repeat(np.arange(half), 2)
    return np.append(np.tile(batch, batches), half + np.arange(sketch_size))


def then_one_direction(sketch_size: int, late: int) -> np.ndarray:
    """Return which sign rows to take: l different ones, which fill the buffer, and `late` times one more."""
    return np.minimum(np.arange(sketch_size + late), sketch_size)
