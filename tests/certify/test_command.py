"""The command: arguments, refusals, exit statuses, and files, of which none is lost whatever fails."""

import json
import re
import sys
from pathlib import Path

import pytest
from certify.samples import certificate

from proofs_check.certify import command
from proofs_check.certify.certificate import Certificate, Search
from proofs_check.certify.request import Request
from proofs_check.cli.command import main
from proofs_check.engine import files
from proofs_check.usage import StorageError

TABLE = "a,b,kind\n1,0,x\n0,1.5,y\n0.5,0,x\n2,3,y\n"
NAMES = {"certificate.html", "certificate.json", "error.svg"}


class StandIn:
    """Takes the place of `certify`: notes its call, runs `meanwhile`, raises `error` or returns `result`."""

    def __init__(self):
        self.result = certificate()
        self.meanwhile = lambda: None
        self.error = None
        self.calls = []

    def __call__(self, key, table, request, **options):
        self.calls.append({"request": request, "table": table} | options)
        path, digest = options["finished"]
        files.write(path, digest)
        options["say"]("nystrom, 1 of 9 maps")
        self.meanwhile()
        if self.error is not None:
            raise self.error
        return self.result


@pytest.fixture
def search(monkeypatch, tmp_path, own_precision):
    """Go to a folder with points.csv and stand in for the search."""
    stand_in = StandIn()
    monkeypatch.chdir(tmp_path)
    Path("points.csv").write_text(TABLE)
    monkeypatch.setattr("proofs_check.certify.certify", stand_in)
    save = lambda self, path: Path(path).write_text("map")  # noqa: E731
    monkeypatch.setattr(Certificate, "save", save)
    return stand_in


def run(words=""):
    return main(["certify", "points.csv", *words.split()])


def names(folder="o"):
    return {path.name for path in Path(folder).iterdir()}


def state():
    found = Path().rglob("*")
    return {str(path): path.read_bytes() for path in found if path.is_file()}


def test_a_certificate_is_written_shown_and_decides_the_status(search, capsys):
    assert run("--output o --save map.npz") == 0
    output, error = capsys.readouterr()
    assert names() == NAMES and Path("map.npz").read_text() == "map"
    for path in ("o/certificate.html", "o/certificate.json", "map.npz"):
        assert f"Written: {path}" in output
    assert "Load: from jaxkern import io; phi = io.load('map.npz')" in output
    assert error == "proofs-check: 0 s, nystrom, 1 of 9 maps\n"
    assert Certificate.read("o").commands.load.endswith("phi = io.load('map.npz')")
    search.result = certificate(map=None, maps=[])
    assert run("--save none.npz") == 1
    assert "No map is certified." in capsys.readouterr().out
    (folder,) = Path("proofs_certificate").iterdir()
    assert names(folder) == NAMES - {"error.svg"} and not Path("none.npz").exists()


def test_options_reach_the_search_and_the_lines_that_repeat_it(search):
    search.result = certificate(goal="prediction", dtype="float64")
    words = "--eps 0.2 --goal prediction --maps nystrom,fastfood --seed 5"
    words += " --columns a,b --target kind --standardize"
    assert run(f"{words} --output o --save p.npz") == 0
    (call,) = search.calls
    request = call["request"]
    assert (request.goal, request.eps, request.delta) == ("prediction", 0.2, 0.05)
    assert request.maps == ("nystrom", "fastfood") and call["table"].rows == 4
    assert call["command"] == f"proofs-check certify points.csv {words}"
    arguments = "columns=['a', 'b'], standardize=True, labels='kind'"
    assert call["opened"] == f"table = open_table('points.csv', {arguments})"
    load = Certificate.read("o").commands.load.splitlines()
    assert load[:2] == ["import jax", 'jax.config.update("jax_enable_x64", True)']
    assert load[-1] == "predictor = io.load('p.npz')"


def test_draws_stay_until_the_search_is_finished_and_belong_to_one_command(search):
    search.result = certificate(search=Search(False, "The time ended."))
    again = "--output o --overwrite --time 9"
    assert run("--output o --time 1") == 0
    assert names() == {*NAMES, command.DRAWS}
    assert run(again) == 0
    Path("points.csv").write_text(TABLE + "9,9,x\n")
    assert run(again) == 0
    search.result = certificate()
    assert run(f"{again} --delta 0.1") == 0
    assert names() == NAMES
    paths, digests = zip(*[call["finished"] for call in search.calls], strict=True)
    assert digests[0] == digests[1] and len(set(digests)) == 3
    assert set(paths) == {Path("o", command.DRAWS)}


def test_an_interrupted_command_goes_on_in_its_folder(search):
    search.error = KeyboardInterrupt
    assert run("--output o") == 130 and names() == {command.DRAWS}
    Path("o/.certificate.html.0123456789abcdef.tmp").write_text("half a page")
    search.error = None
    assert run("--output o") == 0 and names() == NAMES


REFUSED = {
    "--save link.csv --overwrite": "--save link.csv is read by this command",
    "--save map.npz": "--save map.npz exists; choose a new file, or pass --overwrite",
    "--output o": "--output o is not empty; choose a new folder, or pass --overwrite",
    "--output run --overwrite": "--output run already belongs to a run",
    "--output o --overwrite --save o/certificate.json": "is a file of the certificate",
    "--goal prediction": "--goal prediction needs --target",
    "--goal prediction --target kind --labels kind": "and no --labels",
    "--clusters 0": "num_clusters must be",
    "--columns absent": "absent",
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_cannot_end_well_is_refused_in_one_line(words, search, capsys):
    for path in ("o/notes.txt", "run/manifest.json", "map.npz"):
        Path(path).parent.mkdir(exist_ok=True)
        Path(path).write_text("{}")
    Path("link.csv").symlink_to("points.csv")
    before = state()
    assert run(words) == 2
    error = capsys.readouterr().err
    assert REFUSED[words] in error and error.count("\n") == 1
    assert state() == before and not search.calls


def test_a_refusal_and_a_missing_package_are_one_line(search, capsys, monkeypatch):
    search.error = ValueError("the table\nhas one row")
    assert run() == 2
    assert capsys.readouterr().err.endswith("\nproofs-check: the table has one row\n")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run() == 2
    assert "certify needs matplotlib: pip install" in capsys.readouterr().err


def test_one_of_two_certificates_in_a_folder_is_refused(search, capsys):
    ends = []
    search.meanwhile = lambda: ends or ends.append(run("--output o --overwrite"))
    assert run("--output o") == 0 and ends == [2]
    assert "o is in use by another certify" in capsys.readouterr().err


def test_a_map_that_appears_meanwhile_is_not_replaced(search, capsys):
    search.meanwhile = lambda: Path("map.npz").write_text("of another")
    assert run("--output o --save map.npz") == 3
    assert "--save map.npz exists" in capsys.readouterr().err
    assert Path("map.npz").read_text() == "of another"
    assert names() == {*NAMES, command.DRAWS}
    assert Certificate.read("o").commands.load == search.result.commands.load


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_file_that_cannot_be_written_loses_nothing(name, search, monkeypatch, capsys):
    assert run("--output o") == 0
    before = state()
    write = files.write

    def failing(path, content):
        if path.name == name:
            raise StorageError(f"{path} cannot be written (a full disk)")
        write(path, content)

    search.result = certificate(eps=0.04)
    search.meanwhile = lambda: monkeypatch.setattr(files, "write", failing)
    capsys.readouterr()
    assert run("--output o --overwrite") == 3
    output, error = capsys.readouterr()
    assert "cannot be written (a full disk)" in error and "Use nystrom" in output
    assert json.loads(output[output.index("\n{\n") :])["eps"] == 0.04
    assert state()[f"o/{name}"] == before[f"o/{name}"]
    assert command.DRAWS in names()


def test_help_has_the_defaults_of_a_request(capsys):
    with pytest.raises(SystemExit):
        main(["certify", "--help"])
    output = capsys.readouterr().out
    for name in ("goal", "eps", "delta", "time"):
        default = getattr(Request, name)
        assert re.search(rf"--{name} [^-]*default: {default}\b", output), name
    assert f"{Request.kernel} (default)" in output
