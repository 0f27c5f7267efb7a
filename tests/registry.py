"""Every public function and method with arguments to call it on: what the contract tests go through.

An entry is `make(dtype, seed) -> (function, arguments)`. All arrays, keys and kernels are arguments, so that the
function can be jitted, vmapped over stacked arguments, lowered and differentiated as it is; what is static is inside.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import (
    audit,
    clustering,
    features,
    frequent_directions,
    gram,
    kernels,
    landmarks,
    learn,
    measures,
    metrics,
    problems,
    rkhs,
)
from jaxkern.bounds import concentration, fourier, sketching, streaming
from jaxkern.kmeans import kmeans

N, M, DIM = 12, 7, 3

ENTRIES = {}
NO_GRADIENT = set()
"""Entries whose results are integers, piecewise constant, or those of a loop as long as the data say."""
OF_LABELS = set()
"""Entries of integer arguments, whose results have the default dtype."""
OF_OPTAX = {"learn.fit_lengthscale"}
"""Entries in which optax computes scalars from its step count, in float64 where that is on."""


def entry(name, *, gradient=True):
    def register(make):
        assert name not in ENTRIES, name
        ENTRIES[name] = make
        if not gradient:
            NO_GRADIENT.add(name)
        return make

    return register


def array(dtype, seed, *shape):
    return jnp.asarray(np.random.default_rng([seed, *shape]).standard_normal(shape), dtype)


def points(dtype, seed):
    return array(dtype, seed, N, DIM)


def others(dtype, seed):
    return array(dtype, seed, M, DIM)


def scale(dtype, seed):
    return jnp.asarray(1.5 + 0.25 * seed, dtype)


def gaussian(dtype, seed):
    return kernels.Gaussian(scale(dtype, seed))


def function(dtype, seed, kernel=None, columns=2):
    return rkhs.Function(kernel or gaussian(dtype, seed), points(dtype, seed + 10), array(dtype, seed, N, columns))


def key(seed):
    return jax.random.key(seed)


# ------------------------------------------------------------------------------------------------------- kernels

for cls in (
    kernels.Gaussian,
    kernels.Laplacian,
    kernels.Exponential,
    kernels.Cauchy,
    kernels.Matern32,
    kernels.Matern52,
):

    @entry(f"kernels.{cls.__name__}")
    def _(dtype, seed, cls=cls):
        return lambda k, x, y: k(x, y), (cls(scale(dtype, seed)), points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Linear")
def _(dtype, seed):
    return lambda x, y: kernels.Linear()(x, y), (points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Distance")
def _(dtype, seed):
    return lambda x, y: kernels.Distance()(x, y), (points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Polynomial")
def _(dtype, seed):
    kernel = kernels.Polynomial(2, scale(dtype, seed), scale(dtype, seed))
    return lambda k, x, y: k(x, y), (kernel, points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Sum")
def _(dtype, seed):
    kernel = gaussian(dtype, seed) + kernels.Matern32(scale(dtype, seed))
    return lambda k, x, y: k(x, y), (kernel, points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Product")
def _(dtype, seed):
    kernel = gaussian(dtype, seed) * kernels.Laplacian(scale(dtype, seed))
    return lambda k, x, y: k(x, y), (kernel, points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.Scaled")
def _(dtype, seed):
    kernel = scale(dtype, seed) * gaussian(dtype, seed)
    return lambda k, x, y: k(x, y), (kernel, points(dtype, seed)[0], others(dtype, seed)[0])


def user_kernel(x, y):
    return jnp.exp(-jnp.sum((x - y) ** 2))


@entry("kernels.FromFunction")
def _(dtype, seed):
    return lambda x, y: kernels.FromFunction(user_kernel)(x, y), (points(dtype, seed)[0], others(dtype, seed)[0])


@entry("kernels.as_kernel")
def _(dtype, seed):
    return lambda X: gram.gram(kernels.as_kernel(user_kernel), X), (points(dtype, seed),)


@entry("kernels.kappa")
def _(dtype, seed):
    return lambda k: jnp.asarray(kernels.kappa(k)), (scale(dtype, seed) * gaussian(dtype, seed),)


@entry("kernels.lipschitz")
def _(dtype, seed):
    return lambda k: jnp.asarray(kernels.lipschitz(k, dim=DIM)), (kernels.Cauchy(scale(dtype, seed)),)


@entry("kernels.quantile_lengthscale")
def _(dtype, seed):
    return lambda X, q: kernels.quantile_lengthscale(X, q), (points(dtype, seed), jnp.asarray(0.3, dtype))


@entry("kernels.sampled_quantile_lengthscale")
def _(dtype, seed):
    def sampled(key, X, q):
        return kernels.sampled_quantile_lengthscale(key, X, q, num_pairs=50)

    return sampled, (key(seed), points(dtype, seed), jnp.asarray(0.3, dtype))


# ---------------------------------------------------------------------------------------------------------- gram


@entry("gram.gram")
def _(dtype, seed):
    return gram.gram, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@entry("gram.rounding", gradient=False)
def _(dtype, seed):
    return gram.rounding, (gaussian(dtype, seed), array(dtype, seed, N, 12), array(dtype, seed + 1, N, 12))


@entry("gram.gram_matmul")
def _(dtype, seed):
    def product(kernel, X, Y, V):
        return gram.gram_matmul(kernel, X, Y, V, block_size=5)

    return product, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed), array(dtype, seed, M, 2))


@entry("gram.center")
def _(dtype, seed):
    return gram.center, (array(dtype, seed, N, N),)


@entry("gram.kernel_distance")
def _(dtype, seed):
    return gram.kernel_distance, (gaussian(dtype, seed), points(dtype, seed), points(dtype, seed + 1))


# ------------------------------------------------------------------------------------------------------ measures


@entry("measures.Discrete", gradient=False)
def _(dtype, seed):
    def sample(key, atoms, weights):
        return measures.Discrete(atoms, weights).sample(key, num_points=N)

    return sample, (key(seed), points(dtype, seed), jnp.full((N,), 1 / N, dtype))


@entry("measures.gaussian_grid")
def _(dtype, seed):
    def moment(std):
        grid = measures.gaussian_grid(9, std=std, dtype=dtype)
        return jnp.vdot(grid.weights, grid.points[:, 0] ** 2, precision=jax.lax.Precision.HIGHEST)

    return moment, (scale(dtype, seed),)


@entry("measures.gaussian_spectrum")
def _(dtype, seed):
    def spectrum(lengthscale, std):
        law = measures.gaussian_spectrum(lengthscale, std)
        return law.eigenvalues(20), law.trace(3), law.op_norm(), law.effective_rank(2)

    return spectrum, (scale(dtype, seed), jnp.asarray([0.5, 1.0], dtype))


@entry("measures.GaussianSpectrum")
def _(dtype, seed):
    return lambda law: law.trace(2), (measures.gaussian_spectrum(scale(dtype, seed), jnp.asarray([0.5, 1.0], dtype)),)


# ---------------------------------------------------------------------------------------- noise and mean kernels


def spread(dtype, seed):
    return jnp.abs(array(dtype, seed + 20, N)) + 0.5


def noisy_entry(name, model, shape):
    @entry(f"measures.{name}")
    def _(dtype, seed):
        def mean(kernel, means, parameter):
            noise = model(parameter)
            return measures.mean_kernel(kernel + kernels.Linear(), means, noise), noise.op_norm(means)

        return mean, (gaussian(dtype, seed), points(dtype, seed), shape(dtype, seed))


noisy_entry("IsotropicNoise", measures.IsotropicNoise, spread)
noisy_entry("RadialNoise", measures.RadialNoise, spread)
noisy_entry(
    "DiagonalNoise",
    measures.DiagonalNoise,
    lambda dtype, seed: spread(dtype, seed)[:DIM] * jnp.arange(1, DIM + 1).astype(dtype),
)
noisy_entry(
    "GeneralNoise",
    lambda scales: measures.GeneralNoise(
        jnp.diag(jnp.arange(1, DIM + 1).astype(scales.dtype))[None, :, :] * scales[:, None, None] + 0.5
    ),
    spread,
)


@entry("measures.mean_gaussian_kernel")
def _(dtype, seed):
    return measures.mean_gaussian_kernel, (points(dtype, seed), spread(dtype, seed), scale(dtype, seed))


@entry("measures.mean_kernel")
def _(dtype, seed):
    def mean(means, level):
        return measures.mean_kernel(2.0 * kernels.Distance(), means, level)

    return mean, (points(dtype, seed), spread(dtype, seed))


@entry("measures.mean_kernel_between")
def _(dtype, seed):
    def mean(kernel, U, V, level):
        return measures.mean_kernel_between(kernel, U, V, measures.RadialNoise(level))

    return mean, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed), scale(dtype, seed))


for name in ("sphere_mgf", "log_sphere_mgf"):

    @entry(f"measures.{name}")
    def _(dtype, seed, name=name):
        return lambda u: getattr(measures, name)(u, 5), (array(dtype, seed, N),)


# ------------------------------------------------------------------------------------------------------ problems

for name, build in {
    "GaussianLaw": lambda parameter: problems.GaussianLaw(),
    "UniformImageLaw": lambda parameter: problems.UniformImageLaw(),
    "SoftplusImageLaw": lambda parameter: problems.SoftplusImageLaw(),
    "UniformLaw": lambda parameter: problems.UniformLaw(),
    "RampLaw": problems.RampLaw,
    "SkewedLaw": problems.SkewedLaw,
}.items():

    @entry(f"problems.{name}")
    def _(dtype, seed, build=build):
        def sample(key, parameter):
            law = build(parameter)
            return law.sample(key, num_points=N, dim=DIM, dtype=dtype), jnp.asarray(law.omega, dtype)

        return sample, (key(seed), scale(dtype, seed))


@entry("problems.perturb")
def _(dtype, seed):
    def sample(key, means, level, labels):
        problem = problems.perturb(key, means, measures.RadialNoise(level), labels=labels)
        return problem, problem.sigma_inf(), problem.mean_kernel(kernels.Gaussian(1.0))

    return sample, (key(seed), points(dtype, seed), spread(dtype, seed), jnp.arange(N) % 3)


for name, settings in {
    "nested_spheres": {"num_points": N, "dim": DIM, "radii": (1.0, 2.0), "radial": True},
    "circles": {"num_points": N},
    "cluster_in_cluster": {"num_points": N},
    "crescent_full_moon": {"num_points": N},
    "gaussian_mixture": {"num_points": N, "weights": (0.5, 0.25, 0.25)},
}.items():

    @entry(f"problems.{name}")
    def _(dtype, seed, name=name, settings=settings):
        def sample(key, noise):
            return getattr(problems, name)(key, noise=noise, dtype=dtype, **settings)

        return sample, (key(seed), scale(dtype, seed))


@entry("problems.random_noisy")
def _(dtype, seed):
    def sample(key, zeta):
        return problems.random_noisy(key, num_points=N, dim=DIM, signal_dim=2, zeta=zeta, dtype=dtype)

    return sample, (key(seed), scale(dtype, seed))


# ---------------------------------------------------------------------------------------------------------- rkhs


@entry("rkhs.Function")
def _(dtype, seed):
    return lambda f, g, X: (2.0 * f - g)(X), (function(dtype, seed), function(dtype, seed), points(dtype, seed))


@entry("rkhs.section")
def _(dtype, seed):
    return lambda k, X, Y: rkhs.section(k, X)(Y), (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@entry("rkhs.inner")
def _(dtype, seed):
    return rkhs.inner, (function(dtype, seed), function(dtype, seed))


@entry("rkhs.norm")
def _(dtype, seed):
    return rkhs.norm, (function(dtype, seed),)


@entry("rkhs.SamplingOperator")
def _(dtype, seed):
    def there_and_back(S, f):
        return S.adjoint(S(f))(S.points), S.gram()

    return there_and_back, (rkhs.SamplingOperator(gaussian(dtype, seed), points(dtype, seed)), function(dtype, seed))


@entry("rkhs.Covariance")
def _(dtype, seed):
    def quantities(k, X, f):
        sigma = rkhs.Covariance(k, X, centered=True)
        return sigma(f, power=2)(X), sigma.inner(f, f), sigma.trace(3), sigma.eigenvalues(), sigma.kappa()

    return quantities, (gaussian(dtype, seed), points(dtype, seed), function(dtype, seed))


@entry("rkhs.Covariance.effective_rank")
def _(dtype, seed):
    def rank(k, X, weights):
        return rkhs.Covariance(k, X, weights).effective_rank(3)

    return rank, (gaussian(dtype, seed), points(dtype, seed), jax.nn.softmax(array(dtype, seed, N)))


@entry("rkhs.draw_gaussian")
def _(dtype, seed):
    def draw(key, k, X):
        return rkhs.draw_gaussian(key, rkhs.Covariance(k, X), power=3, num_draws=2)(X)

    return draw, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("rkhs.RandomProjection")
def _(dtype, seed):
    def project(key, k, X, f):
        theta = rkhs.RandomProjection(key, rkhs.Covariance(k, X), num_features=5)
        return theta(f), theta.adjoint(jnp.ones(5, X.dtype))(X)

    return project, (key(seed), gaussian(dtype, seed), points(dtype, seed), function(dtype, seed))


# ------------------------------------------------------------------------------------------- landmarks, features


@entry("landmarks.uniform")
def _(dtype, seed):
    return lambda key, X: landmarks.uniform(key, X, num_landmarks=5), (key(seed), points(dtype, seed))


@entry("landmarks.kmeans_plus_plus")
def _(dtype, seed):
    return lambda key, X: landmarks.kmeans_plus_plus(key, X, num_landmarks=5), (key(seed), points(dtype, seed))


for name in ("pivoted_cholesky", "leverage"):

    @entry(f"landmarks.{name}")
    def _(dtype, seed, name=name):
        def choose(key, k, X):
            return getattr(landmarks, name)(key, k, X, num_landmarks=5)

        return choose, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("landmarks.reservoir", gradient=False)
def _(dtype, seed):
    def sample(key, X, Y):
        init, update, _ = landmarks.reservoir(num_landmarks=5)
        state = update(update(init(key, DIM, dtype), X), Y)
        return state.points, state.seen

    return sample, (key(seed), points(dtype, seed), others(dtype, seed))


@entry("features.preimage")
def _(dtype, seed):
    def back(k, X, Y):
        phi = features.kernel_pca(k, X, num_components=4)
        found = features.preimage(phi, phi(Y), num_steps=3)
        return found.residual, {"converged": found.converged}  # at saddles rounding decides where points go

    return back, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@entry("features.kernel_jl")
def _(dtype, seed):
    def embed(key, k, X, Y, f):
        phi = features.kernel_jl(key, k, X, num_features=4, centered=True)
        return phi(Y), phi.embed(f)

    return embed, (
        key(seed),
        gaussian(dtype, seed),
        points(dtype, seed),
        others(dtype, seed),
        function(dtype, seed),
    )


def fitted_entry(name, fit):
    """Signs of eigenvectors are arbitrary, so products of features are compared."""

    @entry(name)
    def _(dtype, seed):
        def products(k, X, Y, f):
            phi = fit(k, X)
            Z, e = phi(Y), phi.embed(f)
            highest = jax.lax.Precision.HIGHEST
            return jnp.matmul(Z, Z.T, precision=highest), jnp.matmul(e, e.T, precision=highest)

        return products, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed), function(dtype, seed))


fitted_entry("features.nystrom", lambda k, X: features.nystrom(k, X, rank=5))
fitted_entry("features.kernel_pca", lambda k, X: features.kernel_pca(k, X, num_components=4))


for name in ("paired_fourier", "shifted_fourier", "orthogonal_fourier", "fastfood"):

    @entry(f"features.{name}")
    def _(dtype, seed, name=name):
        def embed(key, k, X):
            return getattr(features, name)(key, k, DIM, num_frequencies=4)(X)

        kernel = scale(dtype, seed) * kernels.Matern32(scale(dtype, seed))
        return embed, (key(seed), kernel, points(dtype, seed))


@entry("features.random_feature_pca")
def _(dtype, seed):
    def products(key, k, X, Y):
        phi = features.paired_fourier(key, k, DIM, num_frequencies=5)
        pca = features.random_feature_pca(phi, X, num_components=4)
        Z = pca(Y)
        return jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST), pca.explained_variance_ratio

    return products, (key(seed), gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@entry("features.standardized")
def _(dtype, seed):
    def embed(key, k, mean, spread, X):
        phi = features.paired_fourier(key, k, DIM, num_frequencies=4)
        return features.standardized(phi, mean, 1 + spread**2)(X)

    return embed, (
        key(seed),
        gaussian(dtype, seed),
        array(dtype, seed, DIM),
        array(dtype, seed + 1, DIM),
        points(dtype, seed),
    )


@entry("features.streaming_pca", gradient=False)
def _(dtype, seed):
    def stream(k, X, Y, weights):
        pca = features.streaming_pca(features.nystrom(k, Y), sketch_size=3, centered=True)
        state = pca.merge(pca.update(pca.init(), X, weights), pca.update(pca.init(), Y))
        phi = pca.finalize(state, num_components=2)
        Z = phi(X)
        product = jnp.matmul(Z, Z.T, precision=jax.lax.Precision.HIGHEST)
        return {"product": product, "residual": phi.residual, "finite": phi.finite}

    weights = jax.nn.softmax(array(dtype, seed, N))
    return stream, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed), weights)


# ------------------------------------------------------------------------------------------- frequent directions


def squares(state):
    found = frequent_directions.finalize(state)
    product = jnp.matmul(found.rows.T, found.rows, precision=jax.lax.Precision.HIGHEST)
    return {"product": product, "shrinkage": found.shrinkage, "finite": found.finite}


@entry("frequent_directions.init", gradient=False)
def _(dtype, seed):
    def stream(X):
        return squares(frequent_directions.update(frequent_directions.init(2, DIM, dtype, shrink_at=1), X))

    return stream, (points(dtype, seed),)


@entry("frequent_directions.update", gradient=False)
def _(dtype, seed):
    def stream(state, X, weights):
        return squares(frequent_directions.update(state, X, weights))

    state = frequent_directions.init(2, DIM, dtype)
    return stream, (state, points(dtype, seed), jax.nn.softmax(array(dtype, seed, N)))


@entry("frequent_directions.merge", gradient=False)
def _(dtype, seed):
    empty = frequent_directions.init(2, DIM, dtype)
    first, second = (frequent_directions.update(empty, rows(dtype, seed)) for rows in (points, others))
    return lambda a, b: squares(frequent_directions.merge(a, b)), (first, second)


@entry("frequent_directions.finalize", gradient=False)
def _(dtype, seed):
    def certificate(state):
        sketch = frequent_directions.finalize(state)
        return sketch.singular_values, sketch.shrinkage, sketch.squared_norm, {"finite": sketch.finite}

    return certificate, (frequent_directions.update(frequent_directions.init(2, DIM, dtype), points(dtype, seed)),)


# --------------------------------------------------------------------------------------------------------- audit


@entry("audit.distance_error")
def _(dtype, seed):
    def error(k, X, Y, Z):
        return audit.distance_error(features.nystrom(k, X[:5]), k, Y, Z)

    return error, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed), others(dtype, seed + 1))


@entry("audit.sampled_distance_error")
def _(dtype, seed):
    def error(key, k, X):
        return audit.sampled_distance_error(key, features.nystrom(k, X[:5]), k, X, num_pairs=9)

    return error, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("audit.spectral_error")
def _(dtype, seed):
    def error(key, k, X):
        found = audit.spectral_error(key, features.nystrom(k, X[:5]), k, X, num_steps=2, num_probes=3)
        return found.lower, found.upper

    return error, (key(seed), gaussian(dtype, seed), points(dtype, seed))


# ----------------------------------------------------------------------------------- kmeans, clustering, learn, metrics


@entry("kmeans.kmeans", gradient=False)
def _(dtype, seed):
    return lambda key, X: kmeans(key, X, 3, num_restarts=2), (key(seed), points(dtype, seed))


@entry("clustering.kernel_spectral", gradient=False)
def _(dtype, seed):
    def labels(key, k, X):
        return clustering.kernel_spectral(key, k, X, 2, num_restarts=1)

    return labels, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("clustering.spectral_from_gram", gradient=False)
def _(dtype, seed):
    def labels(key, k, X):
        return clustering.spectral_from_gram(key, gram.gram(k, X), 2, num_restarts=1)

    return labels, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("clustering.kernel_kmeans", gradient=False)
def _(dtype, seed):
    def labels(key, k, X):
        return clustering.kernel_kmeans(key, k, X, 2, num_landmarks=5, num_restarts=1)

    return labels, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("learn.alignment")
def _(dtype, seed):
    def value(k, X):
        return learn.alignment(k, X, jnp.arange(N) % 3, num_labels=3)

    return value, (gaussian(dtype, seed), points(dtype, seed))


@entry("learn.eigengap")
def _(dtype, seed):
    return lambda k, X: learn.eigengap(k, X, num_components=2), (gaussian(dtype, seed), points(dtype, seed))


def first_gap(k, X):
    return learn.eigengap(k, X, num_components=2)


@entry("learn.fit_lengthscale", gradient=False)
def _(dtype, seed):
    fit = lambda k, X: learn.fit_lengthscale(k, X, first_gap, num_steps=2)  # noqa: E731
    return fit, (gaussian(dtype, seed), points(dtype, seed))


OF_LABELS |= {
    f"metrics.{name}"
    for name in ("rand_index", "adjusted_rand_index", "normalized_mutual_info", "misclassification_rate")
}


def labels(seed):
    return jnp.asarray(np.random.default_rng(seed).integers(0, 3, N), jnp.int32)


for name in ("rand_index", "adjusted_rand_index", "normalized_mutual_info"):

    @entry(f"metrics.{name}", gradient=False)
    def _(dtype, seed, name=name):
        return getattr(metrics, name), (labels(seed), labels(seed + 1))


@entry("metrics.misclassification_rate", gradient=False)
def _(dtype, seed):
    def rate(first, second):
        return metrics.misclassification_rate(first, second, num_labels=3)

    return rate, (labels(seed), labels(seed + 1))


for name in ("spectral_error", "frobenius_error"):

    @entry(f"metrics.{name}")
    def _(dtype, seed, name=name):
        K = gram.gram(gaussian(dtype, seed), points(dtype, seed))
        return getattr(metrics, name), (K, gram.gram(gaussian(dtype, seed + 2), points(dtype, seed)))


# -------------------------------------------------------------------------------------------------------- bounds

QUANTITIES = {
    "kappa": 1.0,
    "op_norm": 0.4,
    "op_norm3": 0.07,
    "trace": 1.0,
    "trace3": 0.1,
    "hs_norm": 0.5,
    "n": 1e6,
    "d": 64.0,
    "tau": 3.0,
    "theta": 0.6,
    "scale": 0.3,
    "eigenvalue": 0.2,
    "epsilon": 0.01,
    "num_points": 10.0,
    "eta": 1e-3,
    "sigma": 0.05,
    "weight": 0.4,
    "mean_gap": 0.7,
    "num_functions": 50.0,
    "num_pairs": 50.0,
    "rank": 2.5,
    "energy": 0.3,
    "squared_diameter": 0.4,
    "squared_distance": 0.9,
}
EVERY_N = ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "d", "tau")
BOUNDS = {
    "conditional_sketch": ("op_norm3", "trace3", "d", "tau"),
    "covariance_deviation": ("kappa", "trace", "n", "tau"),
    "covariance_deviation_bernstein": ("kappa", "trace", "n", "tau"),
    "cube_deviation": ("kappa", "op_norm", "trace", "n", "tau"),
    "cube_trace": ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "tau"),
    "inner_products": ("kappa", "op_norm", "trace", "trace3", "n", "d", "tau"),
    "inner_products_all_d": ("kappa", "op_norm", "trace", "trace3", "hs_norm", "n", "d", "tau"),
    "projected_inner_products": ("op_norm", "trace3", "d", "tau"),
    "projected_inner_products_all_d": ("op_norm", "trace3", "d", "tau"),
    "covariance_deviation_sharp": ("kappa", "trace", "hs_norm", "n", "tau"),
    "gaussian_covariance": ("op_norm", "rank", "n", "tau"),
    "hilbert_mean": ("theta", "scale", "n", "tau"),
    "inner_products_every_n": EVERY_N,
    "largest_stretch": EVERY_N,
    "mean_separation_shortfall": (*EVERY_N, "sigma", "weight", "mean_gap"),
    "relative_norms": ("num_functions", "d", "tau"),
    "relative_separation": (
        *("num_pairs", "d", "tau", "kappa", "op_norm", "eigenvalue", "epsilon"),
        *("squared_diameter", "squared_distance"),
    ),
    "separation_shortfall": (*EVERY_N, "eigenvalue", "epsilon", "num_points", "eta"),
    "weak_difference": ("kappa", "op_norm", "trace", "n", "d", "tau"),
    "weak_difference_given": ("energy", "d", "tau"),
    "weak_difference_coupled": ("kappa", "op_norm", "trace", "n", "d", "tau"),
}
for name, names in BOUNDS.items():

    @entry(f"bounds.sketching.{name}")
    def _(dtype, seed, name=name, names=names):
        def bound(**numbers):
            return getattr(sketching, name)(**numbers)

        values = [jnp.asarray(QUANTITIES[n] * (1 + 0.1 * seed), dtype) for n in names]
        return lambda *args: bound(**dict(zip(names, args, strict=True))), tuple(values)


FOURIER_QUANTITIES = {
    "eps": 0.2,
    "num_frequencies": 700.0,
    "num_features": 900.0,
    "num_points": 50.0,
    "distance": 0.1,
    "second_moment": 1.1,
    "fourth_moment": 3.2,
    "s": 0.4,
    "mean": 0.3,
    "p": 0.1,
    "q": 0.6,
    "frequency_energy": 900.0,
    "dim": 2.0,
    "radius": 30.0,
    "diameter": 3.0,
    "tau": 5.0,
    "residual_energy": 12.0,
    "sketch_size": 21.0,  # odd: a bound by floor(l / 2) jumps at even sizes
    "rank": 3.0,
    "energy": 60.0,
    "row_energy": 2.0,
    "spectral": 2.0,
    "tail": 3.0,
    "num_landmarks": 300.0,
    "coherence": 1.5,
    "mean_square": 0.3,
}
FOURIER_BOUNDS = {
    "ball": ("eps", "num_frequencies", "dim", "diameter", "tau"),
    "ball_additive": ("eps", "num_frequencies", "dim", "diameter", "tau"),
    "chi_square_mean": ("eps", "num_frequencies"),
    "dimension_limit": ("eps", "dim", "radius"),
    "distance_lower": ("distance",),
    "far_distance": ("eps", "num_frequencies", "distance"),
    "gradient": ("frequency_energy", "distance", "dim", "num_frequencies"),
    "gram_frobenius_paired": ("num_frequencies", "tau"),
    "gram_frobenius_paired_bernstein": ("eps", "num_frequencies"),
    "gram_frobenius_shifted": ("num_features", "tau"),
    "gram_spectral_paired": ("eps", "num_frequencies", "num_points"),
    "gram_spectral_paired_all_n": ("eps", "num_frequencies"),
    "gram_spectral_shifted": ("eps", "num_features", "num_points"),
    "kernel_value": ("eps", "num_frequencies"),
    "kernel_values": ("eps", "num_frequencies", "num_points"),
    "kernel_values_shifted": ("eps", "num_features", "num_points"),
    "lipschitz_squared": ("radius", "dim", "num_frequencies", "tau"),
    "log_mgf": ("s", "distance"),
    "near_distance": ("eps", "num_frequencies", "distance"),
    "quadratic_form_paired": ("eps", "num_frequencies"),
    "quadratic_form_shifted": ("eps", "num_features"),
    "ratio_lower": ("second_moment", "fourth_moment", "distance"),
    "ratio_upper": ("second_moment", "distance"),
    "relative_distances": ("eps", "num_frequencies", "num_points"),
    "relative_distances_closed_form": ("eps", "num_frequencies", "num_points"),
    "relative_distances_sharp": ("eps", "num_frequencies", "num_points"),
    "segment": ("num_frequencies", "distance", "tau"),
    "squared_distance_lower": ("eps", "distance"),
    "sub_exponential": ("eps", "mean", "p", "q", "num_frequencies"),
    "success_limit": ("eps", "num_frequencies", "num_points"),
    "vanishing_ball": ("eps", "num_frequencies", "dim", "tau"),
}
STREAMING_BOUNDS = {
    "best_rank": ("tail", "spectral", "rank"),
    "frequent_directions": ("residual_energy", "sketch_size", "rank"),
    "frequent_directions_buffered": ("residual_energy", "sketch_size", "rank"),
    "frequent_directions_rowwise": ("residual_energy", "sketch_size", "rank"),
    "frobenius_from_spectral": ("spectral", "num_points"),
    "leftover_rows": ("energy", "sketch_size", "row_energy"),
    "nystrom_best_rank": ("num_landmarks", "rank", "tau"),
    "nystrom_coherence": ("eps", "coherence", "rank", "num_landmarks", "num_points", "tau"),
    "nystrom_frobenius_mean": ("mean_square", "num_landmarks"),
    "nystrom_spectral": ("eps", "num_landmarks"),
    "projection": ("num_points", "sketch_size", "row_energy"),
    "projection_buffered": ("num_points", "sketch_size", "row_energy"),
    "streaming_gram": ("eps", "num_features", "num_points", "sketch_size"),
    "streaming_gram_buffered": ("eps", "num_frequencies", "num_points", "sketch_size"),
}
for module, table in ((fourier, FOURIER_BOUNDS), (streaming, STREAMING_BOUNDS)):
    for name, names in table.items():

        @entry(f"{module.__name__.removeprefix('jaxkern.')}.{name}")
        def _(dtype, seed, module=module, name=name, names=names):
            def bound(*args):
                return getattr(module, name)(**dict(zip(names, args, strict=True)))

            values = [FOURIER_QUANTITIES[n] * (1 + 0.05 * i * seed) for i, n in enumerate(names, 1)]
            return bound, tuple(jnp.asarray(value, dtype) for value in values)


@entry("bounds.fourier.relative_distances_given")
def _(dtype, seed):
    def bound(eps, size, squared, pairs):
        words = {"squared_distances": squared, "pairs": pairs}
        return fourier.relative_distances_given(eps=eps, num_frequencies=size, **words)

    values = (0.2, 300.0, [0.0, 0.5, 3.0], [2.0, 50.0, 900.0])
    return bound, tuple(jnp.asarray(value, dtype) * (1 + 0.05 * seed) for value in values)


CONCENTRATION_QUANTITIES = {
    "alpha": 1.5,
    "bound": 1.2,
    "c": 0.4,
    "c1": 0.5,
    "c2": 0.4,
    "dim": 12.0,
    "displacement": 0.6,
    "error": 0.1,
    "frobenius": 1.4,
    "gamma2": 4.0,
    "gamma_tilde2": 1.3,
    "kappa": 1.1,
    "kmeans_factor": 1.2,
    "lengthscale": 1.8,
    "lipschitz": 0.7,
    "mean_frobenius": 0.9,
    "mean_gap": 0.02,
    "mean_norm": 1.5,
    "mean_rank": 2.0,
    "mean_scale": 0.3,
    "min_share": 0.3,
    "noise": 0.8,
    "noise_variance": 0.4,
    "num_clusters": 3.0,
    "num_others": 20.0,
    "num_points": 30.0,
    "omega": 1.2,
    "op_norm": 0.9,
    "other_radius": 1.7,
    "psi": 1.1,
    "psi_double": 1.4,
    "radius": 0.9,
    "scale": 0.4,
    "smallest": 15.0,
    "spectral": 0.3,
    "squared_distance": 1.3,
    "t": 1.2,
    "tau": 1.5,
    "total_variance": 9.0,
    "truncation_factor": 5.0,
    "u": 1.1,
    "v": 2.0,
    "vbar2": 0.02,
}
_LIPSCHITZ = ("lipschitz", "omega", "scale")
_SPHERES = ("radius", "other_radius", "noise", "lengthscale", "dim")
_MODEL = ("num_clusters", "lipschitz", "noise", "op_norm", "dim", "num_points", "t", "kmeans_factor")
_OPERATOR = (*_LIPSCHITZ, "num_clusters", "mean_gap", "num_points", "t", "kmeans_factor", "truncation_factor")
_BLOCKS = ("bound", "num_clusters", "t")
CONCENTRATION_BOUNDS = {
    "anisotropic_noise": ("lipschitz", "op_norm", "dim", "num_points", "t"),
    "block_means": (*_BLOCKS, "smallest"),
    "block_variances": (*_BLOCKS, "smallest"),
    "concentrated_data": (*_LIPSCHITZ, "num_points", "t", "c"),
    "deviation": (*_LIPSCHITZ, "num_points", "t", "c"),
    "diagonal_variance": (*_LIPSCHITZ, "c"),
    "diagonal_variance_lc": _LIPSCHITZ,
    "distance_kernel": (*_LIPSCHITZ, "num_points", "t", "mean_scale"),
    "distance_kernel_from_variance": (*_LIPSCHITZ, "num_points", "t", "total_variance"),
    "empirical_separation": (*_BLOCKS, "gamma2", "min_share", "num_points"),
    "empirical_variance": (*_BLOCKS, "vbar2", "min_share", "num_points"),
    "frobenius_mean": (*_LIPSCHITZ, "num_points", "c"),
    "frobenius_mean_lc": (*_LIPSCHITZ, "num_points"),
    "frobenius_mean_square": (*_LIPSCHITZ, "num_points", "c"),
    "gaussian_kernel": ("noise", "lengthscale", "dim", "num_points", "t"),
    "gaussian_lipschitz": ("lengthscale",),
    "gaussian_pair_variance": ("squared_distance", "noise_variance", "lengthscale", "dim"),
    "gram_displacement": ("lipschitz", "num_points", "displacement"),
    "gram_displacement_distance": ("lipschitz", "num_points", "displacement"),
    "hanson_wright": ("kappa", "frobenius", "op_norm", "mean_frobenius", "dim", "t", "c"),
    "hanson_wright_gaussian": ("scale", "frobenius", "op_norm", "mean_frobenius", "dim", "tau"),
    "inner_product_gaussian": ("scale", "mean_norm", "mean_rank", "dim", "num_points", "u"),
    "inner_product_gaussian_any": ("scale", "frobenius", "mean_norm", "num_points", "tau"),
    "inner_product_kernel": ("kappa", "scale", "mean_norm", "dim", "num_points", "u", "c1", "c2"),
    "inner_product_lower_centred": ("scale", "dim", "num_points", "u"),
    "inner_product_lower": ("mean_norm", "mean_rank", "num_points", "u"),
    "isotropic_block_mean": (*_SPHERES, "psi"),
    "isotropic_block_variance": (*_SPHERES, "psi", "psi_double"),
    "isotropic_block_variance_lower": _SPHERES,
    "isotropic_block_variance_upper": _SPHERES,
    "kmeans_step": ("error", "gamma2", "gamma_tilde2", "kmeans_factor"),
    "lipschitz_kernel": (*_LIPSCHITZ, "num_points", "t", "mean_scale"),
    "lower_limit": ("lipschitz", "scale", "num_points"),
    "misclassification": (*_MODEL, "gamma2", "gamma_tilde2", "vbar2"),
    "misclassification_operator": (*_OPERATOR, "gamma2", "gamma_tilde2"),
    "misclassification_operator_distance": (*_OPERATOR, "gamma2", "gamma_tilde2"),
    "misclassification_population": (*_MODEL, "gamma2", "gamma_tilde2", "vbar2", "bound", "min_share"),
    "pair_variance": (*_LIPSCHITZ, "c"),
    "pair_variance_lc": _LIPSCHITZ,
    "quadratic_form": ("kappa", "scale", "mean_norm", "dim", "t", "c"),
    "quadratic_form_gaussian": ("scale", "frobenius", "mean_norm", "tau"),
    "radial_block_variance": _SPHERES,
    "radial_mean_gap": ("noise", "lengthscale", "dim"),
    "sphere_moment": ("u", "dim"),
    "sub_exponential": ("t", "v", "alpha"),
    "truncation": ("spectral", "num_clusters"),
    "two_sample_statistic": ("bound", "num_points", "num_others", "t"),
    "u_statistic": ("bound", "num_points", "t"),
}
for name, names in CONCENTRATION_BOUNDS.items():

    @entry(f"bounds.concentration.{name}")
    def _(dtype, seed, name=name, names=names):
        def bound(*args):
            return getattr(concentration, name)(**dict(zip(names, args, strict=True)))

        values = [CONCENTRATION_QUANTITIES[n] * (1 + 0.05 * i * seed) for i, n in enumerate(names, 1)]
        return bound, tuple(jnp.asarray(value, dtype) for value in values)


@entry("bounds.concentration.block_parameters")
def _(dtype, seed):
    def parameters(mean_kernel, labels):
        return concentration.block_parameters(mean_kernel, labels, num_clusters=3, off_diagonal=True)

    mean_kernel = array(dtype, seed, N, N)
    return parameters, (mean_kernel + mean_kernel.T, jnp.arange(N) % 3)


@entry("bounds.concentration.population_parameters")
def _(dtype, seed):
    shares = jax.nn.softmax(array(dtype, seed, 3))
    return concentration.population_parameters, (array(dtype, seed, 3, 3), array(dtype, seed, 3, 3) ** 2, shares)


# ------------------------------------------------------------- methods: what the functions above do not call

FROM_GAMMA = ("Gaussian", "Exponential", "Laplacian")


def number(dtype, value):
    return jnp.asarray(value, dtype)


def nystrom_map(dtype, seed):
    """Made by hand, as the others are: what fits it is compiled in an entry of the registry."""
    parts = (array(dtype, seed, 4, N), jnp.abs(array(dtype, seed, 4)), number("int32", 4), number(dtype, 0.5))
    return features.Nystrom(gaussian(dtype, seed), points(dtype, seed), *parts)


@entry("audit.DistanceError.exceeding")
def _(dtype, seed):
    found = audit.DistanceError(number(dtype, 0.4), number(dtype, 0.1), number("int32", N + seed), jnp.asarray(True))
    return lambda found: found.exceeding(0.01), (found,)


def clusters(dtype, seed):
    """Return labels, centres, the objective and whether it converged."""
    return jnp.arange(N) % 2, array(dtype, seed, 2, 4), number(dtype, 3), jnp.asarray(True)


@entry("clustering.KernelKMeans.predict", gradient=False)
def _(dtype, seed):
    found = clustering.KernelKMeans(nystrom_map(dtype, seed), *clusters(dtype, seed))
    return lambda found, X: found.predict(X), (found, others(dtype, seed))


@entry("clustering.KernelSpectral.predict", gradient=False)
def _(dtype, seed):
    def images(found, X):
        return found.predict(X), found.embed(rkhs.section(found.kernel, X)), found(X)

    projection, values = array(dtype, seed, 4, N), jnp.abs(array(dtype, seed, 4))
    parts = (points(dtype, seed), projection, *clusters(dtype, seed), values)
    return images, (clustering.KernelSpectral(gaussian(dtype, seed), *parts), others(dtype, seed))


@entry("clustering.SpectralPartition.predict", gradient=False)
def _(dtype, seed):
    parts = (*clusters(dtype, seed), jnp.abs(array(dtype, seed, 4)), array(dtype, seed, 4, N))
    found = clustering.SpectralPartition(*parts)
    return lambda found, K: found.predict(K), (found, array(dtype, seed, 5, N))


@entry("features.Fastfood.frequencies")
def _(dtype, seed):
    signs, gains = jnp.sign(array(dtype, seed, 2, DIM)), array(dtype, seed, 2, 4)
    turned = jnp.asarray([[2, 0, 3, 1], [1, 3, 0, 2]], jnp.int32)
    phi = features.Fastfood(gaussian(dtype, seed), signs, turned, gains, jnp.abs(array(dtype, seed, 6)))
    return lambda phi: phi.frequencies, (phi,)


@entry("features.KernelPCA.reconstruction_residual")
def _(dtype, seed):
    def quantities(k, X, Y):
        phi = features.kernel_pca(k, X, num_components=4)
        back = phi.coefficients(phi(Y))
        return phi.reconstruction_residual(Y), back, phi.explained_variance, phi.explained_variance_ratio

    return quantities, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@entry("features.RandomFeaturePCA.explained_variance")
def _(dtype, seed):
    def variance(key, k, X):
        phi = features.paired_fourier(key, k, DIM, num_frequencies=20, dtype=dtype)
        return features.random_feature_pca(phi, X, num_components=4).explained_variance  # fewer points than features

    return variance, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@entry("features.StreamingMap.relative_residual")
def _(dtype, seed):
    numbers = (number(dtype, value) for value in (0.1, 0.4, 9.0, 12.0))
    parts = (array(dtype, seed, 2, 4), array(dtype, seed, 4), jnp.abs(array(dtype, seed, 2)), *numbers)
    phi = features.StreamingMap(nystrom_map(dtype, seed), *parts, number("int32", 2), jnp.asarray(True), True)
    return lambda phi: (phi.relative_residual, phi.relative_shrinkage, phi.variances), (phi,)


@entry("kernels.Gaussian.from_gamma")
def _(dtype, seed):
    makers = (kernels.Gaussian.from_width, *(getattr(kernels, name).from_gamma for name in FROM_GAMMA))
    return lambda size, X: [gram.gram(make(size), X) for make in makers], (scale(dtype, seed), points(dtype, seed))


@entry("measures.Discrete.total")
def _(dtype, seed):
    return lambda X, w: measures.Discrete(X, w).total, (points(dtype, seed), jnp.abs(array(dtype, seed, N)))


@entry("problems.Problem.omega")
def _(dtype, seed):
    def constant(key, X, parameter):
        return problems.perturb(key, X, measures.IsotropicNoise(1.0), law=problems.RampLaw(parameter)).omega

    return constant, (key(seed), points(dtype, seed), scale(dtype, seed))


@entry("rkhs.Covariance.hs_norm")
def _(dtype, seed):
    def quantities(k, X, Y):
        sigma = rkhs.Covariance(k, X)
        return sigma.hs_norm(), sigma.matrix(), sigma.mean()(Y), sigma.total

    return quantities, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


# ------------------------------------------------------- other ways through a function: by kernel, by size, derivatives

WAYS = {}
"""Entries as above, for what the ones of the registry do not reach: they differ by kernel, and functions of streams."""

KERNELS = {
    "Gaussian": kernels.Gaussian,
    "Laplacian": kernels.Laplacian,
    "Exponential": kernels.Exponential,
    "Cauchy": kernels.Cauchy,
    "Matern32": kernels.Matern32,
    "Matern52": kernels.Matern52,
}


def way(name):
    return functools.partial(WAYS.setdefault, name)


for name, cls in KERNELS.items():

    @way(f"gram and distances of {name}")
    def _(dtype, seed, cls=cls):
        def values(k, X, Y, V):
            near = gram.kernel_distance(k, Y, Y + 1e-3)
            return gram.gram(k, X, Y), gram.gram_matmul(k, X, Y, V, block_size=5), near

        return values, (cls(scale(dtype, seed)), points(dtype, seed), others(dtype, seed), array(dtype, seed, 7, 2))


@way("frequencies of every kernel")
def _(dtype, seed):
    def maps(key, lengthscale, X):
        laws = [kernel(lengthscale) for kernel in KERNELS.values()]
        keys = zip(jax.random.split(key, len(laws)), laws, strict=True)
        return [features.paired_fourier(k, law, DIM, num_frequencies=3, dtype=dtype)(X) for k, law in keys]

    return maps, (key(seed), scale(dtype, seed), points(dtype, seed))


@way("merged reservoirs")
def _(dtype, seed):
    def both(first, second, X, Y):
        init, update, merge = landmarks.reservoir(num_landmarks=5)
        return merge(update(init(first, DIM, dtype), X), update(init(second, DIM, dtype), Y)).points

    return both, (key(seed), key(seed + 1), points(dtype, seed), others(dtype, seed))
