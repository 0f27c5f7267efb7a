"""Random Fourier features: what is exact in every draw of the four maps. The laws of draws: test_fourier_laws.py."""

import functools
import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.jaxprs import largest_intermediate

from jaxkern.features import (
    PairedFourier,
    fastfood,
    orthogonal_fourier,
    paired_fourier,
    shifted_fourier,
)
from jaxkern.kernels import Gaussian

DIM = house.USUAL[2]
FREQUENCIES = 11
"""Four blocks of 3 orthogonal frequencies or three of 4 of Fastfood, of which the last one is cut."""
MAPS = (paired_fourier, shifted_fourier, orthogonal_fourier, fastfood)
close = functools.partial(np.testing.assert_allclose, rtol=0)
in_double = pytest.param(paired_fourier, marks=pytest.mark.float64)

all_maps = pytest.mark.parametrize("make", MAPS)
"""Orthogonal frequencies are mapped as paired ones are, and Fastfood as it is."""
both_products = pytest.mark.parametrize("make", [fastfood, in_double])


def draw(make, lengthscale=house.LENGTHSCALE, num_frequencies=FREQUENCIES):
    kernel = Gaussian(lengthscale)
    return make(house.key(), kernel, DIM, num_frequencies=num_frequencies)


def phases_of(phi, X):
    """Return <w_j, x_i> / lengthscale in float64."""
    return np.float64(X) @ np.float64(phi.frequencies).T / house.LENGTHSCALE


def cosines(phi, phases):
    """Return the features at these phases <w_j, x_i> / lengthscale, by NumPy."""
    count = phi.num_frequencies
    if hasattr(phi, "shifts"):
        return math.sqrt(2 / count) * np.cos(phases + np.float64(phi.shifts))
    columns = [np.cos(phases), np.sin(phases)]
    return np.concatenate(columns, axis=1) / math.sqrt(count)


@all_maps
@pytest.mark.parametrize("family", ["plain", "offset"])
def test_features_are_the_cosines_at_the_frequencies(make, family):
    """Far from the origin phases have the rounding of <w, x>, and cosines have none beyond it."""
    X = house.data(family).X
    phi = draw(make)
    phases = phases_of(phi, X)
    expected = cosines(phi, phases)
    frequencies = np.asarray(phi.frequencies)
    # A product of dim terms, or for Fastfood of 4 sums of 4 terms, with rounded rates.
    lengths = getattr(phi, "lengths", np.linalg.norm(frequencies, axis=1))
    sizes = np.outer(np.linalg.norm(X, axis=1), lengths) / house.LENGTHSCALE
    slack = house.eps() * (12 * sizes + 8) * math.sqrt(2 / FREQUENCIES)
    error = np.abs(np.asarray(phi(X)) - expected)
    columns = error.reshape(len(X), -1, FREQUENCIES)
    assert (columns <= slack[:, None]).all()
    assert slack.mean() < 0.1 * np.abs(expected).mean()


def test_cosines_and_slopes_have_the_accuracy_of_a_library_function():
    """A rate of exactly one turn a unit, so that NumPy knows the phases: whole turns are subtracted exactly.

    The shape is literal: the series of the sine has to be seen all over its interval.
    """
    # Beyond 2^21 turns float32 has only quarters left.
    grid = np.append(np.linspace(-1, 1, 1001), [1e-30, 1e3, -(2.0**21) - 0.25])
    turns = grid[:, None].astype(house.dtype())
    unit = np.full((1, 1), 2 * np.pi, house.dtype())
    phi = PairedFourier(Gaussian(1.0), unit)
    features, slopes = jax.device_get(jax.jvp(phi, (turns,), (np.ones_like(turns),)))
    exact = np.float64(turns)
    phases = 2 * math.pi * (exact - np.round(exact))
    close(features, cosines(phi, phases), atol=2 * house.eps())
    expected = cosines(phi, phases + math.pi / 2)
    # The slope takes its cosine at a phase a quarter less, which rounds once more.
    close(slopes / (2 * math.pi), expected, atol=4 * house.eps())


@both_products
@pytest.mark.parametrize("family", ["plain", "offset"])
@pytest.mark.parametrize("lengthscale", [house.LENGTHSCALE, 1e-6])
def test_the_diagonal_of_paired_features_is_exactly_one(make, family, lengthscale):
    """Whatever the phase: |cos^2 + sin^2 - 1| <= 2 eps for each, summed here in float64."""
    Z = np.float64(draw(make, lengthscale)(house.data(family).X))
    close((Z**2).sum(axis=1), 1, atol=4 * house.eps())


ROWS = house.USUAL[0]
FAR = {
    "all": np.ones((ROWS, DIM)),
    "half of the rows": np.outer(np.arange(ROWS) < ROWS // 2, [1, 0, 0]),
    "a row for each column": np.eye(ROWS, DIM),
}


@both_products
@pytest.mark.parametrize("unit", [1.0, 1e25])
@pytest.mark.parametrize("place", FAR)
@pytest.mark.parametrize("distance", [10.0, 1e3, 1e6, 1e12])
def test_far_points_keep_the_inner_products_of_those_near_them(
    make, unit, place, distance
):
    """With exact differences in extended precision; a row alone has the same features. Units reach the ends of float32.

    One product of large numbers would lose all digits: beyond a rounding of 3e-5 or 3e-11 phases come from digits.
    """
    X = unit * (house.data().X + distance * FAR[place])
    # Rounded to the dtype first: the map sees these points, and their differences are exact.
    X = X.astype(house.dtype())
    exact = X.astype(np.longdouble)
    differences = np.float64(exact[:, None] - exact) / unit
    phi = draw(make, house.LENGTHSCALE * unit)
    Z = np.float64(phi(X))
    cosine = np.cos(phases_of(phi, differences)).mean(axis=-1)
    error = np.abs(Z @ Z.T - cosine)
    # Differences of far points have phases that are noise in the map's rounded rates.
    near = np.linalg.norm(differences, axis=-1) < 10 * house.LENGTHSCALE
    # A third of the rounding of a phase up to which one product serves.
    limit = 1e-5 if house.dtype() == np.float32 else 1e-11
    assert near.sum() >= ROWS
    assert error[near].max() <= limit
    close(phi(X[:1]), Z[:1], atol=limit)


def test_phases_of_large_numbers_lose_no_digit():
    """Of numbers of thirteen orders of magnitude, in float32, whose products NumPy knows exactly in float64."""
    rng = house.rng()
    powers = rng.integers(-3, 10, size=(ROWS, DIM))
    powers[:, 0] = 9
    X = np.float32(rng.normal(size=(ROWS, DIM)) * 10.0**powers)
    W = np.float32(rng.normal(size=(FREQUENCIES, DIM)))
    phi = PairedFourier(Gaussian(np.float32(1)), W)
    rates = W / np.float32(2 * np.pi)
    products = np.float64(X)[:, None] * rates
    turns = (products - np.round(products)).sum(axis=-1)
    # Four roundings of one turn.
    slack = 2 * math.pi * 4 * np.finfo(np.float32).eps / FREQUENCIES**0.5
    close(phi(X), cosines(phi, 2 * math.pi * turns), atol=slack)
    rounded = cosines(phi, 2 * math.pi * (X @ rates.T))
    assert np.abs(rounded - phi(X)).max() > 1e4 * slack


@pytest.mark.parametrize("make", [paired_fourier, shifted_fourier])
def test_constants_in_front_of_the_kernel_multiply_features_by_their_root(make):
    X = house.data().X
    Z = np.asarray(draw(make)(X))
    for factor in (3.0, 0.0):
        kernel = factor * (0.7 * house.KERNEL)
        phi = make(house.key(), kernel, DIM, num_frequencies=FREQUENCIES)
        expected = math.sqrt(0.7 * factor) * Z
        np.testing.assert_allclose(phi(X), expected, rtol=8 * house.eps())


@all_maps
def test_a_rescaled_lengthscale_is_rescaled_data(make):
    """A power of two, so that not a digit changes."""
    X = house.data().X
    near = draw(make, 0.5)
    far = draw(make, 2.0)
    assert np.array_equal(near(X), far(4 * X))


def test_blocks_are_orthogonal_with_the_lengths_of_independent_draws():
    """Gram-Schmidt with a positive diagonal, which makes the directions of a block uniform."""
    independent = np.float64(draw(paired_fourier).frequencies)
    orthogonal = np.float64(draw(orthogonal_fourier).frequencies)
    lengths = np.linalg.norm(independent, axis=1, keepdims=True)
    slack = 20 * house.eps()
    directions = orthogonal / lengths
    for start in range(0, FREQUENCIES, DIM):
        rows = slice(start, start + DIM)
        block = directions[rows]
        close(block @ block.T, np.eye(len(block)), atol=slack)
        triangle = independent[rows] / lengths[rows] @ block.T
        # The independent rows are combinations of the directions up to their own.
        close(np.triu(triangle, 1), 0, atol=slack)
        assert np.diag(triangle).min() > 0
    assert abs(directions[0] @ directions[DIM]) > 1e-3  # the next block is turned


def test_maps_of_stacked_kernels_share_their_frequencies():
    X = house.data().X
    lengthscales = np.array([0.5, house.LENGTHSCALE], house.dtype())
    axes = PairedFourier(0, None)

    def fit(kernel):
        return paired_fourier(house.key(), kernel, DIM, num_frequencies=FREQUENCIES)

    shared = jax.vmap(fit, out_axes=axes)(Gaussian(lengthscales))
    stack = jax.vmap(lambda phi: phi(X), in_axes=(axes,))(shared)
    assert shared.frequencies.shape == (FREQUENCIES, DIM)
    # A program of its own may fuse the product and the sine differently.
    close(stack[1], draw(paired_fourier)(X), atol=50 * house.eps())


def many_frequencies(make, seed=0):
    """Return a map of the line, with blocks of 64 rows as from 2^13 frequencies on, points and their phases."""
    phi = make(house.key(seed), house.KERNEL, 1, num_frequencies=2**13)
    X = house.rng().normal(size=(70, 1)).astype(house.dtype())
    return phi, X, phases_of(phi, X)


@pytest.mark.parametrize("make", [paired_fourier, shifted_fourier])
def test_blocks_of_rows_have_the_features_of_all(make):
    phi, X, phases = many_frequencies(make)
    # Features are at most sqrt(2 / 8192), and phases are rounded by a few eps.
    slack = house.eps() * np.abs(phases).max()
    close(phi(X), cosines(phi, phases), atol=slack)


def test_blocks_of_rows_have_the_derivatives_of_all():
    """Of two maps at once: those of cosines are cosines a quarter of a turn further."""
    draws = [many_frequencies(shifted_fourier, seed) for seed in (0, 1)]
    stack = jax.tree.map(lambda *leaves: np.stack(leaves), *[phi for phi, *_ in draws])
    slope = jax.grad(lambda phi, X: jnp.sum(phi(X)), argnums=(0, 1))
    X = draws[0][1]
    by_map, by_point = jax.jit(jax.vmap(slope, in_axes=(0, None)))(stack, X)
    slopes = zip(np.asarray(by_map.frequencies), np.asarray(by_point), strict=True)
    for (phi, X, phases), (by_frequency, by_row) in zip(draws, slopes, strict=True):
        by_phase = cosines(phi, phases + math.pi / 2) / house.LENGTHSCALE
        # Sums of 8,192 such numbers of any sign, times frequencies of up to 4.
        slack = 100 * house.eps() * np.abs(phases).max()
        close(by_row, by_phase @ np.float64(phi.frequencies), atol=slack)
        close(by_frequency, by_phase.T @ np.float64(X), atol=slack)


@all_maps
def test_nothing_larger_than_the_result_is_computed(make):
    """Only traced, on 500 rows: more than any array of the map itself has numbers."""
    phi = draw(make)
    X = jax.ShapeDtypeStruct((500, DIM), house.dtype())
    assert largest_intermediate(phi, X) == 500 * phi.num_features


@pytest.mark.float64
def test_the_dtype_is_that_of_the_lengthscale_if_it_has_one():
    def dtype_of(lengthscale, dtype=None):
        def fit(key):
            kernel = 2.0 * Gaussian(lengthscale)
            return paired_fourier(key, kernel, DIM, num_frequencies=2, dtype=dtype)

        return jax.eval_shape(fit, house.key()).frequencies.dtype

    single = np.float32(1)
    assert dtype_of(1) == dtype_of(np.ones(DIM)) == "float64"
    assert dtype_of(single) == dtype_of(1.0, jnp.float32) == "float32"
    assert dtype_of(single, float) == "float64"
    # Without double precision a request for it is refused, not rounded.
    with jax.enable_x64(False):
        assert dtype_of(np.float64(1)) == "float32"
        with pytest.raises(ValueError, match="dtype must be float32, got 'float64'"):
            dtype_of(1.0, "float64")
