"""Leave-one-out residuals against refits, and their slopes."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge
from support.numerics import eps, literal_gram

from jaxkern import kernels
from jaxkern.regression import leave_one_out

N, PATH, UNIT = 14, np.array([0.05, 0.4, 3.0]), kernels.Gaussian(1.0)


@pytest.fixture
def data(rng):
    """Points of which two are equal, two columns of labels, and weights: none, a part, one, two, more."""
    X, weights = rng.normal(size=(N, 2)), rng.uniform(0.3, 3, N)
    X[7], weights[:4] = X[6], (0, 0.4, 1, 2)
    return X, rng.normal(size=(N, 2)), weights


@pytest.mark.parametrize("few", [slice(0), slice(1, 6)])
@pytest.mark.parametrize("weighted", [True, False])
def test_residuals_are_those_of_refits(data, dtype, few, weighted):
    X, y, weights = (np.asarray(part, dtype) for part in data)
    K, k = literal_gram(X, X, 1.0), literal_gram(X, X[few], 1.0)
    given = {
        "weights": weights if weighted else None,
        "landmarks": X[few] if few.stop else None,
    }
    K = k @ np.linalg.solve(k[few], k.T) if few.stop else K
    path = leave_one_out(UNIT, X, y, regularization=PATH, **given)
    for found, strength in zip(path, PATH, strict=True):
        expected = np.zeros((N, 2))
        for i, weight in enumerate(weights if weighted else np.ones(N)):
            left = np.where(
                np.arange(N) == i, max(weight - 1, 0), weights if weighted else 1
            )
            refit = KernelRidge(alpha=strength, kernel="precomputed").fit(
                K, np.float64(y), left
            )
            expected[i] = (y[i] - refit.predict(K[i : i + 1])[0]) * (weight > 0)
        tolerance = {
            "rtol": 0,
            "atol": 100 * N * eps(dtype) / strength + 1e-4 * bool(few.stop),
        }  # SHIFT of `ridge`
        np.testing.assert_allclose(found, expected, **tolerance)
        one = leave_one_out(UNIT, X, y[:, 1], regularization=strength, **given)
        np.testing.assert_allclose(one, expected[:, 1], **tolerance)


@partial(jax.jit, static_argnums=0)
@partial(jax.value_and_grad, argnums=range(1, 6))
def total(stop, length, X, y, strength, weights):
    given = {"weights": weights, "landmarks": X[1:stop] if stop else None}
    return jnp.sum(
        jnp.sin(
            leave_one_out(
                kernels.Gaussian(length), X, y, regularization=strength, **given
            )
        )
    )


@pytest.mark.parametrize("few", [slice(0), slice(1, 6)])
@pytest.mark.parametrize("path", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("degenerate", [True, False])
def test_slopes_are_those_of_differences(data, rng, x64, few, path, degenerate):
    """Also where eigenvalues coincide: on a polygon, every other one does."""
    angles = 2 * np.pi * np.arange(N)[:, None] / N
    X, y, weights = data
    X, weights = (
        (np.hstack([np.cos(angles), np.sin(angles)]), np.full(N, 1.5))
        if degenerate
        else (X, 1.1 * weights)
    )

    args = tuple(map(np.asarray, (0.8, X, y, PATH if path else 0.4, weights)))
    way = [1e-6 * rng.normal(size=arg.shape) * arg for arg in args]
    up, down = (
        total(few.stop, *(arg + s * step for arg, step in zip(args, way, strict=True)))[
            0
        ]
        for s in (1, -1)
    )
    slope = sum(map(np.vdot, jax.device_get(total(few.stop, *args)[1]), way))
    assert abs(slope) > 1e-8 and float(up - down) / 2 == pytest.approx(
        float(slope), rel=1e-5
    )


UNFIT = (
    {"y": np.ones(3)},
    {"landmarks": np.ones((2, 3))},
    {"landmarks": np.ones((2, 2), np.float32)},
)
STRENGTHS = 0.0, np.array([1.0, 0.0]), [1.0, -1.0], np.ones((2, 2))


@pytest.mark.parametrize(
    "change", [*UNFIT, *({"regularization": each} for each in STRENGTHS)]
)
def test_bad_input_is_named(x64, change):
    given = {
        "y": np.ones(4),
        "regularization": 1.0,
        "landmarks": np.ones((2, 2)),
        **change,
    }
    with pytest.raises(ValueError, match=rf"^{next(iter(change))}"):
        leave_one_out(UNIT, np.ones((4, 2)), **given)
