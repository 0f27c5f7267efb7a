"""The goals of a certificate against literal oracles in extended precision, and in cases where the answer is known."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.cluster.vq import kmeans2
from scipy.spatial.distance import pdist

from jaxkern import features, kernels
from jaxkern.metrics import misclassification_rate
from proofs_check.certify import points
from proofs_check.certify.goals import distance, spectral
from proofs_check.certify.goals.clustering import Clustering
from proofs_check.certify.goals.distance import Distance
from proofs_check.certify.goals.separation import Separation
from proofs_check.certify.goals.spectral import Spectral
from proofs_check.certify.points import Rows, mapped

EPS = 0.1
DIM = 3
SIZE = 150
CLASSES = 3
KERNEL = kernels.Gaussian(1.5)
key = jax.random.key


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Make a few hundred points fill several tiles, blocks and chunks."""
    monkeypatch.setattr(points, "_BLOCK", 64)
    monkeypatch.setattr(points, "_ROUND", 16)
    monkeypatch.setattr(distance, "_SIDE", 48)
    monkeypatch.setattr(spectral, "_EXACT", 0)
    monkeypatch.setattr(spectral, "_FACTORED", 0)
    monkeypatch.setattr(spectral, "_RANK", 64)


KINDS = ("plain", "clusters", "duplicates", "near", "small", "large")


def table(kind, rng, size=SIZE):
    """Return points (size, DIM) in float64 and a kernel."""
    X = rng.standard_normal((size, DIM))
    half = size // 2
    if kind == "clusters":
        X[half:] += 1e6
    if kind == "duplicates":
        X[half:] = X[np.arange(size - half) % 7]
    if kind == "near":
        X[half:] = X[: size - half] + 1e-7 * rng.standard_normal((size - half, DIM))
    scale = {"small": 1e-20, "large": 1e20}.get(kind, 1.0)
    return scale * X, kernels.Gaussian(1.5 * scale)


def fourier(kernel, dtype, size=40):
    return features.paired_fourier(
        key(7), kernel, DIM, num_frequencies=size, dtype=dtype
    )


def fixed(Z):
    """A map that knows the features of the rows it will be asked for, by their numbers."""
    table = jnp.asarray(Z)
    return lambda rows: table[rows[:, 0].astype(jnp.int32)]


def numbered(X):
    """Rows whose inputs are their numbers, for `fixed`."""
    return Rows(X, np.arange(len(X), dtype=np.float32)[:, None])


def gaps(X, kernel):
    """Return 1 - K(x, y) for all pairs, difference by difference, in extended precision."""
    wide = X.astype(np.longdouble)
    apart = (wide[:, None] - wide[None]) / np.longdouble(kernel.lengthscale)
    return -np.expm1(-np.sum(apart**2, axis=2) / 2)


def gaussian(X, kernel=KERNEL):
    return (1 - gaps(X, kernel)).astype(float)


@pytest.mark.parametrize("kind", KINDS)
def test_the_error_of_distances_is_the_largest_of_all_pairs(kind, dtype, rng):
    X, kernel = table(kind, rng)
    goal = Distance(kernel, EPS)
    rows = Rows(X, X.astype(dtype))
    pairs = goal.prepare(key(0), rows)
    different = np.sort(np.unique(X, axis=0, return_index=True)[1])
    np.testing.assert_array_equal(pairs.inputs, X[different].astype(dtype))
    phi = fourier(kernel, dtype)
    Z = mapped(phi, pairs.inputs).astype(np.longdouble)
    i, j = np.triu_indices(len(Z), 1)
    exact = np.sqrt(2 * gaps(X[different], kernel)[i, j])
    images = np.sqrt(np.sum((Z[i] - Z[j]) ** 2, axis=1))
    worst = float(np.abs(images / exact - 1).max())
    assert goal.error(key(1), phi, pairs) == pytest.approx(worst, 0.01, 0.01 * EPS)
    if dtype == np.float32:
        resolved = kind not in ("clusters", "near")
        assert (pairs.unresolved == 0) == resolved == (pairs.rounding <= EPS)
    if dtype == np.float32 and kind == "near":
        chosen = np.sort(rng.integers(SIZE, size=300))
        sample = goal.prepare(None, rows.at(chosen))
        apart = chosen[:, None] - chosen
        assert sample.unresolved == np.sum(apart == SIZE // 2) > 75


@pytest.mark.parametrize("size", [2, 48, 65])
def test_a_bad_point_is_found_wherever_it_is(size, rng):
    X = rng.standard_normal((size, DIM))
    goal = Distance(kernels.Linear(), EPS)
    pairs = goal.prepare(None, numbered(X))
    for bad in (0, size // 2, size - 1):
        Z = X.copy()
        Z[bad] *= 2
        worst = np.abs(pdist(Z) / pdist(X) - 1).max()
        assert goal.error(None, fixed(Z), pairs) == pytest.approx(worst, rel=1e-4)
        for value in (np.nan, np.inf):
            Z[bad, 1] = value
            assert math.isnan(goal.error(None, fixed(Z), pairs))
    assert goal.error(None, fixed(0 * X), pairs) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_the_spectral_bound_is_tight_and_never_below(kind, dtype, rng, monkeypatch):
    """False alarms: 1e-6 for a seed, and 1e-9 for a factor."""
    X, kernel = table(kind, rng, 200)
    goal = Spectral(kernel, EPS)
    rows = Rows(X, X.astype(dtype))
    phi = fourier(kernel, dtype, 20)
    matrix = goal.prepare(key(0), rows)
    Z = mapped(phi, matrix.inputs).astype(float)
    truth = np.linalg.norm(gaussian(X, kernel) - Z @ Z.T, 2) / 200
    rounding = 16 * float(np.finfo(dtype).eps)
    for prepared in (matrix, goal.lasting(key(1), matrix)):
        most = 1.05 * truth + 2.05 * prepared.left / 200 + rounding
        for seed in range(20):
            assert truth <= goal.error(key(seed), phi, prepared) <= most
        assert math.isnan(goal.error(key(0), lambda Y: Y + jnp.inf, prepared))
    monkeypatch.setattr(spectral, "_EXACT", 200)
    few = goal.prepare(None, rows)
    assert goal.error(key(1), phi, few) == pytest.approx(truth, abs=1e-12)


def test_a_factor_stands_in_only_if_it_leaves_little(dtype, rng):
    X = rng.standard_normal((200, 2)).astype(dtype)
    goal = Spectral(kernels.Gaussian(2.0), EPS)
    lasting = goal.lasting(key(1), goal.prepare(None, X))
    F = lasting.factor.astype(float)
    rest = np.linalg.norm(gaussian(X, goal.kernel) - F @ F.T, 2)
    assert rest <= lasting.left <= spectral._LEFT * EPS * 200
    assert F.shape[1] < 64 and not lasting.blocks
    flat = goal.prepare(None, 50 * np.arange(200, dtype=dtype)[:, None])
    assert goal.lasting(key(1), flat) is flat


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_a_bound_is_too_small_if_and_only_if_the_mass_is(steps, rng, monkeypatch):
    """A polynomial of degree k vanishes on all of k + 1 eigenvalues except one: k steps know the mass of that one."""
    values = np.append(1.0, np.repeat(np.linspace(-0.5, 0.5, steps), 30))
    quantile = stats.chi2.ppf(0.3, 8)
    growth = math.acosh(math.sqrt(8 * len(values) / quantile))
    monkeypatch.setattr(spectral, "_LOOSENESS", math.cosh(growth / (steps - 0.5)))
    monkeypatch.setattr(spectral, "_CLOSE", 1.0)
    failures = 0
    for _ in range(50):
        start = rng.standard_normal((len(values), 8))
        lower, upper = spectral.norm_bounds(lambda V: values[:, None] * V, start, 0.3)
        failed = np.sum(start[0] ** 2) < quantile
        assert lower < 1 and (upper < 1) == failed
        failures += failed
    assert failures > 0


def test_bounds_of_nothing():
    zero = np.zeros(1)
    assert spectral.bounds_of(zero + 2, zero, 1e6) == (2, 2)
    assert spectral.bounds_of(zero, zero + 1e-3, 10.0)[1] == pytest.approx(3e-3)
    assert math.isnan(spectral.bounds_of(zero + math.nan, zero, 1e6)[1])


@pytest.fixture
def classes(rng):
    """Three classes that no method of clustering misses: points in float64, and their numbers."""
    truth = np.repeat(np.arange(CLASSES), (10, 20, 30))
    return 4 * np.eye(DIM)[truth] + 0.3 * rng.normal(size=(60, DIM)), truth


def test_clusters_are_those_of_scipy(classes, dtype):
    X = classes[0].astype(dtype)
    goal = Clustering(KERNEL, CLASSES)
    clusters = goal.prepare(key(0), X, classes[1])
    assert misclassification_rate(classes[1], clusters.labels) == 0
    assert clusters.own_disagreement == 0
    assert "find the same partition" in clusters.words
    phi = fourier(KERNEL, dtype, 10)
    Z = mapped(phi, X).astype(float)
    runs = [kmeans2(Z, CLASSES, minit="++", rng=seed) for seed in range(20)]
    best = min(runs, key=lambda run: np.sum((Z - run[0][run[1]]) ** 2))[1]
    error = misclassification_rate(classes[1], best)
    assert goal.error(key(1), phi, clusters) == pytest.approx(error)
    for other in (None, lambda Y: Y):
        assert goal.agreement(key(1), other, clusters) == pytest.approx(1)


def test_the_error_of_clusters_is_the_share_of_points_elsewhere(classes):
    X, truth = classes
    other = (truth + 1) % CLASSES
    other[:6] = (other[:6] + 1) % CLASSES
    goal = Clustering(KERNEL, CLASSES)
    clusters = goal.prepare(key(0), numbered(X))
    for scale in (1e-12, 1e12):
        Z = (scale * np.eye(CLASSES)[other]).astype(np.float32)
        # Exactly, or a limit of 0.1 would be exceeded by 6 of 60 points in float32.
        assert goal.error(key(1), fixed(Z), clusters) == 0.1
    assert goal.error(key(1), fixed(np.ones((60, 4))), clusters) > 0.3
    assert math.isnan(goal.error(key(1), fixed(np.full((60, 4), np.nan)), clusters))


def test_restarts_are_as_many_as_find_the_best_partition(classes, rng):
    few = Clustering(KERNEL, CLASSES).with_restarts(key(0), classes[0], EPS, 0.05)
    assert few.num_restarts == 10 and few.found_by_one > 0.5
    noise = rng.normal(size=(60, DIM))
    many = Clustering(KERNEL, 8).with_restarts(key(0), noise, 0.01, 0.05)
    assert many.num_restarts == 100 and many.found_by_one < 0.1
    once = Clustering(KERNEL, 8, 1).prepare(key(0), noise)
    assert once.own_disagreement > 0.1 and "differs from itself" in once.words


def separations(G, truth):
    """Return R of all pairs of classes from a Gram matrix: dense eigenvalues, sums over all points."""
    shares = [(truth == number) / np.sum(truth == number) for number in range(CLASSES)]
    spreads = []
    for share in shares:
        root = np.sqrt(share)
        H = np.diag(root) - np.outer(root, share)
        spreads.append(np.linalg.eigvalsh(H @ G @ H.T)[-1])
    R = []
    for a, b in itertools.combinations(range(CLASSES), 2):
        weights = shares[a] - shares[b]
        R.append(weights @ G @ weights / max(spreads[a], spreads[b]))
    return np.array(R)


@pytest.mark.parametrize("kind", ["plain", "clusters", "small", "large"])
def test_the_loss_of_separation_is_that_of_dense_sums(kind, classes, dtype, rng):
    X, kernel = table(kind, rng, 60)
    X += classes[0] * kernel.lengthscale / 4
    goal = Separation(kernel)
    prepared = goal.prepare(None, Rows(X, X.astype(dtype)), classes[1])
    phi = fourier(kernel, dtype)
    Z = mapped(phi, prepared.inputs).astype(float)
    exact = separations(gaussian(X, kernel), classes[1])
    worst = max(0, 1 - np.min(separations(Z @ Z.T, classes[1]) / exact))
    assert goal.error(None, phi, prepared) == pytest.approx(worst, abs=1e-5)


def test_only_the_shape_of_the_features_and_the_partition_count(classes, rng):
    goal = Separation(KERNEL)
    prepared = goal.prepare(None, numbered(classes[0]), classes[1])
    Z = rng.normal(size=(60, 5)) + classes[1][:, None]
    error = goal.error(None, fixed(Z.astype(np.float32)), prepared)
    assert 0 < error < 1
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for other in (1e-30 * Z, 1e30 * Z, Z @ turn, Z + 3):
        same = goal.error(None, fixed(other.astype(np.float32)), prepared)
        assert same == pytest.approx(error, abs=1e-4)
    for constant, loss in ((0.0, 1), (1.0, 1), (math.nan, math.nan)):
        lost = goal.error(None, fixed(np.full((60, 5), constant)), prepared)
        assert lost == pytest.approx(loss, nan_ok=True)


def test_classes_that_coincide_have_nothing_to_lose(dtype, rng):
    X = np.repeat(rng.normal(size=(2, DIM)), (40, 20), axis=0)
    truth = np.array([0, 1] * 20 + [2] * 19 + [7])
    goal = Separation(KERNEL)
    prepared = goal.prepare(None, numbered(X), truth)
    images = rng.normal(size=(2, 5)).astype(dtype)
    Z = np.repeat(images, (40, 20), axis=0)
    assert len(prepared.members) == 3
    assert goal.error(None, fixed(Z), prepared) == 0
    assert goal.error(None, fixed(np.ones_like(Z)), prepared) == 1
    with pytest.raises(ValueError, match="separates no two classes"):
        goal.prepare(None, np.ones((60, DIM), dtype), truth)


def refuses(message, function, *arguments):
    with pytest.raises(ValueError, match=message):
        function(*arguments)


def test_what_the_goals_refuse(classes):
    X = classes[0].astype(np.float32)
    lost = X.copy()
    lost[0] = np.nan
    clusters = Clustering(KERNEL, 3)
    means = Separation(KERNEL)
    for goal in (Distance(KERNEL, EPS), Spectral(KERNEL, EPS)):
        assert "Sigma^3" in goal.refuses("kernel_jl") and not goal.refuses("nystrom")
    refuses("points must be finite", Distance(KERNEL, EPS).prepare, None, lost)
    refuses("num_clusters", Clustering, KERNEL, 1)
    refuses("2 of 60, got 3", clusters.prepare, key(0), np.repeat(X[:2], 30, 0))
    refuses("k-means of the points is not finite", clusters.prepare, key(0), lost)
    refuses("60 class", means.prepare, None, X, np.arange(60))
    refuses("the classes is not finite", means.prepare, None, lost, classes[1])
