"""Planted errors: a mutant changes one attribute of the library, everywhere, by 10, 3 or 1 per cent.

`mutants.toml` lists them, and names for each the function here that makes the wrong attribute from the right one.
"""

import functools
import importlib
import inspect
import math
import sys
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


@dataclass(frozen=True)
class Mutant:
    """One planted error, as `mutants.toml` says; `reason` tells why a run cannot see it."""

    name: str
    target: str
    how: str
    size: float
    of: tuple[Any, ...] = ()
    short: bool = False
    local: bool = False
    reason: str = ""

    @property
    def label(self) -> str:
        """Return a name that no other mutant has."""
        return f"{self.name}, {self.size:.0%}"

    @property
    def is_bound(self) -> bool:
        """Tell whether a right-hand side is wrong, and not the library."""
        return self.target.startswith("jaxkern.bounds.")

    @property
    def factor(self) -> float:
        """Return what a number is multiplied by."""
        return 1 - self.size if self.short else 1 + self.size


def mutants() -> list[Mutant]:
    """Return all mutants, in the order of the list, the largest size first."""
    listed = tomllib.loads(
        resources.files("proofs_check.studies")
        .joinpath("mutants.toml")
        .read_text(encoding="utf-8")
    )
    return [
        Mutant(**{**kind, "size": size})
        for kind in listed["kind"]
        for size in listed["sizes"]
    ]


def resolve(target: str) -> tuple[Any, str]:
    """Return the module or class of a target, and the name of the attribute."""
    module, _, path = target.partition(":")
    *classes, name = path.split(".")
    return functools.reduce(getattr, classes, importlib.import_module(module)), name


def wrong_one(mutant: Mutant) -> Any:
    """Return the wrong attribute that a mutant has in the place of the right one."""
    right = getattr(*resolve(mutant.target))
    make = _ARGUMENTS.get(mutant.how) or _after(_RESULTS[mutant.how])
    return functools.wraps(right)(make(right, mutant))


def put(mutant: Mutant, other: Any) -> None:
    """Put another attribute in the place of the one that a mutant changes, and in every module that has imported it."""
    owner, name = resolve(mutant.target)
    right = getattr(owner, name)
    setattr(owner, name, other)
    if not (inspect.isclass(owner) or mutant.local):
        for module in [
            m
            for key, m in sys.modules.items()
            if key.startswith(("jaxkern", "proofs_check", "jax."))
        ]:
            for key in [key for key, value in vars(module).items() if value is right]:
                setattr(module, key, other)


def _after(change: Callable[..., Any]) -> Callable[[Any, Mutant], Any]:
    return lambda right, mutant: (
        lambda *args, **given: change(mutant, right(*args, **given), *args)
    )


def _scaled(mutant: Mutant, tree: Any) -> Any:
    def leaf(x: Any) -> Any:
        whole = jnp.issubdtype(jnp.result_type(x), jnp.integer)
        return math.floor(x * mutant.factor) if whole else x * mutant.factor

    return jax.tree.map(leaf, tree)


def _fields(mutant: Mutant, out: Any, *_: Any) -> Any:
    return replace(
        out, **{name: _scaled(mutant, getattr(out, name)) for name in mutant.of}
    )


def _of_kind(mutant: Mutant, out: Any, given: Any) -> Any:
    return _scaled(mutant, out) if type(given).__name__ in mutant.of else out


def _law(mutant: Mutant, out: Any, given: Any, **_: Any) -> Any:
    there = (
        type(
            importlib.import_module("jaxkern.kernels._spectra").unscaled(given)[0]
        ).__name__
        in mutant.of
    )
    return (
        out._replace(scale=lambda normals: mutant.factor * out.scale(normals))
        if there
        else out
    )


def _chosen(mutant: Mutant, key: jax.Array, like: jax.Array) -> jax.Array:
    """Return for each row whether it is wrong, with probability `size`."""
    return jax.random.bernoulli(
        jax.random.fold_in(key, 2**31), mutant.size, like.shape[:1]
    )


def _repeated(mutant: Mutant, out: Any, *args: Any) -> Any:
    """Put what is before a row in its place."""
    (key,) = (
        a
        for a in args
        if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key)
    )
    return out[jnp.arange(out.shape[0]) - _chosen(mutant, key, out).at[0].set(False)]


def _replaced(mutant: Mutant, out: Any, key: Any, num_points: Any, *_: Any) -> Any:
    others = jax.random.randint(
        jax.random.fold_in(key, 7), out.shape, 0, num_points, out.dtype
    )
    return jnp.where(_chosen(mutant, key, out), others, out)


def _relabelled(mutant: Mutant, out: Any, key: Any, *_: Any) -> Any:
    moved = (out.labels + 1) % out.centers.shape[0]
    return replace(
        out, labels=jnp.where(_chosen(mutant, key, out.labels), moved, out.labels)
    )


def _log_failure(mutant: Mutant, out: Any, *_: Any) -> Any:
    logs = mutant.factor * out.log_failure
    xp: Any = jnp if isinstance(logs, jax.Array) else np
    return replace(
        out,
        probability=-xp.expm1(logs),
        exponent=None if out.exponent is None else -logs,
    )


def _argument(right: Any, mutant: Mutant) -> Any:
    i = mutant.of[0]
    return lambda *args, **given: right(
        *args[:i], _scaled(mutant, args[i]), *args[i + 1 :], **given
    )


def _mixed(right: Any, mutant: Mutant) -> Any:
    def mix(w: Any) -> Any:
        return (1 - mutant.size) * w + mutant.size / w.shape[-1]

    return lambda key, n, weights, **given: right(key, n, mix(weights), **given)


def _next_value(right: Any, mutant: Mutant) -> Any:
    """Return a step of Frequent Directions that shrinks by a value between the right eigenvalue and the next one."""
    fd = importlib.import_module("jaxkern.frequent_directions")

    def wrong(state: Any) -> Any:
        kept, out = state.shrink_at - 1, right(state)
        values, vectors = fd.eigh(fd.matmul(state.buffer, state.buffer.T))
        values = jnp.maximum(values, 0)
        delta = (1 - mutant.size) * values[kept] + mutant.size * values[kept + 1]
        weights = jnp.sqrt(
            jnp.maximum(values[:kept] - delta, 0)
            / jnp.where(values[:kept] > 0, values[:kept], 1)
        )
        rows = fd.matmul(weights[:, None] * vectors[:, :kept].T, state.buffer)
        return replace(
            out,
            buffer=out.buffer.at[:kept].set(rows),
            removed=fd._add(state.removed, delta),
        )

    return wrong


_RESULTS: Mapping[str, Callable[..., Any]] = {
    "result": lambda mutant, out, *_: _scaled(mutant, out),
    "fields": _fields,
    "centred": lambda mutant, out, *args: _fields(mutant, out) if args[4] else out,
    "kernel": lambda mutant, out, *args: _of_kind(mutant, out, args[0]),
    "noise": lambda mutant, out, *args: _of_kind(mutant, out, args[3]),
    "law": _law,
    "uncentred": lambda mutant, out, given: out + mutant.size * (given - out),
    "short_sines": lambda mutant, out, *_: (out[0], (1 - mutant.size) * out[1]),
    "root": lambda mutant, out, *_: (*out[:2], out[2] * mutant.factor**0.5),
    "repeated": _repeated,
    "replaced": _replaced,
    "relabelled": _relabelled,
    "unmatched": lambda mutant, out, a, b: out + mutant.size * (jnp.mean(a != b) - out),
    "log_failure": _log_failure,
}
"""`(mutant, right result, *arguments)` to the wrong result."""
_ARGUMENTS: Mapping[str, Callable[[Any, Mutant], Any]] = {
    "argument": _argument, "mixed": _mixed, "next_value": _next_value,
}  # fmt: skip
"""`(right function, mutant)` to the wrong function."""
