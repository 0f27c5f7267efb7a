"""Landmarks: rows of the data, all different, every subset equally likely."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import landmarks


def test_landmarks_are_different_rows_of_the_data(dtype, rng):
    X = jnp.asarray(rng.normal(size=(50, 3)), dtype)
    chosen = landmarks.uniform(jax.random.key(0), X, num_landmarks=20)
    assert chosen.shape == (20, 3) and chosen.dtype == dtype
    rows = {tuple(row) for row in np.asarray(X).tolist()}
    found = [tuple(row) for row in np.asarray(chosen).tolist()]
    assert set(found) <= rows and len(set(found)) == 20


def test_as_many_landmarks_as_points_are_all_points_in_random_order(rng):
    X = jnp.asarray(rng.normal(size=(50, 3)), jnp.float32)
    orders = [np.asarray(landmarks.uniform(jax.random.key(seed), X, num_landmarks=50)) for seed in (0, 1)]
    for order in orders:
        assert np.array_equal(np.sort(order, axis=0), np.sort(np.asarray(X), axis=0))
    assert not np.array_equal(*orders)


def test_every_ordered_pair_is_equally_likely():
    """30 pairs out of 6 points, 30000 draws: 6 standard errors, false alarms below 1e-7."""
    X = jnp.arange(6.0)[:, None]
    draw = jax.jit(jax.vmap(lambda key: landmarks.uniform(key, X, num_landmarks=2)[:, 0]))
    first, second = np.asarray(draw(jax.random.split(jax.random.key(3), 30_000))).astype(int).T
    shares = np.bincount(first * 6 + second, minlength=36).reshape(6, 6) / 30_000
    assert not np.diag(shares).any()
    p = 1 / 30
    for i, j in itertools.permutations(range(6), 2):
        assert abs(shares[i, j] - p) <= 6 * np.sqrt(p * (1 - p) / 30_000)


def test_the_dtype_of_the_data_changes_no_choice(rng, x64):
    X = rng.integers(0, 1000, size=(50, 3))
    single, double = (
        landmarks.uniform(jax.random.key(2), jnp.asarray(X, name), num_landmarks=20) for name in ("float32", "float64")
    )
    assert np.array_equal(single, double)


def test_ties_of_the_uniform_numbers_favour_no_index(monkeypatch):
    """All draws equal: any start is a rotation, so every index still appears equally often."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape, dtype: jnp.zeros(shape, dtype))
    draw = jax.vmap(lambda key: landmarks._uniform_indices(key, 7, 3))
    indices = np.asarray(draw(jax.random.split(jax.random.key(0), 7000)))
    assert (np.sort(indices, axis=1)[:, 1:] != np.sort(indices, axis=1)[:, :-1]).all()
    shares = np.bincount(indices.ravel(), minlength=7) / 7000
    assert np.abs(shares - 3 / 7).max() <= 6 * np.sqrt(3 / 7 * 4 / 7 / 7000)


def test_jit_and_vmap_give_the_eager_rows(rng):
    X = jnp.asarray(rng.normal(size=(2, 50, 3)), jnp.float32)
    keys = jax.vmap(jax.random.key)(jnp.arange(2))
    batched = jax.jit(jax.vmap(lambda key, X: landmarks.uniform(key, X, num_landmarks=20)))(keys, X)
    for i in range(2):
        assert np.array_equal(batched[i], landmarks.uniform(jax.random.key(i), X[i], num_landmarks=20))


def test_a_gradient_reaches_the_rows_that_were_chosen(rng):
    X = jnp.asarray(rng.normal(size=(50, 3)), jnp.float32)
    gradient = jax.grad(lambda X: landmarks.uniform(jax.random.key(0), X, num_landmarks=20).sum())(X)
    assert sorted(np.asarray(gradient)[:, 0].tolist()) == [0.0] * 30 + [1.0] * 20


@pytest.mark.parametrize("platform", ["cpu", "cuda", "tpu"])
def test_other_platforms_get_a_program_without_hardware(platform):
    draw = jax.jit(lambda key, X: landmarks.uniform(key, X, num_landmarks=20))
    draw.trace(jax.random.key(0), jnp.zeros((50, 3))).lower(lowering_platforms=(platform,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": np.zeros(2, np.uint32)}, "key must be a typed random key"),
        ({"X": np.zeros(5, np.float32)}, "X must have rank 2"),
        ({"X": np.zeros((5, 2), np.int32)}, "X must have dtype float32 or float64"),
        ({"X": np.zeros((0, 2), np.float32)}, "X must have at least 1 row"),
        ({"num_landmarks": 6}, "num_landmarks must be at most 5 .the number of points., got 6"),
        ({"num_landmarks": 0}, "num_landmarks must be at least 1"),
        ({"num_landmarks": 2.0}, "num_landmarks must be a static whole number"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"key": jax.random.key(0), "X": np.zeros((5, 2), np.float32), "num_landmarks": 2} | changes
    with pytest.raises(ValueError, match=message):
        landmarks.uniform(**arguments)
