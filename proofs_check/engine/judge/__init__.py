"""The only place that judges randomness: evidence in, verdict out.

`alpha` is the error rate of one form. It is split evenly over the settings of the form (Bonferroni), and each setting
spends its share twice: once on the side that refutes and once on the side that certifies. A form that is true
is refuted with probability at most `alpha`, and one that is false is certified with probability at most `alpha`.
This is exact for every law of the statistic: a mean (Expectation, Rate) is judged by a proved range or variance, and
is neither refuted nor certified where there is none.

There are two rules. "fixed" judges numbers of trials that were fixed before the first one, by exact binomial limits.
"sequential" may be asked again and again while trials are added, for a run that stops when the evidence decides: Tail
and Calibrated go by evidence that holds at all times at once (`sequential`), and what is judged by all
its draws together is looked at for the (look + 1)-th time with `alpha` / 2^(look + 1), so that all looks together
spend no more than `alpha`.

It computes with NumPy and SciPy alone; what a statement is, `proofs_check.claim`, imports jax.

What each class of statement can become:

========== ============ ========================================= ==================================================
class      held          refuted                                   otherwise
========== ============ ========================================= ==================================================
Identity   identity      a residual too large or not finite        -
Tail       certified     a lower limit above delta                 vacuous before certified; consistent
Calibrated calibrated    a larger constant is needed               vacuous where nothing is claimed
Expectation certified    the interval excludes the target          consistent, always without range and variance
Rare       certified     a lower limit above what is claimed       vacuous where 1 or more is claimed; consistent
Law        certified     p-value below the level                   consistent while the resolution is too coarse
Rate       certified     no power law within the intervals         consistent, always without range and variance
Exact      certified     a probability above what is claimed       vacuous where all claims are 1 or more, or all 0
Inequality consistent   an input at which the left side is larger -
========== ============ ========================================= ==================================================

`not testable` is what an Undecided statement gets, with its reason and no evidence. `engine.run` gives it also
where a user's data do not meet the hypotheses.

Ball arithmetic (`engine.work`, with the `enclosed` of a form) makes a consistent Inequality `proved`.
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

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike

from proofs_check import claim
from proofs_check.engine.judge import calibrated, deterministic, law, means, rare, tail
from proofs_check.engine.judge.deterministic import two_sides
from proofs_check.engine.judge.evidence import (
    EPS,
    LOOK,
    ROUNDING,
    Case,
    InvalidSetting,
    RuleName,
    checked_bound,
)
from proofs_check.engine.judge.tail import decides
from proofs_check.engine.limits import open_unit

__all__ = [
    "EPS", "LOOK", "ROUNDING", "InvalidSetting", "RuleName", "checked_bound", "decides", "judge", "two_sides",
]  # fmt: skip


# By class of statement: its rule, and whether it needs all its draws together, so that a look spends a part of alpha.
_RULES: Mapping[type, tuple[Callable[[Case], claim.Verdict], bool]] = {
    claim.Identity: (deterministic.identity, False),
    claim.Exact: (deterministic.exact, False),
    claim.Inequality: (deterministic.inequality, False),
    claim.Tail: (tail.tail, False),
    claim.Calibrated: (calibrated.calibrated, False),
    claim.Expectation: (means.expectation, True),
    claim.Law: (law.law, True),
    claim.Rate: (means.rate, True),
    claim.Rare: (rare.rare, True),
}


def judge(
    form: claim.Form | claim.Control,
    samples: Sequence[ArrayLike],
    alpha: float,
    *,
    eps: float = EPS,
    rule: RuleName = "fixed",
    look: int = 0,
) -> claim.Verdict:
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
    if isinstance(form.statement, claim.Undecided):
        return claim.Verdict(
            "not testable",
            form.statement.reason,
            math.nan,
            alpha,
            (),
            {"not_finite": 0},
        )
    if not form.settings or len(form.settings) != len(samples):
        raise ValueError(
            f"one sample a setting is needed, got {len(samples)} for {len(form.settings)} setting(s)"
        )
    if type(form.statement) not in _RULES:
        raise TypeError(
            f"no rule judges a statement of type {type(form.statement).__name__}"
        )
    judged, looked_at = _RULES[type(form.statement)]
    spent = 0.5 ** (look + 1) if looked_at and rule == "sequential" else 1.0
    arrays = [np.asarray(sample) for sample in samples]
    verdict = judged(
        Case(form.statement, form.settings, arrays, alpha * spent, eps, rule)
    )
    return dataclasses.replace(
        verdict,
        alpha=alpha,
        facts={**verdict.facts, "look": look} if look else verdict.facts,
    )
