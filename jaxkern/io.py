"""Save and load PyTrees of the package: fitted maps, kernels, functions, states of streams.

A file is an `.npz` archive: the arrays of the object, and a JSON header that says how they fit together. Reading one
runs no code of the file: nothing is pickled, classes are looked up by name among those of the package, and functions
among those that the reader passes. It takes memory in proportion to the length of the file and no more, since arrays
are neither compressed nor used twice.

Objects must be as their classes declare, when written and when read: shapes, in which equal names are equal sizes
(after the axes of a stack), dtypes and ranges. `_fields.toml` declares them; a class of one's own has its own
`__post_init__` alone. Maps are finite unless they, or what is declared of a field, say that they are not.
"""

import contextlib
import dataclasses
import importlib
import json
import math
import os
import pathlib
import pkgutil
import re
import secrets
import stat
import tomllib
import zipfile
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.pytrees import CLASSES, fields_of, public_name, remember
from jaxkern.rkhs import RandomProjection

__all__ = ["load", "save"]

_FORMAT, _VERSION = "jaxkern", 1
_HEADER = "header"
_LONGEST_HEADER = (
    2**26
)  # bytes; the objects of Python that JSON becomes take some twenty times as much
_LARGEST_EMPTY = 2**28  # entries along the other axes of an array that has none
_SHAPE = re.compile(
    r"(?:positive |non-negative )?(?:\(([^()]*)\)|scalar)(?: (int32|bool))?"
)
_RANGE = re.compile(r" in \[(0|-1), (\w+)([\])])")
_PACKAGE = importlib.import_module("jaxkern")

remember(RandomProjection)


def save(
    path: str | os.PathLike[str],
    obj: Any,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> None:
    """Write an object to a file, from which `load` returns it with every bit and dtype.

    Parameters
    ----------
    path : the file, usually `*.npz`; nothing is appended to the name. A file already there is replaced, in one step:
        whoever reads it, and whatever interrupts the writing, it is the old one or the new one.
    obj : a PyTree class of jaxkern (a fitted map, a kernel, a Function, a state, a result), typed random keys, JAX and
        NumPy arrays, numbers, strings, None, and tuples, lists and dicts of these with strings as keys. A class of
        one's own goes along if `jaxkern.pytrees` made it, and is there again when the file is read.
    functions : names of Python functions in obj, such as that of a `kernels.FromFunction`. The file holds the name
        alone, and `load` asks for the function. One that is not here goes by its `__name__`, which a lambda lacks.

    Raises
    ------
    ValueError
        If some part cannot be saved, such as a function without a name of its own, or is not as its class declares it,
        such as a map fitted to NaN or a negative lengthscale; the part is named. If what is no array takes more than 64
        MiB as text.
    OSError
        If the file cannot be written.

    Notes
    -----
    Arrays are stored uncompressed. Equal objects give equal files. A scalar array whose type is weak comes back strong.

    Examples
    --------
    >>> import jax, pathlib, tempfile
    >>> from jaxkern.kernels import Gaussian
    >>> from jaxkern.features import nystrom
    >>> X = jax.random.normal(jax.random.key(0), (100, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(pathlib.Path(folder) / "map.npz", nystrom(Gaussian(1.0), X[:20]))
    ...     load(pathlib.Path(folder) / "map.npz")(X).shape
    (100, 20)
    """
    arrays: dict[str, np.ndarray] = {}
    tree = _encode(obj, "obj", arrays, _named(functions))
    _validate(obj, "obj")
    header = {
        "format": _FORMAT,
        "version": _VERSION,
        "jaxkern": _PACKAGE.__version__,
        "object": tree,
    }
    text = json.dumps(header).encode()
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"obj holds {len(text):,} bytes of numbers and text outside of arrays, and at most {_LONGEST_HEADER:,} can "
            "be saved; put its numbers into arrays"
        )
    arrays[_HEADER] = np.frombuffer(text, np.uint8)
    path = pathlib.Path(path)
    # In the same folder, so that replacing is a renaming.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def load(
    path: str | os.PathLike[str],
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
) -> Any:
    """Return the object that `save` wrote to a file.

    Parameters
    ----------
    path : the file.
    functions : the Python functions that it has by name, such as `{"my_kernel": my_kernel}`. What they do is not in the
        file, which never decides what is imported or run.

    Raises
    ------
    ValueError
        If the file is of another kind, truncated or damaged, of a newer version, names a function that was not passed,
        a class or field that this version does not have or a value that its class does not allow, or holds float64 or
        int64 arrays of JAX while `jax_enable_x64` is off. If it is a folder, a pipe or a device, or larger than memory.
    OSError
        If the file cannot be read; FileNotFoundError if there is none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from jaxkern.kernels import Gaussian
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(pathlib.Path(folder) / "kernel.npz", Gaussian(0.5))
    ...     load(pathlib.Path(folder) / "kernel.npz").lengthscale
    0.5
    """
    path, named = pathlib.Path(path), _named(functions)
    header, arrays = _read(path)
    if not isinstance(header, dict) or header.get("format") != _FORMAT:
        raise ValueError(
            f"{path} is an .npz archive, but not one written by jaxkern.io.save"
        )
    version = header.get("version")
    if type(version) is not int or not 1 <= version <= _VERSION:
        raise ValueError(
            f"{path} has format version {_plain(version)}, written by jaxkern {_plain(header.get('jaxkern'))}; this "
            f"jaxkern reads versions up to {_VERSION}, upgrade it"
        )
    try:
        value = _decode(header["object"], arrays, named)
        _validate(value, "it")
        return value
    except (
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ValueError(
            f"{path} is damaged: its header and its arrays do not fit together"
        ) from error
    except ValueError as error:
        raise ValueError(f"{path} cannot be read: {_plain(error, 1000)}") from error


def _read(path: pathlib.Path) -> tuple[Any, dict[str, np.ndarray]]:
    """Return the header and the arrays of a file, without the header where the file is an archive of another kind."""
    if not stat.S_ISREG(
        os.stat(path).st_mode
    ):  # a pipe would be waited for, and a device may never end
        raise ValueError(
            f"{path} is no regular file; pass one written by jaxkern.io.save"
        )
    with open(path, "rb") as file:
        if file.read(2) != b"PK":
            raise ValueError(
                f"{path} is not a file written by jaxkern.io.save; pass one that is"
            )
        try:
            with zipfile.ZipFile(file) as archive:
                if f"{_HEADER}.npy" not in archive.namelist():
                    return None, {}
                entries = _entries(archive, os.fstat(file.fileno()).st_size)
                arrays = {
                    entry.filename.removesuffix(".npy"): _array(archive, entry)
                    for entry in entries
                }
        except MemoryError as error:
            raise ValueError(f"{path} does not fit into memory") from error
        except Exception as error:  # whatever zipfile, NumPy and Python's parser make of what is not theirs
            raise ValueError(
                f"{path} is truncated or damaged: {_plain(error)}"
            ) from error
    text = arrays.pop(_HEADER).tobytes()
    if len(text) > _LONGEST_HEADER:
        raise ValueError(
            f"{path} is damaged: its header is longer than {_LONGEST_HEADER:,} bytes"
        )
    try:
        return json.loads(text), arrays
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: its header is not JSON") from error


def _entries(archive: zipfile.ZipFile, length: int) -> list[zipfile.ZipInfo]:
    """Return the entries of an archive if they are as `save` writes them, and together no longer than the file."""
    entries = archive.infolist()
    if len({entry.filename for entry in entries}) < len(entries):
        raise ValueError("it holds two arrays of one name")
    packed = any(entry.compress_type != zipfile.ZIP_STORED for entry in entries)
    declared = sum(entry.file_size for entry in entries)
    if packed or declared > length:
        raise ValueError(
            f"it declares {declared:,} bytes of {'compressed ' if packed else ''}arrays in {length:,} bytes, and "
            "jaxkern.io.save does not compress"
        )
    return entries


def _array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> np.ndarray:
    """Return an array whose bytes are all there: the size that it declares is compared before memory is taken."""
    with archive.open(entry) as file:
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError(
                "an array has a header that jaxkern.io.save does not write"
            )
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except MemoryError:  # of Python's parser, whose stack is short
            raise ValueError("the header of an array is nested too deeply") from None
        held = entry.file_size - file.tell()
    if (
        dtype.kind not in "biufcSU"
        or min(shape, default=0) < 0
        or math.prod(shape) * dtype.itemsize != held
    ):
        raise ValueError(
            f"an array declares the shape {shape} and the dtype {dtype}, and holds {held:,} bytes"
        )
    if held == 0 and math.prod(max(size, 1) for size in shape) > _LARGEST_EMPTY:
        raise ValueError(f"an array without entries declares the shape {shape}")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _plain(text: object, longest: int = 120) -> str:
    """Return text of a file as part of a message: on one line, short, and with nothing that moves a cursor."""
    line = " ".join(str(text)[: longest + 1].split())
    clean = "".join(sign if sign.isprintable() else "\ufffd" for sign in line)
    return clean if len(clean) <= longest else clean[: longest - 1] + "…"


def _named(functions: Any) -> dict[str, Any]:
    named = {} if functions is None else functions
    if not isinstance(named, Mapping) or not all(
        isinstance(name, str) and callable(named[name]) for name in named
    ):
        raise ValueError(
            f"functions must be a dict of functions by name, got {functions!r}"
        )
    return dict(named)


def _name_of(function: Any, where: str, named: dict[str, Any]) -> str:
    """Return the name of a function, and enter it among those that have one."""
    name = next(
        (name for name, other in named.items() if other is function),
        getattr(function, "__name__", None),
    )
    if not isinstance(name, str) or not (name in named or name.isidentifier()):
        raise ValueError(
            f"{where} is a function without a name, {function!r}; pass functions={{'a name': it}}"
        )
    if named.setdefault(name, function) is not function:
        raise ValueError(
            f"{where} is another function with the name {name!r}; pass functions={{'another name': it}}"
        )
    return name


def _encode(
    value: Any, where: str, arrays: dict[str, np.ndarray], named: dict[str, Any]
) -> Any:
    """Return what JSON holds of a value, and enter its arrays under numbers and its functions under names."""

    def store(array: Any) -> str:
        array = np.asarray(array)
        if array.dtype.kind not in "biufcSU":
            raise ValueError(
                f"{where} has dtype {array.dtype}, which cannot be saved; convert it"
            )
        name = str(len(arrays))
        # In the order of C and of its own: the bytes of equal arrays are equal.
        arrays[name] = np.array(array, order="C")
        return name

    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return {"float": value.hex()}
    if isinstance(value, jax.core.Tracer):
        raise ValueError(
            f"{where} is a traced value; save outside of jit, vmap and grad"
        )
    if isinstance(value, jax.Array):
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            return {
                "key": store(jax.random.key_data(value)),
                "impl": str(jax.random.key_impl(value)),
            }
        return {"jax": store(value)}
    if isinstance(value, np.generic):
        return {"scalar": store(value)}
    if type(value) is np.ndarray:
        return {"numpy": store(value)}
    inside = partial(_encode, arrays=arrays, named=named)
    if type(value) is dict and all(type(key) is str for key in value):
        return {
            "dict": [
                [key, inside(item, f"{where}[{key!r}]")] for key, item in value.items()
            ]
        }
    if type(value) in (tuple, list):
        return {
            type(value).__name__: [
                inside(item, f"{where}[{i}]") for i, item in enumerate(value)
            ]
        }
    name = public_name(type(value))
    if CLASSES.get(name) is type(value):
        fields = {
            field: inside(getattr(value, field), f"{where}.{field}")
            for field in fields_of(type(value))
        }
        return {"class": name, "fields": fields}
    if callable(value) and not isinstance(value, type):
        return {"function": _name_of(value, where, named)}
    raise ValueError(
        f"{where} is of type {type(value).__name__}, which cannot be saved; save its arrays and numbers"
    )


def _decode(node: Any, arrays: dict[str, np.ndarray], functions: dict[str, Any]) -> Any:
    """Return the value that `_encode` made a node of, and take its arrays out.

    Each array belongs to one node: what a header asks for takes no more memory than the file.
    """
    if node is None or isinstance(node, bool | int | str):
        return node
    if "class" in node:
        cls = _find(node["class"])
        fields = {
            name: _decode(item, arrays, functions)
            for name, item in node["fields"].items()
        }
        if dataclasses.is_dataclass(
            cls
        ):  # a file may be older than a field that has a default
            fields = {
                field.name: None
                for field in dataclasses.fields(cls)
                if field.default is None
            } | fields
        if set(fields) != set(fields_of(cls)):
            raise ValueError(
                f"it holds a {_plain(node['class'])} with fields {_plain(sorted(fields))}, this jaxkern has "
                f"{sorted(fields_of(cls))}; read it with the version that wrote it"
            )
        return _build(cls, fields)
    if "key" in node:
        data = arrays.pop(node["key"])
        if data.dtype != np.uint32:
            raise ValueError(f"it holds a random key of dtype {data.dtype}, not uint32")
        return jax.random.wrap_key_data(jnp.asarray(data), impl=node["impl"])
    if "dict" in node:
        return {key: _decode(item, arrays, functions) for key, item in node["dict"]}
    ((kind, content),) = node.items()
    if kind == "float":
        return float.fromhex(content)
    if kind == "function":
        if content in functions:
            return functions[content]
        name = _plain(content)
        raise ValueError(
            f"it names a function, {name!r}, and holds none; pass functions={{{name!r}: the function}}"
        )
    if kind == "jax":
        array = arrays.pop(content)
        if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
            raise ValueError(
                f"it holds a JAX array of dtype {array.dtype}, which needs "
                'jax.config.update("jax_enable_x64", True) before it is read'
            )
        return jax.device_put(array)
    if kind in ("numpy", "scalar"):
        return arrays.pop(content) if kind == "numpy" else arrays.pop(content)[()]
    return {"list": list, "tuple": tuple}[kind](
        _decode(item, arrays, functions) for item in content
    )


def _build(cls: type, fields: dict[str, Any]) -> Any:
    """Rebuild without validation, as from the leaves of a tree."""
    if issubclass(cls, tuple):
        return cls(**fields)
    instance = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(instance, name, value)
    return instance


def _validate(value: Any, where: str) -> None:
    """Raise unless every object in a tree is as its class declares it."""
    cls = type(value)
    ours = CLASSES.get(public_name(cls)) is cls
    parts = (
        {f".{name}": getattr(value, name) for name in fields_of(cls)} if ours else {}
    )
    if not ours and isinstance(value, dict | list | tuple):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        parts = {f"[{key!r}]": item for key, item in items}
    for name, item in parts.items():
        _validate(item, where + name)
    if not ours:
        return
    declared = _declared().get(public_name(cls), {})
    finite = callable(value) and all(
        np.all(getattr(value, name, True)) for name in ("finite", "converged")
    )
    sizes: dict[str, Any] = {}
    for name, item in 2 * list(
        parts.items()
    ):  # the first time for the sizes, on which ranges depend
        line = declared.get(name[1:], "")
        if not _is_as_declared(
            item, line, cls.__annotations__.get(name[1:], ""), sizes, finite
        ):
            held = (
                f"{item.dtype}{list(item.shape)}"
                if hasattr(item, "dtype")
                else repr(item)
            )
            raise ValueError(
                f"{where}{name} does not fit, {_plain(held)}; {public_name(cls)} has there: {line}"
            )
    getattr(value, "__post_init__", lambda: None)()


@cache
def _declared() -> dict[str, dict[str, str]]:
    """Return what is declared of fields, by class and name: data, as Python may run without docstrings (-OO)."""
    with open(pathlib.Path(__file__).with_name("_fields.toml"), "rb") as file:
        return tomllib.load(file)


def _is_as_declared(
    value: Any, line: str, annotation: str, sizes: dict[str, Any], finite: bool
) -> bool:
    """Compare a field with what is declared of it, given the sizes that belong to names so far."""
    if annotation in ("int", "bool", "float", "str"):
        return type(value).__name__ == annotation
    if line == "callable":
        return callable(value)
    shape, array = _SHAPE.match(line), annotation == "jax.Array"
    if shape is None or (value is None and not array):
        return True
    if array and not hasattr(value, "dtype"):
        return False
    entries = np.asarray(value)
    names = [name.strip() for name in (shape[1] or "").split(",") if name.strip()]
    stack = entries.ndim - len(names)
    if (
        stack < 0
        or entries.dtype.kind
        not in {"int32": "i", "bool": "b", None: "f" if array else "fi"}[shape[2]]
    ):
        return False
    own = {
        name: int(name) if name.isdigit() else size
        for name, size in zip(names, entries.shape[stack:], strict=True)
    }
    own |= {"": entries.shape[:stack]} if array else {}
    agree = tuple(own[name] for name in names) == entries.shape[stack:]
    agree &= all(sizes.setdefault(name, size) == size for name, size in own.items())
    limit = _RANGE.search(line)
    low = int(limit[1]) if limit else 0 if "negative" in line else -np.inf
    high = sizes.get(limit[2], np.inf) - (limit[3] == ")") if limit else np.inf
    agree &= not ((entries < low) | (entries > high)).any()
    positive = (
        not line.startswith("positive") or (np.isfinite(entries) & (entries > 0)).all()
    )
    return bool(
        agree
        and positive
        and (not (finite and array) or "NaN" in line or np.isfinite(entries).all())
    )


def _find(name: str) -> type:
    """Return a class by its public name; only modules of jaxkern are imported to look for it."""
    package, _, rest = name.partition(".")
    module = rest.partition(".")[0]
    ours = {info.name for info in pkgutil.iter_modules(_PACKAGE.__path__)}
    if name not in CLASSES and package == "jaxkern" and module in ours:
        with contextlib.suppress(
            ImportError
        ):  # of a package that one module needs and that is not installed
            importlib.import_module(f"jaxkern.{module}")
    if name not in CLASSES:
        raise ValueError(
            f"it holds a {_plain(name)}, which this jaxkern does not have; upgrade it, or import the module that makes "
            "it"
        )
    return CLASSES[name]
