"""A map that travels with the scaling of its points."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxkern.features import paired_fourier, standardized
from jaxkern.kernels import Gaussian

DIM = 3


def data(rng, dtype):
    return jnp.asarray(5 + 40 * rng.standard_normal((20, DIM)), dtype)


def fit(X):
    phi = paired_fourier(
        jax.random.key(1), Gaussian(1.0), DIM, num_frequencies=4, dtype=X.dtype
    )
    return phi, standardized(phi, X.mean(0), X.std(0))


def test_it_is_the_map_of_the_scaled_points(dtype, rng):
    X = data(rng, dtype)
    phi, scaled = fit(X)
    mean, spread = np.float64(X.mean(0)), np.float64(X.std(0))
    expected = phi(jnp.asarray((np.float64(X) - mean) / spread, dtype))
    np.testing.assert_allclose(scaled(X), expected, atol=200 * np.finfo(dtype).eps)
    assert scaled.num_features == phi.num_features == scaled(X).shape[-1]
    assert scaled(X).dtype == jnp.dtype(dtype)


def test_a_plain_function_is_a_map(rng):
    X = data(rng, "float32")
    np.testing.assert_array_equal(
        jax.jit(standardized(jnp.sin, X[0], jnp.ones(DIM)))(X), jnp.sin(X - X[:1])
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"phi": 3}, "phi must be a feature map"),
        ({"mean": jnp.zeros((2, 3))}, "mean"),
        ({"scale": jnp.ones(2)}, "scale"),
        ({"scale": jnp.ones(3, "bfloat16")}, "scale"),
    ],
)
def test_bad_input(arguments, message):
    valid = {"phi": jnp.sin, "mean": jnp.zeros(3), "scale": jnp.ones(3)}
    with pytest.raises(ValueError, match=message):
        standardized(**valid | arguments)
