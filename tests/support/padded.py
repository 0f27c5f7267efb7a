"""Data sets filled up with rows of weight zero, whatever these hold."""

import jax
import numpy as np

KINDS = [(pattern, junk) for pattern in ("end", "between") for junk in (np.nan, np.inf, 1e30)]


def rows(num_rows, pattern, extra=5):
    """Return which rows of the filled-up set are those of the set alone, (num_rows,)."""
    if pattern == "end":
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(num_rows).permutation(num_rows + extra)[:num_rows])


def _square(array):
    return array.shape[1:] == array.shape[:1]


def _of(array, where):
    return np.ix_(where, where) if _square(array) else where


def padded(data, pattern="end", junk=np.nan, extra=5):
    """Return arrays with `extra` more rows, of square ones columns, of junk (integers: -7), and weights of the rows.

    These are ones and zeros, (n + extra,), in the dtype of the last floating array.
    """
    arrays = jax.tree.leaves(data)
    size = len(arrays[0])
    where = rows(size, pattern, extra)

    def fill(array):
        more = (size + extra,)
        shape = more * 2 if _square(array) else more + array.shape[1:]
        whole = np.full(shape, -7 if array.dtype.kind in "iu" else junk, array.dtype)
        whole[_of(array, where)] = array
        return whole

    weights = np.zeros(size + extra, [array.dtype for array in arrays if array.dtype.kind == "f"][-1])
    weights[where] = 1
    return jax.tree.map(fill, data), weights


def stacked(*sets):
    return jax.tree.map(lambda *parts: np.stack(parts), *sets)


def all_padded(data, extra=5):
    """Return data and weights of all `KINDS` of filling up, stacked."""
    return stacked(*(padded(data, *kind, extra) for kind in KINDS))


def check_slopes(slopes, alone, atol):
    """Check gradients in the sets of `all_padded`: those in the set alone, and zero in what fills up."""
    for (pattern, _), slope in zip(KINDS, np.array(slopes), strict=False):
        own = _of(alone, rows(len(alone), pattern, len(slope) - len(alone)))
        np.testing.assert_allclose(slope[own], alone, rtol=0, atol=atol)
        slope[own] = 0
        assert not slope.any()
