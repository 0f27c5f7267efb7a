"""Which pairs may have a larger error than one that is known, by leading directions of the features alone.

Let a and b be features less their mean, and V have orthonormal columns. Then |a - b|^2 is |a|^2 + |b|^2 -
2 <V' a, V' b> up to 2 |a - V V' a| |b - V V' b|, whatever V is. Smooth kernels leave little outside of a few
directions, so for a fraction of the products most pairs are seen to be no worse than the worst one so far; the others
are computed with all features. Where V' a is rounded to bfloat16, whose products take half the time, rests grow, see
`_along`. The choice of V and of the rounding decides how long that takes, and nothing else.
"""

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxkern.linalg import matmul
from proofs_check.certify._rows import compiled
from proofs_check.certify._tiles import Centred, Ratios, all_ratios, some_ratios

_STEP = 64
"""Numbers of directions are multiples of this."""
_DEAR = 20
"""A pair by itself takes as long as so many pairs of a product, about."""
_CHUNKS = 256, 1024, 4096
_WORTH = 0.8
"""Directions are used where they are expected to take less than this share of products with all features."""
_THINNED = 8
"""Every so many rows decide which directions lead."""
_LOOKED_AT = 256
"""Rows of a block whose pairs decide how many directions are taken."""
_ROUNDING = 1e-5
"""Share of a squared norm that rounding may move to or from the rest, at most."""
_MOVED = 2.0**-9
"""About the share of its norm by which bfloat16 moves a vector."""
_NARROW = {False: (1.0, 0.0), True: (0.6, 2 * _MOVED)}
"""The time of a product, not in bfloat16 or in it, and by how much it moves, about."""
_POWERS = 2
"""Products with the covariance of the features that find the leading directions, where their number is known."""


class Leading(NamedTuple):
    """A block in leading directions, (side, rank), the squared norms of its rows and the norms of their rests."""

    along: jax.Array
    squared: jax.Array
    rest: jax.Array


class Choice(NamedTuple):
    """How many directions are taken, and whether in bfloat16; none, or all of the features as they are, where that
    takes less time."""

    rank: int
    narrow: bool


class Products:
    """Ratios of the pairs of two blocks: all of them, or those that may have an error above `known()` - `close`.

    The first tile always has all of them. With what a map of as many features is known to need, in `choices`, the
    others begin with leading directions; what the first such map needs is found by its pairs and entered there.
    """

    def __init__(
        self,
        blocks: list[Centred],
        known: Callable[[], float] | None,
        close: float,
        choices: dict[int, Choice],
    ) -> None:
        self._blocks, self._known, self._close, self._choices = (
            blocks,
            known,
            close,
            choices,
        )
        self._leading: list[Leading] | None = None
        self._limits = _limits(math.inf)

    def look(self, at: tuple[int, int], squared: jax.Array) -> jax.Array | None:
        """Return which pairs of two blocks may be worse than all before, None where it is not known without products.

        `squared` holds squared kernel distances, NaN for pairs that do not count. Nothing waits for the answer.
        """
        return (
            _outside(*(self._leading[k] for k in at), squared, *self._limits)
            if self._leading
            else None
        )

    def __call__(
        self, at: tuple[int, int], squared: jax.Array, suspects: jax.Array | None
    ) -> Iterator[Ratios]:
        """Yield the ratios of the pairs that `look` found, or of all."""
        first, second = (self._blocks[k] for k in at)
        if suspects is not None and self._known is not None:
            i, j = np.divmod(np.flatnonzero(np.asarray(suspects)), len(squared))
            self._limits = _limits(self._known() - self._close)
            if len(i) * _DEAR <= squared.size:
                count = next((few for few in _CHUNKS if len(i) <= few), _CHUNKS[-1])
                for start in range(0, len(i), count):
                    a, b = (np.resize(k[start : start + count], count) for k in (i, j))
                    yield some_ratios(first, second, squared, at, a, b)
                return
        yield all_ratios(first, second, squared, at)
        if self._known and not self._leading:
            error = self._known() - self._close
            self._limits = _limits(error)
            self._leading = leading(self._blocks, at, squared, error, self._choices)
            self._known = self._known if self._leading else None


def leading(
    blocks: list[Centred],
    at: tuple[int, int],
    squared: jax.Array,
    error: float,
    choices: dict[int, Choice],
) -> list[Leading] | None:
    """Return all blocks in the directions chosen for two of them or by `choices`, None where all features do better."""
    width, basis = blocks[0][0].shape[1], None
    if choices.get(width, Choice(1, False)).rank not in (0, width):
        thin = np.concatenate([np.asarray(A)[::_THINNED] for A, _ in blocks])
        inner = thin.T @ thin
        if not np.isfinite(inner).all():
            return None
        if width in choices:
            basis = np.random.default_rng(width).standard_normal(
                (width, choices[width].rank), np.float32
            )
            for _ in range(_POWERS):
                basis = np.linalg.qr(inner @ basis)[0]
        else:
            used = np.flatnonzero(inner.diagonal())
            basis = np.zeros((width, len(used)), inner.dtype)
            basis[used] = np.linalg.eigh(inner[np.ix_(used, used)])[1][:, ::-1]
            choices[width] = _cheapest(
                blocks[at[0]], blocks[at[1]], squared, basis, error, len(blocks)
            )
    rank, narrow = choices[width]
    taken = None if basis is None or rank == width else jnp.asarray(basis[:, :rank])
    return [_along(*block, taken, narrow=narrow) for block in blocks] if rank else None


def _cheapest(
    first: Centred,
    second: Centred,
    squared: jax.Array,
    basis: np.ndarray,
    error: float,
    blocks: int,
) -> Choice:
    """Return how many directions, and which rounding, take the least time by some pairs of two of so many blocks.

    Time is in columns of a product for all pairs, that for finding the directions included.
    """
    A, a, distances = (np.asarray(part)[:_LOOKED_AT] for part in (*first, squared))
    B, b = map(np.asarray, second)
    A, B = A @ basis, B @ basis
    images, width = a[:, None] + b[None, :], len(basis)
    along, other = np.zeros_like(a), np.zeros_like(b)
    most, smallest = _limits(error)
    least, best = _WORTH * width, Choice(0, False)
    points, done = blocks * len(squared), 0
    for rank in (*range(_STEP, basis.shape[1], _STEP), width):
        now, done = slice(done, rank), rank
        found = (
            2 * width / points * rank * (1 + 2 * _POWERS * width / points)
            if rank < width
            else 0.0
        )
        images -= 2 * A[:, now] @ B[:, now].T
        along, other = (
            norms + np.sum(Z[:, now] ** 2, axis=1)
            for norms, Z in ((along, A), (other, B))
        )
        for narrow, (share, moved) in _NARROW.items():
            if rank * share + found < least:
                off = 2 * np.sqrt(
                    np.maximum(
                        np.outer(a - along + moved * along, b - other + moved * other),
                        0,
                    )
                )
                suspects = (images + off > most * distances) | (
                    images - off < smallest * distances
                )
                takes = rank * share + found + width * _DEAR * np.mean(suspects)
                least, best = (
                    (takes, Choice(rank, narrow)) if takes < least else (least, best)
                )
    return best


def _limits(error: float) -> tuple[float, float]:
    """Return the largest and the smallest ratio of squared distances that such an error allows."""
    return (1 + error) ** 2, max(1 - error, 0.0) ** 2


@partial(compiled, static_argnames="narrow")
def _along(
    A: jax.Array, squared: jax.Array, basis: jax.Array | None, *, narrow: bool
) -> Leading:
    along = A if basis is None else matmul(A, basis)
    kept = jnp.sum(along * along, axis=1)
    rest = jnp.maximum(squared - kept, 0) + _ROUNDING * squared
    if narrow:
        # With x and y moved by d and e their inner product moves by at most |d| |y| + |x| |e| + |d| |e|, which is an
        # inner product of (|d| / s, s |x|, |d|) and (s |y|, |e| / s, |e|), for any s: here s^2 is _MOVED.
        rounded = along.astype(jnp.bfloat16)
        moved = jnp.sum((along - rounded.astype(along.dtype)) ** 2, axis=1)
        along, rest = rounded, rest + moved / _MOVED + _MOVED * kept + moved
    return Leading(along, squared, jnp.sqrt(rest))


@compiled
def _outside(
    first: Leading,
    second: Leading,
    squared: jax.Array,
    most: jax.Array,
    least: jax.Array,
) -> jax.Array:
    columns = (((1,), (1,)), ((), ()))
    inner = lax.dot_general(
        first.along,
        second.along,
        columns,
        precision="highest",
        preferred_element_type=jnp.float32,
    )
    images = first.squared[:, None] + second.squared[None, :] - 2 * inner
    off = 2 * first.rest[:, None] * second.rest[None, :]
    return (squared > 0) & ~(
        (images + off <= most * squared) & (images - off >= least * squared)
    )
