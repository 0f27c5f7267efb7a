"""A feature map of some columns of a table, as one of the table's own rows and DataFrames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern._types import Array, Float
from jaxkern.pytrees import pytree, static

_MISSING = {"", "nan", "none", "<na>", "null"}


@pytree
class TableMap:
    """A map of some columns of a table, as one of rows of that table in whatever form they come.

    It takes a matrix (..., width) with the columns of one of its layouts, in the order of the table: which layout
    follows from the width alone. And it takes a DataFrame of pandas or polars, or a table of Arrow, with the columns of
    the map by name, in any order and among others. What is no array of JAX is cast to the dtype of the map, that of its
    largest array; an array of JAX goes on as it is, so that a map in float32 refuses one in float64.

    A column of text may stand for several columns of the map: the column "colour=red" is 1 where the text is "red" and
    0 elsewhere. A DataFrame has the column "colour", which the map encodes; a matrix has the columns of 0 and 1.

    Attributes
    ----------
    feature_map : the map of the dim columns that are used, a PyTree, (..., dim) -> (..., num_features).
    columns : names of all columns of the table, all different, in its order; a tuple. Of a column of text that is
        encoded it has the names of the columns of 0 and 1.
    layouts : the numbers of the columns that a matrix may have, a tuple of tuples that ascend: first the dim ones that
        are used, then larger selections, each with all of the one before.
    categories : name and values of each column of text that is encoded, as in `(("colour", ("blue", "red")),)`; None
        without one.

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
    categories: tuple[tuple[str, tuple[str, ...]], ...] | None = static(default=None)

    def __post_init__(self) -> None:
        """Raise ValueError if names and numbers of columns do not fit together."""
        are_names = all(isinstance(name, str) for name in self.columns)
        if len(set(self.columns)) < len(self.columns) or not are_names:
            raise ValueError("columns must be different names")
        for name, values in self.categories or ():
            for value in values:
                if f"{name}={value}" not in self.columns:
                    raise ValueError(
                        f"categories hold the value {value!r} of {name!r}, so columns must hold '{name}={value}'"
                    )
        inner: set[int] = set()
        for layout in self.layouts or ((),):
            outer = set(layout)
            are_numbers = outer <= set(range(len(self.columns)))
            if not (inner < outer and are_numbers and list(layout) == sorted(outer)):
                raise ValueError(
                    f"layouts must be ascending numbers of the {len(self.columns)} columns, each with more of "
                    f"them than the one before, got {layout!r:.60}"
                )
            inner = outer

    @property
    def num_features(self) -> int:
        """Number of features, that of the feature map."""
        return self.feature_map.num_features

    def __call__(self, X: Any) -> Float[Array, "... num_features"]:
        """Return the features, (..., num_features), of rows of the table.

        Raises ValueError for anything else, for cells that hold no number, and for text that the table did not have.
        """
        if hasattr(X, "columns"):
            X = self._by_name(X)
        elif not isinstance(X, jax.Array):
            X = _array(X, "X")
        used = self.layouts[0]
        width = X.shape[-1] if X.ndim else 0
        layout = next((layout for layout in self.layouts if len(layout) == width), None)
        if layout is None:
            widths = " or ".join(f"(..., {len(layout)})" for layout in self.layouts)
            names = _listed([self.columns[i] for i in used])
            raise ValueError(
                f"X must have shape {widths}, got {X.shape}: the columns of this map, or more of its table, in the "
                f"order of the table; or pass a DataFrame with the columns {names}"
            )
        if len(layout) > len(used):
            places = {column: i for i, column in enumerate(layout)}
            X = X[..., np.array([places[column] for column in used])]
        if isinstance(X, np.ndarray):
            X = jax.device_put(_numbers(X, _dtype_of(self.feature_map), "X"))
        return self.feature_map(X)

    def _by_name(self, frame: Any) -> np.ndarray:
        """Return the columns of the map from a DataFrame, or a table of Arrow, as (rows, dim)."""
        header = getattr(frame, "column_names", frame.columns)
        places = {str(name): name for name in header}
        categories = {
            f"{name}={value}": (name, value, values)
            for name, values in self.categories or ()
            for value in values
        }
        dtype = _dtype_of(self.feature_map)
        names = [self.columns[i] for i in self.layouts[0]]
        missing = []
        arrays = []
        for name in names:
            source, value, values = categories.get(name, (name, None, ()))
            if source not in places:
                missing.append(source)
                continue
            array = _array(frame[places[source]], source)
            if value is not None:
                array = _indicator(array, source, value, values)
            arrays.append(_numbers(array, dtype, source))
        if missing:
            missing = list(dict.fromkeys(missing))
            raise ValueError(
                f"X lacks {len(missing)} of the columns of this map: {_listed(missing)}; pass a DataFrame with these "
                "names"
            )
        return np.stack(arrays, axis=-1)


def _indicator(
    cells: np.ndarray, name: str, value: str, values: Sequence[str]
) -> np.ndarray:
    """Return 1 where a cell of text is a value, 0 where it is another one, and NaN where it is missing."""
    words, codes = np.unique(cells.astype(str), return_inverse=True)
    numbers = []
    for word in map(str.strip, words.tolist()):
        is_missing = word.lower() in _MISSING
        if not is_missing and word not in values:
            raise ValueError(
                f"{name!r} holds {word[:60]!r}, which was not in the table of this map; pass one of {_listed(values)}"
            )
        numbers.append(np.nan if is_missing else float(word == value))
    return np.array(numbers)[codes]


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - 8:,} more" if len(names) > 8 else ""
    return ", ".join(map(repr, names[:8])) + more


def _dtype_of(phi: Any) -> Any:
    """Return the dtype of the largest array of floating numbers."""
    leaves = [
        leaf
        for leaf in jax.tree.leaves(phi)
        if jnp.issubdtype(getattr(leaf, "dtype", int), jnp.floating)
    ]
    if not leaves:
        return jnp.result_type(float)
    return max(leaves, key=lambda leaf: leaf.size).dtype


def _array(values: Any, name: str) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name!r} is no table of numbers: {error}") from None
    # A cast of masked, complex or other entries would lose something.
    is_masked = isinstance(values, np.ma.MaskedArray)
    if is_masked or array.dtype.kind not in "biufOUST":
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
