"""What clusterings share: their arguments, and labels of new points."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxkern import checks
from jaxkern.linalg._dense import scale_of

FLAT = 1e-4
"""Eigenvalues that differ by at most this share count as equal: none of their eigenvectors stands for a cluster."""


def arguments(
    num_clusters: Any, weights: Any, num_used: Any, rows: jax.Array, name: str
) -> tuple[int, jax.Array | None, jax.Array | None]:
    """Return the number of clusters, the weights, and how many clusters are used, checked against the rows."""
    num_clusters = checks.count(
        "num_clusters",
        num_clusters,
        maximum=rows.shape[0],
        limit="the number of points",
    )
    used = checks.traced_count(
        "num_used", num_used, maximum=num_clusters, limit="num_clusters"
    )
    return num_clusters, checks.weights(weights, name, rows), used


def nearest(rows: jax.Array, centers: jax.Array) -> jax.Array:
    """Return the index of the centre nearest to each row, (...,) int32, by direct differences; -1 where none is."""
    # Unused centres are infinite.
    scale = scale_of(jnp.where(jnp.isfinite(centers), centers, 0))
    gaps = rows[..., None, :] - centers.reshape((1,) * (rows.ndim - 1) + centers.shape)
    gaps = gaps / scale
    distances = (gaps * gaps).sum(axis=-1)
    finite = jnp.isfinite(distances.min(axis=-1))
    return jnp.where(finite, jnp.argmin(distances, axis=-1), -1).astype(jnp.int32)
