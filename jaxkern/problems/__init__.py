"""Synthetic data whose truth is known: clusters of the papers, and noise of every class that amini2021 admits.

Every sampler returns a `Problem`: points X_i = mu_i + sqrt(Sigma_i) W_i with the means, the noise and the law of W
they came from. Rows are keyed one by one, so the first rows of a larger sample are those of a smaller one.
"""

from jaxkern.problems._laws import (
    GaussianLaw,
    Law,
    RampLaw,
    SkewedLaw,
    SoftplusImageLaw,
    UniformImageLaw,
    UniformLaw,
)
from jaxkern.problems._problem import Problem, perturb
from jaxkern.problems._samplers import (
    circles,
    cluster_in_cluster,
    crescent_full_moon,
    gaussian_mixture,
    nested_spheres,
    random_noisy,
)

__all__ = [
    "GaussianLaw", "Law", "Problem", "RampLaw", "SkewedLaw", "SoftplusImageLaw", "UniformImageLaw", "UniformLaw",
    "circles", "cluster_in_cluster", "crescent_full_moon", "gaussian_mixture", "nested_spheres", "perturb",
    "random_noisy",
]  # fmt: skip
