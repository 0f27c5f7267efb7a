"""Fastfood: against the literal product of matrices, its law row by row, and its variance by exact enumeration."""

import itertools
import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special, stats
from scipy.linalg import hadamard
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern.features import fastfood, paired_fourier
from jaxkern.features._fastfood import _hadamard, _unit
from jaxkern.kernels import Gaussian, Matern32, Matern52

N, DIM, SIZE, M = 12, 5, 8, 150
"""19 blocks of size 8, the last one cut."""
LENGTHSCALE = 1.5


def data(rng, dtype="float32", dim=DIM):
    return rng.normal(size=(N, dim)).astype(dtype)


def draw(m=M, dim=DIM, kernel=None, seed=0, **options):
    return fastfood(
        jax.random.key(seed),
        kernel or Matern32(LENGTHSCALE),
        dim,
        num_frequencies=m,
        **options,
    )


def reordered(size):
    """The Hadamard matrix of Sylvester with its rows in the order of the transform: the two factors change places."""
    level = size.bit_length() - 1
    rows = np.arange(size)
    if size > 64:
        rows = rows.reshape(2 ** (level // 2), -1).T.reshape(-1)
    return np.float64(hadamard(size))[rows]


def literal(phi):
    """Return the frequencies for lengthscale 1 in float64, row by row, from the product S H G Pi H B written out."""
    signs, gains = np.float64(phi.signs), np.float64(phi.gains)
    (blocks, size), dim = gains.shape, signs.shape[1]
    H, rows = reordered(size), []
    for b in range(blocks):
        B = np.diag(np.concatenate([signs[b], np.ones(size - dim)]))
        Pi = np.eye(size)[np.asarray(phi.permutations)[b]]
        rows.extend((H @ np.diag(gains[b]) @ Pi @ H @ B)[:, :dim])
    return np.array(rows[: phi.num_frequencies]) * np.float64(phi.lengths)[:, None]


@pytest.mark.parametrize("size", [1, 2, 64, 128, 512])
def test_the_transform_is_a_product_with_a_hadamard_matrix(size):
    """Exactly: all sums are whole numbers."""
    H = np.asarray(jax.jit(_hadamard)(np.eye(size, dtype="float32"))).T
    assert np.array_equal(H, reordered(size)) and np.array_equal(
        H @ H.T, size * np.eye(size)
    )
    assert sorted(map(tuple, H)) == sorted(map(tuple, hadamard(size)))


@pytest.mark.parametrize("dim", [DIM, 100])
def test_features_are_the_cosines_at_the_literal_frequencies(dim, dtype, rng):
    """Beyond 64 dimensions the transform is two products; the last block, here the second one, is cut there, too."""
    X, phi, m = data(rng, dtype, dim), draw(dim=dim, dtype=dtype), M
    W = literal(phi)
    phases = np.float64(X) @ W.T / LENGTHSCALE
    size = phi.gains.shape[1]
    # Sums of `size` terms after sums of dim terms, relative to the lengths of their vectors.
    rounding = (
        (2 * size**0.5 + 8)
        * eps(dtype)
        * np.linalg.norm(np.float64(X), axis=1)[:, None]
        * np.float64(phi.lengths)
    )
    allowed = (np.tile(rounding / LENGTHSCALE, 2) + 8 * eps(dtype)) / math.sqrt(m)
    expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(m)
    Z = phi(X)
    assert Z.dtype == dtype and Z.shape == expected.shape == (N, phi.num_features)
    assert (np.abs(np.float64(Z) - expected) <= allowed).all() and np.median(
        allowed
    ) < 1e-4
    W_found = phi.frequencies
    assert (
        W_found.dtype == dtype
        and W_found.shape == (m, dim)
        and phi.num_frequencies == m
    )
    np.testing.assert_allclose(
        W_found, W, rtol=0, atol=20 * eps(dtype) * np.abs(W).max()
    )


def test_a_vector_without_a_direction_gets_one(dtype):
    assert np.array_equal(_unit(jnp.zeros(4, dtype)), np.full(4, 0.5))
    np.testing.assert_allclose(
        _unit(jnp.array([3.0, 4.0], dtype)), [0.6, 0.8], rtol=2 * eps(dtype)
    )


def test_a_larger_map_repeats_the_frequencies_of_a_smaller_one(rng):
    """Bit by bit, also where the last block of either is cut."""
    m = 2 * SIZE + 3
    small, large = draw(m), draw()
    blocks = len(small.signs)
    assert blocks == 3
    assert np.array_equal(small.lengths, np.asarray(large.lengths)[:m])
    for name in ("signs", "permutations", "gains"):
        assert np.array_equal(
            getattr(small, name), np.asarray(getattr(large, name))[:blocks]
        )
    X = data(rng)
    columns = math.sqrt(M) * np.asarray(large(X))[:, :m]
    np.testing.assert_allclose(
        math.sqrt(m) * np.asarray(small(X))[:, :m],
        columns,
        rtol=0,
        atol=1e2 * eps("float32"),
    )
    assert len(np.unique(large.frequencies)) == M * DIM


MANY, BLOCK = 100_000, 4


@cache
def many(kernel, dim):
    """Return a map of 25,000 blocks of size 4 in float32."""
    return draw(MANY, dim, kernel(1.0), seed=11, dtype="float32")


GOLDEN = [
    [-5.41152048, -1.81340301, 1.29769325],
    [0.232866198, -0.411783069, 0.575427711],
    [0.532237172, -0.300983816, -2.21948624],
]
"""The first frequencies under jax.random.key(11) in float32."""


def test_the_first_frequencies_are_those_of_the_first_release():
    found = draw(3, 3, Matern32(1.0), seed=11, dtype="float32").frequencies
    np.testing.assert_allclose(
        found, np.asarray(GOLDEN), rtol=0, atol=32 * eps("float32")
    )


def test_rows_are_unit_vectors_times_the_lengths():
    """On a line they are the lengths with signs."""
    phi, blocks = many(Gaussian, BLOCK), MANY // BLOCK
    for drawn in (phi, draw(dim=1)):
        np.testing.assert_allclose(
            np.linalg.norm(drawn.frequencies, axis=1),
            drawn.lengths,
            rtol=10 * eps("float32"),
        )
    np.testing.assert_allclose(
        np.linalg.norm(phi.gains, axis=1), BLOCK**-0.5, rtol=10 * eps("float32")
    )
    assert np.array_equal(
        np.sort(phi.permutations, axis=1), np.tile(np.arange(BLOCK), (blocks, 1))
    )
    assert np.array_equal(np.abs(phi.signs), np.ones((blocks, BLOCK)))


def test_signs_and_permutations_are_uniform():
    """16 signs and 24 permutations, 25,000 of each: chi-square tests, false alarms below 2e-7."""
    phi = many(Gaussian, BLOCK)
    patterns = (np.asarray(phi.signs) > 0) @ (2 ** np.arange(BLOCK))
    orders = np.unique(phi.permutations, axis=0, return_counts=True)[1]
    for counts, number in ((np.bincount(patterns), 16), (orders, 24)):
        assert len(counts) == number and stats.chisquare(counts).pvalue > 1e-7


def pair_covariance(size, r2, kappa, terms=30):
    """Return Cov(cos<w_i, u>, cos<w_j, u>), |u|^2 = r2, for two rows of a block given B and Pi.

    With v_k the squared coordinates of Pi H B u / (sqrt(size) |u|) the two phases are r_i |u| <s, e> and
    r_j |u| <s, f>: s uniform on the sphere, e and f of unit length with <e, f> = kappa = sum_k H_ik H_jk v_k, and
    independent lengths r_i, r_j. The series of the cosines, with moments of two correlated normals and those of
    r_i, r_j in place of a common length.
    """
    total = 0.0
    for k, m in itertools.product(range(terms), repeat=2):
        shared = range(0, 2 * min(k, m) + 1, 2)
        moment = sum(
            kappa**j
            / (
                2.0 ** (k + m - j)
                * math.factorial(j)
                * math.factorial(k - j // 2)
                * math.factorial(m - j // 2)
            )
            for j in shared
        )
        lengths = (
            special.poch(size / 2, k)
            * special.poch(size / 2, m)
            / special.poch(size / 2, k + m)
        )
        total += (-1) ** (k + m) * r2 ** (k + m) * moment * lengths
    return total - math.exp(-r2)


def kappas(u):
    """Return the values of kappa for all signs and permutations, and their probabilities."""
    H = hadamard(len(u))
    found = []
    for signs in itertools.product([1, -1], repeat=len(u)):
        v = (H @ (np.array(signs) * u)) ** 2 / len(u) / (u @ u)
        found.extend(
            H[1] @ v[list(order)] for order in itertools.permutations(range(len(u)))
        )
    values, counts = np.unique(np.abs(found).round(12), return_counts=True)
    return values, counts / counts.sum()


DIFFERENCES = np.array([[1.0, 1, 1, 1], [1, 2, 3, 4], [1, 0, 0, 0]])


def spread(u):
    return (u**4).sum() / (u @ u) ** 2


def variance(values):
    """Return a variance with its standard error."""
    squares = (values - values.mean()) ** 2
    return squares.mean(), squares.std() / len(values) ** 0.5


@pytest.mark.parametrize("r", [0.7, 1.7])
def test_the_variance_is_that_of_the_enumeration(r):
    """18 comparisons in all at 5 standard errors, of at most 5 %: false alarms below 2e-5.

    Of means over a whole block, over two rows of one, and over a whole block and two rows of another. The variance of
    independent frequencies is rejected for every difference.
    """
    W = np.float64(many(Gaussian, 4).frequencies)
    single = (1 - math.exp(-(r**2))) ** 2 / 2
    for u in DIFFERENCES:
        u = r * u / np.linalg.norm(u)
        values, weights = kappas(u)
        c = sum(
            w * pair_covariance(BLOCK, r * r, value)
            for value, w in zip(values, weights, strict=True)
        )
        cosines = np.cos(W @ u).reshape(-1, BLOCK)
        some = np.concatenate([cosines[::2], cosines[1::2, :2]], axis=1)
        for part, q, t in ((cosines, 1, 0), (cosines[:, :2], 0, 2), (some, 1, 2)):
            m = q * BLOCK + t
            found, error = variance(part.mean(1))
            expected = single / m + c * (q * BLOCK * (BLOCK - 1) + t * (t - 1)) / m**2
            assert abs(found - expected) < 5 * error and error < 0.05 * expected
        found, error = variance(cosines.mean(1))
        assert abs(found - single / BLOCK) > 5 * error


def test_close_points_have_the_variance_in_closed_form():
    """1 - cos is then half a square: the variance of mean squares, exact at any distance, 3 comparisons at 5 errors."""
    W = np.float64(many(Gaussian, 4).frequencies)
    for u in DIFFERENCES:
        found, error = variance(((W @ u).reshape(-1, BLOCK) ** 2).mean(1))
        factor = (3 + 2 * BLOCK * (1 - spread(u))) / (BLOCK + 2)
        assert abs(found - 2 * (u @ u) ** 2 / BLOCK * factor) < 5 * error < 0.5 * found


def test_the_limits_of_the_variance_follow_from_the_covariance_of_two_rows():
    """E kappa^2 = 2 (1 - rho) / (D - 1), exactly; the covariance of two rows is quadratic in a small kappa."""
    for u in DIFFERENCES:
        values, weights = kappas(u)
        assert weights @ values**2 == pytest.approx(
            2 * (1 - spread(u)) / (BLOCK - 1), rel=1e-9
        )
    size = 2**14
    for r2, kappa in itertools.product(
        (0.04, 1.0, 3.0), (0.0, 0.5 * size**-0.5, 2 * size**-0.5)
    ):
        expected = math.exp(-r2) * r2**2 * (kappa**2 - 1 / size) / 2
        assert pair_covariance(size, r2, kappa) == pytest.approx(expected, rel=1e-3)


def test_the_map_keeps_numbers_for_frequencies_and_not_for_their_coordinates():
    """Also drawing never forms the matrix, and mapping nothing larger than the result."""

    def held(make, m, dim):
        phi = jax.eval_shape(
            lambda key: make(key, Matern52(1.0), dim, num_frequencies=m),
            jax.random.key(0),
        )
        return phi, sum(leaf.size for leaf in jax.tree.leaves(phi))

    m, dim, size = 2048, 400, 512
    phi, total = held(fastfood, m, dim)
    assert total <= 4 * m + 1 < held(paired_fourier, m, dim)[1] / 50
    assert held(fastfood, m + 1, dim)[1] <= 4 * (m + 1) + 3 * size + 1
    X = jax.ShapeDtypeStruct((100, dim), "float32")
    assert largest_intermediate(lambda phi, X: phi(X), phi, X) == 100 * 2 * m
    drawing = largest_intermediate(lambda key: draw(m, dim), jax.random.key(0))
    assert drawing <= 8 * m < m * dim / 20
