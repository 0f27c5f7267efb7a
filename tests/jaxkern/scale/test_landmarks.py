"""Landmarks from storage: the laws of what is drawn, however rows are held and cut, in few passes and little memory."""

import itertools
from collections import Counter

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import Read, assert_law, literal_gram, tuples

from jaxkern import features, kernels, landmarks, scale
from jaxkern.scale import _landmarks, _passes

KERNEL = kernels.Gaussian(1.5)
KERNELS = {
    "uniform": None,
    "kmeans||": None,
    "pivoted_cholesky": KERNEL,
    "leverage": KERNEL,
}
each = pytest.mark.parametrize("method", KERNELS)


def choose(X, n, method, seed=0, **options):
    key = jax.random.key(seed)
    return np.asarray(
        scale.landmarks(
            key, X, num_landmarks=n, method=method, kernel=KERNELS[method], **options
        )
    )


def crowds(rng, count=20, each=100, dim=3):
    return (
        20 * rng.normal(size=(count, 1, dim))
        + 0.1 * rng.normal(size=(count, each, dim))
    ).reshape(-1, dim)


@each
def test_landmarks_are_different_rows_however_these_are_held_and_cut(
    method, rng, dtype, monkeypatch
):
    monkeypatch.setattr(_passes, "_CHUNK_ROWS", (64, 128))
    X = crowds(rng, 10, 50).astype(dtype)
    whole = choose(X, 12, method)
    assert (
        whole.dtype == X.dtype
        and set(tuples(whole)) <= set(tuples(X))
        and len(set(tuples(whole))) == 12
    )
    devices = jax.make_mesh(
        (jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,)
    )
    for other in (
        choose(X, 12, method, block_size=7),
        choose(jnp.asarray(X), 12, method, sharding=devices),
    ):
        assert np.array_equal(whole, other)
    blocks = [
        choose(lambda size=size: iter(np.split(X, range(size, 500, size))), 12, method)
        for size in (500, 7)
    ]
    assert np.array_equal(*blocks) and (
        method in ("uniform", "kmeans||") or np.array_equal(blocks[0], whole)
    )
    assert not np.array_equal(whole, choose(X, 12, method, seed=1))
    for few in (X[:12], [X[:5], X[5:12]]):
        assert sorted(tuples(choose(few, 12, method))) == sorted(tuples(X[:12]))


@pytest.mark.parametrize(
    ("method", "passes"), [("uniform", 0.8), ("kmeans||", 6.5), ("leverage", 2)]
)
def test_passes_are_few_and_reported(method, passes, rng):
    X, told = Read(crowds(rng).astype(np.float32)), []
    choose(X, 12, method, block_size=100, report=lambda *args: told.append(args))
    assert (
        sum(X.counts) <= passes * len(X.X)
        and set(told) <= {(2000, 2000)}
        and bool(told) == (method != "uniform")
    )


@pytest.mark.parametrize(
    "hold", [lambda X: X, lambda X: [X[:5], X[5:]]], ids=["array", "blocks"]
)
def test_every_pair_of_rows_is_equally_likely(hold):
    """36 pairs, 300 draws of an array and of blocks."""
    X = np.arange(9.0, dtype=np.float32)[:, None]
    pairs = (
        tuple(sorted(choose(hold(X), 2, "uniform", seed)[:, 0])) for seed in range(300)
    )
    assert_law(pairs, dict.fromkeys(itertools.combinations(range(9), 2), 1 / 36))


def test_every_crowd_has_candidates(rng):
    X = crowds(rng).astype(np.float32)
    for seed in range(3):
        chosen, known = (
            choose(X, 20, "kmeans||", seed),
            landmarks.kmeans_plus_plus(
                jax.random.key(seed), X, num_landmarks=20, num_candidates=None
            ),
        )
        costs = [
            ((X[:, None] - np.asarray(Z)[None]) ** 2).sum(-1).min(1).sum()
            for Z in (chosen, known)
        ]
        assert (
            costs[0] < 2 * costs[1] and costs[0] < 1e-3 * ((X - X.mean(0)) ** 2).sum()
        )


CROWD, WEIGHTS = np.diag([0.35] * 9 + [9.0]), np.array([1 / 12] * 5 + [1.0] * 4 + [0.5])
"""Nine points at equal small distances, and one far from all."""


def is_law_of_pivots(draw, count):
    """Assert that two pivots are of each weight, or the far point, as often as they should be."""
    K, exact, w = literal_gram(CROWD, CROWD, 1.5), Counter(), WEIGHTS.tolist()
    left = np.diag(K) - K**2 / np.diag(K)[:, None]
    for i, j in itertools.permutations(range(10), 2):
        exact[w[i], w[j]] += (
            w[i]
            * K[i, i]
            / (WEIGHTS @ np.diag(K))
            * w[j]
            * left[i, j]
            / (left[i] @ WEIGHTS)
        )
    assert_law(((w[i], w[j]) for i, j in map(draw, range(count))), exact)


def test_pivots_of_several_passes_follow_the_law_of_one_after_the_other(
    monkeypatch, x64
):
    """150 draws, where a pass keeps two of the ten points."""
    monkeypatch.setattr(_landmarks, "_PER_PIVOT", 1)

    def draw(seed):
        return map(
            tuples(CROWD).index,
            tuples(choose(CROWD, 2, "pivoted_cholesky", seed, weights=WEIGHTS)),
        )

    is_law_of_pivots(draw, 150)


def test_rows_that_are_refused_may_come_again(rng, x64):
    """500 draws, where all points are kept."""

    def draw(number):
        order = np.argsort(rng.exponential(size=10) / WEIGHTS)
        kept = None, order, WEIGHTS[order], WEIGHTS[order], CROWD[order]
        key = jax.random.fold_in(jax.random.key(0), number)
        return order[
            _landmarks._accepted(
                key, KERNEL, kept, WEIGHTS.sum(), 20, CROWD[:0], np.eye(2), 1e-14, False
            )
        ].tolist()

    is_law_of_pivots(draw, 500)


def test_pivots_in_few_passes_leave_what_those_of_memory_leave(rng, monkeypatch):
    monkeypatch.setattr(_landmarks, "_PER_PIVOT", 2)
    X = Read(rng.normal(size=(2000, 3)).astype(np.float32) * np.float32([3, 1, 0.3]))
    ours, theirs = [], []
    for seed in range(3):
        X.counts.clear()
        ours.append(choose(X, 40, "pivoted_cholesky", seed))
        assert 2 <= sum(X.counts) / 2000 <= 10
        theirs.append(
            landmarks.pivoted_cholesky(
                jax.random.key(seed), KERNEL, X.X, num_landmarks=40
            )
        )
    ours, theirs = (
        [float(features.nystrom(KERNEL, Z, X=X.X).trace_residual) for Z in each]
        for each in (ours, theirs)
    )
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.2)


def test_what_is_left_is_the_residual_of_what_was_chosen(rng, x64):
    X = rng.normal(size=(50, 3))
    K = literal_gram(X, X, 1.5)
    given = _landmarks._padded(X[:9], np.linalg.cholesky(K[:9, :9]))
    left = jax.jit(_landmarks._left)(X, KERNEL, *given, 1e-12)
    exact = np.diag(K - K[:, :9] @ np.linalg.solve(K[:9, :9], K[:9]))
    np.testing.assert_allclose(left, exact, atol=1e-11)
    assert (np.asarray(left)[:9] == 0).all()


def test_rows_are_drawn_by_leverage(x64):
    """The first of five landmarks among six points, of which all are pilots and some stand for copies; 250 draws."""
    X, counts = (
        np.array([[0.0], [0.1], [0.2], [0.3], [3.0], [9.0]]),
        np.array([1, 1, 1, 20, 3, 3]),
    )
    each = np.repeat(np.arange(6), counts)
    K = literal_gram(X[each], X[each], 1.5)
    scores = np.bincount(
        each, np.diag(K @ np.linalg.inv(K + np.trace(K) / 5 * np.eye(29)))
    )
    drawn = (
        tuples(X).index(
            tuples(choose(X, 5, "leverage", seed, weights=counts.astype(float)))[0]
        )
        for seed in range(250)
    )
    assert_law(drawn, dict(enumerate(scores / scores.sum())))


@each
def test_rows_of_weight_zero_do_not_exist_and_others_count(method, rng, monkeypatch):
    monkeypatch.setattr(_passes, "_CHUNK_ROWS", (64, 128))
    X, weights, told = (
        crowds(rng, 10, 50).astype(np.float32),
        np.ones(500, np.float32),
        [],
    )
    weights[rng.permutation(500)[:200]] = 0
    alone, known = [X[weights > 0]], landmarks.kmeans_plus_plus
    X[weights == 0] = np.nan
    masses = lambda *args, **options: (  # noqa: E731
        told.append(options["weights"].sum()),
        known(*args, **options),
    )[1]
    monkeypatch.setattr(landmarks, "kmeans_plus_plus", masses)
    for given, factor in (
        (X, 1),
        ([X[:77], X[77:]], 1),
        (X, 1 if method == "leverage" else 8),
    ):
        found = choose(given, 12, method, weights=factor * weights)
        assert np.array_equal(found, choose(alone, 12, method))
    assert told == ([300, 300, 300, 300, 2400, 300] if method == "kmeans||" else [])


@each
def test_copies_come_last(method, monkeypatch):
    monkeypatch.setattr(_passes, "_CHUNK_ROWS", (64, 128))
    X = np.repeat(10 * np.eye(3, dtype=np.float32), [167, 167, 166], axis=0)
    for seed in range(3):
        found = choose(X, 12, method, seed)
        assert len(found) == 12 and set(tuples(found)) <= set(tuples(X))
        if method in ("kmeans||", "pivoted_cholesky"):
            assert set(tuples(found[:3])) == set(tuples(X))


@each
def test_what_does_not_fit_is_named(method, rng):
    X = rng.normal(size=(60, 2)).astype(np.float32)
    broken, changing = X.copy(), iter([[X], [X[:50]]])
    broken[41] = np.nan
    cases = {
        "row 41 is not": lambda: choose(broken, 60, method),
        "num_landmarks must be at most 60": lambda: choose([X], 61, method),
        "number of points": lambda: choose(X, 61, method),
        "floating|float32": lambda: choose(X.astype(int), 3, method),
        "block_size": lambda: choose(X, 3, method, block_size=0),
        "that of row 7 is not": lambda: choose(
            X, 3, method, weights=np.where(np.arange(60) == 7, -1.0, 1)
        ),
        r"weights must have shape \(60,\), got": lambda: choose(
            X, 3, method, weights=np.ones(61)
        ),
        "got 59 for more rows": lambda: choose([X], 3, method, weights=np.ones(59)),
        "row 41 is not$": lambda: choose(
            broken, 50, method, weights=(np.arange(60) > 9) * 1.0
        ),
        "a function that returns an iterator": lambda: choose(iter([X]), 3, method),
        "columns and the dtype of the first": lambda: choose([X, X[:, :1]], 3, method),
        "Mesh or NamedSharding": lambda: choose(X, 3, method, sharding=3),
        "report must be a function": lambda: choose(X, 3, method, report=3),
        "method must be one of": lambda: scale.landmarks(
            jax.random.key(0), X, num_landmarks=3, method="random"
        ),
    }
    if method in ("kmeans||", "leverage"):
        cases["same rows in every pass, got 60 and then 50"] = lambda: choose(
            lambda: next(changing), 3, method
        )
    if KERNELS[method] is not None:
        cases["kernel must be given"] = lambda: scale.landmarks(
            jax.random.key(0), X, num_landmarks=3, method=method
        )
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()


def test_memory_does_not_grow_with_the_file(tmp_path):
    """Of 77 MB, which take no room on a disk, less than 50 MB are held at any time."""
    _machine = pytest.importorskip("benchmarks._machine")
    if _machine.anonymous_bytes() is None:
        pytest.skip("the system does not tell how much memory is used")
    X = np.lib.format.open_memmap(
        tmp_path / "points.npy", "w+", np.float32, (300_000, 64)
    )
    for size in (10_000, 300_000):  # the first one compiles
        with _machine.peak_memory() as peak:
            choose(X[:size], 12, "leverage")
    assert peak.added < 5e7
