"""Facts about data, and what statements demand for them, against formulas that are written out here."""

import dataclasses
import math
from functools import partial

import jax
import numpy as np
import pytest
from scipy import optimize
from scipy.spatial.distance import pdist

from jaxkern import kernels, plan
from proofs_check.certify import facts as module
from proofs_check.certify.facts import EDGES, facts
from proofs_check.certify.load import from_array
from proofs_check.certify.load import table as table_module
from proofs_check.certify.maps import NAMES
from proofs_check.certify.request import GOALS, Request
from proofs_check.certify.rounding import EXACT, Rounding
from proofs_check.certify.theory import demands, least

EPS = 0.1
DELTA = 0.05


def measure(X, lengthscale=1.0, kernel=kernels.Gaussian):
    table = from_array(X)
    return facts(jax.random.key(3), table, kernel(lengthscale), lengthscale)


@pytest.fixture(scope="module")
def data():
    return measure(np.random.default_rng(7).standard_normal((1500, 3)), 1.5)


def sizes(data, goal, rounding=EXACT, **levels):
    by_map = {name: [] for name in NAMES}
    for demand in demands(data, Request(goal=goal, **levels), rounding):
        by_map[demand.map].append(demand.size)
    return by_map


def test_the_spectrum_is_that_of_the_matrix_or_of_a_sample(rng, monkeypatch):
    X = rng.standard_normal((90, 2))
    K = np.exp(-np.linalg.norm(X[:, None] - X[None], axis=2) / 1.3)
    values = np.linalg.eigvalsh(K)[::-1] / 90
    spectrum = measure(X, 1.3, kernels.Exponential).eigenvalues
    np.testing.assert_allclose(spectrum, values, atol=1e-14)
    monkeypatch.setattr(module, "SAMPLE", 30)
    monkeypatch.setattr(table_module, "CELLS", 40)
    sampled = measure(X)
    assert len(sampled.eigenvalues) == 30
    assert 1 <= sampled.diameter / pdist(X).max() <= 2


def test_all_pairs_of_distinct_rows_are_counted(rng, monkeypatch):
    monkeypatch.setattr(module, "_TILE", 64)
    X = rng.standard_normal((113, 3))
    X[80:110] = 5 + 1e-3 * X[80:110]
    X[110:] = [[0.0, 1, 1], [-0.0, 1, 1], [400, 0, 0]]
    for points in (X, X + 300):
        squares = pdist(np.unique(points / 1.5, axis=0), "sqeuclidean")
        literal = np.histogram(squares, np.append(EDGES, np.inf))[0]
        assert np.array_equal(measure(points, 1.5).pairs, literal)


def test_no_pair_below_an_edge_is_counted_in_a_higher_bin(rng):
    steps = np.unique(rng.integers(0, 300, 120))
    i, j = np.triu_indices(len(steps), 1)
    bins = np.minimum(np.abs(steps[i] - steps[j]) - 1, len(EDGES) - 1)
    true = np.cumsum(np.bincount(bins, minlength=len(EDGES)))
    counted = np.cumsum(measure(steps[:, None] + 0.0, 40 + 1e-12).pairs)
    assert np.all(counted >= true)


def test_data_whose_pairs_cannot_be_told_apart_or_counted(rng, monkeypatch):
    X = rng.standard_normal((300, 2))
    huge = measure(X, 1e-160)  # squares overflow
    assert huge.pairs[0] == huge.pairs.sum() == 300 * 299 / 2
    monkeypatch.setattr(module, "MOST_ROWS", 299)
    these = demands(measure(X), Request())[2]
    assert these.size is None
    assert "too large" in these.words


@pytest.mark.parametrize("goal", GOALS[:-1])
def test_each_map_has_a_size_or_a_reason(goal, data):
    table = dataclasses.replace(data, kernel=kernels.Laplacian(1.5), rows=10**6)
    planned = demands(table, Request(goal=goal))
    assert {demand.map for demand in planned} == set(NAMES)
    for demand in planned:
        assert demand.words.endswith(".")
        assert goal == "spectral" or demand.size is None
    assert ("Laplacian" in planned[0].words) == (goal == "distance")


def around(size):
    return np.array([size - 1, size])


def is_smallest(failure):
    return failure[1] <= DELTA < failure[0]


def test_distance_demands_are_theorems_b_and_f(data):
    any_points, ball, these = demands(data, Request())[:3]
    planned = partial(plan.fourier, EPS, DELTA)
    near = planned(squared_distances=[0.0], pairs=[1500 * 1499 / 2])
    assert any_points.size == near.num_frequencies
    assert ball.size == planned(dim=3, diameter=data.diameter).num_frequencies
    counted = planned(squared_distances=EDGES, pairs=data.pairs)
    assert these.size == counted.num_frequencies < 0.95 * any_points.size
    assert any_points.worst_case and ball.worst_case and not these.worst_case
    assert least([any_points, these]) == {"paired_fourier": these}


def tail(times, eps, size):
    return times * np.exp(-(eps**2) * size / (0.5 + 2 * eps / 3))


@pytest.mark.parametrize("kernel", [kernels.Gaussian, kernels.Laplacian])
def test_spectral_demands_of_fourier_maps_are_the_formulas(kernel, data):
    by_map = sizes(dataclasses.replace(data, kernel=kernel(1.5)), "spectral")
    v = 0.5 if kernel is kernels.Gaussian else 1.0
    paired, frobenius = map(around, by_map["paired_fourier"])
    assert is_smallest(tail(40, EPS, paired))
    root = EPS * np.sqrt(frobenius) - math.sqrt(v)
    spread = 2 * v + 2 * math.sqrt(2) * EPS / 3
    bernstein = 2 * np.exp(-(EPS**2) * frobenius / spread)
    assert is_smallest(np.minimum(np.exp(-(root**2)), bernstein))
    shifted, frobenius = map(around, by_map["shifted_fourier"])
    assert is_smallest(3000 * np.exp(-(EPS**2) * shifted / (2 + 4 * EPS / 3)))
    root = EPS * np.sqrt(frobenius) - math.sqrt(v + 0.5)
    assert is_smallest(np.exp(-((root / 2) ** 2)))


def nystrom_failure(eps, count):
    valid = eps >= 1 / (2 * np.sqrt(count)) + 1 / (3 * count)
    return np.where(valid, tail(20, eps, count), 1.0)


def components_failure(t, share):
    """Theorems E and G for 40 components of all rows, or of 1,000 whose choice has a share of delta."""
    left = EPS - 1 / 41
    if share:
        deviation = optimize.brentq(
            lambda e: tail(20, e, 1000) - share * DELTA, 0.02, 2
        )
        left = max(left - deviation, 0)
    return tail(40, left, t) + share * DELTA


def test_spectral_demands_of_landmarks_and_components_are_the_formulas(data):
    by_map = sizes(data, "spectral")
    assert is_smallest(nystrom_failure(EPS, around(*by_map["nystrom"])))
    k = around(*by_map["kernel_pca"])
    assert is_smallest(nystrom_failure(EPS - 1 / (k + 1), 4 * k))
    assert is_smallest(components_failure(around(*by_map["streaming_pca"]), 0.0))
    t = around(*by_map["random_feature_pca"])
    failures = [components_failure(t, share) for share in (0.02, 0.1, 0.3, 0.6)]
    assert is_smallest(np.min(failures, axis=0))
    small = sizes(dataclasses.replace(data, rows=200), "spectral")
    assert small["nystrom"] + small["kernel_pca"] == [200, 50]  # 4 * 50 rows
    assert sizes(data, "spectral", eps=1e-9)["nystrom"] == [1500]


@pytest.mark.parametrize("goal", ["distance", "spectral"])
def test_statements_have_what_rounding_leaves_of_eps(goal, data):
    rounding = Rounding("float32", gram=0.002, eigen=0.001, pairs=0.002)
    rounded = sizes(data, goal, rounding=rounding)
    for name, share in (("paired_fourier", 0.002), ("nystrom", 0.003)):
        assert rounded[name] == sizes(data, goal, eps=EPS - share)[name]
    for dtype in ("float32", "float64"):
        lost = Rounding(dtype, gram=EPS, pairs=math.nan)
        planned = demands(data, Request(goal=goal), lost)
        assert least(planned) == {}
        assert ("would leave more" in planned[0].words) == (dtype == "float32")


def test_what_components_leave_out_is_bounded_as_the_module_says(rng):
    """|Q Sigma Q| <= 1 / (k + 1) + lambda_max(Sigma - Sigma_c)_+, for random unit features and all k."""
    Z = rng.standard_normal((60, 12)) * np.geomspace(2, 1, 12)
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    sigma = Z.T @ Z / 60
    drawn = Z[:20].T @ Z[:20] / 20
    excess = np.linalg.eigvalsh(sigma - drawn)[-1]
    for k in range(1, 12):
        rest = np.linalg.eigh(drawn)[1][:, : 12 - k]
        left = np.linalg.norm(rest.T @ sigma @ rest, 2)
        assert left <= 1 / (k + 1) + excess
