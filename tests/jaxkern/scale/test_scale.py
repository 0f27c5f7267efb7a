"""Mapping in blocks and streaming: the same numbers for every block size and container, one compilation, one pass."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AxisType
from support.numerics import Identity, Read, squared

from jaxkern import features, scale
from jaxkern import frequent_directions as fd
from jaxkern.scale import _embed

pytestmark = pytest.mark.optimised

DATA = house.data()
N, DIM = DATA.X.shape
MATRIX = house.rng().normal(size=(DIM, house.FEATURES)).astype(np.float32)
PHI = Identity(MATRIX)  # a map for which nothing is compiled but its product
EXACT = np.float64(DATA.X) @ np.float64(MATRIX)
# Of the scatter of a stream, from features before they are centred.
ROUNDING = 2 * house.eps() * N * squared(EXACT)
CLOSE = {"rtol": 0, "atol": 8 * house.eps() * np.abs(EXACT).max()}
"""A feature is a sum of three products."""


def one_device():
    return jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))


def programs():
    """Return how many programs map blocks: nothing public tells."""
    return _embed._apply.__wrapped__._cache_size()


@pytest.mark.parametrize("block_size", [1, 5, N, 100, None])
def test_block_sizes_do_not_change_the_numbers(block_size):
    Z = scale.embed(PHI, DATA.X, block_size=block_size)
    assert isinstance(Z, np.ndarray)
    assert Z.dtype == np.float32
    np.testing.assert_allclose(Z, EXACT, **CLOSE)


def test_jax_arrays_files_and_iterators_give_the_same(tmp_path):
    Z = scale.embed(PHI, DATA.X, block_size=5)
    np.testing.assert_array_equal(
        Z, scale.embed(PHI, jnp.asarray(DATA.X), block_size=5)
    )
    np.save(tmp_path / "points.npy", DATA.X)
    mapped = np.load(tmp_path / "points.npy", mmap_mode="r")
    out = np.lib.format.open_memmap(tmp_path / "Z.npy", "w+", np.float32, Z.shape)
    assert scale.embed(PHI, mapped, block_size=5, out=out) is out
    out.flush()
    np.testing.assert_array_equal(np.load(tmp_path / "Z.npy"), Z)
    pieces = [DATA.X[:1], DATA.X[1:1], DATA.X[1:10], DATA.X[10:]]
    blocks = list(scale.embed(PHI, iter(pieces), block_size=5))
    assert [len(block) for block in blocks] == [1, 0, 9, 14]
    np.testing.assert_allclose(np.concatenate(blocks), EXACT, **CLOSE)
    out = np.empty_like(Z)
    again = scale.embed(PHI, (piece for piece in pieces), block_size=5, out=out)
    np.testing.assert_array_equal(again, np.concatenate(blocks))


def test_one_program_serves_every_number_of_points():
    scale.embed(PHI, DATA.X, block_size=5)
    before = programs()
    for count in (1, 9, 20, N):
        scale.embed(PHI, DATA.X[:count], block_size=5)
    list(scale.embed(PHI, [DATA.X[:7], DATA.X[7:]], block_size=5))
    assert programs() == before


def test_close_numbers_of_points_share_a_program_by_default():
    """A default size has three leading bits: 23 rows are filled up to 24."""
    scale.embed(PHI, DATA.X)
    before = programs()
    np.testing.assert_allclose(scale.embed(PHI, DATA.X[:23]), EXACT[:23], **CLOSE)
    assert programs() == before


def test_iterators_are_read_one_block_ahead():
    starts = []

    def source():
        for start in range(0, N, 5):
            starts.append(start)
            yield DATA.X[start : start + 5]

    blocks = scale.embed(PHI, source(), block_size=5)
    assert starts == []
    next(blocks)
    assert starts == [0, 5]
    next(blocks)
    assert starts == [0, 5, 10]


def test_the_next_block_is_handed_over_before_one_is_waited_for(monkeypatch):
    """The map is a function that is no PyTree."""
    events = []
    device_put = jax.device_put

    def put(array, *where):
        if np.shape(array) == (6, DIM):
            events.append("put")
        return device_put(array, *where)

    monkeypatch.setattr(jax, "device_put", put)
    report = lambda done, total: events.append(done)  # noqa: E731
    Z = scale.embed(lambda X: X[:, :2], DATA.X, block_size=6, report=report)
    np.testing.assert_array_equal(Z, DATA.X[:, :2])
    assert events == ["put", "put", 6, "put", 12, "put", 18, 24]


def test_how_far_a_map_is_is_reported():
    calls = []
    report = lambda *args: calls.append(args)  # noqa: E731
    scale.embed(PHI, DATA.X, block_size=10, report=report)
    assert calls == [(10, N), (20, N), (N, N)]
    calls.clear()
    list(scale.embed(PHI, [DATA.X[:14], DATA.X[14:]], block_size=10, report=report))
    assert calls == [(10, None), (14, None), (N, None)]


def test_what_does_not_fit_a_block_is_named():
    for rows, message in ((N + 1, "as many rows as X, 24"), (N - 1, "room for")):
        out = np.empty((rows, house.FEATURES), np.float32)
        with pytest.raises(ValueError, match=f"out must have {message}"):
            scale.embed(PHI, [DATA.X], out=out)
    with jax.enable_x64(False), pytest.raises(ValueError, match="enable float64"):
        scale.embed(PHI, np.float64(DATA.X))


def test_a_process_without_devices_has_no_rows_and_the_others_none_for_it(monkeypatch):
    mesh = one_device()
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
        scale.kmeans(house.key(), DATA.X, house.FEATURES, report=fail)

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


def scatter():
    """Return the features about their mean, in float64."""
    moved = EXACT - EXACT.mean(axis=0)
    return moved.T @ moved


def test_streams_are_exact_where_the_sketch_has_room():
    X = Read(DATA.X)
    pca = features.streaming_pca(PHI, sketch_size=house.FEATURES, centered=True)
    state = scale.stream(pca, X, num_streams=5, block_size=3)
    assert X.starts[:4] == [0, 5, 10, 15]  # five streams share 24 rows evenly
    fit = pca.finalize(state, num_components=DIM)
    eigenvalues = np.linalg.eigvalsh(scatter())[::-1]
    np.testing.assert_allclose(fit.eigenvalues, eigenvalues[:DIM], atol=ROUNDING)
    np.testing.assert_allclose(fit.mean, EXACT.mean(axis=0), **CLOSE)
    assert float(fit.weight) == N


def test_streams_side_by_side_are_certified():
    pca = features.streaming_pca(PHI, sketch_size=2, centered=True)
    state = scale.stream(pca, DATA.X, num_streams=5, block_size=3)
    assert int(state.sketch.num_rows) == N
    sketch = fd.finalize(state.sketch)
    rows = np.float64(sketch.rows)
    error = np.linalg.norm(scatter() - rows.T @ rows, 2)
    tails = np.cumsum(np.linalg.eigvalsh(scatter()))[::-1]
    bound = min(tails[0] / 3, tails[1] / 2, tails[2])  # of a sketch of two rows
    assert error <= float(sketch.shrinkage) + ROUNDING
    assert ROUNDING < float(sketch.shrinkage) <= bound + ROUNDING
