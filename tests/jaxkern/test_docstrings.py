"""Docstrings of what is public have one form (CONTRIBUTING.md), name claims that exist, and their examples run.

Annotations are complete, and resolve.
"""

import doctest
import inspect
import re
import typing

import jax
import pytest
from support.surface import MODULES, PUBLIC, functions, members

from proofs_check import register

FUNCTIONS = functions()
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
    takes = {name for name in signature.parameters if name not in ("args", "kwargs")}
    of_fields = sections.get("Attributes", "") if of_class else ""
    lines = re.findall(
        r"^([\w, ]+) : \S", sections.get("Parameters") or of_fields, flags=re.M
    )
    named = [name for line in lines for name in line.split(", ")]
    is_more = "Parameters" not in sections and takes < set(named)
    if sorted(named) != sorted(takes) and not is_more:
        names = [", ".join(sorted(words)) or "nothing" for words in (named, takes)]
        yield f"explains {names[0]} and takes {names[1]}"


def test_the_walk_finds_functions_methods_and_properties():
    assert {"gram.gram", "rkhs.Covariance.inner", "problems.Problem.omega"} < set(
        FUNCTIONS
    )
    assert len(FUNCTIONS) > 150


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_annotations_are_complete_and_resolve(name):
    function = FUNCTIONS[name]
    hints = typing.get_type_hints(function)
    parameters = set(inspect.signature(function).parameters)
    assert set(hints) - {"self", "cls"} == (parameters - {"self", "cls"}) | {"return"}
    assert inspect.getdoc(function)


@pytest.mark.parametrize("name", PUBLIC)
def test_docstrings_have_one_form(name):
    complaints = []
    for member, value in members(name).items():
        for what in wrong(value):
            if name not in DOORS or "first line" in what:
                complaints.append(f"{member}: {what}")
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
        bad.__doc__ = good.__doc__.replace(old, new, 2 if "Raises" in new else 1)
        bad.__kwdefaults__ = {"size": 1}
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
    finder = doctest.DocTestFinder(exclude_empty=True)
    tests = [test for module in MODULES.values() for test in finder.find(module)]
    return {test.name: test for test in tests if test.examples}


EXAMPLES = examples()
LONG = (
    "jaxkern.clustering",
    "jaxkern.kmeans",
    "jaxkern.learn.fit",
    "jaxkern.regression",
    "jaxkern.scale",
    "jaxkern.features._preimage",
    "jaxkern.features._standardized",
    "jaxkern.features._streaming",
    "jaxkern.features._table",
    "jaxkern.audit.spectral_error",
    "jaxkern.problems._samplers",
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
        jax.enable_x64(False),
    ):
        outcome = runner.run(EXAMPLES[name], out=report.append)
    assert outcome.attempted > 0 and outcome.failed == 0, "".join(report)
