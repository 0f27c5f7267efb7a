"""Theorem 1 of kpotufe2020, its constant, and the steps of its proof."""

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from jaxkern.bounds import sketching
from proofs_check.claim import Setting
from proofs_check.papers.kpotufe2020 import laws, section4_inner_products


def test_the_printed_theorem_1_fails_for_every_constant(claims):
    """P(chi2_1 > 1 + 3 C (sqrt 2 + sqrt tau) + 1/2) exceeds 5 exp(-tau), for C over six decades."""
    statement = claims["kpotufe2020:thm1"].printed.statement
    for constant in np.geomspace(1e-3, 1e3, 25):
        setting = Setting("", numbers={"p": 1.0, "tau": 9 * constant**2 + 12, "C": constant})
        log_violation, log_allowed = statement.probability(setting)
        assert log_violation > log_allowed


def test_the_named_constants_bracket_the_smallest_one():
    # u - log(1 + u) = 2: the rate at which chi2_d / d - 1 exceeds u equals exp(-d).
    exact = optimize.brentq(lambda u: u - np.log1p(u) - 2, 1, 10)
    assert sketching.KOLTCHINSKII_LOUNICI_LOWER < exact < sketching.KOLTCHINSKII_LOUNICI
    assert exact - sketching.KOLTCHINSKII_LOUNICI_LOWER < 1e-3
    # At d = 600 the probability already shows the rate on both sides of it.
    d = 600
    assert stats.chi2.logsf(d * (1 + exact - 0.03), d) > -d > stats.chi2.logsf(d * (1 + exact), d)


def test_the_bounds_of_6_in_both_norms_are_one_number_in_one_coordinate(x64):
    class OnALine:
        each = (Setting("line"),)

        def population_of(self, setting):
            return laws.two_groups("line", [[1.0], [-1.0]], [0.2, 0.8], [0, 1])

    form = section4_inner_products._eq6(OnALine()).printed
    pairs = form.statement.sides(jax.random.key(0), form.settings[0])[3::5]
    assert pairs and max(left for left, _ in pairs) > 0.01
    for left, right in pairs:
        assert left == pytest.approx(right.value, rel=1e-9)
