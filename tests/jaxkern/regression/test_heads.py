"""Ridge regression on features: dense formulas, streams, and bounds against the exact kernel's solution."""

import dataclasses

import house
import numpy as np
import pytest
from support.numerics import Identity, literal_gram

from jaxkern import regression, scale

pytestmark = pytest.mark.float64

ROWS, _, DIM = house.USUAL
REGULARIZATION = 0.5
COUNTS = np.arange(ROWS) % 3
"""How often each row counts."""


def linear_map():
    """Return a map onto four features, of which the kernel knows nothing."""
    return Identity(house.rng().normal(size=(DIM, house.FEATURES)))


def dense(phi, X, y, weights):
    """Return (Z'WZ + lambda)^-1 Z'W y, and the weighted squares that it leaves."""
    Z = X @ phi.matrix
    weighted = Z.T * weights
    shifted = weighted @ Z + REGULARIZATION * np.eye(house.FEATURES)
    beta = np.linalg.solve(shifted, weighted @ y)
    return beta, weights @ (y - Z @ beta) ** 2


def assert_head(head, phi, data, weights):
    beta, residual = dense(phi, data.X, data.values, weights)
    np.testing.assert_allclose(head.coefficients, beta, rtol=1e-10)
    np.testing.assert_allclose(head.residual, residual, rtol=1e-10)
    assert float(head.weight) == pytest.approx(weights.sum())


def test_a_head_is_the_dense_formula_and_rows_of_weight_0_do_not_exist():
    data = house.data()
    phi = linear_map()
    missing = data.weights[:, None] == 0
    X = np.where(missing, np.nan, data.X)
    y = np.where(missing, np.nan, data.values)
    options = {"regularization": REGULARIZATION, "weights": data.weights}
    head = regression.head(phi, X, y, **options)
    assert_head(head, phi, data, data.weights)
    flat = regression.head(phi, X, y[:, 1], **options)
    values = data.Y @ phi.matrix @ head.coefficients
    np.testing.assert_allclose(head(data.Y), values, rtol=1e-10)
    np.testing.assert_allclose(flat(data.Y), values[:, 1], rtol=1e-10)
    np.testing.assert_allclose(flat(data.Y[0]), values[0, 1], rtol=1e-10)


def test_parts_of_a_stream_merge_to_the_head_of_rows_that_count_twice():
    data = house.data()
    phi = linear_map()
    ridge = regression.streaming_ridge(phi, num_outputs=2)
    rows = np.repeat(np.arange(ROWS), COUNTS)
    states = [
        ridge.update(ridge.init(data.X.dtype), data.X[half], data.values[half])
        for half in np.split(rows, 2)
    ]
    head = ridge.finalize(ridge.merge(*states), regularization=REGULARIZATION)
    assert_head(head, phi, data, np.float64(COUNTS))
    # A sum of weights carries what rounding left out of it.
    large = dataclasses.replace(states[0], weight=np.array([2.0**53, 1]))
    weight = np.asarray(ridge.merge(large, large).weight)
    assert int(weight[0]) + int(weight[1]) == 2**54 + 2


def test_streams_of_files_go_on_from_where_they_were(tmp_path):
    data = house.data()
    files = []
    for name, array in (("X.npy", data.X), ("y.npy", data.values[:, 0])):
        np.save(tmp_path / name, array)
        files.append(np.load(tmp_path / name, mmap_mode="r"))
    X, y = files
    ridge = regression.streaming_ridge(linear_map())
    state = ridge.update(ridge.init(data.X.dtype), data.X, data.values[:, 0])
    # Blocks of 6 rows and of less: two streams of 12 rows read 6 twice.
    options = {"num_streams": 2, "block_size": 6, "progress": tmp_path / "progress"}
    for _ in range(2):  # the second time from the file of the progress
        streamed = scale.stream(ridge, X, y=y, **options)
        np.testing.assert_allclose(streamed.gram, state.gram, rtol=1e-10)
        np.testing.assert_allclose(streamed.products, state.products, rtol=1e-10)
        np.testing.assert_allclose(streamed.squares, state.squares, rtol=1e-10)
    with pytest.raises(ValueError, match="belongs to another run: y is"):
        scale.stream(ridge, X, y=1 + y, **options)
    with pytest.raises(ValueError, match="y must have a label for each of 24 rows"):
        scale.stream(ridge, X)


def test_bounds_of_a_head_hold_against_the_exact_solution_and_are_not_far():
    data = house.data()
    points = np.concatenate([data.X, data.Y])
    K = literal_gram(points, data.X, house.LENGTHSCALE)
    weights = data.weights[:, None]
    shifted = weights * K[:ROWS] + REGULARIZATION * np.eye(ROWS)
    exact = K @ np.linalg.solve(shifted, weights * data.values)
    head = regression.head(
        linear_map(),
        data.X,
        data.values,
        regularization=REGULARIZATION,
        weights=data.weights,
    )
    certified = regression.certified_head(
        house.key(),
        head,
        house.KERNEL,
        data.X,
        data.values,
        num_landmarks=ROWS - 4,
        weights=data.weights,
    )
    values, bounds = certified.with_bounds(points)
    errors = np.abs(np.asarray(values) - exact)
    assert np.all(errors <= np.asarray(bounds) + 1e-12)
    assert np.median(bounds) < 1.5 * np.median(errors)
    at_rows = np.sqrt((weights * errors[:ROWS] ** 2).sum(axis=0))
    assert np.all(at_rows <= np.asarray(certified.training_bound) + 1e-12)
    assert np.all(np.asarray(certified.training_bound) <= 1.5 * at_rows)
