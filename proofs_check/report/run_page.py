"""The page of a report, made from its JSON document alone (docs/report_schema.md)."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from markupsafe import Markup

from proofs_check.report import margins
from proofs_check.report.commands import claim_command, run_command
from proofs_check.report.document import kinds_of, rejections, what_stopped
from proofs_check.report.formulas import formula
from proofs_check.report.page import TONES, Table, badge, joined, page
from proofs_check.report.text import (
    Json,
    is_finite,
    is_number,
    number,
    real,
    time_of,
    unseen,
    visible,
    words_and_formulas,
)

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


Claims = Sequence[tuple[str, Json]]
"""Claims with their anchors on the page."""


def render(report: Json) -> str:
    """Return the page of a report that `proofs_check.report.document.find_fault` accepts."""
    claims = list(zip(_anchors([claim["id"] for claim in report["claims"]]), report["claims"], strict=True))
    papers: dict[str, list[tuple[str, Json]]] = {}
    for anchor, claim in claims:
        papers.setdefault(claim["paper"], []).append((anchor, claim))
    wrong = [(anchor, claim) for anchor, claim in claims if not claim["as_expected"]]
    outcome = f"{len(claims)} claim(s), {f'{len(wrong)} not as expected' if wrong else 'all as expected'}"
    sections = [("about", "About this run"), ("verdicts", "Verdicts"), ("controls", "Controls")]
    known = [(kind, report["kinds"][kind]) for kind in kinds_of(report) if report["kinds"].get(kind)]
    return page(
        "report.html",
        title=f"proofs_check: {outcome}",
        links=[*sections, *((f"paper-{i}", paper) for i, paper in enumerate(papers))],
        report=report,
        papers=papers,
        outcome=outcome,
        tone="bad" if wrong else "good" if report["complete"] else "open",
        stopped=what_stopped(report),
        wrong=wrong,
        about=_about(report),
        run_command=run_command(report),
        counts=_counts(claims),
        meanings=[(badge(status), text) for status, text in MEANINGS.items()],
        summaries=[_summary(paper, chosen) for paper, chosen in papers.items()],
        matrix=_matrix(claims, report),
        kinds=known,
        controls=_controls(claims),
        rejected=sum(control["rejected"] for _, claim in claims for control in claim["controls"]),
        formula=formula,
        hypotheses=_hypotheses,
        facts_of_form=_facts_of_form,
        drawing=_drawing,
        settings=_settings,
        command_of=lambda claim: claim_command(report, claim["id"]),
    )


def _anchors(ids: Sequence[str]) -> list[str]:
    """Return one anchor a claim, made of its id, and different where ids differ in signs that an anchor cannot hold."""
    anchors: list[str] = []
    for name in ids:
        plain = "claim-" + (re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") or "unnamed")
        anchor, again = plain, 2
        while anchor in anchors:
            anchor, again = f"{plain}-{again}", again + 1
        anchors.append(anchor)
    return anchors


def _link(anchor: str, claim: Json) -> Markup:
    return joined('<a href="#{}">{}</a>', anchor, claim["id"])


def _about(report: Json) -> list[tuple[str, Any]]:
    run = report["run"]
    versions = run.get("versions")
    told = ", ".join(f"{name} {version}" for name, version in versions.items()) if isinstance(versions, dict) else ""
    return [
        (
            "family-wise rate",
            f"{number(report['family_alpha'])}: the probability that the run refutes any true form is at most that, "
            "over all claims, settings and looks",
        ),
        ("stopping rule", RULES[report["rule"]]),
        ("seed", report["seed"]),
        ("profile, precision", f"{report['profile']}, {report['dtype']}"),
        ("data", report["note"] or None),
        ("budget", _budget(run)),
        *((name, time_of(run[name])) for name in ("started", "finished", "device", "platform") if run.get(name)),
        ("versions", told or None),
    ]


def _budget(run: Json) -> str | None:
    minutes, resumed = run.get("budget_minutes"), run.get("resumed")
    parts = [f"{number(minutes)} min"] if is_finite(minutes) else []
    if isinstance(resumed, int) and resumed > 0:
        parts.append(f"resumed {number(int(resumed))} time(s)")
    return ", ".join(parts) or None


def _counts(claims: Claims) -> Table:
    counts = [
        Counter(form["status"] for _, claim in claims for form in claim["forms"] if form["form"] == name)
        for name in ("printed", "corrected")
    ]
    rows = [
        (badge(status), *(count[status] or None for count in counts))
        for status in TONES
        if any(count[status] for count in counts)
    ]
    return Table("How many forms got which verdict", "verdict|printed|corrected", rows, (1, 2), kind="narrow")


def _summary(paper: str, claims: Claims) -> Table:
    columns = "claim|where|printed|corrected|slack|trials|controls rejected"
    return Table(paper, columns, [_summary_row(*each) for each in claims], numbers=(4, 5, 6), wide=(1, 4, 5, 6))


def _summary_row(anchor: str, claim: Json) -> tuple[Any, ...]:
    forms = {form["form"]: form for form in claim["forms"]}
    badges = [
        badge(form["status"], None if form["as_expected"] else form["expected"]) if form is not None else None
        for form in (forms.get("printed"), forms.get("corrected"))
    ]
    name = _link(anchor, claim)
    if not claim["as_expected"]:
        name += Markup(" ") + badge("not as expected", tone="bad")
    slack = claim["forms"][-1]["slack"] if claim["forms"] else None
    rejected = sum(control["rejected"] for control in claim["controls"])
    trials = sum(form["trials"] for form in claim["forms"])
    return name, claim["where"], *badges, slack, trials, f"{rejected}/{len(claim['controls'])}"


def _controls(claims: Claims) -> Table:
    rows = [
        (
            _link(anchor, claim),
            control["name"],
            badge("yes", tone="good") if control["rejected"] else badge("no", tone="bad"),
            control["kind"],
            "; ".join(filter(None, (control["because"], unseen(control)))),
        )
        for anchor, claim in claims
        for control in claim["controls"]
    ]
    return Table("Control and claim", "claim|control|rejected|kind|how", rows, wide=(4,))


def _matrix(claims: Claims, report: Json) -> Table:
    kinds, meanings = kinds_of(report), report["kinds"]
    titles = [joined(' title="{}"', meanings[kind]) if meanings.get(kind) else Markup("") for kind in kinds]
    heads = [joined("<abbr{}>{}</abbr>", title, kind) for title, kind in zip(titles, kinds, strict=True)]
    tried = [(anchor, claim) for anchor, claim in claims if claim["controls"]]
    rows: list[tuple[str, ...]] = [
        (_link(anchor, claim).replace(":", Markup(":<wbr>")), *_rejected(claim["controls"], kinds))
        for anchor, claim in tried
    ]
    every = [control for _, claim in tried for control in claim["controls"]]
    caption = "Which claim was tried with which kind of sabotage, and rejected it"
    rows.append(("all claims", *_rejected(every, kinds)))
    return Table(caption, ["claim", *heads], rows, kind="matrix")


def _rejected(controls: Sequence[Json], kinds: Iterable[str]) -> list[Markup]:
    counts, cells = rejections(controls), []
    for kind in kinds:
        rejected, total = counts.get(kind, (0, 0))
        if not total:
            cells.append(Markup(""))
            continue
        sign, tone = ("✓", "good") if rejected == total else ("✗", "bad")
        count = "" if rejected == total == 1 else f"{rejected}" if rejected == total else f"{rejected}/{total}"
        shown = joined('<span class="badge {}" aria-hidden="true">{}{}</span>', tone, sign, count)
        cells.append(shown + joined('<span class="unseen">rejected {} of {}</span>', rejected, total))
    return cells


def _hypotheses(text: str) -> Markup | str:
    if not text.strip():
        return "those in the statement; every setting that was tried meets them"
    pieces = words_and_formulas(text)
    if not any(is_tex for _, is_tex in pieces):
        return text.replace("\\$", "$")
    shown = [formula(piece, inline=True) if is_tex else visible(piece) for piece, is_tex in pieces]
    box = '<div class="words" role="group" aria-label="hypotheses" tabindex="0">{}</div>'
    return Markup(box).format(Markup("").join(shown))


def _facts_of_form(form: Json) -> list[tuple[str, Any]]:
    return [
        ("why", form["because"]),
        ("slack", number(form["slack"]) if form["slack"] is not None else None),
        ("worst setting", form["worst_setting"] or None),
        ("evidence", f"{form['class']}, {number(form['trials'])} trial(s) at {len(form['evidence'])} setting(s)"),
        ("power", unseen(form) or None),
        ("seed, error rate", f"{form['seed']}, {number(form['alpha'])}"),
    ]


def _drawing(ident: str, claim: Json, form: Json) -> Markup:
    evidence = form["evidence"]
    if form["margin_is"]:
        values, axis, limit = [real(e["margin"]) for e in evidence], form["margin_is"], True
    else:  # a rate has no margin at one size
        values, axis, limit = [real(e["facts"].get("mean")) for e in evidence], "mean of the statistic", False
    title, worst = f"{claim['id']} as {form['form']}", form["worst_setting"]
    names = [e["setting"] for e in evidence]
    drawing = margins.of_form(values, names, ident=ident, title=title, axis=axis, worst=worst, limit=limit)
    if not drawing:
        return drawing
    line = "; 1, the dashed line, is the limit of the claim, and more is room" if limit else ""
    return joined('<p class="soft">Plotted: {}{}.</p>\n{}\n', axis, line, drawing)


def _settings(form: Json) -> Table:
    rows = [
        (
            e["setting"],
            i + 1,
            e["margin"],
            e["trials"],
            Markup(", ").join(_fact(name, value) for name, value in e["facts"].items() if not _idle(name, value)),
        )
        for i, e in enumerate(form["evidence"])
    ]
    columns = "setting|no.|margin|trials|found"
    return Table("Settings and what was found", columns, rows, numbers=(1, 2, 3), wide=(4,))


def _fact(name: str, value: Any) -> Markup:
    if name.startswith("log_") and is_number(value):  # a probability that may be too small to be written out
        return joined("{} {}", name[4:].replace("_", " "), power_of_ten(real(value)))
    words = name.replace("_", " ")
    return joined("{}", words) if value is True else joined("{} {}", words, number(value))


def _idle(name: str, value: Any) -> bool:
    """Tell whether a fact says nothing beside the margin: no statistic was odd, a property is absent."""
    return value is False or name == "slack" or (name == "not_finite" and value == 0)


def power_of_ten(log: float) -> Markup:
    """Return the number with this natural logarithm, for numbers that a float may not hold."""
    if not math.isfinite(log):
        return Markup("–" if math.isnan(log) else "0" if log < 0 else "∞")
    if abs(log) < 9:
        return Markup(number(math.exp(log)))
    if abs(log) > 1e12:  # rounding has eaten the digits in front
        return Markup(f"e<sup>{number(log)}</sup>")
    exponent = math.floor(log / math.log(10))
    mantissa = f"{10 ** (log / math.log(10) - exponent):.2f}"
    if mantissa == "10.00":
        mantissa, exponent = "1.00", exponent + 1
    return Markup(f"{mantissa}·10<sup>{exponent}</sup>".replace("-", "−"))
