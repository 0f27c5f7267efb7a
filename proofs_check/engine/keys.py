"""Random keys of a trial: each is used once, for one draw, for one split, or to be folded with different numbers.

JAX's own checker does not count `fold_in` as a use, and so lets a key draw counts and number the rows of a matrix.
"""

from collections import defaultdict
from typing import Any

import jax
import jax.numpy as jnp
from jax.interpreters import partial_eval

_SAME = ("squeeze", "reshape", "broadcast_in_dim", "transpose")
_PARTS = ("slice", "dynamic_slice", "gather", "concatenate")


def used_twice(jaxpr: Any) -> list[str]:
    """Return what is done with each key of a program that is used more than once.

    What `jax.random` has compiled counts as one use of its key, whatever it does with it, and so do the two loops of
    `jax.random.binomial`, of which one decides.
    """
    uses: dict[Any, list[str]] = defaultdict(list)
    _collect(jaxpr, {}, uses)
    return [
        " and ".join(found)
        for found in uses.values()
        if len(found) > 1 and not _allowed(found)
    ]


def _allowed(found: list[str]) -> bool:
    folded = all(use.startswith("fold_in of ") for use in found) and len(
        set(found)
    ) == len(found)
    return folded or found == ["while", "while"]


def _collect(jaxpr: Any, names: dict[Any, Any], uses: dict[Any, list[str]]) -> None:
    """Add the uses of all keys. `names` says where a key comes from: equal names are equal keys."""
    for eqn in jaxpr.eqns:
        keys = [
            v
            for v in eqn.invars
            if jnp.issubdtype(getattr(v.aval, "dtype", int), jax.dtypes.prng_key)
        ]
        given, called = (
            tuple(names.get(v, v) for v in keys),
            str(eqn.params.get("name", eqn.primitive)).lstrip("_"),
        )
        bodies = [
            getattr(v, "jaxpr", v)
            for v in jax.tree.leaves(eqn.params, is_leaf=is_jaxpr)
            if is_jaxpr(v)
        ]
        if eqn.primitive.name in ("jit", "pjit") and not hasattr(jax.random, called):
            inner = {
                v: names.get(w, w)
                for v, w in zip(bodies[0].invars, eqn.invars, strict=True)
                if w in keys
            }
            _collect(bodies[0], inner, uses)
            names |= {
                v: inner[w]
                for v, w in zip(eqn.outvars, bodies[0].outvars, strict=True)
                if w in inner
            }
            continue
        if called == "random_fold_in":
            called = f"fold_in of {getattr(eqn.invars[1], 'val', 'many numbers')}"
        part, same = called in _PARTS, called in _SAME
        for i, v in enumerate(eqn.outvars):
            names[v] = (
                given[0]
                if same and given
                else (called, given, str(eqn.params) if part else i)
            )
        for key in () if part or same else given:
            uses[key].append(called)
        for body in () if hasattr(jax.random, called) else bodies:
            _collect(body, {}, uses)


def reaches_result(program: Any) -> bool:
    """Tell whether the first argument of a traced program, such as its key, has a part in the result."""
    jaxpr = program.jaxpr
    _, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    return used[0]


def is_jaxpr(value: Any) -> bool:
    """Tell whether a value is a program, or one with its constants."""
    return hasattr(value, "eqns")
