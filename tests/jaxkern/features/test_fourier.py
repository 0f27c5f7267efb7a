"""Random Fourier features: exact identities, means in every row of a block. (The laws of draws are a claim.)"""

import itertools
import math
from fractions import Fraction
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import special
from support.drawn import VALUES
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern import features, kernels
from jaxkern._blocks import by_blocks
from jaxkern.features import (
    fastfood,
    orthogonal_fourier,
    paired_fourier,
    shifted_fourier,
)
from jaxkern.features._fourier import _cos_of_turns, _shifted_block, turns_by_digits
from jaxkern.kernels import Cauchy, Exponential, Gaussian, Laplacian, Matern32, Matern52
from jaxkern.kernels._spectra import LAWS

N, M, DIM = 20, 11, 3
LENGTHSCALE = 1.5
MAPS = (paired_fourier, shifted_fourier, orthogonal_fourier)
ALL = (*MAPS, fastfood)  # whose frequencies have a module of their own
PAIRED = (
    paired_fourier,
    pytest.param(orthogonal_fourier, marks=pytest.mark.slow),
    fastfood,
)  # one type and another
BLOCKS = [(orthogonal_fourier, 4, Gaussian), (fastfood, 3, Matern52)]
OTHERS = itertools.product(BLOCKS, (Exponential, Gaussian, Matern32, Matern52))
BLOCKS += [
    pytest.param(*block[:2], k, marks=pytest.mark.slow)
    for block, k in OTHERS
    if k is not block[2]
]


def data(rng, dtype, offset=0.0):
    return np.asarray(rng.normal(size=(N, DIM)) + offset, dtype)


def draw(make, kernel=None, m=M, seed=0, dim=DIM, **options):
    return make(
        jax.random.key(seed),
        kernel or Matern32(LENGTHSCALE),
        dim,
        num_frequencies=m,
        **options,
    )


def by_name(function):
    return function.__name__


def phases(phi, X):
    """Return <w_j, x_i> / lengthscale in float64 and the rounding that computing them in the dtype of X leaves."""
    W = np.float64(phi.frequencies) / LENGTHSCALE
    X64 = np.float64(X)
    size = np.abs(X64) @ np.abs(W).T
    return X64 @ W.T, (DIM + 3) * eps(X.dtype) * size


@pytest.mark.parametrize("make", MAPS, ids=by_name)
def test_features_are_the_literal_cosines(make, dtype, rng):
    """Also far from the origin, where phases have the rounding of <w, x> and cosines none beyond it."""
    phi = draw(make, dtype=dtype)
    assert (
        phi.frequencies.shape == (M, DIM)
        and phi.frequencies.dtype == dtype
        and phi.num_frequencies == M
    )
    for X in (data(rng, dtype), data(rng, dtype, 1e3)):
        exact, rounding = phases(phi, X)
        if make is shifted_fourier:
            expected = math.sqrt(2 / M) * np.cos(exact + np.float64(phi.shifts))
            allowed = math.sqrt(2 / M) * (rounding + 8 * eps(dtype))
        else:
            expected = np.concatenate(
                [np.cos(exact), np.sin(exact)], axis=1
            ) / math.sqrt(M)
            allowed = math.sqrt(1 / M) * (np.tile(rounding, 2) + 8 * eps(dtype))
        Z = phi(X)
        assert Z.dtype == dtype and Z.shape == expected.shape == (N, phi.num_features)
        assert (np.abs(np.float64(Z) - expected) <= allowed).all()
        assert allowed.mean() < 0.3 * math.sqrt(1 / M)


def test_cosines_of_turns_have_the_accuracy_of_a_library_function(dtype):
    """Against NumPy in float64 where whole turns are subtracted exactly; the derivative is minus the sine."""
    sizes = np.asarray(
        [0.0, 1e-30, 1e-4, 0.1, 0.25, 0.5, 0.75, 1.0, 3.0, 1e3, 2.0**21 + 0.25, 1e30]
    )
    turns = jnp.asarray(
        np.concatenate([sizes, -sizes, np.linspace(-1, 1, 2001)]), dtype
    )
    exact = np.float64(turns)
    exact = 2 * math.pi * (exact - np.round(exact))
    cosines, slopes = jax.jvp(_cos_of_turns, (turns,), (jnp.ones_like(turns),))
    assert cosines.dtype == dtype
    assert np.abs(np.float64(cosines) - np.cos(exact)).max() <= 2 * eps(dtype)
    assert np.abs(np.float64(slopes) / (2 * math.pi) + np.sin(exact)).max() <= 2 * eps(
        dtype
    )
    assert np.isnan(
        _cos_of_turns(jnp.asarray([jnp.inf, -jnp.inf, jnp.nan], dtype))
    ).all()


@pytest.mark.parametrize("make", PAIRED, ids=by_name)
def test_the_diagonal_of_paired_features_is_exactly_one(make, dtype, rng):
    """Whatever the phase: |cos^2 + sin^2 - 1| <= 2 eps each, summed here in float64."""
    for lengthscale, offset in itertools.product((LENGTHSCALE, 1e-6), (0.0, 1e3)):
        Z = np.float64(
            draw(make, Matern32(lengthscale), dtype=dtype)(data(rng, dtype, offset))
        )
        np.testing.assert_allclose((Z**2).sum(1), 1, rtol=0, atol=4 * eps(dtype))


@pytest.mark.parametrize("make", PAIRED, ids=by_name)
def test_far_points_keep_the_inner_products_of_those_near_them(make, dtype, rng):
    """Exact differences in extended precision; also a row alone, and a slope that a far row does not lose."""
    limit, phi = (1e-5 if dtype == "float32" else 1e-11), draw(make, dtype=dtype)
    W, plain = np.float64(phi.frequencies) / LENGTHSCALE, rng.normal(size=(N, DIM))
    for far in (10.0, 1e3, 1e6, 1e12):
        for where in (
            np.ones((N, 1)),
            np.eye(1, DIM) * (np.arange(N) >= N // 2)[:, None],
            np.eye(N, DIM),
        ):
            X = np.asarray(plain + far * where, dtype)
            differences = np.float64(X[:, None].astype(np.longdouble) - X[None])
            close = np.linalg.norm(differences, axis=-1) < 10 * LENGTHSCALE
            Z = np.float64(phi(X))
            error = np.abs(Z @ Z.T - np.cos(differences @ W.T).mean(axis=-1))
            assert close.sum() >= N and error[close].max() <= limit
            np.testing.assert_allclose(
                np.asarray(phi(X[:1]))[0], Z[0], rtol=0, atol=limit
            )
    slope = jax.jit(jax.grad(lambda x: phi(x)[0]))(np.full(DIM, 1e3, dtype))
    expected = -np.sin(np.full(DIM, 1e3) @ W[0]) * W[0] / math.sqrt(M)
    np.testing.assert_allclose(
        slope, expected, rtol=0, atol=3e3 * eps(dtype) * np.abs(W[0]).sum()
    )


@pytest.mark.parametrize("unit", [1.0, 1e30])
def test_turns_by_digits_are_those_of_exact_fractions(unit, dtype, rng):
    """Beyond 24 or 53 bits of whole turns, and near the end of the range; the control is one product."""
    turn = np.asarray(0.7 * unit, dtype)
    X = np.asarray(
        rng.normal(size=(8, DIM)) * 10.0 ** rng.integers(-3, 8, size=(8, DIM)) * unit,
        dtype,
    )
    rate = np.asarray(rng.normal(size=(5, DIM)) / 0.7 / unit, dtype)
    exact = [
        [
            sum(
                Fraction(float(a)) * Fraction(float(b))
                for a, b in zip(x, w, strict=True)
            )
            for w in rate
        ]
        for x in X
    ]
    found, product = (
        np.float64(jax.jit(turns_by_digits)(X, rate, turn)),
        np.float64(X @ rate.T),
    )

    def apart(turns):
        errors = [
            [Fraction(float(t)) - e for t, e in zip(*rows, strict=True)]
            for rows in zip(turns, exact, strict=True)
        ]
        return max(abs(error - round(error)) for row in errors for error in row)

    assert apart(found) <= 4 * eps(dtype) < 1e4 * eps(dtype) < apart(product)


@pytest.mark.parametrize("make", ALL, ids=by_name)
def test_constants_in_front_of_the_kernel_multiply_features_by_their_root(make, rng):
    X = data(rng, "float32")
    plain = draw(make)
    scaled = draw(make, 3.0 * (Matern32(LENGTHSCALE) * 0.7))
    assert np.array_equal(scaled.frequencies, plain.frequencies)
    np.testing.assert_allclose(
        scaled(X),
        math.sqrt(2.1) * np.asarray(plain(X)),
        rtol=8 * eps("float32"),
        atol=0,
    )
    assert not np.asarray(draw(make, 0.0 * (Matern32(LENGTHSCALE) * 0.7))(X)).any()


@pytest.mark.parametrize("make", MAPS, ids=by_name)
def test_a_rescaled_lengthscale_is_rescaled_data(make, dtype, rng):
    """A power of two, so that not a digit changes."""
    X = data(rng, dtype)
    near, far = (
        draw(make, Matern32(0.5), dtype=dtype),
        draw(make, Matern32(2.0), dtype=dtype),
    )
    assert np.array_equal(near(X), far(4 * X)) and np.array_equal(
        near.frequencies, far.frequencies
    )


GOLDEN = [
    (
        paired_fourier,
        Gaussian,
        [[1.00401425, -0.906337202], [-2.44245577, -2.03568053]],
    ),
    (
        paired_fourier,
        Laplacian,
        [[1.34195602, -0.773743212], [-11.8828716, -5.75782585]],
    ),
    (
        paired_fourier,
        Exponential,
        [[1.34195602, -1.21140182], [-11.8828716, -9.90385628]],
    ),
    (paired_fourier, Cauchy, [[1.39549387, -0.953067362], [-0.998860419, -2.85691547]]),
    (
        paired_fourier,
        Matern32,
        [[1.06011021, -0.956975818], [-4.89192677, -4.07720804]],
    ),
    (paired_fourier, Matern52, [[1.18958485, -1.07385433], [-2.93813944, -2.44881129]]),
    (
        shifted_fourier,
        Gaussian,
        [[-0.574780166, 0.799836636], [-1.25747764, -0.401604414]],
    ),
    (
        orthogonal_fourier,
        Gaussian,
        [[1.00401425, -0.906337202], [-2.13054752, -2.36015952]],
    ),
]
"""The first two frequencies in the plane under jax.random.key(0) in float32, as first released."""


@pytest.mark.parametrize(("make", "kernel", "expected"), GOLDEN)
def test_the_first_frequencies_are_those_of_the_first_release(make, kernel, expected):
    phi = draw(make, kernel(LENGTHSCALE), m=2, dim=2)
    np.testing.assert_allclose(
        phi.frequencies, np.asarray(expected), rtol=16 * eps("float32"), atol=0
    )
    if make is shifted_fourier:
        np.testing.assert_allclose(
            phi.shifts, [3.63691115, 0.570738971], rtol=16 * eps("float32"), atol=0
        )


@pytest.mark.parametrize("make", MAPS, ids=by_name)
def test_a_larger_map_repeats_the_frequencies_of_a_smaller_one(make, rng):
    """Also where the last block of orthogonal ones is cut, as it is in both maps."""
    m = DIM + 1
    small, large = draw(make, m=m), draw(make)
    assert np.array_equal(small.frequencies, np.asarray(large.frequencies)[:m])
    X = data(rng, "float32")
    columns = math.sqrt(M) * np.asarray(large(X))[:, :m]
    np.testing.assert_allclose(
        math.sqrt(m) * np.asarray(small(X))[:, :m],
        columns,
        rtol=0,
        atol=1e2 * eps("float32"),
    )
    if make is shifted_fourier:
        assert np.array_equal(small.shifts, np.asarray(large.shifts)[:m])
        assert (
            (np.asarray(large.shifts) >= 0) & (np.asarray(large.shifts) < 2 * np.pi)
        ).all()
    assert len(np.unique(large.frequencies)) == large.frequencies.size


def test_heavy_tails_stay_finite(dtype):
    """Normals below eps in the denominator are taken for eps."""
    for kernel in (Exponential, Laplacian, Matern52):
        law = LAWS[kernel]
        scale = jax.jit(law.scale)(np.zeros((2, law.num_normals), dtype))
        np.testing.assert_allclose(scale, 1 / eps(dtype), rtol=eps(dtype))
    wide = features.PairedFourier(
        Laplacian(1e-3), jnp.asarray(many(Laplacian, 4), dtype)
    )
    assert np.abs(wide.frequencies).max() > 1e4
    assert np.isfinite(wide(np.full((1, 4), 1e3, dtype))).all()


@cache
def many(kernel, dim, make=paired_fourier):
    """Return 100,000 frequencies, drawn in float32."""
    phi = draw(make, kernel(1.0), m=100_000, seed=11, dim=dim, dtype="float32")
    return np.float64(phi.frequencies)


def excess(W, u, truth):
    """Return |mean cos<w, u> - truth| in standard errors, for each row u."""
    cosines = np.cos(W @ u.T)
    return np.abs(cosines.mean(0) - truth) / (cosines.std(0) / len(W) ** 0.5)


@pytest.mark.parametrize("kernel", [Matern32, Exponential], ids=by_name)
def test_blocks_are_orthogonal_with_the_lengths_of_independent_draws(kernel, dtype):
    """The last of four blocks is cut."""
    W, V = (
        np.float64(draw(make, kernel(1.0), dtype=dtype).frequencies)
        for make in (orthogonal_fourier, paired_fourier)
    )
    lengths = np.linalg.norm(V, axis=1)
    np.testing.assert_allclose(np.linalg.norm(W, axis=1), lengths, rtol=20 * eps(dtype))
    directions = W / lengths[:, None]
    for first in range(0, M, DIM):
        block = directions[first : first + DIM]
        np.testing.assert_allclose(
            block @ block.T, np.eye(len(block)), rtol=0, atol=20 * eps(dtype)
        )
        # Gram-Schmidt with a positive diagonal, which makes the block uniform.
        R = (V / lengths[:, None])[first : first + DIM] @ block.T
        np.testing.assert_allclose(np.triu(R, 1), 0, rtol=0, atol=20 * eps(dtype))
        assert (np.diag(R) > 0).all()
    assert abs(directions[0] @ directions[DIM]) > 1e-3


@pytest.mark.parametrize(("make", "dim", "kernel"), BLOCKS)
def test_mean_cosines_are_the_kernel_in_every_row_of_a_block(make, dim, kernel, rng):
    """Over 25,000 blocks: 96 comparisons at 5 standard errors, false alarms below 6e-5. The first is on an axis."""
    W = many(kernel, dim, make)
    u = np.concatenate([1.5 * np.eye(1, dim), rng.normal(size=(2, dim)) / 2])
    for row in range(4):
        assert (excess(W[row::4], u, VALUES[kernel.__name__](u)) < 5).all()


@pytest.mark.parametrize("distance", [0.5, 1.5])
@pytest.mark.parametrize("dim", [2, 4])
def test_cosines_of_a_block_have_the_covariance_that_is_documented(dim, distance):
    """25,000 blocks or more, 4 comparisons at 5 standard errors: false alarms below 3e-6."""
    cosines = np.cos(distance * many(Gaussian, dim, orthogonal_fourier)[:, 0]).reshape(
        -1, dim
    )
    products = np.prod(cosines[:, :2] - math.exp(-(distance**2) / 2), axis=1)
    error = products.std() / len(products) ** 0.5
    expected = special.hyp1f1(dim, dim / 2, -(distance**2) / 2) - math.exp(
        -(distance**2)
    )
    assert abs(products.mean() - expected) < 5 * error < -expected / 2


@pytest.mark.parametrize("make", [orthogonal_fourier, fastfood], ids=by_name)
@pytest.mark.parametrize("kernel", [Laplacian(1.0), Cauchy(1.0), 2.0 * Laplacian(1.0)])
def test_kernels_without_rotation_invariance_are_refused_while_tracing(kernel, make):
    message = "rotation invariant spectral law for .* fastfood, got (Laplacian|Cauchy).* use paired_fourier"
    with pytest.raises(ValueError, match=message):
        jax.eval_shape(lambda: draw(make, kernel))


def test_maps_of_stacked_kernels_share_their_frequencies(rng):
    X = data(rng, "float32")

    def fit(key, kernel):
        return paired_fourier(key, kernel, DIM, num_frequencies=M)

    kernel = Matern32(jnp.array([0.5, LENGTHSCALE], jnp.float32))
    shared = jax.vmap(fit, (None, 0), out_axes=features.PairedFourier(0, None))(
        jax.random.key(0), kernel
    )
    assert shared.frequencies.shape == (M, DIM)
    images = jax.jit(
        jax.vmap(lambda phi: phi(X), in_axes=(features.PairedFourier(0, None),))
    )(shared)
    np.testing.assert_allclose(
        images[1], draw(paired_fourier)(X), rtol=0, atol=50 * eps("float32")
    )
    with pytest.raises(
        ValueError, match="lengthscale must be a scalar where the kernel is evaluated"
    ):
        fit(jax.random.key(0), kernel)(X)


@pytest.mark.parametrize("size", [pytest.param(1, marks=pytest.mark.slow), 7])
def test_blocks_change_neither_values_nor_derivatives(size, rng):
    """Sizes that divide the number of rows and others; also where many maps are stacked."""
    X, phi = data(rng, "float32"), draw(shifted_fourier)
    weights = np.float32(rng.normal(size=(N, M)))
    stacked = jax.vmap(
        lambda key: shifted_fourier(key, phi.kernel, DIM, num_frequencies=M)
    )
    maps = jax.device_get(jax.jit(stacked)(jax.random.split(jax.random.key(1), 3)))

    @partial(jax.jit, static_argnums=3)
    def found(phi, X, maps, size):
        blocks = partial(by_blocks, _shifted_block, block_size=size)
        slopes = jax.grad(lambda phi, X: jnp.sum(weights * blocks(phi, X)), (0, 1))(
            phi, X
        )
        return blocks(phi, X), slopes, jax.vmap(blocks, (0, None))(maps, X)

    values, slopes, _ = found(phi, X, maps, N)
    one_by_one = [jax.tree.map(lambda leaf, i=i: leaf[i], maps)(X) for i in range(3)]
    np.testing.assert_allclose(values, phi(X), rtol=0, atol=8 * eps("float32"))
    blocks, others, many = found(phi, X, maps, size)
    np.testing.assert_allclose(blocks, values, rtol=0, atol=8 * eps("float32"))
    jax.tree.map(
        partial(np.testing.assert_allclose, rtol=1e-4, atol=1e-4), others, slopes
    )
    np.testing.assert_allclose(many, one_by_one, rtol=0, atol=1e-5)


@pytest.mark.parametrize("make", MAPS, ids=by_name)
def test_nothing_larger_than_the_result_is_computed(make, rng):
    X, phi = jnp.zeros((500, DIM), jnp.float32), draw(make)
    assert largest_intermediate(phi, X) == 500 * phi.num_features


def test_the_dtype_is_that_of_the_lengthscale_where_it_has_one(x64):
    def found(lengthscale, **options):
        drawn = jax.eval_shape(
            lambda: draw(paired_fourier, 2.0 * Gaussian(lengthscale), **options)
        )
        return drawn.frequencies.dtype

    assert (
        found(1)
        == found(1.0)
        == found(np.float64(1))
        == found(jnp.ones(3))
        == "float64"
    )
    assert (
        found(jnp.float32(1))
        == found(1.0, dtype="float32")
        == found(1.0, dtype=jnp.float32)
        == "float32"
    )
    assert found(jnp.float32(1), dtype=float) == "float64"


def test_without_double_precision_everything_is_single():
    assert draw(paired_fourier, Matern32(np.float64(1))).frequencies.dtype == "float32"
    with pytest.raises(ValueError, match="dtype must be float32, got 'float64'"):
        draw(paired_fourier, dtype="float64")


@pytest.mark.parametrize("make", ALL, ids=by_name)
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"kernel": kernels.Linear()},
            "kernel must have a known spectral law, got Linear; pass one of Cauchy, Exp",
        ),
        (
            {"kernel": Gaussian(1.0) + Matern32(1.0)},
            "kernel must have a known spectral law, got Sum.* side by side",
        ),
        (
            {"kernel": 2.0 * (Gaussian(1.0) * Gaussian(1.0))},
            "kernel must have a known spectral law, got Product",
        ),
        (
            {"kernel": lambda x, y: x @ y},
            "kernel must have a known spectral law, got FromFunction",
        ),
        ({"dim": 0}, "dim must be at least 1, got 0"),
        ({"num_frequencies": 0}, "num_frequencies must be at least 1, got 0"),
        ({"dtype": int}, "dtype must be float32, got <class 'int'>"),
        ({"dtype": "double trouble"}, "dtype must be float32, got 'double trouble'"),
    ],
)
def test_bad_arguments_are_refused_by_name(make, changes, message):
    arguments = {
        "key": jax.random.key(0),
        "kernel": Gaussian(1.0),
        "dim": 2,
        "num_frequencies": 3,
    } | changes
    with pytest.raises(ValueError, match=message):
        make(**arguments)
