"""Strict switches for the whole suite, and the fixtures that every module shares."""

import ctypes
import gc
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "cpu" not in (os.environ["JAX_PLATFORMS"] or "cpu"):
    os.environ["JAX_PLATFORMS"] += ",cpu"  # some tests need devices of a CPU, too
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small decompositions are slower when spread over cores
os.environ.setdefault("PJRT_NPROC", "32")  # two decompositions at once may wait for ever in a pool of a thread a core
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")  # runs of the command leave the user's own cache alone

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

PLATFORMS = jax.config.jax_platforms
ON_CPU = PLATFORMS == "cpu"
os.environ["JAX_PLATFORMS"] = "cpu"  # for the processes that tests start: this one alone has an accelerator

QUICK_TO_COMPILE = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_addoption(parser):
    parser.addoption("--float32", action="store_true", help="run the property modules in single precision")


@pytest.hookimpl(wrapper=True)  # before that of xdist
def pytest_cmdline_main(config):
    if not ON_CPU:
        config.option.numprocesses = 0  # whatever -n says: one process has the accelerator, and its memory
    return (yield)


def pytest_sessionstart():
    if PLATFORMS and not ON_CPU and jax.default_backend() == "cpu":  # JAX does not complain where cuda is missing
        raise pytest.UsageError(f"JAX_PLATFORMS={PLATFORMS}, and JAX finds only a CPU; nothing was tested")


def pytest_configure(config):
    # Compiling takes most of the default run; the long tests have more to compute than to compile.
    is_quick = ON_CPU and config.getoption("markexpr") == "not slow"
    jax.config.update("jax_disable_most_optimizations", is_quick)
    if is_quick and jaxlib.__version__.startswith("0.10."):  # XLA aborts at flags that other versions do not know
        os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)
    config.addinivalue_line("filterwarnings", "error")


@pytest.fixture(scope="module", autouse=True)
def little_memory():
    """Let compiled programs go after a module, where they fill 2 GiB: those of the whole run are more than 5 GiB."""
    yield
    pages = Path("/proc/self/statm")
    if pages.exists() and int(pages.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") > 2**31:
        jax.clear_caches()
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what is free goes back to the system


@pytest.fixture(params=["float32", "float64"])
def dtype(request):
    """Run the test in single and in double precision."""
    name = request.param
    with jax.enable_x64(name == "float64"):
        yield jnp.dtype(name)


@pytest.fixture(scope="module")
def double_precision(request):
    """Run a module in double precision, or with --float32 in single."""
    with jax.enable_x64(not request.config.getoption("float32")):
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
    few = utils.Bunch(**table | {word: table[word][:150] for word in ("data", "target")})
    monkeypatch.setattr(datasets, "load_breast_cancer", lambda: few)


@pytest.fixture
def rng():
    """Return a NumPy generator with a fixed seed: tests are deterministic."""
    return np.random.default_rng(20200)
