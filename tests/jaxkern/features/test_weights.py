"""Weights of rows in operators, maps and streams: 0 is as if the row did not stand there, 2 as if it did twice."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import Identity, eps, literal_gram
from support.padded import all_padded, check_slopes, padded

from jaxkern import features, rkhs
from jaxkern import frequent_directions as fd
from jaxkern._weights import order, present
from jaxkern.gram import center, gram
from jaxkern.kernels import Gaussian, Linear

SIZE, DIM, KERNEL, KEY = 12, 2, Gaussian(0.7), jax.random.key(3)


def double(X):
    """Tell what is centred and normalised: in double precision all is, in single precision nothing."""
    return X.dtype == np.float64


def probe(X):
    """Points of no data set, and a function, in the dtype of X."""
    points = np.linspace(-1, 1, 5 * DIM, dtype=X.dtype).reshape(5, DIM)
    return points, rkhs.Function(KERNEL, points, points[:, 0])


def sampling(X, w):
    (points, f), S = probe(X), rkhs.SamplingOperator(KERNEL, X, w)
    values = S(f)
    found = jnp.trace(S.gram()), jnp.sum(values**2)
    if w is None:
        return *found, S.adjoint(values)(points), center(gram(KERNEL, X))[:SIZE, :SIZE]
    exists, those = w > 0, order(w)[:SIZE]
    K = jnp.where(
        exists[:, None] & exists[None, :], gram(KERNEL, present(X, w)), jnp.nan
    )
    return (
        *found,
        S.adjoint(jnp.where(exists, values, jnp.nan))(points),
        center(K, weights=w)[those][:, those],
    )


def covariance(X, w):
    (points, f), Sigma = probe(X), rkhs.Covariance(KERNEL, X, w, centered=double(X))
    return (
        Sigma.total,
        Sigma.trace(1.5),
        Sigma.kappa(),
        Sigma.mean()(points),
        Sigma(f, power=2.5)(points),
    )


def drawn(X, w):
    (points, f), Sigma, power = (
        probe(X),
        rkhs.Covariance(KERNEL, X, w, centered=double(X)),
        2 + double(X),
    )
    theta = rkhs.RandomProjection(KEY, Sigma, num_features=4, power=power)
    phi = features.kernel_jl(
        KEY, KERNEL, X, num_features=4, centered=double(X), weights=w
    )
    return (
        theta(f),
        rkhs.draw_gaussian(KEY, Sigma, power=power)(points),
        phi(points),
        phi.embed(f),
    )


def products(phi, X):
    Z = phi(probe(X)[0])
    return Z @ Z.T


def nystrom(X, w):
    full, few = (
        features.nystrom(KERNEL, X, rank=rank, weights=w) for rank in (None, 3)
    )
    over = features.nystrom(KERNEL, probe(X)[0], X=X, X_weights=w)
    found = products(full, X), full.rank, products(few, X), few.eigenvalues, few.rank
    return *found, few.trace_residual, over.trace_residual, 1 + full.trace_residual


def pca(X, w):
    (points, f), flag = probe(X), double(X)
    phi = features.kernel_pca(
        KERNEL, X, num_components=3, centered=flag, normalized=flag, weights=w
    )
    again = rkhs.Function(KERNEL, phi.landmarks, phi.coefficients(phi(points)))(points)
    found = (
        phi.eigenvalues,
        phi.rank,
        phi.total_variance,
        phi.explained_variance,
        phi.explained_variance_ratio,
    )
    found += (
        products(phi, X),
        jnp.abs(phi.embed(f)),
        phi.reconstruction_residual(points),
        phi.mean_square,
        again,
    )
    raw = features.paired_fourier(
        KEY, KERNEL, DIM, num_frequencies=8, dtype=X.dtype
    )  # 12 < 16 features < 17
    phi = features.random_feature_pca(
        raw, X, num_components=3, centered=flag, weights=w
    )
    return *found, products(phi, X), phi.eigenvalues, phi.total_variance, phi.rank


def streams(X, w):
    stream = features.streaming_pca(
        Identity(jnp.eye(DIM, dtype=X.dtype)), sketch_size=2, centered=double(X)
    )
    state, sketch = stream.init(), fd.init(3, DIM, X.dtype)
    for part in (slice(None, 7), slice(7, None)):
        batch = X[part], None if w is None else w[part]
        state, sketch = stream.update(state, *batch), fd.update(sketch, *batch)
    phi, B = stream.finalize(state, num_components=2), fd.finalize(sketch)
    found = (
        products(phi, X),
        phi.eigenvalues,
        phi.squared_norm,
        phi.weight,
        state.sketch.num_rows,
    )
    phi = features.kernel_pca(KERNEL, X, num_components=3, weights=w)
    residual = features.preimage(phi, phi(probe(X)[0]), num_steps=20).residual
    return *found, B.rows.T @ B.rows, B.shrinkage, B.squared_norm, B.num_rows, residual


def points(rng, dtype):
    X = rng.normal(size=(SIZE, DIM)).astype(dtype)
    X[4] = X[3]
    return X


def with_gradient(function, X, w):
    """Return what a function returns, and the gradient of one combination of it."""

    def combined(X):
        found = function(X, w)
        floats = [
            leaf.ravel() for leaf in found if jnp.issubdtype(leaf.dtype, jnp.floating)
        ]
        return jnp.concatenate(floats) @ jnp.cos(
            jnp.arange(sum(map(len, floats)), dtype=X.dtype)
        ), found

    return jax.grad(combined, has_aux=True)(X)


@pytest.mark.parametrize(
    "function", [sampling, covariance, drawn, nystrom, pca, streams]
)
def test_a_padded_set_gives_what_the_set_alone_gives(function, dtype, rng):
    """Whatever stands in rows of weight zero, at the end or between, under jit, vmap and grad, with the same keys.

    Then four negative weights, and a weight of two against the row twice, where nothing is random or sketched.
    """
    X, sloped = points(rng, dtype), function is not streams and dtype == np.float64
    both = (
        (lambda X, w: with_gradient(function, X, w))
        if sloped
        else lambda X, w: (jnp.zeros(()), function(X, w))
    )
    slope, alone = jax.device_get(jax.jit(lambda X: both(X, None))(X))
    (filled, weights), (twice, ones) = (
        all_padded(X),
        padded(np.concatenate([X, X[:4]]), extra=1),
    )
    unfit, two = (
        weights[0] * np.where(np.arange(SIZE + 5) < 4, entry, 1).astype(dtype)
        for entry in (-1, 2)
    )
    filled, weights = (
        np.stack([*filled, filled[0], filled[0], twice]),
        np.stack([*weights, unfit, two, ones]),
    )
    slopes, found = jax.device_get(jax.jit(jax.vmap(both))(filled, weights))
    if sloped:
        check_slopes(slopes[:6], slope, 1e3 * eps(dtype) * np.abs(slope).max())
    for many, exact in zip(found, alone, strict=True):
        np.testing.assert_allclose(
            many[:6], [exact] * 6, rtol=0, atol=200 * eps(dtype) * np.abs(exact).max()
        )
        assert many.dtype != dtype or np.isnan(many[6]).all()
        if function not in (drawn, streams):
            np.testing.assert_allclose(
                many[7], many[8], rtol=0, atol=1e3 * eps(dtype) * np.abs(many[8]).max()
            )


def test_the_number_of_rows_that_exist_decides_what_is_rounding():
    """Points on the axes, whose least eigenvalue is above the cut-off of 4 rows and below that of 104."""
    axes = np.eye(4, 104, dtype=np.float32)
    X, weights = padded(
        np.sqrt(np.float32([[1], [1], [1], [5 * eps("float32")]])) * axes, extra=100
    )
    root = rkhs.Function(Linear(), axes[3:], np.ones(1, np.float32))

    @jax.jit
    def found(X, weights):
        Sigma = rkhs.Covariance(Linear(), X, weights)
        pca = features.kernel_pca(
            Linear(), X, num_components=9, centered=False, weights=weights
        )
        raw = features.random_feature_pca(
            lambda X: X, X, num_components=9, centered=False, weights=weights
        )
        ranks = (
            features.nystrom(Linear(), X, weights=weights).rank,
            pca.rank,
            raw.rank,
            (Sigma.eigenvalues() > 0).sum(),
        )
        return *ranks, Sigma.inner(root, root, power=1.5) > 0

    assert [*map(int, found(X, weights))] == [4, 4, 4, 4, 1]


def test_a_set_of_one_row_and_the_eigensolver_on_the_host(x64, rng):
    """One point: its section is the span, the mean and the one direction. Many: ARPACK on the padded matrix."""
    X, x = probe(np.ones(1))[0], np.float64([[0.3, -0.2]])
    filled, weights = padded(x)
    k = literal_gram(X, x, 0.7)[:, 0]

    @jax.jit
    def one(filled, weights):
        phi = features.kernel_pca(KERNEL, filled, num_components=2, weights=weights)
        nystrom = features.nystrom(KERNEL, filled, weights=weights)
        return (
            products(nystrom, X),
            phi.reconstruction_residual(X),
            phi.rank,
            phi(X),
            phi.mean_square,
        )

    product, residual, *exact = jax.device_get(one(filled, weights))
    np.testing.assert_allclose(product, np.outer(k, k))
    np.testing.assert_allclose(residual, 2 - 2 * k)
    assert exact[0] == 0 and (exact[1] == 0).all() and exact[2] == 1
    many = rng.normal(size=(405, DIM))
    filled, weights = padded(many, pattern="between")
    found = features.kernel_pca(KERNEL, filled, num_components=3, weights=weights)
    alone = features.kernel_pca(KERNEL, many, num_components=3)
    Z, expected = (np.asarray(phi(X)) for phi in (found, alone))
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, rtol=0, atol=1e-11)
    with pytest.raises(
        ValueError, match="X_weights are those of the rows of X, and X is None"
    ):
        features.nystrom(KERNEL, many, X_weights=np.ones(405))
    for fit in (
        features.kernel_pca,
        lambda *args, weights, **sizes: rkhs.SamplingOperator(*args, weights).gram(),
    ):
        with pytest.raises(ValueError, match="weights must have a positive sum"):
            fit(KERNEL, many, num_components=1, weights=np.zeros(405))
