"""The errata of the papers, from the registry of claims and the list in errata.toml.

The registry says what is wrong, what holds and which verdicts are expected; the list adds what is printed in words,
and where the proof of the corrected form stands. A statement that is expected to be refuted as printed, and is not in
the list, is an error, and so is an entry for a claim that does not exist: the page cannot fall behind the registry.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from proofs_check.claim import Claim
from proofs_check.report.atlas._pages import FORMS, slug
from proofs_check.report.document import PAPERS
from proofs_check.report.markdown import _cell, _row, _tex

FALSE = ("refuted", "vacuous")
UNNAMED = "calibrated"


@dataclass(frozen=True)
class Entry:
    """What the list says of a claim: the printed statement in words, and where the correction is proved (Markdown)."""

    printed: str
    proof: str


def entries() -> dict[str, Entry]:
    """Return the list, by id of the claim."""
    text = resources.files(__package__).joinpath("errata.toml").read_text(encoding="utf-8")
    return {name: Entry(**entry) for name, entry in tomllib.loads(text).items()}


def checked(claims: Sequence[Claim], listed: dict[str, Entry]) -> None:
    """Raise a ValueError if the list lacks a statement that is refuted as printed, or names what is no claim."""
    known = {claim.id: claim for claim in claims}
    false = {name for name, claim in known.items() if _expected(claim, "printed") in FALSE}
    faults = {
        "are no claims": set(listed) - set(known),
        "are false as printed and are not in errata.toml": false - set(listed),
        "are in errata.toml without a printed form": {n for n in listed if n in known and known[n].printed is None},
    }
    for fault, names in faults.items():
        if names:
            raise ValueError(f"{', '.join(sorted(names))}: these {fault}")


def anchors(claims: Sequence[Claim]) -> dict[str, str]:
    """Return the anchors of the errata on their page, by id of the claim."""
    listed = entries()
    return {claim.id: slug(_heading(claim)) for claim in claims if claim.id in listed}


def page(claims: Sequence[Claim]) -> str:
    """Return the page of errata."""
    listed = entries()
    checked(claims, listed)
    false = sum(_expected(claim, "printed") in FALSE for claim in claims)
    lines = [
        "# Errata",
        "",
        f"What is false or imprecise in the four papers as printed: {false} statements, displays and steps of proofs "
        f"that are false, and {len(listed) - false} that are true but for a slip, a hypothesis or their proof. Most "
        "are repaired by a constant, a sign or a hypothesis, and the main results of all four papers survive in the "
        "form that is given here.",
        "",
        "An entry says what is printed, in our words; what is wrong with it, and the counterexample; and what holds "
        "instead, with the place of its proof. The id is that of the claim that refutes the printed form and checks "
        "the corrected one; it leads to the {doc}`atlas <atlas/index>`, which has the formula as printed, the "
        "hypotheses, and what a run found. `python -m proofs_check --claim ID` runs it. The page is made from the "
        "registry of claims, and a test compares the two.",
        "",
    ]
    for paper in PAPERS:
        own = [claim for claim in claims if claim.paper == paper]
        wrong = [claim for claim in own if _expected(claim, "printed") in FALSE]
        rest = [claim for claim in own if claim.id in listed and claim not in wrong]
        lines += _section(f"{paper}: false as printed", "Wrong", wrong, listed)
        lines += _section(f"{paper}: imprecise", "Note", rest, listed)
        lines += _unnamed(f"{paper}: constants that are not named", own)
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(title: str, label: str, claims: Sequence[Claim], listed: dict[str, Entry]) -> list[str]:
    """Return the errata of one kind; `label` is what the reason of the registry is called."""
    if not claims:
        return []
    lines = [f"## {title}", ""]
    for claim in claims:
        entry = listed[claim.id]
        lines += [f"### {_heading(claim)}", "", f"- *Printed.* {entry.printed}"]
        lines.append(f"- *{label}.* {_cell(claim.because)}")
        if claim.corrected is not None:
            lines.append(f"- *Holds.* {_tex(claim.corrected.tex or claim.tex)}")
        lines.append(f"- *Proof.* {entry.proof}.")
        verdicts = [f"{_expected(claim, form)} as {form}" for form in FORMS if _expected(claim, form)]
        lines += [f"- *Claim.* {_link(claim)}: {', '.join(verdicts)}.", ""]
    return lines


def _unnamed(title: str, claims: Sequence[Claim]) -> list[str]:
    """Return the table of statements that are true up to a constant which the paper does not name."""
    rows = [
        [_cell(claim.where), _link(claim), _cell(claim.because)]
        for claim in claims
        if _expected(claim, "printed") == UNNAMED
    ]
    head = ["place", "claim", "what is known of the constant"]
    return [f"## {title}", "", _row(head), _row(["---"] * len(head)), *map(_row, rows), ""] if rows else []


def _link(claim: Claim) -> str:
    return f"[`{claim.id}`](atlas/{claim.paper}.md#{slug(claim.id)})"


def _heading(claim: Claim) -> str:
    return f"{_cell(claim.where)} (`{claim.id}`)"


def _expected(claim: Claim, form: str) -> str:
    found = claim.printed if form == "printed" else claim.corrected
    return "" if found is None else found.expect
