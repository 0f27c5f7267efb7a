"""Spectral laws of kernels, as they come out of the frequencies of features: means of cosines are kernel values."""

import math

import house
import jax
import numpy as np
from support.drawn import ALARM, VALUES

from jaxkern import features, kernels

DRAWS = 20_000
"""Frequencies, so that Hoeffding's slack is 0.03: another scale or another law moves a mean by more."""


NAMES = ("Matern32", "Laplacian", "Cauchy")
"""A law of each kind: heavy tails of vectors and of coordinates, and no heavy tails."""


def test_means_of_cosines_are_kernel_values():
    """Cosines are in [-1, 1]: a right law is refuted with a probability below 1e-7, by Hoeffding over all pairs."""
    data = house.data()
    scale = house.LENGTHSCALE

    @jax.jit
    def draw(key):
        """Draw the frequencies of the kernels in one program."""
        maps = {}
        for name in NAMES:
            kernel = getattr(kernels, name)(scale)
            phi = features.paired_fourier(key, kernel, 3, num_frequencies=DRAWS)
            maps[name] = phi.frequencies / scale
        return maps

    differences = np.float64(data.X[:8] - data.Y[:8])
    slack = math.sqrt(2 * math.log(2 / ALARM) / DRAWS)
    for name, frequencies in draw(house.key()).items():
        means = np.cos(np.float64(frequencies) @ differences.T).mean(axis=0)
        values = VALUES[name](differences / scale)
        assert np.abs(means - values).max() <= slack, name
        other = VALUES[name](differences / (1.5 * scale))
        assert np.abs(means - other).max() > slack, name  # the control
