"""What certify does to files: nothing of the user's is lost, whatever fails and whenever it is killed."""

import contextlib
import copy
import errno
import io as streams
import itertools
import json
import os
import shutil
import time
import types
from pathlib import Path

import jax
import numpy as np
import pytest

from jaxkern import io
from proofs_check.certify import Certificate, certify
from proofs_check.cli import certify as command
from proofs_check.cli.command import main
from proofs_check.engine import files
from proofs_check.report.certificate_document import read

POINTS = np.random.default_rng(0).standard_normal((60, 2))
NAMES = ("o/certificate.html", "o/certificate.json", "map.npz")
OLD = {
    "o/certificate.html": b"old page",
    "o/certificate.json": b"old",
    "o/notes.txt": b"mine",
    "map.npz": b"old map",
}
WORDS = ["certify", "points.csv", "--output", "o", "--save", "map.npz"]


@pytest.fixture(scope="module")
def made():
    """Return a certificate of the points; what is written of it afterwards compiles nothing."""
    asked = {
        "eps": 0.3,
        "delta": 0.3,
        "confidence": 0.9,
        "goal": "spectral",
        "maps": ["nystrom"],
        "time": 60.0,
    }
    with jax.enable_x64(True):
        return certify(jax.random.key(3), POINTS, standardize=True, **asked)


@pytest.fixture
def there(made, monkeypatch, tmp_path, own_precision):
    """Go to a folder with points.csv, where certify calls what is in the list, and gives `made`; time stands still."""
    meanwhile = []
    monkeypatch.chdir(tmp_path)
    np.savetxt("points.csv", POINTS, delimiter=",", header="a,b", comments="")

    def certified(key, table, request, **options):
        if meanwhile:
            meanwhile.pop()()
        return Certificate(
            copy.deepcopy(made.document), made._trials, made._entry, made._key
        )

    monkeypatch.setattr("proofs_check.certify.certify", certified)
    now = time.monotonic()
    monkeypatch.setattr(command, "time", types.SimpleNamespace(monotonic=lambda: now))
    return meanwhile


def state():
    return {
        str(path): path.read_bytes() for path in Path().rglob("*") if path.is_file()
    }


def put(before):
    """Make the files those of a state."""
    for name in state().keys() - before.keys():
        os.unlink(name)
    for name, content in before.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(content)


@contextlib.contextmanager
def calls(before):
    """Call `before(number)` before every open, write, fsync and rename of certificates and saved maps."""
    count = itertools.count(1)

    def counted(call):
        def counting(*words):
            before(next(count))
            return call(*words)

        return counting

    class File(streams.FileIO):
        write = counted(streams.FileIO.write)

    with pytest.MonkeyPatch.context() as patch:
        for name in ("_open", "_write", "_fsync", "_rename"):
            patch.setattr(files, name, counted(getattr(files, name)))
        patch.setattr(io, "open", counted(File), raising=False)
        patch.setattr(
            io,
            "os",
            types.SimpleNamespace(fsync=counted(os.fsync), replace=counted(os.replace)),
        )
        yield


def printed(out):
    """Return the certificate that is printed below the table, None without one."""
    return json.loads(out[out.index("\n{\n") :]) if "\n{\n" in out else None


def check(before, after, whole, out):
    """Check that files are the old or the new ones and that nothing is lost, after a call has failed."""
    others = before.keys() - set(NAMES)
    kept = {
        name for name in after if name.startswith("o/.certify.draws/")
    }  # the next command goes on from them
    assert after.keys() - set(NAMES) - kept == others and all(
        after[name] == before[name] for name in others
    )
    document = json.loads(whole["o/certificate.json"])
    for name in NAMES:
        new = after.get(name) != before.get(name)
        if new and name.endswith("json"):
            found = json.loads(after[name])
            assert {**found, "commands": None} == {**document, "commands": None}
        elif new and name.endswith("npz"):
            assert after[name] == whole[name]
        elif new:
            assert after[name].endswith(b"</html>\n") and b"nystrom" in after[name]
    assert "Use nystrom" in out
    if after.get("o/certificate.json") == before.get("o/certificate.json"):
        assert {**printed(out), "commands": None} == {**document, "commands": None}


EVERY = [
    (kind, error, 1)
    for kind in ("new", "old")
    for error in (errno.ENOSPC, errno.EIO, errno.ENOENT)
]


@pytest.mark.parametrize(
    ("kind", "error", "step"),
    [
        ("new", errno.ENOSPC, 7),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in EVERY),
    ],
)
def test_whatever_call_fails_the_old_or_the_new_is_there(
    kind, error, step, there, capsys
):
    words = [*WORDS, "--overwrite"] if kind == "old" else WORDS
    before = state() | (OLD if kind == "old" else {})
    put(before)
    snapshots = []
    with calls(lambda number: snapshots.append(state())):
        assert main(words) == 0
    whole, total = state(), len(snapshots)
    assert total > 30 and set(whole) == set(before) | set(NAMES)
    capsys.readouterr()
    for at in range(1, total + 1, step):
        put(before)

        def fail(number, at=at):
            if number == at:
                raise OSError(error, os.strerror(error))

        with calls(fail):
            status = main(words)
        out, err = capsys.readouterr()
        if status == 0:  # draws could not be kept, and all else was written
            assert set(state()) == set(before) | set(NAMES)
            continue
        assert status == 3 and os.strerror(error) in err and "Traceback" not in err
        if at > 1:  # the first call is that of the lock, before anything is computed
            check(before, state(), whole, out)
        else:
            assert state() == before
    for killed in snapshots[
        ::step
    ]:  # what a kill before a call leaves: the next command can go on
        assert all(
            killed.get(name) in (before.get(name), whole[name]) for name in NAMES
        )
        put(killed)
        assert main([*words, "--overwrite"]) == 0 and state() == whole | {
            name: content
            for name, content in killed.items()
            if name.startswith(".map.npz.")
        }


def test_what_must_not_be_replaced_is_refused_before_anything_is_read(
    there, monkeypatch, capsys
):
    monkeypatch.setattr("proofs_check.certify.open_table", None)
    np.savez("own.npz", X=POINTS)
    for folder in ("run", "o"):
        Path(folder).mkdir()
    Path("run/manifest.json").write_text("{}")
    put(state() | OLD)
    Path("link.npz").symlink_to("own.npz")
    Path("gone.npz").symlink_to("nowhere")
    os.link("own.npz", "hard.npz")
    before = state()
    for words, said in (
        (
            "--save own.npz",
            "--save own.npz is read by this command; choose another file",
        ),
        ("--save own.npz --overwrite", "--save own.npz is read by this command"),
        ("--save ./o/../own.npz --overwrite", "own.npz is read by this command"),
        ("--save link.npz --overwrite", "--save link.npz is read by this command"),
        ("--save hard.npz --overwrite", "--save hard.npz is read by this command"),
        (
            "--save map.npz",
            "--save map.npz exists; choose a new file, or pass --overwrite",
        ),
        ("--save gone.npz", "--save gone.npz exists"),
        ("--save run --overwrite", "--save run is a folder"),
        ("--save absent/map.npz", "there is no folder absent"),
        (
            "--output o",
            "--output o is not empty; choose a new folder, or pass --overwrite",
        ),
        ("--output own.npz --overwrite", "--output own.npz is a file"),
        ("--output run --overwrite", "--output run already belongs to a run"),
        (
            "--output o --overwrite --save o/certificate.json",
            "--save o/certificate.json is a file of the certificate",
        ),
    ):
        assert main(["certify", "own.npz", *words.split()]) == 2
        assert said in capsys.readouterr().err
    assert state() == before


def test_a_map_that_appears_meanwhile_is_not_replaced(there, capsys):
    there.append(lambda: Path("map.npz").write_text("of another"))
    assert main(WORDS) == 3
    out, err = capsys.readouterr()
    assert (
        "--save map.npz exists" in err
        and "Use nystrom" in out
        and Path("map.npz").read_text() == "of another"
    )
    assert read(Path("o/certificate.json"))["commands"]["load"] is None


def test_one_of_two_certificates_in_a_folder_is_refused(there, capsys):
    ends = []
    there.append(
        lambda: ends.append(main(WORDS[:4]))
    )  # a second one begins while this one computes
    assert main(WORDS) == 0 and ends == [2]
    assert "o is in use by another certify" in capsys.readouterr().err
    assert sorted(path.name for path in Path("o").iterdir()) == [
        "certificate.html",
        "certificate.json",
    ]
    assert main(WORDS[:4]) == 2  # it is not empty any more


def test_a_folder_that_is_gone_loses_nothing(there, capsys):
    there.append(lambda: shutil.rmtree("o"))
    assert main(WORDS[:4]) == 3
    out, err = capsys.readouterr()
    assert "certificate.html cannot be written (No such file or directory)" in err
    assert printed(out)["map"] == "nystrom" and "Use nystrom" in out


def test_a_saved_map_takes_the_table_that_it_was_certified_for(
    made, monkeypatch, tmp_path, own_precision
):
    """A map of two columns of four, with the programs of the certificate above."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "same": 7.0,
            "a": POINTS[:, 0],
            "b": POINTS[:, 1],
            "class": np.arange(len(POINTS)) % 2,
        }
    )
    monkeypatch.chdir(tmp_path)
    frame.to_csv("points.csv", index=False)
    asked = "--goal spectral --maps nystrom --eps 0.3 --delta 0.3 --confidence 0.9 --standardize --labels class"
    assert main([*WORDS, *asked.split(), "--rows", "900"]) == 0
    document, phi = read(Path("o/certificate.json")), io.load("map.npz")
    used = document["data"]["columns"]
    assert used == ["a", "b"] and phi.columns == tuple(frame.columns)
    Z = phi(frame[used].to_numpy(np.float32))
    scope = {}
    exec(document["commands"]["python"], scope)
    data = frame.drop(columns="class").to_numpy()
    for form in (data, frame, pandas.read_csv("points.csv"), frame.to_numpy()):
        np.testing.assert_array_equal(phi(form), Z)
    np.testing.assert_allclose(scope["phi"](frame), Z, atol=1e-5)
    with pytest.raises(
        ValueError,
        match=r"X must have shape \(..., 2\) or \(..., 3\) or \(..., 4\), got",
    ):
        phi(data[:, :1])
