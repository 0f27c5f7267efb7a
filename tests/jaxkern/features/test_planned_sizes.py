"""Fourier features of planned sizes keep Gram matrices and distances of whatever points are drawn: Monte Carlo.

A trial is one draw of a map. It fails if |G - Ghat|_2 / n, or the relative error of the distance of some pair, exceeds
the error of the plan, which has probability DELTA at most. More than ALLOWED failures among DRAWS independent trials
have probability 1e-9 at most: the false-alarm rate of an example, and 1e-7 that of the module. A map that fails every
second time is found with a probability above 0.99.
"""

import dataclasses
import functools
import itertools
import math

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from scipy import stats
from support.drawn import ALARM, PLAIN, VALUES, N, drawn

from jaxkern import features, kernels, metrics, plan
from jaxkern.bounds import fourier
from jaxkern.gram import gram, kernel_distance
from jaxkern.kernels import Gaussian

# Phases of heavy tails, and distances of 1e-8, are noise in single precision.
pytestmark = pytest.mark.float64

DELTA = 0.1
DRAWS = 80
ALLOWED = int(stats.binom.isf(ALARM, DRAWS, DELTA))
OF_MATRICES = 0.2
OF_DISTANCES = 0.3
paired = features.paired_fourier
shifted = features.shifted_fourier
orthogonal = features.orthogonal_fourier

EQUAL = dataclasses.replace(PLAIN, arrangement="nearly equal", lengthscale=-2.0)
"""Nearly equal points: G has one eigenvalue, of nearly n, and features are judged by their norms."""


def points_of(case):
    """Return the drawn points (N, 3) and their lengthscale."""
    return np.asarray(case.given()[1]), 10.0**case.lengthscale


def map_draws(function, key):
    # All draws at once would hold DRAWS matrices of features.
    return jax.lax.map(function, jax.random.split(key, DRAWS), batch_size=20)


@functools.partial(jax.jit, static_argnames=("make", "size"))
def matrix_errors(key, kernel, X, factor, *, make, size):
    """Return |G - Ghat|_2 / n for every draw."""
    G = gram(kernel, X)

    def error_of(key):
        Z = factor * make(key, kernel, X.shape[1], num_frequencies=size)(X)
        K = jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST)
        return metrics.spectral_error(G, K)

    return map_draws(error_of, key)


def matrix_failures(case, family, make, size, factor=1.0, points=points_of):
    X, lengthscale = points(case)
    kernel = family(np.float64(lengthscale))
    errors = matrix_errors(case.key(), kernel, X, factor, make=make, size=size)
    return np.sum(np.asarray(errors) > OF_MATRICES)


def shifted_matrix_size():
    """Invert the bound of `gram_spectral_shifted`, which has a closed form, and see that it is inverted."""
    eps = OF_MATRICES
    # Bernstein: 2 n exp(-m eps^2 / (2 + 4 eps / 3)) is at most DELTA.
    size = math.ceil(math.log(2 * N / DELTA) * (2 + 4 * eps / 3) / eps**2)
    bound = fourier.gram_spectral_shifted(eps=eps, num_points=N, num_features=size)
    assert bound.probability == pytest.approx(1 - DELTA, rel=1e-3)
    return size


# The plan of a stream whose sketch loses nothing.
STREAM = plan.streaming(OF_MATRICES, DELTA, num_points=N, sketch_size=10**12)
MATRIX_SIZES = {paired: STREAM.num_frequencies, shifted: shifted_matrix_size()}


def origin_of(case):
    """Return copies of the origin, where phases are the shifts alone."""
    return np.zeros((N, 3)), 1.0


def one_shift(key, kernel, dim, *, num_frequencies):
    """Draw a wrong map: all features have the same shift."""
    phi = shifted(key, kernel, dim, num_frequencies=num_frequencies)
    return dataclasses.replace(phi, shifts=jnp.full_like(phi.shifts, phi.shifts[0]))


BY_DEFAULT = [(paired, "Gaussian"), (shifted, "Cauchy")]
LONG = [
    pair for pair in itertools.product(MATRIX_SIZES, VALUES) if pair not in BY_DEFAULT
]


@pytest.mark.parametrize(
    ("make", "name"),
    [*BY_DEFAULT, *(pytest.param(*pair, marks=pytest.mark.slow) for pair in LONG)],
)
@given(case=drawn())
@example(case=EQUAL)
def test_features_of_the_planned_size_keep_the_gram_matrix(make, name, case):
    family = getattr(kernels, name)
    assert matrix_failures(case, family, make, MATRIX_SIZES[make]) <= ALLOWED


def test_a_root_of_two_that_was_dropped_is_caught():
    size = MATRIX_SIZES[shifted]
    failures = matrix_failures(EQUAL, kernels.Cauchy, shifted, size, factor=0.5**0.5)
    assert failures > ALLOWED


@pytest.mark.slow
def test_one_shift_for_all_features_and_a_thirtieth_of_the_planned_size_are_caught():
    """A quarter is not: the bound is for all spectra and all n, and the error of a mean of cosines is a normal one."""
    size = MATRIX_SIZES[shifted]
    failures = matrix_failures(EQUAL, kernels.Cauchy, one_shift, size, points=origin_of)
    assert failures > ALLOWED
    clusters = dataclasses.replace(PLAIN, arrangement="clusters")
    size = MATRIX_SIZES[paired] // 30
    assert matrix_failures(clusters, Gaussian, paired, size) > ALLOWED


@functools.partial(jax.jit, static_argnames=("make", "size"))
def distance_errors(key, lengthscale, X, *, make, size):
    """Return for each draw the largest relative error over all pairs, which is infinite if copies are apart.

    Phases are rounded by eps times their size, and a distance of features by a few times that, which is no error.
    """
    kernel = Gaussian(lengthscale)
    i, j = np.triu_indices(N, 1)
    exact = kernel_distance(kernel, X[i], X[j])
    apart = exact > 0
    dim = X.shape[1]
    reach = math.sqrt(dim) * jnp.max(jnp.abs(X)) / lengthscale
    slack = 20 * house.eps() * (1 + reach)

    def error_of(key):
        # Equal points must have equal features, whatever the map.
        Z = make(key, kernel, dim, num_frequencies=size)(X)
        lengths = jnp.sqrt(jnp.sum((Z[i] - Z[j]) ** 2, axis=1))
        errors = (jnp.abs(lengths - exact) - slack) / jnp.where(apart, exact, 1)
        of_copies = jnp.where(lengths <= 1e-13, 0, jnp.inf)
        return jnp.max(jnp.where(apart, errors, of_copies))

    return map_draws(error_of, key)


def wide_points_of(case):
    """Return points (N, N): orthonormal ones, the worst case if they are close, need as many columns.

    The columns after the drawn ones are zero, which leaves copies equal.
    """
    X, lengthscale = points_of(case)
    return np.pad(X, ((0, 0), (0, N - X.shape[1]))), lengthscale


def close_points_of(case):
    """Return points of distance 2e-4 lengthscales at most, orthonormal directions for the plain arrangement."""
    if case == PLAIN:
        return 1e-4 * np.eye(N), 1.0
    X, lengthscale = wide_points_of(case)
    moves = X - X[0]
    return moves * (1e-4 * lengthscale / np.abs(moves).max()), lengthscale


def distance_failures(case, make, size, points=wide_points_of, bound=OF_DISTANCES):
    X, lengthscale = points(case)
    errors = distance_errors(case.key(), lengthscale, X, make=make, size=size)
    return np.sum(np.asarray(errors) > bound)


PLANNED = plan.fourier(OF_DISTANCES, DELTA, num_points=N).num_frequencies


@given(case=drawn())
def test_paired_features_of_the_planned_size_keep_all_distances(case):
    assert distance_failures(case, paired, PLANNED) <= ALLOWED


def test_paired_features_of_the_planned_size_keep_the_worst_distances():
    assert distance_failures(PLAIN, paired, PLANNED, close_points_of) <= ALLOWED


@given(case=drawn())
@example(case=PLAIN)
def test_orthogonal_features_keep_all_distances_of_points_close_together(case):
    """There the plan for independent frequencies covers them; nothing is said here of points far apart.

    For a unit vector e a block of k <= dim frequencies has <w_j, e> = R_j u_j with (u_j^2) the squares of k coordinates
    of a uniform unit vector, S their sum, and independent chi^2_dim R_j^2. Given u, the weights u_j^2 / S add to 1, so
    sum_j u_j^2 R_j^2 is below S R_1^2 in the convex order, whose law is chi2_k: that of independent frequencies.
    The points are closer than 2e-3, so 2 - 2 cos <w, x - y> is <w, x - y>^2 to a relative 4e-5 where |<w, e>| < 10, ten
    standard deviations. The bound is raised by more than that.
    """
    failures = distance_failures(
        case, orthogonal, PLANNED, close_points_of, OF_DISTANCES + 1e-4
    )
    assert failures <= ALLOWED


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "size"),
    # Shifted features need more than paired ones: their terms have the factor 2 sin^2, of mean 1, besides.
    # A quarter of the orthogonal frequencies serves in 24 dimensions: orthogonality lowers the variance as much.
    [(paired, PLANNED // 4), (shifted, PLANNED), (orthogonal, PLANNED // 8)],
)
def test_sizes_that_are_too_small_are_caught(make, size):
    assert distance_failures(PLAIN, make, size, close_points_of) > ALLOWED
