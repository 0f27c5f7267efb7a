"""The architecture: each module imports only from those before it, at the top of a file and inside functions."""

import ast
import importlib
import pathlib
import re
import subprocess
import sys

import pytest

import jaxkern
import proofs_check

ROOT = pathlib.Path(jaxkern.__file__).parent.parent
LAYERS = {
    "jaxkern": (
        *(
            "_types",
            "_programs",
            "checks",
            "_weights",
            "pytrees",
            "ragged",
            "_mesh",
            "_blocks",
            "draws",
            "_distances",
        ),
        *(
            "linalg",
            "bounds",
            "kernels",
            "gram",
            "measures",
            "problems",
            "rkhs",
            "metrics",
            "kmeans",
        ),
        *("frequent_directions", "landmarks", "features", "regression"),
        *("clustering", "learn", "audit", "io", "scale", "plan", "sklearn"),
    ),
    "proofs_check": (
        *(
            "usage",
            "claim",
            "controls",
            "engine",
            "report",
            "papers",
            "register",
            "statements",
            "certify",
            "cli",
        ),
        *("studies", "__main__"),
    ),
}
LATER = {("papers", "register")}
"""Imports that point forward: an adversary asks the register for the forms that it attacks."""
NEEDED = {
    "jax",
    "numpy",
    "scipy",
    "optax",
    "jaxtyping",
    "jaxkern",
    *sys.stdlib_module_names,
}
"""What jaxkern may import."""
ASIDE = {("sklearn", "sklearn"), ("scale", "pyarrow")}
"""What one of its packages may import, too."""


def imported(path):
    """Yield the dotted names that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def place(path):
    """Return the package of a file and its layer."""
    package, first, *_ = path.relative_to(ROOT).parts
    return package, first.removesuffix(".py")


FILES = sorted(path for package in LAYERS for path in (ROOT / package).rglob("*.py"))
FILES = [path for path in FILES if place(path)[1] != "__init__"]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_back(path):
    package, own = place(path)
    layers = LAYERS[package]
    for name in imported(path):
        first, second, *_ = f"{name}.".split(".")
        assert package != "jaxkern" or first in NEEDED or (own, first) in ASIDE, name
        if first == package and second in layers:
            assert (own, second) in LATER or layers.index(second) <= layers.index(
                own
            ), f"it imports {name}"


@pytest.mark.parametrize("package", ["proofs_check", "benchmarks", "examples"])
def test_nothing_outside_imports_a_private_name(package):
    for path in (ROOT / package).rglob("*.py"):
        for name in imported(path):
            first, *parts = name.split(".")
            private = [
                part
                for part in parts
                if part.startswith("_") and not part.endswith("__")
            ]
            assert first != "jaxkern" or not private, f"{path} imports {name}"


def test_every_layer_exists():
    assert {place(path) for path in FILES} == {
        (package, layer) for package in LAYERS for layer in LAYERS[package]
    }


def modules():
    """Return every module of proofs_check with the modules that it imports, as far as they are files of their own."""
    names = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(
            ".__init__"
        ): path
        for path in FILES
    }
    graph = {}
    for name, path in names.items():
        targets = {
            other if other in names else other.rpartition(".")[0]
            for other in imported(path)
        } & set(names)
        graph[name] = {
            other
            for other in targets
            if other != name and not name.startswith(f"{other}.")
        }
    return {
        name: others
        for name, others in graph.items()
        if name.startswith("proofs_check")
    }


def test_no_module_imports_itself_by_way_of_others():
    graph = modules()
    while ends := {name for name, others in graph.items() if not others & set(graph)}:
        graph = {name: others for name, others in graph.items() if name not in ends}
    # What is left are the circles and what leads to them: each module that stays imports another one that stays.
    circles = {
        name
        for name, others in graph.items()
        if any(name in graph.get(other, ()) for other in others)
    }
    assert not graph, f"circles, or what leads to them: {sorted(circles or graph)}"


def test_the_checks_import_as_a_whole():
    for name in modules():
        if not name.endswith("__main__"):
            assert importlib.import_module(name).__name__.startswith(
                proofs_check.__name__
            )


def test_the_package_gives_its_modules_when_they_are_used():
    assert {name for name in LAYERS["jaxkern"] if not name.startswith("_")} <= set(
        dir(jaxkern)
    )
    code = "import sys, jaxkern; jaxkern.linalg.matmul; print([m for m in sys.modules if m.startswith('jaxkern.')])"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = set(ast.literal_eval(result.stdout))
    assert "jaxkern.linalg" in loaded and "jaxkern.features" not in loaded
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        jaxkern.nothing  # noqa: B018


PRIVATE = {
    "bounds/test_arithmetics.py": "the layer of arithmetics has no public name",
    "bounds/test_bound.py": "the same",
    "bounds/test_fourier.py": "rounding of a float32 rate is hidden in a probability",
    "features/test_fastfood.py": "normals that are zero are never drawn",
    "features/test_fourier_laws.py": "the same",
    "kernels/test_bandwidth.py": "more than 2^24 pairs need too many points",
    "scale/test_devices.py": "what a device holds, and how much it computes",
    "scale/test_landmarks.py": "how many rows are read at once",
    "scale/test_processes.py": "how often a state is saved",
    "scale/test_resume.py": "the same",
    "scale/test_scale.py": "how many programs were made",
    "scale/test_source.py": "how many rows are read at once",
    "test_kmeans.py": "clusters that become empty, and the way of accelerators",
    "test_landmarks.py": "how long a wait is drawn",
    "test_mesh.py": "what a device computes and sends",
    "test_programs.py": "which options programs are compiled with",
    "test_sklearn.py": "how many programs were made",
}
"""Tests of jaxkern that import private names, with what no public function shows."""


def test_few_tests_look_inside():
    folder = pathlib.Path(__file__).parent / "jaxkern"
    imports = re.compile(r"^ *from jaxkern(\.\w+)*(\._\w+| import (.*, )?_)", re.M)
    inside = {
        str(path.relative_to(folder))
        for path in folder.rglob("test_*.py")
        if imports.search(path.read_text())
    }
    assert inside == set(PRIVATE)
