"""Finite-support measures and the spectrum of the Gaussian kernel under a Gaussian measure, against quadrature."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern.draws import invert
from jaxkern.kernels import Gaussian
from jaxkern.measures import Discrete, gaussian_grid, gaussian_spectrum
from jaxkern.rkhs import Covariance

CASES = [(0.8, [1.0], [80]), (3.0, [0.5], [80]), (0.9, [1.0, 0.3], [36, 18])]
eigenvalues = jax.jit(lambda spectrum, num: spectrum.eigenvalues(num), static_argnums=1)
totals = jax.jit(
    lambda s, power: (s.trace(power), s.op_norm(power), s.effective_rank(power)),
    static_argnums=1,
)


def quadrature_spectrum(lengthscale, std, nodes):
    """Eigenvalues of the integral operator by Gauss-Hermite quadrature, an oracle that shares no code."""
    rules = [np.polynomial.hermite_e.hermegauss(count) for count in nodes]
    grids = np.meshgrid(
        *[s * x for s, (x, _) in zip(std, rules, strict=True)], indexing="ij"
    )
    X = np.stack([g.ravel() for g in grids], axis=1)
    weights = np.prod(
        np.meshgrid(*[w / w.sum() for _, w in rules], indexing="ij"), axis=0
    ).ravel()
    kept = weights > 1e-13
    X, root = X[kept], np.sqrt(weights[kept])
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / (2 * lengthscale**2))
    return np.linalg.eigvalsh(root[:, None] * K * root[None])[::-1]


@pytest.mark.parametrize(("lengthscale", "std", "nodes"), CASES)
def test_gaussian_spectrum_is_that_of_quadrature(lengthscale, std, nodes, x64):
    spectrum = gaussian_spectrum(lengthscale, np.asarray(std))
    expected = quadrature_spectrum(lengthscale, std, nodes)
    np.testing.assert_allclose(eigenvalues(spectrum, 12), expected[:12], atol=1e-8)
    for power in (1, 2, 3, 1.5):
        total = np.sum(np.maximum(expected, 0) ** power)
        wanted = total, expected[0] ** power, total / expected[0] ** power
        np.testing.assert_allclose(totals(spectrum, power), wanted, rtol=1e-7)


def test_gaussian_spectrum_far_apart_in_float32():
    """Where the squared ratio leaves the range of float32, against the formula in float64."""
    std = np.array([1e30, 1e-30, 1e18, 1e-18, 1, 0.7, 0.72, 1e-6, 1e6], np.float32)
    spectrum = gaussian_spectrum(jnp.float32(1), jnp.asarray(std))
    a, b = 1 / (4 * std.astype(float) ** 2), 0.5
    c = np.sqrt(a) * np.sqrt(a + 2 * b)
    expected = {
        "leading": np.sqrt(2 * a / (a + b + c)),
        "ratio": b / (a + b + c),
        "gap": (a + c) / (a + b + c),
    }
    for name, value in expected.items():
        found = getattr(spectrum, name)
        # What is below the range of float32 is rounded to zero.
        np.testing.assert_allclose(
            found, value, rtol=16 * eps(jnp.float32), atol=1.2e-38, err_msg=name
        )
    slopes = jax.jit(
        jax.grad(lambda s: jnp.sum(gaussian_spectrum(jnp.float32(1), s).leading))
    )(std)
    assert np.isfinite(
        np.asarray(slopes)[2:]
    ).all()  # that of a quotient of 1e30 overflows by itself
    assert (
        float(gaussian_spectrum(1e30, 1e-5).trace())
        == 1
        == float(gaussian_spectrum(1e-20, 1e15).trace())
    )


@pytest.mark.parametrize(("lengthscale", "std"), [(1.3, [2.0]), (0.5, [1.0, 3.0, 0.2])])
def test_traces_are_exact(lengthscale, std, dtype):
    """tr Sigma = E K(x, x) = 1, and tr Sigma^2 = E K(x, y)^2 is a Gaussian integral; 1 - ratio loses some digits."""
    spectrum = gaussian_spectrum(lengthscale, np.asarray(std, dtype))
    square = np.prod([(1 + 4 * s**2 / lengthscale**2) ** -0.5 for s in std])
    tolerance = 20 * eps(dtype) * float(np.max(1 / (1 - np.asarray(spectrum.ratio))))
    traces = [totals(spectrum, power)[0] for power in (1, 2)]
    assert traces[0].dtype == dtype
    np.testing.assert_allclose(traces, [1, square], rtol=tolerance)


def test_eigenvalues_come_in_order_with_their_multiplicities(x64):
    """All products of three geometric sequences, two of which are equal, sorted."""
    spectrum = gaussian_spectrum(1.0, np.array([0.7, 0.7, 2.0]))
    orders = itertools.product(range(25), repeat=3)
    leading, ratio = np.asarray(spectrum.leading), np.asarray(spectrum.ratio)
    literal = sorted(
        (np.prod(leading * ratio ** np.array(order)) for order in orders), reverse=True
    )
    values = np.asarray(eigenvalues(spectrum, 40))
    np.testing.assert_allclose(values, literal[:40], rtol=1e-12)
    assert eigenvalues(spectrum, 1).shape == (1,)
    assert np.array_equal(eigenvalues(spectrum, 10), values[:10])


def test_a_scalar_standard_deviation_is_one_dimension(dtype):
    spectrum = gaussian_spectrum(0.8, 1)
    assert spectrum.leading.shape == (1,) and spectrum.leading.dtype == dtype
    assert float(spectrum.op_norm()) == pytest.approx(
        float(gaussian_spectrum(0.8, jnp.ones(1, dtype)).op_norm())
    )


def test_the_grid_stands_for_the_gaussian_measure(x64):
    """Moments, and the spectrum of the finite operator, agree with those of N(0, std^2) to many digits."""
    grid = jax.jit(lambda: gaussian_grid(60, std=0.7))()
    x, w = np.asarray(grid.points)[:, 0], np.asarray(grid.weights)
    assert grid.points.shape == (60, 1) and float(grid.total) == pytest.approx(
        1, rel=1e-14
    )
    for moment, expected in [(1, 0), (2, 0.49), (4, 3 * 0.49**2)]:
        assert np.sum(w * x**moment) == pytest.approx(expected, abs=1e-6)
    Sigma = Covariance(Gaussian(0.8), grid.points, grid.weights)
    spectrum = gaussian_spectrum(0.8, 0.7)
    found, values = jax.jit(
        lambda: ([Sigma.trace(power) for power in (1, 2, 3)], Sigma.eigenvalues())
    )()
    np.testing.assert_allclose(
        np.asarray(values)[:8], np.asarray(eigenvalues(spectrum, 12))[:8], atol=1e-9
    )
    np.testing.assert_allclose(
        found, [totals(spectrum, power)[0] for power in (1, 2, 3)], rtol=1e-8
    )


def test_samples_follow_the_weights():
    """7 atoms, 20000 draws, 6 standard errors: false alarms below 1e-7. An atom of weight zero never comes."""
    weights = np.float32([0.3, 0.0, 0.1, 0.5, 0.0, 0.0, 0.1])
    atoms = np.arange(14, dtype=np.float32).reshape(7, 2)
    X = np.asarray(
        Discrete(atoms, weights).sample(jax.random.key(3), num_points=20_000)
    )
    assert X.shape == (20_000, 2) and (X[:, 1] == X[:, 0] + 1).all()
    shares = np.bincount(X[:, 0].astype(int) // 2, minlength=7) / 20_000
    p = np.float64(weights)
    assert (np.abs(shares - p) <= 6 * np.sqrt(p * (1 - p) / 20_000)).all()


def test_on_a_grid_of_uniform_numbers_shares_are_exact(dtype):
    weights, inverted = np.array([0, 1, 0, 4, 2, 0, 1, 0], dtype), jax.jit(invert)
    indices = inverted(weights, np.arange(64, dtype=dtype) / 64)
    assert np.bincount(np.asarray(indices), minlength=8).tolist() == [
        0,
        8,
        0,
        32,
        16,
        0,
        8,
        0,
    ]
    assert (
        np.asarray(inverted(weights, np.full(64, 1 - eps(dtype) / 2, dtype))) == 1
    ).all()


def test_rounding_of_parallel_sums_draws_no_atom_of_weight_zero(rng):
    """Cumulative sums of 5000 weights go down, and up where the weight is zero: aim at every one of them."""
    weights = np.float32(rng.random(5000) * (rng.random(5000) < 0.3))
    sums, inverted = np.asarray(jnp.cumsum(weights)), jax.jit(invert)
    steps = np.diff(sums)
    assert (steps < 0).any() and (
        steps[weights[1:] == 0] > 0
    ).any()  # otherwise there is nothing to test
    for nudge in (-1e-7, 0, 1e-7):
        level = np.clip(1 - sums / sums.max() + nudge, 0, 1 - 1e-7)
        indices = np.asarray(inverted(weights, np.float32(level)))
        assert (weights[indices] > 0).all()
    grid = (np.arange(200_000, dtype=np.float32) + 0.5) / 200_000
    shares = np.bincount(inverted(weights, grid), minlength=5000) / 200_000
    assert (
        np.abs(
            np.cumsum(shares)
            - np.cumsum(np.float64(weights)) / weights.sum(dtype=float)
        ).max()
        <= 2e-5
    )


KEY, ATOMS, ONES = (
    jax.random.key(0),
    np.ones((3, 1), np.float32),
    np.ones(3, np.float32),
)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: Discrete(ATOMS, ONES).sample(KEY, num_points=0),
            "num_points must be at least 1",
        ),
        (
            lambda: Discrete(ATOMS, ONES[:2]).sample(KEY, num_points=1),
            r"weights must have shape \(3,\), got \(2,\)",
        ),
        (
            lambda: Discrete(ATOMS, -ONES).sample(KEY, num_points=1),
            "weights must be non-negative and finite",
        ),
        (lambda: gaussian_grid(1), "num_points must be at least 2"),
        (lambda: gaussian_grid(5, width=0.0), "width must be positive"),
        (lambda: gaussian_grid(5, std=0.0), "std must be positive"),
        (lambda: gaussian_spectrum(0, 1.0), "lengthscale must be positive"),
        (lambda: gaussian_spectrum(1.0, np.nan), "std must be positive"),
        (lambda: gaussian_spectrum(1.0, ATOMS), r"std must have shape \(d,\)"),
        (lambda: gaussian_spectrum(1.0, np.ones(2, np.int32)), "std must have dtype"),
        (lambda: gaussian_spectrum(1.0, 1.0).eigenvalues(0), "num must be at least 1"),
    ],
)
def test_bad_measures_and_spectra_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_what_are_no_weights_gives_no_points():
    unfit = np.float32([[3, -1, 1], [0, 0, 0]])
    points, total = jax.vmap(
        lambda w: (
            Discrete(ATOMS, w).sample(KEY, num_points=2),
            Discrete(ATOMS, w).total,
        )
    )(unfit)
    assert np.isnan(total).all() and np.isnan(points).all()
