"""Figure 3 of amini2021: normalized mutual information of kernel spectral clustering against the dimension.

Nested spheres of radii 1, 5 and 10, n = 500 points, noise sigma = 1.5 in every direction (isotropic) or along the mean
alone (radial); Algorithm 1 with the Gaussian kernel exp(-|x - y|^2 / (2 tau^2)), tau^2 = alpha (1 + sigma^2), for alpha
= 1 and 2, and with the pairwise distance |x - y|; Lloyd's algorithm on the points for comparison; the mean over 12
replicates. The paper prints a plot and no numbers. It leaves open:

- how many points a sphere gets: here equally many, up to one;
- how k-means was started: here the best of 20 seedings by plain k-means++ for all methods. With a single
  one the Gaussian kernels fall short of 1 now and then for every d, and Lloyd hardly changes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import jax

from jaxkern import problems
from jaxkern.clustering import spectral_from_gram
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian
from jaxkern.kmeans import kmeans
from jaxkern.metrics import normalized_mutual_info
from proofs_check.papers.figures import (
    Numbers,
    Tables,
    draw_methods,
    legend_below,
    summary,
    timed,
)

TABLES: Tables = {
    "rows": {
        "noise": "{noise}",
        "dim": "{dim}",
        "method": "{method}",
        "mutual information": "{mean:.3f} ± {standard_error:.3f}",
    }
}
PANELS = (1, 2)
SIZE = (11, 4)
METHODS = ("Gaussian, alpha = 1", "Gaussian, alpha = 2", "pairwise distance", "Lloyd")
MODELS = ("isotropic", "radial")
RADII = (1.0, 5.0, 10.0)
NOISE = 1.5
DIMS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)


class Sizes(NamedTuple):
    """The sizes of an experiment."""

    points: int
    replicates: int
    restarts: int


FULL = Sizes(points=500, replicates=12, restarts=20)
SMALL = Sizes(points=60, replicates=2, restarts=2)


def data(*, full: bool, seed: int, dtype: Any) -> dict[str, Any]:
    """Return the mutual informations of every model, dimension and method."""
    dims = DIMS if full else (2, 20)
    sizes = FULL if full else SMALL
    rows = []
    for model in MODELS:
        for dim in timed(dims):
            rows += scores(model, dim, sizes=sizes, seed=seed, dtype=dtype)
    return {"sizes": sizes._asdict(), "rows": rows}


def scores(
    model: str, dim: int, *, sizes: Sizes, seed: int = 0, dtype: Any = "float32"
) -> list[dict[str, Any]]:
    """Return the mutual informations of a model and dimension, for every method.

    A replicate depends on seed, model, dim and its number alone.
    """
    key = jax.random.fold_in(jax.random.key(seed), MODELS.index(model))
    key = jax.random.fold_in(key, dim)
    draws = [
        _replicate(
            jax.random.fold_in(key, number),
            dim=dim,
            radial=model == "radial",
            sizes=sizes,
            dtype=dtype,
        )
        for number in range(sizes.replicates)
    ]
    rows = []
    for method, values in zip(METHODS, zip(*draws, strict=True), strict=True):
        place = {"noise": model, "dim": dim, "method": method}
        rows.append({**place, **summary(values)})
    return rows


def _replicate(
    key: Any, *, dim: int, radial: bool, sizes: Sizes, dtype: Any
) -> list[Any]:
    """Return the mutual information of every method with the truth, for one data set."""
    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    spheres = problems.nested_spheres(
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
        spheres.points,
        noise=NOISE,
        clusters=len(RADII),
        restarts=sizes.restarts,
    )
    plain = kmeans(
        keys[-1],
        spheres.points,
        len(RADII),
        num_restarts=sizes.restarts,
        num_candidates=1,
    )
    return [
        normalized_mutual_info(spheres.labels, clustering)
        for clustering in (*labels, plain.labels)
    ]


def algorithm_1(
    keys: Sequence[Any], points: Any, *, noise: float, clusters: int, restarts: int
) -> list[Any]:
    """Return the labels by every kernel, of noise of this size."""
    scales = [(alpha * (1 + noise**2)) ** 0.5 for alpha in (1, 2)]
    kernels = [*map(Gaussian, scales), Distance()]
    labels = []
    for key, kernel in zip(keys, kernels, strict=True):
        K = gram(kernel, points)
        fit = spectral_from_gram(key, K, clusters, num_restarts=restarts)
        labels.append(fit.labels)
    return labels


def draw(axes: Any, data: Numbers) -> None:
    """Draw the mean and two standard errors against the dimension."""
    axes[0].set_ylabel("normalized mutual information")
    for axis, model in zip(axes, MODELS, strict=True):
        curves = [row for row in data["rows"] if row["noise"] == model]
        draw_methods(axis, curves, "dim", "standard_error", factor=2)
        axis.set(xlabel="dimension d", title=f"{model} noise", ylim=(-0.03, 1.05))
    legend_below(axes)
