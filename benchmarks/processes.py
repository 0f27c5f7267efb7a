"""A Gram product by two processes against one, each on a core of its own: `python -m benchmarks.processes`.

Both are measured in turns, in fresh processes that make one product before those that are timed. Rows of the result are
compared with NumPy's in float64 first. Exit status: 0, 1 where two are less than 1.7 times as fast as one.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _machine

DIM, COLUMNS, SCALE, ROUNDS = 10, 1, 3.0, 3
AT_LEAST = 1.7


def work(address: str, count: int, index: int, n: int) -> None:
    """Do the share of one process and print its times."""
    import jax
    import numpy as np

    from benchmarks._case import agree
    from jaxkern import gram, kernels

    if count > 1:
        jax.distributed.initialize(
            address, num_processes=count, process_id=index, heartbeat_timeout_seconds=10
        )
    mesh = jax.make_mesh((count,), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    rows = jax.NamedSharding(mesh, jax.P("rows"))
    rng = np.random.default_rng(0)
    points, columns = (
        rng.normal(size=(n, width)).astype(np.float32) for width in (DIM, COLUMNS)
    )
    X, V = (
        jax.make_array_from_callback(A.shape, rows, A.__getitem__)
        for A in (points, columns)
    )
    product, times = (
        jax.jit(lambda X, V: gram.gram_matmul(kernels.Gaussian(SCALE), X, None, V)),
        [],
    )
    for _ in range(ROUNDS + 1):
        start = time.perf_counter()
        found = jax.block_until_ready(product(X, V))
        times.append(time.perf_counter() - start)
    mine = found.addressable_shards[0]
    few = points[mine.index[0]][:5].astype(float)
    K = np.exp(-np.square(few[:, None] - points[None]).sum(axis=2) / (2 * SCALE**2))
    agree(
        "difference from float64",
        np.abs(mine.data[:5] - K @ columns).max() / n**0.5,
        1e-4,
    )
    print(json.dumps(times[1:]))
    if count > 1:
        jax.distributed.shutdown()


def measure(count: int, n: int) -> float:
    """Return the median of the times of so many processes, each on a core of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    alone = {"JAX_NUM_CPU_DEVICES": "1", "JAX_PLATFORMS": "cpu"} | dict.fromkeys(
        _machine.LIBRARIES, "1"
    )
    processes = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.processes",
                "--work",
                address,
                str(count),
                str(i),
                str(n),
            ],
            cwd=Path(__file__).resolve().parents[1],
            env=os.environ | alone,
            stdout=subprocess.PIPE,
            text=True,
        )
        for i in range(count)
    ]
    for process, core in zip(processes, sorted(_machine.available()), strict=False):
        os.sched_setaffinity(process.pid, {core})
    try:
        found = [
            process.communicate(timeout=1200)[0].splitlines()[-1:]
            for process in processes
        ]  # after those of Gloo
    finally:
        for process in processes:
            process.kill()  # jax.distributed takes no notice of gentler signals
    if any(process.returncode for process in processes):
        raise SystemExit("a process failed")
    return statistics.median(
        max(both) for both in zip(*[json.loads(line) for (line,) in found], strict=True)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Print the times and the ratio of their medians."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.processes", description=__doc__
    )
    parser.add_argument(
        "--points", type=int, default=50_000, help="n (default: 50,000)"
    )
    parser.add_argument(
        "--turns", type=int, default=3, help="how often both are started (default: 3)"
    )
    parser.add_argument("--work", nargs=4, help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.work:
        work(options.work[0], *map(int, options.work[1:]))
        return 0
    pairs = [
        [measure(count, options.points) for count in (1, 2)]
        for _ in range(options.turns)
    ]
    one, two = map(statistics.median, zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"n = {options.points}: one process {one:.3f} s, two {two:.3f} s, {ratio:.2f} times as fast"
    )
    return int(ratio < AT_LEAST)


if __name__ == "__main__":
    sys.exit(main())
