"""Landmarks: uniform, k-means++, randomly pivoted Cholesky, ridge leverage scores, and a reservoir."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxkern import features, kernels, landmarks
from jaxkern.gram import gram
from jaxkern.landmarks import _choices, _pivoted

N, DIM = 40, 3
KERNEL = kernels.Gaussian(1.5)
CHOICES = {
    "kmeans_plus_plus": lambda key, X, n: landmarks.kmeans_plus_plus(key, X, num_landmarks=n),
    "pivoted_cholesky": lambda key, X, n: landmarks.pivoted_cholesky(key, KERNEL, X, num_landmarks=n),
    "leverage": lambda key, X, n: landmarks.leverage(key, KERNEL, X, num_landmarks=n),
}
ALL = CHOICES | {"uniform": lambda key, X, n: landmarks.uniform(key, X, num_landmarks=n)}


def points(rng, dtype=jnp.float32):
    return jnp.asarray(rng.normal(size=(N, DIM)), dtype)


def rows(X):
    return [tuple(row) for row in np.asarray(X).tolist()]


def is_law(found, exact):
    """Assert that outcomes come as often as they should, within 6 standard errors: false alarms below 1e-7."""
    for outcome, p in exact.items():
        share = np.mean((np.asarray(found) == outcome).all(axis=1))
        assert abs(share - p) <= 6 * np.sqrt(p * (1 - p) / len(found))


@pytest.mark.parametrize("choose", ALL.values(), ids=ALL)
def test_landmarks_are_different_rows_of_the_data(choose, dtype, rng):
    X = points(rng, dtype)
    chosen = choose(jax.random.key(0), X, 12)
    assert chosen.shape == (12, DIM) and chosen.dtype == dtype
    assert set(rows(chosen)) <= set(rows(X)) and len(set(rows(chosen))) == 12
    assert sorted(rows(choose(jax.random.key(0), X, N))) == sorted(rows(X))


@pytest.mark.parametrize("choose", ALL.values(), ids=ALL)
def test_other_keys_choose_other_rows_and_vmap_agrees_with_single_calls(choose, rng):
    X = points(rng)
    keys = jax.random.split(jax.random.key(1), 3)
    singles = [choose(jax.random.fold_in(jax.random.key(1), i), X, 12) for i in range(2)]
    assert not np.array_equal(*singles)
    mapped = jax.jit(jax.vmap(lambda key: choose(key, X, 12)))(keys)
    assert len({np.asarray(m).tobytes() for m in mapped}) == 3 and all(set(rows(m)) <= set(rows(X)) for m in mapped)


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
def test_copies_come_last(choose):
    """Three distinct points among copies: the first three landmarks are those, and asking for more still works."""
    X = jnp.repeat(jnp.asarray([[0.0], [10.0], [20.0]]), 5, axis=0)
    for seed in range(5):
        chosen = choose(jax.random.key(seed), X, 3)
        if choose is not CHOICES["leverage"]:  # whose scores are drawn from at once
            assert sorted(rows(chosen)) == [(0.0,), (10.0,), (20.0,)]
        assert np.isfinite(choose(jax.random.key(seed), X, 9)).all()


def test_pivots_are_drawn_by_their_residuals(x64):
    """Two orthogonal atoms of squared norms 1 and 3, and a copy of the second: the exact law over ordered pairs."""
    V = jnp.asarray([[1.0, 0.0], [0.0, 3.0**0.5], [0.0, 3.0**0.5]])
    draw = jax.jit(jax.vmap(lambda key: _pivoted._pivots(key, kernels.Linear(), V, num_landmarks=2)[0]))
    exact = {(0, 1): 1 / 7 / 2, (0, 2): 1 / 7 / 2, (1, 0): 3 / 7, (2, 0): 3 / 7}
    is_law(
        draw(jax.random.split(jax.random.key(0), 20_000)),
        dict.fromkeys(itertools.permutations(range(3), 2), 0.0) | exact,
    )


def test_scores_are_exact_with_every_pilot_and_bounds_with_few(x64, rng):
    X, ridge = points(rng, jnp.float64), 0.7
    K = np.asarray(gram(KERNEL, X))
    exact = np.diag(K @ np.linalg.inv(K + ridge * np.eye(N)))
    diagonal = jnp.ones(N)
    found = _choices._scores(KERNEL, X, X, diagonal, jnp.asarray(ridge))
    np.testing.assert_allclose(found, exact, atol=1e3 * np.finfo(float).eps)
    few = np.asarray(_choices._scores(KERNEL, X, X[:10], diagonal, jnp.asarray(ridge)))
    assert (few >= exact - 1e-12).all() and few.sum() > 1.5 * exact.sum()
    assert float(jnp.sum(_choices._scores(KERNEL, X, X, diagonal, jnp.asarray(N / 12)))) < 12  # by default, of 12


def test_a_lonely_point_has_the_largest_leverage(rng):
    """Its score is 1 / 6 and that of a crowd is far smaller; it is chosen far more often than one row in five."""
    X = (0.2 * points(rng)).at[5].set(50.0)
    scores = np.asarray(_choices._scores(KERNEL, X, X, jnp.ones(N), jnp.asarray(5.0)))
    assert scores[5] == pytest.approx(1 / 6, rel=1e-4) and np.median(scores) < scores[5] / 4
    choose = jax.jit(
        jax.vmap(lambda key: landmarks.leverage(key, KERNEL, X, num_landmarks=8, regularization=5.0, num_pilots=N))
    )
    found = choose(jax.random.split(jax.random.key(2), 200))
    share = np.mean([(50.0,) * DIM in rows(chosen) for chosen in found])
    assert stats.binom.sf(round(share * 200) - 1, 200, 8 / N) < 1e-9


def test_adaptive_landmarks_leave_less_than_uniform_ones(rng):
    """A tight cluster and a few far points: uniform landmarks miss the far ones."""
    X = jnp.concatenate([0.01 * points(rng), 10 * points(rng)[:8]])

    def left(choose, seed):
        chosen = choose(jax.random.key(seed), X, 10)
        return float(features.nystrom(KERNEL, chosen, X=X).trace_residual)

    def uniform(key, X, n):
        return landmarks.uniform(key, X, num_landmarks=n)

    plain = np.mean([left(uniform, seed) for seed in range(5)])
    for name in ("kmeans_plus_plus", "pivoted_cholesky"):
        assert np.mean([left(CHOICES[name], seed) for seed in range(5)]) < 0.2 * plain


@pytest.mark.parametrize(
    ("name", "arguments", "named"),
    [
        ("uniform", {"num_landmarks": N + 1}, f"num_landmarks must be at most {N} .the number of points., got {N + 1}"),
        ("uniform", {"num_landmarks": 0}, "num_landmarks must be at least 1"),
        ("uniform", {"num_landmarks": 2.0}, "num_landmarks must be a static whole number"),
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


def until(key, X, tolerance, max_landmarks=30, kernel=KERNEL, weights=None):
    return landmarks.pivoted_cholesky(key, kernel, X, tolerance=tolerance, max_landmarks=max_landmarks, weights=weights)


def test_a_tolerance_stops_at_the_first_trace_below_it(dtype, rng):
    """By least squares in float64, for the rows that a fixed number would take; of some weights, and some rows none."""
    X, weights = points(rng, dtype), rng.choice([0.0, 0.5, 1.0, 3.0], N)
    key, bad = jax.random.key(4), X.at[weights == 0].set(jnp.nan)
    weights, eps = jnp.asarray(weights, dtype), float(np.finfo(dtype).eps)
    fixed = landmarks.pivoted_cholesky(key, KERNEL, bad, num_landmarks=20, weights=weights)
    P, L, w = (np.asarray(each, float) for each in (X, fixed, weights))
    K, C = (np.exp(-((A[:, None] - B) ** 2).sum(axis=2) / 4.5) for A, B in ((L, L), (P, L)))
    share = [
        w @ (1 - np.einsum("ij,ij->i", C[:, :n] @ np.linalg.inv(K[:n, :n]), C[:, :n])) / w.sum() for n in range(1, 21)
    ]
    for tolerance in (0.6, 0.3, 0.1, 0.05):
        found, n = until(key, bad, tolerance, 20, weights=weights), int(np.argmax(np.array(share) <= tolerance)) + 1
        assert int(found.num_landmarks) == n > 1 and found.reached and not found.exhausted
        assert np.array_equal(found.landmarks[:n], fixed[:n]) and np.isnan(found.landmarks[n:]).all()
        assert found.weights.tolist() == [1] * n + [0] * (20 - n) and found.weights.dtype == dtype
        assert float(found.trace_residual / found.trace) == pytest.approx(share[n - 1], rel=1e4 * eps)
        assert float(found.trace) == pytest.approx(w.sum())
        whole, cut = (
            features.nystrom(KERNEL, rows, weights=own, X=bad, X_weights=weights)
            for rows, own in ((found.landmarks, found.weights), (fixed[:n], None))
        )
        assert float(whole.trace_residual) == pytest.approx(float(found.trace_residual), rel=0.01)
        np.testing.assert_allclose(
            *(gram(lambda x, y, phi=phi: phi(x) @ phi(y), X) for phi in (whole, cut)), atol=1e3 * eps
        )
    few = until(key, X, 0.05, 3)
    assert int(few.num_landmarks) == 3 and not few.reached and not few.exhausted and np.isfinite(few.landmarks).all()


def test_a_tolerance_stops_where_nothing_but_rounding_is_left(dtype, rng):
    X = points(rng, dtype)
    for tolerance, reached in ((1e-3, True), (np.finfo(dtype).eps, False), (0.0, False)):
        found = until(jax.random.key(0), X, tolerance, kernel=kernels.Linear())
        assert int(found.num_landmarks) == DIM and found.exhausted and bool(found.reached) == reached
        assert float(found.trace_residual) <= 1e2 * np.finfo(dtype).eps * float(found.trace)
    copies = jnp.repeat(X[:4], 10, axis=0)
    found = until(jax.random.key(0), copies, 1e-3)
    assert int(found.num_landmarks) == 4 and sorted(rows(found.landmarks[:4])) == sorted(rows(X[:4]))
    assert int(until(jax.random.key(0), X, 1.0).num_landmarks) == 1
    nothing = until(jax.random.key(0), 0 * X, 0.1, kernel=kernels.Linear())
    assert int(nothing.num_landmarks) == 1 and nothing.reached and nothing.exhausted
    broken = until(jax.random.key(0), X.at[3].set(jnp.nan), 0.1)
    assert np.isnan(broken.landmarks).all() and np.isnan(broken.trace_residual) and not broken.reached


def test_one_program_serves_all_tolerances_and_a_batch(rng):
    X, key = points(rng), jax.random.key(2)
    before = _pivoted._pivots_to._cache_size()
    singles = [until(key, X, tolerance, 25) for tolerance in (0.5, 0.1, 0.02)]
    assert _pivoted._pivots_to._cache_size() == before + 1
    assert len({int(single.num_landmarks) for single in singles}) == 3
    mapped = jax.jit(jax.vmap(lambda tolerance: until(key, X, tolerance, 25)))(jnp.asarray([0.5, 0.1, 0.02]))
    for i, single in enumerate(singles):
        for a, b in zip(jax.tree.leaves(mapped), jax.tree.leaves(single), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-4)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "num_landmarks or tolerance must be given, got none"),
        (
            {"num_landmarks": 3, "tolerance": 0.1, "max_landmarks": 3},
            "num_landmarks or tolerance must be given, got both",
        ),
        ({"tolerance": 0.1}, "max_landmarks must be given with a tolerance"),
        ({"num_landmarks": 3, "max_landmarks": 3}, "max_landmarks must be given with a tolerance"),
        ({"tolerance": 0.1, "max_landmarks": N + 1}, "max_landmarks must be at most"),
        ({"tolerance": -0.1, "max_landmarks": 3}, "tolerance must lie in"),
        ({"tolerance": np.nan, "max_landmarks": 3}, "tolerance must lie in"),
        ({"tolerance": jnp.ones(2), "max_landmarks": 3}, "tolerance must be a scalar"),
    ],
)
def test_a_number_or_a_tolerance_is_asked_for(arguments, named, rng):
    with pytest.raises(ValueError, match=named):
        landmarks.pivoted_cholesky(jax.random.key(0), KERNEL, points(rng), **arguments)


def test_a_reservoir_does_not_depend_on_batches(dtype, rng):
    X = points(rng, dtype)
    init, update, _ = landmarks.reservoir(num_landmarks=7)
    whole = update(init(jax.random.key(0), DIM, dtype), X)
    parts = init(jax.random.key(0), DIM, dtype)
    for piece in (X[:1], X[1:1], X[1:20], X[20:]):
        parts = update(parts, piece)
    for a, b in zip(jax.tree.leaves(whole)[:3], jax.tree.leaves(parts)[:3], strict=True):
        assert np.array_equal(a, b)
    assert int(whole.seen) == N and set(rows(whole.points)) <= set(rows(X)) and len(set(rows(whole.points))) == 7


def test_a_short_stream_is_kept_whole(rng):
    X = points(rng)[:4]
    init, update, _ = landmarks.reservoir(num_landmarks=7)
    state = update(init(jax.random.key(0), DIM), X)
    assert sorted(rows(state.points[:4])) == sorted(rows(X)) and not state.points[4:].any() and int(state.seen) == 4


def test_every_pair_of_rows_is_equally_likely():
    """15 pairs out of 6 rows, half of them in a merged stream."""
    X = jnp.arange(6.0)[:, None]
    init, update, merge = landmarks.reservoir(num_landmarks=2)

    def draw(key):
        first, second = jax.random.split(key)
        return merge(update(init(first, 1), X[:2]), update(update(init(second, 1), X[2:3]), X[3:])).points[:, 0]

    found = np.sort(np.asarray(jax.jit(jax.vmap(draw))(jax.random.split(jax.random.key(3), 20_000))), axis=1)
    is_law(found, dict.fromkeys(itertools.combinations(range(6), 2), 1 / 15))


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
    draw = jax.jit(jax.vmap(lambda key: landmarks.uniform(key, X, num_landmarks=2)[:, 0]))
    exact = dict.fromkeys(itertools.permutations(range(6), 2), 1 / 30)
    is_law(draw(jax.random.split(jax.random.key(3), 30_000)), exact | {(i, i): 0.0 for i in range(6)})


def test_the_dtype_of_the_data_changes_no_choice(rng, x64):
    X = rng.integers(0, 1000, size=(50, 3))
    single, double = (
        landmarks.uniform(jax.random.key(2), jnp.asarray(X, name), num_landmarks=20) for name in ("float32", "float64")
    )
    assert np.array_equal(single, double)


def test_ties_of_the_uniform_numbers_favour_no_index(monkeypatch):
    """All draws equal: any start is a rotation, so every index still appears equally often."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype))
    draw = jax.vmap(lambda key: _choices._uniform_indices(key, 7, 3))
    indices = np.asarray(draw(jax.random.split(jax.random.key(0), 7000)))
    assert (np.sort(indices, axis=1)[:, 1:] != np.sort(indices, axis=1)[:, :-1]).all()
    shares = np.bincount(indices.ravel(), minlength=7) / 7000
    assert np.abs(shares - 3 / 7).max() <= 6 * np.sqrt(3 / 7 * 4 / 7 / 7000)


def test_a_gradient_reaches_the_rows_that_were_chosen(rng):
    X = jnp.asarray(rng.normal(size=(50, 3)), jnp.float32)
    gradient = jax.grad(lambda X: landmarks.uniform(jax.random.key(0), X, num_landmarks=20).sum())(X)
    assert sorted(np.asarray(gradient)[:, 0].tolist()) == [0.0] * 30 + [1.0] * 20
