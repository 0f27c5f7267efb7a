"""A right-hand side is one function: the check, its enclosure and the adversary all evaluate it."""

import importlib
import inspect
import sys

import jax
import numpy as np
import pytest

from proofs_check import register
from proofs_check.claim import Inequality, Tail
from proofs_check.engine import adversary
from proofs_check.engine.samples import evaluate
from proofs_check.papers.targets import targets

pytest.importorskip("flint")

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
        bound = getattr(importlib.import_module(f"jaxkern.bounds.{topic}"), name)
        codes[inspect.unwrap(bound).__code__] = row.function
    return codes


def evaluated(call, codes):
    """Return the names of the bounds that are evaluated during a call."""
    names = set()

    def watch(frame, event, argument):
        if event == "call" and frame.f_code in codes:
            names.add(codes[frame.f_code])

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call()
    finally:
        sys.setprofile(before)
    return names


def calls(claim):
    """Yield what enclosures and the adversary compute for a claim, by name."""
    for name, form in claim.forms.items():
        if form.enclosed:
            yield f"{claim.id}, {name}, enclosed", form.enclosed
    for target in targets():
        if target.claim != claim.id:
            continue
        start = target.project(target.start(jax.random.key(0)))
        params = jax.tree.map(np.asarray, start)
        name = f"{claim.id}, {target.form}"
        yield (
            f"{name}, excess",
            lambda t=target, p=start: t.excess(p, jax.random.key(1)),
        )
        yield f"{name}, recheck", lambda t=target, p=params: judged(t.recheck(p))
        if target.enclosed:
            balls = jax.tree.map(adversary._as_balls, params)
            yield f"{name}, attack in balls", lambda t=target, b=balls: t.enclosed(b)


def judged(form):
    """Evaluate both sides of an inequality, or the bound of a statement that is sampled."""
    for setting in form.settings:
        match form.statement:
            case Inequality(sides=sides):
                evaluate(sides, setting, lambda: jax.random.key(0))
            case Tail(bound=bound):
                bound(setting)


def test_checks_enclosures_and_attacks_evaluate_the_bound_of_their_entry(claims):
    codes = functions()
    transcribed = {}
    for row in register.bounds():
        transcribed.setdefault(row.claim, set()).add(row.function)
    without = []
    for claim_id, names in transcribed.items():
        for name, call in calls(claims[claim_id]):
            if not names & evaluated(call, codes):
                without.append(name)
    assert sorted(without) == sorted(WITHOUT), "\n".join(without)
