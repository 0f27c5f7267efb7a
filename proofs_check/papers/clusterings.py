"""Cluster embedded points and compare with the truth, many repetitions at once."""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import features, landmarks
from jaxkern.kmeans import kmeans
from jaxkern.metrics import rand_index

BATCH_ELEMENTS = 2**26  # of the embedded points of a batch: 256 MB in float32
MAX_ITERATIONS = 100
_SEEDS = {"k-means": 0, "K-k-means": 1, "KPCA": 2, "K-JL": 3}


class Sizes(NamedTuple):
    """Clusters, landmarks and features."""

    k: int
    n: int
    d: int


def rand_indices(
    method: str, key: Any, numbers: jax.Array, kernel: Any, X: jax.Array, truth: jax.Array, *, sizes: Sizes
) -> jax.Array:
    """Return the Rand indices of the repetitions with these numbers, (batch,)."""
    Z = X if method == "k-means" else embeddings(key, numbers, kernel, X, method=method, sizes=sizes)
    return _scores(key, numbers, Z, truth, number_of_method=_SEEDS[method], k=sizes.k)


@partial(jax.jit, static_argnames=("method", "sizes"))
def embeddings(key: Any, numbers: jax.Array, kernel: Any, X: jax.Array, *, method: str, sizes: Sizes) -> jax.Array:
    """Return the points as the repetitions with these numbers embed them, (batch, N, d)."""

    def one(number: jax.Array) -> jax.Array:
        key_landmarks, key_sketch, _ = _keys(key, number)
        points = landmarks.uniform(key_landmarks, X, num_landmarks=sizes.n)
        if method == "K-k-means":
            return features.nystrom(kernel, points, rank=sizes.d)(X)
        if method == "KPCA":
            return features.kernel_pca(kernel, points, num_components=sizes.d, normalized=False)(X)
        return features.kernel_jl(key_sketch, kernel, points, num_features=sizes.d, centered=True)(X)

    return jax.vmap(one)(numbers)


@partial(jax.jit, static_argnames="k")
def _scores(
    key: Any, numbers: jax.Array, Z: jax.Array, truth: jax.Array, *, number_of_method: int, k: int
) -> jax.Array:
    def one(number: jax.Array, Z: jax.Array) -> jax.Array:
        key_clustering = jax.random.fold_in(_keys(key, number)[2], number_of_method)
        # k-means does not depend on the scale, but float32 does on a very small one.
        spread = jnp.sqrt(jnp.sum(jnp.var(Z, axis=0)))
        Z = Z / jnp.where(spread > 0, spread, 1)
        found = kmeans(key_clustering, Z, k, max_iterations=MAX_ITERATIONS, tolerance=0.0, num_candidates=1)
        return rand_index(truth, found.labels)

    def in_turn(numbers: jax.Array, Z: jax.Array) -> jax.Array:
        if Z.ndim == 2:
            return lax.map(lambda number: one(number, Z), numbers)
        return lax.map(lambda both: one(*both), (numbers, Z))

    def at_once(numbers: jax.Array, Z: jax.Array) -> jax.Array:
        return jax.vmap(one, (0, None if Z.ndim == 2 else 0))(numbers, Z)

    # One processor gains nothing from a batch, which ends only when the slowest of its repetitions does.
    return lax.platform_dependent(numbers, Z, cpu=in_turn, default=at_once)


def _keys(key: Any, number: jax.Array) -> Any:
    """Return the keys of a repetition for landmarks, sketch and clustering."""
    return jax.random.split(jax.random.fold_in(key, number), 3)
