"""Quantiles of distances of weighted rows: a weight of 2 is two copies, and a row of weight 0 does not exist."""

import house
import jax
import numpy as np
import pytest
from house import eps
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from support.padded import all_padded, check_slopes

from jaxkern import draws, kernels

LEVELS = (0.0, 0.12, 0.5, 1.0)


def exact(X, q, weights=None):
    return kernels.quantile_lengthscale(X, q, weights=weights)


def sampled(X, q, weights=None):
    return kernels.sampled_quantile_lengthscale(
        house.key(7), X, q, num_pairs=400, weights=weights
    )


@pytest.mark.parametrize(
    "quantile", [exact, pytest.param(sampled, marks=pytest.mark.slow)]
)
def test_quantiles_of_padded_sets_are_those_of_the_sets_alone(quantile):
    """And the gradients; with one key for both. Two rows are equal, and 12 columns are multiplied."""
    X = house.data(shape=(24, 8, 12)).X
    X[3] = X[5]
    levels = np.linspace(0, 1, 5, dtype=X.dtype)
    tolerance = 100 * eps()
    alone = [quantile(X, float(q)) for q in levels]
    slope = jax.jit(jax.grad(quantile))(X, 0.25)

    @jax.jit
    @jax.vmap
    def of_levels(X, weights):
        value_and_slope = jax.value_and_grad(quantile)
        return jax.vmap(value_and_slope, (None, 0, None))(X, levels, weights)

    P, weights = all_padded(X)
    values, slopes = jax.device_get(of_levels(P, weights))
    assert_allclose(values, [alone] * len(P), rtol=tolerance)
    check_slopes(slopes[:, 1], np.asarray(slope), tolerance)
    # One row alone has no pairs, and neither has no row.
    weights[:, 1:] = 0
    weights[0] = 0
    assert np.isnan(of_levels(P, weights)[0]).all()


def test_whole_weights_repeat_rows_and_equal_ones_are_shares():
    """As many copies as rows, so that both sets have one shape; sampled quantiles are the same with the same key."""
    X = house.data().X
    copies = np.bincount(house.rng().integers(0, 12, len(X)), minlength=len(X))
    # Some rows have pairs with themselves, and some do not exist.
    assert copies.max() > 2
    assert copies.min() == 0
    repeated = np.repeat(X, copies, axis=0)
    weights = copies.astype(X.dtype)
    tolerance = 50 * eps()
    distances = pdist(np.float64(repeated))
    for q in LEVELS:
        value = exact(X, q, weights)
        assert_allclose(value, np.quantile(distances, q), rtol=tolerance)
        value = sampled(X, q, weights)
        assert_allclose(value, sampled(repeated, q), rtol=tolerance)
        # Equal weights are shares; the place of the quantile among 276 pairs is rounded.
        value = exact(X, q, np.full_like(weights, 1e-25))
        assert_allclose(value, exact(X, q), rtol=6 * tolerance)


@pytest.mark.float64
def test_the_quantile_moves_with_the_weights_as_its_gradient_says():
    data = house.data()
    value_and_slope = jax.jit(jax.value_and_grad(exact, argnums=2))
    # All positive, as copies of a row are pairs from a weight of 1 on.
    weights = data.weights + 0.5
    change = 1e-6 * house.rng().normal(size=weights.shape)
    for q in (0.1, 0.62):
        slope = value_and_slope(data.X, q, weights)[1]
        above = value_and_slope(data.X, q, weights + change)[0]
        below = value_and_slope(data.X, q, weights - change)[0]
        assert float(above - below) == pytest.approx(
            float(2 * slope @ change), abs=1e-13
        )


def test_pairs_are_drawn_as_often_as_they_count():
    """z-scores of all pairs and of the copies: above 6 with a probability below 1e-6."""
    weights = np.float32(2.5 * house.data().weights)
    size = 100_000
    draw = jax.jit(draws.weighted_pairs, static_argnums=2)
    i, j, _ = jax.device_get(draw(house.key(), weights, size))
    mass = np.triu(np.outer(weights, weights), 1)
    # Row i has w_i (w_i - 1) / 2 pairs with its own copies, if they exist.
    mass += np.diag(weights * np.maximum(weights - 1, 0) / 2)
    expected = size * mass / mass.sum()
    counts = np.zeros_like(expected)
    np.add.at(counts, (np.minimum(i, j), np.maximum(i, j)), 1)
    # Half a unit more: counts of rare pairs are far from normal.
    assert (np.abs(counts - expected) <= 6 * np.sqrt(expected + 1)).all()


def test_pairs_of_a_million_rows_with_fractions_are_those_of_the_rows_alone():
    """Sums of so many weights are rounded. Zeros stand at the end or between.

    Groups of 100,000 rows are judged by z-scores, as first and as second rows: above 6 with probability below 1e-7.
    """
    rng = house.rng()
    num_rows = 1_000_000
    size = 200_000
    weights = rng.uniform(0.1, 1, num_rows).astype(house.dtype())
    positions = np.sort(rng.permutation(num_rows + 500)[:num_rows])
    at_the_end = np.pad(weights, (0, 500))
    between = np.zeros_like(at_the_end)
    between[positions] = weights
    draw = jax.jit(draws.weighted_pairs, static_argnums=2)
    rows = np.asarray(draw(house.key(), at_the_end, size)[:2])
    padded = draw(house.key(), between, size)[:2]
    assert_allclose(positions[rows], padded)
    groups = weights.reshape(10, -1).sum(axis=1, dtype=float)
    expected = size * groups / groups.sum()
    for numbers in rows:
        counts = np.bincount(numbers // 100_000)
        assert (np.abs(counts - expected) <= 6 * np.sqrt(expected)).all()


def test_one_row_has_no_pair_and_two_copies_have_one():
    X = house.data().X
    weights = np.zeros(len(X), house.dtype())
    weights[3] = 1
    assert np.isnan(sampled(X, 0.5, weights))
    assert sampled(X, 0.5, 2 * weights) == 0
