"""A value for every argument of every bound, at which its hypotheses hold, or nearly."""

import importlib
import inspect

from jaxkern.bounds import Bound

SKETCHING = {
    "kappa": 1.0,
    "op_norm": 0.4,
    "op_norm3": 0.07,
    "trace": 1.0,
    "trace3": 0.1,
    "hs_norm": 0.5,
    "n": 1e6,
    "d": 64.0,
    "tau": 3.0,
    "theta": 0.6,
    "scale": 0.3,
    "eigenvalue": 0.2,
    "epsilon": 0.01,
    "num_points": 10.0,
    "eta": 1e-3,
    "sigma": 0.05,
    "weight": 0.4,
    "mean_gap": 0.7,
    "num_functions": 50.0,
    "num_pairs": 50.0,
    "rank": 2.5,
    "energy": 0.3,
    "squared_diameter": 0.4,
    "squared_distance": 0.9,
}
FOURIER = {
    "eps": 0.2,
    "num_frequencies": 700.0,
    "num_features": 900.0,
    "num_points": 50.0,
    "distance": 0.1,
    "second_moment": 1.1,
    "fourth_moment": 3.2,
    "s": 0.4,
    "mean": 0.3,
    "p": 0.1,
    "q": 0.6,
    "frequency_energy": 900.0,
    "dim": 2.0,
    "radius": 30.0,
    "diameter": 3.0,
    "tau": 5.0,
    "residual_energy": 12.0,
    "sketch_size": 21.0,  # odd: a bound by floor(l / 2) jumps at even sizes
    "rank": 3.0,
    "energy": 60.0,
    "row_energy": 2.0,
    "spectral": 2.0,
    "tail": 3.0,
    "num_landmarks": 300.0,
    "coherence": 1.5,
    "mean_square": 0.3,
}
CONCENTRATION = {
    "alpha": 1.5,
    "bound": 1.2,
    "c": 0.4,
    "c1": 0.5,
    "c2": 0.4,
    "dim": 12.0,
    "displacement": 0.6,
    "error": 0.1,
    "frobenius": 1.4,
    "gamma2": 4.0,
    "gamma_tilde2": 1.3,
    "kappa": 1.1,
    "kmeans_factor": 1.2,
    "lengthscale": 1.8,
    "lipschitz": 0.7,
    "mean_frobenius": 0.9,
    "mean_gap": 0.02,
    "mean_norm": 1.5,
    "mean_rank": 2.0,
    "mean_scale": 0.3,
    "min_share": 0.3,
    "noise": 0.8,
    "noise_variance": 0.4,
    "num_clusters": 3.0,
    "num_others": 20.0,
    "num_points": 30.0,
    "omega": 1.2,
    "op_norm": 0.9,
    "other_radius": 1.7,
    "psi": 1.1,
    "psi_double": 1.4,
    "radius": 0.9,
    "scale": 0.4,
    "smallest": 15.0,
    "spectral": 0.3,
    "squared_distance": 1.3,
    "t": 1.2,
    "tau": 1.5,
    "total_variance": 9.0,
    "truncation_factor": 5.0,
    "u": 1.1,
    "v": 2.0,
    "vbar2": 0.02,
}
VALUES = {"sketching": SKETCHING, "fourier": FOURIER, "streaming": FOURIER, "concentration": CONCENTRATION}
OF_ARRAYS = {"bounds.fourier.relative_distances_given"}


def _arguments(function, values):
    """Return the arguments that have a value here, among them every one without a default."""
    parameters = inspect.signature(function).parameters.values()
    wanted = (p.name for p in parameters if p.default is p.empty or p.name in values)
    return {word: values[word] for word in wanted}


ARGUMENTS = {}
"""By public name, the arguments of a bound with their values."""
for _topic, _values in VALUES.items():
    _module = importlib.import_module(f"jaxkern.bounds.{_topic}")
    for _name in _module.__all__:
        _function = getattr(_module, _name)
        _is_bound = inspect.isfunction(_function) and inspect.signature(_function).return_annotation in (Bound, "Bound")
        if _is_bound and f"bounds.{_topic}.{_name}" not in OF_ARRAYS:
            ARGUMENTS[f"bounds.{_topic}.{_name}"] = _arguments(_function, _values)


def named(name):
    """Return the function of a public name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(f"jaxkern.{module}"), attribute)
