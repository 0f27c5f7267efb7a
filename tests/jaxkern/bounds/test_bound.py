"""Every bound is its transcription in the register, valid up to the edges of its hypotheses, and the same on arrays."""

import inspect
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.bound_cases import FLAGS, TABLES, function_of, wrong_edges
from support.stress_numbers import NO_NUMBERS

from jaxkern import bounds
from jaxkern.bounds import Bound, fourier, sketching
from jaxkern.bounds._bound import xp
from proofs_check import register

CASES = {
    f"bounds.{topic}.{name}": case
    for topic, table in TABLES.items()
    for name, case in table.items()
}
QUADRATURE = tuple(
    f"bounds.fourier.{n}"
    for n in ("relative_distances_sharp", "relative_distances_given", "ball")
)
"""Those whose transcription is a quadrature."""
LIKE_OTHERS = (
    "printed",
    "kernel_values_given",
    ".simplex_success_limit",
)  # those the contracts jit and map


@pytest.mark.parametrize("topic", TABLES)
def test_every_public_bound_has_one_transcription_of_each_form_with_hypotheses(topic):
    module = getattr(bounds, topic)
    functions = {name: getattr(module, name) for name in module.__all__}
    forms = []
    for name, function in functions.items():
        signature = inspect.signature(function) if callable(function) else None
        if signature and signature.return_annotation in (Bound, "Bound"):
            forms.append((f"{topic}.{name}", ""))
            forms += [
                (f"{topic}.{name}", form)
                for form, flag in FLAGS.items()
                if flag in signature.parameters
            ]
            assert TABLES[topic][name].edges, name
    rows = [(row.function, row.form) for row in register.bounds()]
    assert sorted(row for row in rows if row[0].startswith(topic)) == sorted(forms)


def test_every_symbol_is_used_and_is_no_argument():
    """A transcription that uses a name that it does not declare cannot be evaluated."""
    declared = set()
    for row in register.bounds():
        arguments = inspect.signature(function_of(row.function)).parameters
        assert not arguments.keys() & row.symbols.keys(), row.function
        declared |= row.symbols.items()
    used = set().union(*(case.symbols for case in CASES.values()))
    assert declared == used


@pytest.mark.parametrize("name", CASES)
def test_bounds_on_python_numbers_are_their_transcriptions_in_float64(name):
    bound, words, value, failure, *_ = CASES[name]
    found = bound(**words)
    beyond = (
        " at 3" in name or ".inner_products at" in name
    )  # where sizes or tau may be too small
    assert isinstance(found, Bound) and (
        found.valid is True or (beyond and found.valid is False)
    )
    assert type(found.value) is float and type(found.probability) is float
    assert found.value == pytest.approx(value, rel=1e-12)
    tolerance = 1e-6 if name.split(" at ")[0] in QUADRATURE else 1e-9
    assert 1 - found.probability == pytest.approx(failure, rel=tolerance, abs=1e-15)
    assert any(
        paper in found.source
        for paper in ("kpotufe2020", "chen2016", "ghashami2016", "amini2021", "jaxkern")
    )
    assert ("printed" in found.source) == name.endswith("printed")


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.edges])
def test_hypotheses_hold_up_to_their_edges(name):
    case = CASES[name]
    assert wrong_edges(case.bound, case.words, case.edges) == []


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(n, marks=[pytest.mark.slow] * n.endswith(LIKE_OTHERS))
        for n in CASES
        if not re.search(r"sketching.* at |\.ball at ", n)
    ],
)
def test_bounds_on_arrays_are_those_on_numbers_and_can_be_traced_in_each_argument(
    name, x64
):
    """The contract tests jit, map and differentiate them in all arguments at once."""
    bound, words, *_ = CASES[name]
    single = bound(**words)
    arrays = {word: jnp.asarray(value, float) for word, value in words.items()}
    found = bound(
        **{
            word: value if value.ndim else jnp.stack([value, value])
            for word, value in arrays.items()
        }
    )
    tolerance = 1e-6 if name.split(" at ")[0] in QUADRATURE else 1e-9
    assert found.value.tolist() == pytest.approx([single.value] * 2, rel=tolerance)
    assert (1 - found.probability).tolist() == pytest.approx(
        [1 - single.probability] * 2, rel=tolerance, abs=1e-12
    )
    assert found.valid.tolist() == [True, True] and found.source == single.source
    for word, value in arrays.items():
        traced = jax.eval_shape(lambda x, word=word: bound(**words | {word: x}), value)
        leaves = [
            leaf
            for leaf in (traced.value, traced.probability, traced.valid)
            if hasattr(leaf, "shape")
        ]
        assert leaves and all(leaf.shape == () for leaf in leaves), word


def test_numpy_scalars_of_any_dtype_give_float64():
    words = dict(kappa=1.0, op_norm=0.5, trace=1.0, n=10**9, d=10**4, tau=3.0)
    exact = sketching.weak_difference_coupled(**words)
    kinds = (np.float32, np.float32, int, np.int32, np.int32, np.float32)
    narrow = sketching.weak_difference_coupled(
        **{word: kind(words[word]) for word, kind in zip(words, kinds, strict=True)}
    )
    assert (
        type(narrow.value) is float
        and narrow.value == exact.value
        and narrow.valid is exact.valid is True
    )


def test_what_python_refuses_to_compute_is_a_number_of_ieee():
    """A power of a negative number is complex in Python, and exp(1000) an error; a default is a plain float."""
    words = TABLES["sketching"]["weak_difference"].words | {"op_norm": -0.6}
    found = sketching.weak_difference(**words)
    assert (
        type(found.value) is float
        and math.isnan(found.value)
        and math.isfinite(found.probability)
    )
    assert found.valid is False
    mapped = sketching.weak_difference(**words | {"op_norm": jnp.array([-0.6, 0.6])})
    assert (
        mapped.valid.tolist() == [False, True] and np.isfinite(mapped.probability).all()
    )
    found = sketching.projected_inner_products(
        op_norm=0.6, trace3=0.25, d=400, tau=-1000.0
    )
    assert (
        found.probability == -math.inf
        and math.isnan(found.value)
        and found.valid is False
    )


def test_nan_is_never_the_larger_nor_the_smaller_of_two_numbers():
    for function in (xp.maximum, xp.minimum):
        assert all(
            math.isnan(function(*pair)) for pair in ((1.0, math.nan), (math.nan, 1.0))
        )
    assert xp.maximum(1.0, 2.0) == 2 and xp.minimum(1.0, 2.0) == 1


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "floor", "maximum"])
def test_functions_follow_their_arguments(name):
    """Plain floats stay so, also where Python raises; NumPy scalars and arrays have the rules of their own."""
    function, arity = getattr(xp, name), 2 if name == "maximum" else 1
    for value in (0.7, 0.0, -1.0, 1e4, math.inf, math.nan):
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(*[np.float64(value)] * arity)
            narrow = function(*[np.float64(value)] * arity)
        found = function(*[value] * arity)
        assert type(found) in (float, int) and isinstance(narrow, np.float64)
        np.testing.assert_allclose([found, narrow], expected, rtol=1e-15)
    assert isinstance(function(*[jnp.ones(2)] * arity), jax.Array) and isinstance(
        function(*[np.ones(2)] * arity), jax.Array
    )
    with pytest.raises(TypeError):
        function(*[1j] * arity)


def test_what_is_no_number_is_refused_by_name_and_lists_are_arrays():
    bound, words, *_ = TABLES["concentration"]["lipschitz_kernel"]
    assert (
        bound(**words, mean_scale=None).value == bound(**words).value
    )  # None stands for another argument there
    wrong = [("t", value) for value in (*NO_NUMBERS, [[1.0], [1.0, 2.0]])]
    for word, value in (*wrong, ("mean_scale", "1"), ("mean_scale", True)):
        with pytest.raises(ValueError, match=f"{word} must be a real number, got"):
            bound(**words | {word: value})
    found, single = (
        bound(**words | {"t": [1, 2]}),
        [bound(**words | {"t": t}).value for t in (1, 2)],
    )
    np.testing.assert_allclose(
        found.value, single, rtol=20 * float(jnp.finfo(found.value.dtype).eps)
    )


@pytest.mark.parametrize(
    "name",
    [
        "fourier.quadratic_form_shifted",
        "concentration.truncation",
        "streaming.best_rank",
    ],
)
def test_as_printed_must_be_a_truth_value(name):
    bound, words, *_ = CASES[f"bounds.{name}"]
    for wrong in ("yes", 1):
        with pytest.raises(ValueError, match="as_printed"):
            bound(**words, as_printed=wrong)


def test_an_argument_that_is_not_a_number_or_less_than_one_thing_shows_also_where_it_is_not_used():
    words = {
        "frequency_energy": 3.0,
        "distance": 0.7,
        "num_frequencies": 700.0,
        "dim": 5.0,
    }
    assert (
        fourier.gradient(**words).valid
        and not fourier.gradient(**words | {"dim": np.nan}).valid
    )
    for word, unfit in (("dim", jnp.nan), ("num_frequencies", 0.99)):
        valid = jax.vmap(
            lambda value, word=word: fourier.gradient(**words | {word: value}).valid
        )
        assert valid(jnp.array([5.0, unfit])).tolist() == [True, False]
