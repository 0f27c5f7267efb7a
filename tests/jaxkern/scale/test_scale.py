"""Mapping in blocks and streaming: the same numbers for every block size and container, one compilation, one pass."""

import operator

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import FEATURES, close, eps
from jax.sharding import AxisType
from support.numerics import Identity, Read, squared

from jaxkern import features, scale
from jaxkern.scale import _embed

pytestmark = pytest.mark.optimised

DATA = house.data()
N, DIM = DATA.X.shape
MATRIX = house.rng().normal(size=(DIM, FEATURES)).astype(np.float32)
PHI = Identity(MATRIX)  # a map for which nothing is compiled but its product
EXACT = np.float64(DATA.X) @ np.float64(MATRIX)
CLOSE = 8 * eps() * np.abs(EXACT).max()
"""A feature is a sum of three products."""


def programs():
    """Return how many programs map blocks: nothing public tells."""
    return _embed._apply.__wrapped__._cache_size()


@pytest.mark.parametrize("block_size", [1, 5, N, 100, None])
def test_block_sizes_do_not_change_the_numbers(block_size):
    Z = scale.embed(PHI, DATA.X, block_size=block_size)
    assert isinstance(Z, np.ndarray)
    assert Z.dtype == np.float32
    close(Z, EXACT, CLOSE)


def test_jax_arrays_files_and_iterators_give_the_same(tmp_path):
    Z = scale.embed(PHI, DATA.X, block_size=5)
    close(Z, scale.embed(PHI, jnp.asarray(DATA.X), block_size=5))
    np.save(tmp_path / "points.npy", DATA.X)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "Z.npy", "w+", np.float32, Z.shape)
    assert scale.embed(PHI, mapped, block_size=5, out=out) is out
    out.flush()
    close(np.load(tmp_path / "Z.npy"), Z)
    pieces = np.split(DATA.X, [1, 1, 10])
    blocks = list(scale.embed(PHI, iter(pieces), block_size=5))
    assert [len(block) for block in blocks] == [1, 0, 9, 14]
    close(np.concatenate(blocks), EXACT, CLOSE)
    out = np.empty_like(Z)
    scale.embed(PHI, iter(pieces), block_size=5, out=out)
    close(out, EXACT, CLOSE)


def test_one_program_serves_every_number_of_points():
    scale.embed(PHI, DATA.X, block_size=5)
    before = programs()
    for count in (1, 9, 20, N):
        scale.embed(PHI, DATA.X[:count], block_size=5)
    list(scale.embed(PHI, np.split(DATA.X, [7]), block_size=5))
    assert programs() == before
    # A default size has three leading bits: 23 rows are filled up to 24.
    scale.embed(PHI, DATA.X)
    before = programs()
    close(scale.embed(PHI, DATA.X[:23]), EXACT[:23], CLOSE)
    assert programs() == before


def test_iterators_are_read_one_block_ahead():
    source = iter(np.split(DATA.X, 4))
    blocks = scale.embed(PHI, source, block_size=6)
    assert operator.length_hint(source) == 4
    next(blocks)
    assert operator.length_hint(source) == 2
    next(blocks)
    assert operator.length_hint(source) == 1


def test_the_next_block_is_handed_over_before_one_is_waited_for(monkeypatch):
    """The map is a function that is no PyTree."""
    events = []
    device_put = jax.device_put

    def put(array, *where):
        if np.shape(array) == (6, DIM):
            events.append("put")
        return device_put(array, *where)

    def report(done, total):
        events.append(done)

    monkeypatch.setattr(jax, "device_put", put)
    Z = scale.embed(lambda X: X[:, :2], DATA.X, block_size=6, report=report)
    close(Z, DATA.X[:, :2])
    assert events == ["put", "put", 6, "put", 12, "put", 18, 24]


def test_how_far_a_map_of_blocks_is_is_reported_without_a_total():
    calls = []

    def report(done, total):
        calls.append((done, total))

    list(scale.embed(PHI, np.split(DATA.X, [14]), block_size=10, report=report))
    assert calls == [(10, None), (14, None), (N, None)]


def test_what_does_not_fit_a_block_is_named():
    for rows, message in ((N + 1, "as many rows as X, 24"), (N - 1, "room for")):
        out = np.empty((rows, FEATURES), np.float32)
        with pytest.raises(ValueError, match=f"out must have {message}"):
            scale.embed(PHI, [DATA.X], out=out)
    with jax.enable_x64(False), pytest.raises(ValueError, match="enable float64"):
        scale.embed(PHI, np.float64(DATA.X))


def test_a_process_without_devices_has_no_rows_and_the_others_none_for_it(monkeypatch):
    mesh = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))
    assert scale.local_rows(7, mesh) == slice(0, 7)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    assert scale.local_rows(7, mesh) == slice(7, 7)
    message = "must have devices of every process, got none of process 1"
    with pytest.raises(ValueError, match=message):
        scale.embed(PHI, DATA.X, sharding=mesh)


@pytest.mark.parametrize("kind", [RuntimeError, ValueError])
def test_what_fails_together_names_the_process(kind, monkeypatch):
    """What fails alone stays as it is."""

    def fail(done, total):
        raise kind("connection reset")

    def cluster():
        scale.kmeans(house.key(), DATA.X, FEATURES, report=fail)

    with pytest.raises(kind, match=r"^connection reset$"):
        cluster()
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    message = r"^process 0 of 2 could not cluster .*: another process has ended"
    with pytest.raises(RuntimeError, match=message) as error:
        cluster()
    assert isinstance(error.value.__cause__, kind)


def test_a_tree_of_merges_is_balanced_and_keeps_the_order():
    def merge(left, right):
        return left[0] + right[0], 1 + max(left[1], right[1])

    for count in range(1, 40):
        leaves = (((number,), 0) for number in range(count))
        numbers, depth = scale.merge_tree(merge, leaves)
        assert numbers == tuple(range(count))
        assert depth == (count - 1).bit_length()


def test_streams_are_exact_where_the_sketch_has_room():
    X = Read(DATA.X)
    pca = features.streaming_pca(PHI, sketch_size=FEATURES, centered=True)
    state = scale.stream(pca, X, num_streams=5, block_size=3)
    assert X.starts[:4] == [0, 5, 10, 15]  # five streams share 24 rows evenly
    fit = pca.finalize(state, num_components=DIM)
    # Of the scatter of a stream, from features before they are centred.
    rounding = 2 * np.finfo(np.float32).eps * N * squared(EXACT)
    scatter = N * np.cov(EXACT.T, bias=True)
    close(fit.eigenvalues, np.linalg.eigvalsh(scatter)[:0:-1], rounding)
    close(fit.mean, EXACT.mean(axis=0), CLOSE)
    assert fit.weight == N
