"""The checks of kpotufe2020 against exact laws, and against what can be computed by hand."""

import itertools
import math

import jax
import numpy as np
import pytest
from scipy import optimize, special, stats

from jaxkern.bounds import sketching
from proofs_check.claim import Setting
from proofs_check.papers import populations
from proofs_check.papers.kpotufe2020 import appendix_c, laws, section4_inner_products, trials


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


def test_effective_ranks_are_squared_mean_norms():
    for p in (1, 2, 8):
        exact = 2 * np.exp(2 * (special.gammaln((p + 1) / 2) - special.gammaln(p / 2)))
        assert appendix_c.effective_rank(3 * np.ones(p)) == pytest.approx(exact, rel=1e-8)


def test_the_mean_of_a_sampled_cube_is_that_of_all_samples():
    """Three atoms and n = 4: the sum over all 15 counts."""
    K = np.exp(-((np.arange(3.0)[:, None] - np.arange(3.0)) ** 2) / 2)
    weights = np.array([0.5, 0.3, 0.2])
    atoms = populations.Population("three", None, np.eye(3), weights, *populations._features(K, weights))
    f = np.random.default_rng(0).standard_normal(3)
    total = 0.0
    for counts in itertools.product(range(5), repeat=3):
        if sum(counts) == 4:
            sample = atoms.features.T @ (np.array(counts)[:, None] / 4 * atoms.features)
            total += stats.multinomial.pmf(counts, 4, weights) * (f @ np.linalg.matrix_power(sample, 3) @ f)
    assert math.isclose(trials.mean_cube(atoms, f, 4.0), total, rel_tol=1e-12)


def test_any_number_of_rows_costs_what_few_do():
    """Bartlett's matrix: u' L L' u is chi-square for every unit u; Kolmogorov-Smirnov at 1e-6, 4000 draws."""
    u = np.array([0.6, -0.48, 0.64], np.float32)
    for d in (5.0, 1e5):
        keys = jax.random.split(jax.random.key(3), 4000)
        roots = np.asarray(jax.vmap(lambda key, d=d: trials.wishart_root(key, 3, d, np.float32))(keys), float)
        assert np.all(roots[:, 0, 1:] == 0)
        squares = ((np.swapaxes(roots, 1, 2) @ u) ** 2).sum(1)
        assert stats.kstest(squares, stats.chi2(d).cdf).pvalue > 1e-6
        mean = (roots @ np.swapaxes(roots, 1, 2)).mean(0) / d
        assert np.abs(mean - np.eye(3)).max() < 6 * np.sqrt(2 / d / 4000)
