"""What many tests of numbers need."""

from collections import Counter

import house
import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from jaxkern.pytrees import pytree


def eps(dtype):
    return float(jnp.finfo(dtype).eps)


def up_to_sign(Z, like):
    """Return features with the signs of others: eigenvectors have none."""
    return np.asarray(Z) * np.sign((np.asarray(Z) * np.asarray(like)).sum(0))


def literal_gram(X, Y, lengthscale=house.LENGTHSCALE):
    differences = np.float64(X)[:, None] - np.float64(Y)[None]
    return np.exp(-(differences**2).sum(axis=-1) / (2 * lengthscale**2))


def changes(loss, start, step):
    """Return how a function with its gradient changes along a step: by the gradient, and by differences."""
    ahead, _ = loss(jax.tree.map(np.add, start, step))
    behind, _ = loss(jax.tree.map(np.subtract, start, step))
    _, slopes = loss(start)
    products = jax.tree.map(np.vdot, slopes, step)
    return sum(jax.tree.leaves(products)), float(ahead - behind) / 2


@pytree
class Identity:
    """A feature map that leaves points as they are, so that streams of features can be made at will."""

    matrix: jax.Array

    @property
    def num_features(self):
        return self.matrix.shape[1]

    def __call__(self, X):
        return jnp.matmul(X, self.matrix, precision=jax.lax.Precision.HIGHEST)


def tuples(X):
    """Return the rows of a matrix as tuples."""
    return [tuple(row) for row in np.asarray(X).tolist()]


def assert_law(outcomes, exact):
    """Assert that outcomes come as often as they should, by chi-square: false alarms below 1e-6."""
    exact = {outcome: p for outcome, p in exact.items() if p > 0}
    counts = Counter(outcomes)
    assert counts.keys() <= exact.keys()
    p = np.array(list(exact.values()))
    expected = counts.total() * p
    errors = [counts[outcome] for outcome in exact] - expected
    assert (errors**2 / expected).sum() < stats.chi2.isf(1e-6, len(p) - 1)


def same_partition(a, b):
    """Tell whether two labelings have the same cells, whatever these are called."""
    pairs = np.unique(np.stack([a, b]), axis=1)
    return pairs.shape[1] == len(np.unique(a)) == len(np.unique(b))


def squared(Z):
    return float((np.float64(Z) ** 2).sum())


def rows_of(phi, X, centered, weights=None):
    """Return the features Z in float64, weighted and about their mean: what components of a stream are those of."""
    Z = np.float64(phi(X))
    w = np.ones(len(Z)) if weights is None else np.float64(weights)
    return np.sqrt(w)[:, None] * (Z - centered * (w @ Z) / w.sum())


def noise_of(phi, X, centered=False):
    """Return the rounding of the sketch of a stream, and what centring leaves of features of this size."""
    rows = len(X) * squared(rows_of(phi, X, centered))
    return 2 * eps(X.dtype) * (rows + 10 * centered * squared(phi(X)))


def scatter(fitted):
    W = np.float64(fitted.components)
    return W.T @ (np.float64(fitted.eigenvalues)[:, None] * W)


class Read:
    """Points as in a file, that notes which rows are read, and dies instead of reading from row `fatal` on."""

    def __init__(self, X, fatal=None):
        self.X = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.fatal = fatal
        self.starts = []
        self.counts = []

    def __getitem__(self, rows):
        self.counts.append(rows.stop - rows.start)
        if self.counts[-1] > 1:  # not the first or the last row
            self.starts.append(rows.start)
            if self.fatal is not None and rows.start >= self.fatal:
                raise OSError("the disk is gone")
        return self.X[rows]
