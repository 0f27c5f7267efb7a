"""Mean kernels against quadrature that shares no code, and the directions' generating function against its series."""

import math
from decimal import Decimal, localcontext
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from numpy.polynomial.hermite_e import hermegauss
from numpy.testing import assert_allclose
from scipy import special
from support.jaxprs import largest_intermediate
from support.numerics import literal_gram

from jaxkern.kernels import Distance, Gaussian, Linear
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
SIZES = np.array([1e-7, 1e-3, 0.4, 3.0, 11.0, 18.0, 70.0, 900.0])


def log_series(u, dim):
    """Return log 0F1(; d/2; u^2/4) to 40 digits: every term of the series is positive."""
    with localcontext() as context:
        context.prec = 45
        x = Decimal(u) ** 2 / 4
        term = total = Decimal(1)
        k = 0
        while term > total * Decimal(10) ** -40:
            k += 1
            term *= x / (k * (Decimal(dim) / 2 + k - 1))
            total += term
        return float(total.ln())


@pytest.mark.float64
@pytest.mark.parametrize("dim", [1, 2, 63, 64, 10_000])
def test_the_generating_function_is_its_series(dim):
    """Relative errors, also of the logarithm near zero, where it is u^2 / (2 d); an even function.

    On both sides of dimension 64, from which on the asymptotic series serves.
    """
    exact = np.array([log_series(u, dim) for u in SIZES])
    assert_allclose(log_sphere_mgf(-SIZES, dim), exact, rtol=1e-14)
    # The last value overflows. Rounding of the exponent weighs by its size.
    ratio = sphere_mgf(SIZES, dim)[:-1] / np.exp(exact[:-1])
    assert (np.abs(ratio - 1) <= 1e-14 * np.maximum(1, exact[:-1])).all()


@pytest.mark.float64
@pytest.mark.parametrize("dim", [1, 63])
def test_slopes_of_the_generating_function(dim):
    """d/du log psi_d = (u/d) psi_(d+2) / psi_d, an identity of Bessel functions; zero at zero, finite far out."""
    u = np.array([-1e4, -30.0, 0.0, 1e-5, 0.7, 5.0, 25.0, 1e4])
    slopes = jax.vmap(jax.grad(partial(log_sphere_mgf, dim=dim)))
    log_ratio = np.subtract(log_sphere_mgf(u, dim + 2), log_sphere_mgf(u, dim))
    assert_allclose(jax.jit(slopes)(u), u / dim * np.exp(log_ratio), rtol=1e-10)


def models(means, seed):
    """Return (noise, covariances (n, d, d)) of every model, with parameters that are shared and by the point."""
    n, dim = means.shape
    rng = house.rng(seed)
    roots = rng.normal(size=(n, dim, dim))
    stack = roots @ roots.transpose(0, 2, 1) / dim
    variances = rng.uniform(0, 2, size=(n, dim))
    levels = rng.uniform(0, 3, size=n)
    lengths = np.linalg.norm(means, axis=1, keepdims=True)
    units = means / np.maximum(lengths, 1e-9)
    lines = units[:, :, None] * units[:, None, :]
    identities = np.eye(dim) + 0 * lines
    squares = levels[:, None, None] ** 2 / dim
    return [
        (IsotropicNoise(1.2), 1.44 / dim * identities),
        (IsotropicNoise(levels), squares * identities),
        (RadialNoise(2.0), 4 / dim * lines),
        (RadialNoise(levels), squares * lines),
        (DiagonalNoise(variances[0]), variances[0] * identities),
        (DiagonalNoise(variances), variances[:, :, None] * identities),
        (GeneralNoise(stack[0]), stack[0] + 0 * stack),
        (GeneralNoise(stack), stack),
    ]


def hermite(U, V, C, D, lengthscale):
    """Return E K(u + N(0, C), v + N(0, D)), one Gauss-Hermite rule for each direction of C + D."""
    values, vectors = np.linalg.eigh(C[:, None] + D[None])
    delta = np.einsum("ijkl,ijk->ijl", vectors, U[:, None] - V[None])
    z = delta[..., None] + np.sqrt(np.maximum(values, 0))[..., None] * NODES
    return np.prod(np.exp(-(z**2) / (2 * lengthscale**2)) @ WEIGHTS, axis=-1)


@pytest.mark.float64
def test_every_model_agrees_with_quadrature():
    """One mean is the origin, which has no direction. Means are linear in the kernel."""
    data = house.data()
    U = data.X
    U[2] = 0
    V = data.Y[:8]
    kernel = 2.0 * house.KERNEL + (Linear() + 0.5 * Gaussian(2.0))

    @jax.jit
    def program(noises, others):
        results = []
        for noise, other in zip(noises, others, strict=True):
            between = mean_kernel_between(kernel, U, V, noise, other)
            results.append((mean_kernel(kernel, U, noise), between, noise.op_norm(U)))
        return results

    def literal(V, C, D):
        narrow = hermite(U, V, C, D, house.LENGTHSCALE)
        return 2 * narrow + U @ V.T + hermite(U, V, C, D, 2.0) / 2

    noises, covariances = zip(*models(U, 0), strict=True)
    others, other_covariances = zip(*models(V, 1), strict=True)
    results = program(noises, others)
    for C, D, result in zip(covariances, other_covariances, results, strict=True):
        K = literal(U, C, C)
        traces = np.trace(C, axis1=1, axis2=2)
        np.fill_diagonal(K, 2.5 + (U**2).sum(axis=1) + traces)
        assert_allclose(result[0], K, rtol=1e-11, atol=1e-13)
        assert_allclose(result[1], literal(V, C, D), rtol=1e-11, atol=1e-13)
        assert_allclose(result[2], np.linalg.norm(C, 2, axis=(1, 2)), rtol=1e-11)


def hermite_radial(function, norms, alpha, deviations):
    """Return E function(|A u - B v|) for unit vectors with <u, v> = alpha and normal A, B, on a grid of nodes."""
    A = norms[0] + deviations[0] * NODES[:, None]
    B = norms[1] + deviations[1] * NODES[None, :]
    squares = A * A + B * B - 2 * alpha * A * B
    return WEIGHTS @ function(np.sqrt(np.maximum(squares, 0))) @ WEIGHTS


@pytest.mark.float64
@pytest.mark.parametrize("other_level", [1.5, 0.4])
@pytest.mark.parametrize(
    ("kernel", "function", "norms", "dim"),
    [
        (house.KERNEL, lambda r: np.exp(-(r**2) / 4.5), (1.4, 0.9), 4),
        # Quadrature of the distance converges where the points are apart.
        (Distance(), lambda r: r, (9.0, 3.0), 100),
    ],
)
def test_radial_noise_in_any_direction(kernel, function, norms, dim, other_level):
    """Parallel, opposite and orthogonal means are no exceptions, nor are levels that differ."""
    alphas = np.array([-1.0, -0.6, -1e-9, 0.0, 1e-9, 0.3, 1.0])
    U = np.eye(1, dim) * norms[0]
    V = np.zeros((len(alphas), dim))
    V[:, 0] = norms[1] * alphas
    V[:, 1] = norms[1] * np.sqrt(1 - alphas**2)
    noises = RadialNoise(1.5), RadialNoise(other_level)
    means = mean_kernel_between(kernel, U, V, *noises)[0]
    deviations = np.array([1.5, other_level]) / math.sqrt(dim)
    exact = [hermite_radial(function, norms, a, deviations) for a in alphas]
    assert_allclose(means, exact, rtol=1e-12)


@pytest.mark.float64
@pytest.mark.parametrize("dim", [1, 50, 10_000])
@pytest.mark.parametrize("level", [0.02, 1.5, 30.0])
def test_the_mean_distance_is_a_hypergeometric_function(dim, level):
    """E |N(delta, v I)| = sqrt(2 v) Gamma((d+1)/2) / Gamma(d/2) 1F1(-1/2; d/2; -delta^2 / (2 v))."""
    V = np.zeros((4, dim))
    V[:, 0] = [0, 1e-3, 3, 40]
    v = 2 * level**2 / dim
    gammas = math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2)
    shape = special.hyp1f1(-0.5, dim / 2, -(V[:, 0] ** 2) / (2 * v))
    exact = math.sqrt(2 * v) * math.exp(gammas) * shape
    means = mean_kernel_between(Distance(), V[:1], V, level)[0]
    # Logarithms of gamma functions are rounded by their size.
    assert_allclose(means, exact, rtol=1e-13 * max(1, dim / 5))


def test_ten_thousand_dimensions_are_close_to_their_limit():
    """s^-d -> exp(-sigma^2/tau^2) up to errors of the order 1/d; rounding stays below them in float32, too."""
    dim = 10_000
    means = np.zeros((2, dim), house.dtype())
    means[1, 0] = 7
    variances = np.full(dim, 1.5**2 / dim, house.dtype())
    for noise in (IsotropicNoise(1.5), DiagonalNoise(variances)):
        K = mean_gaussian_kernel(means, noise, 3.0)
        assert_allclose(K[0, 1], np.exp(-((1.5 / 3) ** 2) - 49 / 18), rtol=2e-3)


@pytest.mark.parametrize("noise", [0.0, RadialNoise(0.0)], ids=["isotropic", "radial"])
def test_without_noise_the_mean_kernel_is_the_kernel(noise):
    """To rounding, and exactly at coincident means."""
    X = house.data().X
    X[[1, 4]] = 0
    distances = np.linalg.norm(np.float64(X)[:, None] - X[None], axis=2)
    K = mean_gaussian_kernel(X, noise, house.LENGTHSCALE)
    close(K, literal_gram(X, X), 20 * eps())
    assert_allclose(mean_kernel(Distance(), X, noise), distances, rtol=4 * eps())


@pytest.mark.parametrize("lengthscale", [1e-33, 1e-12])
def test_noise_of_many_lengthscales_leaves_the_diagonal(lengthscale):
    """Its square over the one of the lengthscale overflows."""
    means = house.data().X
    means[1] = means[0]
    for noise in (
        1.0,
        RadialNoise(1.0),
        DiagonalNoise(np.ones_like(means)),
        GeneralNoise(np.eye(3, dtype=house.dtype())),
    ):
        K = mean_gaussian_kernel(means, noise, lengthscale)
        close(K, np.eye(24), 1e-7)
    levels = np.arange(24, dtype=house.dtype())
    levels[1] = 0
    K = mean_gaussian_kernel(means, levels, lengthscale)
    # The first two points are equal, and have no noise.
    close(K[:2, :2], np.ones((2, 2)), 1e-7)


def test_radial_noise_far_from_the_origin():
    """Around one mean points are on a line: the mean distance is 2 s / sqrt(pi), and 1 / sqrt(1 + 2 s^2) the bell's."""
    X = house.data("offset").X
    s = 0.01
    noise = RadialNoise(s * math.sqrt(3))
    values = np.diagonal(mean_kernel_between(Distance(), X, X, noise))
    assert_allclose(values, 2 * s / math.sqrt(math.pi), rtol=30 * eps())
    bell = np.diagonal(mean_kernel_between(house.KERNEL, X, X, noise))
    spread = 2 * (s / house.LENGTHSCALE) ** 2
    assert_allclose(bell, (1 + spread) ** -0.5, rtol=30 * eps())


@pytest.mark.float64
@pytest.mark.parametrize("kernel", [house.KERNEL, Distance()], ids=["bell", "distance"])
def test_gradients_are_finite_where_means_coincide_and_noise_vanishes(kernel):
    """Coincident, opposite and orthogonal means, the origin; levels zero and not; equal eigenvalues."""
    means = np.array([[1.0, 0], [1, 0], [-1, 0], [0, 2], [0, 0], [2, 0]])
    level = np.array([0.0, 0, 1, 1, 2, 0])
    noises = [IsotropicNoise(level), RadialNoise(level)]
    noises.append(GeneralNoise(np.eye(2) * level[:, None, None]))
    if kernel is house.KERNEL:  # the only one with another way for shared parameters
        noises.append(GeneralNoise(np.eye(2)))

    @jax.jit
    @jax.grad
    def slopes(parameters):
        means, noises = parameters
        return sum(jnp.sum(jnp.sin(mean_kernel(kernel, means, x))) for x in noises)

    for leaf in jax.tree.leaves(slopes((means, noises))):
        assert np.isfinite(leaf).all()


def test_memory_does_not_grow_with_pairs_times_dimensions():
    """Of the gradient, in entries of the largest array."""
    n, dim = 20, 30  # so that n * n * dim is far above the others
    means = np.ones((n, dim), house.dtype())
    stack = np.ones((n, dim, dim), house.dtype())
    grad = jax.grad(lambda m, noise: jnp.sum(mean_kernel(house.KERNEL, m, noise)))
    for noise, limit in (
        (RadialNoise(means[:, 0]), n * 32),  # eight coordinates at a time
        (DiagonalNoise(means), n * 32),
        (GeneralNoise(stack), n * dim * dim),
        (GeneralNoise(stack[0]), 2 * n * dim * dim),
    ):
        assert largest_intermediate(grad, means, noise) <= limit
