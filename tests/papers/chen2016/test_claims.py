"""Claims of chen2016 together: verdicts, hypotheses, a wrong map, and a user's rows."""

import dataclasses

import numpy as np
import pytest

from jaxkern import features
from proofs_check import register
from proofs_check.claim import Exact, Identity, Inequality, Undecided
from proofs_check.engine import draws, run
from proofs_check.papers import populations
from proofs_check.papers.chen2016.setup import ROWS

SAMPLED = ("chen2016:cor5.1", "jaxkern:fourier-pair-law")
SMALL = dataclasses.replace(draws.QUICK, max_trials=128, max_control=64, max_draws=1000)


def of_chen2016(data=None, profile="quick"):
    return register.claims(data, profile, papers=("chen2016",))


@pytest.mark.parametrize("chosen", SAMPLED)
def test_verdicts_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=SMALL, seed=11)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


def test_a_wrong_map_is_noticed(claims, monkeypatch):
    true = features.PairedFourier
    monkeypatch.setattr(
        features,
        "PairedFourier",
        lambda kernel, frequencies: true(kernel, 1.05 * frequencies),
    )
    (result,) = run.run(
        [dataclasses.replace(claims["chen2016:lem2.1"], controls=())],
        profile=SMALL,
        seed=0,
    )
    assert result.printed.status == "refuted"


TABLES = {
    "far from the origin": lambda rng: (
        rng.standard_normal((60, 4)) * [1, 2, 3, 0.5] + 50
    ),
    "two rows": lambda rng: np.array([[0.0], [1.0]]),
    "rows that repeat, tiny and huge distances": lambda rng: np.concatenate(
        [
            np.zeros((4, 2)),
            1e-6 * rng.standard_normal((20, 2)),
            rng.standard_normal((20, 2)),
            [[1e5, 0]],
        ]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_statements_about_points_use_the_rows_of_a_table(table, x64, rng):
    data = populations.from_rows(TABLES[table](rng), 0.7)
    on_data = of_chen2016(data)
    assert [claim.id for claim in on_data] == [claim.id for claim in of_chen2016()]
    chosen = [
        claim
        for claim in on_data
        if all(
            isinstance(form.statement, Exact | Identity | Inequality | Undecided)
            for form in claim.forms.values()
        )
        and claim.id.endswith(
            (
                "lem2.1",
                "sec1.1",
                "2.2",
                "lem4.2",
                "-order",
                "-pair",
                "-bias",
                "-variance",
                "-unit",
                "-variances",
            )
        )
    ]
    assert len(chosen) == 14
    results = run.run(chosen, profile=SMALL, seed=0, data=True)
    assert all(r.as_expected and not r.notes for r in results), [
        (r.claim.id, r.notes) for r in results
    ]
    for claim in on_data:
        if claim.id in ("chen2016:thm4.1", "jaxkern:relative-distances"):
            (setting,) = claim.corrected.settings
            count = len(np.unique(data.points, axis=0))
            assert (
                setting.numbers["num_points"] == min(count, ROWS)
                and "rows" in setting.name
            )


def test_a_table_without_close_rows_leaves_pairs_as_they_are(claims):
    data = populations.from_rows(np.array([[0.0], [100.0], [300.0]]), 1.0)
    on_data = {c.id: c for c in of_chen2016(data)}
    for i in ("chen2016:lem2.1", "chen2016:cor2.2", "jaxkern:convex-order"):
        forms = [c[i].corrected or c[i].printed for c in (claims, on_data)]
        assert [s.name for s in forms[0].settings] == [
            s.name for s in forms[1].settings
        ]
