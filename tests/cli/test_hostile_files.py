"""Files that lie: every reader says in one line what is wrong, takes little memory, and runs or follows nothing.

The files are made here, and are small; what they declare is not. Names out of files reach the pages as text.
"""

import gzip
import io
import json
import os
import random
import re
import subprocess
import sys
import types
import warnings
import zipfile
import zlib
from importlib import resources
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from support.odd_files import archive, declared, is_plain, npy, one_line, patched, write
from support.pages import Page

import jaxkern.io
from jaxkern.kernels import Gaussian
from proofs_check.certify import open_table
from proofs_check.certify.certificate import Certificate
from proofs_check.certify.load import text as _text
from proofs_check.cli.command import main
from proofs_check.engine import checkpoint, documents, files, reading
from proofs_check.report import document, markdown
from proofs_check.report import formulas as mathml
from proofs_check.report import run_page as report_page

ROOT = Path(__file__).resolve().parents[2]
LINUX = pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured on Linux"
)


def load_refused(path, *words):
    one_line(lambda: jaxkern.io.load(path), ValueError, *words)


def table_refused(path, *words):
    one_line(lambda: open_table(path), reading.DataError, *words)


EIGHT = bytes(64)  # eight numbers
EVIL = "\x1b[31m\r\n<script>alert(1)</script>"


def test_a_name_out_of_a_file_is_one_of_the_packages_own():
    for name in (
        "os.system",
        "subprocess.Popen",
        "jaxkern.os.system",
        "jaxkern.io.os.system",
        "jaxkern..x",
        "",
        ".",
    ):
        with pytest.raises(ValueError, match="which this jaxkern does not have"):
            jaxkern.io._find(name)


def manifest_of(path):
    """Read a file as the manifest of the folder it is in."""
    return checkpoint.read_manifest(path.parent)


READERS = {
    "table.npy": (open_table, reading.DataError),
    "table.npz": (open_table, reading.DataError),
    "table.csv": (open_table, reading.DataError),
    "table.parquet": (open_table, reading.DataError),
    "map": (jaxkern.io.load, ValueError),
    "report.json": (document.read, documents.DocumentError),
    "certificate.json": (Certificate.read, documents.DocumentError),
    "manifest.json": (manifest_of, checkpoint.CheckpointError),
}
FOREIGN = {
    "text": "hello, world\n",
    "png": b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + bytes(40),
    "html": "<!doctype html><title>404</title><script>alert(1)</script>",
    "pickle": b"\x80\x04\x95\x1e\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94\x8c\x06system\x94\x93\x94"
    b"\x8c\x02id\x94\x85\x94R\x94.",
    "pickled array": b"\x93NUMPY\x01\x00v\x00{'descr': '|O', 'fortran_order': False, 'shape': (1,), }"
    + b" " * 59 + b"\x80\x04.",
    "zip": b"PK\x03\x04" + bytes(60),
    "empty zip": b"PK\x05\x06" + bytes(18),
    "gzip": b"\x1f\x8b\x08" + bytes(60),
    "sqlite": b"SQLite format 3\0" + bytes(100),
    "noise": random.Random(0).randbytes(300),
    "null bytes": bytes(300),
    "utf-16": "1,2\n3,4\n".encode("utf-16"),
    "brackets": "[" * 100_000,
    "nothing": b"",
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_files_of_other_kinds_are_refused_in_one_line(name, tmp_path):
    read, error = READERS[name]
    for kind, content in FOREIGN.items():
        path = write(tmp_path / name, content)
        message = one_line(lambda path=path: read(path), error)
        assert name in message or tmp_path.name in message, (kind, message)


@pytest.mark.parametrize("name", READERS)
def test_what_is_no_regular_file_is_not_waited_for(name, tmp_path):
    read, error = READERS[name]
    path, missing = tmp_path / name, (error, FileNotFoundError)
    path.mkdir()
    one_line(lambda: read(path), error)
    path.rmdir()
    os.mkfifo(path)  # nobody will ever write into it
    one_line(lambda: read(path), error)
    path.unlink()
    for target, errors in (
        ("/dev/zero", error),
        ("nowhere", missing),
        (name, (error, OSError)),
    ):
        path.symlink_to(target)
        one_line(lambda errors=errors: read(path), errors)
        path.unlink()


HEADERS = {
    "more than is there": declared((10**6, 10)),
    "overflow": declared((2**32, 2**32), content=EIGHT),
    "overflow to what is there": declared((2**61 + 1, 8), content=EIGHT),
    "negative twice": declared((-4, -2), content=EIGHT),
    "booleans": declared((True, 2), content=EIGHT),
    "no numbers": declared("(4.0, 2)", content=EIGHT),
    "a thousand axes": declared((1,) * 1000, content=EIGHT),
    "objects": declared((4, 2), "'|O'", EIGHT),
    "a structure of objects": declared((4,), "[('a', '<f8'), ('b', '|O')]", EIGHT),
    "void": declared((4, 2), "'|V8'", EIGHT),
    "dates": declared((4, 2), "'<M8[s]'", EIGHT),
    "complex": declared((4, 2), "'<c8'", EIGHT),
    "a dtype of arrays": declared((4,), "('<f8', (2,))", EIGHT),
    "a dtype that is none": declared((4, 2), "'os.system'", EIGHT),
    "text of a gigabyte": declared((0, 2), "'<U268435456'"),
    "nothing of infinitely many": declared((10**15, 1), "'<U0'"),
    "too many keys": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), 'x': 1}", EIGHT
    ),
    "no literal": npy("__import__('os').system('true')", EIGHT),
    "signs without end": npy("-" * 9000 + "1", EIGHT),
    "brackets": npy("(" * 9000, EIGHT),
    "brackets inside": npy("{'shape': " + "[" * 150 + "]" * 150 + "}", EIGHT),
    "a sum without end": npy("1+" * 4000 + "1j", EIGHT),
    "the longest": npy(b" " * 65_535, EIGHT),
    "longer than the file": npy(b"", EIGHT, 2)[:8] + b"\xff\xff\xff\x7f" + EIGHT,
    "no UTF-8": npy(b"{'descr': '\xff\xfe'}", EIGHT, 3),
    "another version": npy(
        "{'descr': '<f8', 'fortran_order': False, 'shape': (4, 2), }", EIGHT, 9
    ),
    "control characters": npy(EVIL, EIGHT),
}


@pytest.mark.parametrize("header", HEADERS)
def test_headers_of_arrays_are_not_believed(header, tmp_path):
    content = HEADERS[header]
    loose = write(tmp_path / "x.npy", content)
    packed = archive(tmp_path / "x.npz", [("X.npy", content)])
    for path in (loose, packed):
        table_refused(path, path.name)
    saved = archive(
        tmp_path / "map",
        [("header.npy", jaxkern_header({"numpy": "0"})), ("0.npy", content)],
    )
    # Complex numbers and text may be saved, and no text takes no memory, however long it could be.
    if header not in (
        "complex",
        "booleans",
        "text of a gigabyte",
        "nothing of infinitely many",
    ):
        load_refused(saved, "map is truncated or damaged")


def jaxkern_header(tree, **more):
    text = json.dumps(
        {"format": "jaxkern", "version": 1, "jaxkern": "0", "object": tree} | more
    )
    out = io.BytesIO()
    np.save(out, np.frombuffer(text.encode(), np.uint8))
    return out.getvalue()


GOOD = declared((4, 2), content=np.arange(8.0).tobytes())


def test_the_file_of_comparison_is_read(tmp_path):
    path = archive(tmp_path / "x.npz", [("X.npy", GOOD)], zipfile.ZIP_DEFLATED)
    by_columns = declared((4, 2), order=True, content=np.arange(8.0).tobytes())
    for file, expected in (
        (path, [0, 1]),
        (write(tmp_path / "x.npy", by_columns), [0, 4]),
    ):
        assert open_table(file).take([0], "float64").tolist() == [expected]
    tree = {"list": [{"numpy": "0"}, {"float": "0x1.8p0"}]}
    loaded = jaxkern.io.load(
        archive(
            tmp_path / "map", [("header.npy", jaxkern_header(tree)), ("0.npy", GOOD)]
        )
    )
    assert loaded[0].shape == (4, 2) and loaded[1] == 1.5


def test_archives_that_play_tricks(tmp_path):
    path = tmp_path / "x.npz"

    def refused(entries, *words, method=zipfile.ZIP_STORED):
        archive(path, entries, method)
        table_refused(path, "x.npz", *words)

    refused([("X.npy", GOOD), ("X.npy", GOOD)], "2 arrays named X")
    refused([("X.npy", GOOD), ("X", GOOD)], "2 arrays named X")
    refused(
        [("../X.npy", GOOD), ("/X.npy", GOOD), ("C:\\X.npy", GOOD)],
        "holds no array named X, but ../X, /X",
    )
    refused([(EVIL + "x" * 60_000, GOOD)], "holds no array named X")
    refused([("X.npy", GOOD)], "compressed as NumPy does not", method=zipfile.ZIP_LZMA)
    archive(path, [("X.npy", GOOD)])
    whole = path.read_bytes()
    for at, content in (
        (8, b"\x01"),  # encrypted
        (10, b"\x63"),  # a method that there is not
        (16, b"\0\0\0\0"),  # another checksum
        (24, (2**31).to_bytes(4, "little")),  # longer than it is
        (24, b"\x10\0\0\0"),  # shorter than its header
        (42, b"\xff\xff\xff\x7f"),  # beyond the end of the file
    ):
        write(path, whole)
        patched(path, at, content)
        table_refused(path, "x.npz")
    assert os.listdir(tmp_path) == ["x.npz"]


def test_names_of_entries_are_no_paths(tmp_path):
    """Nothing is unpacked to the disk, whatever an entry is called."""
    (tmp_path / "in").mkdir()
    names = [
        "../out.npy",
        "/tmp/out.npy",
        "..\\out.npy",
        "in/../../out.npy",
        "header.npy",
        "X.npy",
        "y.npy",
    ]
    path = archive(tmp_path / "in" / "x.npz", [(name, GOOD) for name in names])
    open_table(path)
    load_refused(path)
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["in", "x.npz"]


TREES = {
    "an array twice": ({"list": [{"numpy": "0"}, {"numpy": "0"}]}, "damaged"),
    "no array": ({"numpy": "header"}, "damaged"),
    "a path": ({"numpy": "../../etc/passwd"}, "damaged"),
    "a number too large": ({"float": "0x1p99999"}, "damaged"),
    "a number that is none": ({"float": "one"}, "cannot be read"),
    "another kind": ({"set": []}, "damaged"),
    "two kinds": ({"list": [], "tuple": []}, "cannot be read"),
    "a list of no kind": ([1], "damaged"),
    "NaN": (float("nan"), "damaged"),
    "a number": (1.5, "damaged"),
    "a key that is a list": ({"dict": [[["a"], 1]]}, "damaged"),
    "a name that is a list": (
        {"class": ["jaxkern.kernels.Gaussian"], "fields": {}},
        "damaged",
    ),
    "a function of Python": (
        {"class": "builtins.eval", "fields": {}},
        "it holds a builtins.eval, which this",
    ),
    "a private name": (
        {"class": "jaxkern.io._find", "fields": {}},
        "which this jaxkern does not have",
    ),
    "a module": (
        {"class": "jaxkern.io", "fields": {}},
        "which this jaxkern does not have",
    ),
    "an odd name": (
        {"class": EVIL * 1000, "fields": {}},
        "which this jaxkern does not have",
    ),
    "odd fields": (
        {"class": "jaxkern.kernels.Gaussian", "fields": {EVIL * 1000: 1}},
        "read it with the version that",
    ),
    "no fields": ({"class": "jaxkern.kernels.Gaussian", "fields": None}, "damaged"),
    "a random key of floats": (
        {"key": "0", "impl": "threefry2x32"},
        "a random key of dtype float64, not uint32",
    ),
    "deep": (json.loads("[" * 900 + "]" * 900), "damaged"),
}


@pytest.mark.parametrize("name", TREES)
def test_headers_of_saved_objects_are_not_believed(name, tmp_path):
    tree, words = TREES[name]
    path = archive(
        tmp_path / "map", [("header.npy", jaxkern_header(tree)), ("0.npy", GOOD)]
    )
    load_refused(path, str(path), words)


def test_saved_objects_are_neither_packed_nor_double_nor_of_odd_versions(tmp_path):
    path, header = tmp_path / "map", jaxkern_header({"numpy": "0"})
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        archive(path, [("header.npy", header), ("0.npy", GOOD)], method)
        load_refused(path, "truncated or damaged", "compress")
    archive(path, [("header.npy", header), ("0.npy", GOOD), ("0.npy", GOOD)])
    load_refused(path, "two arrays of one name")
    archive(path, [("header.npy", header), ("0.npy", GOOD)])
    patched(path, 24, (2**31).to_bytes(4, "little"))
    load_refused(path, "it declares 2,147,483,")
    for version in (0, -1, True, 2, 10**4000, None, EVIL * 1000, [[]]):
        archive(
            path,
            [("header.npy", jaxkern_header(1, version=version, jaxkern=EVIL * 1000))],
        )
        load_refused(path, "has format version")
    text = np.frombuffer(
        b'{"format": "jaxkern", "version": 1' + b"0" * 5000 + b"}", np.uint8
    )
    np.savez(tmp_path / "x.npz", header=text)
    load_refused(tmp_path / "x.npz", "its header is not JSON")


def test_a_module_that_cannot_be_imported_is_no_class(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jaxkern.sklearn", None)  # as without scikit-learn
    tree = {"class": "jaxkern.sklearn.Thing", "fields": {}}
    path = archive(tmp_path / "map", [("header.npy", jaxkern_header(tree))])
    load_refused(path, "it holds a jaxkern.sklearn.Thing, which this jaxkern")


def test_what_could_not_be_read_again_is_not_saved(tmp_path, monkeypatch):
    monkeypatch.setattr(jaxkern.io, "_LONGEST_HEADER", 1000)
    with pytest.raises(
        ValueError, match="at most 1,000 can be saved; put its numbers into arrays"
    ):
        jaxkern.io.save(tmp_path / "map", [0.5] * 100)
    jaxkern.io.save(tmp_path / "map", np.full(1000, 0.5))
    assert len(jaxkern.io.load(tmp_path / "map")) == 1000
    monkeypatch.setattr(jaxkern.io, "_LONGEST_HEADER", 10)
    load_refused(tmp_path / "map", "its header is longer than 10 bytes")


def test_rows_have_an_end_and_text_is_not_shown_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(_text, "_BLOCK", 1000)
    path = tmp_path / "x.csv"
    for content in (
        "a,b\n1,2\n" + ',"\n"' * 2000,
        "a,b\n" + "3," * 2000,
        f"a,b\n3,{EVIL[:5]}x\n4,5\n6,7\n",
    ):
        write(path, content)
        words = "x.csv" if "\x1b" in content else "is a quotation mark missing"
        table_refused(path, words)
    write(path, "a,b\n" + "1,2\n" * 1000 + "2,1\n")  # many lines are no long row
    assert open_table(path).rows == 1001


def test_a_million_columns_are_counted_before_they_have_names(tmp_path, monkeypatch):
    path = write(tmp_path / "x.csv", "a," * 10**6 + "\n" + "1," * 10**6 + "\n")
    monkeypatch.setattr("proofs_check.certify.load.columns.plain", None)
    table_refused(path, "100,000 columns or more, which is too wide")


@pytest.fixture
def parquet():
    return pytest.importorskip("pyarrow.parquet")


def test_text_that_is_no_text_is_refused(tmp_path, parquet):
    import pyarrow as arrow

    offsets = arrow.py_buffer(np.arange(4, dtype=np.int32))
    bad = arrow.StringArray.from_buffers(3, offsets, arrow.py_buffer(b"\xff\xfe\xfd"))
    path = tmp_path / "x.parquet"
    parquet.write_table(
        arrow.table({"t": bad, "c": [1.0, 2.0, 3.0]}), path, store_schema=False
    )
    for labels in (None, "t"):
        one_line(
            lambda labels=labels: open_table(path, labels=labels),
            reading.DataError,
            "cannot be read as .parquet",
        )


JSON = {
    "NaN": ('{"schema": 3, "seed": NaN}', "NaN is not JSON"),
    "infinity": ('{"schema": 3, "seed": -Infinity}', "-Infinity is not JSON"),
    "a number without end": ('{"schema": ' + "9" * 5000 + "}", "is not JSON"),
    "more than a float": (
        '{"schema": 3, "seed": ' + "9" * 400 + "}",
        "a whole number of 400 digits",
    ),
    "deeper": (
        '{"schema": ' + "[" * 50_000 + "]" * 50_000 + "}",
        "is not JSON; was it cut short?",
    ),
    "UTF-16": ('{"schema": 3}'.encode("utf-16"), "is not JSON"),
    "a mark": ('{"schema": 3}'.encode("utf-8-sig"), "is not JSON"),
    "a list": ("[1, 2]", ""),
    "text": ('"schema"', ""),
    "nothing": ("null", ""),
    "odd versions": ('{"schema": [[]], "certificate": {}}', ""),
    "an odd name": (json.dumps({"schema": EVIL, "certificate": EVIL * 100}), ""),
    "more": ('{"schema": 3} {"schema": 3}', "is not JSON"),
}


@pytest.mark.parametrize("kind", JSON)
def test_json_is_read_strictly(kind, tmp_path):
    content, words = JSON[kind]
    for name in ("report.json", "certificate.json", "manifest.json"):
        read, error = READERS[name]
        path = write(tmp_path / name, content)
        one_line(lambda read=read, path=path: read(path), error, name, words)


def test_a_page_is_written_beside_a_link_and_not_through_it(tmp_path):
    """A folder from elsewhere may hold links to files that are not to be overwritten."""
    victim = write(tmp_path / "victim", "mine")
    folder = tmp_path / "run"
    folder.mkdir()
    for name in ("report.html", "report.html.tmp", ".report.html.tmp", "report.json"):
        (folder / name).symlink_to(victim)
    files.write(folder / "report.html", "page")
    documents.write_json(folder / "report.json", {})
    assert (
        victim.read_text() == "mine" and (folder / "report.html").read_text() == "page"
    )
    assert not (folder / "report.html").is_symlink() and not list(
        folder.glob(".*[0-9a-f].tmp")
    )


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run with two blocks."""
    folder = tmp_path / "run"
    folder.mkdir()
    blocks = checkpoint.create(folder, {"started": "now"})
    for start in (0, 4):
        blocks.keep("sample", start, np.arange(4.0) + start)
    blocks.close()
    return folder


LINES = {
    "objects": ["sample", 8, "|O", [1], "AAAAAAAAAAA="],
    "more numbers": ["sample", 8, "<f8", [2], "AAAAAAAAAAA="],
    "no bytes": ["sample", 8, "<f8", [1], 0],
    "a shape to be guessed": ["sample", 8, "<f8", [-1], "AAAAAAAAAAA="],
    "a shape beyond numbers": ["sample", 8, "<f8", [2**70], "AAAAAAAAAAA="],
    "a thousand axes": ["sample", 8, "<f8", [1] * 1000, "AAAAAAAAAAA="],
    "no shape": ["sample", 8, "<f8", 1, "AAAAAAAAAAA="],
    "a start that is none": ["sample", [8], "<f8", [1], "AAAAAAAAAAA="],
    "nothing": [],
    "another first line": ["run", "0"],
    "null": None,
}


def raw(text):
    return b"%08x %s\n" % (zlib.crc32(text), text)


@pytest.mark.parametrize(
    "name", [*LINES, "brackets", "a number without end", "no UTF-8"]
)
def test_lines_that_say_more_or_less_are_not_used(name, run):
    path = run / checkpoint.CHECKPOINT
    others = {
        "brackets": b"[" * 100_000,
        "a number without end": b"9" * 5000,
        "no UTF-8": b"[\xff]",
    }
    line = raw(others.get(name) or json.dumps(LINES[name]).encode())
    write(path, path.read_bytes() + line)
    for count in (1, 2):  # what is damaged stays so, and harms no line that follows
        blocks = checkpoint.resume(run)
        assert blocks.damaged == 1 and blocks.resumed == count
        assert (
            blocks.take("sample", 4).tolist() == [4.0, 5.0, 6.0, 7.0]
            and blocks.take("sample", 8) is None
        )
        blocks.close()


def test_a_checkpoint_that_is_no_file_of_its_own_is_not_opened(run, tmp_path):
    path, victim = run / checkpoint.CHECKPOINT, tmp_path / "victim"
    path.rename(victim)
    before = victim.read_bytes()
    path.symlink_to(victim)
    one_line(
        lambda: checkpoint.resume(run), files.StorageError, "records cannot be written"
    )
    assert victim.read_bytes() == before
    path.unlink()
    os.mkfifo(path)
    one_line(
        lambda: checkpoint.resume(run),
        checkpoint.CheckpointError,
        "holds no checkpoint.records",
    )
    (run / checkpoint.MANIFEST).unlink()
    one_line(
        lambda: checkpoint.create(run, {}), files.StorageError, "(no regular file)"
    )


def test_a_digest_takes_no_memory_of_the_size_of_the_file(tmp_path):
    import hashlib

    paths = [write(tmp_path / name, name * 1000) for name in "ab"]
    parts = b"".join(hashlib.sha256(path.read_bytes()).digest() for path in paths)
    assert checkpoint.digest_of(paths) == hashlib.sha256(parts).hexdigest()


@pytest.mark.parametrize(
    "name",
    [name for name in READERS if name != "certificate.json"] + ["checkpoint.records"],
)
def test_flipped_bytes_are_an_error_or_do_no_harm(name, tmp_path, run):
    """Some files still say what they said, or something else that is sound; no error is of another kind."""
    path = tmp_path / name
    X = np.random.default_rng(1).normal(size=(6, 2))
    if name == "checkpoint.records":
        path, read, error = (
            run / name,
            lambda _: checkpoint.resume(run).close(),
            checkpoint.CheckpointError,
        )
    else:
        read, error = READERS[name]
    if name.endswith(".npy"):
        np.save(path, X)
    elif name.endswith(".npz"):
        np.savez_compressed(path, X=X, y=np.arange(6) % 2)
    elif name.endswith(".csv"):
        np.savetxt(path, X, delimiter=",", header="a,b", comments="")
    elif name.endswith(".parquet"):
        arrow = pytest.importorskip("pyarrow")
        READ_PARQUET = pytest.importorskip("pyarrow.parquet")
        READ_PARQUET.write_table(
            arrow.table({"a": X[:, 0], "b": X[:, 1], "t": list("uvwuvw")}), path
        )
    elif name == "map":
        jaxkern.io.save(path, [Gaussian(0.5), jnp.arange(3.0), "text"])
    elif name.endswith(".json"):
        documents.write_json(
            path,
            {
                "schema": 3 if name == "report.json" else 2,
                "seed": 1,
                "claims": [],
                "x": 1.5,
            },
        )
    whole, draw, refused = path.read_bytes(), random.Random(7), 0
    for _ in range(150 if name != "checkpoint.records" else 60):
        broken = bytearray(whole)
        for _ in range(draw.choice((1, 1, 8))):
            broken[draw.randrange(len(broken))] = draw.choice(
                (0, 255, 0x7F, draw.randrange(256))
            )
        write(
            path,
            bytes(broken[: draw.choice((None, None, draw.randrange(len(broken))))]),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(path)
            except error as found:
                refused += 1
                assert is_plain(str(found))
    assert refused > 10


BOMBS = """
import json, resource, sys
import jax
import jaxkern.io
import pyarrow.parquet
from pathlib import Path
from proofs_check.engine import checkpoint
from proofs_check.report import document
from proofs_check.certify import open_table
from proofs_check.certify.certificate import Certificate

def status(name):
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name)) * 1024

jax.numpy.zeros(3).block_until_ready()  # starts what JAX needs
limit = status("VmSize") + 400 * 2**20
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
readers = {"table": open_table, "map": jaxkern.io.load, "report": document.read,
           "labels": lambda path: open_table(path, labels="t"), "certificate": Certificate.read,
           "manifest": lambda path: checkpoint.read_manifest(Path(path).parent)}
for line in sys.stdin:
    kind, path = json.loads(line)
    Path("/proc/self/clear_refs").write_text("5")  # begins to look for the peak again
    before = status("VmRSS")
    try:
        found = f"{type(readers[kind](Path(path))).__name__}"
    except Exception as error:
        found = f"{type(error).__name__}: {error}"
    print(json.dumps([kind, path, found, (status("VmHWM") - before) / 2**20]), flush=True)
"""
MEGABYTE = 2**20


def bombs(folder):
    """Yield readers, files of at most some hundred kilobytes on the disk, and words of the error."""
    packed = zipfile.ZIP_DEFLATED
    path = (
        folder / "header.npz"
    )  # a header that NumPy would read before it looks at its length
    archive(
        path,
        [
            (
                "X.npy",
                npy(b"", version=2)[:8] + (2**27).to_bytes(4, "little") + b" " * 2**27,
            )
        ],
        packed,
    )
    yield ("table",), path, "declares a header of 134,217,728 bytes"
    path = folder / "shape.npz"
    archive(path, [("X.npy", declared((2**26, 8), content=bytes(2**16)))], packed)
    yield (
        ("table",),
        path,
        "is cut off; it declares 4,294,967,296 bytes of numbers and holds 65,536",
    )
    path = (
        folder / "block.npz"
    )  # bzip2 unpacks a megabyte and more for every byte; the directory says that it is short
    archive(path, [("X.npy", GOOD + bytes(2**27))], zipfile.ZIP_BZIP2)
    patched(path, 24, len(GOOD).to_bytes(4, "little"))
    yield ("table",), path, "compressed as NumPy does not"
    path = folder / "map"
    archive(
        path,
        [("header.npy", jaxkern_header({"numpy": "0"})), ("0.npy", bytes(2**27))],
        packed,
    )
    yield ("map",), path, "does not compress"
    path = folder / "twice"  # thousand arrays out of one
    tree = {"list": [{"jax": "0"}] * 2000}
    archive(
        path,
        [
            ("header.npy", jaxkern_header(tree)),
            ("0.npy", declared((2**16,), "'<f4'", bytes(2**18))),
        ],
    )
    yield ("map",), path, "is damaged"
    for kind in ("report", "certificate", "manifest"):
        (folder / kind).mkdir()
        path = folder / kind / f"{kind}.json"
        with path.open("wb") as file:
            file.truncate(2**40)
        yield (kind,), path, "is longer than 33,554,432 bytes"
    path = (
        folder / "x.parquet"
    )  # a long text that rows share, which is no reason to refuse it
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    text = arrow.DictionaryArray.from_arrays(
        arrow.array(np.zeros(3000, np.int32)), arrow.array(["x" * MEGABYTE])
    )
    parquet.write_table(
        arrow.table({"t": text, "c": np.arange(3000.0) ** 2}), path, compression="zstd"
    )
    yield ("table", "labels"), path, "Table"
    path = folder / "packed.csv.gz"
    write(path, gzip.compress(b"a,b\n" + b"1,2\n" * 2**26))
    # Threads of Arrow take address space, so the limit of the process may come first.
    yield ("table",), path, "save it as .npy, which is read piece by piece"
    path = folder / "long.csv"
    with path.open("wb") as file:
        file.truncate(2**40)
    yield ("table",), path, "is not plain text in UTF-8"


@LINUX
def test_files_that_would_fill_the_memory_are_refused_with_little_of_it(
    tmp_path, parquet
):
    asked = [
        (kind, path, words) for kinds, path, words in bombs(tmp_path) for kind in kinds
    ]
    assert all(path.stat().st_blocks * 512 < MEGABYTE for _, path, _ in asked)
    for found, (_, _, words) in zip(measured(asked), asked, strict=True):
        _, _, message, growth = found
        error = message.partition(":")[0]
        assert words in message and error in (
            "Table", "DataError", "ValueError", "DocumentError", "CheckpointError"
        ), found  # fmt: skip
        # Of the 400 MiB that there are a quarter may be cells, for which Arrow takes two to three times the memory.
        # Other files take less: the largest is an array of 48 MiB, found to be eight times as long as numbers.
        assert "packed.csv" in message or growth < 100, found


def measured(asked):
    """Return what became of files in a process with little memory: kind, file, error and the MiB it took."""
    lines = "".join(json.dumps([kind, str(path)]) + "\n" for kind, path, _ in asked)
    known = {**os.environ, "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", BOMBS],
        input=lines,
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=known,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


PAYLOADS = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "[x](javascript:alert(1))",
    "![x](https://example.invalid/x.png)",
    "</title></style></td></table><iframe srcdoc=x>",
    "<!-- ",
    "]]><script>",
    "&lt;script&gt;&#60;b&#62;",
    r"$\href{javascript:alert(1)}{x}$",
    r"\href{javascript:alert(1)}{x} \unicode{x3c}",
    "`x` ``` | a | b |",
    "# heading",
    "{{ 7*7 }} ${7*7} {raw}`html`",
    "=1+1",
    "\u202etxt.exe\u2066",
)
UNSEEN = "[\u202a-\u202e\u2066-\u2069\x00-\x08\x0b-\x1f\x7f-\x9f]"
TAGS_THAT_RUN = set(
    re.findall(
        r"\w+",
        "script img iframe object embed form input link base foreignobject audio",
    )
)


TEMPLATE = (
    resources.files("proofs_check.report")
    .joinpath("templates/report.html")
    .read_text("utf-8")
)
SEARCH = re.findall(r"<script>.*?</script>\n|<input [^>]*>", TEMPLATE, re.DOTALL)


def assert_harmless(text, tags=None):
    """Assert that a page has nothing that runs or loads but its search, and no tag or attribute beside those given."""
    for own in SEARCH:
        text = text.replace(own, "", 1)
    page = Page(text)
    found = {
        (name, key) for name, attributes in page.tags for key in (None, *attributes)
    }
    assert not {name for name, _ in found} & TAGS_THAT_RUN
    for name, attributes in page.tags:
        for key, value in attributes.items():
            assert not key.startswith("on") and key not in (
                "style",
                "src",
                "srcdoc",
                "action",
                "formaction",
            ), key
            assert key != "href" or re.fullmatch(r"#[\w.-]+", value), value
            assert "http-equiv" not in attributes, name
    if tags is not None:
        assert found <= tags, found - tags
    assert not re.search(UNSEEN, text)
    return page, found


def assert_markdown_is_text(text):
    """Assert that a reader of Markdown that allows HTML finds none, nor links and pictures."""
    from markdown_it import MarkdownIt  # which rich brings along

    kinds = {}
    for token in MarkdownIt("commonmark", {"html": True}).enable("table").parse(text):
        for inner in (token, *(token.children or ())):
            kinds.setdefault(inner.type, []).append(inner.content)
    assert not {"html_block", "html_inline", "link_open", "image"} & set(kinds), (
        kinds.keys()
    )
    assert not re.search(UNSEEN, text)
    return kinds


def poisoned(value, payload, keep, key=""):
    """Return a document with a payload before every free text and every free name."""
    if isinstance(value, dict):
        free = key in ("facts", "numbers", "shapes", "versions", "left_out", "papers")
        return {
            (payload + k if free else k): poisoned(inner, payload, keep, k)
            for k, inner in value.items()
        }
    if isinstance(value, list):
        return [poisoned(inner, payload, keep, key) for inner in value]
    return payload + value if isinstance(value, str) and key not in keep else value


@pytest.fixture(scope="module")
def claims():
    """Two toy claims whose texts are hostile."""
    import jax

    from jaxkern.bounds import Bound
    from proofs_check.claim import Claim, Control, Form, Setting, Tail

    def uniform(key, population, numbers, *, d):
        return jax.random.uniform(key, dtype=numbers["n"].dtype)

    def bound(value):
        return lambda setting: Bound(value, 0.8, True, PAYLOADS[0])

    first = (Setting(PAYLOADS[1], numbers={"n": 1.0}, shapes={"d": 2}),)
    evil = " ".join(PAYLOADS)
    return tuple(
        Claim(
            id=f"toy2020:{name}", paper=evil, where=f"{evil} {name}", kind="tail bound", tex=payload, because=evil,
            hypotheses=evil,
            printed=Form(Tail(uniform, bound(0.3)), first, "refuted"),
            corrected=Form(Tail(uniform, bound(0.99)), first, "certified"),
            controls=(Control(evil, Tail(uniform, bound(0.4)), first, evil),),
        )
        for name, payload in (("a", PAYLOADS[10]), ("b", PAYLOADS[0]), ("<img src=x onerror=a()>", PAYLOADS[11]))
    )  # fmt: skip


@pytest.fixture
def written(claims, tmp_path, monkeypatch, own_precision):
    """Return the folder of a tiny run on a file with a hostile name."""
    from proofs_check.engine import draws

    toy = types.ModuleType("proofs_check.register")
    toy.claims, toy.outlines = (
        lambda data, profile, only: list(claims),
        lambda: list(claims),
    )
    populations = types.ModuleType("proofs_check.papers.populations")
    populations.from_rows = lambda X, lengthscale=None, seed=0: types.SimpleNamespace(
        note="\n".join(PAYLOADS[::-1])
    )
    monkeypatch.setitem(sys.modules, "proofs_check.register", toy)
    monkeypatch.setitem(sys.modules, "proofs_check.papers.populations", populations)
    small = draws.Profile(
        "quick", max_trials=64, max_draws=64, max_control=64, lenient=True
    )
    monkeypatch.setattr(draws, "PROFILES", {"quick": small})
    monkeypatch.chdir(tmp_path)
    name = '"><img src=x onerror=alert(1)> `x` ```\n$y$.csv'
    write(tmp_path / name, "<script>,b\n1,2\n3,5\n")
    assert main(["--data", name, "--output", "out"]) in (0, 1)
    return tmp_path / "out"


def test_the_report_of_a_run_is_text_whatever_it_is_called(written):
    page, tags = assert_harmless((written / "report.html").read_text("utf-8"))
    assert sum("<script>alert(1)</script>" in data for data in page.texts) > 5
    kinds = assert_markdown_is_text((written / "report.md").read_text("utf-8"))
    assert any(
        "<img src=x onerror=alert(1)>" in part for part in kinds["fence"]
    )  # the file, in the command
    assert (
        len(kinds["table_open"]) == 2 and len(kinds["heading_open"]) == 3
    )  # the title, one paper, and the controls
    found = document.read(written / "report.json")
    keep = (
        "status",
        "outcome",
        "form",
        "margin",
        "slack",
        "detectable",
        "rule",
        "stopped",
        "profile",
        "dtype",
    )
    for payload in PAYLOADS:
        evil = poisoned(found, payload, keep)
        assert document.find_fault(evil) == ""
        # A payload may change which formulas there are, or make one code.
        formulas = {
            (name, key)
            for name in mathml._ELEMENTS
            for key in (None, *mathml._ATTRIBUTES)
        }
        assert_harmless(
            report_page.render(evil),
            tags | formulas | {("code", "class"), ("sub", None), ("sup", None)},
        )
        assert_markdown_is_text(markdown.render(evil))
    deep = json.loads("[" * 480 + "]" * 480)  # about as many levels as are read
    found["claims"][0]["forms"][0]["evidence"][0]["facts"]["deep"] = deep
    documents.write_json(written / "report.json", found)
    assert main(["report", str(written)]) == 0


def test_formulas_bring_no_links_and_half_characters_are_shown_as_they_are():
    assert (
        mathml.formula("x \ud800") == '<code class="tex">x \ud800</code>'
    )  # XML cannot hold half a character
    for tex in (
        r"\href{javascript:a()}{x}",
        r"\url{x}",
        r"\htmlData{a=b}{x}",
        r"\style{background:url(//x)}{x}",
    ):
        assert "href=" not in mathml.formula(tex) and " style=" not in mathml.formula(
            tex
        )
