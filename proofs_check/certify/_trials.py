"""One trial: a fresh map, drawn and measured on all rows of a table or on a fresh sample of them."""

import math
import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import features
from proofs_check.certify._clock import CELLS, Clock
from proofs_check.certify._model import Family, Goal
from proofs_check.certify._rows import Rows, compiled
from proofs_check.certify._table import Table, rows_for

READ_CELLS = 2**18
"""Numbers of the rows that are read at once."""
TIMED_ROWS = 4096
TIMES = 3
_FEW = 256
"""Features are filled up to this number."""


class Trials:
    """Draws maps for a table and measures them; what all maps share on all rows is computed once.

    `table` is a Table, `kernel` a kernel, `goal` a Goal, `dtype` that of maps and points, and `key` the root of all
    randomness but that of the map which is recommended.
    """

    def __init__(self, key: Any, table: Table, kernel: Any, goal: Goal, dtype: str) -> None:
        self.table = table
        self.kernel = kernel
        self.goal = goal
        self.dtype = dtype
        self._key = key
        self._all: Any = None
        self._seconds: dict[tuple[str, int], float] = {}
        self._bytes: dict[tuple[str, int], int] = {}
        self._timed: tuple[float, int, int] | None = None
        self._prepares: dict[int, float] = {}

    def draw(self, family: Family, size: int, key: Any, *, shared: bool = False) -> Any:
        """Return the map of this size that a key names, of points as they are in the table.

        `shared` asks for one with the same features, up to zeros and rounding, whose programs other sizes share.
        """
        key_rows, key_map = _split(key, 2)
        count = family.num_points(size)
        points = None
        if count:
            points = jnp.asarray(self.table.take(rows_for(key_rows, self.table.rows, count), self.dtype))
        make = family.first if shared and family.first is not None else family.draw
        phi = make(key_map, self.kernel, points, self.table.dim, self.dtype, family.sizes(size))
        # A lengthscale that went through jit is a double under jax_enable_x64. The map computes with it in its own
        # dtype, and one that is saved in that dtype can be loaded without the switch.
        phi = jax.tree.map(partial(_single, dtype=self.dtype), phi)
        if not self.table.standardized:
            return phi
        return features.standardized(phi, *(jnp.asarray(x, self.dtype) for x in (self.table.mean, self.table.scale)))

    def trial(self, family: Family, sample: int | None, attempt: int = 0) -> Callable[[int, Any, int], float]:
        """Return (size, stage, number) -> error of a fresh map, on all rows or on a fresh sample of `sample` rows.

        The draws of different attempts are independent.
        """

        def error(size: int, stage: Any, number: int) -> float:
            key = self._named(family.name, sample, attempt, stage, size)
            key_map, key_sample, key_error = _split(key, 3, number)
            try:
                prepared = self.all_rows() if sample is None else self.sample(key_sample, sample)
            except ValueError:
                if sample is None:
                    raise  # the data do not fit the goal
                return math.nan  # this sample does not, such as one without two classes: the draw has failed
            return float(self.goal.error(key_error, self.draw(family, size, key_map, shared=True), prepared))

        return error

    def timed(self, family: Family, size: int, count: int | None, clock: Clock) -> tuple[float, float]:
        """Return the seconds of preparing a sample of `count` rows, 0 for all, and of one error, without compiling.

        Raises ValueError where the data do not fit the goal, TimeoutError where no time of the clock is left.
        """
        key_map, key_sample, key_error = _split(self._named("timed", family.name), 3)
        clone = jax.random.clone
        seconds: list[float] = []

        def step(call: Callable[..., Any], *arguments: Any) -> Any:
            if not clock.left:
                raise TimeoutError
            start = time.perf_counter()
            result = call(*arguments)
            seconds.append(max(time.perf_counter() - start, 1e-4))
            return result

        for _ in range(2):  # the first time compiles
            seconds.clear()
            prepared = step(self.all_rows) if count is None else step(self.sample, clone(key_sample), count)
            phi = step(partial(self.draw, shared=True), family, size, clone(key_map))
            step(self.goal.error, clone(key_error), phi, prepared)
        self._timed = sum(seconds), size, count or self.table.rows
        return seconds[0], seconds[1] + seconds[2]

    def preparing(self, count: int, growth: float) -> float:
        """Return about the seconds of preparing `count` rows, judged by the largest sample so far; 0 before one."""
        known = max(self._prepares, default=count)
        return self._prepares.get(known, 0.0) * (count / known) ** growth

    def expected(self, family: Family, size: int, count: int = 0, growth: float = 2.0) -> float:
        """Return about the seconds of a trial of `count` rows, by the one that was timed, infinite before.

        They grow as a power of the rows, and as the size, or where there are landmarks, as its cube: eigenvectors.
        """
        if self._timed is None:
            return math.inf
        seconds, timed, rows = self._timed
        more = max(max(size, _FEW) / max(timed, _FEW), 1.0) ** (3 if family.num_points(size) else 1)
        return seconds * max(count / rows, 1.0) ** growth * more

    def cost(self, family: Family, size: int, seconds: float = math.inf) -> float | None:
        """Return the seconds of mapping a million rows, measured once for every size.

        None where that is expected to take longer than `seconds`, or no time is left.
        """
        if (family.name, size) not in self._seconds and (seconds <= 0 or self.expected(family, size) > seconds):
            return None
        at = family.name, size
        if at not in self._seconds:
            phi = self.draw(family, size, self._named("cost", *at))
            self._seconds[at] = self.seconds_per_million(phi)
            self._bytes[at] = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(phi) if hasattr(x, "dtype"))
        return self._seconds[at]

    def costs(self, family: Family) -> dict[int, float]:
        """Return all of them that were measured, by size."""
        return {size: seconds for (name, size), seconds in self._seconds.items() if name == family.name}

    def map_bytes(self, family: Family, size: int) -> int | None:
        """Return the bytes of the arrays of a map whose cost was measured."""
        return self._bytes.get((family.name, size))

    def all_rows(self) -> Any:
        """Return what the goal prepares of all rows."""
        if self._all is None:
            prepared = self._prepared(self._named("all rows"), np.arange(self.table.rows))
            lasting = getattr(self.goal, "lasting", None)
            self._all = prepared if lasting is None else lasting(self._named("lasting"), prepared)
        return self._all

    def sample(self, key: Any, count: int) -> Any:
        """Return what the goal prepares of `count` rows, drawn independently, so that a row may be there twice."""
        key_rows, key_goal = _split(key, 2)
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key_rows)).ravel().tolist())
        start = time.perf_counter()
        prepared = self._prepared(key_goal, np.sort(rng.integers(self.table.rows, size=count)))
        self._prepares[count] = time.perf_counter() - start
        return prepared

    def seconds_per_million(self, phi: Any) -> float:
        """Return the time of mapping a million rows on this device, by the median of a few blocks."""
        count = min(TIMED_ROWS, self.table.rows, max(CELLS // 4 // self.table.dim, 64))
        block = jnp.asarray(self.table.take(np.arange(count), self.dtype, raw=True))
        jax.block_until_ready(_apply(phi, block))
        seconds = []
        for _ in range(TIMES):
            start = time.perf_counter()
            jax.block_until_ready(_apply(phi, block))
            seconds.append(time.perf_counter() - start)
        return float(np.median(seconds)) / count * 1e6

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


@compiled
def _apply(phi: Any, points: jax.Array) -> jax.Array:
    return phi(points)


def _single(leaf: Any, *, dtype: str) -> Any:
    """Return a leaf of a map with a double in it as one of the map's dtype, and any other as it is."""
    return leaf.astype(dtype) if getattr(leaf, "dtype", None) == "float64" else leaf
