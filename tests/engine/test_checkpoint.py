"""A run survives whatever ends it: interruption, `kill -9`, a full disk; and what does not belong to it is refused."""

import contextlib
import dataclasses
import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
import types
from pathlib import Path
from unittest import mock

import jax
import numpy as np
import pytest
from support.toys import CLAIM, CLAIMS, OTHERS, PROFILE, SIZES, bound, report, uniform

from proofs_check import usage
from proofs_check.claim import Control, Form, Tail
from proofs_check.cli import job, request
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint, documents, draws, files, run

pytestmark = pytest.mark.usefixtures("own_precision")


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Replace the registry and the quick profile by toys, and work in an empty folder."""
    toy = types.ModuleType("proofs_check.register")
    toy.claims, toy.outlines = lambda data, profile, only: CLAIMS, lambda: CLAIMS
    monkeypatch.setitem(sys.modules, "proofs_check.register", toy)
    monkeypatch.setattr(draws, "PROFILES", {"quick": PROFILE})
    monkeypatch.chdir(tmp_path)
    return toy


def records(folder):
    """Return the whole lines of a checkpoint."""
    return (Path(folder) / "checkpoint.records").read_text().split("\n")[:-1]


def contents(folder):
    return {path.name: path.read_bytes() for path in Path(folder).iterdir()}


@pytest.fixture
def stop_after(monkeypatch):
    """Return a function that lets so many blocks be written and then raises, once."""
    keep = checkpoint.Checkpoint.keep

    def arrange(blocks, error):
        left = [blocks]

        def stopping(self, label, start, values):
            if left[0] == 0:
                left[0] = -1
                raise error
            left[0] -= 1
            keep(self, label, start, values)

        monkeypatch.setattr(checkpoint.Checkpoint, "keep", stopping)

    return arrange


@pytest.fixture
def interrupted(registry, stop_after, capsys):
    """Make a folder `o` with a run that was interrupted after five blocks."""
    stop_after(5, KeyboardInterrupt())
    assert main(["--output", "o"]) == 130
    assert "go on with: proofs-check resume o" in capsys.readouterr().err
    return Path("o")


def one_line(capsys, text):
    error = capsys.readouterr().err
    assert (
        error.startswith("proofs-check: ") and error.count("\n") == 1 and text in error
    ), error


def test_blocks_come_back_as_they_were_and_once(tmp_path):
    first = checkpoint.create(tmp_path, {"a": 1})
    blocks = [
        np.array([1.0, np.nan, np.inf]),
        np.arange(4.0, dtype=np.float32),
        np.ones((2, 2)),
        np.empty(0),
    ]
    for i, block in enumerate(blocks):
        first.keep("label", i, block)
    first.close()
    second = checkpoint.resume(tmp_path)
    assert second.resumed == 1 and second.take("other", 0) is None
    for i, block in enumerate(blocks):
        found = second.take("label", i)
        assert found.dtype == block.dtype and found.shape == block.shape
        np.testing.assert_array_equal(found, block)
        assert second.take("label", i) is None
    assert checkpoint.read_manifest(tmp_path)["a"] == 1
    second.close()
    third = checkpoint.resume(tmp_path)
    assert third.resumed == 2
    third.close()


@pytest.mark.parametrize("blocks", [0, 1, 4, 9, 18])
def test_a_resumed_run_ends_with_the_report_of_one_that_was_never_interrupted(
    blocks, registry, stop_after, capsys
):
    assert main(["--output", "whole"]) == 0
    stop_after(blocks, KeyboardInterrupt())
    assert main(["--output", "parts"]) == 130
    partial, _ = report("parts")
    assert not partial["complete"] and partial["stopped"] == "interrupted"
    assert main(["resume", "parts"]) == 0
    whole, parts = report("whole"), report("parts")
    assert (
        whole[0] == parts[0] and whole[1]["resumed"] == 0 and parts[1]["resumed"] == 1
    )
    before = contents("parts")
    assert main(["resume", "parts"]) == 0 and contents("parts") == before
    assert "holds a finished run" in capsys.readouterr().out


def test_blocks_that_are_there_are_not_drawn_again(interrupted, monkeypatch):
    drawn = []
    draw = draws.Draw.__call__
    monkeypatch.setattr(
        draws.Draw,
        "__call__",
        lambda self, start: drawn.append(start) or draw(self, start),
    )
    assert main(["--output", "whole"]) == 0
    needed = len(drawn)
    kept = sum("corrected" not in line for line in records("o") if ',"<f' in line)
    drawn.clear()
    assert main(["resume", "o"]) == 0
    assert kept >= 5 and len(drawn) == needed - kept


def test_a_folder_that_cannot_be_written_to_is_told_before_the_first_trial(
    registry, monkeypatch, capsys, tmp_path
):
    with pytest.raises(
        usage.StorageError,
        match=r"records cannot be written \(No such file or directory\)",
    ):
        checkpoint.create(tmp_path / "absent", {})

    with monkeypatch.context() as patch:
        patch.setattr(
            files,
            "_fsync",
            mock.Mock(side_effect=OSError(errno.EIO, "Input/output error")),
        )
        assert main(["--output", "o"]) == 3
    one_line(
        capsys,
        "cannot be written (Input/output error); make room and start again with: --output o",
    )
    assert main(["--output", "o"]) == 0  # nothing had begun there
    capsys.readouterr()
    with monkeypatch.context() as patch:  # another run was faster
        patch.setattr(job.folders, "check", lambda path: None)
        assert main(["--output", "o"]) == 2
    one_line(capsys, "o already belongs to a run; choose a new folder, or resume it")


def test_a_checkpoint_that_is_gone_and_a_report_that_is_damaged_are_refused(
    interrupted, capsys
):
    (interrupted / "checkpoint.records").unlink()
    assert main(["resume", "o"]) == 2
    one_line(capsys, "o holds no checkpoint.records, so its run cannot be resumed")
    (interrupted / "report.json").write_text("{")
    assert main(["resume", "o"]) == 2
    one_line(capsys, "report.json")


def test_blocks_reach_the_disk_now_and_then_and_no_objects_do(tmp_path):
    found = checkpoint.create(tmp_path, {})
    for start, (seconds, waited) in enumerate(
        ((0, False), (checkpoint.SECONDS_BETWEEN_SYNCS + 1, True))
    ):
        found._synced = before = time.monotonic() - seconds
        found.keep("label", start, np.ones(3))
        assert (found._synced > before) == waited
    with pytest.raises(TypeError, match="of dtype object cannot be kept"):
        found.keep("label", 2, np.array([None]))
    found.close()
    found.close()
    again = checkpoint.resume(tmp_path)
    assert [again.take("label", start) is None for start in range(3)] == [
        False,
        False,
        True,
    ]
    again.close()


def test_a_run_in_another_thread_leaves_signals_alone():
    seen = []

    def inside():
        with job._as_interrupt(signal.SIGTERM):
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=inside)
    thread.start()
    thread.join()
    assert seen == [before]
    with job._as_interrupt(signal.SIGTERM):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_report_that_cannot_be_written_is_written_by_resuming(
    registry, monkeypatch, capsys
):
    full = mock.Mock(
        side_effect=usage.StorageError(
            "report.json cannot be written (No space left on device)"
        )
    )
    with monkeypatch.context() as patch:
        patch.setattr(documents, "write_json", full)
        assert main(["--output", "o"]) == 3
    out, error = capsys.readouterr()
    assert (
        "3 claim(s), all as expected." in out and error.count("\n") == 1
    )  # what could not be written is printed
    assert main(["resume", "o"]) == 0 and report("o")[0]["complete"]


def change_line(number):
    def damage(content):
        lines = content.splitlines(keepends=True)
        lines[number] = (
            lines[number].replace(b"A", b"B", 1) if number else b"x" + lines[0]
        )
        return b"".join(lines)

    return damage


@pytest.mark.parametrize(
    ("damage", "lines"),
    [
        (lambda content: content[: len(content) // 2], 0),
        (lambda content: content[:-1], 0),
        (change_line(2), 1),
        (lambda content: content[:2000] + bytes(1000) + content[3000:], 1),
    ],
)
def test_a_damaged_line_costs_its_block_alone(damage, lines, interrupted, capsys):
    path = interrupted / "checkpoint.records"
    path.write_bytes(damage(path.read_bytes()))
    assert main(["resume", "o"]) == 0 and main(["--output", "whole"]) == 0
    said = capsys.readouterr().err
    assert (
        f"{lines} line(s) of checkpoint.records are damaged" in said
        if lines
        else said == ""
    )
    assert report("o")[0] == report("whole")[0]
    with contextlib.closing(
        checkpoint.resume(interrupted)
    ) as again:  # nor does it harm what was written after it
        assert again.damaged == lines and again.resumed == 2


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[:40],
        change_line(0),
        lambda c: bytes(99),
    ],
)
def test_a_checkpoint_without_its_first_line_is_refused_and_left_as_it_is(
    damage, interrupted, capsys
):
    path = interrupted / "checkpoint.records"
    path.write_bytes(damage(path.read_bytes()))
    before = contents(interrupted)
    assert main(["resume", "o"]) == 2
    one_line(capsys, "is damaged or cut short, and is left as it is")
    assert contents(interrupted) == before


def test_the_checkpoint_of_another_run_is_refused_and_left_as_it_is(
    interrupted, stop_after, capsys
):
    stop_after(3, KeyboardInterrupt())
    assert main(["--output", "p", "--seed", "1"]) == 130
    capsys.readouterr()
    os.replace("p/checkpoint.records", "o/checkpoint.records")
    before = contents(interrupted)
    assert main(["resume", "o"]) == 2
    one_line(capsys, "does not belong to the manifest.json beside it")
    assert contents(interrupted) == before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.update(program="0"), "the program has changed"),
        (lambda m: m["versions"].update(jax="0.0"), "other versions"),
        (lambda m: m.update(platform="tpu"), "the device is of another kind"),
        (lambda m: m["claims"].pop(), "the claims are not the same"),
        (lambda m: m.update(schema=99), "no manifest of schema version 2"),
        (lambda m: m.pop("flags"), "not as this version writes it"),
        (
            lambda m: m["flags"].pop("XLA_FLAGS"),
            "it was started with XLA_FLAGS=None, which is",
        ),
        (lambda m: m.update(request={}), "not as this version writes it"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(change, message, interrupted, capsys):
    path = interrupted / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    before = contents(interrupted)
    assert main(["resume", "o"]) == 2
    one_line(capsys, message)
    assert contents(interrupted) == before


@pytest.mark.parametrize(
    ("setting", "name"),
    [
        (
            lambda: jax.default_prng_impl("rbg"),
            "JAX_DEFAULT_PRNG_IMPL='threefry2x32', which is 'rbg' now",
        ),
        (
            lambda: jax.threefry_partitionable(False),
            "JAX_THREEFRY_PARTITIONABLE=True, which is False now",
        ),
        (
            lambda: jax.default_matmul_precision("bfloat16"),
            "JAX_DEFAULT_MATMUL_PRECISION=None, which is 'bfloat16' now",
        ),
    ],
)
def test_a_run_is_not_resumed_under_other_settings_of_jax(
    setting, name, interrupted, capsys, monkeypatch
):
    before = contents(interrupted)
    with setting():
        assert main(["resume", "o"]) == 2
    one_line(
        capsys,
        f"it was started with {name}; set this variable as it was, or start a new run",
    )
    assert contents(interrupted) == before
    assert (
        report("o")[0]["flags"]
        == json.loads(before["manifest.json"])["flags"]
        == request.flags()
    )
    monkeypatch.setenv(
        "XLA_FLAGS",
        f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_enable_fast_math=true",
    )
    assert request.flags() != json.loads(before["manifest.json"])["flags"]


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "is no folder"),
        (lambda folder: folder.mkdir(), "holds no manifest.json"),
        (
            lambda folder: (folder.mkdir(), checkpoint.create(folder, {}).close()),
            "not as this version writes it",
        ),
    ],
)
def test_what_is_no_run_is_refused(prepare, message, registry, capsys):
    prepare(Path("o"))
    assert main(["resume", "o"]) == 2
    one_line(capsys, message)


def test_a_run_whose_data_changed_is_refused(registry, stop_after, capsys, monkeypatch):
    populations = types.ModuleType("proofs_check.papers.populations")
    populations.from_rows = lambda X, lengthscale=None, seed=0: types.SimpleNamespace(
        note="toy"
    )
    monkeypatch.setitem(sys.modules, "proofs_check.papers.populations", populations)
    np.save("points.npy", np.arange(8.0).reshape(4, 2))
    stop_after(3, KeyboardInterrupt())
    assert main(["--output", "o", "--data", "points.npy"]) == 130
    np.save("points.npy", np.arange(8.0).reshape(4, 2) ** 2)
    capsys.readouterr()
    assert main(["resume", "o"]) == 2
    one_line(capsys, "the data file has changed")


def test_two_runs_into_one_folder_are_refused(interrupted, capsys):
    before = contents(interrupted)
    assert main(["--output", "o"]) == 2
    one_line(capsys, "already belongs to a run")
    holder = checkpoint.resume(interrupted)
    assert main(["resume", "o"]) == 2
    one_line(capsys, "another run is writing into o")
    holder.close()
    assert contents(interrupted)["manifest.json"] == before["manifest.json"]


class Clock:
    """Seconds that pass with every reading."""

    def __init__(self, step=1.0):
        self.now, self.step = 0.0, step

    def __call__(self):
        self.now += self.step
        return self.now


CLOSE = dataclasses.replace(  # true rate 0.08 where 0.1 is claimed: open after the trials of the profile
    CLAIM, printed=None, controls=()
)
BUDGET = run.Budget
FEW = draws.Profile(
    "quick", max_trials=256, max_draws=700, max_control=128, lenient=True
)


def test_a_budget_goes_on_where_a_verdict_is_open_and_only_there():
    settled = dataclasses.replace(CLAIM, id="toy2020:settled", printed=None)
    settled = dataclasses.replace(
        settled,
        corrected=Form(Tail(uniform, bound(0.999, 0.1)), SIZES[:1], "certified"),
    )
    plain = {
        r.claim.id: r.corrected for r in run.run([CLOSE, settled], profile=FEW, seed=0)
    }
    more = run.run(
        [CLOSE, settled], profile=FEW, seed=0, budget=run.Budget(1e9, Clock())
    )
    longer = {r.claim.id: r.corrected for r in more}
    assert (
        plain["toy2020:thm1"].status == "consistent"
        and longer["toy2020:thm1"].status == "certified"
    )
    assert plain["toy2020:settled"] == longer["toy2020:settled"]
    for short, long in zip(
        plain["toy2020:thm1"].evidence, longer["toy2020:thm1"].evidence, strict=True
    ):
        assert short.trials == 256 < long.trials


def test_what_must_be_refuted_goes_on_until_it_is_or_its_doublings_end():
    """A rate of 0.17 where 0.1 is claimed: 128 trials rarely show it, 2,048 nearly always do."""
    wrong, true = (Tail(uniform, bound(level, 0.1)) for level in (0.83, 0.91))
    claim = dataclasses.replace(
        CLOSE,
        printed=Form(wrong, SIZES[:1], "refuted"),
        controls=(Control("w", wrong, SIZES[:1]), Control("t", true, SIZES[:1])),
    )
    results = []
    for doublings in (0, 4):
        profile = dataclasses.replace(FEW, max_trials=128, doublings=doublings)
        results += run.run([claim], profile=profile, seed=0)
    for result, status in zip(results, ("consistent", "refuted"), strict=True):
        found = [result.printed, *(verdict for _, verdict in result.controls)]
        assert [verdict.status for verdict in found] == [status, status, "consistent"]
    assert found[2].evidence[0].trials == 16 * 128
    # What is open, and need not be refuted, gets no more trials.
    assert results[0].corrected == results[1].corrected


def test_a_budget_ends_in_time_and_yields_what_changed():
    clock = Clock()
    found = list(
        run.iterate(
            [CLOSE], run.Options(profile=FEW, seed=0, budget=run.Budget(8.0, clock))
        )
    )
    assert clock.now < 12
    trials = [result.corrected.evidence[0].trials for result in found]
    assert trials == sorted(set(trials)) and len(trials) > 1


def test_claims_that_the_time_does_not_reach_are_missing(registry, monkeypatch, capsys):
    monkeypatch.setattr(run, "Budget", lambda seconds: BUDGET(2.5, Clock()))
    monkeypatch.setattr(job, "WORKERS", 1)  # the clock is read in one order
    assert main(["--output", "o", "--budget", "1"]) == 1
    found, about = report("o")
    assert (
        not found["complete"]
        and found["stopped"] == ""
        and about["budget_minutes"] == 1
    )
    assert [claim["id"] for claim in found["claims"]] == ["toy2020:thm1"]


def test_a_run_whose_time_ends_says_how_to_go_on_and_with_how_much_more(
    registry, monkeypatch, capsys
):
    monkeypatch.setattr(run, "Budget", lambda seconds: BUDGET(1e-9, Clock()))
    monkeypatch.setattr(job, "WORKERS", 1)
    assert main(["--output", "o", "--budget", "1"]) == 1
    found, _ = report("o")
    assert (
        not found["complete"]
        and found["stopped"] == "out of time"
        and found["claims"] == []
    )
    said = "The time ended after 0 of 3 claim(s); go on with: proofs-check resume o\n"
    assert said in capsys.readouterr().out
    asked = []

    def went_on(prepared, folder, blocks, began):
        asked.append(prepared.request.budget)
        blocks.close()
        return 0

    monkeypatch.setattr(job, "_execute", went_on)
    assert main(["resume", "o"]) == main(["resume", "o", "--budget", "2"]) == 0
    assert asked == [1, 2]


def test_an_expectation_is_looked_at_again_with_less_of_its_error_rate():
    wide = dataclasses.replace(OTHERS[1].corrected.statement, precision=0.02)
    claim = dataclasses.replace(
        OTHERS[1], corrected=dataclasses.replace(OTHERS[1].corrected, statement=wide)
    )
    plain = run.run([claim], profile=FEW, seed=0)[0].corrected
    longer = run.run([claim], profile=FEW, seed=0, budget=run.Budget(1e9, Clock()))[
        0
    ].corrected
    assert plain.status == "consistent" and longer.status == "certified"
    looks = longer.facts["look"]
    assert longer.evidence[0].trials == 700 * 2**looks and longer.alpha == plain.alpha


SCRIPT = """
import os, sys, types
sys.path.insert(0, {tests!r})
from support import toys
import jax, jax.numpy as jnp, time
from proofs_check.engine import draws, checkpoint
toy = types.ModuleType("proofs_check.register")
toy.claims, toy.outlines = lambda data, profile, only: toys.CLAIMS, lambda: toys.CLAIMS
sys.modules["proofs_check.register"] = toy
draws.PROFILES = {{"quick": toys.PROFILE}}
keep = checkpoint.Checkpoint.keep
def slowly(self, *block):
    keep(self, *block)
    os.write(1, b"block\\n")  # at once: other threads keep blocks, too
    time.sleep({pause})
checkpoint.Checkpoint.keep = slowly
from proofs_check.cli.command import main
sys.exit(main({arguments!r}))
"""


def start(arguments, pause=0.0, **environment):
    script = SCRIPT.format(
        tests=str(Path(__file__).resolve().parents[1]), arguments=arguments, pause=pause
    )
    known = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=known,
    )


def finish(process):
    out, error = process.communicate(timeout=120)
    return process.returncode, out, error


def test_a_process_that_is_killed_can_be_resumed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, error = finish(start(["--output", "whole"]))
    assert code == 0, error
    # Killed twice, the second time on other devices, it goes on to the same end.
    flags = (
        f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
    )
    begin, go_on = (
        {"arguments": ["--output=cut"]},
        {"arguments": ["resume", "./cut"], "XLA_FLAGS": flags},
    )
    for words, number, status in (
        (begin, signal.SIGKILL, -9),
        (go_on, signal.SIGTERM, 130),
    ):
        process = start(**words, pause=0.05)
        for _ in range(3):
            assert process.stdout.readline() == "block\n"
        with pytest.raises(checkpoint.CheckpointError, match="another run is writing"):
            checkpoint.resume(tmp_path / "cut")
        os.kill(process.pid, number)  # which ends the lock, too
        assert finish(process)[0] == status
        assert (tmp_path / "cut" / "report.json").exists() == (status == 130)
    code, _, error = finish(start(**go_on))
    assert code == 0, error
    assert report("cut")[0] == report("whole")[0] and report("cut")[1]["devices"] == 8
