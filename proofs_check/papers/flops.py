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
    by_rounding = set()
    platforms = {
        equation.outvars[0]
        for equation in jaxpr.eqns
        if equation.primitive.name == "platform_index"
    }
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "custom_vmap_call" or (
            name == "convert_element_type" and equation.invars[0] in by_rounding
        ):
            by_rounding.update(equation.outvars)
        if name == "while" and not by_rounding.isdisjoint(
            v for v in equation.invars if not hasattr(v, "val")
        ):
            continue  # it corrects what points far from their mean have lost
        if name == "cond":
            counts = [_count(branch.jaxpr) for branch in equation.params["branches"]]
            which = min if equation.invars[0] in platforms else max
            total += counts[1] if equation.invars[0] in by_rounding else which(counts)
            continue
        if name == "dot_general":
            ((left, _), _) = equation.params["dimension_numbers"]
            shape = equation.invars[0].aval.shape
            total += math.prod(equation.outvars[0].aval.shape) * math.prod(
                shape[i] for i in left
            )
        repeats = equation.params.get("length", 1) if name == "scan" else 1
        for value in jax.tree.leaves(
            list(equation.params.values()), is_leaf=keys.is_jaxpr
        ):
            if keys.is_jaxpr(value):
                total += repeats * _count(getattr(value, "jaxpr", value))
    return total
