"""Figures 1 to 4 of ghashami2016: every part against an independent computation on small sizes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, metrics
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


def test_errors_are_those_of_the_metrics(points, rng):
    """Spectral to the tolerance of the solver, squared; the entries to rounding, with a last block that overlaps."""
    G = gram_matrix(Gaussian(1.3), points, block_size=16)
    squares = ((points[:, None] - points[None]) ** 2).sum(-1)
    np.testing.assert_allclose(G, np.exp(-squares / (2 * 1.3**2)), atol=1e-5)
    Ys = jnp.asarray(rng.normal(size=(2, 41, 4)) / 3, jnp.float32)
    spectral, residual, frobenius = errors(G, Ys)
    for i, Y in enumerate(Ys):
        assert spectral[i] == pytest.approx(
            float(metrics.spectral_error(G, Y @ Y.T)), rel=1e-4
        )
        assert frobenius[i] == pytest.approx(
            float(metrics.frobenius_error(G, Y @ Y.T)), rel=1e-5
        )
        assert residual[i] <= 2 * module.TOLERANCE * spectral[i]


def test_the_frobenius_error_counts_every_entry_once():
    """1,100 points take three blocks of 500, of which the last one overlaps."""
    G = jnp.zeros((1100, 1100), jnp.float32)
    Y = jnp.ones((1, 1100, 1), jnp.float32)
    spectral, _, frobenius = errors(G, Y)
    assert frobenius[0] * 1100 == pytest.approx(1, rel=1e-5) and spectral[
        0
    ] == pytest.approx(1, rel=1e-4)


def test_sketches_are_algorithm_1_with_a_last_decomposition(rng):
    """Z W W'Z' against the algorithm row by row in float64; 29 rows do not fill the buffer a last time."""
    X = rng.normal(size=(29, 3)).astype(np.float32)
    key, kernel = jax.random.key(2), Gaussian(1.0)
    with jax.debug_key_reuse(False):
        sketched = module._skpca(key, kernel, X, 16, rows=8, buffered=False)(X)
        Z = np.float64(
            features.shifted_fourier(
                key, kernel, 3, num_frequencies=16, dtype=jnp.float32
            )(X)
        )
    _, W = algorithm_1(Z, 8, last=True)
    np.testing.assert_allclose(sketched @ sketched.T, Z @ W @ W.T @ Z.T, atol=2e-4)


@pytest.mark.slow
def test_rows_of_all_methods(points):
    with jax.debug_key_reuse(False):
        rows = module.curves(
            points, points[:5], Gaussian(1.0), sizes=(6, 12), lines=(2, 8), seed=0
        )
    names = [row["method"] for row in rows if row["size"] == 12]
    assert names[:2] == ["RNCA", "Nystrom"] and len(names) == 7 and len(rows) == 7 + 5
    named = {(row["method"], row["size"]): row for row in rows}
    assert named["SKPCA, l=8", 12]["space"] == 12 * 3 + 12 * 8
    assert named["RNCA", 12]["space"] == 12 * 3 + 12 * 12
    # More rows than features: nothing is lost, so the sketch is RNCA; 50 directions are all 12.
    spectral = named["RNCA, 50 directions", 12]["spectral"]
    assert spectral == pytest.approx(named["RNCA", 12]["spectral"], rel=1e-3)
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
    train, test = read(SOURCES["figure1"], tmp_path, num_points=10, seed=0)
    assert train.shape == (10, 1000) and test.shape == (1000, 1000)
    # |SDU|^2 has the mean sum (1 - (i - 1) / d)^2 = 47.6, and the noise d / 100; 6 standard errors of 1,010 rows.
    squares = (np.concatenate([train, test]) ** 2).sum(1)
    exact = sum((1 - i / 1000) ** 2 for i in range(50)) + 10
    assert abs(squares.mean() - exact) <= 6 * squares.std() / 1010**0.5
