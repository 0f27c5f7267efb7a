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

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check.papers import figures as _command
from proofs_check.usage import UsageError

if TYPE_CHECKING:  # everything that imports jax or SciPy waits until the arguments are read, so that --help is instant
    import numpy as np

PROG = "amini2021_scatter"
CIRCLES, LEVELS = (1.0, 3.0), (0.0, 0.3, 0.7, 1.5)
RADII, NOISE, DIMS = (1.0, 5.0, 10.0), 1.5, (2, 10, 100, 1000)
MODELS = ("isotropic", "radial")
METHODS = ("Gaussian, alpha = 1", "Gaussian, alpha = 2", "pairwise distance")
SHOWN = 150
POINTS, REPLICATES, RESTARTS = 500, 12, 20
BINS, NODES = 4000, 200
SCHEMA = 1


# ------------------------------------------------------------------------------------------------- laws of the distance


def radius_cdf(x: Any, *, radius: float, noise: float, dim: int, kept: int, radial: bool) -> np.ndarray:
    """Return P(|P X| <= x) for a point of a noisy sphere, P the projection to the first `kept` coordinates, 2 or all.

    The mean is r theta with theta uniform on the sphere; |P theta|^2 has the law Beta(1, (d - 2) / 2) for two
    coordinates. Given it, isotropic noise makes |P X|^2 noncentral chi-square; radial noise multiplies r theta by
    1 + (noise / (r sqrt(d))) xi.

    x : (m,) not negative.
    radius : positive. noise : not negative; the standard deviation of a coordinate is noise / sqrt(d).
    """
    import numpy as np
    from scipy import stats

    if kept not in (2, dim):
        raise ValueError(f"kept must be 2 or dim = {dim}, got {kept}")
    x = np.asarray(x, np.float64)
    sd = noise / dim**0.5
    whole = kept == dim
    if radial or noise == 0:
        if whole:
            return stats.norm.cdf(x, radius, sd) - stats.norm.cdf(-x, radius, sd) if noise else (x >= radius) * 1.0
        nodes, weights = np.polynomial.hermite_e.hermegauss(NODES)
        lengths = np.abs(radius + sd * nodes) if noise else np.array([radius])
        weights = weights / weights.sum() if noise else np.ones(1)
        shares = np.minimum(x[:, None] / np.maximum(lengths, 1e-300), 1) ** 2
        return -np.expm1((dim - 2) / 2 * np.log1p(-np.minimum(shares, 1 - 1e-16))) @ weights
    if whole:
        return stats.ncx2.cdf((x / sd) ** 2, dim, (radius / sd) ** 2)
    quantiles = (np.arange(NODES) + 0.5) / NODES
    squares = radius**2 * -np.expm1(np.log1p(-quantiles) / ((dim - 2) / 2))
    return np.mean(stats.ncx2.cdf((x[:, None] / sd) ** 2, 2, squares / sd**2), axis=1)


def shares(radii: Sequence[float], *, noise: float, dim: int, kept: int, radial: bool) -> np.ndarray:
    """Return how the law of |P X| of every cluster is spread over a common grid, (R, BINS + 1), each row of sum one."""
    import numpy as np

    scale = (kept / dim) ** 0.5
    edges = np.linspace(0, scale * (max(radii) + 8 * noise / dim**0.5) * (3 if kept < dim else 1) + 1e-9, BINS)
    below = [radius_cdf(edges, radius=r, noise=noise, dim=dim, kept=kept, radial=radial) for r in radii]
    return np.diff(np.array(below), prepend=0, append=1, axis=1)


def least_error(radii: Sequence[float], *, noise: float, dim: int, kept: int, radial: bool) -> float:
    """Return the least misclassification rate of any rule that sees P X, for clusters of equal shares.

    Rounding the distance to a grid of 4000 cells can only make it larger, by some 1e-3 at most.
    """
    found = shares(radii, noise=noise, dim=dim, kept=kept, radial=radial)
    return float(1 - found.max(axis=0).sum() / len(radii))


def difference(radii: Sequence[float], *, noise: float, dim: int) -> float:
    """Return the total variation distance between both kinds of noise, of the first two coordinates of a point."""
    import numpy as np

    isotropic, radial = (
        shares(radii, noise=noise, dim=dim, kept=2, radial=flag).mean(axis=0) for flag in (False, True)
    )
    return float(np.abs(isotropic - radial).sum() / 2)


# -------------------------------------------------------------------------------------------------------------- tables


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
    import jax
    import numpy as np

    if min(replicates, restarts) < 1 or points < len(CIRCLES):
        raise ValueError(f"needs 1 replicate and restart and 2 points, got {replicates}, {restarts}, {points}")
    found: dict[float, dict[str, Any]] = {}
    for number, level in enumerate(levels):
        key = jax.random.fold_in(jax.random.key(seed), number)
        errors = [
            _clustered(jax.random.fold_in(key, i), level, points=points, restarts=restarts, dtype=dtype)
            for i in range(replicates)
        ]
        best = least_error(CIRCLES, noise=level, dim=2, kept=2, radial=False) if level else 0.0
        columns = np.asarray([[float(e) for e in row] for row in errors]).T
        found[level] = {"least": best, **dict(zip(METHODS, columns, strict=True))}
    return found


def _clustered(key: Any, level: float, *, points: int, restarts: int, dtype: Any) -> list[Any]:
    """Return the misclassification rate of Algorithm 1 with every kernel, for one data set."""
    import jax

    from jaxkern import problems
    from jaxkern.clustering import spectral_from_gram
    from jaxkern.gram import gram
    from jaxkern.kernels import Distance, Gaussian
    from jaxkern.metrics import misclassification_rate

    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    data = problems.circles(key_data, num_points=points, radii=CIRCLES, noise=level, dtype=dtype)
    kernels = [*(Gaussian((alpha * (1 + level**2)) ** 0.5) for alpha in (1, 2)), Distance()]
    labels = [
        spectral_from_gram(k, gram(kernel, data.points), len(CIRCLES), num_restarts=restarts).labels
        for k, kernel in zip(keys, kernels, strict=True)
    ]
    return [misclassification_rate(data.labels, found, num_labels=len(CIRCLES)) for found in labels]


def figure2(dims: Sequence[int] = DIMS) -> dict[int, dict[str, float]]:
    """Return, for every dimension, the least errors from two and from all coordinates, and how the noises differ."""
    found = {}
    for dim in dims:
        row = {}
        for model in MODELS:
            words: dict[str, Any] = {"noise": NOISE, "dim": dim, "radial": model == "radial"}
            row[f"{model}, two"] = least_error(RADII, kept=2, **words)
            row[f"{model}, all"] = least_error(RADII, kept=dim, **words)
        row["difference"] = difference(RADII, noise=NOISE, dim=dim)
        found[dim] = row
    return found


# ------------------------------------------------------------------------------------------------------------- pictures


def _sample(number: int, *, radii: Sequence[float], noise: float, dim: int, radial: bool, seed: int) -> Any:
    import jax
    import numpy as np

    from jaxkern import problems

    key = jax.random.fold_in(jax.random.key(seed), number)
    data = problems.nested_spheres(key, num_points=SHOWN, dim=dim, radii=radii, noise=noise, radial=radial)
    return np.asarray(data.points[:, :2]), np.asarray(data.labels)


def _draw(axis: Any, points: np.ndarray, labels: np.ndarray, radii: Sequence[float]) -> None:
    for number, (radius, marker) in enumerate(zip(radii, "os^", strict=False)):
        mine = points[labels == number].round(4)
        axis.plot(mine[:, 0], mine[:, 1], marker, markersize=2.5, label=f"radius {radius:g}")
    axis.set_aspect("equal", adjustable="datalim")
    axis.tick_params(labelsize=7)


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": PROG}
    )  # letters as letters; the same file always
    from matplotlib import pyplot

    return pyplot


def plot1(path: Path, *, seed: int = 0) -> None:
    """Draw Figure 1 into a file, whose ending says the format."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(1, len(LEVELS), figsize=(2.6 * len(LEVELS), 3.1))
    for number, (level, axis) in enumerate(zip(LEVELS, axes, strict=True)):
        points, labels = _sample(number, radii=CIRCLES, noise=level, dim=2, radial=False, seed=seed)
        _draw(axis, points, labels, CIRCLES)
        axis.set_title(f"σ = {level:g}", fontsize=10)
    _save(figure, axes[0], path)


def plot2(path: Path, *, seed: int = 0) -> None:
    """Draw Figure 2 into a file, whose ending says the format."""
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(2, len(DIMS), figsize=(2.6 * len(DIMS), 5.6))
    for i, model in enumerate(MODELS):
        for j, dim in enumerate(DIMS):
            number = i * len(DIMS) + j
            words: dict[str, Any] = {"radii": RADII, "noise": NOISE, "dim": dim, "radial": model == "radial"}
            points, labels = _sample(number, **words, seed=seed)
            _draw(axes[i, j], points, labels, RADII)
            axes[i, j].set_title(f"{model}, d = {dim}", fontsize=10)
    _save(figure, axes[0, 0], path)


def _save(figure: Any, axis: Any, path: Path) -> None:
    from matplotlib import pyplot

    handles = axis.get_legend_handles_labels()
    figure.legend(*handles, ncol=len(handles[0]), loc="lower center", markerscale=2)
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=150, metadata=metadata)
    pyplot.close(figure)


# --------------------------------------------------------------------------------------------------------- command line


def terminal(first: Mapping[float, Mapping[str, Any]], second: Mapping[int, Mapping[str, float]]) -> None:
    """Print both tables."""
    cells = [
        (f"{level:g}", f"{row['least']:.3f}", *(f"{row[m].mean():.3f} ± {_error(row[m]):.3f}" for m in METHODS))
        for level, row in first.items()
    ]
    title = "amini2021, Figure 1: misclassification rate, least of all rules and mean ± standard error of Algorithm 1"
    _command.terminal(title, ("noise", "least", *METHODS), cells, names=0)
    columns = ("isotropic, two", "radial, two", "isotropic, all", "radial, all", "difference")
    cells = [(str(dim), *(f"{row[name]:.3f}" for name in columns)) for dim, row in second.items()]
    title = "amini2021, Figure 2: least misclassification rate from two or all coordinates; distance of both noises"
    _command.terminal(title, ("d", *columns), cells, names=0)


def _error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def as_json(
    first: Mapping[float, Mapping[str, Any]], second: Mapping[int, Mapping[str, float]], **about: Any
) -> dict[str, Any]:
    """Return every number beside the figures, ready for JSON."""
    rows = [
        {"noise": level, "least": row["least"], **{method: row[method].tolist() for method in METHODS}}
        for level, row in first.items()
    ]
    return {
        "schema": SCHEMA,
        "paper": "amini2021",
        "where": "Figures 1 and 2",
        **about,
        "figure1": rows,
        "figure2": [{"dim": dim, **row} for dim, row in second.items()],
    }


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Draw Figures 1 and 2 of amini2021, and measure what they show.")
    parser.add_argument(
        "--dims", type=_command.wholes, default=DIMS, metavar="LIST", help="dimensions (default: 2,10,100,1000)"
    )
    parser.add_argument("--points", type=_command.whole, default=POINTS, metavar="INT", help="default: 500")
    parser.add_argument("--replicates", type=_command.whole, default=REPLICATES, metavar="INT", help="default: 12")
    parser.add_argument("--restarts", type=_command.whole, default=RESTARTS, metavar="INT", help="default: 20")
    parser.add_argument("--plot1", type=Path, metavar="FILE", help="draw Figure 1 (needs matplotlib), too")
    parser.add_argument("--plot2", type=Path, metavar="FILE", help="draw Figure 2 (needs matplotlib), too")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the figures are made, 2 for bad usage. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    if min(options.replicates, options.restarts) < 1 or options.points < 2 or min(options.dims) < 2:
        raise UsageError("needs 1 replicate and restart, 2 points and 2 dimensions at least")
    import jax

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    start = time.monotonic()
    sizes = {name: getattr(options, name) for name in ("points", "replicates", "restarts")}
    first = figure1(seed=options.seed, dtype=options.dtype, **sizes)
    second = figure2(options.dims)
    terminal(first, second)
    seconds = round(time.monotonic() - start, 1)
    print(f"{PROG}: {seconds} s", file=sys.stderr)
    about = {"seed": options.seed, "dtype": options.dtype, "sizes": sizes, "run": {"seconds": seconds}}
    _command.write(options.output, as_json(first, second, **about))
    _command.draw(options.plot1, lambda path: plot1(path, seed=options.seed), "--plot1")
    _command.draw(options.plot2, lambda path: plot2(path, seed=options.seed), "--plot2")


if __name__ == "__main__":
    sys.exit(main())
