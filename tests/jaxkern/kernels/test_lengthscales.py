"""One lengthscale for each column (ARD), wherever a kernel goes, against what is written out by hand."""

import math
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import FEATURES, close, eps
from scipy.optimize import minimize
from support.drawn import VALUES

from jaxkern import features, kernels, learn, measures, sklearn
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
    """In stacks of two kernels, so that arrays of arrays are mapped, too."""
    X, Y, scales = points_and_scales(WIDE)
    V = house.data(shape=WIDE).values
    # So close that distances lose digits if values are subtracted.
    other = X + X.dtype.type(1 / 64)

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
            close(K, exact, bound)
            # 24 products of size 1, and values within their bounds.
            close(product, exact @ V, 500 * eps())
            gaps = 1 - np.diag(by_hand(name, row, X, other))
            # The difference from 1 loses digits of float64.
            close(distances / np.sqrt(2 * gaps), 1, 100 * eps() + 1e-11)


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

    def total(scales, X):
        return jnp.sum(gram(getattr(kernels, name)(scales), X, Y) ** 2)

    u = (X[:, None] - Y) / scales
    squares = by_hand(name, scales, X, Y) ** 2
    rates = 2 * squares[..., None] * log_slope(u) / scales
    of_scales, of_points = jax.jit(jax.grad(total, (0, 1)))(scales, X)
    close(of_points, rates.sum(axis=1), 1e3 * eps())
    close(of_scales, -(rates * u).sum(axis=(0, 1)), 1e3 * eps())


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
    # Equal lengthscales are one number, whose constant is tested with the kernels.
    equal = {name: lipschitz(getattr(kernels, name)(0.3), 4) for name in VALUES}

    @jax.jit
    def constants(scales):
        return {name: lipschitz(getattr(kernels, name)(scales), 4) for name in VALUES}

    assert jax.device_get(constants(scales)) == pytest.approx(exact, rel=1e-6)
    assert jax.device_get(constants(np.full(4, 0.3))) == pytest.approx(equal)
    assert lipschitz(Gaussian(scales)) == lipschitz(Gaussian(scales), 4)


MAPS = (features.paired_fourier, features.shifted_fourier, features.fastfood)


@pytest.mark.parametrize("draw", MAPS, ids=lambda draw: draw.__name__)
def test_maps_scale_their_columns(draw):
    """A map of a lengthscale of 1 has the same features at the divided points, far from the origin as well."""
    X = house.data().X
    # Powers of 2, so that points are divided without rounding.
    scales = np.array([0.5, 4, 32], X.dtype)
    options = {"num_frequencies": FEATURES}
    scaled = draw(house.key(), 2 * Gaussian(scales), 3, **options)
    unit = draw(house.key(), 2 * Gaussian(np.ones_like(scales)), 3, **options)
    for offset in (0, 4096):  # from thousands on phases are mapped by digits
        # On a grid of 1/64 points are the same numbers at the offset.
        points = np.round(X * 64) / 64 + X.dtype.type(offset)
        close(scaled(points), unit(points / scales), 100 * eps())
    close(scaled.frequencies, unit.frequencies)


def test_maps_refuse_a_stack_that_is_not_mapped():
    stack = kernels.Laplacian(np.ones(20, house.dtype()))
    phi = features.paired_fourier(house.key(), stack, 3, num_frequencies=FEATURES)
    with pytest.raises(ValueError, match=r"array \(3,\) .*vmap over the kernel"):
        phi(house.data().X)


@double
def test_mean_kernels_divide_points_and_noise():
    """A lengthscale of 1 at divided points, with covariances Sigma / (l l'), gives the same."""
    means, _, scales = points_and_scales()
    n, dim = means.shape
    root = house.rng().normal(size=(n, dim, dim))
    variances = root[:, 0] ** 2
    levels = np.linalg.norm(means, axis=1)
    identity = np.eye(dim)
    models = (
        (measures.IsotropicNoise(levels), levels[:, None, None] ** 2 / dim * identity),
        (measures.RadialNoise(levels), means[:, :, None] * means[:, None] / dim),
        (measures.DiagonalNoise(variances), variances[:, None] * identity),
        (measures.GeneralNoise(root @ root.mT), root @ root.mT),
    )
    mean_kernel = jax.jit(measures.mean_gaussian_kernel)
    for noise, covariance in models:
        divided = measures.GeneralNoise(covariance / np.outer(scales, scales))
        K = mean_kernel(means / scales, divided, 1.0)
        close(mean_kernel(means, noise, scales), K, 1e-12)


@double
def test_spectra_are_products_of_lines():
    *_, scales = points_and_scales()
    std = np.array([1.0, 3.0, 0.2])  # in another order than the scales

    @jax.jit
    def trace(scales, std):
        return measures.gaussian_spectrum(scales, std).trace(2)

    lines = [trace(scales[j], std[j : j + 1]) for j in range(3)]
    assert float(trace(scales, std)) == pytest.approx(np.prod(lines), rel=1e-14)


@double
def test_a_fit_shortens_the_column_that_tells_labels_apart():
    X, _, scales = points_and_scales()
    # The first column alone tells labels apart, and has the shortest scale to start with.
    labels = (X[:, 0] > 5).astype(int)
    aligned = partial(learn.alignment, labels=labels, num_labels=2)
    fit = learn.fit_lengthscale(Gaussian(scales), X, aligned, num_steps=20)
    assert fit.finite
    assert fit.objective > fit.objectives[0]
    lengthscale = np.asarray(fit.kernel.lengthscale)
    assert lengthscale[0] < lengthscale[1:].min()


@double
def test_estimators_and_preimages_take_arrays():
    X, _, scales = points_and_scales()
    n = len(X)
    model = sklearn.Nystrom(n_landmarks=n, lengthscale=list(scales), random_state=0)
    Z = model.fit_transform(X)
    # All points are landmarks: features are exact.
    close(Z @ Z.T, by_hand("Gaussian", scales, X, X), 1e-8)
    phi = features.kernel_pca(Gaussian(scales), X, num_components=n)
    preimages = features.preimage(phi, phi(X))
    assert preimages.converged.all()
    close(preimages.points, X, 1e-3)
