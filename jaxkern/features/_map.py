"""What all feature maps share: (..., dim) in, (..., num_features) out, and many rows in blocks that a cache holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import _checks


def as_map(phi: Any) -> Any:
    """Return a map as a PyTree: a plain function becomes part of the tree structure."""
    leaves = jax.tree.leaves(phi)
    return jax.tree_util.Partial(phi) if len(leaves) == 1 and leaves[0] is phi else phi


def apply_rows(rows: Callable[[jax.Array], jax.Array], X: Any, reference: jax.Array) -> jax.Array:
    """Apply a map of rows (n, dim) -> (n, m) to X of shape (..., dim), in the dtype and dimension of `reference`."""
    X = _checks.points("X", X, dim=reference.shape[1])
    _checks.same_dtype("X", X, "the fitted map", reference)
    flat = rows(X.reshape(math.prod(X.shape[:-1]), X.shape[-1]))
    return flat.reshape(*X.shape[:-1], flat.shape[-1])


def by_blocks(rows: Callable[[Any, jax.Array], jax.Array], phi: Any, X: jax.Array, *, block_size: int) -> jax.Array:
    """Return rows(phi, X) for a function that treats rows one by one; on a CPU block by block.

    What is between X and the result then stays in a cache. The result is written in place: no padding, and no copy, as
    the last block ends with the last row and repeats some of the block before. Derivatives are those of `rows`, at
    once; elsewhere than on a CPU the values are, too.
    """
    if X.shape[0] <= block_size:
        return rows(phi, X)
    return _by_blocks(rows, block_size, phi, X)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _by_blocks(rows: Callable[[Any, jax.Array], jax.Array], block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    return lax.platform_dependent(phi, X, cpu=partial(_filled, rows, block_size), default=rows)


@_by_blocks.defjvp
def _by_blocks_jvp(rows: Any, block_size: int, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    # A loop that fills an array would be differentiated into one that adds arrays of zeros.
    return _by_blocks(rows, block_size, *primals), jax.jvp(rows, primals, tangents)[1]


def _filled(rows: Callable[[Any, jax.Array], jax.Array], block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    num_rows = X.shape[0]
    like = jax.eval_shape(rows, phi, jax.ShapeDtypeStruct((block_size, X.shape[1]), X.dtype))

    def fill(i: jax.Array, out: jax.Array) -> jax.Array:
        start = jnp.minimum(i * block_size, num_rows - block_size)
        block = lax.dynamic_slice_in_dim(X, start, block_size)
        return lax.dynamic_update_slice_in_dim(out, rows(phi, block), start, axis=0)

    # Every row is written, so nothing of what `empty` holds is left.
    return lax.fori_loop(0, -(-num_rows // block_size), fill, jnp.empty((num_rows, like.shape[1]), like.dtype))
