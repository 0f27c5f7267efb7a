"""A few eigenpairs: against NumPy and SciPy, in degenerate regimes, without n x n, and their derivatives."""

import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse.linalg import eigsh
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern import linalg as solvers
from jaxkern.gram import gram, gram_matmul
from jaxkern.kernels import Distance, Gaussian
from jaxkern.linalg import matmul, psd_power
from jaxkern.linalg._krylov import _orthonormal

N, VALUES = 96, 6
"""Small, and more than 4 blocks of the start's 12 columns: the iteration runs."""
LARGE = 200
"""A size at which few eigenpairs of a dense matrix are left to the partial solver."""
REST = np.linspace(-0.9, 0.9, N)
SPECTRA = {
    "zero": np.zeros(N),
    "identity": np.ones(N),
    "minus the identity": -np.ones(N),
    "rank 1": np.r_[5.0, np.zeros(N - 1)],
    "rank 1, negative": np.r_[-5.0, np.zeros(N - 1)],
    "rank 3": np.r_[3.0, 2.0, -1.0, np.zeros(N - 3)],
    "a cluster of the number wanted": np.r_[np.full(VALUES, 2.0), REST[VALUES:]],
    "a cluster wider than the block": np.r_[np.full(30, 2.0), REST[30:]],
    "pairs of equal modulus": np.r_[3.0, -3.0, 2.0, -2.0, 1.0, -1.0, REST[6:]],
    "half plus, half minus": np.r_[np.ones(N // 2), -np.ones(N // 2)],
    "tightly clustered": np.r_[1 + 1e-5 * np.arange(8), np.linspace(0, 0.5, N - 8)],
    "equally spaced": np.linspace(-1, 2, N),
    "negative definite": np.linspace(-3, -1, N),
    "tiny": 1e-30
    * np.linspace(
        -1, 2, N
    ),  # in float32 their squares are zero, and those of the next infinite
    "huge": 1e30 * np.linspace(-1, 2, N),
    "decaying": 10.0 ** -np.linspace(0, 16, N),
}


def matrix(rng, values, dtype):
    Q = np.linalg.qr(rng.normal(size=(len(values), len(values))))[0]
    A = (Q * values) @ Q.T
    return np.asarray((A + A.T) / 2, dtype)


@partial(jax.jit, static_argnames=("solver", "num_values", "max_restarts"))
def iterate(A, start, solver, num_values, max_restarts=100):
    return solver(
        lambda V: matmul(A, V), start, num_values=num_values, max_restarts=max_restarts
    )


def solve(A, solver=solvers.largest_eigenpairs, num_values=VALUES, extra=6, **options):
    start = solvers.start_block(A.shape[-1], num_values, A.dtype, extra=extra)
    return iterate(A, start, solver, num_values, **options)


def assert_eigenpairs(found, A, *, converged=True):
    """The pairs are what they say: orthonormal, with the residuals given, in the order and with the values of NumPy."""
    scale = float(np.abs(A).max()) or 1.0
    exact = np.float64(A) / scale
    values, vectors, residuals = (
        np.float64(x) for x in (found.values, found.vectors, found.residuals)
    )
    values, residuals = values / scale, residuals / scale
    norm = np.abs(np.linalg.eigvalsh(exact)).max()
    small = 4 * len(exact) ** 0.5 * eps(A.dtype)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(len(values)), atol=small)
    literal = np.linalg.norm(exact @ vectors - vectors * values, axis=0)
    np.testing.assert_allclose(residuals, literal, rtol=1e-2, atol=small * norm)
    assert bool(found.converged) is converged
    assert not converged or (literal <= 1.5 * small * norm).all()
    assert found.values.dtype == found.vectors.dtype == found.residuals.dtype == A.dtype
    return values, np.linalg.eigvalsh(exact)[::-1], small * norm


@pytest.mark.parametrize(
    "precision", ["float32", pytest.param("float64", marks=pytest.mark.slow)]
)  # SciPy's, below
@pytest.mark.parametrize("name", SPECTRA)
def test_both_ends_and_the_largest_are_those_of_a_full_decomposition(
    name, precision, rng
):
    A = matrix(rng, SPECTRA[name], precision)
    with jax.enable_x64(precision == "float64"):
        ends, largest = jax.device_get(
            (solve(A), solve(A, solvers.largest_modulus_eigenpairs))
        )
    values, exact, allowed = assert_eigenpairs(ends, A)
    np.testing.assert_allclose(values, exact[:VALUES], rtol=0, atol=allowed)
    values, exact, allowed = assert_eigenpairs(largest, A)
    # Two of equal modulus and opposite sign may stand in either order.
    np.testing.assert_allclose(
        np.abs(values), np.sort(np.abs(exact))[::-1][:VALUES], rtol=0, atol=allowed
    )
    assert np.abs(values[:, None] - exact[None, :]).min(1).max() <= allowed


def test_few_rows_or_all_values_are_decomposed_in_full(dtype, rng):
    for n, k in ((1, 1), (10, 10)):
        A = matrix(rng, np.linspace(-2, 1, n), dtype)
        found = solve(A, num_values=k)
        values, exact, allowed = assert_eigenpairs(found, A)
        np.testing.assert_allclose(values, exact[:k], rtol=0, atol=allowed)
        assert int(found.num_products) == n


def test_scipy_finds_the_same_without_the_matrix_being_held(x64, rng):
    """An indefinite and a positive definite kernel; the program holds no n x n array."""
    X = rng.normal(size=(300, 3))
    cases = (
        (Gaussian(0.7), "LA", solvers.largest_eigenpairs),
        (Distance(), "LM", solvers.largest_modulus_eigenpairs),
    )
    for kernel, which, solver in cases:

        @jax.jit
        def run(X, kernel=kernel, solver=solver):
            start = solvers.start_block(X.shape[0], VALUES, X.dtype)
            product = partial(gram_matmul, kernel, X, None, block_size=128)
            return solver(product, start, num_values=VALUES)

        found = run(X)
        values, vectors = eigsh(np.asarray(gram(kernel, X)), VALUES, which=which)
        order = np.argsort(-values if which == "LA" else -np.abs(values))
        assert bool(found.converged)
        np.testing.assert_allclose(
            found.values, values[order], rtol=0, atol=1e-12 * np.abs(values).max()
        )
        V = np.asarray(found.vectors)
        np.testing.assert_allclose(V @ V.T, vectors @ vectors.T, atol=1e-9)
        assert largest_intermediate(run, X) < 300 * 300


def test_products_are_counted_and_fewer_where_less_is_asked_for(rng):
    A = matrix(rng, SPECTRA["equally spaced"], "float32")
    widths = []

    @jax.jit
    def run(A):
        def product(V):
            jax.debug.callback(lambda _: widths.append(V.shape[1]), V[0, 0])
            return matmul(A, V)

        start = solvers.start_block(N, VALUES, A.dtype)
        return solvers.largest_eigenpairs(
            product, start, num_values=VALUES, tolerance=0.01
        )

    found = run(A)
    jax.effects_barrier()
    assert int(found.num_products) == sum(widths) > 4 * VALUES
    assert bool(found.converged) and int(found.num_products) < int(
        solve(A).num_products
    )


def test_what_did_not_converge_says_so_and_how_far_it_is(rng):
    A = matrix(rng, SPECTRA["equally spaced"], "float32")
    found = solve(A, max_restarts=1)
    assert_eigenpairs(found, A, converged=False)
    assert float(found.residuals.max()) > 1e-3


def test_what_is_not_a_number_ends_the_iteration_unconverged(rng):
    A = matrix(rng, SPECTRA["equally spaced"], "float32")
    A[3, 3] = np.nan
    found = solve(A)
    assert not bool(found.converged) and int(found.num_products) < 100


def test_a_stack_gives_what_each_gives_alone(rng):
    """Also where they need different numbers of restarts."""
    A = np.stack(
        [
            matrix(rng, SPECTRA[name], "float32")
            for name in ("zero", "decaying", "equally spaced")
        ]
    )
    stacked = jax.device_get(jax.vmap(solve)(A))
    for i, one in enumerate(A):
        alone = solve(one)
        np.testing.assert_allclose(
            stacked.values[i], alone.values, rtol=0, atol=40 * eps("float32")
        )
        # Near the tolerance the last digit may decide on one restart more.
        assert abs(int(stacked.num_products[i]) - int(alone.num_products)) <= 36


SLOW = 1 - (np.arange(LARGE) / LARGE) ** 4
"""Eigenvalues that crowd at the upper end: the 2 n products allowed do not separate them."""
GAPPED = np.r_[4.0, -3.0, 2.0, 2.0, 0.9 * np.linspace(-1, 1, LARGE - 4)]
"""Two eigenvalues and two equal ones, apart from the others."""


def assert_leading(values, vectors, A, priority):
    exact, basis = np.linalg.eigh(np.float64(A))
    order = np.argsort(-priority(exact))[: len(values)]
    allowed = 10 * LARGE**0.5 * eps(A.dtype) * np.abs(exact).max()
    # Two of equal modulus and opposite sign may stand in either order.
    np.testing.assert_allclose(
        priority(values), priority(exact)[order], rtol=0, atol=allowed
    )
    literal = np.float64(vectors)
    np.testing.assert_allclose(
        exact @ (basis.T @ literal) ** 2, values, rtol=0, atol=allowed
    )
    return literal @ literal.T, basis[:, order] @ basis[:, order].T, allowed


@partial(jax.jit, static_argnames="k")
def leading_modulus(A, k):
    return solvers.leading_modulus_eigh(A, num_values=k)


def test_dense_matrices_give_the_same_by_either_solver(dtype, rng):
    """Four eigenpairs of 200 rows come from the partial solver, 30 of them do not."""
    assert solvers.prefers_partial(LARGE, 4) and not solvers.prefers_partial(LARGE, 30)
    A = matrix(rng, GAPPED, dtype)
    found, projector, allowed = assert_leading(*leading_modulus(A, 4), A, np.abs)
    np.testing.assert_allclose(found, projector, atol=allowed)
    assert_leading(*leading_modulus(A, 30), A, np.abs)


def test_what_does_not_converge_is_decomposed_in_full(x64, rng):
    """Alone and in a stack with a matrix that does converge."""
    slow, fast = matrix(rng, SLOW, "float64"), matrix(rng, GAPPED, "float64")
    allowed = {
        "num_values": 3,
        "extra": 2,
        "max_restarts": solvers.dense_restarts(LARGE, 5),
    }
    assert not bool(solve(slow, **allowed).converged)
    assert bool(solve(fast, **allowed).converged)
    both = np.stack([slow, fast])
    program = (
        jax.jit(jax.vmap(partial(solvers.leading_eigh, num_values=3)))
        .lower(both)
        .compile()
    )
    # In a branch, not before it: compilers move out of a loop what does not change in it.
    full = rf"\(f64\[2,{LARGE},{LARGE}\].* custom-call\("
    assert re.search(full, program.as_text()) and not re.search(
        full, program.as_text().split("\nENTRY")[1]
    )
    stacked = jax.device_get(program(both))
    for i, (A, values) in enumerate(((slow, SLOW), (fast, GAPPED))):
        found, projector, allowed = assert_leading(
            stacked[0][i], stacked[1][i], A, np.asarray
        )
        gap = (
            np.sort(values)[-3] - np.sort(values)[-4]
        )  # rounding turns a space by its size over the gap (Davis-Kahan)
        np.testing.assert_allclose(found, projector, atol=allowed / gap)


traced = jax.jit(
    lambda A: jnp.zeros(()) if solvers.host_eigenpairs(A, 4) is None else A
)


@pytest.mark.parametrize(
    ("values", "served"),
    [
        (np.r_[np.repeat([3.0, 2.0, 1.5], 3), GAPPED[9:]], True),
        (GAPPED, None),
        (
            np.r_[np.full(12, 2.0), GAPPED[12:]],
            None,
        ),  # a cluster that ARPACK may find in part
        (np.r_[np.full(12, 1e-3), 1.0, np.zeros(LARGE - 13)], None),
        (np.r_[3.0, 2.0, 1.0, np.zeros(LARGE - 3)], None),
        (np.ones(LARGE), None),
        (SLOW, None),
        (np.zeros(LARGE), False),
        (np.full(LARGE, np.nan), False),
    ],
)
def test_arpack_serves_where_it_finds_what_leads(values, served, dtype, rng):
    """Clusters whole or not at all; the same twice; nothing within `jit`."""
    A = jnp.asarray(matrix(rng, values, dtype))
    pairs = solvers.host_eigenpairs(A, 4)
    assert served in (None, pairs is not None)
    if pairs is not None:
        _, _, allowed = assert_leading(*pairs, A, np.asarray)
        np.testing.assert_allclose(pairs[1].T @ pairs[1], np.eye(4), atol=allowed)
        assert pairs[0].dtype == pairs[1].dtype == dtype
        assert all(map(np.array_equal, pairs, solvers.host_eigenpairs(A, 4)))
    assert traced(A).shape == ()


def symmetric(rng, n):
    B = rng.normal(size=(n, n))
    return (B + B.T) / 2


@partial(jax.jit, static_argnames=("solver", "k"))
def spectral_functions(A, weights, solver, k):
    """Return what no choice of a basis within a cluster changes."""
    values, V = solver(A, num_values=k)
    # |.| of A on the leading space, from the rotated matrix.
    inner = matmul(V.T, matmul(A, V))
    part = matmul(matmul(V, psd_power(matmul(inner, inner), 0.5)), V.T)
    rows, _ = solvers.eigen_rows(A, k, power=-0.5)
    of_matrices = [
        jnp.sum(weights * M) for M in (matmul(V, V.T), part, matmul(rows.T, rows))
    ]
    return jnp.stack([jnp.sum(jnp.sin(values)), *of_matrices])


@partial(jax.jit, static_argnames=("solver", "k"))
def derivatives(A, weights, direction, solver, k):
    gradients = jax.jacrev(spectral_functions)(A, weights, solver, k)
    return jnp.sum(gradients * direction[None], axis=(1, 2))


@pytest.mark.parametrize(
    ("values", "k", "step"),
    [
        ([3.0, 3.0, 3.0, 1.0, 1.0, 0.5], 3, 1e-5),
        ([5.0, 2.0, 2.0, 1.0, 1.0, 1.0], 3, 1e-5),
        ([4.0, 3.0, 2.0, 1.0, 0.5, 0.2], 3, 1e-5),
        pytest.param([2.0, 2.0, 2.0, 2.0, 2.0, 2.0], 6, 1e-5, marks=pytest.mark.slow),
        (
            [1.0, 3e-4, 3e-4, 1e-4, 0.0, 0.0],
            3,
            1e-9,
        ),  # small ones, whose rounding is that of the largest
        ([3.0, -3.0, -3.0, 1.0, -1.0, 0.0], 3, 1e-5),
    ],
)
def test_derivatives_of_spectral_functions_match_differences_where_eigenvalues_are_equal(
    values, k, step, x64, rng
):
    """Where some are negative, of both ends of the spectrum, and without the rows, which are for the others."""
    psd = min(values) >= 0
    solver = solvers.leading_eigh if psd else solvers.leading_modulus_eigh
    A, weights, direction = (
        matrix(rng, values, "float64"),
        symmetric(rng, 6),
        symmetric(rng, 6),
    )
    ends = (
        spectral_functions(A + sign * step * direction, weights, solver, k)
        for sign in (1, -1)
    )
    ahead, behind = map(np.asarray, ends)
    found = np.asarray(derivatives(A, weights, direction, solver, k))
    functions = slice(None) if psd else slice(3)
    np.testing.assert_allclose(
        found[functions],
        ((ahead - behind) / (2 * step))[functions],
        rtol=2e-6,
        atol=1e-8,
    )


def test_derivatives_through_the_partial_solver(x64, rng):
    """And the value that comes with a derivative is the value without, signs of eigenvectors included."""
    A = matrix(rng, GAPPED, "float64")
    weights, direction = symmetric(rng, LARGE), symmetric(rng, LARGE) / 20

    def loss(A):
        values, V = solvers.leading_modulus_eigh(A, num_values=4)
        return jnp.sum(jnp.sin(values)) + jnp.sum(weights * matmul(V, V.T)), (values, V)

    slope = jax.jit(jax.value_and_grad(loss, has_aux=True))
    ((_, found), gradient), alone = jax.device_get((slope(A), leading_modulus(A, 4)))
    ends = [float(slope(A + sign * 1e-5 * direction)[0][0]) for sign in (1, -1)]
    difference = (ends[0] - ends[1]) / 2e-5
    assert np.sum(np.asarray(gradient) * direction) == pytest.approx(
        difference, rel=1e-6
    )
    np.testing.assert_allclose(found[0], alone[0], rtol=1e-13)
    # The two equal ones may turn with the last digit; the others keep their signs.
    np.testing.assert_allclose(found[1][:, :2], alone[1][:, :2], atol=1e-12)


def test_second_derivatives_match_differences_of_the_first_where_eigenvalues_are_apart(
    x64, rng
):
    A, weights, direction = (
        matrix(rng, [3.0, 2.0, 1.0, 0.5, 0.0], "float64"),
        symmetric(rng, 5),
        symmetric(rng, 5),
    )

    def of_projector(A):
        V = solvers.leading_eigh(A, num_values=2)[1]
        return jnp.sum(weights * matmul(V, V.T))

    slope = jax.jit(jax.grad(of_projector))
    _, found = jax.jit(lambda A, B: jax.jvp(jax.grad(of_projector), (A,), (B,)))(
        A, direction
    )
    ends = [np.asarray(slope(A + sign * 1e-5 * direction)) for sign in (1, -1)]
    difference = (ends[0] - ends[1]) / 2e-5
    np.testing.assert_allclose(
        found, difference, rtol=0, atol=1e-6 * np.abs(difference).max()
    )


@jax.jit
@jax.grad
def slope_of_five(A):
    values, vectors = solvers.leading_eigh(A, num_values=5)
    return (
        jnp.sum(values)
        + jnp.sum(vectors**3)
        + jnp.sum(solvers.eigen_rows(A, 5, power=-0.5)[0])
    )


@pytest.mark.parametrize(
    "name", ["zero", "identity", "half plus, half minus", "rank 3"]
)
def test_gradients_are_finite_even_where_the_cut_divides_equal_eigenvalues(name, rng):
    assert np.isfinite(
        np.asarray(slope_of_five(matrix(rng, SPECTRA[name][:: N // 12], "float32")))
    ).all()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"start": np.zeros(5, np.float32)}, "start must have rank 2"),
        (
            {"start": np.zeros((5, 2), np.int32)},
            "start must have dtype float32 or float64",
        ),
        ({"num_values": 0}, "num_values must be at least 1"),
        (
            {"num_values": 3},
            "num_values must be at most 2 .the rows and columns of start., got 3",
        ),
        ({"max_restarts": 0}, "max_restarts must be at least 1"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"start": np.ones((5, 2), np.float32), "num_values": 1} | changes
    with pytest.raises(ValueError, match=message):
        solvers.largest_eigenpairs(lambda V: V, **arguments)


def test_columns_that_say_nothing_new_become_zero(dtype, rng):
    """Two directions in four columns, and one direction that is there already."""
    a = rng.standard_normal((20, 2))
    W, Q = np.c_[a, a @ [1.0, 2.0], a[:, 0]], np.eye(20, 3) * [1, 0, 0]
    W[0] *= 100
    tiny = float(jnp.finfo(dtype).eps)
    found = jax.jit(_orthonormal)(
        *(np.asarray(each, dtype) for each in (W, Q, 20 * tiny))
    )
    assert found.dtype == dtype
    found = np.asarray(found, float)
    lengths = np.linalg.norm(found, axis=0)
    assert np.count_nonzero(lengths) == 2
    left = found[:, lengths > 0]
    np.testing.assert_allclose(left.T @ left, np.eye(2), atol=20 * tiny)
    assert np.abs(found[0]).max() <= 20 * tiny
    inside = a[1:] - left[1:] @ (left[1:].T @ a[1:])
    assert np.abs(inside).max() <= 100 * tiny * np.abs(W).max()
