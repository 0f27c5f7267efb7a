"""Tables of users: what is read, what is left out and named, and what is refused with one line."""

import gzip
import subprocess
import sys
import tomllib
import zipfile
from functools import partial
from itertools import cycle, islice
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas
import polars
import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest
from support.odd_files import archive, declared, one_line, patched, write

from jaxkern import io
from jaxkern.features import paired_fourier
from jaxkern.kernels import Gaussian
from proofs_check.certify import from_array, open_table, rows_for
from proofs_check.certify.load import DataError, moments_of
from proofs_check.certify.load import files as load_files
from proofs_check.certify.load import table as load_table

ROOT = Path(__file__).resolve().parents[2]
CASES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text("utf-8"))
N = 24
CELLS = CASES["columns"]


def refused(call, *words):
    return one_line(call, DataError, *words)


def points_of(table):
    return table.take(np.arange(table.rows), "float64")


def cells_of(column):
    if isinstance(column, int):
        return range(column, column + N)
    if isinstance(column, str):
        return CELLS[column]
    return list(islice(cycle(column), N))


def text_of(case):
    if "text" in case:
        return case["text"]
    columns = [cells_of(column) for column in case["columns"].values()]
    rows = [case["columns"], *zip(*columns, strict=True)]
    return "\n".join(",".join(map(str, row)) for row in rows) + "\n"


@pytest.mark.parametrize("case", CASES["read"].values(), ids=CASES["read"])
def test_a_file_is_read(tmp_path, case):
    path = write(tmp_path / "x.csv", text_of(case))
    table = open_table(path, **case.get("options", {}))
    assert list(table.names) == case["names"]
    assert table.take([0], "float64").tolist() == [case["first"]]
    notes = "\n".join(table.notes)
    for words in case.get("notes", []):
        assert words in notes
    assert bool(notes) == ("notes" in case)
    assert {*table.columns} == {*table.names, *table.left_out}


@pytest.mark.parametrize("case", CASES["refused"].values(), ids=CASES["refused"])
def test_a_file_is_refused_in_one_line(tmp_path, case):
    path = write(tmp_path / "x.csv", text_of(case))
    refused(lambda: open_table(path, **case.get("options", {})), *case["words"])


ODD_FILES = [
    ("x.npy", declared((10**6, 10)), "it declares 80,000,000 bytes of numbers and"),
    ("x.npy", declared((0, 3)), "0 row(s)"),
    ("x.npz", b"PK\x05\x06" + bytes(18), "holds no array named X, but nothing"),
    ("x.csv", "größe,b\n1,2\n".encode("latin-1"), "is not plain text in UTF-8"),
    ("x.csv", 'a,b\n"3' + ",4\n" * 100_000, "is a quotation mark missing"),
    ("x.csv.gz", b"\x1f\x8b\x08" + bytes(60), "cannot be read"),
    ("x.npy.gz", gzip.compress(b"1,2", mtime=0), "unknown kind of file '.gz'"),
    ("x.xlsx", "1,2\n3,4\n", "unknown kind of file '.xlsx'"),
]


@pytest.mark.parametrize(("name", "content", "words"), ODD_FILES)
def test_a_file_that_is_no_table_is_refused_in_one_line(tmp_path, name, content, words):
    path = write(tmp_path / name, content)
    refused(lambda: open_table(path), words, name)
    refused(lambda: open_table("a\nb.csv"), "a\ufffdb.csv: no such file")


def test_an_archive_that_would_unpack_to_far_more_than_its_length_is_refused(tmp_path):
    zeros = declared((2**26, 8), content=bytes(2**16))
    path = archive(tmp_path / "x.npz", [("X.npy", zeros)], zipfile.ZIP_DEFLATED)
    # The directory of the archive claims what the array claims: 4 GiB minus a little from some kilobytes.
    patched(path, 24, (2**32 - 2).to_bytes(4, "little"))
    refused(lambda: open_table(path), "declares 4,294,967,294 bytes of numbers")


@pytest.mark.parametrize("name", ["x.csv", "x.parquet"])
def test_a_table_that_takes_too_much_memory_is_refused(tmp_path, monkeypatch, name):
    path = tmp_path / name
    if name.endswith("parquet"):
        parquet.write_table(arrow.table({"a": np.arange(1e5)}), path)
    else:
        write(path, "a\n" + "".join(f"{i}\n" for i in range(10**5)))
    monkeypatch.setattr(load_files, "memory", lambda: 2 * 10**6)
    refused(lambda: open_table(path), "takes more than a quarter of the memory")


def test_options_of_text_are_refused_elsewhere(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    parquet.write_table(arrow.table({"a": CELLS["A"]}), path)
    refused(lambda: open_table(path, header="no"), "header are for files of text")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(lambda: open_table(path), "pyarrow")


# Frames and matrices


def frame_of(kind, folder):
    """Return a table of several types as a frame, and the same as a function of options."""
    words = cells_of(["NO", "SE", "DK", "FI"])
    words[4] = None
    numbers = np.arange(N)
    columns = {
        "day": numbers.astype("datetime64[D]"),
        "c": arrow.array(words).dictionary_encode(),
        "list": [[1.0]] * N,
        "n": numbers[::-1] ** 2,
        "bytes": [b"1"] * N,
        "flag": (numbers % 3 != 1).tolist(),
        "a": [None, *CELLS["A"][1:]],
    }
    frame = arrow.table(columns)
    if kind == "parquet":
        parquet.write_table(frame, folder / "x.parquet", row_group_size=7)
        return partial(open_table, folder / "x.parquet")
    if kind == "pandas":
        frame = frame.to_pandas()
    if kind == "polars":
        words = polars.Enum(["z", "SE", "NO", "DK", "FI"])
        frame = polars.from_arrow(frame).cast({"c": words})
    return partial(from_array, frame)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "parquet"])
def test_a_frame_is_read_as_a_file(tmp_path, kind):
    read = frame_of(kind, tmp_path)
    refused(read, "1 of 24 rows", "('a': 1); pass --missing drop")
    table = read(missing="drop")
    assert table.names == ("n", "flag", "a")
    assert points_of(table)[0].tolist() == [22**2, 0, CELLS["A"][1]]
    assert {*table.left_out} == {"day", "c", "list", "bytes"}
    assert table.left_out["day"] == "dates"
    assert "binary" in table.left_out["bytes"]
    labels = read(columns=["n"], missing="drop", labels="c")
    assert labels.label_names == ("DK", "FI", "NO", "SE")
    assert labels.labels[:5].tolist() == [2, 3, 0, 1, 3]
    encoded = read(columns=["c", "n"], missing="drop", one_hot=True)
    assert encoded.names == ("c=DK", "c=FI", "c=NO", "c=SE", "n")
    assert points_of(encoded)[4].tolist() == [0, 0, 0, 1, 18**2]


def test_objects_of_several_types_are_text():
    frame = pandas.DataFrame({"a": [1, "2.5", None, 4], "b": [1, 2, 4, 7]})
    table = from_array(frame, missing="drop")
    assert points_of(table).tolist() == [[1, 1], [2.5, 2], [4, 7]]
    frame["a"] = [1, "5%", 3, 4]
    refused(lambda: from_array(frame), "X: column 'a' holds 1 cells", "exclude=['NAME'")


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
        table = open_table(path, one_hot=True)
    else:
        write(path, gzip.compress(text) if "gz" in name else text)
        table = open_table(path, header="no")
    assert (table.rows, table.dim, table.names) == (50, 3, ("x1", "x2", "x3"))
    assert np.array_equal(points_of(table), X.astype(np.float64))
    assert table.labels is None
    assert table.label_names == table.categories == ()
    assert [table.mean.tolist(), table.scale.tolist()] == [[0] * 3, [1] * 3]
    assert (table.duplicate_rows, table.notes, table.left_out) == (0, [], {})


@pytest.mark.parametrize(
    "dtype", [bool, np.uint8, np.uint64, np.float16, ">f4", np.longdouble]
)
def test_every_real_type_is_a_table(dtype):
    table = from_array(np.array([[0, 1], [1, 0], [1, 1]]).astype(dtype))
    assert table.take([0], "float32").dtype == np.float32
    assert points_of(table).tolist() == [[0, 1], [1, 0], [1, 1]]


@pytest.mark.parametrize("case", CASES["arrays"])
def test_an_array_that_is_no_table_is_refused(case):
    X = np.array(case["cells"], case.get("dtype"))
    refused(lambda: from_array(X), "X: ", case["words"])
    refused(lambda: from_array(np.zeros((2, 10**5))), "too wide")
    refused(lambda: from_array(np.eye(3), names=["a"]), "3 column(s), but 1 name(s)")


# Labels


@pytest.mark.parametrize("case", CASES["labels"])
def test_a_column_of_labels_is_classes(tmp_path, case):
    columns = {"k": case["cells"], "a": "A"}
    path = write(tmp_path / "x.csv", text_of({"columns": columns}))
    options = case.get("options", {})
    table = open_table(path, labels="1", missing="drop", **options)
    assert list(table.label_names) == case["names"]
    assert table.labels.dtype == np.int32
    assert table.labels[:3].tolist() == case["first"]
    assert table.left_out == {"k": "holds the labels"}
    for words in case.get("notes", []):
        assert words in table.notes[-1]
    if table.rows < N:
        refused(lambda: open_table(path, labels="k", **options), "('the labels': ")


def test_a_vector_of_labels_is_classes(tmp_path, rng):
    X = rng.normal(size=(60, 3))
    X[:, 2] = np.arange(60) % 3
    assert from_array(X, labels="3").label_names == ("0", "1", "2")
    words = np.array(["u", None, "v"] * 20, object)
    table = from_array(X, labels=words, missing="drop")
    assert (table.label_names, table.rows) == (("u", "v"), 40)
    many = from_array(X, labels=np.array([b"u", b"v"] * 30))
    assert many.label_names == ("u", "v")
    many = from_array(X, labels=np.arange(60) / 7)
    assert "are they classes?" in many.notes[-1]
    refused(lambda: from_array(X, labels=np.arange(59)), "have shape (59,), and X has")
    with pytest.raises(ValueError, match="complex"):
        from_array(X, labels=np.ones(60) * 1j)
    path = tmp_path / "x.npz"
    y = np.arange(60) % 2 + 5
    other = np.array(["p", "q", "r"] * 20)
    np.savez(path, X=X, y=y, other=other)
    assert open_table(path).label_names == ("5", "6")
    assert open_table(path, labels="other").label_names == ("p", "q", "r")
    assert open_table(path, labels="2").dim == 2
    np.savez(path, X=X, y=X)
    (note,) = open_table(path, columns=["1-2"]).notes
    assert note.startswith("The array y is not used as labels")


# Rows


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_columns_are_standardised_in_double_precision_across_blocks(
    rng, monkeypatch, offset
):
    monkeypatch.setattr(load_table, "CELLS", 3 * 64)  # 64 rows a block
    noise = rng.normal(size=(1000, 3)) * [1, 10, 0.1]
    X = np.concatenate([noise, noise + 3]) + offset
    table = from_array(X, standardize=True)
    # The spacing of doubles near the offset is what is lost, and nothing more.
    lost = np.spacing(offset) + 1e-13
    assert np.allclose(table.mean - offset, (X - offset).mean(axis=0), atol=1e-6)
    assert np.allclose(table.scale, (X - offset).std(axis=0), rtol=1e3 * lost)
    points = points_of(table)
    assert np.abs(points.mean(axis=0)).max() < 1e-5
    assert np.allclose(points.std(axis=0), 1, rtol=1e-5)
    # The cast to single precision comes after that.
    single = table.take(range(table.rows), "float32")
    assert np.array_equal(single, points.astype(np.float32))
    # Two neighbouring doubles are no constant.
    X[:, 0] = 1e9
    X[500, 0] = np.nextafter(1e9, 2e9)
    assert from_array(X, standardize=True).scale[0] > 0


@pytest.mark.parametrize("standardize", [False, True])
def test_rows_come_in_the_order_asked_for(rng, monkeypatch, standardize):
    monkeypatch.setattr(load_table, "CELLS", 40)
    X = rng.normal(size=(101, 4))
    X[7, 2] = -np.inf
    X[[50, 51], [0, 3]] = np.nan
    table = from_array(X, columns=["4", "1-2"], missing="drop", standardize=standardize)
    clean = np.delete(X, [50, 51], axis=0)[:, [0, 1, 3]]
    assert np.allclose(table.mean, clean.mean(axis=0) * standardize)
    expected = (clean - table.mean) / table.scale
    indices = np.array([98, 0, 7, 7, 51, 3] * 5)
    assert np.array_equal(table.take(indices, "float64"), expected[indices])
    assert np.array_equal(table.take([5], "float64", raw=True), clean[[5]])
    assert table.take([], "float32").shape == (0, 3)
    part = table.part(np.array([60, 2]))
    assert np.array_equal(points_of(part), expected[[60, 2]])
    assert np.allclose(moments_of(part.view).mean, clean[[60, 2]].mean(axis=0))
    for wrong in ([99], [-1], [[0]], [0.5]):
        with pytest.raises(ValueError, match="indices must be"):
            table.take(wrong, "float64")


def test_rows_of_a_key_are_distinct_sorted_and_a_function_of_the_key():
    key = jax.random.key(0)
    for num_rows, count in ((10, 3), (20_000, 15_000), (10**12, 1000)):
        rows = rows_for(key, num_rows, count)
        assert (rows.dtype, len(rows)) == (np.int64, count)
        assert np.all(np.diff(rows) > 0)
        assert 0 <= rows[0] <= rows[-1] < num_rows
        assert np.array_equal(rows, rows_for(jax.random.key(0), num_rows, count))
        assert not np.array_equal(rows, rows_for(jax.random.key(1), num_rows, count))
    assert np.array_equal(rows_for(key, 7, 7), np.arange(7))
    with pytest.raises(ValueError, match="number of rows"):
        rows_for(key, 7, 8)
    # 3,000 draws of 3 out of 10: each row is there 900 times, with standard deviation 25. A bound of 5 of them fails
    # for some row with probability below 1e-5.
    keys = jax.random.split(jax.random.key(5), 3000)
    rows = np.concatenate([rows_for(key, 10, 3) for key in keys])
    times = np.bincount(rows, minlength=10)
    assert np.abs(times - 900).max() < 5 * np.sqrt(3000 * 0.3 * 0.7)


def test_duplicate_rows_are_counted(rng, monkeypatch):
    monkeypatch.setattr(load_table, "CELLS", 200)
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
    hashes = np.sort(load_table.hashes_of(block))
    assert np.all(hashes[1:] > hashes[:-1])


def test_scales_offsets_and_outliers_are_said(rng):
    X = rng.normal(size=(10_000, 3))
    scaled = X * [1, 5000, 20]
    assert from_array(X).notes == []
    (note,) = from_array(scaled, names=["age", "pay", "size"]).notes
    assert "of column 'pay' is" in note
    assert "that of 'age', so that" in note
    assert from_array(scaled, standardize=True).notes == []
    large = from_array(X * 1e40)
    refused(lambda: large.take([0], "float32"), "do not fit into float32")
    X[[3, 4], 1] = 1e4
    (note,) = from_array(X, standardize=True).notes
    assert note.endswith("deviations from the mean of their column: 'x2'.")


def test_the_map_of_a_table_takes_its_text(tmp_path):
    frame = pandas.DataFrame({"c": cells_of(["b", "a", "c"]), "a": CELLS["A"]})
    frame.to_csv(tmp_path / "x.csv", index=False)
    table = open_table(tmp_path / "x.csv", one_hot=True)
    assert table.categories == (("c", ("a", "b", "c")),)
    assert table.layouts == ((0, 1, 2, 3),)
    points = points_of(table)
    inner = paired_fourier(jax.random.key(0), Gaussian(1.0), 4, num_frequencies=4)
    phi = table.attach(inner)
    io.save(tmp_path / "map.npz", phi)
    Z = np.asarray(phi(points))
    for loaded in (phi, io.load(tmp_path / "map.npz")):
        np.testing.assert_allclose(loaded(frame), Z, atol=1e-6)
    with pytest.raises(ValueError, match="'c' holds 'd', which was not in the table"):
        phi(frame.assign(c="d"))


MEASURE = """
import sys
import numpy as np
from proofs_check.certify import open_table
from proofs_check.certify.load import table as load_table

sizes = []

def look():
    # The allocator of NumPy gives large arrays back at once, so the peak is looked for between the steps.
    with open("/proc/self/status") as lines:
        sizes.extend(int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon"))

look()
hashes, transposed = load_table.hashes_of, load_table.View.transposed
load_table.hashes_of = lambda block: (look(), hashes(block))[1]
load_table.View.transposed = lambda view: (look() or block for block in transposed(view))
table = open_table(sys.argv[1], standardize=True)
for start in range(0, table.rows, 50_000):
    table.take(range(start, min(start + 50_000, table.rows)), "float32")
    look()
print(table.rows, table.dim, table.duplicate_rows, max(sizes) - sizes[0])
"""


@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is measured on Linux"
)
def test_a_mapped_table_is_not_read_into_memory(tmp_path, rng):
    """80 MB of noise and two twins on disk, 160 MB as float64. Blocks take a few times 8 MiB, hashes 8 MB twice."""
    X = rng.standard_normal((1_000_000, 20), dtype=np.float32)
    X[-1] = X[7] = X[0]
    np.save(tmp_path / "x.npy", X)
    command = [sys.executable, "-c", MEASURE, tmp_path / "x.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    *shape, mebibytes = done.stdout.split()
    assert shape == ["1000000", "20", "2"]
    assert float(mebibytes) < 48
