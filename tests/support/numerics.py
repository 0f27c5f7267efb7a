"""What many tests of numbers need."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxkern.pytrees import pytree


def eps(dtype):
    return float(jnp.finfo(dtype).eps)


def up_to_sign(Z, like):
    """Return features with the signs of others: eigenvectors have none."""
    return np.asarray(Z) * np.sign((np.asarray(Z) * np.asarray(like)).sum(0))


def literal_gram(X, Y, lengthscale):
    X, Y = np.float64(X), np.float64(Y)
    return np.exp(-((X[:, None] - Y[None]) ** 2).sum(-1) / (2 * lengthscale**2))


@pytree
class Identity:
    """A feature map that leaves points as they are, so that streams of features can be made at will."""

    matrix: jax.Array

    @property
    def num_features(self):
        return self.matrix.shape[1]

    def __call__(self, X):
        return jnp.matmul(X, self.matrix, precision=jax.lax.Precision.HIGHEST)


def squared(Z):
    return float((np.float64(Z) ** 2).sum())


def scatter(fitted):
    W = np.float64(fitted.components)
    return W.T @ (np.float64(fitted.eigenvalues)[:, None] * W)
