"""Fastfood: against the literal product of matrices, and its variance by exact enumeration.

What it shares with other Fourier features is in test_fourier.py and test_fourier_laws.py.
"""

import itertools
import math
from functools import cache

import house
import jax
import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import hadamard
from support.jaxprs import largest_intermediate

from jaxkern.features import fastfood, paired_fourier
from jaxkern.features._fastfood import _unit

DIM = house.USUAL[2]
SIZE = 4
"""The power of two beyond DIM."""
FREQUENCIES = 11
"""Three blocks of SIZE, of which the last one is cut; of size 1, eleven, and of size 128 a part of one."""


def draw(dim, num_frequencies=FREQUENCIES):
    return fastfood(house.key(), house.KERNEL, dim, num_frequencies=num_frequencies)


def transform(size):
    """Return the Hadamard matrix of Sylvester with its rows in the order of the transform.

    Beyond size 64 it is two products, after which the two factors have changed places.
    """
    rows = np.arange(size)
    if size > 64:
        level = size.bit_length() - 1
        rows = rows.reshape(2 ** (level // 2), -1).T.reshape(-1)
    return np.float64(hadamard(size))[rows]


def literal(phi):
    """Return the frequencies in R^D for lengthscale 1 from the product S H G Pi H B written out, in float64."""
    fields = (phi.signs, phi.permutations, phi.gains)
    size = phi.gains.shape[1]
    H = transform(size)
    directions = []
    for signs, permutation, gains in zip(*map(np.asarray, fields), strict=True):
        columns = H[permutation]
        columns[:, : len(signs)] *= signs
        directions += [*(H * np.float64(gains) @ columns)]
    lengths = np.float64(phi.lengths)[:, None]
    return lengths * directions[: len(lengths)]


@pytest.mark.parametrize("dim", [1, DIM, 100])
def test_frequencies_are_the_rows_of_the_literal_product(dim):
    """A dimension beyond 64 takes another transform. In R^D, beyond the padding, |w| is the length."""
    phi = draw(dim)
    frequencies = literal(phi)
    slack = 20 * house.eps() * np.abs(frequencies).max()
    expected = frequencies[:, :dim]
    np.testing.assert_allclose(phi.frequencies, expected, rtol=0, atol=slack)
    lengths = np.linalg.norm(frequencies, axis=1)
    np.testing.assert_allclose(lengths, phi.lengths, rtol=10 * house.eps())


def test_features_beyond_64_dimensions_are_the_cosines_at_the_frequencies():
    X = house.rng().normal(size=(house.USUAL[0], 100)).astype(house.dtype())
    phi = draw(100)
    phases = np.float64(X) @ literal(phi)[:, :100].T / house.LENGTHSCALE
    expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
    # Two sums of 128 terms, relative to the lengths of their vectors.
    longest = np.linalg.norm(X, axis=1).max() * np.asarray(phi.lengths).max()
    slack = house.eps() * (2 * 128**0.5 * longest / house.LENGTHSCALE + 8)
    Z = FREQUENCIES**0.5 * np.asarray(phi(X))
    np.testing.assert_allclose(Z, expected, rtol=0, atol=slack)
    assert slack < 1e-2


def test_a_vector_without_a_direction_gets_one():
    """One normal of float32 is zero once in ten million draws, so this asks the private function."""
    normals = np.array([[0, 0], [3, 4]], house.dtype())
    directions = jax.jit(jax.vmap(_unit))(normals)
    expected = [[0.5**0.5, 0.5**0.5], [0.6, 0.8]]
    np.testing.assert_allclose(directions, expected, rtol=2 * house.eps())


@cache
def many():
    """Return maps with 24,000 blocks in all, drawn in float32 as in test_fourier_laws.py."""
    count = {"num_frequencies": 24_000, "dtype": "float32"}
    keys = map(house.key, range(4))
    return [fastfood(key, house.KERNEL, DIM, **count) for key in keys]


@cache
def blocks():
    """Return the frequencies of these maps, (blocks, SIZE, DIM)."""
    frequencies = [np.float64(phi.frequencies) for phi in many()]
    return np.concatenate(frequencies).reshape(-1, SIZE, DIM)


def test_signs_and_permutations_are_uniform():
    """8 signs and 24 permutations, 24,000 of each: chi-square tests, false alarms below 2e-7."""
    signs = np.concatenate([phi.signs for phi in many()])
    permutations = np.concatenate([phi.permutations for phi in many()])
    assert np.array_equal(np.abs(signs), np.ones_like(signs))
    for outcomes, number in ((signs, 8), (permutations, 24)):
        counts = np.unique(outcomes, axis=0, return_counts=True)[1]
        assert len(counts) == number
        assert stats.chisquare(counts).pvalue > 1e-7


def pair_covariance(size, square, kappa, terms=30):
    """Return Cov(cos<w_i, u>, cos<w_j, u>), |u|^2 = square, for two rows of a block given B and Pi.

    With v_k the squared coordinates of Pi H B u / (sqrt(size) |u|) the two phases are r_i |u| <s, e> and
    r_j |u| <s, f>: s uniform on the sphere, e and f of unit length with <e, f> = kappa = sum_k H_ik H_jk v_k, and
    independent lengths r_i, r_j. The series of the cosines, with moments of two correlated normals and those of
    r_i, r_j in place of a common length.
    """
    half = size / 2
    total = 0.0
    for k, m in itertools.product(range(terms), repeat=2):
        moment = 0.0
        for j in range(0, 2 * min(k, m) + 1, 2):
            pairings = math.factorial(k - j // 2) * math.factorial(m - j // 2)
            moment += (2 * kappa) ** j / (math.factorial(j) * pairings)
        lengths = special.poch(half, k) * special.poch(half, m)
        moment *= lengths / special.poch(half, k + m)
        total += (-square / 2) ** (k + m) * moment
    return total - math.exp(-square)


@cache
def kappas(coordinates):
    """Return the values of kappa for all signs and permutations, and their probabilities."""
    H = hadamard(SIZE)
    u = np.array(coordinates)
    values = []
    for signs in itertools.product([1, -1], repeat=SIZE):
        squares = (H @ (signs * u)) ** 2 / SIZE / (u @ u)
        values += [H[1] @ order for order in itertools.permutations(squares)]
    distinct, counts = np.unique(np.abs(values).round(12), return_counts=True)
    return distinct, counts / counts.sum()


DIFFERENCES = [(1.0, 1, 1, 0), (1.0, 2, 3, 0), (1.0, 0, 0, 0)]
"""Differences of points, padded as the map pads them."""
all_differences = pytest.mark.parametrize("u", DIFFERENCES)


def spread(u):
    u = np.array(u)
    return (u**4).sum() / (u @ u) ** 2


def variance(values):
    """Return a variance with its standard error."""
    squares = (values - values.mean()) ** 2
    return squares.mean(), squares.std() / len(values) ** 0.5


@all_differences
@pytest.mark.parametrize("distance", [0.7, 1.7])
def test_the_variance_is_that_of_the_enumeration(u, distance):
    """18 comparisons in all at 5 standard errors, of at most 5 %: false alarms below 2e-5.

    Of means over a whole block, over two rows of one, and over a whole block and two rows of another. The variance of
    independent frequencies is rejected for every difference.
    """
    square = distance**2
    single = (1 - math.exp(-square)) ** 2 / 2
    covariance = 0.0
    for kappa, probability in zip(*kappas(u), strict=True):
        covariance += probability * pair_covariance(SIZE, square, kappa)
    difference = distance * np.array(u) / np.linalg.norm(u)
    cosines = np.cos(blocks() @ difference[:DIM])
    mixed = np.concatenate([cosines[::2], cosines[1::2, :2]], axis=1)
    for terms, pairs in ((cosines, 12), (cosines[:, :2], 2), (mixed, 14)):
        count = terms.shape[1]
        expected = single / count + covariance * pairs / count**2
        estimate, error = variance(terms.mean(axis=1))
        assert abs(estimate - expected) < 5 * error
        assert error < 0.05 * expected
    estimate, error = variance(cosines.mean(axis=1))
    assert abs(estimate - single / SIZE) > 5 * error


@all_differences
def test_close_points_have_the_variance_in_closed_form(u):
    """1 - cos is then half a square: the variance of mean squares, exact at any distance, 3 comparisons at 5 errors."""
    squares = (blocks() @ u[:DIM]) ** 2
    estimate, error = variance(squares.mean(axis=1))
    factor = (3 + 2 * SIZE * (1 - spread(u))) / (SIZE + 2)
    expected = 2 * np.dot(u, u) ** 2 / SIZE * factor
    assert abs(estimate - expected) < 5 * error
    assert error < 0.1 * estimate


@all_differences
def test_the_second_moment_of_kappa_gives_the_limit_for_close_points(u):
    values, probabilities = kappas(u)
    expected = 2 * (1 - spread(u)) / (SIZE - 1)
    assert probabilities @ values**2 == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("square", [0.04, 1.0, 3.0])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 2.0])
def test_the_covariance_of_two_rows_is_quadratic_in_a_small_kappa(square, ratio):
    """Which gives the limit of the variance for large blocks."""
    size = 2**14
    kappa = ratio / size**0.5
    expected = math.exp(-square) * square**2 * (kappa**2 - 1 / size) / 2
    covariance = pair_covariance(size, square, kappa)
    assert covariance == pytest.approx(expected, rel=1e-3)


def numbers_of(make, num_frequencies):
    """Return how many numbers a map of 400 dimensions, blocks of 512, keeps; nothing is computed."""

    def fit(key):
        return make(key, house.KERNEL, 400, num_frequencies=num_frequencies)

    phi = jax.eval_shape(fit, house.key())
    return phi, sum(leaf.size for leaf in jax.tree.leaves(phi))


def test_the_map_keeps_numbers_for_frequencies_and_not_for_their_coordinates():
    """Also drawing never forms the matrix, and mapping nothing larger than the result: sizes of which that is seen."""
    count = 2048
    phi, total = numbers_of(fastfood, count)
    assert total <= 4 * count + 1
    assert 50 * total < numbers_of(paired_fourier, count)[1]
    assert numbers_of(fastfood, count + 1)[1] <= 4 * (count + 1) + 3 * 512 + 1
    X = jax.ShapeDtypeStruct((100, 400), house.dtype())
    assert largest_intermediate(lambda phi, X: phi(X), phi, X) == 100 * 2 * count
    assert largest_intermediate(lambda: draw(400, count)) <= 8 * count
