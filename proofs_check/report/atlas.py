"""The atlas of the documentation: every statement of the papers, and what one stored run found of it.

Text comes from the register, and numbers from the run: `evidence_of` takes out of a report what the documentation
stores of it, and `files` makes the pages from that and from the claims. Nothing that differs between two equal runs is
kept (no times, no host), so equal runs give equal pages.
"""

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import jinja2

from proofs_check.claim import Claim
from proofs_check.report.commands import claim_command, run_command
from proofs_check.report.document import PAPERS, TONES, describe, what_stopped
from proofs_check.report.margins import overview
from proofs_check.report.markdown import cell, row, table, tex, verdict, with_formulas
from proofs_check.report.text import Json, number, real, slug, unseen

THEORY = {
    "kpotufe2020": "Kernel JL",
    "amini2021": "Concentration of kernel matrices",
    "chen2016": "Relative errors of Fourier features",
    "ghashami2016": "Streaming kernel PCA",
}
"""What the papers are about, as the titles of their pages under docs/theory have it."""

FORMS = ("printed", "corrected")
_OF_A_RUN = ("profile", "seed", "dtype", "family_alpha", "rule", "complete", "stopped")
_OF_A_FORM = (
    "form", "status", "as_expected", "because", "slack", "slack_median", "slack_largest", "loose", "trials",
    "detectable", "margin_is",
)  # fmt: skip


def evidence_of(report: Json) -> dict[str, Any]:
    """Return what the documentation stores of a report: evidence by claim, without the text of the register."""
    run = {key: report["run"].get(key) for key in ("versions", "device", "command")}
    claims = {claim["id"]: _evidence(claim) for claim in report["claims"]}
    return {**{key: report[key] for key in _OF_A_RUN}, "run": run, "claims": claims}


def _evidence(claim: Json) -> dict[str, Any]:
    forms = [
        {
            **{key: form[key] for key in _OF_A_FORM},
            "margins": [_rounded(e["margin"]) for e in form["evidence"]],
        }
        for form in claim["forms"]
    ]
    rejected = {control["name"]: control["rejected"] for control in claim["controls"]}
    trials = sum(control["trials"] for control in claim["controls"])
    return {
        "forms": forms,
        "controls": rejected,
        "control_trials": trials,
        "notes": claim["notes"],
    }


def _rounded(margin: Any) -> Any:
    return (
        margin if margin is None or isinstance(margin, str) else float(f"{margin:.4g}")
    )


def files(
    run: Json, claims: Sequence[Claim], errata: Mapping[str, str]
) -> dict[str, str]:
    """Return the text of every file of the atlas by its name in the folder.

    `run` is what `evidence_of` returned, and `errata` has the anchor of the erratum of a claim on the page of errata.
    """
    papers: dict[str, list[Json]] = {}
    for claim in claims:
        papers.setdefault(claim.paper, []).append(_joined(run, claim, errata))
    pages = {"index.md": filled("atlas_index.md", **_index(run, papers))}
    for paper, entries in papers.items():
        rows = [
            (e["id"].removeprefix(f"{paper}:"), e["margins"])
            for e in entries
            if e["margins"]
        ]
        if rows:
            pages[f"{paper}.svg"] = overview(paper, rows)
        title = f"{paper}: {THEORY[paper]}" if paper in THEORY else paper
        pages[f"{paper}.md"] = filled(
            "atlas_paper.md", paper=paper, title=title, source=PAPERS.get(paper, paper), theory=paper in THEORY,
            run=run, entries=entries, shown=len(rows),
            summary=table(("claim", "place", *FORMS, "slack", "controls refuted"), [_summary(e) for e in entries]),
        )  # fmt: skip
    return pages


def _joined(run: Json, claim: Claim, errata: Mapping[str, str]) -> dict[str, Any]:
    """Return what the page says of a claim: text of the register, and evidence of the run where it has some."""
    evidence = run["claims"].get(claim.id, {"forms": [], "controls": {}, "notes": []})
    expected = {name: form.expect for name, form in claim.forms.items()}
    forms = [
        {**form, "expected": expected.get(form["form"], "")}
        for form in evidence["forms"]
    ]
    margins = {
        form["form"]: [m for m in map(real, form["margins"]) if not math.isnan(m)]
        for form in forms
    }
    controls = [
        (c.name, c.kind, evidence["controls"].get(c.name)) for c in claim.controls
    ]
    named = "; ".join(
        f"{cell(name)} ({cell(kind)}{'' if held else ', **not refuted**'})"
        for name, kind, held in controls
    )
    measures = {form["form"]: form["margin_is"] for form in forms if form["margin_is"]}
    alike = len(set(measures.values())) == 1
    return {
        **describe(claim),
        "title": cell(claim.title[:1].upper() + claim.title[1:]),
        "erratum": errata.get(claim.id, ""),
        "as_expected": all(form["as_expected"] for form in forms)
        and all(evidence["controls"].values()),
        "display": display(claim.tex),
        "own": [
            (name, display(form.tex))
            for name, form in claim.forms.items()
            if form.tex and form.tex != claim.tex
        ],
        "hypotheses": with_formulas(claim.hypotheses)
        if claim.hypotheses.strip()
        else "",
        "because": cell(claim.because),
        "forms": forms,
        "margins": {name: values for name, values in margins.items() if values},
        "verdicts": table(
            (
                "form",
                "verdict",
                "expected",
                "slack",
                "median",
                "largest",
                "settings",
                "trials",
            ),
            [_verdict_row(form) for form in forms],
        ),
        "reasons": [
            (f["form"], cell("; ".join(filter(None, (f["because"], unseen(f))))))
            for f in forms
        ],
        "notes": [cell(note) for note in evidence["notes"]],
        "loose": cell(claim.loose),
        "measures": list(
            dict.fromkeys(
                cell(m if alike else f"{name}, {m}") for name, m in measures.items()
            )
        ),
        "refuted": f"{sum(bool(rejected) for *_, rejected in controls)}/{len(controls)}",
        "controls": named,
        "command": claim_command(run, claim.id),
    }


def _index(run: Json, papers: Mapping[str, Sequence[Json]]) -> dict[str, Any]:
    entries = [entry for own in papers.values() for entry in own]
    evidence = run["claims"].values()
    trials = sum(
        sum(form["trials"] for form in e["forms"]) + e["control_trials"]
        for e in evidence
    )
    used = {form["status"] for entry in entries for form in entry["forms"]}
    statuses = [status for status in TONES if status in used]
    versions = run["run"]["versions"] or {}
    about = [
        ("profile", run["profile"]),
        ("seed", run["seed"]),
        ("precision", run["dtype"]),
        ("device", run["run"]["device"]),
        ("stopping rule", run["rule"]),
        ("family-wise rate", number(run["family_alpha"])),
        *versions.items(),
    ]
    return {
        "run": run,
        "papers": papers,
        "counts": table(
            ("paper", "claims", *statuses),
            [_counts(*pair, statuses) for pair in papers.items()],
        ),
        "claims": number(len(entries)),
        "controls": number(sum(len(e["controls"]) for e in evidence)),
        "trials": number(trials),
        "wrong": [
            link(entry, page=True) for entry in entries if not entry["as_expected"]
        ],
        "missing": [link(entry, page=True) for entry in entries if not entry["forms"]],
        "stopped": what_stopped(run),
        "command": run_command(run),
        "about": table(
            ("what", "value"), [(cell(name), cell(value)) for name, value in about]
        ),
    }


def _counts(paper: str, entries: Sequence[Json], statuses: Sequence[str]) -> list[str]:
    count = Counter(form["status"] for entry in entries for form in entry["forms"])
    numbers = [number(count[status]) if count[status] else "–" for status in statuses]
    return [f"[{paper}]({paper}.md)", number(len(entries)), *numbers]


def _summary(entry: Json) -> list[str]:
    forms = {form["form"]: form for form in entry["forms"]}
    slack = entry["forms"][-1]["slack"] if entry["forms"] else None
    verdicts = [verdict(forms.get(name)) for name in FORMS]
    return [
        link(entry),
        cell(entry["where"]),
        *verdicts,
        number(slack),
        entry["refuted"],
    ]


def _verdict_row(form: Json) -> list[str]:
    status = form["status"] if form["as_expected"] else f"**{form['status']}**"
    slacks = (number(form[name]) for name in ("slack", "slack_median", "slack_largest"))
    numbers = (number(len(form["margins"])), number(form["trials"]))
    return [
        form["form"],
        status + ", loose" * form["loose"],
        cell(form["expected"]),
        *slacks,
        *numbers,
    ]


def link(entry: Json, *, page: bool = False) -> str:
    """Return a link to the section of a claim, from the page of its paper or from another one."""
    return f"[`{entry['id']}`]({entry['paper'] + '.md' if page else ''}#{slug(entry['id'])})"


def display(formula: str) -> str:
    """Return a formula in lines of its own; what `tex` makes code of stays code."""
    line = tex(formula)
    return f"$$\n{line[1:-1]}\n$$" if line.startswith("$") else line


def filled(template: str, **values: Any) -> str:
    """Return a page of Markdown from its template; where a line is empty, one is."""
    text = _PAGES.get_template(template).render(values)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


# Markdown is no HTML: what comes from a claim or a run is made into text by `cell`, `tex` and the like.
_PAGES = jinja2.Environment(
    loader=jinja2.PackageLoader("proofs_check.report"),
    autoescape=False,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_PAGES.globals |= {"cell": cell, "number": number, "row": row, "tex": tex}
