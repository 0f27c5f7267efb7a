"""What a type checker and an editor see: the types of the package and of a program of a user."""

import importlib.util
import pathlib
import subprocess
import sys

import pytest

import jaxkern
import proofs_check

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = (jaxkern, proofs_check)


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
