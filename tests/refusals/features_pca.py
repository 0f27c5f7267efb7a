"""What PCA of features refuses, and what the maps of `jaxkern.features` do."""

import numpy as np

from jaxkern import features, rkhs
from jaxkern import frequent_directions as fd
from jaxkern.kernels import Gaussian, Linear

X = np.zeros((5, 3), np.float32)
NUMBER = np.float32(0)
PHI = features.PairedFourier(Gaussian(1.0), np.ones((2, 3), np.float32))
STREAM = features.streaming_pca(PHI, sketch_size=2)


def state(size=2, dtype="float32", centered=False):
    """Return a state of a stream with sketches of this size, which shrink at it."""
    zero = np.zeros((), dtype)
    pair = np.zeros(2, dtype)
    buffer = np.zeros((2 * size, 4), dtype)
    sketch = fd.State(
        buffer, np.int32(0), pair, pair, zero, np.int32(0), size, size + 1
    )
    return features.StreamingState(sketch, np.zeros(4, dtype), pair, centered)


def identity(X):
    return X


def random_feature_pca():
    arguments = {"phi": identity, "X": X, "num_components": 2}
    return features.random_feature_pca, arguments


def mapped():
    basis = np.zeros((3, 2), np.float32)
    values = np.zeros(2, np.float32)
    phi = features.RandomFeaturePCA(
        identity, basis, np.zeros(3, np.float32), values, NUMBER, np.int32(0)
    )
    return phi, {"X": X}


def embed():
    projection = np.zeros((2, 5), np.float32)
    values = np.zeros(2, np.float32)
    phi = features.Nystrom(Gaussian(1.0), X, projection, values, np.int32(0), NUMBER)
    return phi.embed, {"f": rkhs.Function(Gaussian(1.0), X, X[:, 0])}


def nystrom():
    return features.nystrom, {"kernel": Gaussian(1.0), "landmarks": X}


def streaming_pca():
    return features.streaming_pca, {"phi": PHI, "sketch_size": 2}


def update():
    return STREAM.update, {"state": state(), "X": X}


def merge():
    return STREAM.merge, {"a": state(), "b": state()}


def finalize():
    return STREAM.finalize, {"state": state(), "num_components": 2}


REFUSED = [
    (
        random_feature_pca,
        {"phi": 3.0},
        r"phi must be a feature map, a callable .* got 3\.0",
    ),
    (
        random_feature_pca,
        {"phi": features.PairedFourier},
        "phi must be a feature map",
    ),
    (
        random_feature_pca,
        {"phi": lambda X: X[:2]},
        r"phi must return one row for each of the 5 rows of X, got shape \(2, 3\)",
    ),
    (random_feature_pca, {"phi": lambda X: X[:, 0]}, r"phi\(X\) must have rank 2"),
    (random_feature_pca, {"phi": lambda X: X > 0}, r"phi\(X\) must have dtype float32"),
    (
        random_feature_pca,
        {"phi": PHI, "X": X[:, :2]},
        r"X must have shape \(..., 3\), got \(5, 2\)",
    ),
    (
        random_feature_pca,
        {"num_components": 0},
        "num_components must be at least 1, got 0",
    ),
    (
        random_feature_pca,
        {"num_components": 4},
        "num_components must be at most 3 .the number of points and of features., got 4",
    ),
    (random_feature_pca, {"centered": 1}, "centered must be True or False, got 1"),
    (
        mapped,
        {"X": np.float64(X)},
        "features of X must have the dtype of the fitted map",
    ),
    (mapped, {"X": X[:, :2]}, r"features of X must have shape \(..., 3\)"),
    (
        embed,
        {"f": rkhs.Function(Linear(), X, X[:, 0])},
        "f must belong to the same kernel",
    ),
    (embed, {"f": X}, "f must be a Function"),
    (
        nystrom,
        {"X_weights": np.ones(5, np.float32)},
        "X_weights are those of the rows of X, and X is None",
    ),
    (streaming_pca, {"phi": Gaussian(1.0)}, "phi must be a feature map"),
    (streaming_pca, {"phi": identity}, "phi must be a feature map"),
    (streaming_pca, {"sketch_size": 0}, "sketch_size must be at least 1, got 0"),
    (streaming_pca, {"shrink_at": 9}, "shrink_at must be at most 3"),
    (streaming_pca, {"centered": 1}, "centered must be True or False, got 1"),
    (
        update,
        {"state": state(centered=True)},
        "state must be a state of this stream",
    ),
    (update, {"X": X[:, :2]}, r"X must have shape \(..., 3\)"),
    (update, {"state": state(dtype="float64")}, "must have the dtype of the state"),
    (merge, {"b": state(3)}, "b must be a state of this stream"),
    (
        finalize,
        {"state": state().sketch},
        "state must be a StreamingState, got State",
    ),
    (
        finalize,
        {"num_components": 3},
        "num_components must be at most 2 .the sketch size.",
    ),
]
