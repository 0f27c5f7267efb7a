"""Leave-one-out residuals against refits, and their derivatives where eigenvalues coincide."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import literal_gram

from jaxkern import kernels
from jaxkern.regression import leave_one_out

pytestmark = pytest.mark.float64

ROWS, _, _ = house.USUAL
PATH = np.array([0.05, 0.4, 3.0])


def refitted_residual(K, y, weights, row, regularization):
    """Return y_i - f_i(x_i) of a fit without one copy of row i: the whole row, if its weight is at most 1."""
    if weights[row] == 0:
        return np.zeros_like(y[row])
    left = weights.copy()
    left[row] = max(weights[row] - 1, 0)
    shifted = left[:, None] * K + regularization * np.eye(ROWS)
    return y[row] - K[row] @ np.linalg.solve(shifted, left[:, None] * y)


@pytest.mark.parametrize("few", [False, True])
def test_residuals_are_those_of_refits(few):
    """Of all rows, and of solutions in the span of landmarks, which stay."""
    data = house.data("duplicates")
    weights = 3 * data.weights  # none, part of a row, and more than one
    weights[0] = 1
    landmarks = data.landmarks if few else None
    K = literal_gram(data.X, data.X, house.LENGTHSCALE)
    if few:
        cross = literal_gram(data.X, data.landmarks, house.LENGTHSCALE)
        inner = literal_gram(data.landmarks, data.landmarks, house.LENGTHSCALE)
        K = cross @ np.linalg.pinv(inner, 1e-12, hermitian=True) @ cross.T
    options = {"weights": weights, "landmarks": landmarks}
    path = leave_one_out(
        house.KERNEL, data.X, data.values, regularization=PATH, **options
    )
    # The span of landmarks is shifted by 1e-5 of the regularization.
    tolerance = 1e-4 if few else 1e-11
    for residuals, regularization in zip(path, PATH, strict=True):
        expected = [
            refitted_residual(K, data.values, weights, row, regularization)
            for row in range(ROWS)
        ]
        np.testing.assert_allclose(residuals, expected, atol=tolerance)
    flat = leave_one_out(
        house.KERNEL, data.X, data.values[:, 1], regularization=PATH[-1], **options
    )
    np.testing.assert_allclose(flat, np.array(expected)[:, 1], atol=tolerance)


def test_all_rows_as_landmarks_are_none():
    """Features of all rows would have the rounding of square roots of eigenvalues."""
    data = house.data()
    arguments = (house.KERNEL, data.X, data.values)
    residuals = leave_one_out(*arguments, regularization=PATH)
    same = leave_one_out(*arguments, regularization=PATH, landmarks=data.X.copy())
    np.testing.assert_array_equal(residuals, same)


def test_derivatives_are_right_where_eigenvalues_coincide():
    """On a polygon with every third vertex a landmark, every second eigenvalue is that of the one before it."""
    angles = 2 * np.pi * np.arange(ROWS) / ROWS
    polygon = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    @jax.jit
    @jax.value_and_grad
    def total(arguments):
        lengthscale, X, landmarks, y, path, weights = arguments
        residuals = leave_one_out(
            kernels.Gaussian(lengthscale),
            X,
            y,
            regularization=path,
            landmarks=landmarks,
            weights=weights,
        )
        return jnp.sum(jnp.sin(residuals))

    start = (
        np.float64(0.8),
        polygon,
        polygon[::3],
        house.data().values,
        PATH,
        np.full(ROWS, 1.5),
    )
    rng = house.rng()
    step = jax.tree.map(lambda leaf: 1e-6 * rng.normal(size=leaf.shape), start)
    ahead, _ = total(jax.tree.map(np.add, start, step))
    behind, _ = total(jax.tree.map(np.subtract, start, step))
    _, slopes = total(start)
    slope = sum(jax.tree.leaves(jax.tree.map(np.vdot, slopes, step)))
    assert abs(slope) > 1e-8
    assert float(ahead - behind) / 2 == pytest.approx(float(slope), rel=1e-5)
