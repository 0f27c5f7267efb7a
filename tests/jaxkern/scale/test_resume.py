"""Runs that are cut short go on where they stopped, end with the same bits, and never take up another run."""

import json
import logging
import math

import house
import jax
import numpy as np
import pytest
from house import FEATURES, close
from support.numerics import Identity, Read

from jaxkern import features, io, kmeans, scale
from jaxkern.scale import _resume

DATA = house.data()
N, DIM = DATA.X.shape
MATRIX = house.rng().normal(size=(DIM, FEATURES)).astype(np.float32)
PHI = Identity(MATRIX)  # a map for which nothing is compiled but its product
BLOCK = 5
STARTS = [0, 5, 10, 15, 20]


@pytest.fixture
def always_due(monkeypatch):
    """Keep every state and log every line, not those of every tenth second."""
    monkeypatch.setattr(_resume, "SECONDS", 0.0)


def new_file(path):
    shape = (N, FEATURES)
    return np.lib.format.open_memmap(path, "w+", np.float32, shape)


def resume(record, out, X=DATA.X, phi=PHI, **options):
    """Map in blocks with a record, and return the first row of each block that was read."""
    rows = Read(X)
    options = {"block_size": BLOCK} | options
    assert scale.embed(phi, rows, out=out, progress=record, **options) is out
    return rows.starts


@pytest.fixture
def finished(tmp_path):
    """Return the record of a run that has ended, and its file."""
    record = tmp_path / "progress"
    out = new_file(tmp_path / "features.npy")
    assert resume(record, out) == STARTS
    return record, out


def assert_same_bits(first, second):
    assert jax.tree.all(jax.tree.map(np.array_equal, first, second))


def test_a_run_cut_short_goes_on_where_it_stopped(tmp_path):
    record = tmp_path / "progress"
    out = new_file(tmp_path / "features.npy")
    with pytest.raises(OSError, match="disk"):
        rows = Read(DATA.X, fatal=15)
        scale.embed(PHI, rows, block_size=BLOCK, out=out, progress=record)
    # Block 10 was begun, and block 5 had been written and recorded when reading failed.
    lines = record.read_bytes().splitlines()[1:]
    assert [json.loads(line)[0] for line in lines] == [0, 5]
    assert resume(record, out) == [10, 15, 20]
    close(out, scale.embed(PHI, DATA.X, block_size=BLOCK))
    assert resume(record, out) == []


def test_a_second_writer_of_a_record_is_refused(finished):
    """A job may be queued again while its first copy still runs; a half-written line of one was the other's damage."""
    record, out = finished
    full = record.read_bytes()
    record.write_bytes(full[: full.index(b"\n") + 1])

    def second(*_):
        with pytest.raises(ValueError, match="is in use"):
            resume(record, out)

    resume(record, out, report=second)
    assert record.read_bytes() == full


def test_what_a_record_says_of_another_file_is_not_believed(finished, tmp_path):
    """The file was made anew, or a block of it is damaged: its checksum is another one."""
    record, out = finished
    features = out.copy()
    out[7] += 1
    assert resume(record, out) == [5]
    close(out, features)
    assert resume(record, new_file(tmp_path / "again.npy")) == STARTS


def test_a_line_that_was_cut_short_counts_for_nothing(finished):
    record, out = finished
    full = record.read_bytes()
    header = full.index(b"\n") + 1
    starts = {0: STARTS, 7: STARTS, header: STARTS, len(full) - 1: [20]}
    for length, missing in starts.items():
        record.write_bytes(full[:length])
        assert resume(record, out) == missing
        assert record.read_bytes() == full


def test_the_record_of_another_run_is_refused(finished):
    record, out = finished
    full = record.read_bytes()
    features = out.copy()
    moved = DATA.X.copy()
    moved[-1] += 1
    refused = {
        "belongs to another run: map": {"phi": Identity(np.nextafter(MATRIX, 9))},
        "block_size is 6, there 5": {"block_size": 6},
        "last row of X": {"X": moved},
    }
    for message, changes in refused.items():
        with pytest.raises(ValueError, match=message):
            resume(record, out, **changes)
    assert record.read_bytes() == full
    close(out, features)
    for damaged in (b"no record\n", b"[1]\n", full.replace(b"[10,", b"[10, 1,")):
        record.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|no record of a run"):
            resume(record, out)
        assert record.read_bytes() == damaged


def test_the_records_of_all_processes_are_read(finished):
    """One process goes on after two, with other rows; a block that was changed counts for nothing."""
    record, out = finished
    header, first, _, third, fourth, _ = record.read_bytes().splitlines(keepends=True)
    record.unlink()
    record.with_name("progress.0").write_bytes(header + first + fourth)
    second_process = record.with_name("progress.1")
    second_process.write_bytes(header + third)
    out[11] += 1
    # Private, as no test with so many processes could say what each has left of blocks that several share.
    with _resume.Record(record, json.loads(header), 0) as records:
        assert list(records.left(slice(0, 12), out)) == [slice(5, 12)]
        assert list(records.left(slice(0, 17), out)) == [slice(5, 15)]
    assert resume(record, out) == [5, 10, 20]
    record.unlink()
    second_process.write_bytes(header.replace(b"24", b"25"))
    with pytest.raises(
        ValueError, match=r"1 belongs to another run: .* Go on as there"
    ):
        resume(record, out)
    assert not record.exists()


def test_a_stream_cut_short_goes_on_and_ends_with_the_same_bits(tmp_path, always_due):
    pca = features.streaming_pca(PHI, sketch_size=2, centered=True)
    sizes = {"num_streams": 4, "block_size": 2}
    state = scale.stream(pca, DATA.X, **sizes)
    path = tmp_path / "state.npz"
    calls = []

    def report(done, total):
        calls.append(done)

    def run(rows, pca=pca, **changes):
        options = sizes | {"progress": path, "report": report} | changes
        return scale.stream(pca, rows, **options)

    # Four streams of six rows: the last one begins at row 18, and reads its third step from row 22 on.
    with pytest.raises(OSError, match="disk"):
        run(Read(DATA.X, fatal=21))
    assert calls == [0, 8]
    rows = Read(DATA.X)
    assert_same_bits(run(rows), state)
    assert rows.starts[0] == 2
    assert calls[2:] == [8, 16, N]
    rows = Read(DATA.X)
    assert_same_bits(run(rows), state)
    assert rows.starts == []
    with pytest.raises(ValueError, match="block_size is 3, there 2"):
        run(DATA.X, block_size=3)
    with pytest.raises(ValueError, match="belongs to another run: map"):
        run(DATA.X, features.streaming_pca(PHI, sketch_size=2))
    # As process 1 of 3 has left it: its streams are not those of one process, even if that one has kept nothing.
    io.save(f"{path}.1", io.load(path) | {"processes": 3})
    path.unlink()
    with pytest.raises(ValueError, match=r"processes is 1, there 3\. Go on as there"):
        run(DATA.X)
    io.save(path, {"format": "other"})
    with pytest.raises(ValueError, match="no record of a run"):
        run(DATA.X)


@pytest.mark.parametrize("num_restarts", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_clusters_cut_short_go_on_and_end_with_the_same_bits(
    tmp_path, always_due, num_restarts
):
    path = tmp_path / "state.npz"
    weights = np.arange(N, dtype=np.float32)
    options = {"num_restarts": num_restarts, "tolerance": 0.0, "weights": weights}

    reports = []
    limit = math.inf

    def report(done, total):
        reports.append(done)
        if len(reports) == limit:
            raise OSError("killed")

    def run(seed=3, num_clusters=FEATURES, **changes):
        reports.clear()
        arguments = options | {"report": report} | changes
        return scale.kmeans(house.key(seed), DATA.X, num_clusters, **arguments)

    partition = run()
    alone = kmeans.kmeans(house.key(3), DATA.X, FEATURES, **options)
    close(partition.labels, alone.labels)
    assert partition.objective == pytest.approx(float(alone.objective), rel=1e-5)
    assert partition.iterations == alone.iterations
    calls = reports.copy()
    assert calls == sorted(calls)
    assert calls.count(0) == 1

    # Calls, that of the seeding among them; `report` reads the limit.
    for limit in (1, 2, 4, len(calls) // 2):  # noqa: B007
        with pytest.raises(OSError, match="killed"):
            run(progress=path)
    limit = math.inf
    assert_same_bits(run(progress=path), partition)
    assert reports[0] > 3
    assert reports == calls[-len(reports) :]
    assert_same_bits(run(progress=path), partition)
    assert reports == []
    refused = {
        "key is": {"seed": 4},
        "weights is": {"weights": None},
        r"sizes is \[5, ": {"num_clusters": 5},
        "max_iterations is 9": {"max_iterations": 9},
    }
    for message, changes in refused.items():
        with pytest.raises(ValueError, match=f"belongs to another run: {message}"):
            run(progress=path, **changes)


def test_a_log_tells_how_far_a_run_is_and_is_silent_otherwise(monkeypatch, caplog):
    scale.embed(PHI, DATA.X, block_size=10)
    with caplog.at_level(logging.INFO, "jaxkern.scale"):
        scale.embed(PHI, DATA.X, block_size=10)
        assert caplog.messages == []  # before ten seconds are over
        monkeypatch.setattr(_resume, "SECONDS", 0.0)
        scale.embed(PHI, DATA.X, block_size=10)
    lines = [f"embed: {done} of 24, process 0" for done in (10, 20, 24)]
    assert caplog.messages == lines
