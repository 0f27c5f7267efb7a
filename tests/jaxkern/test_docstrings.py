"""Docstrings of what is public have one form (CONTRIBUTING.md), name claims that exist, and their examples run."""

import doctest
import importlib
import inspect
import pkgutil
import re

import jax
import pytest

import jaxkern
from proofs_check import register


def modules():
    """Return the modules of the package by name; without what an extra brings that is not installed."""
    for info in pkgutil.walk_packages(jaxkern.__path__, "jaxkern."):
        try:
            yield info.name.removeprefix("jaxkern."), importlib.import_module(info.name)
        except ImportError:
            continue


MODULES = dict(modules())
PUBLIC = [name for name in MODULES if "._" not in f".{name}"]
SECTIONS = (
    "Parameters",
    "Attributes",
    "Returns",
    "Raises",
    "Notes",
    "References",
    "Examples",
)
ID = re.compile(rf"\b(?:jaxkern|{'|'.join(register.PAPERS)}):[\w.-]*\w")
DOORS = {"checks", "draws", "linalg", "pytrees"}
"""What other packages build on: one sentence says all."""


def members(name):
    """Return the public functions and classes of a module."""
    module = MODULES[name]
    names = getattr(
        module,
        "__all__",
        [n for n, x in vars(module).items() if n[0] != "_" and defined_in(module, x)],
    )
    return {
        n: getattr(module, n) for n in names if defined_in(jaxkern, getattr(module, n))
    }


def defined_in(package, value):
    return callable(value) and getattr(value, "__module__", "").startswith(
        package.__name__
    )


def wrong(member):
    """Return what is not in the form of a docstring."""
    doc = inspect.getdoc(member) or ""
    parts = re.split(r"^(\w[\w ]*)\n-{3,}$", doc, flags=re.M)
    sections = dict(zip(parts[1::2], parts[2::2], strict=True))
    if re.match(r"\S.*[.:](\n\n|$)", doc) is None:
        yield "no first line that is a sentence"
    if list(sections) != [section for section in SECTIONS if section in sections]:
        yield f"sections {', '.join(sections)}"
    if re.search(r"^(Returns|Raises) ", doc, flags=re.M):
        yield "what is returned or raised, outside of its section"
    of_class = inspect.isclass(member)
    signature = inspect.signature(member)
    says = of_class or "Returns" in sections or doc.startswith(("Return ", "Tell "))
    if not says and signature.return_annotation not in (None, "None"):
        yield "no Returns"
    takes = sorted(
        name for name in signature.parameters if name not in ("args", "kwargs")
    )
    listed = (
        sections.get("Parameters")
        or (sections.get("Attributes") if of_class else None)
        or ""
    )
    named = [
        name
        for line in re.findall(r"^([\w, ]+) : \S", listed, flags=re.M)
        for name in line.split(", ")
    ]
    if sorted(named) != takes and not (
        "Parameters" not in sections and set(takes) < set(named)
    ):
        yield f"explains {', '.join(sorted(named)) or 'nothing'} and takes {', '.join(takes) or 'nothing'}"


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_have_one_form(name):
    complaints = [
        f"{member}: {what}" for member, x in members(name).items() for what in wrong(x)
    ]
    complaints = [
        what for what in complaints if name not in DOORS or "first line" in what
    ]
    assert not complaints, "\n".join(complaints)


def test_what_is_not_in_the_form_is_seen():
    def good(X, *, size=1):
        """Double X.

        Parameters
        ----------
        X, size : numbers.

        Returns
        -------
        X.
        """

    assert list(wrong(good)) == []
    for old, new, complaint in (
        (".\n\n        Param", "\n        or so.\n\n        Param", "first line"),
        ("Returns\n        -------\n", "", "no Returns"),
        ("X, size :", "X :", "explains X and takes X, size"),
        (
            "X.\n        ",
            "X.\n\n        Raises ValueError.\n        ",
            "outside of its section",
        ),
        ("Returns\n", "Result\n", "sections Parameters, Result"),
    ):
        assert old in good.__doc__
        bad = type(good)(good.__code__, {})
        bad.__doc__, bad.__kwdefaults__ = (
            good.__doc__.replace(old, new, 1 if "Raises" not in new else 2),
            {"size": 1},
        )
        assert any(complaint in what for what in wrong(bad)), complaint


@pytest.mark.parametrize("name", MODULES)
def test_claims_that_docstrings_name_are_in_the_register(name):
    ids = {
        entry.get("id")
        for paper in register.PAPERS
        for entry in register.entries(paper)
    }
    named = set(ID.findall(inspect.getsource(MODULES[name])))
    assert named <= ids, named - ids


def examples():
    """Return every docstring of the package that holds an example."""
    tests = (
        test
        for module in MODULES.values()
        for test in doctest.DocTestFinder(exclude_empty=True).find(module)
    )
    return {test.name: test for test in tests if test.examples}


EXAMPLES = examples()
LONG = "clustering kmeans learn.fit regression scale features._preimage features._standardized features._streaming"
LONG = tuple(
    f"jaxkern.{name}"
    for name in (
        LONG + " features._table audit.spectral_error problems._samplers"
    ).split()
)
"""Beginnings of what is slow to compile; other tests compile these functions, too."""


def test_the_walk_finds_examples():
    expected = {
        "gram.gram",
        "kernels._bandwidth.quantile_lengthscale",
        "kmeans._kmeans.kmeans",
    }
    assert {f"jaxkern.{name}" for name in expected} <= set(EXAMPLES)
    assert all(any(name.startswith(start) for name in EXAMPLES) for start in LONG)


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * x.startswith(LONG)) for x in EXAMPLES],
)
def test_examples_run_as_they_stand(name):
    """With the settings of a reader, not the strict ones of this suite."""
    report = []
    runner = doctest.DocTestRunner(
        optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    )
    with (
        jax.numpy_rank_promotion("allow"),
        jax.numpy_dtype_promotion("standard"),
        jax.debug_key_reuse(False),
    ):
        outcome = runner.run(EXAMPLES[name], out=report.append)
    assert outcome.attempted > 0 and outcome.failed == 0, "".join(report)
