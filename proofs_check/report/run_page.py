"""The page of a report, made from its JSON document alone (docs/report_schema.md)."""

import math
import re
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from proofs_check.report import margins
from proofs_check.report.commands import claim_command, run_command
from proofs_check.report.document import kinds_of, rejections, what_stopped
from proofs_check.report.formulas import formula
from proofs_check.report.page import TONES, joined, page
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


def render(report: Json) -> str:
    """Return the page of a report that `proofs_check.report.document.find_fault` accepts."""
    claims = list(zip(_anchors([claim["id"] for claim in report["claims"]]), report["claims"], strict=True))
    papers: dict[str, list[tuple[str, Json]]] = {}
    for anchor, claim in claims:
        papers.setdefault(claim["paper"], []).append((anchor, claim))
    return page(
        "report.html",
        report=report,
        claims=claims,
        papers=papers,
        stopped=what_stopped(report),
        run_command=run_command(report),
        kinds=kinds_of(report),
        tones=TONES,
        is_finite=is_finite,
        time_of=time_of,
        unseen=unseen,
        rejections=rejections,
        formula=formula,
        hypotheses=_hypotheses,
        drawing=_drawing,
        found=_found,
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


def _hypotheses(text: str) -> Markup | str:
    if not text.strip():
        return "those in the statement; every setting that was tried meets them"
    pieces = words_and_formulas(text)
    if not any(is_tex for _, is_tex in pieces):
        return text.replace("\\$", "$")
    shown = [formula(piece, inline=True) if is_tex else visible(piece) for piece, is_tex in pieces]
    box = '<div class="words" role="group" aria-label="hypotheses" tabindex="0">{}</div>'
    return Markup(box).format(Markup("").join(shown))


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


def _found(facts: Json) -> Markup:
    return Markup(", ").join(_fact(name, value) for name, value in facts.items() if not _idle(name, value))


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
