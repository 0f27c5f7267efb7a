"""Small fits and small tables in a few sizes, so that little is compiled where much is tried; and blocks of rows."""

import dataclasses
import functools
import operator
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import scale
from jaxkern._programs import known

_MOST_ENTRIES = 2**21  # of sparse rows that are made dense at once
_SIZE, MOST_PADDED = (
    128,
    1_024,
)  # padded numbers of landmarks are multiples of the first up to the second
_ROWS, _FEW = 256, 2_048  # up to the second the rows are mapped in blocks of the first
_AXES = {
    "landmarks": "n",
    "weights": "n",
    "projection": "kn",
    "offset": "k",
    "eigenvalues": "k",
}


def blocks(X: Any) -> Iterator[Any]:
    """Yield the rows of X; those of a sparse matrix made dense, a few at a time."""
    if isinstance(X, np.ndarray | jax.Array):
        yield X
        return
    step = max(_MOST_ENTRIES // X.shape[1], 1)
    for start in range(0, X.shape[0], step):
        yield X[start : start + step].toarray()


def padded(size: int) -> int:
    """Return the number of landmarks to which so many are filled up."""
    return -(-size // _SIZE) * _SIZE if size <= MOST_PADDED else size


def resized(phi: Any, num_landmarks: int, num_features: int) -> Any:
    """Return a map made of landmarks with so many landmarks and features: cut, or filled up with what adds nothing."""
    changed = {}
    for name in set(_AXES) & {field.name for field in dataclasses.fields(phi)}:
        if getattr(phi, name) is not None:
            sizes = [
                {"n": num_landmarks, "k": num_features}[axis] for axis in _AXES[name]
            ]
            array = np.asarray(getattr(phi, name))[tuple(map(slice, sizes))]
            missing = [
                (0, size - held) for size, held in zip(sizes, array.shape, strict=False)
            ]
            missing += [(0, 0)] * (array.ndim - len(sizes))
            changed[name] = jax.device_put(
                np.pad(
                    array, missing, mode="edge" if name == "landmarks" else "constant"
                )
            )
    return dataclasses.replace(phi, **changed)


@functools.cache
def quick(function: Any, **static: Any) -> Any:
    """Return a compiled function; on a CPU unoptimised: as fast in these sizes, compiled in a fifth of the time."""
    options = known(xla_backend_optimization_level=0, xla_cpu_use_fusion_emitters=False)
    return jax.jit(functools.partial(function, **static), compiler_options=options)


def mapped(phi: Any, X: Any, dtype: Any) -> Iterable[np.ndarray]:
    """Yield features of the rows of X in blocks; the last columns may be none of the map's."""
    rows = (block.astype(dtype, copy=False) for block in blocks(X))
    return _few(phi, rows) if X.shape[0] <= _FEW else scale.embed(phi, rows)


def _few(phi: Any, blocks: Iterator[np.ndarray]) -> Iterator[np.ndarray]:
    if hasattr(phi, "landmarks"):
        size, count = padded(len(phi.landmarks)), phi.num_features
        phi = resized(phi, size, size if count == len(phi.landmarks) else count)
    for block in blocks:
        yield by_rows(operator.call, phi, block)


def is_small(X: Any) -> bool:
    """Tell whether rows are so few that they are filled up to a few sizes."""
    return X.shape[0] <= _FEW


def filled_up(X: Any, mode: Any = "edge") -> Any:
    """Return an array with further rows, up to a multiple of a block: copies of the last one, or with "constant" 0."""
    pad = jnp.pad if isinstance(X, jax.Array) else np.pad
    return pad(X, [(0, -len(X) % _ROWS), *[(0, 0)] * (X.ndim - 1)], mode=mode)


def by_rows(function: Any, model: Any, X: Any) -> Any:
    """Return function(model, X) of the rows of X, (n,) or (n, k), in blocks that are filled up; an array as X is."""
    small, join = (
        is_small(X),
        (jnp.concatenate if isinstance(X, jax.Array) else np.concatenate),
    )
    size, call = (_ROWS, quick(function)) if small else (_FEW, function)
    return join(
        [call(model, filled_up(X[i : i + size])) for i in range(0, len(X), size)]
    )[: len(X)]
