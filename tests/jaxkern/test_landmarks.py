"""Landmarks: uniform, k-means++, randomly pivoted Cholesky, ridge leverage scores, and a reservoir."""

import itertools
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from support.numerics import assert_law, tuples

from jaxkern import features, kernels, landmarks
from jaxkern.draws import _waits
from jaxkern.gram import gram
from jaxkern.landmarks import _choices, _pivoted

N, DIM = 40, 3
KERNEL = kernels.Gaussian(1.5)
CHOICES = {
    "kmeans_plus_plus": lambda key, X, n: landmarks.kmeans_plus_plus(
        key, X, num_landmarks=n
    ),
    "pivoted_cholesky": lambda key, X, n: landmarks.pivoted_cholesky(
        key, KERNEL, X, num_landmarks=n
    ),
    "leverage": lambda key, X, n: landmarks.leverage(key, KERNEL, X, num_landmarks=n),
}
ALL = CHOICES | {
    "uniform": lambda key, X, n: landmarks.uniform(key, X, num_landmarks=n)
}
scores_of = jax.jit(_choices._scores)


def points(rng, dtype=jnp.float32):
    return jnp.asarray(rng.normal(size=(N, DIM)), dtype)


@cache
def twelve(name):
    return jax.jit(
        jax.vmap(lambda seed, X: ALL[name](jax.random.key(seed), X, 12), (0, None))
    )


def test_exponential_numbers_near_zero_and_far_out_are_not_rounded():
    """Of 2^22, 2,048 are expected below 2^-11, all different but for 1.5 % of keys; multiples of 2^-23 would collide.

    Both counts are beyond five standard deviations with a probability of 1e-6.
    The largest is between 13 and 29 with odds of 1 - 1e-3.
    """
    count = 2**22
    uniform = jax.random.uniform(jax.random.key(0), (count,), jnp.float32)
    values = np.asarray(_waits(uniform, jax.random.key(1)))
    small = values[values < 2.0**-11]
    assert abs(len(small) - 2048) < 5 * 2048**0.5
    assert len(np.unique(small)) == len(small)
    assert abs(values.mean() - 1) < 5 / count**0.5
    assert 13 < values.max() < 29


@pytest.mark.slow
def test_the_first_of_millions_of_rows_is_drawn_by_weight():
    """Light rows have a tenth of the weight, so 6 of 60 draws begin with one; below 2 or above 14 with odds of 1.5 %.

    With the resolution of one float32 uniform number one draw in a hundred does, and below 2 has odds of 88 %.
    """
    light, heavy = 8_000_000, 1000
    weights = np.ones(light + heavy, np.float32)
    weights[light:] = 9 * light / heavy
    X = jnp.arange(light + heavy, dtype=jnp.float32)[:, None]
    draw = partial(landmarks.uniform, X=X, num_landmarks=1, weights=weights)
    firsts = [float(draw(jax.random.key(seed))[0, 0]) for seed in range(60)]
    assert 2 <= np.sum(np.array(firsts) < light) <= 14


@pytest.mark.parametrize("name", ALL)
def test_landmarks_are_different_rows_of_the_data_and_copies_come_last(
    name, dtype, rng
):
    """Other keys choose others. Of three distinct points among copies, the first three landmarks are those."""
    X, seeds = points(rng, dtype), np.arange(5)
    found = twelve(name)(seeds, X)
    assert found.shape == (5, 12, DIM) and found.dtype == dtype
    assert len({chosen.tobytes() for chosen in np.asarray(found)}) == 5
    for chosen in map(tuples, np.asarray(found)):
        assert set(chosen) <= set(tuples(X)) and len(set(chosen)) == 12
    if name != "uniform":
        for chosen in np.asarray(
            twelve(name)(seeds, 10 * np.asarray(X)[np.arange(N) % 3])
        ):
            assert np.isfinite(chosen).all()
            if name != "leverage":  # whose scores are drawn from at once
                assert sorted(tuples(chosen[:3])) == sorted(tuples(10 * X[:3]))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=[pytest.mark.slow] * (x != "pivoted_cholesky"))
        for x in ALL
    ],
)
def test_all_rows_are_landmarks_where_as_many_are_asked_for(name, dtype, rng):
    X = points(rng, dtype)
    assert sorted(
        tuples(jax.jit(lambda key: ALL[name](key, X, N))(jax.random.key(0)))
    ) == sorted(tuples(X))


def test_pivots_are_drawn_by_their_residuals(x64):
    """Two orthogonal atoms of squared norms 1 and 3, and a copy of the second: the exact law over ordered pairs."""
    V = jnp.asarray([[1.0, 0.0], [0.0, 3.0**0.5], [0.0, 3.0**0.5]])
    draw = jax.jit(
        jax.vmap(
            lambda key: _pivoted._pivots(key, kernels.Linear(), V, num_landmarks=2)[0]
        )
    )
    exact = {(0, 1): 1 / 7 / 2, (0, 2): 1 / 7 / 2, (1, 0): 3 / 7, (2, 0): 3 / 7}
    assert_law(tuples(draw(jax.random.split(jax.random.key(0), 4_000))), exact)


def test_scores_are_exact_with_every_pilot_and_bounds_with_few(x64, rng):
    X, diagonal = rng.normal(size=(N, DIM)), np.ones(N)
    K = np.asarray(gram(KERNEL, X))
    exact = np.diag(K @ np.linalg.inv(K + 0.7 * np.eye(N)))
    np.testing.assert_allclose(
        scores_of(KERNEL, X, X, diagonal, 0.7), exact, atol=1e3 * np.finfo(float).eps
    )
    few = np.asarray(scores_of(KERNEL, X, X[:10], diagonal, 0.7))
    assert (few >= exact - 1e-12).all() and few.sum() > 1.5 * exact.sum()
    assert np.sum(scores_of(KERNEL, X, X, diagonal, N / 12)) < 12  # by default, of 12


def test_a_lonely_point_has_the_largest_leverage(rng):
    """Its score is 1 / 6 and that of a crowd is far smaller; it is chosen far more often than one row in five."""
    X = np.float32(0.2 * rng.normal(size=(N, DIM)))
    X[5] = 50
    scores = np.asarray(scores_of(KERNEL, X, X, np.ones(N, np.float32), 5.0))
    assert (
        scores[5] == pytest.approx(1 / 6, rel=1e-4)
        and np.median(scores) < scores[5] / 4
    )
    choose = jax.jit(
        jax.vmap(
            lambda key: landmarks.leverage(
                key, KERNEL, X, num_landmarks=8, regularization=5.0, num_pilots=N
            )
        )
    )
    found = np.asarray(choose(jax.random.split(jax.random.key(2), 200)))
    times = int((found == 50).all(axis=2).any(axis=1).sum())
    assert stats.binom.sf(times - 1, 200, 8 / N) < 1e-9


def test_adaptive_landmarks_leave_less_than_uniform_ones(rng, x64):
    """A tight cluster and a few far points: uniform landmarks miss the far ones."""
    X = rng.normal(size=(N, DIM)) * np.where(np.arange(N) < 32, 0.01, 10)[:, None]

    def left(name):
        some = np.asarray(twelve(name)(np.arange(5), X))
        return np.mean(
            [features.nystrom(KERNEL, chosen, X=X).trace_residual for chosen in some]
        )

    assert max(left("kmeans_plus_plus"), left("pivoted_cholesky")) < 0.2 * left(
        "uniform"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        (
            "uniform",
            {"num_landmarks": N + 1},
            f"num_landmarks must be at most {N} .the number of points., got {N + 1}",
        ),
        ("uniform", {"num_landmarks": 0}, "num_landmarks must be at least 1"),
        (
            "uniform",
            {"num_landmarks": 2.0},
            "num_landmarks must be a static whole number",
        ),
        ("kmeans_plus_plus", {"num_landmarks": N + 1}, "num_landmarks"),
        ("kmeans_plus_plus", {"num_candidates": 0}, "num_candidates"),
        ("pivoted_cholesky", {"num_landmarks": N + 1}, "num_landmarks"),
        ("pivoted_cholesky", {"kernel": kernels.Distance()}, "positive semidefinite"),
        ("leverage", {"num_landmarks": 0}, "num_landmarks"),
        ("leverage", {"regularization": 0.0}, "regularization"),
        ("leverage", {"num_pilots": N + 1}, "num_pilots"),
        ("leverage", {"kernel": kernels.Distance()}, "positive semidefinite"),
    ],
)
def test_what_does_not_fit_is_named(name, arguments, named, rng):
    given = {"X": points(rng), "num_landmarks": 3} | (
        {"kernel": KERNEL} if name in ("pivoted_cholesky", "leverage") else {}
    )
    with pytest.raises(ValueError, match=named):
        getattr(landmarks, name)(jax.random.key(0), **given | arguments)


def until(key, X, tolerance, max_landmarks=20, kernel=KERNEL, weights=None):
    return landmarks.pivoted_cholesky(
        key,
        kernel,
        X,
        tolerance=tolerance,
        max_landmarks=max_landmarks,
        weights=weights,
    )


def test_a_tolerance_stops_at_the_first_trace_below_it(dtype, rng):
    """By least squares in float64, for the rows that a fixed number would take; of some weights, and some rows none."""
    X, weights = (
        np.asarray(points(rng, dtype)),
        rng.choice([0.0, 0.5, 1.0, 3.0], N).astype(dtype),
    )
    key, bad, eps = (
        jax.random.key(4),
        np.where(weights[:, None] == 0, np.nan, X),
        float(np.finfo(dtype).eps),
    )

    @jax.jit
    def projected(chosen, own):
        phi = features.nystrom(KERNEL, chosen, weights=own, X=bad, X_weights=weights)
        return phi.trace_residual, phi(X)

    fixed = jax.jit(
        lambda: landmarks.pivoted_cholesky(
            key, KERNEL, bad, num_landmarks=20, weights=weights
        )
    )()
    P, L, w = (np.asarray(each, float) for each in (X, fixed, weights))
    K, C = (
        np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / 4.5) for A, B in ((L, L), (P, L))
    )
    shadows = [C[:, :n] @ np.linalg.inv(K[:n, :n]) @ C[:, :n].T for n in range(1, 21)]
    share = [w @ (1 - np.diag(shadow)) / w.sum() for shadow in shadows]
    for tolerance in (0.6, 0.3, 0.1, 0.05):
        found, n = (
            until(key, bad, tolerance, weights=weights),
            int(np.argmax(np.array(share) <= tolerance)) + 1,
        )
        assert (
            int(found.num_landmarks) == n > 1 and found.reached and not found.exhausted
        )
        chosen = np.asarray(found.landmarks)
        assert np.array_equal(chosen[:n], L[:n]) and np.isnan(chosen[n:]).all()
        assert (
            found.weights.tolist() == [1] * n + [0] * (20 - n)
            and found.weights.dtype == dtype
        )
        assert float(found.trace_residual / found.trace) == pytest.approx(
            share[n - 1], rel=1e4 * eps
        )
        assert float(found.trace) == pytest.approx(w.sum())
        left, Z = map(np.asarray, projected(chosen, found.weights))
        assert float(left) == pytest.approx(float(found.trace_residual), rel=0.01)
        np.testing.assert_allclose(Z @ Z.T, shadows[n - 1], atol=1e3 * eps)
    few = until(key, bad, 0.0, weights=weights)
    assert (
        int(few.num_landmarks) == 20
        and not few.reached
        and not few.exhausted
        and np.isfinite(few.landmarks).all()
    )


def test_a_tolerance_stops_where_nothing_but_rounding_is_left(dtype, rng):
    X = np.array(points(rng, dtype))
    for tolerance, reached in (
        (1e-3, True),
        (np.finfo(dtype).eps, False),
        (0.0, False),
    ):
        found = until(jax.random.key(0), X, tolerance, kernel=kernels.Linear())
        assert (
            int(found.num_landmarks) == DIM
            and found.exhausted
            and bool(found.reached) == reached
        )
        assert float(found.trace_residual) <= 1e2 * np.finfo(dtype).eps * float(
            found.trace
        )
    found = until(jax.random.key(0), np.repeat(X[:4], 10, axis=0), 1e-3)
    assert int(found.num_landmarks) == 4 and sorted(
        tuples(found.landmarks)[:4]
    ) == sorted(tuples(X[:4]))
    assert int(until(jax.random.key(0), X, 1.0).num_landmarks) == 1
    nothing = until(jax.random.key(0), 0 * X, 0.1, kernel=kernels.Linear())
    assert int(nothing.num_landmarks) == 1 and nothing.reached and nothing.exhausted
    X[3] = np.nan
    broken = until(jax.random.key(0), X, 0.1)
    assert (
        np.isnan(broken.landmarks).all()
        and np.isnan(broken.trace_residual)
        and not broken.reached
    )


def test_one_program_serves_all_tolerances_and_a_batch(rng):
    X, key, ones = points(rng), jax.random.key(2), np.ones(N, np.float32)
    before = _pivoted._pivots_to._cache_size()
    singles = [until(key, X, tolerance, weights=ones) for tolerance in (0.5, 0.1, 0.02)]
    assert _pivoted._pivots_to._cache_size() <= before + 1
    assert len({int(single.num_landmarks) for single in singles}) == 3
    mapped = jax.jit(
        jax.vmap(lambda tolerance: until(key, X, tolerance, weights=ones))
    )(jnp.asarray([0.5, 0.1, 0.02]))
    for many, *each in zip(*map(jax.tree.leaves, (mapped, *singles)), strict=True):
        np.testing.assert_allclose(many, each, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "num_landmarks or tolerance must be given, got none"),
        (
            {"num_landmarks": 3, "tolerance": 0.1, "max_landmarks": 3},
            "num_landmarks or tolerance must be given, got both",
        ),
        ({"tolerance": 0.1}, "max_landmarks must be given with a tolerance"),
        (
            {"num_landmarks": 3, "max_landmarks": 3},
            "max_landmarks must be given with a tolerance",
        ),
        ({"tolerance": 0.1, "max_landmarks": N + 1}, "max_landmarks must be at most"),
        ({"tolerance": -0.1, "max_landmarks": 3}, "tolerance must lie in"),
        ({"tolerance": np.nan, "max_landmarks": 3}, "tolerance must lie in"),
        ({"tolerance": jnp.ones(2), "max_landmarks": 3}, "tolerance must be a scalar"),
    ],
)
def test_a_number_or_a_tolerance_is_asked_for(arguments, named, rng):
    with pytest.raises(ValueError, match=named):
        landmarks.pivoted_cholesky(jax.random.key(0), KERNEL, points(rng), **arguments)


def test_a_reservoir_does_not_depend_on_batches_and_keeps_a_short_stream_whole(
    dtype, rng
):
    X = np.asarray(points(rng, dtype))
    init, update, _ = landmarks.reservoir(num_landmarks=7)
    whole = update(init(jax.random.key(0), DIM, dtype), X)
    parts = update(update(init(jax.random.key(0), DIM, dtype), X[:0]), X[:4])
    held = np.asarray(parts.points)
    assert (
        sorted(tuples(held[:4])) == sorted(tuples(X[:4]))
        and not held[4:].any()
        and int(parts.seen) == 4
    )
    for piece in X[4:].reshape(9, 4, DIM):
        parts = update(parts, piece)
    for a, b in zip(
        jax.tree.leaves(whole)[:3], jax.tree.leaves(parts)[:3], strict=True
    ):
        assert np.array_equal(a, b)
    assert (
        int(whole.seen) == N
        and set(tuples(whole.points)) <= set(tuples(X))
        and len(set(tuples(whole.points))) == 7
    )


def test_every_pair_of_rows_is_equally_likely():
    """15 pairs out of 6 rows, half of them in a merged stream."""
    X = jnp.arange(6.0)[:, None]
    init, update, merge = landmarks.reservoir(num_landmarks=2)

    def draw(key):
        first, second = jax.random.split(key)
        return merge(
            update(init(first, 1), X[:2]),
            update(update(init(second, 1), X[2:3]), X[3:]),
        ).points[:, 0]

    found = np.sort(
        np.asarray(
            jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(3), 20_000))
        ),
        axis=1,
    )
    assert_law(
        tuples(found), dict.fromkeys(itertools.combinations(range(6), 2), 1 / 15)
    )


def test_a_reservoir_names_what_does_not_fit(rng):
    init, update, merge = landmarks.reservoir(num_landmarks=3)
    state = init(jax.random.key(0), DIM)
    with pytest.raises(ValueError, match="num_landmarks"):
        landmarks.reservoir(num_landmarks=0)
    with pytest.raises(ValueError, match="rows"):
        update(state, points(rng)[:, :2])
    with pytest.raises(ValueError, match="dtype"):
        init(jax.random.key(0), DIM, jnp.int32)
    with pytest.raises(ValueError, match="shape of a"):
        merge(state, init(jax.random.key(1), DIM + 1))


def test_every_ordered_pair_is_equally_likely():
    X = jnp.arange(6.0)[:, None]
    draw = jax.jit(
        jax.vmap(lambda key: landmarks.uniform(key, X, num_landmarks=2)[:, 0])
    )
    exact = dict.fromkeys(itertools.permutations(range(6), 2), 1 / 30)
    assert_law(tuples(draw(jax.random.split(jax.random.key(3), 30_000))), exact)


def test_the_dtype_of_the_data_changes_no_choice(rng, x64):
    X = rng.integers(0, 1000, size=(50, 3))
    single, double = (
        landmarks.uniform(jax.random.key(2), jnp.asarray(X, name), num_landmarks=20)
        for name in ("float32", "float64")
    )
    assert np.array_equal(single, double)


def test_ties_of_the_uniform_numbers_favour_no_index(monkeypatch):
    """All draws equal: any start is a rotation, so every index still appears equally often."""
    monkeypatch.setattr(
        jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype)
    )
    draw = jax.jit(jax.vmap(lambda key: _choices._uniform_indices(key, 7, 3)))
    indices = np.asarray(draw(jax.random.split(jax.random.key(0), 7000)))
    assert (np.sort(indices, axis=1)[:, 1:] != np.sort(indices, axis=1)[:, :-1]).all()
    shares = np.bincount(indices.ravel(), minlength=7) / 7000
    assert np.abs(shares - 3 / 7).max() <= 6 * np.sqrt(3 / 7 * 4 / 7 / 7000)
