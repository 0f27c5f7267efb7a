"""Distribution functions: the distance of Kolmogorov and Smirnov."""

import math

from scipy import stats

from proofs_check.claim import Evidence, Verdict
from proofs_check.engine.judge.evidence import Case, at_least, count_not_finite


def law(case: Case) -> Verdict:
    """Return the verdict on a distribution function."""
    level = case.level
    evidence: list[Evidence] = []
    for setting, raw in case.pairs():
        sample = at_least(setting, raw, 1)
        bad = count_not_finite(sample)
        distance, p_value = (
            stats.kstest(sample, case.statement.cdf) if bad == 0 else (1.0, 0.0)
        )
        resolution = math.sqrt(math.log(2 / level) / (2 * sample.size))
        facts = {
            "distance": float(distance),
            "p_value": float(p_value),
            "resolution": resolution,
            "not_finite": bad,
        }
        evidence.append(Evidence(setting.name, sample.size, facts))
    worst = min(evidence, key=lambda e: e.facts["p_value"])
    p_value, coarsest = (
        worst.facts["p_value"],
        max(e.facts["resolution"] for e in evidence),
    )
    status = (
        "refuted"
        if p_value < level
        else "certified"
        if 2 * coarsest <= case.statement.width
        else "consistent"
    )
    because = f"Kolmogorov-Smirnov p-value {p_value:.3g} at {worst.setting} (level {level:.1g}); "
    because += f"a true distance of more than {2 * coarsest:.3g} would have been seen"
    return case.verdict(status, because, evidence, resolution=coarsest, p_value=p_value)
