"""Fastfood: against the literal product of matrices, and the variance that blocks give, by exact enumeration.

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

from jaxkern.features import fastfood
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
        # Pi permutes the rows of H B, whose columns beyond dim see zeros only.
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
    # Two transforms of `size` terms each, of entries of at most this size.
    slack = 20 * house.eps() * np.abs(frequencies).max()
    expected = frequencies[:, :dim]
    np.testing.assert_allclose(phi.frequencies, expected, rtol=0, atol=slack)
    lengths = np.linalg.norm(frequencies, axis=1)
    np.testing.assert_allclose(lengths, phi.lengths, rtol=10 * house.eps())


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


def variance(values):
    """Return a variance with its standard error."""
    squares = (values - values.mean()) ** 2
    return squares.mean(), squares.std() / len(values) ** 0.5


@pytest.mark.parametrize("u", [(1, 1, 1), (1, 2, 3), (1, 0, 0)])
def test_mean_squares_have_the_variance_of_one_covariance_for_every_pair(u):
    """9 comparisons at 5 standard errors, of at most 10 %: false alarms below 1e-5.

    A square is twice 1 - cos for close points. Means are over a block, over two rows of one, and over a block and two
    rows of another; the factor of a block is documented. Independent frequencies would have the variance `single`.
    """
    u = np.array(u)
    length = u @ u
    spread = (u**4).sum() / length**2
    squares = (blocks() @ u) ** 2
    single = 2 * length**2
    factor = (3 + 2 * SIZE * (1 - spread)) / (SIZE + 2)
    covariance = single * (factor - 1) / (SIZE - 1)
    # m = q D + t with q = 1, t = 2: 12 and 2 ordered pairs of one block each.
    mixed = np.concatenate([squares[::2], squares[1::2, :2]], axis=1)
    for terms, pairs in ((squares, 12), (squares[:, :2], 2), (mixed, 14)):
        count = terms.shape[1]
        expected = single / count + covariance * pairs / count**2
        estimate, error = variance(terms.mean(axis=1))
        assert abs(estimate - expected) < 5 * error
        assert error < 0.1 * expected


def pair_covariance(squared_length, kappa, terms=30):
    """Return Cov(cos<w_i, u>, cos<w_j, u>) for two rows of a block, given B and Pi.

    With v_k the squared coordinates of Pi H B u / (sqrt(D) |u|) the two phases are r_i |u| <s, e> and r_j |u| <s, f>: s
    uniform on the sphere, e and f of unit length with <e, f> = kappa = sum_k H_ik H_jk v_k, and independent lengths.
    The series of the cosines has moments of two correlated normals, and those of r_i, r_j for a common length.
    """
    total = 0.0
    for k, m in itertools.product(range(terms), repeat=2):
        moment = 0.0
        for j in range(0, 2 * min(k, m) + 1, 2):
            orders = (j, k - j // 2, m - j // 2)
            ways = math.prod(map(math.factorial, orders)) * 2.0 ** (k + m - j)
            moment += kappa**j / ways
        lengths = math.prod(special.poch(SIZE / 2, order) for order in (k, m))
        lengths /= special.poch(SIZE / 2, k + m)
        total += (-squared_length) ** (k + m) * moment * lengths
    return total - math.exp(-squared_length)


def mean_covariance(u):
    """Return the mean of `pair_covariance` over all signs and permutations."""
    H = hadamard(SIZE)
    padded = np.append(u, np.zeros(SIZE - len(u)))
    kappas = []
    for signs in itertools.product([1, -1], repeat=SIZE):
        v = (H @ (signs * padded)) ** 2 / SIZE / (u @ u)
        for order in itertools.permutations(range(SIZE)):
            kappas.append(H[1] @ v[list(order)])
    values, counts = np.unique(np.abs(kappas).round(12), return_counts=True)
    covariances = [pair_covariance(u @ u, kappa) for kappa in values]
    return counts @ covariances / counts.sum()


@pytest.mark.parametrize("r", [0.7, 1.7])
@pytest.mark.parametrize("u", [(1, 1, 1), (1, 2, 3), (1, 0, 0)])
def test_mean_cosines_have_the_variance_of_the_enumeration(u, r):
    """6 means over a block, 5 standard errors of at most 5 %: false alarms below 4e-6.

    The variance of independent frequencies is rejected.
    """
    u = r * np.array(u) / np.linalg.norm(u)
    means = np.cos(blocks() @ u).mean(axis=1)
    single = (1 - math.exp(-(r**2))) ** 2 / 2
    expected = (single + (SIZE - 1) * mean_covariance(u)) / SIZE
    estimate, error = variance(means)
    assert abs(estimate - expected) < 5 * error < 0.25 * expected
    assert abs(estimate - single / SIZE) > 5 * error


def test_the_map_keeps_numbers_for_frequencies_and_not_for_their_coordinates():
    """Also drawing never forms the matrix, and mapping nothing larger than the result: only traced, for 400 columns."""
    # Four whole blocks of 512.
    count = 2048

    def fit(key):
        return fastfood(key, house.KERNEL, 400, num_frequencies=count)

    phi = jax.eval_shape(fit, house.key())
    numbers = sum(leaf.size for leaf in jax.tree.leaves(phi))
    assert numbers <= 4 * count + 1
    # The matrix has 400 times 2048 entries, a hundred times as many.
    assert largest_intermediate(fit, house.key()) <= 8 * count
    X = jax.ShapeDtypeStruct((100, 400), house.dtype())
    assert largest_intermediate(lambda phi, X: phi(X), phi, X) == 100 * 2 * count
