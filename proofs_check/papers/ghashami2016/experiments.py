"""Figures 1 to 4 of ghashami2016: errors, times and space of streaming kernel PCA, RNCA and Nystrom.

Four data sets (RandomNoisy, CPU, Adult, Forest); the spectral error |G - G'|_2 / n and the Frobenius error
|G - G'|_F / n^2 over the training points, the time to train and the time to map the test points, against the sample
size (m features, or c = m landmarks) and against the space that the paper counts: md + ml for SKPCA, m^2 + md for RNCA,
c^2 + cd for Nystrom. The paper prints curves and no numbers. It leaves open, and this is what was taken:

- scales: the columns of CPU and Forest have mean 0 and variance 1; Adult (zeros and ones) and RandomNoisy are as they
  are. The kernel is Gaussian; its lengthscale is the median of the distances;
- RNCA is Z Z' with all m directions, and its test time that of the features; "RNCA, 50 directions" cuts it to 50;
- SKPCA is Algorithm 1 (l rows, shrunk at l / 2 rounded down), with a last decomposition; "buffered" is the sketch
  that `jaxkern.frequent_directions` has by default: a buffer of 2 l rows, shrunk at l + 1;
- Nystrom takes a uniform sample and C M^+ C', where eigenvalues of M that are rounding are dropped.

Times are of one warm call, in processor seconds of this process, so that other work on the machine does not count;
compiling does not, either. Nothing is subsampled where errors are computed: the Frobenius error goes through all n^2
entries in blocks, the spectral one through products with G - G', and its residual is reported.

The folder of --data-dir holds cpu.npz, a9a.npz and covtype.npz, each with the points as X: "comp-activ" of Delve, a9a
of LIBSVM (UCI "Adult") and UCI "Covertype". RandomNoisy is drawn.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern import checks, features, landmarks
from jaxkern.draws import normal_rows
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian, sampled_quantile_lengthscale
from jaxkern.linalg import largest_modulus_eigenpairs, matmul
from jaxkern.problems import random_noisy
from proofs_check.papers.figures import (
    Numbers,
    Tables,
    legend_below,
    read_points,
    timed,
)

TABLES: Tables = {
    "rows": {
        "method": "{method}",
        "size": "{size}",
        "spectral": "{spectral:.2e}",
        "Frobenius": "{frobenius:.2e}",
        "train": "{train:.2f} s",
        "test": "{test:.3f} s",
        "space": "{space:.2e}",
    }
}
PANELS = (2, 3)
SIZE = (13, 7)
ERRORS = ("spectral", "residual", "frobenius")
CUT = 50
TOLERANCE = 1e-3


class Source(NamedTuple):
    """A data set of the paper: its name, file, the numbers of training and test points, and whether it is scaled."""

    title: str
    file: str | None
    num_train: int
    num_test: int
    scaled: bool


# The printed sizes of RandomNoisy, Adult and Forest include their test points, the one of CPU does not.
SOURCES = {
    "figure1": Source("RandomNoisy", None, 19_000, 1000, False),
    "figure2": Source("CPU", "cpu.npz", 7373, 800, True),
    "figure3": Source("Adult", "a9a.npz", 32_561, 1000, False),
    "figure4": Source("Forest", "covtype.npz", 522_910, 1000, True),
}
NOISY_DIM = 1000


def data(
    *,
    full: bool,
    figure: str,
    seed: int,
    dtype: Any,
    data_dir: Path,
    points: int | None = None,
    sizes: Sequence[int] | None = None,
) -> dict[str, Any]:
    """Return the points of all curves of one data set.

    points : at most so many training points, by default 20,000 (400 unless full).
    sizes : values of m and c.
    """
    source = SOURCES[figure]
    if points is None:
        points = 20_000 if full else 400
    num_points = min(source.num_train, checks.count("points", points, minimum=2))
    sizes = sizes or ((50, 100, 200, 500, 1000) if full else (20, 50))
    lines = (2, 5, 10, 20, 30, 50) if full else (2, 5, 10)
    parts = read(source, data_dir, num_points=num_points, seed=seed)
    X = np.ascontiguousarray(parts[0], dtype)
    test = np.ascontiguousarray(parts[1], dtype)
    pairs = min(100_000, len(X) * (len(X) - 1) // 2)
    key = jax.random.key(seed)
    lengthscale = float(sampled_quantile_lengthscale(key, X, 0.5, num_pairs=pairs))
    kernel = Gaussian(lengthscale)
    return {
        "data": source.title,
        "n": X.shape[0],
        "dim": X.shape[1],
        "test": test.shape[0],
        "lengthscale": lengthscale,
        "rows": curves(X, test, kernel, sizes=sizes, lines=lines, seed=seed),
    }


def read(
    source: Source, folder: Path, *, num_points: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the training points (n, dim) and the test points (q, dim) of a data set, float64, in a random order.

    n is num_points, or what the file has left. Raises `reading.DataError`, whose message is one line.
    """
    total = num_points + source.num_test
    if source.file is None:
        key = jax.random.key(seed)
        noisy = random_noisy(key, num_points=total, dim=NOISY_DIM, dtype="float32")
        X = np.asarray(noisy.points)
    else:
        (X,) = read_points(folder / source.file)
        X = X[np.random.default_rng(seed).permutation(len(X))[:total]]
    if source.scaled:
        deviation = X.std(0)
        X = (X - X.mean(0)) / np.where(deviation > 0, deviation, 1)
    return X[source.num_test :], X[: source.num_test]


def gram_matrix(kernel: Any, X: Any, *, block_size: int = 1000) -> Any:
    """Return the Gram matrix (n, n), computed block by block, so that nothing else of that size is held."""
    n = X.shape[0]
    block = min(block_size, n)
    G = np.empty((n, n), X.dtype)
    for start in range(0, n, block):
        start = min(start, n - block)  # one shape, one program
        G[start : start + block] = gram(kernel, X[start : start + block], X)
    return jnp.asarray(G)


def errors(G: Any, Ys: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return |G - Y Y'|_2 / n, the residual of that eigenpair over n, and |G - Y Y'|_F / n^2, for every Y of a stack.

    G : (n, n). Ys : (k, n, r). Each result is (k,), float64.
    """
    n = G.shape[0]
    spectral = np.asarray(_spectral(G, Ys), np.float64)
    squares = np.asarray(_squared_frobenius(G, Ys), np.float64)
    return np.abs(spectral[0]) / n, spectral[1] / n, np.sqrt(squares) / n**2


@jax.jit
def _spectral(G: jax.Array, Ys: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the eigenvalues of largest modulus of G - Y Y', and their residuals."""
    start = normal_rows(jax.random.key(1, impl="threefry2x32"), G.shape[0], 4, G.dtype)

    def one(Y: jax.Array) -> tuple[jax.Array, jax.Array]:
        pairs = largest_modulus_eigenpairs(
            lambda V: matmul(G, V) - matmul(Y, matmul(Y.T, V)),
            start,
            num_values=1,
            tolerance=TOLERANCE,
        )
        return pairs.values[0], pairs.residuals[0]

    return jax.vmap(one)(Ys)


@jax.jit
def _squared_frobenius(G: jax.Array, Ys: jax.Array) -> jax.Array:
    n = G.shape[0]
    block = min(n, 500)

    def of_block(i: jax.Array, Y: jax.Array) -> jax.Array:
        # The last block overlaps; its first rows were counted before.
        first = jnp.minimum(i * block, n - block)
        rows = lax.dynamic_slice_in_dim(Y, first, block)
        E = lax.dynamic_slice_in_dim(G, first, block) - matmul(rows, Y.T)
        fresh = first + jnp.arange(block) >= i * block
        return jnp.sum(jnp.where(fresh[:, None], E * E, 0))

    def of_map(Y: jax.Array) -> jax.Array:
        blocks = jnp.arange(-(-n // block))
        return jnp.sum(lax.map(lambda i: of_block(i, Y), blocks))

    return lax.map(of_map, Ys)


def _features(key: Any, kernel: Any, X: Any, size: int) -> Any:
    return features.shifted_fourier(
        key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype
    )


def _nystrom(key: Any, kernel: Any, X: Any, size: int) -> Any:
    return features.nystrom(kernel, landmarks.uniform(key, X, num_landmarks=size))


def _rnca(key: Any, kernel: Any, X: Any, size: int) -> Any:
    """Return the features; their covariance is summed and decomposed, which all directions together need not be."""
    phi = _features(key, kernel, X, size)
    pca = features.random_feature_pca(phi, X, num_components=size, centered=False)
    jax.block_until_ready(pca)
    return phi


def _rnca_cut(key: Any, kernel: Any, X: Any, size: int) -> Any:
    phi = _features(key, kernel, X, size)
    directions = min(CUT, size)
    return features.random_feature_pca(
        phi, X, num_components=directions, centered=False
    )


def _skpca(
    key: Any, kernel: Any, X: Any, size: int, *, rows: int, buffered: bool
) -> Any:
    phi = _features(key, kernel, X, size)
    shrink_at = None if buffered else max(1, rows // 2)
    pca = features.streaming_pca(phi, sketch_size=rows, shrink_at=shrink_at)
    return pca.finalize(pca.update(pca.init(), X), num_components=rows)


Fit = Callable[..., Any]


def _methods(size: int, lines: Sequence[int]) -> dict[str, tuple[int, Fit]]:
    """Return {method: (rows of the sketch or 0, function (key, kernel, X, size) -> map)}."""
    methods: dict[str, tuple[int, Fit]] = {
        "RNCA": (0, _rnca),
        "Nystrom": (0, _nystrom),
        f"RNCA, {CUT} directions": (0, _rnca_cut),
    }
    for buffered in (False, True):
        prefix = "SKPCA, buffered" if buffered else "SKPCA"
        for rows in lines:
            if rows <= size:
                fit = partial(_skpca, rows=rows, buffered=buffered)
                methods[f"{prefix}, l={rows}"] = (rows, fit)
    return methods


def curves(
    X: Any,
    test: Any,
    kernel: Any,
    *,
    sizes: Sequence[int],
    lines: Sequence[int],
    seed: int,
) -> list[dict[str, Any]]:
    """Return the points of all curves: every method at every sample size.

    `residual` is |(G - G') v - value v| / n of the eigenpair behind the spectral error: an eigenvalue is that near.

    X : (n, dim) training points, float32 or float64; test : (q, dim) test points of that dtype.
    kernel : a Gaussian kernel.
    sizes : values of m and c, each at most n. lines : values of l; those above m are left out.

    Raises ValueError where an argument does not fit the data.
    """
    X = checks.matrix("X", X, min_rows=2)
    for size in sizes:
        checks.count("sizes", size, maximum=len(X), limit="the number of points")
    G = gram_matrix(kernel, X)
    rows: list[dict[str, Any]] = []
    for size in timed(sizes):
        key = jax.random.fold_in(jax.random.key(seed), size)
        maps = {}
        points = {}
        for method, (sketch_size, fit) in _methods(size, lines).items():
            # All maps of features share the key, so the features; Nystrom has another for its landmarks.
            map_key = jax.random.fold_in(key, int(method == "Nystrom"))
            train, phi = _seconds(partial(fit, map_key, kernel, X, size))
            maps[method] = phi
            points[method] = {
                "method": method,
                "size": size,
                "sketch_size": sketch_size,
                "train": train,
                "test": _seconds(partial(_apply, phi, test))[0],
                # The numbers that the paper counts.
                "space": size * X.shape[1] + size * (sketch_size or size),
            }
        for method, measured in _errors_of_maps(G, X, maps):
            points[method] |= measured
        rows += points.values()
    return rows


def _errors_of_maps(
    G: Any, X: Any, maps: dict[str, Any]
) -> Iterator[tuple[str, dict[str, float]]]:
    """Yield the errors of every map, from stacks of maps of about the same number of features."""
    wide = {"RNCA", "Nystrom"}
    for group in (wide & maps.keys(), maps.keys() - wide):
        methods = [method for method in maps if method in group]
        columns = [_apply(maps[method], X) for method in methods]
        widest = max(Y.shape[1] for Y in columns)
        stack = [jnp.pad(Y, ((0, 0), (0, widest - Y.shape[1]))) for Y in columns]
        table = np.transpose(errors(G, jnp.stack(stack))).tolist()
        for method, values in zip(methods, table, strict=True):
            yield method, dict(zip(ERRORS, values, strict=True))


@jax.jit
def _apply(phi: Any, X: Any) -> Any:
    """Return phi(X): one function, so that equal shapes share a program."""
    return phi(X)


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of the second call, and its result."""
    jax.block_until_ready(call())
    start = time.process_time()
    result = jax.block_until_ready(call())
    return time.process_time() - start, result


def draw(axes: Any, data: Numbers) -> None:
    """Draw the figure of one data set in the paper's order of panels, without the buffered sketches."""
    import matplotlib

    panels = (
        ("size", "frobenius"),
        ("size", "spectral"),
        ("size", "train"),
        ("space", "frobenius"),
        ("space", "spectral"),
        ("size", "test"),
    )
    labels = {
        "size": "sample size",
        "space": "space (numbers)",
        "frobenius": "Kernel Frobenius error",
        "spectral": "Kernel spectral error",
        "train": "train time (processor s)",
        "test": "test time (processor s)",
    }
    rows = [row for row in data["rows"] if "buffered" not in row["method"]]
    names = dict.fromkeys(row["method"] for row in rows)
    sketches = [name for name in names if name.startswith("SKPCA")]
    viridis = matplotlib.colormaps["viridis"]
    colours: dict[str, Any] = {name: viridis(i / 6) for i, name in enumerate(sketches)}
    colours |= {"RNCA": "black", "Nystrom": "tab:red"}
    for axis, (x, y) in zip(axes, panels, strict=True):
        for name in names:
            curve = [row for row in rows if row["method"] == name]
            axis.plot(
                [row[x] for row in curve],
                [row[y] for row in curve],
                marker="." if name in sketches else "s",
                markersize=4,
                linewidth=1,
                color=colours.get(name, "grey"),
                label=name,
            )
        axis.set(xscale="log", yscale="log", xlabel=labels[x], ylabel=labels[y])
        # Over less than a decade the labels of minor ticks overlap.
        axis.xaxis.set_minor_formatter("")
        if x == "size":
            sizes = sorted({row["size"] for row in rows})
            axis.set_xticks(sizes, labels=list(map(str, sizes)))
        axis.grid(alpha=0.3)
    picture = axes[0].figure
    picture.suptitle(f"{data['data']}, n = {data['n']}, d = {data['dim']}")
    legend_below(axes)
