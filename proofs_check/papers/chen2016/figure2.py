"""Figure 2 of chen2016: relative errors of the kernel distance of random pairs of points, at distances 1e-4 to 1e4.

Left: for each number t of paired features, the largest relative error over 2,000 fresh pairs. Right: the relative
errors of 2,000 pairs against their distance, for t = 100 and t = 1000. The paper prints plots and no numbers. It leaves
open the dimension and the lengthscale: here the lengthscale is 1, and the dimensions are 2, 10 and 100 (left) and 10
(right). Its largest error is that of D / Dhat itself; that of |D / Dhat - 1| is what its text is about, and is here.

A pair matters through its difference alone, so that by default Dhat comes from 2 sin(<w, x - y> / 2), which loses no
digits. `--from-features` computes it from the features of both points, x in a ball of radius 500, in --dtype.

`python -m proofs_check.papers.chen2016.figure2` computes all of it, in a minute; `--plot FILE` draws it.
"""

import argparse
import math
import sys
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.features import paired_fourier
from jaxkern.kernels import Gaussian
from jaxkern.linalg import matmul
from proofs_check.papers import figures
from proofs_check.usage import UsageError

FREQUENCIES = (50, 100, 200, 400, 800, 1600)
DIMS = (2, 10, 100)
PANEL_DIM = 10
PANEL = (100, 1000)
PAIRS, REPLICATES, RADIUS = 2000, 20, 500.0
NEAREST, FARTHEST = 1e-4, 1e4

Largest = Mapping[tuple[int, int], np.ndarray]
Errors = Mapping[int, np.ndarray]


def distances(pairs: int = PAIRS) -> np.ndarray:
    """Return the distances (pairs,) of the pairs, equally spaced on a log scale."""
    return np.geomspace(NEAREST, FARTHEST, pairs)


def relative_errors(
    key: Any,
    *,
    dim: int,
    frequencies: int,
    pairs: int = PAIRS,
    from_features: bool = False,
    dtype: Any = "float32",
) -> np.ndarray:
    """Return D / Dhat - 1, (pairs,), of pairs in random directions, one draw of paired features for all of them.

    With from_features, Dhat is |phi(x) - phi(y)| as computed in the dtype, and infinite errors are possible.
    """
    key_map, key_direction, key_place, key_radius = jax.random.split(key, 4)
    phi = paired_fourier(
        key_map, Gaussian(1.0), dim, num_frequencies=frequencies, dtype=dtype
    )
    r = jnp.asarray(distances(pairs), dtype)[:, None]
    differences = r * _unit(jax.random.normal(key_direction, (pairs, dim), dtype))
    if from_features:
        radii = RADIUS * jax.random.uniform(key_radius, (pairs, 1), dtype) ** (1 / dim)
        x = radii * _unit(jax.random.normal(key_place, (pairs, dim), dtype))
        images = jnp.linalg.norm(phi(x) - phi(x + differences), axis=1)
    else:
        half_waves = 2 * jnp.sin(matmul(differences, phi.frequencies.T) / 2)
        images = jnp.sqrt(jnp.mean(half_waves**2, axis=1))
    true = np.sqrt(-2 * np.expm1(-(distances(pairs) ** 2) / 2))
    with np.errstate(divide="ignore"):
        return true / np.asarray(images, float) - 1


def _unit(X: Any) -> Any:
    return X / jnp.linalg.norm(X, axis=1, keepdims=True)


def left(
    frequencies: Sequence[int] = FREQUENCIES,
    *,
    dims: Sequence[int] = DIMS,
    replicates: int = REPLICATES,
    seed: int = 0,
    progress: figures.Say | None = None,
    **options: Any,
) -> dict[tuple[int, int], np.ndarray]:
    """Return the largest relative errors, {(dimension, t): (replicates,) array}.

    A replicate depends on seed, dimension, t and its number alone. `progress` is called with a line of text after
    every dimension, if given. `options` are those of `relative_errors`.
    """
    largest = {}
    for dim in dims:
        start = time.monotonic()
        for t in frequencies:
            key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), dim), t)
            keys = [jax.random.fold_in(key, number) for number in range(replicates)]
            errors = [
                relative_errors(own, dim=dim, frequencies=t, **options) for own in keys
            ]
            largest[dim, t] = np.max(np.abs(errors), axis=1)
        if progress is not None:
            progress(f"d = {dim}: {time.monotonic() - start:.1f} s")
    return largest


def right(
    frequencies: Sequence[int] = PANEL,
    *,
    dim: int = PANEL_DIM,
    seed: int = 0,
    **options: Any,
) -> dict[int, np.ndarray]:
    """Return the relative errors against the distance, {t: (pairs,) array}, from one draw of features each."""
    key = jax.random.fold_in(jax.random.key(seed), 2**20)
    return {
        t: relative_errors(
            jax.random.fold_in(key, t), dim=dim, frequencies=t, **options
        )
        for t in frequencies
    }


def standard_deviation(distance: Any, frequencies: int) -> Any:
    """Return (1 + K) / sqrt(8 t): the standard deviation of Dhat / D at one distance, up to higher orders of 1 / t."""
    return (1 + np.exp(-(np.asarray(distance, float) ** 2) / 2)) / math.sqrt(
        8 * frequencies
    )


def slope(largest: Largest, dim: int) -> tuple[float, float]:
    """Return the slope of log(largest error) against log t, by least squares over replicates, and its standard error.

    nan for fewer than three points.
    """
    sizes = np.concatenate(
        [
            np.full(len(values), math.log(t))
            for (d, t), values in largest.items()
            if d == dim
        ]
    )
    logs = np.concatenate(
        [np.log(values) for (d, _), values in largest.items() if d == dim]
    )
    if len(sizes) < 3 or np.ptp(sizes) == 0:
        return math.nan, math.nan
    centred = sizes - sizes.mean()
    gradient = float(centred @ logs / (centred @ centred))
    rest = logs - logs.mean() - gradient * centred
    return gradient, float(
        np.sqrt(rest @ rest / (len(sizes) - 2) / (centred @ centred))
    )


def by_decade(errors: np.ndarray, frequencies: int) -> list[tuple[float, float, float]]:
    """Return (start of a decade, root of the mean square error in it, the same by theory) for every decade."""
    r = distances(len(errors))
    rows = []
    for power in range(-4, 4):
        inside = (r >= 10.0**power) & (r < 10.0 ** (power + 1))
        theory = standard_deviation(r[inside], frequencies)
        rows.append(
            (
                10.0**power,
                float(np.sqrt(np.mean(errors[inside] ** 2))),
                float(np.sqrt(np.mean(theory**2))),
            )
        )
    return rows


def plot(pyplot: Any, largest: Largest, errors: Errors) -> Any:
    """Draw both panels."""
    figure, (first, second) = pyplot.subplots(1, 2, figsize=(11, 4.2))
    for dim in dict.fromkeys(dim for dim, _ in largest):
        sizes = [t for d, t in largest if d == dim]
        means = [largest[dim, t].mean() ** -2 for t in sizes]
        first.plot(sizes, means, marker="o", label=f"d = {dim}")
    first.set(
        xlabel="number of frequencies t",
        ylabel="1 / (largest relative error)²",
        title="2,000 pairs, largest error",
    )
    first.grid(alpha=0.3)
    first.legend()
    for number, (t, values) in enumerate(errors.items()):
        r = distances(len(values))
        # Rasterised: thousands of dots would be most of the file.
        second.plot(
            r,
            abs(values),
            ".",
            markersize=2,
            color=f"C{number}",
            alpha=0.5,
            rasterized=True,
        )
        label = f"t = {t}: two standard deviations"
        second.plot(
            r,
            2 * standard_deviation(r, t),
            color=f"C{number}",
            linewidth=1.5,
            label=label,
        )
    second.set(
        xscale="log",
        yscale="log",
        ylim=(1e-4, 1),
        xlabel="distance / lengthscale",
        title="single pairs",
    )
    second.set_ylabel("relative error")
    second.grid(alpha=0.3)
    second.legend(loc="lower left")
    figure.tight_layout()
    return figure


def result(
    largest: Largest, errors: Errors, about: Mapping[str, Any], path: Path | None = None
) -> figures.Result:
    """Return both panels and every number."""
    cells = []
    for (dim, t), values in largest.items():
        sd = values.std(ddof=1) if len(values) > 1 else math.nan
        cells.append(
            (
                str(dim),
                str(t),
                f"{values.mean():.4f} ± {sd:.4f}",
                f"{values.mean() ** -2 / t:.3f}",
            )
        )
    title = "chen2016, Figure 2 (left): largest relative error of a draw, mean ± standard deviation"
    first = figures.Table(
        title, ("d", "t", "eps_max", "1 / (t eps_max^2)"), cells, names=0
    )
    dims = dict.fromkeys(dim for dim, _ in largest)
    lines = [
        "d = {}: eps_max ~ t^({:.3f} ± {:.3f})".format(dim, *slope(largest, dim))
        for dim in dims
    ]
    decades = [
        (str(t), f"{start:g}", f"{measured:.4f}", f"{theory:.4f}")
        for t, values in errors.items()
        for start, measured, theory in by_decade(values, t)
    ]
    title = "chen2016, Figure 2 (right): root mean square relative error by decades of the distance"
    second = figures.Table(
        title, ("t", "distance from", "rms", "theory"), decades, names=0
    )
    numbers = {
        "left": [
            {"dim": dim, "frequencies": t, "values": values.tolist()}
            for (dim, t), values in largest.items()
        ],
        "right": [
            {
                "frequencies": t,
                "distances": distances(len(values)).tolist(),
                "errors": values.tolist(),
            }
            for t, values in errors.items()
        ],
    }
    draw = partial(plot, largest=largest, errors=errors)
    return figures.Result(
        [first, *lines, second], about, numbers, [("--plot", path, draw)]
    )


def _compute(options: argparse.Namespace, say: figures.Say) -> figures.Result:
    if (
        options.replicates < 1
        or options.pairs < 8
        or min(*options.dims, *options.frequencies) < 1
    ):
        raise UsageError(
            "needs 1 replicate, dimension and frequency, and 8 pairs at least"
        )
    common = {
        name: getattr(options, name)
        for name in ("pairs", "seed", "from_features", "dtype")
    }
    largest = left(
        options.frequencies,
        dims=options.dims,
        replicates=options.replicates,
        progress=say,
        **common,
    )
    return result(
        largest,
        right(**common),
        {**common, "replicates": options.replicates},
        options.plot,
    )


FIGURE = figures.Figure(
    "chen2016_figure2",
    "Figure 2",
    "Reproduce Figure 2 of chen2016.",
    _compute,
    (
        figures.numbers("--frequencies", FREQUENCIES, "t"),
        figures.numbers("--dims", DIMS, "dimensions"),
        figures.number("--pairs", PAIRS),
        figures.number("--replicates", REPLICATES),
        (
            "--from-features",
            {
                "action": "store_true",
                "help": "distances from the features of both points",
            },
        ),
        figures.plot(),
    ),
)
main = FIGURE.main

if __name__ == "__main__":
    sys.exit(main())
