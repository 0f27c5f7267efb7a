"""A size is certified with the level that is promised, and is nearly the smallest: by exact laws and simulated maps."""

import math

import numpy as np
import pytest
from scipy import stats

from proofs_check.certify.errors import median_interval, quantiles
from proofs_check.certify.search import (
    OutOfTime,
    certify_from,
    fewest_draws,
    grid,
    look,
    rule_of,
)
from proofs_check.engine import sequential, stopping

SIZES = grid(1, 2**12)


def found(trial, *, sizes=SIZES, eps=0.1, delta=0.05, alpha=1e-3, start=16):
    outcome = look(trial, sizes, start=start, eps=eps)
    if outcome.size is None:
        return outcome
    levels = {"eps": eps, "delta": delta, "alpha": alpha}
    return certify_from(trial, sizes, outcome.size, **levels)


def lognormal(seed, spread, scale=300.0):
    """Return a trial whose errors fall like the root of the size, and the smallest size that is good."""
    rng = np.random.default_rng(seed)

    def trial(size, stage, number):
        noise = math.exp(spread * rng.standard_normal())
        return 0.1 * math.sqrt(scale / size) * noise

    return trial, scale * math.exp(2 * spread * stats.norm.ppf(0.95))


def test_the_grid_holds_both_ends_and_steps_by_an_eighth_of_a_doubling():
    for smallest, largest in ((1, 1), (7, 7), (1, 2), (3, 1000), (1, 2**20)):
        sizes = np.array(grid(smallest, largest))
        assert sizes[0] == smallest
        assert sizes[-1] == largest
        assert np.all(np.diff(sizes) >= 1)
        assert np.all(sizes[1:] <= np.ceil(sizes[:-1] * 2**0.125 + 1))


@pytest.mark.parametrize("delta", [0.5, 0.05, 0.01])
@pytest.mark.parametrize("alpha", [0.3, 1e-3])
def test_a_judgement_spends_its_level_and_no_more(delta, alpha):
    """The probability that a size at the edge is certified, by the exact law of the rule."""
    rule = rule_of(delta, alpha)
    looks = np.arange(1, len(rule.certified) + 1)
    refuted = np.array(rule.tolerated) + 1
    at_the_edge, good, perfect = (
        stopping.law_of_ends(rate, looks, rule.certified, refuted).certified.sum()
        for rate in (delta, delta / 10, 0)
    )
    assert 0.2 * alpha < at_the_edge <= alpha
    assert good > 0.75
    assert perfect == 1
    fewest = fewest_draws(delta, alpha)
    assert rule.certified[fewest - 1] == 0
    assert rule.certified[fewest - 2] == -1


def test_sizes_that_are_never_good_are_certified_with_the_level_of_all_judgements():
    """Every size fails with a probability just above delta, however lucky a short look was."""
    alpha = 0.2
    certified = 0
    for seed in range(200):
        rng = np.random.default_rng([7, seed])

        def trial(size, stage, number, rng=rng):
            return 2 * (rng.random() < 0.31)

        outcome = found(trial, sizes=grid(1, 64), eps=1.0, delta=0.3, alpha=alpha)
        certified += outcome.size is not None
    # False alarms of this test: 1e-6.
    assert certified <= stats.binom.ppf(1 - 1e-6, 200, alpha)


def test_sizes_are_nearly_the_smallest_good_ones():
    for spread, factor in ((0.05, 1.25), (0.15, 1.6), (0.4, 2.8)):
        ratios = []
        for seed in range(20):
            trial, smallest = lognormal(seed, spread)
            outcome = found(trial)
            ratios.append(outcome.size / smallest)
            assert outcome.upper <= 0.05
        assert 1 <= np.median(ratios) <= factor


def test_only_fresh_draws_of_the_last_judgement_certify():
    names = set()

    def trial(size, stage, number):
        assert (size, stage, number) not in names
        names.add((size, stage, number))
        # Short looks are lucky at every size; the first judgement is not.
        return 0.0 if stage != 1 else 1.0

    outcome = found(trial)
    judged = [probe for probe in outcome.probes if probe.stage > 0]
    assert [probe.stage for probe in judged] == [1, 2]
    assert outcome.size == judged[-1].size == SIZES[2]
    assert judged[-1].failures == 0
    limit = sequential.binomial_limits(0, len(judged[-1].errors), 1e-3 * 0.75 * 0.25)
    assert outcome.upper == pytest.approx(limit[1])


@pytest.mark.parametrize("error", [math.nan, math.inf, 0.1000001])
def test_an_error_that_is_not_at_most_eps_fails(error):
    outcome = found(lambda *_: error)
    assert outcome.size is None
    assert outcome.stopped == "too large"
    assert all(probe.failures == len(probe.errors) == 1 for probe in outcome.probes)


def test_errors_of_zero_and_a_start_at_the_end_go_down_to_the_smallest_size():
    assert found(lambda *_: 0.0, start=10**6).size == 1


def test_a_deadline_ends_a_search_and_other_exceptions_pass():
    def late(size, stage, number):
        if stage == 1 and number == 50:
            raise OutOfTime
        return 0.0

    outcome = found(late)
    assert outcome.stopped == "out of time"
    assert outcome.size is None
    assert max(len(probe.errors) for probe in outcome.probes) == 50

    def broken(*_):
        raise ValueError("no map")

    with pytest.raises(ValueError, match="no map"):
        found(broken)


def test_quantiles_are_errors_and_the_median_interval_has_its_level(rng):
    errors = rng.exponential(size=51)
    assert quantiles(errors)[1] == np.median(errors)
    assert quantiles([math.nan, 1.0, 2.0])[2] == math.inf
    low, high = median_interval(errors)
    below = int(np.sum(errors < low))
    assert below == int(np.sum(errors > high))
    assert (
        stats.binom.cdf(below, 51, 0.5) <= 0.025 < stats.binom.cdf(below + 1, 51, 0.5)
    )
    assert median_interval(errors[:5]) == (-math.inf, math.inf)
