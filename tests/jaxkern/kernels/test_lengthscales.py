"""One lengthscale for each column, and quantiles of distances of weighted rows, against what is written out by hand."""

import math
import tempfile
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.spatial.distance import pdist
from support.drawn import VALUES
from support.numerics import eps
from support.padded import all_padded, check_slopes

from jaxkern import draws, features, io, kernels, learn, measures, sklearn
from jaxkern.gram import gram, gram_matmul, kernel_distance, rounding
from jaxkern.kernels import quantile_lengthscale, sampled_quantile_lengthscale

NAMES = [
    pytest.param(x, marks=[pytest.mark.slow] * (x in ("Exponential", "Matern52")))
    for x in VALUES
]
some = pytest.mark.parametrize("name", NAMES)
MAPS = (features.paired_fourier, features.shifted_fourier, features.fastfood)


def by_hand(name, scales, X, Y):
    return VALUES[name]((np.float64(X)[:, None] - np.float64(Y)) / np.float64(scales))


def case(rng, dtype, dim):
    scales = np.asarray(np.geomspace(0.5, 40, dim) * math.sqrt(dim), dtype)
    return scales, *(
        np.asarray(rng.normal(size=(n, dim)) * np.geomspace(1, 30, dim) + 5, dtype)
        for n in (7, 5)
    )


@some
def test_each_column_has_its_own_lengthscale(name, dtype, rng):
    scales, X, Y = case(rng, dtype, {"float32": 12, "float64": 3}[dtype.name])
    kernel, V = (
        getattr(kernels, name)(jnp.asarray(scales)),
        np.asarray(rng.normal(size=(5, 2)), dtype),
    )
    K, near = by_hand(name, scales, X, Y), X[:5] + np.asarray(1 / 64, dtype)

    @jax.jit
    def found(X, Y, V):
        product, distances = (
            gram_matmul(kernel, X, Y, V),
            kernel_distance(kernel, X[:5], near),
        )
        return (
            gram(kernel, X, Y),
            rounding(kernel, X, Y),
            kernel(X[0], Y[1]),
            product,
            distances,
        )

    ours, allowed, one, product, distances = jax.device_get(found(X, Y, V))
    assert (np.abs(ours - K) <= allowed).all()
    np.testing.assert_allclose(one, K[0, 1], rtol=0, atol=10 * eps(dtype))
    np.testing.assert_allclose(
        product, K @ np.float64(V), rtol=0, atol=200 * eps(dtype)
    )
    exact = np.sqrt(
        2 - 2 * np.diagonal(by_hand(name, scales, X[:5], near))
    )  # which loses digits
    np.testing.assert_allclose(distances, exact, rtol=100 * eps(dtype) + 1e-11)


@pytest.mark.parametrize(
    ("name", "dim"),
    [
        ("Gaussian", 3),
        ("Gaussian", 12),
        pytest.param("Cauchy", 3, marks=pytest.mark.slow),
    ],
)
def test_gradients_in_lengthscales_and_points_are_those_of_rescaled_columns(
    name, dim, x64, rng
):
    scales, X, Y = case(rng, "float64", dim)

    def ours(scales, X):
        return jnp.sum(gram(getattr(kernels, name)(scales), X, Y) ** 2)

    def rescaled(scales, X):
        return jnp.sum(
            gram(getattr(kernels, name)(1.0), X / scales[None], Y / scales[None]) ** 2
        )

    slopes, expected = jax.jit(
        lambda *args: [jax.grad(f, (0, 1))(*args) for f in (ours, rescaled)]
    )(scales, X)
    for slope, other in zip(slopes, expected, strict=True):
        np.testing.assert_allclose(slope, other, rtol=0, atol=200 * eps("float64"))


def test_many_kernels_with_a_lengthscale_for_each_column(rng):
    scales, X, Y = case(rng, "float32", 12)
    each = np.stack([scales, 2 * scales, np.full(12, 3.0, np.float32)])
    stack = kernels.Matern52(jnp.asarray(each))
    values = jax.jit(
        jax.vmap(lambda kernel: (gram(kernel, X, Y), kernels.lipschitz(kernel, 12)))
    )
    mapped, constants = jax.device_get(values(stack))
    for one, K in zip(each, mapped, strict=True):
        np.testing.assert_allclose(
            K,
            gram(kernels.Matern52(jnp.asarray(one)), X, Y),
            rtol=0,
            atol=8 * eps("float32"),
        )
    np.testing.assert_allclose(
        mapped[2], gram(kernels.Matern52(3.0), X, Y), rtol=0, atol=1e-5
    )
    np.testing.assert_allclose(
        constants[:2],
        kernels.lipschitz(kernels.Matern52(1.0)) / scales.min() / [1, 2],
        rtol=1e-6,
    )


@some
def test_lipschitz_constants_are_the_steepest_slopes(name, x64, rng):
    """The slope of the kernel of t, maximised from many starts; that of the Laplacian is attained at zero."""
    scales = np.array([0.7, 2.0, 0.9, 35.0])
    kernel, zero = getattr(kernels, name)(jnp.asarray(scales)), jnp.zeros(4)
    slope = jax.jit(jax.grad(lambda t: kernel(zero, t)))
    starts = rng.normal(size=(8, 4)) * scales * np.geomspace(1e-9, 1, 8)[:, None]
    found = [np.linalg.norm(slope(start)) for start in starts]
    if name not in ("Laplacian", "Exponential"):
        found = [
            -minimize(
                lambda t: -np.linalg.norm(slope(t)), start, method="Nelder-Mead"
            ).fun
            for start in starts
        ]
    constant = float(kernels.lipschitz(kernel, 4))
    assert constant == float(kernels.lipschitz(kernel)) and max(found) <= constant * (
        1 + 1e-9
    )
    assert max(found) >= constant * (1 - 1e-6 if name != "Exponential" else 0.1)
    equal = kernels.lipschitz(getattr(kernels, name)(jnp.full(5, 0.3)), 5)
    np.testing.assert_allclose(
        equal, kernels.lipschitz(getattr(kernels, name)(0.3), 5), rtol=1e-12
    )


@pytest.mark.parametrize("draw", MAPS, ids=lambda draw: draw.__name__)
def test_maps_scale_their_columns(draw, rng):
    """Inner products are means of cosines of the frequencies kept, by NumPy, far from the origin as well."""
    scales, X, _ = case(rng, "float32", 12)
    phi = draw(
        jax.random.key(0),
        2 * kernels.Gaussian(jnp.asarray(scales)),
        12,
        num_frequencies=40,
    )
    for offset in (0, 4096):  # there phases are mapped by digits
        points = np.round(X * 64) / 64 + np.float32(offset)
        phases = (np.float64(points) / np.float64(scales)) @ np.float64(
            phi.frequencies
        ).T
        if draw is features.shifted_fourier:
            expected = 2 / math.sqrt(40) * np.cos(phases + np.float64(phi.shifts))
        else:
            expected = math.sqrt(2 / 40) * np.concatenate(
                [np.cos(phases), np.sin(phases)], axis=1
            )
        Z = np.asarray(phi(points))
        np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=0, atol=2e-3)
    unit = draw(jax.random.key(0), 2 * kernels.Gaussian(1.0), 12, num_frequencies=40)
    np.testing.assert_allclose(
        phi.frequencies, unit.frequencies, rtol=8 * eps("float32")
    )


def test_mean_kernels_divide_points_and_noise(x64, rng):
    """Against det(C)^(-1/2) exp(-u' C^-1 u / 2), u = (mu_i - mu_j) / l, C = I + (Sigma_i + Sigma_j) / (l l')."""
    scales, means, _ = case(rng, "float64", 3)
    level, root = rng.uniform(0.5, 2, 7), rng.normal(size=(7, 3, 3))
    units = means / np.linalg.norm(means, axis=1, keepdims=True)
    models = (
        (measures.IsotropicNoise(0.6), np.tile(0.12 * np.eye(3), (7, 1, 1))),
        (measures.IsotropicNoise(level), level[:, None, None] ** 2 / 3 * np.eye(3)),
        (
            measures.RadialNoise(level),
            level[:, None, None] ** 2 / 3 * units[:, :, None] * units[:, None],
        ),
        (
            measures.DiagonalNoise(root[:, 0] ** 2),
            np.stack([np.diag(r) for r in root[:, 0] ** 2]),
        ),
        (measures.GeneralNoise(root @ root.swapaxes(1, 2)), root @ root.swapaxes(1, 2)),
    )
    for model, covariances in models:
        K = measures.mean_gaussian_kernel(means, model, scales)
        C = np.eye(3) + (covariances[:, None] + covariances[None]) / (
            scales[:, None] * scales
        )
        u = (means[:, None] - means) / scales
        expected = np.linalg.det(C) ** -0.5 * np.exp(
            -np.einsum("ija,ijab,ijb->ij", u, np.linalg.inv(C), u) / 2
        )
        np.fill_diagonal(expected, 1)
        np.testing.assert_allclose(K, expected, rtol=1e-10)


def test_spectra_files_fits_and_estimators_take_an_array(x64, rng):
    scales, X, _ = case(rng, "float64", 3)
    std = np.array([1.0, 3.0, 0.2])
    spectrum = measures.gaussian_spectrum(scales, std)
    lines = [
        measures.gaussian_spectrum(float(scale), std[j : j + 1])
        for j, scale in enumerate(scales)
    ]
    np.testing.assert_allclose(
        spectrum.trace(2), np.prod([line.trace(2) for line in lines]), rtol=1e-14
    )
    kernel = kernels.Gaussian(jnp.asarray(scales))
    with tempfile.TemporaryDirectory() as folder:
        phi = features.paired_fourier(jax.random.key(0), kernel, 3, num_frequencies=4)
        io.save(f"{folder}/map.npz", phi)
        assert (io.load(f"{folder}/map.npz")(X) == phi(X)).all()
        with pytest.raises(ValueError, match="lengthscale"):
            io.save(f"{folder}/map.npz", kernels.Gaussian(jnp.asarray(-scales)))
    labels = jnp.asarray(X[:, 0] > 5, int)  # the first column alone tells them apart
    fit = learn.fit_lengthscale(kernel, X, partial(aligned, labels), num_steps=20)
    assert (
        fit.finite
        and fit.objective > fit.objectives[0]
        and fit.kernel.lengthscale[0] < fit.kernel.lengthscale[1:].min()
    )
    for lengthscale in (scales, list(scales)):
        Z = sklearn.Nystrom(
            n_landmarks=7, lengthscale=lengthscale, random_state=0
        ).fit_transform(X)
        np.testing.assert_allclose(
            Z @ Z.T, by_hand("Gaussian", scales, X, X), rtol=0, atol=1e-8
        )
    phi = features.kernel_pca(kernel, X, num_components=7)
    found = features.preimage(phi, phi(X))
    assert found.converged.all()
    np.testing.assert_allclose(found.points, X, rtol=0, atol=1e-3)


def aligned(labels, kernel, X):
    return learn.alignment(kernel, X, labels, num_labels=2)


def test_a_stack_without_vmap_is_refused_by_both_its_readings():
    X, stack = jnp.ones((4, 3)), kernels.Laplacian(jnp.ones(20))
    phi = features.paired_fourier(jax.random.key(0), stack, 3, num_frequencies=2)
    for call in (
        lambda: gram(stack, X),
        lambda: stack(X[0], X[1]),
        lambda: kernel_distance(kernels.Matern32(jnp.ones((3, 3))), X, X),
        lambda: phi(X),
        lambda: kernels.lipschitz(stack, 3),
        lambda: measures.mean_gaussian_kernel(X, 1.0, jnp.ones(20)),
        lambda: measures.gaussian_spectrum(jnp.ones(20), jnp.ones(3)),
    ):
        with pytest.raises(
            ValueError,
            match=r"array \(3,\) with one number for each column.*vmap over the kernel",
        ):
            call()
    with pytest.raises(
        ValueError,
        match="lengthscale must be a number or an array, one for each column, got a list",
    ):
        kernels.Gaussian([1.0, 2.0])
    with pytest.raises(ValueError, match="lengthscale must be a scalar"):
        gram(kernels.Polynomial(lengthscale=jnp.ones(3)), X)


QUANTILES = {
    "exact": quantile_lengthscale,
    "sampled": lambda X, q, **weights: sampled_quantile_lengthscale(
        jax.random.key(7), X, q, num_pairs=400, **weights
    ),
}


@pytest.mark.parametrize(
    "quantile",
    [quantile_lengthscale, pytest.param(QUANTILES["sampled"], marks=pytest.mark.slow)],
)
def test_quantiles_of_padded_sets_are_those_of_the_sets_alone(quantile, dtype, rng):
    """And the gradients; with one key for both. Two of the rows are equal, 12 columns are multiplied."""
    X = np.asarray(rng.normal(size=(9, 12)), dtype)
    X[3] = X[5]
    levels, alone = (
        jnp.asarray([0.0, 0.3, 0.5, 0.9, 1.0], dtype),
        jax.value_and_grad(quantile),
    )
    values, fall = (
        [float(quantile(X, float(q))) for q in levels.tolist()],
        jax.jit(lambda X: alone(X, 0.3)[1])(X),
    )
    sloped = jax.vmap(
        lambda X, weights, q: alone(X, q, weights=weights), (None, None, 0)
    )
    P, weights = all_padded(X)
    P, none = (
        np.concatenate([P, P[-2:]]),
        np.stack([np.eye(14, dtype=dtype)[4], np.zeros(14, dtype)]),
    )
    found, changes = jax.device_get(
        jax.jit(jax.vmap(sloped, (0, 0, None)))(
            P, np.concatenate([weights, none]), levels
        )
    )
    np.testing.assert_allclose(found[:6], [values] * 6, rtol=100 * eps(dtype), atol=0)
    check_slopes(changes[:6, 1], np.asarray(fall), 100 * eps(dtype))
    assert np.isnan(found[6:]).all() and np.isnan(quantile(X * np.nan, 0.5))


@pytest.mark.parametrize("quantile", QUANTILES.values(), ids=QUANTILES)
def test_whole_weights_repeat_rows_and_equal_ones_are_shares(quantile, dtype, rng):
    X, weights = (
        np.asarray(rng.normal(size=(9, 3)), dtype),
        np.asarray([1, 3, 0, 2, 1, 1, 2, 0, 4], dtype),
    )
    repeated = np.repeat(X, weights.astype(int), axis=0)
    for q in (0.0, 0.12, 0.5, 1.0):
        value = quantile(X, q, weights=weights)
        np.testing.assert_allclose(value, quantile(repeated, q), rtol=50 * eps(dtype))
        if quantile is quantile_lengthscale:
            np.testing.assert_allclose(
                value, np.quantile(pdist(np.float64(repeated)), q), rtol=50 * eps(dtype)
            )
            for share in (0.3, 1e-25):
                equal = quantile(X, q, weights=np.full(9, share, dtype))
                np.testing.assert_allclose(equal, quantile(X, q), rtol=100 * eps(dtype))


def test_the_quantile_moves_with_the_weights_as_its_gradient_says(x64, rng):
    X, weights = rng.normal(size=(9, 3)), rng.uniform(0.5, 1.5, 9)
    for q in (0.1, 0.62):
        slope = jax.grad(
            lambda weights, q=q: quantile_lengthscale(X, q, weights=weights)
        )(weights)
        ends = [
            [float(quantile_lengthscale(X, q, weights=weights + h)) for h in (s, -s)]
            for s in 1e-6 * np.eye(9)
        ]
        np.testing.assert_allclose(
            slope, -np.diff(ends)[:, 0] / 2e-6, rtol=0, atol=1e-8
        )


def test_pairs_are_drawn_as_often_as_they_count(rng):
    """z-scores of the 36 pairs and of the copies: above 6 with a probability below 1e-7."""
    weights = np.float32(rng.uniform(0.2, 2.5, 9))
    draw = jax.jit(draws.weighted_pairs, static_argnums=2)
    i, j, _ = jax.device_get(draw(jax.random.key(0), weights, 100_000))
    mass = np.triu(np.outer(weights, weights), 1) + np.diag(
        weights * np.maximum(weights - 1, 0) / 2
    )
    expected = 100_000 * mass / mass.sum()
    counts = np.zeros((9, 9))
    np.add.at(counts, (np.minimum(i, j), np.maximum(i, j)), 1)
    assert (np.abs(counts - expected) <= 6 * np.sqrt(expected)).all()
    X = np.float32(rng.normal(size=(9, 3)))
    value = sampled_quantile_lengthscale(jax.random.key(1), X, 0.6, weights=weights)
    np.testing.assert_allclose(
        quantile_lengthscale(X, 0.6, weights=weights), value, rtol=0.1
    )
