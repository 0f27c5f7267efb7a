"""Planned Fourier features keep kernel distances of whatever points hypothesis draws: Monte Carlo at planned sizes.

An example is a set of points, a lengthscale and a seed. A trial is one draw of a map; it fails if some pair of points
has a relative error above EPS. At the planned size a trial fails with probability DELTA at most, so that more than
ALLOWED failures among DRAWS independent ones have probability 1e-9 at most: the false-alarm rate of an example, and
1e-7 that of the module. A map that fails every second time is found with a probability above 0.99.
"""

import math
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import optimize, special, stats

from jaxkern import features, plan
from jaxkern.gram import kernel_distance
from jaxkern.kernels import Gaussian

N = 24
EPS, DELTA, DRAWS = 0.3, 0.1, 80
ALLOWED = int(stats.binom.isf(1e-9, DRAWS, DELTA))


# The smallest distances are 1e-8: features of size 1 tell them apart to eight digits.
pytestmark = pytest.mark.usefixtures("double_precision")


def examples(scales, spreads):
    """Sets of points, in units of the lengthscale, by what makes them hard: sizes in powers of ten."""
    return st.fixed_dictionaries(
        {
            "seed": st.integers(0, 2**32 - 1),
            "simplex": st.booleans(),  # orthonormal points, the worst case when they are close; for dim = N
            "scale": scales,
            "spread": spreads,  # half of the points are closer together by this
            "anisotropy": st.just(0.0)
            | st.floats(0, 3),  # the last coordinate is smaller by this than the first
            "offset": st.sampled_from([0.0, 1.0, 100.0]),
            "copies": st.just(0) | st.integers(1, N // 2),
            "lengthscale": st.floats(-3, 3),
        }
    )


def points(drawn, dim):
    rng = np.random.default_rng(drawn["seed"])
    X = np.eye(N) if drawn["simplex"] and dim == N else rng.normal(size=(N, dim))
    X = X * 10 ** (drawn["scale"] - drawn["anisotropy"] * np.linspace(0, 1, dim))
    X[: N // 2] *= 10 ** -drawn["spread"]
    X[N - drawn["copies"] :] = X[0]
    return X + drawn["offset"]


@partial(jax.jit, static_argnames=("make", "size"))
def trials(key, X, lengthscale, *, make, size):
    """Return the largest relative error over all pairs for each draw, and the largest distance of two equal points.

    Phases are rounded by eps times their size, and a distance of features by a few times that, which is no error.
    """
    kernel = Gaussian(lengthscale)
    i, j = np.triu_indices(N, 1)
    true = kernel_distance(kernel, X[i], X[j])
    slack = (
        20
        * jnp.finfo(X.dtype).eps
        * (1 + math.sqrt(X.shape[1]) * jnp.max(jnp.abs(X)) / lengthscale)
    )

    def one(key):
        Z = make(key, kernel, X.shape[1], num_frequencies=size)(X)
        found = jnp.sqrt(jnp.sum((Z[i] - Z[j]) ** 2, axis=1))
        errors = jnp.where(
            true > 0, (jnp.abs(found - true) - slack) / jnp.where(true > 0, true, 1), 0
        )
        return jnp.max(errors), jnp.max(jnp.where(true > 0, 0, found))

    return jax.lax.map(one, jax.random.split(key, DRAWS), batch_size=20)


def failures(drawn, make, size, dim, *, eps=EPS):
    lengthscale = 10.0 ** drawn["lengthscale"]
    X = jnp.asarray(points(drawn, dim) * lengthscale)
    key = jax.random.key(drawn["seed"])
    errors, coincident = trials(key, X, jnp.asarray(lengthscale), make=make, size=size)
    assert np.max(coincident) <= 1e-13
    return int(np.sum(np.asarray(errors) > eps))


WORST = {
    "seed": 1,
    "simplex": True,
    "scale": -4.0,
    "spread": 0.0,
    "anisotropy": 0.0,
    "offset": 0.0,
    "copies": 0,
}
WORST |= {"lengthscale": 0.0}
"""Orthonormal points close together; every property starts with them, and every control is caught there."""

PLANNED = plan.fourier(EPS, DELTA, num_points=N).num_frequencies


@pytest.mark.parametrize("dim", [pytest.param(2, marks=pytest.mark.slow), N])
@given(drawn=examples(st.floats(-4, 1.5), st.floats(0, 3)))
@example(drawn=WORST)
def test_paired_features_of_the_planned_size_keep_all_distances(dim, drawn):
    assert failures(drawn, features.paired_fourier, PLANNED, dim) <= ALLOWED


def log_mgf(s):
    """Return log E exp(s chi2_1 2 sin^2 theta), theta uniform: an elliptic integral of parameter 4 s < 1.

    With h = <w, x - y> / 2 and theta = <w, x + y> / 2 + b, uniform and independent of w, a shifted feature has
    2 (cos(<w, x> + b) - cos(<w, y> + b))^2 = 4 sin^2 h * 2 sin^2 theta, where 4 sin^2 h is the paired term. That,
    over its mean, is below chi2_1 in the convex order (Theorem A), which an independent nonnegative factor keeps.
    Given theta the expectation is (1 - 4 s sin^2 theta)^(-1/2).
    """
    return math.log(2 / math.pi * special.ellipk(4 * s))


@cache
def shifted_size(eps, delta, num_points):
    """Plan shifted features by Chernoff's bound and that mgf: every s gives a bound, the best one is searched for."""

    def exponent(u, low, high):
        return -optimize.minimize_scalar(
            lambda s: log_mgf(s) - s * u, bounds=(low, high), method="bounded"
        ).fun

    above, below = (
        exponent((1 + eps) ** 2, 0, 0.25 - 1e-9),
        exponent((1 - eps) ** 2, -50, 0),
    )
    pairs = num_points * (num_points - 1) / 2
    size = 1
    while pairs * (math.exp(-size * above) + math.exp(-size * below)) > delta:
        size += 1
    return size


def test_the_moments_of_shifted_terms_are_the_elliptic_integral():
    theta = np.linspace(0, np.pi, 100_001)[:-1]
    for s in (-3.0, -0.2, 0.1, 0.2):
        assert np.mean((1 - 4 * s * np.sin(theta) ** 2) ** -0.5) == pytest.approx(
            math.exp(log_mgf(s)), rel=1e-12
        )


@given(drawn=examples(st.floats(-4, 1.5), st.floats(0, 3)))
@example(drawn=WORST)
def test_shifted_features_need_more_and_then_keep_all_distances(drawn):
    size = shifted_size(EPS, DELTA, N)
    assert PLANNED < size < 4 * PLANNED
    assert failures(drawn, features.shifted_fourier, size, N) <= ALLOWED


@given(drawn=examples(st.floats(-5, -4), st.just(0.0)))
@example(drawn=WORST)
def test_orthogonal_features_keep_all_distances_of_points_close_together(drawn):
    """There the plan for independent frequencies covers them; nothing is said here of points far apart.

    For a unit vector e a block of k <= dim frequencies has <w_j, e> = R_j u_j with (u_j^2) the squares of k coordinates
    of a uniform unit vector, S their sum, and independent chi^2_dim R_j^2. Given u, the weights u_j^2 / S add to 1, so
    sum_j u_j^2 R_j^2 is below S R_1^2 in the convex order, whose law is chi2_k: that of independent frequencies.
    The points are closer than 2e-3, so 2 - 2 cos <w, x - y> is <w, x - y>^2 to a relative 4e-5 where |<w, e>| < 10, ten
    standard deviations. EPS is raised by more than that.
    """
    assert (
        failures(drawn, features.orthogonal_fourier, PLANNED, N, eps=EPS + 1e-4)
        <= ALLOWED
    )


@pytest.mark.slow
def test_sizes_that_are_too_small_are_caught():
    """A quarter of the orthogonal frequencies is not, in 24 dimensions: orthogonality lowers the variance as much."""
    assert failures(WORST, features.paired_fourier, PLANNED // 4, N) > ALLOWED
    assert failures(WORST, features.shifted_fourier, PLANNED, N) > ALLOWED
    assert (
        failures(WORST, features.orthogonal_fourier, PLANNED // 8, N, eps=EPS + 1e-4)
        > ALLOWED
    )
