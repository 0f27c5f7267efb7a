"""Many data sets of unequal sizes at once: filled up with rows of weight 0 to a few sizes, each of which compiles once.

`pack` builds the batch, `blocks` builds one after the other from more data sets than memory holds, `by_group` finds the
data sets of a table, and `map` calls a function of (data, weights) on all of them.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np

from jaxkern import checks
from jaxkern._types import ArrayLike, Float
from jaxkern.pytrees import pytree

__all__ = ["Ragged", "blocks", "by_group", "map", "pack"]

ENTRIES = 2**21
"""By default a block has so many data sets that their Gram matrices have about this many entries."""


@pytree
class Ragged:
    """Data sets of unequal sizes, in classes of equal padded size; a PyTree. `len` is the number of data sets.

    Attributes
    ----------
    data : for each class the data of its data sets, (sets, rows, ...): an array, or the PyTree of arrays that each is.
    weights : for each class (sets, rows), 1 for the rows of a data set, which come first, and 0 for those that fill up.
    members : for each class which data sets it has, (sets,) int32, numbered as they were given.
    sizes : for each class how many rows its data sets have, (sets,) int32.
    """

    data: tuple[Any, ...]
    weights: tuple[Any, ...]
    members: tuple[Any, ...]
    sizes: tuple[Any, ...]

    def __len__(self) -> int:
        """Return the number of data sets."""
        return sum(each.shape[0] for each in self.members)


def pack(sets: Sequence[Any], *, classes: int | Sequence[int] = 4) -> Ragged:
    """Return data sets as one batch.

    Parameters
    ----------
    sets : data sets: arrays (rows, ...), or PyTrees of arrays with equally many rows, at least one. All have the same
        dtypes and trailing shapes; a floating array gives its dtype to the weights, float32 where there is none.
    classes : the number of size classes, whose sizes are then chosen so that the fewest rows fill up; or the sizes
        themselves, ascending, the last at least the size of the largest data set. Whatever is mapped compiles once for
        each of them.

    Returns
    -------
    Ragged batch, its arrays on the host until they are used. Classes without a data set are left out.

    Examples
    --------
    >>> import numpy as np
    >>> batch = pack([np.ones((n, 2), np.float32) for n in (3, 50, 4, 47)], classes=2)
    >>> [each.shape for each in batch.weights]
    [(2, 4), (2, 50)]
    """
    rows = [_rows(i, each) for i, each in enumerate(sets)]
    if not rows:
        raise ValueError("sets must have at least one data set, got none")
    limits = _sizes(classes, rows)
    kinds = np.searchsorted(limits, rows)
    data, weights, members = [], [], []
    for kind in np.unique(kinds):
        chosen, size = np.flatnonzero(kinds == kind), int(limits[kind])
        data.append(
            jax.tree.map(
                lambda *leaves, size=size: _padded(leaves, size),
                *(sets[int(i)] for i in chosen),
            )
        )
        leaves = [
            leaf.dtype for leaf in jax.tree.leaves(data[-1]) if leaf.dtype.kind == "f"
        ]
        within = np.arange(size) < np.asarray(rows)[chosen, None]
        weights.append(within.astype(leaves[0] if leaves else np.float32))
        members.append(chosen.astype(np.int32))
    sizes = tuple(np.asarray(rows, np.int32)[chosen] for chosen in members)
    return Ragged(tuple(data), tuple(weights), tuple(members), sizes)


def blocks(
    sets: Iterable[Any], *, classes: Sequence[int], num_sets: int
) -> Iterator[Ragged]:
    """Yield batches of `num_sets` data sets each, the last with the rest, from data sets that come one by one.

    Parameters
    ----------
    sets, classes : as for `pack`; the sizes of the classes are given, so that all batches share what is compiled.
    num_sets : data sets in a batch, at least 1.

    Returns
    -------
    Iterator of `Ragged` batches.
    """
    count, source = checks.count("num_sets", num_sets), iter(sets)
    while some := list(itertools.islice(source, count)):
        yield pack(some, classes=classes)


def by_group(
    X: Float[ArrayLike, "N ..."], groups: ArrayLike
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the distinct values of a column of groups, and the rows of X of each.

    Parameters
    ----------
    X : (N, ...) rows of a table.
    groups : (N,) numbers or strings, which data set each row belongs to.

    Returns
    -------
    (values, sets): the distinct groups, ascending, and for each the array of its rows, in the order of the table.
    """
    X, groups = np.asarray(X), np.asarray(groups)
    if groups.ndim != 1 or len(groups) != len(X):
        raise ValueError(f"groups must have shape ({len(X)},), got {groups.shape}")
    values, which, counts = np.unique(groups, return_inverse=True, return_counts=True)
    return values, np.split(X[np.argsort(which, kind="stable")], np.cumsum(counts)[:-1])


def map(
    f: Callable[..., Any], batch: Ragged, *args: Any, block_size: int | None = None
) -> list[Any]:
    """Return `f(data, weights, *args)` of every data set, as NumPy arrays without the rows that fill up.

    Parameters
    ----------
    f : a function of the data, the weights (rows,) and the further arguments of one data set, such that rows of weight
        0 change nothing, as those of this library are. It is vmapped and compiled, once for each size class, and kept
        for the next call with the same f. The further arguments, such as keys, kernels with stacked lengthscales or
        numbers, are PyTrees of arrays with one entry for each data set first, in the order in which these were given.
    batch : data sets.
    block_size : data sets of one class that are computed together; by default as many as have 2^21 entries in their
        Gram matrices. Memory is that of one block.

    Returns
    -------
    List of what f returns for each data set, in the order in which they were given. An axis that is longer by one for
    data sets with one row more is an axis of rows, and is cut to the rows of the data set.

    Notes
    -----
    For derivatives, or within another compiled function, `jax.vmap` the function over `batch.data[k]` and
    `batch.weights[k]`.
    """
    for leaf in jax.tree.leaves(args):
        if np.ndim(leaf) < 1 or np.shape(leaf)[0] != len(batch):
            raise ValueError(
                f"args must have one entry for each of the {len(batch)} data sets first, got shape {np.shape(leaf)}"
            )
    run, results, axes = (
        _compiled(f),
        [None] * len(batch),
        _axes_of_rows(f, batch, args),
    )
    for members, sizes, given in _blocks_of(batch, args, block_size):
        found = jax.device_get(run(*given))
        for i, (member, size) in enumerate(zip(members, sizes, strict=True)):
            results[member] = jax.tree.map(
                lambda leaf, cut, i=i, n=size: _cut(leaf[i], cut, n), found, axes
            )
    return results


@functools.lru_cache(maxsize=64)
def _compiled(f: Callable[..., Any]) -> Callable[..., Any]:
    return jax.jit(jax.vmap(f))


def _blocks_of(
    batch: Ragged, args: Any, asked: int | None
) -> Iterator[tuple[Any, Any, Any]]:
    """Yield (members, sizes, arguments) of every block; the last one of a class repeats data sets to be full."""
    for data, weights, members, sizes in zip(
        batch.data, batch.weights, batch.members, batch.sizes, strict=True
    ):
        number, rows = weights.shape
        size = checks.count("block_size", asked or max(1, ENTRIES // rows**2))
        size = -(
            -number // -(-number // size)
        )  # equal blocks: the fewest data sets are computed twice
        for start in range(0, number, size):
            chosen = np.minimum(np.arange(start, start + size), number - 1)
            own = jax.tree.map(operator.itemgetter(chosen), (data, weights))
            others = jax.tree.map(
                operator.itemgetter(np.asarray(members)[chosen]), args
            )
            kept = slice(start, min(start + size, number))
            yield np.asarray(members)[kept], np.asarray(sizes)[kept], (*own, *others)


def _axes_of_rows(f: Callable[..., Any], batch: Ragged, args: Any) -> Any:
    """Return for every output the axes, as a tuple of truth values, that are longer where data sets have more rows."""

    def shapes(more: int) -> Any:
        def like(leaf: Any, *rows: int) -> jax.ShapeDtypeStruct:
            dtype = (
                leaf.dtype
                if isinstance(leaf, jax.Array)
                else jax.dtypes.canonicalize_dtype(leaf.dtype)
            )
            return jax.ShapeDtypeStruct((*rows, *leaf.shape[1 + len(rows) :]), dtype)

        own = jax.tree.map(
            lambda leaf: like(leaf, leaf.shape[1] + more),
            (batch.data[0], batch.weights[0]),
        )
        return jax.eval_shape(f, *own, *jax.tree.map(like, args))

    def changed(a: Any, b: Any) -> tuple[bool, ...]:
        return tuple(m != n for m, n in zip(a.shape, b.shape, strict=True))

    return jax.tree.map(changed, shapes(0), shapes(1))


def _cut(leaf: np.ndarray, axes: tuple[bool, ...], size: int) -> np.ndarray:
    return leaf[tuple(slice(size) if of_rows else slice(None) for of_rows in axes)]


def _rows(number: int, data: Any) -> int:
    lengths = {
        np.shape(leaf)[0] if np.ndim(leaf) else 0 for leaf in jax.tree.leaves(data)
    }
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(
            f"every data set must have arrays of equally many rows, at least one; number {number} has not"
        )
    return lengths.pop()


def _padded(leaves: Sequence[Any], size: int) -> np.ndarray:
    arrays = [np.asarray(leaf) for leaf in leaves]
    kinds = {(array.dtype, array.shape[1:]) for array in arrays}
    if len(kinds) != 1:
        raise ValueError(
            f"all data sets must have the same dtype and trailing shape, got {sorted(str(kind) for kind in kinds)}"
        )
    ((dtype, shape),) = kinds
    whole = np.zeros((len(arrays), size, *shape), dtype)
    for row, array in zip(whole, arrays, strict=True):
        row[: len(array)] = array
    return whole


def _sizes(classes: int | Sequence[int], rows: Sequence[int]) -> np.ndarray:
    """Return the sizes of the classes, ascending."""
    if not isinstance(classes, int):
        limits = np.asarray(classes)
        if (
            limits.ndim != 1
            or limits.dtype.kind not in "iu"
            or (np.diff(limits) <= 0).any()
            or limits[-1] < max(rows)
        ):
            raise ValueError(
                f"classes must be ascending sizes, the last at least {max(rows)}, got {classes}"
            )
        return limits
    distinct, counts = np.unique(rows, return_counts=True)
    number = min(checks.count("classes", classes), len(distinct))
    before = np.concatenate([[0], np.cumsum(counts)])
    # least[j]: the fewest padded rows of all data sets up to the j-th distinct size, in at most so many classes.
    least = np.concatenate([[0], np.full(len(distinct), np.inf)])
    cuts = []
    for _ in range(number):
        cost = (
            least[:-1, None]
            + (before[None, 1:] - before[:-1, None]) * distinct[None, :]
        )
        cost = np.where(
            np.arange(len(distinct))[:, None] <= np.arange(len(distinct)), cost, np.inf
        )
        cuts.append(np.argmin(cost, axis=0))
        least = np.concatenate([[0], np.min(cost, axis=0)])
    ends, end = [], len(distinct)
    for cut in reversed(cuts):
        if end > 0:
            ends.append(distinct[end - 1])
            end = cut[end - 1]
    return np.asarray(ends[::-1])
