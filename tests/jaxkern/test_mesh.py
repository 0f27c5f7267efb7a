"""Gram products that four devices share: the numbers of one, a quarter of its work, and points that come by a ring."""

import pytest
from support.programs import assert_runs

START = """
P = PartitionSpec
jax.config.update("jax_enable_x64", True)
import os
import house
from support.programs import work
from jaxkern.gram import _product, _terms, gram_matmul
from jaxkern.kernels import Gaussian
assert jax.device_count() == 4
mesh, square, explicit = (
    jax.make_mesh(shape, ("rows", "more")[: len(shape)], axis_types=(kind,) * len(shape))
    for shape, kind in (((4,), AxisType.Auto), ((2, 2), AxisType.Auto), ((4,), AxisType.Explicit))
)
def put(tree, count, mesh=mesh):
    rows = NamedSharding(mesh, P(mesh.axis_names))
    return jax.tree.map(lambda A: jax.device_put(A, rows) if jnp.shape(A)[:1] == (count,) else A, tree)
def close(one, many, factor):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
        a, b = np.asarray(a, float), np.asarray(b, float)
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * (np.abs(a).max() + 1e-300))
"""

PRODUCTS = """
os.environ["JAXKERN_TILE_SIDE"] = "8"  # so that 24 points are more than the two tiles that every device has anyway
data = house.data()
n, dim = data.X.shape
squares = np.square(data.X[:, None] - data.Y[None]).sum(axis=2)
K = np.exp(-squares / 4.5)

# Values and slopes: a quarter of the work; points and columns go round once, and again with their slopes.
def energy(kernel, X, Y, V):
    return (gram_matmul(kernel, X, Y, V) ** 2).sum()
arguments = jax.tree.map(jnp.asarray, (2.0 * Gaussian(1.5), data.X, data.Y, data.values))
slopes = jax.jit(jax.value_and_grad(energy, (0, 1, 2, 3)))
alone, shared = (slopes.lower(*given).compile() for given in (arguments, put(arguments, n)))
one, many = alone(*arguments), shared(*put(arguments, n))
close(one, many, 1e-13)
assert all(a.dtype == "float64" for a in jax.tree.leaves(many))
KV = 2 * K @ data.values
exact = (KV**2).sum(), -4 * np.einsum("ij,ijk->ik", KV @ data.values.T * K, data.X[:, None] - data.Y) / 2.25
close(exact, (many[0], many[1][1]), 1e-13)
assert all(a.sharding.spec[0] == "rows" for a in jax.tree.leaves(many) if a.shape[:1] == (n,))
total, share = work(alone), work(shared)
assert set(total) == {"multiply-adds"}, total
assert 0.95 * total["multiply-adds"] <= 4 * share.pop("multiply-adds") <= 1.05 * total["multiply-adds"]
assert share.pop("all-reduce", 0) <= 10 and share == {"collective-permute": 3 * n * (dim + 2)}, share

# Any numbers of rows, few points of one kind, a vector, tiles of a size, a mesh of two axes, types that say how
# arrays lie, and the mesh of a context.
single = [np.float32(A) for A in (data.X, data.Y, data.values[:, 0])]
cases = (24, 23, None, square), (23, 24, 5, explicit), (6, 24, None, mesh), (24, 12, None, explicit)
for rows, cols, size, kind in cases:
    X, Y, v = single[0][:rows], single[1][:cols], single[2][:cols]
    given = put(put(tuple(map(jnp.asarray, (X, Y, v))), 24, kind), 12, kind)
    many = gram_matmul(Gaussian(1.5), *given, block_size=size)
    assert many.dtype == "float32"
    close(K[:rows, :cols] @ np.float64(v), many, 1e-6)
with jax.set_mesh(mesh):
    assert jax.jit(gram_matmul)(Gaussian(1.5), *single).sharding.spec == P("rows")

# The sums of a certificate round less than its bound says: 6 columns of a device, in tiles of 6, and then 4 devices.
same, ones = put((jnp.zeros((n, dim), "float32"), jnp.full((n, 1), 1.0000001, "float32")), n)
for terms, sums in (None, 6), (4, 4 + 2):
    error = np.abs(np.asarray(_product(Gaussian(1.5), same, same, ones, terms=terms), float) - n * float(ones[0, 0]))
    assert _terms(same, same, terms) == sums + 1 + 4 and 0 < error.max() <= (sums + 5) * 2**-24 * n * float(ones[0, 0])
assert _terms(single[0], single[0], None) == 8 + 3  # on one device: three tiles

# Maps of second derivatives, in which the slope that goes back depends on the lengthscale as well.
X, Y, v = put(tuple(map(jnp.asarray, (data.X, data.Y, data.values[:, 0]))), n)
curvature = jax.vmap(jax.grad(jax.grad(lambda scale, X, Y, v: energy(Gaussian(scale), X, Y, v))), (0, None, None, None))
expected = []
for scale in (1.0, 2.0):
    powers = np.exp(-squares / 2 / scale**2)
    zeroth, first, second = (
        factor * powers @ data.values[:, 0]
        for factor in (1, squares / scale**3, squares**2 / scale**6 - 3 * squares / scale**4)
    )
    expected.append(2 * (first @ first + zeroth @ second))
close(expected, list(jax.jit(curvature)(jnp.array([1.0, 2.0]), X, Y, v)), 1e-12)

# Where there is one device, or each has its own rows already, nothing is new.
lonely = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
for A in (jnp.asarray(data.X), put(data.X, n, lonely)):
    text = jax.jit(gram_matmul).lower(Gaussian(1.5), A, A, A[:, 0]).as_text()
    assert "collective" not in text and "manual" not in text
own = partial(jax.shard_map, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), check_vma=False)
own = own(lambda X: gram_matmul(Gaussian(1.5), X, None, X))
assert set(work(jax.jit(own).lower(X).compile())) == {"multiply-adds"}
"""

# 4,400 rows: as many as the fits that use products share over devices, whatever the side of a tile.
USERS = """
from jaxkern import audit, features
from jaxkern.clustering import _spectral
from jaxkern.features import _nystrom
from jaxkern.regression import _certificate, _ridge
n, rng = 4400, house.rng()
X = jnp.asarray(rng.normal(size=(n, 9)) + 6 * rng.integers(0, 3, size=(n, 1)))
y = jnp.sin(X[:, :1])
key, kernel = jax.random.key(0), Gaussian(jnp.asarray(4.0))
phi = features.nystrom(kernel, X[:60])
fourier = features.paired_fourier(jax.random.key(1), kernel, 9, num_frequencies=64)
system = _certificate.System(kernel, X, jnp.ones(n), y, jnp.asarray(1.0))
for core, given, sizes in (
    (_spectral._spectral, (key, kernel, X, None, None), dict(num_clusters=3, num_restarts=1, matrix_free=True)),
    (_nystrom._nystrom, (kernel, X[:60], None, X, jnp.ones(n)), {"num_features": 60}),
    (jax.jit(lambda phi, X: phi(X)), (phi, X), {}),
    (jax.jit(lambda phi, X: phi(X)), (fourier, X), {}),
    (audit._spectral_error, (key, phi, kernel, X, None, 2.0), dict(num_steps=2, num_probes=4, block_size=None)),
    (_ridge._ridge, (key, system), dict(num_landmarks=60, choice="uniform", certified=True)),
    (_ridge._ridge_to, (key, system, jnp.asarray(1e-3)), dict(num_landmarks=60, choice="uniform", max_products=40)),
):
    alone, shared = (core.lower(*arguments, **sizes).compile() for arguments in (given, put(given, n)))
    one, many = alone(*given), shared(*put(given, n))
    if core is _spectral._spectral:  # the signs of eigenvectors are free
        one, many = ((p.labels, p.objective, p.eigenvalues) for p in (one, many))
    close(one, many, 1e-4)
    quarter, share = work(alone)["multiply-adds"] / 4, work(shared)["multiply-adds"]
    assert 0.95 * quarter <= share <= 1.05 * quarter, (core, quarter, share)
"""


@pytest.mark.parametrize(
    "checks", [PRODUCTS, pytest.param(USERS, marks=pytest.mark.slow)]
)
def test_four_devices_share_the_work_and_give_the_numbers_of_one(checks):
    assert_runs(START + checks, devices=4, timeout=600)
