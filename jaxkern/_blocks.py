"""Functions of rows over many rows: in blocks that a cache holds, written in place."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.custom_derivatives import SymbolicZero
from jax.sharding import AbstractMesh

from jaxkern._mesh import (
    copies_below,
    dealt,
    even,
    first,
    mesh_of,
    spread,
    typed,
    zeros_below,
)

Rows = Callable[[Any, jax.Array], Any]


def by_blocks(rows: Rows, phi: Any, X: jax.Array, *, block_size: int) -> jax.Array:
    """Return rows(phi, X) for a function that treats rows one by one; on a CPU block by block.

    What is between X and the result then stays in a cache. The result is written in place: no padding, and no copy, as
    the last block ends with the last row and repeats some of the block before. Derivatives are those of `rows`
    on all of X; elsewhere than on a CPU the values are, too. A tuple of results is that of columns side by side.
    The devices of a mesh share the rows.
    """
    if (mesh := _sharing(X, block_size)) is not None:
        share = even(mesh, X.shape[0]) // mesh.size
        own = partial(by_blocks, rows, block_size=-(-share // -(-share // block_size)))
        found = spread(
            lambda *given: ((), own(*given)),
            mesh,
            phi,
            *dealt(mesh, X, below=copies_below),
        )[1]
        return first(mesh, found, X.shape[0])
    if X.shape[0] <= block_size:
        return _joined(rows, phi, X)
    return _by_blocks(rows, block_size, phi, X)


def sum_by_blocks(
    term: Callable[..., Any],
    phi: Any,
    X: jax.Array,
    *columns: jax.Array,
    block_size: int,
) -> Any:
    """Return the sum of term(phi, points, *columns) over blocks of rows, each device of a mesh with those of its own.

    The last block is filled up with copies of a point beside zeros, for which the term must be zero.
    """
    if (mesh := _sharing(X, block_size)) is not None:
        own = partial(sum_by_blocks, term, block_size=block_size)
        rows = (
            *dealt(mesh, X, below=copies_below),
            *dealt(mesh, *columns, below=zeros_below),
        )
        return spread(lambda *given: (own(*given), ()), mesh, phi, *rows)[0]
    blocks = -(-X.shape[0] // block_size)
    size = -(-X.shape[0] // blocks)
    filled = (
        copies_below(X, blocks * size),
        *(zeros_below(column, blocks * size) for column in columns),
    )
    parts = tuple(part.reshape(blocks, size, *part.shape[1:]) for part in filled)

    def add(total: Any, block: Any) -> tuple[Any, None]:
        return jax.tree.map(jnp.add, total, term(phi, *block)), None

    like = jax.eval_shape(term, phi, *(part[0] for part in parts))
    return lax.scan(
        add, jax.tree.map(lambda one: jnp.zeros(one.shape, one.dtype), like), parts
    )[0]


def _sharing(X: jax.Array, block_size: int) -> AbstractMesh | None:
    """Return the mesh whose devices share the rows; less than a block is left to XLA, unless it refuses."""
    mesh = mesh_of(X)
    return (
        mesh
        if mesh is not None
        and X.shape[0] >= mesh.size
        and (typed(mesh) or X.shape[0] > block_size)
        else None
    )


def _joined(rows: Rows, phi: Any, X: jax.Array) -> jax.Array:
    found = rows(phi, X)
    return jnp.concatenate(found, axis=1) if isinstance(found, tuple) else found


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _by_blocks(rows: Rows, block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    return lax.platform_dependent(
        phi, X, cpu=partial(_filled, rows, block_size), default=partial(_joined, rows)
    )


@partial(_by_blocks.defjvp, symbolic_zeros=True)
def _by_blocks_jvp(
    rows: Rows, block_size: int, primals: Any, tangents: Any
) -> tuple[jax.Array, jax.Array]:
    # A loop that fills an array would be differentiated into one that adds arrays of zeros. What does not move stays
    # a constant, as the derivative in a zero tangent takes as long as in any other.
    leaves, structure = jax.tree.flatten(primals)
    moving = {
        i: t
        for i, t in enumerate(jax.tree.leaves(tangents))
        if not isinstance(t, SymbolicZero)
    }

    def moved(some: dict[int, jax.Array]) -> jax.Array:
        return _joined(
            rows,
            *jax.tree.unflatten(
                structure, [some.get(i, leaf) for i, leaf in enumerate(leaves)]
            ),
        )

    return _by_blocks(rows, block_size, *primals), jax.jvp(
        moved, ({i: leaves[i] for i in moving},), (moving,)
    )[1]


def _filled(rows: Rows, block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    num_rows = X.shape[0]
    like = jax.eval_shape(
        partial(_joined, rows),
        phi,
        jax.ShapeDtypeStruct((block_size, X.shape[1]), X.dtype),
    )

    def fill(i: jax.Array, out: jax.Array) -> jax.Array:
        start = jnp.minimum(i * block_size, num_rows - block_size)
        found = rows(phi, lax.dynamic_slice_in_dim(X, start, block_size))
        column = 0
        for part in found if isinstance(found, tuple) else (found,):
            out = lax.dynamic_update_slice(
                out, part, (start, jnp.asarray(column, start.dtype))
            )
            column += part.shape[1]
        return out

    # Every row is written, so nothing of what `empty` holds is left.
    return lax.fori_loop(
        0,
        -(-num_rows // block_size),
        fill,
        jnp.empty((num_rows, like.shape[1]), like.dtype),
    )
