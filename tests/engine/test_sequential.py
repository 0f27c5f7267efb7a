"""E-processes are judged by enumeration: every count, every sequence, and the best that an adversary can do."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from proofs_check.engine import limits, sequential, stopping
from proofs_check.engine.betting import betting_limits
from proofs_check.engine.sequential import (
    binomial_limits,
    log_evidence_above,
    log_evidence_below,
)
from proofs_check.engine.stopping import detectable_rate, stopping_law, trials_needed

DELTAS = [0.5, 0.1, 1e-3, 1e-10, 0.99]
ROUNDING = 1e-12


def expected(evidence, trials, delta, rate):
    """Return the expectation of an e-value after `trials` trials, by summing over the counts."""
    counts = np.arange(trials + 1)
    with np.errstate(divide="ignore"):
        log_law = stats.binom.logpmf(counts, trials, rate)
    return float(np.exp(special.logsumexp(log_law + evidence(counts, trials, delta))))


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("trials", [1, 2, 17, 60])
def test_the_expected_evidence_is_one_at_the_edge_and_at_most_one_within_the_claim(
    trials, delta
):
    within = delta * np.array([0.0, 1e-6, 0.3, 0.9, 1.0])
    above = [expected(log_evidence_above, trials, delta, rate) for rate in within]
    assert np.all(np.diff(above) > -ROUNDING)
    np.testing.assert_allclose(above[-1], 1, rtol=1e-11)
    beyond = 1 - (1 - delta) * np.array([0.0, 1e-6, 0.3, 0.9, 1.0])
    below = [expected(log_evidence_below, trials, delta, rate) for rate in beyond]
    np.testing.assert_allclose(
        below[-1], 1, rtol=1e-6 if delta < 1e-6 else 1e-11
    )  # 1 - (1 - delta) has lost digits
    assert max(below) <= 1 + 1e-6


@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3])
def test_no_rates_that_depend_on_the_past_and_no_stopping_gain_anything(delta):
    """Backward induction: the adversary picks the next rate, and when to stop, and knows everything so far."""
    for evidence, rates in (
        (log_evidence_above, (0.0, delta / 2, delta)),
        (log_evidence_below, (delta, (1 + delta) / 2, 1.0)),
    ):
        horizon = 80
        value = np.exp(evidence(np.arange(horizon + 1), horizon, delta))
        for trials in range(horizon - 1, -1, -1):
            going_on = np.max(
                [rate * value[1:] + (1 - rate) * value[:-1] for rate in rates], axis=0
            )
            value = np.maximum(
                np.exp(evidence(np.arange(trials + 1), trials, delta)), going_on
            )
        assert abs(value[0] - 1) < 1e-11


def test_a_prior_with_mass_below_the_edge_would_be_no_e_process():
    """The control of the test above: an untruncated mixture has the right expectation at the edge, and only there."""
    trials, delta = 60, 0.1
    counts = np.arange(trials + 1)
    whole = special.betaln(0.5 + counts, 0.5 + trials - counts) - special.betaln(
        0.5, 0.5
    )
    mixture = np.exp(
        whole - counts * math.log(delta) - (trials - counts) * math.log1p(-delta)
    )
    np.testing.assert_allclose(
        stats.binom.pmf(counts, trials, delta) @ mixture, 1, rtol=1e-11
    )
    assert stats.binom.pmf(counts, trials, delta / 2) @ mixture > 2


def quadrature(violations, trials, delta):
    """Return log E from its definition: Gauss-Legendre on panels in logit(p) that are fine next to the mode."""
    a, b = sequential.PRIOR
    start = special.logit(delta)

    def log_density(x, hits, misses):  # of logit(p), in units of its value at the edge
        log_p, log_q = -np.logaddexp(0, -x), -np.logaddexp(0, x)
        edge_p, edge_q = math.log(delta), math.log1p(-delta)
        return (
            a * log_p + b * log_q + hits * (log_p - edge_p) + misses * (log_q - edge_q)
        )

    def log_integral(hits, misses):
        mode = max(special.logit((hits + a) / (hits + misses + a + b)), start)
        steps = np.geomspace(1e-8, 200, 800)
        edges = np.unique(
            np.concatenate([[start, mode], start + steps, mode + steps, mode - steps])
        )
        edges = edges[edges >= start]
        nodes, weights = np.polynomial.legendre.leggauss(12)
        half = np.diff(edges)[:, None] / 2
        x = edges[:-1, None] + half * (1 + nodes)
        return special.logsumexp(log_density(x, hits, misses), b=half * weights)

    return log_integral(violations, trials - violations) - log_integral(0, 0)


@pytest.mark.parametrize(
    ("violations", "trials", "delta"),
    [
        (0, 0, 0.3),
        (3, 10, 0.1),
        (10, 10, 0.1),
        (0, 1000, 0.5),
        (100, 1000, 0.5),
        (700, 1000, 0.5),
        (1, 100_000, 1e-10),
        (0, 10**7, 1e-7),
        (5, 10**7, 1e-7),
        (0, 10**7, 0.5),
        (980_000, 10**7, 0.1),
        (1_000_000, 10**7, 0.1),
        (1_010_000, 10**7, 0.1),
        (10**7, 10**7, 1e-10),
        (49, 50, 0.999),
    ],
)
def test_closed_form_is_the_integral(violations, trials, delta):
    found = log_evidence_above(violations, trials, delta)
    np.testing.assert_allclose(
        found,
        quadrature(violations, trials, delta),
        rtol=1e-12,
        atol=1e-9 + 4e-15 * trials,
    )


@pytest.mark.parametrize("delta", [0.5, 0.1, 1e-3, 1e-6, 1e-10])
@pytest.mark.parametrize("trials", [30, 10**4, 10**7])
def test_evidence_is_finite_and_monotone_at_extremes(trials, delta):
    counts = np.unique(
        np.concatenate([[0, 1, 2, trials], np.geomspace(1, trials, 40).round()])
    )
    near = trials * delta * np.array([0.5, 0.9, 0.99, 1.0, 1.01, 1.1])
    counts = np.unique(np.concatenate([counts, near.round()]))
    above, below = (
        log_evidence_above(counts, trials, delta),
        log_evidence_below(counts, trials, delta),
    )
    assert np.all(np.isfinite(above)) and np.all(np.isfinite(below))
    assert np.all(np.diff(above) > 0) and np.all(np.diff(below) < 0)
    assert log_evidence_above(0, trials, delta) <= 0
    assert np.all(
        log_evidence_above(counts, trials + 1, delta) < above + 1e-8
    )  # one trial more without a violation


def test_streams_broadcast_and_the_sides_mirror_each_other():
    counts, deltas = np.array([[3], [40]]), np.array([0.1, 0.25, 0.5])
    found = log_evidence_above(counts, 100, deltas)
    assert found.shape == (2, 3)
    for (i, j), value in np.ndenumerate(found):
        np.testing.assert_allclose(
            log_evidence_above(counts[i, 0], 100, deltas[j]), value
        )
    np.testing.assert_allclose(
        log_evidence_below(100 - counts, 100, 1 - deltas), found, rtol=1e-12
    )


@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-6])
def test_limits_invert_the_evidence_and_refuted_rates_are_an_interval(alpha):
    trials = np.array([1, 2, 7, 50, 3000])
    for total in trials:
        counts = np.unique([0, 1, total // 3, total // 2, total - 1, total])
        lower, upper = binomial_limits(counts, total, alpha)
        assert np.all(
            (lower >= 0)
            & (lower <= counts / total)
            & (counts / total <= upper)
            & (upper <= 1)
        )
        rates = special.expit(np.linspace(-40, 20, 1001))
        refuted = log_evidence_above(counts[:, None], total, rates) >= -math.log(alpha)
        np.testing.assert_array_equal(refuted, rates <= lower[:, None])
        certified = log_evidence_below(counts[:, None], total, rates) >= -math.log(
            alpha
        )
        some = rates < 1 - 1e-7  # beyond, 1 - rate has lost its digits
        np.testing.assert_array_equal(
            certified[:, some], (rates >= upper[:, None])[:, some]
        )


def test_limits_at_the_ends_and_for_ten_million_trials():
    assert binomial_limits(0, 0, 0.05) == (0.0, 1.0)
    lower, upper = binomial_limits(np.array([0, 1, 7, 10**7]), 10**7, 0.01)
    exact = [limits.binomial_limits(k, 10**7, 0.01) for k in (0, 1, 7, 10**7)]
    assert lower[0] == 0 and upper[3] == 1 and 5e-7 < upper[0] < 1e-6
    assert np.all(lower <= [e[0] for e in exact]) and np.all(
        upper >= [e[1] for e in exact]
    )
    assert 0.2 < lower[2] / exact[2][0] < 1 < upper[2] / exact[2][1] < 1.6


@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("alpha", [0.05, 1e-6])
def test_critical_counts_are_where_the_limits_cross_and_ask_for_more_than_the_fixed_rule(
    delta, alpha
):
    trials = np.array([1, 5, 40, 1000, 10**6])
    refuted = sequential.smallest_refuted(trials, delta, alpha)
    certified = sequential.largest_certified(trials, delta, alpha)
    assert np.all(certified < refuted)
    assert np.all(
        refuted >= limits.smallest_refuted(trials, delta, alpha)
    )  # the proof of the fixed rule is Markov's
    assert np.all(certified <= limits.largest_certified(trials, delta, alpha))
    for total, first, last in zip(trials, refuted, certified, strict=True):
        for count in {0, first - 1, first, last, last + 1, total} & set(
            range(total + 1)
        ):
            assert (log_evidence_above(count, total, delta) >= -math.log(alpha)) == (
                count >= first
            )
            assert (log_evidence_below(count, total, delta) >= -math.log(alpha)) == (
                count <= last
            )


def test_critical_counts_grow_by_at_most_one_a_trial():
    trials = np.arange(1, 2000)
    for critical in (sequential.smallest_refuted, sequential.largest_certified):
        assert set(np.diff(critical(trials, 0.1, 0.01))) <= {0, 1}


@pytest.mark.parametrize(("delta", "horizon"), [(0.5, 1000), (0.1, 1000), (0.01, 3000)])
def test_looking_after_every_trial_keeps_the_level_exactly(delta, horizon):
    """No simulation: the law of the end of a run is computed, at the edge and on both sides of it."""
    alpha, looks = 0.05, np.arange(1, horizon)
    at_the_edge = stopping_law(delta, delta, alpha, looks)
    assert alpha / 10 < at_the_edge.refuted.sum() <= alpha
    assert alpha / 10 < at_the_edge.certified.sum() <= alpha
    assert (
        stopping_law(0.8 * delta, delta, alpha, looks).refuted.sum()
        < at_the_edge.refuted.sum()
    )
    assert (
        stopping_law(1.2 * delta, delta, alpha, looks).certified.sum()
        < at_the_edge.certified.sum()
    )
    # The control: the limits for a fixed number of trials, looked at as often, do not keep it.
    fixed = (
        limits.largest_certified(looks, delta, alpha),
        limits.smallest_refuted(looks, delta, alpha),
    )
    assert stopping.law_of_ends(delta, looks, *fixed).refuted.sum() > 2 * alpha


def test_the_stopping_law_is_that_of_all_sequences():
    delta, alpha, rate, looks = 0.2, 0.3, 0.35, np.array([2, 3, 5, 8, 9])
    refuted, certified = np.zeros(looks.size), np.zeros(looks.size)
    for sequence in itertools.product((0, 1), repeat=9):
        probability = rate ** sum(sequence) * (1 - rate) ** (9 - sum(sequence))
        for look, trials in enumerate(looks):
            if log_evidence_above(sum(sequence[:trials]), trials, delta) >= -math.log(
                alpha
            ):
                refuted[look] += probability
                break
            if log_evidence_below(sum(sequence[:trials]), trials, delta) >= -math.log(
                alpha
            ):
                certified[look] += probability
                break
    law = stopping_law(rate, delta, alpha, looks)
    np.testing.assert_allclose(law.refuted, refuted, atol=1e-14)
    np.testing.assert_allclose(law.certified, certified, atol=1e-14)
    assert refuted.sum() > 0.2 and certified.sum() > 0
    ends = np.append(looks, looks[-1])
    weights = np.append(refuted + certified, 1 - refuted.sum() - certified.sum())
    np.testing.assert_allclose(law.expected_trials, ends @ weights)
    assert law.quantile(0.2) in looks and law.quantile(0.999) == math.inf


def test_a_run_that_always_or_never_violates_ends_where_the_evidence_says():
    looks = np.arange(1, 200)
    for rate, evidence in ((0.0, log_evidence_below), (1.0, log_evidence_above)):
        law = stopping_law(rate, 0.1, 0.01, looks)
        first = looks[np.argmax(evidence(rate * looks, looks, 0.1) >= math.log(100))]
        assert law.expected_trials == law.quantile(0.5) == first and law.undecided == 0


@pytest.mark.parametrize(("delta", "alpha"), [(0.5, 0.01), (0.1, 0.01), (0.1, 1e-5)])
def test_trials_needed_has_the_power_it_promises_and_is_the_first_such_look(
    delta, alpha
):
    block = 4
    needed = trials_needed(delta, alpha, block=block)
    looks = np.arange(block, needed + 1, block)
    good = stopping_law(delta / 4, delta, alpha, looks)
    bad = stopping_law(min(2 * delta, (1 + delta) / 2), delta, alpha, looks)
    assert min(good.certified.sum(), bad.refuted.sum()) >= 0.99
    assert min(good.certified[:-1].sum(), bad.refuted[:-1].sum()) < 0.99
    fixed = limits.trials_needed(delta, alpha)
    assert fixed <= needed <= 2 * fixed
    assert max(good.expected_trials, bad.expected_trials) < 0.75 * fixed


def test_detectable_rates():
    trials, delta, alpha = 1000, 0.1, 1e-4
    bound = detectable_rate(trials, delta, alpha)
    # Looking seldom stops no later refutation, and finds no more rates.
    found = [
        stopping_law(
            bound, delta, alpha, np.arange(block, trials + 1, block)
        ).refuted.sum()
        for block in (10, 100)
    ]
    assert found[0] >= found[1] * (1 - 1e-4) and found[1] >= 0.99 * (1 - 1e-9)
    for less in (limits.detectable(trials, delta, alpha), bound / 1.1):
        assert (
            stopping_law(
                less, delta, alpha, np.arange(10, trials + 1, 10)
            ).refuted.sum()
            < 0.99
        )
    assert detectable_rate(3, 0.5, 1e-4) == math.inf
    assert delta < detectable_rate(10**6, delta, alpha) < 1.03 * delta
    assert detectable_rate(trials, delta, alpha, power=0.5) < bound


def test_nonsense_is_refused():
    for call, message in (
        (lambda: log_evidence_above([0, 4], 3, 0.1), "violations must lie in"),
        (lambda: log_evidence_below(1, 3, [0.1, 1.0]), "delta must lie strictly"),
        (lambda: binomial_limits(1, 3, 0.6), r"alpha must lie in \(0, 1/2\]"),
        (lambda: sequential.smallest_refuted(10, 0.1, 0.0), "alpha must lie strictly"),
        (lambda: stopping_law(0.1, 0.1, 0.1, [3, 3]), "looks must be positive"),
        (lambda: trials_needed(0.1, 0.05), "alpha must be at most beta"),
        (lambda: stopping_law(1.1, 0.1, 0.1, [3]), "rate must lie in"),
        (lambda: trials_needed(0.1, 0.01, block=0), "block must be positive"),
        (lambda: betting_limits([0.1, math.nan], 0.05), r"all in \[0, 1\]"),
        (lambda: betting_limits([], 0.05), "at least one value"),
        (
            lambda: betting_limits([0.0], 0.05, low=1.0, high=1.0),
            "low must be below high",
        ),
        (lambda: betting_limits([0.0], 0.05, horizon=0), "horizon must be at least 1"),
        (
            lambda: stopping.law_of_ends(0.1, [3, 4], [1, 1], [2, 1]),
            "certified below refuted",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            call()


@pytest.mark.parametrize("mean", [0.05, 0.5, 0.8])
def test_mean_limits_ever_fail_with_probability_at_most_alpha_over_all_sequences(mean):
    alpha, n = 0.3, 12
    sequences = np.array(list(itertools.product((0.0, 1.0), repeat=n)))
    law = np.prod(np.where(sequences == 1, mean, 1 - mean), axis=1)
    lower, upper = betting_limits(
        sequences, alpha
    )  # the best so far: one failure at any time is seen at the end
    assert law @ (lower > mean) <= alpha and law @ (upper < mean) <= alpha
    assert law @ (lower > mean) + law @ (upper < mean) > 0


def test_mean_limits_cover_where_values_depend_on_the_past(rng):
    """10,000 streams whose variance follows their past, alpha = 0.05: a right rule fails here with probability 1e-4."""
    alpha, streams, n = 0.05, 10_000, 100
    x, mean = np.empty((streams, n)), 0.3
    for i in range(n):
        calm = x[:, i - 1] > mean if i else np.zeros(streams, bool)
        wild = np.where(rng.random(streams) < mean, 1.0, 0.0)
        x[:, i] = np.where(calm, mean + 0.1 * rng.uniform(-1, 1, streams), wild)
    lower, upper = betting_limits(2 + 3 * x, alpha, low=2.0, high=5.0)
    for missed in (np.sum(lower > 2 + 3 * mean), np.sum(upper < 2 + 3 * mean)):
        assert limits.binomial_limits(int(missed), streams, 1e-4 / 2)[0] <= alpha
    assert np.all((lower >= 2) & (upper <= 5))


def test_mean_limits_shrink_and_are_near_those_of_a_normal_law(rng):
    x = rng.beta(2, 8, (20, 2000))
    lower, upper = betting_limits(x, 1e-3)
    assert lower.shape == upper.shape == (20,)
    assert np.mean(upper - lower) < 2.5 * 2 * stats.norm.isf(
        1e-3
    ) * x.std() / math.sqrt(2000)
    assert np.all(betting_limits(x[:, :300], 1e-3)[0] <= lower + 1e-12)
    planned = betting_limits(x, 1e-3, horizon=2000)
    assert np.mean(planned[1] - planned[0]) < np.mean(upper - lower)


def test_mean_limits_are_equivariant(rng):
    x = rng.uniform(0.2, 0.9, (3, 200))
    lower, upper = betting_limits(x, 0.05)
    moved = betting_limits(5 - 4 * x, 0.05, low=1.0, high=5.0)
    np.testing.assert_allclose(moved[0], 5 - 4 * upper, atol=1e-12)
    np.testing.assert_allclose(moved[1], 5 - 4 * lower, atol=1e-12)
