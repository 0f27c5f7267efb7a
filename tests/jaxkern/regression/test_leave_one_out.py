"""Leave-one-out residuals against refits, and their derivatives where eigenvalues coincide."""

from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close
from numpy.testing import assert_allclose, assert_array_equal
from support.numerics import changes, literal_gram

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
    K = literal_gram(data.X, data.X)
    if few:
        cross = literal_gram(data.X, data.landmarks)
        inner = literal_gram(data.landmarks, data.landmarks)
        K = cross @ np.linalg.pinv(inner, 1e-12, hermitian=True) @ cross.T
    options = {"weights": weights, "landmarks": data.landmarks if few else None}
    run = partial(leave_one_out, house.KERNEL, data.X, **options)
    path = run(data.values, regularization=PATH)
    flat = run(data.values[:, 1], regularization=PATH[-1])
    # The span of landmarks is shifted by 1e-5 of the regularization.
    tolerance = 1e-4 if few else 1e-11
    for residuals, regularization in zip(path, PATH, strict=True):
        expected = [
            refitted_residual(K, data.values, weights, row, regularization)
            for row in range(ROWS)
        ]
        close(residuals, expected, tolerance)
    close(flat, np.array(expected)[:, 1], tolerance)


def test_all_rows_as_landmarks_are_none():
    """Features of all rows would have the rounding of square roots of eigenvalues."""
    data = house.data()
    arguments = (house.KERNEL, data.X, data.values)
    residuals = leave_one_out(*arguments, regularization=PATH)
    same = leave_one_out(*arguments, regularization=PATH, landmarks=data.X.copy())
    assert_array_equal(residuals, same)


def test_derivatives_are_right_where_eigenvalues_coincide():
    """On a polygon with every third vertex a landmark, every second eigenvalue is that of the one before it."""
    angles = 2 * np.pi * np.arange(ROWS) / ROWS
    polygon = np.stack([np.cos(angles), np.sin(angles)], axis=1)

    @jax.jit
    @jax.value_and_grad
    def total(arguments):
        lengthscale, options = arguments
        kernel = kernels.Gaussian(lengthscale)
        return jnp.sum(jnp.sin(leave_one_out(kernel, **options)))

    options = {"X": polygon, "y": house.data().values, "regularization": PATH}
    options |= {"landmarks": polygon[::3], "weights": np.full(ROWS, 1.5)}
    start = (np.float64(0.8), options)
    rng = house.rng()
    step = jax.tree.map(lambda leaf: 1e-6 * rng.normal(size=leaf.shape), start)
    slope, change = changes(total, start, step)
    assert abs(slope) > 1e-8
    assert_allclose(change, slope, rtol=1e-5)
