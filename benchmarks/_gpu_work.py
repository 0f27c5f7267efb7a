"""What benchmarks/gpu.py times: the same work by jaxkern and, where it can, by PyTorch, with what it takes at least."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._case import Run
from benchmarks._data import KEPT, ROUNDING, clouds, lengthscale, points
from benchmarks.many import grams, labels_by_grams, problems
from benchmarks.pca import Rows, streamed
from jaxkern import features
from jaxkern.gram import gram_matmul
from jaxkern.kernels import Gaussian
from jaxkern.kmeans import kmeans

HIGHEST = jax.lax.Precision.HIGHEST
FLOAT = 4
"""Bytes of a number."""

BLOCK = 2**28
"""Entries of a Gram matrix that torch holds at a time."""

GRAMS = {
    f"gram-matmul-1e{power}-{dim}": (10**power, dim)
    for power in (5, 6)
    for dim in (3, 32, 115)
}
"""Points and their dimensions of products with a Gram matrix."""

Peer = Callable[[Any, Callable[[Any], Any]], Run]
"""Makes the work from the module torch and a function that puts an array on its device."""


@dataclass(frozen=True)
class Work:
    """What is timed: `ours()`, and by torch what `theirs` makes.

    `keep` takes from a result of ours what must agree with that of torch, up to `limit` of its largest entry; without
    it nothing is compared, and `note` says what torch does.
    """

    operations: float
    traffic: float
    ours: Run
    theirs: Peer | None = None
    keep: Callable[[Any], Any] | None = None
    limit: float = ROUNDING
    note: str = ""


def head(rows: Any) -> Any:
    """Keep the first rows of a result of either library."""
    return rows[:KEPT]


def torch_gram(torch: Any, X: Any, Y: Any, scale: float) -> Any:
    """Return the Gram matrix of the Gaussian kernel by one product, as torch users write it."""
    gaps = (X * X).sum(1)[:, None] + (Y * Y).sum(1)[None, :] - 2 * X @ Y.T
    return torch.exp(gaps.clamp(min=0) / (-2 * scale**2))


def _kernel_jl(small: bool) -> Work:
    rows, dim, n, d = (2_000, 10, 40, 8) if small else (1_000_000, 115, 400, 50)
    X, landmarks, scale = points(rows, dim), points(n, dim, 1), lengthscale(dim)
    phi = features.kernel_jl(
        jax.random.key(0), Gaussian(scale), jnp.asarray(landmarks), num_features=d
    )
    there = jnp.asarray(X)

    def theirs(torch: Any, to: Any) -> Run:
        A, L, P = to(X), to(landmarks), to(phi.projection)
        return lambda: torch_gram(torch, A, L, scale) @ P.T

    operations = 2 * rows * n * (dim + d)
    return Work(operations, FLOAT * rows * (dim + d), lambda: phi(there), theirs, head)


def _cosines(torch: Any, A: Any, W: Any) -> Run:
    """Return paired Fourier features by a matrix of frequencies."""

    def run() -> Any:
        turns = A @ W.T
        return torch.cat([torch.cos(turns), torch.sin(turns)], 1) / math.sqrt(
            W.shape[0]
        )

    return run


def _by_frequencies(
    rows: int,
    dim: int,
    m: int,
    draw: Callable[..., Any],
    operations: float,
    note: str = "",
) -> Work:
    X, scale = points(rows, dim), lengthscale(dim)
    phi = draw(
        jax.random.key(0), Gaussian(scale), dim, num_frequencies=m, dtype=jnp.float32
    )
    there = jnp.asarray(X)

    def theirs(torch: Any, to: Any) -> Run:
        return _cosines(torch, to(X), to(phi.frequencies) / scale)

    return Work(
        operations,
        FLOAT * rows * (dim + 2 * m),
        lambda: phi(there),
        theirs,
        head,
        note=note,
    )


def _fourier(small: bool) -> Work:
    rows, dim, m = (2_000, 10, 32) if small else (500_000, 115, 512)
    return _by_frequencies(rows, dim, m, features.paired_fourier, 2 * rows * dim * m)


def _fastfood(small: bool) -> Work:
    rows, dim, m = (500, 64, 128) if small else (20_000, 2_048, 4_096)
    operations = (
        2 * rows * m * math.log2(dim)
    )  # two Hadamard transforms for each block of dim frequencies
    return _by_frequencies(
        rows,
        dim,
        m,
        features.fastfood,
        operations,
        "by its dense matrix of frequencies",
    )


def gram_product(n: int, dim: int, small: bool, side: int | None = None) -> Work:
    n, columns = 1_500 if small else n, 10
    X, V, scale = points(n, dim), points(n, columns, 1), lengthscale(dim)
    there, vectors, kernel = jnp.asarray(X), jnp.asarray(V), Gaussian(scale)

    def theirs(torch: Any, to: Any) -> Run:
        A, B = to(X), to(V)
        return lambda: torch.cat(
            [torch_gram(torch, rows, A, scale) @ B for rows in A.split(BLOCK // n)]
        )

    return Work(
        2 * n * n * (dim + columns),
        FLOAT * n * (dim + 2 * columns),
        lambda: gram_matmul(kernel, there, there, vectors, block_size=side),
        theirs if n <= 10**5 else None,  # 100 times that
        head,
        note="rows of 1 GB at a time" if n <= 10**5 else "",
    )


def _kernel_pca(small: bool) -> Work:
    n, dim, k = (
        (200, 5, 10) if small else (4_000, 10, 100)
    )  # so many that all n are decomposed, as torch does
    X, scale = points(n, dim), lengthscale(dim)
    there, kernel = jnp.asarray(X), Gaussian(scale)

    def theirs(torch: Any, to: Any) -> Run:
        A = to(X)

        def run() -> Any:
            K = torch_gram(torch, A, A, scale)
            K = K - K.mean(0)[None, :]
            values, vectors = torch.linalg.eigh(K - K.mean(1)[:, None])
            return values.flip(0)[:k], vectors[:, -k:]

        return run

    operations, traffic = 2 * n * n * dim + 4 / 3 * n**3, FLOAT * (n * (dim + k) + k)
    return Work(
        operations,
        traffic,
        lambda: features.kernel_pca(kernel, there, num_components=k),
        theirs,
        lambda found: found.eigenvalues if hasattr(found, "eigenvalues") else found[0],
    )


def _streaming_pca(small: bool) -> Work:
    rows, m, size = (1_200, 40, 6) if small else (100_000, 1_000, 50)
    decay = (np.arange(1, m + 1) ** -0.5).astype(np.float32)
    Z = points(rows, m) * decay
    batches = [jnp.asarray(Z[start : start + 5 * m]) for start in range(0, rows, 5 * m)]
    pca = features.streaming_pca(Rows(m), sketch_size=size)

    def ours() -> Any:
        return streamed(pca, batches, size).eigenvalues

    def theirs(torch: Any, to: Any) -> Run:
        blocks = to(Z).split(size)

        def run() -> Any:
            kept = torch.zeros_like(blocks[0])
            for block in blocks:
                both = torch.cat([kept, block])
                values, vectors = torch.linalg.eigh(both @ both.T)
                least = values[-size - 1]
                gains = torch.sqrt(
                    (values[-size:] - least).clamp(min=0)
                    / values[-size:].clamp(min=1e-30)
                )
                kept = gains[:, None] * (vectors[:, -size:].T @ both)
            return (kept * kept).sum(1).flip(0)

        return run

    # Each shrink: the products of 2 l rows, their decomposition, and l new rows.
    shrink = 2 * (2 * size) ** 2 * m + 4 / 3 * (2 * size) ** 3 + 2 * size * 2 * size * m
    # The two shrink by eigenvalues of other numbers: only what is large agrees, and not to rounding.
    return Work(
        shrink * rows / size,
        FLOAT * rows * m,
        ours,
        theirs,
        lambda values: values[:3],
        0.1,
    )


def _kmeans(small: bool) -> Work:
    rows, dim, clusters = (1_500, 8, 4) if small else (1_000_000, 50, 10)
    there = jnp.asarray(clouds(rows, dim, clusters, 0.5)[0])

    def ours() -> Any:
        return kmeans(
            jax.random.key(0), there, clusters, max_iterations=20, tolerance=0.0
        )

    turns = int(ours().iterations)
    # Scores and sums of every iteration; seeding is not counted.
    return Work(
        4 * rows * dim * clusters * turns,
        FLOAT * rows * dim * turns,
        ours,
        note="torch has none",
    )


def _small_spectral(small: bool) -> Work:
    count, n = (5, 40) if small else (1_000, 200)
    Ks = grams(problems([n] * count))
    there = jnp.asarray(Ks)

    def theirs(torch: Any, to: Any) -> Run:
        A = to(Ks)
        return lambda: torch.linalg.eigh(A)[0]

    def ours() -> Any:
        return labels_by_grams(
            jax.random.split(jax.random.key(0), count), there, together=count
        )

    words = "its decompositions alone"
    return Work(
        count * 4 / 3 * n**3, FLOAT * count * (n * n + n), ours, theirs, note=words
    )


def _gradient(small: bool) -> Work:
    rows, dim, n, d = (1_500, 10, 40, 8) if small else (200_000, 115, 400, 50)
    X, C, landmarks, scale = (
        points(rows, dim),
        points(rows, d, 2),
        points(n, dim, 1),
        lengthscale(dim),
    )
    phi = features.kernel_jl(
        jax.random.key(0), Gaussian(scale), jnp.asarray(landmarks), num_features=d
    )
    there, weights = jnp.asarray(X), jnp.asarray(C)
    gradient = jax.jit(jax.grad(lambda X: jnp.vdot(phi(X), weights, precision=HIGHEST)))

    def theirs(torch: Any, to: Any) -> Run:
        A, L, P, W = to(X).requires_grad_(), to(landmarks), to(phi.projection), to(C)
        return lambda: torch.autograd.grad(
            ((torch_gram(torch, A, L, scale) @ P.T) * W).sum(), A
        )[0]

    operations = 2 * rows * n * (2 * dim + d)
    return Work(
        operations, FLOAT * rows * (2 * dim + d), lambda: gradient(there), theirs, head
    )


WORK: Mapping[str, Callable[[bool], Work]] = {
    "kernel-jl-map": _kernel_jl,
    "paired-fourier": _fourier,
    "fastfood": _fastfood,
    **{name: partial(gram_product, *shape) for name, shape in GRAMS.items()},
    "kernel-pca-fit": _kernel_pca,
    "streaming-pca": _streaming_pca,
    "kmeans": _kmeans,
    "small-spectral": _small_spectral,
    "gradient": _gradient,
}
