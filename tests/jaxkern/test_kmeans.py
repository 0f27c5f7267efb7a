"""k-means against literal Lloyd steps from all starts; empty clusters, copies, offsets, weights, restarts, memory."""

import itertools
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from support.numerics import same_partition

from jaxkern.kmeans import _lloyd, kmeans

N, _, DIM = house.USUAL
K = 3  # as many as the groups of the data of the house
MANY = 12  # coordinates: beyond 8 the nearest centre is found by products
TRUTH = np.random.default_rng(1).permutation(np.arange(N) % K)


def ones():
    return np.ones(N, house.dtype())


def uniform():
    """Return points without groups: Lloyd takes several steps."""
    return house.cast(house.rng().uniform(size=(N, DIM)))


def squares(X, centers):
    """Return squared distances (..., n, k) to centres (..., k, d)."""
    return ((X[:, None] - centers[..., None, :, :]) ** 2).sum(axis=-1)


def literal_step(X, weights, centers):
    """Return the weighted means (..., k, d) of the points that are nearest to each centre; NaN if there is none."""
    labels = squares(X, centers).argmin(axis=-1)
    members = np.eye(centers.shape[-2])[labels] * weights[:, None]
    sums = np.swapaxes(members, -1, -2) @ X
    with np.errstate(invalid="ignore"):
        return sums / members.sum(axis=-2)[..., None]


def assert_consistent(X, result, weights=None):
    """Assert that labels are the nearest centres, and that the objective is the sum of their squared distances."""
    X = np.float64(X)
    weights = np.ones(len(X)) if weights is None else np.float64(weights)
    centers = np.float64(result.centers)
    centers = centers[np.isfinite(centers).all(axis=1)]
    labels = np.asarray(result.labels)
    exists = weights > 0
    assert (labels[~exists] == -1).all()
    distances = squares(X, centers)
    nearest = np.take_along_axis(distances, labels[:, None], axis=1)[:, 0]
    # A score is a difference of squared norms of centred points.
    rounding = 100 * eps() * ((X - X.mean(axis=0)) ** 2).sum(axis=1).max()
    assert (nearest <= distances.min(axis=1) + rounding)[exists].all()
    # Centres have rounding of the size of the points, whose square counts where points stand on their centre.
    step = 10 * eps() * np.abs(X).max()
    assert float(result.objective) == pytest.approx(
        weights @ nearest, rel=50 * eps(), abs=X.size * step**2
    )


@pytest.mark.parametrize(("weighted", "number"), [(False, 7), (True, 37)])
def test_every_step_is_the_literal_one(weighted, number):
    """Seeds are rows of positive weight, and the first step tells which: all triples of rows are tried.

    From these keys it takes four steps at least.
    """
    X = uniform()
    exact = np.float64(X)
    weights = house.data().weights if weighted else None
    masses = np.float64(weights) if weighted else np.ones(N)
    starts = exact[list(itertools.permutations(np.flatnonzero(masses), K))]
    run = partial(kmeans, house.key(number), X, K, weights=weights, tolerance=0.0)
    first = run(max_iterations=1)
    assert not first.converged
    gaps = np.abs(literal_step(exact, masses, starts) - np.asarray(first.centers))
    centers = starts[gaps.max(axis=(1, 2)).argmin()]
    for count in range(1, 20):
        centers = literal_step(exact, masses, centers)
        result = run(max_iterations=count)
        close(result.centers, centers, 100 * eps())
        assert_consistent(X, result, weights)
        assert int(result.iterations) == count
        if result.converged:
            break
    assert 4 <= count < 19
    assert float(result.objective) < float(first.objective)


@pytest.mark.parametrize("offset", [0, 1000])
def test_separated_clusters_are_found_from_every_key_in_any_order_and_by_blocks(offset):
    """With the offset float32 knows |x|^2 to 0.06 only, and the clusters are 10 apart with noise of 0.05."""
    # Seeding misses a cluster with probability below 1e-4 at each step, for any key.
    noise = 0.05 * house.rng().uniform(-1, 1, (N, DIM))
    X = house.cast(10 * np.eye(K, DIM)[TRUTH] + noise + offset)
    for number in range(10):
        result = kmeans(house.key(number), X, K)
        assert same_partition(result.labels, TRUTH)
        assert result.converged
        assert_consistent(X, result)
        means = literal_step(np.float64(X), np.ones(N), np.float64(result.centers))
        close(result.centers, means, 10 * eps() * (10 + offset))
    # The last of blocks of 10 is padded.
    blocked = kmeans(house.key(), X, K, block_size=10, num_candidates=1)
    assert same_partition(blocked.labels, TRUTH)
    assert_consistent(X, blocked)
    order = house.rng(1).permutation(N)
    shuffled = kmeans(house.key(), X[order], K, block_size=10**6)
    assert same_partition(shuffled.labels, TRUTH[order])


def test_as_many_clusters_as_points_leave_nothing_over():
    """From 21 clusters on their sums are scattered on a CPU."""
    X = house.data().X
    result = kmeans(house.key(), X, N, tolerance=0.0)
    assert sorted(result.labels.tolist()) == [*range(N)]
    assert result.converged
    assert_consistent(X, result)


@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
@pytest.mark.parametrize("distinct", [1, K - 1])
def test_copies_of_fewer_points_than_clusters_do_not_swap_for_ever(distinct, tolerance):
    truth = np.arange(N) % distinct
    X = house.cast(10 * np.eye(K, DIM)[truth] + 0.1)
    for number in range(3):
        result = kmeans(house.key(number), X, K, tolerance=tolerance)
        # No cluster has two different points, whose distance would count.
        assert_consistent(X, result)
        assert float(result.objective) < 1
        assert result.converged
        assert int(result.iterations) <= 10


def far_apart(dim):
    """Return points of which two clusters are 8 apart, a million from the third."""
    X = 0.5 * house.rng().normal(size=(N, dim))
    X[TRUTH > 0, 0] += 1e6
    X[TRUTH > 1, 1] += 8
    return house.cast(X)


@jax.jit
@partial(jax.vmap, in_axes=(0, None, 0))
def mapped(number, X, used):
    """Return one result for each key and number of clusters that are used."""
    options = {"num_used": used, "num_candidates": 2, "num_restarts": 3}
    return kmeans(jax.random.key(number), X, K, **options)


@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_only_the_clusters_that_are_used_have_points(offset):
    """Nearest centres are found by products, and far from the origin by direct differences."""
    X = house.cast(offset + house.rng().normal(size=(N, MANY)))
    numbers = np.full(K + 2, 5)
    results = jax.device_get(mapped(numbers, X, np.arange(K + 2, dtype=np.int32)))
    assert results.converged.tolist() == [False, *[True] * K, False]
    for used in range(1, K + 1):
        result = jax.tree.map(lambda leaf, used=used: leaf[used], results)
        assert np.isinf(result.centers[used:]).all()
        assert {*result.labels.tolist()} == {*range(used)}
        assert_consistent(X, result)
        centers = np.float64(result.centers[:used])
        means = literal_step(np.float64(X), np.ones(N), centers)
        close(centers, means, 100 * eps() * (1 + offset))


def test_clusters_far_apart_for_their_size_are_told_apart():
    """In float32 a product rounds the squared distances of clusters 8 apart by 1e5."""
    many = mapped(np.arange(K + 2), far_apart(MANY), np.full(K + 2, K, np.int32))
    few = kmeans(house.key(), far_apart(DIM), K, weights=ones(), num_restarts=4)
    for labels in [*many.labels, few.labels]:
        assert same_partition(labels, TRUTH)
    # The noise has variance 1 / 4; float32 rounds centres by 0.03.
    close(many.objective / MANY / N, [0.25] * 5, 0.1)
    close(few.objective / DIM / N, 0.25, 0.1)
    assert many.converged.all()
    assert few.converged


@jax.jit
def one_start(X, start, steps):
    # The public function draws its starts, of which none loses all points of a cluster here.
    blocks = _lloyd.Blocks.cut(X, None, 4)
    return _lloyd.lloyd(blocks, start, steps, jnp.zeros((), X.dtype))


def test_empty_clusters_restart_at_different_far_points():
    """Centres 1e3 and 2e3 win nothing: they move to 20 and 0, the points farthest from 6, and all ends well."""
    X = house.cast([[0], [0.125], [10], [20], [10]])
    start = house.cast([[6], [1000], [2000]])
    assert one_start(X, start, 1)[0].ravel().tolist()[1:] == [20, 0]
    centers, converged, _ = one_start(X, start, 50)
    assert converged
    assert sorted(centers.ravel().tolist()) == [0.0625, 10, 20]


def test_rounding_of_a_mean_reseeds_no_cluster():
    """Copies of 0.1 whose mean is off by two units in the last place: empty clusters stay where they were."""
    X = np.full((5, 1), 0.1, house.dtype())
    start = house.cast([[0.1 * (1 + 2 * eps())], [3], [4]])
    assert one_start(X, start, 1)[0][1:].tolist() == [[3], [4]]
    X[3] = 0.11
    assert one_start(X, start, 1)[0][1] == X[3]


def test_sums_by_products_are_the_literal_ones():
    """The route of accelerators, which the public function does not take on a CPU."""
    data = house.data()
    labels = np.arange(N, dtype=np.int32) % (K + 1)  # K is padding, in no sum
    members = np.float64(labels[:, None] == np.arange(K))
    sums = jax.jit(partial(_lloyd._matmul_sums, num_clusters=K))
    rows, masses = sums(data.X.T, data.weights, labels)
    tolerance = N * eps() * np.abs(data.X).max()
    close(rows, members.T @ data.X, tolerance)
    close(masses, members.T @ data.weights, tolerance)


def test_more_restarts_are_never_worse():
    X = uniform()
    gains = []
    for number in range(5):
        single = kmeans(house.key(number), X, K, weights=ones())
        several = kmeans(house.key(number), X, K, weights=ones(), num_restarts=4)
        assert_consistent(X, several)
        gains.append(1 - float(several.objective / single.objective))
    assert min(gains) >= -20 * eps()
    assert max(gains) > 20 * eps()


@pytest.mark.parametrize("num_restarts", [1, 4])
def test_nan_and_wrong_weights_are_no_result(num_restarts):
    X = house.data().X
    largest = float(np.finfo(house.dtype()).max)
    missing = X.copy()
    missing[3] = np.nan
    cases = [(missing, ones())]
    cases += [(X, entry * ones()) for entry in (0, -1, largest, np.nan)]
    for points, weights in cases:
        # Weights of NumPy would be refused.
        options = {"weights": jnp.asarray(weights), "num_restarts": num_restarts}
        result = kmeans(house.key(), points, K, **options)
        assert not np.isfinite(result.objective)
        assert not result.converged


def test_the_number_of_candidates_is_two_plus_log_k_by_default():
    X = uniform()
    default = kmeans(house.key(1), X, K)
    greedy = kmeans(house.key(1), X, K, num_candidates=3)
    plain = kmeans(house.key(1), X, K, num_candidates=1)
    assert np.array_equal(default.labels, greedy.labels)
    assert not np.array_equal(default.labels, plain.labels)


def test_memory_is_the_points_and_a_block_of_scores():
    """Differences to all candidates at once, or scores of all points, would be far more: sizes that tell them apart."""
    points, dim, clusters, block = 6000, 10, 40, 64
    candidates = 2 + int(np.log(clusters))
    numbers = 2 * points * dim + points * (candidates + 12)
    assert points * candidates * dim > numbers < points * clusters
    run = jax.jit(
        partial(kmeans, num_clusters=clusters, num_restarts=2, block_size=block)
    )
    X = jax.ShapeDtypeStruct((points, dim), jnp.float32)
    compiled = run.lower(house.key(), X).compile()
    assert compiled.memory_analysis().temp_size_in_bytes <= 4 * numbers
