"""The rooms of proofs_check: each one imports only from those before it, at the top of a file and inside functions."""

import ast
import importlib
import pathlib

import pytest

import proofs_check

ROOT = pathlib.Path(proofs_check.__file__).parent
ROOMS = ("usage", "claim", "controls", "engine", "report", "papers", "register", "certify", "cli", "__main__")
LATER = {("papers", "register")}
"""Imports that point forward: an adversary asks the register for the forms that it attacks."""


def imported(path):
    """Yield the modules of proofs_check that a file imports, at any depth of nesting."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("proofs_check"))
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import"
            if node.module == "proofs_check":
                yield from (f"proofs_check.{alias.name}" for alias in node.names)
            elif (node.module or "").startswith("proofs_check."):
                yield node.module


def room(path):
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_back(path):
    for name in imported(path):
        other = name.split(".")[1]
        assert (room(path), other) in LATER or ROOMS.index(other) <= ROOMS.index(room(path)), f"it imports {name}"


def modules():
    """Return every module with the modules that it imports, as far as they are files of their own."""
    names = {path.relative_to(ROOT.parent).with_suffix("").as_posix().replace("/", "."): path for path in FILES}
    names = {name.removesuffix(".__init__"): path for name, path in names.items()}
    graph = {}
    for name, path in names.items():
        tree, found = ast.parse(path.read_text(encoding="utf-8")), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in {*names, "proofs_check"}:
                found |= {f"{node.module}.{alias.name}" for alias in node.names} & set(names) or {node.module}
        graph[name] = {other for other in found & set(names) if other != name and not name.startswith(f"{other}.")}
    return graph


def test_no_module_imports_itself_by_way_of_others():
    graph = modules()
    while ends := {name for name, others in graph.items() if not others & set(graph)}:
        graph = {name: others for name, others in graph.items() if name not in ends}
    # What is left are the circles and what leads to them: each module that stays imports another one that stays.
    circles = {name for name, others in graph.items() if any(name in graph.get(other, ()) for other in others)}
    assert not graph, f"circles, or what leads to them: {sorted(circles or graph)}"


def test_every_room_exists():
    assert {room(path) for path in FILES} == set(ROOMS)


def test_the_checks_import_as_a_whole():
    for path in FILES:
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        if parts[-1] != "__main__":
            importlib.import_module(".".join(p for p in parts if p != "__init__"))
