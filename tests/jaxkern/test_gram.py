"""Gram matrices, tiled products, centring and the kernel distance: exact identities, precision and memory."""

import math
from decimal import Decimal, localcontext
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.drawn import VALUES
from support.jaxprs import equations, largest_intermediate
from support.numerics import eps

from jaxkern._distances import squared_distances
from jaxkern.gram import (
    _terms,
    _tile_side,
    _tile_sides,
    center,
    gram,
    gram_matmul,
    kernel_distance,
    rounding,
)
from jaxkern.kernels import (
    Cauchy,
    Distance,
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    quantile_lengthscale,
)

N, M, DIM = 13, 7, 3
STATIONARY = [Gaussian, Laplacian, Exponential, Cauchy, Matern32, Matern52]


def points(rng, dtype, n=N, dim=DIM):
    return jnp.asarray(rng.normal(size=(n, dim)), dtype)


def test_the_diagonal_is_exact_whichever_way_the_points_are_passed_twice(dtype, rng):
    """Also far from the origin, where products of coordinates know squared distances to 0.1 only."""
    data = np.asarray(rng.normal(size=(N, DIM)) + 1000, dtype)
    for X in (data, jnp.asarray(data)):
        for K in (
            gram(Gaussian(0.01), X),
            gram(Gaussian(0.01), X, X),
            gram(Gaussian(0.01), X, None),
        ):
            assert (np.diag(K) == 1).all()
        product = gram_matmul(
            Gaussian(0.01), X, X, jnp.eye(N, dtype=dtype), block_size=5
        )
        assert (np.diag(product) == 1).all()


def scattered(rng, dim, n=16):
    """Yield points on which products of coordinates lose what a kernel needs, with a lengthscale of 1."""
    plain = rng.normal(size=(n, dim)) / math.sqrt(dim)
    for far in (1e2, 1e4, 1e7):
        for step in (np.eye(1, dim), np.ones((1, dim))):
            yield plain + far * step * (np.arange(n) >= n // 2)[:, None]  # two clusters
        yield np.concatenate([far * plain[:1], plain[1:]])  # an outlier
        yield plain + far
    yield plain
    yield plain[:, :1] * np.full((1, dim), 1.2345678)
    yield plain * np.logspace(-6, 6, dim)


@pytest.mark.parametrize(
    ("family", "dim"),
    [  # by default all ways to take distances with two families alone
        pytest.param(
            family,
            dim,
            marks=[pytest.mark.slow]
            * (dim != 12 and family not in (Gaussian, Exponential)),
        )
        for family, dim in [
            (family, dim) for family in STATIONARY for dim in (2, 12, 150)
        ]
    ],
)
def test_values_are_within_their_bound_of_exact_for_any_points(family, dim, dtype, rng):
    """Direct differences, one product, and a product in two parts; copies are exactly 1."""
    limit = 1e-5 if dtype == "float32" else 1e-11
    for X in scattered(rng, dim):
        X = np.asarray(X, dtype)
        X[1], X[-1] = X[0], X[-2]
        for lengthscale in (0.1, 1.0, 30.0):
            kernel = family(jnp.asarray(lengthscale, dtype))
            K, bound = gram(kernel, X), float(rounding(kernel, X))
            U = (X.astype(np.longdouble)[:, None] - X) / np.longdouble(
                kernel.lengthscale
            )
            error = np.abs(
                np.asarray(K, np.longdouble) - VALUES[family.__name__](U)
            ).max()
            assert error <= bound <= limit
            assert K[0, 1] == K[-1, -2] == 1
            if family is Gaussian or dim == 12:  # tiles are made of values in one way
                V = np.eye(len(X), 2, dtype=dtype)
                product = gram_matmul(kernel, X, None, V, block_size=7)
                assert (
                    np.abs(np.float64(product) - np.float64(K)[:, :2]).max()
                    <= 2 * limit
                )


@pytest.mark.parametrize("family", [Gaussian, Exponential, Laplacian])
def test_values_of_a_hundred_thousand_columns_are_within_the_bound(family):
    """Equal differences are rounded to the same side in a plain sum, which is off by 1e-4 then."""
    dim = 100_000
    X = np.zeros((3, dim), np.float32)
    X[1] = 0.37
    X[2] = np.linspace(0, 1, dim)
    lengthscale = dim if family is Laplacian else dim**0.5
    kernel = family(np.float32(0.3 * lengthscale))
    U = (X.astype(np.longdouble)[:, None] - X) / np.longdouble(kernel.lengthscale)
    error = np.abs(np.asarray(gram(kernel, X)) - VALUES[family.__name__](U)).max()
    assert error <= float(rounding(kernel, X)) <= 1e-5


def test_a_batch_takes_one_branch_and_far_points_keep_their_gradients(rng):
    """A condition on a batch of booleans would run both branches; here one set of points decides for all."""
    X = (
        rng.normal(size=(2, 20, 12)).astype("float32") / 4
    )  # so close that products would serve the first set
    X[1, 10:] += 1e4
    kernels = jax.vmap(Gaussian)(np.array([2.0, 3.0], "float32"))
    for f, arguments in (
        (jax.vmap(gram), (kernels, X)),
        (jax.vmap(jax.vmap(gram, (0, None)), (None, 0)), (kernels, X)),
    ):
        found = [
            equation
            for equation in equations(jax.make_jaxpr(f)(*arguments))
            if equation.primitive.name == "cond"
        ]
        assert len(found) == 1 and found[0].invars[0].aval.shape == ()

    weights = rng.normal(size=(20, 20))

    def total(points, lengthscale):
        return (
            gram(Gaussian(lengthscale), points) * jnp.asarray(weights, points.dtype)
        ).sum()

    slopes = jax.jit(jax.vmap(jax.grad(total, (0, 1)), (0, None)))(X, np.float32(1))
    for points, *slope in zip(np.float64(X), *slopes, strict=True):
        moves = points[:, None] - points
        parts = weights * np.exp(-(moves**2).sum(axis=2) / 2)
        exact = (
            -((parts + parts.T)[..., None] * moves).sum(axis=1),
            (parts * (moves**2).sum(axis=2)).sum(),
        )
        for found, expected in zip(slope, exact, strict=True):
            np.testing.assert_allclose(
                found, expected, rtol=0, atol=1e-5 * (1 + np.abs(expected).max())
            )


def test_the_bound_of_rounding_follows_sums_and_products_of_kernels(dtype, rng):
    X = points(rng, dtype, dim=12)
    first, second = (float(rounding(kernel, X)) for kernel in (Gaussian(1.0), Linear()))
    assert (
        first + second
        < rounding(Gaussian(1.0) * Linear(), X)
        < first + second + 2 * eps(dtype)
    )
    assert (
        max(first, second)
        < rounding(Gaussian(1.0) + Linear(), X)
        <= max(first, second) + 2 * eps(dtype)
    )
    assert first < rounding(3 * Gaussian(1.0), X) <= first + 2 * eps(dtype)
    for kernel in (
        Linear(),
        Polynomial(3, 1.0, 2.0),
        Gaussian(1.0) * Polynomial(2),
        2 * Linear() + Matern32(1.0),
    ):
        with jax.enable_x64(True):
            exact = np.asarray(gram(kernel, np.float64(X)))
        scale = np.sqrt(np.outer(np.diag(exact), np.diag(exact)))
        assert (
            np.abs(np.float64(gram(kernel, X)) - exact).max()
            <= float(rounding(kernel, X)) * scale.max()
        )
    for kernel in (Distance(), lambda x, y: jnp.sum(x * y)):
        with pytest.raises(ValueError, match="is not known; pass a built-in"):
            rounding(kernel, X)


def test_a_common_offset_costs_no_digits(rng):
    """On a grid that float32 holds with and without the offset the Gram matrix is the same; uncentred it would not be.

    The control is the product form without centring, in NumPy.
    """
    grid = np.round(rng.normal(size=(N, DIM)) * 512) / 512
    near, far = np.float32(grid), np.float32(grid + 1024)
    assert np.array_equal(np.float64(far) - 1024, grid)
    for family in (Gaussian, Matern32, Matern52):
        expected = np.float64(gram(family(0.5), near))
        for K in (gram(family(0.5), far), gram(family(0.5), far, far + 0)):
            np.testing.assert_allclose(K, expected, rtol=0, atol=100 * eps("float32"))
    squares = (far**2).sum(1)
    uncentred = squares[:, None] + squares[None] - 2 * far @ far.T
    expected = ((grid[:, None] - grid[None]) ** 2).sum(-1)
    assert np.abs(uncentred - expected).max() > 0.05


def test_copies_have_equal_rows_although_means_are_rounded(dtype):
    """The mean of five ones is a sum times 0.2: fused into the subtraction, it would differ from lane to lane."""
    for n in (5, 13):
        X = jnp.full((n, 1), 1000.1, dtype)
        assert (
            jax.jit(lambda X: squared_distances(X, X, jnp.ones((), dtype)))(X) == 0
        ).all()
        assert (gram(Gaussian(1e-8), X, X + 0) == 1).all()


def singular(x, y):
    """A user's kernel that is not defined at the origin: padding with zeros would show."""
    return 1 / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


@pytest.mark.parametrize(
    "kernel", [Gaussian(0.8), Exponential(0.8) + Cauchy(0.9) * Linear(), singular]
)
def test_tiled_products_are_the_dense_product_for_every_block_size(kernel, dtype, rng):
    X, Y, V = (
        points(rng, dtype),
        points(rng, dtype, n=M),
        points(rng, dtype, n=M, dim=2),
    )
    W = points(rng, dtype, dim=2)
    dense = np.float64(gram(kernel, X, Y)) @ np.float64(V)
    dense_self = np.float64(gram(kernel, X)) @ np.float64(W)
    scale = np.abs(gram(kernel, X)).max()
    tolerance = 50 * N * eps(dtype) * scale * (1 + (np.asarray(X) ** 2).sum(1).max())
    for block_size in (None, 1, 4):
        product = gram_matmul(kernel, X, Y, V, block_size=block_size)
        assert product.shape == (N, 2) and product.dtype == dtype
        np.testing.assert_allclose(product, dense, rtol=0, atol=tolerance)
    for same, block_size in ((None, 5), (X, 100)):
        product = gram_matmul(kernel, X, same, W, block_size=block_size)
        np.testing.assert_allclose(product, dense_self, rtol=0, atol=tolerance)
    vector = gram_matmul(kernel, X, Y, np.asarray(V)[:, 0], block_size=4)
    assert vector.shape == (N,)
    np.testing.assert_allclose(vector, dense[:, 0], rtol=0, atol=tolerance)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Matern52(1.0) * 2.0 + Linear()])
def test_products_never_hold_the_gram_matrix(kernel):
    n, tall, width, tile = 5000, 40_000, 2, _tile_side() ** 2
    X, V = jnp.zeros((n, DIM)), jnp.zeros((n, width))
    run = partial(gram_matmul, kernel)
    assert (
        largest_intermediate(lambda X: gram(kernel, X), X) == n * n
    )  # the walk sees what there is to see
    assert largest_intermediate(run, X, None, V) <= tile
    assert largest_intermediate(partial(run, block_size=64), X, None, V) <= max(
        64 * 64, (n + 64) * DIM
    )
    assert largest_intermediate(run, jnp.zeros((tall, DIM)), X[:300], V[:300]) <= tile
    gradient = jax.grad(lambda X: run(X, None, V, block_size=500).sum())
    assert largest_intermediate(gradient, X) <= max(500 * 500, (n + 500) * DIM)


@pytest.mark.parametrize(
    ("platform", "given", "side"),
    [
        ("cpu", "", 1024),
        ("gpu", "", 4096),
        ("tpu", "", 4096),
        ("another", "", 1024),
        ("gpu", "512", 512),
    ],
)
def test_tiles_are_those_of_the_platform_or_of_the_user_and_never_larger(
    platform, given, side, monkeypatch
):
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setenv("JAXKERN_TILE_SIDE", given)
    share = 4 if platform in ("cpu", "another") else 1
    assert _tile_side() == side
    for n, m in (
        (10**5, 10**5),
        (10**5, 2 * side),
        (10**5, 20),
        (7, 10**5),
        (side, side),
    ):
        rows, cols = _tile_sides(n, m, None)
        assert (
            rows * cols <= side * side
            and cols <= 2 * side
            and rows <= max(side, side * side // share // m)
        )
    assert 0.9 < _tile_sides(10**6, side // 8, None)[0] * share / (8 * side) <= 1
    assert _tile_sides(10**5, 10**5, None)[0] > 0.9 * side and _tile_sides(
        10**5, 10**5, 300
    ) == (300, 300)
    X = jax.ShapeDtypeStruct((10**5, 3), "float32")
    assert _terms(X, X, None) == sum(
        -(-(10**5) // k) for k in (-(-(10**5) // side), side)
    )
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv("JAXKERN_TILE_SIDE", wrong)
        with pytest.raises(
            ValueError,
            match=f"JAXKERN_TILE_SIDE must be a whole number of at least 1, got '{wrong}'",
        ):
            _tile_side()


@pytest.mark.parametrize("family", [Laplacian, Exponential, Cauchy])
def test_direct_differences_are_never_stored(family):
    """Differences of a tile have dim times its size: compiled programs reduce them on the fly."""
    n, dim, block = 256, 50, 64
    X, V = jnp.zeros((n, dim), jnp.float32), jnp.zeros((n, 1), jnp.float32)
    program = jax.jit(
        lambda X, V: gram_matmul(family(1.0), X, None, V, block_size=block)
    )
    held = program.lower(X, V).compile().memory_analysis().temp_size_in_bytes
    assert held <= 4 * (6 * block * block + 4 * X.size)


@pytest.mark.parametrize(
    ("function", "columns", "slices"),
    [
        (
            lambda X: gram_matmul(Gaussian(1.0), X, X[:1200], X[:1200], block_size=512),
            400,
            0,
        ),
        (quantile_lengthscale, 512, 1),  # one slice, that of the rows, costs nothing
    ],
    ids=["product", "quantile"],
)
def test_columns_of_a_tile_are_not_cut_out_entry_by_entry(function, columns, slices):
    """A slice of the columns among the operations of a tile takes five times as long."""
    program = jax.jit(function).lower(jnp.zeros((2048, 3), jnp.float32))
    computations = program.compile().as_text().split("\n\n")
    difference = f"f32[512,{columns}]{{1,0}} subtract("
    tiles = [text for text in computations if difference in text]
    assert tiles
    for text in tiles:
        assert text.count(f"f32[1,{columns},3]{{2,1,0}} dynamic-slice(") == slices


@pytest.mark.parametrize("dim", [DIM, 40])
def test_products_have_the_derivatives_of_sums_over_pairs(dim, x64, rng):
    """Of first and second order, by direct differences and by matrix products."""
    X, V, weights = (
        points(rng, "float64", dim=dim),
        points(rng, "float64", dim=2),
        points(rng, "float64", dim=2),
    )

    def dense(kernel, X, V):
        squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        return jnp.sum(weights * (jnp.exp(-squares / (2 * kernel.lengthscale**2)) @ V))

    def tiled(kernel, X, V):
        return jnp.sum(weights * gram_matmul(kernel, X, None, V, block_size=5))

    def derivatives(f, *arguments):
        slope = jax.grad(f, (0, 1, 2))
        return jax.tree.leaves(
            jax.jvp(slope, arguments, jax.tree.map(jnp.cos, arguments))
        )

    found = (
        jax.jit(partial(derivatives, f))(Gaussian(jnp.asarray(dim**0.5)), X, V)
        for f in (dense, tiled)
    )
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_centring_is_multiplication_by_the_projection(dtype, rng):
    K = np.asarray(
        rng.normal(size=(N, N)), dtype
    )  # not symmetric: rows and columns are told apart
    H = np.eye(N) - 1 / N
    centred = center(K)
    assert centred.dtype == dtype
    np.testing.assert_allclose(
        centred, H @ np.float64(K) @ H, atol=10 * eps(dtype) * np.abs(K).max()
    )
    np.testing.assert_allclose(
        center(centred), centred, atol=10 * eps(dtype) * np.abs(K).max()
    )
    np.testing.assert_allclose(
        center(K + 3), centred, atol=10 * eps(dtype) * (3 + np.abs(K).max())
    )


def stationary(name):
    return lambda x, y, s: VALUES[name]((x - y) / s)


EXACT = {
    **{family.__name__: (family, stationary(family.__name__)) for family in STATIONARY},
    "linear": (lambda s: Linear(), lambda x, y, s: x @ y),
    "polynomial": (
        lambda s: Polynomial(3, 0.5, s),
        lambda x, y, s: (x @ y / s**2 + Decimal("0.5")) ** 3,
    ),
    "sum": (
        lambda s: 2.0 * Gaussian(s) + Matern32(s),
        lambda x, y, s: (
            2 * stationary("Gaussian")(x, y, s) + stationary("Matern32")(x, y, s)
        ),
    ),
    "product": (
        lambda s: Laplacian(s) * Cauchy(s),
        lambda x, y, s: (
            stationary("Laplacian")(x, y, s) * stationary("Cauchy")(x, y, s)
        ),
    ),
}


def exact_distance(function, x, y, scale):
    """The kernel distance with 60 digits, at the very numbers that were passed."""
    with localcontext() as context:
        context.prec = 60
        x, y, s = (
            np.vectorize(Decimal, otypes=[object])(np.float64(v)) for v in (x, y, scale)
        )
        return float(
            (function(x, x, s) + function(y, y, s) - 2 * function(x, y, s)).sqrt()
        )


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("offset", [0, 1024])
def test_kernel_distance_keeps_its_digits_at_tiny_distances(name, offset, rng):
    """Relative error below 1e-5 in float32 at |x - y| / lengthscale from 3 down to 1e-6, near and far from the origin.

    Points are multiples of 2^-13, which float32 holds at the offset, too; the lengthscale makes the ratio.
    """
    make, function = EXACT[name]
    step = 2.0**-13
    base = np.round(rng.normal(size=(4, DIM)) / step) * step + offset
    moves = rng.integers(-40, 40, size=(4, DIM)) * step
    X, Y = np.float32(base), np.float32(base + moves)
    assert np.array_equal(np.float64(Y) - np.float64(X), moves)
    distance = jax.jit(kernel_distance)
    for ratio in (3.0, 1e-2, 1e-4, 1e-6):
        scale = np.float32(np.linalg.norm(moves[0]) / ratio)
        expected = [
            exact_distance(function, x, y, scale) for x, y in zip(X, Y, strict=True)
        ]
        found = distance(make(jnp.float32(scale)), X, Y)
        assert found.dtype == jnp.float32
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_subtracting_values_would_lose_all_digits(rng):
    """The control: a user's function has no series, and says so in the documentation."""
    X = jnp.zeros((1, DIM))
    Y = X.at[0, 0].set(1e-5)
    naive = kernel_distance(lambda x, y: jnp.exp(-jnp.sum((x - y) ** 2) / 2), X, Y)
    assert (
        float(naive[0]) == 0
        and float(kernel_distance(Gaussian(1.0), X, Y)[0]) > 0.99e-5
    )


def test_kernel_distance_is_the_quadratic_form_of_the_gram_matrix(x64, rng):
    """Of products of kernels of every sort, and of their sums."""
    X, Y = points(rng, "float64"), points(rng, "float64")
    for kernel in (
        Gaussian(0.9) * Linear() + 0.5 * Polynomial(2),
        Exponential(0.9) * Cauchy(2.0) * Linear(),
    ):
        K = np.asarray(gram(kernel, np.concatenate([X, Y])))
        squares = np.diag(K)[:N] + np.diag(K)[N:] - 2 * np.diag(K[:N, N:])
        np.testing.assert_allclose(
            kernel_distance(kernel, X, Y) ** 2, squares, rtol=1e-10, atol=1e-12
        )


def test_kernel_distance_of_coincident_points_is_zero_with_zero_gradient(dtype, rng):
    X = points(rng, dtype)
    for family in STATIONARY:
        total = jax.jit(
            jax.value_and_grad(lambda *args: kernel_distance(*args).sum(), (0, 1, 2))
        )
        value, gradient = total(family(jnp.asarray(0.8, dtype)), X, X)
        assert float(value) == 0
        assert all((np.asarray(leaf) == 0).all() for leaf in jax.tree.leaves(gradient))


def test_kernels_without_a_distance_are_refused():
    X = jnp.zeros((2, DIM))
    for kernel in (
        Distance(),
        2 * Distance(),
        Distance() + Gaussian(1.0),
        Gaussian(1.0) * Distance(),
    ):
        with pytest.raises(
            ValueError,
            match="kernel must be positive semidefinite to have a kernel distance",
        ):
            kernel_distance(kernel, X, X)


ONES = np.ones((5, 2), np.float32)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"X": ONES[0]},
            r"X must have rank 2, \(points, dimensions\), got shape \(2,\)",
        ),
        ({"Y": ONES[0]}, "Y must have rank 2"),
        ({"Y": ONES[:, :1]}, "Y must have 2 columns"),
        ({"Y": ONES[:0]}, "Y must have at least 1 row"),
        ({"Y": np.ones((5, 2), bool)}, "Y must have dtype"),
    ],
)
def test_bad_points_are_refused_by_name_eagerly_and_under_jit(changes, message):
    arguments = {"X": ONES, "Y": ONES + 1} | changes
    for function in (gram, kernel_distance):
        with pytest.raises(ValueError, match=message):
            function(Gaussian(1.0), **arguments)
        with pytest.raises(ValueError, match=message):
            jax.jit(partial(function, Gaussian(1.0)))(**arguments)
    with pytest.raises(ValueError, match=message):
        gram_matmul(Gaussian(1.0), **arguments, V=ONES)


def test_two_dtypes_are_refused_by_name(x64):
    wide = ONES.astype(np.float64)
    for function in (gram, kernel_distance):
        with pytest.raises(
            ValueError,
            match="Y must have the dtype of X, float32, got float64; convert one of them",
        ):
            function(Gaussian(1.0), ONES, wide)
    with pytest.raises(ValueError, match="V must have the dtype of X"):
        gram_matmul(Gaussian(1.0), ONES, None, wide)


def test_bad_factors_and_blocks_are_refused_by_name():
    for V in (ONES[:4], ONES[None], np.float32(1)):
        with pytest.raises(ValueError, match=r"V must have shape \(5,\) or \(5, r\)"):
            gram_matmul(Gaussian(1.0), ONES, None, V)
    for block_size in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="block_size must be"):
            gram_matmul(Gaussian(1.0), ONES, None, ONES, block_size=block_size)
    with pytest.raises(
        ValueError, match=r"Y must have the shape of X, \(5, 2\), got \(4, 2\)"
    ):
        kernel_distance(Gaussian(1.0), ONES, ONES[:4])
    for K in (ONES, ONES[:0, :0], ONES[0], np.ones((2, 2), int)):
        with pytest.raises(ValueError, match="K must"):
            center(K)
