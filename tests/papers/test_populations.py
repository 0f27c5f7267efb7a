"""Populations and the operators on them, against dense linear algebra on the atoms."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.spatial import distance

from jaxkern import rkhs
from jaxkern.gram import gram
from proofs_check.papers import flops, populations
from proofs_check.papers import operators as op

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


@pytest.fixture
def table():
    """A population of a user's own, larger than what is treated densely."""
    X = np.random.default_rng(1).standard_normal((150, 2)) * [3.0, 1.0]
    return populations.from_rows(X, lengthscale=1.0)


def dense_covariance(p, weights):
    return p.features.T @ (np.asarray(weights)[:, None] * p.features)


def dense(apply, dim):
    return np.asarray(jax.vmap(apply)(jnp.eye(dim)))


def test_features_reproduce_the_kernel_and_diagonalise_sigma(synthetic):
    eps = np.finfo(float).eps
    assert tuple(synthetic) == SYNTHETIC
    for p in synthetic.values():
        K = np.asarray(gram(p.kernel, jnp.asarray(p.points)))
        reproduced = p.features @ p.features.T
        np.testing.assert_allclose(reproduced, K, rtol=0, atol=1e3 * eps * p.kappa)
        sigma = dense_covariance(p, p.weights)
        diagonal = np.diag(p.eigenvalues)
        np.testing.assert_allclose(sigma, diagonal, rtol=0, atol=1e3 * eps * p.op_norm)
        assert np.all(np.diff(p.eigenvalues) <= 0) and np.all(p.eigenvalues >= 0)


@pytest.mark.parametrize("name", ["orthogonal atoms", "skewed plane"])
def test_population_quantities_are_those_of_the_library(synthetic, name):
    p = synthetic[name]

    @jax.jit
    def quantities(kernel, points, weights):
        sigma = rkhs.Covariance(kernel, points, weights)
        return {
            "rank": sigma.effective_rank(),
            "rank3": sigma.effective_rank(3),
            "kappa": sigma.kappa(),
            "trace": sigma.trace(),
            "trace3": sigma.trace(3),
            "op_norm": sigma.op_norm(),
            "hs_norm": sigma.hs_norm(),
        }

    for quantity, exact in quantities(p.kernel, p.points, p.weights).items():
        assert getattr(p, quantity) == pytest.approx(float(exact), rel=1e-12), quantity


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


def test_frequencies_are_multinomial_at_a_trillion_draws(synthetic):
    arrays = synthetic["rare atom"].arrays
    n = 1e12
    keys = jax.random.split(jax.random.key(0), 2000)
    with jax.debug_key_reuse(
        False
    ):  # jax.random.multinomial splits a key in a way that the checker takes for reuse
        shares = np.asarray(
            jax.jit(jax.vmap(lambda k: op.shares(k, arrays, jnp.asarray(n))))(keys)
        )
    np.testing.assert_allclose(shares.sum(axis=1), 1, rtol=1e-12)
    w = np.asarray(arrays["weights"])
    scores = (shares[:, 0] - w[0]) / np.sqrt(w[0] * (1 - w[0]) / n)
    # False-alarm rate 1e-6 each: the largest of 2,000 in law, and the counts of two atoms that must compensate.
    assert stats.kstest(scores, "norm").pvalue > 1e-6
    correlation = np.corrcoef(shares[:, 0], shares[:, 1])[0, 1]
    exact = -np.sqrt(w[0] * w[1] / ((1 - w[0]) * (1 - w[1])))
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
    steps = op._STEPS
    assert basis.shape == (steps, 32)
    np.testing.assert_allclose(basis[0], start / np.linalg.norm(start), atol=1e-15)
    np.testing.assert_allclose(basis @ basis.T, np.eye(steps), atol=1e-13)
    restricted = basis * p.eigenvalues @ basis.T
    np.testing.assert_allclose(tridiagonal, restricted, atol=1e-14)
    assert np.abs(np.triu(tridiagonal, 2)).max() < 1e-14


def test_lanczos_steps_are_exact_if_the_operator_has_few_eigenvalues(rng):
    """Four eigenvalues in a space of 70 dimensions: the Krylov space closes after four steps, and holds the norm."""
    dim = op._DENSE + 6
    spectra = ([0.0, 1.0, 2.0, 5.0], [3.0, 1.0, 0.5, 0.25], [0.0, -1.0, -2.0, -5.0])
    diagonals = np.array([rng.permutation(np.resize(s, dim)) for s in spectra])
    f = rng.standard_normal(dim)

    @jax.jit
    def norms_and_powers(key, f):
        applies = [partial(jnp.multiply, jnp.asarray(d)) for d in diagonals]
        norms = op.norms(applies, {"features": jnp.zeros((1, dim))}, key)
        return norms, op.powers_applied(applies[:2], 1.5, f)

    norms, powers = norms_and_powers(jax.random.key(0), f)
    np.testing.assert_allclose(norms, [5, 3, 5], rtol=1e-12)
    size = 5**1.5 * dim**0.5
    np.testing.assert_allclose(powers, diagonals[:2] ** 1.5 * f, atol=1e-12 * size)


@pytest.mark.slow
@pytest.mark.parametrize("n", [1e3, 1e8])
def test_few_lanczos_steps_give_norms_and_powers_of_a_large_table(table, n):
    arrays, dim = table.arrays, table.features.shape[1]
    assert dim > op._DENSE
    shares = op.shares(jax.random.key(1), arrays, jnp.asarray(n))
    apply = op.covariance(arrays, shares)
    deviations = (
        op.difference(op.cube(apply), op.exact_power(arrays, 3)),
        op.difference(
            op.sketch(jax.random.key(2), arrays, shares, 32), op.exact_power(arrays, 3)
        ),
    )
    norms = np.asarray(op.norms(deviations, arrays, jax.random.key(3)))
    truth = np.array([np.linalg.norm(dense(a, dim), 2) for a in deviations])
    assert np.all(norms <= truth * (1 + 1e-12)) and np.all(norms >= truth * (1 - 1e-5))
    C = dense_covariance(table, shares)
    values, vectors = np.linalg.eigh(C)
    f = np.asarray(arrays["f"])
    exact = (
        vectors @ (np.maximum(values, 0) ** 1.5 * (vectors.T @ f))
        - table.eigenvalues**1.5 * f
    )
    drawn, of_sigma = op.powers_applied(
        (apply, op.exact_power(arrays, 1)), 1.5, jnp.asarray(f)
    )
    assert np.linalg.norm(drawn - of_sigma - exact) <= 1e-2 * np.linalg.norm(exact)
    assert float(op.trace_cube(arrays, shares)) == pytest.approx(
        np.trace(C @ C @ C), rel=1e-12
    )


def test_a_trial_decomposes_once(synthetic):
    """Two independent batches of decompositions in one program can wait for each other for ever on two cores."""
    from support.jaxprs import equations

    from proofs_check.papers.kpotufe2020 import trials

    numbers = {name: jnp.asarray(5.0) for name in ("n", "d", "tau")}
    arrays = {
        **synthetic["gauss grid"].arrays,
        "shares": synthetic["gauss grid"].arrays["weights"],
    }
    every_trial = (
        trials.covariance_deviation,
        trials.cube_deviation,
        trials.cube_trace,
        partial(trials.projection, rows=4),
        partial(trials.sketch, rows=4),
        partial(trials.conditional_deviation, rows=4),
        trials.weak_difference,
        trials.weak_difference_coupled,
        trials.standardised_image,
    )
    counts = []
    for trial in every_trial:
        traced = jax.make_jaxpr(lambda key, trial=trial: trial(key, arrays, numbers))(
            jax.random.key(0)
        )
        counts.append(sum(e.primitive.name == "eigh" for e in equations(traced.jaxpr)))
    assert max(counts) == 1


def test_multiply_adds_are_counted_through_loops():
    A = jax.ShapeDtypeStruct((3, 4), jnp.float32)
    B = jax.ShapeDtypeStruct((4, 5), jnp.float32)

    def repeated(a, b):
        return jax.lax.map(lambda i: i * (a @ b), jnp.arange(7, dtype=jnp.float32))

    assert flops.multiply_adds(lambda a, b: a @ b, A, B) == 3 * 4 * 5
    assert flops.multiply_adds(repeated, A, B) == 7 * 3 * 4 * 5
    assert flops.multiply_adds(lambda a, b: a[0] + b[:, 0], A, B) == 0


def test_of_branches_the_dearest_counts_and_of_platforms_the_cheapest():
    A = jnp.ones((3, 4))

    def chosen(flag, A):
        return jax.lax.cond(flag, lambda A: A @ A.T @ A, lambda A: 2 * A, A)

    def variants(A):
        return jax.lax.platform_dependent(
            A, cpu=lambda A: A @ A.T @ A, default=lambda A: A @ (A.T @ A @ A.T @ A)
        )

    product = 3 * 4 * 3
    assert flops.multiply_adds(chosen, True, A) == 2 * product
    assert flops.multiply_adds(variants, A) == 2 * product
