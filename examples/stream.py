"""Kernel principal components and clusters of ten million rows that are never in memory together.

`python examples/stream.py --rows 10000000` makes the rows block by block, as a reader of files would, sketches them in
one pass, saves the state and goes on from the file half-way, and labels all rows in a second pass. It checks the
certificate of the sketch against the exact error, which is computed next to it, and draws both.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import matplotlib
import numpy as np
from matplotlib.figure import Figure

from jaxkern import features, io, kernels, landmarks
from jaxkern.kmeans import kmeans

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument(
    "--rows",
    type=int,
    default=1_000_000,
    help="made a multiple of ten blocks (default: 1000000)",
)
parser.add_argument(
    "--block", type=int, default=50_000, help="rows that are in memory at once"
)
parser.add_argument(
    "--output",
    type=Path,
    default=None,
    metavar="DIR",
    help="for the figure; default: a new folder",
)
options = parser.parse_args()
SEGMENTS = 10
each = max(1, round(options.rows / options.block / SEGMENTS))  # blocks of a segment
rows = SEGMENTS * each * options.block
folder = options.output or Path(tempfile.mkdtemp())
DIM, CLUSTERS, FREQUENCIES, SKETCH = 10, 5, 64, 32

# %% A source of rows: block i is a function of i, so that a second pass sees the same rows.
key_centers, key_source, key_map, key_sample, key_means = jax.random.split(
    jax.random.key(0), 5
)
centers = 1.5 * jax.random.normal(key_centers, (CLUSTERS, DIM))


@jax.jit
def block(i):
    """Return the rows (block, dim) of block i and the cluster that each comes from."""
    key_label, key_noise = jax.random.split(jax.random.fold_in(key_source, i))
    label = jax.random.categorical(
        key_label,
        jnp.log(jnp.array([0.4, 0.3, 0.15, 0.1, 0.05])),
        shape=(options.block,),
    )
    return centers[label] + jax.random.normal(key_noise, (options.block, DIM)), label


# %% One pass: a sketch of the features, a uniform sample of the rows, and, to check the sketch, the exact Z'Z.
phi = features.paired_fourier(
    key_map, kernels.Gaussian(4.0), DIM, num_frequencies=FREQUENCIES
)
pca = features.streaming_pca(phi, sketch_size=SKETCH)
sample = landmarks.reservoir(num_landmarks=2000)
scatter = np.zeros((phi.num_features, phi.num_features))
scatter_of = jax.jit(lambda X: jnp.matmul(phi(X).T, phi(X), precision="highest"))
total, kept = pca.init(), sample.init(key_sample, DIM)
history = []
start = time.perf_counter()
for segment in range(SEGMENTS):
    # A state for each segment, merged at its end: what shrinking rounds off grows with the length of one state.
    # Segments could as well be read by different machines.
    state = pca.init()
    for i in range(segment * each, (segment + 1) * each):
        X, _ = block(i)
        state, kept = pca.update(state, X), sample.update(kept, X)
        scatter += np.asarray(scatter_of(X), float)
        if (i + 1) & i == 0 or i + 1 == SEGMENTS * each:  # after 1, 2, 4, 8, ... blocks
            found = pca.finalize(pca.merge(total, state), num_components=SKETCH)
            W, eigenvalues = (
                np.asarray(found.components, float),
                np.asarray(found.eigenvalues, float),
            )
            error = np.linalg.norm(scatter - W.T @ (eigenvalues[:, None] * W), 2)
            history.append((options.block * (i + 1), float(found.shrinkage), error))
    total = pca.merge(total, state)
    io.save(folder / "stream.npz", {"total": total, "sample": kept})
    if segment == SEGMENTS // 2:  # as if the machine had been switched off here
        saved = io.load(folder / "stream.npz")
        total, kept = saved["total"], saved["sample"]
print(f"{rows:,} rows, {rows / (time.perf_counter() - start):,.0f} a second")

# %% What the sketch promises, and what it does. |phi(x)| = 1, so the theorem allows n / (SKETCH + 1) before any data.
fit = pca.finalize(total, num_components=CLUSTERS + 1)
counts, promised, errors = (
    np.array(column, float) for column in zip(*history, strict=True)
)
allowed = 1 / (SKETCH + 1)
print(
    f"certificate {promised[-1] / rows:.5f} of n, exact error {errors[-1] / rows:.5f}, theorem {allowed:.5f}"
)
assert (errors <= promised).all(), "the certificate was broken"

# %% Second pass: clusters of the sample label every row.
clusters = kmeans(key_means, fit(kept.points), CLUSTERS, num_restarts=10)
label_of = jax.jit(
    lambda X: jnp.argmin(
        ((fit(X)[:, None] - clusters.centers[None]) ** 2).sum(axis=-1), axis=1
    )
)
confusion = np.zeros((CLUSTERS, CLUSTERS))
for i in range(SEGMENTS * each):
    X, truth = block(i)
    np.add.at(confusion, (np.asarray(label_of(X)), np.asarray(truth)), 1)
wrong = (
    1 - confusion.max(axis=1).sum() / rows
)  # a cluster is named after most of its rows
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(
    f"wrong labels {wrong:.2%}; state {sum(leaf.nbytes for leaf in jax.tree.leaves(total)) / 1024:.0f} kB"
)
print(
    f"both passes {time.perf_counter() - start:.0f} s, largest memory of the process {memory:.0f} MB"
)

# %% Draw the certificate next to the error.
with matplotlib.rc_context(
    {"svg.fonttype": "none", "svg.hashsalt": "jaxkern", "font.size": 9}
):
    figure = Figure(figsize=(5.5, 3), layout="constrained")
    axes = figure.subplots()
    axes.axhline(
        allowed, color="#8c8c8c", linestyle=":", label="theorem, before any data"
    )
    axes.semilogx(
        counts,
        promised / counts,
        "s--",
        color="#d55e00",
        markersize=4,
        label="certificate of the state",
    )
    axes.semilogx(
        counts,
        errors / counts,
        "o-",
        color="#0072b2",
        markersize=4,
        label="exact error",
    )
    axes.set(
        xlabel="rows so far, $n$",
        ylabel=r"$\|Z^\top Z-B^\top B\|/n$",
        ylim=(0, 1.1 * allowed),
    )
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(folder / "example_stream.svg", metadata={"Date": None})
print("figure:", folder / "example_stream.svg")
