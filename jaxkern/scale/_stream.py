"""Streams side by side: each device updates its own, and a tree merges them."""

import os
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxkern import checks
from jaxkern._types import Sharding
from jaxkern.features import StreamingPCA
from jaxkern.regression import StreamingRidge
from jaxkern.scale import _mesh
from jaxkern.scale._embed import host_matrix
from jaxkern.scale._resume import Report, State, Teller, facts, fingerprint

_STEP_BYTES = 2**24  # of points that one step takes to the devices
_State = TypeVar("_State")


def merge_tree(
    merge: Callable[[_State, _State], _State], states: Iterable[_State]
) -> _State:
    """Merge neighbours, then neighbours of the results, until one state is left.

    Every state passes through at most log2(number of states), rounded up, merges, and the order of the states is kept.
    What each merge adds to an error, rounding for one, is added that many times and not once for every state.

    Parameters
    ----------
    merge : an associative function of two states, such as `frequent_directions.merge` or the `merge` of
        `features.streaming_pca`.
    states : at least one; an iterator is asked for one at a time, and log2 of their number are held at once.

    Returns
    -------
    The merged state.

    Notes
    -----
    One merge less than there are states. Which states are merged depends on their number alone.

    Examples
    --------
    >>> merge_tree(lambda a, b: f"({a}{b})", "abcde")
    '(((ab)(cd))e)'
    """
    waiting: list[
        tuple[int, _State]
    ] = []  # (how many states are in it, descending powers of two, and their merger)
    for state in states:
        count = 1
        while waiting and waiting[-1][0] == count:
            state = merge(waiting.pop()[1], state)
            count *= 2
        waiting.append((count, state))
    if not waiting:
        raise ValueError("states must have at least one state, got none")
    whole = waiting.pop()[1]
    while waiting:
        whole = merge(waiting.pop()[1], whole)
    return whole


def stream(
    pca: StreamingPCA | StreamingRidge,
    X: Any,
    *,
    y: Any = None,
    num_streams: int = 8,
    block_size: int | None = None,
    sharding: Sharding | None = None,
    progress: str | os.PathLike[str] | None = None,
    report: Report | None = None,
) -> Any:
    """Return the state of streaming components or ridge regression after all rows of X, by streams side by side.

    The rows are divided into `num_streams` ranges of ceil(N / num_streams) rows, the last one shorter. Each is a stream
    of its own, updated on one device; a tree of merges (`merge_tree`) makes one of them. Which rows are merged when
    depends on N and num_streams, and not on the devices: every mesh gives the same numbers within rounding. Another
    num_streams gives another sketch, with a certificate of the same bound.

    Parameters
    ----------
    pca : what `features.streaming_pca` or `regression.streaming_ridge` returns.
    X : (N, dim) points, N >= 1, in a NumPy or JAX array, a memory-mapped file, or what `open_rows` returns. Over
        several processes each one reads the rows of its own streams.
    y : (N,) or (N, t) labels for ridge regression in the dtype of X, held like X; None for principal components.
    num_streams : a multiple of the number of devices. Over P processes P times a power of two: then the merges of each
        process are a part of the one tree.
    block_size : rows that each stream takes in one step; by default as many as make 16 MB for all streams of a process.
    sharding : a `jax.sharding.Mesh`, or a `NamedSharding` of rows, whose devices share the streams; by default one
        device.
    progress : path of a file in which the states of all streams are kept, every ten seconds and at the end. If it is
        there, the same call goes on from it, even after `kill -9`, and ends with the same bits. Over several processes
        the number of the process is appended to the path, and as many must go on.
    report : called as report(done, total) on the host at the start and after every step, with the numbers of finished
        and of all rows of the streams of this process.

    Returns
    -------
    StreamingState or RidgeState, the same on every process, for `pca.finalize` or `pca.merge`.

    Raises
    ------
    ValueError
        If pca, y or sharding is of another kind, X is not a floating matrix with at least one row, a size is below 1,
        or num_streams is not such a multiple; if progress is damaged or belongs to another map, num_streams,
        block_size, number of processes, shape of X, first or last row of X, or table of `open_rows`; if processes have
        different maps.
    RuntimeError
        If another process has ended.

    Notes
    -----
    Time that of `pca.update` for N rows, divided by the number of devices, and num_streams merges. Memory of a step and
    of num_streams states; processes exchange one state each. The last step of a stream is filled up with rows of weight
    0, which change no guarantee, so that one program serves every N. Source: ghashami2016, Algorithm 1; that states
    merge within the same bound is proved in `frequent_directions`.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import nystrom, streaming_pca
    >>> from jaxkern.kernels import Gaussian
    >>> X = jax.random.normal(jax.random.key(0), (1000, 3))
    >>> pca = streaming_pca(nystrom(Gaussian(1.0), X[:20]), sketch_size=10)
    >>> pca.finalize(stream(pca, X, num_streams=4), num_components=2)(X).shape
    (1000, 2)
    """
    if not isinstance(pca, StreamingPCA | StreamingRidge):
        raise ValueError(
            f"pca must be what features.streaming_pca or streaming_ridge returns, got {type(pca).__name__}"
        )
    host_matrix("X", X)
    if isinstance(pca, StreamingPCA) != (y is None) or (
        y is not None and getattr(y, "shape", ())[:1] != X.shape[:1]
    ):
        kind = getattr(y, "shape", type(y).__name__)
        raise ValueError(
            f"y must have a label for each of {X.shape[0]} rows with streaming_ridge, else be None: {kind}"
        )
    held = (X,) if y is None else (X, y)
    if X.shape[0] < 1:
        raise ValueError(f"X must have at least one row, got shape {X.shape}")
    num_streams = checks.count("num_streams", num_streams)
    mesh = _mesh.local_mesh(sharding)
    own = _own_streams(num_streams, mesh, sharding)
    count = own.stop - own.start
    length = -(-X.shape[0] // num_streams)
    if block_size is None:
        block_size = max(
            _STEP_BYTES // (count * X.shape[1] * np.dtype(X.dtype).itemsize), 1
        )
        block_size = min(block_size, length)
    block_size = checks.count("block_size", block_size)

    divided = NamedSharding(mesh, PartitionSpec(_mesh.AXIS))
    empty: Any = pca.init(X.dtype)
    begin = jax.tree.map(
        lambda leaf: np.broadcast_to(leaf, (count, *leaf.shape)), empty
    )
    kept, done, tell = None, 0, Teller("stream", report)
    size = (
        {"num_components": 1}
        if isinstance(pca, StreamingPCA)
        else {"regularization": 1.0}
    )
    many = _mesh.spans_processes(sharding)
    if many or progress is not None:
        own_map = fingerprint((pca.finalize(empty, **size).features, empty))
    if many:
        _mesh.agree({"pca": own_map, "X": fingerprint((X.shape, str(X.dtype)))})
    if progress is not None:
        run = {
            "map": own_map,
            **facts(X),
            "block_size": block_size,
            "num_streams": num_streams,
        }
        run |= {} if y is None else {"y": facts(y)}
        run["processes"] = jax.process_count() if many else 1
        kept = State(progress, run, jax.process_index() if many else None)
        done, begin = kept.read(begin)
    lengths = _lengths(X.shape[0], own, length)

    def watch(done: int, states: Any) -> None:
        """Wait for the states after so many rows of each stream, tell how far they are, and keep them if due."""
        jax.block_until_ready(states)
        tell(sum(min(done, each) for each in lengths), sum(lengths))
        if kept is not None and (done >= max(lengths) or kept.due):
            kept.keep(done, states)

    watched = kept is not None or tell.listened
    states = jax.device_put(begin, divided)
    for start, rows in _steps(held, own, length, block_size, done):
        # The call returns at once, and the next step is read while this one is computed.
        if watched:
            watch(start, states)
        states = _step(states, jax.device_put(rows, divided), pca=pca, mesh=mesh)
    if watched:
        watch(max(lengths), states)
    whole = merge_tree(pca.merge, _each(jax.device_get(states), count))
    if many:
        gathered = _mesh.gather(whole)
        whole = merge_tree(pca.merge, _each(gathered, jax.process_count()))
    return whole


def _own_streams(num_streams: int, mesh: Mesh, sharding: Any) -> slice:
    """Return which streams are those of this process."""
    devices = mesh.devices.size
    if not _mesh.spans_processes(sharding):
        if num_streams % devices:
            raise ValueError(
                f"num_streams must be a multiple of the {devices} devices, got {num_streams}"
            )
        return slice(0, num_streams)
    processes = jax.process_count()
    each = num_streams // processes
    if num_streams % processes or each & (each - 1) or each % devices:
        raise ValueError(
            f"num_streams must be {processes} processes times a power of two, and a multiple of all devices, got "
            f"{num_streams} with {devices} devices in process {jax.process_index()}"
        )
    return slice(jax.process_index() * each, (jax.process_index() + 1) * each)


def _lengths(num_rows: int, streams: slice, length: int) -> list[int]:
    return [
        max(min(num_rows - i * length, length), 0)
        for i in range(streams.start, streams.stop)
    ]


def _steps(
    held: tuple[Any, ...], streams: slice, length: int, block_size: int, first: int
) -> Iterator[tuple[int, tuple[np.ndarray, ...]]]:
    """Yield how many rows of each stream are done, and the next ones, (streams, block_size, ...), and their weights.

    A weight is 0 where there are no more.
    """
    lengths = _lengths(held[0].shape[0], streams, length)
    for done in range(first, max(lengths), block_size):
        shape = len(lengths), block_size
        rows = tuple(
            np.zeros((*shape, *part.shape[1:]), np.dtype(part.dtype)) for part in held
        )
        weights = np.zeros(shape, rows[0].dtype)
        for i, stop in enumerate(lengths):
            taken = min(max(stop - done, 0), block_size)
            start = (streams.start + i) * length + done
            for part, into in zip(held, rows, strict=True):
                into[i, :taken] = part[start : start + taken]
            weights[i, :taken] = 1
        yield done, (*rows, weights)


def _each(stacked: Any, count: int) -> Iterator[Any]:
    """Yield the states of a stack of so many."""
    for i in range(count):
        yield jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), stacked)


@partial(jax.jit, static_argnames=("pca", "mesh"), donate_argnames="states")
def _step(
    states: Any,
    rows: tuple[jax.Array, ...],
    *,
    pca: StreamingPCA | StreamingRidge,
    mesh: Mesh,
) -> Any:
    """Update every stream on its own device, those of one device one after the other."""

    def one(stream: tuple[Any, tuple[jax.Array, ...]]) -> Any:
        return pca.update(stream[0], *stream[1])

    each, divided = partial(lax.map, one), PartitionSpec(_mesh.AXIS)
    return jax.shard_map(
        each, mesh=mesh, in_specs=divided, out_specs=divided, check_vma=False
    )((states, rows))
