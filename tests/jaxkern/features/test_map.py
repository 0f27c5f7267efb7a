"""What holds of every feature map: keys, blocks, dtypes, transformations, files, bad input, gradients, many at once."""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.maps import MAPS, NUM_LANDMARKS, products, size
from support.numerics import eps

from jaxkern import features, io, scale
from jaxkern.kernels import Exponential, Gaussian

N, DIM = 10, 5
LENGTHSCALE = 1.5

QUICK = [
    pytest.param(name, marks=() if name == MAPS[name].function else pytest.mark.slow)
    for name in MAPS
]
every = pytest.mark.parametrize("name", QUICK)


def data(dtype="float32"):
    """Return points, and landmarks so far apart that no eigenvalue is small."""
    rng = np.random.default_rng(20201)
    X, L = rng.normal(size=(N, DIM)), 1.5 * rng.normal(size=(NUM_LANDMARKS, DIM))
    return X.astype(dtype), L.astype(dtype)


def make(name, points, seed=0, kernel=Gaussian):
    return MAPS[name].make(
        jax.random.key(seed), kernel(jnp.asarray(LENGTHSCALE, points.dtype)), points
    )


@cache
def fitted(name):
    """Return a map in single precision, made once for all tests."""
    return make(name, data()[1])


def rounding(phi, dtype="float32"):
    """Twelve terms to add, and phases or distances of DIM terms of a few units each: 50 eps of what is added."""
    return 50 * eps(dtype) * size(phi)


def same_bits(a, b):
    leaves, others = jax.tree.leaves(a), jax.tree.leaves(b)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    return all(
        x.dtype == y.dtype and np.array_equal(x, y)
        for x, y in zip(leaves, others, strict=True)
    )


def test_every_map_of_the_package_has_an_entry():
    makers = {name for name in features.__all__ if name.islower()} - {
        "as_map",
        "preimage",
    }
    assert {entry.function for entry in MAPS.values()} == makers


@every
def test_features_have_their_number_their_dtype_and_the_leading_axes_of_the_points(
    name,
):
    (X, _), phi, m = data(), fitted(name), MAPS[name].num_features
    Z = phi(X)
    assert phi.num_features == m and Z.shape == (N, m) and Z.dtype == X.dtype
    assert (
        np.isfinite(Z).all()
        and np.abs(Z).max(0).all()
        and len(np.unique(Z, axis=0)) == N
    )
    assert np.array_equal(phi(X.reshape(2, 5, DIM)), Z.reshape(2, 5, m))
    assert phi(X[0]).shape == (m,)
    assert jax.eval_shape(phi, X[:0]).shape == (0, m) and jax.eval_shape(
        phi, X[None, :0]
    ).shape == (1, 0, m)


@every
def test_a_key_stands_for_one_map(name):
    (X, L), phi = data(), fitted(name)
    assert same_bits(make(name, L), phi)
    other = make(name, L, seed=1)
    assert same_bits(other, phi) != MAPS[name].random
    assert np.array_equal(products(other(X)), products(phi(X))) != MAPS[name].random


@every
def test_blocks_have_the_features_of_the_whole(name):
    (X, _), phi = data(), fitted(name)
    Z = np.asarray(phi(X))
    single = np.stack([phi(x) for x in X])
    np.testing.assert_allclose(single, Z, rtol=0, atol=rounding(phi))
    assert rounding(phi) < 1e-3 * np.abs(Z).max()
    # Three blocks, of which the last one is padded.
    np.testing.assert_allclose(
        scale.embed(phi, X, block_size=4), Z, rtol=0, atol=rounding(phi)
    )


@every
def test_files_keep_every_bit(name, tmp_path):
    (X, _), phi = data(), fitted(name)
    io.save(tmp_path / "map.npz", phi)
    again = io.load(tmp_path / "map.npz")
    assert type(again) is type(phi) and same_bits(again, phi)
    assert np.array_equal(again(X), phi(X))


@every
def test_points_that_do_not_fit_are_refused_by_name(name):
    X, phi = np.zeros((N, DIM), np.float32), fitted(name)
    for bad, message in (
        (X[:, :2], r"X must have shape \(..., 5\), got \(10, 2\)"),
        (X[0, 0], r"X must have shape \(..., 5\), got \(\)"),
        (X.astype("int32"), "X must have dtype float32 or float64, got int32"),
        (X.astype(bool), "X must have dtype float32 or float64, got bool"),
        (
            X.astype("float64"),
            "X must have the dtype of the fitted map, float32, got float64",
        ),
    ):
        with jax.enable_x64(True), pytest.raises(ValueError, match=message):
            phi(bad)


@every
def test_a_point_that_is_not_a_number_spoils_its_own_features_only(name):
    (X, _), phi = data(), fitted(name)
    expected = np.delete(np.asarray(phi(X)), 3, 0)
    X[3, 1] = np.nan
    Z = np.asarray(phi(X))
    assert np.isnan(Z[3]).all()
    assert np.array_equal(np.delete(Z, 3, 0), expected)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
@pytest.mark.parametrize(
    "name", [name for name in MAPS if MAPS[name].landmarks or MAPS[name].turned]
)
def test_a_fit_to_what_is_not_a_number_shows_in_every_feature(name, bad):
    X, L = data()
    L[3, 1] = bad
    assert np.isnan(make(name, L)(X)).all()


slope = jax.jit(
    jax.grad(lambda X, phi: jnp.sum(jnp.sin(phi(X))))
)  # maps of one class have the program in common


@pytest.mark.parametrize(
    ("name", "kernel"),
    [pytest.param(*entry.values, Gaussian, marks=entry.marks) for entry in QUICK]
    + [
        (name, Exponential)
        for name in MAPS
        if MAPS[name].landmarks and name == MAPS[name].function
    ],
)
def test_gradients_by_points_are_finite_where_points_coincide(name, kernel):
    """Among themselves, and with the points that the map is made of."""
    (X, L), phi = data(), fitted(name)
    X[1], X[2] = X[0], L[0]
    if kernel is not Gaussian:
        phi = dataclasses.replace(phi, kernel=kernel(jnp.float32(LENGTHSCALE)))
    gradient = np.asarray(slope(X, phi))
    assert np.isfinite(gradient).all()
    assert (
        np.array_equal(gradient[0], gradient[1])
        and np.abs(gradient).max(1).min() > 1e-5
    )


@pytest.mark.parametrize("name", ["nystrom", "kernel_pca"])
def test_gradients_by_landmarks_are_finite_where_points_coincide(name):
    """A Gram matrix with two equal rows, whose smallest eigenvalue is dropped. (Draws have no part in this.)"""
    X, L = data()
    X[2], L[1] = L[0], L[0]
    gradient = np.asarray(
        jax.jit(
            jax.grad(lambda L: jnp.sum(jnp.sin(make(name, L, kernel=Exponential)(X))))
        )(L)
    )
    assert np.isfinite(gradient).all() and np.abs(gradient).max() > 1e-3


@pytest.mark.parametrize("name", [x for x in QUICK if MAPS[x.values[0]].turned])
def test_single_precision_is_close_to_double(name):
    """The same map evaluated in both, and the same fit. (Others have their literal formula in either precision.)

    The inner products of a fit have the rounding of n^2 kernel values, through an inverse and a gap of eigenvalues,
    which are above a hundredth here: a factor n 100.
    """
    (X, _), narrow = data(), fitted(name)
    Z = narrow(X)
    with jax.enable_x64(True):
        wide = jax.tree.map(
            lambda leaf: (
                np.asarray(leaf, "float64") if leaf.dtype == "float32" else leaf
            ),
            narrow,
        )
        X, L = (points.astype("float64") for points in data())
        exact = wide(X)
        assert exact.dtype == "float64"
        np.testing.assert_allclose(Z, exact, rtol=0, atol=rounding(narrow))
        G = products(make(name, L)(X))
        allowed = 100 * NUM_LANDMARKS * eps("float32")
        np.testing.assert_allclose(products(Z), G, rtol=0, atol=allowed)
        assert allowed < 1e-2 * np.abs(G).max()


def many_datasets(name, count, num_points, num_landmarks):
    """Make a map for each of many datasets in one program, and compare a handful with the loop."""
    entry = MAPS[name]
    X = np.float32(np.random.default_rng(1).normal(size=(count, num_points, 5)))
    lengthscales = np.linspace(1.5, 3, count, dtype=np.float32)
    traces = []

    def one(key, kernel, X):
        traces.append(None)
        phi = entry.make(key, kernel, X[:num_landmarks] if entry.landmarks else X)
        Z = phi(X)
        return jnp.matmul(Z[:5], Z.T, precision=jax.lax.Precision.HIGHEST)

    def keys():
        return jax.random.split(jax.random.key(2), count)

    found = np.asarray(
        jax.jit(jax.vmap(one))(keys(), Gaussian(jnp.asarray(lengthscales)), X)
    )
    assert len(traces) == 1
    assert found.shape == (count, 5, num_points) and np.isfinite(found).all()
    for i in (0, count // 2, count - 1):
        expected = np.asarray(one(keys()[i], Gaussian(lengthscales[i]), X[i]))
        # Eigenvalues may lie as close as 1 / num_points of the largest, and rounding is multiplied by that.
        allowed = 20 * num_points * eps("float32") * np.abs(expected).max()
        np.testing.assert_allclose(found[i], expected, rtol=0, atol=allowed)
    assert not np.allclose(found[0], found[1], atol=1e-3 * np.abs(found[0]).max())


@pytest.mark.parametrize(
    "name", ["nystrom", pytest.param("streaming_pca", marks=pytest.mark.slow)]
)
def test_a_thousand_datasets_compile_once_and_equal_the_loop(name):
    """n = 50, d = 5, each with its key and its lengthscale; landmarks are the first points. All maps: below."""
    many_datasets(name, 1000, 50, NUM_LANDMARKS)


@pytest.mark.slow
@every
def test_a_thousand_datasets_may_all_be_landmarks(name):
    """The same for every variant, and with 200 landmarks."""
    many_datasets(name, 1000, 200, 200)
