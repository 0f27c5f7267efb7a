"""Figure 2 of kpotufe2020: the Rand index against the number of features d and of landmarks n, on the IoT data.

The paper takes N = 10,000 traces, n = 200 and varies d (left), or d = 10 and varies n (right), with 10 repetitions, and
prints curves without numbers. Rows, scaling, kernel and k-means are those of `kpotufe2020_table2`: the 2,000 traces of
each of five devices that `iot_sample` takes are close to the paper's N.

`python -m proofs_check.papers.kpotufe2020.figure2 --data-dir DIR` reads DIR/nbaiot.npz; `--plot FILE` draws the figure.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from proofs_check.papers import figures as _command
from proofs_check.papers.kpotufe2020.table2 import FILES, METHODS, iot_sample, read, standardise
from proofs_check.usage import UsageError

if TYPE_CHECKING:  # everything that imports jax waits until the arguments are read, so that --help is instant
    import numpy as np

PROG = "kpotufe2020_figure2"
KERNEL_METHODS = METHODS[1:]
FEATURES = (2, 5, 10, 20, 50, 100, 200)
LANDMARKS = (10, 20, 50, 100, 200, 500, 1000)
FIXED_LANDMARKS, FIXED_FEATURES = 200, 10
REPETITIONS = 10
COLUMNS = ("n", "d", *KERNEL_METHODS)
SCHEMA = 1


def figure2(
    X: Any,
    labels: Any,
    sizes: Sequence[tuple[int, int]],
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    width: Any = None,
    progress: Callable[[str], None] | None = None,
) -> dict[tuple[int, int], dict[str, np.ndarray]]:
    """Return the Rand indices, {(n, d): {method: (repetitions,) array}}.

    X : (N, dim) points, float32 or float64, as they are to be clustered (see `standardise`).
    labels : (N,) true classes, integers.
    sizes : pairs of a number of landmarks n and a number of features d, 1 <= d <= n <= N.
    repetitions : at least 1. Repetition i depends on the seed and i alone.
    width : sigma, by default the 25th percentile of all distances.
    progress : called with a line of text after every pair, if given.

    Raises ValueError where an argument does not fit the data.
    """
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxkern import checks
    from jaxkern.kernels import Gaussian, quantile_lengthscale
    from proofs_check.papers import clusterings as _clustering

    X = checks.matrix("X", X, min_rows=2)
    classes, numbered = np.unique(np.asarray(checks.labels("labels", labels, size=X.shape[0])), return_inverse=True)
    repetitions = checks.count("repetitions", repetitions)
    for n, d in sizes:
        checks.count("num_features", d, maximum=checks.count("num_landmarks", n, maximum=X.shape[0]), limit="n")
    kernel = Gaussian.from_width(quantile_lengthscale(X, 0.25) if width is None else width)
    key, truth = jax.random.key(seed), jnp.asarray(numbered.reshape(-1), jnp.int32)
    numbers = jnp.arange(repetitions, dtype=jnp.uint32)
    found = {}
    for n, d in dict.fromkeys(sizes):
        start = time.monotonic()
        shape = _clustering.Sizes(k=len(classes), n=n, d=d)
        found[n, d] = {
            method: np.asarray(
                _clustering.rand_indices(method, key, numbers, kernel, X, truth, sizes=shape), np.float64
            )
            for method in KERNEL_METHODS
        }
        if progress is not None:
            progress(f"n = {n}, d = {d}: {time.monotonic() - start:.1f} s")
    return found


def terminal(found: Mapping[tuple[int, int], Mapping[str, np.ndarray]], *, file: TextIO | None = None) -> None:
    """Print mean and standard deviation for every size and method."""
    cells = [
        (str(n), str(d), *(f"{scores[m].mean():.3f} ± {_deviation(scores[m]):.3f}" for m in KERNEL_METHODS))
        for (n, d), scores in found.items()
    ]
    title = "kpotufe2020, Figure 2: mean ± standard deviation of the Rand index"
    _command.terminal(title, COLUMNS, cells, names=0, file=file)


def _deviation(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else 0.0


def plot(found: Mapping[tuple[int, int], Mapping[str, np.ndarray]], path: Path, *, n: int, d: int) -> None:
    """Draw the Rand index against d at this n (left) and against n at this d (right) into a file."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams |= {"svg.fonttype": "none", "svg.hashsalt": PROG}  # letters as letters, ids always the same
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    sides = (
        ("features d", f"n = {n}", [(pair[1], pair) for pair in found if pair[0] == n]),
        ("landmarks n", f"d = {d}", [(pair[0], pair) for pair in found if pair[1] == d]),
    )
    for axis, (label, title, pairs) in zip(axes, sides, strict=True):
        for method, marker in zip(KERNEL_METHODS, "os^", strict=True):
            rows = [found[pair][method] for _, pair in sorted(pairs)]
            errors = [_deviation(row) for row in rows]
            where = [value for value, _ in sorted(pairs)]
            axis.errorbar(where, [row.mean() for row in rows], yerr=errors, marker=marker, capsize=2, label=method)
        axis.set(xscale="log", xlabel=label, title=title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("Rand index")
    axes[1].legend(loc="lower right")
    figure.tight_layout()
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def as_json(found: Mapping[tuple[int, int], Mapping[str, np.ndarray]], **about: Any) -> dict[str, Any]:
    """Return every number behind the figure, ready for JSON."""
    rows = [
        {"n": n, "d": d, "method": method, "mean": float(values.mean()), "values": values.tolist()}
        for (n, d), scores in found.items()
        for method, values in scores.items()
    ]
    return {"schema": SCHEMA, "paper": "kpotufe2020", "where": "Figure 2", **about, "rows": rows}


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Reproduce Figure 2 of kpotufe2020.")
    parser.add_argument("--data-dir", type=Path, default=Path("data"), metavar="DIR", help=f"holds {FILES['iot']}")
    parser.add_argument(
        "--features", type=_command.wholes, default=FEATURES, metavar="LIST", help="d at n = 200 (2,5,...,200)"
    )
    parser.add_argument(
        "--landmarks", type=_command.wholes, default=LANDMARKS, metavar="LIST", help="n at d = 10 (10,20,...,1000)"
    )
    parser.add_argument("--per-device", type=_command.whole, default=2000, metavar="INT", help="default: 2000")
    parser.add_argument("--repetitions", type=_command.whole, default=REPETITIONS, metavar="INT", help="default: 10")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure (needs matplotlib), too")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the figure is made, 2 for bad usage or input. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    from proofs_check.engine.reading import DataError

    try:
        X, y = iot_sample(*read(options.data_dir / FILES["iot"]), per_device=options.per_device)
    except (DataError, ValueError) as error:
        raise UsageError(str(error)) from None
    import jax

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    start = time.monotonic()
    try:
        found = figure2(
            standardise(X).astype(options.dtype),
            y,
            [(FIXED_LANDMARKS, d) for d in options.features] + [(n, FIXED_FEATURES) for n in options.landmarks],
            repetitions=options.repetitions,
            seed=options.seed,
            progress=lambda line: print(f"{PROG}: {line}", file=sys.stderr),
        )
    except ValueError as error:  # sizes that do not fit the data
        raise UsageError(str(error)) from None
    terminal(found)
    seconds = round(time.monotonic() - start, 1)
    print(f"{PROG}: {seconds} s", file=sys.stderr)
    about = {"seed": options.seed, "dtype": options.dtype, "points": len(X), "run": {"seconds": seconds}}
    _command.write(options.output, as_json(found, **about))
    _command.draw(options.plot, lambda path: plot(found, path, n=FIXED_LANDMARKS, d=FIXED_FEATURES))


if __name__ == "__main__":
    sys.exit(main())
