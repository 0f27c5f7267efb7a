"""What holds of every public function: it lowers anywhere, keeps dtype and precision, and maps over its arguments."""

import functools
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxprs import equations
from registry import ENTRIES, NO_GRADIENT, OF_LABELS, OF_OPTAX

HIGHEST = jax.lax.Precision.HIGHEST
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
NOT_CALLED = {
    "kernels.Kernel": "the base class",
    "features.Fastfood": "what fastfood returns",
    "features.KernelJL": "what kernel_jl returns",
    "features.KernelPCA": "what kernel_pca returns",
    "features.Nystrom": "what nystrom returns",
    "features.PreImage": "what preimage returns",
    "landmarks.Reservoir": "the state of a reservoir",
    "features.PairedFourier": "what paired_fourier and orthogonal_fourier return",
    "features.RandomFeaturePCA": "what random_feature_pca returns",
    "features.ShiftedFourier": "what shifted_fourier returns",
    "features.Standardized": "what standardized returns",
    "features.StreamingMap": "what finalize of streaming_pca returns",
    "features.StreamingPCA": "what streaming_pca returns",
    "features.StreamingState": "what init of streaming_pca returns",
    "frequent_directions.Sketch": "what finalize returns",
    "frequent_directions.State": "what init returns",
    "audit.DistanceError": "what distance_error returns",
    "audit.SpectralError": "what spectral_error returns",
    "problems.Law": "the base class",
    "problems.Problem": "what the samplers return",
    "scale.embed": "a loop on the host",
    "scale.kmeans": "a run on a mesh; tests/test_scale_devices.py",
    "scale.local_rows": "a range of rows",
    "scale.merge_tree": "a loop on the host",
    "scale.stream": "a loop on the host",
    "io.load": "reads a file",
    "io.save": "writes a file",
    "clustering.KernelKMeans": "what kernel_kmeans returns",
    "clustering.KernelSpectral": "what kernel_spectral returns",
    "clustering.SpectralPartition": "what spectral_from_gram returns",
    "learn.Fit": "what fit_lengthscale returns",
    "kmeans.KMeansResult": "what kmeans returns",
    "bounds.concentration.BlockParameters": "what block_parameters returns",
    "bounds.sketching.KOLTCHINSKII_LOUNICI": "a number",
    "bounds.sketching.KOLTCHINSKII_LOUNICI_LOWER": "a number",
}


LONG = {  # to compile; their own modules map them, too
    "audit.sampled_distance_error",
    "audit.spectral_error",
    "clustering.kernel_kmeans",
    "clustering.kernel_spectral",
    "clustering.spectral_from_gram",
    "features.fastfood",
    "features.streaming_pca",
    "kernels.sampled_quantile_lengthscale",
    "kmeans.kmeans",
    "learn.fit_lengthscale",
    "problems.gaussian_mixture",
}


def names(*, gradient=False, floating=False):
    left_out = (NO_GRADIENT if gradient else set()) | (OF_LABELS | OF_OPTAX if floating else set())
    return [name for name in ENTRIES if name not in left_out]


@functools.cache
def traced(name):
    """Return the program of a public function on float32 arguments, traced once for all that is said of it."""
    with jax.enable_x64(True):  # float64 that slips in is seen, and not rounded away
        function, args = ENTRIES[name](jnp.float32, 0)
        return jax.jit(function).trace(*jax.eval_shape(lambda: args))


def imprecise(jaxpr):
    """Return the matrix products that do not ask for the full precision of their dtype."""
    products = (e for e in equations(jaxpr) if e.primitive.name == "dot_general")
    return [e for e in products if e.params["precision"] not in (HIGHEST, (HIGHEST, HIGHEST))]


def numeric(tree):
    return [np.asarray(leaf) for leaf in jax.tree.leaves(tree) if not jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)]


def stack(first, second):
    """Stack two leaves; `jnp.stack` would count keys as used."""
    if jnp.issubdtype(first.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(jnp.stack([jax.random.key_data(first), jax.random.key_data(second)]))
    return jnp.stack([first, second])


def test_the_registry_holds_everything_public():
    public = {f"{module}.{name}" for module in MODULES for name in importlib.import_module(f"jaxkern.{module}").__all__}
    registered = {name for name in ENTRIES if name != "rkhs.Covariance.effective_rank"}
    assert registered | set(NOT_CALLED) == public
    assert not registered & set(NOT_CALLED)


@pytest.mark.parametrize("name", [name for name in names() if name in LONG])
def test_it_lowers_without_the_hardware(name, x64):
    """What is too long to export by default; tests/test_portability.py exports the rest."""
    for platform in ("cpu", "cuda", "tpu"):
        assert traced(name).lower(lowering_platforms=(platform,)).as_text(), platform


def doubles(jaxpr):
    """Return what a program computes in float64; a scalar written in the source is weak and takes any dtype."""
    outs = (out.aval for e in equations(jaxpr) for out in e.outvars)
    found = [aval for aval in outs if getattr(aval, "dtype", None) == jnp.float64]
    return [aval for aval in found if aval.shape or not aval.weak_type]


@pytest.mark.parametrize("name", names(floating=True))
def test_float32_programs_hold_no_float64_and_float64_ones_give_float64(name, x64):
    assert not doubles(traced(name).jaxpr.jaxpr)
    function, args = ENTRIES[name](jnp.float64, 0)
    for leaf in jax.tree.leaves(jax.eval_shape(function, *args)):
        assert not jnp.issubdtype(leaf.dtype, jnp.floating) or leaf.dtype == jnp.float64


@pytest.mark.parametrize("name", names())
def test_every_product_asks_for_full_precision(name):
    assert not imprecise(traced(name).jaxpr.jaxpr)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in names()]
)
def test_jit_and_vmap_over_all_arguments_give_what_single_calls_give(name, x64):
    function, _ = ENTRIES[name](jnp.float64, 0)

    def fresh(seed):  # keys are consumed once
        return ENTRIES[name](jnp.float64, seed)[1]

    jitted = jax.jit(function)
    singles = [numeric(jitted(*fresh(seed))) for seed in (0, 1)]
    stacked = jax.tree.map(stack, fresh(0), fresh(1))
    mapped = numeric(jax.jit(jax.vmap(function))(*stacked))
    assert mapped
    for i, leaf in enumerate(mapped):
        scale = 1 + max(np.abs(single[i]).max() if single[i].size else 0 for single in singles)
        for seed in (0, 1):
            np.testing.assert_allclose(leaf[seed], singles[seed][i], rtol=0, atol=1e-10 * scale)
    assert any(not np.array_equal(a, b) for a, b in zip(*singles, strict=True))


@pytest.mark.parametrize("name", names(gradient=True))
def test_gradients_are_finite_and_agree_with_differences(name, x64):
    function, _ = ENTRIES[name](jnp.float64, 0)

    def fresh():
        return ENTRIES[name](jnp.float64, 0)[1]

    leaves, tree = jax.tree.flatten(fresh())
    floats = [i for i, leaf in enumerate(leaves) if jnp.issubdtype(leaf.dtype, jnp.floating)]

    def total(values):
        held = jax.tree.leaves(fresh())
        for i, value in zip(floats, values, strict=True):
            held[i] = value
        outputs = jax.tree.leaves(function(*jax.tree.unflatten(tree, held)))
        return sum(jnp.sum(jnp.sin(leaf)) for leaf in outputs if jnp.issubdtype(leaf.dtype, jnp.floating))

    both = jax.jit(jax.value_and_grad(total))
    at = [leaves[i] for i in floats]
    gradient = both(at)[1]
    assert all(np.isfinite(np.asarray(g)).all() for g in gradient)
    rng = np.random.default_rng(5)
    way = [jnp.asarray(rng.standard_normal(leaf.shape)) * (1e-6 * jnp.maximum(1, jnp.abs(leaf))) for leaf in at]
    moved = [both([a + sign * w for a, w in zip(at, way, strict=True)])[0] for sign in (1, -1)]
    slope = sum(float(jnp.vdot(g, w)) for g, w in zip(gradient, way, strict=True))
    size = sum(float(jnp.vdot(jnp.abs(g), jnp.abs(w))) for g, w in zip(gradient, way, strict=True))
    assert abs(float(moved[0] - moved[1]) / 2 - slope) <= 1e-4 * size + 1e-12 * (1 + abs(float(moved[0])))


def test_the_checks_themselves_can_fail(x64):
    X = jax.ShapeDtypeStruct((4, 4), jnp.float32)

    def jaxpr(function):
        return jax.make_jaxpr(function)(X).jaxpr

    assert doubles(jaxpr(lambda x: x.astype(jnp.float64))) and not doubles(jaxpr(lambda x: x / 3.0))
    assert imprecise(jaxpr(lambda x: x @ x.T))
    with pytest.raises(NotImplementedError):
        jax.jit(jnp.linalg.eigvals).trace(X).lower(lowering_platforms=("tpu",))
