"""What jaxkern shows to its users: modules, functions, methods and classes, found by walking the package."""

import dataclasses
import importlib
import inspect
import pkgutil

import jax

import jaxkern

OPERATORS = {"__call__", "__add__", "__sub__", "__neg__", "__mul__", "__rmul__"}


def modules():
    """Return all modules by name, except those of an optional extra that is not installed."""
    by_name = {}
    for info in pkgutil.walk_packages(jaxkern.__path__, "jaxkern."):
        try:
            by_name[info.name.removeprefix("jaxkern.")] = importlib.import_module(
                info.name
            )
        except ImportError:
            continue
    return by_name


MODULES = modules()
PUBLIC = [name for name in MODULES if "._" not in f".{name}"]


def is_ours(value):
    return (getattr(value, "__module__", None) or "").startswith("jaxkern")


def members(name):
    """Return the public functions and classes of a module by name."""
    module = MODULES[name]
    names = getattr(module, "__all__", None)
    if names is None:
        names = [
            word
            for word, value in vars(module).items()
            if word[0] != "_" and getattr(value, "__module__", "") == module.__name__
        ]
    values = {word: getattr(module, word, None) for word in names}
    return {
        word: value
        for word, value in values.items()
        if callable(value) and is_ours(value)
    }


def functions():
    """Return every public function, method, operator and property by name, except the adapters of scikit-learn."""
    by_name = {}
    for name in PUBLIC:
        if name == "sklearn":
            continue
        for word, value in members(name).items():
            if not inspect.isclass(value):
                by_name[f"{name}.{word}"] = inspect.unwrap(value)
                continue
            for part, method in inspect.getmembers_static(value):  # bases are private
                if isinstance(method, property):
                    method = method.fget
                function = inspect.unwrap(getattr(method, "__func__", method))
                if part in OPERATORS or not part.startswith(("_", "tree_")):
                    by_name[f"{name}.{word}.{part}"] = function
    return {
        name: value
        for name, value in by_name.items()
        if inspect.isfunction(value) and is_ours(value)
    }


def filled(cls):
    """Return an instance with a number in every leaf and a string in every static field, made without validation."""
    instance = object.__new__(cls)
    for number, field in enumerate(dataclasses.fields(cls)):
        is_static = field.metadata.get("static")
        value = f"static {number}" if is_static else jax.numpy.float32(number)
        object.__setattr__(instance, field.name, value)
    return instance


def trees():
    """Return every dataclass of the package that is a PyTree; `plan.Plan` is a leaf."""
    classes = {
        cls
        for module in MODULES.values()
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if is_ours(cls) and dataclasses.is_dataclass(cls)
    }
    branching = [cls for cls in classes if not jax.tree_util.all_leaves([filled(cls)])]
    return sorted(branching, key=lambda cls: (cls.__module__, cls.__name__))
