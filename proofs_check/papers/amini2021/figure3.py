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

from __future__ import annotations

import argparse
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

PROG = "amini2021_figure3"
METHODS = ("Gaussian, alpha = 1", "Gaussian, alpha = 2", "pairwise distance", "Lloyd")
MODELS = ("isotropic", "radial")
RADII = (1.0, 5.0, 10.0)
NOISE = 1.5
POINTS, REPLICATES, RESTARTS = 500, 12, 20
DIMS = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000)
COLUMNS = ("noise", "d", *METHODS)
SCHEMA = 1


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
    progress: Any = None,
) -> dict[tuple[str, int], np.ndarray]:
    """Return the mutual informations, {(model, d): (len(METHODS), replicates) array}, each in [0, 1].

    dims : dimensions, each at least 2. A replicate depends on seed, model, d and its number alone.
    models : any of MODELS.
    progress : called with a line of text after every dimension, if given.

    Raises ValueError for unknown models or sizes out of range.
    """
    import jax
    import numpy as np

    unknown = [model for model in models if model not in MODELS]
    if unknown or not models:
        raise ValueError(f"models must be some of {', '.join(MODELS)}, got {tuple(models)!r}")
    found = {}
    for model in models:
        for dim in dims:
            start = time.monotonic()
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), MODELS.index(model)), dim)
            scores = [
                _replicate(jax.random.fold_in(key, number), dim=dim, radial=model == "radial", sizes=sizes, dtype=dtype)
                for number in range(sizes.replicates)
            ]
            found[model, dim] = np.asarray([[float(s) for s in row] for row in scores]).T
            if progress is not None:
                progress(f"{model}, d = {dim}: {time.monotonic() - start:.1f} s")
    return found


def _replicate(key: Any, *, dim: int, radial: bool, sizes: Sizes, dtype: Any) -> list[Any]:
    """Return the mutual information of every method with the truth, for one data set."""
    import jax

    from jaxkern import problems
    from jaxkern.clustering import spectral_from_gram
    from jaxkern.gram import gram
    from jaxkern.kernels import Distance, Gaussian
    from jaxkern.kmeans import kmeans
    from jaxkern.metrics import normalized_mutual_info

    key_data, *keys = jax.random.split(key, 1 + len(METHODS))
    data = problems.nested_spheres(
        key_data, num_points=sizes.points, dim=dim, radii=RADII, noise=NOISE, radial=radial, dtype=dtype
    )
    kernels = [*(Gaussian((alpha * (1 + NOISE**2)) ** 0.5) for alpha in (1, 2)), Distance()]
    labels = [
        spectral_from_gram(key, gram(kernel, data.points), len(RADII), num_restarts=sizes.restarts).labels
        for key, kernel in zip(keys, kernels, strict=False)
    ]
    plain = kmeans(keys[-1], data.points, len(RADII), num_restarts=sizes.restarts, num_candidates=1)
    return [normalized_mutual_info(data.labels, found) for found in (*labels, plain.labels)]


def terminal(found: Mapping[tuple[str, int], np.ndarray], *, file: TextIO | None = None) -> None:
    """Print mean and standard error for every model, dimension and method."""
    cells = [
        (model, str(dim), *(f"{row.mean():.3f} ± {_standard_error(row):.3f}" for row in scores))
        for (model, dim), scores in found.items()
    ]
    title = "amini2021, Figure 3: normalized mutual information, mean ± standard error"
    _command.terminal(title, COLUMNS, cells, names=1, file=file)


def _standard_error(values: np.ndarray) -> float:
    return float(values.std(ddof=1)) / len(values) ** 0.5 if len(values) > 1 else 0.0


def plot(found: Mapping[tuple[str, int], np.ndarray], path: Path) -> None:
    """Draw the figure into a file, whose ending says the format."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.fonttype"] = "none"  # letters as letters: smaller, and readable by machines
    from matplotlib import pyplot

    models = list(dict.fromkeys(model for model, _ in found))
    figure, axes = pyplot.subplots(1, len(models), figsize=(5.5 * len(models), 4), sharey=True, squeeze=False)
    for model, axis in zip(models, axes[0], strict=True):
        dims = [dim for name, dim in found if name == model]
        for number, (method, marker) in enumerate(zip(METHODS, "os^x", strict=True)):
            rows = [found[model, dim][number] for dim in dims]
            errors = [2 * _standard_error(row) for row in rows]
            axis.errorbar(dims, [row.mean() for row in rows], yerr=errors, marker=marker, capsize=2, label=method)
        axis.set(xscale="log", xlabel="dimension d", title=f"{model} noise", ylim=(-0.03, 1.05))
        axis.grid(alpha=0.3)
    axes[0][0].set_ylabel("normalized mutual information")
    figure.legend(*axes[0][0].get_legend_handles_labels(), ncol=len(METHODS), loc="lower center")
    figure.tight_layout(rect=(0, 0.08, 1, 1))
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def as_json(found: Mapping[tuple[str, int], np.ndarray], **about: Any) -> dict[str, Any]:
    """Return every number behind the figure, ready for JSON."""
    return {
        "schema": SCHEMA,
        "paper": "amini2021",
        "where": "Figure 3",
        **about,
        "rows": [
            {"noise": model, "dim": dim, "method": method, "mean": float(row.mean()), "values": row.tolist()}
            for (model, dim), scores in found.items()
            for method, row in zip(METHODS, scores, strict=True)
        ],
    }


def _parser() -> _command.Parser:
    parser = _command.parser(PROG, "Reproduce Figure 3 of amini2021.")
    parser.add_argument(
        "--dims", type=_command.wholes, default=DIMS, metavar="LIST", help="dimensions (default: 2,5,10,...,10000)"
    )
    parser.add_argument("--points", type=_command.whole, default=POINTS, metavar="INT", help="default: 500")
    parser.add_argument("--replicates", type=_command.whole, default=REPLICATES, metavar="INT", help="default: 12")
    parser.add_argument("--restarts", type=_command.whole, default=RESTARTS, metavar="INT", help="default: 20")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw the figure (needs matplotlib), too")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line: 0 when the figure is made, 2 for bad usage. Sets jax_enable_x64 by --dtype."""
    return _command.main(_parser(), _run, argv)


def _run(options: argparse.Namespace) -> None:
    sizes = Sizes(options.points, options.replicates, options.restarts)
    if min(sizes.replicates, sizes.restarts) < 1 or sizes.points < len(RADII) or min(options.dims) < 2:
        raise UsageError("needs 1 replicate and restart, 3 points and 2 dimensions at least")
    import jax

    jax.config.update("jax_enable_x64", options.dtype == "float64")
    start = time.monotonic()
    found = figure3(
        options.dims,
        sizes=sizes,
        seed=options.seed,
        dtype=options.dtype,
        progress=lambda line: print(f"{PROG}: {line}", file=sys.stderr),
    )
    terminal(found)
    seconds = round(time.monotonic() - start, 1)
    print(f"{PROG}: {seconds} s", file=sys.stderr)
    about = {"seed": options.seed, "dtype": options.dtype, "sizes": vars(sizes), "run": {"seconds": seconds}}
    _command.write(options.output, as_json(found, **about))
    _command.draw(options.plot, lambda path: plot(found, path))


if __name__ == "__main__":
    sys.exit(main())
