"""Growth of time and memory with the number of points N, of landmarks n, of features d and with the sketch size l."""

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks._case import Growth, Run
from benchmarks._data import lengthscale, points
from jaxkern import features
from jaxkern import frequent_directions as fd
from jaxkern.kernels import Gaussian
from jaxkern.scale import embed

BLOCK = 2**16
"""Rows that are written at once when a file is made."""

TENFOLD = (1.0, 1.8, 3.2, 5.6, 10.0)


def write(name: Path, rows: int, dim: int) -> np.ndarray:
    """Write standard normal points to a file and open it, without ever holding them."""
    out = np.lib.format.open_memmap(
        name, mode="w+", dtype=np.float32, shape=(rows, dim)
    )
    rng = np.random.default_rng(0)
    for start in range(0, rows, BLOCK):
        out[start : start + BLOCK] = rng.standard_normal(
            (min(BLOCK, rows - start), dim), dtype=np.float32
        )
    out.flush()
    del out
    return np.load(name, mmap_mode="r")


def _map(dim: int, num_landmarks: int, num_features: int) -> Any:
    landmarks = jnp.asarray(points(num_landmarks, dim, 1))
    return features.kernel_jl(
        jax.random.key(0),
        Gaussian(lengthscale(dim)),
        landmarks,
        num_features=num_features,
    )


def _through_files(phi: Any, dim: int, size: int, folder: Path) -> Run:
    """Map one memory-mapped file to another."""
    X, shape = write(folder / f"{size}.npy", size, dim), (size, phi.num_features)
    out = np.lib.format.open_memmap(
        folder / f"out{size}.npy", mode="w+", dtype=np.float32, shape=shape
    )

    def run() -> None:
        embed(phi, X, out=out)  # returns the file, which needs no memory

    return run


def _rows(size: int, small: bool, folder: Path) -> Run:
    dim, n, d = (20, 20, 5) if small else (20, 200, 10)
    return _through_files(_map(dim, n, d), dim, size, folder)


def _rows_of_fourier(size: int, small: bool, folder: Path) -> Run:
    dim, m = (20, 8) if small else (20, 32)
    phi = features.paired_fourier(
        jax.random.key(0),
        Gaussian(lengthscale(dim)),
        dim,
        num_frequencies=m,
        dtype=jnp.float32,
    )
    return _through_files(phi, dim, size, folder)


def _landmarks(size: int, small: bool, folder: Path) -> Run:
    """Fit to and map by `size` landmarks."""
    rows = 500 if small else 20_000
    landmarks, X = jnp.asarray(points(size, 20, 1)), jnp.asarray(points(rows, 20))
    kernel = Gaussian(lengthscale(20))
    return lambda: features.kernel_jl(
        jax.random.key(0), kernel, landmarks, num_features=50
    )(X)


def _features(size: int, small: bool, folder: Path) -> Run:
    phi, X = (
        _map(20, 50 if small else 400, size),
        jnp.asarray(points(500 if small else 20_000, 20)),
    )
    return lambda: phi(X)


def _sketch(size: int, small: bool, folder: Path) -> Run:
    A = jnp.asarray(points(300 if small else 20_000, 50 if small else 1000))
    return lambda: fd.update(fd.init(size, A.shape[1]), A)


def _tenfold(full: int, tiny: int) -> Any:
    return lambda small: tuple(
        round((tiny if small else full) * factor) for factor in TENFOLD
    )


def _decades(small: bool) -> tuple[int, ...]:
    return (1000, 2000, 4000) if small else (100_000, 1_000_000, 10_000_000)


GROWTH = (
    Growth(
        "growth-rows",
        "N rows of 20 columns from one memory-mapped file to another, Kernel JL of 200 landmarks, 10 features",
        "N",
        _decades,
        _rows,
        exponent=(0.95, 1.05),
        most_bytes=2**30,
    ),
    Growth(
        "growth-rows-fourier",
        "the same by 64 paired Fourier features",
        "N",
        lambda small: _decades(True) if small else (100_000, 300_000, 1_000_000),
        _rows_of_fourier,
        exponent=(0.95, 1.05),
        most_bytes=2**30,
    ),
    Growth(
        "growth-landmarks",
        "Kernel JL drawn at n landmarks, 20,000 points mapped to 50 features",
        "n",
        _tenfold(200, 10),
        _landmarks,
        rounds=5,
    ),
    Growth(
        "growth-features",
        "20,000 points mapped to d features by 400 landmarks",
        "d",
        _tenfold(50, 2),
        _features,
        rounds=5,
    ),
    Growth(
        "growth-sketch",
        "Frequent Directions with l rows, of 20,000 rows of 1,000 columns",
        "l",
        _tenfold(20, 2),
        _sketch,
    ),
)
