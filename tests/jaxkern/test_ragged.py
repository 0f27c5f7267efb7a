"""Data sets of unequal sizes: packed with little waste, mapped as in a loop, and handed back without padding."""

import itertools

import house
import jax
import numpy as np
import pytest
from house import close, eps
from numpy.testing import assert_allclose, assert_array_equal
from support.numerics import literal_gram

from jaxkern import kernels, ragged
from jaxkern.gram import gram


def sets_of(sizes):
    """Return data sets with so many rows, in three dimensions."""
    rng = house.rng()
    return [rng.normal(size=(n, 3)).astype(house.dtype()) for n in sizes]


def test_size_classes_fill_up_the_fewest_rows():
    """Beside all choices of classes, for sizes of all kinds."""
    rng = house.rng()
    for _ in range(20):
        sizes = rng.integers(1, 25, rng.integers(1, 9))
        most = int(rng.integers(1, 5))
        batch = ragged.pack(sets_of(sizes), classes=most)
        distinct = np.unique(sizes)
        costs = []
        for count in range(most):
            for cut in itertools.combinations(distinct[:-1], count):
                limits = np.array([*cut, distinct[-1]])
                costs.append(limits[np.searchsorted(limits, sizes)].sum())
        assert sum(weights.size for weights in batch.weights) == min(costs)
        assert len(batch.weights) <= most
        assert len(batch) == len(sizes)


def test_results_are_those_of_each_set_alone_and_compile_once_for_each_class():
    """With a kernel and a key for each; arrays are cut along every axis of rows."""
    sets = sets_of(house.rng(1).integers(1, 41, 100))
    lengthscales = np.linspace(0.5, 5, 100).astype(house.dtype())
    keys = jax.random.split(house.key(), 100)
    bits = jax.vmap(jax.random.bits)(jax.random.clone(keys))
    traces = []

    def moments(X, weights, key, kernel):
        traces.append(X.shape)
        mean = weights @ X / weights.sum()
        return mean, X - mean[None], gram(kernel, X), jax.random.bits(key)

    def results():
        arguments = jax.random.clone(keys), kernels.Gaussian(lengthscales)
        return ragged.map(moments, ragged.pack(sets), *arguments, block_size=7)

    for X, scale, bit, result in zip(sets, lengthscales, bits, results(), strict=True):
        mean = X.mean(axis=0)
        expected = mean, X - mean, literal_gram(X, X, scale), bit
        for array, exact in zip(result, expected, strict=True):
            close(array, exact, 100 * eps())
    assert len(traces) <= 6  # four classes, and two looks at shapes
    assert len(results()) == 100
    assert len(traces) <= 8  # nothing is compiled again


def test_data_may_be_trees_and_come_from_a_table_or_one_by_one():
    X = np.arange(14.0).reshape(7, 2)
    names, sets = ragged.by_group(X, np.array(list("bacabab")))
    assert names.tolist() == ["a", "b", "c"]
    columns = [rows[:, 0].tolist() for rows in sets]
    assert columns == [[2, 6, 10], [0, 8, 12], [4]]
    trees = [{"X": rows, "y": np.arange(len(rows))} for rows in sets]
    batches = list(ragged.blocks(iter(trees), classes=(2, 5), num_sets=2))
    assert [len(batch) for batch in batches] == [2, 1]
    assert batches[1].data[0]["y"].dtype == np.int64
    sums = []
    for batch in batches:
        sums += ragged.map(lambda data, weights: weights @ data["X"], batch)
    assert_allclose(sums, [rows.sum(axis=0) for rows in sets])


@pytest.mark.parametrize(("block_size", "sets"), [(5, 4), (7, 6), (None, 1)])
def test_memory_is_that_of_one_block(block_size, sets, monkeypatch):
    """Blocks are equal, and by default one set if its Gram matrix has more entries than a block may have."""
    monkeypatch.setattr(ragged, "ENTRIES", 16)
    blocks = []

    def total(X, weights):
        def note(X):
            blocks.append(X.shape)
            return X[..., 0, 0]

        result = jax.ShapeDtypeStruct((), X.dtype)
        return jax.pure_callback(note, result, X, vmap_method="expand_dims")

    X = sets_of([5] * 12)
    results = ragged.map(total, ragged.pack(X), block_size=block_size)
    assert blocks == [(sets, 5, 3)] * -(-12 // sets)
    assert_array_equal(results, [rows[0, 0] for rows in X])
