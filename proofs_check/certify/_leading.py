"""Which pairs may have a larger error than one that is known, by leading directions of the features alone.

Let a and b be features less their mean, and V have orthonormal columns. Then |a - b|^2 is |a|^2 + |b|^2 -
2 <V' a, V' b> up to 2 |a - V V' a| |b - V V' b|, whatever V is. Smooth kernels leave little outside of a few
directions, so for a fraction of the products most pairs are seen to be no worse than the worst one so far; the others
are computed with all features. The choice of V decides how long that takes, and nothing else.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.linalg import matmul
from proofs_check.certify._rows import compiled
from proofs_check.certify._tiles import Centred, Ratios, all_ratios, some_ratios

_STEP = 64
"""Numbers of directions are multiples of this."""
_DEAR = 60
"""A pair by itself takes as long as so many pairs of a product, about."""
_CHUNKS = 256, 1024
_WORTH = 0.8
"""Directions are used where they are expected to take less than this share of products with all features."""
_THINNED = 8
"""Every so many rows decide which directions lead."""
_LOOKED_AT = 256
"""Rows of a block whose pairs decide how many directions are taken."""
_ROUNDING = 1e-5
"""Share of a squared norm that rounding may move to or from the rest, at most."""


class Leading(NamedTuple):
    """A block in leading directions, (side, rank), the squared norms of its rows and the norms of their rests."""

    along: jax.Array
    squared: jax.Array
    rest: jax.Array


class Products:
    """Ratios of the pairs of two blocks: all of them, or those that may have an error above `known()` - `close`.

    The first tile always has all of them, and says how many directions are worth it for the others.
    """

    def __init__(self, blocks: list[Centred], known: Callable[[], float] | None, close: float) -> None:
        self._blocks, self._known, self._close = blocks, known, close
        self._leading: list[Leading] | None = None

    def __call__(self, at: tuple[int, int], squared: jax.Array) -> Iterator[Ratios]:
        """Yield the ratios; `squared` holds squared kernel distances, NaN for pairs that do not count."""
        first, second = (self._blocks[k] for k in at)
        if self._leading and self._known:
            limits = _limits(self._known() - self._close)
            suspects = np.asarray(_outside(*(self._leading[k] for k in at), squared, *limits))
            i, j = np.divmod(np.flatnonzero(suspects), len(squared))
            if len(i) * _DEAR <= squared.size:
                count = _CHUNKS[len(i) > _CHUNKS[0]]
                for start in range(0, len(i), count):
                    a, b = (np.resize(k[start : start + count], count) for k in (i, j))
                    yield some_ratios(first, second, squared, at, a, b)
                return
        yield all_ratios(first, second, squared, at)
        if self._known and not self._leading:
            self._leading = leading(self._blocks, at, squared, self._known() - self._close)
            self._known = self._known if self._leading else None


def leading(blocks: list[Centred], at: tuple[int, int], squared: jax.Array, error: float) -> list[Leading] | None:
    """Return all blocks in as many directions as are cheapest for the pairs of two of them, None where no number is."""
    thin = np.concatenate([np.asarray(A)[::_THINNED] for A, _ in blocks])
    inner = thin.T @ thin
    if not np.isfinite(inner).all():
        return None
    used = np.flatnonzero(inner.diagonal())
    basis = np.zeros((len(inner), len(used)), inner.dtype)
    basis[used] = np.linalg.eigh(inner[np.ix_(used, used)])[1][:, ::-1]
    rank = _cheapest(blocks[at[0]], blocks[at[1]], squared, basis, error)
    return [_along(*block, jnp.asarray(basis[:, :rank])) for block in blocks] if rank else None


def _cheapest(first: Centred, second: Centred, squared: jax.Array, basis: np.ndarray, error: float) -> int:
    """Return how many directions take the least time by some pairs of two blocks, 0 where all features take less."""
    A, a, distances = (np.asarray(part)[:_LOOKED_AT] for part in (*first, squared))
    B, b = map(np.asarray, second)
    A, B = A @ basis, B @ basis
    images, width = a[:, None] + b[None, :], basis.shape[1]
    most, smallest = _limits(error)
    best, least = 0, _WORTH * width
    for rank in range(_STEP, width, _STEP):
        if rank >= least:
            break
        now = slice(rank - _STEP, rank)
        images -= 2 * A[:, now] @ B[:, now].T
        a, b = (norms - np.sum(Z[:, now] ** 2, axis=1) for norms, Z in ((a, A), (b, B)))
        off = 2 * np.sqrt(np.maximum(np.outer(a, b), 0))
        suspects = (images + off > most * distances) | (images - off < smallest * distances)
        takes = rank + width * _DEAR * np.mean(suspects)
        best, least = (rank, takes) if takes < least else (best, least)
    return best


def _limits(error: float) -> tuple[float, float]:
    """Return the largest and the smallest ratio of squared distances that such an error allows."""
    return (1 + error) ** 2, max(1 - error, 0.0) ** 2


@compiled
def _along(A: jax.Array, squared: jax.Array, basis: jax.Array) -> Leading:
    along = matmul(A, basis)
    rest = jnp.maximum(squared - jnp.sum(along * along, axis=1), 0) + _ROUNDING * squared
    return Leading(along, squared, jnp.sqrt(rest))


@compiled
def _outside(first: Leading, second: Leading, squared: jax.Array, most: jax.Array, least: jax.Array) -> jax.Array:
    images = first.squared[:, None] + second.squared[None, :] - 2 * matmul(first.along, second.along.T)
    off = 2 * first.rest[:, None] * second.rest[None, :]
    return (squared > 0) & ~((images + off <= most * squared) & (images - off >= least * squared))
