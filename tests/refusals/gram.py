"""What `jaxkern.gram` refuses."""

import numpy as np

from jaxkern import gram
from jaxkern.kernels import Distance, Gaussian

ONES = np.ones((5, 2), np.float32)
WIDE = np.ones((5, 2))
OF_ANOTHER_DTYPE = "must have the dtype of X, float32, got float64; convert one of them"
UNKNOWN_ROUNDING = "is not known; pass a built-in"


def matrix():
    return gram.gram, {"kernel": Gaussian(1.0), "X": ONES, "Y": ONES + 1}


def bound():
    return gram.rounding, {"kernel": Gaussian(1.0), "X": ONES, "Y": ONES + 1}


def product():
    arguments = {"kernel": Gaussian(1.0), "X": ONES, "Y": None, "V": ONES}
    return gram.gram_matmul, arguments


def distances():
    return gram.kernel_distance, {"kernel": Gaussian(1.0), "X": ONES, "Y": ONES + 1}


def center():
    return gram.center, {"K": np.ones((5, 5), np.float32)}


REFUSED = [
    (
        matrix,
        {"X": ONES[0]},
        r"X must have rank 2, \(points, dimensions\), got shape \(2,\)",
    ),
    (matrix, {"Y": ONES[:, :1]}, "Y must have 2 columns"),
    (matrix, {"Y": WIDE}, f"Y {OF_ANOTHER_DTYPE}"),
    (bound, {"kernel": Distance()}, UNKNOWN_ROUNDING),
    (product, {"X": ONES[0]}, "X must have rank 2"),
    (product, {"Y": ONES[:, :1]}, "Y must have 2 columns"),
    (product, {"V": ONES[:4]}, r"V must have shape \(5,\) or \(5, r\)"),
    (product, {"V": WIDE}, f"V {OF_ANOTHER_DTYPE}"),
    (product, {"block_size": 0}, "block_size must be at least 1"),
    (distances, {"X": ONES[0]}, "X must have rank 2"),
    (distances, {"Y": WIDE}, f"Y {OF_ANOTHER_DTYPE}"),
    (distances, {"Y": ONES[:4]}, r"Y must have the shape of X, \(5, 2\), got \(4, 2\)"),
    (
        distances,
        {"kernel": Gaussian(1.0) * Distance()},
        "kernel must be positive semidefinite to have a kernel distance",
    ),
    (center, {"K": ONES}, "K must"),
]
