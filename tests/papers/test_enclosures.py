"""Counterexamples, probabilities and inequalities in ball arithmetic: none is missing, and none says what is false."""

import importlib
from fractions import Fraction as Q
from time import process_time

import pytest

from proofs_check.claim import Exact, Identity, Inequality
from proofs_check.engine.enclosures import at_most, prove
from proofs_check.papers.amini2021 import enclosures as amini
from proofs_check.papers.ghashami2016 import enclosures as ghashami

pytest.importorskip("flint")
COMPUTED = (Inequality, Identity, Exact)


@pytest.mark.parametrize("paper", ["ghashami2016", "amini2021"])
def test_what_is_refuted_or_computed_is_enclosed_and_enclosures_agree_with_verdicts(claims, paper):
    forms = [(claim.id, *form) for claim in claims.values() if claim.paper == paper for form in claim.forms.items()]
    start = process_time()
    for claim, name, form in forms:
        needed = form.expect == "refuted" and isinstance(form.statement, COMPUTED)
        assert form.enclosed or not (needed or (form.expect == "certified" and isinstance(form.statement, Exact)))
        if form.enclosed:
            found = form.enclosed()
            assert found.holds == (form.expect != "refuted") and found.digits >= 10, (claim, name, found)
    assert process_time() - start < 3


@pytest.mark.parametrize("paper", ["ghashami2016", "amini2021"])
def test_what_theorems_rest_on_is_enclosed(paper):
    room = importlib.import_module(f"proofs_check.papers.{paper}.enclosures")
    for name, decide in room.RANGES.items():
        assert decide().holds, name
    for name, sides in room.CONSTANTS.items():
        assert at_most(sides, name).holds, name


def test_what_is_false_is_not_proved():
    """Smaller constants, twice the exponent of Hoeffding, a thirtieth of the features, 1 / c = 2.48, and rows of W."""
    assert not prove(lambda y: 1.5 * y * y + (1 - 2 * y).log() / 2 + y, [(Q(-1, 4), Q(1, 4))], zeros={0: (0, 2)}).holds
    assert not prove(lambda y: (1 + y).log() - y + 0.49 * y * y, [(0, 1)], zeros={0: (0, 2)}).holds
    assert not prove(lambda u: 0.99 * u - 1 - u.log(), [(0.5, 2)]).holds
    tail, right = ghashami._hoeffding(*ghashami.USED[2])
    assert tail <= right and tail > right * right / 2
    assert not at_most(lambda: ghashami.copies_tail(100_000, Q(1, 1000))).holds
    assert not at_most(lambda: (amini.CONSTANTS["Lemma 3, 1 / c"]()[0], Q(248, 100))).holds
    assert ghashami.returned([0, 0, 1, 1, *[2] * 3], 4) == {0, 1}
