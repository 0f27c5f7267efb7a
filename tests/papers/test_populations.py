"""Populations and the operators on them, against dense linear algebra on the atoms."""

from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance
from support.jaxprs import equations

from jaxkern import rkhs
from jaxkern.gram import gram
from proofs_check.papers import flops, populations
from proofs_check.papers import operators as op
from proofs_check.papers.kpotufe2020 import trials

pytestmark = pytest.mark.float64

SYNTHETIC = (
    "gauss grid",
    "orthogonal atoms",
    "constant kernel",
    "rare atom",
    "skewed plane",
)


@pytest.fixture
def synthetic():
    return {p.name: p for p in populations.synthetic()}


def dense_covariance(p, weights):
    return p.features.T @ (np.asarray(weights)[:, None] * p.features)


def test_features_reproduce_the_kernel_and_diagonalise_sigma(synthetic):
    eps = np.finfo(float).eps
    assert tuple(synthetic) == SYNTHETIC
    for p in synthetic.values():
        K = np.asarray(gram(p.kernel, p.points))
        house.close(p.features @ p.features.T, K, 1e3 * eps * p.kappa)
        sigma = dense_covariance(p, p.weights)
        house.close(sigma, np.diag(p.eigenvalues), 1e3 * eps * p.op_norm)
        assert np.all(np.diff(p.eigenvalues) <= 0) and np.all(p.eigenvalues >= 0)


@pytest.mark.parametrize("name", ["orthogonal atoms", "skewed plane"])
def test_population_quantities_are_those_of_the_library(synthetic, name):
    p = synthetic[name]
    sigma = rkhs.Covariance(p.kernel, p.points, p.weights)
    for quantity in ("kappa", "trace", "op_norm", "hs_norm"):
        exact = float(getattr(sigma, quantity)())
        assert getattr(p, quantity) == pytest.approx(exact, rel=1e-12), quantity
    assert p.trace3 == pytest.approx(float(sigma.trace(3)), rel=1e-12)
    assert p.rank == pytest.approx(p.trace / p.op_norm, rel=1e-12)
    assert p.rank3 == pytest.approx(p.trace3 / p.op_norm**3, rel=1e-12)


def test_what_the_synthetic_populations_are_known_for(synthetic):
    assert synthetic["orthogonal atoms"].rank == pytest.approx(32, rel=1e-12)
    assert synthetic["constant kernel"].rank == pytest.approx(1, rel=1e-12)
    assert synthetic["rare atom"].weights[0] == pytest.approx(1 / 400, rel=1e-12)
    assert synthetic["skewed plane"].kappa == pytest.approx(2, rel=1e-12)
    assert len({p.features.shape for p in synthetic.values()}) == 1


def test_rows_become_atoms_of_equal_weight_with_the_papers_lengthscale():
    X = np.random.default_rng(2).standard_normal((40, 3))
    p = populations.from_rows(X)
    lengthscale = np.quantile(distance.pdist(X), 0.25) / np.sqrt(2)
    assert p.kernel.lengthscale == pytest.approx(lengthscale, rel=1e-12)
    np.testing.assert_array_equal(p.points, X)
    assert np.all(p.weights == 1 / 40) and "all 40 rows" in p.note


def test_a_large_table_is_thinned_and_the_note_says_so(monkeypatch):
    monkeypatch.setattr(populations, "MOST_ROWS", 30)  # 2,000 take seconds
    X = np.random.default_rng(3).standard_normal((31, 1))
    p = populations.from_rows(X, lengthscale=1.0, seed=4)
    assert p.points.shape == (30, 1) and len(np.unique(p.points)) == 30
    assert "30 of the 31 rows (seed 4)" in p.note and "as given" in p.note


def test_a_table_of_copies_has_no_default_lengthscale():
    with pytest.raises(ValueError, match="lengthscale"):
        populations.from_rows(np.repeat([[0.0], [1.0]], 20, axis=0))


@jax.jit
def many_shares(keys, arrays, n):
    return jax.vmap(lambda key: op.shares(key, arrays, n))(keys)


def test_frequencies_are_multinomial_at_a_trillion_draws(synthetic):
    arrays = synthetic["rare atom"].arrays
    n = 1e12
    keys = jax.random.split(jax.random.key(0), 2000)
    # The checker takes the splits of jax.random.multinomial for reuse.
    with jax.debug_key_reuse(False):
        shares = np.asarray(many_shares(keys, arrays, n))
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    first, second = np.asarray(arrays["weights"])[:2]
    scores = (shares[:, 0] - first) / np.sqrt(first * (1 - first) / n)
    # False-alarm rate 1e-6 each: the law of the first share, and the shares of two atoms that must compensate.
    assert stats.kstest(scores, "norm").pvalue > 1e-6
    correlation = np.corrcoef(shares[:, 0], shares[:, 1])[0, 1]
    exact = -np.sqrt(first * second / ((1 - first) * (1 - second)))
    assert abs(correlation - exact) < 4.9 / np.sqrt(2000)


def test_powers_are_those_of_the_dense_matrices(synthetic):
    """Whole powers, traces and norms are what `jaxkern:shortcut-counts` compares."""
    p = synthetic["skewed plane"]
    weights = np.random.default_rng(0).dirichlet(np.ones(32))
    f = np.asarray(p.arrays["f"])
    values, vectors = np.linalg.eigh(dense_covariance(p, weights))
    root = vectors @ (np.maximum(values, 0) ** 1.5 * (vectors.T @ f))

    @jax.jit
    def powers(weights):
        sample = op.covariance(p.arrays, weights)
        applies = (sample, op.exact_power(p.arrays, 1))
        return op.powers_applied(applies, 1.5, p.arrays["f"])

    expected = [root, p.eigenvalues**1.5 * f]
    np.testing.assert_allclose(powers(weights), expected, atol=1e-13)


def test_lanczos_steps_give_an_orthonormal_basis_and_what_the_operator_does_on_it(
    synthetic,
):
    p = synthetic["gauss grid"]
    start = np.random.default_rng(1).standard_normal(32)
    lanczos = jax.jit(lambda f: op._lanczos(op.exact_power(p.arrays, 1), f))
    tridiagonal, basis = map(np.asarray, lanczos(start))
    # Errors are of 32 roundings; the operator's norm is below 1.
    house.close(basis[0], start / np.linalg.norm(start), 1e-15)
    house.close(basis @ basis.T, np.eye(op._STEPS), 1e-13)
    house.close(tridiagonal, basis * p.eigenvalues @ basis.T, 1e-14)
    house.close(np.triu(tridiagonal, 2), 0, 1e-14)


def test_lanczos_steps_are_exact_if_the_operator_has_few_eigenvalues(rng):
    """Four eigenvalues in a space of 70 dimensions: the Krylov space closes after four steps, and holds the norm."""
    dim = op._DENSE + 6
    spectra = ([0.0, 1.0, 2.0, 5.0], [3.0, 1.0, 0.5, 0.25], [0.0, -1.0, -2.0, -5.0])
    diagonals = np.array([rng.permutation(np.resize(s, dim)) for s in spectra])
    f = rng.standard_normal(dim)

    @jax.jit
    def norms_and_powers(key, f):
        applies = [partial(jnp.multiply, diagonal) for diagonal in diagonals]
        norms = op.norms(applies, {"features": jnp.zeros((1, dim))}, key)
        return norms, op.powers_applied(applies[:2], 1.5, f)

    norms, powers = norms_and_powers(jax.random.key(0), f)
    np.testing.assert_allclose(norms, [5, 3, 5], rtol=1e-12)
    house.close(powers, diagonals[:2] ** 1.5 * f, 1e-12 * 5**1.5 * dim**0.5)


@pytest.mark.parametrize(
    "trial",
    [
        trials.covariance_deviation,
        trials.cube_deviation,
        trials.cube_trace,
        partial(trials.projection, rows=4),
        partial(trials.sketch, rows=4),
        partial(trials.conditional_deviation, rows=4),
        trials.weak_difference,
        trials.weak_difference_coupled,
        trials.standardised_image,
    ],
)
def test_a_trial_decomposes_once_at_most(synthetic, trial):
    """Two independent batches of decompositions in one program can wait for each other for ever on two cores."""
    arrays = synthetic["gauss grid"].arrays
    arrays = arrays | {"shares": arrays["weights"]}
    numbers = dict.fromkeys(("n", "d", "tau"), jnp.asarray(5.0))
    traced = jax.make_jaxpr(trial)(jax.random.key(0), arrays, numbers)
    names = [equation.primitive.name for equation in equations(traced.jaxpr)]
    assert names.count("eigh") <= 1


A = np.ones((3, 4), np.float32)
PRODUCT = 3 * 4 * 3


def repeated(A):
    return jax.lax.map(lambda i: i * (A @ A.T), jnp.arange(7, dtype=jnp.float32))


def chosen(A):
    return jax.lax.cond(A[0, 0] > 0, lambda A: A @ A.T @ A, lambda A: 2 * A, A)


def variants(A):
    return jax.lax.platform_dependent(
        A, cpu=lambda A: A @ A.T @ A, default=lambda A: A @ (A.T @ A @ A.T @ A)
    )


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda A: A @ A.T, PRODUCT),
        (lambda A: A[0] + A[1], 0),
        (repeated, 7 * PRODUCT),
        (chosen, 2 * PRODUCT),
        (variants, 2 * PRODUCT),
    ],
)
def test_multiply_adds_count_loops_the_dearest_branch_and_the_cheapest_platform(
    function, count
):
    assert flops.multiply_adds(function, A) == count
