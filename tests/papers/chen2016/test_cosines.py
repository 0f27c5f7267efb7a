"""The exact laws that claims of chen2016 rest on, against chi-square and quadrature."""

import math

import numpy as np
import pytest
from scipy import stats

from proofs_check.papers.chen2016 import cosines


@pytest.mark.parametrize("t", [16, 60, 1000, 60_000])
def test_the_law_of_a_vanishing_pair_is_chi_square(t):
    x = 1 + np.array([-4, -1, 0, 0.5, 3]) * math.sqrt(2 / t) * 0.6
    assert (
        np.max(np.abs(cosines.pair_cdf(1e-6, t, x) - stats.chi2.cdf(t * x, t))) < 5e-12
    )


@pytest.mark.parametrize("distance", [0.3, 1.0, 2.0, 11.0])
def test_both_tails_are_those_of_the_law(distance):
    """That this is the law of a pair is judged by draws, in `jaxkern:fourier-pair-law`."""
    below, within = cosines.pair_cdf(distance, 16, np.array([0.5, 1.5]))
    assert math.exp(cosines.log_outside(distance, 16, 0.5, 1.5)) == pytest.approx(
        below + 1 - within, abs=1e-10
    )


GRID = np.linspace(-14, 14, 400_001)
WEIGHTS = np.exp(-(GRID**2) / 2) / np.sum(np.exp(-(GRID**2) / 2))


@pytest.mark.parametrize("r", [0.05, 1.0, 4.0])
def test_stop_loss_means_and_moment_generating_functions_are_those_of_a_fine_grid(r):
    mu = -math.expm1(-(r**2) / 2)
    Y = 2 * np.sin(r * GRID / 2) ** 2 / mu
    for c in (0.3, 1.0, 2.0):
        mean = WEIGHTS @ np.maximum(Y - c, 0)
        assert cosines.stop_loss(c, r) == pytest.approx(mean, abs=1e-8)
    for y in (-3.0, 0.3):
        log_mgf = math.log(WEIGHTS @ np.exp(y * (Y - 1)))
        assert cosines.log_mgf(y / mu, r) == pytest.approx(log_mgf, rel=1e-9)


def test_stop_loss_means_of_chi_square_are_those_of_a_fine_grid():
    assert cosines.stop_loss(5.0, 4.0) == 0
    for c in (0.3, 2.0):
        mean = WEIGHTS @ np.maximum(GRID**2 - c, 0)
        assert cosines.chi_square_stop_loss(c, 1) == pytest.approx(mean, abs=1e-8)
