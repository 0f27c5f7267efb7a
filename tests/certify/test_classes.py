"""The goals of a certificate that are about clusters and classes: dense oracles, invariances, degenerate cases."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import kernels
from proofs_check.certify import _clustering, _means, _nearest, _separation
from proofs_check.certify._clustering import Clustering
from proofs_check.certify._separation import Separation

KERNEL = kernels.Gaussian(1.5)
N, DIM, CLASSES = 60, 3, 3


def key(number):
    return jax.random.key(number)


def gaussian(X, Y):
    """The Gram matrix in float64, one difference at a time."""
    return np.exp(-((X[:, None, :] - Y[None, :, :]) ** 2).sum(axis=2) / (2 * 1.5**2))


def exact(X, dtype):
    """A map whose features have the inner products of the kernel."""
    X = np.float64(X)
    return fixed(
        jnp.asarray(np.linalg.cholesky(gaussian(X, X) + 1e-10 * np.eye(len(X))), dtype)
    )


def fixed(Z):
    """A map that knows the features of the points it will be asked for."""
    return lambda points: Z


@pytest.fixture
def blobs(rng):
    """Three clusters that no method misses: (N, DIM) points and their numbers."""
    truth = np.arange(N) % CLASSES
    return 4 * np.eye(DIM)[truth] + 0.3 * rng.normal(size=(N, DIM)), truth


@pytest.fixture
def mixed(rng):
    """Three classes that overlap, of unequal sizes and shapes."""
    truth = np.repeat(np.arange(CLASSES), (10, 20, 30))
    return rng.normal(size=(N, DIM)) * (1 + truth[:, None]) / 2 + truth[:, None], truth


def variance_within(G, labels):
    """The mean squared distance to the mean of the cluster, from double sums, over the one to the mean of all."""
    total = np.trace(G) - G.sum() / len(G)
    within = np.trace(G) - sum(
        G[np.ix_(labels == c, labels == c)].sum() / (labels == c).sum()
        for c in set(labels)
    )
    return within / total


def test_kernel_kmeans_finds_the_best_of_all_partitions(rng, dtype):
    """Eight distinct points, some of them seven times and some eight; copies stay together in the best partition."""
    copies = np.arange(N) % 8
    X = jnp.asarray(rng.normal(size=(8, DIM))[copies], dtype)
    G = gaussian(*(np.float64(X),) * 2)
    best = min(
        variance_within(G, np.array(one)[copies])
        for one in itertools.product(range(CLASSES), repeat=8)
    )
    found = Clustering(KERNEL, CLASSES).prepare(key(0), X)
    tolerance = 100 * float(jnp.finfo(dtype).eps)
    assert variance_within(G, np.asarray(found.labels)) == pytest.approx(
        best, abs=tolerance
    )


def test_maps_that_keep_distances_find_the_clusters(blobs, rng, dtype):
    X = jnp.asarray(blobs[0], dtype)
    goal = Clustering(KERNEL, CLASSES)
    prepared = goal.prepare(key(0), X)
    assert prepared.own_disagreement == 0 and "the same partition" in prepared.words
    assert (
        len({(int(a), int(b)) for a, b in zip(prepared.labels, blobs[1], strict=True)})
        == CLASSES
    )
    phi = exact(X, dtype)
    assert goal.error(key(1), phi, prepared) == 0
    turned = np.float64(phi(X)) @ np.linalg.qr(rng.normal(size=(N, N)))[0] + 1
    for scale in (1e-12, 1e12):
        assert (
            goal.error(key(1), fixed(jnp.asarray(scale * turned, dtype)), prepared) == 0
        )
    assert goal.detail(phi, prepared) == {"words": prepared.words}


@pytest.mark.parametrize("moved", [1, 6])
def test_the_error_is_the_share_of_points_elsewhere(blobs, moved, dtype):
    """A map that collapses clusters, some points of which are in the wrong one and clusters have other numbers."""
    X, truth = jnp.asarray(blobs[0], dtype), blobs[1]
    other = (truth + 1) % CLASSES
    other[:moved] = (other[:moved] + 1) % CLASSES
    goal = Clustering(KERNEL, CLASSES)
    prepared = goal.prepare(key(0), X)
    # Exactly, or a limit of 0.1 would be exceeded by 6 of 60 points in float32.
    assert (
        goal.error(key(1), fixed(jnp.asarray(np.eye(CLASSES)[other], dtype)), prepared)
        == moved / N
    )


def test_noise_fails_and_what_is_no_number_is_no_error(blobs, rng):
    X = jnp.asarray(blobs[0], jnp.float32)
    goal = Clustering(KERNEL, CLASSES)
    prepared = goal.prepare(key(0), X)
    assert (
        goal.error(
            key(1), fixed(jnp.asarray(rng.normal(size=(N, 20)), jnp.float32)), prepared
        )
        > 0.3
    )
    # Equal features say nothing of the clusters, and no start from the exact partition may hide that.
    assert goal.error(key(1), fixed(jnp.ones((N, 4))), prepared) > 0.3
    assert np.isnan(goal.error(key(1), fixed(jnp.full((N, 4), jnp.nan)), prepared))


def test_a_partition_that_does_not_repeat_is_told(rng):
    X = jnp.asarray(rng.normal(size=(N, DIM)), jnp.float32)
    prepared = Clustering(KERNEL, CLASSES, 1).prepare(key(0), X)
    assert prepared.own_disagreement > 0.1
    assert "differs from itself on" in prepared.words


def test_clustering_compiles_once_for_many_draws(blobs, rng):
    X = jnp.asarray(blobs[0], jnp.float32)
    goal = Clustering(KERNEL, CLASSES)
    prepared = goal.prepare(key(0), X)
    goal.error(
        key(1), fixed(jnp.asarray(rng.normal(size=(N, 40)), jnp.float32)), prepared
    )
    before = _clustering._clustered._cache_size()
    for number in range(4):
        goal.error(
            key(number),
            fixed(jnp.asarray(rng.normal(size=(N, 41 + number)), jnp.float32)),
            prepared,
        )
    assert _clustering._clustered._cache_size() == before


@pytest.mark.parametrize(
    "size, padded",
    [(1, 64), (64, 64), (65, 128), (500, 512), (513, 768), (2_000, 2_048)],
)
def test_features_are_filled_up_so_that_sizes_share_programs(size, padded):
    assert _clustering.features(lambda points: jnp.ones((2, size)), None).shape == (
        2,
        padded,
    )


def test_clustering_refuses_what_it_cannot_do(rng):
    X = jnp.asarray(np.repeat(rng.normal(size=(2, DIM)), N // 2, axis=0), jnp.float32)
    with pytest.raises(ValueError, match="number of distinct points, 2 of 60, got 3"):
        Clustering(KERNEL, 3).prepare(key(0), X)
    with pytest.raises(ValueError, match="num_clusters"):
        Clustering(KERNEL, 1)
    with pytest.raises(ValueError, match="positive semidefinite"):
        Clustering(kernels.Distance(), 2)
    with pytest.raises(ValueError, match="not finite"):
        Clustering(KERNEL, CLASSES).prepare(key(0), X.at[0, 0].set(jnp.nan))
    assert Clustering(KERNEL, 2).refuses("kernel_jl") == ""


def mean_separation(G, truth):
    """R of all pairs of classes from a Gram matrix: dense eigenvalues, sums over blocks."""
    classes = sorted(set(truth))
    R = np.full((len(classes),) * 2, np.nan)
    spreads = []
    for c in classes:
        block = G[np.ix_(truth == c, truth == c)]
        H = np.eye(len(block)) - 1 / len(block)
        spreads.append(np.linalg.eigvalsh(H @ block @ H / len(block))[-1])
    for a, b in itertools.combinations(range(len(classes)), 2):
        first, second = truth == classes[a], truth == classes[b]
        gap = (
            G[np.ix_(first, first)].mean()
            + G[np.ix_(second, second)].mean()
            - 2 * G[np.ix_(first, second)].mean()
        )
        R[a, b] = gap / max(spreads[a], spreads[b])
    return R


def point_separation(G, truth):
    """The same for the nearest points: over all pairs, one after the other."""
    D = np.diag(G)[:, None] + np.diag(G)[None, :] - 2 * G
    classes = sorted(set(truth))
    R = np.full((len(classes),) * 2, np.nan)
    for a, b in itertools.combinations(range(len(classes)), 2):
        R[a, b] = D[np.ix_(truth == classes[a], truth == classes[b])].min()
    return R / D[np.triu_indices(len(D), 1)].mean()


ORACLES = {"means": mean_separation, "points": point_separation}
KINDS = sorted(ORACLES)


@pytest.mark.parametrize("kind", KINDS)
def test_the_separation_is_that_of_dense_sums(mixed, rng, kind, dtype):
    assert_separation(mixed, rng, kind, dtype)


@pytest.mark.slow
def test_large_classes_need_no_gram_matrix(mixed, rng, monkeypatch):
    monkeypatch.setattr(_means, "_DENSE", 0)
    assert_separation(mixed, rng, "means", jnp.float32)


def assert_separation(mixed, rng, kind, dtype):
    X, truth = np.asarray(mixed[0], dtype), mixed[1]
    goal = Separation(KERNEL, kind)
    prepared = goal.prepare(key(0), X, truth)
    pairs = np.triu_indices(CLASSES, 1)
    true = ORACLES[kind](gaussian(*(np.float64(X),) * 2), truth)[pairs]
    # What the residual of an eigenvalue allows, and rounding.
    np.testing.assert_allclose(prepared.separation[pairs], true, rtol=4e-4)
    Z = np.asarray(rng.normal(size=(N, 5)) + truth[:, None], dtype)
    kept = ORACLES[kind](np.float64(Z) @ np.float64(Z).T, truth)[pairs] / true
    detail = {
        (pair["first"], pair["second"]): pair
        for pair in goal.detail(fixed(jnp.asarray(Z)), prepared)["classes"]
    }
    found = np.array(
        [detail[str(a), str(b)]["kept"] for a, b in zip(*pairs, strict=True)]
    )
    np.testing.assert_allclose(found, kept, rtol=1e-3)
    assert [pair["kept"] for pair in detail.values()] == sorted(found)
    error = goal.error(key(1), fixed(jnp.asarray(Z)), prepared)
    assert error == pytest.approx(max(0, 1 - kept.min()), abs=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_shape_of_the_features_and_the_partition_count(
    mixed, rng, kind, dtype
):
    X, truth = jnp.asarray(mixed[0], dtype), mixed[1]
    goal = Separation(KERNEL, kind)
    prepared = goal.prepare(key(0), X, truth)
    Z = rng.normal(size=(N, 5)) + truth[:, None]
    error = goal.error(key(1), fixed(jnp.asarray(Z, dtype)), prepared)
    turn = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    for other in (1e-8 * Z, 1e8 * Z, Z @ turn, Z + 3):
        assert goal.error(
            key(1), fixed(jnp.asarray(other, dtype)), prepared
        ) == pytest.approx(error, abs=1e-3)
    order = rng.permutation(N)
    names = np.array(["z", "b", "q"])[truth]
    renamed = goal.prepare(key(0), X[order], names[order])
    assert renamed.names == ("b", "q", "z")
    assert goal.error(
        key(1), fixed(jnp.asarray(Z[order], dtype)), renamed
    ) == pytest.approx(error, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_an_exact_map_loses_nothing_and_noise_loses_much(blobs, rng, kind, dtype):
    X, truth = jnp.asarray(blobs[0], dtype), blobs[1]
    goal = Separation(KERNEL, kind)
    prepared = goal.prepare(key(0), X, truth)
    assert goal.error(key(1), exact(X, dtype), prepared) < 5e-3
    assert (
        goal.error(
            key(1), fixed(jnp.asarray(rng.normal(size=(N, 40)), dtype)), prepared
        )
        > 0.3
    )
    assert goal.error(key(1), fixed(jnp.ones((N, 3), dtype)), prepared) == 1
    assert goal.error(key(1), fixed(jnp.zeros((N, 3), dtype)), prepared) == 1
    assert np.isnan(
        goal.error(key(1), fixed(jnp.full((N, 3), jnp.nan, dtype)), prepared)
    )
    assert goal.refuses("kernel_jl") == ""


def test_what_kernel_jl_loses_in_the_population(rng, x64):
    """The two bounds of the module's docstring, with the data for the population and the linear kernel.

    phi(x) = Sigma^(3/2) x is Kernel JL without a limit on landmarks and features.
    """
    worst = 0.0
    for gap in (1.0, 3.0, 9.0):
        truth = np.repeat([0, 1], (18, 42))
        X = rng.normal(size=(N, 4)) * np.array([2.0, 1.0, 0.5, 0.2]) + gap * truth[
            :, None
        ] * np.array([0, 1, 1, 0])
        X -= X.mean(axis=0)
        values, vectors = np.linalg.eigh(X.T @ X / N)
        phi = fixed(jnp.asarray(X @ (vectors * values**1.5) @ vectors.T))
        goal = Separation(kernels.Linear(), "means")
        prepared = goal.prepare(key(0), jnp.asarray(X), truth)
        loss = goal.error(key(1), phi, prepared)
        assert loss <= min(1, 1 / (0.3 * 0.7 * prepared.separation[0, 1])) + 1e-3
        goal = Separation(kernels.Linear(), "points")
        prepared = goal.prepare(key(0), jnp.asarray(X), truth)
        loss = goal.error(key(1), phi, prepared)
        assert loss <= 1 - (values[0] / values[-1]) ** 3 + 1e-9
        worst = max(worst, loss)
    assert worst > 0.9  # an honest loss: the condition number is a hundred


def test_two_points_far_apart_keep_what_their_eigenvalue_says(x64):
    """Along the k-th eigenfunction, lambda_k^3 over the mean of lambda^3 with weights lambda: exact."""
    X = np.array([[2.0, 0], [-2, 0], [0, 0.5], [0, -0.5]])
    values = (X**2).mean(axis=0)
    goal = Separation(kernels.Linear(), "points")
    prepared = goal.prepare(key(0), jnp.asarray(X), np.array([0, 0, 1, 1]))
    # Classes 0 and 1 are at squared distance 4.25, rescaled by (4 l1^3 + l2^3 / 4).
    rescaled = (
        (4 * values[0] ** 3 + values[1] ** 3 / 4)
        / 4.25
        / ((values**4).sum() / values.sum())
    )
    found = goal.detail(fixed(jnp.asarray(X * values**1.5)), prepared)["classes"][0][
        "kept"
    ]
    assert found == pytest.approx(rescaled, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_classes_that_coincide_have_nothing_to_lose(kind, rng, dtype):
    X = jnp.asarray(np.repeat(rng.normal(size=(2, DIM)), (N - 20, 20), axis=0), dtype)
    truth = np.array([0, 1] * (N // 2 - 10) + [2] * 20)
    goal = Separation(KERNEL, kind)
    prepared = goal.prepare(key(0), X, truth)
    assert np.isnan(prepared.separation[0, 1])
    assert "1 pairs of classes are not separated by the kernel" in prepared.words
    # The others are single points of H: all is kept as long as they are apart, and nothing if they are not.
    assert np.isinf(prepared.separation[0, 2]) == (kind == "means")
    Z = jnp.asarray(np.repeat(rng.normal(size=(2, 5)), (N - 20, 20), axis=0), dtype)
    assert goal.error(key(1), fixed(Z), prepared) == pytest.approx(0, abs=1e-5)
    assert goal.error(key(1), fixed(jnp.ones((N, 5), dtype)), prepared) == 1
    assert {
        pair["exact"] is None for pair in goal.detail(fixed(Z), prepared)["classes"]
    } == {kind == "means"}
    with pytest.raises(ValueError, match="separates no two classes"):
        goal.prepare(key(0), jnp.broadcast_to(X[:1], X.shape), truth)


def test_points_of_two_classes_that_coincide_are_counted(mixed):
    X, truth = np.float32(mixed[0]), mixed[1]
    X[11] = X[10] = X[0]
    prepared = Separation(KERNEL, "points").prepare(key(0), X, truth)
    assert (
        prepared.coincident == 2
        and "2 pairs of points of different classes coincide" in prepared.words
    )
    apart = np.delete(np.arange(N), [10, 11])
    others = point_separation(gaussian(X[apart], X[apart]), truth[apart])
    # Points 10 and 11 are still near to the others of their class's rivals; only the coincidences go.
    assert 0 < prepared.separation[0, 1] <= 1.1 * others[0, 1]


def test_near_points_are_measured_by_differences(rng):
    """Two classes 1e-4 apart: products of float32 features know nothing of it, differences do."""
    X = np.float32(rng.normal(size=(N, DIM)))
    X[1::2] = X[::2] + np.float32(1e-4)
    goal = Separation(kernels.Linear(), "points")
    prepared = goal.prepare(key(0), X, np.arange(N) % 2)
    assert goal.error(key(1), lambda points: 4 * points, prepared) < 1e-5
    # Here the map itself rounds: eps |x| / 1e-4 of each difference.
    assert goal.error(key(1), lambda points: 3 * points, prepared) < 1e-2


def test_classes_that_are_too_small_are_said(mixed):
    X, truth = np.float32(mixed[0]), np.array(mixed[1])
    truth[0] = 7
    goal = Separation(KERNEL, classes=(0, 1, 2, 7, 9))
    prepared = goal.prepare(key(0), X, truth)
    assert (
        prepared.names == ("0", "1", "2")
        and prepared.single == ("7",)
        and prepared.missing == ("9",)
    )
    assert (
        "left out: 7" in prepared.words
        and "without a point among the 60: 9" in prepared.words
    )
    without = Separation(KERNEL).prepare(key(0), X[1:], truth[1:])
    np.testing.assert_allclose(prepared.separation, without.separation, rtol=1e-3)


def test_distances_are_known_where_they_are_more_than_rounding():
    means = _means.Means(
        np.array([[0.0, 1.0], [1.0 + 1e-9, 2.0]]), np.array([0.0, 3.0]), 1.0
    )
    np.testing.assert_array_equal(means.apart, [[0, 0], [1 + 1e-9, 2]])


def test_no_more_than_ten_names_are_told():
    names = tuple("abcdefghijkl")
    assert _separation._some(names[:10]) == "a, b, c, d, e, f, g, h, i, j"
    assert _separation._some(names) == "a, b, c, d, e, f, g, h, i, j and 2 more"


def test_separation_compiles_once_for_many_draws(mixed, rng):
    X, truth = np.float32(mixed[0]), mixed[1]
    programs = _means.features_means, _means.gram_spread, _nearest.features_points

    def sizes():
        return [program._cache_size() for program in programs]

    goals = [Separation(KERNEL, kind) for kind in KINDS]
    prepared = [goal.prepare(key(0), X, truth) for goal in goals]
    counted = []
    for number in range(4):
        phi = fixed(jnp.asarray(rng.normal(size=(N, 40 + number)), jnp.float32))
        for goal, one in zip(goals, prepared, strict=True):
            goal.error(key(number), phi, one)
        counted.append(sizes())
    assert counted == counted[:1] * 4


def test_separation_refuses_what_it_cannot_do(mixed):
    X, truth = np.float32(mixed[0]), mixed[1]
    goal = Separation(KERNEL)
    for labels, message in (
        (None, "--labels"),
        (truth[1:], r"must have shape \(60,\)"),
        (np.zeros(N), "two classes with at least two points"),
        (np.arange(N), "60 class"),
    ):
        with pytest.raises(ValueError, match=message):
            goal.prepare(key(0), X, labels)
    with pytest.raises(ValueError, match='"means" or "points"'):
        Separation(KERNEL, "clusters")
    with pytest.raises(ValueError, match="positive semidefinite"):
        Separation(kernels.Distance())
    with pytest.raises(ValueError, match="not finite"):
        goal.prepare(key(0), np.full_like(X, np.nan), truth)
