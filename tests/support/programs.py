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
    tests = Path(__file__).resolve().parents[1]
    variables = {
        "JAX_NUM_CPU_DEVICES": str(devices),
        "PJRT_NPROC": "32",  # for several decompositions at once: see docs/design.md
        "JAX_PLATFORMS": "cpu",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}",
    }
    command = [sys.executable, "-c", STRICT + code]
    environment = os.environ | variables
    pipes = {"capture_output": True, "text": True}
    done = subprocess.run(
        command, env=environment, timeout=timeout, check=False, **pipes
    )
    assert done.returncode == 0, done.stderr


def work(program):
    """Return a Counter of one device: multiply-adds of matrix products, and numbers received by kind of collective.

    Of a condition the dearest branch counts, and of a loop with no known number of turns one turn.
    """
    bodies = {}
    main = None
    for line in program.as_text().splitlines():
        header = re.match(r"^(ENTRY )?(%\S+) \(.*\{$", line)
        instruction = LINE.match(line)
        if header:
            name = header[2]
            bodies[name] = []
            main = name if header[1] else main
        elif instruction and bodies:
            bodies[name].append(instruction.groups())
    return work_of(main, bodies)


def work_of(name, bodies):
    """Return what `work` says of the body of this name."""
    total = Counter()
    shapes = {}
    for result, shape, kind, rest in bodies[name]:
        shapes[result] = shape
        parts = re.findall(r"\[([\d,]*)\]", shape)
        numbers = sum(math.prod(sizes(part)) for part in parts)
        if kind == "dot":
            first = shapes[re.match(r"[^%]*(%[^\s,)]+)", rest)[1]]
            left = sizes(re.search(r"\[([\d,]*)\]", first)[1])
            axes = sizes(re.search(r"lhs_contracting_dims=\{([\d,]*)\}", rest)[1])
            total["multiply-adds"] += numbers * math.prod(left[axis] for axis in axes)
        elif kind in SENT.split("|"):
            total[kind] += numbers
        elif kind == "while":
            turns = re.search(r'"known_trip_count":\{"n":"(\d+)"', rest)
            body = work_of(re.search(r"body=(%[^\s,]+)", rest)[1], bodies)
            for key, value in body.items():
                total[key] += int(turns[1] if turns else 1) * value
        elif kind == "conditional":
            names = re.search(r"computations?=\{?([^}]*)", rest)[1]
            names = re.findall(r"%[^\s,}]+", names)
            branches = [work_of(branch, bodies) for branch in names]
            total.update(branches[0] | branches[-1])
        else:
            for called in re.findall(r"(?:calls|to_apply)=\{?(%[^\s,}]+)", rest):
                total.update(work_of(called, bodies))
    return total


def sizes(text):
    return [int(size) for size in text.split(",") if size]
