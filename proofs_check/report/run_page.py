"""The page of a report, made from its JSON document alone (docs/report_schema.md)."""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from proofs_check.report import margins
from proofs_check.report.commands import claim_command, run_command
from proofs_check.report.document import (
    TONES,
    headline,
    kinds_of,
    rejections,
    what_stopped,
)
from proofs_check.report.formulas import formula
from proofs_check.report.page import joined, page
from proofs_check.report.text import (
    Json,
    is_finite,
    is_number,
    number,
    real,
    time_of,
    unseen,
    words_and_formulas,
)
from proofs_check.report.words import readable, signs


def render(report: Json) -> str:
    """Return the page of a report that `proofs_check.report.document.find_fault` accepts."""
    claims = list(
        zip(
            _anchors([claim["id"] for claim in report["claims"]]),
            report["claims"],
            strict=True,
        )
    )
    papers = {
        paper: [
            (section, list(own))
            for section, own in itertools.groupby(
                (pair for pair in claims if pair[1]["paper"] == paper),
                lambda pair: pair[1]["section"],
            )
        ]
        for paper in dict.fromkeys(claim["paper"] for claim in report["claims"])
    }
    links = {
        claim["id"]: joined('<a href="#{}">{}</a>', anchor, claim["where"])
        for anchor, claim in claims
    }
    return page(
        "report.html",
        report=report,
        claims=claims,
        papers=papers,
        sources={
            paper: _source(paper, report["papers"].get(paper)) for paper in papers
        },
        stopped=what_stopped(report),
        run_command=run_command(report),
        kinds=kinds_of(report),
        tones=TONES,
        is_finite=is_finite,
        time_of=time_of,
        unseen=unseen,
        rejections=rejections,
        formula=formula,
        readable=lambda text: readable(text, links),
        words=lambda text: _words(text, links),
        slack=_slack,
        headline=headline,
        drawing=_drawing,
        found=_found,
        command_of=lambda claim: claim_command(report, claim["id"]),
    )


def _source(paper: str, told: Any) -> tuple[str, str]:
    """Return the authors of a paper and its title with the year, or its key and nothing where they are not known."""
    match = (
        re.fullmatch(r"(.* and [^,]+), (.+)", told) if isinstance(told, str) else None
    )
    return (match[1], match[2]) if match else (paper, "")


def _anchors(ids: Sequence[str]) -> list[str]:
    """Return one anchor a claim, made of its id, and different where ids differ in signs that an anchor cannot hold."""
    anchors: list[str] = []
    for name in ids:
        plain = "claim-" + (
            re.sub(r"[^A-Za-z0-9.]+", "-", name).strip("-") or "unnamed"
        )
        anchor, again = plain, 2
        while anchor in anchors:
            anchor, again = f"{plain}-{again}", again + 1
        anchors.append(anchor)
    return anchors


def _words(text: str, links: Mapping[str, Markup]) -> Markup:
    """Return words with formulas in TeX between dollar signs."""
    pieces = words_and_formulas(text)
    shown = (
        formula(piece, inline=True) if is_tex else readable(piece, links)
        for piece, is_tex in pieces
    )
    return Markup("").join(shown)


def _slack(form: Json) -> Markup:
    """Return in words where a form has the least slack and how much, "" where its evidence has none."""
    margins = {e["setting"]: real(e["margin"]) for e in form["evidence"]}
    worst = form["worst_setting"]
    if (
        worst is None
        or math.isnan(margins.get(worst, math.nan))
        or form["class"] == "Identity"
    ):
        return Markup("")
    least, most = form["slack"], form["slack_largest"]
    told = joined(
        "Worst setting: {}, where the slack is {}",
        readable(worst),
        signs(number(margins[worst])),
    )
    if len(margins) > 1 and is_finite(least) and is_finite(most):
        told += joined(
            "; over all {} settings from {} to {}",
            len(margins),
            signs(number(least)),
            signs(number(most)),
        )
    return told + joined(". Slack is the {}; 1 is the limit.", signs(form["margin_is"]))


def _drawing(ident: str, claim: Json) -> Markup:
    """Return one plot of a claim, with the slacks of its forms, or the means of a rate, which has none."""
    shown = [
        form
        for form in claim["forms"]
        if form["margin_is"] and form["class"] != "Identity"
    ]
    limit = bool(shown)
    shown = shown or [form for form in claim["forms"] if form["class"] == "Rate"]
    measures = dict.fromkeys(form["margin_is"].partition(";")[0] for form in shown)
    axis = (
        "slack: "
        + (
            next(iter(measures))
            if len(measures) == 1
            else "what is claimed over what was found"
        )
    ) * limit
    values = {
        form["form"]: {
            e["setting"]: real(e["margin"] if limit else e["facts"].get("mean"))
            for e in form["evidence"]
        }
        for form in shown
    }
    axis, title = (
        signs(axis) or "mean of the statistic",
        claim["title"] or claim["where"],
    )
    drawing, count = margins.of_claim(
        values, ident=ident, title=title, axis=axis, limit=limit
    )
    left = count - drawing.count('class="halo"')
    more = joined(
        '<p class="soft">The appendix has {} more, where the slack is larger.</p>', left
    )
    return drawing + more * (left > 0) if drawing else drawing


def _found(facts: Json) -> Markup:
    """Return facts in words, but for those that say nothing: no statistic was odd, a property is absent."""
    idle = {"slack": facts.get("slack"), "not_finite": 0}
    told = (
        _fact(name, v)
        for name, v in facts.items()
        if v is not False and (name not in idle or v != idle[name])
    )
    return Markup(", ").join(told)


def _fact(name: str, value: Any) -> Markup:
    if name.startswith("log_") and is_number(
        value
    ):  # a probability that may be too small to be written out
        return joined("{} {}", name[4:].replace("_", " "), power_of_ten(real(value)))
    words = name.replace("_", " ")
    return (
        joined("{}", words) if value is True else joined("{} {}", words, number(value))
    )


def power_of_ten(log: float) -> Markup:
    """Return the number with this natural logarithm, for numbers that a float may not hold."""
    if abs(log) < 9 or not math.isfinite(log):
        return Markup("–" if math.isnan(log) else number(math.exp(log)))
    exponent = log / math.log(10)
    return readable(
        f"10^{exponent:.5g}" if abs(exponent) < 1e5 else f"10^{exponent:.0f}"
    )
