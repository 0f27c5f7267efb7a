"""One artefact of every public function serves cpu, cuda and tpu, made and run here with no accelerator.

`jax.export` lowers a function for all three at once. What comes back from its bytes is called on the CPU and compared
with the function itself; nothing here says how the other two round. That float32 programs hold no float64, and that
products ask for full precision, test_contract.py says of the functions, and this module of what it adds to them.
"""

import dataclasses
import functools
import importlib
import inspect
import pkgutil

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from registry import DIM, ENTRIES, N, array, gaussian, key, others, points, scale
from test_contract import LONG, MODULES, doubles, imprecise

import jaxkern
from jaxkern import audit, clustering, features, frequent_directions, gram, kernels, landmarks, measures, rkhs
from jaxkern.kmeans import kmeans

PLATFORMS = ("cpu", "cuda", "tpu")
ON_THE_HOST = {
    "bounds": "the type of a bound; its modules are walked one by one",
    "plan": "searches in Python floats of float64",
    "sklearn": "adapters whose arrays are those of NumPy; they call features",
}
"""Public modules that nothing is lowered of. `scale.embed`, `io.save` and `io.load` stand in test_contract.py."""

# --------------------------------------------------------------------------- methods: what the registry does not call

METHODS = {}
"""Entries as those of the registry, for methods: `make(dtype, seed) -> (function, arguments)`."""
MEMBERS = set()
"""The methods and properties that an entry here calls, as module.Class.name."""
IN_THE_REGISTRY = {
    "features.Fastfood.__call__",
    "features.KernelJL.__call__",
    "features.KernelJL.embed",
    "features.KernelPCA.__call__",
    "features.KernelPCA.embed",
    "features.Nystrom.__call__",
    "features.Nystrom.embed",
    "features.PairedFourier.__call__",
    "features.RandomFeaturePCA.__call__",
    "features.RandomFeaturePCA.explained_variance_ratio",
    "features.ShiftedFourier.__call__",
    "features.Standardized.__call__",
    "features.StreamingMap.__call__",
    "frequent_directions.Sketch.rows",
    "measures.Discrete.sample",
    "measures.GaussianSpectrum.effective_rank",
    "measures.GaussianSpectrum.eigenvalues",
    "measures.GaussianSpectrum.op_norm",
    "measures.GaussianSpectrum.trace",
    "problems.Problem.mean_kernel",
    "problems.Problem.sigma_inf",
    "rkhs.Covariance.__call__",
    "rkhs.Covariance.effective_rank",
    "rkhs.Covariance.eigenvalues",
    "rkhs.Covariance.inner",
    "rkhs.Covariance.kappa",
    "rkhs.Covariance.op_norm",
    "rkhs.Covariance.trace",
    "rkhs.Function.__add__",
    "rkhs.Function.__call__",
    "rkhs.Function.__mul__",
    "rkhs.Function.__neg__",
    "rkhs.Function.__rmul__",
    "rkhs.Function.__sub__",
    "rkhs.RandomProjection.__call__",
    "rkhs.RandomProjection.adjoint",
    "rkhs.SamplingOperator.__call__",
    "rkhs.SamplingOperator.adjoint",
    "rkhs.SamplingOperator.gram",
}
"""The methods and properties that an entry of the registry calls."""
LAWS = ("Law", "GaussianLaw", "RampLaw", "SkewedLaw", "SoftplusImageLaw", "UniformImageLaw", "UniformLaw")
NOISES = ("DiagonalNoise", "GeneralNoise", "IsotropicNoise", "RadialNoise")
IN_THE_REGISTRY |= {f"problems.{law}.{name}" for law in LAWS for name in ("sample", "omega")}
IN_THE_REGISTRY |= {f"measures.{noise}.op_norm" for noise in NOISES}
IN_THE_REGISTRY |= {
    f"kernels.{name}.{operator}"
    for name in kernels.__all__
    if inspect.isclass(getattr(kernels, name))
    for operator in ("__call__", "__add__", "__mul__", "__rmul__")
}
FROM_GAMMA = ("Gaussian", "Exponential", "Laplacian")
NOTHING_TO_LOWER = {"num_features", "num_frequencies", "psd"}
"""Properties that are numbers of Python."""


def method(*members):
    """Register an entry by the members that it calls."""

    def register(make):
        METHODS[members[0]] = make
        MEMBERS.update(members)
        return make

    return register


def number(dtype, value):
    return jnp.asarray(value, dtype)


def nystrom_map(dtype, seed):
    """Made by hand, as the others are: what fits it is compiled in an entry of the registry."""
    parts = (array(dtype, seed, 4, N), jnp.abs(array(dtype, seed, 4)), number("int32", 4), number(dtype, 0.5))
    return features.Nystrom(gaussian(dtype, seed), points(dtype, seed), *parts)


@method("audit.DistanceError.exceeding")
def _(dtype, seed):
    found = audit.DistanceError(number(dtype, 0.4), number(dtype, 0.1), number("int32", N), jnp.asarray(True))
    return lambda found: found.exceeding(0.01), (found,)


def clusters(dtype, seed):
    """Return labels, centres, the objective and whether it converged."""
    return jnp.arange(N) % 2, array(dtype, seed, 2, 4), number(dtype, 3), jnp.asarray(True)


@method("clustering.KernelKMeans.predict")
def _(dtype, seed):
    found = clustering.KernelKMeans(nystrom_map(dtype, seed), *clusters(dtype, seed))
    return lambda found, X: found.predict(X), (found, others(dtype, seed))


@method("clustering.KernelSpectral.predict", "clustering.KernelSpectral.embed", "clustering.KernelSpectral.__call__")
def _(dtype, seed):
    def images(found, X):
        return found.predict(X), found.embed(rkhs.section(found.kernel, X)), found(X)

    projection, values = array(dtype, seed, 4, N), jnp.abs(array(dtype, seed, 4))
    parts = (points(dtype, seed), projection, *clusters(dtype, seed), values)
    return images, (clustering.KernelSpectral(gaussian(dtype, seed), *parts), others(dtype, seed))


@method("clustering.SpectralPartition.predict")
def _(dtype, seed):
    parts = (*clusters(dtype, seed), jnp.abs(array(dtype, seed, 4)), array(dtype, seed, 4, N))
    found = clustering.SpectralPartition(*parts)
    return lambda found, K: found.predict(K), (found, array(dtype, seed, 5, N))


@method("features.Fastfood.frequencies")
def _(dtype, seed):
    signs, gains = jnp.sign(array(dtype, seed, 2, DIM)), array(dtype, seed, 2, 4)
    turned = jnp.asarray([[2, 0, 3, 1], [1, 3, 0, 2]], jnp.int32)
    phi = features.Fastfood(gaussian(dtype, seed), signs, turned, gains, jnp.abs(array(dtype, seed, 6)))
    return lambda phi: phi.frequencies, (phi,)


@method(
    "features.KernelPCA.reconstruction_residual",
    "features.KernelPCA.coefficients",
    "features.KernelPCA.explained_variance",
    "features.KernelPCA.explained_variance_ratio",
)
def _(dtype, seed):
    def quantities(k, X, Y):
        phi = features.kernel_pca(k, X, num_components=4)
        back = phi.coefficients(phi(Y))
        return phi.reconstruction_residual(Y), back, phi.explained_variance, phi.explained_variance_ratio

    return quantities, (gaussian(dtype, seed), points(dtype, seed), others(dtype, seed))


@method("features.RandomFeaturePCA.explained_variance")
def _(dtype, seed):
    def variance(key, k, X):
        phi = features.paired_fourier(key, k, DIM, num_frequencies=20, dtype=dtype)
        return features.random_feature_pca(phi, X, num_components=4).explained_variance  # fewer points than features

    return variance, (key(seed), gaussian(dtype, seed), points(dtype, seed))


@method(
    "features.StreamingMap.relative_residual",
    "features.StreamingMap.relative_shrinkage",
    "features.StreamingMap.variances",
)
def _(dtype, seed):
    numbers = (number(dtype, value) for value in (0.1, 0.4, 9.0, 12.0))
    parts = (array(dtype, seed, 2, 4), array(dtype, seed, 4), jnp.abs(array(dtype, seed, 2)), *numbers)
    phi = features.StreamingMap(nystrom_map(dtype, seed), *parts, number("int32", 2), jnp.asarray(True), True)
    return lambda phi: (phi.relative_residual, phi.relative_shrinkage, phi.variances), (phi,)


@method(
    "kernels.Gaussian.from_gamma",
    "kernels.Gaussian.from_width",
    "kernels.Exponential.from_gamma",
    "kernels.Laplacian.from_gamma",
)
def _(dtype, seed):
    makers = (kernels.Gaussian.from_width, *(getattr(kernels, name).from_gamma for name in FROM_GAMMA))
    return lambda size, X: [gram.gram(make(size), X) for make in makers], (scale(dtype, seed), points(dtype, seed))


@method("measures.Discrete.total")
def _(dtype, seed):
    return lambda X, w: measures.Discrete(X, w).total, (points(dtype, seed), jnp.abs(array(dtype, seed, N)))


@method("problems.Problem.omega")
def _(dtype, seed):
    def constant(key, X):
        return jnp.asarray(jaxkern.problems.perturb(key, X, measures.IsotropicNoise(1.0)).omega, dtype)

    return constant, (key(seed), points(dtype, seed))


@method("rkhs.Covariance.hs_norm", "rkhs.Covariance.matrix", "rkhs.Covariance.mean")
def _(dtype, seed):
    def quantities(k, X, Y):
        sigma = rkhs.Covariance(k, X)
        return sigma.hs_norm(), sigma.matrix(), sigma.mean()(Y)

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


@dataclasses.dataclass(frozen=True)
class Large:
    """A function at a size from which on it goes another way: traced and lowered, not run."""

    function: object
    shapes: tuple


UNIT = kernels.Gaussian(1.0)
ROWS = jax.ShapeDtypeStruct((70_000, DIM), jnp.float32)
FEW_ROWS = jax.ShapeDtypeStruct((6_000, DIM), jnp.float32)
KEY = jax.eval_shape(lambda: jax.random.key(0))


def drawn(draw, size=100):
    """Return a function that draws a map and applies it."""
    return lambda key, X: getattr(features, draw)(key, UNIT, DIM, num_frequencies=size, dtype=X.dtype)(X)


LARGE = {
    "kernel_spectral without the Gram matrix": Large(
        lambda key, X: clustering.kernel_spectral(key, UNIT, X, 3), (KEY, FEW_ROWS)
    ),
    "kernel_kmeans by landmarks": Large(lambda key, X: clustering.kernel_kmeans(key, UNIT, X, 3), (KEY, FEW_ROWS)),
    "kernel_pca by products": Large(lambda X: features.kernel_pca(UNIT, X, num_components=5)(X), (FEW_ROWS,)),
    "random_feature_pca by products": Large(
        lambda key, X: features.random_feature_pca(
            features.paired_fourier(key, UNIT, DIM, num_frequencies=1500, dtype=X.dtype), X, num_components=5
        )(X),
        (KEY, FEW_ROWS),
    ),
    "gram_matmul by tiles": Large(lambda X, v: gram.gram_matmul(UNIT, X, X, v), (ROWS, ROWS)),
    "nystrom by blocks": Large(lambda X: features.nystrom(UNIT, X[:50], X=X)(X), (ROWS,)),
    "kmeans by blocks": Large(lambda key, X: kmeans(key, X, 9), (KEY, ROWS)),
    "leverage": Large(lambda key, X: landmarks.leverage(key, UNIT, X, num_landmarks=50), (KEY, ROWS)),
    "sampled spectral_error": Large(
        lambda key, X: audit.spectral_error(key, features.nystrom(UNIT, X[:50]), UNIT, X, num_steps=3, num_probes=2),
        (KEY, ROWS),
    ),
    "a stream in long blocks": Large(
        lambda X: frequent_directions.finalize(frequent_directions.update(frequent_directions.init(2, DIM), X)), (ROWS,)
    ),
} | {f"{name} by blocks": Large(drawn(name), (KEY, ROWS)) for name in ("paired_fourier", "fastfood")}

GRADIENTS = (  # rules of our own: eigenvectors, zero distances, blocks of rows
    "features.KernelPCA.reconstruction_residual",
    "features.kernel_pca",
    "features.nystrom",
    "features.paired_fourier",
    "features.preimage",
    "features.random_feature_pca",
    "features.shifted_fourier",
    "gram.gram",
    "gram.gram_matmul",
    "gram.kernel_distance",
    "learn.eigengap",
    "metrics.spectral_error",
    "rkhs.Covariance",
)

# ------------------------------------------------------------------------------------------------------------ the tests

ALL = {**ENTRIES, **METHODS, **WAYS}


def joined(names):
    """Return the functions of several entries as one of arrays, and a function that makes these."""

    def fresh():
        """Keys are consumed once."""
        return [leaf for name in names for leaf in jax.tree.leaves(ALL[name](jnp.float32, 0)[1])]

    made = [(function, *jax.tree.flatten(args)) for function, args in (ALL[name](jnp.float32, 0) for name in names)]

    def of_arrays(*leaves):
        outputs, start = [], 0
        for function, own, tree in made:
            args = jax.tree.unflatten(tree, leaves[start : start + len(own)])
            outputs += jax.tree.leaves(function(*args))
            start += len(own)
        return outputs

    return of_arrays, fresh


def group(name):
    """Make one program of small ones, where they are many and decompose nothing.

    Decompositions side by side may wait for each other: see docs/design.md.
    """
    return (
        name.rpartition(".")[0] if name in ENTRIES and name.startswith(("bounds.", "kernels.", "problems.")) else name
    )


GROUPS = {}
for name in ALL:
    GROUPS.setdefault(group(name), []).append(name)


def test_every_public_module_and_method_is_called_or_explained():
    walked = [info.name.removeprefix("jaxkern.") for info in pkgutil.walk_packages(jaxkern.__path__, "jaxkern.")]
    public = {name for name in walked if not any(part.startswith("_") for part in name.split("."))}
    assert set(MODULES) | set(ON_THE_HOST) == public and not set(MODULES) & set(ON_THE_HOST)
    members = {f"{name}.{member}" for name in MODULES for cls in classes(name) for member in own_members(cls)}
    called = {member for member in members if member.rpartition(".")[2] not in NOTHING_TO_LOWER}
    assert called == MEMBERS | IN_THE_REGISTRY
    assert not MEMBERS & IN_THE_REGISTRY


def classes(module):
    found = importlib.import_module(f"jaxkern.{module}")
    return [value for name in found.__all__ if inspect.isclass(value := getattr(found, name))]


def own_members(cls):
    """Return the methods, operators and properties that a class of the package has, its own and inherited."""
    operators = {"__call__", "__add__", "__sub__", "__neg__", "__mul__", "__rmul__"}
    written = {
        name: value
        for base in cls.__mro__
        if base.__module__.startswith("jaxkern")
        for name, value in vars(base).items()
    }
    shown = {name for name in written if name in operators or not name.startswith(("_", "tree_"))}
    kinds = (property, classmethod, staticmethod)
    return {f"{cls.__name__}.{n}" for n in shown if inspect.isfunction(written[n]) or isinstance(written[n], kinds)}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in GROUPS]
)
def test_what_comes_back_from_bytes_computes_the_same(name, x64):
    of_arrays, fresh = joined(GROUPS[name])
    jitted = jax.jit(of_arrays)
    shipped = export.export(jitted, platforms=PLATFORMS)(*jax.eval_shape(fresh))
    assert shipped.platforms == PLATFORMS
    back = export.deserialize(shipped.serialize())
    found, wanted = back.call(*fresh()), jitted(*fresh())
    assert len(found) == len(wanted) > 0
    for ours, theirs in zip(found, wanted, strict=True):
        # One program chooses the platform when it runs, the other one when it is compiled: they are fused differently.
        assert ours.dtype == theirs.dtype
        size = np.max(np.abs(theirs), initial=0, where=np.isfinite(theirs))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5 * (1 + size))


@pytest.mark.parametrize("name", [*METHODS, *WAYS])
def test_methods_keep_float32_and_ask_for_full_precision(name, x64):
    function, args = ALL[name](jnp.float32, 0)
    jaxpr = jax.make_jaxpr(function)(*jax.eval_shape(lambda: args)).jaxpr
    assert not doubles(jaxpr) and not imprecise(jaxpr)


@pytest.mark.parametrize("name", LARGE)
def test_the_ways_of_large_sizes_lower_and_keep_float32(name, x64):
    traced = jax.jit(LARGE[name].function).trace(*LARGE[name].shapes)
    assert not doubles(traced.jaxpr.jaxpr) and not imprecise(traced.jaxpr.jaxpr)
    assert export.export(jax.jit(LARGE[name].function), platforms=PLATFORMS)(*LARGE[name].shapes).mlir_module()


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_lower(name):
    of_arrays, fresh = joined([name])
    specs = jax.eval_shape(fresh)
    floats = [i for i, spec in enumerate(specs) if jnp.issubdtype(spec.dtype, jnp.floating)]

    def total(values, rest):
        leaves = list(rest)
        for i, value in zip(floats, values, strict=True):
            leaves[i] = value
        outputs = [leaf for leaf in of_arrays(*leaves) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)]
        return sum(jnp.sum(leaf) for leaf in outputs)

    gradient = jax.jit(jax.grad(total))
    assert export.export(gradient, platforms=PLATFORMS)([specs[i] for i in floats], specs).mlir_module()


def test_an_artefact_cannot_be_made_of_what_one_platform_lacks():
    with pytest.raises((NotImplementedError, ValueError)):
        export.export(jax.jit(jnp.linalg.eigvals), platforms=PLATFORMS)(jax.ShapeDtypeStruct((4, 4), jnp.float32))
