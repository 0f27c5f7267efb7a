"""Probabilities too small to count: limits from unbiased estimates, by betting."""

import math

import numpy as np

from proofs_check.claim import Evidence, Verdict
from proofs_check.engine import betting
from proofs_check.engine.judge.evidence import (
    ROUNDING,
    Case,
    at_least,
    count_not_finite,
    log,
    power,
    ratio_of_logs,
)


def rare(case: Case) -> Verdict:
    """Return the verdict on a probability of which the statistics are unbiased estimates."""
    level = case.level
    evidence: list[Evidence] = []
    for setting, raw in case.pairs():
        claimed, ceiling = (
            float(case.statement.log_claimed(setting)),
            float(case.statement.log_ceiling(setting)),
        )
        if math.isnan(claimed) or not ceiling < math.inf:
            raise ValueError(
                f"log_claimed and log_ceiling must be numbers at {setting.name!r}, got {claimed}, {ceiling}"
            )
        sample = at_least(setting, raw, 1)
        bad = count_not_finite(sample)
        if bad == 0 and not np.all((sample >= 0) & (sample <= 1 + ROUNDING * case.eps)):
            raise ValueError(
                f"the estimates must lie in [0, 1] at setting {setting.name!r}"
            )
        lower, upper = (
            (0.0, 1.0)
            if bad
            else betting.betting_limits(
                np.minimum(sample, 1.0), level, horizon=sample.size
            )
        )
        facts = {
            "log_claimed": claimed,
            "log_ceiling": ceiling,
            "not_finite": bad,
            "says_nothing": claimed >= 0,
        }
        facts |= {
            "log_estimate": math.nan if bad else log(float(np.mean(sample))) + ceiling
        }
        facts |= {
            "log_lower_limit": log(float(lower)) + ceiling,
            "log_upper_limit": log(float(upper)) + ceiling,
        }
        facts |= {"slack": ratio_of_logs(claimed, facts["log_estimate"])}
        evidence.append(Evidence(setting.name, sample.size, facts))
    wrong = [
        e
        for e in evidence
        if e.facts["log_lower_limit"] > e.facts["log_claimed"] or e.facts["not_finite"]
    ]
    worst = max(
        wrong or evidence,
        key=lambda e: e.facts["log_upper_limit"] - e.facts["log_claimed"],
    )
    f = worst.facts
    because = (
        f"the probability is from {power(f['log_lower_limit'])} to {power(f['log_upper_limit'])} at {worst.setting}, "
        f"claimed is at most {power(f['log_claimed'])}"
    )
    if wrong:
        status = "refuted"
    elif all(e.facts["says_nothing"] for e in evidence):
        status = "vacuous"
    else:
        status = (
            "certified"
            if all(
                e.facts["says_nothing"]
                or e.facts["log_upper_limit"] <= e.facts["log_claimed"]
                for e in evidence
            )
            else "consistent"
        )
    return case.verdict(status, because, evidence, worst_setting=worst.setting)
