"""Kernel spectral clustering and kernel k-means against literal embeddings, all partitions, and invariances.

A drawn design has three places at least four lengthscales apart, of drawn sizes, and little noise. There the partition
is known, and equal for any order of the points, any rotation, and copies in the place of weights.
"""

import itertools
from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import close, eps
from hypothesis import example, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from support.jaxprs import largest_intermediate
from support.numerics import literal_gram, same_partition

from jaxkern.clustering import kernel_kmeans, kernel_spectral, spectral_from_gram
from jaxkern.kernels import Distance, Gaussian

N, M, DIM = house.USUAL
K = 3  # the places of a design
METHODS = ("spectral", "from Gram", "k-means")
WEIGHTS = np.repeat([0, 1, 2], [3, N - 6, 3])
"""As many copies as points; every place has one at least."""
DESIGNS = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 2**32 - 1),
        "sizes": st.tuples(st.integers(4, 10), st.integers(4, 10)),
        "gap": st.floats(4, 30),  # between places, in lengthscales
        "noise": st.floats(-4, -1.5),  # in lengthscales and powers of ten
        "lengthscale": st.floats(-2, 2),
        "offset": st.sampled_from([0.0, 10.0]),
    }
)
EVEN = {
    "seed": 1,
    "sizes": (8, 8),
    "gap": 6.0,
    "noise": -2.0,
    "lengthscale": 0.0,
    "offset": 0.0,
}


def design(drawn):
    """Return the places (N, DIM) of the points, the standard deviation of a coordinate, labels and the lengthscale."""
    lengthscale = 10.0 ** drawn["lengthscale"]
    first, second = drawn["sizes"]
    labels = np.repeat(np.arange(K), [first, second, N - first - second])
    corners = drawn["gap"] * np.eye(K, DIM) + drawn["offset"]
    noise = 10.0 ** drawn["noise"] * lengthscale
    return corners[labels] * lengthscale, noise, labels, lengthscale


def cluster(method, key, kernel, X, weights=None):
    """Return clusters, the labels that they predict for the points, and the embedding of these."""
    if method == "from Gram":
        clusters = spectral_from_gram(key, X, K, weights=weights)
        symmetric = (X + X.T) / 2
        return clusters, clusters.predict(X), symmetric @ clusters.projection.T
    if method == "k-means":
        clusters = kernel_kmeans(key, kernel, X, K, weights=weights)
        return clusters, clusters.predict(X), clusters.phi(X)
    options = {"weights": weights, "matrix_free": method == "matrix-free"}
    clusters = kernel_spectral(key, kernel, X, K, **options)
    return clusters, clusters.predict(X), clusters(X)


@partial(jax.jit, static_argnames="method")
def mapped(method, keys, lengthscales, sets, weights):
    def run(key, lengthscale, X, weights):
        return cluster(method, key, Gaussian(lengthscale), X, weights)

    return jax.vmap(run)(keys, lengthscales, sets, weights)


def four(method, sets, weights, lengthscale=1.0, seed=0):
    """Return what `cluster` returns of four sets, each with a key of its own, in one mapped call."""
    keys = jax.random.split(house.key(seed), 4)
    lengthscales = np.full(4, lengthscale)
    results = mapped(method, keys, *map(house.cast, (lengthscales, sets, weights)))
    results = jax.device_get(results)
    return [jax.tree.map(lambda leaf, i=i: leaf[i], results) for i in range(4)]


def inputs(method, X, lengthscale=1.0):
    """Return what a method clusters: points, or their Gram matrix."""
    return literal_gram(X, X, lengthscale) if method == "from Gram" else X


def literal_embedding(A):
    """Return the rows of U Lambda for the K eigenvalues of largest modulus, as Algorithm 1 says it."""
    values, vectors = np.linalg.eigh(A / len(A))
    order = np.argsort(-np.abs(values))[:K]
    leading = values[order]
    return leading, vectors[:, order] * leading


def literal_objective(A, weights, labels):
    """Return the objective of k-means in H by its kernel form."""
    total = 0
    for label in set(labels[weights > 0].tolist()):
        masses = np.where(labels == label, weights, 0)
        total += masses @ np.diag(A) - masses @ A @ masses / masses.sum()
    return total


def assert_embedded(clusters, Z, A, copies):
    """Assert that values and rows are the literal ones for copies of the points, up to rotations of the rows."""
    values, rows = literal_embedding(A[np.ix_(copies, copies)])
    size = np.abs(values).max()
    # Eigenvalues have all digits but two.
    atol = 100 * eps() * size
    close(clusters.eigenvalues, values, atol)
    Z = np.float64(Z)[copies]
    # Eigenvectors have half of the digits.
    atol = 1e4 * eps() * size**2 / N
    close(Z @ Z.T, rows @ rows.T, atol)
    gaps = Z - clusters.centers[clusters.labels[copies]]
    atol = 1e3 * eps() * size**2
    assert float(clusters.objective) == pytest.approx((gaps**2).sum(), abs=atol)


def failures(method, drawn, *, sabotage=lambda sets: sets):
    """Return the names of the statements that are not true of a design."""
    means, noise, labels, lengthscale = design(drawn)
    rng = np.random.default_rng(drawn["seed"])
    X = means + noise * rng.normal(size=(N, DIM))
    order = rng.permutation(N)
    turn = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    weights = rng.permutation(WEIGHTS)
    copies = np.repeat(np.arange(N), weights)
    masses = [weights, np.ones(N), weights[order], weights]
    sets = sabotage([X, X[copies], X[order], X @ turn])
    sets = [inputs(method, X, lengthscale) for X in sets]
    results = four(method, sets, masses, lengthscale, drawn["seed"])
    truths = [labels, labels[copies], labels[order], labels]
    first = scores(results[0][0])
    # Points far from the origin are rounded by the size of their place.
    rounding = 2e3 * (drawn["gap"] + drawn["offset"]) ** 2 * eps()
    names = set()
    for number, name in enumerate(("the design", "copies", "order", "rotation")):
        clusters, predicted, _ = results[number]
        exists = masses[number] > 0
        cells = clusters.labels[exists]
        is_true = same_partition(cells, truths[number][exists])
        gaps = np.abs(scores(clusters) - first)
        # NaN is a failure, too.
        if not (is_true and clusters.converged and np.all(gaps <= rounding)):
            names.add(name)
        if not np.array_equal(predicted[exists], cells):
            names.add("predict")
        if not (clusters.labels[~exists] == -1).all():
            names.add("weights")
    return names


def scores(clusters):
    """Return the objective, and the eigenvalues where there are any."""
    return np.append(getattr(clusters, "eigenvalues", ()), clusters.objective)


@pytest.mark.parametrize("method", METHODS)
@given(drawn=DESIGNS)
@example(drawn=EVEN)
def test_partitions_of_separated_designs_do_not_depend_on_order_turns_or_copies(
    method, drawn
):
    assert not failures(method, drawn)


def test_other_partitions_are_caught():
    def cluster_too_few(sets):
        first = sets[0].copy()
        first[N // 3 : 2 * N // 3] = first[0]
        return [first, *sets[1:]]

    def reversed_points(sets):
        return [sets[0][::-1], *sets[1:]]

    def wide(sets):
        return [*sets[:2], 0.1 * sets[2], sets[3]]

    uneven = EVEN | {"sizes": (4, 10)}
    assert "the design" in failures("spectral", uneven, sabotage=reversed_points)
    assert "order" in failures("spectral", EVEN, sabotage=wide)
    assert "the design" in failures("spectral", EVEN, sabotage=cluster_too_few)


@pytest.mark.parametrize("method", METHODS)
def test_weights_embed_as_their_copies_do(method):
    X = house.data().X
    A = literal_gram(X, X)
    copies = np.repeat(np.arange(N), WEIGHTS)
    # Of a matrix that is not symmetric the symmetric part counts.
    skew = np.arange(N)[:, None] - np.arange(N)
    X = A + skew if method == "from Gram" else X
    clusters, _, Z = four(method, [X] * 4, [WEIGHTS] * 4, house.LENGTHSCALE)[0]
    if method == "k-means":
        exact = literal_objective(A, WEIGHTS, clusters.labels)
        # All landmarks are points: nothing but rounding of N^2 products is lost.
        assert_allclose(clusters.objective, exact, rtol=1e3 * eps())
    else:
        assert_embedded(clusters, Z, A, copies)


@pytest.mark.parametrize("method", ["spectral", "from Gram", "matrix-free"])
def test_separated_clusters_are_found_and_new_points_join_them(method):
    """Of a kernel that is not positive semidefinite, whose leading eigenvalues are those of largest modulus."""
    means, noise, truth, _ = design(EVEN)
    X = house.cast(means + noise * house.rng().normal(size=(N, DIM)))
    A = np.linalg.norm(np.float64(X)[:, None] - X, axis=-1)
    order = house.rng().permutation(N)
    # New points are as near to the others as these are to their place.
    near = X[order] + house.cast(0.01)
    if method == "from Gram":
        X = house.cast(A)
        near = X[order]
    run = jax.jit(partial(cluster, method))
    clusters, predicted, Z = jax.device_get(run(house.key(3), Distance(), X))
    assert same_partition(clusters.labels, truth)
    assert clusters.converged
    assert np.array_equal(predicted, clusters.labels)
    assert_embedded(clusters, Z, A, np.arange(N))
    predict = jax.jit(lambda clusters, X: clusters.predict(X))
    assert np.array_equal(predict(clusters, near), clusters.labels[order])
    if method == "spectral":
        for rows, shape in ((near[0], ()), (near[:0], (0,))):
            assert jax.eval_shape(predict, clusters, rows).shape == shape


def test_kernel_kmeans_of_landmarks_bounds_the_objective_in_h():
    data = house.data()
    run = jax.jit(partial(kernel_kmeans, num_clusters=K, num_landmarks=M))
    clusters = run(house.key(), house.KERNEL, data.X, weights=data.weights)
    A = literal_gram(data.X, data.X)
    exact = literal_objective(A, np.float64(data.weights), clusters.labels)
    rounding = N * eps()
    # What the landmarks do not see is not small, or the bounds would say nothing.
    residual = float(clusters.phi.trace_residual)
    assert residual > 0.1
    assert -rounding <= exact - float(clusters.objective) <= residual + rounding


@partial(jax.jit, static_argnames="method")
def used_of_five(method, X, used):
    def run(X, used):
        function = kernel_kmeans if method == "k-means" else kernel_spectral
        clusters = function(house.key(), house.KERNEL, X, len(X), num_used=used)
        return clusters, clusters.predict(X)

    return jax.vmap(run)(X, used)


@pytest.mark.parametrize("method", ["spectral", "k-means"])
def test_degenerate_sets_have_the_right_answer_and_numbers_of_clusters_of_their_own(
    method,
):
    """Five points far apart, copies of two, equal points, and whatever; each set with a number of clusters."""
    X = house.data(shape=house.ODD).X
    # At twenty lengthscales a kernel value is zero.
    far = 30 * np.arange(5.0)[:, None]
    sets = house.cast([far, far, far[[0, 0, 0, 1, 1]], 0 * far, X, X, X, X])
    used = np.array([1, 5, 2, 2, 2, 3, 0, 6], np.int32)
    clusters, predicted = jax.device_get(used_of_five(method, sets, used))
    labels = clusters.labels
    valid = (used > 0) & (used < 6)
    assert np.array_equal(clusters.converged, valid)
    is_infinite = np.isinf(clusters.centers).all(axis=2)
    unused = np.arange(5) >= used[:, None]
    assert np.array_equal(is_infinite[valid], unused[valid])
    assert np.array_equal(predicted[valid], labels[valid])
    assert set(labels[0]) == {0}
    assert sorted(labels[1]) == [*range(5)]
    assert same_partition(labels[2], [0, 0, 0, 1, 1])
    assert clusters.objective[1:4].max() <= 100 * eps()
    if method == "k-means":
        A = literal_gram(X, X)
        partitions = [*map(np.array, itertools.product(range(2), repeat=5))]
        best = min(literal_objective(A, np.ones(5), x) for x in partitions)
        assert_allclose(clusters.objective[4], best, rtol=1e3 * eps())


@pytest.mark.parametrize("method", METHODS)
def test_what_decides_nothing_is_not_converged(method):
    """NaN, weights that are none or whose sum overflows, and a Gram matrix that is the identity."""
    X = house.data().X
    missing = X.copy()
    missing[3] = np.nan
    sets = [inputs(method, points) for points in (missing, X, X, 1e3 * X)]
    largest = float(np.finfo(house.dtype()).max) / 10
    weights = np.outer([1, -1, largest, 1], np.ones(N))
    results = [clusters for clusters, _, _ in four(method, sets, weights)]
    assert not any(clusters.converged for clusters in results)
    assert not np.isfinite([clusters.objective for clusters in results[1:3]]).any()


def test_equal_eigenvalues_are_final_only_if_all_are_used():
    sets = [np.kron(np.eye(n), np.ones((N // n, N // n))) for n in (3, 4, 6, 12)]
    results = four("from Gram", sets, np.ones((4, N)))
    converged = [bool(clusters.converged) for clusters, _, _ in results]
    assert converged == [True, False, False, False]


def test_without_the_matrix_nothing_is_n_by_n():
    """From 5,001 points on products are computed in blocks; the matrix would have 1.6 GB."""
    n = 20_000
    run = partial(kernel_spectral, house.key(), Distance(), num_clusters=K)
    X = jax.ShapeDtypeStruct((n, 3), jnp.float32)
    assert largest_intermediate(run, X) <= 2_000 * n
