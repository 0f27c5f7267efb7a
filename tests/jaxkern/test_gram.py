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
from house import KERNEL, close, eps
from support.drawn import VALUES
from support.jaxprs import equations, largest_intermediate
from support.numerics import literal_gram

from jaxkern import kernels
from jaxkern.gram import (
    center,
    gram,
    gram_matmul,
    kernel_distance,
    rounding,
)
from jaxkern.kernels import (
    Exponential,
    Gaussian,
    Laplacian,
    Linear,
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
SECOND_HALF = np.repeat([[0], [1]], ROWS // 2, axis=0)


def scattered(dim):
    """Yield points on which products of coordinates lose what a kernel needs, with a lengthscale of 1."""
    plain = house.rng(dim).normal(size=(ROWS, dim)) / math.sqrt(dim)
    for far in (1e2, 1e4, 1e7):
        yield plain + far * SECOND_HALF
        yield plain + far
    yield plain
    yield plain * np.logspace(-6, 6, dim)
    # A mean of equal rows is rounded; if it were fused into a subtraction, copies would differ.
    yield np.full((ROWS, dim), 1000.1)


@jax.jit
def value_and_bound(kernel, X):
    return gram(kernel, X), rounding(kernel, X)


@jax.jit
def values_and_bounds(stationary, X):
    V = np.eye(ROWS, 2, dtype=X.dtype)
    product = gram_matmul(stationary[0], X, None, V, block_size=7)
    return [value_and_bound(kernel, X) for kernel in stationary], product


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
        # Products know such a squared distance with either sign.
        X[2] = X[0] * (1 + 2 * eps())
        lengthscale = dtype.type(scale)
        stationary = [getattr(kernels, name)(lengthscale) for name in names]
        results, product = jax.device_get(values_and_bounds(stationary, X))
        # Differences of float64 would be rounded where float64 is judged.
        U = X.astype(np.longdouble)[:, None] - X
        copies = ~U.any(axis=2)
        for name, (K, bound) in zip(names, results, strict=True):
            exact = VALUES[name](U / np.longdouble(lengthscale))
            assert np.abs(K - exact).max() <= bound <= limit
            assert (K[copies] == 1).all()
            assert 0 <= K.min() <= K.max() <= 1
        # The centre of a tile is another one, so that values differ within their bounds.
        K = results[0][0]
        assert np.abs(product - K[:, :2]).max() <= 2 * limit


@pytest.mark.parametrize(
    "family", [Gaussian, Laplacian, pytest.param(Gaussian, marks=double)]
)
def test_values_of_a_hundred_thousand_columns_are_within_the_bound(family):
    """Equal differences are rounded to the same side in a plain sum, which is off by 1e-4 in float32 then.

    In float64 the products of the Gaussian kernel serve, which are a loop for so many columns.
    """
    dim = 100_000
    dtype = house.dtype()
    X = np.zeros((2, dim), dtype)
    X[1] = 0.37  # no binary fraction: each square is rounded
    reach = dim if family is Laplacian else dim**0.5
    # About the distance of the points, where the kernel is steep.
    kernel = family(dtype.type(0.3 * reach))
    move = X[1].astype(np.longdouble) / np.longdouble(kernel.lengthscale)
    exact = float(VALUES[family.__name__](move))
    K, bound = jax.device_get(value_and_bound(kernel, X))
    assert bound <= LIMITS[dtype.name]
    close(K, [[1, exact], [exact, 1]], bound)


def test_a_batch_takes_one_branch():
    """A condition on a batch of booleans would run both branches; here one set of points decides for all."""
    X = np.zeros((2, ROWS, PRODUCT), house.dtype())
    jaxpr = jax.make_jaxpr(jax.vmap(partial(gram, KERNEL)))(X)
    (choice,) = [e for e in equations(jaxpr) if e.primitive.name == "cond"]
    # A scalar of no batch is what remains a condition when it is compiled.
    assert choice.invars[0].aval.shape == ()


def test_bounds_follow_sums_products_and_multiples_of_kernels():
    X = house.data().X
    dim = X.shape[1]
    gaussian = KERNEL
    linear = Linear()
    cubic = Polynomial(3, 1.0, 2.0)

    @jax.jit
    def bounds_of(X):
        composed = (gaussian * linear, gaussian + linear, 3 * gaussian)
        return [rounding(kernel, X) for kernel in (gaussian, linear, cubic, *composed)]

    bounds = np.float64(bounds_of(X)) / eps()
    first, second, third, product, total, multiple = bounds
    assert second == pytest.approx(dim / 2)
    assert third == pytest.approx(3 * (dim + 4) / 2, rel=1e-3)
    # The operation that joins them is rounded, too.
    assert 0 < product - first - second < 2
    assert 0 < total - max(first, second) <= 2
    assert 0 < multiple - first <= 2


def test_bounds_of_products_take_the_steepest_slope_of_the_profile():
    """Of slope c the bound is c A + sqrt(c) B + 4 halves of eps: two kernels give A and B, which hold for a third."""
    X = house.data(shape=(ROWS, 8, PRODUCT)).X
    s = np.array([1e-6, 1.1e-6])  # profiles fall fastest at zero
    names = ("Gaussian", "Matern32", "Matern52")
    profiles = [VALUES[name](np.sqrt(s)[:, None]) for name in names]
    slopes = -np.diff(profiles)[:, 0] / 1e-7

    @jax.jit
    def bounds_of(X):
        # In units of 20 points are so close that products serve in float32, too.
        return [rounding(getattr(kernels, name)(20.0), X) for name in names]

    # Points are centred: an offset leaves the bound and the form as they are.
    np.testing.assert_allclose(bounds_of(X + 1000), bounds_of(X), rtol=1e-2)
    # Four roundings of the profile itself are in every bound.
    terms = np.float64(bounds_of(X)) / (eps() / 2) - 4
    design = np.stack([slopes, np.sqrt(slopes)], axis=1)
    coefficients = np.linalg.solve(design[:2], terms[:2])
    assert (coefficients > 0).all()
    assert design[2] @ coefficients == pytest.approx(terms[2], rel=1e-2)


@pytest.mark.parametrize("block_size", [None, 1, 5, 100])
@pytest.mark.parametrize("family", house.FAMILIES)
def test_products_are_the_dense_product_for_every_block_size(family, block_size):
    """5 divides neither the rows nor the columns; the diagonal is exactly 1 in tiles, far from the origin, too."""
    data = house.data(family)
    product = partial(gram_matmul, KERNEL, block_size=block_size)
    V = data.values
    tolerance = 50 * ROWS * eps()
    close(product(data.X, data.Y, V), literal_gram(data.X, data.Y) @ V, tolerance)
    close(product(data.X, None, V), literal_gram(data.X, data.X) @ V, tolerance)
    K = product(data.X, data.X, np.eye(ROWS, 2, dtype=V.dtype))
    assert K[0, 0] == K[1, 1] == 1


def singular(x, y):
    """A user's kernel that is not defined at the origin: padding with zeros would show."""
    return 1 / jnp.sqrt(jnp.sum(x * x) * jnp.sum(y * y))


def test_products_take_vectors_and_fill_tiles_up_with_copies():
    data = house.data()
    v = data.values[:, 0]
    product = gram_matmul(singular, data.X, data.Y, v, block_size=5)
    # The kernel is a product of two factors.
    first = 1 / np.linalg.norm(data.X, axis=1)
    second = 1 / np.linalg.norm(data.Y, axis=1)
    # Sums of n products, each of which is at most so large.
    largest = first.max() * second.max()
    close(product, first * (second @ v), 50 * ROWS * eps() * largest)


def test_products_never_hold_the_gram_matrix(monkeypatch):
    """Programs are traced for thousands of rows, several tiles a side, and never run."""
    monkeypatch.setenv("JAXKERN_TILE_SIDE", "1024")
    tile = 1024**2
    n = 5000
    X = jnp.zeros((n, 3))
    V = jnp.zeros((n, 2))
    run = partial(gram_matmul, KERNEL)
    # The walk sees what there is to see.
    assert largest_intermediate(partial(gram, KERNEL), X) == n * n
    assert largest_intermediate(run, X, None, V) <= tile
    # Tiles are smaller than the points then, which are filled up.
    small = partial(run, block_size=64)
    assert largest_intermediate(small, X, None, V) <= (n + 64) * 3
    # Without checkpoints a gradient would keep every tile.
    gradient = jax.grad(lambda X: run(X, None, V, block_size=500).sum())
    assert largest_intermediate(gradient, X) <= 500 * 500


@pytest.mark.parametrize(
    ("number", "platform", "variable", "side"),
    [
        (0, "gpu", "", 4096),
        (1, "tpu", "", 4096),
        (2, "cpu", "", 1024),
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
        product = partial(gram_matmul, KERNEL, **options)
        X = jax.ShapeDtypeStruct((n, 1), "float32")
        Y = jax.ShapeDtypeStruct((num_columns, 1), "float32")
        return largest_intermediate(product, X, Y, Y)

    assert 0.9 * side**2 < tile(n) <= side**2
    # A cache of a core holds a quarter of the entries, an accelerator waits for the start of so little work.
    share = 4 if platform in ("cpu", "another") else 1
    assert 0.9 * side**2 / share < tile(side // 2) <= side**2 / share
    assert tile(2 * side) <= side**2
    assert tile(n, block_size=400) <= 400**2


@pytest.mark.parametrize("side", ["0", "many"])
def test_a_side_of_tiles_that_is_no_number_is_refused(side, monkeypatch):
    monkeypatch.setenv("JAXKERN_TILE_SIDE", side)
    X = np.zeros((7, 1), np.float32)
    message = f"JAXKERN_TILE_SIDE must be a whole number of at least 1, got '{side}'"
    with pytest.raises(ValueError, match=message):
        gram_matmul(KERNEL, X, None, X)


@pytest.mark.parametrize("family", [Laplacian, Exponential])
def test_direct_differences_are_never_stored(family):
    """Differences of a tile have 50 times its size: compiled programs reduce them on the fly."""
    side = 64
    X = jax.ShapeDtypeStruct((256, 50), "float32")
    V = jax.ShapeDtypeStruct((256, 1), "float32")
    product = partial(gram_matmul, family(1.0), block_size=side)
    program = jax.jit(product).lower(X, X, V).compile()
    held = program.memory_analysis().temp_size_in_bytes
    # A few tiles and copies of the points, of 4 bytes a number.
    assert held <= 4 * (6 * side**2 + 4 * X.size)


def tall_product(X):
    return gram_matmul(KERNEL, X, X[:1200], X[:1200], block_size=512)


@pytest.mark.parametrize(
    ("function", "columns", "slices"),
    # One slice of the quantile, the rows of a tile, costs nothing.
    [(tall_product, 400, 0), (quantile_lengthscale, 512, 1)],
    ids=["product", "quantile"],
)
def test_columns_of_a_tile_are_not_cut_out_entry_by_entry(function, columns, slices):
    """A slice of the columns among the operations of a tile takes five times as long."""
    X = jax.ShapeDtypeStruct((2048, 3), "float32")
    program = jax.jit(function).lower(X).compile()
    computations = program.as_text().split("\n\n")
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
    """Of first and second order: of tiles with direct differences, and of squared distances by products.

    A second set of points is so far away that the whole batch takes differences.
    """
    data = house.data(shape=(ROWS, 8, dim))
    weights = house.rng().normal(size=data.values.shape)
    # Products would lose all digits of the squared distances of a cluster.
    far = data.X + 1e7 * SECOND_HALF

    def dense(kernel, X, V):
        squares = ((X[:, None] - X[None]) ** 2).sum(axis=2)
        return jnp.exp(-squares / (2 * kernel.lengthscale**2)) @ V

    def derivatives_of(product, X):
        def total(lengthscale, X, V):
            return jnp.sum(weights * product(Gaussian(lengthscale), X, V))

        point = (dim**0.5, X, data.values)
        direction = jax.tree.map(jnp.cos, point)
        return jax.jvp(jax.grad(total, (0, 1, 2)), point, direction)

    @jax.jit
    @jax.vmap
    def of_both(X):
        return [derivatives_of(function, X) for function in (dense, product)]

    for other in (data.Y, far):
        results = map(jax.tree.leaves, of_both(np.stack([data.X, other])))
        for exact, leaf in zip(*results, strict=True):
            size = 1 + np.abs(exact).max()
            close(leaf, exact, 10 * ROWS * eps() * size)


def test_centring_is_multiplication_by_the_projection():
    K = house.data().X[:3] + 3  # no symmetric matrix: rows and columns are told apart
    H = np.eye(3) - 1 / 3
    tolerance = 10 * eps() * np.abs(K).max()
    close(center(K), H @ K @ H, tolerance)


def stationary(name):
    return lambda x, y, scale: VALUES[name]((x - y) / scale)


def inner(x, y, scale):
    return (x * y).sum(axis=-1)


FORMULAS = {name: (getattr(kernels, name), stationary(name)) for name in VALUES}
FORMULAS["linear"] = (lambda s: Linear(), inner)
FORMULAS["polynomial"] = (
    lambda s: Polynomial(3, 0.5, s),
    lambda x, y, s: (inner(x, y, s) / s**2 + Decimal("0.5")) ** 3,
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
    Y = X + moves
    distances = distances_of_all(dtype.type(scale), X.astype(dtype), Y.astype(dtype))
    decimals = np.vectorize(Decimal, otypes=[object])
    x = decimals(X)
    y = decimals(Y)
    s = Decimal(float(scale))
    with localcontext(prec=60):
        for name, (_, formula) in FORMULAS.items():
            # 12 digits of 60 cancel at the smallest ratio.
            diagonal = formula(x, x, s) + formula(y, y, s)
            squares = diagonal - 2 * formula(x, y, s)
            exact = np.float64(np.sqrt(squares))
            # Tens of operations, each with half an eps: 1e-5 in float32.
            tolerance = 80 * eps()
            np.testing.assert_allclose(distances[name], exact, tolerance, err_msg=name)


def test_subtracting_values_would_lose_all_digits():
    """The control: a user's function has no series, and the documentation of `kernel_distance` says so."""
    X = house.data().X
    Y = X + 10 * eps()  # squares of eps are lost next to 1

    def twin(x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * house.LENGTHSCALE**2))

    assert not np.any(kernel_distance(twin, X, Y))
    assert np.all(kernel_distance(KERNEL, X, Y) > 0)
