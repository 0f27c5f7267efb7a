"""Lengthscale learning: objectives against literal formulas, maxima against a grid, degenerate spectra, projections."""

from functools import partial

import house
import jax
import numpy as np
import optax
import pytest
from support.numerics import literal_gram

from jaxkern import kernels, learn

pytestmark = pytest.mark.optimised

ROWS, _, _ = house.USUAL
gap_of_two = partial(learn.eigengap, num_components=2)


def aligned(kernel, X):
    return learn.alignment(kernel, X, house.data().labels, num_labels=3)


def ascent(lengthscale, X):
    # An array, so that all starts have one program.
    kernel = kernels.Gaussian(house.dtype().type(lengthscale))
    return learn.fit_lengthscale(
        kernel, X.astype(house.dtype()), gap_of_two, num_steps=150
    )


def literal_alignment(K, labels):
    """Return <H K H, H T H> over the norms of both, by cortes2012, (5)."""
    H = np.eye(len(K)) - 1 / len(K)
    T = (labels[:, None] == labels).astype(float)
    A = H @ K @ H
    B = H @ T @ H
    return (A * B).sum() / np.linalg.norm(A) / np.linalg.norm(B)


def test_alignment_is_the_literal_one():
    data = house.data()
    K = literal_gram(data.X, data.X, house.LENGTHSCALE)
    expected = literal_alignment(K, data.labels)
    np.testing.assert_allclose(
        aligned(house.KERNEL, data.X), expected, rtol=100 * house.eps()
    )


def test_a_kernel_that_only_tells_the_labels_apart_is_aligned():
    labels = house.data().labels
    # No two labels share a kernel value above 0.
    X = 1e3 * labels[:, None] * np.ones(3, house.dtype())
    for num_labels in (3, 5):  # with labels that no row has
        alignment = learn.alignment(house.KERNEL, X, labels, num_labels=num_labels)
        assert float(alignment) == pytest.approx(1, abs=10 * house.eps())


@jax.jit
@jax.value_and_grad
def alignment_of(lengthscale, X, labels):
    return learn.alignment(kernels.Gaussian(lengthscale), X, labels, num_labels=3)


def test_alignment_with_a_constant_is_zero_with_a_finite_derivative():
    data = house.data()
    for X, labels in (
        (np.ones_like(data.X), data.labels),
        (data.X, np.zeros_like(data.labels)),
    ):
        value, slope = alignment_of(house.dtype().type(1), X, labels)
        assert abs(float(value)) <= 10 * house.eps()
        assert np.isfinite(slope)


def gap(X, lengthscale, count=2):
    """Return the gap below so many eigenvalues."""
    values = np.linalg.eigvalsh(literal_gram(X, X, lengthscale))[::-1]
    return (values[count - 1] - values[count]) / ROWS


@pytest.mark.parametrize("count", [2, ROWS - 1])
def test_eigengap_is_the_literal_one(count):
    X = house.data().X
    eigengap = learn.eigengap(house.KERNEL, X, num_components=count)
    expected = gap(X, house.LENGTHSCALE, count)
    np.testing.assert_allclose(eigengap, expected, atol=10 * house.eps())


def test_degenerate_spectra_give_no_nan():
    """All eigenvalues but one are 0; the second is the third; K = I."""
    angles = 2 * np.pi * np.arange(ROWS) / ROWS
    polygon = np.stack([np.cos(angles), np.sin(angles), 0 * angles], axis=1)
    far = 1e3 * np.arange(3.0 * ROWS).reshape(ROWS, 3)
    for X in (np.ones((ROWS, 3)), polygon, far):
        fit = ascent(1, X)
        assert bool(fit.finite)
        assert np.isfinite(fit.kernel.lengthscale)
        assert np.isfinite(fit.objectives).all()


@pytest.mark.parametrize("start", [1.5, 20])
def test_ascent_finds_the_maximum_of_a_grid(start):
    X = house.data().X
    fit = ascent(start, X)
    assert bool(fit.finite)
    largest = max(gap(X, lengthscale) for lengthscale in np.geomspace(0.05, 100, 400))
    objective = float(fit.objective)
    assert objective >= largest - 1e-4
    assert objective == np.asarray(fit.objectives).max()
    exact = gap(X, float(fit.kernel.lengthscale))
    assert objective == pytest.approx(exact, abs=20 * house.eps())
    X[0, 0] = np.nan
    assert not ascent(start, X).finite


def test_every_lengthscale_moves_within_its_factor_and_nothing_else_does():
    X = house.data().X
    product = kernels.Matern32(0.2) * kernels.Laplacian(50.0)
    kernel = 2.0 * kernels.Gaussian(0.1) + product
    fit = learn.fit_lengthscale(kernel, X, aligned, num_steps=60, factor=3.0)
    before = jax.tree_util.tree_leaves_with_path(kernel)
    after = jax.tree.leaves(fit.kernel)
    moved = 0
    for (path, old), new in zip(before, after, strict=True):
        if path[-1].name == "lengthscale":
            moved += float(new) != float(old)
            assert abs(np.log(new / old)) <= np.log(3) + 10 * house.eps()
        else:
            assert float(new) == float(old)
    assert moved == 3
    assert float(fit.objective) > float(fit.objectives[0])


def test_a_step_is_that_of_the_optimizer_in_the_logarithm():
    X = house.data().X
    fit = learn.fit_lengthscale(
        house.KERNEL, X, gap_of_two, num_steps=1, optimizer=optax.sgd(0.3)
    )
    # Right to 1e-10, and so is the step.
    ahead = gap(X, house.LENGTHSCALE * np.exp(1e-5))
    slope = (ahead - gap(X, house.LENGTHSCALE * np.exp(-1e-5))) / 2e-5
    expected = gap(X, house.LENGTHSCALE * np.exp(0.3 * slope))
    tolerance = 1e-10 + 20 * house.eps()
    assert float(fit.objectives[1]) == pytest.approx(expected, abs=tolerance)
