"""Learn the lengthscale of a kernel by gradient ascent with optax, then one scale for every column.

The table is the wine data of scikit-learn, 178 wines of three growers with 13 measurements, next to 40 columns of pure
noise. What is maximised is the alignment of the kernel with the growers, 1 for a kernel that tells only these apart.
Half of the rows are used to learn, the other half to see how much of it is real.
"""

import argparse
import tempfile
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
import optax
from matplotlib.figure import Figure
from sklearn.datasets import load_wine

from jaxkern import kernels, learn

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=300)
parser.add_argument(
    "--output",
    type=Path,
    default=None,
    metavar="DIR",
    help="for the figure; default: a new folder",
)
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())

# %% The table, standardised, with noise, in two halves.
data = load_wine()
random = np.random.default_rng(0)
order = random.permutation(len(data.target))
table = (data.data - data.data.mean(axis=0)) / data.data.std(axis=0)
table = np.hstack([table, random.standard_normal((len(table), 40))])
names = [name.split("/")[0] for name in data.feature_names] + ["noise"] * 40
X, X_test = np.split(jnp.asarray(table[order], jnp.float32), 2)
y, y_test = np.split(jnp.asarray(data.target[order], jnp.int32), 2)


# %% One lengthscale: `learn.fit_lengthscale` does it. At a tenth of the median K is the identity, the gradient is zero
# and nothing would move: start near the median.
def objective(kernel, points):
    """Return how well the kernel agrees with the classes, in [-1, 1]."""
    return learn.alignment(kernel, points, y, num_labels=3)


def on_test_rows(kernel, log_scales):
    """Return the same for the other half of the rows."""
    return learn.alignment(
        kernel, X_test * jnp.exp(log_scales)[None, :], y_test, num_labels=3
    )


unscaled = jnp.zeros(X.shape[1])
median = kernels.quantile_lengthscale(X)
fit = learn.fit_lengthscale(
    kernels.Gaussian(median / 3),
    X,
    objective,
    num_steps=options.steps,
    learning_rate=0.05,
)
print("alignment on the rows that were used, and on the others:")
at_median = kernels.Gaussian(median)
print(
    f"  median of distances, {median:.2f}: {objective(at_median, X):.3f}, {on_test_rows(at_median, unscaled):.3f}"
)
print(
    f"  learned, {fit.kernel.lengthscale:.2f}: {fit.objective:.3f}, {on_test_rows(fit.kernel, unscaled):.3f}"
)

# %% One scale for each column: any function of kernels and points can be differentiated, so write the loop yourself.
optimizer = optax.adam(0.05)


def loss(log_scales):
    """Return minus the alignment of the learned kernel on scaled columns."""
    return -objective(fit.kernel, X * jnp.exp(log_scales)[None, :])


@jax.jit
def step(log_scales, memory):
    """Take one step of Adam."""
    value, slope = jax.value_and_grad(loss)(log_scales)
    change, memory = optimizer.update(slope, memory)
    return optax.apply_updates(log_scales, change), memory, -value


log_scales = unscaled
memory = optimizer.init(log_scales)
progress, elsewhere = [], []
for _ in range(options.steps):
    elsewhere.append(on_test_rows(fit.kernel, log_scales))
    log_scales, memory, value = step(log_scales, memory)
    progress.append(value)
scales = jnp.exp(log_scales)
print(f"  with a scale for each column: {progress[-1]:.3f}, {elsewhere[-1]:.3f}")
print(
    f"mean scale of a measurement {scales[:13].mean():.2f}, of a column of noise {scales[13:].mean():.2f}"
)

# %% Draw the objective along lengthscales, the way up, and the scales.
grid = jnp.geomspace(0.5, 50, 60)
heights = jax.vmap(lambda length: objective(kernels.Gaussian(length), X))(grid)
with matplotlib.rc_context(
    {"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}
):
    figure = Figure(figsize=(8.4, 3), layout="constrained")
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.2, 1, 1.3])
    left.semilogx(grid, heights, color="#0072b2")
    left.axvline(float(median), color="#8c8c8c", linestyle=":", label="median distance")
    left.plot(
        float(fit.kernel.lengthscale),
        float(fit.objective),
        "o",
        color="#d55e00",
        label="learned",
    )
    left.set(xlabel="lengthscale", ylabel="alignment", title="one lengthscale")
    left.legend(frameon=False, fontsize=8, loc="upper left")
    middle.plot(progress, color="#009e73", label="rows used")
    middle.plot(elsewhere, color="#cc79a7", linestyle="--", label="other rows")
    middle.set(xlabel="step", title="53 scales: alignment")
    middle.legend(frameon=False, fontsize=8)
    rank = np.argsort(np.asarray(scales))[-20:]
    colors = ["#8c8c8c" if names[i] == "noise" else "#009e73" for i in rank]
    right.barh(range(rank.size), np.asarray(scales)[rank], color=colors)
    right.set_yticks(range(rank.size), [names[i] for i in rank], fontsize=6)
    right.set(xlabel="scale", title="the 20 largest scales")
    figure.savefig(folder / "example_lengthscale.svg", metadata={"Date": None})
print("figure:", folder / "example_lengthscale.svg")
