"""Data sets filled up with rows of weight zero, whatever these hold."""

import house
import jax
import numpy as np

KINDS = [
    (pattern, junk) for pattern in ("end", "between") for junk in (np.nan, np.inf, 1e30)
]


def rows(num_rows, pattern, extra=5):
    """Return which rows of the filled-up set are those of the set alone, (num_rows,)."""
    if pattern == "end":
        return np.arange(num_rows)
    return np.sort(
        np.random.default_rng(num_rows).permutation(num_rows + extra)[:num_rows]
    )


def axes(array, where):
    """Return the index of some rows, of those of a square matrix with the same columns."""
    if array.ndim == 2 and array.shape[1] == len(array):
        return np.ix_(where, where)
    return where


def padded(data, pattern="end", junk=np.nan, extra=5):
    """Return arrays with `extra` more rows, of square ones columns, of junk (integers: -7), and weights of the rows.

    These are ones and zeros, (n + extra,), in the dtype of the last floating array.
    """
    arrays = jax.tree.leaves(data)
    where = rows(len(arrays[0]), pattern, extra)

    def fill(array):
        shape = [size + extra if size == len(array) else size for size in array.shape]
        filled = np.full(shape, -7 if array.dtype.kind in "iu" else junk, array.dtype)
        filled[axes(array, where)] = array
        return filled

    dtype = [array.dtype for array in arrays if array.dtype.kind == "f"][-1]
    weights = np.zeros(len(where) + extra, dtype)
    weights[where] = 1
    return jax.tree.map(fill, data), weights


def stacked(*sets):
    return jax.tree.map(lambda *parts: np.stack(parts), *sets)


def all_padded(data):
    """Return data and weights of all `KINDS` of filling up, stacked."""
    return stacked(*(padded(data, *kind) for kind in KINDS))


def check_slopes(slopes, alone, atol):
    """Check gradients in the sets of `all_padded`: those in the set alone, and zero in what fills up."""
    for (pattern, _), slope in zip(KINDS, np.array(slopes), strict=True):
        inside = axes(alone, rows(len(alone), pattern))
        house.close(slope[inside], alone, atol)
        slope[inside] = 0
        assert not slope.any()


def check_differences(slopes, steps, expected, rounding):
    """Check gradients in the sets of `all_padded`: along steps of the set alone, and zero in what fills up.

    `slopes` and `steps` are dicts of arrays; `expected` is the change of the set alone along the steps.
    """
    for i, (pattern, _) in enumerate(KINDS):
        change = 0.0
        for name, step in steps.items():
            slope = np.array(slopes[name][i])
            inside = axes(step, rows(len(step), pattern))
            change += np.vdot(slope[inside], step)
            slope[inside] = 0
            assert not slope.any()
        assert abs(change - expected) <= rounding
