"""Figure 2 of kpotufe2020: the Rand index against the number of features d and of landmarks n, on the IoT data.

The paper takes N = 10,000 traces, n = 200 and varies d (left), or d = 10 and varies n (right), with 10 repetitions, and
prints curves without numbers. Rows, scaling, kernel and k-means are those of `kpotufe2020.table2`: the 2,000 traces of
each of five devices that `iot_sample` takes are close to the paper's N.

`python -m proofs_check.papers.kpotufe2020.figure2 --data-dir DIR` reads DIR/nbaiot.npz; `--plot FILE` draws the figure.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks
from proofs_check.papers import figures
from proofs_check.papers.kpotufe2020.rand_indices import (
    FILES,
    METHODS,
    Sizes,
    clusters,
    iot_sample,
    rand_indices,
    read,
    standardise,
)

KERNEL_METHODS = METHODS[1:]
FEATURES = (2, 5, 10, 20, 50, 100, 200)
LANDMARKS = (10, 20, 50, 100, 200, 500, 1000)
FIXED_LANDMARKS, FIXED_FEATURES = 200, 10
REPETITIONS = 10

Indices = Mapping[tuple[int, int], Mapping[str, np.ndarray]]


def figure2(
    X: Any,
    labels: Any,
    sizes: Sequence[tuple[int, int]],
    *,
    repetitions: int = REPETITIONS,
    seed: int = 0,
    progress: figures.Say | None = None,
) -> dict[tuple[int, int], dict[str, np.ndarray]]:
    """Return the Rand indices, {(n, d): {method: (repetitions,) array}}.

    X : (N, dim) points, float32 or float64, as they are to be clustered (see `standardise`).
    labels : (N,) true classes, integers.
    sizes : pairs of a number of landmarks n and a number of features d, 1 <= d <= n <= N.
    repetitions : at least 1. Repetition i depends on the seed and i alone.
    progress : called with a line of text after every pair, if given.

    Raises ValueError where an argument does not fit the data.
    """
    points, truth, k, kernel = clusters(X, labels)
    for n, d in sizes:
        checks.count(
            "num_features",
            d,
            maximum=checks.count("num_landmarks", n, maximum=len(points)),
            limit="n",
        )
    numbers = jnp.arange(checks.count("repetitions", repetitions), dtype=jnp.uint32)
    indices = {}
    for n, d in dict.fromkeys(sizes):
        start = time.monotonic()
        run = partial(rand_indices, sizes=Sizes(k=k, n=n, d=d))
        indices[n, d] = {
            method: np.asarray(
                run(method, jax.random.key(seed), numbers, kernel, points, truth),
                np.float64,
            )
            for method in KERNEL_METHODS
        }
        if progress is not None:
            progress(f"n = {n}, d = {d}: {time.monotonic() - start:.1f} s")
    return indices


def plot(pyplot: Any, indices: Indices, *, n: int, d: int) -> Any:
    """Draw the Rand index against d at this n (left) and against n at this d (right)."""
    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.8), sharey=True)
    panels = (
        (
            "features d",
            f"n = {n}",
            [(pair[1], pair) for pair in indices if pair[0] == n],
        ),
        (
            "landmarks n",
            f"d = {d}",
            [(pair[0], pair) for pair in indices if pair[1] == d],
        ),
    )
    for axis, (label, title, pairs) in zip(axes, panels, strict=True):
        for method, marker in zip(KERNEL_METHODS, "os^", strict=True):
            rows = [indices[pair][method] for _, pair in sorted(pairs)]
            errors = [figures.deviation(row) for row in rows]
            x = [value for value, _ in sorted(pairs)]
            axis.errorbar(
                x,
                [row.mean() for row in rows],
                yerr=errors,
                marker=marker,
                capsize=2,
                label=method,
            )
        axis.set(xscale="log", xlabel=label, title=title)
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("Rand index")
    axes[1].legend(loc="lower right")
    figure.tight_layout()
    return figure


def result(
    indices: Indices, about: Mapping[str, Any], path: Path | None = None
) -> figures.Result:
    """Return mean and standard deviation for every size and method, and every index."""
    title = "kpotufe2020, Figure 2: mean ± standard deviation of the Rand index"
    spread = figures.deviation
    table, numbers = figures.scored(title, ("n", "d"), indices, spread, KERNEL_METHODS)
    draw = partial(plot, indices=indices, n=FIXED_LANDMARKS, d=FIXED_FEATURES)
    return figures.Result([table], about, numbers, [("--plot", path, draw)])


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    sizes = [(FIXED_LANDMARKS, d) for d in options.features] + [
        (n, FIXED_FEATURES) for n in options.landmarks
    ]
    with figures.as_usage():
        X, y = iot_sample(
            *read(options.data_dir / FILES["iot"]), per_device=options.per_device
        )
        X = standardise(X).astype(options.dtype)
        indices = figure2(
            X,
            y,
            sizes,
            repetitions=options.repetitions,
            seed=options.seed,
            progress=say,
        )
    about = {"seed": options.seed, "dtype": options.dtype, "points": len(X)}
    return result(indices, about, options.plot)


FIGURE = figures.Figure(
    "kpotufe2020_figure2",
    "Figure 2",
    "Reproduce Figure 2 of kpotufe2020.",
    _compute,
    (
        figures.data_dir(FILES["iot"]),
        figures.numbers("--features", FEATURES, "d at n = 200"),
        figures.numbers("--landmarks", LANDMARKS, "n at d = 10"),
        figures.number("--per-device", 2000),
        figures.number("--repetitions", REPETITIONS),
        figures.plot(),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
