"""Tables of users: what is said about them, what is refused, and rows without loading the whole."""

import csv
import mmap
import os
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.odd_files import archive, declared, one_line, patched, write

from proofs_check.certify import (
    _cells,
    _files,
    _table,
    from_array,
    open_table,
    rows_for,
)
from proofs_check.certify._cells import parsed
from proofs_check.engine.reading import DataError, plain

ROOT = Path(__file__).resolve().parents[2]


def refused(call, *words):
    """Assert that a call raises one line with these words, and return it."""
    return one_line(call, DataError, *words)


def everything(table, dtype="float64"):
    return table.take(np.arange(table.rows), dtype)


@pytest.mark.parametrize(
    "kind", ["npy", "fortran", "npz", "csv", "tab", "parquet", "array", "jax"]
)
def test_every_source_gives_the_same_table(tmp_path, rng, kind):
    X = rng.normal(size=(50, 3)).astype(np.float32)
    path = tmp_path / f"x.{ {'fortran': 'npy', 'tab': 'csv'}.get(kind, kind) }"
    if kind in ("npy", "fortran"):
        np.save(path, np.asfortranarray(X) if kind == "fortran" else X)
    elif kind == "npz":
        np.savez_compressed(path, X=X)
    elif kind in ("csv", "tab"):
        mark = "\t" if kind == "tab" else ","
        write(path, "\n".join(mark.join(map(repr, row)) for row in X.tolist()))
    elif kind == "parquet":
        arrow = pytest.importorskip("pyarrow")
        import pyarrow.parquet as parquet

        parquet.write_table(arrow.table({f"x{i + 1}": X[:, i] for i in range(3)}), path)
    if kind in ("array", "jax"):
        table = from_array(X if kind == "array" else jnp.asarray(X))
    else:
        table = open_table(path)
        assert table.source == path.name
    assert (table.rows, table.dim, table.names) == (50, 3, ("x1", "x2", "x3"))
    assert np.array_equal(everything(table), X.astype(np.float64))
    assert table.labels is None and table.label_names == () and not table.standardized
    assert np.array_equal(table.mean, np.zeros(3)) and np.array_equal(
        table.scale, np.ones(3)
    )
    assert table.duplicate_rows == 0 and table.notes == [] and table.left_out == {}


@pytest.mark.parametrize(
    "dtype", [bool, np.uint8, np.int16, np.uint64, np.float16, ">f4", np.longdouble]
)
def test_every_real_type_is_a_table(tmp_path, dtype):
    X = np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype)
    np.save(tmp_path / "x.npy", X)
    for table in (from_array(X), open_table(tmp_path / "x.npy")):
        assert everything(table, "float32").dtype == np.float32
        assert everything(table).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (np.eye(2) * 1j, "type complex128"),
        (np.array([[1, "a"], [2, None]], object), "type object"),
        (np.arange(3.0), "vector of shape (3,)"),
        (np.zeros((2, 2, 2)), "shape (2, 2, 2)"),
        (np.zeros((1, 3)), "1 row(s)"),
        (np.ones((4, 2)), "all rows are equal"),
        (np.full((4, 2), np.nan), "no column holds a number"),
        (np.array([[1e200, 1.0], [2.0, 3.0]]), "squares are out of range"),
        (np.array([[1e-150, 1.0], [2e-150, 3.0]]), "squares are out of range"),
        (np.array([[1.7e308, 1.0], [-1.7e308, 3.0]]), "squares are out of range"),
    ],
)
def test_an_array_that_is_no_table_is_refused(X, words):
    assert refused(lambda: from_array(X), words).startswith("X: ")
    assert issubclass(DataError, ValueError)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_columns_are_standardised_in_double_precision_across_blocks(
    rng, monkeypatch, order, offset
):
    monkeypatch.setattr(_table, "CELLS", 3 * 64)  # 64 rows a block
    noise = rng.normal(size=(1000, 3)) * [1, 10, 0.1]
    X = np.array(np.concatenate([noise, noise + 3]) + offset, order=order)
    before = X.copy()
    table = from_array(X, standardize=True)
    # The spacing of doubles near the offset is what is lost, and nothing more.
    lost = np.spacing(offset) + 1e-13
    exact = [
        [int(v * 2**20) for v in column] for column in (X - offset).T
    ]  # whole numbers, so that sums are exact
    mean = np.array([sum(column) / len(column) / 2**20 for column in exact])
    assert np.allclose(table.mean - offset, mean, rtol=0, atol=1e-6)
    assert np.allclose(table.scale, (X - offset).std(axis=0), rtol=1e3 * lost)
    points = everything(table)
    assert np.abs(points.mean(axis=0)).max() < 1e-5 and np.allclose(
        points.std(axis=0), 1, rtol=1e-5
    )
    assert np.array_equal(X, before)


def test_the_cast_to_single_precision_comes_after_standardising(rng):
    X = rng.normal(size=(500, 2)) + 1e9
    table = from_array(X, standardize=True)
    assert np.array_equal(
        everything(table, "float32"), everything(table).astype(np.float32)
    )
    assert len(np.unique(everything(table, "float32"))) > 990


@pytest.mark.parametrize("standardize", [False, True])
def test_rows_come_in_the_order_asked_for_and_blocks_in_their_own(
    rng, monkeypatch, standardize
):
    monkeypatch.setattr(_table, "CELLS", 40)
    X = rng.normal(size=(101, 4))
    X[[7, 50]] = np.nan
    table = from_array(X, columns=["4", "1-2"], missing="drop", standardize=standardize)
    clean = np.delete(X, [7, 50], axis=0)[:, [0, 1, 3]]
    expected = (clean - table.mean) / table.scale
    indices = np.array([98, 0, 7, 7, 51, 3] * 5)
    assert np.array_equal(table.take(indices, "float64"), expected[indices])
    assert np.array_equal(
        table.take(jnp.arange(3), jnp.float32), expected[:3].astype(np.float32)
    )
    assert table.take(np.array([], np.int64), "float32").shape == (0, 3)
    blocks = list(table.blocks(37, "float64"))
    assert [len(block) for block in blocks] == [37, 37, 25]
    assert np.array_equal(np.concatenate(blocks), expected)
    for wrong in ([99], [-1], [[0]], [0.5]):
        with pytest.raises(ValueError, match="indices"):
            table.take(wrong, "float64")
    with pytest.raises(ValueError, match="dtype must be float32 or float64"):
        table.take([0], "int32")
    with pytest.raises(ValueError, match="size must be at least 1"):
        next(table.blocks(0, "float32"))


def test_rows_of_a_key_are_distinct_sorted_and_a_function_of_the_key():
    key = jax.random.key(0)
    for num_rows, count in ((10, 3), (20_000, 100), (20_000, 15_000), (10**12, 1000)):
        rows = rows_for(key, num_rows, count)
        assert rows.dtype == np.int64 and len(rows) == count
        assert np.all(np.diff(rows) > 0) and 0 <= rows[0] <= rows[-1] < num_rows
        assert np.array_equal(rows, rows_for(jax.random.key(0), num_rows, count))
        assert not np.array_equal(rows, rows_for(jax.random.key(1), num_rows, count))
    assert np.array_equal(rows_for(key, 7, 7), np.arange(7))
    for wrong, words in ((0, "count"), (8, "number of rows"), (2.5, "whole number")):
        with pytest.raises(ValueError, match=words):
            rows_for(key, 7, wrong)
    with pytest.raises(ValueError, match="typed random key"):
        rows_for(jax.random.PRNGKey(0), 7, 2)


def test_rows_of_a_key_are_uniform():
    # 3,000 draws of 3 out of 10: each row is there 900 times, with standard deviation 25. A bound of 5 of them fails
    # for some row with probability below 1e-5.
    keys = jax.random.split(jax.random.key(5), 3000)
    times = np.bincount(
        np.concatenate([rows_for(key, 10, 3) for key in keys]), minlength=10
    )
    assert np.abs(times - 900).max() < 5 * np.sqrt(3000 * 0.3 * 0.7)


def test_text_is_left_out_and_named(tmp_path):
    path = write(
        tmp_path / "x.csv", "size,colour,empty\n1,red,\n2,blue,NA\n4,red,null\n"
    )
    table = open_table(path)
    assert table.names == ("size",) and everything(table).tolist() == [[1], [2], [4]]
    assert table.left_out == {
        "colour": "holds text, such as 'red'",
        "empty": "holds no number",
    }
    assert table.notes == [
        "2 columns are left out, since no cell there is a number: 'colour', 'empty'."
    ]
    refused(
        lambda: open_table(path, columns=["colour"]),
        "no column holds a number",
        "'colour' holds text",
    )


HOLES = "a,b,c\n1,2,x\n,4,1\nNaN,n/a,2\n5,inf,3\n7,8,4\n9,1_0,5\n10,11,oops\n12,13,14\n"


def test_missing_cells_are_an_error_that_counts_them(tmp_path):
    path = write(tmp_path / "x.csv", HOLES)
    refused(
        lambda: open_table(path),
        "6 of 8 rows hold no number in some column",
        "'a': 2 missing; 'b': 1 missing, 1 with text such as '1_0', 1 infinite; 'c': 2 with text such as 'x'",
        "--missing drop",
        "--columns",
    )
    assert open_table(path, columns=["c"], missing="drop").rows == 6
    with pytest.raises(ValueError, match="pass missing='drop' to leave out"):
        from_array(np.array([[1, np.nan], [2, 3]]))


def test_rows_with_missing_cells_are_dropped_and_counted(tmp_path):
    table = open_table(write(tmp_path / "x.csv", HOLES), missing="drop")
    assert everything(table).tolist() == [[7, 8, 4], [12, 13, 14]]
    assert len(table.notes) == 1 and table.notes[0].startswith(
        "6 of 8 rows are left out"
    )
    path = write(tmp_path / "y.csv", "a,b\n1,\n,2\n3,4\n")
    refused(
        lambda: open_table(path, missing="drop"),
        "only 1 of 3 rows hold a number in every column",
    )


def test_statistics_are_those_of_the_rows_that_are_left(rng):
    X = rng.normal(size=(300, 3))
    X[10, 0], X[20, 1], X[:, 2] = np.inf, np.nan, -np.inf
    table = from_array(X, missing="drop", standardize=True)
    clean = np.delete(X, [10, 20], axis=0)[:, :2]
    assert table.rows == 298 and table.left_out == {"x3": "holds no number"}
    assert np.allclose(table.mean, clean.mean(axis=0)) and np.allclose(
        table.scale, clean.std(axis=0)
    )


def test_constant_columns_are_left_out(rng):
    X = rng.normal(size=(100, 4))
    X[:, 1], X[:, 3] = 0.1, np.where(np.arange(100) == 5, np.nan, 1e6)
    table = from_array(X, missing="drop", names=["a", "b", "c", "d"])
    assert table.names == ("a", "c") and table.left_out == {
        "b": "holds one value, 0.1",
        "d": "holds one value, 1e+06",
    }
    assert (
        table.notes[-1]
        == "2 columns are left out, since all cells are equal: 'b', 'd'."
    )
    assert np.array_equal(everything(table), np.delete(X, 5, axis=0)[:, [0, 2]])


def test_two_neighbouring_doubles_are_no_constant():
    X = np.full((1001, 1), 1e9)
    X[500] = np.nextafter(1e9, 2e9)
    table = from_array(X, standardize=True)
    assert table.dim == 1 and np.isfinite(everything(table)).all()
    assert table.scale[0] == pytest.approx(
        np.spacing(1e9) * np.sqrt(1000) / 1001, rel=0.5
    )


@pytest.mark.parametrize("rows_at_once", [2**24, 300])
def test_duplicate_rows_are_counted(rng, monkeypatch, rows_at_once):
    monkeypatch.setattr(_table, "HASHED_ROWS", rows_at_once)
    monkeypatch.setattr(_table, "CELLS", 200)
    X = rng.integers(0, 4, size=(1000, 4)).astype(np.float64)
    X[X == 0] *= rng.choice([-1.0, 1.0], size=np.sum(X == 0))  # 0.0 equals -0.0
    exact = 1000 - len({tuple(row) for row in X.tolist()})
    assert 700 < exact < 1000
    table = from_array(X)
    assert (
        table.duplicate_rows == exact
        and f"{exact} of 1,000 rows equal an earlier row." in table.notes
    )
    assert from_array(X, columns=["1"]).duplicate_rows == 996


def test_hashes_keep_small_numbers_apart():
    # Three quarters of a million rows of a grid: among random hashes two would agree with probability 2e-8.
    values = np.array([0, 1, -1, 2, 0.5, 3, 255, 1e-3, 7])
    grids = np.meshgrid(*[values] * 6)
    block = np.stack([grid.ravel() for grid in grids])
    assert len(np.unique(_table.hashes_of(block))) == 9**6
    assert (
        len(np.unique(_table.hashes_of(np.arange(500_000, dtype=float)[None])))
        == 500_000
    )


def test_scales_are_compared_unless_standardised(rng):
    X = rng.normal(size=(200, 3)) * [1, 5000, 20]
    (note,) = from_array(X, names=["age", "pay", "size"]).notes
    assert (
        "column 'pay'" in note
        and "that of 'age'" in note
        and "standardize=True" in note
    )
    assert from_array(X, standardize=True).notes == []
    assert from_array(X * [1, 0.1, 1]).notes == []


def test_what_single_precision_cannot_hold_is_said(rng):
    near = rng.normal(size=(100, 1))
    (note,) = from_array(near + 1e8).notes
    assert "'x1'" in note and "single precision rounds away" in note
    assert (
        from_array(near + 1e8, standardize=True).notes == []
        and from_array(near + 1e3).notes == []
    )
    (note,) = from_array(near * 1e25).notes
    assert "overflow in single precision" in note
    table = from_array(near * 1e40)
    assert everything(table).shape == (100, 1)
    refused(lambda: everything(table, "float32"), "do not fit into float32")
    assert np.isfinite(
        everything(from_array(near * 1e40, standardize=True), "float32")
    ).all()


def test_outliers_are_counted_and_kept(rng):
    X = rng.normal(size=(10_000, 2))
    X[[3, 4], 1] = 1e4
    for standardize in (False, True):
        table = from_array(X, standardize=standardize)
        expected = "2 entries lie more than 50 standard deviations from the mean of their column: 2 in 'x2'."
        assert table.notes == [expected] and table.rows == 10_000
    X[[3, 4], 1] = 5
    assert from_array(X).notes == []


def test_columns_are_chosen_by_name_number_and_range(tmp_path):
    path = write(tmp_path / "x.csv", "a;b;c;d-e;f\n1;2;3;4;5\n6;7;8;9;9\n")
    for columns, names in (
        (["c", "1"], ("a", "c")),
        (["2-4"], ("b", "c", "d-e")),
        (["d-e", "5"], ("d-e", "f")),
        ([" 1 - 2 "], ("a", "b")),
    ):
        assert open_table(path, columns=columns).left_out == {}
        assert open_table(path, columns=columns).names == names
    for columns, words in (
        (
            ["z"],
            "there is no column named 'z'; the columns are 'a', 'b', 'c', 'd-e', 'f'",
        ),
        (["9"], "there is no column 9; columns are numbered from 1 to 5"),
        (["0"], "there is no column 0"),
        (["3-2"], "there is no column 3-2"),
        (["1-999999999"], "there is no column 1-999999999"),
        (["1-3", "b"], "column 'b' is chosen twice"),
        ([], "no column is chosen"),
    ):
        refused(lambda columns=columns: open_table(path, columns=columns), words)


def test_a_first_row_with_a_number_is_data(tmp_path):
    path = write(tmp_path / "x.csv", "1,b\n2,3\n4,5\n")
    refused(lambda: open_table(path), "1 of 3 rows", "'x2': 1 with text such as 'b'")
    refused(
        lambda: open_table(path, columns=["b"]),
        "no column named 'b'",
        "the file has no header",
    )
    path = write(tmp_path / "y.csv", "NA,NA\n2,3\n4,5\n")
    assert (
        open_table(path, missing="drop").rows == 2
    )  # a row of missing cells is no header


def test_names_are_distinct_short_and_printable(tmp_path):
    path = write(
        tmp_path / "x.csv",
        f"a,a,a (2),{'n' * 500},\x1b[31m\u202e,\n1,2,3,4,5,6\n2,3,4,5,6,8\n",
    )
    table = open_table(path)
    assert table.names[:3] == ("a", "a (3)", "a (2)")
    assert len(set(table.names)) == 6 and len(table.names[3]) == 100
    assert table.names[4] == "\ufffd[31m\ufffd" and table.names[5] == "x6"
    assert table.notes == [
        "Several columns have the same name; the later ones are numbered: 'a'."
    ]
    assert plain("a\nb\u2028" + "c" * 200) == "a\ufffdb\ufffd" + "c" * 95 + "…"


def test_labels_are_classes_and_no_coordinate(tmp_path):
    path = write(tmp_path / "x.csv", "a,kind,b\n1,red,2\n3, blue,4\n5,red,7\n")
    for labels in ("kind", "2"):
        table = open_table(path, labels=labels)
        assert (
            table.names == ("a", "b")
            and table.labels.tolist() == [1, 0, 1]
            and table.labels.dtype == np.int32
        )
        assert table.label_names == ("blue", "red") and table.left_out == {
            "kind": "holds the labels"
        }
    path = write(tmp_path / "y.csv", "a,k\n1,10\n2,9\n3,10.0\n4,\n")
    refused(
        lambda: open_table(path, labels="k"),
        "1 of 4 rows",
        "'k' (the labels): 1 missing",
    )
    table = open_table(path, labels="k", missing="drop")
    assert table.label_names == ("9", "10") and table.labels.tolist() == [1, 0, 1]
    refused(
        lambda: open_table(path, labels="1-2"),
        "'1-2' names several columns, and the labels are one",
    )
    refused(lambda: open_table(path, columns=["k"], labels="k"), "no column is chosen")


def test_classes_that_are_dropped_have_no_name():
    X = np.array([[1, np.nan], [2, 3], [4, 4], [5, 9]])
    table = from_array(X, labels=["a", "b", "c", "b"], missing="drop")
    assert table.label_names == ("b", "c") and table.labels.tolist() == [0, 1, 0]


def test_labels_of_an_array(rng):
    X = rng.normal(size=(60, 3))
    X[:, 2] = np.arange(60) % 3
    table = from_array(X, labels="3")
    assert (
        table.dim == 2
        and table.labels.tolist() == X[:, 2].tolist()
        and table.label_names == ("0", "1", "2")
    )
    big = 2**60 + np.arange(60) % 2  # these are one number in double precision
    assert from_array(X, labels=big).label_names == (str(2**60), str(2**60 + 1))
    assert from_array(X, labels=X[:, 2] == 0).label_names == ("False", "True")
    assert from_array(X, labels=np.array([b"u", b"v"] * 30)).label_names == ("u", "v")
    assert "are they classes?" in from_array(X, labels=np.arange(60) / 7).notes[-1]
    refused(
        lambda: from_array(X, labels=np.arange(59)),
        "the labels 'labels' have shape (59,), and X has 60 row(s)",
    )
    refused(lambda: from_array(X, labels=np.ones(60) * 1j), "type complex128")


def test_y_of_an_archive_is_the_labels_where_it_can_be(tmp_path, rng):
    X, y = rng.normal(size=(30, 2)), np.arange(30) % 2 + 5
    path = tmp_path / "x.npz"
    np.savez(path, X=X, y=y, other=np.array(["p", "q", "r"] * 10))
    assert open_table(path).label_names == ("5", "6") and open_table(path).dim == 2
    assert open_table(path, labels="other", rows=10).label_names == ("p", "q", "r")
    assert len(open_table(path, rows=10).labels) == 10
    assert open_table(path, labels="2").dim == 1
    for wrong, words in (
        (y[:5], "have shape (5,)"),
        (np.where(y == 5, np.nan, 1), "missing"),
        (np.array([None] * 30), "pickled"),
    ):
        np.savez(path, X=X, y=wrong)
        table = open_table(path)
        assert (
            table.labels is None
            and words in table.notes[0]
            and table.notes[0].startswith("The array y is not used")
        )
        refused(lambda: open_table(path, labels="y"))


def test_only_the_first_rows_are_used(tmp_path, rng):
    X = rng.normal(size=(40, 2))
    X[30] = np.nan
    np.save(tmp_path / "x.npy", X)
    assert open_table(tmp_path / "x.npy", rows=10).notes == [
        "Only the first 10 of 40 rows are used."
    ]
    path = write(tmp_path / "x.csv", "1,2\n3,4\n5,6\n")
    table = open_table(path, rows=2)
    assert table.rows == 2 and table.notes == ["Only the first 2 rows are used."]
    assert open_table(path, rows=3).notes == open_table(path, rows=4).notes == []
    refused(lambda: open_table(path, rows=1), "rows must be at least 2")
    refused(
        lambda: open_table(path, missing="keep"), 'missing must be "error" or "drop"'
    )


def test_parquet(tmp_path, rng):
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    path = tmp_path / "x.parquet"
    columns = {
        "a": arrow.array([1, 2, 3, 4], arrow.int16()),
        "b": arrow.array([0.5, None, 1.5, 7.5]),
        "flag": [True, False, True, True],
        "when": arrow.array([0, 1, 2, 3], arrow.timestamp("s")),
        "kind": arrow.array(["u", "v", "u", "v"]).dictionary_encode(),
    }
    parquet.write_table(arrow.table(columns), path, row_group_size=3)
    refused(lambda: open_table(path), "1 of 4 rows", "'b': 1 missing")
    table = open_table(path, labels="kind", missing="drop")
    assert table.names == ("a", "b")
    assert (
        table.left_out["flag"] == "holds one value, 1"
        and "1970-01-01" in table.left_out["when"]
    )
    assert everything(table).tolist() == [
        [1, 0.5],
        [3, 1.5],
        [4, 7.5],
    ] and table.label_names == ("u", "v")
    assert open_table(path, columns=["a"], rows=2).notes == [
        "Only the first 2 of 4 rows are used."
    ]
    twice = arrow.Table.from_arrays(
        [columns["a"], columns["kind"], columns["a"]], names=["a", "k", "a"]
    )
    parquet.write_table(twice, path)
    table = open_table(path)
    assert (
        table.columns == ("a", "k", "a (2)") and table.left_out["a (2)"] == "equals 'a'"
    )
    assert open_table(path, keep=["3"]).names == ("a", "a (2)")
    assert open_table(path, labels="k").labels.tolist() == [0, 1, 0, 1]
    whole = path.read_bytes()
    for broken in (whole[:-9], whole[: len(whole) // 2], b"PAR1" + bytes(40) + b"PAR1"):
        refused(
            lambda broken=broken: open_table(write(path, broken)),
            "x.parquet: cannot be read",
        )


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(
        lambda: open_table(write(tmp_path / "x.parquet", "PAR1")),
        "jaxkern-verified[check]",
    )


# Odd tables, each as a CSV file and as DataFrames: what became coordinates, or the sentence with the flag to pass

N = 24
ODD = np.random.default_rng(9).normal(size=(3, N)).round(3).tolist()
A, B = {"a": ODD[0]}, {"b": ODD[1]}
USED = ("a", "b")
DAYS = [f"2024-03-{i + 1:02d}" for i in range(N)]
TABLES = {
    "an id": ({"id": [7 * i + 3 for i in range(N)]} | A | B, {}, ("--exclude id,", "exclude=['id'],")),
    "an id, kept": ({"userId": [7 * i for i in range(N)]} | A, {"keep": ["userId"]}, ("userId", "a")),
    "an id of text": ({"Key": [f"p{i}" for i in range(N)]} | A | B, {}, USED),
    "counted rows": ({"nr": list(range(1, N + 1))} | A | B, {}, ("--exclude nr,", "exclude=['nr'],")),
    "an index without a name": ({"Unnamed: 0": list(range(N))} | A | B, {}, USED),
    "booleans": ({"flag": [i % 3 == 0 for i in range(N)]} | A, {}, ("flag", "a")),
    "percents": ({"rate": [f"{i / 2}%" for i in range(N)]} | A, {}, ("rate", "a")),
    "thousands": ({"pay": [f"{1 + i % 5},{100 + i}.5" for i in range(N)]} | A, {}, ("pay", "a")),
    "missing": (A | {"b": [None, *ODD[1][1:]]}, {}, ("--missing drop", "missing='drop'")),
    "missing, dropped": (A | {"b": [None, *ODD[1][1:]]}, {"missing": "drop"}, USED),
    "a target": (A | B | {"Target": [i % 2 for i in range(N)]}, {}, ("--labels Target", "target='Target'")),
    "a target, named": (A | B | {"class": [i % 2 for i in range(N)]}, {"target": "class"}, USED),
    "y without x": (A | B | {"y": ODD[2]}, {}, ("--target y,", "labels='y'")),
    "x and y": ({"x": ODD[0], "y": ODD[1]}, {}, ("x", "y")),
    "dates": ({"when": DAYS, "day": [int(day.replace("-", "")) for day in DAYS]} | A | B, {}, USED),
    "scales": (A | {"b": [1e4 * value for value in ODD[1]]}, {}, USED),
    "copies": (A | B | {"d": ODD[0], "one": [1] * N}, {}, USED),
    "names": ({"größe in m²": ODD[0], "重さ": ODD[1]}, {"exclude": ["重さ"]}, ("größe in m²",)),
    "excluded": (A | B | {"id": list(range(N))}, {"exclude": ["id", "1"]}, ("b",)),
}  # fmt: skip
SAID = {
    "an id of text": "1 column is left out, since no cell there is a number: 'Key'.",
    "an index without a name": "1 column is left out, since the cells only count the rows: 'Unnamed: 0'.",
    "booleans": "True and false are 1 and 0: 'flag'.",
    "percents": "Percentages are fractions of 1, 0.05 for 5%: 'rate'.",
    "thousands": "Commas between thousands are left out of numbers: 'pay'.",
    "missing, dropped": "1 of 24 rows are left out, since they hold no number in some column ('b': 1 missing).",
    "dates": "1 column is left out, since all cells are dates as numbers: 'day'.",
    "scales": "The standard deviation of column 'b'",
    "copies": "1 column is left out, since the cells equal those of an earlier column: 'd'.",
}


@pytest.mark.parametrize("kind", ["csv", "pandas", "polars", "arrow"])
@pytest.mark.parametrize("name", TABLES)
def test_odd_tables_have_no_odd_coordinates_or_name_the_flag(tmp_path, name, kind):
    columns, asked, expected = TABLES[name]
    if kind == "csv":
        with (tmp_path / "x.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([columns, *zip(*columns.values(), strict=True)])
        read = lambda: open_table(tmp_path / "x.csv", **asked)  # noqa: E731
    else:
        library = pytest.importorskip("pyarrow" if kind == "arrow" else kind)
        frame = (library.table if kind == "arrow" else library.DataFrame)(columns)
        read = lambda: from_array(frame, **asked)  # noqa: E731
    if any("=" in name for name in expected):
        refused(read, expected[kind != "csv"])
        return
    table = read()
    assert table.names == expected and any(
        note.startswith(SAID.get(name, "")) for note in (*table.notes, "")
    )
    values = {
        n: [parsed(str(cell))[0] for cell in column]
        for n, column in columns.items()
        if n in expected
    }
    exact = np.array(
        [row for row in zip(*values.values(), strict=True) if np.isfinite(row).all()]
    )
    assert np.array_equal(everything(table), exact)
    assert set(table.columns) == set(columns) == set(table.names) | set(table.left_out)


def test_an_error_names_the_argument_in_python():
    frame = pytest.importorskip("pandas").DataFrame(
        {"id": [3, 5, 8], "Species": [0, 1, 1], "a": [1.5, 2, 7]}
    )
    words = "pass exclude=['id'] and labels='Species' for classes or target='Species', or keep=['id', 'Species'] to"
    refused(lambda: from_array(frame), "X: columns look", words)
    table = from_array(
        frame,
        labels=np.array(["u", "v", "v"], object),
        keep=["id"],
        exclude=["Species"],
    )
    assert table.names == ("id", "a") and table.label_names == ("u", "v")
    refused(
        lambda: from_array(frame, keep=["id"], labels="id"),
        "'id' cannot be kept, since it holds the labels",
    )
    refused(lambda: from_array(frame, names=["p", "q", "r"]), "a DataFrame has its own")
    mixed = pytest.importorskip("pandas").DataFrame(
        {"a": [1, "5%", None, 4.5], "b": [1, 2, 4, 7]}
    )
    assert everything(from_array(mixed, missing="drop")).tolist() == [
        [1, 1],
        [0.05, 2],
        [4.5, 7],
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_that_does_not_fit_is_read_by_way_of_a_file(
    tmp_path, rng, monkeypatch, kind
):
    X, path = rng.normal(size=(3000, 4)).round(4), tmp_path / f"x.{kind}"
    if kind == "csv":
        np.savetxt(path, X, delimiter=",", header="a,b,c,kind", comments="")
    else:
        arrow, parquet = (
            pytest.importorskip(f"pyarrow{part}") for part in ("", ".parquet")
        )
        parquet.write_table(
            arrow.table(dict(zip(["a", "b", "c", "kind"], X.T, strict=True))), path
        )
    asked = {"columns": ["1-3"], "labels": "kind", "rows": 2900}
    expected = open_table(path, **asked)
    monkeypatch.setattr(_cells, "memory", lambda: 40_000)
    monkeypatch.setattr(_files, "_BLOCK", 2**13)
    monkeypatch.setattr(_files, "_NUMBERS_AT_ONCE", 2**9)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    table = open_table(path, **asked)
    assert isinstance(table._view.array.base.base.obj, mmap.mmap) and os.listdir(
        tmp_path
    ) == [path.name]
    assert np.array_equal(everything(table), everything(expected)) and np.array_equal(
        table.labels, expected.labels
    )
    assert (table.names, table.notes, table.left_out) == (
        expected.names,
        expected.notes,
        expected.left_out,
    )


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.npy", "", "is empty"),
        ("x.npy", b"\x93NUMPY\x01\x00v\x00{'descr'", "cannot be read as .npy"),
        (
            "x.npy",
            b"\x93NUMPY\x01\x00\x08\x00{'(\n'': ",
            "cannot be read as .npy",
        ),  # an error of the tokenizer
        (
            "x.npy",
            declared((10**6, 10)),
            "is cut off; it declares 80,000,000 bytes of numbers and holds 0",
        ),
        ("x.npy", declared((10**30, 10**30), content=bytes(64)), "is cut off"),
        ("x.npy", declared((-4, -2), content=bytes(64)), "shape (-4, -2)"),
        ("x.npy", declared((0, 3)), "0 row(s)"),
        ("x.npy", declared((4, 0)), "shape (4, 0)"),
        ("x.npy", declared((2, 2), "'|V8'", bytes(32)), "type |V8"),
        ("x.npy", b"(" * 4000, "no plain array"),
        ("x.npz", b"PK\x03\x04 and no more", "cannot be read as .npz"),
        ("x.npz", b"PK\x05\x06" + bytes(18), "holds no array named X, but nothing"),
        ("x.csv", "", "is empty"),
        ("x.csv", "\n \n", "is empty"),
        ("x.csv", "a,b\n", "is empty"),
        ("x.csv", "1,2\n", "1 row(s)"),
        ("x.csv", "1,2\n3\n", "row 2 has 1 column(s) and the first row has 2"),
        ("x.csv", "1,2\n3,\0\n", "holds a NUL"),
        ("x.csv", "1,2\n".encode("utf-16-le"), "holds a NUL"),
        ("x.csv", b"\xff\xfe\x00\x81", "is not text in UTF-8"),
        ("x.csv", "1,2\n" + "3" * 200_000 + ",4\n", "'x1': 1 infinite"),
        ("x.csv", '1,2\n"3' + ",4\n" * 100_000, "row 2 has 1 column(s)"),
        ("x.txt", "1,2\n3,4\n", "unknown kind of file '.txt'"),
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


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "f.csv").mkdir()
    refused(lambda: open_table(tmp_path / "f.csv"), "is a folder")
    refused(lambda: open_table(tmp_path / "g.csv"), "no such file")
    os.mkfifo(tmp_path / "p.csv")
    refused(lambda: open_table(tmp_path / "p.csv"), "is no regular file")
    refused(lambda: open_table("a\nb.csv"), "a\ufffdb.csv: no such file")
    if os.geteuid():  # root may read everything
        write(tmp_path / "x.csv", "1,2\n3,4\n").chmod(0)
        refused(lambda: open_table(tmp_path / "x.csv"), "cannot be read")


@pytest.mark.parametrize("shape", [(2, 10**5), (10**4, 100)])
def test_too_many_columns_are_refused(shape):
    call = lambda: from_array(np.broadcast_to(np.float32(0), shape))  # noqa: E731
    refused(call, "too wide" if shape[1] > 1000 else "all rows are equal")


MEASURE = """
import sys
import time
import numpy as np
from proofs_check.certify import _table, open_table

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
for block in table.blocks(50_000, "float32"):
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


@pytest.mark.parametrize("name", ["points.npy", "points.csv", "points.parquet"])
def test_reading_ends_with_the_time(name, tmp_path):
    path, X = tmp_path / name, np.arange(12.0).reshape(4, 3)
    if name.endswith("npy"):
        np.save(path, X)
    elif name.endswith("csv"):
        np.savetxt(path, X, delimiter=",")
    else:
        arrow, parquet = (
            pytest.importorskip(f"pyarrow{part}") for part in ("", ".parquet")
        )
        parquet.write_table(
            arrow.table({f"x{i}": column for i, column in enumerate(X.T)}), path
        )
    assert open_table(path, until=time.monotonic() + 1e9).rows == 4
    with pytest.raises(DataError, match="the time ended before all of it was read"):
        open_table(path, until=0.0)
