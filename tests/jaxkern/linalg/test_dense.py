"""Eigen-decompositions: order, cut-off, powers, and derivatives where eigenvalues are equal.

One program computes them all for a matrix of 6 rows, enough for three equal eigenvalues beside three others.
"""

import house
import jax
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_allclose

from jaxkern import linalg

pytestmark = pytest.mark.optimised

SPECTRA = {
    "distinct": [3.0, 2.0, 1.0, 0.5, 0.2, 0.1],
    "equal": [2.0, 2.0, 2.0, 0.5, 0.5, 0.1],
    "deficient": [3.0, 1.0, 1.0, 0.0, 0.0, 0.0],
    "zero": [0.0] * 6,
}
N = 6
POWERS = (0, 1, 2, 4, 0.5, 1.5, -0.5, -1, 6)
TRACES = (1, 2, 3, 4, 5, 8)


def symmetric(values):
    """Return a symmetric matrix with these eigenvalues, and its eigenvectors as columns, in float64."""
    Q = np.linalg.qr(house.rng().normal(size=(N, N)))[0]
    A = (Q * values) @ Q.T
    return (A + A.T) / 2, Q


def literal_power(values, vectors, power):
    """Return V Lambda^power V', where zero stays zero: of the pseudo-inverse if the power is negative."""
    positive = np.asarray(values) > 1e-9
    powers = np.where(positive, np.where(positive, values, 1) ** power, power == 0)
    return (vectors * powers) @ vectors.T


def powers(A):
    return [linalg.psd_power(A, power) for power in POWERS]


@jax.jit
def decompositions(A):
    return {
        "eigh": linalg.eigh(A),
        "eigvalsh": linalg.eigvalsh(A),
        "psd_eigvalsh": linalg.psd_eigvalsh(A),
        "norms": (linalg.operator_norm(A), linalg.operator_norm(-A)),
        "powers": powers(A),
        "traces": [linalg.trace_power(A, power) for power in TRACES],
    }


@jax.jit
def derivatives(A, direction):
    """Return the derivatives along a direction of powers, of eigenvalues and of the norm."""

    def functions(A):
        return powers(A), linalg.psd_eigvalsh(A), linalg.operator_norm(A)

    return jax.jvp(functions, (A,), (direction,))[1]


@pytest.mark.parametrize("name", SPECTRA)
def test_eigenvalues_come_in_descending_order_with_their_vectors_and_powers(name):
    values = SPECTRA[name]
    exact, Q = symmetric(values)
    A = exact.astype(house.dtype())
    result = jax.device_get(decompositions(A))
    rounding = 60 * N * eps()
    eigenvalues, vectors = result["eigh"]
    for array, expected in (
        (eigenvalues, values),
        (result["eigvalsh"], values),
        (result["psd_eigvalsh"], values),
        (result["norms"], [values[0]] * 2),
        (vectors * eigenvalues, A @ vectors),
        (vectors.T @ vectors, np.eye(N)),
    ):
        close(array, expected, rounding)
    assert np.count_nonzero(result["psd_eigvalsh"]) == np.count_nonzero(values)
    for power, matrix in zip(POWERS, result["powers"], strict=True):
        expected = literal_power(values, Q, power)
        # Eigenvalues down to 0.1 of 3: their rounding is divided by values^(1 - power).
        condition = 30 ** max(1 - power, 0) * np.linalg.norm(expected, 2)
        close(matrix, expected, 2 * rounding * condition)


def test_traces_of_powers_are_sums_of_powers():
    """Products need no positive eigenvalues: symmetric is enough."""
    values = np.array([3.0, 2.0, 1.0, -0.5, 0.2, 0.0])
    traces = decompositions(symmetric(values)[0].astype(house.dtype()))["traces"]
    exact = [np.sum(values**power) for power in TRACES]
    assert_allclose(traces, exact, rtol=50 * N * eps())


@pytest.mark.parametrize("largest", [4, -4])
def test_the_cut_off_grows_with_the_size_and_the_largest_eigenvalue(largest):
    """On a diagonal, whose eigenvalues are not rounded."""
    cutoff = N * 4 * eps()
    diagonal = [largest, 1, 1.1 * cutoff, 0.9 * cutoff, 0, 0]
    result = decompositions(np.diag(diagonal).astype(house.dtype()))
    positive = np.count_nonzero(result["psd_eigvalsh"])
    assert positive == (3 if largest > 0 else 2)


@pytest.mark.float64
@pytest.mark.parametrize("name", ["distinct", "equal", "deficient"])
def test_powers_have_the_derivative_of_differences_even_where_eigenvalues_are_equal(
    name,
):
    """Along directions that leave zeros on the kernel of A, where the power of a deficient matrix is smooth."""
    A, Q = symmetric(SPECTRA[name])
    kernel = (Q * (np.array(SPECTRA[name]) == 0)) @ Q.T
    B = house.rng(1).normal(size=(N, N))
    B = B + B.T
    B = B - kernel @ B @ kernel
    ahead = np.linalg.eigh(A + 1e-5 * B)
    behind = np.linalg.eigh(A - 1e-5 * B)
    for power, derivative in zip(POWERS, derivatives(A, B)[0], strict=True):
        change = literal_power(*ahead, power) - literal_power(*behind, power)
        expected = change / 2e-5
        close(derivative, expected, 2e-6 * np.abs(expected).max() + 1e-9)


@pytest.mark.parametrize("name", SPECTRA)
def test_derivatives_are_finite_where_eigenvalues_are_equal_or_zero(name):
    A = symmetric(SPECTRA[name])[0].astype(house.dtype())
    for leaf in jax.tree.leaves(derivatives(A, np.ones_like(A))):
        assert np.isfinite(leaf).all()


@pytest.mark.parametrize("factor", [1e-30, 1e25])
@pytest.mark.parametrize("power", [0.5, -0.5])
def test_derivatives_of_roots_follow_a_factor_of_the_matrix(power, factor):
    """By the power of the factor; in float32 its square is zero, or infinite."""
    A = symmetric(SPECTRA["equal"])[0].astype(house.dtype())
    ones = np.ones_like(A)
    number = POWERS.index(power)
    factor = A.dtype.type(factor)
    expected = np.asarray(derivatives(A, ones)[0][number])
    scaled = np.asarray(derivatives(factor * A, factor * ones)[0][number])
    size = np.abs(expected).max()
    close(scaled / factor**power, expected, 1e3 * eps() * size)


def test_a_gpu_decomposes_by_qr_steps(monkeypatch):
    """No other platform is asked to: a TPU has no such algorithm."""
    for backend, by_qr in {"cpu": False, "gpu": True, "tpu": False}.items():
        monkeypatch.setattr(jax, "default_backend", lambda name=backend: name)
        for decompose in (linalg.eigh.__wrapped__, linalg.svd):
            # A new function each time, since JAX keeps what it has traced.
            jaxpr = jax.make_jaxpr(lambda A, way=decompose: way(A))(np.eye(N))
            assert ("QR" in str(jaxpr)) == by_qr
