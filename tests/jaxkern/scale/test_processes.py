"""Two real processes: the numbers of one, an end within bounded time when one is killed, and going on afterwards."""

import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxkern import features, io, scale
from jaxkern.kmeans import kmeans

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "examples" / "two_processes.py")

# Process `victim` kills itself when it reads the row `at`; the heartbeat bounds what is noticed without a connection.
WORKER = """
import os, signal, sys
import numpy as np
import jax
from jaxkern import io, scale
address, process, victim, at = sys.argv[1], *map(int, sys.argv[2:])
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(address, num_processes=2, process_id=process, heartbeat_timeout_seconds=10)
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
class Read:
    def __init__(self, X):
        self.X, self.shape, self.dtype, self.starts = X, X.shape, X.dtype, []
    def __getitem__(self, rows):
        if rows.stop - rows.start > 1:
            if process == victim and rows.start >= at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.starts.append(rows.start)
        return self.X[rows]
X = Read(np.load("points.npy", mmap_mode="r"))
out = np.load("features.npy", mmap_mode="r+")
scale.embed(io.load("map.npz"), X, block_size=100, sharding=mesh, out=out, progress="progress")
assert scale.local_rows(2001, mesh) == (slice(0, 1000), slice(1000, 2001))[process]
print("read", *X.starts)
jax.distributed.shutdown()
"""


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    return runpy.run_path(EXAMPLE)


# Each process draws a map of its own, by mistake.
STRANGERS = """
import sys
import numpy as np
import jax
from jaxkern import features, kernels, scale
address, process = sys.argv[1], int(sys.argv[2])
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(address, num_processes=2, process_id=process, heartbeat_timeout_seconds=10)
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
phi = features.paired_fourier(jax.random.key(process), kernels.Gaussian(1.0), 3, num_frequencies=4, dtype="float32")
X = np.zeros((90, 3), np.float32)
pca = features.streaming_pca(phi, sketch_size=2)
key = jax.random.key(process)
for name, call in (
    ("phi", lambda: scale.embed(phi, X, sharding=mesh, out=np.zeros((90, 8), np.float32))),
    ("pca", lambda: scale.stream(pca, X, num_streams=2, sharding=mesh)),
    ("key", lambda: scale.kmeans(key, X, 2, sharding=mesh)),
):
    try:
        call()
        raise SystemExit(f"{name} was taken")
    except ValueError as error:
        assert f"{name} must be the same on every process; that of [1] differs from that of 0" in str(error), error
# Where one process watches, the other must run the same programs.
calls = []
watch = (lambda *_: calls.append(1)) if process else None
found = scale.kmeans(jax.random.key(0), X, 2, sharding=mesh, report=watch)
assert found.labels.shape == (90,) and len(calls) == (2 if process else 0), calls
jax.distributed.shutdown()
"""


def run_both(folder, victim=-1, at=0, worker=WORKER):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-c", worker, address]
    processes = [
        subprocess.Popen([*command, str(i), str(victim), str(at)], cwd=folder, stdout=-1, stderr=-1, text=True)
        for i in range(2)
    ]
    try:
        ends = []
        for process in processes:
            out, error = process.communicate(timeout=120)
            ends.append((process.returncode, out, error))
        return ends
    finally:
        for process in processes:
            process.kill()


def test_two_processes_give_the_numbers_of_one(example, tmp_path):
    example["prepare"](tmp_path)
    assert example["start"](tmp_path) == [0, 0]
    X, Z = np.load(tmp_path / "points.npy"), np.load(tmp_path / "features.npy")
    phi = io.load(tmp_path / "map.npz")
    expected = scale.embed(phi, X)
    np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    results = io.load(tmp_path / "results.npz")

    pca = features.streaming_pca(phi, sketch_size=8)
    one = pca.finalize(scale.stream(pca, X, num_streams=4), num_components=8)
    two = pca.finalize(results["state"], num_components=8)
    assert float(one.weight) == float(two.weight) == len(X) == int(results["state"].sketch.num_rows)
    np.testing.assert_allclose(one.eigenvalues, two.eigenvalues, rtol=0, atol=1e-4 * float(one.eigenvalues[0]))
    np.testing.assert_allclose(one.shrinkage, two.shrinkage, rtol=1e-3)

    clusters = kmeans(jax.random.key(0), Z, 2)
    np.testing.assert_array_equal(results["clusters"].labels, clusters.labels)
    np.testing.assert_allclose(results["clusters"].centers, clusters.centers, rtol=0, atol=1e-5)
    np.testing.assert_allclose(results["clusters"].objective, clusters.objective, rtol=1e-5)

    # One process goes on with what two have left: nothing is left to do.
    calls, state = [], tmp_path / "clusters.progress"
    again = scale.kmeans(jax.random.key(0), Z, 2, progress=state, report=lambda *args: calls.append(args))
    np.testing.assert_array_equal(again.labels, clusters.labels)
    assert calls == [] and int(again.iterations) == int(clusters.iterations)

    for method, chosen in zip(example["METHODS"], results["landmarks"], strict=True):
        options = {"num_landmarks": 20, "method": method, "kernel": example["KERNEL"]}
        np.testing.assert_array_equal(chosen, scale.landmarks(jax.random.key(1), X, **options))


@pytest.mark.parametrize("victim", [1, pytest.param(0, marks=pytest.mark.slow)])  # 0 holds the coordination service
def test_a_killed_process_ends_the_other_and_both_go_on(example, tmp_path, victim):
    example["prepare"](tmp_path)
    before = time.monotonic()
    ends = run_both(tmp_path, victim=victim, at=1000 * victim + 500)
    assert time.monotonic() - before < 60
    code, out, error = ends[1 - victim]
    assert ends[victim][0] == -signal.SIGKILL
    assert code not in (0, -signal.SIGKILL) and "read" not in out
    clear = "RuntimeError: process 0 of 2 could not finish with the others: another process has ended"
    # Without its coordination service a process may be ended by JAX, which says why, before it can say so itself.
    assert clear in error or (victim == 0 and "another task died" in error), error

    # Each has recorded its blocks: the one that was left all of its ten, the other three, the last but one it began.
    recorded = {i: len((tmp_path / f"progress.{i}").read_bytes().splitlines()) - 1 for i in range(2)}
    assert recorded[victim] == 4 and (victim == 0 or recorded[0] == 10)

    # One process goes on with what both have left, here in a copy.
    alone = shutil.copytree(tmp_path, tmp_path / "alone")
    X, finished = np.load(tmp_path / "points.npy"), []
    Z, phi = np.load(alone / "features.npy", mmap_mode="r+"), io.load(tmp_path / "map.npz")
    note = lambda done, total: finished.append(done)  # noqa: E731
    scale.embed(phi, X, block_size=100, out=Z, progress=alone / "progress", report=note)
    expected = scale.embed(phi, X)
    assert len(finished) == 20 - sum(recorded.values())
    np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-4 * np.abs(expected).max())

    ends = run_both(tmp_path)
    assert [code for code, _, _ in ends] == [0, 0], ends
    rest = [[int(start) for start in out.split("read")[1].split()] for _, out, _ in ends]
    assert rest[victim] == [1000 * victim + 400 + 100 * i for i in range(6)]
    assert victim == 0 or rest[0] == []
    Z = np.load(tmp_path / "features.npy")
    np.testing.assert_allclose(Z, expected, rtol=0, atol=1e-4 * np.abs(expected).max())
    assert os.listdir(tmp_path).count("progress.1") == 1


def test_processes_with_maps_or_keys_of_their_own_are_told_so(example, tmp_path):
    ends = run_both(tmp_path, worker=STRANGERS)
    assert [code for code, _, _ in ends] == [0, 0], ends
