"""A feature map of some columns of a table, as one of the table's own rows and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern._types import Array, Float
from jaxkern.pytrees import pytree, static


@pytree
class TableMap:
    """A map of some columns of a table, as one of rows of that table in whatever form they come.

    It takes a matrix (..., width) with the columns of one of its layouts, in the order of the table: which layout
    follows from the width alone. And it takes a DataFrame of pandas or polars, or a table of Arrow, with the columns of
    the map by name, in any order and among others. What is no array of JAX is cast to the dtype of the map, that of its
    largest array; an array of JAX goes on as it is, so that a map in float32 refuses one in float64.

    Attributes
    ----------
    feature_map : the map of the dim columns that are used, a PyTree, (..., dim) -> (..., num_features).
    columns : names of all columns of the table, all different, in its order; a tuple.
    layouts : the numbers of the columns that a matrix may have, a tuple of tuples that ascend: first the dim ones that
        are used, then larger selections, each with all of the one before.

    Examples
    --------
    >>> import jax
    >>> from jaxkern.features import TableMap, paired_fourier
    >>> from jaxkern.kernels import Gaussian
    >>> phi = paired_fourier(jax.random.key(1), Gaussian(1.0), 2, num_frequencies=4)
    >>> phi = TableMap(phi, ("id", "height", "weight"), ((1, 2), (0, 1, 2)))
    >>> phi(jax.numpy.ones((5, 3))).shape, phi(jax.numpy.ones((5, 2))).shape
    ((5, 8), (5, 8))
    """

    feature_map: Any
    columns: tuple[str, ...] = static()
    layouts: tuple[tuple[int, ...], ...] = static()

    def __post_init__(self) -> None:
        """Raise ValueError where names and numbers of columns do not fit together."""
        if len(set(self.columns)) < len(self.columns) or not all(
            isinstance(name, str) for name in self.columns
        ):
            raise ValueError("columns must be different names")
        inner: set[int] = set()
        for layout in self.layouts or ((),):
            if not inner < set(layout) <= set(range(len(self.columns))) or list(
                layout
            ) != sorted(set(layout)):
                raise ValueError(
                    f"layouts must be ascending numbers of the {len(self.columns)} columns, each with more of "
                    f"them than the one before, got {layout!r:.60}"
                )
            inner = set(layout)

    @property
    def num_features(self) -> int:
        """Number of features, that of the feature map."""
        return self.feature_map.num_features

    def __call__(self, X: Any) -> Float[Array, "... num_features"]:
        """Return the features, (..., num_features), of rows of the table.

        Raises ValueError for anything else, and for cells that hold no number.
        """
        names = [self.columns[i] for i in self.layouts[0]]
        if hasattr(X, "columns"):
            X = _by_name(X, names, _dtype_of(self.feature_map))
        elif not isinstance(X, jax.Array):
            X = _array(X, "X")
        width = X.shape[-1] if X.ndim else 0
        layout = next((layout for layout in self.layouts if len(layout) == width), None)
        if layout is None:
            widths = " or ".join(f"(..., {len(layout)})" for layout in self.layouts)
            raise ValueError(
                f"X must have shape {widths}, got {X.shape}: the columns of this map, or more of its table, in the "
                f"order of the table; or pass a DataFrame with the columns {_shown(names)}"
            )
        if len(layout) > len(self.layouts[0]):
            at = {column: i for i, column in enumerate(layout)}
            X = X[..., np.array([at[column] for column in self.layouts[0]])]
        if isinstance(X, np.ndarray):
            X = jax.device_put(_numbers(X, _dtype_of(self.feature_map), "X"))
        return self.feature_map(X)


def _by_name(frame: Any, names: Sequence[str], dtype: Any) -> np.ndarray:
    """Return columns of a DataFrame, or a table of Arrow, as (rows, dim)."""
    held = {str(name): name for name in getattr(frame, "column_names", frame.columns)}
    if missing := [name for name in names if name not in held]:
        raise ValueError(
            f"X lacks {len(missing)} of the {len(names)} columns of this map: {_shown(missing)}; pass a DataFrame with "
            "these names"
        )
    return np.stack(
        [_numbers(_array(frame[held[name]], name), dtype, name) for name in names],
        axis=-1,
    )


def _shown(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names[:8])) + f" and {len(names) - 8:,} more" * (
        len(names) > 8
    )


def _dtype_of(phi: Any) -> Any:
    leaves = [
        leaf
        for leaf in jax.tree.leaves(phi)
        if jnp.issubdtype(getattr(leaf, "dtype", int), jnp.floating)
    ]
    return (
        max(leaves, key=lambda leaf: leaf.size).dtype
        if leaves
        else jnp.result_type(float)
    )


def _array(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name!r} is no table of numbers: {error}") from None
    if (
        isinstance(values, np.ma.MaskedArray) or array.dtype.kind not in "biufOUST"
    ):  # a cast would lose something
        raise ValueError(
            f"{name!r} must hold real numbers, got {type(values).__name__} of dtype {array.dtype}"
        )
    return array


def _numbers(values: np.ndarray, dtype: Any, name: str) -> np.ndarray:
    try:
        return values.astype(dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{name!r} holds what is no number ({error}); pass numbers, and 0.05 for 5%"
        ) from None
