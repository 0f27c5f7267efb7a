"""Runs that are cut short go on where they stopped, end with the same bits, and never take up another run."""

import functools
import json
import logging

import house
import jax
import numpy as np
import pytest
from support.numerics import Identity, Read

from jaxkern import features, io, kmeans, scale
from jaxkern.scale import _resume

DATA = house.data()
N, DIM = DATA.X.shape
MATRIX = house.rng().normal(size=(DIM, house.FEATURES)).astype(np.float32)
PHI = Identity(MATRIX)  # a map for which nothing is compiled but its product
BLOCK = 5
STARTS = [0, 5, 10, 15, 20]


@pytest.fixture
def always_due(monkeypatch):
    """Keep every state and log every line, not those of every tenth second."""
    monkeypatch.setattr(_resume, "SECONDS", 0.0)


def new_file(path):
    shape = (N, house.FEATURES)
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
    np.testing.assert_array_equal(out, scale.embed(PHI, DATA.X, block_size=BLOCK))
    assert resume(record, out) == []


def test_a_second_writer_of_a_record_is_refused(finished):
    """A job may be queued again while its first copy still runs; a half-written line of one was the other's damage."""
    record, out = finished
    full = record.read_bytes()
    record.write_bytes(full[: full.index(b"\n") + 1])

    def second(done, total):
        with pytest.raises(ValueError, match="is in use"):
            resume(record, out)

    resume(record, out, report=second)
    assert record.read_bytes() == full


def test_what_a_record_says_of_another_file_is_not_believed(finished, tmp_path):
    """The file was made anew, or a block of it is damaged: its checksum is another one."""
    record, out = finished
    features = out.copy()
    out[7] += 1
    calls = []
    assert resume(record, out, report=lambda *args: calls.append(args)) == [5]
    assert calls == [(10, N)]
    np.testing.assert_array_equal(out, features)
    again = new_file(tmp_path / "again.npy")
    assert resume(record, again) == STARTS
    np.testing.assert_array_equal(again, features)


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
    np.testing.assert_array_equal(out, features)
    for damaged in (
        b"no record\n",
        b"[1]\n",
        b"{}\n",
        full.replace(b"[10,", b"[10, 1,"),
    ):
        record.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|no record of a run"):
            resume(record, out)
        assert record.read_bytes() == damaged


def test_the_records_of_all_processes_are_read(tmp_path):
    """Three processes had begun; two go on with other rows; a block that was changed counts for nothing.

    A record of one process of several is private: a test with so many processes could not say what each has done.
    """
    out = house.rng().normal(size=(90, 2))
    path = tmp_path / "run"

    def left(rows, process):
        with _resume.Record(path, {"map": "m"}, process) as record:
            return [(part.start, part.stop) for part in record.left(rows, out)]

    for process, start in enumerate((0, 30, 60)):
        with _resume.Record(path, {"map": "m"}, process) as record:
            for at in range(start, start + 10 * (process + 1), 10):
                record.add(at, out[at : at + 10])
    assert left(slice(0, 45), 0) == [(10, 30)]
    assert left(slice(45, 90), 1) == [(50, 60)]
    out[35] += 1
    assert left(slice(0, 90), None) == [(10, 40), (50, 60)]
    lines = (tmp_path / "run.2").read_bytes().splitlines()
    assert json.loads(lines[1])[:2] == [60, 70]
    message = r"run belongs to another run: map is 'n', there 'm'\. Go on as there"
    with pytest.raises(ValueError, match=message):
        _resume.Record(path, {"map": "n"}, 5)
    assert not (tmp_path / "run.5").exists()


def test_a_stream_cut_short_goes_on_and_ends_with_the_same_bits(tmp_path, always_due):
    pca = features.streaming_pca(PHI, sketch_size=2, centered=True)
    sizes = {"num_streams": 4, "block_size": 2}
    state = scale.stream(pca, DATA.X, **sizes)
    path = tmp_path / "state.npz"
    calls = []
    run = functools.partial(
        scale.stream, pca, progress=path, report=lambda *args: calls.append(args)
    )
    # Four streams of six rows: the last one begins at row 18, and reads its third step from row 22 on.
    with pytest.raises(OSError, match="disk"):
        run(Read(DATA.X, fatal=21), **sizes)
    assert calls == [(0, N), (8, N)]
    rows = Read(DATA.X)
    assert_same_bits(run(rows, **sizes), state)
    assert rows.starts[0] == 2
    assert calls[2:] == [(8, N), (16, N), (N, N)]
    rows = Read(DATA.X)
    assert_same_bits(run(rows, **sizes), state)
    assert rows.starts == []
    with pytest.raises(ValueError, match="block_size is 3, there 2"):
        run(DATA.X, num_streams=4, block_size=3)
    other = features.streaming_pca(PHI, sketch_size=2)
    with pytest.raises(ValueError, match="belongs to another run: map"):
        scale.stream(other, DATA.X, progress=path, **sizes)
    # As process 1 of 3 has left it: its streams are not those of one process, even if that one has kept nothing.
    io.save(f"{path}.1", io.load(path) | {"processes": 3})
    path.unlink()
    with pytest.raises(ValueError, match=r"processes is 1, there 3\. Go on as there"):
        run(DATA.X, **sizes)
    for stored in ([1], {"format": "other"}):
        io.save(path, stored)
        with pytest.raises(ValueError, match="no record of a run"):
            run(DATA.X, **sizes)


@pytest.mark.parametrize("num_restarts", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_clusters_cut_short_go_on_and_end_with_the_same_bits(
    tmp_path, always_due, num_restarts
):
    path = tmp_path / "state.npz"
    weights = np.arange(N, dtype=np.float32)
    options = {"num_restarts": num_restarts, "tolerance": 0.0, "weights": weights}

    def run(report=None, seed=3, num_clusters=house.FEATURES, **changes):
        arguments = options | {"report": report} | changes
        return scale.kmeans(house.key(seed), DATA.X, num_clusters, **arguments)

    calls = []
    partition = run(lambda done, total: calls.append(done))
    alone = kmeans.kmeans(house.key(3), DATA.X, house.FEATURES, **options)
    np.testing.assert_array_equal(partition.labels, alone.labels)
    np.testing.assert_allclose(partition.objective, alone.objective, rtol=1e-5)
    assert int(partition.iterations) == int(alone.iterations)
    assert calls == sorted(calls)
    assert calls.count(0) == 1

    for most in (1, 2, 4, len(calls) // 2):  # calls, that of the seeding among them
        reports = []

        def die(done, total, reports=reports, most=most):
            reports.append(done)
            if len(reports) == most:
                raise OSError("killed")

        with pytest.raises(OSError, match="killed"):
            run(die, progress=path)
    reports = []
    note = lambda done, total: reports.append(done)  # noqa: E731
    assert_same_bits(run(note, progress=path), partition)
    assert reports[0] > 3
    assert reports == calls[-len(reports) :]
    reports.clear()
    assert_same_bits(run(note, progress=path), partition)
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
