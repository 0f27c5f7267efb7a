"""Random draws whose first rows do not depend on how many are drawn."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def normal_rows(key: jax.Array, num_rows: int, num_cols: int, dtype: Any) -> jax.Array:
    """Return a standard normal (num_rows, num_cols) matrix: row i depends on the key and i alone."""
    keys = jax.vmap(jax.random.fold_in, (None, 0))(key, jnp.arange(num_rows, dtype=jnp.uint32))
    return jax.vmap(lambda k: jax.random.normal(k, (num_cols,), dtype))(keys)
