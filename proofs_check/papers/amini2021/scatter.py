"""Figures 1 and 2 of amini2021: what noise does to clusters on circles and on spheres, drawn and measured.

Figure 1 shows two circles in the plane with isotropic noise of several sizes, to illustrate the model (16). Figure 2
shows the first two coordinates of noisy spheres of radii 1, 5 and 10, sigma = 1.5, in several dimensions, isotropic
noise above and radial noise below. Of Figure 2 the paper says that both kinds of noise look qualitatively the same,
and that in high dimensions it is very hard to tell the clusters from a projection to few coordinates. Both pictures
have no numbers. They leave open:

- the radii and the levels of noise of Figure 1: here 1 and 3, and sigma = 0, 0.3, 0.7 and 1.5;
- the dimensions of Figure 2: here 2, 10, 100 and 1000;
- how many points are drawn: here 150, equally many in every cluster.

So that the words can be checked, a table stands beside each picture. The least misclassification rate that any rule
can have is computed from the exact laws of the distance to the origin, which is all that a rule needs: the laws are
invariant under rotations. It is given for all coordinates and for the first two. The total variation distance says how
much the first two coordinates differ between both kinds of noise. For Figure 1 there is also the mean
misclassification rate of Algorithm 1.

`python -m proofs_check.papers.amini2021.scatter` prints both tables in a minute; `--plot1 FILE` and `--plot2 FILE`
draw the pictures.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import jax
import numpy as np
from scipy import stats

from jaxkern import problems
from jaxkern.metrics import misclassification_rate
from proofs_check.papers import figures
from proofs_check.papers.amini2021 import figure3
from proofs_check.papers.amini2021.figure3 import (
    MODELS,
    NOISE,
    POINTS,
    RADII,
    REPLICATES,
    RESTARTS,
    algorithm_1,
)
from proofs_check.usage import UsageError

CIRCLES, LEVELS = (1.0, 3.0), (0.0, 0.3, 0.7, 1.5)
DIMS = (2, 10, 100, 1000)
METHODS = figure3.METHODS[:3]
COLUMNS = (
    "isotropic, two",
    "radial, two",
    "isotropic, all",
    "radial, all",
    "difference",
)
SHOWN = 150
BINS, NODES = 4000, 200

OfNoise = Mapping[float, Mapping[str, Any]]
OfDimension = Mapping[int, Mapping[str, float]]


def radius_cdf(
    x: Any, *, radius: float, noise: float, dim: int, coordinates: int, radial: bool
) -> np.ndarray:
    """Return P(|P X| <= x) for a point of a noisy sphere, P the projection to the first coordinates, 2 or all.

    The mean is r theta with theta uniform on the sphere; |P theta|^2 has the law Beta(1, (d - 2) / 2) for two
    coordinates. Given it, isotropic noise makes |P X|^2 noncentral chi-square; radial noise multiplies r theta by
    1 + (noise / (r sqrt(d))) xi.

    x : (m,) not negative.
    radius : positive. noise : not negative; the standard deviation of a coordinate is noise / sqrt(d).
    """
    if coordinates not in (2, dim):
        raise ValueError(f"coordinates must be 2 or dim = {dim}, got {coordinates}")
    x = np.asarray(x, np.float64)
    sd = noise / dim**0.5
    whole = coordinates == dim
    if radial or noise == 0:
        if whole:
            return (
                stats.norm.cdf(x, radius, sd) - stats.norm.cdf(-x, radius, sd)
                if noise
                else (x >= radius) * 1.0
            )
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        lengths = np.abs(radius + sd * nodes) if noise else np.array([radius])
        weights = weights / weights.sum() if noise else np.ones(1)
        shares = np.minimum(x[:, None] / np.maximum(lengths, 1e-300), 1) ** 2
        return (
            -np.expm1((dim - 2) / 2 * np.log1p(-np.minimum(shares, 1 - 1e-16)))
            @ weights
        )
    if whole:
        return stats.ncx2.cdf((x / sd) ** 2, dim, (radius / sd) ** 2)
    quantiles = (np.arange(NODES) + 0.5) / NODES
    squares = radius**2 * -np.expm1(np.log1p(-quantiles) / ((dim - 2) / 2))
    return np.mean(stats.ncx2.cdf((x[:, None] / sd) ** 2, 2, squares / sd**2), axis=1)


def shares(
    radii: Sequence[float], *, noise: float, dim: int, coordinates: int, radial: bool
) -> np.ndarray:
    """Return how the law of |P X| of every cluster is spread over a common grid, (R, BINS + 1), each row of sum one."""
    scale = (coordinates / dim) ** 0.5
    edges = np.linspace(
        0,
        scale * (max(radii) + 8 * noise / dim**0.5) * (3 if coordinates < dim else 1)
        + 1e-9,
        BINS,
    )
    below = [
        radius_cdf(
            edges,
            radius=r,
            noise=noise,
            dim=dim,
            coordinates=coordinates,
            radial=radial,
        )
        for r in radii
    ]
    return np.diff(np.array(below), prepend=0, append=1, axis=1)


def least_error(
    radii: Sequence[float], *, noise: float, dim: int, coordinates: int, radial: bool
) -> float:
    """Return the least misclassification rate of any rule that sees P X, for clusters of equal shares.

    Rounding the distance to a grid of 4000 cells can only make it larger, by some 1e-3 at most.
    """
    laws = shares(radii, noise=noise, dim=dim, coordinates=coordinates, radial=radial)
    return float(1 - laws.max(axis=0).sum() / len(radii))


def difference(radii: Sequence[float], *, noise: float, dim: int) -> float:
    """Return the total variation distance between both kinds of noise, of the first two coordinates of a point."""
    isotropic, radial = (
        shares(radii, noise=noise, dim=dim, coordinates=2, radial=flag).mean(axis=0)
        for flag in (False, True)
    )
    return float(np.abs(isotropic - radial).sum() / 2)


def figure1(
    levels: Sequence[float] = LEVELS,
    *,
    points: int = POINTS,
    replicates: int = REPLICATES,
    restarts: int = RESTARTS,
    seed: int = 0,
    dtype: Any = "float32",
) -> dict[float, dict[str, Any]]:
    """Return, for every level of noise, the least error of any rule and the errors of Algorithm 1, (replicates,) each.

    Raises ValueError if a size is too small.
    """
    if min(replicates, restarts) < 1 or points < len(CIRCLES):
        raise ValueError(
            f"needs 1 replicate and restart and 2 points, got {replicates}, {restarts}, {points}"
        )
    rows: dict[float, dict[str, Any]] = {}
    for number, level in enumerate(levels):
        key = jax.random.fold_in(jax.random.key(seed), number)
        errors = [
            _clustered(
                jax.random.fold_in(key, i),
                level,
                points=points,
                restarts=restarts,
                dtype=dtype,
            )
            for i in range(replicates)
        ]
        least = (
            least_error(CIRCLES, noise=level, dim=2, coordinates=2, radial=False)
            if level
            else 0.0
        )
        columns = np.asarray([[float(e) for e in row] for row in errors]).T
        rows[level] = {"least": least, **dict(zip(METHODS, columns, strict=True))}
    return rows


def _clustered(
    key: Any, level: float, *, points: int, restarts: int, dtype: Any
) -> list[Any]:
    """Return the misclassification rate of Algorithm 1 with every kernel, for one data set."""
    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    data = problems.circles(
        key_data, num_points=points, radii=CIRCLES, noise=level, dtype=dtype
    )
    labels = algorithm_1(
        keys, data.points, noise=level, clusters=len(CIRCLES), restarts=restarts
    )
    return [
        misclassification_rate(data.labels, clustering, num_labels=len(CIRCLES))
        for clustering in labels
    ]


def figure2(dims: Sequence[int] = DIMS) -> dict[int, dict[str, float]]:
    """Return, for every dimension, the least errors from two and from all coordinates, and how the noises differ."""
    rows = {}
    for dim in dims:
        row: dict[str, float] = {}
        for model in MODELS:
            least = partial(
                least_error, RADII, noise=NOISE, dim=dim, radial=model == "radial"
            )
            row |= {
                f"{model}, two": least(coordinates=2),
                f"{model}, all": least(coordinates=dim),
            }
        rows[dim] = {**row, "difference": difference(RADII, noise=NOISE, dim=dim)}
    return rows


def _sample(
    number: int,
    *,
    radii: Sequence[float],
    noise: float,
    dim: int,
    radial: bool,
    seed: int,
) -> Any:
    key = jax.random.fold_in(jax.random.key(seed), number)
    data = problems.nested_spheres(
        key, num_points=SHOWN, dim=dim, radii=radii, noise=noise, radial=radial
    )
    return np.asarray(data.points[:, :2]), np.asarray(data.labels)


def _draw(
    axis: Any,
    title: str,
    points: np.ndarray,
    labels: np.ndarray,
    radii: Sequence[float],
) -> None:
    for number, (radius, marker) in enumerate(zip(radii, "os^", strict=False)):
        mine = points[labels == number].round(4)
        axis.plot(
            mine[:, 0], mine[:, 1], marker, markersize=2.5, label=f"radius {radius:g}"
        )
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)
    axis.set_title(title, fontsize=10)


def _with_legend(figure: Any, axis: Any) -> Any:
    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, ncol=len(handles[0]), loc="lower center", markerscale=2)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    return figure


def plot1(pyplot: Any, *, seed: int = 0) -> Any:
    """Draw Figure 1."""
    figure, axes = pyplot.subplots(1, len(LEVELS), figsize=(2.6 * len(LEVELS), 3.1))
    for number, (level, axis) in enumerate(zip(LEVELS, axes, strict=True)):
        points, labels = _sample(
            number, radii=CIRCLES, noise=level, dim=2, radial=False, seed=seed
        )
        _draw(axis, f"σ = {level:g}", points, labels, CIRCLES)
    return _with_legend(figure, axes[0])


def plot2(pyplot: Any, *, seed: int = 0) -> Any:
    """Draw Figure 2."""
    figure, axes = pyplot.subplots(2, len(DIMS), figsize=(2.6 * len(DIMS), 5.6))
    for i, model in enumerate(MODELS):
        for j, dim in enumerate(DIMS):
            number, radial = i * len(DIMS) + j, model == "radial"
            points, labels = _sample(
                number, radii=RADII, noise=NOISE, dim=dim, radial=radial, seed=seed
            )
            _draw(axes[i, j], f"{model}, d = {dim}", points, labels, RADII)
    return _with_legend(figure, axes[0, 0])


def _tables(first: OfNoise, second: OfDimension) -> list[figures.Table | str]:
    def cell(values: np.ndarray) -> str:
        return f"{values.mean():.3f} ± {figures.standard_error(values):.3f}"

    title = "amini2021, Figure 1: misclassification rate, least of all rules and mean ± standard error of Algorithm 1"
    cells = [
        (f"{level:g}", f"{row['least']:.3f}", *(cell(row[m]) for m in METHODS))
        for level, row in first.items()
    ]
    tables: list[figures.Table | str] = [
        figures.Table(title, ("noise", "least", *METHODS), cells, names=0)
    ]
    title = "amini2021, Figure 2: least misclassification rate from two or all coordinates; distance of both noises"
    cells = [
        (str(dim), *(f"{row[name]:.3f}" for name in COLUMNS))
        for dim, row in second.items()
    ]
    return [*tables, figures.Table(title, ("d", *COLUMNS), cells, names=0)]


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    if (
        min(options.replicates, options.restarts) < 1
        or options.points < 2
        or min(options.dims) < 2
    ):
        raise UsageError(
            "needs 1 replicate and restart, 2 points and 2 dimensions at least"
        )
    about = {"seed": options.seed, "dtype": options.dtype}
    sizes = {
        name: getattr(options, name) for name in ("points", "replicates", "restarts")
    }
    first, second = figure1(**about, **sizes), figure2(options.dims)
    rows = [
        {
            "noise": level,
            "least": row["least"],
            **{method: row[method].tolist() for method in METHODS},
        }
        for level, row in first.items()
    ]
    return figures.Result(
        _tables(first, second),
        {**about, "sizes": sizes},
        {
            "figure1": rows,
            "figure2": [{"dim": dim, **row} for dim, row in second.items()],
        },
        [
            ("--plot1", options.plot1, partial(plot1, seed=options.seed)),
            ("--plot2", options.plot2, partial(plot2, seed=options.seed)),
        ],
    )


FIGURE = figures.Figure(
    "amini2021_scatter",
    "Figures 1 and 2",
    "Draw Figures 1 and 2 of amini2021, and measure what they show.",
    _compute,
    (
        figures.numbers("--dims", DIMS, "dimensions"),
        figures.number("--points", POINTS),
        figures.number("--replicates", REPLICATES),
        figures.number("--restarts", RESTARTS),
        figures.plot("--plot1", "Figure 1"),
        figures.plot("--plot2", "Figure 2"),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
