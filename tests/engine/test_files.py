"""Nothing is lost: whatever call of the file layer fails, the old or the new state is there, and commands can go on.

Disks fail in four ways: one call; every call from one on; a write after half of it; and, as by `kill -9`, with no call
after it, not even one that cleans up. A power cut keeps any of the pages and names that were not forced to the disk.
"""

import contextlib
import dataclasses
import errno
import io
import itertools
import os
import random
import shutil
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
from support import toys

from jaxkern import scale
from jaxkern.scale import _resume
from proofs_check.cli import job
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint, draws, files
from proofs_check.report import document

pytestmark = pytest.mark.usefixtures("own_precision")
CALLS = {
    name: getattr(files, name)
    for name in ("_open", "_write", "_fsync", "_rename", "cut", "_remove")
}
WAYS = ("once", "from then on", "half", "killed")
CLAIM = dataclasses.replace(toys.CLAIM, printed=None)


class Killed(BaseException):
    """The process is gone: no call after this one has an effect."""


class Disk:
    """Count the calls that write, log them with the paths of their files, and let one fail in some way."""

    def __init__(self, at=0, way="once"):
        self.count, self.at, self.way, self.log, self.paths = 0, at, way, [], {}

    def wrap(self, name, call):
        def wrapped(*args):
            self.count += 1
            if self.count == self.at or (
                self.count > self.at > 0 and self.way in WAYS[1::2]
            ):
                if self.way == "half" and name == "_write":
                    call(args[0], args[1][: len(args[1]) // 2])
                raise (
                    Killed
                    if self.way == "killed"
                    else OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                )
            more = [bytes(a) if name == "_write" else a for a in args[1:]]
            found = call(args[0], *more)
            if name in CALLS:
                self.paths.update({found: args[0]} if name == "_open" else {})
                self.log.append((name, str(self.paths.get(args[0], args[0])), *more))
            return found

        return wrapped

    def __enter__(self):
        for name, call in CALLS.items():
            setattr(files, name, self.wrap(name, call))
        return self

    def __exit__(self, *error):
        for name, call in CALLS.items():
            setattr(files, name, call)


@pytest.mark.parametrize(("before", "way"), [*itertools.product([b"old", None], WAYS)])
def test_a_file_is_written_as_a_whole_or_not_at_all(before, way, tmp_path):
    path = tmp_path / "report"
    for at in range(
        1, 8
    ):  # open, write, fsync, rename, and of the folder open, fsync; and none
        path.unlink(missing_ok=True)
        if before is not None:
            path.write_bytes(before)
        expected = (
            contextlib.nullcontext()
            if at == 7
            else pytest.raises((files.StorageError, Killed))
        )
        with Disk(at, way) as disk, expected:
            files.write(path, "new\udcff")
        assert at < 7 or disk.count == 6
        assert (path.read_bytes() if path.exists() else None) == (
            b"new\\udcff" if at > 4 else before
        )
        assert way in WAYS[1::2] or files.leftovers(tmp_path) == []
        files.clear(tmp_path)
        assert {p.name for p in tmp_path.iterdir()} <= {"report"}


@pytest.fixture
def whole(monkeypatch, tmp_path, capsys):
    """Compile a toy, work in an empty folder, and return the report of a run that nothing stopped, in the folder w."""
    registry = types.SimpleNamespace(
        claims=lambda *_, only: [CLAIM], outlines=lambda: [CLAIM]
    )
    monkeypatch.setitem(sys.modules, "proofs_check.register", registry)
    monkeypatch.setattr(draws, "PROFILES", {"quick": toys.PROFILE})
    monkeypatch.setattr(job, "WORKERS", 1)
    monkeypatch.setattr(
        checkpoint, "digest_of_program", lambda: "0"
    )  # a third of the time
    monkeypatch.chdir(tmp_path)
    assert main(["--output", "w"]) == 0
    return toys.report("w")[0]


def nothing(folder):
    shutil.rmtree(folder, ignore_errors=True)


def interrupted(folder, blocks):
    """Make the folder of a run that was killed after so many blocks."""
    nothing(folder)
    folder.mkdir()
    lines = Path("w", checkpoint.CHECKPOINT).read_bytes().splitlines(keepends=True)
    (folder / checkpoint.CHECKPOINT).write_bytes(b"".join(lines[: blocks + 1]))
    shutil.copy(Path("w", checkpoint.MANIFEST), folder)
    (folder / (".report.md." + "0" * 16 + ".tmp")).touch()


def without_pages(folder):
    nothing(folder)
    shutil.copytree("w", folder)
    (folder / "report.html").unlink()
    (folder / "report.md").write_text("of another report")


STARTS = [(nothing, "--output"), (without_pages, "resume"), (without_pages, "report")]
STARTS += [(lambda folder, n=n: interrupted(folder, n), "resume") for n in range(10)]


def blocks_of(folder):
    """Return the whole lines of blocks in a folder."""
    path = folder / checkpoint.CHECKPOINT
    return (
        {line for line in path.read_bytes().split(b"\n")[:-1] if b'"<f8"' in line}
        if path.exists()
        else set()
    )


def goes_on(folder, whole, kept):
    """Assert that these blocks are there, and every file whole or not at all; go on to the end of the run."""
    found = {path.name for path in folder.iterdir()} - {
        path.name for path in files.leftovers(folder)
    }
    if checkpoint.MANIFEST in found:
        assert kept <= blocks_of(folder)
        assert (
            "report.json" not in found
            or document.read(folder / "report.json")["complete"]
        )
        assert "report.html" not in found or (
            folder / "report.html"
        ).read_text().endswith("</html>\n")
        assert main(["resume", str(folder)]) == 0
    else:
        assert (
            not kept
            and found <= {checkpoint.CHECKPOINT}
            and main(["--output", str(folder)]) == 0
        )
    report = document.read(folder / "report.json")
    assert {key: value for key, value in report.items() if key != "run"} == whole
    assert job.write_pages(folder, report) == []


def written(log):
    return {
        entry[2][:-1]
        for entry in log
        if entry[0] == "_write" and b'"<f8"' in entry[2][:200]
    }


@pytest.mark.parametrize(
    ("starts", "step"),
    [(STARTS[:5], 29), pytest.param(STARTS, 1, marks=pytest.mark.slow)],
)
def test_whatever_call_of_a_command_fails_nothing_is_lost(starts, step, whole, capsys):
    began, count, folder = time.monotonic(), 0, Path("o")
    for (prepare, word), way in itertools.product(starts, WAYS):
        for at in itertools.count(1 + count % step, step):
            prepare(folder)
            kept = blocks_of(folder)
            with Disk(at, way) as disk:
                try:
                    status = main([word, "o"])
                except Killed:
                    status = 3
            assert status == (3 if disk.count >= at else 0)
            folder.mkdir(exist_ok=True)
            goes_on(folder, whole, kept | written(disk.log))
            if status == 0:
                break
            count += 1
    with capsys.disabled():
        print(f" {count} faults in {time.monotonic() - began:.0f} s ", end="")
    assert count >= (1000 if step == 1 else 15) and time.monotonic() - began < 600


def cut_off(log, draw):
    """Return the files, by path, that a power cut after these calls may leave: whole pages and names, old or new."""
    now, disk, named, waiting = (
        [],
        {},
        {},
        [],
    )  # contents of files and what the disk has of them; names; names to come
    for name, path, *args in log:
        number = {**named, **dict(waiting)}.get(path)
        if name == "_open" and args[0] & os.O_CREAT and number is None:
            waiting.append((path, len(now)))
            now.append(bytearray())
        elif name == "_write":
            now[number] += args[0]
        elif name == "cut":
            del now[number][args[0] :]
        elif name == "_fsync" and number is not None:
            disk[number] = bytes(now[number])
        elif name == "_fsync":  # of the folder
            named.update(waiting)
            waiting.clear()
        elif name == "_rename":
            waiting.append((str(args[0]), number))
    named.update(entry for entry in waiting if draw.random() < 0.5)
    found, share = {}, draw.random()
    for path, number in named.items():
        new, old = bytes(now[number]), disk.get(number, b"")
        size = draw.choice((len(new), len(old)))
        pages = (
            (new if draw.random() < share else old)[i : i + 4096].ljust(4096, b"\0")
            for i in range(0, size, 4096)
        )
        found[path] = b"".join(pages)[:size]
    return found


@pytest.mark.parametrize("cuts", [12, pytest.param(400, marks=pytest.mark.slow)])
def test_a_power_cut_takes_nothing_that_was_forced_to_the_disk(
    cuts, whole, capsys, monkeypatch
):
    clock = itertools.count(
        time.monotonic(), 8.0
    )  # every fourth block is forced to the disk
    monkeypatch.setattr(
        checkpoint, "time", types.SimpleNamespace(monotonic=lambda: next(clock))
    )
    folder, draw, some = Path("o"), random.Random(0), 0
    with Disk() as disk:
        assert main(["--output", "o"]) == 0
    for _ in range(cuts):
        log = disk.log[: draw.randrange(1, len(disk.log) + 1)]
        nothing(folder)
        folder.mkdir()
        for path, content in cut_off(log, draw).items():
            Path(path).write_bytes(content)
        synced = [
            i
            for i, entry in enumerate(log)
            if entry[:2] == ("_fsync", str(folder / checkpoint.CHECKPOINT))
        ]
        kept = written(log[: max(synced, default=0)])
        some += len(kept) > 0
        goes_on(folder, whole, kept)
    assert some > cuts // 4


@pytest.mark.parametrize("way", WAYS)
def test_a_fault_in_embedding_costs_no_finished_block(way, monkeypatch, tmp_path):
    X = np.arange(20, dtype=np.float32).reshape(10, 2)
    add, added = _resume.Record.add, []
    monkeypatch.setattr(
        _resume.Record,
        "add",
        lambda self, *block: (add(self, *block), added.append(block[0])),
    )
    for at in itertools.count(1):
        asked = {"block_size": 4, "progress": tmp_path / str(at)}
        out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, X.shape)
        disk = Disk(at, way)
        file = type(
            "File", (io.FileIO,), {"write": disk.wrap("_write", io.FileIO.write)}
        )
        added.clear()
        with monkeypatch.context() as patch, contextlib.suppress(OSError, Killed):
            patch.setattr(_resume, "open", file, raising=False)
            patch.setattr(os, "fsync", disk.wrap("_fsync", os.fsync))
            patch.setattr(np.memmap, "flush", disk.wrap("flush", np.memmap.flush))
            scale.embed(double, X, out=out, **asked)
        if disk.count < at:
            assert (
                at == 13 and len(added) == 3
            )  # a write and an fsync of each line, one of the folder, three flushes
            return
        scale.embed(double, X, out=out, **asked)
        np.testing.assert_array_equal(out, 2 * X)
        assert len(added) <= 3  # in both calls: no finished block twice


def double(x):
    return x + x


FOREVER = f"""
import itertools, sys, time
sys.path.insert(0, {str(Path(__file__).resolve().parents[1])!r})
from engine import test_files as t
t.checkpoint.digest_of_program = lambda: "0"
sys.modules["proofs_check.register"] = t.types.SimpleNamespace(
    claims=lambda *_, only: [t.CLAIM], outlines=lambda: [t.CLAIM]
)
t.draws.PROFILES = {{"quick": t.toys.PROFILE}}
for name, call in t.CALLS.items():  # so that kills come between calls, too
    setattr(t.files, name, lambda *args, call=call: (time.sleep(0.002), call(*args))[1])
for i in itertools.count():
    t.main(["--output", str(i)])
"""


@pytest.mark.slow
def test_fifty_kills_lose_nothing(whole, capsys, tmp_path):
    draw, stages = random.Random(0), set()
    kept = {
        "JAX_ENABLE_COMPILATION_CACHE": "true",
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    kept["JAX_COMPILATION_CACHE_DIR"] = str(tmp_path / "cache")
    for _ in range(50):
        for folder in Path().glob("[0-9]*"):
            shutil.rmtree(folder)
        child = [sys.executable, "-c", FOREVER]
        with subprocess.Popen(
            child, stdout=subprocess.DEVNULL, env=os.environ | kept
        ) as process:
            while not Path("1").exists():  # by now all is compiled
                assert process.poll() is None
                time.sleep(0.01)
            time.sleep(draw.uniform(0, 1))
            process.kill()
        last = max(Path().glob("[0-9]*"), key=lambda path: int(path.name))
        stages.add(frozenset(path.name for path in last.iterdir()))
        goes_on(last, whole, set())
    assert len(stages) > 2
