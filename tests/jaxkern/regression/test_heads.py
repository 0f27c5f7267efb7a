"""Ridge regression on features: dense formulas, streams, and bounds against the exact kernel's solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern import io, regression, scale
from jaxkern.features import nystrom, paired_fourier
from jaxkern.kernels import Gaussian

N = 41


@pytest.fixture
def case(dtype):
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(N, 2)).astype(dtype), rng.normal(size=(N, 3)).astype(dtype)
    phi = paired_fourier(
        jax.random.key(0),
        Gaussian(jnp.asarray(1.0, dtype)),
        2,
        num_frequencies=5,
        dtype=dtype,
    )
    return phi, X, y, rng.integers(0, 3, N).astype(dtype)


def near(found, wanted, dtype):
    np.testing.assert_allclose(found, wanted, atol=500 * N * eps(dtype), rtol=0)


def test_a_head_is_the_dense_formula_also_of_a_stream_in_parts_and_of_rows_taken_twice(
    case,
):
    phi, X, y, weights = case
    Z, Y, w = np.float64(phi(X)), np.float64(y), np.float64(weights)
    beta = np.linalg.solve((w * Z.T) @ Z + 0.5 * np.eye(10), (w * Z.T) @ Y)
    spoilt = np.where(weights[:, None] == 0, np.nan, X)
    whole = regression.head(phi, spoilt, y, regularization=0.5, weights=weights)
    twice = np.repeat(np.arange(N), weights.astype(int))
    ridge = regression.streaming_ridge(phi, num_outputs=3)
    first, second = (
        ridge.update(ridge.init(X.dtype), X[part], y[part])
        for part in (twice[:11], twice[11:])
    )
    merged = ridge.finalize(ridge.merge(first, second), regularization=0.5)
    for found in (whole, merged):
        near(found.coefficients, beta, X.dtype)
        near(found.residual, (w[:, None] * (Y - Z @ beta) ** 2).sum(axis=0), X.dtype)
        assert float(found.weight) == w.sum()
    flat = regression.head(phi, X, y[:, 1], regularization=0.5, weights=weights)
    near(flat(X), Z @ beta[:, 1], X.dtype)
    near(flat(X[0]), Z[0] @ beta[:, 1], X.dtype)
    none = regression.head(phi, X, y, regularization=0.5, weights=jnp.zeros(N, X.dtype))
    assert np.isnan(np.asarray(none.coefficients)).all()


@pytest.mark.parametrize("exactly", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bounds_hold_against_the_exact_solution(case, exactly):
    phi, X, y, weights = case
    phi = nystrom(Gaussian(jnp.asarray(1.0, X.dtype)), X) if exactly else phi
    Q = np.concatenate([X, X + 0.3])
    K = lambda A: np.exp(  # noqa: E731
        -((np.float64(A)[:, None] - np.float64(X)[None]) ** 2).sum(axis=2) / 2
    )
    w = np.float64(weights)
    exact = K(Q) @ np.linalg.solve(
        w[:, None] * K(X) + 0.5 * np.eye(N), w[:, None] * np.float64(y)
    )
    fit = regression.head(phi, X, y, regularization=0.5, weights=weights)
    found = regression.certified_head(
        jax.random.key(1), fit, Gaussian(1.0), X, y, num_landmarks=30, weights=weights
    )
    values, bounds = map(np.float64, found.with_bounds(Q))
    error = np.abs(values - exact)
    assert (error <= bounds + 1e-12).all() and np.median(bounds) < 3 * np.median(
        error
    ) + 1e-3
    total = np.sqrt((w[:, None] * error[:N] ** 2).sum(axis=0))
    assert (total <= np.float64(found.training_bound) + 1e-12).all()


def test_tables_side_by_side_and_states_in_files(case, tmp_path):
    phi, X, y, weights = case
    tables, counts = np.stack([X, X[::-1]]), np.stack([weights, np.ones_like(weights)])
    fit = lambda X, w: (  # noqa: E731
        regression.head(phi, X, y, regularization=0.5, weights=w).coefficients
    )
    near(
        jax.jit(jax.vmap(fit))(tables, counts),
        [fit(*both) for both in zip(tables, counts, strict=True)],
        X.dtype,
    )
    ridge = regression.streaming_ridge(phi, num_outputs=3)
    state = ridge.update(ridge.init(X.dtype), X, y)
    io.save(
        tmp_path / "state",
        {"state": state, "head": ridge.finalize(state, regularization=0.5)},
    )
    read = io.load(tmp_path / "state")
    np.testing.assert_array_equal(
        ridge.finalize(read["state"], regularization=0.5)(X), read["head"](X)
    )


def test_files_larger_than_memory(case, tmp_path):
    phi, X, y, _ = case
    files = []
    for name, array in (("X.npy", X), ("y.npy", y[:, 0])):
        np.save(tmp_path / name, array)
        files.append(np.load(tmp_path / name, mmap_mode="r"))
    ridge, sizes = regression.streaming_ridge(phi), {"num_streams": 2, "block_size": 7}
    whole = ridge.update(ridge.init(X.dtype), X, y[:, 0])
    for _ in range(2):  # the second time from what is kept
        found = scale.stream(
            ridge, files[0], y=files[1], progress=tmp_path / "kept", **sizes
        )
        jax.tree.map(lambda a, b: near(a, b, X.dtype), found, whole)
    with pytest.raises(ValueError, match="belongs to another run: y is"):
        scale.stream(ridge, X, y=1 + y[:, 0], progress=tmp_path / "kept", **sizes)
    with pytest.raises(ValueError, match="y must have a label for each of 41 rows"):
        scale.stream(ridge, X)


def test_what_does_not_fit_is_refused(case):
    phi, X, y, _ = case
    ridge, other = (
        regression.streaming_ridge(phi),
        regression.streaming_ridge(phi, num_outputs=2),
    )
    with pytest.raises(ValueError, match="y must have shape"):
        ridge.update(ridge.init(X.dtype), X, y)
    with pytest.raises(ValueError, match="a state of this stream"):
        ridge.merge(ridge.init(X.dtype), other.init(X.dtype))
    with pytest.raises(ValueError, match="head must be a Head"):
        regression.certified_head(
            jax.random.key(0), 1, Gaussian(1.0), X, y, num_landmarks=2
        )
