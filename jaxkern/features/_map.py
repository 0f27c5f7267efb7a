"""What all feature maps share: (..., dim) in, (..., num_features) out."""

import math
from collections.abc import Callable
from typing import Any

import jax

from jaxkern import checks
from jaxkern._types import FeatureMap


def as_map(phi: FeatureMap) -> Any:
    """Return a map as a PyTree: a plain function becomes part of the tree structure.

    Parameters
    ----------
    phi : a feature map, or any function of points.
    """
    leaves = jax.tree.leaves(phi)
    return jax.tree_util.Partial(phi) if len(leaves) == 1 and leaves[0] is phi else phi


def apply_rows(
    rows: Callable[[jax.Array], jax.Array], X: Any, reference: jax.Array
) -> jax.Array:
    """Apply a map of rows (n, dim) -> (n, m) to X of shape (..., dim), in the dtype and dimension of `reference`."""
    X = checks.points("X", X, dim=reference.shape[1])
    checks.same_dtype("X", X, "the fitted map", reference)
    flat = rows(X.reshape(math.prod(X.shape[:-1]), X.shape[-1]))
    return flat.reshape(*X.shape[:-1], flat.shape[-1])
