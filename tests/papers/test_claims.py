"""Claims together: verdicts that are drawn, planted mistakes that must be noticed, and what a user's table changes."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest
from support.forms import at_first, changed

from jaxkern import features, measures
from jaxkern import frequent_directions as fd
from jaxkern.bounds import concentration
from proofs_check import register
from proofs_check.claim import Exact, Identity, Inequality, Undecided
from proofs_check.engine import draws, run
from proofs_check.papers import populations
from proofs_check.papers.chen2016.setup import ROWS
from proofs_check.papers.ghashami2016 import clouds
from proofs_check.papers.shared import share_of

SMALL = dataclasses.replace(
    draws.QUICK, max_trials=128, max_control=128, max_draws=1000
)


def results_of(claims, **options):
    return run.run(claims, profile=SMALL, **{"seed": 0} | options)


@pytest.mark.parametrize(
    "name",
    [
        "kpotufe2020:lemB.2",
        "kpotufe2020:thmC.2",
        "kpotufe2020:thm1",
        "ghashami2016:thm3.1",
        "amini2021:eq10",
        "amini2021:lem6",
        "chen2016:cor5.1",
    ],
)
def test_verdicts_of_claims_that_are_drawn_are_as_expected(claims, name):
    """Bounds, calibrated constants and laws. Of theorem 1 a program of each setting takes a second."""
    claim = claims[name]
    if name == "kpotufe2020:thm1":
        claim = changed(claim, at_first)
    (result,) = results_of([claim], seed=11)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


def at_one_setting(claim, number=0):
    """Return the claim with one form, that is said to hold, at one of its settings, and without controls."""
    name = "corrected" if claim.corrected else "printed"
    form = getattr(claim, name)
    form = dataclasses.replace(form, settings=form.settings[number : number + 1])
    forms = {"printed": None, "corrected": None} | {name: form}
    return dataclasses.replace(claim, **forms, controls=())


def wrong_sketch(*args, **options):
    """(1 + 1e-9) Z K for Z K."""
    phi = features_kernel_jl(*args, **options)
    return dataclasses.replace(phi, projection=phi.projection * (1 + 1e-9))


def wrong_frequencies(kernel, frequencies):
    return features_PairedFourier(kernel, 1.05 * frequencies)


def wrong_diagonal(means, noise, lengthscale):
    mean = measures_mean_gaussian_kernel(means, noise, lengthscale)
    return mean - 1e-6 * jnp.eye(len(means))


def wrong_certificate(state):
    """99 per cent of what the shrinks subtract: a heavy direction loses more."""
    sketch = fd_finalize(state)
    return dataclasses.replace(sketch, shrinkage=0.99 * sketch.shrinkage)


features_kernel_jl = features.kernel_jl
features_PairedFourier = features.PairedFourier
measures_mean_gaussian_kernel = measures.mean_gaussian_kernel
fd_finalize = fd.finalize


@pytest.mark.parametrize(
    ("module", "name", "mistake", "claim", "setting"),
    [
        (features, "kernel_jl", wrong_sketch, "kpotufe2020:eq1", 0),
        (features, "kernel_jl", wrong_sketch, "jaxkern:centred", 0),
        (features, "kernel_jl", wrong_sketch, "jaxkern:shortcut-literal", 0),
        (features, "PairedFourier", wrong_frequencies, "chen2016:lem2.1", 0),
        (measures, "mean_gaussian_kernel", wrong_diagonal, "amini2021:eq9", 0),
        (fd, "finalize", wrong_certificate, "jaxkern:frequent-directions", 3),
    ],
)
def test_a_mistake_of_the_library_is_noticed(
    claims, monkeypatch, module, name, mistake, claim, setting
):
    monkeypatch.setattr(module, name, mistake)
    (result,) = results_of([at_one_setting(claims[claim], setting)])
    assert (result.corrected or result.printed).status == "refuted"
    assert not result.as_expected


@pytest.mark.parametrize(
    ("name", "chosen"),
    [
        ("truncation", "amini2021:eq41"),
        ("pair_variance_lc", "jaxkern:variance-lc"),
        ("frobenius_mean_lc", "jaxkern:variance-lc"),
        ("radial_mean_gap", "amini2021:b3"),
        ("isotropic_block_variance_upper", "jaxkern:sphere-variance"),
    ],
)
@pytest.mark.float64
def test_a_bound_that_is_sharp_may_not_be_a_twentieth_smaller(
    monkeypatch, name, chosen
):
    smaller = share_of(0.95, getattr(concentration, name))
    monkeypatch.setattr(concentration, name, smaller)
    (claim,) = register.claims(only=[chosen])
    claim = dataclasses.replace(claim, printed=None, controls=())
    (result,) = results_of([claim])
    assert result.corrected.status == "refuted"


@pytest.mark.float64
def test_the_users_rows_are_tried():
    X = np.random.default_rng(1).standard_normal((60, 3)) * [1.0, 2.0, 0.5] + 10
    data = populations.from_rows(X)
    of_user = {claim.id: claim for claim in register.claims(data)}
    settings = of_user["jaxkern:distance-kernel"].corrected.settings
    assert any("rows, n=48" in setting.name for setting in settings)
    names = ("amini2021:eq9", "amini2021:lem1", "kpotufe2020:eq5")
    results = results_of([of_user[name] for name in names], data=True)
    for result in results:
        assert result.as_expected
        assert {verdict.status for _, verdict in result.controls} == {"refuted"}
    assert results[0].printed.status == "refuted"
    assert results[0].corrected.status == "identity"


def test_a_table_without_close_rows_leaves_pairs_as_they_are(claims):
    data = populations.from_rows(np.array([[0.0], [100.0], [300.0]]), 1.0)
    names = ("chen2016:lem2.1", "chen2016:cor2.2", "jaxkern:convex-order")
    of_user = register.claims(data, only=names)
    assert len(of_user) == len(names)
    for claim in of_user:
        assert names_of_settings(claim) == names_of_settings(claims[claim.id])


def names_of_settings(claim):
    return [setting.name for setting in (claim.corrected or claim.printed).settings]


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
OF_PAIRS = "lem2.1 sec1.1 2.2 lem4.2 -order -pair -bias -variance -unit -variances"
"""How the ids of claims of chen2016 end that are about points and take no draws."""


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.float64
def test_statements_about_points_use_the_rows_of_a_table(table, rng):
    data = populations.from_rows(TABLES[table](rng), 0.7)
    of_user = {c.id: c for c in register.claims(data, papers=("chen2016",))}
    decided = Exact | Identity | Inequality | Undecided
    chosen = []
    for name, claim in of_user.items():
        is_decided = all(isinstance(f.statement, decided) for f in claim.forms.values())
        if is_decided and name.endswith(tuple(OF_PAIRS.split())):
            chosen.append(claim)
    assert len(chosen) == 14
    for result in results_of(chosen, data=True):
        assert result.as_expected and not result.notes, (result.claim.id, result.notes)
    count = min(len(np.unique(data.points, axis=0)), ROWS)
    for name in ("chen2016:thm4.1", "jaxkern:relative-distances"):
        (setting,) = of_user[name].corrected.settings
        assert setting.numbers["num_points"] == count and "rows" in setting.name


@pytest.mark.slow
@pytest.mark.float64
def test_no_claim_fails_on_rows_of_a_user():
    """Copies of a point, a far point, and a column of zeros among them."""
    X = np.random.default_rng(2).standard_normal((20, 3)) * [1.0, 0.0, 5.0]
    X[3:6] = X[3]
    X[7] = 1e3
    of_user = register.claims(populations.from_rows(X), papers=("amini2021",))
    for result in results_of(of_user, data=True):
        assert result.as_expected and not result.unexpected, (
            result.claim.id,
            result.notes,
        )


@pytest.mark.slow
@pytest.mark.float64
def test_the_users_rows_are_tried_in_their_order():
    X = np.arange(600.0).reshape(300, 2)
    cloud = clouds.own(populations.from_rows(X))
    assert cloud.num_points == 128
    np.testing.assert_array_equal(cloud.points[[0, -1]], X[[0, -1]])
    assert np.all(np.diff(cloud.points[:, 0]) > 0)
    names = (
        "ghashami2016:lem3.2",
        "ghashami2016:lem3.3-literal",
        "ghashami2016:lem3.5",
    )
    of_user = register.claims(populations.from_rows(X[:7]), only=names)
    for claim in of_user:
        assert any("data, n=7" in s.name for s in claim.corrected.settings)
    results = results_of(of_user, data=True)
    assert all(r.as_expected and r.corrected.status == "consistent" for r in results)
    assert [r.printed.status for r in results] == ["consistent", "refuted", "refuted"]
