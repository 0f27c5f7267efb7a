"""Rows on storage: the rows of one array, whatever the files; what is read, and what is refused."""

import json
import logging
import shutil
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features, regression, scale
from jaxkern.kernels import Gaussian
from jaxkern.scale import _resume, _source

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

N, NAMES = 103, ["a", "b", "c"]
CUTS = [(0, 40), (40, 40), (40, 41), (41, N)]


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, 3)).astype(np.float32)


def write(path, rows, names=NAMES, **options):
    columns = {name: rows[:, i] for i, name in enumerate(names)}
    parquet.write_table(pa.table(columns), path, **{"row_group_size": 7} | options)


@pytest.fixture
def folders(X, tmp_path):
    """Return folders of shards, one of them empty and one of a single row, and what shall be passed over."""
    made = tmp_path / "npy", tmp_path / "parquet"
    for folder in made:
        folder.mkdir()
        (folder / "_SUCCESS").write_text("")
    for i, (start, stop) in enumerate(CUTS):
        np.save(made[0] / f"part-{i}.npy", X[start:stop])
        write(made[1] / f"part-{i}.parquet", X[start:stop])
    return made


@pytest.fixture
def phi(X):
    return features.nystrom(Gaussian(1.0), jnp.asarray(X[:5]))


def test_slices_are_those_of_the_array(X, folders, tmp_path, rng, monkeypatch):
    monkeypatch.setattr(_source, "_BATCH_BYTES", 3 * 8 * 4)  # four rows
    monkeypatch.setattr(_source, "_OPEN", 2)
    np.save(tmp_path / "all.npy", X)
    write(tmp_path / "all.parquet", X)
    for path in (*folders, str(tmp_path / "all.npy"), tmp_path / "all.parquet"):
        rows = scale.open_rows(path)
        assert (rows.shape, rows.dtype, len(rows)) == (X.shape, X.dtype, N)
        cuts = [(0, N), (40, 41), (N, N), (5, 2), (-3, None), (None, 200)]
        for start, stop in cuts + [
            tuple(sorted(rng.integers(0, N + 1, 2))) for _ in range(30)
        ]:
            assert np.array_equal(rows[start:stop], X[start:stop])
        for wrong in (3, slice(0, 9, 2), [1, 2]):
            with pytest.raises(ValueError, match="are read as"):
                rows[wrong]
    some = scale.open_rows(folders[1], columns=["c", "a"], dtype="float64")
    assert (
        np.array_equal(some[30:50], X[30:50, [2, 0]].astype(np.float64))
        and some.dtype == np.float64
    )
    write(tmp_path / "whole.parquet", np.arange(6).reshape(2, 3))
    assert scale.open_rows(tmp_path / "whole.parquet", dtype=np.float32)[
        :
    ].tolist() == [[0, 1, 2], [3, 4, 5]]


def test_every_function_takes_them_and_gives_the_same_bits(X, folders, phi):
    pca, ridge = (
        features.streaming_pca(phi, sketch_size=3),
        regression.streaming_ridge(phi, num_outputs=3),
    )
    for folder in folders:
        rows = scale.open_rows(folder)
        assert np.array_equal(
            scale.embed(phi, rows, block_size=20), scale.embed(phi, X, block_size=20)
        )
        sizes = {"num_streams": 4, "block_size": 6}
        pairs = [(scale.kmeans(jax.random.key(0), x, 4) for x in (rows, X))]
        pairs += [(scale.stream(pca, x, **sizes) for x in (rows, X))]
        pairs += [(scale.stream(ridge, x, y=x, **sizes) for x in (rows, X))]
        for method in ("uniform", "kmeans||"):
            pairs += [
                (
                    scale.landmarks(
                        jax.random.key(0), x, num_landmarks=4, method=method
                    )
                    for x in (rows, X)
                )
            ]
        for found, expected in pairs:
            assert jax.tree.all(
                jax.tree.map(lambda a, b: np.array_equal(a, b), found, expected)
            )


def test_streams_side_by_side_decode_each_row_once_and_little_is_held(
    X, folders, phi, monkeypatch
):
    monkeypatch.setattr(_source, "_BATCH_BYTES", 3 * 8 * 4)
    decoded, take = [], _source._Parquet._next
    monkeypatch.setattr(
        _source._Parquet,
        "_next",
        lambda *args: (decoded.append(take(*args)), decoded[-1])[1],
        raising=True,
    )
    scale.stream(
        features.streaming_pca(phi, sketch_size=3),
        scale.open_rows(folders[1]),
        num_streams=4,
        block_size=5,
    )
    assert max(batch.num_rows for batch in decoded) <= 4
    # No more than a row group again for each of four streams, and for the shapes of none.
    assert N <= sum(batch.num_rows for batch in decoded) <= N + 4 * 7


def test_what_cannot_be_read_is_named(X, folders, tmp_path, monkeypatch):
    def shard(name, make):
        folder = tmp_path / name
        shutil.copytree(folders[1], folder)
        make(folder / "part-2.parquet")
        return folder

    nulls = pa.table({"a": [1.0, 2.0], "b": [1.0, None], "c": [1.0, 2.0]})
    words = pa.table({"a": [1.0], "b": ["x"], "c": [True]})
    (tmp_path / "none").mkdir()
    (tmp_path / "broken.npy").write_bytes(b"no array")
    np.save(tmp_path / "vector.npy", X[:, 0])
    shutil.copytree(folders[0], tmp_path / "narrow")
    np.save(tmp_path / "narrow" / "part-3.npy", X[41:, :2])
    cases = {
        r"part-2.parquet: column 'b' holds nulls": lambda p: parquet.write_table(
            nulls, p
        ),
        r"part-2.parquet: column 'b' must hold numbers, got string": lambda p: (
            parquet.write_table(words, p)
        ),
        r"part-2.parquet must have the columns of .*part-0.parquet, .*'c'\], got": lambda p: (
            write(p, X, ["b", "a", "c"])
        ),
        r"part-2.parquet must have the dtype of .*, float32, got float64": lambda p: (
            write(p, X.astype(np.float64))
        ),
        r"part-2.parquet cannot be read": lambda p: p.write_bytes(b"PAR1"),
        "shards of one kind": lambda p: np.save(p.with_suffix(".npy"), X),
    }
    for i, (message, make) in enumerate(cases.items()):
        folder = shard(str(i), make)
        with pytest.raises(ValueError, match=message):
            scale.open_rows(folder)
    for message, path, options in (
        ("folder with some", tmp_path / "none", {}),
        ("folder with some", tmp_path / "absent.npy", {}),
        ("folder with some", folders[0] / "_SUCCESS", {}),
        ("broken.npy cannot be read", tmp_path / "broken.npy", {}),
        ("vector.npy must be a matrix of numbers", tmp_path / "vector.npy", {}),
        ("part-3.npy must have the columns of", tmp_path / "narrow", {}),
        ("one column 'd', got", folders[1], {"columns": ["a", "d"]}),
        ("different names", folders[1], {"columns": ["a", "a"]}),
        ("None for .npy", folders[0], {"columns": ["a"]}),
        ("float32 or float64, got int32", folders[1], {"dtype": "int32"}),
    ):
        with pytest.raises(ValueError, match=message):
            scale.open_rows(path, **options)
    parquet.write_table(nulls, tmp_path / "silent.parquet", write_statistics=False)
    with pytest.raises(ValueError, match="column 'b' holds nulls"):
        scale.open_rows(tmp_path / "silent.parquet")[:]
    assert scale.open_rows(tmp_path / "silent.parquet", columns=["c", "a"])[
        :
    ].tolist() == [[1, 1], [2, 2]]
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"jaxkern-verified\[check\]"):
        scale.open_rows(folders[1])


@pytest.mark.parametrize("kind", [0, 1])
def test_going_on_with_another_table_is_refused(X, folders, phi, tmp_path, kind):
    """Also where the first and last row are the same: here a shard in the middle is another one."""
    folder, record = folders[kind], tmp_path / "progress"
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", np.float32, (N, 5))
    scale.embed(phi, scale.open_rows(folder), block_size=20, out=out, progress=record)
    moved = shutil.copytree(folder, tmp_path / "moved")
    scale.embed(phi, scale.open_rows(moved), block_size=20, out=out, progress=record)
    other = X[40:41] + 1
    np.save(moved / "part-2.npy", other) if kind == 0 else write(
        moved / "part-2.parquet", other
    )
    with pytest.raises(ValueError, match="belongs to another run: fingerprint of X is"):
        scale.embed(
            phi, scale.open_rows(moved), block_size=20, out=out, progress=record
        )


def test_the_records_of_all_processes_are_read(tmp_path, rng):
    """Three processes had begun; two go on with other rows; a block that was changed counts for nothing."""
    out, run, path = rng.normal(size=(90, 2)), {"map": "m"}, tmp_path / "run"
    for process, start in enumerate((0, 30, 60)):
        with _resume.Record(path, run, process) as record:
            for at in range(start, start + 10 * (process + 1), 10):
                record.add(at, out[at : at + 10])
    left = {}
    for process, rows in enumerate((slice(0, 45), slice(45, 90))):
        with _resume.Record(path, run, process) as record:
            left[process] = [(part.start, part.stop) for part in record.left(rows, out)]
    assert left == {0: [(10, 30)], 1: [(50, 60)]}
    out[35] += 1
    with _resume.Record(path, run, None) as record:
        assert [(part.start, part.stop) for part in record.left(slice(0, 90), out)] == [
            (10, 40),
            (50, 60),
        ]
    assert json.loads((tmp_path / "run.2").read_bytes().splitlines()[1])[:2] == [60, 70]
    with pytest.raises(
        ValueError,
        match=r"run belongs to another run: map is 'n', there 'm'\. Go on as there",
    ):
        _resume.Record(path, {"map": "n"}, 5)
    assert not (tmp_path / "run.5").exists()


def test_a_log_tells_how_far_a_run_is_and_is_silent_otherwise(
    X, phi, monkeypatch, caplog
):
    scale.embed(phi, X, block_size=50)
    with caplog.at_level(logging.INFO, "jaxkern.scale"):
        scale.embed(phi, X, block_size=50)
        assert caplog.messages == []  # before ten seconds are over
        monkeypatch.setattr(_resume, "SECONDS", 0.0)
        scale.embed(phi, X, block_size=50)
    assert caplog.messages == [
        f"embed: {done} of {N}, process 0" for done in (50, 100, N)
    ]
