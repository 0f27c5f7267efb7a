"""Examples in docstrings run as they stand."""

import doctest
import importlib
import pkgutil

import jax
import pytest

import jaxkern


def examples():
    """Return every docstring of the package that holds an example."""
    found = {}
    for info in pkgutil.walk_packages(jaxkern.__path__, "jaxkern."):
        try:
            module = importlib.import_module(info.name)
        except ImportError:  # an optional extra that is not installed
            continue
        for test in doctest.DocTestFinder(exclude_empty=True).find(module):
            if test.examples:
                found[test.name] = test
    return found


EXAMPLES = examples()


def test_the_walk_finds_examples():
    expected = {"gram.gram", "kernels._bandwidth.quantile_lengthscale", "features._sketch.kernel_jl", "kmeans.kmeans"}
    assert {f"jaxkern.{name}" for name in expected} <= set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_examples_run_as_they_stand(name):
    """With the settings of a reader, not the strict ones of this suite."""
    report = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    with jax.numpy_rank_promotion("allow"), jax.numpy_dtype_promotion("standard"), jax.debug_key_reuse(False):
        outcome = runner.run(EXAMPLES[name], out=report.append)
    assert outcome.attempted > 0 and outcome.failed == 0, "".join(report)
