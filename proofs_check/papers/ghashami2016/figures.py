"""Figures 1 to 4 of ghashami2016: errors, times and space of streaming kernel PCA, RNCA and Nystrom.

Four data sets (RandomNoisy, CPU, Adult, Forest); the spectral error |G - G'|_2 / n and the Frobenius error
|G - G'|_F / n^2 over the training points, the time to train and the time to map the test points, against the sample
size (m features, or c = m landmarks) and against the space that the paper counts: md + ml for SKPCA, m^2 + md for RNCA,
c^2 + cd for Nystrom. The paper prints curves and no numbers. It leaves open, and this is what was taken:

- scales: the columns of CPU and Forest have mean 0 and variance 1; Adult (zeros and ones) and RandomNoisy are as they
  are. The kernel is Gaussian; its lengthscale is the median (`--quantile`) of the distances;
- RNCA is Z Z' with all m directions, and its test time that of the features; "RNCA, 50 directions" cuts it to 50;
- SKPCA is Algorithm 1 (l rows, shrunk at l / 2 rounded down), with a last decomposition; "buffered" is the sketch
  that `jaxkern.frequent_directions` has by default: a buffer of 2 l rows, shrunk at l + 1;
- Nystrom takes a uniform sample and C M^+ C', where eigenvalues of M that are rounding are dropped.

Times are of one warm call, in processor seconds of this process, so that other work on the machine does not count;
compiling does not, either. Nothing is subsampled where errors are computed: the Frobenius error goes through all n^2
entries in blocks, the spectral one through products with G - G', and its residual is reported.

`python -m proofs_check.papers.ghashami2016.figures --data-dir DIR` reads DIR/cpu.npz, a9a.npz and covtype.npz, each
with the points as X: "comp-activ" of Delve, a9a of LIBSVM (UCI "Adult") and UCI "Covertype". RandomNoisy is drawn.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

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
from proofs_check.engine.reading import read_npz, reading
from proofs_check.papers import figures
from proofs_check.usage import UsageError, check_file, number

SIZES = (50, 100, 200, 500, 1000)
ROWS = (2, 5, 10, 20, 30, 50)
CUT = 50
TOLERANCE = 1e-3
COLUMNS = ("data", "method", "size", "spectral", "Frobenius", "train", "test", "space")


@dataclass(frozen=True)
class Source:
    """A data set of the paper: its name, figure, file, printed size, test points and whether columns are scaled."""

    title: str
    figure: int
    file: str | None
    num_points: int
    dim: int
    num_test: int
    scaled: bool


SOURCES = {
    "noisy": Source("RandomNoisy", 1, None, 20_000, 1000, 1000, False),
    "cpu": Source("CPU", 2, "cpu.npz", 7373, 21, 800, True),
    "adult": Source("Adult", 3, "a9a.npz", 33_561, 123, 1000, False),
    "forest": Source("Forest", 4, "covtype.npz", 523_910, 54, 1000, True),
}


@dataclass(frozen=True)
class Row:
    """One point of every curve: a method at one sample size.

    `residual` is |(G - G') v - value v| / n of the eigenpair behind the spectral error: an eigenvalue is that near.
    """

    method: str
    size: int
    sketch_size: int
    spectral: float
    residual: float
    frobenius: float
    train: float
    test: float
    space: int


def read(
    name: str, folder: Path, *, num_points: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the training points (n, dim) and the test points (q, dim) of a data set, float64, in a random order.

    n is num_points, or what the file has left. Raises `reading.DataError`, whose message is one line.
    """
    source = SOURCES[name]
    total = num_points + source.num_test
    if source.file is None:
        X = np.asarray(
            random_noisy(
                jax.random.key(seed), num_points=total, dim=source.dim, dtype="float32"
            ).points
        )
    else:
        path = folder / source.file
        with reading(path, {".npz": ".npz (with X)"}), path.open("rb") as file:
            X = read_npz(path, file, "X")
        X = X[np.random.default_rng(seed).permutation(len(X))[:total]].astype(
            np.float64
        )
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
    values, residuals, squares = (
        np.asarray(a, np.float64)
        for a in (*_spectral(G, Ys), _squared_frobenius(G, Ys))
    )
    return np.abs(values) / n, residuals / n, np.sqrt(squares) / n**2


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
        first = jnp.minimum(
            i * block, n - block
        )  # the last block overlaps; its first rows were counted before
        E = lax.dynamic_slice_in_dim(G, first, block) - matmul(
            lax.dynamic_slice_in_dim(Y, first, block), Y.T
        )
        fresh = first + jnp.arange(block) >= i * block
        return jnp.sum(jnp.where(fresh[:, None], E * E, 0))

    return lax.map(
        lambda Y: jnp.sum(
            lax.map(lambda i: of_block(i, Y), jnp.arange(-(-n // block)))
        ),
        Ys,
    )


def _features(key: Any, kernel: Any, X: Any, size: int) -> Any:
    return features.shifted_fourier(
        key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype
    )


def _nystrom(key: Any, kernel: Any, X: Any, size: int) -> Any:
    return features.nystrom(kernel, landmarks.uniform(key, X, num_landmarks=size))


def _rnca(key: Any, kernel: Any, X: Any, size: int) -> Any:
    """Return the features; their covariance is summed and decomposed, which all directions together need not be."""
    phi = _features(key, kernel, X, size)
    jax.block_until_ready(
        features.random_feature_pca(phi, X, num_components=size, centered=False)
    )
    return phi


def _rnca_cut(key: Any, kernel: Any, X: Any, size: int) -> Any:
    phi = _features(key, kernel, X, size)
    return features.random_feature_pca(
        phi, X, num_components=min(CUT, size), centered=False
    )


def _skpca(
    key: Any, kernel: Any, X: Any, size: int, *, rows: int, buffered: bool
) -> Any:
    phi = _features(key, kernel, X, size)
    pca = features.streaming_pca(
        phi, sketch_size=rows, shrink_at=None if buffered else max(1, rows // 2)
    )
    return pca.finalize(pca.update(pca.init(), X), num_components=rows)


def _methods(
    size: int, rows: Sequence[int]
) -> dict[str, tuple[int, Callable[..., Any]]]:
    """Return {method: (rows of the sketch or 0, function (key, kernel, X, size) -> map)}."""
    made: dict[str, tuple[int, Callable[..., Any]]] = {
        "RNCA": (0, _rnca),
        "Nystrom": (0, _nystrom),
    }
    made[f"RNCA, {CUT} directions"] = (0, _rnca_cut)
    for buffered in (False, True):
        for l in rows:  # noqa: E741, the paper's letter
            name = f"SKPCA{', buffered' if buffered else ''}, l={l}"
            made[name] = (l, partial(_skpca, rows=l, buffered=buffered))
    return {name: method for name, method in made.items() if method[0] <= size}


def figure(
    X: Any,
    test: Any,
    kernel: Any,
    *,
    sizes: Sequence[int] = SIZES,
    rows: Sequence[int] = ROWS,
    seed: int = 0,
    progress: figures.Say | None = None,
) -> list[Row]:
    """Return the points of all curves of one data set.

    X : (n, dim) training points, float32 or float64; test : (q, dim) test points of that dtype.
    kernel : a Gaussian kernel.
    sizes : values of m and c, each at most n. rows : values of l; those above m are left out.
    progress : called with a line of text after every size, if given.

    Raises ValueError where an argument does not fit the data.
    """
    X = checks.matrix("X", X, min_rows=2)
    test = checks.points("test", test, dim=X.shape[1])
    for size in sizes:
        checks.count("sizes", size, maximum=X.shape[0], limit="the number of points")
    G = gram_matrix(kernel, X)
    curves = []
    for size in sizes:
        began = time.monotonic()
        maps, times = {}, {}
        key = jax.random.fold_in(jax.random.key(seed), size)
        methods = _methods(size, rows)
        for method, (_, fit) in methods.items():
            # All maps of features share the key, so the features; Nystrom, which is given another, has its landmarks.
            own = jax.random.fold_in(key, int(method == "Nystrom"))
            train, maps[method] = _seconds(partial(fit, own, kernel, X, size))
            times[method] = (train, _seconds(partial(_apply, maps[method], test))[0])
        wide = [method for method in methods if method in ("RNCA", "Nystrom")]
        for group in (wide, [method for method in methods if method not in wide]):
            columns = [_apply(maps[method], X) for method in group]
            most = max(Y.shape[1] for Y in columns)
            Ys = jnp.stack(
                [jnp.pad(Y, ((0, 0), (0, most - Y.shape[1]))) for Y in columns]
            )
            for method, spectral, residual, frobenius in zip(
                group, *errors(G, Ys), strict=True
            ):
                l = methods[method][0]  # noqa: E741, the paper's letter
                space = size * X.shape[1] + size * (
                    l or size
                )  # the numbers that the paper counts
                measured = (
                    float(spectral),
                    float(residual),
                    float(frobenius),
                    *times[method],
                    space,
                )
                curves.append(Row(method, size, l, *measured))
        if progress is not None:
            progress(f"m = {size}: {time.monotonic() - began:.1f} s")
    return curves


@jax.jit
def _apply(phi: Any, X: Any) -> Any:
    """Return phi(X): one function, so that equal shapes share a program."""
    return phi(X)


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of the second call, and what it returned."""
    jax.block_until_ready(call())
    start = time.process_time()
    result = jax.block_until_ready(call())
    return time.process_time() - start, result


def plot(pyplot: Any, rows: Sequence[Row], *, title: str) -> Any:
    """Draw the figure of one data set in the paper's order of panels."""
    panels = (
        ("size", "frobenius", "Kernel Frobenius error", "sample size"),
        ("size", "spectral", "Kernel spectral error", "sample size"),
        ("size", "train", "train time (processor s)", "sample size"),
        ("space", "frobenius", "Kernel Frobenius error", "space (numbers)"),
        ("space", "spectral", "Kernel spectral error", "space (numbers)"),
        ("size", "test", "test time (processor s)", "sample size"),
    )
    names = list(
        dict.fromkeys(row.method for row in rows if "buffered" not in row.method)
    )
    sketches = [name for name in names if name.startswith("SKPCA")]
    colours = dict(
        zip(
            sketches,
            pyplot.get_cmap("viridis")([i / 6 for i in range(len(sketches))]),
            strict=True,
        )
    )
    colours |= {
        "RNCA": "black",
        "Nystrom": "tab:red",
        f"RNCA, {CUT} directions": "grey",
    }
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7))
    for axis, (x, y, label, below) in zip(axes.flat, panels, strict=True):
        for name in names:
            curve = [
                (getattr(row, x), getattr(row, y)) for row in rows if row.method == name
            ]
            marker = "." if name in sketches else "s"
            style = {
                "marker": marker,
                "markersize": 4,
                "linewidth": 1,
                "color": colours[name],
                "label": name,
            }
            axis.plot(*zip(*curve, strict=True), **style)
        axis.set(xscale="log", yscale="log", xlabel=below, ylabel=label)
        axis.xaxis.set_minor_formatter(
            pyplot.NullFormatter()
        )  # over less than a decade they overlap
        if x == "size":
            sizes = sorted({row.size for row in rows})
            axis.set_xticks(sizes, labels=list(map(str, sizes)))
        axis.grid(alpha=0.3)
    figure.suptitle(title)
    figure.legend(*axes[0][0].get_legend_handles_labels(), ncol=5, loc="lower center")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    return figure


def table(curves: Mapping[str, Sequence[Row]]) -> figures.Table:
    """Return the table of all data sets."""
    cells = [
        (
            SOURCES[name].title,
            row.method,
            str(row.size),
            f"{row.spectral:.2e}",
            f"{row.frobenius:.2e}",
            f"{row.train:.2f} s",
            f"{row.test:.3f} s",
            f"{row.space:.2e}",
        )
        for name, rows in curves.items()
        for row in rows
    ]
    return figures.Table("ghashami2016, Figures 1 to 4", COLUMNS, cells, names=2)


def _fraction(text: str) -> float:
    if not 0 < (value := number(text)) < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text[:30]!r}")
    return value


def _compute(options: argparse.Namespace, say: figures.Say) -> Iterator[figures.Result]:
    if (
        min(*options.sizes, *options.rows, options.points) < 1
        or max(options.sizes) > options.points
    ):
        raise UsageError(
            "--sizes, --rows and --points must be at least 1, and sizes at most the points"
        )
    if min(options.rows) > min(options.sizes):
        raise UsageError(
            "--rows must hold one number that is at most the smallest of --sizes"
        )
    if options.plots is not None and not options.plots.is_dir():
        raise UsageError(f"--plot {options.plots}: there is no such folder")
    pictures: dict[str, Path] = {}
    for name in () if options.plots is None else options.datasets:
        pictures[name] = (
            options.plots / f"ghashami2016_figure{SOURCES[name].figure}.svg"
        )
        check_file("--plot", pictures[name], overwrite=options.overwrite)
    curves: dict[str, list[Row]] = {}
    data: dict[str, Any] = {}
    seconds = {}
    for name in options.datasets:
        source, start = SOURCES[name], time.monotonic()
        # RandomNoisy and Adult lose their test points; CPU has its printed number of training points left.
        most = min(
            source.num_points - (0 if name == "cpu" else source.num_test),
            options.points,
        )
        with figures.as_usage():
            parts = read(name, options.data_dir, num_points=most, seed=options.seed)
        X, test = (np.ascontiguousarray(part, options.dtype) for part in parts)
        pairs = min(100_000, X.shape[0] * (X.shape[0] - 1) // 2)
        key = jax.random.key(options.seed)
        lengthscale = float(
            sampled_quantile_lengthscale(key, X, options.quantile, num_pairs=pairs)
        )
        data[name] = {
            "n": X.shape[0],
            "dim": X.shape[1],
            "test": test.shape[0],
            "lengthscale": lengthscale,
        }
        say(f"{source.title}, n = {X.shape[0]}, lengthscale {lengthscale:.4g}")
        sizes = {"sizes": options.sizes, "rows": options.rows, "seed": options.seed}
        curves[name] = figure(X, test, Gaussian(lengthscale), **sizes, progress=say)
        seconds[name] = round(time.monotonic() - start, 1)
        # After every data set: what is interrupted leaves those before it.
        about = {name: getattr(options, name) for name in ("seed", "dtype", "quantile")}
        rows = [
            {"data": of, **asdict(row)} for of, every in curves.items() for row in every
        ]
        draw = partial(
            plot,
            rows=curves[name],
            title=f"{source.title}, n = {X.shape[0]}, d = {X.shape[1]}",
        )
        yield figures.Result(
            [table(curves)] if len(curves) == len(options.datasets) else [],
            {**about, "data": data, "run": {"seconds": seconds}},
            {"rows": rows},
            [("--plot", pictures.get(name), draw)],
        )


FIGURES = figures.Figure(
    "ghashami2016_figures",
    "Figures 1 to 4",
    "Reproduce Figures 1 to 4 of ghashami2016.",
    _compute,
    (
        figures.data_dir("cpu.npz", "a9a.npz", "covtype.npz"),
        figures.some("--datasets", tuple(SOURCES), "data set"),
        figures.number("--points", 20_000, "at most"),
        figures.numbers("--sizes", SIZES, "values of m and c"),
        figures.numbers("--rows", ROWS, "values of l"),
        (
            "--quantile",
            {
                "type": _fraction,
                "default": 0.5,
                "metavar": "Q",
                "help": "of the distances (default: 0.5)",
            },
        ),
        (
            "--plot",
            {
                "dest": "plots",
                "type": Path,
                "metavar": "DIR",
                "help": "draw ghashami2016_figureN.svg into it",
            },
        ),
    ),
    timed=False,
    dpi=100,
)
main = FIGURES.main

if __name__ == "__main__":
    sys.exit(main())
