"""Three orders of composition agree: a stream fitted to all points, batch by batch, and in parts that are merged.

Exactly, to rounding, while what is streamed has a rank below the sketch size, and within the certificates above it.
"""

from functools import cache
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import Identity, noise_of, rows_of, scatter, squared

from jaxkern import features
from jaxkern import frequent_directions as fd
from jaxkern.features import streaming_pca
from jaxkern.kernels import Gaussian

N, M, SIZE = 60, 12, 6
BATCH = 20
OFFSET = 30.0


def points(dtype, seed=0, num=N):
    return jnp.asarray(
        np.random.default_rng([seed, 7]).normal((1.0, 0.0, -2.0), size=(num, 3)), dtype
    )


def gaussian(dtype):
    return Gaussian(jnp.asarray(0.7, dtype))


MAPS = {
    "identity": lambda dtype: Identity(jnp.eye(M, dtype=dtype)),
    "paired_fourier": lambda dtype: features.paired_fourier(
        jax.random.key(1), gaussian(dtype), 3, num_frequencies=M // 2, dtype=dtype
    ),
    "nystrom": lambda dtype: features.nystrom(gaussian(dtype), points(dtype, 1, M)),
}
"""All with M features."""


@cache
def stream_of(name, dtype, centered):
    phi = MAPS[name](dtype)
    return phi, streaming_pca(phi, sketch_size=SIZE, centered=centered)


QUICK = ("identity", True), ("paired_fourier", False)
CASES = [
    pytest.param(case, marks=[pytest.mark.slow] * (case not in QUICK))
    for case in product(MAPS, (False, True))
]


@pytest.fixture(params=CASES)
def case(request):
    """Run the test in single precision, and with plain rows in double."""
    name, centered = request.param
    dtype = "float64" if name == "identity" else "float32"
    with jax.enable_x64(dtype == "float64"):
        yield name, dtype, centered


def of_rank_four(name, dtype):
    """Return points whose features span four dimensions: in many places far from the origin, or in four places."""
    if name == "identity":
        rng = np.random.default_rng(11)
        Z = rng.normal(size=(N, 3)) @ rng.normal(size=(3, M)) + OFFSET * rng.normal(
            size=M
        )
        return Z.astype(dtype)
    return np.asarray(points(dtype, 2, 4))[np.random.default_rng(12).integers(0, 4, N)]


def of_full_rank(name, dtype):
    if name == "identity":
        return (
            np.random.default_rng(13).normal(size=(N, M)) * np.geomspace(1, 0.1, M)
            + 0.5
        ).astype(dtype)
    return np.asarray(points(dtype))


@cache
def one_by_one(pca):
    def step(state, x):
        return pca.update(state, x[None]), None

    return jax.jit(lambda X: jax.lax.scan(step, pca.init(X.dtype), X)[0])


def in_order(pca, X, *, single=True):
    """Return the states of one stream: all points at once, in batches, and one by one."""
    batched = pca.init()
    for start in range(0, N, BATCH):
        batched = pca.update(batched, X[start : start + BATCH])
    states = [pca.update(pca.init(), X), batched]
    return [*states, one_by_one(pca)(X)] if single else states


def merged(pca, X):
    """Return the states of three streams merged: as a list either way, as a tree, in two parts, and with nothing."""
    a, b, c = (
        pca.update(pca.init(), X[start : start + BATCH]) for start in range(0, N, BATCH)
    )
    merge = pca.merge
    return [
        merge(merge(a, b), c),
        merge(a, merge(b, c)),
        merge(c, merge(b, a)),
        merge(pca.update(a, X[BATCH : 2 * BATCH]), c),
        merge(pca.init(), merge(merge(a, c), merge(b, pca.init()))),
    ]


def test_below_the_sketch_size_all_orders_give_principal_components(case):
    """Rank 4, and 3 about the mean: it is plain PCA whatever the order."""
    (phi, pca), X, centered = stream_of(*case), of_rank_four(*case[:2]), case[2]
    Z, tolerance = rows_of(phi, X, centered), noise_of(phi, X, centered)
    assert np.linalg.matrix_rank(Z, tol=1e-4 * np.linalg.norm(Z, 2)) == 4 - centered
    for state in (*in_order(pca, X, single=case[0] == "identity"), *merged(pca, X)):
        fitted = pca.finalize(state, num_components=SIZE)
        np.testing.assert_allclose(scatter(fitted), Z.T @ Z, rtol=0, atol=tolerance)
        assert float(fitted.shrinkage) <= tolerance and float(fitted.weight) == N
        np.testing.assert_allclose(
            fitted.mean,
            centered * np.float64(phi(X)).mean(0),
            rtol=0,
            atol=tolerance / N**0.5,
        )
    ours = np.float64(fitted(X))
    np.testing.assert_allclose(ours @ ours.T, Z @ Z.T, rtol=0, atol=tolerance)
    assert tolerance < 0.02 * np.linalg.norm(Z.T @ Z, 2)


def test_above_the_sketch_size_all_orders_agree_within_their_certificates(case):
    (phi, pca), X, centered = stream_of(*case), of_full_rank(*case[:2]), case[2]
    Z, tolerance = rows_of(phi, X, centered), noise_of(phi, X, centered)
    assert np.linalg.matrix_rank(Z, tol=1e-4 * np.linalg.norm(Z, 2)) > SIZE
    ordered = [
        pca.finalize(s, num_components=SIZE)
        for s in in_order(pca, X, single=case[0] == "identity")
    ]
    others = [pca.finalize(s, num_components=SIZE) for s in merged(pca, X)]
    whole = ordered[0]
    for fitted in ordered:  # the batches do not matter: the same sketch
        np.testing.assert_allclose(
            scatter(fitted), scatter(whole), rtol=0, atol=tolerance
        )
        assert float(fitted.shrinkage) == pytest.approx(
            float(whole.shrinkage), abs=tolerance
        )
    differ = 0
    for fitted in (*ordered, *others):
        shrinkage, W = float(fitted.shrinkage), np.float64(fitted.components)
        left = np.linalg.eigvalsh(Z.T @ Z - scatter(fitted))
        assert -tolerance <= left[0] and left[-1] <= shrinkage
        assert np.linalg.norm(Z - Z @ W.T @ W, 2) ** 2 <= float(fitted.residual)
        assert tolerance < shrinkage <= squared(Z) / (SIZE + 1) + tolerance
        # Both lie below Z'Z, each by its shrinkage at most.
        apart = np.abs(np.linalg.eigvalsh(scatter(fitted) - scatter(whole))).max()
        assert apart <= max(shrinkage, float(whole.shrinkage))
        np.testing.assert_allclose(
            fitted.mean, whole.mean, rtol=0, atol=tolerance / N**0.5
        )
        differ += apart > 10 * tolerance
    assert differ > 0


def test_a_merge_without_the_means_is_caught(x64):
    """The control where centred: scatters about the means of the parts do not add up to that about the mean."""
    phi, pca = stream_of("identity", "float64", True)
    X = np.array(of_rank_four("identity", "float64"))
    X[:BATCH] += 1.0
    a, b, c = (
        pca.update(pca.init(), X[start : start + BATCH]) for start in range(0, N, BATCH)
    )
    b = pca.merge(b, c)
    Z, tolerance = rows_of(phi, X, True), noise_of(phi, X, True)
    good = pca.finalize(pca.merge(a, b), num_components=SIZE)
    np.testing.assert_allclose(scatter(good), Z.T @ Z, rtol=0, atol=tolerance)
    sketch = fd.finalize(fd.merge(a.sketch, b.sketch))
    wrong = np.float64(sketch.rows).T @ np.float64(sketch.rows)
    assert np.abs(wrong - Z.T @ Z).max() > 10 * tolerance
