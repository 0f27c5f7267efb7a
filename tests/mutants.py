"""Change one thing at a time in a copy of the packages, and see whether a test fails: `python tests/mutants.py --help`.

A mutant is one change of one expression or statement: a comparison that takes its limit in or turns round, another
operator, another constant, an operand of "and", a clamp, a guard or a check left out. A mutant is killed when a test
fails or does not end in time; one that survives shows a line that no test holds to what it should be, or a change
that changes nothing.

The repository is copied first, and the working tree is never written to. A process that has collected the tests and
started nothing of JAX forks for every mutant; the child gives the functions their changed code and runs the tests that
reach the changed one, quick ones first, and then the others, until one fails. A change outside of functions is written
to the copy, and the tests are collected again. POSIX only.

Survivors that change nothing, or nothing that a test should hold, are in tests/mutants.txt: a line says why, and the
indented lines below it are the mutants of which it is true, by their identities.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import hashlib
import itertools
import json
import math
import os
import re
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
EXPLAINED = Path(__file__).with_suffix(".txt")

TESTS: dict[str, tuple[str, ...]] = {
    "jaxkern/_blocks.py": ("fourier",),
    "jaxkern/_distances.py": ("gram",),
    "jaxkern/_draws.py": ("kernel_jl",),
    "jaxkern/_pytree.py": ("pytrees",),
    "jaxkern/bounds/_bound.py": ("bounds_sketching", "bounds_streaming", "bounds_fourier", "bounds_concentration"),
    "jaxkern/bounds/sketching": ("bounds_sketching",),
    "jaxkern/bounds/streaming.py": ("bounds_streaming",),
    "jaxkern/bounds/fourier": ("bounds_fourier",),
    "jaxkern/bounds/fourier/_given.py": ("bounds_fourier", "certify_theory"),
    "jaxkern/bounds/concentration": ("bounds_concentration",),
    "jaxkern/features": ("maps",),
    "jaxkern/features/_fastfood.py": ("fastfood",),
    "jaxkern/features/_fourier.py": ("fourier",),
    "jaxkern/features/_fourier_orthogonal.py": ("fourier",),
    "jaxkern/features/_nystrom.py": ("nystrom",),
    "jaxkern/features/_pca.py": ("kernel_pca",),
    "jaxkern/features/_preimage.py": ("preimage",),
    "jaxkern/features/_random_feature_pca.py": ("random_feature_pca",),
    "jaxkern/features/_sketch.py": ("kernel_jl",),
    "jaxkern/features/_standardized.py": ("standardized",),
    "jaxkern/features/_streaming.py": ("streaming",),
    "jaxkern/kernels/_spectra.py": ("fourier",),
    "jaxkern/landmarks.py": ("landmarks", "landmark_choices"),
    "jaxkern/measures/_mean_kernel.py": ("mean_kernels",),
    "jaxkern/measures/_noise.py": ("mean_kernels", "problems"),
    "jaxkern/measures/_sphere.py": ("mean_kernels",),
    "jaxkern/scale": ("scale",),
    "proofs_check/cli/command.py": ("command_line",),
    "proofs_check/certify": ("certify",),
    "proofs_check/certify/_clustering.py": ("certify_classes",),
    "proofs_check/certify/_columns.py": ("certify_table",),
    "proofs_check/certify/_distance.py": ("certify_goals",),
    "proofs_check/certify/_document.py": ("certify_page",),
    "proofs_check/certify/_facts.py": ("certify_theory",),
    "proofs_check/certify/_hypotheses.py": ("certify_theory",),
    "proofs_check/certify/_maps.py": ("certify_theory",),
    "proofs_check/certify/_page.py": ("certify_page",),
    "proofs_check/certify/_plots.py": ("certify_page",),
    "proofs_check/certify/_search.py": ("certify_search",),
    "proofs_check/certify/_separation.py": ("certify_classes",),
    "proofs_check/certify/_spectral.py": ("certify_goals",),
    "proofs_check/certify/_table.py": ("certify_table",),
    "proofs_check/certify/_terminal.py": ("certify_page",),
    "proofs_check/certify/_theory.py": ("certify_theory",),
    "proofs_check/certify/_tradeoff.py": ("certify_page",),
    "proofs_check/claim.py": ("judge",),
    "proofs_check/report/console.py": ("certify_page",),
    "proofs_check/engine/reading.py": ("certify_table", "hostile_files"),
    "proofs_check/report/document.py": ("report",),
    "proofs_check/cli/job.py": ("checkpoint",),
    "proofs_check/papers/flops.py": ("populations",),
    "proofs_check/cli/folders.py": ("checkpoint",),
    "proofs_check/html": ("report",),
    "proofs_check/engine/judge.py": ("judge", "judge_judged"),
    "proofs_check/engine/limits.py": ("judge", "sequential"),
    "proofs_check/report/markdown.py": ("report",),
    "proofs_check/papers/operators.py": ("populations",),
    "proofs_check/report/commands.py": ("report",),
    "proofs_check/engine/run.py": ("verdicts",),
    "proofs_check/engine/samples.py": ("runner",),
    "proofs_check/engine/judge_study.py": ("judge_judged",),
    "proofs_check/papers/clusterings.py": ("table2",),
    "proofs_check/papers/figures.py": ("tables_kpotufe2020",),
    "proofs_check/papers/amini2021/figure3.py": ("figure3",),
    "proofs_check/papers/kpotufe2020/table2.py": ("table2", "tables_kpotufe2020"),
    "proofs_check/targets": ("attack",),
    "proofs_check/usage.py": ("verdicts",),
}
"""The modules of tests that try a file or a folder: the longest name counts. Without one, `tests_of` goes by names."""

SWAPS: dict[type, tuple[type, ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.Div,),
    ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Mult,),
    ast.Mod: (ast.FloorDiv,),
    ast.Pow: (ast.Mult,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}
ONE_OF = {"max", "min", "maximum", "minimum", "clip", "logical_and", "logical_or", "abs", "floor", "ceil", "nan_to_num"}
"""Calls of which one argument is left."""
BRANCHES = {"where"}
"""Calls of which the second or the third argument is left."""
OTHER_NAME = {"any": "all", "all": "any", "exp": "expm1", "expm1": "exp", "log1p": "log", "lower": "upper"}
OUTCOMES = ("killed", "timeout", "explained", "survived", "not tried")
UNTOUCHED_KEYWORDS = {"strict"}
"""Only a mistake that no caller makes would show these."""


class Mutant(NamedTuple):
    """One change: the file, the line, the function around it (its first and last line), and the new text of it all.

    `identity` stays what it is while the function does, wherever in the file it moves; equal changes share one.
    """

    path: str
    line: int
    what: str
    around: tuple[int, int] | None
    source: str
    identity: str

    @property
    def name(self) -> str:
        return f"{self.path}:{self.line}: {self.what}"


# ------------------------------------------------------------------------------------------------------ the changes


def mutants_of(path: str, source: str) -> Iterator[Mutant]:
    """Yield every mutant of a file, in the order of the lines."""
    text = source.encode()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree = ast.parse(source)
    for node, around in _walk(tree, None):
        place = node.test if isinstance(node, ast.If | ast.While) else node
        before = ast.unparse(place)
        for changed in _changes(node):
            after = changed if isinstance(changed, str) else ast.unparse(changed)
            new = after if isinstance(place, ast.stmt) else f"({after})"
            begin = starts[place.lineno - 1] + place.col_offset
            end = starts[place.end_lineno - 1] + place.end_col_offset
            first, last = (starts[around[0] - 1], starts[around[1]]) if around else (0, len(text))
            function = text[first:begin] + new.encode() + text[end:last]
            yield Mutant(
                path,
                place.lineno,
                f"{_short(before)} -> {_short(after)}",
                around,
                (text[:first] + function + text[last:]).decode(),
                _hash(path.encode() + b"\n" + function)[:16],
            )


def _hash(text: str | bytes) -> str:
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 90 else f"{line[:60]} ... {line[-25:]}"


def _walk(node: ast.AST, around: tuple[int, int] | None) -> Iterator[tuple[Any, tuple[int, int] | None]]:
    """Yield what may be changed, with the function that it runs in: no annotation, decorator, docstring or message."""
    if isinstance(node, ast.JoinedStr):
        return
    if isinstance(node, ast.FunctionDef):
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                yield from _walk(default, None)  # evaluated where the function is defined
        for child in node.body:
            yield from _walk(child, (first, node.end_lineno or node.lineno))
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node, around
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "decorator_list", "returns"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.keyword) and child.arg in UNTOUCHED_KEYWORDS:
                continue
            if isinstance(child, ast.AST):
                yield from _walk(child, around)


def _changes(node: ast.AST) -> Iterator[ast.AST | str]:
    match node:
        case ast.Compare():
            for i, op in enumerate(node.ops):
                for other in SWAPS[type(op)]:
                    yield _with(node, ops=[*node.ops[:i], other(), *node.ops[i + 1 :]])
        case ast.BinOp() if not (_is_text(node.left) or _is_text(node.right)):
            for other in SWAPS.get(type(node.op), ()):
                yield _with(node, op=other())
        case ast.AugAssign():
            for other in SWAPS.get(type(node.op), ()):
                yield _with(node, op=other())
        case ast.BoolOp():
            for i in range(len(node.values)):
                left = node.values[:i] + node.values[i + 1 :]
                yield left[0] if len(left) == 1 else _with(node, values=left)
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()):
            yield node.operand
        case ast.Constant(value=bool()):
            yield _with(node, value=not node.value)
        case ast.Constant(value=int()):
            yield _with(node, value=node.value + 1)
        case ast.Constant(value=float()):
            yield _with(node, value=2 * node.value or 1.0)
        case ast.If(test=ast.Name(id="TYPE_CHECKING")):
            pass
        case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield ast.UnaryOp(ast.Not(), test)
        case ast.IfExp(test=test) if not isinstance(test, ast.Compare | ast.BoolOp):
            yield _with(node, test=ast.UnaryOp(ast.Not(), test))
        case ast.Raise() | ast.Expr(value=ast.Call()):
            yield "pass"
        case ast.Call():
            yield from _calls(node)


def _calls(node: ast.Call) -> Iterator[ast.AST]:
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if name in ONE_OF and plain:
        yield from node.args
    if name in BRANCHES and len(node.args) == 3:
        yield from node.args[1:]
    if name in OTHER_NAME:
        if isinstance(called, ast.Attribute):
            yield _with(node, func=_with(called, attr=OTHER_NAME[name]))
        elif name in ("any", "all"):
            yield _with(node, func=_with(called, id=OTHER_NAME[name]))


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _with(node: ast.AST, **fields: Any) -> ast.AST:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed


# ------------------------------------------------------------------------------------------------------- the trials


def in_a_child(work: Callable[[Callable[[Any], None]], None], heard: Callable[[Any], None], limit: float) -> str | None:
    """Fork, let the child work, and hear what it says until it ends; return why it did not end well, if so."""
    inlet, outlet = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX warns of forks; nothing of it has started here
        child = os.fork()
    if child == 0:
        try:
            os.setsid()  # a group that can be ended with all it started
            os.close(inlet)
            with os.fdopen(outlet, "w") as pipe:
                work(lambda message: print(json.dumps(message), file=pipe, flush=True))
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.close(outlet)
    end, text, ended = time.monotonic() + limit, b"", False
    while not ended and select.select([inlet], [], [], min(max(end - time.monotonic(), 0), 1e6))[0]:
        piece = os.read(inlet, 1 << 16)
        ended = not piece
        *lines, text = (text + piece).split(b"\n")
        for line in lines:
            heard(json.loads(line))
    os.close(inlet)
    if not ended:
        os.killpg(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    return "timeout" if not ended else "the process died" if status else None


class Loop:
    """Plugin of pytest: once the tests are collected, `work` runs some of them, and pytest none of its own accord."""

    def __init__(self, work: Callable[[Loop], None]) -> None:
        self.work = work
        self.failed: list[str] = []
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, dict[str, list[int]]] = {}

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(f"collecting {report.nodeid}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: Any) -> bool:
        self.items = {item.nodeid: item for item in session.items}
        self.work(self)
        return True

    def run(self, order: list[str]) -> str | None:
        """Run tests up to the first that fails, and return its name."""
        self._run(order, stop=True)
        return self.failed[0] if self.failed else None

    def look(self, watched: tuple[str, ...]) -> dict[str, Any]:
        """Run all tests; return what failed, the times, and the first lines of the functions of files that each ran."""
        self._run(list(self.items), watched=watched)
        return {"failed": self.failed, "seconds": self.seconds, "reached": self.reached}

    def _run(self, order: list[str], stop: bool = False, watched: tuple[str, ...] = ()) -> None:
        items = [self.items[name] for name in order if name in self.items]
        for item, after in zip(items, [*items[1:], None], strict=True):
            if stop and self.failed:
                return
            lines: dict[str, set[int]] = {file: set() for file in watched}
            if watched:
                sys.settrace(functools.partial(_note, lines))
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            sys.settrace(None)
            self.reached[item.nodeid] = {file: sorted(found) for file, found in lines.items() if found}


def _note(lines: dict[str, set[int]], frame: Any, event: str, argument: Any) -> None:
    if frame.f_code.co_filename in lines:
        lines[frame.f_code.co_filename].add(frame.f_code.co_firstlineno)


class Workplace:
    """A copy of the repository, in a process that has loaded JAX, started nothing of it, and forks to run tests."""

    def __init__(self, folder: Path, chosen: list[str]) -> None:
        self.root, self.chosen = folder / "copy", chosen
        skip = shutil.ignore_patterns(".git", ".*_cache", ".hypothesis", "__pycache__", ".venv", "_build")
        shutil.copytree(ROOT, self.root, ignore=skip)
        os.environ |= {
            "JAX_PLATFORMS": "cpu",
            "OPENBLAS_NUM_THREADS": "1",
            "PYTHONPATH": str(self.root),
            "TMPDIR": str(folder),
            # Programs that the change does not reach are compiled once.
            "JAX_ENABLE_COMPILATION_CACHE": "true",
            "JAX_COMPILATION_CACHE_DIR": str(folder / "programs"),
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        }
        os.chdir(self.root)
        sys.path[:] = [str(self.root), *(p for p in sys.path if Path(p or ".").resolve() not in (ROOT, ROOT / "tests"))]
        for name in ("jax.numpy", "jax.scipy.special", "scipy.stats", "scipy.optimize", "sklearn.metrics", "pytest"):
            __import__(name)
        self.looks: dict[tuple[str, ...], dict[str, Any]] = {}

    def look(self, tests: tuple[str, ...]) -> dict[str, Any]:
        """Return how the tests of some modules do, with the file as it is, and what they reach; they run once."""
        if tests not in self.looks:
            found: dict[str, Any] = {"failed": ["no test ran"]}
            watched = tuple(str(file) for name in ("jaxkern", "proofs_check") for file in _files(self.root / name))
            ended = self.session(tests, lambda loop, say: say({"idle": _idle()} | loop.look(watched)), found.update)
            if ended or found["failed"]:
                raise SystemExit(f"mutants: {', '.join(tests)} fail without a change: {ended or found['failed']}")
            self.looks[tests] = found
        return self.looks[tests]

    def session(
        self,
        tests: tuple[str, ...],
        work: Callable[[Loop, Callable[[Any], None]], None],
        heard: Callable[[Any], None],
        limit: float = math.inf,
    ) -> str | None:
        """Collect tests in a child and let `work` run them there; hear what it says, as `in_a_child` does."""

        def child(say: Callable[[Any], None]) -> None:
            with open(self.root.parent / "log.txt", "w") as log:
                os.dup2(log.fileno(), 1)
                os.dup2(log.fileno(), 2)
            import pytest

            import jaxkern

            assert Path(jaxkern.__file__).is_relative_to(self.root), "another copy would be tested"
            paths = [f"tests/test_{name}.py" for name in tests]
            options = ["-n", "0", "-q", "-p", "no:cacheprovider", "--continue-on-collection-errors", *self.chosen]
            pytest.main([*options, *paths], plugins=[Loop(lambda loop: work(loop, say))])

        return in_a_child(child, heard, limit)


class Module:
    """A file with the tests that try it: which of them reach which functions, and how long they take.

    With `blind` it is not looked: all of them are run, in their own order. That is quicker for one mutant or two.
    """

    def __init__(self, place: Workplace, path: str, seconds: float, blind: bool) -> None:
        self.place, self.path, self.most = place, path, seconds
        self.file = place.root / path
        self.original = self.file.read_text()
        self.tests, self.blind, self.limit = tests_of(path), blind, 600.0
        self.idle = True
        if blind:
            return
        found = place.look(self.tests)
        self.idle, self.seconds = found["idle"], found["seconds"]
        self.reached = {test: lines.get(str(self.file), []) for test, lines in found["reached"].items()}
        self.limit = 30 + 3 * sum(self.seconds.values())

    def reach(self, mutant: Mutant) -> set[str]:
        """Return the tests during which the function of a mutant ran."""
        first, last = mutant.around or (1, 0)
        if self.blind:
            return {"any"} if mutant.around else set()
        return {test for test, lines in self.reached.items() if any(first <= line <= last for line in lines)}

    def order(self, mutant: Mutant, loop: Loop) -> list[str]:
        """Return all tests: those that reach a mutant first, and of those quick ones.

        What is compiled, kept in a cache or made by a fixture for the first test that needs it matters to others, too.
        """
        if self.blind:
            return list(loop.items)
        reach = self.reach(mutant)
        others = set(self.seconds) - reach
        order = [*sorted(reach, key=self.seconds.__getitem__), *sorted(others, key=self.seconds.__getitem__)]
        total = itertools.accumulate(self.seconds[test] for test in order)
        return [test for i, (test, spent) in enumerate(zip(order, total, strict=True)) if i == 0 or spent <= self.most]

    def try_all(self, mutants: list[Mutant], heard: Callable[[Mutant, dict[str, Any]], None], end: float) -> None:
        """Try mutants, and hear of each what became of it. None is started after `end`."""
        for mutant in mutants:
            compile(mutant.source, mutant.path, "exec")  # a change that is no program would pass for killed
        left = list(mutants)
        if self.idle:  # nothing of JAX has started when the tests are collected, so that session can fork

            def work(loop: Loop, say: Callable[[Any], None]) -> None:
                for i, mutant in enumerate(mutants if _idle() else []):
                    if self.reach(mutant) and time.monotonic() < end:
                        row = self._in_place(loop, mutant)
                        if row:
                            say([i, row])

            def note(message: tuple[int, dict[str, Any]]) -> None:
                left.remove(mutants[message[0]])
                heard(mutants[message[0]], message[1])

            self.place.session(self.tests, work, note)
        for mutant in left:
            if time.monotonic() < end:
                heard(mutant, self._from_the_file(mutant))

    def _in_place(self, loop: Loop, mutant: Mutant) -> dict[str, Any] | None:
        """Give the loaded functions their changed code, in a child; None where the file must be loaded again."""
        said: list[Any] = []

        def work(say: Callable[[Any], None]) -> None:
            say(put_in(str(self.file), self.original, mutant.source))
            say(loop.run(self.order(mutant, loop)))

        start = time.monotonic()
        ended = in_a_child(work, said.append, self.limit)
        return _row(ended, said[1:], start) if said[:1] == [True] else None

    def _from_the_file(self, mutant: Mutant) -> dict[str, Any]:
        """Change the file of the copy, and run the tests in a session of their own."""
        said: list[Any] = []
        start = time.monotonic()
        with _changed(self.file, mutant.source, self.original):
            ended = self.place.session(
                self.tests, lambda loop, say: say(loop.run(self.order(mutant, loop))), said.append, self.limit
            )
        return _row(ended, said, start)


def _row(ended: str | None, said: list[Any], start: float) -> dict[str, Any]:
    by = ended or (said[0] if said else "no test ran")
    outcome = "timeout" if ended == "timeout" else "killed" if by else "survived"
    return {"outcome": outcome, "by": by, "seconds": round(time.monotonic() - start, 2)}


def _idle() -> bool:
    from jax._src import xla_bridge

    return not xla_bridge.backends_are_initialized()


@contextmanager
def _changed(file: Path, source: str, original: str) -> Iterator[None]:
    """Let a file hold something else. No bytecode of either is left: its date could be that of both."""

    def write(text: str) -> None:
        file.write_text(text)
        for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            compiled.unlink()

    sys.dont_write_bytecode = True
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    write(source)
    try:
        yield
    finally:
        write(original)


def put_in(file: str, original: str, source: str) -> bool:
    """Give every function loaded from a file its code in another version of it; False where the two do not pair."""
    old, new = (list(_codes(compile(text, file, "exec", dont_inherit=True))) for text in (original, source))
    if [code.co_qualname for code in old] != [code.co_qualname for code in new]:
        return False
    becomes = dict(zip(old, new, strict=True))
    functions = [thing for thing in gc.get_objects() if isinstance(thing, FunctionType)]
    functions = [function for function in functions if function.__code__.co_filename == file]
    for function in functions:
        code = becomes.get(function.__code__)
        if code is None or code.co_freevars != function.__code__.co_freevars:
            return False
        function.__code__ = code
    return True


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def tests_of(path: str) -> tuple[str, ...]:
    """Return the names of the modules of tests that try a file."""
    named = [name for name in TESTS if path == name or path.startswith(name + "/")]
    if named:
        return TESTS[max(named, key=len)]
    parts = [part.lstrip("_") for part in Path(path).with_suffix("").parts[1:]]
    of_paper = f"{parts[0]}_{parts[-1].split('_')[0]}"  # such as claims_chen2016
    found = [name for name in (of_paper, *reversed(parts)) if (ROOT / f"tests/test_{name}.py").exists()]
    if not found:
        raise SystemExit(f"mutants: no tests are known for {path}; add them to TESTS")
    return ("every_claim", found[0]) if parts[0] == "claims" else (found[0],)


# ------------------------------------------------------------------------------------------------------- the command


def main() -> int:
    parser = argparse.ArgumentParser(
        "python tests/mutants.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", help="files or folders, relative to the root of the repository")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write results; those in it already are kept")
    parser.add_argument("--sample", type=int, metavar="N", help="try so many of all, drawn at random, each by its hash")
    parser.add_argument("--seed", type=int, default=0, help="of the draw (default: 0)")
    parser.add_argument("--without", nargs="+", default=[], metavar="PATH", help="files or folders to leave out")
    parser.add_argument("--slow", action="store_true", help="run the slow tests, too")
    parser.add_argument("-k", metavar="EXPRESSION", default="", help="run the tests that this selects, as in pytest")
    parser.add_argument("--only", metavar="PATTERN", help="mutants in whose identity and name it is found")
    parser.add_argument("--minutes", type=float, default=math.inf, help="start none after so many")
    parser.add_argument("--seconds", type=float, default=math.inf, help="of tests for one mutant, the quick ones")
    parser.add_argument("--blind", action="store_true", help="do not look first which tests reach what")
    parser.add_argument("--again", action="store_true", help="try those again that survived according to the file")
    parser.add_argument("--list", action="store_true", help="show the mutants and run nothing")
    options = parser.parse_args()

    without = {file for path in options.without for file in _files(ROOT / path)}
    files = sorted({file for path in options.paths for file in _files(ROOT / path)} - without)
    every = [mutant for file in files for mutant in mutants_of(str(file.relative_to(ROOT)), file.read_text())]
    for line in _stale(every, files):
        print(f"explains no mutant: {line}")
    if options.sample is not None:
        drawn = sorted({mutant.identity for mutant in every}, key=lambda identity: _hash(f"{options.seed} {identity}"))
        every = [mutant for mutant in every if mutant.identity in set(drawn[: options.sample])]
    every = [mutant for mutant in every if re.search(options.only or "", f"{mutant.identity} {mutant.name}")]
    if options.list:
        print("\n".join(f"{mutant.identity} {mutant.name}" for mutant in every))
        return 0
    kept = options.json and options.json.resolve()
    rows = {row["id"]: row for row in json.loads(kept.read_text())} if kept and kept.exists() else {}
    if options.again:
        again = {mutant.identity for mutant in every}
        rows = {identity: row for identity, row in rows.items() if row["outcome"] == "killed" or identity not in again}
    chosen = ["-k", options.k, *(["-m", ""] if options.slow else [])]
    end = time.monotonic() + 60 * options.minutes
    return _run(every, rows, kept, chosen, functools.partial(Module, seconds=options.seconds, blind=options.blind), end)


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.py")) if path.is_dir() else [path]


def explanations() -> dict[str, str]:
    """Return why mutants survive, by identity."""
    found, why = {}, ""
    for line in EXPLAINED.read_text().splitlines():
        if line.startswith(" "):
            found[line.split()[0]] = why
        elif line:
            why = line
    return found


def _stale(every: list[Mutant], files: list[Path]) -> list[str]:
    """Return the lines of the explanations that are of these files, and of none of their mutants."""
    there, paths = {mutant.identity for mutant in every}, {str(file.relative_to(ROOT)) for file in files}
    rows = [line.split() for line in EXPLAINED.read_text().splitlines() if line.startswith(" ")]
    return [" ".join(row) for row in rows if row[1].split(":")[0] in paths and row[0] not in there]


def _run(
    every: list[Mutant],
    rows: dict[str, dict[str, Any]],
    kept: Path | None,
    chosen: list[str],
    module: Callable[[Workplace, str], Module],
    end: float,
) -> int:
    wanted = {mutant.identity: mutant for mutant in every}
    open_: dict[str, list[Mutant]] = {}
    for identity, mutant in wanted.items():
        if identity not in rows:
            open_.setdefault(mutant.path, []).append(mutant)
    explained = explanations()

    def outcome(identity: str) -> str:
        said = rows[identity]["outcome"] if identity in rows else "not tried"
        return "explained" if said == "survived" and identity in explained else said

    def heard(mutant: Mutant, row: dict[str, Any]) -> None:
        rows[mutant.identity] = {"id": mutant.identity, "name": mutant.name} | row
        if outcome(mutant.identity) not in ("killed", "explained"):
            print(f"{row['outcome']}: {mutant.identity} {mutant.name}", flush=True)
        if kept:
            kept.write_text(json.dumps(list(rows.values()), indent=1) + "\n")

    with tempfile.TemporaryDirectory(prefix="mutants-", ignore_cleanup_errors=True) as folder:
        place = Workplace(Path(folder), chosen) if open_ else None
        for path, mutants in open_.items():
            if place and time.monotonic() < end:
                module(place, path).try_all(mutants, heard, end)
    total: Counter[str] = Counter()
    for path, mutants in itertools.groupby(wanted.values(), key=lambda mutant: mutant.path):
        count = Counter(outcome(mutant.identity) for mutant in mutants)
        print(f"{path}: {_counts(count)}")
        total += count
    print(_counts(total))
    return int(total["survived"] > 0)


def _counts(count: Counter[str]) -> str:
    return f"{count.total()} mutants: " + ", ".join(f"{count[name]} {name}" for name in OUTCOMES if count[name])


if __name__ == "__main__":
    sys.exit(main())
