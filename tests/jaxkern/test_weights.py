"""Rows of weight zero do not exist, and a weight of two is two copies: choices of rows, clusterings, what judges."""

from functools import cache, partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from house import KERNEL, close, eps
from support.numerics import literal_gram
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
from jaxkern.kmeans import kmeans

pytestmark = pytest.mark.float64

# One more row than three clusters of seven and a copy; five rows fill the set up.
N, EXTRA, DIM, M = 23, 5, 2, 6
SIZE = N + EXTRA


def reservoir(key, X, weights=None):
    init, update, _ = landmarks.reservoir(num_landmarks=M)
    return update(init(key, DIM, X.dtype), X, weights).points


def to_a_tolerance(*args, **weights):
    options = {"tolerance": 1e-3, "max_landmarks": M}
    return landmarks.pivoted_cholesky(*args, **options, **weights).landmarks


def fit(kernel, X, weights=None):
    def gap(kernel, data):
        return learn.eigengap(kernel, data[0], num_components=2, weights=data[1])

    result = learn.fit_lengthscale(kernel, (X, weights), gap, num_steps=2)
    return result.kernel.lengthscale, result.objective, result.finite


def left_out(kernel, X, Y, weights=None):
    path = jnp.asarray([0.1, 0.5], X.dtype)
    arguments = {"regularization": path, "weights": weights}
    squares = regression.leave_one_out(kernel, X, Y[:, 0], **arguments) ** 2
    return jnp.sum(squares if weights is None else weights[None] * squares, axis=1)


spectral = partial(clustering.kernel_spectral, num_clusters=3)
kernel_kmeans = partial(clustering.kernel_kmeans, num_clusters=3)
from_gram = partial(clustering.spectral_from_gram, num_clusters=3)
leverage = partial(landmarks.leverage, num_landmarks=M)
CHOICES = {
    "uniform": ("key X", landmarks.uniform, {"num_landmarks": M}),
    "plus_plus": (
        "key X",
        landmarks.kmeans_plus_plus,
        {"num_landmarks": M, "num_candidates": 2},
    ),
    "cholesky": ("key kernel X", landmarks.pivoted_cholesky, {"num_landmarks": M}),
    "to a tolerance": ("key kernel X", to_a_tolerance, {}),
    "leverage": ("key kernel X", leverage, {"num_pilots": 9}),
    "leverage-all": ("key kernel X", leverage, {}),
    "reservoir": ("key X", reservoir, {}),
}
PARTITIONS = {
    "kmeans": ("key X", kmeans, {"num_clusters": 3}),
    "spectral": ("key kernel X", spectral, {"num_restarts": 2}),
    "matrix-free": ("key kernel X", spectral, {"matrix_free": True}),
    "kernel k-means": ("key kernel X", kernel_kmeans, {"num_restarts": 2}),
    "of landmarks": ("key kernel X", kernel_kmeans, {"num_landmarks": 9}),
    "from Gram": ("key K", from_gram, {"num_restarts": 2}),
}
JUDGES = {
    "rand_index": ("labels other", metrics.rand_index, {}),
    "adjusted": ("labels other", metrics.adjusted_rand_index, {}),
    "information": ("labels other", metrics.normalized_mutual_info, {}),
    "misclassified": (
        "labels other",
        metrics.misclassification_rate,
        {"num_labels": 5},
    ),
    "spectral_error": ("K Khat", metrics.spectral_error, {}),
    "frobenius_error": ("K Khat", metrics.frobenius_error, {}),
    "alignment": ("kernel X labels", learn.alignment, {"num_labels": 3}),
    "eigengap": ("kernel X", learn.eigengap, {"num_components": 2}),
    "left out": ("kernel X Y", left_out, {}),
    "distances": ("phi kernel X Y", audit.distance_error, {}),
    "sampled": ("key phi kernel X", audit.sampled_distance_error, {"num_pairs": 50}),
}
OTHERS = {
    "probed": (
        "key phi kernel X",
        audit.spectral_error,
        {"num_steps": 2, "num_probes": 3},
    ),
    "fit": ("kernel X", fit, {}),
}
ALL = CHOICES | PARTITIONS | JUDGES | OTHERS
SLOW = {"cholesky", "from Gram", "kernel k-means", "leverage-all", "matrix-free"}
SLOW |= {"of landmarks", "plus_plus", "sampled", "spectral"}
NAMES = [
    pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW))
    for name in sorted(ALL)
]


def call(name, data, **weights):
    """Return the result of a function of the table; of clusters what does not depend on padding."""
    words, function, options = ALL[name]
    arguments = data | {"key": house.key(7), "kernel": KERNEL}
    if "phi" in words:
        arguments["phi"] = paired_fourier(
            house.key(1), KERNEL, DIM, num_frequencies=8, dtype=data["X"].dtype
        )
    result = function(*map(arguments.get, words.split()), **options, **weights)
    if name in PARTITIONS:
        return result.labels, result.objective, result.converged
    return result


@pytest.fixture
def data():
    """23 points in three groups, of which two are equal; labels, other points and two Gram matrices."""
    source = house.data(shape=(N, 1, DIM))
    X = source.X
    X[4] = X[1]
    K = literal_gram(X, X)
    Khat = K + literal_gram(X, source.Y) / 10
    labels = np.arange(N) % 3
    other = np.where(house.rng().random(N) < 0.7, labels, source.labels)
    return {
        "X": X,
        "Y": source.Y,
        "K": K,
        "Khat": Khat,
        "labels": labels,
        "other": other,
    }


FLOATS = ("X", "Y", "K", "Khat")
WITHOUT_SLOPES = {"fit", *PARTITIONS}
"""A loop that has no derivative, and labels, which have none."""


def total(result):
    leaves = [leaf for leaf in jax.tree.leaves(result) if leaf.dtype.kind == "f"]
    return sum(jnp.sum(leaf) for leaf in leaves)


@cache
def mapped(name):
    """Return the program of six data sets with their weights; every test stacks so many.

    It returns results, and the gradient of the sum of what is floating in each in the arrays.
    """

    def run(data, weights):
        def total_of(floats):
            result = call(name, data | floats, weights=weights)
            return total(result), result

        if name in WITHOUT_SLOPES:
            return total_of({})[1], {}
        floats = {part: data[part] for part in FLOATS}
        slopes, result = jax.grad(total_of, has_aux=True)(floats)
        return result, slopes

    return jax.jit(jax.vmap(run))


def at_index(tree, i):
    return jax.tree.map(lambda leaf: leaf[i], tree)


def check_close(result, expected):
    for a, b in zip(jax.tree.leaves(result), jax.tree.leaves(expected), strict=True):
        rounding = 300 * eps() * max(np.abs(b).max(initial=0), 1)
        close(a, b, rounding if b.dtype.kind == "f" else 0)


@pytest.mark.parametrize("name", NAMES)
def test_a_set_that_is_filled_up_is_the_set_alone(name, data):
    """Values, labels, rows and random draws, and slopes: those of the set, and zero where there is no row."""
    value = jax.device_get(jax.jit(partial(call, name))(data))
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
    if not slopes:
        return
    rng = house.rng(2)
    steps = {part: 1e-6 * rng.normal(size=data[part].shape) for part in FLOATS}
    # These are equal, and a distance of 0 has slope 0.
    steps["X"][4] = steps["X"][1]

    def total_at(sign):
        moved = {part: data[part] + sign * steps[part] for part in FLOATS}
        return float(total(call(name, data | moved)))

    size = sum(np.abs(slopes[x][0]).max() * np.abs(steps[x]).sum() for x in FLOATS)
    expected = (total_at(1) - total_at(-1)) / 2
    check_differences(slopes, steps, expected, 1e-6 * size + 1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_of_few_rows_and_with_what_are_no_weights(name, data):
    """One row and three have a result, all of them as landmarks; of other weights the result tells."""
    sets = []
    for n in (1, 3):
        few = rows_of(data, np.arange(n))
        sets.append(padded(few, "between", extra=SIZE - n))
    filled, _ = padded(data, junk=1.0)
    sets += [(filled, np.full(SIZE, entry)) for entry in (-1.0, 0, np.nan, np.inf)]
    results, _ = jax.device_get(mapped(name)(*stacked(*sets)))
    is_stream = name == "reservoir"  # a batch of a stream may have no rows
    expected = [True, True, False, is_stream, False, False]
    assert [is_fine(name, at_index(results, i)) for i in range(6)] == expected
    if name in CHOICES:
        assert {*map(tuple, results[1, :3])} == {*map(tuple, data["X"][:3])}
        rest = results[1, 3:]
        assert not rest.any() if is_stream else np.isnan(rest).all()


def rows_of(data, chosen):
    return jax.tree.map(lambda array: array[axes(array, chosen)], data)


def is_fine(name, result):
    """Tell whether every number of a result is finite and every flag set; of landmarks in the first row."""
    result = result[:1] if name in CHOICES else result
    leaves = map(np.asarray, jax.tree.leaves(result))
    return all(
        (leaf if leaf.dtype == bool else np.isfinite(leaf)).all() for leaf in leaves
    )


@pytest.mark.parametrize("name", sorted(JUDGES))
def test_whole_weights_are_copies(name, data):
    """Three sets of nine rows, filled up, and their copies, filled up to the same size."""
    sets = []
    for counts in house.rng(1).integers(0, 4, (3, 9)):
        filled, weights = padded(rows_of(data, np.arange(9)), "between", extra=SIZE - 9)
        weights[weights > 0] = counts
        copies = rows_of(data, np.repeat(np.arange(9), counts))
        sets.append((filled, weights))
        sets.append(padded(copies, "between", extra=SIZE - counts.sum()))
    results, _ = jax.device_get(mapped(name)(*stacked(*sets)))
    weighted = at_index(results, slice(0, None, 2))
    check_close(weighted, at_index(results, slice(1, None, 2)))


def test_scores_of_shares_keep_their_range():
    """Of any positive sum: agreement is exactly 1, and pairs of different rows are what is left of the Rand index."""
    rng = house.rng()
    labels, other = rng.integers(0, 3, (2, N))
    weights = rng.random(N)
    together = (labels[:, None] == labels) == (other[:, None] == other)
    pairs = np.triu(np.outer(weights, weights), 1)
    index = metrics.rand_index(labels, other, weights=weights)
    close(index, (pairs * together).sum() / pairs.sum(), 1e-12)
    for name in ("rand_index", "adjusted", "information"):
        _, score, _ = JUDGES[name]
        assert float(score(labels, 5 - labels, weights=weights)) == 1
