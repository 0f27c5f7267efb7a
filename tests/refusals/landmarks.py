"""What `jaxkern.landmarks` refuses."""

import jax
import numpy as np

from jaxkern import landmarks
from jaxkern.kernels import Distance, Gaussian

X = np.zeros((5, 2), np.float32)


def state(dim=2):
    """Return an empty reservoir without a program."""
    return landmarks.Reservoir(
        points=np.zeros((3, dim), np.float32),
        priorities=np.full(3, 2**31 - 1, np.int32),
        seen=np.int32(0),
        key=jax.random.key(0),
    )


def arguments(**others):
    return {"key": jax.random.key(0), "X": X, **others}


def uniform():
    return landmarks.uniform, arguments(num_landmarks=3)


def kmeans_plus_plus():
    return landmarks.kmeans_plus_plus, arguments(num_landmarks=3)


def leverage():
    return landmarks.leverage, arguments(kernel=Gaussian(1.0), num_landmarks=3)


def pivoted_cholesky():
    return landmarks.pivoted_cholesky, arguments(kernel=Gaussian(1.0))


def reservoir():
    return landmarks.reservoir, {"num_landmarks": 3}


def init():
    start = landmarks.reservoir(num_landmarks=3).init
    return start, {"key": jax.random.key(0), "dim": 2}


def update():
    function = landmarks.reservoir(num_landmarks=3).update
    return function, {"state": state(), "rows": X}


def merge():
    function = landmarks.reservoir(num_landmarks=3).merge
    return function, {"a": state(), "b": state()}


TOO_MANY = "must be at most 5 .the number of points., got 6"
REFUSED = [
    (uniform, {"num_landmarks": 6}, f"num_landmarks {TOO_MANY}"),
    (kmeans_plus_plus, {"num_landmarks": 6}, f"num_landmarks {TOO_MANY}"),
    (kmeans_plus_plus, {"num_candidates": 0}, "num_candidates must be at least 1"),
    (leverage, {"kernel": Distance()}, "kernel must be positive semidefinite"),
    (leverage, {"num_landmarks": 0}, "num_landmarks must be at least 1"),
    (leverage, {"regularization": 0.0}, "regularization must be positive"),
    (leverage, {"num_pilots": 6}, f"num_pilots {TOO_MANY}"),
    (
        pivoted_cholesky,
        {"kernel": Distance(), "num_landmarks": 3},
        "kernel must be positive semidefinite",
    ),
    (pivoted_cholesky, {"num_landmarks": 6}, f"num_landmarks {TOO_MANY}"),
    (pivoted_cholesky, {}, "num_landmarks or tolerance must be given, got none"),
    (
        pivoted_cholesky,
        {"num_landmarks": 3, "tolerance": 0.1, "max_landmarks": 3},
        "num_landmarks or tolerance must be given, got both",
    ),
    (
        pivoted_cholesky,
        {"tolerance": 0.1},
        "max_landmarks must be given with a tolerance",
    ),
    (
        pivoted_cholesky,
        {"num_landmarks": 3, "max_landmarks": 3},
        "max_landmarks must be given with a tolerance, and not without",
    ),
    (
        pivoted_cholesky,
        {"tolerance": 0.1, "max_landmarks": 6},
        f"max_landmarks {TOO_MANY}",
    ),
    (
        pivoted_cholesky,
        {"tolerance": -0.1, "max_landmarks": 3},
        "tolerance must lie in",
    ),
    (reservoir, {"num_landmarks": 0}, "num_landmarks must be at least 1"),
    (init, {"dim": 0}, "dim must be at least 1"),
    (init, {"dtype": np.int32}, "dtype must"),
    (update, {"rows": X[:, :1]}, "rows must have 2 columns"),
    (merge, {"b": state(dim=3)}, "b must have the shape of a"),
]
