"""Principal components in a stream: the mean, weights, and what is certified. (Orders: test_composition.py.)"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.jaxprs import largest_intermediate
from support.numerics import Identity, eps, noise_of, rows_of, scatter, squared

from jaxkern import features
from jaxkern.features import StreamingMap, paired_fourier, streaming_pca
from jaxkern.kernels import Gaussian

N, DIM, M, SIZE = 61, 3, 12, 6
CUTS = [1, 31]  # batches of 1, 30 and 30 points: few sizes, few compilations


def points(dtype, seed=0, num=N):
    return (
        np.random.default_rng([seed, 7])
        .normal((1.0, 0.0, -2.0), size=(num, DIM))
        .astype(dtype)
    )


def nystrom(dtype):
    return features.nystrom(Gaussian(jnp.asarray(2.0, dtype)), points(dtype, 1, M))


def raw(dtype, dim=M):
    return Identity(jnp.asarray(np.eye(dim, dtype=dtype)))


def low_rank(dtype, offset=0.0):
    rng = np.random.default_rng(11)
    return np.asarray(
        rng.normal(size=(N, 4)) @ rng.normal(size=(4, M)) + offset * rng.normal(size=M),
        dtype,
    )


def fit(pca, X, cuts=(), weights=None, num_components=SIZE):
    state = pca.init()
    for part in np.split(np.arange(len(X)), list(cuts)):
        state = pca.update(state, X[part], None if weights is None else weights[part])
    return pca.finalize(state, num_components=num_components)


def assert_certified(fitted, Z, tolerance):
    """Check everything that the fields of a map promise of the rows Z."""
    shrinkage, residual = float(fitted.shrinkage), float(fitted.residual)
    values = np.linalg.eigvalsh(Z.T @ Z)[::-1][: fitted.num_features]
    found = np.float64(fitted.eigenvalues)
    assert (found <= values + tolerance).all() and (
        values <= found + shrinkage + tolerance
    ).all()
    W = np.float64(fitted.components)
    assert np.linalg.norm(Z - Z @ W.T @ W, 2) ** 2 <= residual + tolerance
    assert float(fitted.squared_norm) == pytest.approx(squared(Z), abs=tolerance)
    assert shrinkage <= squared(Z) / (SIZE + 1) + tolerance and bool(fitted.finite)


@pytest.mark.parametrize("centered", [False, True])
def test_the_map_carries_a_certificate_that_holds(centered, dtype):
    phi, X = nystrom(dtype), points(dtype)
    Z, allowed = rows_of(phi, X, centered), noise_of(phi, X, centered)
    for num_components in (2, SIZE):
        fitted = fit(
            streaming_pca(phi, sketch_size=SIZE, centered=centered),
            X,
            num_components=num_components,
        )
        assert_certified(fitted, Z, allowed)
        assert isinstance(
            fitted, StreamingMap
        ) and fitted.num_features == num_components == int(fitted.rank)
        ours = fitted(X)
        assert ours.shape == (N, num_components) and ours.dtype == dtype
        W = np.float64(fitted.components)
        np.testing.assert_allclose(ours, Z @ W.T, atol=50 * eps(dtype))
        # A certificate of half the size would be wrong.
        assert (
            num_components < SIZE
            or np.linalg.norm(Z - Z @ W.T @ W, 2) ** 2 > float(fitted.shrinkage) / 2
        )
        # The spectral error of the inner products, as jaxkern.metrics has it.
        ours = np.float64(ours)
        error = np.linalg.norm(Z @ Z.T - ours @ ours.T, 2) / N
        assert (
            0.2 * float(fitted.relative_residual)
            < error
            <= float(fitted.relative_residual) + allowed
        )
        assert float(fitted.weight) == N
        np.testing.assert_allclose(
            fitted.variances, np.asarray(fitted.eigenvalues) / N, rtol=2 * eps(dtype)
        )
        assert float(fitted.relative_shrinkage) == pytest.approx(
            float(fitted.shrinkage) / N, rel=2 * eps(dtype)
        )


def test_the_other_variant_is_passed_on(x64):
    phi, X = nystrom("float64"), points("float64")
    pca = streaming_pca(phi, sketch_size=SIZE, shrink_at=SIZE // 2)
    assert (
        pca.init().sketch.shrink_at == SIZE // 2
        and pca.init().sketch.buffer.shape == (SIZE, M)
    )
    half, whole = fit(pca, X), fit(streaming_pca(phi, sketch_size=SIZE), X)
    assert float(half.shrinkage) > float(whole.shrinkage)


@pytest.mark.parametrize("centered", [False, True])
def test_weights_count_points_several_times(centered, x64, rng):
    phi, X = raw("float64"), low_rank("float64", 2.0)
    weights = jnp.asarray(rng.integers(0, 4, N), "float64")
    pca = streaming_pca(phi, sketch_size=SIZE, centered=centered)
    Z = rows_of(phi, X, centered, weights)
    fitted = fit(pca, X, (), weights)
    np.testing.assert_allclose(
        scatter(fitted), Z.T @ Z, rtol=0, atol=4 * noise_of(phi, X, centered)
    )
    assert float(fitted.weight) == float(weights.sum())
    assert not bool(fit(pca, X, (), -weights).finite)
    nothing = pca.update(pca.init(), X, jnp.zeros_like(weights))
    later = pca.finalize(pca.update(nothing, X, weights), num_components=SIZE)
    np.testing.assert_allclose(
        scatter(later), Z.T @ Z, rtol=0, atol=4 * noise_of(phi, X, centered)
    )


def test_a_common_offset_does_no_harm_where_centred():
    """Points 1e3 away from the origin in float32: the squares of the features are 1e6 times those of what matters."""
    X = low_rank("float32")
    far = X + np.float32(1000.0)
    Z = rows_of(raw("float32"), far, True)
    fitted = fit(
        streaming_pca(raw("float32"), sketch_size=SIZE, centered=True), far, CUTS
    )
    # Each point is known to 1e3 eps, and a scatter is linear in that.
    tolerance = 10 * N * 1e3 * eps("float32") * float(np.abs(Z).max())
    np.testing.assert_allclose(scatter(fitted), Z.T @ Z, rtol=0, atol=tolerance)
    assert tolerance < 0.03 * np.linalg.norm(Z, 2) ** 2


@pytest.mark.parametrize("centered", [False, True])
def test_empty_streams_and_single_points(centered):
    phi, X = nystrom("float32"), points("float32")
    pca = streaming_pca(phi, sketch_size=SIZE, centered=centered)
    empty = pca.init()
    for state in (empty, pca.update(empty, X[:0]), pca.merge(empty, empty)):
        fitted = pca.finalize(state, num_components=2)
        assert (
            int(fitted.rank)
            == 0
            == float(fitted.weight)
            == float(fitted.relative_shrinkage)
        )
        assert (
            not np.asarray(fitted(X)).any()
            and not np.asarray(fitted.variances).any()
            and bool(fitted.finite)
        )
    one = pca.update(empty, X[:1])
    for state in (one, pca.merge(one, empty), pca.merge(empty, one)):
        fitted = pca.finalize(state, num_components=2)
        assert int(fitted.rank) == (0 if centered else 1) and float(fitted.weight) == 1
        expected = 0 if centered else squared(phi(X[:1]))
        assert float(fitted.eigenvalues[0]) == pytest.approx(
            expected, abs=20 * eps("float32")
        )
        if centered:
            np.testing.assert_allclose(fitted.mean, phi(X[0]), atol=4 * eps("float32"))


def test_memory_does_not_grow_with_the_stream():
    phi = nystrom("float32")
    pca = streaming_pca(phi, sketch_size=SIZE, centered=True)
    state, X = pca.init(), points("float32", 0, 1000)
    assert largest_intermediate(pca.update, state, X) <= 1000 * M
    assert sum(leaf.size for leaf in jax.tree.leaves(state)) <= (2 * SIZE + 1) * M + 10
    again = pca.update(state, X)
    assert jax.tree.structure(again) == jax.tree.structure(
        state
    )  # as `jax.lax.scan` needs it
    forms = (
        [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(tree)]
        for tree in (again, state)
    )
    assert next(forms) == next(forms)


def test_bad_arguments_are_refused_by_name(x64):
    phi, X = nystrom("float32"), points("float32")
    pca = streaming_pca(phi, sketch_size=SIZE)
    state = pca.update(pca.init(), X)
    other = streaming_pca(phi, sketch_size=SIZE, centered=True)
    calls = [
        (
            lambda: streaming_pca(Gaussian(1.0), sketch_size=2),
            "phi must be a feature map",
        ),
        (
            lambda: streaming_pca(lambda X: X, sketch_size=2),
            "phi must be a feature map",
        ),
        (
            lambda: streaming_pca(phi, sketch_size=0),
            "sketch_size must be at least 1, got 0",
        ),
        (
            lambda: streaming_pca(phi, sketch_size=2, shrink_at=9),
            "shrink_at must be at most 3",
        ),
        (
            lambda: streaming_pca(phi, sketch_size=2, centered=1),
            "centered must be True or False, got 1",
        ),
        (
            lambda: pca.finalize(state, num_components=SIZE + 1),
            r"num_components must be at most 6 .the sketch size.",
        ),
        (
            lambda: pca.finalize(state.sketch, num_components=1),
            "state must be a StreamingState, got State",
        ),
        (lambda: other.update(state, X), "state must be a state of this stream"),
        (lambda: pca.merge(state, other.init()), "b must be a state of this stream"),
        (lambda: pca.update(state, X[:, :2]), r"X must have shape \(..., 3\)"),
        (
            lambda: pca.update(pca.init("float64"), X),
            "must have the dtype of the state",
        ),
    ]
    for call, message in calls:
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.usefixtures("x64")
def test_a_lengthscale_that_was_a_python_number_does_not_choose_the_dtype():
    phi = paired_fourier(
        jax.random.key(0), Gaussian(1.5), 3, num_frequencies=4, dtype="float32"
    )
    pca = streaming_pca(phi, sketch_size=2)
    state = pca.update(pca.init(), jnp.ones((5, 3), "float32"))
    assert state.sketch.buffer.dtype == jnp.float32
