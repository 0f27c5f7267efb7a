"""A program of a user, for the type checker alone: `test_typing.py` checks it with `mypy --strict` and never runs it.

`assert_type` says what an editor shows: had a decorator lost a type, it would be `Any` and the check would fail.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import jax
import jax.numpy as jnp

from jaxkern import (
    audit,
    features,
    frequent_directions,
    gram,
    kernels,
    landmarks,
    plan,
    problems,
    rkhs,
)
from jaxkern.bounds import Bound, fourier, streaming
from jaxkern.kmeans import KMeansResult, kmeans
from jaxkern.metrics import rand_index

key_data, key_landmarks, key_map, key_means = jax.random.split(jax.random.key(0), 4)
X = jax.random.normal(key_data, (100, 3))

kernel = kernels.Gaussian(1.0)
assert_type(kernel, kernels.Gaussian)
assert_type(kernel(X[0], X[1]), jax.Array)
assert_type(gram.gram(kernel, X), jax.Array)
assert_type(kernel + kernels.Matern32(2.0), kernels.Kernel)

chosen = landmarks.uniform(key_landmarks, X, num_landmarks=10)
assert_type(chosen, jax.Array)
phi = features.kernel_jl(key_map, kernel, chosen, num_features=5)
assert_type(phi, features.KernelJL)
assert_type(phi(X), jax.Array)
assert_type(phi.embed(rkhs.section(kernel, X)), jax.Array)
assert_type(
    features.paired_fourier(key_map, kernel, 3, num_frequencies=4),
    features.PairedFourier,
)
assert_type(features.nystrom(kernel, chosen), features.Nystrom)
pca = features.streaming_pca(phi, sketch_size=4)
assert_type(pca.update(pca.init(), X), features.StreamingState)

sigma = rkhs.Covariance(kernel, chosen)
assert_type(sigma.eigenvalues(), jax.Array)
assert_type(rkhs.section(kernel, X), rkhs.Function)
assert_type(
    frequent_directions.finalize(frequent_directions.init(4, 3)),
    frequent_directions.Sketch,
)

assert_type(kmeans(key_means, X, 2), KMeansResult)
assert_type(kmeans(key_means, X, 2).labels, jax.Array)
assert_type(rand_index(jnp.zeros(3, int), jnp.zeros(3, int)), jax.Array)
rings = problems.nested_spheres(
    key_data, num_points=9, dim=2, radii=(1, 2), noise=0.1, radial=True
)
assert_type(rings, problems.Problem)
assert_type(rings.points, jax.Array)
assert_type(audit.distance_error(phi, kernel, X, X), audit.DistanceError)
assert_type(plan.fourier(0.1, 0.05, num_points=1000), plan.Plan)
assert_type(plan.fourier(0.1, 0.05, num_points=1000).source, str)

bound = streaming.projection(num_points=100, sketch_size=10)
assert_type(bound, Bound)
assert_type(bound.source, str)
assert_type(
    fourier.relative_distances(eps=0.1, num_frequencies=100, num_points=10), Bound
)

# What is wrong must be seen: an ignored error that the checker does not report is a comment it calls unused.
streaming.projection(points=100, sketch_size=10)  # type: ignore[call-arg]
features.kernel_jl(key_map, kernel, chosen)  # type: ignore[call-arg]
width = kernel.length_scale  # type: ignore[attr-defined]


def of_a_lengthscale(lengthscale: jax.Array) -> jax.Array:
    return gram.gram(kernels.Gaussian(lengthscale), X)


compiled: Callable[[jax.Array], jax.Array] = jax.jit(of_a_lengthscale)
