"""Gram matrices, tiled products, centring and the kernel distance: bounds of rounding, exact identities and memory."""

import itertools
import math
from decimal import Decimal, localcontext
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.drawn import VALUES
from support.jaxprs import equations, largest_intermediate

from jaxkern import kernels
from jaxkern.gram import center, gram, gram_matmul, kernel_distance, rounding
from jaxkern.kernels import (
    Cauchy,
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    quantile_lengthscale,
)

ROWS = house.USUAL[0]
FEW = 3
"""Up to 8 dimensions differences are taken directly."""
PRODUCT = 12
"""From 9 on, squared distances come from one matrix product where that is accurate, and from differences elsewhere."""
BLOCKS = 150
"""From 33 on, from several products of 32 columns at most."""
LIMITS = {"float32": 1e-5, "float64": 1e-11}
"""What `rounding` promises for stationary kernels."""
double = pytest.mark.float64


def literal_gram(X, Y):
    """Return the Gram matrix of `house.KERNEL` by its formula."""
    return VALUES["Gaussian"]((np.float64(X)[:, None] - Y) / house.LENGTHSCALE)


def scattered(dim):
    """Yield points on which products of coordinates lose what a kernel needs, with a lengthscale of 1."""
    plain = house.rng(dim).normal(size=(ROWS, dim)) / math.sqrt(dim)
    second_half = (np.arange(ROWS) >= ROWS // 2)[:, None]
    for far in (1e2, 1e4, 1e7):
        yield plain + far * np.eye(1, dim) * second_half
        yield plain + far * np.ones((1, dim)) * second_half
        yield np.concatenate([far * plain[:1], plain[1:]])  # an outlier
        yield plain + far
    yield plain
    yield plain[:, :1] * np.full((1, dim), 1.2345678)
    yield plain * np.logspace(-6, 6, dim)
    # A mean of equal rows is rounded; if it were fused into a subtraction, copies would differ.
    yield np.full((ROWS, dim), 1000.1)


@jax.jit
def value_and_bound(kernel, X):
    return gram(kernel, X), rounding(kernel, X)


@jax.jit
def values_and_bounds(stationary, X):
    V = np.eye(ROWS, 2, dtype=X.dtype)
    results = [value_and_bound(kernel, X) for kernel in stationary]
    return results, gram_matmul(stationary[0], X, None, V, block_size=7)


@pytest.mark.parametrize(
    ("dim", "names"),
    [
        pytest.param(FEW, ["Gaussian"], id="few"),
        pytest.param(PRODUCT, list(VALUES), id="product"),
        pytest.param(PRODUCT, list(VALUES), marks=double, id="product in float64"),
        pytest.param(BLOCKS, ["Gaussian", "Exponential"], id="blocks"),
    ],
)
def test_values_are_within_their_bound_of_exact_for_any_points(dim, names):
    """Copies are exactly 1, and nothing exceeds 1, next to copies neither; tiles are made of the same values."""
    dtype = house.dtype()
    limit = LIMITS[dtype.name]
    for points, scale in itertools.product(scattered(dim), (0.1, 1.0, 30.0)):
        X = points.astype(dtype)
        X[1] = X[0]
        X[-1] = X[-2]
        X[2] = X[0] * (1 + 2 * house.eps())
        lengthscale = dtype.type(scale)
        stationary = [getattr(kernels, name)(lengthscale) for name in names]
        results, product = jax.device_get(values_and_bounds(stationary, X))
        U = X.astype(np.longdouble)[:, None] - X
        copies = ~U.any(axis=2)
        for name, (K, bound) in zip(names, results, strict=True):
            exact = VALUES[name](U / np.longdouble(lengthscale))
            assert np.abs(K - exact).max() <= bound <= limit
            assert (K[copies] == 1).all()
            assert 0 <= np.min(K) <= np.max(K) <= 1
        assert np.abs(product - results[0][0][:, :2]).max() <= 2 * limit


@pytest.mark.parametrize(
    "family", [Gaussian, Laplacian, pytest.param(Gaussian, marks=double)]
)
def test_values_of_a_hundred_thousand_columns_are_within_the_bound(family):
    """Equal differences are rounded to the same side in a plain sum, which is off by 1e-4 in float32 then.

    In float64 the products of the Gaussian kernel serve, which are a loop for so many columns.
    """
    dim = 100_000
    dtype = house.dtype()
    X = np.zeros((3, dim), dtype)
    X[1] = 0.37
    X[2] = np.linspace(0, 1, dim)
    reach = dim if family is Laplacian else dim**0.5
    kernel = family(dtype.type(0.3 * reach))
    U = (X.astype(np.longdouble)[:, None] - X) / np.longdouble(kernel.lengthscale)
    K, bound = jax.device_get(value_and_bound(kernel, X))
    error = np.abs(K - VALUES[family.__name__](U)).max()
    assert error <= bound <= LIMITS[dtype.name]


def test_a_batch_takes_one_branch_and_far_points_keep_their_gradients():
    """A condition on a batch of booleans would run both branches; here one set of points decides for all."""
    rng = house.rng()
    dtype = house.dtype()
    X = rng.normal(size=(2, ROWS, PRODUCT)) / 4  # so close that products would serve
    X[1, ROWS // 2 :] += 1e4
    X = X.astype(dtype)
    stack = jax.vmap(Gaussian)(np.asarray([2.0, 3.0], dtype))
    over_both = jax.vmap(jax.vmap(gram, (0, None)), (None, 0))
    jaxpr = jax.make_jaxpr(over_both)(stack, X)
    choices = [e for e in equations(jaxpr) if e.primitive.name == "cond"]
    assert [choice.invars[0].aval.shape for choice in choices] == [()]

    weights = rng.normal(size=(ROWS, ROWS))

    def total(points, lengthscale):
        return (gram(Gaussian(lengthscale), points) * weights.astype(dtype)).sum()

    gradients = jax.jit(jax.vmap(jax.grad(total, (0, 1)), (0, None)))
    slopes, rates = gradients(X, dtype.type(1))
    for points, slope, rate in zip(np.float64(X), slopes, rates, strict=True):
        moves = points[:, None] - points
        squares = (moves**2).sum(axis=2)
        parts = weights * np.exp(-squares / 2)
        exact = -((parts + parts.T)[..., None] * moves).sum(axis=1)
        tolerance = 100 * house.eps() * (1 + np.abs(exact).max())
        np.testing.assert_allclose(slope, exact, rtol=0, atol=tolerance)
        exact = (parts * squares).sum()
        tolerance = 100 * house.eps() * (1 + np.abs(exact))
        np.testing.assert_allclose(rate, exact, rtol=0, atol=tolerance)


def test_bounds_follow_sums_products_and_multiples_of_kernels():
    X = house.data().X
    half = house.eps() / 2
    dim = X.shape[1]
    cubic = Polynomial(3, 1.0, 2.0)
    composed = {
        "gaussian": house.KERNEL,
        "linear": Linear(),
        "cubic": cubic,
        "product": house.KERNEL * Linear(),
        "sum": house.KERNEL + Linear(),
        "multiple": 3 * house.KERNEL,
    }
    bounds = jax.jit(lambda X: {name: rounding(k, X) for name, k in composed.items()})(
        X
    )
    bounds = {name: float(bound) for name, bound in bounds.items()}
    first = bounds["gaussian"]
    second = bounds["linear"]
    last = 2 * house.eps()  # of the operation that joins them
    assert second == pytest.approx(dim * half)
    assert bounds["cubic"] == pytest.approx(3 * (dim + 4) * half, rel=1e-3)
    assert first + second < bounds["product"] < first + second + last
    assert max(first, second) < bounds["sum"] <= max(first, second) + last
    assert first < bounds["multiple"] <= first + last
    linear = np.float64(X) @ np.float64(X).T
    for kernel, exact in ((Linear(), linear), (cubic, (linear / 4 + 1) ** 3)):
        error = np.abs(gram(kernel, X) - exact).max()
        assert error <= float(rounding(kernel, X)) * np.diag(exact).max()


def test_bounds_of_products_take_the_steepest_slope_of_the_profile():
    """Of slope c the bound is c A + sqrt(c) B + 4 halves of eps: two kernels give A and B, which hold for a third."""
    X = house.data(shape=(ROWS, 8, PRODUCT)).X
    steepest = {}
    for name in ("Gaussian", "Matern32", "Matern52"):
        s = np.array([1e-6, 1.1e-6])  # profiles of squared distances are convex
        values = VALUES[name](np.sqrt(s)[:, None])
        steepest[name] = -np.diff(values)[0] / np.diff(s)[0]

    @jax.jit
    def bounds_of(X):
        # Points are so close in units of 20 that products serve in float32, too.
        return [rounding(getattr(kernels, name)(20.0), X) for name in steepest]

    terms = np.float64(bounds_of(X)) / (house.eps() / 2) - 4
    slopes = np.array(list(steepest.values()))
    design = np.stack([slopes, np.sqrt(slopes)], axis=1)
    coefficients = np.linalg.solve(design[:2], terms[:2])
    assert (coefficients > 0).all()
    assert design[2] @ coefficients == pytest.approx(terms[2], rel=1e-2)


def test_a_common_offset_costs_no_digits():
    """On a grid that float32 holds with and without the offset; the control is a product without centring, in NumPy."""
    grid = np.round(house.rng().normal(size=(ROWS, PRODUCT)) * 512) / 512
    near = grid.astype(house.dtype())
    far = near + near.dtype.type(1024)
    assert np.array_equal(np.float64(far) - 1024, grid)
    K = gram(house.KERNEL, near, near + 0)
    shifted = gram(house.KERNEL, far, far + 0)
    assert (np.diag(shifted) == 1).all()
    np.testing.assert_allclose(shifted, K, rtol=0, atol=100 * house.eps())
    single = np.float32(far)
    squares = (single**2).sum(axis=1)
    uncentred = squares[:, None] + squares - 2 * single @ single.T
    exact = ((grid[:, None] - grid) ** 2).sum(axis=2)
    assert np.abs(uncentred - exact).max() > 0.05


@pytest.mark.parametrize("block_size", [None, 1, 5, 100])
@pytest.mark.parametrize("family", house.FAMILIES)
def test_products_are_the_dense_product_for_every_block_size(family, block_size):
    """5 divides neither the rows nor the columns; the diagonal is exactly 1 in tiles, far from the origin, too."""
    data = house.data(family)
    V = data.values
    tolerance = 50 * ROWS * house.eps()
    product = gram_matmul(house.KERNEL, data.X, data.Y, V, block_size=block_size)
    exact = literal_gram(data.X, data.Y) @ V
    np.testing.assert_allclose(product, exact, rtol=0, atol=tolerance)
    product = gram_matmul(house.KERNEL, data.X, None, V, block_size=block_size)
    exact = literal_gram(data.X, data.X) @ V
    np.testing.assert_allclose(product, exact, rtol=0, atol=tolerance)
    columns = np.eye(ROWS, 2, dtype=V.dtype)
    K = gram_matmul(house.KERNEL, data.X, data.X, columns, block_size=block_size)
    assert K[0, 0] == K[1, 1] == 1


def singular(x, y):
    """A user's kernel that is not defined at the origin: padding with zeros would show."""
    return 1 / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def test_products_take_vectors_and_fill_tiles_up_with_copies():
    data = house.data()
    v = data.values[:, 0]
    tolerance = 50 * ROWS * house.eps()
    product = gram_matmul(house.KERNEL, data.X, data.Y, v, block_size=5)
    exact = literal_gram(data.X, data.Y) @ v
    np.testing.assert_allclose(product, exact, rtol=0, atol=tolerance)
    product = gram_matmul(singular, data.X, data.Y, v, block_size=5)
    first = 1 / np.linalg.norm(np.float64(data.X), axis=1)
    second = 1 / np.linalg.norm(np.float64(data.Y), axis=1)
    tolerance *= first.max() * second.max()
    exact = first * (second @ v)
    np.testing.assert_allclose(product, exact, rtol=0, atol=tolerance)
    # All landmarks are in one tile and the rows in three: what comes of blocks of rows is written in place.
    size = len(data.landmarks)
    product = gram_matmul(
        house.KERNEL, data.X, data.landmarks, v[:size], block_size=size
    )
    exact = literal_gram(data.X, data.landmarks) @ v[:size]
    np.testing.assert_allclose(product, exact, rtol=0, atol=ROWS * house.eps())


@pytest.mark.parametrize("kernel", [house.KERNEL, Matern52(1.0) * 2.0 + Linear()])
def test_products_never_hold_the_gram_matrix(kernel, monkeypatch):
    """Programs are traced for thousands of rows, several tiles a side, and never run."""
    monkeypatch.setenv("JAXKERN_TILE_SIDE", "1024")
    tile = 1024**2
    n = 5000
    X = jnp.zeros((n, 3))
    V = jnp.zeros((n, 2))
    tall = jnp.zeros((40_000, 3))
    run = partial(gram_matmul, kernel)
    # The walk sees what there is to see.
    assert largest_intermediate(partial(gram, kernel), X) == n * n
    assert largest_intermediate(run, X, None, V) <= tile
    assert largest_intermediate(run, tall, X[:300], V[:300]) <= tile
    small = partial(run, block_size=64)
    assert largest_intermediate(small, X, None, V) <= (n + 64) * 3
    gradient = jax.grad(lambda X: run(X, None, V, block_size=500).sum())
    assert largest_intermediate(gradient, X) <= 500 * 500


@pytest.mark.parametrize(
    ("number", "platform", "variable", "side"),
    [
        (0, "cpu", "", 1024),
        (1, "gpu", "", 4096),
        (2, "tpu", "", 4096),
        (3, "another", "", 1024),
        (4, "gpu", "512", 512),
    ],
)
def test_tiles_are_those_of_the_platform_or_of_the_user_and_never_larger(
    number, platform, variable, side, monkeypatch
):
    """Tiles are found in traced programs, of as many points as fill them nearly: rows of its own for each case."""
    monkeypatch.setattr(jax, "default_backend", lambda: platform)
    monkeypatch.setenv("JAXKERN_TILE_SIDE", variable)
    n = 98_304 - number

    def tile(num_columns, **options):
        product = partial(gram_matmul, house.KERNEL, **options)
        X = jax.ShapeDtypeStruct((n, 1), house.dtype())
        Y = jax.ShapeDtypeStruct((num_columns, 1), house.dtype())
        v = jax.ShapeDtypeStruct((num_columns,), house.dtype())
        return largest_intermediate(product, X, Y, v)

    assert 0.9 * side**2 < tile(n) <= side**2
    # A cache of a core holds a quarter of the entries, an accelerator waits for the start of so little work.
    share = 4 if platform in ("cpu", "another") else 1
    assert 0.9 * side**2 / share < tile(side // 2) <= side**2 / share
    assert tile(2 * side) <= side**2
    assert tile(n, block_size=400) <= 400**2
    for wrong in ("0", "-1", "many"):
        monkeypatch.setenv("JAXKERN_TILE_SIDE", wrong)
        message = (
            f"JAXKERN_TILE_SIDE must be a whole number of at least 1, got '{wrong}'"
        )
        with pytest.raises(ValueError, match=message):
            tile(7)


@pytest.mark.parametrize("family", [Laplacian, Exponential])
def test_direct_differences_are_never_stored(family):
    """Differences of a tile have 50 times its size: compiled programs reduce them on the fly."""
    side = 64
    X = jax.ShapeDtypeStruct((256, 50), "float32")
    V = jax.ShapeDtypeStruct((256, 1), "float32")
    product = partial(gram_matmul, family(1.0), block_size=side)
    program = jax.jit(lambda X, V: product(X, None, V)).lower(X, V).compile()
    held = program.memory_analysis().temp_size_in_bytes
    assert held <= 4 * (6 * side**2 + 4 * X.size)


def tall_product(X):
    return gram_matmul(house.KERNEL, X, X[:1200], X[:1200], block_size=512)


@pytest.mark.parametrize(
    ("function", "columns", "slices"),
    # One slice of the quantile, the rows of a tile, costs nothing.
    [(tall_product, 400, 0), (quantile_lengthscale, 512, 1)],
    ids=["product", "quantile"],
)
def test_columns_of_a_tile_are_not_cut_out_entry_by_entry(function, columns, slices):
    """A slice of the columns among the operations of a tile takes five times as long."""
    X = jax.ShapeDtypeStruct((2048, 3), "float32")
    computations = jax.jit(function).lower(X).compile().as_text().split("\n\n")
    difference = f"f32[512,{columns}]{{1,0}} subtract("
    tiles = [text for text in computations if difference in text]
    assert tiles
    for text in tiles:
        assert text.count(f"f32[1,{columns},3]{{2,1,0}} dynamic-slice(") == slices


def product_by_tiles(kernel, X, V):
    return gram_matmul(kernel, X, None, V, block_size=5)


def product_of_matrices(kernel, X, V):
    return gram(kernel, X) @ V


@pytest.mark.float64
@pytest.mark.parametrize(
    ("product", "dim"), [(product_by_tiles, FEW), (product_of_matrices, PRODUCT)]
)
def test_products_have_the_derivatives_of_sums_over_pairs(product, dim):
    """Of first and second order: of tiles with direct differences, and of squared distances by matrix products."""
    data = house.data(shape=(ROWS, 8, dim))
    weights = house.rng().normal(size=data.values.shape)

    def dense(lengthscale, X, V):
        squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        return jnp.sum(weights * (jnp.exp(-squares / (2 * lengthscale**2)) @ V))

    def ours(lengthscale, X, V):
        return jnp.sum(weights * product(Gaussian(lengthscale), X, V))

    @jax.jit
    def derivatives(*point):
        direction = jax.tree.map(jnp.cos, point)
        slopes = [jax.grad(function, (0, 1, 2)) for function in (dense, ours)]
        return [jax.jvp(slope, point, direction) for slope in slopes]

    leaves = map(jax.tree.leaves, derivatives(dim**0.5, data.X, data.values))
    for exact, leaf in zip(*leaves, strict=True):
        size = 1 + np.abs(exact).max()
        tolerance = 10 * ROWS * house.eps() * size
        np.testing.assert_allclose(leaf, exact, rtol=0, atol=tolerance)


def test_centring_is_multiplication_by_the_projection():
    data = house.data()
    K = (data.values @ data.Y[:, :2].T)[:8, :8] + data.X[:8, :1]
    assert not np.allclose(K, K.T)  # rows and columns are told apart
    H = np.eye(len(K)) - 1 / len(K)
    tolerance = 10 * house.eps() * (3 + np.abs(K).max())
    centred = center(K)
    np.testing.assert_allclose(centred, H @ np.float64(K) @ H, atol=tolerance)
    np.testing.assert_allclose(center(centred), centred, atol=tolerance)
    np.testing.assert_allclose(center(K + 3), centred, atol=tolerance)


def stationary(name):
    return lambda x, y, scale: VALUES[name]((x - y) / scale)


def inner(x, y, scale):
    return (x * y).sum(axis=-1)


gaussian = stationary("Gaussian")
matern = stationary("Matern32")
laplacian = stationary("Laplacian")
cauchy = stationary("Cauchy")
FORMULAS = {name: (getattr(kernels, name), stationary(name)) for name in VALUES}
FORMULAS["linear"] = (lambda s: Linear(), inner)
FORMULAS["polynomial"] = (
    lambda s: Polynomial(3, 0.5, s),
    lambda x, y, s: (inner(x, y, s) / s**2 + Decimal("0.5")) ** 3,
)
FORMULAS["sum"] = (
    lambda s: 2.0 * Gaussian(s) + Matern32(s),
    lambda x, y, s: 2 * gaussian(x, y, s) + matern(x, y, s),
)
FORMULAS["product"] = (
    lambda s: Laplacian(s) * Cauchy(s),
    lambda x, y, s: laplacian(x, y, s) * cauchy(x, y, s),
)


@jax.jit
def distances_of_all(scale, X, Y):
    """Return the distances of all kernels, from one program."""
    return {
        name: kernel_distance(make(scale), X, Y) for name, (make, _) in FORMULAS.items()
    }


@pytest.mark.parametrize("ratio", [3.0, 1e-2, 1e-4, 1e-6])
def test_kernel_distance_keeps_its_digits_at_tiny_distances(ratio):
    """Relative to itself at such ratios of |x - y| and the lengthscale, near the origin and far from it.

    Points are multiples of 2^-13, which float32 holds at the offset of 1,024, too. The formulas have 60 digits.
    """
    dtype = house.dtype()
    rng = house.rng()
    step = 2.0**-13
    X = np.round(rng.normal(size=(ROWS, 3)) / step) * step
    X[ROWS // 2 :] += 1024
    moves = rng.integers(-40, 40, size=X.shape) * step
    scale = np.float32(np.linalg.norm(moves[0]) / ratio)
    distances = distances_of_all(
        dtype.type(scale), X.astype(dtype), (X + moves).astype(dtype)
    )
    with localcontext() as context:
        context.prec = 60
        decimals = np.vectorize(Decimal, otypes=[object])
        x = decimals(X)
        y = decimals(X + moves)
        s = Decimal(float(scale))
        for name, (_, formula) in FORMULAS.items():
            squares = formula(x, x, s) + formula(y, y, s) - 2 * formula(x, y, s)
            exact = np.float64(np.sqrt(squares))
            # Tens of operations, each with half an eps: 1e-5 in float32.
            tolerance = 80 * house.eps()
            np.testing.assert_allclose(distances[name], exact, tolerance, err_msg=name)


def test_subtracting_values_would_lose_all_digits():
    """The control: a user's function has no series, and the documentation of `kernel_distance` says so."""
    X = house.data().X
    Y = X.copy()
    Y[:, 0] += 10 * house.eps()

    def twin(x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * house.LENGTHSCALE**2))

    assert not np.any(kernel_distance(twin, X, Y))
    moved = np.linalg.norm(np.float64(Y) - X, axis=1) / house.LENGTHSCALE
    distances = kernel_distance(house.KERNEL, X, Y)
    np.testing.assert_allclose(distances, moved, rtol=20 * house.eps())
