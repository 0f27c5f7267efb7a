"""Files of claims of one's own: every command on them, errors that name the line, and files that have changed."""

import json
from pathlib import Path

import jax
import pytest

from proofs_check.cli import own
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint

HEAD = "import jax\nfrom proofs_check import statement\n\ndef draw(key):\n    return jax.random.uniform(key)\n\n"


@pytest.fixture
def example(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = jax.config.jax_enable_x64
    assert main(["new", "mine.py"]) == 0
    yield tmp_path / "mine.py"
    jax.config.update("jax_enable_x64", before)


def report(folder):
    return json.loads((Path(folder) / "report.json").read_text())


def test_the_example_is_short_and_runs_with_every_command(example, capsys):
    assert len(example.read_text().splitlines()) <= 25
    assert main(["--claims", "mine.py", "--output", "out", "--no-cache"]) == 0
    found = report("out")
    assert [claim["id"] for claim in found["claims"]] == [
        "mine:hoeffding",
        "mine:squares",
    ] and found["as_expected"]
    assert "mine:squares" in (example.parent / "out" / "report.html").read_text()
    manifest = json.loads((example.parent / "out" / "manifest.json").read_text())
    assert manifest["request"]["files"] == [str(example)] and manifest[
        "files"
    ] == checkpoint.digest_of([example])
    capsys.readouterr()
    assert main(["list", "--claims", "mine.py"]) == 0
    assert capsys.readouterr().out.count("mine:") == 2
    assert main(["show", "--claims", "mine.py", "mine:hoeff"]) == 0
    assert f"function: {example}:11, deviation" in capsys.readouterr().out
    assert main(["attack", "--claims", "mine.py"]) == 0
    assert (
        main(
            [
                "attack",
                "--claims",
                "mine.py",
                "mine:squares",
                "--restarts",
                "2",
                "--json",
                "found.json",
            ]
        )
        == 0
    )
    assert "VIOLATED" in capsys.readouterr().out
    assert json.loads(Path("found.json").read_text())[0]["simplest"] == {"x": [1, 1, 1]}
    assert main(["report", "out"]) == 0


def test_a_claim_of_ones_own_has_no_expectation_unless_one_is_given(example, capsys):
    example.write_text(example.read_text().replace(', expect="refuted"', ""))
    words = ["--claims", "mine.py", "--no-cache"]
    assert main([*words, "--output", "a"]) == 0
    printed = capsys.readouterr().out
    assert "2 claims: 1 certified, 1 refuted." in printed
    shown = "2 statements of 1 file were run: 1 certified at the settings that were run"
    pages = [Path("a", name).read_text() for name in ("report.html", "report.md")]
    assert shown in " ".join(pages[0].split())
    for text in (printed, *pages):
        text = text.lower()
        assert "not as expected" not in text and "as printed" not in text
        assert "true." not in text and "false as stated" not in text
    found = report("a")["claims"]
    assert [claim["outcome"] for claim in found] == ["certified", "false"]
    assert [claim["statement"] for claim in found] == ["", ""]
    options = ["--claims", "mine.py", "mine:squares", "--restarts", "2"]
    assert main(["attack", *options]) == 0
    assert "mine:squares: VIOLATED" in capsys.readouterr().out


def test_a_seed_a_choice_and_a_verdict_that_differs(example, capsys):
    changed = example.read_text().replace('expect="refuted"', 'expect="consistent"')
    example.write_text(changed)
    assert main(["--claims", "mine.py", "--output", "a", "--no-cache"]) == 1
    words = ["--claims", "mine.py", "--claim", "mine:hoeff", "--no-cache"]
    seeds = []
    for folder, seed in (("b", "0"), ("c", "1"), ("d", "1")):
        assert main([*words, "--seed", seed, "--output", folder]) == 0
        seeds.append(report(folder)["claims"][0]["forms"])
    assert seeds[0] == report("a")["claims"][0]["forms"] != seeds[1] == seeds[2]
    capsys.readouterr()
    for wrong in (["--claim", "mine:none"], ["--data", "points.csv"]):
        assert main(["--claims", "mine.py", *wrong]) == 2
        assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_run_is_resumed_and_one_whose_file_has_changed_is_not(example, capsys):
    words = ["--claims", "mine.py", "--no-cache", "--output"]
    assert main([*words, "whole"]) == main([*words, "cut"]) == 0
    blocks = Path("cut") / checkpoint.CHECKPOINT
    kept = blocks.read_bytes().splitlines(keepends=True)
    blocks.write_bytes(b"".join(kept[: len(kept) // 2]))
    Path("cut/report.json").unlink()
    assert main(["resume", "cut", "--no-cache"]) == 0
    assert report("cut")["claims"] == report("whole")["claims"]
    example.write_text(example.read_text() + "raise SystemExit('it ran')\n")
    Path("cut/report.json").unlink()
    capsys.readouterr()
    assert main(["resume", "cut"]) == 2
    assert "a file of claims has changed" in capsys.readouterr().err
    example.unlink()
    assert main(["resume", "cut"]) == 2


BROKEN = {
    "line 2: SyntaxError": "def claims(:\n".replace("def", "x = 1\ndef"),
    "line 3: ZeroDivisionError: division by zero": "def claims():\n    x = 1\n    return [1 / 0]\n",
    "line 2: SystemExit: 0": "import sys\nsys.exit(0)\n",
    "line 5: SystemExit: 0": HEAD.replace(
        "    return", "    raise SystemExit(0)\n    return"
    )
    + "def claims():\n    return [statement('a:b', draw, 1.0, probability=1.0)]\n",
    "line 7: SystemExit": HEAD + "bound = lambda n: exit()\ndef claims():\n"
    "    return [statement('a:b', lambda key, n: draw(key), bound, probability=0.5, sizes=(2,))]\n",
    "ValueError: the statistic does not depend on its key": HEAD
    + "def claims():\n    return [statement('a:b', lambda key: 1.0, 2.0, probability=0.5)]\n",
    "has no function claims()": "x = 1\n",
    "must return claims, got int": "def claims():\n    return [1]\n",
    "must return claims, got nothing": "def claims():\n    return []\n",
    "line 8: ValueError: probability must lie in (0, 1], got 2": HEAD
    + "def claims():\n    return [statement('a:b', draw, 1.0, probability=2)]\n",
    "two claims have the id 'a:b'": HEAD
    + "def claims():\n    return [statement('a:b', draw, 1.0, probability=1.0)] * 2\n",
    "line 8: TypeError: draw() takes 1 positional argument": HEAD
    + "def claims():\n    return [statement('a:b', lambda key, n: draw(key, n), 1.0, probability=1.0, sizes=(2,))]\n",
}


@pytest.mark.parametrize("said", BROKEN)
def test_errors_in_a_file_are_one_line_that_names_its_line(said, example, capsys):
    example.write_text(BROKEN[said])
    assert main(["--claims", "mine.py", "--output", "out", "--no-cache"]) == 2
    error = capsys.readouterr().err.strip()
    assert said in error and "mine.py" in error and len(error.splitlines()) == 1


def test_nothing_is_overwritten_and_a_file_that_is_not_there_is_said(example, capsys):
    assert main(["new", "mine.py"]) == 2 and main(["--claims", "no.py"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert (
        "exists; choose a new file" in said[0]
        and "no.py: there is no such file" in said[1]
    )


def test_an_error_that_is_none_of_the_files_stays_as_it_is():
    with pytest.raises(ZeroDivisionError), own.blamed(["mine.py"]):
        _ = 1 / 0
