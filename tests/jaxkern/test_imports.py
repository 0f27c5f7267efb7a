"""What an import costs, without a clock: the modules that it loads, what it says, and that it starts nothing."""

import json
import os
import pathlib
import pkgutil
import subprocess
import sys

import pytest

import jaxkern

ROOT = pathlib.Path(jaxkern.__file__).parent
MODULES = sorted(
    name
    for _, name, _ in pkgutil.walk_packages(jaxkern.__path__, "jaxkern.")
    if not name.startswith("jaxkern.sklearn")
)
LOADED = """
import json, sys
import jax, jax.numpy, jax.scipy.linalg, jax.scipy.special, scipy
before = set(sys.modules)
import {}
from jax._src import xla_bridge
print(json.dumps([sorted(set(sys.modules) - before), xla_bridge.backends_are_initialized()]))
"""


def python(*arguments):
    """Run a fresh Python in which every warning is an error."""
    command = [sys.executable, "-W", "error", *arguments]
    pipes = {"capture_output": True, "text": True}
    return subprocess.run(command, cwd=ROOT.parent, timeout=60, **pipes)


def test_the_import_is_silent_and_loads_no_module_of_its_own():
    code = "import jaxkern, sys; assert [m for m in sys.modules if m.startswith(('jax', 'scipy'))] == ['jaxkern']"
    done = python("-c", code)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_all_modules_are_silent_and_load_nothing_but_what_jax_needs():
    """SciPy's special functions alone would take a third of the time of JAX: they are loaded by their first use."""
    assert {"jaxkern.gram", "jaxkern.bounds.fourier._pairs", "jaxkern.scale"} <= set(
        MODULES
    )
    done = python("-c", LOADED.format(", ".join(MODULES)))
    assert (done.returncode, done.stderr) == (0, "")
    loaded, started = json.loads(done.stdout)
    others = {name.split(".")[0] for name in loaded} - {"jaxkern"}
    assert others <= set(sys.stdlib_module_names), others
    assert not started, "importing the library starts a device"


FORKS = """
import os, warnings, jax.numpy as jnp, numpy as np
from jaxkern import gram, kernels
warnings.simplefilter("ignore")  # of JAX, which warns of every fork
for begun in (False, True):
    child = os.fork()
    if child:
        os.wait()
    try:
        print("parent" if child else "child", gram.gram(kernels.Gaussian(1.0), np.ones((2, 2), "f")).shape, flush=True)
    except RuntimeError as error:
        print("child", error, flush=True)
    if child == 0:
        os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork on Windows")
def test_a_child_forked_after_jax_has_begun_is_told_so_and_does_not_hang():
    done = python("-c", FORKS)
    early, first, late, second = done.stdout.splitlines()
    assert early == "child (2, 2)", done.stderr
    assert first == second == "parent (2, 2)"
    message = "child this process was forked from one in which JAX had begun"
    assert late.startswith(message)
    assert "spawn" in late
