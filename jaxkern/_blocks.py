"""Functions of rows over many rows: in blocks that a cache holds, written in place."""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Rows = Callable[[Any, jax.Array], jax.Array]


def by_blocks(rows: Rows, phi: Any, X: jax.Array, *, block_size: int) -> jax.Array:
    """Return rows(phi, X) for a function that treats rows one by one; on a CPU block by block.

    What is between X and the result then stays in a cache. The result is written in place: no padding, and no copy, as
    the last block ends with the last row and repeats some of the block before. Derivatives are those of `rows`
    on all of X; elsewhere than on a CPU the values are, too.
    """
    if X.shape[0] <= block_size:
        return rows(phi, X)
    return _by_blocks(rows, block_size, phi, X)


@partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _by_blocks(rows: Rows, block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    return lax.platform_dependent(phi, X, cpu=partial(_filled, rows, block_size), default=rows)


@_by_blocks.defjvp
def _by_blocks_jvp(rows: Rows, block_size: int, primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    # A loop that fills an array would be differentiated into one that adds arrays of zeros.
    return _by_blocks(rows, block_size, *primals), jax.jvp(rows, primals, tangents)[1]


def _filled(rows: Rows, block_size: int, phi: Any, X: jax.Array) -> jax.Array:
    num_rows = X.shape[0]
    like = jax.eval_shape(rows, phi, jax.ShapeDtypeStruct((block_size, X.shape[1]), X.dtype))

    def fill(i: jax.Array, out: jax.Array) -> jax.Array:
        start = jnp.minimum(i * block_size, num_rows - block_size)
        block = lax.dynamic_slice_in_dim(X, start, block_size)
        return lax.dynamic_update_slice_in_dim(out, rows(phi, block), start, axis=0)

    # Every row is written, so nothing of what `empty` holds is left.
    return lax.fori_loop(0, -(-num_rows // block_size), fill, jnp.empty((num_rows, like.shape[1]), like.dtype))
