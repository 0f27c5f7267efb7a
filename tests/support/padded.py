"""Data sets filled up with rows of weight zero, whatever these hold."""

import numpy as np

PATTERNS = ("end", "between")
JUNK = (np.nan, np.inf, 1e30)


def rows(num_rows, pattern, extra=5):
    """Return which rows of the filled-up set are those of the set alone, (num_rows,)."""
    if pattern == "end":
        return np.arange(num_rows)
    return np.sort(np.random.default_rng(num_rows).permutation(num_rows + extra)[:num_rows])


def padded(*arrays, pattern="end", extra=5, junk=np.nan):
    """Return arrays with `extra` more rows of junk (integers: -7), and the weights (n + extra,), ones and zeros."""
    where = rows(len(arrays[0]), pattern, extra)
    filled = []
    for array in map(np.asarray, arrays):
        whole = np.full((len(array) + extra, *array.shape[1:]), -7 if array.dtype.kind in "iu" else junk, array.dtype)
        whole[where] = array
        filled.append(whole)
    floats = [array.dtype for array in map(np.asarray, arrays) if array.dtype.kind == "f"]
    weights = np.zeros(len(arrays[0]) + extra, floats[0] if floats else np.float32)
    weights[where] = 1
    return *filled, weights
