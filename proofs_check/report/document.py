"""The report as a JSON document: its shape, how it is read back, and what all pages ask of it.

The pages (`run_page`, `markdown`) are made from this document alone; `record` makes it from the results of a run. Its
keys are explained in docs/report_schema.md. Nothing here imports jax, so that reading a report is quick.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofs_check.engine.documents import fault_of, load
from proofs_check.report.text import is_number

if TYPE_CHECKING:
    from proofs_check.claim import Claim

SCHEMA = 6
TONES = dict.fromkeys(("identity", "certified", "calibrated", "proved"), "good")
TONES |= {
    "consistent": "fine",
    "refuted": "bad",
    "vacuous": "empty",
    "not testable": "open",
}
"""Every verdict, and the tone in which pages and the terminal show it."""
PAPERS = {
    "kpotufe2020": "Kpotufe and Sriperumbudur, Gaussian Sketching yields a J-L Lemma in RKHS, AISTATS 2020",
    "amini2021": "Amini and Razaee, Concentration of kernel matrices with application to kernel spectral clustering, "
    "Annals of Statistics 2021",
    "chen2016": "Chen and Phillips, Relative Error Embeddings of the Gaussian Kernel Distance, 2016",
    "ghashami2016": "Ghashami, Perry and Phillips, Streaming Kernel Principal Component Analysis, AISTATS 2016",
}

# By why a run was stopped: what that means, first where claims are missing, then where every claim was reached.
_STOPPED = {
    "interrupted": (
        "The run was interrupted: claims are missing, or open.",
        "The run was interrupted after every claim was tried: more trials could decide open ones.",
    ),
    "out of time": (
        "The run was out of time before its end: claims are missing, or were judged by fewer trials.",
        "The run was out of time after every claim was tried: more trials could decide open ones.",
    ),
}


def describe(claim: "Claim") -> dict[str, Any]:
    """Return what `list --json` says of a claim, and the report first of all."""
    return {
        "id": claim.id,
        "paper": claim.paper,
        "where": claim.where,
        "kind": claim.kind,
        "statement": claim.tex,
        "expected_printed": None if claim.printed is None else claim.printed.expect,
        "expected_corrected": None
        if claim.corrected is None
        else claim.corrected.expect,
        "because": claim.because,
        "title": claim.title,
        "section": claim.section,
        "symbols": dict(claim.symbols),
        "severity": claim.severity,
        "marginal": claim.marginal,
    }


def read(path: Path) -> dict[str, Any]:
    """Return the report that a file holds. Raises DocumentError, in one line, where it holds none of this version."""
    return load(path, "report", "schema", SCHEMA, find_fault)


def find_fault(report: Any) -> str:
    """Return the first thing in which a document differs from the schema, the empty string where there is none."""
    return fault_of(report, _REPORT, "report")


def kinds_of(report: Mapping[str, Any]) -> list[str]:
    """Return the kinds of controls of a document: those it explains, in this order, then the others."""
    kinds = dict.fromkeys(
        control["kind"] for claim in report["claims"] for control in claim["controls"]
    )
    return [
        *(kind for kind in report["kinds"] if kind in kinds),
        *(k for k in kinds if k not in report["kinds"]),
    ]


def rejections(controls: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Return, for every kind among the controls of a document, how many are rejected and how many there are."""
    counts: dict[str, tuple[int, int]] = {}
    for control in controls:
        rejected, total = counts.get(control["kind"], (0, 0))
        counts[control["kind"]] = rejected + control["rejected"], total + 1
    return counts


def headline(statuses: Sequence[str], wrong: str, *, own: bool) -> str:
    """Return what is said first of a run: that all is as expected, or how many of one's own claims got which verdict.

    `statuses` are the verdicts of the claims, and `wrong` says what is not as expected, "" if nothing is.
    """
    if not own:
        return f"{len(statuses)} claim(s), {wrong or 'all as expected'}"
    counts = [f"{n} {status}" for status, n in Counter(statuses).items()]
    said = f"{len(statuses)} claim{'s' * (len(statuses) != 1)}: {', '.join(counts)}"
    return f"{said}; {wrong}" if wrong else said


def what_stopped(report: Mapping[str, Any]) -> str:
    """Return what a reader must know of a run that was stopped, "" for one that came to its end."""
    missing, open_ = _STOPPED.get(
        report["stopped"] or ("" if report["complete"] else "interrupted"), ("", "")
    )
    return open_ if report["complete"] else missing


def _is_glossary(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(means, str) for means in value.values()
    )


# The shape of a document, as `fault_of` asks for it. docs/report_schema.md explains every key.
_STATUS = frozenset(TONES)
_EVIDENCE = {
    "setting": str,
    "trials": int,
    "numbers": dict,
    "shapes": dict,
    "margin": is_number,
    "facts": dict,
}
_VERDICT = {
    "class": str,
    "status": _STATUS,
    "because": str,
    "alpha": is_number,
    **dict.fromkeys(("slack", "slack_median", "slack_largest"), is_number),
    "trials": int,
    "detectable": is_number,
    "margin_is": str,
    "worst_setting": str | None,
    "facts": dict,
    "evidence": [_EVIDENCE],
    "seed": int,
}
_FORM = {
    **_VERDICT,
    "form": frozenset({"printed", "corrected"}),
    "statement": str,
    "expected": str,
    "as_expected": bool,
    "loose": bool,
}
_CLAIM = {
    **dict.fromkeys(
        (
            "id",
            "paper",
            "where",
            "kind",
            "statement",
            "hypotheses",
            "because",
            "title",
            "section",
        ),
        str,
    ),
    "severity": str,
    "symbols": _is_glossary,
    "marginal": bool,
    "outcome": frozenset({"proved", "certified", "loose", "held", "false", "open"}),
    "proof": str,
    **dict.fromkeys(("expected_printed", "expected_corrected"), str | None),
    "as_expected": bool,
    "notes": [str],
    "forms": [_FORM],
    "controls": [{**_VERDICT, "name": str, "kind": str, "rejected": bool}],
}
_REPORT = {
    "schema": int,
    **dict.fromkeys(("profile", "dtype", "note"), str),
    "seed": int,
    "family_alpha": is_number,
    "rule": frozenset({"sequential", "fixed"}),
    "complete": bool,
    "stopped": frozenset({"", *_STOPPED}),
    "as_expected": bool,
    "papers": dict,
    "files": [str],
    "kinds": dict,
    "claims": [_CLAIM],
    "run": {"seconds": dict},
}
