"""Quantiles of pairwise distances against numpy.quantile of all pairs; sampled ones with a stated false-alarm rate."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import pdist
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern.draws import weighted_pairs
from jaxkern.kernels import _bandwidth as module
from jaxkern.kernels import quantile_lengthscale, sampled_quantile_lengthscale

LEVELS = (0.0, 0.01, 0.25, 0.5, 0.9, 1.0)


@pytest.mark.parametrize(
    ("n", "dim"), [(2, 1), (13, 3), pytest.param(600, 5, marks=pytest.mark.slow)]
)
def test_exact_quantiles_are_those_of_numpy(n, dim, dtype, rng):
    """600 points are two tiles: padded, and with pairs across. Kept squares are accurate to about 100 eps."""
    X = np.asarray(rng.normal(size=(n, dim)) * [1, 3, 0.2, 5, 1][:dim], dtype)
    distances = pdist(np.float64(X))
    for q in LEVELS:
        value = quantile_lengthscale(X, q)
        assert value.dtype == dtype and value.shape == ()
        np.testing.assert_allclose(
            value, np.quantile(distances, q), rtol=200 * eps(dtype)
        )
    assert float(quantile_lengthscale(X)) == float(quantile_lengthscale(X, 0.5))


def test_high_dimension_takes_products_and_close_pairs_direct_differences(rng):
    """200 coordinates keep random pairs apart; one close pair far from the origin must not be lost."""
    X = np.float32(rng.normal(size=(40, 200)) + 10)
    for q in (0.0, 0.5, 1.0):
        np.testing.assert_allclose(
            quantile_lengthscale(X, q), np.quantile(pdist(np.float64(X)), q), rtol=1e-5
        )
    X[7] = X[20] + np.float32(2.0**-12)
    shortest = pdist(np.float64(X)).min()
    np.testing.assert_allclose(quantile_lengthscale(X, 0.0), shortest, rtol=1e-5)


def test_copies_are_at_distance_zero(dtype, rng):
    """More than the fraction q of the pairs coincide: the quantile is exactly zero, far from the origin, too."""
    X = np.repeat(rng.normal(size=(2, 3)) * 3 + 7, [9, 3], axis=0).astype(
        dtype
    )  # 39 of 66 pairs coincide
    assert float(quantile_lengthscale(X, 0.5)) == 0
    np.testing.assert_allclose(
        quantile_lengthscale(X, 0.7),
        np.linalg.norm(np.float64(X[0] - X[-1])),
        rtol=1e-5,
    )
    assert float(quantile_lengthscale(np.ones_like(X), 1.0)) == 0
    assert not np.asarray(jax.jit(jax.grad(quantile_lengthscale))(X, 0.0)).any()


def test_a_distance_that_is_not_finite_is_infinite(dtype, rng):
    X = rng.normal(size=(7, 3)).astype(dtype)
    longest = pdist(np.delete(np.float64(X), 2, axis=0)).max()
    for far in (np.inf, np.finfo(dtype).max):  # whose square is infinite
        X[2, 0] = far
        for weights in (None, np.ones(7, dtype)):
            np.testing.assert_allclose(
                quantile_lengthscale(X, 0.7, weights=weights), longest, rtol=1e-5
            )  # 14 of 20
            assert [
                float(quantile_lengthscale(X, q, weights=weights)) for q in (0.72, 1.0)
            ] == [np.inf, np.inf]


def test_a_common_offset_and_the_order_of_points_do_not_matter(rng):
    X = np.round(rng.normal(size=(12, 3)) * 512) / 512
    expected = float(quantile_lengthscale(np.float32(X), 0.3))
    assert float(quantile_lengthscale(np.float32(X + 1024), 0.3)) == pytest.approx(
        expected, rel=1e-5
    )
    assert float(quantile_lengthscale(np.float32(X[::-1]), 0.3)) == pytest.approx(
        expected, rel=1e-6
    )
    assert float(quantile_lengthscale(np.float32(X * 2), 0.3)) == pytest.approx(
        2 * expected, rel=1e-6
    )


@pytest.mark.parametrize(
    "total", [1, 2, 3, 66, 2**25 + 1, 8193 * 8192 // 2, 65_536 * 65_535 // 2]
)
def test_ranks_stay_within_the_pairs_however_many_there_are(total):
    """float32 rounds numbers of pairs above 2^24: the largest of them must not count as one beyond the last."""
    for q in (*LEVELS, 0.3):
        exact = q * (total - 1)
        rank, weight = module._position(q, total, jnp.float32)
        assert rank.dtype == jnp.int32 and weight.dtype == jnp.float32
        assert 0 <= int(rank) <= max(total - 2, 0) and 0 <= float(weight) <= 1
        assert int(rank) + float(weight) == pytest.approx(exact, abs=1e-6)
        rank, weight = module._position(jnp.float32(q), total, jnp.float32)
        assert 0 <= int(rank) <= max(total - 2, 0) and 0 <= float(weight) <= 1
        assert int(rank) + float(weight) == pytest.approx(
            exact, rel=2 * eps("float32"), abs=1e-5
        )


def test_nothing_of_the_size_of_all_pairs_is_held():
    n, dim = 3000, 2
    largest = largest_intermediate(quantile_lengthscale, jnp.zeros((n, dim)))
    assert 500 * 500 <= largest <= 512 * 512 * dim < n * (n - 1) // 2


def test_sampled_quantiles_meet_their_level(dtype, rng):
    """Each false alarm has probability below 1e-9: Hoeffding for the empirical distribution at two thresholds."""
    X = np.asarray(rng.normal(size=(40, 3)) * [1, 5, 0.1], dtype)
    num_pairs = 20_000
    slack = math.sqrt(math.log(2e9) / (2 * num_pairs))
    for q in (0.1, 0.5, 0.95):
        low, high = np.quantile(
            pdist(np.float64(X)), [max(q - slack, 0), min(q + slack, 1)]
        )
        found = [
            sampled_quantile_lengthscale(jax.random.key(s), X, q, num_pairs=num_pairs)
            for s in range(3)
        ]
        assert all(
            low * (1 - 1e-5) <= float(value) <= high * (1 + 1e-5) for value in found
        )
        assert high / low < 1.5 and found[0].dtype == dtype


def test_pairs_of_a_million_rows_with_fractions_are_those_of_the_rows_alone(dtype, rng):
    """Zeros at the end or between; z-scores of 10 groups, first or second: above 6 with probability below 1e-7."""
    weights, size = np.asarray(rng.uniform(0.1, 1, 1_000_000), dtype), 200_000
    where = np.sort(rng.permutation(1_000_500)[:1_000_000])
    sets, draw = (
        np.zeros((2, 1_000_500), dtype),
        jax.jit(weighted_pairs, static_argnums=2),
    )
    sets[0, :1_000_000] = sets[1, where] = weights
    drawn, filled = (
        jax.device_get(draw(jax.random.key(0), each, size)) for each in sets
    )
    p = np.float64(weights).reshape(10, -1).sum(axis=1) / np.sum(
        weights, dtype=np.float64
    )
    for rows, others in zip(drawn[:2], filled[:2], strict=True):
        assert np.array_equal(where[rows], others)
        assert (
            np.abs(np.bincount(rows // 100_000) / size - p) <= 6 * np.sqrt(p / size)
        ).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X": np.ones((1, 2), np.float32)}, r"X must have at least 2 row\(s\)"),
        ({"q": 2}, r"q must lie in \[0, 1\], got 2"),
        ({"q": np.array([0.1, 0.2])}, "q must be a scalar"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"X": np.ones((5, 2), np.float32), "q": 0.5} | changes
    with pytest.raises(ValueError, match=message):
        quantile_lengthscale(**arguments)
    with pytest.raises(ValueError, match=message):
        sampled_quantile_lengthscale(jax.random.key(0), **arguments)


def test_bad_sizes_are_refused_by_name():
    with pytest.raises(ValueError, match="num_pairs must be at least 1"):
        sampled_quantile_lengthscale(
            jax.random.key(0), np.ones((5, 2), np.float32), num_pairs=0
        )
    with pytest.raises(
        ValueError, match="X must have at most 65536 rows for the exact quantile"
    ):
        quantile_lengthscale(np.ones((65_537, 1), np.float32))
