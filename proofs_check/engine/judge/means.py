"""Expectations and rates: means of statistics, against a number or a power of a size."""

import math

import numpy as np
from scipy import stats

from proofs_check.claim import Evidence, Verdict
from proofs_check.engine import betting
from proofs_check.engine.judge.evidence import ROUNDING, Case, at_least, count_not_finite, mean_of, nan_to_inf


def expectation(case: Case) -> Verdict:
    """Return the verdict on a mean that is claimed to be a number."""
    level = case.level
    evidence: list[Evidence] = []
    for setting, raw in case.pairs():
        sample = at_least(setting, raw, 2)
        target, scale = float(case.statement.target(setting)), abs(float(case.statement.scale(setting)))
        mean, error = mean_of(sample)
        rounding = ROUNDING * case.eps * max(abs(target), scale)
        half = float(stats.norm.isf(level / 2)) * error
        if case.statement.limits is not None and not math.isnan(mean):
            half = _bounded_half_width(sample, case.statement.limits(setting), level / 2, rounding)
        gap = abs(mean - target)
        allowed = case.statement.precision * scale
        facts = {"mean": mean, "standard_error": error, "target": target, "allowed": allowed}
        facts |= {"gap": gap, "half_width": half, "not_finite": count_not_finite(sample)}
        facts |= {"excludes_target": not gap <= half + rounding, "inside": gap + half <= allowed}
        evidence.append(Evidence(setting.name, sample.size, facts))
    wrong = [e for e in evidence if e.facts["excludes_target"]]
    inside = all(e.facts["inside"] for e in evidence)
    worst = max(wrong or evidence, key=lambda e: nan_to_inf(e.facts["gap"] / max(e.facts["half_width"], 1e-300)))
    f = worst.facts
    because = f"the mean is {f['mean']:.6g} +- {f['half_width']:.2g} at {worst.setting}, claimed {f['target']:.6g}"
    status = "refuted" if wrong else "certified" if inside else "consistent"
    return case.verdict(status, because, evidence, worst_setting=worst.setting)


def _bounded_half_width(sample: np.ndarray, between: tuple[float, float], level: float, rounding: float) -> float:
    """Return how far the mean of a bounded statistic can be from the mean of the sample, on the farther side."""
    low, high = float(between[0]), float(between[1])
    if not np.all((sample >= low - rounding) & (sample <= high + rounding)):
        raise ValueError(
            f"the statistic must lie in its limits [{low:g}, {high:g}], got {sample.min():g} to {sample.max():g}"
        )
    inside = np.clip(sample, low, high)
    lower, upper = betting.betting_limits(inside, level, low=low, high=high, horizon=sample.size)
    mean = float(np.mean(inside))
    return max(mean - float(lower), float(upper) - mean)


def rate(case: Case) -> Verdict:
    """Return the verdict on the slope of the means on log scales, by weighted least squares."""
    sizes = np.array([float(setting.numbers[case.statement.size]) for setting in case.settings])
    if np.unique(sizes).size < 5 or not np.all(sizes > 0):
        raise ValueError(f"a rate needs at least five positive values of {case.statement.size!r}, got {sizes.tolist()}")
    evidence: list[Evidence] = []
    moments = []
    for setting, size, raw in zip(case.settings, sizes, case.samples, strict=True):
        sample = at_least(setting, raw, 2)
        mean, error = mean_of(sample)
        moments.append((mean, max(error, ROUNDING * case.eps * abs(mean))))
        facts = {"size": float(size), "mean": mean, "standard_error": error, "not_finite": count_not_finite(sample)}
        evidence.append(Evidence(setting.name, sample.size, facts))
    means, errors = np.array(moments).T
    if not np.all(means > 0):  # NaN too: no power of the size
        return case.verdict("refuted", "a mean is not a positive number", evidence)
    weights = (means / errors) ** 2  # one over the variance of the log of the mean, to first order
    x, y = np.log(sizes), np.log(means)
    x = x - np.average(x, weights=weights)
    information = float(np.sum(weights * x**2))
    slope = float(np.sum(weights * x * y) / information)
    half = float(stats.norm.isf(case.alpha / 2)) / math.sqrt(information)
    misfit = float(np.sum(weights * (y - np.average(y, weights=weights) - slope * x) ** 2) / (sizes.size - 2))
    gap = abs(slope - case.statement.exponent)
    status = (
        "certified"
        if gap + half <= case.statement.width
        else "refuted"
        if gap > half + case.statement.width
        else "consistent"
    )
    because = (
        f"the slope is {slope:.4g} +- {half:.2g}, claimed {case.statement.exponent:.4g} +- {case.statement.width:.2g}"
    )
    return case.verdict(status, because, evidence, slope=slope, half_width=half, misfit=misfit)
