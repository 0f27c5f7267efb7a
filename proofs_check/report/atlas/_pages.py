"""The pages of the atlas, from a report alone: an index, and for each paper every statement with what was found.

Nothing that differs between two equal runs is shown (no times, no host), so equal runs give equal pages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from proofs_check.report.atlas._plot import drawn, overview
from proofs_check.report.commands import claim_command, run_command
from proofs_check.report.document import what_stopped
from proofs_check.report.html._parts import TONES, Json, number, unseen
from proofs_check.report.markdown import _cell, _row, _tex, _words

THEORY = {
    "kpotufe2020": "Kernel JL",
    "amini2021": "Concentration of kernel matrices",
    "chen2016": "Relative errors of Fourier features",
    "ghashami2016": "Streaming kernel PCA",
}
"""What the papers are about, as the titles of their pages under docs/theory have it."""

FORMS = ("printed", "corrected")


def slug(heading: str) -> str:
    """Return the anchor that GitHub and MyST give to a heading in plain words and code."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def by_paper(report: Json) -> dict[str, list[Json]]:
    """Return the claims of each paper, in the order of the report."""
    papers: dict[str, list[Json]] = {}
    for claim in report["claims"]:
        papers.setdefault(claim["paper"], []).append(claim)
    return papers


def files(report: Json, errata: Mapping[str, str]) -> dict[str, str]:
    """Return the text of every file of the atlas by its name in the folder.

    `errata` has the anchor of the erratum of a claim on the page of errata, for the claims that have one.
    """
    found = {"index.md": index(report)}
    for paper, claims in by_paper(report).items():
        found[f"{paper}.md"] = paper_page(report, paper, claims, errata)
        drawing = overview(paper, claims)
        if drawing:
            found[f"{paper}.svg"] = drawing
    return found


def index(report: Json) -> str:
    """Return the first page: what was run, and how many verdicts of each kind there are."""
    papers = by_paper(report)
    claims = report["claims"]
    controls = [control for claim in claims for control in claim["controls"]]
    trials = sum(part["trials"] for claim in claims for part in (*claim["forms"], *claim["controls"]))
    wrong = [claim for claim in claims if not claim["as_expected"]]
    found = {form["status"] for claim in claims for form in claim["forms"]}
    statuses = [status for status in TONES if status in found]
    stop = what_stopped(report)
    versions = report["run"].get("versions", {})
    lines = [
        "# Theorem atlas",
        "",
        "Every statement of the four papers that is a claim of `proofs_check`, and what one run found of it: the "
        "verdict as printed and as corrected, how much room there is, and the command that runs it again. The page of "
        "a paper has one section a claim and a drawing of all of them. What the verdicts mean, and what the evidence "
        "must show for them, is on {doc}`../verdicts`; what is wrong in the papers, with the reasons, on "
        "{doc}`../errata`; the proofs are on the pages of theory.",
        "",
        f"{number(len(claims))} claims, {number(len(controls))} controls (sabotaged variants that a check must "
        f"refute), {number(trials)} trials. "
        + (
            f"Not as expected: {', '.join(_link(claim, page=True) for claim in wrong)}."
            if wrong
            else "Every verdict is as expected, and every control was refuted."
        ),
        "",
        *([stop, ""] if stop else []),
        *_row_table(
            ("paper", "claims", *statuses),
            [_counts(f"[{paper}]({paper}.md)", own, statuses) for paper, own in papers.items()],
        ),
        "",
        "How many forms, printed and corrected together, got which verdict.",
        "",
        "## The run",
        "",
        "```text",
        run_command(report),
        "```",
        "",
        *_row_table(
            ("what", "value"),
            [
                ("profile", _cell(report["profile"])),
                ("seed", str(report["seed"])),
                ("precision", _cell(report["dtype"])),
                ("device", _cell(report["run"].get("device", "–"))),
                ("stopping rule", _cell(report["rule"])),
                ("family-wise rate", number(report["family_alpha"])),
                *((_cell(name), _cell(version)) for name, version in versions.items()),
            ],
        ),
        "",
        f"The probability that the run refutes any true form is at most {number(report['family_alpha'])}, over all "
        "claims, settings and looks at the evidence. On another platform the verdicts agree, and the last digits may "
        "not.",
        "",
        "## How to read a drawing",
        "",
        "A line is a claim; orange is the form as printed, blue the form as corrected. A dot is a setting. Its place "
        "is the *margin*, what the claim allows there over what was found: 1, the dashed line, is the limit of the "
        "claim, and more is room. What is divided by what depends on the class of the statement and stands with each "
        "claim; {doc}`../report_schema` has the list. Settings at the same place are one dot, and an arrow at an edge "
        "stands for all settings beyond it. A form is refuted by settings to the left of the line (a sharp inequality "
        "may be there by rounding alone). Claims about rates, and those that no computation decides, have no margin "
        "and are not drawn.",
        "",
        "*Slack* is the bound over the $(1-\\delta)$-quantile of what it bounds, the smallest over the settings.",
        "",
        "## Make it again",
        "",
        "```text",
        f"python -m proofs_check --profile full --seed {report['seed']} --output RUN",
        "python -m proofs_check.report.atlas RUN --docs docs",
        "```",
        "",
        "A claim that is run alone has a larger share of the error rate, so it may be decided by fewer trials; its "
        "random numbers are the same.",
        "",
        "```{toctree}",
        ":hidden:",
        "",
        *papers,
        "```",
    ]
    return "\n".join(lines) + "\n"


def _counts(name: str, claims: Sequence[Json], statuses: Sequence[str]) -> list[str]:
    found = Counter(form["status"] for claim in claims for form in claim["forms"])
    return [name, number(len(claims)), *(number(found[status]) if found[status] else "–" for status in statuses)]


def paper_page(report: Json, paper: str, claims: Sequence[Json], errata: Mapping[str, str]) -> str:
    """Return the page of one paper: its drawing, a table of its claims, and a section for each."""
    shown = sum(any(True for _ in drawn(claim)) for claim in claims)
    title = THEORY.get(paper)
    lines = [
        f"# {_cell(paper)}" + (f": {title}" if title else ""),
        "",
        f"{_cell(report['papers'].get(paper, paper))}."
        + (f" Proofs: {{doc}}`../theory/{paper}`." if title else "")
        + f" Profile {_cell(report['profile'])}, seed {report['seed']}, {_cell(report['dtype'])}; see {{doc}}`index`.",
        "",
    ]
    if shown:
        lines += [
            f"![Dots on a log axis: how much room {shown} claims have at each of their settings]({paper}.svg)",
            "",
            f"Room at every setting, as {{doc}}`index` explains, of {shown} of {len(claims)} claims; the others have "
            "no margin.",
            "",
        ]
    head = ("claim", "place", *FORMS, "slack", "controls refuted")
    lines += [*_row_table(head, [_summary(claim) for claim in claims]), "", "## Statements", ""]
    for claim in claims:
        lines += _section(report, claim, errata.get(claim["id"], ""))
    return "\n".join(lines).rstrip("\n") + "\n"


def _summary(claim: Json) -> list[str]:
    forms = {form["form"]: form for form in claim["forms"]}
    last = claim["forms"][-1] if claim["forms"] else {"slack": None}
    verdicts = [_verdict(forms[name]) if name in forms else "–" for name in FORMS]
    return [_link(claim), _cell(claim["where"]), *verdicts, number(last["slack"]), _refuted(claim)]


def _section(report: Json, claim: Json, erratum: str) -> list[str]:
    lines = [f"### `{claim['id']}`", ""]
    lines += [
        f"{_cell(claim['where'])}; {_cell(claim['kind'])}."
        + (f" [Erratum](../errata.md#{erratum})." if erratum else "")
        + ("" if claim["as_expected"] else " **Not as expected.**"),
        "",
        *_display(claim["statement"]),
    ]
    for form in claim["forms"]:
        if form["statement"] != claim["statement"]:
            lines += [f"As {form['form']}:", "", *_display(form["statement"])]
    if claim["hypotheses"].strip():
        lines += [f"*Assumed.* {_words(claim['hypotheses'])}", ""]
    head = ("form", "verdict", "expected", "slack", "least margin", "settings", "trials")
    lines += [*_row_table(head, [_form_row(form) for form in claim["forms"]]), ""]
    if claim["because"]:
        lines += [f"*Remark.* {_cell(claim['because'])}", ""]
    for form in claim["forms"]:
        rest = "; ".join(filter(None, (form["because"], unseen(form))))
        lines += [f"*As {form['form']}:* {_cell(rest)}.", ""]
    for note in claim["notes"]:
        lines += [f"*Note:* {_cell(note)}", ""]
    margins = {form["form"]: form["margin_is"] for form in claim["forms"] if form["margin_is"]}
    if margins:
        alike = len(set(margins.values())) == 1
        words = dict.fromkeys(text if alike else f"{name}, {text}" for name, text in margins.items())
        lines += [f"*Margin:* {'; '.join(map(_cell, words))}.", ""]
    if claim["controls"]:
        named = "; ".join(
            f"{_cell(control['name'])} ({_cell(control['kind'])}{'' if control['rejected'] else ', **not refuted**'})"
            for control in claim["controls"]
        )
        lines += [f"*Controls:* {_refuted(claim)} refuted: {named}.", ""]
    return [*lines, "```text", claim_command(report, claim["id"]), "```", ""]


def _form_row(form: Json) -> list[str]:
    margins = [margin for one, found in drawn({"forms": [form]}) for margin in found]
    return [
        form["form"],
        form["status"] if form["as_expected"] else f"**{form['status']}**",
        _cell(form["expected"]),
        number(form["slack"]),
        number(min(margins)) if margins else "–",
        number(len(form["evidence"])),
        number(form["trials"]),
    ]


def _verdict(form: Json) -> str:
    return form["status"] if form["as_expected"] else f"**{form['status']}** (expected {_cell(form['expected'])})"


def _refuted(claim: Json) -> str:
    return f"{sum(control['rejected'] for control in claim['controls'])}/{len(claim['controls'])}"


def _link(claim: Json, *, page: bool = False) -> str:
    return f"[`{claim['id']}`]({claim['paper'] + '.md' if page else ''}#{slug(claim['id'])})"


def _display(tex: str) -> list[str]:
    """Return a formula in lines of its own; what `_tex` makes code of stays code."""
    line = _tex(tex)
    if not line.startswith("$"):
        return [line, ""]
    return ["$$", line[1:-1], "$$", ""]


def _row_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(head), _row(["---"] * len(head)), *map(_row, rows)]
