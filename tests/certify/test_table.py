"""Tables of users: what is read, what is left out and named, and what is refused with one line."""

import gzip
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.odd_files import archive, declared, one_line, patched, write

from proofs_check.certify import from_array, open_table, rows_for
from proofs_check.certify.load import files as _files
from proofs_check.certify.load import table as _table
from proofs_check.engine.reading import DataError, plain

ROOT = Path(__file__).resolve().parents[2]
N = 24
A, B = np.random.default_rng(9).normal(size=(2, N)).round(3).tolist()


def refused(call, *words):
    """Assert that a call raises one line with these words, and return it."""
    return one_line(call, DataError, *words)


def everything(table, dtype="float64"):
    return table.take(np.arange(table.rows), dtype)


def lines(**columns):
    """Return a file of commas. "_" in a name is a space."""
    rows = [columns, *zip(*columns.values(), strict=True)]
    return "\n".join(",".join(map(str, row)) for row in rows) + "\n"


def repeated(*cells):
    return (list(cells) * N)[:N]


# At the door: a file, options, and what becomes of it. Names of columns, the first row and words of the notes; or words
# of the one line that refuses it.

WORDS = repeated("NO", "SE", "DK", "FI")
READ = {
    "years as names": (
        lines(country=WORDS, **{"2019": A, "2020": B}), {},
        ["2019", "2020"], [A[0], B[0]], ["taken for a header", "'country' (text, such as 'NO')", "get_dummies"],
    ),
    "a header of numbers": ("1,2\n3,4\n5,7\n", {"header": "yes"}, ["1", "2"], [3, 4], []),
    "no header": ("1,2\n3,4\n5,7\n", {"header": "no"}, ["x1", "x2"], [1, 2], []),
    "decimal commas": ("x;y\n0,123;1,250\n2,5;3\n", {"decimal": ","}, ["x", "y"], [0.123, 1.25], []),
    "commas in a header": ("L (cm, in);W (kg, lb)\n1;2\n3;5\n", {}, ["L (cm, in)", "W (kg, lb)"], [1, 2], []),
    "a line break in a name": ('"a\nb";"c;d"\n1;2\n3;5\n', {}, ["a\ufffdb", "c;d"], [1, 2], []),
    "the other mark in a name": ("a,b (x;y),c\n1,2,3\n4,5,7\n", {}, ["a", "b (x;y)", "c"], [1, 2, 3], []),
    "a form feed": ("\x0ca,b\n\x0c1,2\n3,4\n5,7\n", {}, ["a", "b"], [1, 2], []),
    "ends of lines": ("\ufeff\r\na,b\r\n1,2\r3,4\n\n  \n5,7", {}, ["a", "b"], [1, 2], []),
    "tabs, and a separator": ("a,b\tc\n1\t2\n3\t5\n", {"separator": "tab"}, ["a,b", "c"], [1, 2], []),
    "white space": (" a, b \n +1.5 ,2e0\n3, 5 \n", {}, ["a", "b"], [1.5, 2], []),
    "two numbers among text": (lines(code=["0E0", "0E8", *WORDS[2:]], a=A), {}, ["a"], [A[0]], ["'code' (text"]),
    "true and false": (lines(t=repeated("True", "false"), a=A), {}, ["t", "a"], [1, A[0]], ["are 0: 't'"]),
    "yes and no": (lines(q=repeated("No", "yes"), a=A), {}, ["q", "a"], [0, A[0]], ["are 0: 'q'"]),
    "an index of pandas": (
        lines(**{"": range(N), "0": A, "1": B}), {}, ["0", "1"], [A[0], B[0]], ["'Unnamed: 0' (has no name)"],
    ),
    "a shuffled index": (
        lines(**{"": range(N, 0, -1), "a": A, "b": B}), {}, ["a", "b"], [A[0], B[0]], ["'Unnamed: 0' (has no name)"],
    ),
    "what is no coordinate": (
        lines(userId=range(5, N + 5), nr=range(1, N + 1), a=A, copy=A, one=[1] * N,
              day=[20240101 + i for i in range(N)], Target=repeated(0, 1), b=B), {}, ["a", "b"], [A[0], B[0]],
        ["'userId' (the name of an id), 'nr' (counts the rows), 'copy' (equals 'a'), 'one' (one value, 1), "
         "'day' (dates as numbers), 'Target' (the name of a target, for --labels or --target); --keep NAME"],
    ),
    "what is kept": (
        lines(id=range(5, N + 5), copy=A, a=A, y=B), {"keep": ["id", "a"], "columns": ["1-3", "y"]},
        ["id", "copy", "a", "y"], [5, A[0], A[0], B[0]], [],
    ),
    "what is excluded": (lines(id=A, a=A, b=B), {"exclude": ["1"], "target": "a"}, ["b"], [B[0]], []),
    "x and y": (lines(x=A, y=B), {}, ["x", "y"], [A[0], B[0]], []),
    "years": (lines(year=repeated(2007, 2008, 2009), a=A), {}, ["year", "a"], [2007, A[0]], ["'year' (2007 to 2009)"]),
    "words for missing": (
        lines(a=["?", "-99", *A[2:]], b=B), {"missing_words": ["?", "-99"], "missing": "drop"},
        ["a", "b"], [A[2], B[2]], ["2 of 24 rows are left out, since they lack a number ('a': 2 missing)"],
    ),
    "names": ("a,a,=1\x1b[31m\u202e,\n1,2,3,4\n2,3,5,8\n", {"columns": ["1-4"], "keep": ["4"]},
              ["a", "a (2)", "=1\ufffd[31m\ufffd", "Unnamed: 3"], [1, 2, 3, 4], ["the same name"]),
}  # fmt: skip
REFUSED = {
    "years alone": ("2019,2020\n1,2\n3,4\n", {}, ["holds '2019', '2020'", "--header yes or --header no"]),
    "booleans": ("True,False\n1,2\n3,4\n", {}, ["--header yes or --header no"]),
    "a row with a class": ("5.1,3.5,setosa\n4.9,3.0,setosa\n", {}, ["holds '5.1', '3.5'", "--header"]),
    "whole numbers with a class": ("5,3,u\n4,3,v\n2,2,u\n", {}, ["holds '5', '3', 'u'", "--header"]),
    "a row with a date": ("2024-01-02,1,2\n2024-01-03,4,5\n", {}, ["--header yes or --header no"]),
    "decimal commas": ("x;y\n0,123;1,250\n2,5;3,5\n", {}, ["'x' holds numbers with commas", "'0,123'", "--decimal ,"]),
    "points among them": ("x;y\n1.250,5;1\n2,5;3\n", {"decimal": ","}, ["'x' holds numbers that", "'1.250,5'"]),
    "cut by commas": ("x,y\n0,123,1,250\n", {}, ["got 4: 0,123,1,250", "decimal commas"]),
    "per cent": (lines(p=repeated("5%", "7 %"), a=A), {}, ["'p' holds numbers that are written as '5%'", "pandas"]),
    "thousands": (lines(p=repeated('"1,234"'), a=A), {}, ["'p' holds numbers with commas", "--exclude p"]),
    "text among numbers": (
        lines(a=["oops", *A[1:]], b=B), {}, ["'a' holds 1 cells of text among 24", "'oops'", "--missing-words"],
    ),
    "few missing": (lines(a=["", "NaN", *A[2:]], b=B), {}, ["2 of 24 rows", "'a': 2 missing", "--missing drop"]),
    "many missing": (lines(a=repeated("NA", 1, 2), b=B), {}, ["8 of 24 rows", "'a': 8 missing", "pass --exclude a"]),
    "infinite": (lines(a=["inf", *A[1:]], b=B), {}, ["'a': 1 infinite"]),
    "large whole numbers": (lines(t=range(10**18, 10**18 + N), a=A), {}, ["'t' holds whole numbers", "--exclude t"]),
    "spaces": ("a b\n1 2\n3 4\n", {}, ["separated by spaces", "read_csv"]),
    "text alone": (lines(c=WORDS), {}, ["no column holds numbers", "'c' (text, such as 'NO')", "get_dummies"]),
    "suspects alone": ("id,y\n1,2\n3,4\n", {}, ["'id' (the name of an id), 'y' (the name of a target", "--keep NAME"]),
    "equal rows": ("a,b\n1,2\n1,2\n", {}, ["all rows are equal"]),
    "one row": ("a,b\n1,2\n", {}, ["1 row(s)"]),
    "a header alone": ("a,b\n\n", {}, ["is empty"]),
    "a short row": ("a,b\n1,2\n\n3\n", {}, ["Expected 2 columns, got 1: 3"]),
    "Latin-1": ("größe,b\n1,2\n".encode("latin-1"), {}, ["is not text in UTF-8", "encoding="]),
    "UTF-16": ("a,b\n1,2\n".encode("utf-16-le"), {}, ["holds a NUL"]),
    "an open quotation mark": ('a,b\n"3' + ",4\n" * 100_000, {}, ["Expected 2 columns, got 1"]),
    "no column of that name": ("a,b\n1,2\n", {"columns": ["z"]}, ["no column named 'z'; the columns are 'a', 'b'"]),
    "no such number": ("a,b\n1,2\n", {"columns": ["1-3"]}, ["no column 1-3; columns are numbered from 1 to 2"]),
    "no column left": ("a,b\n1,2\n", {"columns": ["b"], "labels": "b"}, ["no column is chosen"]),
    "labels kept": ("a,b\n1,2\n", {"keep": ["b"], "labels": "b"}, ["'b' cannot be kept, since it holds the labels"]),
    "two labels": ("a,b\n1,2\n", {"labels": "1-2"}, ["'1-2' names several columns, and one column holds the labels"]),
    "an option": ("a,b\n1,2\n", {"decimal": ";"}, ["decimal must be one of '.', ',', got ';'"]),
    "too few rows": ("a,b\n1,2\n", {"rows": 1}, ["rows must be at least 2"]),
    "what missing is": ("a,b\n1,2\n", {"missing": "keep"}, ['missing must be "error" or "drop"']),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_file_is_read(tmp_path, name):
    text, options, names, first, words = READ[name]
    table = open_table(write(tmp_path / "x.csv", text), **options)
    assert [*table.names] == names and table.take([0], "float64").tolist() == [first]
    notes = "\n".join(table.notes)
    assert all(word in notes for word in words) and bool(words) == bool(notes)
    assert {*table.columns} == {*table.names, *table.left_out}


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_is_refused_in_one_line(tmp_path, name):
    text, options, words = REFUSED[name]
    path = write(tmp_path / "x.csv", text)
    refused(lambda: open_table(path, **options), *words)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet"])
def test_a_frame_is_read_as_a_file(tmp_path, kind):
    frame = pytest.importorskip("pyarrow").table(
        {
            "day": np.arange(N).astype("datetime64[D]"),
            "c": [*WORDS[:4], None, *WORDS[5:]],
            "list": [[1.0]] * N,
            "n": np.arange(N)[::-1] ** 2,
            "flag": repeated(True, False, True),
            "a": [None, *A[1:]],
        }
    )
    table = frame.set_column(1, "c", frame["c"].dictionary_encode())
    if kind == "pandas":
        frame = table.to_pandas()
    elif kind == "polars":
        import polars

        frame = polars.from_arrow(table).cast({"c": polars.Enum([*set(WORDS), "z"])})
    elif kind == "parquet":
        import pyarrow.parquet as parquet

        parquet.write_table(table, tmp_path / "x.parquet", row_group_size=7)

    def read(**options):
        if kind == "parquet":
            return open_table(tmp_path / "x.parquet", **options)
        return from_array(frame, **options)

    flag = "--missing drop" if kind == "parquet" else "missing='drop'"
    refused(lambda: read(labels="list"), "the labels 'list' are", "not one a row")
    refused(read, "1 of 24 rows", "'a': 1 missing", flag)
    table = read(missing="drop")
    assert table.names == ("n", "flag", "a")
    assert everything(table)[0].tolist() == [22**2, 0, A[1]]
    reasons = table.left_out
    assert "1970-01-01" in reasons["day"] and reasons["c"] == "text, such as 'NO'"
    assert {*reasons} == {"day", "c", "list"}
    table = read(missing="drop", labels="c", columns=["n"], rows=9)
    assert table.label_names == ("DK", "FI", "NO", "SE")
    labels = [table.label_names[i] for i in table.labels]
    assert labels == [*WORDS[:4], *WORDS[5:9]]
    assert "Only the first 9 of 24 rows are used." in table.notes


def test_objects_of_several_types_are_text():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1, "2.5", None, 4], "b": [1, 2, 4, 7]})
    table = from_array(frame, missing="drop")
    assert everything(table).tolist() == [[1, 1], [2.5, 2], [4, 7]]
    frame["a"] = [1, "5%", 3, 4]
    refused(
        lambda: from_array(frame), "X: column 'a' holds numbers that", "exclude=['a']"
    )


@pytest.mark.parametrize("name", ["x.npy", "x.npz", "jax", "x.tsv", "x.txt.gz"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_every_source_gives_the_same_table(tmp_path, rng, name, order):
    X = np.array(rng.normal(size=(50, 3)), np.float32, order=order)
    path = tmp_path / name
    text = "\n".join("\t".join(map(repr, row)) for row in X.tolist()).encode()
    if name == "jax":
        table = from_array(jnp.asarray(X))
    elif "np" in name:
        np.save(path, X) if name == "x.npy" else np.savez_compressed(path, X=X)
        table = open_table(path)
    else:
        write(path, gzip.compress(text) if "gz" in name else text)
        table = open_table(path, header="no")
    assert (table.rows, table.dim, table.names) == (50, 3, ("x1", "x2", "x3"))
    assert np.array_equal(everything(table), X.astype(np.float64))
    assert table.labels is None and table.label_names == () and not table.standardized
    assert table.mean.tolist() == [0] * 3 and table.scale.tolist() == [1] * 3
    assert table.duplicate_rows == 0 and table.notes == [] and table.left_out == {}


@pytest.mark.parametrize(
    "dtype", [bool, np.uint8, np.uint64, np.float16, ">f4", np.longdouble]
)
def test_every_real_type_is_a_table(dtype):
    table = from_array(np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype))
    assert everything(table, "float32").dtype == np.float32
    assert everything(table).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.eye(2) * 1j, "type complex128"),
        (np.arange(3.0), "vector of shape (3,)"),
        (np.zeros((1, 3)), "1 row(s)"),
        (np.broadcast_to(np.float32(0), (2, 10**5)), "too wide"),
        (np.full((4, 2), np.nan), "no column holds numbers"),
        (np.array([[2**53 + 1, 1], [2, 3]]), "'x1' holds whole numbers beyond 2^53"),
        (np.array([[1e200, 1.0], [2.0, 3.0]]), "squares are out of range"),
        (np.array([[1e-150, 1.0], [2e-150, 3.0]]), "squares are out of range"),
    ],
)
def test_an_array_that_is_no_table_is_refused(X, words):
    assert refused(lambda: from_array(X), words).startswith("X: ")


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_columns_are_standardised_in_double_precision_across_blocks(
    rng, monkeypatch, offset
):
    monkeypatch.setattr(_table, "CELLS", 3 * 64)  # 64 rows a block
    noise = rng.normal(size=(1000, 3)) * [1, 10, 0.1]
    X = np.concatenate([noise, noise + 3]) + offset
    table = from_array(X, standardize=True)
    # The spacing of doubles near the offset is what is lost, and nothing more.
    lost = np.spacing(offset) + 1e-13
    assert np.allclose(table.mean - offset, (X - offset).mean(axis=0), atol=1e-6)
    assert np.allclose(table.scale, (X - offset).std(axis=0), rtol=1e3 * lost)
    points = everything(table)
    assert np.abs(points.mean(axis=0)).max() < 1e-5
    assert np.allclose(points.std(axis=0), 1, rtol=1e-5)
    # The cast to single precision comes after that.
    assert np.array_equal(everything(table, "float32"), points.astype(np.float32))


def test_two_neighbouring_doubles_are_no_constant():
    X = np.full((1001, 1), 1e9)
    X[500] = np.nextafter(1e9, 2e9)
    table = from_array(X, standardize=True)
    exact = np.spacing(1e9) * np.sqrt(1000) / 1001
    assert np.isfinite(everything(table)).all()
    assert table.scale[0] == pytest.approx(exact, rel=0.5)


@pytest.mark.parametrize("standardize", [False, True])
def test_rows_come_in_the_order_asked_for(rng, monkeypatch, standardize):
    monkeypatch.setattr(_table, "CELLS", 40)
    X = rng.normal(size=(101, 4))
    X[7, 2], X[[50, 51], [0, 3]] = -np.inf, np.nan
    table = from_array(X, columns=["4", "1-2"], missing="drop", standardize=standardize)
    clean = np.delete(X, [50, 51], axis=0)[:, [0, 1, 3]]
    assert np.allclose(table.mean, clean.mean(axis=0) * standardize)
    expected = (clean - table.mean) / table.scale
    indices = np.array([98, 0, 7, 7, 51, 3] * 5)
    assert np.array_equal(table.take(indices, "float64"), expected[indices])
    assert table.take(np.array([], np.int64), "float32").shape == (0, 3)
    assert np.array_equal(table.take(range(99), "float64"), expected)
    for wrong in ([99], [-1], [[0]], [0.5]):
        with pytest.raises(ValueError, match="indices"):
            table.take(wrong, "float64")
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        table.take([0], "int32")


def test_rows_of_a_key_are_distinct_sorted_and_a_function_of_the_key():
    key = jax.random.key(0)
    for num_rows, count in ((10, 3), (20_000, 15_000), (10**12, 1000)):
        rows = rows_for(key, num_rows, count)
        assert rows.dtype == np.int64 and len(rows) == count
        assert np.all(np.diff(rows) > 0) and 0 <= rows[0] <= rows[-1] < num_rows
        assert np.array_equal(rows, rows_for(jax.random.key(0), num_rows, count))
        assert not np.array_equal(rows, rows_for(jax.random.key(1), num_rows, count))
    assert np.array_equal(rows_for(key, 7, 7), np.arange(7))
    with pytest.raises(ValueError, match="number of rows"):
        rows_for(key, 7, 8)


def test_rows_of_a_key_are_uniform():
    # 3,000 draws of 3 out of 10: each row is there 900 times, with standard deviation 25. A bound of 5 of them fails
    # for some row with probability below 1e-5.
    keys = jax.random.split(jax.random.key(5), 3000)
    times = np.bincount(
        np.concatenate([rows_for(key, 10, 3) for key in keys]), minlength=10
    )
    assert np.abs(times - 900).max() < 5 * np.sqrt(3000 * 0.3 * 0.7)


def test_duplicate_rows_are_counted(rng, monkeypatch):
    monkeypatch.setattr(_table, "CELLS", 200)
    X = rng.integers(0, 4, size=(1000, 4)).astype(np.float64)
    X[X == 0] *= rng.choice([-1.0, 1.0], size=np.sum(X == 0))  # 0.0 equals -0.0
    exact = 1000 - len({tuple(row) for row in X.tolist()})
    table = from_array(X)
    assert table.duplicate_rows == exact
    assert f"{exact} of 1,000 rows equal an earlier row." in table.notes


def test_hashes_keep_small_numbers_apart():
    # Half a million rows of a grid: among random hashes two would agree with probability 2e-8.
    values = np.array([0, 1, -1, 2, 0.5, 3, 255, 1e-3, 7])
    block = np.stack([grid.ravel() for grid in np.meshgrid(*[values] * 6)])
    assert len(np.unique(_table.hashes_of(block))) == 9**6


def test_scales_offsets_and_outliers_are_said(rng):
    X = rng.normal(size=(10_000, 3))
    assert from_array(X).notes == []
    (note,) = from_array(X * [1, 5000, 20], names=["age", "pay", "size"]).notes
    assert "column 'pay'" in note and "that of 'age'" in note and "standardize" in note
    assert from_array(X * [1, 5000, 20], standardize=True).notes == []
    refused(
        lambda: everything(from_array(X * 1e40), "float32"), "do not fit into float32"
    )
    X[[3, 4], 1] = 1e4
    (note,) = from_array(X, standardize=True).notes
    assert "more than 50" in note and "of their column: 'x2'." in note


def test_labels_are_classes(tmp_path, rng):
    path = write(tmp_path / "x.csv", lines(k=repeated("NA", " b", "a"), a=A, b=B))
    table = open_table(path, labels="k")
    assert table.label_names == ("NA", "a", "b") and table.labels.dtype == np.int32
    assert table.labels[:3].tolist() == [0, 2, 1]
    assert table.left_out == {"k": "holds the labels"}
    assert "'NA' is taken for a class" in table.notes[0]
    words = {"labels": "1", "missing_words": ["na"]}
    refused(lambda: open_table(path, **words), "8 of 24 rows", "'k' (the labels)")
    assert open_table(path, **words, missing="drop").label_names == ("a", "b")
    path = write(
        tmp_path / "y.csv", lines(k=["NA", *repeated(10, "9", "10.0")[1:]], a=A)
    )
    table = open_table(path, labels="k", missing="drop")
    assert table.label_names == ("9", "10") and table.labels[:2].tolist() == [0, 1]

    X = rng.normal(size=(60, 3))
    X[:, 2] = np.arange(60) % 3
    table = from_array(X, labels="3")
    assert table.dim == 2 and table.label_names == ("0", "1", "2")
    big = 2**60 + np.arange(60) % 2  # these are one number in double precision
    assert from_array(X, labels=big).label_names == (str(2**60), str(2**60 + 1))
    words = np.array(["u", None, "v"] * 20, object)
    table = from_array(X, labels=words, missing="drop")
    assert table.label_names == ("u", "v") and table.rows == 40
    notes = from_array(X, labels=np.arange(60) / 7).notes
    assert "are they classes?" in notes[0]
    refused(
        lambda: from_array(X, labels=np.arange(59)),
        "the labels 'labels' have shape (59,), and X has 60 row(s)",
    )
    refused(lambda: from_array(X, labels=np.ones(60) * 1j), "type complex128")
    path = tmp_path / "x.npz"
    np.savez(path, X=X, y=np.arange(60) % 2 + 5, other=np.array(["p", "q", "r"] * 20))
    assert open_table(path).label_names == ("5", "6")
    table = open_table(path, labels="other", rows=10)
    assert table.label_names == ("p", "q", "r") and len(table.labels) == 10
    assert open_table(path, labels="2").dim == 2
    np.savez(path, X=X, y=X)
    (note,) = open_table(path, columns=["1-2"]).notes
    assert note.startswith("The array y is not used as labels")


def test_parquet_that_is_none_is_refused(tmp_path, monkeypatch):
    import pyarrow as arrow
    import pyarrow.parquet as parquet

    path = tmp_path / "x.parquet"
    table = arrow.table({"a": A, "b": B})
    parquet.write_table(table.rename_columns(["a", "a"]), path)
    refused(lambda: open_table(path), "several columns have the same name")
    refused(
        lambda: open_table(path, header="no"), "header is for .csv, .tsv, .txt only"
    )
    monkeypatch.setattr(arrow, "__version__", "14.0.0")
    refused(lambda: open_table(path), "needs pyarrow 16 or newer, not 14.0.0")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(lambda: open_table(path), "jaxkern-verified[check]")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_table_that_takes_too_much_memory_is_refused(tmp_path, monkeypatch, name):
    path = tmp_path / name
    text = "a\n" + "".join(f"{i}\n" for i in range(10**5))
    if name.endswith("parquet"):
        import pyarrow as arrow
        import pyarrow.parquet as parquet

        parquet.write_table(arrow.table({"a": np.arange(1e5)}), path)
    else:
        write(path, text)
    monkeypatch.setattr(_files, "memory", lambda: 2 * 10**6)
    refused(lambda: open_table(path), "takes more than a quarter of the memory")
    monkeypatch.undo()
    assert open_table(path, rows=1000).notes[0].startswith("Only the first 1,000")


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.npy", "", "is empty"),
        (
            "x.npy",
            declared((10**6, 10)),
            "is cut off; it declares 80,000,000 bytes of numbers and holds 0",
        ),
        ("x.npy", declared((0, 3)), "0 row(s)"),
        ("x.npz", b"PK\x05\x06" + bytes(18), "holds no array named X, but nothing"),
        ("x.csv", "\n \n", "is empty"),
        ("x.csv.gz", b"\x1f\x8b\x08" + bytes(60), "cannot be read"),
        ("x.npy.gz", gzip.compress(b"1,2", mtime=0), "unknown kind of file '.gz'"),
        ("x.xlsx", "1,2\n3,4\n", "unknown kind of file '.xlsx'"),
    ],
)
def test_a_file_that_is_no_table_is_refused_in_one_line(tmp_path, name, content, words):
    refused(lambda: open_table(write(tmp_path / name, content)), words, name)


def test_an_archive_that_would_unpack_to_far_more_than_its_length_is_refused(tmp_path):
    zeros = declared((2**26, 8), content=bytes(2**16))
    path = archive(tmp_path / "x.npz", [("X.npy", zeros)], zipfile.ZIP_DEFLATED)
    # The directory of the archive claims what the array claims: 4 GiB minus a little from some kilobytes.
    patched(path, 24, (2**32 - 2).to_bytes(4, "little"))
    refused(
        lambda: open_table(path),
        "declares 4,294,967,294 bytes of numbers in a file of",
        "not unpacked",
    )


def test_names_of_files_are_plain_text():
    refused(lambda: open_table("a\nb.csv"), "a\ufffdb.csv: no such file")
    assert plain("a\nb\u2028" + "c" * 200) == "a\ufffdb\ufffd" + "c" * 95 + "…"


MEASURE = """
import sys
import time
import numpy as np
from proofs_check.certify import open_table
from proofs_check.certify.load import table as _table

def anonymous():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024

def peak():
    # The allocator of NumPy gives large arrays back at once, so the peak is looked for between the steps.
    found.append(anonymous())

found = [anonymous()]
hashes, transposed = _table.hashes_of, _table.View.transposed
_table.hashes_of = lambda block: (peak(), hashes(block))[1]
_table.View.transposed = lambda view: (peak() or block for block in transposed(view))
table = open_table(sys.argv[1], standardize=True)
for start in range(0, table.rows, 50_000):
    table.take(range(start, min(start + 50_000, table.rows)), "float32")
    peak()
table.take(np.arange(0, table.rows, table.rows // 1000), "float32")
print(table.rows, table.dim, table.duplicate_rows, max(found) - found[0])
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured on Linux"
)
def test_a_mapped_table_is_not_read_into_memory(tmp_path, rng):
    """80 MB of noise and two twins on disk, 160 MB as float64. Blocks take a few times 8 MiB, hashes 8 MB twice."""
    X, path = rng.standard_normal((1_000_000, 20), dtype=np.float32), tmp_path / "x.npy"
    X[-1] = X[7] = X[0]
    np.save(path, X)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, path],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    *shape, mebibytes = done.stdout.split()
    assert shape == ["1000000", "20", "2"] and float(mebibytes) < 48


@pytest.mark.parametrize("name", ["points.npy", "points.csv"])
def test_reading_ends_with_the_time(name, tmp_path):
    path = write(tmp_path / name, "a,b\n1,2\n3,5\n")
    if name.endswith("npy"):
        np.save(path, np.arange(12.0).reshape(4, 3))
    assert open_table(path, until=time.monotonic() + 1e9).rows > 1
    with pytest.raises(DataError, match="the time ended before all of it was read"):
        open_table(path, until=0.0)
