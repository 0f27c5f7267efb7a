"""Compiled programs kept between runs: where, for whom, how many, and that reports do not depend on them."""

import errno
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path
from unittest import mock

import pytest

from proofs_check.cli import cache
from proofs_check.cli.command import main
from proofs_check.usage import UsageError

ROOT = Path(__file__).resolve().parents[2]
ON, FOLDER = "JAX_ENABLE_COMPILATION_CACHE", "JAX_COMPILATION_CACHE_DIR"

needs_owners = pytest.mark.skipif(
    not hasattr(os, "geteuid"), reason="this system does not tell who owns a folder"
)


@pytest.fixture
def environment(monkeypatch, tmp_path):
    """Return the variables of a process in which JAX is not imported, with a cache folder of its own."""
    known = {
        name: value for name, value in os.environ.items() if not name.startswith("JAX_")
    }
    known["XDG_CACHE_HOME"] = str(tmp_path / "xdg")
    monkeypatch.setattr(os, "environ", known)
    monkeypatch.delitem(sys.modules, "jax")
    return known


def variables(environment):
    return {
        name: value for name, value in environment.items() if name.startswith("JAX_")
    }


@needs_owners
def test_programs_are_kept_in_a_folder_for_the_user_alone(environment, tmp_path):
    cache.prepare()
    folder = tmp_path / "xdg" / "jaxkern" / "compiled" / cache.machine()
    assert variables(environment) == {
        ON: "true",
        FOLDER: str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none",
    }
    while folder != tmp_path:
        assert folder.stat().st_mode & 0o777 == 0o700
        folder = folder.parent


@needs_owners
def test_a_folder_may_be_named_and_thresholds_are_the_users(environment, tmp_path):
    environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "2"
    environment[ON] = "false"  # what is asked for on the command line counts
    cache.prepare(tmp_path / "here")
    assert (
        environment[FOLDER] == str(tmp_path / "here" / cache.machine())
        and environment[ON] == "true"
    )
    assert environment["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] == "2"
    assert not (tmp_path / "xdg").exists()


@pytest.mark.parametrize(
    "set_by_the_user",
    [{FOLDER: "/somewhere"}, {ON: "False"}, {ON: "0", FOLDER: "/somewhere"}],
)
def test_what_the_user_told_jax_stays(environment, tmp_path, set_by_the_user):
    environment |= set_by_the_user
    cache.prepare()
    assert variables(environment) == set_by_the_user and not (tmp_path / "xdg").exists()


def test_it_can_be_turned_off(environment, tmp_path):
    environment[FOLDER] = "/somewhere"
    cache.prepare(off=True)
    assert environment[ON] == "false" and not (tmp_path / "xdg").exists()


def test_a_process_in_which_jax_runs_is_left_alone(environment, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "jax", None)
    cache.prepare()
    cache.prepare(off=True)
    assert not variables(environment) and not (tmp_path / "xdg").exists()


def test_a_relative_name_is_none(environment, tmp_path):
    environment |= {"XDG_CACHE_HOME": "cache", "HOME": str(tmp_path)}
    assert cache.own_folder() == tmp_path / ".cache" / "jaxkern" / "compiled"


def test_without_a_home_programs_are_not_kept(environment, monkeypatch, capsys):
    del environment["XDG_CACHE_HOME"]
    monkeypatch.setattr(
        Path,
        "home",
        mock.Mock(side_effect=RuntimeError("Could not determine home directory.")),
    )
    cache.prepare()
    assert "there is no home folder" in capsys.readouterr().err and not variables(
        environment
    )


def test_where_nothing_is_told_of_the_processor_the_computer_is_named(monkeypatch):
    known = cache.machine()
    assert known == cache.machine() and len(known) == 20
    monkeypatch.setattr(Path, "read_text", mock.Mock(side_effect=PermissionError))
    monkeypatch.setattr(cache.platform, "node", lambda: "here")
    here = cache.machine()
    monkeypatch.setattr(cache.platform, "node", lambda: "there")
    assert len({known, here, cache.machine()}) == 3 and len(here) == 20


@needs_owners
def test_a_folder_that_others_can_change_is_refused(environment, tmp_path, capsys):
    for name, mode in (
        ("open", 0o757),
        ("shared", 0o770),
        ("linked", 0o777),
        ("mine", 0o700),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    (tmp_path / "link").symlink_to(tmp_path / "linked")
    (tmp_path / "mine" / "file").write_text("")
    (tmp_path / "mine" / cache.machine()).mkdir()
    (tmp_path / "mine" / cache.machine()).chmod(0o755)
    for path, reason in (
        ("open", f"others can write to {tmp_path / 'open'}"),
        ("shared/below", f"others can write to {tmp_path / 'shared'}"),
        ("link", f"others can write to {tmp_path / 'linked'}"),
        ("mine", "others can look into"),
        ("mine/file", "file"),
    ):
        with pytest.raises(UsageError, match="cannot be used") as raised:
            cache.prepare(tmp_path / path)
        assert reason in str(raised.value) and "\n" not in str(raised.value)
        assert not variables(environment)
    assert main(["run", "--cache", str(tmp_path / "open")]) == 2
    assert "cannot be used" in capsys.readouterr().err


@needs_owners
def test_a_folder_of_another_user_is_refused(environment, monkeypatch, tmp_path):
    (tmp_path / "theirs").mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: tmp_path.stat().st_uid + 1)
    with pytest.raises(UsageError, match="belongs to another user"):
        cache.prepare(tmp_path / "theirs")


@needs_owners
def test_what_has_become_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(cache._Refused, match="file is no folder"):
        cache._private(tmp_path / "file")


def test_a_system_that_does_not_tell_who_can_write_is_refused(
    environment, monkeypatch, tmp_path
):
    monkeypatch.delattr(os, "geteuid", raising=False)
    with pytest.raises(UsageError, match="does not tell who can write to a folder"):
        cache.prepare(tmp_path / "mine")
    assert not (tmp_path / "mine").exists() and not variables(environment)


@needs_owners
def test_the_sticky_bit_protects_what_is_below(environment, tmp_path):
    tmp_path.chmod(0o1777)
    cache.prepare(tmp_path / "mine")
    assert environment[FOLDER].startswith(str(tmp_path / "mine"))


@needs_owners
def test_where_the_own_folder_is_refused_one_line_says_so_and_the_run_goes_on(
    environment, tmp_path, capsys
):
    (tmp_path / "xdg").mkdir(mode=0o700)
    (tmp_path / "xdg").chmod(0o777)
    cache.prepare()
    said = capsys.readouterr().err
    assert (
        said.count("\n") == 1
        and "not kept" in said
        and f"chmod go-w {tmp_path / 'xdg'}" in said
    )
    assert not variables(environment)


def test_every_command_that_compiles_prepares_before_jax_is_imported():
    script = (
        "import sys\nfrom proofs_check.cli import cache\nfrom proofs_check.cli.command import COMPILING, main\n"
        "def prepare(asked, *, off):\n    print(asked, off, 'jax' in sys.modules)\n    sys.exit()\n"
        "cache.prepare = prepare\n"
        "for words in (['--no-cache'], *([name, '--cache', 'here'] for name in COMPILING)):\n"
        "    try:\n        main(words)\n    except SystemExit:\n        pass\n"
        "main(['report', 'nothing'])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == ["None True False"] + ["here False False"] * 4


def programs(folder, count, size=1000):
    """Write programs, the first of which was used last; return them."""
    own = folder / "xla-0123"
    own.mkdir(parents=True)
    paths = [own / f"jit_f-{i}-cache" for i in range(count)]
    for age, path in enumerate(paths):
        path.write_bytes(b"\x28" * size)
        os.utime(path, (1e9 - age, 1e9 - age))
    return paths


def test_what_was_unused_for_longest_goes_first(tmp_path):
    paths = programs(tmp_path, 10)
    (tmp_path / "notes").write_text("not a program")
    (tmp_path / "checked").touch()  # to look into files is to use them
    cache.prune(tmp_path, largest=10_000)
    assert all(path.exists() for path in paths)
    os.utime(paths[9], (2e9, 9e8))  # written first, read last
    cache.prune(tmp_path, largest=9_999)
    assert [path.exists() for path in paths] == [True] * 3 + [False] * 6 + [True]
    assert (tmp_path / "notes").exists()


def test_what_a_full_disk_left_is_removed_and_is_looked_at_once(tmp_path):
    whole, cut, empty = programs(tmp_path, 3)
    whole.write_bytes(zlib.compress(b"program"))
    cut.write_bytes(zlib.compress(b"program")[:-3])
    empty.write_bytes(b"")
    cache.prune(tmp_path)
    assert [path.exists() for path in (whole, cut, empty)] == [True, False, False]
    whole.write_bytes(zlib.compress(b"program")[:-3])
    os.utime(whole, (1e9, 1e9))
    cache.prune(tmp_path)
    assert whole.exists()


@needs_owners
@pytest.mark.parametrize(
    "call", ["mkdir", "lstat", "stat", "glob", "read_bytes", "unlink", "touch"]
)
def test_a_fault_ends_no_run_and_the_next_one_keeps_programs(
    call, environment, monkeypatch, tmp_path, capsys
):
    cut = tmp_path / "xdg" / "jaxkern" / "compiled" / "xla-0" / "a-cache"
    if call != "mkdir":
        cache._private(cut.parent)
        cut.touch()
    with monkeypatch.context() as patch:
        patch.setattr(
            Path, call, mock.Mock(side_effect=OSError(errno.EIO, "Input/output error"))
        )
        cache.prepare()
    assert bool(variables(environment)) == (
        call in ("read_bytes", "unlink")
    )  # that a file stays is no harm
    environment.pop(FOLDER, None)  # the next process
    cache.prepare()
    assert FOLDER in environment and not cut.exists()


COUNTED = """
import sys
from proofs_check.cli import cache
from proofs_check.cli.command import main

found = []
prepare = cache.prepare

def counting(*args, **kwargs):
    folder = prepare(*args, **kwargs)
    import jax
    jax.monitoring.register_event_listener(lambda event, **_: found.append(event))
    return folder

cache.prepare = counting
status = main(sys.argv[1:])
print(*(found.count(f"/jax/compilation_cache/cache_{what}") for what in ("hits", "misses")))
sys.exit(status)
"""
CLAIMS = ("--claim", "chen2016:lem4.2-mean", "--claim", "kpotufe2020:prop1")
"""Nothing but the trials of the second one calls LAPACK."""


def run(folder, output):
    """Run two claims as a process of its own; return the report without what may differ, hits, misses and errors."""
    known = {
        name: value for name, value in os.environ.items() if name not in (ON, FOLDER)
    } | {"COLUMNS": "200"}
    words = [sys.executable, "-c", COUNTED, "run", *CLAIMS, "--output", str(output)]
    known["XDG_CACHE_HOME"] = str(folder)
    done = subprocess.run(
        words,
        env=known,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads((output / "report.json").read_text(encoding="utf-8"))
    del report["run"]
    hits, misses = done.stdout.splitlines()[-1].split()
    return report, int(hits), int(misses), done.stderr


@needs_owners
def test_a_report_does_not_depend_on_what_is_kept_nor_on_damage(tmp_path):
    cold, _, misses, _ = run(tmp_path, tmp_path / "cold")
    (folder,) = tmp_path.glob("jaxkern/compiled/xla-*")
    trials = sorted(folder.glob("trial-*-cache"), key=lambda path: path.stat().st_size)
    kept = sorted(folder.glob("jit_*-cache"))
    others = [
        path for path in kept if "side_by_side" not in path.name
    ]  # JAX still has the damaged trial
    assert (
        5 < len(others) < len(kept) <= misses and len(trials) == 3
    )  # claims side by side may compile a program twice
    for path in (trials[-1], *others[::3]):  # long ago, so that JAX finds it
        path.write_bytes(path.read_bytes()[:100])
        os.utime(path, (1e9, 1e9))
    warm, hits, _, errors = run(tmp_path, tmp_path / "warm")
    assert (
        hits > len(others) - len(others[::3])
        and "Error reading persistent compilation cache" in errors
    )
    assert warm == cold
