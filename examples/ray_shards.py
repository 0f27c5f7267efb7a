"""Map Parquet shards by a saved map on the workers of Ray Data, and merge a sketch of each batch into one.

On a cluster, give it a folder that all workers see. What a dead worker had begun Ray does again elsewhere.
"""

import argparse
import pathlib
import tempfile

import jax
import numpy as np
import pyarrow.parquet
import ray

from jaxkern import features, io, kernels, scale

NAMES, BATCH = ["a", "b", "c"], 2048


class Work:
    """What a worker does: it loads the map once, and pads its batches, so that one program serves them all."""

    def __init__(self, file, job):
        """Load the map."""
        self.phi, self.job = io.load(file), job
        self.pca = features.streaming_pca(self.phi, sketch_size=8)

    def __call__(self, batch):
        """Return features, or one row with the arrays of a state."""
        X = np.stack([batch[name] for name in NAMES], axis=1)
        if self.job == "map":
            return {"features": scale.embed(self.phi, X, block_size=BATCH)}
        state = scale.stream(self.pca, X, num_streams=1, block_size=BATCH)
        return {
            str(i): np.asarray(leaf)[None]
            for i, leaf in enumerate(jax.tree.leaves(state))
        }


parser = argparse.ArgumentParser()
parser.add_argument("--rows", type=int, default=50_000)
parser.add_argument(
    "--output", type=pathlib.Path, default=pathlib.Path(tempfile.mkdtemp())
)
options = parser.parse_args()
folder, file = options.output, str(options.output / "map.npz")
(folder / "points").mkdir()
X = np.random.default_rng(0).normal(size=(options.rows, len(NAMES))).astype(np.float32)
for i, part in enumerate(np.array_split(X, 4)):
    pyarrow.parquet.write_table(
        pyarrow.table(list(part.T), NAMES), folder / "points" / f"part-{i}.parquet"
    )
phi = features.nystrom(kernels.Gaussian(2.0), X[:40])
io.save(file, phi)

ray.init(num_cpus=2, include_dashboard=False)
points = ray.data.read_parquet(str(folder / "points"))
how = {"batch_size": BATCH, "compute": ray.data.ActorPoolStrategy(size=1)}
points.map_batches(Work, fn_constructor_args=(file, "map"), **how).write_parquet(
    str(folder / "features")
)

pca = features.streaming_pca(phi, sketch_size=8)
structure = jax.tree.structure(pca.init(np.float32))
rows = points.map_batches(Work, fn_constructor_args=(file, "sketch"), **how).iter_rows()
states = (
    structure.unflatten([np.asarray(row[str(i)]) for i in range(structure.num_leaves)])
    for row in rows
)
fit = pca.finalize(scale.merge_tree(pca.merge, states), num_components=3)
print(f"{int(fit.weight)} rows, certificate {fit.relative_shrinkage:.4f}")
ray.shutdown()
