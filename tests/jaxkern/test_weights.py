"""Rows of weight zero do not exist, and a weight of two is two copies: choices of rows, clusterings, what judges."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps
from support.padded import JUNK, PATTERNS, padded, rows

from jaxkern import landmarks
from jaxkern.kernels import Gaussian

N, EXTRA, DIM, M = 23, 5, 2, 6
KERNEL = Gaussian(1.5)
KEY = 7


def key():
    return jax.random.key(KEY)


def reservoir(X, **weights):
    init, update, _ = landmarks.reservoir(num_landmarks=M)
    return update(init(key(), DIM, X.dtype), X, **weights)


CHOICES = {
    "uniform": lambda X, **w: landmarks.uniform(key(), X, num_landmarks=M, **w),
    "plus_plus": lambda X, **w: landmarks.kmeans_plus_plus(key(), X, num_landmarks=M, num_candidates=2, **w),
    "cholesky": lambda X, **w: landmarks.pivoted_cholesky(key(), KERNEL, X, num_landmarks=M, **w),
    "leverage": lambda X, **w: landmarks.leverage(key(), KERNEL, X, num_landmarks=M, num_pilots=9, **w),
    "leverage-all": lambda X, **w: landmarks.leverage(key(), KERNEL, X, num_landmarks=M, **w),
    "reservoir": lambda X, **w: reservoir(X, **w).points,
}


@pytest.fixture
def data(rng, dtype):
    """23 points, of which two are equal, and the labels of three clusters."""
    labels = np.arange(N) % 3
    X = rng.normal(size=(N, DIM)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    X[4] = X[1]
    return X.astype(dtype), labels


def close(found, expected, dtype, scale=100):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        tolerance = scale * eps(dtype) * max(np.abs(b).max(initial=0), 1) if b.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_the_same_rows_are_chosen_as_from_the_set_alone(name, data, dtype):
    choose, X = CHOICES[name], data[0]

    def both(X, **weights):
        found = choose(X, **weights)
        return jnp.sum(found**2), found

    slope, alone = jax.grad(both, has_aux=True)(jnp.asarray(X))
    sets = [padded(X, pattern=pattern, extra=EXTRA, junk=junk) for pattern in PATTERNS for junk in JUNK]
    filled, weights = (jnp.asarray(np.stack(part)) for part in zip(*sets, strict=True))
    slopes, found = jax.jit(jax.vmap(jax.grad(lambda X, w: both(X, weights=w), has_aux=True)))(filled, weights)
    for i, pattern in enumerate(np.repeat(PATTERNS, len(JUNK))):
        assert np.array_equal(found[i], alone), (pattern, i)
        assert np.array_equal(slopes[i][rows(N, pattern, EXTRA)], slope)
        assert np.count_nonzero(slopes[i]) == np.count_nonzero(slope)


@pytest.mark.parametrize("name", sorted(CHOICES))
def test_of_a_set_with_fewer_rows_all_are_chosen(name, data):
    X = data[0][:3]
    filled, weights = padded(X, pattern="between", extra=N + EXTRA - 3)
    found = np.asarray(CHOICES[name](jnp.asarray(filled), weights=jnp.asarray(weights)))
    if name == "reservoir":
        assert not found[3:].any()
    else:
        assert np.isnan(found[3:]).all()
    assert {*map(tuple, found[:3])} == {*map(tuple, X)}


@pytest.mark.parametrize("name", sorted({*CHOICES} - {"leverage-all"}))
def test_the_odds_are_the_weights(name, x64):
    """Far points, so that nothing but weights tells; the first of 5,000 draws: 6 standard errors."""
    X = jnp.arange(4.0)[:, None] * jnp.array([[0.0, 1.0]])
    weights, size = jnp.array([1.0, 0.0, 2.0, 5.0]), 5_000

    def first(key):
        if name == "reservoir":
            init, update, _ = landmarks.reservoir(num_landmarks=1)
            return update(init(key, 2, X.dtype), X, weights).points[0, 1]
        choose = {"uniform": landmarks.uniform, "plus_plus": landmarks.kmeans_plus_plus}
        if name in choose:
            return choose[name](key, X, num_landmarks=1, weights=weights)[0, 1]
        choose = {"cholesky": landmarks.pivoted_cholesky, "leverage": landmarks.leverage}
        return choose[name](key, Gaussian(1e-2), X, num_landmarks=1, weights=weights)[0, 1]

    found = np.asarray(jax.jit(jax.vmap(first))(jax.random.split(key(), size))).astype(int)
    w = np.asarray(weights)
    odds = w / (w + 8) if name == "leverage" else w  # w copies of a far point share one direction, and lambda is 8
    p, shares = odds / odds.sum(), np.bincount(found, minlength=4) / size
    assert (np.abs(shares - p) <= 6 * np.sqrt(p * (1 - p) / size)).all(), shares
