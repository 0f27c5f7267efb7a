"""The separation of points: the least squared distance of points of two classes over the mean one of all pairs."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern.gram import kernel_distance
from jaxkern.linalg import matmul
from proofs_check.certify._rows import ranged, scaled


def prepared(
    kernel: Any, points: jax.Array, codes: np.ndarray, num_classes: int
) -> tuple[tuple[jax.Array, jax.Array, jax.Array], np.ndarray, int]:
    """Return the classes of the points, who is apart from whom and the nearest ones of every class; R; coincidences."""
    classes = jnp.asarray(codes)
    least, nearest, apart, sums, coincident = _measured_points(
        kernel, points, classes, num_classes=num_classes
    )
    mean = float(np.asarray(sums, float).sum()) / (len(points) * (len(points) - 1))
    separation = _between(least, codes, num_classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        separation = separation / mean
    separation = np.where(np.isfinite(separation), separation, np.nan)
    # Every pair was seen from both sides.
    return (
        (classes, apart, nearest),
        separation,
        int(np.asarray(coincident, np.int64).sum()) // 2,
    )


def share_kept(
    Z: jax.Array, layout: tuple[jax.Array, jax.Array, jax.Array], separation: np.ndarray
) -> np.ndarray:
    """Return R of the features over `separation` for all pairs of classes; NaN where features are not finite."""
    classes, apart, nearest = layout
    num_classes = len(separation)
    least, mean = features_points(Z, classes, apart, nearest, num_classes=num_classes)
    if not math.isfinite(float(mean)):
        return np.full(separation.shape, np.nan)
    return (
        _between(least, np.asarray(classes), num_classes)
        / (float(mean) or 1.0)
        / separation
    )


def _between(least: jax.Array, codes: np.ndarray, num_classes: int) -> np.ndarray:
    """Return the minima (c, c) over the points of a class of the distance (c, s) to the nearest one of another."""
    values = np.asarray(least, float)
    one_sided = np.stack(
        [values[:, codes == number].min(axis=1) for number in range(num_classes)]
    )
    return np.minimum(one_sided, one_sided.T)


@partial(jax.jit, static_argnames="num_classes")
def _measured_points(
    kernel: Any, points: jax.Array, classes: jax.Array, *, num_classes: int
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """Return squared distances in H and indices (c, s) of the nearest point of every class that does not coincide.

    Then who does not coincide (s, s), and for every point the sum of its squared distances and the number of points of
    other classes that coincide with it.
    """
    numbers = jnp.arange(num_classes, dtype=jnp.int32)

    def one(point: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, ...]:
        x, own = point
        distances = (
            kernel_distance(kernel, jnp.broadcast_to(x[None, :], points.shape), points)
            ** 2
        )
        apart = distances != 0
        other = (classes != own) & (own >= 0)
        wanted = (classes[None, :] == numbers[:, None]) & (other & apart)[None, :]
        values = jnp.where(wanted, distances[None, :], jnp.inf)
        return (
            values.min(axis=1),
            jnp.argmin(values, axis=1).astype(jnp.int32),
            apart,
            distances.sum(),
            (other & (classes >= 0) & ~apart).sum(dtype=jnp.int32),
        )

    least, nearest, apart, sums, coincident = lax.map(one, (points, classes))
    return least.T, nearest.T, apart, sums, coincident


@partial(jax.jit, static_argnames="num_classes")
def features_points(
    Z: jax.Array,
    classes: jax.Array,
    apart: jax.Array,
    nearest: jax.Array,
    *,
    num_classes: int,
) -> tuple[jax.Array, jax.Array]:
    """Return the squared distance (c, s) to the nearest point of every class, and the mean one of all pairs.

    Products tell who is near; how near is summed over differences, for that pair and for the nearest in H.
    """
    num_points = len(Z)
    # Differences are taken before the mean is: to subtract it is to round.
    Z, centred = ranged(Z), scaled(Z)[0]
    lengths = (centred * centred).sum(axis=1)
    distances = lengths[:, None] + lengths[None, :] - 2 * matmul(centred, centred.T)
    outside = ~apart | (classes[:, None] == classes[None, :])

    def one_class(one: tuple[jax.Array, jax.Array]) -> jax.Array:
        number, other = one
        without = outside | (classes != number)[None, :]
        chosen = jnp.argmin(jnp.where(without, jnp.inf, distances), axis=1)
        least = jnp.minimum(
            ((Z - Z[chosen]) ** 2).sum(axis=1), ((Z - Z[other]) ** 2).sum(axis=1)
        )
        return jnp.where(without.all(axis=1), jnp.inf, least)

    least = lax.map(one_class, (jnp.arange(num_classes, dtype=jnp.int32), nearest))
    return least, lengths.sum() * 2 / (num_points - 1)
