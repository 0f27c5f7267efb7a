"""What a compiled program computes and sends, read from its text; and a process of its own that has many devices."""

import math
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SENT = "all-gather|all-reduce|all-to-all|collective-broadcast|collective-permute|reduce-scatter"
LINE = re.compile(
    rf"^ *(?:ROOT )?(%\S+) = (.*?) ({SENT}|[a-z][\w-]*)(?:-start)?\((.*)$"
)


STRICT = """
import itertools, jax, jax.numpy as jnp, numpy as np
from functools import partial
from jax.sharding import AxisType, NamedSharding, PartitionSpec
for name in ("debug_key_reuse", "disable_most_optimizations"):
    jax.config.update(f"jax_{name}", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")
"""


def assert_runs(code, devices, timeout):
    """Run code after `STRICT` in a process with so many devices of a CPU."""
    # Threads for several decompositions at once: see docs/design.md.
    variables = {
        "JAX_NUM_CPU_DEVICES": str(devices),
        "PJRT_NPROC": "32",
        "JAX_PLATFORMS": "cpu",
    }
    tests = Path(__file__).resolve().parents[1]
    variables |= {
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}",
    }
    command, environment = [sys.executable, "-c", STRICT + code], os.environ | variables
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def work(program):
    """Return a Counter of one device: multiply-adds of matrix products, and numbers received by kind of collective.

    Of a condition the dearest branch counts, and of a loop with no known number of turns one turn.
    """
    bodies, own, main = {}, None, None
    for line in program.as_text().splitlines():
        if header := re.match(r"^(ENTRY )?(%\S+) \(.*\{$", line):
            own, main = (
                bodies.setdefault(header[2], []),
                header[2] if header[1] else main,
            )
        elif own is not None and (found := LINE.match(line)):
            own.append(found.groups())

    def of(name):
        total, shapes = Counter(), {}
        for result, shape, kind, rest in bodies[name]:
            shapes[result] = shape
            numbers = sum(
                math.prod(sizes(one)) for one in re.findall(r"\[([\d,]*)\]", shape)
            )
            if kind == "dot":
                left = sizes(
                    re.search(
                        r"\[([\d,]*)\]", shapes[re.match(r"[^%]*(%[^\s,)]+)", rest)[1]]
                    )[1]
                )
                over = sizes(re.search(r"lhs_contracting_dims=\{([\d,]*)\}", rest)[1])
                total["multiply-adds"] += numbers * math.prod(
                    left[axis] for axis in over
                )
            elif kind in SENT.split("|"):
                total[kind] += numbers
            elif kind == "while":
                turns = re.search(r'"known_trip_count":\{"n":"(\d+)"', rest)
                inner = of(re.search(r"body=(%[^\s,]+)", rest)[1])
                total.update(
                    {
                        key: (int(turns[1]) if turns else 1) * value
                        for key, value in inner.items()
                    }
                )
            elif kind == "conditional":
                inner = [
                    of(one)
                    for one in re.findall(
                        r"%[^\s,}]+", re.search(r"computations?=\{?([^}]*)", rest)[1]
                    )
                ]
                total.update(inner[0] | inner[-1])
            else:
                for one in re.findall(r"(?:calls|to_apply)=\{?(%[^\s,}]+)", rest):
                    total.update(of(one))
        return total

    return of(main)


def sizes(text):
    return [int(size) for size in text.split(",") if size]
