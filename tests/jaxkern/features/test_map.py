"""What holds of every class of feature map: its rows and leading axes, missing numbers, and points that coincide.

The contract (test_contract.py) has what holds of all functions.
"""

import functools
import inspect

import house
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern import features
from jaxkern.kernels import Exponential

pytestmark = pytest.mark.watches_keys

ROWS, _, DIM = house.USUAL


def fourier(make=features.paired_fourier):
    return make(house.key(), house.KERNEL, DIM, num_frequencies=house.FEATURES)


def streaming():
    pca = features.streaming_pca(fourier(), sketch_size=house.FEATURES, centered=True)
    X = house.data().X
    return pca.finalize(pca.update(pca.init(), X), num_components=house.FEATURES)


def random_feature_pca():
    X = house.data().X
    return features.random_feature_pca(fourier(), X, num_components=house.FEATURES)


def standardized():
    mean, scale = moments()
    return features.standardized(fourier(), mean, scale)


def table():
    return features.TableMap(fourier(), ("a", "b", "c"), ((0, 1, 2),))


def moments():
    X = house.data().X
    return X.mean(axis=0), X.std(axis=0)


def kernel_pca(landmarks, kernel=house.KERNEL):
    return features.kernel_pca(kernel, landmarks, num_components=house.FEATURES)


def kernel_jl(landmarks, kernel=house.KERNEL):
    key = house.key()
    return features.kernel_jl(key, kernel, landmarks, num_features=house.FEATURES)


def nystrom(landmarks, kernel=house.KERNEL):
    return features.nystrom(kernel, landmarks)


@functools.cache
def maps():
    """Return a map of each public class, fitted once for all tests."""
    landmarks = house.data().landmarks
    fitted = (
        fourier(),
        fourier(features.shifted_fourier),
        fourier(features.fastfood),
        nystrom(landmarks),
        kernel_pca(landmarks),
        kernel_jl(landmarks),
        random_feature_pca(),
        streaming(),
        standardized(),
        table(),
    )
    return {type(phi).__name__: phi for phi in fitted}


def is_map(name):
    public = getattr(features, name)
    return inspect.isclass(public) and hasattr(public, "num_features")


CLASSES = [name for name in features.__all__ if is_map(name)]
all_classes = pytest.mark.parametrize("name", CLASSES)


@all_classes
def test_features_have_their_number_their_dtype_and_the_leading_axes_of_the_points(
    name,
):
    X = house.data().Y
    phi = maps()[name]
    Z = np.asarray(phi(X))
    number = phi.num_features
    assert Z.shape == (ROWS, number)
    assert Z.dtype == house.dtype()
    assert len(np.unique(Z, axis=0)) == ROWS
    assert np.abs(Z).max(axis=0).all()
    # One program serves all leading axes, so the bits are equal.
    cube = phi(X.reshape(2, -1, DIM))
    assert np.array_equal(cube, Z.reshape(2, -1, number))
    for axes in ((), (0,), (1, 0)):
        points = jax.ShapeDtypeStruct((*axes, DIM), house.dtype())
        assert jax.eval_shape(phi, points).shape == (*axes, number)


@all_classes
def test_a_point_that_is_not_a_number_spoils_its_own_features_only(name):
    X = house.data().Y
    phi = maps()[name]
    expected = np.delete(np.asarray(phi(X)), 3, axis=0)
    X[3, 1] = np.nan
    Z = np.asarray(phi(X))
    assert np.isnan(Z[3]).all()
    assert np.array_equal(np.delete(Z, 3, axis=0), expected)


@pytest.mark.parametrize("fit", [kernel_jl, nystrom, kernel_pca])
def test_gradients_by_points_and_landmarks_are_finite_if_points_coincide(fit):
    """Among themselves and with landmarks, of a kernel that is not smooth there.

    A Gram matrix with two equal rows has an eigenvalue of zero, which is dropped.
    """
    data = house.data()
    # Rows 0 and 1 are equal, all three are landmarks, and two landmarks are equal.
    data.X[:3] = data.landmarks[[1, 1, 0]]
    data.landmarks[1] = data.landmarks[0]

    @jax.jit
    @jax.value_and_grad
    def total(arrays):
        phi = fit(arrays["landmarks"], Exponential(house.LENGTHSCALE))
        return jnp.sum(jnp.sin(phi(arrays["X"])))

    _, slopes = total({"X": data.X, "landmarks": data.landmarks})
    by_point = np.asarray(slopes["X"])
    by_landmark = np.asarray(slopes["landmarks"])
    assert np.isfinite(by_landmark).all()
    assert np.abs(by_landmark).max() > 1e-3
    assert np.array_equal(by_point[0], by_point[1])
    # No gradient is lost, either, as it is where a distance of zero stops all of it.
    lengths = np.abs(by_point).max(axis=1)
    assert 1e-5 < lengths.min() <= lengths.max() < np.inf


def test_a_standardized_map_is_the_map_of_the_scaled_points():
    data = house.data()
    mean, scale = moments()
    points = (np.float64(data.Y) - mean) / scale
    expected = fourier()(points.astype(house.dtype()))
    slack = 200 * house.eps()  # phases of about 10 are rounded with the points
    phi = standardized()
    np.testing.assert_allclose(phi(data.Y), expected, rtol=0, atol=slack)


def test_a_plain_function_is_a_map():
    X = house.data().X
    phi = features.standardized(jnp.sin, X[0], np.ones_like(X[0]))
    np.testing.assert_array_equal(jax.jit(phi)(X), jnp.sin(X - X[:1]))
