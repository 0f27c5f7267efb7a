"""What `jaxkern.scale` refuses before it reads points; what it finds in them is refused in its own tests."""

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from support.numerics import Identity

from jaxkern import features, scale
from jaxkern import frequent_directions as fd
from jaxkern.kernels import Gaussian

X = np.ones((5, 2), np.float32)
FROZEN = np.ones((5, 2), np.float32)
FROZEN.flags.writeable = False
MAP = Identity(np.eye(2, dtype=np.float32))


def mesh():
    return jax.make_mesh((1,), ("rows",), axis_types=(AxisType.Auto,))


def embed():
    return scale.embed, {"phi": MAP, "X": X}


def embed_both():
    axes = ("rows", "columns")
    mesh = jax.make_mesh((1, 1), axes, axis_types=(AxisType.Auto,) * 2)
    both = NamedSharding(mesh, PartitionSpec(*axes))
    return scale.embed, {"phi": MAP, "X": X, "sharding": both}


def embed_blocks():
    return scale.embed, {"phi": MAP, "X": [X], "out": np.empty_like(X)}


def landmarks():
    sizes = {"num_landmarks": 2, "method": "leverage", "kernel": Gaussian(1.0)}
    return scale.landmarks, {"key": jax.random.key(0), "X": X} | sizes


def stream():
    pca = features.streaming_pca(MAP, sketch_size=1)
    return scale.stream, {"pca": pca, "X": X}


def kmeans():
    key = jax.random.key(0)
    return scale.kmeans, {"key": key, "X": X, "num_clusters": 2, "sharding": mesh()}


def local_rows():
    return scale.local_rows, {"num_rows": 5, "sharding": mesh()}


def merge_tree():
    return (lambda **arguments: scale.merge_tree(fd.merge, **arguments)), {"states": []}


REFUSED = [
    (embed, {"phi": None}, "phi must be a feature map"),
    (embed, {"phi": lambda X: X[0]}, r"phi must map \(n, dim\)"),
    (embed, {"X": X.astype(int)}, "X must have dtype float32 or float64, got int"),
    (embed, {"X": 3.0}, "X must be an array or an iterable of arrays, got float"),
    (embed, {"block_size": 0}, "block_size must be at least 1"),
    (
        embed,
        {"sharding": 3},
        "sharding must be a jax.sharding.Mesh or NamedSharding, got int",
    ),
    (embed_both, {}, "rows and nothing else"),
    (embed, {"report": 3}, "report must be a function"),
    (embed, {"out": np.empty((5, 3), np.float32)}, r"out must be .* of shape \(5, 2\)"),
    (embed, {"out": FROZEN}, "out must be writable"),
    (embed, {"progress": "p"}, "file where processes share it or progress"),
    (embed, {"progress": "p", "out": X}, r"mode 'r\+' or 'w\+' where"),
    (embed_blocks, {"progress": "p"}, "not an iterable"),
    (landmarks, {"X": X.astype(int)}, "X must have dtype float32 or float64, got int"),
    (landmarks, {"X": iter([X])}, "a function that returns an iterator"),
    (landmarks, {"num_landmarks": 6}, "at most 5 .the number of points., got 6"),
    (landmarks, {"method": "random"}, "method must be one of"),
    (landmarks, {"kernel": None}, "kernel must be given for method leverage"),
    (landmarks, {"weights": np.array([1.0, 1, -1, 1, 1])}, "that of row 2 is not"),
    (landmarks, {"weights": np.zeros(5)}, "weights must be floating and not all zero"),
    (landmarks, {"block_size": 0}, "block_size must be at least 1"),
    (landmarks, {"report": 3}, "report must be a function"),
    (stream, {"pca": MAP}, "pca must be what features.streaming_pca"),
    (stream, {"X": X[:0]}, "X must have at least one row"),
    (stream, {"y": X}, "y must have a label for each of 5 rows with streaming_ridge"),
    (stream, {"num_streams": 0}, "num_streams must be at least 1"),
    (stream, {"block_size": 0}, "block_size must be at least 1"),
    (stream, {"report": 3}, "report must be a function"),
    (kmeans, {"num_clusters": 6}, "at most 5 .the number of points., got 6"),
    (local_rows, {"num_rows": 1.5}, "num_rows must be a static whole number"),
    (merge_tree, {}, "at least one state"),
]
