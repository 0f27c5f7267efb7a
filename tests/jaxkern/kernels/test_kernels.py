"""Kernels against literal formulas, SciPy and scikit-learn; their constants, algebra, positivity and gradients."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from support.drawn import VALUES
from support.numerics import eps

from jaxkern import kernels, rkhs
from jaxkern.features import kernel_jl
from jaxkern.gram import gram, gram_matmul, kernel_distance
from jaxkern.kernels import (
    Cauchy,
    Distance,
    Exponential,
    FromFunction,
    Gaussian,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    as_kernel,
    kappa,
    lipschitz,
)
from jaxkern.pytrees import pytree

N, DIM = 12, 3

STATIONARY = [Gaussian, Laplacian, Exponential, Cauchy, Matern32, Matern52]
SMOOTH = [Gaussian, Cauchy, Matern32, Matern52]


def stationary(name):
    """Return a kernel of lengthscale 1.3, and its literal formula."""
    return getattr(kernels, name)(1.3), lambda x, y: VALUES[name]((x - y) / 1.3)


@jax.tree_util.register_pytree_node_class
class Diagonal:
    """A user's own callable PyTree: exp(-sum_j w_j (x_j - y_j)^2)."""

    def __init__(self, weights):
        self.weights = weights

    def __call__(self, x, y):
        return jnp.exp(-jnp.sum(self.weights * (x - y) ** 2))

    def tree_flatten(self):
        return (self.weights,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def own(x, y):
    return 1 / (1 + jnp.sum((x - y) ** 2))


def own_literal(x, y):
    return 1 / (1 + math.dist(x, y) ** 2)


gaussian, gaussian_literal = stationary("Gaussian")
LITERAL = {
    **{name.lower(): stationary(name) for name in VALUES},
    "linear": (Linear(), lambda x, y: sum(x * y)),
    "polynomial": (
        Polynomial(3, 0.5, 1.3),
        lambda x, y: (sum(x * y) / 1.3**2 + 0.5) ** 3,
    ),
    "distance": (Distance(), math.dist),
    "sum": (Gaussian(1.3) + Linear(), lambda x, y: gaussian_literal(x, y) + sum(x * y)),
    "product": (
        Laplacian(1.3) * Linear(),
        lambda x, y: VALUES["Laplacian"]((x - y) / 1.3) * sum(x * y),
    ),
    "scaled": (2.5 * Distance(), lambda x, y: 2.5 * math.dist(x, y)),
    "function": (as_kernel(own), own_literal),
    "pytree": (
        as_kernel(Diagonal(0.3)),
        lambda x, y: math.exp(-0.3 * math.dist(x, y) ** 2),
    ),
    "sum_with_function": (
        own + Gaussian(1.3) * 0.5,
        lambda x, y: own_literal(x, y) + 0.5 * gaussian_literal(x, y),
    ),
    "product_with_function": (
        own * Linear(),
        lambda x, y: sum(x * y) * own_literal(x, y),
    ),
}
ROUGH = (
    "laplacian",
    "exponential",
    "distance",
)  # steep at distance zero; the curvature of the others there is below
COMPOSED = ("sum", "product", "scaled")  # of kernels that are there alone, too


def points(rng, dtype, n=N, dim=DIM):
    return rng.normal(size=(n, dim)).astype(dtype)


def literal_gram(function, X, Y):
    return np.array([[function(x, y) for y in np.float64(Y)] for x in np.float64(X)])


@pytest.mark.parametrize("name", LITERAL)
def test_values_and_gram_matrices_are_the_literal_formula(name, dtype, rng):
    kernel, literal = LITERAL[name]
    X, Y = points(rng, dtype), points(rng, dtype, n=7)
    expected = literal_gram(literal, X, Y)
    # Products of coordinates enter exponents and powers: their rounding counts in units of |x|^2.
    tolerance = (
        20
        * eps(dtype)
        * (1 + float((X**2).sum(1).max()))
        * max(1, np.abs(expected).max())
    )
    dense, square, one = jax.jit(
        lambda X, Y: (gram(kernel, X, Y), gram(kernel, X), kernel(X[0], Y[0]))
    )(X, Y)
    assert dense.dtype == dtype and dense.shape == (N, 7)
    np.testing.assert_allclose(dense, expected, rtol=0, atol=tolerance)
    np.testing.assert_allclose(
        square, literal_gram(literal, X, X), rtol=0, atol=tolerance
    )
    assert one.dtype == dtype and one.shape == ()
    assert abs(float(one) - expected[0, 0]) <= tolerance


def test_peers_agree(x64, rng):
    X, Y = rng.normal(size=(N, DIM)), rng.normal(size=(7, DIM))
    pairs = [
        (Gaussian.from_gamma(0.3), rbf_kernel(X, Y, gamma=0.3)),
        (Gaussian.from_width(0.8), np.exp(-(cdist(X, Y) ** 2) / 0.8**2)),
        (Exponential.from_gamma(0.3), np.exp(-0.3 * cdist(X, Y))),
        (Laplacian.from_gamma(0.3), laplacian_kernel(X, Y, gamma=0.3)),
        (
            Polynomial(3, 0.5, 2.0),
            polynomial_kernel(X, Y, degree=3, gamma=0.25, coef0=0.5),
        ),
        (Exponential(0.8), Matern(0.8, nu=0.5)(X, Y)),
        (Matern32(0.8), Matern(0.8, nu=1.5)(X, Y)),
        (Matern52(0.8), Matern(0.8, nu=2.5)(X, Y)),
    ]
    for kernel, expected in pairs:
        np.testing.assert_allclose(gram(kernel, X, Y), expected, rtol=1e-12, atol=1e-13)


def test_kappa_is_the_largest_diagonal_entry(x64, rng):
    X = points(rng, "float64")
    for name in (*VALUES, "Distance"):
        kernel = LITERAL[name.lower()][0]
        K, one = jax.device_get(
            jax.jit(lambda X, kernel=kernel: (gram(kernel, X), kernel(X[0], X[0])))(X)
        )
        assert (np.diag(K) == kappa(kernel)).all() and one == kappa(kernel)
    assert kappa(3.0 * Gaussian(2.0) + Laplacian(1.0)) == 4.0
    assert kappa(Gaussian(2.0) * 3.0 * Cauchy(1.0)) == 3.0
    assert (
        kappa(Linear())
        == kappa(Polynomial())
        == kappa(Linear() + Gaussian(1.0))
        == math.inf
    )
    assert kappa(0 * Linear()) == 0 and lipschitz(0 * Linear()) == 0
    assert kappa(FromFunction(own, sup=1.0)) == 1.0


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("family", [*STATIONARY, lambda _: Distance()])
def test_lipschitz_constant_is_attained_and_never_exceeded(family, dim, x64, rng):
    """Along the diagonal of R^d every kernel of the package is steepest; elsewhere the slope is at most that."""
    kernel = family(0.7)
    constant = float(lipschitz(kernel, dim))
    t = np.linspace(0, 1, 5001)[:, None] * np.ones((1, dim)) / math.sqrt(dim)
    quadruple = rng.normal(size=(4, 400, dim)) * np.array([1, 1, 0, 0])[:, None, None]
    quadruple[2:] = quadruple[:2] + rng.normal(size=(2, 400, dim)) * rng.choice(
        [1e-3, 0.1, 1], size=(1, 400, 1)
    )
    x1, x2, y1, y2 = quadruple
    along = lambda t: gram(kernel, t, np.zeros((1, dim)))[:, 0]  # noqa: E731
    values = jax.jit(
        lambda t, x, y: (along(t), jax.vmap(kernel)(*x) - jax.vmap(kernel)(*y))
    )
    values, change = jax.device_get(values(t, (x1, x2), (y1, y2)))
    slope = np.abs(np.diff(values)).max() * 5000
    assert 0.999 * constant <= slope <= constant * (1 + 1e-9)
    moved = np.linalg.norm(x1 - y1, axis=1) + np.linalg.norm(x2 - y2, axis=1)
    assert (np.abs(change) <= constant * moved * (1 + 1e-9)).all()


def test_lipschitz_constants_of_sums_and_products_are_upper_bounds(x64, rng):
    gaussian, matern = Gaussian(0.5), Matern32(0.8)
    L1, L2 = lipschitz(gaussian), lipschitz(matern)
    assert lipschitz(gaussian) == pytest.approx(math.exp(-0.5) / 0.5, rel=1e-15)
    assert lipschitz(3.0 * gaussian + matern) == pytest.approx(3 * L1 + L2, rel=1e-15)
    assert lipschitz(gaussian * matern) == pytest.approx(L1 + L2, rel=1e-15)
    assert lipschitz(2.0 * gaussian * matern) == pytest.approx(2 * (L1 + L2), rel=1e-15)
    assert lipschitz(Distance() * gaussian) == math.inf
    assert lipschitz(FromFunction(own, slope=2.0)) == 2.0
    t = np.linspace(0, 2, 2001)[:, None]
    for kernel in (3.0 * gaussian + matern, gaussian * matern):
        values = np.asarray(gram(kernel, t, np.zeros((1, 1))))[:, 0]
        assert np.abs(np.diff(values)).max() * 1000 <= lipschitz(kernel)


def test_unknown_constants_are_refused():
    for call in (kappa, lipschitz):
        with pytest.raises(
            ValueError, match=r"not known; wrap it as kernels\.FromFunction"
        ):
            call(own)
    for kernel in (Laplacian(1.0), Cauchy(1.0)):
        with pytest.raises(
            ValueError, match="dim is needed for the Lipschitz constant"
        ):
            lipschitz(kernel)
    with pytest.raises(ValueError, match="dim must be at least 1"):
        lipschitz(Laplacian(1.0), dim=0)


@pytree
class Rational(Kernel):
    scale: float = 1.0

    def evaluate(self, x, y):
        return 1 / (1 + jnp.sum((x - y) ** 2) / self.scale)


def test_a_kernel_of_ones_own_has_one_method(rng):
    X = rng.normal(size=(6, 2)).astype(np.float32)
    wanted = 1 / (1 + cdist(X, X, "sqeuclidean") / 2)
    np.testing.assert_allclose(gram(Rational(2.0), X), wanted, rtol=1e-5)
    np.testing.assert_allclose(
        gram(3 * Rational(2.0) * Gaussian(1.0), X),
        3 * wanted * rbf_kernel(X, gamma=0.5),
        rtol=1e-5,
    )
    gaps = kernel_distance(Rational(2.0), X[1:], X[:-1])
    np.testing.assert_allclose(gaps, np.sqrt(2 - 2 * np.diagonal(wanted, 1)), rtol=1e-5)
    assert jax.grad(lambda scale: gram(Rational(scale), X).sum())(2.0) > 0
    with pytest.raises(
        ValueError, match="kappa of Rational is not known; give its class a kappa"
    ):
        kappa(Rational() + Gaussian(1.0))
    with pytest.raises(
        ValueError,
        match=r"the Lipschitz constant of Rational is not known; give its class a lipschitz",
    ):
        lipschitz(Rational())


def test_a_kernel_of_ones_own_may_state_its_constants():
    class Bounded(Rational):
        kappa = 1.0

        def lipschitz(self, dim):
            return 0.65 / self.scale**0.5

    kernel = pytree(Bounded)(4.0)
    assert kappa(2 * kernel) == 2 and lipschitz(2 * kernel) == 0.65


def test_kernels_say_whether_they_are_positive_semidefinite(x64, rng):
    """As their Gram matrices are in ten dimensions; and sums, products and multiples as their parts."""
    X = points(rng, "float64", dim=10)
    for kernel, _ in LITERAL.values():
        values = np.linalg.eigvalsh(gram(kernel, X))
        assert (values[0] >= -1e-12 * values[-1]) == kernel.psd
    assert not (Distance() + Gaussian(1.0)).psd and not (2 * Distance() * Linear()).psd
    assert (Linear() + Gaussian(1.0) * Laplacian(2.0) * 3).psd


def test_stationary_kernels_do_not_exceed_one_at_near_copies(dtype, rng):
    """Clipping: the product form alone, which the larger lengthscale takes, gives negative squared distances here."""
    X = points(rng, dtype, dim=12)
    Y = X * (1 + 2 * eps(dtype))
    for family, lengthscale in itertools.product(STATIONARY, (0.05, 30.0)):
        K = np.asarray(gram(family(lengthscale), X, Y))
        assert K.max() <= 1 and K.min() >= 0
        assert (np.diag(np.asarray(gram(family(lengthscale), X))) == 1).all()


def test_sums_products_and_multiples_act_on_gram_matrices(rng):
    dtype = jnp.float32
    X, Y = points(rng, dtype), points(rng, dtype, n=7)
    a, b = Gaussian(1.3), Polynomial(2, 0.5, 2.0)
    A, B = (np.asarray(gram(each, X, Y)) for each in (a, b))
    for kernel, expected in [
        (a + b, A + B),
        (a * b, A * B),
        (2 * a, 2 * A),
        (a * 2.0, 2 * A),
        (np.float64(2) * a, 2 * A),
        (a * np.float32(2), 2 * A),
        (jnp.asarray(2.0, dtype) * a, 2 * A),
        (0 * a + b, B),
        ((a + b) * (a + own), (A + B) * (A + np.asarray(gram(own, X, Y)))),
    ]:
        value = gram(kernel, X, Y)
        assert value.dtype == dtype
        np.testing.assert_allclose(value, expected, rtol=20 * eps(dtype))


@pytest.mark.parametrize("factor", [-1, -0.5, math.nan, math.inf])
def test_negative_and_infinite_factors_are_refused(factor):
    with pytest.raises(ValueError, match="factor must be non-negative and finite"):
        Gaussian(1.0) * factor


def users_kernels(dtype):
    weights = jnp.asarray([0.1, 0.2, 0.3], dtype)
    literal = Diagonal(weights)
    return {
        "closure": lambda x, y: jnp.exp(-jnp.sum(weights * (x - y) ** 2)),
        "pytree": literal,
        "pytree of a NumPy array": Diagonal(np.asarray(weights)),
        "partial": partial(
            lambda w, x, y: jnp.exp(-jnp.sum(w * (x - y) ** 2)), weights
        ),
        "jitted": jax.jit(lambda x, y: jnp.exp(-jnp.sum(weights * (x - y) ** 2))),
        "bound method": literal.__call__,
        "subclass": Gaussian(1.0) * 0 + literal,
    }


def test_what_a_function_closes_over_is_differentiated_at_any_size(rng):
    """Beyond a block of rows, where a derivative has a rule of its own: against a kernel with a parameter."""
    X, ones = np.float32(rng.normal(size=(2600, 2))), np.ones(2600, np.float32)

    def closed(s):
        inner = {"of": lambda distance: jnp.exp(-s * distance / 2)}
        return jnp.sum(
            gram_matmul(lambda x, y: inner["of"](jnp.sum((x - y) ** 2)), X, None, ones)
        )

    def default(s):
        return jnp.sum(
            gram_matmul(
                lambda x, y, s=s: jnp.exp(-s * jnp.sum((x - y) ** 2) / 2), X, None, ones
            )
        )

    wanted = jax.jit(
        jax.grad(lambda s: jnp.sum(gram_matmul(Gaussian(s**-0.5), X, None, ones)))
    )(1.3)
    for function in (closed, default):
        np.testing.assert_allclose(jax.jit(jax.grad(function))(1.3), wanted, rtol=1e-4)


def test_a_users_function_works_wherever_a_kernel_does(rng):
    dtype = jnp.float32
    X, Y = points(rng, dtype), points(rng, dtype, n=7)
    scale = np.sqrt([0.1, 0.2, 0.3])
    twin = Gaussian.from_gamma(1.0)  # the same kernel on scaled coordinates
    A, B = X * np.asarray(scale, dtype), Y * np.asarray(scale, dtype)
    V, weights = np.ones((7, 2), dtype), np.ones(N, dtype)
    close = partial(
        np.testing.assert_allclose, rtol=200 * eps(dtype), atol=100 * eps(dtype)
    )

    @partial(jax.jit, static_argnums=0)
    def everything(make, X, Y):
        kernel = make()
        f = rkhs.Function(kernel, X, weights)
        Sigma = rkhs.Covariance(kernel, X)
        phi = kernel_jl(jax.random.key(1), kernel, X, num_features=2)
        distances = kernel_distance(kernel, X[:7], Y)
        return (
            gram(kernel, X, Y),
            gram_matmul(kernel, X, Y, V),
            f(Y),
            Sigma.inner(f, f),
            phi(Y),
            distances,
        )

    expected = everything(lambda: twin, A, B)
    for name, kernel in users_kernels(dtype).items():
        close(gram(kernel, X, Y), expected[0])
        if name in ("closure", "pytree"):
            for value, wanted in zip(
                everything(lambda kernel=kernel: kernel, X, Y), expected, strict=True
            ):
                assert value.dtype == dtype
                close(value, wanted)


def test_a_closure_over_a_traced_array_has_gradients(rng):
    """The same derivative through a closure, through a PyTree, and by hand."""
    X = points(rng, "float32")

    def through_closure(w):
        return gram(lambda x, y: jnp.exp(-jnp.sum(w * (x - y) ** 2)), X).sum()

    w = np.full(DIM, 0.3, np.float32)
    squares = (np.float64(X)[:, None] - np.float64(X)[None]) ** 2
    by_hand = -(np.exp(-0.3 * squares.sum(-1))[:, :, None] * squares).sum((0, 1))
    value = jax.jit(through_closure)
    for derivative in (jax.grad(through_closure), jax.jit(jax.grad(through_closure))):
        np.testing.assert_allclose(derivative(w), by_hand, rtol=1e-5)
    through_pytree = jax.jit(
        jax.grad(lambda kernel: gram_matmul(kernel, X, None, np.ones(N, X.dtype)).sum())
    )
    np.testing.assert_allclose(through_pytree(Diagonal(w)).weights, by_hand, rtol=1e-5)
    stacked = jax.jit(jax.vmap(through_closure))(np.stack([w, 2 * w]))
    np.testing.assert_allclose(stacked, [value(w), value(2 * w)], rtol=1e-5)


@pytree
class Vector(Kernel):
    def evaluate(self, x, y):
        return x * y


def test_what_is_no_kernel_is_refused(rng):
    X = points(rng, "float32")
    for wrong in (None, 3.0, "gaussian", Gaussian, X):
        with pytest.raises(
            ValueError, match="kernel must be a kernel such as Gaussian"
        ):
            gram(wrong, X)
    for vector in (Vector(), lambda x, y: x * y):
        with pytest.raises(
            ValueError, match=r"must return a scalar for two points, got shape \(3,\)"
        ):
            gram(vector, X)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=() if x in ROUGH else pytest.mark.slow)
        for x in LITERAL
        if "with_function" not in x
    ],
)
def test_gradients_are_finite_at_coincident_points(name, rng):
    """For a pair, and for a Gram matrix with exact copies among its points, in every argument and parameter."""
    kernel = jax.tree.map(jnp.float32, LITERAL[name][0])
    X = points(rng, "float32")
    X[3:5], X[1] = 0, X[0]

    @jax.jit
    def gradients(kernel, X):
        def total(kernel, X, Y):
            distances = kernel_distance(kernel, X[:2], Y[:2]).sum() if kernel.psd else 0
            product = gram_matmul(kernel, X, None, X, block_size=6)
            return (
                kernel(X[0], Y[1])
                + gram(kernel, X).sum()
                + gram(kernel, X, Y).sum()
                + product.sum()
                + distances
            )

        return jax.grad(total, (0, 1, 2))(kernel, X, X)

    leaves = jax.tree.leaves(gradients(kernel, X))
    assert len(leaves) == 2 + len(jax.tree.leaves(kernel))
    for leaf in leaves:
        assert np.isfinite(np.asarray(leaf)).all()


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(x, marks=[pytest.mark.slow] * ("function" in x or x in COMPOSED))
        for x in LITERAL
    ],
)
def test_gradients_are_those_of_the_literal_formula(name, x64, rng):
    kernel, literal = LITERAL[name]
    x, y = rng.normal(size=(2, DIM))
    steps = 1e-6 * np.eye(DIM)
    expected = [(literal(x + step, y) - literal(x - step, y)) / 2e-6 for step in steps]
    both = lambda x, y: jnp.stack([kernel(x, y), gram(kernel, x[None], y[None])[0, 0]])  # noqa: E731
    for found in jax.jit(jax.jacrev(both))(x, y):
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_laplacian_has_no_slope_in_a_coordinate_that_points_share(x64):
    """A symmetric difference is 0 there; the kernel is exp(-|x_2 - y_2|) of the one coordinate that differs."""
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    kernel = Laplacian(1.0)

    def matrix(z):
        return gram(kernel, z[None], y[None])[0, 0]

    def product(z):
        return gram_matmul(kernel, z[None], y[None], jnp.ones((1, 1)))[0, 0]

    for function in (lambda z: kernel(z, y), matrix, product):
        value = np.exp(-1.0)
        for slope in (jax.grad(function)(x), jax.jacfwd(function)(x)):
            np.testing.assert_allclose(slope, [0, 0, value], atol=1e-15)
        hessian = jax.hessian(function)(x)
        np.testing.assert_allclose(hessian, np.diag([0, 0, value]), atol=1e-15)
        np.testing.assert_array_equal(jax.grad(function)(y), 0.0)


@pytest.mark.parametrize(
    ("family", "curvature"), list(zip(SMOOTH, [1, 2, 3, 5 / 3], strict=True))
)
def test_curvature_at_coincident_points_is_exact(family, curvature, dtype):
    """The Hessian of K(., y) at y is -curvature / lengthscale^2 times the identity."""
    y = np.asarray([0.3, -2.0, 5.0], dtype)
    hessian = jax.jit(jax.hessian(family(0.5)))(y, y)
    np.testing.assert_allclose(
        hessian,
        -curvature / 0.25 * np.eye(DIM),
        rtol=8 * eps(dtype),
        atol=8 * eps(dtype),
    )


@pytest.mark.parametrize("name", LITERAL)
def test_float32_points_meet_no_float64(name, x64):
    kernel, X = LITERAL[name][0], np.ones((N, DIM), np.float32)
    program = jax.make_jaxpr(
        lambda X: (gram(kernel, X), kernel(X[0], X[1]), gram_matmul(kernel, X, None, X))
    )(X)
    assert not [
        word for word in str(program).split() if "f64[" in word and "f64[]" not in word
    ]
    assert {found.dtype for found in program.out_avals} == {X.dtype}


@pytest.mark.parametrize(
    "value", [0, 0.0, -1.0, math.nan, math.inf, np.float32(-2), np.int64(0), True, "1"]
)
def test_bad_lengthscales_are_refused_by_name(value):
    for family in STATIONARY:
        with pytest.raises(ValueError, match="lengthscale must be positive and finite"):
            family(value)
    with pytest.raises(ValueError, match="lengthscale must be positive and finite"):
        Polynomial(2, 1.0, value)
    for family in (Gaussian, Laplacian, Exponential):
        with pytest.raises(
            ValueError, match=r"gamma must be (positive and finite|a real number)"
        ):
            family.from_gamma(value)
    with pytest.raises(
        ValueError, match=r"width must be (positive and finite|a real number)"
    ):
        Gaussian.from_width(value)


def test_bad_polynomials_are_refused_by_name():
    for degree in (0, -1, 1.5, True):
        with pytest.raises(ValueError, match="degree must be"):
            Polynomial(degree)
    with pytest.raises(ValueError, match="offset must be non-negative"):
        Polynomial(2, -1.0)


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (np.ones((2, 3), np.float32), np.ones(3, np.float32), "x must have shape"),
        (
            np.ones(3, np.float32),
            np.ones(4, np.float32),
            r"y must have shape \(3,\), got \(4,\)",
        ),
        (
            np.ones(3, np.float32),
            np.ones(3, np.float16),
            "y must have dtype float32 or float64, got float16",
        ),
    ],
)
def test_bad_points_are_refused_by_name(x, y, message):
    for kernel in (Gaussian(1.0), as_kernel(own)):
        with pytest.raises(ValueError, match=message):
            kernel(x, y)
