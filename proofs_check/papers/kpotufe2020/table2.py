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

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from proofs_check.papers import figures as _command
from proofs_check.usage import UsageError

if TYPE_CHECKING:  # everything that imports jax waits until the arguments are read, so that --help is instant
    import numpy as np

PROG = "kpotufe2020_table2"
METHODS = ("k-means", "K-k-means", "KPCA", "K-JL")
NAMES = {"avila": "Avila Bible", "iot": "IoT", "banknote": "Bank Notes"}
FILES = {"avila": "avila.npz", "iot": "nbaiot.npz", "banknote": "banknote.npz"}
IOT_DEVICES = (0, 3, 4, 5, 6)
IOT_PER_DEVICE = 2000
LANDMARKS = {"iot": 400}  # where N differs from the paper's
PRINTED_REPETITIONS = 30
PRINTED_UNIT = 0.001
PRINTED = {  # mean and standard deviation of the Rand index
    "avila": {"k-means": (0.683, 0.026), "K-k-means": (0.728, 0.003), "KPCA": (0.725, 0.002), "K-JL": (0.718, 0.002)},
    "iot": {"k-means": (0.548, 0.086), "K-k-means": (0.745, 0.039), "KPCA": (0.759, 0.024), "K-JL": (0.749, 0.006)},
    "banknote": {
        "k-means": (0.507, 0.0001),
        "K-k-means": (0.529, 0.067),
        "KPCA": (0.526, 0.041),
        "K-JL": (0.527, 0.031),
    },
}
COLUMNS = ("data", "method", "Rand index", "printed", "difference", "standard error")
SCHEMA = 1


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
        variance = self.sd**2 / self.repetitions + self.printed_sd**2 / PRINTED_REPETITIONS
        return math.sqrt(variance + PRINTED_UNIT**2 / 12)


def standardise(X: Any) -> np.ndarray:
    """Return X, (N, dim), with mean 0 and variance 1 in every column; a constant column becomes 0."""
    import numpy as np

    X = np.asarray(X, np.float64)
    X = X - X.mean(0)
    deviation = X.std(0)
    return X / np.where(deviation > 0, deviation, 1)


def iot_sample(X: Any, y: Any, *, per_device: int = IOT_PER_DEVICE) -> tuple[np.ndarray, np.ndarray]:
    """Return `per_device` rows (or as many as there are) of each of IOT_DEVICES, (N, dim) and (N,).

    The rows are chosen once for all. Raises ValueError if a device has no row.
    """
    import numpy as np

    rng = np.random.default_rng(0)
    parts = [rng.permutation(np.flatnonzero(np.asarray(y) == device))[:per_device] for device in IOT_DEVICES]
    if not all(len(part) for part in parts):
        raise ValueError(
            f"y must hold every one of the devices {IOT_DEVICES}, got {sorted(set(np.asarray(y).tolist()))}"
        )
    rows = np.concatenate(parts)
    return np.asarray(X)[rows], np.asarray(y)[rows]


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
    import jax
    import jax.numpy as jnp
    import numpy as np

    from jaxkern import checks
    from jaxkern.kernels import Gaussian, quantile_lengthscale
    from proofs_check.papers import clusterings as _clustering

    X = checks.matrix("X", X, min_rows=2)
    classes, numbered = np.unique(np.asarray(checks.labels("labels", labels, size=X.shape[0])), return_inverse=True)
    repetitions = checks.count("repetitions", repetitions)
    unknown = [method for method in methods if method not in METHODS]
    if unknown or not methods:
        raise ValueError(f"methods must be some of {', '.join(METHODS)}, got {methods!r}")
    if num_landmarks is None:
        num_landmarks = min(X.shape[0], max(200, X.shape[0] // 100))
    num_landmarks = checks.count("num_landmarks", num_landmarks, maximum=X.shape[0], limit="the number of points")
    k = len(classes)
    sizes = _clustering.Sizes(k=k, n=num_landmarks, d=min(10 * k, num_landmarks))
    kernel = Gaussian.from_width(quantile_lengthscale(X, 0.25) if width is None else width)
    if batch_size is None:
        batch_size = max(1, _clustering.BATCH_ELEMENTS // (X.shape[0] * sizes.d))
    # Equal batches: the last one is filled up with repetitions that are thrown away.
    batches = -(-repetitions // checks.count("batch_size", batch_size))
    batch = -(-repetitions // batches)
    key, truth = jax.random.key(seed), jnp.asarray(numbered.reshape(-1), jnp.int32)
    numbers = jnp.arange(batches * batch, dtype=jnp.uint32).reshape(batches, batch)
    return {
        method: np.concatenate(
            [
                np.asarray(_clustering.rand_indices(method, key, i, kernel, X, truth, sizes=sizes), np.float64)
                for i in numbers
            ]
        )[:repetitions]
        for method in METHODS
        if method in methods
    }


def summarise(name: str, indices: Mapping[str, np.ndarray]) -> list[Row]:
    """Return the rows of one data set, next to what the paper prints for it."""
    rows = []
    for method, values in indices.items():
        sd = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        rows.append(Row(name, method, float(values.mean()), sd, len(values), *PRINTED[name][method]))
    return rows


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Return the points X, (N, dim) float64, and the labels y, (N,) integers, of an .npz file.

    Raises `proofs_check.engine.reading.DataError`, whose message is one line.
    """
    from proofs_check.engine.reading import DataError, load, npz_names, read_npz, reading

    X = load(path)
    with reading(path, {".npz": ".npz (with X and y)"}), path.open("rb") as file:
        if "y" not in npz_names(path, file):
            raise DataError(f"{path}: holds no labels named y; save with np.savez(file, X=..., y=...)")
        y = read_npz(path, file, "y")
    if y.shape != X.shape[:1] or y.dtype.kind not in "iu":
        raise DataError(f"{path}: y must be {len(X)} integers, one label for each row of X, got {y.dtype} {y.shape}")
    return X, y


def terminal(rows: Sequence[Row], *, file: TextIO | None = None) -> None:
    """Print the table."""
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
    title = "kpotufe2020, Table 2: mean ± standard deviation of the Rand index"
    _command.terminal(title, COLUMNS, cells, names=2, file=file)


def as_json(rows: Sequence[Row], indices: Mapping[str, Mapping[str, np.ndarray]], **about: Any) -> dict[str, Any]:
    """Return the table and every Rand index behind it, ready for JSON."""
    from dataclasses import asdict

    return {
        "schema": SCHEMA,
        "paper": "kpotufe2020",
        "where": "Table 2",
        **about,
        "rows": [{**asdict(row), "difference": row.difference, "standard_error": row.standard_error} for row in rows],
        "rand_indices": {
            name: {method: values.tolist() for method, values in found.items()} for name, found in indices.items()
        },
    }


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Reproduce Table 2 of kpotufe2020.")
    parser.add_argument(
        "--data-dir",
        type=Path,
        default=Path("data"),
        metavar="DIR",
        help=f"holds {', '.join(FILES.values())} (X and y)",
    )
    parser.add_argument("--datasets", type=_datasets, default=tuple(NAMES), metavar="LIST", help=",".join(NAMES))
    parser.add_argument(
        "--repetitions", type=_command.whole, default=PRINTED_REPETITIONS, metavar="INT", help="default: 30"
    )
    return parser


def _datasets(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(text.split(",")))
    unknown = [name for name in names if name not in NAMES]
    if unknown:
        raise argparse.ArgumentTypeError(f"unknown data set {unknown[0]!r}; there are {', '.join(NAMES)}")
    return names


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the table is made, 2 for bad usage or input. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    from proofs_check.engine.reading import DataError

    if options.repetitions < 1:
        raise UsageError("--repetitions must be at least 1")
    try:
        sets = {name: read(options.data_dir / FILES[name]) for name in options.datasets}
        if "iot" in sets:
            sets["iot"] = iot_sample(*sets["iot"])
    except (DataError, ValueError) as error:
        raise UsageError(str(error)) from None
    import jax

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    rows: list[Row] = []
    indices, seconds = {}, {}
    for name, (X, y) in sets.items():
        start = time.monotonic()
        indices[name] = table2(
            standardise(X).astype(options.dtype),
            y,
            repetitions=options.repetitions,
            seed=options.seed,
            num_landmarks=LANDMARKS.get(name),
        )
        seconds[name] = round(time.monotonic() - start, 1)
        print(f"{PROG}: {NAMES[name]}, {options.repetitions} repetitions in {seconds[name]} s", file=sys.stderr)
        rows += summarise(name, indices[name])
    terminal(rows)
    about = {"seed": options.seed, "dtype": options.dtype, "run": {"seconds": seconds}}
    _command.write(options.output, as_json(rows, indices, **about))


if __name__ == "__main__":
    sys.exit(main())
