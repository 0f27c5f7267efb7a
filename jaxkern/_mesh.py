"""The devices that share the rows of a computation: which they are, and how each is given its own."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec


def mesh_of(*arrays: jax.Array) -> AbstractMesh | None:
    """Return the mesh whose devices share what is computed of arrays; their types know it, also inside `jit`.

    That of `jax.set_mesh`, or else of the first array that lies on several devices. None for a single device, and
    within `jax.shard_map`, where each has its own rows already.
    """
    here = jax.sharding.get_abstract_mesh()
    for mesh in (
        [jax.typeof(array).sharding.mesh for array in arrays] if here.empty else [here]
    ):
        if mesh.size > 1:
            return None if AxisType.Manual in mesh.axis_types else mesh
    return None


def typed(mesh: AbstractMesh) -> bool:
    """Tell whether the types of arrays say how they lie on a mesh; otherwise XLA finds out."""
    return AxisType.Explicit in mesh.axis_types


def spread(
    f: Callable[..., tuple[Any, Any]], mesh: AbstractMesh, shared: Any, *rows: jax.Array
) -> tuple[Any, Any]:
    """Return f(shared, *rows), each device with its range of the rows, which are `dealt`.

    f returns terms of sums over the devices, which all get, and rows, which stay where they are.
    """
    own, whole = PartitionSpec(mesh.axis_names), PartitionSpec()

    def run(shared: Any, *rows: jax.Array) -> tuple[Any, Any]:
        terms, found = f(shared, *rows)
        return lax.psum(terms, mesh.axis_names), found

    shared = jax.tree.map(lambda array: _laid_out(mesh, whole, array), shared)
    specs = (whole, *[own] * len(rows))
    return jax.shard_map(
        run, mesh=mesh, in_specs=specs, out_specs=(whole, own), check_vma=False
    )(shared, *rows)


def even(mesh: AbstractMesh, num_rows: int) -> int:
    """Return the least number of rows, from `num_rows` on, of which all devices get equally many."""
    return -(-num_rows // mesh.size) * mesh.size


def dealt(
    mesh: AbstractMesh, *arrays: jax.Array, below: Callable[[jax.Array, int], jax.Array]
) -> list[jax.Array]:
    """Return the rows of arrays, with others below, of which all devices have equally many."""
    own = PartitionSpec(mesh.axis_names)
    return [
        _laid_out(mesh, own, below(array, even(mesh, array.shape[0])))
        for array in arrays
    ]


def first(mesh: AbstractMesh, rows: jax.Array, count: int) -> jax.Array:
    """Return the first of the rows of all devices."""
    return (
        rows
        if count == rows.shape[0]
        else _laid_out(mesh, PartitionSpec(), rows)[:count]
    )


def zeros_below(array: jax.Array, num_rows: int) -> jax.Array:
    """Return so many rows: those of the array, and zeros."""
    return jnp.pad(
        array, ((0, num_rows - array.shape[0]), *((0, 0),) * (array.ndim - 1))
    )


def copies_below(points: jax.Array, num_rows: int) -> jax.Array:
    """Return so many points: copies of the last one, where any kernel is defined, without a gradient follow."""
    if num_rows == points.shape[0]:
        return points
    copies = jnp.broadcast_to(
        lax.stop_gradient(points[-1:]), (num_rows - points.shape[0], points.shape[1])
    )
    return jnp.concatenate([points, copies])


def _laid_out(mesh: AbstractMesh, spec: PartitionSpec, array: jax.Array) -> jax.Array:
    """Return the array as it has to lie."""
    return jax.reshard(array, NamedSharding(mesh, spec)) if typed(mesh) else array
