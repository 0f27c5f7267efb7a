"""A report as Markdown for the documentation: one table a paper, and one of the kinds of controls."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from proofs_check.report.commands import run_command
from proofs_check.report.document import (
    headline,
    kinds_of,
    rejections,
    what_stopped,
)
from proofs_check.report.text import visible, words_and_formulas

HEAD = (
    "claim", "where", "statement", "hypotheses", "printed", "corrected", "slack", "detectable rate",
    "controls rejected",
)  # fmt: skip


def render(report: Mapping[str, Any]) -> str:
    """Return the Markdown of a report that `proofs_check.report.document.find_fault` accepts; formulas are `$TeX$`."""
    papers: dict[str, list[Mapping[str, Any]]] = {}
    for claim in report["claims"]:
        papers.setdefault(claim["paper"], []).append(claim)
    wrong = [
        f"`{_plain(claim['id'])}`"
        for claim in report["claims"]
        if not claim["as_expected"]
    ]
    differing = f"not as expected: {', '.join(wrong)}" if wrong else ""
    statuses = [
        next((form["status"] for form in claim["forms"]), "not tried")
        for claim in report["claims"]
    ]
    head = headline(statuses, differing, own=bool(report["files"]))
    command = visible(run_command(report))
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", command)), default=0))
    lines = [
        "# Verdicts of a run",
        "",
        f"{head}. Profile {cell(report['profile'])}, seed {report['seed']}, "
        f"{cell(report['dtype'])}. A true statement is refuted with probability at most {report['family_alpha']} in "
        "the whole run, over all claims, settings and looks. A violation rate above the detectable one would have been "
        "refuted with probability 0.99.",
        "",
        *([what_stopped(report), ""] if what_stopped(report) else []),
        *([_line(report["note"]), ""] if report["note"] else []),
        f"{fence}text",
        command,
        fence,
    ]
    for paper, claims in papers.items():
        lines += ["", f"## {cell(paper)}", ""]
        if paper in report["papers"]:
            lines += [_line(report["papers"][paper]), ""]
        rows = [_claim(claim) for claim in claims]
        head_of_table = list(HEAD)
        if report["files"]:  # one form, which nobody printed
            head_of_table[4:6] = ["verdict"]
            rows = [[*cells[:5], *cells[6:]] for cells in rows]
        lines.append(table(head_of_table, rows))
    return "\n".join([*lines, *_controls(report)]) + "\n"


def _controls(report: Mapping[str, Any]) -> list[str]:
    """Return the table of the kinds of controls; nothing where there is no control."""
    counts = rejections(
        [control for claim in report["claims"] for control in claim["controls"]]
    )
    rows = [[cell(kind), "{}/{}".format(*counts[kind])] for kind in kinds_of(report)]
    lines = [
        "",
        "## Controls",
        "",
        "How many of the sabotaged variants of each kind the checks rejected.",
        "",
    ]
    return [*lines, table(("kind", "rejected"), rows)] if rows else []


def row(cells: Sequence[str]) -> str:
    """Return a row of a table, from cells that are Markdown."""
    return f"| {' | '.join(cells)} |"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table, from cells that are Markdown."""
    return "\n".join(map(row, (head, ["---"] * len(head), *rows)))


def _claim(claim: Mapping[str, Any]) -> list[str]:
    forms = {form["form"]: form for form in claim["forms"]}
    last = claim["forms"][-1] if claim["forms"] else {"slack": None, "detectable": None}
    return [
        f"`{_plain(claim['id'])}`",
        cell(claim["where"]),
        tex(claim["statement"]) if claim["statement"] else "–",
        with_formulas(claim["hypotheses"]),
        *(verdict(forms.get(name)) for name in ("printed", "corrected")),
        _number(last["slack"]),
        "none" if last["detectable"] == "inf" else _number(last["detectable"]),
        f"{sum(control['rejected'] for control in claim['controls'])}/{len(claim['controls'])}",
    ]


def verdict(form: Mapping[str, Any] | None) -> str:
    """Return the verdict on a form for a cell, with the expected one where it differs."""
    if form is None:
        return "–"
    return (
        form["status"]
        if form["as_expected"]
        else f"**{form['status']}** (expected {cell(form['expected'])})"
    )


def _number(value: Any) -> str:
    return "–" if value is None else value if isinstance(value, str) else f"{value:.3g}"


def _plain(text: Any) -> str:
    """Return text for a code span in a cell: on one line, without what would end the span or the cell."""
    return visible(re.sub(r"\s+", " ", str(text))).replace("`", "'").replace("|", "¦")


def cell(text: Any) -> str:
    """Return text for a cell: on one line, with nothing in it that Markdown or HTML would read as more than text."""
    line = (
        visible(re.sub(r"\s+", " ", str(text)))
        .replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
    )
    return re.sub(r"([\\`*_\[\]|$~])", r"\\\1", line)


def _line(text: Any) -> str:
    """Return text for a line of its own, which does not begin a heading, a list, a comment or the like."""
    return re.sub(r"^(?=[-+#=%:{(!])|^(\d+)(?=[.)])", r"\1\\", cell(text).strip())


def with_formulas(text: str) -> str:
    """Return words for a cell, with the formulas between their dollar signs."""
    if not text.strip():
        return "–"
    return "".join(
        tex(piece) if is_tex else cell(piece)
        for piece, is_tex in words_and_formulas(text)
    )


def tex(formula: str) -> str:
    """Return a formula for a cell: no bar, which would end the cell, and no sign of HTML."""
    if "$" in formula or "`" in formula or not formula.strip():
        return f"`{_plain(formula) or ' '}`"
    # The last one is a link for readers of Markdown that know no formulas.
    for old, new in (
        (r"\|", r"\Vert "),
        ("|", r"\vert "),
        ("<", r"\lt "),
        (">", r"\gt "),
        ("](", "]{}("),
    ):
        formula = formula.replace(old, new)
    line = visible(re.sub(r"\s+", " ", formula)).strip()
    return f"${line}$"
