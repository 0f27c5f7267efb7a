"""Planted errors: a mutant changes one attribute of the library, everywhere, by 10, 3 or 1 per cent.

`mutants.toml` lists them, and names for each the function here that makes the wrong attribute from the right one.
"""

import dataclasses
import functools
import importlib
import inspect
import math
import sys
import tomllib
from collections.abc import Callable
from importlib import resources
from typing import Any

import jax
import jax.numpy as jnp


@dataclasses.dataclass(frozen=True)
class Mutant:
    """One planted error; see the comment in `mutants.toml`."""

    name: str
    target: str
    how: str
    size: float
    of: tuple[Any, ...] = ()
    short: bool = False
    local: bool = False

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
    found = tomllib.loads(resources.files("proofs_check.studies").joinpath("mutants.toml").read_text(encoding="utf-8"))
    return [
        Mutant(**{**kind, "of": tuple(kind.get("of", ()))}, size=size)
        for kind in found["kind"]
        for size in found["sizes"]
    ]


def resolve(target: str) -> tuple[Any, str]:
    """Return the module or class of a target, and the name of the attribute."""
    module, _, path = target.partition(":")
    owner: Any = importlib.import_module(module)
    *classes, name = path.split(".")
    return functools.reduce(getattr, classes, owner), name


def plant(mutant: Mutant) -> None:
    """Put the wrong attribute in the place of the right one, and in every module that has imported it."""
    owner, name = resolve(mutant.target)
    right = getattr(owner, name)
    wrong = functools.wraps(right)(HOW[mutant.how](right, mutant))
    setattr(owner, name, wrong)
    if inspect.isclass(owner) or mutant.local:
        return
    for module in [m for key, m in sys.modules.items() if key.partition(".")[0] in ("jaxkern", "proofs_check", "jax")]:
        for key in [key for key, value in vars(module).items() if value is right]:
            setattr(module, key, wrong)


def _scaled(tree: Any, factor: float) -> Any:
    def leaf(x: Any) -> Any:
        return x * factor if jnp.issubdtype(jnp.result_type(x), jnp.floating) else math.floor(x * factor)

    return jax.tree.map(leaf, tree)


def _after(change: Callable[..., Any]) -> Callable[[Any, Mutant], Any]:
    """Return what wraps a function so that `change(its result, mutant, *its arguments)` is returned."""

    def wrap(right: Any, mutant: Mutant) -> Any:
        return lambda *args, **given: change(right(*args, **given), mutant, *args)

    return wrap


def _fields(out: Any, mutant: Mutant, *_: Any) -> Any:
    return dataclasses.replace(out, **{name: _scaled(getattr(out, name), mutant.factor) for name in mutant.of})


def _law(out: Any, mutant: Mutant, *args: Any) -> Any:
    from jaxkern.kernels._spectra import unscaled

    there = type(unscaled(args[0])[0]).__name__ in mutant.of
    return out._replace(scale=lambda normals: mutant.factor * out.scale(normals)) if there else out


def _repeated(out: Any, mutant: Mutant, *args: Any) -> Any:
    """Give each row but the first that of the one before it with probability `size`; the key is an argument."""
    key = next(a for a in args if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key))
    again = jax.random.bernoulli(jax.random.fold_in(key, 2**31), mutant.size, (out.shape[0],)).at[0].set(False)
    return out[jnp.arange(out.shape[0]) - again]


def _replaced(out: Any, mutant: Mutant, *args: Any) -> Any:
    key_which, key_where = jax.random.split(jax.random.fold_in(args[0], 2**31))
    others = jax.random.randint(key_where, out.shape, 0, args[1], out.dtype)
    return jnp.where(jax.random.bernoulli(key_which, mutant.size, out.shape), others, out)


def _relabelled(out: Any, mutant: Mutant, *args: Any) -> Any:
    moved = jax.random.bernoulli(jax.random.fold_in(args[0], 2**31), mutant.size, out.labels.shape)
    return dataclasses.replace(out, labels=jnp.where(moved, (out.labels + 1) % out.centers.shape[0], out.labels))


def _kind_of(place: int) -> Callable[..., Any]:
    """Return what scales a result where the class of an argument is one of those that are named."""
    return lambda out, mutant, *args: mutant.factor * out if type(args[place]).__name__ in mutant.of else out


def _log_failure(out: Any, mutant: Mutant, *_: Any) -> Any:
    xp = jnp if isinstance(out.probability, jax.Array) else math
    failure = 1 - out.probability
    if hasattr(out, "log_failure"):
        logs = out.log_failure * mutant.factor
        return dataclasses.replace(out, probability=-xp.expm1(logs), log_failure=logs)
    return dataclasses.replace(out, probability=1 - failure**mutant.factor)


def _argument(right: Any, mutant: Mutant) -> Any:
    place = int(mutant.of[0])

    def wrong(*args: Any, **given: Any) -> Any:
        return right(*args[:place], _scaled(args[place], mutant.factor), *args[place + 1 :], **given)

    return wrong


def _mixed(right: Any, mutant: Mutant) -> Any:
    """Mix the shares that are an argument with equal ones."""
    place = int(mutant.of[0])

    def wrong(*args: Any, **given: Any) -> Any:
        shares = (1 - mutant.size) * args[place] + mutant.size / args[place].shape[-1]
        return right(*args[:place], shares, *args[place + 1 :], **given)

    return wrong


def _next_value(right: Any, mutant: Mutant) -> Any:
    """Shrink by a value between the right eigenvalue and the next one."""
    from jaxkern import frequent_directions as fd

    def wrong(state: Any) -> Any:
        kept, out = state.shrink_at - 1, right(state)
        values, vectors = fd.eigh(fd.matmul(state.buffer, state.buffer.T))
        values = jnp.maximum(values, 0)
        delta = (1 - mutant.size) * values[kept] + mutant.size * values[kept + 1]
        weights = jnp.sqrt(jnp.maximum(values[:kept] - delta, 0) / jnp.where(values[:kept] > 0, values[:kept], 1))
        rows = fd.matmul(weights[:, None] * vectors[:, :kept].T, state.buffer)
        buffer, removed = out.buffer.at[:kept].set(rows), fd._add(state.removed, delta)
        return dataclasses.replace(out, buffer=buffer, removed=removed)

    return wrong


HOW: dict[str, Callable[[Any, Mutant], Any]] = {
    "result": _after(lambda out, mutant, *_: _scaled(out, mutant.factor)),
    "fields": _after(_fields),
    "centred": _after(lambda out, mutant, *args: _fields(out, mutant) if args[4] else out),
    "uncentred": _after(lambda out, mutant, *args: out + mutant.size * (args[0] - out)),
    "law": _after(_law),
    "short_sines": _after(lambda out, mutant, *_: (out[0], (1 - mutant.size) * out[1])),
    "root": _after(lambda out, mutant, *_: (*out[:2], out[2] * mutant.factor**0.5)),
    "repeated": _after(_repeated),
    "replaced": _after(_replaced),
    "relabelled": _after(_relabelled),
    "unmatched": _after(lambda out, mutant, *args: out + mutant.size * (jnp.mean(args[0] != args[1]) - out)),
    "noise": _after(_kind_of(3)),
    "kernel": _after(_kind_of(0)),
    "log_failure": _after(_log_failure),
    "argument": _argument,
    "mixed": _mixed,
    "next_value": _next_value,
}
"""What makes a wrong function from the right one and its mutant."""
