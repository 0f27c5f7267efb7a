"""The architecture: each module of jaxkern imports only modules above it, and never proofs_check."""

import ast
import pathlib
import subprocess
import sys

import pytest

import jaxkern

ROOT = pathlib.Path(jaxkern.__file__).parent
LAYERS = (
    "_types",
    "checks",
    "pytrees",
    "_blocks",
    "draws",
    "linalg",
    "_distances",
    "bounds",
    "kernels",
    "gram",
    "measures",
    "problems",
    "rkhs",
    "metrics",
    "kmeans",
    "frequent_directions",
    "landmarks",
    "features",
    "clustering",
    "learn",
    "audit",
    "scale",
    "plan",
    "io",
    "sklearn",
)


def imported(path):
    """Yield the dotted names that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def layer(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


FILES = sorted(path for path in ROOT.rglob("*.py") if path.parent != ROOT or path.name != "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_up(path):
    own = LAYERS.index(layer(path))
    for name in imported(path):
        parts = name.split(".")
        allowed = {"jax", "numpy", "scipy", "optax", "jaxtyping", "jaxkern"} | (
            {"sklearn"} if own == len(LAYERS) - 1 else set()
        )
        assert parts[0] in sys.stdlib_module_names | allowed, name
        if parts[0] == "jaxkern":
            assert LAYERS.index(parts[1]) <= own, f"{path.name} imports {name}"


@pytest.mark.parametrize("package", ["proofs_check", "benchmarks", "examples"])
def test_nothing_outside_imports_a_private_name(package):
    for path in (ROOT.parent / package).rglob("*.py"):
        for name in imported(path):
            first, *parts = name.split(".")
            private = [part for part in parts if part.startswith("_") and not part.endswith("__")]
            assert first != "jaxkern" or not private, f"{path} imports {name}"


def test_every_layer_exists():
    assert {layer(path) for path in FILES} == set(LAYERS)


def test_importing_the_library_loads_neither_the_checks_nor_the_optional_packages():
    modules = [f"jaxkern.{name}" for name in LAYERS[:-1] if not name.startswith("_")]
    unwanted = ("proofs_check", "sklearn", "matplotlib", "rich", "optax", "jaxtyping")
    code = f"import sys, {', '.join(modules)}; print([m for m in {unwanted} if m in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_the_package_gives_its_modules_when_they_are_used():
    names = {name for name in LAYERS if not name.startswith("_")}
    assert names <= set(dir(jaxkern))
    code = "import sys, jaxkern; jaxkern.linalg.matmul; print([m for m in sys.modules if m.startswith('jaxkern.')])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(ast.literal_eval(result.stdout))
    assert "jaxkern.linalg" in loaded and "jaxkern.features" not in loaded
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        jaxkern.nothing  # noqa: B018
