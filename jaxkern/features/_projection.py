"""What maps made of landmarks share: they are linear in the values that a function of H takes at the landmarks."""

from __future__ import annotations

from typing import Any

import jax

from jaxkern._programs import blockwise
from jaxkern._types import Array, ArrayLike, Float
from jaxkern.features._map import apply_rows
from jaxkern.gram import _product
from jaxkern.kernels import as_kernel
from jaxkern.linalg import matmul
from jaxkern.rkhs._function import Function, same_space


class Projection:
    """A map f -> P S f of H, S f the values of f at n landmarks and P the field `projection`, (num_features, n)."""

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self.projection.shape[0]

    def __call__(
        self, X: Float[ArrayLike, "... dim"]
    ) -> Float[Array, "... num_features"]:
        """Return phi(X), (..., num_features) for X (..., dim), in blocks: the kernel matrix is never held.

        Notes
        -----
        N num_features n multiply-adds beyond the N n kernel evaluations.
        """
        return apply_rows(self._rows, X, self.landmarks)

    def _rows(self, X: jax.Array) -> jax.Array:
        return _images(self.kernel, X, self.landmarks, self.projection)

    def embed(self, f: Function) -> Float[Array, "... num_features"]:
        """Return P S f, (num_features,) for one function of the kernel of the map and (r, num_features) for r."""
        values = same_space(f, as_kernel(self.kernel))(self.landmarks)
        return matmul(self.projection, values).T


class OffsetProjection(Projection):
    """A projection of K_x less a mean: every image is shifted by `offset`, (num_features,)."""

    offset: jax.Array

    def _rows(self, X: jax.Array) -> jax.Array:
        return _images(self.kernel, X, self.landmarks, self.projection, self.offset)


@blockwise
def _images(
    kernel: Any,
    X: jax.Array,
    landmarks: jax.Array,
    projection: jax.Array,
    offset: jax.Array | None = None,
) -> jax.Array:
    return _product(kernel, X, landmarks, projection.T, less=offset)
