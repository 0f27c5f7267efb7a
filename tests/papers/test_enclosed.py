"""Refutations that no chance decides, and exact probabilities, are computed again in ball arithmetic, and agree.

A right-hand side is one function: the check, its enclosure and the adversary all evaluate it.
"""

import functools
import importlib
import inspect
import math
import sys
from fractions import Fraction

import jax
import numpy as np
import pytest

from proofs_check import register
from proofs_check.claim import Exact, Identity, Inequality, Tail
from proofs_check.engine import adversary
from proofs_check.engine.decided import bound
from proofs_check.engine.enclosures import at_most, ball, precision, prove
from proofs_check.engine.samples import evaluate
from proofs_check.papers.amini2021.probabilities import _changes, _outside
from proofs_check.papers.chen2016 import cosines, proofs
from proofs_check.papers.ghashami2016.proofs import (
    coins_tail,
    copies_tail,
    returned,
)
from proofs_check.papers.ghashami2016.section3_1_2 import chernoff_hoeffding
from proofs_check.papers.targets import targets

pytest.importorskip("flint")
mpmath = pytest.importorskip("mpmath")

LITERAL = "the literal reading has the right side of Lemma 3.3, streaming.projection"
SERIES = "proved over a whole range by power series, which bounds do not take"
WITHOUT = {
    "kpotufe2020:eq11, printed, enclosed": "the printed constant C2 is free",
    "chen2016:eq3, printed, enclosed": SERIES,
    "chen2016:eq4, printed, enclosed": SERIES,
    "chen2016:eq4, corrected, enclosed": SERIES,
    "amini2021:ex1-lipschitz, corrected, enclosed": SERIES,
    "amini2021:psi, corrected, enclosed": SERIES,
    "amini2021:b3, corrected, enclosed": SERIES,
    "amini2021:sec2.2-lower, printed, enclosed": "nobody needs the printed bound",
    "ghashami2016:lem3.3-literal, printed, enclosed": LITERAL,
    "ghashami2016:lem3.3-literal, printed, excess": LITERAL,
    "ghashami2016:lem3.3-literal, printed, recheck": LITERAL,
    "ghashami2016:lem3.3-literal, printed, attack in balls": LITERAL,
}
"""What evaluates another right-hand side than that of its entry, or none, and why."""


def functions():
    """Return the names of the bounds by the code of their formulas."""
    codes = {}
    for row in register.bounds():
        topic, _, name = row.function.partition(".")
        formula = getattr(importlib.import_module(f"jaxkern.bounds.{topic}"), name)
        codes[inspect.unwrap(formula).__code__] = row.function
    return codes


def evaluated(call, codes):
    """Return the names of the bounds that are evaluated during a call, and its result."""
    names = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code in codes:
            names.add(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        result = call()
    finally:
        sys.setprofile(before)
    return names, result


def judge(form):
    """Evaluate both sides of an inequality, or the bound of a statement that is sampled."""
    for setting in form.settings:
        match form.statement:
            case Inequality(sides=sides):
                evaluate(sides, setting, lambda: jax.random.key(0))
            case Tail(bound=right):
                right(setting)


def attacks(attacked):
    """Yield what the adversary computes for its targets, by name, all at one random start."""

    @jax.jit  # one program, where single steps are hundreds
    def starts(key):
        return [target.project(target.start(key)) for target in attacked]

    # Of these keys a draw is one operation, which takes a tenth of the time to compile.
    key = jax.random.key(0, impl="unsafe_rbg")
    places = jax.tree.map(np.asarray, starts(key))
    for target, place in zip(attacked, places, strict=True):
        name = f"{target.claim}, {target.form}"
        yield (
            f"{name}, excess",
            functools.partial(jax.eval_shape, target.excess, place, key),
        )
        yield f"{name}, recheck", lambda t=target, p=place: judge(t.recheck(p))
        if target.enclosed:
            balls = jax.tree.map(adversary._as_balls, place)
            yield f"{name}, attack in balls", functools.partial(target.enclosed, balls)


def test_checks_enclosures_and_attacks_agree_and_evaluate_the_bound_of_their_entry(
    claims,
):
    codes = functions()
    transcribed = {}
    for row in register.bounds():
        transcribed.setdefault(row.claim, set()).add(row.function)
    without = []
    consistent = 0
    for claim in claims.values():
        for name, form in claim.forms.items():
            is_decided = isinstance(form.statement, Identity | Inequality | Exact)
            refuted = form.expect == "refuted" and is_decided
            certified = form.expect == "certified" and isinstance(form.statement, Exact)
            assert form.enclosed or not (refuted or certified), f"{claim.id}, {name}"
            if not form.enclosed:
                continue
            names, enclosed = evaluated(form.enclosed, codes)
            assert enclosed.holds == (form.expect != "refuted"), enclosed
            assert enclosed.digits > 2, enclosed
            is_inequality = isinstance(form.statement, Inequality)
            consistent += form.expect == "consistent" and is_inequality
            if claim.id in transcribed and not names & transcribed[claim.id]:
                without.append(f"{claim.id}, {name}, enclosed")
    assert consistent >= 9
    attacked = [target for target in targets() if target.claim in transcribed]
    for name, call in attacks(attacked):
        names, _ = evaluated(call, codes)
        if not names & transcribed[name.partition(",")[0]]:
            without.append(name)
    assert sorted(without) == sorted(WITHOUT), "\n".join(without)


@mpmath.workdps(30)
def test_moments_of_one_frequency_are_those_of_mpmath():
    r = mpmath.mpf("0.7")
    s = mpmath.mpf("-2.5")

    def integrand(w, power):
        x = 1 - mpmath.cos(r * w)
        return x**power * mpmath.exp(s * x) * mpmath.npdf(w)

    with precision(128):
        moments = proofs._moments(ball(str(s)), ball(str(r)), 4)
        for power, moment in enumerate(moments):
            exact = mpmath.quad(
                lambda w, power=power: integrand(w, power), list(range(-16, 17, 2))
            )
            assert abs(mpmath.mpf(moment.str(25, radius=False)) / exact - 1) < 1e-20


@pytest.mark.parametrize(
    ("r", "t", "eps"), [(0.3, 100, 0.2), (1.0, 40, 0.3), (3.0, 60, 0.25)]
)
def test_the_bound_of_a_pair_is_above_its_law_and_not_far(r, t, eps):
    with precision(128):
        right = float(proofs._relative(ball(eps), ball(r), ball(t)))
    exact = math.exp(cosines.log_outside(r, t, (1 - eps) ** 2, (1 + eps) ** 2))
    assert exact < right < 6 * exact


def test_the_bound_of_a_near_pair_has_the_law_of_chi_square():
    with precision(128):
        tiny = proofs._near(ball("1e-4"), ball(50), ball("0.5"), ball("1.5"))
    assert tiny.contains(ball(math.exp(cosines.chi_square_outside(50, 0.5, 1.5))))
    assert tiny.rad() < 1e-6


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
    p = ball(0.854)

    def inside(Y, Z):
        """Tell whether block means are within half of their bound, which they are not."""
        changes, _ = _changes(p, p, Y, Z)
        return all(abs(d) <= ball(4.0) / 20 for d in changes)

    with pytest.raises(ArithmeticError):
        _outside(inside, 400, p, p, 16 * ball(-16).exp())
