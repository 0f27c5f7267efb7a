"""Bounds against the exact solution: they hold in extended precision, and are attained where K is the identity.

The theorems are those of docs/theory/regression.md.
"""

import house
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
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


FAR = np.full((ROWS, DIM), 1e3) * np.arange(ROWS)[:, None]
"""Rows whose Gram matrix is the identity."""


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
    limits = posterior_variance(house.key(), KERNEL, X, Y, **options)
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
            at_rows = roots * (exact_gram(X, points) @ difference)
            at_points = balls(f(Y)) - columns.T @ dual[:, :2]
            distance = np.sqrt(np.maximum(floats(squares), 0))
            assert np.isfinite(f.distance_bound).all()
            assert np.all(distance <= np.float64(f.distance_bound))
            assert np.all(np.abs(floats(at_rows)) <= np.float64(f.training_bound))
            assert np.all(np.abs(floats(at_points)) <= np.float64(f.bound_at(Y)))
    lower, upper = np.float64(limits)
    assert np.all(lower >= 0)
    assert np.all(lower <= variance)
    assert np.all(variance <= upper)
    assert np.isfinite(upper).all()
    largest = max(np.max(steps.distance_bound), np.max(steps.training_bound))
    assert bool(steps.converged) == bool(largest <= number(1e-6))


@pytest.mark.parametrize("share", [1000, 1])
def test_a_regularization_of_the_order_of_rounding_is_not_enlarged(share):
    """4 eps tr K is 96 eps here, and would be another regularization."""
    data = house.data()
    X = 4 * data.X  # far enough apart for float64 to tell the solution to a few eps
    shift = share * eps()
    options = {"regularization": shift, "num_landmarks": ROWS}
    f = ridge(house.key(), house.KERNEL, X, data.values, **options)
    K = literal_gram(X, X)
    dual = np.linalg.solve(K + shift * np.eye(ROWS), data.values)
    close(np.float64(f(X)), K @ dual, 20 * eps())


@pytest.mark.float64
@pytest.mark.parametrize("shift", [1.0, 3.0])
@pytest.mark.parametrize("solver", ["ridge", "ridge_to", "head"])
def test_bounds_are_attained_where_the_gram_matrix_is_the_identity(solver, shift):
    """What is no landmark leaves a residual rho of equal entries, an eigenvector of K with the eigenvalue 1.

    Theorem 1 gives |rho| / (2 sqrt(lambda)), which is the distance where lambda = 1. Theorem 2 gives
    r^2 = |rho|^2 / (lambda + lambda^2) at the best multiple of z = rho / lambda, and |rho|^2 / lambda without one.
    """
    arguments = (house.KERNEL, FAR, np.ones((ROWS, 2)))
    options = {"num_landmarks": LANDMARKS, "regularization": shift}
    residual = (ROWS - LANDMARKS) ** 0.5
    best = (shift + shift**2) ** 0.5
    if solver == "ridge":
        f = ridge(house.key(), *arguments, **options)
    elif solver == "ridge_to":
        # So large a tolerance is reached before the first step, which leaves y / lambda.
        f = ridge_to(house.key(), *arguments, tolerance=1e6, **options)
        residual /= shift
        assert int(f.num_products) == 2
    else:
        # The dual vector of the labels, y / lambda, is corrected once.
        phi = Identity(np.zeros((DIM, house.FEATURES)))
        zero = Head(phi, np.zeros((house.FEATURES, 2)), np.float64(shift), 0.0, 0.0)
        f = certified_head(house.key(), zero, *arguments, num_landmarks=LANDMARKS).dual
        residual /= shift**2
        best = shift**0.5
    radius = residual / best
    bound = min(residual / (2 * shift**0.5), radius)
    training = residual if solver == "head" else min(residual, shift**0.5 * radius)
    assert_allclose(f.distance_bound, [bound] * 2, rtol=1e-9)
    assert_allclose(f.radius, [radius] * 2, rtol=1e-9)
    assert_allclose(f.training_bound, [training] * 2, rtol=1e-9)
    # The posterior deviation is less than 1 at landmarks.
    is_landmark = np.isin(FAR[:, :1], f.landmarks)
    width = np.where(is_landmark, (1 - 1 / (1 + shift)) ** 0.5, [1, 1])
    assert_allclose(f.bound_at(FAR), np.minimum(width * radius, bound), rtol=1e-9)
    # The norm of a function is that of its values, as K = I.
    distance = np.linalg.norm(np.asarray(f(FAR)) - 1 / (1 + shift), axis=0)
    assert np.all(distance <= f.distance_bound)
    assert shift == 3 or np.all(f.distance_bound <= distance * (1 + 1e-9))


@pytest.mark.float64
def test_the_posterior_variance_is_between_limits_that_landmarks_narrow():
    """They are at most delta^2 (1 + delta) k' (K + lambda)^-1 k apart, for delta = |K - Khat| / lambda.

    Where the Gram matrix is the identity the lower limit is attained: Jensen's inequality is an equality.
    """
    X = house.data().X
    # Points are taken in blocks of 256.
    points = np.concatenate([X + 0.03 * i for i in range(13)])
    lower, upper = posterior_variance(house.key(), house.KERNEL, X, points, **OPTIONS)
    landmarks = ridge(house.key(), house.KERNEL, X, X[:, :2], **OPTIONS).landmarks
    K = literal_gram(X, X)
    k = literal_gram(X, points)
    explained = (k * np.linalg.solve(K + 0.3 * np.eye(ROWS), k)).sum(axis=0)
    cross = literal_gram(X, landmarks)
    inner = literal_gram(landmarks, landmarks)
    rest = K - cross @ np.linalg.solve(inner, cross.T)
    # The span of landmarks is shifted by 1e-5 of the regularization.
    delta = np.linalg.norm(rest, 2) / 0.3 + 1e-4
    gap = np.subtract(upper, lower)
    assert np.all(gap <= delta**2 * (1 + delta) * explained + 1e-10)
    points = np.tile(FAR, (13, 1))
    lower, _ = posterior_variance(house.key(), house.KERNEL, FAR, points, **OPTIONS)
    assert_allclose(lower, 0.3 / 1.3, rtol=1e-9)


def test_of_a_kernel_with_unknown_rounding_nothing_is_claimed():
    def kernel(x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2))

    data = house.data(shape=house.ODD)
    options = {"num_landmarks": 2, "regularization": 0.3}
    f = ridge(house.key(), kernel, data.X, data.values, **options)
    assert np.isposinf(f.distance_bound).all()
    assert np.isposinf(f.bound_at(data.Y)).all()
    assert np.isfinite(f.coefficients).all()
    limits = posterior_variance(house.key(), kernel, data.X, data.Y, **options)
    assert_array_equal(np.asarray(limits).T, [[0, np.inf]] * 5)
