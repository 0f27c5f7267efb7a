"""Trace-time validation: one wording per error, and only what is static.

Shapes, ranks, dtypes and the sign of Python or NumPy scalars are known while tracing; what depends on the entries of
an array is reported in a field of the result instead.
"""

import operator
import os
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["count", "key", "labels", "matrix", "open_unit", "points", "positive"]

_FLOATS = (np.dtype("float32"), np.dtype("float64"))
_forked: int | None = None  # the process that was forked after JAX had begun in it


def _before_fork() -> None:
    global _forked
    bridge = sys.modules.get(
        "jax._src.xla_bridge"
    )  # no public name tells it without beginning
    if _forked is None and getattr(bridge, "backends_are_initialized", lambda: False)():
        _forked = os.getpid()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(before=_before_fork)


def _same_process() -> None:
    """Raise in a child of a fork: it has none of the threads of JAX, and would wait for them for ever."""
    if _forked is not None and _forked != os.getpid():
        raise RuntimeError(
            "this process was forked from one in which JAX had begun, and cannot use it; start processes by "
            'multiprocessing.get_context("spawn") or "forkserver"'
        )


def is_static(value: Any) -> bool:
    """Tell whether `value` is a real Python or NumPy scalar, whose value may be looked at while tracing."""
    if isinstance(value, np.generic):  # dates, text and complex numbers are among them
        return isinstance(value, np.integer | np.floating) or jnp.issubdtype(
            value.dtype, jnp.floating
        )
    return isinstance(value, int | float) and not isinstance(value, bool)


def _own(value: np.ndarray) -> np.ndarray:
    """Return a copy, placed so that JAX on a CPU takes it as it is.

    JAX reads the arrays of NumPy some time after a call has returned, when their owner may have filled them anew. A
    copy by a program would be made as late, and compiled for every shape.
    """
    dtype = jax.dtypes.canonicalize_dtype(value.dtype)
    memory = np.empty(value.size * dtype.itemsize + 64, np.uint8)
    start = -memory.ctypes.data % 64
    own = (
        memory[start : start + value.size * dtype.itemsize]
        .view(dtype)
        .reshape(value.shape)
    )
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # float64 may be too large for float32
        own[...] = value
    return own


def as_array(name: str, value: Any) -> jax.Array:
    """Return `value` as an array, or raise: what JAX says of objects, strings and ragged lists names no argument."""
    _same_process()
    try:
        is_plain = type(value) in (np.ndarray, np.memmap) and not value.dtype.hasobject
        return jax.device_put(_own(value)) if is_plain else jnp.asarray(value)
    except jax.errors.JAXTypeError:
        raise  # about tracers: there is nothing wrong with the argument
    except (TypeError, ValueError, OverflowError) as error:
        own = getattr(value, "dtype", None)
        kind = (
            type(value).__name__
            if own is None
            else f"{type(value).__name__} of dtype {own}"
        )
        raise ValueError(
            f"{name} must be an array of numbers, got {kind}: {str(error).splitlines()[0]}"
        ) from None


def floating(name: str, value: Any) -> jax.Array:
    """Return `value` as a float32 or float64 array, or raise."""
    array = as_array(name, value)
    if array.dtype not in _FLOATS:
        raise ValueError(
            f"{name} must have dtype float32 or float64, got {array.dtype}; convert it, as in {name}.astype(float)"
        )
    return array


def matrix(
    name: str, value: Any, *, dim: int | None = None, min_rows: int = 1
) -> jax.Array:
    """Return `value` as a floating (rows, dim) array, or raise."""
    array = floating(name, value)
    if array.ndim != 2:
        raise ValueError(
            f"{name} must have rank 2, (points, dimensions), got shape {array.shape}; "
            f"pass {name}[None, :] for one point, {name}[:, None] for one dimension, or vmap over stacked datasets"
        )
    if array.shape[0] < min_rows:
        raise ValueError(
            f"{name} must have at least {min_rows} row(s), got shape {array.shape}"
        )
    if array.shape[1] < 1:
        raise ValueError(
            f"{name} must have at least one column, got shape {array.shape}"
        )
    if dim is not None and array.shape[1] != dim:
        raise ValueError(
            f"{name} must have {dim} columns, got shape {array.shape}; both sides need the same dimension"
        )
    return array


def points(name: str, value: Any, *, dim: int) -> jax.Array:
    """Return `value` as a floating (..., dim) array, or raise."""
    array = floating(name, value)
    if array.ndim < 1 or array.shape[-1] != dim:
        raise ValueError(f"{name} must have shape (..., {dim}), got {array.shape}")
    return array


def vector(name: str, value: Any, *, size: int | None = None) -> jax.Array:
    """Return `value` as a floating vector of the given size, or raise."""
    array = floating(name, value)
    if array.ndim != 1 or (size is not None and array.shape[0] != size):
        wanted = "(n,)" if size is None else f"({size},)"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return array


def columns(name: str, value: Any, *, rows: int) -> jax.Array:
    """Return `value` as a floating (rows,) or (rows, r) array, or raise."""
    array = floating(name, value)
    if array.ndim not in (1, 2) or array.shape[0] != rows:
        raise ValueError(
            f"{name} must have shape ({rows},) or ({rows}, r), got {array.shape}"
        )
    return array


def square(name: str, value: Any) -> jax.Array:
    """Return `value` as a floating (n, n) array with n >= 1, or raise."""
    array = floating(name, value)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.shape[0] < 1:
        raise ValueError(
            f"{name} must be a square matrix (n, n) with n >= 1, got shape {array.shape}"
        )
    return array


def labels(name: str, value: Any, *, size: int | None = None) -> jax.Array:
    """Return `value` as a vector of integer labels, or raise."""
    array = as_array(name, value)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(
            f"{name} must hold integer labels, got dtype {array.dtype}; pass {name}.astype(int)"
        )
    if (
        array.ndim != 1
        or array.shape[0] < 1
        or (size is not None and array.shape[0] != size)
    ):
        wanted = "(n,) with n >= 1" if size is None else f"({size},)"
        raise ValueError(f"{name} must have shape {wanted}, got {array.shape}")
    return array


def same_dtype(
    name: str, array: jax.Array, reference_name: str, reference: Any
) -> jax.Array:
    """Return `array` if it has the dtype of `reference`, or raise."""
    if array.dtype != reference.dtype:
        raise ValueError(
            f"{name} must have the dtype of {reference_name}, {reference.dtype}, got {array.dtype}; convert one of them"
        )
    return array


def key(value: Any, name: str = "key") -> jax.Array:
    """Return `value` if it is one typed random key, or raise."""
    _same_process()
    dtype = getattr(value, "dtype", None)
    if dtype is None or not jnp.issubdtype(dtype, jax.dtypes.prng_key):
        given = type(value).__name__ if dtype is None else f"an array of dtype {dtype}"
        raise ValueError(
            f"{name} must be a typed random key, got {given}; pass jax.random.key(seed) "
            "(an old uint32 key converts with jax.random.wrap_key_data)"
        )
    if value.shape != ():
        raise ValueError(
            f"{name} must be a single key, got keys of shape {value.shape}; vmap over the keys instead"
        )
    return value


def count(
    name: str,
    value: Any,
    *,
    minimum: int = 1,
    maximum: int | None = None,
    limit: str = "",
) -> int:
    """Return a static whole number within [minimum, maximum], or raise. `limit` says what the maximum is."""
    try:
        number = operator.index(value)
    except Exception:
        raise ValueError(
            f"{name} must be a static whole number, got {value!r}; pass a Python int"
        ) from None
    if isinstance(value, bool):
        raise ValueError(f"{name} must be a whole number, got {value!r}")
    if number < minimum:
        raise ValueError(f"{name} must be at least {minimum}, got {number}")
    if maximum is not None and number > maximum:
        raise ValueError(
            f"{name} must be at most {maximum}{f' ({limit})' if limit else ''}, got {number}"
        )
    return number


def traced_count(
    name: str, value: Any, *, maximum: int, limit: str
) -> jax.Array | None:
    """Return a whole number in [1, maximum] as an array, or raise; of arrays only shape and dtype. None stays None."""
    if value is None:
        return None
    if is_static(value):
        value = count(name, value, maximum=maximum, limit=limit)
    array = as_array(name, value)
    if array.ndim or not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(
            f"{name} must be a whole number, got shape {array.shape} and dtype {array.dtype}"
        )
    return array


def positive(name: str, value: Any) -> Any:
    """Raise if `value` is a static scalar that is not a positive finite number; arrays and tracers pass."""
    if isinstance(value, bool | np.bool_ | str) or (
        is_static(value) and not (value > 0 and np.isfinite(value))
    ):
        raise ValueError(f"{name} must be positive and finite, got {value!r}")
    return value


def non_negative(name: str, value: Any) -> Any:
    """Raise if `value`, a number or a list or NumPy array of them, is static and not non-negative and finite."""
    static = is_static(value) or isinstance(value, np.ndarray)
    if static or (isinstance(value, list | tuple) and all(map(is_static, value))):
        try:
            numbers = np.asarray(value)
            unfit = ~(np.isfinite(numbers) & (numbers >= 0))
        except TypeError:
            raise ValueError(
                f"{name} must be a number or an array of them, got {value!r}"
            ) from None
        if unfit.any():
            raise ValueError(
                f"{name} must be non-negative and finite, got {numbers[unfit][0]}"
            )
    return value


def weights(
    value: Any, rows_name: str, rows: Any, *, some: bool = True, name: str = "weights"
) -> jax.Array | None:
    """Return the weights of rows, (rows,) in their dtype, or raise; None stays None.

    Of a NumPy array the entries are looked at as well: none may be negative, and with `some` one must be positive.
    Those of other arrays are for `jaxkern._weights.mass`.
    """
    if value is None:
        return None
    array = vector(name, value, size=rows.shape[0])
    if isinstance(non_negative(name, value), np.ndarray) and some and not value.any():
        raise ValueError(f"{name} must have a positive sum, got zeros alone")
    return same_dtype(name, array, rows_name, rows)


def fraction(name: str, value: Any) -> Any:
    """Raise if `value` is a static scalar outside [0, 1]; arrays and tracers pass."""
    if is_static(value) and not 0 <= value <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
    return value


def open_unit(name: str, value: Any) -> float:
    """Return a static number strictly between 0 and 1 as a float, or raise."""
    if not is_static(value) or not 0 < value < 1:
        raise ValueError(f"{name} must be a number in (0, 1), got {value!r}")
    return float(value)


def flag(name: str, value: Any) -> bool:
    """Return a static truth value, or raise."""
    if not isinstance(value, bool | np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def scalar(
    name: str, value: Any, dtype: Any, *, columns: int | None = None
) -> jax.Array:
    """Return a parameter as a scalar array of the given dtype, or raise where it is stacked.

    With `columns` it may also be an array (columns,), one number for each.
    """
    _representable(name, value, dtype)
    array = as_array(name, value)
    if array.ndim != 0 and array.shape != (columns,):
        each = (
            ""
            if columns is None
            else f", or an array ({columns},) with one number for each column"
        )
        raise ValueError(
            f"{name} must be a scalar where the kernel is evaluated{each}, got shape {array.shape}; "
            "to use several at once, vmap over the kernel that holds them"
        )
    if not (
        jnp.issubdtype(array.dtype, jnp.floating)
        or jnp.issubdtype(array.dtype, jnp.integer)
    ):
        raise ValueError(f"{name} must be a real number, got dtype {array.dtype}")
    return array.astype(dtype)


def numbers(name: str, tree: Any, *, unless: Any = ()) -> Any:
    """Return `tree` if its leaves are real numbers, or raise; subtrees of a type in `unless` may hold what they like.

    A constructor may not look, since trees are also rebuilt from placeholders, and a compiled function would say less.
    """
    for leaf in jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, unless)):
        if not (isinstance(leaf, unless) or (_is_real(leaf) and _fits(leaf, float))):
            paths = jax.tree_util.tree_leaves_with_path(tree)
            where = next(
                (jax.tree_util.keystr(path) for path, other in paths if other is leaf),
                "",
            )
            real(f"{name}{where}", leaf)
            _representable(f"{name}{where}", leaf, float)
    return tree


def real(name: str, value: Any) -> Any:
    """Raise if `value` is not a real number, or an array or tracer of them."""
    if not _is_real(value):
        raise ValueError(f"{name} must be a real number, got {value!r}")
    return value


def _fits(value: Any, dtype: Any) -> bool:
    """Tell whether a static scalar neither overflows in a dtype nor becomes zero; arrays and tracers pass."""
    if not is_static(value) or value == 0 or not np.isfinite(value):
        return True
    info = jnp.finfo(jax.dtypes.canonicalize_dtype(dtype))
    return float(info.tiny) <= abs(float(value)) <= float(info.max)


def _representable(name: str, value: Any, dtype: Any) -> None:
    if not _fits(value, dtype):
        limits = jax.dtypes.canonicalize_dtype(dtype)
        raise ValueError(
            f"{name} must be within the range of {limits}, got {value!r}; rescale the data"
        )


def _is_real(value: Any) -> bool:
    """Tell whether JAX takes `value` for real numbers; scalars of Python and NumPy, arrays and tracers."""
    if isinstance(value, np.ndarray) and (
        isinstance(value, np.ma.MaskedArray) or not value.dtype.isnative
    ):
        return False
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return bool(
        jnp.issubdtype(dtype, jnp.floating) or jnp.issubdtype(dtype, jnp.integer)
    )
