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

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern.features import paired_fourier
from jaxkern.gram import center, gram
from jaxkern.kernels import Gaussian
from jaxkern.linalg import eigvalsh, matmul
from proofs_check.engine.reading import read_npz, reading
from proofs_check.papers import figures
from proofs_check.usage import UsageError

READINGS = ("uncentred", "centred")
LENGTHSCALES = (4.0, 8.0, 16.0)
FREQUENCIES = (50, 100, 200, 400, 800)
COMPONENTS, PER_DIGIT, DRAWS, AVERAGED = 40, 200, 40, 10
BASELINES = {4.0: 1667.1, 8.0: 882.5, 16.0: 206.1}
PRINTED = {
    4.0: (897.6, 1257.6, 1453.6, 1554.7, 1606.8),
    8.0: (489.2, 666.5, 776.4, 831.5, 857.3),
    16.0: (96.9, 152.2, 178.7, 189.2, 197.6),
}
COLUMNS = (
    "reading",
    "sigma",
    "t",
    "residual",
    "printed",
    "(printed - mean) / sd",
    "t (1 - mean / R)",
)


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
        return dict(
            zip(FREQUENCIES, PRINTED.get(self.lengthscale, ()), strict=False)
        ).get(self.frequencies)

    @property
    def mean(self) -> float:
        """Mean of the residuals."""
        return sum(self.residuals) / len(self.residuals)

    @property
    def deviation(self) -> float:
        """Standard deviation of one residual (nan for a single draw)."""
        return (
            float(np.std(self.residuals, ddof=1))
            if len(self.residuals) > 1
            else math.nan
        )

    @property
    def score(self) -> float:
        """Return (printed - mean) / sd, of which 3 is a lot if the printed number is one more draw."""
        return (
            math.nan
            if self.printed is None
            else (self.printed - self.mean) / self.deviation
        )

    @property
    def error(self) -> float:
        """1 - mean / R."""
        return 1 - self.mean / self.exact


def first_rows(labels: Any, per_digit: int = PER_DIGIT) -> np.ndarray:
    """Return the indices of the first so many rows of each label, label by label.

    Raises ValueError if a label has fewer rows.
    """
    labels = np.asarray(labels)
    rows = [np.flatnonzero(labels == label)[:per_digit] for label in np.unique(labels)]
    if min(map(len, rows)) < per_digit:
        raise ValueError(
            f"needs {per_digit} rows of every label, got {min(map(len, rows))} of one"
        )
    return np.concatenate(rows)


def exact_residual(
    points: Any,
    lengthscale: float,
    *,
    components: int = COMPONENTS,
    centred: bool = False,
) -> float:
    """Return R_k, the sum of the eigenvalues of the Gram matrix of points (n, d) after the k-th, k = `components`."""
    K = gram(Gaussian(lengthscale), points)
    return float(_tail(center(K) if centred else K, components))


def residuals(
    points: Any,
    lengthscale: float,
    frequencies: int,
    *,
    components: int = COMPONENTS,
    centred: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
) -> tuple[float, ...]:
    """Return Rhat_k of PCA of the paired features of points (n, d), one number for each draw.

    A draw depends on seed, lengthscale, frequencies and its number alone; the readings share the draws.
    """
    key = jax.random.fold_in(jax.random.key(seed), frequencies)
    key = jax.random.fold_in(key, round(1000 * lengthscale))
    kernel, dtype = Gaussian(lengthscale), points.dtype

    def draw(number: int) -> float:
        own = jax.random.fold_in(key, number)
        Z = paired_fourier(
            own, kernel, points.shape[1], num_frequencies=frequencies, dtype=dtype
        )(points)
        if centred:
            Z = Z - Z.mean(axis=0)[None]
        return float(
            _tail(
                matmul(Z.T, Z) if Z.shape[1] < Z.shape[0] else matmul(Z, Z.T),
                components,
            )
        )

    return tuple(map(draw, range(draws)))


def _tail(A: Any, components: int) -> Any:
    """Return the sum of the eigenvalues after the first ones: the trace less the first, which are the accurate ones."""
    return A.trace() - eigvalsh(A)[:components].sum()


def figure1(
    points: Any,
    *,
    frequencies: Sequence[int] = FREQUENCIES,
    readings: Sequence[str] = READINGS,
    components: int = COMPONENTS,
    draws: int = DRAWS,
    seed: int = 0,
    progress: figures.Say | None = None,
) -> list[Cell]:
    """Return the cells of the table. `progress` is called with a line of text after every row, if given."""
    cells = []
    for reading_ in readings:
        options: dict[str, Any] = {
            "components": components,
            "centred": reading_ == "centred",
        }
        exact = {s: exact_residual(points, s, **options) for s in LENGTHSCALES}
        for t in frequencies:
            start = time.monotonic()
            for s in LENGTHSCALES:
                values = residuals(points, s, t, draws=draws, seed=seed, **options)
                cells.append(Cell(reading_, s, t, exact[s], values))
            if progress is not None:
                progress(f"{reading_}, t = {t}: {time.monotonic() - start:.1f} s")
    return cells


def probability_of(cells: Sequence[Cell], averaged: int) -> float:
    """Return how likely printed numbers so far off are, if each is the mean of so many draws (chi-square, roughly).

    It uses the cells that have a printed number; nan if there is none.
    """
    printed = [cell for cell in cells if cell.printed is not None]
    total = sum(
        cell.score**2 / (1 / averaged + 1 / len(cell.residuals)) for cell in printed
    )
    return float(stats.chi2.sf(total, len(printed))) if printed else math.nan


def plot(pyplot: Any, cells: Sequence[Cell]) -> Any:
    """Draw the relative errors of the first reading against t."""
    figure, axis = pyplot.subplots(figsize=(6.5, 4.2))
    chosen = [cell for cell in cells if cell.reading == cells[0].reading]
    for number, s in enumerate(dict.fromkeys(cell.lengthscale for cell in chosen)):
        row = [cell for cell in chosen if cell.lengthscale == s]
        color, t = f"C{number}", [cell.frequencies for cell in row]
        bars = [2 * cell.deviation / cell.exact for cell in row]
        label = f"sigma = {s:g}, {len(row[0].residuals)} draws ± 2 sd"
        axis.errorbar(
            t,
            [cell.error for cell in row],
            yerr=bars,
            color=color,
            marker="o",
            capsize=3,
            label=label,
        )
        known = [
            (cell.frequencies, 1 - cell.printed / BASELINES[s])
            for cell in row
            if cell.printed is not None
        ]
        if known:
            axis.plot(
                *zip(*known, strict=True),
                "x",
                color=color,
                markersize=9,
                label=f"sigma = {s:g}, printed",
            )
    sizes = sorted({cell.frequencies for cell in chosen})
    axis.plot(
        [sizes[0], sizes[-1]],
        [25 / sizes[0], 25 / sizes[-1]],
        "k--",
        linewidth=1,
        label="25 / t",
    )
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="number of frequencies t",
        ylabel="1 - Rhat / R",
    )
    axis.set_xticks(sizes, [str(t) for t in sizes])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)
    figure.tight_layout()
    return figure


def result(
    cells: Sequence[Cell], about: Mapping[str, Any], path: Path | None = None
) -> figures.Result:
    """Return the baselines, the cells, and what the printed numbers may be."""
    exact = {(cell.reading, cell.lengthscale): cell.exact for cell in cells}
    baselines = [
        (
            reading_,
            f"{s:g}",
            f"{value:.1f}",
            f"{BASELINES[s]:.1f}" if s in BASELINES else "",
        )
        for (reading_, s), value in exact.items()
    ]
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
    lines = []
    for name in dict.fromkeys(cell.reading for cell in cells):
        one, mean = (
            probability_of([c for c in cells if c.reading == name], n)
            for n in (1, AVERAGED)
        )
        lines.append(
            f"{name}: p = {one:.2g} if a printed number is one draw, {mean:.2g} if a mean of {AVERAGED}"
        )
    title = "chen2016, Figure 1: residuals "
    first = figures.Table(
        f"{title}R of the exact kernel", ("reading", "sigma", "R", "printed"), baselines
    )
    second = figures.Table(
        f"{title}from features, mean ± standard deviation of a draw", COLUMNS, shown
    )
    rows = [
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
    ]
    return figures.Result(
        [first, second, *lines],
        about,
        {"rows": rows},
        [("--plot", path, partial(plot, cells=cells))],
    )


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and digits of the training part of usps.npz.

    Raises UsageError, whose message is one line, for a file that is none.
    """
    try:
        with reading(path, {".npz": ".npz"}), path.open("rb") as file:
            X, y = read_npz(path, file, "X"), read_npz(path, file, "y")
            count = int(read_npz(path, file, "n_train"))
    except (ValueError, TypeError) as error:  # DataError is a ValueError
        raise UsageError(
            f"{path}: cannot be read as points X, labels y and n_train ({error})"
        ) from None
    if (
        X.ndim != 2
        or y.shape != X.shape[:1]
        or not 0 < count <= len(X)
        or not np.isfinite(X).all()
    ):
        raise UsageError(
            f"{path}: X must be finite points (n, d), y (n,), and n_train at most n"
        )
    return X[:count], y[:count]


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    if (
        options.draws < 2
        or min(options.frequencies) < 1
        or options.per_digit < 1
        or options.kept < 1
    ):
        raise UsageError(
            "needs 2 draws, and 1 frequency, row of a digit and component at least"
        )
    path = options.data_dir / "usps.npz"
    X, y = read(path)
    try:
        rows = first_rows(y, options.per_digit)
    except ValueError as error:
        raise UsageError(f"{path}: {error}") from None
    if options.kept >= min(len(rows), 2 * min(options.frequencies)):
        raise UsageError("--kept must be below the number of points and of features")
    cells = figure1(
        jnp.asarray(X[rows], options.dtype),
        frequencies=options.frequencies,
        readings=options.readings,
        components=options.kept,
        draws=options.draws,
        seed=options.seed,
        progress=say,
    )
    sizes = {name: getattr(options, name) for name in ("per_digit", "kept", "draws")}
    return result(
        cells,
        {"seed": options.seed, "dtype": options.dtype, "sizes": sizes},
        options.plot,
    )


FIGURE = figures.Figure(
    "chen2016_figure1",
    "Figure 1",
    "Reproduce Figure 1 of chen2016.",
    _compute,
    (
        figures.data_dir("usps.npz"),
        figures.numbers("--frequencies", FREQUENCIES, "t"),
        figures.number("--per-digit", PER_DIGIT),
        figures.number("--kept", COMPONENTS, "k"),
        figures.number("--draws", DRAWS),
        figures.some("--readings", READINGS, "reading"),
        figures.plot(what="the first reading"),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
