"""The orders of |K - E K| in n, d and sigma / tau, as derived and then measured: slopes on log scales.

Every slope is that of a mean over independent draws at five sizes or more, judged as `proofs_check` judges rates: its
confidence interval, at level ALARM, must lie within `exponent +- width`. It is at most half as wide as that, and the
exact slope of a design is within the other half, so that a true order is rejected with probability 1e-9 at most (as far
as means of many draws are normal), 2e-8 in the module. An exponent is refuted where the interval is disjoint from
exponent +- width.

What holds, with s = sigma / tau and L = 1 / (tau sqrt(e)):

- Gaussian kernel, centres one tau apart. |K - E K| is linear in the noise up to a relative O(s), and that part depends
  on n coordinates of a point only, whatever d >= n: E |K - E K| is of the order s / sqrt(d). All pairs have the same
  variance v, hence E |K - E K|_F^2 = n (n - 1) v exactly.
- Gaussian kernel, all centres in one place. The linear part vanishes: E |K - E K|_F^2 = n (n - 1) (2 s^4 / d), up to a
  relative O(s^2). (10), of the order s, has no right order there.
- K = x + y, d = 1, standard normal w: |K - E K|_F^2 = 2 n |w|^2 + 2 (sum w)^2, of mean 2 n (n + 1), and
  |K - E K| = V = sqrt(n) |w| + |sum w|, of the order n, but V - V' of the order sqrt(n) for an independent V'. The
  variance of V is n (1/2 + 1 - 2 / pi + 0.8 / sqrt(n) + O(1/n)), which moves the slope from 8 to 64 points by 0.04.
"""

import math
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import kernels, measures, metrics, problems
from jaxkern.bounds import concentration
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian
from proofs_check.claim import Control, Rate, Setting
from proofs_check.engine.judge import judge

ALARM = 1e-9
N, MOST, DRAWS = 16, 128, 400
DIMS, NOISES, SIZES = (16, 32, 48, 80, 128), (0.0025, 0.005, 0.01, 0.02, 0.04), (4, 6, 8, 12, 16)
SMALL = 0.05
SIMPLEX, POINT = math.sqrt(0.5) * np.eye(N, MOST), np.zeros((N, MOST))

pytestmark = pytest.mark.usefixtures("double_precision")  # deviations go down to 1e-6 of the entries


@jax.jit
def deviations(key, centres, noise, kept, mean):
    """Return |K - E K| and |K - E K|_F of the kept points for every draw."""

    def one(key):
        K = gram(Gaussian(1.0), problems.perturb(key, centres, noise).points)
        E = jnp.where(kept[:, None] & kept[None, :], K - mean, 0)
        zero = jnp.zeros_like(E)
        return N * metrics.spectral_error(zero, E), N**2 * metrics.frobenius_error(zero, E)

    return jax.lax.map(one, jax.random.split(key, DRAWS), batch_size=20)


def drawn(centres, *, dim=64, noise=SMALL, num_points=N):
    """Return |K - E K| and |K - E K|_F of draws with noise of the given length in the first `dim` coordinates.

    Coordinates without noise in which all centres agree change no distance, and share one compilation over dimensions.
    """
    assert dim >= N or not np.any(centres)
    X = jnp.asarray(centres)
    model = measures.DiagonalNoise(jnp.asarray(np.where(np.arange(MOST) < dim, noise**2 / dim, 0)))
    mean = measures.mean_kernel(Gaussian(jnp.asarray(1.0)), X, model)
    key = jax.random.fold_in(jax.random.key(7), round(1e6 * noise) * 1000 + 100 * num_points + dim)
    V, F = deviations(key, X, model, jnp.arange(N) < num_points, mean)
    return np.asarray(V), np.asarray(F)


def verdict(samples, exponent, width=0.1):
    """Judge {size: statistics} and return the status, after a look at the width of the confidence interval."""
    settings = tuple(Setting(str(size), None, {"size": float(size)}) for size in samples)
    rate = Rate(None, "size", exponent, width)
    found = judge(Control("rate", rate, settings), list(samples.values()), ALARM)
    assert found.facts["half_width"] <= width / 2
    return found.status


# --- Gaussian kernel, centres one lengthscale apart -------------------------------------------------------------------


def test_the_deviation_falls_with_the_root_of_the_dimension():
    found = {d: drawn(SIMPLEX, dim=d) for d in DIMS}
    for norm in (0, 1):
        samples = {d: both[norm] / N for d, both in found.items()}
        assert verdict(samples, -0.5) == "certified"
        assert verdict(samples, -1.0) == verdict(samples, -0.25) == "refuted"


def test_the_deviation_grows_with_small_noise():
    found = {s: drawn(SIMPLEX, noise=s) for s in NOISES}
    for norm in (0, 1):
        samples = {s: both[norm] / N for s, both in found.items()}
        assert verdict(samples, 1.0) == "certified"
        assert verdict(samples, 2.0) == verdict(samples, 0.5) == "refuted"


def test_the_square_grows_with_the_number_of_pairs():
    samples = {n * (n - 1): drawn(SIMPLEX, num_points=n)[1] ** 2 for n in SIZES}
    assert verdict(samples, 1.0, width=0.12) == "certified"
    assert verdict(samples, 0.5, width=0.12) == "refuted"


# --- Gaussian kernel, all centres in one place ------------------------------------------------------------------------


def test_at_one_centre_the_deviation_grows_with_the_square_of_the_noise():
    samples = {s: drawn(POINT, noise=s)[1] for s in NOISES}
    assert verdict(samples, 2.0) == "certified"
    assert verdict(samples, 1.0) == "refuted"


def test_at_one_centre_the_square_falls_with_the_dimension():
    samples = {d: drawn(POINT, dim=d)[1] ** 2 for d in (4, 8, *DIMS)}
    assert verdict(samples, -1.0, width=0.16) == "certified"
    assert verdict(samples, -0.5, width=0.16) == "refuted"


@pytest.mark.parametrize(("squared_distance", "slope"), [(1.0, 1.0), (0.0, 2.0)])
def test_the_orders_are_those_of_the_exact_variances(squared_distance, slope):
    """The slopes of sqrt(var K_ij) between neighbouring sizes."""

    def root(noise, dim):
        numbers = {"squared_distance": squared_distance, "noise_variance": 2 * noise**2 / dim, "lengthscale": 1.0}
        return math.sqrt(concentration.gaussian_pair_variance(**numbers, dim=dim).value)

    over_noise = np.diff(np.log([root(s, 64) for s in NOISES])) / np.diff(np.log(NOISES))
    np.testing.assert_allclose(over_noise, slope, atol=0.01)
    over_dim = np.diff(np.log([root(SMALL, d) for d in DIMS])) / np.diff(np.log(DIMS))
    np.testing.assert_allclose(over_dim, -0.5, atol=0.01)


# --- K = x + y --------------------------------------------------------------------------------------------------------

COUNTS, REPEATS = (8, 14, 24, 40, 64), 4000
SUM = kernels.as_kernel(lambda x, y: x[0] + y[0])


def norm_of_sums(w, num_points):
    """Return |w 1' + 1 w'|: its eigenvalues are sum w +- sqrt(n) |w|."""
    return math.sqrt(num_points) * jnp.linalg.norm(w) + jnp.abs(jnp.sum(w))


@jax.jit
def sums(key):
    """Return |K - E K| and |K - E K|_F of K = x + y for draws of COUNTS standard normal points, all independent."""
    rows = np.split(np.arange(sum(COUNTS)), np.cumsum(COUNTS)[:-1])

    def one(key):
        X = problems.GaussianLaw().sample(key, num_points=sum(COUNTS), dim=1)
        matrices = [gram(SUM, X[i]) for i in rows]  # and E K = 0
        return [(norm_of_sums(jnp.diagonal(K) / 2, len(K)), jnp.linalg.norm(K)) for K in matrices]

    return jax.lax.map(one, jax.random.split(key, REPEATS), batch_size=200)


@cache
def all_sums():
    return {n: np.asarray(both) for n, both in zip(COUNTS, sums(jax.random.key(3)), strict=True)}


def test_the_norm_of_sums_is_its_closed_form():
    X = problems.GaussianLaw().sample(jax.random.key(0), num_points=20, dim=1)
    expected = np.linalg.norm(np.asarray(gram(SUM, X)), 2)
    assert float(norm_of_sums(X[:, 0], 20)) == pytest.approx(expected, rel=500 * float(np.finfo(X.dtype).eps))


def test_the_deviation_of_sums_grows_with_the_number_of_points():
    """(4) has the right order: exactly n (n + 1) for the square, and n for the norm, up to a relative O(n^(-1/2))."""
    squares = {n * (n + 1): F**2 for n, (_, F) in all_sums().items()}
    assert verdict(squares, 1.0) == "certified"
    norms = {n: V for n, (V, _) in all_sums().items()}
    assert verdict(norms, 0.5, width=0.12) == "refuted"


def test_the_square_of_sums_attains_its_bound():
    """The mean square is 2 n (n + 1), and a tenth less is found: one standard error is less than 1 % of it."""
    for n, (_, F) in all_sums().items():
        bound = concentration.frobenius_mean_lc(lipschitz=1.0, omega=1.0, scale=1.0, num_points=n).value ** 2
        error = np.std(F**2) / math.sqrt(REPEATS)
        assert abs(np.mean(F**2) - bound) < 6.2 * error < 0.07 * bound


def test_the_deviation_from_its_mean_grows_with_the_root_of_the_number_of_points():
    """The sentence after Proposition 3, for V - E V and not for V."""
    samples = {n: np.abs(V[::2] - V[1::2]) for n, (V, _) in all_sums().items()}
    assert verdict(samples, 0.5, width=0.15) == "certified"
    assert verdict(samples, 1.0, width=0.15) == verdict(samples, 0.0, width=0.15) == "refuted"
