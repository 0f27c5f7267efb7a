"""The points of ghashami2016, and a user's rows in their place."""

import dataclasses
import math

import numpy as np
import pytest

from proofs_check import register
from proofs_check.engine import draws, run
from proofs_check.papers import populations
from proofs_check.papers.ghashami2016 import clouds

TINY = dataclasses.replace(draws.QUICK, max_trials=64, max_control=64, max_draws=500)


def test_the_gram_of_doubled_differences_is_a_fourth_power():
    for setting in clouds.small_grams():
        G = setting.data["gram"]
        np.testing.assert_allclose(setting.data["doubled"], G**4, rtol=1e-9)
        if setting.name.startswith("line"):
            scale = float(setting.name.split()[-1])
            assert G[0, 1] == pytest.approx(math.exp(-1 / (2 * scale**2)))


@pytest.mark.slow
def test_the_users_rows_are_tried_in_their_order(x64):
    X = np.arange(600.0).reshape(300, 2)
    cloud = clouds.own(populations.from_rows(X))
    assert (
        cloud.num_points == 128
        and np.array_equal(cloud.points[0], X[0])
        and np.array_equal(cloud.points[-1], X[-1])
    )
    assert np.all(np.diff(cloud.points[:, 0]) > 0)
    made = {
        claim.id: claim
        for claim in register.claims(
            populations.from_rows(X[:7]), papers=("ghashami2016",)
        )
    }
    chosen = [
        made[i]
        for i in (
            "ghashami2016:lem3.2",
            "ghashami2016:lem3.3-literal",
            "ghashami2016:lem3.5",
        )
    ]
    assert all(
        any("data, n=7" in s.name for s in claim.corrected.settings) for claim in chosen
    )
    results = run.run(chosen, profile=TINY, seed=0, data=True)
    assert all(r.as_expected and r.corrected.status == "consistent" for r in results)
    assert [r.printed.status for r in results] == ["consistent", "refuted", "refuted"]
