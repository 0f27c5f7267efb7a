"""Kernels against literal formulas, SciPy and scikit-learn: values, constants, algebra, slopes where points meet."""

import dataclasses
import functools
import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import KERNEL, close, eps
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


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Diagonal:
    """A callable PyTree of a user: exp(-sum_j rates_j (x_j - y_j)^2)."""

    rates: jax.Array

    def __call__(self, x, y):
        return jnp.exp(-jnp.sum(self.rates * (x - y) ** 2))


def diagonal_formula(x, y):
    return np.exp(-((x - y) ** 2 @ RATES))


def shifted_rational(x, y):
    return 1 / (1 + distance(x, y) ** 2 / 2)


def polynomial_of_kernels(x, y):
    decay = rational_formula(x, y) * cauchy(x, y)
    return decay * inner(x, y) + (inner(x, y) + 1) ** 2 / 2


gaussian = stationary("Gaussian")
cauchy = stationary("Cauchy")
mixture = rational * Cauchy(SCALE) * Linear() + 0.5 * Polynomial(2)

LITERAL = {name: (getattr(kernels, name)(SCALE), stationary(name)) for name in VALUES}
LITERAL["Linear"] = (Linear(), inner)
LITERAL["Polynomial"] = (Polynomial(3, 0.5, SCALE), cubic)
LITERAL["Distance"] = (Distance(), distance)
LITERAL["scaled"] = (2.5 * Distance(), lambda x, y: 2.5 * distance(x, y))
LITERAL["sum"] = (
    rational + 0.5 * KERNEL,
    lambda x, y: rational_formula(x, y) + gaussian(x, y) / 2,
)
LITERAL["polynomial of kernels"] = (mixture, polynomial_of_kernels)
LITERAL["function"] = (as_kernel(rational), rational_formula)
LITERAL["class"] = (Rational(2.0), shifted_rational)


@functools.cache
def values_of_all(dtype):
    """Return Gram matrices, a value and distances of all kernels, from one program for all of them."""
    data = house.data()

    def evaluate(kernel, X, Y):
        distances = kernel_distance(kernel, X, Y) if kernel.psd else 0
        return gram(kernel, X), gram(kernel, X, Y), kernel(X[0], Y[0]), distances

    def evaluate_all(X, Y):
        return {name: evaluate(kernel, X, Y) for name, (kernel, _) in LITERAL.items()}

    return jax.device_get(jax.jit(evaluate_all)(data.X, data.Y))


def pairwise(formula, X, Y):
    return formula(np.float64(X)[:, None], np.float64(Y)[None])


@pytest.mark.parametrize("name", LITERAL)
def test_values_and_distances_are_the_literal_formula(name):
    kernel, formula = LITERAL[name]
    data = house.data()
    within, across, value, distances = values_of_all(house.dtype())[name]
    exact_within = pairwise(formula, data.X, data.X)
    exact = pairwise(formula, data.X, data.Y)
    diagonal = np.diag(exact_within) + np.diag(pairwise(formula, data.Y, data.Y))
    # Products of coordinates enter exponents and powers: their rounding counts in units of |x|^2.
    reach = 1 + (data.X**2).sum(axis=1).max()
    largest = np.abs([exact_within, exact]).max() + 1
    tolerance = 20 * eps() * reach * largest
    close(within, exact_within, tolerance)
    close(across, exact, tolerance)
    close(value, exact[0, 0], tolerance)
    # Distances are of size 1 here; tiny ones are judged in the tests of `jaxkern.gram`.
    if kernel.psd:
        close(distances**2, diagonal - 2 * np.diag(exact), tolerance)
    # No rounding of a diagonal: distances of a point to itself are exactly zero.
    if name in VALUES or name == "Distance":
        close(np.diag(within), kappa(kernel))


def test_kernels_say_whether_their_gram_matrices_are_positive_semidefinite():
    X = house.data().X
    for name, (kernel, formula) in LITERAL.items():
        eigenvalues = np.linalg.eigvalsh(pairwise(formula, X, X))
        is_psd = eigenvalues[0] >= -1e-12 * eigenvalues[-1]
        assert is_psd == kernel.psd, name
    assert not (KERNEL + Distance()).psd
    assert not (2 * Distance() * Linear()).psd


def test_peers_agree_on_formulas_and_conventions():
    """Lengthscales of the constructors are judged through the formulas, which take no program."""
    data = house.data()
    X = np.float64(data.X)
    Y = np.float64(data.Y)
    peers = [
        (Gaussian.from_gamma(0.3), rbf_kernel(X, Y, gamma=0.3)),
        (Gaussian.from_width(0.8), np.exp(-(cdist(X, Y) ** 2) / 0.8**2)),
        (Exponential.from_gamma(0.8), Matern(1 / 0.8, nu=0.5)(X, Y)),
        (Laplacian.from_gamma(0.3), laplacian_kernel(X, Y, gamma=0.3)),
        (Matern32(0.8), Matern(0.8, nu=1.5)(X, Y)),
        (kernels.Matern52(0.8), Matern(0.8, nu=2.5)(X, Y)),
    ]
    for kernel, K in peers:
        formula = VALUES[type(kernel).__name__]
        close(formula((X[:, None] - Y) / kernel.lengthscale), K, 1e-12)
    K = polynomial_kernel(X, Y, degree=3, gamma=1 / SCALE**2, coef0=0.5)
    close(pairwise(cubic, X, Y) / K, 1, 1e-12)


def test_kappa_follows_sums_products_and_multiples():
    assert kappa(3.0 * KERNEL + Laplacian(1.0)) == 4.0
    assert kappa(KERNEL * 3.0 * Cauchy(1.0)) == 3.0
    assert kappa(Linear() + KERNEL) == kappa(Polynomial()) == math.inf
    zero = 0 * Linear()
    assert kappa(zero) == lipschitz(zero) == 0
    stated = FromFunction(rational, sup=1.0, slope=2.0)
    assert (kappa(stated), lipschitz(stated)) == (1.0, 2.0)


def test_a_kernel_of_ones_own_may_state_its_constants():
    # The slope of 1 / (1 + t^2) is below 0.65.
    class Bounded(Rational):
        kappa = 1.0

        def lipschitz(self, dim):
            return 0.65 / self.scale**0.5

    kernel = pytree(Bounded)(4.0)
    assert kappa(2 * kernel) == 2
    assert lipschitz(2 * kernel) == 0.65


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("name", [*VALUES, "Distance"])
def test_lipschitz_constant_is_the_steepest_slope(name, dim):
    """Along the diagonal of R^d every kernel of the package is steepest; a search says so in test_lengthscales.py."""
    kernel, formula = LITERAL[name]
    constant = lipschitz(kernel, dim)
    t = np.linspace(0, 3, 5001)  # slopes are attained before two lengthscales
    diagonal = t[:, None] * np.ones(dim) / math.sqrt(dim)
    slope = np.abs(np.diff(formula(diagonal, 0))).max() / t[1]
    assert 0.999 * constant <= slope <= constant * (1 + 1e-9)


def test_lipschitz_constants_follow_sums_products_and_multiples():
    """A product moves by kappa times the other one's slope: both are 1 here, and infinite for the distance."""
    steep = lipschitz(KERNEL)
    matern = Matern32(0.8)
    other = lipschitz(matern)
    assert lipschitz(3.0 * KERNEL + matern) == pytest.approx(3 * steep + other)
    assert lipschitz(2 * KERNEL * matern) == pytest.approx(2 * (steep + other))
    assert lipschitz(Distance() * matern) == math.inf


@pytest.mark.parametrize(
    "factor", [2, 2.0, np.float64(2), np.float32(2), jnp.asarray(2.0, jnp.float32)]
)
def test_factors_of_every_type_scale_from_both_sides(factor):
    """A NumPy scalar on the left would make an array of kernels."""
    for scaled in (factor * KERNEL, KERNEL * factor):
        assert isinstance(scaled, Scaled)
        assert scaled.kernel is KERNEL
        assert float(scaled.factor) == 2


def test_every_callable_of_two_points_is_a_kernel():
    data = house.data()
    rates = data.X.dtype.type(RATES)

    def function(rates, x, y):
        return jnp.exp(-jnp.sum(rates * (x - y) ** 2))

    partial = functools.partial(function, rates)
    callables = [
        lambda x, y: function(rates, x, y),
        Diagonal(jnp.asarray(rates)),
        Diagonal(rates),
        partial,
        jax.jit(partial),
        Diagonal(rates).__call__,
        # A kernel of the package takes a function as a term.
        KERNEL * 0 + Diagonal(rates),
    ]

    @jax.jit
    def matrices(X, Y):
        return [gram(kernel, X, Y) for kernel in callables]

    K = pairwise(diagonal_formula, data.X, data.Y)
    for matrix in matrices(data.X, data.Y):
        close(matrix, K, 20 * eps())


def test_a_users_function_works_wherever_a_kernel_does():
    """Traced: values come from Gram matrices, which are tested above."""

    def evaluate(X, values):
        function = rkhs.Function(rational, X, values)
        sigma = rkhs.Covariance(rational, X)
        phi = features.kernel_jl(house.key(), rational, X, num_features=2)
        return sigma.inner(function, function, power=1), phi(X)

    data = house.data()
    jax.eval_shape(evaluate, data.X, data.values[:, 0])


@pytest.mark.float64
def test_what_a_function_closes_over_has_derivatives():
    """By hand: of a number in a nested closure or in a default, and of the leaves of a PyTree."""
    X = house.data().X
    Y = house.data().landmarks
    ones = np.ones(len(Y))

    def product(kernel):
        # All columns are in a tile, and there are more rows: blocks have a rule for derivatives.
        return gram_matmul(kernel, X, Y, ones, block_size=len(Y)).sum()

    def of_closure(s):
        cells = [lambda square: jnp.exp(-s * square)]
        return product(lambda x, y: cells[0](jnp.sum((x - y) ** 2)))

    def of_default(s):
        return product(lambda x, y, s=s: jnp.exp(-s * jnp.sum((x - y) ** 2)))

    @jax.jit
    def slopes(s, rates):
        numbers = [jax.grad(function)(s) for function in (of_closure, of_default)]
        return numbers, jax.grad(product)(Diagonal(rates)).rates

    numbers, leaf = slopes(0.3, RATES)
    moves = (X[:, None] - Y) ** 2
    squares = moves.sum(axis=2)
    # Sums over some 200 pairs.
    tolerance = 1e3 * eps()
    close(numbers, -(squares * np.exp(-0.3 * squares)).sum(), tolerance)
    close(leaf, -np.einsum("ij,ijk->k", np.exp(-moves @ RATES), moves), tolerance)


def test_gradients_at_coinciding_points_are_finite_and_zero_for_distances():
    """Square roots and magnitudes have rules of their own at zero; one program for all kernels."""
    X = house.data("duplicates").X
    # An array of the dtype of the points has a derivative; a number of Python has none.
    scale = house.dtype().type(SCALE)
    with_roots = ("Laplacian", "Exponential", "Matern32", "Matern52")
    rough = [getattr(kernels, name)(scale) for name in with_roots]
    rough.append(scale * Distance())

    def total(rough, X):
        return sum(gram(kernel, X).sum() for kernel in rough)

    def distances(scale, X, Y):
        lengths = [
            kernel_distance(getattr(kernels, name)(scale), X, Y) for name in VALUES
        ]
        return sum(lengths).sum()

    @jax.jit
    def derivatives(X):
        slopes = jax.grad(total, (0, 1))(rough, X)
        return slopes, jax.value_and_grad(distances, (0, 1, 2))(scale, X, X)

    slopes, flat = derivatives(X)
    for leaf in jax.tree.leaves(slopes):
        assert np.isfinite(leaf).all()
    for leaf in jax.tree.leaves(flat):
        close(leaf, 0)


@pytest.mark.float64
def test_laplacian_has_no_slope_in_a_coordinate_that_points_share():
    """A symmetric difference is 0 there; the kernel is exp(-|x_2 - y_2|) of the one coordinate that differs."""
    x = np.array([1.0, 2.0, 3.0])
    y = np.array([1.0, 2.0, 4.0])
    kernel = Laplacian(1.0)

    def value(z):
        return kernel(z, y)

    def entry(z):
        return gram(kernel, z[None], y[None])[0, 0]

    @jax.jit
    def derivatives(z):
        return [
            (jax.grad(f)(z), jax.jacfwd(f)(z), jax.hessian(f)(z))
            for f in (value, entry)
        ]

    slope = np.array([0, 0, math.exp(-1.0)])
    for reverse, forward, hessian in derivatives(x):
        close(reverse, slope, 1e-15)
        close(forward, slope, 1e-15)
        close(hessian, np.diag(slope), 1e-15)
    # All coordinates are shared where the points meet.
    for reverse, forward, _ in derivatives(y):
        close(reverse, 0)
        close(forward, 0)


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
        close(hessian, exact, 16 * eps())
