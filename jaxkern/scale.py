"""Mapping more points than fit into memory: block by block, through one compiled program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import _checks
from jaxkern.features._map import as_map

__all__ = ["embed"]

_BLOCK_BYTES = 2**26


def embed(phi: Any, X: Any, *, block_size: int | None = None, out: Any = None) -> Any:
    """Return phi(X) for any number of points, in blocks of one size, so that one program serves them all.

    Parameters
    ----------
    phi : a fitted feature map, or any function or callable PyTree (n, dim) -> (n, num_features) that
        treats rows one by one.
    X : (N, dim) points in a NumPy or JAX array, a memory-mapped file (`numpy.load(file, mmap_mode="r")`), or an
        iterable of such blocks (n_i, dim) of any sizes. Only one block at a time is moved to the device.
    block_size : rows of a block, at least 1; by default as many as make 64 MB of points and features.
    out : an array or memory-mapped file (N, num_features) to write to; by default a new NumPy array. An iterable of
        blocks without `out` gives an iterator of features, block by block as they came.

    Returns
    -------
    NumPy array (N, num_features), or `out`, or an iterator of NumPy arrays (n_i, num_features). The numbers do not
    depend on block_size beyond rounding: the last block is padded with copies of its last row, which are dropped.

    Raises
    ------
    ValueError
        If X (or a block) is not a floating matrix, block_size < 1, or out has another shape, or cannot be written to.

    Notes
    -----
    Time that of phi; memory on the device O(block_size (dim + num_features)), on the host one block beside X and out.

    Examples
    --------
    >>> import jax
    >>> from jaxkern import features
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (1000, 3))
    >>> phi = features.nystrom(Gaussian(1.0), X[:20])
    >>> embed(phi, X, block_size=300).shape
    (1000, 20)
    """
    if not callable(phi):
        raise ValueError(f"phi must be a feature map, got {type(phi).__name__}")
    phi = as_map(phi)
    if block_size is not None:
        block_size = _checks.count("block_size", block_size)
    if not hasattr(X, "shape"):
        if not isinstance(X, Iterable) or isinstance(X, str | bytes):
            raise ValueError(f"X must be an array or an iterable of arrays, got {type(X).__name__}")
        blocks = _mapped_blocks(phi, X, block_size)
        return blocks if out is None else _gather(blocks, out)
    _host_matrix("X", X)
    rows = X.shape[0]
    size = block_size or _default_size(phi, X)
    shape = (rows, _num_features(phi, X))
    if out is None:
        out = np.empty(shape, np.dtype(X.dtype))
    _check_out(out, shape, X.dtype)
    for start in range(0, rows, size):
        stop = min(start + size, rows)
        out[start:stop] = _one_block(phi, X[start:stop], size)
    return out


def _mapped_blocks(phi: Any, blocks: Iterable[Any], block_size: int | None) -> Iterator[np.ndarray]:
    """Yield the features of every block; blocks are cut and padded to one size, so that nothing compiles again."""
    size = block_size
    for block in blocks:
        _host_matrix("each block of X", block)
        size = size or _default_size(phi, block)
        pieces = [_one_block(phi, block[i : i + size], size) for i in range(0, block.shape[0], size)]
        yield np.concatenate(pieces) if pieces else np.empty((0, _num_features(phi, block)), np.dtype(block.dtype))


def _gather(blocks: Iterator[np.ndarray], out: Any) -> Any:
    start = 0
    for block in blocks:
        stop = start + block.shape[0]
        if out.ndim != 2 or stop > out.shape[0] or block.shape[1] != out.shape[1]:
            raise ValueError(
                f"out must have room for the features, at least ({stop}, {block.shape[1]}), got {out.shape}"
            )
        _check_out(out, out.shape, block.dtype)
        out[start:stop] = block
        start = stop
    if start != out.shape[0]:
        raise ValueError(f"out must have as many rows as X, {start}, got shape {out.shape}")
    return out


def _one_block(phi: Callable[[Any], Any], rows: Any, size: int) -> np.ndarray:
    """Return the features of up to `size` rows, by the program for `size` rows."""
    count = rows.shape[0]
    if count < size:
        rows = np.pad(np.asarray(rows), ((0, size - count), (0, 0)), mode="edge")
    return np.asarray(_apply(phi, jnp.asarray(rows)))[:count]


@jax.jit
def _apply(phi: Any, rows: jax.Array) -> jax.Array:
    return phi(rows)


def _host_matrix(name: str, X: Any) -> None:
    """Check a matrix without moving it: it may be a file."""
    if len(X.shape) != 2 or X.shape[1] < 1:
        raise ValueError(f"{name} must have rank 2, (points, dimensions), got shape {X.shape}")
    dtype = jax.dtypes.canonicalize_dtype(X.dtype)
    if np.dtype(X.dtype) not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(f"{name} must have dtype float32 or float64, got {X.dtype}; convert it, as in X.astype(float)")
    if dtype != X.dtype:
        raise ValueError(f"{name} has dtype {X.dtype}, which jax turns into {dtype}; convert it, or enable float64")


def _num_features(phi: Any, X: Any) -> int:
    shape = jax.eval_shape(phi, jax.ShapeDtypeStruct((1, X.shape[1]), X.dtype)).shape
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(f"phi must map (n, dim) to (n, num_features), got shape {shape} for one row")
    return int(shape[1])


def _default_size(phi: Any, X: Any) -> int:
    size = max(_BLOCK_BYTES // (np.dtype(X.dtype).itemsize * (X.shape[1] + _num_features(phi, X))), 1)
    return min(size, max(X.shape[0], 1))


def _check_out(out: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if not isinstance(out, np.ndarray) or tuple(out.shape) != tuple(shape) or out.dtype != dtype:
        found = f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and dtype {getattr(out, 'dtype', None)}"
        raise ValueError(
            f"out must be a NumPy array or memory-mapped file of shape {shape} and dtype {dtype}, got {found}"
        )
    if not out.flags.writeable:
        raise ValueError("out must be writable; open the file with mode 'r+' or 'w+'")
