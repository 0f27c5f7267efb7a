"""No bound is valid outside of its hypotheses, on whichever side and however far numbers are drawn.

The edges are those of the tables in `support.bound_cases`, which state each bound a second time. In between, at the
numbers of the tables, every bound is valid (tests/jaxkern/bounds/test_bound.py).
"""

import math

from hypothesis import given
from hypothesis import strategies as st
from support.bound_cases import CONCENTRATION, FOURIER, SKETCHING, STREAMING

CASES = [
    case
    for table in (CONCENTRATION, FOURIER, SKETCHING, STREAMING)
    for case in table.values()
]
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
    case = next(case for case, (word, *_) in EDGES if word == "tau")
    assert validity(case) is True
    assert valid_beyond(case, ("tau", "<", 1e-3), 1e-8) and not valid_beyond(
        case, ("tau", ">", 0.0), 1e-8
    )
    assert validity(case, tau=0.5) is True
