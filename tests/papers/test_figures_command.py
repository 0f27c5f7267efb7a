"""The command that makes figures and tables: what it prints, writes and draws, and what it refuses."""

import errno
import inspect
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest

from proofs_check.papers import figures

NAMES = [(paper, name) for paper, names in figures.FIGURES.items() for name in names]


def draw_line(axes, data):
    axes[0].plot(data["line"], label="a line")
    figures.legend_below(axes)


@pytest.fixture
def figure(monkeypatch, own_precision):
    """Let a small figure stand in for all of them, and return it."""
    module = SimpleNamespace(
        __doc__="Title\nmore",
        data=lambda *, full, seed: {
            "line": [1.0, seed],
            "rows": [{"name": "a", "n": 1.25}, {"name": "longer", "n": 200}],
            "none": [],
        },
        TABLES={"rows": {"name": "{name}", "n": "{n:.1f}"}, "none": {"x": "{x}"}},
        draw=draw_line,
        PANELS=(1, 2),
        SIZE=(4, 2),
    )
    monkeypatch.setattr(figures, "_module", lambda paper, name: module)
    return module


def run(*arguments):
    return figures.main(["kpotufe2020", "figure1", *arguments])


def test_a_figure_is_printed_written_and_drawn(figure, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.chdir(tmp_path)
    assert run("--seed", "3", "--output", "a.json", "--picture", "a.svg") == 0
    assert run("--seed", "3", "--picture", "b.svg") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:5] == ["Title", "name    n", "a       1.2", "longer  200.0"]
    document = json.loads(Path("a.json").read_text())
    assert document.pop("run")["seconds"] >= 0
    assert document == {
        "schema": figures.SCHEMA,
        "paper": "kpotufe2020",
        "figure": "figure1",
        "full": False,
        "seed": 3,
        "dtype": "float32",
        **figure.data(full=False, seed=3),
    }
    picture = Path("a.svg").read_text()
    assert picture == Path("b.svg").read_text()
    assert "a line" in picture and "dc:date" not in picture


@pytest.mark.parametrize(
    ("option", "path", "message"),
    [
        ("--output", "old.json", "exists; choose a new file, or pass --overwrite"),
        ("--picture", "old.svg", "exists"),
        ("--picture", "new", "has no ending that names its format"),
        ("--output", "absent/new.json", "there is no folder absent"),
    ],
)
def test_files_that_exist_stay(
    figure, tmp_path, monkeypatch, capsys, option, path, message
):
    monkeypatch.chdir(tmp_path)
    names = ("iot.npz", "old.json", "old.svg")
    for name in names:
        Path(name).write_text(name)
    assert run(option, path) == 2
    error = capsys.readouterr().err
    assert f"{option} {path}" in error and message in error and error.count("\n") == 1
    assert [Path(name).read_text() for name in names] == [*names]


def test_files_that_are_read_stay_and_others_can_be_overwritten(
    figure, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    for name in ("iot.npz", "old.json"):
        Path(name).write_text(name)
    assert run("--data-dir", ".", "--output", "iot.npz", "--overwrite") == 2
    assert "--output iot.npz is read by this command" in capsys.readouterr().err
    assert Path("iot.npz").read_text() == "iot.npz"
    assert run("--output", "old.json", "--overwrite") == 0
    assert json.loads(Path("old.json").read_text())["line"] == [1.0, 0]


def test_what_cannot_be_written_or_drawn_is_one_line(
    figure, tmp_path, monkeypatch, capsys
):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    Path("old.svg").write_text("old")
    assert run("--picture", "new.abc") == 2
    assert "--picture new.abc: Format 'abc' is not" in capsys.readouterr().err
    full = OSError(errno.ENOSPC, "No space left on device")
    with monkeypatch.context() as patch:
        patch.setattr(figures.files, "_rename", mock.Mock(side_effect=full))
        for option, path in (("--picture", "old.svg"), ("--output", "new.json")):
            assert run(option, path, "--overwrite") == 3
            assert "No space left" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("--output", "new.json", "--picture", "new.svg") == 2
    assert "--picture needs matplotlib: pip install" in capsys.readouterr().err
    # The numbers are complete without their picture.
    assert json.loads(Path("new.json").read_text())["rows"]
    assert {path.name for path in tmp_path.iterdir()} == {"old.svg", "new.json"}
    assert Path("old.svg").read_text() == "old"


def test_a_run_that_is_interrupted_leaves_the_files_of_others(figure, tmp_path):
    path = tmp_path / "old.json"
    path.write_text("old")

    def interrupted():
        raise KeyboardInterrupt

    figure.data = interrupted
    with pytest.raises(KeyboardInterrupt):
        run("--output", str(path), "--overwrite")
    assert [file.name for file in tmp_path.iterdir()] == ["old.json"]
    assert path.read_text() == "old"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("", "required: paper, figure"),
        ("kpotufe2021 figure1", "did you mean kpotufe2020?"),
        ("kpotufe2020 figure3", "there are table1, table2, figure1, figure2"),
        ("kpotufe2020 figure1 --nonsense", "unrecognized"),
        ("kpotufe2020 figure1 --seed -1", "must be a whole number from 0"),
        ("kpotufe2020 figure1 --sizes 5", "figure1 has no option --sizes"),
        ("kpotufe2020 table1 --picture a.svg", "table1 has no option --picture"),
        ("chen2016 figure1 --from-features", "has no option --from-features"),
        ("ghashami2016 figure2 --sizes two", "must be a whole number"),
        ("ghashami2016 figure1 --points 1", "points must be at least 2"),
        ("ghashami2016 figure1 --points 20 --sizes 0", "sizes must be at least 1"),
        ("ghashami2016 figure1 --points 20 --sizes 50", "sizes must be at most 20"),
        ("kpotufe2020 table1 --data-dir absent", "absent/avila.npz: no such file"),
        ("kpotufe2020 table2 --data-dir absent", "absent/banknote.npz: no such file"),
        ("kpotufe2020 figure2 --data-dir absent", "absent/nbaiot.npz: no such file"),
        ("chen2016 figure1 --data-dir absent", "absent/usps.npz: no such file"),
        ("ghashami2016 figure3 --data-dir absent", "absent/a9a.npz: no such file"),
    ],
)
def test_bad_usage_is_one_line_and_status_two(
    arguments, message, capsys, own_precision
):
    assert figures.main(arguments.split()) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.eye(3), np.arange(2), "y must be 3 integers"),
        (np.eye(3), np.ones(3), "y must be 3 integers"),
        (np.eye(3), np.array([None] * 3), "no plain array of numbers as y"),
        (np.full((3, 2), np.nan), np.arange(3), "NaN or infinite"),
        (np.zeros(3), np.arange(3), "not (rows, columns)"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    X, y, message, tmp_path, capsys, own_precision
):
    np.savez(tmp_path / "banknote.npz", X=X, y=y)
    assert figures.main(["kpotufe2020", "table2", "--data-dir", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1


def test_every_figure_is_complete_and_takes_options_that_there_are():
    for paper, name in NAMES:
        module = figures._module(paper, name)
        assert f"of {paper}:" in module.__doc__.splitlines()[0]
        options = ("--points", "5", "--sizes", "5", "--from-features")
        known = vars(figures._parser().parse_args([paper, name, *options]))
        assert inspect.signature(module.data).parameters.keys() <= known.keys()
        assert hasattr(module, "draw") == name.startswith("figure")
        if hasattr(module, "draw"):
            assert len(module.PANELS) == len(module.SIZE) == 2


def test_a_summary_has_the_spread_of_its_numbers():
    row = figures.summary([1.0, 2.0, 4.0])
    assert row["mean"] == pytest.approx(7 / 3)
    assert row["sd"] == pytest.approx(np.std([1, 2, 4], ddof=1))
    assert row["standard_error"] == pytest.approx(row["sd"] / 3**0.5)
    assert row["values"] == [1.0, 2.0, 4.0]
    assert figures.summary([0.3])["standard_error"] == 0
