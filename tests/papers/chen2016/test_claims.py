"""Claims of chen2016: verdicts, the laws they rest on against simulation and quadrature, and a user's rows.

Simulations are compared at 5 standard errors: a false alarm below 1e-6 each, at fixed seeds.
"""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import stats

from jaxkern import features
from jaxkern.bounds import fourier
from proofs_check import controls
from proofs_check.claim import Calibrated, Exact, Identity, Inequality, Setting, Tail, Undecided
from proofs_check.engine import draws, run
from proofs_check.papers import populations
from proofs_check.papers.chen2016 import introduction, places, sides, trials
from proofs_check.papers.chen2016 import later_steps as later
from proofs_check.papers.chen2016 import theorems as chen2016

REFUTED = {
    "chen2016:sec1.1",
    "chen2016:sec1.1-ball",
    "chen2016:sec3-taylor",
    "chen2016:sec3-expansions",
    "chen2016:lem3.3-proof",
    "chen2016:lem3.3-display",
    "chen2016:sec3.1-norms",
    "chen2016:thm3.1",
    "chen2016:lem4.1",
    "chen2016:lem4.1-taylor",
    "chen2016:lem4.1-proof",
    "chen2016:eq5",
    "chen2016:lem4.2-mean",
    "chen2016:lem4.2-proof",
    "chen2016:lem5.1",
    "chen2016:lem5.1-proof",
    "chen2016:cor5.1",
    "chen2016:cor5.1-proof",
    "chen2016:cor5.2",
    "chen2016:thm5.1",
    "chen2016:lem6.1-proof",
    "chen2016:sec7.1-relative",
    "chen2016:sec7.1",
}
TRUE = {
    "chen2016:sec1-metric",
    "chen2016:sec1-embedding",
    "chen2016:sec1-cost",
    "chen2016:sec1.1-variance",
    "chen2016:sec1.1-points",
    "chen2016:sec1.2-unit",
    "chen2016:sec1.2-gram",
    "chen2016:lem2.1",
    "chen2016:lem2.1-proof",
    "chen2016:cor2.1",
    "chen2016:cor2.2",
    "chen2016:lem2.2",
    "chen2016:lem2.2-proof",
    "chen2016:eq2",
    "chen2016:eq3",
    "chen2016:eq4",
    "chen2016:lem3.1",
    "chen2016:sec3-chi-square",
    "chen2016:lem3.2",
    "chen2016:lem3.2-proof",
    "chen2016:lem3.3",
    "chen2016:lem4.2",
    "chen2016:thm4.1",
    "chen2016:eq7",
    "chen2016:sec7.1-residual",
    "chen2016:fig2-left",
}
UNDECIDED = {
    "chen2016:sec1-jl",
    "chen2016:sec1.2-minimum",
    "chen2016:lem3.4",
    "chen2016:sec3.1-remark",
    "chen2016:lem5.2",
    "chen2016:sec6-rank",
    "chen2016:lem6.1",
    "chen2016:thm6.1",
}
OURS = {
    "chen2016:fig2-right",
    "jaxkern:feature-variances",
    "jaxkern:fourier-pair-law",
    "jaxkern:convex-order",
    "jaxkern:relative-distances-pair",
    "jaxkern:relative-distances",
    "jaxkern:far-convex-order",
    "jaxkern:relative-distances-given-pair",
    "jaxkern:relative-distances-given",
    "jaxkern:relative-distances-given-rare",
    "jaxkern:pca-bias",
}
SAMPLED = ("chen2016:cor5.1", "jaxkern:fourier-pair-law")
SMALL = dataclasses.replace(draws.QUICK, max_trials=128, max_control=64, max_draws=1000)


@pytest.fixture
def claims(x64):
    return {claim.id: claim for claim in chen2016.claims()}


def decided_without_sampling(claim):
    forms = [form for form in (claim.printed, claim.corrected) if form is not None]
    return all(isinstance(form.statement, Exact | Identity | Inequality | Undecided) for form in forms)


def test_every_statement_is_there_with_a_reason_and_a_control(claims):
    assert set(claims) == REFUTED | TRUE | UNDECIDED | OURS
    for claim in claims.values():
        assert claim.paper == "chen2016" and claim.controls and claim.because and claim.tex and claim.where, claim.id
        assert (claim.printed is None) == (claim.id in OURS), claim.id
        assert (claim.printed is not None and claim.printed.expect == "refuted") == (claim.id in REFUTED), claim.id
        assert (claim.printed is not None and claim.printed.expect == "not testable") == (claim.id in UNDECIDED), (
            claim.id
        )
        assert claim.corrected is not None or claim.id in TRUE, claim.id
        assert claim.hypotheses and all(c.kind in controls.KINDS for c in claim.controls), claim.id


@pytest.mark.slow
def test_verdicts_that_need_no_sampling_are_as_expected(claims):
    chosen = [claim for claim in claims.values() if decided_without_sampling(claim) and claim.id != "chen2016:lem5.1"]
    assert len(chosen) >= 15
    for result in run.run(chosen, profile=SMALL, seed=11):
        assert result.as_expected, (result.claim.id, result.notes, [v.because for _, _, v in result.forms])


@pytest.mark.parametrize("chosen", SAMPLED)
def test_verdicts_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=SMALL, seed=11)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_all_verdicts_are_as_expected_in_both_precisions(dtype, seed):
    for result in run.run(chen2016.claims(), profile=draws.QUICK, seed=seed):
        assert result.as_expected, (result.claim.id, result.notes, [v.because for _, _, v in result.forms])


@pytest.mark.parametrize("full", [False, True])
def test_hypotheses_are_met_and_names_of_settings_differ(x64, full):
    for claim in chen2016.claims(full=full):
        for part in (claim.printed, claim.corrected, *claim.controls):
            if part is None:
                continue
            names = [setting.name for setting in part.settings]
            assert len(set(names)) == len(names), claim.id
            if isinstance(part.statement, Tail | Calibrated):
                bound = part.statement.bound if isinstance(part.statement, Tail) else part.statement.shape
                for b in map(bound, part.settings):
                    assert b.valid and 0 < b.value < math.inf and 0 < 1 - b.probability < 1, claim.id


def test_a_wrong_map_is_noticed(claims, monkeypatch):
    true = features.PairedFourier
    monkeypatch.setattr(features, "PairedFourier", lambda kernel, frequencies: true(kernel, 1.05 * frequencies))
    (result,) = run.run([dataclasses.replace(claims["chen2016:lem2.1"], controls=())], profile=SMALL, seed=0)
    assert result.printed.status == "refuted"


# --------------------------------------------------------------------------------------------------------- exact laws


@pytest.mark.parametrize("t", [16, 60, 1000, 60_000])
def test_the_law_of_a_vanishing_pair_is_chi_square(t):
    x = 1 + np.array([-4, -1, 0, 0.5, 3]) * math.sqrt(2 / t) * 0.6
    assert np.max(np.abs(trials.pair_cdf(1e-6, t, x) - stats.chi2.cdf(t * x, t))) < 5e-12


@pytest.mark.parametrize("distance", [0.3, 1.0, 2.0, 11.0])
def test_the_law_of_a_pair_is_that_of_simulation(distance, rng):
    t, count = 16, 40_000
    w = rng.standard_normal((count, t))
    ratios = np.mean(2 * np.sin(distance * w / 2) ** 2, axis=1) / -math.expm1(-(distance**2) / 2)
    x = np.array([0.4, 0.8, 1.0, 1.3])
    exact = trials.pair_cdf(distance, t, x)
    found = np.mean(ratios[:, None] <= x, axis=0)
    assert np.all(np.abs(found - exact) <= 5 * np.sqrt(exact * (1 - exact) / count) + 1e-5)
    if distance == 2:  # where a claim uses it
        assert np.max(np.abs(trials.interpolated_cdf(distance, t, x) - exact)) < 1e-4
    low, high = 0.5, 1.5
    outside = np.mean((ratios < low) | (ratios > high))
    assert abs(math.exp(trials.log_outside(distance, t, low, high)) - outside) < 5 * math.sqrt(outside / count) + 1e-4


def test_stop_loss_means_and_moment_generating_functions_are_those_of_a_fine_grid():
    w = np.linspace(-14, 14, 400_001)
    weights = np.exp(-(w**2) / 2)
    weights /= weights.sum()
    for r in (0.05, 1.0, 4.0):
        mu = -math.expm1(-(r**2) / 2)
        Y = 2 * np.sin(r * w / 2) ** 2 / mu
        for c in (0.3, 1.0, 2.0):
            assert sides.stop_loss(c, r) == pytest.approx(weights @ np.maximum(Y - c, 0), abs=1e-8)
        for y in (-3.0, 0.3):
            assert sides.log_mgf(y / mu, r) == pytest.approx(math.log(weights @ np.exp(y * (Y - 1))), rel=1e-9)
    assert sides.stop_loss(5.0, 4.0) == 0
    for c in (0.3, 2.0):
        assert sides.chi_square_stop_loss(c, 1) == pytest.approx(weights @ np.maximum(w**2 - c, 0), abs=1e-8)


def test_one_line_of_points_succeeds_as_often_as_one_pair(claims, rng):
    """Theorem 3.1 in one dimension: eight points near zero, the same 30 frequencies for all pairs."""
    setting = claims["chen2016:thm3.1"].printed.settings[0]
    exact = math.exp(claims["chen2016:thm3.1"].printed.statement.probability(setting)[0])
    count, x = 20_000, 1e-4 * rng.standard_normal(8)
    gaps = (x[:, None] - x)[np.triu_indices(8, 1)]
    w = rng.standard_normal((count, 30, 1))
    ratios = np.sqrt(np.mean(2 * np.sin(gaps * w / 2) ** 2, axis=1) / -np.expm1(-(gaps**2) / 2))
    success = np.mean(np.max(np.abs(ratios - 1), axis=1) <= 0.1)
    assert exact > 0.5 and abs(success - exact) < 5 * math.sqrt(exact * (1 - exact) / count)


def test_the_counterexample_to_5_has_the_printed_hypothesis_and_the_other_settings_the_two_sided_one(claims):
    s = np.geomspace(1e-6, 1e3, 2_000)
    assert np.all(s - np.log1p(2 * s) / 2 <= s**2)  # of 2 - chi2_1: p = 2, for every s >= 0
    for setting in claims["chen2016:eq5"].corrected.settings:
        p, q = setting.numbers["p"], setting.numbers["q"]
        s = np.linspace(-1 / q, 1 / q, 1_001)
        assert np.all(-np.log1p(-2 * s) / 2 - s <= s**2 * p / 2 * (1 + 1e-12) + 1e-15)


def test_the_constants_of_lemma_3_3_suffice():
    """Failure over delta: two Chernoff bounds, and the moment bound of the fourth moment at its best order."""
    eps = np.linspace(1e-3, 1, 200)
    room = (1 + eps) * (1 - eps / math.log(4) ** 2 / 4) - 1
    assert np.all(room >= 0.739 * eps)
    for L in np.geomspace(math.log(4), 1e3, 60):
        squares = math.exp(L - 6 * L * (0.739 - math.log1p(0.739))) + math.exp(L - 3 * 0.74**2 * L)
        orders = np.concatenate([[2.0], 1 + L * np.geomspace(0.1, 2, 20)])
        orders = orders[orders >= 2]
        logs = orders * (2 * np.log(orders - 1) + math.log(96 / (12 * L)) / 2 - math.log(3.12 * L**2 - 3))
        assert squares + math.exp(np.min(logs) + L) <= 4


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_the_residual_of_a_shrinking_line_is_the_product_of_recurrence_coefficients(kept, x64):
    """Against the smallest eigenvalues themselves, whose relative error is of the order of the scale squared."""
    key, t, scale = jax.random.key(3), 7, 0.05
    w = np.asarray(trials.frequencies(key, 1, t, np.float64))[:, 0]
    x = scale * np.linspace(-1, 1, kept + 1)
    gaps = x[:, None] - x
    images = np.mean(np.cos(gaps[:, :, None] * w), axis=2)
    ratio = np.linalg.eigvalsh(images)[0] / np.linalg.eigvalsh(np.exp(-(gaps**2) / 2))[0]
    found = float(trials.tail_ratio(key, {}, {}, rows=t, kept=kept))
    assert found == pytest.approx(abs(ratio - 1), abs=0.02)


def test_the_radius_near_zero_is_the_largest_that_the_proof_allows():
    for eps, t, d, tau in ((0.3, 200, 2, 3.0), (0.1, 5000, 10, 5.0)):
        radius, found = later.vanishing_ball(eps=eps, num_frequencies=t, dim=d, tau=tau)
        b, B = (math.sqrt(d) + math.sqrt(2 * tau)) / math.sqrt(t), math.sqrt(d) + math.sqrt(2 * (tau + math.log(t)))
        upper = (1 + b) ** 2 / (1 - radius**2 / 4) / (1 + eps) ** 2
        lower = (1 - b) ** 2 * (1 - B**2 * radius**2 / 12) / (1 - eps) ** 2
        assert found.valid and upper <= 1 + 1e-12 and lower >= 1 - 1e-12
        assert min(1 - upper, lower - 1) == pytest.approx(0, abs=1e-12)
        assert found.probability == pytest.approx(1 - 3 * math.exp(-tau))
    assert not later.vanishing_ball(eps=0.1, num_frequencies=100, dim=2, tau=1.0)[1].valid


def test_additive_errors_over_a_ball_by_the_formula():
    options = {"eps": 0.3, "dim": 2, "diameter": 3.0, "tau": 4.0}
    found = introduction.additive_ball(num_frequencies=500.0, **options)
    b = (math.sqrt(2) + math.sqrt(8)) / math.sqrt(500)
    each = [
        2 * (1 + 6 / (0.3 * (1 - s) / (1 + b + math.exp(-0.5)))) ** 2 * math.exp(-250 * (0.3 * s) ** 2)
        for s in np.linspace(0.05, 0.95, 37)
    ]
    assert found.valid and 1 - found.probability == pytest.approx(min(each) + math.exp(-4))
    few = introduction.additive_ball(num_frequencies=5.0, **options)
    assert not few.valid and few.probability == 0


def test_no_fewer_frequencies_do_for_a_union_over_all_points(claims):
    form = claims["chen2016:sec1.1-points"].corrected
    for setting in form.settings:
        fewer = dataclasses.replace(setting, numbers={**setting.numbers, "t": setting.numbers["t"] - 1})
        most = 1 - setting.numbers["delta"]
        assert form.statement.bound(fewer).probability < most <= form.statement.bound(setting).probability


def test_the_printed_expansion_has_the_wrong_sign_in_the_exponent(claims):
    """(1 - c) / (1 - exp(r^2 / 2)) over (1 - c) / (1 - exp(-r^2 / 2)) is -exp(-r^2 / 2)."""
    form = claims["chen2016:sec3-expansions"].printed
    for setting, r in zip(form.settings, (0.5, 1.0), strict=True):
        (residual,) = form.statement.residual(jax.random.key(0), setting)
        assert residual == pytest.approx(1 + math.exp(-(r**2) / 2), rel=1e-9)


def test_lemma_3_3_is_for_errors_below_one(claims):
    form = claims["chen2016:lem3.3"].corrected
    numbers = {"log": 2.0, "r": 0.1}
    found = [form.statement.bound(Setting("edge", numbers={**numbers, "t": t})) for t in (24.0, 24.5)]
    assert [bool(b.valid) for b in found] == [False, True] and found[0].value == 1


def test_near_orthogonal_vectors_are_what_they_are_said_to_be():
    expected = {"simplex": (13, 12, 1 / 12, 12), "6 lines in 3 dimensions": (6, 3, 5**-0.5, 3)}
    expected |= {"28 lines in 7 dimensions": (28, 7, 1 / 3, 7), "two bases of 64 dimensions": (128, 64, 1 / 8, 43)}
    for name, (n, dim, coherence, least) in expected.items():
        V = later.near_orthogonal(name)
        B = V @ V.T
        assert B.shape == (n, n) and np.linalg.matrix_rank(B) == dim
        np.testing.assert_allclose(np.diag(B), 1)
        assert np.max(np.abs(B - np.eye(n))) == pytest.approx(coherence)
        assert later.least_rank(n, coherence) == least, name


def test_the_fewest_frequencies_are_the_fewest():
    def bound(t):
        return fourier.relative_distances(eps=0.2, num_frequencies=t, num_points=50)

    for delta in (0.3, 0.05, 1e-6):
        t = places.fewest(bound, delta)
        assert bound(t).probability >= 1 - delta > bound(t - 1).probability
    assert places.fewest(bound, 0.999999, least=500) == 500


# ------------------------------------------------------------------------------------------------------- a user's rows


TABLES = {
    "far from the origin": lambda rng: rng.standard_normal((60, 4)) * [1, 2, 3, 0.5] + 50,
    "two rows": lambda rng: np.array([[0.0], [1.0]]),
    "rows that repeat, tiny and huge distances": lambda rng: np.concatenate(
        [np.zeros((4, 2)), 1e-6 * rng.standard_normal((20, 2)), rng.standard_normal((20, 2)), [[1e5, 0]]]
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("table", TABLES)
def test_statements_about_points_use_the_rows_of_a_table(table, x64, rng):
    data = populations.from_rows(TABLES[table](rng), 0.7)
    on_data = chen2016.claims(data)
    assert [claim.id for claim in on_data] == [claim.id for claim in chen2016.claims()]
    chosen = [
        claim
        for claim in on_data
        if decided_without_sampling(claim)
        and claim.id.endswith(
            ("lem2.1", "sec1.1", "2.2", "lem4.2", "-order", "-pair", "-bias", "-variance", "-unit", "-variances")
        )
    ]
    assert len(chosen) == 13
    results = run.run(chosen, profile=SMALL, seed=0, data=True)
    assert all(r.as_expected and not r.notes for r in results), [(r.claim.id, r.notes) for r in results]
    for claim in on_data:
        if claim.id in ("chen2016:thm4.1", "jaxkern:relative-distances"):
            (setting,) = claim.corrected.settings
            count = len(np.unique(data.points, axis=0))
            assert setting.numbers["n"] == min(count, places.ROWS) and "rows" in setting.name


def test_a_table_without_close_rows_leaves_pairs_as_they_are(x64):
    data = populations.from_rows(np.array([[0.0], [100.0], [300.0]]), 1.0)
    own, on_data = ({c.id: c for c in chen2016.claims(d)} for d in (None, data))
    for i in ("chen2016:lem2.1", "chen2016:cor2.2", "jaxkern:convex-order"):
        forms = [c[i].corrected or c[i].printed for c in (own, on_data)]
        assert [s.name for s in forms[0].settings] == [s.name for s in forms[1].settings]


def test_pairs_of_a_users_rows_are_at_quantiles_of_their_distances(x64, rng):
    """Rows that are all too near or too far leave the pairs of our own."""
    X, lengthscale = rng.standard_normal((12, 3)), 1.3
    data = populations.from_rows(X, lengthscale=lengthscale)
    apart = np.array([np.linalg.norm(X[i] - X[j]) / lengthscale for i in range(12) for j in range(i)])
    wanted = [np.sort(apart)[round(q * (len(apart) - 1))] for q in (0.05, 0.5, 0.95)]
    found = places.pairs_of(data)
    assert [setting.name for setting in found] == [f"rows at distance {r:.4g}" for r in wanted]
    for setting, r in zip(found, wanted, strict=True):
        first, second = np.asarray(setting.population["pair"])
        assert np.linalg.norm(first - second) == pytest.approx(lengthscale * r)
        assert setting.numbers["K"] == pytest.approx(math.exp(-(r**2) / 2))
    ours = [setting.name for setting in places.pairs_of(None)]
    for scale in (1e-3, 1e3):
        other = populations.from_rows(scale * X, lengthscale=lengthscale)
        assert places.distances(other, (1.0, 2.0), 0.1, 12.0) == [1.0, 2.0]
        assert [setting.name for setting in places.pairs_of(other)] == ours
