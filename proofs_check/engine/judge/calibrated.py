"""Bounds up to an unnamed constant: the constants that the evidence needs."""

import math
from typing import Any

import numpy as np

from proofs_check.claim import Evidence, Verdict
from proofs_check.engine import limits, sequential
from proofs_check.engine.judge.evidence import (
    ROUNDING,
    Case,
    RuleName,
    at_least,
    checked_bound,
    count_not_finite,
    nan_to_inf,
    ratio,
    upper_quantile,
)


def calibrated(case: Case) -> Verdict:
    """Return the verdict on a bound up to a constant: the constants that proof and evidence leave open."""
    level = case.level
    evidence: list[Evidence] = []
    for setting, raw in case.pairs():
        shape, delta = checked_bound(case.statement.shape, setting)
        facts: dict[str, Any] = {"shape": shape, "delta": delta, "not_finite": 0}
        sample = np.asarray(raw, np.float64).ravel()
        if delta < 1:
            if not shape > 0:
                raise ValueError(
                    f"the shape must be positive at setting {setting.name!r}, got {shape}"
                )
            sample = at_least(setting, raw, 1)
            ordered = np.sort(sample / shape)  # NaN last: a violation of every constant
            limit = _needed(ordered, delta, level, case.rule)
            facts |= {
                "needed": upper_quantile(ordered, 1 - delta),
                "needed_lower_limit": nan_to_inf(limit),
            }
            facts |= {"not_finite": count_not_finite(sample)}
        evidence.append(Evidence(setting.name, sample.size, facts))
    claims = [e for e in evidence if e.facts["delta"] < 1]
    if not claims:
        return case.verdict(
            "vacuous", "no probability is claimed at any setting", evidence
        )
    needed = max(e.facts["needed"] for e in claims)
    worst = max(claims, key=lambda e: e.facts["needed_lower_limit"])
    limit = worst.facts["needed_lower_limit"]
    constants = {"needed_estimate": needed, "needed_lower_limit": limit}
    constants |= {
        "proved_lower": case.statement.lower,
        "proved_upper": case.statement.upper,
    }
    slack = ratio(case.statement.upper, needed)
    if limit > case.statement.upper * (1 + ROUNDING * case.eps):
        because = f"a constant of at least {limit:.4g} is needed at {worst.setting}, "
        because += f"proved is {case.statement.upper:.4g}"
        return case.verdict("refuted", because, evidence, slack, **constants)
    because = f"the constant lies in [{max(limit, case.statement.lower):.4g}, {case.statement.upper:.4g}]"
    return case.verdict("calibrated", because, evidence, slack, **constants)


def _needed(ordered: np.ndarray, delta: float, level: float, rule: RuleName) -> float:
    """Return the largest constant that so many ordered ratios refute, minus infinity where they refute none.

    A constant below the k-th largest ratio is violated k times, and k is the smallest count that refutes delta.
    """
    if delta <= 0:
        return float(ordered[-1])
    count = int(
        (limits if rule == "fixed" else sequential).smallest_refuted(
            ordered.size, delta, level
        )
    )
    return float(ordered[-count]) if count <= ordered.size else -math.inf
