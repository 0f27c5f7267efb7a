"""Kernel ridge regression against dense formulas in float64 NumPy, and where landmarks lose nothing."""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import literal_gram

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


def gram(X, Y):
    return literal_gram(X, Y, house.LENGTHSCALE)


def exact_dual(data):
    """Return a, 0 at missing rows: sum_i a_i K(., x_i) minimises sum_i w_i (f(x_i) - y_i)^2 + lambda |f|^2."""
    rows = data.weights > 0
    X = data.X[rows]
    weights = data.weights[rows][:, None]
    shifted = weights * gram(X, X) + REGULARIZATION * np.eye(len(X))
    dual = np.zeros_like(data.values)
    dual[rows] = np.linalg.solve(shifted, weights * data.values[rows])
    return dual


def exact_values(data):
    """Return f(Y) of the minimiser over the RKHS."""
    return gram(data.Y, np.nan_to_num(data.X)) @ exact_dual(data)


def nystrom_values(data, landmarks):
    """Return f(Y) of the minimiser over the span of landmarks: beta = (K_ZX W K_XZ + lambda K_ZZ)^-1 K_ZX W y."""
    rows = data.weights > 0
    features = gram(data.X[rows], landmarks)
    weighted = features.T * data.weights[rows]
    shifted = weighted @ features + REGULARIZATION * gram(landmarks, landmarks)
    beta = np.linalg.solve(shifted, weighted @ data.values[rows])
    return gram(data.Y, landmarks) @ beta


def fit(data, number=0, solver=ridge, **options):
    arguments = OPTIONS | {"weights": data.weights} | options
    return solver(house.key(number), house.KERNEL, data.X, data.values, **arguments)


def test_with_all_rows_as_landmarks_it_is_the_exact_solution():
    data = table()
    f = fit(data, num_landmarks=ROWS)
    np.testing.assert_allclose(f(data.Y), exact_values(data), atol=1e-12)


def test_to_a_tolerance_it_is_the_exact_solution():
    data = table()
    f = fit(data, solver=ridge_to, tolerance=1e-8)
    error = np.abs(np.asarray(f(data.Y)) - exact_values(data))
    # |f(x) - f*(x)| is at most |f - f*|, as K(x, x) = 1.
    assert np.all(error <= 1.1e-8)
    X = np.nan_to_num(data.X)
    difference = np.asarray(f.coefficients) - exact_dual(data)
    distance = np.sqrt((difference * (gram(X, X) @ difference)).sum(axis=0))
    print("RATIO", f.distance_bound / distance, distance)
    assert np.all(error <= np.asarray(f.bound_at(data.Y)))
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
    expected = nystrom_values(data, np.asarray(f.points))
    # Of uniform landmarks the span is shifted by 1e-5 of the regularization.
    np.testing.assert_allclose(f(data.Y), expected, atol=1e-4)
    present = {tuple(row) for row in data.X[data.weights > 0]}
    landmarks = {tuple(row) for row in np.asarray(f.points)}
    assert landmarks <= present
    assert len(landmarks) == LANDMARKS
    assert int(f.num_products) == 1


def test_columns_are_solved_side_by_side():
    data = table()
    both = fit(data)
    flat = fit(dataclasses.replace(data, values=data.values[:, 1]))
    np.testing.assert_allclose(flat(data.Y), both(data.Y)[:, 1], atol=1e-10)
    bounds = np.asarray(both.bound_at(data.Y))[:, 1]
    np.testing.assert_allclose(flat.bound_at(data.Y), bounds, rtol=1e-6)
    assert flat.distance_bound.shape == ()
    assert both.distance_bound.shape == (2,)
    assert both.coefficients.shape == (LANDMARKS, 2)


def test_pivots_find_all_rows_of_a_table_of_eight_and_uniform_landmarks_do_not():
    data = table(X=np.tile(house.data().landmarks, (3, 1)))
    exact = exact_values(data)
    errors = {}
    for choice in ("uniform", "pivoted_cholesky"):
        fits = [fit(data, number, landmarks=choice) for number in range(5)]
        errors[choice] = [np.abs(np.asarray(f(data.Y)) - exact).max() for f in fits]
    # The square root of the rounding of a kernel value is what pivots may leave.
    assert max(errors["pivoted_cholesky"]) <= 1e-7
    assert min(errors["uniform"]) > 1e-3


def test_a_map_over_tables_gives_the_same_and_an_infinite_point_spoils_only_its_own():
    """The contracts map `ridge`, and `ridge_to` in the slow run alone."""
    tables = [house.data(seed=seed) for seed in range(3)]
    X = np.stack([data.X for data in tables])
    values = np.stack([data.values for data in tables])

    def solve(key, X, y):
        return ridge_to(key, house.KERNEL, X, y, tolerance=1e-3, **OPTIONS)

    solve_all = jax.jit(jax.vmap(solve))
    keys = jax.vmap(jax.random.key)(np.arange(3))
    stacked = jax.device_get(solve_all(keys, X, values))
    for i, data in enumerate(tables):
        alone = solve(house.key(i), data.X, data.values)
        mapped = jax.tree.map(lambda leaf, i=i: leaf[i], stacked)
        np.testing.assert_allclose(mapped(data.Y), alone(data.Y), atol=1e-6)
        np.testing.assert_allclose(
            mapped.distance_bound, alone.distance_bound, rtol=0.2, atol=1e-6
        )
    for row in range(4):  # some of which are landmarks
        spoilt = X.copy()
        spoilt[1, row, 0] = np.inf
        coefficients = np.asarray(solve_all(keys, spoilt, values).coefficients)
        assert np.isfinite(coefficients[::2]).all()
        assert np.isnan(coefficients[1]).any()


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
        kernel = kernels.Gaussian(arguments[0])
        f = ridge(
            house.key(), kernel, arguments[1], data.values, certified=False, **options
        )
        return jnp.sum(f(data.Y) ** 3)

    start = (np.float64(house.LENGTHSCALE), data.X)
    rng = house.rng()
    step = (1e-5 * rng.normal(), 1e-5 * rng.normal(size=data.X.shape))
    ahead = loss(jax.tree.map(np.add, start, step))[0]
    behind = loss(jax.tree.map(np.subtract, start, step))[0]
    value, slopes = loss(start)
    slope = sum(jax.tree.leaves(jax.tree.map(np.vdot, slopes, step)))
    np.testing.assert_allclose((ahead - behind) / 2, slope, rtol=1e-4)
    if count == ROWS:
        data = dataclasses.replace(data, weights=np.ones(ROWS))
        np.testing.assert_allclose(value, np.sum(exact_values(data) ** 3), rtol=1e-10)
