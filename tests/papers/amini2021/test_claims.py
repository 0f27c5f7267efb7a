"""The claims of amini2021: their verdicts, their exact laws against simulation, and what they must notice."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import kmeans, measures, problems
from jaxkern.bounds import concentration
from jaxkern.gram import gram
from proofs_check.claim import Calibrated, Setting, Tail
from proofs_check.controls import KINDS
from proofs_check.engine import draws as runner
from proofs_check.engine import run
from proofs_check.papers import populations
from proofs_check.papers.amini2021 import bandwidth as amini2021_bandwidth
from proofs_check.papers.amini2021 import exact, trials
from proofs_check.papers.amini2021 import inner as amini2021_inner
from proofs_check.papers.amini2021 import remarks as amini2021_remarks
from proofs_check.papers.amini2021 import spheres as amini2021_spheres
from proofs_check.papers.amini2021 import statistics as amini2021_statistics
from proofs_check.papers.amini2021 import steps as amini2021_steps
from proofs_check.papers.amini2021 import theorems as amini2021

EXPECTED = {
    "amini2021:lem4": ("consistent", None),
    "amini2021:ex1-lipschitz": ("refuted", "consistent"),
    "amini2021:def2b": ("refuted", "consistent"),
    "amini2021:thm4": ("certified", None),
    "amini2021:thm5": ("not testable", "certified"),
    "amini2021:lem1": ("consistent", None),
    "amini2021:eq9": ("refuted", "identity"),
    "amini2021:eq6": ("refuted", "consistent"),
    "amini2021:prop4": ("refuted", "consistent"),
    "amini2021:thm1-33": ("certified", "certified"),
    "amini2021:lem2": ("consistent", "consistent"),
    "amini2021:lem2-diagonal": ("refuted", "consistent"),
    "amini2021:lem7": ("identity", None),
    "amini2021:thm1": ("refuted", "certified"),
    "amini2021:prop1": ("certified", None),
    "amini2021:eq10": ("certified", "certified"),
    "amini2021:eq12": ("certified", "certified"),
    "amini2021:prop3": ("certified", None),
    "amini2021:prop3-norm": ("refuted", "certified"),
    "amini2021:rate-dimension": ("certified", None),
    "amini2021:rate-noise": ("certified", None),
    "amini2021:rate-points": ("certified", None),
    "amini2021:thm2": ("refuted", "certified"),
    "amini2021:sec2.2-limit": ("refuted", "consistent"),
    "amini2021:sec2.2-lower": ("refuted", "certified"),
    "amini2021:lem3": ("calibrated", "certified"),
    "amini2021:thm6": ("calibrated", "certified"),
    "amini2021:lem5": ("certified", "certified"),
    "amini2021:thm3": ("certified", "certified"),
    "amini2021:eq41": ("consistent", "consistent"),
    "amini2021:kmeans-step": ("consistent", "consistent"),
    "amini2021:sec3.4": ("refuted", "consistent"),
    "amini2021:alg1": ("certified", None),
    "amini2021:u-statistic": ("certified", "certified"),
    "amini2021:v-statistic": ("certified", "certified"),
    "amini2021:prop2": ("certified", "certified"),
    "amini2021:prop2-bias": ("refuted", "identity"),
    "amini2021:prop2-display": ("refuted", "certified"),
    "amini2021:eq30": ("certified", "certified"),
    "amini2021:cor1": ("refuted", "consistent"),
    "amini2021:eq28": ("identity", "identity"),
    "amini2021:ex4-alpha": ("refuted", "consistent"),
    "amini2021:ex5-mean": ("identity", None),
    "amini2021:ex5-variance": ("refuted", "identity"),
    "amini2021:ex5-limit": ("refuted", "consistent"),
    "amini2021:lem6": ("refuted", "certified"),
    "amini2021:psi": ("refuted", "consistent"),
    "amini2021:b3": ("not testable", "consistent"),
    "amini2021:ex6": ("refuted", "consistent"),
    "amini2021:sec1-decomposition": ("identity", "consistent"),
    "amini2021:sec1.1-eigenvalues": ("consistent", "consistent"),
    "amini2021:sec2.1-jointly": ("consistent", "consistent"),
    "amini2021:prop1-any": ("not testable", "certified"),
    "amini2021:eq7": ("refuted", "consistent"),
    "amini2021:ex1-limit": ("refuted", "consistent"),
    "amini2021:ex1-rescaling": ("identity", None),
    "amini2021:sec2.2-mean": ("identity", None),
    "amini2021:eq14": ("calibrated", None),
    "amini2021:ex2": ("identity", None),
    "amini2021:sec2.2-relative": ("consistent", None),
    "amini2021:sec2.2-centred": ("calibrated", "certified"),
    "amini2021:eq32": ("consistent", "consistent"),
    "amini2021:ex5-closest": ("refuted", "consistent"),
    "amini2021:ex5-bandwidth": ("refuted", "consistent"),
    "amini2021:alg1-isometry": ("identity", None),
    "amini2021:alg1-kmeans": ("not testable", "consistent"),
    "amini2021:alg1-cost": ("not testable", "consistent"),
    "amini2021:eq22": ("identity", "consistent"),
    "amini2021:eq39": ("identity", None),
    "amini2021:eq40": ("refuted", "consistent"),
    "amini2021:eq25": ("not testable", "identity"),
    "amini2021:ex3-noise": ("refuted", "consistent"),
    "amini2021:sec3.4-lipschitz": ("not testable", "consistent"),
    "amini2021:sec3.4-network": ("consistent", None),
    "amini2021:sec3.5-sign": ("identity", None),
    "amini2021:sec3.5-nmi": ("refuted", "consistent"),
    "amini2021:thm2-net": ("consistent", "consistent"),
    "amini2021:eq42": ("identity", None),
    "amini2021:thm6-mgf": ("refuted", "consistent"),
    "amini2021:thm6-split": ("refuted", "certified"),
    "amini2021:b1": ("refuted", "identity"),
    "amini2021:lem6-beta": ("certified", None),
    "amini2021:consistency": ("not testable", "consistent"),
    "jaxkern:lem1-distance": (None, "consistent"),
    "jaxkern:variance-lc": (None, "consistent"),
    "jaxkern:gaussian-pair-variance": (None, "identity"),
    "jaxkern:thm1-lc": (None, "certified"),
    "jaxkern:distance-kernel": (None, "certified"),
    "jaxkern:distance-kernel-variance": (None, "certified"),
    "jaxkern:inner-product-any": (None, "certified"),
    "jaxkern:misclassification-operator": (None, "certified"),
    "jaxkern:sphere-variance": (None, "consistent"),
}
SAMPLED = {
    *("amini2021:thm1", "amini2021:eq10", "amini2021:eq12", "amini2021:prop3", "amini2021:prop3-norm"),
    *("amini2021:rate-dimension", "amini2021:rate-noise", "amini2021:rate-points", "amini2021:thm2"),
    *("amini2021:lem3", "amini2021:thm6", "amini2021:thm3", "amini2021:alg1", "amini2021:lem6"),
    *("amini2021:eq14", "amini2021:sec2.2-centred", "amini2021:lem6-beta"),
    *("jaxkern:thm1-lc", "jaxkern:distance-kernel", "jaxkern:distance-kernel-variance"),
    *("jaxkern:inner-product-any", "jaxkern:misclassification-operator"),
}
QUICKLY = ("amini2021:eq10", "amini2021:lem6", "amini2021:prop3-norm", "jaxkern:distance-kernel-variance")
TINY = dataclasses.replace(runner.QUICK, max_trials=128, max_control=128, max_draws=1000)


@pytest.fixture(scope="module")
def claims():
    with jax.enable_x64(True):
        yield {claim.id: claim for claim in amini2021.claims()}


def only(claim, **changes):
    return dataclasses.replace(claim, **{"printed": None, "corrected": None, "controls": (), **changes})


def test_the_statements_of_the_paper_and_ours_are_there(claims):
    found = {
        i: tuple(form.expect if form else None for form in (claim.printed, claim.corrected))
        for i, claim in claims.items()
    }
    assert found == EXPECTED
    for claim in claims.values():
        assert claim.controls and claim.because and claim.tex and claim.where and claim.paper == "amini2021", claim.id
        assert claim.corrected or claim.printed.expect != "refuted", claim.id


def test_every_claim_says_what_it_assumes_and_every_control_what_is_wrong_with_it(claims):
    for claim in claims.values():
        words = claim.hypotheses.split("$")
        assert len(words) % 2 == 1 and len(claim.hypotheses) > 20 and claim.hypotheses.endswith("."), claim.id
        assert all(words[1::2]), claim.id
        assert {control.kind for control in claim.controls} <= set(KINDS), claim.id
    kinds = {control.kind for claim in claims.values() for control in claim.controls}
    asked = {"n for n - 1", "centred for uncentred", "swapped constants", "reused key", "low precision"}
    assert asked <= kinds


@pytest.mark.parametrize("full", [False, True])
def test_claims_are_built_without_their_mean_kernels(monkeypatch, full):
    def computed(*_):
        raise AssertionError("a mean kernel was computed")

    monkeypatch.setattr(measures, "mean_kernel", computed)
    made = amini2021.claims(full=full)
    places = [s for claim in made for form in (claim.printed, claim.corrected) if form for s in form.settings]
    late = [s.population for s in places if isinstance(s.population, trials.OnUse)]
    assert len(late) > 50 and not any("made" in vars(population) for population in late)


def test_what_is_made_on_use_is_made_once_and_is_a_dictionary_for_jax():
    made = []
    late = trials.OnUse(lambda: made.append(1) or {"b": jnp.ones(2), "a": jnp.zeros(())})
    assert not made
    copy = jax.device_put(late)
    assert type(copy) is dict and set(late) == set(copy) and len(late) == 2 and late["b"].shape == (2,)
    assert made == [1] and jax.tree.leaves(late)[0].shape == ()


@pytest.mark.parametrize("source", ["quick", "full", "data"])
def test_hypotheses_are_met_and_probabilities_say_something(source, x64):
    rows = populations.from_rows(np.random.default_rng(0).standard_normal((40, 2)))
    made = amini2021.claims(rows if source == "data" else None, full=source == "full")
    assert {claim.id for claim in made} == set(EXPECTED)
    for claim in made:
        for form in (claim.printed, claim.corrected, *claim.controls):
            names = [] if form is None else [s.name for s in form.settings]
            assert len(set(names)) == len(names), claim.id
            if form is not None and isinstance(form.statement, Tail | Calibrated):
                tail = form.statement
                for b in map(tail.bound if isinstance(tail, Tail) else tail.shape, form.settings):
                    assert bool(b.valid) and 0 < b.value < np.inf and 0 < 1 - b.probability < 1, claim.id


@pytest.mark.slow
def test_verdicts_of_what_is_not_sampled_are_as_expected(claims):
    chosen = [claim for i, claim in claims.items() if i not in SAMPLED]
    assert len(chosen) == len(claims) - len(SAMPLED)
    for result in run.run(chosen, profile=TINY, seed=5):
        assert result.as_expected, (result.claim.id, result.notes, [v.because for _, _, v in result.forms])


@pytest.mark.parametrize(
    "chosen", [*QUICKLY, *(pytest.param(i, marks=pytest.mark.slow) for i in sorted(SAMPLED - set(QUICKLY)))]
)
def test_verdicts_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=TINY, seed=5)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


# ---------------------------------------------------------------------------------------- exact laws, against others


def test_the_law_on_ten_points_is_barely_in_the_class():
    assert exact.has_property_33(1.0) and not exact.has_property_33(1.01)
    assert exact.MASSES.sum() == pytest.approx(1) and abs(exact.MASSES @ exact.ATOMS) < 1e-15
    square, norm = exact.sum_errors(2)
    variance = exact.MASSES @ exact.ATOMS**2
    assert square == pytest.approx(2 * 2 * 3 * variance) and norm < math.sqrt(square)


def test_the_mean_of_a_gaussian_kernel_is_a_product_of_closed_forms():
    m, v, tau = np.array([0.4, -1.0, 2.0]), 0.7, 1.3
    s2 = 1 + v / tau**2
    closed = s2**-1.5 * math.exp(-(m @ m) / (2 * s2 * tau**2))
    assert exact.mean_of_gaussian(m, v, tau) == pytest.approx(closed, rel=1e-12)


def test_the_limit_for_means_of_rank_one_has_the_law_that_is_computed(rng):
    """200,000 draws, 6 standard errors: false alarms below 1e-8."""
    n, level = 10, 3.5
    y = rng.standard_normal((200_000, n))
    b = np.eye(1, n)[0]
    limits = np.linalg.norm(y, axis=1) + np.abs(y @ b)
    M = np.outer(b, y[0])
    assert np.linalg.norm(M + M.T, 2) == pytest.approx(limits[0])
    found, share = math.exp(amini2021_inner._log_below(n, level)), np.mean(limits < level)
    assert abs(found - share) <= 6 * math.sqrt(found * (1 - found) / 200_000)


def test_the_gegenbauer_nodes_have_the_moments_of_the_angle():
    for d in (2, 3, 50):
        a, weights = exact.cosines(d)
        assert weights @ a**2 == pytest.approx(1 / d) and weights @ np.exp(2 * a) == pytest.approx(exact.psi(2, d))


def test_quadrature_over_both_noises_is_the_printed_kernel_unless_sign_0_is_0():
    for a in (-0.7, 0.0, 1.0):
        true = exact.radial_quadrature(a, 1.0, 2.0, 1.5, 1.8, 4)
        assert exact.radial_mean(a, 1.0, 2.0, 1.5, 1.8, 4) == pytest.approx(true, rel=1e-9)
    wrong = exact.radial_mean(0.0, 1.0, 2.0, 1.5, 1.8, 4, zero=0)
    assert abs(wrong / exact.radial_quadrature(0.0, 1.0, 2.0, 1.5, 1.8, 4) - 1) > 0.1


def test_two_binomial_variables_give_the_block_parameters_of_the_library(x64):
    """For the kernel 1{y = z}, with 6 and 2 ones among 8 points each."""
    y = np.repeat([1, 0, 1, 0], [6, 2, 2, 6])
    labels = np.repeat([0, 1], 8)
    K = jnp.asarray(y[:, None] == y, float)
    found = concentration.block_parameters(K, jnp.asarray(labels), num_clusters=2)
    first, mixed, second = amini2021_statistics._means(6 / 8, 2 / 8)
    np.testing.assert_allclose(found.psi, [[first, mixed], [mixed, second]], rtol=1e-12)
    gamma2, vbar2 = amini2021_statistics._parameters(6 / 8, 2 / 8)
    assert float(found.gamma2) == pytest.approx(gamma2) and float(found.vbar2) == pytest.approx(vbar2)
    place = amini2021_statistics._pair(400, 0.9, 0.2)
    assert place.chances.sum() == pytest.approx(1, abs=1e-11)


def test_the_sub_gaussian_norm_of_a_normal_variable_by_its_definition():
    """E exp(X^2 / kappa^2) = (1 - 2 / kappa^2)^(-1/2) is 2."""
    mean = (1 - 2 / amini2021_inner.KAPPA**2) ** -0.5
    assert mean == pytest.approx(2)


def test_the_printed_theorem_2_is_tried_with_the_constant_that_the_claim_names(claims):
    (setting,) = claims["amini2021:thm2"].printed.settings
    assert claims["amini2021:thm2"].printed.statement.bound(setting).value == pytest.approx(2 / math.log(2))


def test_the_bound_of_theorem_2_fails_with_the_probability_that_its_settings_name(claims):
    form = claims["amini2021:thm2"].corrected
    for setting in form.settings:
        delta = float(setting.name.split("delta=")[1])
        assert 1 - form.statement.bound(setting).probability == pytest.approx(delta, rel=1e-9)


def test_the_mean_of_a_norm_is_that_of_a_chi_variable_and_of_simulation(rng):
    """200,000 draws, 6 standard errors: false alarms below 1e-8."""
    assert amini2021_remarks._mean_norm(5, 3.0, 0.0) == pytest.approx(math.sqrt(3) * exact.mean_chi(5), rel=1e-12)
    draws = np.linalg.norm(rng.standard_normal((200_000, 3)) * 0.7 + [2.0, 0.0, 0.0], axis=1)
    found = amini2021_remarks._mean_norm(3, 0.49, 2.0)
    assert abs(draws.mean() - found) < 6 * draws.std() / math.sqrt(len(draws))


def test_the_spheres_have_the_moments_that_quadrature_over_the_angle_gives(x64):
    place = amini2021_bandwidth._spheres((1.0, 5.0), 50)
    numbers = {"r": 1.0, "q": 5.0}
    mean, variance, x = amini2021_spheres._moments(Setting("", numbers=numbers, shapes={"d": 50}))
    assert place.products[0, 1] == pytest.approx(x) and place.variances[0, 1] == pytest.approx(variance, rel=1e-8)
    psi = np.array([[exact.psi(v, 50) for v in row] for row in place.products])
    means = np.outer(place.heights, place.heights) * psi
    assert means[0, 1] == pytest.approx(mean, rel=1e-10)
    found = concentration.population_parameters(jnp.asarray(means), jnp.asarray(place.variances), jnp.full(2, 0.5))
    assert place.separation == pytest.approx(float(found.gamma2)) and place.variance == pytest.approx(
        float(found.vbar2)
    )


def test_all_seeds_and_all_partitions_of_a_few_points_are_tried(x64):
    """By loops over the seeds; the best of 200 runs of the library's k-means finds the least cost."""
    X = np.random.default_rng(4).standard_normal((6, 2))
    square = np.sum((X[:, None] - X) ** 2, axis=2)
    chances, costs = amini2021_steps._seeded_costs(X, 2)
    mean = sum(
        square[i, j] / square[i].sum() / 6 * np.minimum(square[i], square[j]).sum() for i in range(6) for j in range(6)
    )
    assert chances.sum() == pytest.approx(1) and chances @ costs == pytest.approx(mean)
    least = amini2021_steps._least_cost(X, 3)
    found = kmeans.kmeans(jax.random.key(0), jnp.asarray(X), 3, num_restarts=200)
    assert float(found.objective) == pytest.approx(least)
    assert np.min(amini2021_steps._seeded_costs(X, 3)[1]) >= least


# --------------------------------------------------------------------------------------------------------------- trials


def test_the_norms_of_the_trials_are_literal_ones(dtype):
    model = trials.gaussian("three points", np.eye(3, 4), 2.0, 2)
    assert model.numbers["scale"] == pytest.approx(2 / math.sqrt(2)) and model.numbers["n"] == 3
    population = model.population
    X = problems.perturb(jax.random.key(1), population["means"], population["noise"]).points
    E = np.asarray(gram(population["kernel"], X), np.float64) - np.asarray(population["mean"], np.float64)
    for operator, norm in ((1, np.linalg.norm(E, 2)), (0, np.linalg.norm(E))):
        numbers = {"operator": jnp.asarray(operator, dtype), "reused": jnp.zeros((), dtype)}
        found = trials.gram_error(jax.random.key(1), population, numbers)
        assert found.dtype == dtype and float(found) == pytest.approx(norm / 3, rel=1e-5)


def test_a_reused_draw_is_the_noise_of_the_first_point_on_all(x64):
    place = trials.sums("").setting("", {"reused": 1.0})
    W = problems.perturb(jax.random.key(1), place.population["means"], place.population["noise"]).points
    numbers = {name: jnp.asarray(value) for name, value in place.numbers.items()}
    found = trials.gram_error(jax.random.key(1), place.population, numbers)
    assert float(found) == pytest.approx(2 * abs(float(W[0, 0])))  # K = x_1 + y_1 is then constant
    fresh = trials.gram_error(jax.random.key(1), place.population, numbers | {"reused": jnp.asarray(0.0)})
    assert float(fresh) == pytest.approx(np.linalg.norm(np.add.outer(W[:, 0], W[:, 0])) / len(W))
    twice = trials.angle(jax.random.key(1), None, {"factor": jnp.asarray(3.0), "reused": jnp.asarray(1.0)}, dim=4)
    assert float(twice) == pytest.approx(3.0)


def test_coordinates_that_are_always_zero_do_not_change_the_mean(x64):
    means = np.eye(4, 6)
    for deviations in (0.5, np.array([0.2, 0.5, 1.0, 0.1])):
        model = trials.distances("", means, deviations, 2)
        np.testing.assert_array_equal(model.variances > 0, np.arange(6)[None, :].repeat(4, 0) < 2)
        whole = measures.mean_kernel(
            model.kernel, trials.real(means), measures.DiagonalNoise(trials.real(model.variances))
        )
        np.testing.assert_allclose(model.population["mean"], whole, rtol=1e-10, atol=1e-12)


def test_ritz_values_come_close_to_the_norm_of_the_sample_covariance_from_below(x64):
    n = 96
    first, _ = jax.random.split(jax.random.key(2))
    W = np.asarray(jax.random.rademacher(first, (n, n), jnp.float64))
    exact_norm = np.linalg.norm(W.T @ W / n - np.eye(n), 2)
    found = float(trials.signs_norm(jax.random.key(2), None, {"u": jnp.zeros(())}, n=n, steps=32))
    assert exact_norm * (1 - 1e-3) <= found <= exact_norm * (1 + 1e-12)


def test_the_kernel_of_proposition_1_has_the_norm_that_is_computed(x64):
    numbers = {"n": jnp.asarray(12.0)}
    h = np.clip(4 * np.asarray(jax.random.uniform(jax.random.key(3), (16,), jnp.float64)) - 2, -1, 1)[:12]
    literal = np.linalg.norm(np.outer(h, h) - 2 / 3 * np.eye(12), 2)
    assert float(trials.clipped_norm(jax.random.key(3), None, numbers, most=16)) == pytest.approx(literal)
    deviation = float(trials.clipped_deviation(jax.random.key(3), None, numbers, most=16))
    assert deviation == pytest.approx(abs(literal - 11 * 2 / 3))


def test_the_law_with_a_gap_is_standardised_and_its_norm_is_nearly_one(x64):
    place = Setting("", None, {"e": 0.3}, {"n": 8})
    values = runner.sample(trials.gap_error, jax.random.key(0), place, 64)
    a = math.sqrt(1 - 0.03)
    assert a**2 + 0.3**2 / 3 == pytest.approx(1)
    assert min(values) >= a - 0.3 and max(values) <= 2 * (a + 0.3)


def test_all_settings_of_a_kernel_share_the_names_of_their_numbers(claims):
    """Otherwise every claim would compile its trial anew."""
    names = {
        tuple(sorted(s.numbers))
        for claim in claims.values()
        for form in (claim.printed, claim.corrected, *claim.controls)
        if form is not None and getattr(form.statement, "trial", None) in (trials.gram_error, trials.misclassified)
        for s in form.settings
    }
    assert len(names) == 1


# ---------------------------------------------------------------------------------------- what the checks must notice


def test_a_mean_kernel_with_a_wrong_diagonal_is_noticed(claims, monkeypatch):
    true = measures.mean_gaussian_kernel

    def wrong(means, noise, lengthscale):
        return true(means, noise, lengthscale) - 1e-6 * jnp.eye(means.shape[0])

    monkeypatch.setattr(measures, "mean_gaussian_kernel", wrong)
    claim = claims["amini2021:eq9"]
    (result,) = run.run([only(claim, corrected=claim.corrected)], profile=TINY, seed=0)
    assert result.corrected.status == "refuted" and not result.as_expected


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
def test_a_bound_that_is_sharp_may_not_be_a_twentieth_smaller(claims, monkeypatch, name, chosen):
    true = getattr(concentration, name)

    def small(**words):
        right = true(**words)
        return dataclasses.replace(right, value=0.95 * right.value)

    monkeypatch.setattr(concentration, name, small)
    claim = claims[chosen]
    (result,) = run.run([only(claim, corrected=claim.corrected)], profile=TINY, seed=0)
    assert result.corrected.status == "refuted"


def test_the_users_rows_are_tried(x64):
    X = np.random.default_rng(1).standard_normal((60, 3)) * [1.0, 2.0, 0.5] + 10
    made = {claim.id: claim for claim in amini2021.claims(populations.from_rows(X))}
    assert any("rows, n=48" in s.name for s in made["jaxkern:distance-kernel"].corrected.settings)
    results = run.run([made["amini2021:eq9"], made["amini2021:lem1"]], profile=TINY, seed=0, data=True)
    assert all(r.as_expected and {v.status for _, v in r.controls} == {"refuted"} for r in results)
    assert results[0].printed.status == "refuted" and results[0].corrected.status == "identity"


@pytest.mark.slow
def test_no_claim_fails_on_rows_of_a_user(x64):
    """Copies of a point, a far point, and a column of zeros among them."""
    X = np.random.default_rng(2).standard_normal((20, 3)) * [1.0, 0.0, 5.0]
    X[3:6], X[7] = X[3], 1e3
    for result in run.run(amini2021.claims(populations.from_rows(X)), profile=TINY, seed=0, data=True):
        assert result.as_expected and not result.unexpected, (result.claim.id, result.notes)


def test_a_setting_of_ones_own_may_be_added():
    place = Setting("mine", numbers={"tau": 0.9})
    claim = next(c for c in amini2021.amini2021_constants.claims(None) if c.id == "amini2021:ex1-lipschitz")
    sides = claim.printed.statement.sides(jax.random.key(0), place)
    assert max(left for left, _ in sides) == pytest.approx(math.exp(-0.5), rel=1e-6)
    assert sides[0][1].value == pytest.approx(math.sqrt(2) / math.e)
