"""k-means against literal Lloyd steps and all partitions; seeding, empty clusters, duplicates, offsets, memory."""

import itertools
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps, same_partition

from jaxkern.kmeans import _lloyd, _seeding, kmeans

MEANS = 10.0 * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [-1, -1, 1]])
N, DIM, K = 62, 3, 4  # with blocks of 25 rows the last one is padded


def separated(rng):
    """Four tight clusters: seeding misses one with probability below 1e-4 at each step, for any key."""
    truth = rng.permutation(np.arange(N) % K)
    return MEANS[truth] + 0.05 * rng.uniform(-1, 1, (N, DIM)), truth


def literal_lloyd(X, centers):
    """Textbook Lloyd for data in which no cluster ever loses all its points."""
    while True:
        labels = ((X[:, None] - centers[None]) ** 2).sum(-1).argmin(1)
        means = np.stack([X[labels == j].mean(0) for j in range(len(centers))])
        if np.allclose(means, centers, rtol=0, atol=1e-14):
            return labels, centers
        centers = means


def objective_of(X, labels, centers):
    return ((np.float64(X) - np.float64(centers)[labels]) ** 2).sum()


def assert_consistent(X, result):
    """The fields belong together, whatever the iteration did."""
    X = np.float64(X)
    labels, centers = np.asarray(result.labels), np.float64(result.centers)
    unit = eps(result.centers.dtype)
    tiny = 100 * unit * max((X**2).sum(1).max(), 1e-30)
    assert (
        np.isfinite(centers).all() and labels.min() >= 0 and labels.max() < len(centers)
    )
    distances = ((X[:, None] - centers[None]) ** 2).sum(-1)
    own = distances[np.arange(len(X)), labels]
    assert (own <= distances.min(1) + tiny).all()
    assert (
        abs(float(result.objective) - own.sum())
        <= 50 * unit * own.sum() + len(X) * tiny * unit
    )


@pytest.mark.parametrize(
    "offset", [0.0, 1e4]
)  # nearest centres by products, and by direct differences
@pytest.mark.parametrize(
    "few", [3, *(pytest.param(few, marks=pytest.mark.slow) for few in (1, 2, K))]
)
def test_of_the_clusters_only_those_used_are_there(few, offset, rng):
    X, options = (
        np.float32(offset + rng.normal(size=(N, 12))),
        {"num_candidates": 2, "num_restarts": 3},
    )
    some = jax.vmap(
        lambda used: kmeans(jax.random.key(5), X, K, num_used=used, **options)
    )(jnp.arange(1, K + 1))
    centers, labels = np.asarray(some.centers), np.asarray(some.labels)
    for used in range(1, K + 1):
        assert np.isinf(centers[used - 1, used:]).all() and {
            *labels[used - 1].tolist()
        } == {*range(used)}
    alone = kmeans(jax.random.key(5), X, few, **options)
    assert np.array_equal(labels[few - 1], alone.labels)
    np.testing.assert_allclose(
        centers[few - 1, :few], alone.centers, rtol=1e-5, atol=1e-5
    )
    assert int(np.asarray(some.iterations)[few - 1]) == int(alone.iterations)


def test_separated_clusters_are_found_from_every_seed(dtype, rng):
    X, truth = separated(rng)
    X = jnp.asarray(X, dtype)
    for seed in range(10):
        result = kmeans(jax.random.key(seed), X, K)
        assert same_partition(result.labels, truth) and bool(result.converged)
        assert result.labels.dtype == result.iterations.dtype == jnp.int32
        assert_consistent(X, result)
        means = np.stack(
            [np.asarray(X)[np.asarray(result.labels) == j].mean(0) for j in range(K)]
        )
        np.testing.assert_allclose(result.centers, means, atol=20 * 10 * eps(dtype))


def test_lloyd_takes_the_literal_steps_from_every_start(rng, x64):
    """All 35 triples out of 7 points as starts."""
    X = rng.normal(size=(7, 2))
    starts = np.stack(
        [X[list(chosen)] for chosen in itertools.combinations(range(7), 3)]
    )

    def run(start):
        return _lloyd.lloyd(
            _lloyd.Blocks.cut(jnp.asarray(X), None, 4), start, 100, jnp.zeros(())
        )

    found, converged, _ = jax.device_get(jax.jit(jax.vmap(run))(starts))
    assert converged.all()
    objectives = []
    for start, centers in zip(starts, found, strict=True):
        labels, expected = literal_lloyd(X, start)
        np.testing.assert_allclose(centers, expected, atol=1e-12)
        objectives.append(objective_of(X, labels, expected))
    result = kmeans(jax.random.key(3), jnp.asarray(X), 3, tolerance=0.0)
    assert np.abs(np.array(objectives) - float(result.objective)).min() <= 1e-12


def test_one_cluster_is_the_mean(dtype, rng):
    X = np.asarray(rng.normal(size=(N, DIM)) + 5, dtype)
    result, exact = kmeans(jax.random.key(0), X, 1), np.float64(X)
    np.testing.assert_allclose(
        np.asarray(result.centers)[0], exact.mean(0), rtol=10 * eps(dtype)
    )
    assert float(result.objective) == pytest.approx(
        ((exact - exact.mean(0)) ** 2).sum(), rel=20 * eps(dtype)
    )
    assert bool(result.converged) and not np.asarray(result.labels).any()


@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.slow), 9])
def test_as_many_clusters_as_points_leaves_nothing_over(n, rng):
    X = jnp.asarray(rng.normal(size=(n, DIM)), jnp.float32)
    result = kmeans(jax.random.key(0), X, n, tolerance=0.0)
    assert sorted(result.labels.tolist()) == list(range(n)) and bool(result.converged)
    assert float(result.objective) <= X.size * (10 * eps("float32")) ** 2


@pytest.mark.parametrize("tolerance", [0.0, 1e-4])
@pytest.mark.parametrize("distinct", [1, 3])
def test_copies_of_fewer_points_than_clusters_are_no_trouble(
    distinct, tolerance, dtype, rng
):
    """Exact copies: some clusters stay empty, nothing is NaN, and the iteration does not swap them for ever."""
    truth = np.arange(N) % distinct
    X = jnp.asarray(MEANS[:3][truth] + 0.1, dtype)
    for seed in range(3):
        result = kmeans(jax.random.key(seed), X, K, tolerance=tolerance)
        assert_consistent(X, result)
        assert float(result.objective) <= X.size * (N * 10 * eps(dtype)) ** 2
        assert bool(result.converged) and int(result.iterations) <= 10
        groups = [
            set(np.asarray(result.labels)[truth == j].tolist()) for j in range(distinct)
        ]
        assert len(set.union(*groups)) == sum(map(len, groups))


def test_a_common_offset_costs_no_digits(rng):
    """On a grid that float32 holds exactly with and without the offset, the data are the same data.

    Clusters are 0.3 apart: with the offset, float32 knows |x|^2 to 0.2 only.
    """
    X = np.round(separated(rng)[0] / 32 * 8192) / 8192
    near, far = jnp.asarray(X, jnp.float32), jnp.asarray(X + 1000, jnp.float32)
    assert np.array_equal(
        np.asarray(far, np.float64) - 1000, np.asarray(near, np.float64)
    )
    for seed in range(3):
        a, b = (
            kmeans(jax.random.key(seed), near, K),
            kmeans(jax.random.key(seed), far, K),
        )
        assert np.array_equal(a.labels, b.labels)
        np.testing.assert_allclose(
            b.centers - 1000, a.centers, atol=1000 * eps("float32")
        )
        rounding = X.size * (1000 * eps("float32")) ** 2
        assert (
            abs(float(a.objective) - float(b.objective))
            <= 20 * eps("float32") * float(a.objective) + rounding
        )
        exact = objective_of(far, np.asarray(b.labels), b.centers)
        assert float(b.objective) == pytest.approx(exact, rel=20 * eps("float32"))


def test_empty_clusters_restart_at_different_far_points(dtype):
    """Centres 1e3 and 2e3 win nothing: they move to 20 and 0, the points farthest from 6, and all ends well."""
    rows, start = (
        np.array([[0], [0.125], [10], [20]], dtype),
        np.array([[6], [1000], [2000]], dtype),
    )
    run = jax.jit(
        lambda steps: _lloyd.lloyd(
            _lloyd.Blocks.cut(rows, None, 3), start, steps, jnp.zeros((), dtype)
        )
    )
    assert np.asarray(run(1)[0])[1:].ravel().tolist() == [20, 0]
    centers, converged, _ = jax.device_get(run(50))
    assert converged and sorted(centers.ravel().tolist()) == [0.0625, 10, 20]


def test_rounding_of_a_mean_reseeds_no_cluster(dtype):
    """Copies of 0.1, whose mean is off by a few units in the last place: the empty cluster stays where it was."""
    rows, labels = np.full((N, 1), 0.1, dtype), jnp.zeros(N, jnp.int32)
    centers = jnp.array([[0.1 * (1 + 4 * eps(dtype))], [3]], dtype)

    @jax.jit
    def reseed(rows):
        blocks = _lloyd.Blocks.cut(rows, None, N)
        return _lloyd._reseed(
            blocks, centers, labels, centers, jnp.array([False, True])
        )

    assert np.array_equal(reseed(rows), centers)
    rows[7] = 0.11
    moved = np.asarray(reseed(rows))
    assert moved[1] == rows[7] and moved[0] == centers[0]


def test_more_restarts_are_never_worse(rng):
    X = jnp.asarray(rng.uniform(size=(N, DIM)), jnp.float32)
    for seed in range(5):
        key = jax.random.key(seed)
        one, four = kmeans(key, X, K), kmeans(key, X, K, num_restarts=4)
        assert float(four.objective) <= float(one.objective) * (1 + 20 * eps("float32"))
        assert_consistent(X, four)


def test_converged_is_honest(rng):
    X = jnp.asarray(rng.uniform(size=(N, DIM)), jnp.float32)
    stopped = kmeans(jax.random.key(0), X, K, max_iterations=1, tolerance=0.0)
    assert not stopped.converged and int(stopped.iterations) == 1
    done = kmeans(jax.random.key(0), X, K, tolerance=0.0)
    assert done.converged and 1 < int(done.iterations) < 300
    assert float(done.objective) < float(stopped.objective)
    means = np.stack(
        [np.asarray(X)[np.asarray(done.labels) == j].mean(0) for j in range(K)]
    )
    np.testing.assert_allclose(done.centers, means, atol=10 * eps("float32"))
    for restarts in (1, 4):
        broken = kmeans(
            jax.random.key(0), X.at[3, 1].set(jnp.nan), K, num_restarts=restarts
        )
        assert not broken.converged and not jnp.isfinite(broken.objective)


def test_results_do_not_depend_on_blocks_or_the_order_of_points(rng):
    X, order = np.float32(separated(rng)[0]), rng.permutation(N)
    whole = kmeans(jax.random.key(0), X, K)
    for block_size in [25, 10**6]:
        blocked = kmeans(jax.random.key(0), X, K, block_size=block_size)
        assert np.array_equal(whole.labels, blocked.labels)
        np.testing.assert_allclose(
            blocked.centers, whole.centers, atol=100 * eps("float32")
        )
    shuffled = kmeans(jax.random.key(5), X[order], K)
    assert same_partition(shuffled.labels, np.asarray(whole.labels)[order])


def test_all_ways_to_sum_clusters_agree(rng):
    rows = np.float32(rng.normal(size=(20, DIM)))
    labels = (
        np.arange(20, dtype=np.int32) % 5
    )  # 4 stands for padding, which no sum contains
    weights = np.float32(rng.uniform(size=20))
    expected = [
        np.stack([column[labels == j].sum(0) for j in range(K)])
        for column in (rows, weights)
    ]
    for sums in (_lloyd._scattered_sums, _lloyd._matmul_sums, _lloyd._mixed_sums):
        found = jax.jit(partial(sums, num_clusters=K))(rows.T, weights, labels)
        jax.tree.map(
            partial(np.testing.assert_allclose, atol=50 * eps("float32")),
            list(found),
            expected,
        )


@pytest.mark.parametrize("num_candidates", [1, 4])
def test_seeds_are_different_points_even_among_copies(num_candidates, rng):
    """Copies are at distance exactly 0: all distinct points come first, then the rest without repetition."""
    X = np.float32(rng.normal(size=(3, DIM)) * 0.1 + 7)[np.arange(11) % 3]
    draw = jax.jit(
        jax.vmap(lambda key: _seeding.plus_plus(key, X, None, 11, num_candidates))
    )
    seeds = np.asarray(draw(jax.random.split(jax.random.key(2), 30)))
    assert seeds.dtype == np.int32
    assert (np.sort(seeds, axis=1) == np.arange(11)).all()
    assert (np.sort(seeds[:, :3] % 3, axis=1) == np.arange(3)).all()


def pair_shares(X, num_candidates, draws=20_000):
    """How often each ordered pair of points is chosen as two seeds."""
    draw = jax.jit(
        jax.vmap(lambda key: _seeding.plus_plus(key, X, None, 2, num_candidates))
    )
    first, second = np.asarray(draw(jax.random.split(jax.random.key(6), draws))).T
    return (
        np.bincount(first * len(X) + second, minlength=len(X) ** 2).reshape(
            len(X), len(X)
        )
        / draws
    )


def test_one_candidate_is_plain_seeding_and_more_are_not():
    """All 25 pairs out of 5 points, 20000 draws: 6 standard errors, false alarms below 1e-7. The first is uniform."""
    X = np.array([[0, 0], [1, 0], [0, 2], [4, 4], [5, 4]], np.float32)
    squares = ((X[:, None] - X[None]) ** 2).sum(-1)
    p = squares / squares.sum(1, keepdims=True) / 5
    bars = 6 * np.sqrt(p * (1 - p) / 20_000)
    assert (np.abs(pair_shares(jnp.asarray(X), 1) - p) <= bars).all()
    assert (np.abs(pair_shares(jnp.asarray(X), 2) - p) > bars).any()


def test_the_number_of_candidates_is_two_plus_log_k_by_default(rng):
    X = jnp.asarray(rng.uniform(size=(N, DIM)), jnp.float32)
    default = kmeans(jax.random.key(1), X, K)
    assert np.array_equal(
        default.labels, kmeans(jax.random.key(1), X, K, num_candidates=3).labels
    )
    plain = kmeans(jax.random.key(1), X, K, num_candidates=1)
    assert_consistent(X, plain)
    assert bool(plain.converged) and not np.array_equal(default.labels, plain.labels)


def test_memory_is_that_of_the_points_and_a_block_of_scores():
    """Of the compiled program; differences to all candidates at once, or scores of all points, would be far more."""
    points, dim, clusters, block = 6000, 10, 40, 64
    run = jax.jit(
        partial(kmeans, num_clusters=clusters, num_restarts=2, block_size=block)
    )
    compiled = run.lower(
        jax.random.key(0), jnp.zeros((points, dim), jnp.float32)
    ).compile()
    candidates = 2 + int(np.log(clusters))
    assert compiled.memory_analysis().temp_size_in_bytes <= 4 * (
        2 * points * dim + points * (candidates + 12)
    )
    assert (
        points * candidates * dim
        > 2 * points * dim + points * (candidates + 12)
        < points * clusters
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_clusters": 0}, "num_clusters must be at least 1, got 0"),
        (
            {"num_clusters": 6},
            "num_clusters must be at most 5 .the number of points., got 6",
        ),
        ({"num_clusters": 2.0}, "num_clusters must be a static whole number"),
        ({"num_restarts": 0}, "num_restarts must be at least 1"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"tolerance": -1e-4}, "tolerance must be at least 0"),
        ({"num_candidates": 0}, "num_candidates must be at least 1"),
        ({"num_candidates": 1.5}, "num_candidates must be a static whole number"),
        ({"block_size": 0}, "block_size must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {
        "key": jax.random.key(0),
        "X": np.zeros((5, 2), np.float32),
        "num_clusters": 2,
    } | changes
    with pytest.raises(ValueError, match=message):
        kmeans(**arguments)


def test_whole_weights_are_copies(rng, dtype):
    """From the same start the weighted steps are those on the copies, and the objective is theirs."""
    X = rng.normal(size=(12, 2))
    weights = rng.integers(0, 4, 12)
    weights[:3] = 1
    copies = np.repeat(X, weights, axis=0)
    start = jnp.asarray(X[:3] - 0.1, dtype)
    run = jax.jit(
        lambda X, w: _lloyd.lloyd(
            _lloyd.Blocks.cut(X, w, 5), start, 100, jnp.zeros((), dtype)
        )
    )
    found = run(jnp.asarray(X, dtype), jnp.asarray(weights, dtype))
    expected = literal_lloyd(copies, np.float64(start))[1]
    np.testing.assert_allclose(found[0], expected, atol=200 * eps(dtype))

    result = kmeans(
        jax.random.key(1), jnp.asarray(X, dtype), 3, weights=jnp.asarray(weights, dtype)
    )
    labels = np.repeat(np.asarray(result.labels), weights)
    np.testing.assert_allclose(
        result.objective,
        objective_of(copies, labels, result.centers),
        rtol=100 * eps(dtype),
    )


def test_seeds_are_drawn_by_weight_and_never_of_weight_zero(x64):
    """Two points of weights 1 and 3: 4,000 draws, chi-square at 1e-9 allows a share off by .042."""
    X = jnp.arange(4.0)[:, None]
    weights = jnp.array([1.0, 0.0, 3.0, 0.0])
    draw = jax.jit(jax.vmap(lambda key: _seeding.plus_plus(key, X, weights, 3, 1)))
    seeds = np.asarray(draw(jax.random.split(jax.random.key(0), 4000)))
    assert set(seeds[:, 0]) == set(seeds[:, 1]) == {0, 2} and set(seeds[:, 2]) <= {0, 2}
    assert abs((seeds[:, 0] == 2).mean() - 0.75) <= 0.042
    assert (seeds[:, 0] != seeds[:, 1]).all()


@pytest.mark.parametrize(
    "weights", [[0.0] * 4, [-1.0] * 4, [3.0, 3, -1, 3], [1, 1, 1, np.nan], [1e308] * 4]
)
@pytest.mark.parametrize("num_restarts", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_without_weights_there_is_no_mean(weights, num_restarts, rng, x64):
    X = jnp.asarray(rng.normal(size=(4, 2)))
    result = kmeans(
        jax.random.key(0), X, 2, weights=jnp.asarray(weights), num_restarts=num_restarts
    )
    assert not np.isfinite(result.objective) and not bool(result.converged)


@pytest.mark.parametrize("dim", [2, 12])
def test_clusters_far_apart_for_their_size_are_told_apart(dim, rng):
    """A million from the others, two clusters 8 apart: in float32 a product rounds their squared distances by 1e5."""
    truth = np.arange(N) // 21
    X = 0.5 * rng.normal(size=(N, dim))
    X[truth > 0, 0] += 1e6
    X[truth > 1, 1] += 8
    found = kmeans(
        jax.random.key(0), np.float32(X), 3, num_candidates=2, num_restarts=3
    )
    assert same_partition(found.labels, truth) and found.converged
    parts = (np.float64(np.float32(X))[truth == j] for j in range(3))
    within = sum(((part - part.mean(axis=0)) ** 2).sum() for part in parts)
    np.testing.assert_allclose(
        found.objective, within, rtol=0.05
    )  # centres are rounded by .03
