"""What `jaxkern.bounds` refuses. Numbers of the wrong kind are refused by one decorator: tests/support/stress.py."""

import numpy as np

from jaxkern.bounds import concentration, fourier

LABELS = np.array([0, 1, 0, 1])
EYE = np.eye(4, dtype=np.float32)


def lipschitz_kernel():
    numbers = {"lipschitz": 1.0, "omega": 1.0, "scale": 1.0, "num_points": 9, "t": 1.0}
    return concentration.lipschitz_kernel, numbers


def kernel_value():
    return fourier.kernel_value, {"eps": 0.5, "num_frequencies": 300}


def block_parameters():
    arguments = {"mean_kernel": EYE, "labels": LABELS, "num_clusters": 2}
    return concentration.block_parameters, arguments


def population_parameters():
    matrices = {"psi": EYE[:2, :2], "v2": EYE[:2, :2]}
    return concentration.population_parameters, matrices | {"shares": np.ones(2) / 2}


def relative_distances_given():
    vectors = {"squared_distances": [1.0, 2.0], "pairs": [1.0, 1.0]}
    arguments = {"eps": 0.3, "num_frequencies": 400, **vectors}
    return fourier.relative_distances_given, arguments


REFUSED = [
    (kernel_value, {"eps": "0.1"}, "eps must be a real number, got"),
    (lipschitz_kernel, {"t": [[1.0], [1.0, 2.0]]}, "t must be a real number, got"),
    # Its default, None, is the only argument that is no number and is taken.
    (lipschitz_kernel, {"mean_scale": "1"}, "mean_scale must be a real number, got"),
    (lipschitz_kernel, {"mean_scale": True}, "mean_scale must be a real number, got"),
    (lipschitz_kernel, {"as_printed": "yes"}, "as_printed"),
    (lipschitz_kernel, {"as_printed": 1}, "as_printed"),
    (block_parameters, {"num_clusters": 1}, "num_clusters"),
    (block_parameters, {"labels": LABELS[:3]}, "labels"),
    (block_parameters, {"off_diagonal": 1}, "off_diagonal"),
    (population_parameters, {"v2": EYE}, "v2 must have the shape of psi"),
    (
        relative_distances_given,
        {"pairs": [1.0]},
        "must be vectors of one size",
    ),
    (
        relative_distances_given,
        {"squared_distances": 1.0, "pairs": 1.0},
        "must be vectors of one size",
    ),
    (
        relative_distances_given,
        {"squared_distances": [[1.0]], "pairs": [[1.0]]},
        "must be vectors of one size",
    ),
]
