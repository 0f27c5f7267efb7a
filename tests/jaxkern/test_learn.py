"""Lengthscale learning: objectives against literal formulas, maxima against a grid, degenerate spectra, projections."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps, literal_gram

from jaxkern import kernels, learn

N, DIM = 24, 2
GAP = partial(learn.eigengap, num_components=2)


@pytest.fixture
def blobs(rng):
    """Two tight clusters at distance 6."""
    labels = np.arange(N) % 2
    return 0.3 * rng.normal(size=(N, DIM)) + 6.0 * labels[:, None] * np.array(
        [1.0, 0.0]
    ), labels


def literal_alignment(K, labels):
    H = np.eye(len(K)) - 1 / len(K)
    T = (labels[:, None] == labels[None, :]).astype(float)
    A, B = H @ K @ H, H @ T @ H
    return (A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B)


def test_alignment_is_the_literal_one(blobs, dtype):
    X, labels = blobs[0].astype(dtype), blobs[1]
    for lengthscale in (0.5, 3.0):
        found = learn.alignment(kernels.Gaussian(lengthscale), X, labels, num_labels=2)
        assert found.dtype == dtype
        expected = literal_alignment(literal_gram(X, X, lengthscale), labels)
        np.testing.assert_allclose(found, expected, rtol=100 * eps(dtype))


def test_a_kernel_that_only_tells_the_labels_apart_is_aligned(x64):
    X, labels = np.repeat([[0.0], [1e3]], 5, axis=0), np.repeat(np.arange(2), 5)
    found = learn.alignment(
        kernels.Gaussian(1.0), X, labels, num_labels=5
    )  # with labels that nobody has
    assert float(found) == pytest.approx(1, abs=1e-14)


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        (np.ones((4, 1)), [0, 1, 0, 1]),
        (np.arange(4.0)[:, None], [1, 1, 1, 1]),
        (np.ones((1, 1)), [0]),
    ],
)
def test_alignment_with_what_is_constant_is_zero_with_zero_gradient(X, labels, dtype):
    f = lambda s: learn.alignment(  # noqa: E731
        kernels.Gaussian(s), X.astype(dtype), np.array(labels), num_labels=2
    )
    value, slope = jax.jit(jax.value_and_grad(f))(np.ones((), dtype))
    assert abs(float(value)) <= 10 * eps(dtype) and np.isfinite(slope)


def test_eigengap_is_the_literal_one(blobs, dtype):
    X = blobs[0].astype(dtype)
    values = np.linalg.eigvalsh(literal_gram(X, X, 2.0))[::-1]
    for r in (1, N - 1):
        found = learn.eigengap(kernels.Gaussian(2.0), X, num_components=r)
        np.testing.assert_allclose(
            found, (values[r - 1] - values[r]) / N, atol=10 * eps(dtype)
        )


def first_three_gaps(kernel, X):
    return jnp.stack(
        [learn.eigengap(kernel, X, num_components=r) for r in (1, 2, 3)]
    ) @ jnp.array([1, 2, 4], X.dtype)


def test_degenerate_spectra_give_no_nan(dtype):
    """All eigenvalues but one zero; pairs of equal eigenvalues; K = I."""
    angle = 2 * np.pi * np.arange(8) / 8
    polygon = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    for X in (np.ones((8, 2)), polygon, 1e3 * np.arange(16.0).reshape(8, 2)):
        kernel = kernels.Gaussian(jnp.ones((), dtype))
        fit = learn.fit_lengthscale(
            kernel, X.astype(dtype), first_three_gaps, num_steps=3
        )
        assert fit.objective.dtype == fit.kernel.lengthscale.dtype == dtype
        assert (
            bool(fit.finite)
            and np.isfinite(fit.kernel.lengthscale)
            and np.isfinite(fit.objectives).all()
        )


@pytest.mark.parametrize("start", [0.2, 20.0])
def test_ascent_finds_the_maximum_of_a_grid(blobs, x64, start):
    X = blobs[0]
    grams = (literal_gram(X, X, s) for s in np.geomspace(0.05, 100, 400))
    values = np.stack([np.linalg.eigvalsh(K)[::-1] for K in grams]) / N
    fit = learn.fit_lengthscale(kernels.Gaussian(start), X, GAP, num_steps=150)
    assert float(fit.objective) >= (values[:, 1] - values[:, 2]).max() - 1e-4 and bool(
        fit.finite
    )
    assert float(fit.objective) == np.asarray(fit.objectives).max()
    assert float(GAP(fit.kernel, X)) == pytest.approx(float(fit.objective), rel=1e-12)


def test_every_lengthscale_moves_within_its_factor_and_nothing_else_does(blobs, x64):
    X, labels = jnp.asarray(blobs[0]), jnp.asarray(blobs[1])
    kernel = 2.0 * kernels.Gaussian(0.1) + kernels.Matern32(0.2) * kernels.Laplacian(
        50.0
    )
    objective = lambda kernel, X: learn.alignment(kernel, X, labels, num_labels=2)  # noqa: E731
    fit = learn.fit_lengthscale(kernel, X, objective, num_steps=60, factor=3.0)
    before, after = (
        jax.tree_util.tree_leaves_with_path(k) for k in (kernel, fit.kernel)
    )
    moved = 0
    for (path, old), (_, new) in zip(before, after, strict=True):
        if path[-1].name == "lengthscale":
            moved += float(new) != float(old)
            assert old / 3 * (1 - 1e-12) <= float(new) <= old * 3 * (1 + 1e-12)
        else:
            assert float(new) == float(old)
    assert moved == 3 and float(fit.objective) > float(objective(kernel, X))


def test_what_is_not_finite_is_told(blobs, x64):
    X = blobs[0].copy()
    X[0, 0] = np.nan
    assert not learn.fit_lengthscale(
        kernels.Gaussian(1.0), X, GAP, num_steps=150
    ).finite
    assert np.isnan(learn.alignment(kernels.Gaussian(1.0), X, blobs[1], num_labels=2))


def test_an_optimizer_of_the_users_own(blobs, x64):
    import optax

    X = blobs[0]
    fit = learn.fit_lengthscale(
        kernels.Gaussian(0.5), X, GAP, num_steps=1, optimizer=optax.sgd(0.3)
    )
    slope = jax.jit(jax.grad(lambda u: GAP(kernels.Gaussian(0.5 * jnp.exp(u)), X)))(0.0)
    expected = float(GAP(kernels.Gaussian(0.5 * np.exp(0.3 * float(slope))), X))
    assert float(fit.objectives[1]) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda X: learn.fit_lengthscale(kernels.Linear(), X, len), "lengthscale"),
        (
            lambda X: learn.fit_lengthscale(kernels.Gaussian(1.0), X, len, num_steps=0),
            "num_steps",
        ),
        (
            lambda X: learn.fit_lengthscale(
                kernels.Gaussian(1.0), X, len, learning_rate=0.0
            ),
            "learning_rate",
        ),
        (
            lambda X: learn.fit_lengthscale(kernels.Gaussian(1.0), X, len, factor=1.0),
            "factor",
        ),
        (
            lambda X: learn.eigengap(kernels.Gaussian(1.0), X, num_components=4),
            "num_components",
        ),
        (
            lambda X: learn.alignment(
                kernels.Gaussian(1.0), X, jnp.zeros(3, int), num_labels=2
            ),
            "labels",
        ),
        (
            lambda X: learn.alignment(
                kernels.Gaussian(1.0), X, jnp.zeros(4), num_labels=2
            ),
            "labels",
        ),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call(jnp.ones((4, 2)))
