"""The laws and expectations of amini2021 that its checks know exactly, against others and against simulation."""

import math

import numpy as np
import pytest

from proofs_check.papers.amini2021 import laws


def test_the_law_on_ten_points_is_barely_in_the_class():
    assert laws.has_property_33(1.0) and not laws.has_property_33(1.01)
    assert (
        laws.MASSES.sum() == pytest.approx(1) and abs(laws.MASSES @ laws.ATOMS) < 1e-15
    )
    square, norm = laws.sum_errors(2)
    variance = laws.MASSES @ laws.ATOMS**2
    assert square == pytest.approx(2 * 2 * 3 * variance) and norm < math.sqrt(square)


def test_the_gegenbauer_nodes_have_the_moments_of_the_angle():
    for d in (2, 3, 50):
        a, weights = laws.cosines(d)
        assert weights @ a**2 == pytest.approx(1 / d) and weights @ np.exp(
            2 * a
        ) == pytest.approx(laws.psi(2, d))
