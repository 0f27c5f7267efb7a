"""The separation of class means: their squared distances over the largest variance within a class in one direction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern.gram import gram, gram_matmul
from jaxkern.linalg import largest_eigenpairs, matmul, start_block
from proofs_check.certify._rows import scaled

_DENSE = 2**24
_ROWS = 128
_TOLERANCE = 1e-4


@dataclass(frozen=True)
class Means:
    """Squared distances of class means (c, c), largest eigenvalues of class covariances (c,), and their rounding."""

    gaps: np.ndarray
    spreads: np.ndarray
    rounding: float

    @property
    def spread(self) -> np.ndarray:
        """Return the larger spread of the two classes of all pairs, (c, c)."""
        return np.maximum(self.spreads[:, None], self.spreads[None, :])

    @property
    def apart(self) -> np.ndarray:
        """Return the squared distances, and zero where they are rounding."""
        return np.where(self.gaps > self.rounding, self.gaps, 0.0)

    @property
    def separation(self) -> np.ndarray:
        """Return R for all pairs; infinite where both classes are single points, NaN where the means coincide."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.apart / np.where(self.spread > self.rounding, self.spread, 0.0)
        return np.where(self.apart > 0, ratio, np.nan)

    def share_kept(self, exact: Means) -> np.ndarray:
        """Return R over the exact R for all pairs, NaN where that has nothing to lose."""
        with np.errstate(divide="ignore", invalid="ignore"):
            truth = exact.apart / np.maximum(exact.spread, exact.rounding)
            ratio = self.apart / np.maximum(self.spread, self.rounding) / truth
        single = (self.spread <= self.rounding) & (exact.spread <= exact.rounding)
        return np.where(
            exact.apart > 0, np.where(single, self.apart > 0, ratio), np.nan
        )


def prepared(
    kernel: Any, points: jax.Array, codes: np.ndarray, num_classes: int
) -> tuple[tuple[jax.Array, jax.Array, Means], np.ndarray, int]:
    """Return where the points of the classes are and how they are separated in H, R, and 0."""
    counts = np.bincount(codes[codes >= 0], minlength=num_classes)
    # A multiple of a number: samples of one size share programs. What fills it up counts nothing.
    width = int(-(-counts.max() // _ROWS) * _ROWS)
    rows = np.zeros((num_classes, width), np.int32)
    for number in range(num_classes):
        rows[number, : counts[number]] = np.flatnonzero(codes == number)
    layout = jnp.asarray(rows), jnp.asarray(np.arange(width)[None, :] < counts[:, None])
    rounding = float(jnp.finfo(points.dtype).eps)
    exact = _means(kernel_means, _kernel_spreads, (kernel, points), *layout, rounding)
    if exact is None:
        raise ValueError(
            "the separation of the classes is not finite; look for NaN or huge entries in the points"
        )
    return (*layout, exact), exact.separation, 0


def share_kept(
    Z: jax.Array, layout: tuple[jax.Array, jax.Array, Means], rounding: float
) -> np.ndarray:
    """Return R of the features over the exact R for all pairs of classes; NaN where features are not finite."""
    rows, inside, exact = layout
    measured = _means(features_means, _features_spreads, (Z,), rows, inside, rounding)
    return (
        np.full(exact.gaps.shape, np.nan)
        if measured is None
        else measured.share_kept(exact)
    )


def _means(
    means: Any, spreads: Any, space: Any, rows: jax.Array, inside: jax.Array, eps: float
) -> Means | None:
    """Return the numbers of the kernel's space or of the features, in float64; None where some are not finite.

    The largest eigenvalues come from the Gram matrices of the classes where these are small, by one program for the
    kernel and all maps, for it takes seconds to compile; and else from products without them.
    """
    dense = inside.shape[0] * inside.shape[1] ** 2 <= _DENSE
    gaps, size, grams = means(*space, rows, inside, dense=dense)
    if dense:
        # One after the other, by a program that does not depend on their number: samples may miss a class.
        pairs = [
            gram_spread(one, mask) for one, mask in zip(grams, inside, strict=True)
        ]
        values, settled = (
            np.array([float(pair[0]) for pair in pairs]),
            all(bool(pair[1]) for pair in pairs),
        )
    else:
        values, settled = spreads(*space, rows, inside)
    # Features that are all zero have no size, and nothing that is not rounding.
    rounding = 32 * eps * (float(size) or 1.0)
    measured = Means(np.asarray(gaps, float), np.asarray(values, float), rounding)
    finite = (
        np.isfinite(measured.gaps).all()
        and np.isfinite(measured.spreads).all()
        and math.isfinite(rounding)
    )
    return measured if finite and bool(settled) else None


@partial(jax.jit, static_argnames="dense")
def kernel_means(
    kernel: Any, points: jax.Array, rows: jax.Array, inside: jax.Array, *, dense: bool
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return the squared distances (c, c) of the class means in H, the mean of K(x, x), and the Gram matrices."""
    counts = inside.sum(axis=1).astype(points.dtype)

    def weights(row: jax.Array, mask: jax.Array, count: jax.Array) -> jax.Array:
        return (
            jnp.zeros(len(points), points.dtype)
            .at[row]
            .add(mask.astype(points.dtype) / count)
        )

    # Less the mean of all points: the entries of the product are then no larger than they need be.
    W = jax.vmap(weights)(rows, inside, counts).T - 1 / len(points)
    products = gram_matmul(kernel, points, None, W)
    numbers = jnp.arange(W.shape[1], dtype=jnp.int32)
    gaps = lax.map(
        lambda a: ((W[:, a][:, None] - W) * (products[:, a][:, None] - products)).sum(
            axis=0
        ),
        numbers,
    )
    size = jnp.mean(jax.vmap(lambda x: kernel(x, x))(points))
    return (
        gaps,
        size,
        lax.map(lambda row: gram(kernel, points[row]), rows) if dense else None,
    )


@jax.jit
def _kernel_spreads(
    kernel: Any, points: jax.Array, rows: jax.Array, inside: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the largest eigenvalues (c,) of the covariances in H, without a Gram matrix, and if they are settled."""

    def spread(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        members = points[one[0]]
        return _largest(
            lambda V: gram_matmul(kernel, members, None, V), one[1], points.dtype
        )

    values, settled = lax.map(spread, (rows, inside))
    return values, settled.all()


@jax.jit
def gram_spread(K: jax.Array, mask: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the same of one class from its Gram matrix (w, w), of which masked rows and columns count."""
    return _largest(lambda V: matmul(K, V), mask, K.dtype)


@partial(jax.jit, static_argnames="dense")
def features_means(
    Z: jax.Array, rows: jax.Array, inside: jax.Array, *, dense: bool
) -> tuple[jax.Array, jax.Array, jax.Array | None]:
    """Return the same of features (s, m) as `kernel_means` of H, up to a common factor."""
    Z, size = scaled(Z)
    means = lax.map(lambda one: _members(Z, *one)[1], (rows, inside))
    gaps = lax.map(
        lambda a: ((means[a][None, :] - means) ** 2).sum(axis=1),
        jnp.arange(len(means), dtype=jnp.int32),
    )

    def class_gram(one: tuple[jax.Array, jax.Array]) -> jax.Array:
        centred = _members(Z, *one)[0]
        return matmul(centred, centred.T)

    return gaps, size, lax.map(class_gram, (rows, inside)) if dense else None


@jax.jit
def _features_spreads(
    Z: jax.Array, rows: jax.Array, inside: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the same of features as `_kernel_spreads` of H, up to the same factor."""
    Z = scaled(Z)[0]

    def spread(one: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        centred = _members(Z, *one)[0]
        return _largest(
            lambda V: matmul(centred, matmul(centred.T, V)), one[1], Z.dtype
        )

    values, settled = lax.map(spread, (rows, inside))
    return values, settled.all()


def _members(
    Z: jax.Array, row: jax.Array, mask: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the features (w, m) of a class less their mean, zero where the mask is, and that mean (m,)."""
    members = jnp.where(mask[:, None], Z[row], 0)
    mean = members.sum(axis=0) / mask.sum().astype(Z.dtype)
    return jnp.where(mask[:, None], members - mean[None, :], 0), mean


def _largest(product: Any, mask: jax.Array, dtype: Any) -> tuple[jax.Array, jax.Array]:
    """Return the largest eigenvalue of the covariance of the masked points, whose Gram matrix `product` multiplies.

    And whether it is within a relative 2e-4 of an eigenvalue.
    """
    count = mask.sum().astype(dtype)

    def centred(V: jax.Array) -> jax.Array:
        V = jnp.where(mask[:, None], V, 0)
        return jnp.where(mask[:, None], V - V.sum(axis=0, keepdims=True) / count, 0)

    start = start_block(len(mask), 1, dtype)
    pairs = largest_eigenpairs(
        lambda V: centred(product(centred(V))),
        start,
        num_values=1,
        tolerance=_TOLERANCE,
    )
    return jnp.maximum(pairs.values[0], 0) / count, pairs.converged
