"""The only place that judges randomness: evidence in, verdict out. NumPy and SciPy, no JAX.

`alpha` is the error rate of one form. It is split evenly over the settings of the form (Bonferroni), and each setting
spends its share twice: once on the side that refutes and once on the side that certifies. A form that is true
is refuted with probability at most `alpha`, and one that is false is certified with probability at most `alpha`.
This is exact for Tail, Calibrated, Law, Rare and for an Expectation with `limits`; it rests on normal means for other
Expectations and for Rate, whose statistics must not have heavy tails.

There are two rules. "fixed" judges numbers of trials that were fixed before the first one, by exact binomial limits.
"sequential" may be asked again and again while trials are added, for a run that stops when the evidence decides: Tail
and Calibrated go by evidence that holds at all times at once (`sequential`), and what is judged by all
its draws together is looked at for the (look + 1)-th time with `alpha` / 2^(look + 1), so that all looks together
spend no more than `alpha`.

What each class of statement can become:

========== ============ ========================================= ==================================================
class      held          refuted                                   otherwise
========== ============ ========================================= ==================================================
Identity   identity      a residual too large or not finite        -
Tail       certified     a lower limit above delta                 vacuous before certified; consistent
Calibrated calibrated    the constant needed exceeds the proved    vacuous where nothing is claimed
Expectation certified    the interval excludes the target          consistent
Rare       certified     a lower limit above what is claimed       vacuous where 1 or more is claimed; consistent
Law        certified     p-value below the level                   consistent with fewer than 1000 trials
Rate       certified     interval disjoint from exponent +- width  consistent
Exact      certified     a probability above what is claimed       vacuous where all claims are 1 or more
Inequality consistent   an input at which the left side is larger -
========== ============ ========================================= ==================================================

`not testable` is what an Undecided statement gets, with its reason and no evidence. `engine.run` gives it also
where a user's data do not meet the hypotheses.

A deterministic inequality (an Inequality, or a Tail with probability 1) is never certified by examples: one violation
refutes it, and without one it is consistent.
A Tail claims nothing where its probability is zero or less, and then needs no trials.
An Expectation may be off its target by less than its precision: then it is refuted as soon as the interval shows it.
A certified Law says that the true distance to the claimed one is below twice the fact `resolution`, up to `alpha`.

A statistic that is not a number is a violation, and every statistic that is not finite is counted in the fact
`not_finite` of its setting and of the verdict. Comparisons of numbers that are meant to be equal allow for rounding,
`ROUNDING * eps` relative to what is compared, with the `eps` of the run, whatever the dtype in which its statistics
arrive; bounds that hold with a probability below 1 are compared as they are.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from proofs_check.claim import (
    Calibrated,
    Control,
    Evidence,
    Exact,
    Expectation,
    Form,
    Identity,
    Inequality,
    Law,
    Rare,
    Rate,
    Setting,
    Statement,
    Tail,
    Undecided,
    Verdict,
)
from proofs_check.engine import limits, sequential
from proofs_check.engine.limits import open_unit

ROUNDING = 1e4
LAW_TRIALS = 1000
LOOK = 128
"""A sequential run looks at a tail bound after every so many trials."""

RuleName = Literal["fixed", "sequential"]
EPS = float(np.finfo(np.float64).eps)


class InvalidSetting(ValueError):
    """A setting does not satisfy the hypotheses of the statement that is tried there."""


def checked_bound(bound: Callable[[Setting], Any], setting: Setting) -> tuple[float, float]:
    """Return (value, delta) of a bound at a setting, delta = 1 - probability.

    Raises InvalidSetting where the hypotheses do not hold, ValueError where the bound is not a number.
    """
    return _checked(bound(setting), setting)


def _checked(right: Any, setting: Setting) -> tuple[float, float]:
    if not bool(right.valid):
        raise InvalidSetting(f"the hypotheses of {right.source} do not hold at setting {setting.name!r}")
    value, delta = float(right.value), 1.0 - float(right.probability)
    if math.isnan(value) or math.isnan(delta) or delta < -1e-6:
        raise ValueError(
            f"{right.source} at setting {setting.name!r} must be a number with a probability of at most 1, "
            f"got value {value} and probability {right.probability}"
        )
    return value, max(delta, 0.0)


def two_sides(pairs: Sequence[tuple[float, Any]], setting: Setting) -> np.ndarray:
    """Return (left, right) of every pair of an Inequality, shape (inputs, 2).

    Raises what `checked_bound` raises, and ValueError where there is no pair or a bound holds with less than certainty.
    """
    sides = []
    for left, right in pairs:
        value, delta = _checked(right, setting)
        if delta > 0:
            raise ValueError(f"{right.source} at setting {setting.name!r} must hold always, got delta = {delta:g}")
        sides.append((float(left), value))
    if not sides:
        raise ValueError(f"at least 1 input is needed at setting {setting.name!r}, got 0")
    return np.array(sides)


def judge(
    form: Form | Control,
    samples: Sequence[ArrayLike],
    alpha: float,
    *,
    eps: float = EPS,
    rule: RuleName = "fixed",
    look: int = 0,
) -> Verdict:
    """Return the verdict of `samples`, one entry a setting, on the statement of a form or of a control.

    A sample is a vector of statistics, one a trial; for Identity it holds residuals, for Exact the pair
    (log probability, log claimed), for Inequality what `two_sides` returns. `alpha` in (0, 1) is the error rate of the
    whole form, and `eps` is the precision in which the statistics were computed. `rule` says whether the numbers of
    trials were fixed beforehand or grow until the evidence decides, and `look` counts the looks before this one at
    statements that need all their draws together. Raises ValueError where settings and samples do not match, where a
    statement cannot be judged at its settings, and InvalidSetting where its hypotheses fail.
    """
    open_unit(alpha=alpha)
    if rule not in ("fixed", "sequential") or look < 0 or (look and rule == "fixed"):
        raise ValueError(
            f'rule must be "fixed" or "sequential", and look 0 or, in the latter, more; got {rule!r}, {look}'
        )
    if isinstance(form.statement, Undecided):
        return Verdict("not testable", form.statement.reason, math.nan, alpha, (), {"not_finite": 0})
    if not form.settings or len(form.settings) != len(samples):
        raise ValueError(f"one sample a setting is needed, got {len(samples)} for {len(form.settings)} setting(s)")
    statement, settings = form.statement, form.settings
    arrays = [np.asarray(sample) for sample in samples]
    verdict = _judge(statement, settings, arrays, alpha, eps, rule, 0.5 ** (look + 1) if rule == "sequential" else 1.0)
    return dataclasses.replace(verdict, alpha=alpha, facts={**verdict.facts, "look": look} if look else verdict.facts)


def _judge(
    statement: Statement,
    settings: Sequence[Setting],
    arrays: list[np.ndarray],
    alpha: float,
    eps: float,
    rule: RuleName,
    spent: float,
) -> Verdict:
    match statement:
        case Identity():
            return _identity(statement, settings, arrays, alpha, eps)
        case Exact():
            return _exact(settings, arrays, alpha, eps)
        case Tail():
            return _tail(statement, settings, arrays, alpha, eps, rule)
        case Calibrated():
            return _calibrated(statement, settings, arrays, alpha, eps, rule)
        case Expectation():
            return _expectation(statement, settings, arrays, alpha * spent, eps)
        case Law():
            return _law(statement, settings, arrays, alpha * spent)
        case Rate():
            return _rate(statement, settings, arrays, alpha * spent, eps)
        case Inequality():
            return _inequality(statement, settings, arrays, alpha, eps)
        case Rare():
            return _rare(statement, settings, arrays, alpha * spent, eps)
    raise TypeError(f"no rule judges a statement of type {type(statement).__name__}")


def _identity(
    statement: Identity, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float
) -> Verdict:
    evidence, worst, held = [], -1.0, True
    for setting, sample in zip(settings, samples, strict=True):
        _some(setting, sample, 1)
        # Residuals of a run in float32 often come in float64: their dtype tells of a coarser precision only.
        limit = statement.tolerance * max(eps, float(np.finfo(sample.dtype).eps) if sample.dtype.kind == "f" else 0.0)
        residual = np.abs(sample.astype(np.float64)).ravel()
        largest = float(np.max(np.nan_to_num(residual, nan=math.inf)))
        held, worst = held and largest <= limit, max(worst, largest)
        facts = {"worst_residual": largest, "limit": limit, "not_finite": _not_finite(residual)}
        evidence.append(Evidence(setting.name, residual.size, facts))
    because = f"the largest relative error is {worst:.3g}" + ("" if held else ", which is more than rounding")
    return _verdict("identity" if held else "refuted", because, math.nan, alpha, evidence, worst_residual=worst)


def _exact(settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float) -> Verdict:
    evidence, wrong, claims = [], [], []
    for setting, sample in zip(settings, samples, strict=True):
        found, claimed = (float(v) for v in sample)
        if not found <= claimed + ROUNDING * eps * max(1.0, abs(claimed)):
            wrong.append(f"{setting.name}: log probability {found:.6g}, claimed at most {claimed:.6g}")
        claims.append(claimed)
        facts = {
            "log_probability": found,
            "log_claimed": claimed,
            "not_finite": int(math.isnan(found) or math.isnan(claimed)),
        }
        evidence.append(Evidence(setting.name, 0, facts))
    if wrong:
        return _verdict("refuted", "; ".join(wrong[:3]), math.nan, alpha, evidence, settings_refuted=len(wrong))
    if min(claims) >= 0:
        return _verdict("vacuous", "what is claimed is a probability of 1 or more", math.nan, alpha, evidence)
    return _verdict("certified", "the computed probability is at most what is claimed", math.nan, alpha, evidence)


def _inequality(
    statement: Inequality, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float
) -> Verdict:
    evidence: list[Evidence] = []
    for setting, sample in zip(settings, samples, strict=True):
        left, right = sample.T
        rounding = statement.tolerance * eps * np.maximum(1, np.abs(right))
        within = left <= right + rounding  # NaN is not
        with np.errstate(divide="ignore", invalid="ignore"):
            excess = np.where(within, 0, np.nan_to_num(left - right, nan=math.inf))
            ratios = (right / left)[left > rounding]
        worst = int(np.argmax(excess))
        facts = {"violations": int(np.count_nonzero(~within)), "excess": float(excess[worst])}
        facts |= {"left": float(left[worst]), "right": float(right[worst]), "not_finite": _not_finite(left)}
        facts |= {"slack": _smallest(ratios.tolist())}
        evidence.append(Evidence(setting.name, left.size, facts))
    slack = _smallest([e.facts["slack"] for e in evidence])
    wrong = [e for e in evidence if e.facts["violations"]]
    if wrong:
        furthest = max(wrong, key=lambda e: e.facts["excess"])
        f = furthest.facts
        because = f"{f['left']:.6g} where at most {f['right']:.6g} is claimed, at {furthest.setting}"
        extra = {"settings_refuted": len(wrong), "worst_setting": furthest.setting}
        return _verdict("refuted", because, slack, alpha, evidence, **extra)
    because = f"it holds at all {sum(e.trials for e in evidence)} inputs that were tried"
    return _verdict("consistent", because, slack, alpha, evidence)


def decides(sample: ArrayLike, value: float, delta: float, level: float, *, eps: float = EPS) -> bool:
    """Tell whether a sample decides a tail bound by the sequential rule, so that the run may stop there.

    `value` and `delta` are those of `checked_bound`, `level` is the share of the setting. A bound that holds always
    (delta = 0) is decided by its first violation, and one that claims nothing before any trial. May be asked after any
    number of trials.
    """
    values = np.asarray(sample, np.float64).ravel()
    violations = int(np.count_nonzero(_violates(values, value, delta, eps)))
    if delta >= 1 or delta == 0:
        return delta >= 1 or violations > 0
    return any(_evidence(violations, values.size, delta, level)[:2])


def _evidence(violations: int, trials: int, delta: float, level: float) -> tuple[bool, bool, float]:
    """Return (refutes, certifies, p-value) by the sequential rule; delta in (0, 1)."""
    above = float(sequential.log_evidence_above(violations, trials, delta))
    below = float(sequential.log_evidence_below(violations, trials, delta))
    threshold = -math.log(level)
    return above >= threshold, below >= threshold, math.exp(-max(above, 0.0))


def _violates(sample: np.ndarray, value: float, delta: float, eps: float) -> np.ndarray:
    within = sample <= value
    if delta == 0:
        within |= sample <= value + ROUNDING * eps * np.maximum(abs(value), np.abs(sample))
    violates: np.ndarray = ~within
    return violates


def _counted(violations: int, trials: int, delta: float, level: float, rule: RuleName) -> dict[str, Any]:
    """Return what a count says of "at most delta" (delta < 1), by one rule or the other."""
    by = limits if rule == "fixed" else sequential
    lower, upper = (float(limit) for limit in by.binomial_limits(violations, trials, level))
    facts: dict[str, Any] = {"violations": violations, "lower_limit": lower, "upper_limit": upper}
    if rule == "fixed" or delta == 0:
        p_value = float(stats.binom.sf(violations - 1, trials, delta))
        facts |= {"refutes": lower > delta, "certifies": upper <= delta, "p_value": p_value}
        facts |= {
            "certifiable": limits.certifiable(trials, level),
            "detectable": limits.detectable(trials, delta, level),
        }
        return facts
    facts |= dict(zip(("refutes", "certifies", "p_value"), _evidence(violations, trials, delta, level), strict=True))
    facts |= {"certifiable": float(sequential.binomial_limits(0, trials, level)[1])}
    facts |= {"detectable": sequential.detectable_rate(trials, delta, level)}
    return facts


def _tail(
    statement: Tail,
    settings: Sequence[Setting],
    samples: list[np.ndarray],
    alpha: float,
    eps: float,
    rule: RuleName,
) -> Verdict:
    level = alpha / len(settings)
    evidence: list[Evidence] = []
    for setting, raw in zip(settings, samples, strict=True):
        value, delta = checked_bound(statement.bound, setting)
        facts: dict[str, Any] = {"bound": value, "delta": delta, "slack": math.nan, "not_finite": 0}
        ceiling = math.inf if statement.ceiling is None else float(statement.ceiling(setting))
        if statement.ceiling is not None:
            facts["ceiling"] = ceiling
        facts["says_nothing"] = delta >= 1 or value > ceiling
        sample = np.asarray(raw, np.float64).ravel()
        if delta < 1:
            sample = _some(setting, raw, 1)
            if bool(np.any(sample > ceiling + ROUNDING * eps * abs(ceiling))):
                raise ValueError(f"the statistic exceeds its ceiling {ceiling:g} at setting {setting.name!r}")
            violations = int(np.count_nonzero(_violates(sample, value, delta, eps)))
            quantile = _upper_quantile(sample, 1 - delta)
            facts |= _counted(violations, sample.size, delta, level, rule)
            facts |= {"quantile": quantile, "slack": _ratio(value, quantile), "not_finite": _not_finite(sample)}
        evidence.append(Evidence(setting.name, sample.size, facts))

    slack = _smallest([e.facts["slack"] for e in evidence])
    empty = sum(e.facts["says_nothing"] for e in evidence)
    claims = [e for e in evidence if e.facts["delta"] < 1]
    wrong = [e for e in claims if e.facts["refutes"]]
    open_ = [e for e in claims if not e.facts["certifies"]]
    if wrong:
        worst = min(wrong, key=lambda e: (e.facts["p_value"], e.facts["delta"] - e.facts["lower_limit"]))
        f = worst.facts
        because = f"{f['violations']} of {worst.trials} trials exceed the bound at {worst.setting}"
        if f["delta"] == 0:
            because += ", by more than rounding, and none may"
        else:
            because += f": violation probability at least {f['lower_limit']:.3g}, claimed {f['delta']:.3g}"
        extra = {"settings_refuted": len(wrong), "worst_setting": worst.setting}
        return _verdict("refuted", because, slack, alpha, evidence, **extra)
    if empty == len(evidence):
        because = "at every setting the bound exceeds what the statistic can ever be, or claims no probability at all"
        return _verdict("vacuous", because, slack, alpha, evidence)
    if not open_:
        worst = max(claims, key=lambda e: e.facts["upper_limit"] / e.facts["delta"])
        because = (
            f"violation probability at most {worst.facts['upper_limit']:.3g} where {worst.facts['delta']:.3g} is "
            f"claimed ({worst.setting}, the closest of {len(claims)} setting(s))"
        )
        return _verdict("certified", because, slack, alpha, evidence, settings_vacuous=empty)
    worst = max(open_, key=lambda e: e.facts["upper_limit"] / max(e.facts["delta"], 1e-300))
    f = worst.facts
    because = (
        f"{f['violations']} of {worst.trials} trials exceed the bound at {worst.setting}, where delta = "
        f"{f['delta']:.3g}; as many trials could certify {f['certifiable']:.3g} and would refute a rate of "
        f"{f['detectable']:.3g}"
    )
    extra = {"certifiable": f["certifiable"], "detectable": f["detectable"], "worst_setting": worst.setting}
    return _verdict(
        "consistent", because, slack, alpha, evidence, settings_open=len(open_), settings_vacuous=empty, **extra
    )


def _calibrated(
    statement: Calibrated,
    settings: Sequence[Setting],
    samples: list[np.ndarray],
    alpha: float,
    eps: float,
    rule: RuleName,
) -> Verdict:
    level = alpha / len(settings)
    evidence: list[Evidence] = []
    for setting, raw in zip(settings, samples, strict=True):
        shape, delta = checked_bound(statement.shape, setting)
        facts: dict[str, Any] = {"shape": shape, "delta": delta, "not_finite": 0}
        sample = np.asarray(raw, np.float64).ravel()
        if delta < 1:
            if not shape > 0:
                raise ValueError(f"the shape must be positive at setting {setting.name!r}, got {shape}")
            sample = _some(setting, raw, 1)
            ordered = np.sort(sample / shape)  # NaN last: a violation of every constant
            limit = _needed(ordered, delta, level, rule)
            facts |= {"needed": _upper_quantile(ordered, 1 - delta), "needed_lower_limit": _nan_to_inf(limit)}
            facts |= {"not_finite": _not_finite(sample)}
        evidence.append(Evidence(setting.name, sample.size, facts))
    claims = [e for e in evidence if e.facts["delta"] < 1]
    if not claims:
        return _verdict("vacuous", "no probability is claimed at any setting", math.nan, alpha, evidence)
    needed = max(e.facts["needed"] for e in claims)
    worst = max(claims, key=lambda e: e.facts["needed_lower_limit"])
    limit = worst.facts["needed_lower_limit"]
    constants = {"needed_estimate": needed, "needed_lower_limit": limit}
    constants |= {"proved_lower": statement.lower, "proved_upper": statement.upper}
    slack = _ratio(statement.upper, needed)
    if limit > statement.upper * (1 + ROUNDING * eps):
        because = f"a constant of at least {limit:.4g} is needed at {worst.setting}, proved is {statement.upper:.4g}"
        return _verdict("refuted", because, slack, alpha, evidence, **constants)
    because = f"the constant lies in [{max(limit, statement.lower):.4g}, {statement.upper:.4g}]"
    return _verdict("calibrated", because, slack, alpha, evidence, **constants)


def _needed(ordered: np.ndarray, delta: float, level: float, rule: RuleName) -> float:
    """Return the largest constant that so many ordered ratios refute, minus infinity where they refute none.

    A constant below the k-th largest ratio is violated k times, and k is the smallest count that refutes delta.
    """
    if delta <= 0:
        return float(ordered[-1])
    count = int((limits if rule == "fixed" else sequential).smallest_refuted(ordered.size, delta, level))
    return float(ordered[-count]) if count <= ordered.size else -math.inf


def _expectation(
    statement: Expectation, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float
) -> Verdict:
    level = alpha / len(settings)
    evidence: list[Evidence] = []
    for setting, raw in zip(settings, samples, strict=True):
        sample = _some(setting, raw, 2)
        target, scale = float(statement.target(setting)), abs(float(statement.scale(setting)))
        mean, error = _mean(sample)
        rounding = ROUNDING * eps * max(abs(target), scale)
        half = float(stats.norm.isf(level / 2)) * error
        if statement.limits is not None and not math.isnan(mean):
            half = _bounded_half_width(sample, statement.limits(setting), level / 2, rounding)
        gap = abs(mean - target)
        allowed = statement.precision * scale
        facts = {"mean": mean, "standard_error": error, "target": target, "allowed": allowed}
        facts |= {"gap": gap, "half_width": half, "not_finite": _not_finite(sample)}
        facts |= {"excludes_target": not gap <= half + rounding, "inside": gap + half <= allowed}
        evidence.append(Evidence(setting.name, sample.size, facts))
    wrong = [e for e in evidence if e.facts["excludes_target"]]
    inside = all(e.facts["inside"] for e in evidence)
    worst = max(wrong or evidence, key=lambda e: _nan_to_inf(e.facts["gap"] / max(e.facts["half_width"], 1e-300)))
    f = worst.facts
    because = f"the mean is {f['mean']:.6g} +- {f['half_width']:.2g} at {worst.setting}, claimed {f['target']:.6g}"
    status = "refuted" if wrong else "certified" if inside else "consistent"
    return _verdict(status, because, math.nan, alpha, evidence, worst_setting=worst.setting)


def _bounded_half_width(sample: np.ndarray, between: tuple[float, float], level: float, rounding: float) -> float:
    """Return how far the mean of a bounded statistic can be from the mean of the sample, on the farther side."""
    low, high = float(between[0]), float(between[1])
    if not np.all((sample >= low - rounding) & (sample <= high + rounding)):
        raise ValueError(
            f"the statistic must lie in its limits [{low:g}, {high:g}], got {sample.min():g} to {sample.max():g}"
        )
    inside = np.clip(sample, low, high)
    lower, upper = sequential.betting_limits(inside, level, low=low, high=high, horizon=sample.size)
    mean = float(np.mean(inside))
    return max(mean - float(lower), float(upper) - mean)


def _rare(statement: Rare, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float) -> Verdict:
    level = alpha / len(settings)
    evidence: list[Evidence] = []
    for setting, raw in zip(settings, samples, strict=True):
        claimed, ceiling = float(statement.log_claimed(setting)), float(statement.log_ceiling(setting))
        if math.isnan(claimed) or not ceiling < math.inf:
            raise ValueError(
                f"log_claimed and log_ceiling must be numbers at {setting.name!r}, got {claimed}, {ceiling}"
            )
        sample = _some(setting, raw, 1)
        bad = _not_finite(sample)
        if bad == 0 and not np.all((sample >= 0) & (sample <= 1 + ROUNDING * eps)):
            raise ValueError(f"the estimates must lie in [0, 1] at setting {setting.name!r}")
        lower, upper = (
            (0.0, 1.0) if bad else sequential.betting_limits(np.minimum(sample, 1.0), level, horizon=sample.size)
        )
        facts = {"log_claimed": claimed, "log_ceiling": ceiling, "not_finite": bad, "says_nothing": claimed >= 0}
        facts |= {"log_estimate": math.nan if bad else _log(float(np.mean(sample))) + ceiling}
        facts |= {"log_lower_limit": _log(float(lower)) + ceiling, "log_upper_limit": _log(float(upper)) + ceiling}
        facts |= {
            "slack": math.exp(min(claimed - facts["log_estimate"], 700.0))
            if facts["log_estimate"] > -math.inf
            else math.nan
        }
        evidence.append(Evidence(setting.name, sample.size, facts))
    slack = _smallest([e.facts["slack"] for e in evidence])
    wrong = [e for e in evidence if e.facts["log_lower_limit"] > e.facts["log_claimed"] or e.facts["not_finite"]]
    worst = max(wrong or evidence, key=lambda e: e.facts["log_upper_limit"] - e.facts["log_claimed"])
    f = worst.facts
    because = (
        f"the log of the probability lies in [{f['log_lower_limit']:.4g}, {f['log_upper_limit']:.4g}] at "
        f"{worst.setting}, claimed is at most {f['log_claimed']:.4g}"
    )
    if wrong:
        status = "refuted"
    elif all(e.facts["says_nothing"] for e in evidence):
        status = "vacuous"
    else:
        status = (
            "certified"
            if all(e.facts["says_nothing"] or e.facts["log_upper_limit"] <= e.facts["log_claimed"] for e in evidence)
            else "consistent"
        )
    return _verdict(status, because, slack, alpha, evidence, worst_setting=worst.setting)


def _law(statement: Law, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float) -> Verdict:
    level = alpha / len(settings)
    evidence: list[Evidence] = []
    for setting, raw in zip(settings, samples, strict=True):
        sample = _some(setting, raw, 1)
        bad = _not_finite(sample)
        distance, p_value = stats.kstest(sample, statement.cdf) if bad == 0 else (1.0, 0.0)
        resolution = math.sqrt(math.log(2 / level) / (2 * sample.size))
        facts = {"distance": float(distance), "p_value": float(p_value), "resolution": resolution, "not_finite": bad}
        evidence.append(Evidence(setting.name, sample.size, facts))
    worst = min(evidence, key=lambda e: e.facts["p_value"])
    p_value, coarsest = worst.facts["p_value"], max(e.facts["resolution"] for e in evidence)
    if p_value < level:
        status = "refuted"
    else:
        status = "certified" if min(e.trials for e in evidence) >= LAW_TRIALS else "consistent"
    because = f"Kolmogorov-Smirnov p-value {p_value:.3g} at {worst.setting} (level {level:.1g}); "
    because += f"a true distance of more than {2 * coarsest:.3g} would have been seen"
    return _verdict(status, because, math.nan, alpha, evidence, resolution=coarsest, p_value=p_value)


def _rate(statement: Rate, settings: Sequence[Setting], samples: list[np.ndarray], alpha: float, eps: float) -> Verdict:
    sizes = np.array([float(setting.numbers[statement.size]) for setting in settings])
    if np.unique(sizes).size < 5 or not np.all(sizes > 0):
        raise ValueError(f"a rate needs at least five positive values of {statement.size!r}, got {sizes.tolist()}")
    evidence: list[Evidence] = []
    moments = []
    for setting, size, raw in zip(settings, sizes, samples, strict=True):
        sample = _some(setting, raw, 2)
        mean, error = _mean(sample)
        moments.append((mean, max(error, ROUNDING * eps * abs(mean))))
        facts = {"size": float(size), "mean": mean, "standard_error": error, "not_finite": _not_finite(sample)}
        evidence.append(Evidence(setting.name, sample.size, facts))
    means, errors = np.array(moments).T
    if not np.all(means > 0):  # NaN too: no power of the size
        return _verdict("refuted", "a mean is not a positive number", math.nan, alpha, evidence)
    weights = (means / errors) ** 2  # one over the variance of the log of the mean, to first order
    x, y = np.log(sizes), np.log(means)
    x = x - np.average(x, weights=weights)
    information = float(np.sum(weights * x**2))
    slope = float(np.sum(weights * x * y) / information)
    half = float(stats.norm.isf(alpha / 2)) / math.sqrt(information)
    misfit = float(np.sum(weights * (y - np.average(y, weights=weights) - slope * x) ** 2) / (sizes.size - 2))
    gap = abs(slope - statement.exponent)
    status = (
        "certified" if gap + half <= statement.width else "refuted" if gap > half + statement.width else "consistent"
    )
    because = f"the slope is {slope:.4g} +- {half:.2g}, claimed {statement.exponent:.4g} +- {statement.width:.2g}"
    return _verdict(status, because, math.nan, alpha, evidence, slope=slope, half_width=half, misfit=misfit)


def _verdict(
    status: str, because: str, slack: float, alpha: float, evidence: Sequence[Evidence], **facts: Any
) -> Verdict:
    bad = sum(int(e.facts["not_finite"]) for e in evidence)
    if bad:
        because += f" ({bad} statistics are not finite)"
    return Verdict(status, because, slack, alpha, tuple(evidence), {"not_finite": bad, **facts})


def _some(setting: Setting, sample: np.ndarray, fewest: int) -> np.ndarray:
    if sample.size < fewest:
        raise ValueError(f"at least {fewest} trial(s) are needed at setting {setting.name!r}, got {sample.size}")
    return np.asarray(sample, np.float64).ravel()


def _not_finite(sample: np.ndarray) -> int:
    return int(np.count_nonzero(~np.isfinite(sample)))


def _nan_to_inf(value: float) -> float:
    return math.inf if math.isnan(value) else value


def _mean(sample: np.ndarray) -> tuple[float, float]:
    """Return the mean and its standard error, both NaN where a statistic is not finite."""
    if _not_finite(sample):
        return math.nan, math.nan
    return float(np.mean(sample)), float(np.std(sample, ddof=1)) / math.sqrt(sample.size)


def _upper_quantile(sample: np.ndarray, level: float) -> float:
    """Return the smallest order statistic with at least a fraction `level` at or below it, NaN counting as inf."""
    rank = max(math.ceil(level * sample.size - 1e-9), 1) - 1
    return _nan_to_inf(float(np.sort(sample)[rank]))


def _ratio(value: float, quantile: float) -> float:
    return value / quantile if quantile > 0 else math.nan


def _log(value: float) -> float:
    return math.log(value) if value > 0 else -math.inf


def _smallest(values: Sequence[float]) -> float:
    kept = [v for v in values if not math.isnan(v)]
    return min(kept) if kept else math.nan
