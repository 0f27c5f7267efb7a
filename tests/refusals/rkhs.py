"""What `jaxkern.rkhs` refuses."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.kernels import Exponential, Gaussian, Polynomial
from jaxkern.rkhs import Covariance, Function, RandomProjection, SamplingOperator
from jaxkern.rkhs import draw_gaussian as draw
from jaxkern.rkhs import inner as product

X = np.ones((5, 2), np.float32)
KERNEL = Gaussian(1.0)
F = Function(KERNEL, X, X[:, 0])
WIDE = Function(KERNEL, np.ones((5, 3), np.float32), X[:, 0])
SIGMA = Covariance(KERNEL, X)
OTHERS = (Gaussian(2.0), Exponential(1.0), 2.0 * KERNEL, Polynomial(2))
SPACE = "f must belong to the same kernel"


def inner():
    return product, {"f": F, "g": F}


def values():
    return Function.__call__, {"self": F, "X": X}


def total():
    return Function.__add__, {"self": F, "other": F}


def sampling():
    return SamplingOperator.__call__, {"self": SamplingOperator(KERNEL, X), "f": F}


def adjoint():
    arguments = {"self": SamplingOperator(KERNEL, X), "beta": X[:, 0]}
    return SamplingOperator.adjoint, arguments


def covariance():
    return Covariance, {"kernel": KERNEL, "points": X}


def image():
    return Covariance.__call__, {"self": SIGMA, "f": F}


def covariance_inner():
    return Covariance.inner, {"self": SIGMA, "f": F, "g": F}


def effective_rank():
    return Covariance.effective_rank, {"self": SIGMA}


def draw_gaussian():
    return draw, {"key": jax.random.key(0), "covariance": SIGMA}


def projection():
    return RandomProjection, {
        "key": jax.random.key(0),
        "covariance": SIGMA,
        "num_features": 3,
    }


def projection_adjoint():
    # Of three directions, without drawing them.
    directions = Function(KERNEL, X, np.ones((5, 3), np.float32))
    theta = RandomProjection.tree_unflatten(None, (directions,))
    return RandomProjection.adjoint, {"self": theta, "alpha": X[:3, 0]}


def trace():
    return Covariance.trace, {"self": SIGMA}


REFUSED = [
    (trace, {"power": jnp.float32(2)}, "power must be a static number"),
    *[(inner, {"g": Function(kernel, X, X[:, 0])}, SPACE) for kernel in OTHERS],
    (inner, {"g": X}, "f must be a Function of the RKHS, got ndarray"),
    (
        values,
        {"self": Function(KERNEL, X, X[:4, 0])},
        r"weights must have shape \(5,\) or \(5, r\), got \(4,\)",
    ),
    (values, {"X": X[:, :1]}, "X must have 2 columns"),
    (total, {"other": Function(Gaussian(2.0), X, X[:, 0])}, SPACE),
    (total, {"other": WIDE}, "points must have 2 columns"),
    (
        total,
        {"other": Function(KERNEL, X, X)},
        "weights of the two functions do not match",
    ),
    (sampling, {"f": Function(Gaussian(2.0), X, X[:, 0])}, SPACE),
    (adjoint, {"beta": X[:4, 0]}, "beta must have shape"),
    (covariance, {"centered": 1}, "centered must be True or False, got 1"),
    (image, {"f": Function(Gaussian(2.0), X, X[:, 0])}, SPACE),
    (image, {"power": 0.5}, "power must be 0 or at least 1, got 0.5"),
    (covariance_inner, {"power": -1}, "power must be 0 or at least 1, got -1"),
    (effective_rank, {"power": 0}, "power must be positive, got 0"),
    (
        effective_rank,
        {"self": Covariance(KERNEL, X, X)},
        r"weights must have shape \(5,\)",
    ),
    (draw_gaussian, {"power": np.nan}, "power must be 0 or at least 1, got nan"),
    (draw_gaussian, {"num_draws": 0}, "num_draws must be at least 1"),
    (projection, {"num_features": 0}, "num_features must be at least 1"),
    (projection_adjoint, {"alpha": X[:, 0]}, r"alpha must have shape \(3,\)"),
]
