"""Expectations and rates: means of statistics, against a number or a power of a size."""

import math

import numpy as np

from proofs_check.claim import Evidence, Setting, Verdict
from proofs_check.engine import betting
from proofs_check.engine.judge.evidence import (
    ROUNDING,
    Case,
    at_least,
    constant,
    count_not_finite,
    log,
    mean_of,
    nan_to_inf,
    ratio,
)


def _limits(
    case: Case,
    setting: Setting,
    sample: np.ndarray,
    level: float,
    rounding: float,
    target: float = 1.0,
) -> tuple[float, float]:
    """Return (lower, upper) limits of a mean, each at half of the level, NaN where a statistic is not finite."""
    if count_not_finite(sample):
        return math.nan, math.nan
    between, moment = case.statement.limits, case.statement.moment
    limits, variance = between and between(setting), moment and moment(setting)
    # Without an upper end of the range, bets are sized for means somewhat above what is claimed.
    unit = 2 * (target - limits[0]) if limits and target > limits[0] else 1.0
    return betting.mean_limits(sample, level / 2, limits, variance, rounding, unit)


def expectation(case: Case) -> Verdict:
    """Return the verdict on a mean that is claimed to be a number, or at most that."""
    at_most = case.statement.at_most
    evidence: list[Evidence] = []
    for setting, raw in case.pairs():
        sample = at_least(setting, raw, 2)
        target, scale = (
            float(case.statement.target(setting)),
            abs(float(case.statement.scale(setting))),
        )
        mean, error = mean_of(sample)
        rounding = ROUNDING * case.eps * max(abs(target), scale)
        lower, upper = _limits(case, setting, sample, case.level, rounding, target)
        half = max(mean - lower, upper - mean)
        gap = abs(mean - target)
        allowed = case.statement.precision * scale
        facts = {
            "mean": mean,
            "standard_error": error,
            "target": target,
            "allowed": allowed,
        }
        facts |= {
            "gap": gap,
            "half_width": half,
            "not_finite": count_not_finite(sample),
        }
        if at_most:
            facts |= {
                "lower": lower,
                "upper": upper,
                "slack": math.nan if constant(sample) else ratio(target, mean),
            }
            gap = mean - target
            facts |= {
                "gap": gap,
                "excludes_target": not lower <= target + rounding,
                "inside": upper <= target,
            }
        else:
            facts |= {
                "excludes_target": not gap <= half + rounding,
                "inside": gap + half <= allowed,
            }
        evidence.append(Evidence(setting.name, sample.size, facts))
    wrong = [e for e in evidence if e.facts["excludes_target"]]
    inside = all(e.facts["inside"] for e in evidence)
    worst = max(
        wrong or evidence,
        key=lambda e: nan_to_inf(e.facts["gap"] / max(e.facts["half_width"], 1e-300)),
    )
    f = worst.facts
    because = f"the mean is {f['mean']:.6g} +- {f['half_width']:.2g} at {worst.setting}, claimed {f['target']:.6g}"
    if at_most:
        because = f"the mean lies between {f['lower']:.6g} and {f['upper']:.6g} at {worst.setting}, claimed is at most "
        because += f"{f['target']:.6g}"
    status = "refuted" if wrong else "certified" if inside else "consistent"
    if status == "consistent":
        because += _why_open(case)
    return case.verdict(status, because, evidence, worst_setting=worst.setting)


def _why_open(case: Case) -> str:
    """Return what was not told of a statistic and keeps its mean open, "" if draws can decide."""
    statement = case.statement
    if not (statement.limits or statement.moment):
        return " (no range or variance is proved, so draws decide nothing)"
    if statement.limits and any(
        math.isinf(statement.limits(setting)[1]) for setting in case.settings
    ):
        return " (no upper limit was given, so draws can only show that a mean is too large)"
    return ""


def rate(case: Case) -> Verdict:
    """Return the verdict on means that are claimed to follow a power of a size.

    With limits of all means the spread of log(mean / size^exponent) over the sizes lies between two numbers. It is
    claimed to be at most width * log(largest / smallest size).
    """
    sizes = np.array(
        [float(setting.numbers[case.statement.size]) for setting in case.settings]
    )
    if np.unique(sizes).size < 5 or not np.all(sizes > 0):
        raise ValueError(
            f"a rate needs at least five positive values of {case.statement.size!r}, got {sizes.tolist()}"
        )
    evidence: list[Evidence] = []
    for setting, size, raw in zip(case.settings, sizes, case.samples, strict=True):
        sample = at_least(setting, raw, 2)
        mean, error = mean_of(sample)
        rounding = ROUNDING * case.eps * abs(mean)
        lower, upper = _limits(case, setting, sample, case.level, rounding)
        facts = {
            "size": float(size),
            "mean": mean,
            "standard_error": error,
            "not_finite": count_not_finite(sample),
        }
        facts |= {"lower": lower - rounding, "upper": upper + rounding}
        evidence.append(Evidence(setting.name, sample.size, facts))
    means, lowest, highest = np.array(
        [[e.facts[name] for name in ("mean", "lower", "upper")] for e in evidence]
    ).T
    if not np.all(highest > 0) or np.any(np.isnan(means)):
        return case.verdict("refuted", "a mean is not a positive number", evidence)
    power = case.statement.exponent * np.log(sizes)
    below = np.array([log(value) for value in lowest]) - power
    above = np.log(highest) - power
    least, most = (
        max(float(np.max(below) - np.min(above)), 0.0),
        float(np.max(above) - np.min(below)),
    )
    allowed = case.statement.width * float(np.log(np.max(sizes) / np.min(sizes)))
    slope = (
        float(np.polyfit(np.log(sizes), np.log(means), 1)[0])
        if np.all(means > 0)
        else math.nan
    )
    status = (
        "refuted"
        if least > allowed
        else "certified"
        if most <= allowed
        else "consistent"
    )
    because = (
        f"mean over size^{case.statement.exponent:.4g} varies by a factor from {_factor(least)} to {_factor(most)}, "
        f"claimed is at most {_factor(allowed)}; the slope is {slope:.4g}"
    )
    if status == "consistent":
        because += _why_open(case)
    return case.verdict(
        status,
        because,
        evidence,
        slope=slope,
        spread_least=least,
        spread_most=most,
        allowed=allowed,
    )


def _factor(log_of: float) -> str:
    return f"{math.exp(min(log_of, 700.0)):.4g}" if log_of < math.inf else "any number"
