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

from __future__ import annotations

import argparse
import functools
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from proofs_check.papers import figures as _command
from proofs_check.usage import UsageError, check_file

if TYPE_CHECKING:  # everything that imports jax waits until the arguments are read, so that --help is instant
    import numpy as np

PROG = "ghashami2016_figures"
SIZES = (50, 100, 200, 500, 1000)
ROWS = (2, 5, 10, 20, 30, 50)
CUT = 50
TOLERANCE = 1e-3
COLUMNS = ("data", "method", "size", "spectral", "Frobenius", "train", "test", "space")
SCHEMA = 1


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


# ---------------------------------------------------------------------------------------------------------------- data


def read(name: str, folder: Path, *, num_points: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training points (n, dim) and the test points (q, dim) of a data set, float64, in a random order.

    n is num_points, or what the file has left. Raises `reading.DataError`, whose message is one line.
    """
    import numpy as np

    from proofs_check.engine.reading import load

    source = SOURCES[name]
    if source.file is None:
        import jax

        from jaxkern.problems import random_noisy

        total = num_points + source.num_test
        X = np.asarray(random_noisy(jax.random.key(seed), num_points=total, dim=source.dim, dtype="float32").points)
    else:
        X = load(folder / source.file)
        kept = np.random.default_rng(seed).permutation(len(X))[: num_points + source.num_test]
        X = X[kept].astype(np.float64)
    if source.scaled:
        deviation = X.std(0)
        X = (X - X.mean(0)) / np.where(deviation > 0, deviation, 1)
    return X[source.num_test :], X[: source.num_test]


# -------------------------------------------------------------------------------------------------------------- errors


def gram_matrix(kernel: Any, X: Any, *, block_size: int = 1000) -> Any:
    """Return the Gram matrix (n, n), computed block by block, so that nothing else of that size is held."""
    import jax.numpy as jnp
    import numpy as np

    from jaxkern.gram import gram

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
    import numpy as np

    n = G.shape[0]
    values, residuals, squares = _errors()(G, Ys)
    return (
        np.abs(np.asarray(values, np.float64)) / n,
        np.asarray(residuals, np.float64) / n,
        np.sqrt(np.asarray(squares, np.float64)) / n**2,
    )


@cache
def _errors() -> Callable[[Any, Any], tuple[Any, Any, Any]]:
    """Return the function (G, Ys) -> eigenvalues, residuals and squared Frobenius norms; jax is imported by then."""
    import jax
    import jax.numpy as jnp
    from jax import lax

    from jaxkern.draws import normal_rows
    from jaxkern.linalg import largest_modulus_eigenpairs, matmul

    @jax.jit
    def spectral(G: jax.Array, Ys: jax.Array) -> tuple[jax.Array, jax.Array]:
        start = normal_rows(jax.random.key(1, impl="threefry2x32"), G.shape[0], 4, G.dtype)

        def one(Y: jax.Array) -> tuple[jax.Array, jax.Array]:
            pairs = largest_modulus_eigenpairs(
                lambda V: matmul(G, V) - matmul(Y, matmul(Y.T, V)), start, num_values=1, tolerance=TOLERANCE
            )
            return pairs.values[0], pairs.residuals[0]

        return jax.vmap(one)(Ys)

    @jax.jit
    def frobenius(G: jax.Array, Ys: jax.Array) -> jax.Array:
        n = G.shape[0]
        block = min(n, 500)

        def of_block(i: jax.Array, Y: jax.Array) -> jax.Array:
            first = jnp.minimum(i * block, n - block)  # the last block overlaps; its first rows were counted before
            rows = lax.dynamic_slice_in_dim(G, first, block)
            E = rows - matmul(lax.dynamic_slice_in_dim(Y, first, block), Y.T)
            fresh = first + jnp.arange(block) >= i * block
            return jnp.sum(jnp.where(fresh[:, None], E * E, 0))

        def one(Y: jax.Array) -> jax.Array:
            return jnp.sum(lax.map(lambda i: of_block(i, Y), jnp.arange(-(-n // block))))

        return lax.map(one, Ys)

    return lambda G, Ys: (*spectral(G, Ys), frobenius(G, Ys))


# ------------------------------------------------------------------------------------------------------------- methods


def _nystrom(key: Any, kernel: Any, X: Any, size: int) -> Any:
    from jaxkern import features, landmarks

    return features.nystrom(kernel, landmarks.uniform(key, X, num_landmarks=size))


def _rnca(key: Any, kernel: Any, X: Any, size: int) -> Any:
    """Return the features; their covariance is summed and decomposed, which all directions together need not be."""
    import jax

    from jaxkern import features

    phi = features.shifted_fourier(key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype)
    jax.block_until_ready(features.random_feature_pca(phi, X, num_components=size, centered=False))
    return phi


def _rnca_cut(key: Any, kernel: Any, X: Any, size: int) -> Any:
    from jaxkern import features

    phi = features.shifted_fourier(key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype)
    return features.random_feature_pca(phi, X, num_components=min(CUT, size), centered=False)


def _skpca(key: Any, kernel: Any, X: Any, size: int, *, rows: int, buffered: bool) -> Any:
    from jaxkern import features

    phi = features.shifted_fourier(key, kernel, X.shape[1], num_frequencies=size, dtype=X.dtype)
    pca = features.streaming_pca(phi, sketch_size=rows, shrink_at=None if buffered else max(1, rows // 2))
    return pca.finalize(pca.update(pca.init(), X), num_components=rows)


def _methods(size: int, rows: Sequence[int]) -> dict[str, tuple[int, Callable[..., Any]]]:
    """Return {method: (rows of the sketch or 0, function (key, kernel, X, size) -> map)}."""
    made: dict[str, tuple[int, Callable[..., Any]]] = {"RNCA": (0, _rnca), "Nystrom": (0, _nystrom)}
    made[f"RNCA, {CUT} directions"] = (0, _rnca_cut)
    for buffered in (False, True):
        for l in rows:  # noqa: E741, the paper's letter
            name = f"SKPCA{', buffered' if buffered else ''}, l={l}"
            made[name] = (l, partial(_skpca, rows=l, buffered=buffered))
    return {name: method for name, method in made.items() if method[0] <= size}


def _space(method: str, size: int, rows: int, dim: int) -> int:
    """Return the numbers that the paper counts."""
    return size * dim + size * (rows if rows else size)


def figure(
    X: Any,
    test: Any,
    kernel: Any,
    *,
    sizes: Sequence[int] = SIZES,
    rows: Sequence[int] = ROWS,
    seed: int = 0,
    progress: Any = None,
) -> list[Row]:
    """Return the points of all curves of one data set.

    X : (n, dim) training points, float32 or float64; test : (q, dim) test points of that dtype.
    kernel : a Gaussian kernel.
    sizes : values of m and c, each at most n. rows : values of l; those above m are left out.
    progress : called with a line of text after every size, if given.

    Raises ValueError where an argument does not fit the data.
    """
    import jax
    import jax.numpy as jnp

    from jaxkern import checks

    X = checks.matrix("X", X, min_rows=2)
    test = checks.points("test", test, dim=X.shape[1])
    for size in sizes:
        checks.count("sizes", size, maximum=X.shape[0], limit="the number of points")
    G = gram_matrix(kernel, X)
    found = []
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
            Ys = jnp.stack([jnp.pad(Y, ((0, 0), (0, most - Y.shape[1]))) for Y in columns])
            for method, spectral, residual, frobenius in zip(group, *errors(G, Ys), strict=True):
                l = methods[method][0]  # noqa: E741, the paper's letter
                space = _space(method, size, l, X.shape[1])
                measured = (float(spectral), float(residual), float(frobenius), *times[method], space)
                found.append(Row(method, size, l, *measured))
        if progress is not None:
            progress(f"m = {size}: {time.monotonic() - began:.1f} s")
    return found


def _apply(phi: Any, X: Any) -> Any:
    return _jitted_call()(phi, X)


@cache
def _jitted_call() -> Callable[[Any, Any], Any]:
    """Return the jitted application of a map to points: one function, so that equal shapes share a program."""
    import jax

    return jax.jit(lambda phi, X: phi(X))


def _seconds(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the processor seconds of the second call, and what it returned."""
    import jax

    jax.block_until_ready(call())
    start = time.process_time()
    result = jax.block_until_ready(call())
    return time.process_time() - start, result


# ------------------------------------------------------------------------------------------------------------- reports


def terminal(found: Mapping[str, Sequence[Row]], *, file: TextIO | None = None) -> None:
    """Print the table."""
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
        for name, rows in found.items()
        for row in rows
    ]
    _command.terminal("ghashami2016, Figures 1 to 4", COLUMNS, cells, names=2, file=file)


def plot(rows: Sequence[Row], path: Path, *, title: str) -> None:
    """Draw the figure of one data set in the paper's order of panels; the ending of the file says the format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as letters: smaller, and readable by machines
    matplotlib.rcParams["svg.hashsalt"] = "jaxkern"
    from matplotlib import pyplot, ticker

    panels = (
        ("size", "frobenius", "Kernel Frobenius error", "sample size"),
        ("size", "spectral", "Kernel spectral error", "sample size"),
        ("size", "train", "train time (processor s)", "sample size"),
        ("space", "frobenius", "Kernel Frobenius error", "space (numbers)"),
        ("space", "spectral", "Kernel spectral error", "space (numbers)"),
        ("size", "test", "test time (processor s)", "sample size"),
    )
    names = list(dict.fromkeys(row.method for row in rows if "buffered" not in row.method))
    sketches = [name for name in names if name.startswith("SKPCA")]
    colours = dict(zip(sketches, pyplot.get_cmap("viridis")([i / 6 for i in range(len(sketches))]), strict=True))
    colours |= {"RNCA": "black", "Nystrom": "tab:red", f"RNCA, {CUT} directions": "grey"}
    figure, axes = pyplot.subplots(2, 3, figsize=(13, 7))
    for axis, (x, y, label, below) in zip(axes.flat, panels, strict=True):
        for name in names:
            curve = [row for row in rows if row.method == name]
            marker = "." if name in sketches else "s"
            axis.plot(
                [getattr(row, x) for row in curve],
                [getattr(row, y) for row in curve],
                marker=marker,
                markersize=4,
                linewidth=1,
                color=colours[name],
                label=name,
            )
        axis.set(xscale="log", yscale="log", xlabel=below, ylabel=label)
        axis.xaxis.set_minor_formatter(ticker.NullFormatter())  # over less than a decade they overlap
        if x == "size":
            axis.set_xticks(sorted({row.size for row in rows}), labels=sorted({str(row.size) for row in rows}, key=int))
        axis.grid(alpha=0.3)
    figure.suptitle(title)
    figure.legend(*axes[0][0].get_legend_handles_labels(), ncol=5, loc="lower center")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=100, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def as_json(found: Mapping[str, Sequence[Row]], **about: Any) -> dict[str, Any]:
    """Return every number behind the figures, ready for JSON."""
    return {
        "schema": SCHEMA,
        "paper": "ghashami2016",
        "where": "Figures 1 to 4",
        **about,
        "rows": [{"data": name, **asdict(row)} for name, rows in found.items() for row in rows],
    }


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Reproduce Figures 1 to 4 of ghashami2016.")
    parser.add_argument(
        "--data-dir", type=Path, default=Path("data"), metavar="DIR", help="holds cpu.npz, a9a.npz, covtype.npz (X)"
    )
    parser.add_argument("--datasets", type=_datasets, default=tuple(SOURCES), metavar="LIST", help=",".join(SOURCES))
    parser.add_argument("--points", type=_command.whole, default=20_000, metavar="INT", help="at most (default: 20000)")
    parser.add_argument("--sizes", type=_command.wholes, default=SIZES, metavar="LIST", help="values of m and c")
    parser.add_argument("--rows", type=_command.wholes, default=ROWS, metavar="LIST", help="values of l")
    parser.add_argument("--quantile", type=_fraction, default=0.5, metavar="Q", help="of the distances (default: 0.5)")
    parser.add_argument(
        "--plot", dest="plots", type=Path, metavar="DIR", help="draw ghashami2016_figureN.svg into it, too"
    )
    return parser


def _datasets(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in SOURCES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown data set {unknown[0]!r}; there are {', '.join(SOURCES)}")
    return names


def _fraction(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f"must lie between 0 and 1, got {text[:30]!r}")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the figures are made, 2 for bad usage or input. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    from proofs_check.engine.reading import DataError

    if min(*options.sizes, *options.rows, options.points) < 1 or max(options.sizes) > options.points:
        raise UsageError("--sizes, --rows and --points must be at least 1, and sizes at most the points")
    if min(options.rows) > min(options.sizes):
        raise UsageError("--rows must hold one number that is at most the smallest of --sizes")
    if options.plots is not None and not options.plots.is_dir():
        raise UsageError(f"--plot {options.plots}: there is no such folder")
    drawings: dict[str, Path] = {}
    for name in () if options.plots is None else options.datasets:
        drawings[name] = options.plots / f"ghashami2016_figure{SOURCES[name].figure}.svg"
        check_file("--plot", drawings[name], overwrite=options.overwrite)
    import jax
    import numpy as np

    from jaxkern.kernels import Gaussian, sampled_quantile_lengthscale

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    found: dict[str, list[Row]] = {}
    about: dict[str, Any] = {}
    seconds = {}
    for name in options.datasets:
        source, start = SOURCES[name], time.monotonic()
        # RandomNoisy and Adult lose their test points; CPU has its printed number of training points left.
        wanted = source.num_points - (0 if name == "cpu" else source.num_test)
        try:
            X, test = (
                part.astype(options.dtype)
                for part in read(name, options.data_dir, num_points=min(wanted, options.points), seed=options.seed)
            )
        except DataError as error:
            raise UsageError(str(error)) from None
        pairs = min(100_000, X.shape[0] * (X.shape[0] - 1) // 2)
        lengthscale = float(
            sampled_quantile_lengthscale(jax.random.key(options.seed), X, options.quantile, num_pairs=pairs)
        )
        about[name] = {"n": X.shape[0], "dim": X.shape[1], "test": test.shape[0], "lengthscale": lengthscale}
        print(f"{PROG}: {source.title}, n = {X.shape[0]}, lengthscale {lengthscale:.4g}", file=sys.stderr)
        found[name] = figure(
            np.ascontiguousarray(X),
            test,
            Gaussian(lengthscale),
            sizes=options.sizes,
            rows=options.rows,
            seed=options.seed,
            progress=lambda line: print(f"{PROG}: {line}", file=sys.stderr),
        )
        seconds[name] = round(time.monotonic() - start, 1)
        # After every data set: what is interrupted leaves those before it.
        settings = {"seed": options.seed, "dtype": options.dtype, "quantile": options.quantile, "data": about}
        _command.write(options.output, as_json(found, **settings, run={"seconds": seconds}))
        drawn = functools.partial(plot, found[name], title=f"{source.title}, n = {X.shape[0]}, d = {X.shape[1]}")
        _command.draw(drawings.get(name), drawn)
    terminal(found)


if __name__ == "__main__":
    sys.exit(main())
