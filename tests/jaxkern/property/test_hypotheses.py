"""No bound is valid outside of its hypotheses, on whichever side and however far numbers are drawn.

The edges are those that the registers transcribe. In between, at the arguments of the transcriptions, every bound is
valid (tests/jaxkern/bounds/test_bound.py).
"""

import math

from hypothesis import given
from hypothesis import strategies as st
from support.bound_cases import TABLES

CASES = [case for table in TABLES.values() for case in table.values()]
EDGES = [(case, edge) for case in CASES for edge in case.edges]
COUNTED = [
    (case, word)
    for case in CASES
    for word in case.words
    if word in ("n", "d", "sketch_size") or word.startswith("num_")
]


def validity(case, **changed):
    return case.bound(**case.words | changed).valid


def valid_beyond(case, edge, relative):
    word, sign, at = edge
    beyond = relative * max(abs(at), 1)
    return (
        validity(case, **{word: at + beyond if sign[0] == "<" else at - beyond})
        is not False
    )


@given(st.floats(-8, 6))
def test_no_bound_is_valid_beyond_an_edge_of_its_hypotheses(power):
    assert [edge for case, edge in EDGES if valid_beyond(case, edge, 10**power)] == []


@given(st.floats(-10, 1, exclude_max=True) | st.just(math.nan))
def test_no_bound_is_valid_for_less_than_one_thing(count):
    assert [
        case.bound
        for case, word in COUNTED
        if validity(case, **{word: count}) is not False
    ] == []


def test_bounds_that_forget_a_hypothesis_are_caught():
    """An edge that stands in the wrong place, and an argument that is no count, make both checks fail."""
    case = TABLES["sketching"]["covariance_deviation"]
    assert validity(case) is True
    assert valid_beyond(case, ("tau", "<", 1e-3), 1e-8) and not valid_beyond(
        case, ("tau", ">", 0.0), 1e-8
    )
    assert validity(case, tau=0.5) is True
