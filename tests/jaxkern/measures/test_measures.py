"""Finite-support measures and the spectrum of the Gaussian kernel under a Gaussian measure, against quadrature."""

import functools

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_allclose, assert_array_equal

from jaxkern.draws import invert
from jaxkern.measures import Discrete, gaussian_grid, gaussian_spectrum

pytestmark = pytest.mark.optimised

POWERS = (1, 2, 3, 1.5)
invert = jax.jit(invert)


@jax.jit
def totals(spectrum):
    """Return the largest eigenvalues, and trace, norm and effective rank of every power."""
    return spectrum.eigenvalues(12), [
        (spectrum.trace(power), spectrum.op_norm(power), spectrum.effective_rank(power))
        for power in POWERS
    ]


def literal_spectrum(lengthscale, points, weights):
    """Return the eigenvalues of the operator of a measure on the line."""
    u = (points[:, None] - points[None]) / lengthscale
    root = np.sqrt(weights)
    return np.linalg.eigvalsh(root[:, None] * np.exp(-(u**2) / 2) * root[None])


def assert_spectrum(spectrum, exact):
    exact = np.sort(np.maximum(exact, 0))[::-1]
    values, sums = totals(spectrum)
    close(values, exact[:12], 1e-8)
    for power, (trace, norm, rank) in zip(POWERS, sums, strict=True):
        total = np.sum(exact**power)
        assert_allclose(trace, total, rtol=1e-7)
        assert_allclose(norm, exact[0] ** power, rtol=1e-7)
        assert_allclose(rank, total / exact[0] ** power, rtol=1e-7)


@pytest.mark.float64
@pytest.mark.parametrize(
    ("lengthscale", "std"),
    [(0.8, 1), (3.0, [0.5]), (1.0, [0.7, 0.7, 1.0])],
)
def test_the_gaussian_spectrum_is_the_one_of_quadrature(lengthscale, std):
    """Products over the coordinates, with multiplicities; a number is the deviation of one coordinate."""
    spectrum = gaussian_spectrum(lengthscale, std if std == 1 else np.array(std))
    x, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    lines = [literal_spectrum(lengthscale, s * x, w) for s in np.atleast_1d(std)]
    assert_spectrum(spectrum, functools.reduce(np.multiply.outer, lines).ravel())


def test_traces_are_exact():
    """tr Sigma = E K(x, x) = 1, and tr Sigma^2 = E K(x, y)^2 is a Gaussian integral."""
    std = np.array([1.0, 3.0, 0.2], house.dtype())
    spectrum = gaussian_spectrum(0.5, std)
    square = np.prod((1 + 16 * np.float64(std) ** 2) ** -0.5)
    # The quotients 1 - ratio lose some digits.
    rounding = 20 * eps() * np.max(1 / (1 - np.asarray(spectrum.ratio)))
    traces = [spectrum.trace(power) for power in (1, 2)]
    assert_allclose(traces, [1, square], rtol=rounding)


def test_the_gaussian_spectrum_of_deviations_far_from_the_lengthscale():
    """Where the squared ratio leaves the range of float32, against the formula in float64."""
    std = np.array([1e30, 1e-30, 1e18, 1e-18, 1, 0.7, 1e-6, 1e6], house.dtype())

    @jax.jit
    def slopes(std):
        def leading(std):
            spectrum = gaussian_spectrum(1.0, std)
            return jnp.sum(spectrum.leading), spectrum

        return jax.grad(leading, has_aux=True)(std)

    slope, spectrum = slopes(std)
    a = 1 / (4 * np.float64(std) ** 2)
    c = np.sqrt(a) * np.sqrt(a + 1)
    A = a + 0.5 + c
    expected = {"leading": np.sqrt(2 * a / A), "ratio": 0.5 / A, "gap": (a + c) / A}
    for name, value in expected.items():
        # What is below the range of the dtype is rounded to zero.
        tiny = float(np.finfo(house.dtype()).tiny)
        assert_allclose(getattr(spectrum, name), value, rtol=16 * eps(), atol=tiny)
    # The slope of a quotient of 1e30 overflows by itself.
    assert np.isfinite(slope[2:]).all()
    assert totals(gaussian_spectrum(1e30, 1e-5))[1][0][0] == 1


@pytest.mark.float64
@pytest.mark.parametrize("std", [0.7, 1.0])
def test_the_grid_stands_for_the_gaussian_measure(std):
    """Moments, but for what is beyond 6 standard deviations, and the spectrum of the finite operator."""
    grid = gaussian_grid(60, std=std) if std < 1 else gaussian_grid(60)
    x = np.asarray(grid.points)[:, 0]
    w = np.asarray(grid.weights)
    powers = [w @ x**power for power in (0, 1, 2, 4)]
    close(powers, [1, 0, std**2, 3 * std**4], 1e-5)
    assert_spectrum(gaussian_spectrum(0.8, std), literal_spectrum(0.8, x, w))


def test_samples_follow_the_weights_and_are_nan_without_any():
    """7 atoms, 20000 draws, 6 standard errors: false alarms below 1e-7. An atom of weight zero never comes."""
    atoms = np.arange(14.0).reshape(7, 2).astype(house.dtype())
    weights = np.array([0.3, 0.0, 0.1, 0.5, 0.0, 0.0, 0.1])
    rows = np.array([weights, [3, -1, 1, 1, 1, 1, 1], [0] * 7], house.dtype())

    @jax.jit
    @jax.vmap
    def draw(weights):
        law = Discrete(atoms, weights)
        return law.sample(house.key(3), num_points=20_000), law.total

    points, totals = jax.device_get(draw(rows))
    assert np.isnan(points[1:]).all()
    assert np.isnan(totals[1:]).all()
    close(totals[0], 1, 8 * eps())
    first, second = points[0].T
    assert (second == first + 1).all()
    shares = np.bincount(first.astype(int) // 2, minlength=7) / 20_000
    error = np.abs(shares - weights)
    assert (error <= 6 * np.sqrt(weights * (1 - weights) / 20_000)).all()


def test_on_a_grid_of_uniform_numbers_shares_are_exact():
    weights = np.array([0, 1, 0, 4, 2, 0, 1, 0])
    grid = np.arange(64) / 64
    # The largest number below 1 is for the first atom of positive weight.
    for uniform, counts in (
        (grid, 8 * weights),
        (np.full(64, 1 - eps() / 2), [0, 64, 0, 0, 0, 0, 0, 0]),
    ):
        indices = invert(weights.astype(house.dtype()), uniform.astype(house.dtype()))
        assert_array_equal(np.bincount(indices, minlength=8), counts)


def test_rounding_of_parallel_sums_draws_no_atom_of_weight_zero():
    """Sums of 5000 weights in float32 go down, and up where the weight is zero: aim at every one of them."""
    rng = house.rng()
    weights = np.float32(rng.random(5000) * (rng.random(5000) < 0.3))
    sums = np.asarray(jnp.cumsum(weights))
    # Otherwise there is nothing to test.
    assert (np.diff(sums)[weights[1:] == 0] > 0).any()
    for nudge in (-1e-7, 0, 1e-7):
        levels = np.clip(1 - sums / sums.max() + nudge, 0, 1 - 1e-7)
        assert (weights[invert(weights, np.float32(levels))] > 0).all()
