"""Landmarks from storage: the laws of what is drawn, however rows are held and cut, in few passes and little memory."""

import collections
import itertools

import house
import jax
import numpy as np
import pytest
from house import KERNEL, close
from support.numerics import Read, assert_law, literal_gram, tuples

from jaxkern import landmarks, scale
from jaxkern.scale import _landmarks, _passes

ROWS = len(house.data().X)
COUNT = 4
DATA = house.data()
WEIGHTS = (DATA.weights > 0).astype(np.float32)
KERNELS = {
    "uniform": None,
    "kmeans||": None,
    "pivoted_cholesky": KERNEL,
    "leverage": KERNEL,
}
every_method = pytest.mark.parametrize("method", KERNELS)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Cut 24 rows into three chunks, of which a pass for pivots keeps four rows: as they are, they were one of 256."""
    monkeypatch.setattr(_passes, "_CHUNK_ROWS", (8, 8))
    monkeypatch.setattr(_landmarks, "_PER_PIVOT", 1)


def choose(X, method, seed=0, count=COUNT, **options):
    options |= {"num_landmarks": count, "method": method, "kernel": KERNELS[method]}
    return np.asarray(scale.landmarks(house.key(seed), X, **options))


@every_method
def test_landmarks_are_different_rows_however_these_are_held_and_cut(method):
    X = DATA.X
    chosen = choose(X, method)
    assert chosen.dtype == X.dtype
    assert set(tuples(chosen)) <= set(tuples(X))
    assert len(set(tuples(chosen))) == COUNT
    auto = (jax.sharding.AxisType.Auto,)
    devices = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=auto)
    close(chosen, choose(X, method, block_size=5))
    close(chosen, choose(jax.device_put(X), method, sharding=devices))
    blocks = choose([X], method)
    close(blocks, choose(lambda: iter([X[:5], X[5:7], X[7:]]), method))
    if method in ("pivoted_cholesky", "leverage"):
        # The others read single rows of an array first, which cost no pass.
        close(blocks, chosen)
    assert not np.array_equal(chosen, choose(X, method, seed=1))
    few = choose([X[:3], X[3:COUNT]], method)
    assert set(tuples(few)) == set(tuples(X[:COUNT]))


@pytest.mark.parametrize(
    ("method", "rows_read"),
    [("uniform", COUNT), ("kmeans||", 1 + 6 * ROWS), ("leverage", 2 * ROWS)],
)
def test_passes_are_few_and_reported(method, rows_read):
    X = Read(DATA.X)
    calls = []
    choose(X, method, report=lambda *args: calls.append(args))
    assert sum(X.counts) == rows_read
    assert calls == [(8, ROWS), (16, ROWS), (24, ROWS)] * (rows_read // ROWS)


@pytest.mark.parametrize(
    "hold", [lambda X: X, lambda X: [X[:2], X[2:]]], ids=["array", "blocks"]
)
def test_every_pair_of_rows_is_equally_likely(hold):
    """10 pairs, 200 draws of an array and of blocks."""
    X = house.data(shape=house.ODD).X
    pairs = []
    for seed in range(200):
        rows = choose(hold(X), "uniform", seed, count=2)
        pairs.append(frozenset(tuples(rows)))
    all_pairs = map(frozenset, itertools.combinations(tuples(X), 2))
    assert_law(pairs, dict.fromkeys(all_pairs, 1 / 10))


def test_every_crowd_has_candidates():
    """800 rows in four crowds: the five rounds take 640 candidates at most."""
    crowds = 100 * (np.arange(800) % 4)
    X = np.float32(crowds[:, None] + house.rng().normal(size=(800, 3)))
    for seed in range(5):
        chosen = choose(X, "kmeans||", seed)
        assert set(np.round(chosen[:, 0], -2)) == {0, 100, 200, 300}


FAR = 0.2 * DATA.X
FAR[-1] = 9
FAR_WEIGHTS = np.repeat([1 / 12, 1.0, 0.5], [11, 12, 1])
"""Points at small distances, which leave little of each other, and one far from all, of a weight of its own."""


def law_of_pivots():
    """Return the probabilities of the weights of the first two pivots."""
    # K(x, x) is 1.
    residual = 1 - literal_gram(FAR, FAR, house.LENGTHSCALE) ** 2
    first = FAR_WEIGHTS / FAR_WEIGHTS.sum()
    second = residual * FAR_WEIGHTS / (residual @ FAR_WEIGHTS)[:, None]
    law = collections.Counter()
    for i, j in np.ndindex(residual.shape):
        law[FAR_WEIGHTS[i], FAR_WEIGHTS[j]] += first[i] * second[i, j]
    return law


@pytest.mark.parametrize("per_pivot", [1, 6], ids=["few", "all"])
def test_pivots_follow_the_law_of_one_after_the_other(per_pivot, monkeypatch):
    """150 draws, where a pass keeps four of 24 points, and where it keeps all: some are refused and come again."""
    monkeypatch.setattr(_landmarks, "_PER_PIVOT", per_pivot)
    weights = dict(zip(tuples(FAR), FAR_WEIGHTS, strict=True))
    draws = []
    for seed in range(150):
        pivots = tuples(choose(FAR, "pivoted_cholesky", seed, weights=FAR_WEIGHTS))
        draws.append((weights[pivots[0]], weights[pivots[1]]))
    assert_law(draws, law_of_pivots())


def test_a_pivot_leaves_nothing_of_its_copies():
    """Two rows are rare and near: they are pivots of a later pass only if nothing is left of all the others."""
    X = np.repeat(DATA.X[:1], ROWS, axis=0)
    X[5, 0] += 0.3
    X[17, 1] += 0.3
    for seed in range(5):
        pivots = tuples(choose(X, "pivoted_cholesky", seed))
        assert set(pivots[:3]) == set(tuples(X))


def test_rows_are_drawn_by_leverage():
    """The first of four landmarks among eight points, of which all are pilots and some stand for copies; 250 draws."""
    X = np.zeros((8, 3), house.dtype())
    X[:, 0] = [0.0, 0.1, 0.2, 0.3, 3.0, 6.0, 9.0, 12.0]
    counts = np.float64([2, 2, 2, 60, 3, 3, 3, 3])
    K = literal_gram(X, X, house.LENGTHSCALE)
    # The ridge is the trace over the number of landmarks, for each of the copies of a point.
    ridge = np.diag(counts.sum() / COUNT / counts)
    scores = np.diag(K @ np.linalg.inv(K + ridge))
    firsts = []
    for seed in range(250):
        chosen = choose(X, "leverage", seed, weights=counts)
        firsts.append(chosen[0, 0])
    assert_law(firsts, dict(zip(X[:, 0], scores / scores.sum(), strict=True)))


@every_method
def test_rows_of_weight_zero_do_not_exist_and_others_count(method, monkeypatch):
    X = DATA.X.copy()
    X[WEIGHTS == 0] = np.nan
    masses = []
    in_memory = landmarks.kmeans_plus_plus

    def note(*args, **options):
        masses.append(options["weights"].sum())
        return in_memory(*args, **options)

    monkeypatch.setattr(landmarks, "kmeans_plus_plus", note)
    alone = choose([X[WEIGHTS > 0]], method)
    close(alone, choose(X, method, weights=WEIGHTS))
    # Sums of odds may not be the same for an eighth of the ridge, which is a mean over pilots.
    factor = 1 if method == "leverage" else 8
    close(alone, choose([X[:7], X[7:]], method, weights=factor * WEIGHTS))
    assert masses == ([21, 21, 168] if method == "kmeans||" else [])


@every_method
def test_copies_come_last(method):
    X = np.repeat(10 * np.eye(3, dtype=np.float32), 8, axis=0)
    chosen = tuples(choose(X, method))
    assert len(chosen) == COUNT
    assert set(chosen) <= set(tuples(X))
    if method in ("kmeans||", "pivoted_cholesky"):
        assert set(chosen[:3]) == set(tuples(X))


@every_method
def test_what_does_not_fit_is_named_when_it_is_read(method):
    X = DATA.X
    broken = X.copy()
    broken[17] = np.nan
    passes = iter([[X], [X[:20]]])
    refused = [
        ("row 17 is not$", broken, {"count": 21, "weights": WEIGHTS}),
        ("num_landmarks must be at most 24", [X], {"count": 25}),
        ("got 23 for more rows", [X], {"weights": WEIGHTS[:-1]}),
        ("columns and the dtype of the first", [X, X[:, :1]], {}),
    ]
    if method in ("kmeans||", "leverage"):
        message = "same rows in every pass, got 24 and then 20"
        refused.append((message, passes.__next__, {}))
    for message, points, options in refused:
        with pytest.raises(ValueError, match=message):
            choose(points, method, **options)


def test_memory_does_not_grow_with_the_file(tmp_path, monkeypatch):
    """Of 77 MB, which take no room on a disk, less than 50 MB are held at any time."""
    machine = pytest.importorskip("benchmarks._machine")
    if machine.anonymous_bytes() is None:
        pytest.skip("the system does not tell how much memory is used")
    monkeypatch.undo()  # chunks as they are
    shape = (300_000, 64)
    X = np.lib.format.open_memmap(tmp_path / "points.npy", "w+", np.float32, shape)
    for size in (10_000, 300_000):  # the first one compiles
        with machine.peak_memory() as peak:
            choose(X[:size], "leverage", count=12)
    assert peak.added < 5e7
