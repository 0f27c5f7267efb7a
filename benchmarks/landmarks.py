"""Landmarks of a file larger than the memory that they may take: seconds, passes and the peak of anonymous memory."""

import argparse
import collections
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import _machine

METHODS = ("uniform", "kmeans||", "pivoted_cholesky", "leverage")


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each method, and return 0, or 1 where one took a gigabyte or more."""
    parser = argparse.ArgumentParser(
        "python -m benchmarks.landmarks", description=__doc__
    )
    parser.add_argument(
        "--rows",
        type=int,
        default=16_700_000,
        help="of 4 bytes times --dim (default: 4.3 GB)",
    )
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--landmarks", type=int, default=200)
    parser.add_argument(
        "--lengthscale",
        type=float,
        default=8.0,
        help="with longer ones pivots take more passes",
    )
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument(
        "--file", type=Path, help="float32 points in an .npy file (default: made anew)"
    )
    options = parser.parse_args(argv)
    _machine.restrict(min(2, len(_machine.available())))
    with tempfile.TemporaryDirectory() as folder:
        return _run(options, Path(folder))


def _run(options: argparse.Namespace, folder: Path) -> int:
    import jax
    import numpy as np

    from benchmarks.growth import write
    from jaxkern.kernels import Gaussian
    from jaxkern.scale import landmarks

    made = (
        None
        if options.file
        else write(folder / "points.npy", options.rows, options.dim)
    )
    X, kernel, status = (
        np.load(options.file, mmap_mode="r") if made is None else made,
        Gaussian(options.lengthscale),
        0,
    )
    for method in options.methods:
        ends, begun = collections.Counter(), time.perf_counter()
        choice = {
            "num_landmarks": options.landmarks,
            "method": method,
            "kernel": kernel,
        }
        with _machine.peak_memory() as peak:
            found = landmarks(
                jax.random.key(0),
                X,
                report=lambda *now, to=ends: to.update([now]),
                **choice,
            )
            jax.block_until_ready(found)
        seconds, passes, most = (
            time.perf_counter() - begun,
            ends[len(X), len(X)],
            (peak.absolute or 0) / 1e6,
        )
        status |= int(most >= 1000)
        print(
            f"{method:<18}{X.nbytes / 1e9:6.2f} GB{seconds:9.1f} s{passes:7d} passes{most:7.0f} MB",
            flush=True,
        )
    return status


if __name__ == "__main__":
    sys.exit(main())
