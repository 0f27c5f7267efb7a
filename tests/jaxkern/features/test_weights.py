"""Weights of rows in operators, maps and streams: 0 is as if the row did not stand there, 2 as if it did twice."""

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.numerics import Identity, literal_gram
from support.padded import all_padded, check_differences, padded

from jaxkern import features, rkhs
from jaxkern import frequent_directions as fd
from jaxkern.gram import center, gram
from jaxkern.kernels import Gaussian, Linear

pytestmark = pytest.mark.float64

SIZE = 12
"""Rows, fewer than the 16 random features; a set that is filled up has 17, more than these."""
DIM = 2
KERNEL = Gaussian(0.7)
PROBES = np.linspace(-1, 1, 5 * DIM).reshape(5, DIM)
"""Points of no data set."""


def function():
    return rkhs.Function(KERNEL, PROBES, PROBES[:, 0])


def sampling(X, w):
    """The sampling operator, whose results at rows of weight zero mean nothing, and a centred Gram matrix."""
    S = rkhs.SamplingOperator(KERNEL, X, w)
    values = S(function())
    exists = jnp.ones(SIZE, bool) if w is None else w > 0
    adjoint = S.adjoint(jnp.where(exists, values, jnp.nan))(PROBES)
    rows = jnp.argsort(~exists, stable=True)[:SIZE]
    points = jnp.where(exists[:, None], X, 0)
    K = jnp.where(exists[:, None] & exists[None, :], gram(KERNEL, points), jnp.nan)
    centred = center(K, weights=w)[rows][:, rows]
    return jnp.trace(S.gram()), jnp.sum(values**2), adjoint, centred


def covariance(X, w):
    sigma = rkhs.Covariance(KERNEL, X, w, centered=True)
    scalars = (sigma.total, sigma.trace(1.5), sigma.kappa())
    return *scalars, sigma.mean()(PROBES), sigma(function(), power=2.5)(PROBES)


def drawn(X, w):
    key = jax.random.key(3)
    sigma = rkhs.Covariance(KERNEL, X, w, centered=True)
    theta = rkhs.RandomProjection(key, sigma, num_features=4, power=3)
    sizes = {"num_features": 4, "centered": True}
    phi = features.kernel_jl(key, KERNEL, X, weights=w, **sizes)
    draws = rkhs.draw_gaussian(key, sigma, power=3)(PROBES)
    return theta(function()), draws, phi(PROBES), phi.embed(function())


def products(phi):
    Z = phi(PROBES)
    return Z @ Z.T


def nystrom(X, w):
    full = features.nystrom(KERNEL, X, weights=w)
    few = features.nystrom(KERNEL, X, rank=3, weights=w)
    over = features.nystrom(KERNEL, PROBES, X=X, X_weights=w)
    of_full = (products(full), full.rank, 1 + full.trace_residual)
    of_few = (products(few), few.eigenvalues, few.rank, few.trace_residual)
    return *of_full, *of_few, over.trace_residual


def pca(X, w):
    phi = features.kernel_pca(KERNEL, X, num_components=3, weights=w)
    weights = phi.coefficients(phi(PROBES))
    again = rkhs.Function(KERNEL, phi.landmarks, weights)(PROBES)
    variances = (phi.eigenvalues, phi.rank, phi.total_variance, phi.explained_variance)
    maps = (products(phi), jnp.abs(phi.embed(function())), again)
    residual = phi.reconstruction_residual(PROBES)
    return *variances, phi.explained_variance_ratio, *maps, residual, phi.mean_square


def pca_of_features(X, w):
    key = jax.random.key(3)
    raw = features.paired_fourier(key, KERNEL, DIM, num_frequencies=8, dtype=X.dtype)
    sizes = {"num_components": 3, "centered": False}
    phi = features.random_feature_pca(raw, X, weights=w, **sizes)
    return products(phi), phi.eigenvalues, phi.total_variance, phi.rank


def streams(X, w):
    identity = Identity(jnp.eye(DIM))
    stream = features.streaming_pca(identity, sketch_size=2, centered=True)
    state = stream.init()
    sketch = fd.init(3, DIM, X.dtype)
    for part in (slice(None, 7), slice(7, None)):
        batch = (X[part], None if w is None else w[part])
        state = stream.update(state, *batch)
        sketch = fd.update(sketch, *batch)
    phi = stream.finalize(state, num_components=2)
    B = fd.finalize(sketch)
    of_map = (products(phi), phi.eigenvalues, phi.squared_norm, phi.weight)
    return *of_map, B.rows.T @ B.rows, B.shrinkage, B.squared_norm, B.num_rows


def preimage(X, w):
    phi = features.kernel_pca(KERNEL, X, num_components=3, weights=w)
    return (features.preimage(phi, phi(PROBES), num_steps=20).residual,)


FUNCTIONS = (
    sampling,
    covariance,
    drawn,
    nystrom,
    pca,
    pca_of_features,
    streams,
    preimage,
)
LOOPS = (streams, preimage)
"""Without gradients: sketches have none, and 20 steps of a search have one that says nothing."""
RANDOM = (drawn, streams)
"""Functions in which a row that stands there twice is not a weight of two: it is drawn or sketched on its own."""


def combined(results):
    """Return one combination of the floating results of a function."""
    floats = [x for x in results if jnp.issubdtype(x.dtype, jnp.floating)]
    numbers = jnp.concatenate([x.ravel() for x in floats])
    return numbers @ np.cos(np.arange(len(numbers)))


def with_gradient(function, X, w):
    """Return the gradient of a combination of what a function returns, and what it returns."""

    def total(X):
        results = function(X, w)
        return combined(results), results

    if function in LOOPS:
        return jnp.zeros(()), function(X, w)
    return jax.grad(total, has_aux=True)(X)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_padded_set_gives_what_the_set_alone_gives(function):
    """Whatever stands in rows of weight zero, at the end or between, under jit, vmap and grad, with the same keys.

    Then four negative weights, and a weight of two against the row twice.
    """
    rng = house.rng()
    X = rng.normal(size=(SIZE, DIM))
    step = 1e-5 * rng.normal(size=(SIZE, DIM))
    X[4] = X[3]
    step[4] = step[3]  # a distance of 0 has slope 0
    sets, weights = all_padded(X)
    twice, ones = padded(np.concatenate([X, X[:4]]), extra=1)
    is_first = np.arange(SIZE + 5) < 4
    negative = weights[0] * np.where(is_first, -1.0, 1.0)
    two = weights[0] * np.where(is_first, 2.0, 1.0)
    sets = np.stack([*sets, sets[0], sets[0], twice])
    weights = np.stack([*weights, negative, two, ones])
    program = jax.jit(jax.vmap(lambda X, w: with_gradient(function, X, w)))
    slopes, results = jax.device_get(program(sets, weights))
    alone = jax.jit(lambda X: function(X, None))
    for many, exact in zip(results, jax.device_get(alone(X)), strict=True):
        rounding = 200 * house.eps() * np.abs(exact).max()
        np.testing.assert_allclose(many[:6], [exact] * 6, rtol=0, atol=rounding)
        assert many.dtype.kind != "f" or np.isnan(many[6]).all()
        if function not in RANDOM:
            rounding = 1e3 * house.eps() * np.abs(many[8]).max()
            np.testing.assert_allclose(many[7], many[8], rtol=0, atol=rounding)
    if function not in LOOPS:
        up = float(combined(jax.device_get(alone(X + step))))
        down = float(combined(jax.device_get(alone(X - step))))
        rounding = 1e-6 * np.abs(slopes[0, :SIZE] * step).sum()
        check_differences({"X": slopes}, {"X": step}, (up - down) / 2, rounding)


def test_the_number_of_rows_that_exist_decides_what_is_rounding():
    """Points on the axes, whose least eigenvalue is above the cut-off of 4 rows and below that of 104."""
    axes = np.eye(4, 104)
    roots = np.sqrt(np.array([[1], [1], [1], [5 * house.eps()]]))
    X, weights = padded(roots * axes, extra=100)
    last = rkhs.Function(Linear(), axes[3:], np.ones(1))
    sizes = {"num_components": 9, "centered": False, "weights": weights}
    sigma = rkhs.Covariance(Linear(), X, weights)
    ranks = (
        features.nystrom(Linear(), X, weights=weights).rank,
        features.kernel_pca(Linear(), X, **sizes).rank,
        features.random_feature_pca(lambda X: X, X, **sizes).rank,
        (np.asarray(sigma.eigenvalues()) > 0).sum(),
    )
    assert [int(rank) for rank in ranks] == [4, 4, 4, 4]
    assert sigma.inner(last, last, power=1.5) > 0


def test_a_set_of_one_row():
    """Its section is the span, the mean and the one direction."""
    x = np.array([[0.3, -0.2]])
    filled, weights = padded(x)
    k = literal_gram(PROBES, x, 0.7)[:, 0]
    phi = features.kernel_pca(KERNEL, filled, num_components=2, weights=weights)
    projection = features.nystrom(KERNEL, filled, weights=weights)
    np.testing.assert_allclose(products(projection), np.outer(k, k))
    np.testing.assert_allclose(phi.reconstruction_residual(PROBES), 2 - 2 * k)
    assert int(phi.rank) == 0 and float(phi.mean_square) == 1
    assert not np.asarray(phi(PROBES)).any()


def test_the_eigensolver_on_the_host_leaves_out_rows_of_weight_zero():
    many = house.rng().normal(size=(405, DIM))  # rows from which on ARPACK is used
    filled, weights = padded(many, pattern="between")
    weighted = features.kernel_pca(KERNEL, filled, num_components=3, weights=weights)
    alone = features.kernel_pca(KERNEL, many, num_components=3)
    expected = np.asarray(products(alone))
    np.testing.assert_allclose(products(weighted), expected, rtol=0, atol=1e-11)


def test_weights_of_no_row_are_refused():
    X = np.ones((3, DIM))
    with pytest.raises(ValueError, match="X_weights are those of the rows of X, and X"):
        features.nystrom(KERNEL, X, X_weights=np.ones(3))
    with pytest.raises(ValueError, match="weights must have a positive sum"):
        rkhs.SamplingOperator(KERNEL, X, np.zeros(3)).gram()
