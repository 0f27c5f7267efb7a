"""Kernel JL against its literal formula, as a projection of the RKHS, with its cost counted on the program."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps

from jaxkern.draws import normal_rows
from jaxkern.features import KernelJL, kernel_jl
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian, Laplacian, Linear
from jaxkern.rkhs import Covariance, Function, RandomProjection, section
from proofs_check.papers.flops import multiply_adds

N, Q, DIM, D = 12, 7, 3, 5
KERNEL = Gaussian(0.9)


def points(rng, dtype, n=N):
    return jnp.asarray(rng.normal(size=(n, DIM)), dtype)


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


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("kernel", [KERNEL, Laplacian(1.3) + 0.2 * Linear()])
def test_the_map_is_the_literal_formula(kernel, centered, dtype, rng):
    X, Y = points(rng, dtype), points(rng, dtype, Q)
    phi = kernel_jl(jax.random.key(1), kernel, X, num_features=D, centered=centered)
    Z = normal_rows(jax.random.key(1), D, N, dtype)
    K, cross = gram(kernel, X), gram(kernel, Y, X)
    expected = literal(Z, K, cross, centered)
    found = phi(Y)
    assert isinstance(phi, KernelJL) and phi.num_features == D and phi.centered is centered
    assert found.shape == (Q, D) and found.dtype == dtype
    scale = float(jnp.abs(Z).max() * jnp.abs(K).max() * jnp.abs(cross).max()) * N**0.5 / D**0.5
    np.testing.assert_allclose(found, expected, rtol=0, atol=50 * eps(dtype) * scale)
    assert np.abs(expected).max() > 1e3 * 50 * eps("float64") * scale
    if centered:
        mean = phi(X).mean(0)
        np.testing.assert_allclose(mean, np.zeros(D), atol=50 * eps(dtype) * scale)
    else:
        assert (phi.offset == 0).all()


@pytest.mark.parametrize("centered", [False, True])
def test_with_an_identity_for_normals_the_cubed_covariance_is_exact(centered, x64, rng, monkeypatch):
    """d = n and Z = I: n <phi(x), phi(y)> = <K_x, Sigma_n^3 K_y>, for points, functions, and centred ones."""
    import jaxkern.features._sketch as module

    monkeypatch.setattr(module, "normal_rows", lambda key, rows, cols, dtype: jnp.eye(rows, cols, dtype=dtype))
    X, Y = points(rng, "float64"), points(rng, "float64", Q)
    with jax.disable_jit():
        phi = kernel_jl(jax.random.key(0), KERNEL, X, num_features=N, centered=centered)
    Sigma = Covariance(KERNEL, X, centered=centered)
    K_y = section(KERNEL, Y)
    if centered:  # <K_x - mu, Sigma^3 (K_y - mu)>: both arguments less the mean embedding
        weights = jnp.concatenate([jnp.eye(Q), jnp.full((N, Q), -1 / N)])
        K_y = Function(KERNEL, jnp.concatenate([Y, X]), weights)
    expected = Sigma.inner(K_y, K_y, power=3)
    np.testing.assert_allclose(N * phi(Y) @ phi(Y).T, expected, rtol=1e-9, atol=1e-15)
    np.testing.assert_allclose(N * phi.embed(K_y) @ phi.embed(K_y).T, expected, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("centered", [False, True])
def test_inner_products_are_those_of_the_cubed_covariance_in_expectation(centered, rng):
    """4000 independent maps, 5 standard errors on 3 inner products: false alarms below 1e-5 in all.

    The standard error is below 5 % of the quantity, so a wrong factor such as d / (d - 1) = 1.25 shows.
    """
    X, f = points(rng, "float32"), Function(KERNEL, points(rng, "float32", 3), jnp.eye(3, dtype=jnp.float32))
    maps = 4000

    @jax.jit
    @jax.vmap
    def products(key):
        image = kernel_jl(key, KERNEL, X, num_features=D, centered=centered).embed(f)
        return jnp.stack([image[0] @ image[0], image[1] @ image[1], image[0] @ image[2]])

    values = np.float64(products(jax.random.split(jax.random.key(7), maps)))
    exact = np.float64(Covariance(KERNEL, X, centered=centered).inner(f, f, power=3))
    exact = np.array([exact[0, 0], exact[1, 1], exact[0, 2]])
    error = values.std(0) / maps**0.5
    assert (np.abs(values.mean(0) - exact) <= 5 * error).all()
    assert (5 * error[:2] <= 0.1 * exact[:2]).all()


@pytest.mark.parametrize("centered", [False, True])
def test_functions_embed_linearly_and_sections_as_their_points(centered, dtype, rng):
    X, Y = points(rng, dtype), points(rng, dtype, Q)
    phi = kernel_jl(jax.random.key(1), KERNEL, X, num_features=D, centered=centered)
    f, g = (Function(KERNEL, Y, jnp.asarray(rng.normal(size=Q), dtype)) for _ in range(2))
    close = partial(np.testing.assert_allclose, rtol=0, atol=100 * eps(dtype) * float(jnp.abs(phi.projection).sum()))
    assert phi.embed(f).shape == (D,) and phi.embed(f).dtype == dtype
    close(phi.embed(2.0 * f - 3.0 * g), 2 * phi.embed(f) - 3 * phi.embed(g))
    sections = section(KERNEL, Y)
    mean = phi.embed(Covariance(KERNEL, X).mean()) if centered else jnp.zeros(D, dtype)
    close(mean, phi.offset)
    close(phi.embed(sections) - mean[None], phi(Y))


def test_images_are_those_of_the_random_projection_with_the_same_normals(x64, rng):
    """Theta with v_i = Sigma_n^(3/2)-normals from the same numbers is another operator with the same mean square.

    Kernel JL is v_i = S* K Z_i' / (n sqrt n): exactly the directions that draw_gaussian returns for the power three.
    """
    X, f = points(rng, "float64"), Function(KERNEL, points(rng, "float64", Q), jnp.ones(Q))
    for centered in (False, True):
        phi = kernel_jl(jax.random.key(4), KERNEL, X, num_features=D, centered=centered)
        Sigma = Covariance(KERNEL, X, centered=centered)
        Theta = RandomProjection(jax.random.key(4), Sigma, num_features=D)
        np.testing.assert_allclose(Theta(f), phi.embed(f), rtol=1e-9)


def test_a_wider_map_repeats_the_directions_of_a_narrower_one(rng):
    X, Y = points(rng, "float32"), points(rng, "float32", Q)
    for centered in (False, True):
        narrow, wide = (
            kernel_jl(jax.random.key(2), KERNEL, X, num_features=d, centered=centered)(Y) for d in (D, 4 * D)
        )
        np.testing.assert_allclose(2 * wide[:, :D], narrow, rtol=0, atol=1e-6)
        assert np.linalg.matrix_rank(np.asarray(wide), tol=1e-6) > D


def test_one_landmark_and_one_feature(dtype):
    """K = 1: phi(x) = z k(x); centred nothing is left."""
    X = jnp.full((1, 1), 0.3, dtype)
    Z = normal_rows(jax.random.key(0), 1, 1, dtype)
    Y = jnp.asarray([[0.3], [1.3]], dtype)
    phi = kernel_jl(jax.random.key(0), KERNEL, X, num_features=1)
    np.testing.assert_allclose(phi(Y), Z * np.exp([[0], [-1 / (2 * 0.81)]]), rtol=10 * eps(dtype))
    assert (kernel_jl(jax.random.key(0), KERNEL, X, num_features=1, centered=True)(Y) == 0).all()


@pytest.mark.parametrize("centered", [False, True])
def test_the_cost_is_d_n_squared_to_draw_and_d_n_for_every_point(centered):
    """Multiply-adds of the whole program beyond those of the kernel evaluations alone."""
    n, d, q = 300, 20, 5000
    X, Y = jax.ShapeDtypeStruct((n, DIM), jnp.float32), jax.ShapeDtypeStruct((q, DIM), jnp.float32)
    key = jax.eval_shape(lambda: jax.random.key(0))
    draw = partial(kernel_jl, kernel=KERNEL, num_features=d, centered=centered)
    evaluations = multiply_adds(lambda X: gram(KERNEL, X), X)
    beyond = multiply_adds(lambda key, X: draw(key, landmarks=X), key, X) - evaluations
    assert d * n * n <= beyond <= d * n * n + d * n
    phi = jax.eval_shape(lambda key, X: draw(key, landmarks=X), key, X)
    mapped = multiply_adds(lambda phi, Y: phi(Y), phi, Y)
    assert q * d * n <= mapped <= 1.1 * q * d * n  # tiles are padded
    text = str(jax.make_jaxpr(lambda key, X: draw(key, landmarks=X))(key, X))
    assert not any(name in text for name in ("eigh", "cholesky", "svd", "triangular_solve"))


def test_copies_among_landmarks_and_points_far_away_are_no_trouble(rng):
    X = points(rng, "float32")
    X = jnp.concatenate([X, X]) + 1000
    for centered in (False, True):
        phi = kernel_jl(jax.random.key(1), KERNEL, X, num_features=D, centered=centered)
        assert np.isfinite(phi(X)).all()
        np.testing.assert_allclose(phi(X[:N]), phi(X[N:]), rtol=0, atol=1e-6)
        far = phi(X + 1e6)
        np.testing.assert_allclose(far, jnp.broadcast_to(-phi.offset, far.shape), rtol=0, atol=1e-7)


ONES = np.ones((5, 2), np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"key": np.zeros(2, np.uint32)}, "key must be a typed random key"),
        ({"key": 0}, "key must be a typed random key, got int"),
        ({"kernel": None}, "kernel must be a kernel"),
        ({"landmarks": ONES[0]}, "landmarks must have rank 2"),
        ({"landmarks": ONES[None]}, "landmarks must have rank 2"),
        ({"landmarks": ONES[:0]}, "landmarks must have at least 1 row"),
        ({"landmarks": ONES.astype(int)}, "landmarks must have dtype float32 or float64"),
        ({"num_features": 0}, "num_features must be at least 1, got 0"),
        ({"num_features": 2.0}, "num_features must be a static whole number"),
        ({"centered": 1}, "centered must be True or False"),
    ],
)
def test_bad_arguments_are_refused_by_name(changes, message):
    arguments = {"key": jax.random.key(0), "kernel": KERNEL, "landmarks": ONES, "num_features": 2} | changes
    with pytest.raises(ValueError, match=message):
        kernel_jl(**arguments)


def test_functions_of_another_kernel_are_refused():
    phi = kernel_jl(jax.random.key(0), KERNEL, ONES, num_features=2)
    with pytest.raises(ValueError, match="f must belong to the same kernel"):
        phi.embed(Function(Laplacian(0.9), ONES, ONES[:, 0]))
    with pytest.raises(ValueError, match="f must be a Function"):
        phi.embed(ONES)


def test_keys_in_a_batch_are_refused():
    with pytest.raises(ValueError, match=r"key must be a single key, got keys of shape \(3,\); vmap over the keys"):
        kernel_jl(jax.random.split(jax.random.key(0), 3), KERNEL, ONES, num_features=2)
