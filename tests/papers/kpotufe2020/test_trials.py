"""What the trials of kpotufe2020 draw, against sums over all samples and exact laws."""

import itertools
import math

import jax
import numpy as np
from scipy import stats

from proofs_check.papers import populations
from proofs_check.papers.kpotufe2020 import trials


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
