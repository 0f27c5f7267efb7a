"""Mapping in blocks: the same numbers for every block size and container, one compilation, nothing lost; resuming."""

import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from support.numerics import Read

from jaxkern import features, io, kmeans, scale
from jaxkern import frequent_directions as fd
from jaxkern.kernels import Gaussian
from jaxkern.scale import _embed, _mesh, _resume, _stream

N, DIM = 103, 3


@pytest.fixture
def phi(rng):
    landmarks = jnp.asarray(rng.normal(size=(9, DIM)), jnp.float32)
    return features.kernel_jl(
        jax.random.key(0), Gaussian(1.0), landmarks, num_features=5, centered=True
    )


@pytest.fixture
def X(rng):
    return rng.normal(size=(N, DIM)).astype(np.float32)


def one_device():
    return jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))


def stream_of(phi, **options):
    return features.streaming_pca(phi, sketch_size=3, **options)


def tolerance(Z):
    return 100 * np.finfo(np.float32).eps * np.abs(Z).max()


@pytest.mark.parametrize("block_size", [1, 10, 50, N, 1000, None])
def test_block_sizes_do_not_change_the_numbers(phi, X, block_size):
    Z = np.asarray(phi(X))
    found = scale.embed(phi, X, block_size=block_size)
    assert isinstance(found, np.ndarray) and found.dtype == np.float32
    np.testing.assert_allclose(found, Z, atol=tolerance(Z))


def test_a_process_without_devices_has_no_rows_and_the_others_none_for_it(monkeypatch):
    mesh = one_device()
    assert _mesh.local_mesh(None).devices.shape == (1,) and not _mesh.spans_processes(
        mesh
    )
    assert scale.local_rows(7, mesh) == slice(0, 7)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with pytest.raises(
        ValueError, match="must have devices of every process, got none of process 1"
    ):
        _mesh.local_mesh(mesh)
    assert _mesh.spans_processes(mesh) and scale.local_rows(7, mesh) == slice(7, 7)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_what_fails_together_names_the_process_and_what_fails_alone_stays_as_it_is(
    kind, monkeypatch
):
    def failing():
        with _mesh.together("exchange arrays"):
            raise kind("connection reset")

    with pytest.raises(kind, match=r"^connection reset$"):
        failing()
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    with pytest.raises(
        RuntimeError,
        match=r"^process 0 of 2 could not exchange arrays: another process has ended",
    ) as error:
        failing()
    assert isinstance(error.value.__cause__, kind)


def test_jax_arrays_files_and_iterators_give_the_same(phi, X, tmp_path):
    Z = scale.embed(phi, X, block_size=20)
    assert np.array_equal(scale.embed(phi, jnp.asarray(X), block_size=20), Z)
    np.save(tmp_path / "points.npy", X)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "features.npy", "w+", np.float32, (N, 5))
    assert scale.embed(phi, mapped, block_size=20, out=out) is out
    out.flush()
    assert np.array_equal(np.load(tmp_path / "features.npy"), Z)
    pieces = [X[:1], X[1:1], X[1:40], X[40:]]
    blocks = scale.embed(phi, iter(pieces), block_size=20)
    found = list(blocks)
    assert [len(b) for b in found] == [1, 0, 39, 63]
    np.testing.assert_allclose(np.concatenate(found), Z, atol=tolerance(Z))
    again = scale.embed(
        phi, (p for p in pieces), block_size=20, out=np.empty((N, 5), np.float32)
    )
    assert np.array_equal(again, np.concatenate(found))


def test_one_program_serves_every_number_of_points(phi, X):
    before = _embed._apply.__wrapped__._cache_size()
    for count in (20, 1, 39, 77, N):
        scale.embed(phi, X[:count], block_size=23)
    list(scale.embed(phi, [X[:7], X[7:50]], block_size=23))
    assert _embed._apply.__wrapped__._cache_size() == before + 1


def test_close_numbers_of_points_share_a_program_by_default(phi, X):
    Z = np.asarray(phi(X))
    np.testing.assert_allclose(scale.embed(phi, X[:97]), Z[:97], atol=tolerance(Z))
    before = _embed._apply.__wrapped__._cache_size()
    for count in (98, 101, 103):
        np.testing.assert_allclose(
            scale.embed(phi, X[:count]), Z[:count], atol=tolerance(Z)
        )
    assert _embed._apply.__wrapped__._cache_size() == before


def test_iterators_are_read_one_block_ahead(phi, X):
    taken = []

    def source():
        for start in range(0, N, 10):
            taken.append(start)
            yield X[start : start + 10]

    blocks = scale.embed(phi, source())
    assert taken == []
    next(blocks)
    assert taken == [0, 10]
    next(blocks)
    assert taken == [0, 10, 20]


def test_the_next_block_is_read_while_one_is_computed(phi, X, monkeypatch):
    """Every block is handed to the device before the features of the one before are waited for."""
    events = []
    begin, end = _embed._Engine._begin, _embed._Engine._end
    monkeypatch.setattr(
        _embed._Engine,
        "_begin",
        lambda self, rows: (events.append("begin"), begin(self, rows))[1],
    )
    monkeypatch.setattr(
        _embed._Engine,
        "_end",
        staticmethod(lambda *begun: (events.append("end"), end(*begun))[1]),
    )
    scale.embed(phi, X, block_size=30)
    assert events == ["begin", "begin", "end", "begin", "end", "begin", "end", "end"]


def test_a_plain_function_is_a_map(X):
    found = scale.embed(lambda x: jnp.cos(x[:, :2]), X, block_size=20)
    np.testing.assert_allclose(found, np.cos(X[:, :2]), atol=1e-6)


def test_what_does_not_fit_is_named(phi, X):
    bad = {
        "block_size": lambda: scale.embed(phi, X, block_size=0),
        "floating|float32": lambda: scale.embed(phi, X.astype(int)),
        "enable float64": lambda: scale.embed(phi, X.astype(np.float64)),
        "iterable": lambda: scale.embed(phi, 3.0),
        "feature map": lambda: scale.embed(None, X),
        "out must": lambda: scale.embed(phi, X, out=np.empty((N, 4), np.float32)),
        "out must have as many rows": lambda: scale.embed(
            phi, [X], out=np.empty((N + 1, 5), np.float32)
        ),
        "room": lambda: scale.embed(phi, [X], out=np.empty((N - 1, 5), np.float32)),
        "dtype": lambda: scale.embed(phi, X, out=np.empty((N, 5), np.float64)),
        "map \\(n, dim\\)": lambda: scale.embed(jnp.sum, X),
        "Mesh or NamedSharding": lambda: scale.embed(phi, X, sharding=3),
        "rows and nothing else": lambda: scale.embed(
            phi, X, sharding=NamedSharding(one_device(), PartitionSpec())
        ),
        "not an iterable": lambda: scale.embed(phi, [X], progress="p"),
        "mode 'r\\+' or 'w\\+' where": lambda: scale.embed(
            phi, X, progress="p", out=np.empty((N, 5), np.float32)
        ),
        "file where processes share it or progress": lambda: scale.embed(
            phi, X, progress="p"
        ),
        "whole number": lambda: scale.local_rows(1.5, one_device()),
        "streaming_pca": lambda: scale.stream(phi, X),
        "at least one row": lambda: scale.stream(stream_of(phi), X[:0]),
        "num_streams": lambda: scale.stream(stream_of(phi), X, num_streams=0),
        "at least one state": lambda: scale.merge_tree(fd.merge, []),
        "number of points": lambda: scale.kmeans(
            jax.random.key(0), X, N + 1, sharding=one_device()
        ),
    }
    for message, call in bad.items():
        with pytest.raises(ValueError, match=message):
            call()
    frozen = np.empty((N, 5), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="writable"):
        scale.embed(phi, X, out=frozen)


def new_file(path):
    return np.lib.format.open_memmap(path, "w+", np.float32, (N, 5))


def test_a_run_cut_short_goes_on_where_it_stopped(phi, X, tmp_path):
    whole = scale.embed(phi, X, block_size=10)
    record = tmp_path / "progress"
    out = new_file(tmp_path / "features.npy")
    with pytest.raises(OSError, match="disk"):
        scale.embed(phi, Read(X, fatal=50), block_size=10, out=out, progress=record)
    # Block 40 was begun, and block 30 had been written and recorded when reading failed.
    assert [json.loads(line)[0] for line in record.read_bytes().splitlines()[1:]] == [
        0,
        10,
        20,
        30,
    ]
    rest = Read(X)
    assert scale.embed(phi, rest, block_size=10, out=out, progress=record) is out
    assert rest.starts == [40, 50, 60, 70, 80, 90, 100]
    assert np.array_equal(out, whole)
    again = Read(X)
    scale.embed(phi, again, block_size=10, out=out, progress=record)
    assert again.starts == []


@pytest.fixture
def finished(phi, X, tmp_path):
    """Return the record of a run in blocks of 20, and its file."""
    record, out = tmp_path / "progress", new_file(tmp_path / "features.npy")
    return record, scale.embed(phi, X, block_size=20, out=out, progress=record)


def test_a_second_writer_of_a_record_is_refused(phi, X, finished):
    """A job may be queued again while its first copy still runs; a half-written line of one was the other's damage."""
    record, out = finished
    full = record.read_bytes()
    record.write_bytes(full[: full.index(b"\n") + 1])
    call = functools.partial(scale.embed, phi, X, out=out, progress=record)

    def second(done, total):
        with pytest.raises(ValueError, match="is in use"):
            call(block_size=20)

    call(block_size=20, report=second)
    assert record.read_bytes() == full


def test_what_a_record_says_of_another_file_is_not_believed(phi, X, finished, tmp_path):
    """The file was made anew, or a block of it is damaged: its checksum is another one."""
    record, out = finished
    whole = out.copy()
    out[33] += 1
    for file, starts in (
        (out, [20]),
        (new_file(tmp_path / "again.npy"), [0, 20, 40, 60, 80, 100]),
    ):
        rest = Read(X)
        scale.embed(phi, rest, block_size=20, out=file, progress=record)
        assert rest.starts == starts and np.array_equal(file, whole)


def test_a_line_that_was_cut_short_counts_for_nothing(phi, X, finished):
    record, out = finished
    full = record.read_bytes()
    for length in (0, 7, full.index(b"\n") + 1, len(full) - 1):
        record.write_bytes(full[:length])
        rest = Read(X)
        scale.embed(phi, rest, block_size=20, out=out, progress=record)
        assert record.read_bytes() == full
        assert rest.starts == (
            [100] if length == len(full) - 1 else [0, 20, 40, 60, 80, 100]
        )


def test_the_record_of_another_run_is_refused(phi, X, finished):
    record, out = finished
    kept = record.read_bytes(), out.copy()
    leaves, structure = jax.tree.flatten(phi)
    other = jax.tree.unflatten(
        structure, [np.nextafter(np.float32(leaf), np.float32(9)) for leaf in leaves]
    )
    moved = X.copy()
    moved[-1] += 1
    cases = {
        "belongs to another run: map": lambda: scale.embed(
            other, X, block_size=20, out=out, progress=record
        ),
        "block_size is 30, there 20": lambda: scale.embed(
            phi, X, block_size=30, out=out, progress=record
        ),
        "last row of X": lambda: scale.embed(
            phi, moved, block_size=20, out=out, progress=record
        ),
    }
    for message, call in cases.items():
        with pytest.raises(ValueError, match=message):
            call()
    assert (record.read_bytes(), out.tolist()) == (kept[0], kept[1].tolist())
    for damaged in (
        b"no record\n",
        b"[1]\n",
        b"{}\n",
        kept[0].replace(b"[40,", b"[40, 1,"),
    ):
        record.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged|no record of a run"):
            scale.embed(phi, X, block_size=20, out=out, progress=record)
        assert record.read_bytes() == damaged


def test_a_stream_cut_short_goes_on_and_ends_with_the_same_bits(
    phi, X, tmp_path, monkeypatch
):
    monkeypatch.setattr(_resume, "SECONDS", 0.0)
    pca, path = stream_of(phi, centered=True), tmp_path / "state.npz"
    sizes = {"num_streams": 4, "block_size": 5}
    whole, calls = scale.stream(pca, X, **sizes), []
    with pytest.raises(
        OSError, match="disk"
    ):  # 26 rows a stream; the last stream is at its row 10
        scale.stream(
            pca,
            Read(X, fatal=88),
            progress=path,
            report=lambda *args: calls.append(args),
            **sizes,
        )
    assert calls == [(0, 103), (20, 103)]
    rest = Read(X)
    again = scale.stream(
        pca, rest, progress=path, report=lambda *args: calls.append(args), **sizes
    )
    assert rest.starts[0] == 5 and calls[2:] == [
        (20, 103),
        (40, 103),
        (60, 103),
        (80, 103),
        (100, 103),
        (103, 103),
    ]
    finished = Read(X)
    for state in (again, scale.stream(pca, finished, progress=path, **sizes)):
        assert all(
            np.array_equal(a, b)
            for a, b in zip(*map(jax.tree.leaves, (state, whole)), strict=True)
        )
    assert finished.starts == []
    for message, call in {
        "block_size is 6, there 5": lambda: scale.stream(
            pca, X, progress=path, num_streams=4, block_size=6
        ),
        "belongs to another run: map": lambda: scale.stream(
            stream_of(phi), X, progress=path, **sizes
        ),
        "report must be a function": lambda: scale.stream(pca, X, report=3),
    }.items():
        with pytest.raises(ValueError, match=message):
            call()
    # As process 1 of 3 has left it: its streams are not those of one process, even where that one has kept nothing.
    io.save(f"{path}.1", io.load(path) | {"processes": 3})
    path.unlink()
    with pytest.raises(ValueError, match=r"processes is 1, there 3\. Go on as there"):
        scale.stream(pca, X, progress=path, **sizes)
    for other in ([1], {"format": "other"}):
        io.save(path, other)
        with pytest.raises(ValueError, match="no record of a run"):
            scale.stream(pca, X, progress=path, **sizes)


def test_how_far_a_map_is_is_reported(phi, X, finished):
    calls = []
    note = lambda *args: calls.append(args)  # noqa: E731
    scale.embed(phi, X, block_size=40, report=note)
    list(scale.embed(phi, [X[:50], X[50:]], block_size=40, report=note))
    assert calls == [
        (40, N),
        (80, N),
        (N, N),
        (40, None),
        (50, None),
        (90, None),
        (N, None),
    ]
    record, out = finished
    out[33] += 1
    scale.embed(phi, X, block_size=20, out=out, progress=record, report=note)
    assert calls[7:] == [(40, N)]


@pytest.mark.parametrize("num_restarts", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_clusters_cut_short_go_on_and_end_with_the_same_bits(
    X, tmp_path, monkeypatch, num_restarts
):
    monkeypatch.setattr(_resume, "SECONDS", 0.0)
    options = {
        "num_restarts": num_restarts,
        "tolerance": 0.0,
        "weights": np.arange(N, dtype=np.float32),
    }
    run = lambda **more: scale.kmeans(jax.random.key(3), X, 6, **options, **more)  # noqa: E731
    calls = []
    whole = run(report=lambda done, total: calls.append(done))
    alone = kmeans.kmeans(jax.random.key(3), X, 6, **options)
    for found in (whole, run()):  # in steps, and in one program
        np.testing.assert_array_equal(found.labels, alone.labels)
        np.testing.assert_allclose(found.objective, alone.objective, rtol=1e-5)
    assert (int(whole.iterations), calls.count(0), calls == sorted(calls)) == (
        int(alone.iterations),
        1,
        True,
    )

    path, reported = tmp_path / "state.npz", []

    def die(after):
        def report(done, total):
            reported.append(done)
            if len(reported) == after:
                raise OSError("killed")

        return report

    for after in (1, 2, 4, len(calls) // 2):  # calls, that of the seeding among them
        reported.clear()
        with pytest.raises(OSError, match="killed"):
            run(progress=path, report=die(after))
    reported.clear()
    assert jax.tree.all(
        jax.tree.map(np.array_equal, run(progress=path, report=die(None)), whole)
    )
    assert reported[0] > 3 and reported == calls[-len(reported) :]
    reported.clear()
    assert (
        jax.tree.all(
            jax.tree.map(np.array_equal, run(progress=path, report=die(None)), whole)
        )
        and not reported
    )
    for message, more in {
        "key is": {"key": jax.random.key(4)},
        "weights is": {"weights": None},
        r"sizes is \[5, ": {"num_clusters": 5},
        "max_iterations is 9": {"max_iterations": 9},
    }.items():
        call = {"key": jax.random.key(3), "num_clusters": 6, **options, **more}
        with pytest.raises(ValueError, match=f"belongs to another run: {message}"):
            scale.kmeans(
                call.pop("key"), X, call.pop("num_clusters"), progress=path, **call
            )


def test_a_tree_of_merges_is_balanced_and_keeps_the_order():
    def merge(a, b):
        return a[0] + b[0], 1 + max(a[1], b[1])

    for count in range(1, 40):
        whole, depth = scale.merge_tree(merge, ([(i,), 0] for i in range(count)))
        assert whole == tuple(range(count)) and depth == (count - 1).bit_length()


def test_streams_side_by_side_are_certified_and_exact_where_the_sketch_is(
    phi, X, monkeypatch
):
    shares = []

    def merge_tree(merge, states):
        states = list(states)
        shares.append([int(state.sketch.num_rows) for state in states])
        return scale.merge_tree(merge, states)

    monkeypatch.setattr(_stream, "merge_tree", merge_tree)
    Z = np.float64(phi(X))
    wide = features.streaming_pca(
        phi, sketch_size=8, centered=True
    )  # more than the 5 features
    moved = Z - Z.mean(axis=0)
    found = wide.finalize(
        scale.stream(wide, X, num_streams=4, block_size=10), num_components=5
    )
    expected = np.linalg.eigvalsh(moved.T @ moved)[::-1]
    np.testing.assert_allclose(found.eigenvalues, expected, atol=1e-5 * expected[0])
    np.testing.assert_allclose(found.mean, Z.mean(axis=0), atol=1e-5)
    assert float(found.weight) == N
    narrow = stream_of(phi, centered=True)
    state = scale.stream(narrow, X, num_streams=4, block_size=5)
    assert int(state.sketch.num_rows) == N and shares == [[26, 26, 26, 25]] * 2
    sketch = fd.finalize(state.sketch)
    error = np.linalg.norm(
        moved.T @ moved - np.float64(sketch.rows).T @ np.float64(sketch.rows), 2
    )
    assert error <= float(sketch.shrinkage) * (1 + 1e-5)
    assert float(sketch.shrinkage) <= 1.001 * min(
        expected[k:].sum() / (4 - k) for k in range(4)
    )
