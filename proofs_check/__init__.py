"""The theory, executed: every statement of the papers as a check that can fail, and the same for a statement of yours.

`validate` says at once what draws say of a statement, `statement` and `inequality` make claims for a file of your own
(`python -m proofs_check --claims FILE`), `attack` searches the worst case, and `certify` certifies a map for a table.
"""

import importlib
from typing import Any

_HERE = {
    "attack": "engine.adversary",
    "certify": "certify",
    "inequality": "statements",
    "sets": "engine.sets",
    "statement": "statements",
    "validate": "statements",
}


def __getattr__(name: str) -> Any:
    if name not in _HERE:
        raise AttributeError(f"module 'proofs_check' has no attribute {name!r}")
    module = importlib.import_module(f"proofs_check.{_HERE[name]}")
    return getattr(module, name, module)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HERE])
