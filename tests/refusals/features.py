"""What `jaxkern.features` refuses."""

import numpy as np

from jaxkern import features
from jaxkern.kernels import Distance, Gaussian

LANDMARKS = np.zeros((5, 2), np.float32)


def nystrom():
    return features.nystrom, {"kernel": Gaussian(1.0), "landmarks": LANDMARKS}


def kernel_pca():
    arguments = {"kernel": Gaussian(1.0), "landmarks": LANDMARKS, "num_components": 2}
    return features.kernel_pca, arguments


REFUSED = [
    (
        nystrom,
        {"kernel": Distance()},
        "kernel must be positive semidefinite to have an RKHS, got Distance",
    ),
    (nystrom, {"rank": 0}, "rank must be at least 1, got 0"),
    (nystrom, {"rank": 6}, "rank must be at most 5 .the number of landmarks., got 6"),
    (
        kernel_pca,
        {"kernel": Distance()},
        "kernel must be positive semidefinite to have an RKHS, got Distance",
    ),
    (kernel_pca, {"num_components": 0}, "num_components must be at least 1, got 0"),
    (
        kernel_pca,
        {"num_components": 6},
        "num_components must be at most 5 .the number of landmarks., got 6",
    ),
    (kernel_pca, {"centered": 1}, "centered must be True or False"),
    (kernel_pca, {"normalized": "yes"}, "normalized must be True or False"),
]
