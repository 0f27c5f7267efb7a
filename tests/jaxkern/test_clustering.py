"""Kernel spectral clustering and kernel k-means: literal Algorithm 1, all partitions, weights, bad input, memory."""

import itertools
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.jaxprs import largest_intermediate
from support.numerics import eps, same_partition

from jaxkern import kernels, problems
from jaxkern.clustering import kernel_kmeans, kernel_spectral, spectral_from_gram
from jaxkern.gram import gram
from jaxkern.kernels import Gaussian
from jaxkern.metrics import misclassification_rate

N, K, DIM = 36, 3, 2
KERNELS = (kernels.Gaussian(2.0), kernels.Distance())
ALL = {
    "spectral": lambda key, kernel, X, k, **options: kernel_spectral(
        key, kernel, X, k, **options
    ),
    "matrix-free": lambda key, kernel, X, k, **options: kernel_spectral(
        key, kernel, X, k, matrix_free=True, **options
    ),
    "from Gram": lambda key, kernel, X, k, **options: spectral_from_gram(
        key, gram(kernel, X), k, **options
    ),
    "k-means": lambda key, kernel, X, k, **options: kernel_kmeans(
        key, kernel, X, k, **options
    ),
}
SOME = [
    pytest.param(
        name, marks=[pytest.mark.slow] if name in ("matrix-free", "from Gram") else []
    )
    for name in sorted(ALL)
]
FREE = (
    ("matrix-free", KERNELS[1]),
    pytest.param("matrix-free", KERNELS[0], marks=pytest.mark.slow),
)
PAIRS = [*itertools.product(("from Gram", "k-means", "spectral"), KERNELS), *FREE]


@pytest.fixture
def blobs(rng):
    """Three tight clusters at mutual distance 8: every method and every key finds them."""
    truth = np.arange(N) % K
    angle = 2 * np.pi * truth / K
    means = 8 / np.sqrt(3) * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return means + 0.2 * rng.uniform(-1, 1, (N, DIM)), truth


def literal_embedding(A, R):
    """Rows of U Lambda for the R eigenvalues of largest modulus, as Algorithm 1 says it."""
    values, vectors = np.linalg.eigh(A / len(A))
    order = np.argsort(-np.abs(values))[:R]
    return values[order], vectors[:, order] * values[order]


def inner(Z):
    return np.asarray(Z) @ np.asarray(Z).T


@pytest.mark.parametrize(("name", "kernel"), PAIRS[4:])
@pytest.mark.parametrize("double", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_the_embedding_is_the_literal_one(blobs, kernel, name, double):
    """Up to signs and rotations of equal eigenvalues, which inner products do not see; quick with programs of others"""
    dtype = "float64" if double else "float32"
    with jax.enable_x64(double):
        X = jnp.asarray(blobs[0], dtype)
        found = ALL[name](jax.random.key(0), kernel, X, K)
        values, rows = literal_embedding(np.float64(gram(kernel, X)), K)
        size, Z = np.abs(values).max(), np.asarray(found(X))
    np.testing.assert_allclose(found.eigenvalues, values, atol=100 * eps(dtype) * size)
    np.testing.assert_allclose(
        inner(Z), rows @ rows.T, atol=1e4 * eps(dtype) * size**2 / N
    )
    assert Z.dtype == found.eigenvalues.dtype == dtype


@pytest.mark.parametrize(("name", "kernel"), PAIRS)
def test_separated_clusters_are_found_and_new_points_join_them(
    blobs, rng, kernel, name
):
    dtype = jnp.float32
    if name == "k-means" and isinstance(kernel, kernels.Distance):
        with pytest.raises(ValueError, match="positive semidefinite"):
            kernel_kmeans(jax.random.key(0), kernel, jnp.asarray(blobs[0], dtype), K)
        return
    X = jnp.asarray(blobs[0], dtype)
    found = ALL[name](jax.random.key(3), kernel, X, K)
    assert (
        same_partition(found.labels, blobs[1])
        and bool(found.converged)
        and found.objective.dtype == dtype
    )
    order = rng.permutation(N)
    near, predict = (
        np.asarray(blobs[0][order] + 0.1, dtype),
        jax.jit(lambda found, X: found.predict(X)),
    )
    if name == "from Gram":
        near = gram(kernel, near, X)
    assert np.array_equal(predict(found, near), np.asarray(found.labels)[order])
    if name == "from Gram":
        with pytest.raises(ValueError, match="values"):
            predict(found, blobs[0])
    else:
        shapes = (
            jax.eval_shape(predict, found, X).shape
            for X in (near[0], near[None], near[:0])
        )
        assert [*shapes] == [(), (1, N), (0,)]


def test_labels_and_objective_are_those_of_the_embedding(blobs, x64):
    X = jnp.asarray(blobs[0])
    for name, kernel in itertools.product(("spectral", "k-means"), KERNELS[:1]):
        found = ALL[name](jax.random.key(1), kernel, X, K, weights=np.ones(N))
        rows = (found if name == "spectral" else found.phi)(X)
        distances = (
            (np.asarray(rows)[:, None] - np.asarray(found.centers)[None]) ** 2
        ).sum(-1)
        assert np.array_equal(distances.argmin(1), found.labels)
        assert float(found.objective) == pytest.approx(distances.min(1).sum(), rel=1e-9)


def test_kernel_kmeans_with_all_points_reaches_the_best_partition(rng, x64):
    """Against all 2^9 partitions of ten points by the kernel form of the objective."""
    X = rng.normal(size=(10, DIM))
    kernel = kernels.Gaussian(1.0)
    G = np.asarray(gram(kernel, jnp.asarray(X)))

    def objective(labels):
        return sum(
            G[m, m].sum() - G[np.ix_(m, m)].sum() / len(m)
            for m in (np.flatnonzero(labels == j) for j in set(labels))
        )

    best = min(
        objective(np.array((0, *rest)))
        for rest in itertools.product(range(2), repeat=9)
    )
    found = kernel_kmeans(jax.random.key(0), kernel, jnp.asarray(X), 2, num_restarts=50)
    assert float(found.objective) == pytest.approx(best, rel=1e-9)
    assert objective(np.asarray(found.labels)) == pytest.approx(best, rel=1e-9)


def test_the_objective_in_h_lies_where_the_landmarks_say(rng, x64):
    X = rng.normal(size=(N, DIM))
    kernel = kernels.Gaussian(1.0)
    found = kernel_kmeans(jax.random.key(0), kernel, jnp.asarray(X), K, num_landmarks=6)
    G, labels = np.asarray(gram(kernel, jnp.asarray(X))), np.asarray(found.labels)
    groups = [np.flatnonzero(labels == j) for j in range(K)]
    exact = sum(G[m, m].sum() - G[np.ix_(m, m)].sum() / len(m) for m in groups)
    assert (
        float(found.objective) - 1e-9
        <= exact
        <= float(found.objective + found.phi.trace_residual) + 1e-9
    )
    assert float(found.phi.trace_residual) > 0.1


@pytest.mark.parametrize("name", SOME)
def test_whole_weights_are_copies_and_zero_is_none(blobs, rng, name, x64):
    kernel = kernels.Gaussian(2.0)
    weights = rng.permutation(
        np.resize([0, 1, 2, 0, 3, 0], N)
    )  # as many copies as points: one program for both
    X = jnp.asarray(blobs[0])
    copies = jnp.asarray(np.repeat(blobs[0], weights, axis=0))
    weighted = ALL[name](jax.random.key(0), kernel, X, K, weights=np.float64(weights))
    repeated = ALL[name](jax.random.key(0), kernel, copies, K, weights=np.ones(N))
    assert float(weighted.objective) == pytest.approx(
        float(repeated.objective), rel=1e-6
    )
    exists, labels = weights > 0, np.asarray(weighted.labels)
    assert (
        same_partition(labels[exists], blobs[1][exists])
        and (labels[~exists] == -1).all()
    )
    if name != "k-means":
        np.testing.assert_allclose(
            weighted.eigenvalues, repeated.eigenvalues, rtol=1e-9
        )
    if name in ("spectral", "matrix-free"):
        np.testing.assert_allclose(inner(weighted(X)), inner(repeated(X)), atol=1e-9)


@pytest.mark.parametrize(
    "name", [pytest.param("spectral", marks=pytest.mark.slow), "k-means"]
)
def test_each_data_set_has_its_own_number_of_clusters(blobs, name):
    X = jnp.asarray(blobs[0], jnp.float32)

    def cluster(num_clusters, **options):
        return ALL[name](jax.random.key(0), KERNELS[0], X, num_clusters, **options)

    found = jax.device_get(
        jax.jit(jax.vmap(lambda used: cluster(K, num_used=used)))(jnp.arange(K + 2))
    )
    assert list(found.converged) == [False, *[True] * K, False]
    for used in range(1, K + 1):
        one = jax.tree.map(lambda leaf, i=used: leaf[i], found)
        alone = (
            cluster(used) if used > 1 else one
        )  # without a program for a single cluster
        assert float(one.objective) == pytest.approx(float(alone.objective), rel=1e-4)
        assert same_partition(one.labels, alone.labels) and {*one.labels.tolist()} == {
            *range(used)
        }
        assert list(np.isinf(one.centers).all(axis=1)) == [j >= used for j in range(K)]
        assert np.array_equal(one.predict(X), one.labels)


@pytest.mark.parametrize("name", SOME)
def test_degenerate_input_has_the_right_answer(name):
    tiny = 100 * eps(jnp.float32)
    kernel = kernels.Gaussian(1.0)

    def find(X, k):
        used = {"num_used": jnp.int32(k)} if len(X) > 1 else {}
        found = ALL[name](
            jax.random.key(0),
            kernel,
            np.asarray(X, np.float32),
            len(X),
            num_restarts=1,
            **used,
        )
        return jax.device_get(found)

    one = find(np.ones((1, 1)), 1)
    assert (
        one.labels.tolist() == [0]
        and float(one.objective) <= tiny
        and bool(one.converged)
    )
    far = 20 * np.arange(6.0)[:, None]
    assert set(find(far, 1).labels.tolist()) == {0}
    apart = find(far, 6)
    assert (
        sorted(apart.labels.tolist()) == list(range(6))
        and float(apart.objective) <= tiny
    )
    copies = find(np.repeat(far[:2], 3, axis=0), 2)
    assert same_partition(copies.labels, [0, 0, 0, 1, 1, 1]) and bool(copies.converged)
    too_many = find(
        np.zeros((6, 1)), 2
    )  # one distinct point: one cluster, the other stays empty
    assert np.isfinite(too_many.centers[:2]).all() and float(too_many.objective) <= tiny


@pytest.mark.parametrize("name", SOME)
def test_nan_is_told(blobs, name, x64):
    X = blobs[0].copy()
    X[3, 1] = np.nan
    assert not bool(
        ALL[name](jax.random.key(0), KERNELS[0], X, K, weights=np.ones(N)).converged
    )
    for unfit in (
        -1.0,
        1e307,
    ):  # where the sum is infinite, each eigenvalue would be zero
        found = ALL[name](
            jax.random.key(0), KERNELS[0], blobs[0], K, weights=jnp.full(N, unfit)
        )
        assert not bool(found.converged) and not np.isfinite(float(found.objective))


def test_of_a_matrix_that_is_not_symmetric_the_symmetric_part_counts(blobs, rng, x64):
    A, skew = np.asarray(gram(KERNELS[0], blobs[0])), rng.normal(size=(N, N))
    a, b = (
        spectral_from_gram(jax.random.key(0), M, K, weights=np.ones(N))
        for M in (A, A + skew - skew.T)
    )
    assert np.array_equal(a.labels, b.labels)
    np.testing.assert_allclose(a.eigenvalues, b.eigenvalues, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda key, X: kernel_spectral(key, KERNELS[0], X, 0), "num_clusters"),
        (lambda key, X: kernel_spectral(key, KERNELS[0], X, 5), "num_clusters"),
        (lambda key, X: kernel_spectral(key, KERNELS[0], X[0], 1), "X"),
        (
            lambda key, X: kernel_spectral(key, KERNELS[0], X, 2, num_restarts=0),
            "num_restarts",
        ),
        (
            lambda key, X: kernel_spectral(key, KERNELS[0], X, 2, matrix_free=1),
            "matrix_free",
        ),
        (lambda key, X: kernel_spectral(key, KERNELS[0], X, 2, num_used=3), "num_used"),
        (
            lambda key, X: kernel_kmeans(key, KERNELS[0], X, 2, num_used=X[0, 0]),
            "num_used",
        ),
        (lambda key, X: spectral_from_gram(key, X, 2), "square"),
        (lambda key, X: spectral_from_gram(key, jnp.eye(4), 5), "num_clusters"),
        (lambda key, X: spectral_from_gram(key, jnp.eye(4, dtype=int), 2), "K"),
        (lambda key, X: kernel_kmeans(key, KERNELS[0], X, 0), "num_clusters"),
        (
            lambda key, X: kernel_kmeans(key, KERNELS[0], X, 2, num_landmarks=5),
            "num_landmarks",
        ),
        (
            lambda key, X: kernel_kmeans(
                key, KERNELS[0], X, 2, num_landmarks=2, rank=3
            ),
            "rank",
        ),
        (lambda key, X: kernel_kmeans(key, KERNELS[1], X, 2), "semidefinite"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call(jax.random.key(0), jnp.ones((4, 2)))


def test_without_the_matrix_nothing_is_n_by_n():
    n = 20_000
    X = jax.ShapeDtypeStruct((n, 3), jnp.float32)
    key = jax.eval_shape(lambda: jax.random.key(0))
    run = lambda key, X: kernel_spectral(key, KERNELS[0], X, K)  # noqa: E731
    assert (
        largest_intermediate(run, key, X) <= 2_000 * n
    )  # 160 MB of the 1.6 GB of the matrix
    dense = jax.ShapeDtypeStruct((100, 3), jnp.float32)
    assert (
        largest_intermediate(run, key, dense) >= 100 * 100
    )  # the walk does see what is built


def spheres(num_points, seed=0):
    """Nested spheres of radii 1, 5 and 10 in dimension 20, noise .5: well separated."""
    key = jax.random.key(seed)
    return problems.nested_spheres(
        key, num_points=num_points, dim=20, radii=(1, 5, 10), noise=0.5, radial=False
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "kernel",
    [kernels.Gaussian(4.0), kernels.Distance()],
    ids=lambda k: type(k).__name__,
)
def test_without_the_matrix_the_labels_are_those_with_it(kernel):
    data = spheres(3_000)
    a, b = (
        kernel_spectral(jax.random.key(1), kernel, data.points, K, matrix_free=free)
        for free in (True, False)
    )
    assert (
        same_partition(a.labels, b.labels) and bool(a.converged) and bool(b.converged)
    )
    assert float(misclassification_rate(data.labels, a.labels)) <= 0.01


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_twenty_thousand_points_take_less_than_two_gigabytes():
    """In a process of its own, whose peak memory holds nothing else."""
    code = """
import resource, jax
from jaxkern import clustering, kernels, metrics, problems
data = problems.nested_spheres(jax.random.key(0), num_points=20_000, dim=20, radii=(1, 5, 10), noise=0.5, radial=False)
found = clustering.kernel_spectral(jax.random.key(1), kernels.Distance(), data.points, 3)
assert bool(found.converged)
print(float(metrics.misclassification_rate(data.labels, found.labels)))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    rate, kilobytes = (float(line) for line in done.stdout.split())
    assert rate <= 0.01 and kilobytes < 2 * 2**20


@pytest.mark.parametrize("scale", [1e-3, 1.0])
def test_a_kernel_matrix_that_is_the_identity_is_not_clustered(scale, rng):
    X, key = rng.normal(size=(60, 4)), jax.random.key(0)
    for cluster in (kernel_spectral, kernel_kmeans):
        found = cluster(key, Gaussian(scale), np.float32(X), 3)
        assert bool(found.converged) == (scale == 1)


def test_equal_eigenvalues_are_final_only_if_all_are_used():
    K = np.kron(np.eye(5), np.ones((4, 4))).astype(np.float32)
    for count in (1, 3, 5):
        found = spectral_from_gram(jax.random.key(0), K, count)
        assert bool(found.converged) == (count == 5)
