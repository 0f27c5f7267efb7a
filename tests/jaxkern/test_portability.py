"""One artefact serves cpu, cuda and tpu also where sizes are large, and of gradients; nothing says how they round.

`jax.export` lowers a function for all three at once. Of every public function at a small size test_contract.py says so,
calls what comes back from its bytes, and that float32 programs hold no float64 and products ask for full precision.
"""

import dataclasses

import jax
import jax.numpy as jnp
import pytest
from jax import export
from public import ENTRIES, MODULES
from support.jaxprs import doubles, imprecise
from support.surface import PUBLIC

from jaxkern import (
    audit,
    clustering,
    features,
    frequent_directions,
    gram,
    kernels,
    landmarks,
)
from jaxkern.kmeans import kmeans

PLATFORMS = ("cpu", "cuda", "tpu")
ON_THE_HOST = {
    "bounds": "the type of a bound; its modules are walked one by one",
    "checks": "looks at arguments",
    "draws": "what landmarks and maps are drawn with, and lowered with them",
    "linalg": "what all that decomposes is made of, and lowered with it",
    "pytrees": "makes classes",
    "ragged": "fills up and cuts arrays of NumPy; what it maps is lowered where it stands",
    "plan": "searches in Python floats of float64",
    "sklearn": "adapters that choose on the host and call features and clustering",
}
"""Public modules that nothing is lowered of. `scale.embed`, `io.save` and `io.load` stand in test_contract.py."""


@dataclasses.dataclass(frozen=True)
class Large:
    """A function at a size from which on it goes another way: traced and lowered, not run."""

    function: object
    shapes: tuple


DIM = 3
UNIT = kernels.Gaussian(1.0)
ROWS = jax.ShapeDtypeStruct((70_000, DIM), jnp.float32)
FEW_ROWS = jax.ShapeDtypeStruct((6_000, DIM), jnp.float32)
KEY = jax.eval_shape(lambda: jax.random.key(0))


def drawn(draw, size=100):
    """Return a function that draws a map and applies it."""
    return lambda key, X: getattr(features, draw)(
        key, UNIT, DIM, num_frequencies=size, dtype=X.dtype
    )(X)


LARGE = {
    "kernel_spectral without the Gram matrix": Large(
        lambda key, X: clustering.kernel_spectral(key, UNIT, X, 3), (KEY, FEW_ROWS)
    ),
    "kernel_kmeans by landmarks": Large(
        lambda key, X: clustering.kernel_kmeans(key, UNIT, X, 3), (KEY, FEW_ROWS)
    ),
    "kernel_pca by products": Large(
        lambda X: features.kernel_pca(UNIT, X, num_components=5)(X), (FEW_ROWS,)
    ),
    "random_feature_pca by products": Large(
        lambda key, X: features.random_feature_pca(
            features.paired_fourier(
                key, UNIT, DIM, num_frequencies=1500, dtype=X.dtype
            ),
            X,
            num_components=5,
        )(X),
        (KEY, FEW_ROWS),
    ),
    "gram_matmul by tiles": Large(
        lambda X, v: gram.gram_matmul(UNIT, X, X, v), (ROWS, ROWS)
    ),
    "nystrom by blocks": Large(
        lambda X: features.nystrom(UNIT, X[:50], X=X)(X), (ROWS,)
    ),
    "kmeans by blocks": Large(lambda key, X: kmeans(key, X, 9), (KEY, ROWS)),
    "leverage": Large(
        lambda key, X: landmarks.leverage(key, UNIT, X, num_landmarks=50), (KEY, ROWS)
    ),
    "sampled spectral_error": Large(
        lambda key, X: audit.spectral_error(
            key, features.nystrom(UNIT, X[:50]), UNIT, X, num_steps=3, num_probes=2
        ),
        (KEY, ROWS),
    ),
    "a stream in long blocks": Large(
        lambda X: frequent_directions.finalize(
            frequent_directions.update(frequent_directions.init(2, DIM), X)
        ),
        (ROWS,),
    ),
} | {
    f"{name} by blocks": Large(drawn(name), (KEY, ROWS))
    for name in ("paired_fourier", "fastfood")
}

GRADIENTS = (  # rules of our own: eigenvectors, zero distances, blocks of rows
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


def test_every_public_module_is_walked_or_explained():
    assert {*MODULES, *ON_THE_HOST} == set(PUBLIC)
    assert not set(MODULES) & set(ON_THE_HOST)


SLOW = {
    "kernel_kmeans by landmarks",
    "kernel_pca by products",
    "random_feature_pca by products",
}
SLOW |= {
    "features.kernel_pca",
    "features.random_feature_pca",
    "features.shifted_fourier",
    "rkhs.Covariance",
}
"""What is made of ways that others here lower, too."""


@pytest.mark.float64  # so that float64 which slips in is seen
@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in LARGE]
)
def test_the_ways_of_large_sizes_lower_and_keep_float32(name):
    jitted = jax.jit(LARGE[name].function)
    program = jitted.trace(*LARGE[name].shapes).jaxpr.jaxpr
    assert not doubles(program) and not imprecise(program)
    assert export.export(jitted, platforms=PLATFORMS)(*LARGE[name].shapes).mlir_module()


@pytest.mark.parametrize(
    "name", [pytest.param(x, marks=[pytest.mark.slow] * (x in SLOW)) for x in GRADIENTS]
)
def test_gradients_lower_and_ask_for_full_precision(name):
    function, args = ENTRIES[name](jnp.float32, 0)
    specs, tree = jax.tree.flatten(jax.eval_shape(lambda: args))
    floats = [
        i for i, spec in enumerate(specs) if jnp.issubdtype(spec.dtype, jnp.floating)
    ]

    def total(values, rest):
        leaves = list(rest)
        for i, value in zip(floats, values, strict=True):
            leaves[i] = value
        outputs = jax.tree.leaves(function(*jax.tree.unflatten(tree, leaves)))
        return sum(
            jnp.sum(leaf)
            for leaf in outputs
            if jnp.issubdtype(jnp.result_type(leaf), jnp.floating)
        )

    gradient = jax.jit(jax.grad(total))
    shapes = [specs[i] for i in floats], specs
    assert not imprecise(gradient.trace(*shapes).jaxpr.jaxpr)
    assert export.export(gradient, platforms=PLATFORMS)(*shapes).mlir_module()
