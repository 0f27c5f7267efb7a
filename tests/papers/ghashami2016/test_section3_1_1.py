"""Bounds on random features in all directions, against the formulas as printed and by quadrature."""

import math

import numpy as np
import pytest


def test_the_second_moment_is_that_of_the_features(claims):
    """4 cos(a + g)^2 cos(b + g)^2 has the mean cos(a - b)^2 + 1 / 2 over g; the rest is quadrature."""
    claim = claims["jaxkern:gram-frobenius-identity"].corrected
    skewed = [s for s in claim.settings if s.name.startswith("skewed")]
    (setting,) = (s for s in skewed if s.shapes["paired"] == 0)
    X = np.asarray(setting.data["points"])
    G = np.asarray(setting.data["gram"])
    w = np.linspace(-9, 9, 361)
    density = np.exp(-(w**2) / 2)
    density /= density.sum()
    # cos^2 = (1 + cos 2) / 2, and the two coordinates of a frequency are independent and symmetric.
    differences = X[:, None] - X
    doubled = np.prod(np.cos(2 * differences[..., None] * w) @ density, axis=2)
    exact = np.mean((1 + doubled) / 2 + 1 / 2 - G**2) / 8
    assert claim.statement.target(setting) == pytest.approx(exact, rel=1e-9)


def test_bernsteins_inequality_is_tried_as_it_is_printed(claims):
    """2 n exp(-t^2 / (3 sigma^2 + 2 R t)): d centred coins that fall on one with probability q."""
    form = claims["ghashami2016:bernstein"].printed
    for setting in form.settings:
        d, n, q, x = (setting.numbers[name] for name in ("d", "n", "q", "t"))
        right = math.log(2 * n) - x**2 / (3 * d * q * (1 - q) + 2 * max(q, 1 - q) * x)
        assert form.statement.probability(setting)[1] == pytest.approx(right, rel=1e-12)
