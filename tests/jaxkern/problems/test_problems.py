"""Samplers: exact truths first, then laws and moments within stated errors.

A random check is a set of m z-scores below 5.5 in size, with false alarms below m * 4e-8 for normal averages, or a test
of Kolmogorov at a level of 1e-6. Seeds are fixed. Two programs draw everything: few rows, and many.
"""

import functools
import math
from functools import partial

import house
import jax
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_allclose, assert_array_equal
from scipy import integrate, stats
from support.jaxprs import largest_intermediate

from jaxkern import problems
from jaxkern.measures import DiagonalNoise, GeneralNoise, IsotropicNoise, RadialNoise

Z = 5.5
ROWS = 24
RADII = np.array([0.0, 1.0, 5.0])
CENTERS = [[0.0, 0.0, 0.0], [5.0, 0.0, 0.0]]
WEIGHTS = (0.2, 0.0, 0.8)
TILT = 3.0
LAWS = {
    "gaussian": problems.GaussianLaw(),
    "uniform image": problems.UniformImageLaw(),
    "softplus image": problems.SoftplusImageLaw(),
    "uniform": problems.UniformLaw(),
    "ramp": problems.RampLaw(2.0),
    "skewed": problems.SkewedLaw(TILT),
}
nested = partial(
    problems.nested_spheres, dim=3, radii=(0.0, 1.0, 5.0), noise=1.5, radial=False
)
SAMPLERS = {
    "nested": nested,
    "radial": partial(nested, radial=True),
    # A dimension at which squares of 10,000 numbers are added up.
    "without noise": partial(nested, dim=10_000, noise=0.0),
    "circles": problems.circles,
    "cluster": problems.cluster_in_cluster,
    "crescent": problems.crescent_full_moon,
    "mixture": partial(problems.gaussian_mixture, dim=1000),
    "centred": partial(
        problems.gaussian_mixture, dim=3, num_clusters=2, centers=CENTERS
    ),
    "noisy": partial(problems.random_noisy, dim=40, signal_dim=5),
}
CLUSTERS = dict(zip(SAMPLERS, (3, 3, 3, 2, 2, 2, 3, 2, 1), strict=True))
MANY = {"radial": 40_000, "cluster": 5000, "crescent": 5000, "noisy": 2000}
"""Rows for which there are statistics. 40,000 show a standard deviation that is off by 2.5 %."""


def noise_models():
    """Return models of noise around (1, 2, -2), and the covariance of each."""
    root = house.rng().normal(size=(3, 3))
    full = (root @ root.T).astype(house.dtype())
    variances = np.array([0.5, 0.0, 2.0], house.dtype())
    direction = np.array([1, 2, -2]) / 3
    return [
        (IsotropicNoise(0.7), 0.49 / 3 * np.eye(3)),
        (RadialNoise(1.3), 1.69 / 3 * np.outer(direction, direction)),
        (DiagonalNoise(variances), np.diag(variances)),
        (GeneralNoise(full), full),
        (GeneralNoise(np.tile(full, (2000, 1, 1))), full),
    ]


@functools.cache
def samples():
    """Return a problem of every sampler with its sigma_inf, all from the same key."""

    @jax.jit
    def draw(key):
        results = {}
        for name, sampler in SAMPLERS.items():
            problem = sampler(jax.random.clone(key), num_points=ROWS)
            results[name] = problem, problem.sigma_inf()
        return results

    return jax.device_get(draw(house.key()))


@functools.cache
def many():
    """Return samples that are large enough for statistics, by kind and name, all from the same key."""
    means = np.tile(np.array([1, 2, -2], house.dtype()), (2000, 1))

    @jax.jit
    def draw(key):
        new = partial(jax.random.clone, key)
        results = {"problems": {}, "laws": {}, "noise": [], "labels": []}
        for name, rows in MANY.items():
            results["problems"][name] = SAMPLERS[name](new(), num_points=rows)
        for name, law in LAWS.items():
            results["laws"][name] = law.sample(new(), num_points=40_000, dim=3)
        for model, _ in noise_models():
            noisy = problems.perturb(new(), means, model, law=LAWS["softplus image"])
            results["noise"].append(noisy)
        for sampler in (nested, problems.gaussian_mixture):
            drawn = sampler(new(), num_points=20_000, weights=WEIGHTS)
            results["labels"].append(drawn.labels)
        return results

    return jax.device_get(draw(house.key()))


def assert_moments(rows, covariance):
    """Assert that rows have mean 0 and this covariance."""
    rows = np.float64(rows)
    products = rows[:, :, None] * rows[:, None, :]
    assert_mean(rows, 0)
    assert_mean(products, covariance)


def assert_mean(values, expected):
    error = np.abs(values.mean(axis=0) - expected)
    # Moments that are zero in exact arithmetic are zero up to rounding.
    assert (error <= Z * values.std(axis=0) / len(values) ** 0.5 + 1e-6).all()


def assert_distribution(values, distribution):
    assert stats.kstest(np.float64(values), distribution).pvalue > 1e-6


@pytest.mark.parametrize("name", SAMPLERS)
def test_every_sampler_returns_a_problem_with_its_truth(name):
    problem, sigma_inf = samples()[name]
    assert problem.labels.tolist() == [i % CLUSTERS[name] for i in range(ROWS)]
    assert isinstance(problem.law, problems.GaussianLaw)
    assert jax.eval_shape(problem.mean_kernel, house.KERNEL).shape == (ROWS, ROWS)
    deviation = problem.noise.level / math.sqrt(problem.points.shape[1])
    assert_allclose(sigma_inf, deviation, rtol=10 * eps())


@pytest.mark.parametrize("name", MANY)
def test_the_first_rows_do_not_depend_on_how_many_there_are(name):
    few = samples()[name][0]
    problem = many()["problems"][name]
    assert_array_equal(few.labels, problem.labels[:ROWS])
    # Programs of different shapes may round the last digit differently; numbers are of the size of 10.
    close(few.points, problem.points[:ROWS], 500 * eps())
    close(few.means, problem.means[:ROWS], 500 * eps())


def test_means_lie_on_their_spheres_and_radial_noise_keeps_the_direction():
    """A sphere of radius zero is a point, which radial noise leaves."""
    isotropic = samples()["nested"][0]
    radial = samples()["radial"][0]
    noiseless = samples()["without noise"][0]
    for problem in (isotropic, noiseless):
        lengths = np.linalg.norm(np.float64(problem.means), axis=1)
        assert_allclose(lengths, RADII[problem.labels], rtol=30 * eps())
    assert_array_equal(noiseless.points, noiseless.means)
    assert_array_equal(isotropic.means, radial.means)
    assert (isotropic.points != isotropic.means).all()
    close(np.cross(radial.points, radial.means), 0, 100 * eps())
    moves = (radial.points != radial.means).any(axis=1)
    assert_array_equal(moves, radial.labels > 0)


def test_mixtures_have_the_centres_that_are_passed_or_ones_that_are_apart():
    centred = samples()["centred"][0]
    assert_array_equal(centred.means, CENTERS * (ROWS // 2))
    centers = np.float64(samples()["mixture"][0].means[:3])
    gaps = np.linalg.norm(centers - centers[[1, 2, 0]], axis=1)
    # The standard deviation of a gap is 2.2 % in 1,000 dimensions.
    assert_allclose(gaps, 5, rtol=0.12)


def test_weights_that_are_negative_or_zero_give_no_points():
    @jax.jit
    @jax.vmap
    def points(weights):
        options = {"num_points": 5, "weights": weights}
        mixture = problems.gaussian_mixture(house.key(), **options)
        return nested(house.key(), **options).points, mixture.points

    unfit = np.array([[3, -1, 1], [0, 0, 0]], house.dtype())
    assert all(np.isnan(leaf).all() for leaf in points(unfit))


SHIFT = math.sqrt(2 / math.pi) * TILT / math.sqrt(1 + TILT**2)
"""The mean of a skewed normal variable."""
SCALE = math.sqrt(1 - SHIFT**2)
"""Its standard deviation."""
SKEWED = stats.skewnorm(TILT, -SHIFT / SCALE, 1 / SCALE)


def moments(function, density, low, high):
    """Return mean and standard deviation of a function of a variable with this density."""
    first, _ = integrate.quad(lambda x: function(x) * density(x), low, high)
    second, _ = integrate.quad(lambda x: function(x) ** 2 * density(x), low, high)
    return first, math.sqrt(second - first**2)


SOFTPLUS = moments(lambda z: np.logaddexp(0, z), stats.norm.pdf, -12, 12)
RAMP = moments(float, lambda y: (1 + 2 * y) / 2, 0, 1)


def softplus_image(w):
    values = np.maximum(SOFTPLUS[0] + SOFTPLUS[1] * w, 1e-300)
    return stats.norm.cdf(np.log(np.expm1(values)))


def ramp(w):
    y = np.clip(RAMP[0] + RAMP[1] * w, 0, 1)
    return (y + y * y) / 2


uniform = stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf
DISTRIBUTIONS = stats.norm.cdf, uniform, softplus_image, uniform, ramp, SKEWED.cdf


@pytest.mark.parametrize(
    ("name", "distribution"), [*zip(LAWS, DISTRIBUTIONS, strict=True)]
)
def test_laws_are_centred_with_unit_covariance_and_the_distribution_they_name(
    name, distribution
):
    """Coordinates are independent, except under the skewed law, which has its distribution along (1, 1, 1)."""
    W = np.float64(many()["laws"][name])
    assert_moments(W, np.eye(3))
    along = W.sum(axis=1) / math.sqrt(3) if name == "skewed" else W[:, 0]
    assert_distribution(along, distribution)


def test_the_skewed_law_is_no_product():
    """E W_1^2 W_2 = E W_1 W_2^2 > 0 by symmetry of the direction, and 0 under a product law."""
    first, second, _ = np.float64(many()["laws"]["skewed"]).T
    assert_mean(first**2 * second - first * second**2, 0)
    with pytest.raises(AssertionError):
        assert_mean(first**2 * second, 0)


def test_constants_of_the_classes():
    """omega is the largest slope of the map, one over the least density, or one over the root of the curvature."""
    width = 2 * math.sqrt(3)
    steps = np.diff(SKEWED.logpdf(np.linspace(-5, 12, 3401)), 2)
    # The infimum of the curvature lies far out on the side of the tilt.
    curvature = -steps.max() / 0.005**2
    slope = width * stats.norm.pdf(0)
    expected = [1, slope, 1 / SOFTPLUS[1], width, 2 / RAMP[1], curvature**-0.5]
    assert_allclose([law.omega for law in LAWS.values()], expected, rtol=1e-3)
    assert problems.SkewedLaw(0.0).omega == 1
    assert "".join(law.lc_class for law in LAWS.values()) == "caabbc"


def test_directions_are_uniform():
    problem = many()["problems"]["radial"]
    there = problem.labels > 0
    directions = problem.means[there] / RADII[problem.labels[there], None]
    assert_moments(directions, np.eye(3) / 3)


def test_labels_may_be_drawn():
    """A component of weight zero never comes."""
    for labels in many()["labels"]:
        assert set(labels.tolist()) == {0, 2}
        assert_mean(np.float64(labels == 0), 0.2)


@pytest.mark.parametrize(
    ("name", "inner", "outer", "turn"), [("cluster", 4, 5, 1), ("crescent", 2, 3, 0.5)]
)
def test_plane_shapes_are_uniform_in_area(name, inner, outer, turn):
    """Squared radii are uniform, and angles fill the circle, or its lower half."""
    problem = many()["problems"][name]
    points = np.float64(problem.means) @ [1, 1j]
    squares = np.abs(points) ** 2
    turns = np.angle(points) / (2 * np.pi) % 1
    disc = problem.labels == 0
    ring = (squares[~disc] - inner**2) / (outer**2 - inner**2)
    for values in (squares[disc], ring, turns[disc], (1 - turns[~disc]) / turn):
        assert_distribution(values, stats.uniform.cdf)


def test_random_noisy_is_what_the_paper_describes():
    """Covariance U' D^2 U of the signal, by singular values against 1 - (i - 1)/d; sd 1/zeta of the noise."""
    problem = many()["problems"]["noisy"]
    decay = 1 - np.arange(5) / 40
    sizes = np.linalg.svd(np.float64(problem.means), compute_uv=False)
    assert sizes[5] < 100 * eps() * sizes[0] < sizes[4]
    # The standard deviation of a square is 3 %, of their sum 1.5 %.
    assert_allclose(sizes[:5] ** 2 / 2000, decay**2, rtol=0.2)
    assert_allclose(np.sum(sizes**2) / 2000, np.sum(decay**2), rtol=0.09)
    assert_moments(10 * (problem.points - problem.means), np.eye(40))


@pytest.mark.parametrize("number", range(5))
def test_noise_has_the_covariance_of_its_model(number):
    """Of 2,000 points around one mean, for a skewed W; zeros are exact."""
    problem = many()["noise"][number]
    assert_moments(problem.points - problem.means, noise_models()[number][1])
    assert not problem.labels.any()
    assert problem.omega == pytest.approx(1 / SOFTPLUS[1])


def test_large_dimensions_need_no_matrix_of_their_size():
    """The largest array of a sampler, random bits included, is of the size of the data."""
    for sampler, rows in (
        (SAMPLERS["radial"], 7),
        (problems.gaussian_mixture, 7),
        (problems.random_noisy, 50),  # an orthonormal basis of 50 directions
    ):
        large = partial(sampler, num_points=7, dim=10_000)
        assert largest_intermediate(large, house.key()) <= 2 * rows * 10_000
