"""Bounds against the exact solution: they hold in extended precision, and are attained where K is the identity.

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
    Head,
    certified_head,
    posterior_variance,
    ridge,
    ridge_to,
)
from proofs_check.engine.enclosures import balls, precision

flint = pytest.importorskip("flint")

ROWS, LANDMARKS, DIM = house.USUAL
OPTIONS = {"regularization": 0.3, "num_landmarks": LANDMARKS}
KERNEL = house.KERNEL + kernels.Linear()
"""Not bounded: its values at rows far from the origin are large, and so is their rounding."""


def gaussian_gram(X, Y):
    """Return the Gram matrix of `house.KERNEL` in balls."""
    gaps = balls(X)[:, None] - balls(Y)
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
    number = house.dtype().type
    X = number(scale) * data.X
    Y = number(scale) * data.Y
    labels = number(size) * data.values
    shift = number(share * data.weights @ (1 + (X**2).sum(axis=1)))
    options = OPTIONS | {"regularization": shift, "weights": data.weights}
    arguments = (house.key(), KERNEL, X, labels)
    few = ridge(*arguments, **options)
    # More products than single precision has a use for: the last ones are rounding.
    steps = ridge_to(*arguments, tolerance=1e-6, max_products=40, **options)
    lower, upper = posterior_variance(house.key(), KERNEL, X, Y, **options)
    with precision(300):
        roots = np.sqrt(balls(data.weights))[:, None]
        columns = exact_gram(X, Y)
        K = roots * exact_gram(X, X) * roots.T
        sides = roots * np.concatenate([balls(labels), columns], axis=1)
        dual = roots * shifted_solution(K, shift, sides)
        explained = (columns * dual[:, 2:]).sum(axis=0)
        variance = floats(np.diag(exact_gram(Y, Y)) - explained)
        for f in (few, steps):
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
    assert np.all(np.float64(lower) >= 0)
    assert np.all(np.float64(lower) <= variance)
    assert np.all(variance <= np.float64(upper))
    assert np.isfinite(upper).all()
    largest = np.maximum(np.float64(steps.distance_bound), steps.training_bound).max()
    assert bool(steps.converged) == bool(largest <= number(1e-6))


@pytest.mark.parametrize("share", [1000, 1])
def test_a_regularization_of_the_order_of_rounding_is_not_enlarged(share):
    """4 eps tr K is 96 eps here, and would be another regularization."""
    data = house.data()
    X = 4 * data.X  # far enough apart for float64 to tell the solution to a few eps
    options = {"regularization": share * house.eps(), "num_landmarks": ROWS}
    f = ridge(house.key(), house.KERNEL, X, data.values, **options)
    K = literal_gram(X, X, house.LENGTHSCALE)
    dual = np.linalg.solve(K + share * house.eps() * np.eye(ROWS), data.values)
    error = np.abs(np.float64(f(X)) - K @ dual)
    assert error.max() <= 20 * house.eps()
    assert np.all(error <= np.float64(f.bound_at(X)))


@pytest.mark.float64
@pytest.mark.parametrize("shift", [1.0, 3.0])
@pytest.mark.parametrize("solver", ["ridge", "ridge_to", "head"])
def test_bounds_are_attained_where_the_gram_matrix_is_the_identity(solver, shift):
    """What is no landmark leaves a residual rho of equal entries, an eigenvector of K with the eigenvalue 1.

    Theorem 1 gives |rho| / (2 sqrt(lambda)), which is the distance where lambda = 1. Theorem 2 gives
    r^2 = |rho|^2 / (lambda + lambda^2) at the best multiple of z = rho / lambda, and |rho|^2 / lambda without one.
    """
    X = np.full((ROWS, DIM), 1e3) * np.arange(ROWS)[:, None]
    arguments = (house.KERNEL, X, np.ones((ROWS, 2)))
    options = {"num_landmarks": LANDMARKS, "regularization": shift}
    left = (ROWS - LANDMARKS) ** 0.5
    best = (shift + shift**2) ** 0.5
    if solver == "ridge":
        f = ridge(house.key(), *arguments, **options)
    elif solver == "ridge_to":
        # So large a tolerance is reached before the first step, which leaves y / lambda.
        f = ridge_to(house.key(), *arguments, tolerance=1e6, **options)
        left /= shift
        assert int(f.num_products) == 2
    else:
        # The dual vector of the labels, y / lambda, is corrected once.
        phi = Identity(np.zeros((DIM, house.FEATURES)))
        zero = Head(phi, np.zeros((house.FEATURES, 2)), np.float64(shift), 0.0, 0.0)
        certified = certified_head(
            house.key(), zero, *arguments, num_landmarks=LANDMARKS
        )
        f = certified.dual
        left /= shift**2
        best = shift**0.5
    bound = min(left / (2 * shift**0.5), left / best)
    training = left if solver == "head" else min(left, shift**0.5 * left / best)
    np.testing.assert_allclose(f.distance_bound, [bound] * 2, rtol=1e-9)
    np.testing.assert_allclose(f.radius, [left / best] * 2, rtol=1e-9)
    np.testing.assert_allclose(f.training_bound, [training] * 2, rtol=1e-9)
    # The posterior deviation is less than 1 at landmarks.
    is_landmark = np.isin(X[:, :1], f.landmarks)
    width = np.where(is_landmark, (1 - 1 / (1 + shift)) ** 0.5, [1, 1])
    at_rows = np.minimum(width * left / best, bound)
    np.testing.assert_allclose(f.bound_at(X), at_rows, rtol=1e-9)
    # The norm of a function is that of its values, as K = I.
    distance = np.linalg.norm(np.asarray(f(X)) - 1 / (1 + shift), axis=0)
    assert np.all(distance <= f.distance_bound)
    assert shift == 3 or np.all(f.distance_bound <= distance * (1 + 1e-9))


@pytest.mark.float64
def test_the_posterior_variance_is_between_limits_that_landmarks_narrow():
    """They are at most delta^2 (1 + delta) k' (K + lambda)^-1 k apart, for delta = |K - Khat| / lambda."""
    data = house.data()
    # Points are taken in blocks of 256.
    points = np.concatenate([data.X + 0.03 * i for i in range(13)])
    arguments = (house.key(), house.KERNEL, data.X)
    limits = np.asarray(posterior_variance(*arguments, points, **OPTIONS))
    f = ridge(*arguments, data.values, **OPTIONS)
    K = literal_gram(data.X, data.X, house.LENGTHSCALE)
    k = literal_gram(data.X, points, house.LENGTHSCALE)
    explained = (k * np.linalg.solve(K + 0.3 * np.eye(ROWS), k)).sum(axis=0)
    assert np.all(limits[0] <= 1 - explained + 1e-12)
    assert np.all(1 - explained <= limits[1] + 1e-12)
    cross = literal_gram(data.X, f.landmarks, house.LENGTHSCALE)
    inner = literal_gram(f.landmarks, f.landmarks, house.LENGTHSCALE)
    left = K - cross @ np.linalg.solve(inner, cross.T)
    # The span of landmarks is shifted by 1e-5 of the regularization.
    delta = np.linalg.norm(left, 2) / 0.3 + 1e-4
    gap = delta**2 * (1 + delta) * explained
    assert np.all(limits[1] - limits[0] <= gap + 1e-10)


@pytest.mark.float64
def test_the_lower_limit_is_attained_where_the_gram_matrix_is_the_identity():
    """At every row, whether it is a landmark or not, Jensen's inequality is an equality."""
    X = np.full((ROWS, DIM), 1e3) * np.arange(ROWS)[:, None]
    points = np.tile(X, (13, 1))  # the shape of the test above
    lower, _ = posterior_variance(house.key(), house.KERNEL, X, points, **OPTIONS)
    np.testing.assert_allclose(lower, 0.3 / 1.3, rtol=1e-9)


def squared_exponential(x, y):
    return jnp.exp(-jnp.sum((x - y) ** 2))


def test_of_a_kernel_with_unknown_rounding_nothing_is_claimed():
    data = house.data(shape=house.ODD)
    options = {"num_landmarks": 2, "regularization": 0.3}
    arguments = (house.key(), squared_exponential, data.X)
    f = ridge(*arguments, data.values[:, 0], **options)
    assert np.isposinf(f.distance_bound)
    assert np.isposinf(f.bound_at(data.Y)).all()
    assert np.isfinite(f.coefficients).all()
    lower, upper = posterior_variance(*arguments, data.Y, **options)
    np.testing.assert_array_equal(lower, 0)
    np.testing.assert_array_equal(upper, np.inf)
