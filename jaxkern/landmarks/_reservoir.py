"""A sample of a stream."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._weights import positions
from jaxkern.pytrees import pytree


@pytree
class Reservoir:
    """A uniform sample without replacement of the rows of a stream.

    Attributes
    ----------
    points : (num_landmarks, dim), the sample; rows from `seen` on are zero where the stream was shorter.
    priorities : (num_landmarks,) int32, ascending: every row of the stream has a random one, and the lowest stay.
    seen : scalar int32, the number of rows so far.
    key : the key of the stream; row t takes its priority from fold_in(key, t).
    """

    points: jax.Array
    priorities: jax.Array
    seen: jax.Array
    key: jax.Array


class _Init(Protocol):
    def __call__(self, key: Any, dim: int, dtype: Any = ...) -> Reservoir: ...


class ReservoirFunctions(NamedTuple):
    """The pure functions that `reservoir` returns."""

    init: _Init
    update: Callable[..., Reservoir]
    merge: Callable[[Reservoir, Reservoir], Reservoir]


def reservoir(*, num_landmarks: int) -> ReservoirFunctions:
    """Return the functions `(init, update, merge)` that keep a uniform sample of a stream, in one pass.

    `init(key, dim, dtype=float32)` returns an empty `Reservoir`; `update(state, rows, weights=None)` takes rows
    (b, dim), any b; `merge(a, b)` joins the samples of two streams that were started with different keys. However the
    stream is cut into batches, the sample is the same; every subset of num_landmarks rows is equally likely, or with
    weights what draws one after the other with odds proportional to them give, as in `uniform`; all may be 0 here. The
    sample is NaN after weights that are negative or not finite.

    Parameters
    ----------
    num_landmarks : n, at least 1.

    Notes
    -----
    O(b + n) time and memory for a batch, O(n) for the state. A stream has at most 2^31 - 1 rows. It is the sample
    behind the Nystrom baseline of ghashami2016, Section 4.

    Examples
    --------
    >>> import jax
    >>> init, update, _ = reservoir(num_landmarks=5)
    >>> state = update(init(jax.random.key(0), 3), jax.random.normal(jax.random.key(1), (20, 3)))
    >>> state.points.shape
    (5, 3)
    """
    size = checks.count("num_landmarks", num_landmarks)

    def init(key: Any, dim: int, dtype: Any = jnp.float32) -> Reservoir:
        """Return a sample without rows, of points of dimension dim."""
        dim = checks.count("dim", dim)
        points = checks.floating(
            "dtype", jnp.zeros((size, dim), jax.dtypes.canonicalize_dtype(dtype))
        )
        last = jnp.full((size,), jnp.iinfo(jnp.int32).max, jnp.int32)
        return Reservoir(points, last, jnp.int32(0), checks.key(key))

    def update(state: Reservoir, rows: Any, weights: Any = None) -> Reservoir:
        """Return the sample after rows (b, dim), any b, of weights (b,) in the dtype of rows, or all 1."""
        rows = checks.matrix("rows", rows, dim=state.points.shape[1], min_rows=0)
        rows = checks.same_dtype("rows", rows, "the reservoir", state.points)
        return _reservoir_update(
            state, rows, checks.weights(weights, "rows", rows, some=False)
        )

    def merge(a: Reservoir, b: Reservoir) -> Reservoir:
        """Return the sample of two streams together, which were started with different keys."""
        if a.points.shape != b.points.shape:
            raise ValueError(
                f"b must have the shape of a, {a.points.shape}, got {b.points.shape}"
            )
        checks.same_dtype("b", b.points, "a", a.points)
        return _reservoir_merge(a, b)

    return ReservoirFunctions(init, update, merge)


@jax.jit
def _reservoir_update(
    state: Reservoir, rows: jax.Array, weights: jax.Array | None
) -> Reservoir:
    last = jnp.iinfo(jnp.int32).max
    count = rows.shape[0] if weights is None else jnp.sum(weights > 0, dtype=jnp.int32)
    index = state.seen + (
        lax.iota(jnp.int32, rows.shape[0]) if weights is None else positions(weights)
    )
    keys = jax.vmap(jax.random.fold_in, (None, 0))(state.key, index.astype(jnp.uint32))
    priorities = jax.vmap(lambda key: jax.random.randint(key, (), 0, last, jnp.int32))(
        keys
    )
    old = state.points
    if weights is not None:
        exists = weights > 0
        # The least of w uniform numbers: the priority of the first of w copies.
        share = priorities.astype(jnp.float32) / 2.0**31
        least = -jnp.expm1(
            jnp.log1p(-share) / jnp.where(exists, weights, 1).astype(jnp.float32)
        )
        least = jnp.minimum(least * 2.0**31, 2.0**31 - 256).astype(jnp.int32)
        priorities = jnp.where(exists, jnp.where(weights == 1, priorities, least), last)
        rows = jnp.where(exists[:, None], rows, 0)
        fit = ((weights >= 0) & jnp.isfinite(weights)).all()
        old, rows = (jnp.where(fit, points, jnp.nan) for points in (old, rows))
    points, lowest = _lowest(dataclasses.replace(state, points=old), rows, priorities)
    return Reservoir(points, lowest, state.seen + count, state.key)


@jax.jit
def _reservoir_merge(a: Reservoir, b: Reservoir) -> Reservoir:
    points, lowest = _lowest(a, b.points, b.priorities)
    return Reservoir(points, lowest, a.seen + b.seen, a.key)


def _lowest(
    state: Reservoir, rows: jax.Array, priorities: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the points with the lowest priorities, the earlier one first where two are equal."""
    every = jnp.concatenate([state.priorities, priorities])
    kept = jnp.argsort(every, stable=True)[: state.points.shape[0]]
    return jnp.concatenate([state.points, rows])[kept], every[kept]
