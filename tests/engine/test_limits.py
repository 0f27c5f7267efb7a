"""Exact limits of a violation probability: they solve their equations, and numbers of trials have their power."""

import numpy as np
import pytest
from scipy import stats

from proofs_check.engine import limits
from proofs_check.engine.limits import binomial_limits, certifiable, trials_needed


@pytest.mark.parametrize(
    ("count", "trials"), [(0, 1), (0, 400), (1, 400), (17, 60), (399, 400), (400, 400)]
)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_binomial_limits_solve_their_equations(count, trials, alpha):
    lower, upper = binomial_limits(count, trials, alpha)
    assert 0 <= lower <= count / trials <= upper <= 1
    if count:
        np.testing.assert_allclose(
            stats.binom.sf(count - 1, trials, lower), alpha, rtol=1e-9
        )
    else:
        assert lower == 0
    if count < trials:
        rounding = np.finfo(float).eps / (
            1 - upper
        )  # the limit is stored as a number next to 1
        np.testing.assert_allclose(
            stats.binom.cdf(count, trials, upper), alpha, rtol=1e-9 + 4 * rounding
        )
    else:
        assert upper == 1


def test_binomial_limits_refuse_what_cannot_be():
    assert binomial_limits(0, 0, 0.05) == (0.0, 1.0)
    with pytest.raises(ValueError, match="violations must lie in"):
        binomial_limits(3, 2, 0.05)
    with pytest.raises(ValueError, match="alpha must lie strictly"):
        binomial_limits(1, 2, 1.0)


@pytest.mark.parametrize("beta", [0.05, 0.01])
@pytest.mark.parametrize(
    ("delta", "alpha"),
    [(0.3, 0.05), (0.1, 0.01), (0.05, 1e-4), (0.7, 0.01), (0.01, 1e-3)],
)
def test_trials_needed_has_the_power_it_promises_and_is_the_smallest(
    delta, alpha, beta
):
    """Among all smaller numbers, by critical counts, which are where the limits cross delta."""
    found = trials_needed(delta, alpha, beta=beta)
    n = np.arange(1, found + 1)
    largest, smallest = (
        limits.largest_certified(n, delta, alpha),
        limits.smallest_refuted(n, delta, alpha),
    )
    good, bad = 0.25 * delta, min(2 * delta, (1 + delta) / 2)
    power = np.minimum(
        stats.binom.cdf(largest, n, good), stats.binom.sf(smallest - 1, n, bad)
    )
    assert np.flatnonzero(power >= 1 - beta).tolist() == [found - 1]
    for trials in range(max(1, found - 20), found + 1):
        lower, upper = np.transpose(
            [binomial_limits(k, trials, alpha) for k in range(trials + 1)]
        )
        assert np.count_nonzero(upper <= delta) - 1 == largest[trials - 1]
        assert trials + 1 - np.count_nonzero(lower > delta) == smallest[trials - 1]


def test_trials_needed_is_quick_and_grows_where_delta_shrinks():
    numbers = [trials_needed(delta, 1e-6) for delta in (0.3, 0.1, 1e-2, 1e-4, 1e-6)]
    assert numbers == sorted(numbers)
    assert 20 / 1e-6 < numbers[-1] < 200 / 1e-6
    with pytest.raises(ValueError, match="delta must lie strictly"):
        trials_needed(0.0, 0.01)
    with pytest.raises(ValueError, match="bad must exceed 1"):
        trials_needed(0.1, 0.01, bad=1.0)


@pytest.mark.parametrize(("trials", "alpha"), [(1, 0.05), (400, 1e-6)])
def test_certifiable_is_the_limit_without_violations(trials, alpha):
    np.testing.assert_allclose(
        certifiable(trials, alpha), binomial_limits(0, trials, alpha)[1], rtol=1e-12
    )
    assert certifiable(0, alpha) == 1
