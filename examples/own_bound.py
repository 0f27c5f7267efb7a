"""Check a bound of your own: one function draws, one number bounds, and the check can fail.

How far is the mean embedding of n points from that of their population? One bound is wrong, though it looks right, the
other one holds. They are tried on two points, where it is hardest, and on a real table.
"""

import argparse
import math
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure
from sklearn.datasets import load_iris

from jaxkern import gram, kernels
from proofs_check import validate

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--draws", type=int, default=20_000, help="for the figure alone")
parser.add_argument(
    "--output",
    type=Path,
    default=None,
    metavar="DIR",
    help="for the figure; default: a new folder",
)
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())


# %% One draw, with the Gram matrix of a population's points, each as likely as any other.
def distance(key, K, n):
    """Draw |mean embedding of n points - that of the population| in the RKHS."""
    drawn = jax.random.randint(key, (n,), 0, K.shape[0])
    gap = jnp.zeros(K.shape[0]).at[drawn].add(1 / n) - 1 / K.shape[0]
    return jnp.sqrt(jnp.maximum(gap @ K @ gap, 0))


# %% n^(-1/2) bounds the mean of the distance; with probability 95 % it takes McDiarmid's term as well.
n = 200
bounds = {
    "guessed": 1 / math.sqrt(n),
    "proved": (1 + math.sqrt(math.log(1 / 0.05))) / math.sqrt(n),
}
populations = {"two points": np.array([[0.0], [10.0]]), "iris": load_iris().data}
matrices = {
    name: gram.gram(kernels.Gaussian(1.0), jnp.asarray(X, jnp.float32))
    for name, X in populations.items()
}
results = {}
for population, K in matrices.items():
    for name, bound in bounds.items():
        found = validate(
            jax.random.key(0), distance, bound, probability=0.95, data=K, sizes=(n,)
        )
        results[population, name] = found.verdict
        print(f"{population}, as {name}: {found}")

# %% Draw what was bounded.
with matplotlib.rc_context(
    {"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}
):
    figure = Figure(figsize=(5.5, 3), layout="constrained")
    axes = figure.subplots()
    for (name, K), color, dashes in zip(
        matrices.items(), ("#0072b2", "#009e73"), ("-", "--"), strict=True
    ):
        keys = jax.random.split(jax.random.key(len(dashes)), options.draws)
        sample = np.sort(
            jax.lax.map(
                jax.jit(lambda key, K=K: distance(key, K, n)), keys, batch_size=1000
            )
        )
        beyond = 1 - np.arange(sample.size) / sample.size
        thin = (
            sample.size - np.unique(np.geomspace(1, sample.size, 400).astype(int))[::-1]
        )
        axes.semilogy(
            sample[thin], beyond[thin], color=color, linestyle=dashes, label=name
        )
    for (name, bound), color in zip(
        bounds.items(), ("#8c8c8c", "#d55e00"), strict=True
    ):
        axes.plot(bound, 0.05, "v", color=color, label=f"bound as {name}, at 5 %")
    axes.axhline(0.05, color="black", linewidth=0.5)
    axes.set(
        xlabel="distance of the mean embeddings",
        ylabel="share of draws beyond it",
        ylim=(3e-4, 1.3),
    )
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(folder / "example_own_bound.svg", metadata={"Date": None})
print("figure:", folder / "example_own_bound.svg")
