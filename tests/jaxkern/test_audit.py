"""A-posteriori errors of maps: against dense matrices, and with the confidence that is stated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from support.jaxprs import largest_intermediate

from jaxkern import audit, features, metrics
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian

N, DIM = 60, 3
KERNEL = Gaussian(1.0)


def points(rng, dtype=np.float64):
    return rng.normal(size=(N, DIM)).astype(dtype)


def test_distance_errors_are_the_textbook_ones(x64, rng):
    X, Y = rng.normal(size=(2, N, DIM))
    phi = features.nystrom(KERNEL, X[:10])
    found = audit.distance_error(phi, KERNEL, X, Y)
    exact = np.sqrt(2 - 2 * np.exp(-((X - Y) ** 2).sum(1) / 2))
    errors = np.abs(
        np.linalg.norm(np.asarray(phi(X)) - np.asarray(phi(Y)), axis=1) / exact - 1
    )
    assert float(found.largest) == pytest.approx(errors.max(), rel=1e-12)
    assert float(found.mean) == pytest.approx(errors.mean(), rel=1e-12)
    assert int(found.counted) == N and bool(found.finite)


def test_pairs_of_equal_points_are_left_out(x64, rng):
    X = points(rng)
    phi = features.nystrom(KERNEL, X[:10])
    Y = X + 0.5 * (np.arange(N) >= 20)[:, None]
    found, rest = (
        audit.distance_error(phi, KERNEL, X, Y),
        audit.distance_error(phi, KERNEL, X[20:], Y[20:]),
    )
    assert int(found.counted) == N - 20 and float(found.mean) == pytest.approx(
        float(rest.mean), rel=1e-12
    )
    none = audit.distance_error(phi, KERNEL, X, X)
    assert (float(none.largest), float(none.mean), int(none.counted)) == (0, 0, 0)


def test_an_exact_map_has_errors_of_the_size_of_rounding(dtype, rng):
    X = points(rng, dtype)
    phi = features.nystrom(Gaussian(0.3), X)
    eps = float(jnp.finfo(dtype).eps)
    assert (
        float(audit.distance_error(phi, Gaussian(0.3), X[:30], X[30:]).largest)
        <= 1e3 * eps
    )
    upper = float(audit.spectral_error(jax.random.key(0), phi, Gaussian(0.3), X).upper)
    assert upper <= 60 * eps  # 50 of them allowed for


def test_sampled_pairs_are_different_rows_and_all_equally_likely():
    first, second = (
        np.asarray(side) for side in audit._pairs(jax.random.key(0), 4, 24_000)
    )
    shares = np.bincount(first * 4 + second, minlength=16).reshape(4, 4) / 24_000
    assert not np.diag(shares).any()
    p = 1 / 12
    assert np.abs(shares[~np.eye(4, dtype=bool)] - p).max() <= 6 * np.sqrt(
        p * (1 - p) / 24_000
    )


def test_few_pairs_are_worse_than_the_worst_one_sampled(x64, rng):
    """Over 200 samples of 30 pairs the stated fraction fails with probability at most .05 each."""
    X = points(rng)
    phi = features.kernel_jl(jax.random.key(0), KERNEL, X[:20], num_features=10)
    i, j = np.triu_indices(N, 1)
    every, Z = audit.distance_error(phi, KERNEL, X[i], X[j]), np.asarray(phi(X))
    exact = np.sqrt(2 - 2 * np.exp(-((X[i] - X[j]) ** 2).sum(1) / 2))
    errors = np.abs(np.linalg.norm(Z[i] - Z[j], axis=1) / exact - 1)
    assert float(every.largest) == pytest.approx(errors.max(), rel=1e-9)

    def one(key):
        found = audit.sampled_distance_error(key, phi, KERNEL, X, num_pairs=30)
        return found.largest, found.exceeding(0.05)

    largest, fraction = jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(1), 200))
    worse = (errors[None, :] > np.asarray(largest)[:, None] * (1 + 1e-9)).mean(axis=1)
    failures = int((worse > np.asarray(fraction)).sum())
    assert stats.binom.sf(failures - 1, 200, 0.05) > 1e-6
    assert (
        failures > 0
    )  # the statement is sharp: with continuous errors it fails in 5 % of all samples


@pytest.mark.parametrize("num_steps", [1, 8])
def test_the_spectral_error_lies_between_its_bounds(num_steps, x64, rng):
    X = points(rng)
    phi = features.nystrom(KERNEL, X[:10])
    exact = float(metrics.spectral_error(gram(KERNEL, X), phi(X) @ phi(X).T))

    def one(key):
        found = audit.spectral_error(
            key, phi, KERNEL, X, num_steps=num_steps, num_probes=3, probability=0.8
        )
        return found.lower, found.upper

    lower, upper = (
        np.asarray(v)
        for v in jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(2), 400))
    )
    assert (lower <= exact * (1 + 1e-9)).all()
    failures = int((upper < exact).sum())
    assert stats.binom.sf(failures - 1, 400, 0.2) > 1e-6
    if num_steps == 8:
        # |A^k G|^2 is little more than the share of the leading eigenvector, so that the level is nearly attained.
        assert (
            failures > 400 * 0.05
            and np.median(upper) < 1.3 * exact
            and np.median(lower) > 0.99 * exact
        )


def test_signs_do_not_matter(x64, rng):
    """An error that is negative semidefinite: a map that overshoots."""
    X = points(rng)
    phi = features.nystrom(KERNEL, X[:10])
    loud = jax.tree_util.Partial(lambda phi, x: 2 * phi(x), phi)
    exact = float(metrics.spectral_error(gram(KERNEL, X), 4 * (phi(X) @ phi(X).T)))
    found = audit.spectral_error(jax.random.key(0), loud, KERNEL, X)
    assert (
        float(found.lower) == pytest.approx(exact, rel=1e-6)
        and float(found.upper) >= exact
    )


def test_the_interval_holds_what_rounding_makes_of_a_map_that_is_exact(rng):
    """All points are landmarks, two clusters far apart: what is left is rounding, of K and of products."""
    X = points(rng, np.float32)
    X[N // 2 :, 0] += 1e5
    phi = features.nystrom(KERNEL, X)
    Z, Xl = np.float64(phi(X)), X.astype(np.longdouble)
    exact = np.float64(np.exp(-((Xl[:, None] - Xl[None]) ** 2).sum(-1) / 2))
    error = np.linalg.norm(exact - Z @ Z.T, 2) / N
    found = audit.spectral_error(jax.random.key(0), phi, KERNEL, X)
    assert float(found.lower) <= error <= float(found.upper) < 1e-4


def test_no_gram_matrix_is_held(rng):
    n = 3000
    phi = features.nystrom(KERNEL, points(rng, np.float32)[:10])
    X = np.zeros((n, DIM), np.float32)
    held = largest_intermediate(
        lambda key: audit.spectral_error(key, phi, KERNEL, X), jax.random.key(0)
    )
    assert held <= 2**21 < n * n


def test_what_does_not_fit_is_named(rng):
    X = points(rng, np.float32)
    phi = features.nystrom(KERNEL, X[:10])
    key = jax.random.key(0)
    for name, value in {
        "num_steps": 0,
        "num_probes": N + 1,
        "probability": 1.0,
    }.items():
        with pytest.raises(ValueError, match=name):
            audit.spectral_error(jax.random.clone(key), phi, KERNEL, X, **{name: value})
    with pytest.raises(ValueError, match="num_pairs"):
        audit.sampled_distance_error(key, phi, KERNEL, X, num_pairs=0)
    with pytest.raises(ValueError, match="positive semidefinite"):
        audit.distance_error(phi, Distance(), X, X)
    with pytest.raises(ValueError, match="delta"):
        audit.distance_error(phi, KERNEL, X, X).exceeding(0.0)
