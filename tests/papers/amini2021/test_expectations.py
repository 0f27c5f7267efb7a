"""The expectations of amini2021 that its checks know exactly, against others and against simulation."""

import math

import numpy as np
import pytest

from proofs_check.papers.amini2021 import expectations


def test_the_gegenbauer_nodes_have_the_moments_of_the_angle():
    for d in (2, 3, 50):
        a, weights = expectations.cosines(d)
        assert weights @ a**2 == pytest.approx(1 / d)
        exponential = weights @ np.exp(2 * a)
        assert exponential == pytest.approx(expectations.psi(2, d))


def test_the_mean_of_a_norm_is_that_of_a_chi_variable_and_of_simulation(rng):
    """200,000 draws, 6 standard errors: false alarms below 1e-8."""
    chi = math.sqrt(3) * expectations.mean_chi(5)
    assert expectations.mean_norm(5, 3.0, 0.0) == pytest.approx(chi, rel=1e-12)
    draws = rng.standard_normal((200_000, 3)) * 0.7 + [2.0, 0.0, 0.0]
    norms = np.linalg.norm(draws, axis=1)
    error = abs(norms.mean() - expectations.mean_norm(3, 0.49, 2.0))
    assert error < 6 * norms.std() / math.sqrt(len(norms))


def test_the_means_of_the_plane_are_known_for_isotropic_noise():
    m = np.array([1.2, -1.6])
    C = 0.49 * np.eye(2)
    length = expectations.mean_length_of_plane(m, C)
    assert length == pytest.approx(expectations.mean_norm(2, 0.49, 2.0), rel=1e-12)
    gaussian = expectations.mean_gaussian_of_plane(m, C)
    assert gaussian == pytest.approx(math.exp(-4 / 2 / 1.49) / 1.49, rel=1e-12)
