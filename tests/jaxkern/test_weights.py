"""Rows of weight zero do not exist, and a weight of two is two copies: choices of rows, clusterings, what judges."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import eps
from support.padded import KINDS, all_padded, axes, check_slopes, padded, rows, stacked

from jaxkern import audit, clustering, landmarks, learn, metrics, regression
from jaxkern.features import paired_fourier
from jaxkern.kernels import Gaussian
from jaxkern.kmeans import kmeans

N, EXTRA, DIM, M = 23, 5, 2, 6
SIZE = N + EXTRA
KERNEL = Gaussian(1.5)


def key():
    return jax.random.key(7)


def phi(d):
    return paired_fourier(
        jax.random.key(1), KERNEL, DIM, num_frequencies=8, dtype=d["X"].dtype
    )


def reservoir(X, weights=None):
    init, update, _ = landmarks.reservoir(num_landmarks=M)
    return update(init(key(), DIM, X.dtype), X, weights).points


def to_a_tolerance(kernel, X, weights=None):
    return landmarks.pivoted_cholesky(
        key(), kernel, X, tolerance=1e-3, max_landmarks=M, weights=weights
    ).landmarks


def fit(X, weights=None):
    def gap(kernel, data):
        return learn.eigengap(kernel, data[0], num_components=2, weights=data[1])

    found = learn.fit_lengthscale(KERNEL, (X, weights), gap, num_steps=2)
    return found.kernel.lengthscale, found.objective, found.finite


def clusters(function, *args, **options):
    found = function(key(), *args, 3, **options)
    return found.labels, found.objective, found.converged


CHOICES = {
    "uniform": lambda d, **w: landmarks.uniform(key(), d["X"], num_landmarks=M, **w),
    "plus_plus": lambda d, **w: landmarks.kmeans_plus_plus(
        key(), d["X"], num_landmarks=M, num_candidates=2, **w
    ),
    "cholesky": lambda d, **w: landmarks.pivoted_cholesky(
        key(), KERNEL, d["X"], num_landmarks=M, **w
    ),
    "to a tolerance": lambda d, **w: to_a_tolerance(KERNEL, d["X"], **w),
    "leverage": lambda d, **w: landmarks.leverage(
        key(), KERNEL, d["X"], num_landmarks=M, num_pilots=9, **w
    ),
    "leverage-all": lambda d, **w: landmarks.leverage(
        key(), KERNEL, d["X"], num_landmarks=M, **w
    ),
    "reservoir": lambda d, **w: reservoir(d["X"], **w),
}
PARTITIONS = {
    "kmeans": lambda d, **w: clusters(kmeans, d["X"], **w),
    "spectral": lambda d, **w: clusters(
        clustering.kernel_spectral, KERNEL, d["X"], num_restarts=2, **w
    ),
    "matrix-free": lambda d, **w: clusters(
        clustering.kernel_spectral, KERNEL, d["X"], matrix_free=True, **w
    ),
    "kernel k-means": lambda d, **w: clusters(
        clustering.kernel_kmeans, KERNEL, d["X"], num_restarts=2, **w
    ),
    "of landmarks": lambda d, **w: clusters(
        clustering.kernel_kmeans, KERNEL, d["X"], num_landmarks=9, **w
    ),
    "from Gram": lambda d, **w: clusters(
        clustering.spectral_from_gram, d["K"], num_restarts=2, **w
    ),
}


def left_out(d, weights=None):
    path = jnp.asarray([0.1, 0.5], d["X"].dtype)
    found = regression.leave_one_out(
        KERNEL, d["X"], d["Y"][:, 0], regularization=path, weights=weights
    )
    return found**2 if weights is None else weights[None, :] * found**2


SCORES = ("rand_index", "adjusted_rand_index", "normalized_mutual_info")
JUDGES = {
    **{
        name: lambda d, name=name, **w: getattr(metrics, name)(
            d["labels"], d["other"], **w
        )
        for name in SCORES
    },
    "misclassified": lambda d, **w: metrics.misclassification_rate(
        d["labels"], d["other"], num_labels=5, **w
    ),
    "spectral_error": lambda d, **w: metrics.spectral_error(d["K"], d["Khat"], **w),
    "frobenius_error": lambda d, **w: metrics.frobenius_error(d["K"], d["Khat"], **w),
    "alignment": lambda d, **w: learn.alignment(
        KERNEL, d["X"], d["labels"], num_labels=3, **w
    ),
    "eigengap": lambda d, **w: learn.eigengap(KERNEL, d["X"], num_components=2, **w),
    "left out": lambda d, **w: jnp.sum(left_out(d, **w), axis=1),
    "distances": lambda d, **w: audit.distance_error(
        phi(d), KERNEL, d["X"], d["Y"], **w
    ),
    "sampled": lambda d, **w: audit.sampled_distance_error(
        key(), phi(d), KERNEL, d["X"], num_pairs=50, **w
    ),
}
BY_KEY = {
    "probed": lambda d, **w: audit.spectral_error(
        key(), phi(d), KERNEL, d["X"], num_steps=2, num_probes=3, **w
    )
}
ALL = CHOICES | PARTITIONS | JUDGES | BY_KEY | {"fit": lambda d, **w: fit(d["X"], **w)}
SLOW = "cholesky, from Gram, kernel k-means, leverage-all, matrix-free, of landmarks, plus_plus, sampled, spectral"
EACH = [
    pytest.param(name, "float32", marks=[pytest.mark.slow] * (name in SLOW.split(", ")))
    for name in sorted(ALL)
]
EACH += [pytest.param(name, "float64", marks=pytest.mark.slow) for name in sorted(ALL)]


@pytest.fixture
def data(rng, dtype):
    """23 points in three clusters, of which two are equal; labels, other points and two Gram matrices."""
    labels = np.arange(N) % 3
    X = rng.normal(size=(N, DIM)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[labels]
    X[4] = X[1]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 4)
    floats = {
        "X": X,
        "Y": rng.normal(size=(N, DIM)),
        "K": K,
        "Khat": K + rng.normal(size=(N, N)) / 10,
    }
    other = np.where(rng.random(N) < 0.7, labels, rng.integers(0, 4, N))
    return {name: part.astype(dtype) for name, part in floats.items()} | {
        "labels": labels,
        "other": other,
    }


def with_slopes(name):
    """Return the function with its gradient in all that is floating; for partitions a derivative in one direction."""
    function = ALL[name]

    def run(d, **weights):
        floats = {part: d[part] for part in ("X", "Y", "K", "Khat")}

        def total(some):
            found = function(d | some, **weights)
            leaves = jax.tree.leaves(found)
            return sum(
                jnp.sum(leaf)
                for leaf in leaves
                if jnp.issubdtype(leaf.dtype, jnp.floating)
            ), found

        if name in ("fit", "kernel k-means"):
            return function(d, **weights), {}
        if name in PARTITIONS:
            _, slope, found = jax.jvp(
                total, (floats,), (jax.tree.map(jnp.sin, floats),), has_aux=True
            )
            return (*found, slope), {}
        return jax.grad(total, has_aux=True)(floats)[::-1]

    return run


@cache
def mapped(name, slopes=True):
    function = with_slopes(name) if slopes else ALL[name]
    return jax.jit(jax.vmap(lambda d, w: function(d, weights=w)))


def at_index(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def close(found, expected, dtype, scale=300):
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        tolerance = (
            scale * eps(dtype) * max(np.abs(b).max(initial=0), 1)
            if b.dtype.kind == "f"
            else 0
        )
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize(("name", "dtype"), EACH, indirect=["dtype"])
def test_a_set_that_is_filled_up_is_the_set_alone(name, data, dtype):
    """Values, labels, rows and random draws, and slopes: those of the set, and zero where there is no row."""
    value, slopes = jax.device_get(jax.jit(with_slopes(name))(data))
    found, turned = jax.device_get(mapped(name)(*all_padded(data)))
    for i, (pattern, _) in enumerate(KINDS):
        where, own = rows(N, pattern, EXTRA), at_index(found, i)
        if name in PARTITIONS:
            assert (np.delete(own[0], where) == -1).all()
            own = (own[0][where], *own[1:])
        if name in CHOICES:
            assert np.array_equal(own, value)
        close(own, value, dtype)
    for part, slope in slopes.items():
        check_slopes(
            turned[part], slope, 3_000 * eps(dtype) * max(np.abs(slope).max(), 1)
        )


@pytest.mark.parametrize(("name", "dtype"), EACH, indirect=["dtype"])
def test_of_few_rows_and_with_what_are_no_weights(name, data, dtype):
    """One row and three have a result, all of them as landmarks; of other weights the result tells."""
    few = [
        padded(few_of(data, np.arange(n)), "between", extra=SIZE - n) for n in (1, 3)
    ]
    whole, _ = padded(data, junk=1.0)
    unfit = [np.full(SIZE, entry, dtype) for entry in (-1, 0, np.nan, np.inf)]
    found = jax.device_get(
        mapped(name, slopes=False)(*stacked(*few, *((whole, w) for w in unfit)))
    )
    empty = name == "reservoir"  # a batch of a stream may have no rows
    assert [fine(name, at_index(found, i)) for i in range(6)] == [
        True,
        True,
        False,
        empty,
        False,
        False,
    ]
    if name in CHOICES:
        assert {*map(tuple, found[1, :3])} == {*map(tuple, data["X"][:3])}
        assert not found[1, 3:].any() if empty else np.isnan(found[1, 3:]).all()


def few_of(data, chosen):
    return jax.tree.map(lambda array: array[axes(array, chosen)], data)


def fine(name, found):
    """Tell whether every number of a result is finite and every flag set; of landmarks in the first row."""
    found = found[:1] if name in CHOICES else found
    return all(
        bool(leaf.all() if leaf.dtype == bool else np.isfinite(leaf).all())
        for leaf in jax.tree.leaves(found)
    )


@pytest.mark.parametrize(
    "name", ["kmeans_plus_plus", "leverage", "pivoted_cholesky", "reservoir", "uniform"]
)
def test_the_odds_are_the_weights(name, x64):
    """Far points, so that nothing but weights tells; the first of 2,000 draws: 6 standard errors."""
    X = jnp.arange(4.0)[:, None] * jnp.array([[0.0, 1.0]])
    weights, size = jnp.array([1.0, 0.0, 2.0, 5.0]), 2_000

    def first(key):
        if name == "reservoir":
            init, update, _ = landmarks.reservoir(num_landmarks=1)
            return update(init(key, 2, X.dtype), X, weights).points[0, 1]
        given = (X,) if name in ("uniform", "kmeans_plus_plus") else (Gaussian(1e-2), X)
        return getattr(landmarks, name)(key, *given, num_landmarks=1, weights=weights)[
            0, 1
        ]

    found = np.asarray(jax.jit(jax.vmap(first))(jax.random.split(key(), size))).astype(
        int
    )
    w = np.asarray(weights)
    odds = (
        w / (w + 8) if name == "leverage" else w
    )  # w copies of a far point share one direction, and lambda is 8
    p, shares = odds / odds.sum(), np.bincount(found, minlength=4) / size
    assert (np.abs(shares - p) <= 6 * np.sqrt(p * (1 - p) / size)).all(), shares


@pytest.mark.parametrize("dtype", ["float32"], indirect=True)
@pytest.mark.parametrize("name", sorted(JUDGES))
def test_whole_weights_are_copies(name, data, rng, dtype):
    """Three sets of nine rows, filled up, and their copies, filled up to the same size."""
    sets = []
    for counts in rng.integers(0, 4, (3, 9)):
        weighted, weights = padded(
            few_of(data, np.arange(9)), "between", extra=SIZE - 9
        )
        weights[weights > 0] = counts
        copies = few_of(data, np.repeat(np.arange(9), counts))
        sets += [
            (weighted, weights),
            padded(copies, "between", extra=SIZE - counts.sum()),
        ]
    found = jax.device_get(mapped(name, slopes=False)(*stacked(*sets)))
    close(at_index(found, slice(0, None, 2)), at_index(found, slice(1, None, 2)), dtype)


def test_scores_of_shares_keep_their_range(rng, x64):
    """Of any positive sum: agreement is exactly 1, and pairs of different rows are what is left of the Rand index."""
    labels, other, weights = rng.integers(0, 3, N), rng.integers(0, 3, N), rng.random(N)
    together = (labels[:, None] == labels) == (other[:, None] == other)
    pairs = np.outer(weights, weights)[np.triu_indices(N, 1)]
    expected = (pairs * together[np.triu_indices(N, 1)]).sum() / pairs.sum()
    assert float(metrics.rand_index(labels, other, weights=weights)) == pytest.approx(
        expected, rel=1e-12
    )
    for score in SCORES:
        assert float(getattr(metrics, score)(labels, 5 - labels, weights=weights)) == 1
