"""The claims: that they run, that they notice a bound or a map that is wrong, and what a user's table changes."""

import dataclasses
import inspect

import jax
import numpy as np
import pytest

from proofs_check import register
from proofs_check.claim import Calibrated, Tail, draws_as
from proofs_check.engine import draws, run
from proofs_check.papers import populations

SMALL = dataclasses.replace(draws.QUICK, max_trials=128, max_control=64, max_draws=1000)


def faults(claim):
    """Yield what is wrong with the settings of a claim: their names, which keys come from, and their bounds.

    A bound above the most that its statistic can be would be vacuous; delta must leave room for a violation.
    """
    names = {}
    for part in (claim.printed, claim.corrected, *claim.controls):
        if part is None:
            continue
        for field in ("trial", "residual", "sides"):
            function = getattr(part.statement, field, None)
            if function and "key" in inspect.signature(function).parameters:
                name, code = draws_as(function)
                if names.setdefault(name, code) != code:
                    yield f"{claim.id}: two functions draw as {name!r}"
        # The two norms of this claim are tried on the same draws.
        shared = claim.id == "jaxkern:nystrom-best-rank"
        if (
            len({setting.name for setting in part.settings}) < len(part.settings)
            and not shared
        ):
            yield f"{claim.id}: settings of one name"
        statement = part.statement
        if isinstance(statement, Tail | Calibrated):
            for setting in part.settings:
                b = (
                    statement.bound if isinstance(statement, Tail) else statement.shape
                )(setting)
                if not (
                    bool(b.valid) and 0 < b.value < np.inf and 0 < 1 - b.probability < 1
                ):
                    yield f"{claim.id}, {setting.name}: {b}"


@pytest.mark.parametrize("profile", ["quick", "full", "data"])
def test_settings_have_their_own_names_and_hypotheses_are_met_and_bounds_can_fail(
    claims, profile
):
    every = claims.values()
    if profile != "quick":
        table = populations.from_rows(np.random.default_rng(0).standard_normal((40, 2)))
        every = (
            register.claims(table)
            if profile == "data"
            else register.claims(profile="full")
        )
    assert [claim.id for claim in every] == list(claims)
    assert not [fault for claim in every for fault in faults(claim)]
    if profile == "full":
        (full,) = (claim for claim in every if claim.id == "kpotufe2020:thm1")
        assert len(full.corrected.settings) > len(
            claims["kpotufe2020:thm1"].corrected.settings
        )


@pytest.mark.parametrize(
    "chosen",
    [
        "kpotufe2020:thm1",
        "kpotufe2020:lemB.2",
        "kpotufe2020:eq8",
        "kpotufe2020:thmC.2",
        "ghashami2016:thm3.1",
    ],
)
def test_verdicts_of_claims_that_are_drawn_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=SMALL, seed=11)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


def test_a_wrong_sketch_is_noticed(claims, monkeypatch):
    """With (1 + 1e-9) Z K for Z K, centred or not, the library's map is not what the claims say."""
    from jaxkern import features

    def wrong(key, kernel, landmarks, *, num_features, centered=False):
        phi = true(key, kernel, landmarks, num_features=num_features, centered=centered)
        return dataclasses.replace(phi, projection=phi.projection * (1 + 1e-9))

    true = features.kernel_jl
    monkeypatch.setattr(features, "kernel_jl", wrong)
    for chosen in ("kpotufe2020:eq1", "jaxkern:centred", "jaxkern:shortcut-literal"):
        slot = "corrected" if claims[chosen].printed is None else "printed"
        form = getattr(claims[chosen], slot)
        only = dataclasses.replace(form, settings=form.settings[:1])
        claim = dataclasses.replace(claims[chosen], **{slot: only}, controls=())
        (result,) = run.run([claim], profile=SMALL, seed=0)
        assert getattr(result, slot).status == "refuted"


@pytest.mark.slow
def test_a_users_table_is_judged_by_the_same_claims(x64):
    table = populations.from_rows(np.random.default_rng(0).standard_normal((30, 2)))
    chosen = [
        c
        for c in register.claims(table)
        if c.id in ("kpotufe2020:lemB.2", "kpotufe2020:eq5")
    ]
    with jax.debug_key_reuse(False):
        results = run.run(chosen, profile=SMALL, seed=0, data=True)
    assert all(r.as_expected for r in results)
    assert {v.status for r in results for _, _, v in r.forms} <= {
        "certified",
        "consistent",
        "identity",
    }
