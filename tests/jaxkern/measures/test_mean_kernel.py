"""Mean kernels against quadrature that shares no code, and the directions' generating function against its series."""

import math
from decimal import Decimal, localcontext

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.polynomial.hermite_e import hermegauss
from scipy import special
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian, Linear, Matern32
from jaxkern.measures import (
    DiagonalNoise,
    GeneralNoise,
    IsotropicNoise,
    RadialNoise,
    log_sphere_mgf,
    mean_gaussian_kernel,
    mean_kernel,
    mean_kernel_between,
    sphere_mgf,
)

NODES, WEIGHTS = hermegauss(140)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def log_series(u, dim):
    """log 0F1(; d/2; u^2/4) to 40 digits: every term of the series is positive."""
    with localcontext() as context:
        context.prec = 45
        x, term, total, k = Decimal(u) ** 2 / 4, Decimal(1), Decimal(1), 0
        while term > total * Decimal(10) ** -40:
            k += 1
            term *= x / (k * (Decimal(dim) / 2 + k - 1))
            total += term
        return total.ln()


@pytest.mark.parametrize("dim", [1, 2, 3, 10, 63, 64, 65, 1000, 10_000])
def test_the_generating_function_is_its_series(dim, x64):
    """Relative errors, also of the logarithm near zero, where it is u^2 / (2 d)."""
    u = [1e-7, 1e-3, 0.4, 3.0, 11.0, 18.0, 70.0, 900.0] + (
        [1e4] if dim in (2, 10_000) else []
    )
    for value, log_value, exact in zip(
        sphere_mgf(np.array(u), dim),
        log_sphere_mgf(np.array(u), dim),
        (log_series(x, dim) for x in u),
        strict=True,
    ):
        assert abs(float(Decimal(float(log_value)) / exact - 1)) <= 1e-14
        if exact < 700:
            assert abs(float(Decimal(float(value)) / exact.exp() - 1)) <= 1e-14 * max(
                1, float(exact)
            )


def test_three_dimensions_have_elementary_values(dtype):
    u = jnp.asarray([0.01, 0.5, 2.0, 9.0], dtype)
    expected = np.array([0.01, 0.5, 2.0, 9.0])
    for dim, value in (
        (1, np.cosh(expected)),
        (2, special.i0(expected)),
        (3, np.sinh(expected) / expected),
    ):
        found = sphere_mgf(u, dim)
        assert found.dtype == dtype
        np.testing.assert_allclose(found, value, rtol=30 * eps(dtype))
        np.testing.assert_array_equal(sphere_mgf(-u, dim), found)
        np.testing.assert_allclose(
            log_sphere_mgf(u, dim),
            np.log(value),
            rtol=1e-3 if dtype == "float32" else 1e-10,
        )


def test_slopes_of_the_generating_function(x64):
    """d/du log psi_d = (u/d) psi_(d+2) / psi_d, an identity of Bessel functions; zero at zero, finite far out."""
    u = np.array([-1e4, -30.0, 0.0, 1e-5, 0.7, 5.0, 25.0, 1e4])
    for dim in (1, 63):
        slope = jax.jit(jax.grad(lambda x, dim=dim: jnp.sum(log_sphere_mgf(x, dim))))(u)
        ratio = np.exp(
            np.asarray(log_sphere_mgf(u, dim + 2)) - np.asarray(log_sphere_mgf(u, dim))
        )
        np.testing.assert_allclose(slope, u / dim * ratio, rtol=1e-10)


def hermite_product(delta, variances, lengthscale):
    """E exp(-|delta + N(0, diag(variances))|^2 / (2 l^2)), one Gauss-Hermite rule per coordinate."""
    z = delta[:, None] + np.sqrt(variances)[:, None] * NODES
    return np.prod(np.exp(-(z**2) / (2 * lengthscale**2)) @ WEIGHTS)


def test_ten_thousand_dimensions_are_close_to_their_limit(dtype, rng):
    """s^-d -> exp(-sigma^2/tau^2), with an error of the order 1/d; rounding stays below it in float32 too."""
    directions = rng.normal(size=(4, 10_000))
    means = jnp.asarray(
        2 * directions / np.linalg.norm(directions, axis=1)[:, None], dtype
    )
    for noise in (
        IsotropicNoise(1.5),
        DiagonalNoise(jnp.full(10_000, 1.5**2 / 10_000, dtype)),
    ):
        ratio = mean_gaussian_kernel(means, noise, 1.8) / gram(Gaussian(1.8), means)
        off = np.asarray(ratio)[~np.eye(4, dtype=bool)]
        exact = math.exp(-5000 * math.log1p(2 * 1.5**2 / (10_000 * 1.8**2)))
        np.testing.assert_allclose(off, exact, rtol=5e-4)
        np.testing.assert_allclose(exact, math.exp(-((1.5 / 1.8) ** 2)), rtol=1e-3)


def covariances_of(noise, means):
    """Covariance matrices (n, d, d), written out."""
    n, d = means.shape
    if isinstance(noise, GeneralNoise):
        return np.broadcast_to(noise.covariances, (n, d, d))
    if isinstance(noise, DiagonalNoise):
        return np.stack([np.diag(v) for v in np.broadcast_to(noise.variances, (n, d))])
    level = np.broadcast_to(noise.level, n)
    if isinstance(noise, IsotropicNoise):
        return np.stack([s**2 / d * np.eye(d) for s in level])
    unit = [mu / np.linalg.norm(mu) if mu.any() else mu for mu in means]
    return np.stack(
        [s**2 / d * np.outer(mu, mu) for s, mu in zip(level, unit, strict=True)]
    )


def models(rng, n, dim):
    roots = rng.normal(size=(n, dim, dim))
    stack = roots @ roots.transpose(0, 2, 1) / dim
    variances = rng.uniform(0, 2, size=(n, dim))
    level = rng.uniform(0, 3, size=n)
    return [
        IsotropicNoise(1.2),
        IsotropicNoise(jnp.asarray(level)),
        RadialNoise(2.0),
        RadialNoise(jnp.asarray(level)),
        DiagonalNoise(jnp.asarray(variances[0])),
        DiagonalNoise(jnp.asarray(variances)),
        GeneralNoise(jnp.asarray(stack[0])),
        GeneralNoise(jnp.asarray(stack)),
    ]


def hermite_general(delta, covariance, lengthscale):
    values, vectors = np.linalg.eigh(covariance)
    return hermite_product(vectors.T @ delta, np.maximum(values, 0), lengthscale)


def test_every_model_agrees_with_quadrature(x64, rng):
    """In the eigenbasis of each pair's covariance; one mean is the origin, which has no direction."""
    means = rng.normal(size=(4, 3))
    means[2] = 0
    for noise in models(rng, 4, 3):
        C = covariances_of(noise, means)
        expected = np.array(
            [
                [
                    hermite_general(means[i] - means[j], C[i] + C[j], 0.9)
                    for j in range(4)
                ]
                for i in range(4)
            ]
        )
        np.fill_diagonal(expected, 1)
        found, norms = jax.jit(
            lambda noise: (
                mean_gaussian_kernel(means, noise, 0.9),
                noise.op_norm(means),
            )
        )(noise)
        np.testing.assert_allclose(found, expected, rtol=1e-11)
        np.testing.assert_allclose(
            norms, [np.linalg.norm(c, 2) for c in C], rtol=1e-11, atol=1e-15
        )


def test_the_two_sides_may_differ(x64, rng):
    U, V = rng.normal(size=(4, 3)), rng.normal(size=(2, 3))
    for own, other in zip(models(rng, 4, 3), models(rng, 2, 3), strict=True):
        C, D = covariances_of(own, U), covariances_of(other, V)
        expected = [
            [hermite_general(U[i] - V[j], C[i] + D[j], 1.1) for j in range(2)]
            for i in range(4)
        ]
        np.testing.assert_allclose(
            mean_kernel_between(Gaussian(1.1), U, V, own, other), expected, rtol=1e-11
        )


def hermite_radial(function, norms, alpha, deviations):
    """E function(|A u - B v|) for unit vectors with <u, v> = alpha and normal A, B, on a grid of nodes."""
    A = norms[0] + deviations[0] * NODES[:, None]
    B = norms[1] + deviations[1] * NODES[None, :]
    return (
        WEIGHTS
        @ function(np.sqrt(np.maximum(A * A + B * B - 2 * alpha * A * B, 0)))
        @ WEIGHTS
    )


def pair(norms, alpha, dim):
    U = np.zeros((2, dim))
    U[0, 0] = norms[0]
    U[1, :2] = norms[1] * alpha, norms[1] * math.sqrt(1 - alpha**2)
    return U


@pytest.mark.parametrize("alpha", (-1.0, -0.6, -1e-9, 0.0, 1e-9, 0.3, 1.0))
def test_radial_noise_in_any_direction(alpha, x64):
    """Parallel, opposite and orthogonal means are no exceptions, nor are levels that differ.

    Quadrature of the distance converges where the points are apart; on one line it is a folded normal variable.
    """

    def profile(r):
        return np.exp(-(r**2) / (2 * 0.8**2))

    near, far = pair((1.4, 0.9), alpha, 4), pair((9.0, 3.0), alpha, 100)
    for kernel, U, level, function, norms, deviations in (
        (Gaussian(0.8), near, 1.5, profile, (1.4, 0.9), (0.75, 0.75)),
        (Gaussian(0.8), near, np.array([1.5, 0.4]), profile, (1.4, 0.9), (0.75, 0.2)),
        (Distance(), far, 1.5, lambda r: r, (9.0, 3.0), (0.15, 0.15)),
    ):
        found = float(mean_kernel(kernel, U, RadialNoise(level))[0, 1])
        assert found == pytest.approx(
            hermite_radial(function, norms, alpha, deviations), rel=1e-12
        )
    line = pair((1.0, 1.0), 1.0, 2)
    folded = math.sqrt(2 / math.pi) * math.sqrt(2 * 1.5**2 / 2)
    assert float(
        mean_kernel(Distance(), line, RadialNoise(1.5))[0, 1]
    ) == pytest.approx(folded, rel=1e-13)


@pytest.mark.parametrize("dim", [1, 2, 7, 50])
def test_the_mean_distance_is_a_hypergeometric_function(dim, x64):
    """E |N(delta, v I)| = sqrt(2 v) Gamma((d+1)/2) / Gamma(d/2) 1F1(-1/2; d/2; -delta^2 / (2 v))."""
    V = np.zeros((5, dim))
    V[:, 0] = [0, 1e-3, 0.7, 3, 40]
    for level in (0.02, 1.5, 30.0):
        v = 2 * level**2 / dim
        factor = math.sqrt(2 * v) * math.exp(
            math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2)
        )
        expected = factor * special.hyp1f1(-0.5, dim / 2, -(V[:, 0] ** 2) / (2 * v))
        found = mean_kernel_between(Distance(), np.zeros((1, dim)), V, level)[0]
        np.testing.assert_allclose(found, expected, rtol=1e-13 * max(1, dim / 5))


def test_the_mean_distance_in_ten_thousand_dimensions(dtype):
    """E sqrt(Q) = sqrt(E Q) (1 - Var Q / (8 (E Q)^2) + ...), with a next term of the order 1/d^2."""
    means = jnp.zeros((3, 10_000), dtype).at[:, 0].set(jnp.asarray([0, 1, 7], dtype))
    K = np.asarray(mean_kernel(Distance(), means, 1.5), float)
    delta, v = np.subtract.outer([0, 1, 7], [0, 1, 7]), 2 * 1.5**2 / 10_000
    mean = delta**2 + 10_000 * v
    variance = 2 * 10_000 * v**2 + 4 * v * delta**2
    expected = np.sqrt(mean) * (1 - variance / (8 * mean**2))
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_allclose(K[off], expected[off], rtol=max(1e-7, 20 * eps(dtype)))
    assert np.array_equal(np.diagonal(K), np.zeros(3))


def test_without_noise_the_mean_kernel_is_the_kernel(dtype, rng):
    """To rounding, and exactly at coincident means."""
    X = jnp.asarray(rng.normal(size=(6, 3)), dtype).at[1].set(0).at[4].set(0)
    for noise in (0.0, RadialNoise(0.0)):
        np.testing.assert_allclose(
            mean_kernel(Distance(), X, noise), gram(Distance(), X), rtol=2 * eps(dtype)
        )
        np.testing.assert_allclose(
            mean_kernel(Gaussian(1.3), X, noise),
            gram(Gaussian(1.3), X),
            rtol=20 * eps(dtype),
        )


@pytest.mark.parametrize(
    "noise",
    [
        np.float32(1),
        np.float32([0, 0, 1, 2]),
        RadialNoise(np.float32(1)),
        DiagonalNoise(np.ones((4, 3), np.float32)),
        GeneralNoise(np.eye(3, dtype=np.float32)),
    ],
)
@pytest.mark.parametrize("lengthscale", [1e-33, 1e-12])
def test_noise_of_many_lengthscales_leaves_the_diagonal(lengthscale, noise, rng):
    """Its square over that of the lengthscale overflows; two equal points without noise have the value 1."""
    means = np.float32(rng.normal(size=(4, 3)))
    means[1] = means[0]
    expected = np.eye(4)
    if np.ndim(noise) == 1:
        expected[0, 1] = expected[1, 0] = 1
    K = mean_kernel(Gaussian(np.float32(lengthscale)), means, noise)
    np.testing.assert_allclose(K, expected, atol=1e-7)


def test_radial_noise_far_from_the_origin(dtype, rng):
    """Around one mean points are on a line: the mean distance is 2 s / sqrt(pi), and 1 / sqrt(1 + 2 s^2) the bell's."""
    means, s = (
        jnp.repeat(jnp.asarray(100 + 10 * rng.normal(size=(8, 4)), dtype), 2, axis=0),
        0.01,
    )
    noise, copies = (
        RadialNoise(jnp.asarray(2 * s, dtype)),
        (np.arange(0, 16, 2), np.arange(1, 16, 2)),
    )
    eps = float(jnp.finfo(dtype).eps)
    distance, bell = (
        mean_kernel(Distance(), means, noise),
        mean_kernel(Gaussian(1.0), means, noise),
    )
    np.testing.assert_allclose(
        distance[copies], 2 * s / math.sqrt(math.pi), rtol=30 * eps
    )
    np.testing.assert_allclose(bell[copies], (1 + 2 * s**2) ** -0.5, rtol=30 * eps)


def test_the_linear_kernel_gains_its_noise_on_the_diagonal(x64, rng):
    means = rng.normal(size=(4, 3))
    for noise in models(rng, 4, 3):
        C = covariances_of(noise, means)
        expected = means @ means.T + np.diag([np.trace(c) for c in C])
        np.testing.assert_allclose(
            mean_kernel(Linear(), means, noise), expected, rtol=1e-12, atol=1e-13
        )
    np.testing.assert_allclose(
        mean_kernel_between(Linear(), means, means, 1.0), means @ means.T, atol=1e-13
    )


def test_means_are_linear_in_the_kernel(x64, rng):
    means = rng.normal(size=(4, 3))
    K = mean_kernel(2.0 * Gaussian(0.7) + (Linear() + 0.5 * Gaussian(2.0)), means, 1.1)
    parts = 2 * mean_gaussian_kernel(means, 1.1, 0.7) + 0.5 * mean_gaussian_kernel(
        means, 1.1, 2.0
    )
    np.testing.assert_allclose(K, parts + mean_kernel(Linear(), means, 1.1), rtol=1e-14)


@pytest.mark.parametrize(
    "kernel", [Gaussian(1.3), Distance()], ids=["gaussian", "distance"]
)
def test_gradients_are_finite_where_means_coincide_and_noise_vanishes(kernel, x64):
    """Coincident, opposite and orthogonal means, the origin; levels zero and not; equal eigenvalues."""
    means = np.array([[1.0, 0], [1, 0], [-1, 0], [0, 2], [0, 0], [2, 0]])
    level = np.array([0.0, 0, 1, 1, 2, 0])
    stack = np.eye(2) * level[:, None, None]
    candidates = [IsotropicNoise(level), RadialNoise(level), GeneralNoise(stack)]
    if isinstance(
        kernel, Gaussian
    ):  # the only one with another way for parameters that all points share
        candidates += [GeneralNoise(np.eye(2))]

    def total(means, noise):
        return jnp.sum(jnp.sin(mean_kernel(kernel, means, noise)))

    for noise in candidates:
        gradients = jax.jit(jax.grad(total, (0, 1)))(means, noise)
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradients)), (
            noise
        )


def test_memory_does_not_grow_with_pairs_times_dimensions(rng):
    means = jnp.asarray(rng.normal(size=(20, 30)), jnp.float32)

    def largest(kernel, noise):
        def total(means, noise):
            return jnp.sum(mean_kernel(kernel, means, noise))

        return largest_intermediate(jax.grad(total), means, noise)

    level = jnp.ones(20, jnp.float32)
    for noise in (
        IsotropicNoise(level),
        RadialNoise(level),
        DiagonalNoise(jnp.ones((20, 30), jnp.float32)),
    ):
        assert largest(Gaussian(1.0), noise) <= 20 * 32  # eight coordinates at a time
    assert (
        largest(Gaussian(1.0), GeneralNoise(jnp.ones((20, 30, 30), jnp.float32)))
        <= 20 * 30 * 30
    )
    assert (
        largest(Gaussian(1.0), GeneralNoise(jnp.ones((30, 30), jnp.float32)))
        <= 20 * 2 * 30 * 30
    )


X = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *((lambda level=level: mean_gaussian_kernel(X, level, 1.0), "noise must be non-negative and finite")
          for level in (-1.0, np.inf, np.array([1.0, -1.0, 1.0], np.float32), [1.0, 1.0, -2.0])),
        (lambda: mean_gaussian_kernel(X, X[0], 1.0), r"noise must have shape \(\) or \(3,\), one number .* got \(2,\)"),
        (lambda: mean_gaussian_kernel(X, 1.0, 0.0), "lengthscale must be positive"),
        (lambda: mean_gaussian_kernel(X, DiagonalNoise(X[:, 0]), 1.0), r"variances must have shape \(2,\) or \(3, 2\)"),
        (lambda: mean_gaussian_kernel(X, GeneralNoise(X.T), 1.0), r"covariances must have shape \(2, 2\)"),
        (lambda: mean_kernel(Gaussian(1.0) + 2.0 * Matern32(1.0), X, 1.0), "kernel must be Gaussian, .*, got Matern32"),
        (lambda: mean_kernel_between(Gaussian(1.0), X, X, X[:, 0]), "other_noise must be given"),
        (lambda: mean_kernel_between(Gaussian(1.0), X, X, 1.0, RadialNoise(1.0)),
         "other_noise must be of the kind of noise, IsotropicNoise, got RadialNoise"),
        (lambda: mean_kernel_between(Gaussian(1.0), X, X[:, :1], 1.0), "V must have 2 columns"),
        (lambda: sphere_mgf(1.0, 0), "dim must be at least 1"),
        (lambda: log_sphere_mgf(np.arange(3), 2), "u must have dtype float32 or float64"),
    ],
)  # fmt: skip
def test_bad_means_and_noise_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
