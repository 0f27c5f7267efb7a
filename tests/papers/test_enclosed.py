"""Refutations that no chance decides, and exact probabilities, are computed again in ball arithmetic, and agree."""

import math
from fractions import Fraction

import pytest

from proofs_check.claim import Exact, Identity, Inequality
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import at_most, ball, precision, prove
from proofs_check.papers.amini2021.probabilities import _changes, _outside
from proofs_check.papers.chen2016 import cosines, proofs
from proofs_check.papers.ghashami2016.proofs import (
    coins_tail,
    copies_tail,
    returned,
)
from proofs_check.papers.ghashami2016.section3_1_2 import chernoff_hoeffding

pytest.importorskip("flint")
mpmath = pytest.importorskip("mpmath")


def test_none_is_missing(claims):
    for claim in claims.values():
        for name, form in claim.forms.items():
            refuted = form.expect == "refuted" and isinstance(
                form.statement, Identity | Inequality | Exact
            )
            certified = form.expect == "certified" and isinstance(form.statement, Exact)
            assert form.enclosed or not (refuted or certified), f"{claim.id}, {name}"


def test_each_agrees_with_the_verdict_that_is_expected(claims):
    forms = [
        form
        for claim in claims.values()
        for form in claim.forms.values()
        if form.enclosed
    ]
    for form in forms:
        enclosed = form.enclosed()
        assert enclosed.holds == (form.expect != "refuted") and enclosed.digits > 2, (
            enclosed
        )
    assert (
        sum(
            form.expect == "consistent" and isinstance(form.statement, Inequality)
            for form in forms
        )
        >= 9
    )


@mpmath.workdps(30)
def test_moments_of_one_frequency_are_those_of_mpmath():
    r, s = mpmath.mpf("0.7"), mpmath.mpf("-2.5")

    def integrand(w, j):
        x = 1 - mpmath.cos(r * w)
        return x**j * mpmath.exp(s * x) * mpmath.npdf(w)

    with precision(128):
        for j, moment in enumerate(proofs._moments(ball(str(s)), ball(str(r)), 4)):
            exact = mpmath.quad(lambda w, j=j: integrand(w, j), list(range(-16, 17, 2)))
            assert abs(mpmath.mpf(moment.str(25, radius=False)) / exact - 1) < 1e-20


@pytest.mark.parametrize(
    ("r", "t", "eps"), [(0.3, 100, 0.2), (1.0, 40, 0.3), (3.0, 60, 0.25)]
)
def test_the_bound_of_a_pair_is_above_its_law_and_not_far(r, t, eps):
    with precision(128):
        bound = float(proofs._relative(ball(eps), ball(r), ball(t)))
    exact = math.exp(cosines.log_outside(r, t, (1 - eps) ** 2, (1 + eps) ** 2))
    assert exact < bound < 6 * exact


def test_tiny_distances_are_bracketed_by_chi_square():
    with precision(128):
        both = proofs._near(ball("1e-4"), ball(50), ball("0.5"), ball("1.5"))
    assert (
        both.contains(ball(math.exp(cosines.chi_square_outside(50, 0.5, 1.5))))
        and both.rad() < 1e-6
    )


def test_what_is_false_is_not_proved():
    """Smaller constants, a thirtieth of the features, twice the exponent, and rows that do not enter the sketch."""
    places = [(-0.25, 0.25)]
    assert not prove(
        lambda y: 1.5 * y * y + (1 - 2 * y).log() / 2 + y, places, zeros={0: (0, 2)}
    ).holds
    half = ball(0.5)
    assert not at_most(lambda: (copies_tail(100_000, Fraction(1, 1000)), half)).holds
    coins = {"alpha": ball(60), "r": ball(400), "step": half}
    right = bound(chernoff_hoeffding, **coins).log_failure.exp()
    assert right * right / 2 < coins_tail(**coins) <= right
    assert returned([0, 0, 1, 1, *[2] * 3], 4) == {0, 1}


def test_block_means_are_not_within_a_half_of_their_bound():
    p = ball(0.854)

    def inside(Y, Z):
        changes, _ = _changes(p, p, Y, Z)
        return all(abs(d) <= ball(4.0) / 20 for d in changes)

    with pytest.raises(ArithmeticError):
        _outside(inside, 400, p, p, 16 * ball(-16).exp())
