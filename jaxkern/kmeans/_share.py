"""The rows that a program sees, where the devices of a mesh may share them."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


def table_width(num_points: int) -> int:
    """Return the width of the square table from which seeds are drawn."""
    return math.isqrt(num_points - 1) + 1


class Share(NamedTuple):
    """The rows that a program sees: all N of them, or those of one device along an axis of a mesh.

    Every device then holds equally many rows, a multiple of `table_width(N)`, in the order of the devices; after the
    N points come rows that are none. All devices run the same program, with equal centres.
    """

    num_points: int
    axis: str | None = None

    def sum(self, values: jax.Array) -> jax.Array:
        """Add up what the devices have."""
        return values if self.axis is None else lax.psum(values, self.axis)

    def max(self, values: jax.Array) -> jax.Array:
        """Return the largest of what the devices have."""
        return values if self.axis is None else lax.pmax(values, self.axis)

    def all(self, flags: jax.Array) -> jax.Array:
        """Tell whether all flags of all devices are set."""
        return (
            flags.all()
            if self.axis is None
            else lax.pmin(flags.all().astype(jnp.int32), self.axis) > 0
        )

    def gather(self, values: jax.Array) -> jax.Array:
        """Return the rows of all devices."""
        return (
            values
            if self.axis is None
            else lax.all_gather(values, self.axis, tiled=True)
        )

    def count(self, num_rows: int) -> Any:
        """Return how many of the first `num_rows` rows here are points."""
        if self.axis is None:
            return self.num_points
        return jnp.clip(
            self.num_points - lax.axis_index(self.axis) * num_rows, 0, num_rows
        )

    def points(self, rows: jax.Array) -> jax.Array:
        """Return the rows with zeros in place of those that are no points."""
        if self.axis is None:
            return rows
        inside = lax.iota(jnp.int32, rows.shape[0]) < self.count(rows.shape[0])
        return jnp.where(inside.reshape(-1, *(1,) * (rows.ndim - 1)), rows, 0)

    def local(self, index: jax.Array, num_rows: int) -> jax.Array:
        """Return where row `index` of all is among the rows here: at `num_rows`, outside, if another device has it."""
        if self.axis is None:
            return index
        first = lax.axis_index(self.axis) * num_rows
        at = index - first.astype(index.dtype)  # argmax gives int64 where x64 is on
        return jnp.where((at >= 0) & (at < num_rows), at, num_rows)

    def rows(self, values: jax.Array, num_rows: int) -> jax.Array:
        """Return what those of the rows here are, of the values of all devices."""
        if self.axis is None:
            return values
        return lax.dynamic_slice_in_dim(
            values, lax.axis_index(self.axis) * num_rows, num_rows
        )

    def take(self, rows: jax.Array, index: jax.Array) -> jax.Array:
        """Return rows[index], whoever has them."""
        if self.axis is None:
            return rows[index]
        return lax.psum(
            rows.at[self.local(index, rows.shape[0])].get(mode="fill", fill_value=0),
            self.axis,
        )
