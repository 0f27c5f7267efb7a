"""What the papers share: what a run tries their statements on, and the right-hand side of what holds always."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from jaxkern.bounds import Bound
from proofs_check.papers.populations import Population


@dataclass(frozen=True, eq=False)
class Scope:
    """What a run tries statements on: a user's data in the place of synthetic ones, and more settings where `full`."""

    data: Population | None = None
    full: bool = False

    @property
    def logs(self) -> tuple[float, ...]:
        """Minus the logarithms of the tiny probabilities that are tried."""
        return (10.0, 20.0, 40.0, 80.0) if self.full else (10.0, 40.0)


def always(value: Any, source: str) -> Bound:
    """Return a bound that is claimed to hold always."""
    return Bound(float(value), 1.0, True, source)


def rng_of(key: jax.Array) -> np.random.Generator:
    """Return NumPy's generator with the bits of a key as its seed."""
    return np.random.default_rng(np.asarray(jax.random.key_data(key)))


def op_norm(A: np.ndarray) -> float:
    """Return the operator norm of a matrix."""
    return float(np.linalg.norm(A, 2))


def parametrized(kind: Callable[..., Any], **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Turn a function of a setting and of parameters into one of the parameters alone that makes a statement."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda **parameters: kind(functools.partial(function, **parameters), **options)

    return decorate
