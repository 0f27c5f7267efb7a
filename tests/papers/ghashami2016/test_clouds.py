"""The points of ghashami2016, and a user's rows in their place."""

import math

import numpy as np
import pytest

from proofs_check.papers.ghashami2016 import clouds


def test_the_gram_of_doubled_differences_is_a_fourth_power():
    for setting in clouds.small_grams():
        G = setting.data["gram"]
        np.testing.assert_allclose(setting.data["doubled"], G**4, rtol=1e-9)
        if setting.name.startswith("line"):
            scale = float(setting.name.split()[-1])
            assert G[0, 1] == pytest.approx(math.exp(-1 / (2 * scale**2)))
