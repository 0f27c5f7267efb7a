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


def near(value, exact, tolerance):
    np.testing.assert_allclose(value, exact, rtol=0, atol=tolerance)


def test_each_column_has_its_own_lengthscale():
    """In stacks of two kernels, so that arrays of arrays are mapped, too."""
    X, Y, scales = points_and_scales(WIDE)
    V = house.data(shape=WIDE).values
    # So close that distances lose digits if values are subtracted.
    other = X + X.dtype.type(1 / 64)
    eps = house.eps()

    @jax.jit
    @jax.vmap
    def evaluate(scales):
        """Evaluate all kernels in one program."""
        results = {}
        for name in VALUES:
            kernel = getattr(kernels, name)(scales)
            results[name] = (
                gram(kernel, X, Y),
                rounding(kernel, X, Y),
                gram_matmul(kernel, X, Y, V),
                kernel_distance(kernel, X, other),
            )
        return results

    stack = np.stack([scales, 2 * scales])
    for name, results in jax.device_get(evaluate(stack)).items():
        for row, K, bound, product, distances in zip(stack, *results, strict=True):
            exact = by_hand(name, row, X, Y)
            assert np.abs(K - exact).max() <= bound, name
            # 24 products of size 1, and values within their bounds.
            near(product, exact @ V, 500 * eps)
            gaps = 1 - np.diag(by_hand(name, row, X, other))
            # The difference from 1 loses digits of float64.
            near(distances / np.sqrt(2 * gaps), 1, 100 * eps + 1e-11)


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
    near(of_points, rates.sum(axis=1), 1e3 * house.eps())
    near(of_scales, -(rates * u).sum(axis=(0, 1)), 1e3 * house.eps())


@jax.jit
def constants_of_all(scales):
    return {
        name: lipschitz(getattr(kernels, name)(scales), len(scales)) for name in VALUES
    }


@double
def test_lipschitz_constants_are_the_steepest_slopes():
    """Of the Cauchy kernel by a search from several starts, with derivatives as imaginary parts of tiny steps."""
    scales = np.array([0.7, 2.0, 0.9, 35.0])
    step = 1e-30
    directions = 1j * step * np.eye(4)

    def negative_slope(t):
        values = VALUES["Cauchy"]((t + directions) / scales)
        return -np.linalg.norm(values.imag) / step

    starts = house.rng().normal(size=(4, 4)) * scales
    ends = [minimize(negative_slope, start, method="Nelder-Mead") for start in starts]
    # All columns are steepest at zero; radial kernels are in the shortest one.
    exact = {name: lipschitz(getattr(kernels, name)(0.7), 1) for name in VALUES}
    exact["Laplacian"] = np.linalg.norm(1 / scales)
    exact["Cauchy"] = -min(end.fun for end in ends)
    constants = constants_of_all(scales)
    # Equal lengthscales are one number, whose constant is tested with the kernels.
    equal = constants_of_all(np.full(4, 0.3))
    for name in VALUES:
        assert float(constants[name]) == pytest.approx(exact[name], rel=1e-6)
        of_number = lipschitz(getattr(kernels, name)(0.3), 4)
        assert float(equal[name]) == pytest.approx(of_number, rel=1e-12)
    assert lipschitz(Gaussian(scales)) == lipschitz(Gaussian(scales), 4)


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
        # On a grid of 1/64 points are the same numbers at the offset.
        points = np.round(X * 64) / 64 + X.dtype.type(offset)
        phases = (np.float64(points) / np.float64(scales)) @ frequencies.T
        if draw is features.shifted_fourier:
            Z = np.sqrt(2) * np.cos(phases + np.float64(phi.shifts))
        else:
            Z = np.concatenate([np.cos(phases), np.sin(phases)], axis=1)
        images = np.asarray(phi(points))
        # Phases of some thousands are rounded.
        near(images @ images.T, 2 / count * Z @ Z.T, 4 * 4096 * house.eps())
    unit = draw(house.key(), 2 * Gaussian(np.ones_like(scales)), dim, **options)
    near(frequencies / unit.frequencies, 1, 8 * house.eps())


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
    root = house.rng().normal(size=(n, dim, dim))
    variances = root[:, 0] ** 2
    levels = np.linalg.norm(means, axis=1)
    models = {
        measures.IsotropicNoise: (levels, levels[:, None] ** 2 / dim),
        measures.RadialNoise: (levels, means[:, :, None] * means[:, None] / dim),
        measures.DiagonalNoise: (variances, variances),
        measures.GeneralNoise: (root @ root.mT, root @ root.mT),
    }

    @jax.jit
    def mean_kernels(means):
        return [
            measures.mean_gaussian_kernel(means, model(level), scales)
            for model, (level, _) in models.items()
        ]

    matrices = mean_kernels(means)
    for K, (_, covariance) in zip(matrices, models.values(), strict=True):
        if covariance.ndim == 2:
            covariance = covariance[:, None] * np.eye(dim)
        sums = covariance[:, None] + covariance
        C = np.eye(dim) + sums / np.outer(scales, scales)
        u = (means[:, None] - means) / scales
        squares = np.einsum("ija,ijab,ijb->ij", u, np.linalg.inv(C), u)
        exact = np.exp(-squares / 2) / np.sqrt(np.linalg.det(C))
        # A point and itself share their noise.
        np.fill_diagonal(exact, 1)
        near(K, exact, 1e-12)


@double
def test_spectra_are_products_of_lines():
    *_, scales = points_and_scales()
    std = np.array([1.0, 3.0, 0.2])  # in another order than the scales

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
    # The first column alone tells labels apart, and has the shortest scale to start with.
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
    for lengthscale in (scales, list(scales)):
        model = sklearn.Nystrom(n_landmarks=n, lengthscale=lengthscale, random_state=0)
        Z = model.fit_transform(X)
        # All points are landmarks: features are exact.
        near(Z @ Z.T, by_hand("Gaussian", scales, X, X), 1e-8)
    phi = features.kernel_pca(Gaussian(scales), X, num_components=n)
    preimages = features.preimage(phi, phi(X))
    assert preimages.converged.all()
    near(preimages.points, X, 1e-3)
