"""Programs of public functions for the contract: their arguments are the arrays that `make` asks its case for."""

import contextlib
import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np
from support.bounds import ARGUMENTS, named
from support.cases import KERNELS, STATIONARY, as_program, user

from jaxkern import (
    audit,
    clustering,
    features,
    gram,
    kernels,
    landmarks,
    measures,
    problems,
    rkhs,
)
from public.operation import TABLE, positive

MODULES = (
    "kernels",
    "gram",
    "measures",
    "problems",
    "rkhs",
    "landmarks",
    "features",
    "audit",
    "scale",
    "kmeans",
    "regression",
    "clustering",
    "learn",
    "metrics",
    "frequent_directions",
    "io",
    "bounds.sketching",
    "bounds.fourier",
    "bounds.streaming",
    "bounds.concentration",
)
LONG = {  # to compile; their own modules map them, too
    "audit.sampled_distance_error",
    "audit.spectral_error",
    "bounds.fourier.ball",
    "clustering.kernel_kmeans",
    "clustering.kernel_spectral",
    "clustering.spectral_from_gram",
    "features.fastfood",
    "features.streaming_pca",
    "kernels.sampled_quantile_lengthscale",
    "kmeans.kmeans",
    "learn.fit_lengthscale",
    "problems.gaussian_mixture",
    "regression.ridge_to",
}


def public_names(*modules):
    return {
        f"{module}.{name}"
        for module in modules
        for name in importlib.import_module(f"jaxkern.{module}").__all__
    }


BASES = (kernels.Kernel, problems.Law)


def is_no_call(name):
    """Tell whether a public name is none to call: a class that functions return, a base class, a type or a number."""
    value = named(name)
    if not inspect.isclass(value):
        return not callable(value)
    return name not in TABLE and (value in BASES or not issubclass(value, BASES))


ENTRIES = {}
"""By public name, `make(dtype, seed) -> (function, arguments)`: all arrays, keys and kernels are arguments, so that the
function can be jitted, vmapped over stacked arguments, lowered and differentiated as it is."""
WAYS = {}
"""The same for what the entries do not reach: other kernels, and functions of streams."""
ON_THE_HOST = ("io.", "scale.", "sklearn.", "regression.TablePredictor.predict")

for _name, _operation in TABLE.items():
    if not _name.startswith(ON_THE_HOST):
        _settings = {"kernel_name": _operation.kernels[0]} | _operation.example
        ENTRIES[_name] = as_program(_operation.results, **_settings)


def bound_entry(name, numbers):
    """Return `make` of a bound, whose arguments grow with the seed."""

    def call(*args):
        return named(name)(**dict(zip(numbers, args, strict=True)))

    def make(dtype, seed):
        growth = 1 + 0.05 * seed * np.arange(1, len(numbers) + 1)
        values = growth * list(numbers.values())
        return call, tuple(jnp.asarray(value, dtype) for value in values)

    return make


for _name, _numbers in ARGUMENTS.items():
    ENTRIES[_name] = bound_entry(_name, _numbers)


def program(name, table=ENTRIES):
    """Add the program of a function of a case. Results of fits are made by hand: entries compile what makes them."""
    return lambda call: table.update({name: as_program(call)})


def whole_number(value):
    return jnp.asarray(value, jnp.int32)


def nystrom_map(c):
    return features.Nystrom(
        c.kernel, c.X, c.numbers(4, c.n), positive(c, 4), whole_number(4), 0.5 * c.share
    )


def clusters(c):
    """Return labels, centres, the objective and whether it converged."""
    return jnp.arange(c.n) % 2, c.numbers(2, 4), 3 + c.share, jnp.asarray(True)


@program("audit.DistanceError.exceeding")
def _(c):
    counted = 9 + jnp.sum(c.labels)
    error = audit.DistanceError(c.share, 0.3 * c.share, counted, jnp.asarray(True))
    return error.exceeding(0.01)


@program("clustering.KernelKMeans.predict")
def _(c):
    return clustering.KernelKMeans(nystrom_map(c), *clusters(c)).predict(c.Y)


@program("clustering.KernelSpectral.predict")
def _(c):
    projection = c.numbers(4, c.n)
    spectral = clustering.KernelSpectral(
        c.kernel, c.X, projection, *clusters(c), positive(c, 4)
    )
    embedded = spectral.embed(rkhs.section(c.kernel, c.Y))
    return spectral.predict(c.Y), embedded, spectral(c.Y)


@program("clustering.SpectralPartition.predict")
def _(c):
    projection = c.numbers(4, c.n)
    partition = clustering.SpectralPartition(*clusters(c), positive(c, 4), projection)
    return partition.predict(c.numbers(5, c.n))


@program("features.Fastfood.frequencies")
def _(c):
    permutations = jnp.asarray([[2, 0, 3, 1], [1, 3, 0, 2]], jnp.int32)
    signs = jnp.sign(c.numbers(2, c.dim))
    normals = c.numbers(2, 4)
    phi = features.Fastfood(c.kernel, signs, permutations, normals, positive(c, 6))
    return phi.frequencies


@program("features.KernelPCA.coefficients")
def _(c):
    projection = c.numbers(4, c.n)
    shift = c.numbers(4)
    scalars = (whole_number(4), 3 + c.share, c.share)
    phi = features.KernelPCA(c.kernel, c.X, projection, shift, positive(c, 4), *scalars)
    return phi.coefficients(c.numbers(5, 4))


@program("features.RandomFeaturePCA.explained_variance")
def _(c):
    # More features than points.
    phi = features.paired_fourier(
        c.key, c.kernel, c.dim, num_frequencies=20, dtype=c.dtype
    )
    return features.random_feature_pca(phi, c.X, num_components=4).explained_variance


@program("features.StreamingMap.relative_residual")
def _(c):
    energies = (0.1 * c.share, 0.4 * c.share, 9 + c.share, 12 + c.share)
    arrays = (c.numbers(2, 4), c.numbers(4), positive(c, 2))
    signs = (whole_number(2), jnp.asarray(True), True)
    phi = features.StreamingMap(nystrom_map(c), *arrays, *energies, *signs)
    return phi.relative_residual, phi.relative_shrinkage, phi.variances


@program("kernels.Gaussian.from_gamma")
def _(c):
    classes = (kernels.Gaussian, kernels.Exponential, kernels.Laplacian)
    parametrized = [cls.from_gamma(c.length) for cls in classes]
    parametrized.append(kernels.Gaussian.from_width(c.length))
    return [gram.gram(kernel, c.X) for kernel in parametrized]


@program("rkhs.Covariance.matrix")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X)
    return sigma.matrix(), sigma.mean()(c.Y), sigma.total


NO_GRADIENT = {name for name, operation in TABLE.items() if not operation.gradient}
NO_GRADIENT |= {name for name in ENTRIES if name.endswith(".predict")}


SPECTRAL = STATIONARY[:6]
"""Kernels that are no sums and products."""

for _name in (*SPECTRAL, "linear", "polynomial"):

    @program(f"gram and distances of {_name}", WAYS)
    def _(c, make=KERNELS[_name]):
        kernel = make(c.length)
        V = c.numbers(c.n + 1, 2)
        K = gram.gram(kernel, c.X, c.Y)
        KV = gram.gram_matmul(kernel, c.X, c.Y, V, block_size=5)
        return K, KV, gram.kernel_distance(kernel, c.Y, c.Y + 1e-3)


@program("frequencies of every kernel", WAYS)
def _(c):
    keys = jax.random.split(c.key, len(SPECTRAL))
    Z = []
    for key, name in zip(keys, SPECTRAL, strict=True):
        kernel = KERNELS[name](c.length)
        phi = features.paired_fourier(
            key, kernel, c.dim, num_frequencies=3, dtype=c.dtype
        )
        Z.append(phi(c.X))
    return Z


@program("constants of every kernel", WAYS)
def _(c):
    constants = []
    known = kernels.FromFunction(user, sup=1.0, slope=1.0)
    for kernel in (known, *(make(c.length) for make in KERNELS.values())):
        with contextlib.suppress(ValueError):  # of a function they are not known
            constants += [kernels.lipschitz(kernel, dim=c.dim), kernels.kappa(kernel)]
    # Numbers of Python are no results of a program.
    arrays = [constant for constant in constants if isinstance(constant, jax.Array)]
    return [jnp.asarray(array, c.dtype) for array in arrays]


@program("merged reservoirs", WAYS)
def _(c):
    init, update, merge = landmarks.reservoir(num_landmarks=5)
    first = update(init(c.key, c.dim, c.dtype), c.X)
    return merge(first, update(init(c.other_key, c.dim, c.dtype), c.Y)).points


@program("mean kernels of a sum", WAYS)
def _(c):
    noise = measures.RadialNoise(c.shares)
    mean = measures.mean_kernel(c.kernel + kernels.Linear(), c.X, noise)
    return mean, noise.op_norm(c.X)


CALLS = {**ENTRIES, **WAYS}
LARGE = {
    "bounds.fourier.ball",
    "bounds.fourier.ball_additive",
    "bounds.fourier.ball_matern",
    "bounds.fourier.dimension_limit",
    "bounds.fourier.relative_distances_given",
    "bounds.fourier.kernel_values_given",
    "bounds.fourier.relative_distances_sharp",
    "bounds.fourier.simplex_success_limit",
    "bounds.fourier.success_limit",
}
"""Functions whose programs take more time together than each for itself."""
SHARED = ("bounds.", "kernels.", "problems.", "gram and distances")
GROUPS = {}
"""The names in `CALLS` by program: small functions of one module that decompose nothing share one. Decompositions side
by side may wait for each other: see docs/design.md."""

for _name in CALLS:
    _group = _name
    if _name.startswith(SHARED) and _name not in LONG | NO_GRADIENT | LARGE:
        _group = _name.rpartition(".")[0] or SHARED[-1]
    GROUPS.setdefault(_group, []).append(_name)


def joined(group, dtype, seed):
    """Return the functions of a group as one of {name: arguments}, and these."""
    functions = {}
    arguments = {}
    for name in GROUPS.get(group, [group]):
        functions[name], arguments[name] = CALLS[name](dtype, seed)

    def call(args):
        return {name: function(*args[name]) for name, function in functions.items()}

    return call, arguments
