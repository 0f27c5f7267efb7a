"""What `jaxkern.kernels` refuses, and what everything refuses of an array of lengthscales that fits no column."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern import gram, kernels, measures
from jaxkern.kernels import Distance, Gaussian, Kernel
from jaxkern.pytrees import pytree

ONES = np.ones((5, 2), np.float32)
STACK = np.ones(20, np.float32)
NOT_POSITIVE = "lengthscale must be positive and finite"
NOT_SCALAR = r"must return a scalar for two points, got shape \(2,\)"
NO_KERNEL = "kernel must be a kernel such as Gaussian"
TWO_READINGS = r"array \(2,\) with one number for each column.*vmap over the kernel"


@pytree
class Unknown(Kernel):
    def evaluate(self, x, y):
        return 1 / (1 + jnp.sum((x - y) ** 2))


@pytree
class Vector(Kernel):
    def evaluate(self, x, y):
        return x * y


def gaussian():
    return kernels.Gaussian, {"lengthscale": 1.0}


def polynomial():
    return kernels.Polynomial, {"degree": 2, "offset": 1.0, "lengthscale": 1.0}


def gaussian_from_gamma():
    return Gaussian.from_gamma, {"gamma": 1.0}


def gaussian_from_width():
    return Gaussian.from_width, {"width": 1.0}


def scaled():
    return kernels.Scaled, {"kernel": Gaussian(1.0), "factor": 2.0}


def value():
    return Gaussian(1.0), {"x": ONES[0], "y": ONES[1]}


def value_of_a_function():
    return kernels.as_kernel(np.vdot), {"x": ONES[0], "y": ONES[1]}


def value_of_a_stack():
    return kernels.Laplacian(STACK), {"x": ONES[0], "y": ONES[1]}


def psd_kernel():
    return kernels.psd_kernel, {"kernel": Gaussian(1.0)}


def kappa():
    return kernels.kappa, {"kernel": Gaussian(1.0)}


def lipschitz():
    return kernels.lipschitz, {"kernel": Gaussian(1.0)}


def gram_matrix():
    return gram.gram, {"kernel": Gaussian(1.0), "X": ONES}


def mean_kernel():
    return partial(measures.mean_gaussian_kernel, ONES, 1.0, STACK), {}


def spectrum():
    return partial(measures.gaussian_spectrum, STACK, ONES[0]), {}


def quantile():
    return kernels.quantile_lengthscale, {"X": ONES, "q": 0.5}


def sampled_quantile():
    arguments = {"key": jax.random.key(0), "X": ONES, "q": 0.5}
    return kernels.sampled_quantile_lengthscale, arguments


REFUSED = [
    (gaussian, {"lengthscale": 0}, NOT_POSITIVE),
    (
        gaussian,
        {"lengthscale": [1.0, 2.0]},
        "lengthscale must be a number or an array, one for each column, got a list",
    ),
    (polynomial, {"degree": 0}, "degree must be at least 1"),
    (polynomial, {"offset": -1.0}, "offset must be non-negative"),
    (gaussian_from_gamma, {"gamma": 0}, "gamma must be positive and finite"),
    (gaussian_from_width, {"width": "1"}, "width must be a real number"),
    (scaled, {"factor": -0.5}, "factor must be non-negative and finite"),
    (value, {"y": ONES[:, 0]}, r"y must have shape \(2,\), got \(5,\)"),
    (
        value_of_a_function,
        {"y": ONES[0].astype(np.float16)},
        "y must have dtype float32 or float64, got float16",
    ),
    (gram_matrix, {"kernel": Gaussian}, NO_KERNEL),
    (gram_matrix, {"kernel": Vector()}, "Vector " + NOT_SCALAR),
    (gram_matrix, {"kernel": lambda x, y: x * y}, "a user's function " + NOT_SCALAR),
    (psd_kernel, {"kernel": Distance()}, "kernel must be positive semidefinite"),
    (kappa, {"kernel": np.vdot}, r"not known; wrap it as kernels\.FromFunction"),
    (
        kappa,
        {"kernel": Unknown() + Gaussian(1.0)},
        "kappa of Unknown is not known; give its class a kappa",
    ),
    (
        lipschitz,
        {"kernel": Unknown()},
        "the Lipschitz constant of Unknown is not known; give its class a lipschitz",
    ),
    (
        lipschitz,
        {"kernel": kernels.Laplacian(1.0)},
        "dim is needed for the Lipschitz constant of Laplacian",
    ),
    (
        lipschitz,
        {"kernel": kernels.Cauchy(1.0)},
        "dim is needed for the Lipschitz constant of Cauchy",
    ),
    (lipschitz, {"dim": 0}, "dim must be at least 1"),
    (gram_matrix, {"kernel": kernels.Laplacian(STACK)}, TWO_READINGS),
    (value_of_a_stack, {}, TWO_READINGS),
    (lipschitz, {"kernel": kernels.Laplacian(STACK), "dim": 2}, TWO_READINGS),
    (mean_kernel, {}, TWO_READINGS),
    (spectrum, {}, TWO_READINGS),
    (
        gram_matrix,
        {"kernel": kernels.Polynomial(lengthscale=STACK)},
        "lengthscale must be a scalar",
    ),
    (quantile, {"X": ONES[:1]}, r"X must have at least 2 row\(s\)"),
    (
        quantile,
        {"X": np.ones((65_537, 1), np.float32)},
        "X must have at most 65536 rows for the exact quantile",
    ),
    (quantile, {"q": 2}, r"q must lie in \[0, 1\], got 2"),
    (sampled_quantile, {"X": ONES[:1]}, r"X must have at least 2 row\(s\)"),
    (sampled_quantile, {"num_pairs": 0}, "num_pairs must be at least 1"),
]
