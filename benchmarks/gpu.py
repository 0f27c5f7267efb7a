"""Times on one accelerator, against what it can do at most and against PyTorch: `python -m benchmarks.gpu --help`.

Two numbers are measured first: the rate of a product of float32 matrices in full precision, and that of a copy in
memory. Work of so many operations on so many bytes takes at least the larger of operations / rate and bytes / rate,
its limit. Operations are those of matrix products (2 for a multiplication and an addition) and of decompositions
(4/3 n^3, their first half); exponentials and cosines count as nothing. Bytes are those of the arguments and of the
result, once each. So no method can reach every limit, and one far above it says where time goes.
"""

import argparse
import gc
import importlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import _machine
from benchmarks._case import Disagreement, Run, agree
from benchmarks._data import difference
from benchmarks._gpu_work import FLOAT, GRAMS, HIGHEST, WORK, gram_product
from benchmarks._report import seconds

SCHEMA = 2
SIDES = (1024, 2048, 4096, 8192, 16384)
"""Sides of a tile that are tried."""


def median(
    function: Run,
    rounds: int,
    least: float,
    wait: Callable[[Any], Any] = jax.block_until_ready,
) -> float:
    """Return the seconds of a call: the median over rounds of as many calls as take `least` seconds together.

    A call of more than a second is timed twice, and the quicker one counts.
    """

    def several(count: int) -> float:
        start = time.perf_counter()
        for _ in range(count):
            result = function()
        wait(result)
        return (time.perf_counter() - start) / count

    several(1)  # compiles
    once = several(1)
    if once > 1:
        return min(once, several(1))
    count = min(max(math.ceil(least / once), 1), 100)
    return statistics.median(several(count) for _ in range(rounds))


def rates(small: bool, rounds: int, least: float) -> tuple[float, float]:
    """Return operations a second of a product of float32 matrices in full precision, and bytes a second of a copy."""
    n, size = (256, 2**20) if small else (8192, 2**28)
    A, x = jnp.ones((n, n), jnp.float32), jnp.ones(size, jnp.float32)
    product = jax.jit(lambda A: jnp.matmul(A, A, precision=HIGHEST))
    copy = jax.jit(lambda x: x + 1)
    by_product = 2 * n**3 / median(lambda: product(A), rounds, least)
    return by_product, 2 * FLOAT * size / median(lambda: copy(x), rounds, least)


def run(
    name: str,
    small: bool,
    limits: tuple[float, float],
    torch: Any,
    rounds: int,
    least: float,
) -> dict[str, Any]:
    """Time one kind of work; where torch finds other numbers, the result says so under `error` and has no times."""
    work = WORK[name](small)
    result: dict[str, Any] = {
        "name": name,
        "operations": work.operations,
        "bytes": work.traffic,
        "note": work.note,
    }
    theirs = None
    if torch is not None and work.theirs is not None:
        module, device, wait = torch
        theirs = work.theirs(
            module, lambda X: module.from_numpy(np.array(X)).to(device)
        )
        if work.keep is not None:
            wanted = work.keep(theirs())
            wanted = (
                (wanted.detach() if hasattr(wanted, "detach") else wanted).cpu().numpy()
            )
            try:
                found = difference(work.keep(work.ours()), wanted)
                result |= agree("difference from torch", found, work.limit)
            except Disagreement as error:
                return result | {"error": str(error)}
    took = median(work.ours, rounds, least)
    limit = max(work.operations / limits[0], work.traffic / limits[1])
    result |= {
        "seconds": took,
        "flops": work.operations / took,
        "bandwidth": work.traffic / took,
    }
    result |= {"limit_s": limit, "over_limit": took / limit, "torch_s": None}
    if theirs is not None:
        result["torch_s"] = median(theirs, rounds, least, wait)
    return result


def tiles(small: bool, rounds: int, least: float) -> list[dict[str, Any]]:
    """Time products with Gram matrices at several sides of a tile."""
    found: list[dict[str, Any]] = []
    for name, shape in [each for each in GRAMS.items() if each[1][0] == 10**5]:
        for side in SIDES[:1] if small else SIDES:
            took = median(gram_product(*shape, small, side).ours, rounds, least)
            found.append({"name": name, "side": side, "seconds": took})
            print(f"{name}, tiles of {side}: {seconds(took)}", flush=True)
    return found


def with_torch(device: Any) -> tuple[Any, str, Callable[[Any], Any]] | None:
    """Return torch, the name of the same device there, and what waits for it; None where torch cannot use it."""
    try:
        torch = importlib.import_module("torch")
    except ImportError:
        return None
    if device.platform == "cpu":
        return torch, "cpu", lambda _: None
    if device.platform != "gpu" or not torch.cuda.is_available():
        return None
    torch.backends.cuda.matmul.allow_tf32 = False  # float32 is meant
    return torch, "cuda", lambda _: torch.cuda.synchronize()


def table(document: Mapping[str, Any]) -> str:
    """Return the document as Markdown."""
    card, versions = document["accelerator"], document["versions"]
    named = ", ".join(
        f"{name} {version}" for name, version in versions.items() if version
    )
    out = [
        f"{card['kind']}; {named}; {document['date'][:10]}. Products of float32 matrices in full precision: "
        f"{card['flops'] / 1e12:.3g} TFLOP/s; copies: {card['bandwidth'] / 1e9:.4g} GB/s."
        + (
            " Sizes of the smoke test: these times mean nothing."
            if document["small"]
            else ""
        ),
        "",
        "| work | time | TFLOP/s | GB/s | limit | times the limit | torch | times faster |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for each in document["work"]:
        if "error" in each:
            out.append(
                f"| {each['name']} | not compared: {each['error']} | | | | | | |"
            )
            continue
        theirs = each["torch_s"]
        cells = [each["name"], seconds(each["seconds"]), f"{each['flops'] / 1e12:.3g}"]
        cells += [
            f"{each['bandwidth'] / 1e9:.4g}",
            seconds(each["limit_s"]),
            f"{each['over_limit']:.3g}",
        ]
        said = "" if theirs is None else seconds(theirs)
        cells += [", ".join(word for word in (said, each["note"]) if word)]
        cells += ["" if theirs is None else f"{theirs / each['seconds']:.3g}"]
        out.append(f"| {' | '.join(cells)} |")
    return "\n".join(out) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status."""
    options = _parser().parse_args(argv)
    os.environ.setdefault(
        "XLA_PYTHON_CLIENT_PREALLOCATE", "false"
    )  # torch needs memory, too
    try:
        device = jax.devices(options.platform)[0]
    except RuntimeError:
        print(
            f"benchmarks.gpu: JAX finds no {options.platform} here; nothing was measured",
            file=sys.stderr,
        )
        return 2
    rounds, least = (2, 0.0) if options.small else (7, 0.2)
    torch = with_torch(device)
    with jax.default_device(device):
        limits = rates(options.small, rounds, least)
        document = {
            "schema": SCHEMA,
            "small": options.small,
            **_machine.describe(),
            "work": [],
        }
        document["accelerator"] = {
            "kind": device.device_kind,
            "flops": limits[0],
            "bandwidth": limits[1],
        }
        document["versions"]["torch"] = None if torch is None else torch[0].__version__
        for name in options.work or WORK:
            document["work"].append(
                run(name, options.small, limits, torch, rounds, least)
            )
            print(
                table({**document, "work": document["work"][-1:]}).splitlines()[-1],
                flush=True,
            )
            gc.collect()
        if options.tiles:
            document["tiles"] = tiles(options.small, rounds, least)
    print(f"\n{table(document)}")
    if options.json:
        options.json.write_text(json.dumps(document, indent=1, allow_nan=False) + "\n")
    if options.table:
        options.table.write_text(table(document))
    return int(any("error" in each for each in document["work"]))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m benchmarks.gpu", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = (
        "Exit status: 0, 1 where torch found other numbers, 2 without the device."
    )
    parser.add_argument(
        "--work",
        nargs="+",
        choices=tuple(WORK),
        metavar="NAME",
        help=f"of {', '.join(WORK)}",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write everything that was measured"
    )
    parser.add_argument("--table", type=Path, metavar="FILE", help="write Markdown")
    parser.add_argument(
        "--platform", choices=("gpu", "tpu", "cpu"), default="gpu", help="default: gpu"
    )
    parser.add_argument(
        "--tiles", action="store_true", help="products at several sides of a tile, too"
    )
    parser.add_argument(
        "--small", action="store_true", help="tiny sizes, to see that everything runs"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
