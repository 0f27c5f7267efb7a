"""Rows on storage: the rows of one array, whatever the files; what is read, and what is refused."""

import shutil
import sys

import house
import jax
import numpy as np
import pytest
from support.numerics import Identity

from jaxkern import features, regression, scale
from jaxkern.scale import _source

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

X = house.data().X
N = len(X)
NAMES = ["a", "b", "c"]
KINDS = ("npy", "parquet")
PHI = Identity(house.rng().normal(size=(3, house.FEATURES)).astype(np.float32))


def write_npy(path, rows):
    np.save(path, rows)


def write_parquet(path, rows, names=NAMES):
    columns = {name: rows[:, i] for i, name in enumerate(names)}
    parquet.write_table(pa.table(columns), path, row_group_size=7)


WRITE = {"npy": write_npy, "parquet": write_parquet}


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
@pytest.mark.parametrize("many", [True, False], ids=["folder", "file"])
def test_slices_are_those_of_the_array(folders, tmp_path, small_batches, kind, many):
    path = folders[kind] if many else tmp_path / f"all.{kind}"
    if not many:
        WRITE[kind](path, X)
    rows = scale.open_rows(str(path))
    assert rows.shape == X.shape
    assert rows.dtype == X.dtype
    assert len(rows) == N
    cuts = [(0, N), (10, 11), (N, N), (5, 2), (-3, None), (None, 200)]
    cuts += np.sort(house.rng().integers(0, N + 1, (30, 2))).tolist()
    for start, stop in cuts:
        np.testing.assert_array_equal(rows[start:stop], X[start:stop])
    for index in (3, slice(0, 9, 2), [1, 2]):
        with pytest.raises(ValueError, match="are read as"):
            rows[index]


def test_columns_and_values_are_converted_as_they_are_read(folders, tmp_path):
    rows = scale.open_rows(folders["parquet"], columns=["c", "a"], dtype="float64")
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows[3:20], X[3:20, [2, 0]])
    integers = np.arange(6).reshape(2, 3)
    write_parquet(tmp_path / "integers.parquet", integers)
    rows = scale.open_rows(tmp_path / "integers.parquet", dtype=np.float32)
    np.testing.assert_array_equal(rows[:], integers)


@pytest.mark.parametrize("kind", KINDS)
def test_every_function_takes_them_and_gives_the_same_bits(folders, kind):
    rows = scale.open_rows(folders[kind])
    pca = features.streaming_pca(PHI, sketch_size=2)
    ridge = regression.streaming_ridge(PHI, num_outputs=3)
    weights = np.ones(N)

    def results(points):
        yield scale.embed(PHI, points, block_size=5)
        yield scale.stream(pca, points, num_streams=4, block_size=2)
        yield scale.stream(ridge, points, y=points, num_streams=4, block_size=2)
        yield scale.kmeans(
            house.key(), points, house.FEATURES, report=lambda done, total: None
        )
        yield scale.landmarks(house.key(), points, num_landmarks=4)
        yield scale.landmarks(house.key(), points, num_landmarks=4, weights=weights)

    for stored, held in zip(results(rows), results(X), strict=True):
        assert jax.tree.all(jax.tree.map(np.array_equal, stored, held))


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
WORDS = {"a": [1.0], "b": ["x"], "c": [True]}
BAD_SHARDS = {
    r"part-2.parquet: column 'b' holds nulls": lambda path: parquet.write_table(
        pa.table(NULLS), path
    ),
    r"part-2.parquet: column 'b' must hold numbers, got string": lambda path: (
        parquet.write_table(pa.table(WORDS), path)
    ),
    r"part-2.parquet must have the columns of .*part-0.parquet, .*'c'\], got": (
        lambda path: write_parquet(path, X, ["b", "a", "c"])
    ),
    r"part-2.parquet must have the dtype of .*, float32, got float64": (
        lambda path: write_parquet(path, np.float64(X))
    ),
    r"part-2.parquet cannot be read": lambda path: path.write_bytes(b"PAR1"),
    "shards of one kind": lambda path: np.save(path.with_suffix(".npy"), X),
}


@pytest.mark.parametrize("message", BAD_SHARDS)
def test_a_shard_that_does_not_fit_is_named(folders, message):
    BAD_SHARDS[message](folders["parquet"] / "part-2.parquet")
    with pytest.raises(ValueError, match=message):
        scale.open_rows(folders["parquet"])


def test_what_cannot_be_read_is_named(folders, tmp_path, monkeypatch):
    (tmp_path / "none").mkdir()
    (tmp_path / "broken.npy").write_bytes(b"no array")
    np.save(tmp_path / "vector.npy", X[:, 0])
    refused = [
        ("folder with some", tmp_path / "none", {}),
        ("folder with some", tmp_path / "absent.npy", {}),
        ("folder with some", folders["npy"] / "_SUCCESS", {}),
        ("broken.npy cannot be read", tmp_path / "broken.npy", {}),
        ("vector.npy must be a matrix of numbers", tmp_path / "vector.npy", {}),
        ("one column 'd', got", folders["parquet"], {"columns": ["a", "d"]}),
        ("different names", folders["parquet"], {"columns": ["a", "a"]}),
        ("None for .npy", folders["npy"], {"columns": ["a"]}),
        ("float32 or float64, got int32", folders["parquet"], {"dtype": "int32"}),
    ]
    for message, path, options in refused:
        with pytest.raises(ValueError, match=message):
            scale.open_rows(path, **options)
    np.save(folders["npy"] / "part-3.npy", X[11:, :2])
    with pytest.raises(ValueError, match=r"part-3.npy must have the columns of"):
        scale.open_rows(folders["npy"])
    silent = tmp_path / "silent.parquet"
    parquet.write_table(pa.table(NULLS), silent, write_statistics=False)
    with pytest.raises(ValueError, match="column 'b' holds nulls"):
        scale.open_rows(silent)[:]
    rows = scale.open_rows(silent, columns=["c", "a"])[:]
    np.testing.assert_array_equal(rows, [[1, 1], [2, 2]])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"jaxkern-verified\[check\]"):
        scale.open_rows(folders["parquet"])


@pytest.mark.parametrize("kind", KINDS)
def test_going_on_with_another_table_is_refused(folders, tmp_path, kind):
    """Also if the first and last row are the same: here a shard in the middle is another one."""
    shape = (N, house.FEATURES)
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
