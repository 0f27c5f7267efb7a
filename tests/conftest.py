"""Strict switches for the whole suite, and the fixtures that every module shares."""

import contextlib
import ctypes
import gc
import itertools
import os
import threading
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "cpu" not in (os.environ["JAX_PLATFORMS"] or "cpu"):
    os.environ["JAX_PLATFORMS"] += ",cpu"  # some tests need devices of a CPU, too
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Small decompositions are slower if they are spread over cores.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# Two decompositions at once may wait for ever in a pool with a thread for each core.
os.environ.setdefault("PJRT_NPROC", "32")
# Runs of the command leave the user's own cache alone.
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")
# Programs need not say which line they came from.
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")

import jax
import jaxlib
import numpy as np
import pytest
from hypothesis import settings

PLATFORMS = jax.config.jax_platforms
ON_CPU = PLATFORMS == "cpu"
# For the processes that tests start: this one alone has an accelerator.
os.environ["JAX_PLATFORMS"] = "cpu"

QUICK_TO_COMPILE = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
AS_USERS = jax.make_user_context(False)
"""Keeps programs with and without optimisations apart: what compiled one is not asked for the other."""

TESTS = itertools.count(1)
CONTEXTS = threading.local()

jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")

settings.register_profile(
    "quick", max_examples=6, deadline=None, derandomize=True, database=None
)
settings.register_profile(
    "fresh", max_examples=200, deadline=None, database=None, print_blob=True
)
settings.load_profile("quick")  # --hypothesis-profile=fresh comes later, and wins


def pytest_addoption(parser):
    parser.addoption(
        "--float64",
        action="store_true",
        help="run all tests of jaxkern in double precision",
    )


@pytest.hookimpl(wrapper=True)  # before that of xdist
def pytest_cmdline_main(config):
    if not ON_CPU:
        # Whatever -n says: one process has the accelerator, and its memory.
        config.option.numprocesses = 0
    return (yield)


def pytest_sessionstart():
    # JAX does not complain where cuda is missing.
    if PLATFORMS and not ON_CPU and jax.default_backend() == "cpu":
        raise pytest.UsageError(
            f"JAX_PLATFORMS={PLATFORMS}, and JAX finds only a CPU; nothing was tested"
        )


def share_contexts():
    """Build all programs of a thread in one context of MLIR; JAX makes one for each, which took a twelfth of the run.

    The programs are the same; where JAX has no such function, as it promises none, nothing is shared.
    """
    with contextlib.suppress(ImportError, AttributeError):
        from jax._src.interpreters import mlir

        make = mlir.make_ir_context

        def context():
            CONTEXTS.own = getattr(CONTEXTS, "own", None) or make()
            return CONTEXTS.own

        mlir.make_ir_context = context


def pytest_configure(config):
    # To look for cycles as often as Python does took a tenth of the run.
    gc.set_threshold(20_000, 20, 50)
    share_contexts()
    # Compiling takes most of the default run; the long tests have more to compute than to compile.
    is_quick = ON_CPU and config.getoption("markexpr") == "not slow"
    jax.config.update("jax_disable_most_optimizations", is_quick)
    jax.config.update("jax_debug_key_reuse", not is_quick)
    # XLA aborts at flags that other versions do not know.
    if is_quick and jaxlib.__version__.startswith("0.10."):
        os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)
    config.addinivalue_line("filterwarnings", "error")


def pytest_collection_finish():
    """Look for cycles among what tests make, not among tests and modules as well."""
    gc.collect()
    gc.freeze()


def fills_memory():
    """Tell whether a process has more than its share of half the memory of the machine, or than 4 GiB, at least 2.

    Or more than half of the mappings that the system allows it: a program takes three, and XLA aborts without any left.
    """
    pages = Path("/proc/self/statm")
    limit = Path("/proc/sys/vm/max_map_count")
    if not pages.exists():
        return False
    if limit.exists():
        mappings = Path("/proc/self/maps").read_bytes().count(b"\n")
        if 2 * mappings > int(limit.read_text()):
            return True
    page = os.sysconf("SC_PAGE_SIZE")
    memory = os.sysconf("SC_PHYS_PAGES") * page
    share = memory // 2 // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    resident = int(pages.read_text().split()[1]) * page
    return resident > min(max(share, 2**31), 2**32)


@pytest.fixture(autouse=True)
def little_memory():
    """Let compiled programs go now and then if they fill memory: the slow contract alone has too many to map.

    Not after every test: to look takes 10 ms, to let go seconds, and modules share the programs of single steps.
    """
    yield
    if next(TESTS) % 50 == 0 and fills_memory():
        jax.clear_caches()
        CONTEXTS.own = None
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free goes back to the system


@pytest.fixture(autouse=True)
def precision(request):
    """Run a test in double precision if it or its module is marked `float64`, and any of jaxkern with --float64."""
    is_double = request.node.get_closest_marker("float64") or (
        request.config.getoption("float64") and "jaxkern" in request.path.parts
    )
    with jax.enable_x64(True) if is_double else contextlib.nullcontext():
        yield


def of_module(request, marker):
    return any(marker == mark.name for mark in request.node.iter_markers())


@pytest.fixture(scope="module", autouse=True)
def watched(request):
    """Refuse keys that are used twice in modules marked `watches_keys`, as in the slow run everywhere.

    In all modules it took a tenth of the time, since it traces every call anew.
    """
    watches = jax.config.jax_debug_key_reuse or of_module(request, "watches_keys")
    with jax.debug_key_reuse(watches):
        yield


@pytest.fixture(scope="module", autouse=True)
def optimised(request):
    """Compile modules marked `optimised` with the optimisations that users have."""
    is_quick = jax.config.read("jax_disable_most_optimizations")
    if not is_quick or not of_module(request, "optimised"):
        yield
        return
    jax.config.update("jax_disable_most_optimizations", False)
    AS_USERS.set_global(True)
    yield
    AS_USERS.set_global(False)
    jax.config.update("jax_disable_most_optimizations", True)


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    """Run the test in single and in double precision."""
    with jax.enable_x64(request.param == "float64"):
        yield np.dtype(request.param)


@pytest.fixture
def x64():
    """Run the test in double precision."""
    with jax.enable_x64(True):
        yield


@pytest.fixture
def own_precision():
    """Restore the precision of the process after a test of the command, which sets it."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)


@pytest.fixture
def few_patients(monkeypatch):
    """Leave 150 of the 569 rows of a table of scikit-learn to what loads it: a search on them takes half the time."""
    from sklearn import datasets, utils

    table = datasets.load_breast_cancer()
    few = {word: table[word][:150] for word in ("data", "target")}
    bunch = utils.Bunch(**table | few)
    monkeypatch.setattr(datasets, "load_breast_cancer", lambda: bunch)


@pytest.fixture
def rng():
    """Return a NumPy generator with a fixed seed: tests are deterministic."""
    return np.random.default_rng(20200)
