"""Figure 3 of amini2021: normalized mutual information of kernel spectral clustering against the dimension.

Nested spheres of radii 1, 5 and 10, n = 500 points, noise sigma = 1.5 in every direction (isotropic) or along the mean
alone (radial); Algorithm 1 with the Gaussian kernel exp(-|x - y|^2 / (2 tau^2)), tau^2 = alpha (1 + sigma^2), for alpha
= 1 and 2, and with the pairwise distance |x - y|; Lloyd's algorithm on the points for comparison; the mean over 12
replicates. The paper prints a plot and no numbers. It leaves open:

- how many points a sphere gets: here equally many, up to one;
- how k-means was started: here the best of 20 seedings by plain k-means++ for all methods (`--restarts`). With a single
  one the Gaussian kernels fall short of 1 now and then for every d, and Lloyd hardly changes.

`python -m proofs_check.papers.amini2021.figure3` computes all of it, in minutes; `--plot FILE` draws it.
"""

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import numpy as np

from jaxkern import problems
from jaxkern.clustering import spectral_from_gram
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian
from jaxkern.kmeans import kmeans
from jaxkern.metrics import normalized_mutual_info
from proofs_check.papers import figures
from proofs_check.usage import UsageError

METHODS = ("Gaussian, alpha = 1", "Gaussian, alpha = 2", "pairwise distance", "Lloyd")
MODELS = ("isotropic", "radial")
RADII = (1.0, 5.0, 10.0)
NOISE = 1.5
POINTS, REPLICATES, RESTARTS = 500, 12, 20
DIMS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)

Scores = Mapping[tuple[str, int], np.ndarray]


@dataclass(frozen=True)
class Sizes:
    """What an experiment is made of."""

    points: int = POINTS
    replicates: int = REPLICATES
    restarts: int = RESTARTS


def figure3(
    dims: Sequence[int] = DIMS,
    *,
    models: Sequence[str] = MODELS,
    sizes: Sizes = Sizes(),
    seed: int = 0,
    dtype: Any = "float32",
    progress: figures.Say | None = None,
) -> dict[tuple[str, int], np.ndarray]:
    """Return the mutual informations, {(model, d): (len(METHODS), replicates) array}, each in [0, 1].

    dims : dimensions, each at least 2. A replicate depends on seed, model, d and its number alone.
    models : any of MODELS.
    progress : called with a line of text after every dimension, if given.

    Raises ValueError for unknown models or sizes out of range.
    """
    if not models or not set(models) <= set(MODELS):
        raise ValueError(
            f"models must be some of {', '.join(MODELS)}, got {tuple(models)!r}"
        )
    scores = {}
    for model in models:
        for dim in dims:
            start = time.monotonic()
            key = jax.random.fold_in(
                jax.random.fold_in(jax.random.key(seed), MODELS.index(model)), dim
            )
            replicate = partial(
                _replicate, dim=dim, radial=model == "radial", sizes=sizes, dtype=dtype
            )
            rows = [
                replicate(jax.random.fold_in(key, number))
                for number in range(sizes.replicates)
            ]
            scores[model, dim] = np.asarray([[float(s) for s in row] for row in rows]).T
            if progress is not None:
                progress(f"{model}, d = {dim}: {time.monotonic() - start:.1f} s")
    return scores


def _replicate(
    key: Any, *, dim: int, radial: bool, sizes: Sizes, dtype: Any
) -> list[Any]:
    """Return the mutual information of every method with the truth, for one data set."""
    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    data = problems.nested_spheres(
        key_data,
        num_points=sizes.points,
        dim=dim,
        radii=RADII,
        noise=NOISE,
        radial=radial,
        dtype=dtype,
    )
    labels = algorithm_1(
        keys[:-1],
        data.points,
        noise=NOISE,
        clusters=len(RADII),
        restarts=sizes.restarts,
    )
    plain = kmeans(
        keys[-1], data.points, len(RADII), num_restarts=sizes.restarts, num_candidates=1
    )
    return [
        normalized_mutual_info(data.labels, clustering)
        for clustering in (*labels, plain.labels)
    ]


def algorithm_1(
    keys: Sequence[Any], points: Any, *, noise: float, clusters: int, restarts: int
) -> list[Any]:
    """Return the labels by every kernel, of noise of this size."""
    kernels = [
        *(Gaussian((alpha * (1 + noise**2)) ** 0.5) for alpha in (1, 2)),
        Distance(),
    ]
    pairs = zip(keys, kernels, strict=True)
    return [
        spectral_from_gram(
            k, gram(kernel, points), clusters, num_restarts=restarts
        ).labels
        for k, kernel in pairs
    ]


def plot(pyplot: Any, scores: Scores) -> Any:
    """Draw the mean and two standard errors against the dimension."""
    models = list(dict.fromkeys(model for model, _ in scores))
    figure, axes = pyplot.subplots(
        1, len(models), figsize=(5.5 * len(models), 4), sharey=True, squeeze=False
    )
    for model, axis in zip(models, axes[0], strict=True):
        dims = [dim for name, dim in scores if name == model]
        for number, (method, marker) in enumerate(zip(METHODS, "os^x", strict=True)):
            rows = [scores[model, dim][number] for dim in dims]
            errors = [2 * figures.standard_error(row) for row in rows]
            axis.errorbar(
                dims,
                [row.mean() for row in rows],
                yerr=errors,
                marker=marker,
                capsize=2,
                label=method,
            )
        axis.set(
            xscale="log",
            xlabel="dimension d",
            title=f"{model} noise",
            ylim=(-0.03, 1.05),
        )
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("normalized mutual information")
    figure.legend(
        *axes[0][0].get_legend_handles_labels(), ncol=len(METHODS), loc="lower center"
    )
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    return figure


def result(
    scores: Scores, about: Mapping[str, Any], path: Path | None = None
) -> figures.Result:
    """Return mean and standard error for every model, dimension and method, and every number."""
    title = "amini2021, Figure 3: normalized mutual information, mean ± standard error"
    named = {
        place: dict(zip(METHODS, array, strict=True)) for place, array in scores.items()
    }
    spread = figures.standard_error
    table, numbers = figures.scored(title, ("noise", "dim"), named, spread, METHODS)
    return figures.Result(
        [table], about, numbers, [("--plot", path, partial(plot, scores=scores))]
    )


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    sizes = Sizes(options.points, options.replicates, options.restarts)
    if (
        min(sizes.replicates, sizes.restarts) < 1
        or sizes.points < len(RADII)
        or min(options.dims) < 2
    ):
        raise UsageError(
            "needs 1 replicate and restart, 3 points and 2 dimensions at least"
        )
    about = {"seed": options.seed, "dtype": options.dtype}
    scores = figure3(options.dims, sizes=sizes, progress=say, **about)
    return result(scores, {**about, "sizes": vars(sizes)}, options.plot)


FIGURE = figures.Figure(
    "amini2021_figure3",
    "Figure 3",
    "Reproduce Figure 3 of amini2021.",
    _compute,
    (
        figures.numbers("--dims", DIMS, "dimensions"),
        figures.number("--points", POINTS),
        figures.number("--replicates", REPLICATES),
        figures.number("--restarts", RESTARTS),
        figures.plot(),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
