"""Bad arguments are refused by name: one table, a file of it for each package in `tests/refusals/`.

REFUSED has rows (call, changes, message): a function that returns a public function with arguments that it takes, the
arguments that are changed, and what the message must say. Nothing is compiled for a row: arguments are refused while a
call is traced.
"""

import functools
import importlib
import pathlib

import pytest

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "refusals"
PACKAGES = sorted(path.stem for path in FOLDER.glob("[a-z]*.py"))
ROWS = [
    pytest.param(*row, id=f"{package}.{row[0].__name__}-{number}")
    for package in PACKAGES
    for number, row in enumerate(importlib.import_module(f"refusals.{package}").REFUSED)
]

pytestmark = pytest.mark.float64  # so that an array of float64 is none of float32

good = functools.cache(lambda call: call())


@pytest.mark.parametrize(("call", "changes", "message"), ROWS)
def test_bad_arguments_are_refused_by_name(call, changes, message):
    function, arguments = good(call)
    with pytest.raises(ValueError, match=message):
        function(**arguments | changes)
