"""Facts about data, what statements demand and ask of them, and the bound that knows the distances of all pairs."""

import dataclasses
import itertools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, optimize, stats

from jaxkern import kernels, plan
from jaxkern.bounds import fourier, sketching, streaming
from proofs_check.certify import _facts
from proofs_check.certify._facts import edges, facts, without_pairs
from proofs_check.certify._hypotheses import hypotheses
from proofs_check.certify._maps import FOURIER, NAMES, families
from proofs_check.certify._model import GOALS, Rounding
from proofs_check.certify._theory import demands, needed_landmarks, share_of_pairs

FALSE_ALARM = 1e-6
"""Of every statistical test below: the chance to fail although the statement holds."""


def failure(distance, eps, size):
    """Return what the bound says of one pair."""
    words = dict(squared_distances=np.array([distance**2]), pairs=np.array([1.0]))
    return 1 - fourier.relative_distances_given(eps=eps, num_frequencies=size, **words).probability


# ------------------------------------------------------------------------------------ the bound of the distances given


def exponent(distance, x):
    """Return Chernoff's exponent of means of (1 - cos(r w)) / mu at x, by adaptive quadrature over the line."""
    mu = -math.expm1(-(distance**2) / 2)
    sign = 1 if x > 1 else -1

    def log_mgf(s):
        def weighted(w):
            return math.exp(sign * s * (1 - math.cos(distance * w) - mu * x) - w * w / 2) / math.sqrt(2 * math.pi)

        return math.log(integrate.quad(weighted, -14, 14, limit=2000, epsabs=0, epsrel=1e-11)[0])

    return -optimize.minimize_scalar(log_mgf, bounds=(0, 4 / mu), method="bounded", options=dict(xatol=1e-9)).fun


@pytest.mark.parametrize(("distance", "eps"), [(0.3, 0.1), (1.0, 0.1), (1.0, 0.4), (2.5, 0.2), (5.0, 0.05)])
def test_rates_are_those_of_an_independent_quadrature_and_never_larger(distance, eps):
    exponents = [exponent(distance, x) for x in ((1 + eps) ** 2, (1 - eps) ** 2)]
    size = math.ceil(6 / min(exponents))
    exact = sum(math.exp(-size * rate) for rate in exponents)
    found = failure(distance, eps, size)
    assert exact * (1 - 1e-6) <= found or found == pytest.approx(failure(0.0, eps, size), rel=1e-6)
    assert found <= exact * (1 + 1e-5)


@pytest.mark.parametrize("eps", [1e-4, 0.03, 0.3, 0.9])
def test_a_pair_that_is_farther_fails_less(eps):
    size = math.ceil(8 / eps**2)
    distances = np.concatenate([[0, 1e-3], np.geomspace(0.03, 9, 120)])
    found = [failure(r, eps, size) for r in distances]
    assert all(b <= a * (1 + 1e-9) + 1e-15 for a, b in itertools.pairwise(found))
    assert found[0] > 0 and found[-1] < 0.9 * found[0]


def test_far_pairs_are_below_near_ones_in_the_convex_order():
    """Theorem E: E (X / mu - c)_+ never increases with the distance; of X itself it does."""
    w = np.linspace(-11, 11, 200_001)
    density = np.exp(-(w**2) / 2) / math.sqrt(2 * math.pi)
    distances = np.geomspace(0.05, 5, 12)

    def excess(r, c, scaled):
        mu = -math.expm1(-(r**2) / 2) if scaled else 1.0
        return np.trapezoid(np.maximum((1 - np.cos(r * w)) / mu - c, 0) * density, w)

    for c in (0.05, 0.4, 1.0, 1.7, 2.4):
        found = [excess(r, c, True) for r in distances]
        assert np.all(np.diff(found) <= 1e-9)
    assert np.any(np.diff([excess(r, 0.4, False) for r in distances]) > 0.01)


@pytest.mark.parametrize("eps", [0.02, 0.2, 0.8])
def test_nothing_is_lost_against_the_bounds_for_all_data(eps, rng):
    n = 300
    total = n * (n - 1) / 2
    for _ in range(5):
        squared = np.sort(rng.exponential(size=7) * rng.choice([0.001, 1, 10]))
        pairs = rng.dirichlet(np.ones(7)) * total
        size = plan.fourier(eps, 0.05, num_points=n).num_frequencies
        found = plan.fourier(eps, 0.05, squared_distances=squared, pairs=pairs)
        assert found.num_frequencies <= size and found.probability >= 0.95
        for t in (max(size // 3, 1), size):
            given = fourier.relative_distances_given(
                eps=eps, num_frequencies=t, squared_distances=squared, pairs=pairs
            ).probability
            for bound in (fourier.relative_distances_sharp, fourier.relative_distances):
                assert given >= bound(eps=eps, num_frequencies=t, num_points=n).probability - 1e-9
    at_zero = plan.fourier(eps, 0.05, squared_distances=[0.0], pairs=[total])
    assert at_zero.num_frequencies == size


def ratios(rng, X, size, trials):
    """Return Dhat / D of all pairs, (trials, pairs)."""
    first, second = np.triu_indices(len(X), 1)
    differences = X[first] - X[second]
    true = -2 * np.expm1(-np.sum(differences**2, axis=1) / 2)
    found = []
    for _ in range(trials):
        W = rng.standard_normal((X.shape[1], size)).astype(np.float32)
        found.append(np.mean(4 * np.sin(differences.astype(np.float32) @ W / 2) ** 2, axis=1) / true)
    return np.sqrt(found)


@pytest.mark.parametrize("distance", [1.0, 2.5])
def test_planned_sizes_keep_a_simplex_and_half_of_them_do_not(distance, rng):
    """n orthonormal points, all at one distance; 600 draws, which may fail with probability .05 each."""
    n, eps, delta, trials = 20, 0.3, 0.05, 600
    X = np.eye(n) * distance / math.sqrt(2)
    pairs = n * (n - 1) / 2
    size = plan.fourier(eps, delta, squared_distances=[distance**2], pairs=[pairs]).num_frequencies
    assert size < 0.92 * plan.fourier(eps, delta, num_points=n).num_frequencies

    def failed(t):
        return int(np.sum(np.any(np.abs(ratios(rng, X, t, trials) - 1) > eps, axis=1)))

    assert stats.binom.sf(failed(size) - 1, trials, delta) > FALSE_ALARM
    assert stats.binom.sf(failed(size // 2) - 1, trials, delta) < FALSE_ALARM


def test_clusters_that_are_far_apart_need_fewer_frequencies_than_one_cluster(rng):
    centers = 3 * np.eye(20)
    spread = np.concatenate([c + 0.3 * rng.standard_normal((10, 20)) for c in centers])
    tight = 0.02 * rng.standard_normal((200, 20))
    sizes = []
    for X in (spread, tight):
        squared = np.sum((X[:, None] - X[None]) ** 2, axis=2)[np.triu_indices(200, 1)]
        sizes.append(plan.fourier(0.1, 0.05, squared_distances=squared, pairs=np.ones_like(squared)).num_frequencies)
    worst = plan.fourier(0.1, 0.05, num_points=200).num_frequencies
    assert sizes[0] < 0.7 * worst and 0.99 * worst < sizes[1] <= worst


def test_bins_may_be_merged_downwards_only(rng):
    squared, pairs = np.array([0.1, 1.0, 4.0]), np.array([5.0, 50.0, 500.0])

    def probability(at):
        return fourier.relative_distances_given(
            eps=0.2, num_frequencies=300, squared_distances=at, pairs=pairs
        ).probability

    assert probability(squared * 0.8) < probability(squared) < probability(squared * 1.2)


def test_float32_is_the_same_up_to_its_allowance_and_never_better(dtype):
    squared, pairs = [0.0, 0.2, 1.0, 9.0], [1.0, 9.0, 80.0, 200.0]
    words = dict(eps=0.2, num_frequencies=250)
    exact = fourier.relative_distances_given(**words, squared_distances=squared, pairs=pairs)
    arrays = dict(squared_distances=jnp.asarray(squared, dtype), pairs=jnp.asarray(pairs, dtype))
    found = jax.jit(lambda a: fourier.relative_distances_given(**words, **a))(arrays)
    assert found.probability.dtype == dtype and bool(found.valid) and exact.valid is True
    slack = 3e-2 if dtype == "float32" else 1e-9
    assert 1 - exact.probability == pytest.approx(1 - float(found.probability), rel=slack)


def test_a_histogram_that_makes_no_sense_is_refused():
    words = dict(eps=0.2, num_frequencies=250)
    assert not fourier.relative_distances_given(**words, squared_distances=[-1.0], pairs=[1.0]).valid
    assert not fourier.relative_distances_given(**words, squared_distances=[1.0], pairs=[-1.0]).valid
    for eps in (-0.1, 1e-5, 1.2):
        assert not fourier.relative_distances_given(
            eps=eps, num_frequencies=9, squared_distances=[1.0], pairs=[1.0]
        ).valid
    assert fourier.relative_distances_given(**words, squared_distances=[], pairs=[]).probability == 1
    with pytest.raises(ValueError, match="one size"):
        fourier.relative_distances_given(**words, squared_distances=[1.0], pairs=[1.0, 2.0])
    with pytest.raises(ValueError, match="together"):
        plan.fourier(0.1, 0.1, pairs=[1.0])
    with pytest.raises(ValueError, match="squared_distances must be a vector of finite"):
        plan.fourier(0.1, 0.1, squared_distances=[np.nan], pairs=[1.0])
    with pytest.raises(ValueError, match="shape"):
        plan.fourier(0.1, 0.1, squared_distances=[1.0], pairs=[1.0, 2.0])


# --------------------------------------------------------------------------------------------------------------- facts


def measured(X, lengthscale=1.0, kernel=None, **words):
    kernel = kernels.Gaussian(lengthscale) if kernel is None else kernel
    dtype = X.dtype if X.dtype in (np.float32, np.float64) else np.float32
    return facts(
        jax.random.key(3), lambda rows: X[rows], *X.shape, kernel, lengthscale, dtype=dtype, **{"seconds": 60.0} | words
    )


def test_the_spectrum_of_far_points_is_flat_and_known():
    """100 points, far apart: K = I, all eigenvalues of K / n are 1 / n."""
    n = 100
    found = measured((1e3 * np.eye(n)).astype(np.float32))
    assert found.sampled == found.rows == n and found.kappa == 1
    for name, value in dict(op_norm=1 / n, trace=1.0, trace3=1 / n**2, hs_norm=1 / math.sqrt(n)).items():
        assert getattr(found, name) == pytest.approx(value, rel=1e-5)
    dimension = found.effective_dimension
    assert dimension["trace / op_norm"] == pytest.approx(n, rel=1e-5)
    assert dimension["trace3 / op_norm^3"] == pytest.approx(n, rel=1e-5)
    assert dimension["sum l / (l + 0.1 op_norm)"] == pytest.approx(n / 1.1, rel=1e-5)
    assert dimension["sum l / (l + 0.001 op_norm)"] == pytest.approx(n / 1.001, rel=1e-5)
    assert found.diameter == pytest.approx(1e3 * math.sqrt(n), rel=1)  # the bounding box, or twice the radius
    assert found.diameter >= 1e3 * math.sqrt(2)


def test_sums_over_eigenvalues_are_those_of_the_matrix_and_samples_are_smaller(rng):
    X = rng.standard_normal((90, 2)).astype(np.float32)
    K = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * 1.3**2)).astype(float) / 90
    found = measured(X, 1.3)
    assert found.op_norm == pytest.approx(np.linalg.norm(K, 2), rel=1e-5)
    assert found.trace3 == pytest.approx(np.trace(K @ K @ K), rel=1e-5)
    assert found.hs_norm == pytest.approx(np.linalg.norm(K), rel=1e-5)
    assert np.all(np.diff(found.eigenvalues) <= 0) and found.eigenvalues[0] == found.op_norm
    part = measured(X, 1.3, sample=30)
    assert part.sampled == 30 and part.rows == 90 and part.op_norm == pytest.approx(found.op_norm, rel=0.3)
    assert np.array_equal(part.pairs, found.pairs)


@pytest.mark.parametrize(("law", "best"), [("power", "i^-1.8"), ("exponential", "exp(-0.12 i)")])
def test_decay_is_named_after_the_law_that_fits(law, best):
    i = np.arange(1, 201)
    values = i**-1.8 if law == "power" else np.exp(-0.12 * i)
    found = _facts._decay(values, np.dtype("float64"))
    assert f"fall about like {best} (R^2 1.000)" in found["words"]
    assert found[law] == pytest.approx(1.8 if law == "power" else 0.12) and found[law + "_r2"] == pytest.approx(1)
    assert found["indices"] == 50 and found["power_r2" if law == "exponential" else "exponential_r2"] < 0.98
    assert "too soon" in _facts._decay(np.array([1.0, 1e-9, 1e-12, 0, 0]), np.dtype("float32"))["words"]


def test_edges_are_the_numbers_at_which_bins_change(dtype, x64):
    low = edges()
    assert low[0] == 0 and low[1] == 2.0**-9 and low[-1] == 36 and np.all(np.diff(low) > 0) and len(low) < 255
    assert np.all(low[2:] / low[1:-1] <= 1 + 1 / 16)
    for k, value in enumerate(low[1:], 1):
        at, below = np.asarray(value, dtype), np.nextafter(np.asarray(value, dtype), np.asarray(0, dtype))
        codes = [_facts._code(v) - _facts._code(np.asarray(low[1], dtype)) + 1 for v in (at, below)]
        assert codes == [k, k - 1]


@pytest.mark.parametrize("offset", [0.0, 300.0])
def test_no_pair_is_counted_in_a_higher_bin_and_none_is_lost(offset, dtype, rng, monkeypatch):
    """Near, far and equal rows, an outlier, and tiles that do not divide the rows."""
    monkeypatch.setattr(_facts, "_TILE", 64)
    monkeypatch.setattr(_facts, "_BLOCK", 50)
    X = np.concatenate(
        [rng.standard_normal((80, 3)), 5 + 1e-3 * rng.standard_normal((30, 3)), np.ones((4, 3)), [[400.0, 0, 0]]]
    )
    X = (X + offset).astype(dtype)
    found = measured(X, 1.5)
    exact = np.sum((X[:, None].astype(float) - X[None]) ** 2, axis=2)[np.triu_indices(len(X), 1)] / 1.5**2
    exact = exact[exact > 0]
    true = np.histogram(exact, np.append(edges(), np.inf))[0]
    assert found.pairs.sum() == true.sum() == len(exact)
    assert np.all(np.cumsum(found.pairs) >= np.cumsum(true))
    moved = np.abs(np.cumsum(found.pairs) - np.cumsum(true)).max()
    assert moved <= (0 if dtype == "float64" else 150)  # the outlier takes the centre away
    assert "6 at distance zero" in found.decay["pairs"] and not without_pairs(found)
    assert math.sqrt(exact.max()) <= found.diameter <= 2.01 * math.sqrt(exact.max())


def test_equal_rows_are_counted_and_signed_zeros_are_equal(rng):
    X = rng.integers(0, 3, (200, 3)).astype(np.float32)
    X[:50] *= -1.0  # makes -0
    i, j = np.triu_indices(200, 1)
    assert _facts._coincident(X) == int(np.sum(np.all(X[i] == X[j], axis=1)))


def test_pairs_that_are_not_counted_stand_in_the_lowest_bin(rng, monkeypatch):
    X = rng.standard_normal((300, 2)).astype(np.float32)
    short = measured(X, kernel=kernels.Laplacian(1.0))
    assert "Gaussian" in short.decay["pairs"] and without_pairs(short) and short.pairs.sum() == 300 * 299 / 2
    monkeypatch.setattr(_facts, "_TILE", 32)
    hurried = measured(X, seconds=0.0)
    assert "longer than there was time" in hurried.decay["pairs"] and without_pairs(hurried)
    monkeypatch.setattr(_facts, "MOST_ROWS", 299)
    many = measured(X)
    assert "too many" in many.decay["pairs"] and without_pairs(many) and share_of_pairs(many) is None
    demanded = [d for d in demands(many, "distance", 0.2, 0.05) if not d.worst_case]
    assert [d.size for d in demanded] == [None] and "too many" in demanded[0].words


# ------------------------------------------------------------------------------------------------------------- demands


@pytest.fixture(scope="module")
def data():
    X = np.random.default_rng(7).standard_normal((1500, 3)).astype(np.float32)
    return measured(X, 1.5, sample=400)


def sizes(found, goal, eps=0.1, delta=0.05, **words):
    asked = {}
    for demand in demands(found, goal, eps, delta, **words):
        asked.setdefault(demand.map, []).append(demand)
    return asked


@pytest.mark.parametrize("goal", GOALS)
def test_every_map_has_a_demand_or_a_reason(goal, data):
    for found in (
        data,
        dataclasses.replace(data, kernel=kernels.Laplacian(1.5)),
        dataclasses.replace(data, rows=10**6),
    ):
        asked = sizes(found, goal)
        assert tuple(asked) == NAMES
        for name, held in asked.items():
            for demand in held:
                assert demand.words.endswith(".") and demand.source and "{" not in demand.words
                assert demand.size is None or (type(demand.size) is int and demand.size >= 1)
                if demand.size is not None:
                    assert families(found.rows, 3, 0.1)[name].num_features(demand.size) >= 1
    if goal == "clustering":
        assert all(demand.size is None for held in asked.values() for demand in held)


@pytest.mark.parametrize("goal", ["distance", "spectral"])
def test_statements_have_what_rounding_leaves_of_eps(goal, data):
    exact, rounding = sizes(data, goal), Rounding("float32", gram=0.002, pairs=0.002)
    for name, held in sizes(data, goal, rounding=rounding).items():
        for demand, before in zip(held, exact[name], strict=True):
            more = 1.06 if name in FOURIER else 1.5  # components and rows drawn have taken most of eps already
            assert demand.size == before.size or before.size <= demand.size <= more * before.size
    for lost in (Rounding("float32", gram=0.1, pairs=0.1), Rounding("float32", gram=math.nan, pairs=math.inf)):
        asked = sizes(data, goal, rounding=lost)
        assert all(demand.size is None for held in asked.values() for demand in held)
        words = asked["paired_fourier"][0].words
        assert words.startswith("Statements are about exact numbers.") and words.endswith("float64 would leave more.")


def test_the_distances_of_the_data_ask_for_less_than_all_data(data):
    any_points, ball, these = sizes(data, "distance")["paired_fourier"]
    assert any_points.worst_case and ball.worst_case and not these.worst_case
    assert (
        these.size < 0.95 * any_points.size
        and any_points.size == plan.fourier(0.1, 0.05, num_points=1500).num_frequencies
    )
    assert all(sizes(data, "distance")[name][0].size is None for name in NAMES if name != "paired_fourier")
    near = dataclasses.replace(
        data, squared_distances=np.array([0.0, 0.003]), pairs=np.array([10.0, data.pairs.sum() - 10])
    )
    assert these.size < sizes(near, "distance")["paired_fourier"][2].size <= any_points.size
    laplacian = dataclasses.replace(data, kernel=kernels.Laplacian(1.5))
    (refused,) = sizes(laplacian, "distance")["paired_fourier"]
    assert refused.size is None and "Laplacian" in refused.words


@pytest.mark.parametrize("goal", ["distance", "spectral"])
def test_demands_fall_with_eps_and_delta(goal, data):
    tight, loose, rare = (sizes(data, goal, *words) for words in ((0.1, 0.05), (0.15, 0.05), (0.1, 0.005)))
    for name in NAMES:
        for a, b, c in zip(tight[name], loose[name], rare[name], strict=True):
            if a.size is not None:
                assert b.size < a.size < c.size


def test_spectral_demands_are_the_smallest_sizes_of_their_statements(data):
    asked = sizes(data, "spectral")
    paired = asked["paired_fourier"][0].size
    words = dict(eps=0.1, num_frequencies=paired - 1)
    assert fourier.gram_spectral_paired_all_n(**words).probability < 0.95
    assert fourier.gram_spectral_paired(**words, num_points=1500).probability < 0.95
    assert fourier.gram_spectral_paired_all_n(eps=0.1, num_frequencies=paired).probability >= 0.95
    shifted = asked["shifted_fourier"][1].size
    tau = math.log(20)
    assert fourier.gram_frobenius_shifted(num_features=shifted, tau=tau, variance=1.0).value <= 0.1
    assert fourier.gram_frobenius_shifted(num_features=shifted - 1, tau=tau, variance=1.0).value > 0.1
    assert asked["nystrom"][0].size == plan.nystrom(0.1, 0.05).num_landmarks
    k = asked["kernel_pca"][0].size
    held = [
        streaming.nystrom_spectral(eps=0.1 - 1 / (j + 1), num_landmarks=4 * j).probability >= 0.95 for j in (k - 1, k)
    ]
    assert held == [False, True]
    rows = families(1500, 3, 0.1)["streaming_pca"].sizes(500)["sketch_size"]
    stream = plan.streaming(0.1, 0.05, num_points=1500, sketch_size=rows)
    assert asked["streaming_pca"][0].size == stream.num_frequencies
    assert asked["random_feature_pca"][0].size > stream.num_frequencies


def test_tables_that_are_smaller_than_what_is_asked_give_all_their_rows(data):
    small = dataclasses.replace(data, rows=200)
    asked = sizes(small, "spectral")
    assert asked["nystrom"][0].size == 200 and "200 rows" in asked["nystrom"][0].words
    assert asked["kernel_pca"][0].size == 50  # 4 landmarks a component, all rows, and 1 / 51 is left out
    assert sizes(data, "spectral", eps=1e-9)["nystrom"][0].size == 1500


def test_what_components_leave_out_is_bounded_as_the_module_says(rng):
    """|Q Sigma Q| <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+, for random unit features and every k."""
    Z = rng.standard_normal((60, 12)) * np.geomspace(3, 0.1, 12)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    full = Z.T @ Z / 60
    tight = 0.0
    for count in (5, 20, 60):
        part = Z[rng.permutation(60)[:count]]
        drawn = part.T @ part / count
        excess = max(np.linalg.eigvalsh(full - drawn)[-1], 0)
        vectors = np.linalg.eigh(drawn)[1][:, ::-1]
        for k in range(1, 12):
            Q = np.eye(12) - vectors[:, :k] @ vectors[:, :k].T
            left = np.linalg.norm(Q @ full @ Q, 2)
            assert left <= 1 / (k + 1) + excess + 1e-12
            tight = max(tight, left / (1 / (k + 1) + excess))
    assert tight > 0.5


def test_kernel_pca_of_the_demanded_size_keeps_the_gram_matrix(data, rng):
    """20 draws, which may fail with probability .05 each; by NumPy, from the definition."""
    n, eps = 600, 0.2
    X = rng.standard_normal((n, 3))
    G = np.exp(-np.sum((X[:, None] - X[None]) ** 2, axis=2) / (2 * 1.5**2))
    k = sizes(dataclasses.replace(data, rows=n), "spectral", eps=eps)["kernel_pca"][0].size
    assert 4 * k < n / 2
    failed = 0
    for _ in range(20):
        rows = rng.permutation(n)[: 4 * k]
        values, vectors = np.linalg.eigh(G[np.ix_(rows, rows)])
        Z = G[:, rows] @ vectors[:, -k:] / np.sqrt(np.maximum(values[-k:], 1e-12))
        failed += np.linalg.norm(G - Z @ Z.T, 2) > eps * n
    assert stats.binom.sf(failed - 1, 20, 0.05) > FALSE_ALARM


def test_kernel_jl_is_told_how_many_landmarks_it_lacks(data):
    n = needed_landmarks(data, 0.1, 0.05)
    words = {name: getattr(data, name) for name in ("kappa", "op_norm", "trace", "trace3", "hs_norm")}

    def error(landmarks):
        found = sketching.inner_products_every_n(**words, n=landmarks, d=landmarks // 4, tau=math.log(80))
        return found.value / data.op_norm**3

    assert error(n) <= 0.1 < error(n - 4)
    (found,) = sizes(data, "separation")["kernel_jl"]
    assert found.size is None and f"n = {n:,} landmarks" in found.words and "1,500 rows" in found.words


def test_distances_that_are_kept_keep_the_separation_of_points(data):
    found = sizes(data, "separation", eps=0.3, kind="points")["paired_fourier"]
    relative = (1 - math.sqrt(0.7)) / (1 + math.sqrt(0.7))
    assert 1 - ((1 - relative) / (1 + relative)) ** 2 == pytest.approx(0.3)
    assert found[0].size == plan.fourier(relative, 0.05, num_points=1500).num_frequencies
    assert all(d.size is None for d in sizes(data, "separation", eps=0.3, kind="means")["paired_fourier"])


def test_what_is_not_known_is_refused(data):
    with pytest.raises(ValueError, match="goal_name"):
        demands(data, "speed", 0.1, 0.05)
    with pytest.raises(ValueError, match="kind"):
        demands(data, "separation", 0.1, 0.05, kind="lines")


# ---------------------------------------------------------------------------------------------------------- hypotheses


def test_hypotheses_hold_from_the_number_of_rows_that_is_needed_on(data):
    found = {h.statement: h for h in hypotheses(data, 0.1, 0.05)}
    needed = {name: h.needed for name, h in found.items() if h.needed is not None}
    assert len(needed) >= 8
    for name, rows in needed.items():
        for count, holds in ((rows, True), (rows - 1, False)):
            again = {h.statement: h for h in hypotheses(dataclasses.replace(data, rows=max(count, 1)), 0.1, 0.05)}[name]
            assert again.needed == rows and (again.holds is holds or count == 0)


def test_hypotheses_of_kernel_jl_are_the_formulas(data):
    found = {h.statement: h for h in hypotheses(data, 0.1, 0.05)}
    s, unit = data.trace / data.op_norm, data.kappa / data.op_norm
    printed = found["kpotufe2020, Theorem 1 (printed)"]
    assert printed.needed == math.ceil(6272 * unit * s**5 * math.log(5 / 0.05)) and not printed.holds
    corrected = found["kpotufe2020, Theorem 1 (corrected: Theorem B)"]
    assert corrected.needed == math.ceil(6272 * unit * s * max(1, math.sqrt(s) / 4) * math.log(3 / 0.05))
    words = {name: getattr(data, name) for name in ("kappa", "op_norm", "trace", "trace3")}
    for rows in (corrected.needed, corrected.needed - 1):
        bound = sketching.inner_products(**words, n=rows, d=10**6, tau=math.log(3 / 0.05))
        assert bound.valid == (rows == corrected.needed)
    lemma = found["kpotufe2020, Lemma B.2"]
    tau = math.log(2 / 0.05)
    assert sketching.covariance_deviation(kappa=1.0, trace=data.trace, n=lemma.needed, tau=tau).valid and lemma.holds
    assert not sketching.covariance_deviation(kappa=1.0, trace=data.trace, n=lemma.needed - 1, tau=tau).valid
    assert found["kpotufe2020, Assumption 1"].holds is False
    double = dataclasses.replace(data, kappa=2.0)
    name, needed = "kpotufe2020, Theorem 3", math.ceil(9 * data.trace / 0.1**2)
    for rows in (needed, needed - 1):
        theorem = {h.statement: h for h in hypotheses(dataclasses.replace(double, rows=rows), 0.1, 0.05)}[name]
        assert theorem.holds is (rows == needed) and theorem.needed == needed


def test_what_the_data_cannot_tell_is_said_and_all_is_json(data):
    for found in (data, dataclasses.replace(data, kernel=kernels.Matern32(1.5)), measured(np.ones((5, 2), np.float32))):
        entries = hypotheses(found, 0.1, 0.05)
        json.dumps([dataclasses.asdict(h) for h in entries], allow_nan=False)
        json.dumps([dict(found.decay), dict(found.effective_dimension)], allow_nan=False)
        names = [h.statement for h in entries]
        assert len(set(names)) == len(names) >= 25
        assert {name.split(",")[0] for name in names} == {"kpotufe2020", "amini2021", "chen2016", "ghashami2016"}
        noise = [h for h in entries if "amini2021" in h.statement and "Theorem 2" not in h.statement]
        assert all(h.holds is None and "cannot tell" in h.found for h in noise)
    assert not any(
        h.holds
        for h in hypotheses(dataclasses.replace(data, kernel=kernels.Matern32(1.5)), 0.1, 0.05)
        if "chen2016" in h.statement and "3.1" not in h.statement
    )
    assert hypotheses(dataclasses.replace(data, op_norm=0.0), 0.1, 0.05) == []


def test_shares_of_pairs_follow_the_bins(data):
    assert share_of_pairs(data) == 1
    near, far = share_of_pairs(data, 0.0, 1.0), share_of_pairs(data, 1.0)
    assert near + far == pytest.approx(1) and 0 < near < 1
    found = {h.statement: h for h in hypotheses(data, 0.1, 0.05)}
    assert (
        f"about {near:.2g}" in found["chen2016, Lemma 4.2"].found
        and f"about {far:.2g}" in found["chen2016, Lemma 2.2"].found
    )
