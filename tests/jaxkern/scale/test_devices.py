"""Eight devices give the numbers of one: maps, streams and k-means, in a process of its own that has them."""

import pytest
from support.programs import assert_runs

START = """
import house
from jaxkern import features, kmeans, scale
def mesh(count):
    devices = jax.devices()[:count]
    return jax.make_mesh((count,), ("data",), axis_types=(AxisType.Auto,), devices=devices)
assert jax.device_count() == 8
data = house.data()
X = data.X
phi = features.nystrom(house.KERNEL, data.landmarks)
def close(one, other, factor=1e-5):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * max(np.abs(a).max(), 1))
"""

MAPS = """
from jaxkern.scale import _embed, _mesh
Z = np.asarray(phi(X))
rows = NamedSharding(mesh(8), PartitionSpec("data"))
square = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
for sharding in (mesh(3), rows, NamedSharding(square, PartitionSpec("data"))):
    close(Z, scale.embed(phi, X, block_size=10, sharding=sharding))
before = _embed._apply.__wrapped__._cache_size()
pieces = list(scale.embed(phi, [X[:20], X[20:20], X[20:]], block_size=10, sharding=rows))
assert [len(piece) for piece in pieces] == [20, 0, 4]
close(Z, np.concatenate(pieces))
assert scale.embed(phi, X[:0], block_size=10, sharding=rows).shape == (0, 8)
assert _embed._apply.__wrapped__._cache_size() == before  # one program for every number of points
assert scale.local_rows(203, square) == slice(0, 203)
# Nothing passes between the devices, whatever the map does with its rows.
text = _embed._apply.__wrapped__.lower(phi, jnp.asarray(X), mesh=_mesh.local_mesh(mesh(8))).compile().as_text()
assert not [name for name in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if name in text]
"""

STREAMS = """
pca = features.streaming_pca(phi, sketch_size=2, centered=True)
states = [scale.stream(pca, X, num_streams=8, block_size=2, sharding=mesh(devices)) for devices in (1, 8)]
assert int(states[0].sketch.num_rows) == int(states[1].sketch.num_rows) == 24
fits = [pca.finalize(state, num_components=2) for state in states]
assert float(fits[0].shrinkage) > 0.01 * float(fits[0].squared_norm) / 3  # it did shrink
close(*fits, 1e-4)
try:
    scale.stream(pca, X, num_streams=12, sharding=mesh(8))
    raise SystemExit("12 streams on 8 devices")
except ValueError as error:
    assert "multiple of the 8 devices" in str(error)
"""

LANDMARKS = """
from jaxkern.scale import _passes
_passes._CHUNK_ROWS = 4, 4  # otherwise all rows are one chunk, of one device
one, many = (
    scale.landmarks(house.key(), X, num_landmarks=4, method="leverage", kernel=house.KERNEL, sharding=sharding)
    for sharding in (None, mesh(3))
)
assert np.array_equal(one, many)
"""

COMPARE = """
def compare(X, count, tied=False, reports=(None,), **options):
    one = kmeans.kmeans(house.key(), X, count, **options)
    for report in reports:
        many = scale.kmeans(house.key(), X, count, sharding=mesh(8), report=report, **options)
        assert many.labels.shape == (len(X),) and many.labels.dtype == jnp.int32
        if not tied:
            np.testing.assert_array_equal(many.labels, one.labels)
            close(one.centers, many.centers)
        np.testing.assert_allclose(many.objective, one.objective, rtol=1e-5, atol=1e-5 * float(np.abs(X).max()) ** 2)
        assert int(many.iterations) == int(one.iterations) and bool(many.converged) == bool(one.converged)
"""

CLUSTERS = (
    COMPARE
    + """
# In one program, and one iteration after the other. Some rows do not exist, and three devices have none. One step from
# the seeds tells them: other seeds would give other labels.
calls = []
note = lambda *args: calls.append(args)
weights = np.floor(4 * data.weights)
compare(X + 100, 4, max_iterations=1, reports=(None, note), weights=weights, num_restarts=2, block_size=2)
assert calls == [(0, None), (1, None), (1, None), (2, None)]
"""
)

LONGER = (
    COMPARE
    + """
compare(X, 7, num_restarts=3)
# Fewer points than devices.
compare(X[:5], 5)
# Clusters that stay empty: which one of equal centres has the points is a matter of rounding.
compare(np.repeat(X[:3], 20, axis=0), 5, tied=True)
# A centre that loses its points starts again at the farthest point, on whatever device that is.
from jaxkern.kmeans import _lloyd, _share
far = np.concatenate([X[:20], X[:3] + 50])
start = jnp.asarray(np.concatenate([X[:2], np.full((1, 3), -500, np.float32)]))
def lloyd(X, share):
    return _lloyd.lloyd(_lloyd.Blocks.cut(X, None, 7, share), start, 100, jnp.zeros(()))
one = jax.jit(lambda X: lloyd(X, None))(jnp.asarray(far))
share = _share.Share(23, "data")
padded = jnp.pad(jnp.asarray(far), ((0, 1), (0, 0)))
spread = jax.shard_map(lambda X: lloyd(X, share), mesh=mesh(8), in_specs=PartitionSpec("data"),
                       out_specs=PartitionSpec(), check_vma=False)
many = jax.jit(spread)(padded)
assert bool(one[1]) and bool(many[1]) and int(one[2]) == int(many[2])
close(one[0], many[0])
assert float(one[0].max()) > 40
"""
)


@pytest.mark.parametrize(
    "checks",
    [
        MAPS + STREAMS + LANDMARKS + CLUSTERS,
        pytest.param(LONGER, marks=pytest.mark.slow),
    ],
)
def test_eight_devices_give_the_numbers_of_one(checks):
    assert_runs(START + checks, devices=8, timeout=240)
