"""Spectral clustering of one thousand small data sets at once: how much noise can it take?

Twenty levels of noise, fifty data sets each, of 40 to 60 points: a cluster inside a ring. They go through one compiled
program for each of three sizes, and each has a lengthscale of its own, from the distances between its points.
"""

import argparse
import tempfile
import time
from pathlib import Path

import jax
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxkern import kernels, ragged
from jaxkern.clustering import kernel_spectral
from jaxkern.metrics import misclassification_rate

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--levels", type=int, default=20)
parser.add_argument("--repeats", type=int, default=50)
parser.add_argument(
    "--output",
    type=Path,
    default=None,
    metavar="DIR",
    help="for the figure; default: a new folder",
)
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())


# %% The data sets: points (n, 2) and their true clusters (n,), n from 40 to 60.
def dataset(rng, noise):
    """Return one data set."""
    size = rng.integers(40, 61)
    truth = np.arange(size, dtype=np.int32) % 2
    directions = rng.standard_normal((size, 2))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    X = np.where(truth == 0, 0.5, 3.0)[
        :, None
    ] * directions + noise * rng.standard_normal((size, 2))
    return {"X": X.astype(np.float32), "truth": truth}


rng = np.random.default_rng(0)
levels = np.linspace(0.05, 1.5, options.levels)
sets = [dataset(rng, noise) for noise in np.repeat(levels, options.repeats)]
batch = ragged.pack(sets, classes=3)
keys = jax.random.split(jax.random.key(0), len(batch))


# %% One clustering. It is written for one data set; rows of weight 0, which fill up, change nothing.
def error(data, weights, key):
    """Return the share of points in the wrong cluster, and whether everything converged."""
    kernel = kernels.Gaussian(
        kernels.quantile_lengthscale(data["X"], 0.15, weights=weights)
    )
    found = kernel_spectral(key, kernel, data["X"], 2, weights=weights, num_restarts=3)
    wrong = misclassification_rate(
        data["truth"], found.labels, num_labels=2, weights=weights
    )
    return wrong, found.converged


# %% All of them, with one key each; and once more, with what was compiled.
start = time.perf_counter()
ragged.map(error, batch, keys)
compiled = time.perf_counter()
results = ragged.map(error, batch, keys)
done = time.perf_counter()
errors, converged = (np.asarray(column, float) for column in zip(*results, strict=True))
print(
    f"{len(batch)} data sets: {compiled - start:.1f} s with compiling, then {done - compiled:.2f} s"
)
print(f"converged: {int(converged.sum())} of {len(batch)}")

# %% Any one of them alone gives the same.
alone = error(sets[-1], np.ones(len(sets[-1]["X"]), np.float32), keys[-1])[0]
print(f"the last one alone: {alone:.3f} wrong; among the others: {errors[-1]:.3f}")

# %% Where does clustering break down?
errors = errors.reshape(options.levels, options.repeats)
mean, deviation = errors.mean(axis=1), errors.std(axis=1, ddof=1) / options.repeats**0.5
for level, rate, width in list(zip(levels, mean, deviation, strict=True))[
    :: max(1, options.levels // 5)
]:
    print(
        f"noise {level:.2f}: {rate:.3f} of the points wrong, standard error {width:.3f}"
    )
with matplotlib.rc_context(
    {"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}
):
    figure = Figure(figsize=(8, 2.9), layout="constrained")
    *clouds, curve = figure.subplots(1, 3, width_ratios=[1, 1, 1.6])
    for axes, noise in zip(clouds, (0.3, 1.0), strict=True):
        shown = dataset(np.random.default_rng(1), noise)
        for label, (color, marker) in enumerate((("#0072b2", "o"), ("#d55e00", "^"))):
            chosen = shown["X"][shown["truth"] == label]
            axes.plot(chosen[:, 0], chosen[:, 1], marker, color=color, markersize=3)
        axes.set(
            title=f"one data set, noise {noise}",
            aspect="equal",
            xlim=(-5.5, 5.5),
            ylim=(-5.5, 5.5),
        )
        axes.set(xlabel="coordinate 1", ylabel="coordinate 2")
    curve.errorbar(
        levels, mean, 2 * deviation, fmt="o-", color="#009e73", markersize=3, capsize=2
    )
    curve.axhline(
        0.5, color="#8c8c8c", linestyle=":", linewidth=1, label="labels by chance"
    )
    curve.legend(frameon=False, fontsize=8, loc="center left")
    curve.set(
        xlabel="noise",
        ylabel="share of wrong labels",
        title=f"means of {options.repeats}, two standard errors",
    )
    figure.savefig(folder / "example_many_datasets.svg", metadata={"Date": None})
print("figure:", folder / "example_many_datasets.svg")
