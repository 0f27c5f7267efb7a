"""Mapping rows in blocks of one size, on one device or on many, while the next block is read."""

from __future__ import annotations

import contextlib
import itertools
import operator
import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxkern import checks
from jaxkern._programs import blockwise
from jaxkern._types import FeatureMap, Sharding
from jaxkern.features._map import as_map
from jaxkern.scale import _mesh
from jaxkern.scale._resume import Record, Report, Teller, facts, fingerprint

_BLOCK_BYTES = 2**22
"""Of points and features. Larger blocks leave the cache and take fresh memory every time; they are slower on a CPU."""


def embed(
    phi: FeatureMap,
    X: Any,
    *,
    block_size: int | None = None,
    sharding: Sharding | None = None,
    out: Any = None,
    progress: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> Any:
    """Return phi(X) for any number of points, in blocks of one size, so that one program serves them all.

    While a block is computed, the next one is read and the one before is written. With a `sharding` the rows of a block
    are divided over its devices; nothing passes between them. Over several processes each maps its `local_rows` of X
    into the same rows of `out`, and all return when the last has finished.

    Parameters
    ----------
    phi : a fitted feature map, or any function or callable PyTree (n, dim) -> (n, num_features) that
        treats rows one by one.
    X : (N, dim) points in a NumPy or JAX array, a memory-mapped file (`numpy.load(file, mmap_mode="r")`), what
        `open_rows` returns, or an iterable of blocks (n_i, dim) of any sizes. Only a few blocks at a time are moved
        to the device.
    block_size : rows of a block, at least 1; by default as many as make 4 MB of points and features, or fewer for a
        smaller N, one of eight sizes between two powers of two. It is rounded up to a multiple of the number of
        devices.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows, whose devices share the rows; by default one device.
        Over several processes X must be an array, and `out` a file that all of them see.
    out : an array or memory-mapped file (N, num_features) to write to; by default a new NumPy array. An iterable of
        blocks without `out` gives an iterator of features, block by block as they came.
    progress : path of a record of finished blocks, for an X that is an array and an `out` that is a memory-mapped file
        opened with "r+" or "w+". If it is there, the same call goes on where it was cut short, even by `kill -9`, and
        ends with the same bits. While a process writes to it, a second one with the same record is refused by a
        ValueError (not on Windows). Every block is forced to the disk before it is recorded. Over several processes
        the number of the process is appended to the path; another number of processes goes on from the records of
        all, with the same block_size, and ends with the same numbers within rounding.
    report : called as report(done, total) on the host after every block that is mapped, with the numbers of finished
        and of all rows of this process; total is None where X is an iterable.

    Returns
    -------
    NumPy array (N, num_features), or `out`, or an iterator of NumPy arrays (n_i, num_features). The numbers do not
    depend on block_size and sharding beyond rounding: the last block is padded with copies of its last row, which are
    dropped.

    Raises
    ------
    ValueError
        If X (or a block) is not a floating matrix, block_size < 1, out has another shape, or cannot be written to; if
        sharding is of another kind; if progress is damaged or belongs to another map, block_size, shape of X, first or
        last row of X, or table of `open_rows`; if processes have different maps.
    RuntimeError
        If another process has ended before its rows were mapped.

    Notes
    -----
    Time that of phi; memory on the device O(block_size (dim + num_features)), on the host a few blocks beside X and
    out. With `progress`, going on reads the finished features once, to compare their checksums.

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
    phi, tell = as_map(phi), Teller("embed", report)
    if block_size is not None:
        block_size = checks.count("block_size", block_size)
    mesh = _mesh.local_mesh(sharding)
    many = _mesh.spans_processes(sharding)
    if not hasattr(X, "shape"):
        if not isinstance(X, Iterable) or isinstance(X, str | bytes):
            raise ValueError(
                f"X must be an array or an iterable of arrays, got {type(X).__name__}"
            )
        if many or progress is not None:
            raise ValueError(
                "X must be an array, not an iterable, where processes share it or progress is recorded"
            )
        blocks = _of_iterable(phi, X, block_size, mesh, tell)
        return blocks if out is None else _gather(blocks, out)
    host_matrix("X", X)
    num_features = _num_features(phi, X)
    shape = (X.shape[0], num_features)
    if out is None and (many or progress is not None):
        raise ValueError(
            "out must be a memory-mapped file where processes share it or progress is recorded, got None"
        )
    if out is None:
        out = np.empty(shape, np.dtype(X.dtype))
    _check_out(out, shape, X.dtype)
    rows = (
        _mesh.local_rows(X.shape[0], sharding)
        if many and sharding is not None
        else slice(0, X.shape[0])
    )
    if many:
        # Processes that have met notice at once when one of them ends; strangers wait for its heartbeat.
        _mesh.agree(
            {"phi": fingerprint(phi), "X": fingerprint((X.shape, str(X.dtype)))}
        )
    engine = _Engine.of(
        phi, mesh, block_size or _default_size(X, num_features, rows.stop - rows.start)
    )
    with _record(progress, many, out, phi, engine.size, X) as record:
        left = [rows] if record is None else record.left(rows, out)
        starts = (
            (s, min(s + engine.size, gap.stop))
            for gap in left
            for s in range(gap.start, gap.stop, engine.size)
        )
        for start, block in engine.run(
            (start, _read(X, start, stop)) for start, stop in starts
        ):
            out[start : start + block.shape[0]] = block
            if record is not None:
                out.flush()
                record.add(start, block)
            tell(start + block.shape[0] - rows.start, rows.stop - rows.start)
    if many:
        if isinstance(out, np.memmap):
            out.flush()
        _mesh.wait_for_all("finish")
    return out


class _Engine(NamedTuple):
    """A map ready for blocks of up to `size` rows on the devices of a mesh."""

    phi: Any
    mesh: Mesh
    size: int

    @staticmethod
    def of(phi: Any, mesh: Mesh, size: int) -> _Engine:
        devices = mesh.devices.size
        everywhere = jax.device_put(phi, NamedSharding(mesh, PartitionSpec()))
        return _Engine(everywhere, mesh, -(-size // devices) * devices)

    def run(
        self, blocks: Iterable[tuple[Any, np.ndarray]]
    ) -> Iterator[tuple[Any, np.ndarray]]:
        """Yield (tag, features) for every (tag, rows), in order.

        Calls of compiled programs return before they have finished. So a block is being computed while the next one is
        read, and waits behind it while the one before is written.
        """
        begun = None
        for tag, rows in blocks:
            following = tag, rows.shape[0], self._begin(rows)
            if begun is not None:
                yield self._end(*begun)
            begun = following
        if begun is not None:
            yield self._end(*begun)

    def _begin(self, rows: Any) -> jax.Array:
        padding = self.size - rows.shape[0]
        if padding:
            rows = np.pad(
                np.asarray(rows),
                ((0, padding), (0, 0)),
                mode="edge" if rows.shape[0] else "constant",
            )
        rows = jax.device_put(rows, NamedSharding(self.mesh, PartitionSpec(_mesh.AXIS)))
        return _apply(self.phi, rows, mesh=self.mesh)

    @staticmethod
    def _end(tag: Any, count: int, features: jax.Array) -> tuple[Any, np.ndarray]:
        return tag, np.asarray(features)[:count]


@partial(blockwise, static_argnames="mesh")
def _apply(phi: Any, rows: jax.Array, *, mesh: Mesh) -> jax.Array:
    """Map the rows of each device there; left to the compiler, a map with a loop over rows would gather them."""
    specs = PartitionSpec(), PartitionSpec(_mesh.AXIS)
    return jax.shard_map(
        operator.call, mesh=mesh, in_specs=specs, out_specs=specs[1], check_vma=False
    )(phi, rows)


def _read(X: Any, start: int, stop: int) -> Any:
    # Pages of a file are read here, and not where they would hold up the computing.
    return np.array(X[start:stop]) if isinstance(X, np.memmap) else X[start:stop]


def _of_iterable(
    phi: Any, blocks: Iterable[Any], block_size: int | None, mesh: Mesh, tell: Teller
) -> Iterator[np.ndarray]:
    """Yield the features of every block; blocks are cut and padded to one size, so that nothing compiles again."""
    blocks = iter(blocks)
    for first in blocks:
        host_matrix("each block of X", first)
        num_features = _num_features(phi, first)
        engine = _Engine.of(
            phi, mesh, block_size or _default_size(first, num_features, first.shape[0])
        )
        pieces: list[np.ndarray] = []
        done = 0
        for last, features in engine.run(
            _cut(itertools.chain([first], blocks), engine.size)
        ):
            pieces.append(features)
            done += len(features)
            tell(done, None)
            if last:
                yield pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
                pieces = []


def _cut(blocks: Iterable[Any], size: int) -> Iterator[tuple[bool, Any]]:
    """Yield pieces of at most `size` rows, and whether each is the last of its block."""
    for block in blocks:
        host_matrix("each block of X", block)
        for start in range(0, max(block.shape[0], 1), size):
            piece = block[start : start + size]
            # A copy, since the piece may still be computed when whoever yields blocks fills the next one.
            yield (
                start + size >= block.shape[0],
                piece if isinstance(piece, jax.Array) else np.array(piece),
            )


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
        raise ValueError(
            f"out must have as many rows as X, {start}, got shape {out.shape}"
        )
    return out


def _record(
    progress: Any, many: bool, out: Any, phi: Any, block_size: int, X: Any
) -> Any:
    """Return the record of this run, or a context of None where none is kept."""
    if progress is None:
        return contextlib.nullcontext()
    if not isinstance(out, np.memmap) or out.mode not in ("r+", "w+"):
        raise ValueError(
            "out must be a memory-mapped file opened with mode 'r+' or 'w+' where progress is recorded"
        )
    run = {
        "map": fingerprint(phi),
        **facts(X),
        "num_features": out.shape[1],
        "block_size": block_size,
    }
    return Record(progress, run, jax.process_index() if many else None)


def host_matrix(name: str, X: Any) -> None:
    """Check a matrix without moving it: it may be a file."""
    if not (hasattr(X, "shape") and hasattr(X, "dtype")) or isinstance(
        X, np.ma.MaskedArray
    ):
        raise ValueError(
            f"{name} must be an array of NumPy or JAX, got {type(X).__name__}; pass numpy.asarray of it"
        )
    if len(X.shape) != 2 or X.shape[1] < 1:
        raise ValueError(
            f"{name} must have rank 2, (points, dimensions), got shape {X.shape}"
        )
    dtype = jax.dtypes.canonicalize_dtype(X.dtype)
    if np.dtype(X.dtype) not in (np.dtype("float32"), np.dtype("float64")):
        raise ValueError(
            f"{name} must have dtype float32 or float64, got {X.dtype}; convert it, as in X.astype(float)"
        )
    if dtype != X.dtype:
        raise ValueError(
            f"{name} has dtype {X.dtype}, which jax turns into {dtype}; convert it, or enable float64"
        )
    if isinstance(X, jax.Array) and not X.is_fully_addressable:
        raise ValueError(
            f"{name} must be held by this process; a map of an array of many processes is jax.jit(phi)(X)"
        )


def _num_features(phi: Any, X: Any) -> int:
    shape = jax.eval_shape(phi, jax.ShapeDtypeStruct((1, X.shape[1]), X.dtype)).shape
    if len(shape) != 2 or shape[0] != 1:
        raise ValueError(
            f"phi must map (n, dim) to (n, num_features), got shape {shape} for one row"
        )
    return int(shape[1])


def _default_size(X: Any, num_features: int, num_rows: int) -> int:
    size = max(
        _BLOCK_BYTES // (np.dtype(X.dtype).itemsize * (X.shape[1] + num_features)), 1
    )
    # Where one block is enough its size has three leading bits: close numbers of rows share a program.
    unit = 1 << max(num_rows.bit_length() - 4, 0)
    return min(size, max(-(-num_rows // unit) * unit, 1))


def _check_out(out: Any, shape: tuple[int, ...], dtype: Any) -> None:
    if (
        not isinstance(out, np.ndarray)
        or tuple(out.shape) != tuple(shape)
        or out.dtype != dtype
    ):
        given = f"{type(out).__name__} of shape {getattr(out, 'shape', None)} and dtype {getattr(out, 'dtype', None)}"
        raise ValueError(
            f"out must be a NumPy array or memory-mapped file of shape {shape} and dtype {dtype}, got {given}"
        )
    if not out.flags.writeable:
        raise ValueError("out must be writable; open the file with mode 'r+' or 'w+'")
