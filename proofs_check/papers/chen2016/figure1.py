"""Figure 1 of chen2016: residuals of kernel PCA of the USPS digits, exact and from random Fourier features.

The figure is a table: the residual R_k of kernel PCA with k = 40 for three lengthscales, and the residual Rhat_k of PCA
of t paired features. The text leaves some of it open, and some of it does not agree with the numbers. This does:

- the points are the first 200 rows of each digit of the training part, with pixels in [-1, 1] as they are distributed;
- nothing is centred, though the text says that the Gram matrix and the features are;
- the kernel is exp(-|x - y|^2 / (2 sigma^2)), and R_k is the sum of the eigenvalues of the Gram matrix after the k-th;
- t counts frequencies, so that there are 2 t features.

The columns are residuals, where the caption promises relative errors in percent.

The folder of --data-dir holds usps.npz, with the points as X, the digits as y and the number of training rows as
n_train: zip.train and then zip.test of "The Elements of Statistical Learning".
"""

from collections.abc import Sequence
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
from proofs_check.engine.reading import DataError
from proofs_check.papers.figures import Numbers, Tables, read_labelled, summary, timed

_PLACE = {"reading": "{reading}", "sigma": "{lengthscale:g}"}
TABLES: Tables = {
    "rows": {
        **_PLACE,
        "t": "{frequencies}",
        "R": "{exact:.1f}",
        "residual": "{mean:.1f} ± {sd:.1f}",
        "t (1 - mean / R)": "{scaled:.1f}",
    },
    "comparison": {
        **_PLACE,
        "t": "{frequencies}",
        "printed R": "{baseline}",
        "printed": "{printed}",
        "(printed - mean) / sd": "{score:+.1f}",
    },
    "probabilities": {
        "reading": "{reading}",
        "draws of a printed number": "{averaged}",
        "p": "{p:.2g}",
    },
}
READINGS = ("uncentred", "centred")
PANELS = (1, 1)
SIZE = (6.5, 4.2)
FREQUENCIES = (50, 100, 200, 400, 800)
COMPONENTS = 40
AVERAGED = 10
BASELINES = {4.0: 1667.1, 8.0: 882.5, 16.0: 206.1}
PRINTED = {
    4.0: (897.6, 1257.6, 1453.6, 1554.7, 1606.8),
    8.0: (489.2, 666.5, 776.4, 831.5, 857.3),
    16.0: (96.9, 152.2, 178.7, 189.2, 197.6),
}


def data(*, full: bool, seed: int, dtype: Any, data_dir: Path) -> dict[str, Any]:
    """Return the residuals of the exact kernel and of all draws, beside the printed ones."""
    per_digit = 200 if full else 20
    frequencies = FREQUENCIES if full else (20, 40)
    components = COMPONENTS if full else 10
    draws = 40 if full else 4
    X, y = read(data_dir / "usps.npz")
    points = jnp.asarray(X[first_rows(y, per_digit)], dtype)
    rows = []
    for reading in READINGS:
        options: dict[str, Any] = {
            "components": components,
            "centred": reading == "centred",
        }
        for s in timed(BASELINES):
            exact = exact_residual(points, s, **options)
            place = {"reading": reading, "lengthscale": s, "exact": exact}
            for t in frequencies:
                values = residuals(points, s, t, draws=draws, seed=seed, **options)
                row = {**place, "frequencies": t, **summary(values)}
                rows.append({**row, "scaled": t * (1 - row["mean"] / exact)})
    comparison = compare(rows) if full else []
    chances = probabilities(comparison, draws) if full else []
    return {
        "sizes": {"per_digit": per_digit, "components": components, "draws": draws},
        "rows": rows,
        "comparison": comparison,
        "probabilities": chances,
    }


def compare(rows: Sequence[Numbers]) -> list[dict[str, Any]]:
    """Return the printed numbers, and (printed - mean) / sd, of which 3 is a lot if each is one more draw."""
    comparison = []
    for row in rows:
        place = {name: row[name] for name in ("reading", "lengthscale", "frequencies")}
        column = FREQUENCIES.index(row["frequencies"])
        printed = PRINTED[row["lengthscale"]][column]
        numbers = {
            "baseline": BASELINES[row["lengthscale"]],
            "printed": printed,
            "score": (printed - row["mean"]) / row["sd"],
        }
        comparison.append({**place, **numbers})
    return comparison


def probabilities(comparison: Sequence[Numbers], draws: int) -> list[dict[str, Any]]:
    """Return how likely printed numbers so far off are, if each is the mean of so many draws (chi-square, roughly)."""
    table = []
    for reading in READINGS:
        scores = [row["score"] for row in comparison if row["reading"] == reading]
        for averaged in (1, AVERAGED):
            total = np.square(scores).sum() / (1 / averaged + 1 / draws)
            p = float(stats.chi2.sf(total, len(scores)))
            table.append({"reading": reading, "averaged": averaged, "p": p})
    return table


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the points and digits of the training part of usps.npz. Raises DataError, whose message is one line."""
    X, y, count = read_labelled(path, "n_train")
    if count.shape or not 0 < count <= len(X):
        raise DataError(f"{path}: n_train must be a number of rows of X, got {count}")
    return X[: int(count)], y[: int(count)]


def first_rows(labels: Any, per_digit: int) -> np.ndarray:
    """Return the indices of the first so many rows of each label, label by label.

    Raises ValueError if a label has fewer rows.
    """
    labels = np.asarray(labels)
    rows = [np.flatnonzero(labels == label)[:per_digit] for label in np.unique(labels)]
    fewest = min(map(len, rows))
    if fewest < per_digit:
        raise ValueError(f"needs {per_digit} rows of every label, got {fewest} of one")
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
    components: int,
    centred: bool,
    draws: int,
    seed: int,
) -> list[float]:
    """Return Rhat_k of PCA of the paired features of points (n, d), one number for each draw.

    A draw depends on seed, lengthscale, frequencies and its number alone; the readings share the draws.
    """
    key = jax.random.fold_in(jax.random.key(seed), frequencies)
    key = jax.random.fold_in(key, round(1000 * lengthscale))
    kernel = Gaussian(lengthscale)
    dim = points.shape[1]
    values = []
    for number in range(draws):
        phi = paired_fourier(
            jax.random.fold_in(key, number),
            kernel,
            dim,
            num_frequencies=frequencies,
            dtype=points.dtype,
        )
        Z = phi(points)
        if centred:
            Z = Z - Z.mean(axis=0)[None]
        # Both products have the same eigenvalues, except for zeros.
        A = matmul(Z.T, Z) if Z.shape[1] < Z.shape[0] else matmul(Z, Z.T)
        values.append(float(_tail(A, components)))
    return values


def _tail(A: Any, components: int) -> Any:
    """Return the sum of the eigenvalues after the first ones: the trace less the first, which are the accurate ones."""
    return A.trace() - eigvalsh(A)[:components].sum()


def draw(axes: Any, data: Numbers) -> None:
    """Draw the relative errors of the first reading against t."""
    axis = axes[0]
    chosen = [row for row in data["rows"] if row["reading"] == READINGS[0]]
    sizes = sorted({row["frequencies"] for row in chosen})
    for s, colour in zip(BASELINES, ("C0", "C1", "C2"), strict=True):
        curve = [row for row in chosen if row["lengthscale"] == s]
        axis.errorbar(
            sizes,
            [row["scaled"] / row["frequencies"] for row in curve],
            yerr=[2 * row["sd"] / row["exact"] for row in curve],
            color=colour,
            marker="o",
            capsize=3,
            label=f"sigma = {s:g}, {data['sizes']['draws']} draws ± 2 sd",
        )
        if data["comparison"]:
            errors = [1 - value / BASELINES[s] for value in PRINTED[s]]
            label = f"sigma = {s:g}, printed"
            axis.plot(sizes, errors, "x", color=colour, markersize=9, label=label)
    rate = [25 / t for t in sizes]
    axis.plot(sizes, rate, "k--", linewidth=1, label="25 / t")
    axis.set(xscale="log", xlabel="number of frequencies t")
    axis.set(yscale="log", ylabel="1 - Rhat / R")
    axis.set_xticks(sizes, [str(t) for t in sizes])
    axis.set_xticks([], minor=True)
    axis.grid(alpha=0.3, which="both")
    axis.legend(fontsize=8)
