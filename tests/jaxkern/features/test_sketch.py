"""Kernel JL against its literal formula, and as a projection of the RKHS. (Its cost and its moments are claims.)"""

import jax
import numpy as np
import pytest
from support.numerics import eps

from jaxkern.draws import normal_rows
from jaxkern.features import KernelJL, kernel_jl
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian, Laplacian, Linear
from jaxkern.rkhs import Covariance, Function, RandomProjection

N, Q, DIM, D = 12, 7, 3, 5
KERNEL = Gaussian(0.9)
ONES = np.ones((5, 2), np.float32)


def points(rng, dtype, n=N):
    return rng.normal(size=(n, DIM)).astype(dtype)


def literal(Z, K, cross, centered):
    """Z K k(x) / (n sqrt(n d)), or Z H K H (k(x) - K 1/n) / (n sqrt(n d)), row by row, in float64."""
    Z, K, cross = (np.float64(array) for array in (Z, K, cross))
    d, n = Z.shape
    H = np.eye(n) - 1 / n
    rows = []
    for k in cross:
        image = Z @ H @ K @ H @ (k - K @ np.ones(n) / n) if centered else Z @ K @ k
        rows.append(image / (n * np.sqrt(n * d)))
    return np.array(rows)


CASES = [(KERNEL, True), (Laplacian(1.3) + 0.2 * Linear(), False)]
CASES += [
    pytest.param(kernel, not centered, marks=pytest.mark.slow)
    for kernel, centered in CASES
]


@pytest.mark.parametrize(("kernel", "centered"), CASES)
def test_the_map_is_the_literal_formula(kernel, centered, dtype, rng):
    X, Y = points(rng, dtype), points(rng, dtype, Q)
    phi = kernel_jl(jax.random.key(1), kernel, X, num_features=D, centered=centered)
    Z = normal_rows(jax.random.key(1), D, N, dtype)
    Z, K, cross = map(np.asarray, (Z, gram(kernel, X), gram(kernel, Y, X)))
    expected = literal(Z, K, cross, centered)
    found = phi(Y)
    assert (
        isinstance(phi, KernelJL) and phi.num_features == D and phi.centered is centered
    )
    assert found.shape == (Q, D) and found.dtype == dtype
    scale = (
        float(np.abs(Z).max() * np.abs(K).max() * np.abs(cross).max()) * N**0.5 / D**0.5
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=50 * eps(dtype) * scale)
    assert np.abs(expected).max() > 1e3 * 50 * eps("float64") * scale
    if centered:
        mean = np.asarray(phi(X)).mean(0)
        np.testing.assert_allclose(mean, np.zeros(D), atol=50 * eps(dtype) * scale)
    else:
        assert not np.asarray(phi.offset).any()


def test_images_are_those_of_the_random_projection_with_the_same_normals(x64, rng):
    """Theta with v_i = Sigma_n^(3/2)-normals from the same numbers is another operator with the same mean square.

    Kernel JL is v_i = S* K Z_i' / (n sqrt n): exactly the directions that draw_gaussian returns for the power three.
    """
    X, f = (
        points(rng, "float64"),
        Function(KERNEL, points(rng, "float64", Q), np.ones(Q)),
    )
    for centered in (False, True):
        phi = kernel_jl(jax.random.key(4), KERNEL, X, num_features=D, centered=centered)
        Sigma = Covariance(KERNEL, X, centered=centered)
        Theta = RandomProjection(jax.random.key(4), Sigma, num_features=D)
        np.testing.assert_allclose(Theta(f), phi.embed(f), rtol=1e-9)


def test_one_landmark_and_one_feature(dtype):
    """K = 1: phi(x) = z k(x); centred nothing is left."""
    X = np.full((1, 1), 0.3, dtype)
    Z = normal_rows(jax.random.key(0), 1, 1, dtype)
    Y = np.asarray([[0.3], [1.3]], dtype)
    phi = kernel_jl(jax.random.key(0), KERNEL, X, num_features=1)
    np.testing.assert_allclose(
        phi(Y), np.asarray(Z) * np.exp([[0], [-1 / (2 * 0.81)]]), rtol=10 * eps(dtype)
    )
    nothing = kernel_jl(jax.random.key(0), KERNEL, X, num_features=1, centered=True)(Y)
    assert not np.asarray(nothing).any()


def test_nothing_is_decomposed():
    """The cost, d n^2 to draw and d n for every point, is a claim."""
    text = str(
        jax.make_jaxpr(lambda key, X: kernel_jl(key, KERNEL, X, num_features=2))(
            jax.random.key(0), ONES
        )
    )
    assert not any(
        name in text for name in ("eigh", "cholesky", "svd", "triangular_solve")
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_features": 0}, "num_features must be at least 1, got 0"),
        ({"centered": 1}, "centered must be True or False"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {
        "key": jax.random.key(0),
        "kernel": KERNEL,
        "landmarks": ONES,
        "num_features": 2,
    } | changes
    with pytest.raises(ValueError, match=message):
        kernel_jl(**arguments)
