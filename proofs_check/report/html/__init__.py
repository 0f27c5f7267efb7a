"""A report as one self-contained HTML page: no script, no network, light and dark, for a phone and for a keyboard.

`render(report)` makes the page from the JSON document alone (docs/report_schema.md). Everything that comes from the
document is escaped.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib import resources

from proofs_check.report.commands import run_command
from proofs_check.report.document import kinds_of, rejections, what_stopped
from proofs_check.report.html._claims import paper_section
from proofs_check.report.html._parts import (
    TONES,
    Json,
    badge,
    facts,
    is_finite,
    number,
    page_of,
    table,
    text_of,
    time_of,
    unseen,
)

Papers = Mapping[str, Sequence[tuple[str, Json]]]
"""The claims of each paper, in order, each with its anchor on the page."""

MEANINGS = {
    "identity": "an exact algebraic statement, true to rounding at every input that was tried",
    "certified": "the evidence shows the claim, at every setting that was run",
    "consistent": "nothing speaks against the claim, and there were too few trials to certify it",
    "refuted": "the evidence contradicts the claim, or a counterexample is shown",
    "vacuous": "the bound says nothing: it exceeds what the quantity can ever be, or claims no probability",
    "calibrated": "true for some universal constant; the interval that proof and evidence leave open is given",
    "not testable": "computation cannot decide it, or the data do not meet its hypotheses",
}
RULES = {
    "sequential": "sequential: trials stop as soon as the evidence decides, and the rate holds at every look at it",
    "fixed": "fixed: the numbers of trials were set before the first one, and the evidence is looked at once",
}


def render(report: Json) -> str:
    """Return the page of a report that `proofs_check.report.document.find_fault` accepts."""
    anchors = _anchors([claim["id"] for claim in report["claims"]])
    papers = _by_paper(report, anchors)
    style = resources.files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    sections = "".join(paper_section(report, i, paper, claims) for i, (paper, claims) in enumerate(papers.items()))
    return page_of(
        title=f"proofs_check: {_outcome(report)}",
        style=style,
        header=f"<h1>Theorems, run as checks that can fail</h1>\n{_headline(report)}",
        links=[
            ("about", "About this run"),
            ("verdicts", "Verdicts"),
            ("controls", "Controls"),
            *((f"paper-{i}", text_of(paper)) for i, paper in enumerate(papers)),
        ],
        main=f"{_about(report, papers)}{_summary(papers)}{_controls(report, papers)}{sections}",
    )


def _anchors(ids: Sequence[str]) -> list[str]:
    """Return one anchor a claim, made of its id, and different where ids differ in signs that an anchor cannot hold."""
    found: list[str] = []
    for name in ids:
        plain = "claim-" + (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") or "unnamed")
        anchor, again = plain, 2
        while anchor in found:
            anchor, again = f"{plain}-{again}", again + 1
        found.append(anchor)
    return found


def _by_paper(report: Json, anchors: Sequence[str]) -> dict[str, list[tuple[str, Json]]]:
    papers: dict[str, list[tuple[str, Json]]] = {}
    for anchor, claim in zip(anchors, report["claims"], strict=True):
        papers.setdefault(claim["paper"], []).append((anchor, claim))
    return papers


def _outcome(report: Json) -> str:
    wrong = sum(not claim["as_expected"] for claim in report["claims"])
    count = f"{len(report['claims'])} claim(s)"
    return f"{count}, {f'{wrong} not as expected' if wrong else 'all as expected'}"


def _all(papers: Papers) -> list[tuple[str, Json]]:
    return [pair for claims in papers.values() for pair in claims]


def _headline(report: Json) -> str:
    wrong = any(not claim["as_expected"] for claim in report["claims"])
    cut = what_stopped(report)
    tone = "bad" if wrong else "good" if report["complete"] else "open"
    return f'<p class="result {tone}">{text_of(_outcome(report))}.{f" {cut}" if cut else ""}</p>\n'


def _about(report: Json, papers: Papers) -> str:
    run = report["run"]
    versions = run.get("versions")
    shown = ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else None
    about = [
        (
            "family-wise rate",
            f"{number(report['family_alpha'])}: the probability that the run refutes any true form is at most that, "
            "over all claims, settings and looks",
        ),
        ("stopping rule", RULES[report["rule"]]),
        ("seed", text_of(report["seed"])),
        ("profile, precision", f"{text_of(report['profile'])}, {text_of(report['dtype'])}"),
        ("data", text_of(report["note"]) if report["note"] else None),
        ("budget", _budget(run)),
        *(
            (name, text_of(time_of(run[name])))
            for name in ("started", "finished", "device", "platform")
            if run.get(name)
        ),
        ("versions", text_of(shown) if shown else None),
    ]
    wrong = [(anchor, c) for anchor, c in _all(papers) if not c["as_expected"]]
    failed = "".join(f'<li><a href="#{anchor}">{text_of(c["id"])}</a></li>' for anchor, c in wrong)
    meanings = "".join(f"<dt>{badge(status)}</dt><dd>{text_of(text)}</dd>" for status, text in MEANINGS.items())
    return (
        '<section id="about" aria-labelledby="about-h">\n<h2 id="about-h">About this run</h2>\n'
        + (f'<p>Not as expected:</p><ul class="notes">{failed}</ul>\n' if failed else "")
        + facts(about)
        + "<p>The whole run again:</p>\n"
        f'<p class="command"><code>{text_of(run_command(report))}</code></p>\n{_counts(papers)}'
        f'<details><summary>What the verdicts mean</summary><dl class="facts">{meanings}</dl>'
        '<p class="soft">In the quick profile, consistent counts for certified. Slack is the bound over the quantile '
        "of what it bounds, the smallest over the settings.</p></details>\n</section>\n"
    )


def _budget(run: Json) -> str | None:
    minutes, resumed = run.get("budget_minutes"), run.get("resumed")
    parts = [f"{number(minutes)} min"] if is_finite(minutes) else []
    if isinstance(resumed, int) and resumed > 0:
        parts.append(f"resumed {number(int(resumed))} time(s)")
    return ", ".join(parts) or None


def _counts(papers: Papers) -> str:
    counts = {
        name: Counter(form["status"] for _, claim in _all(papers) for form in claim["forms"] if form["form"] == name)
        for name in ("printed", "corrected")
    }
    rows = [
        f'<tr><th scope="row">{badge(status)}</th>'
        + "".join(f'<td class="number">{found[status] or "–"}</td>' for found in counts.values())
        + "</tr>"
        for status in TONES
        if any(found[status] for found in counts.values())
    ]
    head = "".join(f'<th scope="col" class="number">{name}</th>' for name in counts)
    return table("How many forms got which verdict", f'<th scope="col">verdict</th>{head}', rows, "narrow")


def _summary(papers: Papers) -> str:
    head = (
        '<th scope="col">claim</th><th scope="col" class="wide">where</th><th scope="col">printed</th>'
        '<th scope="col">corrected</th><th scope="col" class="number wide">slack</th>'
        '<th scope="col" class="number wide">trials</th><th scope="col" class="number wide">controls rejected</th>'
    )
    tables = [
        table(paper, head, [_summary_row(anchor, claim) for anchor, claim in claims])
        for paper, claims in papers.items()
    ]
    return (
        '<section id="verdicts" aria-labelledby="verdicts-h">\n<h2 id="verdicts-h">Verdicts</h2>\n'
        + "".join(tables)
        + "</section>\n"
    )


def _summary_row(anchor: str, claim: Json) -> str:
    forms = {form["form"]: form for form in claim["forms"]}
    cells = []
    for name in ("printed", "corrected"):
        form = forms.get(name)
        odd = form is not None and not form["as_expected"]
        cells.append(f"<td>{'–' if form is None else badge(form['status'], form['expected'] if odd else None)}</td>")
    last = claim["forms"][-1] if claim["forms"] else {"slack": None}
    rejected = sum(control["rejected"] for control in claim["controls"])
    mark = "" if claim["as_expected"] else ' <span class="badge bad">not as expected</span>'
    return (
        f'<tr><th scope="row"><a href="#{anchor}">{text_of(claim["id"])}</a>{mark}</th>'
        f'<td class="wide">{text_of(claim["where"])}</td>{"".join(cells)}'
        f'<td class="number wide">{number(last["slack"])}</td>'
        f'<td class="number wide">{number(sum(form["trials"] for form in claim["forms"]))}</td>'
        f'<td class="number wide">{rejected}/{len(claim["controls"])}</td></tr>'
    )


def _controls(report: Json, papers: Papers) -> str:
    rows, rejected = [], 0
    for anchor, claim in _all(papers):
        for control in claim["controls"]:
            rejected += control["rejected"]
            tone, seen = ("good", "yes") if control["rejected"] else ("bad", "no")
            rows.append(
                f'<tr><th scope="row"><a href="#{anchor}">{text_of(claim["id"])}</a></th>'
                f'<td>{text_of(control["name"])}</td><td><span class="badge {tone}">{seen}</span></td>'
                f"<td>{text_of(control['kind'])}</td>"
                f'<td class="wide">{"; ".join(filter(None, (text_of(control["because"]), unseen(control))))}</td></tr>'
            )
    if not rows:
        return ""
    head = (
        '<th scope="col">claim</th><th scope="col">control</th><th scope="col">rejected</th>'
        '<th scope="col">kind</th><th scope="col" class="wide">how</th>'
    )
    kinds = kinds_of(report)
    known = [(kind, report["kinds"][kind]) for kind in kinds if report["kinds"].get(kind)]
    meanings = "".join(f"<dt>{text_of(kind)}</dt><dd>{text_of(meaning)}</dd>" for kind, meaning in known)
    return (
        '<section id="controls" aria-labelledby="controls-h">\n<h2 id="controls-h">Controls</h2>\n'
        "<p>A control is a sabotaged variant of a claim. A check that does not reject it has no power.</p>\n"
        f"{_matrix(papers, kinds, report['kinds'])}"
        f'<details><summary>What the kinds of sabotage are</summary><dl class="facts">{meanings}</dl></details>\n'
        f"<details><summary>{rejected} of {len(rows)} control(s) rejected</summary>"
        f"{table('Control and claim', head, rows)}</details>\n</section>\n"
    )


def _matrix(papers: Papers, kinds: Sequence[str], meanings: Json) -> str:
    titles = [f' title="{text_of(meanings[kind])}"' if meanings.get(kind) else "" for kind in kinds]
    head = '<th scope="col">claim</th>' + "".join(
        f'<th scope="col"><abbr{title}>{text_of(kind)}</abbr></th>' for kind, title in zip(kinds, titles, strict=True)
    )
    rows = [
        _matrix_row(f'<a href="#{anchor}">{text_of(claim["id"]).replace(":", ":<wbr>")}</a>', kinds, claim["controls"])
        for anchor, claim in _all(papers)
        if claim["controls"]
    ]
    every = [control for _, claim in _all(papers) for control in claim["controls"]]
    rows.append(_matrix_row("all claims", kinds, every))
    return table("Which claim was tried with which kind of sabotage, and rejected it", head, rows, "matrix")


def _matrix_row(name: str, kinds: Sequence[str], controls: Sequence[Json]) -> str:
    found, cells = rejections(controls), []
    for kind in kinds:
        if kind not in found:
            cells.append("<td></td>")
            continue
        rejected, total = found[kind]
        sign, tone = ("✓", "good") if rejected == total else ("✗", "bad")
        count = "" if rejected == total == 1 else f"{rejected}" if rejected == total else f"{rejected}/{total}"
        cells.append(
            f'<td><span class="badge {tone}" aria-hidden="true">{sign}{count}</span>'
            f'<span class="unseen">rejected {rejected} of {total}</span></td>'
        )
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}</tr>'
