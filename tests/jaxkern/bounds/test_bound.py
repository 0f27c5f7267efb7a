"""Every bound is its transcription in the register, valid inside of its hypotheses only, and the same on arrays."""

import inspect
import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.bound_cases import FLAGS, TABLES, function_of, wrong_edges

from jaxkern import bounds
from jaxkern.bounds import Bound, concentration, fourier, sketching
from jaxkern.bounds._bound import xp
from proofs_check import register

PAPERS = ("kpotufe2020", "chen2016", "ghashami2016", "amini2021", "jaxkern")
QUADRATURES = {"relative_distances_sharp", "relative_distances_given", "ball"}
"""Bounds whose transcription is a quadrature, which is good for six digits of a failure probability."""
ALL = [case for table in TABLES.values() for case in table.values()]
EDGES = [(case, edge) for case in ALL for edge in case.edges]
COUNTS = [
    (case, word)
    for case in ALL
    for word in case.words
    if word in ("n", "d", "sketch_size") or word.startswith("num_")
]


def is_bound(function):
    if not callable(function):
        return False
    return inspect.signature(function).return_annotation in (Bound, "Bound")


@pytest.mark.parametrize("topic", TABLES)
def test_every_public_bound_has_one_transcription_of_each_form_with_hypotheses(topic):
    forms = []
    for name in getattr(bounds, topic).__all__:
        function = function_of(f"{topic}.{name}")
        if not is_bound(function):
            continue
        assert TABLES[topic][name].edges, name
        forms.append((f"{topic}.{name}", ""))
        for form, flag in FLAGS.items():
            if flag in inspect.signature(function).parameters:
                forms.append((f"{topic}.{name}", form))
    rows = [(row.function, row.form) for row in register.bounds()]
    assert sorted(row for row in rows if row[0].startswith(topic)) == sorted(forms)


def test_every_symbol_is_used_and_is_no_argument():
    """A transcription that uses a name that it does not declare cannot be evaluated."""
    declared = set()
    for row in register.bounds():
        arguments = inspect.signature(function_of(row.function)).parameters
        assert not arguments.keys() & row.symbols.keys(), row.function
        declared |= row.symbols.items()
    assert declared == set().union(*(case.symbols for case in ALL))


def tolerance_of(name):
    return 1e-6 if name.partition(" ")[0] in QUADRATURES else 1e-9


@pytest.mark.parametrize("topic", TABLES)
def test_bounds_on_python_numbers_are_their_transcriptions_in_float64(topic):
    for name, case in TABLES[topic].items():
        bound = case.bound(**case.words)
        assert isinstance(bound, Bound)
        assert type(bound.value) is type(bound.probability) is float, name
        assert bound.value == pytest.approx(case.value, rel=1e-12), name
        failure = pytest.approx(case.failure, rel=tolerance_of(name), abs=1e-15)
        assert 1 - bound.probability == failure, name
        # At these places sizes or tau may be too small for the bound to be valid.
        may_fail = " at 3" in name or name.startswith("inner_products at")
        assert bound.valid is True or (may_fail and bound.valid is False), name
        assert any(paper in bound.source for paper in PAPERS), name
        assert ("printed" in bound.source) == name.endswith("printed"), name


@pytest.mark.parametrize("topic", TABLES)
def test_hypotheses_hold_up_to_their_edges(topic):
    for name, case in TABLES[topic].items():
        assert wrong_edges(case.bound, case.words, case.edges) == [], name


def is_valid(case, **changes):
    return case.bound(**case.words | changes).valid


def is_valid_beyond(case, edge, relative):
    word, sign, place = edge
    step = relative * max(abs(place), 1)
    outside = place + step if sign[0] == "<" else place - step
    return is_valid(case, **{word: outside}) is not False


def test_no_bound_is_valid_however_far_beyond_an_edge_of_its_hypotheses():
    powers = house.rng().uniform(-8, 6, len(EDGES)).tolist()
    for (case, edge), power in zip(EDGES, powers, strict=True):
        assert not is_valid_beyond(case, edge, 10**power), (case.bound, edge, power)


def test_no_bound_is_valid_for_less_than_one_thing():
    for case, word in COUNTS:
        for count in (0.99, -7.0, math.nan):
            assert is_valid(case, **{word: count}) is False, (case.bound, word)


def test_bounds_that_forget_a_hypothesis_are_caught():
    """An edge that stands in the wrong place, and an argument that is no count, make both checks fail."""
    case = TABLES["sketching"]["covariance_deviation"]
    assert is_valid(case) is True
    assert is_valid_beyond(case, ("tau", "<", 1e-3), 1e-8)
    assert not is_valid_beyond(case, ("tau", ">", 0.0), 1e-8)
    assert is_valid(case, tau=0.5) is True


SLOW_TO_COMPILE = ("ball_", "simplex_success_limit", "kernel_values_given")


@pytest.mark.float64
@pytest.mark.parametrize("topic", TABLES)
def test_bounds_on_arrays_and_numbers_together_are_those_on_numbers(topic):
    """One program a topic. The contract maps and differentiates bounds in all arguments at once."""
    table = {
        name: case
        for name, case in TABLES[topic].items()
        if " " not in name and not name.startswith(SLOW_TO_COMPILE)
    }

    @jax.jit
    def evaluated(ones):
        results = {}
        for name, case in table.items():
            words = dict(case.words)
            for word in list(words)[::2]:
                if np.ndim(words[word]) == 0:
                    words[word] *= ones
            bound = case.bound(**words)
            parts = (bound.value, bound.probability, bound.valid)
            results[name] = [jnp.broadcast_to(part, 2) for part in parts]
        return results

    for name, (values, probabilities, valid) in evaluated(np.ones(2)).items():
        single = table[name].bound(**table[name].words)
        tolerance = tolerance_of(name)
        np.testing.assert_allclose(values, single.value, tolerance, err_msg=name)
        failure = 1 - single.probability
        np.testing.assert_allclose(1 - probabilities, failure, tolerance, 1e-12)
        assert valid.tolist() == [single.valid] * 2, name


def test_numpy_scalars_of_any_dtype_give_float64():
    numbers = dict(kappa=1.0, op_norm=0.5, trace=1, n=10**9, d=10**4, tau=3.0)
    scalars = dict(numbers, kappa=np.int32(1), op_norm=np.float32(0.5))
    scalars |= dict(n=np.int32(10**9), d=np.int32(10**4), tau=np.float32(3))
    exact = sketching.weak_difference_coupled(**numbers)
    bound = sketching.weak_difference_coupled(**scalars)
    assert type(bound.value) is float and bound.value == exact.value
    assert bound.valid is exact.valid is True


def test_lists_are_arrays_and_none_stands_for_another_argument():
    case = TABLES["concentration"]["lipschitz_kernel"]
    value = case.bound(**case.words).value
    assert case.bound(**case.words, mean_scale=None).value == value
    pair = case.bound(**case.words | {"t": [case.words["t"]] * 2})
    np.testing.assert_allclose(pair.value, [value] * 2, rtol=20 * house.eps())


def test_what_python_refuses_to_compute_is_a_number_of_ieee():
    """A power of a negative number is complex in Python, and exp(1000) an error; a default is a plain float."""
    case = TABLES["sketching"]["weak_difference"]
    bound = case.bound(**case.words | {"op_norm": -0.6})
    assert type(bound.value) is float and math.isnan(bound.value)
    assert math.isfinite(bound.probability) and bound.valid is False
    case = TABLES["sketching"]["projected_inner_products"]
    bound = case.bound(**case.words | {"tau": -1000.0})
    assert bound.probability == -math.inf and math.isnan(bound.value)
    assert bound.valid is False
    assert concentration.sphere_moment(u=1e3, dim=2).value == math.exp(600)


def test_nan_is_never_the_larger_nor_the_smaller_of_two_numbers():
    for function in (xp.maximum, xp.minimum):
        assert math.isnan(function(1.0, math.nan))
        assert math.isnan(function(math.nan, 1.0))
    assert xp.maximum(1.0, 2.0) == 2
    assert xp.minimum(1.0, 2.0) == 1


@pytest.mark.parametrize("name", ["exp", "log", "sqrt", "floor", "maximum"])
def test_functions_follow_their_arguments(name):
    """Plain floats stay so, also where Python raises; NumPy scalars and arrays have the rules of their own."""
    function = getattr(xp, name)
    arity = 2 if name == "maximum" else 1
    for number in (0.7, 0.0, -1.0, 1e4, math.inf, math.nan):
        with np.errstate(all="ignore"):
            scalar = function(*[np.float64(number)] * arity)
            expected = getattr(np, name)(*[number] * arity)
        plain = function(*[number] * arity)
        assert type(plain) in (float, int) and isinstance(scalar, np.float64)
        np.testing.assert_allclose([plain, scalar], expected, rtol=1e-15)
    assert jax.eval_shape(function, *[np.ones(2)] * arity).shape == (2,)
    with pytest.raises(TypeError):
        function(*[1j] * arity)


def test_an_argument_that_is_nan_or_counts_less_than_one_thing_shows_also_if_unused():
    """`gradient` does not use dim in its value."""
    dims = np.array([5.0, np.nan, 5.0], np.float32)
    sizes = np.array([700, 700, 0.99], np.float32)
    bound = fourier.gradient(
        frequency_energy=3.0, distance=0.7, num_frequencies=sizes, dim=dims
    )
    assert bound.valid.tolist() == [True, False, False]
