"""What maps made of landmarks share: they are linear in the values that a function of H takes at the landmarks."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxkern._spectral import eigh, matmul
from jaxkern.features._map import apply_rows
from jaxkern.gram import gram_matmul
from jaxkern.kernels import as_kernel
from jaxkern.rkhs import Function, _same_space


class Projection:
    """A map f -> P S f of H, S f the values of f at n landmarks and P the field `projection`, (num_features, n)."""

    kernel: Any
    landmarks: jax.Array
    projection: jax.Array

    @property
    def num_features(self) -> int:
        """Number of features."""
        return self.projection.shape[0]

    def __call__(self, X: Any) -> jax.Array:
        """Return phi(X), (..., num_features) for X (..., dim), in blocks: the kernel matrix is never held.

        Raises
        ------
        ValueError
            If the last axis of X is not that of the landmarks, or X is not of their floating dtype.

        Notes
        -----
        N num_features n multiply-adds beyond the N n kernel evaluations.
        """
        return apply_rows(self._rows, X, self.landmarks)

    def _rows(self, X: jax.Array) -> jax.Array:
        return gram_matmul(self.kernel, X, self.landmarks, self.projection.T)

    def embed(self, f: Function) -> jax.Array:
        """Return P S f, (num_features,) for one function and (r, num_features) for r of them; linear in f.

        Raises
        ------
        ValueError
            If f does not belong to the kernel of the map.
        """
        values = _same_space(f, as_kernel(self.kernel))(self.landmarks)
        return matmul(self.projection, values).T


class OffsetProjection(Projection):
    """A projection of K_x less a mean: every image is shifted by `offset`, (num_features,)."""

    offset: jax.Array

    def _rows(self, X: jax.Array) -> jax.Array:
        return super()._rows(X) - self.offset[None, :]


def eigen_rows(
    A: jax.Array, num_rows: int, *, power: float, largest: jax.Array | float = 0.0
) -> tuple[jax.Array, jax.Array]:
    """Return the leading rows of Lambda^power V^T, (num_rows, n), and of Lambda, (num_rows,), for A = V Lambda V^T.

    Both are zero where the eigenvalue is rounding: at most eps * sqrt(n) * the largest, or eps * n * `largest`, the
    largest entry of what A was computed from. Rounding errors of the n^2 entries are as good as independent, so their
    norm grows like sqrt(n); a cut-off with n would throw away directions that float32 still knows.

    Derivatives are those of the eigenvectors where eigenvalues are apart. Where they coincide an eigenvector has none;
    there the rows turn as A^power does, so that whatever depends on inner products of the result alone,
    R^T R = A^(2 power), has its right derivative.
    """
    return _eigen_rows(A, jnp.asarray(largest, A.dtype), num_rows, power)


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _eigen_rows(A: jax.Array, largest: jax.Array, num_rows: int, power: float) -> tuple[jax.Array, jax.Array]:
    values, vectors = _kept_pairs(A, largest)
    leading = values[:num_rows]
    return _power(leading, power)[:, None] * vectors[:, :num_rows].T, leading


@_eigen_rows.defjvp
def _eigen_rows_jvp(num_rows: int, power: float, primals: Any, tangents: Any) -> Any:
    values, vectors = _kept_pairs(*primals)
    leading, every = values[:num_rows, None], values[None, :]
    gap = leading - every
    # Closer than this, the rounding of the tangent would weigh more than the second order of the gap.
    apart = jnp.abs(gap) > jnp.finfo(gap.dtype).eps ** 0.5 * jnp.maximum(leading, every)
    slope = jnp.where(apart, _power(leading, power) / jnp.where(apart, gap, 1), power * _power(leading, power - 1))
    tangent = (tangents[0] + tangents[0].T) / 2
    turned = matmul(matmul(vectors[:, :num_rows].T, tangent), vectors)
    moved = jnp.where(leading[:, 0] > 0, jnp.diagonal(turned), 0)
    rows = _power(leading, power) * vectors[:, :num_rows].T
    return (rows, leading[:, 0]), (matmul(jnp.where(leading > 0, slope * turned, 0), vectors.T), moved)


def _kept_pairs(A: jax.Array, largest: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return all eigenvalues, those that are rounding replaced by zero, and eigenvectors."""
    values, vectors = eigh(A)
    eps, size = float(jnp.finfo(A.dtype).eps), A.shape[0]
    floor = eps * jnp.maximum(size**0.5 * jnp.max(jnp.abs(values)), size * largest)
    return jnp.where(values > floor, values, 0), vectors


def _power(values: jax.Array, power: float) -> jax.Array:
    """Return values^power where they are positive, and zero elsewhere."""
    positive = values > 0
    return jnp.where(positive, jnp.where(positive, values, 1) ** power, 0)
