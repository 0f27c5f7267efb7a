"""The claims: what they are, that they run, and that they notice a bound or a map that is wrong."""

import dataclasses

import jax
import numpy as np
import pytest

from jaxkern.bounds import sketching
from proofs_check import controls, register
from proofs_check.claim import Calibrated, Tail, Undecided
from proofs_check.engine import draws as runner
from proofs_check.engine import run
from proofs_check.papers import populations
from proofs_check.papers.ghashami2016 import theorems as ghashami2016
from proofs_check.papers.kpotufe2020 import examples as kpotufe2020_examples
from proofs_check.papers.kpotufe2020 import steps as kpotufe2020_steps
from proofs_check.papers.kpotufe2020 import theorems as kpotufe2020
from proofs_check.papers.kpotufe2020.places import Places
from proofs_check.report.html import _mathml

STATEMENTS = {
    "kpotufe2020:eq1",
    "kpotufe2020:normalisation",
    "kpotufe2020:propB.1",
    "kpotufe2020:eq5",
    "kpotufe2020:cost",
    "kpotufe2020:prop1",
    "kpotufe2020:thm1",
    "kpotufe2020:eq7",
    "kpotufe2020:eq8",
    "kpotufe2020:thm2",
    "kpotufe2020:thm3",
    "kpotufe2020:lemB.2",
    "kpotufe2020:lemB.3",
    "kpotufe2020:lemB.3-proof",
    "kpotufe2020:rate",
    "kpotufe2020:nystrom-cost",
    "kpotufe2020:worst-case",
    "kpotufe2020:eq2",
    "kpotufe2020:no-identity",
    "kpotufe2020:eq3",
    "kpotufe2020:eq4",
    "kpotufe2020:remark",
    "kpotufe2020:eq6",
    "kpotufe2020:thm1-proof",
    "kpotufe2020:thm2-text",
    "kpotufe2020:eq9",
    "kpotufe2020:assumption1",
    "kpotufe2020:eq10",
    "kpotufe2020:eq11",
    "kpotufe2020:eq12",
    "kpotufe2020:mixture",
    "kpotufe2020:eq13",
    "kpotufe2020:eq14",
    "kpotufe2020:thmC.1",
    "kpotufe2020:thmC.2",
}
WRONG = {
    "kpotufe2020:thm1",
    "kpotufe2020:lemB.3-proof",
    "kpotufe2020:remark",
    "kpotufe2020:thm1-proof",
    "kpotufe2020:thm2-text",
    "kpotufe2020:assumption1",
    "kpotufe2020:eq10",
    "kpotufe2020:eq11",
    "kpotufe2020:eq12",
    "kpotufe2020:mixture",
    "kpotufe2020:eq13",
    "kpotufe2020:eq14",
    "kpotufe2020:thmC.2",
}
SMALL = dataclasses.replace(runner.QUICK, max_trials=128, max_control=64, max_draws=1000)


@pytest.fixture(scope="module")
def every_claim():
    with jax.enable_x64(True), jax.debug_key_reuse(False):
        return {claim.id: claim for claim in register.claims()}


@pytest.fixture
def claims(x64, every_claim):
    with jax.debug_key_reuse(False):  # the checker takes the splits of jax.random.multinomial for reuse
        yield every_claim


def test_every_numbered_statement_of_the_paper_is_there(claims):
    assert set(claims) >= STATEMENTS
    assert all(i.startswith(("kpotufe2020:", "amini2021:", "chen2016:", "ghashami2016:", "jaxkern:")) for i in claims)


def test_every_claim_has_a_form_a_reason_and_a_control(claims):
    for claim in claims.values():
        assert claim.printed or claim.corrected, claim.id
        undecided = claim.printed is not None and isinstance(claim.printed.statement, Undecided)
        assert (claim.controls or undecided) and claim.because and claim.tex, claim.id
        assert claim.corrected or not claim.id.startswith("jaxkern:"), claim.id


def test_every_formula_becomes_mathml(claims):
    pytest.importorskip("latex2mathml")
    for claim in claims.values():
        for tex in (claim.tex, *(form.tex for form in (claim.printed, claim.corrected) if form is not None)):
            found = _mathml.formula(tex) if tex else "<math"
            assert "<math" in found and "<code" not in found and "\\" not in found, f"{claim.id}: {tex}"


def test_every_claim_says_what_it_assumes(claims):
    pytest.importorskip("latex2mathml")
    for claim in claims.values():
        parts = claim.hypotheses.split("$")
        assert claim.hypotheses.endswith(".") and len(parts) % 2 == 1, claim.id
        assert not any("\\" in words for words in parts[::2]), claim.id
        for tex in parts[1::2]:
            found = _mathml.formula(tex)
            assert "<math" in found and "<code" not in found and "\\" not in found, f"{claim.id}: {tex}"


def test_what_is_printed_wrong_is_expected_to_be_refuted(claims):
    wrong = {i for i, claim in claims.items() if claim.printed and claim.printed.expect == "refuted"}
    assert {i for i in wrong if i.startswith("kpotufe2020:")} == WRONG
    assert all(claims[i].corrected is not None for i in wrong)


def test_hypotheses_are_met_and_bounds_can_fail(claims):
    """A bound above the most that its statistic can be would be vacuous; delta must leave room for a violation."""
    for claim in claims.values():
        for form in (claim.printed, claim.corrected):
            if form is None or not isinstance(form.statement, Tail | Calibrated):
                continue
            tail = form.statement
            bounds = [(tail.bound if isinstance(tail, Tail) else tail.shape)(s) for s in form.settings]
            assert all(bool(b.valid) and 0 < b.value < np.inf and 0 < 1 - b.probability < 1 for b in bounds), claim.id


@pytest.mark.parametrize(
    "chosen",
    [
        "kpotufe2020:normalisation",
        "kpotufe2020:cost",
        "kpotufe2020:thm1",
        "kpotufe2020:lemB.2",
        "kpotufe2020:eq8",
        "kpotufe2020:remark",
        "kpotufe2020:eq6",
        "kpotufe2020:thm1-proof",
        "kpotufe2020:eq4",
        "kpotufe2020:assumption1",
        "kpotufe2020:eq10",
        "kpotufe2020:eq13",
        "kpotufe2020:eq14",
        "kpotufe2020:mixture",
        "kpotufe2020:thmC.2",
        "jaxkern:thmC.1-lower",
        "ghashami2016:thm3.1",
    ],
)
def test_verdicts_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=SMALL, seed=11)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


def test_the_same_seed_gives_the_same_numbers(claims):
    first, second = (run.run([claims["kpotufe2020:eq8"]], profile=SMALL, seed=3)[0] for _ in range(2))
    other = run.run([claims["kpotufe2020:eq8"]], profile=SMALL, seed=4)[0]
    assert first.printed.slack == second.printed.slack != other.printed.slack


def test_a_bound_that_is_too_small_is_refuted(claims):
    claim = claims["kpotufe2020:lemB.2"]
    tail = claim.printed.statement

    small = controls.scaled(tail.bound, lambda setting: 1 / 20)
    broken = dataclasses.replace(claim.printed, statement=dataclasses.replace(tail, bound=small))
    (result,) = run.run([dataclasses.replace(claim, printed=broken)], profile=SMALL, seed=0)
    assert result.printed.status == "refuted" and not result.as_expected


def test_a_wrong_sketch_is_noticed(claims, monkeypatch):
    """With 1.2 Z K for Z K neither the mean nor the law of the library's map is what the claims say."""
    from jaxkern import features

    def wrong(key, kernel, landmarks, *, num_features, centered=False):
        phi = true(key, kernel, landmarks, num_features=num_features, centered=centered)
        return dataclasses.replace(phi, projection=phi.projection * 1.2)

    true = features.kernel_jl
    monkeypatch.setattr(features, "kernel_jl", wrong)
    for chosen in ("kpotufe2020:eq1", "jaxkern:shortcut-literal"):
        claim = claims[chosen]
        form = claim.printed or claim.corrected
        only = dataclasses.replace(form, settings=form.settings[:1])
        slot = "printed" if claim.printed else "corrected"
        (result,) = run.run([dataclasses.replace(claim, **{slot: only}, controls=())], profile=SMALL, seed=0)
        assert getattr(result, slot).status == "refuted"


def test_the_printed_theorem_1_fails_for_every_constant(claims):
    """P(chi2_1 > 1 + 3 C (sqrt 2 + sqrt tau) + 1/2) exceeds 5 exp(-tau), for C over six decades."""
    statement = claims["kpotufe2020:thm1"].printed.statement
    for constant in np.geomspace(1e-3, 1e3, 25):
        tau = 9 * constant**2 + 12
        setting = kpotufe2020.Setting("", numbers={"p": 1.0, "tau": tau, "C": constant})
        found, claimed = statement.probability(setting)
        assert found > claimed


@pytest.mark.slow
def test_a_users_table_is_judged_by_the_same_claims(x64):
    X = np.random.default_rng(0).standard_normal((30, 2))
    people = populations.from_rows(X)
    on_data = register.claims(data=people)
    assert [claim.id for claim in on_data] == [claim.id for claim in register.claims()]
    chosen = [c for c in on_data if c.id in ("kpotufe2020:lemB.2", "kpotufe2020:eq5")]
    with jax.debug_key_reuse(False):
        results = run.run(chosen, profile=SMALL, seed=0, data=True)
    assert all(r.as_expected for r in results)
    assert {v.status for r in results for _, _, v in r.forms} <= {"certified", "consistent", "identity"}


def test_the_full_profile_tries_more_places(claims):
    full = {claim.id: claim for claim in register.claims(profile="full")}
    assert set(full) == set(claims)
    more = [i for i in full if full[i].corrected and len(full[i].corrected.settings) > 5]
    assert "kpotufe2020:thm1" in more
    assert len(full["kpotufe2020:thm1"].corrected.settings) > len(claims["kpotufe2020:thm1"].corrected.settings)


def test_the_named_constants_bracket_the_smallest_one():
    from scipy import optimize, stats

    # u - log(1 + u) = 2: the rate at which chi2_d / d - 1 exceeds u equals exp(-d).
    exact = optimize.brentq(lambda u: u - np.log1p(u) - 2, 1, 10)
    assert sketching.KOLTCHINSKII_LOUNICI_LOWER < exact < sketching.KOLTCHINSKII_LOUNICI
    assert exact - sketching.KOLTCHINSKII_LOUNICI_LOWER < 1e-3
    # At d = 600 the probability already shows the rate on both sides of it.
    d = 600
    assert stats.chi2.logsf(d * (1 + exact - 0.03), d) > -d > stats.chi2.logsf(d * (1 + exact), d)


def test_the_law_of_a_mean_of_cosines_is_that_of_simulation():
    """Against 200,000 draws, 6 standard errors: false alarms below 1e-8."""
    rng = np.random.default_rng(0)
    means = np.cos(rng.uniform(0, 2 * np.pi, (200_000, 20))).mean(axis=1)
    setting = kpotufe2020.Setting("", numbers={"m": 20.0, "eps": 0.3, "delta": 0.5})
    exact = np.exp(ghashami2016._violation(setting)[0])
    assert abs((np.abs(means) > 0.3).mean() - exact) <= 6 * np.sqrt(exact * (1 - exact) / 200_000)


def test_any_number_of_rows_costs_what_few_do():
    """Bartlett's matrix: u' L L' u is chi-square for every unit u; Kolmogorov-Smirnov at 1e-6, 4000 draws."""
    from scipy import stats

    from proofs_check.papers.kpotufe2020 import trials

    u = np.array([0.6, -0.48, 0.64], np.float32)
    for d in (5.0, 1e5):
        keys = jax.random.split(jax.random.key(3), 4000)
        roots = np.asarray(jax.vmap(lambda key, d=d: trials.wishart_root(key, 3, d, np.float32))(keys), float)
        assert np.all(roots[:, 0, 1:] == 0)
        squares = ((np.swapaxes(roots, 1, 2) @ u) ** 2).sum(1)
        assert stats.kstest(squares, stats.chi2(d).cdf).pvalue > 1e-6
        mean = (roots @ np.swapaxes(roots, 1, 2)).mean(0) / d
        assert np.abs(mean - np.eye(3)).max() < 6 * np.sqrt(2 / d / 4000)


def test_the_mean_of_a_sampled_cube_is_that_of_all_samples():
    """Three atoms and n = 4: the sum over all 15 counts."""
    import itertools
    import math

    from scipy import stats

    from proofs_check.papers.kpotufe2020 import steps as kpotufe2020_steps

    rng = np.random.default_rng(0)
    K = np.exp(-((np.arange(3.0)[:, None] - np.arange(3.0)) ** 2) / 2)
    weights = np.array([0.5, 0.3, 0.2])
    person = populations.Population("three", None, np.eye(3), weights, *populations._features(K, weights))
    f = rng.standard_normal(3)
    total = 0.0
    for counts in itertools.product(range(5), repeat=3):
        if sum(counts) == 4:
            sample = person.features.T @ (np.array(counts)[:, None] / 4 * person.features)
            total += stats.multinomial.pmf(counts, 4, weights) * (f @ np.linalg.matrix_power(sample, 3) @ f)
    assert math.isclose(kpotufe2020_steps.mean_cube(person, f, 4.0), total, rel_tol=1e-12)


def test_the_bounds_of_6_in_both_norms_are_one_number_in_one_coordinate(x64):
    person = kpotufe2020_examples._law("line", [[1.0], [-1.0]], [0.2, 0.8], [0, 1]).person
    form = kpotufe2020_steps._eq6(Places((person,), (1.0,))).printed
    sides = form.statement.sides(jax.random.key(0), *form.settings)[3::5]
    assert sides and max(left for left, _ in sides) > 0.01
    for left, right in sides:
        assert left == pytest.approx(right.value, rel=1e-9)


def test_effective_ranks_are_squared_mean_norms():
    from scipy import special

    from proofs_check.papers.kpotufe2020 import tools as kpotufe2020_tools

    for p in (1, 2, 8):
        exact = 2 * np.exp(2 * (special.gammaln((p + 1) / 2) - special.gammaln(p / 2)))
        assert kpotufe2020_tools.effective_rank(3 * np.ones(p)) == pytest.approx(exact, rel=1e-8)
