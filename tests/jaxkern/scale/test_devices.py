"""Eight devices give the numbers of one: maps, streams and k-means, in a process of its own that has them."""

import pytest
from support.programs import assert_runs

START = """
from jaxkern import features, kmeans, scale
from jaxkern.kernels import Gaussian
def mesh(count):
    devices = jax.devices()[:count]
    return jax.make_mesh((count,), ("data",), axis_types=(AxisType.Auto,), devices=devices)
assert jax.device_count() == 8
rng = np.random.default_rng(3)
X = rng.normal(size=(203, 3)).astype(np.float32)
phi = features.nystrom(Gaussian(1.0), jnp.asarray(X[:9]))
"""

MAPS = """
from jaxkern.scale import _embed, _mesh
Z = np.asarray(phi(X))
close = dict(rtol=0, atol=100 * np.finfo(np.float32).eps * np.abs(Z).max())
for devices in (3, 8):
    for size in (50, 1000):
        np.testing.assert_allclose(scale.embed(phi, X, block_size=size, sharding=mesh(devices)), Z, **close)
    before = _embed._apply.__wrapped__._cache_size()
    assert scale.embed(phi, X[:77], block_size=50, sharding=mesh(devices)).shape == (77, 9)
    assert scale.embed(phi, X[:0], block_size=50, sharding=mesh(devices)).shape == (0, 9)
    assert _embed._apply.__wrapped__._cache_size() == before  # one program for every number of points
rows = NamedSharding(mesh(8), PartitionSpec("data"))
pieces = list(scale.embed(phi, [X[:60], X[60:60], X[60:]], block_size=50, sharding=rows))
assert [len(piece) for piece in pieces] == [60, 0, 143]
np.testing.assert_allclose(np.concatenate(pieces), Z, **close)
square = jax.make_mesh((4, 2), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
np.testing.assert_allclose(scale.embed(phi, X, sharding=NamedSharding(square, PartitionSpec("data"))), Z, **close)
assert scale.local_rows(203, square) == slice(0, 203)
# Nothing passes between the devices, whatever the map does with its rows.
text = _embed._apply.__wrapped__.lower(phi, jnp.asarray(X[:200]), mesh=_mesh.local_mesh(mesh(8))).compile().as_text()
assert not [name for name in ("all-gather", "all-reduce", "all-to-all", "collective-permute") if name in text]
"""

STREAMS = """
pca = features.streaming_pca(phi, sketch_size=4, centered=True)
states = [scale.stream(pca, X, num_streams=8, block_size=11, sharding=mesh(devices)) for devices in (1, 8)]
assert int(states[0].sketch.num_rows) == int(states[1].sketch.num_rows) == 203
fits = [pca.finalize(state, num_components=4) for state in states]
assert float(fits[0].shrinkage) > 0.01 * float(fits[0].squared_norm) / 5  # it did shrink
for one, other in zip(jax.tree.leaves(fits[0]), jax.tree.leaves(fits[1]), strict=True):
    one, other = np.asarray(one), np.asarray(other)
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-4 * max(np.abs(one).max(), 1))
try:
    scale.stream(pca, X, num_streams=12, sharding=mesh(8))
    raise SystemExit("12 streams on 8 devices")
except ValueError as error:
    assert "multiple of the 8 devices" in str(error)
"""

LANDMARKS = """
from jaxkern.scale import _passes
_passes._CHUNK_ROWS = 16, 16
one, many = (scale.landmarks(jax.random.key(0), X, num_landmarks=9, method="leverage", kernel=Gaussian(1.0), sharding=s)
             for s in (None, mesh(3)))
assert np.array_equal(one, many)
"""

COMPARE = """
def compare(key, X, k, tied=False, **options):
    seed = jax.random.key(key)
    many = scale.kmeans(jax.random.clone(seed), X, k, sharding=mesh(8), **options)
    options.pop("report", None)
    one = kmeans.kmeans(seed, X, k, **options)
    assert many.labels.shape == (len(X),) and many.labels.dtype == jnp.int32
    if not tied:
        np.testing.assert_array_equal(many.labels, one.labels)
        np.testing.assert_allclose(many.centers, one.centers, rtol=0, atol=1e-5 * float(np.abs(X).max()))
    np.testing.assert_allclose(many.objective, one.objective, rtol=1e-5, atol=1e-5 * float(np.abs(X).max()) ** 2)
    assert int(many.iterations) == int(one.iterations) and bool(many.converged) == bool(one.converged)
"""

CLUSTERS = (
    COMPARE
    + """
given = {"weights": np.floor(4 * rng.random(203)).astype(np.float32), "num_restarts": 2, "block_size": 10}
# One step from the seeds: other seeds would give other labels. Weight 0 is drawn last.
compare(1, X + 100, 7, max_iterations=1, **given)
# Fewer points than devices.
compare(3, X[:5], 5)
# One iteration after the other, on these devices: what one program gives.
calls = []
for most in (100, 3):
    compare(5, X, 7, report=lambda *args: calls.append(args), max_iterations=most, **given)
assert calls[-8:] == [(done, None) for done in (*range(4), *range(3, 7))]
"""
)

LONGER = (
    COMPARE
    + """
compare(0, X, 7, max_iterations=1)
compare(2, X, 7, num_restarts=3)
# Clusters that stay empty: which one of equal centres has the points is a matter of rounding.
compare(4, np.repeat(X[:3], 20, axis=0), 5, tied=True)
# A centre that loses its points starts again at the farthest point, on whatever device that is.
from jaxkern.kmeans import _lloyd, _share
data = np.concatenate([X[:60], X[:3] + 50])
start = jnp.asarray(np.concatenate([X[:2], np.full((1, 3), -500, np.float32)]))
def lloyd(X, share):
    return _lloyd.lloyd(_lloyd.Blocks.cut(X, None, 7, share), start, 100, jnp.zeros(()))
one = jax.jit(lambda X: lloyd(X, None))(jnp.asarray(data))
share = _share.Share(63, "data")
padded = jnp.pad(jnp.asarray(data), ((0, 1), (0, 0)))
spread = jax.shard_map(lambda X: lloyd(X, share), mesh=mesh(8), in_specs=PartitionSpec("data"),
                       out_specs=PartitionSpec(), check_vma=False)
many = jax.jit(spread)(padded)
assert bool(one[1]) and bool(many[1]) and int(one[2]) == int(many[2])
np.testing.assert_allclose(many[0], one[0], rtol=0, atol=1e-4)
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
