"""Functions as programs of XLA: written out where they are part of one, with options where they are called alone."""

import contextlib
import functools
import operator
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import numpy as np
from jax import lax

Function = TypeVar("Function", bound=Callable[..., Any])

_EIGEN = {"xla_cpu_experimental_ynn_fusion_type": ""}
"""Matrix products by Eigen, and none by YNNPACK, with which loops over blocks take up to 1.6 times as long."""
_LARGE = 2**18  # numbers in an array


def inlined(function: Function) -> Function:
    """Return a function that is one program where it is called by itself, and written out where it is part of one."""
    return jax.jit(function, inline=True)  # type: ignore[return-value]


def blockwise(function: Function, **options: Any) -> Function:
    """Return a jitted function of arrays that multiplies block by block; on a CPU by Eigen, where it is called alone.

    XLA takes options for whole programs only: within another one, its own hold. Small arrays do not gain by it.
    """
    within = jax.jit(function, **options)
    alone = functools.cache(
        lambda: jax.jit(function, compiler_options=known(**_EIGEN), **options)
    )

    @functools.wraps(within)
    def call(*given: Any, **static: Any) -> Any:
        leaves = jax.tree.leaves(given)
        large = jax.default_backend() == "cpu" and any(
            getattr(leaf, "size", 1) >= _LARGE for leaf in leaves
        )
        by_itself = (
            large
            and not any(map(_is_traced, leaves))
            and not _is_traced(lax.neg(np.float32(1)))
        )
        return (alone() if by_itself else within)(*given, **static)

    return call  # type: ignore[return-value]


def _is_traced(value: Any) -> bool:
    """Tell whether a value is a tracer; what is computed of constants is one, too, where a program is being traced."""
    return isinstance(value, jax.core.Tracer)


@functools.cache
def known(**options: Any) -> dict[str, Any]:
    """Return those options of the compiler that this XLA knows, by the flags of a CPU; none on other platforms."""
    found = {}
    for name, value in options.items() if jax.default_backend() == "cpu" else ():
        with contextlib.suppress(jax.errors.JaxRuntimeError):
            jax.jit(operator.neg, compiler_options={name: value})(1.0)
            found[name] = value
    return found
