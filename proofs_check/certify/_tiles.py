"""Blocks of pairs for the goal "distance": which pairs a product can tell apart, and the ratios of their distances."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.gram import gram, kernel_distance
from jaxkern.linalg import matmul
from proofs_check.certify._rows import compiled

KERNEL_CANCELLATION = 2e3
"""Kernel distances take differences of points where float64 products would move the ratio by 0.1 % of eps or so."""
Centred = tuple[jax.Array, jax.Array]
"""Features of a block less their mean, and their squared norms."""


class Reach(NamedTuple):
    """What decides which way a pair goes; float64, (side,) each.

    spread is |K_x - m|^2, m the mean of some of the points; exact a squared distance, and rounding a distance, below
    which the sum over the two points of a pair calls for differences of points and of features.
    """

    spread: jax.Array
    exact: jax.Array
    rounding: jax.Array


@dataclass(frozen=True, eq=False)
class Tile:
    """Pairs of two blocks of points.

    `squared` holds squared distances (side, side) float32, NaN for pairs that do not go to the product, or None where
    they are computed again. `near` holds chunks of the others: indices within the blocks, and distances, NaN for
    padding. Then how many pairs are at distance zero, how many rounding may change by more than eps, and the largest
    share of eps that it may take of any pair.
    """

    rows: int
    cols: int
    wide: bool
    squared: jax.Array | None
    near: tuple[tuple[np.ndarray, np.ndarray, jax.Array], ...]
    zero_pairs: int
    unresolved: int
    share: float


class Ratios(NamedTuple):
    """Some pairs: `ratios`, squared, of distances of features to kernel distances, which are measured ** power.

    `rows` and `cols` are the numbers of their points and broadcast. Pairs that do not count have NaN for the distance,
    and the ratio 1, or NaN if features are not numbers.
    """

    ratios: jax.Array
    measured: jax.Array
    power: float
    rows: Any
    cols: Any


def _distances(kernel: Any, X: jax.Array, Y: jax.Array) -> jax.Array:
    """Return squared kernel distances (n, m) in float64, by products."""
    x, y = (jax.vmap(lambda point: kernel(point, point))(side) for side in (X, Y))
    return x[:, None] + y[None, :] - 2 * gram(kernel, X, Y)


@compiled
def reach_of(
    kernel: Any,
    X: jax.Array,
    moved: jax.Array,
    middle: jax.Array,
    eps: Any,
    rounding: Any,
) -> Reach:
    """Return what rounding does to a point of a block.

    The rounding of a feature is that of its number, eps(dtype) sqrt(K(x, x)) in all, and that of the coordinates of
    the point on their way through the map: the distance from x to where rounding moves it. The rounding of a squared
    distance by float64 products is that of values of the kernel, eps K(x, x), and that of the squared distances of
    centred points, eps |x|^2, or the squared distance from x to x (1 + sqrt(eps)).
    """
    tiny = float(np.finfo(np.float64).eps)
    spread = (
        jnp.mean(_distances(kernel, X, middle), axis=1)
        - jnp.mean(_distances(kernel, middle, middle)) / 2
    )
    size = jax.vmap(lambda point: kernel(point, point))(X)
    centred = X - jnp.mean(middle, axis=0, keepdims=True)
    half = kernel_distance(kernel, X, X + math.sqrt(tiny) * centred)
    exact = half * half + tiny * size
    relative = jnp.sqrt(size) * rounding + kernel_distance(kernel, X, moved)
    return Reach(
        jnp.maximum(spread, 0), exact * KERNEL_CANCELLATION / eps, relative / eps
    )


@compiled
def tile_of(
    kernel: Any,
    first: tuple[jax.Array, Reach, Any],
    second: tuple[jax.Array, Reach, Any],
    last: Any,
    factor: Any,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return squared distances of the pairs that a product resolves, NaN elsewhere; the others; the largest share."""
    (X, x, row), (Y, y, col) = first, second
    squared = _distances(kernel, X, Y)
    i, j = (start + jnp.arange(X.shape[0]) for start in (row, col))
    counted = (i[:, None] < j[None, :]) & (j < last)[None, :]

    def both(a: jax.Array, b: jax.Array) -> jax.Array:
        return a[:, None] + b[None, :]

    rounding = both(x.rounding, y.rounding)
    least = jnp.maximum(both(x.exact, y.exact), rounding**2)
    product = (
        counted
        & (squared >= jnp.maximum(least, factor * both(x.spread, y.spread)))
        & (squared > 0)
    )
    share = jnp.max(
        jnp.where(product, rounding / jnp.sqrt(jnp.where(product, squared, 1)), 0)
    )
    return (
        jnp.where(product, squared, jnp.nan).astype(jnp.float32),
        counted & ~product,
        share,
    )


@compiled
def direct(
    kernel: Any, X: jax.Array, Y: jax.Array, i: jax.Array, j: jax.Array
) -> jax.Array:
    return kernel_distance(kernel, X[i], Y[j])


@compiled
def mean_of(images: tuple[jax.Array, ...], weights: tuple[jax.Array, ...]) -> jax.Array:
    """Return the weighted mean of the rows, (1, num_features)."""
    return sum(matmul(w[None, :], Z) for Z, w in zip(images, weights, strict=True))  # type: ignore[return-value]


@partial(compiled, static_argnames="dtype")
def centred(Z: jax.Array, mean: jax.Array, *, dtype: Any) -> Centred:
    """Return the rows less the mean, and their squared norms."""
    wider = max(Z.dtype, jnp.dtype(dtype), key=lambda kind: kind.itemsize)
    A = (Z.astype(wider) - mean.astype(wider)).astype(dtype)
    return A, jnp.sum(A * A, axis=1)


def all_ratios(
    first: Centred, second: Centred, squared: jax.Array, at: tuple[int, int]
) -> Ratios:
    """Return the ratios of all pairs of two blocks of these numbers."""
    within = np.arange(len(squared))
    rows, cols = (number * len(squared) + within for number in at)
    return Ratios(
        by_product(first, second, squared), squared, 0.5, rows[:, None], cols[None, :]
    )


@compiled
def by_product(first: Centred, second: Centred, squared: jax.Array) -> jax.Array:
    (A, a), (B, b) = first, second
    images = (a[:, None] + b[None, :] - 2 * matmul(A, B.T)).astype(jnp.float32)
    return _over(images, squared)


def some_ratios(
    first: Centred,
    second: Centred,
    squared: jax.Array,
    at: tuple[int, int],
    i: Any,
    j: Any,
) -> Ratios:
    """Return the ratios of some pairs of two blocks of these numbers."""
    ratios, measured = by_inner_products(first, second, squared, i, j)
    return Ratios(
        ratios, measured, 0.5, at[0] * len(squared) + i, at[1] * len(squared) + j
    )


@compiled
def by_inner_products(
    first: Centred, second: Centred, squared: jax.Array, i: jax.Array, j: jax.Array
) -> tuple[jax.Array, jax.Array]:
    (A, a), (B, b) = first, second
    measured = squared[i, j]
    return _over(a[i] + b[j] - 2 * _sums(A[i] * B[j]), measured), measured


@compiled
def by_difference(
    Z: jax.Array, W: jax.Array, i: jax.Array, j: jax.Array, distances: jax.Array
) -> jax.Array:
    difference = Z[i].astype(jnp.float64) - W[j].astype(jnp.float64)
    ratios = _over(jnp.sqrt(_sums(difference * difference)), distances)
    return (ratios * ratios).astype(jnp.float32)


def _sums(terms: jax.Array) -> jax.Array:
    """Return the sums of the rows, by halves: XLA adds a row number by number, in several times as long."""
    while terms.shape[1] % 2 == 0:
        half = terms.shape[1] // 2
        terms = terms[:, :half] + terms[:, half:]
    return jnp.sum(terms, axis=1)


def _over(images: jax.Array, distances: jax.Array) -> jax.Array:
    """Return the ratio where there is a distance, and elsewhere 1, or NaN where the image is not a number."""
    counted = distances > 0
    return jnp.where(counted, images / jnp.where(counted, distances, 1), 1 + 0 * images)


@compiled
def worst_of(worst: jax.Array, ratios: jax.Array) -> jax.Array:
    """Return the largest ratio so far, and the largest of all negative ratios; NaN stays."""
    return jnp.maximum(worst, jnp.stack([jnp.max(ratios), jnp.max(-ratios)]))
