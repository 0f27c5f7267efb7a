"""Where claims of chen2016 are tried: numbers of frequencies, and pairs of a user's rows."""

import math
from functools import partial

import numpy as np
import pytest
from scipy.spatial import distance

from jaxkern.bounds import fourier
from proofs_check.papers import populations
from proofs_check.papers.chen2016 import setup

WEAK = partial(fourier.relative_distances, num_points=50)
STRONG = partial(fourier.relative_distances, num_points=2)
FAILS = partial(fourier.near_distance, distance=2.0, as_printed=True)
SIZES = {"eps": 0.2, "num_frequencies": 400.0}


def test_the_fewest_frequencies_are_the_fewest():
    bound = partial(WEAK, eps=0.2)
    for delta in (0.3, 0.05, 1e-6):
        t = setup.fewest(bound, delta)
        assert bound(num_frequencies=t).probability >= 1 - delta
        assert bound(num_frequencies=t - 1).probability < 1 - delta
    assert setup.fewest(bound, 0.999999, least=500) == 500


@pytest.mark.parametrize("formulas", [(WEAK, STRONG), (STRONG, WEAK)])
def test_the_strongest_formula_is_the_one_that_claims_least(formulas):
    bound = setup.strongest(*formulas)(**SIZES)
    assert bound.valid
    assert bound.log_failure == STRONG(**SIZES).log_failure
    assert bound.log_failure < WEAK(**SIZES).log_failure


@pytest.mark.parametrize("formulas", [(WEAK, FAILS), (FAILS, WEAK)])
def test_the_strongest_formula_needs_the_hypotheses_of_all(formulas):
    assert not FAILS(**SIZES).valid
    assert not setup.strongest(*formulas)(**SIZES).valid


@pytest.mark.float64
def test_pairs_of_a_users_rows_are_at_quantiles_of_their_distances(rng):
    X = rng.standard_normal((12, 3))
    pairs = setup.Inputs(populations.from_rows(X, lengthscale=1.3)).pairs
    distances = np.sort(distance.pdist(X)) / 1.3
    quantiles = distances[np.round(np.array([0.05, 0.5, 0.95]) * 65).astype(int)]
    for setting, r in zip(pairs, quantiles, strict=True):
        assert setting.name == f"rows at distance {r:.4g}"
        first, second = np.asarray(setting.data["pair"])
        assert np.linalg.norm(first - second) == pytest.approx(1.3 * r)
        assert setting.numbers["K"] == pytest.approx(math.exp(-(r**2) / 2))


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_rows_that_are_all_too_near_or_too_far_leave_our_own_pairs(scale, rng):
    X = scale * rng.standard_normal((12, 3))
    inputs = setup.Inputs(populations.from_rows(X, lengthscale=1.3))
    assert inputs.distances((1.0, 2.0), 0.1, 12.0) == [1.0, 2.0]
    ours = [setting.name for setting in setup.Inputs().pairs]
    assert [setting.name for setting in inputs.pairs] == ours
