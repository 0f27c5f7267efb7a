"""Data sets of unequal sizes: packed with little waste, mapped as in a loop, and handed back without what fills up."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import literal_gram

from jaxkern import kernels, ragged, rkhs
from jaxkern.features import kernel_jl
from jaxkern.gram import gram
from jaxkern.kmeans import kmeans


def sets_of(sizes, dim=3, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((int(n), dim)).astype(np.float32) for n in sizes]


@pytest.mark.parametrize("seed", range(20))
def test_size_classes_fill_up_the_fewest_rows(seed):
    rng = np.random.default_rng(seed)
    rows, count = rng.integers(1, 25, rng.integers(1, 9)), int(rng.integers(1, 5))
    batch = ragged.pack(sets_of(rows), classes=count)
    ends = np.unique(rows)
    choices = [
        (*cut, ends[-1])
        for k in range(count)
        for cut in itertools.combinations(ends[:-1], k)
    ]
    fewest = min(
        sum(min(c for c in choice if c >= n) for n in rows) for choice in choices
    )
    assert (
        sum(weights.size for weights in batch.weights) == fewest
        and len(batch.weights) <= count
    )
    assert len(batch) == len(rows) == sum(map(len, batch.sizes))


def test_a_thousand_sets_of_1_to_300_rows_are_each_what_they_are_alone():
    sets = sets_of(np.random.default_rng(1).integers(1, 301, 1000))
    traces = []

    def moments(X, weights, shift):
        traces.append(X.shape)
        mean = weights @ X / weights.sum()
        return {"mean": mean + shift, "rows": X - mean[None]}

    shift = np.arange(1000.0, dtype=np.float32)
    found = ragged.map(moments, ragged.pack(sets), shift)
    for X, each, offset in zip(sets, found, shift, strict=True):
        np.testing.assert_allclose(each["mean"] - offset, X.mean(0), atol=2e-4)
        np.testing.assert_allclose(each["rows"], X - X.mean(0), atol=1e-5)
    assert len(traces) <= 6  # four classes, and two looks at shapes
    assert (
        len(ragged.map(moments, ragged.pack(sets), shift)) == 1000 and len(traces) <= 8
    )  # nothing compiled again


def test_random_functions_with_a_kernel_of_its_own_for_each():
    sets = [*sets_of((7, 1, 30, 7, 30)), np.ones((7, 3), np.float32)]
    keys = jax.random.split(jax.random.key(0), len(sets))
    drawn, lengths = (
        jax.vmap(jax.random.bits)(jax.random.clone(keys)),
        np.float32([0.5, 1.0, 2.0, 3.0, 4.0, 5.0]),
    )

    def both(X, weights, key, kernel):
        labels = kmeans(
            key, X[:, :1] + 20 * jnp.sign(X[:, :1]), 2, weights=weights
        ).labels
        return (
            gram(kernel, X),
            labels,
            rkhs.Covariance(kernel, X, weights).trace(3),
            jax.random.bits(key),
        )

    found = ragged.map(
        both,
        ragged.pack(sets, classes=1),
        keys,
        kernels.Gaussian(lengths),
        block_size=2,
    )
    for X, own, length, (K, labels, trace, bits) in zip(
        sets, drawn, lengths, found, strict=True
    ):
        exact = literal_gram(X, X, length)
        np.testing.assert_allclose(K, exact, atol=1e-6)
        np.testing.assert_allclose(
            trace, (np.linalg.eigvalsh(exact / len(X)) ** 3).sum(), rtol=1e-5
        )
        signs = np.sign(X[:, 0]).tolist()
        assert bits == own and len({*signs}) == min(len(np.unique(X[:, 0])), 2)
        assert (
            len({*zip(signs, labels.tolist(), strict=True)})
            == len({*labels.tolist()})
            == len({*signs})
        )


def test_data_may_be_trees_and_come_from_a_table_or_one_by_one():
    X, groups = np.arange(14.0).reshape(7, 2), np.array(list("bacabab"))
    names, sets = ragged.by_group(X, groups)
    assert names.tolist() == ["a", "b", "c"] and [
        each[:, 0].tolist() for each in sets
    ] == [[2, 6, 10], [0, 8, 12], [4]]
    trees = [{"X": each, "y": np.arange(len(each))} for each in sets]
    batches = list(ragged.blocks(iter(trees), classes=(2, 5), num_sets=2))
    assert [len(batch) for batch in batches] == [2, 1] and batches[1].data[0][
        "y"
    ].dtype == np.int64
    total = [
        value
        for each in batches
        for value in ragged.map(lambda data, w: w @ data["X"], each)
    ]
    np.testing.assert_allclose(total, [each.sum(0) for each in sets])


def test_a_batch_is_a_pytree_to_map_and_differentiate_over():
    batch = ragged.pack(sets_of((2, 5, 4)), classes=1)
    slope = jax.grad(
        lambda b: jnp.sum(jax.vmap(lambda X, w: w @ X)(b.data[0], b.weights[0])),
        allow_int=True,
    )(batch)
    np.testing.assert_array_equal(
        slope.data[0], np.broadcast_to(batch.weights[0][..., None], batch.data[0].shape)
    )


def test_memory_is_that_of_one_block():
    n, num_sets = 96, 5

    def fit(X, weights, key):
        return kernel_jl(
            key, kernels.Gaussian(1.0), X, num_features=3, weights=weights
        ).projection

    keys = jax.random.split(jax.random.key(0), 60)
    blocks = list(ragged._blocks_of(ragged.pack(sets_of([n] * 60)), (keys,), num_sets))
    assert [given[1].shape for *_, given in blocks] == [(num_sets, n)] * 12
    used = ragged._compiled(fit).lower(*blocks[0][2]).compile().memory_analysis()
    assert used.temp_size_in_bytes <= 2 * num_sets * n * n * 4


def test_what_does_not_fit_is_refused():
    sets = sets_of((3, 4))
    batch = ragged.pack(sets)
    with pytest.raises(ValueError, match="one entry for each of the 2 data sets"):
        ragged.map(lambda X, w, key: X, batch, jnp.zeros(3))
    with pytest.raises(ValueError, match="last at least 4"):
        ragged.pack(sets, classes=(2, 3))
    with pytest.raises(ValueError, match="at least one data set"):
        ragged.pack([])
    with pytest.raises(ValueError, match="number 1 has not"):
        ragged.pack([np.zeros((2, 1)), np.zeros((0, 1))])
    with pytest.raises(ValueError, match="same dtype and trailing shape"):
        ragged.pack([np.zeros((2, 1)), np.zeros((2, 2))])
    with pytest.raises(ValueError, match="groups must have shape"):
        ragged.by_group(np.zeros((3, 1)), np.zeros(2))
