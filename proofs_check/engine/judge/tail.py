"""Tail bounds: violations are counted, and what the counts say is the same for a constant that is calibrated."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from proofs_check.claim import Evidence, Verdict
from proofs_check.engine import limits, sequential, stopping
from proofs_check.engine.judge.evidence import (
    EPS,
    ROUNDING,
    Case,
    RuleName,
    at_least,
    checked_bound,
    constant,
    count_not_finite,
    ratio,
    upper_quantile,
)


def decides(
    sample: ArrayLike, value: float, delta: float, level: float, *, eps: float = EPS
) -> bool:
    """Tell whether a sample decides a tail bound by the sequential rule, so that the run may stop there.

    `value` and `delta` are those of `checked_bound`, `level` is the share of the setting. A bound that holds always
    (delta = 0) is decided by its first violation, and one that claims nothing before any trial. May be asked after any
    number of trials.
    """
    values = np.asarray(sample, np.float64).ravel()
    violations = int(np.count_nonzero(violates(values, value, delta, eps)))
    if delta >= 1 or delta == 0:
        return delta >= 1 or violations > 0
    return any(evidence_of(violations, values.size, delta, level)[:2])


def evidence_of(
    violations: int, trials: int, delta: float, level: float
) -> tuple[bool, bool, float]:
    """Return (refutes, certifies, p-value) by the sequential rule; delta in (0, 1)."""
    above = float(sequential.log_evidence_above(violations, trials, delta))
    below = float(sequential.log_evidence_below(violations, trials, delta))
    threshold = -math.log(level)
    return above >= threshold, below >= threshold, math.exp(-max(above, 0.0))


def violates(sample: np.ndarray, value: float, delta: float, eps: float) -> np.ndarray:
    """Return which statistics exceed a bound; one that holds always allows for rounding."""
    within = sample <= value
    if delta == 0:
        within |= sample <= value + ROUNDING * eps * np.maximum(
            abs(value), np.abs(sample)
        )
    violates: np.ndarray = ~within
    return violates


def counted(
    violations: int, trials: int, delta: float, level: float, rule: RuleName
) -> dict[str, Any]:
    """Return what a count says of "at most delta" (delta < 1), by one rule or the other."""
    by = limits if rule == "fixed" else sequential
    lower, upper = (
        float(limit) for limit in by.binomial_limits(violations, trials, level)
    )
    facts: dict[str, Any] = {
        "violations": violations,
        "lower_limit": lower,
        "upper_limit": upper,
    }
    if rule == "fixed" or delta == 0:
        p_value = float(stats.binom.sf(violations - 1, trials, delta))
        facts |= {
            "refutes": lower > delta,
            "certifies": upper <= delta,
            "p_value": p_value,
        }
        facts["certifiable"] = limits.certifiable(trials, level)
        facts["detectable"] = limits.detectable(trials, delta, level)
        return facts
    facts |= dict(
        zip(
            ("refutes", "certifies", "p_value"),
            evidence_of(violations, trials, delta, level),
            strict=True,
        )
    )
    facts |= {"certifiable": float(sequential.binomial_limits(0, trials, level)[1])}
    facts |= {"detectable": stopping.detectable_rate(trials, delta, level)}
    return facts


def tail(case: Case) -> Verdict:
    """Return the verdict on a tail bound."""
    level = case.level
    evidence: list[Evidence] = []
    constants: set[str] = set()
    for setting, raw in case.pairs():
        value, delta = checked_bound(case.statement.bound, setting)
        facts: dict[str, Any] = {
            "bound": value,
            "delta": delta,
            "slack": math.nan,
            "not_finite": 0,
        }
        ceiling = (
            math.inf
            if case.statement.ceiling is None
            else float(case.statement.ceiling(setting))
        )
        if case.statement.ceiling is not None:
            facts["ceiling"] = ceiling
        facts["says_nothing"] = delta >= 1 or value > ceiling
        sample = np.asarray(raw, np.float64).ravel()
        if delta < 1:
            sample = at_least(setting, raw, 1)
            if bool(np.any(sample > ceiling + ROUNDING * case.eps * abs(ceiling))):
                raise ValueError(
                    f"the statistic exceeds its ceiling {ceiling:g} at setting {setting.name!r}"
                )
            violations = int(np.count_nonzero(violates(sample, value, delta, case.eps)))
            quantile = upper_quantile(sample, 1 - delta)
            facts |= counted(violations, sample.size, delta, level, case.rule)
            facts |= {"quantile": quantile, "not_finite": count_not_finite(sample)}
            if constant(sample):
                constants.add(setting.name)
            else:
                facts["slack"] = ratio(value, quantile)
        evidence.append(Evidence(setting.name, sample.size, facts))

    empty = sum(e.facts["says_nothing"] for e in evidence)
    claims = [e for e in evidence if e.facts["delta"] < 1]
    wrong = [e for e in claims if e.facts["refutes"]]
    open_ = [e for e in claims if not e.facts["certifies"]]
    if wrong:
        worst = min(
            wrong,
            key=lambda e: (
                e.facts["p_value"],
                e.facts["delta"] - e.facts["lower_limit"],
            ),
        )
        f = worst.facts
        because = f"{f['violations']} of {worst.trials} trials exceed the bound at {worst.setting}"
        if f["delta"] == 0:
            because += ", by more than rounding, and none may"
        else:
            because += f": violation probability at least {f['lower_limit']:.3g}, claimed {f['delta']:.3g}"
        extra = {"settings_refuted": len(wrong), "worst_setting": worst.setting}
        return case.verdict("refuted", because, evidence, **extra)
    if empty == len(evidence):
        because = "at every setting the bound exceeds what the statistic can ever be, or claims no probability at all"
        return case.verdict("vacuous", because, evidence)
    if not open_:
        worst = max(claims, key=lambda e: e.facts["upper_limit"] / e.facts["delta"])
        because = (
            f"violation probability at most {worst.facts['upper_limit']:.3g} where {worst.facts['delta']:.3g} is "
            f"claimed ({worst.setting}, the closest of {len(claims)} setting(s))"
        )
        return case.verdict("certified", because, evidence, settings_vacuous=empty)
    worst = max(
        open_, key=lambda e: e.facts["upper_limit"] / max(e.facts["delta"], 1e-300)
    )
    f = worst.facts
    because = (
        f"{f['violations']} of {worst.trials} trials exceed the bound at {worst.setting}, where delta = "
        f"{f['delta']:.3g}; as many trials could certify {f['certifiable']:.3g} and would refute a rate of "
        f"{f['detectable']:.3g}"
    )
    if f["delta"] == 0 and worst.setting in constants:
        because = (
            f"none of {worst.trials} trials exceeds the bound at {worst.setting}, and all of them gave one and the "
            "same value, so they show no more than one trial"
        )
    extra = {
        "certifiable": f["certifiable"],
        "detectable": f["detectable"],
        "worst_setting": worst.setting,
    }
    return case.verdict(
        "consistent",
        because,
        evidence,
        settings_open=len(open_),
        settings_vacuous=empty,
        **extra,
    )


def slack_limits(
    sample: ArrayLike, value: float, delta: float, level: float
) -> tuple[float, float]:
    """Return (lower, upper) limits of a bound over the (1 - delta)-quantile q of what it bounds, after any number of
    trials, each at this level.

    At all times at once the count above q is small enough for the rate delta, and that from q on large enough, so q
    lies between two order statistics. For delta = 0 the largest value seen is all that is known of q.
    """
    ordered = np.sort(np.nan_to_num(np.asarray(sample, np.float64), nan=math.inf))[::-1]
    if delta == 0:
        low, high = ordered[0], math.inf
    else:
        # So many counts, from 0 on, are not too large, and so many too small.
        above = int(sequential.smallest_refuted(ordered.size, delta, level))
        below = int(sequential.largest_certified(ordered.size, delta, level)) + 1
        low = ordered[above - 1] if above <= ordered.size else -math.inf
        high = ordered[below - 1] if below else math.inf
    return (value / high if high > 0 else math.nan), (
        value / low if low > 0 else math.inf
    )
