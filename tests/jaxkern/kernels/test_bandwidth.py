"""Quantiles of pairwise distances against numpy.quantile of all pairs; sampled ones with a stated false-alarm rate."""

import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import eps
from numpy.testing import assert_allclose
from scipy.spatial.distance import pdist
from support.jaxprs import largest_intermediate

from jaxkern.kernels import quantile_lengthscale, sampled_quantile_lengthscale

# Numbers of pairs above 2^24 cannot be reached with points: 65,536 of them take minutes.
from jaxkern.kernels._bandwidth import _position

pytestmark = pytest.mark.optimised

LEVELS = (0.0, 0.01, 0.25, 0.5, 0.9, 1.0)


def assert_quantiles(X):
    distances = pdist(np.float64(X))
    for q in LEVELS:
        value = quantile_lengthscale(X, q)
        exact = np.quantile(distances, q)
        # Squares that are kept are accurate to about 100 eps.
        assert_allclose(value, exact, rtol=200 * eps())


@pytest.mark.parametrize("shape", [house.USUAL, house.ODD])
@pytest.mark.parametrize("family", house.FAMILIES)
def test_exact_quantiles_are_those_of_numpy(family, shape):
    assert_quantiles(house.data(family, shape).X)


@pytest.mark.slow
def test_exact_quantiles_of_several_tiles_are_those_of_numpy():
    """Points beyond 512 are in two tiles: filled up, and with pairs across."""
    assert_quantiles(house.data(shape=(600, 1, 5)).X)


def test_many_columns_take_products_and_close_pairs_direct_differences():
    """From 9 columns on products serve, until one pair is close; it is far from the origin and must not be lost."""
    X = house.data(shape=(24, 8, 12)).X + 10
    assert_quantiles(X)
    X[7] = X[20] + X.dtype.type(2.0**-12)
    assert_quantiles(X)


def test_copies_are_at_distance_zero_and_have_no_slope():
    X = house.data("duplicates").X
    assert quantile_lengthscale(X) == quantile_lengthscale(X, 0.5) > 0
    assert quantile_lengthscale(X, 0.01) == 0  # 12 of 276 pairs coincide
    assert not np.any(jax.jit(jax.grad(quantile_lengthscale))(X, 0.0))


@pytest.mark.parametrize("is_weighted", [False, True])
def test_a_distance_that_is_not_finite_is_infinite(is_weighted):
    """Also where only its square is not."""
    X = house.data(shape=house.ODD).X
    weights = np.ones_like(X[:, 0]) if is_weighted else None
    # The row that is far away has four of ten pairs: the median is the mean of the fifth and the sixth of the others.
    median = np.sort(pdist(np.float64(X[:4])))[4:].mean()
    for far in (np.inf, np.finfo(X.dtype).max):
        X[4] = far
        for q, exact in ((0.5, median), (0.6, np.inf), (1.0, np.inf)):
            value = quantile_lengthscale(X, q, weights=weights)
            assert_allclose(value, exact, rtol=200 * eps())


@pytest.mark.parametrize("total", [1, 2, 3, 66, 2**25 + 1, 65_536 * 65_535 // 2])
def test_ranks_stay_within_the_pairs_however_many_there_are(total):
    """float32 rounds numbers of pairs above 2^24: the largest of them must not count as one beyond the last."""
    single = jnp.float32
    for q in (*LEVELS, 0.3):
        exact = q * (total - 1)
        # A number of Python is located in float64, a traced one in float32.
        traced = 2 * np.finfo(np.float32).eps * exact + 1e-5
        for level, tolerance in ((q, 1e-6), (single(q), traced)):
            rank, weight = _position(level, total, single)
            assert weight.dtype == single
            assert 0 <= rank <= max(total - 2, 0)
            assert 0 <= weight <= 1
            assert abs(int(rank) + float(weight) - exact) <= tolerance


def test_nothing_of_the_size_of_all_pairs_is_held():
    """Traced for so many points that a tile, 512 a side, is small against the pairs."""
    n = 3000
    X = jnp.zeros((n, 2))
    largest = largest_intermediate(quantile_lengthscale, X)
    assert 500**2 <= largest <= 2 * 512**2 < n * (n - 1) // 2


def test_sampled_quantiles_meet_their_level():
    """Each false alarm has probability below 1e-9: Hoeffding for the empirical distribution at two thresholds."""
    num_pairs = 20_000
    slack = math.sqrt(math.log(2e9) / (2 * num_pairs))
    X = house.data().X
    distances = pdist(np.float64(X))
    for q in (0.1, 0.5, 0.95):
        # The empirical distribution is off by the slack at most.
        levels = np.clip([q - slack, q + slack], 0, 1)
        low, high = np.quantile(distances, levels)
        assert high / low < 1.5
        for seed in range(3):
            key = house.key(seed)
            value = sampled_quantile_lengthscale(key, X, q, num_pairs=num_pairs)
            assert low * (1 - 1e-5) <= float(value) <= high * (1 + 1e-5)
