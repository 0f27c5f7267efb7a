"""Frequent Directions: a matrix sketch of a stream of rows that knows its own error.

The rows seen so far are a matrix A; the state holds a buffer B of R rows, and filling never looks at their values. A
row that meets a full buffer starts a *shrink*: from the squared singular values of B the p-th largest, delta, is
subtracted (those below become zero), so that p - 1 rows remain. Let Delta be the sum of the deltas. Then

1. 0 <= A'A - B'B <= Delta I: a shrink takes min(sigma^2, delta) off each squared singular value, a row adds the same
   to both sides.
2. p Delta <= |A|_F^2 - |B|_F^2: each shrink takes delta off p squares at least; a row adds the same to both sides.
3. Delta <= |A - A_k|_F^2 / (p - k) for every k < p, A_k the best approximation of rank k. With v_1, ..., v_k the right
   singular vectors of A, |A|_F^2 - |A - A_k|_F^2 = sum |A v_i|^2 <= sum (|B v_i|^2 + Delta) <= |B|_F^2 + k Delta;
   subtract this from 2.

None of this asks where rows come from, so it holds for rows that are those of another buffer: for any tree of merges.

Two pairs (R, p) matter. With R = 2 l and p = l + 1, the default, Delta <= |A - A_k|_F^2 / (l + 1 - k) at one
decomposition per l rows. With R = l and p = floor(l / 2) this is Algorithm 1 of ghashami2016, whose bound is
|A - A_k|_F^2 / (p - k): twice as large already for k = 0, and attained.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from jaxkern import checks
from jaxkern._programs import inlined
from jaxkern._types import Array, ArrayLike, DTypeLike, Float
from jaxkern.linalg import eigh, matmul, svd
from jaxkern.pytrees import pytree, static

__all__ = ["Sketch", "State", "finalize", "init", "merge", "update"]

_MOST_ROWS = 2**31 - 1


@pytree
class State:
    """A stream in progress: what the next step needs, in arrays of fixed shapes.

    Attributes
    ----------
    buffer : (R, dim), R = 2 sketch_size, or sketch_size where shrink_at <= sketch_size; unused rows are zero.
    filled : scalar int32 in [0, R], the number of rows of the buffer in use.
    removed : (2,), the sum of what shrinks have subtracted, and the rounding of that sum.
    squared_norm : (2,), the sum of squares of all entries seen, and the rounding of that sum.
    magnitude : scalar, the sum over all shrinks of |B|_F^2: what their rounding is proportional to.
    num_rows : scalar int32, the number of rows seen; it stays at 2^31 - 1 from there on.
    sketch_size, shrink_at : static.
    """

    buffer: jax.Array
    filled: jax.Array
    removed: jax.Array
    squared_norm: jax.Array
    magnitude: jax.Array
    num_rows: jax.Array
    sketch_size: int = static()
    shrink_at: int = static()

    def __post_init__(self) -> None:
        """Validate the static sizes."""
        size = checks.count("sketch_size", self.sketch_size)
        checks.count(
            "shrink_at", self.shrink_at, maximum=size + 1, limit="sketch_size + 1"
        )
        if self.buffer.shape[-2] != (2 * size if self.shrink_at > size else size):
            raise ValueError(
                f"buffer must have the rows of a sketch of size {size}, got shape {self.buffer.shape}"
            )


@pytree
class Sketch:
    """What `finalize` returns: B = diag(singular_values) basis', with 0 <= A'A - B'B <= shrinkage I.

    Attributes
    ----------
    basis : (dim, sketch_size), orthonormal columns; those after the first `rank` are zero.
    singular_values : (sketch_size,), descending, not negative. The i-th eigenvalue of A'A lies between their i-th
        square and that plus `shrinkage`.
    shrinkage : scalar, certified bound of |A'A - B'B|_2; see the notes of `finalize` for what it says of rounding.
    rank : scalar int32 in [0, sketch_size], the number of singular values that are not zero.
    squared_norm : scalar, |A|_F^2.
    num_rows : scalar int32, the number of rows of A.
    finite : scalar bool; False if a row with NaN or infinity was seen, or a sum of squares left the range of the dtype.
        Then nothing is certified.
    """

    basis: jax.Array
    singular_values: jax.Array
    shrinkage: jax.Array
    rank: jax.Array
    squared_norm: jax.Array
    num_rows: jax.Array
    finite: jax.Array

    @property
    def rows(self) -> Float[Array, "sketch_size dim"]:
        """The matrix B, (sketch_size, dim)."""
        return _rows(self.singular_values, self.basis)


@inlined
def _rows(values: jax.Array, basis: jax.Array) -> jax.Array:
    return values[:, None] * basis.T


def init(
    sketch_size: int,
    dim: int,
    dtype: DTypeLike = jnp.float32,
    *,
    shrink_at: int | None = None,
) -> State:
    """Return the state of an empty stream.

    Parameters
    ----------
    sketch_size : l, the number of rows of the sketch, at least 1.
    dim : number of columns, at least 1.
    dtype : float32 or float64.
    shrink_at : p, static, in [1, l + 1]. By default l + 1, with a buffer of 2 l rows, whose bound is the best. Any
        smaller p uses a buffer of l rows: l // 2 is Algorithm 1 of ghashami2016; l decomposes at every row.

    Notes
    -----
    The memory of a stream is that of its state, at most 2 l dim numbers, however many rows come. Source: ghashami2016,
    Algorithm 1; Lemmas 3.2 and 3.3 hold as printed for the default only.

    Examples
    --------
    >>> init(8, 100).buffer.shape
    (16, 100)
    """
    sketch_size = checks.count("sketch_size", sketch_size)
    dim = checks.count("dim", dim)
    if shrink_at is None:
        shrink_at = sketch_size + 1
    shrink_at = checks.count(
        "shrink_at", shrink_at, maximum=sketch_size + 1, limit="sketch_size + 1"
    )
    dtype = checks.floating("dtype", jnp.zeros((), dtype)).dtype
    num_slots = 2 * sketch_size if shrink_at > sketch_size else sketch_size
    # One array each: a state may be donated to a compiled step, and then no two leaves may share memory.
    return State(
        buffer=jnp.zeros((num_slots, dim), dtype),
        filled=jnp.zeros((), jnp.int32),
        removed=jnp.zeros((2,), dtype),
        squared_norm=jnp.zeros((2,), dtype),
        magnitude=jnp.zeros((), dtype),
        num_rows=jnp.zeros((), jnp.int32),
        sketch_size=sketch_size,
        shrink_at=shrink_at,
    )


def update(
    state: State,
    rows: Float[ArrayLike, "b dim"],
    weights: Float[ArrayLike, " b"] | None = None,
) -> State:
    """Append rows to the stream: A'A grows by sum_i weights_i a_i a_i'.

    The state after several calls depends on the rows in their order, and not on how they were divided into batches, up
    to the rounding of sums.

    Parameters
    ----------
    state : State.
    rows : (b, dim) of the state's dtype; b = 0 changes nothing. Zero rows and repeated rows are rows like any other.
    weights : (b,) non-negative weights in the state's dtype, of any sum; a row of weight 0 does not exist, whatever it
        holds: it takes no place and is not counted. By default all are 1. A negative one makes the sketch not finite.

    Returns
    -------
    State.

    Notes
    -----
    A batch is one compiled loop, whose program does not grow with b. A shrink is the eigen-decomposition of the R x R
    matrix B B' and two products. By default there is one for l rows: 6 l dim multiply-adds and O(l^2) for every row.
    Source: ghashami2016, Algorithm 1.

    Examples
    --------
    >>> import jax
    >>> A = jax.random.normal(jax.random.key(0), (1000, 30))
    >>> finalize(update(init(8, 30), A)).basis.shape
    (30, 8)
    """
    state = _state("state", state)
    rows = checks.matrix("rows", rows, dim=state.buffer.shape[1], min_rows=0)
    checks.same_dtype("rows", rows, "the state", state.buffer)
    weights = checks.weights(weights, "the state", rows, some=False)
    if rows.shape[0] == 0:
        return state
    return _update(state, rows, weights)


def merge(a: State, b: State) -> State:
    """Return the state of both streams together, A the rows of `a` followed by those of `b`.

    Its certificate obeys the same bound as that of one stream with all the rows; merging is associative and commutative
    within the certificates, and exact as long as no more rows than the buffer holds were seen.

    Parameters
    ----------
    a, b : State, started by the same `init`.

    Notes
    -----
    At most as much as an update with R rows.

    Examples
    --------
    >>> import jax
    >>> A = jax.random.normal(jax.random.key(0), (1000, 30))
    >>> first, second = update(init(8, 30), A[:500]), update(init(8, 30), A[500:])
    >>> int(merge(first, second).num_rows)
    1000
    """
    a, b = _state("a", a), _state("b", b)
    for name, ours, theirs in (
        ("sketch_size", a.sketch_size, b.sketch_size),
        ("shrink_at", a.shrink_at, b.shrink_at),
        ("dim", a.buffer.shape[1], b.buffer.shape[1]),
        ("dtype", a.buffer.dtype, b.buffer.dtype),
    ):
        if ours != theirs:
            raise ValueError(
                f"a and b must have the same {name}, got {ours} and {theirs}; start both by the same init"
            )
    return _merge(a, b)


def finalize(state: State) -> Sketch:
    """Return the sketch of all rows seen, those still in the buffer included. The state may go on.

    Parameters
    ----------
    state : State.

    Returns
    -------
    Sketch, with |A'A - B'B|_2 <= shrinkage and, up to rounding, shrinkage <= |A - A_k|_F^2 / (p - k) for every k < p,
    p = l + 1 by default. It is rounding alone where the rank of A is below p.

    Notes
    -----
    One singular value decomposition of the buffer, R x dim. Where that has more rows than the sketch, the last shrink
    is part of it.

    `shrinkage` is what all shrinks have subtracted plus an allowance for rounding, eps(dtype) ((8 + dim / 12) |A|_F^2 +
    4 sum over the shrinks of |B|_F^2). The allowance is measured, not proved: a worst case would grow with all sizes.
    In float32 on CPU, of data of rank 1 to 300 in dimension 3 to 10,000, centred or with an offset of a million times
    their spread, the error stayed below four fifths of it. It is largest where all entries are nearly equal: then the
    roundings of a sum of dim terms all have one sign. The allowance matters only for long streams of low rank and for
    wide ones: it is below eps (4 n / l + 8 + dim / 12) |A|_F^2, to be compared with |A|_F^2 / (l + 1). Source:
    ghashami2016, Lemmas 3.2 and 3.3 (corrected: rows left in the buffer count).

    Examples
    --------
    >>> import jax
    >>> A = jax.random.normal(jax.random.key(0), (1000, 30))
    >>> sketch = finalize(update(init(8, 30), A))
    >>> bool(sketch.shrinkage <= sketch.squared_norm / 9)
    True
    """
    return _finalize(_state("state", state))


def _state(name: str, value: Any) -> State:
    if not isinstance(value, State):
        raise ValueError(
            f"{name} must be a State of frequent_directions, got {type(value).__name__}; pass what init returns"
        )
    return value


@jax.jit
def _update(state: State, rows: jax.Array, weights: jax.Array | None) -> State:
    count, numbers = jnp.asarray(rows.shape[0], jnp.int32), None
    if weights is not None:
        rows = jnp.where((weights == 0)[:, None], 0, jnp.sqrt(weights)[:, None] * rows)
        numbers = jnp.cumsum(weights > 0, dtype=jnp.int32)
        count = numbers[-1]
    state = _append(state, rows, count, numbers)
    return dataclasses.replace(
        state,
        squared_norm=_add(state.squared_norm, jnp.sum(rows * rows)),
        num_rows=jnp.minimum(state.num_rows, _MOST_ROWS - count) + count,
    )


@jax.jit
def _merge(a: State, b: State) -> State:
    merged = _append(a, b.buffer, b.filled)
    return dataclasses.replace(
        merged,
        removed=_add(_add(merged.removed, b.removed[0]), b.removed[1]),
        squared_norm=_add(_add(a.squared_norm, b.squared_norm[0]), b.squared_norm[1]),
        magnitude=merged.magnitude + b.magnitude,
        num_rows=jnp.minimum(a.num_rows, _MOST_ROWS - b.num_rows) + b.num_rows,
    )


@jax.jit
def _finalize(state: State) -> Sketch:
    size = state.sketch_size
    num_slots, dim = state.buffer.shape
    eps = jnp.finfo(state.buffer.dtype).eps
    # Values to the precision of the largest, and orthonormal vectors, which the Gram matrix would not give.
    # LAPACK may never return from a matrix with an infinite entry; `finite` tells of it, and so do the sums.
    known = jnp.isfinite(state.buffer).all()
    _, values, right = svd(jnp.where(known, state.buffer, 0), full_matrices=False)
    missing = max(size + 1 - min(num_slots, dim), 0)
    values, right = (
        jnp.pad(values, (0, missing)),
        jnp.pad(right, ((0, missing), (0, 0))),
    )
    # With no more slots than rows of the sketch there is nothing left over, and values[size] is padding.
    last, values = values[size], values[:size]
    # sigma^2 - last^2 as a product: no overflow before that of the result, no cancellation.
    values = jnp.sqrt(jnp.maximum(values - last, 0)) * jnp.sqrt(values + last)
    kept = values > eps * max(num_slots, dim) * values[0]
    total = jnp.sum(state.squared_norm)
    allowance = eps * ((8 + dim / 12) * total + 4 * state.magnitude)
    shrinkage = jnp.sum(state.removed) + last * last + allowance
    values = jnp.where(kept, values, 0)
    basis = jnp.where(kept[:, None], right[:size], 0).T
    return Sketch(
        basis=basis,
        # NaN compares as not kept: let it be seen.
        singular_values=jnp.where(jnp.isfinite(total), values, total),
        shrinkage=shrinkage,
        rank=jnp.sum(kept, dtype=jnp.int32),
        squared_norm=total,
        num_rows=state.num_rows,
        finite=jnp.isfinite(total)
        & jnp.isfinite(shrinkage)
        & jnp.all(jnp.isfinite(basis))
        & known,
    )


def _append(
    state: State, rows: jax.Array, count: jax.Array, numbers: jax.Array | None = None
) -> State:
    """Append the first `count` rows, (b, dim) with b >= 1, to the buffer, with a shrink whenever one meets it full.

    With `numbers` (b,), how many of the rows up to each one exist, the first `count` of those.
    """
    num_slots = state.buffer.shape[0]
    slots = jnp.arange(num_slots, dtype=jnp.int32)

    def place(state: State, done: jax.Array) -> tuple[State, jax.Array]:
        taken = jnp.minimum(num_slots - state.filled, count - done)
        here = (slots >= state.filled) & (slots < state.filled + taken)
        wanted = slots - state.filled + done
        wanted = wanted if numbers is None else jnp.searchsorted(numbers, wanted + 1)
        piece = jnp.take(rows, wanted, axis=0, mode="clip")
        buffer = jnp.where(here[:, None], piece, state.buffer)
        return dataclasses.replace(
            state, buffer=buffer, filled=state.filled + taken
        ), done + taken

    def step(carry: tuple[State, jax.Array]) -> tuple[State, jax.Array]:
        state, done = carry
        return place(_shrink(state), done)

    # What is left after the first placing meets a full buffer, and so does what is left after each of the next.
    carry = place(state, jnp.zeros((), jnp.int32))
    return lax.while_loop(lambda carry: carry[1] < count, step, carry)[0]


def _shrink(state: State) -> State:
    """Replace the rows of the buffer by shrink_at - 1 combinations of them."""
    kept = state.shrink_at - 1
    G = matmul(state.buffer, state.buffer.T)
    values, vectors = eigh(G)
    values = jnp.maximum(values, 0)
    delta, values = values[kept], values[:kept]
    # Weights in [0, 1] on orthonormal combinations: nothing is divided by a small singular value, so the squared
    # condition of the Gram matrix does no harm.
    weights = jnp.sqrt(
        jnp.where(
            values > delta, (values - delta) / jnp.where(values > delta, values, 1), 0
        )
    )
    rows = matmul(weights[:, None] * vectors[:, :kept].T, state.buffer)
    return dataclasses.replace(
        state,
        buffer=jnp.zeros_like(state.buffer).at[:kept].set(rows),
        filled=jnp.full_like(state.filled, kept),
        removed=_add(state.removed, delta),
        magnitude=state.magnitude + jnp.trace(G),
    )


def _add(total: jax.Array, value: jax.Array) -> jax.Array:
    """Add to a sum held as (sum, rounding of it): the error does not grow with the number of terms."""
    high = total[0] + value
    taken = high - total[0]
    return jnp.stack([high, total[1] + ((total[0] - (high - taken)) + (value - taken))])
