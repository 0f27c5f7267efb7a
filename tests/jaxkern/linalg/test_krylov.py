"""A few eigenpairs: against NumPy, in degenerate regimes, without an n x n array, and their derivatives."""

import re
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_allclose
from support.jaxprs import largest_intermediate

from jaxkern import linalg
from jaxkern.gram import gram_matmul
from jaxkern.kernels import Distance
from jaxkern.linalg import matmul

N, VALUES = 60, 6
"""More rows than 4 blocks of the 12 columns by which 6 eigenpairs start, so that the iteration runs."""
LARGE = 200
"""Rows from which on 4 eigenpairs of a dense matrix are left to the partial solver: 150 at least."""
SOLVERS = [
    (linalg.largest_eigenpairs, np.asarray),
    (linalg.largest_modulus_eigenpairs, np.abs),
]
REST = np.linspace(-0.9, 0.9, N)
SPACED = np.linspace(-1, 2, N)
SPECTRA = {
    "zero": np.zeros(N),
    "identity": np.ones(N),
    "rank 1, negative": np.r_[-5.0, np.zeros(N - 1)],
    "rank 3": np.r_[3.0, 2.0, -1.0, np.zeros(N - 3)],
    "a cluster wider than the block": np.r_[np.full(30, 2.0), REST[30:]],
    "pairs of equal modulus": np.r_[3.0, -3.0, 2.0, -2.0, 1.0, -1.0, REST[6:]],
    "half plus, half minus": np.sign(REST),
    "tightly clustered": np.r_[1 + 1e-5 * np.arange(8), np.linspace(0, 0.5, N - 8)],
    "negative definite": REST - 2,
    # In float32 squares of the tiny ones are zero, and those of the huge ones infinite.
    "tiny": 1e-30 * SPACED,
    "huge": 1e30 * SPACED,
    "decaying": 10.0 ** -np.linspace(0, 16, N),
}
SLOW = 1 - (np.arange(LARGE) / LARGE) ** 4
"""Eigenvalues that crowd at the upper end: 2 n products do not separate them."""
GAPPED = np.r_[4.0, -3.0, 2.0, 2.0, 0.9 * np.linspace(-1, 1, LARGE - 4)]
"""Two eigenvalues and two equal ones, apart from the others."""


def matrix(values):
    """Return a symmetric matrix with these eigenvalues in the precision of the environment."""
    n = len(values)
    Q = np.linalg.qr(house.rng().normal(size=(n, n)))[0]
    A = (Q * values) @ Q.T
    return ((A + A.T) / 2).astype(house.dtype())


def symmetric(n, seed):
    B = house.rng(seed).normal(size=(n, n))
    return (B + B.T) / 2


@partial(jax.jit, static_argnames=("solver", "num_values", "extra", "max_restarts"))
def solve(
    A,
    solver=linalg.largest_eigenpairs,
    num_values=VALUES,
    extra=6,
    max_restarts=100,
):
    start = linalg.start_block(len(A), num_values, A.dtype, extra=extra)
    return solver(
        partial(matmul, A), start, num_values=num_values, max_restarts=max_restarts
    )


def assert_leading(values, vectors, A, priority=np.asarray):
    """Assert that these are leading eigenvalues and orthonormal eigenvectors, up to rounding."""
    A = np.float64(A)
    V = np.float64(vectors)
    exact = priority(np.linalg.eigvalsh(A))
    rounding = 6 * len(A) ** 0.5 * eps()
    tolerance = rounding * np.abs(exact).max()
    close(V.T @ V, np.eye(len(values)), rounding)
    close(A @ V, V * np.float64(values), tolerance)
    # Two of equal modulus and opposite sign may stand in either order.
    close(priority(values), np.sort(exact)[::-1][: len(values)], tolerance)


@pytest.mark.parametrize("name", SPECTRA)
@pytest.mark.parametrize(("solver", "priority"), SOLVERS)
def test_eigenpairs_are_those_of_a_full_decomposition(name, solver, priority):
    A = matrix(SPECTRA[name])
    pairs = solve(A, solver)
    assert bool(pairs.converged)
    assert_leading(pairs.values, pairs.vectors, A, priority)


@pytest.mark.parametrize("n", [1, 10])
def test_few_rows_or_all_values_are_decomposed_in_full(n):
    A = matrix(REST[-n:])
    pairs = solve(A, num_values=n)
    assert bool(pairs.converged)
    assert_leading(pairs.values, pairs.vectors, A)
    assert int(pairs.num_products) == n


def assert_residuals(values, vectors, residuals, A):
    """Assert that the residuals are what they say."""
    V = np.asarray(vectors)
    literal = np.linalg.norm(A @ V - V * np.asarray(values), axis=0)
    tolerance = N * eps() * np.linalg.norm(A)
    assert_allclose(residuals, literal, rtol=1e-2, atol=tolerance)


def test_products_of_a_kernel_are_counted_and_need_no_matrix():
    """An indefinite kernel matrix; two pairs and a coarse tolerance take fewer products."""
    X = house.data(shape=(N, 8, 3)).X
    widths = []

    @jax.jit
    def coarse(X):
        def product(V):
            jax.debug.callback(lambda _: widths.append(V.shape[1]), V[0, 0])
            return gram_matmul(Distance(), X, None, V, block_size=16)

        start = linalg.start_block(N, 2, X.dtype)
        return linalg.largest_modulus_eigenpairs(
            product, start, num_values=2, tolerance=0.01
        )

    pairs = coarse(X)
    jax.effects_barrier()
    K = np.linalg.norm(X[:, None] - X[None], axis=2)
    precise = solve(K, linalg.largest_modulus_eigenpairs)
    assert int(pairs.num_products) == sum(widths) < int(precise.num_products)
    assert_residuals(*pairs[:3], K)
    assert bool(pairs.converged)
    assert largest_intermediate(coarse, X) < N * N


def test_nan_ends_the_iteration_unconverged():
    A = matrix(SPACED)
    A[3, 3] = np.nan
    pairs = solve(A)
    assert not bool(pairs.converged)
    assert int(pairs.num_products) < 100


@pytest.mark.float64
def test_matrices_whose_pairs_do_not_converge_are_decomposed_in_full():
    """In a stack with a matrix whose pairs converge; the partial solver says how far it is."""
    stack = np.stack([matrix(SLOW), matrix(GAPPED)])
    restarts = linalg.dense_restarts(LARGE, 5)
    partial_solver = partial(solve, num_values=3, extra=2, max_restarts=restarts)
    pairs = jax.device_get(jax.vmap(partial_solver)(stack))
    assert pairs.converged.tolist() == [False, True]
    assert pairs.residuals[0].max() > 1e-3
    assert_residuals(*(array[0] for array in pairs[:3]), stack[0])
    leading = partial(linalg.leading_eigh, num_values=3)
    program = jax.jit(jax.vmap(leading)).lower(stack).compile()
    # In a branch, not before it: compilers move out of a loop what does not change in it.
    full = rf"\(f64\[2,{LARGE},{LARGE}\].* custom-call\("
    assert re.search(full, program.as_text())
    assert not re.search(full, program.as_text().split("\nENTRY")[1])
    for values, vectors, A in zip(*program(stack), stack, strict=True):
        assert_leading(values, vectors, A)


@pytest.mark.parametrize(
    ("values", "served"),
    [
        (np.r_[np.repeat([3.0, 2.0, 1.5], 3), GAPPED[9:]], True),
        # ARPACK may find a part of such a cluster only, which does not serve.
        (np.r_[np.full(12, 2.0), GAPPED[12:]], None),
        (SLOW, None),
        (np.zeros(LARGE), False),
        (np.full(LARGE, np.nan), False),
    ],
)
def test_arpack_serves_if_it_finds_the_leading_pairs(values, served):
    """Clusters whole or not at all; the same twice; nothing within `jit`."""
    A = jnp.asarray(matrix(values))
    pairs = linalg.host_eigenpairs(A, 4)
    assert served in (None, pairs is not None)
    assert jax.eval_shape(lambda A: linalg.host_eigenpairs(A, 4), A) is None
    if pairs is not None:
        assert_leading(*pairs, A)
        assert pairs[1].dtype == A.dtype
        assert all(map(np.array_equal, pairs, linalg.host_eigenpairs(A, 4)))


@partial(jax.jit, static_argnames="solver")
def spectral_slopes(A, direction, solver):
    """Return functions of 3 of 6 eigenpairs, and their derivatives.

    The first four do not depend on a basis within equal eigenvalues, the last two do.
    """

    def functions(A):
        values, V = solver(A, num_values=3)
        # |.| of A on the leading space, from the rotated matrix.
        inner = matmul(V.T, matmul(A, V))
        absolute = linalg.psd_power(matmul(inner, inner), 0.5)
        rows, _ = linalg.eigen_rows(A, 3, power=-0.5)
        part = matmul(matmul(V, absolute), V.T)
        sums = jnp.sum(jnp.sin(values))
        return sums, matmul(V, V.T), part, matmul(rows.T, rows), V, rows

    return jax.jvp(functions, (A,), (direction,))


@pytest.mark.float64
@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([5.0, 2.0, 2.0, 1.0, 1.0, 1.0], 1e-5),
        ([4.0, 3.0, 2.0, 1.0, 0.5, 0.2], 1e-5),
        # Small ones have the rounding of the largest.
        ([1.0, 3e-4, 3e-4, 1e-4, 0.0, 0.0], 1e-9),
        ([3.0, -3.0, -3.0, 1.0, -1.0, 0.0], 1e-5),
    ],
)
def test_derivatives_match_differences_where_eigenvalues_are_equal(values, step):
    """If some are negative, of both ends of the spectrum, and without the rows of roots."""
    is_psd = min(values) >= 0
    solver = linalg.leading_eigh if is_psd else linalg.leading_modulus_eigh
    A = matrix(values)
    B = symmetric(6, 1)
    slopes = spectral_slopes(A, B, solver)[1]
    ahead, behind = (spectral_slopes(A + h * B, B, solver)[0] for h in (step, -step))
    for number in range(3 + is_psd):
        expected = np.subtract(ahead[number], behind[number]) / (2 * step)
        close(slopes[number], expected, 2e-6 * np.abs(expected).max() + 1e-8)


@pytest.mark.parametrize("values", [[0] * 6, [2, 1, 1, 1, -1, -1]])
def test_derivatives_are_finite_even_where_the_cut_divides_equal_eigenvalues(values):
    A = matrix(values)
    results = spectral_slopes(A, np.ones_like(A), linalg.leading_eigh)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(results))


@pytest.mark.parametrize(("roundings", "is_kept"), [(5, False), (20, True)])
def test_rows_of_eigenvalues_that_are_rounding_are_zero(roundings, is_kept):
    """At most sqrt(6) * 4 * eps beside an eigenvalue of 4."""
    spectrum = [4, 1, roundings * eps(), 0, 0, 0]
    A = np.diag(spectrum).astype(house.dtype())
    rows = spectral_slopes(A, A, linalg.leading_eigh)[0][-1]
    assert np.asarray(rows)[2].any() == is_kept


@pytest.mark.parametrize("factor", [1e-30, 1e25])
def test_derivatives_follow_a_factor_of_the_matrix(factor):
    """In float32 their squares are zero, or infinite."""
    A = matrix([4.0, 3.0, 2.0, 1.0, 0.5, 0.2])
    B = symmetric(6, 1).astype(A.dtype)
    factor = A.dtype.type(factor)
    slopes = spectral_slopes(A, B, linalg.leading_eigh)[1]
    scaled = spectral_slopes(factor * A, factor * B, linalg.leading_eigh)[1]
    # A projector does not depend on the factor, and rows of roots follow its inverse.
    close(scaled[1], slopes[1], 1e3 * eps())
    close(factor * scaled[3], slopes[3], 1e3 * eps())


@pytest.mark.float64
def test_derivatives_through_the_partial_solver():
    """And the value that comes with a derivative is the value without, signs of eigenvectors included."""
    assert linalg.prefers_partial(LARGE, 4)
    A = matrix(GAPPED)
    leading = partial(linalg.leading_modulus_eigh, num_values=4)

    @jax.jit
    @partial(jax.value_and_grad, has_aux=True)
    def loss(A):
        values, V = leading(A)
        projector = matmul(V, V.T)
        loss = jnp.sum(jnp.sin(values)) + jnp.sum(symmetric(LARGE, 1) * projector)
        return loss, (values, V)

    (_, pairs), gradient = loss(A)
    alone = jax.jit(leading)(A)
    assert_leading(*alone, A, np.abs)
    assert_allclose(pairs[0], alone[0], rtol=1e-13)
    # The two equal ones may turn with the last digit; the others keep their signs.
    close(pairs[1][:, :2], alone[1][:, :2], 1e-12)
    step = symmetric(LARGE, 2) * 5e-7
    change = loss(A + step)[0][0] - loss(A - step)[0][0]
    assert_allclose(2 * np.vdot(gradient, step), change, rtol=1e-6)


@pytest.mark.float64
def test_second_derivatives_match_differences_of_the_first_where_eigenvalues_are_apart():
    direction = symmetric(6, 2)

    @jax.jit
    def slopes(A):
        def of_projector(A):
            V = linalg.leading_eigh(A, num_values=2)[1]
            return jnp.sum(symmetric(6, 1) * matmul(V, V.T))

        return jax.jvp(jax.grad(of_projector), (A,), (direction,))

    A = matrix([3.0, 2.0, 1.0, 0.5, 0.2, 0.0])
    step = 1e-5 * direction
    change = np.subtract(slopes(A + step)[0], slopes(A - step)[0]) / 2e-5
    close(slopes(A)[1], change, 1e-6 * np.abs(change).max())
