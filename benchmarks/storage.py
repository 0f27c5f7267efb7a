"""Landmarks of a file that is larger than the memory they may take: seconds, passes and the peak of anonymous memory.

`python -m benchmarks.storage [--rows N] [--dim D] [--landmarks N] [--lengthscale S] [--methods NAME ...]
[--file FILE]`. The file is made anew, in a temporary folder, unless it is given.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import _machine

METHODS = ("uniform", "kmeans||", "pivoted_cholesky", "leverage")


class Counted:
    """Points in a file, and how many rows of it were read."""

    def __init__(self, X: Any) -> None:
        """Read nothing yet."""
        self.X, self.shape, self.dtype, self.read = X, X.shape, X.dtype, 0

    def __getitem__(self, rows: slice) -> Any:
        """Read the rows, and count them."""
        import numpy as np

        block = np.array(self.X[rows])
        self.read += len(block)
        return block


def main(argv: Sequence[str] | None = None) -> int:
    """Print a line for each method, and return 0, or 1 where one took a gigabyte or more."""
    parser = argparse.ArgumentParser("python -m benchmarks.storage", description=__doc__)
    parser.add_argument("--rows", type=int, default=16_700_000, help="of 4 bytes times --dim (default: 4.3 GB)")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--landmarks", type=int, default=200)
    parser.add_argument("--lengthscale", type=float, help="of the Gaussian; with longer ones pivots take more passes")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=METHODS)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--file", type=Path, help="float32 points (rows, dim) in an .npy file")
    options = parser.parse_args(argv)
    _machine.restrict(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        return _run(options, Path(folder))


def _run(options: argparse.Namespace, folder: Path) -> int:
    import jax
    import numpy as np

    from benchmarks._data import lengthscale
    from benchmarks.growth import _file
    from jaxkern.kernels import Gaussian
    from jaxkern.scale import landmarks

    if options.file is None:
        X = _file(folder / "points.npy", options.rows, options.dim)
    else:
        X = np.load(options.file, mmap_mode="r")
    status = 0
    for method in options.methods:
        kernel = None if method in METHODS[:2] else Gaussian(options.lengthscale or lengthscale(X.shape[1]))
        points, begun = Counted(X), time.perf_counter()
        with _machine.peak_memory() as peak:
            chosen = landmarks(jax.random.key(0), points, num_landmarks=options.landmarks, method=method, kernel=kernel)
            jax.block_until_ready(chosen)
        seconds, passes = time.perf_counter() - begun, points.read / len(X)
        most = "unknown" if peak.absolute is None else f"{peak.absolute / 1e6:.0f} MB"
        status |= int((peak.absolute or 0) >= 1e9)
        print(f"{method:<18} {X.nbytes / 1e9:.2f} GB {seconds:8.1f} s {passes:6.2f} passes {most:>9}", flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main())
