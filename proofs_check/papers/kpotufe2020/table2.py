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

`python -m proofs_check.papers.kpotufe2020.table2 --data-dir DIR` reads DIR/avila.npz, DIR/banknote.npz and
DIR/nbaiot.npz, each with the points as X and the labels as y. The sets are in the UCI repository: "Avila" (training and
test part together), "Banknote authentication" and "detection_of_IoT_botnet_attacks_N_BaIoT" (benign traffic; y numbers
the nine devices in alphabetical order, and a random part of the rows will do).
"""

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from proofs_check.papers import figures
from proofs_check.papers.kpotufe2020.rand_indices import (
    BATCH_ELEMENTS,
    FILES,
    METHODS,
    Sizes,
    clusters,
    iot_sample,
    rand_indices,
    read,
    standardise,
)
from proofs_check.usage import UsageError

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
COLUMNS = ("data", "method", "Rand index", "printed", "difference", "standard error")

Indices = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Row:
    """One cell of the table, measured and as printed."""

    data: str
    method: str
    mean: float
    sd: float
    repetitions: int
    printed_mean: float
    printed_sd: float

    @property
    def difference(self) -> float:
        """Measured less printed mean."""
        return self.mean - self.printed_mean

    @property
    def standard_error(self) -> float:
        """Standard deviation of the difference, were both means of independent repetitions of one experiment.

        The rounding of the printed mean counts as uniform.
        """
        variance = (
            self.sd**2 / self.repetitions + self.printed_sd**2 / PRINTED_REPETITIONS
        )
        return math.sqrt(variance + PRINTED_UNIT**2 / 12)


def table2(
    X: Any,
    labels: Any,
    *,
    repetitions: int = PRINTED_REPETITIONS,
    seed: int = 0,
    methods: Sequence[str] = METHODS,
    num_landmarks: int | None = None,
    width: Any = None,
    batch_size: int | None = None,
) -> dict[str, np.ndarray]:
    """Return the Rand indices of every repetition, {method: (repetitions,) array}.

    X : (N, dim) points, float32 or float64, as they are to be clustered (see `standardise`).
    labels : (N,) true classes, integers; their number is k, and d = min(10 k, num_landmarks).
    repetitions : at least 1. Repetition i depends on the seed and i alone.
    seed : a whole number.
    methods : any of METHODS.
    num_landmarks : n, by default min(N, max(200, N // 100)).
    width : sigma, by default the 25th percentile of all distances.
    batch_size : repetitions embedded together; by default what 64 million numbers hold. It does not change results
        beyond rounding.

    Raises ValueError for unknown methods, or where an argument does not fit the data.
    """
    X, truth, k, kernel = clusters(X, labels, width)
    repetitions = checks.count("repetitions", repetitions)
    if not methods or not set(methods) <= set(METHODS):
        raise ValueError(
            f"methods must be some of {', '.join(METHODS)}, got {methods!r}"
        )
    if num_landmarks is None:
        num_landmarks = min(X.shape[0], max(200, X.shape[0] // 100))
    num_landmarks = checks.count(
        "num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points"
    )
    sizes = Sizes(k=k, n=num_landmarks, d=min(10 * k, num_landmarks))
    if batch_size is None:
        batch_size = max(1, BATCH_ELEMENTS // (X.shape[0] * sizes.d))
    # Equal batches: the last one is filled up with repetitions that are thrown away.
    batches = -(-repetitions // checks.count("batch_size", batch_size))
    batch = -(-repetitions // batches)
    numbers = jnp.arange(batches * batch, dtype=jnp.uint32).reshape(batches, batch)
    indices = {}
    for method in METHODS:
        if method in methods:
            run = partial(
                rand_indices,
                method,
                jax.random.key(seed),
                kernel=kernel,
                X=X,
                truth=truth,
                sizes=sizes,
            )
            indices[method] = np.concatenate(
                [np.asarray(run(i), np.float64) for i in numbers]
            )[:repetitions]
    return indices


def summarise(name: str, indices: Indices) -> list[Row]:
    """Return the rows of one data set, next to what the paper prints for it."""
    return [
        Row(
            name,
            method,
            float(v.mean()),
            figures.deviation(v),
            len(v),
            *PRINTED[name][method],
        )
        for method, v in indices.items()
    ]


def result(indices: Mapping[str, Indices], about: Mapping[str, Any]) -> figures.Result:
    """Return the table and every Rand index behind it."""
    rows = [row for name, values in indices.items() for row in summarise(name, values)]
    cells = [
        (
            NAMES[row.data],
            row.method,
            f"{row.mean:.4f} ± {row.sd:.4f}",
            f"{row.printed_mean:.3f} ± {row.printed_sd:g}",
            f"{row.difference:+.4f}",
            f"{row.standard_error:.4f}",
        )
        for row in rows
    ]
    numbers = {
        "rows": [
            {
                **asdict(row),
                "difference": row.difference,
                "standard_error": row.standard_error,
            }
            for row in rows
        ],
        "rand_indices": {
            name: {m: v.tolist() for m, v in values.items()}
            for name, values in indices.items()
        },
    }
    title = "kpotufe2020, Table 2: mean ± standard deviation of the Rand index"
    return figures.Result(
        [figures.Table(title, COLUMNS, cells, names=2)], about, numbers
    )


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    if options.repetitions < 1:
        raise UsageError("--repetitions must be at least 1")
    with figures.as_usage():
        sets = {name: read(options.data_dir / FILES[name]) for name in options.datasets}
        if "iot" in sets:
            sets["iot"] = iot_sample(*sets["iot"])
    indices, seconds = {}, {}
    for name, (X, y) in sets.items():
        start = time.monotonic()
        X = standardise(X).astype(options.dtype)
        sizes = {
            "repetitions": options.repetitions,
            "num_landmarks": LANDMARKS.get(name),
        }
        indices[name] = table2(X, y, seed=options.seed, **sizes)
        seconds[name] = round(time.monotonic() - start, 1)
        say(f"{NAMES[name]}, {options.repetitions} repetitions in {seconds[name]} s")
    return result(
        indices,
        {"seed": options.seed, "dtype": options.dtype, "run": {"seconds": seconds}},
    )


TABLE = figures.Figure(
    "kpotufe2020_table2",
    "Table 2",
    "Reproduce Table 2 of kpotufe2020.",
    _compute,
    (
        figures.data_dir(*FILES.values()),
        figures.some("--datasets", tuple(NAMES), "data set"),
        figures.number("--repetitions", PRINTED_REPETITIONS),
    ),
    timed=False,
)
main = TABLE.main

if __name__ == "__main__":
    sys.exit(main())
