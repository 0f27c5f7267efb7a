"""What `jaxkern.kmeans` refuses."""

import jax
import numpy as np

from jaxkern import kmeans as module


def kmeans():
    arguments = {
        "key": jax.random.key(0),
        "X": np.zeros((5, 2), np.float32),
        "num_clusters": 2,
    }
    return module.kmeans, arguments


REFUSED = [
    (
        kmeans,
        {"num_clusters": 6},
        "num_clusters must be at most 5 .the number of points., got 6",
    ),
    (kmeans, {"num_restarts": 0}, "num_restarts must be at least 1"),
    (kmeans, {"max_iterations": 0}, "max_iterations must be at least 1"),
    (kmeans, {"tolerance": -1e-4}, "tolerance must be at least 0"),
    (kmeans, {"num_candidates": 0}, "num_candidates must be at least 1"),
    (kmeans, {"block_size": 0}, "block_size must be at least 1"),
    (kmeans, {"num_used": 3}, "num_used must be at most 2 .num_clusters., got 3"),
]
