"""Where claims of chen2016 are tried: numbers of frequencies, and pairs of a user's rows."""

import math
from functools import partial

import numpy as np
import pytest

from jaxkern.bounds import fourier
from proofs_check.papers import populations
from proofs_check.papers.chen2016 import setup


def test_the_fewest_frequencies_are_the_fewest():
    bound = partial(fourier.relative_distances, eps=0.2, num_points=50)
    for delta in (0.3, 0.05, 1e-6):
        t = setup.fewest(bound, delta)
        assert (
            bound(num_frequencies=t).probability
            >= 1 - delta
            > bound(num_frequencies=t - 1).probability
        )
    assert setup.fewest(bound, 0.999999, least=500) == 500


def test_the_strongest_formula_is_the_one_that_claims_least():
    weak = partial(fourier.relative_distances, num_points=50)
    strong = partial(fourier.relative_distances, num_points=2)
    sizes = {"eps": 0.2, "num_frequencies": 400.0}
    for formulas in ((weak, strong), (strong, weak)):
        bound = setup.strongest(*formulas)(**sizes)
        assert bound.valid
        assert bound.log_failure == strong(**sizes).log_failure
        assert bound.log_failure < weak(**sizes).log_failure


def test_the_strongest_formula_needs_the_hypotheses_of_all():
    holds = partial(fourier.relative_distances, num_points=50)
    fails = partial(fourier.near_distance, distance=2.0, as_printed=True)
    sizes = {"eps": 0.2, "num_frequencies": 400.0}
    assert holds(**sizes).valid
    assert not fails(**sizes).valid
    for formulas in ((holds, fails), (fails, holds)):
        assert not setup.strongest(*formulas)(**sizes).valid


@pytest.mark.float64
def test_pairs_of_a_users_rows_are_at_quantiles_of_their_distances(rng):
    """Rows that are all too near or too far leave the pairs of our own."""
    X, lengthscale = rng.standard_normal((12, 3)), 1.3
    data = populations.from_rows(X, lengthscale=lengthscale)
    apart = np.array(
        [np.linalg.norm(X[i] - X[j]) / lengthscale for i in range(12) for j in range(i)]
    )
    quantiles = [np.sort(apart)[round(q * (len(apart) - 1))] for q in (0.05, 0.5, 0.95)]
    pairs = setup.Inputs(data).pairs
    assert [setting.name for setting in pairs] == [
        f"rows at distance {r:.4g}" for r in quantiles
    ]
    for setting, r in zip(pairs, quantiles, strict=True):
        first, second = np.asarray(setting.data["pair"])
        assert np.linalg.norm(first - second) == pytest.approx(lengthscale * r)
        assert setting.numbers["K"] == pytest.approx(math.exp(-(r**2) / 2))
    ours = [setting.name for setting in setup.Inputs().pairs]
    for scale in (1e-3, 1e3):
        other = populations.from_rows(scale * X, lengthscale=lengthscale)
        assert setup.Inputs(other).distances((1.0, 2.0), 0.1, 12.0) == [1.0, 2.0]
        assert [setting.name for setting in setup.Inputs(other).pairs] == ours
