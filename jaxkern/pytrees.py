"""Frozen dataclasses as PyTrees.

`jax.tree_util.register_dataclass` is not used: in jax 0.10 and 0.11 the tree structures of two *different* registered
dataclasses with equally many fields compare equal. Their hashes differ, so a `jit` cache returns the program compiled
for the other class only when two hashes fall together: rarely, silently, and differently in every process.
Structures of `register_pytree_with_keys` compare the class as well.
"""

import dataclasses
import functools
import re
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np

__all__ = ["pytree", "static"]

_T = TypeVar("_T", bound=type)

CLASSES: dict[str, type] = {}
"""Every class that may be named in a file, by its public name."""


def public_name(cls: type) -> str:
    """Return the dotted name of a class without the private modules in it, as in `jaxkern.features.Nystrom`."""
    return (
        ".".join(part for part in cls.__module__.split(".") if not part.startswith("_"))
        + f".{cls.__qualname__}"
    )


def remember(cls: _T) -> _T:
    """Enter a PyTree class or a NamedTuple in `CLASSES`; one defined inside a function cannot be found again.

    Its `repr` becomes that of `describe`, unless it has one of its own.
    """
    shown: Any = cls.__repr__
    if shown is object.__repr__ or shown.__module__ == "collections":  # of a NamedTuple
        cls.__repr__ = describe  # type: ignore[assignment]
    if "<locals>" not in cls.__qualname__:
        CLASSES[public_name(cls)] = cls
    return cls


def fields_of(cls: type) -> tuple[str, ...]:
    """Return the names of the fields of a PyTree class or a NamedTuple."""
    if dataclasses.is_dataclass(cls):
        return tuple(field.name for field in dataclasses.fields(cls))
    return getattr(cls, "_fields", tuple(cls.__annotations__))


def describe(value: Any) -> str:
    """Return one line: scalars as they are, arrays as dtype[shape], functions by name, and what holds them."""
    cls: Any = type(value)
    if cls.__repr__ is describe:
        fields = (
            f"{name}={describe(getattr(value, name, '?'))}" for name in fields_of(cls)
        )
        return f"{cls.__qualname__}({', '.join(fields)})"
    if cls in (tuple, list):
        inside = ", ".join(map(describe, value)) + "," * (
            cls is tuple and len(value) == 1
        )
        return f"({inside})" if cls is tuple else f"[{inside}]"
    if cls is dict:
        return (
            "{"
            + ", ".join(f"{key!r}: {describe(item)}" for key, item in value.items())
            + "}"
        )
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        held = isinstance(
            value, np.ndarray | np.generic | jax.Array
        ) and not isinstance(value, jax.core.Tracer)
        held &= not jnp.issubdtype(value.dtype, jax.dtypes.prng_key)
        if held and value.shape == () and not getattr(value, "is_deleted", bool)():
            return str(np.asarray(value)[()])
        kind = re.sub(
            r"^(b?[fuic])[a-z]+(?=\d)", r"\1", str(value.dtype)
        )  # f32, bf16, u8
        return f"{kind}[{','.join(map(str, value.shape))}]"
    name = getattr(value, "__qualname__", None)
    return (
        name
        if callable(value) and isinstance(name, str)
        else " ".join(repr(value).split())
    )


def static(**options: Any) -> Any:
    """Declare a dataclass field that is part of the tree structure: hashable, and known while tracing."""
    return dataclasses.field(**options, metadata={"static": True})


@dataclass_transform(
    frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field, static)
)
def pytree(cls: _T) -> _T:
    """Make a class a frozen dataclass and a PyTree, whose leaves are the fields not declared `static`.

    The constructor copies arrays of NumPy, which their owner may overwrite. Rebuilding an object from its leaves runs
    no validation and copies nothing, so that placeholders pass.
    """
    dataclasses.dataclass(frozen=True, eq=False, repr=False)(cls)
    fields = dataclasses.fields(cls)
    leaves = tuple(f.name for f in fields if not f.metadata.get("static"))
    statics = tuple(f.name for f in fields if f.metadata.get("static"))

    construct = vars(cls)["__init__"]

    @functools.wraps(construct)
    def construct_with_copies(self: Any, *args: Any, **kwargs: Any) -> None:
        construct(self, *args, **kwargs)
        for name in leaves:
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                object.__setattr__(self, name, value.copy())

    cls.__init__ = construct_with_copies  # type: ignore[misc]

    def flatten_with_keys(
        instance: Any,
    ) -> tuple[tuple[tuple[Any, Any], ...], tuple[Any, ...]]:
        children = tuple(
            (jax.tree_util.GetAttrKey(name), getattr(instance, name)) for name in leaves
        )
        return children, tuple(getattr(instance, name) for name in statics)

    def flatten(instance: Any) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        return tuple(getattr(instance, name) for name in leaves), tuple(
            getattr(instance, name) for name in statics
        )

    def unflatten(aux: tuple[Any, ...], children: Any) -> Any:
        instance: Any = object.__new__(cls)
        for name, value in (
            *zip(leaves, children, strict=True),
            *zip(statics, aux, strict=True),
        ):
            object.__setattr__(instance, name, value)
        return instance

    jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
    return remember(cls)
