"""Ridge regression on features: dense formulas, streams, and bounds against the exact kernel's solution."""

import dataclasses

import house
import jax
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.numerics import Identity, literal_gram

from jaxkern import regression, scale

pytestmark = pytest.mark.float64

ROWS, LANDMARKS, DIM = house.USUAL
REGULARIZATION = 0.5


def linear_map():
    """Return a map onto four features, of which the kernel knows nothing."""
    return Identity(house.rng().normal(size=(DIM, house.FEATURES)))


def dense(X, y, weights):
    """Return beta = (Z'WZ + lambda)^-1 Z'W y."""
    Z = X @ linear_map().matrix
    weighted = Z.T * weights
    shifted = weighted @ Z + REGULARIZATION * np.eye(house.FEATURES)
    return np.linalg.solve(shifted, weighted @ y)


def assert_head(head, data, weights):
    beta = dense(data.X, data.values, weights)
    values = data.X @ linear_map().matrix @ beta
    residual = weights @ (data.values - values) ** 2
    assert_allclose(head.coefficients, beta, rtol=1e-10)
    assert_allclose(head(data.X), values, rtol=1e-10)
    assert_allclose(head(data.X[0]), values[0], rtol=1e-10)
    assert_allclose(head.residual, residual, rtol=1e-10)
    assert_allclose(head.weight, weights.sum())


# One program in the place of one for each check of weights.
@jax.jit
def fit(X, y, weights):
    return regression.head(
        linear_map(), X, y, regularization=REGULARIZATION, weights=weights
    )


def test_a_head_is_the_dense_formula_and_rows_of_weight_0_do_not_exist():
    data = house.data()
    missing = data.weights[:, None] == 0
    X = np.where(missing, np.nan, data.X)
    y = np.where(missing, np.nan, data.values)
    assert_head(fit(X, y, data.weights), data, data.weights)
    # Nobody can refuse weights that are known only when the program runs.
    assert np.isnan(fit(X, y, 0 * data.weights).coefficients).all()


def test_parts_of_a_stream_merge_to_the_head_of_rows_that_count_twice():
    data = house.data()
    ridge = regression.streaming_ridge(linear_map(), num_outputs=2)
    start = ridge.init(data.X.dtype)
    counts = np.arange(ROWS) % 3
    rows = np.repeat(np.arange(ROWS), counts)
    first, second = (
        ridge.update(start, data.X[part], data.values[part])
        for part in np.split(rows, 2)
    )
    merge = jax.jit(ridge.merge)
    head = ridge.finalize(merge(first, second), regularization=REGULARIZATION)
    assert_head(head, data, np.float64(counts))
    # A sum of weights carries what rounding left out of it.
    large = dataclasses.replace(first, weight=np.array([2.0**53, 1]))
    weight = np.asarray(merge(large, large).weight)
    assert int(weight[0]) + int(weight[1]) == 2**54 + 2


def test_streams_of_files_go_on_from_where_they_were(tmp_path):
    data = house.data()
    labels = data.values[:, 0]
    np.save(tmp_path / "X.npy", data.X)
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    ridge = regression.streaming_ridge(linear_map())
    Z = data.X @ linear_map().matrix
    options = {"num_streams": 2, "block_size": 7, "progress": tmp_path / "progress"}
    for _ in range(2):  # the second time from the file of the progress
        state = scale.stream(ridge, X, y=labels, **options)
        assert_allclose(state.gram, Z.T @ Z, rtol=1e-10)
        assert_allclose(state.products, Z.T @ labels, rtol=1e-10)
    with pytest.raises(ValueError, match="belongs to another run: y is"):
        scale.stream(ridge, X, y=1 + labels, **options)
    with pytest.raises(ValueError, match="y must have a label for each of 24 rows"):
        scale.stream(ridge, X)


def test_bounds_of_a_head_hold_against_the_exact_solution_and_are_not_far():
    data = house.data()
    X = data.X / 4  # near enough for landmarks to stand for all rows
    K = literal_gram(X, X)
    weights = data.weights[:, None]
    shifted = weights * K + REGULARIZATION * np.eye(ROWS)
    exact = K @ np.linalg.solve(shifted, weights * data.values)
    beta = dense(X, data.values, data.weights)
    head = regression.Head(linear_map(), beta, np.float64(REGULARIZATION), 0.0, 0.0)
    arguments = (head, house.KERNEL, X, data.values)
    options = {"num_landmarks": LANDMARKS, "weights": data.weights}
    certified = regression.certified_head(house.key(), *arguments, **options)
    values, bounds = map(np.asarray, jax.jit(certified.with_bounds)(X))
    errors = np.abs(values - exact)
    at_rows = np.sqrt((weights * errors**2).sum(axis=0))
    ratio = np.asarray(certified.training_bound) / at_rows
    assert np.all(errors <= bounds + 1e-12)
    assert np.median(bounds) < 1.5 * np.median(errors)
    assert np.all((ratio >= 1) & (ratio <= 1.5))
