"""Files of claims of one's own: they are read, an error names the line of the file, and an example is written."""

import contextlib
import importlib.machinery
import importlib.util
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from proofs_check.usage import PROG, UsageError, check_file

EXAMPLE = '''"""Claims of my own. Run them with: python -m proofs_check --claims {name}"""

import math

import jax
import jax.numpy as jnp

from proofs_check import inequality, statement


def deviation(key, n):  # one draw: how far the mean of n uniform numbers is from its expectation
    return jnp.abs(jax.random.uniform(key, (n,)).mean() - 0.5)


def hoeffding(n):  # what bounds it with probability .95
    return math.sqrt(math.log(2 / 0.05) / (2 * n))


def sides(x, xp):  # left <= right, claimed for every vector x
    return xp.sum(x) ** 2, 2 * xp.sum(x * x)


def claims():  # a control is a factor with which the bound must fail, or the check could not see it
    yield statement("mine:hoeffding", deviation, hoeffding, probability=0.95, sizes=(10, 100), controls=(0.3,))
    yield inequality("mine:squares", sides, lambda key: jax.random.normal(key, (3,)), expect="refuted")
'''


def write_example(path: Path) -> int:
    """Write a file of two claims, a true one and a false one. Raises UsageError where there is something already."""
    from proofs_check.engine import files

    check_file("new", path)
    files.write(path, EXAMPLE.format(name=path.name))
    print(f"{path} is written; run it with: {PROG} --claims {path}")
    return 0


def claims_of(paths: Sequence[str]) -> list[Any]:
    """Return what `claims()` returns in every file, in their order.

    Raises UsageError where that are not claims with ids that differ, and, with the line, where the file has an error.
    """
    from proofs_check.claim import Claim

    found: list[Any] = []
    for path in paths:
        if not Path(path).is_file():
            raise UsageError(f"--claims {path}: there is no such file")
        with blamed([path]):
            made = list(_module(path).claims())
        odd = next((claim for claim in made if not isinstance(claim, Claim)), None)
        if odd is not None or not made:
            what = "nothing" if not made else type(odd).__name__
            raise UsageError(
                f"{path}: claims() must return claims, got {what}; proofs_check.statement makes one"
            )
        found += made
    ids = [claim.id for claim in found]
    again = next((name for i, name in enumerate(ids) if name in ids[:i]), None)
    if again is not None:
        raise UsageError(f"{' '.join(paths)}: two claims have the id {again!r}")
    return found


def _module(path: str) -> Any:
    where = Path(path).absolute()
    name = f"claims_of_{where.stem}"
    spec = importlib.util.spec_from_loader(
        name, importlib.machinery.SourceFileLoader(name, str(where))
    )
    assert spec is not None and spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    module.__file__ = str(where)
    if str(where.parent) not in sys.path:  # what lies beside it can be imported
        sys.path.insert(0, str(where.parent))
    spec.loader.exec_module(module)
    if not callable(getattr(module, "claims", None)):
        raise UsageError(
            f"{path}: it has no function claims(); {PROG} new FILE writes an example"
        )
    return module


@contextlib.contextmanager
def blamed(paths: Sequence[str]) -> Iterator[None]:
    """Turn what is raised by code of these files into a UsageError that names the file and the line."""
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # sys.exit(0) of a file is no success
        named = {str(Path(path).absolute()): path for path in paths}
        frames = [
            (frame.filename, frame.lineno)
            for raised in (error, error.__cause__)
            if raised is not None
            for frame in traceback.extract_tb(raised.__traceback__)
        ]
        if isinstance(error, SyntaxError):
            frames.append((str(error.filename), error.lineno))
        own = [(named[file], line) for file, line in frames if file in named]
        said = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        notes = [
            note
            for note in getattr(error, "__notes__", ())
            if note.startswith("raised by claim")
        ]
        left = isinstance(error, SystemExit) and paths
        if not own and not left and not (notes and paths):
            raise
        place = f"{own[-1][0]}, line {own[-1][1]}" if own else ", ".join(paths)
        raise UsageError(": ".join([place, said, *notes])) from error
