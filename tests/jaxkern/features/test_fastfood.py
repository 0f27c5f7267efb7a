"""Fastfood: against the literal product of matrices, its law row by row, and its variance by exact enumeration."""

import dataclasses
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

from jaxkern import audit, features, io, scale
from jaxkern.features import PairedFourier, fastfood, paired_fourier, random_feature_pca, streaming_pca
from jaxkern.features._fastfood import _hadamard, _unit
from jaxkern.gram import gram
from jaxkern.kernels import Cauchy, Exponential, Gaussian, Laplacian, Linear, Matern32, Matern52

N, DIM, SIZE, M = 12, 5, 8, 150
"""19 blocks of size 8, the last one cut."""
LENGTHSCALE = 1.5
RADIAL = (Gaussian, Exponential, Matern32, Matern52)
DEGREES = {Exponential: 1, Matern32: 3, Matern52: 5}


def data(rng, dtype="float32", dim=DIM):
    return jnp.asarray(rng.normal(size=(N, dim)), dtype)


def draw(m=M, dim=DIM, kernel=None, seed=0, **options):
    return fastfood(jax.random.key(seed), kernel or Matern32(LENGTHSCALE), dim, num_frequencies=m, **options)


def by_name(function):
    return function.__name__


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


# --- exact identities ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 64, 128, 512])
def test_the_transform_is_a_product_with_a_hadamard_matrix(size):
    """Exactly: all sums are whole numbers."""
    H = np.asarray(_hadamard(jnp.eye(size, dtype="float32"))).T
    assert np.array_equal(H, reordered(size)) and np.array_equal(H @ H.T, size * np.eye(size))
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
        (2 * size**0.5 + 8) * eps(dtype) * np.linalg.norm(np.float64(X), axis=1)[:, None] * np.float64(phi.lengths)
    )
    allowed = (np.tile(rounding / LENGTHSCALE, 2) + 8 * eps(dtype)) / math.sqrt(m)
    expected = np.concatenate([np.cos(phases), np.sin(phases)], axis=1) / math.sqrt(m)
    Z = phi(X)
    assert Z.dtype == dtype and Z.shape == expected.shape == (N, phi.num_features)
    assert (np.abs(np.float64(Z) - expected) <= allowed).all() and np.median(allowed) < 1e-4
    W_found = phi.frequencies
    assert W_found.dtype == dtype and W_found.shape == (m, dim) and phi.num_frequencies == m
    np.testing.assert_allclose(W_found, W, rtol=0, atol=20 * eps(dtype) * np.abs(W).max())


def test_the_diagonal_is_exactly_one(dtype, rng):
    """|cos^2 + sin^2 - 1| <= 2 eps each, summed here in float64; also at phases of 1e6."""
    X, phi = data(rng, dtype), draw(dtype=dtype)
    for lengthscale in (LENGTHSCALE, 1e-6):
        Z = np.float64(dataclasses.replace(phi, kernel=Matern32(lengthscale))(X))
        np.testing.assert_allclose((Z**2).sum(1), 1, rtol=0, atol=4 * eps(dtype))


def test_a_vector_without_a_direction_gets_one(dtype):
    assert np.array_equal(_unit(jnp.zeros(4, dtype)), np.full(4, 0.5))
    np.testing.assert_allclose(_unit(jnp.array([3.0, 4.0], dtype)), [0.6, 0.8], rtol=2 * eps(dtype))


def test_constants_in_front_of_the_kernel_multiply_features_by_their_root(rng):
    X, phi = data(rng), draw()
    scaled = dataclasses.replace(phi, kernel=3.0 * (phi.kernel * 0.7))
    np.testing.assert_allclose(scaled(X), math.sqrt(2.1) * phi(X), rtol=8 * eps("float32"), atol=0)


# --- draws -----------------------------------------------------------------------------------------------------------


def test_a_larger_map_repeats_the_frequencies_of_a_smaller_one(rng):
    """Bit by bit, also where the last block of either is cut."""
    m = 2 * SIZE + 3
    small, large = draw(m), draw()
    blocks = len(small.signs)
    assert blocks == 3
    assert np.array_equal(small.lengths, large.lengths[:m])
    for name in ("signs", "permutations", "gains"):
        assert np.array_equal(getattr(small, name), getattr(large, name)[:blocks])
    X = data(rng)
    columns = math.sqrt(M) * large(X)[:, :m]
    np.testing.assert_allclose(math.sqrt(m) * small(X)[:, :m], columns, rtol=0, atol=1e2 * eps("float32"))
    assert len(np.unique(large.frequencies)) == M * DIM


# --- the law of a frequency ------------------------------------------------------------------------------------------

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
    found = many(Matern32, 3).frequencies[:3]
    np.testing.assert_allclose(found, np.asarray(GOLDEN), rtol=0, atol=32 * eps("float32"))


def test_rows_are_unit_vectors_times_the_lengths():
    phi, blocks = many(Gaussian, BLOCK), MANY // BLOCK
    np.testing.assert_allclose(np.linalg.norm(phi.frequencies, axis=1), phi.lengths, rtol=10 * eps("float32"))
    np.testing.assert_allclose(np.linalg.norm(phi.gains, axis=1), BLOCK**-0.5, rtol=10 * eps("float32"))
    assert np.array_equal(np.sort(phi.permutations, axis=1), np.tile(np.arange(BLOCK), (blocks, 1)))
    assert np.array_equal(np.abs(phi.signs), np.ones((blocks, BLOCK)))


def test_signs_and_permutations_are_uniform():
    """16 signs and 24 permutations, 25,000 of each: chi-square tests, false alarms below 2e-7."""
    phi = many(Gaussian, BLOCK)
    patterns = np.asarray(phi.signs > 0) @ (2 ** np.arange(BLOCK))
    orders = np.unique(phi.permutations, axis=0, return_counts=True)[1]
    for counts, number in ((np.bincount(patterns), 16), (orders, 24)):
        assert len(counts) == number and stats.chisquare(counts).pvalue > 1e-7


def truth(kernel, r):
    return {
        Gaussian: lambda: np.exp(-(r**2) / 2),
        Exponential: lambda: np.exp(-r),
        Matern32: lambda: (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r),
        Matern52: lambda: (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r),
    }[kernel]()


def fits(sample, law):
    """Kolmogorov-Smirnov at level 1e-7; fewer than 60 such tests in this module: false alarms below 6e-6."""
    return stats.kstest(sample, law.cdf).pvalue > 1e-7


@pytest.mark.parametrize("kernel", RADIAL, ids=by_name)
def test_a_single_frequency_has_the_spectral_law(kernel):
    """Each row of a block, over 25,000 independent ones; in 3 dimensions, so that one of 4 coordinates is padding.

    A coordinate of a uniform direction is uniform on [-1, 1] there, and lengths are independent of directions.
    """
    W = np.float64(many(kernel, 3).frequencies)
    radial = stats.chi2(3) if kernel is Gaussian else stats.f(3, DEGREES[kernel], scale=3)
    wrong = stats.chi2(4) if kernel is Gaussian else stats.f(4, DEGREES[kernel], scale=4)
    for i in range(BLOCK):
        row = W[i::BLOCK]
        lengths = np.linalg.norm(row, axis=1)
        assert fits(lengths**2, radial) and not fits(lengths**2, wrong)
        assert fits(row[:, i % 3] / lengths, stats.uniform(-1, 2))
        rank = stats.spearmanr(lengths, np.abs(row[:, i % 3]) / lengths).statistic
        assert abs(rank) < 5 / len(row) ** 0.5


def excess(cosines, expected):
    """Return |mean - expected| in standard errors, column by column."""
    return np.abs(cosines.mean(0) - expected) / (cosines.std(0) / len(cosines) ** 0.5)


@pytest.mark.parametrize("kernel", RADIAL, ids=by_name)
def test_mean_cosines_are_the_kernel_in_every_row(kernel, rng):
    """Unbiased: 4 rows at 3 differences, 48 comparisons at 5 standard errors: false alarms below 3e-5.

    One difference lies along an axis. A standard error is below 0.0064.
    """
    W = np.float64(many(kernel, 3).frequencies)
    u = np.array([[1.5, 0, 0], [0.3, 0.3, -0.3], [0.4, -1.2, 2.0]])
    expected = truth(kernel, np.linalg.norm(u, axis=1))
    for i in range(BLOCK):
        assert (excess(np.cos(W[i::BLOCK] @ u.T), expected) < 5).all()


def test_the_mean_is_exact_for_any_signs_and_permutations_and_not_without_normal_gains():
    """25,000 blocks, 4 comparisons at 5 standard errors: false alarms below 3e-6.

    Without B and Pi the rows keep their law; with random signs in G in place of normals a coordinate of a direction has
    the fourth moment 5/32 and not 1/8.
    """
    phi, u = many(Gaussian, 4), np.array([3.0, 0, 0, 0])
    plain = dataclasses.replace(
        phi,
        signs=jnp.ones_like(phi.signs),
        permutations=jnp.broadcast_to(jnp.arange(BLOCK, dtype=jnp.int32), phi.permutations.shape),
    )
    flat = dataclasses.replace(phi, gains=jnp.sign(phi.gains) / BLOCK)

    def away(phi):
        rows = np.float64(phi.frequencies).reshape(-1, BLOCK, BLOCK)
        return excess(np.cos(rows @ u), math.exp(-4.5))

    assert (away(plain) < 5).all() and (away(phi) < 5).all() and away(flat).min() > 5


# --- the variance ----------------------------------------------------------------------------------------------------


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
            / (2.0 ** (k + m - j) * math.factorial(j) * math.factorial(k - j // 2) * math.factorial(m - j // 2))
            for j in shared
        )
        lengths = special.poch(size / 2, k) * special.poch(size / 2, m) / special.poch(size / 2, k + m)
        total += (-1) ** (k + m) * r2 ** (k + m) * moment * lengths
    return total - math.exp(-r2)


def kappas(u):
    """Return the values of kappa for all signs and permutations, and their probabilities."""
    H = hadamard(len(u))
    found = []
    for signs in itertools.product([1, -1], repeat=len(u)):
        v = (H @ (np.array(signs) * u)) ** 2 / len(u) / (u @ u)
        found.extend(H[1] @ v[list(order)] for order in itertools.permutations(range(len(u))))
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
        c = sum(w * pair_covariance(BLOCK, r * r, value) for value, w in zip(values, weights, strict=True))
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
        assert weights @ values**2 == pytest.approx(2 * (1 - spread(u)) / (BLOCK - 1), rel=1e-9)
    size = 2**14
    for r2, kappa in itertools.product((0.04, 1.0, 3.0), (0.0, 0.5 * size**-0.5, 2 * size**-0.5)):
        expected = math.exp(-r2) * r2**2 * (kappa**2 - 1 / size) / 2
        assert pair_covariance(size, r2, kappa) == pytest.approx(expected, rel=1e-3)


# --- other modules and transformations -------------------------------------------------------------------------------


def test_gradients_through_lengthscale_constant_and_points_are_the_derivatives(x64, rng):
    """Of <phi(x), phi(y)> = a mean cos(<w, x - y> / l)."""
    x, y = jnp.asarray(rng.normal(size=(2, DIM)))
    drawn = draw()
    W = literal(drawn)

    def product(lengthscale, factor, x):
        phi = dataclasses.replace(drawn, kernel=factor * Matern32(lengthscale))
        return phi(x) @ phi(y)

    slopes = jax.jit(jax.grad(product, (0, 1, 2)))(LENGTHSCALE, 0.7, x)
    p = W @ np.asarray(x - y)
    np.testing.assert_allclose(slopes[0], 0.7 * np.mean(np.sin(p / LENGTHSCALE) * p) / LENGTHSCALE**2, rtol=1e-11)
    np.testing.assert_allclose(slopes[1], np.mean(np.cos(p / LENGTHSCALE)), rtol=1e-11)
    np.testing.assert_allclose(slopes[2], -0.7 * np.sin(p / LENGTHSCALE) @ W / M / LENGTHSCALE, rtol=1e-11)


def test_no_rows_give_no_rows_and_on_a_line_frequencies_are_lengths_with_signs(rng):
    X, phi, line = data(rng), draw(), draw(dim=1)
    assert phi(X[:0]).shape == (0, 2 * M) and phi(X[None, :0]).shape == (1, 0, 2 * M)
    np.testing.assert_allclose(np.abs(line.frequencies[:, 0]), line.lengths, rtol=4 * eps("float32"))


def test_the_map_keeps_numbers_for_frequencies_and_not_for_their_coordinates():
    """Also drawing never forms the matrix, and mapping nothing larger than the result."""

    def held(make, m, dim):
        phi = jax.eval_shape(lambda key: make(key, Matern52(1.0), dim, num_frequencies=m), jax.random.key(0))
        return phi, sum(leaf.size for leaf in jax.tree.leaves(phi))

    m, dim, size = 2048, 400, 512
    phi, total = held(fastfood, m, dim)
    assert total <= 4 * m + 1 < held(paired_fourier, m, dim)[1] / 50
    assert held(fastfood, m + 1, dim)[1] <= 4 * (m + 1) + 3 * size + 1
    X = jax.ShapeDtypeStruct((100, dim), "float32")
    assert largest_intermediate(lambda phi, X: phi(X), phi, X) == 100 * 2 * m
    drawing = largest_intermediate(lambda key: draw(m, dim), jax.random.key(0))
    assert drawing <= 8 * m < m * dim / 20


def test_other_modules_take_it_for_a_feature_map(rng, tmp_path):
    """With as many components as points and rows in the sketch nothing is lost: inner products of features stay."""
    X, phi = data(rng), draw()
    K, Z = np.float64(gram(phi.kernel, X)), np.float64(PairedFourier(phi.kernel, phi.frequencies)(X))
    products = Z @ Z.T
    np.testing.assert_allclose(scale.embed(phi, X, block_size=5), Z, rtol=0, atol=1e-5)
    error = audit.spectral_error(jax.random.key(1), phi, phi.kernel, X)
    assert error.lower - 1e-6 < np.linalg.norm(K - products, 2) / N < error.upper + 1e-6
    pca = random_feature_pca(phi, X, num_components=N, centered=False)
    stream = streaming_pca(phi, sketch_size=2 * N)
    for found in (pca, stream.finalize(stream.update(stream.init(), X), num_components=N)):
        components = np.float64(found(X))
        np.testing.assert_allclose(components @ components.T, products, rtol=0, atol=1e-5)
    io.save(tmp_path / "map.npz", phi)
    again = io.load(tmp_path / "map.npz")
    assert isinstance(again, features.Fastfood) and np.array_equal(again(X), phi(X))


# --- errors ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [Laplacian(1.0), Cauchy(1.0), 2.0 * Laplacian(1.0)])
def test_kernels_without_rotation_invariance_are_refused_while_tracing(kernel):
    message = "kernel must have a rotation invariant spectral law.* got (Laplacian|Cauchy).* use paired_fourier"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda: draw(kernel=kernel))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": 0}, "key must be a typed random key, got int"),
        ({"kernel": Linear()}, "kernel must have a known spectral law, got Linear"),
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"num_frequencies": 2.5}, "num_frequencies must be a static whole number"),
        ({"dtype": int}, "dtype must be float32, got <class 'int'>"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"key": jax.random.key(0), "kernel": Gaussian(1.0), "dim": 2, "num_frequencies": 3} | changes
    with pytest.raises(ValueError, match=message):
        fastfood(**arguments)


def test_a_map_refuses_other_points(rng):
    X, phi = data(rng), draw()
    with pytest.raises(ValueError, match=r"X must have shape \(..., 5\)"):
        phi(X[:, :2])
    with pytest.raises(ValueError, match="X must have dtype float32 or float64"):
        phi(X.astype("int32"))
