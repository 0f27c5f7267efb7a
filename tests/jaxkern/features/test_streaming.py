"""Principal components in a stream: certificates, means and weights, whatever the order of batches and merges.

Three orders agree: one batch, many batches, and parts that are merged. Exactly, up to rounding, while the features have
a rank below the sketch size, and within the certificates above it.
"""

import dataclasses

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from support.jaxprs import largest_intermediate
from support.numerics import Identity, noise_of, rows_of, scatter, squared

from jaxkern import features
from jaxkern import frequent_directions as fd
from jaxkern.features import streaming_pca

pytestmark = pytest.mark.optimised

N, M, DIM = house.USUAL
SIZE = house.FEATURES
"""Rows of the sketch, of M features."""


def feature_map(name):
    """Return a map with M features, of rank 3 if they are linear, and of rank M otherwise."""
    if name == "linear":
        return Identity(house.rng().normal(size=(DIM, M)).astype(house.dtype()))
    return features.nystrom(house.KERNEL, house.data().landmarks)


def stream_of(name, centered):
    return streaming_pca(feature_map(name), sketch_size=SIZE, centered=centered)


def fit(pca, X, weights=None, num_components=SIZE):
    state = pca.update(pca.init(), X, weights)
    return pca.finalize(state, num_components=num_components)


def check(fitted, X, weights=1):
    """Assert all that a fitted map promises of these points."""
    phi = fitted.features
    scores = np.float64(fitted(X))
    centered = fitted.centered
    fitted = jax.device_get(fitted)
    assert fitted.finite, "finite"
    counts = np.float64(weights) * np.ones(len(X))
    total = counts.sum()
    assert abs(fitted.weight - total) <= 4 * house.eps() * total, "the weight"
    F = np.float64(phi(X))
    # The norm of a row alone is rounded as a sum of M squares.
    slack = noise_of(phi, X, centered) + 4 * house.eps() * squared(F)
    mean = centered * (counts @ F) / total
    gap = np.abs(fitted.mean - mean).max()
    assert gap <= slack / len(X) ** 0.5, "the mean"
    W = np.float64(fitted.components)
    gap = np.abs(scores - (F - mean) @ W.T).max()
    # A sum of M products, and the rounding of the mean.
    assert gap <= 10 * M * house.eps() * np.abs(F).max(), "the images"
    Z = rows_of(phi, X, centered, counts)
    assert abs(fitted.squared_norm - squared(Z)) <= slack, "the norm"
    shrinkage = float(fitted.shrinkage)
    assert shrinkage <= squared(Z) / (SIZE + 1) + slack, "the bound"
    values = np.linalg.eigvalsh(Z.T @ Z)[::-1]
    above = values[: len(W)] - fitted.eigenvalues
    assert -slack <= above.min() <= above.max() <= shrinkage + slack, "eigenvalues"
    beyond = np.linalg.norm(Z - Z @ W.T @ W, 2)
    assert beyond**2 <= fitted.residual + slack, "the residual"
    left = np.linalg.eigvalsh(Z.T @ Z - scatter(fitted))
    assert left[0] >= -slack, "more than there was"
    # Fewer components than the sketch has rows say nothing of the others.
    assert left[-1] <= shrinkage or len(W) < SIZE, "the certificate"


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("name", ["linear", "nystrom"])
def test_all_orders_of_batches_and_merges_are_certified(name, centered):
    X = house.data().X
    pca = stream_of(name, centered)
    update, merge = pca.update, pca.merge
    empty = pca.init()
    singly = empty
    for row in X:
        singly = update(singly, row[None])
    thirds = empty
    for part in np.split(X, 3):
        thirds = update(thirds, part)
    a, b, c = (update(empty, part) for part in np.split(X, 3))
    left = merge(merge(a, b), c)
    right = merge(a, merge(b, c))
    turned = merge(merge(empty, c), merge(b, a))
    states = (update(empty, X), singly, thirds, left, right, turned)
    maps = [pca.finalize(state, num_components=SIZE) for state in states]
    slack = noise_of(maps[0].features, X, centered)
    for fitted in maps:
        check(fitted, X)
        # A rank below the sketch size is kept, and above it something is lost.
        is_exact = float(fitted.shrinkage) <= slack
        assert is_exact == (name == "linear")
    # Batches leave the sketch as it is, and merges do not.
    whole = scatter(maps[0])
    for fitted in maps[1:3]:
        assert np.abs(scatter(fitted) - whole).max() <= slack
    # A certificate that allows for rounding is no use unless that is small.
    assert slack < 0.02 * np.trace(whole)


@pytest.mark.parametrize("centered", [False, True])
def test_weights_count_points_several_times(centered):
    """Weights of zero are among them, and a batch of nothing else changes nothing."""
    data = house.data()
    pca = stream_of("linear", centered)
    # Neither whole numbers nor of sum 1.
    weights = 4 * data.weights
    state = pca.update(pca.init(), data.X, 0 * weights)
    state = pca.update(state, data.X, weights)
    later = pca.finalize(state, num_components=SIZE)
    check(later, data.X, weights)
    check(fit(pca, data.X, weights), data.X, weights)
    assert not bool(fit(pca, data.X, jnp.asarray(-weights)).finite)


def test_wrong_streams_are_caught():
    X = house.data().X
    pca = stream_of("nystrom", True)
    fitted, fewer = jax.device_get([fit(pca, X), fit(pca, X[:8])])
    mistakes = (
        ({"residual": fitted.residual / 2}, "the residual"),
        ({"shrinkage": fitted.shrinkage / 2}, "eigenvalues|the certificate"),
        # n + 1 points.
        ({"mean": fitted.mean * (N / (N + 1))}, "the mean"),
        ({"weight": fewer.weight}, "the weight"),
        ({"squared_norm": fewer.squared_norm}, "the norm"),
        ({"eigenvalues": fewer.eigenvalues}, "eigenvalues"),
        ({"components": fewer.components}, "the residual"),
    )
    for changes, name in mistakes:
        with pytest.raises(AssertionError, match=name):
            check(dataclasses.replace(fitted, **changes), X)


def test_a_merge_without_the_means_is_caught():
    """Scatters about the means of the parts do not add up to the scatter about the mean."""
    X = house.data().X.copy()
    # So that the means are further apart than rounding.
    X[: N // 2] += 1
    pca = stream_of("linear", True)
    a, b = (pca.update(pca.init(), part) for part in np.split(X, 2))
    merged = pca.merge(a, b)
    check(pca.finalize(merged, num_components=SIZE), X)
    apart = dataclasses.replace(merged, sketch=fd.merge(a.sketch, b.sketch))
    with pytest.raises(AssertionError):
        check(pca.finalize(apart, num_components=SIZE), X)


@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("num_components", [2, SIZE])
def test_a_map_projects_on_its_components_and_knows_its_errors(
    num_components, centered
):
    X = house.data().X
    fitted = fit(stream_of("nystrom", centered), X, num_components=num_components)
    check(fitted, X)
    assert fitted.num_features == int(fitted.rank) == num_components
    Z = rows_of(fitted.features, X, centered)
    scores = np.float64(fitted(X))
    # The spectral error of the inner products, as jaxkern.metrics has it.
    error = np.linalg.norm(Z @ Z.T - scores @ scores.T, 2) / N
    bound = float(fitted.relative_residual)
    assert 0.2 * bound < error <= bound + noise_of(fitted.features, X, centered)
    for relative, absolute in (
        (fitted.variances, fitted.eigenvalues),
        (fitted.relative_shrinkage, fitted.shrinkage),
    ):
        assert_allclose(N * relative, absolute, rtol=4 * house.eps())


def test_a_common_offset_does_no_harm_if_centred():
    """Points 1e3 away from the origin: the squares of the features are 1e6 times those of what matters."""
    X = house.data("offset").X
    fitted = fit(stream_of("linear", True), X)
    Z = rows_of(fitted.features, X, True)
    # Each feature is known to 1e3 eps times sqrt(DIM) or so, and a scatter is linear in that.
    allowed = 10 * N * 1e3 * house.eps() * float(np.abs(Z).max())
    assert_allclose(scatter(fitted), Z.T @ Z, rtol=0, atol=allowed)
    assert allowed < 0.03 * np.linalg.norm(Z, 2) ** 2


def test_long_batches_are_treated_in_blocks():
    """144 rows are two blocks of 64 and a rest."""
    X = np.tile(house.data().X, (6, 1))
    check(fit(stream_of("linear", True), X), X)


@pytest.mark.parametrize("centered", [False, True])
def test_empty_streams_and_single_points(centered):
    X = house.data().X
    pca = stream_of("nystrom", centered)
    empty = pca.init()
    for state in (empty, pca.update(empty, X[:0]), pca.merge(empty, empty)):
        fitted = pca.finalize(state, num_components=2)
        assert bool(fitted.finite)
        for zero in (
            fitted.rank,
            fitted.weight,
            fitted.relative_shrinkage,
            fitted.variances,
            fitted(X),
        ):
            assert not np.asarray(zero).any()
    single = pca.update(empty, X[:1])
    for state in (single, pca.merge(single, empty), pca.merge(empty, single)):
        fitted = pca.finalize(state, num_components=2)
        check(fitted, X[:1])
        assert int(fitted.rank) == 1 - centered


def test_the_other_variant_is_passed_on_and_memory_does_not_grow():
    phi = feature_map("linear")
    half = streaming_pca(phi, sketch_size=SIZE, shrink_at=1).init().sketch
    assert half.shrink_at == 1 and half.buffer.shape == (SIZE, M)
    pca = streaming_pca(phi, sketch_size=SIZE, centered=True)
    state = pca.init()
    X = jax.ShapeDtypeStruct((1000, DIM), house.dtype())
    assert largest_intermediate(pca.update, state, X) <= 1000 * M
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) <= (2 * SIZE + 1) * M + 10
    # As `jax.lax.scan` needs it.
    before = jax.eval_shape(lambda: state)
    after = jax.eval_shape(pca.update, state, X)
    assert jax.tree.flatten(before) == jax.tree.flatten(after)


@pytest.mark.float64
def test_a_lengthscale_that_was_a_python_number_does_not_choose_the_dtype():
    """Its array has a weak type."""
    weak = dataclasses.replace(house.KERNEL, lengthscale=jnp.asarray(1.5))
    frequencies = np.ones((2, DIM), np.float32)
    pca = streaming_pca(features.PairedFourier(weak, frequencies), sketch_size=2)
    assert pca.init().sketch.buffer.dtype == np.float32
