"""Figure 1 of chen2016: residuals of kernel PCA of the USPS digits, exact and from random Fourier features.

The figure is a table: the residual R_k of kernel PCA with k = 40 for three lengthscales, and the residual Rhat_k of PCA
of t paired features. The text leaves some of it open, and some of it does not agree with the numbers. This does:

- the points are the first 200 rows of each digit of the training part, with pixels in [-1, 1] as they are distributed;
- nothing is centred, though the text says that the Gram matrix and the features are;
- the kernel is exp(-|x - y|^2 / (2 sigma^2)), and R_k is the sum of the eigenvalues of the Gram matrix after the k-th;
- t counts frequencies, so that there are 2 t features.

The columns are residuals, where the caption promises relative errors in percent.

`python -m proofs_check.papers.chen2016.figure1 --data-dir DIR` reads DIR/usps.npz with the points as X, the digits as y
and the number of training rows as n_train: zip.train and then zip.test of "The Elements of Statistical Learning".
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from proofs_check.papers import figures as _command
from proofs_check.usage import UsageError

if TYPE_CHECKING:  # everything that imports jax waits until the arguments are read, so that --help is instant
    import numpy as np

PROG = "chen2016_figure1"
READINGS = ("uncentred", "centred")
LENGTHSCALES = (4.0, 8.0, 16.0)
FREQUENCIES = (50, 100, 200, 400, 800)
KEPT, PER_DIGIT, DRAWS, AVERAGED = 40, 200, 40, 10
BASELINES = {4.0: 1667.1, 8.0: 882.5, 16.0: 206.1}
PRINTED = {
    4.0: (897.6, 1257.6, 1453.6, 1554.7, 1606.8),
    8.0: (489.2, 666.5, 776.4, 831.5, 857.3),
    16.0: (96.9, 152.2, 178.7, 189.2, 197.6),
}
COLUMNS = ("reading", "sigma", "t", "residual", "printed", "(printed - mean) / sd", "t (1 - mean / R)")
SCHEMA = 1


@dataclass(frozen=True)
class Cell:
    """One cell of the table: the residuals of all draws, of the exact kernel, and the one that is printed, if any."""

    reading: str
    lengthscale: float
    frequencies: int
    exact: float
    residuals: tuple[float, ...]

    @property
    def printed(self) -> float | None:
        """The number of the paper."""
        known = dict(zip(FREQUENCIES, PRINTED.get(self.lengthscale, ()), strict=False))
        return known.get(self.frequencies)

    @property
    def mean(self) -> float:
        """Mean of the residuals."""
        return sum(self.residuals) / len(self.residuals)

    @property
    def deviation(self) -> float:
        """Standard deviation of one residual (nan for a single draw)."""
        count = len(self.residuals)
        squares = sum((x - self.mean) ** 2 for x in self.residuals)
        return (squares / (count - 1)) ** 0.5 if count > 1 else float("nan")

    @property
    def score(self) -> float:
        """Return (printed - mean) / sd, of which 3 is a lot if the printed number is one more draw."""
        return float("nan") if self.printed is None else (self.printed - self.mean) / self.deviation

    @property
    def error(self) -> float:
        """1 - mean / R."""
        return 1 - self.mean / self.exact


def first_rows(labels: Any, per_digit: int = PER_DIGIT) -> np.ndarray:
    """Return the indices of the first so many rows of each label, label by label.

    Raises ValueError if a label has fewer rows.
    """
    import numpy as np

    labels = np.asarray(labels)
    found = [np.flatnonzero(labels == label)[:per_digit] for label in np.unique(labels)]
    if min(map(len, found)) < per_digit:
        raise ValueError(f"needs {per_digit} rows of every label, got {min(map(len, found))} of one")
    return np.concatenate(found)


def exact_residual(points: Any, lengthscale: float, *, kept: int = KEPT, reading: str = READINGS[0]) -> float:
    """Return R_k, the sum of the eigenvalues of the Gram matrix of points (n, d) after the k-th, k = `kept` < n."""
    from jaxkern.gram import center, gram
    from jaxkern.kernels import Gaussian

    _check(reading)
    K = gram(Gaussian(lengthscale), points)
    return float(_tail(center(K) if reading == "centred" else K, kept))


def residuals(
    points: Any,
    lengthscale: float,
    frequencies: int,
    *,
    kept: int = KEPT,
    reading: str = READINGS[0],
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[float, ...]:
    """Return Rhat_k of PCA of the paired features of points (n, d), one number for each draw.

    A draw depends on seed, lengthscale, frequencies and its number alone; the readings share the draws.
    """
    import jax

    _check(reading)
    key = jax.random.fold_in(jax.random.key(seed), frequencies)
    key = jax.random.fold_in(key, round(1000 * lengthscale))
    one = partial(_draw, lengthscale=lengthscale, frequencies=frequencies, kept=kept, centred=reading == "centred")
    return tuple(float(one(jax.random.fold_in(key, number), points)) for number in range(draws))


def _check(reading: str) -> None:
    if reading not in READINGS:
        raise ValueError(f"reading must be one of {', '.join(READINGS)}, got {reading!r}")


def _draw(key: Any, points: Any, *, lengthscale: float, frequencies: int, kept: int, centred: bool) -> Any:
    from jaxkern.features import paired_fourier
    from jaxkern.kernels import Gaussian
    from jaxkern.linalg import matmul

    phi = paired_fourier(key, Gaussian(lengthscale), points.shape[1], num_frequencies=frequencies, dtype=points.dtype)
    Z = phi(points)
    if centred:
        Z = Z - Z.mean(axis=0)[None]
    return _tail(matmul(Z.T, Z) if Z.shape[1] < Z.shape[0] else matmul(Z, Z.T), kept)


def _tail(A: Any, kept: int) -> Any:
    """Return the sum of the eigenvalues after the first ones: the trace less the first, which are the accurate ones."""
    from jaxkern.linalg import eigvalsh

    return A.trace() - eigvalsh(A)[:kept].sum()


def figure1(
    points: Any,
    *,
    lengthscales: Sequence[float] = LENGTHSCALES,
    frequencies: Sequence[int] = FREQUENCIES,
    readings: Sequence[str] = READINGS,
    kept: int = KEPT,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Any = None,
) -> list[Cell]:
    """Return the cells of the table. `progress` is called with a line of text after every row, if given."""
    cells = []
    for reading in readings:
        exact = {s: exact_residual(points, s, kept=kept, reading=reading) for s in lengthscales}
        for t in frequencies:
            start = time.monotonic()
            for s in lengthscales:
                found = residuals(points, s, t, kept=kept, reading=reading, draws=draws, seed=seed)
                cells.append(Cell(reading, s, t, exact[s], found))
            if progress is not None:
                progress(f"{reading}, t = {t}: {time.monotonic() - start:.1f} s")
    return cells


def probability_of(cells: Sequence[Cell], averaged: int) -> float:
    """Return how likely printed numbers so far off are, if each is the mean of so many draws (chi-square, roughly).

    It uses the cells that have a printed number; nan if there is none.
    """
    from scipy import stats

    scores = [cell.score for cell in cells if cell.printed is not None]
    variances = [1 / averaged + 1 / len(cell.residuals) for cell in cells if cell.printed is not None]
    total = sum(score**2 / variance for score, variance in zip(scores, variances, strict=True))
    return float(stats.chi2.sf(total, len(scores))) if scores else float("nan")


def terminal(cells: Sequence[Cell], *, file: TextIO | None = None) -> None:
    """Print the baselines, the cells, and what the printed numbers may be."""
    file = sys.stdout if file is None else file
    readings = list(dict.fromkeys(cell.reading for cell in cells))
    exact = {(cell.reading, cell.lengthscale): cell.exact for cell in cells}
    rows = [
        (reading, f"{s:g}", f"{value:.1f}", f"{BASELINES[s]:.1f}" if s in BASELINES else "")
        for (reading, s), value in exact.items()
    ]
    title = "chen2016, Figure 1: residuals R of the exact kernel"
    _command.terminal(title, ("reading", "sigma", "R", "printed"), rows, names=1, file=file)
    shown = [
        (
            cell.reading,
            f"{cell.lengthscale:g}",
            str(cell.frequencies),
            f"{cell.mean:.1f} ± {cell.deviation:.1f}",
            "" if cell.printed is None else f"{cell.printed:.1f}",
            "" if cell.printed is None else f"{cell.score:+.1f}",
            f"{cell.frequencies * cell.error:.1f}",
        )
        for cell in cells
    ]
    title = "chen2016, Figure 1: residuals from features, mean ± standard deviation of a draw"
    _command.terminal(title, COLUMNS, shown, names=1, file=file)
    for reading in readings:
        chosen = [cell for cell in cells if cell.reading == reading]
        one, mean = (probability_of(chosen, averaged) for averaged in (1, AVERAGED))
        print(
            f"{reading}: p = {one:.2g} if a printed number is one draw, {mean:.2g} if a mean of {AVERAGED}", file=file
        )


def plot(cells: Sequence[Cell], path: Path) -> None:
    """Draw the relative errors against t into a file, whose ending says the format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as letters: smaller, and readable by machines
    matplotlib.rcParams["svg.hashsalt"] = PROG
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(6.5, 4.2))
    chosen = [cell for cell in cells if cell.reading == cells[0].reading]
    for number, s in enumerate(dict.fromkeys(cell.lengthscale for cell in chosen)):
        row = [cell for cell in chosen if cell.lengthscale == s]
        color, t = f"C{number}", [cell.frequencies for cell in row]
        bars = [2 * cell.deviation / cell.exact for cell in row]
        label = f"sigma = {s:g}, {len(row[0].residuals)} draws ± 2 sd"
        axis.errorbar(t, [cell.error for cell in row], yerr=bars, color=color, marker="o", capsize=3, label=label)
        known = [(cell.frequencies, 1 - cell.printed / BASELINES[s]) for cell in row if cell.printed is not None]
        if known:
            axis.plot(*zip(*known, strict=True), "x", color=color, markersize=9, label=f"sigma = {s:g}, printed")
    times = [min(cell.frequencies for cell in chosen), max(cell.frequencies for cell in chosen)]
    axis.plot(times, [25 / t for t in times], "k--", linewidth=1, label="25 / t")
    axis.set(xscale="log", yscale="log", xlabel="number of frequencies t", ylabel="1 - Rhat / R")
    sizes = sorted({cell.frequencies for cell in chosen})
    axis.set_xticks(sizes, [str(t) for t in sizes])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def as_json(cells: Sequence[Cell], **about: Any) -> dict[str, Any]:
    """Return every number of the table, ready for JSON."""
    return {
        "schema": SCHEMA,
        "paper": "chen2016",
        "where": "Figure 1",
        **about,
        "rows": [
            {
                "reading": cell.reading,
                "lengthscale": cell.lengthscale,
                "frequencies": cell.frequencies,
                "exact": cell.exact,
                "mean": cell.mean,
                "printed": cell.printed,
                "values": list(cell.residuals),
            }
            for cell in cells
        ],
    }


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and digits of the training part of usps.npz.

    Raises UsageError, whose message is one line, for a file that is none.
    """
    import numpy as np

    from proofs_check.engine.reading import read_npz, reading

    try:
        with reading(path, {".npz": ".npz"}), path.open("rb") as file:
            X, y = read_npz(path, file, "X"), read_npz(path, file, "y")
            count = int(read_npz(path, file, "n_train"))
    except (ValueError, TypeError) as error:  # DataError is a ValueError
        raise UsageError(f"{path}: cannot be read as points X, labels y and n_train ({error})") from None
    if X.ndim != 2 or y.shape != X.shape[:1] or not 0 < count <= len(X) or not np.isfinite(X).all():
        raise UsageError(f"{path}: X must be finite points (n, d), y (n,), and n_train at most n")
    return X[:count], y[:count]


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Reproduce Figure 1 of chen2016.")
    parser.add_argument("--data-dir", type=Path, default=Path("data"), metavar="DIR", help="holds usps.npz")
    parser.add_argument("--frequencies", type=_command.wholes, default=FREQUENCIES, metavar="LIST")
    parser.add_argument("--per-digit", type=_command.whole, default=PER_DIGIT, metavar="INT", help="default: 200")
    parser.add_argument("--kept", type=_command.whole, default=KEPT, metavar="INT", help="k (default: 40)")
    parser.add_argument("--draws", type=_command.whole, default=DRAWS, metavar="INT", help="default: 40")
    parser.add_argument("--readings", type=_readings, default=READINGS, metavar="LIST", help=",".join(READINGS))
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the first reading (needs matplotlib), too")
    return parser


def _readings(text: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in chosen if name not in READINGS]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown reading {unknown[0]!r}; there are {', '.join(READINGS)}")
    return chosen


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the table is made, 2 for bad usage or data. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    if options.draws < 2 or min(options.frequencies) < 1 or options.per_digit < 1 or options.kept < 1:
        raise UsageError("needs 2 draws, and 1 frequency, row of a digit and component at least")
    X, y = read(options.data_dir / "usps.npz")
    try:
        rows = first_rows(y, options.per_digit)
    except ValueError as error:
        raise UsageError(f"{options.data_dir / 'usps.npz'}: {error}") from None
    if options.kept >= min(len(rows), 2 * min(options.frequencies)):
        raise UsageError("--kept must be below the number of points and of features")
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    start = time.monotonic()
    cells = figure1(
        jnp.asarray(X[rows], options.dtype),
        frequencies=options.frequencies,
        readings=options.readings,
        kept=options.kept,
        draws=options.draws,
        seed=options.seed,
        progress=lambda line: print(f"{PROG}: {line}", file=sys.stderr),
    )
    terminal(cells)
    seconds = round(time.monotonic() - start, 1)
    print(f"{PROG}: {seconds} s", file=sys.stderr)
    sizes: Mapping[str, int] = {"per_digit": options.per_digit, "kept": options.kept, "draws": options.draws}
    about = {"seed": options.seed, "dtype": options.dtype, "sizes": sizes, "run": {"seconds": seconds}}
    _command.write(options.output, as_json(cells, **about))
    _command.draw(options.plot, lambda path: plot(cells, path))


if __name__ == "__main__":
    sys.exit(main())
