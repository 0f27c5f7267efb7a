"""Strict switches for the whole suite, and the fixtures that every module shares."""

import contextlib
import ctypes
import gc
import itertools
import os
import threading
import zlib
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "cpu" not in (os.environ["JAX_PLATFORMS"] or "cpu"):
    os.environ["JAX_PLATFORMS"] += ",cpu"  # some tests need devices of a CPU, too
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault(
    "OPENBLAS_NUM_THREADS", "1"
)  # small decompositions are slower when spread over cores
os.environ.setdefault(
    "PJRT_NPROC", "32"
)  # two decompositions at once may wait for ever in a pool of a thread a core
os.environ.setdefault(
    "JAX_ENABLE_COMPILATION_CACHE", "false"
)  # runs of the command leave the user's own cache alone
os.environ.setdefault(
    "JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0"
)  # programs need not say which line they came from

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest
from hypothesis import settings

PLATFORMS = jax.config.jax_platforms
ON_CPU = PLATFORMS == "cpu"
os.environ["JAX_PLATFORMS"] = (
    "cpu"  # for the processes that tests start: this one alone has an accelerator
)

QUICK_TO_COMPILE = (
    "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
AS_USERS_COMPILE = {
    *(
        "jaxkern/test_composition",
        "jaxkern/test_learn",
        "jaxkern/test_rkhs",
        "jaxkern/bounds/test_concentration",
    ),
    *(
        "jaxkern/bounds/test_sketching",
        "jaxkern/features/test_preimage",
        "jaxkern/features/test_standardized",
    ),
    *(
        "jaxkern/kernels/test_bandwidth",
        "jaxkern/linalg/test_dense",
        "jaxkern/measures/test_measures",
    ),
    *("jaxkern/scale/test_scale", "certify/test_time", "engine/test_draws"),
    "papers/chen2016/test_claims",
}
"""Modules whose programs are optimised in the quick run, too, as all are in the slow one: cheap ones of most packages.
The command, where tests start it, optimises as for users, but for the flags above, which it inherits."""
AS_USERS = jax.make_user_context(False)
"""Keeps programs with and without optimisations apart: what compiled one is not asked for the other."""

WATCHES_KEYS = {"jaxkern/test_contract", "jaxkern/features/test_map"}
"""Modules where a key that is used twice is an error in the quick run, too, as it is in the slow one: they call all
that is public. Elsewhere the watch took a tenth of the time, since it traces every call anew."""

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
settings.load_profile(
    "quick"
)  # --hypothesis-profile=fresh comes later, and goes before


def pytest_addoption(parser):
    parser.addoption(
        "--float32",
        action="store_true",
        help="run the property modules in single precision",
    )
    parser.addoption(
        "--float64",
        action="store_true",
        help="run all tests of jaxkern in double precision",
    )


@pytest.hookimpl(wrapper=True)  # before that of xdist
def pytest_cmdline_main(config):
    if not ON_CPU:
        config.option.numprocesses = (
            0  # whatever -n says: one process has the accelerator, and its memory
        )
    return (yield)


def pytest_sessionstart():
    if (
        PLATFORMS and not ON_CPU and jax.default_backend() == "cpu"
    ):  # JAX does not complain where cuda is missing
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
    gc.set_threshold(
        20_000, 20, 50
    )  # to look for cycles as often as Python does took a tenth of the run
    share_contexts()
    # Compiling takes most of the default run; the long tests have more to compute than to compile.
    is_quick = ON_CPU and config.getoption("markexpr") == "not slow"
    jax.config.update("jax_disable_most_optimizations", is_quick)
    jax.config.update("jax_debug_key_reuse", not is_quick)
    if is_quick and jaxlib.__version__.startswith(
        "0.10."
    ):  # XLA aborts at flags that other versions do not know
        os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)
    config.addinivalue_line("filterwarnings", "error")


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their markers
def pytest_collection_modifyitems(items):
    """Run one precision of a test by default, which alternates over tests and the values of their other parameters.

    Each test and each value runs by default, each with each precision in the slow run: two precisions are two programs.
    """
    grids = {}
    for item in items:
        if (
            precision := getattr(getattr(item, "callspec", None), "params", {}).get(
                "dtype"
            )
        ) in ("float32", "float64"):
            others = grids.setdefault(item.nodeid.partition("[")[0], {})
            others.setdefault(item.callspec.id.replace(precision, ""), {})[
                precision
            ] = item
    for name, others in grids.items():
        for place, own in enumerate(
            others.values(), zlib.crc32(name.rpartition(":")[2].encode())
        ):
            if len(own) == 2:
                own[("float32", "float64")[place % 2]].add_marker(pytest.mark.slow)


def pytest_collection_finish():
    """Look for cycles among what tests make, not among tests and modules as well."""
    gc.collect()
    gc.freeze()


def fills_memory():
    """Tell whether a process has more than its share of half the memory of the machine, or than 4 GiB, at least 2.

    Or more than half of the mappings that the system allows it: a program takes three, and XLA aborts without any left.
    """
    pages, most = Path("/proc/self/statm"), Path("/proc/sys/vm/max_map_count")
    if not pages.exists():
        return False
    if most.exists() and 2 * Path("/proc/self/maps").read_bytes().count(b"\n") > int(
        most.read_text()
    ):
        return True
    page = os.sysconf("SC_PAGE_SIZE")
    share = (
        os.sysconf("SC_PHYS_PAGES")
        * page
        // 2
        // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", 1))
    )
    return int(pages.read_text().split()[1]) * page > min(max(share, 2**31), 2**32)


@pytest.fixture(autouse=True)
def little_memory():
    """Let compiled programs go now and then, where they fill memory: the slow contract alone has too many to map.

    Not after every test: to look takes 10 ms, to let go seconds, and modules share the programs of single steps.
    """
    yield
    if next(TESTS) % 50 == 0 and fills_memory():
        jax.clear_caches()
        CONTEXTS.own = None
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free goes back to the system


@pytest.fixture(scope="module")
def module_name(request):
    """Return the name that the sets above have for a module."""
    return request.path.relative_to(Path(__file__).parent).with_suffix("").as_posix()


@pytest.fixture(scope="module", autouse=True)
def watched(module_name):
    """Refuse keys that are used twice in the modules named above."""
    with jax.debug_key_reuse(
        jax.config.jax_debug_key_reuse or module_name in WATCHES_KEYS
    ):
        yield


@pytest.fixture(scope="module", autouse=True)
def optimised(module_name):
    """Compile the modules named above with the optimisations that users have."""
    if (
        not jax.config.read("jax_disable_most_optimizations")
        or module_name not in AS_USERS_COMPILE
    ):
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
    name = request.param
    with jax.enable_x64(name == "float64"):
        yield jnp.dtype(name)


@pytest.fixture(scope="module")
def double_precision(request):
    """Run a module in double precision on a CPU, elsewhere or with --float32 in single."""
    with jax.enable_x64(ON_CPU and not request.config.getoption("float32")):
        yield


@pytest.fixture(autouse=True)
def precision(request):
    """Run a test in double precision if it or its module is marked `float64`, and any of jaxkern with --float64."""
    is_double = request.node.get_closest_marker("float64") or (
        request.config.getoption("float64") and "jaxkern" in request.path.parts
    )
    with jax.enable_x64(True) if is_double else contextlib.nullcontext():
        yield


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
    few = utils.Bunch(
        **table | {word: table[word][:150] for word in ("data", "target")}
    )
    monkeypatch.setattr(datasets, "load_breast_cancer", lambda: few)


@pytest.fixture
def rng():
    """Return a NumPy generator with a fixed seed: tests are deterministic."""
    return np.random.default_rng(20200)
