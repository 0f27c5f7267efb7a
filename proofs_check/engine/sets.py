"""Common sets for the adversary: the nearest member in floats, and an exact member, in balls, close to given floats.

A search moves in floats, where a projection lands next to its set: rows that are orthonormal up to a rounding. What is
proved must be about members, so `exact` leads there without rounding, by a formula that it `says`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.linalg import matmul
from proofs_check.engine import enclosures


@dataclass(frozen=True)
class Set:
    """A set of arrays: called, it returns the nearest member of a JAX array.

    Attributes
    ----------
    says : what the exact member is, of the floats x that are printed; empty where floats are members themselves.
    nearest : the projection, and the identity on members.
    exact : a member close to an array of balls, in balls; the identity on members.
    """

    says: str
    nearest: Callable[[jax.Array], jax.Array]
    exact: Callable[[np.ndarray], np.ndarray]

    def __call__(self, x: jax.Array) -> jax.Array:
        """Return the nearest member."""
        return self.nearest(x)


def box(low: float, high: float) -> Set:
    """Return the arrays with entries in [low, high], of any shape; an end may be infinite."""

    def clipped(x: np.ndarray) -> np.ndarray:
        lower, upper = enclosures.ball(low), enclosures.ball(high)
        clip = np.frompyfunc(
            lambda entry: lower if entry < lower else upper if entry > upper else entry,
            1,
            1,
        )
        found: np.ndarray = clip(x)
        return found

    return Set("", lambda x: jnp.clip(x, low, high), clipped)


def positive(least: float = 0.0) -> Set:
    """Return the arrays with entries of at least this number, of any shape."""
    return box(least, np.inf)


def simplex() -> Set:
    """Return the vectors with entries of at least 0 and sum 1."""

    def exact(x: np.ndarray) -> np.ndarray:
        clipped = box(0.0, np.inf).exact(x)
        return clipped / clipped.sum()

    return Set("x over its sum", nearest_shares, exact)


def sphere() -> Set:
    """Return the arrays of Euclidean (Frobenius) norm 1, of any shape."""

    def length(x: Any, sqrt: Callable[[Any], Any]) -> Any:
        return x / sqrt((x * x).sum())

    return Set(
        "x over its norm", lambda x: length(x, jnp.sqrt), lambda x: length(x, np.sqrt)
    )


def unit_trace() -> Set:
    """Return the square matrices of trace 1."""

    def moved(x: Any, identity: Any) -> Any:
        return x + (1 - x.trace()) / len(x) * identity

    return Set(
        "x plus a multiple of the identity",
        lambda x: moved(x, jnp.eye(len(x), dtype=x.dtype)),
        lambda x: moved(x, _identity(len(x))),
    )


def psd(trace: float | None = None) -> Set:
    """Return the symmetric positive semidefinite matrices, of a trace where one is given."""

    def nearest(x: jax.Array) -> jax.Array:
        values, vectors = jnp.linalg.eigh((x + x.T) / 2)
        values = (
            jnp.maximum(values, 0)
            if trace is None
            else trace * nearest_shares(values / trace)
        )
        return matmul(vectors * values[None, :], vectors.T)

    def exact(x: np.ndarray) -> np.ndarray:
        middle = (x + x.T) / 2
        least = enclosures.eigenvalues(middle)[0].lower()
        if not least >= 0:
            middle = middle - least * _identity(len(x))
        return (
            middle
            if trace is None
            else middle * (enclosures.ball(trace) / middle.trace())
        )

    scaled = "" if trace is None else f", scaled to trace {trace:g}"
    return Set(
        f"(x + x^T) / 2, plus what makes its least eigenvalue 0 where that is negative{scaled}",
        nearest,
        exact,
    )


def orthonormal_rows() -> Set:
    """Return the matrices with orthonormal rows, no more of them than columns."""

    def nearest(x: jax.Array) -> jax.Array:
        left, _, right = jnp.linalg.svd(x, full_matrices=False)
        return matmul(left, right)

    def exact(x: np.ndarray) -> np.ndarray:
        rows: list[np.ndarray] = []
        for row in x:
            for other in rows:
                row = row - (row @ other) * other
            rows.append(row / np.sqrt(row @ row))
        return np.array(rows, dtype=object)

    return Set(
        "the rows of x made orthonormal, from the first on (Gram-Schmidt)",
        nearest,
        exact,
    )


def nearest_shares(x: jax.Array) -> jax.Array:
    """Return the nearest vector with entries of at least 0 and sum 1."""
    ordered = -jnp.sort(-x)
    above = (jnp.cumsum(ordered) - 1) / jnp.arange(1, x.shape[0] + 1).astype(x.dtype)
    level = above[jnp.sum(ordered > above) - 1]
    return jnp.maximum(x - level, 0)


def _identity(size: int) -> np.ndarray:
    return enclosures.balls(np.eye(size))
