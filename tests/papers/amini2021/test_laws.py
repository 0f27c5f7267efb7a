"""The laws and expectations of amini2021 that its checks know exactly, against others and against simulation."""

import math

import numpy as np
import pytest

from proofs_check.papers.amini2021 import laws


def test_the_law_on_ten_points_is_barely_in_the_class():
    assert laws.has_property_33(1.0) and not laws.has_property_33(1.01)
    assert laws.MASSES.sum() == pytest.approx(1) and abs(laws.MASSES @ laws.ATOMS) < 1e-15
    square, norm = laws.sum_errors(2)
    variance = laws.MASSES @ laws.ATOMS**2
    assert square == pytest.approx(2 * 2 * 3 * variance) and norm < math.sqrt(square)


def test_the_mean_of_a_gaussian_kernel_is_a_product_of_closed_forms():
    m, v, tau = np.array([0.4, -1.0, 2.0]), 0.7, 1.3
    s2 = 1 + v / tau**2
    closed = s2**-1.5 * math.exp(-(m @ m) / (2 * s2 * tau**2))
    assert laws.mean_of_gaussian(m, v, tau) == pytest.approx(closed, rel=1e-12)


def test_the_gegenbauer_nodes_have_the_moments_of_the_angle():
    for d in (2, 3, 50):
        a, weights = laws.cosines(d)
        assert weights @ a**2 == pytest.approx(1 / d) and weights @ np.exp(2 * a) == pytest.approx(laws.psi(2, d))


def test_quadrature_over_both_noises_is_the_printed_kernel_unless_sign_0_is_0():
    for a in (-0.7, 0.0, 1.0):
        true = laws.radial_quadrature(a, 1.0, 2.0, 1.5, 1.8, 4)
        assert laws.radial_mean(a, 1.0, 2.0, 1.5, 1.8, 4) == pytest.approx(true, rel=1e-9)
    wrong = laws.radial_mean(0.0, 1.0, 2.0, 1.5, 1.8, 4, zero=0)
    assert abs(wrong / laws.radial_quadrature(0.0, 1.0, 2.0, 1.5, 1.8, 4) - 1) > 0.1
