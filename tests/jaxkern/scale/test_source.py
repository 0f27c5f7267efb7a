"""Rows on storage: the rows of one array, whatever the files; what is read, and what is refused."""

import shutil
import sys

import house
import jax
import numpy as np
import pytest
from house import FEATURES, close
from support.numerics import Identity

from jaxkern import features, regression, scale
from jaxkern.scale import _source

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

X = house.data().X
N = len(X)
NAMES = ["a", "b", "c"]
KINDS = ("npy", "parquet")
PHI = Identity(house.rng().normal(size=(3, FEATURES)).astype(np.float32))


def write_parquet(path, rows, names=NAMES):
    columns = {name: rows[:, i] for i, name in enumerate(names)}
    parquet.write_table(pa.table(columns), path, row_group_size=7)


WRITE = {"npy": np.save, "parquet": write_parquet}


@pytest.fixture
def folders(tmp_path):
    """Return folders of shards, one of them empty and one of a single row, and a file that is passed over."""
    paths = {kind: tmp_path / kind for kind in KINDS}
    for kind, folder in paths.items():
        folder.mkdir()
        (folder / "_SUCCESS").write_text("")
        for number, rows in enumerate(np.split(X, [10, 10, 11])):
            WRITE[kind](folder / f"part-{number}.{kind}", rows)
    return paths


@pytest.fixture
def small_batches(monkeypatch):
    """Decode four rows at once and keep two places: as they are, all 24 rows are one batch, and 64 places are kept."""
    monkeypatch.setattr(_source, "_BATCH_BYTES", 3 * 8 * 4)
    monkeypatch.setattr(_source, "_OPEN", 2)


@pytest.mark.parametrize("kind", KINDS)
def test_slices_are_those_of_the_array(folders, tmp_path, small_batches, kind):
    file = tmp_path / f"all.{kind}"
    WRITE[kind](file, X)
    cuts = [(0, N), (10, 11), (N, N), (5, 2), (-3, None), (None, 200)]
    cuts += np.sort(house.rng().integers(0, N + 1, (30, 2))).tolist()
    for path in (folders[kind], str(file)):
        rows = scale.open_rows(path)
        assert rows.shape == X.shape
        assert rows.dtype == X.dtype
        assert len(rows) == N
        for start, stop in cuts:
            close(rows[start:stop], X[start:stop])
        for index in (3, slice(0, 9, 2), [1, 2]):
            with pytest.raises(ValueError, match="are read as"):
                rows[index]


def test_columns_and_values_are_converted_as_they_are_read(folders, tmp_path):
    rows = scale.open_rows(folders["parquet"], columns=["c", "a"], dtype="float64")
    assert rows.dtype == np.float64
    close(rows[3:20], X[3:20, [2, 0]])
    integers = np.int32(X)
    write_parquet(tmp_path / "integers.parquet", integers)
    rows = scale.open_rows(tmp_path / "integers.parquet", dtype=np.float32)
    close(rows[:], integers)


@pytest.mark.parametrize("kind", KINDS)
def test_every_function_takes_them_and_gives_the_same_bits(folders, kind):
    key = house.key()
    pca = features.streaming_pca(PHI, sketch_size=2)
    ridge = regression.streaming_ridge(PHI, num_outputs=3)

    def results(points):
        return [
            scale.embed(PHI, points, block_size=5),
            scale.stream(pca, points, num_streams=4, block_size=2),
            scale.stream(ridge, points, y=points, num_streams=4, block_size=2),
            scale.kmeans(key, points, FEATURES, report=print),
            scale.landmarks(key, points, num_landmarks=4),
            scale.landmarks(key, points, num_landmarks=4, weights=np.ones(N)),
        ]

    stored = results(scale.open_rows(folders[kind]))
    assert jax.tree.all(jax.tree.map(np.array_equal, stored, results(X)))


def test_streams_side_by_side_decode_each_row_once(folders, small_batches, monkeypatch):
    """What is decoded shows in a private method alone: a reader that decodes too much gives the same rows."""
    counts = []
    decode = _source._Parquet._next

    def note(shard, batches):
        batch = decode(shard, batches)
        counts.append(batch.num_rows)
        return batch

    monkeypatch.setattr(_source._Parquet, "_next", note)
    pca = features.streaming_pca(PHI, sketch_size=2)
    rows = scale.open_rows(folders["parquet"])
    scale.stream(pca, rows, num_streams=2, block_size=2)
    assert max(counts) <= 4
    # No more than a row group again for each of two streams.
    assert N <= sum(counts) <= N + 2 * 7


NULLS = {"a": [1.0, 2.0], "b": [1.0, None], "c": [1.0, 2.0]}
BAD_SHARDS = [
    ("part-2.parquet: column 'b' holds nulls", NULLS),
    ("'b' must hold numbers, got string", {"a": [1.0], "b": ["x"], "c": [True]}),
    (r"the columns of .*part-0.parquet, .*'c'\], got", {"b": [1], "a": [1], "c": [1]}),
    ("the dtype of .*, float32, got float64", {"a": [1.0], "b": [1.0], "c": [1.0]}),
]


@pytest.mark.parametrize(("message", "columns"), BAD_SHARDS)
def test_a_shard_that_does_not_fit_is_named(folders, message, columns):
    parquet.write_table(pa.table(columns), folders["parquet"] / "part-2.parquet")
    with pytest.raises(ValueError, match=message):
        scale.open_rows(folders["parquet"])


def test_what_cannot_be_read_is_named(folders, tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    tables = folders["parquet"]
    mixed = shutil.copytree(tables, tmp_path / "mixed")
    np.save(mixed / "part-2.npy", X)
    wide = shutil.copytree(folders["npy"], tmp_path / "wide")
    np.save(wide / "part-3.npy", X[:, :2])
    for kind in KINDS:
        (tmp_path / f"broken.{kind}").write_bytes(b"PAR1")
    vector = tmp_path / "vector.npy"
    np.save(vector, X[:, 0])
    refused = [
        ("folder with some", tmp_path / "none", {}),
        ("folder with some", tmp_path / "absent.npy", {}),
        ("folder with some", tables / "_SUCCESS", {}),
        ("shards of one kind", mixed, {}),
        ("part-3.npy must have the columns of", wide, {}),
        ("broken.npy cannot be read", tmp_path / "broken.npy", {}),
        ("broken.parquet cannot be read", tmp_path / "broken.parquet", {}),
        ("vector.npy must be a matrix of numbers", vector, {}),
        ("one column 'd', got", tables, {"columns": ["a", "d"]}),
        ("different names", tables, {"columns": ["a", "a"]}),
        ("None for .npy", folders["npy"], {"columns": ["a"]}),
        ("float32 or float64, got int32", tables, {"dtype": "int32"}),
    ]
    for message, path, options in refused:
        with pytest.raises(ValueError, match=message):
            scale.open_rows(path, **options)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"jaxkern-verified\[check\]"):
        scale.open_rows(tables)


def test_nulls_without_statistics_are_found_when_they_are_read(tmp_path):
    path = tmp_path / "silent.parquet"
    parquet.write_table(pa.table(NULLS), path, write_statistics=False)
    with pytest.raises(ValueError, match="column 'b' holds nulls"):
        scale.open_rows(path)[:]
    close(scale.open_rows(path, columns=["c", "a"])[:], [[1, 1], [2, 2]])


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_with_another_table_is_refused(folders, tmp_path, kind):
    """Also if the first and last row are the same: here a shard in the middle is another one."""
    shape = (N, FEATURES)
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, shape)

    def embed(folder):
        progress = {"out": out, "progress": tmp_path / "progress"}
        scale.embed(PHI, scale.open_rows(folder), block_size=5, **progress)

    embed(folders[kind])
    moved = shutil.copytree(folders[kind], tmp_path / "moved")
    embed(moved)
    WRITE[kind](moved / f"part-2.{kind}", X[10:11] + 1)
    with pytest.raises(ValueError, match="belongs to another run: fingerprint of X is"):
        embed(moved)
