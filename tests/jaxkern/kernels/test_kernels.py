"""Kernels against literal formulas, SciPy and scikit-learn: values, constants, algebra, slopes where points meet."""

import functools
import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from support.drawn import VALUES

from jaxkern import features, kernels, rkhs
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
    Polynomial,
    Scaled,
    as_kernel,
    kappa,
    lipschitz,
)
from jaxkern.pytrees import pytree

SCALE = house.LENGTHSCALE
RATES = np.array([0.1, 0.2, 0.3])


def inner(x, y):
    return (x * y).sum(axis=-1)


def distance(x, y):
    return np.linalg.norm(x - y, axis=-1)


def stationary(name):
    return lambda x, y: VALUES[name]((x - y) / SCALE)


def cubic(x, y):
    return (inner(x, y) / SCALE**2 + 0.5) ** 3


def rational(x, y):
    """A function of a user."""
    return 1 / (1 + jnp.sum((x - y) ** 2))


def rational_formula(x, y):
    return 1 / (1 + distance(x, y) ** 2)


@pytree
class Rational(Kernel):
    """A kernel of a user, which has one method and states no constants."""

    scale: float = 1.0

    def evaluate(self, x, y):
        return 1 / (1 + jnp.sum((x - y) ** 2) / self.scale)


@jax.tree_util.register_pytree_node_class
class Diagonal:
    """A callable PyTree of a user: exp(-sum_j rates_j (x_j - y_j)^2)."""

    def __init__(self, rates):
        self.rates = rates

    def __call__(self, x, y):
        return jnp.exp(-jnp.sum(self.rates * (x - y) ** 2))

    def tree_flatten(self):
        return (self.rates,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def diagonal_formula(x, y):
    return np.exp(-((x - y) ** 2 @ RATES))


def shifted_rational(x, y):
    return 1 / (1 + distance(x, y) ** 2 / 2)


def polynomial_of_kernels(x, y):
    decay = exponential(x, y) * cauchy(x, y)
    return decay * inner(x, y) + (inner(x, y) + 1) ** 2 / 2


gaussian = stationary("Gaussian")
laplacian = stationary("Laplacian")
exponential = stationary("Exponential")
cauchy = stationary("Cauchy")
mixture = Exponential(SCALE) * Cauchy(SCALE) * Linear() + 0.5 * Polynomial(2)

LITERAL = {name: (getattr(kernels, name)(SCALE), stationary(name)) for name in VALUES}
LITERAL["Linear"] = (Linear(), inner)
LITERAL["Polynomial"] = (Polynomial(3, 0.5, SCALE), cubic)
LITERAL["Distance"] = (Distance(), distance)
LITERAL["scaled"] = (2.5 * Distance(), lambda x, y: 2.5 * distance(x, y))
LITERAL["sum"] = (
    rational + 0.5 * house.KERNEL,
    lambda x, y: rational_formula(x, y) + gaussian(x, y) / 2,
)
LITERAL["product"] = (
    rational * Laplacian(SCALE),
    lambda x, y: rational_formula(x, y) * laplacian(x, y),
)
LITERAL["polynomial of kernels"] = (mixture, polynomial_of_kernels)
LITERAL["function"] = (as_kernel(rational), rational_formula)
LITERAL["class"] = (Rational(2.0), shifted_rational)


@functools.cache
def values_of_all(dtype):
    """Return what a Gram matrix, a call and a distance say of all kernels, from one program for all of them."""
    data = house.data()

    def evaluate(kernel, X, Y):
        values = {
            "across": gram(kernel, X, Y),
            "within": gram(kernel, X),
            "pair": kernel(X[0], Y[0]),
            "itself": kernel(X[0], X[0]),
        }
        if kernel.psd:
            values["distances"] = kernel_distance(kernel, X, Y)
        return values

    def evaluate_all(X, Y):
        return {name: evaluate(kernel, X, Y) for name, (kernel, _) in LITERAL.items()}

    return jax.device_get(jax.jit(evaluate_all)(data.X, data.Y))


def pairwise(formula, X, Y):
    return formula(np.float64(X)[:, None], np.float64(Y)[None])


@pytest.mark.parametrize("name", LITERAL)
def test_values_and_distances_are_the_literal_formula(name):
    kernel, formula = LITERAL[name]
    data = house.data()
    values = values_of_all(house.dtype())[name]
    within = pairwise(formula, data.X, data.X)
    across = pairwise(formula, data.X, data.Y)
    largest = max(np.abs(within).max(), np.abs(across).max(), 1.0)
    # Products of coordinates enter exponents and powers: their rounding counts in units of |x|^2.
    reach = 1 + (data.X**2).sum(axis=1).max()
    tolerance = 20 * house.eps() * reach * largest
    np.testing.assert_allclose(values["within"], within, rtol=0, atol=tolerance)
    np.testing.assert_allclose(values["across"], across, rtol=0, atol=tolerance)
    np.testing.assert_allclose(values["pair"], across[0, 0], rtol=0, atol=tolerance)
    if kernel.psd:
        other = pairwise(formula, data.Y, data.Y)
        squares = np.diag(within) + np.diag(other) - 2 * np.diag(across)
        largest = max(largest, np.abs(other).max())
        tolerance = 20 * house.eps() * reach * largest
        np.testing.assert_allclose(
            values["distances"] ** 2, squares, rtol=0, atol=tolerance
        )


@pytest.mark.parametrize("name", [*VALUES, "Distance"])
def test_kappa_is_the_diagonal_exactly(name):
    values = values_of_all(house.dtype())[name]
    constant = kappa(LITERAL[name][0])
    assert (np.diag(values["within"]) == constant).all()
    assert values["itself"] == constant


def test_kernels_say_whether_their_gram_matrices_are_positive_semidefinite():
    for name, (kernel, _) in LITERAL.items():
        K = np.float64(values_of_all(house.dtype())[name]["within"])
        eigenvalues = np.linalg.eigvalsh(K)
        # The entries are rounded by 20 eps at most, and there are n of them in a row.
        rounding = 20 * len(K) * house.eps() * eigenvalues[-1]
        assert (eigenvalues[0] >= -rounding) == kernel.psd, name
    assert not (Distance() + house.KERNEL).psd
    assert not (2 * Distance() * Linear()).psd
    assert (Linear() + house.KERNEL * Laplacian(2.0) * 3).psd


def test_peers_agree_on_formulas_and_conventions():
    """Lengthscales of the constructors are judged through the formulas, which take no program."""
    data = house.data()
    X = np.float64(data.X)
    Y = np.float64(data.Y)
    differences = X[:, None] - Y[None]
    peers = [
        (Gaussian.from_gamma(0.3), rbf_kernel(X, Y, gamma=0.3)),
        (Gaussian.from_width(0.8), np.exp(-(cdist(X, Y) ** 2) / 0.8**2)),
        (Exponential.from_gamma(0.3), np.exp(-0.3 * cdist(X, Y))),
        (Laplacian.from_gamma(0.3), laplacian_kernel(X, Y, gamma=0.3)),
        (Exponential(0.8), Matern(0.8, nu=0.5)(X, Y)),
        (Matern32(0.8), Matern(0.8, nu=1.5)(X, Y)),
        (kernels.Matern52(0.8), Matern(0.8, nu=2.5)(X, Y)),
    ]
    for kernel, K in peers:
        formula = VALUES[type(kernel).__name__]
        ours = formula(differences / kernel.lengthscale)
        np.testing.assert_allclose(ours, K, rtol=1e-12, atol=1e-13)
    gamma = 1 / SCALE**2
    K = polynomial_kernel(X, Y, degree=3, gamma=gamma, coef0=0.5)
    np.testing.assert_allclose(pairwise(cubic, X, Y), K, rtol=1e-12, atol=1e-12)


def test_kappa_follows_sums_products_and_multiples():
    assert kappa(3.0 * house.KERNEL + Laplacian(1.0)) == 4.0
    assert kappa(house.KERNEL * 3.0 * Cauchy(1.0)) == 3.0
    for unbounded in (Linear(), Polynomial(), Linear() + house.KERNEL):
        assert kappa(unbounded) == math.inf
    assert kappa(0 * Linear()) == 0
    assert lipschitz(0 * Linear()) == 0
    stated = FromFunction(rational, sup=1.0, slope=2.0)
    assert kappa(stated) == 1.0
    assert lipschitz(stated) == 2.0


def test_a_kernel_of_ones_own_may_state_its_constants():
    class Bounded(Rational):
        kappa = 1.0

        def lipschitz(self, dim):
            return 0.65 / self.scale**0.5

    kernel = pytree(Bounded)(4.0)
    assert kappa(2 * kernel) == 2
    assert lipschitz(2 * kernel) == 0.65


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("name", [*VALUES, "Distance"])
def test_lipschitz_constant_is_attained_and_never_exceeded(name, dim):
    """Along the diagonal of R^d every kernel of the package is steepest; elsewhere the slope is at most that."""
    kernel, formula = LITERAL[name]
    constant = lipschitz(kernel, dim)
    t = np.linspace(0, 3, 5001)
    diagonal = t[:, None] * np.ones(dim) / math.sqrt(dim)
    slope = np.abs(np.diff(formula(diagonal, 0 * diagonal))).max() / t[1]
    assert 0.999 * constant <= slope <= constant * (1 + 1e-9)
    rng = house.rng()
    x, y = rng.normal(size=(2, 400, dim))
    steps = rng.normal(size=(2, 400, dim)) * rng.choice([1e-3, 0.1, 1], (400, 1))
    change = np.abs(formula(x, y) - formula(x + steps[0], y + steps[1]))
    moved = np.linalg.norm(steps, axis=2).sum(axis=0)
    assert (change <= constant * moved * (1 + 1e-9)).all()


def test_lipschitz_constants_of_sums_and_products_are_upper_bounds():
    smooth = Gaussian(0.5)
    matern = Matern32(0.8)
    steep = lipschitz(smooth)
    other = lipschitz(matern)
    assert steep == pytest.approx(math.exp(-0.5) / 0.5, rel=1e-15)
    assert lipschitz(3.0 * smooth + matern) == pytest.approx(3 * steep + other)
    assert lipschitz(smooth * matern) == pytest.approx(steep + other)
    assert lipschitz(2.0 * smooth * matern) == pytest.approx(2 * (steep + other))
    assert lipschitz(Distance() * smooth) == math.inf
    t = np.linspace(0, 2, 2001)
    first = VALUES["Gaussian"](t[:, None] / 0.5)
    second = VALUES["Matern32"](t[:, None] / 0.8)
    for kernel, values in (
        (3.0 * smooth + matern, 3 * first + second),
        (smooth * matern, first * second),
    ):
        assert np.abs(np.diff(values)).max() / t[1] <= lipschitz(kernel)


@pytest.mark.parametrize(
    "factor", [2, 2.0, np.float64(2), np.float32(2), jnp.asarray(2.0, jnp.float32)]
)
def test_factors_of_every_type_scale_from_both_sides(factor):
    """A NumPy scalar on the left would make an array of kernels."""
    for scaled in (factor * house.KERNEL, house.KERNEL * factor):
        assert isinstance(scaled, Scaled)
        assert scaled.kernel is house.KERNEL
        assert float(scaled.factor) == 2


def test_every_callable_of_two_points_is_a_kernel():
    data = house.data()
    rates = data.X.dtype.type(RATES)

    def function(rates, x, y):
        return jnp.exp(-jnp.sum(rates * (x - y) ** 2))

    callables = {
        "closure": lambda x, y: function(rates, x, y),
        "PyTree": Diagonal(jnp.asarray(rates)),
        "PyTree of a NumPy array": Diagonal(rates),
        "partial": functools.partial(function, rates),
        "jitted": jax.jit(lambda x, y: function(rates, x, y)),
        "bound method": Diagonal(rates).__call__,
        "subclass": house.KERNEL * 0 + Diagonal(rates),
    }

    @jax.jit
    def matrices(X, Y):
        return {name: gram(kernel, X, Y) for name, kernel in callables.items()}

    K = pairwise(diagonal_formula, data.X, data.Y)
    for name, matrix in matrices(data.X, data.Y).items():
        error = np.abs(matrix - K).max()
        assert error <= 20 * house.eps(), name


def test_a_users_function_works_wherever_a_kernel_does():
    data = house.data()
    values = data.values[:, 0]

    def evaluate(kernel, X, Y):
        function = rkhs.Function(kernel, X, values)
        sigma = rkhs.Covariance(kernel, X)
        phi = features.kernel_jl(house.key(), kernel, X, num_features=2)
        product = gram_matmul(kernel, X, Y, values)
        return function(Y), sigma.inner(function, function), phi(Y), product

    def twin(x, y):
        return jnp.exp(-jnp.sum((x - y) ** 2) / (2 * SCALE**2))

    ours, theirs = jax.jit(
        lambda X, Y: [evaluate(kernel, X, Y) for kernel in (house.KERNEL, twin)]
    )(data.X, data.Y)
    for expected, value in zip(ours, theirs, strict=True):
        # Sums of n values of size 1, each with some roundings in its exponent.
        tolerance = 100 * len(data.X) * house.eps()
        np.testing.assert_allclose(value, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.float64
def test_what_a_function_closes_over_has_derivatives():
    """By hand: of a number in a nested closure, or in a default, through blocks of rows; and of an array."""
    data = house.data()
    ones = np.ones(len(data.landmarks))
    size = len(
        ones
    )  # all columns in a tile, and more rows: blocks have a rule for derivatives

    def product(kernel):
        X = data.X
        return gram_matmul(kernel, X, data.landmarks, ones, block_size=size).sum()

    def of_closure(s):
        cells = {"profile": lambda square: jnp.exp(-s * square)}
        return product(lambda x, y: cells["profile"](jnp.sum((x - y) ** 2)))

    def of_default(s):
        return product(lambda x, y, s=s: jnp.exp(-s * jnp.sum((x - y) ** 2)))

    def of_array(rates):
        function = lambda x, y: jnp.exp(-jnp.sum(rates * (x - y) ** 2))  # noqa: E731
        return gram(function, data.X, data.landmarks).sum()

    @jax.jit
    def slopes(s, rates):
        return (
            jax.grad(of_closure)(s),
            jax.grad(of_default)(s),
            jax.grad(of_array)(rates),
            jax.grad(product)(Diagonal(rates)).rates,
            jax.vmap(jax.grad(of_array))(jnp.stack([rates, 2 * rates])),
        )

    def by_hand(rates):
        moves = (data.X[:, None] - data.landmarks) ** 2
        values = np.exp(-(moves @ rates))
        return -(values[..., None] * moves).sum(axis=(0, 1))

    s = 0.3
    closure, default, array, leaf, stacked = slopes(s, RATES)
    equal = by_hand(np.full(3, s)).sum()
    np.testing.assert_allclose([closure, default], equal, rtol=1e-12)
    np.testing.assert_allclose(array, by_hand(RATES), rtol=1e-12)
    np.testing.assert_allclose(leaf, by_hand(RATES), rtol=1e-12)
    rows = [by_hand(RATES), by_hand(2 * RATES)]
    np.testing.assert_allclose(stacked, rows, rtol=1e-12)


def test_gradients_at_coinciding_points_are_finite_and_zero_for_distances():
    """Square roots and magnitudes have rules of their own at zero; one program for all kernels."""
    X = house.data("duplicates").X
    scale = house.dtype().type(SCALE)
    with_roots = ("Laplacian", "Exponential", "Matern32", "Matern52")
    rough = [getattr(kernels, name)(scale) for name in with_roots]
    rough.append(scale * Distance())

    def total(rough, X):
        return sum(gram(kernel, X).sum() for kernel in rough)

    def distances(scale, X, Y):
        stationary_kernels = [getattr(kernels, name)(scale) for name in VALUES]
        lengths = [kernel_distance(kernel, X, Y) for kernel in stationary_kernels]
        return sum(lengths).sum()

    @jax.jit
    def derivatives(X):
        slopes = jax.grad(total, (0, 1))(rough, X)
        return slopes, jax.value_and_grad(distances, (0, 1, 2))(scale, X, X)

    slopes, (length, flat) = derivatives(X)
    for leaf in jax.tree.leaves(slopes):
        assert np.isfinite(leaf).all()
    assert length == 0
    for leaf in flat:
        assert not np.any(leaf)


@pytest.mark.float64
def test_laplacian_has_no_slope_in_a_coordinate_that_points_share():
    """A symmetric difference is 0 there; the kernel is exp(-|x_2 - y_2|) of the one coordinate that differs."""
    x = np.array([1.0, 2.0, 3.0])
    y = np.array([1.0, 2.0, 4.0])
    kernel = Laplacian(1.0)
    functions = (
        lambda z: kernel(z, y),
        lambda z: gram(kernel, z[None], y[None])[0, 0],
        lambda z: gram_matmul(kernel, z[None], y[None], np.ones(1))[0],
    )

    @jax.jit
    def derivatives(z):
        transforms = (jax.grad, jax.jacfwd, jax.hessian)
        return [[of(f)(z) for of in transforms] for f in functions]

    value = math.exp(-1.0)
    for reverse, forward, hessian in derivatives(x):
        np.testing.assert_allclose(reverse, [0, 0, value], atol=1e-15)
        np.testing.assert_allclose(forward, [0, 0, value], atol=1e-15)
        np.testing.assert_allclose(hessian, np.diag([0, 0, value]), atol=1e-15)
    for reverse, forward, _ in derivatives(y):
        assert not np.any([reverse, forward])


def test_curvature_at_coinciding_points_is_exact():
    """The Hessian of K(., y) at y is -curvature / lengthscale^2 times the identity."""
    curvatures = {"Gaussian": 1, "Cauchy": 2, "Matern32": 3, "Matern52": 5 / 3}
    y = house.data().X[0]

    @jax.jit
    def hessians(y):
        smooth = {name: LITERAL[name][0] for name in curvatures}
        return {name: jax.hessian(kernel)(y, y) for name, kernel in smooth.items()}

    for name, hessian in hessians(y).items():
        exact = -curvatures[name] / SCALE**2 * np.eye(len(y))
        tolerance = 8 * house.eps()
        np.testing.assert_allclose(hessian, exact, rtol=tolerance, atol=tolerance)
