"""Whether more trials would decide a verdict that is open: an estimate from the trials that there are.

Nothing here is judged. The estimate takes what was seen for what is true, so the trials that a run needs scatter around
it, and it says nothing where no number of trials can decide.
"""

import dataclasses
import math

import numpy as np

from proofs_check.claim import Evidence, Expectation, Form, Tail, Verdict
from proofs_check.engine.sequential import log_evidence_above, log_evidence_below

MOST = 1e8
"""Nobody makes more trials than this at a setting."""


def with_outlook(form: Form, verdict: Verdict) -> Verdict:
    """Return a verdict that says, if it is open, how many trials at a setting would decide it."""
    trials = trials_to_decide(form, verdict)
    if math.isnan(trials):
        return verdict
    words = f"{MOST:,.0f} trials at a setting would not decide"
    if trials <= MOST:
        words = f"about {float(f'{trials:.2g}'):,.0f} trials at a setting would decide"
    return dataclasses.replace(
        verdict,
        because=f"{verdict.because}; if trials go on like these, {words}",
        facts={**verdict.facts, "trials_to_decide": trials},
    )


def trials_to_decide(form: Form, verdict: Verdict) -> float:
    """Return about how many trials at a setting decide an open verdict, inf beyond `MOST`.

    NaN if the verdict is not open, if no number of trials can decide it, or for a statement that is no tail or mean.
    """
    if verdict.status != "consistent":
        return math.nan
    if isinstance(form.statement, Tail):
        level = verdict.alpha / len(verdict.evidence)
        needed = [_of_a_count(one, level) for one in verdict.evidence]
    elif isinstance(form.statement, Expectation):
        needed = [_of_a_mean(one) for one in verdict.evidence]
    else:
        return math.nan
    trials = max(float(np.max(needed)), 1.0)  # NaN if one of them is
    return math.inf if trials > MOST else trials


def _of_a_count(evidence: Evidence, level: float) -> float:
    facts = evidence.facts
    if facts["says_nothing"] or facts.get("certifies"):
        return 0.0
    if facts["delta"] == 0:  # what holds always is not shown by more examples
        return math.nan
    trials = np.geomspace(10, MOST, 200)
    counts = facts["violations"] / evidence.trials * trials
    above = log_evidence_above(counts, trials, facts["delta"])
    below = log_evidence_below(counts, trials, facts["delta"])
    decided = np.flatnonzero(np.maximum(above, below) >= -math.log(level))
    return float(trials[decided[0]]) if decided.size else math.inf


def _of_a_mean(evidence: Evidence) -> float:
    facts = evidence.facts
    if facts["inside"]:
        return 0.0
    below = above = facts["half_width"]
    to_certify = facts["allowed"] - facts["gap"]
    if "upper" in facts:
        below = facts["mean"] - facts["lower"]
        above = facts["upper"] - facts["mean"]
        to_certify = -facts["gap"]
    # A width shrinks as one over the root of the number of trials; an infinite one does not.
    distances = ((facts["gap"], below), (to_certify, above))
    shares = [near / width for near, width in distances if 0 < width < math.inf]
    share = max(shares, default=0.0)
    if share > 0:
        return evidence.trials / share**2
    return math.inf if len(shares) == len(distances) else math.nan
