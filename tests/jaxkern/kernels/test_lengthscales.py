"""One lengthscale for each column (ARD), wherever a kernel goes, against what is written out by hand."""

import math
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from support.drawn import VALUES

from jaxkern import features, io, kernels, learn, measures, sklearn
from jaxkern.gram import gram, gram_matmul, kernel_distance, rounding
from jaxkern.kernels import Gaussian, lipschitz

WIDE = (24, 8, 12)
"""From 9 columns on Gram matrices come from products where these are accurate."""
double = pytest.mark.float64


def points_and_scales(shape=house.USUAL):
    """Return two sets of points whose columns have sizes of their own, away from the origin, and scales that differ."""
    data = house.data(shape=shape)
    dim = shape[2]
    sizes = np.geomspace(1, 30, dim)
    scales = np.geomspace(0.5, 40, dim) * math.sqrt(dim)
    arrays = (data.X * sizes + 5, data.Y * sizes + 5, scales)
    return [array.astype(data.X.dtype) for array in arrays]


def by_hand(name, scales, X, Y):
    differences = np.float64(X)[:, None] - np.float64(Y)
    return VALUES[name](differences / np.float64(scales))


def test_each_column_has_its_own_lengthscale():
    X, Y, scales = points_and_scales(WIDE)
    V = house.data(shape=WIDE).values
    near = X + X.dtype.type(1 / 64)

    @jax.jit
    def evaluate(scales, X, Y):
        """Evaluate all kernels in one program."""
        results = {}
        for name in VALUES:
            kernel = getattr(kernels, name)(scales)
            results[name] = (
                gram(kernel, X, Y),
                rounding(kernel, X, Y),
                kernel(X[0], Y[1]),
                gram_matmul(kernel, X, Y, V),
                kernel_distance(kernel, X, near),
            )
        return results

    results = jax.device_get(evaluate(scales, X, Y))
    for name, (K, bound, value, product, distances) in results.items():
        exact = by_hand(name, scales, X, Y)
        assert np.abs(K - exact).max() <= bound, name
        assert abs(value - exact[0, 1]) <= 10 * house.eps(), name
        assert np.abs(product - exact @ V).max() <= 500 * house.eps(), name
        gaps = 1 - np.diag(by_hand(name, scales, X, near))
        # The difference from 1 loses digits of float64.
        tolerance = 100 * house.eps() + 1e-11
        np.testing.assert_allclose(distances, np.sqrt(2 * gaps), tolerance)


def gaussian_slope(u):
    """Return the derivative of log K in a difference over its lengthscale."""
    return -u


def cauchy_slope(u):
    return -2 * u / (1 + u**2)


@double
@pytest.mark.parametrize(
    ("name", "log_slope", "shape"),
    [("Gaussian", gaussian_slope, WIDE), ("Cauchy", cauchy_slope, house.USUAL)],
)
def test_gradients_in_lengthscales_and_points_are_those_by_hand(name, log_slope, shape):
    X, Y, scales = points_and_scales(shape)

    @jax.jit
    def slopes(scales, X):
        def total(scales, X):
            return jnp.sum(gram(getattr(kernels, name)(scales), X, Y) ** 2)

        return jax.grad(total, (0, 1))(scales, X)

    u = (X[:, None] - Y) / scales
    squares = by_hand(name, scales, X, Y) ** 2
    rates = 2 * squares[..., None] * log_slope(u) / scales
    of_scales, of_points = slopes(scales, X)
    tolerance = 1e3 * house.eps()
    exact = rates.sum(axis=1)
    np.testing.assert_allclose(of_points, exact, rtol=0, atol=tolerance)
    exact = -(rates * u).sum(axis=(0, 1))
    np.testing.assert_allclose(of_scales, exact, rtol=0, atol=tolerance)


def test_a_stack_of_kernels_with_a_lengthscale_for_each_column_is_mapped():
    X, Y, scales = points_and_scales()
    stack = np.stack([scales, 2 * scales, np.full_like(scales, 3)])

    @jax.jit
    @jax.vmap
    def evaluate(kernel):
        return gram(kernel, X, Y), lipschitz(kernel, len(scales))

    matrices, constants = evaluate(kernels.Matern52(stack))
    for row, K in zip(stack, matrices, strict=True):
        exact = by_hand("Matern52", row, X, Y)
        np.testing.assert_allclose(K, exact, rtol=0, atol=20 * house.eps())
    steepest = lipschitz(kernels.Matern52(1.0)) / stack.min(axis=1)
    np.testing.assert_allclose(constants, steepest, rtol=8 * house.eps())


@jax.jit
def constants_of_all(scales):
    return {
        name: lipschitz(getattr(kernels, name)(scales), len(scales)) for name in VALUES
    }


def steepest_slope(name, scales):
    """Return the largest slope of a search from several starts; derivatives are imaginary parts of tiny steps."""
    step = 1e-30
    directions = 1j * step * np.eye(len(scales))

    def negative_slope(t):
        values = VALUES[name]((t + directions) / scales)
        return -np.linalg.norm(values.imag) / step

    rng = house.rng()
    starts = rng.normal(size=(4, len(scales))) * scales
    ends = [minimize(negative_slope, start, method="Nelder-Mead") for start in starts]
    return -min(end.fun for end in ends)


@double
def test_lipschitz_constants_are_the_steepest_slopes():
    scales = np.array([0.7, 2.0, 0.9, 35.0])
    constants = {name: float(x) for name, x in constants_of_all(scales).items()}
    # Both are steepest at zero: the Laplacian in all columns, the other one in the shortest.
    expected = {"Laplacian": math.sqrt((scales**-2).sum()), "Exponential": 1 / 0.7}
    for name in ("Gaussian", "Cauchy", "Matern32", "Matern52"):
        expected[name] = steepest_slope(name, scales)
    assert constants == pytest.approx(expected, rel=1e-6)
    equal = constants_of_all(np.full(4, 0.3))
    for name in VALUES:
        kernel = getattr(kernels, name)(0.3)
        assert float(equal[name]) == pytest.approx(lipschitz(kernel, 4), rel=1e-12)
    gaussian = Gaussian(scales)
    assert lipschitz(gaussian) == lipschitz(gaussian, 4)


MAPS = (features.paired_fourier, features.shifted_fourier, features.fastfood)


@pytest.mark.parametrize("draw", MAPS, ids=lambda draw: draw.__name__)
def test_maps_scale_their_columns(draw):
    """Inner products are means of cosines of the frequencies, by NumPy, far from the origin as well."""
    X, _, scales = points_and_scales()
    dim = len(scales)
    count = house.FEATURES
    options = {"num_frequencies": count}
    phi = draw(house.key(), 2 * Gaussian(scales), dim, **options)
    frequencies = np.float64(phi.frequencies)
    for offset in (0, 4096):  # from thousands on phases are mapped by digits
        points = np.round(X * 64) / 64 + X.dtype.type(offset)
        phases = (np.float64(points) / np.float64(scales)) @ frequencies.T
        if draw is features.shifted_fourier:
            Z = np.sqrt(2) * np.cos(phases + np.float64(phi.shifts))
        else:
            Z = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
        exact = 2 / count * Z @ Z.T
        images = np.asarray(phi(points))
        # Phases of some thousands are rounded.
        tolerance = 4 * 4096 * house.eps()
        np.testing.assert_allclose(images @ images.T, exact, rtol=0, atol=tolerance)
    unit = draw(house.key(), 2 * Gaussian(np.ones_like(scales)), dim, **options)
    np.testing.assert_allclose(frequencies, unit.frequencies, rtol=8 * house.eps())


def test_maps_refuse_a_stack_that_is_not_mapped():
    stack = kernels.Laplacian(np.ones(20, house.dtype()))
    phi = features.paired_fourier(house.key(), stack, 3, num_frequencies=house.FEATURES)
    with pytest.raises(ValueError, match=r"array \(3,\) .*vmap over the kernel"):
        phi(house.data().X)


@double
def test_mean_kernels_divide_points_and_noise():
    """Against det(C)^(-1/2) exp(-u' C^-1 u / 2), u = (mu_i - mu_j) / l, C = I + (Sigma_i + Sigma_j) / (l l')."""
    means, _, scales = points_and_scales()
    n, dim = means.shape
    rng = house.rng()
    level = rng.uniform(0.5, 2, n)
    root = rng.normal(size=(n, dim, dim))
    units = means / np.linalg.norm(means, axis=1, keepdims=True)
    variance = level[:, None, None] ** 2 / dim
    diagonal = root[:, 0] ** 2
    general = root @ root.swapaxes(1, 2)
    identity = np.eye(dim)
    models = {
        "one level": (measures.IsotropicNoise(0.6), 0.36 / dim * identity),
        "levels": (measures.IsotropicNoise(level), variance * identity),
        "radial": (
            measures.RadialNoise(level),
            variance * dim * units[:, :, None] * units[:, None] / dim,
        ),
        "diagonal": (measures.DiagonalNoise(diagonal), diagonal[:, None] * identity),
        "general": (measures.GeneralNoise(general), general),
    }

    @jax.jit
    def mean_kernels(means, scales):
        return {
            name: measures.mean_gaussian_kernel(means, model, scales)
            for name, (model, _) in models.items()
        }

    for name, K in mean_kernels(means, scales).items():
        covariance = np.broadcast_to(models[name][1], (n, dim, dim))
        sums = covariance[:, None] + covariance[None]
        C = identity + sums / (scales[:, None] * scales)
        u = (means[:, None] - means) / scales
        exponent = np.einsum("ija,ijab,ijb->ij", u, np.linalg.inv(C), u)
        exact = np.linalg.det(C) ** -0.5 * np.exp(-exponent / 2)
        np.fill_diagonal(exact, 1)
        np.testing.assert_allclose(K, exact, rtol=1e-10, err_msg=name)


@double
def test_spectra_are_products_of_lines():
    *_, scales = points_and_scales()
    std = np.array([1.0, 3.0, 0.2])

    @jax.jit
    def traces(scales):
        spectrum = measures.gaussian_spectrum(scales, std)
        lines = [
            measures.gaussian_spectrum(scales[j], std[j : j + 1])
            for j in range(len(std))
        ]
        return spectrum.trace(2), [line.trace(2) for line in lines]

    together, alone = traces(scales)
    assert float(together) == pytest.approx(np.prod(alone), rel=1e-14)


def test_files_keep_arrays_and_refuse_negative_ones(tmp_path):
    X, _, scales = points_and_scales()
    phi = features.paired_fourier(
        house.key(), Gaussian(scales), len(scales), num_frequencies=house.FEATURES
    )
    path = tmp_path / "map.npz"
    io.save(path, phi)
    assert np.array_equal(io.load(path)(X), phi(X))
    with pytest.raises(ValueError, match="lengthscale"):
        io.save(path, Gaussian(jnp.asarray(-scales)))


def aligned(labels, kernel, X):
    return learn.alignment(kernel, X, labels, num_labels=2)


@double
def test_a_fit_shortens_the_column_that_tells_labels_apart():
    X, _, scales = points_and_scales()
    labels = (X[:, 0] > 5).astype(int)
    fit = learn.fit_lengthscale(
        Gaussian(scales), X, partial(aligned, labels), num_steps=20
    )
    assert fit.finite
    assert fit.objective > fit.objectives[0]
    lengthscale = np.asarray(fit.kernel.lengthscale)
    assert lengthscale[0] < lengthscale[1:].min()


@double
def test_estimators_and_preimages_take_arrays():
    X, _, scales = points_and_scales()
    n = len(X)
    K = by_hand("Gaussian", scales, X, X)
    for lengthscale in (scales, list(scales)):
        model = sklearn.Nystrom(n_landmarks=n, lengthscale=lengthscale, random_state=0)
        Z = model.fit_transform(X)
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-8)
    phi = features.kernel_pca(Gaussian(scales), X, num_components=n)
    preimages = features.preimage(phi, phi(X))
    assert preimages.converged.all()
    np.testing.assert_allclose(preimages.points, X, rtol=0, atol=1e-3)
