"""Bounds against the exact solution: they hold in extended precision, and are attained where K is a multiple of I.

The theorems are those of docs/theory/regression.md.
"""

import house
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.numerics import Identity, literal_gram

from jaxkern import kernels
from jaxkern.regression import (
    certified_head,
    head,
    posterior_variance,
    ridge,
    ridge_to,
)
from proofs_check.engine.enclosures import balls, precision

flint = pytest.importorskip("flint")

ROWS, LANDMARKS, _ = house.USUAL
OPTIONS = {"regularization": 0.3, "num_landmarks": LANDMARKS}
KERNEL = house.KERNEL + kernels.Linear()
"""Not bounded: its values at rows far from the origin are large, and so is their rounding."""


def gaussian_gram(X, Y):
    """Return the Gram matrix of `house.KERNEL` in balls."""
    gaps = balls(X)[:, None] - balls(Y)[None]
    return np.exp(-(gaps**2).sum(axis=2) / (2 * house.LENGTHSCALE**2))


def exact_gram(X, Y):
    return gaussian_gram(X, Y) + balls(X) @ balls(Y).T


def shifted_solution(A, shift, B):
    """Return (A + shift)^-1 B in balls."""
    A = A + np.diag(balls(np.full(len(A), shift)))
    solution = flint.arb_mat(A.tolist()).solve(flint.arb_mat(B.tolist()))
    return np.array(solution.tolist(), dtype=object)


def floats(values):
    return np.vectorize(lambda x: float(x.mid()))(values)


@given(
    family=st.sampled_from(sorted(house.FAMILIES)),
    seed=st.integers(0, 2**16),
    scale=st.sampled_from([0.01, 0.1, 1, 10]),
    size=st.sampled_from([1e-3, 1, 1e3]),
    share=st.sampled_from([1e-8, 1e-6, 1e-4, 1e-2, 1, 100]),
)
def test_bounds_hold_in_extended_precision(family, seed, scale, size, share):
    """Of points and labels of any size, and a regularization that is a share of the trace of K."""
    data = house.data(family, seed=seed)
    X = np.asarray(scale * data.X, house.dtype())
    Y = np.asarray(scale * data.Y, house.dtype())
    labels = np.asarray(size * data.values, house.dtype())
    trace = data.weights @ (1 + (X**2).sum(axis=1))
    options = {
        "regularization": house.dtype().type(share * trace),
        "num_landmarks": LANDMARKS,
        "weights": data.weights,
    }
    pivots = ridge(
        house.key(), KERNEL, X, labels, landmarks="pivoted_cholesky", **options
    )
    # More products than single precision has a use for: the last ones are rounding.
    steps = ridge_to(
        house.key(), KERNEL, X, labels, tolerance=1e-6, max_products=40, **options
    )
    lower, upper = posterior_variance(house.key(), KERNEL, X, Y, **options)
    with precision(300):
        roots = np.sqrt(balls(data.weights))[:, None]
        columns = exact_gram(X, Y)
        K = roots * exact_gram(X, X) * roots.T
        sides = roots * np.concatenate([balls(labels), columns], axis=1)
        dual = roots * shifted_solution(K, options["regularization"], sides)
        explained = (columns * dual[:, 2:]).sum(axis=0)
        variance = floats(np.diag(exact_gram(Y, Y)) - explained)
        for f in (pivots, steps):
            # f - f* in sections at the points of f and at those of f*.
            points = np.concatenate([f.points, X])
            difference = np.concatenate([balls(f.coefficients), -dual[:, :2]])
            squares = (difference * (exact_gram(points, points) @ difference)).sum(0)
            distance = np.sqrt(np.maximum(floats(squares), 0))
            at_rows = floats(abs(roots * (exact_gram(X, points) @ difference)))
            at_points = floats(abs(balls(f(Y)) - columns.T @ dual[:, :2]))
            assert np.isfinite(f.distance_bound).all()
            assert np.all(distance <= np.float64(f.distance_bound))
            assert np.all(at_rows <= np.float64(f.training_bound))
            assert np.all(at_points <= np.float64(f.bound_at(Y)))
    assert np.all(np.asarray(lower) >= 0)
    assert np.all(np.float64(lower) <= variance)
    assert np.all(variance <= np.float64(upper))
    assert np.isfinite(upper).all()
    largest = max(np.max(steps.distance_bound), np.max(steps.training_bound))
    assert bool(steps.converged) == bool(largest <= house.dtype().type(1e-6))


@pytest.mark.parametrize("share", [1000, 1])
def test_all_rows_as_landmarks_have_the_rounding_of_a_plain_solve(share):
    """Also where the regularization is less than 4 eps tr K, which would be another regularization."""
    data = house.data()
    X = 4 * data.X  # far enough apart for K to be well conditioned
    Y = X + data.landmarks[:1]
    shift = house.dtype().type(share * house.eps())
    f = ridge(
        house.key(),
        house.KERNEL,
        X,
        data.values,
        regularization=shift,
        num_landmarks=ROWS,
    )
    with precision(300):
        dual = shifted_solution(gaussian_gram(X, X), shift, balls(data.values))
        exact = floats(gaussian_gram(Y, X) @ dual)
    K = literal_gram(X, X, house.LENGTHSCALE) + shift * np.eye(ROWS)
    dual = np.linalg.solve(K.astype(house.dtype()), data.values)
    plain = literal_gram(Y, X, house.LENGTHSCALE).astype(house.dtype()) @ dual
    error = np.abs(np.float64(f(Y)) - exact)
    assert error.max() <= 4 * np.abs(plain - exact).max() <= 500 * house.eps()
    assert np.all(error <= np.float64(f.bound_at(Y)))


@pytest.mark.float64
@pytest.mark.parametrize("regularization", [1, 3])
@pytest.mark.parametrize("solver", ["ridge", "ridge_to", "head"])
def test_bounds_are_attained_where_the_gram_matrix_is_the_identity(
    solver, regularization
):
    """One of five rows is a landmark, and the others leave a residual rho of equal entries, an eigenvector of K.

    Theorem 1 gives |rho| / (2 sqrt(lambda)), which is the distance where lambda = 1. Theorem 2 gives
    r^2 = |rho|^2 / (lambda + lambda^2) at the best multiple of z = rho / lambda, and |rho|^2 / lambda without one.
    """
    rows = np.eye(5)  # K = I of the linear kernel
    arguments = (house.key(), kernels.Linear(), rows, np.ones(5))
    options = {"num_landmarks": 1, "regularization": float(regularization)}
    best = (regularization + regularization**2) ** 0.5
    if solver == "ridge":
        f = ridge(*arguments, **options)
        size = 2
    elif solver == "ridge_to":
        # So large a tolerance is reached before the first step, which leaves |y| / lambda at the other rows.
        f = ridge_to(*arguments, tolerance=1e6, **options)
        size = 2 / regularization
        assert int(f.num_products) == 2
    else:
        zero = head(
            Identity(np.zeros((5, 1))),
            *arguments[2:],
            regularization=float(regularization),
        )
        f = certified_head(house.key(), zero, *arguments[1:], num_landmarks=1).dual
        # The dual vector of the labels is corrected once by the landmark.
        size = 2 / regularization**2
        best = regularization**0.5
    # The norm of a function is that of its values, as K = I.
    distance = np.linalg.norm(np.asarray(f(rows)) - 1 / (1 + regularization))
    bound = size / (2 * regularization**0.5)
    radius = size / best
    np.testing.assert_allclose(f.distance_bound, min(bound, radius), rtol=1e-9)
    np.testing.assert_allclose(f.radius, radius, rtol=1e-9)
    if regularization == 1:
        np.testing.assert_allclose(f.distance_bound, distance, rtol=1e-9)
    assert distance <= f.distance_bound
    training = size if solver == "head" else min(size, regularization**0.5 * radius)
    np.testing.assert_allclose(f.training_bound, training, rtol=1e-9)
    # The posterior deviation is less than 1 at the landmark.
    width = np.where(
        rows @ f.landmarks[0] == 1, (1 - 1 / (1 + regularization)) ** 0.5, 1
    )
    at_rows = np.minimum(width * radius, min(bound, radius))
    np.testing.assert_allclose(f.bound_at(rows), at_rows, rtol=1e-9)


@pytest.mark.float64
def test_the_posterior_variance_is_between_limits_that_landmarks_narrow():
    """They are at most delta^2 (1 + delta) k' (K + lambda)^-1 k apart, for delta = |K - Khat| / lambda."""
    data = house.data()
    # Points are taken in blocks of 256.
    points = np.concatenate([data.X + 0.03 * i for i in range(13)])
    options = OPTIONS | {"landmarks": "pivoted_cholesky"}
    lower, upper = posterior_variance(
        house.key(), house.KERNEL, data.X, points, **options
    )
    f = ridge(house.key(), house.KERNEL, data.X, data.values, **options)
    K = literal_gram(data.X, data.X, house.LENGTHSCALE)
    k = literal_gram(data.X, points, house.LENGTHSCALE)
    explained = (k * np.linalg.solve(K + 0.3 * np.eye(ROWS), k)).sum(axis=0)
    assert np.all(np.asarray(lower) <= 1 - explained + 1e-12)
    assert np.all(1 - explained <= np.asarray(upper) + 1e-12)
    cross = literal_gram(data.X, f.landmarks, house.LENGTHSCALE)
    inner = literal_gram(f.landmarks, f.landmarks, house.LENGTHSCALE)
    left = K - cross @ np.linalg.solve(inner, cross.T)
    delta = np.linalg.norm(left, 2) / 0.3
    gap = delta**2 * (1 + delta) * explained
    assert np.all(np.asarray(upper) - np.asarray(lower) <= gap + 1e-10)


def squared_exponential(x, y):
    return jnp.exp(-jnp.sum((x - y) ** 2))


def test_without_a_certificate_or_a_known_rounding_nothing_is_claimed():
    data = house.data(shape=house.ODD)
    options = {"num_landmarks": 2, "regularization": 0.3}
    table = (data.X, data.values)
    f = ridge(house.key(), house.KERNEL, *table, certified=False, **options)
    bounds = (f.distance_bound, f.radius, f.training_bound)
    assert np.isnan(bounds).all()
    assert int(f.num_products) == 0
    assert np.isfinite(f(data.Y)).all()
    f = ridge(house.key(), squared_exponential, *table, **options)
    assert np.isinf(f.distance_bound).all()
    assert np.isinf(f.bound_at(data.Y)).all()
    assert np.isfinite(f(data.Y)).all()
    lower, upper = posterior_variance(
        house.key(), squared_exponential, data.X, data.Y, **options
    )
    assert not np.any(lower)
    assert np.isinf(upper).all()
