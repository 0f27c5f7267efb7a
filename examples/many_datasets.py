"""Spectral clustering of one thousand small data sets at once: how much noise can it take?

Twenty levels of noise, fifty data sets each, of 40 to 60 points: a cluster inside a ring. They go through one compiled
program, each with a lengthscale of its own. Data sets of different sizes are filled up to 60 rows, and the rows that
fill up have weight 0.
"""

import argparse
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxkern import kernels
from jaxkern.clustering import kernel_spectral

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--levels", type=int, default=20)
parser.add_argument("--repeats", type=int, default=50)
parser.add_argument("--output", type=Path, default=None, metavar="DIR", help="for the figure; default: a new folder")
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())
ROWS, FEWEST = 60, 40


# %% One data set, and one clustering. Everything is written for one; vmap makes it many.
def dataset(key, noise):
    """Return points (60, 2), their true clusters, and weights: 1, or 0 for rows that only fill up."""
    key_size, key_points, key_noise = jax.random.split(key, 3)
    size = jax.random.randint(key_size, (), FEWEST, ROWS + 1)
    truth = jnp.arange(ROWS) % 2
    directions = jax.random.normal(key_points, (ROWS, 2))
    directions = directions / jnp.linalg.norm(directions, axis=1, keepdims=True)
    X = jnp.where(truth == 0, 0.5, 3.0)[:, None] * directions + noise * jax.random.normal(key_noise, (ROWS, 2))
    return X, truth, (jnp.arange(ROWS) < size).astype(X.dtype)


def error(key, noise):
    """Return the share of points in the wrong cluster, for one data set."""
    key_data, key_clusters = jax.random.split(key)
    X, truth, weights = dataset(key_data, noise)
    kernel = kernels.Gaussian(0.5 + noise)  # one lengthscale for each data set
    found = kernel_spectral(key_clusters, kernel, X, 2, weights=weights, num_restarts=3)
    agree = jnp.where(found.labels == truth, weights, 0).sum() / weights.sum()
    return jnp.minimum(agree, 1 - agree), found.converged  # names of clusters do not matter


# %% All of them in one program. `batch_size` bounds the memory: so many data sets are in flight.
levels = jnp.linspace(0.05, 1.5, options.levels)
noises = jnp.repeat(levels, options.repeats)
keys = jax.random.split(jax.random.key(0), noises.size)
in_flight = min(50, noises.size)
many = jax.jit(lambda *pairs: jax.lax.map(lambda pair: error(*pair), pairs, batch_size=in_flight))
start = time.perf_counter()
many = many.lower(keys, noises).compile()
compiled = time.perf_counter()
errors, converged = jax.block_until_ready(many(keys, noises))
done = time.perf_counter()
print(f"{noises.size} data sets: compiled in {compiled - start:.1f} s, run in {done - compiled:.2f} s")
print(f"converged: {int(converged.sum())} of {noises.size}")

# %% Any one of them alone gives the same.
alone = error(jax.random.split(jax.random.key(0), noises.size)[-1], noises[-1])[0]
print(f"the last one alone: {alone:.3f} wrong; among the others: {errors[-1]:.3f}")

# %% Where does clustering break down?
errors = np.asarray(errors, float).reshape(options.levels, options.repeats)
mean, deviation = errors.mean(axis=1), errors.std(axis=1, ddof=1) / options.repeats**0.5
for level, rate, width in list(zip(np.asarray(levels), mean, deviation, strict=True))[:: max(1, options.levels // 5)]:
    print(f"noise {level:.2f}: {rate:.3f} of the points wrong, standard error {width:.3f}")
with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}):
    figure = Figure(figsize=(8, 2.9), layout="constrained")
    *clouds, curve = figure.subplots(1, 3, width_ratios=[1, 1, 1.6])
    for axes, noise in zip(clouds, (0.3, 1.0), strict=True):
        X, truth, weights = dataset(jax.random.key(1), noise)
        for label, (color, marker) in enumerate((("#0072b2", "o"), ("#d55e00", "^"))):
            chosen = np.asarray(X)[np.asarray((truth == label) & (weights > 0))]
            axes.plot(chosen[:, 0], chosen[:, 1], marker, color=color, markersize=3)
        axes.set(title=f"one data set, noise {noise}", aspect="equal", xlim=(-5.5, 5.5), ylim=(-5.5, 5.5))
        axes.set(xlabel="coordinate 1", ylabel="coordinate 2")
    curve.errorbar(levels, mean, 2 * deviation, fmt="o-", color="#009e73", markersize=3, capsize=2)
    curve.axhline(0.5, color="#8c8c8c", linestyle=":", linewidth=1, label="labels by chance")
    curve.legend(frameon=False, fontsize=8, loc="center left")
    curve.set(xlabel="noise", ylabel="share of wrong labels", title=f"means of {options.repeats}, two standard errors")
    figure.savefig(folder / "example_many_datasets.svg", metadata={"Date": None})
print("figure:", folder / "example_many_datasets.svg")
