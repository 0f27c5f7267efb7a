"""Draw mutants of all modules of jaxkern with a fixed seed, and tell which of them the tests of each module kill.

    python -m pip install cosmic-ray
    git worktree add ../mutants && cd ../mutants      the files of the tree that it runs in are changed and restored
    python tools/guard.py list                        print the mutants
    python tools/guard.py run RESULTS.jsonl           try each one that has no line in the file yet
    python tools/guard.py run RESULTS.jsonl --all-tests --only 7 31

A guard for changes of the tests: a mutant that was killed before such a change must be killed after it. Every module
with mutants has one at least. The operators are those of cosmic-ray that `mutants.toml` leaves; what changes only an
annotation is left out, too. `--share 1/2` takes every second mutant, for two trees side by side.
"""

import argparse
import ast
import contextlib
import difflib
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

SEED = 48
COUNT = 120
LIMIT = 900
"""Seconds after which tests that do not end count as a kill."""
TESTS = Path("tests/jaxkern")


class WithoutAnnotations(ast.NodeTransformer):
    """Drop annotations, since a mutant of one computes the same."""

    def visit_arg(self, node):
        """Return an argument without its annotation."""
        node.annotation = None
        return node

    def visit_FunctionDef(self, node):
        """Return a function that does not say what it returns."""
        node.returns = None
        return self.generic_visit(node)

    def visit_AnnAssign(self, node):
        """Return an assignment whose annotation says nothing."""
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)


def meaning(source):
    """Return what two sources share if they differ in nothing but annotations."""
    return ast.dump(WithoutAnnotations().visit(ast.parse(source)))


def operators():
    """Return the operators of cosmic-ray that `mutants.toml` leaves."""
    config = tomllib.loads(Path("tools/mutants.toml").read_text())["cosmic-ray"]
    excluded = config["filters"]["operators-filter"]["exclude-operators"]
    pattern = re.compile("|".join(excluded))
    names = [name for name in sorted(operator_names()) if not pattern.match(name)]
    classes = [get_operator(name) for name in names]
    return [operator() for operator in classes if not operator.arguments()]


def places_of(module, operators):
    """Return where operators can change a module, as triples (module, operator, occurrence)."""
    nodes = list(ast_nodes(get_ast(module.read_text())))
    places = []
    for operator in operators:
        count = sum(len(list(operator.mutation_positions(node))) for node in nodes)
        places += [(module, operator, occurrence) for occurrence in range(count)]
    return places


def mutants_at(places):
    """Yield pairs of a module and the source of its mutant, for the mutants that are programs and mean something."""
    for module, operator, occurrence in places:
        source = module.read_text()
        mutant = mutate_code(source, operator, occurrence)
        with contextlib.suppress(SyntaxError):  # `/` of a signature is no operator
            if meaning(mutant) != meaning(source):
                yield module, mutant


def draw():
    """Return the mutants: one of each module, and then any."""
    rng = random.Random(SEED)
    mutants = []
    others = []
    chosen = operators()
    for module in sorted(Path("jaxkern").rglob("*.py")):
        places = places_of(module, chosen)
        rng.shuffle(places)
        mutants += itertools.islice(mutants_at(places), 1)
        others += places[1:]
    rng.shuffle(others)
    return [*mutants, *itertools.islice(mutants_at(others), COUNT - len(mutants))]


def difference(module, source):
    """Return the lines that a mutant changes, as text."""
    lines = difflib.unified_diff(
        module.read_text().splitlines(), source.splitlines(), n=0, lineterm=""
    )
    return "\n".join(list(lines)[2:])


def tests_of(module):
    """Return the test modules of the package of a module; all of jaxkern for a private module of the top."""
    package = module.parts[1].removesuffix(".py")
    paths = [TESTS / package, TESTS / f"test_{package}.py", TESTS / "test_refusals.py"]
    paths = [path for path in paths if path.exists()]
    is_shared = package.startswith("_") or len(paths) < 2
    return [TESTS] if is_shared else paths


def outcome(module, source, tests, cache):
    """Run tests on a mutant. Return "killed" and the name of the first test that failed, or "survived" and ""."""
    before = module.read_text()
    command = [sys.executable, "-m", "pytest", *map(str, tests)]
    command += [
        "-n",
        "0",
        "-x",
        "-q",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
    ]
    environment = os.environ | {
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_COMPILATION_CACHE_DIR": str(cache),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.05",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": str(Path.cwd()),
    }
    module.write_text(source)
    try:
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LIMIT,
            preexec_fn=lambda: os.nice(10),
        )
    except subprocess.TimeoutExpired:
        return "killed", f"no end within {LIMIT} s"
    finally:
        module.write_text(before)
    if done.returncode == 0:
        return "survived", ""
    failures = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return "killed", failures[0] if failures else done.stdout[-200:] + done.stderr[
        -200:
    ]


def run(arguments):
    """Try the mutants that the file of results has no line of, and add a line for each."""
    path = Path(arguments.results)
    lines = path.read_text().splitlines() if path.exists() else []
    tried = {json.loads(line)["mutant"] for line in lines}
    share, shares = map(int, arguments.share.split("/"))
    cache = Path(tempfile.gettempdir()) / "jaxkern-guard"
    for number, (module, source) in enumerate(draw()):
        if number % shares != share - 1 or number in tried:
            continue
        if arguments.only and number not in arguments.only:
            continue
        tests = [TESTS] if arguments.all_tests else tests_of(module)
        start = time.monotonic()
        status, test = outcome(module, source, tests, cache)
        line = {
            "mutant": number,
            "module": str(module),
            "change": difference(module, source),
            "status": status,
            "test": test,
            "seconds": round(time.monotonic() - start),
        }
        print(number, module, status, test, flush=True)
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")


def main():
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=("list", "run"))
    parser.add_argument("results", nargs="?", default="mutants.jsonl")
    parser.add_argument("--share", default="1/1")
    parser.add_argument("--only", type=int, nargs="*")
    parser.add_argument("--all-tests", action="store_true")
    arguments = parser.parse_args()
    if arguments.what == "run":
        run(arguments)
        return
    for number, (module, source) in enumerate(draw()):
        print(f"{number} {module}\n{difference(module, source)}")


if __name__ == "__main__":
    main()
