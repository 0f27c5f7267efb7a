"""No bound is valid outside of its hypotheses, on whichever side and however far numbers are drawn.

The edges are those of the tables in `support.bound_cases`, which state each bound a second time. In between, at the
numbers of the tables, every bound is valid (tests/jaxkern/bounds/test_bound.py).
"""

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.bound_cases import CONCENTRATION, FOURIER, SKETCHING, STREAMING

CASES = [case for table in (CONCENTRATION, FOURIER, SKETCHING, STREAMING) for case in table.values()]
EDGES = [(case, edge) for case in CASES for edge in case.edges]
COUNTED = [
    (case, word)
    for case in CASES
    for word in case.words
    if word in ("n", "d", "sketch_size") or word.startswith("num_")
]


def validity(case, **changed):
    return case.bound(**case.words | changed).valid


@given(at=st.sampled_from(EDGES), power=st.floats(-8, 6))
@settings(max_examples=400)
def test_no_bound_is_valid_beyond_an_edge_of_its_hypotheses(at, power):
    case, (word, sign, edge) = at
    beyond = 10**power * max(abs(edge), 1)
    assert validity(case, **{word: edge + beyond if sign[0] == "<" else edge - beyond}) is False


@given(at=st.sampled_from(COUNTED), count=st.floats(-10, 1, exclude_max=True) | st.just(math.nan))
@settings(max_examples=300)
def test_no_bound_is_valid_for_less_than_one_thing(at, count):
    case, word = at
    assert validity(case, **{word: count}) is False


def test_bounds_that_forget_a_hypothesis_are_caught():
    """An edge that stands in the wrong place, and an argument that is no count, make both checks fail."""
    case = next(case for case, (word, *_) in EDGES if word == "tau")
    assert validity(case) is True
    with pytest.raises(AssertionError):
        test_no_bound_is_valid_beyond_an_edge_of_its_hypotheses.hypothesis.inner_test((case, ("tau", "<", 1e-3)), -8.0)
    with pytest.raises(AssertionError):
        test_no_bound_is_valid_for_less_than_one_thing.hypothesis.inner_test((case, "tau"), case.words["tau"])
