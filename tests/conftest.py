"""Strict switches for the whole suite, and the fixtures that every module shares."""

import ctypes
import gc
import os
from pathlib import Path

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small decompositions are slower when spread over cores
os.environ.setdefault("JAX_ENABLE_COMPILATION_CACHE", "false")  # runs of the command leave the user's own cache alone

import jax
import jax.numpy as jnp
import jaxlib
import numpy as np
import pytest

QUICK_TO_COMPILE = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"

jax.config.update("jax_debug_key_reuse", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
jax.config.update("jax_numpy_dtype_promotion", "strict")


def pytest_configure(config):
    # Compiling takes most of the default run; the long tests have more to compute than to compile.
    is_quick = config.getoption("markexpr") == "not slow"
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
def rng():
    """Return a NumPy generator with a fixed seed: tests are deterministic."""
    return np.random.default_rng(20200)
