"""Rows of weight zero do not exist, and a weight of two is two copies: choices of rows, clusterings, what judges."""

from functools import cache

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.padded import (
    KINDS,
    all_padded,
    axes,
    check_differences,
    padded,
    rows,
    stacked,
)

from jaxkern import audit, clustering, landmarks, learn, metrics, regression
from jaxkern.features import paired_fourier
from jaxkern.kernels import Gaussian
from jaxkern.kmeans import kmeans

pytestmark = pytest.mark.float64

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
SLOW = {"cholesky", "from Gram", "kernel k-means", "leverage-all", "matrix-free"}
SLOW |= {"of landmarks", "plus_plus", "sampled", "spectral"}
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in sorted(ALL)
]


@pytest.fixture
def data():
    """23 points in three clusters, of which two are equal; labels, other points and two Gram matrices."""
    rng = house.rng()
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
    arrays = {name: array.astype(house.dtype()) for name, array in floats.items()}
    return arrays | {"labels": labels, "other": other}


FLOATS = ("X", "Y", "K", "Khat")
WITHOUT_SLOPES = {"fit", *PARTITIONS}
"""A loop that has no derivative, and labels, which have none."""


def total(result):
    leaves = [leaf for leaf in jax.tree.leaves(result) if leaf.dtype.kind == "f"]
    return sum(jnp.sum(leaf) for leaf in leaves)


def with_slopes(name):
    """Return the function with the gradient of the sum of its results in all that is floating."""
    function = ALL[name]

    def run(d, **weights):
        if name in WITHOUT_SLOPES:
            return function(d, **weights), {}

        def total_of(floats):
            result = function(d | floats, **weights)
            return total(result), result

        floats = {part: d[part] for part in FLOATS}
        slopes, result = jax.grad(total_of, has_aux=True)(floats)
        return result, slopes

    return run


@cache
def mapped(name):
    """Return the program of six data sets with their weights; every test stacks so many."""
    function = with_slopes(name)
    return jax.jit(jax.vmap(lambda d, w: function(d, weights=w)))


def at_index(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def check_close(result, expected, scale=300):
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        rounding = scale * house.eps() * max(np.abs(b).max(initial=0), 1)
        tolerance = rounding if b.dtype.kind == "f" else 0
        np.testing.assert_allclose(a, b, rtol=0, atol=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_a_set_that_is_filled_up_is_the_set_alone(name, data):
    """Values, labels, rows and random draws, and slopes: those of the set, and zero where there is no row."""
    alone = jax.jit(ALL[name])
    value = jax.device_get(alone(data))
    results, slopes = jax.device_get(mapped(name)(*all_padded(data)))
    for i, (pattern, _) in enumerate(KINDS):
        result = at_index(results, i)
        if name in PARTITIONS:
            where = rows(N, pattern, EXTRA)
            assert (np.delete(result[0], where) == -1).all()
            result = (result[0][where], *result[1:])
        if name in CHOICES:
            assert np.array_equal(result, value)
        check_close(result, value)
    if slopes:
        rng = house.rng(2)
        steps = {part: 1e-6 * rng.normal(size=data[part].shape) for part in FLOATS}
        steps["X"][4] = steps["X"][
            1
        ]  # these are equal, and a distance of 0 has slope 0
        ends = [
            float(
                total(ALL[name](data | {x: data[x] + sign * steps[x] for x in FLOATS}))
            )
            for sign in (1, -1)
        ]
        size = sum(np.abs(slopes[x][0]).max() * np.abs(steps[x]).sum() for x in FLOATS)
        expected = (ends[0] - ends[1]) / 2
        check_differences(slopes, steps, expected, 1e-6 * size + 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_of_few_rows_and_with_what_are_no_weights(name, data):
    """One row and three have a result, all of them as landmarks; of other weights the result tells."""
    few = [
        padded(few_of(data, np.arange(n)), "between", extra=SIZE - n) for n in (1, 3)
    ]
    filled, _ = padded(data, junk=1.0)
    for entry in (-1, 0, np.nan, np.inf):
        few.append((filled, np.full(SIZE, entry, house.dtype())))
    results, _ = jax.device_get(mapped(name)(*stacked(*few)))
    is_stream = name == "reservoir"  # a batch of a stream may have no rows
    expected = [True, True, False, is_stream, False, False]
    assert [is_fine(name, at_index(results, i)) for i in range(6)] == expected
    if name in CHOICES:
        chosen = {tuple(row) for row in results[1, :3]}
        assert chosen == {tuple(row) for row in data["X"][:3]}
        rest = results[1, 3:]
        assert not rest.any() if is_stream else np.isnan(rest).all()


def few_of(data, chosen):
    return jax.tree.map(lambda array: array[axes(array, chosen)], data)


def is_fine(name, result):
    """Tell whether every number of a result is finite and every flag set; of landmarks in the first row."""
    result = result[:1] if name in CHOICES else result
    return all(
        bool(leaf.all() if leaf.dtype == bool else np.isfinite(leaf).all())
        for leaf in jax.tree.leaves(result)
    )


@pytest.mark.parametrize(
    "name", ["kmeans_plus_plus", "leverage", "pivoted_cholesky", "reservoir", "uniform"]
)
def test_the_odds_are_the_weights(name):
    """Far points, so that nothing but weights tells; the first of 2,000 draws: 6 standard errors."""
    X = jnp.arange(4.0)[:, None] * jnp.array([[0.0, 1.0]])
    weights = np.array([1.0, 0.0, 2.0, 5.0])
    size = 2_000

    def first(key):
        if name == "reservoir":
            init, update, _ = landmarks.reservoir(num_landmarks=1)
            return update(init(key, 2, X.dtype), X, weights).points[0, 1]
        data = (X,) if name in ("uniform", "kmeans_plus_plus") else (Gaussian(1e-2), X)
        choose = getattr(landmarks, name)
        return choose(key, *data, num_landmarks=1, weights=weights)[0, 1]

    draws = np.asarray(jax.jit(jax.vmap(first))(jax.random.split(key(), size)))
    # w copies of a far point share one direction, and lambda is 8.
    odds = weights / (weights + 8) if name == "leverage" else weights
    p = odds / odds.sum()
    shares = np.bincount(draws.astype(int), minlength=4) / size
    assert (np.abs(shares - p) <= 6 * np.sqrt(p * (1 - p) / size)).all(), shares


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_whole_weights_are_copies(name, data):
    """Three sets of nine rows, filled up, and their copies, filled up to the same size."""
    sets = []
    for counts in house.rng(1).integers(0, 4, (3, 9)):
        nine = few_of(data, np.arange(9))
        filled, weights = padded(nine, "between", extra=SIZE - 9)
        weights[weights > 0] = counts
        copies = few_of(data, np.repeat(np.arange(9), counts))
        sets.append((filled, weights))
        sets.append(padded(copies, "between", extra=SIZE - counts.sum()))
    results, _ = jax.device_get(mapped(name)(*stacked(*sets)))
    weighted = at_index(results, slice(0, None, 2))
    check_close(weighted, at_index(results, slice(1, None, 2)))


def test_scores_of_shares_keep_their_range():
    """Of any positive sum: agreement is exactly 1, and pairs of different rows are what is left of the Rand index."""
    rng = house.rng()
    labels = rng.integers(0, 3, N)
    other = rng.integers(0, 3, N)
    weights = rng.random(N)
    together = (labels[:, None] == labels) == (other[:, None] == other)
    above = np.triu_indices(N, 1)
    pairs = np.outer(weights, weights)[above]
    expected = (pairs * together[above]).sum() / pairs.sum()
    index = metrics.rand_index(labels, other, weights=weights)
    assert float(index) == pytest.approx(expected, rel=1e-12)
    for score in SCORES:
        assert float(getattr(metrics, score)(labels, 5 - labels, weights=weights)) == 1
