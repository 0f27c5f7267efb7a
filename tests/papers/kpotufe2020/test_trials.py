"""What the trials of kpotufe2020 draw, against exact laws."""

import jax
import numpy as np
import pytest
from scipy import stats

from proofs_check.papers.kpotufe2020 import trials


@jax.jit
def draw(keys, d):
    return jax.vmap(lambda key: trials.wishart_root(key, 3, d, np.float32))(keys)


@pytest.mark.parametrize("d", [5.0, 1e5])
def test_any_number_of_rows_costs_what_few_do(d):
    """Bartlett's matrix: u' L L' u is chi-square for every unit u; Kolmogorov-Smirnov at 1e-6, 4000 draws."""
    roots = np.float64(draw(jax.random.split(jax.random.key(3), 4000), d))
    assert np.all(roots[:, 0, 1:] == 0)
    squares = np.sum((np.array([0.6, -0.48, 0.64]) @ roots) ** 2, axis=1)
    assert stats.kstest(squares, stats.chi2(d).cdf).pvalue > 1e-6
    mean = np.mean(roots @ np.swapaxes(roots, 1, 2), axis=0) / d
    assert np.abs(mean - np.eye(3)).max() < 6 * np.sqrt(2 / d / 4000)
