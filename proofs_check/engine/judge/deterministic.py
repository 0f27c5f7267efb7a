"""Identities, inequalities and exact probabilities: what is computed, and not sampled."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from proofs_check.claim import Evidence, Setting, Verdict
from proofs_check.engine.judge.evidence import (
    ROUNDING,
    Case,
    at_least,
    checked,
    count_not_finite,
    power,
    ratio_of_logs,
)


def two_sides(pairs: Sequence[tuple[float, Any]], setting: Setting) -> np.ndarray:
    """Return (left, right) of every pair of an Inequality, shape (inputs, 2).

    Raises what `checked_bound` raises, and ValueError where there is no pair or a bound holds with less than certainty.
    """
    sides = []
    for left, right in pairs:
        value, delta = checked(right, setting)
        if delta > 0:
            raise ValueError(
                f"{right.source} at setting {setting.name!r} must hold always, got delta = {delta:g}"
            )
        sides.append((float(left), value))
    if not sides:
        raise ValueError(
            f"at least 1 input is needed at setting {setting.name!r}, got 0"
        )
    return np.array(sides)


def identity(case: Case) -> Verdict:
    """Return the verdict on an identity: every residual is within rounding, or not."""
    evidence, worst, held = [], -1.0, True
    for setting, sample in case.pairs():
        at_least(setting, sample, 1)
        # Residuals of a run in float32 often come in float64: their dtype tells of a coarser precision only.
        limit = case.statement.tolerance * max(
            case.eps,
            float(np.finfo(sample.dtype).eps) if sample.dtype.kind == "f" else 0.0,
        )
        residual = np.abs(sample.astype(np.float64)).ravel()
        largest = float(np.max(np.nan_to_num(residual, nan=math.inf)))
        held, worst = held and largest <= limit, max(worst, largest)
        facts = {
            "worst_residual": largest,
            "limit": limit,
            "not_finite": count_not_finite(residual),
        }
        evidence.append(Evidence(setting.name, residual.size, facts))
    because = f"the largest relative error is {worst:.3g}" + (
        "" if held else ", which is more than rounding"
    )
    return case.verdict(
        "identity" if held else "refuted", because, evidence, worst_residual=worst
    )


def exact(case: Case) -> Verdict:
    """Return the verdict on probabilities that were computed, from their logs."""
    evidence: list[Evidence] = []
    wrong = []
    for setting, sample in case.pairs():
        found, claimed = (float(v) for v in sample)
        if found != claimed and not found <= claimed + ROUNDING * case.eps * max(
            1.0, abs(claimed)
        ):
            wrong.append(
                f"the probability is {power(found)} at {setting.name}, claimed is at most {power(claimed)}"
            )
        facts = {
            "log_probability": found,
            "log_claimed": claimed,
            "not_finite": int(math.isnan(found) or math.isnan(claimed)),
            "says_nothing": claimed >= 0 or found == -math.inf < claimed,
            "slack": ratio_of_logs(claimed, found),
        }
        evidence.append(Evidence(setting.name, 0, facts))
    if wrong:
        return case.verdict(
            "refuted", "; ".join(wrong[:3]), evidence, settings_refuted=len(wrong)
        )
    if all(e.facts["says_nothing"] for e in evidence):
        because = "at every setting the event cannot happen, or what is claimed is a probability of 1 or more"
        return case.verdict("vacuous", because, evidence)
    return case.verdict(
        "certified", "the computed probability is at most what is claimed", evidence
    )


def inequality(case: Case) -> Verdict:
    """Return the verdict on pairs (left, right) from `two_sides`."""
    evidence: list[Evidence] = []
    for setting, sample in case.pairs():
        left, right = sample.T
        unit = np.maximum(1, np.abs(right))
        if case.statement.relative:
            unit = np.maximum(np.abs(left), np.abs(right))
        rounding = case.statement.tolerance * case.eps * unit
        within = left <= right + rounding  # NaN is not
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = unit if case.statement.relative else 1.0
            excess = (left - right) / scale
            excess = np.where(within, 0, np.nan_to_num(excess, nan=math.inf))
            ratios = (right / left)[left > rounding]
        worst = int(np.argmax(excess))
        facts = {
            "violations": int(np.count_nonzero(~within)),
            "excess": float(excess[worst]),
        }
        facts |= {
            "left": float(left[worst]),
            "right": float(right[worst]),
            "not_finite": count_not_finite(left),
        }
        facts |= {"slack": float(np.min(ratios)) if ratios.size else math.nan}
        evidence.append(Evidence(setting.name, left.size, facts))
    wrong = [e for e in evidence if e.facts["violations"]]
    if wrong:
        furthest = max(wrong, key=lambda e: e.facts["excess"])
        f = furthest.facts
        because = f"{f['left']:.6g} where at most {f['right']:.6g} is claimed, at {furthest.setting}"
        extra = {"settings_refuted": len(wrong), "worst_setting": furthest.setting}
        return case.verdict("refuted", because, evidence, **extra)
    count = sum(e.trials for e in evidence)
    tried = "the one input" if count == 1 else f"all {count} inputs"
    because = f"it holds at {tried} that {'was' if count == 1 else 'were'} tried"
    return case.verdict("consistent", because, evidence)
