"""Two real processes: the numbers of one, an end within bounded time when one is killed, and going on afterwards."""

import runpy
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import jax
import numpy as np
import pytest
from house import close

from jaxkern import features, io, scale
from jaxkern.kmeans import kmeans

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = str(ROOT / "examples" / "two_processes.py")
JOBS = ("embed", "stream", "kmeans")

START = """
import os, pathlib, runpy, signal, sys, threading, time
import numpy as np
import jax
from jaxkern import features, gram, io, kernels, scale
from jaxkern.scale import _resume
example, address, process, victim, at, job = *sys.argv[1:3], *map(int, sys.argv[3:6]), sys.argv[6]
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
"""
# The example as it is, except that it reports, kills process `victim` when it has mapped two blocks, and does not shut
# down at its end. Then one process maps and chooses alone, by the programs that it has.
WORK = """
embed, shutdown = scale.embed, jax.distributed.shutdown
def tell(done, total):
    print(done, flush=True)
    if process == victim and done == 512:
        kill()
scale.embed = lambda *given, **options: embed(*given, report=tell, **options)
jax.distributed.shutdown = lambda: None
space = runpy.run_path(example)
space["work"](pathlib.Path("."), address, process)
if process == 0:
    X, phi, results = np.load("points.npy"), io.load("map.npz"), io.load("results.npz")
    assert np.array_equal(np.load("features.npy"), embed(phi, X, block_size=256))
    for method, shared in zip(space["METHODS"], results["landmarks"], strict=True):
        options = {"num_landmarks": 20, "method": method, "kernel": space["KERNEL"]}
        assert np.array_equal(shared, scale.landmarks(jax.random.key(1), X, **options))
"""
# Each process draws a map of its own, by mistake; then they share products.
STRANGERS = """
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
assert scale.local_rows(2001, mesh) == (slice(0, 1000), slice(1000, 2001))[process]
phi = jax.tree.map(lambda leaf: leaf + process, io.load("map.npz"))
pca = features.streaming_pca(phi, sketch_size=2)
key = jax.random.key(process)
X = np.zeros((2000, 40), np.float32)  # of the shapes of the features above, whose programs serve here as well
for name, call in (
    ("phi", lambda: embed(phi, X[:, :3], sharding=mesh, out=X.copy())),
    ("pca", lambda: scale.stream(pca, X[:, :3], num_streams=2, sharding=mesh)),
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
partition = scale.kmeans(jax.random.key(0), X, 2, sharding=mesh, report=watch)
assert partition.labels.shape == (2000,) and len(calls) == (2 if process else 0), calls
# Rows of a Gram product stay with their process, those of the other come by; also where types say how arrays lie.
os.environ["JAXKERN_TILE_SIDE"] = "8"  # so that 24 points are more than the two tiles that each has anyway
X = np.random.default_rng(0).normal(size=(24, 3)).astype(np.float32)
K = np.exp(-np.square(X[:, None].astype(float) - X[None]).sum(axis=2) / 2)
energy = lambda X, v: (v * gram.gram_matmul(kernels.Gaussian(1.0), X, None, v)).sum()
for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit):
    rows = jax.NamedSharding(jax.make_mesh((2,), ("rows",), axis_types=(kind,)), jax.P("rows"))
    points, v = (jax.make_array_from_callback(A.shape, rows, A.__getitem__) for A in (X, X[:, 0]))
    program = jax.jit(jax.value_and_grad(energy, (0, 1))).lower(points, v).compile()
    value, slopes = program(points, v)
    assert "collective-permute" in program.as_text()
    pairs = K * X[:, 0] * X[:, :1]
    np.testing.assert_allclose(value, pairs.sum(), rtol=1e-5)
    for part, exact in zip(slopes, (2 * (pairs @ X - pairs.sum(1)[:, None] * X), 2 * K @ X[:, 0]), strict=True):
        (mine,) = part.addressable_shards
        assert mine.data.shape[0] == 12
        np.testing.assert_allclose(mine.data, exact[mine.index], rtol=0, atol=1e-5 * np.abs(exact).max())
shutdown()
"""
# Process `victim` is killed `at` milliseconds after its job has begun.
KILLED = """
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(address, num_processes=2, process_id=process, heartbeat_timeout_seconds=5)
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
_resume.SECONDS = 0.0
X, phi = np.load("points.npy", mmap_mode="r"), io.load("map.npz")
def tell(done, total):
    print(done, flush=True)
    time.sleep(0.02)  # so that no moment is likelier than another
begun, timer = time.monotonic(), threading.Timer(at / 1000, kill)
if process == victim:
    timer.start()
common = {"sharding": mesh, "progress": job + ".progress", "report": tell}
if job == "embed":
    result = scale.embed(phi, X, block_size=5, out=np.load("features.npy", mmap_mode="r+"), **common)
    assert np.array_equal(result, scale.embed(phi, X, block_size=5))  # by one process, and at one go
elif job == "stream":
    pca = features.streaming_pca(phi, sketch_size=8, centered=True)
    result = scale.stream(pca, X, num_streams=4, block_size=5, **common)
else:
    result = scale.kmeans(jax.random.key(0), X, 12, num_restarts=4, tolerance=0.0, max_iterations=40, **common)
timer.cancel()
digest = _resume.fingerprint(jax.tree.map(np.asarray, result))
print("end", digest, int(1000 * (time.monotonic() - begun)), flush=True)
jax.distributed.shutdown()
"""


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    unoptimised = str(jax.config.read("jax_disable_most_optimizations"))
    monkeypatch.setenv("JAX_DISABLE_MOST_OPTIMIZATIONS", unoptimised)
    with jax.enable_x64(False):  # as the processes that it starts
        yield runpy.run_path(EXAMPLE)


class End:
    """How one of two processes ended: status, output, errors, time, and the numbers of rows that it told."""

    def __init__(self, process, time):
        self.time = time
        self.code = process.poll()
        self.out, self.error = process.communicate(timeout=1)
        self.rows = [int(line) for line in self.out.splitlines() if line.isdigit()]
        self.was_killed = self.code == -signal.SIGKILL


def run_both(folder, worker, job="", victim=-1, at=0):
    """Run a worker in two processes, and return their ends."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    begun = time.monotonic()
    processes = []
    for number in range(2):
        options = (address, str(number), str(victim), str(at), job)
        command = [sys.executable, "-c", START + worker, EXAMPLE, *options]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        processes.append(subprocess.Popen(command, cwd=folder, **pipes))
    times = {}
    try:
        while len(times) < 2 and time.monotonic() < begun + 240:
            time.sleep(0.02)
            for number, process in enumerate(processes):
                if process.poll() is not None:
                    times.setdefault(number, time.monotonic())
        return [End(processes[number], times[number]) for number in range(2)]
    finally:
        for process in processes:
            process.kill()


def assert_is_told(end, number):
    """JAX ends a process if the heartbeat of the other has been missing before both do something together."""
    message = f"RuntimeError: process {number} of 2 could not"
    assert message in end.error or "another task died" in end.error, end.error


@pytest.mark.timeout(600)  # on a busy machine
def test_two_processes_give_the_numbers_of_one_though_one_is_killed(example, tmp_path):
    example["prepare"](tmp_path)
    left, killed = run_both(tmp_path, WORK, victim=1)
    assert killed.was_killed
    assert left.code not in (0, -signal.SIGKILL)
    assert left.time - killed.time < 30
    assert_is_told(left, 0)

    # Each has 1,000 rows in blocks of 256. A block is recorded before it is told: it is not computed again.
    assert left.rows == [256, 512, 768, 1000]
    first, second = run_both(tmp_path, WORK + STRANGERS)
    assert first.code == second.code == 0, first.error + second.error
    assert first.rows == []
    assert second.rows == [768, 1000]

    X = np.load(tmp_path / "points.npy")
    Z = np.load(tmp_path / "features.npy")
    phi = io.load(tmp_path / "map.npz")
    results = io.load(tmp_path / "results.npz")

    pca = features.streaming_pca(phi, sketch_size=8)
    alone = pca.finalize(scale.stream(pca, X, num_streams=4), num_components=8)
    shared = pca.finalize(results["state"], num_components=8)
    assert alone.weight == shared.weight == len(X)
    close(
        alone.eigenvalues / alone.eigenvalues[0],
        shared.eigenvalues / alone.eigenvalues[0],
        1e-4,
    )
    close(alone.shrinkage / shared.shrinkage, 1, 1e-3)

    shared = results["clusters"]
    key = jax.random.key(0)
    clusters = kmeans(key, Z, 2)
    close(shared.labels, clusters.labels)
    close(shared.centers, clusters.centers, 1e-5)
    close(shared.objective / clusters.objective, 1, 1e-5)

    # One process goes on with what two have left: nothing is left to do.
    path = tmp_path / "clusters.progress"
    finished = scale.kmeans(key, Z, 2, progress=path, report=pytest.fail)
    close(finished.labels, clusters.labels)
    assert finished.iterations == clusters.iterations


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("job", JOBS)
def test_killed_at_any_moment_a_job_ends_with_the_same_bits(example, tmp_path, job):
    """Also while it goes on: a job is begun anew when it has come to its end."""

    def begin():
        for path in tmp_path.glob("*.progress*"):
            path.unlink()
        example["prepare"](tmp_path)
        return [0, 0]

    rng = np.random.default_rng(0)
    reached = begin()
    kills = 0
    waits = []
    digests = {}
    while kills < 20 or any(reached):
        victim = int(rng.integers(2)) if digests and kills < 20 else -1
        moment = int(rng.integers(next(iter(digests.values())))) if digests else 0
        ends = run_both(tmp_path, KILLED, job, victim, moment)
        kills += victim >= 0 and ends[victim].was_killed
        for number, end in enumerate(ends):
            if "end" in end.out:  # the other may be killed when this one has all
                digest, milliseconds = end.out.split("end")[1].split()[:2]
                digests.setdefault(digest, int(milliseconds))
                assert len(digests) == 1
            elif not end.was_killed:
                waits.append(end.time - ends[victim].time)
                assert_is_told(end, number)
            if end.rows:
                # Of two states the last one may not have been kept; a block is recorded before it is told.
                assert end.rows[0] >= reached[number]
                is_recorded = job == "embed"
                reached[number] = end.rows[-1] + 5 if is_recorded else end.rows[-2:][0]
        if ends[0].code == ends[1].code == 0:
            reached = begin()
    assert waits
    assert max(waits) < 30
