"""Kernel methods as pure JAX functions: Gram matrices, operators of an RKHS, sketches, clustering, and their bounds.

Modules load when they are first used: `import jaxkern; jaxkern.features.nystrom` works, and costs what it uses.

An argument that is not as its docstring says is refused with a ValueError that names it: an old-style key, points that
are no floating matrix, shapes or dtypes that do not match, a size or a static number out of range, or, where an
RKHS is needed, a kernel known not to be positive semidefinite. A section Raises says what goes beyond that.
"""

import importlib
from types import ModuleType

__version__ = "0.1.0"

_MODULES = [
    "audit", "bounds", "checks", "clustering", "draws", "features", "frequent_directions", "gram", "io", "kernels",
    "kmeans", "landmarks", "learn", "linalg", "measures", "metrics", "plan", "problems", "pytrees", "ragged",
    "regression", "rkhs", "scale", "sklearn",
]  # fmt: skip


def __getattr__(name: str) -> ModuleType:
    if name in _MODULES:
        return importlib.import_module(f"jaxkern.{name}")
    raise AttributeError(f"module 'jaxkern' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *_MODULES])
