"""What a type checker and an editor see: annotations that resolve, documentation, and the types of a program."""

import importlib
import importlib.util
import inspect
import pathlib
import pkgutil
import subprocess
import sys
import typing

import pytest

import jaxkern
import proofs_check

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = (jaxkern, proofs_check)


def public():
    """Yield every public class and function of jaxkern with its methods, by name."""
    for info in pkgutil.walk_packages(jaxkern.__path__, "jaxkern."):
        if (
            any(part.startswith("_") for part in info.name.split("."))
            or info.name == "jaxkern.sklearn"
        ):
            continue
        module = importlib.import_module(info.name)
        for name in getattr(
            module, "__all__", [n for n in vars(module) if not n.startswith("_")]
        ):
            value = getattr(module, name, None)  # a package names its modules, too
            if not getattr(value, "__module__", "").startswith("jaxkern"):
                continue
            if inspect.isfunction(function := inspect.unwrap(value)):
                yield f"{info.name}.{name}", function
            elif inspect.isclass(value):
                for part, method in vars(value).items():
                    function = (
                        method.fget
                        if isinstance(method, property)
                        else inspect.unwrap(method)
                    )
                    if not part.startswith("_") and inspect.isfunction(function):
                        yield f"{info.name}.{name}.{part}", function


PUBLIC = dict(public())


def test_the_walk_finds_functions_methods_and_properties():
    expected = {
        "gram.gram",
        "rkhs.Covariance.inner",
        "problems.Problem.omega",
        "bounds.streaming.projection",
    }
    assert {f"jaxkern.{name}" for name in expected} <= set(PUBLIC)
    assert len(PUBLIC) > 150


@pytest.mark.parametrize("name", sorted(PUBLIC))
def test_annotations_are_complete_and_resolve(name):
    function = PUBLIC[name]
    hints = typing.get_type_hints(function)
    parameters = [
        part
        for part in inspect.signature(function).parameters
        if part not in ("self", "cls") or part in hints
    ]
    assert set(hints) == {*parameters, "return"}
    assert inspect.getdoc(function)


@pytest.mark.parametrize("package", PACKAGES)
def test_the_packages_say_that_they_are_typed(package):
    assert (pathlib.Path(package.__file__).parent / "py.typed").exists()


@pytest.mark.skipif(
    importlib.util.find_spec("mypy") is None, reason="mypy is not installed"
)
def test_the_package_and_a_program_of_a_user_pass_the_type_checker_in_strict_mode():
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "jaxkern",
        "tests/typed_user.py",
    ]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr
