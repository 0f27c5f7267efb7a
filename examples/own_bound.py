"""Check a bound of your own: the claim is twenty lines, and the check can fail.

How far is the mean embedding of n points from that of their population? The claim states a bound that is wrong, though
it looks right, and the one that holds. It is tried on two points, where it is hardest, and on a real table.
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
from jaxkern.bounds import Bound
from proofs_check.claim import Claim, Control, Form, Setting, Tail
from proofs_check.engine.draws import QUICK
from proofs_check.engine.run import run
from proofs_check.report import record, terminal

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--draws", type=int, default=20_000, help="for the figure alone")
parser.add_argument("--output", type=Path, default=None, metavar="DIR", help="for the figure; default: a new folder")
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())

# %% Where it is tried: the Gram matrix of a population's points, each as likely as any other; n = 200, delta = 5 %.
populations = {"two points": np.array([[0.0], [10.0]]), "iris": load_iris().data}
settings = tuple(
    Setting(
        name, {"gram": gram.gram(kernels.Gaussian(1.0), jnp.asarray(points, jnp.float32))}, {"delta": 0.05}, {"n": 200}
    )
    for name, points in populations.items()
)


# %% The claim, twenty lines. The trial draws the statistic once; the bound is a function of the setting.
def distance(key, population, numbers, *, n):
    """Draw |mean embedding of n points - that of the population| in the RKHS."""
    K = population["gram"]
    drawn = jax.random.randint(key, (n,), 0, K.shape[0])
    gap = jnp.zeros(K.shape[0]).at[drawn].add(1 / n) - 1 / K.shape[0]
    return jnp.sqrt(jnp.maximum(gap @ K @ gap, 0))


def bound(scale, tail):
    """Return scale / sqrt(n) (1 + tail sqrt(log(1 / delta))), for kernels with values in [0, 1]."""

    def value(setting):
        n, delta = setting.shapes["n"], setting.numbers["delta"]
        return Bound(scale * (1 + tail * math.sqrt(math.log(1 / delta))) / math.sqrt(n), 1 - delta, True, "mine:mean")

    return Tail(distance, value)


claim = Claim(
    id="mine:mean",
    paper="mine",
    where="Lemma 1",
    kind="tail bound",
    tex=r"\|\hat\mu - \mu\| \le n^{-1/2}(1 + \sqrt{\log(1/\delta)}) \text{ w.p. } 1 - \delta",
    because="n^(-1/2) bounds the mean of the distance; with probability 1 - delta it takes McDiarmid's term as well.",
    printed=Form(bound(1.0, 0.0), settings, "refuted"),
    corrected=Form(bound(1.0, 1.0), settings, "certified"),
    controls=(Control("a third of the bound", bound(1 / 3, 1.0), settings[:1], "wrong factor"),),
)

# %% Run it. It draws until the evidence decides; a true bound is refuted with probability 0.1 % at most.
results = run([claim], profile=QUICK, seed=0)
terminal.terminal(results, record.About("quick", 0, 1e-3, "float32"))
assert results[0].as_expected

# %% Draw what was bounded.
with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}):
    figure = Figure(figsize=(5.5, 3), layout="constrained")
    axes = figure.subplots()
    for setting, color, dashes in zip(settings, ("#0072b2", "#009e73"), ("-", "--"), strict=True):
        keys = jax.random.split(jax.random.key(len(dashes)), options.draws)
        draw = jax.jit(lambda key, setting=setting: distance(key, setting.data, {}, n=200))
        sample = np.sort(jax.lax.map(draw, keys, batch_size=1000))
        beyond = 1 - np.arange(sample.size) / sample.size
        thin = sample.size - np.unique(np.geomspace(1, sample.size, 400).astype(int))[::-1]
        axes.semilogy(sample[thin], beyond[thin], color=color, linestyle=dashes, label=setting.name)
    for tail, name, color in ((0.0, "bound as guessed", "#8c8c8c"), (1.0, "bound as proved", "#d55e00")):
        axes.plot(bound(1.0, tail).bound(settings[0]).value, 0.05, "v", color=color, label=f"{name}, at 5 %")
    axes.axhline(0.05, color="black", linewidth=0.5)
    axes.set(xlabel="distance of the mean embeddings", ylabel="share of draws beyond it", ylim=(3e-4, 1.3))
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(folder / "example_own_bound.svg", metadata={"Date": None})
print("figure:", folder / "example_own_bound.svg")
