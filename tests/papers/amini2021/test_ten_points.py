"""The law on ten points that barely has property (33)."""

import math

import pytest

from proofs_check.papers.amini2021 import ten_points


def test_the_law_on_ten_points_is_barely_in_the_class():
    assert ten_points.has_property_33(1.0) and not ten_points.has_property_33(1.01)
    assert ten_points.MASSES.sum() == pytest.approx(1)
    assert abs(ten_points.MASSES @ ten_points.ATOMS) < 1e-15
    square, norm = ten_points.sum_errors(2)
    variance = ten_points.MASSES @ ten_points.ATOMS**2
    assert square == pytest.approx(2 * 2 * 3 * variance)
    assert norm < math.sqrt(square)
