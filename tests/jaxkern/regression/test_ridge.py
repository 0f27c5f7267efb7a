"""Kernel ridge regression against dense formulas in float64 NumPy, and where landmarks lose nothing."""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close
from numpy.testing import assert_allclose
from support.numerics import changes, literal_gram, tuples

from jaxkern import kernels
from jaxkern.regression import ridge, ridge_to

pytestmark = pytest.mark.float64

REGULARIZATION = 0.3
OPTIONS = {"regularization": REGULARIZATION, "num_landmarks": 8}
ROWS, LANDMARKS, _ = house.USUAL


def table(**changes):
    """Return the usual data with NaN in the rows of weight 0, which do not exist."""
    data = dataclasses.replace(house.data(), **changes)
    missing = data.weights[:, None] == 0
    X = np.where(missing, np.nan, data.X)
    values = np.where(missing, np.nan, data.values)
    return dataclasses.replace(data, X=X, values=values)


def exact_dual(data):
    """Return a, 0 at missing rows: sum_i a_i K(., x_i) minimises sum_i w_i (f(x_i) - y_i)^2 + lambda |f|^2."""
    rows = data.weights > 0
    X = data.X[rows]
    weights = data.weights[rows][:, None]
    shifted = weights * literal_gram(X, X) + REGULARIZATION * np.eye(len(X))
    dual = np.zeros_like(data.values)
    dual[rows] = np.linalg.solve(shifted, weights * data.values[rows])
    return dual


def exact_values(data):
    """Return f(Y) of the minimiser over the RKHS."""
    return literal_gram(data.Y, np.nan_to_num(data.X)) @ exact_dual(data)


def nystrom_values(data, landmarks):
    """Return f(Y) of the minimiser over the span of landmarks: beta = (K_ZX W K_XZ + lambda K_ZZ)^-1 K_ZX W y."""
    rows = data.weights > 0
    features = literal_gram(data.X[rows], landmarks)
    weighted = features.T * data.weights[rows]
    shifted = weighted @ features + REGULARIZATION * literal_gram(landmarks, landmarks)
    beta = np.linalg.solve(shifted, weighted @ data.values[rows])
    return literal_gram(data.Y, landmarks) @ beta


def fit(data, number=0, solver=ridge, **options):
    arguments = OPTIONS | {"weights": data.weights} | options
    return solver(house.key(number), house.KERNEL, data.X, data.values, **arguments)


def test_with_all_rows_as_landmarks_it_is_the_exact_solution():
    """Of one column of labels; the other tests have two."""
    data = table()
    column = dataclasses.replace(data, values=data.values[:, 0])
    f = fit(column, num_landmarks=ROWS)
    close(f(data.Y), exact_values(data)[:, 0], 1e-12)
    assert f.distance_bound.shape == f.radius.shape == f.training_bound.shape == ()


def test_bounds_of_one_column_are_those_of_the_first_of_two():
    data = table()
    column = dataclasses.replace(data, values=data.values[:, 0])
    alone = fit(column)
    first_of_two = fit(data)
    for name in ("distance_bound", "radius", "training_bound"):
        # Products with one column and with two are summed in different orders.
        expected = getattr(first_of_two, name)[0]
        np.testing.assert_allclose(getattr(alone, name), expected, rtol=1e-6)


def test_to_a_tolerance_it_is_the_exact_solution():
    data = table()
    f = fit(data, solver=ridge_to, tolerance=1e-8)
    error = np.abs(np.asarray(f(data.Y)) - exact_values(data))
    # |f(x) - f*(x)| is at most |f - f*|, as K(x, x) = 1.
    assert np.all(error <= 1.1e-8)
    assert np.all(error <= np.asarray(f.bound_at(data.Y)))
    X = np.nan_to_num(data.X)
    difference = np.asarray(f.coefficients) - exact_dual(data)
    distance = np.sqrt((difference * (literal_gram(X, X) @ difference)).sum(axis=0))
    ratio = np.asarray(f.distance_bound) / distance
    assert np.all((ratio >= 1) & (ratio <= 1.5))
    assert bool(f.converged)
    assert np.max(f.distance_bound) <= 1e-8
    assert np.max(f.training_bound) <= 1e-8
    # One product for the first residual, seven for each round of five steps, one for the bounds.
    assert int(f.num_products) % 7 == 2
    assert 2 < int(f.num_products) <= 50


@pytest.mark.parametrize("choice", ["uniform", "pivoted_cholesky"])
def test_it_is_regression_on_the_span_of_landmarks_that_exist(choice):
    data = table()
    f = fit(data, landmarks=choice)
    # Of uniform landmarks the span is shifted by 1e-5 of the regularization.
    close(f(data.Y), nystrom_values(data, np.asarray(f.points)), 1e-4)
    landmarks = set(tuples(f.points))
    assert landmarks <= set(tuples(data.X[data.weights > 0]))
    assert len(landmarks) == LANDMARKS
    assert int(f.num_products) == 1


def test_pivots_find_all_rows_of_a_table_of_eight_and_uniform_landmarks_do_not():
    data = table(X=np.tile(house.data().landmarks, (3, 1)))
    exact = exact_values(data)
    errors = {"uniform": [], "pivoted_cholesky": []}
    for choice in errors:
        fits = [fit(data, number, landmarks=choice) for number in range(5)]
        # Landmarks are drawn by the key.
        assert len({np.asarray(f.points).tobytes() for f in fits}) == len(fits)
        errors[choice] = [np.abs(np.asarray(f(data.Y)) - exact).max() for f in fits]
    # The square root of the rounding of a kernel value is what pivots may leave.
    assert max(errors["pivoted_cholesky"]) <= 1e-7
    assert min(errors["uniform"]) > 1e-3


def test_without_a_certificate_nothing_is_claimed():
    f = fit(house.data(), certified=False)
    assert np.isnan([f.distance_bound, f.radius, f.training_bound]).all()
    assert int(f.num_products) == 0


def test_an_infinite_point_spoils_all_coefficients():
    for row in (0, 1, 4, 5):  # of which some are landmarks
        data = house.data()
        data.X[row, 0] = np.inf
        f = fit(data, solver=ridge_to, tolerance=1e-3)
        assert np.isnan(f.coefficients).all()


@pytest.mark.parametrize(
    ("choice", "count"), [("uniform", ROWS), ("pivoted_cholesky", LANDMARKS)]
)
def test_landmarks_move_with_the_lengthscale_and_the_points(choice, count):
    """All rows have a factorization of their own, and pivots a derivative of our own: the contracts have neither."""
    data = house.data()
    options = OPTIONS | {"num_landmarks": count, "landmarks": choice}

    @jax.jit
    @jax.value_and_grad
    def loss(arguments):
        lengthscale, X = arguments
        kernel = kernels.Gaussian(lengthscale)
        f = ridge(house.key(), kernel, X, data.values, certified=False, **options)
        return jnp.sum(f(data.Y) ** 3)

    start = (np.float64(house.LENGTHSCALE), data.X)
    step = (2e-6, 1e-5 * house.rng().normal(size=data.X.shape))
    slope, change = changes(loss, start, step)
    assert_allclose(change, slope, rtol=1e-4)
