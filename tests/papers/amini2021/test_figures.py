"""Figures 1 and 2 of amini2021: their exact laws against simulation, and their tables."""

from functools import partial

import numpy as np
import pytest
from scipy import stats

from proofs_check.papers.amini2021 import figure1, figure2
from proofs_check.papers.amini2021 import scatter as module
from proofs_check.papers.amini2021.figure3 import NOISE, RADII


@pytest.mark.parametrize("radial", [False, True])
@pytest.mark.parametrize("dim", [2, 5])
def test_the_law_of_the_distance_is_that_of_simulation(dim, radial, rng):
    """20,000 draws; each of eight Kolmogorov-Smirnov tests raises a false alarm once in 10^6 seeds."""
    theta = rng.standard_normal((20_000, dim))
    theta /= np.linalg.norm(theta, axis=1, keepdims=True)
    noise = (
        theta * rng.standard_normal((20_000, 1))
        if radial
        else rng.standard_normal((20_000, dim))
    )
    X = 2.0 * theta + 1.5 / dim**0.5 * noise
    for coordinates in (2, dim):
        law = partial(
            module.radius_cdf,
            radius=2.0,
            noise=1.5,
            dim=dim,
            coordinates=coordinates,
            radial=radial,
        )
        test = stats.kstest(np.linalg.norm(X[:, :coordinates], axis=1), law)
        assert test.pvalue > 1e-6, (coordinates, test)


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


def test_a_rule_that_looks_at_the_distance_does_as_well_as_is_said(rng):
    """Two circles, 40,000 points, thresholds at the best places: within 5 standard errors, 1e-6 false alarms."""
    shares = module.shares(
        figure1.CIRCLES, noise=1.5, dim=2, coordinates=2, radial=False
    )
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    n = 40_000
    radii = np.repeat(figure1.CIRCLES, n // 2)
    X = np.stack([radii, np.zeros(n)], axis=1) + 1.5 / 2**0.5 * rng.standard_normal(
        (n, 2)
    )
    edges = np.linspace(0, max(figure1.CIRCLES) + 8 * 1.5 / 2**0.5 + 1e-9, module.BINS)
    guess = np.argmax(shares, axis=0)[np.searchsorted(edges, np.linalg.norm(X, axis=1))]
    error = np.mean(np.asarray(figure1.CIRCLES)[guess] != radii)
    least = module.least_error(shares)
    assert abs(error - least) < 5 * (least * (1 - least) / n) ** 0.5 + 1e-3
