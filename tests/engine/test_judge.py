"""The judge is judged: by exact binomial sums wherever that is possible, never by a lucky seed."""

import dataclasses
import math

import jax
import numpy as np
import pytest
from scipy import optimize, stats
from support import toys

from jaxkern.bounds import Bound
from proofs_check.claim import (
    Calibrated,
    Control,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Law,
    Rare,
    Rate,
    Setting,
    Tail,
    Undecided,
)
from proofs_check.engine import betting, sequential, stopping
from proofs_check.engine import judge as judging
from proofs_check.engine.draws import FULL, QUICK, derive_key, sample
from proofs_check.engine.judge import judge, two_sides
from proofs_check.engine.limits import binomial_limits, detectable
from proofs_check.engine.run import run

ALPHA = 1e-4
HERE = (Setting("here"),)
SIZES = tuple(Setting(f"n={n}", numbers={"n": float(n)}) for n in (10, 20, 40, 80, 160))


def no_trial(key, population, numbers):
    raise AssertionError("the judge runs no trial")


def says(value, delta, valid=True):
    return lambda setting: Bound(value, 1 - delta, valid, "toy:1")


def form(statement, settings=HERE):
    return Form(statement, settings, "certified")


def tail(value=1.0, delta=0.1, ceiling=None, settings=HERE):
    return form(
        Tail(
            no_trial,
            says(value, delta),
            None if ceiling is None else lambda setting: ceiling,
        ),
        settings,
    )


def with_violations(count, trials):
    """Return a sample of which `count` exceed 1."""
    return np.where(np.arange(trials) < count, 2.0, 0.5)


def quantiles(law, trials):
    return law.ppf((np.arange(trials) + 0.5) / trials)


def decides_at(statement, setting, sample, level, **options):
    return judging.decides(
        sample, *judging.checked_bound(statement.bound, setting), level, **options
    )


def expectation(target=0.0, precision=0.05, moment=lambda setting: 0.01):
    return form(
        Expectation(
            no_trial,
            lambda setting: target,
            lambda setting: 1.0,
            precision,
            moment=moment,
        )
    )


def around(mean, spread, trials):
    return mean + spread * np.where(np.arange(trials) % 2, 1.0, -1.0)


def rate(exponent, width=0.1, spread=0.1):
    """Return the Rate of a statistic whose standard deviation is at most `spread` times its power of the size."""
    moment = lambda setting: (spread * setting.numbers["n"] ** exponent) ** 2  # noqa: E731
    return form(Rate(no_trial, "n", exponent, width, moment=moment), SIZES)


def power_law(exponent, spread=0.0, trials=100):
    return [
        around(s.numbers["n"] ** exponent, spread * s.numbers["n"] ** exponent, trials)
        for s in SIZES
    ]


def exact(*pairs):
    settings = tuple(Setting(str(i)) for i in range(len(pairs)))
    return form(Exact(lambda setting: pairs[0]), settings), [
        np.array(pair) for pair in pairs
    ]


IDENTITY = form(Identity(no_trial))
INEQUALITY = form(Inequality(no_trial))
LAW = form(Law(no_trial, stats.norm.cdf))


def status_of(tried, *samples, **options):
    return judge(tried, samples, ALPHA, **options).status


def statuses(delta, trials, alpha):
    """Return the verdict on every possible number of violations."""
    return np.array(
        [
            judge(tail(delta=delta), [with_violations(k, trials)], alpha).status
            for k in range(trials + 1)
        ]
    )


@pytest.mark.parametrize("delta", [0.01, 0.1, 0.5, 0.9])
@pytest.mark.parametrize(
    ("trials", "alpha"), [(1, 0.05), (20, 0.01), (90, 0.05), (90, 1e-4)]
)
def test_a_true_tail_is_refuted_and_a_false_one_certified_with_probability_at_most_alpha(
    delta, trials, alpha
):
    found = statuses(delta, trials, alpha)
    law = stats.binom.pmf(np.arange(trials + 1), trials, delta)
    assert law[found == "refuted"].sum() <= alpha
    assert (
        law[found == "certified"].sum() <= alpha
    )  # at the boundary of the false claims, so for each of them
    assert not np.any((found[:-1] == "refuted") & (found[1:] != "refuted"))
    assert not np.any((found[1:] == "certified") & (found[:-1] != "certified"))


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.5])
def test_detectable_is_refuted_with_the_power_it_names(delta):
    trials, alpha, power = 80, 0.01, 0.9
    found = statuses(delta, trials, alpha) == "refuted"
    counts = np.arange(trials + 1)
    rate = detectable(trials, delta, alpha, power)
    np.testing.assert_allclose(
        stats.binom.pmf(counts, trials, rate)[found].sum(), power, rtol=1e-9
    )
    assert detectable(1, 0.5, 0.01) == math.inf


def test_the_slack_is_the_bound_over_the_quantile_at_the_tightest_setting():
    settings = (Setting("a"), Setting("b"))
    samples = [np.arange(1.0, 101), np.arange(1.0, 101) / 2]
    assert judge(tail(180.0, 0.1, settings=settings), samples, ALPHA).slack == 2.0
    assert judge(tail(math.inf, 0.1), [np.arange(1.0, 101)], ALPHA).slack == math.inf
    for level in (-1.0, 0.0):
        assert math.isnan(judge(tail(1.0, 0.1), [np.full(100, level)], ALPHA).slack)
    assert judge(tail(1.0, 0.1), [np.full(100, math.nan)], ALPHA).slack == 0.0
    assert (
        judge(tail(2.0, delta=1 - 1e-12), [[4.0, 1.0, 3.0]], ALPHA).slack == 2.0
    )  # the smallest
    assert (
        judge(tail(1.0, 0.1), [[*np.arange(90.0), *[math.inf] * 10]], ALPHA).slack
        == 1 / 89
    )
    assert (
        judge(tail(1.0, 0.1), [[*np.arange(89.0), *[math.inf] * 11]], ALPHA).slack
        == 0.0
    )


def test_an_inequality_in_single_precision_is_given_its_rounding():
    assert status_of(INEQUALITY, [(1 + 1e-4, 1.0)], eps=2.0**-23) == "consistent"
    assert status_of(INEQUALITY, [(1 + 1e-4, 1.0)]) == "refuted"


def test_the_sides_of_an_inequality_are_checked():
    sides = two_sides(
        [
            (1, Bound(2.0, 1.0, True, "toy:1")),
            (np.float64(3), Bound(4, 1, True, "toy:1")),
        ],
        HERE[0],
    )
    np.testing.assert_array_equal(sides, [[1, 2], [3, 4]])
    with pytest.raises(
        judging.InvalidSetting,
        match=r"hypotheses of toy:1 do not hold at setting 'here'",
    ):
        two_sides([(1.0, Bound(2.0, 1.0, False, "toy:1"))], HERE[0])
    with pytest.raises(ValueError, match=r"must hold always, got delta = 0\.1"):
        two_sides([(1.0, Bound(2.0, 0.9, True, "toy:1"))], HERE[0])
    with pytest.raises(
        ValueError, match="at least 1 input is needed at setting 'here'"
    ):
        two_sides([], HERE[0])


def test_a_claim_may_hold_an_inequality(x64):
    """The control runs at the inputs of the form: they depend on the seed and the names alone."""
    seen = []

    def below(factor):
        def sides(key, setting):
            seen.append(float(jax.random.uniform(key)))
            return [(seen[-1], Bound(factor * seen[-1], 1.0, True, "toy:1"))]

        return Inequality(sides)

    control = Control("half of it", below(0.5), HERE)
    corrected = Form(below(2.0), HERE, "consistent")
    claim = dataclasses.replace(
        toys.CLAIM, printed=None, corrected=corrected, controls=(control,)
    )
    for seed in (0, 0, 1):
        (result,) = run([claim], profile=QUICK, seed=seed)
        assert (
            result.as_expected
            and result.corrected.slack == 2.0
            and result.corrected.evidence[0].trials == 1
        )
    assert seen[0] == seen[1] == seen[2] != seen[4]


@pytest.mark.parametrize(
    ("tried", "samples", "message"),
    [
        (tail(), [], "one sample a setting"),
        (tail(), [[]], "at least 1 trial"),
        (expectation(), [[1.0]], "at least 2 trial"),
        (
            form(Calibrated(no_trial, says(0.0, 0.1), 0, 1)),
            [[1.0]],
            "shape must be positive",
        ),
        (form(Rate(no_trial, "n", 1.0), SIZES[:4]), [[1.0, 2.0]] * 4, "at least five"),
    ],
)
def test_what_cannot_be_judged_is_refused(tried, samples, message):
    with pytest.raises(ValueError, match=message):
        judge(tried, samples, ALPHA)


def test_an_unknown_statement_is_refused():
    with pytest.raises(TypeError, match="no rule judges"):
        judge(dataclasses.replace(tail(), statement=object()), [[1.0]], ALPHA)


@pytest.mark.parametrize("chance", [0.5, 0.3, 0.05])
def test_a_true_mean_is_refuted_within_its_level_and_a_false_one_is_seen(chance):
    trials, alpha = 500, 0.01
    counts = np.arange(trials + 1)
    tried = expectation(target=chance, moment=lambda setting: chance * (1 - chance))
    refuted = [
        judge(tried, [np.where(np.arange(trials) < k, 1.0, 0.0)], alpha).status
        == "refuted"
        for k in counts.tolist()
    ]
    assert 0.01 * alpha < stats.binom.pmf(counts, trials, chance)[refuted].sum() < alpha
    far = chance + 5 * math.sqrt(chance * (1 - chance) / trials)
    assert stats.binom.pmf(counts, trials, far)[refuted].sum() > 0.8


LOOKS = np.arange(judging.LOOK, 8 * judging.LOOK + 1, judging.LOOK)


@pytest.mark.parametrize("delta", [0.02, 0.1, 0.6])
def test_a_run_stops_and_is_judged_at_the_critical_counts_of_the_sequential_rule(delta):
    trials = 640
    first = int(sequential.smallest_refuted(trials, delta, ALPHA))
    last = int(sequential.largest_certified(trials, delta, ALPHA))
    assert last < delta * trials < first
    expected = {
        last: "certified",
        last + 1: "consistent",
        first - 1: "consistent",
        first: "refuted",
    }
    for count, status in expected.items():
        if count < 0:
            continue
        verdict = judge(
            tail(delta=delta),
            [with_violations(count, trials)],
            ALPHA,
            rule="sequential",
        )
        assert verdict.status == status
        decided = decides_at(
            tail(delta=delta).statement, HERE[0], with_violations(count, trials), ALPHA
        )
        assert decided == (status != "consistent")
        facts = verdict.evidence[0].facts
        assert (
            facts["lower_limit"],
            facts["upper_limit"],
        ) == sequential.binomial_limits(count, trials, ALPHA)
        assert (
            facts["p_value"] <= ALPHA
            if status == "refuted"
            else ALPHA < facts["p_value"] <= 1
        )
        assert facts["certifiable"] == sequential.binomial_limits(0, trials, ALPHA)[1]
        assert facts["detectable"] == stopping.detectable_rate(trials, delta, ALPHA)


def test_what_holds_always_is_decided_by_one_violation_and_what_claims_nothing_by_none():
    cases = (
        (0.0, [0.5, 2.0], True),
        (0.0, [0.5, 1 + 1e-14], False),
        (1.0, [], True),
        (1.5, [], True),
    )
    for delta, sample_, expected in cases:
        assert (
            decides_at(tail(delta=delta).statement, HERE[0], sample_, 0.01) == expected
        )
    assert decides_at(tail(delta=0.1).statement, HERE[0], [math.nan] * 20, 0.01)
    assert not decides_at(tail(delta=0.1).statement, HERE[0], [], 0.01)
    rounded = tail(delta=0.0), [[1 + 1e-5]]
    assert judge(*rounded, 0.01, eps=2.0**-23, rule="sequential").status == "consistent"
    assert not decides_at(
        rounded[0].statement, HERE[0], rounded[1][0], 0.01, eps=2.0**-23
    )


def test_what_just_reaches_a_limit_decides():
    """Numbers that come back from a logarithm, or from 1 - delta, to the last bit."""
    above = float(sequential.log_evidence_above(12, 100, 0.05))
    below = float(sequential.log_evidence_below(0, 100, 0.05))
    for evidence, violations in ((above, 12), (below, 0)):
        level = math.exp(-evidence)
        assert -math.log(level) == evidence
        assert judging.decides(with_violations(violations, 100), 1.0, 0.05, level)
        assert not judging.decides(
            with_violations(violations, 100), 1.0, 0.05, level * (1 - 1e-9)
        )
    upper = float(binomial_limits(1, 7, ALPHA)[1])
    assert 1 - (1 - upper) == upper
    assert status_of(tail(delta=upper), with_violations(1, 7)) == "certified"
    assert status_of(tail(delta=upper - 1e-9), with_violations(1, 7)) == "consistent"


@pytest.mark.parametrize(
    "rule", [{"rule": "sometimes"}, {"look": 1}, {"rule": "sequential", "look": -1}]
)
def test_a_rule_that_does_not_exist_is_refused(rule):
    with pytest.raises(ValueError, match='rule must be "fixed" or "sequential"'):
        judge(tail(), [[0.5]], ALPHA, **rule)


def rare(log_claimed=-41.0, log_ceiling=-40.0):
    return form(
        Rare(no_trial, lambda setting: log_claimed, lambda setting: log_ceiling)
    )


def rare_event(target=5e-3):
    return form(
        Expectation(
            no_trial,
            lambda setting: target,
            lambda setting: 1.0,
            limits=lambda setting: (0.0, 1.0),
        )
    )


TOGETHER = {
    "a mean": (expectation(), [around(0.039, 0.1, 100)]),
    "a mean by betting": (rare_event(0.32), [around(0.5, 0.5, 128)]),
    "a law": (LAW, [stats.norm.ppf((np.arange(500) + 0.5) / 500) + 0.218]),
    "a rate": (rate(-0.5, spread=0.5), power_law(-0.31, spread=0.5)),
    "a rare probability": (rare(-40.89), [np.arange(200) % 5 / 4.0]),
}


@pytest.mark.parametrize("case", TOGETHER)
def test_look_k_at_all_draws_together_has_half_the_level_of_the_look_before(case):
    """The same sample is refuted at the first look and no longer at the sixth, and all looks spend at most alpha."""
    tried, samples = TOGETHER[case]
    statuses = []
    for look in range(6):
        verdict = judge(tried, samples, 0.01, rule="sequential", look=look)
        alone = judge(tried, samples, 0.01 / 2 ** (look + 1))
        assert verdict.evidence == alone.evidence and verdict.status == alone.status
        assert verdict.alpha == 0.01 and verdict.facts.get("look", 0) == look
        statuses.append(verdict.status)
    assert statuses[0] == "refuted" and statuses[5] != "refuted"
    assert sum(0.01 / 2 ** (look + 1) for look in range(60)) <= 0.01


@pytest.mark.parametrize("delta", [0.05, 0.5])
def test_a_constant_may_be_looked_at_again_and_again(delta):
    """The limit of the constant is an order statistic, and it exceeds the true quantile at any look with <= alpha."""
    alpha = 0.01
    tried = form(Calibrated(no_trial, says(1.0, delta), 0.0, math.inf))
    counts = []
    for trials in LOOKS.tolist():
        facts = judge(
            tried, [np.arange(1.0, trials + 1)], alpha, rule="sequential"
        ).facts
        counts.append(
            trials + 1 - int(facts["needed_lower_limit"])
        )  # so many trials reach it
    np.testing.assert_array_equal(
        counts, sequential.smallest_refuted(LOOKS, delta, alpha)
    )
    assert (
        stopping.law_of_ends(
            delta, LOOKS, np.full(LOOKS.size, -1), counts
        ).refuted.sum()
        <= alpha
    )
    nothing = judge(tried, [[7.0]], alpha, rule="sequential")
    assert nothing.facts["needed_lower_limit"] == -math.inf
    always = form(Calibrated(no_trial, says(1.0, 0.0), 0.0, 2.0))
    assert judge(always, [[1.0, 2.5]], alpha, rule="sequential").status == "refuted"


ESTIMATES = np.arange(1000) % 5 / 4.0  # the mean is 1/2


def test_a_rare_probability_that_is_never_seen_has_an_upper_limit_alone():
    verdict = judge(rare(-41.0), [np.zeros(1000)], ALPHA)
    assert verdict.status == "certified" and math.isnan(verdict.slack)
    facts = verdict.evidence[0].facts
    assert (
        facts["log_lower_limit"]
        == facts["log_estimate"]
        == -math.inf
        < facts["log_upper_limit"]
        < -43
    )


def test_estimates_that_are_not_finite_or_not_between_0_and_1():
    broken = judge(rare(-10.0), [np.append(ESTIMATES, math.nan)], ALPHA)
    assert broken.status == "refuted" and broken.facts["not_finite"] == 1
    facts = broken.evidence[0].facts
    assert facts["log_lower_limit"] == -math.inf and math.isnan(broken.slack)
    assert facts["log_upper_limit"] == facts["log_ceiling"]  # a probability of 1
    for outside in (-0.01, 1.01):
        with pytest.raises(
            ValueError, match=r"estimates must lie in \[0, 1\] at setting 'here'"
        ):
            judge(rare(), [np.append(ESTIMATES, outside)], ALPHA)
    for numbers in ((math.nan, -40.0), (-41.0, math.inf), (-41.0, math.nan)):
        with pytest.raises(
            ValueError, match="log_claimed and log_ceiling must be numbers"
        ):
            judge(rare(*numbers), [ESTIMATES], ALPHA)
    with pytest.raises(ValueError, match="at least 1 trial"):
        judge(rare(), [[]], ALPHA)


def uniform(key, population, numbers):
    return jax.random.uniform(key, dtype=numbers["top"].dtype)


def below(setting):
    """P(uniform > top) = 1 - top, and 0.1 is claimed."""
    return Bound(setting.numbers["top"], 0.9, True, "toy:1")


def test_a_run_stops_at_the_first_look_that_decides_with_the_verdict_of_that_prefix(
    x64,
):
    """For all but 6e-4 of the seeds the run stops early, with these verdicts."""
    places = tuple(
        Setting(f"top={top}", numbers={"top": top})
        for top in np.linspace(0.975, 0.99, 8).round(3).tolist()
    )
    wrong = (Setting("top=0.75", numbers={"top": 0.75}),)
    claim = dataclasses.replace(
        toys.CLAIM,
        printed=Form(Tail(uniform, below), wrong, "refuted"),
        corrected=Form(Tail(uniform, below), places, "certified"),
        controls=(Control("0.75", Tail(uniform, below), wrong),),
    )
    drawn = []
    (result,) = run(
        [claim],
        profile=FULL,
        seed=1,
        progress=lambda done, total: drawn.append((done, total)),
    )
    assert result.as_expected
    looks = np.arange(
        judging.LOOK,
        1 + max(FULL.trials(claim.corrected, result.corrected.alpha)),
        judging.LOOK,
    )
    for part, verdict in (
        (claim.printed, result.printed),
        (claim.corrected, result.corrected),
    ):
        level = verdict.alpha / len(part.settings)
        keys = [derive_key(1, claim.id, "", setting.name) for setting in part.settings]
        whole = [
            sample(uniform, key, setting, int(looks[-1]))
            for key, setting in zip(keys, part.settings, strict=True)
        ]
        for setting, values, seen in zip(
            part.settings, whole, verdict.evidence, strict=True
        ):
            decisive = [
                decides_at(part.statement, setting, values[:n], level) for n in looks
            ]
            assert seen.trials == looks[np.argmax(decisive)] < looks[-1]
        stopped = [
            values[: seen.trials]
            for values, seen in zip(whole, verdict.evidence, strict=True)
        ]
        assert judge(part, stopped, verdict.alpha, rule="sequential") == verdict
        for rule in ("fixed", "sequential"):
            assert judge(part, whole, verdict.alpha, rule=rule).status == verdict.status
    assert (
        drawn[-2][0]
        == sum(e.trials for _, _, v in result.forms for e in v.evidence)
        < drawn[-2][1]
    )
    assert drawn[-1][0] == drawn[-1][1]


ROUND = 1e4 * 2.0**-52
AB = (Setting("a", numbers={"x": 1.0}), Setting("b", numbers={"x": 2.0}))


def alike(found, expected):
    """Compare numbers to 1e-9, and a NaN with a NaN."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            alike(found[name], value)
    elif isinstance(expected, float):
        np.testing.assert_allclose(
            found, expected, rtol=1e-9, err_msg=f"{found} {expected}"
        )
    else:
        assert found == expected


def says_all(verdict, status, because, slack, facts, evidence):
    """Compare all that a verdict says; `evidence` holds (setting, trials, facts)."""
    assert (verdict.status, verdict.because, verdict.alpha) == (status, because, ALPHA)
    alike(verdict.slack, slack)
    known = [
        seen["slack"]
        for _, _, seen in evidence
        if not math.isnan(seen.get("slack", math.nan))
    ]
    several = (
        {"slack_median": float(np.median(known)), "slack_largest": max(known)}
        if known
        else {}
    )
    alike(dict(verdict.facts), facts | several)
    assert [(e.setting, e.trials) for e in verdict.evidence] == [
        (setting, trials) for setting, trials, _ in evidence
    ]
    for seen, (_, _, expected) in zip(verdict.evidence, evidence, strict=True):
        alike(dict(seen.facts), expected)


def by_setting(**values):
    return lambda setting: values[setting.name]


def test_an_identity_says_its_largest_error():
    tried = form(Identity(no_trial), AB)
    single, double = 1e4 * 2.0**-23, 1e4 * 2.0**-52
    small = {"worst_residual": 3e-13, "limit": double, "not_finite": 0}
    wide = {"worst_residual": float(np.float32(2e-4)), "limit": single, "not_finite": 0}
    because = "the largest relative error is 0.0002"
    verdict = judge(tried, [np.float32([1e-4, -2e-4]), [1e-13, -3e-13, 0.0]], ALPHA)
    facts = {"not_finite": 0, "worst_residual": wide["worst_residual"]}
    says_all(
        verdict, "identity", because, math.nan, facts, [("a", 2, wide), ("b", 3, small)]
    )
    large = small | {"worst_residual": 1e-3}
    because = "the largest relative error is 0.001, which is more than rounding"
    for samples, evidence in (
        ([[1e-3], [3e-13]], [("a", 1, large), ("b", 1, small)]),
        ([[3e-13], [1e-3]], [("a", 1, small), ("b", 1, large)]),
    ):
        facts = {"not_finite": 0, "worst_residual": 1e-3}
        says_all(
            judge(tried, samples, ALPHA), "refuted", because, math.nan, facts, evidence
        )
    lost = judge(IDENTITY, [[math.nan, 0.0]], ALPHA)
    because = "the largest relative error is inf, which is more than rounding (1 statistics are not finite)"
    assert (
        lost.because == because and lost.evidence[0].facts["worst_residual"] == math.inf
    )
    assert status_of(IDENTITY, [ROUND]) == "identity"
    for error, status in (
        (1e-3, "identity"),
        (2e-3, "refuted"),
    ):  # of a run in float32, in an array of float64
        found = judge(IDENTITY, [[error]], ALPHA, eps=2.0**-23)
        assert found.status == status and found.evidence[0].facts["limit"] == single
    assert judge(IDENTITY, [[0.0]], ALPHA).because == "the largest relative error is 0"
    with pytest.raises(
        ValueError, match=r"at least 1 trial\(s\) are needed at setting 'here', got 0"
    ):
        judge(IDENTITY, [[]], ALPHA)


def test_exact_probabilities_are_compared_to_rounding_of_their_size():
    for found, claimed, status in (
        (-0.5 + 0.9 * ROUND, -0.5, "certified"),
        (-0.5 + 1.1 * ROUND, -0.5, "refuted"),
        (-1e4 + 0.9e4 * ROUND, -1e4, "certified"),
        (-1e4 + 1.1e4 * ROUND, -1e4, "refuted"),
        (ROUND, 0.0, "vacuous"),
        (-3.0, math.nan, "refuted"),
    ):
        assert judge(*exact((found, claimed)), ALPHA).status == status
    tried, samples = exact(*[(-2.0 + i, -3.0) for i in range(4)], (-9.0, -8.0))
    verdict = judge(tried, samples, ALPHA)
    named = "; ".join(
        f"the probability is {p} at {i}, claimed is at most 0.04979"
        for i, p in enumerate(("0.1353", "0.3679", "1"))
    )
    evidence = [
        (
            str(i),
            0,
            {
                "log_probability": pair[0],
                "log_claimed": pair[1],
                "not_finite": 0,
                "says_nothing": False,
            },
        )
        for i, pair in enumerate(np.array(samples).tolist())
    ]
    for _, _, facts in evidence:
        facts["slack"] = math.exp(facts["log_claimed"] - facts["log_probability"])
    says_all(
        verdict,
        "refuted",
        named,
        math.exp(-4),
        {"not_finite": 0, "settings_refuted": 4},
        evidence,
    )
    for pair in ((math.nan, -3.0), (-3.0, math.nan)):
        assert judge(*exact(pair), ALPHA).facts["not_finite"] == 1
    assert judge(*exact((-5.0, 0.0), (-5.0, -1.0)), ALPHA).status == "certified"
    assert judge(*exact((-5.0, 0.0), (-5.0, 1.0)), ALPHA).status == "vacuous"
    never = judge(*exact((-math.inf, -3.0), (-5.0, 1.0)), ALPHA)
    assert never.status == "vacuous" and math.isnan(never.evidence[0].facts["slack"])


def test_an_inequality_says_where_it_fails_most():
    tried = form(Inequality(no_trial), AB)
    verdict = judge(
        tried,
        [[(1.0, 2.0), (2.5, 1.5), (4.0, 2.0)], [(1.0, 0.5), (math.nan, 3.0)]],
        ALPHA,
    )
    a = {
        "violations": 2,
        "excess": 2.0,
        "left": 4.0,
        "right": 2.0,
        "not_finite": 0,
        "slack": 0.5,
    }
    b = {
        "violations": 2,
        "excess": math.inf,
        "left": math.nan,
        "right": 3.0,
        "not_finite": 1,
        "slack": 0.5,
    }
    because = "nan where at most 3 is claimed, at b (1 statistics are not finite)"
    facts = {"not_finite": 1, "settings_refuted": 2, "worst_setting": "b"}
    says_all(verdict, "refuted", because, 0.5, facts, [("a", 3, a), ("b", 2, b)])
    held = judge(tried, [[(1.0, 2.0)], [(-4.0, 1.0), (2.0, 6.0)]], ALPHA)
    a = {
        "violations": 0,
        "excess": 0.0,
        "left": 1.0,
        "right": 2.0,
        "not_finite": 0,
        "slack": 2.0,
    }
    b = a | {"left": -4.0, "right": 1.0, "slack": 3.0}
    because = "it holds at all 3 inputs that were tried"
    says_all(
        held, "consistent", because, 2.0, {"not_finite": 0}, [("a", 1, a), ("b", 2, b)]
    )
    assert (
        judge(INEQUALITY, [[(ROUND, 1.0), (2.0, 3.0)]], ALPHA).slack == 1.5
    )  # of no more than rounding: no ratio
    assert math.isnan(judge(INEQUALITY, [[(ROUND, 1.0)]], ALPHA).slack)
    assert status_of(INEQUALITY, [(1e6 * (1 + 0.9 * ROUND), 1e6)]) == "consistent"
    assert status_of(INEQUALITY, [(-1e6 * (1 - 0.9 * ROUND), -1e6)]) == "consistent"
    assert status_of(INEQUALITY, [(1e6 * (1 + 1.1 * ROUND), 1e6)]) == "refuted"
    assert status_of(INEQUALITY, [(ROUND, 0.0)]) == "consistent"
    assert status_of(INEQUALITY, [(1.1 * ROUND, 0.0)]) == "refuted"


def test_bounds_are_numbers_with_probabilities_up_to_1_to_rounding():
    def checked(value, probability):
        return judging.checked_bound(
            lambda setting: Bound(value, probability, True, "toy:1"), HERE[0]
        )

    assert checked(2.0, 1 + 0.5e-6) == (2.0, 0.0)
    assert checked(2.0, 1.0) == (2.0, 0.0) and checked(2.0, 0.75) == (2.0, 0.25)
    for value, probability in ((math.nan, 0.9), (1.0, math.nan), (1.0, 1 + 1.5e-6)):
        with pytest.raises(
            ValueError,
            match="toy:1 at setting 'here' must be a number with a probability of at most",
        ):
            checked(value, probability)


def test_what_is_not_testable_needs_no_sample_and_what_is_needs_a_level_and_a_setting():
    for alpha in (0.0, 1.0):
        with pytest.raises(ValueError, match="alpha must lie strictly between 0 and 1"):
            judge(form(Undecided("")), [], alpha)
    with pytest.raises(
        ValueError, match=r"one sample a setting is needed, got 0 for 0 setting\(s\)"
    ):
        judge(form(LAW.statement, ()), [], ALPHA)


def of_a_tail(count, trials, delta, *, level, quantile, value=1.0):
    """Return the facts of a count above delta by the fixed rule, from the tails of the laws of Beta and binomial."""
    lower = float(stats.beta.ppf(level, count, trials - count + 1)) if count else 0.0
    upper = float(stats.beta.isf(level, count + 1, trials - count))
    beyond = float(stats.binom.pmf(np.arange(count, trials + 1), trials, delta).sum())
    slack = (
        value / quantile if count else math.nan
    )  # without a violation these samples are constant
    facts = {
        "bound": value,
        "delta": delta,
        "slack": slack,
        "not_finite": 0,
        "says_nothing": False,
    }
    facts |= {
        "violations": count,
        "lower_limit": lower,
        "upper_limit": upper,
        "quantile": quantile,
    }
    facts |= {"refutes": lower > delta, "certifies": upper <= delta, "p_value": beyond}
    facts |= {
        "certifiable": 1 - level ** (1 / trials),
        "detectable": detectable(trials, delta, level),
    }
    return facts


def tails(**deltas):
    return form(
        Tail(no_trial, lambda s: Bound(1.0, 1 - deltas[s.name], True, "toy:1")), AB
    )


def test_a_refuted_tail_names_the_setting_with_the_smallest_p_value():
    delta, level = 1 - (1 - 0.1), ALPHA / 2
    a = of_a_tail(90, 200, delta, level=level, quantile=2.0)
    b = of_a_tail(60, 200, delta, level=level, quantile=2.0)
    verdict = judge(
        tails(a=0.1, b=0.1), [with_violations(90, 200), with_violations(60, 200)], ALPHA
    )
    because = f"90 of 200 trials exceed the bound at a: violation probability at least {a['lower_limit']:.3g}, claimed"
    facts = {"not_finite": 0, "settings_refuted": 2, "worst_setting": "a"}
    says_all(
        verdict, "refuted", because + " 0.1", 0.5, facts, [("a", 200, a), ("b", 200, b)]
    )
    # Without any probability both are impossible, and the larger lower limit decides.
    verdict = judge(
        tails(a=0.0, b=0.0), [with_violations(1, 9), with_violations(5, 9)], ALPHA
    )
    assert (
        verdict.because
        == "5 of 9 trials exceed the bound at b, by more than rounding, and none may"
    )
    facts = verdict.evidence[1].facts
    assert facts["p_value"] == 0 and facts["refutes"] and not facts["certifies"]


def test_a_certified_tail_names_the_setting_closest_to_its_delta():
    verdict = judge(
        tails(a=0.1, b=0.5), [with_violations(0, 200), with_violations(0, 200)], ALPHA
    )
    a = of_a_tail(0, 200, 1 - 0.9, level=ALPHA / 2, quantile=0.5)
    b = of_a_tail(0, 200, 0.5, level=ALPHA / 2, quantile=0.5)
    because = (
        f"violation probability at most {a['upper_limit']:.3g} where 0.1 is claimed "
    )
    because += "(a, the closest of 2 setting(s))"
    facts = {"not_finite": 0, "settings_vacuous": 0}
    says_all(
        verdict, "certified", because, math.nan, facts, [("a", 200, a), ("b", 200, b)]
    )
    assert (
        judge(tail(), [np.ones(200)], ALPHA).evidence[0].facts["violations"] == 0
    )  # at the bound is within it


def test_an_open_tail_names_the_setting_farthest_from_its_delta():
    verdict = judge(
        tails(a=0.001, b=0.1),
        [with_violations(0, 200), with_violations(20, 200)],
        ALPHA,
    )
    a = of_a_tail(0, 200, 1 - 0.999, level=ALPHA / 2, quantile=0.5)
    b = of_a_tail(20, 200, 1 - 0.9, level=ALPHA / 2, quantile=0.5)
    because = (
        "0 of 200 trials exceed the bound at a, where delta = 0.001; as many trials could certify "
        f"{a['certifiable']:.3g} and would refute a rate of {a['detectable']:.3g}"
    )
    facts = {
        "certifiable": a["certifiable"],
        "detectable": a["detectable"],
        "worst_setting": "a",
    }
    facts |= {"not_finite": 0, "settings_open": 2, "settings_vacuous": 0}
    says_all(verdict, "consistent", because, 2.0, facts, [("a", 200, a), ("b", 200, b)])


def test_a_tail_that_says_nothing_says_so():
    because = "at every setting the bound exceeds what the statistic can ever be, or claims no probability at all"
    nothing = {
        "bound": 1.0,
        "delta": 1.0,
        "slack": math.nan,
        "not_finite": 0,
        "says_nothing": True,
    }
    verdict = judge(tail(delta=1.0), [[]], ALPHA)
    says_all(
        verdict, "vacuous", because, math.nan, {"not_finite": 0}, [("here", 0, nothing)]
    )
    above = judge(tail(delta=0.1, ceiling=0.9), [np.full(200, 0.5)], ALPHA)
    facts = of_a_tail(0, 200, 1 - 0.9, level=ALPHA, quantile=0.5) | {
        "ceiling": 0.9,
        "says_nothing": True,
    }
    says_all(
        above, "vacuous", because, math.nan, {"not_finite": 0}, [("here", 200, facts)]
    )
    # A bound at the ceiling excludes nothing that can be, and yet is not beyond it.
    assert status_of(tail(ceiling=1.0), with_violations(0, 200) * 2) == "certified"
    one = judge(tails(a=1.0, b=0.1), [[], with_violations(0, 200)], ALPHA)
    assert one.status == "certified" and one.facts == {
        "not_finite": 0,
        "settings_vacuous": 1,
    }


@pytest.mark.parametrize("size", [1.0, 1e6, -1.0, -1e6])
def test_what_holds_always_and_ceilings_allow_for_rounding_of_their_size(size):
    within, beyond = size + 0.9 * ROUND * abs(size), size + 1.1 * ROUND * abs(size)
    assert status_of(tail(size, delta=0.0), [within]) == "consistent"
    assert status_of(tail(size, delta=0.0), [beyond]) == "refuted"
    assert status_of(tail(size, ceiling=size), [within, size - 1]) == "consistent"
    with pytest.raises(ValueError, match="the statistic exceeds its ceiling"):
        judge(tail(size, ceiling=size), [[beyond, size - 1]], ALPHA)
    assert status_of(tail(-1.0, delta=0.0), [-1.0 + ROUND]) == "consistent"
    assert status_of(tail(ceiling=1.0), [1.0 + ROUND]) == "consistent"


def test_a_constant_is_refuted_by_as_many_ratios_as_refute_delta():
    shapes = Calibrated(
        no_trial, lambda s: Bound(2.0 * s.numbers["x"], 0.9, True, "toy:1"), 0.1, 1.0
    )
    samples = [np.linspace(0.01, 4, 400), np.linspace(0.02, 6, 300)]
    verdict = judge(form(shapes, AB), samples, ALPHA)
    evidence = []
    for setting, sample_ in zip(AB, samples, strict=True):
        ratios = np.sort(sample_ / (2 * setting.numbers["x"]))
        n, delta = ratios.size, 1 - 0.9
        k = next(k for k in range(n + 1) if stats.binom.sf(k - 1, n, delta) < ALPHA / 2)
        facts = {"shape": 2 * setting.numbers["x"], "delta": delta, "not_finite": 0}
        facts |= {
            "needed": float(ratios[round(0.9 * n) - 1]),
            "needed_lower_limit": float(ratios[n - k]),
        }
        evidence.append((setting.name, n, facts))
    needed = max(facts["needed"] for _, _, facts in evidence)
    limit = max(facts["needed_lower_limit"] for _, _, facts in evidence)
    assert (
        limit
        == evidence[0][2]["needed_lower_limit"]
        > evidence[1][2]["needed_lower_limit"]
    )
    facts = {
        "needed_estimate": needed,
        "needed_lower_limit": limit,
        "proved_lower": 0.1,
        "proved_upper": 1.0,
    }
    because = f"a constant of at least {limit:.4g} is needed at a, proved is 1"
    says_all(
        verdict, "refuted", because, 1 / needed, {"not_finite": 0} | facts, evidence
    )
    proved = dataclasses.replace(shapes, upper=4.0)
    because = f"the constant lies in [{limit:.4g}, 4]"
    facts["proved_upper"] = 4.0
    verdict = judge(form(proved, AB), samples, ALPHA)
    says_all(
        verdict, "calibrated", because, 4 / needed, {"not_finite": 0} | facts, evidence
    )
    low = judge(form(dataclasses.replace(proved, lower=3.5), AB), samples, ALPHA)
    assert low.because == "the constant lies in [3.5, 4]"


def test_the_edges_of_a_constant():
    always = form(Calibrated(no_trial, says(1.0, 0.0), 0.0, 2.0))
    assert status_of(always, [2.0 * (1 + ROUND)]) == "calibrated"  # to rounding
    assert status_of(always, [2.0 * (1 + 2 * ROUND)]) == "refuted"
    # Two violations of two refute a rate of 0.005, 2.5e-5 < 1e-4, and one does not: the smaller one is the limit.
    rare_ = judge(
        form(Calibrated(no_trial, says(1.0, 0.005), 0.0, 9.0)), [[5.0, 3.0]], ALPHA
    )
    assert rare_.facts["needed_lower_limit"] == 3.0
    some = form(
        Calibrated(
            no_trial, lambda s: Bound(1.0, 2 - s.numbers["x"], True, "toy:1"), 0.0, 9.0
        ),
        AB,
    )
    verdict = judge(
        some, [[1.0], []], ALPHA
    )  # b claims a probability of 0, and needs no trials
    assert verdict.status == "calibrated" and verdict.facts["needed_lower_limit"] == 1.0
    assert dict(verdict.evidence[1].facts) == {
        "shape": 1.0,
        "delta": 1.0,
        "not_finite": 0,
    }
    nothing = judge(form(Calibrated(no_trial, says(1.0, 1.0), 0.0, 9.0)), [[]], ALPHA)
    assert nothing.because == "no probability is claimed at any setting" and math.isnan(
        nothing.slack
    )


def catoni(sample_, level=ALPHA / 4, variance=0.25):
    """Return the lower limit of a mean as the root of Catoni's sum, by SciPy."""
    n, log = len(sample_), math.log(1 / level)
    scale = math.sqrt(2 * log / (n * variance))

    def excess(mean):
        psi = [
            math.copysign(math.log(1 + abs(y) + y * y / 2), y)
            for y in (scale * (x - mean) for x in sample_)
        ]
        return math.fsum(psi) - log - n * math.log(1 + scale**2 * variance / 2)

    return optimize.brentq(
        excess, min(sample_) - 1e3 / scale, max(sample_), xtol=1e-14, rtol=1e-15
    )


def of_a_mean(sample_, target, scale, *, precision=0.05):
    n, mean = len(sample_), float(np.mean(sample_))
    error = math.sqrt(sum((x - mean) ** 2 for x in sample_) / (n - 1) / n)
    gap, half = (
        abs(mean - target),
        max(mean - catoni(sample_), -catoni(-np.asarray(sample_)) - mean),
    )
    facts = {
        "mean": mean,
        "standard_error": error,
        "target": target,
        "allowed": precision * scale,
        "gap": gap,
    }
    facts |= {
        "half_width": half,
        "not_finite": 0,
        "inside": bool(gap + half <= precision * scale),
    }
    return facts | {"excludes_target": bool(gap > half)}


@pytest.mark.parametrize(
    ("means", "spreads", "status", "worst"),
    [
        ((1.01, 4.02), (0.5, 0.5), "certified", "b"),
        ((1.01, 4.06), (0.5, 0.5), "consistent", "b"),
        ((1.05, 4.01), (0.5, 0.1), "consistent", "a"),
        ((1.3, 4.01), (0.1, 0.1), "refuted", "a"),
        ((1.3, 4.4), (0.5, 0.1), "refuted", "b"),
    ],
)
def test_a_mean_says_the_setting_where_it_is_farthest_off(
    means, spreads, status, worst
):
    targets, scales = {"a": 1.0, "b": 4.0}, {"a": -2.0, "b": 2.5}
    tried = form(
        Expectation(
            no_trial, by_setting(**targets), by_setting(**scales), moment=lambda s: 0.25
        ),
        AB,
    )
    samples = [
        around(mean, spread, 1000) for mean, spread in zip(means, spreads, strict=True)
    ]
    facts = [
        of_a_mean(s, targets[n], abs(scales[n]))
        for s, n in zip(samples, "ab", strict=True)
    ]
    ratios = [f["gap"] / f["half_width"] for f in facts]
    worst = "ab"[int(np.argmax(ratios))] if status != "refuted" else worst
    f = facts["ab".index(worst)]
    because = f"the mean is {f['mean']:.6g} +- {f['half_width']:.2g} at {worst}, claimed {f['target']:.6g}"
    evidence = [("a", 1000, facts[0]), ("b", 1000, facts[1])]
    expected = {"not_finite": 0, "worst_setting": worst}
    says_all(
        judge(tried, samples, ALPHA), status, because, math.nan, expected, evidence
    )


def test_a_mean_of_a_variable_that_hardly_varies_allows_for_rounding():
    tiny = expectation(moment=lambda setting: 1e-40)
    constant = judge(tiny, [[0.05, 0.05]], ALPHA).evidence[0].facts
    assert (
        constant["inside"] and constant["excludes_target"]
    )  # at the limit of the precision is within it
    assert not judge(tiny, [[ROUND, ROUND]], ALPHA).evidence[0].facts["excludes_target"]
    with pytest.raises(ValueError, match="variance must be positive"):
        judge(expectation(moment=lambda setting: 0.0), [[0.05, 0.05]], ALPHA)


def test_without_a_range_or_a_variance_draws_decide_nothing():
    verdict = judge(expectation(moment=None), [around(7.0, 0.1, 1000)], ALPHA)
    assert verdict.status == "consistent" and "draws decide nothing" in verdict.because
    assert status_of(expectation(moment=None), [7.0, math.nan]) == "refuted"


@pytest.mark.parametrize(
    ("target", "scale"), [(-1e6, 1.0), (1e6, 1.0), (0.0, 1e6), (0.0, 1.0)]
)
def test_a_mean_allows_for_rounding_of_its_size(target, scale):
    tried = form(
        Expectation(
            no_trial,
            lambda s: target,
            lambda s: scale,
            moment=lambda s: (1e-3 * ROUND) ** 2,
        )
    )
    size = max(abs(target), scale)
    for off, status in ((0.9, "certified"), (1.2, "refuted")):
        assert status_of(tried, [target + off * ROUND * size] * 2) == status


def test_a_bounded_mean_that_is_not_a_number_is_refuted():
    verdict = judge(rare_event(), [[0.0, math.nan]], ALPHA)
    assert math.isnan(verdict.evidence[0].facts["half_width"])
    assert judge(rare_event(), [[0.0, 1.0]], ALPHA).evidence[0].trials == 2


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_bounded_mean_goes_by_its_farther_limit(sign):
    skewed = sign * np.where(np.arange(400) % 8, 0.0, 1.0)
    low, high = min(sign, 0.0), max(sign, 0.0)
    tried = form(
        Expectation(
            no_trial, lambda s: sign / 8, lambda s: 1.0, limits=lambda s: (low, high)
        )
    )
    facts = judge(tried, [skewed], ALPHA).evidence[0].facts
    lower, upper = betting.betting_limits(
        skewed, ALPHA / 2, low=low, high=high, horizon=400
    )
    alike(facts["half_width"], float(max(sign / 8 - lower, upper - sign / 8)))
    assert (sign / 8 - lower > upper - sign / 8) == (sign < 0)
    for outermost in (low - ROUND, high + ROUND):
        assert status_of(tried, np.append(skewed, outermost)) != "refuted"
    with pytest.raises(
        ValueError,
        match=rf"must lie in its limits \[{low:g}, {high:g}\], got {low:g} to {high + 1:g}",
    ):
        judge(tried, [np.append(skewed, high + 1)], ALPHA)


def rares(claims, ceilings):
    return form(Rare(no_trial, by_setting(**claims), by_setting(**ceilings)), AB)


@pytest.mark.parametrize(
    ("claims", "status", "worst"),
    [
        ({"a": -40.4, "b": -20.2}, "certified", "a"),
        ({"a": -40.69, "b": -20.2}, "consistent", "a"),
        ({"a": -40.2, "b": -20.69}, "consistent", "b"),
        ({"a": -42.0, "b": -20.2}, "refuted", "a"),
        ({"a": -42.0, "b": -24.0}, "refuted", "b"),
        ({"a": 0.0, "b": -20.2}, "certified", "b"),
        ({"a": 0.0, "b": 0.5}, "vacuous", "b"),
    ],
)
def test_a_rare_probability_says_all_it_found(claims, status, worst):
    ceilings = {"a": -40.0, "b": -20.0}
    verdict = judge(rares(claims, ceilings), [ESTIMATES, ESTIMATES[:500]], ALPHA)
    evidence = []
    for name, trials in (("a", 1000), ("b", 500)):
        lower, upper = (
            float(v)
            for v in betting.betting_limits(
                ESTIMATES[:trials], ALPHA / 2, low=0, high=1, horizon=trials
            )
        )
        facts = {
            "log_claimed": claims[name],
            "log_ceiling": ceilings[name],
            "not_finite": 0,
        }
        facts |= {
            "says_nothing": claims[name] >= 0,
            "log_estimate": math.log(0.5) + ceilings[name],
        }
        facts |= {"log_lower_limit": math.log(lower) + ceilings[name]}
        facts |= {"log_upper_limit": math.log(upper) + ceilings[name]}
        facts |= {"slack": math.exp(claims[name] - facts["log_estimate"])}
        evidence.append((name, trials, facts))
    f = dict(zip("ab", (facts for _, _, facts in evidence), strict=True))[worst]
    logs = (f["log_lower_limit"], f["log_upper_limit"], claims[worst])
    low, high, most = (
        f"10^{log / math.log(10):.4g}" if log < 0 else f"{math.exp(log):.4g}"
        for log in logs
    )
    because = (
        f"the probability is from {low} to {high} at {worst}, claimed is at most {most}"
    )
    slack = min(facts["slack"] for _, _, facts in evidence)
    says_all(
        verdict,
        status,
        because,
        slack,
        {"not_finite": 0, "worst_setting": worst},
        evidence,
    )


def test_the_edges_of_a_rare_probability():
    assert judge(rare(-1.0, -1000.0), [ESTIMATES], ALPHA).slack == math.exp(700)
    assert status_of(rare(-10.0), np.append(ESTIMATES, 1 + ROUND)) == "certified"
    assert judge(rare(-10.0), [[0.5]], ALPHA).evidence[0].trials == 1
    none_seen = judge(
        rare(-math.inf), [np.zeros(1000)], ALPHA
    )  # nothing contradicts that it never happens
    assert (
        none_seen.status == "consistent"
        and status_of(rare(-math.inf), ESTIMATES) == "refuted"
    )
    reached = judge(rare(), [ESTIMATES], ALPHA).evidence[0].facts["log_upper_limit"]
    assert status_of(rare(reached), ESTIMATES) == "certified"
    # Says nothing, and is not certified by its own limit either, where the ceiling is no probability.
    tried = rares({"a": 0.35, "b": -20.0}, {"a": 1.0, "b": -20.0})
    assert status_of(tried, ESTIMATES, ESTIMATES) == "certified"
    # Three trials say less of b than is claimed, but nothing against it: what refutes is named.
    tried = rares({"a": -42.0, "b": -23.0}, {"a": -40.0, "b": -20.0})
    verdict = judge(tried, [ESTIMATES, ESTIMATES[:3]], ALPHA)
    assert verdict.status == "refuted" and verdict.facts["worst_setting"] == "a"
    # What is not a number refutes though it claims to be likely, and the setting with the number is not named.
    verdict = judge(
        rares({"a": -40.0, "b": -0.5}, {"a": -40.0, "b": 0.0}),
        [ESTIMATES, [math.nan]],
        ALPHA,
    )
    assert verdict.status == "refuted" and verdict.facts["worst_setting"] == "b"


def test_a_law_says_its_distance_and_its_resolution():
    uniform_ = form(Law(no_trial, stats.uniform.cdf, width=0.16), AB)
    samples = [quantiles(stats.uniform, 1000), quantiles(stats.uniform, 2000) ** 1.05]
    verdict = judge(uniform_, samples, ALPHA)
    evidence = []
    for name, sample_ in zip("ab", samples, strict=True):
        n = sample_.size
        steps = np.arange(n + 1) / n
        distance = max(np.max(steps[1:] - sample_), np.max(sample_ - steps[:-1]))
        facts = {
            "distance": float(distance),
            "p_value": float(stats.kstwo.sf(distance, n)),
            "not_finite": 0,
        }
        evidence.append(
            (name, n, facts | {"resolution": math.sqrt(math.log(4 / ALPHA) / (2 * n))})
        )
    p_value, coarsest = evidence[1][2]["p_value"], evidence[0][2]["resolution"]
    because = (
        f"Kolmogorov-Smirnov p-value {p_value:.3g} at b (level 5e-05); "
        f"a true distance of more than {2 * coarsest:.3g} would have been seen"
    )
    facts = {"not_finite": 0, "resolution": coarsest, "p_value": p_value}
    says_all(verdict, "certified", because, math.nan, facts, evidence)
    finer = dataclasses.replace(uniform_.statement, width=2 * coarsest - 1e-9)
    assert judge(form(finer, AB), samples, ALPHA).status == "consistent"
    lost = judge(LAW, [[0.0, math.inf]], ALPHA).evidence[0].facts
    assert (lost["distance"], lost["p_value"], lost["not_finite"]) == (1.0, 0.0, 1)
    assert judge(LAW, [[0.1]], ALPHA).evidence[0].trials == 1
    one = [np.linspace(0, 1, 1000) ** 1.2]
    at_its_level = judge(form(uniform_.statement), one, ALPHA).facts["p_value"]
    assert judge(form(uniform_.statement), one, at_its_level).status == "certified"
    assert (
        judge(form(uniform_.statement), one, at_its_level * (1 + 1e-9)).status
        == "refuted"
    )


@pytest.mark.parametrize("spread", [0.02, 0.6])
def test_a_rate_is_the_spread_of_all_means_over_their_powers(spread):
    """The limits of the means are Catoni's, by SciPy."""
    sizes = np.array([s.numbers["n"] for s in SIZES])
    means = sizes**-0.5 * np.array([1.0, 1.05, 0.95, 1.02, 1.0])
    samples = [around(mean, spread * mean, 100) for mean in means.tolist()]
    verdict = judge(rate(-0.5, spread=1.1 * spread), samples, ALPHA)
    powers = sizes**-0.5
    variances, level = (1.1 * spread * powers) ** 2, ALPHA / 10
    pairs = list(zip(samples, variances.tolist(), strict=True))
    lower = np.array([catoni(x, level, v) for x, v in pairs])
    upper = np.array([-catoni(-x, level, v) for x, v in pairs])
    least = max(0.0, float(np.log(np.max(lower / powers) / np.min(upper / powers))))
    most = float(np.log(np.max(upper / powers) / np.min(lower / powers)))
    allowed = 0.1 * math.log(sizes[-1] / sizes[0])
    status = "certified" if most <= allowed else "consistent"
    assert status == ("certified" if spread < 0.1 else "consistent") and least < allowed
    slope = float(stats.linregress(np.log(sizes), np.log(means)).slope)
    facts = {
        "slope": slope,
        "spread_least": least,
        "spread_most": most,
        "allowed": allowed,
        "not_finite": 0,
    }
    factors = [f"{math.exp(value):.4g}" for value in (least, most, allowed)]
    because = (
        f"mean over size^-0.5 varies by a factor from {factors[0]} to {factors[1]}, claimed is at most {factors[2]}; "
        f"the slope is {slope:.4g}"
    )
    evidence = []
    for s, x, n, low, high in zip(
        SIZES, samples, sizes.tolist(), lower.tolist(), upper.tolist(), strict=True
    ):
        seen = {
            "size": n,
            "mean": float(np.mean(x)),
            "standard_error": float(np.std(x, ddof=1)) / 10,
            "not_finite": 0,
        }
        evidence.append((s.name, 100, seen | {"lower": low, "upper": high}))
    says_all(verdict, status, because, math.nan, facts, evidence)


def test_the_edges_of_a_rate():
    samples = power_law(-0.45, spread=0.1)
    log_range = math.log(SIZES[-1].numbers["n"] / SIZES[0].numbers["n"])
    most = judge(rate(-0.5), samples, ALPHA).facts["spread_most"]
    for width, status in ((1 + 1e-9, "certified"), (1 - 1e-9, "consistent")):
        assert (
            judge(rate(-0.5, width=width * most / log_range), samples, ALPHA).status
            == status
        )
    far = power_law(-1.0, spread=0.1)
    least = judge(rate(-0.5), far, ALPHA).facts["spread_least"]
    for width, status in ((1 + 1e-9, "consistent"), (1 - 1e-9, "refuted")):
        assert (
            judge(rate(-0.5, width=width * least / log_range), far, ALPHA).status
            == status
        )
    few = [s[:2] for s in power_law(-0.5, spread=0.01)]
    assert judge(rate(-0.5), few, ALPHA).evidence[0].trials == 2
    for wrong in (-1.0, -math.inf):
        samples = power_law(-0.5)
        samples[2] = np.full(10, wrong)
        verdict = judge(rate(-0.5), samples, ALPHA)
        assert verdict.status == "refuted" and verdict.because.startswith(
            "a mean is not a positive number"
        )
    halves = tuple(Setting(str(n), numbers={"n": n}) for n in (0.5, 1.0, 2.0, 4.0, 8.0))
    tried = form(Rate(no_trial, "n", 1.0, 0.1, moment=lambda setting: 1e-8), halves)
    assert (
        judge(tried, [np.full(10, s.numbers["n"]) for s in halves], ALPHA).status
        == "certified"
    )
    for least in (0.0, -1.0):
        tried = form(
            Rate(no_trial, "n", 1.0), (Setting("x", numbers={"n": least}), *halves)
        )
        with pytest.raises(ValueError, match="at least five positive values of 'n'"):
            judge(tried, [[1.0, 2.0]] * 6, ALPHA)
