"""What `jaxkern.linalg` refuses."""

import numpy as np

from jaxkern import linalg


def largest_eigenpairs():
    start = np.ones((5, 2), np.float32)
    arguments = {"product": lambda V: V, "start": start, "num_values": 1}
    return linalg.largest_eigenpairs, arguments


REFUSED = [
    (
        largest_eigenpairs,
        {"start": np.zeros((5, 2), np.int32)},
        "start must have dtype float32 or float64",
    ),
    (
        largest_eigenpairs,
        {"num_values": 3},
        "num_values must be at most 2 .the rows and columns of start., got 3",
    ),
    (largest_eigenpairs, {"max_restarts": 0}, "max_restarts must be at least 1"),
]
