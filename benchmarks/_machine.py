"""The machine: how many threads everything may use, what it is, and the memory that a call takes.

Imports neither NumPy nor JAX at the top: `restrict` works only before they start their threads.
"""

import ctypes
import datetime
import importlib.metadata
import os
import platform
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

PACKAGES = (
    "jaxkern-verified",
    "jax",
    "jaxlib",
    "numpy",
    "scipy",
    "scikit-learn",
    "threadpoolctl",
)
LIBRARIES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "NPROC",
)


def large_pages() -> None:
    """Start this program again with a C library that asks for large pages, as NumPy does for its own arrays.

    Elsewhere a result in fresh memory costs more than its numbers. Nothing happens where GLIBC_TUNABLES is set.
    """
    if sys.platform == "linux" and "GLIBC_TUNABLES" not in os.environ:
        os.environ["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


def restrict(threads: int) -> None:
    """Give every library the same number of threads, and the process as many cores.

    Raises RuntimeError where NumPy or JAX runs already, and ValueError where there are fewer cores.
    """
    if "numpy" in sys.modules or "jax" in sys.modules:
        raise RuntimeError(
            "threads are set when NumPy and JAX are loaded, which has happened; start a new process"
        )
    cores = sorted(available())
    if not 1 <= threads <= len(cores):
        raise ValueError(
            f"threads must be between 1 and the {len(cores)} cores of this process, got {threads}"
        )
    for name in LIBRARIES:
        os.environ[name] = str(threads)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # the peers run there
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, cores[:threads])  # XLA makes one thread a core


def available() -> set[int]:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return os.sched_getaffinity(0)
    return set(range(os.cpu_count() or 1))


def threads() -> int:
    """Return how many threads each library uses."""
    return int(os.environ.get("NPROC") or len(available()))


def describe() -> dict[str, Any]:
    """Return device, versions and date, for the JSON file."""
    import jax
    import threadpoolctl

    pools = [
        {
            key: pool.get(key)
            for key in ("internal_api", "version", "num_threads", "architecture")
        }
        for pool in threadpoolctl.threadpool_info()
    ]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "device": {
            "processor": _processor(),
            "cores": len(available()),
            "threads": threads(),
            "jax": [
                f"{device.platform}: {device.device_kind}" for device in jax.devices()
            ],
            "pools": pools,
            "malloc": os.environ.get("GLIBC_TUNABLES"),
            "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        },
        "versions": {
            "python": platform.python_version(),
            **{name: _version(name) for name in PACKAGES},
        },
    }


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(
                line.split(":", 1)[1].strip()
                for line in lines
                if line.startswith("model name")
            )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def anonymous_bytes() -> int | None:
    """Return the resident memory of this process that no file backs; None where the system does not tell."""
    try:
        with open("/proc/self/status") as lines:
            return next(
                1024 * int(line.split()[1])
                for line in lines
                if line.startswith("RssAnon:")
            )
    except (OSError, StopIteration):
        return None


class Peak:
    """The most anonymous memory seen: `absolute`, and `added` to what was there before. None where unknown."""

    def __init__(self) -> None:
        """Look at the memory now, after what was freed is given back to the system."""
        with suppress(
            OSError, AttributeError
        ):  # with another C library freed memory may count as used
            ctypes.CDLL(None).malloc_trim(0)
        self.before = self.absolute = anonymous_bytes()

    @property
    def added(self) -> int | None:
        """How far the peak was above the start."""
        return (
            None
            if self.absolute is None or self.before is None
            else self.absolute - self.before
        )

    def look(self) -> None:
        """Take the memory now into account."""
        if self.absolute is not None:
            self.absolute = max(self.absolute, anonymous_bytes() or 0)


@contextmanager
def peak_memory() -> Iterator[Peak]:
    """Watch the memory from a second thread while the block runs."""
    peak, over = Peak(), threading.Event()

    def watch() -> None:
        while not over.wait(0.002):
            peak.look()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield peak
        peak.look()
    finally:
        over.set()
        watcher.join()
