"""The claims of ghashami2016: their verdicts, and the counterexamples against their values by hand."""

import dataclasses
import itertools
import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features
from jaxkern import frequent_directions as fd
from jaxkern.kernels import Gaussian
from proofs_check.claim import Setting, Tail
from proofs_check.engine import draws as runner
from proofs_check.engine import run
from proofs_check.papers import populations
from proofs_check.papers.ghashami2016 import theorems as ghashami2016
from proofs_check.papers.ghashami2016 import trials

EXPECTED = {
    "ghashami2016:frequent-directions": ("consistent", None),
    "ghashami2016:nystrom-frobenius": ("calibrated", None),
    "ghashami2016:nystrom-spectral": ("calibrated", None),
    "ghashami2016:nystrom-coherence": ("certified", "certified"),
    "ghashami2016:features-mean": ("certified", None),
    "ghashami2016:features-entries": ("calibrated", "certified"),
    "ghashami2016:rnca-mean": ("refuted", "certified"),
    "ghashami2016:rnca-markov": ("refuted", "certified"),
    "ghashami2016:features-squares": ("consistent", None),
    "ghashami2016:bernstein": ("certified", None),
    "ghashami2016:hoeffding": ("certified", "certified"),
    "ghashami2016:baselines": ("identity", None),
    "ghashami2016:table1": ("refuted", "identity"),
    "ghashami2016:advantage": ("refuted", "identity"),
    "ghashami2016:crossover-train": ("consistent", None),
    "ghashami2016:first": ("not testable", "consistent"),
    "ghashami2016:fastfood": ("consistent", None),
    "ghashami2016:lem3.1": ("certified", "certified"),
    "ghashami2016:thm3.1": ("refuted", "certified"),
    "ghashami2016:lem3.2": ("refuted", "consistent"),
    "ghashami2016:lem3.2-rowwise": ("consistent", None),
    "ghashami2016:lem3.3": ("refuted", "consistent"),
    "ghashami2016:lem3.3-literal": ("refuted", "consistent"),
    "ghashami2016:thm3.2": ("refuted", "certified"),
    "ghashami2016:lem3.2-proof": ("refuted", "consistent"),
    "ghashami2016:lem3.3-proof": ("refuted", "identity"),
    "ghashami2016:frobenius-stream": ("refuted", "certified"),
    "ghashami2016:lem3.4": ("identity", None),
    "ghashami2016:frobenius": ("consistent", None),
    "ghashami2016:lem3.5": ("refuted", "consistent"),
    "ghashami2016:space": ("consistent", "identity"),
    "ghashami2016:training": ("consistent", "identity"),
    "ghashami2016:test": ("identity", None),
    "ghashami2016:reservoir": (None, "certified"),
    "ghashami2016:test-ratio": ("refuted", "identity"),
    "ghashami2016:crossover-frobenius": ("refuted", "consistent"),
    "jaxkern:gram-spectral": (None, "certified"),
    "jaxkern:gram-spectral-all-n": (None, "certified"),
    "jaxkern:gram-frobenius": (None, "certified"),
    "jaxkern:gram-frobenius-paired": (None, "certified"),
    "jaxkern:gram-frobenius-bernstein": (None, "certified"),
    "jaxkern:quadratic-form-paired": (None, "certified"),
    "jaxkern:gram-frobenius-identity": (None, "certified"),
    "jaxkern:frequent-directions": (None, "consistent"),
    "jaxkern:streaming-gram": (None, "certified"),
    "jaxkern:nystrom-spectral": (None, "certified"),
    "jaxkern:nystrom-best-rank": (None, "certified"),
    "jaxkern:nystrom-frobenius-mean": (None, "consistent"),
}
TINY = dataclasses.replace(runner.QUICK, max_trials=64, max_control=64, max_draws=500)


@pytest.fixture(scope="module")
def claims():
    with jax.enable_x64(True):
        yield {claim.id: claim for claim in ghashami2016.claims()}


def key():
    return jax.random.key(0)


def pairs(claim, form, number):
    """Return left sides and bounds of an inequality at one of its settings."""
    chosen = getattr(claim, form)
    sides = chosen.statement.sides(key(), chosen.settings[number])
    return np.array([(left, float(right.value)) for left, right in sides])


def test_the_statements_of_the_paper_and_ours_are_there(claims):
    found = {
        i: tuple(form.expect if form else None for form in (claim.printed, claim.corrected))
        for i, claim in claims.items()
    }
    assert found == EXPECTED
    for claim in claims.values():
        assert claim.controls and claim.because and claim.tex and claim.where, claim.id


@pytest.mark.parametrize("source", ["quick", "full", "data"])
def test_hypotheses_are_met_and_probabilities_say_something(claims, source):
    rows = populations.from_rows(np.random.default_rng(0).standard_normal((40, 2)))
    made = ghashami2016.claims(rows if source == "data" else None, full=source == "full")
    assert {claim.id for claim in made} == set(EXPECTED)
    for claim in made:
        for form in (claim.printed, claim.corrected, *claim.controls):
            if form is not None and isinstance(form.statement, Tail):
                for b in map(form.statement.bound, form.settings):
                    assert bool(b.valid) and 0 < b.value < np.inf and 0 < 1 - b.probability < 1, claim.id


QUICK_ONES = {
    "ghashami2016:frequent-directions",
    "ghashami2016:nystrom-spectral",
    "ghashami2016:features-squares",
    "ghashami2016:rnca-markov",
    "ghashami2016:bernstein",
    "ghashami2016:hoeffding",
    "ghashami2016:baselines",
    "ghashami2016:table1",
    "ghashami2016:advantage",
    "ghashami2016:crossover-train",
    "ghashami2016:first",
    "ghashami2016:fastfood",
    "ghashami2016:test-ratio",
    "ghashami2016:crossover-frobenius",
    "ghashami2016:lem3.2-proof",
    "ghashami2016:lem3.3-proof",
    "ghashami2016:lem3.2",
    "ghashami2016:lem3.2-rowwise",
    "ghashami2016:lem3.3",
    "ghashami2016:lem3.3-literal",
    "ghashami2016:lem3.4",
    "ghashami2016:frobenius",
    "ghashami2016:lem3.5",
    "ghashami2016:space",
    "ghashami2016:test",
    "jaxkern:gram-frobenius-paired",
    "jaxkern:nystrom-spectral",
}


@pytest.mark.parametrize(
    "chosen", [pytest.param(i, marks=() if i in QUICK_ONES else pytest.mark.slow) for i in EXPECTED]
)
def test_verdicts_are_as_expected(claims, chosen):
    (result,) = run.run([claims[chosen]], profile=TINY, seed=5)
    assert result.as_expected, (result.notes, [v.because for _, _, v in result.forms])


def test_lemma_3_2_is_off_by_two_and_attained_when_corrected(claims):
    """12 batches of 4 orthonormal rows, each twice: |A|_F^2 = 96, each of 4 squared singular values is 24."""
    printed = pairs(claims["ghashami2016:lem3.2"], "printed", 0)
    np.testing.assert_allclose(printed[:, 0], 24 / 96, rtol=1e-12)
    np.testing.assert_allclose(printed[:, 1], [max(4 - k, 0) / 4 / (8 - k) for k in range(8)], atol=1e-12)
    corrected = pairs(claims["ghashami2016:lem3.2"], "corrected", 0)
    np.testing.assert_allclose(corrected, np.full((4, 2), 1 / 4), rtol=1e-12)


def test_lemma_3_3_is_off_by_nearly_two(claims):
    """99 batches that lose 2 * 2 in each of l / 2 directions, n = 100 l rows: 4 * 99 against 2 n / l = 200."""
    for number, size in enumerate((8, 16)):
        ((left, right),) = pairs(claims["ghashami2016:lem3.3"], "printed", number)
        assert left * 100 * size == pytest.approx(396) and right * 100 * size == pytest.approx(200)


def test_algorithm_1_to_the_letter_forgets_the_last_rows(claims):
    """l - 1 rows of squared length 2 in one direction come after the only decomposition."""
    for number, size in enumerate((8, 32)):
        n = 2 * size - 1
        ((left, right),) = pairs(claims["ghashami2016:lem3.3-literal"], "printed", number)
        assert left * n == pytest.approx(2 * (size - 1)) and right * n == pytest.approx(2 * n / size)


def test_the_counterexamples_to_lemma_3_5(claims):
    claim = claims["ghashami2016:lem3.5"]
    ((left, right),) = pairs(claim, "printed", 0)
    assert left == pytest.approx(math.hypot(1, 0.81 - 0.91)) and right == pytest.approx(0.81 + 0.1)
    for number, k in ((1, 1), (2, 3)):
        ((left, right),) = pairs(claim, "printed", number)
        assert left == pytest.approx(math.sqrt(5 * k)) and right == pytest.approx(math.sqrt(k))
        assert pairs(claim, "corrected", number)[0, 1] == pytest.approx(2 * math.sqrt(2 * k))


def test_points_chosen_after_the_features_have_cosines_of_one(claims):
    Z = trials.sign_rows(range(64))
    np.testing.assert_allclose(np.abs(Z), math.sqrt(2 / 64), rtol=1e-12)
    np.testing.assert_allclose(Z @ Z.T, 2 * np.eye(64), atol=1e-12)


@pytest.mark.parametrize("rows", [29, 31])
def test_algorithm_1_is_the_librarys_sketch_shrunk_at_half(claims, rows):
    """The library decomposes a full buffer when the next row comes, and the paper at once: these do not fill it."""
    A = trials.decaying()[:rows]
    B, W = trials.algorithm_1(A, 8, last=True)
    sketch = fd.finalize(fd.update(fd.init(8, 24, A.dtype, shrink_at=4), jnp.asarray(A)))
    np.testing.assert_allclose(B.T @ B, np.float64(sketch.rows).T @ np.float64(sketch.rows), atol=1e-12)
    np.testing.assert_allclose(W @ W.T, np.float64(sketch.basis @ sketch.basis.T), atol=1e-9)


def test_the_only_decomposition_of_a_short_stream_is_that_of_its_first_rows(claims):
    """What `literal_stream_error` takes for Algorithm 1 is what Algorithm 1 returns."""
    cloud = trials.grid_then_cluster(6, 3)
    found = trials.literal_stream_error(key(), cloud.population, {}, size=40, rows=6)
    Z = trials.feature_rows(key(), cloud, 40)
    _, W = trials.algorithm_1(Z, 6)
    error = np.linalg.norm(np.asarray(cloud.population["gram"]) - Z @ W @ W.T @ Z.T, 2)
    assert float(found) == pytest.approx(error / 9, rel=1e-9) and found > 0.25


def test_rows_enter_a_reservoir_with_probability_c_over_i(claims):
    """Three rows, and then 3 / 4, 3 / 5, 3 / 6 expected; 6 standard errors of 400 streams: false alarms below 1e-8."""
    count = jax.jit(jax.vmap(lambda k: trials.reservoir_updates(k, None, {}, size=3, length=6)))
    found = np.asarray(count(jax.random.split(key(), 400)))
    assert found.min() == 3 and found.max() == 6
    assert abs(found.mean() - (3 + 3 / 4 + 3 / 5 + 3 / 6)) <= 6 * found.std() / 20


def test_the_exact_mean_of_nystrom_is_that_of_all_samples():
    """Sets of landmarks with the number of samples that have them, against all 4^3 samples one by one."""
    G = trials.small_grams()[4].population["gram"][:4, :4]
    one_by_one = [trials.landmark_loss(G, sorted(set(chosen))) for chosen in itertools.product(range(4), repeat=3)]
    assert trials.nystrom_mean_squares(G)[2] == pytest.approx(np.mean(one_by_one), rel=1e-9)


def test_theorem_i_on_one_orthogonal_pair_by_hand():
    """G = I of order 2, one landmark: 1 is lost, and (n^2 - |G|^2) / c = 2; shifted features of one cosine lose 3."""
    G = np.eye(2)
    assert trials.nystrom_mean_squares(G)[0] == pytest.approx(1)
    assert trials.features_mean_square(G, np.eye(2), 1) == pytest.approx(4 + 1 - 2)


def test_nystrom_of_a_sample_is_a_pseudo_inverse(x64):
    """The trial's error against NumPy for the landmarks that its key draws, at full rank and cut to rank 2."""
    cloud = trials.clusters(6, 4)
    G = np.asarray(cloud.population["gram"])
    chosen = np.asarray(jax.random.uniform(key(), (8,), jnp.float64) * 10).astype(int)
    C, W = G[:, chosen], G[np.ix_(chosen, chosen)]
    values, vectors = np.linalg.eigh(W)
    for rank in (2, 8):
        kept = [i for i in np.argsort(-values)[:rank] if values[i] > 1e-10]
        inverse = (vectors[:, kept] / values[kept]) @ vectors[:, kept].T
        found = trials._sample(key(), cloud.population, {"from": 10.0}, 8, rank, replace=True)
        np.testing.assert_allclose(found, G - C @ inverse @ C.T, atol=1e-7)


def test_one_feature_of_a_copy_by_hand(x64):
    """|1 - 2 cos(b)^2| = |cos 2 b| for the shift b of the first feature, and the mean over two."""
    phi = features.shifted_fourier(key(), Gaussian(1.0), 1, num_frequencies=4, dtype=jnp.float64)
    twice = np.cos(2 * np.asarray(phi.shifts))
    for m in (1, 2):
        found = trials.copies_error(key(), None, {"m": float(m)}, most=4)
        assert float(found) == pytest.approx(abs(np.mean(twice[:m])), rel=1e-9)


def test_the_law_of_a_mean_of_cosines():
    """The integral of `copies_tail` against a grid over two shifts, and against a sample of 50."""
    grid = np.cos((np.arange(4000) + 0.5) * np.pi / 4000)
    assert np.mean(np.abs(np.add.outer(grid, grid)) > 0.6) == pytest.approx(trials.copies_tail(2, 0.3), abs=2e-3)
    sums = np.random.default_rng(7).uniform(0, 2 * np.pi, (40_000, 50))
    share = np.mean(np.abs(np.cos(sums).mean(1)) > 0.1)  # 5 standard errors: false alarms below 1e-6
    assert abs(share - trials.copies_tail(50, 0.1)) <= 5 * math.sqrt(0.25 / 40_000)


def test_steps_of_two_proofs_fail_by_hand(claims):
    """diag(10, 1) and (1, 1): |B x| / |B| = 9 / sqrt(202), and the norm of an oblique projection."""
    ((left, _),) = pairs(claims["ghashami2016:lem3.2-proof"], "printed", 0)
    assert left == pytest.approx(9 / math.sqrt(202))
    ((left, right),) = pairs(claims["ghashami2016:lem3.3-proof"], "printed", 0)
    # Z (I - W W') Z^-1 = (1, -10; -1/10, 1) / 2, of rank one.
    assert left == pytest.approx(math.sqrt(1 + 100 + 0.01 + 1) / 2) and right == 1


@pytest.mark.slow
def test_the_users_rows_are_tried_in_their_order(x64):
    X = np.arange(600.0).reshape(300, 2)
    cloud = trials.own(populations.from_rows(X))
    assert cloud.num_points == 128 and np.array_equal(cloud.points[0], X[0]) and np.array_equal(cloud.points[-1], X[-1])
    assert np.all(np.diff(cloud.points[:, 0]) > 0)
    made = {claim.id: claim for claim in ghashami2016.claims(populations.from_rows(X[:7]))}
    chosen = [made[i] for i in ("ghashami2016:lem3.2", "ghashami2016:lem3.3-literal", "ghashami2016:lem3.5")]
    assert all(any("data, n=7" in s.name for s in claim.corrected.settings) for claim in chosen)
    results = run.run(chosen, profile=TINY, seed=0, data=True)
    assert all(r.as_expected and r.printed.status == "refuted" and r.corrected.status == "consistent" for r in results)


def test_a_sketch_that_forgets_is_noticed(claims, monkeypatch):
    """With nine tenths of what its shrinks subtract the library's certificate is not one."""
    claim = claims["jaxkern:frequent-directions"]
    only = dataclasses.replace(claim.corrected, settings=claim.corrected.settings[2:3])
    true = fd.finalize

    def wrong(state):
        sketch = true(state)
        return dataclasses.replace(sketch, shrinkage=0.9 * sketch.shrinkage)

    monkeypatch.setattr(fd, "finalize", wrong)
    (result,) = run.run([dataclasses.replace(claim, corrected=only, controls=())], profile=TINY, seed=0)
    assert result.corrected.status == "refuted" and not result.as_expected


def test_the_second_moment_is_that_of_the_features(claims):
    """4 cos(a + g)^2 cos(b + g)^2 has the mean cos(a - b)^2 + 1 / 2 over g; the rest is quadrature."""
    claim = claims["jaxkern:gram-frobenius-identity"].corrected
    setting = next(s for s in claim.settings if s.name.startswith("skewed") and s.shapes["paired"] == 0)
    X, G = (np.asarray(setting.population[name]) for name in ("points", "gram"))
    w = np.linspace(-9, 9, 361)
    density = np.exp(-(w**2) / 2) / np.sum(np.exp(-(w**2) / 2))
    # cos^2 = (1 + cos 2) / 2, and the two coordinates of a frequency are independent and symmetric.
    doubled = np.prod([np.cos(2 * np.subtract.outer(x, x)[..., None] * w) @ density for x in X.T], axis=0)
    exact = np.mean((1 + doubled) / 2 + 1 / 2 - G**2) / 8
    assert claim.statement.target(setting) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "ghashami2016:lem3.1",
        "jaxkern:gram-spectral",
        "jaxkern:gram-spectral-all-n",
        "jaxkern:gram-frobenius-bernstein",
    ],
)
def test_bounds_fail_with_the_probability_that_their_settings_name(claims, name):
    for form in filter(None, (claims[name].printed, claims[name].corrected)):
        for setting in form.settings:
            delta = float(re.search(r"delta=([\d.]+)", setting.name)[1])
            assert 1 - form.statement.bound(setting).probability == pytest.approx(delta, rel=1e-9)


def test_bernsteins_inequality_is_tried_as_it_is_printed(claims):
    """2 n exp(-t^2 / (3 sigma^2 + 2 R t)): d centred coins that fall on one with probability q."""
    form = claims["ghashami2016:bernstein"].printed
    for setting in form.settings:
        d, n, q, x = (setting.numbers[name] for name in ("d", "n", "q", "t"))
        right = math.log(2 * n) - x**2 / (3 * d * q * (1 - q) + 2 * max(q, 1 - q) * x)
        assert form.statement.probability(setting)[1] == pytest.approx(right, rel=1e-12)


def test_the_gram_of_doubled_differences_is_a_fourth_power():
    for setting in trials.small_grams():
        G = setting.population["gram"]
        np.testing.assert_allclose(setting.population["doubled"], G**4, rtol=1e-9)
        if setting.name.startswith("line"):
            scale = float(setting.name.split()[-1])
            assert G[0, 1] == pytest.approx(math.exp(-1 / (2 * scale**2)))


def test_a_setting_of_a_user_may_be_added():
    setting = Setting("mine", {"rows": np.eye(8)[:5]}, shapes={"l": 4})
    claim = ghashami2016.streams._lem3_2(())
    ((left, right), *_) = claim.corrected.statement.sides(key(), setting)
    assert 0 <= left <= right.value
