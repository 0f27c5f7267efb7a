"""Landmarks: exact laws of what is drawn, rows that are chosen, tolerances of pivoted Cholesky, and reservoirs."""

from collections import Counter
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_array_equal
from support.numerics import assert_law, literal_gram, tuples

from jaxkern import landmarks
from jaxkern.draws import _waits
from jaxkern.kernels import Linear

N, M, DIM = house.USUAL
pivoted = jax.jit(
    landmarks.pivoted_cholesky, static_argnames=("num_landmarks", "max_landmarks")
)
CHOICES = {
    "uniform": landmarks.uniform,
    "kmeans_plus_plus": landmarks.kmeans_plus_plus,
    "pivoted_cholesky": partial(pivoted, kernel=house.KERNEL),
    "leverage": partial(landmarks.leverage, kernel=house.KERNEL),
}


def successive(odds):
    """Return the law (n, n) of two draws, one after the other without replacement."""
    shares = odds / odds.sum()
    rest = 1 - shares[:, None]
    law = shares[:, None] * shares[None, :] / rest
    np.fill_diagonal(law, 0)
    return law


def uniform(X, weights):
    return landmarks.uniform, successive(np.ones(5))


def by_weight(X, weights):
    return partial(landmarks.uniform, weights=weights), successive(weights)


def reservoir(X, weights):
    """Two streams, the second in two batches, of which one has weights."""
    light = np.array([2, 0.5], X.dtype)

    def merged(key, X, *, num_landmarks):
        init, update, merge = landmarks.reservoir(num_landmarks=num_landmarks)
        first = update(init(key, 1, X.dtype), X[:2])
        second = init(jax.random.fold_in(key, 1), 1, X.dtype)
        second = update(second, X[2:3])
        second = update(second, X[3:], light.astype(X.dtype))
        return merge(first, second).points

    return merged, successive(np.append(np.ones(3), light))


def seeds(X, weights):
    squares = (X - X.T) ** 2
    law = squares / squares.sum(axis=1, keepdims=True) / 5
    return landmarks.kmeans_plus_plus, law


def greedy_seeds(X, weights):
    """The second is the better one of two candidates, by the sum of distances that it leaves."""
    squares = (X - X.T) ** 2
    odds = weights * squares
    odds = odds / odds.sum(axis=1, keepdims=True)
    after = np.minimum(squares[:, None], squares[None]) @ weights
    gaps = after[:, None, :] - after[:, :, None]
    wins = np.where(np.abs(gaps) < 1e-9, 1, 2 * (gaps > 0))
    law = weights[:, None] * odds * np.einsum("ib,iab->ia", odds, wins)
    choose = partial(landmarks.kmeans_plus_plus, num_candidates=2, weights=weights)
    return choose, law / weights.sum()


def pivots(X, weights):
    """The diagonal of the kernel is not constant."""
    K = literal_gram(X, X) + X @ X.T
    diagonal = np.diag(K)
    residual = diagonal - K**2 / diagonal[:, None]
    odds = weights * np.where(residual > 1e-6, residual, 0)
    shares = weights * diagonal / (weights @ diagonal)
    kernel = house.KERNEL + Linear()
    choose = partial(landmarks.pivoted_cholesky, kernel=kernel, weights=weights)
    return choose, shares[:, None] * odds / odds.sum(axis=1, keepdims=True)


def leverage(X, weights):
    """All rows are pilots: scores are exact, and those of copies add up."""
    roots = np.sqrt(weights)
    A = roots[:, None] * literal_gram(X, X) * roots
    scores = np.diag(A @ np.linalg.inv(A + 0.1 * np.eye(5)))
    options = {"num_pilots": 5, "regularization": 0.1, "weights": weights}
    choose = partial(landmarks.leverage, kernel=house.KERNEL, **options)
    return choose, successive(scores)


def leverage_by_one_pilot(X, weights):
    """By default the ridge is the trace over the number of landmarks, which are all rows."""
    choose = partial(landmarks.leverage, kernel=house.KERNEL, num_pilots=1)
    K = literal_gram(X, X)
    # The pilot alone explains K^2 / (1 + ridge).
    return choose, np.mean([successive(1 - row**2 / 2) for row in K], axis=0)


@pytest.mark.parametrize(
    "case",
    [
        uniform,
        by_weight,
        reservoir,
        seeds,
        greedy_seeds,
        pivots,
        leverage,
        leverage_by_one_pilot,
    ],
)
def test_two_landmarks_have_their_exact_law_and_all_rows_come(case):
    """The last row is a copy of the fourth: they are one outcome, and what is never drawn has probability zero."""
    X = house.data(shape=house.ODD).X
    X[4] = X[3]
    weights = np.array([0.5, 0, 1, 2, 0.5], house.dtype())
    choose, law = case(np.float64(X), weights)
    # A reservoir of all rows would choose none; the others go on until no row is left.
    count = 2 if case is reservoir else 5
    draw = jax.vmap(lambda key: choose(key, X=X, num_landmarks=count)[:, 0])
    # Show an outcome of probability 1/20 that is off by a fifth; a pivot is a loop of its own for each draw.
    draws = 2_000 if case is pivots else 20_000
    rows = np.asarray(jax.jit(draw)(jax.random.split(house.key(), draws)))
    exact = Counter()
    for i, j in np.ndindex(5, 5):
        exact[float(X[i, 0]), float(X[j, 0])] += law[i, j]
    assert sum(exact.values()) == pytest.approx(1)
    assert_law(tuples(rows[:, :2]), exact)
    if count == 5:
        exists = law.any(axis=1)
        everything = np.sort(np.where(exists, X[:, 0], np.nan))
        assert_array_equal(np.sort(rows), np.stack([everything] * draws))


def assert_rows(landmarks, X):
    """Assert that landmarks are M different rows of X."""
    rows = set(tuples(landmarks))
    assert rows <= set(tuples(X))
    assert len(rows) == len(landmarks) == M


def five(name, X):
    """Return the landmarks of five keys."""
    choose = partial(CHOICES[name], X=X, num_landmarks=M)
    return [np.asarray(choose(house.key(number))) for number in range(5)]


@pytest.mark.parametrize("name", CHOICES)
def test_landmarks_are_different_rows_of_the_data_and_copies_come_last(name):
    """Other keys choose others. Of three distinct points among copies, the first three landmarks are those."""
    X = house.data().X
    chosen = five(name, X)
    assert len({rows.tobytes() for rows in chosen}) == 5
    for rows in chosen:
        assert_rows(rows, X)
    for rows in five(name, X[np.arange(N) % 3]):
        assert set(tuples(rows)) <= set(tuples(X[:3]))
        # Scores are drawn from at once.
        if name in ("kmeans_plus_plus", "pivoted_cholesky"):
            assert sorted(tuples(rows[:3])) == sorted(tuples(X[:3]))


def left_over(X, rows):
    """Return the squared distances (n,) in the RKHS of the sections at X to the span of those at some rows."""
    cross = literal_gram(X, rows)
    inverse = np.linalg.inv(literal_gram(rows, rows))
    return 1 - np.sum(cross @ inverse * cross, axis=1)


def to_a_tolerance(kernel, X, tolerance, weights=None):
    """Return pivots, by one program for all tolerances."""
    if weights is None:
        weights = np.ones(N, house.dtype())
    options = {"tolerance": tolerance, "max_landmarks": M, "weights": weights}
    return jax.device_get(pivoted(house.key(), kernel, X, **options))


def test_a_tolerance_stops_at_the_first_trace_below_it():
    """By least squares in float64, for the rows that no tolerance takes; rows of weight zero are NaN."""
    data = house.data()
    weights = data.weights
    X = np.where(weights[:, None] == 0, np.nan, data.X)
    run = partial(to_a_tolerance, house.KERNEL, X, weights=weights)
    pivots = run(0.0)
    assert int(pivots.num_landmarks) == M
    assert not pivots.reached
    assert not pivots.exhausted
    rows = pivots.landmarks
    masses = np.float64(weights)
    rest = np.array([masses @ left_over(data.X, rows[:n]) for n in range(1, M + 1)])
    share = rest / masses.sum()
    for n in (2, 4, M):
        pivots = run(float(share[n - 2] + share[n - 1]) / 2)
        assert int(pivots.num_landmarks) == n
        assert pivots.reached
        assert not pivots.exhausted
        assert np.array_equal(pivots.landmarks[:n], rows[:n])
        assert np.isnan(pivots.landmarks[n:]).all()
        assert pivots.weights.tolist() == [1] * n + [0] * (M - n)
        close(pivots.trace, masses.sum(), N * N * eps())
        # Small pivots magnify the rounding of columns.
        close(pivots.trace_residual, rest[n - 1], 100 * N * eps())
    fixed = CHOICES["pivoted_cholesky"](house.key(), X=data.X, num_landmarks=M)
    assert np.array_equal(to_a_tolerance(house.KERNEL, data.X, 0.0).landmarks, fixed)


def test_a_tolerance_stops_if_only_rounding_is_left():
    X = house.data().X
    # Of a kernel of rank DIM; below 10 eps no tolerance is reached.
    for tolerance in (1e-3, 0.0):
        pivots = to_a_tolerance(Linear(), X, tolerance)
        assert int(pivots.num_landmarks) == DIM
        assert pivots.exhausted
        assert bool(pivots.reached) == (tolerance > 0)
        assert pivots.trace_residual <= 1e2 * eps() * pivots.trace
    copies = to_a_tolerance(house.KERNEL, X[np.arange(N) % 4], 1e-3)
    assert int(copies.num_landmarks) == 4
    assert sorted(tuples(copies.landmarks)[:4]) == sorted(tuples(X[:4]))
    assert int(to_a_tolerance(house.KERNEL, X, 1.0).num_landmarks) == 1
    zero = to_a_tolerance(Linear(), 0 * X, 0.1)
    assert int(zero.num_landmarks) == 1
    assert zero.reached
    assert zero.exhausted
    X[3] = np.nan
    broken = to_a_tolerance(house.KERNEL, X, 0.1)
    assert np.isnan(broken.landmarks).all()
    assert np.isnan(broken.trace_residual)
    assert not broken.reached


def test_a_reservoir_is_the_same_for_all_batches_and_holds_a_short_stream():
    X = house.data().X
    init, update, _ = landmarks.reservoir(num_landmarks=M)
    empty = init(house.key(), DIM, X.dtype)
    at_once = update(empty, X)
    state = update(update(empty, X[:0]), X[:4])
    points = np.asarray(state.points)
    assert sorted(tuples(points[:4])) == sorted(tuples(X[:4]))
    assert not points[4:].any()
    assert int(state.seen) == 4
    for batch in X[4:].reshape(-1, 4, DIM):
        state = update(state, batch)
    assert np.array_equal(at_once.points, state.points)
    assert np.array_equal(at_once.priorities, state.priorities)
    assert int(at_once.seen) == int(state.seen) == N
    assert_rows(state.points, X)


@pytest.mark.float64
def test_the_dtype_of_the_data_changes_no_choice():
    X = np.round(8 * house.data().X)
    single = landmarks.uniform(house.key(2), np.float32(X), num_landmarks=M)
    double = landmarks.uniform(house.key(2), X, num_landmarks=M)
    assert np.array_equal(single, double)


def test_ties_of_the_uniform_numbers_favour_no_row(monkeypatch):
    """All draws equal: any start is a rotation, so every row still appears equally often.

    No other test takes 3 of 7 rows, whose program draws no numbers from now on.
    """
    monkeypatch.setattr(
        jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype)
    )
    choose = partial(
        landmarks.uniform, X=np.eye(7, dtype=house.dtype()), num_landmarks=3
    )
    rows = jax.jit(jax.vmap(choose))(jax.random.split(house.key(), 7000))
    counts = np.sum(rows, axis=1)
    # Each row comes once at most; six standard errors of a share.
    assert counts.max() == 1
    close(counts.mean(axis=0), [3 / 7] * 7, 6 * np.sqrt(3 / 7 * 4 / 7 / 7000))


def test_exponential_numbers_near_zero_and_far_out_are_not_rounded():
    """Of 2^20, 512 are expected below 2^-11, nearly always different ones; of multiples of 2^-23 thirty would collide.

    Both counts are beyond five standard deviations with a probability of 1e-6. The largest is between 11.5 and 28 with
    odds of 1 - 1e-4. No public function returns them: with the resolution of one uniform number of float32 the first of
    millions of rows would have the wrong odds.
    """
    count = 2**20
    uniform = jax.random.uniform(house.key(), (count,), jnp.float32)
    values = np.asarray(jax.jit(_waits)(uniform, house.key(1)))
    small = values[values < 2.0**-11]
    assert abs(len(small) - 512) < 5 * 512**0.5
    assert len(np.unique(small)) == len(small)
    assert abs(values.mean() - 1) < 5 / count**0.5
    assert 11.5 < values.max() < 28
