"""The effective rank of Theorem C.1 of kpotufe2020."""

import numpy as np
import pytest
from scipy import special

from proofs_check.papers.kpotufe2020 import appendix_c


def test_effective_ranks_are_squared_mean_norms():
    for p in (1, 2, 8):
        exact = 2 * np.exp(2 * (special.gammaln((p + 1) / 2) - special.gammaln(p / 2)))
        assert appendix_c.effective_rank(3 * np.ones(p)) == pytest.approx(
            exact, rel=1e-8
        )
