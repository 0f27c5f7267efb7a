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

from jaxkern import features, io, scale
from jaxkern.kmeans import kmeans

ROOT = Path(__file__).resolve().parents[3]
SLOW = [
    pytest.param(job, 20, marks=pytest.mark.slow)
    for job in ("embed", "stream", "kmeans")
]
EXAMPLE = str(ROOT / "examples" / "two_processes.py")

START = """
import os, signal, sys, threading, time
import numpy as np
import jax
from jaxkern import features, gram, io, kernels, scale
from jaxkern.scale import _resume
address, process, victim, at, job = sys.argv[1], *map(int, sys.argv[2:5]), sys.argv[5]
jax.config.update("jax_platforms", "cpu")
jax.distributed.initialize(address, num_processes=2, process_id=process, heartbeat_timeout_seconds=5)
mesh = jax.make_mesh((2,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
assert scale.local_rows(2001, mesh) == (slice(0, 1000), slice(1000, 2001))[process]
"""
# Process `victim` is killed `at` milliseconds after its job has begun, or when it has told -`at` times how far it is.
KILLED = """
_resume.SECONDS, calls = 0.0, []
X, phi = np.load("points.npy", mmap_mode="r"), io.load("map.npz")
def kill():
    os.kill(os.getpid(), signal.SIGKILL)
def tell(done, total):
    print(done, flush=True)
    calls.append(done)
    time.sleep(0.02 * (at >= 0))  # so that no moment is likelier than another
    if process == victim and len(calls) == -at:
        kill()
begun, timer = time.monotonic(), threading.Timer(at / 1000, kill)
if process == victim and at >= 0:
    timer.start()
common = {"sharding": mesh, "progress": job + ".progress", "report": tell}
if job == "embed":
    found = scale.embed(phi, X, block_size=5, out=np.load("features.npy", mmap_mode="r+"), **common)
    assert np.array_equal(found, scale.embed(phi, X, block_size=5))  # by one process, and at one go
elif job == "stream":
    pca = features.streaming_pca(phi, sketch_size=8, centered=True)
    found = scale.stream(pca, X, num_streams=4, block_size=5, **common)
else:
    found = scale.kmeans(jax.random.key(0), X, 12, num_restarts=4, tolerance=0.0, max_iterations=40, **common)
timer.cancel()
print("end", _resume.fingerprint(jax.tree.map(np.asarray, found)), int(1000 * (time.monotonic() - begun)), flush=True)
jax.distributed.shutdown()
"""
# Each process draws a map of its own, by mistake; then they share products.
STRANGERS = """
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
# Rows of a Gram product stay with their process, those of the other come by; also where types say how arrays lie.
X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
K = np.exp(-np.square(X[:, None].astype(float) - X[None]).sum(axis=2) / 2)
energy = lambda X, v: (v * gram.gram_matmul(kernels.Gaussian(1.0), X, None, v)).sum()
for kind in (jax.sharding.AxisType.Auto, jax.sharding.AxisType.Explicit):
    rows = jax.NamedSharding(jax.make_mesh((2,), ("rows",), axis_types=(kind,)), jax.P("rows"))
    points, v = (jax.make_array_from_callback(A.shape, rows, A.__getitem__) for A in (X, X[:, 0]))
    program = jax.jit(jax.value_and_grad(energy, (0, 1))).lower(points, v).compile()
    value, found = program(points, v)
    assert "collective-permute" in program.as_text()
    pairs = K * X[:, 0] * X[:, :1]
    np.testing.assert_allclose(value, pairs.sum(), rtol=1e-5)
    for part, exact in zip(found, (2 * (pairs @ X - pairs.sum(1)[:, None] * X), 2 * K @ X[:, 0]), strict=True):
        (mine,) = part.addressable_shards
        assert mine.data.shape[0] == 150
        np.testing.assert_allclose(mine.data, exact[mine.index], rtol=0, atol=1e-5 * np.abs(exact).max())
jax.distributed.shutdown()
"""


@pytest.fixture
def example(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "1")
    monkeypatch.setenv(
        "JAX_DISABLE_MOST_OPTIMIZATIONS",
        str(jax.config.read("jax_disable_most_optimizations")),
    )
    return runpy.run_path(EXAMPLE)


def run_both(folder, worker, job, victim=-1, at=0):
    """Return exit status, output, errors and the time of the end of both."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command, ends, begun = (
        [sys.executable, "-c", START + worker, address],
        {},
        time.monotonic(),
    )
    processes = [
        subprocess.Popen(
            [*command, str(i), str(victim), str(at), job],
            cwd=folder,
            stdout=-1,
            stderr=-1,
            text=True,
        )
        for i in range(2)
    ]
    try:
        while len(ends) < 2 and time.monotonic() < begun + 120:
            time.sleep(0.02)
            ends = {
                i: time.monotonic() for i in range(2) if processes[i].poll() is not None
            } | ends
        return [
            (processes[i].poll(), *processes[i].communicate(timeout=1), ends[i])
            for i in range(2)
        ]
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
    assert (
        float(one.weight)
        == float(two.weight)
        == len(X)
        == int(results["state"].sketch.num_rows)
    )
    np.testing.assert_allclose(
        one.eigenvalues, two.eigenvalues, rtol=0, atol=1e-4 * float(one.eigenvalues[0])
    )
    np.testing.assert_allclose(one.shrinkage, two.shrinkage, rtol=1e-3)

    clusters = kmeans(jax.random.key(0), Z, 2)
    np.testing.assert_array_equal(results["clusters"].labels, clusters.labels)
    np.testing.assert_allclose(
        results["clusters"].centers, clusters.centers, rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(
        results["clusters"].objective, clusters.objective, rtol=1e-5
    )

    # One process goes on with what two have left: nothing is left to do.
    calls, state = [], tmp_path / "clusters.progress"
    again = scale.kmeans(
        jax.random.key(0), Z, 2, progress=state, report=lambda *args: calls.append(args)
    )
    np.testing.assert_array_equal(again.labels, clusters.labels)
    assert calls == [] and int(again.iterations) == int(clusters.iterations)

    for method, chosen in zip(example["METHODS"], results["landmarks"], strict=True):
        options = {"num_landmarks": 20, "method": method, "kernel": example["KERNEL"]}
        np.testing.assert_array_equal(
            chosen, scale.landmarks(jax.random.key(1), X, **options)
        )


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("job", "moments"), [("embed", 1), *SLOW])
def test_killed_at_any_moment_a_job_loses_nothing_and_ends_with_the_same_bits(
    example, tmp_path, rng, job, moments
):
    """Also while it goes on: a job is begun anew when it has come to its end."""

    def anew():
        for path in tmp_path.glob("*.progress*"):
            path.unlink()
        example["prepare"](tmp_path)
        return [0, 0]

    reached, killed, waits, counts, bits, longest = anew(), 0, [], [], None, None
    while bits is None or killed < moments or any(reached):
        victim, at = -1 if killed else 1, -60
        if moments > 1:
            again = killed < moments and bits is not None
            victim, at = (
                (int(rng.integers(2)), int(rng.integers(longest))) if again else (-1, 0)
            )
        ends = run_both(tmp_path, KILLED, job, victim, at)
        told = [
            [int(line) for line in end[1].splitlines() if line.isdigit()]
            for end in ends
        ]
        killed += victim >= 0 and ends[victim][0] == -signal.SIGKILL
        for i, (code, out, error, end) in enumerate(ends):
            if killed and code not in (0, -signal.SIGKILL):
                waits.append(end - ends[victim][3])
            if "end" in out:  # the other may be killed when this one has all
                digest, took = out.split("end")[1].split()[:2]
                bits, longest = bits or digest, longest or int(took)
                assert bits == digest
            elif code != -signal.SIGKILL:
                # JAX ends it if the heartbeat of the other has been missing before both do something together.
                assert (
                    f"RuntimeError: process {i} of 2 could not" in error
                    or "another task died" in error
                ), error
            if told[i]:
                # A block is recorded before it is told; of two other states the last one may not have been kept.
                assert told[i][0] >= reached[i]
                reached[i] = told[i][-1] + 5 if job == "embed" else told[i][-2:][0]
        counts.append([len(each) for each in told])
        if ends[0][0] == ends[1][0] == 0:
            reached = anew()
    assert waits and max(waits) < 30
    assert moments > 1 or counts == [[200, 60], [0, 140]]  # nothing is computed again
    print(
        job,
        "killed",
        killed,
        "times; the other ended after at most",
        round(max(waits), 1),
        "s",
    )


def test_processes_with_maps_or_keys_of_their_own_are_told_so_and_a_gram_product_is_shared(
    example, tmp_path, monkeypatch
):
    monkeypatch.setenv("JAXKERN_TILE_SIDE", "64")
    ends = run_both(tmp_path, STRANGERS, "")
    assert [end[0] for end in ends] == [0, 0], ends
