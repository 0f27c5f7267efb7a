"""The data of the tests of jaxkern: two shapes for everything, four families of points, in NumPy.

A function that every test calls on these shapes is compiled once for a whole run of a process. A shape of its own needs
a reason that stands next to it. Arrays have the precision of the environment, which a module chooses (`conftest.py`);
oracles compute with the same numbers in float64: `np.float64(data.X)`.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.kernels import Gaussian

USUAL = (24, 8, 3)
"""Rows, landmarks and dimension of nearly every test."""
ODD = (5, 2, 1)
"""The other shape: few rows, in one dimension."""
LENGTHSCALE = 1.5
KERNEL = Gaussian(LENGTHSCALE)
FEATURES = 4
"""Components, frequencies, clusters and the like, where a test has no reason for another number."""


def dtype():
    """Return the precision of the environment, float32 or float64."""
    return np.dtype(jnp.result_type(float))


def cast(values):
    """Return an array of NumPy in the precision of the environment."""
    return np.asarray(values, dtype())


def eps():
    """Return the distance from 1 to the next number in the precision of the environment."""
    return float(np.finfo(dtype()).eps)


def close(a, b, slack=0.0):
    """Assert that two arrays are equal up to an absolute slack."""
    np.testing.assert_allclose(a, b, rtol=0, atol=slack)


def key(number=0):
    """Return a fresh typed key."""
    return jax.random.key(number)


def rng(number=0):
    """Return a generator of NumPy with a fixed seed."""
    return np.random.default_rng([2020, number])


@dataclasses.dataclass(frozen=True)
class Data:
    """Arrays of one shape: X (n, dim), Y (n, dim), landmarks (m, dim), and numbers that belong to the rows of X.

    weights (n,) are positive; three of them are 0 where the shape is the usual one. labels (n,) are 0, 1 and 2; values
    (n, 2) are standard normal.
    """

    X: np.ndarray
    Y: np.ndarray
    landmarks: np.ndarray
    weights: np.ndarray
    labels: np.ndarray
    values: np.ndarray


def plain(rng, rows, dim):
    """Three groups, so that clusterings have something to find, and no two rows are equal."""
    centers = 2 * rng.normal(size=(3, dim))
    return centers[np.arange(rows) % 3] + 0.7 * rng.normal(size=(rows, dim))


def offset(rng, rows, dim):
    """Far from the origin: a formula that does not centre its rows loses three digits."""
    return 1e3 + plain(rng, rows, dim)


def duplicates(rng, rows, dim):
    """Every row twice, in a random order."""
    points = plain(rng, rows, dim)
    return points[rng.permutation(np.arange(rows) // 2)]


def rank_one(rng, rows, dim):
    """On a line through the origin."""
    return np.outer(rng.normal(size=rows), rng.normal(size=dim))


FAMILIES = {family.__name__: family for family in (plain, offset, duplicates, rank_one)}


def data(family="plain", shape=USUAL, seed=0):
    """Return the arrays of a family and a shape in the precision of the environment."""
    rows, num_landmarks, dim = shape
    source = np.random.default_rng([seed, *shape])
    points = FAMILIES[family](source, 2 * rows + num_landmarks, dim)
    weights = source.uniform(0.2, 1, rows)
    if shape == USUAL:
        weights[[2, 3, 11]] = 0
    arrays = (
        points[:rows],
        points[rows : 2 * rows],
        points[2 * rows :],
        weights,
        source.integers(0, 3, rows),
        source.normal(size=(rows, 2)),
    )
    floats = [
        array.astype(dtype()) if array.dtype.kind == "f" else array for array in arrays
    ]
    return Data(*floats)
