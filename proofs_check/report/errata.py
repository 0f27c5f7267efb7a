"""The errata of the papers, from the register.

A statement is in the errata where the register has its printed form in words (`says`). One that is expected to be
refuted as printed and has none is an error.
"""

from __future__ import annotations

from collections.abc import Sequence

from proofs_check.claim import Claim
from proofs_check.report.atlas import FORMS, slug
from proofs_check.report.document import PAPERS
from proofs_check.report.markdown import cell, table, tex

FALSE = ("refuted", "vacuous")
UNNAMED = "calibrated"


def listed(claims: Sequence[Claim]) -> dict[str, Claim]:
    """Return the claims that are in the errata. Raise a ValueError if one is false as printed and not among them."""
    false = [c.id for c in claims if _expected(c, "printed") in FALSE and not (c.says and c.proof)]
    if false:
        raise ValueError(f"{', '.join(false)}: false as printed, but the register lacks `says` or `proof`")
    return {claim.id: claim for claim in claims if claim.says}


def anchors(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the anchors of the errata on their page, by id of the claim."""
    return {name: slug(_heading(claim)) for name, claim in listed(claims).items()}


def page(claims: Sequence[Claim]) -> str:
    """Return the page of errata."""
    among = listed(claims)
    false = sum(_expected(claim, "printed") in FALSE for claim in claims)
    lines = [
        "# Errata",
        "",
        f"What is false or imprecise in the four papers as printed: {false} statements, displays and steps of proofs "
        f"that are false, and {len(among) - false} that are true but for a slip, a hypothesis or their proof. Most "
        "are repaired by a constant, a sign or a hypothesis, and the main results of all four papers survive in the "
        "form that is given here.",
        "",
        "An entry says what is printed, in our words; what is wrong with it, and the counterexample; and what holds "
        "instead, with the place of its proof. The id is that of the claim that refutes the printed form and checks "
        "the corrected one; the {doc}`atlas <atlas/index>` has the formula as printed, the hypotheses, and what a run "
        "found of it. `python -m proofs_check show ID` says where the check and the proof are, and "
        "`python -m proofs_check --claim ID` runs it. The page is made from the "
        "register, and a test compares the two.",
        "",
    ]
    for paper in PAPERS:
        own = [claim for claim in claims if claim.paper == paper]
        wrong = [claim for claim in own if _expected(claim, "printed") in FALSE]
        rest = [claim for claim in own if claim.id in among and claim not in wrong]
        lines += _section(f"{paper}: false as printed", "Wrong", wrong)
        lines += _section(f"{paper}: imprecise", "Note", rest)
        lines += _unnamed(f"{paper}: constants that are not named", own)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(title: str, label: str, claims: Sequence[Claim]) -> list[str]:
    """Return the errata of one kind; `label` is what the reason in the register is called."""
    if not claims:
        return []
    lines = [f"## {title}", ""]
    for claim in claims:
        lines += [f"### {_heading(claim)}", "", f"- *Printed.* {claim.says}"]
        lines.append(f"- *{label}.* {cell(claim.because)}")
        if claim.corrected is not None:
            lines.append(f"- *Holds.* {tex(claim.corrected.tex or claim.tex)}")
        lines.append(f"- *Proof.* {claim.proof}.")
        verdicts = [f"{_expected(claim, form)} as {form}" for form in FORMS if _expected(claim, form)]
        lines += [f"- *Claim.* `{claim.id}`: {', '.join(verdicts)}.", ""]
    return lines


def _unnamed(title: str, claims: Sequence[Claim]) -> list[str]:
    """Return the table of statements that are true up to a constant which the paper does not name."""
    rows = [
        [cell(claim.where), f"`{claim.id}`", cell(claim.because)]
        for claim in claims
        if _expected(claim, "printed") == UNNAMED
    ]
    head = ["place", "claim", "what is known of the constant"]
    return [f"## {title}", "", table(head, rows), ""] if rows else []


def _heading(claim: Claim) -> str:
    return f"{cell(claim.where)} (`{claim.id}`)"


def _expected(claim: Claim, form: str) -> str:
    shown = claim.printed if form == "printed" else claim.corrected
    return "" if shown is None else shown.expect
