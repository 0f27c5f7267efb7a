"""The report of a run as a JSON document (docs/report_schema.md), made from the results of its claims."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from proofs_check.claim import LOOSE, Control, Form, Verdict
from proofs_check.controls import KINDS
from proofs_check.engine.documents import strict
from proofs_check.engine.result import ClaimResult, rejected
from proofs_check.report.document import PAPERS, SCHEMA, describe
from proofs_check.report.text import without_links


@dataclass(frozen=True)
class About:
    """What a run was asked for: everything its numbers depend on.

    `note` says what was done to the user's data. `rule` is "sequential" where trials stop as soon as the evidence
    decides, "fixed" where their numbers are fixed before the first one. `stopped` says why a run ended before its
    time: "interrupted" or "out of time"; it is empty where nothing stopped it. `flags` are the settings of JAX and XLA.
    `files` are the names of the files of claims of one's own, which take the place of the papers.
    """

    profile: str
    seed: int
    family_alpha: float
    dtype: str
    note: str = ""
    rule: str = "sequential"
    stopped: str = ""
    flags: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


def as_json(
    results: Sequence[ClaimResult],
    about: About,
    *,
    run: Mapping[str, Any],
    complete: bool = True,
) -> dict[str, Any]:
    """Return the report as strict JSON: NaN is null, infinities are the strings "inf" and "-inf".

    Two runs with equal settings agree in everything but the key `run`, which holds the entries of the argument and
    the seconds that each claim took. `complete` is False where the run was stopped before its end.
    """
    papers = {result.claim.paper for result in results}
    report = {
        "schema": SCHEMA,
        "profile": about.profile,
        "seed": about.seed,
        "dtype": about.dtype,
        "family_alpha": about.family_alpha,
        "rule": about.rule,
        "flags": about.flags,
        "files": about.files,
        "note": about.note,
        "complete": complete,
        "stopped": about.stopped,
        "as_expected": all(result.as_expected for result in results),
        "papers": {key: source for key, source in PAPERS.items() if key in papers},
        "kinds": _kinds(results),
        "claims": [_claim(result, about.seed) for result in results],
        "run": {
            **run,
            "seconds": {result.claim.id: result.seconds for result in results},
        },
    }
    return dict(strict(report))


def _kinds(results: Sequence[ClaimResult]) -> dict[str, str]:
    """Return the kinds of controls that occur, in the order of `KINDS` and then by name, with what each one is."""
    used = {control.kind for result in results for control in result.claim.controls}
    known = [kind for kind in KINDS if kind in used]
    return {kind: KINDS.get(kind, "") for kind in (*known, *sorted(used - set(known)))}


def _claim(result: ClaimResult, seed: int) -> dict[str, Any]:
    return {
        **describe(result.claim),
        "hypotheses": result.claim.hypotheses,
        "outcome": _outcome(result),
        "proof": without_links(result.claim.proof),
        "as_expected": result.as_expected,
        "notes": result.notes,
        "forms": [
            {
                "form": name,
                "statement": form.tex or result.claim.tex,
                "expected": form.expect,
                "as_expected": name not in result.unexpected,
                "loose": name == "corrected"
                and verdict.status in ("certified", "proved")
                and verdict.slack > LOOSE,
                "seed": seed,
                **_verdict(form, verdict),
            }
            for name, form, verdict in result.forms
        ],
        "controls": [
            {
                "name": name,
                "kind": control.kind,
                "rejected": rejected(verdict),
                "seed": seed,
                **_verdict(control, verdict),
            }
            for control, (name, verdict) in zip(
                result.claim.controls, result.controls, strict=True
            )
        ],
    }


def _outcome(result: ClaimResult) -> str:
    """Return in one word what was found of a statement: of its printed form, or of the only one that there is."""
    verdict = next((verdict for _, _, verdict in result.forms), None)
    if verdict is None or verdict.status == "not testable":
        return "open"
    if verdict.status in ("refuted", "consistent"):
        return {"refuted": "false", "consistent": "held"}[verdict.status]
    if verdict.status == "vacuous" or verdict.slack > LOOSE:
        return "loose"
    return "proved" if verdict.status == "proved" else "certified"


def _verdict(form: Form | Control, verdict: Verdict) -> dict[str, Any]:
    name = type(form.statement).__name__
    at_most = getattr(form.statement, "at_most", False)
    margin_is, margin = _MARGINS.get("at most" if at_most else name, ("", None))
    margins = [
        math.nan if margin is None else margin({**verdict.facts, **e.facts})
        for e in verdict.evidence
    ]
    settings = {setting.name: setting for setting in form.settings}
    finite = [
        (value, e.setting)
        for value, e in zip(margins, verdict.evidence, strict=True)
        if value < math.inf
    ]
    return {
        "class": name,
        "status": verdict.status,
        "because": verdict.because,
        "alpha": verdict.alpha,
        "slack": verdict.slack,
        "slack_median": verdict.facts.get("slack_median", math.nan),
        "slack_largest": verdict.facts.get("slack_largest", math.nan),
        "trials": sum(evidence.trials for evidence in verdict.evidence),
        "detectable": _detectable(verdict),
        "margin_is": margin_is,
        "worst_setting": verdict.facts.get("worst_setting")
        or (min(finite)[1] if finite else None),
        "facts": verdict.facts,
        "evidence": [
            {
                "setting": e.setting,
                "trials": e.trials,
                "numbers": settings[e.setting].numbers,
                "shapes": settings[e.setting].shapes,
                "margin": value,
                "facts": e.facts,
            }
            for e, value in zip(verdict.evidence, margins, strict=True)
        ],
    }


def _detectable(verdict: Verdict) -> float:
    """Return the violation rate that every setting with such a number would have shown, NaN without one."""
    rates = [
        float(e.facts["detectable"])
        for e in verdict.evidence
        if e.facts.get("detectable") is not None
    ]
    return max((rate for rate in rates if not math.isnan(rate)), default=math.nan)


def _over(allowed: float, seen: float) -> float:
    """Return what is allowed over what was found; infinite where nothing was found."""
    return (
        allowed / seen
        if seen > 0
        else math.inf
        if seen == 0 and allowed > 0
        else math.nan
    )


def _calibrated_margin(facts: Mapping[str, Any]) -> float:
    return (
        _over(facts["proved_upper"], facts["needed"]) if "needed" in facts else math.nan
    )


def _expectation_margin(facts: Mapping[str, Any]) -> float:
    gap, half = facts["gap"], facts["half_width"]
    return (
        _over(half, gap)
        if facts["excludes_target"]
        else _over(facts["allowed"], gap + half)
    )


# By class of statement: what the slack at a setting is, and how it follows from the facts. 1 is the limit of the claim.
_MARGINS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], float]]] = {
    "Tail": (
        "bound over the (1 - delta)-quantile of what it bounds",
        lambda f: f.get("slack", math.nan),
    ),
    "Inequality": (
        "right side over left side, the smallest ratio",
        lambda f: f.get("slack", math.nan),
    ),
    "Calibrated": ("constant proved over constant needed", _calibrated_margin),
    "Identity": (
        "error allowed for rounding over largest error",
        lambda f: _over(f["limit"], f["worst_residual"]),
    ),
    "Exact": ("probability claimed over probability computed", lambda f: f["slack"]),
    "Rare": ("probability claimed over probability estimated", lambda f: f["slack"]),
    "Expectation": (
        "precision asked for over distance and half-width; half-width over distance where it is refuted",
        _expectation_margin,
    ),
    "at most": ("number claimed over the mean", lambda f: f["slack"]),
    "Law": (
        "distance that would be refuted over distance found",
        lambda f: _over(f["resolution"], f["distance"]),
    ),
}
