"""Figures 1 and 2 of amini2021: their exact laws against simulation, and their tables."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from proofs_check.papers.amini2021 import figure2
from proofs_check.papers.amini2021 import scatter as module
from proofs_check.papers.amini2021.figure3 import NOISE, RADII


@pytest.mark.parametrize("radial", [False, True])
@pytest.mark.parametrize("dim", [2, 5])
def test_the_law_of_the_distance_is_that_of_simulation(dim, radial, rng):
    """20,000 draws; each of eight Kolmogorov-Smirnov tests raises a false alarm once in 10^6 seeds."""
    theta = rng.standard_normal((20_000, dim))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    noise = rng.standard_normal((20_000, dim))
    if radial:
        noise = theta * noise[:, :1]
    X = 2.0 * theta + 1.5 / dim**0.5 * noise
    model = {"radius": 2.0, "noise": 1.5, "dim": dim, "radial": radial}
    for coordinates in (2, dim):
        law = partial(module.radius_cdf, **model, coordinates=coordinates)
        norms = np.linalg.norm(X[:, :coordinates], axis=1)
        assert stats.kstest(norms, law).pvalue > 1e-6, coordinates


def test_without_noise_two_coordinates_have_the_beta_law():
    x = np.linspace(0, 1, 7)
    shares = module.radius_cdf(
        2 * x, radius=2.0, noise=1e-12, dim=7, coordinates=2, radial=True
    )
    np.testing.assert_allclose(shares, stats.beta.cdf(x**2, 1, 2.5), atol=1e-10)


def test_in_high_dimensions_the_first_two_coordinates_are_normal_and_tell_most_points_apart():
    """Their laws tend to centred normal ones of variance (r^2 + sigma^2) / d, or r^2 / d: the errors stay below 0.3."""
    row = figure2.measure(10_000)
    for model, extra in (("isotropic", NOISE**2), ("radial", 0.0)):
        scales = np.sqrt(np.array(RADII) ** 2 + extra)
        x = np.linspace(0, 80, 20_001)
        laws = np.diff(stats.rayleigh.cdf(x[None, :], scale=scales[:, None]), axis=1)
        assert row[f"{model}, two"] == pytest.approx(
            1 - laws.max(axis=0).sum() / 3, abs=2e-3
        )
        assert row[f"{model}, all"] < 1e-6
    assert 0.1 < row["difference"] < 0.2
