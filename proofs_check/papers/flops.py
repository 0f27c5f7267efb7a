"""Multiply-adds of a traced function, counted from its jaxpr: loops and maps included."""

import math
from collections.abc import Callable
from typing import Any

import jax

from proofs_check.engine import keys


def multiply_adds(function: Callable[..., Any], *args: Any) -> int:
    """Return the multiply-adds of all matrix products that `function(*args)` performs.

    Nothing is executed: `args` may be `jax.ShapeDtypeStruct`. Of the branches of a condition the dearest counts; of the
    variants for several platforms, which compute the same, the cheapest: others may repeat some rows for speed; of
    those between which rounding decides, that for points near their mean. Sums of differences are no products.
    """
    return _count(jax.make_jaxpr(function)(*args).jaxpr)


def _count(jaxpr: Any) -> int:
    total = 0
    by_rounding: set[Any] = set()
    platforms = set()
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        inputs = [v for v in equation.invars if not hasattr(v, "val")]
        rounded = not by_rounding.isdisjoint(inputs)
        if name == "platform_index":
            platforms.update(equation.outvars)
        elif name == "custom_vmap_call" or (name == "convert_element_type" and rounded):
            by_rounding.update(equation.outvars)
        elif name == "while" and rounded:
            continue  # it corrects what points far from their mean have lost
        elif name == "cond":
            counts = [_count(branch.jaxpr) for branch in equation.params["branches"]]
            index = equation.invars[0]
            if index in by_rounding:
                total += counts[1]
            else:
                total += min(counts) if index in platforms else max(counts)
            continue
        elif name == "dot_general":
            total += _multiply_adds_of_product(equation)
        repeats = equation.params.get("length", 1) if name == "scan" else 1
        parameters = list(equation.params.values())
        for value in jax.tree.leaves(parameters, is_leaf=keys.is_jaxpr):
            if keys.is_jaxpr(value):
                total += repeats * _count(getattr(value, "jaxpr", value))
    return total


def _multiply_adds_of_product(equation: Any) -> int:
    ((contracted, _), _) = equation.params["dimension_numbers"]
    shape = equation.invars[0].aval.shape
    terms = math.prod(shape[i] for i in contracted)
    return math.prod(equation.outvars[0].aval.shape) * terms
