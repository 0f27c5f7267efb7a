"""Map, sketch and cluster one file of points by two processes: `python examples/two_processes.py`.

Started without arguments it starts the two processes itself, here on one machine. On a cluster the scheduler starts
them, and `jax.distributed.initialize()` needs no arguments there.
"""

import pathlib
import socket
import subprocess
import sys
import tempfile

import jax
import numpy as np

from jaxkern import features, io, kernels, scale

NUM_POINTS, DIM, LANDMARKS = 2_000, 3, 40
KERNEL, METHODS = (
    kernels.Gaussian(2.0),
    ("uniform", "kmeans||", "pivoted_cholesky", "leverage"),
)


def prepare(folder):
    """Write what all processes share: the points, the fitted map, and an empty file for the features."""
    X = np.random.default_rng(0).normal(size=(NUM_POINTS, DIM)).astype(np.float32)
    X[: NUM_POINTS // 2] += 6
    np.save(folder / "points.npy", X)
    io.save(folder / "map.npz", features.nystrom(KERNEL, X[::50]))
    np.lib.format.open_memmap(
        folder / "features.npy", "w+", np.float32, (NUM_POINTS, LANDMARKS)
    ).flush()


def work(folder, address, process):
    """Do the share of one process."""
    jax.config.update("jax_platforms", "cpu")
    # A process that dies silently is missed after ten seconds.
    jax.distributed.initialize(
        address, num_processes=2, process_id=process, heartbeat_timeout_seconds=10
    )
    mesh = jax.make_mesh(
        (jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,)
    )

    phi = io.load(folder / "map.npz")
    X = np.load(folder / "points.npy", mmap_mode="r")
    Z = np.load(folder / "features.npy", mmap_mode="r+")
    # Each maps its own rows; the record lets the same command go on where it was cut short.
    scale.embed(
        phi, X, block_size=256, sharding=mesh, out=Z, progress=folder / "progress"
    )

    pca = features.streaming_pca(phi, sketch_size=8)
    state = scale.stream(pca, X, num_streams=4, sharding=mesh)
    clusters = scale.kmeans(
        jax.random.key(0), Z, 2, sharding=mesh, progress=folder / "clusters.progress"
    )
    chosen = [
        scale.landmarks(
            jax.random.key(1),
            X,
            num_landmarks=20,
            method=name,
            kernel=KERNEL,
            sharding=mesh,
        )
        for name in METHODS
    ]
    if process == 0:  # all have the same
        io.save(
            folder / "results.npz",
            {"state": state, "clusters": clusters, "landmarks": chosen},
        )
    jax.distributed.shutdown()


def start(folder):
    """Start both processes, and end them all when the time is over."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, __file__, str(folder), address]
    processes = [subprocess.Popen([*command, str(number)]) for number in range(2)]
    try:
        return [process.wait(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()  # jax.distributed takes no notice of gentler signals


if __name__ == "__main__" and len(sys.argv) == 4:
    work(pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
elif __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        prepare(folder)
        if any(start(folder)):
            raise SystemExit(
                "a process failed; the same command would go on where it stopped"
            )
        results = io.load(folder / "results.npz")
        print("features:", np.load(folder / "features.npy", mmap_mode="r").shape)
        print("rows sketched:", int(results["state"].sketch.num_rows))
        print("points in each cluster:", np.bincount(results["clusters"].labels))
