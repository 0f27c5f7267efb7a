"""Frozen dataclasses as PyTrees.

`jax.tree_util.register_dataclass` is not used: in jax 0.10 and 0.11 the tree structures of two *different* registered
dataclasses with equally many fields compare equal. Their hashes differ, so a `jit` cache returns the program compiled
for the other class only when two hashes fall together: rarely, silently, and differently in every process.
Structures of `register_pytree_with_keys` compare the class as well.
"""

import dataclasses
from typing import Any, TypeVar, dataclass_transform

import jax

__all__ = ["pytree", "static"]

_T = TypeVar("_T", bound=type)

CLASSES: dict[str, type] = {}
"""Every class that may be named in a file, by its public name."""


def public_name(cls: type) -> str:
    """Return the dotted name of a class without the private modules in it, as in `jaxkern.features.Nystrom`."""
    return ".".join(part for part in cls.__module__.split(".") if not part.startswith("_")) + f".{cls.__qualname__}"


def remember(cls: _T) -> _T:
    """Enter a PyTree class or a NamedTuple in `CLASSES`; one defined inside a function cannot be found again."""
    if "<locals>" not in cls.__qualname__:
        CLASSES[public_name(cls)] = cls
    return cls


def static(**options: Any) -> Any:
    """Declare a dataclass field that is part of the tree structure: hashable, and known while tracing."""
    return dataclasses.field(**options, metadata={"static": True})


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, static))
def pytree(cls: _T) -> _T:
    """Make a class a frozen dataclass and a PyTree, whose leaves are the fields not declared `static`.

    Rebuilding one from its leaves runs no validation, so that placeholders pass.
    """
    dataclasses.dataclass(frozen=True, eq=False)(cls)
    fields = dataclasses.fields(cls)
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    statics = tuple(f.name for f in fields if f.metadata.get("static"))

    def flatten_with_keys(instance: Any) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        children = tuple((jax.tree_util.GetAttrKey(name), getattr(instance, name)) for name in leaves)
        return children, tuple(getattr(instance, name) for name in statics)

    def flatten(instance: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(instance, name) for name in leaves), tuple(getattr(instance, name) for name in statics)

    def unflatten(aux: tuple[Any, ...], children: Any) -> Any:
        instance: Any = object.__new__(cls)
        for name, value in (*zip(leaves, children, strict=True), *zip(statics, aux, strict=True)):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return remember(cls)
