"""Eigen-decompositions: order, cut-off, powers, and gradients where eigenvalues are equal; draws row by row."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern import draws, linalg
from jaxkern.linalg._dense import cutoff

N = 6
SPECTRA = {
    "distinct": [3.0, 2.0, 1.0, 0.5, 0.2, 0.1],
    "equal": [2.0, 2.0, 2.0, 0.5, 0.5, 0.1],
    "deficient": [3.0, 1.0, 1.0, 0.0, 0.0, 0.0],
}


def matrix(rng, values, dtype):
    Q = np.linalg.qr(rng.normal(size=(N, N)))[0]
    A = (Q * values) @ Q.T
    return np.asarray((A + A.T) / 2, dtype), Q


norms = jax.jit(lambda A: (linalg.operator_norm(A), linalg.operator_norm(-A)))
decomposed = jax.jit(
    lambda A: (*linalg.eigh(A), linalg.eigvalsh(A), linalg.psd_eigvalsh(A))
)


@partial(jax.jit, static_argnums=0)
def slopes(power, A, B, weights):
    """Return the derivative of a power along B, and the gradient of a weighted sum of its entries."""
    _, along = jax.jvp(lambda A: linalg.psd_power(A, power), (A,), (B,))
    return along, jax.grad(lambda A: jnp.sum(weights * linalg.psd_power(A, power)))(A)


@jax.jit
def gradients(A):
    root = [lambda A, p=p: linalg.psd_power(A, p).sum() for p in (0.5, -0.5)]
    return [
        jax.grad(f)(A)
        for f in (*root, lambda A: linalg.psd_eigvalsh(A).sum(), linalg.operator_norm)
    ]


@pytest.mark.parametrize("name", SPECTRA)
def test_eigenvalues_come_in_descending_order_with_their_vectors(name, dtype, rng):
    A, _ = matrix(rng, SPECTRA[name], dtype)
    values, vectors, alone, cut = jax.device_get(decomposed(A))
    tolerance = 20 * N * eps(dtype)
    np.testing.assert_allclose(values, SPECTRA[name], atol=tolerance * 3)
    np.testing.assert_allclose(vectors * values, A @ vectors, atol=tolerance * 3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(N), atol=tolerance)
    np.testing.assert_allclose(alone, SPECTRA[name], atol=tolerance * 3)
    assert (cut == 0).sum() == (np.array(SPECTRA[name]) == 0).sum()
    np.testing.assert_allclose(norms(A), [max(SPECTRA[name])] * 2, rtol=tolerance)


def test_a_gpu_is_asked_for_qr_steps(monkeypatch):
    """Nobody else is: what a TPU has is no such thing."""
    for backend, asked in {"cpu": False, "gpu": True, "tpu": False}.items():
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        for decompose in (linalg.eigh.__wrapped__, linalg.svd):
            assert (
                "QR" in str(jax.make_jaxpr(lambda A, way=decompose: way(A))(np.eye(N)))
            ) == asked


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("power", [0, 1, 2, 4, 0.5, 1.5, -0.5, -1])
def test_powers_are_those_of_the_eigenvalues(name, power, dtype, rng):
    """A negative power is that of the pseudo-inverse: zero stays zero."""
    values = np.array(SPECTRA[name])
    A, Q = matrix(rng, values, dtype)
    powers = (
        np.ones(N)
        if power == 0
        else np.where(values > 0, np.where(values > 0, values, 1) ** power, 0)
    )
    condition = 30 ** max(1 - min(power, 1), 0)
    found = linalg.psd_power(A, power)
    assert found.dtype == dtype
    np.testing.assert_allclose(
        found, (Q * powers) @ Q.T, atol=100 * N * eps(dtype) * condition * powers.max()
    )


@pytest.mark.parametrize("power", [1, 2, 3, 4, 5, 8])
def test_traces_of_powers_are_sums_of_powers(power, dtype, rng):
    values = np.array([3.0, 2.0, 1.0, -0.5, 0.2, 0.0])  # symmetric is enough
    A, _ = matrix(rng, values, dtype)
    assert float(linalg.trace_power(A, power)) == pytest.approx(
        (values**power).sum(), rel=50 * N * eps(dtype)
    )


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize("power", [0.5, 1.5, -0.5, 6])
def test_powers_have_the_derivative_of_differences_even_where_eigenvalues_are_equal(
    name, power, x64, rng
):
    """Along directions that keep the kernel of A, where the power of a deficient matrix is smooth."""
    values = np.array(SPECTRA[name])
    A, Q = matrix(rng, values, "float64")
    B = rng.normal(size=(N, N))
    kept = (Q * (values > 0)) @ Q.T
    B = kept @ (B + B.T) @ kept

    def literal(M):
        w, V = np.linalg.eigh(M)
        w = np.where(w > 1e-9, w, 0)
        return (V * np.where(w > 0, np.where(w > 0, w, 1) ** power, 0)) @ V.T

    expected = (literal(A + 1e-5 * B) - literal(A - 1e-5 * B)) / 2e-5
    weights = rng.normal(size=(N, N))
    found, gradient = jax.device_get(slopes(power, A, B, weights))
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    assert np.sum(gradient * B) == pytest.approx(np.sum(weights * expected), rel=1e-5)


def test_gradients_of_spectral_functions_are_finite_in_single_precision(rng):
    for values in (*SPECTRA.values(), np.zeros(N)):
        for gradient in gradients(matrix(rng, values, "float32")[0]):
            assert np.isfinite(np.asarray(gradient)).all()


def test_the_cut_off_grows_with_the_size_and_the_largest_eigenvalue(dtype):
    values = jnp.asarray([4.0, 1.0, 0.0], dtype)
    assert float(cutoff(values)) == pytest.approx(12 * eps(dtype))
    assert float(cutoff(-values)) == pytest.approx(12 * eps(dtype))


def test_rows_of_normals_are_standard_and_depend_on_the_key_and_their_index_alone(
    dtype,
):
    """20000 rows of 4, 5 standard errors on 4 means and 10 second moments: false alarms below 1e-5 in all."""
    few, many = (
        draws.normal_rows(jax.random.key(3), rows, 4, dtype) for rows in (2, 20_000)
    )
    # Programs of different shapes may round the last digit differently.
    np.testing.assert_allclose(np.asarray(many)[:2], few, rtol=8 * eps(dtype))
    assert many.shape == (20_000, 4) and many.dtype == dtype
    other = draws.normal_rows(jax.random.key(4), 2, 4, dtype)
    assert not np.isclose(other, few).any()
    rows = np.float64(many)
    assert (np.abs(rows.mean(0)) <= 5 / 20_000**0.5).all()
    error = np.sqrt(1 + np.eye(4)) / 20_000**0.5
    assert (np.abs(rows.T @ rows / 20_000 - np.eye(4)) <= 5 * error).all()
