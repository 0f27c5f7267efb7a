"""Samplers: exact shapes and truths first, then moments within stated errors.

Unless said otherwise a random check is a set of m z-scores below 5.5 in size: false alarms below m * 4e-8 for normal
averages, less than 1e-5 for every test here. Seeds are fixed.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats
from support.jaxprs import largest_intermediate
from support.numerics import eps

from jaxkern import problems
from jaxkern.gram import gram
from jaxkern.kernels import Distance, Gaussian
from jaxkern.measures import DiagonalNoise, GeneralNoise, IsotropicNoise, RadialNoise
from jaxkern.problems import (
    GaussianLaw,
    RampLaw,
    SkewedLaw,
    SoftplusImageLaw,
    UniformImageLaw,
    UniformLaw,
    perturb,
)

Z = 5.5
LAWS = [
    GaussianLaw(),
    UniformImageLaw(),
    SoftplusImageLaw(),
    UniformLaw(),
    RampLaw(2.0),
    SkewedLaw(3.0),
]
SPHERES = {"dim": 3, "radii": (1, 5, 10), "noise": 1.5}
SAMPLERS = {
    "nested": partial(problems.nested_spheres, radial=False, **SPHERES),
    "radial": partial(problems.nested_spheres, radial=True, **SPHERES),
    "circles": problems.circles,
    "cluster": problems.cluster_in_cluster,
    "crescent": problems.crescent_full_moon,
    "mixture": problems.gaussian_mixture,
    "noisy": partial(problems.random_noisy, dim=8, signal_dim=3),
}
sample = jax.jit(
    lambda law, key, num, dim: law.sample(key, num_points=num, dim=dim),
    static_argnums=(2, 3),
)
CLUSTERS = {
    "nested": 3,
    "radial": 3,
    "circles": 2,
    "cluster": 2,
    "crescent": 2,
    "mixture": 3,
    "noisy": 1,
}


def key(seed=0):
    return jax.random.key(seed)


def z_score(values, expected):
    """z-scores of the means of columns; a value without spread must be exact."""
    values = np.asarray(values, float)
    return (values.mean(0) - expected) / (values.std(0) / math.sqrt(len(values)))


def moment_scores(W, scale=1):
    """z-scores of the first and second moments of rows (n, 3) with mean 0 and covariance scale I."""
    products = [W[:, i] * W[:, j] for i in range(3) for j in range(i + 1)]
    return np.abs(
        [
            *z_score(W, 0),
            *z_score(np.stack(products, axis=1), scale * np.array([1, 0, 1, 0, 0, 1])),
        ]
    )


def ids(law):
    return type(law).__name__


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_laws_are_centred_with_unit_covariance(law):
    """First and second moments of 40,000 draws in three dimensions: 9 z-scores. A sd off by 2.5 % would be seen."""
    W = np.float64(sample(law, key(5), 40_000, 3))
    assert moment_scores(W).max() < Z
    assert law.lc_class in "abc"


def distribution_functions():
    """The laws of W in one dimension by their definitions."""
    mean, sd = problems._laws._softplus_moments()
    ramp_mean = (1 / 2 + 2 / 3) / 2
    ramp_sd = math.sqrt((1 / 3 + 2 / 4) / 2 - ramp_mean**2)
    shift = math.sqrt(2 / math.pi) * 3 / math.sqrt(10)
    scale = math.sqrt(1 - shift**2)
    return {
        "GaussianLaw": stats.norm.cdf,
        "UniformImageLaw": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf,
        "UniformLaw": stats.uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf,
        "SoftplusImageLaw": lambda w: stats.norm.cdf(
            np.log(np.expm1(np.maximum(mean + sd * w, 1e-300)))
        ),
        "RampLaw": lambda w: (
            ((v := np.clip(ramp_mean + ramp_sd * w, 0, 1)) + v * v) / 2
        ),
        "SkewedLaw": lambda w: stats.skewnorm(3).cdf(shift + scale * w),
    }


@pytest.mark.parametrize("law", LAWS, ids=ids)
def test_laws_have_the_distribution_they_name(law):
    """Kolmogorov's statistic of 40,000 draws against the exact distribution function; false alarms 1e-6."""
    dim = (
        1 if isinstance(law, SkewedLaw) else 3
    )  # of the others coordinates are independent
    W = np.float64(sample(law, key(7), 40_000, dim))[:, 0]
    assert stats.kstest(W, distribution_functions()[ids(law)]).pvalue > 1e-6


def test_constants_of_the_classes():
    """omega is the largest slope of the map, one over the least density, or one over the root of the curvature."""
    z = np.linspace(-8, 8, 16_001)
    slope = np.max(np.diff(math.sqrt(3) * (2 * stats.norm.cdf(z) - 1)) / np.diff(z))
    assert UniformImageLaw().omega == pytest.approx(slope, rel=1e-5)
    mean = integrate.quad(lambda x: np.logaddexp(0, x) * stats.norm.pdf(x), -12, 12)[0]
    variance = integrate.quad(
        lambda x: (np.logaddexp(0, x) - mean) ** 2 * stats.norm.pdf(x), -12, 12
    )[0]
    assert SoftplusImageLaw().omega == pytest.approx(variance**-0.5, rel=1e-9)
    assert UniformLaw().omega == pytest.approx(2 * math.sqrt(3)) == RampLaw(0.0).omega
    ramp = RampLaw(2.0)
    W = np.asarray(sample(ramp, key(1), 40_000, 3), float).ravel()
    assert 1 / ramp.omega == pytest.approx(np.mean(W.min() + 0.1 > W) / 0.1, rel=0.1)
    assert GaussianLaw().omega == SkewedLaw(0.0).omega == 1
    # The curvature of the standardised skewed density, whose infimum lies far out on the side of the tilt.
    law, w = SkewedLaw(3.0), np.linspace(-5, 12, 3401)
    shift = math.sqrt(2 / math.pi) * 3 / math.sqrt(10)
    curvature = (
        -np.diff(stats.skewnorm(3).logpdf(shift + math.sqrt(1 - shift**2) * w), 2)
        / (w[1] - w[0]) ** 2
    )
    assert curvature.min() >= (1 - 1e-3) / law.omega**2
    assert curvature.min() == pytest.approx(1 / law.omega**2, rel=1e-3)


def test_the_skewed_law_is_no_product():
    """E W_1^2 W_2 = E W_1^3 in two dimensions by symmetry of the direction; a product law would have 0: z beyond 20."""
    W = np.asarray(sample(SkewedLaw(3.0), key(2), 40_000, 2), float)
    assert z_score(W[:, 0] ** 2 * W[:, 1], 0) > 20
    assert abs(z_score(W[:, 0] ** 2 * W[:, 1] - W[:, 1] ** 2 * W[:, 0], 0)) < Z


@pytest.mark.parametrize(
    "name",
    [pytest.param(x, marks=[pytest.mark.slow] * (x == "nested")) for x in SAMPLERS],
)
def test_every_sampler_returns_a_problem_of_its_dtype(name, dtype):
    problem = SAMPLERS[name](key(), num_points=20)
    dim = problem.points.shape[1]
    assert problem.points.shape == problem.means.shape == (20, dim)
    assert (
        problem.points.dtype
        == problem.means.dtype
        == problem.noise.level.dtype
        == dtype
    )
    assert problem.labels.dtype == jnp.int32
    assert problem.labels.tolist() == [i % CLUSTERS[name] for i in range(20)]
    assert isinstance(problem.law, GaussianLaw) and problem.omega == 1
    assert jax.eval_shape(problem.mean_kernel, Gaussian(1.0)).dtype == dtype
    level = float(problem.noise.level)
    assert float(problem.sigma_inf()) == pytest.approx(
        level / math.sqrt(dim), rel=10 * eps(dtype)
    )


@pytest.mark.parametrize(
    "name",
    [
        "radial",
        "crescent",
        *(pytest.param(x, marks=pytest.mark.slow) for x in ("mixture", "noisy")),
    ],
)
def test_the_first_rows_do_not_depend_on_how_many_there_are(name):
    few, many = (SAMPLERS[name](key(3), num_points=n) for n in (20, 33))
    for field in ("points", "means", "labels"):
        np.testing.assert_array_equal(
            getattr(few, field), np.asarray(getattr(many, field))[:20]
        )


@pytest.mark.parametrize("dim", [2, 10_000])
def test_without_noise_points_lie_on_their_spheres(dim, dtype):
    problem = problems.nested_spheres(
        key(), num_points=30, dim=dim, radii=(1, 5, 10), noise=0.0, radial=False
    )
    np.testing.assert_array_equal(problem.points, problem.means)
    radii = np.array([1, 5, 10])[problem.labels]
    np.testing.assert_allclose(
        np.linalg.norm(np.asarray(problem.means, float), axis=1),
        radii,
        rtol=30 * eps(dtype),
    )


def test_radial_noise_keeps_the_direction(x64):
    """X_i = (1 + c_i) mu_i: the radius moves by sigma/sqrt(d), while isotropic noise adds sigma^2 to its square."""
    settings = {"num_points": 300, "dim": 900, "radii": (1.0, 5.0), "noise": 1.5}
    problem = problems.nested_spheres(key(1), radial=True, **settings)
    points, means = np.asarray(problem.points), np.asarray(problem.means)
    along = np.sum(points * means, axis=1) / np.sum(means**2, axis=1)
    np.testing.assert_allclose(points, along[:, None] * means, rtol=0, atol=1e-14)
    xi = (along - 1) * np.linalg.norm(means, axis=1) * 30 / 1.5
    assert abs(z_score(xi, 0)) < Z and abs(z_score(xi**2, 1)) < Z
    isotropic = problems.nested_spheres(key(1), radial=False, **settings)
    np.testing.assert_array_equal(isotropic.means, problem.means)
    squared = np.sum((np.asarray(isotropic.points) - means) ** 2, axis=1)
    assert abs(z_score(squared, 1.5**2)) < Z and squared.std() == pytest.approx(
        1.5**2 * math.sqrt(2 / 900), rel=0.3
    )


def test_a_sphere_of_radius_zero_is_a_point():
    for radial in (False, True):
        problem = problems.nested_spheres(
            key(), num_points=6, dim=3, radii=[0, 2], noise=1.0, radial=radial
        )
        points, means = np.asarray(problem.points), np.asarray(problem.means)
        assert (
            np.isfinite(points).all()
            and (means[::2] == 0).all()
            and (points[::2] == 0).all() == radial
        )


def test_directions_are_uniform():
    """Mean 0 and covariance I/d of 30,000 directions in three dimensions: 9 z-scores."""
    U = problems.nested_spheres(
        key(8), num_points=30_000, dim=3, radii=(1.0,), noise=0.0, radial=False
    ).means
    assert moment_scores(np.asarray(U, float), 1 / 3).max() < Z


def test_labels_may_be_drawn():
    """Shares of 20,000 labels; a component of weight zero never comes."""
    for problem in (
        problems.nested_spheres(
            key(1),
            num_points=20_000,
            dim=2,
            radii=(1, 2, 3),
            noise=0.0,
            radial=False,
            weights=(0.2, 0.0, 0.8),
        ),
        problems.gaussian_mixture(key(1), num_points=20_000, weights=(0.2, 0.0, 0.8)),
    ):
        labels = np.asarray(problem.labels)
        assert not (labels == 1).any()
        assert abs(z_score(labels == 0, 0.2)) < Z


def test_plane_shapes_are_uniform_in_area():
    """Squared radii are uniform, and angles fill the circle, or its lower half: Kolmogorov, false alarms 1e-6."""
    for sampler, ring, turn in (
        (problems.cluster_in_cluster, (4, 5), 1),
        (problems.crescent_full_moon, (2, 3), 0.5),
    ):
        problem = sampler(key(2), noise=0.0)
        assert problem.points.shape == (5000, 2)
        X, labels = np.asarray(problem.points, float), np.asarray(problem.labels)
        squares, angles = (
            np.sum(X * X, axis=1),
            np.mod(np.arctan2(X[:, 1], X[:, 0]), 2 * np.pi),
        )
        low, high = ring[0] ** 2, ring[1] ** 2
        assert stats.kstest(squares[labels == 0], stats.uniform(0, 1).cdf).pvalue > 1e-6
        assert (
            stats.kstest(
                squares[labels == 1], stats.uniform(low, high - low).cdf
            ).pvalue
            > 1e-6
        )
        assert (
            stats.kstest(angles[labels == 0], stats.uniform(0, 2 * np.pi).cdf).pvalue
            > 1e-6
        )
        start = 2 * np.pi * (1 - turn)
        assert (
            stats.kstest(
                angles[labels == 1], stats.uniform(start, 2 * np.pi * turn).cdf
            ).pvalue
            > 1e-6
        )


def test_mixtures_have_the_centres_they_are_given():
    centers = np.float32([[0, 0, 0], [5, 0, 0]])
    problem = problems.gaussian_mixture(
        key(), num_points=5, dim=3, num_clusters=2, centers=centers, noise=0.5
    )
    np.testing.assert_array_equal(problem.means, centers[[0, 1, 0, 1, 0]])
    random = problems.gaussian_mixture(
        key(), num_points=20, dim=1000, num_clusters=20, separation=5.0
    )
    gaps = np.asarray(gram(Distance(), random.means))
    np.testing.assert_allclose(
        gaps[~np.eye(20, dtype=bool)], 5, rtol=0.12
    )  # relative sd 2.2 %, 190 pairs


def test_random_noisy_is_what_the_paper_describes(x64):
    """Covariance U' D^2 U of the signal, by singular values against 1 - (i - 1)/d; sd 1/zeta of the noise."""
    problem = problems.random_noisy(key(6), num_points=2000, dim=40, signal_dim=5)
    points, means = np.asarray(problem.points), np.asarray(problem.means)
    rank = np.linalg.svd(means, compute_uv=False)
    assert rank[4] > 10 and rank[5] < 1e-10
    np.testing.assert_allclose(
        (rank[:5] / math.sqrt(2000)) ** 2, (1 - np.arange(5) / 40) ** 2, rtol=0.2
    )
    total = np.sum(means**2) / 2000
    assert total == pytest.approx(
        np.sum((1 - np.arange(5) / 40) ** 2), rel=0.09
    )  # sd 1.5 %
    F = (points - means) * 10
    assert abs(z_score(F.ravel(), 0)) < Z and abs(z_score(F.ravel() ** 2, 1)) < Z
    assert float(problem.noise.level) == pytest.approx(math.sqrt(40) / 10)
    full = problems.random_noisy(key(6), num_points=3, dim=4, signal_dim=4)
    assert full.points.shape == (3, 4)


def noise_models(rng, dim):
    root = rng.normal(size=(dim, dim))
    covariance = np.float32(root @ root.T)
    return [
        IsotropicNoise(0.7),
        RadialNoise(1.3),
        DiagonalNoise(np.float32([0.5, 0.0, 2.0])),
        GeneralNoise(covariance),
        GeneralNoise(np.broadcast_to(covariance, (2000, dim, dim))),
    ]


def test_noise_has_the_covariance_of_its_model(rng):
    """Second moments of 2,000 points around one mean, for skewed W: at most 6 z-scores a model, zeros exact."""
    mu = np.array([1.0, 2.0, -2.0], np.float32)
    means = np.tile(mu, (2000, 1))
    wanted = [0.49 / 3 * np.eye(3), 1.69 / 3 * np.outer(mu, mu) / 9]
    for number, noise in enumerate(noise_models(rng, 3)):
        problem = perturb(key(9), means, noise, law=SoftplusImageLaw())
        if number >= 2:
            C = getattr(noise, "variances", None)
            wanted.append(
                np.asarray(noise.covariances).reshape(-1, 3, 3)[0]
                if C is None
                else np.diag(C)
            )
        noisy = np.asarray(problem.points, float) - mu
        products = noisy[:, :, None] * noisy[:, None, :]
        error = products.mean(0) - wanted[number]
        assert (np.abs(error) <= Z * products.std(0) / math.sqrt(2000) + 1e-6).all(), (
            noise
        )
        assert problem.labels.tolist()[:3] == [0, 0, 0] and problem.omega > 1


def test_large_dimensions_need_no_matrix_of_their_size():
    """The largest array of a sampler, random bits included, is of the size of the data."""
    keys = jax.eval_shape(lambda: key())
    settings = {"num_points": 7, "dim": 10_000}
    for sampler in (
        lambda k: problems.nested_spheres(
            k, radii=(1, 5), noise=1.0, radial=False, **settings
        ),
        lambda k: problems.nested_spheres(
            k, radii=(1, 5), noise=1.0, radial=True, **settings
        ),
        lambda k: problems.gaussian_mixture(k, **settings),
    ):
        assert largest_intermediate(sampler, keys) <= 2 * 7 * 10_000
    assert (
        largest_intermediate(lambda k: problems.random_noisy(k, **settings), keys)
        <= 2 * 50 * 10_000
    )


def nested(**changed):
    settings = {
        "num_points": 5,
        "dim": 3,
        "radii": (1.0,),
        "noise": 1.0,
        "radial": False,
    }
    return problems.nested_spheres(key(), **(settings | changed))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dim": 1}, "dim must be at least 2"),
        ({"radii": ()}, "radii must be a list of at least one number"),
        ({"radii": 1.0}, "radii must be a list of at least one number"),
        ({"radii": (1.0, -1.0)}, "radii must be non-negative and finite"),
        ({"noise": -1.0}, "noise must be non-negative and finite"),
        ({"noise": np.ones(3, np.float32)}, "noise must have shape"),
        ({"radial": "yes"}, "radial must be True or False"),
        ({"dtype": jnp.float16}, "dtype must be float32 or float64, got float16"),
    ],
)
def test_bad_spheres_are_refused_by_name(changed, message):
    with pytest.raises(ValueError, match=message):
        nested(**changed)


def test_what_are_no_weights_gives_no_points():
    for unfit in map(jnp.asarray, np.float32([[3, -1, 1], [0, 0, 0]])):
        spheres, mixture = (
            nested(radii=(1, 2, 3), weights=unfit),
            problems.gaussian_mixture(key(), weights=unfit),
        )
        assert (
            np.isnan(np.asarray(spheres.points)).all()
            and np.isnan(np.asarray(mixture.points)).all()
        )


X = np.ones((3, 2), np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (
                lambda make=make: make(key(), num_points=0),
                "num_points must be at least 1",
            )
            for make in SAMPLERS.values()
        ),
        *(
            (
                lambda name=name: SAMPLERS[name](key(), num_points=5, noise=-0.1),
                "noise must be non-negative",
            )
            for name in ("circles", "cluster", "crescent", "mixture")
        ),
        (
            lambda: problems.cluster_in_cluster(key(), radius=-1.0),
            "radius and ring must be non-negative",
        ),
        (
            lambda: problems.crescent_full_moon(key(), crescent=(1, 2, 3)),
            "ring must be an inner and an outer radius",
        ),
        (
            lambda: problems.random_noisy(key(), num_points=5, dim=4, signal_dim=5),
            "signal_dim must be at most 4",
        ),
        (lambda: problems.random_noisy(key(), zeta=0.0), "zeta must be positive"),
        (
            lambda: problems.gaussian_mixture(key(), centers=X[:2]),
            r"centers must have shape \(3, 2\), got \(2, 2\)",
        ),
        (
            lambda: problems.gaussian_mixture(key(), separation=-1.0),
            "separation must be non-negative",
        ),
        (
            lambda: perturb(key(), X, 1.0, law="uniform"),
            "law must be a law of this module",
        ),
        (
            lambda: perturb(key(), X, 1.0, labels=np.zeros(2, int)),
            r"labels must have shape \(3,\)",
        ),
        (
            lambda: perturb(key(), X, 1.0, law=UniformLaw()).mean_kernel(Gaussian(1.0)),
            "law must be GaussianLaw for a known mean kernel, got UniformLaw",
        ),
        (lambda: RampLaw(-1.0), "slope must be non-negative"),
        (
            lambda: UniformLaw().sample(key(), num_points=1, dim=0),
            "dim must be at least 1",
        ),
    ],
)
def test_bad_problems_are_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
