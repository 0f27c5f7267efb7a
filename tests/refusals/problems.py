"""What `jaxkern.problems` refuses."""

import house
import numpy as np

from jaxkern import problems
from jaxkern.kernels import Gaussian

MEANS = np.zeros((3, 2), np.float32)
SPHERES = {"num_points": 5, "dim": 3, "radii": (1.0,), "noise": 1.0, "radial": False}


def nested_spheres():
    return problems.nested_spheres, {"key": house.key(), **SPHERES}


def circles():
    return problems.circles, {"key": house.key()}


def cluster_in_cluster():
    return problems.cluster_in_cluster, {"key": house.key()}


def crescent_full_moon():
    return problems.crescent_full_moon, {"key": house.key()}


def gaussian_mixture():
    return problems.gaussian_mixture, {"key": house.key()}


def random_noisy():
    return problems.random_noisy, {"key": house.key(), "dim": 4, "signal_dim": 2}


def perturb():
    return problems.perturb, {"key": house.key(), "means": MEANS, "noise": 1.0}


def mean_kernel():
    law = problems.UniformLaw()
    problem = problems.Problem(MEANS, MEANS[:, 0], MEANS, 1.0, law)
    return problem.mean_kernel, {"kernel": Gaussian(1.0)}


def ramp_law():
    return problems.RampLaw, {"slope": 1.0}


def sample():
    arguments = {"key": house.key(), "num_points": 1, "dim": 1}
    return problems.UniformLaw().sample, arguments


SAMPLERS = (
    nested_spheres,
    circles,
    cluster_in_cluster,
    crescent_full_moon,
    gaussian_mixture,
)

REFUSED = [
    *(
        (sampler, {"num_points": 0}, "num_points must be at least 1")
        for sampler in (*SAMPLERS, random_noisy, sample)
    ),
    *(
        (sampler, {"noise": -0.1}, "noise must be non-negative and finite")
        for sampler in SAMPLERS
    ),
    (nested_spheres, {"noise": np.ones(3, np.float32)}, "noise must have shape"),
    (nested_spheres, {"dim": 1}, "dim must be at least 2"),
    (nested_spheres, {"radii": ()}, "radii must be a list of at least one number"),
    (nested_spheres, {"radii": (1, -1)}, "radii must be non-negative and finite"),
    (nested_spheres, {"radial": "yes"}, "radial must be True or False"),
    (
        nested_spheres,
        {"dtype": "float16"},
        "dtype must be float32 or float64, got float16",
    ),
    (
        cluster_in_cluster,
        {"radius": -1.0},
        "radius and ring must be non-negative",
    ),
    (
        crescent_full_moon,
        {"crescent": (1, 2, 3)},
        "ring must be an inner and an outer radius",
    ),
    (random_noisy, {"signal_dim": 5}, "signal_dim must be at most 4"),
    (random_noisy, {"zeta": 0.0}, "zeta must be positive"),
    (
        gaussian_mixture,
        {"centers": MEANS[:2]},
        r"centers must have shape \(3, 2\), got \(2, 2\)",
    ),
    (gaussian_mixture, {"separation": -1.0}, "separation must be non-negative"),
    (perturb, {"law": "uniform"}, "law must be a law of this module"),
    (perturb, {"labels": np.zeros(2, int)}, r"labels must have shape \(3,\)"),
    (
        mean_kernel,
        {},
        "law must be GaussianLaw for a known mean kernel, got UniformLaw",
    ),
    (ramp_law, {"slope": -1.0}, "slope must be non-negative"),
    (sample, {"dim": 0}, "dim must be at least 1"),
]
