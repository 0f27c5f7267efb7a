"""One trial: a fresh map, drawn and measured on all rows of a table or on a fresh sample of them."""

from __future__ import annotations

import math
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import checks, features
from proofs_check.certify.load import Table, rows_for
from proofs_check.certify.load.table import slices
from proofs_check.certify.maps import Family
from proofs_check.certify.points import Rows
from proofs_check.certify.search import OutOfTime


@dataclass(frozen=True)
class Trials:
    """Draws maps for a table and measures them; what all maps share on all rows is computed once.

    Attributes
    ----------
    key : root of all randomness of trials.
    table, kernel, goal : the table, the kernel, and what the maps shall keep.
    dtype : precision of maps, and of the rows that they get.
    deadline : time.monotonic() after which no trial begins.
    """

    key: Any
    table: Table
    kernel: Any
    goal: Any
    dtype: str
    deadline: float = math.inf
    _shared: list[Any] = field(default_factory=list, repr=False, compare=False)

    @cached_property
    def sample_rows(self) -> int | None:
        """Rows of a fresh sample for each draw; None if all rows of the table are measured."""
        if self.table.rows <= self.goal.most_rows:
            return None
        return self.goal.sample_rows

    def with_key(self, key: Any) -> Trials:
        """Return the same with another root of randomness and no deadline; what all draws share is kept."""
        return replace(self, key=key, deadline=math.inf)

    def draw(self, family: Family, size: int, key: Any, *, shared: bool = False) -> Any:
        """Return the map of this size that a key names, for points as they are in the table.

        With `shared`, its features are the same up to zeros and rounding, and other sizes share its programs.
        """
        key_rows, key_map = jax.random.split(key)
        count = family.num_points(size)
        points = None
        if count:
            rows = rows_for(key_rows, self.table.rows, count)
            points = checks.as_array("rows", self.table.take(rows, self.dtype))
        sizes = family.sizes(size)
        draw = family.shared if shared and family.shared else family.draw
        phi = draw(key_map, self.kernel, points, self.table.dim, self.dtype, sizes)
        # Under jax_enable_x64 the lengthscale is a double. The map computes with it in its own dtype, and a map that
        # is saved in that dtype can be loaded without the switch.
        phi = jax.tree.map(self._in_dtype, phi)
        if not self.table.standardized:
            return phi
        mean = jnp.asarray(self.table.mean, self.dtype)
        scale = jnp.asarray(self.table.scale, self.dtype)
        return features.standardized(phi, mean, scale)

    def trial(self, family: Family) -> Callable[[int, Any, int], float]:
        """Return (size, stage, number) -> the error of a fresh map.

        It raises OutOfTime after the deadline. A sample that does not fit the goal, for example without two classes,
        is a draw that fails.
        """

        def error(size: int, stage: Any, number: int) -> float:
            if time.monotonic() > self.deadline:
                raise OutOfTime
            key = self.named(family.name, stage, size, number)
            key_map, key_sample, key_error = jax.random.split(key, 3)
            try:
                prepared = self.prepared(key_sample)
            except ValueError:
                if self.sample_rows is None:
                    raise
                return math.nan
            phi = self.draw(family, size, key_map, shared=True)
            return float(self.goal.error(key_error, phi, prepared))

        return error

    def prepared(self, key: Any) -> Any:
        """Return what the goal prepares of the rows that a draw is measured on."""
        if self.sample_rows is None:
            return self.all_rows()
        return self.sample(key, self.sample_rows)

    def all_rows(self) -> Any:
        """Return what the goal prepares of all rows."""
        if not self._shared:
            rows = np.arange(self.table.rows)
            prepared = self._prepared(self.named("all rows"), rows)
            self._shared.append(self.goal.lasting(self.named("lasting"), prepared))
        return self._shared[0]

    def sample(self, key: Any, count: int) -> Any:
        """Return what the goal prepares of `count` rows, drawn independently, so that a row may be there twice."""
        key_rows, key_goal = jax.random.split(key)
        words = np.asarray(jax.random.key_data(key_rows)).ravel().tolist()
        rows = np.random.default_rng(words).integers(self.table.rows, size=count)
        return self._prepared(key_goal, np.sort(rows))

    def rows(self, rows: np.ndarray) -> Rows:
        """Return rows by number: in float64, standardised if the table is, and as maps get them."""
        table = self.table
        inputs = table.take(rows, self.dtype, raw=True)
        return Rows(table.take(rows, "float64"), inputs, table.mean, table.scale)

    def blocks(self) -> Iterator[Rows]:
        """Yield all rows in blocks."""
        for part in slices(self.table.rows, self.table.dim):
            yield self.rows(np.arange(part.start, part.stop))

    def named(self, *names: Any) -> Any:
        """Return the key of a part of the randomness."""
        return jax.random.fold_in(self.key, zlib.crc32(repr(names).encode()))

    def _prepared(self, key: Any, rows: np.ndarray) -> Any:
        labels = None
        if self.table.labels is not None:
            # By name: what a goal says of classes is read by people.
            labels = np.array(self.table.label_names)[self.table.labels[rows]]
        return self.goal.prepare(key, self.rows(rows), labels)

    def _in_dtype(self, leaf: Any) -> Any:
        is_double = getattr(leaf, "dtype", None) == "float64"
        return leaf.astype(self.dtype) if is_double else leaf
