"""The command line of proofs_check on toy claims: exit statuses, one-line errors, and the report."""

import dataclasses
import errno
import io
import json
import os
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern.bounds import Bound
from proofs_check.claim import Claim, Control, Form, Setting, Tail
from proofs_check.cli import job
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint, folders, judge
from proofs_check.engine.draws import QUICK
from proofs_check.engine.run import run
from proofs_check.report import console, record, terminal
from proofs_check.report.commands import run_command
from proofs_check.report.tex import plain
from proofs_check.usage import UsageError


def uniform(key, population, numbers):
    return jax.random.uniform(key, dtype=numbers["one"].dtype)


def bound(value):
    return lambda setting: Bound(value, 0.8, True, "toy2020:1")


SETTINGS = (Setting("unit", numbers={"one": 1.0}),)
THM1 = Claim(
    id="toy2020:thm1",
    paper="toy2020",
    where="Theorem 1",
    kind="tail bound",
    tex=r"U \le 1 - \delta / 2",
    because="half of delta is lost [in the union bound]",
    printed=Form(Tail(uniform, bound(0.3)), SETTINGS, "refuted"),
    corrected=Form(Tail(uniform, bound(0.99)), SETTINGS, "certified", tex="U < 1"),
    controls=(Control("half", Tail(uniform, bound(0.4)), SETTINGS),),
)
VACUOUS = dataclasses.replace(
    THM1,
    id="toy2020:thm10",
    printed=None,
    corrected=Form(Tail(uniform, bound(np.inf), lambda s: 1.0), SETTINGS, "vacuous"),
)
OTHER = dataclasses.replace(
    THM1, id="other2021:prop2", paper="other2021", corrected=None
)
WRONG = dataclasses.replace(
    THM1,
    id="toy2020:wrong",
    corrected=dataclasses.replace(THM1.corrected, expect="calibrated"),
)
CLAIMS = [THM1, VACUOUS, OTHER]


@dataclasses.dataclass(frozen=True)
class Population:
    X: np.ndarray
    lengthscale: float | None
    note: str


pytestmark = pytest.mark.usefixtures("own_precision")


@pytest.fixture
def registry(monkeypatch, tmp_path):
    """Replace the registry and the populations by toys, and work in an empty folder."""
    toy = types.ModuleType("proofs_check.register")
    toy.calls = []
    toy.known = CLAIMS

    def claims(data=None, profile="quick", only=()):
        toy.calls.append((data, profile))
        return [claim for claim in toy.known if claim.id in only]

    def from_rows(X, lengthscale=None, seed=0):
        if X.shape[1] > 2:
            raise ValueError("too many columns")
        return Population(X, lengthscale, f"{len(X)} rows, seed {seed}")

    toy.claims, toy.outlines, toy.function_of = claims, lambda: toy.known, None
    populations = types.ModuleType("proofs_check.papers.populations")
    populations.from_rows = from_rows
    monkeypatch.setitem(sys.modules, "proofs_check.register", toy)
    monkeypatch.setitem(sys.modules, "proofs_check.papers.populations", populations)
    monkeypatch.chdir(tmp_path)
    return toy


def read(path):
    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    return json.loads(path.read_text(encoding="utf-8"), parse_constant=refuse)


def one_line(capsys):
    captured = capsys.readouterr()
    assert (
        captured.err.startswith("proofs-check: ") and captured.err.count("\n") == 1
    ), captured.err
    return captured.err


def test_help_is_shown_before_jax_is_imported():
    script = (
        "import sys\nfrom proofs_check.cli.command import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit as end:\n    assert end.code == 0\n"
        "assert not {'jax', 'numpy', 'rich'} & set(sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "run is the default" in done.stdout and "exit status" in done.stdout


def test_a_run_writes_a_report_into_a_new_folder_and_succeeds(
    registry, tmp_path, capsys
):
    assert main([]) == 0
    assert main(["run", "--seed", "7", "--profile", "quick"]) == 0
    folders = sorted((tmp_path / "proofs_report").iterdir())
    assert sorted(f.name.rsplit("-", 1)[1] for f in folders) == ["0", "7"]
    out = capsys.readouterr().out
    assert all(
        text in out
        for text in ("toy2020:thm1", "refuted", "certified", "vacuous", "1/1", "seed 7")
    )
    assert (
        "all as expected" in out
        and "at most 0.001 in the whole run" in out
        and folders[0].name in out
    )
    assert "half of delta is lost [in the union bound]" in out
    assert registry.calls == [(None, "quick")] * 2
    assert not list(tmp_path.rglob("*.tmp"))


def test_two_runs_in_the_same_second_have_their_own_folders(
    registry, tmp_path, monkeypatch
):
    monkeypatch.setattr("proofs_check.engine.folders.now", lambda: "20200101T000000Z")
    assert main(["--claim", "other2021"]) == main(["--claim", "other2021"]) == 0
    names = {f.name for f in (tmp_path / "proofs_report").iterdir()}
    assert names == {"20200101T000000Z-0", "20200101T000000Z-0-2"}


def test_the_report_is_strict_json_and_equal_for_equal_runs(registry, tmp_path):
    for name in ("a", "b"):
        assert main(["--output", str(tmp_path / name)]) == 0
    first, second = (read(tmp_path / name / "report.json") for name in ("a", "b"))
    assert first.pop("run") != second.pop("run")
    assert first == second
    assert (
        first["schema"] == 6
        and first["complete"]
        and first["as_expected"]
        and first["dtype"] == "float64"
    )
    thm1 = first["claims"][0]
    assert thm1["id"] == "toy2020:thm1" and thm1["controls"][0]["rejected"]
    printed, corrected = thm1["forms"]
    assert (printed["form"], printed["status"], corrected["status"]) == (
        "printed",
        "refuted",
        "certified",
    )
    for form in thm1["forms"]:
        assert (
            form["seed"] == 0
            and form["alpha"] == pytest.approx(1e-3 / 7)
            and form["slack"] > 0
        )
        (evidence,) = form["evidence"]
        assert (
            evidence["setting"] == "unit"
            and evidence["trials"] == form["trials"] <= 400
        )
        assert evidence["facts"]["delta"] == pytest.approx(0.2)
    infinite = first["claims"][1]["forms"][0]
    assert infinite["status"] == "vacuous" and infinite["slack"] == "inf"


def test_a_verdict_that_differs_makes_the_status_one(registry, capsys, tmp_path):
    registry.known = [*CLAIMS, WRONG]
    assert main(["--output", str(tmp_path / "o")]) == 1
    out = capsys.readouterr().out
    assert "not as expected: toy2020:wrong" in out
    assert "toy2020:wrong: NOT AS EXPECTED" in out and "thm1 corrected, " not in out
    assert (
        "toy2020:wrong corrected, certified (expected calibrated): violation probability"
        in out
    )
    assert not read(tmp_path / "o" / "report.json")["as_expected"]


def test_the_precision_is_double_unless_single_is_asked_for(registry, tmp_path, capsys):
    assert main(["--claim", "other2021", "--output", str(tmp_path / "a")]) == 0
    assert jax.config.jax_enable_x64
    assert (
        main(
            [
                "--claim",
                "other2021",
                "--output",
                str(tmp_path / "b"),
                "--dtype",
                "float32",
            ]
        )
        == 0
    )
    assert not jax.config.jax_enable_x64 and jnp.zeros(1).dtype == jnp.float32
    declared = f"may differ by {judge.ROUNDING * 2.0**-23:.2g} of what is compared"
    notes = [read(tmp_path / folder / "report.json")["note"] for folder in "ab"]
    assert (
        notes[0] == "" and declared in notes[1] and declared in capsys.readouterr().out
    )


@pytest.mark.parametrize(
    ("options", "ids"),
    [
        (["--claim", "toy2020:thm1"], ["toy2020:thm1"]),
        (["--claim", "toy2020"], ["toy2020:thm1", "toy2020:thm10"]),
        (
            ["--claim", "other", "--claim", "toy2020:thm10"],
            ["toy2020:thm10", "other2021:prop2"],
        ),
        (["--paper", "other2021"], ["other2021:prop2"]),
        ([], ["toy2020:thm1", "toy2020:thm10", "other2021:prop2"]),
    ],
)
def test_claims_are_chosen_by_paper_and_by_the_beginning_of_their_id(
    registry, capsys, options, ids
):
    assert main(["list", "--json", *options]) == 0
    assert [claim["id"] for claim in json.loads(capsys.readouterr().out)] == ids


def test_the_list_says_what_is_claimed_and_expected(registry, capsys):
    assert main(["list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[2] == {
        "id": "other2021:prop2",
        "paper": "other2021",
        "where": "Theorem 1",
        "kind": "tail bound",
        "statement": THM1.tex,
        "expected_printed": "refuted",
        "expected_corrected": None,
        "because": THM1.because,
        "title": "",
        "section": "",
        "symbols": {},
        "severity": "",
        "marginal": False,
    }
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and lines[0].endswith(
        "printed: refuted, corrected: certified"
    )


def test_show_says_what_a_claim_asks_for_and_leaves_out_a_form_that_is_not_there(
    registry, capsys
):
    assert main(["show", "toy2020:thm1"]) == 0
    out = capsys.readouterr().out
    assert all(
        text in out
        for text in (plain(THM1.tex), "U < 1", "unit", "half", "because", "Tail")
    )
    registry.known = [
        dataclasses.replace(VACUOUS, hypotheses="U is uniform", controls=())
    ]
    assert main(["show", "toy2020:thm10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "hypotheses: U is uniform" in lines and "controls: none" in lines
    assert not any(line.startswith("as printed") for line in lines)


def test_pages_are_made_again(registry, capsys):
    assert main(["--output", "o", "--claim", "toy2020:thm10"]) == 0
    capsys.readouterr()
    assert main(["report", "o"]) == 0
    assert "report.html (and report.md, report.json)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt, 130, "interrupted"),
        (OSError(errno.EIO, "Input/output error", "x"), 3, "x: Input/output error"),
    ],
)
def test_what_ends_a_command_before_its_work_is_no_traceback(
    error, status, said, monkeypatch, capsys, tmp_path
):
    def ending(options):
        print("printed")
        raise error

    monkeypatch.setattr(job, "start", lambda *args: ending(args))
    with (tmp_path / "out").open("w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert main([]) == status
    assert (
        capsys.readouterr().err == f"proofs-check: {said}\n"
        and (tmp_path / "out").read_text() == "printed\n"
    )


class Broken(io.StringIO):
    def __init__(self, number):
        super().__init__()
        self.number = number

    def write(self, text):
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("number", [errno.EPIPE, errno.ENOSPC, None])
def test_output_that_fails_is_no_verdict(stream, number, registry, monkeypatch, capsys):
    monkeypatch.setattr(terminal, "_SECONDS_BETWEEN_LINES", 0.0)  # there is progress
    monkeypatch.setattr(sys, stream, None if number is None else Broken(number))
    lost = stream == "stdout" and number == errno.ENOSPC
    assert main(["--output", "o", "--claim", "toy2020:thm10"]) == (3 if lost else 0)
    assert (
        "standard output cannot be written (No space left on device)\n"
        in capsys.readouterr().err
    ) == lost
    assert {"report.json", "report.html", "report.md"} < {
        path.name for path in Path("o").iterdir()
    }


@pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="there is no device that is always full"
)
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (">/dev/full", 3),
        (">/dev/full 2>&1", 3),
        (">&-", 0),
        (">&- 2>&- <&-", 0),
        ("| true", 0),
        ("| grep '^proofs-check 0'", 0),
    ],
)
def test_a_process_ends_with_its_own_status_whatever_becomes_of_its_output(
    words, status
):
    script = f'set -o pipefail; "{sys.executable}" -m proofs_check --version {words}'
    assert (
        subprocess.run(
            ["bash", "-c", script], capture_output=True, check=False
        ).returncode
        == status
    )


def test_files_are_not_opened_in_the_place_of_closed_streams():
    opened = "from proofs_check.report import console\nwith console.streams():\n"
    opened += "    assert open('/dev/null').fileno() > 2"
    assert (
        subprocess.run(
            ["bash", "-c", f'"{sys.executable}" -c "{opened}" >&- 2>&- <&-'],
            check=False,
        ).returncode
        == 0
    )


def test_a_name_that_no_encoding_holds_is_printed_with_escapes(registry, capsys):
    assert main(["--output", "o\udcff", "--claim", "toy2020:thm10"]) == 0
    assert "Report: o\\udcff/report.html" in capsys.readouterr().out
    assert main(["resume", "o\udcff"]) == main(["report", "o\udcff"]) == 0


def test_folders_that_cannot_be_used_or_made_are_one_line(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        denied = PermissionError(errno.EACCES, "Permission denied")
        patch.setattr(Path, "iterdir", mock.Mock(side_effect=denied))
        with pytest.raises(UsageError, match=r"cannot be used \(Permission denied\)"):
            folders.check(tmp_path)
    monkeypatch.setattr(Path, "mkdir", mock.Mock(side_effect=FileExistsError()))
    with pytest.raises(UsageError, match="cannot make a new folder under root"):
        folders.make(None, "root", "20200101T000000Z", 0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--claim", ""], "no claim ''"),
        (
            ["--claim", "toy2020:thm1", "--paper", "other2021"],
            "no claim 'toy2020:thm1' of other2021",
        ),
        (
            ["--paper", "none"],
            "no claims of a paper 'none'; there are other2021, toy2020",
        ),
        (["show", "toy2020"], "names several claims"),
        (["show"], "required: ID"),
        (["--seed", "-1"], "whole number from 0"),
        (["--seed", "1.5"], "whole number from 0"),
        (["--seed", "9" * 20], "whole number from 0"),
        (["--dtype", "float16"], "invalid choice"),
        (["prove"], "unrecognized arguments: prove"),
        (["--lengthscale", "1"], "--lengthscale needs --data"),
        (["--data", "x.npy", "--lengthscale", "0"], "must be a positive number"),
        (["--data", "x.npy", "--lengthscale", "nan"], "must be a positive number"),
        (
            ["--data", "x.npy", "--lengthscale", "wide"],
            "must be a positive number, got 'wide'",
        ),
        (["--data", "x.npy"], "x.npy: no such file"),
        (["--output", "full"], "--output full is not empty"),
        (["--output", "full/file"], "--output full/file is a file"),
        (["--output", "full/file/under"], "cannot make the folder"),
    ],
)
def test_bad_usage_is_one_line_and_status_two(
    registry, capsys, tmp_path, arguments, message
):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(arguments) == 2
    assert message in one_line(capsys)
    assert not (tmp_path / "proofs_report").exists()


def test_own_data_reaches_the_claims_and_its_note_the_report(
    registry, tmp_path, capsys
):
    np.save("x.npy", np.arange(6).reshape(3, 2))
    assert (
        main(
            ["--data", "x.npy", "--lengthscale", "0.5", "--seed", "3", "--output", "o"]
        )
        == 0
    )
    ((population, profile),) = registry.calls
    assert (
        population.lengthscale == 0.5
        and population.X.dtype == np.float64
        and profile == "quick"
    )
    assert "3 rows, seed 3" in capsys.readouterr().out
    written = read(tmp_path / "o" / "report.json")
    assert (
        written["note"] == "3 rows, seed 3"
        and written["run"]["command"]["data"] == "x.npy"
    )
    (tmp_path / "t.csv").write_text("id,a,kind,b\n1,1,u,5\n2,2,v,7\n3,4,u,?\n")
    assert main(["--data", "t.csv"]) == 2
    assert "'b' holds 1 cells that are not numbers among 3" in one_line(capsys)
    asked = [
        "--exclude",
        "id",
        "--labels",
        "kind",
        "--missing",
        "drop",
        "--missing-words",
        "?",
        "--standardize",
    ]
    assert main(["--data", "t.csv", *asked, "--output", "t"]) == 0
    assert registry.calls[-1][0].X.tolist() == [[-1, -1], [1, 1]]
    table = {
        "labels": "kind",
        "exclude": ["id"],
        "missing": "drop",
        "missing_words": ["?"],
        "standardize": True,
    }
    assert checkpoint.read_manifest(tmp_path / "t")["request"]["table"] == table
    assert "1 of 3 rows are left out" in read(tmp_path / "t" / "report.json")["note"]
    assert "--exclude id" in run_command(read(tmp_path / "t" / "report.json"))
    assert main(["resume", "t"]) == 0 and main(["--exclude", "id"]) == 2
    capsys.readouterr()
    np.save("wide.npy", np.arange(6.0).reshape(2, 3))
    assert main(["--data", "wide.npy"]) == 2
    assert "wide.npy: too many columns" in one_line(capsys)


def test_own_data_does_not_fail_by_the_printed_form(registry, tmp_path):
    np.save("x.npy", np.arange(6).reshape(3, 2))
    registry.known = [
        dataclasses.replace(
            THM1, printed=dataclasses.replace(THM1.printed, expect="certified")
        )
    ]
    assert main(["--data", "x.npy", "--output", "o"]) == 0
    assert main(["--output", "p"]) == 1
    (own,), (others,) = (
        [
            f["because"]
            for c in read(Path(run) / "report.json")["claims"]
            for f in c["forms"][:1]
        ]
        for run in "op"
    )
    assert (
        own == f"not about your data, but at settings of the statement's own: {others}"
    )


def test_an_interrupted_run_writes_what_is_done(registry, tmp_path, capsys):
    def interrupt(setting):
        raise KeyboardInterrupt

    stopped = dataclasses.replace(
        THM1.corrected, statement=dataclasses.replace(THM1.corrected.statement)
    )
    object.__setattr__(stopped.statement, "ceiling", interrupt)
    registry.known = [OTHER, dataclasses.replace(THM1, corrected=stopped), VACUOUS]
    assert main(["--output", "o"]) == 130
    captured = capsys.readouterr()
    assert (
        captured.err
        == "proofs-check: interrupted after 1 of 3 claim(s); go on with: proofs-check resume o\n"
    )
    written = read(tmp_path / "o" / "report.json")
    assert not written["complete"] and [claim["id"] for claim in written["claims"]] == [
        "other2021:prop2"
    ]


@pytest.fixture
def without_rich(monkeypatch):
    """Make rich look as if it were not installed."""
    for name in ("rich", "rich.console", "rich.table", "rich.text", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)


def test_plain_text_stands_in_for_rich(registry, without_rich, capsys):
    assert main(["--output", "o"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == console.NO_RICH
    assert lines[1].split() == list(terminal.COLUMNS)
    assert lines[2].split()[:2] == ["toy2020:thm1", "Theorem"] and "refuted" in lines[2]


@pytest.mark.parametrize("rich", [True, False])
def test_progress_is_a_line_every_few_seconds_away_from_a_terminal(
    rich, request, monkeypatch
):
    pytest.importorskip(
        "rich.progress"
    )  # which takes the clock as it is when it is imported
    if not rich:
        request.getfixturevalue("without_rich")
    now = iter([0.0, 1.0, 6.0, 7.0, 12.0])
    monkeypatch.setattr(terminal.time, "monotonic", lambda: next(now))
    file = io.StringIO()
    with terminal.progress(file) as tell:
        for done in (10, 60, 70, 100):
            tell(done, 120)
    assert file.getvalue().splitlines() == [
        "proofs-check: 50%, about 6 s left",
        "proofs-check: 83%, about 2 s left",
    ]


class Screen(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_a_bar_on_a_terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(
        terminal.TimeLeft,
        "update",
        lambda self, now, done, total: f"about {total - done} s left",
    )
    screen = Screen()
    with terminal.progress(screen) as tell:
        tell(30, 120)
        tell(40, 100)  # it shrinks where claims stop early
    assert "40%" in screen.getvalue() and "about 60 s left" in screen.getvalue()


def test_the_terminal_table_is_not_read_as_markup():
    results = run(
        [dataclasses.replace(THM1, where="[red]Theorem[/red] :smile:")],
        profile=QUICK,
        seed=0,
    )
    file = io.StringIO()
    terminal.terminal(
        results, record.About("quick", 0, 1e-3, "float64", "[bold]a note"), file=file
    )
    assert (
        "[red]Theorem[/red] :smile:" in file.getvalue()
        and "[bold]a note" in file.getvalue()
    )
