"""Gram products that four devices share: the numbers of one, a quarter of its work, and points that come by a ring."""

import pytest
from support.programs import assert_runs

START = """
P = PartitionSpec
jax.config.update("jax_enable_x64", True)
from support.programs import work
from jaxkern.gram import _product, _terms, gram_matmul
from jaxkern.kernels import Gaussian, Polynomial
assert jax.device_count() == 4
mesh, square, explicit = (
    jax.make_mesh(shape, ("rows", "more")[: len(shape)], axis_types=(kind,) * len(shape))
    for shape, kind in (((4,), AxisType.Auto), ((2, 2), AxisType.Auto), ((4,), AxisType.Explicit))
)
rng = np.random.default_rng(3)
def put(tree, count, mesh=mesh):
    rows = NamedSharding(mesh, P(mesh.axis_names))
    return jax.tree.map(lambda A: jax.device_put(A, rows) if jnp.shape(A)[:1] == (count,) else A, tree)
def close(one, many, factor):
    for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(many), strict=True):
        assert a.dtype == b.dtype
        a, b = np.asarray(a, float), np.asarray(b, float)
        np.testing.assert_allclose(a, b, rtol=0, atol=factor * (np.abs(a).max() + 1e-300))
"""

PRODUCTS = """
n, dim, width = 2600, 9, 2
product = lambda *given: gram_matmul(*given)
slopes = jax.grad(lambda *given: (gram_matmul(*given) ** 2).sum(), (0, 1, 2, 3))
kernel = Gaussian(2.0) * Polynomial(2, 1.0, 3.0)
cases = [("float32", product), ("float32", slopes), ("float64", slopes), ("float64", product)]
for dtype, f in cases[::2]:
    X, Y = (jnp.asarray(rng.normal(size=(n, dim)), dtype) for _ in range(2))
    V, eps = jnp.asarray(rng.normal(size=(n, width)), dtype), float(jnp.finfo(dtype).eps)
    kernel = jax.tree.map(lambda leaf: jnp.asarray(leaf, dtype), kernel)
    given = kernel, X, Y, V
    programs = [jax.jit(f).lower(*found).compile() for found in (given, put(given, n))]
    one, many = programs[0](*given), programs[1](*put(given, n))
    close(one, many, 200 * eps)
    whole, share = map(work, programs)
    assert set(whole) == {"multiply-adds"}, whole
    assert 0.95 * whole["multiply-adds"] <= 4 * share.pop("multiply-adds") <= 1.05 * whole["multiply-adds"]
    passed = {"collective-permute": (1 if f is product else 3) * n * (dim + width)}  # and the slopes go round, too
    assert share.pop("all-reduce", 0) <= 10 and share == passed, share
    assert all(a.sharding.spec[0] == "rows" for a in jax.tree.leaves(many) if a.shape[:1] == (n,))
    assert programs[1].memory_analysis().temp_size_in_bytes < programs[0].memory_analysis().temp_size_in_bytes

# Any numbers of rows, few points of one kind, a vector, tiles of a size, a mesh of two axes, types that say how
# arrays lie, the mesh of a context; and the sums of a certificate, whose rounding is below its bound.
X, V = jnp.asarray(rng.normal(size=(2601, 3)), "float32"), jnp.asarray(rng.normal(size=2601), "float32")
shapes = (2600, 2601, None), (2601, 2600, 300), (6, 2600, None), (2600, 20, None)
for (rows, cols, size), kind in [*itertools.product(shapes, (mesh, square, explicit))][::2]:
    given = Gaussian(2.0), X[:rows], X[:cols], V[:cols]
    one, many = (gram_matmul(*found, block_size=size) for found in (given, put(put(given, 2600, kind), 20, kind)))
    close(one, many, 1e-5)
with jax.set_mesh(mesh):
    assert jax.jit(product)(Gaussian(2.0), X[:2600], X[:2600], V[:2600]).sharding.spec == P("rows")
for terms in (None, 32):
    ones = jnp.full((2600, 1), 1.0000001, "float32")
    same, v = put((jnp.zeros((2600, 3), "float32"), ones), 2600)
    error = np.abs(np.asarray(_product(Gaussian(1.0), same, same, v, terms=terms), float) - 2600 * float(ones[0, 0]))
    sums = 650 if terms is None else 32 + 21  # of a device
    assert _terms(same, same, terms) == sums + 1 + 4 and _terms(X, X, None) == 867 + 3
    assert 0 < error.max() <= _terms(same, same, terms) * 2**-24 * 2600 * float(ones[0, 0])

# Maps and second derivatives; and where there is one device, or each has its own rows already, nothing is new.
X, V = put((jnp.asarray(rng.normal(size=(2600, 2))), jnp.asarray(rng.normal(size=2600))), 2600)
both = jnp.array([1.0, 2.0])
here, v = np.asarray(X), np.asarray(V)
slope = jax.jit(jax.grad(lambda X, V, scale: V @ gram_matmul(Gaussian(scale), X, None, V)))
many = jax.jit(jax.vmap(slope, (None, None, 0)))(X, V, both)
close(np.stack([slope(here, v, scale) for scale in both]), many, 1e-12)
def curvature(X, V):
    energy = lambda scale: V @ gram_matmul(Gaussian(scale), X, None, V)
    return jax.grad(jax.grad(energy))(jnp.asarray(1.0))
curvature = jax.jit(curvature)
close(curvature(here, v), curvature(X, V), 1e-12)
# A directional derivative by reverse mode, twice.
def along(X, direction):
    value, back = jax.vjp(lambda X: product(Gaussian(1.0), X, X, v), X)
    return jax.vjp(lambda slope: back(slope)[0], jnp.zeros_like(value))[1](direction)[0]
forward = jax.jvp(lambda X: product(Gaussian(1.0), X, X, v), (jnp.asarray(here),), (jnp.cos(here),))[1]
close(forward, jax.jit(along)(X, jnp.cos(X)), 1e-12)
alone = jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,), devices=jax.devices()[:1])
for A in (jnp.asarray(here), put(here, 2600, alone)):
    text = jax.jit(product).lower(Gaussian(1.0), A, A, A[:, 0]).as_text()
    assert "collective" not in text and "manual" not in text
own = partial(jax.shard_map, mesh=mesh, in_specs=P("rows"), out_specs=P("rows"), check_vma=False)
own = own(lambda X: gram_matmul(Gaussian(1.0), X, None, X))
assert set(work(jax.jit(own).lower(X).compile())) == {"multiply-adds"}
"""

USERS = """
from jaxkern import audit, features
from jaxkern.clustering import _spectral
from jaxkern.features import _nystrom
from jaxkern.regression import _certificate, _ridge
n = 4400
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
    programs = [core.lower(*found, **sizes).compile() for found in (given, put(given, n))]
    (one, many), (whole, share) = (programs[0](*given), programs[1](*put(given, n))), map(work, programs)
    if core is _spectral._spectral:  # the signs of eigenvectors are free
        one, many = ((p.labels, p.objective, p.eigenvalues) for p in (one, many))
    close(one, many, 1e-4)
    quarter = whole["multiply-adds"] / 4
    assert 0.95 * quarter <= share["multiply-adds"] <= 1.05 * quarter, (core, whole, share)
"""
SLOW = PRODUCTS.replace("[::2]", "[1::2]"), USERS


@pytest.mark.parametrize(
    "checks", [PRODUCTS, *(pytest.param(more, marks=pytest.mark.slow) for more in SLOW)]
)
def test_four_devices_share_the_work_and_give_the_numbers_of_one(checks):
    assert_runs(START + checks, devices=4, timeout=600)
