"""One trial: a fresh map, drawn and measured on all rows of a table or on a fresh sample of them."""

import math
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks, features
from proofs_check.certify._clock import Clock
from proofs_check.certify._model import Family, Goal
from proofs_check.certify._rows import Rows, compiled
from proofs_check.certify.load.table import Table, rows_for

READ_CELLS = 2**18
"""Numbers of the rows that are read at once."""


class Trials:
    """Draws maps for a table and measures them; what all maps share on all rows is computed once.

    `table` is a Table, `kernel` a kernel, `goal` a Goal, `dtype` that of maps and points, and `key` the root of all
    randomness but that of the map which is recommended.
    """

    def __init__(
        self, key: Any, table: Table, kernel: Any, goal: Goal, dtype: str
    ) -> None:
        self.table = table
        self.kernel = kernel
        self.goal = goal
        self.dtype = dtype
        self._key = key
        self._all: Any = None

    def draw(self, family: Family, size: int, key: Any, *, shared: bool = False) -> Any:
        """Return the map of this size that a key names, of points as they are in the table.

        `shared` asks for one with the same features, up to zeros and rounding, whose programs other sizes share.
        """
        key_rows, key_map = _split(key, 2)
        count = family.num_points(size)
        points = None
        if count:
            points = checks.as_array(
                "rows",
                self.table.take(rows_for(key_rows, self.table.rows, count), self.dtype),
            )
        make = family.first if shared and family.first is not None else family.draw
        phi = make(
            key_map, self.kernel, points, self.table.dim, self.dtype, family.sizes(size)
        )
        # A lengthscale that went through jit is a double under jax_enable_x64. The map computes with it in its own
        # dtype, and one that is saved in that dtype can be loaded without the switch.
        phi = jax.tree.map(partial(_single, dtype=self.dtype), phi)
        if not self.table.standardized:
            return phi
        return features.standardized(
            phi,
            *(jnp.asarray(x, self.dtype) for x in (self.table.mean, self.table.scale)),
        )

    def trial(
        self, family: Family, sample: int | None, attempt: int = 0
    ) -> Callable[[int, Any, int], float]:
        """Return (size, stage, number) -> error of a fresh map, on all rows or on a fresh sample of `sample` rows.

        The draws of different attempts are independent.
        """

        def error(size: int, stage: Any, number: int) -> float:
            key = self._named(family.name, sample, attempt, stage, size)
            key_map, key_sample, key_error = _split(key, 3, number)
            try:
                prepared = (
                    self.all_rows()
                    if sample is None
                    else self.sample(key_sample, sample)
                )
            except ValueError:
                if sample is None:
                    raise  # the data do not fit the goal
                return math.nan  # this sample does not, such as one without two classes: the draw has failed
            return float(
                self.goal.error(
                    key_error, self.draw(family, size, key_map, shared=True), prepared
                )
            )

        return error

    @property
    def is_prepared(self) -> bool:
        """Tell whether what the goal prepares of all rows is there."""
        return self._all is not None

    def map_bytes(self, family: Family, size: int) -> int:
        """Return the bytes of the arrays of a map, which is not drawn."""
        points = jax.ShapeDtypeStruct(
            (family.num_points(size), self.table.dim), self.dtype
        )

        def draw(key: Any, points: Any) -> Any:
            return family.draw(
                key, self.kernel, points, self.table.dim, self.dtype, family.sizes(size)
            )

        leaves = jax.tree.leaves(jax.eval_shape(draw, self._named("bytes"), points))
        return sum(leaf.size for leaf in leaves) * np.dtype(self.dtype).itemsize

    def look(self, count: int) -> None:
        """Prepare a few rows, for what it takes."""
        self.sample(self._named("look"), count)

    def all_rows(self) -> Any:
        """Return what the goal prepares of all rows."""
        if self._all is None:
            prepared = self._prepared(
                self._named("all rows"), np.arange(self.table.rows)
            )
            lasting = getattr(self.goal, "lasting", None)
            self._all = (
                prepared
                if lasting is None
                else lasting(self._named("lasting"), prepared)
            )
        return self._all

    def sample(self, key: Any, count: int) -> Any:
        """Return what the goal prepares of `count` rows, drawn independently, so that a row may be there twice."""
        key_rows, key_goal = _split(key, 2)
        rng = np.random.default_rng(
            np.asarray(jax.random.key_data(key_rows)).ravel().tolist()
        )
        return self._prepared(
            key_goal, np.sort(rng.integers(self.table.rows, size=count))
        )

    def _prepared(self, key: Any, rows: np.ndarray) -> Any:
        labels = None if self.table.labels is None else self.table.labels[rows]
        return self.goal.prepare(key, self.rows(rows), labels)

    def rows(self, rows: np.ndarray) -> Rows:
        """Return rows by number: in float64, standardised where they are, and as maps get them."""
        table, inputs = self.table, self.table.take(rows, self.dtype, raw=True)
        return Rows(table.take(rows, "float64"), inputs, table.mean, table.scale)

    def blocks(self, clock: Clock) -> Iterator[Rows]:
        """Yield all rows. Raises TimeoutError where no time of the clock is left."""
        size = max(READ_CELLS // self.table.dim, 1)
        for start in range(0, self.table.rows, size):
            if not clock.left:
                raise TimeoutError
            yield self.rows(np.arange(start, min(start + size, self.table.rows)))

    def _named(self, *names: Any) -> Any:
        return jax.random.fold_in(self._key, zlib.crc32(repr(names).encode()))


@partial(compiled, static_argnums=1)
def _split(key: Any, count: int, *numbers: int) -> tuple[Any, ...]:
    """Return the keys that `jax.random` splits off a key after folding in numbers, by one program and not several."""
    for number in numbers:
        key = jax.random.fold_in(key, number)
    return tuple(jax.random.split(key, count))


def _single(leaf: Any, *, dtype: str) -> Any:
    """Return a leaf of a map with a double in it as one of the map's dtype, and any other as it is."""
    return leaf.astype(dtype) if getattr(leaf, "dtype", None) == "float64" else leaf
