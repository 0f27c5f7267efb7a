"""Table 2 of kpotufe2020: k-means in the data space and after three kernel embeddings, scored by the Rand index.

The paper states N, k, n = max(200, N / 100) landmarks, d = 10 k features, the kernel exp(-|x - x'|^2 / sigma^2) with
sigma the 25th percentile of the distances, and 30 repetitions. It does not say how the columns were scaled nor how
k-means was started; this is what agrees with the printed numbers:

- every column has mean 0 and variance 1 over all N rows, outliers included;
- sigma is the percentile over all pairs of the N points, once for the data set;
- each repetition draws new landmarks, which the kernel methods share, and a new sketch;
- one start of plain k-means++ (not greedy), at most 100 iterations, until the centres stand still.

The third data set of the paper, IoT, is a sample of 40,000 traces of five devices that is not published. Here it is
`iot_sample`: about 2,000 benign traces of each of the five devices of which the file has most, with n = 400 landmarks
as in the paper.

The folder of --data-dir holds avila.npz, banknote.npz and nbaiot.npz, each with the points as X and the labels as y.
The sets are in the UCI repository: "Avila" (training and test part together), "Banknote authentication" and
"detection_of_IoT_botnet_attacks_N_BaIoT" (benign traffic; y numbers the nine devices in alphabetical order, and a
random part of the rows will do). Without --full there are three repetitions on Bank Notes alone.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from proofs_check.papers.figures import Tables, summary, timed
from proofs_check.papers.kpotufe2020.rand_indices import (
    METHODS,
    Clusters,
    clusters,
    load,
    repeated,
    standardise,
)

TABLES: Tables = {
    "rows": {
        "data": "{title}",
        "method": "{method}",
        "Rand index": "{mean:.4f} ± {sd:.4f}",
        "printed": "{printed_mean:.3f} ± {printed_sd:g}",
        "difference": "{difference:+.4f}",
        "standard error": "{standard_error:.4f}",
    }
}
NAMES = {"avila": "Avila Bible", "iot": "IoT", "banknote": "Bank Notes"}
LANDMARKS = {"iot": 400}  # where N differs from the paper's
PRINTED_REPETITIONS = 30
PRINTED_UNIT = 0.001
PRINTED = {  # mean and standard deviation of the Rand index
    "avila": {
        "k-means": (0.683, 0.026),
        "K-k-means": (0.728, 0.003),
        "KPCA": (0.725, 0.002),
        "K-JL": (0.718, 0.002),
    },
    "iot": {
        "k-means": (0.548, 0.086),
        "K-k-means": (0.745, 0.039),
        "KPCA": (0.759, 0.024),
        "K-JL": (0.749, 0.006),
    },
    "banknote": {
        "k-means": (0.507, 0.0001),
        "K-k-means": (0.529, 0.067),
        "KPCA": (0.526, 0.041),
        "K-JL": (0.527, 0.031),
    },
}


def data(*, full: bool, seed: int, dtype: Any, data_dir: Path) -> dict[str, Any]:
    """Return mean, standard deviation and values for every data set and method, beside the printed ones."""
    names = tuple(NAMES) if full else ("banknote",)
    repetitions = PRINTED_REPETITIONS if full else 3
    rows = []
    for name in timed(names):
        X, labels = load(data_dir, name)
        problem = clusters(standardise(X).astype(dtype), labels)
        indices = table2(
            problem,
            num_landmarks=LANDMARKS.get(name),
            repetitions=repetitions,
            seed=seed,
        )
        for method, values in indices.items():
            rows.append(compare(name, method, values))
    return {"rows": rows}


def table2(
    problem: Clusters,
    *,
    methods: Sequence[str] = METHODS,
    num_landmarks: int | None = None,
    **options: Any,
) -> dict[str, np.ndarray]:
    """Return the Rand indices of every repetition, {method: (repetitions,) array}.

    num_landmarks : n, by default min(N, max(200, N // 100)); d = min(10 k, n).
    options : those of `repeated`.
    """
    size = len(problem.X)
    n = num_landmarks or min(size, max(200, size // 100))
    d = min(10 * problem.k, n)
    return {method: repeated(method, problem, n, d, **options) for method in methods}


def compare(name: str, method: str, values: np.ndarray) -> dict[str, Any]:
    """Return a cell of the table, and how far it is from print.

    `standard_error` is the standard deviation of the difference, were both means of independent repetitions of one
    experiment. The rounding of the printed mean counts as uniform.
    """
    printed_mean, printed_sd = PRINTED[name][method]
    ours = summary(values)
    variance = ours["sd"] ** 2 / len(values) + printed_sd**2 / PRINTED_REPETITIONS
    rounding = PRINTED_UNIT**2 / 12
    return {
        "data": name,
        "title": NAMES[name],
        "method": method,
        "repetitions": len(values),
        **ours,
        "printed_mean": printed_mean,
        "printed_sd": printed_sd,
        "difference": ours["mean"] - printed_mean,
        "standard_error": math.sqrt(variance + rounding),
    }
