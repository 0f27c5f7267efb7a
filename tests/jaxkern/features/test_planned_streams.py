"""Planned streams keep Gram matrices of whatever points hypothesis draws, and their certificates hold at every draw.

A trial is one draw of features and one stream of all points, or two streams that are merged. What the sketch lost has
to be within its certificate every time. |G - Gtilde|_2 / n exceeds EPS with probability DELTA at most, so that more
than ALLOWED failures among DRAWS independent ones have probability 1e-9 at most: the false-alarm rate of an example. A
stream that fails seven times in ten is found with a probability above 0.99.
"""

from functools import partial

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy import stats
from support.drawn import PLAIN, N, drawn

from jaxkern import features, kernels, plan
from jaxkern.gram import gram
from jaxkern.linalg import matmul

EPS = 0.4
DELTA = 0.1
DRAWS = 40
ALLOWED = int(stats.binom.isf(1e-9, DRAWS, DELTA))
PLANNED = plan.streaming(EPS, DELTA, num_points=N)
FIRST = np.arange(N) < 2 * N // 3
"""The points of the first of two streams: the last place of `places(3)` is left out."""


def places(count):
    """Return N points in so many distant places, as many in each, place after place."""
    rng = house.rng()
    # Ten lengthscales apart kernel values are zero, and as near as 1e-4 they are one.
    centers = 10 * rng.normal(size=(count, 3))
    return centers[np.arange(N) * count // N] + 1e-4 * rng.normal(size=(N, 3))


@partial(jax.jit, static_argnames="sketch_size")
def trials(key, kernel, X, first, factor, *, sketch_size):
    """Return what a stream, two merged ones and the first of these alone have lost, by draw of the features.

    `error` is |G - Gtilde|_2 / n, and `lost` are the least and the largest eigenvalue of Ghat - Gtilde.
    """
    G = gram(kernel, X)

    def trial(key):
        phi = features.paired_fourier(
            key, factor * kernel, 3, num_frequencies=PLANNED.num_frequencies
        )
        pca = features.streaming_pca(phi, sketch_size=sketch_size)
        empty = pca.init(X.dtype)
        a, b = (pca.update(empty, X, weights) for weights in (first, 1 - first))
        states = (pca.update(empty, X), pca.merge(a, b), a)
        Z = phi(X)

        def judge(state):
            fitted = pca.finalize(state, num_components=sketch_size)
            scores = fitted(X)
            # One decomposition of a stack: two of them may wait for each other.
            gaps = jnp.stack([matmul(Z, Z.T), G]) - matmul(scores, scores.T)[None]
            lost, error = jnp.linalg.eigvalsh(gaps)
            return {
                "error": jnp.max(jnp.abs(error)) / N,
                "lost": lost[jnp.array([0, -1])],
                "residual": fitted.residual,
                "shrinkage": fitted.shrinkage,
            }

        return jax.vmap(judge)(jax.tree.map(lambda *leaves: jnp.stack(leaves), *states))

    return jax.lax.map(trial, jax.random.split(key, DRAWS), batch_size=10)


def outcomes(X, kernel=None, *, factor=1.0, size=PLANNED.sketch_size, seed=0):
    dtype = house.dtype()
    if kernel is None:
        kernel = kernels.Gaussian(dtype.type(1))
    results = trials(
        house.key(seed),
        kernel,
        np.asarray(X, dtype),
        FIRST.astype(dtype),
        dtype.type(factor),
        sketch_size=size,
    )
    return jax.device_get(results)


def is_certified(results, stream):
    """Tell whether a sketch lost between nothing and its certificate at every draw, which is within its own bound."""
    # Of inner products of N unit vectors, in the spectral norm: far below what a certificate may be.
    rounding = 20 * N * house.eps()
    lost = results["lost"][:, stream]
    upper = results["residual"][:, stream] + rounding
    # |Z|_F^2 = N over the sketch size plus one.
    limit = N / (PLANNED.sketch_size + 1) + rounding
    holds = (lost[:, 0] >= -rounding) & (lost[:, 1] <= upper)
    return bool((holds & (results["shrinkage"][:, stream] <= limit)).all())


def failures(results, stream):
    return int((results["error"][:, stream] > EPS).sum())


def check(results):
    for stream in (0, 1):
        assert is_certified(results, stream)
        assert failures(results, stream) <= ALLOWED


def check_drawn(case, kernel):
    lengthscale = house.dtype().type(10**case.lengthscale)
    _, X, _, _ = case.given()
    check(outcomes(X, kernel(lengthscale), seed=case.seed))


@given(case=drawn())
@example(case=PLAIN)
def test_planned_streams_keep_the_gram_matrix(case):
    check_drawn(case, kernels.Gaussian)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_they_keep_the_gram_matrix_of_few_places(count):
    """G has so many eigenvalues, which are equal."""
    check(outcomes(places(count)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["Gaussian", "Laplacian", "Exponential", "Cauchy", "Matern32", "Matern52"]
)
@given(case=drawn())
@settings(max_examples=100)
def test_planned_streams_keep_the_gram_matrix_of_every_kernel(name, case):
    """600 examples: false alarms below 2e-6."""
    check_drawn(case, getattr(kernels, name))


def test_rows_that_were_dropped_are_caught():
    assert not is_certified(outcomes(places(3)), 2)


def test_features_without_their_constant_are_caught():
    assert failures(outcomes(places(1), factor=0.5), 0) > ALLOWED


@pytest.mark.slow
def test_a_quarter_of_the_planned_sketch_is_caught():
    """One row holds one of two places; the other half of the points is lost."""
    assert failures(outcomes(places(2), size=PLANNED.sketch_size // 4), 0) > ALLOWED
