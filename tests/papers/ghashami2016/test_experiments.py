"""Figures 1 to 4 of ghashami2016: every part against an independent computation on small sizes."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import literal_gram

from jaxkern import features
from jaxkern.kernels import Gaussian
from proofs_check.papers.ghashami2016 import experiments as module
from proofs_check.papers.ghashami2016.algorithm1 import algorithm_1
from proofs_check.papers.ghashami2016.experiments import (
    SOURCES,
    errors,
    gram_matrix,
    read,
)


@pytest.fixture
def points(rng):
    return (rng.normal(size=(41, 3)) * [2.0, 1.0, 0.3]).astype(np.float32)


def test_errors_are_those_of_numpy(points, rng):
    """Spectral to the tolerance of the solver, squared; the entries to rounding, with a last block that overlaps."""
    G = gram_matrix(Gaussian(1.3), points, block_size=16)
    K = literal_gram(points, points, 1.3)
    np.testing.assert_allclose(G, K, atol=1e-5)
    Ys = rng.normal(size=(2, 41, 4)).astype(np.float32) / 3
    spectral, residual, frobenius = errors(G, jnp.asarray(Ys))
    E = K - Ys @ Ys.transpose(0, 2, 1)
    norms = np.linalg.norm(E, 2, axis=(1, 2))
    np.testing.assert_allclose(spectral, norms / 41, rtol=1e-4)
    np.testing.assert_allclose(frobenius, np.linalg.norm(E, axis=(1, 2)) / 41**2, 1e-5)
    assert np.all(residual <= 2 * module.TOLERANCE * spectral)


def test_the_frobenius_error_counts_every_entry_once():
    """1,100 points take three blocks of 500, of which the last one overlaps."""
    G = jnp.zeros((1100, 1100), jnp.float32)
    spectral, _, frobenius = errors(G, jnp.ones((1, 1100, 1), jnp.float32))
    assert frobenius[0] * 1100 == pytest.approx(1, rel=1e-5)
    assert spectral[0] == pytest.approx(1, rel=1e-4)


def test_sketches_are_algorithm_1_with_a_last_decomposition(rng):
    """Z W W'Z' against the algorithm row by row in float64; 29 rows do not fill the buffer a last time."""
    X = rng.normal(size=(29, 3)).astype(np.float32)
    key = jax.random.key(2)
    kernel = Gaussian(1.0)
    options = {"num_frequencies": 16, "dtype": np.float32}
    with jax.debug_key_reuse(False):
        sketched = module._skpca(key, kernel, X, 16, rows=8, buffered=False)(X)
        Z = np.float64(features.shifted_fourier(key, kernel, 3, **options)(X))
    _, W = algorithm_1(Z, 8, last=True)
    house.close(sketched @ sketched.T, Z @ W @ W.T @ Z.T, 2e-4)


@pytest.mark.slow
def test_rows_of_all_methods(points):
    """More rows than features: nothing is lost, so the sketch is RNCA; 50 directions are all 12."""
    sizes = {"sizes": (6, 12), "lines": (2, 8), "seed": 0}
    with jax.debug_key_reuse(False):
        rows = module.curves(points, points[:5], Gaussian(1.0), **sizes)
    assert len(rows) == 7 + 5
    spectral = {(row["method"], row["size"]): row["spectral"] for row in rows}
    expected = pytest.approx(spectral["RNCA", 12], rel=1e-3)
    assert spectral["RNCA, 50 directions", 12] == expected
    for row in rows:
        assert 0 < row["frobenius"] * 41 <= row["spectral"] * 41**0.5
        assert row["train"] > 0 and row["test"] > 0


def test_data_is_split_and_scaled(tmp_path, rng):
    X = rng.normal(size=(900, 2)) * [1.0, 1e4] + 7
    np.savez(tmp_path / "cpu.npz", X=X)
    train, test = read(SOURCES["figure2"], tmp_path, num_points=50, seed=3)
    assert train.shape == (50, 2) and test.shape == (800, 2)
    both = np.concatenate([test, train])
    np.testing.assert_allclose(both.mean(0), 0, atol=1e-9)
    np.testing.assert_allclose(both.std(0), 1, rtol=1e-9)


def test_noisy_data_has_the_energy_of_its_model(tmp_path):
    """|SDU|^2 has the mean sum (1 - (i - 1) / d)^2 = 47.6, and the noise d / 100; 6 standard errors of 1,010 rows."""
    train, test = read(SOURCES["figure1"], tmp_path, num_points=10, seed=0)
    assert train.shape == (10, 1000) and test.shape == (1000, 1000)
    squares = (np.concatenate([train, test]) ** 2).sum(1)
    exact = np.sum((1 - np.arange(50) / 1000) ** 2) + 10
    assert abs(squares.mean() - exact) <= 6 * squares.std() / 1010**0.5
