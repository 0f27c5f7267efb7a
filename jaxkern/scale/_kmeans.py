"""k-means of rows that the devices of a mesh share: what `kmeans.kmeans` computes, with sums over the devices."""

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxkern import checks
from jaxkern._types import ArrayLike, Float, PRNGKeyArray, Sharding
from jaxkern.kmeans._kmeans import KMeansResult, Sizes, _kmeans, arguments
from jaxkern.kmeans._share import Share, table_width
from jaxkern.scale import _mesh
from jaxkern.scale._embed import host_matrix
from jaxkern.scale._resume import fingerprint


def kmeans(
    key: PRNGKeyArray,
    X: Any,
    num_clusters: int,
    *,
    sharding: Sharding | None = None,
    weights: Float[ArrayLike, " N"] | None = None,
    num_restarts: int = 1,
    max_iterations: int = 300,
    tolerance: Float[ArrayLike, ""] = 1e-4,
    num_candidates: int | None = None,
    block_size: int | None = None,
) -> KMeansResult:
    """Cluster points that many devices share: the result of `kmeans.kmeans` with the same key, within rounding.

    Every device holds a range of the rows. Seeds are drawn as there: all devices draw the same row of the same table of
    weights, and the device that has it tells the others. A Lloyd iteration adds up sums and counts over the devices.

    Parameters
    ----------
    key : a typed random key, the same on every process.
    X : (N, d) points, float32 or float64, N >= num_clusters, in a NumPy or JAX array, a memory-mapped file, or what
        `open_rows` returns, that all processes see; each device is sent its own rows only.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows, whose devices share the rows; by default one
        device.
    num_clusters, weights, num_restarts, max_iterations, tolerance : as in `kmeans.kmeans`.
    num_candidates, block_size : as there; blocks are those of one device.

    Returns
    -------
    KMeansResult, of arrays that every process holds: labels (N,), centers (k, d), objective, converged, iterations.

    Raises
    ------
    ValueError
        As `kmeans.kmeans`, and if sharding is of another kind, or processes have different keys.
    RuntimeError
        If another process has ended.

    Notes
    -----
    Time that of `kmeans.kmeans`, divided by the number of devices D. A device holds N / D + sqrt(N) rows at most,
    twice, and all labels. An iteration exchanges k (d + 1) numbers; a seed sqrt(N) numbers, and num_candidates times
    d + sqrt(N) more.

    Examples
    --------
    >>> import jax
    >>> mesh = jax.make_mesh((jax.device_count(),), ("rows",), axis_types=(jax.sharding.AxisType.Auto,))
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> kmeans(jax.random.key(1), X, 4, sharding=mesh).labels.shape
    (100,)
    """
    key = checks.key(key)
    host_matrix("X", X)
    weights = checks.weights(weights, "X", X)
    devices = tuple(_mesh.local_mesh(None).devices.flat) if sharding is None else _mesh.devices_of(sharding)
    mesh = Mesh(np.array(devices), _mesh.AXIS)
    key_data, impl = np.asarray(jax.random.key_data(key)), str(jax.random.key_impl(key))
    if _mesh.spans_processes(sharding):
        _mesh.agree({"key": fingerprint((key_data, impl)), "X": fingerprint((X.shape, str(X.dtype)))})
    width = table_width(max(X.shape[0], 1))
    rows = -(-X.shape[0] // (width * len(devices))) * width  # of one device
    sizes, max_iterations = arguments(
        X.shape[0], rows, num_clusters, num_restarts, max_iterations, tolerance, num_candidates, block_size
    )
    with _mesh.together("cluster with the others"):
        result = _on_mesh(
            key_data,
            _put(X, rows, mesh),
            None if weights is None else _put(np.asarray(weights), rows, mesh),
            np.asarray(max_iterations, np.int32),
            np.asarray(tolerance, X.dtype),
            impl=impl,
            mesh=mesh,
            share=Share(X.shape[0], _mesh.AXIS),
            sizes=sizes,
        )
        # Programs with sums over several devices of a CPU must not queue up: they could wait for each other for ever.
        result = jax.tree.map(np.asarray, jax.block_until_ready(result))
    result = jax.tree.map(jnp.asarray, result)
    return dataclasses.replace(result, labels=result.labels[: X.shape[0]])


@partial(jax.jit, static_argnames=("impl", "mesh", "share", "sizes"))
def _on_mesh(
    key_data: jax.Array,
    X: jax.Array,
    weights: jax.Array | None,
    max_iterations: jax.Array,
    tolerance: jax.Array,
    *,
    impl: str,
    mesh: Mesh,
    share: Share,
    sizes: Sizes,
) -> KMeansResult:
    def one(key: jax.Array, X: jax.Array, weights: jax.Array | None, *numbers: jax.Array) -> KMeansResult:
        result = _kmeans(key, X, weights, *numbers, sizes=sizes, share=share)
        return dataclasses.replace(result, labels=share.gather(result.labels))

    everywhere, divided = PartitionSpec(), PartitionSpec(_mesh.AXIS)
    spread = jax.shard_map(
        one,
        mesh=mesh,
        in_specs=(everywhere, divided, divided, everywhere, everywhere),
        out_specs=everywhere,
        check_vma=False,
    )
    return spread(jax.random.wrap_key_data(key_data, impl=impl), X, weights, max_iterations, tolerance)


def _put(array: Any, rows: int, mesh: Mesh) -> jax.Array:
    """Give every device its `rows` rows of an array that has fewer in all; zeros follow."""
    shape = (rows * mesh.devices.size, *array.shape[1:])

    def part(index: Any) -> np.ndarray:
        here = np.asarray(array[index[0]])
        return np.pad(here, ((0, rows - here.shape[0]), *((0, 0),) * (here.ndim - 1)))

    return jax.make_array_from_callback(shape, NamedSharding(mesh, PartitionSpec(_mesh.AXIS)), part)
