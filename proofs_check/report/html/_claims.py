"""The sections of the page on single claims: formula, source, verdicts, plots, settings, and how to run it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from proofs_check.report.commands import claim_command
from proofs_check.report.document import is_number, words_and_formulas
from proofs_check.report.html._mathml import formula
from proofs_check.report.html._parts import Json, badge, number, power_of_ten, real, table, text_of, unseen
from proofs_check.report.html._plot import dots


def paper_section(report: Json, index: int, paper: str, claims: Sequence[tuple[str, Json]]) -> str:
    """Return the section of one paper, with all its claims folded but those that are not as expected."""
    source = report["papers"].get(paper)
    cited = f'<p class="soft">{text_of(source)}</p>\n' if source else ""
    return (
        f'<section aria-labelledby="paper-{index}">\n<h2 id="paper-{index}">{text_of(paper)}</h2>\n{cited}'
        + "".join(_claim(report, anchor, claim) for anchor, claim in claims)
        + "</section>\n"
    )


def _claim(report: Json, anchor: str, claim: Json) -> str:
    badges = "".join(badge(form["status"], label=f"{form['form']}: ") for form in claim["forms"])
    mark = "" if claim["as_expected"] else '<span class="badge bad">not as expected</span>'
    notes = "".join(f"<li>{text_of(note)}</li>" for note in claim["notes"])
    seconds = report["run"]["seconds"].get(claim["id"])
    forms = "".join(_form(f"plot-{anchor}-{i}", claim, form) for i, form in enumerate(claim["forms"]))
    controls = "; ".join(
        f"{text_of(c['name'])} ({'rejected' if c['rejected'] else 'not rejected'}: {text_of(c['because'])})"
        for c in claim["controls"]
    )
    return (
        f'<div class="claim"><details{"" if claim["as_expected"] else " open"}><summary>'
        f'<h3>{text_of(claim["id"])}</h3> <span class="soft">{text_of(claim["where"])}</span> '
        f"{badges}{mark}</summary>\n"
        f'<div class="body" id="{anchor}">\n'
        f"{_formula(claim['statement'])}"
        f'<dl class="facts"><dt>source</dt><dd>{text_of(claim["paper"])}, {text_of(claim["where"])}</dd>'
        f"<dt>kind</dt><dd>{text_of(claim['kind'])}</dd>"
        f"<dt>hypotheses</dt><dd>{_hypotheses(claim['hypotheses'])}</dd>"
        + (f"<dt>remark</dt><dd>{text_of(claim['because'])}</dd>" if claim["because"] else "")
        + "</dl>\n"
        + (f'<ul class="notes">{notes}</ul>\n' if notes else "")
        + forms
        + (f"<h4>Controls</h4>\n<p>{controls}</p>\n" if controls else "")
        + f'<h4>Run it again</h4>\n<p class="command"><code>{text_of(claim_command(report, claim["id"]))}</code></p>\n'
        + (f'<p class="soft">It took {number(seconds)} s.</p>\n' if seconds is not None else "")
        + "</div></details></div>\n"
    )


def _hypotheses(text: str) -> str:
    if not text.strip():
        return "those in the statement; every setting that was tried meets them"
    pieces = words_and_formulas(text)
    shown = "".join(formula(piece, inline=True) if is_tex else text_of(piece) for piece, is_tex in pieces)
    if not any(is_tex for _, is_tex in pieces):
        return shown
    return f'<div class="words" role="group" aria-label="hypotheses" tabindex="0">{shown}</div>'


def _formula(tex: str) -> str:
    return f'<div class="formula" role="group" aria-label="statement" tabindex="0">{formula(tex)}</div>\n'


def _form(ident: str, claim: Json, form: Json) -> str:
    evidence = form["evidence"]
    own = _formula(form["statement"]) if form["statement"] != claim["statement"] else ""
    odd = "" if form["as_expected"] else ' <span class="badge bad">not as expected</span>'
    facts = [
        ("why", text_of(form["because"])),
        ("slack", number(form["slack"]) if form["slack"] is not None else None),
        ("worst setting", text_of(form["worst_setting"]) if form["worst_setting"] else None),
        ("evidence", f"{text_of(form['class'])}, {number(form['trials'])} trial(s) at {len(evidence)} setting(s)"),
        ("power", unseen(form) or None),
        ("seed, error rate", f"{text_of(form['seed'])}, {number(form['alpha'])}"),
    ]
    rows = "".join(f"<dt>{name}</dt><dd>{value}</dd>" for name, value in facts if value is not None)
    return (
        f"<h4>As {text_of(form['form'])}: {badge(form['status'], form['expected'])}{odd}</h4>\n{own}"
        f'<dl class="facts">{rows}</dl>\n{_drawing(ident, claim, form)}{_settings(form)}'
    )


def _drawing(ident: str, claim: Json, form: Json) -> str:
    evidence = form["evidence"]
    names = [e["setting"] for e in evidence]
    title = f"{claim['id']} as {form['form']}"
    if form["margin_is"]:
        values, axis, limit = [real(e["margin"]) for e in evidence], form["margin_is"], True
    else:  # a rate has no margin at one size
        values, axis, limit = [real(e["facts"].get("mean")) for e in evidence], "mean of the statistic", False
    drawing = dots(values, names, ident=ident, title=title, axis=axis, worst=form["worst_setting"], limit=limit)
    if not drawing:
        return ""
    line = "; 1, the dashed line, is the limit of the claim, and more is room" if limit else ""
    return f'<p class="soft">Plotted: {text_of(axis)}{line}.</p>\n{drawing}\n'


def _settings(form: Json) -> str:
    if not form["evidence"]:
        return ""
    head = (
        '<th scope="col" class="number">no.</th><th scope="col">setting</th><th scope="col" class="number">margin</th>'
        '<th scope="col" class="number">trials</th><th scope="col" class="wide">found</th>'
    )
    rows = []
    for i, e in enumerate(form["evidence"]):
        found = ", ".join(_fact(name, value) for name, value in e["facts"].items() if not _idle(name, value))
        rows.append(
            f'<tr><td class="number">{i + 1}</td><th scope="row">{text_of(e["setting"])}</th>'
            f'<td class="number">{number(e["margin"])}</td><td class="number">{number(e["trials"])}</td>'
            f'<td class="wide soft">{found}</td></tr>'
        )
    return (
        f"<details><summary>{len(rows)} setting(s)</summary>{table('Settings and what was found', head, rows)}"
        "</details>\n"
    )


def _fact(name: str, value: Any) -> str:
    if name.startswith("log_") and is_number(value):  # a probability that may be too small to be written out
        return f"{text_of(name[4:].replace('_', ' '))} {power_of_ten(real(value))}"
    words = text_of(name.replace("_", " "))
    return words if value is True else f"{words} {number(value)}"


def _idle(name: str, value: Any) -> bool:
    """Tell whether a fact says nothing beside the margin: no statistic was odd, a property is absent."""
    return value is False or name == "slack" or (name == "not_finite" and value == 0)
