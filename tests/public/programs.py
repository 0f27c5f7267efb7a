"""Programs of public functions for the contract: their arguments are the arrays that `make` asks its case for."""

import contextlib
import importlib
import inspect

import jax
import jax.numpy as jnp
from support.bounds import ARGUMENTS, named
from support.cases import KERNELS, as_program, user

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
from public.operation import STATIONARY, TABLE, positive

MODULES = (
    *(
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
    ),
    "regression",
    *("clustering", "learn", "metrics", "frequent_directions", "io"),
    *(
        f"bounds.{topic}"
        for topic in ("sketching", "fourier", "streaming", "concentration")
    ),
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


def is_no_call(name):
    """Tell whether a public name is none to call: a class that functions return, a base class, a type or a number."""
    value = named(name)
    if not inspect.isclass(value):
        return not callable(value)
    return name not in TABLE and (value in BASES or not issubclass(value, BASES))


BASES = (kernels.Kernel, problems.Law)
ENTRIES = {}
"""By public name, `make(dtype, seed) -> (function, arguments)`: all arrays, keys and kernels are arguments, so that the
function can be jitted, vmapped over stacked arguments, lowered and differentiated as it is."""
WAYS = {}
"""The same for what the entries do not reach: other kernels, and functions of streams."""
ON_THE_HOST = ("io.", "scale.", "sklearn.")

for _name, _operation in TABLE.items():
    if not _name.startswith(ON_THE_HOST):
        _settings = {"kernel_name": _operation.kernels[0]} | _operation.example
        ENTRIES[_name] = as_program(_operation.results, **_settings)


def bound_entry(name, values):
    def make(dtype, seed):
        args = (
            jnp.asarray(value * (1 + 0.05 * i * seed), dtype)
            for i, value in enumerate(values.values(), 1)
        )
        return lambda *args: named(name)(**dict(zip(values, args, strict=True))), tuple(
            args
        )

    ENTRIES[name] = make


for _name, _values in ARGUMENTS.items():
    bound_entry(_name, _values)


def method(name):
    """What the functions above do not call. Results of fits are made by hand: what makes them is compiled above."""
    return lambda call: ENTRIES.update({name: as_program(call)})


def whole_number(value):
    return jnp.asarray(value, jnp.int32)


def nystrom_map(c):
    return features.Nystrom(
        c.kernel, c.X, c.numbers(4, c.n), positive(c, 4), whole_number(4), 0.5 * c.share
    )


def clusters(c):
    """Return labels, centres, the objective and whether it converged."""
    return jnp.arange(c.n) % 2, c.numbers(2, 4), 3 + c.share, jnp.asarray(True)


@method("audit.DistanceError.exceeding")
def _(c):
    counted = 9 + jnp.sum(c.labels)
    return audit.DistanceError(
        c.share, 0.3 * c.share, counted, jnp.asarray(True)
    ).exceeding(0.01)


@method("clustering.KernelKMeans.predict")
def _(c):
    return clustering.KernelKMeans(nystrom_map(c), *clusters(c)).predict(c.Y)


@method("clustering.KernelSpectral.predict")
def _(c):
    parts = (c.X, c.numbers(4, c.n), *clusters(c), positive(c, 4))
    spectral = clustering.KernelSpectral(c.kernel, *parts)
    return (
        spectral.predict(c.Y),
        spectral.embed(rkhs.section(c.kernel, c.Y)),
        spectral(c.Y),
    )


@method("clustering.SpectralPartition.predict")
def _(c):
    return clustering.SpectralPartition(
        *clusters(c), positive(c, 4), c.numbers(4, c.n)
    ).predict(c.numbers(5, c.n))


@method("features.Fastfood.frequencies")
def _(c):
    turned = jnp.asarray([[2, 0, 3, 1], [1, 3, 0, 2]], jnp.int32)
    signs = jnp.sign(c.numbers(2, c.dim))
    return features.Fastfood(
        c.kernel, signs, turned, c.numbers(2, 4), positive(c, 6)
    ).frequencies


@method("features.KernelPCA.coefficients")
def _(c):
    parts = (
        c.numbers(4, c.n),
        c.numbers(4),
        positive(c, 4),
        whole_number(4),
        3 + c.share,
        c.share,
    )
    return features.KernelPCA(c.kernel, c.X, *parts).coefficients(c.numbers(5, 4))


@method("features.RandomFeaturePCA.explained_variance")
def _(c):
    phi = features.paired_fourier(
        c.key, c.kernel, c.dim, num_frequencies=20, dtype=c.dtype
    )
    return features.random_feature_pca(
        phi, c.X, num_components=4
    ).explained_variance  # fewer points than features


@method("features.StreamingMap.relative_residual")
def _(c):
    numbers = (0.1 * c.share, 0.4 * c.share, 9 + c.share, 12 + c.share)
    parts = (c.numbers(2, 4), c.numbers(4), positive(c, 2), *numbers)
    phi = features.StreamingMap(
        nystrom_map(c), *parts, whole_number(2), jnp.asarray(True), True
    )
    return phi.relative_residual, phi.relative_shrinkage, phi.variances


@method("kernels.Gaussian.from_gamma")
def _(c):
    makers = (
        getattr(kernels, name).from_gamma
        for name in ("Gaussian", "Exponential", "Laplacian")
    )
    return [
        gram.gram(make(c.length), c.X)
        for make in (kernels.Gaussian.from_width, *makers)
    ]


@method("rkhs.Covariance.matrix")
def _(c):
    sigma = rkhs.Covariance(c.kernel, c.X)
    return sigma.matrix(), sigma.mean()(c.Y), sigma.total


NO_GRADIENT = {name for name, operation in TABLE.items() if not operation.gradient}
NO_GRADIENT |= {name for name in ENTRIES if name.endswith(".predict")}


def way(name):
    return lambda call: WAYS.update({name: as_program(call)})


SPECTRAL = tuple(
    name for name in STATIONARY if name not in ("sum", "product", "scaled")
)

for _name in (*SPECTRAL, "linear", "polynomial"):

    @way(f"gram and distances of {_name}")
    def _(c, make=KERNELS[_name]):
        k = make(c.length)
        K, KV = (
            gram.gram(k, c.X, c.Y),
            gram.gram_matmul(k, c.X, c.Y, c.numbers(c.n + 1, 2), block_size=5),
        )
        return K, KV, gram.kernel_distance(k, c.Y, c.Y + 1e-3)


@way("frequencies of every kernel")
def _(c):
    laws = [KERNELS[name](c.length) for name in SPECTRAL]
    keys = zip(jax.random.split(c.key, len(laws)), laws, strict=True)
    return [
        features.paired_fourier(k, law, c.dim, num_frequencies=3, dtype=c.dtype)(c.X)
        for k, law in keys
    ]


@way("constants of every kernel")
def _(c):
    values = []
    known = kernels.FromFunction(user, sup=1.0, slope=1.0)
    for kernel in (known, *(make(c.length) for make in KERNELS.values())):
        with contextlib.suppress(ValueError):  # of a function they are not known
            values += [kernels.lipschitz(kernel, dim=c.dim), kernels.kappa(kernel)]
    return [
        jnp.asarray(value, c.dtype) for value in values if isinstance(value, jax.Array)
    ]


@way("merged reservoirs")
def _(c):
    init, update, merge = landmarks.reservoir(num_landmarks=5)
    first = update(init(c.key, c.dim, c.dtype), c.X)
    return merge(first, update(init(c.other_key, c.dim, c.dtype), c.Y)).points


@way("mean kernels of a sum")
def _(c):
    noise = measures.RadialNoise(c.shares)
    return measures.mean_kernel(c.kernel + kernels.Linear(), c.X, noise), noise.op_norm(
        c.X
    )


CALLS = {**ENTRIES, **WAYS}
GROUPS = {}
"""The names in `CALLS` by program: small functions of one module that decompose nothing share one. Decompositions side
by side may wait for each other: see docs/design.md."""
LARGE = {
    "ball",
    "ball_additive",
    "ball_matern",
    "dimension_limit",
    "relative_distances_given",
    "kernel_values_given",
}
LARGE |= {"relative_distances_sharp", "simplex_success_limit", "success_limit"}
LARGE = {f"bounds.fourier.{_word}" for _word in LARGE}
"""Functions whose programs take more time together than each for itself."""
SHARED = ("bounds.", "kernels.", "problems.", "gram and distances")

for _name in CALLS:
    _alone = _name in LONG | NO_GRADIENT | LARGE or not _name.startswith(SHARED)
    GROUPS.setdefault(
        _name if _alone else _name.rpartition(".")[0] or SHARED[-1], []
    ).append(_name)


def joined(group, dtype, seed):
    """Return the functions of a group as one of {name: arguments}, and these."""
    made = {name: CALLS[name](dtype, seed) for name in GROUPS.get(group, [group])}

    def call(args):
        return {name: function(*args[name]) for name, (function, _) in made.items()}

    return call, {name: args for name, (_, args) in made.items()}
