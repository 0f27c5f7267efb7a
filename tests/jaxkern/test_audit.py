"""A-posteriori errors of maps: against dense matrices, and with the confidence that is stated."""

import dataclasses
import functools

import house
import jax
import numpy as np
import pytest
from scipy import stats
from support.jaxprs import largest_intermediate
from support.numerics import assert_law, literal_gram

from jaxkern import audit, features
from jaxkern.draws import pairs

pytestmark = pytest.mark.float64

ROWS, _, DIM = house.USUAL


@functools.cache
def fitted():
    """Return a map that is exact at a third of its directions, and the rows that it is judged on."""
    data = house.data()
    return features.nystrom(house.KERNEL, data.landmarks), data.X


def relative_errors(phi, X, Y):
    """Return | |phi(x) - phi(y)| / |K_x - K_y| - 1 | for pairs of rows."""
    squared = ((X - Y) ** 2).sum(axis=1)
    exact = np.sqrt(2 - 2 * np.exp(-squared / (2 * house.LENGTHSCALE**2)))
    mapped = np.linalg.norm(np.asarray(phi(X)) - np.asarray(phi(Y)), axis=1)
    return np.abs(mapped / exact - 1)


def keys(count):
    return jax.random.split(house.key(), count)


def spectral_norm(phi, X, factor=1):
    Z = np.asarray(phi(X))
    K = literal_gram(X, X, house.LENGTHSCALE)
    return np.linalg.norm(K - factor * Z @ Z.T, 2) / ROWS


@pytest.mark.parametrize("equal", [0, 10, ROWS])
def test_distance_errors_are_the_textbook_ones_of_pairs_that_are_apart(equal):
    phi, X = fitted()
    Y = np.where(np.arange(ROWS)[:, None] < equal, X, house.data().Y)
    errors = audit.distance_error(phi, house.KERNEL, X, Y)
    counted = ROWS - equal
    assert int(errors.counted) == counted
    assert bool(errors.finite)
    with np.errstate(invalid="ignore"):  # 0 / 0
        expected = np.nan_to_num(relative_errors(phi, X, Y))
    np.testing.assert_allclose(errors.largest, expected.max(), rtol=1e-10)
    mean = expected.sum() / max(counted, 1)
    np.testing.assert_allclose(errors.mean, mean, rtol=1e-10)


def test_sampled_pairs_are_different_rows_and_all_equally_likely():
    draw = jax.jit(pairs, static_argnums=(1, 2))
    first, second = draw(house.key(), 4, 24_000)  # enough to notice a share of 1 / 10
    outcomes = zip(np.asarray(first).tolist(), np.asarray(second).tolist(), strict=True)
    law = {(i, j): 1 / 12 for i in range(4) for j in range(4) if i != j}
    assert_law(outcomes, law)


def test_few_pairs_are_worse_than_the_worst_one_sampled():
    """Over 200 samples of 30 pairs the stated fraction fails with probability at most .05 each."""
    phi, X = fitted()
    first, second = np.triu_indices(ROWS, 1)
    errors = relative_errors(phi, X[first], X[second])

    @jax.jit
    @jax.vmap
    def sample(key):
        sampled = audit.sampled_distance_error(key, phi, house.KERNEL, X, num_pairs=30)
        return sampled.largest, sampled.exceeding(0.05)

    largest, fraction = sample(keys(200))
    worse = errors > np.asarray(largest)[:, None] * (1 + 1e-9)
    failures = int((worse.mean(axis=1) > np.asarray(fraction)).sum())
    # Fewer than 1 in 10^6 runs would have so many failures.
    assert stats.binom.sf(failures - 1, 200, 0.05) > 1e-6
    # The statement is sharp: with continuous errors it fails in 5 % of all samples.
    assert failures > 0


@pytest.mark.parametrize("num_steps", [1, 8])
def test_the_spectral_error_lies_between_its_bounds(num_steps):
    """Of an error of rank 1 the upper one fails as often as it may, since |A^k G| is |A|^k times a chi variable."""
    options = {"num_steps": num_steps, "num_probes": 3, "probability": 0.8}

    @jax.jit
    @functools.partial(jax.vmap, in_axes=(0, None, None))
    def interval(key, phi, X):
        bounds = audit.spectral_error(key, phi, house.KERNEL, X, **options)
        return bounds.lower, bounds.upper

    phi, X = fitted()
    draws = 400
    lower, upper = map(np.asarray, interval(keys(draws), phi, X))
    exact = spectral_norm(phi, X)
    assert np.all(lower <= exact * (1 + 1e-9))
    failures = np.sum(upper < exact)
    assert stats.binom.sf(failures - 1, draws, 0.2) > 1e-6
    # Power steps leave the leading eigenvectors.
    assert num_steps == 1 or np.median(upper) < 1.3 * exact
    assert num_steps == 1 or np.median(lower) > 0.99 * exact
    # Of an error of rank 1 the lower bound is exact, and the upper one is at least that.
    blind = dataclasses.replace(phi, projection=0 * np.asarray(phi.projection))
    lower, upper = map(np.asarray, interval(keys(draws), blind, np.ones_like(X)))
    failures = np.sum(upper <= lower * (1 + 1e-9))
    assert 1e-6 < stats.binom.cdf(failures, draws, 0.2) < 1 - 1e-6


@pytest.mark.parametrize("factor", [1, 4])
def test_errors_of_either_sign_are_seen(factor):
    """A map that overshoots has an error that is negative semidefinite."""
    phi, X = fitted()
    loud = dataclasses.replace(phi, projection=factor**0.5 * np.asarray(phi.projection))
    bounds = audit.spectral_error(house.key(), loud, house.KERNEL, X)
    exact = spectral_norm(phi, X, factor)
    assert float(bounds.lower) == pytest.approx(exact, rel=1e-3)
    assert float(bounds.lower) <= exact * (1 + 1e-9)
    assert exact <= float(bounds.upper)


@pytest.mark.parametrize("far", [0, 1e5])
def test_of_a_map_that_is_exact_the_interval_is_its_rounding(far):
    """All rows are landmarks: in one group, or in two far apart, whose differences lose digits."""
    X = house.data().X
    X[ROWS // 2 :, 0] += far
    phi = features.nystrom(house.KERNEL, X)
    Z = np.float64(phi(X))
    exact = np.float64(literal_gram(X, X, house.LENGTHSCALE))
    error = np.linalg.norm(exact - Z @ Z.T, 2) / ROWS
    bounds = audit.spectral_error(house.key(), phi, house.KERNEL, X)
    assert float(bounds.lower) <= error <= float(bounds.upper) < 1e3 * house.eps()


def test_no_gram_matrix_is_held():
    phi, _ = fitted()
    X = np.zeros((3000, DIM))  # so that tiles of the product are smaller
    spectral_error = functools.partial(
        audit.spectral_error, phi=phi, kernel=house.KERNEL, X=X
    )
    held = largest_intermediate(spectral_error, house.key())
    assert held <= 2**21 < len(X) ** 2
