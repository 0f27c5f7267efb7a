"""Cluster a real table with the kernel, and with maps that stand for it.

The table is the handwritten digits of scikit-learn: 1,797 images of 8 x 8 pixels. k-means of the pixels, kernel
k-means, and k-means of three feature maps are compared with the digits that were meant, over several draws of each.
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
from sklearn.datasets import load_digits

from jaxkern import features, kernels, landmarks
from jaxkern.clustering import kernel_kmeans
from jaxkern.kmeans import kmeans
from jaxkern.metrics import adjusted_rand_index

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--rows", type=int, default=1797)
parser.add_argument("--draws", type=int, default=10)
parser.add_argument(
    "--output",
    type=Path,
    default=None,
    metavar="DIR",
    help="for the figure; default: a new folder",
)
options = parser.parse_args()
folder = options.output or Path(tempfile.mkdtemp())

# %% The table: floats, one scale for all columns because all are pixels. The lengthscale is a distance of neighbours.
images, digits = load_digits(return_X_y=True)
X = jnp.asarray(images[: options.rows] / 16, jnp.float32)
truth = jnp.asarray(digits[: options.rows], jnp.int32)
kernel = kernels.Gaussian(kernels.quantile_lengthscale(X, 0.02))
print(f"{X.shape[0]} rows, {X.shape[1]} columns, lengthscale {kernel.lengthscale:.2f}")
num_landmarks = min(400, options.rows)


# %% Five ways, each a function of a key.
def plain(key):
    """k-means of the pixels."""
    return kmeans(key, X, 10, num_restarts=5).labels


def exact(key):
    """Kernel k-means, with all rows as landmarks."""
    return kernel_kmeans(
        key, kernel, X, 10, num_landmarks=X.shape[0], num_restarts=5
    ).labels


def clustered(draw):
    """Return the clustering by k-means of a map that is drawn by `draw(key, landmarks)`."""

    def labels(key):
        key_landmarks, key_map, key_means = jax.random.split(key, 3)
        chosen = landmarks.uniform(key_landmarks, X, num_landmarks=num_landmarks)
        return kmeans(key_means, draw(key_map, chosen)(X), 10, num_restarts=5).labels

    return labels


methods = {
    "k-means of the pixels": plain,
    "kernel k-means": exact,
    "Nystrom, 20 features": clustered(
        lambda key, chosen: features.nystrom(kernel, chosen, rank=20)
    ),
    "Kernel JL, 20 features": clustered(
        lambda key, chosen: features.kernel_jl(
            key, kernel, chosen, num_features=20, centered=True
        )
    ),
    "Fourier, 200 features": clustered(
        lambda key, chosen: features.paired_fourier(
            key, kernel, X.shape[1], num_frequencies=100
        )
    ),
}

# %% Draw each several times.
scores = {}
for number, (name, method) in enumerate(methods.items()):
    key, *keys = jax.random.split(jax.random.key(number), 1 + options.draws)
    method(key)  # compiles
    start = time.perf_counter()
    found = [jax.block_until_ready(method(key)) for key in keys]
    seconds = (time.perf_counter() - start) / len(keys)
    scores[name] = np.array(
        [adjusted_rand_index(truth, labels) for labels in found], float
    )
    mean, deviation = scores[name].mean(), scores[name].std()
    print(
        f"{name:24} adjusted Rand index {mean:.3f} +- {deviation:.3f}, {seconds:.2f} s"
    )

# %% Draw them.
with matplotlib.rc_context(
    {"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}
):
    figure = Figure(figsize=(7, 2.6), layout="constrained")
    axes = figure.subplots()
    for row, values in enumerate(scores.values()):
        axes.plot(
            values,
            np.full(values.size, row),
            "o",
            color="#0072b2",
            alpha=0.5,
            markersize=5,
        )
        axes.plot(
            values.mean(), row, "|", color="#d55e00", markersize=18, markeredgewidth=2
        )
    axes.set_yticks(range(len(scores)), list(scores))
    axes.set_ylim(len(scores) - 0.5, -0.5)
    axes.set(
        xlabel="adjusted Rand index with the digits",
        title=f"{options.draws} draws each, and their mean",
    )
    figure.savefig(folder / "example_cluster_table.svg", metadata={"Date": None})
print("figure:", folder / "example_cluster_table.svg")
